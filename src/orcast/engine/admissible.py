"""What numbers a state may hold: each field of a memory or a round has a range, and some belong together.

Kernels trust their arrays, so what comes from a file is checked here, before it is played: what passes can be played on
without an exception.  The ranges are those of the numbers that play itself can lead to, with room to spare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import MAX_TILT
from orcast.engine.kernels.binary import COUNT, MOST_USED, USED, BinaryStatistic, RecordedOdds
from orcast.engine.kernels.finite_rounds import FiniteInfo, FiniteRival
from orcast.engine.kernels.records import (
    CELL_ROWS,
    LEARNER_SIZE,
    LONGEST_SEASON,
    CellRow,
    ExpertLoss,
    GroupColumn,
    LearnerRecord,
    RivalColumn,
    Round,
    RoundInfo,
    SeasonColumn,
    SpreadColumn,
    Statistic,
    TrackerRecord,
)
from orcast.ledger import Account, CertificateField, GroupAccount, Ledger

Array = NDArray[np.float64]


class Range(NamedTuple):
    """The least and the largest value of a field; nan may stand for what is missing."""

    low: float
    high: float
    missing: bool = False


# Outcomes and quantiles reach 1e110, their squares and sums more; the square of any number here must be finite.
ANY, POSITIVE = Range(-1e150, 1e150), Range(1e-150, 1e150)
COUNTED, MASS = Range(0.0, 1e150), Range(0.0, 1.0 + 1e-6)
SMALL, UNIT, FLAG, TILT = Range(-1e6, 1e6), Range(-1.0, 1.0), Range(0.0, 1.0), Range(-MAX_TILT, MAX_TILT)
SQUARES = Range(0.0, 1e250)
VALUES = Range(-1e120, 1e120)
# Rounding of masses that were added up, of matrices that learners keep, of budgets, and of counts.
MASS_ROUNDING, MATRIX_ROUNDING, BUDGET_ROUNDING, ROUNDING = 1e-6, 1e-6, 1e-6, 1e-9
BUDGET = int(GroupAccount.BUDGET)

Columns = Mapping[int, Range]
# What each field may hold; a field with several columns has a range for each, by number, ANY where none is named.
Table = Mapping[str, Range | Columns]

LEDGER: Table = {
    "total": ANY,
    "account": dict.fromkeys(map(int, Account), COUNTED),
    "groups": dict.fromkeys(map(int, GroupAccount), COUNTED),
}
CERTIFICATE: Columns = {
    **dict.fromkeys(map(int, CertificateField), COUNTED),
    CertificateField.WORST: ANY,
    CertificateField.HOLDS: FLAG,
}
ORDERED_MEMORY: Table = {
    **LEDGER,
    "statistics": {
        **dict.fromkeys(map(int, Statistic), VALUES),
        Statistic.SCORE_SIZE: Range(1e-4, 1e120),
        Statistic.OUTCOMES: COUNTED,
        Statistic.MEDIAN_VARIANCE: SQUARES,
        Statistic.LOG_SCALE_MEAN: SMALL,
        Statistic.DISTANCE_MEAN: SMALL,
        Statistic.LAST_PIT: MASS,
        Statistic.LOSS_SUM: COUNTED,
        Statistic.LOSS_COUNT: COUNTED,
        Statistic.OBSERVATIONS: COUNTED,
        Statistic.LEVEL_VARIANCE: SQUARES,
        Statistic.ROBUST_LOSS: COUNTED,
    },
    "location": VALUES,
    "location_cov": UNIT,
    "spread": {SpreadColumn.SLOW: Range(1e-120, 1e120), SpreadColumn.FAST: Range(0.0, 1e120)},
    "fit": VALUES,
    "fit_cov": UNIT,
    "seasons": {
        **dict.fromkeys((SeasonColumn.FIRST, SeasonColumn.SECOND), Range(-LONGEST_SEASON, LONGEST_SEASON)),
        SeasonColumn.NEXT: Range(0.0, LONGEST_SEASON - 1.0),
        SeasonColumn.COUNT: Range(0.0, 1e15),
    },
    "track_loss": COUNTED,
    "shape": VALUES,
    "member_loss": COUNTED,
    "warm": SMALL,  # only where a forecast was searched for is it cut to MAX_TILT
    "expert_loss": {ExpertLoss.BEHIND: ANY, ExpertLoss.SQUARES: COUNTED},
    "rivals": {
        **dict.fromkeys(map(int, RivalColumn), COUNTED),
        RivalColumn.CRPS_EXCESS: ANY,
        RivalColumn.MSE_EXCESS: Range(-1e250, 1e250),
    },
    "by_group": {GroupColumn.ROUNDS: COUNTED, GroupColumn.MEAN: SMALL, GroupColumn.VARIANCE: Range(0.0, 1e6)},
    "group_loss": ANY,
}
ORDERED_ROUND: Table = {
    "slots": COUNTED,
    "info": {
        **dict.fromkeys(map(int, RoundInfo), COUNTED),
        RoundInfo.LAST_CONTEXT: Range(-1.0 - 1e-6, 1.0 + 1e-6),
        RoundInfo.HAS_EXPERT: FLAG,
        RoundInfo.LOW: VALUES,
        RoundInfo.HIGH: VALUES,
        RoundInfo.REGULAR: FLAG,
        RoundInfo.GROUP_LOCATION: SMALL,
        RoundInfo.GROUP_SPREAD: Range(0.0, 1e6),
    },
    "certificate": CERTIFICATE,
    "tracker_record": VALUES,
    "means": SMALL,
    "experts": Range(*VALUES[:2], missing=True),
    "raw": VALUES,
    "rivals": MASS,
    "units": COUNTED,
    "context": SMALL,
    "expected": Range(-1e250, 1e250),
}
FINITE_STATE: Table = {
    **LEDGER,
    "scale": Range(-0.9, 3.0),
    "scale_sum": COUNTED,
    "shift": Range(-4.0, 4.0),
    "shift_sum": COUNTED,
    "loss": ANY,
    "pool": ANY,
    "warm": TILT,
    "theta": SMALL,
    "spread": SMALL,
    "learner_loss": COUNTED,
    "statistics": {
        **dict.fromkeys(map(int, BinaryStatistic), UNIT),
        BinaryStatistic.LAST_LOG_ODDS: SMALL,
        BinaryStatistic.OUTCOMES: COUNTED,
        BinaryStatistic.LOSS_SUM: COUNTED,
        BinaryStatistic.LOSS_COUNT: COUNTED,
    },
    "rivals": {**dict.fromkeys(map(int, FiniteRival), COUNTED), FiniteRival.EXCESS: ANY},
    "last": SMALL,
}
FINITE_ROUND: Table = {
    "info": {**dict.fromkeys(map(int, FiniteInfo), COUNTED), FiniteInfo.HAS_EXPERT: FLAG, FiniteInfo.ODDS: SMALL},
    "certificate": CERTIFICATE,
    "context": SMALL,
    "experts": Range(*MASS[:2], missing=True),
    "units": COUNTED,
    **dict.fromkeys(("pool", "base", "prior", "played", "members", "moved"), MASS),
    "odds": {**dict.fromkeys(map(int, RecordedOdds), SMALL), RecordedOdds.PROBABILITY: FLAG},
    "features": SMALL,
    "learners": SMALL,
}
AXES: Table = {
    "axes_location": SMALL,
    "axes_location_cov": Range(-1e3, 1.0),
    "axes_spread": Range(0.0, 1e6),
    "axes_last": Range(-6.0, 6.0),
    "axes_seen": COUNTED,
    "axes_loss": ANY,
}
DENSE_RECORD: Table = {
    "context": SMALL,
    "certificate": CERTIFICATE,
    "temperature": COUNTED,
    "claim": ANY,
}
# What parts of a payoff remember: a regret's losses and rounds.
PART_STATE: Table = {"loss": ANY, "count": COUNTED, "excess": Range(-1e250, 1e250), "rounds": COUNTED}


class Fields:
    """The fields of a state or a round, as templates, and what each of them may hold."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], table: Table) -> None:
        self._bounds = {name: self._range(array, table.get(name, ANY)) for name, array in arrays.items()}
        self._like = {name: (array.shape, array.dtype) for name, array in arrays.items()}

    @staticmethod
    def _range(array: NDArray[Any], given: Range | Columns) -> tuple[Any, Any, bool]:
        if isinstance(given, Range):
            return given
        each = [given.get(column, ANY) for column in range(array.shape[-1])]
        return np.array([part.low for part in each]), np.array([part.high for part in each]), False

    def checked(self, name: str, theirs: NDArray[Any]) -> NDArray[Any]:
        """An array of the shape and kind of ours whose numbers are in range, or a reason why not."""
        shape, dtype = self._like[name]
        if theirs.shape != shape or theirs.dtype != dtype:
            raise ValueError(f"{name} is {theirs.dtype} of shape {theirs.shape}, not {dtype} of shape {shape}")
        low, high, missing = self._bounds[name]
        fits = (theirs >= low) & (theirs <= high)
        if missing:
            fits |= np.isnan(theirs)
        if not fits.all():
            value = float(theirs[~fits][0])
            raise ValueError(f"{name} has {value!r} where a number of the right size belongs")
        return theirs

    def copy_into(self, mine: Mapping[str, NDArray[Any]], theirs: Mapping[str, NDArray[Any]]) -> None:
        """Take all fields over."""
        for name, array in mine.items():
            array[...] = self.checked(name, theirs[name])


