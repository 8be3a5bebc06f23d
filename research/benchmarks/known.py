"""Gain that is reported with and without issue times; the true gain is that with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.evidence import collect, difference, reference_scores, verdict
from research.benchmarks.lines import Line, Lines
from research.experiments import data
from research.output import optional

pd = optional("pandas")

TITLE = "Known when: gains with and without issue times"
LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
ASSUMED = "each outcome counts as known before the next forecast is issued"
MOST_WIDER = 1.05

Vector = NDArray[np.float64]


def day_ahead(y: Vector) -> Any:
    """Hourly wind, 24 hours of a day issued at 10:00 the day before.

    The mean of an hour is that of the last four weeks plus the fading deviation of the last known hour.
    """
    ds = pd.date_range("2022-01-01", periods=len(y), freq="h")
    days = y[: len(y) // 24 * 24].reshape(-1, 24)
    rows = []
    ahead = np.arange(15, 39)  # hours from 10:00; the hour from 9 to 10 is known
    for day in range(30, len(days)):
        usual = days[day - 29 : day - 1].mean(axis=0)
        mean = usual + 0.96**ahead * (days[day - 1, 9] - usual[9])
        spread = days[day - 29 : day - 1].std(axis=0) * np.sqrt(1.0 - 0.9 * 0.96 ** (2 * ahead))
        rows.append(np.column_stack((np.arange(24 * day, 24 * day + 24), mean, spread)))
    place, mean, spread = np.concatenate(rows).T
    at = place.astype(int)
    values = mean[:, None] + np.outer(spread, oc.Normal(0.0, 1.0).quantile(LEVELS))
    return pd.DataFrame({"ds": ds[at], "y": y[at]} | {f"q{level:g}": values[:, i] for i, level in enumerate(LEVELS)})


def reported(frame: Any, low: float, **times: Any) -> tuple[float, str]:
    """Ratio of losses as the verdict reports it; with the ratio of the last known outcome and the first line."""
    out = oc.recalibrate(frame, low=low, **times)
    (evidence,) = collect(out, low=low, **times)
    found, last = difference(evidence), reference_scores(evidence)
    assert found is not None
    assert last is not None
    beside = f"last known outcome {last.loss['reference'] / last.loss['before']:.3f}"
    return found.after / found.before, f"{beside}; {verdict(evidence)[0]}"


def measure(quick: bool = False) -> Lines:
    """Wind a day ahead, and the bound of a series with missing outcomes."""
    series = data.best("wind")
    name, frame = f"{series.name}, day ahead", day_ahead(series.values)
    frame = frame.tail(1200) if quick else frame
    true, first = reported(frame, series.low, issued_every="daily", lag="14h")
    yield Line(name, "pinball / base forecast's, true", true, form=".3f", note=first)
    flattering, first = reported(frame, series.low)
    yield Line(name, "the same without issue times", flattering, form=".3f", note=first)
    honest = flattering >= true or ASSUMED in first.lower()
    yield Line(name, "caveat stated if it flatters", float(honest), 1.0, ">=", ".0f")
    yield _missing()


def _missing() -> Line:
    """400 rows with 10 outcomes missing at random: the bound counts the settled rounds."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"ds": np.arange(400), "y": rng.normal(size=400), "mean": 0.3, "sd": 0.7})
    whole = oc.recalibrate(frame)["orcast_promised"].iloc[-1]
    wider = []
    for seed in range(10):
        gone = np.random.default_rng(seed).choice(399, 10, replace=False)
        holes = frame.assign(y=frame.y.where(~frame.ds.isin(gone)))
        wider.append(oc.recalibrate(holes)["orcast_promised"].iloc[-1] / whole)
    case, what = "400 rows, 10 outcomes missing", "bound / without gaps, worst"
    return Line(case, what, max(wider), MOST_WIDER, note=f"bound {whole:.4f} without gaps; ten draws")
