cimport cython
from libc.math cimport exp, isnan, log
from orcast.kernels.delays cimport delay_odds, delayed
from orcast.kernels.finite_state cimport FiniteMember, FiniteRound, FiniteRules, FiniteState, finite_member_at
from orcast.kernels.rows cimport cut, numbers_of, readable_of

cdef double LOG_LOSS_RATE, LOSS_DISCOUNT, MOST_LOG_BEHIND, MOST_LOG_LOSS, FLOOR, LOW_SCALE, HIGH_SCALE, MAX_SHIFT, EVEN
cdef double INF

cdef void pool_masses(FiniteRules rules, double *losses, double *experts, double *pool) noexcept nogil
cdef void learn_pool(
    FiniteRules rules, double *losses, double *experts, double *pool, double weight, double discount, Py_ssize_t k
) noexcept nogil
cdef void mix_members(
    FiniteRules rules, FiniteState state, double *base, double pending, double *masses, double *mix
) noexcept nogil
cdef double loss_of(double mass) noexcept nogil
cdef void teach_members(
    FiniteRules rules, FiniteState state, double *base, double *masses, double weight, Py_ssize_t k
) noexcept nogil

@cython.locals(rules=FiniteRules)
cpdef object pooled(FiniteState state, object experts)
cpdef object pool_round(FiniteState state, FiniteRound round)
cpdef object mix_round(FiniteState state, double pending, FiniteRound round)
cpdef object teach_round(FiniteState state, FiniteRound round, double weight, double discount, Py_ssize_t k)
