"""Half-space oracles, exact up to a stated tolerance, for the notions of calibration of the paper's appendix C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.minimax import two_ends
from orcast.engine.dense.priors import FinitePrior, GridPrior, Prior
from orcast.engine.dense.search import CandidateSearch, DenseRound, HalfSpaceClaim, log_masses, masses_of
from orcast.engine.dense.solver import LogitSolver
from orcast.payoffs import CellPayoff, DecisionCalibration, MomentBasedCalibration, SimplexCalibration, SwapRegret
from orcast.payoffs.cell_payoffs import softmax
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import Binary, FiniteSpace, Interval, OrderedSpace

Array = NDArray[np.float64]
Gap = Callable[[float], float]
Equations = Callable[[Array, Array, float], tuple[Array, Array]]

# `BinaryRoot`: from the expert's probability on, a change of sign is searched in steps of this size, then bracketed
# this closely.
ROOT_STEP, ROOT_TOLERANCE = 1.0 / 32.0, 1e-12

# --- `LogitPath`

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


class ExactOracle:
    """Options of an exact oracle, a data class."""

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


class ExactSolver:
    """Propose one forecast per round, without a temperature or a warm start."""

    temperature = 1.0


def run_rounds(search: CandidateSearch, masses: Array) -> None:
    """Propose masses whose largest <S, payoff> over the cells is that over all outcomes."""
    lp = log_masses(masses)
    search.consider(lp, 0.0)
    search.claim = HalfSpaceClaim(worst_value(search, lp) / search.weight)


def worst_value(search: CandidateSearch, lp: Array) -> float:
    """Largest <S_+, payoff(p, k)> over all cells k, for the masses as the search rounds them."""
    p = np.exp(lp)
    p /= p.sum()
    value = np.zeros(p.size)
    for cell_payoff, cumulative in zip(search.cell_payoffs, search.cumulative, strict=True):
        value += cumulative @ cell_payoff.table(p)
    return float(value.max())


def measured(search: CandidateSearch, p: Array) -> HalfSpaceClaim:
    """Largest <S, payoff> over the cells, and the amount by which that over all outcomes may exceed it."""
    value, top = worst_value(search, log_masses(p)), np.zeros(p.size)
    for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
        top += 0.5 * cell_payoff.assess(s, 0.0, p)[0]
    return HalfSpaceClaim(value / search.weight, max(float(top.max()) - value, 0.0) / search.weight)


def expert_alone(bound_payoff: BoundPayoff) -> FinitePrior:
    """Prior on a finite space without learning: the expert."""
    return FinitePrior(bound_payoff, np.empty((0, 3)))


# --- quantiles: all mass at the two ends


@dataclass(frozen=True)
class TwoCells(ExactOracle):
    """Half-space oracle for quantiles on an `Interval`: mass u at its low end, 1 - u at the high end.

    Notes
    -----
    For sums of `QuantileCalibration` and `IntervalCalibration`. The ledger sums to s_a on the union of the levels; with

        H(u) = sum_a s_a (min(u, a) - a u),        h = H',

    outcomes at the low end, between the ends and at the high end have the inner products H(u) / u, h(u) and -H(u) / (1
    - u). All three are at most 0 at u = 0 if h(0) <= 0, at u = 1 if h(1) <= 0, else at a downward zero of H, found in
    O(M) for M levels. This is the oracle of the paper's appendix C.1.2, corrected (docs/theory.md). Its forecasts are
    step functions.

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper import TwoCells
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration([0.25, 0.75]), oracle=TwoCells())
    >>> for y in (0.3, 0.9, 1.0):
    ...     p = recal.predict()
    ...     recal.update(y)
    >>> p.support(), p.certificate.holds, p.certificate.half_space < 1e-12
    ((0.0, 1.0), True, True)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not isinstance(bound_payoff.space, Interval):
            raise TypeError(f"expected an Interval for TwoCells, got {bound_payoff.space!r}")
        for part in bound_payoff.parts:
            if part.kind not in ("quantile", "interval"):
                raise TypeError(
                    f"expected QuantileCalibration and IntervalCalibration only for TwoCells, got {part.payoff!r}"
                )
        low, high = bound_payoff.space.low, bound_payoff.space.high
        prior = GridPrior(bound_payoff, 3, np.array([low, low, high, high]))
        return DenseEngine(bound_payoff, prior, EndsSolver(), sizes)


