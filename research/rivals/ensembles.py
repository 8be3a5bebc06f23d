"""Rivals for ensembles: regression of the outcome on the mean and variance of the ensemble."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize
from scipy.special import ndtr

from orcast.adapters import Ensemble
from orcast.forecasts import Forecast
from orcast.spaces import normal_scores
from research.rivals.base import Array, QuantityRival

Whole = NDArray[np.signedinteger[Any]]

_FEWEST = 20  # outcomes before the first fit; until then the base forecast is issued
_NARROW = 1e-8  # least c, in units of the mean squared error


class _Given(NamedTuple):
    """Percents, mean and variance of a base forecast."""

    row: Array
    mean: float
    variance: float


class _Regression(QuantityRival):
    """Regression on the last `window` rounds with known outcomes, fitted again every `every` outcomes."""

    def __init__(self, low: float, high: float, *, window: int, every: int) -> None:
        super().__init__(low, high)
        self.every = every
        self.fitted = False
        self.past: deque[tuple[float, float, float]] = deque(maxlen=window)  # mean, variance, outcome
        self._since = 0

    def _read(self, forecast: object) -> _Given:
        row = super()._read(forecast)
        values = self.quantity.within_reach(forecast.members) if isinstance(forecast, Ensemble) else row
        return _Given(row, float(values.mean()), float(values.var()))

    def _issue(self, given: _Given) -> Forecast:
        q = self.quantity
        return q.on_grid(self._regressed(given) if self.fitted else q.quantile(given.row, q.grid))

    def _observe(self, given: _Given, then: None, y: float) -> None:
        self.past.append((given.mean, given.variance, y))
        self._since += 1
        if len(self.past) >= _FEWEST and (self._since >= self.every or not self.fitted):
            self._fit(*np.array(self.past).T)
            self.fitted, self._since = True, 0

    @abstractmethod
    def _fit(self, mean: Array, variance: Array, y: Array) -> None:
        """Fit to the past."""

    @abstractmethod
    def _regressed(self, given: _Given) -> Array:
        """Return quantiles at the levels of the grid."""


class EMOS(_Regression):
    """Nonhomogeneous Gaussian regression on a rolling window, by minimum CRPS.

        y ~ N(a + b mean, c + d variance),    c, d >= 0

    mean and variance of the members of an ensemble, or of the percents of any other base forecast.  a, b, c and d
    minimise the mean CRPS over the last `window` rounds with known outcomes,

        CRPS(N(m, s^2), y) = s (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)),    z = (y - m) / s

    from the last fit on, every `every` outcomes.  Before 20 outcomes the base forecast is issued.

    Reference: Gneiting, Raftery, Westveld and Goldman (2005), "Calibrated probabilistic forecasting using ensemble
    model output statistics and minimum CRPS estimation", Monthly Weather Review 133.
    """

    def __init__(self, low: float, high: float, *, window: int = 200, every: int = 10) -> None:
        super().__init__(low, high, window=window, every=every)
        self.parameters = (0.0, 1.0, 0.0, 1.0)  # a, b, c and d

    def _regressed(self, given: _Given) -> Array:
        a, b, c, d = self.parameters
        spread = math.sqrt(c + d * given.variance)
        return np.asarray(a + b * given.mean + spread * normal_scores(self.quantity.grid))

    def _fit(self, mean: Array, variance: Array, y: Array) -> None:
        """Fit in units in which means, variances and errors are of size 1."""
        least = 1e-9 * (self.quantity.high - self.quantity.low)
        centre, width = float(mean.mean()), max(float(mean.std()), least)
        unit = max(math.sqrt(float(np.mean((y - mean) ** 2))), least)
        typical = max(float(variance.mean()), least**2)
        if not self.fitted:
            self.parameters = float(np.mean(y - mean)), 1.0, 0.5 * unit**2, 0.5 * unit**2 / typical
        a, b, c, d = self.parameters
        start = ((a + b * centre - centre) / unit, b * width / unit, c / unit**2, d * typical / unit**2)
        found = least_crps(start, (mean - centre) / width, variance / typical, (y - centre) / unit)
        b = found[1] * unit / width if width > least else b
        a = found[0] * unit + centre - b * centre
        self.parameters = a, b, found[2] * unit**2, found[3] * unit**2 / typical


def least_crps(start: tuple[float, ...], mean: Array, variance: Array, y: Array) -> tuple[float, ...]:
    """a, b, c and d that minimise the mean CRPS."""
    bounds = [(None, None), (None, None), (_NARROW, None), (0.0, None)]
    options = {"ftol": 1e-10, "gtol": 1e-8}
    found = minimize(mean_crps, start, (mean, variance, y), "L-BFGS-B", jac=True, bounds=bounds, options=options)
    return tuple(found.x.tolist())


def mean_crps(parameters: Array, mean: Array, variance: Array, y: Array) -> tuple[float, Array]:
    """Mean CRPS of N(a + b mean, c + d variance), and its gradient."""
    a, b, c, d = parameters.tolist()
    s = np.sqrt(c + d * variance)
    z = (y - a - b * mean) / s
    tilt = 2.0 * ndtr(z) - 1.0
    density = np.exp(-0.5 * z * z) * (2.0 / math.sqrt(2.0 * math.pi)) - 1.0 / math.sqrt(math.pi)
    by_variance = 0.5 * density / s
    gradient = np.array([-tilt.sum(), -(tilt @ mean), by_variance.sum(), by_variance @ variance]) / y.size
    return float(s @ (z * tilt + density)) / y.size, gradient


class IDR(_Regression):
    """Isotonic distributional regression on the mean of the base forecast.

        F(z | m) = the decreasing function of m with the least sum of (1{y_t <= z} - F(z | m_t))^2,  for each z

    over the last `window` rounds with known outcomes: the higher the mean, the higher each quantile.  Between past
    means F is linear in m, and constant beyond them.  It is fitted again every `every` outcomes.  Before 20 outcomes
    the base forecast is issued.

    Reference: Henzi, Ziegel and Gneiting (2021), "Isotonic distributional regression", JRSS B 83.
    """

    def __init__(self, low: float, high: float, *, window: int = 500, every: int = 25) -> None:
        super().__init__(low, high, window=window, every=every)
        self._means: list[float] = []
        self._thresholds = np.empty(0)
        self._table = np.empty((0, 0))

    def _regressed(self, given: _Given) -> Array:
        means, m = self._means, given.mean
        k = bisect_right(means, m)
        below, above = max(k - 1, 0), min(k, len(means) - 1)
        share = 0.0 if k in (0, len(means)) else (m - means[below]) / (means[above] - means[below])
        reached = (1.0 - share) * self._table[below] + share * self._table[above]
        place = np.searchsorted(reached, self.quantity.grid - 1e-12)
        return np.asarray(self._thresholds[np.minimum(place, reached.size - 1)])

    def _fit(self, mean: Array, variance: Array, y: Array) -> None:
        means, places, counts = np.unique(mean, return_inverse=True, return_counts=True)
        self._means = means.tolist()
        self._thresholds, self._table = isotonic_distributions(places, counts, y)


def isotonic_distributions(places: Whole, counts: Whole, y: Array) -> tuple[Array, Array]:
    """Thresholds, and the fitted F at each place (a row) and threshold (a column).

    The outcome y_t belongs to one of the ordered places, each with `counts` outcomes.
    """
    thresholds, which = np.unique(y, return_inverse=True)
    reached = np.zeros((counts.size, thresholds.size))
    np.add.at(reached, (places, which), 1.0)
    shares = np.cumsum(reached, axis=1) / counts[:, None]
    fits = [isotonic_regression(column, weights=counts, increasing=False).x for column in shares.T]
    return thresholds, np.stack(fits, axis=1)
