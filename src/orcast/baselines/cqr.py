"""Conformalised quantile regression as outcomes come."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.offsets import ErrorTracking
from orcast.baselines.quantity import Array
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces.base import whole

# (n + 1) a within so much of a whole number is that number.
_ROUNDING = 1e-9


class ConformalQuantiles(ErrorTracking):
    """Conformalised quantile regression (CQR; Romano, Patterson and Candes, 2019), refitted after each outcome.

    To the expert's quantile Q_a the quantile of its past one-sided scores s = y - Q_a is added, n of them:

        offset = the k-th smallest of them,    k = ceil((n + 1) a) from a = 1/2 on,    floor((n + 1) a) below

    so that both ends of an interval err on the wide side, as they do in the paper for ends that are calibrated each by
    itself.  Where scores are exchangeable, and none equal, the next one is at or below the offset with probability
    k / (n + 1).  With so few scores that k is 0 or n + 1 the paper's interval has no end; here the lowest or the
    highest score is taken then, and 0 without any.

    `window` keeps the last so many scores only.  Without it all are kept: the state grows by 8 bytes a round and level,
    and a round takes a move of up to n numbers for each level.

    Reference: "Conformalized quantile regression", NeurIPS 2019, which has one set of scores for calibration.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalQuantiles
    >>> cqr = ConformalQuantiles(0, 10, levels=[0.25, 0.75])
    >>> for y in (5.0, 6.0, 7.0):
    ...     p = cqr.predict(oc.Normal(4, 0)); cqr.update(y)
    >>> cqr.predict(oc.Normal(4, 0)).quantile([0.25, 0.75]).tolist()
    [5.0, 7.0]
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, window: int | None = None) -> None:
        super().__init__(low, high, levels)
        self.window = None if window is None else whole(window, "rounds in the window", 1, 1_000_000)
        self._sorted = [array("d") for _ in range(self._offset.size)]
        self._latest: deque[Array] = deque()

    def _moved(self, scores: Array, error: Array) -> Array:
        for past, score in zip(self._sorted, scores.tolist(), strict=True):
            insort(past, score)
        if self.window is not None:
            self._latest.append(scores)
            if len(self._latest) > self.window:
                for past, score in zip(self._sorted, self._latest.popleft().tolist(), strict=True):
                    del past[bisect_left(past, score)]
        n, a = len(self._sorted[0]), self._quantity.levels
        place = (n + 1) * a
        rank = np.where(a < 0.5, np.floor(place + _ROUNDING), np.ceil(place - _ROUNDING))
        ranks = np.clip(rank - 1.0, 0.0, n - 1.0).astype(np.intp).tolist()
        return np.array([past[k] for past, k in zip(self._sorted, ranks, strict=True)])

    def _described(self) -> str:
        return f"{self.levels.size} levels, window={self.window}"