class EndsSolver(ExactSolver):
    """Forecasts mass at the two ends."""

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose one forecast."""
        ends = two_ends(search.cell_payoffs, search.cumulative, 3)
        run_rounds(search, np.array([0.0, 0.0, 1.0]) if ends is None else ends)


# --- events: a root of one continuous function on [0, 1]


@dataclass(frozen=True)
class BinaryRoot(ExactOracle):
    """Half-space oracle on `Binary`, for every payoff.

    Notes
    -----
    With v_k(p) = <S_+, payoff(p, k)> and d = v_1 - v_0 it forecasts p = 0 if d(0) <= 0, p = 1 if d(1) >= 0, else a zero
    of d. By (semi-)consistency

        v_1 <= (1 - p) d(p),        v_0 <= -p d(p),

    so both are at most 0 there. The search goes from the expert's p (1/2 without one) in the direction of d, by steps
    of 1/32, to the first change of sign, then bisects. It is the scalar case of the paper's appendix C.2
    (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper import BinaryRoot
    >>> recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(), oracle=BinaryRoot())
    >>> for y in (1, 0, 1, 1):
    ...     p = recal.predict(0.7)
    ...     recal.update(y)
    >>> p.certificate.holds, p.certificate.half_space < 1e-12, p.certificate.approximation
    (True, True, 0.0)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not isinstance(bound_payoff.space, Binary):
            raise TypeError(f"expected Binary() for BinaryRoot, got {bound_payoff.space!r}")
        return DenseEngine(bound_payoff, expert_alone(bound_payoff), RootSolver(), sizes)


class RootSolver(ExactSolver):
    """Forecast the zero of d next to the expert's probability."""

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose the better end of the bracket: d may jump, where the unit of a regret vanishes."""
        ends = nearest_root(gap_of(search), float(setup.cell_grid.expert[1]))
        found = [np.array([1.0 - q, q]) for q in ends]
        run_rounds(search, min(found, key=lambda masses: worst_value(search, log_masses(masses))))


def gap_of(search: CandidateSearch) -> Gap:
    """Difference d = v_1 - v_0 as a function of the probability."""
    parts = [(each, s) for each, s in zip(search.cell_payoffs, search.cumulative, strict=True) if s.any()]

    def gap(q: float) -> float:
        p, value = np.array([1.0 - q, q]), 0.0
        for cell_payoff, s in parts:
            # the units of regrets move with p
            regret = isinstance(cell_payoff, RegretCellPayoff)
            field = s @ cell_payoff.table(p) if regret else cell_payoff.field(s, p)
            value += float(field[1] - field[0])
        return value

    return gap


def nearest_root(gap: Gap, start: float) -> tuple[float, float]:
    """Bracket of the first zero or jump of d from `start` in its direction, or the end of [0, 1] there, twice."""
    a, sign = start, float(np.sign(gap(start)))
    while sign != 0.0 and a != max(sign, 0.0):
        b = min(max(a + sign * ROOT_STEP, 0.0), 1.0)
        value = sign * gap(b)
        if value == 0.0:
            return b, b
        if value < 0.0:
            while abs(b - a) > ROOT_TOLERANCE:
                middle = 0.5 * (a + b)
                a, b = (middle, b) if sign * gap(middle) > 0.0 else (a, middle)
            return a, b
        a = b
    return a, a


# --- decisions, moments and simplices: all mass on the cheapest cells, whose prices are -v_k(p)


@dataclass(frozen=True)
class LogitPath(ExactOracle):
    """Half-space oracle of the payoffs whose prices depend on the forecast, and of their sums (paper, appendix C.2).

    Notes
    -----
    For `DecisionCalibration`, `SwapRegret`, `MomentBasedCalibration` and `SimplexCalibration`. By consistency p solves
    v_k(p) <= 0 for every cell k if and only if it has mass only where v_k(p) is largest. It follows the path

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
