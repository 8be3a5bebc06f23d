from libc.math cimport exp, fabs, log
from orcast.kernels.cells cimport power_mean
from orcast.kernels.rows cimport Row, Workspace, cut, numbers_of, power, readable_of
from orcast.kernels.state cimport Round, Rules, cell_count

cdef double INF, TINY_MASS, MIN_SLOPE, MAX_STEP, SHRINK
cdef Py_ssize_t TRIES

cdef void field_tables(Row, Row, Py_ssize_t, Row, Row) noexcept nogil
cdef (double, double) normalise(Py_ssize_t, Row, Workspace) noexcept nogil
cdef double residual(Py_ssize_t, Row, Rules, Workspace) noexcept nogil
cdef double reciprocal(double) noexcept nogil
cdef void sweep(Py_ssize_t, Workspace) noexcept nogil
cdef void newton_step(Py_ssize_t, Workspace) noexcept nogil
cdef double solve(Py_ssize_t, Row, Rules, double, Py_ssize_t, Workspace) noexcept nogil
cpdef double level_share(double, double, double) noexcept nogil
cdef void power_table(Rules, double, double, Py_ssize_t, Row, Row, Workspace) noexcept nogil
cdef void payoff(Rules, Round, double, Py_ssize_t, Row) noexcept nogil
cdef void regret_payoff(Rules, Round, double, Py_ssize_t, Row) noexcept nogil
cdef (double, double) means_of(Round, Py_ssize_t, Row, Row) noexcept nogil
cdef double crps_difference(double, Py_ssize_t, Py_ssize_t, Row, Row, Row, Row) noexcept nogil

cpdef object field_tables_arrays(object, object, object, object)
