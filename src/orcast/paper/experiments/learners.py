"""The paper's experts: online learners that forecast a series from its last 24 values, and one for the day ahead.

All are used with the settings that their libraries give them.  River and scikit-learn are imported when a learner is
made, not before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import Ensemble, Normal
from orcast.datasets import LAGS, ForecastStream, Series, residual_scale, seasonal_naive, standardised
from orcast.paper.experiments.data import needed

__all__ = [
    "LEARNERS",
    "MARGINAL",
    "Days",
    "Gaussian",
    "Learner",
    "Marginal",
    "day_ahead",
    "last_outcome",
    "last_outcome_days",
    "stream",
]

Vector = NDArray[np.float64]

STEPS = 1000
WARMUP = 1000
HOURS = 24
WARMUP_DAYS = 60
TREES = 20
LEAF = 3
MARGINAL = "marginal"


class Learner(Protocol):
    """What learns one round at a time: a point forecast from the features, then the outcome with the same features."""

    def predict(self, x: Vector) -> float:
        """The forecast."""

    def learn(self, x: Vector, y: float) -> None:
        """What came of it."""


class _Tree:
    """A regressor of River: features by name."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, x: Vector) -> float:
        return float(self._model.predict_one(dict(enumerate(x.tolist()))))

    def learn(self, x: Vector, y: float) -> None:
        self._model.learn_one(dict(enumerate(x.tolist())), y)


class _Network:
    """scikit-learn's network, one step of Adam an outcome; it forecasts 0, the mean, before the first."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._ready = False

    def predict(self, x: Vector) -> float:
        return float(self._model.predict(x[None])[0]) if self._ready else 0.0

    def learn(self, x: Vector, y: float) -> None:
        self._model.partial_fit(x[None], np.array([y]))
        self._ready = True


def _gradient_tree(seed: int) -> Learner:
    return _Tree(needed("river.tree", "stochastic gradient trees").SGTRegressor())  # nothing in it is random


def _hoeffding_tree(seed: int) -> Learner:
    return _Tree(needed("river.tree", "Hoeffding adaptive trees").HoeffdingAdaptiveTreeRegressor(seed=seed))


def _network(seed: int) -> Learner:
    return _Network(needed("sklearn.neural_network", "a neural network").MLPRegressor(random_state=seed))


LEARNERS: dict[str, Callable[[int], Learner] | None] = {
    "gradient-tree": _gradient_tree,
    "network": _network,
    "hoeffding-tree": _hoeffding_tree,
    MARGINAL: None,
}
"""The experts of the paper's first experiment by name, in the order of its table; each is made from a seed.

- `gradient-tree`: a stochastic gradient tree, River's `SGTRegressor` (Gouk et al. 2019);
- `network`: one hidden layer of 100 rectified units, scikit-learn's `MLPRegressor`, which learns each outcome by
  one step of Adam (`partial_fit`). River has no network of its own any more, and deep-river would bring PyTorch;
- `hoeffding-tree`: a Hoeffding adaptive tree with linear models in its leaves, River's
  `HoeffdingAdaptiveTreeRegressor` (Bifet and Gavalda 2009);
