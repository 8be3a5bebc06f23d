"""Methods that add to the expert's quantile at each level an offset, which follows the scores y - Q_a."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.quantity import Array, QuantityBaseline
from orcast.forecasts import Forecast
from orcast.spaces.base import whole
from orcast.validation import number


class OffsetBaseline(QuantityBaseline):
    """A method that adds an offset at each level; quantiles are sorted when they are issued."""

    def __init__(self, low: float, high: float, levels: ArrayLike) -> None:
        super().__init__(low, high, levels)
        self._offset = np.zeros(self._quantity.levels.size)

    @property
    def offset(self) -> Array:
        """What is added to the expert's quantile at each of the levels, now."""
        return self._offset.copy()

    def _read(self, forecast: object) -> Array:
        return self._quantity.read_at_levels(forecast)

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(row + self._offset)

    def _now(self) -> Any:
        return self._offset  # made anew in each round


class ErrorTracking(OffsetBaseline):
    """Offsets that follow errors, each level by itself: `_moved` has the next ones from a round's scores and errors.

    The error of a round is a - 1{y - Q_a <= offset}, with the offset that was issued in that round.  Scores and errors
    are those of quantiles that may lie beyond the bounds, so outcomes on a bound do not drive an offset away.
    """

    def _learn(self, row: Array, y: float, then: Any) -> None:
        scores = y - row
        self._offset = self._moved(scores, self._quantity.levels - (scores <= then))

    @abstractmethod
    def _moved(self, scores: Array, error: Array) -> Array:
        """The offsets after a round, as a new array."""


class RecentScores:
    """The scores of the last `window` rounds, a row each."""

    def __init__(self, window: int, count: int) -> None:
        self.window = whole(window, "rounds in the window", 1, 1_000_000)
        self.rows = np.empty((0, count))

    def add(self, scores: Array) -> Array:
        """All of them, the newest included."""
        self.rows = np.concatenate((self.rows[max(len(self.rows) + 1 - self.window, 0) :], scores[None]))
        return self.rows


def range_of(rows: Array) -> Array:
    """How far apart the scores of each level are."""
    spread: Array = rows.max(axis=0) - rows.min(axis=0)
    return spread


class Scale:
    """How large scores are: a given number, or for each level some multiple of the largest |score| so far."""

    def __init__(self, given: float | None, multiple: float, count: int) -> None:
        self.given = None if given is None else number(given, "scale", 1e-300, 1e300)
        self.multiple = multiple
        self.now = np.full(count, 0.0 if self.given is None else self.given)

    def update(self, scores: Array) -> Array:
        """The scale, with the newest scores."""
        if self.given is None:
            self.now = np.maximum(self.now, self.multiple * np.abs(scores))
        return self.now

    def __str__(self) -> str:
        return "scale as seen" if self.given is None else f"scale={self.given:g}"
