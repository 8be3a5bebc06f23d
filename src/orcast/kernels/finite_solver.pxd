cimport cython
from libc.math cimport ceil, exp, fabs, floor, log, sqrt
from orcast.kernels.finite_state cimport FiniteGame
from orcast.kernels.hats cimport between, hat, hat_slope
from orcast.kernels.ledger cimport ROUNDING
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, real_power, release, take

cdef double BINARY_DELAY_TEMPERATURE, DELAY_TEMPERATURE, MAX_STEP, MIN_SLOPE, SHRINK, TRUSTED
cdef double MOST_PLAYED, LEAST_MASS, TOLERANCE, SETTLED, SURE, INF
cdef Py_ssize_t STRICT_STEPS, HALVINGS, REFINEMENTS, STEPS, NEWTON_STEPS, TRIES, UNIT_PASSES

cdef double sigmoid(double z) noexcept nogil
cdef double squares_ahead(Row p, Py_ssize_t cells, Row x) noexcept nogil
cdef double regret_scale(Row p, Py_ssize_t cells, Row x, double unit, double brier, double variance) noexcept nogil
cdef void regret_pulls(FiniteGame recal, Row p, double eager, Row pulls) noexcept nogil
cdef double interpolate(Row table, Py_ssize_t vertices, Py_ssize_t events, Py_ssize_t j, double at) noexcept nogil
cdef (Py_ssize_t, double) hat_at(FiniteGame recal, double at) noexcept nogil
cdef double sum_at(FiniteGame recal, Py_ssize_t j, double at) noexcept nogil
cdef double vertex(FiniteGame recal, Py_ssize_t k) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef Py_ssize_t next_vertex(FiniteGame recal, double at, bint up) noexcept nogil
cdef double variance_of(FiniteGame recal, Row p) noexcept nogil
cdef void lift(FiniteGame recal, Row p) noexcept nogil
cdef double cell_field(FiniteGame recal, Row pulls, Py_ssize_t c, double at) noexcept nogil
cdef double cell_slope(FiniteGame recal, Row pulls, Py_ssize_t c, double at) noexcept nogil

cdef double advantage(FiniteGame recal, double q, double eager, Row p, Row pulls) noexcept nogil
cdef (
    double, double) bracket(FiniteGame recal, double towards, double kappa, double eager, Row p, Row pulls
) noexcept nogil
cdef double root(FiniteGame recal, double kappa, double eager, Row p, Row pulls) noexcept nogil
cdef double strict_root(FiniteGame recal, Row p, Row pulls) noexcept nogil

cdef double residual(
    FiniteGame recal, double kappa, double eager, Row log_prior, Row lp, Row p, Row pulls, Row r
) noexcept nogil
cdef double newton(
    FiniteGame recal, double kappa, double eager, Row log_prior, Row p, Row pulls, Workspace w
) noexcept nogil
cdef double level_of(FiniteGame recal, double kappa, Row pulls, Py_ssize_t c, double at) noexcept nogil
@cython.locals(up=bint)
cdef double mass_at(FiniteGame recal, double kappa, Row pulls, Py_ssize_t c, double level) noexcept nogil
cdef double masses_at(
    FiniteGame recal, double kappa, Row pulls, double level, Py_ssize_t given, double mass, Row p
) noexcept nogil
cdef void balance(FiniteGame recal, double kappa, Row pulls, Row p, Workspace w) noexcept nogil
cdef void equilibrium(FiniteGame recal, double kappa, double eager, Row p, Row pulls, Workspace w) noexcept nogil
cdef void equilibrium_of_several(
    FiniteGame recal, double kappa, double eager, Row p, Row pulls, Workspace w
) noexcept nogil

cdef (double, double, double) certify(FiniteGame recal, Row p, Workspace w) noexcept nogil
cdef double floor_term(FiniteGame recal, Row p, Row values) noexcept nogil
cdef bint allows(double linear, double bound, double free, double budget) noexcept nogil
cdef (
    double, double, double) solve(FiniteGame recal, double kappa, double pending, double free, double budget, Row p,
    Workspace w
) noexcept nogil
cdef (
    double, double, double, double) cooled(FiniteGame recal, double warm, double free, double budget, Row p, Row pulls,
    Workspace w
) noexcept nogil
cdef (
    double, double, double) refined(FiniteGame recal, double warm, double cool, double free, double budget,
    double linear, double bound, Row p, Row pulls, Workspace w
) noexcept nogil
