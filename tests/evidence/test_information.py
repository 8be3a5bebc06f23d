"""What was known when: the last known outcome against a slow twin, and groups of rows."""

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
from orcast.evidence import (
    by_group,
    collect,
    loss,
    reference_scores,
    verdict,
)
from orcast.evidence.base import ASSUMPTION
from orcast.evidence.information import CHANGES, FEWEST, Information

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
def test_the_last_known_outcome(rows: list[dict[str, Any]]) -> None:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    information = Information.of(columns["series"], columns["time"], columns["issued"], columns["known"], None)
    found = information.outcomes(columns["y"]).reference()
    for i, row in enumerate(rows):
        table = sorted({(r["time"], r["known"], r["y"]) for r in rows if r["series"] == row["series"]})
        times = [t for t, _, _ in table]
        known = [t for t, at, y in table if at <= row["issued"] and np.isfinite(y)]
        value = {t: y for t, _, y in table}
        if not known:
            assert np.isnan(found.last[i])
            continue
        lag = times.index(row["time"]) - times.index(known[-1])
        changes = sorted(
            (max(a[1], b[1]), abs(b[2] - a[2]))
            for a, b in zip(table, table[lag:], strict=False)
            if max(a[1], b[1]) <= row["issued"] and np.isfinite(b[2] - a[2])
        )
        if len(changes) < FEWEST:
            assert np.isnan(found.spread[i])
        else:
            assert len(changes) <= CHANGES
            assert found.last[i] == value[known[-1]]
            assert found.spread[i] == pytest.approx(PER_ABSOLUTE * np.mean([size for _, size in changes]))


