"""No regret: recalibration does not cost accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import OWN_EXPECTATION_WEIGHT
from orcast.contexts import Context
from orcast.payoffs.base import NOTHING, CellGrid, CellPayoff, Part, Payoff
from orcast.scores import CRPS, SCORES, Score
from orcast.spaces import Binary, OrderedSpace, Space
from orcast.validation import short

Array = NDArray[np.float64]

# Unit: the largest value of the score.
BOUND_OF_SCORE = "score"


def crps_gap(cell_grid: CellGrid, p: Array, x: Array) -> tuple[Array, Array, Array]:
    """Gap CRPS(p, y) - CRPS(x, y) in each cell: mean, smallest, largest; its slope 2 (F - G) is linear in a cell."""
    width = cell_grid.right - cell_grid.left
    F0, G0 = np.cumsum(p) - p, np.cumsum(x) - x
    F1, G1 = F0 + p, G0 + x
    # at the lowest outcome: the integral of (1 - F)^2 - (1 - G)^2
    squares = (F0 * F0 + F0 * F1 + F1 * F1 - G0 * G0 - G0 * G1 - G1 * G1) / 3.0
    start = float(width @ (squares - (F0 + F1 - G0 - G1)))
    rise = width * (F0 - G0 + F1 - G1)
    a = start + np.cumsum(rise) - rise
    b = a + rise
    low, high = np.minimum(a, b), np.maximum(a, b)
    turn = (F0 - G0) * (F1 - G1) < 0.0
    step = np.where(turn, F0 - G0 - F1 + G1, 1.0)
    vertex = np.where(turn, a + width * (F0 - G0) ** 2 / step, a)
    return a + width * (F0 - G0 + (p - x) / 3.0), np.minimum(low, vertex), np.maximum(high, vertex)


def score_gap(score: Score, cell_grid: CellGrid, p: Array, x: Array) -> tuple[Array, Array, Array]:
    """Gap score(p, y) - score(x, y) in each cell: mean, smallest, largest."""
    if not cell_grid.ordered:
        gap = score.on_cells(cell_grid.space, p) - score.on_cells(cell_grid.space, x)
        return gap, gap, gap
    if isinstance(score, CRPS):
        return crps_gap(cell_grid, p, x)
    middle = 0.5 * (cell_grid.left + cell_grid.right)
    mean, other = float(p @ middle), float(x @ middle)
    ends = [(mean - other) * (mean + other - 2.0 * y) for y in (cell_grid.left, cell_grid.right)]
    return (mean - other) * (mean + other - 2.0 * middle), np.minimum(*ends), np.maximum(*ends)


def loss_at(score: Score, cell_grid: CellGrid, x: Array, k: int, y: Any) -> float:
    """Score of masses for one outcome in cell k."""
    if not cell_grid.ordered:
        return float(score.on_cells(cell_grid.space, x)[k])
    return score(cell_grid.forecast(x), min(max(float(y), cell_grid.low), cell_grid.high))


def score_jacobian(score: Score, cell_grid: CellGrid, p: Array) -> Array:
    """Derivative of the score in each cell by the masses, up to a constant in each column."""
    n = cell_grid.cells
    if not cell_grid.ordered:
        if isinstance(score, CRPS):
            return cell_grid.space.distances  # type: ignore[attr-defined]
        if isinstance(cell_grid.space, Binary):
            return np.array([[0.0, 2.0 * p[1]], [0.0, 2.0 * (p[1] - 1.0)]])
        return -2.0 * np.eye(n)
    if isinstance(score, CRPS):
        width = cell_grid.right - cell_grid.left
        offset = cell_grid.left
        between = offset[:, None] - cell_grid.right[None, :]
        lower = 2.0 * between + width[None, :] + width[:, None]
        return np.where(np.tri(n, k=-1) > 0.0, lower, 0.0) + np.diag(width / 3.0)
    middle = 0.5 * (cell_grid.left + cell_grid.right)
    return -2.0 * np.outer(middle, middle)


class RegretCellPayoff(CellPayoff):
    """Excess scores over each expert, in units of the round or in `fixed` ones, one per score."""

    one_sided = True
    cost = 10.0

    def __init__(
        self, cell_grid: CellGrid, scores: tuple[Score, ...], state: dict[str, Array], fixed: Array | None = None
    ) -> None:
        self.cell_grid, self.scores, self.fixed = cell_grid, scores, fixed
        self.experts = len(cell_grid.experts)
        self.size = len(scores) * self.experts
        self.present: NDArray[np.bool_] = np.isfinite(cell_grid.experts).all(axis=1).reshape(self.experts)
        self.usual = np.zeros((len(scores), self.experts))
        self.units = np.zeros((len(scores), self.experts))
        if fixed is not None:
            self.units = np.where(self.present, 1.0 / fixed[:, None], 0.0)
        for i, score in enumerate(scores if fixed is None else ()):
            for e in np.flatnonzero(self.present):
                own = own_expectation(score, cell_grid, cell_grid.experts[e])
                seen = float(state["count"][e])
                usual = (OWN_EXPECTATION_WEIGHT * own + float(state["loss"][i, e])) / (OWN_EXPECTATION_WEIGHT + seen)
                self.usual[i, e] = max(usual, 1e-300)
        # on finite spaces the experts' scores do not depend on p
        self._theirs: list[list[Array]] = []
        if not cell_grid.ordered:
            self._theirs = [[score.on_cells(cell_grid.space, x) for x in cell_grid.experts] for score in scores]

    def _gaps(self, p: Array) -> Array:
        """Mean, smallest and largest gap for each score, expert and cell; 0 for missing experts."""
        out = np.zeros((3, *self.usual.shape, self.cell_grid.cells))
        for i, score in enumerate(self.scores):
            mine = score.on_cells(self.cell_grid.space, p) if self._theirs else NOTHING
            for e in np.flatnonzero(self.present):
                if self._theirs:
                    out[:, i, e] = mine - self._theirs[i][e]
                else:
                    out[:, i, e] = score_gap(score, self.cell_grid, p, self.cell_grid.experts[e])
        return out

    def rescale(self, p: Array) -> None:
        """Set the units for p: the expert's usual score or the largest gap, so that no entry exceeds 1."""
        self.units = self._units(self._gaps(p))

    def _units(self, gaps: Array) -> Array:
        if self.fixed is not None:
            return self.units
        most = np.maximum(self.usual, np.abs(gaps[1:]).max(axis=(0, 3)))
        return np.where(self.present, 1.0 / np.maximum(most, 1e-300), 0.0)

    def _scaled(self, p: Array) -> Array:
        """Means, smallest and largest gaps in units, one row per score and expert."""
        gaps = self._gaps(p)
        return (self._units(gaps)[:, :, None] * gaps).reshape(3, self.size, -1)

    def table(self, p: Array) -> Array:
        return self._scaled(p)[0]

    def spans(self, p: Array) -> tuple[Array, Array]:
        table, low, high = self._scaled(p)
        return (low, high) if self.cell_grid.ordered else (table, table)

    def realised(self, p: Array, k: int, y: Any) -> Array:
        return (self._units(self._gaps(p)) * self.excess(p, k, y)).ravel()

    def excess(self, p: Array, k: int, y: Any) -> Array:
        """Score minus that of each expert, in the units of the scores."""
        out = np.zeros(self.usual.shape)
        for i, score in enumerate(self.scores):
            mine = loss_at(score, self.cell_grid, p, k, y)
            for e in np.flatnonzero(self.present):
                out[i, e] = mine - loss_at(score, self.cell_grid, self.cell_grid.experts[e], k, y)
        return out

    def field(self, s: Array, p: Array) -> Array:
        """Field with the units of `rescale`, which are fixed while the equation is solved."""
        pulls = s * self.units.ravel()
        if not pulls.any():
            return np.zeros(self.cell_grid.cells)
        value: Array = pulls @ self._gaps(p)[0].reshape(self.size, -1)
        return value

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array | None:
        total: Array | None = np.zeros((p.size, p.size)) if exact else None
        pulls = (s.reshape(self.units.shape) * self.units).sum(axis=1)
        for pull, score in zip(pulls, self.scores, strict=True):
            if pull != 0.0:
                part = pull * score_jacobian(score, self.cell_grid, p)
                total = part if total is None else total + part
        return total


