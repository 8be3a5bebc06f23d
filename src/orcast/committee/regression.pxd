cimport cython
from libc.math cimport isnan, sqrt
from orcast.committee.state cimport Constants, Known, Plan
from orcast.kernels.rows cimport cut, real_power

cdef Py_ssize_t FEATURES, OUTCOME_FEATURES
cdef double MOST_FEATURE, MOST_TARGET, MOST_RESIDUAL, MOST_MOVE

cdef double feature(double value, double anchor, double unit) noexcept nogil
cdef void outcome_features(Known *known, double anchor, double *x) noexcept nogil
cdef void all_features(Known *known, double *x) noexcept nogil
cdef double dot(double *a, double *b, Py_ssize_t size) noexcept nogil
cdef double centre_of(Known *known, double anchor, double *x, double *theta, Py_ssize_t size) noexcept nogil
cdef double target_of(Known *known, double anchor, double y) noexcept nogil
cdef double remembered(Plan plan, double forget, double lag) noexcept nogil
cdef void start_squares(double *cov, Py_ssize_t size, double ridge) noexcept nogil
cdef void learn_squares(
    double *theta, double *cov, double *x, Py_ssize_t size, double target, double forget, double most_trace, double *gain
) noexcept nogil
cdef void solve_positive(double *a, double *b, Py_ssize_t size, double *x) noexcept nogil
