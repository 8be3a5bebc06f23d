"""Input of the compiled search of ORCA: the payoffs of a round as tables on its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orcast.kernels.equilibrium import field_tables_arrays
from orcast.kernels.orca import ExpertTables, OrcaProblem, QuantileTables, cell_crps
from orcast.payoffs import CellGrid, CellPayoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff
from orcast.payoffs.recipe import BoundedCellPayoff
from orcast.payoffs.regret import RegretCellPayoff
from orcast.scores import CRPS, MSE

if TYPE_CHECKING:
    from orcast.paper.orca import Orca

Array = NDArray[np.float64]

NOTHING: Array = np.empty(0)


def compiles(cell_payoff: CellPayoff) -> bool:
    """Whether the compiled search can play a payoff."""
    if isinstance(cell_payoff, RegretCellPayoff):
        return cell_payoff.fixed is None and all(isinstance(score, (CRPS, MSE)) for score in cell_payoff.scores)
    if isinstance(cell_payoff, QuantileCellPayoff):
        return cell_payoff.bins is None
    inner = cell_payoff.cell_payoff if isinstance(cell_payoff, BoundedCellPayoff) else cell_payoff
    return isinstance(cell_payoff, IntervalCellPayoff) or (inner.explicit and hasattr(inner, "witness"))


def problem_of(
    options: Orca, pairs: Iterable[tuple[CellPayoff, Array]], cell_grid: CellGrid, nature: Array, soft: float
) -> OrcaProblem:
    """The worst case of payoffs and what is owed on each, against the components of a Nature."""
    centre = options.adversary == "dirac"
    middle = 0.5 * (cell_grid.left + cell_grid.right)
    pull, pull_at = np.zeros(cell_grid.cells), np.zeros(cell_grid.cells)
    grids: list[tuple[Array, Array]] = []
    regrets: list[tuple[RegretCellPayoff, Array]] = []
    for cell_payoff, s in pairs:
        if isinstance(cell_payoff, QuantileCellPayoff):
            grids.append((cell_payoff.levels, s))
        elif isinstance(cell_payoff, IntervalCellPayoff):
            grids.append((cell_payoff.quantiles.levels, cell_payoff.on_levels(s)))
        elif isinstance(cell_payoff, RegretCellPayoff):
            regrets.append((cell_payoff, s))
        else:
            witness = cell_payoff.witness  # type: ignore[attr-defined]
            pull += s @ witness.mean
            if centre and not witness.flat:
                pull_at += [float(s @ witness.point(y, k)) for k, y in enumerate(middle.tolist())]
            else:
                pull_at += s @ witness.mean
    return OrcaProblem(
        width=cell_grid.right - cell_grid.left,
        middle=middle,
        ends=np.array([cell_grid.left[0], cell_grid.right[-1]]),
        pull=pull,
        pull_at=pull_at,
        quantiles=quantile_tables(grids),
        experts=expert_tables(regrets, cell_grid, centre),
        nature=nature,
        at_centre=centre,
        temperature=soft,
        smooth=options.smooth,
    )


def expert_tables(regrets: Sequence[tuple[RegretCellPayoff, Array]], cell_grid: CellGrid, centre: bool) -> ExpertTables:
    """The experts to whom something is owed."""
    rows: list[tuple[Array, Array, Array]] = []
    for cell_payoff, s in regrets:
        for e in np.flatnonzero(cell_payoff.present):
            due, loss = np.zeros(2), np.ones(2)
            for i, score in enumerate(cell_payoff.scores):
                row = 0 if isinstance(score, CRPS) else 1
                due[row], loss[row] = s.reshape(cell_payoff.usual.shape)[i, e], cell_payoff.usual[i, e]
            if due.any():
                rows.append((np.ascontiguousarray(cell_grid.experts[e]), due, loss))
    masses = np.array([x for x, _, _ in rows]).reshape(len(rows), cell_grid.cells)
    width = cell_grid.right - cell_grid.left
    crps = np.array([cell_crps(width, x, centre) for x in masses]).reshape(masses.shape)
    owed, usual = (np.array([row[i] for row in rows]).reshape(len(rows), 2).T.copy() for i in (1, 2))
    return ExpertTables(masses, crps, owed, usual)


def quantile_tables(grids: Sequence[tuple[Array, Array]]) -> QuantileTables:
    """H of all levels together, and its slope h with each grid of levels smeared by itself.

    A level is smeared from half way to the one below to half way to the one above, or to the end.  Where the worst
    cell's share of [0, 1] holds no level, h itself is constant and its gradient vanishes.
    """
    if not grids:
        zero = np.zeros(1)
        return QuantileTables(NOTHING, zero, zero, NOTHING, NOTHING, NOTHING)
    levels = np.unique(np.concatenate([grid for grid, _ in grids]))
    owed = np.zeros(levels.size)
    lines = []
    for grid, s in grids:
        owed[np.searchsorted(levels, grid)] += s
        _, slopes = field_tables(grid, s)
        lines.append((np.concatenate(([0.0], 0.5 * (grid[1:] + grid[:-1]), [1.0])), slopes))
    places = np.unique(np.concatenate([line[0] for line in lines]))
    values = np.sum([np.interp(places, *line) for line in lines], axis=0)
    rise = 0.5 * (values[1:] + values[:-1]) * np.diff(places)
    return QuantileTables(levels, *field_tables(levels, owed), places, values, np.concatenate(([0.0], np.cumsum(rise))))


def field_tables(levels: Array, owed: Array) -> tuple[Array, Array]:
    """H at 0 and at the levels, and its slopes between them."""
    knots, slopes = np.empty(levels.size + 1), np.empty(levels.size + 1)
    field_tables_arrays(owed, levels, knots, slopes)
    return knots, slopes
