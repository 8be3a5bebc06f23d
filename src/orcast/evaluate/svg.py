"""Pictures as SVG in HTML: marks in a square of `SIZE` units that is stretched, and text that is not."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

# Missing number.
NOTHING = "\u2013"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")

# --- text


def clean(text: object) -> str:
    """Text without control characters and unpaired surrogates."""
    return _CONTROL.sub(" ", str(text)).encode("utf-8", "replace").decode("utf-8").strip()


def plain(text: object) -> str:
    """Text escaped for tags and quoted attributes."""
    return escape(clean(text), quote=True)


def shortened(text: object, limit: int = 48) -> str:
    """Beginning and end of a long text."""
    own, tail = clean(text), limit // 4
    return own if len(own) <= limit else f"{own[: limit - tail - 1]}…{own[-tail:]}"


def number(value: float | None) -> str:
    """Number with four significant digits, a whole one from 1,000 on."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"


def percent(share: float, *, sign: bool = False) -> str:
    """Share in percent."""
    return f"{share:{'+' if sign else ''},.1%}" if math.isfinite(share) else NOTHING


# --- axes


@dataclass(frozen=True)
class Axis:
    """Label, ends and ticks (value and text)."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()

    def place(self, values: ArrayLike) -> Vector:
        """Positions from 0 to 1, clipped."""
        v = np.asarray(values, dtype=np.float64)
        span = self.high - self.low
        return np.clip((v - self.low) / span if span > 0.0 else np.full(v.shape, 0.5), 0.0, 1.0)


def number_axis(label: str, low: float, high: float, *, share: bool = False) -> Axis:
    """Axis with a few round ticks; `share` writes percentages."""
    span, most = high - low, 5
    if not (math.isfinite(span) and span > 0.0):
        return Axis(label, low, high)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if m * power >= span / most * (1.0 - 1e-9))
    decimals = max(1 - math.floor(math.log10(step)), 0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [round(k * step, decimals) + 0.0 for k in range(first, last + 1)]
    texts = [f"{100.0 * v:,.10g}%" if share else f"{v:,.10g}" for v in values]
    return Axis(label, low, high, tuple(zip(values, texts, strict=True)))


def around(label: str, *values: ArrayLike) -> Axis:
    """Axis that shows all values with a margin."""
    every = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    space = 0.05 * (high - low)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        space = 0.1 * abs(low) or 0.5
    return number_axis(label, low - space, high + space)


def name_axis(label: str, names: Sequence[object], most: int = 12) -> Axis:
    """Axis with one name per unit, thinned to `most`."""
    every = max(1, -(-len(names) // most))
    ticks = tuple((k + 0.5, shortened(names[k], 16)) for k in range(0, len(names), every))
    return Axis(label, 0.0, float(len(names)), ticks)


# --- pictures

SIZE = 1000.0
SWATCHES = {"line": "M0 6H26", "dot": "M13 6h0", "area": "M0 1H26V11H0Z"}
# Orange dashed and blue solid: distinct with any colour vision, and in grey.
LIGHT = (
    "--paper:#fdfcfa;--ink:#1c2127;--soft:#59626c;--rule:#e2dfd8;--grid:#e9e6df;--chance:#d3cfc4;"
    "--before:#c46a0a;--after:#0b4f94;--bad:#b3261e;--good:#1b6e3c"
)
SHEET = """
.chart{display:block;overflow:visible;width:calc(100% - var(--left) - 14px);height:var(--height);
margin:1.9rem 14px 3.2rem var(--left);font-variant-numeric:tabular-nums}
.key{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;font-size:.86rem}
.key span{display:inline-flex;align-items:center;gap:.45rem}
.swatch{width:26px;height:12px;flex:none}
.chart text{font:.78rem system-ui,sans-serif;fill:var(--soft)}
.chart .up,.chart .below{text-anchor:end}
.chart .across{text-anchor:middle}
.chart .first{text-anchor:start}
.chart .label{fill:var(--ink)}
.chart .grid{stroke:var(--grid)}
.chart .base{stroke:var(--soft)}
.chart path,.swatch path{vector-effect:non-scaling-stroke;fill:none;stroke:none}
path.line{stroke-width:2.2;stroke-linejoin:round}
path.thin{stroke-width:1.5}
path.dot{stroke-linecap:round;stroke-width:8}
path.before{stroke:var(--before)}
path.after{stroke:var(--after)}
path.line.before{stroke-dasharray:6 3}
path.line.target{stroke:var(--ink);stroke-width:1;stroke-dasharray:1.5 3}
path.dot.outcome{stroke:var(--ink);stroke-width:4}
path.area{stroke:none}
path.area.before{fill:var(--before)}
path.area.after{fill:var(--after)}
path.area.outer{fill-opacity:.2}
path.area.chance{fill:var(--chance);fill-opacity:.75}
"""


@dataclass(frozen=True, eq=False)
class Mark:
    """One drawn element; a `label` appears in the key."""

    shape: str  # "line", "dot" or "area" (between `base` and `y`)
    role: str  # sets the colour and thickness
    x: Vector
    y: Vector
    base: Vector | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """Marks on two axes under a title; a notebook shows it.

    Parameters
    ----------
    title : str
        Title.
    x, y : Axis
        Axes.
    marks : tuple of Mark
        Lines, areas and dots.
    height : int
        Height in pixels.

    Examples
    --------
    >>> line = Mark("line", "after", np.array([0.0, 1.0]), np.array([0.0, 0.5]), label="a line")
    >>> picture = Picture("An example", Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0), (line,))
    >>> "M0 1000L1000 500" in picture.html()
    True
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height: int = 220

    def html(self) -> str:
        """Key and chart for a page with the style sheet."""
        key = "".join(
            f'<span><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true"><path class="{mark.shape} {mark.role}" '
            f'd="{SWATCHES[mark.shape]}"/></svg>{plain(mark.label)}</span>'
            for mark in self.marks
            if mark.label
        )
        # width of the tick texts, in pixels
        left = 14 + math.ceil(7.0 * max((len(text) for _, text in self.y.ticks), default=0))
        return (
            f'<p class="key">{key}</p><svg class="chart" style="--left:{left}px;--height:{self.height}px" role="img" '
            f'aria-label="{plain(self.title)}"><title>{plain(self.title)}</title>{self._rules()}'
            f'<svg viewBox="0 0 {SIZE:g} {SIZE:g}" preserveAspectRatio="none" width="100%" height="100%" '
            f'overflow="visible">{"".join(_path(mark, self) for mark in self.marks)}</svg>'
            f'<text class="label" x="0" dx="{8 - left}" y="0" dy="-0.9em">{plain(self.y.label)}</text>'
            f'<text class="label below" x="100%" y="100%" dy="3em">{plain(self.x.label)}</text></svg>'
        )

    def _rules(self) -> str:
        """Grid, ticks and base line."""
        up = "".join(
            f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>'
            f'<text class="up" x="0" dx="-8" y="{at}" dy="0.34em">{plain(text)}</text>'
            for value, text in self.y.ticks
            for at in [f"{100.0 - 100.0 * float(self.y.place(value)):.2f}%"]
        )
        # on a narrow page every second text is hidden, of long ones three of four; a long first one begins at the axis
        long = max((len(text) for _, text in self.x.ticks), default=0) > 6
        every = 4 if long else 2
        across = "".join(
            f'<text class="across{" first" if long and k == 0 else ""}'
            f'{" optional" if k % every and len(self.x.ticks) > 4 else ""}" '
            f'x="{100.0 * float(self.x.place(value)):.2f}%" y="100%" dy="1.5em">{plain(text)}</text>'
            for k, (value, text) in enumerate(self.x.ticks)
        )
        return f'{up}<line class="base" x1="0" x2="100%" y1="100%" y2="100%"/>{across}'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an HTML page."""
        if Path(path).suffix.lower() != ".html":
            raise ValueError(f"expected a file name that ends in .html, got {str(path)!r}")
        page = f'<!DOCTYPE html>\n<meta charset="utf-8"><title>{plain(self.title)}</title>{self._repr_html_()}\n'
        Path(path).write_text(page, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f"<style>:root{{{LIGHT}}}{SHEET}</style><h3>{plain(self.title)}</h3>{self.html()}"


def _path(mark: Mark, picture: Picture) -> str:
    x, y = SIZE * picture.x.place(mark.x), SIZE - SIZE * picture.y.place(mark.y)
    if mark.base is not None:
        x, y = np.append(x, x[::-1]), np.append(y, SIZE - SIZE * picture.y.place(mark.base)[::-1])
    points = [f"M{a:.5g} {b:.5g}" for a, b in zip(x, y, strict=True)]
    d = "".join(f"{point}h0" for point in points) if mark.shape == "dot" else "L".join(points).replace("LM", "L")
    end = "Z" if mark.shape == "area" else ""
    return f'<path class="{mark.shape} {mark.role}" d="{d}{end}"/>' if points else ""
