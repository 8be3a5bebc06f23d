"""What was known when: no forecast uses an outcome that was not known when it was issued."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import orcast as oc
from helpers import SENTENCE

DAY = pd.Timedelta(days=1)


def hourly(days: int = 20, seed: int = 0, series: int = 1) -> pd.DataFrame:
    """An hourly series with forecasts whose error is one a day."""
    rng = np.random.default_rng(seed)
    frames = []
    for i in range(series):
        shocks = np.repeat(rng.normal(0.0, 1.0, days), 24)
        y = 50.0 + 5.0 * np.sin(np.arange(24 * days) / 24 * 2 * np.pi)
        ds = pd.date_range("2026-01-01", periods=24 * days, freq="h")
        frames.append(pd.DataFrame({"unique_id": f"s{i}", "ds": ds, "y": y + shocks, "mean": y, "sd": 0.5}))
    return pd.concat(frames, ignore_index=True)


def answers(frame: Any, **options: Any) -> Any:
    out = oc.recalibrate(frame, **options)
    return out[["orcast_mean", "orcast_sd", "orcast_holds", "orcast_promised"]]


def reads(frame: pd.DataFrame, changed: int, **options: Any) -> list[int]:
    """Rows whose forecast is another if the outcome of one row is."""
    other = frame.assign(y=frame.y.where(frame.index != changed, frame.y + 30.0))
    a, b = (answers(each, **options)["orcast_mean"].to_numpy() for each in (frame, other))
    return np.flatnonzero(a != b).tolist()


OPTIONS: list[tuple[dict[str, Any], Any]] = [
    ({}, lambda t, s: s < t),
    ({"lag": "3h"}, lambda t, s: s + pd.Timedelta(hours=3) <= t),
    ({"lag": datetime.timedelta(days=2)}, lambda t, s: s + 2 * DAY <= t),
    ({"issued_every": "daily"}, lambda t, s: s < t.normalize()),
    ({"issued_every": 24}, lambda t, s: s < t.normalize()),
    ({"issued_every": "12h", "lag": "1h"}, lambda t, s: s + pd.Timedelta(hours=1) <= t.floor("12h")),
    ({"issued_every": "daily", "lag": "14h"}, lambda t, s: s + pd.Timedelta(hours=14) <= t.normalize()),
]


@pytest.mark.parametrize(("options", "knows"), OPTIONS, ids=lambda each: str(each) if isinstance(each, dict) else "")
def test_a_forecast_uses_what_was_known_when_it_was_issued(options: dict[str, Any], knows: Any) -> None:
    """Not more: nothing else changes with an outcome.  Not less: the first of the same hour that may know it does."""
    frame = hourly(6)
    for changed in (3, 30, 47):
        may = [i for i, t in enumerate(frame.ds) if knows(t, frame.ds[changed])]
        found = reads(frame, changed, **options)
        assert set(found) <= set(may)
        if "issued_every" not in options:
            assert found[0] == may[0]
        elif may:
            # the game of the same place in a block
            assert found


def test_cutoffs_with_outcomes_known_later_than_the_next_cutoff() -> None:
    """Weekly forecasts 1 to 4 weeks ahead; outcomes are published 10 days after their week, some in bunches."""
    weeks = pd.date_range("2026-01-03", periods=40, freq="W")
    rng = np.random.default_rng(2)
    rows = [(c, c + h * 7 * DAY) for c in weeks for h in range(1, 5)]
    frame = pd.DataFrame(rows, columns=["cutoff", "ds"])
    y = dict(zip(pd.date_range(weeks[0], periods=50, freq="W"), rng.normal(100.0, 10.0, 50), strict=True))
    frame = frame.assign(y=frame.ds.map(y), mean=100.0, sd=5.0)
    published = frame.ds + 10 * DAY
    # every fourth week three weeks are published together
    month = (published - weeks[0]).dt.days // 28
    frame["published"] = weeks[0] + (month + 1) * 28 * DAY
    for options, known in (({"lag": "10D"}, frame.ds + 10 * DAY), ({"known": "published"}, frame.published)):
        for changed in (10, 61):
            other = frame.assign(y=frame.y.where(frame.ds != frame.ds[changed], frame.y + 50.0))
            a, b = (answers(each, **options)["orcast_mean"].to_numpy() for each in (frame, other))
            first = known[changed]
            assert not (a != b)[(frame.cutoff < first).to_numpy()].any()
            assert (a != b)[(frame.cutoff >= first).to_numpy()].any()


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 143), max_size=3), st.sampled_from(OPTIONS))
def test_a_frame_may_be_cut_anywhere(seed: int, cuts: list[int], which: tuple[dict[str, Any], Any]) -> None:
    frame = hourly(6, seed)
    frame["y"] = frame.y.where(np.random.default_rng(seed).random(len(frame)) > 0.05)
    options = dict(which[0])
    whole = answers(frame, **options)
    state = oc.FrameState()
    # forecasts that are issued together stay together
    together = {"daily": 24, "12h": 12}.get(options.get("issued_every", 1), options.get("issued_every", 1))
    edges = sorted({0, *(cut // together * together for cut in cuts), len(frame)})
    parts = [answers(frame[a:b], state=state, **options) for a, b in pairwise(edges)]
    pd.testing.assert_frame_equal(pd.concat(parts), whole)


def test_a_state_knows_the_timing_it_began_with(tmp_path: Any) -> None:
    frame = hourly(4)
    path = tmp_path / "a.state"
    whole = answers(frame, lag="3h", issued_every=12)
    first = answers(frame[:48], lag="3h", issued_every=12, state=path)
    second = answers(frame[48:], state=path)
    pd.testing.assert_frame_equal(pd.concat([first, second]), whole)
    for options in ({"lag": "4h"}, {"issued_every": 24}, {"known": "ds"}):
        with pytest.raises(ValueError, match=SENTENCE):
            answers(frame[50:], state=path, **options)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"cutoff": "same"}, {}, "issued before their time, got one for 2026-01-01 issued at 2026-01-01"),
    ({"cutoff": "before"}, {"issued_every": 24}, "expected cutoffs or issued_every=, got both"),
    ({}, {"lag": "3M"}, "such as '4D', '36h' or '30min'"),
    ({}, {"lag": 3}, "such as '4D', '36h' or '30min'"),
    ({}, {"lag": "-1h"}, "such as '4D', '36h' or '30min'"),
    ({}, {"known": "later", "lag": "1h"}, "expected known= or lag=, got both"),
    ({}, {"known": "count"}, "expected times of one kind in"),
    ({}, {"issued_every": "sometimes"}, "expected issued_every= such as '4D', '36h' or '30min'"),
    ({}, {"issued_every": 0}, "rows that are issued together"),
    ({"cutoff": "before"}, {"known": "early"}, "not known when their forecasts were issued"),
    ({}, {"known": "some"}, "expected a time at which each outcome was known, got none in 2 rows: 3, 4"),
]


@pytest.mark.parametrize(("columns", "options", "sentence"), REFUSED)
def test_what_is_refused(columns: dict[str, Any], options: dict[str, Any], sentence: str) -> None:
    frame = hourly(1)
    frame["later"] = frame.ds + DAY
    frame["some"] = frame.later.where(~frame.index.isin([3, 4]))
    frame["early"], frame["count"] = frame.ds - DAY, np.arange(24)
    made = {"same": frame.ds, "before": frame.ds - DAY}
    for name, which in columns.items():
        frame[name] = made[which]
    with pytest.raises(ValueError, match=SENTENCE) as found:
        answers(frame, **options)
    assert sentence in str(found.value)


def test_times_that_are_numbers_and_rows_without_times() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.normal(size=60), "mean": 0.0, "sd": 1.0})
    empirical = frame.assign(t=np.arange(60))
    for options in ({"lag": 5}, {"issued_every": 7}, {"issued_every": 7, "lag": 2}):
        plain, timed = answers(frame, **options), answers(empirical, time="t", **options)
        pd.testing.assert_frame_equal(plain, timed)
    with pytest.raises(ValueError, match="expected a column of times beside a state"):
        answers(frame, state=oc.FrameState())


def numbered(t: Any, **columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = len(t)
    return pd.DataFrame({"ds": t, "y": rng.normal(size=n), "mean": 0.0, "sd": 1.0, **columns})


@pytest.mark.parametrize("lag", ["2.3h", "4.1h", "0.29h", datetime.timedelta(hours=2.3), np.timedelta64(138, "m")])
def test_a_lag_is_never_cut_short(lag: Any) -> None:
    t = pd.date_range("2024-01-01", periods=120, freq="6min")
    frame = numbered(t)
    seconds = {"2.3h": 8280, "4.1h": 14760, "0.29h": 1044}.get(lag if isinstance(lag, str) else "2.3h", 8280)
    first = next(i for i in range(120) if (t[i] - t[10]).total_seconds() >= seconds)
    assert reads(frame, 10, lag=lag)[0] == first


@pytest.mark.filterwarnings("ignore:ignored outcomes that came long after")
def test_whether_an_outcome_comes_later_is_not_known_before() -> None:
    frame = numbered(np.arange(40.0))
    frame["known"] = frame.ds
    frame.loc[10, "known"] = 35.0
    gone = frame.assign(y=frame.y.where(frame.index != 10), known=frame.known.where(frame.index != 10))
    pd.testing.assert_frame_equal(answers(frame, known="known"), answers(gone, known="known"))
    live = []
    state = oc.FrameState()
    for at in range(40):
        seen = frame[: at + 1]
        there = (seen.known < at) & (seen.index < at)
        live.append(
            answers(seen.assign(y=seen.y.where(there), known=seen.known.where(there)), known="known", state=state)[-1:]
        )
    pd.testing.assert_frame_equal(pd.concat(live), answers(frame, known="known"))


def test_an_outcome_has_one_time_at_which_it_is_known() -> None:
    """The row one step ahead says when it was known; the one two steps ahead has no outcome of its own."""
    t = np.arange(30)
    one = numbered(t, cutoff=t - 1, h=1, known=t + 6)
    two = numbered(t, cutoff=t - 2, h=2, known=t).assign(y=np.nan)
    frame = pd.concat([one, two], ignore_index=True)
    found = [frame.cutoff[i] for i in reads(frame, 10, known="known", horizon="h")]
    assert found
    assert min(found) == 16


ODD: list[dict[str, Any]] = [
    *({"lag": np.timedelta64(*each)} for each in ((213504, "D"), (1, "M"), ("NaT",))),
    *({"lag": each} for each in (np.array(["2D", "3D"]), pd.array([1, 2]), True)),
    {"issued_every": np.timedelta64(0, "ns")},
]


@pytest.mark.parametrize("options", ODD)
def test_odd_lengths_of_time_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        answers(hourly(2), **options)
