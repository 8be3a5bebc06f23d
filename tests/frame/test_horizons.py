"""Horizons are counted by the clock: a row that is missing moves no other into another game."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import orcast as oc
from orcast.frame.times import NO_STEP, Step, find_step

LEVELS = np.array([0.1, 0.5, 0.9])
NAMES = [f"q{level:g}" for level in LEVELS]
OUT = [f"orcast_{name}" for name in NAMES]
FREQS = {
    "W": "W-SUN", "D": "D", "h": "h", "MS": "MS", "ME": "ME", "QE": "QE", "YS": "YS", "B": "B", "15min": "15min"
}  # fmt: skip


def panel(
    freq: str = "W", series: int = 3, cutoffs: int = 14, horizons: int = 4, zone: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """Forecasts at several horizons, with their true horizon in ``h``."""
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2024-01-05", periods=cutoffs + horizons, freq=FREQS[freq], tz=zone)
    rows = []
    for s in range(series):
        y = rng.normal(50.0, 10.0, len(dates))
        for c in range(cutoffs):
            for h in range(1, horizons + 1):
                q = 50.0 + (3.0 + h) * np.array([-1.0, 0.1 * s, 1.0])
                rows.append((f"s{s}", dates[c + h], dates[c], h, y[c + h], *q))
    return pd.DataFrame(rows, columns=["unique_id", "ds", "cutoff", "h", "y", *NAMES])


def thinned(frame: pd.DataFrame, share: float, seed: int = 1) -> pd.DataFrame:
    """Some rows are missing; those that are left know when their outcome came."""
    return frame[np.random.default_rng(seed).random(len(frame)) >= share]


def answers(frame: pd.DataFrame, **options: Any) -> np.ndarray:
    return oc.recalibrate(frame, workers=1, **options)[OUT].to_numpy()


@pytest.mark.parametrize("freq", FREQS)
def test_a_missing_row_moves_no_other(freq: str) -> None:
    """The same as with a column that says the horizon."""
    frame = thinned(panel(freq), 0.15)
    told = answers(frame, horizon="h")
    np.testing.assert_array_equal(answers(frame.drop(columns="h")), told)
    ranks = frame.assign(h=frame.groupby(["unique_id", "cutoff"])["ds"].rank().astype(int))
    assert not np.array_equal(answers(ranks, horizon="h"), told)


@pytest.mark.parametrize("kind", ["whole numbers", "numbers"])
def test_times_that_are_numbers(kind: str) -> None:
    frame = thinned(panel("D"), 0.15)
    start = pd.Timestamp("2024-01-05")
    for name in ("ds", "cutoff"):
        days = (frame[name] - start).dt.days
        of = {"whole numbers": days, "numbers": days * 1.0}
        frame[name] = of[kind]
    np.testing.assert_array_equal(answers(frame.drop(columns="h")), answers(frame, horizon="h"))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("freq", ["D", "MS", "ME", "B", "W"])
def test_clocks_that_change(zone: str, freq: str) -> None:
    """Days of 23 and 25 hours, and months that begin in the one before by the clock of Greenwich."""
    frame = thinned(panel(freq, cutoffs=90 if freq in "DB" else 14, series=1, zone=zone), 0.1)
    np.testing.assert_array_equal(answers(frame.drop(columns="h")), answers(frame, horizon="h"))


def test_few_days_with_a_clock_change_have_steps_of_a_day() -> None:
    """The shortest lead is 23 hours long, and is one step as the others are."""
    frame = panel("D", series=1, cutoffs=5, horizons=2)
    frame[["ds", "cutoff"]] = (frame[["ds", "cutoff"]] + pd.Timedelta(days=83)).apply(
        lambda each: each.dt.tz_localize("Europe/Berlin")
    )
    np.testing.assert_array_equal(answers(frame.drop(columns="h")), answers(frame, horizon="h"))


def test_forecasts_issued_together() -> None:
    hours = pd.date_range("2026-01-01", periods=24 * 12, freq="h")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ds": hours, "y": rng.normal(size=len(hours)), "q0.1": -1.0, "q0.5": 0.0, "q0.9": 1.0})
    frame = thinned(frame, 0.1)
    cutoff = frame["ds"].dt.normalize() - pd.Timedelta(1, "ns")
    told = frame.assign(cutoff=cutoff, h=frame["ds"].dt.hour + 1)
    np.testing.assert_array_equal(answers(frame, issued_every="daily"), answers(told, horizon="h"))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["W", "MS", "B", "D"]), st.lists(st.integers(1, 11), max_size=3))
@example(1968, "W", [11])  # the last part brings nothing to play to a game that waits
def test_a_frame_may_be_cut_into_calls_with_a_state(seed: int, freq: str, cuts: list[int]) -> None:
    frame = thinned(panel(freq, cutoffs=12, seed=seed), 0.1, seed).drop(columns="h")
    whole = oc.recalibrate(frame, workers=1)
    number = np.unique(frame["cutoff"], return_inverse=True)[1]
    ends, state, parts = sorted({0, *cuts, 12}), oc.FrameState(), []
    for a, b in pairwise(ends):
        part = frame[(number >= a) & (number < b)]
        if len(part):
            parts.append(oc.recalibrate(part, state=state))
    np.testing.assert_array_equal(pd.concat(parts).loc[whole.index, OUT].to_numpy(), whole[OUT].to_numpy())


def test_a_state_that_began_with_too_little_is_not_continued_otherwise() -> None:
    """Every second week at first, all weeks later: that would be other horizons, and the state is as it was."""
    frame = panel("W", series=1)
    first = frame["cutoff"] == frame["cutoff"].min()
    state = oc.FrameState()
    oc.recalibrate(frame[first & frame["h"].isin([2, 4])].drop(columns="h"), state=state)
    with pytest.raises(ValueError, match="expected times in the steps of earlier frames"):
        oc.recalibrate(frame[~first].drop(columns="h"), state=state)
    assert len(state) == 2
    begun = oc.FrameState()
    oc.recalibrate(frame[first & (frame["h"] == 2)].drop(columns="h"), state=begun)
    with pytest.raises(ValueError, match="expected times in the steps of earlier frames"):
        oc.recalibrate(frame[~first].drop(columns="h"), state=begun)
    # one horizon only is one game, whatever it is called
    alone, whole = frame[frame["h"] == 4].drop(columns="h"), oc.FrameState()
    parts = [oc.recalibrate(part, state=whole) for _, part in alone.groupby("cutoff")]
    np.testing.assert_array_equal(pd.concat(parts)[OUT].to_numpy(), answers(alone))


def test_a_state_that_began_on_working_days_goes_on_through_the_weekend() -> None:
    frame = panel("D", series=1, cutoffs=12, horizons=1).drop(columns="h")
    frame[["ds", "cutoff"]] += pd.Timedelta(days=3)  # from Monday on
    state = oc.FrameState()
    parts = [oc.recalibrate(frame[i : i + 1], state=state) for i in range(len(frame))]
    np.testing.assert_array_equal(pd.concat(parts)[OUT].to_numpy(), answers(frame))


def test_steps_that_are_none() -> None:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.integers(1, 10**6, 50)) * 10**9
    codes = np.zeros(50, dtype=np.intp)
    assert find_step("dates", codes, times, times - 10**9) == NO_STEP
    with pytest.raises(ValueError, match=r"expected times in regular steps.*by horizon="):
        find_step("dates", codes, times, np.zeros_like(times))
    assert find_step("dates", codes[:1], times[:1], times[:1] - 1) == NO_STEP
    four_weeks = np.arange(20) * 28 * 24 * 3600 * 10**9
    step = find_step("dates", codes[:20], four_weeks, four_weeks - 1)
    assert step == Step("length", 28 * 24 * 3600 * 10**9)
    assert step.ahead("dates", four_weeks[1:3], four_weeks[:2] - 1, first=False).tolist() == [2, 2]


def test_a_short_series_has_the_step_of_the_others() -> None:
    """One that has every second day alone has the horizons that it would have among others."""
    frame = panel("D", series=2, cutoffs=11, horizons=2)
    short = (frame["unique_id"] == "s1") & ((frame["cutoff"] > frame["cutoff"].min()) | (frame["h"] == 1))
    np.testing.assert_array_equal(answers(frame[~short].drop(columns="h")), answers(frame[~short], horizon="h"))
