"""Rivals that add to the base forecast's quantile at each level an offset, which follows the scores s = y - Q_a.

Quantiles may lie beyond the bounds inside a method, and are sorted before they are issued. Scales come from the scores.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from bisect import insort
from collections import deque

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from research.rivals.base import Array, QuantityRival

_ROUNDING = 1e-9  # (n + 1) a this close to an integer is that integer


class OffsetRival(QuantityRival):
    """Method that adds an offset at each level; each update makes a new array of offsets."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        super().__init__(low, high, levels)
        self.offset = np.zeros(self.levels.size)

    def _read(self, forecast: object) -> Array:
        return self.quantity.read_at_levels(forecast)

    def _issue(self, row: Array) -> Forecast:
        return self.quantity.issue(row + self.offset)

    def _snapshot(self) -> Array:
        return self.offset


class ErrorTracker(OffsetRival):
    """Offsets that follow the errors a - 1{s <= offset}, with the offset that was issued, each level by itself."""

    def _observe(self, row: Array, then: Array, y: float) -> None:
        scores = y - row
        self.offset = self._moved(scores, self.levels - (scores <= then))

    @abstractmethod
    def _moved(self, scores: Array, error: Array) -> Array:
        """Return the offsets after a round, as a new array."""


class RecentScores:
    """Scores of the last `window` rounds, a row each."""

    def __init__(self, window: int, count: int) -> None:
        self.window, self.rows = window, np.empty((0, count))

    def add(self, scores: Array) -> Array:
        """Add the scores of a round and return all rows."""
        self.rows = np.concatenate((self.rows[max(len(self.rows) + 1 - self.window, 0) :], scores[None]))
        return self.rows


class ConformalPID(ErrorTracker):
    """Quantile tracking with an integral term (Angelopoulos, Candes and Tibshirani, 2023).

    With errors e = a - 1{s <= offset} of the scores s = y - Q_a

        track <- track + rate range(s) e                               the proportional part, from 0 on
        offset = track + integral max|s| tan(log(t + 1) sum(e) / (saturation (t + 1)))

    range(s) and max|s| are those of the last `window` scores.  The tangent counts as infinite from pi/2 on, where the
    bounds are issued: with an integral above 0 the frequency of s <= offset differs from a by at most
    (saturation pi/2 (t + 1) / log(t + 1) + 1) / t from the third round on, on any sequence.  `integral=0` is plain
    quantile tracking.  The third part, a forecast of the scores by another model, is left out.

    Reference: "Conformal PID control for time series prediction", NeurIPS 2023.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rate: float = 0.1,
        integral: float = 1.0,
        saturation: float = 5.0,
        window: int = 100,
    ) -> None:
        super().__init__(low, high, levels)
        self.rate, self.integral, self.saturation = rate, integral, saturation
        self.errors = np.zeros_like(self.offset)
        self._track = np.zeros_like(self.offset)
        self._scores = RecentScores(window, self.offset.size)

    def _moved(self, scores: Array, error: Array) -> Array:
        recent = self._scores.add(scores)
        self._track += self.rate * np.ptp(recent, axis=0) * error
        self.errors += error
        return self._track + self._integral_part(recent, self.rounds + 1)

    def _integral_part(self, recent: Array, rounds: int) -> Array:
        if self.integral == 0.0:
            return np.zeros_like(self.errors)
        angle = self.errors * math.log(rounds + 1) / (self.saturation * (rounds + 1))
        gain = self.integral * np.abs(recent).max(axis=0)
        inside = np.abs(angle) < 0.5 * math.pi
        return np.where(inside, gain * np.tan(np.where(inside, angle, 0.0)), np.copysign(np.inf, angle))


class MultiQT(OffsetRival):
    """Multi-level quantile tracking: offsets at all levels, ordered by isotonic regression.

        q = the increasing sequence nearest to Q + offset,    offset_a <- offset_a + step (a - 1{y <= q_a})
        step = max(rate x the 90% quantile of |y - Q_a| over all levels of the last `window` rounds, least)

    Where outcomes come late the errors are those of the issued q, as in the authors' version for delays.  `least`, in
    the unit of y, moves the offsets where the base forecast was exact.

    Reference: Ding, Gibbs and Tibshirani (2025), "Calibrated multi-level quantile forecasting", arXiv:2512.23671.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rate: float = 0.1,
        window: int = 50,
        least: float = 0.0,
    ) -> None:
        super().__init__(low, high, levels)
        self.rate, self.least = rate, least
        self._sizes: deque[Array] = deque(maxlen=window)

    def _issue(self, row: Array) -> Forecast:
        return self.quantity.issue(increasing(row + self.offset))

    def _observe(self, row: Array, then: Array, y: float) -> None:
        error = self.levels - (y <= increasing(row + then))
        self._sizes.append(np.abs(y - row))
        step = max(self.rate * float(np.quantile(np.concatenate(self._sizes), 0.9)), self.least)
        self.offset = self.offset + step * error


