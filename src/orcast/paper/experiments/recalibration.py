"""Experiment 1: online learners recalibrated on real series (paper, section 6.1), beside the strongest alternatives.

**Settings.** Two series, hourly wind power in Texas and monthly sunspots, by four experts: the paper's
(`learners.LEARNERS`), which see the last 24 values and learn from each outcome.  1,000 one-step-ahead forecasts are
recalibrated, after 1,000 rounds of warm-up in which only the expert learns; every method starts from nothing at the
first of them.  The forecast of a learner is normal around its point forecast, with the root mean square of its last 500
residuals as deviation, and is clipped to the bounds of the quantity.  The paper states neither the warm-up nor the
deviation, so its own figures stand beside ours as a landmark; the experts behind them are not the same.

**Methods.** Those of `methods.METHODS`, with default settings, and ORCA as in the paper (`methods.orca`) at four
learning rates, of which the paper states none.

**Runs.** ORCA hangs on its start: it has `tried` runs at every rate, from starts that differ by 1e-6, and more up to
`runs` at the rate whose first ones had the lowest QCE.  The network and the Hoeffding tree depend on a seed: there
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

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.evidence import Evidence, coverage
from orcast.metrics import LEVELS, crps_quantiles, qce, smape, worst_rolling_qce
from orcast.paper.experiments import data, learners
from orcast.paper.experiments.data import RealSeries
from orcast.paper.experiments.learners import LEARNERS, Gaussian, Marginal
from orcast.paper.experiments.methods import METHODS, OURS, RATES, WINDOW, Method, orca
from orcast.paper.experiments.output import Cell, Result, ResultTable, Row, deviation, mean, styled_figure, yes_or_no
from orcast.paper.experiments.parallel import Progress, WorkerPool, silent
from orcast.plots import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FULL",
    "PAPER",
    "QUICK",
    "MethodScore",
    "RecalibrationPlan",
    "SettingResult",
    "chance",
    "compare",
    "measure",
    "play",
    "run",
]

Vector = NDArray[np.float64]
ForecastStream = Gaussian | Marginal

SERIES = ("wind", "sunspots")
SEEDED = ("network", "hoeffding-tree")
"""The experts that depend on a seed."""

GRID: Vector = np.arange(1, 200) / 200
"""The levels at which every forecast is read: the percents, and half-way between them."""
MIDDLES: Vector = GRID[::2]
FIVE = 4  # column of 0.05 among the percents

EXPERT, ISOTONIC = "expert", "isotonic"
FIGURES = ("qce", "worst", "crps", "smape", "holds", "width")
TITLES = {
    "gradient-tree": "gradient tree",
    "network": "neural network",
    "hoeffding-tree": "Hoeffding tree",
    "marginal": "marginal",
}

# What is to be reached.
MOST_QCE, MORE_CRPS, MORE_SMAPE = 0.010, 1.01, 1.015
SHARE_BELOW_ORCA, SHARE_BETTER = 7 / 8, 6 / 8

PAPER: dict[tuple[str, str], dict[str, tuple[float, float]]] = {
    ("wind", "gradient-tree"): {"expert": (0.163, 0.403), "isotonic": (0.246, 0.554), "ORCA": (0.013, 0.405)},
    ("wind", "network"): {"expert": (0.142, 0.353), "isotonic": (0.121, 0.567), "ORCA": (0.083, 0.397)},
    ("wind", "hoeffding-tree"): {"expert": (0.212, 0.545), "isotonic": (0.186, 0.428), "ORCA": (0.016, 0.431)},
    ("wind", "marginal"): {"expert": (0.126, 0.545), "isotonic": (0.094, 0.359), "ORCA": (0.017, 0.391)},
    ("sunspots", "gradient-tree"): {"expert": (0.100, 0.505), "isotonic": (0.242, 1.081), "ORCA": (0.045, 0.513)},
    ("sunspots", "network"): {"expert": (0.048, 0.447), "isotonic": (0.147, 1.061), "ORCA": (0.042, 0.453)},
    ("sunspots", "hoeffding-tree"): {"expert": (0.072, 0.432), "isotonic": (0.116, 1.061), "ORCA": (0.040, 0.479)},
    ("sunspots", "marginal"): {"expert": (0.046, 0.534), "isotonic": (0.084, 1.016), "ORCA": (0.040, 0.576)},
}
"""The paper's own figures by series and expert: (QCE, SMAPE), from the table of section 6."""


