"""What was known when: the gain that is reported with and without issue times, and the gain that is there.

Each case is a real series with an expert of ours that uses only what was known then.  The true ratio is that
of the game played with the times at which forecasts were issued and outcomes known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import orcast as oc
from benchmarks import known_wrappers
from benchmarks.results import Line, Remark
from orcast.evidence import collect, difference, reference_scores, verdict
from orcast.paper.experiments import data

TITLE = "What was known when"
LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
NAMES = [f"q{level:g}" for level in LEVELS]
SPREADS = oc.Normal(0.0, 1.0).quantile(LEVELS)
ASSUMED = "each outcome counts as known before the next forecast is issued"
# The promise with gaps, beside that without.
MOST_WIDER = 1.05

Vector = NDArray[np.float64]


def around(frame: pd.DataFrame, mean: Vector, spread: Vector) -> pd.DataFrame:
    """Normal quantiles beside the rows of a frame."""
    values = mean[:, None] + np.outer(spread, SPREADS)
    return frame.assign(**dict(zip(NAMES, values.T, strict=True)))


def wind_day_ahead() -> tuple[pd.DataFrame, dict[str, Any]]:
    """Hourly wind, 24 hours of a day issued at 10:00 the day before.

    The mean of that hour over four weeks, and what the last known hour was above it, which fades.
    """
    y = np.asarray(data.load("wind").values, dtype=np.float64)
    ds = pd.date_range("2022-01-01", periods=len(y), freq="h")
    days = y[: len(y) // 24 * 24].reshape(-1, 24)
    rows = []
    ahead = np.arange(15, 39)  # hours from 10:00, the hour from 9 to 10 being known
    for day in range(30, len(days)):
        usual = days[day - 29 : day - 1].mean(axis=0)
        last = days[day - 1, 9] - usual[9]
        mean = usual + 0.96**ahead * last
        spread = days[day - 29 : day - 1].std(axis=0) * np.sqrt(1.0 - 0.9 * 0.96 ** (2 * ahead))
        rows.append(np.column_stack((np.arange(24 * day, 24 * day + 24), mean, spread)))
    place, mean, spread = np.concatenate(rows).T
    at = place.astype(int)
    frame = pd.DataFrame({"ds": ds[at], "y": y[at]})
    return around(frame, mean, spread), {"issued_every": "daily", "lag": "14h"}


def weekly_late() -> tuple[pd.DataFrame, dict[str, Any]]:
    """Weekly carbon dioxide at Mauna Loa: a year ago and the usual growth; known two weeks after its week."""
    from statsmodels.datasets import co2  # type: ignore[import-untyped]

    series = co2.load_pandas().data["co2"].interpolate()
    y = series.to_numpy()
    growth = pd.Series(y).diff(52).rolling(52).mean().shift(3).to_numpy()
    mean = pd.Series(y).shift(52).to_numpy() + growth
    spread = pd.Series(y - mean).rolling(104).std().shift(3).to_numpy()
    good = np.isfinite(spread)
    frame = pd.DataFrame({"ds": series.index[good], "y": y[good]})
    return around(frame, mean[good], spread[good]), {"lag": "14D"}


def daily_with_gaps() -> tuple[pd.DataFrame, dict[str, Any]]:
    """Daily wind of which one day in twenty is missing: the mean of the last week that was known."""
    hours = np.asarray(data.load("wind").values, dtype=np.float64)
    whole = hours[: len(hours) // 24 * 24].reshape(-1, 24).sum(axis=1)
    y = pd.Series(whole)
    y[np.random.default_rng(0).random(len(y)) < 0.05] = np.nan
    mean = y.rolling(7, min_periods=3).mean().shift(1)
    spread = (y - mean).rolling(28, min_periods=10).std().shift(1)
    good = spread.notna()
    frame = pd.DataFrame({"ds": pd.date_range("2022-01-01", periods=len(y)), "y": y})[good]
    return around(frame, mean[good].to_numpy(), spread[good].to_numpy()), {"lag": "0D"}


CASES = {"wind, day ahead": wind_day_ahead, "CO2, two weeks late": weekly_late, "daily wind with gaps": daily_with_gaps}


def reported(frame: pd.DataFrame, **times: Any) -> tuple[float, str]:
    """The ratio of the losses as the verdict has it; its first line, and the ratio of the last known outcome's loss."""
    out = oc.recalibrate(frame, low=0, **times)
    (evidence,) = collect(out, low=0, **times)
    found = difference(evidence)
    last = reference_scores(evidence)
    assert found is not None
    assert last is not None
    beside = f"last known outcome {last.loss['reference'] / last.loss['before']:.3f}"
    return found.after / found.before, f"{beside}; {verdict(evidence)[0]}"


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    for name, make in CASES.items():
        if "wind" in name and "wind" not in data.available():
            yield Remark(f"{name}: skipped, no data folder has the wind series")
            continue
        frame, times = make()
        if quick:
            frame = frame.tail(1200)
        true, said = reported(frame, **times)
        flattering, first = reported(frame)
        yield Line(name, "pinball / as given, true", true, form=".3f", note=said)
        yield Line(name, "the same, no issue times given", flattering, form=".3f", note=first)
        honest = flattering >= true or ASSUMED in first.lower()
        yield Line(name, "no gain beyond what is said", float(honest), 1.0, sense="=", form=".0f")
    yield from gaps()
    yield from known_wrappers.sktime(quick)


def gaps() -> Iterator[Line | Remark]:
    """400 rows, 10 outcomes missing at random: the promise counts what was settled."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"ds": np.arange(400), "y": rng.normal(size=400), "mean": 0.3, "sd": 0.7})
    whole = oc.recalibrate(frame)["orcast_promised"].iloc[-1]
    wider = []
    for seed in range(10):
        gone = np.random.default_rng(seed).choice(399, 10, replace=False)
        holes = frame.assign(y=frame.y.where(~frame.ds.isin(gone)))
        wider.append(oc.recalibrate(holes)["orcast_promised"].iloc[-1] / whole)
    note = f"promised {whole:.4f} without gaps; ten draws"
    yield Line("400 rows, 10 outcomes missing", "promised / without gaps, worst", max(wider), MOST_WIDER, note=note)