def increasing(values: Array) -> Array:
    """Increasing sequence nearest in squares."""
    return values if (values[1:] >= values[:-1]).all() else np.asarray(isotonic_regression(values).x)


class DecayingOCP(ErrorTracker):
    """Online conformal prediction with decaying step sizes (Angelopoulos, Barber and Bates, 2024).

        offset <- offset + step_t (a - 1{s <= offset}),    step_t = rate max|s| t^-(1/2 + decay)

    from 0 on; the authors take 0.1 as decay.  With independent outcomes the offset converges to the quantile of the
    scores.  On any sequence with |s| <= B

        |frequency of s <= offset  -  a|  <=  (2 B + largest step) (1 / step_1 + sum of |1 / step_t - 1 / step_t-1|) / T

    The authors' scores have a known size; max|s| is here the largest so far at each level.

    Reference: "Online conformal prediction with decaying step sizes", ICML 2024.
    """

    def __init__(
        self, low: float, high: float, *, levels: ArrayLike = PERCENTS, rate: float = 1.0, decay: float = 0.1
    ) -> None:
        super().__init__(low, high, levels)
        self.rate, self.decay = rate, decay
        self._largest = np.zeros_like(self.offset)

    def _moved(self, scores: Array, error: Array) -> Array:
        self._largest = np.maximum(self._largest, np.abs(scores))
        step: Array = self.rate * (self.rounds + 1.0) ** (-0.5 - self.decay) * self._largest
        return self.offset + step * error


class AcMCP(ConformalPID):
    """Autocorrelated multi-step conformal prediction (Wang and Hyndman, 2024): a conformal PID with a score caster.

        offset = track + integral part + the mean of two forecasts of the next error e = y - median

    One forecast is that of an MA(h - 1) fitted to the known errors h steps ahead: at h steps it is the mean of
    the process.  The other is a regression of the error on those of the shorter horizons of the same origin, at their
    forecasts: with these at their means it is the mean as well.  So both are here the mean of the last `window` errors,
    from `fewest` errors on.  The authors' intervals are around a point forecast; here they are around each quantile.

    Reference: "Online conformal inference for multi-step time series forecasting", arXiv:2410.13115.
    """

    fewest = 10

    def _moved(self, scores: Array, error: Array) -> Array:
        offset = super()._moved(scores, error)
        errors = self._scores.rows[:, int(np.abs(self.levels - 0.5).argmin())]
        return offset + float(errors.mean()) if errors.size >= self.fewest else offset


