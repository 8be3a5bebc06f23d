from libc.math cimport sqrt
from orcast.kernels.numerics cimport real_power

cdef double STALE, DELAY_ODDS

cdef Py_ssize_t horizon(double pending) noexcept nogil
cdef double delay_odds(double pending) noexcept nogil
cdef double delay_weight(double pending) noexcept nogil
cdef double delayed(double discount, double weight) noexcept nogil
