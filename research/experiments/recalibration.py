"""Experiment 1: online learners recalibrated on real series (paper, section 6.1), beside rivals.

1,000 one-step-ahead forecasts of hourly wind power and monthly sunspots, after 1,000 rounds of warm-up of the expert.
`_notes` has the runs and ORCA's rate. Measures use the quantiles at 0.005, 0.01, ..., 0.995:

    QCE     sum over the levels 0.01, ..., 0.99 of (frequency - level)^2; worst: of any 200 consecutive rounds
    CRPS    twice the pinball loss, averaged over the 100 levels 0.005, 0.015, ..., 0.995
    SMAPE   of the mean of the forecast, the average of the quantiles at these 100 levels
    holds   share of outcomes between the quantiles at 0.05 and 0.95;  width: mean distance between these two
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.datasets import Series
from orcast.evaluate import Evaluation, coverage
from orcast.evaluate.metrics import LEVELS, pinball, qce
from research import learners
from research.experiments import data
from research.experiments.methods import EXPERT, LAST, METHODS, RATES, Result, orca
from research.jobs import WorkerPool
from research.learners import LEARNERS, Gaussian, Marginal
from research.output import geometric_mean, mean

Vector = NDArray[np.float64]
ForecastStream = Gaussian | Marginal

SERIES = ("wind", "sunspots")
SEEDED = ("network", "hoeffding-tree")
"""Experts that depend on a seed."""
GRID: Vector = np.arange(1, 200) / 200
"""Levels at which every forecast is read: the percents, and half-way between them."""
FIVE = 4  # column of 0.05 among the percents
ORCA, BOUND = "ORCA", "ORCA, best in hindsight"

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
"""QCE and SMAPE of the paper's table (section 6) by series, expert and method."""


@dataclass(frozen=True)
class Plan:
    """Size of the experiment."""

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
        """Number of runs of an expert."""
        return self.experts if learner in SEEDED else 1


FULL = Plan()
QUICK = Plan(learners=("network", "marginal"), steps=60, warmup=60, window=30, tried=1, runs=2, experts=2, perfect=20)


# --- one run ---


@dataclass(frozen=True)
class Score:
    """Measures of a sequence of forecasts."""

    qce: float
    worst: float
    crps: float
    smape: float
    holds: float
    width: float
    half_qce: float  # of the first half of the rounds


def smape(mean: Vector, y: Vector) -> Vector:
    """Symmetric absolute percentage error of each outcome, between 0 and 2 (Makridakis 1993); 0 where both are 0.

    >>> smape(np.array([3.0, 0.0]), np.array([1.0, 0.0]))
    array([1., 0.])
    """
    size = (np.abs(y) + np.abs(mean)) / 2
    return np.asarray(np.abs(y - mean) / np.where(size > 0.0, size, 1.0))


