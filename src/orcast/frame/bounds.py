"""Bounds of outcomes, as numbers or columns, and the space between them.

Bounds in a column may change from row to row, so that outcomes are scaled: (y - low) / (high - low), or their distance
from the one bound there is.  With an upper bound only it is the distance below it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.frame.reader import Frame
from orcast.spaces import HalfLine, Interval, Line, OrderedSpace
from orcast.spaces.base import LARGEST
from orcast.validation import number, row_name

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """Bounds of each row, infinite where there are none, and the space of the (scaled) outcomes."""

    low: Array
    high: Array
    by_row: bool
    space: OrderedSpace


def scale_between(low: Array, high: Array, by_row: bool) -> tuple[Array, Array]:
    """Shift and scale: y = shift + scale * (point of the space)."""
    below, above = np.isfinite(low), np.isfinite(high)
    shift, scale = np.zeros(low.shape), np.ones(low.shape)
    if by_row:
        shift[below] = low[below]
        scale[below & above] = high[below & above] - low[below & above]
    top = above & ~below
    shift[top], scale[top] = high[top], -1.0
    return shift, scale


def read_bounds(low: Any, high: Any, frame: Frame) -> Bounds:
    """Bounds of each row, from low and high as users give them."""
    lows, highs = _side(low, "low", frame), _side(high, "high", frame)
    by_row = isinstance(low, str) or isinstance(high, str)
    crossed = ~(lows < highs)
    if crossed.any():
        at = int(crossed.argmax())
        where = f" in {row_name(at)}" if by_row else ""
        raise ValueError(f"expected bounds with low < high, got {lows[at]:g} and {highs[at]:g}{where}")
    return Bounds(lows, highs, by_row, _space(plain_bound(low), plain_bound(high), by_row))


def plain_bound(given: Any) -> Any:
    """A bound as a number or a column; None if there is none."""
    if given is None or isinstance(given, str):
        return given
    return float(given) if math.isfinite(given) else None


def _space(low: Any, high: Any, by_row: bool) -> OrderedSpace:
    if low is not None and high is not None:
        return Interval(0.0, 1.0) if by_row else Interval(low, high)
    if low is not None:
        return HalfLine(0.0 if by_row else low)
    return Line() if high is None else HalfLine(0.0)


def _side(given: Any, name: str, frame: Frame) -> Array:
    """Bounds of one side: a column, or one number for all rows."""
    if not isinstance(given, str):
        nothing = -math.inf if name == "low" else math.inf
        value = nothing if given in (None, nothing) else number(given, f"{name} bound", -LARGEST, LARGEST)
        return np.broadcast_to(np.float64(value), max(frame.rows, 1))
    if given not in frame.reading.columns:
        raise ValueError(f"expected a number or a column of the frame as {name}, got {given!r}")
    values = frame.numbers(given)
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"expected a finite bound in every row of {given!r}, got {values[row]} in {row_name(row)}")
    return values
