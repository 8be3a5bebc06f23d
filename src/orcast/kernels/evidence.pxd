cimport cython
from libc.math cimport exp, sqrt
from orcast.kernels.quantile_trackers cimport pinball_gradient
from orcast.kernels.rows cimport Workspace, mark, numbers_of, readable_of, release, take, workspace
from orcast.kernels.spread cimport spread_errors
from orcast.kernels.state cimport Evidence

cdef double EVIDENCE_DISCOUNT, EVIDENCE_ODDS, EVIDENCE_RATE, OVERLAP, SPREAD_PART, MOST_BEYOND, MOST_FAULT

cdef double standard_errors(Evidence *evidence) noexcept nogil
cdef double prior_odds(double pending) noexcept nogil
cdef double share_of(Evidence *evidence, double hint, double odds) noexcept nogil
cdef void add_evidence(Evidence *evidence, double gain, double pending) noexcept nogil
cdef double beyond_chance(double *ledger, Py_ssize_t n) noexcept nogil
cdef double expert_beyond_chance(double *ledger, Py_ssize_t n, double *levels, double *scores) noexcept nogil
cdef double fault(double ratio, double least) noexcept nogil
cdef void share_atom(double *quantiles, Py_ssize_t n, double y, double *levels, double *gradient) noexcept nogil
@cython.locals(over=bint)
cdef void learn_ledger(
    double *ledger, Py_ssize_t n, double *quantiles, double *levels, double pending, double y, Workspace w
) noexcept nogil
