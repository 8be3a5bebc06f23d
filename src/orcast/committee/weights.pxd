cimport cython
from libc.math cimport exp, sqrt
from orcast.committee.state cimport Plan
from orcast.kernels.rows cimport Row

cdef double LEAST_LOG

cdef void fill_weights(
    Row regret, Row square, Row log_prior, Py_ssize_t knots, Py_ssize_t members, Py_ssize_t active, double fastest,
    Row out
) noexcept nogil
cdef void fill_regrets(
    Plan plan, Row quantiles, Py_ssize_t members, Row mix, double y, double unit, Row out
) noexcept nogil
cdef void add_regrets(
    Row regret, Row square, Row r, Py_ssize_t size, double discount, double weight, double lag
) noexcept nogil
cdef double level_weight(Plan plan, Row weights, Py_ssize_t members, Py_ssize_t i, Py_ssize_t m) noexcept nogil
