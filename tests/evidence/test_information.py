"""Outcomes known at each forecast: references against a slow twin, horizons, groups of rows."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from scipy.special import ndtri

from helpers import SENTENCE
from orcast import metrics
from orcast.constants import PER_ABSOLUTE
from orcast.evidence import Evidence, by_group, by_horizon, collect, headline, loss, reference_scores, verdict
from orcast.evidence.base import ASSUMPTION
from orcast.evidence.information import FEWEST, Information

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


# --- the last known outcome


@st.composite
def panels(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of two series at several horizons, outcomes that are known late, out of order or never."""
    rows = []
    for series in range(2):
        times = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=20)))
        late = {t: t + draw(st.sampled_from([0, 0, 0, 1, 5])) for t in times}
        y = {t: draw(st.sampled_from([float(t % 7), float(-t), np.nan])) for t in times}
        for t in times:
            steps = draw(st.sets(st.integers(1, 4), min_size=1, max_size=2))
            rows += [
                {"series": series, "time": t, "issued": t - step, "known": late[t], "y": y[t]} for step in sorted(steps)
            ]
    return rows


@given(panels())
def test_references_against_a_slow_twin(rows: list[dict[str, Any]]) -> None:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    information = Information.of(columns["series"], columns["time"], columns["issued"], columns["known"], None)
    outcomes = information.outcomes(columns["y"])
    (found,) = (each for each in outcomes.references(columns["y"], columns["time"]) if "last" in each.name)
    seasonal = outcomes._seasonal(columns["time"], 7)
    centres = []
    for i, row in enumerate(rows):
        table = {r["time"]: r for r in rows if r["series"] == row["series"]}
        known = {t: r["y"] for t, r in table.items() if r["known"] <= row["issued"] and np.isfinite(r["y"])}
        centres.append(known[max(known)] if known else np.nan)
        np.testing.assert_equal(found.centre[i], centres[-1])
        before = [known[t] for t in range(row["time"] - 7, -1, -7) if t in known]
        np.testing.assert_equal(seasonal[i], before[0] if before else np.nan)
    for i, row in enumerate(rows):
        errors = [
            abs(r["y"] - centre)
            for r, centre, step in zip(rows, centres, information.horizon, strict=True)
            if r["series"] == row["series"] and step == information.horizon[i] and r["known"] <= row["issued"]
            if np.isfinite(r["y"] - centre)
        ]
        expected = PER_ABSOLUTE * np.mean(errors) if len(errors) >= FEWEST else np.nan
        np.testing.assert_allclose(found.spread[i], expected)


