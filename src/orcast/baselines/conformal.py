"""Conformal levels: the expert is asked at a level that follows its errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.quantity import Array, QuantityBaseline
from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces.base import whole
from orcast.validation import number

# The rates of a mixture, from nearly still to nimble.
_RATES = tuple(0.001 * 2.0**k for k in range(8))


class ConformalLevels(QuantityBaseline):
    """Adaptive conformal inference (Gibbs and Candes, 2021), for each level by itself.

    The expert is asked at alpha_a for the quantile at level a:

        alpha_a <- alpha_a + rate (a - 1{PIT <= alpha_a})

    from alpha_a = a on.  Where the expert has no atom at y the indicator is 1{y <= expert's quantile at alpha_a}.
    Beyond [0, 1], where no PIT lies, the bounds are issued, so alpha_a stays in [-rate, 1 + rate] and

        |frequency of PIT <= alpha_a  -  a|  <=  (max(a, 1 - a) + rate) / (rate T)

    on any sequence.  Where the expert is much too narrow, or far off, alpha_a passes 0 or 1 again and again, and
    generous bounds are then a dear answer.  Quantiles at different levels may cross by about one step; they are sorted
    before they are issued, and each level goes on by its own.  The state is of constant size.

    Reference: "Adaptive conformal inference under distribution shift", NeurIPS 2021.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalLevels
    >>> aci = ConformalLevels(0, 10, levels=[0.25, 0.75], rate=0.1)
    >>> p = aci.predict(oc.Normal(5, 1)); aci.update(5.5)        # below the upper quartile, above the lower
    >>> aci.asked.round(3).tolist()
    [0.275, 0.725]
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, rate: float = 0.005) -> None:
        super().__init__(low, high, levels)
        self.rate = number(rate, "rate", 1e-12, 1e12)
        self._asked = self._quantity.levels.copy()

    @property
    def asked(self) -> Array:
        """At which level the expert is asked for each of the levels, now."""
        return self._asked.copy()

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(self._quantity.quantile(row, self._asked))

    def _now(self) -> Array:
        return self._asked.copy()

    def _learn(self, row: Array, y: float, then: Array) -> None:
        pit = self._quantity.pit(row, y)
        self._asked += self.rate * (self._quantity.levels - (pit <= then))

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}"


class ConformalMixture(QuantityBaseline):
    """Adaptive conformal inference with several rates at once, the better of late counting more (DtACI).

    For each level a, and each rate r_i, alpha_i follows `ConformalLevels`; the expert is asked at their weighted
    mean.  The weights fall with the pinball loss of alpha_i as a forecast of the PIT, and are mixed a little, so that
    none is lost for good:

        w_i <- (1 - s) w_i exp(-eta pinball_a(alpha_i, PIT)) / W + s / K,    W the sum of the numerators,  s = 1 / (2 I)

    K rates, I = `horizon` rounds over which the best rate may stay the same, and eta as the authors take it, which
    for uniform PITs comes to sqrt(3 (log(K I) + 2) / I) / (a (1 - a)).  Quantiles are sorted before they are issued.
    The state is of constant size.

    Reference: Gibbs and Candes (2024), "Conformal inference for online prediction with arbitrary distribution shifts",
    JMLR 25.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalMixture
    >>> mix = ConformalMixture(0, 10, levels=[0.25, 0.75])
    >>> for _ in range(500):                                      # the expert is too low
    ...     p = mix.predict(oc.Normal(4, 1)); mix.update(5)
    >>> mix.predict(oc.Normal(4, 1)).quantile([0.25, 0.75]).round(1).tolist()
    [5.0, 5.0]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rates: ArrayLike = _RATES,
        horizon: int = 100,
    ) -> None:
        super().__init__(low, high, levels)
        several = np.ravel(np.asarray(rates, dtype=object)).tolist()
        self.rates = tuple(number(rate, "rate", 1e-12, 1e12) for rate in several)
        if not self.rates:
            raise ValueError("expected at least one rate, got none")
        self.horizon = whole(horizon, "rounds as horizon", 1, 10**9)
        a, k = self._quantity.levels, len(self.rates)
        self._eta = math.sqrt(3.0 * (math.log(k * self.horizon) + 2.0) / self.horizon) / (a * (1.0 - a))
        self._alphas = np.tile(a, (k, 1))
        self._weights = np.full((k, a.size), 1.0 / k)

    @property
    def asked(self) -> Array:
        """At which level the expert is asked for each of the levels, now."""
        return np.asarray((self._weights * self._alphas).sum(axis=0))

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(self._quantity.quantile(row, self.asked))

    def _now(self) -> Array:
        return self._alphas.copy()

    def _learn(self, row: Array, y: float, then: Array) -> None:
        pit = self._quantity.pit(row, y)
        a = self._quantity.levels
        e = pit - then
        loss = self._eta * np.maximum(a * e, (a - 1.0) * e)
        weights = self._weights * np.exp(loss.min(axis=0) - loss)
        mixed = 0.5 / self.horizon
        self._weights = (1.0 - mixed) * weights / weights.sum(axis=0) + mixed / len(self.rates)
        self._alphas += np.array(self.rates)[:, None] * (a - (pit <= then))

    def _described(self) -> str:
        return f"{self.levels.size} levels, {len(self.rates)} rates, horizon={self.horizon}"
