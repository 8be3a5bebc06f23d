"""River: regressors, classifiers and forecasters whose forecasts stay calibrated (extra ``orcast[river]``).

Wrap the whole model, and use it as any other of River's:

    model = Recalibrated(preprocessing.StandardScaler() | linear_model.LinearRegression(), low=0, high=100)

An outcome is scored against the forecast that was issued for it.  ``learn_one(x, y)`` looks for the last forecast that
was asked for the same features ``x``, however long ago; where there is none it makes one, before the model learns.
Forecasts that are never learnt from are given up (:class:`Recalibrated` says when).
"""

from __future__ import annotations

import inspect
import math
import pickle
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

try:
    from river import base, conf, proba, time_series
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "river":
        raise
    raise ImportError("expected the extra orcast[river] to be installed, got no river") from None

from orcast.adapters import Normal, expert_row
from orcast.checks import number, short
from orcast.forecasts import Forecast
from orcast.game import Forecaster, _say
from orcast.integrations._shared import Features, Residuals, space_of
from orcast.ledger import OVERDRAFT, Guarantee
from orcast.oracles import Committee, Engine, Oracle
from orcast.payoffs import Payoff
from orcast.plain import plain_features
from orcast.spaces import Binary, Labels, Space

__all__ = ["ForecastDistribution", "Recalibrated", "RecalibratedClassifier", "RecalibratedForecaster"]

# A forecast waits for this many outcomes of others, and twice the longest wait that ended well, which fades.
PATIENCE = 100
FADE = 0.99
# So many outcomes in a row whose forecast was made for other features are no accident.
ASTRAY = 10


