"""River: regressors, classifiers and forecasters whose forecasts stay calibrated (extra ``orcast[river]``).

Wrap the whole model, and use it as any other model of River:

    model = RiverRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression(), low=0, high=100)

``learn_one(x, y)`` settles the last forecast for the same ``x`` (or ``id=``), or issues one before the model learns.
"""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from orcast.adapters import Normal, expert_row
from orcast.engine import Oracle
from orcast.features import FeatureReader
from orcast.forecasts import Forecast
from orcast.integrations.common import has_parameter, recalibrator_for
from orcast.integrations.optional import needs
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.residuals import Residuals
from orcast.rounds import Rounds
from orcast.serialise import plain_features
from orcast.spaces import Binary, Labels, between
from orcast.validation import as_count, number, short

with needs("river", "river"):
    from river import base, compose, conf, proba, time_series

__all__ = ["RiverClassifier", "RiverDistribution", "RiverForecaster", "RiverRegressor"]


# --- pending forecasts


class PendingRows:
    """Forecasts of a recalibrator that wait for their outcomes, by features or name.

    Only the newest count as outstanding and reserve slack, as many as outcomes are usually late: a forecast that is
    never learnt from changes nothing.  Of more than `max_pending` the oldest is dropped.
    """

    def __init__(self, recalibrator: Recalibrator, max_pending: int) -> None:
        self.recalibrator = recalibrator
        self._features = FeatureReader(recalibrator.payoff)
        self._rounds = Rounds(recalibrator.engine, max_pending)
        self._ids: dict[Hashable, int] = {}  # among the rounds, the oldest first

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._ids

    def __getstate__(self) -> dict[str, Any]:
        # rounds go as plain data: the parts of a record may be closures
        return {**vars(self), "_rounds": (self._rounds.max_pending, *self._rounds.state())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        max_pending, header, arrays = state["_rounds"]
        self._rounds = Rounds(self.recalibrator.engine, max_pending)
        self._rounds.resume(header, arrays)

    @property
    def known(self) -> int:
        """Number of known outcomes."""
        return self.recalibrator.rounds.issued

    def issue(self, key: Hashable, forecast: object, x: Any) -> Any:
        """Issue a forecast for features, in place of an older one for the same key."""
        row, _ = expert_row(forecast, self.recalibrator.space)
        features = self._features.of(x)
        outstanding, reserved = self._outstanding(key)
        record = self.recalibrator.rounds.peek(
            row[None, :],
            None if features is None else plain_features(features),
            outstanding=outstanding,
            reserved=reserved,
            number=self.known + 1 + int(outstanding),
        )
        if key in self:
            self._rounds.take_back(self._ids.pop(key))
        elif len(self) == self._rounds.max_pending:
            self.drop(next(iter(self._ids)))
        self._ids[key] = id = self._rounds.issued
        entry = self._rounds.keep(record, id=id)
        entry.attached = [self.known, forecast.mean if isinstance(forecast, Normal) else None]
        return self._rounds.forecast(entry)

    def settle(self, key: Hashable, outcome: Any) -> float | None:
        """Record an outcome in its canonical form; returns the point of the forecast, if it was a Gaussian."""
        entry = self._rounds.find(self._ids[key])
        known, point = entry.attached
        # before the first outcome the lag is that of the forecasts
        lag = self.known - known if known else self._rounds.issued - entry.issued
        _, reserved = self._outstanding(key)
        self.recalibrator.rounds.settle_unkept(entry.record, outcome, lag=float(lag), reserved=reserved)
        self.drop(key)
        return point  # type: ignore[no-any-return]

    def drop(self, key: Hashable) -> None:
        """Forget a forecast."""
        self._rounds.drop(self._ids.pop(key))

    def _outstanding(self, key: Hashable) -> tuple[float, float]:
        """Number of outcomes still to come beside that of a key, and the slack that their rounds reserve."""
        usual, others = self.recalibrator.rounds.usual_lag, len(self) - (key in self)
        late = others if usual is None else min(others, round(usual))
        newest = (id for id in reversed(self._ids.values()) if id != self._ids.get(key))
        reserved = sum(self._rounds.pending[id].overdraft for id in islice(newest, late))
        return float(late), reserved


def row_key(x: Any, name: Hashable) -> Hashable:
    """Hashable form of a name, or of features: equal ones are the same, in any order."""
    if name is not None:
        return (name,)
    try:
        return frozenset(x.items())
    except (AttributeError, TypeError):
        pass
    if isinstance(x, Mapping):
        return frozenset((feature, pickle.dumps(value)) for feature, value in x.items())
    return x if isinstance(x, Hashable) else pickle.dumps(x)


def checked_model(model: Any, *methods: str, kind: str) -> Any:
    """The model, if it has the methods that are needed."""
    if isinstance(model, type) or not all(hasattr(model, method) for method in methods):
        raise TypeError(f"expected a River {kind} with {' and '.join(methods)}, got {short(model)}")
    return model


# --- distributions


class RiverDistribution(proba.base.ContinuousDistribution):
    """Forecast as a distribution of River: when called, the density; ``cdf``, ``ppf``, ``mode``, ``mu``, ``sigma``.

    ``forecast`` is the :class:`orcast.Forecast` itself, ``n_samples`` the number of outcomes it was calibrated on.

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
        """Number of outcomes that the forecast was calibrated on."""
        return self._n_samples

    @property
    def mu(self) -> float:
        """Mean."""
        return self.forecast.mean()

    @property
    def sigma(self) -> float:
        """Standard deviation of the nearest normal: the far tails are wide, and would widen a plain deviation."""
        return self.forecast.to_normal()[1]

    @property
    def mode(self) -> float:
        """The heaviest atom if no cell is heavier, else the middle of the cell with the largest density."""
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
        """Density at x."""
        return float(self.forecast.pdf(x))

    def cdf(self, x: float) -> float:
        """P(outcome <= x)."""
        return float(self.forecast.cdf(x))

    def ppf(self, levels: Any) -> Any:
        """Quantiles at levels."""
        return self.forecast.quantile(levels)

    def sample(self) -> float:
        """Draw a number, by the generator of ``seed``."""
        return float(self.forecast.quantile(self._rng.random()))

    def update(self, x: float) -> None:
        """Refuse: a forecast stays as it was issued."""
        raise NotImplementedError("expected a forecast to stay as it was issued, got a change")

    revert = update

    def __repr__(self) -> str:
        return repr(self.forecast)


def has_distributions(model: Any) -> bool:
    """Tell if ``predict_one`` has River's option ``with_dist``; of a pipeline its last step's."""
    while isinstance(model, compose.Pipeline):
        model = list(model.steps.values())[-1]
    return has_parameter(model.predict_one, "with_dist")


def as_forecast(distribution: Any) -> object:
    """A distribution of River as a forecast: Gaussian if it has ``mu`` and ``sigma``, else by ``ppf`` or ``cdf``."""
    mu, sigma = getattr(distribution, "mu", None), getattr(distribution, "sigma", None)
    if hasattr(distribution, "ppf") or not (isinstance(mu, (int, float)) and isinstance(sigma, (int, float))):
        return distribution
    return Normal(mu, sigma)


def as_answer(p: Forecast, rounds: int, level: float, with_dist: bool, with_interval: bool) -> Any:
    """A forecast as a distribution, an interval or its mean."""
    if with_dist and with_interval:
        raise ValueError("expected with_dist or with_interval, got both")
    if with_dist:
        return RiverDistribution(p, rounds)
    return conf.Interval(*p.interval(level)) if with_interval else p.mean()


# --- models


class RowModel(ABC):
    """Settling of rows by features or name."""

    model: Any
    _rows: PendingRows | None
    _residuals: Residuals | None = None  # of a model that predicts points

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee over the settled rounds, of labels since the last new one."""
        if self._rows is None:
            raise ValueError("expected two labels or more, got fewer so far")
        return self._rows.recalibrator.guarantee

    @property
    def pending(self) -> int:
        """Number of pending forecasts."""
        return 0 if self._rows is None else len(self._rows)

    def learn_one(self, x: Any, y: Any, *, id: Hashable = None, **kwargs: Any) -> None:
        """Settle the forecast that was issued for ``x``, and update the model."""
        outcome, key = self._outcome(y), row_key(x, id)
        rows = self._rows
        if rows is not None and key not in rows:
            rows.issue(key, self._read(x), x)
        self.model.learn_one(x, y, **kwargs)
        if rows is not None:
            point = rows.settle(key, outcome)
            if point is not None and self._residuals is not None:
                self._residuals.add(outcome - point)

    @abstractmethod
    def _read(self, x: Any, **kwargs: Any) -> object:
        """The model's forecast."""

    @abstractmethod
    def _outcome(self, y: Any) -> Any:
        """An outcome in its canonical form."""


class RiverRegressor(RowModel, base.Wrapper[base.Regressor], base.Regressor):
    """Regressor around any regressor of River, whose forecasts stay calibrated on any stream.

    ``predict_one(x)`` is the mean of the calibrated forecast, ``predict_one(x, with_dist=True)`` a
    :class:`RiverDistribution`, ``predict_one(x, with_interval=True)`` River's interval at the ``confidence_level``.
    A model that has distributions (``with_dist``) is asked for them.  The prediction of any other is the mean of a
    Gaussian with sd = sqrt(pi / 2) * mean of |outcome - prediction| over the last ``window`` outcomes.

    ``learn_one(x, y)`` settles the last forecast for the same ``x``, and issues one if there is none.  In both methods
    ``id=`` names a round instead: where features repeat while outcomes are late, or where they change between the
    calls, as they do behind a scaler unless the whole pipeline is wrapped.

    Parameters
    ----------
    low, high
        Bounds of the outcomes, if there are any.
    payoff, oracle, memory, outside
        As in :class:`orcast.Recalibrator`.  A context finds its features in ``x``.
    max_pending
        Forecasts that wait for an outcome, at most; then the oldest is dropped.

    >>> from river import datasets, linear_model, preprocessing, stats
    >>> linear = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model = RiverRegressor(linear, 0, 100)
    >>> inside = stats.Mean()
    >>> for x, y in datasets.TrumpApproval():
    ...     inside.update(y <= model.predict_one(x, with_dist=True).ppf(0.9))
    ...     model.learn_one(x, y)
    >>> 0.88 < inside.get() < 0.93, model.guarantee.rounds, model.pending
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
        self.model = checked_model(model, "learn_one", "predict_one", kind="regressor")
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self.max_pending = as_count(max_pending, "max_pending of at least 1")
        recalibrator = recalibrator_for(self)
        self._space: Any = recalibrator.space
        self._rows: PendingRows = PendingRows(recalibrator, self.max_pending)
        errors = Residuals(window)
        self._residuals = None if has_distributions(model) else errors

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"model": preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)}
        yield {"model": linear_model.BayesianLinearRegression(), "low": 0, "high": 100}

    def predict_one(
        self,
        x: dict[base.typing.FeatureName, Any],
        with_dist: bool = False,
        with_interval: bool = False,
        *,
        id: Hashable = None,
        **kwargs: Any,
    ) -> Any:
        """Mean of the calibrated forecast for ``x``, or the distribution, or an interval."""
        p = self._rows.issue(row_key(x, id), self._read(x, **kwargs), x)
        return as_answer(p, self._rows.known, self.confidence_level, with_dist, with_interval)

    def _outcome(self, y: Any) -> Any:
        return self._space.outcome(y, self.outside)

    def _read(self, x: Any, **kwargs: Any) -> object:
        if self._residuals is None:
            return as_forecast(self.model.predict_one(x, with_dist=True, **kwargs))
        return self._residuals.around(self.model.predict_one(x, **kwargs), self._space)


class RiverClassifier(RowModel, base.Wrapper[base.Classifier], base.Classifier):
    """Classifier around any classifier of River, whose probabilities stay calibrated on any stream.

    Around a binary classifier the outcomes are True and False, around any other the ``labels``.  Without these they are
    the labels seen so far, and each new one starts a new recalibrator with a new guarantee: name them if you can.
    Of two labels the second is forecast (``Binary``).  Options and ``id=`` are those of :class:`RiverRegressor`.

    >>> from river import datasets, linear_model, metrics, preprocessing
    >>> model = RiverClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    >>> loss = metrics.LogLoss()
    >>> for x, y in datasets.Phishing():
    ...     loss.update(y, model.predict_proba_one(x))
    ...     model.learn_one(x, y)
    >>> loss.get() < 0.3, sorted(model.predict_proba_one(x)), model.guarantee.rounds
    (True, [False, True], 1250)
    """

    def __init__(
        self,
        model: base.Classifier,
        labels: Sequence[base.typing.ClfTarget] | None = None,
        *,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        max_pending: int = 1000,
    ) -> None:
        self.model = checked_model(model, "learn_one", "predict_one", kind="classifier")
        self.labels = labels
        self.payoff, self.oracle, self.memory = payoff, oracle, memory
        self.max_pending = as_count(max_pending, "max_pending of at least 1")
        self._grows = labels is None and self._multiclass
        self._known: tuple[Any, ...] = ()
        self._rows: PendingRows | None = None
        if labels is not None:
            self._begin(Labels(labels).labels)
        elif not self._grows:
            self._begin((False, True))

    def _begin(self, labels: tuple[Any, ...]) -> None:
        """Start a recalibrator of these labels; with fewer than two there is nothing to forecast."""
        if len(labels) > 1:
            space = Binary() if len(labels) == 2 else Labels(labels)
            recalibrator = Recalibrator(space, self.payoff, oracle=self.oracle, memory=self.memory)
            self._rows = PendingRows(recalibrator, self.max_pending)
        self._known = labels

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing, tree

        yield {"model": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"model": tree.HoeffdingTreeClassifier()}

    def _unit_test_skips(self) -> set[str]:
        # two probabilities that are equally near change places when a model rounds in another order
        return {"check_shuffle_features_no_impact"}

    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], *, id: Hashable = None, **kwargs: Any
    ) -> dict[base.typing.ClfTarget, float]:
        """Calibrated probability of each label."""
        if self._rows is None:
            return dict.fromkeys(self._known, 1.0)
        p = self._rows.issue(row_key(x, id), self._read(x, **kwargs), x)
        return dict(zip(self._known, p.mass.tolist(), strict=True))

    def _outcome(self, y: Any) -> int:
        """Index of a label; a new one starts a new recalibrator."""
        label = y.item() if isinstance(y, np.generic) else y
        if label not in self._known:
            if not self._grows:
                raise ValueError(f"expected one of the labels {short(list(self._known))}, got {short(label)}")
            self._begin((*self._known, label))
        return self._known.index(label)

    def _read(self, x: Any, **kwargs: Any) -> object:
        """The model's probabilities: that of the second of two labels, or one for each."""
        try:
            found = self.model.predict_proba_one(x, **kwargs)
        except NotImplementedError:
            found = {self.model.predict_one(x, **kwargs): 1.0}
        masses = [found.get(label, 0.0) for label in self._known]
        total = sum(masses)
        shares = [mass / total if total > 0.0 else 1.0 / len(masses) for mass in masses]
        return shares[1] if len(shares) == 2 else shares


class RiverForecaster(base.Wrapper[time_series.base.Forecaster], time_series.base.Forecaster):
    """Forecaster around any forecaster of River, with a recalibrator for each step ahead.

    ``forecast(horizon)`` gives the means, with ``with_dist=True`` the distributions, with ``with_interval=True``
    intervals at the ``confidence_level``.  ``learn_one(y)`` settles all forecasts for this outcome.  A new forecast
    replaces an older one that was made at the same time.  If no forecast was asked for since the last outcome,
    ``learn_one`` makes one itself, ``horizon`` steps ahead (one step if there are features, since those of later steps
    are not known): so a history that is only learnt from counts too.

    The spread of a step comes from the last ``window`` known errors of this step.  Other options are those of
    :class:`RiverRegressor`.

    >>> from river import datasets, time_series
    >>> model = RiverForecaster(time_series.HoltWinters(0.3, 0.1, 0.6, 12, True), low=0, horizon=12)
    >>> for x, y in datasets.AirlinePassengers():
    ...     model.learn_one(y)
    >>> [round(y) for y in model.forecast(3)]
    [448, 420, 467]
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
        self.model = checked_model(model, "learn_one", "forecast", kind="forecaster")
        self.low, self.high, self.horizon = low, high, as_count(horizon, "a horizon of at least 1 step")
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self._space = between(low, high)
        self._steps: list[tuple[Recalibrator, Residuals]] = []
        self._points: dict[tuple[int, int], float] = {}  # of pending rounds, by step and time
        self._time = 0
        self._asked = False
        self._step(1)  # refuses what does not fit
        self._features = FeatureReader(payoff)

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": time_series.SNARIMAX(p=1, d=0, q=0), "horizon": 3, "low": -1000, "high": 1000}

    def guarantee(self, step: int = 1) -> Guarantee:
        """Guarantee of the forecasts that are `step` steps ahead."""
        if not 1 <= step <= len(self._steps):
            raise ValueError(f"expected a step ahead from 1 to {len(self._steps)}, got {short(step)}")
        return self._steps[step - 1][0].guarantee

    @property
    def pending(self) -> int:
        """Number of pending rounds, over all steps ahead."""
        return len(self._points)

    def forecast(
        self,
        horizon: int,
        xs: list[dict[base.typing.FeatureName, Any]] | None = None,
        *,
        with_dist: bool = False,
        with_interval: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Mean of the calibrated forecast at each step ahead, or the distribution, or an interval."""
        steps = as_count(horizon, "a horizon of at least 1 step")
        forecasts = self._issue(self.model.forecast(horizon=steps, xs=xs, **kwargs), xs)
        self._asked = True
        return [
            as_answer(p, recalibrator.guarantee.rounds, self.confidence_level, with_dist, with_interval)
            for p, (recalibrator, _) in zip(forecasts, self._steps, strict=False)
        ]

    def learn_one(self, y: float, x: dict[base.typing.FeatureName, Any] | None = None, **kwargs: Any) -> None:
        """Settle every forecast that was issued for this outcome, and update the model."""
        outcome = self._space.outcome(y, self.outside)
        if not self._asked:
            self._issue_unasked(x)
        self.model.learn_one(y=y, x=x, **kwargs)
        for ahead, (recalibrator, residuals) in enumerate(self._steps):
            point = self._points.pop((ahead, self._time), None)
            if point is not None:
                recalibrator.update(outcome, id=self._time)
                residuals.add(outcome - point)
        self._time += 1
        self._asked = False

    def _issue_unasked(self, x: Any) -> None:
        horizon, xs = (self.horizon, None) if x is None else (1, [x])
        try:
            points = self.model.forecast(horizon=horizon, xs=xs)
        except (ArithmeticError, LookupError, ValueError):
            return  # a model that has not seen enough to forecast
        if all(map(math.isfinite, points)):
            self._issue(points, xs)

    def _issue(self, points: Sequence[float], xs: Sequence[Any] | None) -> list[Forecast]:
        forecasts: list[Normal] = []
        for step, point in enumerate(points, start=1):
            _, residuals = self._step(step)
            # a step without errors of its own is as wide as the one before it
            spread = forecasts[-1].sd if forecasts and not len(residuals) else None
            forecasts.append(residuals.around(point, self._space, spread))
        return [
            self._issue_step(ahead, forecast, self._features.of(xs[ahead]) if xs else None)
            for ahead, forecast in enumerate(forecasts)
        ]

    def _issue_step(self, ahead: int, forecast: Normal, features: Any) -> Forecast:
        recalibrator, time = self._steps[ahead][0], self._time + ahead
        if self._points.pop((ahead, time), None) is not None:
            recalibrator.rounds.take_back(time)
        p: Forecast = recalibrator.predict(forecast, x=features, id=time)
        self._points[ahead, time] = forecast.mean
        return p

    def _step(self, step: int) -> tuple[Recalibrator, Residuals]:
        """Recalibrator and errors of a step ahead, begun when it is first asked for."""
        while len(self._steps) < step:
            recalibrator = recalibrator_for(self, space=self._space, max_pending=len(self._steps) + 1)
            self._steps.append((recalibrator, Residuals(self.window)))
        return self._steps[step - 1]
