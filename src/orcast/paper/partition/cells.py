"""Cells of an expert's forecasts: bins of a probability, or a grid on the simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Key = tuple[int, ...]

# More cells than this are refused; a grid on the simplex whose resolution is not given is as fine as this many allow.
MOST_CELLS, USUAL_CELLS = 10_000, 100
# The finest grid whose resolution is not given.
FINEST = 10


@dataclass(frozen=True)
class ProbabilityBins:
    """Equal bins of [0, 1], for the probability of a yes: within a half bin of their middle."""

    count: int

    @property
    def total(self) -> int:
        """How many there are."""
        return self.count

    @property
    def radius(self) -> float:
        """The most that a forecast of a cell differs from its middle, in l1."""
        return 1.0 / self.count

    def cell(self, x: Array) -> Key:
        """The cell of probabilities."""
        return (min(int(x[1] * self.count), self.count - 1),)

    def middle(self, key: Key) -> Array:
        """The probabilities that stand for a cell."""
        p = (key[0] + 0.5) / self.count
        return np.array([1.0 - p, p])

    def start(self, key: Key) -> Array:
        """The prior of its forecaster."""
        return self.middle(key)

    def has(self, key: Key) -> bool:
        """Whether there is such a cell."""
        return len(key) == 1 and 0 <= key[0] < self.count

    def name(self, key: Key) -> Any:
        """What users call it."""
        return float(self.middle(key)[1])


@dataclass(frozen=True)
class Compositions:
    """Vectors of whole numbers that sum to `resolution`: the nearest one, divided by it, is the middle of a cell.

    Largest remainders find it.  With r roundings upwards of K the distance is at most 2 r (K - r) / (K resolution) in
    l1, and the root of r (K - r) / K over the resolution in l2.
    """

    labels: int
    resolution: int

    @property
    def total(self) -> int:
        """How many there are."""
        return math.comb(self.resolution + self.labels - 1, self.labels - 1)

    @property
    def radius(self) -> float:
        """The most that a forecast of a cell differs from its middle, in l1."""
        half = self.labels // 2
        return 2.0 * half * (self.labels - half) / self.labels / self.resolution

    def cell(self, x: Array) -> Key:
        """The cell of probabilities."""
        places = self.resolution * x
        whole = np.floor(places)
        up = self.resolution - int(whole.sum())
        whole[np.argsort(whole - places, kind="stable")[:up]] += 1.0
        return tuple(int(n) for n in whole)

    def middle(self, key: Key) -> Array:
        """The probabilities that stand for a cell."""
        return np.array(key) / self.resolution

    def start(self, key: Key) -> Array:
        """The prior of its forecaster."""
        # a prior of zero could never be left
        return (np.array(key) + 1.0 / self.labels) / (self.resolution + 1.0)

    def has(self, key: Key) -> bool:
        """Whether there is such a cell."""
        return len(key) == self.labels and min(key) >= 0 and sum(key) == self.resolution

    def name(self, key: Key) -> Any:
        """What users call it."""
        return tuple(self.middle(key).tolist())


def finest(labels: int) -> int:
    """The resolution unless another is given."""
    fits = [n for n in range(1, FINEST + 1) if Compositions(labels, n).total <= USUAL_CELLS]
    return max(fits, default=1)


def compositions(labels: int, resolution: int | None) -> Compositions:
    """A grid on the simplex, or one clear sentence if it has too many cells."""
    cells = Compositions(labels, finest(labels) if resolution is None else resolution)
    if cells.total > MOST_CELLS:
        fits = max((n for n in range(1, cells.resolution) if Compositions(labels, n).total <= MOST_CELLS), default=0)
        hint = f" (cells={fits} would do)" if fits else ""
        raise ValueError(
            f"expected a grid of at most {MOST_CELLS:,} cells, got {cells.total:,} for {labels} probabilities at "
            f"cells={cells.resolution}{hint}"
        )
    return cells
