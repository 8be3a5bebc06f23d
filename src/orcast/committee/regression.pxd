from libc.math cimport isnan, sqrt
from orcast.committee.state cimport Known, Plan
from orcast.kernels.rows cimport Row, cut, real_power

cdef Py_ssize_t FEATURES, OUTCOME_FEATURES
cdef double MOST_FEATURE, MOST_TARGET, MOST_RESIDUAL, MOST_MOVE

cdef double feature(double, double, double) noexcept nogil
cdef void outcome_features(Known *, double, Row) noexcept nogil
cdef void all_features(Known *, Row) noexcept nogil
cdef double dot(Row, Row, Py_ssize_t) noexcept nogil
cdef double centre_of(Known *, double, Row, Row, Py_ssize_t) noexcept nogil
cdef double target_of(Known *, double, double) noexcept nogil
cdef double remembered(Plan, double, double) noexcept nogil
cdef void start_squares(Row, Py_ssize_t, double) noexcept nogil
cdef void learn_squares(Row, Row, Row, Py_ssize_t, double, double, double, Row) noexcept nogil
cdef void solve_positive(Row, Row, Py_ssize_t, Row) noexcept nogil
