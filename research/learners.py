"""Base forecasters of the comparison and of the paper's experiments; each uses only outcomes that it could know.

A forecaster of the comparison is called with a `Task` and returns quantiles, members or probabilities, a row for each
row. The experiments ask for streams of one-step or day-ahead normal forecasts: `stream` and `day_ahead`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from orcast.adapters import Ensemble, Normal
from orcast.datasets import LAGS, ForecastStream, Series, residual_scale, seasonal_naive, standardised
from research.output import optional

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

PRIOR = 2.0  # weight of past changes, in errors, in the first estimates of a spread
FEW = 20  # fewer errors than this are taken as normal
FAR = 5.0  # given features are clipped there, in deviations of the values in sight at first
DAMPING = 0.95


class Task(NamedTuple):
    """Forecasts that are asked for, in the order of issue; rows of one `game` share a history of errors.

    `x` are features of each value, known before it. With a `threshold` the outcome is 1 for a value above it, else 0.
    """

    y: Array
    seen: Whole
    target: Whole
    game: Whole
    period: int = 1
    levels: Array = np.empty(0)
    x: Array | None = None
    threshold: float | None = None

    @property
    def outcome(self) -> Array:
        """Outcome of each row."""
        values = self.y[self.target]
        return values if self.threshold is None else (values > self.threshold).astype(np.float64)

    @property
    def lead(self) -> Whole:
        """Steps from the last value in sight to the target."""
        return self.target - self.seen + 1

    def games(self) -> Iterator[Whole]:
        """Rows of each game."""
        for game in np.unique(self.game):
            yield np.flatnonzero(self.game == game)


Expert = Callable[[Task], Array]


def in_sight(task: Task, rows: Whole) -> Whole:
    """Number of first rows of a game whose outcomes each of its rows may use."""
    return np.searchsorted(task.target[rows], task.seen[rows])


def last_season(task: Task, period: int) -> Array:
    """Latest value in sight at the same place of the season."""
    return np.asarray(task.y[task.target - -(-task.lead // period) * period])


# --- points with the spread of their past errors ---


def past_spread(task: Task, mu: Array, window: int) -> Array:
    """Root mean square of the last `window` errors in sight of each row's game; at first of changes over the lead."""
    sd, errors = np.empty(mu.size), np.square(task.y[task.target] - mu)
    for rows in task.games():
        start, lead = int(task.seen[rows[0]]), int(task.lead[rows[0]])
        changes = task.y[lead:start] - task.y[: max(start - lead, 0)]
        before = np.mean(np.square(changes)) if changes.size else np.var(task.y[:start])
        total = np.concatenate(([0.0], np.cumsum(errors[rows])))
        stop = in_sight(task, rows)
        begin = np.maximum(stop - window, 0)
        sd[rows] = np.sqrt((total[stop] - total[begin] + PRIOR * before) / (stop - begin + PRIOR))
    return sd


def past_quantiles(task: Task, mu: Array, window: int) -> Array:
    """Quantiles of the last `window` errors in sight of each row's game; normal ones where errors are few."""
    out = past_spread(task, mu, window)[:, None] * ndtri(task.levels)
    errors = task.y[task.target] - mu
    for rows in task.games():
        for row, stop in zip(rows, in_sight(task, rows), strict=True):
            if stop >= FEW:
                known = errors[rows[max(stop - window, 0) : stop]]
                out[row] = np.quantile(known, task.levels, method="hazen")
    return np.asarray(out)


