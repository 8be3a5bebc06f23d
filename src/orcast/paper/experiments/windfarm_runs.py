"""The runs of experiment 3: losses, methods, their forecasts, and what these cost beside the expert's.

`orcast.paper.experiments.windfarm` says what is played and measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast import baselines
from orcast.metrics import LEVELS
from orcast.paper.experiments import learners
from orcast.paper.experiments.learners import HOURS, Days
from orcast.paper.experiments.methods import paper_oracle, paper_payoff
from orcast.paper.experiments.output import mean
from orcast.parallel import Progress, WorkerPool, silent

__all__ = [
    "FULL",
    "LAMBDAS",
    "QUICK",
    "LossComparison",
    "WindFarmPlan",
    "best_level",
    "best_orca",
    "chosen_orca",
    "column",
    "compare_losses",
    "daily_loss",
    "first_half_change",
    "forecasts",
    "interval",
    "methods_of",
    "play_all",
]

Vector = NDArray[np.float64]

LAMBDAS = (0.0, 0.2, 0.5, 0.8, 0.9)
SHOWN = 0.5  # the lambda of the figure
COMMITMENTS = 9
BLOCK, RESAMPLES = 7, 4000

EXPERT, LAST = "expert", "last outcome"
DEFAULT, EACH, BY_HOUR = "ours, the default", "ours, one for each hour", "ours, by hour"
ORCA = "ORCA, rate "


@dataclass(frozen=True)
class WindFarmPlan:
    """How much is done.

    >>> FULL.rates, FULL.days is None
    ((0.003, 0.01, 0.03), True)
    """

    days: int | None = None  # all there are
    warmup: int = learners.WARMUP_DAYS
    trees: int = learners.TREES
    rates: tuple[float, ...] = (0.003, 0.01, 0.03)
    steps: int = 400


FULL = WindFarmPlan()
QUICK = WindFarmPlan(days=20, warmup=20, trees=4, rates=(0.003,), steps=50)


# --- losses ---


def column(lam: float) -> int:
    """Where the quantile that a lambda asks for stands among the percents, (1 + lambda) / 2.

    >>> [float(LEVELS[column(lam)]) for lam in LAMBDAS]
    [0.5, 0.6, 0.75, 0.9, 0.95]
    """
    at = round(100.0 * (1.0 + lam) / 2.0) - 1
    if not 0 <= at < LEVELS.size or abs(LEVELS[at] - (1.0 + lam) / 2.0) > 1e-9:
        raise ValueError(f"expected a lambda whose level (1 + lambda) / 2 is a percent, got {lam!r}")
    return at


def daily_loss(commitments: Vector, y: Vector, lam: float) -> Vector:
    """What the commitments of each day cost; days by hours in, a number a day out.

    >>> daily_loss(np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]]), 0.5)
    array([2.5])
    """
    short = y - commitments
    cost: Vector = np.where(short > 0.0, (1.0 + lam) * short, (lam - 1.0) * short).sum(axis=-1)
    return cost


def best_level(quantiles: Vector, y: Vector, lam: float) -> tuple[float, float]:
    """The percent whose quantiles would have cost least, and the mean loss of a day that they would have had.

    >>> q = np.tile(LEVELS, (1, 2, 1))
    >>> best_level(q, np.array([[0.3, 0.3]]), 0.0)
    (0.3, 0.0)
    """
    means = [float(daily_loss(quantiles[..., a], y, lam).mean()) for a in range(LEVELS.size)]
    least = int(np.argmin(means))
    return float(LEVELS[least]), means[least]


def interval(
    differences: Vector, *, block: int = BLOCK, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The 95% interval of the mean of numbers that follow each other: the circular block bootstrap.

    As many blocks of `block` neighbours as are needed are drawn, with the last number followed by the first, and cut
    to the length of the sequence; the ends are the 2.5% and 97.5% quantiles of the means.

    Reference: Politis and Romano (1992), "A circular block-resampling procedure for stationary data".

    >>> low, high = interval(np.array([1.0, 1.0, 1.0]))
    >>> low, high
    (1.0, 1.0)
    """
    rng = np.random.default_rng(seed)
    size = differences.size
    start = rng.integers(0, size, (resamples, -(-size // block)))
    chosen = ((start[..., None] + np.arange(block)) % size).reshape(resamples, -1)[:, :size]
    low, high = np.quantile(differences[chosen].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


# --- the methods ---


def _space(days: Days) -> oc.Interval:
    return oc.Interval(days.low, days.high)


def _cost(action: tuple[float, float], y: Any) -> Any:
    """What a commitment is worth: minus what it costs an hour, for a lambda."""
    amount, lam = action
    return -((1.0 + lam) * np.maximum(y - amount, 0.0) + (1.0 - lam) * np.maximum(amount - y, 0.0))


def orca(days: Days, *, rate: float, steps: int = 400, seed: int = 0) -> oc.Recalibrator:
    """ORCA with decision calibration, besides what it plays in experiment 1."""
    amounts = np.linspace(days.low, days.high, COMMITMENTS + 2)[1:-1].tolist()
    actions = [(amount, lam) for amount in amounts for lam in LAMBDAS]
    payoff = paper_payoff() + oc.payoffs.DecisionCalibration(actions, _cost)
    return oc.Recalibrator(_space(days), payoff, oracle=paper_oracle(rate=rate, steps=steps, seed=seed))


def _by_hour(days: Days) -> oc.Recalibrator:
    hour = oc.by("hour", values=range(HOURS))
    payoff: Any = oc.QuantileCalibration(context=hour) + oc.MomentMatching(2, context=hour)
    return oc.Recalibrator(_space(days), payoff + oc.NoRegret(oc.CRPS(), context=hour))


# What plays the stream of all hours, and what plays that of one.
STREAMS: dict[str, Callable[[Days], oc.Recalibrator]] = {
    DEFAULT: lambda days: oc.Recalibrator(_space(days)),
    BY_HOUR: _by_hour,
}
SINGLES: dict[str, Callable[[Days], Any]] = {
    EACH: lambda days: oc.Recalibrator(_space(days)),
    "isotonic, one for each hour": lambda days: baselines.Isotonic(days.low, days.high),
    "conformal PID, one for each hour": lambda days: baselines.ConformalPID(days.low, days.high),
}


def methods_of(plan: WindFarmPlan) -> tuple[str, ...]:
    """The methods in the order of the tables."""
    others = (name for name in SINGLES if name != EACH)
    return (EXPERT, *(f"{ORCA}{rate:g}" for rate in plan.rates), DEFAULT, EACH, BY_HOUR, *others)


def _play_stream(name: str, days: Days) -> Vector:
    """Quantiles of all hours, days by hours by levels; a day is settled after its last forecast."""
    game = STREAMS[name](days)
    played = np.empty((len(days), HOURS, LEVELS.size))
    for day in range(len(days)):
        for hour in range(HOURS):
            forecast = oc.Normal(float(days.mu[day, hour]), float(days.sd[day, hour]))
            x = {"hour": hour} if name == BY_HOUR else None
            played[day, hour] = game.predict(forecast, id=(day, hour), x=x).quantile(LEVELS)
        for hour in range(HOURS):
            game.update(float(days.y[day, hour]), id=(day, hour))
    return played


def _play_hour(name: str, days: Days, hour: int, steps: int, seed: int) -> Vector:
    """Quantiles of one hour of each day, days by levels."""
    one = days.hour(hour)
    if name.startswith(ORCA):
        game: Any = orca(days, rate=float(name.removeprefix(ORCA)), steps=steps, seed=HOURS * seed + hour)
    else:
        game = SINGLES[name](days)
    played = np.empty((len(days), LEVELS.size))
    for day, (forecast, y) in enumerate(zip(one.forecasts(), one.y.tolist(), strict=True)):
        played[day] = game.predict(forecast).quantile(LEVELS)
        game.update(y)
    return played


Job = tuple[str, int | None]  # a method, and an hour; none: all of them


def _play(job: Job, days: Days, steps: int, seed: int) -> Vector:
    name, hour = job
    return _play_stream(name, days) if hour is None else _play_hour(name, days, hour, steps, seed)


def _jobs(name: str) -> list[Job]:
    return [(name, None)] if name in STREAMS else [(name, hour) for hour in range(HOURS)]


def _joined(name: str, found: Mapping[Job, Vector]) -> Vector:
    parts = [found[job] for job in _jobs(name)]
    return parts[0] if name in STREAMS else np.stack(parts, axis=1)


def forecasts(name: str, days: Days, *, steps: int = 400, seed: int = 0) -> Vector:
    """The forecasts of a method: quantiles at the percents, days by hours by levels."""
    if name == EXPERT:
        return days.quantile(LEVELS)
    return _joined(name, {job: _play(job, days, steps, seed) for job in _jobs(name)})


def play_all(
    days: Days, plan: WindFarmPlan, *, seed: int = 0, workers: int = 2, progress: Progress = silent
) -> dict[str, Vector]:
    """The quantiles of every method, whatever the number of workers."""
    names = methods_of(plan)[1:]
    # the long ones first, so that none is left over at the end
    order = sorted(
        (job for name in names for job in _jobs(name)),
        key=lambda job: (job[1] is not None, not job[0].startswith(ORCA)),
    )
    with WorkerPool(workers, len(order), progress) as pool:
        found = pool.run(
            _play,
            {job: (job, days, plan.steps, seed) for job in order},
            lambda job: job[0] if job[1] is None else f"{job[0]}, hour {job[1]}",
        )
    return {EXPERT: forecasts(EXPERT, days)} | {name: _joined(name, found) for name in names}


# --- losses against the expert ---


class LossComparison(NamedTuple):
    """Losses of a method for a lambda; all but `losses` against the expert, in percent of its mean loss."""

    losses: Vector  # a number a day
    change: float
    low: float
    high: float
    regret: float  # against the expert's best level
    own_regret: float  # against the method's own

    @property
    def better(self) -> bool:
        """Whether the whole interval is below the expert."""
        return self.high < 0.0


def compare_losses(
    quantiles_by_method: Mapping[str, Vector], y: Vector, lam: float, *, seed: int = 0
) -> dict[str, LossComparison]:
    """The decisions of every method for a lambda, against the expert's."""
    expert = daily_loss(quantiles_by_method[EXPERT][..., column(lam)], y, lam)
    unit = 100.0 / float(expert.mean())
    _, reached = best_level(quantiles_by_method[EXPERT], y, lam)
    found = {}
    for name, quantiles in quantiles_by_method.items():
        losses = daily_loss(quantiles[..., column(lam)], y, lam)
        mean = float(losses.mean())
        low, high = interval(losses - expert, seed=seed)
        _, own = best_level(quantiles, y, lam)
        found[name] = LossComparison(
            losses,
            unit * float((losses - expert).mean()),
            unit * low,
            unit * high,
            unit * (mean - reached),
            unit * (mean - own),
        )
    return found


Comparisons = Mapping[float, Mapping[str, LossComparison]]


def best_orca(comparisons: Comparisons) -> str:
    """ORCA at the rate that did best over all lambdas and days, known afterwards."""
    names = [name for name in comparisons[SHOWN] if name.startswith(ORCA)]
    return min(names, key=lambda name: sum(each[name].change for each in comparisons.values()))


def chosen_orca(comparisons: Comparisons) -> str:
    """ORCA at the rate that did best over all lambdas in the first half of the days."""
    return min((name for name in comparisons[SHOWN] if name.startswith(ORCA)), key=first_half_change(comparisons))


def first_half_change(comparisons: Comparisons) -> Callable[[str], float]:
    """What the rate is chosen by: the change of the mean loss in the first half, in %, averaged over the lambdas."""

    def change(name: str) -> float:
        def of(each: Mapping[str, LossComparison]) -> float:
            half = max(each[EXPERT].losses.size // 2, 1)
            return 100.0 * (mean(each[name].losses[:half]) / mean(each[EXPERT].losses[:half]) - 1.0)

        return mean(of(each) for each in comparisons.values())

    return change
