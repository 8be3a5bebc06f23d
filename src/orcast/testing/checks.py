"""Checks of a payoff, of ours or of your own: may it be played, and is its promise kept against the worst?

Each check returns nothing, or raises `PayoffError` with one sentence that names what is wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine import Committee, Oracle
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.game import Forecaster
from orcast.ledger import Account, CertificateField, Ledger
from orcast.payoffs import CellPayoff, NoRegret, Part, Payoff
from orcast.payoffs.regret import RegretCellPayoff
from orcast.serialise import plain_features
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.testing.adversaries import Adversary, Greedy, Turn, adversaries_on, play
from orcast.testing.consequences import worst_outcome

Array = NDArray[np.float64]
Features = Callable[[np.random.Generator], Any]

ROUNDING = 1e-9


class PayoffError(ValueError):
    """A payoff that may not be played as it is.

    >>> import orcast as oc
    >>> try:
    ...     oc.check_payoff(oc.Custom(lambda x, p, y: [2 * (y - p.mean())], bound=0.01), oc.Interval(0, 1))
    ... except PayoffError as reason:
    ...     print(reason)
    expected a bounded payoff (a squared norm of at most 0.01), got ...
    """


def check_payoff(payoff: Payoff, space: Space, *, x: Any = None, trials: int = 12, seed: int = 0) -> None:
    """Is a payoff bounded, consistent and continuous (conditions 1 to 3 of the paper, or A.1 if one-sided)?

    Tried numerically, on random forecasts and along paths between them; `x` are features, or a function of a random
    generator that makes them.

    >>> import orcast as oc
    >>> oc.check_payoff(oc.QuantileCalibration(), oc.Interval(0, 1))
    >>> oc.check_payoff(oc.Custom(lambda x, p, y: [y - 0.5], bound=1.0), oc.Interval(0, 1))
    Traceback (most recent call last):
    orcast.testing.checks.PayoffError: expected a consistent payoff (its mean under ... zero), got a mean of ...
    """
    rng = np.random.default_rng(seed)
    for _ in range(max(trials // 4, 1)):
        for part, cell_payoff, count in cell_payoffs_of(payoff, space, rng, x):
            for turn in range(4):
                p, other = random_masses(count, rng), random_masses(count, rng)
                if turn == 2:
                    p = 1e-7 * p
                    p[int(rng.integers(count))] += 1.0 - p.sum()
                if turn % 2:
                    # from one end of the space to the other, past every threshold that a context may have
                    p, other = leaning(p, -1.0), leaning(other, 1.0)
                _check_bounded(part, cell_payoff, p)
                # all mass in one cell shows how coarsely a function is looked at within it
                _check_consistent(part, cell_payoff, p, 2e-2 if turn == 2 else 1e-3)
                _check_continuous(part, cell_payoff, p, other)


def check_table(payoff: Payoff, space: Space, *, x: Any = None, trials: int = 12, seed: int = 0) -> None:
    """Is what is played the payoff as its definition says, for every outcome tried?

    >>> import orcast as oc
    >>> check_table(oc.QuantileCalibration([0.5]), oc.Interval(0, 1), trials=2)
    """
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        features = _features(x, rng)
        engine, record, cell_grid = _open(payoff, space, rng, features)
        for part, cell_payoff, state in zip(
            engine.bound_payoff.parts, engine.cell_payoffs(record, features), engine.states, strict=True
        ):
            if state and not isinstance(part.payoff, NoRegret):
                continue  # what is learnt on the way has no definition beforehand
            p = random_masses(cell_grid.cells, rng)
            forecast, expert = cell_grid.forecast(p), cell_grid.forecast(cell_grid.expert)
            if (
                isinstance(cell_payoff, RegretCellPayoff)
                and isinstance(space, OrderedSpace)
                and not np.isfinite(space.high - space.low)
            ):
                continue  # scores are taken of the outcome clipped to the window
            for y in outcomes_of(space, cell_grid, rng):
                k = engine.prior.place(record, y)
                fast = cell_payoff.realised(p, k, y)
                slow = part.payoff.evaluate(space, forecast, _value(space, y), expert, features)
                if isinstance(cell_payoff, RegretCellPayoff):
                    fast = cell_payoff.excess(p, k, y).ravel()
                if fast.shape != slow.shape or not np.allclose(fast, slow, rtol=1e-6, atol=1e-8):
                    raise PayoffError(
                        f"expected what {part.payoff!r} evaluates to for the outcome {y!r}, got another payoff, "
                        f"off by {_apart(fast, slow)}"
                    )
                _check_within_spans(part, cell_payoff, p, k, cell_payoff.realised(p, k, y))


def check_jacobian(payoff: Payoff, space: Space, *, x: Any = None, trials: int = 6, seed: int = 0) -> None:
    """Is each part's derivative of its field that of finite differences (up to a constant in each column)?

    >>> import orcast as oc
    >>> check_jacobian(oc.BinaryCalibration(grid=5), oc.Binary(), trials=2)
    """
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        for part, cell_payoff, cells in cell_payoffs_of(payoff, space, rng, x):
            p = random_masses(cells, rng)
            p = 0.5 * p + 0.5 / cells
            # small, because large derivatives are clipped on purpose
            s = 1e-3 * rng.standard_normal(cell_payoff.size)
            if isinstance(cell_payoff, RegretCellPayoff):
                cell_payoff.rescale(p)
            analytic = cell_payoff.jacobian(s, p)
            if analytic is None:
                continue
            wrong = 0
            for j in rng.integers(0, cells, 8):
                step = 1e-7
                up, down = p.copy(), p.copy()
                up[j] += step
                down[j] -= step
                # masses are moved one at a time, so the sums over them are not one; a kink may lie in between
                numeric = (cell_payoff.field(s, up) - cell_payoff.field(s, down)) / (2.0 * step)
                gap = numeric - analytic[:, j]
                gap -= gap.mean()
                wrong += float(np.abs(gap).max()) > 1e-4 * max(float(np.abs(analytic).max()), 1e-3)
            if wrong > 2:
                raise PayoffError(f"expected the derivative of the field of {part.payoff!r}, got another")


def check_guarantee(
    payoff: Payoff,
    space: Space,
    *,
    x: Any = None,
    experts: Callable[[int], Any] | None = None,
    rounds: int = 200,
    held: float = 0.99,
    oracle: Oracle | None = None,
    memory: float | None = None,
    seed: int = 0,
    adversary: Adversary | None = None,
) -> float:
    """Play against an adversary that sees each forecast (one of orcast.testing.adversaries); returns the share held.

    The default adversary is `Greedy`.  After every round the miscalibration is within the bound, without what a broken
    certificate added, no outcome is worse than certified, and certificates hold in at least the share `held` of the
    rounds.

    >>> import orcast as oc
    >>> check_guarantee(oc.BinaryCalibration(grid=5), oc.Binary(), rounds=20)
    1.0
    """
    rng = np.random.default_rng(seed)
    game = Forecaster(space, payoff, oracle=Committee() if oracle is None else oracle, memory=memory)
    opponent = Greedy() if adversary is None else adversary
    expert = (lambda t: some_expert(space, rng)) if experts is None else experts
    for turn in play(game, opponent, rounds, experts=expert, x=lambda rng: _features(x, rng), rng=rng):
        _check_turn(game, turn)
    share = game.guarantee.held
    if share < held:
        raise PayoffError(f"expected certificates that hold in {held:.1%} of the rounds, got {share:.1%}")
    return share


def _check_turn(game: Forecaster, turn: Turn) -> None:
    """Settle a round; no outcome may be worse than certified, nor may the promise break where certificates held."""
    certificate = game.rounds.pending[turn.id].record.certificate_row.copy()
    ledger: Ledger = game.engine.ledger
    at_once = certificate[CertificateField.ROUNDS_THEN] == ledger.rounds
    y, square = worst_outcome(game, turn.id)
    if at_once and square > certificate[CertificateField.WORST] * (1.0 + ROUNDING) + ROUNDING:
        raise PayoffError(
            f"expected no outcome worse than certified ({certificate[CertificateField.WORST]:.6g}), "
            f"got {square:.6g} by {y!r} in round {turn.id}"
        )
    excess = float(ledger.account[Account.EXCESS])
    game.update(turn.y, id=turn.id)
    allowed = float(ledger.account[Account.BUDGET] - ledger.account[Account.EXCESS])
    if certificate[CertificateField.HOLDS] and excess == 0.0 and ledger.square > allowed * (1.0 + ROUNDING) + ROUNDING:
        raise PayoffError(
            f"expected a squared sum of at most {allowed:.6g} after round {turn.id}, got {ledger.square:.6g}"
        )


def check_state(payoff: Payoff, space: Space, *, x: Any = None, rounds: int = 6, seed: int = 0) -> None:
    """Does a saved game continue bit for bit, with a round pending?

    >>> import orcast as oc
    >>> check_state(oc.QuantileCalibration([0.5]), oc.Interval(0, 1), rounds=2)
    """
    rng = np.random.default_rng(seed)
    game = Forecaster(space, payoff, oracle=Committee())
    for _ in range(rounds):
        game.predict(some_expert(space, rng), x=_features(x, rng))
        game.update(some_outcome(space, rng))
    features, expert = _features(x, rng), some_expert(space, rng)
    game.predict(expert, x=features, id="pending")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        game.save(path)
        twin = Forecaster.load(path, payoff=payoff, space=space)
    y = some_outcome(space, rng)
    masses = []
    for each in (game, twin):
        each.update(y, id="pending")
        masses.append(each.predict(expert, x=features).mass)
    if not np.array_equal(*masses) or game.guarantee != twin.guarantee:
        raise PayoffError(f"expected a game with {payoff!r} that continues bit for bit after a load, got another")


def check_all(payoff: Payoff, space: Space, *, x: Any = None, rounds: int = 100, held: float = 0.99) -> None:
    """All the checks: `check_payoff`, `check_table`, `check_jacobian`, `check_guarantee` and `check_state`.

    After `Greedy`, each of the other adversaries (`orcast.testing.adversaries.adversaries_on`) plays a fifth of the
    `rounds`.

    >>> import orcast as oc
    >>> from orcast.testing import check_all
    >>> check_all(oc.MomentMatching(1), oc.Labels(["home", "away"]))
    Traceback (most recent call last):
    TypeError: expected a space of numbers for MomentMatching, got Labels(...)
    >>> check_all(oc.LabelCalibration(grid=6), oc.Labels(["home", "away"]), rounds=20)
    """
    check_payoff(payoff, space, x=x)
    check_table(payoff, space, x=x)
    check_jacobian(payoff, space, x=x)
    check_guarantee(payoff, space, x=x, rounds=rounds, held=held)
    for name, make in adversaries_on(space).items():
        if name != "greedy":
            check_guarantee(payoff, space, x=x, rounds=max(rounds // 5, 1), held=held, adversary=make())
    check_state(payoff, space, x=x)


# --- what the checks are made of
def _features(x: Any, rng: np.random.Generator) -> Any:
    features = x(rng) if callable(x) else x
    return None if features is None else plain_features(features)


def some_expert(space: Space, rng: np.random.Generator) -> Any:
    """A random forecast of an expert."""
    if isinstance(space, OrderedSpace):
        from orcast.adapters import Normal

        span = space.high - space.low if np.isfinite(space.high - space.low) else 10.0
        low = space.low if np.isfinite(space.low) else min(space.high - span, 0.0)
        return Normal(low + span * rng.random(), span * 10.0 ** rng.uniform(-3, -0.5))
    return random_masses(space.cells, rng)


def some_outcome(space: Space, rng: np.random.Generator) -> Any:
    """A random outcome."""
    if isinstance(space, OrderedSpace):
        low = space.low if np.isfinite(space.low) else min(space.high - 20.0, -5.0)
        high = space.high if np.isfinite(space.high) else low + 20.0
        return float(rng.uniform(low, high))
    assert isinstance(space, FiniteSpace)
    return space.value(int(rng.integers(space.cells)))


def random_masses(cells: int, rng: np.random.Generator) -> Array:
    """Random masses, spread out or concentrated, none of them zero."""
    p = rng.dirichlet(np.full(cells, 10.0 ** rng.uniform(-1.0, 1.0)))
    p = 0.999 * p + 0.001 / cells
    value: Array = p / p.sum()
    return value


def leaning(p: Array, side: float) -> Array:
    """Masses drawn to the first or the last cells."""
    tilt = side * 12.0 * np.linspace(-1.0, 1.0, p.size)
    value: Array = p * np.exp(tilt - tilt.max())
    value = 0.999 * value / value.sum() + 0.001 / p.size
    return value


def _open(payoff: Payoff, space: Space, rng: np.random.Generator, features: Any) -> tuple[DenseEngine, Any, Any]:
    from orcast.adapters import expert_row

    oracle = Committee()
    bound_payoff = BoundPayoff(space, payoff, ("expert",), None)
    engine = dense_engine(oracle, bound_payoff)
    row, _ = expert_row(some_expert(space, rng), space)
    record, _ = engine.prior.open(row[None, :], 0.0)
    return engine, record, engine.prior.cell_grid(record, features)


def dense_engine(oracle: Committee, bound_payoff: BoundPayoff) -> DenseEngine:
    """The dense engine for any terms, even those that a compiled one would play."""
    from orcast.engine.base import NO_LEARNING
    from orcast.engine.committee import LEARNING
    from orcast.engine.dense.solver import LogitSolver
    from orcast.engine.selection import prior_for

    learning = LEARNING if isinstance(oracle, Committee) else NO_LEARNING
    prior = prior_for(bound_payoff, oracle.temperature, learning)
    return DenseEngine(bound_payoff, prior, LogitSolver(oracle.temperature))


def cell_payoffs_of(
    payoff: Payoff, space: Space, rng: np.random.Generator, x: Any
) -> list[tuple[Part, CellPayoff, int]]:
    """Each part of a payoff on the cells of a random round, and how many there are."""
    features = _features(x, rng)
    engine, record, cell_grid = _open(payoff, space, rng, features)
    return [
        (part, cell_payoff, cell_grid.cells)
        for part, cell_payoff in zip(engine.bound_payoff.parts, engine.cell_payoffs(record, features), strict=True)
    ]


def outcomes_of(space: Space, cell_grid: Any, rng: np.random.Generator) -> Sequence[Any]:
    """Some outcomes in canonical form, ends of cells among them."""
    if not isinstance(space, OrderedSpace):
        assert isinstance(space, FiniteSpace)
        return [space.outcome(space.value(int(k))) for k in rng.integers(0, space.cells, 6)]
    ks = rng.integers(0, cell_grid.cells, 6)
    return [
        float(cell_grid.left[k] + (cell_grid.right[k] - cell_grid.left[k]) * s)
        for k, s in zip(ks, rng.random(6), strict=True)
    ]


def _value(space: Space, y: Any) -> Any:
    if isinstance(space, OrderedSpace):
        return y
    assert isinstance(space, FiniteSpace)
    return space.value(space.cell(y))


def _apart(fast: Array, slow: Array) -> str:
    return f"{np.abs(fast - slow).max():.3g}" if fast.shape == slow.shape else f"shapes {fast.shape} and {slow.shape}"


def _check_within_spans(part: Part, cell_payoff: CellPayoff, p: Array, k: int, realised: Array) -> None:
    low, high = (each[:, k].reshape(realised.size, -1) for each in cell_payoff.spans(p))
    rounding = 1e-6 * np.sqrt(part.bound)
    if (realised < low.min(axis=1) - rounding).any() or (realised > high.max(axis=1) + rounding).any():
        raise PayoffError(f"expected a payoff of {part.payoff!r} within the ends of its cell, got one beyond")


def _check_bounded(part: Part, cell_payoff: CellPayoff, p: Array) -> None:
    low, high = cell_payoff.spans(p)
    square = float(np.maximum(low * low, high * high).sum(axis=0).max())
    if not square <= part.bound * (1.0 + 1e-9):
        raise PayoffError(
            f"expected a bounded payoff (a squared norm of at most {part.bound:g}), got {square:.6g} of {part.payoff!r}"
        )


def _check_consistent(part: Part, cell_payoff: CellPayoff, p: Array, tolerance: float) -> None:
    mean = cell_payoff.table(p) @ p
    off = np.maximum(mean, 0.0) if part.payoff.one_sided else np.abs(mean)
    if float(off.max()) > tolerance * np.sqrt(part.bound):
        at_most = "at most zero" if part.payoff.one_sided else "zero"
        raise PayoffError(
            f"expected a consistent payoff (its mean under the forecast is {at_most}), got a mean of "
            f"{mean[int(off.argmax())]:.3g} in coordinate {int(off.argmax())} of {part.payoff!r} "
            "(if it jumps in y, name where in jumps=)"
        )


def _check_continuous(part: Part, cell_payoff: CellPayoff, p: Array, other: Array) -> None:
    """Find the largest step on the way from p to another forecast, and halve it until it is a jump or gone."""
    shares = np.linspace(0.0, 1.0, 33)
    tables = [cell_payoff.table((1.0 - s) * p + s * other) for s in shares]
    steps = [float(np.abs(b - a).max()) for a, b in pairwise(tables)]
    i = int(np.argmax(steps))
    a, b, low, high = shares[i], shares[i + 1], tables[i], tables[i + 1]
    for _ in range(34):
        middle = 0.5 * (a + b)
        table = cell_payoff.table((1.0 - middle) * p + middle * other)
        if float(np.abs(table - low).max()) >= float(np.abs(high - table).max()):
            b, high = middle, table
        else:
            a, low = middle, table
    jump = float(np.abs(high - low).max())
    if jump > 1e-3 * np.sqrt(part.bound):
        raise PayoffError(
            f"expected a payoff that is continuous in the forecast, got a jump of {jump:.3g} in {part.payoff!r} "
            "(smooth it over a small range)"
        )
