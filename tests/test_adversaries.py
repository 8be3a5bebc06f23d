"""Adversaries: each makes sense where it is listed, plays by the rules, and is really adverse."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import orcast as oc
from adversaries import (
    Adversary,
    AtBound,
    CellGreedy,
    Delaying,
    Drawn,
    Greedy,
    HardGreedy,
    LookAhead,
    RoundInputs,
    adversaries_on,
    run_rounds,
)
from orcast.engine.bound_payoff import NO_LEARNING, BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.engine.oracles import prior_for
from orcast.spaces import OrderedSpace, Space
from orcast.testing import candidates, squares_after, worst_outcome

SPACES: dict[str, Space] = {
    "interval": oc.Interval(0, 1, cells=24, tail_cells=3),
    "line": oc.Line(cells=24, tail_cells=3),
    "half line": oc.HalfLine(cells=24, tail_cells=3),
    "binary": oc.Binary(),
    "labels": oc.Labels(["a", "b", "c"]),
    "circle": oc.Circle(24, cells=8),
    "box": oc.Box([(0, 1), (0, 1)], cells=3),
}
OWN: dict[str, Callable[[], Adversary]] = {
    "look-ahead": LookAhead,
}
CASES = [(where, name) for where, space in SPACES.items() for name in (*adversaries_on(space), *OWN)]


def day(rng: np.random.Generator) -> dict[str, str]:
    return {"day": str(rng.choice(list("MTW")))}


def adversary_on(where: str, name: str) -> Adversary:
    return {**adversaries_on(SPACES[where]), **OWN}[name]()


class Raw:
    """An oracle that returns the expert's forecast."""

    temperature = 1.0

    def bind(self, bound_payoff: BoundPayoff, sizes: Any = None) -> DenseEngine:
        return DenseEngine(bound_payoff, prior_for(bound_payoff, 1.0, NO_LEARNING), self, sizes)

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        search.consider(np.log(np.maximum(setup.cell_grid.expert, 1e-12)), 1.0)

    def to_plain(self) -> dict[str, Any]:
        raise NotImplementedError


def expert_on(space: Space) -> Callable[[int], Any]:
    """A forecast that moves a little, away from the ends; where there are none it stays."""
    if isinstance(space, OrderedSpace):
        return lambda t: oc.Normal(0.5 + 0.2 * np.sin(t / 7), 0.1)
    mass = np.exp(1.5 * np.cos(2.0 * np.pi * np.arange(space.cells) / space.cells))
    return lambda t: mass / mass.sum()


def payoff_on(space: Space, **options: Any) -> Any:
    """Payoff on all quantiles, or on the frequency of each value."""
    if isinstance(space, OrderedSpace):
        return oc.QuantileCalibration(**options)
    return oc.Recipe(lambda y: np.eye(space.cells)[space.cell(space.outcome(y))], bound=2.0, **options)


def result(space: Space, adversary: Adversary, rounds: int, oracle: Any, **options: Any) -> oc.Forecaster:
    recal = oc.Forecaster(space, payoff_on(space, **options), oracle=oracle)
    for turn in run_rounds(recal, adversary, rounds, experts=expert_on(space), x=day, rng=np.random.default_rng(1)):
        recal.update(turn.y, id=turn.id)
    return recal


# --- adverse ---


@pytest.mark.parametrize(("where", "name"), CASES)
def test_each_is_much_worse_than_chance(where: str, name: str) -> None:
    """Against an unchanged expert."""
    space = SPACES[where]
    rounds = 25 if name == "look-ahead" else 60
    foul = result(space, adversary_on(where, name), rounds, Raw()).guarantee
    assert foul.miscalibration > 2.0 * by_chance(where, rounds)


@cache
def by_chance(where: str, rounds: int) -> float:
    return result(SPACES[where], Drawn(), rounds, Raw()).guarantee.miscalibration


def test_hard_indicators_can_be_attacked_smoothed_ones_cannot() -> None:
    adversary = HardGreedy()
    recal = result(SPACES["interval"], adversary, 100, oc.Committee())
    assert recal.guarantee.held == 1.0
    assert adversary.qce > 5.0 * recal.guarantee.parts["quantile"] ** 2


# --- by the rules ---


@pytest.mark.parametrize(("where", "name"), CASES)
def test_outcomes_are_those_of_the_space_and_nothing_else_changes(where: str, name: str) -> None:
    space = SPACES[where]
    recal = oc.Forecaster(space, payoff_on(space), oracle=oc.Committee())
    turns = 0
    adversary = adversary_on(where, name)
    if isinstance(adversary, Delaying):
        adversary.most = 3
    for turn in run_rounds(recal, adversary, 6, experts=expert_on(space), x=day, rng=np.random.default_rng(2)):
        before = {key: array.copy() for key, array in recal.engine.arrays().items()}
        space.outcome(turn.y)
        assert (
            adversary.outcome(
                recal,
                turn.forecast,
                np.random.default_rng(0),
                RoundInputs(turn.id, None, day(np.random.default_rng(0))),
            )
            is not None
        )
        assert all(np.array_equal(array, before[key]) for key, array in recal.engine.arrays().items())
        assert turn.seconds >= 0.0
        recal.update(turn.y, id=turn.id)
        turns += 1
    assert recal.pending == ()
    assert turns == 6 or (name == "delaying" and 3 <= turns < 6)


def test_late_outcomes_come_the_last_first_and_some_are_lost() -> None:
    recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Committee())
    adversary = Delaying(Greedy(), most=5, lost=0.3)
    ids = []
    for turn in run_rounds(recal, adversary, 20, experts=expert_on(recal.space), rng=np.random.default_rng(0)):
        ids.append(turn.id)
        recal.update(turn.y, id=turn.id)
    assert recal.guarantee.rounds == len(ids) < 20
    batches = [[i for i in ids if i // 5 == batch] for batch in range(4)]
    assert ids == [i for batch in batches for i in batch]
    assert all(batch == sorted(batch, reverse=True) for batch in batches)
    assert recal.guarantee.delay > 1.0


def test_nobody_leaves_the_numbers_that_there_are() -> None:
    """Without bounds, draws in the outer cells drive the window apart."""
    p = oc.Forecast([-np.inf, -1e100, 0.0], [-1e100, 0.0, 1e100], [0.4, 0.2, 0.4])
    for adversary in (CellGreedy(), AtBound("low", reach=1e3), HardGreedy()):
        recal = oc.Forecaster(oc.Line())
        assert abs(adversary.outcome(recal, p, np.random.default_rng(0))) <= 1e100


# --- the search for the worst ---


@pytest.mark.parametrize("where", SPACES)
def test_the_worst_is_the_worst_of_all_that_were_looked_at(where: str) -> None:
    """By brute force: each outcome is settled in a branch of its own."""
    space = SPACES[where]
    recal = oc.Forecaster(space, payoff_on(space), oracle=oc.Committee())
    for turn in run_rounds(recal, Greedy(points=2), 6, experts=expert_on(space), rng=np.random.default_rng(0)):
        found = candidates(recal, turn.id, 2)
        squares = []
        for y in found:
            with recal.rounds.branch():
                recal.update(y if isinstance(space, OrderedSpace) else space.value(space.cell(y)), id=turn.id)
                squares.append(recal.engine.ledger.square)
        assert squares_after(recal, found, turn.id) == pytest.approx(squares, rel=1e-9, abs=1e-12)
        y, square = worst_outcome(recal, turn.id, points=2)
        assert square == pytest.approx(max(squares))
        assert np.array_equal(turn.y, y)
        recal.update(turn.y, id=turn.id)
