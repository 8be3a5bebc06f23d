"""Gradients for ORCA: derivative of a mixture of the cells' values by the masses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orcast.constants import TINY_MASS
from orcast.payoffs import CellPayoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff
from orcast.payoffs.regret import RegretCellPayoff

Array = NDArray[np.float64]

# The step of a difference.
STEP = 1e-6


def slopes(cell_payoff: CellPayoff, s: Array, p: Array, weights: Array) -> Array:
    """Derivative of sum_k weights_k <s, payoff(p, k)> by the masses, for weights with sum 1.

    `jacobian` omits a constant for each mass. It follows from sum_k p_k <s, payoff(p, k)> = 0 (consistency), or for
    regrets from proper scores, which are smallest at the true distribution. Unknown derivatives are replaced by
    differences. Quantile levels are smoothed, because the true derivative vanishes between them.
    """
    if isinstance(cell_payoff, IntervalCellPayoff):
        return _smooth_quantiles(cell_payoff.quantiles, cell_payoff.on_levels(s), p, weights)
    if isinstance(cell_payoff, QuantileCellPayoff):
        return _smooth_quantiles(cell_payoff, s, p, weights)
    if cell_payoff.explicit:
        return -(s @ cell_payoff.table(p))
    jacobian = cell_payoff.jacobian(s, p, exact=True)
    if jacobian is None:
        return _differences(cell_payoff, s, p, weights)
    moved: Array = (weights - p) @ jacobian
    return moved if isinstance(cell_payoff, RegretCellPayoff) else moved - s @ cell_payoff.table(p)


def _smooth_quantiles(quantiles: QuantileCellPayoff, s: Array, mass: Array, weight: Array) -> Array:
    """Derivative with each level spread to its neighbours.

    If the worst cell's share of [0, 1] contains no level, the payoff is constant and its derivative vanishes.
    """
    values = np.concatenate((np.cumsum(s[::-1])[::-1], [0.0])) - float(s @ quantiles.levels)
    places = np.concatenate(([0.0], 0.5 * (quantiles.levels[:-1] + quantiles.levels[1:]), [1.0]))
    heights = np.concatenate(([0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(places))))
    edges = np.concatenate(([0.0], np.cumsum(mass)))
    h = np.interp(edges, places, values)
    i = np.clip(np.searchsorted(places, edges, side="left") - 1, 0, places.size - 2)
    height = heights[i] + 0.5 * (edges - places[i]) * (values[i] + h)
    # within one piece the mean is that of the ends: differences of heights over a tiny mass are rounding errors
    safe = np.maximum(mass, TINY_MASS)
    v = np.where((mass <= TINY_MASS) | (np.diff(i) == 0), 0.5 * (h[1:] + h[:-1]), np.diff(height) / safe)
    by_edge = weight * (h[1:] - v) / safe
    by_edge[:-1] += (weight * (v - h[:-1]) / safe)[1:]
    by_edge[-1] = 0.0
    value: Array = np.cumsum(by_edge[::-1])[::-1]
    return value


def _differences(cell_payoff: CellPayoff, s: Array, p: Array, weights: Array) -> Array:
    out = np.empty(p.size)
    for j in range(p.size):
        here = (1.0 - STEP) * p
        here[j] += STEP
        there = (1.0 + STEP) * p
        there[j] = max(there[j] - STEP, 0.0)
        gap = cell_payoff.table(here) - cell_payoff.table(there / there.sum())
        out[j] = float((s @ gap) @ weights) / (2.0 * STEP)
    return out
