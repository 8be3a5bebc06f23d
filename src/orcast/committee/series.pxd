from libc.math cimport fabs, isnan, sqrt
from orcast.committee.state cimport EMPTY, NAN, RING, SEASON_COUNT, SERIES_SIZE, SHORT_SEASONS, Plan, Series, as_series
from orcast.kernels.rows cimport Row, cut, whole_number

cdef double KEPT, LEAST, HIGHER, MEAN_RATE, MOST_SIZE
cdef Py_ssize_t OFTEN

cdef Py_ssize_t slot(double) noexcept nogil
cdef double ring_at(Row, double, double) noexcept nogil
cdef double newest_of(Series *) noexcept nogil
cdef double ring_put(Row, double, double, double) noexcept nogil
cdef double whole_seasons(double, double) noexcept nogil
cdef double season_before(Row, double, double, double) noexcept nogil
cdef double best_season(Plan, Series *, Row, Py_ssize_t, Py_ssize_t) noexcept nogil
cdef void learn_seasons(Plan, Series *, Row, Row, double, double) noexcept nogil
cdef void newest_three(Series *, Row) noexcept nogil
cdef void learn_mean(Series *, double) noexcept nogil
cdef void observe(Plan, Row, double, double) noexcept nogil
