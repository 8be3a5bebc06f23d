"""The runs of experiment 1: plans, figures of a sequence of forecasts, every method in every setting.

`orcast.paper.experiments.recalibration` says what is played and measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.datasets import Series
from orcast.evidence import Evidence, coverage
from orcast.metrics import LEVELS, crps_quantiles, fair_indicators, qce, smape, worst_rolling_qce
from orcast.paper.experiments import learners
from orcast.paper.experiments.learners import LEARNERS, Gaussian, Marginal
from orcast.paper.experiments.methods import METHODS, RATES, Method, orca
from orcast.paper.experiments.output import geometric_mean, mean
from orcast.parallel import Progress, WorkerPool, silent

__all__ = [
    "FULL",
    "PAPER",
    "QUICK",
    "Chance",
    "MethodScore",
    "RecalibrationPlan",
    "SettingResult",
    "SoFar",
    "chance",
    "compare",
    "first_half_qce",
    "measure",
    "moments",
    "perfect_qce",
    "play",
]

Vector = NDArray[np.float64]
ForecastStream = Gaussian | Marginal

SEEDED = ("network", "hoeffding-tree")
"""The experts that depend on a seed."""

GRID: Vector = np.arange(1, 200) / 200
"""The levels at which every forecast is read: the percents, and half-way between them."""
MIDDLES: Vector = GRID[::2]
FIVE = 4  # column of 0.05 among the percents
TIMES = (20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
"""Rounds after which the learning curves are read."""

EXPERT, LAST, ISOTONIC = "expert", "last outcome", "isotonic"
ORCA, BOUND = "ORCA", "ORCA, best afterwards"
FIGURES = ("qce", "worst", "crps", "smape", "holds", "width")

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
    """How much is done: experts, rounds, ORCA's rates, its runs at each and in all at the chosen, seeds of experts.

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


class SoFar(NamedTuple):
    """QCE and CRPS of the first so many rounds."""

    rounds: int
    qce: float
    crps: float


