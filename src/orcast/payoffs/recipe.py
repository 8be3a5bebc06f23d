"""The paper's general recipe, and user-defined payoffs."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import NOTHING, UNKNOWN, CellGrid, CellPayoff, Part, Payoff
from orcast.payoffs.calibration import increasing
from orcast.payoffs.cell_payoffs import (
    MEAN_WEIGHTS,
    NODES,
    ContextCellPayoff,
    ExplicitCellPayoff,
    Witness,
    at_once,
    between_nodes,
    nodes_of,
    vectors,
    witness_on,
)
from orcast.spaces import FiniteSpace, Interval, OrderedSpace, Space
from orcast.validation import number, short, vector

Array = NDArray[np.float64]

# Points of the grid on which jumps of a witness are searched.
SCAN = 2049
# A mean under the forecast above this share of the root of the bound is no rounding error.
INCONSISTENT = 0.05
# Cost of a call of a function, in evaluations of a compiled field.
COST_OF_CALL = 0.4


def check_bound(square: float, bound: float, what: str) -> None:
    """Refuse a squared norm above its bound."""
    if square > bound * (1.0 + 1e-9) + 1e-12:
        raise ValueError(f"expected a {what} with a squared norm of at most bound={bound:g}, got {square:.6g}")


def jumps_inside(jumps: Array, space: Space) -> Array:
    """Jumps that become edges of cells: those strictly inside an ordered space."""
    if not isinstance(space, OrderedSpace):
        return NOTHING
    return jumps[(jumps > space.low) & (jumps < space.high)]


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return True if a function can be called with `count` arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def find_jumps(function: Callable[[float], Array], low: float, high: float) -> Array:
    """Locate the jumps of a function of a number, on a grid and by bisection."""
    points = np.linspace(low, high, SCAN)
    values = [function(float(y)) for y in points]
    steps = np.array([float(np.abs(b - a).max()) for a, b in itertools.pairwise(values)])
    typical = max(float(np.median(steps)), 1e-12)
    found = []
    for i in np.flatnonzero(steps > 8.0 * typical):
        a, b, at_a, at_b = float(points[i]), float(points[i + 1]), values[i], values[i + 1]
        while True:
            middle = 0.5 * (a + b)
            if not a < middle < b:
                break
            value = function(middle)
            if float(np.abs(value - at_a).max()) >= float(np.abs(at_b - value).max()):
                b, at_b = middle, value
            else:
                a, at_a = middle, value
        if float(np.abs(at_b - at_a).max()) > 0.5 * steps[i] and low < a < high:
            found.append(a)
    return np.unique(np.array(found))


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
        Outcomes at which the witness jumps, which become edges of cells; on an `Interval` they are found.
    weight
        Weight in a sum; see `Payoff`.

    Notes
    -----
    With the context c and the witness w:

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

    def __init__(
        self,
        witness: Callable[..., Any],
        context: Callable[[Any, Any], Any] | Context | None = None,
        *,
        bound: float,
        jumps: Iterable[float] | None = None,
        weight: float = 1.0,
    ) -> None:
        if not callable(witness):
            raise TypeError(f"expected a function of the outcome as witness, got {short(witness)}")
        if context is not None and not isinstance(context, Context) and not _takes(context, 2):
            raise TypeError(f"expected a function of (x, p) as context, or by(...), got {short(context)}")
        self.witness = witness
        self.moment = None if isinstance(context, Context) else context
        self.limit = number(bound, "bound", 1e-12, 1e12)
        self.jumps = None if jumps is None else increasing(jumps, "finite jumps", -np.inf, np.inf)
        self._with_features = not _takes(witness, 1)
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
        if self.moment is not None or self._with_features:
            return Part(self, UNKNOWN, self.limit, "general", self._on_cells, self._jumps_on(space))
        probe = space.value(0) if isinstance(space, FiniteSpace) else space.outcome(0.0, "clip")
        size = self._at(probe, None).size
        return Part(self, size, self.limit, "explicit", self._on_cells, self._jumps_on(space))

    def _jumps_on(self, space: Space) -> Array:
        if not isinstance(space, OrderedSpace):
            return NOTHING
        if self.jumps is not None:
            return jumps_inside(self.jumps, space)
        if isinstance(space, Interval) and not self._with_features:
            return find_jumps(lambda y: self._at(y, None), space.low, space.high)
        return NOTHING

    def _on_cells(self, cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
        probe = cell_grid.space.value(0) if isinstance(cell_grid.space, FiniteSpace) else float(cell_grid.left[0])
        size = self._at(probe, cell_grid.features).size
        rest = (cell_grid.features,) if self._with_features else ()

        def at(y: Any) -> Any:
            return self.witness(y, *rest)

        witness = witness_on(cell_grid, at, size, "witness", at)
        if self.moment is None:
            return BoundedCellPayoff(ExplicitCellPayoff(witness), self.limit)
        moment = self.moment

        def context(p: Array) -> Array:
            return vector(moment, cell_grid.features, cell_grid.forecast(p), what="context")

        groups = context(cell_grid.start).size
        return BoundedCellPayoff(ContextCellPayoff(witness, context, groups), self.limit)

    def _plain(self) -> dict[str, Any]:
        return {"bound": self.limit, "jumps": None if self.jumps is None else self.jumps.tolist()}


class BoundedCellPayoff(CellPayoff):
    """Payoff whose squared norm is checked in every assessment and outcome."""

    def __init__(self, cell_payoff: CellPayoff, limit: float) -> None:
        self.cell_payoff, self.limit, self.size = cell_payoff, limit, cell_payoff.size
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
        if factor > 0.0:
            check_bound(float(square.max()) / factor, self.limit, "payoff")
        return linear, square


class CustomCellPayoff(CellPayoff):
    """User-defined function of (x, p, y) on every cell."""

    def __init__(self, function: Callable[..., Any], cell_grid: CellGrid, limit: float, one_sided: bool) -> None:
        self.function, self.cell_grid, self.limit, self.one_sided = function, cell_grid, limit, one_sided
        self.cost = COST_OF_CALL * cell_grid.cells * (NODES.size if cell_grid.ordered else 1)
        start = cell_grid.forecast(cell_grid.start)
        self.size = self._at(start, float(cell_grid.left[0]) if cell_grid.ordered else cell_grid.space.value(0)).size  # type: ignore[attr-defined]
        self._last: tuple[bytes, Array] | None = None
        if not cell_grid.ordered:
            self.nodes = cell_grid.values
            return
        self.points = nodes_of(cell_grid.left, cell_grid.right).ravel()
        self.nodes = self.points.tolist()
        self.at_once = self._many(start) is not None
        if self.at_once:
            self.cost = 5.0

    @property
    def features(self) -> Array:
        """Values at two forecasts; cells with equal values at both are treated as equal."""
        grid = self.cell_grid
        seen = [self._values(p) for p in (np.full(grid.cells, 1.0 / grid.cells), grid.start)]
        return np.moveaxis(np.array(seen), 2, -1).reshape(-1, grid.cells)

    def _many(self, forecast: Any) -> Array | None:
        return at_once(
            lambda ys: self.function(self.cell_grid.features, forecast, ys),
            lambda y: self._at(forecast, y),
            self.points,
            self.size,
        )

    def _at(self, forecast: Any, y: Any) -> Array:
        return vector(self.function, self.cell_grid.features, forecast, y, what="payoff")

    def _values(self, p: Array) -> Array:
        """Coordinates x cells x nodes; cached for the last p."""
        key = p.tobytes()
        if self._last is None or self._last[0] != key:
            forecast = self.cell_grid.forecast(p)
            if self.cell_grid.ordered and self.at_once:
                many = self._many(forecast)
                if many is not None:
                    self._last = key, many.reshape(self.size, self.cell_grid.cells, NODES.size)
                    return self._last[1]
            features = self.cell_grid.features
            rows = vectors(lambda y: self.function(features, forecast, y), self.nodes, self.size, "payoff")
            self._last = key, rows.T.reshape(self.size, self.cell_grid.cells, -1)
        return self._last[1]

    def table(self, p: Array) -> Array:
        values = self._values(p)
        return values @ MEAN_WEIGHTS if self.cell_grid.ordered else values[:, :, 0]

    def spans(self, p: Array) -> tuple[Array, Array]:
        values = self._values(p)
        if self.cell_grid.ordered:
            return between_nodes(values)
        table = values[:, :, 0]
        return table, table

    def check(self, p: Array) -> None:
        """Refuse a payoff whose mean under the forecast is not zero."""
        mean = self.table(p) @ p
        off = np.maximum(mean, 0.0) if self.one_sided else np.abs(mean)
        if float(off.max()) > INCONSISTENT * self.limit**0.5:
            raise ValueError(
                f"expected a payoff whose mean under the forecast is {'at most ' if self.one_sided else ''}zero, "
                f"got {float(mean[int(off.argmax())]):.3g}: run check_payoff for details"
            )

    def realised(self, p: Array, k: int, y: Any) -> Array:
        grid = self.cell_grid
        at = float(np.clip(y, grid.low, grid.high)) if grid.ordered else grid.values[k]
        value = self._at(self.cell_grid.forecast(p), at)
        check_bound(float(value @ value), self.limit, "payoff")
        return value

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Assess and check all cells."""
        linear, square = super().assess(s, factor, p)
        if factor > 0.0:
            check_bound(float(square.max()) / factor, self.limit, "payoff")
        return linear, square


