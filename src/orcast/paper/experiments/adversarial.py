"""Experiment 2: outcomes on [0, 1] that Nature picks against the forecast (paper, section 6.2).

**The game.** There are no features and no expert.  In each of 1,000 rounds Nature sees the forecast, picks the cell
after which most is owed, and the outcome is drawn evenly inside it.  (A Nature that picks the very point cannot be
beaten by any density, and one that is scored on cells alone is beaten by putting all mass in one: docs/theory.md,
entry 9.)  She is one and the same for all methods: `orcast.testing.natures.CellGreedy` keeps a ledger S of her own, at
the levels 0.01, ..., 0.99, and plays

    argmax_k || S + E[1{y <= q_a} - a | y even in cell k] ||,    then adds that expectation to S

What her cells are matters, so she comes in three kinds, each of which all methods meet:

- `cells`: the cells of the forecast that have a width.  This is the game of the figure and of the first table.
- `even`: 50 even cells of [0, 1], whatever the forecast is.  They are those of ORCA, which so meets the same Nature.
- `points`: the cells of the forecast, and its point masses too, where nothing can be drawn.  There the indicator of a
  level within the jump counts with its share, as if the PIT were drawn evenly from it.

**Methods.** ORCA as in the paper, 400 steps on 50 even cells, for quantiles, from starts that differ by 1e-6.  Its
rate, of which the paper says nothing, is chosen as in experiment 1: the one with the lowest QCE after half of the
rounds, in the mean of the runs that it has at every rate.  Ours: the default, which needs an expert and gets the
uniform distribution each round; the same with quantiles as the only payoff, which is what the others play; the
equilibrium oracle without an expert, at its usual temperature and at a low one.  The exact oracle for quantiles.  And
what people use instead, around the uniform distribution with the settings of `orcast.baselines`; these read an expert
at the percents, so that the uniform one has 0.9% of its mass on either bound.

**What is measured.** QCE = sum_a (frequency of y <= q_a, minus a)^2 over all rounds so far, by the outcomes as drawn;
where an outcome equals several quantiles the indicators count as in `orcast.metrics.fair_indicators`.  A perfectly
calibrated forecaster of independent outcomes has 16.665 / t on average.  What is promised is about the settled payoff,
the indicator averaged over the outcome's cell: `settled` is its QCE, the square of the quantile part of
`Guarantee.parts`.  The promise bounds the norm of the mean payoff with each part divided by the root of its bound;
since the quantile part is not larger than the whole, its QCE is at most

    promised^2 B,    B = sum_a a^2 = 32.835, the bound of the quantile payoff

The default has three parts, the others one, so its promise is three times as large.  `settled / promised` is the
largest miscalibration / promise after any round of any run, where the promise is not what the guarantee says if that
should have grown after the fact but at most sqrt(parts (t + 64)) / t, which is known from the start.

Means are over 10 runs, each with draws of its own; a deviation is that of single runs, with n - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast import baselines
from orcast.ledger import CREDIT
from orcast.metrics import LEVELS, fair_indicators
from orcast.paper.experiments.methods import RATES, paper_oracle
from orcast.paper.experiments.output import Claim, Result, ResultTable, Row, deviation, mean, styled_figure, yes_or_no
from orcast.paper.experiments.recalibration_runs import perfect_qce
from orcast.parallel import Progress, WorkerPool, silent
from orcast.plots import BLUE, GREY, INK, ORANGE
from orcast.testing.natures import CellGreedy, NatureCells, even_cells, own_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "METHODS",
    "NATURES",
    "Games",
    "MethodPlayer",
    "Trace",
    "play",
    "play_all",
    "run",
]

Vector = NDArray[np.float64]

ROUNDS, RUNS = 1000, 10
QUICK_ROUNDS, QUICK_RUNS = 100, 2
TRIED = 3  # runs by which ORCA's rate is chosen
EVEN = 50
LOW_TEMPERATURE = 1.0
# Differences of sums of some thousand terms.
ROUNDING = 1e-9
# QCE of a perfect forecaster, times the rounds.
CHANCE = perfect_qce(1)

ORCA = "ORCA"
DEFAULT = "ours, the default"
LOW = "Equilibrium, temperature 1"


# --- Nature ---

NATURES: dict[str, Callable[[oc.Forecast], NatureCells]] = {
    "cells": own_cells,
    "even": partial(even_cells, count=EVEN),
    "points": partial(own_cells, points=True),
}
"""The cells that Nature chooses from given a forecast, by name."""
TITLES = {"cells": "own cells", "even": f"{EVEN} even cells", "points": "own cells and point masses"}


# --- the methods ---


@dataclass(frozen=True)
class MethodPlayer:
    """A method and the expert that it is given; `parts` of its payoff, none if it promises nothing."""

    game: Any
    expert: oc.Forecast | None = None
    parts: int = 0

    def predict(self) -> oc.Forecast:
        """The forecast of the next round."""
        forecast: oc.Forecast = self.game.predict() if self.expert is None else self.game.predict(self.expert)
        return forecast


def _alone(oracle: Any) -> MethodPlayer:
    return MethodPlayer(oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oracle), parts=1)


def _around_uniform(method: Any, parts: int = 0) -> MethodPlayer:
    return MethodPlayer(method, oc.Forecast([0.0], [1.0], [1.0]), parts)


METHODS: dict[str, Callable[[int], MethodPlayer]] = {
    ORCA: lambda seed: _alone(paper_oracle(seed=seed)),
    DEFAULT: lambda seed: _around_uniform(oc.Recalibrator(oc.Interval(0, 1)), 3),
    "ours, quantiles alone": lambda seed: _around_uniform(
        oc.Recalibrator(oc.Interval(0, 1), oc.QuantileCalibration()), 1
    ),
    "Equilibrium, temperature 10": lambda seed: _alone(oc.Equilibrium()),
    LOW: lambda seed: _alone(oc.Equilibrium(temperature=LOW_TEMPERATURE)),
    "TwoCells, exact": lambda seed: _alone(oc.paper.TwoCells()),
    "isotonic": lambda seed: _around_uniform(baselines.Isotonic(0, 1)),
    "ACI per level": lambda seed: _around_uniform(baselines.ConformalLevels(0, 1)),
    "ACI, several rates": lambda seed: _around_uniform(baselines.ConformalMixture(0, 1)),
    "conformal PID": lambda seed: _around_uniform(baselines.ConformalPID(0, 1)),
}
"""The methods by name, each made from a seed."""


# --- a game ---


class Trace(NamedTuple):
    """The course of a game: figures at `times`; nan where nothing is promised.

    `largest` is the largest miscalibration / promise after any round, `held` the share of certificates that held.
    """

    times: NDArray[np.int64]
    qce: Vector
    settled: Vector
    promised: Vector
    largest: float
    held: float

    def after(self, rounds: int) -> float:
        """The QCE of the first so many rounds, which must be among the times."""
        return float(self.qce[np.searchsorted(self.times, rounds)])


def play(method: str, nature: str, rounds: int, run: int = 0, seed: int = 0, rate: float | None = None) -> Trace:
    """One run of a method against Nature; nothing but the run and the seed is random, and `rate` is for ORCA.

    >>> trace = play("TwoCells, exact", "cells", 30)
    >>> int(trace.times[-1]), trace.largest <= 1.0, trace.held
    (30, True, 1.0)
    """
    own = 1000 * seed + run
    player = METHODS[method](own) if rate is None else _alone(paper_oracle(rate=rate, seed=own))
    opponent, rng = CellGreedy(NATURES[nature]), np.random.default_rng([seed, run])
    bound = oc.QuantileCalibration().on(oc.Interval(0, 1)).bound
    quantiles, outcomes = np.empty((rounds, LEVELS.size)), np.empty(rounds)
    settled, promised, ratios = np.full((3, rounds), np.nan)
    held = math.nan
    for t in range(rounds):
        p = player.predict()
        y = opponent.outcome(player.game, p, rng)
        quantiles[t], outcomes[t] = p.quantile(LEVELS), y
        player.game.update(y)
        if player.parts:
            so_far = player.game.guarantee
            promise = min(so_far.promised, math.sqrt(player.parts * (t + 1 + CREDIT)) / (t + 1))
            settled[t], promised[t] = so_far.parts["quantile"] ** 2, promise**2 * bound
            ratios[t], held = so_far.miscalibration / promise, so_far.held
    times = moments(rounds)
    gaps = np.cumsum(fair_indicators(quantiles, outcomes, low=0.0, high=1.0) - LEVELS, axis=0)[times - 1]
    qce = ((gaps / times[:, None]) ** 2).sum(axis=1)
    return Trace(times, qce, settled[times - 1], promised[times - 1], float(ratios.max()), held)


def moments(rounds: int) -> NDArray[np.int64]:
    """Rounds after which to look, even on a log scale, the hundredth, half of all and the last among them.

    >>> moments(12)
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12])
    """
    some = np.geomspace(1.0, rounds, 80).round().astype(np.int64)
    return np.unique(np.concatenate((some, [min(100, rounds), _half(rounds), rounds])))


def _half(rounds: int) -> int:
    return max(rounds // 2, 1)


# --- all games ---

Key = tuple[str, str]  # Nature, method


class Games(NamedTuple):
    """All runs, by Nature and method; ORCA's by its rate, and the rate that the rule chose."""

    traces: dict[Key, list[Trace]]
    orca: dict[float, list[Trace]]
    rate: float