@dataclass(frozen=True)
class RecalibrationPlan:
    """How much is done: experts, rounds, ORCA's rates, its runs at each and in all at the best, seeds of experts.

    >>> FULL.steps, FULL.rates, FULL.tried, FULL.runs, FULL.experts
    (1000, (0.003, 0.01, 0.03, 0.1), 3, 10, 10)
    """

    learners: tuple[str, ...] = tuple(LEARNERS)
    steps: int = 1000
    warmup: int = 1000
    window: int = 200
    rates: tuple[float, ...] = RATES
    tried: int = 3
    runs: int = 10
    experts: int = 10
    perfect: int = 200  # simulated forecasters

    def seeds(self, learner: str) -> int:
        """How many runs there are of an expert."""
        return self.experts if learner in SEEDED else 1


FULL = RecalibrationPlan()
QUICK = RecalibrationPlan(
    learners=("network", "marginal"), steps=60, warmup=60, window=30, tried=1, runs=2, experts=2, perfect=20
)


# --- a run ---


@dataclass(frozen=True)
class MethodScore:
    """What is measured of a sequence of forecasts; `milliseconds` a round, which is no part of it."""

    qce: float
    worst: float
    crps: float
    smape: float
    holds: float
    width: float
    milliseconds: float | None = field(default=None, compare=False)


def measure(q: Vector, y: Vector, *, low: float, high: float, window: int = 200) -> MethodScore:
    """The figures of a table from quantiles at the levels `GRID`, a row a round.

    >>> y = (np.arange(400) * 0.618034) % 1.0
    >>> score = measure(np.tile(GRID, (400, 1)), y, low=0.0, high=1.0)
    >>> score.qce < 1e-3, round(score.crps, 3), round(score.holds, 2), round(score.width, 3)
    (True, 0.167, 0.9, 0.9)
    """
    percents, middles = q[:, 1::2], q[:, ::2]
    return MethodScore(
        qce=qce(percents, y, low=low, high=high),
        worst=worst_rolling_qce(percents, y, window=window, low=low, high=high),
        crps=float(crps_quantiles(middles, y, MIDDLES).mean()),
        smape=float(smape(middles.mean(axis=1), y).mean()),
        holds=coverage(Evidence.of(percents, y, levels=LEVELS, low=low, high=high), 0.9),
        width=float((percents[:, -1 - FIVE] - percents[:, FIVE]).mean()),
    )


def play(stream: ForecastStream, method: Method) -> tuple[Vector, float]:
    """Quantiles at the levels `GRID` of what a method makes of a stream, a row a round, and its milliseconds.

    >>> from orcast.paper.experiments.learners import Gaussian
    >>> stream = Gaussian("toy", np.full(3, 5.0), np.ones(3), np.array([4.0, 5.0, 6.0]), 0.0, 10.0)
    >>> q, milliseconds = play(stream, METHODS["ours"](0.0, 10.0))
    >>> q.shape, milliseconds > 0.0
    ((3, 199), True)
    """
    q = np.empty((len(stream), GRID.size))
    seconds = np.empty(len(stream))
    for t, (forecast, y) in enumerate(zip(stream.forecasts(), stream.y.tolist(), strict=True)):
        start = time.thread_time()
        p = method.predict(forecast)
        issued = time.thread_time()
        q[t] = p.quantile(GRID)
        read = time.thread_time()
        method.update(y)
        seconds[t] = time.thread_time() - read + issued - start
    return q, 1e3 * float(np.median(seconds))


def _score(stream: ForecastStream, method: Method, window: int) -> MethodScore:
    q, milliseconds = play(stream, method)
    score = measure(q, stream.y, low=stream.low, high=stream.high, window=window)
    return replace(score, milliseconds=milliseconds)


class Prepared(NamedTuple):
    """A stream, its score and that of all methods but ORCA, and the SMAPE of the learner's point forecasts."""

    stream: ForecastStream
    scores: dict[str, MethodScore]
    point_smape: float