def measure(q: Vector, y: Vector, *, low: float, high: float, window: int = 200) -> Score:
    """Score of quantiles at the levels `GRID`, a row for each round.

    >>> y = (np.arange(400) * 0.618034) % 1.0
    >>> score = measure(np.tile(GRID, (400, 1)), y, low=0.0, high=1.0)
    >>> score.qce < 1e-3, round(score.crps, 3), round(score.holds, 2), round(score.width, 3)
    (True, 0.167, 0.9, 0.9)
    """
    percents, middles = q[:, 1::2], q[:, ::2]
    half = max(len(y) // 2, 1)
    return Score(
        qce=qce(percents, y, low=low, high=high),
        worst=qce(percents, y, window=window, low=low, high=high),
        crps=2.0 * float(pinball(middles, y, GRID[::2]).mean()),
        smape=float(smape(middles.mean(axis=1), y).mean()),
        holds=coverage(Evaluation.of(percents, y, levels=LEVELS, low=low, high=high), 0.9),
        width=float((percents[:, -1 - FIVE] - percents[:, FIVE]).mean()),
        half_qce=qce(percents[:half], y[:half], low=low, high=high),
    )


def run_method(stream: ForecastStream, method: Any) -> Vector:
    """Quantiles at the levels `GRID` of a method on a stream, a row for each round."""
    q = np.empty((len(stream), GRID.size))
    for t, (forecast, y) in enumerate(zip(stream.forecasts(), stream.y.tolist(), strict=True)):
        q[t] = method.predict(forecast).quantile(GRID)
        method.update(y)
    return q


def _score(stream: ForecastStream, method: Any, window: int) -> Score:
    q = run_method(stream, method)
    return measure(q, stream.y, low=stream.low, high=stream.high, window=window)


class Prepared(NamedTuple):
    """Stream, its score and those of all methods but ORCA, and the SMAPE of the learner's point forecasts."""

    stream: ForecastStream
    scores: dict[str, Score]
    point_smape: float


def _prepared(series: Series, learner: str, plan: Plan, seed: int) -> Prepared:
    stream = learners.stream(series, learner, steps=plan.steps, warmup=plan.warmup, seed=seed)
    last = learners.last_outcome(series, steps=plan.steps, warmup=plan.warmup)
    scores = {
        name: measure(each.quantile(GRID), each.y, low=each.low, high=each.high, window=plan.window)
        for name, each in ((EXPERT, stream), (LAST, last))
    }
    scores |= {name: _score(stream, make(stream.low, stream.high), plan.window) for name, make in METHODS.items()}
    return Prepared(stream, scores, float(smape(stream.mu, stream.y).mean()))


def _orca(stream: ForecastStream, rate: float, seed: int, window: int) -> Score:
    return _score(stream, orca(stream.low, stream.high, rate=rate, seed=seed), window)


# --- all runs ---


@dataclass(frozen=True)
class Setting:
    """Scores of a series and an expert by method, one for each run; ORCA's by its rate, and the chosen rate."""

    series: str
    learner: str
    scores: Mapping[str, Sequence[Score]]
    orca: Mapping[float, Sequence[Score]]
    rate: float
    point_smape: Sequence[float]
    steps: int = FULL.steps

    @property
    def paper(self) -> Mapping[str, tuple[float, float]]:
        """The paper's figures by method, if they are of the same series and number of rounds."""
        return PAPER.get((self.series, self.learner), {}) if self.steps == FULL.steps else {}

    @property
    def name(self) -> str:
        """Name of the setting."""
        return f"{self.series}/{self.learner}"

    def of(self, method: str) -> Sequence[Score]:
        """Runs of a method; "ORCA" is at the chosen rate, `BOUND` at the rate with the lowest QCE in hindsight."""
        if method == BOUND:
            return min(self.orca.values(), key=lambda runs: mean(score.qce for score in runs))
        return self.orca[self.rate] if method == ORCA else self.scores[method]

    def mean(self, method: str, what: str) -> float:
        """Mean of a measure over the runs of a method."""
        return mean(getattr(score, what) for score in self.of(method))

    def beside(self, method: str, runs: Sequence[Score], what: str) -> float:
        """Mean of a measure of a method over the seeds of the expert that these runs had."""
        own = self.scores[method]
        return mean(getattr(own[r % len(own)], what) for r in range(len(runs)))

    def relative(self, runs: Sequence[Score], what: str) -> float:
        """Mean over runs of a measure divided by that of the expert in the same run."""
        own = self.scores[EXPERT]
        return mean(getattr(score, what) / getattr(own[r % len(own)], what) for r, score in enumerate(runs))


def first_half_qce(runs: Sequence[Sequence[Score]]) -> float:
    """QCE of the first half of the rounds: mean over the runs of a setting, geometric mean over settings."""
    return geometric_mean(mean(score.half_qce for score in own) for own in runs)


def run_all(plan: Plan, series: Sequence[Series], *, seed: int = 0, pool: Callable[[int], WorkerPool]) -> list[Setting]:
    """All runs of a plan."""
    settings = {(one.name, learner): one for one in series for learner in plan.learners}
    starts = {
        (setting, r): (one, setting[1], plan, seed + r)
        for setting, one in settings.items()
        for r in range(plan.seeds(setting[1]))
    }
    with pool(len(starts) + len(settings) * (len(plan.rates) * plan.tried + plan.runs - plan.tried)) as workers:
        begun = workers.run(_prepared, starts, lambda _: "experts, and methods other than ORCA")

        def run_orca(rates: Sequence[float], runs: range, what: str) -> dict[tuple[tuple[str, str], float, int], Score]:
            tasks = {
                (setting, rate, r): (begun[setting, r % plan.seeds(setting[1])].stream, rate, seed + r, plan.window)
                for setting in settings
                for rate in rates
                for r in runs
            }
            return workers.run(_orca, tasks, lambda _: what)

        tried = range(plan.tried)
        found = run_orca(plan.rates, tried, "ORCA at each rate")
        chosen = min(
            plan.rates,
            key=lambda rate: first_half_qce([[found[setting, rate, r] for r in tried] for setting in settings]),
        )
        found |= run_orca((chosen,), range(plan.tried, plan.runs), "ORCA at the chosen rate")

    def result_of(setting: tuple[str, str]) -> Setting:
        own = [begun[setting, r] for r in range(plan.seeds(setting[1]))]
        orca_runs = {rate: [score for key, score in found.items() if key[:2] == (setting, rate)] for rate in plan.rates}
        scores = {method: [one.scores[method] for one in own] for method in own[0].scores}
        return Setting(*setting, scores, orca_runs, chosen, [one.point_smape for one in own], plan.steps)

    return [result_of(setting) for setting in settings]


class Chance(NamedTuple):
    """QCE of a perfectly calibrated forecaster: mean, 5% and 95% quantiles, and the mean of the worst over a window."""

    mean: float
    low: float
    high: float
    worst: float


def perfect_qce(rounds: int) -> float:
    """Expected QCE of a perfect forecaster, sum_a a (1 - a) / T.

    >>> round(perfect_qce(1000), 6)
    0.016665
    """
    return float((LEVELS * (1.0 - LEVELS)).sum()) / rounds


def chance(rounds: int, *, window: int = 200, forecasters: int = 200, seed: int = 0) -> Chance:
    """Simulate forecasters whose PITs are independent and uniform.

    >>> c = chance(1000, forecasters=5)
    >>> round(c.mean, 4), c.low < c.mean < c.high < c.worst
    (0.0167, True)
    """
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(rounds, np.full(100, 0.01), size=20_000)[:, :-1]
    drawn = ((np.cumsum(counts, axis=1) / rounds - LEVELS) ** 2).sum(axis=1)
    low, high = np.quantile(drawn, [0.05, 0.95])
    q = np.tile(LEVELS, (rounds, 1))
    worst = [qce(q, rng.random(rounds), window=window) for _ in range(forecasters)]
    return Chance(perfect_qce(rounds), float(low), float(high), float(np.mean(worst)))


# --- experiment ---


def run(folder: str | Path | None, quick: bool, seed: int, pool: Callable[[int], WorkerPool]) -> Result:
    """Run the experiment; `folder` has the series (default: $ORCAST_DATA, else the shipped stand-ins)."""
    plan = QUICK if quick else FULL
    series = [data.best(name, folder) for name in SERIES]
    return result(run_all(plan, series, seed=seed, pool=pool), plan, series)


def result(settings: Sequence[Setting], plan: Plan, series: Sequence[Series]) -> Result:
    """Notes, tables and figures."""
    from research.experiments import recalibration_tables as tables

    perfect = chance(plan.steps, window=plan.window, forecasters=plan.perfect)
    return Result(
        "Experiment 1: recalibrating online learners",
        _notes(settings, plan, series),
        (
            tables.chance_table(perfect, plan),
            tables.paper_table(settings),
            tables.rule_table(settings),
            tables.full_table(settings, plan),
        ),
        claims=tables.claims(settings),
    )


def _notes(settings: Sequence[Setting], plan: Plan, series: Sequence[Series]) -> tuple[str, ...]:
    sources = "; ".join(f"{one.name}: {one.source}" for one in series)
    real = all(one.name in SERIES for one in series) and plan == FULL
    return (
        f"Series: {sources}."
        + ("" if real else " The paper's figures are of other series or more rounds, and are left out."),
        f"{plan.steps:,} one-step-ahead forecasts after {plan.warmup:,} rounds of warm-up, 24 lags, for each of "
        f"{len(settings)} settings. ORCA: {plan.tried} jittered runs at each rate, {plan.runs} at the rate with the "
        f"lowest QCE in the first half of the rounds, over all settings: {settings[0].rate:g}. "
        f"Network and Hoeffding tree: {plan.experts} seeds. Figures are means over runs.",
        "An outcome that ties with several quantiles, as at zero sunspots, counts with its expectation under a "
        "randomised PIT. CRPS is twice the mean pinball loss at 0.005, 0.015, ..., 0.995, SMAPE that of the mean of "
        "the quantiles at these levels. SMAPE / point's is relative to the learner's point forecast.",
    )
