from libc.math cimport exp, fabs, sqrt
from orcast.kernels.delays cimport STALE
from orcast.kernels.evidence cimport OVERLAP
from orcast.kernels.quantile_trackers cimport offset_gradient
from orcast.kernels.rows cimport Workspace, mark, release, take
from orcast.kernels.state cimport Statistics

cdef double PI, RATE, EARLY_RATE, START

cdef double rate_of(Statistics *statistics, double pending) noexcept nogil
cdef double spread_of(double *q, Py_ssize_t n, double *scores) noexcept nogil
cdef void learn_levels(
    double *offsets, double *base, Py_ssize_t n, double *scores, double *levels, double rate, double low, double
    high, double y, Workspace w
) noexcept nogil
