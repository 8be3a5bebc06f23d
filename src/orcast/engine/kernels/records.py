"""What the kernels of a round hand to each other: rules, memory and the pages of a round, as tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.ledger import LedgerLayout

Array = NDArray[np.float64]

# Columns of a member: smallest step, whether it has the context of the last PIT, prior observations.
STEP, CONTEXT, START = 0, 1, 2
# Cosines in a member's tilt.
BASIS = 8
# Accounts of losses, by how many outcomes are outstanding.
HORIZONS = 3
# Losses are discounted by this, a round.
LOSS_DISCOUNT = 0.998

# Rows of a round's cells.
LEFT, RIGHT, PRIOR, EXPERT, PLAYED, TILT, MEMBERS = 0, 1, 2, 3, 4, 5, 6
# Places in a round's info; LOW and HIGH are the ends of the window to which outcomes are clipped, REGULAR says that no
# cells were merged or cut.
CELLS, LAST_CONTEXT, PENDING, HAS_EXPERT, TEMPERATURE, LOW, HIGH, REGULAR = 0, 1, 2, 3, 4, 5, 6, 7
# What the groups of the round asked for, location and spread; the smallest slope of the expert's quantiles.
WORD, SMALLEST = 8, 10
INFO_SIZE = 11
# Rows of a round's units.
CRPS, MSE = 0, 1
# Columns of what is remembered of a rival: discounted CRPS and squared error and their count, and the sums of the
# scores of what was played minus the rival's, over so many rounds.
LOSS, SQUARE, COUNT, CRPS_EXCESS, MSE_EXCESS, SEEN = 0, 1, 2, 3, 4, 5
RIVAL_SIZE = 6
# Rows of a table of witnesses: mean, least and largest value in each cell.
MEAN, LEAST, LARGEST = 0, 1, 2


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
    learners: Array
    members: Array
    basis: Array  # mean of each phi_j over each unmerged cell's share of the levels


class Memory(NamedTuple):
    """What is carried from round to round; its size is constant."""

    total: Array
    account: Array
    groups: Array
    statistics: Array
    location: Array
    location_cov: Array
    spread: Array
    fit: Array
    fit_cov: Array
    track_loss: Array
    shape: Array
    member_loss: Array
    warm: Array
    pool: Array  # discounted loss of each expert
    rivals: Array
    by_group: Array
    group_loss: Array  # of the expert, and as corrected for its groups


class Round(NamedTuple):
    """What a forecast must remember until its outcome comes."""

    cells: Array
    slots: NDArray[np.int64]
    info: Array
    certificate: Array
    tracker_record: Array
    means: Array
    experts: Array  # quantiles of the pool of experts, then of each if there are several; nan where missing
    raw: Array  # quantiles of the pool before the correction for groups
    rivals: Array  # masses of each expert
    units: Array  # of the regrets, by score and rival
    context: Array
    expected: Array  # of each witness, under what is played
