"""Quantities: bounded, with one bound, or unbounded."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from orcast.spaces.base import LARGEST, SMALLEST, Array, OrderedSpace, frozen, single, span, whole

# Expected mass outside the outermost quantiles that become cell edges, on each side.
TAIL_MASS = 0.01


def normal_scores(levels: Array) -> Array:
    """Standard normal quantiles of levels from 0 to 1, cached."""
    return _normal_scores(levels.tobytes()).reshape(levels.shape)


@lru_cache(maxsize=64)
def _normal_scores(levels: bytes) -> Array:
    # not from scipy.special, whose import is slow
    inverse = NormalDist().inv_cdf
    ends = {0.0: -math.inf, 1.0: math.inf}
    return frozen(np.array([ends[a] if a in ends else inverse(a) for a in np.frombuffer(levels).tolist()]))


class _Quantity(OrderedSpace):
    """Levels and scores of all quantities."""

    @cached_property
    def levels(self) -> Array:
        return frozen(np.linspace(TAIL_MASS, 1.0 - TAIL_MASS, self.cells - 2 * (self.tail_cells + 1) + 1))

    @cached_property
    def scores(self) -> Array:
        z = normal_scores(self.levels)
        return frozen(0.5 * (z - z[::-1]))

    def _check_cells(self) -> None:
        object.__setattr__(self, "tail_cells", whole(self.tail_cells, "tail_cells", 1, 100))
        object.__setattr__(self, "cells", whole(self.cells, "cells", 0, 1024))
        if self.cells % 2 or self.cells < 2 * self.tail_cells + 6:
            raise ValueError(
                f"expected an even number of cells from {2 * self.tail_cells + 6} (2 * tail_cells + 6) to 1024, "
                f"got {self.cells}"
            )


@dataclass(frozen=True)
class Interval(_Quantity):
    """Bounded quantity, a compact space as the paper's section 2 assumes.

    Parameters
    ----------
    low, high
        Smallest and largest possible outcome.
    cells
        Number of cells of a forecast; 64 by default.
    tail_cells
        Number of cells in each tail; 8 by default.

    Notes
    -----
    Outcomes are scaled to [0, 1] in moments:

        low <= y <= high,    t = (y - low) / (high - low)

    Around an expert there is an atom at each bound, `tail_cells` cells per side whose widths grow geometrically from
    the expert's 1% and 99% quantiles to the bounds, and between them cells of equal mass at the expert's quantiles.
    Without an expert the cells have equal widths.

    Examples
    --------
    >>> space = Interval(0, 36_000)
    >>> space.cells, len(space.levels), float(space.levels[0])
    (64, 47, 0.01)
    """

    low: float = ...  # type: ignore[assignment]  # both are required, see the message below
    high: float = ...  # type: ignore[assignment]
    cells: int = 64
    tail_cells: int = 8

    def __post_init__(self) -> None:
        if self.high is ...:  # type: ignore[comparison-overlap]
            raise TypeError("expected two bounds as in Interval(0, 100), got fewer: HalfLine(0) has one, Line() none")
        low, high = span(self.low, self.high)
        self._check_cells()
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def outcome(self, y: object, outside: str = "raise") -> float:
        value = single(y)
        if not self.low <= value <= self.high:
            if outside == "clip":
                return min(max(value, self.low), self.high)
            raise ValueError(
                f"expected an outcome in [{self.low:g}, {self.high:g}], got {value!r}: outside='clip' clips it"
            )
        return value


@dataclass(frozen=True)
class Line(_Quantity):
    """Unbounded quantity: any number.

    Parameters
    ----------
    cells
        Number of cells of a forecast; 64 by default.
    tail_cells
        Number of cells in each tail; 8 by default.

    Notes
    -----
    Outcomes may be any number, -infinity < y < infinity. Around an expert there are cells of equal mass at its
    quantiles from 1% to 99%, `tail_cells` cells per side whose widths grow geometrically to the ends of a window, and
    beyond each end an open-ended cell, whose tail is a Pareto of index 3. The window extends beyond the outer quantiles
    by

        max(12 * 98% spread of the expert, 4 * its usual loss)

    Moments and scores clip the outcome to the window, which replaces the compact space of the paper's section 2.

    Examples
    --------
    >>> space = Line()
    >>> space.low, space.high, space.cells, space.outcome(61.3)
    (-inf, inf, 64, 61.3)
    """

    cells: int = 64
    tail_cells: int = 8
    low: float = field(default=-math.inf, init=False, repr=False, compare=False)
    high: float = field(default=math.inf, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_cells()

    def outcome(self, y: object, outside: str = "raise") -> float:
        return _unbounded(single(y), self.low, self.high, outside)


@dataclass(frozen=True, repr=False)
class HalfLine(_Quantity):
    """Quantity with one bound: a lower one, such as waiting times, prices or rain, or an upper one.

    Parameters
    ----------
    low
        Smallest possible outcome; 0 by default, or none with `high`.
    cells
        Number of cells of a forecast; 64 by default.
    tail_cells
        Number of cells in each tail; 8 by default.
    high
        Largest possible outcome, if there is no lower bound.

    Notes
    -----
    Around an expert there is an atom at the bound, and on the other side a window and an open-ended cell as on a
    `Line`, which replace the compact space of the paper's section 2:

        low <= y < infinity,    or    -infinity < y <= high

    Examples
    --------
    >>> space = HalfLine()
    >>> space.low, space.high, space.outcome(-0.1, outside="clip")
    (0.0, inf, 0.0)
    >>> HalfLine(high=10).outcome(-1e6)
    -1000000.0
    """

    low: float = ...  # type: ignore[assignment]  # by default 0, or no lower bound if there is an upper one
    cells: int = 64
    tail_cells: int = 8
    high: float = field(default=math.inf, kw_only=True)

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if high == math.inf:
            low = _bound(0.0 if low is ... else low, "lower bound")  # type: ignore[comparison-overlap]
        elif low is ... or low == -math.inf:  # type: ignore[comparison-overlap]
            low, high = -math.inf, _bound(high, "upper bound")
        else:
            raise ValueError(f"expected one bound, got {low!r} and {high!r}: use Interval for two")
        self._check_cells()
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def outcome(self, y: object, outside: str = "raise") -> float:
        return _unbounded(single(y), self.low, self.high, outside)

    def to_plain(self) -> dict[str, Any]:
        infinite = "low" if self.low == -math.inf else "high"
        return {name: value for name, value in super().to_plain().items() if name != infinite}

    def __repr__(self) -> str:
        bound = f"high={self.high!r}" if self.low == -math.inf else f"low={self.low!r}"
        return f"HalfLine({bound}, cells={self.cells!r}, tail_cells={self.tail_cells!r})"


def between(low: float | None, high: float | None) -> OrderedSpace:
    """Space of a quantity with these bounds; None or an infinite bound means no bound.

    >>> between(None, None), between(0, None).low, between(0, 100).high
    (Line(cells=64, tail_cells=8), 0.0, 100.0)
    >>> between(None, 10)
    HalfLine(high=10.0, cells=64, tail_cells=8)
    """
    below, above = low not in (None, -math.inf), high not in (None, math.inf)
    if below and above:
        return Interval(low, high)  # type: ignore[arg-type]
    if below:
        return HalfLine(low)  # type: ignore[arg-type]
    return HalfLine(high=high) if above else Line()  # type: ignore[arg-type]


def _bound(value: object, what: str) -> float:
    bound = single(value, what)
    if abs(bound) > LARGEST:
        raise ValueError(f"expected {'an' if what[0] == 'u' else 'a'} {what} of at most 1e100 in size, got {bound!r}")
    return bound if abs(bound) >= SMALLEST else 0.0


def _unbounded(value: float, low: float, high: float, outside: str) -> float:
    low, high = max(low, -LARGEST), min(high, LARGEST)
    if not low <= value <= high:
        if outside == "clip":
            return min(max(value, low), high)
        raise ValueError(f"expected an outcome from {low:g} to {high:g}, got {value!r}: outside='clip' clips it")
    return value if abs(value) >= SMALLEST else 0.0
