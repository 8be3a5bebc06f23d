"""Existence of forecasts that hold, step by step, and the search for them against brute force over all paths."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import (
    NODES,
    WEIGHTS,
    Vector,
    bound_to,
    cells_of,
    engine_of,
    fast_payoff,
    on_cells,
    page_with,
    positive,
    record_of,
    witnesses,
)
from orcast.engine.ordered import PLAYED, OrderedEngine
from orcast.kernels import judging, path_search
from orcast.kernels.state import Round
from orcast.ledger import Account
from orcast.payoffs import Payoff
from orcast.testing.adversaries import Greedy, run_rounds
from orcast.testing.checks import some_expert

SMALL = oc.Interval(0, 1, cells=8, tail_cells=1)
# Three nodes integrate what is settled within a cell: polynomials of degree 4 at most.
_nodes, _weights = np.polynomial.legendre.leggauss(3)
THREE, THREE_WEIGHTS = 0.5 * (_nodes + 1.0), 0.5 * _weights
FEW = oc.QuantileCalibration([0.1, 0.5, 0.8]) + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())

# --- the steps of the proof ---


def cell_means(engine: OrderedEngine, round: Round) -> Vector:
    """v: the mean of <S_+, payoff> over each cell."""
    pull = positive(engine.ledger.total, engine.ledger.layout.side_list)
    means = []
    for k, (left, right, _) in enumerate(zip(*cells_of(round), strict=True)):
        ys = left + (right - left) * THREE
        means.append(sum(w * (pull @ fast_payoff(engine, round, y, k)) for y, w in zip(ys, THREE_WEIGHTS, strict=True)))
    return np.array(means)


@pytest.mark.parametrize(
    ("payoff", "proper"),
    [
        (oc.QuantileCalibration([0.1, 0.5, 0.8]), False),
        (oc.IntervalCalibration([0.5, 0.9]), False),
        (oc.MomentMatching(4), False),
        (oc.NoRegret(oc.CRPS(), oc.MSE()), True),
        (FEW, True),
    ],
    ids=["quantile", "interval", "moment", "regret", "sum"],
)
@given(data=st.data())
def test_the_forecast_itself_expects_nothing(payoff: Payoff, proper: bool, data: st.DataObject) -> None:
    """Sum of p_k v_k is 0, or with regrets at most 0: the step that turns the inequality into a bound."""
    engine = bound_to(SMALL, payoff)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    engine.ledger.total[:] = rng.normal(size=engine.ledger.total.size) * data.draw(st.sampled_from([0.1, 10.0]))
    p, expert = data.draw(on_cells(SMALL, empty=False))
    expected = p.mass @ cell_means(engine, page_with(engine, p, expert))
    size = 1.0 + float(np.linalg.norm(engine.ledger.total))
    assert expected <= 1e-9 * size
    if not proper:
        assert expected >= -1e-9 * size


# --- the resolution ---


def injected(payoff: Payoff, total: Vector | None, cells: int = 8) -> tuple[OrderedEngine, Round]:
    """An engine with a ledger, and a round on even cells."""
    engine = bound_to(oc.Interval(0, 1, cells=max(cells, 8), tail_cells=1), payoff)
    if total is not None:
        engine.ledger.total[:] = total
    edges = np.linspace(0.0, 1.0, cells + 1)
    even = np.full(cells, 1.0 / cells)
    return engine, page_with(engine, oc.Forecast(edges[:-1], edges[1:], even), even)


def opened(engine: OrderedEngine, round: Round) -> tuple[object, ...]:
    """First arguments of the kernels that search."""
    return engine.rules, engine.memory, round, witnesses(engine, round).ravel()


def without_slack(engine: OrderedEngine) -> OrderedEngine:
    """Leave nothing of the budget."""
    engine.ledger.account[Account.BUDGET] = engine.ledger.square
    return engine


@pytest.mark.parametrize(
    "payoff", [oc.MomentMatching(3), FEW, oc.NoRegret(oc.CRPS(), oc.MSE())], ids=["moment", "sum", "regret"]
)
@given(data=st.data())
def test_the_resolution_is_what_a_point_adds_to_its_cell(payoff: Payoff, data: st.DataObject) -> None:
    engine = bound_to(SMALL, payoff)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    engine.ledger.total[:] = 5.0 * rng.normal(size=engine.ledger.total.size)
    p, expert = data.draw(on_cells(SMALL, empty=False))
    round = page_with(engine, p, expert)
    pull, means = positive(engine.ledger.total, engine.ledger.layout.side_list), cell_means(engine, round)
    most = 0.0
    for k in range(p.mass.size):
        ys = p.left[k] + (p.right[k] - p.left[k]) * np.linspace(0, 1, 11)
        most = max(most, *(pull @ fast_payoff(engine, round, y, k) - means[k] for y in ys))
    _, _, claimed, _ = judging.certify_arrays(*opened(engine, round), None)
    assert claimed >= most - 1e-9 * (1.0 + most)
    assert claimed <= most * 1.03 + 1e-6 * (1.0 + np.linalg.norm(engine.ledger.total))


@pytest.mark.parametrize("at", [0.3, 0.55, 0.9])
@pytest.mark.parametrize("size", [250.0, 300.0, 3000.0])
def test_a_promise_grows_by_the_resolution_where_cells_are_too_coarse(at: float, size: float) -> None:
    """Only a point mass answers the cumulative payoff, and there is none: B_t grows only as much as needed."""
    recal = oc.Forecaster(SMALL, oc.MomentMatching(2), oracle=oc.Equilibrium())
    engine = engine_of(recal)
    account = engine.ledger.account
    engine.ledger.total[:] = -2.0 * at * size, size
    without_slack(engine)
    p = recal.predict()
    linear, norm, apart, slack = judging.certify_arrays(*opened(engine, record_of(recal)), None)
    assert slack == 0.0
    assert norm < linear <= norm + 2.0 * apart
    assert p.certificate is not None
    assert p.certificate.holds
    assert p.certificate.excess == 0.0
    assert p.certificate.bound == pytest.approx(linear, rel=1e-9)
    before = account[Account.BUDGET]
    recal.update(at)
    assert account[Account.BUDGET] == pytest.approx(before + linear, rel=1e-12)
    assert account[Account.EXCESS] == 0.0


# --- paths ---


class Paths(NamedTuple):
    """Paths on points of F: the field of each pair of them, tilts of the cells, and F of the experts."""

    points: Vector
    fields: Vector
    mean: Vector
    most: Vector
    cumulated: Vector
    pull: float
    weight: float


def all_paths(points: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Every way from the first point to the last in a given number of steps, none of them back."""
    for middle in itertools.combinations_with_replacement(range(points), cells - 1):
        yield (0, *middle, points - 1)


