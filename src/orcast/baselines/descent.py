"""Online gradient descent on the offsets of quantiles, with the steps of several papers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.offsets import ErrorTracking, RecentScores, Scale, range_of
from orcast.baselines.quantity import Array
from orcast.forecasts.ordered import PERCENTS
from orcast.validation import number


class GradientEquilibrium(ErrorTracking):
    """Online gradient descent with a constant step (Angelopoulos, Jordan and Tibshirani, 2025).

    With `loss="pinball"` each quantile Q_a has an offset of its own, which for scores s = y - Q_a follows

        offset <- offset + step (a - 1{s <= offset}),    step = rate (high - low)

    from 0 on.  The sum of what is in brackets is the way of the offset divided by the step, so that

        |frequency of s <= offset  -  a|  <=  (2 B + step) / (step T)         where |s| <= B throughout.

    With `loss="squared"` one offset moves the whole forecast, so that its mean m comes right:

        offset <- offset + rate (y - m),    m the mean of what was issued
        mean of y - m so far  =  offset / (rate T)

    so rates up to 1 make sense there.  Steps do not decay, and are not rescaled, because that is the point: gradients
    average to zero on any sequence on which offsets stay bounded.  For the pinball loss the rate is a share of the
    distance of the bounds, so it should be smaller where these are generous.  The state is of constant size.

    Reference: "Gradient equilibrium in online learning: theory and applications", arXiv:2501.08330.

    >>> import orcast as oc
    >>> from orcast.baselines import GradientEquilibrium
    >>> tracking = GradientEquilibrium(0, 10, levels=[0.25, 0.75], rate=0.1)
    >>> p = tracking.predict(oc.Normal(5, 0)); tracking.update(7)                    # above both
    >>> tracking.offset.tolist()
    [0.25, 0.75]
    """

    def __init__(
        self, low: float, high: float, *, levels: ArrayLike = PERCENTS, rate: float = 0.01, loss: str = "pinball"
    ) -> None:
        super().__init__(low, high, levels)
        self.rate = number(rate, "rate", 1e-12, 1e12)
        if loss not in ("pinball", "squared"):
            raise ValueError(f'expected "pinball" or "squared" as loss, got {loss!r}')
        self.loss = loss

    def _learn(self, row: Array, y: float, then: Array) -> None:
        if self.loss == "pinball":
            super()._learn(row, y, then)
        else:
            p = self._quantity.issue(row + then)
            self._offset = self._offset + self.rate * (y - 0.5 * float(p.mass @ (p.left + p.right)))

    def _moved(self, scores: Array, error: Array) -> Array:
        return self._offset + self.rate * (self._quantity.high - self._quantity.low) * error

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}, {self.loss}"


class DecayingTracking(ErrorTracking):
    """Quantile tracking with steps that decay (Angelopoulos, Barber and Bates, 2024).

    The offset of the quantile Q_a follows its scores s = y - Q_a, the t-th outcome with a step that decays:

        offset <- offset + step_t (a - 1{s <= offset}),    step_t = rate scale t^-(1/2 + decay)

    from 0 on; the authors take 0.1 as decay.  With independent outcomes the offset converges to the quantile of the
    scores.  On any sequence with |s| <= B

        |frequency of s <= offset  -  a|  <=  (2 B + largest step) (1 / step_1 + sum of |1 / step_t - 1 / step_t-1|) / T

    which for a given `scale` is (2 B + step_1) / (step_T T).  The authors' scores have a known size; here `scale` is in
    the unit of y, or else for each level the largest |s| so far, the newest included, so that nothing depends on the
    unit.  The state is of constant size.

    Reference: "Online conformal prediction with decaying step sizes", ICML 2024.

    >>> import orcast as oc
    >>> from orcast.baselines import DecayingTracking
    >>> tracking = DecayingTracking(0, 10, levels=[0.25, 0.75], decay=0.5)            # steps 1/t
    >>> for y in (7.0, 7.0):
    ...     p = tracking.predict(oc.Normal(5, 0)); tracking.update(y)                # above both by 2
    >>> tracking.offset.tolist()
    [0.75, 2.25]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rate: float = 1.0,
        decay: float = 0.1,
        scale: float | None = None,
    ) -> None:
        super().__init__(low, high, levels)
        self.rate = number(rate, "rate", 1e-12, 1e12)
        self.decay = number(decay, "decay", -0.5, 0.5)
        self._scale = Scale(scale, 1.0, self._quantity.levels.size)

    def _moved(self, scores: Array, error: Array) -> Array:
        step: Array = self.rate * (self.rounds + 1.0) ** (-0.5 - self.decay) * self._scale.update(scores)
        return self._offset + step * error

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}, decay={self.decay:g}, {self._scale}"


