"""The last layer on finite spaces against its definition: the equation of the equilibrium, and all outcomes in turn."""

from typing import Any

import numpy as np
import pytest
from definitions import Array

import orcast as oc
from orcast.engine.kernels import finite_game
from orcast.engine.kernels.finite_game import FiniteGame
from orcast.ledger import Account, CertificateField, squared_payoff
from orcast.testing.adversaries import adversaries_on, play

LABELS = oc.LabelCalibration(7) + oc.payoffs.Calibeating(5) + oc.NoRegret(oc.Brier())
PAYOFFS = {
    "binary": (oc.Binary(), None),
    "two labels": (oc.Labels(["a", "b"]), None),
    "labels": (
        oc.Labels(["a", "b", "c"]),
        oc.LabelCalibration(7) + oc.payoffs.Calibeating(5) + oc.NoRegret(oc.Brier()),
    ),
    "by hour": (oc.Labels(range(5)), oc.LabelCalibration(context=oc.by("hour", values=range(2)))),
}


def experts_on(space: Any, rng: np.random.Generator) -> dict[str, Any]:
    rows = rng.dirichlet(np.ones(space.cells), size=2)
    rows = rows[:, 1] if isinstance(space, oc.Binary) else rows
    return {"one": rows[0].tolist(), "other": rows[1].tolist() if rng.random() < 0.7 else None}


@pytest.mark.parametrize("name", PAYOFFS)
def test_certificate_is_the_worst_of_all_outcomes(name: str) -> None:
    space, payoff = PAYOFFS[name]
    recal = oc.Recalibrator(space, payoff)
    rng = np.random.default_rng(1)
    for t in range(30):
        recal.predict(experts=experts_on(space, rng), x={"hour": t % 2} if name == "by hour" else None)
        engine: Any = recal.engine
        record, ledger = recal.rounds.pending[None].record, engine.ledger
        sizes, squares = [], []
        for k in range(space.cells):
            after = oc.Recalibrator.__new__(oc.Recalibrator)
            after.__setstate__(recal.__getstate__())
            after.update(space.value(k))
            total = after.engine.ledger.total
            sizes.append(float(np.sum(np.where((ledger.layout.sides == 0) | (total > 0), total, 0.0) ** 2)))
            squares.append(squared_payoff(ledger.layout, engine.context_of(record), engine.payoff(record, k)))
        assert record.certificate[CertificateField.BOUND] == pytest.approx(max(squares))
        # one-sided sums below zero count as zero, so the certificate may be above what comes
        assert max(sizes) <= record.certificate[CertificateField.WORST] + 1e-9
        if engine.ledger.layout.sides.max() == 0.0:
            assert max(sizes) == pytest.approx(record.certificate[CertificateField.WORST])
        recal.update(space.value(int(rng.integers(space.cells))))


def game_of(cells: int, scale: float, seed: int, experts: int = 2) -> FiniteGame:
    rng = np.random.default_rng(seed)
    return FiniteGame(
        owed=scale * rng.normal(size=(15, cells)),
        first=0,
        fixed=scale * rng.normal(size=cells),
        fixed_size=np.ones(cells),
        hat_factor=0.5,
        owed_regret=scale * rng.normal(size=experts),
        regret_factor=1.0,
        experts=rng.dirichlet(np.ones(cells), size=experts),
        units=np.array([3.0, 0.0])[:experts],
        brier=1.0,
        prior=0.98 * rng.dirichlet(np.ones(cells)) + 0.02 / cells,
        odds=0.0,
    )


def levels(game: FiniteGame, kappa: float, p: Array, pulls: Array) -> Array:
    """kappa log(p / m) - v, the same in all cells at an equilibrium."""
    cells = [c for c in range(p.size) if p[c] > 1e-200]
    return np.array([finite_game.level_of(game, kappa, pulls, c, p[c]) for c in cells])


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("cells", [3, 10])
def test_equilibrium_solves_its_equation(cells: int, scale: float) -> None:
    solved = []
    for seed in range(6):
        game, p, pulls = game_of(cells, scale, seed), np.empty(cells), np.empty(2)
        finite_game.equilibrium(game, 2.0, 1.0, p, pulls)
        assert p.sum() == pytest.approx(1.0)
        solved.append(float(np.ptp(levels(game, 2.0, p, pulls))) < 1e-2)
    # two cells may jump at once, and the units of a regret may change with the forecast
    assert np.mean(solved) >= 0.8


@pytest.mark.parametrize("cells", [3, 6])
def test_bisection_finds_an_equilibrium_from_any_ledger(cells: int) -> None:
    found, kappa = [], 4.0
    for seed in range(6):
        game, p, pulls = game_of(cells, 5.0, seed, experts=0), np.empty(cells), np.empty(0)
        finite_game.balance(game, kappa, pulls, p)
        assert p.sum() == pytest.approx(1.0)
        found.append(float(np.ptp(levels(game, kappa, p, pulls))) < 1e-4)
    assert np.mean(found) >= 0.8


def test_root_is_the_nearest_where_one_newton_step_lands_on_it() -> None:
    """Where the pull is flat around the prior, rounding must not lead on to a root further away."""
    owed = np.zeros((15, 1))
    owed[11, 0], owed[10, 0] = 0.3, 1.8
    nothing = np.empty(0)
    for odds in np.log(0.76 / 0.24) + 1e-3 * np.arange(20):
        prior = np.array([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])
        game = FiniteGame(
            owed, 1, np.zeros(1), np.zeros(1), 1.0, nothing, 0.0, np.empty((0, 2)), nothing, 0.5, prior, float(odds)
        )
        q = finite_game.root(game, 7.0, 1.0, np.empty(2), nothing)
        assert np.log(q / (1 - q)) == pytest.approx(odds - 0.3 / 7.0, abs=1e-9)


@pytest.mark.parametrize("nature", ["greedy", "at a bound", "delaying"])
@pytest.mark.parametrize("name", ["two labels", "labels"])
def test_certificates_hold_against_adversaries(name: str, nature: str) -> None:
    space, payoff = PAYOFFS[name]
    game, rng = oc.Recalibrator(space, payoff), np.random.default_rng(5)
    rows = 0.98 * rng.dirichlet(np.full(space.cells, 0.7), size=120) + 0.02 / space.cells
    for turn in play(game, adversaries_on(space)[nature](), 120, experts=lambda t: rows[t].tolist(), rng=rng):
        game.update(turn.y, id=turn.id)
    assert game.guarantee.held == 1.0
    assert game.guarantee.miscalibration <= game.guarantee.promised


def test_a_whole_history_is_its_rounds_one_by_one() -> None:
    space = oc.Labels(["a", "b", "c"])
    rng = np.random.default_rng(2)
    rows, outcomes = rng.dirichlet(np.ones(3), size=25), rng.choice(["a", "b", "c"], size=25).tolist()
    whole, single = oc.Recalibrator(space), oc.Recalibrator(space)
    played = whole.run(rows.tolist(), outcomes)
    for row, y, masses in zip(rows, outcomes, played, strict=True):
        assert single.predict(row.tolist()).mass.tolist() == masses.tolist()
        single.update(y)
    assert whole.guarantee == single.guarantee
    assert whole.engine.ledger.account[Account.ROUNDS] == 25
