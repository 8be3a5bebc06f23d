"""Decision calibration and swap regret as a game: the path of forecasts, and the oracle, by brute force."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from definitions import closed
from helpers import SENTENCE
from orcast.ledger import PartColumn
from orcast.paper.exact import decision
from orcast.paper.exact.decision import DecisionGame
from orcast.paper.exact.prices import APART, STRIDES, Prices, cheapest, trace
from orcast.payoffs import Payoff
from orcast.payoffs.cell_payoffs import NODES, softmax
from orcast.testing import check_guarantee

Vector = NDArray[np.float64]

LETTERS = oc.Labels(list("abcde"))
WORTH = np.random.default_rng(5).random((4, 5))
SPACE = oc.Interval(0, 100)


def worth(action: int, y: str) -> float:
    return float(WORTH[action, "abcde".index(y)])


def other(action: int, y: str) -> float:
    return float(WORTH[3 - action, 4 - "abcde".index(y)])


def commit(action: float, y: Any) -> Any:
    """A commitment to deliver: too much costs three times as much as too little."""
    return -np.where(y > action, 1.0, 3.0) * np.abs(action - y)


def squared(action: float, y: Any) -> Any:
    return -((action - y) ** 2)


PAYOFFS: dict[str, tuple[Any, Payoff]] = {
    "decision": (LETTERS, oc.payoffs.DecisionCalibration(range(4), worth)),
    "swap": (LETTERS, oc.payoffs.SwapRegret(range(4), worth)),
    "sharp swap": (LETTERS, oc.payoffs.SwapRegret(range(4), worth, sharpness=2000.0)),
    "dull swap": (LETTERS, oc.payoffs.SwapRegret(range(4), worth, sharpness=2.0)),
    "both": (LETTERS, oc.payoffs.SwapRegret(range(4), worth) + oc.payoffs.DecisionCalibration(range(2), other)),
    "two who decide": (
        LETTERS,
        oc.payoffs.SwapRegret(range(4), worth, weight=2.0) + oc.payoffs.SwapRegret(range(3), other),
    ),
    "umbrella": (oc.Binary(), oc.payoffs.SwapRegret(["take", "leave"], lambda a, y: -0.2 if a == "take" else -1.0 * y)),
    "circle": (oc.Circle(24, cells=12), oc.payoffs.SwapRegret([0, 8, 16], lambda a, y: np.cos((a - y) * np.pi / 12))),
    "interval": (SPACE, oc.payoffs.SwapRegret([20, 40, 60, 80], commit)),
    "kinks off the grid": (SPACE, oc.payoffs.SwapRegret([17.3, 44.4, 71.9], commit)),
    "squares": (SPACE, oc.payoffs.SwapRegret([20, 50, 80], squared) + oc.payoffs.DecisionCalibration([30, 70], commit)),
    "decision on an interval": (SPACE, oc.payoffs.DecisionCalibration([20, 40, 60, 80], commit)),
    "line": (oc.Line(), oc.payoffs.SwapRegret([-1.0, 1.0], lambda a, y: a * np.tanh(y), utility_range=2.0)),
}


def games(count: int, seed: int) -> Iterator[tuple[Vector, Vector]]:
    """Utilities and what is owed on them: random, ordered with kinks, squared, of two values; sparse, equal, uneven."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        actions, cells = int(rng.integers(1, 7)), int(rng.choice([2, 3, 8, 20, 65]))
        y, a = np.linspace(0.0, 1.0, cells), np.linspace(0.0, 1.0, actions)[:, None]
        tables = [rng.random((actions, cells)), commit(a, y), squared(a, y), rng.integers(0, 2, (actions, cells))]
        table = np.asarray(tables[i % 4], dtype=float)
        table /= max(float(np.ptp(table, axis=1).max()), 1e-9)
        owed = rng.normal(size=(actions, actions)) * 10.0 ** rng.uniform(-5, 5)
        match (i // 4) % 6:
            case 1:
                owed[rng.random(actions) < 0.5] = 0.0
            case 2:
                owed = rng.integers(-1, 2, size=owed.shape).astype(float)
            case 3:
                owed *= 10.0 ** rng.uniform(-4, 4, size=(actions, 1))
            case 4:
                owed[:] = float(rng.normal())
            case 5:
                owed = np.abs(owed) * np.eye(actions)
            case _:
                pass
        yield table, owed


# --- the game with the paper's indicator ---


def test_without_sharing_the_indicator_there_may_be_no_forecast() -> None:
    """Matching pennies: whichever action is called best, some outcome has a positive product, ties included."""
    table, owed = np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]])
    worst = []
    for chance in np.linspace(0.0, 1.0, 101):
        p = np.array([1.0 - chance, chance])
        expected = table @ p
        best = np.flatnonzero(expected >= expected.max() - 1e-12)
        worst.append(min(float((owed[a] @ (expected[:, None] - table)).max()) for a in best))
    assert min(worst) >= 0.5 - 1e-12
    # shared evenly, as ties are, the indicator of both actions wins at 1/2
    mu, p = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    assert float(((mu @ owed) @ ((table @ p)[:, None] - table)).max()) <= 1e-12


