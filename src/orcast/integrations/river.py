"""River: regressors and classifiers whose forecasts stay calibrated (extra ``orcast[river]``)."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from orcast.adapters import Normal, expert_row
from orcast.forecaster import Recalibrator
from orcast.forecasts import Forecast
from orcast.inputs import FeatureReader
from orcast.integrations.common import has_parameter, label_space, needs, recalibrator_for
from orcast.ledger import Guarantee
from orcast.monitors import Monitor
from orcast.payoffs import Payoff
from orcast.residuals import Residuals
from orcast.serialise import plain_features
from orcast.spaces import Labels
from orcast.validation import number, short

with needs("river", "river"):
    from river import base, compose, conf, linear_model, proba

__all__ = ["RiverClassifier", "RiverMonitor", "RiverRegressor"]


def row_key(x: Any, name: Hashable) -> Hashable:
    """Hashable form of a name, or of features in any order."""
    if name is not None:
        return (name,)
    try:
        return frozenset(x.items())
    except TypeError:  # of values that cannot be keys
        return frozenset((feature, pickle.dumps(value)) for feature, value in x.items())


def checked_model(model: Any, *methods: str, kind: str) -> Any:
    """The model, if it has the methods that are needed."""
    if isinstance(model, type) or not all(hasattr(model, method) for method in methods):
        raise TypeError(f"expected a River {kind} with {' and '.join(methods)}, got {short(model)}")
    return model


class RiverDistribution(proba.base.ContinuousDistribution):
    """Forecast as a distribution of River; ``n_samples`` counts the outcomes that it was calibrated on."""

    n_samples = 0

    def __init__(self, forecast: Forecast, n_samples: int = 0, seed: int | None = None) -> None:
        super().__init__(seed)
        self.forecast, self.n_samples = forecast, n_samples

    @property
    def mu(self) -> float:
        """Mean."""
        return self.forecast.mean()

    @property
    def sigma(self) -> float:
        """Standard deviation of the nearest normal, which the wide tails do not widen."""
        return self.forecast.to_normal()[1]

    @property
    def mode(self) -> float:
        """The heaviest atom if no cell is heavier, else the middle of the cell with the largest density."""
        p = self.forecast
        width, k = p.right - p.left, int(p.mass.argmax())
        if width[k] > 0.0:
            bounded = (width > 0.0) & np.isfinite(width)
            k = int(np.divide(p.mass, width, out=np.zeros_like(width), where=bounded).argmax())
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


class RowModel:
    """Forecasts that wait for the outcome of their features or name, and the errors of those that are points.

    Only the newest count as outstanding and reserve slack, as many as outcomes are usually late: a forecast that is
    never settled changes nothing.  Of more than `max_pending` the oldest is dropped.
    """

    model: Any
    recalibrator: Recalibrator
    _read: Any  # method: the model's forecast for features
    _outcome: Any  # method: an outcome in its canonical form

    def _start(self, recalibrator: Recalibrator) -> None:
        self.recalibrator, self._residuals = recalibrator, Residuals()
        self._features = FeatureReader(recalibrator.payoff)
        self._known = self._issued = 0  # outcomes, and forecasts, so far
        # of each pending forecast: both numbers when it was issued, and its point
        self._about: dict[Hashable, tuple[int, int, float | None]] = {}

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee over the settled rounds."""
        return self.recalibrator.guarantee

    @property
    def pending(self) -> int:
        """Number of pending forecasts."""
        return len(self.recalibrator.rounds.pending)

    def learn_one(self, x: Any, y: Any, *, id: Hashable = None, **kwargs: Any) -> None:
        """Settle the last forecast for ``x``, or issue one if there is none, and update the model.

        Parameters
        ----------
        x : dict
            Features.
        y : number or label
            Outcome; if it is refused, nothing changes.
        id : hashable, optional
            Name of the round, where features repeat or change.
        **kwargs
            Options of the model.
        """
        outcome, key, rounds = self._outcome(y), row_key(x, id), self.recalibrator.rounds
        if key not in rounds.pending:
            self._issue(key, self._read(x), x)
        self.model.learn_one(x, y, **kwargs)
        known, number, point = self._about[key]
        lag = self._known - known if known else self._issued - number
        _, reserved = self._outstanding(key)
        rounds.settle_unkept(rounds.find(key).record, outcome, lag=float(lag), reserved=reserved)
        self._drop(key)
        self._known += 1
        if point is not None:
            self._residuals.add(outcome - point)

    def _issue(self, key: Hashable, forecast: object, x: Any) -> Any:
        """Issue a forecast for features, in place of an older one of the same key."""
        rounds, features = self.recalibrator.rounds, self._features.of(x)
        outstanding, reserved = self._outstanding(key)
        record = rounds.peek(
            expert_row(forecast, self.recalibrator.space)[0][None, :],
            None if features is None else plain_features(features),
            outstanding=outstanding,
            reserved=reserved,
            number=self._known + 1 + int(outstanding),
        )
        if key in rounds.pending:
            self._issued -= self._drop(key)[1] == self._issued
        elif len(rounds.pending) == rounds.max_pending:
            self._drop(next(iter(rounds.pending)))
        self._issued += 1
        self._about[key] = self._known, self._issued, forecast.mean if isinstance(forecast, Normal) else None
        return rounds.forecast(rounds.keep(record, id=key))

    def _drop(self, key: Hashable) -> tuple[int, int, float | None]:
        self.recalibrator.rounds.drop(key)
        return self._about.pop(key)

    def _outstanding(self, key: Hashable) -> tuple[float, float]:
        """Number of outcomes still to come beside that of a key, and the slack that their rounds reserve."""
        rounds = self.recalibrator.rounds
        usual, others = rounds.usual_lag, len(rounds.pending) - (key in rounds.pending)
        late = others if usual is None else min(others, round(usual))
        newest = (entry for id, entry in reversed(rounds.pending.items()) if id != key)
        return float(late), sum(entry.overdraft for entry in islice(newest, late))


