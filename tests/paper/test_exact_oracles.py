"""All exact oracles: the half-space by brute force, the guarantee under attack, states, and plain options."""

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from adversaries import products
from contract import some_outcome
from helpers import random_ledgers
from orcast.payoffs import default_payoff
from orcast.payoffs.triangulated import MomentBasedCalibration, SimplexCalibration
from orcast.persistence import oracle_from_plain
from orcast.spaces import OrderedSpace
from orcast.testing import as_given, candidates, check_guarantee, some_expert, squares_after

LABELS = oc.Labels(["home", "draw", "away"])
INTERVAL = oc.Interval(-2, 10, cells=24, tail_cells=3)
ACTIONS = [0.0, 3.0, 8.0]


def worth(action: float, y: float) -> float:
    return -abs(action - y)


# space, payoff, oracle, and the rounds of a check (0: random, or without a guarantee)
CASES: dict[str, tuple[Any, Any, Any, int]] = {
    "binary": (oc.Binary(), oc.BinaryCalibration(5) + oc.NoRegret(oc.Brier()), oc.paper.BinaryRoot(), 200),
    "quantile": (
        INTERVAL,
        oc.QuantileCalibration([0.1, 0.4, 0.8]) + oc.IntervalCalibration(0.8),
        oc.paper.TwoCells(),
        120,
    ),
    "moments": (INTERVAL, MomentBasedCalibration(8), oc.paper.LogitPath(), 30),
    "simplex": (LABELS, SimplexCalibration(), oc.paper.LogitPath(), 40),
    "bins": (INTERVAL, SimplexCalibration(4, bins=3), oc.paper.LogitPath(), 20),
    "orca": (
        INTERVAL,
        oc.QuantileCalibration([0.2, 0.8]) + oc.NoRegret(oc.CRPS()),
        oc.Orca(steps=20, cells=10, rate=0.1),
        0,
    ),
    "decisions": (
        INTERVAL,
        oc.payoffs.SwapRegret(ACTIONS, worth) + oc.payoffs.DecisionCalibration(ACTIONS, worth),
        oc.paper.LogitPath(),
        20,
    ),
}


# --- the half-space, by brute force over the outcomes ---

UNBOUNDED = oc.Line(cells=24, tail_cells=3)
FOUR = oc.Labels(list("abcd"))
HOURS = oc.by("hour", values=range(3))
UTILITIES = np.random.default_rng(5).random((4, 4))


def worth_of_letters(action: int, y: str) -> float:
    return float(UTILITIES[action, "abcd".index(y)])


def umbrella(action: str, y: int) -> float:
    return -0.2 if action == "take" else -1.0 * y


def commit(action: float, y: Any) -> Any:
    """A commitment to deliver: too much costs three times as much as too little."""
    return -np.where(y > action, 1.0, 3.0) * np.abs(action - y)


ON_BINARY: list[Any] = [
    oc.BinaryCalibration(),
    oc.BinaryCalibration(grid=4) + oc.BinaryCalibration(grid=9, weight=2.0),
    default_payoff(oc.Binary()),
    oc.payoffs.Calibeating() + oc.MomentMatching(1),
    oc.BinaryCalibration(grid=6, context=HOURS) + oc.NoRegret(oc.Brier(), context=HOURS),
    oc.payoffs.DecisionCalibration(["take", "leave"], umbrella),
    oc.payoffs.SwapRegret(["take", "leave"], umbrella),
    oc.NoRegret(oc.Brier(), oc.CRPS()) + oc.BinaryCalibration(grid=5),
    oc.Recipe(lambda y: [float(y)], lambda x, p: [1.0 - p.mass[0], p.mass[0]], bound=1.0),
    oc.Recipe(lambda y: [float(y)], lambda x, p: [math.cos(9.0 * p.probability())], bound=1.0),
]
ON_LEVELS: list[Any] = [
    oc.QuantileCalibration(),
    oc.QuantileCalibration([0.9]),
    oc.QuantileCalibration([1e-6, 0.01, 0.5, 0.500001, 0.99, 1 - 1e-9]),
    oc.QuantileCalibration([0.05, 0.3, 0.95], weight=3.0)
    + oc.IntervalCalibration([0.4, 0.9])
    + oc.QuantileCalibration([0.3, 0.7]),
    oc.QuantileCalibration([0.2, 0.5, 0.8], context=HOURS) + oc.IntervalCalibration(0.6),
]
SWAPS: list[tuple[Any, Any]] = [
    (FOUR, oc.payoffs.DecisionCalibration(range(4), worth_of_letters)),
    (FOUR, oc.payoffs.SwapRegret(range(4), worth_of_letters)),
    (FOUR, oc.payoffs.SwapRegret(range(4), worth_of_letters, sharpness=2000.0)),
    (FOUR, oc.payoffs.SwapRegret(range(4), worth_of_letters) + oc.payoffs.SwapRegret(range(3), worth_of_letters)),
    (oc.Circle(24, cells=12), oc.payoffs.SwapRegret([0, 8, 16], lambda a, y: np.cos((a - y) * np.pi / 12))),
    (INTERVAL, oc.payoffs.SwapRegret([-1.3, 4.4, 7.9], commit)),
    (UNBOUNDED, oc.payoffs.SwapRegret([-1.0, 1.0], lambda a, y: a * np.tanh(y), utility_range=2.0)),
]
# space, payoff, oracle, the largest half-space value in units of the ledger
HALF_SPACES: list[tuple[Any, Any, Any, float]] = [
    *((oc.Binary(), payoff, oc.paper.BinaryRoot(), 1e-10) for payoff in ON_BINARY),
    *((INTERVAL, payoff, oc.paper.TwoCells(), 1e-11) for payoff in ON_LEVELS),
    *((INTERVAL, MomentBasedCalibration(grid), oc.paper.LogitPath(), 1e-8) for grid in (2, 8, 16)),
    *((FOUR, SimplexCalibration(grid), oc.paper.LogitPath(), 1e-8) for grid in (1, 3)),
    (oc.Binary(), SimplexCalibration(9), oc.paper.LogitPath(), 1e-8),
    (INTERVAL, SimplexCalibration(2), oc.paper.LogitPath(), 1e-8),
    *((space, payoff, oc.paper.LogitPath(), 2e-7) for space, payoff in SWAPS),
]
half_spaces = pytest.mark.parametrize("number", range(len(HALF_SPACES)))


