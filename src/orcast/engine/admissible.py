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
# Rounding of masses that were added up, of matrices that learners keep, of budgets, and of counts.
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
LAG = Range(-LONGEST_SEASON, LONGEST_SEASON)
ORDERED_MEMORY: Table = {
    **LEDGER,
    "statistics": columns(
        records.STATISTICS,
        VALUES,
        score_size=Range(1e-4, 1e120),
        outcomes=COUNTED,
        median_variance=SQUARES,
        log_scale_mean=SMALL,
        distance_mean=SMALL,
        last_pit=MASS,
        loss_sum=COUNTED,
        loss_count=COUNTED,
        observations=COUNTED,
        level_variance=SQUARES,
        robust_loss=COUNTED,
    ),
    "location": VALUES,
    "location_cov": UNIT,
    "spread": columns(records.SPREAD, slow=Range(1e-120, 1e120), fast=Range(0.0, 1e120)),
    "fit": VALUES,
    "fit_cov": UNIT,
    "seasons": columns(records.SEASONS, LAG, next=Range(0.0, LONGEST_SEASON - 1.0), count=Range(0.0, 1e15)),
    "track_loss": COUNTED,
    "shape": VALUES,
    "member_loss": COUNTED,
    "warm": SMALL,  # only where a forecast was searched for is it cut to MAX_TILT
    "expert_loss": columns(records.EXPERT_LOSS, squares=COUNTED),
    "rivals": columns(records.RIVAL, COUNTED, crps_excess=ANY, mse_excess=Range(-1e250, 1e250)),
    "by_group": columns(records.GROUP_STATISTICS, COUNTED, mean=SMALL, variance=Range(0.0, 1e6)),
    "group_loss": ANY,
}
ORDERED_ROUND: Table = {
    "slots": COUNTED,
    "info": columns(
        records.INFO,
        COUNTED,
        last_context=Range(-1.0 - 1e-6, 1.0 + 1e-6),
        has_expert=FLAG,
        low=VALUES,
        high=VALUES,
        regular=FLAG,
        group_location=SMALL,
        group_spread=Range(0.0, 1e6),
    ),
    "certificate": CERTIFICATE,
    "record": VALUES,
    "learners": VALUES,
    "means": SMALL,
    "experts": Range(*VALUES[:2], missing=True),
    "raw": VALUES,
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


def check_round(round: Round) -> None:
    """Refuse a pending round on an ordered space whose parts do not belong together."""
    cells, n = round.view("cells"), round.read("info", "cells")
    capacity, members = round.rules.capacity, round.rules.member_count
    if not (n == np.floor(n) and 1 <= n <= capacity and ((round.whole >= 0) & (round.whole < n)).all()):
        raise ValueError(f"a pending round has {n} cells")
    n = int(n)
    rows = [VALUES] * 2 + [MASS] * 3 + [SMALL] + [MASS] * (1 + members)
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
        if round.rules.learner_count:
            names = [records.TRACKER_RECORD.index(name) for name in ("scale", "slope_low", "slope_high", "score_size")]
            spreads = round.view("learners")[:, records.LEARNER_RECORD.index("spread")]
            if not min(spreads.min(), round.view("record")[names].min()) >= 1e-150:
                raise ValueError("a pending round has no spread")


def check_axes(cov: Array) -> None:
    """Refuse what the learners of an axis would divide by, for the last error that they may meet."""
    for last in (-6.0, 0.0, 6.0):
        x = np.array([1.0, last])
        if not (np.einsum("i,...ij,j->...", x, cov, x) >= -0.9).all():
            raise ValueError("axes_location_cov is not positive definite")
