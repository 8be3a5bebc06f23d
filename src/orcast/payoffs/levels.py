"""Adaptive conformal inference as a payoff: which of the expert's quantiles is issued as the level-quantile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import CellPayoff, Part, Payoff, wrong_space
from orcast.payoffs.calibration import checked_grid, increasing, shares
from orcast.spaces import OrderedSpace, Space

Array = NDArray[np.float64]


class LevelCellPayoff(CellPayoff):
    """hat_v(alpha) (w_k - level): w_k is the share of cell k below q_level(p), alpha the expert's mass below it."""

    def __init__(self, level: float, grid: int, expert: Array) -> None:
        self.level, self.grid, self.expert = level, grid, expert
        self.size = grid + 1
        self._levels = np.array([level])

    def below(self, p: Array) -> Array:
        """The share of each cell that lies below the level-quantile."""
        before = np.concatenate(([0.0], np.cumsum(p)[:-1]))
        return shares(self._levels, before, p)[0]

    def expert_level(self, below: Array) -> float:
        """alpha: the level of that quantile under the expert."""
        return min(max(float(self.expert @ below), 0.0), 1.0)

    def _vertex(self, alpha: float) -> tuple[int, float]:
        """The vertex below alpha, and the share of the next one."""
        place = alpha * self.grid
        left = min(int(place), self.grid - 1)
        return left, place - left

    def pull(self, s: Array, alpha: float) -> float:
        """c(alpha): what is owed, between the vertices."""
        left, share = self._vertex(alpha)
        return float((1.0 - share) * s[left] + share * s[left + 1])

    def table(self, p: Array) -> Array:
        below = self.below(p)
        left, share = self._vertex(self.expert_level(below))
        out = np.zeros((self.size, p.size))
        out[left] = (1.0 - share) * (below - self.level)
        out[left + 1] = share * (below - self.level)
        return out

    def field(self, s: Array, p: Array) -> Array:
        """c(alpha) (w_k - level)."""
        below = self.below(p)
        return self.pull(s, self.expert_level(below)) * (below - self.level)

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array:
        """Mass below the quantile moves it down, within its cell k: dw_k = -(mass added below) / p_k."""
        below = self.below(p)
        alpha = self.expert_level(below)
        out = np.zeros((p.size, p.size))
        (inside,) = np.nonzero((below > 0.0) & (below < 1.0))
        if not inside.size:
            return out
        k = int(inside[0])
        moves = np.zeros(p.size)
        moves[:k] = -1.0 / p[k]
        moves[k] = -below[k] / p[k]
        left, _ = self._vertex(alpha)
        slope = float(s[left + 1] - s[left]) * self.grid * float(self.expert[k])
        out += np.outer(below - self.level, slope * moves)
        out[k] += self.pull(s, alpha) * moves
        return out


class LevelCalibration(Payoff):
    """The level-quantile is an alpha-quantile of the expert (adaptive conformal inference; paper, C.1.1).

        payoff_v = hat_v(alpha) (1{y <= q_level(p)} - level),    alpha = F_x(q_level(p))

    on average over the outcome's cell, where alpha is the mass that the expert x sees below the forecast's
    level-quantile, and the hat functions are piecewise linear on the vertices v = 0, 1/grid, ..., 1.  Their sum is the
    error of the coverage.  Squared bound: max(level, 1 - level)^2.  `ConformalLevel` plays it exactly.  With several
    experts x is their pool; without any it is the even forecast.

    >>> import orcast as oc
    >>> part = LevelCalibration(0.9).on(oc.Interval(0, 1))
    >>> part.size, round(part.bound, 3)
    (21, 0.81)
    """

    name = "level"

    def __init__(
        self, level: float = 0.9, *, grid: int = 20, context: Context | None = None, weight: float = 1.0
    ) -> None:
        self.level = float(increasing([level], "level strictly between 0 and 1", 0.0, 1.0)[0])
        self.grid = checked_grid(grid)
        self._settings(context, weight)

    def on(self, space: Space, experts: int = 1) -> Part:
        if not isinstance(space, OrderedSpace):
            raise wrong_space(self, "an ordered space such as Interval(low, high)", space)
        bound = max(self.level, 1.0 - self.level) ** 2
        return Part(
            self,
            self.grid + 1,
            bound,
            "general",
            lambda cell_grid, state: LevelCellPayoff(self.level, self.grid, cell_grid.expert),
        )

    def summary(self, mean: Array) -> float:
        """The error of the coverage, the largest of any group."""
        return float(np.abs(mean.sum(axis=-1)).max())

    def summary_bound(self, norm: float) -> float:
        """A sum over the vertices (Cauchy and Schwarz)."""
        return norm * math.sqrt(self.grid + 1)

    def _plain(self) -> dict[str, Any]:
        return {"level": self.level, "grid": self.grid}
