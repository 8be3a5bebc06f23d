"""Exact oracle of decision, moment and simplex calibration: all mass is on the cheapest cells.

Let v_k(p) = <S, payoff(p, k)> and call n = -v the prices. By consistency p @ n(p) = 0, so p is a solution of

    v_k(p) <= 0    for every cell k

if and only if it has mass only on cells with the smallest price at p. With a temperature T the masses p ~ prior
exp(-n(p) / T) form a path from the prior, where T is infinite, to such a forecast, where T is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import GridPrior, Prior
from orcast.engine.dense.search import CandidateSearch, DenseRound, log_masses, masses_of
from orcast.engine.dense.solver import LogitSolver
from orcast.paper.exact.base import ExactOracle, ExactSolver, expert_alone, measured
from orcast.payoffs import CellPayoff, DecisionCalibration, MomentBasedCalibration, SimplexCalibration, SwapRegret
from orcast.payoffs.cell_payoffs import softmax
from orcast.spaces import FiniteSpace, Interval, OrderedSpace

Array = NDArray[np.float64]
Equations = Callable[[Array, Array, float], tuple[Array, Array]]

PAYOFFS = (DecisionCalibration, SwapRegret, MomentBasedCalibration, SimplexCalibration)
# Violations of the half-space up to this share of the ledger's size count as none.
TOLERANCE = 1e-8
# Masses below this are raised to it.
LEAST = 1e-9
# Along the path: largest change of a mass and of log(1 / T) in one step, tried in turn; least step; number of steps.
STRIDES = (0.1, 0.03, 0.01, 0.03, 0.01)
LONGEST, LEAST_STEP, STEPS = 0.5, 1e-6, 1000
# Values of log(1 / T), in units of the ledger's size: the start of the path, from where its end is tried, the last.
START, END, LAST = -5.0, 2.0, 25.0
# Newton's method: number of steps, and tolerance of masses.
NEWTON, EXACT = 12, 1e-11
# The end is tried every few steps, without the cells of less mass than one of these shares.
EVERY, SUPPORTS = 4, (1e-2, 1e-3, 1e-4, 1e-6)


@dataclass(frozen=True)
class LogitPath(ExactOracle):
    """Half-space oracle of the payoffs whose prices depend on the forecast, and of their sums (paper, appendix C.2).

    Notes
    -----
    For `DecisionCalibration`, `SwapRegret`, `MomentBasedCalibration` and `SimplexCalibration`. It follows the path

        p_k ~ prior_k exp(v_k(p) / T),    v_k(p) = <S, payoff(p, k)>,    T from infinity to 0

    from the expert to a forecast with v_k(p) <= 0 for every cell k, and solves for that one by Newton's method
    (docs/theory.md). If the path is lost, the dense equilibrium is tried. `half_space` is the largest measured value
    over all cells, and `approximation` the addition by payoffs that vary within a cell. The paper's oracles require a
    fixed point where the ledger vanishes, which need not exist.

    Examples
    --------
    >>> import orcast as oc
    >>> space, payoff = oc.Labels(["home", "draw", "away"]), oc.payoffs.SimplexCalibration(grid=4)
    >>> recal = oc.Forecaster(space, payoff, oracle=LogitPath())
    >>> for y in ("home", "away", "home", "draw"):
    ...     p = recal.predict([0.2, 0.2, 0.6])
    ...     recal.update(y)
    >>> p.certificate.holds, p.certificate.half_space <= 1e-8
    (True, True)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not bound_payoff.payoffs or not all(isinstance(each, PAYOFFS) for each in bound_payoff.payoffs):
            names = ", ".join(kind.__name__ for kind in PAYOFFS)
            got = " + ".join(map(repr, bound_payoff.payoffs)) or "none"
            raise TypeError(f"expected only {names} for LogitPath, got {got}")
        return DenseEngine(bound_payoff, _cells_for(bound_payoff), PathSolver(), sizes)


