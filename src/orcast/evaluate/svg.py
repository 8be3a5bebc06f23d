"""Pictures as SVG: marks on two axes, with escaped text and formatted numbers.

Marks are drawn in a square of `SIZE` units stretched over the picture, and lines keep their thickness.  Text and ticks
are placed by percentages in the size of the page's text, so a picture is readable at any width.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

# Missing number, and the sign of a negative one.
NOTHING, MINUS = "\u2013", "\u2212"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")

# --- text


def clean(text: object) -> str:
    """Text without control characters and unpaired surrogates."""
    return _CONTROL.sub(" ", str(text)).encode("utf-8", "replace").decode("utf-8").strip()


def plain(text: object) -> str:
    """Text escaped for tags and quoted attributes."""
    return escape(clean(text), quote=True)


def shortened(text: object, limit: int = 48) -> str:
    """Beginning and end of a long text.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 12)
    'abcdefgh…xyz'
    """
    own, tail = clean(text), limit // 4
    return own if len(own) <= limit else f"{own[: limit - tail - 1]}…{own[-tail:]}"


def number(value: float | None, *, digits: int = 4) -> str:
    """Number with `digits` significant digits and separated thousands.

    >>> number(12345.678), number(0.00123456), number(-2.5), number(float("nan")), number(3.2e12)
    ('12,346', '0.001235', '−2.5', '–', '3.2e12')
    """  # noqa: RUF002
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(float(value))
    if size >= 1e9 or 0.0 < size < 1e-5:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        decimals = max(digits - 1 - (math.floor(math.log10(size)) if size > 0.0 else 0), 0)
        text = f"{size:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return _signed(text, value, False)


def percent(share: float | None, *, decimals: int = 1, sign: bool = False) -> str:
    """Share in percent.

    >>> percent(0.8125), percent(0.9), percent(-0.031, sign=True), percent(1.0, decimals=0)
    ('81.2%', '90.0%', '−3.1%', '100%')
    """  # noqa: RUF002
    if share is None or not math.isfinite(share):
        return NOTHING
    return _signed(f"{abs(100.0 * share):,.{decimals}f}%", share, sign)


def _signed(text: str, value: float, sign: bool) -> str:
    if not any(c in "123456789" for c in text):
        return text  # no minus before a zero
    return f"{MINUS}{text}" if value < 0 else f"+{text}" if sign else text


# --- axes

# Units of date ticks: numpy's name, seconds, multiples, part of the ISO text.
UNITS = (
    ("s", 1.0, (1, 15), slice(11, 19)),
    ("m", 60.0, (1, 5, 15, 30), slice(11, 16)),
    ("h", 3600.0, (1, 3, 6, 12), slice(5, 16)),
    ("D", 86_400.0, (1, 2, 7, 14), slice(0, 10)),
    ("M", 2_629_746.0, (1, 3, 6), slice(0, 7)),
    ("Y", 31_556_952.0, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), slice(0, 4)),
)


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


def number_axis(label: str, low: float, high: float, *, most: int = 5, share: bool = False) -> Axis:
    """Axis with at most `most` + 1 round ticks; `share` writes percentages.

    >>> [text for _, text in number_axis("level", 0.0, 1.0, share=True).ticks]
    ['0%', '20%', '40%', '60%', '80%', '100%']
    """
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return Axis(label, low, high)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if m * power >= span / most * (1.0 - 1e-9))
    decimals = max(1 - math.floor(math.log10(step)), 0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [round(k * step, decimals) + 0.0 for k in range(first, last + 1)]
    digits = 0 if step >= 0.00999 else 1
    texts = [percent(v, decimals=digits) if share else number(v, digits=6) for v in values]
    return Axis(label, low, high, tuple(zip(values, texts, strict=True)))


def around(label: str, *values: ArrayLike, share: bool = False, within: tuple[float, float] | None = None) -> Axis:
    """Axis that shows all finite values with a margin."""
    every = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    space = 0.05 * (high - low)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        space = 0.1 * abs(low) or 0.5
    low, high = low - space, high + space
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return number_axis(label, low, high, share=share)


def name_axis(label: str, names: tuple[str, ...]) -> Axis:
    """Axis with one name per unit, thinned to 12."""
    every = max(1, -(-len(names) // 12))
    ticks = tuple((k + 0.5, shortened(names[k], 12)) for k in range(0, len(names), every))
    return Axis(label, 0.0, float(len(names)), ticks)


def time_axis(values: NDArray[Any]) -> tuple[Axis, Vector]:
    """Axis for dates, numbers or names, and the positions of the values on it.

    >>> axis, x = time_axis(np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[D]"))
    >>> axis.place(x).tolist(), [text for _, text in axis.ticks]
    ([0.0, 0.5, 1.0], ['2024-01-01', '2024-01-02', '2024-01-03'])
    """
    if values.dtype.kind == "M" and values.size and not np.isnat(values).any():
        return _date_axis(values.astype("datetime64[us]"))
    if values.dtype.kind in "iuf" and values.size and np.isfinite(values.astype(np.float64)).all():
        x = values.astype(np.float64)
        return number_axis("time", float(x.min()), float(x.max())), x
    x = np.arange(values.size, dtype=np.float64) + 0.5
    return name_axis("time", tuple(map(str, values))), x


def _date_axis(values: NDArray[Any]) -> tuple[Axis, Vector]:
    x = values.astype(np.int64).astype(np.float64)
    first, last = values.min(), values.max()
    seconds = float((last - first).astype(np.int64)) / 1e6
    # no ticks finer than the data
    finest = max((k for k, unit in enumerate(UNITS) if (values == values.astype(f"M8[{unit[0]}]")).all()), default=0)
    steps = [
        (unit, many, part) for unit, size, times, part in UNITS[finest:] for many in times if seconds <= 5 * size * many
    ]
    unit, many, part = steps[0] if steps else ("Y", 1000, slice(0, 4))
    start, stop = (end.astype(f"datetime64[{unit}]").astype(np.int64) for end in (first, last))
    origin = 1970 if unit == "Y" else 4 if unit == "D" and many >= 7 else 0
    counted = np.arange(start - (start + origin) % many, stop + 1, many).astype(f"datetime64[{unit}]")
    moments = counted.astype("datetime64[us]")
    there = (moments >= first) & (moments <= last)
    ticks = [(float(m.astype(np.int64)), str(m).replace("T", " ")[part]) for m in moments[there]]
    return Axis("time", float(x.min()), float(x.max()), tuple(ticks)), x


# --- pictures

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
path.range{stroke:var(--ink);stroke-width:1.5}
path.dot.outcome{stroke:var(--ink);stroke-width:4}
path.bar,path.area{stroke:none}
path.bar.before,path.area.before{fill:var(--before)}
path.bar.after,path.area.after{fill:var(--after)}
path.bar.worse{fill:var(--bad)}
path.area.outer{fill-opacity:.2}
path.area.inner{fill-opacity:.36}
path.area.chance,path.bar.chance{fill:var(--chance);fill-opacity:.75}
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

    @property
    def left(self) -> int:
        """Width of the tick texts on the left, in pixels."""
        return 14 + math.ceil(7.0 * max((len(text) for _, text in self.y.ticks), default=0))

    @property
    def labelled(self) -> list[Mark]:
        """Marks of the key, one per label: data first, chance and target last."""
        found: dict[str, Mark] = {}
        for mark in self.marks:
            if mark.label:
                found.setdefault(mark.label, mark)
        last = {"range": 1, "chance": 2, "target": 3}
        return sorted(found.values(), key=lambda mark: last.get(mark.role, 0))

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

    def html(self) -> str:
        """Key and chart for a page with the style sheet."""
        items = "".join(
            f'<span><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true"><path class="{mark.classes}" '
            f'd="{SWATCHES[mark.shape]}"/></svg>{plain(mark.label)}</span>'
            for mark in self.labelled
        )
        return (
            f'<p class="key">{items}</p><svg class="chart" style="--left:{self.left}px;--height:{self.height}px" '
            f'role="img" aria-label="{plain(self.title)}"><title>{plain(self.title)}</title>{self.inner()}</svg>'
        )

    def svg(self, width: int = 720) -> str:
        """Standalone SVG file of fixed width, in light colours."""
        sheet = re.sub(r"var\(--(\w+)\)", lambda found: COLOURS[found[1]], SHEET)
        entries, x, y = [], self.left, 48
        for mark in self.labelled:
            if x + 42 + 7 * len(mark.label) > width:
                x, y = self.left, y + 20
            at = f'transform="translate({x} {y - 9})"'
            entries.append(f'<path class="{mark.classes}" {at} d="{SWATCHES[mark.shape]}"/>')
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


def _paths(mark: Mark, picture: Picture) -> Iterator[str]:
    x, y = picture.x.place(mark.x), picture.y.place(mark.y)
    base = np.zeros_like(y) if mark.base is None else picture.y.place(mark.base)
    rights = x if mark.right is None else picture.x.place(mark.right)
    if mark.shape == "line":
        yield _path(line(x, y), mark)
        return
    if mark.shape == "area":
        yield _path(area(x, base, y), mark)
        return
    titles = mark.hover or ("",) * x.size
    for left, right, low, high, title in zip(x, rights, base, y, titles, strict=True):
        if mark.shape == "dot":
            dot = line([left], [high])
            yield _path(f"{dot}h0" if dot else "", mark, title)
        elif mark.shape == "range":
            yield _path(line([left, left], [low, high]), mark)
        else:
            yield _path(area([left, right], [low, low], [high, high]), mark, title)


def _path(d: str, mark: Mark, title: str = "") -> str:
    inside = f"<title>{plain(title)}</title>" if title else ""
    return f'<path class="{mark.classes}" d="{d}">{inside}</path>' if d else ""


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
    """SVG path around the area between two lines, where both are finite."""
    a, b, c = (np.asarray(v, dtype=np.float64) for v in (x, low, high))
    there = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[there], b[there], c[there]
    return line(np.concatenate((a, a[::-1])), np.concatenate((b, c[::-1]))) + "Z" if a.size else ""


def _decimal(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _percent(place: float) -> str:
    return f"{100.0 * place:.2f}".rstrip("0").rstrip(".") + "%"
