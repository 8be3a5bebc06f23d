"""Numerical checks of a payoff and of its guarantee, which raise `PayoffError` on the first violation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import Normal, expert_row
from orcast.engine import Committee, Equilibrium, Oracle
from orcast.engine.bound_payoff import NO_LEARNING, BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.solver import LogitSolver
from orcast.engine.oracles import LEARNING, prior_for
from orcast.engine.ordered import OrderedEngine
from orcast.forecaster import Forecaster
from orcast.ledger import Account, CertificateField
from orcast.payoffs import CellGrid, CellPayoff, Part, Payoff
from orcast.payoffs.functions import peak_at
from orcast.serialise import plain_features
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.spaces.base import LARGEST

__all__ = ["PayoffError", "check_guarantee", "check_payoff", "worst_outcome"]

Array = NDArray[np.float64]

ROUNDING = 1e-9
# Outcomes within cells that are evaluated in each round of a check, and the largest accepted excess, in roots of the
# bound: a kink that moves with the forecast is not declared.
WITHIN, WITHIN_PEAK = 200, 0.1


class PayoffError(ValueError):
    """A payoff violates a condition of the guarantee.

    >>> import orcast as oc
    >>> try:
    ...     oc.check_payoff(oc.Recipe(lambda y: [y], bound=0.01), oc.Interval(0, 1))
    ... except PayoffError as reason:
    ...     print(reason)
    expected a bounded payoff (a squared norm of at most 0.01), got ...
    """


def check_payoff(payoff: Payoff, space: Space, *, x: Any = None, trials: int = 12) -> None:
    """Check that a payoff is bounded, consistent and continuous.

    Parameters
    ----------
    payoff
        Payoff to check.
    space
        Space of the outcomes.
    x
        Features, or a function of a random generator that returns them.
    trials
        Number of random forecasts; 12 by default.

    Raises
    ------
    PayoffError
        If a condition is violated.

    Notes
    -----
    These are conditions 1 to 3 of the paper (A.1 if one-sided). They are checked numerically, on random forecasts and
    along paths between them.

    Examples
    --------
    >>> import orcast as oc
    >>> oc.check_payoff(oc.QuantileCalibration(), oc.Interval(0, 1))
    >>> oc.check_payoff(oc.Recipe(lambda y: [y], lambda x, p: [p.mean() > 0.5], bound=1.0), oc.Interval(0, 1))
    Traceback (most recent call last):
    orcast.testing.PayoffError: expected a payoff that is continuous in the forecast, got a jump of ...
    """
    rng = np.random.default_rng(0)
    for _ in range(max(trials // 4, 1)):
        for part, cell_payoff, cell_grid in cell_payoffs_of(payoff, space, rng, x):
            count = cell_grid.cells
            for turn in range(4):
                p, other = random_masses(count, rng), random_masses(count, rng)
                if turn == 2:
                    p = 1e-7 * p
                    p[int(rng.integers(count))] += 1.0 - p.sum()
                if turn % 2:
                    # from one end of the space to the other, across all thresholds of a context
                    p, other = _leaning(p, -1.0), _leaning(other, 1.0)
                _check_bounded(part, cell_payoff, p)
                # all mass in one cell tests the resolution of a function within it
                _check_consistent(part, cell_payoff, p, 2e-2 if turn == 2 else 1e-3)
                _check_continuous(part, cell_payoff, p, other)
            _check_between(part, cell_payoff, cell_grid, rng)


def check_guarantee(
    payoff: Payoff,
    space: Space,
    *,
    x: Any = None,
    rounds: int = 200,
    held: float = 0.99,
    oracle: Oracle | None = None,
    memory: float | None = None,
) -> float:
    """Check the guarantee of a payoff after every round, against the worst outcome of each; return the share held.

    Parameters
    ----------
    payoff
        Payoff to check.
    space
        Space of the outcomes.
    x
        Features, or a function of a random generator that returns them.
    rounds
        Number of rounds; 200 by default.
    held
        Smallest share of rounds whose certificate must hold; 0.99 by default.
    oracle
        Oracle of the forecaster.
    memory
        Memory of the forecaster, in rounds.

    Returns
    -------
    float
        Share of the rounds whose certificate held.

    Raises
    ------
    PayoffError
        If the miscalibration exceeds its bound, or an outcome is worse than certified.

    Examples
    --------
    >>> import orcast as oc
    >>> check_guarantee(oc.BinaryCalibration(grid=5), oc.Binary(), rounds=20)
    1.0
    """
    rng = np.random.default_rng(0)
    recal = Forecaster(space, payoff, oracle=Committee() if oracle is None else oracle, memory=memory)
    for _ in range(rounds):
        recal.predict(some_expert(space, rng), x=features_of(x, rng))
        settle_checked(recal, worst_outcome(recal)[0])
    share = recal.guarantee.held
    if share < held:
        raise PayoffError(f"expected certificates that hold in {held:.1%} of the rounds, got {share:.1%}")
    return share


def worst_outcome(recal: Forecaster, id: Hashable = None, *, points: int = 3) -> tuple[Any, float]:
    """Find the outcome that maximises ||S||_+^2, and this maximum.

    Parameters
    ----------
    recal
        Recalibrator with a pending round.
    id
        Id of the round; by default the unnamed one.
    points
        Number of candidate points in every cell.

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(grid=5))
    >>> p = recal.predict(0.9)
    >>> y, square = worst_outcome(recal)
    >>> y, square <= p.certificate.worst_next
    (0, True)
    """
    found = candidates(recal, id, points)
    squares = squares_after(recal, found, id)
    best = int(squares.argmax())
    return as_given(recal.space, found[best]), float(squares[best])


def settle_checked(recal: Forecaster, outcome: Any, id: Hashable = None) -> None:
    """Settle a round, and check its certificate and the bound."""
    certificate = recal.rounds.pending[id].record.certificate_row.copy()
    ledger = recal.engine.ledger
    y, square = worst_outcome(recal, id)
    worst, at_once = certificate[CertificateField.WORST], certificate[CertificateField.ROUNDS_THEN] == ledger.rounds
    if at_once and square > worst * (1.0 + ROUNDING) + ROUNDING:
        raise PayoffError(f"expected no outcome worse than certified ({worst:.6g}), got {square:.6g} by {y!r}")
    excess = float(ledger.account[Account.EXCESS])
    recal.update(outcome, id=id)
    allowed = float(ledger.account[Account.BUDGET] - ledger.account[Account.EXCESS])
    if certificate[CertificateField.HOLDS] and excess == 0.0 and ledger.square > allowed * (1.0 + ROUNDING) + ROUNDING:
        raise PayoffError(
            f"expected a squared sum of at most {allowed:.6g} after {ledger.rounds} rounds, got {ledger.square:.6g}"
        )


def features_of(x: Any, rng: np.random.Generator) -> Any:
    """Features, or those returned by a function of a random generator."""
    features = x(rng) if callable(x) else x
    return None if features is None else plain_features(features)


def some_expert(space: Space, rng: np.random.Generator) -> Any:
    """A random forecast of an expert."""
    if not isinstance(space, OrderedSpace):
        return random_masses(space.cells, rng)
    span = space.high - space.low if np.isfinite(space.high - space.low) else 10.0
    low = space.low if np.isfinite(space.low) else min(space.high - span, 0.0)
    return Normal(low + span * rng.random(), span * 10.0 ** rng.uniform(-3, -0.5))


def random_masses(cells: int, rng: np.random.Generator) -> Array:
    """Random positive masses, diffuse or concentrated."""
    p = rng.dirichlet(np.full(cells, 10.0 ** rng.uniform(-1.0, 1.0)))
    p = 0.999 * p + 0.001 / cells
    value: Array = p / p.sum()
    return value


def _leaning(p: Array, side: float) -> Array:
    """Masses shifted to the first or the last cells."""
    tilt = side * 12.0 * np.linspace(-1.0, 1.0, p.size)
    value: Array = p * np.exp(tilt - tilt.max())
    value = 0.999 * value / value.sum() + 0.001 / p.size
    return value


def dense_engine(bound_payoff: BoundPayoff, oracle: Equilibrium | None = None) -> DenseEngine:
    """Dense engine, even for payoffs that a compiled engine covers; with a committee unless an oracle is given."""
    temperature, learning = (Committee().temperature, LEARNING) if oracle is None else (oracle.temperature, NO_LEARNING)
    return DenseEngine(bound_payoff, prior_for(bound_payoff, temperature, learning), LogitSolver(temperature))


def cell_payoffs_of(
    payoff: Payoff, space: Space, rng: np.random.Generator, x: Any
) -> list[tuple[Part, CellPayoff, CellGrid]]:
    """Parts of a payoff on the cells of a random round, and the number of cells."""
    features = features_of(x, rng)
    engine = dense_engine(BoundPayoff(space, payoff, ("expert",), None))
    record, _ = engine.prior.open(expert_row(some_expert(space, rng), space)[0][None, :], 0.0)
    cell_payoffs = engine.cell_payoffs(record, features)
    cell_grid = engine.prior.cell_grid(record, features)
    return [(part, each, cell_grid) for part, each in zip(engine.bound_payoff.parts, cell_payoffs, strict=True)]


def _check_bounded(part: Part, cell_payoff: CellPayoff, p: Array) -> None:
    low, high = cell_payoff.spans(p)
    square = float(np.maximum(low * low, high * high).sum(axis=0).max())
    if not square <= part.bound * (1.0 + 1e-9):
        raise PayoffError(
            f"expected a bounded payoff (a squared norm of at most {part.bound:g}), got {square:.6g} of {part.payoff!r}"
        )


def _check_between(part: Part, cell_payoff: CellPayoff, cell_grid: CellGrid, rng: np.random.Generator) -> None:
    """Evaluate the payoff at random outcomes within cells, where it may not leave its bounds by a peak."""
    wide = np.flatnonzero(cell_grid.right > cell_grid.left)
    if part.kind != "general" or not wide.size:
        return
    p = random_masses(cell_grid.cells, rng)
    low, high = (each.reshape(*each.shape[:2], -1) for each in cell_payoff.spans(p))
    for k in rng.choice(wide, WITHIN).tolist():
        y = float(cell_grid.left[k] + (1.0 - rng.random()) * (cell_grid.right[k] - cell_grid.left[k]))
        value = cell_payoff.realised(p, k, y)
        beyond = float(np.maximum(value - high[:, k].max(axis=1), low[:, k].min(axis=1) - value).max())
        if beyond > WITHIN_PEAK * np.sqrt(part.bound):
            raise PayoffError(str(peak_at(y, beyond, f"{part.payoff!r}")))


def _check_consistent(part: Part, cell_payoff: CellPayoff, p: Array, tolerance: float) -> None:
    mean = cell_payoff.table(p) @ p
    off = np.maximum(mean, 0.0) if part.payoff.one_sided else np.abs(mean)
    if float(off.max()) > tolerance * np.sqrt(part.bound):
        at_most = "at most zero" if part.payoff.one_sided else "zero"
        raise PayoffError(
            f"expected a consistent payoff (its mean under the forecast is {at_most}), got a mean of "
            f"{mean[int(off.argmax())]:.3g} in coordinate {int(off.argmax())} of {part.payoff!r} "
            "(name its jumps in y as jumps=)"
        )


def _check_continuous(part: Part, cell_payoff: CellPayoff, p: Array, other: Array) -> None:
    """Halve the largest step on the way from p to another forecast until it is a jump or vanishes."""
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


# --- outcomes of a pending round


def candidates(recal: Forecaster, id: Hashable = None, points: int = 3) -> list[Any]:
    """Outcomes in canonical form, several points of every cell, and points beyond an unbounded window."""
    space = recal.space
    if not isinstance(space, OrderedSpace):
        assert isinstance(space, FiniteSpace)
        return [space.outcome(space.value(k)) for k in range(space.cells)]
    p: Any = recal.engine.forecast(recal.rounds.pending[id].record)
    left, right = p.left.copy(), p.right.copy()
    if np.isinf(left[0]):
        left[0] = right[0] - (right[-2] - left[1])
    if np.isinf(right[-1]):
        right[-1] = left[-1] + (right[-2] - right[0])
    shares = np.arange(points) / max(points - 1, 1)
    inside = left[:, None] + (right - left)[:, None] * shares
    found = np.concatenate((inside.ravel(), left[:1], right[-1:]))
    chosen: list[Any] = np.unique(np.clip(found, max(space.low, -LARGEST), min(space.high, LARGEST))).tolist()
    return chosen


def payoffs_of(recal: Forecaster, outcomes: Sequence[Any], id: Hashable) -> Array:
    """Payoffs before contexts and weights, one column per outcome."""
    engine: Any = recal.engine
    record = recal.rounds.pending[id].record
    if isinstance(engine, OrderedEngine):
        return engine.payoffs(record, np.array(outcomes, dtype=np.float64)).T
    return np.array([engine.payoff(record, y) for y in outcomes]).T


def squares_after(recal: Forecaster, outcomes: Sequence[Any], id: Hashable = None) -> Array:
    """Value of ||S||_+^2 after each outcome, in canonical form."""
    ledger, payoffs = recal.engine.ledger, payoffs_of(recal, outcomes, id)
    context = recal.engine.context_of(recal.rounds.pending[id].record)
    layout, squares = ledger.layout, np.zeros(len(outcomes))
    for number, (start, size, groups, places, at, one_sided) in enumerate(layout.part_table.tolist()):
        own = layout.scales[number] * payoffs[layout.place_list[places : places + size]]
        s = ledger.discount * ledger.total[start : start + size * groups].reshape(groups, size)
        c = context[at : at + groups]
        if one_sided:
            sums = np.maximum(s[:, :, None] + c[:, None, None] * own, 0.0)
            squares += np.einsum("gik,gik->k", sums, sums)
        else:
            squares += float((s * s).sum()) + 2.0 * ((c @ s) @ own) + float(c @ c) * np.einsum("ik,ik->k", own, own)
    return squares


def as_given(space: Space, y: Any) -> Any:
    """Canonical outcome in the form users pass."""
    if isinstance(space, OrderedSpace):
        return y
    assert isinstance(space, FiniteSpace)
    return space.value(space.cell(y))
