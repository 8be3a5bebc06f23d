"""Pictures of evidence as SVG: notebooks show them, `save` writes a file, the report contains them.

>>> import numpy as np
>>> from orcast.evidence import Evidence
>>> y = np.random.default_rng(0).normal(size=200)
>>> evidence = Evidence.of(np.tile([-1.0, 0.0, 1.0], (200, 1)), y, levels=[0.05, 0.5, 0.95])
>>> pit(evidence).title
'PIT histogram: 4 of 4 bins outside the chance band'
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orcast import evidence as facts
from orcast.evidence import Evidence, Histogram, Reliability
from orcast.evidence.accuracy import loss_name
from orcast.evidence.statistics import level_name
from orcast.plots.axes import around, log_axis, name_axis, number_axis, time_axis
from orcast.plots.drawing import Mark, Picture, Vector
from orcast.plots.text import number, percent, shortened

__all__ = ["Picture", "coverage", "fan", "guarantee", "horizons", "pit", "reliability", "rolling"]

SIDES = {"before": "base forecast", "after": "recalibrated"}
CHANCE = "chance band"
ENDS = np.array([0.0, 1.0])


def _example() -> Evidence:
    """Evidence of 200 standard normal outcomes, with intervals that are too narrow before."""
    y = np.random.default_rng(0).normal(size=200)
    narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    return Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], timed=True)


def _outside(found: Mapping[str, Histogram] | Mapping[str, Reliability], unit: str) -> str:
    """Number of points outside the chance band, before and after."""
    each: list[Histogram | Reliability] = list(found.values())
    return f"{' → '.join(str(one.outside) for one in each)} of {each[0].low.size} {unit} outside the chance band"


def pit(evidence: Evidence) -> Picture:
    """PIT histogram before and after; flat is calibrated.

    >>> pit(_example()).title
    'PIT histogram: 4 → 0 of 4 bins outside the chance band'
    """
    found = {side: facts.pit(evidence, side) for side in evidence.sides}
    last = found[evidence.sides[-1]]
    wide = np.diff(last.edges)
    steps = np.repeat(last.edges, 2)[1:-1]
    low, high = (np.repeat(end / wide, 2) for end in (last.low, last.high))
    marks = [Mark("area", "chance", steps, high, low, label=CHANCE)]
    for side, h in found.items():
        marks.append(Mark("line", side, steps, np.repeat(h.density, 2), label=SIDES[side]))
    marks.append(Mark("line", "target", ENDS, np.ones(2), label="calibrated"))
    top = 1.06 * max(2.0, float(high.max()), *(float(h.density.max()) for h in found.values()))
    title = f"PIT histogram: {_outside(found, 'bins')}"
    return Picture(title, number_axis("PIT", 0.0, 1.0), number_axis("density", 0.0, top), tuple(marks))


def reliability(evidence: Evidence) -> Picture:
    """Observed frequency against the level of the quantile or the probability; the diagonal is calibrated.

    >>> reliability(_example()).title
    'Reliability: 2 → 0 of 3 points outside the chance band'
    """
    found = {side: facts.reliability(evidence, side) for side in evidence.sides}
    quantiles = evidence.kind == "quantiles"
    last = found[evidence.sides[-1]]
    marks = [
        Mark("area", "chance", last.nominal, last.high, last.low, label=CHANCE),
        Mark("line", "target", ENDS, ENDS, label="calibrated"),
    ]
    for side, r in found.items():
        marks.append(Mark("line", side, r.nominal, r.frequency, label=SIDES[side]))
        if r.nominal.size <= 25:
            hover = tuple(
                f"{percent(p)}: {percent(share)} of {many:,.0f}"
                for p, share, many in zip(r.nominal, r.frequency, r.count, strict=True)
            )
            marks.append(Mark("dot", side, r.nominal, r.frequency, hover=hover))
    names = ("level of the quantile", "outcomes below it") if quantiles else ("forecast probability", "frequency")
    x, y = (number_axis(name, 0.0, 1.0, share=True) for name in names)
    return Picture(f"Reliability: {_outside(found, 'points')}", x, y, tuple(marks), height=340)


def rolling(evidence: Evidence, *, share: float | None = None, window: int | None = None) -> Picture:
    """Coverage of a central interval over the last `window` outcomes.

    >>> rolling(_example()).title
    'Coverage of the 90% interval over the last 100 outcomes'
    """
    found = facts.rolling(evidence, share, window=window)
    axis, x = time_axis(found.time)
    ends = np.array([axis.low, axis.high])
    low, high, target = (np.full(2, v) for v in (found.low, found.high, found.share))
    name = level_name(found.share)
    marks = (
        Mark("area", "chance", ends, high, low, label=CHANCE),
        Mark("line", "target", ends, target, label=f"{name} nominal"),
        *(Mark("line", side, x, values, label=SIDES[side]) for side, values in found.sides.items()),
    )
    y = around("coverage", *found.sides.values(), low, high, share=True, within=(0.0, 1.0))
    return Picture(f"Coverage of the {name} interval over the last {found.window:,} outcomes", axis, y, marks)


def fan(evidence: Evidence, *, series: str | None = None, last: int = 120, share: float | None = None) -> Picture:
    """Last forecasts and outcomes of a named series, or of the most miscalibrated one; `share` is the outer interval.

    >>> fan(_example()).title
    'Last 120 of 200 outcomes'
    """
    found = facts.fan(evidence, series=series, last=last, share=share)
    axis, x = time_axis(found.time)
    side = evidence.sides[-1]
    rows, y = evidence.side(side)[found.rows], evidence.y[found.rows]
    marks = [
        Mark("area", side, x, rows[:, upper], rows[:, lower], label=f"{name} {SIDES[side]}", variant=depth)
        for (lower, upper, name), depth in zip(found.bands, ("outer", "inner"), strict=False)
    ]
    if found.median is not None:
        marks.append(Mark("line", side, x, rows[:, found.median], label="median", variant="thin"))
    if side == "after" and found.bands:
        lower, upper, name = found.bands[0]
        for column in (lower, upper):
            values = evidence.before[found.rows, column]
            marks.append(Mark("line", "before", x, values, label=f"{name} {SIDES['before']}", variant="thin"))
    drawn = [v for mark in marks for v in (mark.y, mark.base) if v is not None]
    marks.append(Mark("dot", "outcome", x, y, label="outcome"))
    name = f"{shortened(found.name, 40)}: last" if found.name else "Last"
    title = f"{name} {found.rows.size:,} of {found.total:,} outcomes"
    return Picture(title, axis, around("outcome", y, *drawn), tuple(marks), height=280)


def horizons(evidence: Evidence, *, by: str | None = None) -> Picture:
    """Change of the loss at each horizon, or in each group of `by`; groups with a significant loss are red.

    >>> horizons(_example()).title
    'Change of the pinball loss by horizon: below 0 is better'
    """
    found = _table(evidence, by)
    if found.change is None:
        raise ValueError("expected forecasts before and after recalibration, got evidence without those after")
    change, x = found.change, np.arange(0.5, found.rows.size)
    hover = [
        f"{found.name} {label}: {percent(v, sign=True)}, worse in {worse:,} of {many:,} series"
        for label, v, worse, many in zip(found.labels, change.relative, change.worse, change.series, strict=True)
    ]
    marks = [Mark("line", "target", np.array([0.0, float(x.size)]), np.zeros(2), label="no change")]
    for role, mask, label in (
        ("after", ~change.harmed, "change of the loss"),
        ("worse", change.harmed, "significantly worse"),
    ):
        if mask.any():
            texts = tuple(np.array(hover)[mask])
            left, right, zero = x[mask] - 0.35, x[mask] + 0.35, np.zeros(int(mask.sum()))
            marks.append(Mark("bar", role, left, change.relative[mask], zero, right, label, hover=texts))
    there = np.isfinite(change.low) & np.isfinite(change.high)
    marks.append(Mark("range", "range", x[there], change.high[there], change.low[there], label="95% interval"))
    y = around("change of the loss", change.low, change.high, change.relative, [0.0], share=True)
    title = f"Change of the {loss_name(evidence)} by {found.name}: below 0 is better"
    return Picture(title, name_axis(found.name, found.labels), y, tuple(marks))


def coverage(evidence: Evidence, *, by: str | None = None) -> Picture:
    """Coverage of the interval nearest to 90% at each horizon, or in each group of `by`.

    >>> coverage(_example()).title
    'Coverage of the 90% interval by horizon'
    """
    found = _table(evidence, by)
    if found.share is None or found.chance is None:
        raise ValueError(f"expected evidence with central intervals, got {evidence.kind} without any")
    x, name = np.arange(0.5, found.rows.size), level_name(found.share)
    low, high = found.chance
    marks = [
        Mark("bar", "chance", x - 0.4, high, low, x + 0.4, label=CHANCE),
        Mark("line", "target", np.array([0.0, float(x.size)]), np.full(2, found.share), label=f"{name} nominal"),
    ]
    for side, values in found.coverage.items():
        marks.append(Mark("line", side, x, values, variant="thin"))
        hover = tuple(f"{label}: {percent(v)}" for label, v in zip(found.labels, values, strict=True))
        marks.append(Mark("dot", side, x, values, label=SIDES[side], hover=hover))
    y = around("coverage", *found.coverage.values(), low, high, [found.share], share=True, within=(0.0, 1.0))
    title = f"Coverage of the {name} interval by {found.name}"
    return Picture(title, name_axis(found.name, found.labels), y, tuple(marks))


def _table(evidence: Evidence, by: str | None) -> facts.GroupTable:
    if by is None:
        return facts.by_horizon(evidence)
    found = [group for group in evidence.by if group.name == by]
    if not found:
        known = ", ".join(group.name for group in evidence.by) or "none"
        raise ValueError(f"expected by= a grouping of the evidence ({known}), got {by!r}")
    return facts.by_group(evidence, found[0])


def guarantee(evidence: Evidence) -> Picture:
    """Miscalibration of one series and its bound after each round, on logarithmic axes.

    >>> t, y = np.arange(1, 201), np.random.default_rng(0).random(200)
    >>> rows = np.tile([0.05, 0.5, 0.95], (200, 1))
    >>> columns = {"promised": 2 / np.sqrt(t), "miscalibration": 1 / np.sqrt(t)}
    >>> guarantee(Evidence.of(rows, y, after=rows, levels=[0.05, 0.5, 0.95], **columns)).title
    'Miscalibration 0.07071, bound 0.1414'
    """
    found = facts.guarantee_check(evidence)
    if found is None or len(evidence.names) > 1 or evidence.overlap:
        raise ValueError("expected evidence of one series, one step ahead, with a bound, got other evidence")
    assert evidence.promised is not None
    assert evidence.miscalibration is not None
    bound, size = evidence.promised, evidence.miscalibration
    rounds: Vector = np.unique(np.geomspace(1, bound.size, 200).round())
    # rounds in which the bound was broken are always shown
    shown = np.union1d(rounds - 1, np.flatnonzero(size > bound)).astype(np.intp)
    x = shown.astype(np.float64) + 1.0
    marks = (
        Mark("line", "bound", x, bound[shown], label="bound"),
        Mark("line", "after", x, size[shown], label="miscalibration"),
    )
    title = f"Miscalibration {number(found.final[0])}, bound {number(found.final[1])}"
    values = np.concatenate((bound[shown], size[shown]))
    return Picture(title, log_axis("round", x), log_axis("miscalibration", values), marks)
