"""Any forecaster of River's time series, recalibrated at each step ahead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from river import base, time_series

from orcast.engine import Oracle
from orcast.forecasts import Forecast
from orcast.game import Forecaster
from orcast.integrations.common import FeatureReader, space_of
from orcast.integrations.river.distribution import shown
from orcast.integrations.river.pending import able, game_of
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.residuals import Residuals
from orcast.validation import number, short


class _StepGame:
    """The game of one step ahead: rounds by the time they are about, and the points they were made around."""

    __slots__ = ("game", "points", "residuals")

    def __init__(self, game: Forecaster, residuals: Residuals) -> None:
        self.game, self.residuals = game, residuals
        self.points: dict[int, float] = {}


class RiverForecaster(base.Wrapper[time_series.base.Forecaster], time_series.base.Forecaster):
    """A forecaster around any forecaster of River's, calibrated at each step ahead by itself.

    ``forecast(horizon)`` gives the means, with ``with_dist=True`` the distributions, with ``with_interval=True``
    intervals at the ``confidence_level``.  It issues one round for each step ahead, in a game of the step's own, and
    ``learn_one(y)`` settles all rounds that were about this outcome.  A new forecast replaces an older one that was
    made at the same time.  Where no forecast was asked for since the last outcome, ``learn_one`` makes one by itself,
    ``horizon`` steps ahead (one step if there are features, since those of later steps are not known), as soon as the
    model can: so a history that is only learnt from counts too.

    The spread of a step comes from the last ``window`` known errors of this step, as in :class:`Recalibrated`; ``xs``
    are the features that the model and the payoff's context see.

    >>> from river import datasets, time_series
    >>> model = RiverForecaster(time_series.HoltWinters(0.3, 0.1, 0.6, 12, True), low=0, horizon=12)
    >>> for x, y in datasets.AirlinePassengers():
    ...     model.learn_one(y)
    >>> [round(y) for y in model.forecast(3)]
    [446, 420, 467]
    >>> bands = model.forecast(12, with_interval=True)
    >>> bands[11].width > bands[0].width, model.guarantee(12).rounds
    (True, 121)
    """

    def __init__(
        self,
        model: time_series.base.Forecaster,
        low: float | None = None,
        high: float | None = None,
        *,
        horizon: int = 1,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        outside: str = "raise",
        confidence_level: float = 0.95,
        window: int = 100,
    ) -> None:
        self.model = able(model, "learn_one", "forecast", what="forecaster")
        self.low, self.high, self.horizon = low, high, _steps(horizon)
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self._space = space_of(low, high)
        self._steps: list[_StepGame] = []
        self._time = 0
        self._asked = False
        self._step(1)
        self._features = FeatureReader(payoff) or None

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": time_series.SNARIMAX(p=1, d=0, q=0), "horizon": 3, "low": -1000, "high": 1000}

    def guarantee(self, step: int = 1) -> Guarantee:
        """What was promised and what was kept, so far, of forecasts so many steps ahead."""
        if not 1 <= step <= len(self._steps):
            raise ValueError(f"expected a step ahead from 1 to {len(self._steps)}, got {short(step)}")
        return self._steps[step - 1].game.guarantee

    @property
    def pending(self) -> int:
        """How many rounds wait for their outcome, over all steps ahead."""
        return sum(len(step.points) for step in self._steps)

    def forecast(
        self,
        horizon: int,
        xs: list[dict[base.typing.FeatureName, Any]] | None = None,
        *,
        with_dist: bool = False,
        with_interval: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """The mean of the calibrated forecast at each step ahead, or the distribution, or an interval."""
        rounds = self._issue(self.model.forecast(horizon=_steps(horizon), xs=xs, **kwargs), xs)
        self._asked = True
        return [
            shown(p, step.game.guarantee.rounds if with_dist else 0, self.confidence_level, with_dist, with_interval)
            for p, step in zip(rounds, self._steps, strict=False)
        ]

    def learn_one(self, y: float, x: dict[base.typing.FeatureName, Any] | None = None, **kwargs: Any) -> None:
        """Score every forecast that was issued for this outcome, and teach the model."""
        outcome = self._space.outcome(y, self.outside)
        if not self._asked:
            self._issue_unasked(x)
        self.model.learn_one(y=y, x=x, **kwargs)
        for step in self._steps:
            point = step.points.pop(self._time, None)
            if point is not None:
                step.game.update(outcome, id=self._time)
                step.residuals.add(outcome - point)
        self._time += 1
        self._asked = False

    def _issue_unasked(self, x: Any) -> None:
        horizon, xs = (self.horizon, None) if x is None else (1, [x])
        try:
            points = self.model.forecast(horizon=horizon, xs=xs)
        except (ArithmeticError, LookupError, ValueError):
            return  # a model that has not seen enough to forecast: Holt and Winters' looks for its level
        if all(map(math.isfinite, points)):
            self._issue(points, xs)

    def _issue(self, points: Sequence[float], xs: Sequence[Any] | None) -> list[Forecast]:
        told = []
        usual = None
        for ahead, point in enumerate(points, start=1):
            step = self._step(ahead)
            # a step without errors of its own is at least as wide as the one before it
            told.append(step.residuals.around(point, self._space, None if len(step.residuals) else usual))
            usual = told[-1].sd
        issued = []
        for ahead, forecast in enumerate(told):
            step, about = self._steps[ahead], self._time + ahead
            if step.points.pop(about, None) is not None:
                step.game.drop(about)
            features = self._features and xs and self._features.of(xs[ahead])
            issued.append(step.game.predict(forecast, x=features, id=about))
            step.points[about] = forecast.mean
        return issued

    def _step(self, ahead: int) -> _StepGame:
        """The game of a step ahead; a farther one is begun when it is first asked for."""
        while len(self._steps) < ahead:
            most = len(self._steps) + 1
            game = game_of(self._space, self.payoff, self.oracle, self.memory, self.outside, most)
            self._steps.append(_StepGame(game, Residuals(self.window)))
        return self._steps[ahead - 1]


def _steps(horizon: object) -> int:
    if isinstance(horizon, bool) or not isinstance(horizon, (int, np.integer)) or horizon < 1:
        raise ValueError(f"expected a horizon of at least 1 step, got {short(horizon)}")
    return int(horizon)
