"""Experts of a quantity, and what is issued about it.

An expert's forecast, whatever it is, is read off at 0.01, 0.02, ..., 0.99 and is linear in the normal score of the
level in between and beyond, as `Quantiles` are; below level 0 and above level 1 are the bounds.  What is issued is made
in the same way from quantiles at the method's levels.

Where the outcome meets an atom of the expert its PIT is not a number but a jump.  The k-th time this happens the place
(k x golden ratio) modulo 1 of the jump is taken, which is as even as a random PIT, and repeatable.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from orcast.adapters import REACH, Quantiles, expert_row, quantiles_at
from orcast.baselines.base import Baseline
from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces import Interval, normal_scores
from orcast.spaces.base import single
from orcast.validation import number

Array = NDArray[np.float64]

# With so many cells the levels of an interval are the percents.
_CELLS = 116
_SCORES: Array = ndtri(PERCENTS)
_MEDIAN = 49
# Levels at which tails are issued, beside the method's own levels and the percents.
_TAILS = np.array([1e-6, 1e-5, 1e-4, 1e-3, 3e-3])
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Jumps of less are rounding.
_ROUNDING = 1e-9


class QuantityBaseline(Baseline):
    """A method for a quantity between bounds; what it reads of an expert are its percents."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        super().__init__()
        self._quantity = Quantity(low, high, levels)

    @property
    def levels(self) -> Array:
        """The levels whose quantiles are kept calibrated."""
        return self._quantity.levels.copy()

    def _read(self, forecast: object) -> Any:
        return self._quantity.read(forecast)

    def _outcome(self, y: object) -> float:
        return self._quantity.outcome(y)

    def __repr__(self) -> str:
        q = self._quantity
        return f"{type(self).__name__}({q.low:g}, {q.high:g}, {self._described()}, rounds={self.rounds})"


class Quantity:
    """Bounds and levels of a quantity; how experts are read and forecasts issued."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        self.space = Interval(low, high, cells=_CELLS)
        self.low, self.high = self.space.low, self.space.high
        self.levels = Quantiles(levels, np.zeros(np.size(levels))).levels
        self.grid = np.unique(np.concatenate((_TAILS, PERCENTS, 1.0 - _TAILS, self.levels)))
        self.scores = normal_scores(self.grid)
        self.mass = np.diff(self.grid, prepend=0.0, append=1.0)
        self.ties = 0

    def read(self, forecast: object) -> Array:
        """The expert's percents, increasing; those beyond the bounds still tell of its shape."""
        row = self._own_quantiles(forecast, PERCENTS)
        if row is None:  # a cdf, or else it is refused
            with np.errstate(over="ignore"):
                row, _ = expert_row(forecast, self.space)
        return self._within_reach(row)

    def read_at_levels(self, forecast: object) -> Array:
        """The same at the method's own levels, which the percents may miss."""
        row = self._own_quantiles(forecast, self.levels)
        return quantile_at(self.read(forecast), self.levels) if row is None else self._within_reach(row)

    def _own_quantiles(self, forecast: object, levels: Array) -> Array | None:
        """What the expert itself says at the levels; None if it has a cdf alone."""
        with np.errstate(over="ignore"), suppress(TypeError):
            return quantiles_at(forecast, levels)
        return None

    def _within_reach(self, row: Array) -> Array:
        reach = REACH * (self.high - self.low)
        return np.sort(np.clip(row, self.low - reach, self.high + reach))

    def outcome(self, y: object) -> float:
        """The outcome as a float within the bounds, or one clear sentence."""
        return number(single(y), "outcome", self.low, self.high)

    def quantile(self, row: Array, levels: Array) -> Array:
        """The expert's quantiles at any levels, within the bounds; beyond [0, 1] the bounds."""
        q = np.clip(quantile_at(row, levels), self.low, self.high)
        q[levels <= 0.0] = self.low
        q[levels >= 1.0] = self.high
        return q

    def jump(self, row: Array, y: float) -> tuple[float, float]:
        """The two ends of the expert's PIT of y, equal where there is no atom."""
        start = 0.0 if y <= self.low else level_of(row, y, "left")
        stop = 1.0 if y >= self.high else level_of(row, y, "right")
        return start, stop

    def pit(self, row: Array, y: float) -> float:
        """The PIT of y, somewhere in its jump; counts the jump."""
        start, stop = self.jump(row, y)
        if stop - start <= _ROUNDING:
            return stop
        self.ties += 1
        return start + (self.ties * _GOLDEN) % 1.0 * (stop - start)

    def issue(self, values: Array) -> Forecast:
        """A forecast with these quantiles at the levels, sorted and kept within the bounds."""
        own = Quantiles(self.levels, np.clip(values, self.low, self.high))  # it sorts them
        return self.on_grid(own.at_scores(self.scores))

    def on_grid(self, q: Array) -> Forecast:
        """A forecast with these quantiles at the levels of the grid."""
        q = np.maximum.accumulate(np.clip(q, self.low, self.high))
        edges = np.concatenate(([self.low], q, [self.high]))
        return Forecast.trusted(edges[:-1], edges[1:], self.mass, None)


def quantile_at(row: Array, levels: Array) -> Array:
    """The quantiles at any levels, of which those at the percents are given."""
    z = ndtri(np.clip(levels, 1e-300, 1.0 - 2.0**-53))
    q: Array = np.interp(z, _SCORES, row)
    for end, neighbour, beyond in ((0, 1, z < _SCORES[0]), (-1, -2, z > _SCORES[-1])):
        if row[end] != row[neighbour]:
            slope = (row[end] - row[_MEDIAN]) / _SCORES[end]
            q[beyond] = row[end] + (z[beyond] - _SCORES[end]) * slope
    return q


def level_of(row: Array, y: float, side: str) -> float:
    """The lowest level whose quantile is at least y ("left"), or the highest whose quantile is at most y ("right")."""
    k = int(np.searchsorted(row, y, side=side))  # type: ignore[call-overload]
    if 0 < k < row.size:
        before, after = row.item(k - 1), row.item(k)
        share = (y - before) / (after - before)
        return float(ndtr(_SCORES[k - 1] + share * (_SCORES[k] - _SCORES[k - 1])))
    end, neighbour = (0, 1) if k == 0 else (-1, -2)
    if row[end] == row[neighbour]:  # an atom, with nothing beyond it
        return float(k > 0)
    away = (y - row.item(end)) / (row.item(end) - row.item(_MEDIAN))
    return float(ndtr(_SCORES.item(end) * (1.0 + away)))
