"""ORCA, the paper's oracle (section 5, algorithm 2): gradient descent on the worst case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import TINY_MASS
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import GridPrior
from orcast.engine.dense.search import CandidateSearch, DenseRound, log_masses
from orcast.paper.exact import expert_alone, measured
from orcast.payoffs import CellPayoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff
from orcast.payoffs.cell_payoffs import softmax
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import FiniteSpace, OrderedSpace
from orcast.spaces.base import whole
from orcast.validation import number

Array = NDArray[np.float64]

# Step of a difference.
STEP = 1e-6
# Values that differ by this share of their range are tied.
TIED = 1e-9
# No cell starts with less than this share of an even mass.
LEAST = 1e-4
# Adam's discounts of the mean gradient and of its square.
FIRST, SECOND = 0.9, 0.999


@dataclass(frozen=True)
class Orca:
    """ORCA (paper, section 5, algorithm 2): Adam on the worst case of a forecast, the best iterate kept.

    Parameters
    ----------
    steps, rate
        Steps of Adam (Kingma and Ba 2015), and the size of a step in each log mass.
    cells
        Number of even cells; without bounds they divide the round's window.
    jitter, seed
        Noise added to the start, which is the expert's forecast.

    Notes
    -----
    The forecast is a histogram, p = softmax(a), and the search minimises over a

        max_k  E_{y ~ q_k} <S, payoff(p, y)>,    q_k uniform on cell k

    It ends when this is at most zero, or after `steps`; there is no guarantee that it becomes zero. `certificate.holds`
    is the slack rule, exact over all outcomes, `certificate.half_space` the worst case over the cells, over the rounds,
    and `certificate.approximation` by how much the true maximum may exceed that.

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Orca(steps=400))
    >>> p = recal.predict(); recal.update(0.3)
    >>> recal.predict().certificate.holds
    True
    """

    steps: int = 400
    rate: float = 0.03
    cells: int = 50
    jitter: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (("steps", 10**6), ("cells", 1000), ("seed", 10**9)):
            object.__setattr__(self, name, whole(getattr(self, name), name, int(name != "seed"), most))
        for name, least, largest in (("rate", 1e-12, 1e3), ("jitter", 0.0, 10.0)):
            object.__setattr__(self, name, number(getattr(self, name), name, least, largest))

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if isinstance(bound_payoff.space, FiniteSpace):
            return DenseEngine(bound_payoff, expert_alone(bound_payoff), OrcaSolver(self), sizes)
        space = bound_payoff.space
        assert isinstance(space, OrderedSpace)
        if self.cells > space.cells and not math.isfinite(space.high - space.low):
            raise ValueError(f"expected at most the {space.cells} cells of {space!r} for Orca, got {self.cells}")
        return DenseEngine(bound_payoff, GridPrior(bound_payoff, self.cells), OrcaSolver(self), sizes)

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "Orca", **vars(self)}


class OrcaSolver:
    """Search for the forecast of a round."""

    temperature = 1.0

    def __init__(self, options: Orca) -> None:
        self.options = options

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Search; the ledger's slack rule judges what was found."""
        options = self.options
        parameters = np.log((1.0 - LEAST) * setup.prior + LEAST / setup.prior.size)
        if options.jitter > 0.0:
            rng = np.random.default_rng([options.seed, setup.rounds])
            parameters = parameters + options.jitter * rng.standard_normal(parameters.size)
        p = self._search(search, parameters)
        search.consider(log_masses(p), 0.0)
        search.claim = measured(search, p)

    # --- the search
    @staticmethod
    def _field(search: CandidateSearch, p: Array) -> Array:
        """Mean of <S, payoff> over each cell."""
        v = np.zeros(p.size)
        for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
            if s.any():
                regret = isinstance(cell_payoff, RegretCellPayoff)
                v += cell_payoff.field(s, p) if regret else s @ cell_payoff.table(p)
        return v

    def _search(self, search: CandidateSearch, parameters: Array) -> Array:
        """Best masses of a gradient descent on the worst case."""
        first, second = np.zeros(parameters.size), np.zeros(parameters.size)
        best, found = parameters, math.inf
        pairs = [
            (cell_payoff, s) for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True) if s.any()
        ]
        for step in range(1, self.options.steps + 2):
            p = softmax(parameters)
            search.rescale(p)
            reach = self._field(search, p)
            if reach.max() < found:
                best, found = parameters, float(reach.max())
            if found <= 0.0 or step > self.options.steps:
                break
            weights = np.eye(reach.size)[first_of_largest(reach)]
            slope = np.sum([slopes(cell_payoff, s, p, weights) for cell_payoff, s in pairs], axis=0)
            gradient = p * (slope - p @ slope)
            first = FIRST * first + (1.0 - FIRST) * gradient
            second = SECOND * second + (1.0 - SECOND) * gradient**2
            size = np.sqrt(second / (1.0 - SECOND**step)) + 1e-12
            parameters = parameters - self.options.rate * (first / (1.0 - FIRST**step)) / size
        return softmax(best)


def first_of_largest(values: Array) -> int:
    """Place of the largest value, of ties the first."""
    top = float(values.max())
    return int(np.argmax(values >= top - TIED * (top - float(values.min()))))


# --- gradients


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
