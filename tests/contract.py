"""The contract of our own payoffs beyond `check_payoff`: definition, derivative, saved state."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adversaries import Adversary, adversaries_on, run_rounds
from orcast.adapters import expert_row
from orcast.engine import Committee
from orcast.engine.bound_payoff import BoundPayoff
from orcast.forecaster import Forecaster
from orcast.payoffs import NoRegret, Payoff
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.testing import (
    as_given,
    cell_payoffs_of,
    check_guarantee,
    check_payoff,
    dense_engine,
    features_of,
    random_masses,
    settle_checked,
    some_expert,
)


def check_table(payoff: Payoff, space: Space, *, x: Any = None, trials: int = 12, seed: int = 0) -> None:
    """The smoothed payoff follows its definition, and lies within the ends of its cell."""
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        features = features_of(x, rng)
        engine = dense_engine(BoundPayoff(space, payoff, ("expert",), None))
        record, _ = engine.prior.open(expert_row(some_expert(space, rng), space)[0][None, :], 0.0)
        cell_grid = engine.prior.cell_grid(record, features)
        parts = zip(engine.bound_payoff.parts, engine.cell_payoffs(record, features), engine.states, strict=True)
        for part, cell_payoff, state in parts:
            regret = isinstance(cell_payoff, RegretCellPayoff)
            if state and not isinstance(part.payoff, NoRegret):
                continue  # what is learnt on the way has no definition beforehand
            if regret and isinstance(space, OrderedSpace) and not np.isfinite(space.high - space.low):
                continue  # scores are taken of the outcome clipped to the window
            p = random_masses(cell_grid.cells, rng)
            forecast, expert = cell_grid.forecast(p), cell_grid.forecast(cell_grid.expert)
            for y in outcomes_of(space, cell_grid, rng):
                k = engine.prior.place(record, y)
                realised = cell_payoff.realised(p, k, y)
                slow = part.payoff.evaluate(space, forecast, as_given(space, y), expert, features)
                fast = cell_payoff.excess(p, k, y).ravel() if isinstance(cell_payoff, RegretCellPayoff) else realised
                np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-8)
                low, high = (each[:, k].reshape(realised.size, -1) for each in cell_payoff.spans(p))
                rounding = 1e-6 * np.sqrt(part.bound)
                assert (realised >= low.min(axis=1) - rounding).all()
                assert (realised <= high.max(axis=1) + rounding).all()


def check_jacobian(payoff: Payoff, space: Space, *, x: Any = None, trials: int = 6, seed: int = 0) -> None:
    """Each part's derivative of its field is that of finite differences, up to a constant in each column."""
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        for part, cell_payoff, grid in cell_payoffs_of(payoff, space, rng, x):
            cells = grid.cells
            p = 0.5 * random_masses(cells, rng) + 0.5 / cells
            # small, because large derivatives are clipped on purpose
            s = 1e-3 * rng.standard_normal(cell_payoff.size)
            if isinstance(cell_payoff, RegretCellPayoff):
                cell_payoff.rescale(p)
            analytic = cell_payoff.jacobian(s, p)
            if analytic is None:
                continue
            wrong = 0
            for j in rng.integers(0, cells, 8):
                step = 1e-7 * np.eye(cells)[j]
                # masses are moved one at a time, so the sums over them are not one; a kink may lie in between
                numeric = (cell_payoff.field(s, p + step) - cell_payoff.field(s, p - step)) / 2e-7
                gap = numeric - analytic[:, j]
                gap -= gap.mean()
                wrong += float(np.abs(gap).max()) > 1e-4 * max(float(np.abs(analytic).max()), 1e-3)
            assert wrong <= 2, part.payoff


def check_state(payoff: Payoff, space: Space, *, x: Any = None, rounds: int = 6, seed: int = 0) -> None:
    """A saved game continues bit for bit, with a round pending."""
    rng = np.random.default_rng(seed)
    recal = Forecaster(space, payoff, oracle=Committee())
    for _ in range(rounds):
        recal.predict(some_expert(space, rng), x=features_of(x, rng))
        recal.update(some_outcome(space, rng))
    features, expert = features_of(x, rng), some_expert(space, rng)
    recal.predict(expert, x=features, id="pending")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        recal.save(path)
        twin = Forecaster.load(path, payoff=payoff, space=space)
    y = some_outcome(space, rng)
    masses = []
    for each in (recal, twin):
        each.update(y, id="pending")
        masses.append(each.predict(expert, x=features).mass)
    assert np.array_equal(*masses)
    assert recal.guarantee == twin.guarantee


def check_all(payoff: Payoff, space: Space, *, x: Any = None, rounds: int = 100) -> None:
    """The whole contract; adversaries other than `Greedy` play a fifth of the rounds."""
    for check in (check_payoff, check_table, check_jacobian, check_state):
        check(payoff, space, x=x)
    check_guarantee(payoff, space, x=x, rounds=rounds)
    for make in adversaries_on(space).values():
        assert check_against(make(), payoff, space, x=x, rounds=max(rounds // 5, 1)) >= 0.99


def check_against(adversary: Adversary, payoff: Payoff, space: Space, *, x: Any = None, rounds: int) -> float:
    """Check the bound after every round; return the share of certificates that held."""
    rng = np.random.default_rng(0)
    recal = Forecaster(space, payoff, oracle=Committee())
    experts = {"experts": lambda t: some_expert(space, rng), "x": lambda rng: features_of(x, rng)}
    for turn in run_rounds(recal, adversary, rounds, **experts, rng=rng):
        settle_checked(recal, turn.y, turn.id)
    return recal.guarantee.held


def some_outcome(space: Space, rng: np.random.Generator) -> Any:
    if isinstance(space, OrderedSpace):
        low = space.low if np.isfinite(space.low) else min(space.high - 20.0, -5.0)
        high = space.high if np.isfinite(space.high) else low + 20.0
        return float(rng.uniform(low, high))
    assert isinstance(space, FiniteSpace)
    return space.value(int(rng.integers(space.cells)))


def outcomes_of(space: Space, cell_grid: Any, rng: np.random.Generator) -> Sequence[Any]:
    """Some outcomes in canonical form, within cells."""
    if not isinstance(space, OrderedSpace):
        assert isinstance(space, FiniteSpace)
        return [space.outcome(space.value(int(k))) for k in rng.integers(0, space.cells, 6)]
    ks = rng.integers(0, cell_grid.cells, 6)
    return (cell_grid.left[ks] + (cell_grid.right[ks] - cell_grid.left[ks]) * rng.random(6)).tolist()
