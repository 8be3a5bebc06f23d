"""Experiment 3: what a wind farm commits to, a day ahead (paper, section 6.3).

**The task.** Each day, before any of its hours is known, the operator commits to an amount a for each of the 24 hours.
When y has come, a day costs

    sum over the hours of  (1 + lambda) (y - a)^+ + (1 - lambda) (a - y)^+

The commitment that a forecast asks for is its quantile at (1 + lambda) / 2, `decisions.commitment(p, under=1 + lambda,
over=1 - lambda)`.  lambda is 0, 0.2, 0.5, 0.8 and 0.9; the paper states none.  Amounts are in the units of the series
(MW of all wind in Texas) and so are losses: an hour's loss is MW times the price of one, a day's is the sum of 24.

**The expert.** Bagged trees that see the 24 values of the day before (`learners.day_ahead`), a normal forecast for each
hour; the first 60 days are its warm-up.  Every method starts from nothing on the first day after it.

**Methods.** A forecast serves all five lambdas; what differs is the quantile that is read.

- ORCA as in the paper, 400 steps on 50 even cells, one for each hour of the day: quantiles, two moments and regret in
  CRPS and squared error as in experiment 1, and decision calibration: for nine even commitments and each lambda the
  forecasts say on average what the commitment costs.  At three learning rates, of which the paper states none; the
  figure has the one that did best, which is known only afterwards.
- ours, the default: one recalibrator for the stream of all hours.  The 24 forecasts of a day are made, named by day and
  hour, before the first of its outcomes is known.
- ours, one for each hour: 24 recalibrators, the default each.  What came of an hour is known before its next forecast.
- ours, by hour: one recalibrator for the stream of all hours whose payoff is the default with each part by the hour,
  `context=by("hour", values=range(24))`.
- isotonic recalibration and conformal PID, one for each hour, as people use them (`orcast.baselines`).

Tried besides, without a difference that matters: ORCA on the stream of all hours, with quantiles and decisions alone,
and with decisions and regret alone (it did worse); ours by parts of the day, by the expert's level, by hour and last
error, with decision calibration, with forgetting, and at other temperatures. With regret in the five losses
themselves ours by hour did better by one to two points up to lambda = 0.8, but not because of them: such a payoff is
played by the dense engine, whose prior does not correct the expert by groups. At lambda = 0.9 the upper end of the
interval of ours, by hour, lies near zero, with other seeds of the trees on either side of it.

**What is measured.** The mean loss of a day, and its difference to the expert's in percent of the expert's mean loss.
Its 95% interval is over days, paired, by a bootstrap of blocks: days follow each other, so they are drawn in weeks
(7 days from a day drawn at random, the last day followed by the first), 4,000 times.  Regret is the mean loss minus
that of the best fixed quantile in hindsight: of all percents the one at which the quantiles of all hours and days would
have cost least, those of the expert, or those of the method itself.  It is in percent of the expert's mean loss, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast import baselines
from orcast.metrics import LEVELS
from orcast.paper.experiments import data, learners
from orcast.paper.experiments.data import RealSeries
from orcast.paper.experiments.learners import HOURS, Days
from orcast.paper.experiments.methods import paper_oracle, paper_payoff
from orcast.paper.experiments.output import Cell, Result, ResultTable, Row, mean, styled_figure, yes_or_no
from orcast.paper.experiments.parallel import Progress, WorkerPool, silent
from orcast.plots import BLUE, GREY, INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FULL",
    "LAMBDAS",
    "QUICK",
    "LossComparison",
    "WindFarmPlan",
    "best_level",
    "column",
    "compare_losses",
    "daily_loss",
    "forecasts",
    "interval",
    "methods_of",
    "play_all",
    "run",
]

Vector = NDArray[np.float64]

LAMBDAS = (0.0, 0.2, 0.5, 0.8, 0.9)
SHOWN = 0.5  # the lambda of the figure
COMMITMENTS = 9
BLOCK, RESAMPLES = 7, 4000

EXPERT = "expert"
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
            played[day, hour] = game.predict(forecast, id=(day, hour), x={"hour": hour}).quantile(LEVELS)
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
    """The rate of ORCA that did best over all lambdas, known afterwards."""
    names = [name for name in comparisons[SHOWN] if name.startswith(ORCA)]
    return min(names, key=lambda name: sum(each[name].change for each in comparisons.values()))


# --- tables ---


def change_table(comparisons: Comparisons) -> ResultTable:
    """Change of the mean loss against the expert, with its interval."""
    days = comparisons[SHOWN][EXPERT].losses.size
    title = f"Mean loss against the expert's over {days} days, %, with paired 95% intervals"
    names = [name for name in comparisons[SHOWN] if name != EXPERT]
    return _by_lambda("windfarm", title, comparisons, names, _shown)


def _shown(one: LossComparison) -> str:
    return f"{one.change:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"


def loss_table(comparisons: Comparisons, unit: str) -> ResultTable:
    """The mean loss of a day."""
    title = f"Mean loss of a day, {unit} h"
    names = list(comparisons[SHOWN])
    return _by_lambda("windfarm_losses", title, comparisons, names, lambda one: mean(one.losses), ",.0f")


def regret_tables(comparisons: Comparisons) -> Iterator[ResultTable]:
    """Mean loss minus that of the best fixed quantile in hindsight: of the expert, and of the method itself."""
    kinds: tuple[tuple[str, str, Callable[[LossComparison], Cell]], ...] = (
        ("windfarm_regret", "expert's", lambda one: one.regret),
        ("windfarm_own_regret", "method's own", lambda one: one.own_regret),
    )
    for name, whose, figure in kinds:
        title = f"Regret against the {whose} best fixed quantile in hindsight, in % of the expert's mean loss"
        yield _by_lambda(name, title, comparisons, list(comparisons[SHOWN]), figure, "+.2f")


def _by_lambda(
    name: str,
    title: str,
    comparisons: Comparisons,
    methods: Sequence[str],
    figure: Callable[[LossComparison], Cell],
    digits: str = "",
) -> ResultTable:
    rows: list[Row] = [
        {"method": method, **{f"lambda = {lam:g}": figure(each[method]) for lam, each in comparisons.items()}}
        for method in methods
    ]
    return ResultTable.of(name, title, rows, dict.fromkeys(rows[0], digits))


def target_table(comparisons: Comparisons) -> ResultTable:
    """What was to be reached, and whether it was."""
    rows: list[tuple[Cell, ...]] = []
    for name in (DEFAULT, EACH, BY_HOUR):
        lower = [lam for lam, each in comparisons.items() if each[name].change < 0.0]
        below = [lam for lam, each in comparisons.items() if each[name].better]
        rows.append((name, _list(lower), _list(below), yes_or_no(len(below) == len(comparisons))))
    columns = ("method", "mean loss lower, lambda", "interval below zero, lambda", "met for every lambda")
    return ResultTable(
        "windfarm_targets", "Ours is to lower the loss for every lambda, with a 95% interval below zero", columns, rows
    )


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none"


# --- the figure ---

MARKERS = {DEFAULT: ("#56B4E9", "s"), EACH: ("#CC79A7", "v"), BY_HOUR: (BLUE, "o")}


def picture(comparisons: Comparisons, unit: str) -> Figure:
    """Losses of each day and their means as in the paper; their sums; and the change for every lambda."""
    with styled_figure(8.2, w_pad=0.1, h_pad=0.1) as figure:
        grid = figure.add_gridspec(2, 2, height_ratios=(1.0, 1.15))
        _draw_days(figure.add_subplot(grid[0, :]), comparisons, unit)
        _draw_sums(figure.add_subplot(grid[1, 0]), comparisons, unit)
        _draw_changes(figure.add_subplot(grid[1, 1]), comparisons)
    return figure


def _lines(comparisons: Comparisons) -> dict[str, str]:
    """Name and colour of what the figure follows day by day."""
    return {EXPERT: INK, best_orca(comparisons): ORANGE, BY_HOUR: BLUE}


def _draw_days(axes: Axes, comparisons: Comparisons, unit: str) -> None:
    most = 0.0
    for name, color in _lines(comparisons).items():
        losses = comparisons[SHOWN][name].losses / 1000.0
        most = max(most, float(losses.max()))
        t = np.arange(1, losses.size + 1)
        axes.plot(t, losses, color=color, lw=0.8, alpha=0.75, label=f"{name}: mean {losses.mean():,.1f}")
        axes.axhline(float(losses.mean()), color=color, lw=1.5, ls=(0, (5, 2)))
    axes.set(title=f"Loss of each day (thin) and its mean (dashed), lambda = {SHOWN:g}", xlabel="day")
    axes.set(ylabel=f"loss, thousand {unit} h", xlim=(1, t[-1]), ylim=(0.0, 1.2 * most))
    axes.legend(loc="upper left", ncols=3)


def _draw_sums(axes: Axes, comparisons: Comparisons, unit: str) -> None:
    each = comparisons[SHOWN]
    axes.axhline(0.0, color=INK, lw=1.0)
    for name, color in list(_lines(comparisons).items())[1:]:
        saved = np.cumsum(each[name].losses - each[EXPERT].losses) / 1000.0
        axes.plot(np.arange(1, saved.size + 1), saved, color=color, lw=1.6, label=name)
    axes.set(title=f"Summed up against the expert, lambda = {SHOWN:g}\n(below zero: cheaper)", xlabel="day")
    axes.set(ylabel=f"thousand {unit} h", xlim=(1, saved.size))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="best")


def _draw_changes(axes: Axes, comparisons: Comparisons) -> None:
    axes.axhline(0.0, color=INK, lw=1.0)
    markers = {best_orca(comparisons): (ORANGE, "^")} | MARKERS
    for i, (name, (color, mark)) in enumerate(markers.items()):
        at = np.arange(len(comparisons)) + 0.16 * (i - (len(markers) - 1) / 2)
        found = [each[name] for each in comparisons.values()]
        change = np.array([one.change for one in found])
        ends = np.array([[one.change - one.low for one in found], [one.high - one.change for one in found]])
        axes.errorbar(at, change, ends, color=color, marker=mark, ms=4.5, ls="", lw=1.3, capsize=2.0, label=name)
    axes.set_xticks(range(len(comparisons)), [f"{lam:g}" for lam in comparisons])
    axes.set(title="Mean loss against the expert's,\nwith paired 95% intervals", xlabel="lambda", ylabel="change, %")
    axes.grid(axis="y", color=GREY, alpha=0.25, lw=0.6)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=9.0)


# --- the experiment ---


def run(
    *,
    folder: str | Path | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int = 2,
    progress: Progress = silent,
) -> Result:
    """The experiment: `folder` holds the series (else ORCAST_DATA names it, else the package's stand-in is used).

    `quick` has fewer days, trees, steps of ORCA and learning rates.  The same seed gives the same tables and figures,
    with any number of workers.
    """
    plan = QUICK if quick else FULL
    series = data.best("wind", folder)
    progress("bagged trees", 0.0)
    days = learners.day_ahead(series, days=plan.days, warmup=plan.warmup, trees=plan.trees, seed=seed)
    # to start a process takes longer than what a quick one would have to do
    quantiles = play_all(days, plan, seed=seed, workers=1 if quick else workers, progress=progress)
    comparisons = {lam: compare_losses(quantiles, days.y, lam, seed=seed) for lam in LAMBDAS}
    return Result(
        "windfarm",
        "Experiment 3: what a wind farm commits to",
        _notes(series, days, comparisons),
        (
            target_table(comparisons),
            change_table(comparisons),
            loss_table(comparisons, series.unit),
            *regret_tables(comparisons),
        ),
        {"windfarm": picture(comparisons, series.unit)},
    )


def _notes(series: RealSeries, days: Days, comparisons: Comparisons) -> tuple[str, ...]:
    stand_in = "" if series.name == "wind" else " It is a stand-in: figures are not comparable with those of Texas."
    chosen = best_orca(comparisons)
    worse = [lam for lam, each in comparisons.items() if each[chosen].low > 0.0]
    better = [lam for lam, each in comparisons.items() if each[chosen].better]
    return (
        f"Series: {series.source}.{stand_in} {len(days)} days of 24 hourly commitments, made before the day, after a "
        f"warm-up of the expert; amounts in {series.unit}, losses of a day in {series.unit} h.",
        "A commitment is the forecast's quantile at (1 + lambda) / 2. Intervals are paired, over days, by a bootstrap "
        f"of weeks ({RESAMPLES:,} resamples). Regret is against the best fixed percent in hindsight.",
        f"ORCA with decision calibration at its best rate ({chosen.removeprefix(ORCA)}, known afterwards) has an "
        f"interval below zero for lambda: {_list(better)}; above zero for: {_list(worse)}.",
    )
