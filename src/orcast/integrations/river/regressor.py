"""Any regressor of River's, recalibrated."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from river import base

from orcast.engine import Oracle
from orcast.integrations.common import FeatureReader, space_of
from orcast.integrations.river.distribution import said, says_distributions, shown
from orcast.integrations.river.pending import PendingBook, PendingForecast, able, game_of, most_pending
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.residuals import Residuals
from orcast.validation import number


class RiverRegressor(base.Wrapper[base.Regressor], base.Regressor):
    """A regressor around any regressor of River's, whose forecasts stay calibrated on any stream.

    ``predict_one(x)`` is the mean of the calibrated forecast, ``predict_one(x, with_dist=True)`` the whole of it (a
    :class:`RiverDistribution`), ``predict_one(x, with_interval=True)`` River's interval at the ``confidence_level``.
    ``low`` and ``high`` are the bounds of the outcomes, if there are any; ``payoff``, ``oracle``, ``memory`` and
    ``outside`` are those of :class:`orcast.Recalibrator`.  A payoff with a context finds the features it asks for in
    ``x``.

    A model that can say a distribution (``with_dist``) is asked for it.  The point that any other says becomes the mean
    of a Gaussian with

        sd = sqrt(pi / 2) * mean of |outcome - point| over the last ``window`` outcomes that are known

    where the point is moved into the bounds if it is not there.

    ``learn_one(x, y)`` settles the last forecast that was asked for the same features, and makes one if there is none.
    In both methods ``id=`` names a round instead: where features repeat while outcomes are late, or where they change
    on their way, as they do behind a scaler unless all of the pipeline is wrapped.  A forecast that is never learnt
    from is given up after 100 outcomes of others (and twice the longest wait that ended well), or when ``max_pending``
    others wait.

    >>> from river import datasets, linear_model, preprocessing, stats
    >>> model = Recalibrated(preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1), 0, 100)
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
        self.model = able(model, "learn_one", "predict_one", what="regressor")
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window, self.max_pending = window, most_pending(max_pending)
        self._space = space_of(low, high)
        self._desk = PendingBook(game_of(self._space, payoff, oracle, memory, outside), max_pending)
        self._features = FeatureReader(payoff) or None  # None: no payoff looks at them
        self._residuals = Residuals(window)
        self._distributions = says_distributions(model)

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"model": preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)}
        yield {"model": linear_model.BayesianLinearRegression(), "low": 0, "high": 100}

    @property
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, so far."""
        return self._desk.game.guarantee

    @property
    def pending(self) -> int:
        """How many forecasts wait for their outcome."""
        return len(self._desk)

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
        pending_book = self._desk
        entry = pending_book.find(x, id)
        if entry is None or entry.known != pending_book.known or kwargs or id is not None:
            entry = self._issue(entry, x, id, kwargs)
        return shown(entry.forecast, pending_book.known, self.confidence_level, with_dist, with_interval)

    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.RegTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Score the forecast that was issued for ``x``, and teach the model."""
        outcome = self._space.outcome(y, self.outside)
        pending_book = self._desk
        entry = pending_book.find(x, id)
        if entry is None:
            pending_book.look_out(x)
            entry = self._issue(None, x, id, {})
        self.model.learn_one(x, y, **kwargs)
        pending_book.settle(entry, outcome)
        if not self._distributions:
            self._residuals.add(outcome - entry.point)

    def _issue(self, old: PendingForecast | None, x: Any, name: Hashable, kwargs: Any) -> PendingForecast:
        told: Any
        if self._distributions:
            told, point = said(self.model.predict_one(x, with_dist=True, **kwargs)), 0.0
        else:
            told = self._residuals.around(self.model.predict_one(x, **kwargs), self._space)
            point = told.mean
        return self._desk.issue(old, told, point, self._features and self._features.of(x), x, name)
