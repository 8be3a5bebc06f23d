"""Pictures of an evaluation as SVG: notebooks show them, `save` writes a file, the report contains them."""

from __future__ import annotations

import numpy as np

from orcast.evaluate import calibration
from orcast.evaluate.calibration import (
    Frequencies,
    band,
    ends_of,
    independent_rows,
    inside,
    level_name,
    main_share,
    place_of,
    shares,
    tie_excess,
)
from orcast.evaluate.dependence import steps_of
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.losses import loss_name
from orcast.evaluate.svg import Mark, Picture, around, name_axis, number_axis, percent, shortened, time_axis
from orcast.evaluate.tables import by_horizon, by_series
from orcast.validation import number

__all__ = ["Picture", "coverage", "fan", "horizons", "pit", "reliability", "rolling"]

SIDES = {"before": "base forecast", "after": "recalibrated"}
CHANCE = "chance band"
ENDS = np.array([0.0, 1.0])


def _example() -> Evaluation:
    """Evaluation of 200 standard normal outcomes, with intervals that are too narrow before."""
    y = np.random.default_rng(0).normal(size=200)
    narrow, right = np.tile([-1.0, 0.0, 1.0], (200, 1)), np.tile([-1.64, 0.0, 1.64], (200, 1))
    return Evaluation.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], timed=True)


# --- by horizon