class ForecastDistribution(proba.base.ContinuousDistribution):
    """A forecast as River's distributions are: when called, the density; ``cdf``, ``mode``, ``mu``, ``sigma``.

    ``forecast`` is the :class:`orcast.Forecast` itself, with all its methods; ``n_samples`` is how many outcomes it was
    calibrated on.

    >>> import orcast as oc
    >>> p = ForecastDistribution(oc.Forecast([0, 1], [1, 3], [0.5, 0.5]), seed=1)
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


# --- rounds that wait


class _Issued:
    """A forecast, its round, what it was made for and around, and how many outcomes were known then."""

    __slots__ = ("forecast", "key", "known", "name", "page", "point", "reserves", "x")

    def __init__(self, page: Any, forecast: Any, point: float, known: int, x: Any, name: Hashable) -> None:
        self.page = page
        self.forecast = forecast
        self.point = point
        self.known = known
        self.x = x
        self.name = name
        self.key: Hashable = None  # what it is looked up by, once it is not the newest
        self.reserves = 0.0  # of the slack, while it is expected


class _Desk:
    """A game and the forecasts that wait for their outcome.

    The newest is kept apart: its outcome usually comes next, and to compare features costs less than to hash them.

    Rounds that are expected to end make later ones careful, and reserve some of what these may risk.  So only as many
    are expected as the lags of past outcomes suggest; the rounds before these are parked: they are scored if their
    outcome comes after all, and given up in the end.
    """

    __slots__ = (
        "_astray",
        "_expected",
        "_longest",
        "_missed",
        "_most",
        "_newest",
        "_parked",
        "_reserved",
        "_settled",
        "game",
        "known",
    )

    def __init__(self, game: Forecaster, most: int) -> None:
        self.game = game
        self.known = 0
        self._newest: _Issued | None = None
        self._expected: dict[Hashable, _Issued] = {}
        self._parked: dict[Hashable, _Issued] = {}
        self._reserved = 0.0
        self._most = most
        self._longest = math.inf  # outcomes of others between a forecast and its own, at most; an old maximum fades
        self._astray = self._missed = 0  # outcomes in a row that went astray, and what was known at the last
        self._settled: Any = None  # the features that were learnt last

    def __len__(self) -> int:
        return len(self._expected) + len(self._parked) + (self._newest is not None)

    def find(self, x: Any, name: Hashable) -> _Issued | None:
        """The forecast that waits for the outcome of these features, or of a named round."""
        newest = self._newest
        if newest is not None and newest.name == name and (name is not None or _same(newest.x, x)):
            return newest
        if not (self._expected or self._parked):
            return None
        key = _key(x) if name is None else (name,)
        return self._expected.get(key) or self._parked.get(key)

    def issue(self, old: _Issued | None, told: object, point: float, features: Any, x: Any, name: Hashable) -> _Issued:
        """A new round, in place of an old one for the same if there is one."""
        row, _ = expert_row(told, self.game.space)
        if features is not None:
            features = plain_features(features)
        if self._newest is not None:
            self._make_way(self._newest)
        engine = self.game._engine
        page = engine.predict(row[None, :], features, pending=float(len(self._expected)), reserved=self._reserved)
        entry = _Issued(page, engine.forecast(page), point, self.known, x.copy() if type(x) is dict else x, name)
        if old is not None:
            self._forget(old)
        self._newest = entry
        while (self._parked or self._expected) and len(self) > self._most:
            self._forget(next(iter((self._parked or self._expected).values())))
        return entry

    def _make_way(self, newest: _Issued) -> None:
        """The newest becomes one of those that are expected, and the oldest of them are parked."""
        newest.key = _key(newest.x) if newest.name is None else (newest.name,)
        for others in (self._expected, self._parked):
            if newest.key in others:  # features that are not equal to themselves
                self._forget(others[newest.key])
        self._newest = None
        newest.reserves = float(newest.page.note[OVERDRAFT])
        self._reserved += newest.reserves
        self._expected[newest.key] = newest
        self._park()

    def _park(self) -> None:
        """Rounds that are too many, or too old, to be expected."""
        usual = 2.0 * self._longest
        while self._expected:
            oldest = next(iter(self._expected.values()))
            if len(self._expected) <= usual and self.known - oldest.known <= usual:
                break
            self._forget(oldest)
            self._parked[oldest.key] = oldest

    def settle(self, entry: _Issued, outcome: Any) -> None:
        """The outcome of a round, and the end of those that have waited too long."""
        self._forget(entry)
        reserved = self._reserved
        if self._newest is not None:
            reserved += float(self._newest.page.note[OVERDRAFT])
        self.game._engine.update(entry.page, outcome, reserved=reserved)
        self._settled = entry.x
        if entry.known:  # before the first outcome of all, no lag could be seen
            longest = FADE * self._longest if self._longest < math.inf else 0.0
            self._longest = max(longest, float(self.known - entry.known))
        self.known += 1
        if self._expected:
            self._park()
        while self._parked:
            oldest = next(iter(self._parked.values()))
            if self.known - oldest.known <= PATIENCE + 2.0 * self._longest:
                break
            self._forget(oldest)

    def _forget(self, entry: _Issued) -> None:
        if entry is self._newest:
            self._newest = None
        elif self._parked.get(entry.key) is entry:
            del self._parked[entry.key]
        else:
            del self._expected[entry.key]
            # not by subtraction alone: nothing must be left of it when none is expected
            self._reserved = max(self._reserved - entry.reserves, 0.0) if self._expected else 0.0

    def __getstate__(self) -> dict[str, Any]:
        # the parts of a round may be closures, so it goes as its arrays and its engine makes it anew
        state = {name: getattr(self, name) for name in self.__slots__}
        state["_newest"] = None if self._newest is None else _plain(self._newest)
        for name in ("_expected", "_parked"):
            state[name] = [_plain(entry) for entry in state[name].values()]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        engine = state["game"]._engine
        newest = state["_newest"]
        rounds = {name: [_from_plain(data, engine) for data in state[name]] for name in ("_expected", "_parked")}
        waiting = {name: {entry.key: entry for entry in entries} for name, entries in rounds.items()}
        for name, value in {**state, **waiting}.items():
            setattr(self, name, value)
        self._newest = None if newest is None else _from_plain(newest, engine)

    def look_out(self, x: Any) -> None:
        """Say it, once, if outcomes keep coming with other features than the forecast just before them."""
        newest = self._newest
        if newest is None or newest.known != self.known or newest.name is not None or _same(newest.x, self._settled):
            return
        if not (isinstance(x, Mapping) and isinstance(newest.x, Mapping) and x.keys() == newest.x.keys()):
            return
        if self._astray < ASTRAY:
            self._astray = self._astray + 1 if self._missed == self.known - 1 else 1
            self._missed = self.known
            if self._astray == ASTRAY:
                _say(
                    f"{ASTRAY} outcomes in a row came with other features than the forecasts just before them, and "
                    "were scored against forecasts of their own; in a pipeline wrap all of it, "
                    "Recalibrated(scaler | model), or name the rounds with id= (said once)",
                    UserWarning,
                )


def _plain(entry: _Issued) -> dict[str, Any]:
    fields = {name: getattr(entry, name) for name in entry.__slots__ if name not in ("page", "forecast")}
    arrays = {name: array.copy() for name, array in entry.page.arrays().items()}
    return {**fields, "page": (arrays, getattr(entry.page, "features", None))}


def _from_plain(data: dict[str, Any], engine: Engine) -> _Issued:
    entry = _Issued.__new__(_Issued)
    page = engine.restored_page(*data["page"])
    for name, value in {**data, "page": page, "forecast": engine.forecast(page)}.items():
        setattr(entry, name, value)
    return entry


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays among the features
        return _key(one) == _key(other)


def _key(x: Any) -> Hashable:
    """Features as something to look them up by: equal ones are the same, in any order."""
    try:
        return frozenset(x.items())
    except (AttributeError, TypeError):
        pass
    if isinstance(x, Mapping):
        return frozenset((name, pickle.dumps(value)) for name, value in x.items())
    return x if isinstance(x, Hashable) else pickle.dumps(x)


def _game(
    space: Space,
    payoff: Payoff | None,
    oracle: Oracle | None,
    memory: float | None,
    outside: str = "raise",
    most: int = 1000,
) -> Forecaster:
    """What a Recalibrator plays."""
    oracle = Committee() if oracle is None else oracle
    return Forecaster(space, payoff, oracle=oracle, memory=memory, outside=outside, max_pending=most)


def _most(max_pending: object) -> int:
    if isinstance(max_pending, bool) or not isinstance(max_pending, int) or max_pending < 1:
        raise ValueError(f"expected max_pending of at least 1, got {short(max_pending)}")
    return max_pending


def _with(model: Any, *methods: str, what: str) -> Any:
    """The model, if it can do what is asked of it."""
    if isinstance(model, type) or not all(hasattr(model, method) for method in methods):
        raise TypeError(f"expected a River {what} with {' and '.join(methods)}, got {short(model)}")
    return model


def _says_distributions(model: Any) -> bool:
    """Whether ``predict_one`` has River's option ``with_dist``; of a pipeline its last step's."""
    while hasattr(model, "_last_step"):
        model = model._last_step
    try:
        return "with_dist" in inspect.signature(model.predict_one).parameters
    except (TypeError, ValueError):
        return False


def _said(distribution: Any) -> object:
    """A distribution of River's as a forecast: Gaussian if it has ``mu`` and ``sigma``, else by ``ppf`` or ``cdf``."""
    mu, sigma = getattr(distribution, "mu", None), getattr(distribution, "sigma", None)
    if hasattr(distribution, "ppf") or not (isinstance(mu, (int, float)) and isinstance(sigma, (int, float))):
        return distribution
    return Normal(mu, sigma)