def play_all(rounds: int, runs: int, *, seed: int = 0, workers: int = 2, progress: Progress = silent) -> Games:
    """All methods against all Natures, the runs in their order, whatever the number of workers.

    ORCA's cells are even and have no point masses: the three Natures are one to it, and one game is enough.
    """
    tried = min(TRIED, runs)
    others = [
        (method, nature, run) for nature in NATURES for method in METHODS if method != ORCA for run in range(runs)
    ]
    with WorkerPool(workers, len(RATES) * tried + runs - tried + len(others), progress) as pool:

        def play_orca(rates: Sequence[float], which: range) -> dict[tuple[float, int], Trace]:
            jobs = {(rate, run): (ORCA, "cells", rounds, run, seed, rate) for rate in rates for run in which}
            return pool.run(play, jobs, lambda job: f"{ORCA} at rate {job[0]:g}, run {job[1] + 1}")

        found = play_orca(RATES, range(tried))
        half = _half(rounds)
        chosen = min(RATES, key=lambda rate: mean(found[rate, run].after(half) for run in range(tried)))
        found |= play_orca((chosen,), range(tried, runs))
        rest = pool.run(
            play,
            {job: (*job[:2], rounds, job[2], seed) for job in others},
            lambda job: f"{job[0]} against Nature ({job[1]}), run {job[2] + 1}",
        )
    orca = {rate: [trace for key, trace in found.items() if key[0] == rate] for rate in RATES}
    traces = {
        (nature, method): orca[chosen] if method == ORCA else [rest[method, nature, run] for run in range(runs)]
        for nature in NATURES
        for method in METHODS
    }
    return Games(traces, orca, chosen)