def _prepared(series: RealSeries, learner: str, plan: RecalibrationPlan, seed: int) -> Prepared:
    stream = learners.stream(series, learner, steps=plan.steps, warmup=plan.warmup, seed=seed)
    bounds = {"low": stream.low, "high": stream.high}
    scores = {EXPERT: measure(stream.quantile(GRID), stream.y, window=plan.window, **bounds)}
    scores |= {name: _score(stream, make(stream.low, stream.high), plan.window) for name, make in METHODS.items()}
    return Prepared(stream, scores, float(smape(stream.mu, stream.y).mean()))


def _orca(stream: ForecastStream, rate: float, seed: int, window: int) -> MethodScore:
    return _score(stream, orca(stream.low, stream.high, rate=rate, seed=seed), window)


# --- all runs ---


@dataclass(frozen=True)
class SettingResult:
    """The result of a setting: scores by method, one a run, ORCA's by its rate; and the best rate."""

    series: str
    learner: str
    scores: Mapping[str, Sequence[MethodScore]]
    orca: Mapping[float, Sequence[MethodScore]]
    best: float
    point_smape: Sequence[float]  # SMAPE of the learner's point forecasts, a run each
    steps: int = FULL.steps

    @property
    def paper(self) -> Mapping[str, tuple[float, float]]:
        """The paper's own figures by method, if they are of the same series and as many rounds."""
        return PAPER.get((self.series, self.learner), {}) if self.steps == FULL.steps else {}

    @property
    def name(self) -> str:
        """Of the setting."""
        return f"{self.series}/{self.learner}"

    def of(self, method: str) -> Sequence[MethodScore]:
        """The runs of a method; "ORCA" is the one at its best rate."""
        return self.orca[self.best] if method == "ORCA" else self.scores[method]

    def mean(self, method: str, what: str) -> float:
        """Mean of a figure over the runs of a method."""
        return mean(getattr(score, what) for score in self.of(method))

    def relative(self, runs: Sequence[MethodScore], what: str) -> float:
        """Mean over runs of a figure divided by that of the expert in the same run."""
        own = self.scores[EXPERT]
        return mean(getattr(score, what) / getattr(own[r % len(own)], what) for r, score in enumerate(runs))

    def gap(self, method: str, runs: Sequence[MethodScore]) -> float:
        """Mean QCE of a method less that of these runs, on the same runs of the expert."""
        own = self.scores[method]
        return mean(own[r % len(own)].qce - score.qce for r, score in enumerate(runs))


Setting = tuple[str, str]  # series and expert


def compare(
    plan: RecalibrationPlan,
    series: Sequence[RealSeries],
    *,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = silent,
) -> list[SettingResult]:
    """All runs of a plan; what comes out does not depend on the number of workers."""
    settings = {(one.name, learner): one for one in series for learner in plan.learners}
    starts = {
        (setting, r): (one, setting[1], plan, seed + r)
        for setting, one in settings.items()
        for r in range(plan.seeds(setting[1]))
    }
    jobs = len(starts) + len(settings) * (len(plan.rates) * plan.tried + plan.runs - plan.tried)
    with WorkerPool(workers, jobs, progress) as pool:
        begun = pool.run(_prepared, starts, lambda _: "experts, and methods other than ORCA")

        def play_orca(
            rates: Mapping[Setting, Sequence[float]], runs: range, what: str
        ) -> dict[tuple[Setting, float, int], MethodScore]:
            tasks = {
                (setting, rate, r): (begun[setting, r % plan.seeds(setting[1])].stream, rate, seed + r, plan.window)
                for setting in settings
                for rate in rates[setting]
                for r in runs
            }
            return pool.run(_orca, tasks, lambda _: what)

        tried = range(plan.tried)
        found = play_orca(dict.fromkeys(settings, plan.rates), tried, "ORCA at each rate")
        best = {
            setting: min(plan.rates, key=lambda rate: mean(found[setting, rate, r].qce for r in tried))
            for setting in settings
        }
        more = {setting: (rate,) for setting, rate in best.items()}
        found |= play_orca(more, range(plan.tried, plan.runs), "ORCA at its best")

    def result_of(setting: Setting) -> SettingResult:
        own = [begun[setting, r] for r in range(plan.seeds(setting[1]))]
        orca_runs = {rate: [score for key, score in found.items() if key[:2] == (setting, rate)] for rate in plan.rates}
        scores = {method: [one.scores[method] for one in own] for method in (EXPERT, *METHODS)}
        return SettingResult(*setting, scores, orca_runs, best[setting], [one.point_smape for one in own], plan.steps)

    return [result_of(setting) for setting in settings]


