"""Pictures of an evaluation as SVG: notebooks show them, `save` writes a file, the report contains them."""

from __future__ import annotations

import numpy as np

from orcast.evaluate import calibration
from orcast.evaluate.calibration import ends_of, level_name, main_share, place_of
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.monitoring import alarms
from orcast.evaluate.svg import Mark, Picture, around, name_axis, number_axis, shortened
from orcast.evaluate.tables import by_series
from orcast.monitors import ALPHA

__all__ = ["Picture", "evidence", "fan", "reliability"]

SIDES = {"before": "base forecast", "after": "recalibrated"}
ENDS = np.array([0.0, 1.0])
# Forecasts of a fan.
LAST = 120


def _example() -> Evaluation:
    """Evaluation of 200 standard normal outcomes, with intervals that are too narrow before."""
    y = np.random.default_rng(0).normal(size=200)
    narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    return Evaluation.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], timed=True)


def reliability(evaluation: Evaluation) -> Picture:
    """Observed frequency against the level of the quantile or the probability; the diagonal is calibrated.

    Examples
    --------
    >>> reliability(_example()).title
    'Reliability: 2 → 0 of 3 points outside the chance band'
    """
    found = {side: calibration.reliability(evaluation, side) for side in evaluation.sides}
    last = found[evaluation.sides[-1]]
    marks = [
        Mark("area", "chance", last.nominal, last.high, last.low, label="chance band"),
        Mark("line", "target", ENDS, ENDS, label="calibrated"),
    ]
    for side, each in found.items():
        marks.append(Mark("line", side, each.nominal, each.observed, label=SIDES[side]))
        if each.nominal.size <= 25:
            marks.append(Mark("dot", side, each.nominal, each.observed))
    quantiles = evaluation.kind == "quantiles"
    names = ("level of the quantile", "outcomes below it") if quantiles else ("forecast probability", "frequency")
    x, y = (number_axis(name, 0.0, 1.0, share=True) for name in names)
    outside = " → ".join(str(each.outside) for each in found.values())
    title = f"Reliability: {outside} of {last.low.size} points outside the chance band"
    return Picture(title, x, y, tuple(marks), height=340)


def evidence(evaluation: Evaluation) -> Picture:
    """Evidence against calibration over the rows of the series with the most, and the threshold of an alarm.

    Examples
    --------
    >>> evidence(_example()).title
    'Evidence against calibration (threshold 20, valid at any time)'
    """
    worst = alarms(evaluation, evaluation.sides[-1])[0]
    threshold = float(np.log10(1.0 / ALPHA))
    ends, marks, shown = np.array([1.0, float(len(worst.pits))]), [], [np.array([0.0, threshold])]
    marks.append(Mark("line", "target", ends, np.full(2, threshold), label="threshold"))
    for side in evaluation.sides:
        own = next(each for each in alarms(evaluation, side) if each.code == worst.code)
        at = np.unique(np.linspace(0.0, len(own.pits) - 1.0, 400).astype(np.intp))
        shown.append(np.log10(np.maximum(own.path[at, 0], 1e-3)))
        marks.append(Mark("line", side, np.asarray(at + 1.0), shown[-1], label=SIDES[side]))
    name = f" of {shortened(worst.name, 30)}" if worst.name else ""
    title = f"Evidence against calibration{name} (threshold {1.0 / ALPHA:g}, valid at any time)"
    return Picture(title, number_axis("row", *ends), around("log10 of the e-process", *shown), tuple(marks))


def fan(evaluation: Evaluation) -> Picture:
    """Last forecasts and outcomes of the series with the worst coverage.

    Examples
    --------
    >>> fan(_example()).title
    'Last 120 of 200 outcomes'
    """
    if evaluation.kind != "quantiles":
        raise ValueError(f"expected an evaluation of quantiles, got kind {evaluation.kind!r}")
    series = next(iter(by_series(evaluation)["series"]), "")
    mine = np.flatnonzero(evaluation.series == (evaluation.names.index(series) if evaluation.rows else -1))
    total = mine.size
    # of several forecasts of one time the last is shown
    if evaluation.time is not None and evaluation.overlap and total:
        own = evaluation.time[mine]
        mine = mine[np.append(own[1:] != own[:-1], True)]
    mine = mine[-LAST:]
    x = np.arange(0.5, mine.size)
    times = np.arange(total - mine.size, total) + 1 if evaluation.time is None else evaluation.time[mine]
    if times.dtype.kind == "M":
        days = bool((times == times.astype("datetime64[D]")).all())
        times = times.astype("datetime64[D]" if days else "datetime64[m]")
    marks = _fan_marks(evaluation, mine, x)
    drawn = [v for mark in marks for v in (mark.y, mark.base) if v is not None]
    marks.append(Mark("dot", "outcome", x, evaluation.y[mine], label="outcome"))
    y = around("outcome", evaluation.y[mine], *drawn)
    name = f"{shortened(series, 40)}: last" if series else "Last"
    title = f"{name} {mine.size:,} of {total:,} outcomes"
    return Picture(title, name_axis("time", list(times), 5), y, tuple(marks), height=280)


def _fan_marks(evaluation: Evaluation, mine: np.ndarray, x: np.ndarray) -> list[Mark]:
    """Main interval, or from the lowest level to the highest; the median; the ends of the base forecast's interval."""
    side, share, median = evaluation.sides[-1], main_share(evaluation.levels), place_of(evaluation.levels, 0.5)
    lower, upper = (0, evaluation.levels.size - 1) if share is None else ends_of(evaluation, share)
    rows, name = evaluation.side(side)[mine], "quantiles" if share is None else f"{level_name(share)} interval"
    marks = [Mark("area", f"outer {side}", x, rows[:, upper], rows[:, lower], label=f"{name}, {SIDES[side]}")]
    if median is not None:
        marks.append(Mark("line", f"thin {side}", x, rows[:, median], label=f"median, {SIDES[side]}"))
    if side == "after":
        for column, label in ((lower, f"{name}, {SIDES['before']}"), (upper, "")):
            marks.append(Mark("line", "thin before", x, evaluation.before[mine, column], label=label))
    return marks