def moments(rounds: int) -> tuple[int, ...]:
    """Rounds after which the curves are read: those of `TIMES`, half of all, by which ORCA's rate is chosen, and all.

    >>> moments(60)
    (20, 30, 50, 60)
    """
    return tuple(sorted({time for time in TIMES if time <= rounds} | {max(rounds // 2, 1), rounds}))


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
    so_far: tuple[SoFar, ...] = ()

    def after(self, rounds: int) -> SoFar:
        """The figures of the first so many rounds, one of `moments`."""
        return next(each for each in self.so_far if each.rounds == rounds)

    @property
    def half(self) -> SoFar:
        """The figures of the first half of the rounds."""
        return self.after(max(self.so_far[-1].rounds // 2, 1))


def measure(q: Vector, y: Vector, *, low: float, high: float, window: int = 200) -> MethodScore:
    """The figures of a table from quantiles at the levels `GRID`, a row a round.

    >>> y = (np.arange(400) * 0.618034) % 1.0
    >>> score = measure(np.tile(GRID, (400, 1)), y, low=0.0, high=1.0)
    >>> score.qce < 1e-3, round(score.crps, 3), round(score.holds, 2), round(score.width, 3)
    (True, 0.167, 0.9, 0.9)
    """
    percents, middles = q[:, 1::2], q[:, ::2]
    gaps = np.cumsum(fair_indicators(percents, y, low=low, high=high) - LEVELS, axis=0)
    losses = crps_quantiles(middles, y, MIDDLES)
    so_far = (SoFar(t, float(((gaps[t - 1] / t) ** 2).sum()), float(losses[:t].mean())) for t in moments(len(y)))
    return MethodScore(
        qce=qce(percents, y, low=low, high=high),
        worst=worst_rolling_qce(percents, y, window=window, low=low, high=high),
        crps=float(losses.mean()),
        smape=float(smape(middles.mean(axis=1), y).mean()),
        holds=coverage(Evidence.of(percents, y, levels=LEVELS, low=low, high=high), 0.9),
        width=float((percents[:, -1 - FIVE] - percents[:, FIVE]).mean()),
        so_far=tuple(so_far),
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


def _prepared(series: Series, learner: str, plan: RecalibrationPlan, seed: int) -> Prepared:
    stream = learners.stream(series, learner, steps=plan.steps, warmup=plan.warmup, seed=seed)
    last = learners.last_outcome(series, steps=plan.steps, warmup=plan.warmup)
    scores = {
        name: measure(each.quantile(GRID), each.y, low=each.low, high=each.high, window=plan.window)
        for name, each in ((EXPERT, stream), (LAST, last))
    }
    scores |= {name: _score(stream, make(stream.low, stream.high), plan.window) for name, make in METHODS.items()}
    return Prepared(stream, scores, float(smape(stream.mu, stream.y).mean()))


def _orca(stream: ForecastStream, rate: float, seed: int, window: int) -> MethodScore:
    return _score(stream, orca(stream.low, stream.high, rate=rate, seed=seed), window)


# --- all runs ---


@dataclass(frozen=True)
class SettingResult:
    """The result of a setting: scores by method, one a run, ORCA's by its rate; and the rate that the rule chose."""

    series: str
    learner: str
    scores: Mapping[str, Sequence[MethodScore]]
    orca: Mapping[float, Sequence[MethodScore]]
    rate: float
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

    @property
    def best(self) -> float:
        """The rate with the lowest QCE over all rounds of this setting, which is known only afterwards."""
        return min(self.orca, key=lambda rate: mean(score.qce for score in self.orca[rate]))

    def of(self, method: str) -> Sequence[MethodScore]:
        """The runs of a method; "ORCA" is the one at the rate that the rule chose."""
        if method in (ORCA, BOUND):
            return self.orca[self.rate if method == ORCA else self.best]
        return self.scores[method]

    def mean(self, method: str, what: str) -> float:
        """Mean of a figure over the runs of a method."""
        return mean(getattr(score, what) for score in self.of(method))

    def beside(self, method: str, runs: Sequence[MethodScore], what: str) -> float:
        """Mean of a figure of a method over the runs of the expert that these runs have had."""
        own = self.scores[method]
        return mean(getattr(own[r % len(own)], what) for r in range(len(runs)))

    def relative(self, runs: Sequence[MethodScore], what: str) -> float:
        """Mean over runs of a figure divided by that of the expert in the same run."""
        own = self.scores[EXPERT]
        return mean(getattr(score, what) / getattr(own[r % len(own)], what) for r, score in enumerate(runs))

    def gap(self, method: str, runs: Sequence[MethodScore]) -> float:
        """Mean QCE of a method less that of these runs, on the same runs of the expert."""
        return self.beside(method, runs, "qce") - mean(score.qce for score in runs)


Setting = tuple[str, str]  # series and expert


def first_half_qce(runs: Sequence[Sequence[MethodScore]]) -> float:
    """What ORCA's rate is chosen by: QCE of the first half of the rounds, the geometric mean over settings.

    `runs` has the runs of each setting at a rate, of which the arithmetic mean is taken.
    """
    return geometric_mean(mean(score.half.qce for score in own) for own in runs)


def compare(
    plan: RecalibrationPlan,
    series: Sequence[Series],
    *,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = silent,
) -> list[SettingResult]:
    """All runs of a plan; what comes out does not depend on the number of workers.

    ORCA's rate is one for all settings, by `first_half_qce` of the runs that it has at every rate.
    """
    settings = {(one.name, learner): one for one in series for learner in plan.learners}
    starts = {
        (setting, r): (one, setting[1], plan, seed + r)
        for setting, one in settings.items()
        for r in range(plan.seeds(setting[1]))
    }
    jobs = len(starts) + len(settings) * (len(plan.rates) * plan.tried + plan.runs - plan.tried)
    with WorkerPool(workers, jobs, progress) as pool:
        begun = pool.run(_prepared, starts, lambda _: "experts, and methods other than ORCA")

        def play_orca(rates: Sequence[float], runs: range, what: str) -> dict[tuple[Setting, float, int], MethodScore]:
            tasks = {
                (setting, rate, r): (begun[setting, r % plan.seeds(setting[1])].stream, rate, seed + r, plan.window)
                for setting in settings
                for rate in rates
                for r in runs
            }
            return pool.run(_orca, tasks, lambda _: what)

        tried = range(plan.tried)
        found = play_orca(plan.rates, tried, "ORCA at each rate")
        chosen = min(
            plan.rates,
            key=lambda rate: first_half_qce([[found[setting, rate, r] for r in tried] for setting in settings]),
        )
        found |= play_orca((chosen,), range(plan.tried, plan.runs), "ORCA at the chosen rate")

    def result_of(setting: Setting) -> SettingResult:
        own = [begun[setting, r] for r in range(plan.seeds(setting[1]))]
        orca_runs = {rate: [score for key, score in found.items() if key[:2] == (setting, rate)] for rate in plan.rates}
        scores = {method: [one.scores[method] for one in own] for method in own[0].scores}
        return SettingResult(*setting, scores, orca_runs, chosen, [one.point_smape for one in own], plan.steps)

    return [result_of(setting) for setting in settings]


@dataclass(frozen=True)
class Chance:
    """What a perfectly calibrated forecaster shows: mean QCE, its 5% and 95% quantiles, and the mean worst QCE."""

    mean: float
    low: float
    high: float
    worst: float


def perfect_qce(rounds: int) -> float:
    """The QCE of a perfect forecaster in the mean, sum_a a (1 - a) / T.

    >>> round(perfect_qce(1000), 6)
    0.016665
    """
    return float((LEVELS * (1.0 - LEVELS)).sum()) / rounds


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
    return Chance(perfect_qce(rounds), float(low), float(high), float(np.mean(worst)))