@dataclass(frozen=True)
class Chance:
    """What a perfectly calibrated forecaster shows: mean QCE, its 5% and 95% quantiles, and the mean worst QCE."""

    mean: float
    low: float
    high: float
    worst: float


def chance(rounds: int, *, window: int = 200, forecasters: int = 200, seed: int = 0) -> Chance:
    """The QCE of a forecaster whose PITs are independent and uniform.

        mean = sum_a a (1 - a) / T

    The quantiles are simulated, and so is the worst QCE over a window.

    >>> c = chance(1000, forecasters=5)
    >>> round(c.mean, 4), c.low < c.mean < c.high < c.worst
    (0.0167, True)
    """
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(rounds, np.full(100, 0.01), size=20_000)[:, :-1]
    drawn = ((np.cumsum(counts, axis=1) / rounds - LEVELS) ** 2).sum(axis=1)
    low, high = np.quantile(drawn, [0.05, 0.95])
    q = np.tile(LEVELS, (rounds, 1))
    worst = [worst_rolling_qce(q, rng.random(rounds), window=window) for _ in range(forecasters)]
    mean = float((LEVELS * (1.0 - LEVELS)).sum()) / rounds
    return Chance(mean, float(low), float(high), float(np.mean(worst)))


# --- tables ---


def _all_methods(outcome: SettingResult) -> Iterator[tuple[str, Sequence[MethodScore]]]:
    """Every method with its runs, in the order of tables: ours last, ORCA by its rates before it."""
    for method, runs in outcome.scores.items():
        if method == OURS:
            yield from ((f"ORCA {rate:g}", of_rate) for rate, of_rate in outcome.orca.items())
        yield method, runs


def full_table(outcomes: Sequence[SettingResult], plan: RecalibrationPlan) -> ResultTable:
    """Every figure of every method in every setting."""
    rows: list[Row] = []
    for outcome in outcomes:
        for method, runs in _all_methods(outcome):
            figures = {what: [getattr(score, what) for score in runs] for what in FIGURES}
            rows.append(
                {
                    "series": outcome.series,
                    "expert": TITLES[outcome.learner],
                    "method": method,
                    "runs": len(runs),
                    "QCE": mean(figures["qce"]),
                    "QCE sd": deviation(figures["qce"]),
                    "worst QCE": mean(figures["worst"]),
                    "SMAPE": mean(figures["smape"]),
                    "SMAPE sd": deviation(figures["smape"]),
                    "CRPS": mean(figures["crps"]),
                    "CRPS / expert's": outcome.relative(runs, "crps"),
                    "90% holds": mean(figures["holds"]),
                    "90% width": mean(figures["width"]),
                }
            )
    digits = dict.fromkeys(("QCE", "QCE sd", "worst QCE", "SMAPE", "SMAPE sd"), ".4f")
    digits |= {"CRPS / expert's": ".3f", "90% holds": ".1%"}
    title = f"Every method, {plan.steps:,} rounds; worst QCE is that of any {plan.window} consecutive ones"
    return ResultTable.of("recalibration", title, rows, digits)


def paper_table(outcomes: Sequence[SettingResult]) -> ResultTable:
    """The paper's table, with its own figures beside."""
    names = list(dict.fromkeys(outcome.series for outcome in outcomes))
    by_place = {(outcome.series, outcome.learner): outcome for outcome in outcomes}
    rows: list[Row] = []
    for learner in dict.fromkeys(outcome.learner for outcome in outcomes):
        for method in (EXPERT, ISOTONIC, "ORCA", OURS):
            row: Row = {"forecaster": TITLES[learner] if method == EXPERT else f"+ {method}"}
            for name in names:
                theirs = by_place[name, learner].paper.get(method, (None, None))
                for what, figure in zip(("QCE", "SMAPE"), theirs, strict=True):
                    row[f"{name} {what}"] = by_place[name, learner].mean(method, what.lower())
                    row[f"paper's {name} {what}"] = figure
            rows.append(row)
    digits = dict.fromkeys(rows[0], ".3f") | {f"{name} QCE": ".4f" for name in names}
    return ResultTable.of("recalibration_paper", "The paper's table, ORCA at its best rate", rows, digits)


