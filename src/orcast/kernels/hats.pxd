cimport cython
from libc.math cimport floor
from orcast.kernels.rows cimport Row

cdef double STEEP

@cython.locals(k=Py_ssize_t)
cdef (Py_ssize_t, double) hat(double, Py_ssize_t) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef double hat_slope(double, Py_ssize_t) noexcept nogil
cdef (Py_ssize_t, double) between(Row, Py_ssize_t, double) noexcept nogil
