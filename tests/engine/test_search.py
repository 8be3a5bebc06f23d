"""Existence of forecasts that hold, step by step, and the search for them."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from adversaries import Greedy, run_rounds
from helpers import (
    Vector,
    bound_to,
    cells_of,
    engine_of,
    fast_payoff,
    on_cells,
    page_with,
    positive,
    record_of,
)
from orcast.engine.ordered import OrderedEngine
from orcast.kernels import judging
from orcast.kernels.state import Round
from orcast.ledger import Account
from orcast.payoffs import Payoff
from orcast.testing import some_expert

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


def opened(engine: OrderedEngine, round: Round) -> tuple[object, ...]:
    """First arguments of the kernels that search."""
    return engine.rules, engine.memory, round


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


# --- the search ---


@pytest.mark.parametrize("seed", range(30))
def test_for_quantiles_alone_something_is_always_found(seed: int) -> None:
    """Nothing is left of the budget: the two cells at the ends win."""
    rng = np.random.default_rng(seed)
    levels = np.arange(1, 100) / 100 if seed % 2 else np.sort(rng.random(1 + seed % 5))
    s = rng.normal(size=levels.size)
    if seed % 3 == 0:
        s = np.cumsum(s)
    if seed % 3 == 1:
        s = np.sort(s)
    check_holds_without_slack(levels, 10.0 ** rng.uniform(0, 3) * s)


@pytest.mark.parametrize("s", [[2.0, 0, -2], [1.0, 0, -1], [1.0, 0, 0, 1, 0, -2, -1, 1]])
def test_a_zero_on_a_level_is_found(s: list[float]) -> None:
    """H falls to zero at a level, and rounding is small beside the cumulative payoff."""
    check_holds_without_slack(np.arange(1, len(s) + 1) / (len(s) + 1), 1e7 * np.array(s))


def check_holds_without_slack(levels: Vector, total: Vector) -> None:
    """Check that a forecast around an expert holds although the ledger has this sum and no slack."""
    recal = oc.Recalibrator(SMALL, oc.QuantileCalibration(levels), oracle=oc.Equilibrium())
    engine = engine_of(recal)
    engine.ledger.total[:] = total
    without_slack(engine)
    p = recal.predict(oc.Normal(0.4, 0.1))
    assert judging.certify_arrays(*opened(engine, record_of(recal)), None)[3] == 0.0
    assert p.certificate.holds
    assert p.mass.sum() == pytest.approx(1.0)
    assert p.mass.min() >= 0.0


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
