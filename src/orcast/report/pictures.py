"""The pictures, each described once: what is drawn on which axes, and what it is called.

`report.svg` draws them for the page and `orcast.plots` with matplotlib; neither computes anything of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import evidence as facts
from orcast.evidence import Evidence, Grouping, GroupTable, Histogram, Reliability
from orcast.evidence.statistics import level_name
from orcast.report.axes import Axis, Scale, Tick, around, log_scale, number_axis, time_axis
from orcast.report.text import capital, number, percent, shortened

Vector = NDArray[np.float64]

SIDE_NAMES = {"before": "as given", "after": "recalibrated"}
UNIT = Scale(0.0, 1.0)
# Lines with at most so many points have a dot on each.
DOTTED = 25


@dataclass(frozen=True, eq=False)
class Mark:
    """Something drawn.

    `shape` is "line", "dot", "area" (from `base` to `y`), "bar" (from `x` to `right` and from `base` to `y`) or "range"
    (upright, from `base` to `y`).  `role` gives the colour: "before", "after", "chance", "target", "promised",
    "outcome", "median" or "range"; `variant` a lighter or thinner form.  Marks with a `label` are in the key; `hover`
    has a text for each bar or dot.
    """

    shape: str
    role: str
    x: Vector
    y: Vector
    base: Vector | None = None
    right: Vector | None = None
    label: str = ""
    variant: str = ""
    hover: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Picture:
    """Marks on two axes: what it shows (`title`), what that says (`finding`), its height in pixels (None: a square)."""

    title: str
    finding: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height: int | None = None


def legend(*pictures: Picture) -> list[Mark]:
    """The marks of the key, one for each label: what is compared first, chance and target last."""
    found: dict[tuple[str, ...], Mark] = {}
    for mark in (mark for picture in pictures for mark in picture.marks if mark.label):
        found.setdefault((mark.shape, mark.role, mark.variant, mark.label), mark)
    last = {"range": 1, "chance": 2, "target": 3}
    return sorted(found.values(), key=lambda mark: last.get(mark.role, 0))


def _diagonal() -> Mark:
    return Mark("line", "target", np.array([0.0, 1.0]), np.array([0.0, 1.0]), label="calibrated")


def _dotted(role: str, x: Vector, y: Vector) -> Iterator[Mark]:
    yield Mark("line", role, x, y, label=SIDE_NAMES[role])
    if x.size <= DOTTED:
        yield Mark("dot", role, x, y)


def _finding(found: Mapping[str, Histogram] | Mapping[str, Reliability], what: str) -> str:
    counts = {SIDE_NAMES[side]: f"{each.outside} of {each.low.size}" for side, each in found.items()}
    if len(counts) == 1:
        return "".join(f"{capital(side)}: {count} beyond chance" for side, count in counts.items())
    return f"{what} beyond what chance allows:\n" + ", ".join(f"{side} {count}" for side, count in counts.items())


def _chosen(evidence: Evidence, sides: Sequence[str] | None) -> tuple[str, ...]:
    return evidence.sides if sides is None else tuple(sides)


# --- quantiles ------------------------------------------------------------------------------------


def pit(evidence: Evidence, sides: Sequence[str] | None = None, *, bins: int = 20) -> Picture:
    """PIT histogram: bars of one side, outlines of two."""
    every = {side: facts.pit(evidence, side, bins=bins) for side in evidence.sides}
    found = {side: every[side] for side in _chosen(evidence, sides)}
    one = list(found.values())[-1]
    wide = np.diff(one.edges)
    # all sides on one scale, so that pictures side by side can be compared
    top = 1.06 * max(2.0, *(float(v.max()) for h in every.values() for v in (h.density, h.high / wide)))
    steps = np.repeat(one.edges, 2)[1:-1]
    marks: list[Mark] = []
    for side, h in found.items():
        if len(found) > 1:
            marks.append(Mark("line", side, steps, np.repeat(h.density, 2), label=SIDE_NAMES[side]))
            continue
        hover = tuple(
            f"PIT from {number(left)} to {number(right)}: {percent(share)} of the outcomes"
            for left, right, share in zip(h.edges[:-1], h.edges[1:], h.shares, strict=True)
        )
        marks.append(Mark("bar", side, h.edges[:-1], h.density, right=h.edges[1:], label=SIDE_NAMES[side], hover=hover))
    low, high = (np.repeat(end / wide, 2) for end in (one.low, one.high))
    marks.append(Mark("area", "chance", steps, high, low, label="what chance allows", variant="over"))
    marks.append(Mark("line", "target", np.array([0.0, 1.0]), np.ones(2), label="calibrated"))
    return Picture(
        "PIT histogram, " + " and ".join(SIDE_NAMES[side] for side in found),
        _finding(found, "Bins"),
        number_axis("where in the forecast the outcome fell (PIT)", UNIT, most=5),
        number_axis("density", Scale(0.0, top), most=4),
        tuple(marks),
        height=190,
    )


def reliability(evidence: Evidence, sides: Sequence[str] | None = None) -> Picture:
    """Frequency of the event against the level of the quantile or the probability."""
    found = {side: facts.reliability(evidence, side) for side in _chosen(evidence, sides)}
    if evidence.kind != "quantiles":
        return _reliability_of_probabilities(found)
    one = list(found.values())[-1]
    marks = [Mark("area", "chance", one.nominal, one.high, one.low, label="what chance allows"), _diagonal()]
    for side, r in found.items():
        marks += _dotted(side, r.nominal, r.frequency)
    x = number_axis("level of the quantile", UNIT, most=5, percent=True)
    y = number_axis("outcomes below it", UNIT, most=5, percent=True)
    return Picture("Share of outcomes below each quantile", _finding(found, "Levels"), x, y, tuple(marks))


def _reliability_of_probabilities(found: Mapping[str, Reliability]) -> Picture:
    """A dot for each bin; the bar behind it is what chance allows."""
    marks = [_diagonal()]
    for side, r in found.items():
        ends = [np.clip(r.nominal + shift, 0.0, 1.0) for shift in (-0.012, 0.012)]
        role, variant, label = "chance", "", "what chance allows"
        if len(found) > 1:
            role, variant, label = side, "shade", f"chance, {SIDE_NAMES[side]}"
        marks.append(Mark("bar", role, ends[0], r.high, r.low, ends[1], label, variant))
        marks.append(Mark("line", side, r.nominal, r.frequency, label=SIDE_NAMES[side], variant="thin"))
        hover = tuple(
            f"forecast {percent(p)}, happened {percent(share)}, {int(many):,} times"
            for p, share, many in zip(r.nominal, r.frequency, r.count, strict=True)
        )
        marks.append(Mark("dot", side, r.nominal, r.frequency, hover=hover))
    title = "Reliability diagram, " + " and ".join(SIDE_NAMES[side] for side in found)
    x, y = (number_axis(label, UNIT, most=5, percent=True) for label in ("forecast probability", "frequency"))
    return Picture(title, _finding(found, "Bins"), x, y, tuple(marks))


def rolling(evidence: Evidence, *, share: float | None = None, window: int | None = None, points: int = 400) -> Picture:
    """Coverage of a central interval in a moving window, and where it should be."""
    found = facts.rolling(evidence, share, window=window, points=points)
    axis, x = time_axis(found.time)
    sides = {"before": found.before} | ({} if found.after is None else {"after": found.after})
    scale = around(*sides.values(), [found.low, found.high, found.share], margin=0.06)
    ends = np.array([axis.scale.low, axis.scale.high])
    low, high, target = (np.full(2, v) for v in (found.low, found.high, found.share))
    name = level_name(found.share)
    marks = (
        Mark("area", "chance", ends, high, low, label="what chance allows"),
        Mark("line", "target", ends, target, label=f"{name}, as it should be"),
        *(Mark("line", side, x, values, label=SIDE_NAMES[side]) for side, values in sides.items()),
    )
    return Picture(
        f"Coverage of the {name} interval over time",
        f"Share of the last {found.window:,} outcomes in the {name} interval",
        axis,
        number_axis("covered", Scale(max(scale.low, 0.0), min(scale.high, 1.0)), most=5, percent=True),
        marks,
        height=220,
    )


def fan(evidence: Evidence, *, series: str | None = None, last: int = 120, share: float | None = None) -> Picture:
    """The last forecasts of a series: bands, the median, the outer band before, and the outcomes."""
    found = facts.fan(evidence, series=series, last=last, share=share)
    axis, x = time_axis(found.time)
    side = evidence.sides[-1]
    rows, y = evidence.side(side)[found.rows], evidence.y[found.rows]
    marks = [
        Mark(
            "area",
            side,
            x,
            rows[:, band.upper],
            rows[:, band.lower],
            label=f"{band.name} {SIDE_NAMES[side]}",
            variant=depth,
        )
        for band, depth in zip(found.bands, ("outer", "inner"), strict=False)
    ]
    if found.median is not None:
        marks.append(Mark("line", side, x, rows[:, found.median], label="median", variant="thin"))
    if side == "after" and found.bands:
        outer, before = found.bands[0], evidence.before[found.rows]
        label = f"{outer.name} {SIDE_NAMES['before']}"
        marks.append(Mark("line", "before", x, before[:, outer.lower], label=label, variant="thin"))
        marks.append(Mark("line", "before", x, before[:, outer.upper], variant="thin"))
    drawn = [v for mark in marks for v in (mark.y, mark.base) if v is not None]
    marks.append(Mark("dot", "outcome", x, y, label="outcome"))
    name = f"{shortened(found.name, 40)}: the" if found.name else "The"
    return Picture(
        "Recent forecasts and outcomes",
        f"{name} last {found.rows.size:,} of {found.total:,} outcomes",
        axis,
        number_axis("outcome", around(y, *drawn), most=5),
        tuple(marks),
        height=300,
    )


def sharpness(evidence: Evidence) -> Picture:
    """Mean widths of the central intervals, with the range of 8 of 10."""
    found = facts.widths(evidence)
    if not found.shares:
        raise ValueError(f"expected evidence with central intervals, got {evidence.kind} without any")
    many = len(found.shares)
    top = around(0.0, *(v for each in found.sides.values() for v in each), margin=0.05).high
    marks = []
    for j, (side, (mean, low, high)) in enumerate(found.sides.items()):
        centre = np.arange(0.5, many) + 0.36 * (j - (len(found.sides) - 1) / 2)
        hover = tuple(
            f"{percent(share, decimals=0)} interval {SIDE_NAMES[side]}: {number(m)} wide on average"
            for share, m in zip(found.shares, mean, strict=True)
        )
        label = f"mean width {SIDE_NAMES[side]}"
        marks.append(Mark("bar", side, centre - 0.15, mean, right=centre + 0.15, label=label, hover=hover))
        marks.append(Mark("range", "range", centre, high, low, label="where 8 of 10 lie"))
    names = tuple(Tick(k + 0.5, percent(share, decimals=0)) for k, share in enumerate(found.shares))
    return Picture(
        "Widths of the central intervals",
        "Mean widths of the central intervals",
        Axis("central interval", Scale(0.0, float(many)), names),
        number_axis("width", Scale(0.0, top), most=4),
        tuple(marks),
        height=200,
    )


# --- groups ---------------------------------------------------------------------------------------


def group_coverage(evidence: Evidence, grouping: Grouping) -> Picture:
    """How often the outcome was in the central interval, group by group."""
    found = facts.by_group(evidence, grouping)
    if found.share is None or found.coverage_before is None or found.chance is None:
        raise ValueError(f"expected evidence with central intervals, got {evidence.kind} without any")
    sides = {"before": found.coverage_before} | (
        {} if found.coverage_after is None else {"after": found.coverage_after}
    )
    x, name = np.arange(0.5, found.rows.size), level_name(found.share)
    low, high = found.chance
    ends = np.array([0.0, float(x.size)])
    marks = [
        Mark("bar", "chance", x - 0.4, high, low, x + 0.4, label="what chance allows"),
        Mark("line", "target", ends, np.full(2, found.share), label=f"{name}, as it should be"),
    ]
    for side, values in sides.items():
        marks.append(Mark("line", side, x, values, label=SIDE_NAMES[side], variant="thin"))
        hover = tuple(
            f"{label}: {percent(v)} {SIDE_NAMES[side]}" for label, v in zip(found.labels, values, strict=True)
        )
        marks.append(Mark("dot", side, x, values, hover=hover))
    scale = around(*sides.values(), low, high, [found.share], margin=0.06)
    return Picture(
        f"Coverage of the {name} interval by {grouping.name}",
        f"Share of the outcomes in the {name} interval",
        _group_axis(found),
        number_axis("covered", Scale(max(scale.low, 0.0), min(scale.high, 1.0)), most=5, percent=True),
        tuple(marks),
        height=220,
    )


def group_change(evidence: Evidence, grouping: Grouping) -> Picture:
    """How the loss changed, group by group, with 95% intervals."""
    found = facts.by_group(evidence, grouping)
    if found.relative is None or found.low is None or found.high is None:
        raise ValueError("expected forecasts before and after recalibration, got evidence without those after")
    x = np.arange(0.5, found.rows.size)
    hover = tuple(f"{label}: {percent(v, sign=True)}" for label, v in zip(found.labels, found.relative, strict=True))
    there = np.isfinite(found.low) & np.isfinite(found.high)
    name = facts.difference(evidence)
    assert name is not None
    return Picture(
        f"Change of the {name.name} by {grouping.name}",
        f"Change of the {name.name}: below 0 is better",
        _group_axis(found),
        number_axis("change", around(found.low, found.high, found.relative, [0.0], margin=0.06), most=5, percent=True),
        (
            Mark("line", "target", np.array([0.0, float(x.size)]), np.zeros(2), label="no change"),
            Mark("range", "range", x[there], found.high[there], found.low[there], label="95% interval"),
            Mark("dot", "after", x, found.relative, label="change of the loss", hover=hover),
        ),
        height=220,
    )


def _group_axis(found: GroupTable) -> Axis:
    """The names of the groups, as many as can be read."""
    count = len(found.labels)
    every = -(-count // 12)
    shown = [Tick(k + 0.5, shortened(found.labels[k], 12), k // every % 2 == 1) for k in range(0, count, every)]
    return Axis(found.name, Scale(0.0, float(count)), tuple(shown))


# --- probabilities, the promise -------------------------------------------------------------------


def probabilities(evidence: Evidence, side: str) -> Picture:
    """How often each range of probabilities was forecast."""
    every = {each: facts.probability_shares(evidence, each) for each in evidence.sides}
    edges, shares = every[side]
    hover = tuple(
        f"{percent(left)} to {percent(right)}: {percent(share)} of the forecasts"
        for left, right, share in zip(edges[:-1], edges[1:], shares, strict=True)
    )
    top = 1.06 * max(float(values.max()) for _, values in every.values())
    return Picture(
        f"Forecast probabilities, {SIDE_NAMES[side]}",
        capital(SIDE_NAMES[side]),
        number_axis("probability", UNIT, most=5, percent=True),
        number_axis("share of the forecasts", Scale(0.0, top), most=4, percent=True),
        (Mark("bar", side, edges[:-1], shares, right=edges[1:], label=SIDE_NAMES[side], hover=hover),),
        height=160,
    )


def promise(evidence: Evidence) -> Picture:
    """Miscalibration under what was promised, both axes logarithmic: after each round, or by what was promised."""
    found = facts.promise_check(evidence)
    if found is None:
        raise ValueError("expected evidence with a promise, got evidence without one")
    marks, finding = [], found.summary
    if found.single:
        size, bound = found.final
        finding = f"Miscalibration {size:.4f}, promised at most {bound:.4f}.\n{finding}"
        marks.append(Mark("line", "promised", found.x, found.promised, label="promised at most"))
        marks.append(Mark("line", "after", found.x, found.miscalibration, label="recalibrated"))
        if found.before is not None:
            marks.insert(0, Mark("line", "before", found.x, found.before, label="as given, its quantiles alone"))
    else:
        marks.append(Mark("line", "promised", found.x, found.x, label="promised at most"))
        marks.append(Mark("line", "after", found.x, found.miscalibration, label="the worst"))
        if found.median is not None:
            marks.append(Mark("line", "median", found.x, found.median, label="the median"))
    low = max(float(found.x.min()), 1e-12)
    across = Scale(low, max(float(found.x.max()), 2.0 * low), log=True)
    return Picture(
        "Miscalibration against the promised bound",
        finding,
        number_axis("round" if found.single else "promised at most", across),
        number_axis("miscalibration", log_scale(np.concatenate([mark.y for mark in marks])), most=5),
        tuple(marks),
        height=240,
    )


def ratio_scale(*ratios: ArrayLike) -> Scale:
    """A logarithmic scale for errors over what chance allows, with 1 on it."""
    every = np.clip(np.concatenate([np.asarray(r, dtype=np.float64).ravel() for r in ratios]), 0.02, None)
    return log_scale([0.5, 2.0, *every[np.isfinite(every)]], factor=1.2, least=0.0)
