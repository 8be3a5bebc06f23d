from libc.math cimport exp, sqrt
from orcast.committee.state cimport Plan
from orcast.kernels.rows cimport Row

cdef double LEAST_LOG

cdef void fill_weights(Row, Row, Row, Py_ssize_t, Py_ssize_t, Py_ssize_t, double, Row) noexcept nogil
cdef void fill_regrets(Plan, Row, Py_ssize_t, Row, double, double, Row) noexcept nogil
cdef void add_regrets(Row, Row, Row, Py_ssize_t, double, double, double) noexcept nogil
cdef double level_weight(Plan, Row, Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept nogil