def _shown(p: Forecast, rounds: int, level: float, with_dist: bool, with_interval: bool) -> Any:
    """A forecast as it was asked for."""
    if with_dist:
        if with_interval:
            raise ValueError("expected with_dist or with_interval, got both")
        return ForecastDistribution(p, rounds)
    return conf.Interval(*p.interval(level)) if with_interval else p.mean()


# --- the wrappers


class Recalibrated(base.Wrapper[base.Regressor], base.Regressor):
    """A regressor around any regressor of River's, whose forecasts stay calibrated on any stream.

    ``predict_one(x)`` is the mean of the calibrated forecast, ``predict_one(x, with_dist=True)`` the whole of it (a
    :class:`ForecastDistribution`), ``predict_one(x, with_interval=True)`` River's interval at the ``confidence_level``.
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
        self.model = _with(model, "learn_one", "predict_one", what="regressor")
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window, self.max_pending = window, _most(max_pending)
        self._space = space_of(low, high)
        self._desk = _Desk(_game(self._space, payoff, oracle, memory, outside), max_pending)
        self._features = Features(payoff) or None  # None: no payoff looks at them
        self._residuals = Residuals(window)
        self._distributions = _says_distributions(model)

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
        desk = self._desk
        entry = desk.find(x, id)
        if entry is None or entry.known != desk.known or kwargs or id is not None:
            entry = self._issue(entry, x, id, kwargs)
        return _shown(entry.forecast, desk.known, self.confidence_level, with_dist, with_interval)

    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.RegTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Score the forecast that was issued for ``x``, and teach the model."""
        outcome = self._space.outcome(y, self.outside)
        desk = self._desk
        entry = desk.find(x, id)
        if entry is None:
            desk.look_out(x)
            entry = self._issue(None, x, id, {})
        self.model.learn_one(x, y, **kwargs)
        desk.settle(entry, outcome)
        if not self._distributions:
            self._residuals.add(outcome - entry.point)

    def _issue(self, old: _Issued | None, x: Any, name: Hashable, kwargs: Any) -> _Issued:
        told: Any
        if self._distributions:
            told, point = _said(self.model.predict_one(x, with_dist=True, **kwargs)), 0.0
        else:
            told = self._residuals.around(self.model.predict_one(x, **kwargs), self._space)
            point = told.mean
        return self._desk.issue(old, told, point, self._features and self._features.of(x), x, name)


