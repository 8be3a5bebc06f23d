"""The exact oracles of appendix C: what a forecast costs as the grid or the tolerance grows, over two decades."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.results import Line, Remark
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.kernels.equilibrium import field_tables
from orcast.paper.exact.binary import gap_of, nearest_root
from orcast.paper.exact.quantile import downward_zero

TITLE = "Exact oracles: cost against size"
ROUNDS = 30  # played before anything is measured, so that something is owed
# A cost that grows with the logarithm may grow by this factor over two decades; one that is linear grows by 100.
LOGARITHMIC = 4.0


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    times = 20 if quick else 60
    yield Remark(
        "microseconds; the exponent is that of cost ~ size^exponent over the range (0: logarithmic or constant)"
    )
    yield from conformal(times)
    yield from binary(times)
    yield from quantile(times)
    yield from moments(times)
    yield from simplex(times)
    yield from decisions(times)
    yield from rounds(times)


def spent(work: Callable[[], Any], times: int) -> float:
    """The median time of a call, in microseconds; short ones are repeated until they can be measured."""
    begin = perf_counter()
    work()
    repeat = max(1, int(2e-4 / max(perf_counter() - begin, 1e-9)))
    found = []
    for _ in range(times):
        begin = perf_counter()
        for _ in range(repeat):
            work()
        found.append((perf_counter() - begin) / repeat)
    return 1e6 * median(found)


def growth(
    name: str, what: str, sizes: Sequence[float], costs: Sequence[float], target: float | None
) -> Iterator[Line]:
    """A line for each size, and how the cost grew."""
    for size, cost in zip(sizes, costs, strict=True):
        yield Line(name, f"{what} {size:g}", cost, form=".1f", note="us")
    exponent = math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])
    yield Line(
        name,
        f"growth from {what} {sizes[0]:g} to {sizes[-1]:g}",
        costs[-1] / costs[0],
        target,
        form=".2f",
        note=f"exponent {exponent:.2f}",
    )


def conformal(times: int) -> Iterator[Line]:
    """predict of the stand-alone object: doubling steps and bisection over the accounts."""
    sizes, costs = (10, 100, 1000), []
    for grid in sizes:
        aci = oc.paper.ConformalLevel(0.9, grid=grid, head_start=0.0)
        rng = np.random.default_rng(0)
        for _ in range(10 * ROUNDS):
            level = aci.predict()
            aci.update(level == 1.0 or (level > 0.0 and bool(rng.random() < level**2)))
        costs.append(spent(aci.predict, times))
    yield from growth("ConformalLevel, predict", "grid", sizes, costs, LOGARITHMIC)


def hand_of(game: oc.Forecaster) -> tuple[CandidateSearch, Any]:
    """What the player of a waiting round sees."""
    engine: Any = game.engine
    record = game.rounds.pending[None].record
    return CandidateSearch(engine.ledger, engine.ledger.layout, record.cell_payoffs, record.context, 0.0, 1.0), engine


def binary(times: int) -> Iterator[Line]:
    """The root alone, for the plain payoff."""
    game = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(), oracle=oc.paper.BinaryRoot())
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        game.predict(float(rng.random()))
        game.update(int(rng.random() < 0.5))
    game.predict(0.3)
    search, _ = hand_of(game)
    gap = gap_of(search)
    sizes = (1e2, 1e4, 1e8, 1e12)
    costs = [spent(lambda one=size: nearest_root(gap, 0.3, 1.0 / one), times) for size in sizes]  # type: ignore[misc]
    yield from growth("BinaryRoot, the root", "1 / tolerance", sizes, costs, LOGARITHMIC)


def quantile(times: int) -> Iterator[Line]:
    """The zero of H given its prefix sums, and these sums."""
    sizes, zeros, sums = (10, 100, 1000), [], []
    rng = np.random.default_rng(1)
    for count in sizes:
        levels = (np.arange(count) + 0.5) / count
        owed = rng.standard_normal(count)
        knots, slopes = np.empty(count + 1), np.empty(count + 1)
        field_tables(owed, levels, knots, slopes)
        if slopes[0] <= 0.0:
            owed = -owed
        owed[0], owed[-1] = abs(owed[0]), -abs(owed[-1])
        field_tables(owed, levels, knots, slopes)
        slopes[0], slopes[-1] = max(slopes[0], 1.0), max(slopes[-1], 1.0)
        zeros.append(spent(lambda a=(levels, knots, slopes): downward_zero(*a), times))  # type: ignore[misc]
        sums.append(spent(lambda a=(owed, levels, knots, slopes): field_tables(*a), times))  # type: ignore[misc]
    yield from growth("TwoCells, the zero of H", "levels", sizes, zeros, LOGARITHMIC)
    yield from growth("TwoCells, the sums of H", "levels", sizes, sums, None)


def played(game: oc.Forecaster, forecast: Callable[[], Any], outcome: Callable[[], Any], times: int) -> float:
    """A forecast of a game that has been going on, in microseconds."""
    for _ in range(ROUNDS):
        game.predict(forecast())
        game.update(outcome())
    return spent(lambda: game.predict(forecast()), max(times // 4, 5))


def on_random_ledgers(game: oc.Forecaster, forecast: Any, times: int) -> float:
    """A forecast when something is owed everywhere: the search finds nothing near the expert, and must enumerate."""
    rng = np.random.default_rng(2)
    total: Any = game.engine.ledger.total
    found = []
    for _ in range(max(times // 2, 10)):
        total[:] = rng.standard_normal(total.size)
        begin = perf_counter()
        game.predict(forecast)
        found.append(perf_counter() - begin)
    return 1e6 * float(np.mean(found))


def moments(times: int) -> Iterator[Line]:
    sizes, costs = (2, 11, 64), []
    for grid in sizes:
        game = oc.Forecaster(oc.Interval(0, 1), oc.payoffs.MomentBasedCalibration(grid), oracle=oc.paper.MomentHull())
        costs.append(on_random_ledgers(game, oc.Normal(0.5, 0.1), times))
    yield from growth("MomentHull, predict", "grid", sizes, costs, None)


def simplex(times: int) -> Iterator[Line]:
    sizes, costs = (2, 11, 64), []
    for grid in sizes:
        game = oc.Forecaster(
            oc.Labels(["a", "b", "c"]), oc.payoffs.SimplexCalibration(grid), oracle=oc.paper.SimplexGrid()
        )
        costs.append(on_random_ledgers(game, [0.2, 0.3, 0.5], times))
    yield from growth("SimplexGrid, 3 labels, predict", "grid", sizes, costs, None)


def decisions(times: int) -> Iterator[Line]:
    sizes, costs = (10, 100, 1000), []
    for count in sizes:
        rng = np.random.default_rng(4)
        payoff = oc.payoffs.SwapRegret([0.2, 0.5, 0.8], lambda a, y, n=count: -abs(a - y / n))
        game = oc.Forecaster(oc.Labels(range(count)), payoff, oracle=oc.paper.DecisionGame())
        even = np.full(count, 1.0 / count)
        costs.append(played(game, lambda x=even: x, lambda r=rng, n=count: int(r.integers(n)), times))  # type: ignore[misc]
    yield from growth("DecisionGame, 3 actions, predict", "outcomes", sizes, costs, None)
    sizes, costs = (2, 10, 50), []
    for count in sizes:
        rng = np.random.default_rng(4)
        actions = np.linspace(0.05, 0.95, count).tolist()
        payoff = oc.payoffs.SwapRegret(actions, lambda a, y: -np.abs(a - y))
        game = oc.Forecaster(oc.Interval(0, 1), payoff, oracle=oc.paper.DecisionGame())
        costs.append(played(game, lambda: oc.Normal(0.5, 0.1), lambda r=rng: float(r.random()), times))  # type: ignore[misc]
    yield from growth("DecisionGame, predict", "actions", sizes, costs, None)


def rounds(times: int) -> Iterator[Line | Remark]:
    """A whole predict of each oracle at its usual size: the costs of docs/choosing.md."""
    yield Remark("a whole predict, at the usual size")
    rng = np.random.default_rng(5)
    space, normal = oc.Interval(0, 1), lambda: oc.Normal(0.5, 0.1)
    quantiles = oc.QuantileCalibration()
    default = quantiles + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    swap = oc.payoffs.SwapRegret([0.2, 0.5, 0.8], lambda a, y: -np.abs(a - y))
    games: dict[str, tuple[Any, Any, Any, Callable[[], Any], Callable[[], Any]]] = {
        "Committee, default payoff": (space, default, oc.Committee(), normal, rng.random),
        "Equilibrium, default payoff": (space, default, oc.Equilibrium(), normal, rng.random),
        "Orca, default payoff": (space, default, oc.Orca(), normal, rng.random),
        "ConformalLevel, in a game": (
            space,
            oc.payoffs.LevelCalibration(0.9),
            oc.paper.ConformalLevel(0.9),
            normal,
            rng.random,
        ),
        "TwoCells": (space, quantiles, oc.paper.TwoCells(), normal, rng.random),
        "MomentHull": (space, oc.payoffs.MomentBasedCalibration(), oc.paper.MomentHull(), normal, rng.random),
        "DecisionGame, 3 actions": (space, swap, oc.paper.DecisionGame(), normal, rng.random),
        "Equilibrium, 3 actions": (space, swap, oc.Equilibrium(), normal, rng.random),
        "BinaryRoot": (
            oc.Binary(),
            oc.BinaryCalibration(),
            oc.paper.BinaryRoot(),
            rng.random,
            lambda: int(rng.integers(2)),
        ),
        "Equilibrium, binary": (
            oc.Binary(),
            oc.BinaryCalibration(),
            oc.Equilibrium(),
            rng.random,
            lambda: int(rng.integers(2)),
        ),
        "SimplexGrid, 3 labels": (
            oc.Labels(["a", "b", "c"]),
            oc.payoffs.SimplexCalibration(),
            oc.paper.SimplexGrid(),
            lambda: rng.dirichlet(np.ones(3)),
            lambda: "abc"[int(rng.integers(3))],
        ),
    }
    for name, (where, payoff, oracle, forecast, outcome) in games.items():
        cost = played(oc.Forecaster(where, payoff, oracle=oracle), forecast, outcome, times)
        yield Line(name, "predict", cost, form=".0f", note="us")
    aci = oc.paper.ConformalLevel(0.9)
    for _ in range(ROUNDS):
        level = aci.predict()
        aci.update(level > 0.0 and (level == 1.0 or bool(rng.random() < 0.8)))
    yield Line("ConformalLevel, by itself", "predict", spent(aci.predict, times), form=".1f", note="us")
