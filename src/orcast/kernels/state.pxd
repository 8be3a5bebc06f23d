cimport cython
from orcast.kernels.rows cimport cut, cut_whole, int64_t, numbers_of, whole_of

cdef enum:  # known to the C compiler, which unrolls loops by them
    BASIS = 8
    HORIZONS = 3
    LOCATION_FEATURES = 9
    SPREAD_FEATURES = 5
    CELL_ROWS = 7
cdef Py_ssize_t LONGEST_SEASON
cdef Py_ssize_t POOL_COUNT, POOL_EVIDENCE, POOL_EXCESS, POOL_SUMS
cdef Py_ssize_t INFO_SIZE, CERTIFICATE_SIZE, RECORD_SIZE, LEARNER_SIZE, ROUND_LOG_SIZE

cdef struct Account:
    double budget, rounds, held, excess, roots, delay, weight
cdef struct GroupAccount:
    double budget, count, excess
cdef struct Certificate:
    double worst, overdraft, bound, allowed, holds, root, roots_then, rounds_then, promised, excess
cdef struct Counts:
    double spread, weight, without
cdef struct Info:
    double cells, last_context, pending, has_expert, temperature, low, high, regular, group_location, group_spread
    double smallest_slope, coin
cdef struct Rival:
    double crps, squared_error, count, crps_excess, mse_excess, rounds
cdef struct ExpertLoss:
    double behind, squares
cdef struct Statistics:
    double score_size, error_1, error_2, error_3, last_outcome, outcomes, median_mean, median_variance
    double log_scale_mean, distance_mean, last_pit, loss_sum, loss_count, observations, last_error, level_mean
    double level_variance, robust_loss, farthest_error, squares, last_median, move_mean, outcome_2, outcome_3
cdef struct LearnerOptions:
    double features, discount, trusting
cdef struct TrackerOptions:
    double step, leak, share
cdef struct MemberOptions:
    double step, context, start
cdef struct TrackerUnit:
    double loss, count
cdef struct Evidence:
    double gain, square, block, count
cdef struct Seasons:
    double first, second, next, count
cdef struct Spread:
    double slow, fast
cdef struct GroupStatistics:
    double rounds, mean, variance
cdef struct GroupLoss:
    double expert, corrected
cdef struct TrackerRecord:
    double one, error_1, error_2, error_3, last_outcome, outcome_2, outcome_3, season_1, season_2, scale, slope_low
    double slope_high, score_size, median, usual_move
cdef struct LearnerRecord:
    double location, spread, one, fast, level, scale, distance
cdef struct Counters:
    double issued, lag, reserved, error_sum, error_count
cdef struct RoundLog:
    double holds, promised, miscalibration, mean, sd, excess
cdef struct Part:
    int64_t start, size, groups, places, context, one_sided

cdef inline Account *as_account(double *row) noexcept nogil:
    return <Account *> row
cdef inline GroupAccount *as_group_accounts(double *row) noexcept nogil:
    return <GroupAccount *> row
