cimport cython
from libc.math cimport erf, exp, fabs, sqrt
from orcast.kernels.pool_state cimport PoolSpread, as_pool_spreads, pool_spread_at
from orcast.kernels.rows cimport numbers_of, readable_of

cdef double EVIDENCE_ODDS, PI, PRIOR_OUTCOMES, MOST_ERRORS, NO_VARIANCE, NARROWEST, WIDEST
cdef Py_ssize_t STEPS

cdef (double, double, double) spread_excess(double *ledger, Py_ssize_t n, double *levels, double *scores) noexcept nogil
cdef double in_errors(double total, double variance, double chance) noexcept nogil
cdef double spread_errors(double *ledger, Py_ssize_t n, double *levels, double *scores) noexcept nogil
cpdef double spread_with(double excess, double most) noexcept nogil
cdef double odds_of_spread(double square, double outcomes) noexcept nogil
cdef double stretch_of(
    double *ledger, Py_ssize_t n, double *levels, double *scores, double count, double usual
) noexcept nogil
cdef double usual_excess(PoolSpread *spreads) noexcept nogil
cdef void add_spread(
    PoolSpread *spreads, double *ledger, Py_ssize_t n, double *levels, double *scores, double count, double sign
) noexcept nogil
