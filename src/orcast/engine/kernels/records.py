"""What the kernels of a round hand to each other: rules, memory and rounds, as tuples of arrays, and their columns."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.ledger import LedgerLayout

Array = NDArray[np.float64]

# Cosines in a member's tilt.
BASIS = 8
# Accounts of losses, by how many outcomes are outstanding.
HORIZONS = 3
# The longest season that is looked for, in outcomes.
LONGEST_SEASON = 368


class LearnerColumn(IntEnum):
    """What a learner of location and spread is made of."""

    FEATURES = 0  # location features used
    DISCOUNT = 1  # memory of its slow spread
    TRUSTING = 2  # 1: where the expert moves further than usual, the last errors do not count


class MemberColumn(IntEnum):
    """What a member of the committee is made of."""

    STEP = 0  # its smallest step
    CONTEXT = 1  # whether it has the context of the last PIT
    START = 2  # prior observations


class QuantileTrackerColumn(IntEnum):
    """What a quantile tracker is made of."""

    STEP = 0  # in units of the expert's usual loss
    LEAK = 1  # what it lets go of in a step
    SHARE = 2  # of the pool in its steps


class TrackerUnit(IntEnum):
    """The unit of the offsets of a stream's quantile trackers: the expert's usual loss."""

    LOSS = 0  # discounted sum of twice the mean pinball loss
    COUNT = 1


class PoolColumn(IntEnum):
    """What a stream hears of its pool: a row of numbers that grows with each outcome of any stream."""

    COUNT = 0  # outcomes so far
    EVIDENCE = 1  # how far the pooled trackers are ahead of the experts, in standard errors
    BEYOND_CHANCE = 2  # the experts' own miscalibration over what chance makes of it, in the mean over the streams
    # Of the gradients of each pooled tracker, by level; then their mean offsets, in units of the usual loss; last, by
    # how much the outcomes' squared normal scores exceed those of the experts.
    SUMS = 3


class PoolSpread(IntEnum):
    """What the streams of a pool know of their experts' spreads, added up (`kernels.spread`)."""

    STREAMS = 0
    OUTCOMES = 1
    CHANCE = 2  # outcomes that chance would need for such blocks
    EXCESS = 3  # of the squared normal scores
    ERRORS = 4  # the same in standard errors
    SQUARES = 5  # of these


class Evidence(IntEnum):
    """How far what was learnt is ahead of what it has to beat, in outcomes that were really new."""

    GAIN = 0  # sum of the differences of losses
    SQUARE = 1  # of their sums over blocks of outcomes, each as long as outcomes are outstanding
    BLOCK = 2  # the sum over the block that is not over
    COUNT = 3  # its outcomes


class SeasonColumn(IntEnum):
    """What is known of the seasons of the errors."""

    FIRST = 0  # its lag in outcomes, with a minus if it is presumed and not found; 0: none
    SECOND = 1
    NEXT = 2  # where the next surprise goes in the ring
    COUNT = 3  # surprises so far


class LedgerRow(IntEnum):
    """Sums of a forecast's pinball gradients, by level; the last column is of all levels."""

    SUMS = 0  # and the sum of the squares of block sums
    BLOCK = 1  # the sums over the block that is not over, and its outcomes


class CellRow(IntEnum):
    """Rows of a round's cells."""

    LEFT = 0
    RIGHT = 1
    PRIOR = 2  # masses of the corrected expert
    EXPERT = 3
    PLAYED = 4
    TILT = 5  # log(played / prior of the last layer)
    LEARNT = 6  # the mix of the members
    MEMBERS = 7  # the first member


class RoundInfo(IntEnum):
    """Numbers of a round."""

    CELLS = 0
    LAST_CONTEXT = 1  # 2 u - 1 for the last PIT u
    PENDING = 2  # outcomes outstanding when the forecast was made
    HAS_EXPERT = 3
    TEMPERATURE = 4
    LOW = 5  # ends of the window to which outcomes are clipped
    HIGH = 6
    REGULAR = 7  # 1 if no cells were merged or cut
    GROUP_LOCATION = 8  # the correction that the groups of the round ask for
    GROUP_SPREAD = 9
    SMALLEST_SLOPE = 10  # of the expert's quantiles
    COIN = 11  # between 0 and 1, where quantiles are randomised; else 0


