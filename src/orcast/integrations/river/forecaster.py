"""Any forecaster of River's time series, recalibrated at each step ahead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from river import base, time_series

from orcast.adapters import Normal
from orcast.engine import Oracle
from orcast.features import FeatureReader
from orcast.forecasts import Forecast
from orcast.integrations.common import HorizonGame, at_least_one, recalibrator_for
from orcast.integrations.river.distribution import as_answer
from orcast.integrations.river.pending import checked_model
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.payoffs import Payoff
from orcast.residuals import Residuals
from orcast.spaces import between
from orcast.validation import number, short


class RiverForecaster(Locked, base.Wrapper[time_series.base.Forecaster], time_series.base.Forecaster):
    """A forecaster around any forecaster of River's, calibrated at each step ahead by itself.

    ``forecast(horizon)`` gives the means, with ``with_dist=True`` the distributions, with ``with_interval=True``
    intervals at the ``confidence_level``.  It issues one round for each step ahead, in a game of the step's own, and
    ``learn_one(y)`` settles all rounds that were about this outcome.  A new forecast replaces an older one that was
    made at the same time.  Where no forecast was asked for since the last outcome, ``learn_one`` makes one by itself,
    ``horizon`` steps ahead (one step if there are features, since those of later steps are not known), as soon as the
    model can: so a history that is only learnt from counts too.

    The spread of a step comes from the last ``window`` known errors of this step, as in :class:`RiverRegressor`; ``xs``
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
        self.lock = GameLock()
        self.model = checked_model(model, "learn_one", "forecast", kind="forecaster")
        self.low, self.high, self.horizon = low, high, _checked_horizon(horizon)
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self._space = between(low, high)
        self._games: list[HorizonGame] = []
        self._time = 0
        self._asked = False
        self._game(1)  # refuses what does not fit
        self._features = FeatureReader(payoff)

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": time_series.SNARIMAX(p=1, d=0, q=0), "horizon": 3, "low": -1000, "high": 1000}

    @locked
    def guarantee(self, step: int = 1) -> Guarantee:
        """What was promised and what was kept, so far, of forecasts so many steps ahead."""
        if not 1 <= step <= len(self._games):
            raise ValueError(f"expected a step ahead from 1 to {len(self._games)}, got {short(step)}")
        return self._games[step - 1].recalibrator.guarantee

    @property
    @locked
    def pending(self) -> int:
        """How many rounds are pending, over all steps ahead."""
        return sum(len(game.times) for game in self._games)

    @locked
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
        forecasts = self._issue(self.model.forecast(horizon=_checked_horizon(horizon), xs=xs, **kwargs), xs)
        self._asked = True
        answers = []
        for p, game in zip(forecasts, self._games, strict=False):
            rounds = game.recalibrator.guarantee.rounds if with_dist else 0
            answers.append(as_answer(p, rounds, self.confidence_level, with_dist, with_interval))
        return answers

    @locked
    def learn_one(self, y: float, x: dict[base.typing.FeatureName, Any] | None = None, **kwargs: Any) -> None:
        """Settle every forecast that was issued for this outcome, and update the model."""
        outcome = self._space.outcome(y, self.outside)
        if not self._asked:
            self._issue_unasked(x)
        self.model.learn_one(y=y, x=x, **kwargs)
        for game in self._games:
            if self._time in game:
                game.settle(self._time, outcome)
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
        forecasts: list[Normal] = []
        for ahead, point in enumerate(points, start=1):
            game = self._game(ahead)
            # a step without errors of its own is at least as wide as the one before it
            game.first_spread = forecasts[-1].sd if forecasts else None
            forecasts.append(game.around(point))
        return [
            self._games[step].issue(self._time + step, forecast, self._features.of(xs[step]) if xs else None)
            for step, forecast in enumerate(forecasts)
        ]

    def _game(self, ahead: int) -> HorizonGame:
        """The game of a step ahead; a farther one is begun when it is first asked for."""
        while len(self._games) < ahead:
            recalibrator = recalibrator_for(self, space=self._space, max_pending=len(self._games) + 1)
            self._games.append(HorizonGame(recalibrator, Residuals(self.window)))
        return self._games[ahead - 1]


def _checked_horizon(horizon: object) -> int:
    return at_least_one(horizon, "a horizon of at least 1 step")