def expert_at(space: Any, rng: np.random.Generator, t: int) -> Any:
    """None, one that is certain, or a random one."""
    if t % 5 == 0:
        return None
    if t % 5 == 1:
        return oc.Ensemble([3.0, 3.0]) if isinstance(space, OrderedSpace) else np.eye(space.cells)[t % space.cells]
    return some_expert(space, rng)


def check_claim(recal: oc.Forecaster, p: Any, tolerance: float) -> tuple[list[Any], Any]:
    """The certificate is the largest <S, payoff> over all outcomes, which is next to nothing."""
    ledger, found = recal.engine.ledger, candidates(recal)
    values, size, rounds = products(recal, found), float(np.abs(ledger.total).sum()), max(ledger.rounds, 1)
    assert values.max() <= rounds * (p.certificate.half_space + p.certificate.approximation) + 1e-9 * (1.0 + size)
    assert rounds * p.certificate.half_space <= tolerance * (1.0 + size)
    return found, values


@half_spaces
def test_no_outcome_beats_random_ledgers(number: int) -> None:
    space, payoff, oracle, tolerance = HALF_SPACES[number]
    recal, rng = oc.Forecaster(space, payoff, oracle=oracle), np.random.default_rng(number)
    recal.predict(x={"hour": 0})
    shapes = {6: lambda s, rng: np.cumsum(s), 7: lambda s, rng: np.sort(s), 8: lambda s, rng: np.sign(s)}
    total = recal.engine.ledger.total
    rounds = 20 if isinstance(oracle, oc.paper.LogitPath) else 60
    for t, s in enumerate(random_ledgers(total.size, rounds, number, shapes)):
        total[:] = s
        check_claim(recal, recal.predict(expert_at(space, rng, t), x={"hour": t % 3}), tolerance)


@half_spaces
def test_no_outcome_beats_grown_ledgers(number: int) -> None:
    """The adversary takes the outcome with the largest inner product, or the largest squared sum."""
    space, payoff, oracle, tolerance = HALF_SPACES[number]
    recal, rng = oc.Forecaster(space, payoff, oracle=oracle), np.random.default_rng(number)
    for t in range(20 if isinstance(oracle, oc.paper.LogitPath) else 40):
        p = recal.predict(expert_at(space, rng, t), x={"hour": t % 3})
        found, values = check_claim(recal, p, tolerance)
        assert p.certificate.holds
        hurts = values if t % 2 else squares_after(recal, found)
        recal.update(as_given(space, found[int(np.argmax(hurts))]))
    assert recal.guarantee.held == 1.0
    assert recal.guarantee.miscalibration <= recal.guarantee.promised


# --- states, options, the guarantee ---


def saved(recal: oc.Forecaster, payoff: Any, path: Path) -> oc.Forecaster:
    recal.save(path)
    return oc.Forecaster.load(path, payoff=payoff)


WAYS: dict[str, Callable[[oc.Forecaster, Any, Path], oc.Forecaster]] = {
    "saved": saved,
    "pickled": lambda recal, payoff, path: pickle.loads(pickle.dumps(recal)),
    "copied": lambda recal, payoff, path: copy.deepcopy(recal),
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[3]])
def test_guarantee_holds_against_the_worst_outcome(name: str) -> None:
    space, payoff, oracle, rounds = CASES[name]
    assert check_guarantee(payoff, space, oracle=oracle, rounds=rounds, held=1.0) == 1.0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_state_continues_bit_for_bit(name: str, way: str, tmp_path: Path) -> None:
    space, payoff, oracle, _ = CASES[name]
    rng = np.random.default_rng(5)
    recal = oc.Forecaster(space, payoff, oracle=oracle)
    for _ in range(6):
        recal.predict(some_expert(space, rng))
        recal.update(some_outcome(space, rng))
    recal.predict(some_expert(space, rng), id="late")
    twin = WAYS[way](recal, payoff, tmp_path / "state")
    expert, y = some_expert(space, rng), some_outcome(space, rng)
    masses = []
    for each in (recal, twin):
        each.update(y, id="late")
        masses.append(each.predict(expert).mass)
    np.testing.assert_array_equal(*masses)
    assert recal.guarantee == twin.guarantee


@pytest.mark.parametrize("name", CASES)
def test_options_come_back_from_plain_data(name: str) -> None:
    oracle = CASES[name][2]
    again = oracle_from_plain(oracle.to_plain())
    assert again.to_plain() == oracle.to_plain()
    if dataclasses.is_dataclass(oracle):
        assert again == oracle