def rate_table(outcomes: Sequence[SettingResult]) -> ResultTable:
    """QCE of ORCA by its rate, beside the expert's and ours."""
    rows: list[Row] = []
    for outcome in outcomes:
        best = outcome.of("ORCA")
        qces = [score.qce for score in outcome.scores[OURS]]
        rows.append(
            {
                "series": outcome.series,
                "expert": TITLES[outcome.learner],
                "expert's": outcome.mean(EXPERT, "qce"),
                **{f"ORCA {rate:g}": mean(score.qce for score in runs) for rate, runs in outcome.orca.items()},
                "best rate": f"{outcome.best:g}",
                "its runs": len(best),
                "its sd": deviation([score.qce for score in best]),
                "ours": outcome.mean(OURS, "qce"),
                "our sd": deviation(qces),
                "our worst": max(qces),
            }
        )
    tried = min(len(runs) for runs in outcomes[0].orca.values())
    title = f"QCE by ORCA's rate, {tried} runs at each but the best"
    return ResultTable.of("recalibration_rates", title, rows, dict.fromkeys(rows[0], ".4f"))


def time_table(outcomes: Sequence[SettingResult]) -> ResultTable:
    """Milliseconds a round of each method."""
    times: dict[str, list[float]] = {}
    for outcome in outcomes:
        for method, runs in _all_methods(outcome):
            times.setdefault(method, []).extend(s.milliseconds for s in runs if s.milliseconds is not None)
    rows: list[Row] = [
        {"method": method, "ms a round": float(np.median(each))} for method, each in times.items() if each
    ]
    title = "Processor time a round, predict and update"
    return ResultTable.of("recalibration_time", title, rows, {"ms a round": ".3f"})


def target_table(outcomes: Sequence[SettingResult]) -> ResultTable:
    """What was to be reached, what was measured, and whether that is enough."""
    count = len(outcomes)
    ours = {o.name: o.mean(OURS, "qce") for o in outcomes}
    crps = {o.name: o.relative(o.scores[OURS], "crps") for o in outcomes}
    percent = {o.name: o.relative(o.scores[OURS], "smape") for o in outcomes}
    above_best = [o.name for o in outcomes if o.gap(OURS, o.of("ORCA")) > 0.0]
    above_any = [o.name for o in outcomes if any(o.gap(OURS, runs) > 0.0 for runs in o.orca.values())]
    enough, better = math.ceil(SHARE_BELOW_ORCA * count), math.ceil(SHARE_BETTER * count)
    worse = {rate: [o.name for o in outcomes if o.gap(EXPERT, o.orca[rate]) <= 0.0] for rate in outcomes[0].orca}
    at_best = [o.name for o in outcomes if o.gap(EXPERT, o.of("ORCA")) <= 0.0]
    ever = "; ".join(f"at {rate:g} not on {', '.join(names)}" for rate, names in worse.items() if names)
    rows: list[tuple[Cell, ...]] = [
        (
            f"ours: QCE at most {MOST_QCE:.3f} on all {count}",
            f"{min(ours.values()):.4f} to {max(ours.values()):.4f}",
            yes_or_no(max(ours.values()) <= MOST_QCE),
        ),
        (
            f"ours: QCE not above ORCA's at its best rate, on the same runs, on at least {enough} of {count}",
            _so_many(above_best, count),
            yes_or_no(count - len(above_best) >= enough),
        ),
        (
            f"ours: QCE not above ORCA's at any rate, on the same runs, on at least {enough} of {count}",
            _so_many(above_any, count),
            yes_or_no(count - len(above_any) >= enough),
        ),
        _against_paper(outcomes, ours),
        *_kept("CRPS", crps, MORE_CRPS, better),
        *_kept("SMAPE", percent, MORE_SMAPE, better),
        (
            f"ORCA at its best rate: QCE below the expert's on all {count}",
            _so_many(at_best, count) + (f"; {ever}" if ever else "; at every rate"),
            yes_or_no(not at_best),
        ),
    ]
    return ResultTable("recalibration_targets", "What was to be reached", ("target", "measured", "met"), rows)


def _against_paper(outcomes: Sequence[SettingResult], ours: Mapping[str, float]) -> tuple[Cell, ...]:
    target = f"ours: QCE below the paper's figure for ORCA on all {len(outcomes)}"
    theirs = {o.name: o.paper.get("ORCA") for o in outcomes}
    if None in theirs.values():
        return target, "another series or length: not comparable", ""
    missed = [name for name, figures in theirs.items() if figures is not None and ours[name] >= figures[0]]
    return target, _so_many(missed, len(outcomes)), yes_or_no(not missed)