@dataclass(frozen=True)
class Point(ABC):
    """Point forecast with the spread of its own past errors, times `factor`: below 1 it is too narrow.

    For an event the forecast is the probability that such a normal distribution gives to values above the threshold.
    """

    window: int = field(default=200, kw_only=True)
    factor: float = field(default=1.0, kw_only=True)
    empirical: bool = field(default=False, kw_only=True)

    @abstractmethod
    def points(self, task: Task) -> Array:
        """Point forecasts."""

    def __call__(self, task: Task) -> Array:
        """Quantiles, or probabilities of an event."""
        mu = self.points(task)
        if task.threshold is not None:
            return np.asarray(ndtr((mu - task.threshold) / (self.factor * past_spread(task, mu, self.window))))
        if self.empirical:
            return np.asarray(mu[:, None] + self.factor * past_quantiles(task, mu, self.window))
        return np.asarray(mu[:, None] + self.factor * past_spread(task, mu, self.window)[:, None] * ndtri(task.levels))


@dataclass(frozen=True)
class Naive(Point):
    """Value a season ago; a `period` of 1 is the last value."""

    period: int | None = None

    def points(self, task: Task) -> Array:
        """Values a season before."""
        return last_season(task, self.period or task.period)


@dataclass(frozen=True)
class Smoothing(Point):
    """Additive exponential smoothing with a damped trend and a season, fitted once to the values in sight at first.

    Reference: Hyndman and Athanasopoulos, "Forecasting: Principles and Practice", chapter 8.
    """

    period: int | None = None

    def points(self, task: Task) -> Array:
        """Forecasts by level, trend and season at the time of issue."""
        start, period = int(task.seen[0]), self.period or task.period
        grid = product((0.1, 0.4, 0.8), (0.0, 0.05), (0.05, 0.3) if period > 1 else (0.0,))
        alpha, beta, gamma = min(
            grid, key=lambda each: float(np.square(_smoothed(task.y[:start], period, *each)[3]).sum())
        )
        level, trend, season, _ = _smoothed(task.y, period, alpha, beta, gamma)
        at = task.seen - 1
        damped = DAMPING * (1.0 - DAMPING**task.lead) / (1.0 - DAMPING)
        # row t of `season` is the season after value t
        return np.asarray(level[at] + damped * trend[at] + season[at, task.target % period])


def _smoothed(y: Array, period: int, alpha: float, beta: float, gamma: float) -> tuple[Array, Array, Array, Array]:
    """Level, trend and season after each value, and its error; the first season is the start."""
    level, trend, season, errors = np.zeros(y.size), np.zeros(y.size), np.zeros((y.size, period)), np.zeros(y.size)
    count = min(period, y.size)
    now, slope, wave = float(y[:count].mean()), 0.0, np.zeros(period)
    wave[:count] = y[:count] - now
    for t, value in enumerate(y.tolist()):
        if t < count and period > 1:
            # before the first season is over only its first values may be used
            level[t], season[t] = value, 0.0
            continue
        place = t % period
        error = value - (now + DAMPING * slope + wave[place])
        now, slope = now + DAMPING * slope + alpha * error, DAMPING * slope + alpha * beta * error
        wave[place] += gamma * (1.0 - alpha) * error
        level[t], trend[t], season[t], errors[t] = now, slope, wave, error
    return level, trend, season, errors


# --- distributions and ensembles ---


@dataclass(frozen=True)
class Climatology:
    """Quantiles of the last `window` values in sight at the same place of the season."""

    window: int = 1000
    period: int | None = None

    def __call__(self, task: Task) -> Array:
        """Quantiles."""
        out, period = np.empty((task.target.size, task.levels.size)), self.period or task.period
        for row, (seen, target) in enumerate(zip(task.seen, task.target, strict=True)):
            past = task.y[target % period : seen : period][-self.window :]
            out[row] = np.quantile(past, task.levels, method="hazen")
        return out