# --- the path ---


def on_path(prices: Prices) -> tuple[Vector, int]:
    """The forecast at its end, and how often it had to be begun anew."""
    for turn, stride in enumerate(STRIDES):
        found = trace(prices.set_apart(np.full(prices.fixed.size, 1.0 / prices.fixed.size), turn), stride)
        if found is not None:
            return found, turn
    raise AssertionError("the path was lost")


def check_path(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    turns = []
    for i, (table, owed) in enumerate(games(count, seed)):
        sharpness = (50.0, 50.0, 1.0, 1e4)[i % 4]
        deciders = [(sharpness * table, owed @ table)]
        if i % 5 == 0:
            second = rng.random((3, table.shape[1]))
            deciders.append((50.0 * second, rng.normal(size=(3, 3)) @ second))
        fixed = rng.normal(size=table.shape[1]) * float(np.abs(deciders[0][1]).max()) * (i % 3 == 0)
        prices = Prices(fixed, deciders)
        if prices.size == 0.0:
            continue
        p, turn = on_path(prices)
        turns.append(turn)
        assert p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0)
        # as written: prices of the answer to p, and none is below the mean
        n = fixed + sum(softmax(stretched @ p) @ debts for stretched, debts in deciders)
        assert float(n @ p - n.min()) <= 2.0 * prices.tolerance
        assert (p > 0.0).sum() <= 1 + sum(len(stretched) - 1 for stretched, _ in deciders)
    assert np.mean(np.array(turns) > 0) < 0.02


def test_the_path_ends_at_a_forecast_that_wins() -> None:
    check_path(300, 2)


# --- decision calibration alone ---


def test_prices_that_do_not_depend_on_the_forecast_are_paid_in_the_cheapest_cells() -> None:
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(cheapest(np.array([1.0, 0.0, 2.0, 0.0]), prior), [0.0, 1 / 3, 0.0, 2 / 3])
    np.testing.assert_allclose(cheapest(np.zeros(4), prior), prior)
    np.testing.assert_allclose(
        cheapest(np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.5, 0.5, 0.0])), [0.5, 0, 0, 0.5]
    )


# --- the oracle, by brute force ---


def outcomes_of(game: oc.Forecaster, p: Any) -> list[Any]:
    """Every label, or the ends, the middle and the nodes of every cell."""
    if not hasattr(p, "left"):
        return [game.space.outcome(game.space.value(k)) for k in range(game.space.cells)]  # type: ignore[attr-defined]
    left, right = closed(p)
    ys = left + np.concatenate(([0.0, 0.5], NODES))[:, None] * (right - left)
    far = [] if np.isfinite(p.right[-1]) else [-1e9, 1e9]
    return np.unique(np.append(ys, far)).tolist()


def products(game: oc.Forecaster, p: Any) -> tuple[list[Any], Vector, Vector]:
    """<S_+, payoff> of every outcome as it would be booked, and the squared norms of the payoffs."""
    record = game.rounds.pending[None].record
    ledger = game.engine.ledger
    scale = np.repeat(ledger.layout.scales, ledger.layout.part_table[:, PartColumn.SIZE])
    ys = outcomes_of(game, p)
    payoffs = np.array([scale * game.engine.payoff(record, y) for y in ys])
    return ys, payoffs @ ledger.total, np.einsum("ij,ij->i", payoffs, payoffs)


