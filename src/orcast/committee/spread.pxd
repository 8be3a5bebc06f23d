cimport cython
from libc.math cimport exp, fabs, isnan, log
from orcast.committee.state cimport Constants, Known, Plan
from orcast.kernels.rows cimport cut

cdef double SLOW_RATE, FAST_RATE, LOG_SIZE, MOST_LOG, MOST_RATIO, SHAPE_START, SHAPE_MEMORY
cdef Py_ssize_t OWN_SIZE, SHARED_SIZE, MEMO_SIZE, SLOW, FAST, COUNT, EQUATIONS, STEPS, POOLED, SUMS

cdef void sort(double *values, Py_ssize_t size) noexcept nogil
cdef double solved(
    double a, double b, double c, double d, double e, double f, double x, double y, double z, double u, double v
) noexcept nogil
cdef double log_factor(Plan plan, Known *known, double *state, double *shared, double u, double v) noexcept nogil
cdef void spread_around(
    Plan plan, Known *known, double *base, double centre, double *state, double *shared, double *memo, double *out
) noexcept nogil
cdef void step_shape(Plan plan, double *shape, double *missed, double rate) noexcept nogil
cdef void add_equation(double *equations, double kept, double u, double v, double z) noexcept nogil
cdef void learn_spread(Plan plan, Known *known, double error, double *state, double *shared, double *memo) noexcept nogil
cdef void close_spread(Plan plan, double *shared, double weight) noexcept nogil
