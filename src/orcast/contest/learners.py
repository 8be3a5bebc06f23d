"""Experts of the contest that learn from features: online, or refitted now and then.

The features of a row are the last values in sight, and those that are given of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from orcast.contest.forecasters import Point, Task, in_sight, last_season
from orcast.contest.stream import Array, Whole
from orcast.paper.experiments.data import needed
from orcast.paper.experiments.learners import Learner

FAR = 5.0  # features of a value are cut off there, in units of what was in sight at first


def _units(task: Task) -> tuple[float, float]:
    """Mean and spread of what was in sight at the first row."""
    first = task.y[: task.seen[0]]
    return float(first.mean()), float(first.std()) or 1.0


def lag_features(task: Task, lags: int) -> Array:
    """A row's last values in sight, the last one of its season and the place in it; and what is given of the value.

    All in units of what was in sight at the first row; a one is last.
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


class LeastSquares:
    """Recursive least squares with forgetting (Haykin, "Adaptive Filter Theory")."""

    def __init__(self, size: int, forgetting: float, prior: float = 1.0) -> None:
        self.w, self.p, self.forgetting = np.zeros(size), prior * np.eye(size), forgetting

    def predict(self, x: Array) -> float:
        """The linear forecast."""
        return float(self.w @ x)

    def learn(self, x: Array, y: float) -> None:
        """One step of the recursion."""
        px = self.p @ x
        spare = self.forgetting + x @ px
        self.w += px * ((y - self.w @ x) / spare)
        self.p = (self.p - np.outer(px, px) / spare) / self.forgetting


class Logistic:
    """Logistic regression by gradient steps, all of one size."""

    def __init__(self, size: int, rate: float) -> None:
        self.w, self.rate = np.zeros(size), rate

    def predict(self, x: Array) -> float:
        """The probability."""
        return float(1.0 / (1.0 + np.exp(-np.clip(self.w @ x, -30.0, 30.0))))

    def learn(self, x: Array, y: float) -> None:
        """A step along the gradient."""
        self.w += self.rate * (y - self.predict(x)) * x


class RiverModel:
    """A model of River: of a classifier, the probability of a yes."""

    def __init__(self, model: Any, events: bool) -> None:
        self.model, self.events = model, events

    def predict(self, x: Array) -> float:
        """The forecast; half before anything was learnt."""
        named = dict(enumerate(x[:-1].tolist()))
        if not self.events:
            return float(self.model.predict_one(named))
        found = self.model.predict_proba_one(named)
        return float(found.get(True, 0.0 if found else 0.5))

    def learn(self, x: Array, y: float) -> None:
        """One more example."""
        self.model.learn_one(dict(enumerate(x[:-1].tolist())), bool(y) if self.events else y)


def learnt(task: Task, make: Callable[[int], Learner], lags: int, *, events: bool = False) -> Array:
    """What a learner of each game says of its rows, having learnt the outcomes in sight, in their order."""
    x, y, out = lag_features(task, lags), task.outcome, np.empty(task.target.size)
    centre, scale = 0.0, 1.0
    if not events:
        y = task.y[task.target]
        centre, scale = _units(task)
    for rows in task.games():
        learner, done = make(x.shape[1]), 0
        for row, stop in zip(rows, in_sight(task, rows).tolist(), strict=True):
            for known in rows[done:stop]:
                learner.learn(x[known], float((y[known] - centre) / scale))
            done = max(done, stop)
            out[row] = centre + scale * learner.predict(x[row])
    return out


@dataclass(frozen=True)
class Regression(Point):
    """Linear regression on the last values, by recursive least squares; one for each game."""

    lags: int = 12
    forgetting: float = 1.0

    def points(self, task: Task) -> Array:
        """The linear forecasts."""
        return learnt(task, lambda size: LeastSquares(size, self.forgetting), self.lags)


@dataclass(frozen=True)
class RiverTree(Point):
    """A tree of River on the last values: "hat" (Hoeffding, adaptive) or "sgt" (gradient)."""

    package: ClassVar[str] = "river"
    tree: str = "hat"
    lags: int = 12

    def points(self, task: Task) -> Array:
        """The tree's forecasts."""
        trees = needed("river.tree", "trees of River")

        def make(size: int) -> Learner:
            tree = trees.SGTRegressor() if self.tree == "sgt" else trees.HoeffdingAdaptiveTreeRegressor(seed=0)
            return RiverModel(tree, events=False)

        return learnt(task, make, self.lags)


@dataclass(frozen=True)
class OnlineClassifier:
    """The probability of a yes, learnt row by row.

    `model` is "logistic", with steps of size `rate`, or of River "bayes" or "tree".
    """

    model: str = "logistic"
    rate: float = 0.05
    lags: int = 0

    @property
    def package(self) -> str | None:
        """The package that it needs."""
        return None if self.model == "logistic" else "river"

    def __call__(self, task: Task) -> Array:
        """Probabilities."""

        def make(size: int) -> Learner:
            if self.model == "logistic":
                return Logistic(size, self.rate)
            if self.model == "bayes":
                return RiverModel(needed("river.naive_bayes", "naive Bayes").GaussianNB(), events=True)
            return RiverModel(needed("river.tree", "Hoeffding trees").HoeffdingTreeClassifier(), events=True)

        return np.clip(learnt(task, make, self.lags, events=True), 0.0, 1.0)


# --- refitted now and then ---


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
    """Gradient-boosted trees, one for each level, refitted every so many rows to all outcomes in sight."""

    package: ClassVar[str] = "sklearn"
    every: int = 300
    lags: int = 6
    trees: int = 40
    least: int = 40

    def __call__(self, task: Task) -> Array:
        """Quantiles."""
        boosting = needed("sklearn.ensemble", "boosted trees").GradientBoostingRegressor
        x = np.column_stack((lag_features(task, self.lags)[:, :-1], task.lead))
        y, out = task.y[task.target], np.empty((task.target.size, task.levels.size))
        for rows, known in refits(task, self.every, self.least):
            if known.size < self.least:
                out[rows] = np.quantile(task.y[: task.seen[rows[0]]], task.levels)
                continue
            for k, level in enumerate(task.levels):
                options = {"n_estimators": self.trees, "max_depth": 2, "learning_rate": 0.2, "subsample": 0.5}
                model = boosting(loss="quantile", alpha=level, random_state=0, **options)
                out[rows, k] = model.fit(x[known], y[known]).predict(x[rows])
        return np.sort(out, axis=1)


@dataclass(frozen=True)
class BatchLogistic:
    """scikit-learn's logistic regression, refitted every so many rows to all outcomes in sight."""

    package: ClassVar[str] = "sklearn"
    every: int = 100
    lags: int = 0
    least: int = 20

    def __call__(self, task: Task) -> Array:
        """Probabilities."""
        regression = needed("sklearn.linear_model", "logistic regression").LogisticRegression
        x, y, out = lag_features(task, self.lags), task.outcome, np.empty(task.target.size)
        for rows, known in refits(task, self.every, self.least):
            share = (y[known].sum() + 0.5) / (known.size + 1.0)
            if known.size < self.least or np.unique(y[known]).size < 2:
                out[rows] = share
            else:
                out[rows] = regression(C=10.0, max_iter=300).fit(x[known], y[known]).predict_proba(x[rows])[:, 1]
        return out