class Accounts:
    """What a ledger of this layout may hold."""

    def __init__(self, ledger: Ledger) -> None:
        parts = ledger.layout.parts
        self._starts = np.array(
            [start + group * size for start, size, groups, *_ in parts.tolist() for group in range(groups)],
            dtype=np.intp,
        )

    def check(self, ledger: Ledger) -> None:
        """Refuse accounts that no play leads to: budgets cover what is owed, and rounds are counted."""
        budget, rounds, held, *_, weight = ledger.account.tolist()
        if not (rounds == math.floor(rounds) and held <= rounds and weight <= rounds * (1.0 + ROUNDING)):
            raise ValueError("the rounds of the account are not counted right")
        if not self._starts.size:
            return
        owed = np.where((ledger.layout.sides == 0.0) | (ledger.total > 0.0), ledger.total, 0.0)
        squares = np.add.reduceat(owed * owed, self._starts)
        if not float(squares.sum()) <= budget * (1.0 + BUDGET_ROUNDING) + ROUNDING:
            raise ValueError("the account owes more than its budget")
        if not (squares <= ledger.groups[:, BUDGET] * (1.0 + BUDGET_ROUNDING) + ROUNDING).all():
            raise ValueError("a group owes more than its budget")


def check_certificate(certificate: Array, ledger: Ledger) -> None:
    """Refuse a certificate from a time that has not come."""
    account = ledger.account
    rounds, roots = certificate[CertificateField.ROUNDS_THEN], certificate[CertificateField.ROOTS_THEN]
    if rounds > account[Account.ROUNDS] or roots > account[Account.ROOTS] * (1.0 + ROUNDING):
        raise ValueError("a pending round was issued after the last one")


