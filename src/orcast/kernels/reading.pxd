cimport cython
from libc.math cimport fabs, nextafter
from orcast.kernels.cells cimport locate
from orcast.kernels.rows cimport (
    Row, Workspace, cut, mark, numbers_of, readable_of, real_power, release, search_left, take, workspace
)
from orcast.kernels.state cimport Counts, Memory, Round, Rules, as_counts, cell_count

cdef double TINY_MASS, INF, SQUARES
cdef Py_ssize_t PERCENT_COUNT, COUNT_COLUMNS
cdef Row PERCENTS, SCORES

cdef double tail_scale(Py_ssize_t n, Row left, Row right, bint open_low, bint open_high) noexcept nogil
cdef void cumulate(Py_ssize_t n, Row mass, Row below) noexcept nogil
cdef double quantile_in(
    Py_ssize_t k, double level, Py_ssize_t n, Row left, Row right, Row below, bint open_low, bint open_high,
    double scale
) noexcept nogil
cdef void read_quantiles(
    Py_ssize_t n, Row left, Row right, Row mass, bint open_low, bint open_high, Row levels, Py_ssize_t count, Row out,
    Workspace w
) noexcept nogil
cdef double end_of(Py_ssize_t k, Py_ssize_t n, Row left, Row right, bint open_low, bint open_high) noexcept nogil
cdef bint lies_below(double level, double before, double mass, double draw) noexcept nogil
cdef void read_randomised(
    Py_ssize_t n, Row left, Row right, Row mass, bint open_low, bint open_high, double draw, Row levels,
    Py_ssize_t count, Row out, Workspace w
) noexcept nogil
cdef (
    double, double) mean_and_variance(Py_ssize_t n, Row left, Row right, Row mass, bint open_low, bint open_high
) noexcept nogil
cdef (
    double, double) nearest_normal(Py_ssize_t n, Row left, Row right, Row mass, bint open_low, bint open_high,
    Workspace w
) noexcept nogil

@cython.locals(low=bint, high=bint)
cdef void count(Rules rules, Memory memory, Round round, double y, Workspace w) noexcept nogil
@cython.locals(hit=bint)
cdef void count_on(
    Row levels, Py_ssize_t width, double y, Py_ssize_t n, Row left, Row right, Row mass, bint open_low, bint open_high,
    double draw, double discount, Row empirical, Counts *counts, Workspace w
) noexcept nogil

cpdef object read_quantiles_arrays(
    Py_ssize_t n, object left, object right, object mass, bint open_low, bint open_high, object levels, object out
)
cpdef object read_randomised_arrays(
    Py_ssize_t n, object left, object right, object mass, bint open_low, bint open_high, double draw, object levels,
    object out
)
cpdef object mean_and_variance_arrays(
    Py_ssize_t n, object left, object right, object mass, bint open_low, bint open_high
)
cpdef object nearest_normal_arrays(Py_ssize_t n, object left, object right, object mass, bint open_low, bint open_high)
@cython.locals(n=Py_ssize_t)
cpdef object read_round(Round round, bint open_low, bint open_high, double draw, object levels)
cpdef object count_arrays(
    object levels, double y, Py_ssize_t n, object left, object right, object mass, bint open_low, bint open_high,
    double draw, double discount, object empirical
)