class RegretScore(IntEnum):
    """Rows of the units of the regrets."""

    CRPS = 0
    MSE = 1


class RivalColumn(IntEnum):
    """What is remembered of an expert as a rival."""

    CRPS = 0  # discounted sum
    SQUARED_ERROR = 1  # the same, in units of the window
    COUNT = 2  # of these
    CRPS_EXCESS = 3  # sum of the scores of what was played minus the rival's
    MSE_EXCESS = 4
    ROUNDS = 5  # in these


class ExpertLoss(IntEnum):
    """What is remembered of an expert at a level, for its weight in the pool there."""

    BEHIND = 0  # discounted sum of its pinball loss minus the pool's, in units of the pool's usual loss
    SQUARES = 1  # and of their squares


class WitnessRow(IntEnum):
    """Values of a witness in a cell."""

    MEAN = 0
    LEAST = 1
    LARGEST = 2


class GroupColumn(IntEnum):
    """What is learnt of a group."""

    ROUNDS = 0
    MEAN = 1  # of the normal scores
    VARIANCE = 2


class GroupLoss(IntEnum):
    """Whose losses decide how much of the correction for groups is used."""

    EXPERT = 0
    CORRECTED = 1


class SpreadColumn(IntEnum):
    """Means of |score - location| that a learner keeps."""

    SLOW = 0
    FAST = 1


class ShapeRow(IntEnum):
    """Coefficients of a member's tilt."""

    CONSTANT = 0
    LAST_PIT = 1  # times the context of the last PIT


class Statistic(IntEnum):
    """Running statistics of a game on an ordered space."""

    SCORE_SIZE = 0  # running size of the expert's scores
    ERROR_1 = 1  # outcome minus median of the last three settled rounds, the last first
    ERROR_2 = 2
    ERROR_3 = 3
    LAST_OUTCOME = 4
    OUTCOMES = 5  # settled
    MEDIAN_MEAN = 6
    MEDIAN_VARIANCE = 7
    LOG_SCALE_MEAN = 8
    DISTANCE_MEAN = 9
    LAST_PIT = 10  # of the corrected expert
    LOSS_SUM = 11  # discounted CRPS of the expert, or of the pool of experts
    LOSS_COUNT = 12
    OBSERVATIONS = 13  # outcomes, each weighed for its delay
    LAST_ERROR = 14  # outcome minus the median that was played
    LEVEL_MEAN = 15  # of the outcomes, where there is no expert
    LEVEL_VARIANCE = 16
    ROBUST_LOSS = 17  # the usual loss of the expert, in which no single outcome counts much: for the window
    FARTHEST_ERROR = 18  # of the recent ones
    SQUARES = 19  # sum of the squared sizes of the settled payoffs: what chance makes of the ledger's square
    LAST_MEDIAN = 20  # of the expert
    MOVE_MEAN = 21  # how far it usually moves from outcome to outcome
    OUTCOME_2 = 22  # the outcomes before the last
    OUTCOME_3 = 23


class TrackerRecord(IntEnum):
    """What the tracker records of a round: the location features first, what each learner said last."""

    ONE = 0
    ERROR_1 = 1  # scores of the last errors, over their usual size
    ERROR_2 = 2
    ERROR_3 = 3
    LAST_OUTCOME = 4  # score of the last outcome, over the usual size
    OUTCOME_2 = 5  # of those before it
    OUTCOME_3 = 6
    SEASON_1 = 7  # what was surprising a season ago, for the two seasons that were found
    SEASON_2 = 8
    SCALE = 9  # half the distance of the expert's quantiles at the scores -1 and 1
    SLOPE_LOW = 10
    SLOPE_HIGH = 11
    SCORE_SIZE = 12  # when the forecast was made
    MEDIAN = 13
    USUAL_MOVE = 14  # 1 unless the expert moved further than it usually does; then less
    LEARNERS = 15  # the first learner's part


class LearnerRecord(IntEnum):
    """A learner's part in it: its location and spread, then the features of its spread."""

    LOCATION = 0
    SPREAD = 1
    ONE = 2
    FAST = 3  # log of the fast mean of |score - location| over the slow one
    LEVEL = 4  # of the median
    SCALE = 5  # of the expert's own spread
    DISTANCE = 6  # of the last outcome


