"""Pictures as SVG: marks on two axes.

The marks are drawn in a square of `SIZE` units stretched over the picture, and lines keep their thickness.  Text and
ticks are placed by percentages in the size of the page's text, so a picture is readable at any width.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.plots.axes import Axis
from orcast.plots.text import plain

Vector = NDArray[np.float64]

SIZE = 1000.0
SWATCHES = {"line": "M0 6H26", "range": "M0 6H26", "dot": "M13 6h0", "area": "M0 1H26V11H0Z", "bar": "M6 1H20V11H6Z"}
# Orange dashed and blue solid: distinct with any colour vision, and in grey.
COLOURS = {
    "paper": "#fdfcfa", "ink": "#1c2127", "soft": "#59626c", "rule": "#e2dfd8", "grid": "#e9e6df",
    "chance": "#d3cfc4", "before": "#c46a0a", "after": "#0b4f94", "bad": "#b3261e", "good": "#1b6e3c",
}  # fmt: skip
SHEET = """
.chart text{font:.78rem system-ui,sans-serif;fill:var(--soft)}
.chart .up,.chart .below{text-anchor:end}
.chart .across{text-anchor:middle}
.chart .label{fill:var(--ink)}
.grid{stroke:var(--grid)}
.base{stroke:var(--soft)}
path{vector-effect:non-scaling-stroke;fill:none;stroke:none}
path.line{stroke-width:2.2;stroke-linejoin:round}
path.thin{stroke-width:1.5}
path.dot{stroke-linecap:round;stroke-width:8}
path.before{stroke:var(--before)}
path.after{stroke:var(--after)}
path.line.before{stroke-dasharray:6 3}
path.line.target{stroke:var(--ink);stroke-width:1;stroke-dasharray:1.5 3}
path.line.bound{stroke:var(--ink);stroke-width:1.8;stroke-dasharray:9 4}
path.range{stroke:var(--ink);stroke-width:1.5}
path.dot.outcome{stroke:var(--ink);stroke-width:4}
path.bar,path.area{stroke:none}
path.bar.before,path.area.before{fill:var(--before)}
path.bar.after,path.area.after{fill:var(--after)}
path.bar.worse{fill:var(--bad)}
path.area.outer{fill-opacity:.2}
path.area.inner{fill-opacity:.36}
path.area.chance,path.bar.chance{fill:var(--chance);fill-opacity:.75}
path.area.over{fill:var(--ink);fill-opacity:.2}
"""


@dataclass(frozen=True, eq=False)
class Mark:
    """One drawn element.

    `shape` is "line", "dot", "area" (between `base` and `y`), "bar" (from `x` to `right`, `base` to `y`) or "range"
    (vertical, from `base` to `y`).  `role` sets the colour, `variant` a lighter or thinner form.  A `label` appears in
    the key; `hover` has a text per bar or dot.
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

    @property
    def classes(self) -> str:
        """Classes of the style sheet."""
        return " ".join(part for part in (self.shape, self.variant, self.role) if part)


