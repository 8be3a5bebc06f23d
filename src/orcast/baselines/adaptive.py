"""Trackers of many ages at once, the better of late counting more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.offsets import OffsetBaseline, Scale
from orcast.baselines.quantity import Array
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces.base import whole

# Gains of less are rounding.
_ROUNDING = 1e-12


class StronglyAdaptiveTracking(OffsetBaseline):
    """Strongly adaptive online conformal prediction (SAOCP; Bhatnagar, Wang, Xiong and Bai, 2023).

    With every outcome a `ScaleFreeTracking` is born at the offset of today, the i-th one to live for

        lifetime x the largest power of 2 that divides i

    rounds, so about lifetime / 2 x log2(t) of them are alive.  What is issued is their mean, weighted for each level by
    a bet on each of them, coin betting for changing environments:

        offset = sum of p_i offset_i,    p_i ~ max(w_i, 0) / (i^2 (1 + floor(log2 i)))      without any w_i > 0: w_i = 1
        g_i = (pinball_a(offset) - pinball_a(offset_i)) / D,        at least 0 where w_i <= 0, and within [-1, 1]
        w_i = (sum of g_i) (1 + sum of w_i g_i) / age_i             over its own rounds; 0 at first

    D is the `scale`, as in `ScaleFreeTracking`, which bounds the scores in the paper.  A tracker learns from the rounds
    in which it was there, so where outcomes are late it waits for the first of its own.  In the paper the regret over
    every stretch of k rounds is of order sqrt(k), up to logarithms.  The state grows with log t.

    Reference: "Improved online conformal prediction via strongly adaptive online learning", ICML 2023; where a new
    tracker starts, and lifetime = 8, are from the authors' code.

    >>> import orcast as oc
    >>> from orcast.baselines import StronglyAdaptiveTracking
    >>> adaptive = StronglyAdaptiveTracking(0, 10, levels=[0.25, 0.75])
    >>> p = adaptive.predict(oc.Normal(5, 0)); adaptive.update(7)   # above both, by 2: the first step of the first one
    >>> adaptive.offset.round(6).tolist()
    [2.0, 2.0]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        scale: float | None = None,
        lifetime: int = 8,
    ) -> None:
        super().__init__(low, high, levels)
        self.lifetime = whole(lifetime, "rounds as lifetime", 1, 1_000_000)
        count = self._offset.size
        self._scale = Scale(scale, math.sqrt(3.0), count)
        self._born = np.ones(1, dtype=np.int64)
        self._age = np.zeros(1, dtype=np.int64)
        # for each tracker and level: its offset, its squared errors, its gains, and what the bets on it brought
        self._state = np.zeros((4, 1, count))
        self._bets = np.zeros((1, count))

    def _now(self) -> Any:
        return self._born, self._state[0], self._bets, self._offset  # made anew in each round

    def _learn(self, row: Array, y: float, then: Any) -> None:
        born, at, bets, offset = then
        here: Any = slice(None)
        if born is not self._born:  # a late round: who was there then, and still is
            _, here, there = np.intersect1d(self._born, born, assume_unique=True, return_indices=True)
            at, bets = at[there], bets[there]
        scores, a = y - row, self._quantity.levels
        scale = self._scale.update(scores)
        error = a - (scores <= at)
        gain = (scores - offset) * (a - (scores <= offset)) - (scores - at) * error
        gain /= np.where(scale > 0.0, scale, 1.0)
        gain[np.abs(gain) < _ROUNDING] = 0.0  # a tracker that is at the offset itself shall not win all by chance
        gain = np.clip(gain, -1.0 * (bets > 0.0), 1.0)
        _, squares, gains, won = self._state
        squares[here] += error * error
        gains[here] += gain
        won[here] += gain * bets
        moved = self._state[0].copy()  # rounds that wait have the old ones
        moved[here] += scale * error / np.sqrt(3.0 * squares[here])
        self._age[here] += 1
        self._replace(moved)

    def _replace(self, moved: Array) -> None:
        """Those whose life is over go, and one comes, at the offset of those who stay."""
        stay = np.flatnonzero(self._age < self.lifetime * (self._born & -self._born))
        born, count = self._born[stay], stay.size
        state = np.zeros((4, count + 1, self._offset.size))
        np.take(moved, stay, axis=0, out=state[0, :count], mode="clip")
        np.take(self._state[1:], stay, axis=1, out=state[1:, :count], mode="clip")
        at, _, gains, won = self._state = state
        self._born, self._age = np.append(born, self.rounds + 2), np.append(self._age[stay], 0)
        self._bets = gains * (1.0 + won) / np.maximum(self._age, 1)[:, None]
        if count:
            weights = np.maximum(self._bets[:count], 0.0)
            weights[:, ~weights.any(axis=0)] = 1.0
            weights /= (born.astype(np.float64) ** 2 * np.frexp(born)[1])[:, None]
            self._offset = np.einsum("ij,ij->j", weights, at[:count]) / weights.sum(axis=0)
        at[count] = self._offset

    def _described(self) -> str:
        return f"{self.levels.size} levels, {self._scale}, lifetime={self.lifetime}"