RIVAL_SIZE, GROUP_COLUMNS, STATISTICS_SIZE = len(RivalColumn), len(GroupColumn), len(Statistic)
EXPERT_LOSSES = len(ExpertLoss)
INFO_SIZE, CELL_ROWS, LEARNER_SIZE = len(RoundInfo), int(CellRow.MEMBERS), len(LearnerRecord)
LOCATION_FEATURES, SPREAD_FEATURES = int(TrackerRecord.SCALE), LEARNER_SIZE - int(LearnerRecord.ONE)
EVIDENCE_SIZE, TRACKER_UNIT_SIZE, SEASON_SIZE = len(Evidence), len(TrackerUnit), len(SeasonColumn)


class Rules(NamedTuple):
    """What does not change from round to round.

    The core of the payoff is, in this order: a coordinate a level, an interval, a witness (powers first), a rival's
    CRPS, a rival's squared error.
    """

    low: float
    high: float
    grid: Array  # levels of the inner edges
    scores: Array  # their normal scores
    cells: int
    tail_cells: int
    experts: int
    groups: int  # of all parts together
    group_at: int  # where in the context the groups begin that the learners look at
    group_count: int  # how many; 0 if there are none
    jumps: Array  # places that must be edges of cells
    levels: Array
    intervals: NDArray[np.int64]  # the two levels of each
    orders: int  # powers among the witnesses
    witnesses: int
    crps: int  # 1 if there is a regret in CRPS
    mse: int
    layout: LedgerLayout
    bound: float  # on the squared norm of the whole payoff
    discount: float  # what is kept of the ledger from round to round
    temperature: float
    effort: int  # passes of a search for a forecast that holds, on each grid
    learners: Array  # a LearnerColumn each
    quantile_trackers: Array  # a QuantileTrackerColumn each, those that share in a pool first
    pooled: int  # how many share in a pool
    members: Array  # a MemberColumn each
    basis: Array  # mean of each phi_j over each unmerged cell's share of the levels


class Memory(NamedTuple):
    """What is carried from round to round; its size is constant (see packing.memory_shapes)."""

    total: Array
    account: Array
    groups: Array
    counted: Array  # sums of hard indicators by level, then a CountColumn each
    statistics: Array  # a Statistic each
    location: Array
    location_cov: Array
    spread: Array
    fit: Array
    fit_cov: Array
    surprises: Array  # the last ones, in a ring
    autocorrelation: Array  # sums of their products, by lag; the first is of the squares
    seasons: Array  # a SeasonColumn each
    offsets: Array  # of the quantile trackers, by level
    pool_seen: Array  # count and sums of the pool at the last outcome
    tracker_unit: Array
    track_loss: Array  # of the learners and the quantile trackers, by how many outcomes are outstanding
    track_evidence: Array  # of the two together against the expert; an Evidence each
    level_offsets: Array  # of the corrected expert, in units of its spread
    level_evidence: Array  # of these offsets
    level_ledger: Array  # of the corrected expert without them
    expert_ledger: Array  # sums of the expert's own gradients, by level, and of their squares
    shape: Array
    member_loss: Array
    member_evidence: Array  # of the members together against the corrected expert
    warm: Array
    expert_loss: Array  # an ExpertLoss for each expert and level, where there are several experts
    rivals: Array
    by_group: Array
    group_loss: Array


class Round(NamedTuple):
    """What a forecast must remember until its outcome comes (see packing.round_shapes)."""

    slots: NDArray[np.int64]  # in which cell each unmerged cell ended up
    cells: Array
    info: Array
    certificate: Array
    tracker_record: Array
    tracked: (
        Array  # quantiles of each quantile tracker, of all that was learnt together, of the corrected expert before
    )
    # and after its offsets
    means: Array
    experts: Array  # quantiles of the pool of experts, then of each if there are several; nan where missing
    raw: Array  # quantiles of the pool before the correction for groups
    rivals: Array  # masses of each expert
    units: Array  # of the regrets, by score and rival
    context: Array
    expected: Array  # of each witness, under what is played


class Outcome(NamedTuple):
    """What learners learn from: an outcome, and how much it counts."""

    value: float
    clipped: float  # to the round's window: no single outcome may decide the weights for good
    weight: float  # 1 / sqrt(1 + outcomes outstanding): errors of one batch are seldom independent
    unit: float  # the expert's usual loss
