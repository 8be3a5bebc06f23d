"""Payoffs that vary within a cell: certificates above every outcome, and finer cells where they are needed."""

import math
from typing import Any

import numpy as np
import pytest

import orcast as oc
from adversaries import Greedy, run_rounds
from helpers import cells_of
from orcast.engine.dense.search import CandidateSearch
from orcast.kernels import records
from orcast.ledger import Account
from orcast.payoffs import CellGrid, Payoff
from orcast.payoffs.cell_payoffs import ContextCellPayoff, ExplicitCellPayoff, nodes_of, witness_on
from orcast.testing import some_expert, worst_outcome

UNIT = oc.Interval(0, 1)


def newsvendor(action: float, y: float) -> float:
    return -max(2.0 * (action - y), y - action) / 10.0


def how_high(x: Any, p: Any) -> list[float]:
    """A context of two numbers with the sum 1."""
    share = 0.5 + 0.5 * math.tanh(5.0 * (float(p.median()) / 10.0 - 0.5))
    return [share, 1.0 - share]


def smooth_and_jump(y: float) -> list[float]:
    return [math.tanh(3.0 * (y / 10.0 - 0.5)), float(y > 6.25)]


SWAP = oc.payoffs.SwapRegret([1.0, 5.0, 9.0], newsvendor, utility_range=3.0)
GIVEN = oc.Recipe(smooth_and_jump, how_high, bound=8.0, jumps=[6.25])


def owing(space: Any, payoff: Payoff, seed: int, reach: float = 0.0) -> oc.Forecaster:
    """A game with a random ledger and no slack; without bounds its window reaches far beyond the expert."""
    recal = oc.Forecaster(space, payoff)
    recal.predict(oc.Normal(5.0, 1.0))
    recal.update(5.0)
    if reach:
        recal.engine.prior.engine.memory.view("statistics")[records.STATISTICS.index("robust_loss")] = reach
    ledger = recal.engine.ledger
    ledger.total[:] = 10.0 * np.random.default_rng(seed).normal(size=ledger.total.size)
    ledger.account[Account.BUDGET] = ledger.square
    return recal


# --- forecasts that win on average over each cell ---


def half_space_value(recal: oc.Forecaster, id: str) -> float:
    """The largest <cumulative payoff, payoff>, on average over each cell."""
    record, ledger = recal.rounds.pending[id].record, recal.engine.ledger
    search = CandidateSearch(ledger, record.cell_payoffs, record.context, 0.0, 8.0)
    p = recal.engine.prior.result(record.round)
    parts = zip(search.cell_payoffs, search.cumulative, strict=True)
    return float(np.max(sum(s @ cell_payoff.table(p) for cell_payoff, s in parts)))


@pytest.mark.parametrize(("payoff", "least"), [(SWAP, 8), (GIVEN, 6)], ids=["swap regret", "recipe"])
def test_forecast_without_slack_wins_on_average_over_each_cell(payoff: Payoff, least: int) -> None:
    """On random ledgers, always for swap regret; the recipe's context jumps with the median."""
    held = 0
    for seed in range(8):
        recal = owing(oc.Interval(0, 10), payoff, seed)
        p = recal.predict(oc.Normal(3.0, 0.5), id="now")
        held += p.certificate.holds
        if p.certificate.holds:
            assert 2.0 * half_space_value(recal, "now") <= p.certificate.bound + 1e-9
    assert held >= least


def test_swap_regret_of_three_actions_holds() -> None:
    """Lowering the worst cell alone ended in a local minimum in round 161, where forecasts that hold exist."""
    recal = oc.Forecaster(UNIT, oc.payoffs.SwapRegret([0.1, 0.5, 0.9], lambda a, y: -abs(a - y)))
    rng = np.random.default_rng(3)

    def expert(t: int) -> Any:
        return some_expert(UNIT, rng) if t % 3 == 2 else oc.Normal(0.5 + 0.3 * math.sin(t / 20.0), 0.1)

    for turn in run_rounds(recal, Greedy(), 165, experts=expert, rng=np.random.default_rng(0)):
        assert turn.forecast.certificate.holds
        recal.update(turn.y, id=turn.id)
    assert recal.guarantee.miscalibration > 0.99 * recal.guarantee.promised


# --- cells ---


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("payoff", [SWAP, GIVEN], ids=["swap regret", "recipe"])
def test_a_wide_window_costs_the_promise_nothing(payoff: Payoff, seed: int) -> None:
    """On even cells of it the promise grew up to 15 times as much as in a round that needs no resolution."""
    recal = owing(oc.Line(), payoff, seed, reach=1e5)
    p = recal.predict(oc.Normal(3.0 + seed, 1.0), id="wide")
    assert p.certificate.holds
    assert p.certificate.bound <= recal.engine.ledger.bound
    assert worst_outcome(recal, "wide", points=41)[1] <= p.certificate.worst_next * (1.0 + 1e-9)


