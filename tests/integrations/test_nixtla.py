"""Nixtla: frames of the real library, the same numbers as by hand, days one by one, nothing known too early."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

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
    more: Any = recalibrate(f, cv, level=[50])
    assert list(more.columns)[: len(f.columns)] == list(f.columns)
    new = {f"{m}-{end}-50" for m in ("Naive", "SeasonalNaive") for end in ("lo", "hi")}
    assert set(more.columns) - set(f.columns) == new
    assert (more["Naive-lo-80"] < more["Naive-lo-50"]).all()


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


@pytest.mark.parametrize("kind", ["dates", "numbers", "zone", "text", "months"])
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
        pd.testing.assert_frame_equal(after, again)  # a second run of a day is no second forecast
        for row in after.itertuples(index=False):
            there = expected.loc[(row[0], days[number], row[1]), list(SAID)]
            assert list(row[2:]) == there.tolist()


def _as(column: pd.Series, kind: str) -> Any:
    count = (column - pd.Timestamp("2026-01-01")).dt.days
    if kind == "numbers":
        return count * 1.0
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


def test_a_new_series_joins_a_state() -> None:
    frame, state = panel(), oc.FrameState()
    days = sorted(frame["cutoff"].unique())
    early, window, _ = split(frame, days[30])
    recalibrate(window[window["unique_id"] == "A"], early[early["unique_id"] == "A"], state=state)
    _, window, known = split(frame, days[31])
    after = recalibrate(window, known, state=state)
    assert after.notna().all().all()


def test_rows_may_be_left_out_and_options_name_columns_of_the_outcomes() -> None:
    frame = panel(days=24).assign(high=100.0)
    days = sorted(frame["cutoff"].unique())
    early, window, _ = split(frame, days[20])
    whole = recalibrate(window, early, model="ETS", high="high")
    for steps in ([1], [0, 2]):
        rows = window.groupby("unique_id").cumcount().isin(steps)
        pd.testing.assert_frame_equal(recalibrate(window[rows], early, model="ETS", high="high"), whole[rows])
    expected, state = recalibrate(frame, model="ETS", high="high"), oc.FrameState()
    recalibrate(window, early, model="ETS", high="high", state=state)
    _, window, known = split(frame, days[21])
    after = recalibrate(window, known.assign(high=100.0), model="ETS", high="high", state=state)
    pd.testing.assert_frame_equal(after[list(SAID)], expected.loc[expected["cutoff"] == days[21], list(SAID)])
    at = known["ds"] == days[21]
    both = pd.concat([known, known[at].assign(y=90.0)], ignore_index=True).assign(high=100.0)
    for history in (both, known):  # outcomes that differ, and without the column
        with pytest.raises(ValueError, match=SENTENCE):
            recalibrate(window, history, model="ETS", high="high", state=copy.deepcopy(state))


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
