"""Outcome-only forecaster, its correction of an expert, and a portfolio of both, after the package `skaters`.

The package (P. Cotton, github.com/microprediction/skaters) documents the ideas; this is an own, smaller implementation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from orcast.evaluate.metrics import pinball
from orcast.forecasts import Forecast
from research.rivals.base import Array, QuantityRival

_SMOOTHINGS = (0.02, 0.1, 0.3)
_LAGS = 3
_CANDIDATES = 3 + len(_SMOOTHINGS)  # last value, damped trend, regression, and the smoothings
_SCALE_RATE = 0.03  # of the exponentially weighted variance of errors
_MEMORY = 0.99  # of past likelihoods and losses
_WIDTHS = np.array([0.5, 1.0, 2.0])  # components of the predictive distribution, in deviations
_WIDTH_RATE = 0.02
_FEWEST = 5  # outcomes before the first own forecast
_KEPT = 4096  # values
_FAR = 7.0  # scores of PITs are clipped there
_GRID = np.linspace(-6.0, 6.0, 241)


class _Issued(NamedTuple):
    """Means and deviations of the candidates when a forecast was issued; None before the first own forecast."""

    means: Array | None
    deviations: Array | None


class Mixture:
    """Online forecaster of a sequence of values from the values alone.

    Candidates are the last value, a damped trend, a direct regression on three values (recursive least squares) and
    exponential smoothings.  Each has an exponentially weighted error variance.  Their weights are proportional to
    discounted likelihoods, and the predictive distribution is their mixture, each a mixture of three normal scales
    whose weights follow the posterior shares of past errors.
    """

    def __init__(self) -> None:
        self.values: list[float] = []
        self._origin, self._unit = 0.0, 1.0  # of the regression: the mean and the root mean square change at first
        self._smooth = np.zeros(len(_SMOOTHINGS))
        self._trend = 0.0
        self._w, self._p = np.zeros(_LAGS + 1), 10.0 * np.eye(_LAGS + 1)
        self._squares, self._counts = np.zeros((2, _CANDIDATES))
        self._logs = np.zeros(_CANDIDATES)
        self._shares = np.array([0.2, 0.6, 0.2])

    def issue(self, lead: int) -> _Issued:
        """Candidates for the value `lead` steps after the last one."""
        if len(self.values) < _FEWEST:
            return _Issued(None, None)
        last, damped = self.values[-1], 0.9 * (1.0 - 0.9**lead) / 0.1
        regressed = self._origin + self._unit * float(self._w @ self._features(0))
        means = np.array([last, last + damped * self._trend, regressed, *self._smooth])
        usual = max(float(np.mean(np.diff(self.values[-50:]) ** 2)), 1e-18)
        squares = (self._squares + usual) / (self._counts + 1.0)
        return _Issued(means, np.sqrt(squares))

    def _features(self, back: int) -> Array:
        stop = len(self.values) - back
        return np.array([1.0, *((v - self._origin) / self._unit for v in self.values[stop - _LAGS : stop])])

    def quantile(self, issued: _Issued, levels: Array) -> Array:
        """Quantiles of the mixture, by interpolation of its distribution function."""
        assert issued.means is not None
        assert issued.deviations is not None
        weights = np.exp(self._logs - self._logs.max())
        weights /= weights.sum()
        centre = float(weights @ issued.means)
        spread = math.sqrt(float(weights @ (issued.deviations**2 + (issued.means - centre) ** 2)))
        x = centre + 2.0 * spread * _GRID
        scales = issued.deviations[:, None] * _WIDTHS
        z = (x[:, None, None] - issued.means[:, None]) / scales
        cdf = np.einsum("xkw,k,w->x", ndtr(z), weights, self._shares)
        return np.asarray(np.interp(levels, cdf, x))

    def observe(self, issued: _Issued, y: float, lead: int) -> None:
        """Update weights by the forecasts that were issued for y, then the candidates by y."""
        if issued.means is not None and issued.deviations is not None:
            e = y - issued.means
            z = e[:, None] / (issued.deviations[:, None] * _WIDTHS)
            density = self._shares * np.exp(-0.5 * np.minimum(z * z, 700.0)) / _WIDTHS
            likelihood = density.sum(axis=1) + 1e-30
            self._logs = _MEMORY * self._logs + np.log(likelihood / issued.deviations)
            best = int(self._logs.argmax())
            if likelihood[best] > 1e-20:
                self._shares += _WIDTH_RATE * (density[best] / likelihood[best] - self._shares)
            keep = 1.0 - _SCALE_RATE
            self._squares = keep * self._squares + np.minimum(e * e, 100.0 * issued.deviations**2)
            self._counts = keep * self._counts + 1.0
        self._add(y, lead)

    def _add(self, y: float, lead: int) -> None:
        if len(self.values) >= _FEWEST + lead:
            x = self._features(lead - 1)
            px = self._p @ x
            gain = px / (0.998 + float(x @ px))
            self._w = self._w + gain * ((y - self._origin) / self._unit - float(self._w @ x))
            p = (self._p - np.outer(gain, px)) / 0.998
            self._p = p * min(1.0, 1e6 / float(np.trace(p)))
        if self.values:
            self._trend += 0.1 * (y - self.values[-1] - self._trend)
        rates = np.maximum(_SMOOTHINGS, 1.0 / (len(self.values) + 1.0))
        self._smooth = self._smooth + rates * (y - self._smooth)
        self.values.append(y)
        if len(self.values) == _FEWEST:
            self._origin = float(np.mean(self.values))
            self._unit = math.sqrt(float(np.mean(np.diff(self.values) ** 2))) or 1.0
        del self.values[: -_KEPT if len(self.values) > 2 * _KEPT else 0]


class Laplace(QuantityRival):
    """Forecasts from outcomes alone; the base forecast is issued until there are five of them.

    Reference: the forecaster `laplace` of the package `skaters`, a likelihood-weighted ensemble of simple forecasters.
    """

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        self.mixture = Mixture()

    def _lead(self) -> int:
        return len(self._pending) - (None in self._pending) + 1

    def _snapshot(self) -> tuple[_Issued, int]:
        return self.mixture.issue(self._lead()), self._lead()

    def _issue(self, row: Array) -> Forecast:
        return self.quantity.on_grid(self.quantiles(row, self._snapshot()[0]))

    def quantiles(self, row: Array, issued: _Issued) -> Array:
        """Quantiles at the levels of the grid."""
        grid = self.quantity.grid
        if issued.means is None:
            return self.quantity.quantile(row, grid)
        return self._own(row, self.mixture.quantile(issued, grid))

    def _own(self, row: Array, q: Array) -> Array:
        """Return the forecast from the quantiles of the mixture."""
        return q

    def _value(self, row: Array, y: float) -> float:
        """Return the value that the mixture observes."""
        return y

    def _observe(self, row: Array, then: Any, y: float) -> None:
        issued, lead = then
        self.mixture.observe(issued, self._value(row, y), lead)


class LaplaceCorrection(Laplace):
    """Correction of an expert: the forecaster runs on the normal scores of its PITs.

        z = Phi^-1(F(y)),    quantile at p = F^-1(Phi(H^-1(p))),    H the forecast of the next z

    Reference: the residual transform of the package `skaters`.
    """

    def _own(self, row: Array, q: Array) -> Array:
        return self.quantity.quantile(row, ndtr(np.clip(q, -_FAR, _FAR)))

    def _value(self, row: Array, y: float) -> float:
        return float(np.clip(ndtri(self.quantity.pit(row, y)), -_FAR, _FAR))


class LaplacePortfolio(QuantityRival):
    """Mean of the quantiles of both, with weights that fall exponentially with discounted pinball losses."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        self.parts = Laplace(low, high), LaplaceCorrection(low, high)
        self._losses = np.zeros(2)

    def _issue(self, row: Array) -> Forecast:
        then = self._snapshot()
        return self.quantity.on_grid(self._weights() @ self._both(row, then))

    def _weights(self) -> Array:
        total = self._losses.sum()
        shares = np.exp(-(self._losses - self._losses.min()) / total * 200.0) if total > 0.0 else np.ones(2)
        return np.asarray(shares / shares.sum())

    def _both(self, row: Array, then: Any) -> Array:
        pairs = zip(self.parts, then, strict=True)
        return np.array([part.quantiles(row, issued) for part, (issued, _) in pairs])

    def _snapshot(self) -> Any:
        lead = len(self._pending) - (None in self._pending) + 1
        return tuple((part.mixture.issue(lead), lead) for part in self.parts)

    def _observe(self, row: Array, then: Any, y: float) -> None:
        both = np.clip(self._both(row, then), self.quantity.low, self.quantity.high)
        self._losses = _MEMORY * self._losses + pinball(both, np.full(2, y), self.quantity.grid)
        for part, own in zip(self.parts, then, strict=True):
            part._observe(row, own, y)
