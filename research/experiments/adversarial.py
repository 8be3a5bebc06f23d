"""Experiment 2: outcomes on [0, 1] that an adversary picks against the forecast (paper, section 6.2).

The adversary is `tests.adversaries.CellGreedy`, with cells of the forecast, 50 even cells, or cells and point
masses. Rivals and the default get the uniform distribution as base forecast. `_notes` has the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.evaluate.metrics import LEVELS, fair_indicators
from orcast.ledger import CREDIT
from research.experiments.methods import RATES, Claim, Result, paper_oracle
from research.jobs import WorkerPool
from research.output import Row, Table, deviation, mean
from research.rivals import ACI, CalibratedRegression, ConformalPID, DtACI
from tests.adversaries import AdversaryCells, CellGreedy, own_cells

Vector = NDArray[np.float64]

ROUNDS, RUNS = 1000, 10
QUICK_ROUNDS, QUICK_RUNS = 100, 2
TRIED = 3  # runs by which ORCA's rate is chosen
EVEN = 50
CHANCE = float((LEVELS * (1.0 - LEVELS)).sum())
"""Expected QCE of a perfect forecaster of independent outcomes, times the number of rounds."""

ORCA, DEFAULT, LOW = "ORCA", "ours, the default", "Equilibrium, temperature 1"


def even_cells(forecast: oc.Forecast, *, count: int = EVEN) -> AdversaryCells:
    """Even cells of [0, 1]; in a cell from l to r,  payoff_a = clip((q_a - l) / (r - l), 0, 1) - a."""
    edges = np.linspace(0.0, 1.0, count + 1)
    left, right = edges[:-1], edges[1:]
    share = np.clip((forecast.quantile(LEVELS) - left[:, None]) / (right - left)[:, None], 0.0, 1.0)
    return AdversaryCells(left, right, share - LEVELS)


ADVERSARIES: dict[str, Callable[[oc.Forecast], AdversaryCells]] = {
    "cells": own_cells,
    "even": even_cells,
    "points": partial(own_cells, points=True),
}
"""Cells that the adversary picks from, given a forecast."""
TITLES = {"cells": "own cells", "even": f"{EVEN} even cells", "points": "own cells and point masses"}


# --- methods ---


@dataclass(frozen=True)
class Player:
    """Method with its base forecast; `parts` of its payoff, none if it has no guarantee."""

    method: Any
    expert: oc.Forecast | None = None
    parts: int = 0

    def predict(self) -> oc.Forecast:
        """Forecast of the next round."""
        forecast: oc.Forecast = self.method.predict() if self.expert is None else self.method.predict(self.expert)
        return forecast


def _alone(oracle: Any) -> Player:
    return Player(oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oracle), parts=1)


def _around_uniform(method: Any, parts: int = 0) -> Player:
    return Player(method, oc.Forecast([0.0], [1.0], [1.0]), parts)


METHODS: dict[str, Callable[[int], Player]] = {
    ORCA: lambda seed: _alone(paper_oracle(seed=seed)),
    DEFAULT: lambda seed: _around_uniform(oc.Recalibrator(oc.Interval(0, 1)), 3),
    "ours, quantiles alone": lambda seed: _around_uniform(
        oc.Recalibrator(oc.Interval(0, 1), oc.QuantileCalibration()), 1
    ),
    "Equilibrium, temperature 10": lambda seed: _alone(oc.Equilibrium()),
    LOW: lambda seed: _alone(oc.Equilibrium(temperature=1.0)),
    "TwoCells, exact": lambda seed: _alone(oc.paper.TwoCells()),
    "isotonic": lambda seed: _around_uniform(CalibratedRegression(0, 1)),
    "ACI per level": lambda seed: _around_uniform(ACI(0, 1)),
    "ACI, several rates": lambda seed: _around_uniform(DtACI(0, 1)),
    "conformal PID": lambda seed: _around_uniform(ConformalPID(0, 1)),
}
"""Methods by name, each made from a seed."""
RIVALS = ("isotonic", "ACI per level", "ACI, several rates", "conformal PID")


# --- runs ---


class Trace(NamedTuple):
    """Course of a run at `times`; nan where nothing is promised.

    `largest` is the largest miscalibration / bound after any round, `held` the share of certificates that held.
    """

    times: NDArray[np.int64]
    qce: Vector
    settled: Vector
    promised: Vector
    largest: float
    held: float

    def after(self, rounds: int) -> float:
        """QCE of the first rounds; `rounds` is one of the times."""
        return float(self.qce[np.searchsorted(self.times, rounds)])


def run_method(
    method: str, adversary: str, rounds: int, run: int = 0, seed: int = 0, rate: float | None = None
) -> Trace:
    """One run of a method against an adversary; `rate` is for ORCA.

    >>> trace = run_method("TwoCells, exact", "cells", 30)
    >>> int(trace.times[-1]), trace.largest <= 1.0, trace.held
    (30, True, 1.0)
    """
    own = 1000 * seed + run
    contender = METHODS[method](own) if rate is None else _alone(paper_oracle(rate=rate, seed=own))
    opponent, rng = CellGreedy(ADVERSARIES[adversary]), np.random.default_rng([seed, run])
    bound = oc.QuantileCalibration().on(oc.Interval(0, 1)).bound
    quantiles, outcomes = np.empty((rounds, LEVELS.size)), np.empty(rounds)
    settled, promised, ratios = np.full((3, rounds), np.nan)
    held = math.nan
    for t in range(rounds):
        p = contender.predict()
        y = opponent.outcome(contender.method, p, rng)
        quantiles[t], outcomes[t] = p.quantile(LEVELS), y
        contender.method.update(y)
        if contender.parts:
            so_far = contender.method.guarantee
            # a bound that grew after the fact would not count
            promise = min(so_far.promised, math.sqrt(contender.parts * (t + 1 + CREDIT)) / (t + 1))
            settled[t], promised[t] = so_far.parts["quantile"] ** 2, promise**2 * bound
            ratios[t], held = so_far.miscalibration / promise, so_far.held
    times = moments(rounds)
    gaps = np.cumsum(fair_indicators(quantiles, outcomes, low=0.0, high=1.0) - LEVELS, axis=0)[times - 1]
    qce = ((gaps / times[:, None]) ** 2).sum(axis=1)
    return Trace(times, qce, settled[times - 1], promised[times - 1], float(ratios.max()), held)


def moments(rounds: int) -> NDArray[np.int64]:
    """Rounds at which a run is read: even on a log scale, with the hundredth, half of all and the last.

    >>> moments(12)
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12])
    """
    some = np.geomspace(1.0, rounds, 80).round().astype(np.int64)
    return np.unique(np.concatenate((some, [min(100, rounds), _half(rounds), rounds])))


def _half(rounds: int) -> int:
    return max(rounds // 2, 1)


Traces = Mapping[tuple[str, str], Sequence[Trace]]  # by adversary and method


class Runs(NamedTuple):
    """All runs by adversary and method; ORCA's by its rate, and the chosen rate."""

    traces: Traces
    orca: dict[float, list[Trace]]
    rate: float


