"""The exact oracle on binary outcomes: brute force, its choice among roots, its cost, its promise."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import SENTENCE, Vector, positive, random_ledgers, whole
from orcast import game as game_module
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.paper.exact.binary import STEP, BinaryRoot, nearest_root
from orcast.payoffs import Payoff

HOURS = oc.by("hour", values=range(3))


def worth(action: str, y: int) -> float:
    return -0.2 if action == "take" else -1.0 * y


PAYOFFS: dict[str, Callable[[], Payoff]] = {
    "plain": oc.BinaryCalibration,
    "two grids": lambda: oc.BinaryCalibration(grid=4) + oc.BinaryCalibration(grid=9, weight=2.0),
    "default": lambda: game_module.default_payoff(oc.Binary()),
    "given the expert": lambda: oc.payoffs.Calibeating() + oc.MomentMatching(1),
    "by hour": lambda: oc.BinaryCalibration(grid=6, context=HOURS) + oc.NoRegret(oc.Brier(), context=HOURS),
    "decision": lambda: oc.payoffs.DecisionCalibration(["take", "leave"], worth),
    "swap regret": lambda: oc.payoffs.SwapRegret(["take", "leave"], worth),
    "distribution": lambda: oc.payoffs.DistributionCalibration([0.2, 0.5, 0.9]),
    "regrets": lambda: oc.NoRegret(oc.Brier(), oc.scores.LogScore(), oc.CRPS()) + oc.BinaryCalibration(grid=5),
    "log": lambda: oc.NoRegret(oc.scores.LogScore()) + oc.MomentMatching(1),
    "recipe": lambda: oc.Recipe(lambda y: [0.3 * y, 1.0 - y], bound=2.0),
    "recipe of p": lambda: oc.Recipe(lambda y: [float(y)], lambda x, p: [1.0 - p.mass[0], p.mass[0]], bound=1.0),
    "custom": lambda: oc.Custom(lambda x, p, y: [math.cos(9.0 * p.probability()) * (p.probability() - y)], bound=1.0),
}


def bind(payoff: Payoff, **options: float) -> DenseEngine:
    engine = BinaryRoot(**options).bind(BoundPayoff(oc.Binary(), payoff, ("expert",), None))
    assert isinstance(engine, DenseEngine)
    engine.predict(np.array([[0.5, 0.5]]), {"hour": 0})  # a size may be known only now
    return engine


def ledgers(size: int, count: int, seed: int) -> Iterator[Vector]:
    """Like real ones, and much larger and smaller; with zeros, with one coordinate, all alike."""
    return random_ledgers(size, count, seed, {6: lambda s, rng: np.cumsum(s)})


def inner_products(engine: DenseEngine, record: Any) -> list[float]:
    """<S_+, payoff> of each outcome, from what would be booked."""
    layout = engine.ledger.layout
    owed = positive(engine.ledger.total, layout.side_list)
    return [float(owed @ whole(layout, engine.payoff(record, y), engine.context_of(record))) for y in (0, 1)]


def check(engine: DenseEngine, record: Any) -> None:
    """No outcome hurts beyond rounding, and what the certificate says is the very value."""
    worst = max(inner_products(engine, record))
    rounding = 1e-13 * (1.0 + float(np.abs(engine.ledger.total).sum()))
    said = record.claim.half_space * max(engine.ledger.rounds, 1)
    assert record.claim.approximation == 0.0
    assert worst == pytest.approx(said, rel=1e-9, abs=rounding)
    assert worst <= 1e3 * rounding


# --- brute force ---


@pytest.mark.parametrize("name", PAYOFFS)
def test_neither_outcome_hurts_whatever_is_owed(name: str) -> None:
    engine = bind(PAYOFFS[name]())
    rng = np.random.default_rng(1)
    for s in ledgers(engine.ledger.total.size, 1000 if name == "plain" else 60, 2):
        engine.ledger.total[:] = s
        x = [0.0, 1.0, 0.5, rng.random(), rng.random()][int(rng.integers(5))]
        check(engine, engine.predict(np.array([[1.0 - x, x]]), {"hour": int(rng.integers(3))}))


@pytest.mark.parametrize("name", PAYOFFS)
def test_nor_where_an_adversary_has_grown_the_ledger(name: str) -> None:
    """Nature sees the forecast and takes the outcome with the larger inner product."""
    engine = bind(PAYOFFS[name]())
    rng = np.random.default_rng(3)
    for t in range(200 if name in ("plain", "default", "regrets") else 40):
        x = float(rng.choice([0.0, 0.3, 0.999, 1.0])) if t % 2 else rng.random()
        record = engine.predict(np.array([[1.0 - x, x]]), {"hour": t % 3})
        check(engine, record)
        engine.update(record, int(np.argmax(inner_products(engine, record))) if t % 5 else int(rng.integers(2)))
    assert engine.ledger.held == 1.0


def test_the_inner_product_is_within_the_lipschitz_constant_times_the_tolerance() -> None:
    """Which is what the docstring derives, and coarse tolerances show it."""
    grid = 15
    worst_share = 0.0
    for tolerance in (1e-2, 1e-4, 1e-6):
        engine = bind(oc.BinaryCalibration(grid), tolerance=tolerance)
        for s in ledgers(grid, 300, 4):
            engine.ledger.total[:] = s
            record = engine.predict(np.array([[0.3, 0.7]]))
            limit = 3.0 * grid * float(np.abs(np.diff(s)).max()) * tolerance
            worst = max(inner_products(engine, record))
            assert worst <= limit + 1e-12 * float(np.abs(s).max())
            worst_share = max(worst_share, worst / limit if limit > 0.0 else 0.0)
    assert worst_share > 1e-3


def test_a_certain_expert_who_is_always_right_is_no_trap() -> None:
    """There the unit of the regret is that of the forecast itself, and the payoff jumps at the expert's word."""
    engine = bind(oc.NoRegret(oc.Brier()) + oc.BinaryCalibration(grid=4))
    rng = np.random.default_rng(5)
    for x in (0.0, 1.0):
        for _ in range(200):
            engine.ledger.total[:] = rng.normal(size=5)
            engine.ledger.total[0] = abs(engine.ledger.total[0])
            check(engine, engine.predict(np.array([[1.0 - x, x]])))


