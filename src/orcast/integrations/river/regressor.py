"""Any regressor of River's, recalibrated."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from river import base

from orcast.engine import Oracle
from orcast.integrations.common import at_least_one, recalibrator_for
from orcast.integrations.river.distribution import as_answer, as_forecast, has_distributions
from orcast.integrations.river.pending import PendingBook, checked_model
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.payoffs import Payoff
from orcast.residuals import Residuals
from orcast.validation import number


class RiverRegressor(Locked, base.Wrapper[base.Regressor], base.Regressor):
    """A regressor around any regressor of River's, whose forecasts stay calibrated on any stream.

    ``predict_one(x)`` is the mean of the calibrated forecast, ``predict_one(x, with_dist=True)`` the whole of it (a
    :class:`RiverDistribution`), ``predict_one(x, with_interval=True)`` River's interval at the ``confidence_level``.
    ``low`` and ``high`` are the bounds of the outcomes, if there are any; ``payoff``, ``oracle``, ``memory`` and
    ``outside`` are those of :class:`orcast.Recalibrator`.  A payoff with a context finds the features it asks for in
    ``x``.

    A model that has distributions (``with_dist``) is asked for them.  The prediction of any other is the mean of a
    Gaussian with

        sd = sqrt(pi / 2) * mean of |outcome - point| over the last ``window`` outcomes

    where the point is moved into the bounds if it is not there.

    ``learn_one(x, y)`` settles the last forecast for the same features, and issues one if there is none.  In both
    methods ``id=`` names a round instead: where features repeat while outcomes are late, or where they change between
    the two, as they do behind a scaler unless the whole pipeline is wrapped.  (Without names it takes ten outcomes
    until that is clear; a warning says so, and from then on the forecast just before is the one that is scored.)  A
    forecast that is never learnt from is dropped after 100 outcomes of others (and twice the longest lag so far), or
    when ``max_pending`` others are pending.

    >>> from river import datasets, linear_model, preprocessing, stats
    >>> linear = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model = RiverRegressor(linear, 0, 100)
    >>> inside = stats.Mean()
    >>> for x, y in datasets.TrumpApproval():
    ...     inside.update(y <= model.predict_one(x, with_dist=True).ppf(0.9))
    ...     model.learn_one(x, y)
    >>> 0.88 < inside.get() < 0.92, model.guarantee.rounds, model.pending
    (True, 1001, 0)
    """

    def __init__(
        self,
        model: base.Regressor,
        low: float | None = None,
        high: float | None = None,
        *,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        outside: str = "raise",
        confidence_level: float = 0.95,
        window: int = 100,
        max_pending: int = 1000,
    ) -> None:
        self.lock = GameLock()
        self.model = checked_model(model, "learn_one", "predict_one", kind="regressor")
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self.max_pending = at_least_one(max_pending, "max_pending of at least 1")
        recalibrator = recalibrator_for(self)
        self._space: Any = recalibrator.space
        self._book = PendingBook(recalibrator, self.max_pending)
        self._residuals = Residuals(window)
        self._distributions = has_distributions(model)

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"model": preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)}
        yield {"model": linear_model.BayesianLinearRegression(), "low": 0, "high": 100}

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, so far."""
        return self._book.game.guarantee

    @property
    @locked
    def pending(self) -> int:
        """How many forecasts are pending."""
        return len(self._book)

    @locked
    def predict_one(
        self,
        x: dict[base.typing.FeatureName, Any],
        with_dist: bool = False,
        with_interval: bool = False,
        *,
        id: Hashable = None,
        **kwargs: Any,
    ) -> Any:
        """The mean of the calibrated forecast for ``x``, or the distribution, or an interval."""
        p = self._book.predict(x, id, self._read, kwargs)
        return as_answer(p, self._book.known, self.confidence_level, with_dist, with_interval)

    @locked
    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.RegTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Settle the forecast that was issued for ``x``, and update the model."""
        outcome = self._space.outcome(y, self.outside)
        entry = self._book.pending_for(x, id, self._read)
        self.model.learn_one(x, y, **kwargs)
        self._book.settle(entry, outcome)
        if not self._distributions:
            self._residuals.add(outcome - entry.point)

    def _read(self, x: Any, **kwargs: Any) -> object:
        """The model's forecast."""
        if self._distributions:
            return as_forecast(self.model.predict_one(x, with_dist=True, **kwargs))
        return self._residuals.around(self.model.predict_one(x, **kwargs), self._space)
