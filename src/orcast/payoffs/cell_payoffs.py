"""Payoffs on cells: most are a witness on which forecasts and outcomes should agree, weighted by a context.

    payoff(p, k) = A(p) (E_p[w] - w_k)

A(p) is 1 for plain witnesses, c(p) (x) 1 for contexts that depend on the forecast, and hat functions of the event's own
probability for calibrated probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.kernels.finite_solver import STEEPNESS
from orcast.payoffs.base import CellGrid, CellPayoff
from orcast.payoffs.functions import Shape
from orcast.spaces import frozen
from orcast.validation import vector

Array = NDArray[np.float64]
Point = Callable[[Any, int], Array]

_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(5)
# A witness is evaluated at both ends of a cell (just inside the left one, which is not in the cell) and at the nodes of
# Gauss quadrature, which give its mean.
NODES = frozen(np.concatenate(([1e-9], 0.5 + 0.5 * _GAUSS, [1.0])))
MEAN_WEIGHTS = frozen(np.concatenate(([0.0], 0.5 * _GAUSS_WEIGHTS, [0.0])))
# Distance of the first node from the left end in a very wide cell, relative to the size of that end.
BESIDE = 1e-6
UNDECLARED = Shape()


class Witness:
    """Function w of the outcome on the cells: mean, smallest and largest value in each, and value at a point.

    `pieces` has the smallest and largest values between neighbouring nodes, along a third axis.
    """

    __slots__ = ("high", "low", "mean", "pieces", "point")

    def __init__(
        self, mean: Array, low: Array, high: Array, point: Point, pieces: tuple[Array, Array] | None = None
    ) -> None:
        self.mean, self.low, self.high, self.point, self.pieces = mean, low, high, point, pieces

    @staticmethod
    def constant(table: Array) -> Witness:
        """Witness that is constant within each cell, one column per cell."""
        return Witness(table, table, table, lambda y, k: table[:, k])

    @staticmethod
    def below(cell_grid: CellGrid, thresholds: Array) -> Witness:
        """Witness of the indicators {y <= z}; exact, since thresholds within the window are edges of cells."""
        return Witness.constant((cell_grid.right[None, :] <= thresholds[:, None]).astype(np.float64))

    @property
    def flat(self) -> bool:
        """True if it is constant within each cell."""
        return self.low is self.high

    @property
    def features(self) -> Array:
        """Columns that differ between cells with different witnesses."""
        return self.mean if self.flat else np.concatenate((self.mean, self.low, self.high))

    def errors(self, expected: Array) -> tuple[Array, Array]:
        """Smallest and largest value of expected - witness in each cell, or in its pieces."""
        if self.pieces is not None:
            low, high = self.pieces
            return expected[:, None, None] - high, expected[:, None, None] - low
        least = expected[:, None] - self.high
        return (least, least) if self.flat else (least, expected[:, None] - self.low)


def vectors(function: Callable[[Any], Any], points: Sequence[Any], size: int, what: str) -> Array:
    """Finite values of a user's function at many outcomes, one row each."""
    rows = [function(y) for y in points]
    try:
        values = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape[1] == size and np.isfinite(values).all():
        return values
    found = [vector(function, y, what=what) for y in points]
    sizes = {value.size for value in found}
    if sizes != {size}:
        raise ValueError(f"expected {size} numbers from the {what} for every outcome, got {sorted(sizes)}")
    return np.array(found)


def witness_on(
    cell_grid: CellGrid,
    function: Callable[[Any], Any],
    size: int,
    what: str,
    many: Callable[[Array], Any] | None = None,
    shape: Shape = UNDECLARED,
) -> Witness:
    """Witness of a vector-valued function of one outcome; `many` may evaluate an array of outcomes at once."""

    def at(y: Any) -> Array:
        value = vector(function, y, what=what)
        if value.shape != (size,):
            raise ValueError(f"expected {size} numbers from the {what}, got {value.size}")
        return value

    if not cell_grid.ordered:
        return Witness.constant(vectors(function, cell_grid.values, size, what).T)
    nodes = nodes_of(cell_grid.left, cell_grid.right)
    values = values_at(many, at, nodes.ravel(), size, what).reshape(size, cell_grid.cells, NODES.size)
    lower, upper = shape.between(values, nodes, what)
    return Witness(
        values @ MEAN_WEIGHTS, lower.min(axis=2), upper.max(axis=2), lambda y, k: at(float(y)), (lower, upper)
    )