- `marginal`: the distribution of all past outcomes, which learns nothing (None).
"""


@dataclass(frozen=True, eq=False)
class Gaussian(ForecastStream):
    """One-step-ahead normal forecasts, each also as something that a recalibrator takes.

    Examples:
        >>> s = Gaussian("toy", np.array([1.0]), np.array([2.0]), np.array([0.5]), 0.0, 10.0)
        >>> list(s.forecasts())
        [Normal(mean=1.0, sd=2.0)]
    """

    def forecasts(self) -> Iterator[Normal]:
        """The forecasts of all rounds."""
        return (Normal(mu, sd) for mu, sd in zip(self.mu.tolist(), self.sd.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Marginal(ForecastStream):
    """All values before a round as its forecast; `past` are those before the first. No normal distribution.

    Examples:
        >>> s = Marginal.of("toy", [0.0, 0.0, 4.0], [8.0, 4.0], 0.0, 10.0)
        >>> s.mu.round(2), s.quantile([0.3, 0.5])
        (array([1.33, 3.  ]), array([[0., 0.],
                                     [0., 2.]]))
        >>> list(s.forecasts())[1]
        Ensemble([0.0, 0.0, 4.0, 8.0])
    """

    past: Vector

    @classmethod
    def of(cls, name: str, past: ArrayLike, y: ArrayLike, low: float, high: float) -> "Marginal":
        """The stream of the outcomes y after the past values; mu and sd are mean and deviation of the forecasts."""
        before, after = np.asarray(past, dtype=np.float64), np.asarray(y, dtype=np.float64)
        whole = np.concatenate((before, after))
        rounds = range(before.size, whole.size)
        mu = np.array([whole[:t].mean() for t in rounds])
        sd = np.array([whole[:t].std() for t in rounds])
        return cls(name, mu, sd, after, low, high, before)

    def forecasts(self) -> Iterator[Ensemble]:
        """The forecasts of all rounds."""
        whole = np.concatenate((self.past, self.y))
        return (Ensemble(whole[:t]) for t in range(self.past.size, whole.size))

    def quantile(self, levels: ArrayLike) -> Vector:
        """Quantiles of the past values, rounds by levels, clipped to the interval."""
        quantiles: Vector = np.array([forecast.quantile(np.ravel(levels)) for forecast in self.forecasts()])
        return np.clip(quantiles, self.low, self.high, out=quantiles)


def stream(
    series: Series, learner: str, *, steps: int = STEPS, warmup: int = WARMUP, seed: int = 0
) -> Gaussian | Marginal:
    """A learner's one-step-ahead forecasts of a series: `steps` of them, after `warmup` rounds from the 24th on.

    The features are the last 24 values. They and the outcome are standardised by the mean and the deviation of the
    values before the first step. In each round, those of the warm-up included, the learner forecasts a number and
    then learns from the outcome. The forecast is normal, clipped to the interval, with

        mu_t = the learner's forecast,    sd_t = root mean square of the last 500 residuals

    see `residual_scale`. The marginal distribution has neither features nor residuals: it is the `Ensemble` of all past
    values. The same seed gives the same stream.

    Section 6, experiment 1, of the paper, which states neither the warm-up nor how a number becomes a distribution.

    Examples:
        >>> from orcast.datasets import load
        >>> s = stream(load("humidity"), "marginal", steps=50, warmup=100)
        >>> s.name, len(s), s.past.size
        ('humidity/marginal', 50, 124)
    """
    if learner not in LEARNERS:
        raise ValueError(f"expected one of {', '.join(LEARNERS)}, got {learner!r}")
    _at_least(steps, 1, "step")
    _at_least(warmup, 2, "rounds of warm-up")
    first = LAGS + warmup
    if len(series) < first + steps:
        raise ValueError(f"expected a series of at least {first + steps} values, got {len(series)}")
    name, y = f"{series.name}/{learner}", series.values[: first + steps]
    make = LEARNERS[learner]
    if make is None:
        return Marginal.of(name, y[:first], y[first:], series.low, series.high)
    mu = np.clip(_online(y, make(seed), first), series.low, series.high)
    sd = residual_scale(y, mu)
    return Gaussian(name, mu[first:], sd[first:], y[first:], series.low, series.high)


def last_outcome(series: Series, *, steps: int = STEPS, warmup: int = WARMUP) -> Gaussian:
    """The last outcome with its spread as a forecast of the same rounds as those of `stream`; it knows no expert.

        mu_t = y_{t-1},    sd_t = root mean square of the last 500 changes

    Examples:
        >>> from orcast.datasets import load
        >>> series = load("humidity")
        >>> s = last_outcome(series, steps=50, warmup=100)
        >>> len(s), bool(s.mu[1] == s.y[0] == series.values[124])
        (50, True)
    """
    first = LAGS + warmup
    y = series.values[: first + steps]
    mu, sd = seasonal_naive(y, 1)
    return Gaussian(f"{series.name}/last-outcome", mu[first:], sd[first:], y[first:], series.low, series.high)


def _online(y: Vector, learner: Learner, first: int) -> Vector:
    """The learner's forecast in each round from the 24th on; nan before."""
    z, centre, scale = standardised(y, first)
    points = np.full(y.size, np.nan)
    for t in range(LAGS, y.size):
        x = z[t - LAGS : t]
        points[t] = learner.predict(x)
        learner.learn(x, float(z[t]))
    return centre + scale * points


def _at_least(value: int, least: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"expected at least {least} {what}, got {value!r}")


# --- the day ahead ---


