"""Bounds of a panel's outcomes, as numbers, columns or by series, and the spaces that its series are played on.

A series is played on an `Interval`, a `HalfLine` or the `Line`.  Where bounds stand in a column they may change from
row to row, so the series is played on where the outcome lies between them, (y - low) / (high - low), or on its distance
from the one there is.  With an upper bound only it is played on how far below it the outcome lies.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.frame.reader import Codes, Frame
from orcast.spaces import HalfLine, Interval, Line, OrderedSpace
from orcast.spaces.base import LARGEST
from orcast.validation import number, short

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
    """The space that outcomes between two bounds are played on.

    >>> space_between(0.0, 10.0, False), space_between(0.0, 10.0, True), space_between(-math.inf, 10.0, False)
    (Interval(low=0.0, high=10.0, ...), Interval(low=0.0, high=1.0, ...), HalfLine(low=0.0, ...))
    """
    below, above = math.isfinite(low), math.isfinite(high)
    if below and above:
        return Interval(0.0, 1.0) if by_row else Interval(low, high)
    if below:
        return HalfLine(0.0 if by_row else low)
    return HalfLine(0.0) if above else Line()


def scale_between(low: Array, high: Array, by_row: bool) -> tuple[Array, Array]:
    """Shift and scale, y = shift + scale * what is played."""
    below, above = np.isfinite(low), np.isfinite(high)
    shift, scale = np.zeros(low.shape), np.ones(low.shape)
    if by_row:
        shift[below] = low[below]
        scale[below & above] = high[below & above] - low[below & above]
    top = above & ~below
    shift[top], scale[top] = high[top], -1.0
    return shift, scale


def read_bounds(low: Any, high: Any, frame: Frame, codes: Codes, keys: Sequence[Hashable]) -> Bounds:
    """What users give as low and high, as bounds of each series or row; or one clear sentence."""
    (low_, low_by_row), (high_, high_by_row) = _side(low, "low", frame, keys), _side(high, "high", frame, keys)
    by_row = low_by_row or high_by_row
    low_ = low_[codes] if by_row and not low_by_row else low_
    high_ = high_[codes] if by_row and not high_by_row else high_
    crossed = ~(low_ < high_)
    if crossed.any():
        at = int(crossed.argmax())
        where = f" in row {at}" if by_row else "" if keys[at] is None else f" for series {keys[at]!r}"
        raise ValueError(f"expected bounds with low < high, got {low_[at]:g} and {high_[at]:g}{where}")
    return Bounds(by_row, low_, high_)


def _side(given: Any, name: str, frame: Frame, keys: Sequence[Hashable]) -> tuple[Array, bool]:
    nothing = -math.inf if name == "low" else math.inf
    if given is None:
        return np.full(len(keys), nothing), False
    if isinstance(given, str):
        if given not in frame.reading.columns:
            raise ValueError(f"expected a number, a column of the frame, or numbers by series as {name}, got {given!r}")
        values = frame.numbers(given)
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(f"expected a finite bound in every row of {given!r}, got {values[row]} in row {row}")
        return values, True
    if hasattr(given, "to_dict") and hasattr(given, "index"):
        given = given.to_dict()  # a pandas Series with a bound for each series
    if not isinstance(given, Mapping):
        return np.full(len(keys), bound_number(given, name, nothing)), False
    found = np.empty(len(keys))
    for i, key in enumerate(keys):
        if key not in given:
            raise ValueError(f"expected {name} for every series, got none for {key!r} in {short(dict(given))}")
        found[i] = bound_number(given[key], name, nothing)
    return found, False


def bound_number(given: Any, name: str, nothing: float) -> float:
    """A bound as a number; ``nothing`` if there is none."""
    if given is None or (isinstance(given, float) and given == nothing):
        return nothing
    return number(given, f"{name} bound", -LARGEST, LARGEST)
