"""Natures: each makes sense where it is listed, plays by the rules, and is really adverse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.engine.base import NO_LEARNING
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.dense.solver import DenseRound
from orcast.engine.selection import prior_for
from orcast.spaces import OrderedSpace, Space
from orcast.testing import check_all, check_guarantee, natures, worst_outcome
from orcast.testing.natures import Delaying, Drawn, Greedy, HardGreedy, LookAhead, Nature, natures_on, play

SPACES: dict[str, Space] = {
    "interval": oc.Interval(0, 1, cells=24, tail_cells=3),
    "line": oc.Line(cells=24, tail_cells=3),
    "half line": oc.HalfLine(cells=24, tail_cells=3),
    "binary": oc.Binary(),
    "labels": oc.Labels(["a", "b", "c"]),
    "circle": oc.Circle(24, cells=8),
    "box": oc.Box([(0, 1), (0, 1)], cells=3),
    "points": oc.Points([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]),
}
CASES = [
    (where, name)
    for where, space in SPACES.items()
    for name in natures_on(space, group_of=lambda x: x["day"], group="M")
]


def day(rng: np.random.Generator) -> dict[str, str]:
    return {"day": str(rng.choice(list("MTW")))}


def nature_on(where: str, name: str) -> Nature:
    return natures_on(SPACES[where], group_of=lambda x: x["day"], group="M")[name]()


class Raw:
    """An oracle that plays what the expert said."""

    temperature, remembers = 1.0, False

    def bind(self, bound_payoff: BoundPayoff, sizes: Any = None) -> DenseEngine:
        return DenseEngine(bound_payoff, prior_for(bound_payoff, 1.0, NO_LEARNING), self, sizes)

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        search.consider(np.log(np.maximum(setup.cell_grid.expert, 1e-12)), 1.0)

    def to_plain(self) -> dict[str, Any]:
        raise NotImplementedError


def expert_on(space: Space) -> Callable[[int], Any]:
    """A forecast that moves a little, away from the ends."""
    if isinstance(space, OrderedSpace):
        return lambda t: oc.Normal(0.5 + 0.2 * np.sin(t / 7), 0.1)
    k = np.arange(space.cells)

    def masses(t: int) -> Any:
        mass = np.exp(np.cos(2.0 * np.pi * (k / space.cells - t / 60.0)))
        return mass / mass.sum()

    return masses


def miscalibration(space: Space, payoff: Any, nature: Nature, rounds: int = 60) -> float:
    """Of an expert that is played as it is."""
    game = oc.Forecaster(space, payoff, oracle=Raw())
    for turn in play(game, nature, rounds, experts=expert_on(space), x=day, rng=np.random.default_rng(1)):
        game.update(turn.y, id=turn.id)
    return game.guarantee.miscalibration


@pytest.mark.parametrize(("where", "name"), CASES)
def test_each_is_much_worse_than_chance(where: str, name: str) -> None:
    space = SPACES[where]
    payoff = oc.QuantileCalibration() if isinstance(space, OrderedSpace) else oc.MomentMatching(1)
    if where == "binary":
        payoff = oc.BinaryCalibration(grid=5)
    elif where == "labels":
        payoff = oc.LabelCalibration(grid=5)
    if name == "by group":
        payoff = type(payoff)(context=oc.by("day", values="MTW"))
    fair = np.mean([miscalibration(space, payoff, Drawn(), 60) for _ in range(1)])
    assert miscalibration(space, payoff, nature_on(where, name)) > 2.0 * fair