def own_expectation(score: Score, cell_grid: CellGrid, x: Array) -> float:
    """Expected score of a forecast under itself."""
    if not cell_grid.ordered:
        return float(x @ score.on_cells(cell_grid.space, x))
    if isinstance(score, CRPS):
        F0 = np.cumsum(x) - x
        F1 = F0 + x
        squares = (F0 * F0 + F0 * F1 + F1 * F1) / 3.0
        return float((cell_grid.right - cell_grid.left) @ (0.5 * (F0 + F1) - squares))
    middle = 0.5 * (cell_grid.left + cell_grid.right)
    a, b = cell_grid.left, cell_grid.right
    return max(float(x @ (a * a + a * b + b * b)) / 3.0 - float(x @ middle) ** 2, 0.0)


class NoRegret(Payoff):
    """Recalibrated forecasts score no worse than the experts, for each proper score (paper, section 4.2).

    Parameters
    ----------
    scores
        Proper scores such as `CRPS()`.
    unit
        None scales the regret by the expert's usual score; "score", the largest value of the score on the space, gives
        the plain regret of the paper.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The payoff is one-sided, so only a positive sum is an error. Expert e counts in the rounds in which it forecasts:

        payoff_{i,e} = c_{i,e} (score_i(p, y) - score_i(expert e, y))

    Without a `unit` c is one over the expert's usual score, or over the largest possible gap in this round if that is
    larger. It is known before the outcome, so the payoff is semi-consistent (appendix A), with a size of at most 1.
    Squared bound: the number of scores times that of experts. `Guarantee.parts` reports the mean excess score.

    With unit="score" c = 1 / b in all rounds, b the largest value. With k experts and no other part in the sum:

        mean of score(p, y) - min over experts of their mean score  <=  sqrt(k) b sqrt(T + 64) / T

    `Guarantee.bounds` has the bound in any sum.

    Examples
    --------
    >>> import orcast as oc
    >>> oc.NoRegret(oc.CRPS(), oc.MSE()).on(oc.Interval(0, 1), experts=3).size
    6
    """

    name = "regret"
    options = ("scores", "unit")
    one_sided = True

    def __init__(
        self,
        *scores: Score,
        unit: str | None = None,
        context: Context | None = None,
        weight: float = 1.0,
    ) -> None:
        for score in scores:
            if type(score) not in SCORES.values():
                raise TypeError(f"expected scores such as CRPS() or Brier(), got {score!r}")
        if not scores or len({repr(score.to_plain()) for score in scores}) < len(scores):
            raise ValueError(f"expected one or more different scores, got {list(scores)!r}")
        # sorted, because the layout of the ledger must not depend on the order of the arguments
        self.scores: tuple[Score, ...] = tuple(sorted(scores, key=lambda score: score.name))
        if unit not in (None, BOUND_OF_SCORE):
            raise ValueError(f"expected None or 'score' as unit, got {short(unit)}")
        self.unit = unit
        self._settings(context, weight)

    def units_on(self, space: Space) -> Array | None:
        """Fixed unit of each score; None if the units are those of the round."""
        if self.unit is None:
            return None
        bounds = np.array([score.bound(space) for score in self.scores])
        if not np.isfinite(bounds).all():
            raise TypeError(
                f"expected scores that are bounded on {space!r} for unit='score', got {list(self.scores)!r}: without "
                "unit= the regret is scaled by the experts' usual score"
            )
        return np.where(bounds > 0.0, bounds, 1.0)

    def on(self, space: Space, experts: int = 1) -> Part:
        for score in self.scores:
            score.check(space)
        count = len(self.scores)
        units = self.units_on(space)
        # in the units of a round no coordinate exceeds 1
        reach = np.ones(count) if units is None else np.array([s.bound(space) for s in self.scores]) / units
        return Part(
            self,
            count * experts,
            float(experts * (reach @ reach)),
            lambda cell_grid, state: RegretCellPayoff(cell_grid, self.scores, state, units),
            kind="regret" if units is None and isinstance(space, OrderedSpace) else "general",
            state=lambda: {
                "loss": np.zeros((count, experts)),
                "count": np.zeros(experts),
                "excess": np.zeros((count, experts)),
                "rounds": np.zeros(experts),
            },
        )
