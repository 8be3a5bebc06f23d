"""Experiment 1: online learners recalibrated on real series (paper, section 6.1), beside the strongest alternatives.

**Settings.** Two series, hourly wind power in Texas and monthly sunspots, by four experts: the paper's
(`learners.LEARNERS`), which see the last 24 values and learn from each outcome.  1,000 one-step-ahead forecasts are
recalibrated, after 1,000 rounds of warm-up in which only the expert learns; every method starts from nothing at the
first of them.  The forecast of a learner is normal around its point forecast, with the root mean square of its last 500
residuals as deviation, and is clipped to the bounds of the quantity.  The paper states neither the warm-up nor the
deviation, so its own figures stand beside ours as a landmark; the experts behind them are not the same.

**Methods.** Those of `methods.METHODS`, with default settings, ORCA as in the paper (`methods.orca`), and the last
outcome with its spread, which needs no expert (`learners.last_outcome`).

**ORCA's rate.** The paper states none.  Four are tried, and one is chosen for all settings: the one with the lowest QCE
in the first half of the rounds, in the geometric mean over the settings.  What the best rate of each setting would
have given is known only afterwards, and is called a bound wherever it is shown.

**Runs.** ORCA hangs on its start: it has `tried` runs at every rate, from starts that differ by 1e-6, by which the rate
is chosen, and more up to `runs` at that rate.  The network and the Hoeffding tree depend on a seed: there
are `experts` of them, every method has a run on each, and ORCA goes through them in turn.  The gradient tree and the
marginal distribution do not, so a method other than ORCA has one run on them.
Figures are means over the runs; a deviation is that of single runs, with n - 1.

**What is measured.** All figures of all methods, the expert included, come from the quantiles of the forecasts at
0.005, 0.01, ..., 0.995 within the bounds:

    QCE     sum over the levels 0.01, ..., 0.99 of (frequency - level)^2
    worst   the largest QCE of any 200 consecutive rounds
    CRPS    twice the pinball loss, averaged over the 100 levels 0.005, 0.015, ..., 0.995 (the midpoint rule)
    SMAPE   of the mean of the forecast, the average of the quantiles at these 100 levels
    holds   how often the outcome was between the quantiles at 0.05 and 0.95
    width   the mean distance between these two

**Ties.** Months without sunspots, and experts with mass on the bound, make outcomes that equal several quantiles at
once.  There an indicator is replaced by its expectation under a PIT drawn evenly from the jump
(`orcast.metrics.fair_indicators`), for every method and in every figure that counts.

**Time.** Processor time of `predict` and `update` together: the median over rounds, then over settings and runs.
It is the one thing here that differs each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orcast.datasets import Series
from orcast.paper.experiments import data
from orcast.paper.experiments import recalibration_figures as figures
from orcast.paper.experiments import recalibration_tables as tables
from orcast.paper.experiments.output import Result
from orcast.paper.experiments.recalibration_runs import (
    FULL,
    QUICK,
    RecalibrationPlan,
    SettingResult,
    chance,
    compare,
)
from orcast.parallel import Progress, silent

__all__ = ["SERIES", "result", "run"]

SERIES = ("wind", "sunspots")


def run(
    *,
    folder: str | Path | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int = 2,
    progress: Progress = silent,
) -> Result:
    """The experiment: `folder` holds the series (else ORCAST_DATA names it, else stand-ins of the package are used).

    `quick` has half the experts, fewer rounds and fewer runs.  The same seed gives the same tables and figures, but
    for the times, with any number of workers.
    """
    plan = QUICK if quick else FULL
    series = [data.best(name, folder) for name in SERIES]
    outcomes = compare(plan, series, seed=seed, workers=workers, progress=progress)
    return result(outcomes, plan, series)


def result(outcomes: Sequence[SettingResult], plan: RecalibrationPlan, series: Sequence[Series]) -> Result:
    """Tables, figures and notes of all settings."""
    perfect = chance(plan.steps, window=plan.window, forecasters=plan.perfect)
    return Result(
        "recalibration",
        "Experiment 1: recalibrating online learners",
        _notes(outcomes, plan, series),
        (
            tables.target_table(outcomes),
            tables.chance_table(perfect, plan),
            tables.paper_table(outcomes),
            tables.rule_table(outcomes),
            tables.rate_table(outcomes),
            tables.full_table(outcomes, plan),
            *tables.learning_tables(outcomes),
            tables.time_table(outcomes),
        ),
        {
            "recalibration_qce": figures.qce_figure(outcomes, perfect),
            "recalibration_crps": figures.trade_figure(outcomes, perfect),
            "recalibration_learning": figures.learning_figure(outcomes),
        },
        tables.claims(outcomes),
    )


def _notes(outcomes: Sequence[SettingResult], plan: RecalibrationPlan, series: Sequence[Series]) -> tuple[str, ...]:
    real = all(one.name in SERIES for one in series)
    sources = "; ".join(f"{one.name}: {one.source}" for one in series)
    return (
        f"Series: {sources}."
        + ("" if real else " Stand-ins: the paper's figures are of other series, and are left out."),
        f"{plan.steps:,} one-step-ahead forecasts after {plan.warmup:,} rounds of warm-up, 24 lags, for each of "
        f"{len(outcomes)} settings. ORCA: {plan.tried} jittered runs at each rate, {plan.runs} at the one that had the "
        f"lowest QCE in the first half of the rounds, over all settings: {outcomes[0].rate:g}. "
        f"Network and Hoeffding tree: {plan.experts} seeds. Figures are means over runs."
        + (
            ""
            if plan == FULL
            else " The targets are meant for the full experiment, not for this small one, and the "
            "paper's figures, of more rounds, are left out."
        ),
        "An outcome that ties with several quantiles, as at zero sunspots, counts with its expectation under a PIT "
        "drawn evenly from the jump. CRPS is twice the mean pinball loss at 0.005, 0.015, ..., 0.995, SMAPE that of "
        "the mean of the quantiles at these levels, for every method and the expert alike.",
        "The expert's mean is that of its clipped forecast; SMAPE / point's is against the learner's point forecast.",
    )
