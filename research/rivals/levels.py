"""Rivals that evaluate the base forecast at adapted levels: ACI, DtACI and calibrated regression."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from research.rivals.base import Array, QuantityRival

RATES = tuple(0.001 * 2.0**k for k in range(8))


class ACI(QuantityRival):
    """Adaptive conformal inference (Gibbs and Candes, 2021), each level by itself.

    The quantile at level a is the base forecast's quantile at alpha_a, which starts at a:

        alpha_a <- alpha_a + rate (a - 1{PIT <= alpha_a})

    Beyond [0, 1], where no PIT lies, the bounds are issued, so alpha_a stays in [-rate, 1 + rate] and on any sequence

        |frequency of PIT <= alpha_a  -  a|  <=  (max(a, 1 - a) + rate) / (rate T)

    Quantiles that cross are sorted before they are issued; each level continues by itself.

    Reference: "Adaptive conformal inference under distribution shift", NeurIPS 2021.
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, rate: float = 0.005) -> None:
        super().__init__(low, high, levels)
        self.rate = rate
        self.alpha = self.levels.copy()

    def _issue(self, row: Array) -> Forecast:
        return self.quantity.issue(self.quantity.quantile(row, self.alpha))

    def _snapshot(self) -> Array:
        return self.alpha

    def _observe(self, row: Array, then: Array, y: float) -> None:
        self.alpha = self.alpha + self.rate * (self.levels - (self.quantity.pit(row, y) <= then))


class DtACI(QuantityRival):
    """Dynamically tuned adaptive conformal inference: ACI with several rates, weighted by recent losses.

    For each level a, and each rate r_i, alpha_i follows ACI; the base forecast is evaluated at their weighted mean.
    Weights fall with the pinball loss of alpha_i as a forecast of the PIT, and are mixed so that all stay positive:

        w_i <- (1 - s) w_i exp(-eta pinball_a(alpha_i, PIT)) / W + s / K,    W the sum of the numerators,  s = 1 / (2 I)

    with K rates and I = `horizon` rounds over which the best rate may stay the same.  The authors' eta is, for uniform
    PITs, sqrt(3 (log(K I) + 2) / I) / (a (1 - a)).  Quantiles are sorted before they are issued.

    Reference: Gibbs and Candes (2024), "Conformal inference for online prediction with arbitrary distribution shifts",
    JMLR 25.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rates: tuple[float, ...] = RATES,
        horizon: int = 100,
    ) -> None:
        super().__init__(low, high, levels)
        self.rates, self.horizon = np.array(rates)[:, None], horizon
        a, k = self.levels, len(rates)
        self._eta = math.sqrt(3.0 * (math.log(k * horizon) + 2.0) / horizon) / (a * (1.0 - a))
        self.alphas = np.tile(a, (k, 1))
        self.weights = np.full((k, a.size), 1.0 / k)

    @property
    def alpha(self) -> Array:
        """Weighted mean of the alphas at each level."""
        return np.asarray((self.weights * self.alphas).sum(axis=0))

    def _issue(self, row: Array) -> Forecast:
        return self.quantity.issue(self.quantity.quantile(row, self.alpha))

    def _snapshot(self) -> Array:
        return self.alphas

    def _observe(self, row: Array, then: Array, y: float) -> None:
        pit, a = self.quantity.pit(row, y), self.levels
        e = pit - then
        loss = self._eta * np.maximum(a * e, (a - 1.0) * e)
        weights = self.weights * np.exp(loss.min(axis=0) - loss)
        mixed = 0.5 / self.horizon
        self.weights = (1.0 - mixed) * weights / weights.sum(axis=0) + mixed / len(self.rates)
        self.alphas = self.alphas + self.rates * (a - (pit <= then))


class CalibratedRegression(QuantityRival):
    """Isotonic recalibration (Kuleshov, Fenner and Ermon, 2018), refitted after each outcome.

    An isotonic regression R of the frequency of PITs at or below each past PIT, inverted:

        R(PIT_t) ~ #{s: PIT_s <= PIT_t} / n,    quantile at a = base forecast's quantile at R^-1(a)

    The frequencies already increase with the PITs, so R is the empirical distribution function, linear in between.  The
    k-th smallest PIT is at k / (n + 1) instead of k / n, since the next outcome may lie beyond all so far; (0, 0) and
    (1, 1) are the ends.  Without outcomes R is the identity.  `window` keeps only that many last PITs.

    Reference: "Accurate uncertainties for deep learning using calibrated regression", ICML 2018.
    """

    def __init__(self, low: float, high: float, *, window: int | None = None) -> None:
        super().__init__(low, high)
        self.window = window
        self.pits = array("d")  # sorted
        self._latest: deque[float] = deque()

    def _issue(self, row: Array) -> Forecast:
        return self.quantity.on_grid(self.quantity.quantile(row, self.inverse(self.quantity.grid)))

    def _observe(self, row: Array, then: None, y: float) -> None:
        pit = self.quantity.pit(row, y)
        insort(self.pits, pit)
        if self.window is not None:
            self._latest.append(pit)
            if len(self._latest) > self.window:
                del self.pits[bisect_left(self.pits, self._latest.popleft())]

    def inverse(self, levels: Array) -> Array:
        """R^-1 at the levels."""
        n = len(self.pits)
        if n == 0:
            return levels
        pits = np.frombuffer(self.pits)
        place = levels * (n + 1)
        k = np.minimum(place.astype(np.intp), n)
        below = np.where(k > 0, pits[np.maximum(k - 1, 0)], 0.0)
        above = np.where(k < n, pits[np.minimum(k, n - 1)], 1.0)
        return np.asarray(below + (place - k) * (above - below))
