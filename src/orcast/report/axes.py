"""Scales and ticks of a picture: round numbers, percents, logarithms and dates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.report.text import MINUS, number

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Tick:
    """A value, its text, and whether a narrow picture can do without it."""

    value: float
    text: str
    optional: bool = False


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


@dataclass(frozen=True)
class Axis:
    """What an axis counts, its scale and its ticks; `dates`: the values are microseconds since 1970."""

    label: str
    scale: Scale
    ticks: tuple[Tick, ...]
    dates: bool = False


def number_axis(label: str, scale: Scale, *, most: int = 6, percent: bool = False) -> Axis:
    """An axis with round values.

    >>> [tick.text for tick in number_axis("level", Scale(0.0, 1.0), percent=True).ticks]
    ['0%', '20%', '40%', '60%', '80%', '100%']
    """
    return Axis(label, scale, tuple(ticks(scale, most=most, percent=percent)))


def around(*values: ArrayLike, margin: float = 0.04) -> Scale:
    """A scale that shows all finite values, with a margin; one value alone lies in the middle.

    >>> around([1.0, 3.0], margin=0.0)
    Scale(low=1.0, high=3.0, log=False)
    >>> around([5.0])
    Scale(low=4.5, high=5.5, log=False)
    """
    every = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
    every = every[np.isfinite(every)]
    if every.size == 0:
        return Scale(0.0, 1.0)
    low, high = float(every.min()), float(every.max())
    space = margin * (high - low)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        space = 0.1 * abs(low) or 0.5
    return Scale(low - space, high + space)


def log_scale(values: ArrayLike, *, factor: float = 1.3, least: float = 1e-4) -> Scale:
    """A logarithmic scale that shows all positive values down to `least` of the largest, and a factor beyond.

    >>> log_scale([0.0, 1.0, 10.0], factor=2.0)
    Scale(low=0.5, high=20.0, log=True)
    """
    every = np.asarray(values, dtype=np.float64).ravel()
    every = every[np.isfinite(every) & (every > 0.0)]
    most = float(every.max()) if every.size else 1.0
    lowest = max(float(every.min()) if every.size else 0.1, least * most)
    return Scale(lowest / factor, most * factor, log=True)


def ticks(scale: Scale, *, most: int = 6, percent: bool = False) -> list[Tick]:
    """Round values on a scale.

    >>> [tick.text for tick in ticks(Scale(1.0, 5000.0, log=True))]
    ['1', '10', '100', '1,000']
    """
    values = _decades(scale, most) if scale.log else _steps(scale.low, scale.high, most)
    return [Tick(v, f"{100.0 * v:.4g}%".replace("-", MINUS) if percent else number(v, digits=6)) for v in values]


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


def time_axis(values: NDArray[Any], most: int = 6) -> tuple[Axis, Vector]:
    """An axis for dates, numbers, or rows with labels, and where each value is on it.

    Every second tick is optional where there are many.

    >>> axis, x = time_axis(np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[D]"))
    >>> axis.scale.place(x).tolist(), [tick.text for tick in axis.ticks], axis.label
    ([0.0, 0.5, 1.0], ['1 Jan', '2 Jan', '3 Jan'], 'time, 2024-01-01 to 2024-01-03')
    >>> axis, x = time_axis(np.array(["a", "b", "c"]))
    >>> axis.label, x.tolist()
    ('time, a to c', [1.0, 2.0, 3.0])
    """
    if values.size == 0:
        return Axis("time", Scale(0.0, 1.0), ()), np.empty(0)
    dates = values.dtype.kind == "M" and not np.isnat(values).any()
    x = np.arange(1, values.size + 1, dtype=np.float64)
    if dates:
        x = _microseconds(values)
    elif values.dtype.kind in "iuf" and np.isfinite(values.astype(np.float64)).all():
        x = values.astype(np.float64)
    scale = Scale(float(x.min()), float(x.max()))
    if dates:
        found = _date_ticks(values, most)
    elif values.dtype.kind in "iuf":
        found = ticks(scale, most=most)
    else:
        chosen = np.unique(np.linspace(0, values.size - 1, min(4, values.size)).round().astype(int))
        found = [Tick(float(x[i]), str(values[i])[:10]) for i in chosen]
    marked = tuple(Tick(t.value, t.text, len(found) > 4 and i % 2 == 1) for i, t in enumerate(found))
    first, last = moment(values[0]), moment(values[-1])
    return Axis(f"time, {first} to {last}" if first != last else f"time, {first}", scale, marked, dates), x


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


def _microseconds(values: NDArray[Any]) -> Vector:
    return values.astype("datetime64[us]").astype(np.int64).astype(np.float64)


def _date_ticks(values: NDArray[Any], most: int) -> list[Tick]:
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
    years = found.astype("datetime64[Y]")
    new = np.append(True, years[1:] != years[:-1])  # a year is written once
    return [Tick(float(x), _date(v, unit, bool(n))) for x, v, n in zip(_microseconds(found), found, new, strict=True)]


def _date(value: np.datetime64, unit: str, new: bool) -> str:
    year, month, day = str(value.astype("datetime64[D]")).rsplit("-", 2)
    if unit == "Y":
        return year
    if unit == "M":
        return _MONTHS[int(month) - 1] + (f" {year}" if new else "")
    if unit == "D" or value == value.astype("datetime64[D]"):
        return f"{int(day)} {_MONTHS[int(month) - 1]}"
    return str(value.astype("datetime64[s]")).split("T")[1][: 8 if unit == "s" else 5]
