"""Rivals for ensembles: regression of the outcome on the mean and variance of the ensemble."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from orcast.adapters import Ensemble
from orcast.forecasts import Forecast
from orcast.spaces import normal_scores
from research.rivals.base import Array, QuantityRival

Whole = NDArray[np.signedinteger[Any]]

_FEWEST = 20  # outcomes before the first fit; until then the base forecast is issued
# minimum CRPS: the least c, in units of the mean squared error, and the most steps of a fit
_NARROW, _STEPS = 1e-8, 50


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

    by scoring steps (Newton steps with the expected curvature) from the last fit on, every `every` outcomes.  Before 20
    outcomes the base forecast is issued.

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
    """a, b, c and d that minimise the mean CRPS, by scoring steps, halved until the loss falls."""
    at = np.maximum(start, [-np.inf, -np.inf, _NARROW, 0.0])
    loss, gradient, curvature = mean_crps(at, mean, variance, y)
    for _ in range(_STEPS):
        step = np.concatenate((_solved(curvature[:3], gradient[:2]), _kept_above(at[2:], curvature[3:], gradient[2:])))
        slope = float(step @ gradient)
        share = 1.0
        while share > 1e-6:
            further = mean_crps(at + share * step, mean, variance, y)
            if further[0] <= loss + 0.1 * share * slope:
                break
            share *= 0.5
        else:
            break
        gain = loss - further[0]
        at, (loss, gradient, curvature) = at + share * step, further
        if gain <= 1e-9 * loss:
            break
    return tuple(at.tolist())


def mean_crps(parameters: Array, mean: Array, variance: Array, y: Array) -> tuple[float, Array, list[float]]:
    """Mean CRPS of N(a + b mean, c + d variance), its gradient, and its expected curvature.

    The curvature is 1 / (s sqrt(pi)) in the centre, 1 / (8 s^3 sqrt(pi)) in the variance and 0 across; the entries
    (1, 1), (1, 2), (2, 2) for a and b, then those for c and d.
    """
    a, b, c, d = parameters.tolist()
    s = np.sqrt(c + d * variance)
    z = (y - a - b * mean) / s
    tilt = 2.0 * ndtr(z) - 1.0
    density = np.exp(-0.5 * z * z) * (2.0 / math.sqrt(2.0 * math.pi)) - 1.0 / math.sqrt(math.pi)
    by_variance = 0.5 * density / s
    n = y.size
    loss = float(s @ (z * tilt + density)) / n
    gradient = np.array([-tilt.sum(), -(tilt @ mean), by_variance.sum(), by_variance @ variance]) / n
    centre = 1.0 / (n * math.sqrt(math.pi) * s)
    spread = 0.125 * centre / (s * s)
    curvature = [float(k @ x**power) for k, x in ((centre, mean), (spread, variance)) for power in (0, 1, 2)]
    return loss, gradient, curvature


def _solved(curvature: list[float], gradient: Array) -> Array:
    """Newton step of two coefficients, slightly regularised."""
    p, q, r = curvature
    r += 1e-9 * p
    e, f = gradient.tolist()
    return np.array([q * f - r * e, q * e - p * f]) / (p * r - q * q)


def _kept_above(at: Array, curvature: list[float], gradient: Array) -> Array:
    """Newton step of c and d to the best point where neither is below its least value."""
    free = _solved(curvature, gradient)
    least = np.array([_NARROW, 0.0]) - at
    if (free >= least).all():
        return free
    p, q, r = curvature
    e, f = gradient.tolist()
    u, v = least.tolist()
    ends = [(u, max(v, -(f + q * u) / max(r, 1e-300))), (max(u, -(e + q * v) / p), v)]
    models = [e * x + f * y + 0.5 * p * x * x + q * x * y + 0.5 * r * y * y for x, y in ends]
    return np.array(ends[models.index(min(models))])


class IDR(_Regression):
    """Isotonic distributional regression on the mean of the base forecast.

        F(z | m) = the decreasing function of m with the least sum of (1{y_t <= z} - F(z | m_t))^2,  for each z

    over the last `window` rounds with known outcomes: the higher the mean, the higher each quantile.  Between past
    means F is linear in m, and constant beyond them.  It is fitted again every `every` outcomes, one threshold after
    the other (Henzi, Moesching and Duembgen, 2022).  Before 20 outcomes the base forecast is issued.

    References: Henzi, Ziegel and Gneiting (2021), "Isotonic distributional regression", JRSS B 83; Henzi, Moesching
    and Duembgen (2022), "Accelerating the pool-adjacent-violators algorithm for isotonic distributional regression",
    Methodology and Computing in Applied Probability 24.
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

    The outcome y_t belongs to one of the ordered places, each with `counts` outcomes.  From one threshold to the next
    one indicator becomes 1.  In the block of its place, what precedes it stays pooled with it, what follows is fitted
    again, and blocks before it are pooled as far as needed; blocks after it stay.
    """
    weights = counts.tolist()
    ups = [0] * len(weights)
    # blocks of places: where each ends, its number of outcomes, and the sum of their indicators
    ends, sizes, reached = [len(weights)], [len(y)], [0]
    order = np.argsort(y, kind="stable")
    last = np.flatnonzero(np.diff(y[order], append=np.inf))
    table = np.empty((len(weights), last.size))
    column = 0
    for t, place in enumerate(places[order].tolist()):
        ups[place] += 1
        k = bisect_right(ends, place)
        stop, tail = ends[k], (ends[k + 1 :], sizes[k + 1 :], reached[k + 1 :])
        start = ends[k - 1] if k else 0
        del ends[k:], sizes[k:], reached[k:]
        size, up = sum(weights[start : place + 1]), sum(ups[start : place + 1])
        for end in range(place + 1, stop + 1):
            while ends and reached[-1] * size <= up * sizes[-1]:
                size, up = size + sizes.pop(), up + reached.pop()
                ends.pop()
            ends.append(end)
            sizes.append(size)
            reached.append(up)
            if end < stop:
                size, up = weights[end], ups[end]
        for kept, rest in zip((ends, sizes, reached), tail, strict=True):
            kept.extend(rest)
        if t == last[column]:
            lengths = np.diff(ends, prepend=0)
            table[:, column] = np.repeat(np.divide(reached, sizes), lengths)
            column += 1
    return y[order][last], table