class ScaleFreeTracking(ErrorTracking):
    """Quantile tracking by scale-free online gradient descent (SF-OGD; Bhatnagar, Wang, Xiong and Bai, 2023).

    The offset of the quantile Q_a follows its scores s = y - Q_a, with steps divided by the root of what the squared
    errors e sum up to:

        e = a - 1{s <= offset},    offset <- offset + (D / sqrt 3) e / sqrt(sum of e^2 so far, the newest included)

    from 0 on.  D bounds the scores in the paper.  Here it is `scale`, in the unit of y, or else for each level sqrt 3
    times the largest |s| so far, as the authors' code has it from a first stretch of data.  With a given D, and
    |s| <= B, summing by parts gives on any sequence

        |frequency of s <= offset  -  a|  <=  2 (B sqrt 3 / D + 1) sqrt(sum of e^2) / T

    The authors' radii stop at 0; offsets have a sign.  The state is of constant size.

    Reference: "Improved online conformal prediction via strongly adaptive online learning", ICML 2023.

    >>> import orcast as oc
    >>> from orcast.baselines import ScaleFreeTracking
    >>> tracking = ScaleFreeTracking(0, 10, levels=[0.25, 0.75])
    >>> for y in (7.0, 8.0):
    ...     p = tracking.predict(oc.Normal(5, 0)); tracking.update(y)                # above both, by 2 and 3
    >>> tracking.offset.round(3).tolist()                                            # 2 + 3 / sqrt 2
    [4.121, 4.121]
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, scale: float | None = None) -> None:
        super().__init__(low, high, levels)
        self._squares = np.zeros_like(self._offset)
        self._scale = Scale(scale, math.sqrt(3.0), self._offset.size)

    def _moved(self, scores: Array, error: Array) -> Array:
        self._squares += error * error
        return self._offset + self._scale.update(scores) / np.sqrt(3.0 * self._squares) * error

    def _described(self) -> str:
        return f"{self.levels.size} levels, {self._scale}"


class OptimisticTracking(ErrorTracking):
    """Conformal optimistic prediction (COP; Hu, Wu, Xia and Zou, 2025).

    Quantile tracking, and then one more step on what the distribution of the scores s = y - Q_a looks like, before the
    next one is known:

        track  <- track + step (a - 1{s <= offset})                                   from 0 on
        offset <- track + optimism step (a - F(track)),    step = rate range(s)

    F is the empirical distribution of the last `window` scores, and there is no second step until there are so many;
    range(s) is theirs too.  In both the newest score counts, so that nothing depends on the unit of y; the authors'
    code leaves it out.  They try rates from 0.05 to 1, and have 0.5 as optimism.  On any sequence with |s| <= B the sum
    of the errors is at most (2 B + (1 + optimism) largest step) (1 / step_1 + sum of |1 / step_t - 1 / step_t-1|) from
    the first step above 0 on.  The state is of constant size: `window` scores for each level.

    Reference: "Distribution-informed online conformal prediction", ICLR 2026, arXiv:2512.07770; the constants are from
    the authors' code.

    >>> import orcast as oc
    >>> from orcast.baselines import OptimisticTracking
    >>> cop = OptimisticTracking(0, 10, levels=[0.25, 0.75], window=2)
    >>> for y in (6.0, 8.0):                                       # two scores are 2 apart; both were above
    ...     p = cop.predict(oc.Normal(5, 0)); cop.update(y)
    >>> cop.offset.round(6).tolist()                               # as tracked, 0.05 and 0.15, and half a step more
    [0.075, 0.225]
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
        self.rate = number(rate, "rate", 0.0, 1e12)
        self.optimism = number(optimism, "optimism", 0.0, 1e12)
        self._track = np.zeros_like(self._offset)
        self._scores = RecentScores(window, self._offset.size)

    @property
    def window(self) -> int:
        """Rounds whose scores are the empirical distribution."""
        return self._scores.window

    def _moved(self, scores: Array, error: Array) -> Array:
        recent = self._scores.add(scores)
        step = self.rate * range_of(recent)
        self._track = self._track + step * error
        if len(recent) < self.window:
            return self._track.copy()
        below: Array = np.count_nonzero(recent <= self._track, axis=0) / self.window
        return self._track + self.optimism * step * (self._quantity.levels - below)

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}, optimism={self.optimism:g}, window={self.window}"
