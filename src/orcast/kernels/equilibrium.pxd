cimport cython
from libc.math cimport exp, fabs, log
from orcast.kernels.cells cimport power_mean
from orcast.kernels.rows cimport Row, Workspace, cut, numbers_of, power, readable_of
from orcast.kernels.state cimport Round, Rules, cell_count

cdef double INF, TINY_MASS, MIN_SLOPE, MAX_STEP, SHRINK
cdef Py_ssize_t TRIES

cdef void field_tables(Row s, Row levels, Py_ssize_t count, Row knots, Row slopes) noexcept nogil
cdef (double, double) normalise(Py_ssize_t n, Row lp, Workspace w) noexcept nogil
cdef double residual(Py_ssize_t n, Row lp, Rules rules, Workspace w) noexcept nogil
cdef double reciprocal(double x) noexcept nogil
cdef void sweep(Py_ssize_t n, Workspace w) noexcept nogil
cdef void newton_step(Py_ssize_t n, Workspace w) noexcept nogil
cdef double solve(Py_ssize_t n, Row lp, Rules rules, double tolerance, Py_ssize_t steps, Workspace w) noexcept nogil
cpdef double level_share(double a, double before, double mass) noexcept nogil
cdef void power_table(
    Rules rules, double low, double high, Py_ssize_t n, Row left, Row right, Workspace w
) noexcept nogil
cdef void payoff(Rules rules, Round round, double y, Py_ssize_t k, Row at, Row out) noexcept nogil
cdef void regret_payoff(Rules rules, Round round, double y, Py_ssize_t k, Row out) noexcept nogil
cdef (double, double) means_of(Round round, Py_ssize_t n, Row expert) noexcept nogil
cdef double crps_difference(double y, Py_ssize_t k, Py_ssize_t n, Row left, Row right, Row p, Row expert) noexcept nogil

cpdef object field_tables_arrays(object s, object levels, object knots, object slopes)
cpdef object payoff_arrays(Rules rules, Round round, double y, Py_ssize_t k, object at, object out)
