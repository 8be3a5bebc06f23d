"""Strongly adaptive online conformal prediction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast.forecasts.ordered import PERCENTS
from research.rivals.base import Array
from research.rivals.offsets import OffsetRival

_ROUNDING = 1e-12  # smaller gains are rounding


class SAOCP(OffsetRival):
    """Strongly adaptive online conformal prediction (Bhatnagar, Wang, Xiong and Bai, 2023).

    With every outcome an `SFOGD` tracker starts at the present offset; the i-th one lives for

        lifetime x the largest power of 2 that divides i

    rounds, so about lifetime / 2 x log2(t) are alive.  The offset is their mean, weighted for each level by coin
    betting:

        offset = sum of p_i offset_i,    p_i ~ max(w_i, 0) / (i^2 (1 + floor(log2 i)))      without any w_i > 0: w_i = 1
        g_i = (pinball_a(offset) - pinball_a(offset_i)) / D,        at least 0 where w_i <= 0, and within [-1, 1]
        w_i = (sum of g_i) (1 + sum of w_i g_i) / age_i             over its own rounds; 0 at first

    D is sqrt 3 times the largest |s| so far.  A tracker is updated by rounds that were issued while it was alive.  In
    the paper the regret over every stretch of k rounds is of order sqrt(k), up to logarithms.

    Reference: "Improved online conformal prediction via strongly adaptive online learning", ICML 2023; where a new
    tracker starts, and lifetime = 8, are from the authors' code.
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, lifetime: int = 8) -> None:
        super().__init__(low, high, levels)
        self.lifetime, count = lifetime, self.offset.size
        self._scale = np.zeros(count)
        self.born = np.ones(1, dtype=np.int64)
        self._age = np.zeros(1, dtype=np.int64)
        # for each tracker and level: offset, sum of squared errors, sum of gains, sum of bets x gains
        self._state = np.zeros((4, 1, count))
        self._bets = np.zeros((1, count))

    def _snapshot(self) -> Any:
        return self.born, self._state[0], self._bets, self.offset  # new arrays in each round

    def _observe(self, row: Array, then: Any, y: float) -> None:
        born, at, bets, offset = then
        here: Any = slice(None)
        if born is not self.born:  # a late round: trackers that were alive then and still are
            _, here, there = np.intersect1d(self.born, born, assume_unique=True, return_indices=True)
            at, bets = at[there], bets[there]
        scores, a = y - row, self.levels
        scale = self._scale = np.maximum(self._scale, math.sqrt(3.0) * np.abs(scores))
        error = a - (scores <= at)
        gain = (scores - offset) * (a - (scores <= offset)) - (scores - at) * error
        gain /= np.where(scale > 0.0, scale, 1.0)
        gain[np.abs(gain) < _ROUNDING] = 0.0  # else a tracker at the offset itself may win by rounding
        gain = np.clip(gain, -1.0 * (bets > 0.0), 1.0)
        _, squares, gains, won = self._state
        squares[here] += error * error
        gains[here] += gain
        won[here] += gain * bets
        moved = self._state[0].copy()  # pending rounds have the old array
        moved[here] += scale * error / np.sqrt(3.0 * squares[here])
        self._age[here] += 1
        self._replace(moved)

    def _replace(self, moved: Array) -> None:
        """Remove trackers at the end of their life and start one at the offset of those that stay."""
        stay = np.flatnonzero(self._age < self.lifetime * (self.born & -self.born))
        born, count = self.born[stay], stay.size
        state = np.zeros((4, count + 1, self.offset.size))
        np.take(moved, stay, axis=0, out=state[0, :count], mode="clip")
        np.take(self._state[1:], stay, axis=1, out=state[1:, :count], mode="clip")
        at, _, gains, won = self._state = state
        self.born, self._age = np.append(born, self.rounds + 2), np.append(self._age[stay], 0)
        self._bets = gains * (1.0 + won) / np.maximum(self._age, 1)[:, None]
        if count:
            weights = np.maximum(self._bets[:count], 0.0)
            weights[:, ~weights.any(axis=0)] = 1.0
            weights /= (born.astype(np.float64) ** 2 * np.frexp(born)[1])[:, None]
            self.offset = np.einsum("ij,ij->j", weights, at[:count]) / weights.sum(axis=0)
        at[count] = self.offset
