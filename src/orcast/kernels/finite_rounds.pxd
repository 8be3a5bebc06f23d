cimport cython
from libc.math cimport ceil, floor, isnan, sqrt
from orcast.kernels.finite_members cimport committee, update_members
from orcast.kernels.finite_solver cimport interpolate, regret_scale, solve, squares_ahead, variance_of
from orcast.kernels.finite_state cimport (
    FiniteGame, FiniteRival, FiniteRound, FiniteRules, FiniteState, finite_recal, finite_rival_at
)
from orcast.kernels.hats cimport between, hat
from orcast.kernels.ledger cimport available_slack, combine, mean_size, settle, squared_norm, write_certificate
from orcast.kernels.rows cimport (
    Row, WholeRow, Workspace, copy, cut, mark, numbers_of, readable_of, release, take, whole_of, workspace
)
from orcast.kernels.state cimport ROUND_LOG_SIZE, as_log

cdef double LOSS_DISCOUNT, OWN_EXPECTATION_WEIGHT, SETTLING, REGRET_PART, LEAST_UNIT, NAN

cdef void place_experts(
    FiniteRules rules, FiniteState state, Row experts, Py_ssize_t count, FiniteRound round, Workspace w
) noexcept nogil
cdef void set_units(FiniteRules rules, FiniteState state, FiniteRound round) noexcept nogil
cdef void new_recal(FiniteRules rules, Row total, FiniteRound round, FiniteGame recal, Workspace w) noexcept nogil
cdef void predict(
    FiniteRules rules, FiniteState state, Row experts, Py_ssize_t count, double pending, double reserved,
    FiniteRound round, FiniteGame recal, Workspace w
) noexcept nogil
cdef double excess(FiniteRules rules, FiniteRound round, Py_ssize_t e, Py_ssize_t y) noexcept nogil
cdef void payoff(FiniteRules rules, FiniteRound round, Py_ssize_t y, Row out) noexcept nogil
@cython.locals(up=Py_ssize_t)
cdef void publish(FiniteRules rules, FiniteRound round, Row out) noexcept nogil
@cython.locals(drawn=bint, k=Py_ssize_t)
cdef void count(FiniteRules rules, FiniteState state, FiniteRound round, Py_ssize_t y, Workspace w) noexcept nogil
cdef void learn_rivals(FiniteRules rules, FiniteRival *rivals, FiniteRound round, Py_ssize_t y) noexcept nogil
cdef void update(
    FiniteRules rules, FiniteState state, FiniteRound round, double reserved, Py_ssize_t y, Workspace w
) noexcept nogil

@cython.locals(w=Workspace, recal=FiniteGame, rules=FiniteRules, round=FiniteRound, masses=Row, count=Py_ssize_t)
cpdef FiniteRound predict_finite(FiniteState state, object experts, double pending, double reserved, object context)
@cython.locals(w=Workspace, recal=FiniteGame, rules=FiniteRules, round=FiniteRound)
cpdef FiniteRound predict_probability(
    FiniteState state, double probability, double pending, double reserved, object context
)
@cython.locals(w=Workspace)
cpdef object update_finite(FiniteState state, FiniteRound round, double reserved, Py_ssize_t y)
cpdef object payoff_finite(FiniteRound round, Py_ssize_t y)
@cython.locals(w=Workspace, recal=FiniteGame, rules=FiniteRules, round=FiniteRound)
cpdef object run(
    FiniteState state, object experts, object contexts, object outcomes, object draws, object result, object round_log
)
@cython.locals(rules=FiniteRules)
cpdef double published_event(FiniteRound round)
cpdef object published(FiniteRound round)
cdef int check_cell(FiniteRound round, Py_ssize_t y) except -1
cdef int set_context(FiniteRound round, object context) except -1
cdef void run_rounds(
    FiniteRules rules, FiniteState state, Row experts, Row contexts, WholeRow outcomes, Row draws, Py_ssize_t rounds,
    FiniteRound round, Row result, Row logs, FiniteGame recal, Workspace w
) noexcept nogil