def check_matrices(name: str, matrices: Array) -> None:
    """Refuse matrices that are not symmetric and positive semidefinite but for rounding: learners divide by them."""
    if not matrices.size:
        return
    flipped = np.swapaxes(matrices, -1, -2)
    size = np.abs(matrices).max(axis=(-2, -1), keepdims=True) + 1e-300
    if (np.abs(matrices - flipped) > ROUNDING * size).any():
        raise ValueError(f"{name} is not symmetric")
    try:
        np.linalg.cholesky(matrices / size + MATRIX_ROUNDING * np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} is not positive definite") from None


def check_masses(name: str, masses: Array) -> None:
    """Refuse masses that do not add up to one."""
    if not abs(float(masses.sum()) - 1.0) <= MASS_ROUNDING:
        raise ValueError(f"{name} does not add up to 1")


def check_binary_matrices(spread: Array) -> None:
    """The same for the learners of binary outcomes, whose matrices of several sizes lie in a row."""
    padded = np.tile(np.eye(MOST_USED), (COUNT, 1, 1))
    padded[_BINARY_PLACES] = spread
    check_matrices("spread", padded)


def _binary_places() -> NDArray[np.bool_]:
    """Where the numbers of the learners' matrices lie in matrices of one size."""
    side = np.arange(MOST_USED) < USED[:, None]
    return np.asarray(side[:, :, None] & side[:, None, :])


