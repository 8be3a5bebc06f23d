"""River: regressors, classifiers and forecasters whose forecasts stay calibrated (extra ``orcast[river]``).

Wrap the whole model, and use it as any other model of River:

    model = RiverRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression(), low=0, high=100)

An outcome settles the forecast that was issued for it.  ``learn_one(x, y)`` looks for the last forecast for the same
features ``x``, however old; where there is none it issues one, before the model learns.  Forecasts that are never
learnt from are dropped (see :class:`RiverRegressor`).
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from orcast.adapters import Normal, expert_row
from orcast.engine import Oracle
from orcast.features import FeatureReader
from orcast.forecasts import Forecast
from orcast.game import Forecaster
from orcast.integrations.common import HorizonGame, has_parameter, recalibrator_for
from orcast.integrations.optional import needs
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
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

# A forecast is pending for this many outcomes of others, and twice the longest lag of an outcome, which fades.
PATIENCE = 100
FADE = 0.99


# --- pending forecasts


@dataclass(slots=True, eq=False)
class PendingForecast:
    """A pending round, and the features or name that identify it."""

    id: int  # among the rounds of the game
    known: int  # outcomes that were known when it was issued
    point: float  # the mean of the model's forecast, if that is a Gaussian
    x: Any
    key: Hashable


class PendingBook:
    """Pending rounds of a game, by the features they were issued for or by name.

    Rounds whose outcome is expected make later ones cautious and reserve slack.  Only as many are expected as the lags
    of past outcomes suggest; older ones are parked: they reserve nothing, are settled if their outcome comes after all,
    and are dropped in the end.
    """

    def __init__(self, game: Forecaster, max_pending: int) -> None:
        self.game = game
        self.known = 0
        self._features = FeatureReader(game.payoff)
        self._max_pending = max_pending
        self._newest: PendingForecast | None = None
        self._pending: dict[Hashable, PendingForecast] = {}  # the oldest first: those that are parked
        self._parked = Rounds(game.engine, max_pending)
        self._longest = math.inf  # outcomes of others between a forecast and its own, at most; an old maximum fades

    def __len__(self) -> int:
        return len(self._pending)

    def __getstate__(self) -> dict[str, Any]:
        # rounds go as plain data: the parts of a record may be closures
        return {**vars(self), "_parked": self._parked.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._parked = Rounds(self.game.engine, self._max_pending)
        self._parked.resume(*state["_parked"])

    def predict(self, x: Any, name: Hashable, read: Callable[..., object], options: Mapping[str, Any]) -> Any:
        """Return the forecast for these features, issued anew if it may have changed; `read` asks the model."""
        entry = self.find(x, name)
        if entry is None or entry.known != self.known or options or name is not None:
            entry = self._issue(entry, read(x, **options), x, name)
        rounds = self._rounds(entry)
        return rounds.forecast(rounds.pending[entry.id])

    def pending_for(self, x: Any, name: Hashable, read: Callable[..., object]) -> PendingForecast:
        """Return the round that an outcome settles; issued now if there was none."""
        entry = self.find(x, name)
        return self._issue(None, read(x), x, name) if entry is None else entry

    def find(self, x: Any, name: Hashable) -> PendingForecast | None:
        """Find the pending forecast of these features, or of a name."""
        return self._pending.get(_key(x, name)) if self._pending else None

    def settle(self, entry: PendingForecast, outcome: Any) -> None:
        """Record the outcome of a round, and drop those that have been pending too long."""
        rounds = self.game.rounds
        if entry.id in rounds:
            # forecasts beyond those that are expected do not make it late
            late = min(float(rounds.issued - rounds.pending[entry.id].issued), 2.0 * self._longest)
            rounds.settle(outcome, id=entry.id, late=late)
        else:
            record = self._parked.drop(entry.id).record
            rounds.settle_unkept(record, outcome, reserved=rounds.reserved)
        self._unlist(entry)
        if entry.known:  # before the first outcome of all, no lag could be seen
            longest = FADE * self._longest if self._longest < math.inf else 0.0
            self._longest = max(longest, float(self.known - entry.known))
        self.known += 1
        self._park()
        while len(self._parked):
            oldest = next(iter(self._pending.values()))
            if self.known - oldest.known <= PATIENCE + 2.0 * self._longest:
                break
            self._drop(oldest)

    def _issue(self, old: PendingForecast | None, forecast: object, x: Any, name: Hashable) -> PendingForecast:
        """Issue a new round, in place of an old one for the same if there is one."""
        row, _ = expert_row(forecast, self.game.space)
        features = self._features.of(x)
        if features is not None:
            features = plain_features(features)
        self._newest = None
        self._park()
        rounds = self.game.rounds
        # outcomes are the time: forecasts that are never learnt from do not count
        outstanding = float(len(rounds))
        record = rounds.peek(row[None, :], features, outstanding=outstanding, number=self.known + 1 + len(rounds))
        if old is not None:
            self._drop(old)
        point = forecast.mean if isinstance(forecast, Normal) else math.nan
        x = x.copy() if type(x) is dict else x
        entry = PendingForecast(rounds.issued, self.known, point, x, _key(x, name))
        if entry.key in self._pending:  # features that are not equal to themselves
            self._drop(self._pending[entry.key])
        rounds.keep(record, id=entry.id)
        self._newest = self._pending[entry.key] = entry
        while len(self) > self._max_pending:
            self._drop(next(iter(self._pending.values())))
        return entry

    @property
    def _expected(self) -> int:
        """Number of pending rounds whose outcome is expected, beside the newest."""
        return len(self._pending) - len(self._parked) - (self._newest is not None)

    def _park(self) -> None:
        """Park rounds that are too many, or too old, to be expected."""
        usual = 2.0 * self._longest
        while self._expected:
            oldest = next(islice(self._pending.values(), len(self._parked), None))
            if self._expected <= usual and self.known - oldest.known <= usual:
                break
            self._parked.keep(self.game.rounds.drop(oldest.id).record, id=oldest.id)

    def _drop(self, entry: PendingForecast) -> None:
        self._rounds(entry).drop(entry.id)
        self._unlist(entry)

    def _unlist(self, entry: PendingForecast) -> None:
        del self._pending[entry.key]
        if entry is self._newest:
            self._newest = None

    def _rounds(self, entry: PendingForecast) -> Rounds:
        return self.game.rounds if entry.id in self.game.rounds else self._parked


def _key(x: Any, name: Hashable) -> Hashable:
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
        """Number of outcomes that the forecast was calibrated on."""
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
    """Tell whether ``predict_one`` has River's option ``with_dist``; of a pipeline its last step's."""
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


# --- models


class RiverRegressor(Locked, base.Wrapper[base.Regressor], base.Regressor):
    """Regressor around any regressor of River, whose forecasts stay calibrated on any stream.

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
    the two, as they do behind a scaler unless the whole pipeline is wrapped.  A forecast that is never learnt from is
    dropped after 100 outcomes of others (and twice the longest lag so far), or when ``max_pending`` others are pending.

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
        self.lock = GameLock()
        self.model = checked_model(model, "learn_one", "predict_one", kind="regressor")
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self.max_pending = as_count(max_pending, "max_pending of at least 1")
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
        """Guarantee over the settled rounds."""
        return self._book.game.guarantee

    @property
    @locked
    def pending(self) -> int:
        """Number of pending forecasts."""
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


