"""Scales, ticks and the frame of a picture: an inline SVG that is as wide as the page lets it be.

The marks are drawn in a square of `SIDE` units that is stretched over the picture; lines keep their thickness.  Words
and ticks are placed by percent on top of it, in the size of the page's own text, so a picture is as readable on a phone
as on a desk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.report.text import MINUS, number, plain

Vector = NDArray[np.float64]

SIDE = 1000.0


@dataclass(frozen=True)
class Tick:
    """A place from 0 to 1, what stands there, and whether a phone can do without the words."""

    place: float
    text: str
    spare: bool = False


@dataclass(frozen=True)
class Scale:
    """Values to places from 0 to 1.

    >>> Scale(0.0, 10.0).place([0.0, 5.0, 10.0]).tolist()
    [0.0, 0.5, 1.0]
    >>> Scale(1.0, 100.0, log=True).place([1.0, 10.0]).tolist()
    [0.0, 0.5]
    """

    low: float
    high: float
    log: bool = False

    def place(self, values: ArrayLike) -> Vector:
        """Where the values are; what lies beyond the ends is put on them."""
        v = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            v, low, high = np.log10(np.maximum(v, self.low)), math.log10(low), math.log10(high)
        span = high - low
        return np.clip((v - low) / span if span > 0.0 else np.full(v.shape, 0.5), 0.0, 1.0)


def around(*values: ArrayLike, margin: float = 0.04, at_least: tuple[float, float] | None = None) -> Scale:
    """A scale that shows all finite values, with a margin; one value alone lies in the middle.

    >>> around([1.0, 3.0], margin=0.0)
    Scale(low=1.0, high=3.0, log=False)
    >>> around([5.0])
    Scale(low=4.5, high=5.5, log=False)
    """
    every = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
    every = every[np.isfinite(every)]
    if at_least is not None:
        every = np.concatenate((every, at_least))
    if every.size == 0:
        return Scale(0.0, 1.0)
    low, high = float(every.min()), float(every.max())
    room = margin * (high - low)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        room = 0.1 * abs(low) or 0.5
    return Scale(low - room, high + room)


def ticks(scale: Scale, *, most: int = 6, share: bool = False) -> list[Tick]:
    """Round values on a scale, `share` in percent.

    >>> [tick.text for tick in ticks(Scale(0.0, 1.0), share=True)]
    ['0%', '20%', '40%', '60%', '80%', '100%']
    >>> [tick.text for tick in ticks(Scale(1.0, 5000.0, log=True))]
    ['1', '10', '100', '1,000']
    """
    values = _decades(scale, most) if scale.log else _steps(scale.low, scale.high, most)
    places = scale.place(values)
    texts = [f"{100.0 * v:.4g}%".replace("-", MINUS) if share else number(v, digits=6) for v in values]
    return [Tick(float(p), text) for p, text in zip(places, texts, strict=True)]


def _steps(low: float, high: float, most: int) -> list[float]:
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if m * power >= rough * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # round as decimals: 3 * 0.1 is to be 0.3
    decimals = max(1 - math.floor(math.log10(step)), 0)
    return [round(k * step, decimals) + 0.0 for k in range(first, last + 1)]


def _decades(scale: Scale, most: int) -> list[float]:
    first, last = math.ceil(math.log10(scale.low) - 1e-9), math.floor(math.log10(scale.high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    values = [10.0**k for k in range(first, last + 1, step)]
    if len(values) >= 3:
        return values
    fine = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
    return [v for v in fine if scale.low * (1 - 1e-9) <= v <= scale.high * (1 + 1e-9)] or [scale.low]


# --- time -----------------------------------------------------------------------------------------

_STEPS = [
    *(("s", many) for many in (1, 5, 15, 30)),
    *(("m", many) for many in (1, 5, 15, 30)),
    *(("h", many) for many in (1, 3, 6, 12)),
    *(("D", many) for many in (1, 2, 7, 14)),
    *(("M", many) for many in (1, 3, 6)),
    *(("Y", many) for many in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
]
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "D": 86_400.0, "M": 2_629_746.0, "Y": 31_556_952.0}
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@dataclass(frozen=True)
class TimeAxis:
    """The horizontal axis of a stretch of time: dates, numbers, or rows with labels.

    >>> axis = TimeAxis(np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[D]"))
    >>> axis.place.tolist(), [tick.text for tick in axis.ticks()], axis.words
    ([0.0, 0.5, 1.0], ['1 Jan', '2 Jan', '3 Jan'], 'time, 2024-01-01 to 2024-01-03')
    >>> TimeAxis(np.array(["a", "b", "c"])).words
    'time, a to c'
    """

    values: NDArray[Any]

    @property
    def _numbers(self) -> Vector:
        """The values as numbers in their own unit; rows are counted where that is not possible."""
        if self.values.dtype.kind == "M" and not np.isnat(self.values).any():
            return self.values.astype("datetime64[us]").astype(np.int64).astype(np.float64)
        if self.values.dtype.kind in "iuf":
            own = self.values.astype(np.float64)
            if np.isfinite(own).all():
                return own
        return np.arange(1, self.values.size + 1, dtype=np.float64)

    @property
    def scale(self) -> Scale:
        """From the first to the last."""
        own = self._numbers
        return Scale(float(own.min()), float(own.max())) if own.size else Scale(0.0, 1.0)

    @property
    def place(self) -> Vector:
        """Where each value is, from 0 to 1."""
        return self.scale.place(self._numbers)

    def ticks(self, most: int = 6) -> list[Tick]:
        """Round dates or numbers, or a few of the labels; every second is spare where there are many."""
        if self.values.size == 0:
            return []
        kind = self.values.dtype.kind
        if kind == "M" and not np.isnat(self.values).any():
            found = _dates(self.values, self.scale, most)
        elif kind in "iuf":
            found = ticks(self.scale, most=most)
        else:
            chosen = np.unique(np.linspace(0, self.values.size - 1, min(4, self.values.size)).round().astype(int))
            found = [Tick(float(self.place[i]), str(self.values[i])[:10]) for i in chosen]
        return [Tick(t.place, t.text, len(found) > 4 and i % 2 == 1) for i, t in enumerate(found)]

    @property
    def words(self) -> str:
        """What the axis shows, from when to when."""
        if self.values.size == 0:
            return "time"
        first, last = (moment(self.values[i]) for i in (0, -1))
        return f"time, {first} to {last}" if first != last else f"time, {first}"


def moment(value: Any) -> str:
    """A time as text, as short as it can be without loss.

    >>> moment(np.datetime64("2024-03-01T00:00:00.000000000")), moment(np.datetime64("2024-03-01T06:30")), moment(3)
    ('2024-03-01', '2024-03-01 06:30', '3')
    """
    if not isinstance(value, np.datetime64):
        return number(float(value), digits=12) if isinstance(value, (int, float, np.number)) else str(value)
    if np.isnat(value):
        return "no time"
    for unit in ("D", "m", "s", "ms"):
        if value == value.astype(f"datetime64[{unit}]"):
            return str(value.astype(f"datetime64[{unit}]")).replace("T", " ")
    return str(value).replace("T", " ")


def _dates(values: NDArray[Any], scale: Scale, most: int) -> list[Tick]:
    first, last = values.min().astype("datetime64[us]"), values.max().astype("datetime64[us]")
    seconds = float((last - first).astype(np.int64)) / 1e6
    found: NDArray[Any] = np.array([first])
    unit = "s"
    # no ticks finer than the data: daily values have no noon
    own = next((u for u in ("Y", "M", "D", "h", "m") if (values == values.astype(f"datetime64[{u}]")).all()), "s")
    for unit, many in _STEPS[next(i for i, (u, _) in enumerate(_STEPS) if u == own) :]:
        # only a step that is not far too fine is tried, so that nothing long is made
        if seconds / (_SECONDS[unit] * many) > 3 * most:
            continue
        start, stop = first.astype(f"datetime64[{unit}]"), last.astype(f"datetime64[{unit}]")
        counted = start.astype(np.int64)
        # days are counted from a Monday, the rest from a round one
        shift = 4 if unit == "D" and many >= 7 else 1970 if unit == "Y" else 0
        counted = counted - (counted + shift) % many
        found = np.arange(counted, stop.astype(np.int64) + 1, many).astype(f"datetime64[{unit}]")
        found = found[(found >= first) & (found <= last)]
        if found.size <= most:
            break
    if found.size == 0:
        found, unit = np.array([first]), "s" if first != first.astype("datetime64[D]") else "D"
    numbers = found.astype("datetime64[us]").astype(np.int64).astype(np.float64)
    years = found.astype("datetime64[Y]")
    new = np.append(True, years[1:] != years[:-1])  # the year is said once
    texts = [_date(v, unit, bool(n)) for v, n in zip(found, new, strict=True)]
    return [Tick(float(p), text) for p, text in zip(scale.place(numbers), texts, strict=True)]


def _date(value: np.datetime64, unit: str, new: bool) -> str:
    year, month, day = str(value.astype("datetime64[D]")).rsplit("-", 2)
    if unit == "Y":
        return year
    if unit == "M":
        return _MONTHS[int(month) - 1] + (f" {year}" if new else "")
    if unit == "D" or value == value.astype("datetime64[D]"):
        return f"{int(day)} {_MONTHS[int(month) - 1]}"
    return str(value.astype("datetime64[s]")).split("T")[1][: 8 if unit == "s" else 5]


# --- the frame ------------------------------------------------------------------------------------


def path(x: ArrayLike, y: ArrayLike) -> str:
    """A line through places from 0 to 1, as SVG says it; it has a gap where a value is not finite.

    >>> path([0.0, 1.0], [0.0, 0.5])
    'M0 1000L1000 500'
    """
    parts, pen = [], "M"
    for a, b in zip(np.asarray(x) * SIDE, SIDE - np.asarray(y) * SIDE, strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = "M"
            continue
        parts.append(f"{pen}{_short(a)} {_short(b)}")
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
    return path(np.concatenate((a, a[::-1])), np.concatenate((b, c[::-1]))) + "Z"


def dots(x: ArrayLike, y: ArrayLike) -> str:
    """Points: strokes of no length, which round caps make into dots that no stretching deforms."""
    pairs = zip(np.asarray(x) * SIDE, SIDE - np.asarray(y) * SIDE, strict=True)
    return "".join(f"M{_short(a)} {_short(b)}h0" for a, b in pairs if math.isfinite(a) and math.isfinite(b))


def mark(d: str, style: str, title: str = "") -> str:
    """A path with the classes of the style sheet, and words that show when hovered."""
    if not d:
        return ""
    words = f"<title>{plain(title)}</title>" if title else ""
    return f'<path class="{style}" d="{d}">{words}</path>'


def _short(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


@dataclass(frozen=True)
class PlotFrame:
    """A picture's axes: ticks, what they count, and how high it is in pixels (None: as high as wide)."""

    across: Sequence[Tick]
    up: Sequence[Tick]
    across_words: str
    up_words: str
    height: int | None = 240

    def draw(self, marks: Iterable[str], *, title: str) -> str:
        """The SVG with its title for those who do not see it."""
        gutter = 12 + math.ceil(7.0 * max((len(tick.text) for tick in self.up), default=0))
        shape = "square" if self.height is None else "wide"
        size = "" if self.height is None else f";--height:{self.height}px"
        grid = "".join(
            f'<line class="grid" x1="0" x2="100%" y1="{_at(1 - t.place)}" y2="{_at(1 - t.place)}"/>'
            f'<text class="up" x="0" dx="-8" y="{_at(1 - t.place)}" dy="0.34em">{plain(t.text)}</text>'
            for t in self.up
        )
        across = "".join(
            f'<rect class="stub{" spare" if t.spare else ""}" x="{_at(t.place)}" y="100%" width="1" height="5"/>'
            f'<text class="across{" spare" if t.spare else ""}" x="{_at(t.place)}" y="100%" dy="1.5em">'
            f"{plain(t.text)}</text>"
            for t in self.across
        )
        return (
            f'<svg class="chart {shape}" style="--left:{gutter}px{size}" role="img" aria-label="{plain(title)}">'
            f"<title>{plain(title)}</title>{grid}"
            f'<svg viewBox="0 0 {SIDE:g} {SIDE:g}" preserveAspectRatio="none" width="100%" height="100%">'
            f"{''.join(marks)}</svg>"
            f'<line class="base" x1="0" x2="100%" y1="100%" y2="100%"/>{across}'
            f'<text class="words" x="0" dx="{8 - gutter}" y="0" dy="-0.9em">{plain(self.up_words)}</text>'
            f'<text class="words below" x="100%" y="100%" dy="3em">{plain(self.across_words)}</text></svg>'
        )


def _at(place: float) -> str:
    return f"{100.0 * place:.2f}".rstrip("0").rstrip(".") + "%"
