from libc.math cimport erf, exp, fabs, sqrt
from orcast.kernels.numerics cimport search_left, search_right
from orcast.kernels.state cimport Rules

cdef double FARTHEST, ROUNDING, PI

cdef double bound_low(Rules rules) noexcept nogil
cdef double bound_high(Rules rules) noexcept nogil
cdef double between(double start, double end, double share) noexcept nogil
cdef (double, double) outer_slopes(Rules rules, double *q, double smallest) noexcept nogil
cdef (double, double) outer_slopes_on(double *q, double *z, Py_ssize_t count, double smallest) noexcept nogil
cdef double quantile_at(double score, Rules rules, double *q, double slope_low, double slope_high) noexcept nogil
cdef double quantile_on(
    double score, double *q, double *z, Py_ssize_t count, double slope_low, double slope_high
) noexcept nogil
cdef void corrected(
    double location, double spread, Rules rules, double *q, double slope_low, double slope_high, double *out
) noexcept nogil
cdef void corrected_on(
    double location, double spread, double *q, double *z, Py_ssize_t count, double slope_low, double slope_high,
    double low, double high, double *out
) noexcept nogil
cdef double on_quantile(double y, double *q, Py_ssize_t count) noexcept nogil
cdef (double, double) normal_score(
    double value, Rules rules, double *q, double slope_low, double slope_high
) noexcept nogil
cdef (double, double) outcome_score(
    double y, Rules rules, double *q, double slope_low, double slope_high
) noexcept nogil
cdef (double, double) cut_normal(double a, double b) noexcept nogil
