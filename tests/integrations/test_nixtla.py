"""Nixtla: frames of the real library, the same numbers as by hand, days one by one, nothing known too early."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings

import orcast as oc
from helpers import SENTENCE
from orcast.integrations.nixtla import recalibrate

LEVEL = [80, 95]
SAID = {"ETS": 50.0, "ETS-lo-90": 45.0, "ETS-hi-90": 55.0}


@cache
def hours(days: int = 40) -> pd.DataFrame:
    """Two series of hourly humidity, one of which begins and ends a day earlier."""
    v = oc.datasets.load("humidity").values[: 24 * days]
    ds = pd.date_range("2013-01-01", periods=len(v), freq="h")
    north = pd.DataFrame({"unique_id": "north", "ds": ds, "y": v})
    south = pd.DataFrame({"unique_id": "south", "ds": ds - pd.Timedelta(days=1), "y": 100.0 - v[::-1]})
    return pd.concat([north, south], ignore_index=True)


@cache
def models() -> Any:
    library = pytest.importorskip("statsforecast")
    from statsforecast.models import Naive, SeasonalNaive

    return library.StatsForecast([SeasonalNaive(24), Naive()], freq="h")


@cache
def validated(h: int = 6, step: int = 6, windows: int = 20) -> pd.DataFrame:
    cv: pd.DataFrame = models().cross_validation(df=hours(), h=h, n_windows=windows, step_size=step, level=LEVEL)
    return cv


@cache
def predicted(h: int = 6) -> pd.DataFrame:
    frame: pd.DataFrame = models().forecast(df=hours(), h=h, level=LEVEL)
    return frame


def ends(frame: pd.DataFrame) -> pd.Series:
    """The last hour of the series of each row."""
    return frame["unique_id"].map(hours().groupby("unique_id")["ds"].max())


def panel(seed: int = 0, days: int = 40, h: int = 3, series: int = 2) -> pd.DataFrame:
    """Windows of a forecast that is too narrow, one a day."""
    rng = np.random.default_rng(seed)
    day = pd.date_range("2026-01-01", periods=days + h)
    rows = []
    for name in "ABCDEFGH"[:series]:
        y = rng.normal(52, 10, len(day))
        rows += [(name, day[t + k], day[t], y[t + k]) for t in range(days) for k in range(1, h + 1) if t + k < days]
    return pd.DataFrame(rows, columns=["unique_id", "ds", "cutoff", "y"]).assign(**SAID)


def split(frame: pd.DataFrame, day: Any) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """On a day: the windows before it with what was known, its own window, and the outcomes that were known."""
    early = frame[frame["cutoff"] < day].copy()
    early.loc[early["ds"] > day, "y"] = np.nan
    window = frame[frame["cutoff"] == day].drop(columns=["cutoff", "y"])
    known = frame.loc[frame["ds"] <= day, ["unique_id", "ds", "y"]].drop_duplicates()
    return early, window, known


# --- the real library


def test_is_recalibrate_of_both_frames_bit_for_bit() -> None:
    cv, f = validated(), predicted()
    after = recalibrate(f, cv, low=0, high=100)
    by_hand = oc.recalibrate(
        pd.concat([cv, f.assign(cutoff=ends(f), y=np.nan)], ignore_index=True),
        low=0,
        high=100,
        replace=True,
    )
    pd.testing.assert_frame_equal(after, by_hand[f.columns].tail(len(f)).reset_index(drop=True))
    assert not np.allclose(after["SeasonalNaive-lo-80"], f["SeasonalNaive-lo-80"])


def test_polars_is_the_same() -> None:
    library = pytest.importorskip("statsforecast")
    from statsforecast.models import Naive, SeasonalNaive

    df = pl.from_pandas(hours())
    sf = library.StatsForecast([SeasonalNaive(24), Naive()], freq="1h")
    cv = sf.cross_validation(df=df, h=6, n_windows=20, step_size=6, level=LEVEL)
    f = sf.forecast(df=df, h=6, level=LEVEL)
    after = recalibrate(f, cv, low=0, high=100)
    assert isinstance(after, pl.DataFrame)
    assert after.columns == f.columns
    expected = recalibrate(predicted(), validated(), low=0, high=100)
    both = after.to_pandas().set_index(["unique_id", "ds"]).sort_index()
    expected = expected.set_index(["unique_id", "ds"]).sort_index()
    np.testing.assert_array_equal(both[expected.columns].to_numpy(), expected.to_numpy())


def test_levels_beside_those_that_are_there() -> None:
    f = predicted()
    after: Any = recalibrate(f, validated(), level=[50])
    assert list(after.columns)[: len(f.columns)] == list(f.columns)
    assert set(after.columns) - set(f.columns) == {
        f"{m}-{end}-50" for m in ("Naive", "SeasonalNaive") for end in ("lo", "hi")
    }
    assert (after["Naive-lo-80"] < after["Naive-lo-50"]).all()


# --- what is known when


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5), st.data())
@settings(max_examples=20)
def test_later_outcomes_change_nothing(seed: int, h: int, step: int, draw: st.DataObject) -> None:
    """Windows of any overlap: an outcome moves only forecasts whose cutoff is its time or later."""
    frame = panel(seed, days=30, h=h, series=1)
    frame = frame[frame["cutoff"].isin(frame["cutoff"].unique()[::step])].reset_index(drop=True)
    changed = frame.copy()
    when = draw.draw(st.sampled_from(sorted(frame["ds"].unique())))
    changed.loc[changed["ds"] == when, "y"] += 30.0
    one, other = recalibrate(frame), recalibrate(changed)
    early = frame["cutoff"] < when
    columns = list(SAID)
    pd.testing.assert_frame_equal(one.loc[early, columns], other.loc[early, columns])
    late = frame["cutoff"] >= when
    if late.any():
        assert not one.loc[late, columns].equals(other.loc[late, columns])


@pytest.mark.parametrize("kind", ["dates", "whole numbers", "numbers", "zone", "text", "months"])
def test_day_by_day_is_as_if_in_one_frame(kind: str, tmp_path: Path) -> None:
    """Each day: the outcomes that came, and a new window without its cutoff; against one frame with everything."""
    frame = panel(days=18)
    frame["cutoff"], frame["ds"] = (_as(frame[name], kind) for name in ("cutoff", "ds"))
    expected = recalibrate(frame).set_index(["unique_id", "cutoff", "ds"])
    days = list(dict.fromkeys(frame["cutoff"]))
    state: Any = str(tmp_path / "panel.orcast") if kind in ("dates", "numbers") else oc.FrameState()
    early, _, _ = _on(frame, days, 10)
    for number in range(10, len(days)):
        _, window, known = _on(frame, days, number)
        history = early if number == 10 else known
        after = recalibrate(window, history, state=state)
        again = recalibrate(window, history, state=state)
        pd.testing.assert_frame_equal(after, again)
        for row in after.itertuples(index=False):
            there = expected.loc[(row[0], days[number], row[1]), list(SAID)]
            assert list(row[2:]) == there.tolist()


def _as(column: pd.Series, kind: str) -> Any:
    count = (column - pd.Timestamp("2026-01-01")).dt.days
    if kind == "whole numbers":
        return count
    if kind == "numbers":
        return count / 4.0
    if kind == "zone":
        return column.dt.tz_localize("Europe/Berlin")
    if kind == "text":
        return column.dt.strftime("%Y-%m-%d")
    if kind == "months":
        return [pd.Timestamp("2020-01-31") + pd.offsets.MonthEnd(int(each)) for each in count]
    return column


def _on(frame: pd.DataFrame, days: list[Any], number: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    place = {day: i for i, day in enumerate(days)}
    made = frame["cutoff"].map(place)
    due = made + frame.groupby(["unique_id", "cutoff"]).cumcount() + 1
    early = frame[made < number].copy()
    early.loc[due[made < number] > number, "y"] = np.nan
    known = frame.loc[due <= number, ["unique_id", "ds", "y"]].drop_duplicates(["unique_id", "ds"])
    return early, frame[made == number].drop(columns=["cutoff", "y"]).reset_index(drop=True), known


def test_a_cross_validation_of_days_that_were_lived_is_not_news() -> None:
    """Windows that came without their cutoff are those of cross_validation, which has one."""
    frame, state = panel(), oc.FrameState()
    days = sorted(frame["cutoff"].unique())
    for number in range(30, 33):
        early, window, known = split(frame, days[number])
        recalibrate(window, early if number == 30 else known, state=state)
    early, window, _ = split(frame, days[33])
    recals = len(state)
    after = recalibrate(window, early, state=state)  # what is late, or comes twice, would be said
    pd.testing.assert_frame_equal(after, recalibrate(window, early))
    assert (len(state), state.pending) == (recals, 2 * (3 + 2 + 1))


def test_a_state_is_that_of_the_core(tmp_path: Path) -> None:
    frame, path = panel(), tmp_path / "core.orcast"
    early, window, known = split(frame, sorted(frame["cutoff"].unique())[30])
    oc.recalibrate(early, state=path)
    pd.testing.assert_frame_equal(recalibrate(window, known, state=path), recalibrate(window, early))


def test_a_new_series_joins_a_state() -> None:
    frame, state = panel(), oc.FrameState()
    days = sorted(frame["cutoff"].unique())
    early, window, _ = split(frame, days[30])
    recalibrate(window[window["unique_id"] == "A"], early[early["unique_id"] == "A"], state=state)
    _, window, known = split(frame, days[31])
    after = recalibrate(window, known, state=state)
    assert after.notna().all().all()


# --- windows with rows left out


def calendar(kind: str, count: int) -> Any:
    freq = {"months": "ME", "business days": "B", "hours of a zone": "h", "days of a zone": "D"}.get(kind, "D")
    zone = "Europe/Berlin" if "zone" in kind else None
    return pd.date_range("2026-03-20", periods=count, freq=freq, tz=zone)


def windows(kind: str = "days", count: int = 40, h: int = 5, step: int = 1, seed: int = 0) -> pd.DataFrame:
    """Whole windows of two series, the later steps wider; the last has no outcomes."""
    rng, day = np.random.default_rng(seed), calendar(kind, count + h)
    parts = []
    for name in "AB":
        y = np.append(rng.normal(52, 10, count), np.full(h, np.nan))
        for t in range((count - 1) % step, count, step):
            parts.append(pd.DataFrame({"unique_id": name, "ds": day[t + 1 : t + 1 + h], "cutoff": day[t]}))
            parts[-1]["y"], parts[-1]["h"] = y[t + 1 : t + 1 + h], np.arange(1, h + 1)
    return _said(pd.concat(parts, ignore_index=True))


def _said(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{"ETS": 50.0, "ETS-lo-90": 50.0 - frame["h"], "ETS-hi-90": 50.0 + frame["h"]})


def today(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The last window, without its cutoff, and those before it, as far as their outcomes are known."""
    last = frame["cutoff"] == frame["cutoff"].max()
    return frame[last].drop(columns=["cutoff", "y"]), frame[~last & frame["y"].notna()]