def check_said(game: oc.Forecaster, p: Any) -> tuple[list[Any], Vector, Vector]:
    """No outcome has a larger product than said, and on finite spaces that is next to nothing."""
    ys, values, squares = products(game, p)
    rounds = max(game.engine.ledger.rounds, 1)
    size = float(np.abs(game.engine.ledger.total).sum())
    said = p.certificate
    assert values.max() <= rounds * (said.half_space + said.approximation) + 1e-9 * (1.0 + size)
    assert rounds * said.half_space <= 20.0 * APART * size + 1e-12
    if not hasattr(p, "left"):
        assert said.approximation <= 1e-12 * (1.0 + size)
    return ys, values, squares


@pytest.mark.parametrize("name", PAYOFFS)
def test_no_outcome_beats_random_ledgers(name: str) -> None:
    space, payoff = PAYOFFS[name]
    rng = np.random.default_rng(0)
    game = oc.Forecaster(space, payoff, oracle=DecisionGame())
    ledger = game.engine.ledger
    for i in range(300 if name == "swap" else 40 if space is LETTERS else 6):
        ledger.total[:] = rng.normal(size=ledger.total.size) * 10.0 ** rng.uniform(-5, 5)
        match i % 6:
            case 1:
                ledger.total[rng.random(ledger.total.size) < 0.7] = 0.0
            case 2:
                ledger.total[1:] = 0.0
            case 3:
                ledger.total[:] = float(rng.normal())
            case 4:
                ledger.total[:] = 0.0
            case _:
                pass
        check_said(game, game.predict(oc.Normal(45, 20) if space is SPACE else None))


@pytest.mark.parametrize("name", PAYOFFS)
def test_no_outcome_beats_grown_ledgers(name: str) -> None:
    """Nature sees each forecast and takes the outcome with the largest product, or with the largest norm."""
    space, payoff = PAYOFFS[name]
    game = oc.Forecaster(space, payoff, oracle=DecisionGame())
    for t in range(200 if name in ("swap", "both") else 30 if space is LETTERS else 12):
        p = game.predict()
        ys, values, squares = check_said(game, p)
        assert p.certificate.holds
        y = ys[int((2.0 * values + (t % 2) * squares).argmax())]
        game.update(y if hasattr(p, "left") else space.value(space.cell(y)))
    assert game.guarantee.held == 1.0


def test_without_debts_the_expert_is_played_as_it_is() -> None:
    game = oc.Forecaster(LETTERS, oc.payoffs.SwapRegret(range(4), worth), oracle=DecisionGame())
    expert = [0.1, 0.2, 0.4, 0.2, 0.1]
    np.testing.assert_allclose(game.predict(expert).mass, expert, atol=1e-3)


# --- when the path is lost ---


def test_dense_equilibrium_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orcast.paper.exact.prices.trace", lambda prices, stride: None)
    space, payoff = PAYOFFS["swap"]
    check_guarantee(payoff, space, oracle=DecisionGame(), rounds=40, held=0.95)


def test_what_is_said_is_measured_even_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "traced", lambda prices, prior: prior)
    space, payoff = PAYOFFS["swap"]
    game = oc.Forecaster(space, payoff, oracle=DecisionGame())
    game.engine.ledger.total[:] = 0.5 * np.random.default_rng(0).normal(size=16)
    p = game.predict()
    _, values, _ = products(game, p)
    assert p.certificate.half_space == pytest.approx(float(values.max()))
    assert p.certificate.half_space > 1e-3


# --- at the edge ---


def test_what_it_cannot_play_is_refused() -> None:
    for space, payoff in (
        (LETTERS, oc.LabelCalibration()),
        (LETTERS, oc.payoffs.SwapRegret(range(4), worth) + oc.NoRegret(oc.Brier())),
        (SPACE, oc.QuantileCalibration()),
    ):
        with pytest.raises(TypeError, match=SENTENCE):
            oc.Forecaster(space, payoff, oracle=DecisionGame())