_BINARY_PLACES = _binary_places()


def round_table(members: int, capacity: int) -> tuple[Array, Array]:
    """The least and largest numbers of a round's cells, a row each."""
    rows = [VALUES] * 2 + [MASS] * 3 + [SMALL] + [MASS] * (1 + members)
    low, high = (np.repeat([[part[i]] for part in rows], capacity, axis=1) for i in (0, 1))
    return low, high


def check_round(round: Round, capacity: int, learners: int) -> None:
    """Refuse a pending round on an ordered space whose parts do not belong together."""
    info, cells = round.info, round.cells
    n = info[RoundInfo.CELLS]
    if not (n == np.floor(n) and 1 <= n <= capacity and ((round.slots >= 0) & (round.slots < n)).all()):
        raise ValueError(f"a pending round has {n} cells")
    n = int(n)
    low, high = round_table(len(cells) - CELL_ROWS, capacity)
    if not ((cells >= low) & (cells <= high)).all():
        raise ValueError("a pending round has cells of the wrong size")
    left, right = cells[CellRow.LEFT, :n], cells[CellRow.RIGHT, :n]
    if not ((left <= right).all() and (right[:-1] <= left[1:]).all() and info[RoundInfo.LOW] <= info[RoundInfo.HIGH]):
        raise ValueError("the cells of a pending round are not in order")
    check_masses("a pending forecast", cells[CellRow.PLAYED, :n])
    experts = round.experts[~np.isnan(round.experts[:, 0])]
    if not (np.diff(experts, axis=1) >= 0.0).all():
        raise ValueError("an expert of a pending round has quantiles that are not in order")
    if info[RoundInfo.HAS_EXPERT] > 0.0:
        check_masses("the expert of a pending round", cells[CellRow.EXPERT, :n])
        check_masses("the prior of a pending round", cells[CellRow.PRIOR, :n])
        if not len(experts):
            raise ValueError("a pending round has no expert")
        if learners:
            record = round.tracker_record
            spreads = record[TrackerRecord.LEARNERS + LearnerRecord.SPREAD :: LEARNER_SIZE]
            sizes = record[[TrackerRecord.SCALE, TrackerRecord.SLOPE_LOW, TrackerRecord.SLOPE_HIGH]]
            if not (min(spreads.min(), sizes.min(), record[TrackerRecord.SCORE_SIZE]) >= 1e-150):
                raise ValueError("a pending round has no spread")


def check_axes(cov: Array) -> None:
    """Refuse what the learners of an axis would divide by, for the last error that they may meet."""
    for last in (-6.0, 0.0, 6.0):
        x = np.array([1.0, last])
        if not (np.einsum("i,...ij,j->...", x, cov, x) >= -0.9).all():
            raise ValueError("axes_location_cov is not positive definite")