@dataclass(frozen=True)
class Analogs:
    """Ensemble of the changes that followed the most similar pasts, added to the last value."""

    members: int = 30
    lags: int = 6

    def __call__(self, task: Task) -> Array:
        """Members."""
        out, y = np.empty((task.target.size, self.members)), task.y
        pasts = np.lib.stride_tricks.sliding_window_view(y, self.lags)
        scale = y[: task.seen[0]].std() or 1.0
        season = 2.0 * np.pi * np.arange(y.size) / task.period
        for row, (seen, lead) in enumerate(zip(task.seen, task.lead, strict=True)):
            # a past that ends in value i is followed by value i + lead, which must be in sight
            count = seen - lead - self.lags + 1
            ends = np.arange(max(count, 1)) + self.lags - 1
            apart = np.square((pasts[: ends.size] - pasts[seen - self.lags]) / scale).sum(axis=1)
            if task.period > 1:
                apart += self.lags * (1.0 - np.cos(season[ends] - season[seen - 1]))
            near = ends[np.argsort(apart, kind="stable")[: self.members]]
            found = y[seen - 1] + y[np.minimum(near + lead, seen - 1)] - y[near]
            out[row] = np.resize(found, self.members)
        return np.sort(out, axis=1)


@dataclass(frozen=True)
class Bootstrap:
    """Ensemble around a point forecast: errors drawn from the last `window` in sight, times `factor`."""

    point: Point
    members: int = 20
    window: int = 200
    factor: float = 1.0

    def __call__(self, task: Task) -> Array:
        """Members."""
        mu = self.point.points(task)
        sd, errors = past_spread(task, mu, self.window), task.y[task.target] - mu
        out = np.empty((task.target.size, self.members))
        for rows in task.games():
            for row, stop in zip(rows, in_sight(task, rows), strict=True):
                rng = np.random.default_rng([int(task.target[row]), int(task.game[row])])
                known = errors[rows[max(stop - self.window, 0) : stop]]
                drawn = rng.normal(0.0, sd[row], self.members) if stop < FEW else rng.choice(known, self.members)
                out[row] = mu[row] + self.factor * drawn
        return np.sort(out, axis=1)


@dataclass(frozen=True)
class BaseRate:
    """Frequency of the event so far, at the same place of the season."""

    def __call__(self, task: Task) -> Array:
        """Probabilities."""
        yes = task.y if task.threshold is None else (task.y > task.threshold).astype(np.float64)
        out = np.empty(task.target.size)
        for row, (seen, target) in enumerate(zip(task.seen, task.target, strict=True)):
            same = yes[target % task.period : seen : task.period]
            out[row] = (same.sum() + 0.5) / (same.size + 1.0)
        return out


# --- online learners ---


class Learner(Protocol):
    """Model that is updated one outcome at a time."""

    def predict(self, x: Array) -> float:
        """Forecast from features."""

    def update(self, x: Array, y: float) -> None:
        """Receive the outcome for the same features."""


class LeastSquares:
    """Recursive least squares with forgetting (Haykin, "Adaptive Filter Theory")."""

    def __init__(self, size: int, forgetting: float, prior: float = 1.0) -> None:
        self.w, self.p, self.forgetting = np.zeros(size), prior * np.eye(size), forgetting

    def predict(self, x: Array) -> float:
        """Linear forecast."""
        return float(self.w @ x)

    def update(self, x: Array, y: float) -> None:
        """One step of the recursion."""
        px = self.p @ x
        spare = self.forgetting + x @ px
        self.w += px * ((y - self.w @ x) / spare)
        self.p = (self.p - np.outer(px, px) / spare) / self.forgetting


class Logistic:
    """Logistic regression by gradient steps of constant size."""

    def __init__(self, size: int, rate: float) -> None:
        self.w, self.rate = np.zeros(size), rate

    def predict(self, x: Array) -> float:
        """Probability."""
        return float(1.0 / (1.0 + np.exp(-np.clip(self.w @ x, -30.0, 30.0))))

    def update(self, x: Array, y: float) -> None:
        """One step along the gradient."""
        self.w += self.rate * (y - self.predict(x)) * x


