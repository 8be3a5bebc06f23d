"""The exact oracle for one level: a root of what is owed, and a forecast that has its quantile there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.constants import TINY_MASS
from orcast.engine.base import NO_LEARNING
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import OrderedPrior
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.dense.solver import DenseRound
from orcast.paper.exact.base import ExactSolver, play
from orcast.payoffs.levels import LevelCalibration, LevelCellPayoff
from orcast.spaces import OrderedSpace

Array = NDArray[np.float64]


def level_engine(bound_payoff: BoundPayoff, level: float, sizes: Sequence[int] | None = None) -> DenseEngine:
    """The engine that plays LevelCalibration of one level exactly, for `ConformalLevel`."""
    if not isinstance(bound_payoff.space, OrderedSpace):
        raise TypeError(
            f"expected an ordered space such as Interval(low, high) for ConformalLevel, got {bound_payoff.space!r}"
        )
    grids = []
    for payoff in bound_payoff.payoffs:
        if not isinstance(payoff, LevelCalibration) or payoff.level != level:
            raise ValueError(f"expected LevelCalibration({level:g}) for ConformalLevel({level:g}), got {payoff!r}")
        grids.append(payoff.grid)
    if not grids:
        raise ValueError(f"expected LevelCalibration({level:g}) for ConformalLevel({level:g}), got no payoff")
    prior = OrderedPrior(bound_payoff, 1.0, NO_LEARNING)
    return DenseEngine(bound_payoff, prior, LevelSolver(grids), sizes)


class LevelSolver(ExactSolver):
    """Plays the expert, bent so that its quantile is where the ledger wants it: adaptive conformal inference, exactly.

    With c(alpha) = sum_v hat_v(alpha) S_v the inner product is c(alpha) (w_k - level), where w_k in [0, 1] is the share
    of the outcome's cell below the quantile that is played.  So a root of c wins, whatever comes.  Which alpha can be
    played at all is up to the outer cells: from alpha_0 = level x_0, all mass in the bottom cell, up to
    alpha_1 = 1 - (1 - level) x_K, all mass in the top cell, for an expert with masses x_0, ..., x_K.  If
    c(alpha_0) >= 0 the former wins: w is the level in the bottom cell and 0 above.  If c(alpha_1) <= 0 the latter does:
    w is the level in the top cell and 1 below.  Otherwise there is a root in between.  (Where c(alpha) is not zero,
    consistency leaves no other choice than all mass in one cell.)

    *Which root.*  Where c(level) < 0 too few outcomes were covered when the expert was believed, and alpha goes up,
    else down: by steps of 1, 2, 4, ... vertices to a change of sign, then by bisection over them, then on one straight
    piece.  There c goes from - to +, as it should: low quantiles cover too seldom.

    *The forecast* has its level-quantile exactly where the expert has its alpha-quantile, in cell k at the share s,
    say.  Below it is the expert, scaled to the mass `level` in all, and above it too, scaled to 1 - level; the cell k
    has the mass that both give it, and the others make up for the two halves of it being equally dense.

    *Cost.*  O(log grid) values of c, and O(cells) to write the forecast down.  *Tolerance.*  Rounding of alpha, some
    1e-15 / min(level, 1 - level), times the slope of c; the payoff is constant on each cell, so the certificate says
    the very value, with `approximation` 0.

    This is the deterministic algorithm of the paper's appendix C.1.1, with payoffs that are continuous in alpha.  Its
    randomised one has the wrong sign: low levels have S < 0 and high ones S > 0, and the mixture of two such has a
    positive inner product with an outcome between their quantiles.
    """

    def __init__(self, grids: Sequence[int]) -> None:
        self.grids = [np.linspace(0.0, 1.0, grid + 1) for grid in grids]
        self.vertices = self.grids[0] if len(set(grids)) == 1 else np.unique(np.concatenate(self.grids))

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """One forecast."""
        cell_payoff = search.cell_payoffs[0]
        assert isinstance(cell_payoff, LevelCellPayoff)
        level, x = cell_payoff.level, cell_payoff.expert
        c = np.zeros(self.vertices.size)
        for own, owed in zip(self.grids, search.owed, strict=True):
            c += owed if own.size == c.size else np.interp(self.vertices, own, owed)
        low, high = level * float(x[0]), 1.0 - (1.0 - level) * float(x[-1])
        alpha = root_towards(self.vertices, c, min(max(level, low), high), low, high)
        play(search, bent(x, level, alpha, low, high))


def root_towards(vertices: Array, c: Array, start: float, low: float, high: float) -> float:
    """The first root of the interpolated c that it points to from `start`, or `low` or `high` if there is none.

    It looks at O(log) vertices: in steps that double up to a change of sign, then by bisection.

    >>> root_towards(np.linspace(0.0, 1.0, 5), np.array([-1.0, -1.0, 0.0, -1.0, 1.0]), 0.7, 0.0, 1.0)
    0.875
    """

    def value(alpha: float) -> float:
        right = min(max(int(np.searchsorted(vertices, alpha, side="right")), 1), vertices.size - 1)
        a, b = float(vertices[right - 1]), float(vertices[right])
        share = (alpha - a) / (b - a)
        return float((1.0 - share) * c[right - 1] + share * c[right])

    here = value(start)
    if here == 0.0:
        return start
    up = here < 0.0
    end = high if up else low
    # the vertices on the way, the nearest first, then the end
    first = int(np.searchsorted(vertices, start, side="right" if up else "left")) - (0 if up else 1)
    last = int(np.searchsorted(vertices, end, side="left" if up else "right")) - (1 if up else 0)
    count = max(last - first if up else first - last, -1) + 1

    def point(i: int) -> float:
        if i < 0:
            return start
        return end if i >= count else float(vertices[first + i if up else first - i])

    near, far, step = -1, 0, 1
    while (value(point(far)) < 0.0) == up and value(point(far)) != 0.0:
        if far == count:
            return end
        near, far, step = far, min(far + step, count), 2 * step
    while far - near > 1:
        middle = (near + far) // 2
        at = value(point(middle))
        if at != 0.0 and (at < 0.0) == up:
            near = middle
        else:
            far = middle
    a, b = point(near), point(far)
    at_a, at_b = value(a), value(b)
    return a + (b - a) * (at_a / (at_a - at_b))


def bent(x: Array, level: float, alpha: float, low: float, high: float) -> Array:
    """Masses whose level-quantile is the alpha-quantile of x, and which are like x on either side of it."""
    p = np.zeros(x.size)
    if alpha <= low or alpha >= high:
        p[0 if alpha <= low else -1] = 1.0
        return p
    below = np.cumsum(x)
    k = min(int(np.searchsorted(below, alpha, side="left")), x.size - 1)
    start = float(below[k - 1]) if k else 0.0
    s = min(max((alpha - start) / float(x[k]), 0.0), 1.0)
    if k == 0:
        # nothing beyond an outer cell to make up for; rounding must not carry the quantile out of it
        own = level / s if s > level else 1.0
    elif k == x.size - 1:
        own = (1.0 - level) / (1.0 - s) if s < level else 1.0
    else:
        own = float(x[k]) * (s * level / alpha + (1.0 - s) * (1.0 - level) / (1.0 - alpha))
        most = min(level / s if s > 0.0 else 1.0, (1.0 - level) / (1.0 - s) if s < 1.0 else 1.0)
        own = min(max(own, 4.0 * TINY_MASS), most)
    p[k] = own
    # a mass that counts as none would hide where the quantile is
    like = x + 4.0 * TINY_MASS / min(level, 1.0 - level)
    if k:
        p[:k] = max(level - s * own, 0.0) * like[:k] / like[:k].sum()
    if k < x.size - 1:
        p[k + 1 :] = max(1.0 - level - (1.0 - s) * own, 0.0) * like[k + 1 :] / like[k + 1 :].sum()
    return p
