"""Adversaries: each makes sense where it is listed, plays by the rules, and is really adverse."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import orcast as oc
from adversaries import ByGroup, Drawn, LookAhead
from orcast.engine.base import NO_LEARNING
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.engine.selection import prior_for
from orcast.spaces import OrderedSpace, Space
from orcast.testing import adversaries, check_all, check_guarantee, consequences, worst_outcome
from orcast.testing.adversaries import Adversary, Delaying, Greedy, HardGreedy, adversaries_on, play

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
OWN: dict[str, Callable[[], Adversary]] = {
    "look-ahead": LookAhead,
    "by group": lambda: ByGroup(lambda x: x["day"], {"M": Greedy()}),
}
CASES = [(where, name) for where, space in SPACES.items() for name in (*adversaries_on(space), *OWN)]


def day(rng: np.random.Generator) -> dict[str, str]:
    return {"day": str(rng.choice(list("MTW")))}


def adversary_on(where: str, name: str) -> Adversary:
    return {**adversaries_on(SPACES[where]), **OWN}[name]()


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
    """A forecast that moves a little, away from the ends; where there are none it stays."""
    if isinstance(space, OrderedSpace):
        return lambda t: oc.Normal(0.5 + 0.2 * np.sin(t / 7), 0.1)
    mass = np.exp(1.5 * np.cos(2.0 * np.pi * np.arange(space.cells) / space.cells))
    return lambda t: mass / mass.sum()


def payoff_on(space: Space, **options: Any) -> Any:
    """One that looks at everything: quantiles, or how often each value comes."""
    if isinstance(space, OrderedSpace):
        return oc.QuantileCalibration(**options)
    return oc.Recipe(lambda y: np.eye(space.cells)[space.cell(space.outcome(y))], bound=2.0, **options)


def played(space: Space, adversary: Adversary, rounds: int, oracle: Any, **options: Any) -> oc.Forecaster:
    game = oc.Forecaster(space, payoff_on(space, **options), oracle=oracle)
    for turn in play(game, adversary, rounds, experts=expert_on(space), x=day, rng=np.random.default_rng(1)):
        game.update(turn.y, id=turn.id)
    return game


# --- adverse ---


@pytest.mark.parametrize(("where", "name"), [case for case in CASES if case[1] != "by group"])
def test_each_is_much_worse_than_chance(where: str, name: str) -> None:
    """Against an expert that is played as it is."""
    space = SPACES[where]
    rounds = 25 if name == "look-ahead" else 60
    foul = played(space, adversary_on(where, name), rounds, Raw()).guarantee
    assert foul.miscalibration > 2.0 * by_chance(where, rounds)


@cache
def by_chance(where: str, rounds: int) -> float:
    return played(SPACES[where], Drawn(), rounds, Raw()).guarantee.miscalibration


@pytest.mark.parametrize("where", SPACES)
def test_one_group_alone_is_attacked(where: str) -> None:
    space = SPACES[where]
    game = played(space, adversary_on(where, "by group"), 90, Raw(), context=oc.by("day", values="MTW"))
    (groups,) = game.guarantee.groups.values()
    sizes = {name[-1:]: group.miscalibration for name, group in groups.items()}
    assert sizes.pop("M") > 2.0 * max(sizes.values())


def test_hard_indicators_can_be_attacked_smoothed_ones_cannot() -> None:
    adversary = HardGreedy()
    game = played(SPACES["interval"], adversary, 100, oc.Committee())
    assert game.guarantee.held == 1.0
    assert adversary.qce > 5.0 * game.guarantee.parts["quantile"] ** 2


def test_counted_is_what_people_count() -> None:
    """Her sums are those of 1{y <= q}, outcome by outcome."""
    space, rng, adversary = SPACES["interval"], np.random.default_rng(0), HardGreedy([0.1, 0.5, 0.8])
    game, counted = oc.Forecaster(space, oc.QuantileCalibration()), np.zeros(3)
    for turn in play(game, adversary, 40, experts=expert_on(space), rng=rng):
        counted += (turn.y <= turn.forecast.quantile([0.1, 0.5, 0.8])) - np.array([0.1, 0.5, 0.8])
        game.update(turn.y, id=turn.id)
    assert adversary.total == pytest.approx(counted, abs=1e-9)
    assert adversary.qce == pytest.approx(float(np.sum((counted / 40) ** 2)))


# --- by the rules ---


@pytest.mark.parametrize(("where", "name"), CASES)
def test_outcomes_are_those_of_the_space_and_nothing_else_changes(where: str, name: str) -> None:
    space = SPACES[where]
    game = oc.Forecaster(space, payoff_on(space), oracle=oc.Committee())
    turns = 0
    adversary = adversary_on(where, name)
    if isinstance(adversary, Delaying):
        adversary.most = 3
    for turn in play(game, adversary, 6, experts=expert_on(space), x=day, rng=np.random.default_rng(2)):
        before = {key: array.copy() for key, array in game.engine.arrays().items()}
        space.outcome(turn.y)
        assert (
            adversary.outcome(
                game,
                turn.forecast,
                np.random.default_rng(0),
                adversaries.RoundInputs(turn.id, None, day(np.random.default_rng(0))),
            )
            is not None
        )
        assert all(np.array_equal(array, before[key]) for key, array in game.engine.arrays().items())
        assert turn.seconds >= 0.0
        game.update(turn.y, id=turn.id)
        turns += 1
    assert game.pending == ()
    assert turns == 6 or (name == "delaying" and 3 <= turns < 6)


@pytest.mark.parametrize("name", adversaries_on(SPACES["interval"]))
def test_the_same_generator_gives_the_same_game(name: str) -> None:
    outcomes = []
    for _ in range(2):
        game = oc.Forecaster(SPACES["interval"], oracle=oc.Equilibrium())
        turns = play(
            game, adversary_on("interval", name), 12, experts=expert_on(game.space), rng=np.random.default_rng(3)
        )
        outcomes.append([(turn.y, game.update(turn.y, id=turn.id))[0] for turn in turns])
    assert outcomes[0] == outcomes[1]


def test_confined_means_confined() -> None:
    game = oc.Forecaster(oc.Interval(0, 1), oracle=oc.Committee())
    adversary = adversaries_on(game.space)["confined"]()
    for turn in play(game, adversary, 30, experts=expert_on(game.space), rng=np.random.default_rng(0)):
        assert 0.4 <= turn.y <= 0.6
        game.update(turn.y, id=turn.id)


def test_late_outcomes_come_the_last_first_and_some_are_lost() -> None:
    game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Committee())
    adversary = Delaying(Greedy(), most=5, lost=0.3)
    ids = []
    for turn in play(game, adversary, 20, experts=expert_on(game.space), rng=np.random.default_rng(0)):
        ids.append(turn.id)
        game.update(turn.y, id=turn.id)
    assert game.guarantee.rounds == len(ids) < 20
    batches = [[i for i in ids if i // 5 == batch] for batch in range(4)]
    assert ids == [i for batch in batches for i in batch]
    assert all(batch == sorted(batch, reverse=True) for batch in batches)
    assert game.guarantee.delay > 1.0


def test_nobody_leaves_the_numbers_that_there_are() -> None:
    """Without bounds, draws in the outer cells drive the window apart."""
    p = oc.Forecast([None, -1e100, 0.0], [-1e100, 0.0, 1e100], [0.4, 0.2, 0.4])
    for adversary in (adversaries.CellGreedy(), adversaries.AtBound("low", reach=1e3), HardGreedy()):
        game = oc.Forecaster(oc.Line())
        assert abs(adversary.outcome(game, p, np.random.default_rng(0))) <= 1e100


# --- the search for the worst ---


@pytest.mark.parametrize("where", SPACES)
def test_the_worst_is_the_worst_of_all_that_were_looked_at(where: str) -> None:
    """By brute force: each outcome is settled in a branch of its own."""
    space = SPACES[where]
    game = oc.Forecaster(space, payoff_on(space), oracle=oc.Committee())
    for turn in play(game, Greedy(points=2), 6, experts=expert_on(space), rng=np.random.default_rng(0)):
        found = consequences.candidates(game, turn.id, 2)
        squares = []
        for y in found:
            with game.rounds.branch():
                game.update(y if isinstance(space, OrderedSpace) else space.value(space.cell(y)), id=turn.id)
                squares.append(game.engine.ledger.square)
        assert consequences.squares_after(game, found, turn.id) == pytest.approx(squares, rel=1e-9, abs=1e-12)
        y, square = worst_outcome(game, turn.id, points=2)
        assert square == pytest.approx(max(squares))
        assert np.array_equal(turn.y, y)
        game.update(turn.y, id=turn.id)


@pytest.mark.parametrize("where", ["interval", "line", "half line"])
def test_leaving_out_cells_by_their_certificate_changes_nothing(where: str) -> None:
    space = SPACES[where]
    payoff = oc.payoffs.ThresholdCalibration([0.3, 0.6]) + oc.NoRegret(oc.CRPS())
    game = oc.Forecaster(space, payoff, oracle=oc.Committee())
    for turn in play(game, Greedy(), 12, experts=expert_on(space), rng=np.random.default_rng(0)):
        slow, fast = worst_outcome(game, turn.id), worst_outcome(game, turn.id, thorough=False)
        assert fast[1] == pytest.approx(slow[1], rel=1e-9)
        game.update(turn.y, id=turn.id)


def test_inner_products_are_half_of_what_the_square_grows_by() -> None:
    game = played(SPACES["interval"], Greedy(), 10, oc.Committee())
    game.predict(oc.Normal(0.5, 0.1))
    found = consequences.candidates(game)
    tiny = game.engine.ledger.total.copy()
    products = consequences.products(game, found)
    game.engine.ledger.total[:] = 1e6 * tiny  # the squares of the payoffs no longer count
    grown = consequences.squares_after(game, found) - game.engine.ledger.square
    assert grown / 2e6 == pytest.approx(products, rel=1e-4, abs=1e-4)


def test_look_ahead_is_no_worse_than_greedy_after_two_rounds() -> None:
    """After its outcome the worst of the next round is at least what follows the greedy one."""
    game = played(SPACES["interval"], Greedy(), 20, oc.Equilibrium())
    expert = oc.Normal(0.5, 0.1)
    p = game.predict(expert)
    rng, inputs = np.random.default_rng(0), adversaries.RoundInputs(expert=expert)

    def next_worst(y: float) -> float:
        with game.rounds.branch():
            game.update(y)
            game.predict(expert)
            return worst_outcome(game)[1]

    assert next_worst(LookAhead().outcome(game, p, rng, inputs)) >= next_worst(Greedy().outcome(game, p, rng, inputs))


# --- checks ---


def test_checks_take_an_adversary() -> None:
    assert check_guarantee(oc.QuantileCalibration(), SPACES["interval"], rounds=20, adversary=HardGreedy()) == 1.0
    check_guarantee(oc.BinaryCalibration(), oc.Binary(), rounds=40, adversary=Delaying(Greedy(), most=5, lost=0.2))


def test_all_checks_meet_all_adversaries(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[str] = []
    for kind in ("HardGreedy", "AtBound", "Delaying", "Periodic", "BesideQuantile", "CellGreedy"):
        real = getattr(adversaries, kind).outcome

        def outcome(self: Any, *given: Any, real: Any = real, kind: str = kind) -> Any:
            met.append(kind)
            return real(self, *given)

        monkeypatch.setattr(getattr(adversaries, kind), "outcome", outcome)
    check_all(oc.QuantileCalibration([0.2, 0.8]), SPACES["interval"], rounds=10)
    assert set(met) == {"HardGreedy", "AtBound", "Delaying", "Periodic", "BesideQuantile", "CellGreedy"}
