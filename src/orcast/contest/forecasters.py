"""The contest's experts: ordinary forecasters, each with what it knew, and with the flaws that such have.

A `Task` says what is asked: row r is about `y[target[r]]` and may use `y[:seen[r]]`.  An expert is called with a task
and gives a row for each of its rows: quantiles, members of an ensemble, or probabilities.  Whatever is learnt is learnt
on the way, from outcomes that were in sight; what is fitted once is fitted to what was in sight at the first row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from orcast.contest.stream import Array, Whole

PRIOR = 2.0  # so many errors of the size of past changes are counted in before the first
FEW = 20  # with fewer errors than this they are taken as normal


class Task(NamedTuple):
    """Forecasts that are asked for, in the order of issue; rows of one `game` share a history of errors.

    `x` are features of each value, known before it.  With a `threshold` the outcome is whether a value is above it.
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
        """What came of each row."""
        values = self.y[self.target]
        return values if self.threshold is None else (values > self.threshold).astype(np.float64)

    @property
    def lead(self) -> Whole:
        """Steps from the last value in sight to the one asked for."""
        return self.target - self.seen + 1

    def games(self) -> Iterator[Whole]:
        """The rows of each game."""
        for game in np.unique(self.game):
            yield np.flatnonzero(self.game == game)


Expert = Callable[[Task], Array]


def in_sight(task: Task, rows: Whole) -> Whole:
    """How many of the first rows of a game have outcomes that each of them may use."""
    return np.searchsorted(task.target[rows], task.seen[rows])


def last_season(task: Task, period: int) -> Array:
    """The latest value in sight at the same place of the season."""
    return np.asarray(task.y[task.target - -(-task.lead // period) * period])


# --- points, and the spread of past errors ---


def past_spread(task: Task, mu: Array, window: int) -> Array:
    """Root mean square of the last `window` errors in sight of each row's game, with changes over the lead at first."""
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
    """Quantiles of the last `window` errors in sight of each row's game; of a normal where they are few."""
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
    """A point forecast with the spread of its own past errors, times `factor`: below 1 it is too narrow.

    For an event it is the probability that such a normal puts above the threshold.
    """

    window: int = field(default=200, kw_only=True)
    factor: float = field(default=1.0, kw_only=True)
    empirical: bool = field(default=False, kw_only=True)

    @abstractmethod
    def points(self, task: Task) -> Array:
        """The point forecasts."""

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
    """The value a season ago, that of `period` if given (1: the last value)."""

    period: int | None = None

    def points(self, task: Task) -> Array:
        """The value a season before."""
        return last_season(task, self.period or task.period)


@dataclass(frozen=True)
class Drift(Point):
    """The last value and the mean change so far for each step."""

    def points(self, task: Task) -> Array:
        """On the line from the first value to the last."""
        last = task.y[task.seen - 1]
        return np.asarray(last + task.lead * (last - task.y[0]) / np.maximum(task.seen - 1, 1))


@dataclass(frozen=True)
class Smoothing(Point):
    """Additive exponential smoothing with a damped trend and a season, fitted once, on what was seen at first.

    Reference: Hyndman and Athanasopoulos, "Forecasting: Principles and Practice", chapter 8.
    """

    period: int | None = None

    def points(self, task: Task) -> Array:
        """Level, trend and season as they were when the forecast was issued."""
        start, period = int(task.seen[0]), self.period or task.period
        grid = product((0.1, 0.4, 0.8), (0.0, 0.05), (0.05, 0.3) if period > 1 else (0.0,))
        alpha, beta, gamma = min(
            grid, key=lambda each: float(np.square(_smoothed(task.y[:start], period, *each)[3]).sum())
        )
        level, trend, season, _ = _smoothed(task.y, period, alpha, beta, gamma)
        at = task.seen - 1
        damped = DAMPING * (1.0 - DAMPING**task.lead) / (1.0 - DAMPING)
        # the season of place k, as it was after value t, is in row t
        return np.asarray(level[at] + damped * trend[at] + season[at, task.target % period])


DAMPING = 0.95


def _smoothed(y: Array, period: int, alpha: float, beta: float, gamma: float) -> tuple[Array, Array, Array, Array]:
    """Level, trend and season after each value, and its error; the first season is the start."""
    level, trend, season, errors = np.zeros(y.size), np.zeros(y.size), np.zeros((y.size, period)), np.zeros(y.size)
    count = min(period, y.size)
    now, slope, wave = float(y[:count].mean()), 0.0, np.zeros(period)
    wave[:count] = y[:count] - now
    for t, value in enumerate(y.tolist()):
        if t < count and period > 1:
            # of the first season nothing but its first value is used before it is over
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
    """Quantiles of the last `window` values in sight, those at the same place of the season if there is one."""

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
    """An ensemble of what followed the most similar pasts: what was added to the last value then is added to it now."""

    members: int = 30
    lags: int = 6
    factor: float = 1.0

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
            found = y[seen - 1] + self.factor * (y[np.minimum(near + lead, seen - 1)] - y[near])
            out[row] = np.resize(found, self.members)
        return np.sort(out, axis=1)


@dataclass(frozen=True)
class Bootstrap:
    """An ensemble around a point forecast: errors drawn from the last `window` in sight, times `factor`."""

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
    """How often it was a yes so far, at the same place of the season if there is one."""

    def __call__(self, task: Task) -> Array:
        """Probabilities."""
        yes = task.y if task.threshold is None else (task.y > task.threshold).astype(np.float64)
        out = np.empty(task.target.size)
        for row, (seen, target) in enumerate(zip(task.seen, task.target, strict=True)):
            same = yes[target % task.period : seen : task.period]
            out[row] = (same.sum() + 0.5) / (same.size + 1.0)
        return out
