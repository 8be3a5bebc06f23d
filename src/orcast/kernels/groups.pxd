cimport cython
from libc.math cimport exp, fabs
from orcast.kernels.rows cimport Row, Workspace, cut, mark, release, take
from orcast.kernels.state cimport Memory, Round, Rules

cdef double LOSS_DISCOUNT, START, RATE, MOST, ODDS, WEIGHT_RATE, MOST_BEHIND
cdef Py_ssize_t SIZE

cdef Py_ssize_t largest_group(Rules rules, Row context) noexcept nogil
cdef double mean_distance(Row q, Py_ssize_t count) noexcept nogil
cdef void move(Row q, Py_ssize_t count, double spread, Row group, double share, Row out) noexcept nogil
cdef void correct_groups(Rules rules, Memory memory, Round round, Row q) noexcept nogil
cdef double pinball(Rules rules, Row q, double y) noexcept nogil
cdef void learn_groups(Rules rules, Memory memory, Round round, double y, double usual, Workspace w) noexcept nogil
