from libc.math cimport exp, isnan, log, sqrt
from orcast.committee.regression cimport solve_positive
from orcast.kernels.finite_state cimport (
    FEATURES, FiniteRound, FiniteRules, FiniteState, as_cell_features, finite_member_at
)
from orcast.kernels.rows cimport (
    Row, Workspace, copy, cut, mark, numbers_of, readable_of, release, take, whole_number, workspace
)

cdef double PRIOR_EXPERTS, DISCOUNT, FASTEST, MOST_REGRET, LEAST_LOG_PRIOR, SHIFT_RIDGE, FLOOR, LEAST_SCORE, EVEN
cdef double MOST_BEHIND, LEAST_PRIOR, TINY, MEAN_RATE, ERROR_RATE, INF
cdef Row RIDGE

cdef void observe(FiniteRules, FiniteState, Py_ssize_t, Row, Row) noexcept nogil
cdef void member_masses(FiniteRules, FiniteState, Py_ssize_t, Row, Row) noexcept nogil
cdef double prior_weight(FiniteRules, Py_ssize_t) noexcept nogil
cdef double learning_rate(double, double) noexcept nogil
cdef void weigh(FiniteRules, FiniteState, Row, Row) noexcept nogil
cdef void pool_masses(FiniteRules, Row, Row, Row) noexcept nogil
cdef void committee(FiniteRules, FiniteState, FiniteRound, Workspace) noexcept nogil
cdef void newton(Py_ssize_t, Row, Row, Workspace) noexcept nogil
cdef void step(FiniteRules, FiniteState, Py_ssize_t, Row, double, Py_ssize_t, Workspace) noexcept nogil
cdef void update_members(FiniteRules, FiniteState, FiniteRound, Py_ssize_t, Workspace) noexcept nogil

cpdef object start(FiniteState)
cpdef object pooled(FiniteState, object)
cpdef object committee_round(FiniteState, FiniteRound)
cpdef object teach_round(FiniteState, FiniteRound, Py_ssize_t)