# --- signs ---


def test_signs_matter() -> None:
    """'If c(0) <= 0 play 0' is about y - p; booked is p - y, and the same rule for the ledger as it is would lose."""
    engine = bind(oc.BinaryCalibration(grid=5))
    engine.ledger.total[:] = -1.0  # forecasts were too low
    record = engine.predict(np.array([[0.5, 0.5]]))
    assert engine.prior.played(record.round)[1] == pytest.approx(1.0)
    check(engine, record)
    wrong = engine.predict(np.array([[0.5, 0.5]]))
    engine.prior.store(wrong.round, np.array([1.0, 1e-300]), np.array([0.5, 0.5]))
    assert max(inner_products(engine, wrong)) == pytest.approx(1.0)


# --- which root, and what it costs ---


def test_without_debts_it_is_the_expert_who_speaks() -> None:
    game = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(), oracle=BinaryRoot())
    assert float(game.predict(0.73)) == pytest.approx(0.73, abs=1e-12)
    assert float(game.predict()) == pytest.approx(0.5, abs=1e-12)


def test_the_root_is_the_first_one_in_the_direction_of_the_debt() -> None:
    engine = bind(oc.BinaryCalibration(grid=10))
    # zeros at the soft edges 0.2, 0.4, 0.6 and 0.8
    engine.ledger.total[:] = [-1, -1, 1, 1, -1, -1, 1, 1, -1, -1]
    for x, expected in ((0.05, 0.2), (0.18, 0.2), (0.35, 0.2), (0.45, 0.6), (0.62, 0.6), (0.7, 0.6), (0.85, 1.0)):
        record = engine.predict(np.array([[1.0 - x, x]]))
        assert engine.prior.played(record.round)[1] == pytest.approx(expected, abs=1e-9)


@given(
    st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, -1.0]), min_size=2, max_size=12),
    st.floats(0.0, 1.0),
    st.sampled_from([1e-3, 1e-6, 1e-12]),
)
def test_a_root_is_found_by_few_evaluations(heights: list[float], start: float, tolerance: float) -> None:
    knots = np.linspace(0.0, 1.0, len(heights))
    asked: list[float] = []

    def gap(q: float) -> float:
        asked.append(q)
        return float(np.interp(q, knots, heights))

    found = nearest_root(gap, start, tolerance)
    count = len(asked)
    assert count <= 1 / STEP + 1 + 2 * math.log2(1 / tolerance)
    steepest = float(np.abs(np.diff(heights)).max()) * (len(heights) - 1)
    for q in found:
        assert 0.0 <= q <= 1.0
        # both bounds of the docstring
        assert max((1.0 - q) * gap(q), -q * gap(q)) <= steepest * tolerance + 1e-12
    signs = {float(np.sign(gap(q))) for q in found}
    assert len(found) == 1 or signs == {1.0, -1.0}
    # on the way that d points
    assert all((q - start) * gap(start) >= 0.0 for q in found)


# --- the promise ---


# --- at the edge ---


@pytest.mark.parametrize("space", [oc.Interval(0, 1), oc.Labels(["a", "b"]), oc.Line()], ids=str)
def test_it_is_for_binary_outcomes(space: Any) -> None:
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Forecaster(space, oracle=BinaryRoot())


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, math.nan, "much"])
def test_bad_tolerances(tolerance: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        BinaryRoot(tolerance)
