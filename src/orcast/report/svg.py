"""A picture as an inline SVG that is as wide as the page lets it be.

The marks are drawn in a square of `SIZE` units that is stretched over the picture; lines keep their thickness.  Text
and ticks are placed by percent on top of it, in the size of the page's own text, so a picture is as readable on a phone
as on a desktop.  Colours come from the style sheet by class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from orcast.report.axes import Scale
from orcast.report.pictures import SIDE_NAMES, Mark, Picture, legend
from orcast.report.text import number, plain

SIZE = 1000.0
_SWATCHES = {"line": "M0 6H26", "range": "M0 6H26", "dot": "M13 6h0", "area": "M0 1H26V11H0Z", "bar": "M6 1H20V11H6Z"}


def draw(picture: Picture) -> str:
    """The SVG, with its title for those who do not see it."""
    gutter = 12 + math.ceil(7.0 * max((len(tick.text) for tick in picture.y.ticks), default=0))
    shape = "square" if picture.height is None else "wide"
    height = "" if picture.height is None else f";--height:{picture.height}px"
    up = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>'
        f'<text class="up" x="0" dx="-8" y="{at}" dy="0.34em">{plain(tick.text)}</text>'
        for tick in picture.y.ticks
        for at in [_percent(1.0 - float(picture.y.scale.place(tick.value)))]
    )
    across = "".join(
        f'<rect class="stub{optional}" x="{at}" y="100%" width="1" height="5"/>'
        f'<text class="across{optional}" x="{at}" y="100%" dy="1.5em">{plain(tick.text)}</text>'
        for tick in picture.x.ticks
        for at in [_percent(float(picture.x.scale.place(tick.value)))]
        for optional in [" optional" if tick.optional else ""]
    )
    marks = "".join(path for mark in picture.marks for path in _paths(mark, picture))
    return (
        f'<svg class="chart {shape}" style="--left:{gutter}px{height}" role="img" aria-label="{plain(picture.title)}">'
        f"<title>{plain(picture.title)}</title>{up}"
        f'<svg viewBox="0 0 {SIZE:g} {SIZE:g}" preserveAspectRatio="none" width="100%" height="100%">{marks}</svg>'
        f'<line class="base" x1="0" x2="100%" y1="100%" y2="100%"/>{across}'
        f'<text class="label" x="0" dx="{8 - gutter}" y="0" dy="-0.9em">{plain(picture.y.label)}</text>'
        f'<text class="label below" x="100%" y="100%" dy="3em">{plain(picture.x.label)}</text></svg>'
    )


def key(pictures: Sequence[Picture]) -> str:
    """What the marks mean."""
    return swatches([(_classes(mark), mark.label) for mark in legend(*pictures)])


def swatches(entries: Sequence[tuple[str, str]]) -> str:
    """A small mark for each (classes, label)."""
    items = "".join(
        '<span><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true">'
        f'<path class="{style}" d="{_SWATCHES[style.split()[0]]}"/></svg>{plain(label)}</span>'
        for style, label in entries
    )
    return f'<p class="key">{items}</p>'


# --- marks ----------------------------------------------------------------------------------------


def _classes(mark: Mark) -> str:
    return " ".join(part for part in (mark.shape, mark.variant, mark.role) if part)


def _paths(mark: Mark, picture: Picture) -> Iterator[str]:
    across, up, style = picture.x.scale, picture.y.scale, _classes(mark)
    x, y = across.place(mark.x), up.place(mark.y)
    base = np.zeros_like(y) if mark.base is None else up.place(mark.base)
    if mark.shape == "line":
        yield _path(line(x, y), style)
    elif mark.shape == "area":
        yield _path(area(x, base, y), style)
    elif mark.shape == "dot" and not mark.hover:
        yield _path(dots(x, y), style)
    elif mark.shape == "dot":
        for a, b, title in zip(x, y, mark.hover, strict=True):
            yield _path(dots([a], [b]), style, title)
    elif mark.shape == "range":
        for a, low, high in zip(x, base, y, strict=True):
            yield _path(line([a, a], [low, high]), f"{style} halo")
            yield _path(line([a, a], [low, high]), style)
    else:
        titles = mark.hover or ("",) * x.size
        for left, right, low, high, title in zip(
            x, across.place(mark.x if mark.right is None else mark.right), base, y, titles, strict=True
        ):
            gap = min(0.0015, (right - left) / 8)
            yield _path(area([left + gap, right - gap], [low, low], [high, high]), style, title)


def _path(d: str, style: str, title: str = "") -> str:
    if not d:
        return ""
    inside = f"<title>{plain(title)}</title>" if title else ""
    return f'<path class="{style}" d="{d}">{inside}</path>'


def line(x: ArrayLike, y: ArrayLike) -> str:
    """A line through places from 0 to 1, as SVG writes it; it has a gap where a value is not finite.

    >>> line([0.0, 1.0], [0.0, 0.5])
    'M0 1000L1000 500'
    """
    parts, pen = [], "M"
    for a, b in zip(np.asarray(x) * SIZE, SIZE - np.asarray(y) * SIZE, strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = "M"
            continue
        parts.append(f"{pen}{_decimal(a)} {_decimal(b)}")
        pen = "L"
    return "".join(parts)


def area(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> str:
    """The area between two lines, where both are finite.

    >>> area([0.0, 1.0], [0.0, 0.0], [1.0, 1.0])
    'M0 1000L1000 1000L1000 0L0 0Z'
    """
    a, b, c = (np.asarray(v, dtype=np.float64) for v in (x, low, high))
    there = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[there], b[there], c[there]
    if a.size == 0:
        return ""
    return line(np.concatenate((a, a[::-1])), np.concatenate((b, c[::-1]))) + "Z"


def dots(x: ArrayLike, y: ArrayLike) -> str:
    """Points: strokes of no length, which round caps make into dots that no stretching deforms."""
    pairs = zip(np.asarray(x) * SIZE, SIZE - np.asarray(y) * SIZE, strict=True)
    return "".join(f"M{_decimal(a)} {_decimal(b)}h0" for a, b in pairs if math.isfinite(a) and math.isfinite(b))


def _decimal(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _percent(place: float) -> str:
    return f"{100.0 * place:.2f}".rstrip("0").rstrip(".") + "%"


# --- in tables ------------------------------------------------------------------------------------


def dumbbell(ratios: Mapping[str, float], scale: Scale) -> str:
    """Where an error lay and lies, in a cell of a table; the line is what chance allows."""
    one = 100.0 * float(scale.place(1.0))
    places = {side: 100.0 * float(scale.place(max(ratio, 1e-300))) for side, ratio in ratios.items()}
    ends = list(places.values())
    title = plain(", ".join(f"{SIDE_NAMES[side]} {number(ratio, digits=3)}" for side, ratio in ratios.items()))
    drawn = "".join(f'<circle class="{side}" cx="{place:.1f}%" cy="50%" r="4.5"/>' for side, place in places.items())
    return (
        f'<svg class="dumbbell" role="img" aria-label="{title}"><title>{title}</title>'
        f'<rect class="allowed" x="0" y="0" width="{one:.1f}%" height="100%"/>'
        f'<line class="one" x1="{one:.1f}%" x2="{one:.1f}%" y1="0" y2="100%"/>'
        f'<line class="bar" x1="{min(ends):.1f}%" x2="{max(ends):.1f}%" y1="50%" y2="50%"/>{drawn}</svg>'
    )
