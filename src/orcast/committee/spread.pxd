cimport cython
from libc.math cimport exp, fabs, isnan, log
from orcast.committee.regression cimport dot, feature, solve_positive
from orcast.committee.state cimport Known, Plan
from orcast.kernels.rows cimport Row, Workspace, cut, mark, release, take

cdef double SLOW_RATE, FAST_RATE, LOG_SIZE, MOST_LOG, MOST_RATIO, SHAPE_START, SHAPE_MEMORY, LEVEL_SHARE, MOST_SIZE
cdef Py_ssize_t WIDTH, EQUATION_SIZE, OWN_SIZE, SHARED_SIZE, MEMO_SIZE
cdef Py_ssize_t SLOW, FAST, COUNT, EQUATIONS, STEPS, NEW, POOLED, SUMS

cdef void sort(Row values, Py_ssize_t size) noexcept nogil
cdef double log_factor(Plan plan, Known *known, Row state, Row shared, Row x, Workspace w) noexcept nogil
cdef void spread_around(
    Plan plan, Known *known, Row base, double centre, Row state, Row shared, Row memo, Row out, Workspace w
) noexcept nogil
cdef void step_shape(Plan plan, Row shape, Row missed, double rate) noexcept nogil
cdef void add_equation(Row equations, double kept, Row x, double z) noexcept nogil
cdef void learn_spread(Plan plan, Known *known, double error, Row state, Row shared, Row memo) noexcept nogil
cdef void close_spread(Plan plan, Row shared, double weight) noexcept nogil