def judged(paths: Paths, width: Vector, path: tuple[int, ...]) -> tuple[float, float]:
    """The largest q + c + A along a path, and its V, as they are defined."""
    F = paths.points[list(path)]
    mean, most = paths.mean, paths.most
    A = V = 0.0
    worst = -np.inf
    for k in range(len(path) - 1):
        # the integral of 2 (F - G) from the left edge, both being linear within the cell
        a, b = F[k] - paths.cumulated[k], F[k + 1] - paths.cumulated[k + 1]
        turn = a / (a - b) if a > 0.0 > b else 1.0
        u = np.array([0.0, turn, 1.0])
        within = paths.pull * width[k] * (2.0 * a * u + (b - a) * u * u)
        worst = max(worst, paths.fields[path[k], path[k + 1]] + most[k] + A + max(within.max(), 0.0))
        A += within[-1]
        V += (F[k + 1] - F[k]) * mean[k]
        V -= paths.pull * width[k] * float(WEIGHTS @ (1.0 - F[k] - (F[k + 1] - F[k]) * NODES) ** 2)
    return worst, V


def random_paths(rng: np.random.Generator, pull: float) -> tuple[Paths, Vector]:
    count, cells = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    points = np.concatenate([[0.0], np.sort(rng.random(count)), [1.0]])
    total = points.size
    mean = rng.normal(size=cells)
    most = mean + rng.random(cells)
    G = np.concatenate([[0.0], np.sort(rng.random(cells - 1)), [1.0]])
    width = rng.dirichlet(np.ones(cells))
    fields = rng.normal(size=(total, total))
    return Paths(points, fields, mean, most, G, pull, float(rng.choice([0.25, 1.0, 4.0]))), width


