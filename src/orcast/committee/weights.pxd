cimport cython
from libc.math cimport exp, sqrt
from orcast.committee.state cimport Constants, Plan
from orcast.kernels.rows cimport cut, int64_t

cdef double LEAST_LOG

@cython.locals(i=Py_ssize_t, j=Py_ssize_t, m=Py_ssize_t)
cdef void fill_weights(
    double *regret, double *square, double *log_prior, Py_ssize_t knots, Py_ssize_t members, Py_ssize_t active, double fastest,
    double *out
) noexcept nogil
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, m=Py_ssize_t, at=Py_ssize_t)
cdef void fill_regrets(
    Plan plan, double *quantiles, Py_ssize_t members, double *mix, double y, double unit, double *out
) noexcept nogil
cdef void add_regrets(
    double *regret, double *square, double *r, Py_ssize_t size, double discount, double weight, double lag
) noexcept nogil
@cython.locals(at=Py_ssize_t)
cdef double level_weight(Plan plan, double *weights, Py_ssize_t members, Py_ssize_t i, Py_ssize_t m) noexcept nogil
