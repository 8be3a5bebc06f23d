cimport cython
from libc.math cimport isnan, sqrt
from orcast.committee.state cimport Known, Plan
from orcast.kernels.rows cimport Row, cut, real_power

cdef Py_ssize_t FEATURES, OUTCOME_FEATURES
cdef double MOST_FEATURE, MOST_TARGET, MOST_RESIDUAL, MOST_MOVE

cdef double feature(double value, double anchor, double unit) noexcept nogil
cdef void outcome_features(Known *known, double anchor, Row x) noexcept nogil
cdef void all_features(Known *known, Row x) noexcept nogil
cdef double dot(Row a, Row b, Py_ssize_t size) noexcept nogil
cdef double centre_of(Known *known, double anchor, Row x, Row theta, Py_ssize_t size) noexcept nogil
cdef double target_of(Known *known, double anchor, double y) noexcept nogil
cdef double remembered(Plan plan, double forget, double lag) noexcept nogil
cdef void start_squares(Row cov, Py_ssize_t size, double ridge) noexcept nogil
cdef void learn_squares(
    Row theta, Row cov, Row x, Py_ssize_t size, double target, double forget, double most_trace, Row gain
) noexcept nogil
cdef void solve_positive(Row a, Row b, Py_ssize_t size, Row x) noexcept nogil
