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

from orcast.committee import state as committee
from orcast.constants import LONGEST_SEASON, MAX_TILT
from orcast.kernels import records
from orcast.kernels.state import Round
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
# Rounding of masses that were added up, of matrices that members keep, of budgets, and of counts.
MASS_ROUNDING, MATRIX_ROUNDING, BUDGET_ROUNDING, ROUNDING = 1e-6, 1e-6, 1e-6, 1e-9
BUDGET = int(GroupAccount.BUDGET)

Columns = Mapping[int, Range]
# Range of each field; a field with several columns has a range for each, by number, ANY where none is named.
Table = Mapping[str, Range | Columns]


def columns(names: tuple[str, ...], default: Range = ANY, **ranges: Range) -> Columns:
    """Range of each number of a record; those that are not named have the default."""
    return {i: ranges.get(name, default) for i, name in enumerate(names)}


LEDGER: Table = {
    "total": ANY,
    "account": columns(records.ACCOUNT, COUNTED),
    "groups": columns(records.GROUP_ACCOUNT, COUNTED),
}
CERTIFICATE: Columns = columns(records.CERTIFICATE, COUNTED, worst=ANY, holds=FLAG)
ORDERED_MEMORY: Table = {
    **LEDGER,
    "statistics": columns(
        records.STATISTICS,
        COUNTED,
        last_error=VALUES,
        level_mean=VALUES,
        level_variance=SQUARES,
        squares=SQUARES,
    ),
    "misses": ANY,
    "by_group": SMALL,
    "warm": SMALL,  # only where a forecast was searched for is it cut to MAX_TILT
    "rivals": columns(records.RIVAL, COUNTED, crps_excess=ANY, mse_excess=Range(-1e250, 1e250)),
    **{f"committee_{name}": Range(-1e250, 1e250, missing=True) for name in ("streams", "series", "pools", "mixing")},
}
ORDERED_ROUND: Table = {
    "slots": COUNTED,
    "info": columns(
        records.INFO,
        COUNTED,
        has_expert=FLAG,
        low=VALUES,
        high=VALUES,
    ),
    "certificate": CERTIFICATE,
    "experts": Range(*VALUES[:2], missing=True),
    "before": VALUES,
    "rivals": MASS,
    "crps_units": COUNTED,
    "mse_units": COUNTED,
    "context": SMALL,
    "expected": ANY,
}
FINITE_STATE: Table = {
    **LEDGER,
    "warm": TILT,
    "regret": SMALL,
    **dict.fromkeys(("square", "shift_curvature"), Range(0.0, 1e6)),
    **dict.fromkeys(("theta", "curvature", "shift", "errors"), SMALL),
    "outcomes": UNIT,
    "observed": COUNTED,
    "rivals": columns(records.FINITE_RIVAL, COUNTED, excess=ANY),
    "last": SMALL,
}
FINITE_ROUND: Table = {
    "info": columns(records.FINITE_INFO, COUNTED, has_expert=FLAG, odds=SMALL),
    "certificate": CERTIFICATE,
    "context": SMALL,
    "experts": Range(*MASS[:2], missing=True),
    "units": COUNTED,
    **dict.fromkeys(("pool", "prior", "played", "members"), MASS),
    "features": SMALL,
}
AXES: Table = {
    "axes_location": SMALL,
    "axes_location_cov": Range(-1e3, 1.0),
    "axes_spread": Range(0.0, 1e6),
    "axes_last": Range(-6.0, 6.0),
    "axes_seen": COUNTED,
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
        parts = ledger.layout.part_table
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
        owed = np.where((ledger.layout.side_list == 0.0) | (ledger.total > 0.0), ledger.total, 0.0)
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
    """Refuse matrices that are not symmetric and positive semidefinite but for rounding: members divide by them."""
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


def check_round(round: Round) -> None:
    """Refuse a pending round on an ordered space whose parts do not belong together."""
    cells, n = round.view("cells"), round.read("info", "cells")
    capacity = round.rules.capacity
    if not (n == np.floor(n) and 1 <= n <= capacity and ((round.whole >= 0) & (round.whole < n)).all()):
        raise ValueError(f"a pending round has {n} cells")
    n = int(n)
    rows = [VALUES] * 2 + [MASS] * 3 + [SMALL]
    low, high = (np.array([[part[i]] for part in rows]) for i in (0, 1))
    if not ((cells >= low) & (cells <= high)).all():
        raise ValueError("a pending round has cells of the wrong size")
    left, right, prior, expert, played = cells[:5, :n]
    ordered = (left <= right).all() and (right[:-1] <= left[1:]).all()
    if not (ordered and round.read("info", "low") < round.read("info", "high")):
        raise ValueError("the cells of a pending round are not in order")
    check_masses("a pending forecast", played)
    experts = round.view("experts")
    experts = experts[~np.isnan(experts[:, 0])]
    if not (np.diff(experts, axis=1) >= 0.0).all():
        raise ValueError("an expert of a pending round has quantiles that are not in order")
    if round.read("info", "has_expert") > 0.0:
        check_masses("the expert of a pending round", expert)
        check_masses("the prior of a pending round", prior)
        if not len(experts):
            raise ValueError("a pending round has no expert")


# Numbers of a committee: times, and those that may be unknown.
TIME = Range(-1e15, 1e15, missing=True)
TARGET = Range(-1e149, 1e15)
UNKNOWN = Range(*VALUES[:2], missing=True)
STREAM = columns(
    committee.STREAM,
    COUNTED,
    lag=Range(1.0, 1e6),
    low=VALUES,
    high=VALUES,
    root=UNIT,
    newest=TIME._replace(missing=False),
    **dict.fromkeys(("target", "target_before"), TARGET),
    **dict.fromkeys(("error_0", "error_1", "error_2", "median", "median_before"), VALUES),
)
SEASON = Range(0.0, LONGEST_SEASON - 2.0)
SERIES = columns(
    committee.SERIES,
    SEASON,
    outcomes=COUNTED,
    mean=VALUES,
    size=COUNTED,
    power=SQUARES,
    newest=TIME._replace(missing=False),
    **dict.fromkeys(("y_0", "y_1", "y_2"), VALUES),
)
POOL = columns(committee.POOL, COUNTED, lag=Range(0.0, 1e6), error=SMALL, error_sum=VALUES)
KNOWN = columns(
    committee.KNOWN,
    UNKNOWN,
    time=TIME,
    **dict.fromkeys(("spread", "unit"), Range(1e-150, 1e120)),
    lag=Range(1.0, 1e6),
    **dict.fromkeys(("evidence", "reach"), COUNTED),
    active=FLAG,
    trust=FLAG,
    **dict.fromkeys(("common", "common_short"), SMALL),
)


def check_columns(what: str, rows: Array, ranges: Columns) -> None:
    """Refuse rows with a number outside the range of its column."""
    if not rows.size:
        return
    low, high, missing = (np.array([each[i] for each in ranges.values()]) for i in range(3))
    own = rows[:, : len(ranges)]
    with np.errstate(invalid="ignore"):
        fine = ((own >= low) & (own <= high)) | (np.isnan(own) & missing.astype(bool))
    if not fine.all():
        column = list(committee_names(what))[int(np.argwhere(~fine)[0, 1])]
        raise ValueError(f"{column} of a {what} of the committee is out of range")


def committee_names(what: str) -> tuple[str, ...]:
    """Names of the first numbers of a row of a committee."""
    names: dict[str, tuple[str, ...]] = {
        "stream": committee.STREAM,
        "series": committee.SERIES,
        "pool": committee.POOL,
        "round": committee.KNOWN,
    }
    return names[what]


def check_group(group: Any) -> None:
    """Refuse the rows of a committee that no round leads to."""
    plan, bounds = group.plan, group.source[3]
    check_columns("stream", group.stream_rows, STREAM)
    check_columns("series", group.series_rows, SERIES)
    check_columns("pool", group.pool_rows, POOL)
    at = [committee.STREAM.index(name) for name in ("low", "high", "root")]
    roots = [committee.root_of(low, high) for low, high in bounds.tolist()]
    given = np.column_stack((np.clip(bounds, -1e110, 1e110), roots))
    if not np.array_equal(group.stream_rows[:, at], given):
        raise ValueError("the bounds of a stream of the committee are others")
    rest = (group.stream_rows[:, plan.weights_at :], group.pool_rows, group.mixing)
    squares, ring = np.split(group.series_rows[:, len(committee.SERIES) :], [len(committee.SEASONS)], axis=1)
    rings = group.stream_rows[:, len(committee.STREAM) : plan.weights_at], ring, squares / 1e100
    if not all((np.abs(each) <= 1e150).all() for each in rest) or any((np.abs(each) > 1e150).any() for each in rings):
        raise ValueError("a number of the committee is not finite")


def check_memos(plan: Any, memos: Array) -> None:
    """Refuse memos of pending rounds that no forecast leads to; an expert that is missing has no time."""
    there = memos[~np.isnan(memos[:, committee.KNOWN.index("time")])]
    check_columns("round", there, KNOWN)
    if not (np.abs(there[:, len(committee.KNOWN) :]) <= 1e150).all():
        raise ValueError("a number of a pending round of the committee is not finite")


def check_axes(cov: Array) -> None:
    """Refuse covariances that the members of an axis cannot divide by, for any last error."""
    for last in (-6.0, 0.0, 6.0):
        x = np.array([1.0, last])
        if not (np.einsum("i,...ij,j->...", x, cov, x) >= -0.9).all():
            raise ValueError("axes_location_cov is not positive definite")
