"""All exact oracles: the guarantee against an adversary that sees each forecast, states, and plain options."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from contract import some_outcome
from orcast.payoffs.levels import LevelCalibration
from orcast.payoffs.triangulated import MomentBasedCalibration, SimplexCalibration
from orcast.persistence import oracle_from_plain
from orcast.testing import check_guarantee
from orcast.testing.checks import some_expert

LABELS = oc.Labels(["home", "draw", "away"])
INTERVAL = oc.Interval(-2, 10, cells=24, tail_cells=3)
ACTIONS = [0.0, 3.0, 8.0]


def worth(action: float, y: float) -> float:
    return -abs(action - y)


# space, payoff, oracle, and the rounds of a check
CASES: dict[str, tuple[Any, Any, Any, int]] = {
    "binary": (oc.Binary(), oc.BinaryCalibration(5) + oc.NoRegret(oc.Brier()), oc.paper.BinaryRoot(1e-10), 200),
    "quantile": (
        INTERVAL,
        oc.QuantileCalibration([0.1, 0.4, 0.8]) + oc.IntervalCalibration(0.8),
        oc.paper.TwoCells(),
        120,
    ),
    "level": (INTERVAL, LevelCalibration(0.9, grid=6), oc.paper.ConformalLevel(0.9), 100),
    "two grids": (INTERVAL, LevelCalibration(0.5) + LevelCalibration(0.5, grid=7), oc.paper.ConformalLevel(0.5), 60),
    "moments": (INTERVAL, MomentBasedCalibration(8), oc.paper.MomentHull(), 80),
    "moments drawn": (INTERVAL, MomentBasedCalibration(4), oc.paper.MomentHull(randomised=True, seed=3), 0),
    "simplex": (LABELS, SimplexCalibration(), oc.paper.SimplexGrid(), 80),
    "simplex drawn": (LABELS, SimplexCalibration(3), oc.paper.SimplexGrid(randomised=True, seed=3), 0),
    "bins": (INTERVAL, SimplexCalibration(4, bins=[1.0, 6.0]), oc.paper.SimplexGrid(), 60),
    "decisions": (
        INTERVAL,
        oc.payoffs.SwapRegret(ACTIONS, worth) + oc.payoffs.DecisionCalibration(ACTIONS, worth),
        oc.paper.DecisionGame(),
        20,
    ),
}


def saved(game: oc.Forecaster, payoff: Any, path: Path) -> oc.Forecaster:
    game.save(path)
    return oc.Forecaster.load(path, payoff=payoff)


WAYS: dict[str, Callable[[oc.Forecaster, Any, Path], oc.Forecaster]] = {
    "saved": saved,
    "pickled": lambda game, payoff, path: pickle.loads(pickle.dumps(game)),
    "copied": lambda game, payoff, path: copy.deepcopy(game),
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[3]])
def test_guarantee_holds_against_the_worst_outcome(name: str) -> None:
    space, payoff, oracle, rounds = CASES[name]
    assert check_guarantee(payoff, space, oracle=oracle, rounds=rounds, held=1.0) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[3]])
def test_guarantee_holds_for_long(name: str) -> None:
    space, payoff, oracle, rounds = CASES[name]
    check_guarantee(payoff, space, oracle=oracle, rounds=2 * rounds, held=1.0, seed=1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_state_continues_bit_for_bit(name: str, way: str, tmp_path: Path) -> None:
    space, payoff, oracle, _ = CASES[name]
    rng = np.random.default_rng(5)
    game = oc.Forecaster(space, payoff, oracle=oracle)
    for _ in range(6):
        game.predict(some_expert(space, rng))
        game.update(some_outcome(space, rng))
    game.predict(some_expert(space, rng), id="late")
    twin = WAYS[way](game, payoff, tmp_path / "state")
    expert, y = some_expert(space, rng), some_outcome(space, rng)
    masses = []
    for each in (game, twin):
        each.update(y, id="late")
        masses.append(each.predict(expert).mass)
    np.testing.assert_array_equal(*masses)
    assert game.guarantee == twin.guarantee


@pytest.mark.parametrize("name", CASES)
def test_options_come_back_from_plain_data(name: str) -> None:
    oracle = CASES[name][2]
    again = oracle_from_plain(oracle.to_plain())
    assert again.to_plain() == oracle.to_plain()
    if dataclasses.is_dataclass(oracle):
        assert again == oracle
