"""Outcomes known at each forecast: horizons, groups of rows, issue times."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from orcast.evaluate import Evaluation, by_horizon, check, coverage, difference, loss

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def cross_validation(cutoffs: int = 60, ahead: int = 4, seed: int = 3) -> pl.DataFrame:
    """Random walks, forecast by the last value: calibrated one step ahead, too narrow further on."""
    rng = np.random.default_rng(seed)
    start = datetime(2024, 1, 1)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("unique_id", "cutoff", "ds", "y", *(f"q{a:g}" for a in LEVELS))
    }
    for name in "ab":
        y = np.cumsum(rng.normal(size=cutoffs + ahead + 1))
        for cutoff, step in product(range(cutoffs), range(1, ahead + 1)):
            times = [start + timedelta(hours=hour) for hour in (cutoff, cutoff + step)]
            row = [name, *times, y[cutoff + step], *(y[cutoff] + ndtri(LEVELS))]
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return pl.DataFrame(columns)


def last_known(evaluation: Evaluation) -> NDArray[np.float64]:
    """Last known outcome of each row."""
    assert evaluation.known is not None
    known, rows = evaluation.known
    return np.asarray(np.where(known.last >= 0, known.y[known.last], np.nan)[rows])


def test_check_finds_horizons() -> None:
    frame = cross_validation()
    (evaluation,) = check(frame.sample(fraction=1.0, shuffle=True, seed=1))
    assert evaluation.timed
    assert evaluation.overlap == 3
    assert evaluation.horizon is not None
    assert np.unique(evaluation.horizon).tolist() == [1, 2, 3, 4]
    table = by_horizon(evaluation)
    assert table["horizon"].tolist() == [1, 2, 3, 4]
    assert table["outcomes"].tolist() == [120] * 4
    assert (np.diff(table["coverage_before"]) < 0).all()
    for step in range(1, 5):
        alone = frame.filter((pl.col("ds") - pl.col("cutoff")).dt.total_hours() == step)
        (one,) = check(alone)
        assert table["loss_before"][step - 1] == pytest.approx(loss(one).mean())
        assert table["coverage_before"][step - 1] == pytest.approx(coverage(one, 0.9))
        both = by_horizon(replace(evaluation, after=0.9 * evaluation.before))
        own = difference(replace(one, after=0.9 * one.before))
        assert own is not None
        assert both["change"][step - 1] == pytest.approx(own.relative)
        assert one.horizon is None
    # the forecasts are the last value at the cutoff, so is the reference
    last = last_known(evaluation)
    there = np.isfinite(last)
    assert there.sum() > 400
    np.testing.assert_array_equal(last[there], evaluation.before[there, 2])


def test_issue_times_are_used() -> None:
    """Known four rows late, issued a day at a time."""
    rng = np.random.default_rng(5)
    y = np.cumsum(rng.normal(size=240))
    frame = pl.DataFrame({"ds": np.arange(240), "y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    (late,) = check(shuffled, lag=4)
    np.testing.assert_array_equal(last_known(late)[50:], y[46:-4])
    assert late.overlap == 3
    assert late.horizon is None
    (blocks,) = check(shuffled, issued_every=24)
    np.testing.assert_array_equal(last_known(blocks)[-24:], np.full(24, y[215]))
    assert blocks.overlap == 23
    assert blocks.horizon is not None
    assert blocks.horizon.tolist() == list(range(1, 25)) * 10
    (single,) = check(shuffled, issued_every=1)
    assert single.timed
    column = shuffled.with_columns((pl.col("ds") + 4).alias("published"))
    (named,) = check(column, known="published")
    np.testing.assert_array_equal(last_known(named), last_known(late))
