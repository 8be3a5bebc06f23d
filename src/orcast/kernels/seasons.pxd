cimport cython
from libc.math cimport fabs, sqrt
from orcast.kernels.rows cimport numbers_of
from orcast.kernels.state cimport Seasons, as_seasons

cdef double KEPT, LEAST_PEAK, HIGHER, MEASURED, PRESUMED
cdef Py_ssize_t SHORTEST_SEASON

@cython.locals(lag=Py_ssize_t, back=Py_ssize_t, late=Py_ssize_t, at=Py_ssize_t, known=Py_ssize_t)
cdef double season_ago(
    double *surprises, Py_ssize_t size, Seasons *seasons, Py_ssize_t which, double pending
) noexcept nogil
@cython.locals(at=Py_ssize_t, known=Py_ssize_t, place=Py_ssize_t, lag=Py_ssize_t)
cdef void add_surprise(
    double *surprises, double *autocorrelation, Py_ssize_t size, Seasons *seasons, double value
) noexcept nogil
cdef double height(double *autocorrelation, Py_ssize_t size, double count, Py_ssize_t lag) noexcept nogil
cdef bint is_multiple(Py_ssize_t lag, Py_ssize_t of) noexcept nogil
@cython.locals(
    was_first=Py_ssize_t, was_second=Py_ssize_t, place_1=Py_ssize_t, place_2=Py_ssize_t, first=Py_ssize_t,
    second=Py_ssize_t, lag=Py_ssize_t, changed=Py_ssize_t, unmeasured=bint
)
cdef Py_ssize_t find_seasons(double *autocorrelation, Py_ssize_t size, Seasons *seasons) noexcept nogil
