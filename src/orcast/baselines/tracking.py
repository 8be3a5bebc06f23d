"""Tracked quantiles: to the expert's an offset is added that follows its errors."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.offsets import ErrorTracking, OffsetBaseline, RecentScores, range_of
from orcast.baselines.quantity import Array
from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces.base import whole
from orcast.validation import number


class ConformalPID(ErrorTracking):
    """Quantile tracking with an integral term (Angelopoulos, Candes and Tibshirani, 2023).

    To the expert's quantile Q_a at level a an offset is added, which follows the errors e = a - 1{s <= offset} of the
    scores s = y - Q_a:

        track <- track + rate range(s) e                               the proportional part, from 0 on
        offset = track + integral max|s| tan(log(t + 1) sum(e) / (saturation (t + 1)))

    range(s) and max|s| are those of the last `window` scores, the newest included, so that nothing depends on the
    unit of y.  The tangent counts as infinite from pi/2 on, where the bounds are issued: with an integral above 0 the
    frequency of s <= offset therefore differs from a by at most (saturation pi/2 (t + 1) / log(t + 1) + 1) / t from the
    third round on, whatever comes.  `integral=0` is plain quantile tracking.  The third part, a forecast of the
    scores by another model, is left out.

    The scores are in units of y and not of the expert's spread: they are one-sided scores of conformalised quantile
    regression, as the authors use them, and an expert may well have no spread at all.  Scores and errors are those of
    quantiles that may lie beyond the bounds, so outcomes on a bound do not drive the offset away.  Quantiles are sorted
    before they are issued.  The state is of constant size: `window` scores for each level.

    Reference: "Conformal PID control for time series prediction", NeurIPS 2023.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalPID
    >>> pid = ConformalPID(0, 10, levels=[0.25, 0.75], integral=0)
    >>> for y in (6.0, 8.0):                                       # two scores are 2 apart; both were above
    ...     p = pid.predict(oc.Normal(5, 0)); pid.update(y)
    >>> pid.predict(oc.Normal(5, 0)).quantile([0.25, 0.75]).round(6).tolist()
    [5.05, 5.15]
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
        self.rate = number(rate, "rate", 0.0, 1e12)
        self.integral = number(integral, "integral", 0.0, 1e12)
        self.saturation = number(saturation, "saturation", 1e-12, 1e12)
        count = self._quantity.levels.size
        self._track = np.zeros(count)
        self._errors = np.zeros(count)
        self._scores = RecentScores(window, count)

    @property
    def window(self) -> int:
        """Rounds whose scores say how large steps are."""
        return self._scores.window

    def _moved(self, scores: Array, error: Array) -> Array:
        recent = self._scores.add(scores)
        self._track += self.rate * range_of(recent) * error
        self._errors += error
        return self._track + self._integral_part(recent, self.rounds + 1)

    def _integral_part(self, recent: Array, rounds: int) -> Array:
        if self.integral == 0.0:
            return np.zeros_like(self._errors)
        angle = self._errors * math.log(rounds + 1) / (self.saturation * (rounds + 1))
        gain = self.integral * np.abs(recent).max(axis=0)
        inside = np.abs(angle) < 0.5 * math.pi
        return np.where(inside, gain * np.tan(np.where(inside, angle, 0.0)), np.copysign(np.inf, angle))

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}, integral={self.integral:g}"


class MultiLevelTracking(OffsetBaseline):
    """Quantile tracking at many levels at once, kept in order by isotonic regression (MultiQT).

    To the expert's quantiles Q offsets are added, which follow the errors of what was played:

        q = the increasing sequence nearest to Q + offset,    offset_a <- offset_a + step (a - 1{y <= q_a})
        step = max(rate x the 90% quantile of |y - Q_a| over all levels of the last `window` rounds, least)

    Where outcomes come late (named rounds) the errors are still those of what was played, as in the authors' version
    for delays.  As with `ConformalPID` errors are those of quantiles that may lie beyond the bounds.  `least`, in the
    unit of y, moves the offsets on where the expert was exact.  The state is of constant size: `window` scores for each
    level.

    Reference: Ding, Gibbs and Tibshirani (2025), "Calibrated multi-level quantile forecasting", arXiv:2512.23671.

    >>> import orcast as oc
    >>> from orcast.baselines import MultiLevelTracking
    >>> tracking = MultiLevelTracking(0, 10, levels=[0.25, 0.75])
    >>> p = tracking.predict(oc.Normal(5, 0)); tracking.update(7)   # above both, by 2
    >>> tracking.predict(oc.Normal(5, 0)).quantile([0.25, 0.75]).round(6).tolist()
    [5.05, 5.15]
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
        self.rate = number(rate, "rate", 0.0, 1e12)
        self.window = whole(window, "rounds in the window", 1, 1_000_000)
        self.least = number(least, "least step", 0.0, 1e300)
        self._sizes: deque[Array] = deque(maxlen=self.window)

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(increasing(row + self._offset))

    def _learn(self, row: Array, y: float, then: Array) -> None:
        error = self._quantity.levels - (y <= increasing(row + then))
        self._sizes.append(np.abs(y - row))
        step = max(self.rate * float(np.quantile(np.concatenate(self._sizes), 0.9)), self.least)
        self._offset = self._offset + step * error

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}"


def increasing(values: Array) -> Array:
    """The increasing sequence nearest in squares: neighbours that fall are pooled into blocks of (mean, size)."""
    if (values[1:] >= values[:-1]).all():
        return values
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, size = value, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
