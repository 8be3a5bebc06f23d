"""Experiment 3: commitments of a wind farm, a day ahead (paper, section 6.3).

Before each day the operator commits to an amount a for each of the 24 hours. With the outcomes y a day costs

    sum over the hours of  (1 + lambda) (y - a)^+ + (1 - lambda) (a - y)^+

A forecast asks for its quantile at (1 + lambda) / 2. The expert are bagged trees on the 24 values of the day before
(`learners.day_ahead`). ORCA and rivals run once for each hour; the default for all hours, for each, and by the hour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.datasets import Series
from orcast.evaluate.metrics import LEVELS
from research import learners
from research.experiments import data
from research.experiments.methods import EXPERT, LAST, Claim, Result, paper_oracle, paper_payoff
from research.jobs import WorkerPool
from research.learners import HOURS, Days
from research.output import Cell, Row, Table, mean
from research.rivals import CalibratedRegression, ConformalPID

Vector = NDArray[np.float64]

LAMBDAS = (0.0, 0.2, 0.5, 0.8, 0.9)
SHOWN = 0.5  # a lambda that all tables have
COMMITMENTS = 9
BLOCK, RESAMPLES = 7, 4000
DEFAULT, EACH, BY_HOUR = "ours, the default", "ours, one for each hour", "ours, by hour"
ORCA = "ORCA, rate "

KNEW = (
    "Information: all forecasts of a day are made before its first hour. The expert has the 24 values of the day "
    "before and was fitted to all earlier days, the warm-up included. Last outcome is the normal distribution around "
    "the last hour of the day before, with the root mean square, by hour, of such errors on the last 500 days; it has "
    "no expert. The other methods have the expert's forecasts and the outcomes of the days before, from the first "
    "after the warm-up on; those for each hour have those of their own hour alone."
)


@dataclass(frozen=True)
class Plan:
    """Size of the experiment; all days if `days` is None."""

    days: int | None = None
    warmup: int = learners.WARMUP_DAYS
    trees: int = learners.TREES
    rates: tuple[float, ...] = (0.003, 0.01, 0.03)
    steps: int = 400


FULL = Plan()
QUICK = Plan(days=20, warmup=20, trees=4, rates=(0.003,), steps=50)


# --- losses ---


def column(lam: float) -> int:
    """Column of the quantile at (1 + lambda) / 2 among the percents.

    >>> [float(LEVELS[column(lam)]) for lam in LAMBDAS]
    [0.5, 0.6, 0.75, 0.9, 0.95]
    """
    return round(100.0 * (1.0 + lam) / 2.0) - 1


def daily_loss(commitments: Vector, y: Vector, lam: float) -> Vector:
    """Loss of each day from commitments and outcomes, days by hours.

    >>> daily_loss(np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]]), 0.5)
    array([2.5])
    """
    short = y - commitments
    cost: Vector = np.where(short > 0.0, (1.0 + lam) * short, (lam - 1.0) * short).sum(axis=-1)
    return cost


def interval(differences: Vector, *, seed: int = 0) -> tuple[float, float]:
    """95% interval of the mean of a sequence by the circular block bootstrap.

    Reference: Politis and Romano (1992), "A circular block-resampling procedure for stationary data".

    >>> interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    rng = np.random.default_rng(seed)
    size = differences.size
    start = rng.integers(0, size, (RESAMPLES, -(-size // BLOCK)))
    chosen = ((start[..., None] + np.arange(BLOCK)) % size).reshape(RESAMPLES, -1)[:, :size]
    low, high = np.quantile(differences[chosen].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


# --- methods ---


def _space(days: Days) -> oc.Interval:
    return oc.Interval(days.low, days.high)


def _value(action: tuple[float, float], y: Any) -> Any:
    """Value of a commitment for a lambda: minus its cost in an hour."""
    amount, lam = action
    return -((1.0 + lam) * np.maximum(y - amount, 0.0) + (1.0 - lam) * np.maximum(amount - y, 0.0))


def orca(days: Days, *, rate: float, steps: int = 400, seed: int = 0) -> oc.Recalibrator:
    """ORCA with the payoff of experiment 1 and decision calibration."""
    amounts = np.linspace(days.low, days.high, COMMITMENTS + 2)[1:-1].tolist()
    actions = [(amount, lam) for amount in amounts for lam in LAMBDAS]
    payoff = paper_payoff() + oc.payoffs.DecisionCalibration(actions, _value)
    return oc.Recalibrator(_space(days), payoff, oracle=paper_oracle(rate=rate, steps=steps, seed=seed))


def _by_hour(days: Days) -> oc.Recalibrator:
    hour = oc.by("hour", values=range(HOURS))
    payoff: Any = oc.QuantileCalibration(context=hour) + oc.MomentMatching(2, context=hour)
    return oc.Recalibrator(_space(days), payoff + oc.NoRegret(oc.CRPS(), context=hour))


# methods for the stream of all hours, and for that of one hour
STREAMS: dict[str, Callable[[Days], oc.Recalibrator]] = {
    DEFAULT: lambda days: oc.Recalibrator(_space(days)),
    BY_HOUR: _by_hour,
}
SINGLES: dict[str, Callable[[Days], Any]] = {
    EACH: lambda days: oc.Recalibrator(_space(days)),
    "isotonic, one for each hour": lambda days: CalibratedRegression(days.low, days.high),
    "conformal PID, one for each hour": lambda days: ConformalPID(days.low, days.high),
}


def methods_of(plan: Plan) -> tuple[str, ...]:
    """Methods in the order of the tables."""
    others = (name for name in SINGLES if name != EACH)
    return (*(f"{ORCA}{rate:g}" for rate in plan.rates), DEFAULT, EACH, BY_HOUR, *others)


def _run_stream(name: str, days: Days) -> Vector:
    """Quantiles of all hours, days by hours by levels; a day is settled after its last forecast."""
    recal = STREAMS[name](days)
    found = np.empty((len(days), HOURS, LEVELS.size))
    for day in range(len(days)):
        for hour in range(HOURS):
            forecast = oc.Normal(float(days.mu[day, hour]), float(days.sd[day, hour]))
            x = {"hour": hour} if name == BY_HOUR else None
            found[day, hour] = recal.predict(forecast, id=(day, hour), x=x).quantile(LEVELS)
        for hour in range(HOURS):
            recal.update(float(days.y[day, hour]), id=(day, hour))
    return found


def _run_hour(name: str, days: Days, hour: int, steps: int, seed: int) -> Vector:
    """Quantiles of one hour of each day, days by levels."""
    one = days.hour(hour)
    if name.startswith(ORCA):
        method: Any = orca(days, rate=float(name.removeprefix(ORCA)), steps=steps, seed=HOURS * seed + hour)
    else:
        method = SINGLES[name](days)
    found = np.empty((len(days), LEVELS.size))
    for day, (forecast, y) in enumerate(zip(one.forecasts(), one.y.tolist(), strict=True)):
        found[day] = method.predict(forecast).quantile(LEVELS)
        method.update(y)
    return found


Job = tuple[str, int | None]  # a method and an hour; None: all hours


def _run(job: Job, days: Days, steps: int, seed: int) -> Vector:
    name, hour = job
    return _run_stream(name, days) if hour is None else _run_hour(name, days, hour, steps, seed)


def run_all(days: Days, plan: Plan, *, seed: int = 0, pool: Callable[[int], WorkerPool]) -> dict[str, Vector]:
    """Quantiles of every method at the percents, days by hours by levels."""
    jobs: dict[str, list[Job]] = {
        name: [(name, None)] if name in STREAMS else [(name, hour) for hour in range(HOURS)]
        for name in methods_of(plan)
    }
    # the long ones first, so that no worker ends late
    order = sorted(
        (job for own in jobs.values() for job in own), key=lambda job: (job[1] is not None, not job[0].startswith(ORCA))
    )
    with pool(len(order)) as workers:
        found = workers.run(
            _run,
            {job: (job, days, plan.steps, seed) for job in order},
            lambda job: job[0] if job[1] is None else f"{job[0]}, hour {job[1]}",
        )
    return {
        name: found[name, None] if name in STREAMS else np.stack([found[job] for job in own], axis=1)
        for name, own in jobs.items()
    }


# --- losses against the expert ---


class Comparison(NamedTuple):
    """Losses of a method for a lambda, a number a day; the rest is in percent of the expert's mean loss."""

    losses: Vector
    change: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        """True if the whole interval is below zero."""
        return self.high < 0.0


Comparisons = Mapping[float, Mapping[str, Comparison]]


def compare_losses(quantiles: Mapping[str, Vector], y: Vector, lam: float, *, seed: int = 0) -> dict[str, Comparison]:
    """Losses of every method for a lambda, against the expert's."""
    expert = daily_loss(quantiles[EXPERT][..., column(lam)], y, lam)
    unit = 100.0 / float(expert.mean())
    found = {}
    for name, own in quantiles.items():
        losses = daily_loss(own[..., column(lam)], y, lam)
        low, high = interval(losses - expert, seed=seed)
        found[name] = Comparison(losses, unit * float((losses - expert).mean()), unit * low, unit * high)
    return found


def first_half_change(comparisons: Comparisons, name: str) -> float:
    """Change of the mean loss in the first half of the days, in %, averaged over the lambdas."""

    def change(each: Mapping[str, Comparison]) -> float:
        half = max(each[EXPERT].losses.size // 2, 1)
        return 100.0 * (mean(each[name].losses[:half]) / mean(each[EXPERT].losses[:half]) - 1.0)

    return mean(change(each) for each in comparisons.values())


def _orcas(comparisons: Comparisons) -> list[str]:
    return [name for name in comparisons[SHOWN] if name.startswith(ORCA)]


def best_orca(comparisons: Comparisons) -> str:
    """ORCA at the rate that did best over all lambdas and days, known in hindsight."""
    return min(_orcas(comparisons), key=lambda name: sum(each[name].change for each in comparisons.values()))


def chosen_orca(comparisons: Comparisons) -> str:
    """ORCA at the rate that did best over all lambdas in the first half of the days."""
    return min(_orcas(comparisons), key=lambda name: first_half_change(comparisons, name))


# --- tables ---


def _table(
    name: str, title: str, found: Comparisons, cell: Callable[[Comparison], Cell], digits: str = "", caption: str = ""
) -> Table:
    """Table of methods by lambda; the expert has no change."""
    rows: list[Row] = [
        {"method": method, **{f"lambda = {lam:g}": cell(each[method]) for lam, each in found.items()}}
        for method in found[SHOWN]
        if not (name == "windfarm" and method == EXPERT)
    ]
    page = None if name == "windfarm" else ()
    return Table.of(name, title, rows, digits=dict.fromkeys(rows[0], digits), caption=caption, page=page)


def tables(comparisons: Comparisons, unit: str) -> tuple[Table, ...]:
    """ORCA's rate; change and loss of each method by lambda."""
    rows: list[Row] = [
        {
            "rate": name.removeprefix(ORCA),
            "loss in the first half, %": first_half_change(comparisons, name),
            "over all days, %": mean(each[name].change for each in comparisons.values()),
            "chosen": "yes" if name == chosen_orca(comparisons) else "",
        }
        for name in _orcas(comparisons)
    ]
    title = "ORCA's rate: the lowest loss in the first half of the days, against the expert's, mean over lambda"
    rule = Table.of("windfarm_rule", title, rows, digits=dict.fromkeys(rows[0], "+.2f"), page=())
    days = comparisons[SHOWN][EXPERT].losses.size
    title = f"Mean loss against the expert's over {days} days, %, with paired 95% intervals"

    def change(one: Comparison) -> str:
        return f"{one.change:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"

    return (
        rule,
        _table("windfarm", title, comparisons, change, caption=KNEW),
        _table("windfarm_losses", f"Mean loss of a day, {unit} h", comparisons, lambda one: mean(one.losses), ",.0f"),
    )


def claims(comparisons: Comparisons) -> tuple[Claim, ...]:
    """Claim of section 6.3."""
    (here, met), (bound, _) = (_lowered(comparisons, choose(comparisons)) for choose in (chosen_orca, best_orca))
    claim = "ORCA consistently improves the decision loss (tested: a lower mean loss for every lambda)"
    return (Claim("6.3", claim, here, "yes" if met else "no", bound),)


def _lowered(comparisons: Comparisons, name: str) -> tuple[str, bool]:
    """Change of the mean loss; True if it is below zero for every lambda."""
    changes = [each[name].change for each in comparisons.values()]
    lower = [lam for lam, each in comparisons.items() if each[name].change < 0.0]
    sure = [lam for lam, each in comparisons.items() if each[name].better]
    here = f"{min(changes):+.1f}% to {max(changes):+.1f}%"
    return f"{here}; lower for lambda: {_list(lower)}; significant for: {_list(sure)}", len(lower) == len(comparisons)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none"


# --- experiment ---


def run(folder: str | Path | None, quick: bool, seed: int, pool: Callable[[int], WorkerPool]) -> Result:
    """Run the experiment; `folder` has the series (default: $ORCAST_DATA, else the shipped stand-in)."""
    plan = QUICK if quick else FULL
    series = data.best("wind", folder)
    days = learners.day_ahead(series, days=plan.days, warmup=plan.warmup, trees=plan.trees, seed=seed)
    last = learners.last_outcome_days(series, days=plan.days, warmup=plan.warmup)
    quantiles = {EXPERT: days.quantile(LEVELS), LAST: last.quantile(LEVELS)}
    quantiles |= run_all(days, plan, seed=seed, pool=pool)
    comparisons = {lam: compare_losses(quantiles, days.y, lam, seed=seed) for lam in LAMBDAS}
    return Result(
        "Experiment 3: commitments of a wind farm",
        _notes(series, len(days), chosen_orca(comparisons).removeprefix(ORCA)),
        tables(comparisons, series.unit),
        claims=claims(comparisons),
    )


def _notes(series: Series, days: int, rate: str) -> tuple[str, ...]:
    stand_in = "" if series.name == "wind" else " It is a stand-in: figures are not comparable with those of Texas."
    return (
        f"Series: {series.source}.{stand_in} {days} days of 24 hourly commitments, made before the day, after a "
        f"warm-up of the expert; amounts in {series.unit}, losses of a day in {series.unit} h.",
        "A commitment is the forecast's quantile at (1 + lambda) / 2. Intervals are paired, over days, by a bootstrap "
        f"of weeks ({RESAMPLES:,} resamples). ORCA with decision calibration plays at rate {rate}, chosen by the first "
        "half of the days.",
    )
