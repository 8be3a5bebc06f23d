"""Checks of the numbers of a state: shapes, ranges, and numbers that kernels use as counts and indices.

Kernels trust their arrays, so the content of a file is checked before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.committee import state as committee
from orcast.constants import LONGEST_SEASON
from orcast.kernels.state import Round
from orcast.ledger import Account, CertificateField, GroupAccount, Ledger

Array = NDArray[np.float64]


class Range(NamedTuple):
    """Smallest and largest value, or those of each column; `missing` allows nan."""

    low: float | Array
    high: float | Array
    missing: bool = False


# Outcomes and quantiles reach 1e110; squares of all numbers must be finite, except for sums of squares.
ANY, COUNTED, VALUES, SQUARES = Range(-1e150, 1e150), Range(0.0, 1e150), Range(-1e120, 1e120), Range(-1e250, 1e250)
MASS, SMALL = Range(0.0, 1.0 + 1e-6), Range(-1e6, 1e6)
ROUNDING = 1e-6

INFO = Range(np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1e120, -1e120, 0.0]), 1e120)

# Range of each field; ANY by default.
Table = Mapping[str, Range]
RANGES: Table = {
    **dict.fromkeys(("account", "groups", "crps_units", "mse_units", "observed", "axes_seen"), COUNTED),
    **dict.fromkeys(("temperature", "count", "rounds"), COUNTED),
    **dict.fromkeys(("statistics", "rivals", "excess"), SQUARES),
    **dict.fromkeys(("by_group", "warm", "context", "features", "regret", "theta", "curvature", "shift"), SMALL),
    **dict.fromkeys(("errors", "outcomes", "last", "axes_shift"), SMALL),
    **dict.fromkeys(
        (
            "square",
            "shift_curvature",
        ),
        Range(0.0, 1e6),
    ),
    **dict.fromkeys(("pool", "prior", "result", "members", "decision"), MASS),
    **{f"committee_{name}": SQUARES._replace(missing=True) for name in ("streams", "series", "pools", "mixing")},
    "info": INFO,
    "experts": VALUES._replace(missing=True),
    "before": VALUES,
}


def check_shape(name: str, theirs: NDArray[Any], mine: NDArray[Any]) -> NDArray[Any]:
    """Refuse an array that has not the shape and type of ours."""
    if theirs.shape != mine.shape or theirs.dtype != mine.dtype:
        raise ValueError(f"{name} is {theirs.dtype} of shape {theirs.shape}, not {mine.dtype} of shape {mine.shape}")
    return theirs


def restore_fields(mine: Mapping[str, NDArray[Any]], theirs: Mapping[str, NDArray[Any]]) -> None:
    """Copy all fields, each checked by its range."""
    for name, array in mine.items():
        values = check_shape(name, theirs[name], array)
        check_range(name, values, RANGES.get(name, ANY))
        array[...] = values


def check_range(name: str, values: NDArray[Any], range: Range) -> None:
    """Refuse numbers that are out of range."""
    fits = (values >= range.low) & (values <= range.high)
    if range.missing:
        fits |= np.isnan(values)
    if not fits.all():
        raise ValueError(f"{name} has {float(values[~fits][0])!r}, which is out of range")


def check_accounts(ledger: Ledger) -> None:
    """Refuse impossible accounts: budgets must cover the cumulative payoff, and rounds must be counted."""
    budget, rounds, held, *_, weight = ledger.account.tolist()
    if not (rounds == math.floor(rounds) and held <= rounds and weight <= rounds * (1.0 + ROUNDING)):
        raise ValueError("the numbers of rounds in the account are inconsistent")
    parts = ledger.layout.part_table[:, :3].tolist()
    starts = [start + group * size for start, size, groups in parts for group in range(groups)]
    if not starts:
        return
    excess = np.where((ledger.layout.side_list == 0.0) | (ledger.total > 0.0), ledger.total, 0.0)
    squares = np.add.reduceat(excess * excess, starts)
    budgets = ledger.groups[:, int(GroupAccount.BUDGET)]
    within = squares.sum() <= budget * (1.0 + ROUNDING) + ROUNDING
    if not (within and (squares <= budgets * (1.0 + ROUNDING) + ROUNDING).all()):
        raise ValueError("the cumulative payoff exceeds its budget")


def check_certificate(certificate: Array, ledger: Ledger) -> None:
    """Refuse a certificate from the future."""
    account = ledger.account
    rounds, roots = certificate[CertificateField.ROUNDS_THEN], certificate[CertificateField.ROOTS_THEN]
    if rounds > account[Account.ROUNDS] or roots > account[Account.ROOTS] * (1.0 + ROUNDING):
        raise ValueError("a pending round has a number above the last one")


def check_matrices(name: str, matrices: Array) -> None:
    """Refuse matrices that are not positive semidefinite up to rounding, because members divide by them."""
    if not matrices.size:
        return
    size = np.abs(matrices).max(axis=(-2, -1), keepdims=True) + 1e-300
    try:
        np.linalg.cholesky(matrices / size + ROUNDING * np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} is not positive definite") from None


def check_masses(name: str, masses: Array) -> None:
    """Refuse masses that do not sum to one."""
    if not abs(float(masses.sum()) - 1.0) <= ROUNDING:
        raise ValueError(f"{name} does not sum to 1")


def check_round(round: Round) -> None:
    """Refuse a pending round on an ordered space with missing or disordered cells."""
    cells, n = round.view("cells"), round.read("info", "cells")
    if not (n == np.floor(n) and 1 <= n <= round.rules.capacity):
        raise ValueError(f"a pending round has {n} cells")
    check_range("cells", cells[:2], VALUES)
    check_range("masses", cells[2:5], MASS)
    check_range("tilts", cells[5:], SMALL)
    check_range("rivals", round.view("rivals"), MASS)
    left, right, prior, expert, result = cells[:5, : int(n)]
    ordered = (left <= right).all() and (right[:-1] <= left[1:]).all()
    if not (ordered and round.read("info", "low") < round.read("info", "high")):
        raise ValueError("the cells of a pending round are not in order")
    check_masses("a pending forecast", result)
    if round.read("info", "has_expert") > 0.0:
        check_masses("the expert of a pending round", expert)
        check_masses("the prior of a pending round", prior)


# --- rows of a committee: numbers that kernels use as counts and divisors

LAG, TIME, SEASON = Range(1.0, 1e6), Range(-1e15, 1e15), Range(0.0, LONGEST_SEASON - 2.0)
TARGET = Range(-1e149, 1e15)
STREAM: Table = {"lag": LAG, "newest": TIME, "target": TARGET, "target_before": TARGET, "scale": COUNTED}
SEASONS = ("short_season", "long_season", "presumed_short", "presumed_long")
SERIES: Table = {"newest": TIME, "outcomes": COUNTED, **dict.fromkeys(SEASONS, SEASON)}
POOL: Table = {"lag": Range(0.0, 1e6), "steps": COUNTED, "streams": COUNTED, "count": COUNTED}
POSITIVE = Range(1e-150, 1e120)
KNOWN: Table = {"time": TIME, "lag": LAG, "spread": POSITIVE, "unit": POSITIVE, "evidence": COUNTED, "reach": COUNTED}
NAMES = {"stream": committee.STREAM, "series": committee.SERIES, "pool": committee.POOL, "round": committee.KNOWN}


def check_columns(what: str, rows: Array, table: Table) -> None:
    """Refuse rows with a number outside the range of its column."""
    for name, range in table.items():
        check_range(f"{name} of a {what}", rows[:, NAMES[what].index(name)], range)


def check_group(group: Any) -> None:
    """Refuse impossible rows of a committee."""
    check_columns("stream", group.stream_rows, STREAM)
    check_columns("series", group.series_rows, SERIES)
    if group.pool_rows.size:
        check_columns("pool", group.pool_rows, POOL)
    at = [committee.STREAM.index(name) for name in ("low", "high", "root")]
    bounds = group.source[3]
    roots = [committee.root_of(low, high) for low, high in bounds.tolist()]
    if not np.array_equal(group.stream_rows[:, at], np.column_stack((np.clip(bounds, -1e110, 1e110), roots))):
        raise ValueError("the bounds of a stream of the committee differ")
    own, ring, rest = np.split(group.stream_rows, [len(committee.STREAM), group.plan.weights_at], axis=1)
    for rows in (own, rest, group.pool_rows, group.mixing):
        check_range("a committee", rows, ANY)
    check_range("a ring", ring, ANY._replace(missing=True))


def check_memos(plan: Any, memos: Array) -> None:
    """Refuse impossible memos of pending rounds; a missing expert has no time."""
    there = memos[~np.isnan(memos[:, committee.KNOWN.index("time")])]
    check_columns("round", there, KNOWN)
    check_range("a memo", there, ANY._replace(missing=True))