# --- tables ---


def _last(traces: Sequence[Trace]) -> list[float]:
    return [float(trace.qce[-1]) for trace in traces]


def main_table(traces: Mapping[Key, Sequence[Trace]], rounds: int) -> ResultTable:
    """Every method against the Nature of the figure."""
    early = min(100, rounds)
    rows: list[Row] = []
    for method in METHODS:
        own = traces["cells", method]
        at = int(np.searchsorted(own[0].times, early))
        promises = not math.isnan(own[0].held)
        rows.append(
            {
                "method": method,
                f"QCE, t = {early:,}": mean(trace.qce[at] for trace in own),
                f"QCE, t = {rounds:,}": mean(_last(own)),
                "deviation": deviation(_last(own)),
                "settled": mean(trace.settled[-1] for trace in own) if promises else None,
                "promised": mean(trace.promised[-1] for trace in own) if promises else None,
                "settled / promised, largest": max(trace.largest for trace in own) if promises else None,
                "held, %": 100.0 * mean(trace.held for trace in own) if promises else None,
            }
        )
    digits = dict.fromkeys(rows[0], ".4f") | {"settled / promised, largest": ".3f", "held, %": ".1f"}
    title = f"Nature draws in the forecast's own cells: {rounds:,} rounds, {len(own)} runs"
    return ResultTable.of("adversarial", title, rows, digits)


def nature_table(traces: Mapping[Key, Sequence[Trace]], rounds: int) -> ResultTable:
    """Every method against every Nature, at the end."""
    rows: list[Row] = []
    for method in METHODS:
        row: Row = {"method": method}
        for nature, title in TITLES.items():
            last = _last(traces[nature, method])
            row |= {title: mean(last), f"deviation, {title}": deviation(last)}
        rows.append(row)
    title = f"QCE at t = {rounds:,}, by where Nature may draw"
    return ResultTable.of("adversarial_natures", title, rows, dict.fromkeys(rows[0], ".4f"))


