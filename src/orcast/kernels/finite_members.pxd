cimport cython
from libc.math cimport exp, isnan, log, sqrt
from orcast.kernels.finite_solver cimport sigmoid
from orcast.kernels.finite_state cimport (
    FEATURES, FiniteRound, FiniteRules, FiniteState, as_cell_features, finite_member_at
)
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, numbers_of, readable_of, release, take, workspace

cdef double PRIOR_EXPERTS, DISCOUNT, FASTEST, MOST_REGRET, LEAST_LOG_PRIOR, SHIFT_RIDGE, FLOOR, LEAST_SCORE, EVEN
cdef double MOST_BEHIND, MOST_PRIOR, TINY, MEAN_RATE, ERROR_RATE, INF
cdef Row RIDGE

cdef double log_odds(double p, double most) noexcept nogil
cdef void observe(FiniteRules rules, FiniteState state, Py_ssize_t e, Row x, Row features) noexcept nogil
@cython.locals(used=Py_ssize_t)
cdef void member_masses(FiniteRules rules, FiniteState state, Py_ssize_t at, Row features, Row p) noexcept nogil
cdef double prior_weight(FiniteRules rules, Py_ssize_t i) noexcept nogil
cdef double learning_rate(double prior, double square) noexcept nogil
cdef void weigh(FiniteRules rules, FiniteState state, Row experts, Row weights) noexcept nogil
cdef void pool_masses(FiniteRules rules, Row experts, Row weights, Row pool) noexcept nogil
cdef void committee(FiniteRules rules, FiniteState state, FiniteRound round, Workspace w) noexcept nogil
cdef void newton(Py_ssize_t used, Row curvature, Row gradient, Workspace w) noexcept nogil
@cython.locals(used=Py_ssize_t)
cdef void step(
    FiniteRules rules, FiniteState state, Py_ssize_t at, Row features, double weight, Py_ssize_t y, Workspace w
) noexcept nogil
cdef void update_members(FiniteRules rules, FiniteState state, FiniteRound round, Py_ssize_t y, Workspace w) noexcept nogil

cpdef object start(FiniteState state)
@cython.locals(rules=FiniteRules, w=Workspace, weights=Row)
cpdef object pooled(FiniteState state, object experts)
cpdef object committee_round(FiniteState state, FiniteRound round)
cpdef object teach_round(FiniteState state, FiniteRound round, Py_ssize_t y)