class RiverModel:
    """Model of River on the first `size` features; of a classifier, the probability of True."""

    def __init__(self, model: Any, size: int, *, events: bool = False) -> None:
        self.model, self.size, self.events = model, size, events

    def predict(self, x: Array) -> float:
        """Forecast; a probability is 0.5 before the first update."""
        named = dict(enumerate(x[: self.size].tolist()))
        if not self.events:
            return float(self.model.predict_one(named))
        found = self.model.predict_proba_one(named)
        return float(found.get(True, 0.0 if found else 0.5))

    def update(self, x: Array, y: float) -> None:
        """Update the model."""
        self.model.learn_one(dict(enumerate(x[: self.size].tolist())), bool(y) if self.events else y)


class Network:
    """scikit-learn's network, one step of Adam for each outcome; it forecasts 0, the mean, before the first."""

    def __init__(self, seed: int) -> None:
        self.model = optional("sklearn.neural_network").MLPRegressor(random_state=seed)
        self.ready = False

    def predict(self, x: Array) -> float:
        """Forecast."""
        return float(self.model.predict(x[None])[0]) if self.ready else 0.0

    def update(self, x: Array, y: float) -> None:
        """One step of Adam."""
        self.model.partial_fit(x[None], np.array([y]))
        self.ready = True


def river_tree(kind: str, size: int, seed: int = 0) -> Learner:
    """Tree of River: "sgt" (SGTRegressor, not random) or "hat" (HoeffdingAdaptiveTreeRegressor)."""
    tree = optional("river.tree")
    return RiverModel(tree.SGTRegressor() if kind == "sgt" else tree.HoeffdingAdaptiveTreeRegressor(seed=seed), size)


def _units(task: Task) -> tuple[float, float]:
    """Mean and deviation of the values in sight at the first row."""
    first = task.y[: task.seen[0]]
    return float(first.mean()), float(first.std()) or 1.0


