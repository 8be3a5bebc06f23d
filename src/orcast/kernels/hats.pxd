cimport cython
from libc.math cimport floor
from orcast.kernels.rows cimport Row

cdef double STEEP

@cython.locals(k=Py_ssize_t)
cdef (Py_ssize_t, double) hat(double at, Py_ssize_t grid) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef double hat_slope(double at, Py_ssize_t grid) noexcept nogil
cdef (Py_ssize_t, double) between(Row nodes, Py_ssize_t count, double at) noexcept nogil