def without(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="h")


KINDS = ["days", "months", "business days", "hours of a zone", "days of a zone"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1, 5])
def test_the_step_is_not_the_place_among_the_rows_that_are_left(kind: str, step: int) -> None:
    """Rows are missing in the history: the same numbers as with a column that says the step, or a sentence."""
    forecasts, past = today(windows(kind, count=400 if "hours" in kind else 60, step=step))
    gone = np.random.default_rng(1).random(len(past)) < 0.15
    gone |= past["ds"].isin(past["ds"].unique()[::11])
    expected = recalibrate(forecasts, past[~gone])
    after = recalibrate(without(forecasts), without(past[~gone]))
    pd.testing.assert_frame_equal(after, without(expected))
    whole = past.groupby(["unique_id", "cutoff"])["h"].transform("size") == 5
    pd.testing.assert_frame_equal(
        recalibrate(without(forecasts), without(past[whole])), without(recalibrate(forecasts, past[whole]))
    )


def test_forecasts_with_rows_left_out() -> None:
    forecasts, past = today(windows())
    whole = recalibrate(without(forecasts), without(past))
    for steps in ([1], [1, 3], [5]):
        rows = forecasts["h"].isin(steps)
        pd.testing.assert_frame_equal(recalibrate(without(forecasts[rows]), without(past)), whole[rows])
    with pytest.raises(ValueError, match="expected a column 'h' in history"):
        recalibrate(forecasts, without(past))


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_of_a_day_is_no_second_forecast(kind: str) -> None:
    forecasts, past = today(windows(kind))
    known = past[["unique_id", "ds", "y"]].drop_duplicates()
    once, twice = oc.FrameState(), oc.FrameState()
    recalibrate(without(forecasts), without(past), state=once)
    for history in (without(past), known, known):
        recalibrate(without(forecasts), history, state=twice)
    assert (len(twice), twice.pending) == (len(once), once.pending)


