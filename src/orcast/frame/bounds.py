"""Bounds of outcomes, as numbers, columns or by series, and the space of each series.

Bounds in a column may change from row to row, so that outcomes are scaled: (y - low) / (high - low), or their distance
from the one bound there is.  With an upper bound only it is the distance below it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.frame.names import of_series
from orcast.frame.reader import Codes, Frame
from orcast.spaces import HalfLine, Interval, Line, OrderedSpace
from orcast.spaces.base import LARGEST
from orcast.validation import number, row_name, short

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """The bounds of each series, or of each row where ``by_row``; infinite where there are none."""

    by_row: bool
    low: Array
    high: Array

    def of_rows(self, codes: Codes) -> tuple[Array, Array]:
        """The bounds of each row, whose series are given."""
        return (self.low, self.high) if self.by_row else (self.low[codes], self.high[codes])


def space_between(low: float, high: float, by_row: bool) -> OrderedSpace:
    """The space of outcomes between two bounds."""
    below, above = math.isfinite(low), math.isfinite(high)
    if below and above:
        return Interval(0.0, 1.0) if by_row else Interval(low, high)
    if below:
        return HalfLine(0.0 if by_row else low)
    return HalfLine(0.0) if above else Line()


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


def read_bounds(low: Any, high: Any, frame: Frame, codes: Codes, keys: Sequence[Hashable]) -> Bounds:
    """Bounds of each series or row, from low and high as users give them."""
    by_row = isinstance(low, str) or isinstance(high, str)
    lows, highs = (_side(given, name, frame, keys) for given, name in ((low, "low"), (high, "high")))
    lows = lows[codes] if by_row and not isinstance(low, str) else lows
    highs = highs[codes] if by_row and not isinstance(high, str) else highs
    crossed = ~(lows < highs)
    if crossed.any():
        at = int(crossed.argmax())
        where = f" in {row_name(at)}" if by_row else of_series(keys[at])
        raise ValueError(f"expected bounds with low < high, got {lows[at]:g} and {highs[at]:g}{where}")
    return Bounds(by_row, lows, highs)


def _side(given: Any, name: str, frame: Frame, keys: Sequence[Hashable]) -> Array:
    """Bounds of one side: of each row where they are a column, else of each series."""
    if isinstance(given, str):
        if given not in frame.reading.columns:
            raise ValueError(f"expected a number, a column of the frame, or numbers by series as {name}, got {given!r}")
        values = frame.numbers(given)
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(f"expected a finite bound in every row of {given!r}, got {values[row]} in {row_name(row)}")
        return values
    if hasattr(given, "to_dict") and hasattr(given, "index"):
        given = given.to_dict()  # a pandas Series with a bound for each series
    given = given if isinstance(given, Mapping) else dict.fromkeys(keys, given)
    nothing = -math.inf if name == "low" else math.inf
    found = np.full(len(keys), nothing)
    for i, key in enumerate(keys):
        if key not in given:
            raise ValueError(
                f"expected {name} for every series, got none for {key!r} in {short(dict(given))}: None states no bound"
            )
        if given[key] is not None and not (isinstance(given[key], float) and given[key] == nothing):
            found[i] = number(given[key], f"{name} bound", -LARGEST, LARGEST)
    return found