class RiverRegressor(RowModel, base.Wrapper[base.Regressor], base.Regressor):
    """Calibrated regressor around any regressor of River.

    Parameters
    ----------
    model
        Regressor.  Asked for distributions if it has them (``with_dist``); other predictions are means of Gaussians
        with sd = sqrt(pi / 2) * mean of the last 100 |outcome - prediction|.
    low, high, payoff, outside
        As in :class:`orcast.Recalibrator`.  A context finds its features in ``x``.
    confidence_level
        Share of the outcomes within intervals.
    max_pending
        Forecasts that wait for an outcome, at most; then the oldest is dropped.

    Examples
    --------
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
        outside: str = "raise",
        confidence_level: float = 0.95,
        max_pending: int = 1000,
    ) -> None:
        self.model = checked_model(model, "learn_one", "predict_one", kind="regressor")
        self.low, self.high = low, high
        self.payoff, self.outside = payoff, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.max_pending = max_pending
        self._start(recalibrator_for(self, max_pending=max_pending))
        self._has_distributions = has_distributions(model)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
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
        """Return the mean of the calibrated forecast, or the distribution, or an interval.

        Parameters
        ----------
        x : dict
            Features.
        with_dist, with_interval : bool
            Return a distribution, or an interval, of River.
        id : hashable, optional
            Name of the round, where features repeat or change.
        **kwargs
            Options of the model.
        """
        if with_dist and with_interval:
            raise ValueError("expected with_dist or with_interval, got both")
        p = self._issue(row_key(x, id), self._read(x, **kwargs), x)
        if with_dist:
            return RiverDistribution(p, self._known)
        return conf.Interval(*p.interval(self.confidence_level)) if with_interval else p.mean()

    def _outcome(self, y: Any) -> Any:
        return self.recalibrator.space.outcome(y, self.outside)

    def _read(self, x: Any, **kwargs: Any) -> object:
        if self._has_distributions:
            return as_forecast(self.model.predict_one(x, with_dist=True, **kwargs))
        space: Any = self.recalibrator.space
        return self._residuals.around(self.model.predict_one(x, **kwargs), space)


class RiverClassifier(RowModel, base.Wrapper[base.Classifier], base.Classifier):
    """Calibrated classifier around any classifier of River.

    Parameters
    ----------
    model
        Classifier.
    labels
        Outcomes; of two the second is forecast.  By default True and False, around a binary classifier.
    payoff, max_pending
        As in :class:`RiverRegressor`.

    Examples
    --------
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
        max_pending: int = 1000,
    ) -> None:
        self.model = checked_model(model, "learn_one", "predict_one", kind="classifier")
        self.labels, self.payoff, self.max_pending = labels, payoff, max_pending
        if labels is None and self._multiclass:
            raise ValueError("expected labels= around a classifier of several classes, got none")
        self._labels: tuple[Any, ...] = (False, True) if labels is None else Labels(labels).labels
        self._start(recalibrator_for(self, label_space(self._labels), max_pending=max_pending))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": linear_model.LogisticRegression()}

    def _unit_test_skips(self) -> set[str]:
        # two probabilities that are equally near change places when a model rounds in another order
        return {"check_shuffle_features_no_impact"}

    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], *, id: Hashable = None, **kwargs: Any
    ) -> dict[base.typing.ClfTarget, float]:
        """Return the calibrated probability of each label.

        Parameters
        ----------
        x, id, **kwargs
            As in ``learn_one``.
        """
        p = self._issue(row_key(x, id), self._read(x, **kwargs), x)
        return dict(zip(self._labels, p.mass.tolist(), strict=True))

    def _outcome(self, y: Any) -> int:
        """Return the index of a label."""
        label = y.item() if isinstance(y, np.generic) else y
        if label not in self._labels:
            raise ValueError(f"expected one of the labels {short(list(self._labels))}, got {short(label)}")
        return self._labels.index(label)

    def _read(self, x: Any, **kwargs: Any) -> object:
        """Return the probability of the second of two labels, or one for each."""
        try:
            found = self.model.predict_proba_one(x, **kwargs)
        except NotImplementedError:
            found = {self.model.predict_one(x, **kwargs): 1.0}
        masses = [found.get(label, 0.0) for label in self._labels]
        total = sum(masses)
        shares = [mass / total if total > 0.0 else 1.0 / len(masses) for mass in masses]
        return shares[1] if len(shares) == 2 else shares


class RiverMonitor(base.DriftDetector):
    """Drift detector on the PITs of forecasts, by an `orcast.Monitor`.

    Parameters
    ----------
    run_length : float
        Mean number of rounds to a false alarm.
    seed : int
        Seed of the draws that break ties between ranks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = RiverMonitor()
    >>> for t in range(1_000):
    ...     detector.update(rng.random() ** (1.0 if t < 500 else 2.0))
    ...     if detector.drift_detected:
    ...         break
    >>> 500 < t < 700, detector.monitor.changed.kind
    (True, 'too high')
    """

    def __init__(self, run_length: float = 100_000, seed: int = 0) -> None:
        super().__init__()
        self.run_length, self.seed = run_length, seed
        self.monitor = Monitor(run_length=run_length, seed=seed)

    def update(self, x: float) -> None:
        """Update with a PIT, F(y), from 0 to 1."""
        before = self.monitor.changed
        self.monitor.update(pit=float(x))
        after = self.monitor.changed
        self._drift_detected = after is not None and (before is None or after.round > before.round)
