"""Axes of a picture: linear or logarithmic scales, ticks at round numbers, percentages or dates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.plots.text import number, percent, shortened

Vector = NDArray[np.float64]

# Units of date ticks: numpy's name, seconds, multiples, strftime-like slice of the ISO text.
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
    """Label, ends, ticks (value and text) and kind of scale.

    >>> Axis("x", 0.0, 10.0).place([0.0, 5.0, 10.0]).tolist()
    [0.0, 0.5, 1.0]
    >>> Axis("x", 1.0, 100.0, log=True).place([1.0, 10.0]).tolist()
    [0.0, 0.5]
    """

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False

    def place(self, values: ArrayLike) -> Vector:
        """Positions from 0 to 1, clipped."""
        v, low, high = np.asarray(values, dtype=np.float64), self.low, self.high
        if self.log:
            v, low, high = np.log10(np.maximum(v, self.low)), math.log10(low), math.log10(high)
        return np.clip((v - low) / (high - low) if high > low else np.full(v.shape, 0.5), 0.0, 1.0)


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
    """Axis that shows all finite values with a margin.

    >>> around("y", [1.0, 3.0], within=(0.0, 3.0)).high
    3.0
    """
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


def log_axis(label: str, values: ArrayLike) -> Axis:
    """Logarithmic axis over the positive values, at most four decades.

    >>> [text for _, text in log_axis("round", [1.0, 5000.0]).ticks]
    ['1', '10', '100', '1,000']
    """
    every = np.asarray(values, dtype=np.float64).ravel()
    every = every[np.isfinite(every) & (every > 0.0)]
    high = float(every.max()) if every.size else 1.0
    low = max(float(every.min()), 1e-4 * high) if every.size else 0.1
    if not high > low:
        low, high = low / 2.0, 2.0 * high
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    ticks = [10.0**k for k in range(first, last + 1)]
    return Axis(label, low, high, tuple((v, number(v)) for v in ticks), log=True)


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
    exact = [k for k, unit in enumerate(UNITS) if (values == values.astype(f"datetime64[{unit[0]}]")).all()]
    finest = max(exact, default=0)
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