@dataclass(frozen=True, eq=False)
class Picture:
    """Marks on two axes under a title; a notebook shows it.

    Examples
    --------
    >>> from orcast.plots.axes import Axis
    >>> line = Mark("line", "after", np.array([0.0, 1.0]), np.array([0.0, 0.5]), label="a line")
    >>> picture = Picture("An example", Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0), (line,))
    >>> "M0 1000L1000 500" in picture.svg()
    True
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height: int = 220

    def inner(self) -> str:
        """Elements of the picture without the outer svg."""
        up = "".join(
            f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>'
            f'<text class="up" x="0" dx="-8" y="{at}" dy="0.34em">{plain(text)}</text>'
            for value, text in self.y.ticks
            for at in [_percent(1.0 - float(self.y.place(value)))]
        )
        across = "".join(
            f'<text class="across{" optional" if k % 2 and len(self.x.ticks) > 4 else ""}" '
            f'x="{_percent(float(self.x.place(value)))}" y="100%" dy="1.5em">{plain(text)}</text>'
            for k, (value, text) in enumerate(self.x.ticks)
        )
        marks = "".join(path for mark in self.marks for path in _paths(mark, self))
        return (
            f'{up}<svg viewBox="0 0 {SIZE:g} {SIZE:g}" preserveAspectRatio="none" width="100%" height="100%" '
            f'overflow="visible">{marks}</svg><line class="base" x1="0" x2="100%" y1="100%" y2="100%"/>{across}'
            f'<text class="label" x="0" dx="{8 - self.left}" y="0" dy="-0.9em">{plain(self.y.label)}</text>'
            f'<text class="label below" x="100%" y="100%" dy="3em">{plain(self.x.label)}</text>'
        )

    @property
    def left(self) -> int:
        """Width of the tick texts on the left, in pixels."""
        return 14 + math.ceil(7.0 * max((len(text) for _, text in self.y.ticks), default=0))

    def html(self) -> str:
        """Key and chart for a page with the style sheet."""
        return key(self.marks) + (
            f'<svg class="chart" style="--left:{self.left}px;--height:{self.height}px" role="img" '
            f'aria-label="{plain(self.title)}"><title>{plain(self.title)}</title>{self.inner()}</svg>'
        )

    def svg(self, width: int = 720) -> str:
        """Standalone SVG file of fixed width, in light colours."""
        sheet = re.sub(r"var\(--(\w+)\)", lambda found: COLOURS[found[1]], SHEET)
        entries, x, y = [], self.left, 48
        for mark in labelled(self.marks):
            if x + 42 + 7 * len(mark.label) > width:
                x, y = self.left, y + 20
            entries.append(f'<path class="{mark.classes}" transform="translate({x} {y - 9})" d="{_swatch(mark)}"/>')
            entries.append(f'<text x="{x + 32}" y="{y}">{plain(mark.label)}</text>')
            x += 52 + 7 * len(mark.label)
        top = y + 36
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{width}" height="{top + self.height + 60}">'
            f'<style>{sheet}</style><rect width="100%" height="100%" fill="{COLOURS["paper"]}"/>'
            f'<text x="{self.left}" y="24" style="font-weight:600;fill:{COLOURS["ink"]}">{plain(self.title)}</text>'
            f'{"".join(entries)}<svg x="{self.left}" y="{top}" width="{width - self.left - 24}" '
            f'height="{self.height}" overflow="visible">{self.inner()}</svg></svg>\n'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an SVG file."""
        if Path(path).suffix.lower() != ".svg":
            raise ValueError(f"expected a file name that ends in .svg, got {str(path)!r}")
        Path(path).write_text(self.svg(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()


def labelled(marks: tuple[Mark, ...]) -> list[Mark]:
    """Marks of the key, one per label: data first, chance and target last."""
    found: dict[str, Mark] = {}
    for mark in marks:
        if mark.label:
            found.setdefault(mark.label, mark)
    last = {"range": 1, "chance": 2, "target": 3}
    return sorted(found.values(), key=lambda mark: last.get(mark.role, 0))


def key(marks: tuple[Mark, ...]) -> str:
    """Key of a chart as HTML."""
    items = "".join(
        f'<span><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true"><path class="{mark.classes}" '
        f'd="{_swatch(mark)}"/></svg>{plain(mark.label)}</span>'
        for mark in labelled(marks)
    )
    return f'<p class="key">{items}</p>'


def _swatch(mark: Mark) -> str:
    return SWATCHES[mark.shape]


def _paths(mark: Mark, picture: Picture) -> Iterator[str]:
    x, y = picture.x.place(mark.x), picture.y.place(mark.y)
    base = np.zeros_like(y) if mark.base is None else picture.y.place(mark.base)
    titles = mark.hover or ("",) * x.size
    if mark.shape == "line":
        yield _path(line(x, y), mark)
    elif mark.shape == "area":
        yield _path(area(x, base, y), mark)
    elif mark.shape == "dot":
        for a, b, title in zip(x, y, titles, strict=True):
            yield _path(line([a], [b]) + "h0" if math.isfinite(a) and math.isfinite(b) else "", mark, title)
    elif mark.shape == "range":
        for a, low, high in zip(x, base, y, strict=True):
            yield _path(line([a, a], [low, high]), mark)
    else:
        rights = picture.x.place(mark.x if mark.right is None else mark.right)
        for left, right, low, high, title in zip(x, rights, base, y, titles, strict=True):
            yield _path(area([left, right], [low, low], [high, high]), mark, title)


def _path(d: str, mark: Mark, title: str = "") -> str:
    if not d:
        return ""
    inside = f"<title>{plain(title)}</title>" if title else ""
    return f'<path class="{mark.classes}" d="{d}">{inside}</path>'


def line(x: ArrayLike, y: ArrayLike) -> str:
    """SVG path through positions from 0 to 1, with gaps where a value is not finite.

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
    """SVG path around the area between two lines, where both are finite.

    >>> area([0.0, 1.0], [0.0, 0.0], [1.0, 1.0])
    'M0 1000L1000 1000L1000 0L0 0Z'
    """
    a, b, c = (np.asarray(v, dtype=np.float64) for v in (x, low, high))
    there = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[there], b[there], c[there]
    return line(np.concatenate((a, a[::-1])), np.concatenate((b, c[::-1]))) + "Z" if a.size else ""


def _decimal(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _percent(place: float) -> str:
    return f"{100.0 * place:.2f}".rstrip("0").rstrip(".") + "%"
