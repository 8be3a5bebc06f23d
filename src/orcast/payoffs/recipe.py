"""The paper's general recipe for payoffs of a user's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import UNKNOWN, CellGrid, CellPayoff, Part, Payoff
from orcast.payoffs.calibration import increasing
from orcast.payoffs.cell_payoffs import (
    ContextCellPayoff,
    ExplicitCellPayoff,
    Witness,
    values_at,
    witness_on,
)
from orcast.payoffs.decisions import takes
from orcast.payoffs.functions import Shape, jumps_inside, lipschitz_of, numbers_in, refuse_points, scan
from orcast.spaces import FiniteSpace, Space
from orcast.validation import number, short, vector

Array = NDArray[np.float64]


def check_bound(square: float, bound: float, what: str) -> None:
    """Refuse a squared norm above its bound."""
    if square > bound * (1.0 + 1e-9) + 1e-12:
        raise ValueError(f"expected a {what} with a squared norm of at most bound={bound:g}, got {square:.6g}")


class Recipe(Payoff):
    """Forecasts and outcomes agree on the mean of any function (paper, section 3, the general recipe).

    Parameters
    ----------
    witness
        Function of y, or of (y, x), that returns a vector; it may jump in y.
    context
        Function of (x, p) that returns a vector and is continuous in p, or a context such as `by`; (1,) by default.
    bound
        Bound on the squared norm of the payoff, checked in every round.
    jumps
        Outcomes at which the witness jumps or turns, which become edges of cells; between them it is monotone, or has a
        slope of at most `lipschitz`. By default jumps are found on an `Interval`.
    lipschitz
        Bound on the change of each coordinate of the witness per unit of y, between the jumps.
    weight
        Weight in a sum; see `Payoff`.

    Raises
    ------
    ValueError
        When it is put on a space: if nothing is declared and the witness has a peak that is too narrow to be seen.

    Notes
    -----
    A certificate covers every outcome if `jumps` or `lipschitz` is declared. Otherwise it covers seven points of each
    cell and, on an `Interval`, a scan of 2,049 points with twice the error that random probes find between them. With
    the context c and the witness w:

        payoff(x, p, y) = c(x, p) (E_p[w(y')] - w(y))^T

    Examples
    --------
    >>> import orcast as oc
    >>> night = lambda x, p: [x["hour"] < 6, x["hour"] >= 6]
    >>> peak = oc.Recipe(witness=lambda y: [y > 30_000], context=night, bound=1.0)
    >>> recal = oc.Recalibrator(oc.Interval(0, 36_000), oc.QuantileCalibration() + peak)
    >>> p = recal.predict(oc.Normal(28_000, 3_000), x={"hour": 14}); recal.update(31_000)
    """

    name = "recipe"
    options = ("bound", "jumps", "lipschitz")

    def __init__(
        self,
        witness: Callable[..., Any],
        context: Callable[[Any, Any], Any] | Context | None = None,
        *,
        bound: float,
        jumps: Iterable[float] | None = None,
        lipschitz: float | None = None,
        weight: float = 1.0,
    ) -> None:
        if not callable(witness):
            raise TypeError(f"expected a function of the outcome as witness, got {short(witness)}")
        if context is not None and not isinstance(context, Context) and not takes(context, 2):
            raise TypeError(f"expected a function of (x, p) as context, or by(...), got {short(context)}")
        self.witness = witness
        self.moment = None if isinstance(context, Context) else context
        self.bound = number(bound, "bound", 1e-12, 1e12)
        self.jumps = None if jumps is None else increasing(jumps, "finite jumps", -np.inf, np.inf)
        self.lipschitz = lipschitz_of(lipschitz)
        self._declared = self.jumps is not None or self.lipschitz > 0.0
        self._with_features = not takes(witness, 1)
        self._settings(context if isinstance(context, Context) else None, weight)

    def _at(self, y: Any, x: Any) -> Array:
        arguments = (y, x) if self._with_features else (y,)
        return vector(self.witness, *arguments, what="witness")

    def on(self, space: Space, experts: int = 1) -> Part:
        """Bind the payoff to any space; a size that depends on the features is taken from the first round.

        Parameters
        ----------
        space
            Space of the outcomes.
        experts
            Number of experts.
        """
        probe = space.value(0) if isinstance(space, FiniteSpace) else space.outcome(0.0, "clip")
        size = UNKNOWN if self._with_features else self._at(probe, None).size
        jumps, shape = self._shape_on(space, size)

        def cell_payoff(cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
            return self._on_cells(cell_grid, shape)

        if self.moment is not None or self._with_features:
            size = UNKNOWN
        return Part(self, size, self.bound, cell_payoff, jumps)

    def _shape_on(self, space: Space, size: int) -> tuple[Array, Shape]:
        """Return jumps of the witness on a space, and its shape between them."""
        if self._declared or self._with_features:
            return jumps_inside(self.jumps, space), Shape(self.lipschitz)

        def at(y: float) -> Array:
            return self._at(y, None)

        def many(ys: Array) -> Array:
            return values_at(self.witness, at, ys, size, "witness")

        return scan(at, many, space, self.bound**0.5, numbers_in(self.witness), "witness")

    def _on_cells(self, cell_grid: CellGrid, shape: Shape) -> CellPayoff:
        probe = cell_grid.space.value(0) if isinstance(cell_grid.space, FiniteSpace) else float(cell_grid.left[0])
        size = self._at(probe, cell_grid.features).size
        rest = (cell_grid.features,) if self._with_features else ()

        def at(y: Any) -> Any:
            return self.witness(y, *rest)

        if self._with_features and not self._declared and cell_grid.ordered:
            ends = float(cell_grid.left[0]), float(cell_grid.right[-1])
            refuse_points(lambda y: self._at(y, *rest), self.bound**0.5, numbers_in(self.witness), *ends, "witness")
        witness = witness_on(cell_grid, at, size, "witness", at, shape)
        if self.moment is None:
            return BoundedCellPayoff(ExplicitCellPayoff(witness), self.bound, shape)
        moment = self.moment

        def context(p: Array) -> Array:
            return vector(moment, cell_grid.features, cell_grid.forecast(p), what="context")

        groups = context(cell_grid.start).size
        return BoundedCellPayoff(ContextCellPayoff(witness, context, groups), self.bound, shape)


class BoundedCellPayoff(CellPayoff):
    """Payoff whose squared norm is checked in every assessment and outcome."""

    def __init__(self, cell_payoff: CellPayoff, limit: float, shape: Shape) -> None:
        self.cell_payoff, self.limit, self.size, self.shape = cell_payoff, limit, cell_payoff.size, shape
        self.table, self.spans = cell_payoff.table, cell_payoff.spans  # type: ignore[method-assign]
        self.field, self.jacobian = cell_payoff.field, cell_payoff.jacobian  # type: ignore[method-assign]
        self.explicit, self.cost = cell_payoff.explicit, cell_payoff.cost

    @property
    def features(self) -> Array | None:
        return self.cell_payoff.features

    @property
    def witness(self) -> Witness:
        """Witness of an explicit payoff."""
        return self.cell_payoff.witness  # type: ignore[attr-defined]

    def realised(self, p: Array, k: int, y: Any) -> Array:
        value = self.cell_payoff.realised(p, k, y)
        check_bound(float(value @ value), self.limit, "payoff")
        return value

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Assess and check all cells."""
        linear, square = self.cell_payoff.assess(s, factor, p)
        if self.shape.plain:
            check_bound(float(square.max()) / factor if factor > 0.0 else 0.0, self.limit, "payoff")
            return linear, square
        # bounds between points may exceed what the function reaches
        check_bound(float((self.table(p) ** 2).sum(axis=0).max()), self.limit, "payoff")
        return linear, np.minimum(square, factor * self.limit)