# --- outcomes alone


def test_outcomes_alone_that_differ_are_refused() -> None:
    frame = panel()
    days = sorted(frame["cutoff"].unique())
    early, window, _ = split(frame, days[30])
    _, later, known = split(frame, days[31])
    at = (known["unique_id"] == "A") & (known["ds"] == days[31])
    state = oc.FrameState()
    recalibrate(window, early, low=0, high=1000, state=state)
    both = pd.concat([known, known[at].assign(y=90.0)], ignore_index=True)
    for history in (both, both[::-1]):
        with pytest.raises(ValueError, match=SENTENCE):
            recalibrate(later, history, state=copy.deepcopy(state))


# --- series that learn together


@cache
def regions(days: int = 40) -> pd.DataFrame:
    """Four series in two regions."""
    frame = panel(days=days, series=4)
    return frame.assign(region=frame["unique_id"].map({"A": "x", "B": "y", "C": "x", "D": "y"}), site=1)


@pytest.mark.parametrize("pool", [False, True])
def test_pools_are_those_of_recalibrate(pool: bool) -> None:
    frame = regions().drop(columns=["region", "site"])
    early, window, _ = split(frame, sorted(frame["cutoff"].unique())[30])
    now = recalibrate(window, early, model="ETS", pool=pool)
    at_once = pd.concat([early, frame[frame["cutoff"] == frame["cutoff"].unique()[30]].assign(y=np.nan)])
    expected = oc.recalibrate(at_once, model="ETS", replace=True, pool=pool).tail(len(window))
    pd.testing.assert_frame_equal(now, expected[window.columns])