class RecalibratedClassifier(base.Wrapper[base.Classifier], base.Classifier):
    """A classifier around any classifier of River's, whose probabilities stay calibrated on any stream.

    Around a binary classifier the outcomes are True and False.  Around any other they are the ``labels``.  Without
    these they are the labels that have come so far, and each new one begins a new game, with a new guarantee: name them
    if you can.  A model that says labels only is taken to be sure of them.  ``payoff``, ``oracle`` and ``memory`` are
    those of :class:`orcast.Recalibrator`; of two labels, in their order, the game is about the second (``Binary``).

    ``learn_one(x, y)``, ``id=`` and ``max_pending`` are as for :class:`Recalibrated`.

    >>> from river import datasets, linear_model, metrics, preprocessing
    >>> model = RecalibratedClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
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
        self.model = _with(model, "learn_one", "predict_one", what="classifier")
        self.labels = labels
        self.payoff, self.oracle, self.memory = payoff, oracle, memory
        self.max_pending = _most(max_pending)
        self._grows = labels is None and self._multiclass
        self._known: tuple[Any, ...] = ()
        self._places: dict[Any, int] = {}
        self._desk: _Desk | None = None
        if labels is not None:
            self._begin(Labels(labels).labels)
        elif not self._grows:
            self._begin((False, True))
        self._features = Features(payoff) or None

    def _begin(self, labels: tuple[Any, ...]) -> None:
        """A game with these labels; with fewer than two there is nothing to forecast."""
        if len(labels) > 1:
            space = Binary() if len(labels) == 2 else Labels(labels)
            game = _game(space, self.payoff, self.oracle, self.memory)
            self._desk = _Desk(game, self.max_pending)
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
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, since the last new label."""
        if self._desk is None:
            raise ValueError(f"expected two labels or more, got {len(self._known)} so far")
        return self._desk.game.guarantee

    @property
    def pending(self) -> int:
        """How many forecasts wait for their outcome."""
        return 0 if self._desk is None else len(self._desk)

    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], *, id: Hashable = None, **kwargs: Any
    ) -> dict[base.typing.ClfTarget, float]:
        """The calibrated probability of each label."""
        desk = self._desk
        if desk is None:
            return dict.fromkeys(self._known, 1.0)
        entry = desk.find(x, id)
        if entry is None or entry.known != desk.known or kwargs or id is not None:
            entry = self._issue(desk, entry, x, id, kwargs)
        if len(self._known) == 2:
            no, yes = self._known
            p = float(entry.forecast)
            return {no: 1.0 - p, yes: p}
        return dict(zip(self._known, entry.forecast.mass.tolist(), strict=True))

    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.ClfTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Score the forecast that was issued for ``x``, and teach the model."""
        place = self._places.get(y)
        if place is None:
            place = self._new(y)
        desk = self._desk
        if desk is None:
            self.model.learn_one(x, y, **kwargs)
            return
        entry = desk.find(x, id)
        if entry is None:
            desk.look_out(x)
            entry = self._issue(desk, None, x, id, {})
        self.model.learn_one(x, y, **kwargs)
        desk.settle(entry, place)

    def _new(self, y: Any) -> int:
        """The place of a label that was not known: it begins a new game."""
        label = y.item() if isinstance(y, np.generic) else y
        if not self._grows:
            raise ValueError(f"expected one of the labels {short(list(self._known))}, got {short(label)}")
        self._begin((*self._known, label))
        return len(self._known) - 1

    def _issue(self, desk: _Desk, old: _Issued | None, x: Any, name: Hashable, kwargs: Any) -> _Issued:
        try:
            said = self.model.predict_proba_one(x, **kwargs)
        except NotImplementedError:
            said = {self.model.predict_one(x, **kwargs): 1.0}
        told: Any
        if len(self._known) == 2:
            no, yes = self._known
            p, q = said.get(yes, 0.0), said.get(no, 0.0)
            told = p / (p + q) if p + q > 0.0 else 0.5
        else:
            masses = [said.get(label, 0.0) for label in self._known]
            total = sum(masses)
            told = [mass / total if total > 0.0 else 1.0 / len(masses) for mass in masses]
        return desk.issue(old, told, 0.0, self._features and self._features.of(x), x, name)


class _Step:
    """The game of one step ahead: rounds by the time they are about, and the points they were made around."""

    __slots__ = ("game", "points", "residuals")

    def __init__(self, game: Forecaster, residuals: Residuals) -> None:
        self.game, self.residuals = game, residuals
        self.points: dict[int, float] = {}


class RecalibratedForecaster(base.Wrapper[time_series.base.Forecaster], time_series.base.Forecaster):
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
    >>> model = RecalibratedForecaster(time_series.HoltWinters(0.3, 0.1, 0.6, 12, True), low=0, horizon=12)
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
        self.model = _with(model, "learn_one", "forecast", what="forecaster")
        self.low, self.high, self.horizon = low, high, _steps(horizon)
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.confidence_level = number(confidence_level, "confidence_level", 0.0, 1.0)
        self.window = window
        self._space = space_of(low, high)
        self._steps: list[_Step] = []
        self._time = 0
        self._asked = False
        self._step(1)
        self._features = Features(payoff) or None

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
            _shown(p, step.game.guarantee.rounds if with_dist else 0, self.confidence_level, with_dist, with_interval)
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

    def _step(self, ahead: int) -> _Step:
        """The game of a step ahead; a farther one is begun when it is first asked for."""
        while len(self._steps) < ahead:
            most = len(self._steps) + 1
            game = _game(self._space, self.payoff, self.oracle, self.memory, self.outside, most)
            self._steps.append(_Step(game, Residuals(self.window)))
        return self._steps[ahead - 1]


def _steps(horizon: object) -> int:
    if isinstance(horizon, bool) or not isinstance(horizon, (int, np.integer)) or horizon < 1:
        raise ValueError(f"expected a horizon of at least 1 step, got {short(horizon)}")
    return int(horizon)