def lag_features(task: Task, lags: int) -> Array:
    """Features of each row: last values in sight, last value and place of the season, given features, and a one.

    Values are standardised by those in sight at the first row.
    """
    parts = []
    if lags:
        centre, scale = _units(task)
        places = np.maximum(task.seen[:, None] - 1 - np.arange(lags), 0)
        parts.append((task.y[places] - centre) / scale)
        if task.period > 1:
            parts.append((last_season(task, task.period)[:, None] - centre) / scale)
            turn = 2.0 * np.pi * task.target[:, None] / task.period
            parts += [np.sin(turn), np.cos(turn)]
    if task.x is not None:
        first = task.x[: max(task.seen[0], 2)]
        spread = first.std(axis=0)
        scaled = (task.x[task.target] - first.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        parts.append(np.clip(scaled, -FAR, FAR))
    return np.concatenate([*parts, np.ones((task.target.size, 1))], axis=1)


def run_online(task: Task, make: Callable[[int], Learner], lags: int, *, events: bool = False) -> Array:
    """Forecasts of one learner for each game, updated with the outcomes in sight, in their order."""
    x, y, out = lag_features(task, lags), task.outcome, np.empty(task.target.size)
    centre, scale = 0.0, 1.0
    if not events:
        y = task.y[task.target]
        centre, scale = _units(task)
    for rows in task.games():
        learner, done = make(x.shape[1]), 0
        for row, stop in zip(rows, in_sight(task, rows).tolist(), strict=True):
            for known in rows[done:stop]:
                learner.update(x[known], float((y[known] - centre) / scale))
            done = max(done, stop)
            out[row] = centre + scale * learner.predict(x[row])
    return out


@dataclass(frozen=True)
class Regression(Point):
    """Linear regression on the last values by recursive least squares, one for each game."""

    lags: int = 12
    forgetting: float = 1.0

    def points(self, task: Task) -> Array:
        """Linear forecasts."""
        return run_online(task, lambda size: LeastSquares(size, self.forgetting), self.lags)


@dataclass(frozen=True)
class RiverTree(Point):
    """Tree of River on the last values, see `river_tree`."""

    package: ClassVar[str] = "river"
    tree: str = "hat"
    lags: int = 12

    def points(self, task: Task) -> Array:
        """Forecasts of the tree."""
        return run_online(task, lambda size: river_tree(self.tree, size - 1), self.lags)


@dataclass(frozen=True)
class OnlineClassifier:
    """Probability of an event, updated row by row: "logistic" with steps of size `rate`, or River's "bayes", "tree"."""

    model: str = "logistic"
    rate: float = 0.05
    lags: int = 0

    @property
    def package(self) -> str | None:
        """Package that the model needs."""
        return None if self.model == "logistic" else "river"

    def _make(self, size: int) -> Learner:
        if self.model == "logistic":
            return Logistic(size, self.rate)
        if self.model == "bayes":
            return RiverModel(optional("river.naive_bayes").GaussianNB(), size - 1, events=True)
        return RiverModel(optional("river.tree").HoeffdingTreeClassifier(), size - 1, events=True)

    def __call__(self, task: Task) -> Array:
        """Probabilities."""
        return np.clip(run_online(task, self._make, self.lags, events=True), 0.0, 1.0)


# --- refitted learners ---


def refits(task: Task, every: int, least: int) -> Iterator[tuple[Whole, Whole]]:
    """Rows that one fit serves, with those whose outcomes it may use; the first fit needs `least` outcomes."""
    begin = 0
    while begin < task.target.size:
        known = np.flatnonzero(task.target < task.seen[begin])
        stop = begin + 1 if known.size < least else min(begin + every, task.target.size)
        # rows that are issued together have one fit
        stop = int(np.searchsorted(task.seen, task.seen[stop - 1], side="right"))
        yield np.arange(begin, stop), known
        begin = stop


@dataclass(frozen=True)
class BoostedQuantiles:
    """Gradient-boosted trees, one for each level, refitted after `every` rows to all outcomes in sight.

    All horizons are in one model, of which the lead is a feature. `package` is "sklearn" or "lightgbm"; with `changes`
    the trees forecast the change from the last value.
    """

    package: str = "sklearn"
    every: int = 300
    lags: int = 6
    trees: int = 40
    least: int = 40
    changes: bool = False

    def __call__(self, task: Task) -> Array:
        """Quantiles."""
        x = np.column_stack((lag_features(task, self.lags)[:, :-1], task.lead))
        last = task.y[task.seen - 1] * self.changes
        y, out = task.y[task.target] - last, np.empty((task.target.size, task.levels.size))
        for rows, known in refits(task, self.every, self.least):
            if known.size < self.least:
                out[rows] = np.quantile(task.y[: task.seen[rows[0]]], task.levels) - last[rows, None]
                continue
            for k, level in enumerate(task.levels):
                out[rows, k] = self._model(level).fit(x[known], y[known]).predict(x[rows])
        return np.sort(out + last[:, None], axis=1)

    def _model(self, level: float) -> Any:
        options = {"n_estimators": self.trees, "alpha": level, "random_state": 0}
        if self.package == "lightgbm":
            light = {"num_leaves": 15, "learning_rate": 0.1, "deterministic": True, "num_threads": 1, "verbose": -1}
            return optional("lightgbm").LGBMRegressor(objective="quantile", **options, **light)
        own = {"loss": "quantile", "max_depth": 2, "learning_rate": 0.2, "subsample": 0.5}
        return optional("sklearn.ensemble").GradientBoostingRegressor(**options, **own)


@dataclass(frozen=True)
class Narrowed:
    """Another expert with a spread that would have held a share of the last outcomes in its 90% bands."""

    expert: Any
    holds: float = 0.8
    window: int = 150

    def __call__(self, task: Task) -> Array:
        """Quantiles; the factor is that of the last known rows of the game."""
        q = np.array(self.expert(task))
        low, middle, high = (q[:, int(np.abs(task.levels - level).argmin())] for level in (0.05, 0.5, 0.95))
        e = task.y[task.target] - middle
        # the least factor at which the band holds the outcome
        needed = np.where(e > 0.0, e / np.maximum(high - middle, 1e-12), e / np.minimum(low - middle, -1e-12))
        factor = np.full(e.size, ndtri(0.5 + self.holds / 2.0) / ndtri(0.95))
        for rows in task.games():
            for row, stop in zip(rows, in_sight(task, rows), strict=True):
                if stop >= FEW:
                    factor[row] = np.quantile(needed[rows[max(stop - self.window, 0) : stop]], self.holds)
        return np.asarray(middle[:, None] + factor[:, None] * (q - middle[:, None]))


# --- streams of the paper's experiments ---

LEARNERS: dict[str, Callable[[int], Learner] | None] = {
    "gradient-tree": lambda seed: river_tree("sgt", LAGS),
    "network": Network,
    "hoeffding-tree": lambda seed: river_tree("hat", LAGS, seed),
    "marginal": None,
}
"""Experts of the paper's first experiment in the order of its table, made from a seed, with default settings.

River has no network any more and deep-river needs PyTorch, so the network is scikit-learn's. "marginal" is the
distribution of all past outcomes.
"""
HOURS = 24
WARMUP_DAYS = 60
TREES = 20


@dataclass(frozen=True, eq=False)
class Gaussian(ForecastStream):
    """One-step-ahead normal forecasts, also as objects that a recalibrator takes."""

    def forecasts(self) -> Iterator[Normal]:
        """Forecasts of all rounds."""
        return (Normal(mu, sd) for mu, sd in zip(self.mu.tolist(), self.sd.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Marginal(ForecastStream):
    """All values before a round as its forecast; `past` are those before the first round.

    >>> s = Marginal.of("toy", [0.0, 0.0, 4.0], [8.0, 4.0], 0.0, 10.0)
    >>> s.mu.round(2), s.quantile([0.3, 0.5]), list(s.forecasts())[1]
    (array([1.33, 3.  ]), array([[0., 0.],
           [0., 2.]]), Ensemble([0.0, 0.0, 4.0, 8.0]))
    """

    past: Array

    @classmethod
    def of(cls, name: str, past: ArrayLike, y: ArrayLike, low: float, high: float) -> Marginal:
        """Stream of the outcomes y after past values; mu and sd are mean and deviation of the forecasts."""
        before, after = np.asarray(past, dtype=np.float64), np.asarray(y, dtype=np.float64)
        whole = np.concatenate((before, after))
        rounds = range(before.size, whole.size)
        mu = np.array([whole[:t].mean() for t in rounds])
        sd = np.array([whole[:t].std() for t in rounds])
        return cls(name, mu, sd, after, low, high, before)

    def forecasts(self) -> Iterator[Ensemble]:
        """Forecasts of all rounds."""
        whole = np.concatenate((self.past, self.y))
        return (Ensemble(whole[:t]) for t in range(self.past.size, whole.size))

    def quantile(self, levels: ArrayLike) -> Array:
        """Quantiles of the past values, rounds by levels, clipped to the interval."""
        quantiles: Array = np.array([forecast.quantile(np.ravel(levels)) for forecast in self.forecasts()])
        return np.clip(quantiles, self.low, self.high, out=quantiles)


def stream(
    series: Series, learner: str, *, steps: int = 1000, warmup: int = 1000, seed: int = 0
) -> Gaussian | Marginal:
    """One-step-ahead forecasts of a series by one of `LEARNERS`: `steps` rounds after 24 lags and `warmup` rounds.

    The features are the last 24 values; values are standardised by those before the first step. Forecasts are normal
    around the learner's, with the root mean square of the last 500 residuals as deviation (`residual_scale`). The
    paper (section 6, experiment 1) states neither the warm-up nor how a number becomes a distribution.
    """
    if learner not in LEARNERS:
        raise ValueError(f"expected one of {', '.join(LEARNERS)}, got {learner!r}")
    first = LAGS + warmup
    if min(steps, warmup - 1) < 1:
        raise ValueError(f"expected at least 1 step and 2 rounds of warm-up, got {steps} and {warmup}")
    if len(series) < first + steps:
        raise ValueError(f"expected a series of at least {first + steps} values, got {len(series)}")
    name, y = f"{series.name}/{learner}", series.values[: first + steps]
    make = LEARNERS[learner]
    if make is None:
        return Marginal.of(name, y[:first], y[first:], series.low, series.high)
    z, centre, scale = standardised(y, first)
    model, points = make(seed), np.full(y.size, np.nan)
    for t in range(LAGS, y.size):
        x = z[t - LAGS : t]
        points[t] = model.predict(x)
        model.update(x, float(z[t]))
    mu = np.clip(centre + scale * points, series.low, series.high)
    sd = residual_scale(y, mu)
    return Gaussian(name, mu[first:], sd[first:], y[first:], series.low, series.high)


def last_outcome(series: Series, *, steps: int = 1000, warmup: int = 1000) -> Gaussian:
    """Forecast around the last outcome, with the spread of the last 500 changes, for the rounds of `stream`."""
    first = LAGS + warmup
    y = series.values[: first + steps]
    mu, sd = seasonal_naive(y, 1)
    return Gaussian(f"{series.name}/last-outcome", mu[first:], sd[first:], y[first:], series.low, series.high)


@dataclass(frozen=True, eq=False)
class Days(ForecastStream):
    """Normal forecasts of the 24 hours of each day, made before the day: all arrays are days by hours."""

    def hour(self, hour: int) -> Gaussian:
        """One hour of each day as a stream."""
        return Gaussian(f"{self.name}/{hour}", self.mu[:, hour], self.sd[:, hour], self.y[:, hour], self.low, self.high)


def day_ahead(
    series: Series, *, days: int | None = None, warmup: int = WARMUP_DAYS, trees: int = TREES, seed: int = 0
) -> Days:
    """Forecast the 24 hours of a day from those of the day before by bagged trees (paper, section 6, experiment 3).

    Before each day `trees` trees with three days or more in a leaf are fitted to all past days. Fitting begins half-way
    through the warm-up, so that there are residuals for the deviations, which are by the hour. River's online bagging
    of Hoeffding trees takes longer for 24 outputs and has larger errors.
    """
    bagging, tree = optional("sklearn.ensemble").BaggingRegressor, optional("sklearn.tree").DecisionTreeRegressor
    y = _by_day(series, days, warmup)
    mu = np.full(y.shape, np.nan)
    for day in range(warmup // 2, len(y)):
        model = bagging(tree(min_samples_leaf=3), n_estimators=trees, random_state=seed)
        mu[day] = model.fit(y[: day - 1], y[1:day]).predict(y[day - 1 : day])[0]
    return _days("bagged-trees", series, np.clip(mu, series.low, series.high), y, warmup)


def last_outcome_days(series: Series, *, days: int | None = None, warmup: int = WARMUP_DAYS) -> Days:
    """Forecast around the last outcome before a day, with its spread by the hour, for the days of `day_ahead`."""
    y = _by_day(series, days, warmup)
    mu = np.full(y.shape, np.nan)
    mu[1:] = y[:-1, -1:]
    return _days("last-outcome", series, mu, y, warmup)


def _by_day(series: Series, days: int | None, warmup: int) -> Array:
    """Values of the warm-up and of the days after it, days by hours."""
    whole = len(series) // HOURS
    last = whole if days is None else warmup + days
    if not 4 <= warmup < last <= whole:
        raise ValueError(f"expected a series of at least {max(last, warmup + 1)} days, got {whole}")
    return series.values[: last * HOURS].reshape(last, HOURS)


def _days(expert: str, series: Series, mu: Array, y: Array, warmup: int) -> Days:
    sd = np.stack([residual_scale(y[:, hour], mu[:, hour]) for hour in range(HOURS)], axis=1)
    return Days(f"{series.name}/{expert}", mu[warmup:], sd[warmup:], y[warmup:], series.low, series.high)
