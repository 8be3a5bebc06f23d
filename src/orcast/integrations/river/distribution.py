"""A forecast in River's own form, and River's distributions as forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
from river import compose, conf, proba

from orcast.adapters import Normal
from orcast.forecasts import Forecast
from orcast.integrations.common import has_parameter


class RiverDistribution(proba.base.ContinuousDistribution):
    """A forecast as River's distributions are: when called, the density; ``cdf``, ``mode``, ``mu``, ``sigma``.

    ``forecast`` is the :class:`orcast.Forecast` itself, with all its methods; ``n_samples`` is how many outcomes it was
    calibrated on.

    >>> import orcast as oc
    >>> p = RiverDistribution(oc.Forecast([0, 1], [1, 3], [0.5, 0.5]), seed=1)
    >>> p(0.5), p.cdf(1), p.mu, p.mode, 0 < p.sample() < 3
    (0.5, 0.5, 1.25, 0.5, True)
    """

    def __init__(self, forecast: Forecast, n_samples: int = 0, seed: int | None = None) -> None:
        super().__init__(seed)
        self.forecast = forecast
        self._n_samples = n_samples

    @property
    def n_samples(self) -> int:
        """How many outcomes the forecast was calibrated on."""
        return self._n_samples

    @property
    def mu(self) -> float:
        """The mean."""
        return self.forecast.mean()

    @property
    def sigma(self) -> float:
        """The spread of the nearest normal: the tails are made for surprises, and would widen a plain deviation."""
        return self.forecast.to_normal()[1]

    @property
    def mode(self) -> float:
        """An atom that holds more than any cell does, else the middle of the cell where the density is largest."""
        p = self.forecast
        width = p.right - p.left
        heaviest = int(p.mass.argmax())
        if width[heaviest] == 0.0:
            return float(p.left[heaviest])
        bounded = (width > 0.0) & np.isfinite(width)
        density = np.divide(p.mass, width, out=np.zeros_like(width), where=bounded)
        k = int(density.argmax())
        return 0.5 * float(p.left[k] + p.right[k])

    def __call__(self, x: float) -> float:
        """The density at x."""
        return float(self.forecast.pdf(x))

    def cdf(self, x: float) -> float:
        """P(outcome <= x)."""
        return float(self.forecast.cdf(x))

    def ppf(self, levels: Any) -> Any:
        """Quantiles at levels, a float for a number and an array for an array."""
        return self.forecast.quantile(levels)

    def sample(self) -> float:
        """A random draw, by the generator of ``seed``."""
        return float(self.forecast.quantile(self._rng.random()))

    def update(self, x: float) -> None:
        """Not for a forecast that was issued."""
        raise NotImplementedError("expected a forecast to stay as it was issued, got an update")

    def revert(self, x: float) -> None:
        """Not for a forecast that was issued."""
        raise NotImplementedError("expected a forecast to stay as it was issued, got a revert")

    def __repr__(self) -> str:
        return repr(self.forecast)


def has_distributions(model: Any) -> bool:
    """Whether ``predict_one`` has River's option ``with_dist``; of a pipeline its last step's."""
    while isinstance(model, compose.Pipeline):
        model = list(model.steps.values())[-1]
    return has_parameter(model.predict_one, "with_dist")


def as_forecast(distribution: Any) -> object:
    """A distribution of River's as a forecast: Gaussian if it has ``mu`` and ``sigma``, else by ``ppf`` or ``cdf``."""
    mu, sigma = getattr(distribution, "mu", None), getattr(distribution, "sigma", None)
    if hasattr(distribution, "ppf") or not (isinstance(mu, (int, float)) and isinstance(sigma, (int, float))):
        return distribution
    return Normal(mu, sigma)


def as_answer(p: Forecast, rounds: int, level: float, with_dist: bool, with_interval: bool) -> Any:
    """A forecast as a distribution, an interval or its mean."""
    if with_dist:
        if with_interval:
            raise ValueError("expected with_dist or with_interval, got both")
        return RiverDistribution(p, rounds)
    return conf.Interval(*p.interval(level)) if with_interval else p.mean()
