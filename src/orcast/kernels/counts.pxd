cimport cython
from orcast.kernels.cells cimport locate
from orcast.kernels.reading cimport cumulate, lies_below, quantile_in, tail_scale
from orcast.kernels.rows cimport Workspace, cut, mark, numbers_of, readable_of, release, take, workspace
from orcast.kernels.state cimport Counts, Memory, Round, Rules, as_counts

cdef double TINY_MASS, INF
cdef Py_ssize_t COUNT_COLUMNS

@cython.locals(low=bint, high=bint)
cdef void count(Rules rules, Memory memory, Round round, double y, Workspace w) noexcept nogil
@cython.locals(hit=bint)
cdef void count_on(
    double *levels, Py_ssize_t width, double y, Py_ssize_t n, double *left, double *right, double *mass, bint open_low,
    bint open_high, double coin, double discount, double *counted, Counts *counts, Workspace w
) noexcept nogil

cpdef object count_arrays(
    object levels, double y, Py_ssize_t n, object left, object right, object mass, bint open_low, bint open_high,
    double coin, double discount, object counted
)