class NexCP(ErrorTracker):
    """Conformal prediction beyond exchangeability (Barber, Candes, Ramdas and Tibshirani, 2023), at each level.

    The offset is a quantile of past one-sided scores s = y - Q_a, of which the i-th newest has the weight decay^i:

        offset = the least s_k whose weights of scores <= s_k add up to at least a (1 + sum of all weights)

    from a = 1/2 on, and its mirror image below: the next score has the weight 1 and lies beyond all others.  Where no
    score is large enough the paper's interval is unbounded; here the most extreme score is taken.  Of the scores the
    last `window` are kept.

    Reference: "Conformal prediction beyond exchangeability", Annals of Statistics 51, 2023.
    """

    def __init__(
        self, low: float, high: float, *, levels: ArrayLike = PERCENTS, decay: float = 0.99, window: int = 300
    ) -> None:
        super().__init__(low, high, levels)
        self.decay = decay
        self._scores = RecentScores(window, self.offset.size)
        self._side = np.where(self.levels < 0.5, -1.0, 1.0)

    def _moved(self, scores: Array, error: Array) -> Array:
        past = np.ascontiguousarray((self._scores.add(scores) * self._side).T)
        weights = self.decay ** np.arange(past.shape[1], 0, -1)
        order = np.argsort(past, axis=1, kind="stable")
        reached = np.cumsum(weights[order], axis=1) / (1.0 + weights.sum())
        share = np.maximum(self.levels, 1.0 - self.levels)
        place = np.minimum((reached < share[:, None] - _ROUNDING).sum(axis=1), past.shape[1] - 1)
        each = np.arange(self.levels.size)
        return np.asarray(self._side * past[each, order[each, place]])


class COP(ErrorTracker):
    """Conformal optimistic prediction (Hu, Wu, Xia and Zou, 2025).

    Quantile tracking, then one more step on the estimated distribution of the scores before the next one is known:

        track  <- track + step (a - 1{s <= offset})                                   from 0 on
        offset <- track + optimism step (a - F(track)),    step = rate range(s)

    F is the empirical distribution of the last `window` scores, and range(s) is theirs too; until there are as many
    there is no second step.  The authors' code leaves the newest score out and has 0.5 as optimism.

    Reference: "Distribution-informed online conformal prediction", ICLR 2026, arXiv:2512.07770; the constants are from
    the authors' code.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rate: float = 0.1,
        optimism: float = 0.5,
        window: int = 100,
    ) -> None:
        super().__init__(low, high, levels)
        self.rate, self.optimism, self.window = rate, optimism, window
        self._track = np.zeros_like(self.offset)
        self._scores = RecentScores(window, self.offset.size)

    def _moved(self, scores: Array, error: Array) -> Array:
        recent = self._scores.add(scores)
        step = self.rate * np.ptp(recent, axis=0)
        self._track = self._track + step * error
        if len(recent) < self.window:
            return self._track.copy()
        below: Array = np.count_nonzero(recent <= self._track, axis=0) / self.window
        return np.asarray(self._track + self.optimism * step * (self.levels - below))


class CQR(ErrorTracker):
    """Conformalised quantile regression (Romano, Patterson and Candes, 2019), refitted after each outcome.

    The offset is a quantile of all n past one-sided scores:

        offset = the k-th smallest,    k = ceil((n + 1) a) from a = 1/2 on,    floor((n + 1) a) below

    so that both ends of an interval err on the wide side.  Where scores are exchangeable, and none equal, the next one
    is at or below the offset with probability k / (n + 1).  Where k is 0 or n + 1 the paper's interval is unbounded;
    here the lowest or highest score is taken.

    Reference: "Conformalized quantile regression", NeurIPS 2019, which has one set of scores for calibration.
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS) -> None:
        super().__init__(low, high, levels)
        self._sorted = [array("d") for _ in range(self.offset.size)]

    def _moved(self, scores: Array, error: Array) -> Array:
        for past, score in zip(self._sorted, scores.tolist(), strict=True):
            insort(past, score)
        n, a = len(self._sorted[0]), self.levels
        place = (n + 1) * a
        rank = np.where(a < 0.5, np.floor(place + _ROUNDING), np.ceil(place - _ROUNDING))
        ranks = np.clip(rank - 1.0, 0.0, n - 1.0).astype(np.intp).tolist()
        return np.array([past[k] for past, k in zip(self._sorted, ranks, strict=True)])