def _kept(what: str, ratios: Mapping[str, float], most: float, better: int) -> Iterator[tuple[Cell, ...]]:
    worst = max(ratios, key=lambda name: ratios[name])
    yield (
        f"ours: {what} at most {most - 1:.1%} above the expert's on any",
        f"at most {ratios[worst]:.3f} times the expert's ({worst})",
        yes_or_no(ratios[worst] <= most),
    )
    improved = sum(ratio < 1.0 for ratio in ratios.values())
    yield (
        f"ours: {what} below the expert's on at least {better} of {len(ratios)}",
        f"{improved} of {len(ratios)}",
        yes_or_no(improved >= better),
    )


def _so_many(missed: Sequence[str], count: int) -> str:
    return f"{count - len(missed)} of {count}" + (f", not on {', '.join(missed)}" if missed else "")


# --- figures ---

# Okabe and Ito's colours, each with a shape of its own.
MARKERS: dict[str, tuple[str, str]] = {
    EXPERT: (INK, "o"),
    ISOTONIC: ("#E69F00", "s"),
    f"isotonic, last {WINDOW}": ("#CC79A7", "D"),
    "ACI per level": ("#56B4E9", "^"),
    "conformal PID": ("#009E73", "v"),
    "ORCA": ("#D55E00", "h"),
    OURS: ("#0072B2", "*"),
}
SHAPES = {"gradient-tree": "s", "network": "o", "hoeffding-tree": "^", "marginal": "D"}
STAR = 1.6  # a star must be larger to look as large


def qce_figure(outcomes: Sequence[SettingResult], perfect: Chance) -> Figure:
    """QCE by setting and method: means with the range of the runs, beside chance and the paper's ORCA."""
    from matplotlib.lines import Line2D

    with _figure(outcomes, perfect, height=5.6) as (figure, panels):
        for axes, (_, own) in panels:
            axes.axvline(perfect.mean, color=GREY, lw=1.0, ls=(0, (4, 2)))
            for row, outcome in enumerate(own):
                for place, (method, (color, shape)) in enumerate(MARKERS.items()):
                    at = row + 0.11 * (place - (len(MARKERS) - 1) / 2)
                    values = [s.qce for s in outcome.of(method)]
                    axes.plot([min(values), max(values)], [at, at], color=color, lw=1.6, alpha=0.55)
                    size = 6.0 * (STAR if shape == "*" else 1.0)
                    axes.plot(np.mean(values), at, shape, color=color, ms=size, mec="white", mew=0.6)
                    theirs = outcome.paper.get(method)
                    if method == "ORCA" and theirs is not None:
                        axes.plot(theirs[0], at, "x", color=color, ms=6.5, mew=1.6)
                if row:
                    axes.axhline(row - 0.5, color=GREY, lw=0.4)
            axes.set_ylim(len(own) - 0.5, -0.5)
            axes.set_yticks(range(len(own)), [TITLES[o.learner] for o in own])
            axes.tick_params(axis="y", length=0)
        handles = _method_handles()
        if any(o.paper for o in outcomes):
            color = MARKERS["ORCA"][0]
            handles.append(Line2D([], [], color=color, marker="x", ls="", mew=1.6, label="ORCA in the paper"))
        handles += [_band("a perfect forecaster: mean, and 90% of cases")]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.6)
    return figure


def trade_figure(outcomes: Sequence[SettingResult], perfect: Chance) -> Figure:
    """CRPS relative to the expert against QCE, means over the runs: left is calibrated, down is accurate."""
    from matplotlib.lines import Line2D

    with _figure(outcomes, perfect, height=5.4) as (figure, panels):
        for axes, (_, own) in panels:
            axes.axhline(1.0, color=GREY, lw=0.8)
            for outcome in own:
                for method, (color, _) in MARKERS.items():
                    x, y = outcome.mean(method, "qce"), outcome.relative(outcome.of(method), "crps")
                    axes.plot(x, y, SHAPES[outcome.learner], color=color, ms=7.5, mec="white", mew=0.7)
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            ticks = [tick for tick in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5) if low <= tick <= high]
            axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_yticks([], minor=True)
        panels[0][0].set_ylabel("CRPS relative to the expert's")
        handles = _method_handles(round_markers=True)
        handles += [
            Line2D([], [], color="white", marker=SHAPES[learner], ls="", ms=7.0, mec=INK, label=f"on {TITLES[learner]}")
            for learner in dict.fromkeys(o.learner for o in outcomes)
        ]
        handles += [_band("a perfect forecaster, 90% of cases")]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.6)
    return figure


