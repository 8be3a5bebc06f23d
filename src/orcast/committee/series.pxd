cimport cython
from libc.math cimport fabs, isnan, sqrt
from orcast.committee.state cimport EMPTY, NAN, RING, SEASON_COUNT, SERIES_SIZE, SHORT_SEASONS, Plan, Series, as_series
from orcast.kernels.rows cimport Row, cut

cdef double KEPT, LEAST, HIGHER, MEAN_RATE, MOST_SIZE
cdef Py_ssize_t OFTEN

@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t slot(double time) noexcept nogil
cdef double ring_at(Row ring, double newest, double time) noexcept nogil
cdef double newest_of(Series *series) noexcept nogil
@cython.locals(gap=Py_ssize_t)
cdef double ring_put(Row ring, double newest, double time, double value) noexcept nogil
@cython.locals(count=Py_ssize_t)
cdef double whole_seasons(double season, double lead) noexcept nogil
cdef double season_before(Row ring, double newest, double time, double season) noexcept nogil
cdef double best_season(Plan plan, Series *series, Row cov, Py_ssize_t first, Py_ssize_t last) noexcept nogil
@cython.locals(count=Py_ssize_t)
cdef void learn_seasons(Plan plan, Series *series, Row cov, Row ring, double time, double step) noexcept nogil
cdef void newest_three(Series *series, Row ring) noexcept nogil
cdef void learn_mean(Series *series, double y) noexcept nogil
@cython.locals(late=bint, first=bint)
cdef void observe(Plan plan, Row row, double time, double y) noexcept nogil
