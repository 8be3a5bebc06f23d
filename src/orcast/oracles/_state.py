"""What the kernels of a round hand to each other: rules, memory and the pages of a round, as tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Columns of a member: smallest step, whether it has the context of the last PIT, prior observations.
STEP, CONTEXT, START = 0, 1, 2
# Cosines in a member's tilt.
BASIS = 8
# Accounts of losses, by how many outcomes are outstanding.
HORIZONS = 3
# Losses are discounted by this, a round.
LOSS_KEEP = 0.998

# Rows of a round's cells.
LEFT, RIGHT, PRIOR, EXPERT, PLAYED, TILT, MEMBERS = 0, 1, 2, 3, 4, 5, 6
# Places in a round's info.
CELLS, LAST_CONTEXT, PENDING, CRPS_SCALE, MSE_SCALE, HAS_EXPERT, TEMPERATURE = 0, 1, 2, 3, 4, 5, 6
INFO_SIZE = 7


class Rules(NamedTuple):
    """What does not change from round to round."""

    low: float
    high: float
    grid: Array  # levels of the inner edges
    scores: Array  # their normal scores
    tail_cells: int
    levels: Array
    orders: int
    weights: Array
    one_sided: int
    bound: float  # on the squared norm of the whole payoff
    temperature: float
    learners: Array
    members: Array
    basis: Array  # mean of each phi_j over each unmerged cell's share of the levels


class Memory(NamedTuple):
    """What is carried from round to round; its size is constant."""

    total: Array
    account: Array
    tally: Array
    location: Array
    location_cov: Array
    spread: Array
    fit: Array
    fit_cov: Array
    track_loss: Array
    shape: Array
    member_loss: Array
    warm: Array


class Round(NamedTuple):
    """What a forecast must remember until its outcome comes."""

    cells: Array
    slots: NDArray[np.int64]
    info: Array
    note: Array
    record: Array
    means: Array
    expert: Array
