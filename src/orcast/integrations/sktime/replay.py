"""The game of one step ahead, and a history that is played once more before a forecaster is served."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orcast.forecasts import Forecast
from orcast.integrations.common import HorizonGame, centre_and_spread
from orcast.recalibrator import Recalibrator


@dataclass
class PointRecord:
    """Sums of absolute errors of the calibrated means and of the forecaster's own points, over settled rounds."""

    calibrated: float = 0.0
    own: float = 0.0
    settled: int = 0

    @property
    def own_is_better(self) -> bool:
        """Whether the forecaster's own points were closer to the outcomes."""
        return self.own < self.calibrated


@dataclass
class StepGame:
    """The game of one step ahead, and which points came closer to the outcomes so far.

    >>> import orcast as oc
    >>> from orcast.residuals import Residuals
    >>> step = StepGame(HorizonGame(oc.Recalibrator(oc.Interval(0, 100)), Residuals(window=100)))
    >>> forecast = step.horizon.around(40.0)
    >>> step.keep(7, forecast, step.horizon.peek(forecast, None))
    >>> step.settle(7, 43.0)
    >>> step.points.own, step.points.settled
    (3.0, 1)
    """

    horizon: HorizonGame
    points: PointRecord = field(default_factory=PointRecord)
    issued: dict[int, tuple[float, float]] = field(default_factory=dict)  # means and own points of pending rounds

    @property
    def recalibrator(self) -> Recalibrator:
        """That of the game."""
        return self.horizon.recalibrator

    def answer(self, forecast: Any, features: Any) -> tuple[Forecast, float]:
        """A round as it would be issued now, and the point that goes with it; nothing is kept."""
        p: Forecast = self.horizon.preview(forecast, features)
        return p, self._own(forecast) if self.points.own_is_better else p.mean()

    def keep(self, time: int, forecast: Any, record: Any) -> None:
        """Keep a round that was played around a forecast, with its points."""
        self.horizon.keep(time, forecast, record)
        self.issued[time] = self.recalibrator.engine.forecast(record).mean(), self._own(forecast)

    def settle(self, time: int, outcome: float | None) -> None:
        """Record the outcome, in its canonical form, of a round; None if it will never come."""
        self.horizon.settle(time, outcome)
        mean, own = self.issued.pop(time)
        if outcome is not None:
            self.points.calibrated += abs(outcome - mean)
            self.points.own += abs(outcome - own)
            self.points.settled += 1

    def _own(self, forecast: Any) -> float:
        space: Any = self.recalibrator.space
        return float(min(max(centre_and_spread(forecast)[0], space.low), space.high))


@dataclass
class Replay:
    """Games by step, and the forecaster that taught them: how many rows it knows, and came since it was fitted."""

    games: dict[int, StepGame]
    forecaster: Any = None
    rows: int = 0
    age: int = 0