def _cells_for(bound_payoff: BoundPayoff) -> Prior:
    space = bound_payoff.space
    if isinstance(space, FiniteSpace):
        return expert_alone(bound_payoff)
    assert isinstance(space, OrderedSpace)
    if not isinstance(space, Interval):
        return GridPrior(bound_payoff, space.cells)
    return GridPrior(bound_payoff, 0, np.repeat(np.linspace(space.low, space.high, space.cells // 2 + 1), 2))


class PathSolver(ExactSolver):
    """Forecast on the cheapest cells, given the forecast itself."""

    def __init__(self) -> None:
        self.dense = LogitSolver(self.temperature)

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose the expert's forecast, the end of the path, or the dense equilibrium."""
        game = Game(search.cell_payoffs, search.cumulative)
        p = setup.prior
        if game.worst(p) > 0.0:
            p = followed(game, p)
        search.consider(log_masses(p), 0.0)
        if game.worst(p) > game.tolerance and search.missing > 0.0:
            self.dense.solve(search, setup)
        search.claim = measured(search, masses_of(search.best))


class Game:
    """Values v_k(p) = <S, payoff(p, k)> of a ledger."""

    def __init__(self, cell_payoffs: Sequence[CellPayoff], cumulative: Sequence[Array]) -> None:
        self.parts = [(each, s) for each, s in zip(cell_payoffs, cumulative, strict=True) if s.any()]
        self.size = sum((float(np.abs(s).max()) for _, s in self.parts), 0.0)
        self.tolerance = TOLERANCE * self.size

    def values(self, p: Array) -> Array:
        """Value for each cell, with mean 0 under p by consistency."""
        v = sum((cell_payoff.field(s, p) for cell_payoff, s in self.parts), np.zeros(p.size))
        return np.asarray(v - v @ p)

    def with_slopes(self, p: Array) -> tuple[Array, Array]:
        """Values, and their derivatives by the masses, which `jacobian` leaves open up to a constant in each column."""
        v, slopes = self.values(p), np.zeros((p.size, p.size))
        for cell_payoff, s in self.parts:
            found = cell_payoff.jacobian(s, p, exact=True)
            slopes = slopes if found is None else slopes + found
        return v, slopes - (p @ slopes + v)

    def worst(self, p: Array) -> float:
        """Largest value over the cells."""
        return float(self.values(p).max())


def followed(game: Game, prior: Array) -> Array:
    """A solution, or the best forecast found: by the path, from other priors after a failure."""
    best = prior
    for turn, stride in enumerate(STRIDES):
        # golden ratios are far from each other: no two events coincide on the path
        moved = np.maximum(prior, LEAST) * (1.0 + 0.3 * turn * np.modf(0.618033988749895 * np.arange(prior.size))[0])
        best = min(best, trace(game, moved / moved.sum(), stride), key=game.worst)
        if game.worst(best) <= game.tolerance:
            break
    return best


def trace(game: Game, prior: Array, stride: float) -> Array:
    """Best forecast on the path, which is followed through all its turns; x has the logits and log(1 / T)."""
    log_prior = np.log(prior)
    x = np.append(log_prior, START)
    best, ahead, step, orientation = prior, np.append(np.zeros(prior.size), 1.0), 1.0, 0.0

    def equations(x: Array, row: Array, aim: float) -> tuple[Array, Array]:
        """Values and derivatives of the equations of the path and of one more, row @ x = aim."""
        p, scale = softmax(x[:-1]), np.exp(x[-1]) / game.size
        v, slopes = game.with_slopes(p)
        by_logits = np.eye(p.size) - scale * (slopes * p - np.outer(slopes @ p, p))
        matrix = np.vstack((np.column_stack((by_logits, -scale * v)), row))
        return np.append(x[:-1] - log_prior - scale * v, row @ x - aim), matrix

    for turn in range(STEPS):
        p = softmax(x[:-1])
        matrix = equations(x, np.append(p * ahead[:-1], ahead[-1]), 0.0)[1]
        try:
            ahead = np.linalg.solve(matrix, np.append(np.zeros(p.size), 1.0))
        except np.linalg.LinAlgError:
            break
        # the orientation is constant along the path
        sign = float(np.linalg.slogdet(matrix)[0])
        orientation = orientation or sign
        ahead *= sign * orientation
        change = p * (ahead[:-1] - p @ ahead[:-1])
        ahead /= max(float(np.abs(change).max()) / stride, abs(float(ahead[-1])) / LONGEST, 1e-300)
        row = np.append(p * ahead[:-1], ahead[-1])
        found = _corrected(equations, x + step * ahead, row)
        if found is not None and np.abs(softmax(found[:-1]) - p).max() < 2.0 * stride * step + 1e-3:
            x, step = found, min(1.5 * step, 1.0)
        elif step > LEAST_STEP:
            step *= 0.3
            continue
        else:  # the path may turn back where the payoff has a kink: its direction is that beyond it
            x, step = x + LEAST_STEP * ahead, 1e-2
        if not START <= x[-1] <= LAST:
            break
        p = softmax(x[:-1])
        best = min(best, p, key=game.worst)
        if x[-1] > END and turn % EVERY == 0:
            supports = {int((p > least).sum()): p > least for least in SUPPORTS}
            best = min(best, *(evened(game, np.where(each, p, 0.0)) for each in supports.values()), key=game.worst)
            if game.worst(best) <= game.tolerance:
                break
    return np.asarray(best)


def _corrected(equations: Equations, x: Array, row: Array) -> Array | None:
    """Point of the path beside x, by Newton's method; None if it fails."""
    aim = float(row @ x)
    for _ in range(NEWTON):
        values, matrix = equations(x, row, aim)
        try:
            change = np.linalg.solve(matrix, values)
        except np.linalg.LinAlgError:
            return None
        if not abs(change[-1]) <= 2.0 or not np.isfinite(change).all():
            return None
        moved = softmax(x[:-1] - change[:-1]) - softmax(x[:-1])
        x = x - change
        if max(float(np.abs(moved).max()), abs(float(change[-1]))) < EXACT:
            return x
    return None


def evened(game: Game, p: Array) -> Array:
    """Masses with equal values on the same cells, or on fewer if one would be negative; p if there are none."""
    start: Array = p / p.sum()
    cells = np.flatnonzero(start > 0.0)
    while cells.size:
        q = np.where(np.isin(np.arange(p.size), cells), start, 0.0)
        for _ in range(NEWTON):
            v, slopes = game.with_slopes(q)
            across = (slopes[np.ix_(cells[1:], cells)] - slopes[cells[0], cells]) / game.size
            wrong = np.append((v[cells[1:]] - v[cells[0]]) / game.size, q.sum() - 1.0)
            # the least change: cells with equal payoffs share their mass
            q[cells] -= np.linalg.lstsq(np.vstack((across, np.ones(cells.size))), wrong)[0]
            if not np.abs(q).max() <= 10.0:
                return start
        if q.min() >= 0.0:
            value: Array = q / q.sum()
            return value
        cells = cells[q[cells] > 0.0]
    return start
