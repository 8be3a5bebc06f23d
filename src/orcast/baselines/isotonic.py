"""Isotonic recalibration, of all the past or of a window."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import deque

import numpy as np

from orcast.baselines.quantity import Array, QuantityBaseline
from orcast.forecasts import Forecast
from orcast.spaces.base import whole


class Isotonic(QuantityBaseline):
    """Isotonic recalibration (Kuleshov, Fenner and Ermon, 2018), refitted after each outcome.

    The frequency of PITs at or below each PIT so far is regressed on that PIT, isotonically, and the expert is asked at
    the levels that so far had the frequencies wanted:

        R(PIT_t) ~ #{s: PIT_s <= PIT_t} / n,    quantile at a = expert's quantile at R^-1(a)

    The frequencies already increase with the PITs, so there is nothing to pool: R is the empirical distribution
    function itself, linear in between.  No regression has to be run; the k-th smallest PIT stands at k / (n + 1) rather
    than k / n, because the next outcome may lie beyond all so far, and (0, 0) and (1, 1) are the ends.  Equal PITs make
    a jump of R.  Before any outcome R is the identity.

    `window` keeps the last so many PITs only.  Without it all are kept: the state grows by 8 bytes a round.  A round
    takes O(log n) steps to find the place of the new PIT, and a move of up to n numbers in memory to insert it.

    Reference: "Accurate uncertainties for deep learning using calibrated regression", ICML 2018.

    >>> import orcast as oc
    >>> from orcast.baselines import Isotonic
    >>> iso = Isotonic(0, 10)
    >>> for y in (6.0, 6.5, 7.0):                       # the expert is too low
    ...     p = iso.predict(oc.Normal(5, 1)); iso.update(y)
    >>> iso.predict(oc.Normal(5, 1)).quantile([0.25, 0.5, 0.75]).round(6).tolist()
    [6.0, 6.5, 7.0]
    """

    def __init__(self, low: float, high: float, *, window: int | None = None) -> None:
        super().__init__(low, high)
        self.window = None if window is None else whole(window, "rounds in the window", 1, 10**9)
        self._sorted = array("d")
        self._latest: deque[float] = deque()

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.on_grid(self._quantity.quantile(row, self._asked(self._quantity.grid)))

    def _learn(self, row: Array, y: float, then: None) -> None:
        pit = self._quantity.pit(row, y)
        insort(self._sorted, pit)
        if self.window is not None:
            self._latest.append(pit)
            if len(self._latest) > self.window:
                del self._sorted[bisect_left(self._sorted, self._latest.popleft())]

    def _asked(self, levels: Array) -> Array:
        """R^-1."""
        n = len(self._sorted)
        if n == 0:
            return levels
        pits = np.frombuffer(self._sorted)
        place = levels * (n + 1)
        k = np.minimum(place.astype(np.intp), n)
        below = np.where(k > 0, pits[np.maximum(k - 1, 0)], 0.0)
        above = np.where(k < n, pits[np.minimum(k, n - 1)], 1.0)
        asked: Array = below + (place - k) * (above - below)
        return asked

    def _described(self) -> str:
        return f"window={self.window}"
