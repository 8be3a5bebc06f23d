from libc.math cimport fabs
from orcast.kernels.equilibrium cimport crps_difference, level_share, means_of
from orcast.kernels.rows cimport Row, Workspace, copy, cut, take
from orcast.kernels.state cimport Round, Rules

cdef double INF, TINY_MASS, EXACT
cdef Py_ssize_t MOST_PARTS

cdef void bound_quantiles(Rules, Py_ssize_t, Row, Row, Row, Workspace) noexcept nogil
cdef void bound_intervals(Rules, Py_ssize_t, double, double, Row, Workspace) noexcept nogil
cdef void add_extremes(double, double, double, double, Py_ssize_t, Row, Row) noexcept nogil
cdef void bound_moments(Rules, Py_ssize_t, Py_ssize_t, Row, Row, Row, Workspace) noexcept nogil
cdef void bound_crps_regrets(Rules, Py_ssize_t, Round, Row, Py_ssize_t, Row, Row, Workspace) noexcept nogil
cdef void bound_mse_regrets(Rules, Py_ssize_t, Round, Row, Py_ssize_t, Row, Row, Workspace) noexcept nogil
cdef void add_square(Row, Row, Py_ssize_t, double, double) noexcept nogil
cdef void add_moments(Rules, Py_ssize_t, Row, double, double, double, double, Workspace) noexcept nogil
cdef void add_regret(Py_ssize_t, double, double, double, double, double, Workspace) noexcept nogil
cdef void cell_function(Rules, Py_ssize_t, Round, Row, double, double, Workspace) noexcept nogil
cdef double value_at(double, Workspace) noexcept nogil
cdef double most_on_part(double, double, Workspace) noexcept nogil
cdef void push(Py_ssize_t, double, double, double, Row) noexcept nogil
cdef double cell_maximum(double, Workspace) noexcept nogil
cdef double largest(Rules, Py_ssize_t, Round, Row, Row, Row, Workspace) noexcept nogil
cdef (double, double) bound_cells(Rules, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef (double, double) certify(Rules, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef double resolution(Rules, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef void new_function(Py_ssize_t, Py_ssize_t, Workspace) noexcept nogil
