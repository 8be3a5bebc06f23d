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
  forecasts say on average what the commitment costs.  The paper states no learning rate; of three, the one with the
  lowest loss in the first half of the days, over all lambdas, is taken, as in experiment 1.
- ours, the default: one recalibrator for the stream of all hours.  The 24 forecasts of a day are made, named by day and
  hour, before the first of its outcomes is known.
- ours, one for each hour: 24 recalibrators, the default each.  What came of an hour is known before its next forecast.
- ours, by hour: one recalibrator for the stream of all hours whose payoff is the default with each part by the hour,
  `context=by("hour", values=range(24))`.
- isotonic recalibration and conformal PID, one for each hour, as people use them (`orcast.baselines`).
- the last outcome before the day with its spread, by the hour, which needs no expert (`learners.last_outcome_days`).

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

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orcast.datasets import Series
from orcast.metrics import LEVELS
from orcast.paper.experiments import data, learners
from orcast.paper.experiments import windfarm_tables as tables
from orcast.paper.experiments.learners import Days
from orcast.paper.experiments.output import Result, styled_figure
from orcast.paper.experiments.windfarm_runs import (
    BY_HOUR,
    DEFAULT,
    EACH,
    EXPERT,
    FULL,
    LAMBDAS,
    LAST,
    ORCA,
    QUICK,
    RESAMPLES,
    SHOWN,
    Comparisons,
    chosen_orca,
    compare_losses,
    play_all,
)
from orcast.parallel import Progress, silent
from orcast.plots import BLUE, GREY, INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["picture", "run"]

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
    return {EXPERT: INK, chosen_orca(comparisons): ORANGE, BY_HOUR: BLUE}


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
    markers = {chosen_orca(comparisons): (ORANGE, "^")} | MARKERS
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
    played = play_all(days, plan, seed=seed, workers=1 if quick else workers, progress=progress)
    last = learners.last_outcome_days(series, days=plan.days, warmup=plan.warmup).quantile(LEVELS)
    quantiles = {EXPERT: played.pop(EXPERT), LAST: last} | played
    comparisons = {lam: compare_losses(quantiles, days.y, lam, seed=seed) for lam in LAMBDAS}
    return Result(
        "windfarm",
        "Experiment 3: what a wind farm commits to",
        _notes(series, days, comparisons),
        (
            tables.target_table(comparisons),
            tables.rule_table(comparisons),
            tables.change_table(comparisons),
            tables.loss_table(comparisons, series.unit),
            *tables.regret_tables(comparisons),
        ),
        {"windfarm": picture(comparisons, series.unit)},
        tables.claims(comparisons),
    )


def _notes(series: Series, days: Days, comparisons: Comparisons) -> tuple[str, ...]:
    stand_in = "" if series.name == "wind" else " It is a stand-in: figures are not comparable with those of Texas."
    chosen = chosen_orca(comparisons)
    return (
        f"Series: {series.source}.{stand_in} {len(days)} days of 24 hourly commitments, made before the day, after a "
        f"warm-up of the expert; amounts in {series.unit}, losses of a day in {series.unit} h.",
        "A commitment is the forecast's quantile at (1 + lambda) / 2. Intervals are paired, over days, by a bootstrap "
        f"of weeks ({RESAMPLES:,} resamples). Regret is against the best fixed percent in hindsight.",
        f"ORCA with decision calibration plays at rate {chosen.removeprefix(ORCA)}, chosen by the first half of the "
        "days.",
    )