Panel = tuple["Axes", tuple[str, list[SettingResult]]]


@contextmanager
def _figure(
    outcomes: Sequence[SettingResult], perfect: Chance, *, height: float
) -> Iterator[tuple[Figure, list[Panel]]]:
    """A figure with a panel for each series and its outcomes, by QCE, with the QCE of a perfect forecaster."""
    own = {o.series: [each for each in outcomes if each.series == o.series] for o in outcomes}
    with styled_figure(height) as figure:
        grid = figure.subplots(1, len(own), sharey=True, sharex=True, squeeze=False)[0]
        for axes, series in zip(grid, own, strict=True):
            axes.set(title=series, xlabel="QCE", xscale="log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.axvspan(perfect.low, perfect.high, color=GREY, alpha=0.18, lw=0)
        yield figure, list(zip(grid, own.items(), strict=True))


def _method_handles(*, round_markers: bool = False) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=color, marker=mark, ls="", ms=7.0 * (STAR if mark == "*" else 1.0), mec="white",
               label="ORCA, best rate" if method == "ORCA" else method)
        for method, (color, shape) in MARKERS.items()
        for mark in ["o" if round_markers else shape]
    ]  # fmt: skip


def _band(label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=GREY, alpha=0.3, lw=0, label=label)


# --- the experiment ---


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


def result(outcomes: Sequence[SettingResult], plan: RecalibrationPlan, series: Sequence[RealSeries]) -> Result:
    """Tables, figures and notes of all settings."""
    perfect = chance(plan.steps, window=plan.window, forecasters=plan.perfect)
    return Result(
        "recalibration",
        "Experiment 1: recalibrating online learners",
        _notes(outcomes, plan, series, perfect),
        (
            target_table(outcomes),
            paper_table(outcomes),
            rate_table(outcomes),
            full_table(outcomes, plan),
            time_table(outcomes),
        ),
        {"recalibration_qce": qce_figure(outcomes, perfect), "recalibration_crps": trade_figure(outcomes, perfect)},
    )


def _notes(
    outcomes: Sequence[SettingResult], plan: RecalibrationPlan, series: Sequence[RealSeries], perfect: Chance
) -> tuple[str, ...]:
    real = all(one.name in SERIES for one in series)
    sources = "; ".join(f"{one.name}: {one.source}" for one in series)
    own = [mean(s.smape / o.point_smape[r] for r, s in enumerate(o.scores[OURS])) for o in outcomes]
    return (
        f"Series: {sources}."
        + ("" if real else " Stand-ins: the paper's figures are of other series, and are left out."),
        f"{plan.steps:,} one-step-ahead forecasts after {plan.warmup:,} rounds of warm-up, 24 lags, for each of "
        f"{len(outcomes)} settings. ORCA: {plan.tried} jittered runs at each rate, {plan.runs} at the rate that was "
        f"best in these. Network and Hoeffding tree: {plan.experts} seeds. Figures are means over runs."
        + (
            ""
            if plan == FULL
            else " The targets are meant for the full experiment, not for this small one, and the "
            "paper's figures, of more rounds, are left out."
        ),
        f"A perfect forecaster of {plan.steps:,} rounds has a QCE of {perfect.mean:.4f} in the mean, from "
        f"{perfect.low:.4f} to {perfect.high:.4f} in 90% of cases, and a worst QCE over {plan.window} rounds of "
        f"{perfect.worst:.3f} in the mean.",
        "An outcome that ties with several quantiles, as at zero sunspots, counts with its expectation under a PIT "
        "drawn evenly from the jump. CRPS is twice the mean pinball loss at 0.005, 0.015, ..., 0.995, SMAPE that of "
        "the mean of the quantiles at these levels, for every method and the expert alike.",
        f"The expert's mean is that of its clipped forecast. Against the learner's point forecast, our SMAPE "
        f"is {min(own):.3f} to {max(own):.3f} times the expert's.",
    )
