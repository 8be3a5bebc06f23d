cimport cython
from libc.math cimport exp, fabs, isnan, log
from orcast.committee.state cimport Constants, Known, Plan
from orcast.committee.regression cimport dot, feature, solve_positive
from orcast.kernels.rows cimport Workspace, cut, mark, release, take

cdef double SLOW_RATE, FAST_RATE, LOG_SIZE, MOST_LOG, MOST_RATIO, SHAPE_START, SHAPE_MEMORY, LEVEL_SHARE, MOST_SIZE
cdef Py_ssize_t WIDTH, EQUATION_SIZE, OWN_SIZE, SHARED_SIZE, MEMO_SIZE
cdef Py_ssize_t SLOW, FAST, COUNT, EQUATIONS, STEPS, NEW, POOLED, SUMS

cdef void sort(double *values, Py_ssize_t size) noexcept nogil
cdef double log_factor(
    Plan plan, Known *known, double *state, double *shared, double *x, Workspace w
) noexcept nogil
cdef void spread_around(
    Plan plan, Known *known, double *base, double centre, double *state, double *shared, double *memo, double *out,
    Workspace w
) noexcept nogil
cdef void step_shape(Plan plan, double *shape, double *missed, double rate) noexcept nogil
cdef void add_equation(double *equations, double kept, double *x, double z) noexcept nogil
cdef void learn_spread(Plan plan, Known *known, double error, double *state, double *shared, double *memo) noexcept nogil
cdef void close_spread(Plan plan, double *shared, double weight) noexcept nogil