@dataclass(frozen=True, eq=False)
class Days(ForecastStream):
    """Normal forecasts N(mu, sd) of the 24 hours of each day, made before the day: all arrays are days by hours.

    Examples:
        >>> table = np.arange(48.0).reshape(2, 24)
        >>> days = Days("toy", table, np.ones((2, 24)), table, 0.0, 50.0)
        >>> len(days), days.hour(5).name, days.hour(5).mu
        (2, 'toy/5', array([ 5., 29.]))
    """

    def hour(self, hour: int) -> Gaussian:
        """One hour of each day as a stream: what came of a round is known before the next is forecast."""
        return Gaussian(f"{self.name}/{hour}", self.mu[:, hour], self.sd[:, hour], self.y[:, hour], self.low, self.high)


def day_ahead(
    series: Series, *, days: int | None = None, warmup: int = WARMUP_DAYS, trees: int = TREES, seed: int = 0
) -> Days:
    """Bagged trees that forecast the 24 hours of a day from those of the day before, for the days after the warm-up.

    A day is 24 values from the first on. Before each day, `trees` regression trees with three days or more in a leaf
    and 24 outputs are fitted to bootstrap samples of the past days, each with the day before it, and averaged:
    scikit-learn's `BaggingRegressor`. They are fitted anew since a year has few days: this takes less time than
    River's online bagging of Hoeffding trees does for 24 outputs, and errs less. The first forecast is made half-way
    through the warm-up, so that there are residuals. The forecast is normal, clipped to the interval, with

        mu_{d,i} = mean of the trees,    sd_{d,i} = root mean square of the last 500 residuals of the hour i

    Section 6, experiment 3, of the paper.

    Examples:
        >>> from orcast.datasets import load
        >>> day_ahead(load("humidity"), days=400)
        Traceback (most recent call last):
        ValueError: expected a series of at least 460 days, got 362
    """
    _at_least(warmup, 4, "days of warm-up")
    _at_least(trees, 1, "tree")
    y = _by_day(series, days, warmup)
    last = len(y)
    bagging = needed("sklearn.ensemble", "bagged trees").BaggingRegressor
    tree = needed("sklearn.tree", "bagged trees").DecisionTreeRegressor
    mu = np.full((last, HOURS), np.nan)
    for day in range(warmup // 2, last):
        model = bagging(tree(min_samples_leaf=LEAF), n_estimators=trees, random_state=seed)
        model.fit(y[: day - 1], y[1:day])
        mu[day] = model.predict(y[day - 1 : day])[0]
    return _days("bagged-trees", series, np.clip(mu, series.low, series.high), y, warmup)


def last_outcome_days(series: Series, *, days: int | None = None, warmup: int = WARMUP_DAYS) -> Days:
    """The last outcome before a day with its spread, by the hour, as a forecast of the same days as `day_ahead`.

        mu_{d,i} = y_{d-1,24},    sd_{d,i} = root mean square of the last 500 values of y_{d,i} - mu_{d,i}

    Examples:
        >>> from orcast.datasets import load
        >>> series = load("humidity")
        >>> days = last_outcome_days(series, days=5, warmup=20)
        >>> days.mu.shape, bool((days.mu[1] == days.y[0, -1]).all()), bool(days.sd[0, 0] < days.sd[0, 12])
        ((5, 24), True, True)
    """
    y = _by_day(series, days, warmup)
    mu = np.full(y.shape, np.nan)
    mu[1:] = y[:-1, -1:]
    return _days("last-outcome", series, mu, y, warmup)


def _by_day(series: Series, days: int | None, warmup: int) -> Vector:
    """The values of the warm-up and of so many days after it, all there are if none is said: days by hours."""
    whole = len(series) // HOURS
    last = whole if days is None else warmup + days
    if days is not None:
        _at_least(days, 1, "day")
    if not warmup < last <= whole:
        raise ValueError(f"expected a series of at least {max(last, warmup + 1)} days, got {whole}")
    return series.values[: last * HOURS].reshape(last, HOURS)


def _days(expert: str, series: Series, mu: Vector, y: Vector, warmup: int) -> Days:
    sd = np.stack([residual_scale(y[:, hour], mu[:, hour]) for hour in range(HOURS)], axis=1)
    name = f"{series.name}/{expert}"
    return Days(name, mu[warmup:], sd[warmup:], y[warmup:], series.low, series.high)