def test_without_cutoffs_the_last_row_is_known() -> None:
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=200))
    frame = pl.DataFrame({"y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    (evidence,) = collect(frame)
    assert evidence.assumption == ASSUMPTION
    assert evidence.reference is not None
    np.testing.assert_array_equal(evidence.reference.last[20:], y[19:-1])
    spread = [PER_ABSOLUTE * np.abs(np.diff(y[:t])).mean() for t in range(20, 200)]
    np.testing.assert_allclose(evidence.reference.spread[20:], spread)
    found = reference_scores(evidence)
    assert found is not None
    q = y[5:-1, None] + evidence.reference.spread[6:, None] * ndtri(LEVELS)
    assert found.rows == 194
    # the first outcomes have no past: they count as given, so that all is said of the same 200
    own = np.concatenate((loss(evidence)[:6], metrics.pinball(q, y[6:], LEVELS)))
    assert found.loss["reference"] == pytest.approx(own.mean())
    assert found.loss["before"] == pytest.approx(loss(evidence).mean())
    inside = np.concatenate((np.ones(6), (q[:, 0] <= y[6:]) & (y[6:] <= q[:, 4])))
    assert found.coverage["reference"] == pytest.approx(inside.mean())
    text = " ".join(verdict(evidence))
    assert "At the same information the last known outcome with its own spread has pinball loss" in text


def test_no_reference_knows_what_came_later() -> None:
    """Whatever comes after a row was issued changes nothing of what the last known outcome said for it."""
    rng = np.random.default_rng(1)
    n, y = 120, np.cumsum(rng.normal(size=120))
    time = np.arange(n)
    issued, known = (time // 12) * 12 - 3, time + rng.integers(0, 4, n)
    before = Information.of(np.zeros(n, np.intp), time, issued, known, None).outcomes(y).reference()
    for at in (30, 60, 90):
        other = np.where(known > at, 1e6 * rng.normal(size=n), y)
        after = Information.of(np.zeros(n, np.intp), time, issued, known, None).outcomes(other).reference()
        earlier = issued <= at
        np.testing.assert_array_equal(before.last[earlier], after.last[earlier])
        np.testing.assert_array_equal(before.spread[earlier], after.spread[earlier])


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
    assert evidence.assumption == "each forecast used the outcomes known at its cutoff"
    assert evidence.overlap == 3
    assert evidence.horizon is not None
    assert np.unique(evidence.horizon).tolist() == [1, 2, 3, 4]
    (groups,) = evidence.by
    assert (groups.name, groups.labels) == ("horizon", ("1", "2", "3", "4"))
    table = by_group(evidence, groups)
    assert table.rows.tolist() == [120.0] * 4
    assert table.coverage_before is not None
    assert (np.diff(table.coverage_before) < 0).all()
    assert table.chance is not None
    for step in range(1, 5):
        alone = frame.filter((pl.col("ds") - pl.col("cutoff")).dt.total_hours() == step)
        (one,) = collect(alone)
        assert table.loss_before[step - 1] == pytest.approx(loss(one).mean())
        assert one.horizon is None
    # the reference is what the forecasts are made of: the last value at the cutoff, spread by its lag
    assert evidence.reference is not None
    middle = evidence.before[:, 2]
    there = np.isfinite(evidence.reference.last)
    assert there.sum() > 400
    np.testing.assert_array_equal(evidence.reference.last[there], middle[there])
    spreads = [np.nanmean(evidence.reference.spread[evidence.horizon == step]) for step in (1, 4)]
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
            "load": rng.uniform(size=hours.size),
            "q0.1": np.full(hours.size, -1.28),
            "q0.9": np.full(hours.size, 1.28),
        }
    )
    (evidence,) = collect(frame, by=["hour", "weekday", "month", "quarter", "wing", "load"])
    assert [group.name for group in evidence.by] == ["hour", "weekday", "month", "quarter", "wing", "load"]
    hour, weekday, month, quarter, wing, load = (by_group(evidence, group) for group in evidence.by)
    assert hour.labels[:2] == ("00:00", "01:00")
    assert len(hour.labels) == 24
    assert weekday.labels[0] == "Monday"
    assert weekday.rows.tolist() == frame.group_by(pl.col("ds").dt.weekday()).len().sort("ds")["len"].to_list()
    assert month.labels == ("January", "February")
    assert quarter.labels == ("January to March",)
    assert wing.labels == ("north", "south")
    assert wing.rows.sum() == frame["wing"].is_not_null().sum()
    assert len(load.labels) == 5
    assert np.ptp(load.rows) <= 2
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
    with pytest.raises(ValueError, match="expected a column of at most 200 kinds to compare by, got 1,440"):
        collect(many, by="name")


def test_what_was_said_of_issue_times_counts() -> None:
    """Known four rows late, issued a day at a time."""
    rng = np.random.default_rng(5)
    y = np.cumsum(rng.normal(size=240))
    frame = pl.DataFrame({"ds": np.arange(240), "y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    (late,) = collect(shuffled, lag=4)
    assert (
        late.assumption
        == "each forecast used the outcomes known just before its time; outcomes count as known 4 after their time"
    )
    assert verdict(late)[0] == f"E{late.assumption[1:]}."
    assert late.reference is not None
    np.testing.assert_array_equal(late.reference.last[50:], y[45:-5])
    assert late.overlap == 4
    assert late.horizon is None
    (blocks,) = collect(shuffled, issued_every=24)
    assert blocks.assumption == "each forecast used the outcomes known when it was issued, 24 rows at a time"
    assert blocks.reference is not None
    np.testing.assert_array_equal(blocks.reference.last[-24:], np.full(24, y[215]))
    assert blocks.overlap == 23
    assert blocks.horizon is not None
    assert blocks.horizon.tolist() == list(range(1, 25)) * 10
    column = shuffled.with_columns((pl.col("ds") + 4).alias("published"))
    (named,) = collect(column, known="published")
    assert named.reference is not None
    np.testing.assert_array_equal(named.reference.last, late.reference.last)
    assert named.assumption.endswith("; outcomes count as known when 'published' says")
    hours = pl.datetime_range(datetime(2024, 1, 1), datetime(2024, 1, 10, 23), "1h", eager=True)
    dated = shuffled.sort("ds").with_columns(hours.alias("ds"))
    for every, said in (("daily", "once a day"), ("12h", "every 12 hours"), ("weekly", "every 7 days")):
        (one,) = collect(dated, issued_every=every, lag="2h")
        assert one.assumption.endswith(f"known when it was issued, {said}; outcomes count as known 2h after their time")
