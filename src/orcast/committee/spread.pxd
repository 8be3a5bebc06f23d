from libc.math cimport exp, fabs, isnan, log
from orcast.committee.regression cimport dot, feature, solve_positive
from orcast.committee.state cimport Known, Plan
from orcast.kernels.rows cimport Row, Workspace, cut, mark, release, take

cdef double SLOW_RATE, FAST_RATE, LOG_SIZE, MOST_LOG, MOST_RATIO, SHAPE_START, SHAPE_MEMORY, LEVEL_SHARE, MOST_SIZE
cdef Py_ssize_t WIDTH, EQUATION_SIZE, OWN_SIZE, SHARED_SIZE, MEMO_SIZE
cdef Py_ssize_t SLOW, FAST, COUNT, EQUATIONS, STEPS, NEW, POOLED, SUMS

cdef void sort(Row, Py_ssize_t) noexcept nogil
cdef double log_factor(Plan, Known *, Row, Row, Row, Workspace) noexcept nogil
cdef void spread_around(Plan, Known *, Row, double, Row, Row, Row, Row, Workspace) noexcept nogil
cdef void step_shape(Plan, Row, Row, double) noexcept nogil
cdef void add_equation(Row, double, Row, double) noexcept nogil
cdef void learn_spread(Plan, Known *, double, Row, Row, Row) noexcept nogil
cdef void close_spread(Plan, Row, double) noexcept nogil