def run_all(rounds: int, runs: int, *, seed: int = 0, pool: Callable[[int], WorkerPool]) -> Runs:
    """Run all methods against all adversaries.

    ORCA's cells are even and have no point masses: the three adversaries are one to it, and one run is enough.
    """
    tried = min(TRIED, runs)
    others = [
        (method, adversary, run)
        for adversary in ADVERSARIES
        for method in METHODS
        if method != ORCA
        for run in range(runs)
    ]
    with pool(len(RATES) * tried + runs - tried + len(others)) as workers:

        def run_orca(rates: Sequence[float], which: range) -> dict[tuple[float, int], Trace]:
            jobs = {(rate, run): (ORCA, "cells", rounds, run, seed, rate) for rate in rates for run in which}
            return workers.run(run_method, jobs, lambda job: f"{ORCA} at rate {job[0]:g}, run {job[1] + 1}")

        found = run_orca(RATES, range(tried))
        half = _half(rounds)
        chosen = min(RATES, key=lambda rate: mean(found[rate, run].after(half) for run in range(tried)))
        found |= run_orca((chosen,), range(tried, runs))
        rest = workers.run(
            run_method,
            {job: (*job[:2], rounds, job[2], seed) for job in others},
            lambda job: f"{job[0]} against {TITLES[job[1]]}, run {job[2] + 1}",
        )
    orca = {rate: [trace for key, trace in found.items() if key[0] == rate] for rate in RATES}
    traces = {
        (adversary, method): orca[chosen] if method == ORCA else [rest[method, adversary, run] for run in range(runs)]
        for adversary in ADVERSARIES
        for method in METHODS
    }
    return Runs(traces, orca, chosen)


# --- tables ---


def _last(traces: Sequence[Trace]) -> list[float]:
    return [float(trace.qce[-1]) for trace in traces]


def main_table(traces: Traces, rounds: int) -> Table:
    """Every method against the adversary of the figure."""
    early = min(100, rounds)
    rows: list[Row] = []
    for method in METHODS:
        own = traces["cells", method]
        row: Row = {
            "method": method,
            f"QCE, t = {early:,}": mean(trace.after(early) for trace in own),
            f"QCE, t = {rounds:,}": mean(_last(own)),
            "deviation": deviation(_last(own)),
        }
        columns = ("settled", "promised", "settled / promised, largest", "held, %")
        row |= dict.fromkeys(columns)
        if not math.isnan(own[0].held):
            last = ((trace.settled[-1], trace.promised[-1], trace.held) for trace in own)
            settled, promised, held = (mean(values) for values in zip(*last, strict=True))
            row |= zip(columns, (settled, promised, max(trace.largest for trace in own), 100.0 * held), strict=True)
        rows.append(row)
    digits = dict.fromkeys(rows[0], ".4f") | {"settled / promised, largest": ".3f", "held, %": ".1f"}
    title = f"The adversary draws in the forecast's own cells: {rounds:,} rounds, {len(own)} runs"
    shown = tuple(column for column in rows[0] if column not in ("deviation", "settled / promised, largest"))
    return Table.of("adversarial", title, rows, digits=digits, page=shown)


