"""Calibration of quantities: quantiles, intervals, moments, the distribution function at thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.constants import MIN_SLOPE, TINY_MASS
from orcast.contexts import Context
from orcast.forecasts import PERCENTS
from orcast.payoffs.base import CellGrid, CellPayoff, Part, Payoff, wrong_space
from orcast.payoffs.cell_payoffs import EventCellPayoff, ExplicitCellPayoff, Witness
from orcast.spaces import Binary, Box, Circle, OrderedSpace, Space, frozen
from orcast.spaces.base import whole
from orcast.validation import short

Array = NDArray[np.float64]

# Default number of hat functions.
GRID = 15
MOST_MONOMIALS = 500


def increasing(values: Iterable[float], what: str, low: float, high: float) -> Array:
    """Check increasing numbers strictly between low and high."""
    try:
        a = np.array(limits.taken("levels", values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as reason:
        if limits.MORE in str(reason):
            raise
        raise TypeError(f"expected {what}, got {short(values)}") from None
    if a.ndim != 1 or a.size == 0 or not ((a > low) & (a < high)).all() or (np.diff(a) <= 0.0).any():
        raise ValueError(f"expected increasing {what}, got {short(a.tolist())}")
    return frozen(a)


def shares(levels: Array, before: Array, mass: Array) -> Array:
    """Indicators {y <= q_a}, averaged over each cell: clip((a - F_{k-1}) / p_k, 0, 1), one row per level."""
    tiny = mass <= TINY_MASS
    inside = (levels[:, None] - before) / np.where(tiny, 1.0, mass)
    limit = (levels[:, None] >= before).astype(np.float64)
    return np.where(tiny, limit, np.minimum(np.maximum(inside, 0.0), 1.0))


class QuantileCellPayoff(CellPayoff):
    """Quantile payoffs on consecutive cells."""

    def __init__(self, levels: Array) -> None:
        self.levels, self.size = levels, levels.size

    def table(self, p: Array) -> Array:
        """Table clip((a - F_{k-1}) / p_k, 0, 1) - a."""
        before = np.concatenate(([0.0], np.cumsum(p)[:-1]))
        return shares(self.levels, before, p) - self.levels[:, None]

    def realised(self, p: Array, k: int, y: Any) -> Array:
        return shares(self.levels, np.array([p[:k].sum()]), p[k : k + 1])[:, 0] - self.levels

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array:
        """Derivatives of v_k = (H(F_k) - H(F_{k-1})) / p_k, clipped unless `exact`."""
        most = math.inf if exact else 1.0 - MIN_SLOPE
        centre = float(s @ self.levels)
        # h right of each edge, as the sum of s over the levels above
        above = np.concatenate((np.cumsum(s[::-1])[::-1], [0.0]))
        edges = np.searchsorted(self.levels, np.concatenate(([0.0], np.cumsum(p))), side="right")
        h = above[edges] - centre
        v = s @ self.table(p)
        safe = np.maximum(p, TINY_MASS)
        upper = np.minimum(h[1:] - v, most) / safe
        lower = np.maximum(v - h[:-1], -most) / safe
        n = p.size
        value: Array = np.tril(np.ones((n, n))) * upper[:, None] + np.tril(np.ones((n, n)), -1) * lower[:, None]
        return value


class QuantileCalibration(Payoff):
    """Outcomes fall below the a-quantile with frequency a, for every level a (paper, section 3 and appendix B).

    Parameters
    ----------
    levels
        Increasing levels strictly between 0 and 1; by default 0.01, ..., 0.99. A single one calibrates one quantile.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The payoff is the indicator {y <= q_a}, averaged over the cell k of the outcome, minus a:

        payoff_a = clip((a - F_{k-1}) / (F_k - F_{k-1}), 0, 1) - a

    Squared bound: the largest sum of (1{j} - a_j)^2; with 99 levels it is sum a^2 = 32.8.

    Examples
    --------
    >>> payoff = QuantileCalibration()
    >>> payoff.levels.size, round(payoff.bound, 3), QuantileCalibration([0.9]).levels.tolist()
    (99, 32.835, [0.9])
    """

    name = "quantile"
    options = ("levels",)

    def __init__(
        self, levels: Iterable[float] = PERCENTS, *, context: Context | None = None, weight: float = 1.0
    ) -> None:
        self.levels = increasing(levels, "levels strictly between 0 and 1", 0.0, 1.0)
        self._settings(context, weight)

    @cached_property
    def bound(self) -> float:
        """Largest squared norm on one quantity: the levels up to one are below the outcome, the others above."""
        below = np.concatenate(([0.0], np.cumsum(self.levels**2)))
        above = np.concatenate((np.cumsum((1.0 - self.levels[::-1]) ** 2)[::-1], [0.0]))
        return float((below + above).max())

    def on(self, space: Space, experts: int = 1) -> Part:
        if not isinstance(space, OrderedSpace):
            raise wrong_space(self, "an ordered space such as Interval(low, high)", space)
        return Part(
            self,
            self.levels.size,
            self.bound,
            lambda cell_grid, state: QuantileCellPayoff(self.levels),
            kind="quantile",
        )


class IntervalCellPayoff(CellPayoff):
    """Differences of quantile payoffs."""

    def __init__(self, quantiles: QuantileCellPayoff, ends: NDArray[np.intp]) -> None:
        self.quantiles, self.ends = quantiles, ends
        self.size = len(ends)

    def _differ(self, rows: Array) -> Array:
        return rows[self.ends[:, 1]] - rows[self.ends[:, 0]]

    def table(self, p: Array) -> Array:
        return self._differ(self.quantiles.table(p))

    def realised(self, p: Array, k: int, y: Any) -> Array:
        return self._differ(self.quantiles.realised(p, k, y))

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array | None:
        """Derivative through the quantiles."""
        return self.quantiles.jacobian(self.on_levels(s), p, exact)

    def on_levels(self, s: Array) -> Array:
        """Ledger entries of intervals as entries of the levels at their ends."""
        cumulative = np.zeros(self.quantiles.size)
        np.add.at(cumulative, self.ends[:, 1], s)
        np.subtract.at(cumulative, self.ends[:, 0], s)
        return cumulative


class IntervalCalibration(Payoff):
    """The central interval at each confidence covers that share of the outcomes; its ends need not be calibrated.

    Parameters
    ----------
    confidence
        One confidence, or increasing ones, strictly between 0 and 1; 0.9 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The payoff is a difference of two payoffs of `QuantileCalibration` (paper, section 3), averaged over the cell:

        payoff_c = 1{q_{(1-c)/2} < y <= q_{(1+c)/2}} - c

    Squared bound: the sum of max(c, 1 - c)^2.

    Examples
    --------
    >>> round(IntervalCalibration(0.9).bound, 3), IntervalCalibration([0.5, 0.9]).levels.round(3).tolist()
    (0.81, [0.05, 0.25, 0.75, 0.95])
    """

    name = "interval"
    options = ("confidence",)
    largest = True

    def __init__(
        self, confidence: float | Iterable[float] = 0.9, *, context: Context | None = None, weight: float = 1.0
    ) -> None:
        self.confidence = increasing(
            [confidence] if np.ndim(confidence) == 0 else confidence,  # type: ignore[list-item, arg-type]
            "confidences strictly between 0 and 1",
            0.0,
            1.0,
        )
        low, high = 0.5 - 0.5 * self.confidence, 0.5 + 0.5 * self.confidence
        self.levels = frozen(np.concatenate((low[::-1], high)))
        n = self.confidence.size
        self.ends = np.column_stack((np.arange(n - 1, -1, -1), np.arange(n, 2 * n)))
        self._settings(context, weight)

    @property
    def bound(self) -> float:
        """Sum of the squared bounds; each payoff is between -c and 1 - c."""
        return float((np.maximum(self.confidence, 1.0 - self.confidence) ** 2).sum())

    def on(self, space: Space, experts: int = 1) -> Part:
        if not isinstance(space, OrderedSpace):
            raise wrong_space(self, "an ordered space such as Interval(low, high)", space)
        return Part(
            self,
            self.confidence.size,
            self.bound,
            lambda cell_grid, state: IntervalCellPayoff(QuantileCellPayoff(self.levels), self.ends),
            kind="interval",
        )


class MomentMatching(Payoff):
    """Forecasts and outcomes have the same mean powers (paper, section 3).

    Parameters
    ----------
    order
        Largest power; 2 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The powers are of the outcome scaled to [0, 1]:

        payoff_j = E_p[t^j] - t^j,    j = 1, ..., order,    t = (y - low) / (high - low)

    Squared bound: the order. On a `Line` or `HalfLine` low and high are the ends of the round's window, to which y is
    clipped. On a `Circle` the moments are cos(j theta) and sin(j theta), with the bound 4 times the order. On a `Box`
    they are all monomials of that degree in the outputs, each scaled to [0, 1], and the bound is their number. On
    `Binary` there is one moment, the mean.

    Examples
    --------
    >>> import orcast as oc
    >>> [MomentMatching(2).on(space).bound for space in (oc.Interval(0, 9), oc.Circle(24), oc.Box([(0, 1), (0, 5)]))]
    [2.0, 8.0, 5.0]
    """

    name = "moment"
    options = ("order",)
    largest = True

    def __init__(self, order: int = 2, *, context: Context | None = None, weight: float = 1.0) -> None:
        self.order = whole(order, "moments", 1, 100)
        self._settings(context, weight)

    def _values(self, space: Space) -> Array:
        """Moments of each point of a finite space, one column per point."""
        if isinstance(space, Binary):
            return np.array([[0.0, 1.0]])
        if isinstance(space, Circle):
            angles = 2.0 * math.pi * np.asarray(space.points) / space.period
            steps = np.arange(1, self.order + 1)[:, None]
            return np.vstack((np.cos(steps * angles), np.sin(steps * angles)))
        if isinstance(space, Box):
            low, high = np.array(space.bounds).T
            t = (space.points - low) / (high - low)
            sides = range(t.shape[1])
            terms = [c for j in range(1, self.order + 1) for c in combinations_with_replacement(sides, j)]
            if len(terms) > MOST_MONOMIALS:
                raise ValueError(f"expected at most {MOST_MONOMIALS} monomials, got {len(terms)}: lower order=")
            return np.array([t[:, list(term)].prod(axis=1) for term in terms])
        raise wrong_space(self, "a space of numbers", space)

    def on(self, space: Space, experts: int = 1) -> Part:
        if isinstance(space, OrderedSpace):
            return Part(self, self.order, float(self.order), self._on_ordered_cells, kind="moment")
        values = self._values(space)
        bound = 4.0 * self.order if isinstance(space, Circle) else float(len(values))
        witness = Witness.constant(values)
        return Part(self, len(values), bound, lambda cell_grid, state: ExplicitCellPayoff(witness))

    def _on_ordered_cells(self, cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
        span = cell_grid.high - cell_grid.low
        a, b = (cell_grid.left - cell_grid.low) / span, (cell_grid.right - cell_grid.low) / span
        steps = np.arange(1, self.order + 1)[:, None]
        mean = np.array([sum(a**i * b ** (j - i) for i in range(j + 1)) / (j + 1) for j in range(1, self.order + 1)])

        def point(y: Any, k: int) -> Array:
            t = min(max((y - cell_grid.low) / span, 0.0), 1.0)
            return t ** np.arange(1, self.order + 1)

        return ExplicitCellPayoff(Witness(mean, a**steps, b**steps, point))


class ThresholdCalibration(Payoff):
    """The probability of staying below each threshold is calibrated (Sahoo et al. 2021).

    Parameters
    ----------
    thresholds
        Increasing thresholds, in units of the outcome.
    grid
        Number of hat functions on [0, 1]; 15 by default. With 1, the mean forecast distribution function equals the
        empirical one at the thresholds: marginal calibration (Gneiting et al. 2007).
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    With continuous hat functions this is binary calibration of every threshold event:

        payoff_{v,z} = hat_v(F_p(z)) (F_p(z) - 1{y <= z})

    Thresholds become edges of cells. Squared bound: the number of thresholds.

    Examples
    --------
    >>> import orcast as oc
    >>> ThresholdCalibration([10, 20], grid=11).on(oc.Interval(0, 30)).size
    22
    """

    name = "threshold"
    options = ("thresholds", "grid")

    def __init__(
        self,
        thresholds: Iterable[float],
        *,
        grid: int = GRID,
        context: Context | None = None,
        weight: float = 1.0,
    ) -> None:
        self.thresholds = increasing(thresholds, "finite thresholds", -math.inf, math.inf)
        self.grid = checked_grid(grid, 1)
        if self.grid == 1:
            self.name, self.largest = "marginal", True
        self._settings(context, weight)

    def on(self, space: Space, experts: int = 1) -> Part:
        if not isinstance(space, OrderedSpace):
            raise wrong_space(self, "an ordered space such as Interval(low, high)", space)
        inside = (self.thresholds >= space.low) & (self.thresholds < space.high)
        if not inside.all():
            raise ValueError(
                f"expected thresholds in [{space.low:g}, {space.high:g}), got {float(self.thresholds[~inside][0])!r}"
            )
        count = self.thresholds.size
        return Part(self, self.grid * count, float(count), self._on_cells, self.thresholds)

    def _on_cells(self, cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
        witness = Witness.below(cell_grid, self.thresholds)
        return ExplicitCellPayoff(witness) if self.grid == 1 else EventCellPayoff(witness, self.grid)


def checked_grid(grid: object, least: int = 2) -> int:
    """Check a number of hat functions."""
    return whole(grid, "hat functions", least, 1001)