class RiverClassifier(Locked, base.Wrapper[base.Classifier], base.Classifier):
    """Classifier around any classifier of River, whose probabilities stay calibrated on any stream.

    Around a binary classifier the outcomes are True and False.  Around any other they are the ``labels``.  Without
    these they are the labels seen so far, and each new one begins a new game, with a new guarantee: name them if you
    can.  A model that predicts labels only is taken to be sure of them.  ``payoff``, ``oracle`` and ``memory`` are
    those of :class:`orcast.Recalibrator`; of two labels, in their order, the game is about the second (``Binary``).

    ``learn_one(x, y)``, ``id=`` and ``max_pending`` are as for :class:`RiverRegressor`.

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
        self.lock = GameLock()
        self.model = checked_model(model, "learn_one", "predict_one", kind="classifier")
        self.labels = labels
        self.payoff, self.oracle, self.memory = payoff, oracle, memory
        self.max_pending = as_count(max_pending, "max_pending of at least 1")
        self._grows = labels is None and self._multiclass
        self._known: tuple[Any, ...] = ()
        self._places: dict[Any, int] = {}
        self._book: PendingBook | None = None
        if labels is not None:
            self._begin(Labels(labels).labels)
        elif not self._grows:
            self._begin((False, True))

    def _begin(self, labels: tuple[Any, ...]) -> None:
        """A game with these labels; with fewer than two there is nothing to forecast."""
        if len(labels) > 1:
            space = Binary() if len(labels) == 2 else Labels(labels)
            recalibrator = Recalibrator(space, self.payoff, oracle=self.oracle, memory=self.memory)
            self._book = PendingBook(recalibrator, self.max_pending)
        self._known = labels
        self._places = {label: place for place, label in enumerate(labels)}

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing, tree

        yield {"model": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"model": tree.HoeffdingTreeClassifier()}

    def _unit_test_skips(self) -> set[str]:
        # of several probabilities that keep the promise the nearest is played: two that are as near change places when
        # a model rounds in another order
        return {"check_shuffle_features_no_impact"}

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """Guarantee since the last new label."""
        if self._book is None:
            raise ValueError(f"expected two labels or more, got {len(self._known)} so far")
        return self._book.game.guarantee

    @property
    @locked
    def pending(self) -> int:
        """Number of pending forecasts."""
        return 0 if self._book is None else len(self._book)

    @locked
    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], *, id: Hashable = None, **kwargs: Any
    ) -> dict[base.typing.ClfTarget, float]:
        """The calibrated probability of each label."""
        if self._book is None:
            return dict.fromkeys(self._known, 1.0)
        p = self._book.predict(x, id, self._read, kwargs)
        if len(self._known) == 2:
            no, yes = self._known
            share = float(p)
            return {no: 1.0 - share, yes: share}
        return dict(zip(self._known, p.mass.tolist(), strict=True))

    @locked
    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.ClfTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Settle the forecast that was issued for ``x``, and update the model."""
        place = self._places.get(y)
        if place is None:
            place = self._new(y)
        book = self._book
        entry = None if book is None else book.pending_for(x, id, self._read)
        self.model.learn_one(x, y, **kwargs)
        if book is not None and entry is not None:
            book.settle(entry, place)

    def _new(self, y: Any) -> int:
        """The place of a label that was not known: it begins a new game."""
        label = y.item() if isinstance(y, np.generic) else y
        if not self._grows:
            raise ValueError(f"expected one of the labels {short(list(self._known))}, got {short(label)}")
        self._begin((*self._known, label))
        return len(self._known) - 1

    def _read(self, x: Any, **kwargs: Any) -> object:
        """The model's probabilities: that of the second of two labels, or one for each."""
        try:
            found = self.model.predict_proba_one(x, **kwargs)
        except NotImplementedError:
            found = {self.model.predict_one(x, **kwargs): 1.0}
        masses = [found.get(label, 0.0) for label in self._known]
        if len(masses) == 2:
            q, p = masses
            return p / (p + q) if p + q > 0.0 else 0.5
        total = sum(masses)
        return [mass / total if total > 0.0 else 1.0 / len(masses) for mass in masses]


class RiverForecaster(Locked, base.Wrapper[time_series.base.Forecaster], time_series.base.Forecaster):
    """Forecaster around any forecaster of River, calibrated at each step ahead by itself.

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
        self.lock = GameLock()
        self.model = checked_model(model, "learn_one", "forecast", kind="forecaster")
        self.low, self.high, self.horizon = low, high, as_count(horizon, "a horizon of at least 1 step")
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
        """Guarantee of the forecasts that are `step` steps ahead."""
        if not 1 <= step <= len(self._games):
            raise ValueError(f"expected a step ahead from 1 to {len(self._games)}, got {short(step)}")
        return self._games[step - 1].recalibrator.guarantee

    @property
    @locked
    def pending(self) -> int:
        """Number of pending rounds, over all steps ahead."""
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
        forecasts = self._issue(
            self.model.forecast(horizon=as_count(horizon, "a horizon of at least 1 step"), xs=xs, **kwargs), xs
        )
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
