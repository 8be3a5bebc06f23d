"""Cells of an expert's forecasts: bins of a probability, or a grid on the simplex; and the bins of a quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.kernels.cells import build_cells_arrays, cut_cells_arrays
from orcast.kernels.hats import STEEPNESS
from orcast.scores import CRPS, MSE, Brier, LogScore, Score
from orcast.spaces import TAIL_MASS, Binary, Labels, OrderedSpace, Space, frozen
from orcast.spaces.base import whole
from orcast.validation import short

Array = NDArray[np.float64]
Key = tuple[int, ...]

# The largest number of cells, and that of a grid on the simplex whose resolution is not given.
MOST_CELLS, USUAL_CELLS = 10_000, 100
# The finest grid whose resolution is not given.
FINEST = 10
# The bins of a quantity, unless others are given.
BINS = 4
# Without bounds, bins reach this many times the expert's spread beyond its outer quantiles; if the spread is zero, a
# share LEAST of its size (as in `kernels.rounds`).
WINDOW, LEAST = 12.0, 1e-3
# Every bin has at least this mass of the expert's.
LEAST_MASS = 1e-200


@dataclass(frozen=True)
class ProbabilityBins:
    """Equal bins of [0, 1], for the probability of a yes."""

    count: int

    @property
    def total(self) -> int:
        """The number of cells."""
        return self.count

    @property
    def radius(self) -> float:
        """The largest distance of a forecast from the middle of its cell, in l1."""
        return 1.0 / self.count

    def cell(self, x: Array) -> Key:
        """The cell of probabilities."""
        return (min(int(x[1] * self.count), self.count - 1),)

    def middle(self, key: Key) -> Array:
        """The probabilities that stand for a cell."""
        p = (key[0] + 0.5) / self.count
        return np.array([1.0 - p, p])

    def start(self, key: Key) -> Array:
        """The prior of the forecaster of a cell."""
        return self.middle(key)

    def name(self, key: Key) -> Any:
        """The name of a cell in reports."""
        return float(self.middle(key)[1])


@dataclass(frozen=True)
class Compositions:
    """Vectors of whole numbers that sum to `resolution`: the nearest one, divided by it, is the middle of a cell.

    Largest remainders find it.  With r roundings upwards of K the distance is at most 2 r (K - r) / (K resolution) in
    l1, and the root of r (K - r) / K over the resolution in l2.
    """

    labels: int
    resolution: int

    @staticmethod
    def of(labels: int, resolution: int | None) -> Compositions:
        """The grid of a resolution, or the finest with at most `USUAL_CELLS` cells."""
        if resolution is None:
            usual = [n for n in range(1, FINEST + 1) if Compositions(labels, n).total <= USUAL_CELLS]
            resolution = max(usual, default=1)
        cells = Compositions(labels, resolution)
        if cells.total > MOST_CELLS:
            fits = max((n for n in range(1, resolution) if Compositions(labels, n).total <= MOST_CELLS), default=0)
            hint = f" (cells={fits} would do)" if fits else ""
            raise ValueError(
                f"expected a grid of at most {MOST_CELLS:,} cells, got {cells.total:,} for {labels} probabilities at "
                f"cells={resolution}{hint}"
            )
        return cells

    @property
    def total(self) -> int:
        """The number of cells."""
        return math.comb(self.resolution + self.labels - 1, self.labels - 1)

    @property
    def radius(self) -> float:
        """The largest distance of a forecast from the middle of its cell, in l1."""
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
        """The prior of the forecaster of a cell; a probability of zero could never grow."""
        return (np.array(key) + 1.0 / self.labels) / (self.resolution + 1.0)

    def name(self, key: Key) -> Any:
        """The name of a cell in reports."""
        return tuple(self.middle(key).tolist())


@dataclass(frozen=True)
class CellTable:
    """The events, the cells of forecasts of them, and the edges that make a quantity events.

    An outcome on an edge belongs to the bin on its left.
    """

    events: Binary | Labels
    cells: ProbabilityBins | Compositions
    edges: Array | None = None

    @staticmethod
    def of(space: Binary | Labels, resolution: int | None) -> CellTable:
        """The table of outcomes that are events."""
        if isinstance(space, Binary):
            return CellTable(space, ProbabilityBins(FINEST if resolution is None else resolution))
        return CellTable(space, Compositions.of(space.cells, resolution))

    @staticmethod
    def of_bins(edges: Array, resolution: int | None) -> CellTable:
        """The table of the bins of a quantity."""
        bins = edges.size + 1
        return CellTable(Labels(range(bins)), Compositions.of(bins, resolution), edges)

    @property
    def binary(self) -> bool:
        """Whether the only event is a yes."""
        return isinstance(self.events, Binary)

    @property
    def count(self) -> int:
        """Events with a probability of their own."""
        return 1 if self.binary else self.events.cells

    def chances(self, mass: Array) -> Array:
        """The probabilities of the events."""
        return mass[-self.count :]

    def errors(self, mass: Array) -> Array:
        """Probabilities minus indicators of the events, a row for each outcome."""
        return self.chances(mass) - np.eye(mass.size)[:, -self.count :]

    def outcome(self, value: Any) -> int:
        """The index of the event of an outcome."""
        return self.events.cell(value) if self.edges is None else int(np.searchsorted(self.edges, value, side="left"))


def cells_around(space: OrderedSpace, row: Array, edges: Array) -> Array:
    """An expert's quantiles as cells that end at the edges: rows of left and right ends, and of masses."""
    size = max(abs(float(row[0])), abs(float(row[-1])))
    reach = WINDOW * float(row[-1] - row[0])
    if reach <= 1e-9 * size:
        reach = LEAST * size
    reach = reach or 1.0
    low = space.low if math.isfinite(space.low) else min(float(row[0]), float(edges[0])) - reach
    high = space.high if math.isfinite(space.high) else max(float(row[-1]), float(edges[-1]), low) + reach
    left, right, mass = np.empty((3, space.cells + edges.size))
    slots = np.empty(space.cells, dtype=np.int64)
    inside = np.clip(row, low, high)
    n = build_cells_arrays(inside, low, high, int(space.tail_cells), TAIL_MASS, 0.0, left, right, mass, slots)
    n = cut_cells_arrays(edges, n, left, right, mass, slots)
    table = np.array([left[:n], right[:n], np.maximum(mass[:n], LEAST_MASS)])
    table[2] /= table[2].sum()
    if space.low == -math.inf:
        table[0, 0] = -math.inf
    if space.high == math.inf:
        table[1, -1] = math.inf
    return table


