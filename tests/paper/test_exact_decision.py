"""Decision calibration and swap regret as a game: the path of forecasts, and the oracle, by brute force."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast.paper.exact import decision
from orcast.paper.exact.decision import DecisionGame
from orcast.paper.exact.prices import Prices, cheapest, traced
from orcast.payoffs.cell_payoffs import softmax
from orcast.testing import check_guarantee
from orcast.testing.consequences import candidates, products

Vector = NDArray[np.float64]

LETTERS = oc.Labels(list("abcde"))
WORTH = np.random.default_rng(5).random((4, 5))
SPACE = oc.Interval(0, 100)


def worth(action: int, y: str) -> float:
    return float(WORTH[action, "abcde".index(y)])


def commit(action: float, y: Any) -> Any:
    """A commitment to deliver: too much costs three times as much as too little."""
    return -np.where(y > action, 1.0, 3.0) * np.abs(action - y)


def squared(action: float, y: Any) -> Any:
    return -((action - y) ** 2)


SWAP = oc.payoffs.SwapRegret(range(4), worth)


def recals(count: int, seed: int) -> Iterator[tuple[Vector, Vector]]:
    """Utilities and cumulative payoffs: random, ordered with kinks, squared, of two values; sparse, equal, uneven."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        actions, cells = int(rng.integers(1, 7)), int(rng.choice([2, 3, 8, 20, 65]))
        y, a = np.linspace(0.0, 1.0, cells), np.linspace(0.0, 1.0, actions)[:, None]
        tables = [rng.random((actions, cells)), commit(a, y), squared(a, y), rng.integers(0, 2, (actions, cells))]
        table = np.asarray(tables[i % 4], dtype=float)
        table /= max(float(np.ptp(table, axis=1).max()), 1e-9)
        cumulative = rng.normal(size=(actions, actions)) * 10.0 ** rng.uniform(-5, 5)
        match (i // 4) % 6:
            case 1:
                cumulative[rng.random(actions) < 0.5] = 0.0
            case 2:
                cumulative = rng.integers(-1, 2, size=cumulative.shape).astype(float)
            case 3:
                cumulative *= 10.0 ** rng.uniform(-4, 4, size=(actions, 1))
            case 4:
                cumulative[:] = float(rng.normal())
            case 5:
                cumulative = np.abs(cumulative) * np.eye(actions)
            case _:
                pass
        yield table, cumulative


# --- the game with the paper's indicator ---


def test_without_sharing_the_indicator_there_may_be_no_forecast() -> None:
    """Matching pennies: whichever action is called best, some outcome has a positive product, ties included."""
    table, cumulative = np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]])
    worst = []
    for chance in np.linspace(0.0, 1.0, 101):
        p = np.array([1.0 - chance, chance])
        expected = table @ p
        best = np.flatnonzero(expected >= expected.max() - 1e-12)
        worst.append(min(float((cumulative[a] @ (expected[:, None] - table)).max()) for a in best))
    assert min(worst) >= 0.5 - 1e-12
    # shared evenly, as ties are, the indicator of both actions wins at 1/2
    mu, p = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    assert float(((mu @ cumulative) @ ((table @ p)[:, None] - table)).max()) <= 1e-12


# --- the path ---


def test_the_path_ends_at_a_forecast_that_wins() -> None:
    """As written: prices of the answer to p, and none is below the mean."""
    rng, lost = np.random.default_rng(2), 0
    for i, (table, cumulative) in enumerate(recals(300, 2)):
        sharpness = (50.0, 50.0, 1.0, 2000.0)[i % 4]
        deciders = [(sharpness * table, cumulative @ table)]
        if i % 5 == 0:
            second = rng.random((3, table.shape[1]))
            deciders.append((50.0 * second, rng.normal(size=(3, 3)) @ second))
        fixed = rng.normal(size=table.shape[1]) * float(np.abs(deciders[0][1]).max()) * (i % 3 == 0)
        prices = Prices(fixed, deciders)
        if prices.size == 0.0:
            continue
        p = traced(prices, np.full(table.shape[1], 1.0 / table.shape[1]))
        assert p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0)
        n = fixed + sum(softmax(stretched @ p) @ payoffs for stretched, payoffs in deciders)
        lost += float(n @ p - n.min()) > 10.0 * prices.tolerance
    assert lost <= 3  # all with a sharpness of 2000


# --- decision calibration alone ---


def test_prices_that_do_not_depend_on_the_forecast_are_paid_in_the_cheapest_cells() -> None:
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(cheapest(np.array([1.0, 0.0, 2.0, 0.0]), prior), [0.0, 1 / 3, 0.0, 2 / 3])
    np.testing.assert_allclose(cheapest(np.zeros(4), prior), prior)
    np.testing.assert_allclose(
        cheapest(np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.5, 0.5, 0.0])), [0.5, 0, 0, 0.5]
    )


# --- the oracle ---


def test_without_debts_the_expert_is_result_as_it_is() -> None:
    recal = oc.Forecaster(LETTERS, oc.payoffs.SwapRegret(range(4), worth), oracle=DecisionGame())
    expert = [0.1, 0.2, 0.4, 0.2, 0.1]
    np.testing.assert_allclose(recal.predict(expert).mass, expert, atol=1e-3)


# --- when the path is lost ---


def test_dense_equilibrium_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "traced", lambda prices, prior: prior)
    check_guarantee(SWAP, LETTERS, oracle=DecisionGame(), rounds=40, held=0.95)


def test_what_is_said_is_measured_even_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "traced", lambda prices, prior: prior)
    recal = oc.Forecaster(LETTERS, SWAP, oracle=DecisionGame())
    recal.engine.ledger.total[:] = 0.5 * np.random.default_rng(0).normal(size=16)
    p = recal.predict()
    values = products(recal, candidates(recal))
    assert p.certificate.half_space == pytest.approx(float(values.max()))
    assert p.certificate.half_space > 1e-3


# --- at the edge ---


def test_what_it_cannot_run_rounds_is_refused() -> None:
    for space, payoff in (
        (LETTERS, oc.LabelCalibration()),
        (LETTERS, oc.payoffs.SwapRegret(range(4), worth) + oc.NoRegret(oc.Brier())),
        (SPACE, oc.QuantileCalibration()),
    ):
        with pytest.raises(TypeError, match=SENTENCE):
            oc.Forecaster(space, payoff, oracle=DecisionGame())
