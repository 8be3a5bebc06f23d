"""The logit path of decision, moment and simplex calibration: it ends at a solution, by brute force."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from adversaries import products
from helpers import SENTENCE
from orcast.paper import exact as path
from orcast.paper.exact import Game, LogitPath, followed
from orcast.payoffs import MomentBasedCalibration, SimplexCalibration
from orcast.payoffs.cell_payoffs import AnswerCellPayoff, ExplicitCellPayoff, Witness, softmax
from orcast.testing import candidates, check_guarantee

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
        cells = table.shape[1]
        tables = [(sharpness, table, cumulative)]
        if i % 5 == 0:
            tables.append((50.0, rng.random((3, cells)), rng.normal(size=(3, 3))))
        fixed = rng.normal(size=cells) * float(np.abs(cumulative).max()) * (i % 3 == 0)
        answers = [AnswerCellPayoff(Witness.constant(t), sharp * t) for sharp, t, _ in tables]
        explicit = ExplicitCellPayoff(Witness.constant(fixed[None, :]))
        game = Game([*answers, explicit], [*(s.ravel() for *_, s in tables), np.ones(1)])
        if game.size <= 1.0:
            continue
        p = followed(game, np.full(cells, 1.0 / cells))
        assert p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0)
        n = fixed + sum(softmax(sharp * t @ p) @ s @ t for sharp, t, s in tables)
        assert game.worst(p) == pytest.approx(float(n @ p - n.min()), rel=1e-6, abs=1e-9 * game.size)
        lost += game.worst(p) > 10.0 * game.tolerance
    assert lost <= 1


@pytest.mark.parametrize(
    ("space", "payoff"),
    [
        *((oc.Interval(-2, 10, cells=24, tail_cells=3), MomentBasedCalibration(grid)) for grid in (3, 8)),
        (oc.Labels(list("abcd")), SimplexCalibration(3)),
        (oc.Interval(-2, 10, cells=24, tail_cells=3), SimplexCalibration(2)),
    ],
    ids=repr,
)
def test_it_passes_the_kinks_of_triangulations(space: Any, payoff: Any) -> None:
    """Small whole numbers make many systems singular, and the path turns back at edges of the mesh."""
    recal, rng = oc.Forecaster(space, payoff, oracle=LogitPath()), np.random.default_rng(0)
    total = recal.engine.ledger.total
    for _ in range(25):
        total[:] = rng.integers(-2, 3, size=total.size)
        assert recal.predict().certificate.half_space <= 1e-7


@pytest.mark.parametrize(
    ("space", "payoff"),
    [
        (LETTERS, SimplexCalibration(2) + SimplexCalibration(2, context=oc.by("hour", values=range(2)))),
        (SPACE, MomentBasedCalibration(4) + MomentBasedCalibration(3, context=oc.by("hour", values=range(2)))),
    ],
    ids=["simplex", "moments"],
)
def test_groups_and_sums_of_several_grids(space: Any, payoff: Any) -> None:
    def hour(rng: np.random.Generator) -> dict[str, int]:
        return {"hour": int(rng.integers(2))}

    check_guarantee(payoff, space, oracle=LogitPath(), x=hour, rounds=20, held=1.0)


# --- the oracle ---


@pytest.mark.parametrize("payoff", [SWAP, SimplexCalibration(2)], ids=repr)
def test_without_debts_the_expert_is_result_as_it_is(payoff: Any) -> None:
    expert = [0.1, 0.2, 0.4, 0.2, 0.1]
    p = oc.Forecaster(LETTERS, payoff, oracle=LogitPath()).predict(expert)
    np.testing.assert_allclose(p.mass, expert, atol=1e-3)


def test_the_fixed_point_of_the_paper_need_not_exist() -> None:
    """Owed (1, 0, 0) everywhere, c vanishes nowhere; the solutions are the forecasts without the first label."""
    recal = oc.Forecaster(oc.Labels(range(3)), SimplexCalibration(4), oracle=LogitPath())
    recal.engine.ledger.total[:] = np.tile([1.0, 0.0, 0.0], (15, 1)).ravel()
    p = np.asarray(recal.predict([0.2, 0.3, 0.5]).mass)
    # of these, the one to which the expert draws
    np.testing.assert_allclose(p, [0.0, 0.375, 0.625], atol=1e-3)


def test_dense_equilibrium_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "followed", lambda game, prior: prior)
    check_guarantee(SWAP, LETTERS, oracle=LogitPath(), rounds=40, held=0.95)


def test_what_is_said_is_measured_even_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "followed", lambda game, prior: prior)
    recal = oc.Forecaster(LETTERS, SWAP, oracle=LogitPath())
    recal.engine.ledger.total[:] = 0.5 * np.random.default_rng(0).normal(size=16)
    p = recal.predict()
    values = products(recal, candidates(recal))
    assert p.certificate.half_space == pytest.approx(float(values.max()))
    assert p.certificate.half_space > 1e-3


@pytest.mark.parametrize("other", [oc.LabelCalibration(), oc.NoRegret(oc.Brier())], ids=repr)
def test_other_payoffs_are_refused(other: Any) -> None:
    for payoff in (other, SWAP + other):
        with pytest.raises(TypeError, match=SENTENCE):
            oc.Forecaster(LETTERS, payoff, oracle=LogitPath())
