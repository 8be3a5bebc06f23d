cimport cython
from libc.math cimport exp, fabs
from orcast.kernels.rows cimport Workspace, cut, mark, release, take
from orcast.kernels.state cimport Info, Memory, Round, Rules

cdef double LOSS_DISCOUNT, START, RATE, MOST, ODDS, WEIGHT_RATE, MOST_BEHIND
cdef Py_ssize_t SIZE

@cython.locals(found=Py_ssize_t, g=Py_ssize_t)
cdef Py_ssize_t largest_group(Rules rules, double *context) noexcept nogil
cdef double mean_distance(double *q, Py_ssize_t count) noexcept nogil
cdef void move(
    double *q, Py_ssize_t count, double spread, double *group, double share, double *out
) noexcept nogil
cdef void correct_groups(Rules rules, Memory memory, Round round, double *q) noexcept nogil
cdef double pinball(Rules rules, double *q, double y) noexcept nogil
cdef void learn_groups(Rules rules, Memory memory, Round round, double y, double usual, Workspace w) noexcept nogil