@pytest.mark.parametrize("pull", [0.0, 0.5, 5.0])
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.sampled_from([-1e-6, 1e-6]))
def test_the_best_path_against_all_paths(pull: float, seed: int, share: float, beside: float) -> None:
    """The bound lies just beside what some path needs."""
    paths, width = random_paths(np.random.default_rng(seed), pull)
    cells = width.size
    each = {path: judged(paths, width, path) for path in all_paths(paths.points.size, cells)}
    needs = sorted(worst for worst, _ in each.values())
    bound = needs[int(share * (len(needs) - 1))] + beside
    within = [V for worst, V in each.values() if worst <= bound]
    best = max(within, default=-np.inf)
    masses = np.full(cells, np.nan)
    found = path_search.best_path_arrays(*paths, width, bound, masses)
    if pull == 0.0:
        assert found == pytest.approx(best, abs=1e-12)
    if found == -np.inf:
        return
    # what it returns is a path on the grid, under the bound, with the V that it says
    F = np.concatenate([[0.0], np.cumsum(masses)])
    path = tuple(int(np.abs(paths.points - u).argmin()) for u in F)
    assert paths.points[list(path)] == pytest.approx(F, abs=1e-12)
    worst, V = each[path]
    assert worst <= bound + 1e-9
    assert found == pytest.approx(V, abs=1e-9)
    assert found <= best + 1e-9


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("s", [[2.0, 0, -2], [1.0, 0, -1], [1.0, 0, 0, 1, 0, -2, -1, 1]])
def test_a_zero_on_a_level_is_result(s: list[float], thorough: bool) -> None:
    """H falls to zero at a level, nothing is left of the budget, and rounding is small beside the cumulative payoff."""
    levels = np.arange(1, len(s) + 1) / (len(s) + 1)
    engine, round = injected(oc.QuantileCalibration(levels), 1e7 * np.array(s))
    given = opened(without_slack(engine), round)
    assert path_search.search_paths_arrays(*given, None, np.full(8, 0.125), thorough)[0] <= 0.0


# --- the search ---


def test_the_search_ends_where_there_is_nothing_to_find() -> None:
    """One cell for all: no forecast answers for the mean. The bound falls faster and faster, whatever the cap."""
    engine, round = injected(oc.QuantileCalibration([0.3, 0.6]) + oc.MomentMatching(2), None)
    engine.ledger.total[:] = [5.0, -3.0, -200.0, 180.0]
    rules, *rest = opened(engine, round)
    for effort, thorough, most in ((1000, False, 29), (2, True, 4)):
        given = rules.replaced(effort=effort), *rest, -1e4, np.full(8, 0.125), thorough
        missing, passes = path_search.search_paths_arrays(*given)
        assert missing > 0.0
        assert 1 <= passes <= most


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("thorough", [False, True])
def test_for_quantiles_alone_something_is_always_found(seed: int, thorough: bool) -> None:
    """Nothing is left of the budget: the bound meets the two cells that win before it falls below them."""
    rng = np.random.default_rng(seed)
    levels = np.arange(1, 100) / 100 if seed % 2 else np.sort(rng.random(1 + seed % 5))
    s = rng.normal(size=levels.size)
    if seed % 3 == 0:
        s = np.cumsum(s)
    if seed % 3 == 1:
        s = np.sort(s)
    engine, round = injected(oc.QuantileCalibration(levels), 10.0 ** rng.uniform(0, 3) * s)
    given = opened(without_slack(engine), round)
    assert judging.certify_arrays(*given, None)[3] == 0.0
    assert path_search.search_paths_arrays(*given, None, np.full(8, 0.125), thorough)[0] <= 0.0
    p = round.view("cells")[PLAYED, :8]
    assert p.sum() == pytest.approx(1.0)
    assert p.min() >= 0.0


@pytest.mark.parametrize(("seed", "within"), [(1, (0.3, 0.7)), (4, (0.25, 0.75))])
def test_a_confined_adversary_and_random_experts(seed: int, within: tuple[float, float]) -> None:
    """What once broke the default: now every round holds, and none takes long."""
    space, experts = oc.Interval(0, 1), np.random.default_rng(seed)
    recal = oc.Recalibrator(space)
    adversary = Greedy(within=within)
    for turn in run_rounds(
        recal, adversary, 400, experts=lambda t: some_expert(space, experts), rng=np.random.default_rng(0)
    ):
        assert turn.forecast.certificate.holds
        assert turn.seconds < 0.2
        recal.update(turn.y, id=turn.id)
    assert (recal.guarantee.held, recal.guarantee.excess) == (1.0, 0.0)
    assert recal.guarantee.miscalibration > 0.7 * recal.guarantee.promised