def test_other_cells_are_narrow_around_the_expert_and_where_they_are_too_coarse() -> None:
    recal = owing(oc.Line(), GIVEN, 0, reach=1e12)
    prior = recal.engine.prior
    round, mix = prior.open(np.linspace(3.0, 7.0, prior.engine.rules.grid_count)[None], 0.0)
    even, even_mix = prior.recell(round, mix)
    finer, finer_mix = prior.recell(even, even_mix, np.eye(even_mix.size)[20])
    widths = []
    for found, masses in ((even, even_mix), (finer, finer_mix)):
        left, right, _ = cells_of(found)
        widths.append(right - left)
        assert np.array_equal(left[1:], right[:-1])
        assert (left[0], right[-1]) == (found.read("info", "low"), found.read("info", "high"))
        assert (left[0], left[-1]) == (right[0], right[-1])
        assert 6.25 in left
        assert masses.sum() == pytest.approx(1.0)
    assert widths[0][np.searchsorted(cells_of(even)[1], 5.0)] < 20.0
    assert widths[1][np.searchsorted(cells_of(finer)[0], cells_of(even)[0][20])] < 0.5 * widths[0][20]


# --- what is seen of a function within a cell ---


def test_the_ends_of_a_cell_are_seen_however_wide_it_is() -> None:
    nodes = nodes_of(np.array([-5.9e40, 6.25, 0.0]), np.array([2.0, 1e40, 1e40]))
    assert nodes[0, -1] == 2.0
    assert 6.25 < nodes[1, 0] < 6.2501
    assert 0.0 < nodes[2, 0] < 1e-5
    assert (np.diff(nodes, axis=1) > 0.0).all()


def test_groups_that_pull_against_each_other_see_the_same_outcome() -> None:
    """The cumulative payoffs of two groups cancel: it does not matter where in its cell an outcome lies."""
    grid = CellGrid(oc.Interval(0, 10), 2, np.array([0.0, 5.0]), np.array([5.0, 10.0]), 0.0, 10.0)
    witness = witness_on(grid, smooth_and_jump, 2, "witness")
    cell_payoff = ContextCellPayoff(witness, lambda p: np.array([0.5, 0.5]), 2)
    s, p = np.array([50.0, 20.0, -50.0, -20.0]), np.array([0.5, 0.5])
    linear, square = cell_payoff.assess(s, 1.0, p)
    assert linear == pytest.approx(square)
    assert 0.5 * cell_payoff.assess(s, 0.0, p)[0] - s @ cell_payoff.table(p) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_certificate_is_above_every_outcome_and_not_far(seed: int) -> None:
    """Coordinates that pull against each other within a cell are added piece by piece of it."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0.0, 10.0, 6)
    grid = CellGrid(oc.Interval(0, 10), 5, edges[:-1], edges[1:], 0.0, 10.0)
    cell_payoff = ExplicitCellPayoff(witness_on(grid, lambda y: [y / 10.0, (y / 10.0) ** 2], 2, "witness"))
    p, s = rng.dirichlet(np.ones(5)), np.array([10.0, -10.0]) * rng.uniform(0.5, 1.0, size=2)
    linear, _ = cell_payoff.assess(s, 1.0, p)
    for k in range(5):
        payoffs = np.array([cell_payoff.realised(p, k, y) for y in np.linspace(edges[k], edges[k + 1], 41)[1:]])
        true = float((2.0 * payoffs @ s + np.einsum("ij,ij->i", payoffs, payoffs)).max())
        low, high = (
            find(each[:, k], axis=1) for find, each in zip((np.min, np.max), cell_payoff.spans(p), strict=True)
        )
        apart = float(np.maximum(2.0 * s * low + low * low, 2.0 * s * high + high * high).sum())
        assert true - 1e-9 <= linear[k] <= true + 0.35 * (apart - true) + 1e-9


def test_masses_that_were_judged_are_issued_bit_for_bit() -> None:
    judged = set()

    def context(x: Any, p: Any) -> list[float]:
        judged.add(p.mass.tobytes())
        return how_high(x, p)

    for seed in range(10):
        recal = owing(oc.Interval(0, 10), oc.Recipe(smooth_and_jump, context, bound=8.0), seed)
        judged.clear()
        recal.predict(oc.Normal(3.0, 0.5), id=seed)
        assert recal.engine.prior.result(recal.rounds.pending[seed].record.round).tobytes() in judged