def horizons(evaluation: Evaluation) -> Picture:
    """Change of the loss at each horizon; horizons with a significant loss are red.

    >>> horizons(_example()).title
    'Change of the pinball loss by horizon: below 0 is better'
    """
    found = by_horizon(evaluation)
    if found.change is None:
        raise ValueError("expected forecasts before and after recalibration, got an evaluation without those after")
    change, x = found.change, np.arange(0.5, found.rows.size)
    hover = [
        f"horizon {label}: {percent(v, sign=True)}, worse in {worse:,} of {many:,} series"
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
    most = "" if evaluation.timed else " (at most: issue times are missing)"
    title = f"Change of the {loss_name(evaluation)} by horizon: below 0 is better{most}"
    return Picture(title, name_axis("horizon", found.labels), y, tuple(marks))


def coverage(evaluation: Evaluation) -> Picture:
    """Coverage of the interval nearest to 90% at each horizon.

    >>> coverage(_example()).title
    'Coverage of the 90% interval by horizon'
    """
    _main_share(evaluation)
    found = by_horizon(evaluation)
    assert found.share is not None
    assert found.chance is not None
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
    title = f"Coverage of the {name} interval by horizon"
    return Picture(title, name_axis("horizon", found.labels), y, tuple(marks))


# --- calibration


def pit(evaluation: Evaluation) -> Picture:
    """PIT histogram before and after; flat is calibrated.

    >>> pit(_example()).title
    'PIT histogram: 4 → 0 of 4 bins outside the chance band'
    """
    _need_quantiles(evaluation)
    found = {side: calibration.pit(evaluation, side) for side in evaluation.sides}
    last = found[evaluation.sides[-1]]
    steps = np.repeat(np.concatenate(([0.0], np.cumsum(last.nominal))), 2)[1:-1]
    low, high = (np.repeat(end / last.nominal, 2) for end in (last.low, last.high))
    marks = [Mark("area", "chance", steps, high, low, label=CHANCE)]
    top = max(2.0, float(high.max()))
    for side, each in found.items():
        density = np.repeat(each.observed / each.nominal, 2)
        top = max(top, float(density.max()))
        marks.append(Mark("line", side, steps, density, label=SIDES[side]))
    marks.append(Mark("line", "target", ENDS, np.ones(2), label="calibrated"))
    title = f"PIT histogram: {_outside(found)} bins outside the chance band"
    return Picture(title, number_axis("PIT", 0.0, 1.0), number_axis("density", 0.0, 1.06 * top), tuple(marks))


def reliability(evaluation: Evaluation) -> Picture:
    """Observed frequency against the level of the quantile or the probability; the diagonal is calibrated.

    >>> reliability(_example()).title
    'Reliability: 2 → 0 of 3 points outside the chance band'
    """
    found = {side: calibration.reliability(evaluation, side) for side in evaluation.sides}
    last = found[evaluation.sides[-1]]
    marks = [
        Mark("area", "chance", last.nominal, last.high, last.low, label=CHANCE),
        Mark("line", "target", ENDS, ENDS, label="calibrated"),
    ]
    for side, each in found.items():
        marks.append(Mark("line", side, each.nominal, each.observed, label=SIDES[side]))
        if each.nominal.size <= 25:
            rows = zip(each.nominal, each.observed, each.count, strict=True)
            hover = tuple(f"{percent(p)}: {percent(share)} of {many:,.0f}" for p, share, many in rows)
            marks.append(Mark("dot", side, each.nominal, each.observed, hover=hover))
    quantiles = evaluation.kind == "quantiles"
    names = ("level of the quantile", "outcomes below it") if quantiles else ("forecast probability", "frequency")
    x, y = (number_axis(name, 0.0, 1.0, share=True) for name in names)
    title = f"Reliability: {_outside(found)} points outside the chance band"
    return Picture(title, x, y, tuple(marks), height=340)


def _outside(found: dict[str, Frequencies]) -> str:
    """Number of frequencies outside the chance band, before and after."""
    each = list(found.values())
    return f"{' → '.join(str(one.outside) for one in each)} of {each[0].low.size}"


def _need_quantiles(evaluation: Evaluation) -> None:
    if evaluation.kind != "quantiles":
        raise ValueError(f"expected an evaluation of quantiles, got kind {evaluation.kind!r}")


def _main_share(evaluation: Evaluation) -> float:
    _need_quantiles(evaluation)
    share = main_share(evaluation)
    if share is None:
        raise ValueError(f"expected quantiles at symmetric levels for an interval, got levels {evaluation.levels}")
    return share


# --- in the order of time


def rolling(evaluation: Evaluation, *, share: float | None = None, window: int | None = None) -> Picture:
    """Coverage of a central interval over the last `window` outcomes of all series.

    By default the interval nearest to 90%, and a tenth of the rows (at least 100).

    >>> rolling(_example()).title
    'Coverage of the 90% interval over the last 100 outcomes'
    """
    chosen = _main_share(evaluation) if share is None else share
    rows = evaluation.rows
    size = max(100, rows // 10) if window is None else int(number(window, "window", 1, 1e12))
    size = max(1, min(size, rows))
    order = np.argsort(steps_of(evaluation), kind="stable")
    ends = np.unique(np.linspace(size - 1, rows - 1, num=min(400, max(rows - size + 1, 0))).astype(np.intp))
    times = np.arange(rows) + 1 if evaluation.time is None else evaluation.time[order]
    axis, x = time_axis(times[ends])
    low, high = band(size * independent_rows(evaluation, chosen) / max(rows, 1), chosen)
    upper = min(float(high) + tie_excess(evaluation, chosen), 1.0)
    edges, name = np.array([axis.low, axis.high]), level_name(chosen)
    marks = [
        Mark("area", "chance", edges, np.full(2, upper), np.full(2, low), label=CHANCE),
        Mark("line", "target", edges, np.full(2, chosen), label=f"{name} nominal"),
    ]
    for side in evaluation.sides:
        total = np.concatenate(([0.0], np.cumsum(inside(evaluation, chosen, side)[order])))
        values = np.asarray((total[ends + 1] - total[ends + 1 - size]) / size)
        marks.append(Mark("line", side, x, values, label=SIDES[side]))
    y = around("coverage", *(mark.y for mark in marks), [low], share=True, within=(0.0, 1.0))
    return Picture(f"Coverage of the {name} interval over the last {size:,} outcomes", axis, y, tuple(marks))


def fan(evaluation: Evaluation, *, series: str | None = None, last: int = 120, share: float | None = None) -> Picture:
    """Last forecasts and outcomes of a named series, or of the most miscalibrated one; `share` is the outer interval.

    >>> fan(_example()).title
    'Last 120 of 200 outcomes'
    """
    _need_quantiles(evaluation)
    if series is None:
        names = by_series(evaluation).labels if len(evaluation.names) > 1 else evaluation.names
        series = names[0] if names else ""
    elif series not in evaluation.names:
        raise ValueError(f"expected the name of a series, got {series!r}")
    mine = np.flatnonzero(evaluation.series == (evaluation.names.index(series) if evaluation.names else -1))
    total = mine.size
    # of several forecasts of one time the last is shown
    if evaluation.time is not None and evaluation.overlap and total:
        own = evaluation.time[mine]
        mine = mine[np.append(own[1:] != own[:-1], True)]
    mine = mine[-last:]
    time = np.arange(total - mine.size, total) + 1 if evaluation.time is None else evaluation.time[mine]
    name = f"{shortened(series, 40)}: last" if series else "Last"
    axis, x = time_axis(time)
    marks = _fan_marks(evaluation, mine, x, share)
    drawn = [v for mark in marks for v in (mark.y, mark.base) if v is not None]
    marks.append(Mark("dot", "outcome", x, evaluation.y[mine], label="outcome"))
    y = around("outcome", evaluation.y[mine], *drawn)
    return Picture(f"{name} {mine.size:,} of {total:,} outcomes", axis, y, tuple(marks), height=280)


def _fan_marks(evaluation: Evaluation, mine: np.ndarray, x: np.ndarray, share: float | None) -> list[Mark]:
    """Main interval and about 50%, or from the lowest level to the highest; the median; the base forecast's ends."""
    levels, side = evaluation.levels, evaluation.sides[-1]
    rows = evaluation.side(side)[mine]
    share = main_share(evaluation) if share is None else share
    bands: list[tuple[int, int, str]] = []
    if share is not None:
        inner = min((s for s in shares(evaluation) if s < share), key=lambda s: abs(s - 0.5), default=None)
        wanted = (share,) if inner is None else (share, inner)
        bands = [(*ends_of(evaluation, s), f"{level_name(s)} interval") for s in wanted]
    elif levels.size > 1:
        bands = [(0, levels.size - 1, f"{level_name(levels[0])} to {level_name(levels[-1])} quantile")]
    marks = [
        Mark("area", side, x, rows[:, upper], rows[:, lower], label=f"{name} {SIDES[side]}", variant=depth)
        for (lower, upper, name), depth in zip(bands, ("outer", "inner"), strict=False)
    ]
    median = place_of(evaluation, 0.5)
    if median is not None:
        marks.append(Mark("line", side, x, rows[:, median], label="median", variant="thin"))
    for lower, upper, name in bands[:1] if side == "after" else ():
        for column in (lower, upper):
            values = evaluation.before[mine, column]
            marks.append(Mark("line", "before", x, values, label=f"{name} {SIDES['before']}", variant="thin"))
    return marks
