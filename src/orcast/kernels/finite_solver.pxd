cimport cython
from libc.math cimport ceil, exp, fabs, floor, log
from orcast.kernels.ledger cimport ROUNDING
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, real_power, release, take, whole_number

cdef double BINARY_DELAY_TEMPERATURE, DELAY_TEMPERATURE, MAX_STEP, MIN_SLOPE, SHRINK, TRUSTED, STEEP
cdef double LEAST_MASS, TOLERANCE, SETTLED, SURE, INF
cdef Py_ssize_t STRICT_STEPS, HALVINGS, STEPS, NEWTON_STEPS, TRIES, UNIT_PASSES

cdef (Py_ssize_t, double) hat(double, Py_ssize_t) noexcept nogil
cdef double hat_slope(double, Py_ssize_t) noexcept nogil
cdef (Py_ssize_t, double) between(Row, Py_ssize_t, double) noexcept nogil
cdef double squares_ahead(Row, Py_ssize_t, Row) noexcept nogil
cdef double regret_scale(Row, Py_ssize_t, Row, double, double, double) noexcept nogil
cdef void regret_pulls(Workspace, Row, double, Row) noexcept nogil
cdef (Py_ssize_t, double) hat_at(Workspace, double) noexcept nogil
cdef double sum_at(Workspace, Py_ssize_t, double) noexcept nogil
cdef double vertex(Workspace, Py_ssize_t) noexcept nogil
cdef Py_ssize_t next_vertex(Workspace, double, bint) noexcept nogil
cdef double variance_of(Workspace, Row) noexcept nogil
cdef void lift(Workspace, Row) noexcept nogil
cdef double cell_field(Workspace, Row, Py_ssize_t, double) noexcept nogil
cdef double cell_slope(Workspace, Row, Py_ssize_t, double) noexcept nogil

cdef double residual(Workspace, double, double, Row, Row, Row, Row, Row) noexcept nogil
cdef double newton(double, double, Row, Row, Row, Workspace) noexcept nogil
cdef double level_of(Workspace, double, Row, Py_ssize_t, double) noexcept nogil
cdef double gap(Workspace, double, Row, Py_ssize_t, double, double) noexcept nogil
@cython.locals(up=bint)
cdef double mass_at(Workspace, double, Row, Py_ssize_t, double) noexcept nogil
cdef double masses_at(Workspace, double, Row, double, Py_ssize_t, double, Row) noexcept nogil
cdef void balance(double, Row, Row, Workspace) noexcept nogil
cdef void equilibrium(double, double, Row, Row, Workspace) noexcept nogil
cdef void equilibrium_of_several(double, double, Row, Row, Workspace) noexcept nogil

cdef (double, double, double) certify(Row, Workspace) noexcept nogil
cdef double floor_term(Workspace, Row, Row) noexcept nogil
cdef bint allows(double, double, double, double) noexcept nogil
cdef (double, double, double) solve(double, double, double, double, Row, Workspace) noexcept nogil