# --- frames that do not fit


@pytest.mark.parametrize("name", ["bounds", "contexts"])
def test_days_one_by_one_with_bounds_and_with_contexts(name: str) -> None:
    frame = panel(days=24).assign(weekday="M")
    frame["hour"] = frame["ds"].dt.day_of_week
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(7)) * oc.by("weekday", values="MT"))
    bounds = {"low": -10, "high": 120}
    options: dict[str, Any] = {"model": "ETS", **(bounds if name == "bounds" else {"payoff": payoff})}
    expected = recalibrate(frame, **options)
    days = sorted(frame["cutoff"].unique())
    state = oc.FrameState()
    for day in days[15:]:
        early, window, known = split(frame, day)
        after = recalibrate(window, early if day == days[15] else known, state=state, **options)
        pd.testing.assert_frame_equal(after[list(SAID)], expected.loc[expected["cutoff"] == day, list(SAID)])


@pytest.mark.parametrize("name", ["low", "high"])
def test_outcomes_alone_bring_columns_that_options_name(name: str) -> None:
    frame = regions().assign(low=0.0, high=100.0)[["unique_id", "ds", "cutoff", "y", *SAID, "region", "low", "high"]]
    options: dict[str, Any] = {"model": "ETS", name: name}
    expected, state = recalibrate(frame, **options), oc.FrameState()
    days = sorted(frame["cutoff"].unique())
    for day in days[25:29]:
        early, window, known = split(frame, day)
        outcomes = known.merge(frame[["unique_id", "ds", name]].drop_duplicates())
        after = recalibrate(window, early if day == days[25] else outcomes, state=state, **options)
        pd.testing.assert_frame_equal(after[list(SAID)], expected.loc[expected["cutoff"] == day, list(SAID)])
    with pytest.raises(ValueError, match=f"in every row of '{name}', got"):
        recalibrate(window, known, state=state, **options)


def refused() -> dict[str, Any]:
    frame = panel()
    early, window, known = split(frame, sorted(frame["cutoff"].unique())[30])
    return {
        "nothing to learn from": lambda: recalibrate(window),
        "outcomes without a state": lambda: recalibrate(window, known),
        "no series": lambda: recalibrate(window.drop(columns="unique_id"), early),
        "no times": lambda: recalibrate(window, early.drop(columns="ds")),
        "no outcomes": lambda: recalibrate(window, early.drop(columns="y")),
        "no cutoffs": lambda: recalibrate(window, early.drop(columns="cutoff")),
        "no cutoffs, alone": lambda: recalibrate(early.drop(columns="cutoff").drop_duplicates(["unique_id", "ds"])),
        "other levels": lambda: recalibrate(window, early.drop(columns="ETS-lo-90")),
        "another model": lambda: recalibrate(window, early.rename(columns=lambda c: c.replace("ETS", "AR"))),
        "no such model": lambda: recalibrate(window, early, model="AR"),
        "other series": lambda: recalibrate(window, early.assign(unique_id=7)),
        "other times": lambda: recalibrate(window, early.assign(ds=range(len(early)), cutoff=0)),
        "other cutoffs": lambda: recalibrate(window, early.assign(cutoff=3)),
        "a level": lambda: recalibrate(window, early, level=[120]),
        "a fraction of 1": lambda: recalibrate(window, early, level=["a"]),
        "levels as text": lambda: recalibrate(window, early, level="80"),
        "no frame": lambda: recalibrate([1, 2], early),
        "no history": lambda: recalibrate(window, {"y": 1}),
        "twice": lambda: recalibrate(pd.concat([window, window]), early),
    }


@pytest.mark.parametrize("name", refused())
def test_what_does_not_fit_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=SENTENCE):
        refused()[name]()
