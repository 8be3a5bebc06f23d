from libc.math cimport exp, fabs
from orcast.kernels.rows cimport Row, Workspace, cut, mark, release, take
from orcast.kernels.state cimport Memory, Round, Rules

cdef double LOSS_DISCOUNT, START, RATE, MOST, ODDS, WEIGHT_RATE, MOST_BEHIND
cdef Py_ssize_t SIZE

cdef Py_ssize_t largest_group(Rules, Row) noexcept nogil
cdef double mean_distance(Row, Py_ssize_t) noexcept nogil
cdef void move(Row, Py_ssize_t, double, Row, double, Row) noexcept nogil
cdef void correct_groups(Rules, Memory, Round, Row) noexcept nogil
cdef double pinball(Rules, Row, double) noexcept nogil
cdef void learn_groups(Rules, Memory, Round, double, double, Workspace) noexcept nogil
