"""The paper's half-space value of what the default plays, against every outcome by brute force."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.payoffs import Payoff
from orcast.spaces import FiniteSpace
from orcast.testing import worst_outcome

HOURS = oc.by("hour", values=[0, 1])
LABELS = oc.Labels(["a", "b", "c"])

GAMES: dict[str, Callable[[], Any]] = {
    "default": lambda: oc.Recalibrator(oc.Interval(0, 1)),
    "one temperature": lambda: oc.Recalibrator(oc.Interval(0, 1), oracle=oc.Equilibrium()),
    "line": lambda: oc.Recalibrator(oc.Line()),
    "third moments": lambda: oc.Recalibrator(
        oc.Interval(-1, 3), oc.MomentMatching(3) + oc.NoRegret(oc.CRPS(), oc.MSE())
    ),
    "quantiles": lambda: oc.Recalibrator(oc.Interval(0, 1), oc.QuantileCalibration([0.1, 0.5, 0.9])),
    "groups": lambda: oc.Recalibrator(
        oc.Interval(0, 1), oc.QuantileCalibration([0.2, 0.7], context=HOURS) + oc.MomentMatching(2)
    ),
    "memory": lambda: oc.Recalibrator(oc.Interval(0, 1), memory=20),
    "thresholds": lambda: oc.Recalibrator(
        oc.Interval(0, 1), oc.payoffs.MarginalCalibration([0.3, 0.6]) + oc.NoRegret(oc.CRPS())
    ),
    "binary": lambda: oc.Recalibrator(oc.Binary()),
    "labels": lambda: oc.Recalibrator(LABELS),
    "circle": lambda: oc.Recalibrator(oc.Circle(24, cells=8)),
    "dense": lambda: oc.Recalibrator(oc.Interval(0, 1), oc.payoffs.ThresholdCalibration([0.3, 0.6], grid=4)),
    "plain regret": lambda: oc.Recalibrator(
        LABELS, oc.LabelCalibration(grid=4) + oc.NoRegret(oc.Brier(), unit="score")
    ),
}


def expert(space: Any, t: int) -> Any:
    rng = np.random.default_rng(t)
    if isinstance(space, oc.Binary):
        return float(rng.random())
    if isinstance(space, FiniteSpace):
        return rng.dirichlet(np.ones(space.cells))
    return oc.Normal(0.5 + 0.3 * np.sin(t / 5), 0.1)


def mean_owed(game: Any) -> np.ndarray:
    """The mean of the payoffs as an oracle sees it: discounted, with the positive part of what is one-sided."""
    ledger = game.engine.ledger
    total = np.where((ledger.layout.side_list == 0.0) | (ledger.total > 0.0), ledger.total, 0.0)
    weight = max(float(ledger.account[6]), 1.0)
    return ledger.discount * total / weight


def whole_payoff(game: Any, y: Any) -> np.ndarray:
    """The payoff of an outcome in the ledger's own coordinates, part by part and group by group."""
    engine = game.engine
    record = game.rounds.find(None).record
    core, context, layout = engine.payoff(record, y), engine.context_of(record), engine.ledger.layout
    rows = []
    for number, (_, size, groups, places, at, _) in enumerate(layout.part_table):
        own = layout.scales[number] * core[layout.place_list[places : places + size]]
        rows.extend(context[at + group] * own for group in range(groups))
    return np.concatenate(rows)


def outcomes(game: Any, p: Any) -> list[Any]:
    space = game.space
    if isinstance(space, FiniteSpace):
        return [space.outcome(space.value(k)) for k in range(space.cells)]
    left, right = p.left.copy(), p.right.copy()
    left[0], right[-1] = max(left[0], right[0] - 1e3), min(right[-1], left[-1] + 1e3)
    # inner points too, because a value may be largest within a cell
    return sorted({float(y) for y in (left + (right - left) * np.linspace(0, 1, 9)[:, None]).ravel()})


def end_of(space: Any) -> Any:
    return space.value(space.cells - 1) if isinstance(space, FiniteSpace) else 0.95


@pytest.mark.parametrize("name", GAMES)
def test_half_space_is_the_largest_over_all_outcomes(name: str) -> None:
    game = GAMES[name]()
    later = []
    for t in range(10):
        p = game.predict(expert(game.space, t), x={"hour": t % 2})
        owed = mean_owed(game)
        worst = max(float(owed @ whole_payoff(game, y)) for y in outcomes(game, p))
        if t % 3:
            value = p.certificate.half_space
            assert value >= worst - 1e-9
            assert value == pytest.approx(worst, rel=0.02, abs=1e-3)
        else:
            later.append((p, worst))
        game.update(worst_outcome(game)[0] if t % 2 else end_of(game.space))
    # what is read later is what was true then
    for p, worst in later:
        assert p.certificate.half_space >= worst - 1e-9
        assert p.certificate.half_space == pytest.approx(worst, rel=0.02, abs=1e-3)
    assert any(worst > 1e-3 for _, worst in later), "the rule asks for less than the half-space"


def test_a_strict_oracle_wins_the_half_space_of_the_same_ledger() -> None:
    """Where the default's value is positive, the two-cell oracle's is not."""
    levels = oc.QuantileCalibration([0.25, 0.75])
    easy, strict = (
        oc.Recalibrator(oc.Interval(0, 1), levels),
        oc.Recalibrator(oc.Interval(0, 1), levels, oracle=oc.paper.TwoCells()),
    )
    for _ in range(20):
        p, q = (game.predict(oc.Normal(0.5, 0.1)) for game in (easy, strict))
        assert q.certificate.half_space <= 1e-9
        for game in (easy, strict):
            game.update(0.9)
    assert p.certificate.half_space > 0.01
    assert p.certificate.approximation is None


def test_reading_it_changes_nothing() -> None:
    games = [oc.Recalibrator(oc.Interval(0, 1)) for _ in range(2)]
    for t in range(12):
        first, second = (game.predict(oc.Normal(0.4, 0.1)) for game in games)
        value = first.certificate.half_space
        assert first.certificate.half_space == value
        np.testing.assert_array_equal(first.mass, second.mass)
        for game in games:
            game.update(0.1 * (t % 10))
    for name, array in games[0].engine.arrays().items():
        np.testing.assert_array_equal(array, games[1].engine.arrays()[name])


def test_copies_carry_the_number() -> None:
    game = oc.Recalibrator(oc.Interval(0, 1))
    for _ in range(8):
        game.predict(oc.Normal(0.4, 0.1))
        game.update(0.9)
    p = game.predict(oc.Normal(0.4, 0.1))
    copies = [pickle.loads(pickle.dumps(p)), copy.deepcopy(p), copy.copy(p)]
    assert all(each.certificate.half_space == p.certificate.half_space for each in copies)
    assert all(each.certificate == p.certificate for each in copies)
    assert "half_space=" in repr(p.certificate)
    with pytest.raises(AttributeError, match="half_spaces"):
        p.certificate.half_spaces  # noqa: B018
    with pytest.raises(AttributeError):
        p.certificate.half_space = 0.0


def test_a_first_look_at_a_payoff_of_unknown_size() -> None:
    payoff: Payoff = oc.Recipe(lambda y: [float(y), float(y) ** 2], lambda x, p: [1.0, p.mass[0]], bound=4.0)
    game = oc.Recalibrator(oc.Interval(0, 1), payoff)
    assert game.peek(oc.Normal(0.5, 0.1)).certificate.half_space == 0.0
