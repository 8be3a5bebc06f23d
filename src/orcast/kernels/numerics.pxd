from libc.math cimport exp, log

cdef double power(double x, Py_ssize_t n) noexcept nogil
cdef double real_power(double x, double exponent) noexcept nogil
cdef Py_ssize_t search_left(double *row, Py_ssize_t size, double value) noexcept nogil
