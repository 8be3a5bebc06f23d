from libc.math cimport fabs, isnan
from orcast.kernels.equilibrium cimport crps_difference, level_share
from orcast.kernels.rows cimport Row, Workspace, copy, cut, take
from orcast.kernels.state cimport Layout, Round, Rules, part_at

cdef double INF, NAN, TINY_MASS, EXACT
cdef Py_ssize_t MOST_PARTS

cdef void regret_standing(
    Layout layout, Row total, Row context, double discount, Row standing, Row reach, Py_ssize_t size
) noexcept nogil
cdef double gain(double s, double r, double z) noexcept nogil
cdef void bound_quantiles(Rules rules, Py_ssize_t n, Row p, Row linear, Row norm, Workspace w) noexcept nogil
cdef void bound_intervals(Rules rules, Py_ssize_t k, double before, double mass, Row norm, Workspace w) noexcept nogil
cdef void add_extremes(double s, double f, double a, double b, Py_ssize_t k, Row linear, Row norm) noexcept nogil
cdef void add_regret(
    double cumulative, double f, double s, double r, double a, double b, Py_ssize_t k, Row linear, Row norm
) noexcept nogil
cdef void bound_witnesses(
    Rules rules, Py_ssize_t first, Py_ssize_t last, Py_ssize_t offset, Py_ssize_t n, Row expected, Row linear, Row norm,
    Workspace w
) noexcept nogil
cdef void bound_crps_regrets(
    Rules rules, Py_ssize_t n, Round round, Row p, Py_ssize_t at, Row linear, Row norm, Workspace w
) noexcept nogil
cdef void bound_mse_regrets(
    Rules rules, Py_ssize_t n, Round round, Row p, Py_ssize_t at, Row linear, Row norm, Workspace w
) noexcept nogil
cdef void add_square(Row poly, Row z, Py_ssize_t size, double s, double f) noexcept nogil
cdef void add_moments(
    Rules rules, Py_ssize_t at, Row expected, double a, double b, double linear, double square, Workspace w
) noexcept nogil
cdef void put_regret(
    Py_ssize_t i, double z0, double z1, double z2, double linear, double square, Workspace w
) noexcept nogil
cdef void cell_function(
    Rules rules, Py_ssize_t k, Round round, Row p, double linear, double square, Workspace w
) noexcept nogil
cdef double value_at(double t, Workspace w) noexcept nogil
cdef double put_squares(double a, double width, Workspace w) noexcept nogil
cdef double most_on_part(double a, double b, Workspace w) noexcept nogil
cdef void push(Py_ssize_t i, double a, double b, double most, Row stack) noexcept nogil
cdef double cell_maximum(double floor, Workspace w) noexcept nogil
cdef double largest(Rules rules, Py_ssize_t n, Round round, Row p, Row flat, Row bounds, Workspace w) noexcept nogil
cdef (double, double) bound_cells(Rules rules, Py_ssize_t n, Round round, Row p, Workspace w) noexcept nogil
cdef (double, double) certify(Rules rules, Py_ssize_t n, Round round, Row p, Workspace w) noexcept nogil
cdef double resolution(Rules rules, Py_ssize_t n, Round round, Row p, Workspace w) noexcept nogil
cdef void new_function(Py_ssize_t orders, Py_ssize_t regrets, Workspace w) noexcept nogil