def rule_table(games: Games, rounds: int) -> ResultTable:
    """What ORCA's rate is chosen by, and what came of each rate: on the runs that there are at every rate."""
    runs = min(len(own) for own in games.orca.values())
    half = _half(rounds)
    rows: list[Row] = [
        {
            "rate": f"{rate:g}",
            f"QCE, t = {half:,}": mean(trace.after(half) for trace in own[:runs]),
            f"QCE, t = {rounds:,}": mean(_last(own[:runs])),
            "chosen": "yes" if rate == games.rate else "",
        }
        for rate, own in games.orca.items()
    ]
    title = f"ORCA's rate: the lowest QCE after half of the rounds (runs at each: {runs})"
    return ResultTable.of("adversarial_rule", title, rows, dict.fromkeys(rows[0], ".4f"))


BASELINES = ("isotonic", "ACI per level", "ACI, several rates", "conformal PID")


def claims(games: Games, rounds: int) -> tuple[Claim, ...]:
    """The claim of section 6.2 against each Nature, after every look from the hundredth round on."""
    best = min(games.orca, key=lambda rate: mean(_last(games.orca[rate])))
    found = []
    for nature, title in TITLES.items():
        claim = f"ORCA consistently has a lower QCE than the baselines; here Nature draws in {title}"
        (here, met), (bound, _) = (
            _against_baselines(games.traces, nature, games.orca[rate], rounds) for rate in (games.rate, best)
        )
        found.append(Claim("6.2", claim, here, yes_or_no(met), bound))
    return tuple(found)


def _against_baselines(
    traces: Mapping[Key, Sequence[Trace]], nature: str, orca: Sequence[Trace], rounds: int
) -> tuple[str, bool]:
    """Mean QCE of ORCA and of the best baseline at the end, and whether it was below all of them all the time."""
    late = orca[0].times >= min(100, rounds)
    curves = {name: np.mean([trace.qce for trace in traces[nature, name]], axis=0)[late] for name in BASELINES}
    own = np.mean([trace.qce for trace in orca], axis=0)[late]
    above = [name for name, curve in curves.items() if (curve <= own).any()]
    best = min(curves, key=lambda name: curves[name][-1])
    here = f"{own[-1]:.4f}, the best of {len(curves)} others {curves[best][-1]:.4f} ({best})"
    return here + (f"; not always below {', '.join(above)}" if above else ""), not above


def target_table(traces: Mapping[Key, Sequence[Trace]], rounds: int) -> ResultTable:
    """What was to be reached, and whether it was."""
    kept, close = [], []
    for nature in NATURES:
        own = traces[nature, DEFAULT]
        largest = max(trace.largest for trace in own)
        met = largest <= 1.0 + ROUNDING and min(trace.held for trace in own) == 1.0
        target = f"{DEFAULT}: settled payoff under the promise after every round"
        kept.append((target, nature, f"largest settled / promised {largest:.3f}", yes_or_no(met)))
        low, orca = (mean(_last(traces[nature, method])) for method in (LOW, ORCA))
        target = f"{LOW}: QCE at t = {rounds:,} at most twice ORCA's"
        close.append((target, nature, f"{low:.4f} / {orca:.4f} = {low / orca:.2f}", yes_or_no(low <= 2.0 * orca)))
    columns = ("target", "Nature", "found", "met")
    return ResultTable("adversarial_targets", "What was to be reached", columns, kept + close)


# --- the figure ---

LINES: dict[str, tuple[str, Any]] = {
    ORCA: (ORANGE, "-"),
    DEFAULT: (BLUE, "-"),
    "ours, quantiles alone": (BLUE, (0, (5, 1.5))),
    "Equilibrium, temperature 10": ("#56B4E9", "-"),
    LOW: ("#009E73", "-"),
    "TwoCells, exact": ("#CC79A7", "-"),
    "isotonic": (GREY, (0, (1, 1))),
    "ACI per level": (GREY, (0, (4, 1.5))),
    "ACI, several rates": (GREY, (0, (4, 1.5, 1, 1.5))),
    "conformal PID": (GREY, "-"),
}


def picture(traces: Mapping[Key, Sequence[Trace]]) -> Figure:
    """QCE against the rounds: all methods, and beside them what ours settles and promises."""
    with styled_figure(5.6, w_pad=0.12) as figure:
        left, right = figure.subplots(1, 2, sharey=True, sharex=True, width_ratios=(1.25, 1.0))
        _draw_methods(left, traces)
        _draw_promise(right, traces["cells", DEFAULT])
        lines, names = left.get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=4, columnspacing=1.6)
    return figure


