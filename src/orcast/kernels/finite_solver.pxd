cimport cython
from libc.math cimport ceil, exp, fabs, floor, log, sqrt
from orcast.kernels.finite_state cimport FiniteGame
from orcast.kernels.hats cimport between, hat, hat_slope
from orcast.kernels.ledger cimport ROUNDING
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, real_power, release, take

cdef double BINARY_DELAY_TEMPERATURE, DELAY_TEMPERATURE, MAX_STEP, MIN_SLOPE, SHRINK, TRUSTED
cdef double MOST_PLAYED, LEAST_MASS, TOLERANCE, SETTLED, SURE, INF
cdef Py_ssize_t STRICT_STEPS, HALVINGS, REFINEMENTS, STEPS, NEWTON_STEPS, TRIES, UNIT_PASSES

cdef double sigmoid(double) noexcept nogil
cdef double squares_ahead(Row, Py_ssize_t, Row) noexcept nogil
cdef double regret_scale(Row, Py_ssize_t, Row, double, double, double) noexcept nogil
cdef void regret_pulls(FiniteGame, Row, double, Row) noexcept nogil
cdef double interpolate(Row, Py_ssize_t, Py_ssize_t, Py_ssize_t, double) noexcept nogil
cdef (Py_ssize_t, double) hat_at(FiniteGame, double) noexcept nogil
cdef double sum_at(FiniteGame, Py_ssize_t, double) noexcept nogil
cdef double vertex(FiniteGame, Py_ssize_t) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef Py_ssize_t next_vertex(FiniteGame, double, bint) noexcept nogil
cdef double variance_of(FiniteGame, Row) noexcept nogil
cdef void lift(FiniteGame, Row) noexcept nogil
cdef double cell_field(FiniteGame, Row, Py_ssize_t, double) noexcept nogil
cdef double cell_slope(FiniteGame, Row, Py_ssize_t, double) noexcept nogil

cdef double advantage(FiniteGame, double, double, Row, Row) noexcept nogil
cdef (double, double) bracket(FiniteGame, double, double, double, Row, Row) noexcept nogil
cdef double root(FiniteGame, double, double, Row, Row) noexcept nogil
cdef double strict_root(FiniteGame, Row, Row) noexcept nogil

cdef double residual(FiniteGame, double, double, Row, Row, Row, Row, Row) noexcept nogil
cdef double newton(FiniteGame, double, double, Row, Row, Row, Workspace) noexcept nogil
cdef double level_of(FiniteGame, double, Row, Py_ssize_t, double) noexcept nogil
@cython.locals(up=bint)
cdef double mass_at(FiniteGame, double, Row, Py_ssize_t, double) noexcept nogil
cdef double masses_at(FiniteGame, double, Row, double, Py_ssize_t, double, Row) noexcept nogil
cdef void balance(FiniteGame, double, Row, Row, Workspace) noexcept nogil
cdef void equilibrium(FiniteGame, double, double, Row, Row, Workspace) noexcept nogil
cdef void equilibrium_of_several(FiniteGame, double, double, Row, Row, Workspace) noexcept nogil

cdef (double, double, double) certify(FiniteGame, Row, Workspace) noexcept nogil
cdef double floor_term(FiniteGame, Row, Row) noexcept nogil
cdef bint allows(double, double, double, double) noexcept nogil
cdef (double, double, double) solve(FiniteGame, double, double, double, double, Row, Workspace) noexcept nogil
cdef (double, double, double, double) cooled(FiniteGame, double, double, double, Row, Row, Workspace) noexcept nogil
cdef (double, double, double) refined(
    FiniteGame, double, double, double, double, double, double, Row, Row, Workspace
) noexcept nogil