def checked_bins(bins: object, space: Space) -> int | Array | None:
    """The number of bins, or the edges between them; None on a space that is no quantity."""
    if not isinstance(space, OrderedSpace):
        if bins is not None:
            raise TypeError(f"expected bins= only for a quantity such as Interval(low, high), got them on {space!r}")
        return None
    if bins is None:
        return BINS
    if isinstance(bins, (int, np.integer)):
        return whole(bins, "bins", 2, MOST_CELLS)
    try:
        edges = np.array(list(bins), dtype=np.float64)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected bins= as a whole number, or as the edges between them, got {short(bins)}") from None
    within = np.isfinite(edges) & (edges >= space.low) & (edges < space.high)
    if edges.ndim != 1 or not edges.size or not within.all() or (np.diff(edges) <= 0.0).any():
        raise ValueError(
            f"expected increasing edges from {space.low:g} on and below {space.high:g} as bins, "
            f"got {short(edges.tolist())}"
        )
    return frozen(edges)


# --- scores that are sums over the probabilities of events, and the functions g that bound their regret


def additive(score: Score, events: Space) -> bool:
    """Tell whether a score is a sum over the events: Brier and log scores, and those equal to them."""
    return type(score) in ((Brier, LogScore, CRPS, MSE) if isinstance(events, Binary) else (Brier, LogScore, CRPS))


def slope(score: Score, binary: bool, q: Array) -> Array:
    """g: minus the slope of the expected score, at the probability of each event."""
    if isinstance(score, LogScore):
        value: Array = np.log(np.maximum(q, score.clip))
        return value - np.log(np.maximum(1.0 - q, score.clip)) if binary else value
    return (1.0 if isinstance(score, CRPS) and not binary else 2.0) * q


@lru_cache(maxsize=64)
def hat_heights(score: Score, binary: bool, grid: int) -> Array:
    """A g_v for each hat, such that (g(p) - g_v) (p - y) is small at worst where the hat is not zero."""
    heights = np.empty(grid)
    soft = 0.5 / STEEPNESS
    for v in range(grid):
        p = np.linspace(max(v - soft, 0.0), min(v + 1.0 + soft, grid), 65) / grid
        g = slope(score, binary, p)
        tried = np.linspace(g.min(), g.max(), 201)[:, None]
        worst = np.maximum((g - tried) * p, (tried - g) * (1.0 - p)).max(axis=1)
        heights[v] = tried[worst.argmin(), 0]
    heights.flags.writeable = False
    return heights
