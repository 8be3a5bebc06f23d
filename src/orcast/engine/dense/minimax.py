"""Candidates that lower the worst cell's value, from several starting points.

Linearised around a forecast p, the worst value of (1 - reach) p + reach q is a matrix game in q, which the simplex
method solves; the reach decreases if the linearisation is poor. With few kinds of cells, a walk over a grid finds a
starting point close to a solution, and always ends (`simplicial`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.engine.dense.search import CandidateSearch, DenseRound, log_masses
from orcast.engine.dense.simplicial import walk
from orcast.kernels.equilibrium import field_tables_arrays
from orcast.payoffs import CellPayoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff

Array = NDArray[np.float64]

# Linearisations, the first and the least reach, and the step of a difference.
LINEARISATIONS, FIRST_REACH, LEAST_REACH, STEP = 40, 0.3, 1e-4, 1e-6
# Cost of a matrix game, in evaluations of the field, for each row and column.
COST_OF_GAME = 0.7
# Largest number of kinds of cells in a walk, grids of the walks in points per kind, and steps of a walk.
MOST_KINDS, GRIDS, STEPS = 8, (4, 16, 64, 256), 400
# Relative distance below a level at which a zero on it is forecast, so that rounding does not exceed the level.
BELOW = 1e-13
# Numbers of a tableau that are rounding errors, and pivots for each row and column.
NOTHING, PIVOTS = 1e-10, 6


class Kinds:
    """Cells that are equal for all parts of a payoff and every forecast; the prior divides their mass."""

    def __init__(self, cell_payoffs: Sequence[CellPayoff], prior: Array) -> None:
        n = prior.size
        known = [cell_payoff.features for cell_payoff in cell_payoffs]
        of_cell = np.arange(n)
        if known and all(rows is not None for rows in known):
            rows = np.concatenate([rows for rows in known if rows is not None])
            of_cell = np.unique(rows, axis=1, return_inverse=True)[1].reshape(n)
        self.count = int(of_cell.max()) + 1
        self.first = np.array([int(np.argmax(of_cell == kind)) for kind in range(self.count)])
        share = np.maximum(prior, 1e-12)
        self.spread = np.zeros((n, self.count))
        self.spread[np.arange(n), of_cell] = share / np.bincount(of_cell, share)[of_cell]
        self.of_cell = of_cell

    def masses(self, p: Array) -> Array:
        """Mass of each kind."""
        return np.bincount(self.of_cell, p, self.count).astype(np.float64)


def worst_values(search: CandidateSearch, p: Array) -> Array:
    """Half of the excess over the slack for an outcome in each cell; the certificate holds if none is positive."""
    linear, norm = search.assess(p)
    value: Array = 0.5 * (linear - norm.max() - search.free)
    return value


def changes(search: CandidateSearch, p: Array, kinds: Kinds) -> Array:
    """Change of the field from p towards each kind of cells, one column each."""
    towards = kinds.spread - p[:, None]
    total = np.zeros((p.size, kinds.count))
    for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
        if not s.any():
            continue
        matrix = derivative(cell_payoff, s, p)
        if matrix is not None:
            total += matrix @ towards
            continue
        search.left -= kinds.count * search.cost
        here = centred(cell_payoff, s, p)
        for j in range(kinds.count):
            total[:, j] += (centred(cell_payoff, s, p + STEP * towards[:, j]) - here) / STEP
    return total


def derivative(cell_payoff: CellPayoff, s: Array, p: Array) -> Array | None:
    """Derivative of <s, payoff> by the masses with the constants that `jacobian` omits; None if unknown.

    They follow from sum_k p_k <s, payoff(p, k)> = 0 (consistency), or for a one-sided payoff from proper scores, which
    are smallest at the true distribution.
    """
    v = cell_payoff.field(s, p)
    own: Array = p @ v - v
    if cell_payoff.explicit:
        return np.broadcast_to(own, (p.size, p.size))
    jacobian = cell_payoff.jacobian(s, p, exact=True)
    if jacobian is None:
        return None
    return jacobian + ((0.0 if cell_payoff.one_sided else own) - p @ jacobian)


def centred(cell_payoff: CellPayoff, s: Array, p: Array) -> Array:
    """Field of a consistent payoff, with mean zero."""
    v = cell_payoff.field(s, p)
    return v - p @ v


def lower_worst(search: CandidateSearch, start: Array, kinds: Kinds) -> Array:
    """Lower the worst value from a start until the certificate holds, progress stops, or the budget is spent."""
    p = kinds.spread @ kinds.masses(start)
    g = worst_values(search, p)
    reach = FIRST_REACH
    for _ in range(LINEARISATIONS):
        worst = float(g.max())
        if worst <= 0.0 or search.left <= 0.0:
            break
        search.rescale(p)
        slopes = changes(search, p, kinds)[kinds.first]
        while reach > LEAST_REACH:
            search.left -= search.cost + COST_OF_GAME * kinds.count
            x, hoped = lowest_maximum(g[kinds.first, None] + reach * slopes)
            there = (1.0 - reach) * p + reach * (kinds.spread @ x)
            value = worst_values(search, there)
            if value.max() < worst:
                break
            reach *= 0.3
        else:
            break
        gained = (worst - float(value.max())) / max(worst - hoped, 1e-300)
        p, g = there, value
        if gained > 0.5:
            reach = min(2.0 * reach, 1.0)
        elif gained < 0.25:
            reach *= 0.5
    return p


def starts_of(search: CandidateSearch, setup: DenseRound) -> list[Array]:
    """Starting masses: the two ends (for quantiles), the best so far, the prior, uniform masses, the expert."""
    even = np.full(setup.prior.size, 1.0 / setup.prior.size)
    ends = two_ends(search.cell_payoffs, search.cumulative, setup.prior.size)
    starts = [np.exp(search.best), setup.prior, even, setup.cell_grid.start]
    return starts if ends is None else [ends, *starts]


def descents(search: CandidateSearch, setup: DenseRound) -> Iterator[tuple[Array, float]]:
    """Forecasts with a lower worst value, from each start."""
    kinds = Kinds(search.cell_payoffs, setup.prior)
    if kinds.count == 1:
        return
    for number, start in enumerate(starts_of(search, setup)):
        yield log_masses(lower_worst(search, start, kinds)), 0.0
        if number and search.resolved:
            return


def walks(search: CandidateSearch, setup: DenseRound) -> Iterator[tuple[Array, float]]:
    """Descents from points of walks around a solution, on finer and finer grids."""
    kinds = Kinds(search.cell_payoffs, setup.prior)
    if not 1 < kinds.count <= MOST_KINDS:
        return
    for start in starts_of(search, setup):
        for place in places_around(search, start, kinds):
            yield log_masses(lower_worst(search, place, kinds)), 0.0
        if search.resolved:
            return


def places_around(search: CandidateSearch, start: Array, kinds: Kinds) -> Iterator[Array]:
    """Masses around a solution, on finer and finer grids."""
    pairs = [(c, s) for c, s in zip(search.cell_payoffs, search.cumulative, strict=True) if s.any()]

    def field(masses: Array) -> Array:
        p = kinds.spread @ masses
        search.left -= search.cost
        search.rescale(p)
        v = np.zeros(p.size)
        for cell_payoff, s in pairs:
            v += cell_payoff.field(s, p) if cell_payoff.one_sided else centred(cell_payoff, s, p)
        return v[kinds.first]

    masses = kinds.masses(start)
    for grid in GRIDS:
        most = int(min(STEPS, search.left / search.cost))
        corners, found = walk(field, masses, grid * kinds.count, most)
        if not found:
            return
        masses = corners.mean(axis=0)
        yield kinds.spread @ masses


def two_ends(cell_payoffs: Sequence[CellPayoff], cumulative: Sequence[Array], cells: int) -> Array | None:
    """Masses at the two ends, optimal for the quantiles and intervals of a sum; None if there are none."""
    levels, pulls = [], []
    for cell_payoff, s in zip(cell_payoffs, cumulative, strict=True):
        quantiles = cell_payoff.quantiles if isinstance(cell_payoff, IntervalCellPayoff) else cell_payoff
        if isinstance(quantiles, QuantileCellPayoff):
            levels.append(quantiles.levels)
            pulls.append(cell_payoff.on_levels(s) if isinstance(cell_payoff, IntervalCellPayoff) else s)
    if not levels:
        return None
    grid, at = np.unique(np.concatenate(levels), return_inverse=True)
    knots, slopes = np.empty(grid.size + 1), np.empty(grid.size + 1)
    field_tables_arrays(np.bincount(at, np.concatenate(pulls)), grid, knots, slopes)
    p = np.zeros(cells)
    p[0] = downward_zero(grid, knots, slopes)
    p[-1] = 1.0 - p[0]
    return p


def downward_zero(levels: Array, knots: Array, slopes: Array) -> float:
    """Mass at the low end, in O(log M): `knots` are H at 0 and at the levels, `slopes` h right of these."""
    if slopes[0] <= 0.0:
        return 0.0
    if slopes[-1] <= 0.0:
        return 1.0
    # H > 0 on the first level and H < 0 on the last
    a, b = 1, levels.size
    while b - a > 1:
        middle = (a + b) // 2
        if knots[middle] > 0.0:
            a = middle
        else:
            b = middle
    left, right = float(levels[a - 1]), float(levels[b - 1])
    if not knots[a] > knots[b]:
        return left  # one level, or only rounding errors
    u = left + (right - left) * float(knots[a] / (knots[a] - knots[b]))
    return max(min(u, right * (1.0 - BELOW)), left)


def lowest_maximum(matrix: Array) -> tuple[Array, float]:
    """Weights x >= 0 with sum 1 that minimise the maximum of matrix @ x, and this maximum.

    With all entries between 1 and 2 it is the linear program: maximise sum u with matrix @ u <= 1, for u = x / value.
    It is feasible at 0, so it needs no first phase.
    """
    rows, columns = matrix.shape
    low = float(matrix.min())
    span = max(float(matrix.max()) - low, 1e-300)
    tableau = np.ones((rows + 1, columns + 1))
    tableau[:-1, :-1] += (matrix - low) / span
    tableau[-1, :-1] = -1.0
    tableau[-1, -1] = 0.0
    outside, inside = np.arange(columns), np.arange(columns, columns + rows)
    for _ in range(PIVOTS * (rows + columns)):
        c = int(tableau[-1, :-1].argmin())
        if tableau[-1, c] >= -NOTHING:
            break
        column = tableau[:, c].copy()
        can = np.flatnonzero(column[:-1] > NOTHING)
        if not can.size:
            break
        r = int(can[(tableau[can, -1] / column[can]).argmin()])
        row = tableau[r] / column[r]
        tableau -= column[:, None] * row
        tableau[r] = row
        tableau[:, c] = -column / column[r]
        tableau[r, c] = 1.0 / column[r]
        outside[c], inside[r] = inside[r], outside[c]
    x = np.zeros(columns)
    used = inside < columns
    x[inside[used]] = np.maximum(tableau[:-1, -1][used], 0.0)
    total = float(x.sum())
    return x / total, (1.0 / total - 1.0) * span + low
