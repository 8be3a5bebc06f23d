"""Proper scoring rules: smaller is better, and the truth expects to do best."""

from __future__ import annotations

from dataclasses import dataclass

from orcast.forecasts import Forecast


@dataclass(frozen=True)
class CRPS:
    """Continuous ranked probability score, the integral of (F(z) - 1{z >= y})^2 (Gneiting and Raftery 2007).

    >>> import orcast as oc
    >>> oc.CRPS()(oc.Forecast([0.0], [1.0], [1.0]), 0.5)
    0.08333333333333333
    """

    name = "crps"

    def __call__(self, forecast: Forecast, y: float) -> float:
        """The score of one forecast."""
        return forecast.crps(y)


@dataclass(frozen=True)
class MSE:
    """Squared error of the mean, (E[y'] - y)^2.

    >>> import orcast as oc
    >>> oc.MSE()(oc.Forecast([0.0], [1.0], [1.0]), 1.0)
    0.25
    """

    name = "mse"

    def __call__(self, forecast: Forecast, y: float) -> float:
        """The score of one forecast."""
        return (forecast.mean() - y) ** 2
