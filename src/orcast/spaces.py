"""Outcome spaces, seen as cells: where a forecast puts its masses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Expected mass outside the outermost quantiles that become cell edges, on each side.
TAIL_MASS = 0.01


def frozen(values: Array) -> Array:
    """The array, no longer to be written to: it is shared."""
    values.flags.writeable = False
    return values


def normal_scores(levels: Array) -> Array:
    """The standard normal quantiles of levels from 0 to 1; those of the same levels are remembered."""
    return _normal_scores(levels.tobytes()).reshape(levels.shape)


@lru_cache(maxsize=64)
def _normal_scores(levels: bytes) -> Array:
    # the standard library's, because importing scipy.special takes longer than a first forecast should
    inverse = NormalDist().inv_cdf
    ends = {0.0: -math.inf, 1.0: math.inf}
    return frozen(np.array([ends[a] if a in ends else inverse(a) for a in np.frombuffer(levels).tolist()]))


@dataclass(frozen=True)
class Interval:
    """A bounded quantity: outcomes in [low, high].

    Around an expert the ``cells`` cells are: an atom at each bound; ``tail_cells`` cells a side whose widths grow
    geometrically from the expert's 1% and 99% quantiles to the bounds, with falling mass; between them cells of
    equal mass at the expert's own quantiles.  Without an expert they are even.  The cells are the resolution of the
    promise.

    >>> space = Interval(0, 36_000)
    >>> space.cells, len(space.levels), float(space.levels[0])
    (64, 47, 0.01)
    """

    low: float
    high: float
    cells: int = 64
    tail_cells: int = 8

    def __post_init__(self) -> None:
        try:
            low, high = float(self.low), float(self.high)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"expected two numbers as bounds, got {self.low!r} and {self.high!r}") from None
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"expected finite bounds with low < high, got {low!r} and {high!r}")
        if not 1e-100 < high - low < 1e100:
            raise ValueError(f"expected bounds with a distance between 1e-100 and 1e100, got {high - low!r}")
        for name in ("cells", "tail_cells"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                raise TypeError(f"expected a whole number of {name}, got {value!r}")
        if not 1 <= self.tail_cells <= 100:
            raise ValueError(f"expected 1 to 100 tail_cells, got {self.tail_cells}")
        if self.cells % 2 or not 2 * self.tail_cells + 6 <= self.cells <= 1024:
            raise ValueError(
                f"expected an even number of cells from {2 * self.tail_cells + 6} (2 * tail_cells + 6) to 1024, "
                f"got {self.cells}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @cached_property
    def levels(self) -> Array:
        """Levels of the expert's quantiles that become edges of inner cells."""
        return frozen(np.linspace(TAIL_MASS, 1.0 - TAIL_MASS, self.cells - 2 * (self.tail_cells + 1) + 1))

    @cached_property
    def scores(self) -> Array:
        """Their normal scores, exactly antisymmetric."""
        z = normal_scores(self.levels)
        return frozen(0.5 * (z - z[::-1]))

    def outcome(self, y: object, outside: str = "raise") -> float:
        """The outcome as a float within the bounds, or one clear sentence."""
        try:
            if isinstance(y, (str, bytes)):
                raise TypeError
            value = float(y)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"expected a number as outcome, got {y!r}") from None
        if not math.isfinite(value):
            raise ValueError(f"expected a finite number as outcome, got {value!r}")
        if not self.low <= value <= self.high:
            if outside == "clip":
                return min(max(value, self.low), self.high)
            raise ValueError(
                f"expected an outcome in [{self.low:g}, {self.high:g}], got {value!r} (outside='clip' clips it)"
            )
        return value

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": "Interval",
            "low": self.low,
            "high": self.high,
            "cells": int(self.cells),
            "tail_cells": int(self.tail_cells),
        }


def space_from_plain(data: dict[str, Any]) -> Interval:
    """A space from its plain form."""
    options = dict(data)
    if options.pop("kind", None) != "Interval":
        raise ValueError(f"expected a known space in the state, got {data!r}")
    return Interval(**options)