def nodes_of(left: Array, right: Array) -> Array:
    """Nodes at which functions are evaluated, one row per cell."""
    width = right - left
    nodes: Array = left[:, None] + NODES * width[:, None]
    # the nodes include both ends of a cell of any width
    nodes[:, -1] = right
    nodes[:, 0] = np.minimum(nodes[:, 0], left + BESIDE * np.where(left == 0.0, 1.0, np.abs(left)))
    return nodes


def at_once(many: Callable[[Array], Any], one: Callable[[Any], Array], points: Array, size: int) -> Array | None:
    """Values of a function of arrays, if it agrees with the function of one number at some points."""
    try:
        values = np.asarray(many(points), dtype=np.float64)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError):
        return None
    if values.shape != (size, points.size) or not np.isfinite(values).all():
        return None
    some = (0, points.size // 3, points.size // 2, points.size - 1)
    return values if all(np.array_equal(values[:, i], one(float(points[i]))) for i in some) else None


def values_at(
    many: Callable[[Array], Any] | None, one: Callable[[Any], Array], points: Array, size: int, what: str
) -> Array:
    """Values of a function at points, a row a coordinate: at once if it takes arrays, else one by one."""
    values = at_once(many, one, points, size) if many is not None else None
    return vectors(one, points.tolist(), size, what).T if values is None else values


class ExplicitCellPayoff(CellPayoff):
    """Payoff E_p[w] - w_k: only its mean depends on p, so the tilt is explicit."""

    explicit = True

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.size = witness.mean.shape[0]

    @property
    def features(self) -> Array:
        return self.witness.features

    def table(self, p: Array) -> Array:
        """Columns E_p[w] - w_k."""
        return (self.witness.mean @ p)[:, None] - self.witness.mean

    def spans(self, p: Array) -> tuple[Array, Array]:
        return self.witness.errors(self.witness.mean @ p)

    def realised(self, p: Array, k: int, y: Any) -> Array:
        return self.witness.mean @ p - self.witness.point(y, k)

    def field(self, s: Array, p: Array) -> Array:
        """Field -<s, w_k>; the mean is the same for all cells."""
        return -(s @ self.witness.mean)


def hat_weights(grid: int, q: Array) -> tuple[NDArray[np.intp], Array]:
    """Left hat of each q in [0, 1], and the share of the next hat (`kernels.finite_solver.hat`)."""
    left, u = _between_hats(grid, q)
    return left.astype(np.intp), u * u * (3.0 - 2.0 * u)


def hat_slopes(grid: int, q: Array) -> Array:
    """Derivatives of these shares."""
    _, u = _between_hats(grid, q)
    return 6.0 * u * (1.0 - u) * (STEEPNESS * grid)


def _between_hats(grid: int, q: Array) -> tuple[Array, Array]:
    """Hat on the left of each q, and the position of q in the soft edge to the next one."""
    place = np.minimum(np.maximum(q, 0.0), 1.0) * grid - 0.5
    left = np.minimum(np.maximum(np.floor(place), 0.0), grid - 2.0)
    return left, np.minimum(np.maximum(0.5 + STEEPNESS * (place - left - 0.5), 0.0), 1.0)


class WideCellPayoff(CellPayoff):
    """Payoff A(p) (E_p[w] - w_k); a subclass multiplies errors of the witness by A(p) >= 0."""

    def __init__(self, witness: Witness) -> None:
        self.witness, self.plain = witness, ExplicitCellPayoff(witness)

    @property
    def features(self) -> Array:
        return self.plain.features

    def wide(self, p: Array, errors: Array) -> Array:
        """Errors multiplied by A(p), along the first axis."""
        raise AttributeError(f"{type(self).__name__} has no weights")

    def table(self, p: Array) -> Array:
        return self.wide(p, self.plain.table(p))

    def spans(self, p: Array) -> tuple[Array, Array]:
        low, high = self.plain.spans(p)
        first = self.wide(p, low)
        return (first, first) if low is high else (first, self.wide(p, high))

    def realised(self, p: Array, k: int, y: Any) -> Array:
        return self.wide(p, self.plain.realised(p, k, y))


class EventCellPayoff(WideCellPayoff):
    """Calibrated probabilities: hat_v(q_j) (q_j - 1{event j}) with q_j = P(event j), for hats of equal width.

    Events are constant in each cell. The coordinates are grid x events, all events of a vertex together.
    """

    def __init__(self, witness: Witness, grid: int) -> None:
        super().__init__(witness)
        self.grid = grid
        self.events = witness.mean.shape[0]
        self.size = grid * self.events
        self._columns = np.arange(self.events)

    def wide(self, p: Array, values: Array) -> Array:
        """Values of the events at the two vertices around each probability, zero elsewhere."""
        left, share = hat_weights(self.grid, self.witness.mean @ p)
        out = np.zeros((self.grid, *values.shape))
        tail = (1,) * (values.ndim - 1)
        out[left, self._columns] = (1.0 - share).reshape(-1, *tail) * values
        out[left + 1, self._columns] = share.reshape(-1, *tail) * values
        return out.reshape(self.size, *values.shape[1:])

    def _ends(self, s: Array, left: NDArray[np.intp]) -> tuple[Array, Array]:
        """Ledger entries of the events at the two vertices around each probability."""
        rows = s.reshape(self.grid, self.events)
        return rows[left, self._columns], rows[left + 1, self._columns]

    def field(self, s: Array, p: Array) -> Array:
        """Field sum_j s_j(q_j) (q_j - w_jk), with the ledger s_j interpolated by the hats."""
        q = self.witness.mean @ p
        left, share = hat_weights(self.grid, q)
        below, above = self._ends(s, left)
        return (below + share * (above - below)) @ (q[:, None] - self.witness.mean)

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array:
        """Derivative through the interpolated ledger."""
        q = self.witness.mean @ p
        left, _ = hat_weights(self.grid, q)
        below, above = self._ends(s, left)
        slopes = (above - below) * hat_slopes(self.grid, q)
        return (slopes[:, None] * (q[:, None] - self.witness.mean)).T @ self.witness.mean

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Exact: two hats are positive for each event."""
        q = self.witness.mean @ p
        left, share = hat_weights(self.grid, q)
        below, above = self._ends(s, left)
        errors = q[:, None] - self.witness.mean
        square = factor * (((1.0 - share) ** 2 + share**2) @ (errors * errors))
        return 2.0 * ((below + share * (above - below)) @ errors) + square, square


class GivenCellPayoff(WideCellPayoff):
    """Calibrated probabilities given the expert's: hat_v(x_j) (q_j - 1{event j}), with hats that do not depend on p."""

    explicit = True

    def __init__(self, witness: Witness, grid: int, expert: Array) -> None:
        super().__init__(witness)
        events = witness.mean.shape[0]
        self.size = grid * events
        left, share = hat_weights(grid, witness.mean @ expert)
        self.hats = np.zeros((grid, events))
        columns = np.arange(events)
        self.hats[left, columns] = 1.0 - share
        self.hats[left + 1, columns] = share

    def wide(self, p: Array, errors: Array) -> Array:
        hats = self.hats.reshape(*self.hats.shape, *(1,) * (errors.ndim - 1))
        return (hats * errors).reshape(self.size, *errors.shape[1:])

    def field(self, s: Array, p: Array) -> Array:
        return self.plain.field((self.hats * s.reshape(self.hats.shape)).sum(axis=0), p)


class ContextCellPayoff(WideCellPayoff):
    """Payoff c(p) (x) (E_p[w] - w_k) with a context that depends on the forecast."""

    def __init__(
        self,
        witness: Witness,
        context: Callable[[Array], Array],
        groups: int,
    ) -> None:
        super().__init__(witness)
        self.context, self.groups = context, groups
        self.size = groups * self.plain.size

    def wide(self, p: Array, errors: Array) -> Array:
        return (self.context(p).reshape(-1, *(1,) * errors.ndim) * errors).reshape(self.size, *errors.shape[1:])

    def spans(self, p: Array) -> tuple[Array, Array]:
        a, b = super().spans(p)
        # a negative context swaps smallest and largest
        return (a, b) if a is b else (np.minimum(a, b), np.maximum(a, b))

    def field(self, s: Array, p: Array) -> Array:
        """Computed as (c(p)^T s) times the errors."""
        return (self.context(p) @ s.reshape(self.groups, self.plain.size)) @ self.plain.table(p)

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Assess c(p)^T s, because all groups have the same outcome; squared norms of context and witness multiply."""
        c = self.context(p)
        return self.plain.assess(c @ s.reshape(self.groups, self.plain.size), factor * float(c @ c), p)


class AnswerCellPayoff(ContextCellPayoff):
    """Context of weights of actions: c(p) = softmax(worth @ p)."""

    def __init__(self, witness: Witness, worth: Array) -> None:
        super().__init__(witness, self.answer, len(worth))
        self.worth = worth

    def answer(self, p: Array) -> Array:
        """The weights."""
        return softmax(self.worth @ p)

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array:
        """Derivative through the weights."""
        c = self.answer(p)
        slopes = c[:, None] * (self.worth - c @ self.worth)
        return self.plain.table(p).T @ (s.reshape(self.groups, self.plain.size).T @ slopes)


def softmax(values: Array) -> Array:
    """exp(values), normalised."""
    e = np.exp(values - values.max())
    return e / e.sum()
