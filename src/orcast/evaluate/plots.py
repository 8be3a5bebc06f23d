"""Pictures of an evaluation as SVG: notebooks show them, `save` writes a file, the report contains them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from orcast.evaluate import calibration
from orcast.evaluate.calibration import ends_of, level_name, main_share, place_of
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.monitoring import alarms, threshold_of
from orcast.evaluate.svg import Axis, Mark, Picture, around, name_axis, number_axis, shortened

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
    """Evidence against calibration over the rows of the series with the most, and the threshold of its alarm.

    Examples
    --------
    >>> evidence(_example()).title
    'Evidence against calibration (valid at any time)'
    """
    found = alarms(evaluation, evaluation.sides[-1])
    worst, paths, since = found[0], {}, {}
    for side in evaluation.sides:
        own = next(each for each in alarms(evaluation, side) if each.code == worst.code)
        paths[side] = own.path
        if own.alarm and (raised := own.monitor.miscalibrated) is not None:
            since[side] = int(np.searchsorted(own.rows, own.monitors[0][1][raised.since - 1]))
    times = None if worst.times is None else worst.times[worst.rows]
    name = f" of {shortened(worst.name, 30)}" if worst.name else ""
    end = " at the last row"  # e-BH names series by their evidence there
    return evidence_over(paths, times, since, threshold_of(found), f"Evidence against calibration{name}", end)


def evidence_over(
    paths: Mapping[str, np.ndarray],
    times: np.ndarray | None,
    since: Mapping[str, int],
    threshold: float,
    title: str,
    end: str = "",
) -> Picture:
    """Evidence by side after each row, with the threshold, and the row since when each side is in alarm."""
    rows = len(next(iter(paths.values())))
    at = np.unique(np.linspace(0.0, rows - 1.0, 400).astype(np.intp))
    limit, shown = math.log10(threshold), {side: np.log10(np.maximum(path, 1e-3))[at] for side, path in paths.items()}
    x = time_axis(np.arange(1, rows + 1) if times is None else times, "row" if times is None else "time")
    y = around("log10 of the evidence (e-process)", [0.0, limit], *shown.values())
    marks = [Mark("line", side, at.astype(np.float64) + 0.5, path, label=SIDES[side]) for side, path in shown.items()]
    for side, row in since.items():
        ends, label = np.array([y.low, y.high]), f"{SIDES[side]}: alarm since"
        marks.append(Mark("line", f"thin {side}", np.full(2, row + 0.5), ends, label=label))
    label = f"alarm{end}: {limit:.1f} (evidence {threshold:,.0f})"
    marks.append(Mark("line", "target", ENDS * rows, np.full(2, limit), label=label))
    return Picture(f"{title} (valid at any time)", x, y, tuple(marks))


def time_axis(times: np.ndarray, label: str = "time") -> Axis:
    """Axis with a unit for each time; those of dates have as many digits as tell the ticks apart."""
    if times.dtype.kind != "M":
        return name_axis(label, list(times), 5)
    every = max(1, -(-times.size // 5))
    days = bool((times == times.astype("datetime64[D]")).all())
    for unit in ("D",) if days else ("m", "s", "ms", "us"):
        texts = times.astype(f"datetime64[{unit}]").astype(str).tolist()
        if len(set(texts[::every])) == len(np.unique(times[::every])):
            break
    if not days and len({text[:10] for text in texts}) == 1:
        label, texts = f"{label} on {texts[0][:10]}", [text[11:] for text in texts]
    return name_axis(label, texts, 5 if len(texts[0]) < 16 else 3)  # long ones would touch


def fan(evaluation: Evaluation) -> Picture:
    """Last forecasts and outcomes of the series with the most evidence against calibration.

    Examples
    --------
    >>> fan(_example()).title
    'Last 120 of 200 outcomes'
    """
    if evaluation.kind != "quantiles":
        raise ValueError(f"expected an evaluation of quantiles, got kind {evaluation.kind!r}")
    worst = alarms(evaluation, evaluation.sides[-1])[:1]
    series = worst[0].name if worst else ""
    mine = worst[0].rows if worst else np.empty(0, dtype=np.intp)
    total = mine.size
    # of several forecasts of one time the last is shown
    if evaluation.time is not None and evaluation.overlap and total:
        own = evaluation.time[mine]
        mine = mine[np.append(own[1:] != own[:-1], True)]
    mine = mine[-LAST:]
    x = np.arange(0.5, mine.size)
    times = np.arange(total - mine.size, total) + 1 if evaluation.time is None else evaluation.time[mine]
    marks = _fan_marks(evaluation, mine, x)
    drawn = [v for mark in marks for v in (mark.y, mark.base) if v is not None]
    marks.append(Mark("dot", "outcome", x, evaluation.y[mine], label="outcome"))
    y = around("outcome", evaluation.y[mine], *drawn)
    name = f"{shortened(series, 40)}: last" if series else "Last"
    title = f"{name} {mine.size:,} of {total:,} outcomes"
    return Picture(title, time_axis(times), y, tuple(marks), height=280)


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