def _band(
    axes: Axes, times: NDArray[np.int64], rows: Vector, color: str, style: Any, label: str, width: float = 1.6
) -> None:
    mean = rows.mean(axis=0)
    axes.plot(times, mean, color=color, ls=style, lw=width, label=label)
    if len(rows) > 1:
        spread = rows.std(axis=0, ddof=1)
        # a log scale has no zero: no farther down than the smallest run
        low = np.maximum(mean - spread, rows.min(axis=0))
        axes.fill_between(times, low, mean + spread, color=color, alpha=0.16, lw=0)


def _draw_methods(axes: Axes, traces: Mapping[Key, Sequence[Trace]]) -> None:
    axes.set(xscale="log", yscale="log")
    for method, (color, style) in LINES.items():
        own = traces["cells", method]
        _band(axes, own[0].times, np.array([trace.qce for trace in own]), color, style, method)
    times, promised = traces["cells", LOW][0].times, traces["cells", LOW][0].promised
    axes.plot(times, promised, color=INK, lw=1.2, ls=(0, (2, 1.5)), label="promised, quantiles alone")
    axes.plot(times, CHANCE / times, color=INK, lw=0.9, ls=(0, (1, 2)), label="a perfect forecaster, on average")
    axes.set(
        title="All methods: quantile calibration error of the outcomes",
        xlabel="round",
        ylabel="QCE, mean and one deviation",
        xlim=(1, times[-1]),
        ylim=(1e-4, 60.0),
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _draw_promise(axes: Axes, own: Sequence[Trace]) -> None:
    times = own[0].times
    promised = np.mean([trace.promised for trace in own], axis=0)
    settled = np.array([trace.settled for trace in own])
    axes.plot(times, promised, color=INK, lw=1.5, ls=(0, (4, 2)))
    _band(axes, times, np.array([trace.qce for trace in own]), BLUE, "-", "", 2.6)
    _band(axes, times, settled, "#E69F00", "-", "", 1.2)
    largest = max(trace.largest for trace in own)
    kept = "under its promise after every round" if largest <= 1.0 + ROUNDING else "not always under its promise"
    axes.set(title=f"Ours, the default: what is settled is\n{kept}", xlabel="round")
    labels = (("promised for what is settled", INK), ("of the outcomes, as on the left", BLUE), ("settled", "#B87E00"))
    for row, (text, color) in enumerate(labels):
        axes.text(0.05, 0.25 - 0.08 * row, text, color=color, transform=axes.transAxes)


# --- the experiment ---


def run(
    *,
    folder: str | Path | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int = 2,
    progress: Progress = silent,
) -> Result:
    """The experiment; it needs no data, so `folder` is not used.

    `quick` has fewer rounds and runs.  The same seed gives the same tables and figures, with any number of workers.
    """
    rounds, runs = (QUICK_ROUNDS, QUICK_RUNS) if quick else (ROUNDS, RUNS)
    # to start a process takes longer than what a quick one would have to do
    games = play_all(rounds, runs, seed=seed, workers=1 if quick else workers, progress=progress)
    traces = games.traces
    return Result(
        "adversarial",
        "Experiment 2: outcomes picked against the forecast",
        _notes(rounds, runs, games.rate),
        (
            target_table(traces, rounds),
            rule_table(games, rounds),
            main_table(traces, rounds),
            nature_table(traces, rounds),
        ),
        {"adversarial": picture(traces)},
        claims(games, rounds),
    )


def _notes(rounds: int, runs: int, rate: float) -> tuple[str, ...]:
    return (
        f"Outcomes on [0, 1], {rounds:,} rounds, {runs} runs. Nature sees each forecast, picks the cell after which "
        "her ledger of quantile payoffs is largest, and the outcome is drawn evenly inside it; she plays all methods "
        "alike. Her cells are those of the forecast that have a width (the figure and the first table of methods), "
        f"{EVEN} even ones whatever the forecast is, or those of the forecast and its point masses. ORCA plays at rate "
        f"{rate:g}, chosen by the first half of the rounds.",
        "QCE is by the outcomes as drawn. What is promised is the settled payoff, averaged over the outcome's cell: "
        "its QCE is at most promised^2 times the bound of the quantile payoff, 32.835; promised is at most "
        "sqrt(parts (t + 64)) / t, with three parts in the default payoff (quantiles, moments, regret) and one where "
        "quantiles are alone.",
        f"A perfectly calibrated forecaster of independent outcomes has a QCE of {CHANCE:.3f} / t on average, "
        f"{CHANCE / rounds:.4f} at the end. Where the QCE is much larger than what is settled, it is the luck of the "
        "draw inside the cells.",
    )
