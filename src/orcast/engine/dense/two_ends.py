"""Mass at the two ends of the cells: what wins for quantiles and intervals alone, whatever they are owed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.kernels.equilibrium import field_tables_arrays
from orcast.payoffs import CellPayoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff

Array = NDArray[np.float64]

# A zero on a level is played this much below it, relatively: rounding must not carry it past the level.
BELOW = 1e-13


def two_ends(cell_payoffs: Sequence[CellPayoff], owed: Sequence[Array], cells: int) -> Array | None:
    """Masses at the ends for the quantiles and intervals of a sum; None: there are none, on one axis."""
    levels, pulls = [], []
    for cell_payoff, s in zip(cell_payoffs, owed, strict=True):
        quantiles = cell_payoff.quantiles if isinstance(cell_payoff, IntervalCellPayoff) else cell_payoff
        if isinstance(quantiles, QuantileCellPayoff) and quantiles.bins is None:
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
    """The mass at the low end, in O(log M): `knots` are H at 0 and at the levels, `slopes` h right of these."""
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
        return left  # one level, or nothing but rounding
    u = left + (right - left) * float(knots[a] / (knots[a] - knots[b]))
    return max(min(u, right * (1.0 - BELOW)), left)