def test_references_of_rows_without_issue_times() -> None:
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=200))
    frame = pl.DataFrame({"y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    (evidence,) = collect(frame)
    assert evidence.assumption == ASSUMPTION
    assert not evidence.timed
    last = evidence.references[0]
    np.testing.assert_array_equal(last.centre[1:], y[:-1])
    arrays = Evidence.of(evidence.before, y, levels=LEVELS).references
    assert [each.name for each in arrays] == [each.name for each in evidence.references]
    np.testing.assert_array_equal(arrays[0].spread, last.spread)
    score = reference_scores(evidence)[0]
    q = last.centre[6:, None] + last.spread[6:, None] * ndtri(LEVELS)
    assert score.rows == 194
    assert score.loss == pytest.approx(metrics.pinball(q, y[6:], LEVELS).mean())
    assert score.gain("before") == pytest.approx(loss(evidence)[6:].mean() / score.loss - 1.0)
    assert f"the last known outcome {score.loss:.4g}" in " ".join(verdict(evidence))


def test_references_do_not_use_later_outcomes() -> None:
    """Outcomes known after a row was issued change none of its references."""
    rng = np.random.default_rng(1)
    n, y = 240, np.cumsum(rng.normal(size=240))
    time = np.datetime64("2024-01-01T00") + np.arange(n)
    issued, known = (np.arange(n) // 12) * 12 - 3, np.arange(n) + rng.integers(0, 4, n)
    information = Information.of(np.zeros(n, np.intp), np.arange(n), issued, known, None)
    before = information.outcomes(y).references(y, time)
    assert len(before) > 1
    for at in (60, 120, 180):
        other = np.where(known > at, 1e6 * rng.normal(size=n), y)
        after = information.outcomes(other).references(other, time)
        earlier = issued <= at
        for one, two in zip(before, after, strict=True):
            np.testing.assert_array_equal(one.centre[earlier], two.centre[earlier])
            np.testing.assert_allclose(one.spread[earlier], two.spread[earlier], rtol=1e-6)  # sums are cumulative


def test_best_seasonal_reference_is_found() -> None:
    """Hourly outcomes with a daily and a weekly pattern: the week before is the best reference."""
    rng = np.random.default_rng(2)
    hours = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[h]").astype("datetime64[us]")
    index = np.arange(hours.size)
    y = 10 * np.sin(2 * np.pi * index / 24) * (1 + (index // 24 % 7 > 4)) + 0.1 * rng.normal(size=hours.size)
    frame = pl.DataFrame({"ds": hours, "y": y, "q0.05": y * 0 - 20, "q0.5": y * 0, "q0.95": y * 0 + 20})
    (evidence,) = collect(frame, issued_every="daily")
    last, best = reference_scores(evidence)
    assert (last.name, best.name) == ("the last known outcome", "the same time a week before")
    assert best.loss < 0.2 * last.loss
    assert headline(evidence).startswith("Do not use these forecasts: the same time a week before")


# --- horizons, groups, assumptions in frames


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


def test_evidence_knows_horizons() -> None:
    frame = cross_validation()
    (evidence,) = collect(frame.sample(fraction=1.0, shuffle=True, seed=1))
    assert evidence.assumption == "Each forecast used the outcomes known at its cutoff."
    assert evidence.timed
    assert evidence.overlap == 3
    assert evidence.horizon is not None
    assert np.unique(evidence.horizon).tolist() == [1, 2, 3, 4]
    table = by_horizon(evidence)
    assert table.labels == ("1", "2", "3", "4")
    assert table.rows.tolist() == [120.0] * 4
    assert (np.diff(table.coverage["before"]) < 0).all()
    assert table.chance is not None
    for step in range(1, 5):
        alone = frame.filter((pl.col("ds") - pl.col("cutoff")).dt.total_hours() == step)
        (one,) = collect(alone)
        assert table.loss["before"][step - 1] == pytest.approx(loss(one).mean())
        assert one.horizon is None
    # the forecasts are the last value at the cutoff, so is the reference
    last = evidence.references[0]
    there = np.isfinite(last.centre)
    assert there.sum() > 400
    np.testing.assert_array_equal(last.centre[there], evidence.before[there, 2])
    spreads = [np.nanmean(last.spread[evidence.horizon == step]) for step in (1, 4)]
    assert spreads[1] == pytest.approx(2 * spreads[0], rel=0.25)


def test_numbers_with_horizons_have_cutoffs() -> None:
    frame = pl.DataFrame(
        {"ds": [3, 4, 4, 5], "horizon": [1, 2, 1, 2], "y": [1.0] * 4, "q0.1": [0.0] * 4, "q0.9": [2.0] * 4}
    )
    (evidence,) = collect(frame)
    assert evidence.horizon is not None
    assert evidence.horizon.tolist() == [1, 2, 1, 2]
    assert evidence.assumption != ASSUMPTION


def test_by_parts_of_the_time_and_columns() -> None:
    hours = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[h]").astype("datetime64[us]")
    rng = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "ds": hours,
            "y": rng.normal(size=hours.size),
            "wing": rng.choice(["north", "south", None], hours.size),
            "q0.1": np.full(hours.size, -1.28),
            "q0.9": np.full(hours.size, 1.28),
        }
    )
    (evidence,) = collect(frame, by=["hour", "weekday", "month", "wing"])
    assert [group.name for group in evidence.by] == ["hour", "weekday", "month", "wing"]
    hour, weekday, month, wing = (by_group(evidence, group) for group in evidence.by)
    assert hour.labels[:2] == ("00:00", "01:00")
    assert len(hour.labels) == 24
    assert weekday.labels[0] == "Monday"
    assert weekday.rows.tolist() == frame.group_by(pl.col("ds").dt.weekday()).len().sort("ds")["len"].to_list()
    assert month.labels == ("1", "2")
    assert wing.labels == ("north", "south")
    assert wing.rows.sum() == frame["wing"].is_not_null().sum()
    (one,) = collect(frame, by="hour")
    assert len(one.by) == 1
    bad: list[tuple[Any, str]] = [
        ("minute", "expected by= a column, 'horizon', 'hour'"),
        (["wing", "nothing"], "got 'nothing'"),
    ]
    for by, message in bad:
        with pytest.raises(ValueError, match=message) as caught:
            collect(frame, by=by)
        assert re.match(SENTENCE, str(caught.value))
    with pytest.raises(ValueError, match="expected dates as times to compare by hour, got none"):
        collect(frame.drop("ds"), by="hour")
    many = frame.with_columns(pl.Series("name", [f"n{i}" for i in range(frame.height)]))
    with pytest.raises(ValueError, match="expected a column of at most 200 values as by=, got 1,440"):
        collect(many, by="name")


def test_what_was_said_of_issue_times_counts() -> None:
    """Known four rows late, issued a day at a time."""
    rng = np.random.default_rng(5)
    y = np.cumsum(rng.normal(size=240))
    frame = pl.DataFrame({"ds": np.arange(240), "y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    (late,) = collect(shuffled, lag=4)
    known = "Each forecast used the outcomes known "
    assert late.assumption == f"{known}just before its time; outcomes are known 4 after their time."
    np.testing.assert_array_equal(late.references[0].centre[50:], y[45:-5])
    assert late.overlap == 4
    assert late.horizon is None
    (blocks,) = collect(shuffled, issued_every=24)
    assert blocks.assumption == f"{known}when it was issued (24 rows at a time)."
    np.testing.assert_array_equal(blocks.references[0].centre[-24:], np.full(24, y[215]))
    assert blocks.overlap == 23
    assert blocks.horizon is not None
    assert blocks.horizon.tolist() == list(range(1, 25)) * 10
    column = shuffled.with_columns((pl.col("ds") + 4).alias("published"))
    (named,) = collect(column, known="published")
    np.testing.assert_array_equal(named.references[0].centre, late.references[0].centre)
    assert named.assumption.endswith("; outcomes are known at 'published'.")