cdef inline GroupAccount *group_account_at(GroupAccount *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline Certificate *as_certificate(double *row) noexcept nogil:
    return <Certificate *> row
cdef inline Counts *as_counts(double *row) noexcept nogil:
    return <Counts *> row
cdef inline Info *as_info(double *row) noexcept nogil:
    return <Info *> row
cdef inline Rival *as_rivals(double *row) noexcept nogil:
    return <Rival *> row
cdef inline Rival *rival_at(Rival *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline ExpertLoss *as_expert_losses(double *row) noexcept nogil:
    return <ExpertLoss *> row
cdef inline ExpertLoss *expert_loss_at(ExpertLoss *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline Statistics *as_statistics(double *row) noexcept nogil:
    return <Statistics *> row
cdef inline LearnerOptions *as_learner_options(double *row) noexcept nogil:
    return <LearnerOptions *> row
cdef inline TrackerOptions *as_tracker_options(double *row) noexcept nogil:
    return <TrackerOptions *> row
cdef inline MemberOptions *as_member_options(double *row) noexcept nogil:
    return <MemberOptions *> row
cdef inline TrackerUnit *as_tracker_unit(double *row) noexcept nogil:
    return <TrackerUnit *> row
cdef inline Evidence *as_evidence(double *row) noexcept nogil:
    return <Evidence *> row
cdef inline Evidence *evidence_at(Evidence *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline Seasons *as_seasons(double *row) noexcept nogil:
    return <Seasons *> row
cdef inline Spread *as_spreads(double *row) noexcept nogil:
    return <Spread *> row
cdef inline Spread *spread_at(Spread *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline GroupStatistics *as_group_statistics(double *row) noexcept nogil:
    return <GroupStatistics *> row
cdef inline GroupStatistics *group_statistics_at(GroupStatistics *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline GroupLoss *as_group_loss(double *row) noexcept nogil:
    return <GroupLoss *> row
cdef inline TrackerRecord *as_record(double *row) noexcept nogil:
    return <TrackerRecord *> row
cdef inline LearnerRecord *as_learner_records(double *row) noexcept nogil:
    return <LearnerRecord *> row
cdef inline LearnerRecord *learner_record_at(LearnerRecord *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline Counters *as_counters(double *row) noexcept nogil:
    return <Counters *> row
cdef inline RoundLog *as_log(double *row) noexcept nogil:
    return <RoundLog *> row
cdef inline Part *as_parts(int64_t *row) noexcept nogil:
    return <Part *> row
cdef inline Part *part_at(Part *items, Py_ssize_t i) noexcept nogil:
    return items + i

cdef class Layout:
    cdef readonly object part_table, place_list, scales, bound_list, side_list, whole, row
    cdef readonly Py_ssize_t count, size, groups
    cdef readonly double general
    cdef Part *parts
    cdef int64_t *places
    cdef double *scale
    cdef double *bounds
    cdef double *sides

cdef class Rules:
    cdef readonly Layout layout
    cdef readonly dict options, memory_places, round_places
    cdef readonly object row, whole
    cdef double *grid
    cdef double *scores
    cdef double *jumps
    cdef double *levels
    cdef LearnerOptions *learners
    cdef TrackerOptions *trackers
    cdef MemberOptions *members
    cdef double *basis
    cdef int64_t *intervals
    cdef readonly Py_ssize_t grid_count, jump_count, level_count, learner_count, tracker_count, member_count, interval_count
    cdef readonly Py_ssize_t cells, tail_cells, experts, groups, group_at, group_count, orders, witnesses, crps, mse, pooled, effort
    cdef readonly Py_ssize_t capacity, rival_rows, payoff_size, memory_size, round_size, certificate_at
    cdef readonly double low, high, bound, discount, temperature

cdef class Memory:
    cdef readonly Rules rules
    cdef readonly object row
    cdef double *total
    cdef Account *account
    cdef GroupAccount *groups
    cdef double *counted
    cdef Counts *counts
    cdef Statistics *statistics
    cdef double *location
    cdef double *location_cov
    cdef Spread *spread
    cdef double *fit
    cdef double *fit_cov
    cdef double *surprises
    cdef double *autocorrelation
    cdef Seasons *seasons
    cdef double *offsets
    cdef double *pool_seen
    cdef TrackerUnit *tracker_unit
    cdef double *track_loss
    cdef Evidence *track_evidence
    cdef double *level_offsets
    cdef Evidence *level_evidence
    cdef double *level_ledger
    cdef double *expert_ledger
    cdef double *shape
    cdef double *member_loss
    cdef Evidence *member_evidence
    cdef double *warm
    cdef ExpertLoss *expert_loss
    cdef Rival *rivals
    cdef GroupStatistics *by_group
    cdef GroupLoss *group_loss
    cdef double *numbers

cdef class Round:
    cdef readonly Rules rules
    cdef readonly object row, whole
    cdef public object features, cell_payoffs
    cdef int64_t *slots
    cdef double *numbers
    cdef double *left
    cdef double *right
    cdef double *prior
    cdef double *expert
    cdef double *played
    cdef double *tilt
    cdef double *learnt
    cdef double *members
    cdef Info *info
    cdef Certificate *certificate
    cdef double *location_features
    cdef TrackerRecord *record
    cdef double *learner_rows
    cdef LearnerRecord *learners
    cdef double *tracked
    cdef double *means
    cdef double *experts
    cdef double *raw
    cdef double *rivals
    cdef double *crps_units
    cdef double *mse_units
    cdef double *context
    cdef double *expected
    cpdef Round copied(self)
    cpdef double overdraft(self)
    cpdef bint holds(self)
    cpdef Py_ssize_t count(self)
    cpdef double coin(self)
    cpdef object set_coin(self, double coin)

cpdef Round restored_round(Rules rules, object row, object whole)
cdef void attach(Rules rules, Round round, double *row, int64_t *slots) noexcept nogil
