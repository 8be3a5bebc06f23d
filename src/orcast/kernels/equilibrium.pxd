cimport cython
from libc.math cimport exp, fabs, log
from orcast.kernels.cells cimport power_mean
from orcast.kernels.rows cimport Workspace, cut, int64_t, numbers_of, power, readable_of
from orcast.kernels.state cimport Round, Rules

cdef double INF, TINY_MASS, MIN_SLOPE, MAX_STEP, SHRINK
cdef Py_ssize_t TRIES

cdef void field_tables(double *s, double *levels, Py_ssize_t count, double *knots, double *slopes) noexcept nogil
cdef (double, double) normalise(Py_ssize_t n, double *lp, Workspace w) noexcept nogil
cdef double residual(Py_ssize_t n, double *lp, Rules rules, Workspace w) noexcept nogil
cdef double reciprocal(double x) noexcept nogil
cdef void sweep(Py_ssize_t n, Workspace w) noexcept nogil
cdef void newton_step(Py_ssize_t n, Workspace w) noexcept nogil
cdef double solve(
    Py_ssize_t n, double *lp, Rules rules, double tolerance, Py_ssize_t steps, Workspace w
) noexcept nogil
cpdef double level_share(double a, double before, double mass) noexcept nogil
cdef void power_table(
    Rules rules, double low, double high, Py_ssize_t n, double *left, double *right, Workspace w
) noexcept nogil
cdef void payoff(Rules rules, Round round, double y, Py_ssize_t k, double *at, double *out) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void regret_payoff(Rules rules, Round round, double y, Py_ssize_t k, double *out) noexcept nogil
cdef (double, double) means_of(Round round, Py_ssize_t n, double *expert) noexcept nogil
cdef double crps_difference(
    double y, Py_ssize_t k, Py_ssize_t n, double *left, double *right, double *p, double *expert
) noexcept nogil

cpdef object field_tables_arrays(object s, object levels, object knots, object slopes)
cpdef object payoff_arrays(Rules rules, Round round, double y, Py_ssize_t k, object at, object out)
