cimport cython
from libc.math cimport ceil, floor, isnan, sqrt
from orcast.kernels.finite_members cimport committee, update_members
from orcast.kernels.finite_solver cimport between, hat, regret_scale, solve, squares_ahead, variance_of
from orcast.kernels.finite_state cimport FiniteRival, FiniteRound, FiniteRules, FiniteState, finite_rival_at
from orcast.kernels.ledger cimport available_slack, combine, miscalibration, settle, squared_norm, write_certificate
from orcast.kernels.rows cimport (
    Row, Workspace, copy, cut, mark, numbers_of, readable_of, release, take, whole_number, whole_of,
    workspace
)
from orcast.kernels.state cimport ROUND_LOG_SIZE, as_log

cdef Py_ssize_t ENDS
cdef double LOSS_DISCOUNT, OWN_EXPECTATION_WEIGHT, SETTLING, REGRET_PART, LEAST_UNIT, NAN

cdef void place_experts(FiniteRules, FiniteState, Row, Py_ssize_t, FiniteRound, Workspace) noexcept nogil
cdef void set_units(FiniteRules, FiniteState, FiniteRound) noexcept nogil
cdef void set_problem(FiniteRules, FiniteState, FiniteRound, Workspace) noexcept nogil
cdef void predict(
    FiniteRules, FiniteState, Row, Py_ssize_t, double, double, FiniteRound, Workspace
) noexcept nogil
cdef double excess(FiniteRules, FiniteRound, Py_ssize_t, Py_ssize_t) noexcept nogil
cdef void payoff(FiniteRules, FiniteRound, Py_ssize_t, Row) noexcept nogil
cdef void publish(FiniteRules, FiniteRound, Row) noexcept nogil
@cython.locals(drawn=bint)
cdef void count(FiniteRules, FiniteState, FiniteRound, Py_ssize_t, Workspace) noexcept nogil
cdef void learn_rivals(FiniteRules, FiniteRival *, FiniteRound, Py_ssize_t) noexcept nogil
cdef void update(FiniteRules, FiniteState, FiniteRound, double, Py_ssize_t, Workspace) noexcept nogil

cpdef FiniteRound predict_finite(FiniteState, object, double, double, object)
cpdef object update_finite(FiniteState, FiniteRound, double, Py_ssize_t)
cdef void pit_among(Row, Py_ssize_t, Py_ssize_t, Row) noexcept nogil
cdef void write_pits(FiniteRules, FiniteRound, Py_ssize_t, Row, Workspace) noexcept nogil
cpdef object pits_of(FiniteRound, Py_ssize_t)
cpdef object payoff_finite(FiniteRound, Py_ssize_t)
cpdef object run(FiniteState, object, object, object, object, object, object, object)
cpdef object published(FiniteRound)
