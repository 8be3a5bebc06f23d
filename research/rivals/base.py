"""Common parts of the rivals: predict and update, pending rounds, and quantities between bounds.

Base forecasts are read at 0.01, 0.02, ..., 0.99 and are linear in the normal score between, as `orcast.Quantiles` are.
The k-th outcome on an atom has the PIT at the fraction (k x golden ratio) modulo 1 of the atom's interval.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from orcast.adapters import REACH, Quantiles, binary_probability, expert_row, quantiles_at
from orcast.forecasts import BinaryForecast, Forecast
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces import Binary, Interval, normal_scores
from orcast.spaces.base import single
from orcast.validation import number

Array = NDArray[np.float64]

_CELLS = 116  # with this many cells the levels of an interval are the percents
_SCORES: Array = ndtri(PERCENTS)
_MEDIAN = 49
# levels at which tails are issued, beside the percents and the levels of the method
_TAILS = np.array([1e-6, 1e-5, 1e-4, 1e-3, 3e-3])
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_ROUNDING = 1e-9  # shorter intervals of PITs are rounding


class Rival(ABC):
    """A method with `predict(forecast)` and `update(y)`.

    As in `orcast.Recalibrator` there is one anonymous pending round, which a new anonymous `predict` replaces; rounds
    with an `id` may be settled late and in any order.  An update uses the state in which its forecast was issued.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._pending: dict[Hashable, tuple[Any, Any]] = {}

    def predict(self, forecast: object, *, id: Hashable = None) -> Any:
        """Recalibrate one base forecast; the round is then pending."""
        if id is not None and id in self._pending:
            raise ValueError(f"expected a new id, got {id!r}, which is pending")
        read = self._read(forecast)
        issued = self._issue(read)
        self._pending[id] = read, self._snapshot()
        return issued

    def update(self, y: object, *, id: Hashable = None) -> None:
        """Settle the anonymous round, or a named one, by its outcome."""
        outcome = self._outcome(y)
        if id not in self._pending:
            raise ValueError(f"expected a pending round, got {'none' if id is None else repr(id)}")
        self._observe(*self._pending.pop(id), outcome)
        self.rounds += 1

    @abstractmethod
    def _read(self, forecast: object) -> Any:
        """Convert the base forecast to what the method uses of it."""

    @abstractmethod
    def _issue(self, read: Any) -> Any:
        """Return the recalibrated forecast."""

    def _snapshot(self) -> Any:
        """Return the part of the state that the update of this round will need."""
        return None

    @abstractmethod
    def _outcome(self, y: object) -> Any:
        """Validate an outcome."""

    @abstractmethod
    def _observe(self, read: Any, then: Any, y: Any) -> None:
        """Update the state by an outcome; `then` is the snapshot of its round."""


class EventRival(Rival):
    """Method for an event; base forecasts are probabilities."""

    def _read(self, forecast: object) -> Any:
        return binary_probability(forecast)

    def _outcome(self, y: object) -> int:
        return int(Binary().outcome(y))

    def _issue(self, read: Any) -> BinaryForecast:
        return BinaryForecast(self._probability(read))

    @abstractmethod
    def _probability(self, read: Any) -> float:
        """Return the recalibrated probability."""


class QuantityRival(Rival):
    """Method for a quantity between bounds; base forecasts are read at the percents."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        super().__init__()
        self.quantity = Quantity(low, high, levels)
        self.levels = self.quantity.levels

    def _read(self, forecast: object) -> Any:
        return self.quantity.read(forecast)

    def _outcome(self, y: object) -> float:
        return self.quantity.outcome(y)


class Quantity:
    """Bounds and levels of a quantity; reads base forecasts and makes issued ones."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        self.space = Interval(low, high, cells=_CELLS)
        self.low, self.high = self.space.low, self.space.high
        self.levels = Quantiles(levels, np.zeros(np.size(levels))).levels
        self.grid = np.unique(np.concatenate((_TAILS, PERCENTS, 1.0 - _TAILS, self.levels)))
        self.scores = normal_scores(self.grid)
        self.mass = np.diff(self.grid, prepend=0.0, append=1.0)
        self.ties = 0

    def read(self, forecast: object) -> Array:
        """Percents of a base forecast, increasing; they may lie beyond the bounds."""
        row = self._own_quantiles(forecast, PERCENTS)
        if row is None:  # only a cdf, or not a forecast
            with np.errstate(over="ignore"):
                row, _ = expert_row(forecast, self.space)
        return self.within_reach(row)

    def read_at_levels(self, forecast: object) -> Array:
        """Quantiles of a base forecast at the levels of the method."""
        row = self._own_quantiles(forecast, self.levels)
        return quantile_at(self.read(forecast), self.levels) if row is None else self.within_reach(row)

    def _own_quantiles(self, forecast: object, levels: Array) -> Array | None:
        with np.errstate(over="ignore"), suppress(TypeError):
            return quantiles_at(forecast, levels)
        return None

    def within_reach(self, values: Array) -> Array:
        """Sort values, and clip those that are too far outside the bounds for arithmetic."""
        reach = REACH * (self.high - self.low)
        return np.sort(np.clip(values, self.low - reach, self.high + reach))

    def outcome(self, y: object) -> float:
        """Outcome as a float within the bounds."""
        return number(single(y), "outcome", self.low, self.high)

    def quantile(self, row: Array, levels: Array) -> Array:
        """Quantiles of a base forecast at any levels, within the bounds; the bounds beyond levels 0 and 1."""
        q = np.clip(quantile_at(row, levels), self.low, self.high)
        q[levels <= 0.0] = self.low
        q[levels >= 1.0] = self.high
        return q

    def pit_interval(self, row: Array, y: float) -> tuple[float, float]:
        """Ends of the PIT of y, equal where there is no atom."""
        start = 0.0 if y <= self.low else level_of(row, y, "left")
        stop = 1.0 if y >= self.high else level_of(row, y, "right")
        return start, stop

    def pit(self, row: Array, y: float) -> float:
        """PIT of y; on an atom a point of its interval, and the tie is counted."""
        start, stop = self.pit_interval(row, y)
        if stop - start <= _ROUNDING:
            return stop
        self.ties += 1
        return start + (self.ties * _GOLDEN) % 1.0 * (stop - start)

    def issue(self, values: Array) -> Forecast:
        """Forecast with these quantiles at the levels, sorted and clipped to the bounds."""
        own = Quantiles(self.levels, np.clip(values, self.low, self.high))  # sorts them
        return self.on_grid(own.at_scores(self.scores))

    def on_grid(self, q: Array) -> Forecast:
        """Forecast with these quantiles at the levels of the grid."""
        q = np.maximum.accumulate(np.clip(q, self.low, self.high))
        edges = np.concatenate(([self.low], q, [self.high]))
        return Forecast.trusted(edges[:-1], edges[1:], self.mass, None)


def quantile_at(row: Array, levels: Array) -> Array:
    """Quantiles at any levels from those at the percents."""
    z = ndtri(np.clip(levels, 1e-300, 1.0 - 2.0**-53))
    q: Array = np.interp(z, _SCORES, row)
    for end, neighbour, beyond in ((0, 1, z < _SCORES[0]), (-1, -2, z > _SCORES[-1])):
        if row[end] != row[neighbour]:
            slope = (row[end] - row[_MEDIAN]) / _SCORES[end]
            q[beyond] = row[end] + (z[beyond] - _SCORES[end]) * slope
    return q


def level_of(row: Array, y: float, side: str) -> float:
    """Lowest level with a quantile of at least y ("left"), or highest with one of at most y ("right")."""
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
