cimport cython
from orcast.kernels.rows cimport cut, numbers_of
from orcast.kernels.state cimport HORIZONS, Account, Certificate, GroupAccount, Layout, as_account, as_certificate
from orcast.kernels.state cimport as_group_accounts

cdef Py_ssize_t LEARNERS, FIRST_STAGE, MOST_USED, COEFFICIENTS, COVARIANCES, LOSSES, FEATURES, HATS
cdef Py_ssize_t FINITE_INFO_SIZE, CERTIFICATE_SIZE, ODDS_SIZE

cdef struct FiniteInfo:
    double pending, temperature, has_expert, odds
cdef struct FiniteRival:
    double brier, count, excess, rounds
cdef struct FiniteMember:
    double discount, shifts, start
cdef struct BinaryStatistics:
    double last_error, fast_error, slow_error, last_outcome, outcome_mean, last_log_odds, before_last_outcome, outcomes
    double loss_sum, loss_count
cdef struct BinaryOdds:
    double probability, expert, first_stage, prior
cdef struct BinaryFeatures:
    double one, log_odds, skew, error, fast, slow, outcome, mean, change, before

cdef inline FiniteInfo *as_finite_info(double *row) noexcept nogil:
    return <FiniteInfo *> row
cdef inline FiniteRival *as_finite_rivals(double *row) noexcept nogil:
    return <FiniteRival *> row
cdef inline FiniteRival *finite_rival_at(FiniteRival *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline FiniteMember *as_finite_members(double *row) noexcept nogil:
    return <FiniteMember *> row
cdef inline FiniteMember *finite_member_at(FiniteMember *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline BinaryStatistics *as_binary_statistics(double *row) noexcept nogil:
    return <BinaryStatistics *> row
cdef inline BinaryOdds *as_binary_odds(double *row) noexcept nogil:
    return <BinaryOdds *> row
cdef inline BinaryFeatures *as_binary_features(double *row) noexcept nogil:
    return <BinaryFeatures *> row

cdef class FiniteRules:
    cdef readonly Layout layout
    cdef readonly dict options, state_places, round_places
    cdef readonly object row
    cdef FiniteMember *members
    cdef readonly Py_ssize_t cells, events, hats, expert_hats, bias, regret, rivals, groups, learns, logistic, moved
    cdef readonly Py_ssize_t first, member_count, payoff_size, state_size, round_size
    cdef readonly double brier, bound, discount, temperature

cdef class FiniteState:
    cdef readonly FiniteRules rules
    cdef readonly object row
    cdef double *numbers
    cdef double *total
    cdef Account *account
    cdef GroupAccount *groups
    cdef double *pool
    cdef FiniteRival *rivals
    cdef double *last
    cdef double *warm
    cdef double *theta
    cdef double *spread
    cdef double *learner_loss
    cdef BinaryStatistics *statistics
    cdef double *scale
    cdef double *scale_sum
    cdef double *shift
    cdef double *shift_sum
    cdef double *loss

cdef class FiniteRound:
    cdef readonly FiniteRules rules
    cdef readonly object row
    cdef double *numbers
    cdef FiniteInfo *info
    cdef Certificate *certificate
    cdef double *context
    cdef double *experts
    cdef double *units
    cdef double *pool
    cdef double *base
    cdef double *prior
    cdef double *played
    cdef BinaryOdds *odds
    cdef double *learner_features
    cdef BinaryFeatures *named
    cdef double *learners
    cdef double *members
    cdef double *moved
    @cython.locals(at=Py_ssize_t, row="double *")
    cdef object attach(self)
    cpdef FiniteRound copied(self)
    cpdef double overdraft(self)
    cpdef bint holds(self)
    cpdef double probability(self, Py_ssize_t k)

cpdef FiniteRound restored_finite_round(FiniteRules rules, object row)

cdef class FiniteGame:
    cdef Py_ssize_t cells, first, events, vertices, rivals
    cdef double *owed
    cdef double *fixed
    cdef double *fixed_size
    cdef double *owed_regret
    cdef double *experts
    cdef double *units
    cdef double *prior
    cdef double hat_factor, regret_factor, brier, odds

cpdef FiniteGame finite_game()
