"""The pictures of the report, from arrays: each is an SVG and the key to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.report.axes import PlotFrame, Scale, Tick, TimeAxis, area, around, dots, mark, path, ticks
from orcast.report.text import number, percent, plain

Vector = NDArray[np.float64]
Band = tuple[ArrayLike, ArrayLike]

WORDS = {"before": "as given", "after": "recalibrated"}
UNIT = Scale(0.0, 1.0)


def key(*entries: tuple[str, str]) -> str:
    """What the marks mean: (classes of the mark, words)."""
    shapes = {"line": "M0 6H26", "dot": "M13 6h0", "area": "M0 1H26V11H0Z", "bar": "M6 1H20V11H6Z"}
    items = "".join(
        f'<span><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true">'
        f'<path class="{style}" d="{shapes[style.split()[0]]}"/></svg>{plain(words)}</span>'
        for style, words in entries
    )
    return f'<p class="key">{items}</p>'


def histogram(edges: ArrayLike, shares: ArrayLike, band: Band, *, who: str, top: float, title: str) -> str:
    """PIT histogram: density in each bin, and what chance allows a calibrated forecast.

    >>> histogram([0, 0.5, 1], [0.5, 0.5], ([0.4, 0.4], [0.6, 0.6]), who="before", top=2, title="t").count("<path")
    4
    """
    e, s, low, high = (np.asarray(v, dtype=np.float64) for v in (edges, shares, *band))
    width = np.diff(e)
    up = Scale(0.0, top)
    marks = []
    for left, right, share in zip(e[:-1], e[1:], s, strict=True):
        gap = min(0.0015, (right - left) / 8)
        height = float(up.place(share / (right - left)))
        words = f"PIT from {number(left)} to {number(right)}: {percent(share)} of the outcomes"
        marks.append(mark(area([left + gap, right - gap], [0, 0], [height, height]), f"bar {who}", words))
    steps = np.repeat(e, 2)[1:-1]
    bottom, ceiling = (up.place(np.repeat(v / width, 2)) for v in (low, high))
    marks.append(mark(area(steps, bottom, ceiling), "area chance"))
    marks.append(mark(path([0, 1], up.place([1, 1])), "line right"))
    frame = PlotFrame(
        ticks(UNIT, most=5), ticks(up, most=4), "where in the forecast the outcome fell (PIT)", "density", 190
    )
    return frame.draw(marks, title=title)


def reliability(
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]], band: tuple[ArrayLike, ArrayLike, ArrayLike], *, title: str
) -> str:
    """How often an outcome fell below each quantile, against its level."""
    place, low, high = band
    marks = [mark(area(place, low, high), "area chance"), mark("M0 1000L1000 0", "line right")]
    for who, (x, y) in lines.items():
        marks.append(mark(path(x, y), f"line {who}"))
        if np.size(x) <= 25:
            marks.append(mark(dots(x, y), f"dot {who}"))
    own = ticks(UNIT, most=5, share=True)
    return PlotFrame(own, own, "level of the quantile", "outcomes below it", None).draw(marks, title=title)


def gaps(
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]], band: tuple[ArrayLike, ArrayLike, ArrayLike], *, title: str
) -> str:
    """The same as `reliability`, less what should be: flat at 0 is calibrated."""
    place, low, high = (np.asarray(v, dtype=np.float64) for v in band)
    off = {who: np.asarray(y, dtype=np.float64) - np.asarray(x) for who, (x, y) in lines.items()}
    most = max(0.01, *(float(np.abs(v).max()) for v in (low - place, high - place, *off.values())))
    up = Scale(-1.06 * most, 1.06 * most)
    marks = [
        mark(area(place, up.place(low - place), up.place(high - place)), "area chance"),
        mark(path([0, 1], up.place([0, 0])), "line right"),
    ]
    for who, (x, _) in lines.items():
        marks.append(mark(path(x, up.place(off[who])), f"line {who}"))
        if np.size(x) <= 25:
            marks.append(mark(dots(x, up.place(off[who])), f"dot {who}"))
    across, height = ticks(UNIT, most=5, share=True), ticks(up, most=5, share=True)
    return PlotFrame(across, height, "level of the quantile", "outcomes below it, less the level", None).draw(
        marks, title=title
    )


def bins(x: ArrayLike, y: ArrayLike, band: Band, counts: ArrayLike, *, who: str, title: str) -> str:
    """Reliability of probabilities: a dot for each bin, the bar behind it is what chance allows."""
    a, b, low, high = (np.asarray(v, dtype=np.float64) for v in (x, y, *band))
    marks = [mark("M0 1000L1000 0", "line right")]
    for place, bottom, ceiling in zip(a, low, high, strict=True):
        ends = np.clip([place - 0.012, place + 0.012], 0.0, 1.0)
        marks.append(mark(area(ends, [bottom, bottom], [ceiling, ceiling]), "area chance"))
    marks.append(mark(path(a, b), f"line thin {who}"))
    for place, share, many in zip(a, b, np.asarray(counts), strict=True):
        words = f"said {percent(place)}, came true {percent(share)}, {int(many):,} times"
        marks.append(mark(dots([place], [share]), f"dot {who}", words))
    own = ticks(UNIT, most=5, share=True)
    return PlotFrame(own, own, "said", "came true", None).draw(marks, title=title)


def over_time(axis: TimeAxis, lines: Mapping[str, ArrayLike], *, target: float, band: Band | None, title: str) -> str:
    """Coverage in a moving window, and where it should be."""
    every = [np.asarray(v, dtype=np.float64) for v in lines.values()]
    limits = [] if band is None else [np.asarray(v, dtype=np.float64) for v in band]
    up = around(*every, *limits, margin=0.06, at_least=(target, target))
    up = Scale(max(up.low, 0.0), min(up.high, 1.0))
    marks = []
    if band is not None:
        low, high = (np.broadcast_to(np.asarray(v, dtype=np.float64), axis.place.shape) for v in band)
        marks.append(mark(area(axis.place, up.place(low), up.place(high)), "area chance"))
    marks.append(mark(path([0, 1], up.place([target, target])), "line right"))
    marks += [mark(path(axis.place, up.place(v)), f"line {who}") for who, v in lines.items()]
    frame = PlotFrame(axis.ticks(), ticks(up, most=5, share=True), axis.words, "covered", 220)
    return frame.draw(marks, title=title)


def fan(
    axis: TimeAxis,
    bands: Sequence[tuple[ArrayLike, ArrayLike]],
    middle: ArrayLike | None,
    other: tuple[ArrayLike, ArrayLike] | None,
    y: ArrayLike,
    *,
    who: str,
    title: str,
) -> str:
    """Bands, the widest first, a median, the outer lines of another forecast, and what happened."""
    up = around(y, *(end for band in bands for end in band), *(other or ()))
    x = axis.place
    marks = [
        mark(area(x, up.place(low), up.place(high)), f"area {who} {depth}")
        for (low, high), depth in zip(bands, ("outer", "inner"), strict=False)
    ]
    if other is not None:
        marks += [mark(path(x, up.place(end)), "line thin before") for end in other]
    if middle is not None:
        marks.append(mark(path(x, up.place(middle)), f"line thin {who}"))
    marks.append(mark(dots(x, up.place(y)), "dot outcome"))
    return PlotFrame(axis.ticks(), ticks(up, most=5), axis.words, "outcome", 300).draw(marks, title=title)


def widths(shares: ArrayLike, lines: Mapping[str, Sequence[ArrayLike]], *, title: str) -> str:
    """Mean widths of the central intervals, with the range of most of them."""
    s = np.asarray(shares, dtype=np.float64)
    up = around(*(np.asarray(v) for each in lines.values() for v in each), margin=0.05, at_least=(0.0, 0.0))
    up = Scale(0.0, up.high)
    across = Scale(0.0, float(s.size))
    marks = []
    for j, (who, (mean, low, high)) in enumerate(lines.items()):
        shift = 0.5 + (0.0 if len(lines) == 1 else 0.36 * j - 0.18)
        for k in range(s.size):
            m, a, b = (float(np.asarray(v)[k]) for v in (mean, low, high))
            ends = across.place([k + shift - 0.15, k + shift + 0.15])
            words = f"{percent(float(s[k]), decimals=0)} interval {WORDS[who]}: {number(m)} wide on average"
            marks.append(mark(area(ends, [0, 0], up.place([m, m])), f"bar {who}", words))
            here = across.place([k + shift, k + shift])
            marks += [mark(path(here, up.place([a, b])), style) for style in ("line halo", "line range")]
    named = [Tick(float((k + 0.5) / s.size), percent(float(share), decimals=0)) for k, share in enumerate(s)]
    return PlotFrame(named, ticks(up, most=4), "central interval", "width", 200).draw(marks, title=title)


def promise(lines: Mapping[str, tuple[ArrayLike, ArrayLike]], *, across: str, title: str) -> str:
    """Miscalibration after each round under what was promised, both axes logarithmic."""
    xs = np.concatenate([np.asarray(x, dtype=np.float64) for x, _ in lines.values()])
    ys = np.concatenate([np.asarray(y, dtype=np.float64) for _, y in lines.values()])
    ys = ys[np.isfinite(ys) & (ys > 0.0)]
    most = float(ys.max()) if ys.size else 1.0
    least = max(float(ys.min()) if ys.size else 0.1, 1e-4 * most)
    least_x = max(float(xs.min()), 1e-12)
    right = Scale(least_x, max(float(xs.max()), 2.0 * least_x), log=True)
    up = Scale(least / 1.3, most * 1.3, log=True)
    marks = [mark(path(right.place(x), up.place(y)), f"line {style}") for style, (x, y) in lines.items()]
    return PlotFrame(ticks(right), ticks(up, most=5), across, "miscalibration", 240).draw(marks, title=title)


def shares(edges: ArrayLike, parts: ArrayLike, *, who: str, top: float, title: str) -> str:
    """How often each range of probabilities was said."""
    e, s = np.asarray(edges, dtype=np.float64), np.asarray(parts, dtype=np.float64)
    up = Scale(0.0, top)
    marks = [
        mark(
            area([left + 0.0015, right - 0.0015], [0, 0], up.place([share, share])),
            f"bar {who}",
            f"{percent(left)} to {percent(right)}: {percent(share)} of the forecasts",
        )
        for left, right, share in zip(e[:-1], e[1:], s, strict=True)
        if share > 0.0
    ]
    across, height = ticks(UNIT, most=5, share=True), ticks(up, most=4, share=True)
    return PlotFrame(across, height, "probability", "share of the forecasts", 160).draw(marks, title=title)


def ratio_scale(*ratios: Vector) -> Scale:
    """A logarithmic scale for errors over what chance allows, with 1 on it."""
    every = np.concatenate([np.asarray(r, dtype=np.float64).ravel() for r in ratios])
    every = every[np.isfinite(every) & (every > 0.0)]
    most = max(2.0, float(every.max()) if every.size else 2.0)
    least = min(0.5, max(float(every.min()), 0.02) if every.size else 0.5)
    return Scale(least / 1.2, most * 1.2, log=True)


def dumbbell(ratios: Mapping[str, float], scale: Scale) -> str:
    """Where an error lay and lies, in a cell of a table; the line is what chance allows."""
    one = 100.0 * float(scale.place(1.0))
    places = {who: 100.0 * float(scale.place(max(ratio, 1e-300))) for who, ratio in ratios.items()}
    ends = list(places.values())
    words = ", ".join(f"{WORDS[who]} {number(ratio, digits=3)}" for who, ratio in ratios.items())
    drawn = "".join(f'<circle class="{who}" cx="{place:.1f}%" cy="50%" r="4.5"/>' for who, place in places.items())
    return (
        f'<svg class="dumbbell" role="img" aria-label="{plain(words)}"><title>{plain(words)}</title>'
        f'<rect class="allowed" x="0" y="0" width="{one:.1f}%" height="100%"/>'
        f'<line class="one" x1="{one:.1f}%" x2="{one:.1f}%" y1="0" y2="100%"/>'
        f'<line class="bar" x1="{min(ends):.1f}%" x2="{max(ends):.1f}%" y1="50%" y2="50%"/>{drawn}</svg>'
    )