class Custom(Payoff):
    """User-defined payoff: a function of (x, p, y) that returns a vector (paper, section 4).

    Parameters
    ----------
    function
        Function of the features, the forecast and the outcome, continuous in the forecast.
    bound
        Bound on the squared norm of the payoff, checked in every round.
    one_sided
        True if only a positive mean is an error; False by default.
    jumps
        Outcomes at which the function jumps, which become edges of cells.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The payoff must be bounded and consistent; `check_payoff` tests both:

        E_{y ~ p} payoff(x, p, y) = 0,    ||payoff(x, p, y)||^2 <= bound

    If `one_sided`, its mean under p must be at most zero.

    Examples
    --------
    >>> import orcast as oc
    >>> skew = oc.Custom(lambda x, p, y: [(y - p.mean()) / 10], bound=1.0)
    >>> oc.check_payoff(skew, oc.Interval(0, 10))
    >>> p = oc.Recalibrator(oc.Interval(0, 10), skew).predict(oc.Normal(4, 1))
    """

    name = "custom"

    def __init__(
        self,
        function: Callable[[Any, Any, Any], Any],
        *,
        bound: float,
        one_sided: bool = False,
        jumps: Iterable[float] | None = None,
        context: Context | None = None,
        weight: float = 1.0,
    ) -> None:
        if not callable(function):
            raise TypeError(f"expected a function of (x, p, y), got {short(function)}")
        self.function = function
        self.limit = number(bound, "bound", 1e-12, 1e12)
        self.one_sided = bool(one_sided)
        self.jumps = NOTHING if jumps is None else increasing(jumps, "finite jumps", -np.inf, np.inf)
        self._settings(context, weight)

    def on(self, space: Space, experts: int = 1) -> Part:

        def cell_payoff(cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
            return CustomCellPayoff(self.function, cell_grid, self.limit, self.one_sided)

        return Part(self, UNKNOWN, self.limit, "general", cell_payoff, jumps_inside(self.jumps, space))

    def _plain(self) -> dict[str, Any]:
        return {"bound": self.limit, "one_sided": self.one_sided, "jumps": self.jumps.tolist()}
