"""ORCA, the paper's algorithm: what a forecast costs, and how it fares against Nature beside our oracles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import mean, median, stdev
from time import perf_counter
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.guarantee import ROUNDING, unforgiven
from benchmarks.results import Line, Remark
from orcast.metrics import LEVELS, fair_indicators
from orcast.testing.natures import CellGreedy

TITLE = "ORCA: the paper's oracle beside ours"
COMPILED_LIMIT = 2.0  # milliseconds a forecast
ROUNDS, AT = 1000, (100, 200, 500, 1000)
RUNS = 10  # a jitter of 1e-6 in the start changes a QCE by a factor of two
JITTER = 1e-6


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    yield from cost(40 if quick else 150)
    yield from duels(200 if quick else ROUNDS, 2 if quick else RUNS)


def combined() -> oc.QuantileCalibration:
    """The payoff of the paper's experiments."""
    payoff: Any = oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS(), oc.MSE())
    return payoff  # type: ignore[no-any-return]


def cost(repetitions: int) -> Iterator[Line | Remark]:
    """Milliseconds a forecast, in turn with the equilibrium oracle on the same stream."""
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    space = oc.Interval(stream.low, stream.high)
    games = {
        "Equilibrium": oc.Recalibrator(space, combined(), oracle=oc.Equilibrium()),
        "ORCA": oc.Recalibrator(space, combined(), oracle=oc.Orca(steps=400)),
        "ORCA, last start": oc.Recalibrator(space, combined(), oracle=oc.Orca(steps=400, start="last")),
        "ORCA, mixture": oc.Recalibrator(
            space, combined(), oracle=oc.Orca(steps=400, family=oc.paper.GaussianMixture(3))
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in games}
    won = dict.fromkeys(games, 0)
    for t in range(repetitions + 5):
        for name, game in games.items():
            if name == "ORCA, mixture" and t % 5:
                continue
            forecast = oc.Normal(float(stream.mu[t]), float(stream.sd[t]))
            begin = perf_counter()
            p = game.predict(forecast)
            spent = perf_counter() - begin
            game.update(float(stream.y[t]))
            if t >= 5:
                times[name].append(spent)
                won[name] += p.certificate.half_space is not None and p.certificate.half_space <= ROUNDING
    yield Remark(
        "400 steps, 50 cells, quantiles + two moments + regret in CRPS and squared error (section 6 of the paper)"
    )
    unit = median(times["Equilibrium"])
    yield Line("Equilibrium", "ms a forecast", 1e3 * unit, form=".3f")
    for name in ("ORCA", "ORCA, last start", "ORCA, mixture"):
        each = median(times[name])
        share = won[name] / len(times[name])
        yield Line(
            name,
            "ms a forecast",
            1e3 * each,
            COMPILED_LIMIT if name == "ORCA" else None,
            form=".2f",
            note=f"{each / unit:.1f} x Equilibrium; worst case at most 0 in {share:.1%} of the rounds",
        )


def duel(oracle: Any, rounds: int, seed: int) -> tuple[dict[int, float], float, float]:
    """QCE on the way, the largest miscalibration / promise, and the share of rounds held.

    Nature sees the forecast, picks the cell after which most is owed, and the outcome is drawn inside it: a Nature
    that picks the very point cannot be beaten by any density, and one scored on cells alone can always.
    """
    game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oracle)
    ledger: Any = game.engine.ledger
    rng, nature = np.random.default_rng(seed), CellGreedy()
    below, found, ratio = np.zeros(LEVELS.size), {}, 0.0
    for t in range(1, rounds + 1):
        p = game.predict()
        y = nature.outcome(game, p, rng)
        below += fair_indicators(p.quantile(LEVELS), y, low=0.0, high=1.0)
        game.update(y)
        ratio = max(ratio, unforgiven(ledger))
        if t in AT:
            found[t] = float(((below / t - LEVELS) ** 2).sum())
    return found, ratio, game.guarantee.held


def duels(rounds: int, runs: int) -> Iterator[Line | Remark]:
    makers: dict[str, Callable[[int], Any]] = {
        "ORCA": lambda run: oc.Orca(steps=400, jitter=JITTER, seed=run),
        "Equilibrium": lambda run: oc.Equilibrium(),
        "TwoCells (exact)": lambda run: oc.paper.TwoCells(),
    }
    yield Remark(
        f"greedy adversary, quantiles, no expert, outcome drawn inside the worst cell: QCE, mean over {runs} runs"
    )
    for name, make in makers.items():
        played = [duel(make(run), rounds, run) for run in range(runs)]
        for t in AT:
            values = [found[t] for found, _, _ in played if t in found]
            if values:
                spread = stdev(values) if len(values) > 1 else 0.0
                yield Line(name, f"QCE at T = {t}", mean(values), form=".4f", note=f"standard deviation {spread:.4f}")
        ratio = max(ratio for _, ratio, _ in played)
        held = mean(held for _, _, held in played)
        strict = name != "ORCA"
        yield Line(
            name,
            "largest miscalibration / promise",
            ratio,
            1.0 + ROUNDING if strict else None,
            form=".3f",
            note=f"after any round; certificates held in {held:.1%}",
        )