def adversary_table(traces: Traces, rounds: int) -> Table:
    """Every method against every adversary, at the end."""
    rows: list[Row] = []
    for method in METHODS:
        row: Row = {"method": method}
        for adversary, title in TITLES.items():
            last = _last(traces[adversary, method])
            row |= {title: mean(last), f"deviation, {title}": deviation(last)}
        rows.append(row)
    title = f"QCE at t = {rounds:,}, by where the adversary may draw"
    shown = tuple(column for column in rows[0] if not column.startswith("deviation"))
    return Table.of("adversarial_cells", title, rows, digits=dict.fromkeys(rows[0], ".4f"), page=shown)


def rule_table(found: Runs, rounds: int) -> Table:
    """QCE at each of ORCA's rates, on the runs that all rates have."""
    runs = min(len(own) for own in found.orca.values())
    half = _half(rounds)
    rows: list[Row] = [
        {
            "rate": f"{rate:g}",
            f"QCE, t = {half:,}": mean(trace.after(half) for trace in own[:runs]),
            f"QCE, t = {rounds:,}": mean(_last(own[:runs])),
            "chosen": "yes" if rate == found.rate else "",
        }
        for rate, own in found.orca.items()
    ]
    title = f"ORCA's rate: the lowest QCE after half of the rounds (runs at each: {runs})"
    return Table.of("adversarial_rule", title, rows, digits=dict.fromkeys(rows[0], ".4f"), page=())


def claims(found: Runs, rounds: int) -> tuple[Claim, ...]:
    """Claim of section 6.2 against each adversary, at all times from the hundredth round on."""
    best = min(found.orca, key=lambda rate: mean(_last(found.orca[rate])))
    rows = []
    for adversary, title in TITLES.items():
        claim = f"ORCA consistently has a lower QCE than the baselines; here the adversary draws in {title}"
        (here, met), (bound, _) = (
            _against_rivals(found.traces, adversary, found.orca[rate], rounds) for rate in (found.rate, best)
        )
        rows.append(Claim("6.2", claim, here, "yes" if met else "no", bound))
    return tuple(rows)


def _against_rivals(traces: Traces, adversary: str, orca: Sequence[Trace], rounds: int) -> tuple[str, bool]:
    """Mean QCE of ORCA and of the best rival at the end; True if ORCA was below all of them all the time."""
    late = orca[0].times >= min(100, rounds)
    curves = {name: np.mean([trace.qce for trace in traces[adversary, name]], axis=0)[late] for name in RIVALS}
    own = np.mean([trace.qce for trace in orca], axis=0)[late]
    above = [name for name, curve in curves.items() if (curve <= own).any()]
    best = min(curves, key=lambda name: curves[name][-1])
    here = f"{own[-1]:.4f}, the best of {len(curves)} others {curves[best][-1]:.4f} ({best})"
    return here + (f"; not always below {', '.join(above)}" if above else ""), not above


# --- experiment ---


def run(folder: str | Path | None, quick: bool, seed: int, pool: Callable[[int], WorkerPool]) -> Result:
    """Run the experiment; it needs no data."""
    rounds, runs = (QUICK_ROUNDS, QUICK_RUNS) if quick else (ROUNDS, RUNS)
    found = run_all(rounds, runs, seed=seed, pool=pool)
    return Result(
        "Experiment 2: outcomes picked against the forecast",
        _notes(rounds, runs, found.rate),
        (rule_table(found, rounds), main_table(found.traces, rounds), adversary_table(found.traces, rounds)),
        claims=claims(found, rounds),
    )


def _notes(rounds: int, runs: int, rate: float) -> tuple[str, ...]:
    return (
        f"Outcomes on [0, 1], {rounds:,} rounds, {runs} runs. The adversary sees each forecast, picks the cell after "
        "which its ledger of quantile payoffs is largest, and the outcome is drawn evenly inside it. Its cells are "
        "those of the forecast that have a width (the first table of methods), "
        f"{EVEN} even ones, or those of the forecast and its point masses. ORCA plays at rate {rate:g}, chosen by the "
        "first half of the rounds.",
        "QCE is that of the outcomes. The guarantee is about the settled payoff, averaged over the outcome's cell: "
        "its QCE is at most promised^2 times the bound of the quantile payoff, 32.835; promised is at most "
        "sqrt(parts (t + 64)) / t, with three parts in the default payoff (quantiles, moments, regret) and one for "
        "quantiles alone.",
        f"A perfectly calibrated forecaster of independent outcomes has a mean QCE of {CHANCE:.3f} / t, "
        f"{CHANCE / rounds:.4f} at the end. Where QCE is much larger than the settled one, the difference is the "
        "random draw inside the cells.",
    )
