cimport cython
from libc.math cimport fabs, isnan, nextafter
from orcast.kernels.cells cimport locate
from orcast.kernels.rows cimport (
    Row, Workspace, cut, mark, numbers_of, readable_of, real_power, release, search_left, take, workspace
)
from orcast.kernels.state cimport Counts, Round, Rules, as_counts, cell_count

cdef double TINY_MASS, INF, NAN, SQUARES
cdef Py_ssize_t PERCENT_COUNT, COUNT_COLUMNS, ENDS
cdef Row PERCENTS, SCORES

cdef double tail_scale(Py_ssize_t, Row, Row, bint, bint) noexcept nogil
cdef void cumulate(Py_ssize_t, Row, Row) noexcept nogil
cdef double quantile_in(Py_ssize_t, double, Py_ssize_t, Row, Row, Row, bint, bint, double) noexcept nogil
cdef void read_quantiles(Py_ssize_t, Row, Row, Row, bint, bint, Row, Py_ssize_t, Row, Workspace) noexcept nogil
cdef double end_of(Py_ssize_t, Py_ssize_t, Row, Row, bint, bint) noexcept nogil
cdef bint lies_below(double, double, double, double) noexcept nogil
cdef void read_randomised(Py_ssize_t, Row, Row, Row, bint, bint, double, Row, Py_ssize_t, Row, Workspace) noexcept nogil
cdef void read_cells(Py_ssize_t, Row, Row, Row, bint, bint, double, Row, Py_ssize_t, Row, Workspace) noexcept nogil
cdef void read_forecast(Round, double, Row, Py_ssize_t, Row, Workspace) noexcept nogil
cdef (double, double) mean_and_variance(Py_ssize_t, Row, Row, Row, bint, bint) noexcept nogil
cdef (double, double) nearest_normal(Py_ssize_t, Row, Row, Row, bint, bint, Workspace) noexcept nogil

cdef void pit_on_cells(Py_ssize_t, Row, Row, Row, bint, bint, double, Row) noexcept nogil
cdef double beyond_edge(double, double) noexcept nogil
cdef void pit_of_quantiles(Rules, Row, double, Row) noexcept nogil
cdef void write_pits(Rules, Round, double, Row) noexcept nogil
@cython.locals(hit=bint)
cdef void count(Round, double, Row, Py_ssize_t, double, Row, Counts *, Workspace) noexcept nogil

cpdef object read_cells_arrays(Py_ssize_t, object, object, object, bint, bint, double, object)
cpdef object mean_and_variance_arrays(Py_ssize_t, object, object, object, bint, bint)
cpdef object nearest_normal_arrays(Py_ssize_t, object, object, object, bint, bint)
cpdef object read_round(Round, double, object)
cpdef object pits_of(Round, double)
cpdef object count_arrays(Round, double, object, double, object)
