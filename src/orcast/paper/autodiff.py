"""Payoffs and families of your own, written with JAX: exact derivatives, compiled searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.paper import tracing
from orcast.paper.orca_kernels import TIED
from orcast.paper.tracing import INNER, INNER_WEIGHTS, Fixed, RefusedTrace, double, load_jax, places_of
from orcast.payoffs.base import CellGrid, CellPayoff
from orcast.payoffs.calibration import closed
from orcast.payoffs.cell_payoffs import NODES, nodes_of, vector
from orcast.payoffs.recipe import CustomCellPayoff, FunctionPayoff, check_bound
from orcast.spaces import FiniteSpace, Space
from orcast.validation import short

if TYPE_CHECKING:
    from orcast.paper.orca import Orca

Array = NDArray[np.float64]

# Cells come in few sizes, so that programs are compiled once: as many as the space has, else multiples of this.
SIZES = 16
# Cells that are only there for the size hold no more than this; it has a logarithm.
NO_MASS = 1e-300
# Compiled searches that are kept.
SEARCHES = 64
# What may go wrong in a compiled search.
FINE, VALUES, SLOPES, MASSES = 0, 1, 2, 3


# --- the programs of a payoff
class Program:
    """A function of (x, p, y), traced and compiled: its values at many points, and derivatives by the masses."""

    def __init__(self, function: Callable[[Any, Any, Any], Any]) -> None:
        self.function = function
        self.used: set[str] = set()
        self.traces = 0
        jax = load_jax()
        self._values = jax.jit(self.rows, static_argnums=0)
        self._jacobian = jax.jit(self._by_masses, static_argnums=0)
        self._slopes = jax.jit(self._pulled, static_argnums=0)

    # in the trace
    def row(self, fixed: Fixed, numbers: dict[str, Any], view: Any, y: Any) -> Any:
        """The function at one outcome."""
        jax = load_jax()
        x: Any = tracing.FeatureArrays(numbers, fixed.values, self.used)
        if not fixed.by_name:
            x = x[""]
        array = jax.numpy.atleast_1d(tracing.traced_numbers(self.function, x, view, y, what="payoff"))
        if array.ndim != 1:
            raise RefusedTrace(ValueError(f"expected a sequence of numbers from the payoff, got shape {array.shape}"))
        return array

    def _each(self, fixed: Fixed, numbers: dict[str, Any], s: Any, mass: Any, places: Any, points: Any) -> Any:
        """At every point the value, or its product with s."""
        self.traces += 1
        view = tracing.view_of(mass, places)

        def at(y: Any) -> Any:
            row = self.row(fixed, numbers, view, y)
            return row if s is None else row @ s

        return load_jax().vmap(at)(points)

    def rows(self, fixed: Fixed, numbers: dict[str, Any], mass: Any, places: Any, points: Any) -> Any:
        """Values, a row a coordinate and a column a point."""
        return self._each(fixed, numbers, None, mass, places, points).T

    def field(
        self, fixed: Fixed, numbers: dict[str, Any], s: Any, mass: Any, places: Any, points: Any, weights: Any
    ) -> Any:
        """<s, payoff> in each cell, by the weights of the points in it."""
        return self._each(fixed, numbers, s, mass, places, points).reshape(-1, weights.size) @ weights

    def _by_masses(self, fixed: Fixed, numbers: dict[str, Any], s: Any, mass: Any, *rest: Any) -> Any:
        return load_jax().jacfwd(lambda m: self.field(fixed, numbers, s, m, *rest))(mass)

    def _pulled(self, fixed: Fixed, numbers: dict[str, Any], s: Any, mass: Any, chosen: Any, *rest: Any) -> Any:
        return load_jax().grad(lambda m: self.field(fixed, numbers, s, m, *rest) @ chosen)(mass)

    # outside of it
    def values(self, *arguments: Any) -> Array:
        """As `rows`, compiled; finite, or one clear sentence."""
        with double():
            found = np.asarray(self._values(*arguments))
        if not np.isfinite(found).all():
            bad = found[:, ~np.isfinite(found).all(axis=0)][:, 0]
            raise ValueError(f"expected finite numbers from the payoff, got {short(bad.tolist())}")
        return found

    def jacobian(self, *arguments: Any) -> Array | None:
        """Derivatives of `field` by the masses, where there are some."""
        with double():
            found = np.asarray(self._jacobian(*arguments))
        return found if np.isfinite(found).all() else None

    def slopes(self, *arguments: Any) -> Array:
        """The same for one mixture of the cells; finite, or one clear sentence."""
        with double():
            found = np.asarray(self._slopes(*arguments))
        if not np.isfinite(found).all():
            raise ValueError(_MESSAGES[SLOPES])
        return found


_MESSAGES = {
    VALUES: "expected finite numbers from the payoff, got others on the way of a search",
    SLOPES: "expected finite derivatives of the payoff and of the family, got others (jnp.where looks at both sides)",
    MASSES: "expected masses that are finite and not negative, with a positive sum, from the family {name}, got others",
}


def _padded_size(space: Space, cells: int) -> int:
    """How many cells a program is made for."""
    return space.cells if cells <= space.cells else -(-cells // SIZES) * SIZES


def _padded(values: Array, count: int, rest: float) -> Array:
    """So many values, with those of cells that are only there for the size."""
    return values if values.size == count else np.concatenate((values, np.full(count - values.size, rest)))


class DifferentiableCellPayoff(CustomCellPayoff):
    """A compiled function of (x, p, y) at every cell, checked for consistency as a CustomCellPayoff is."""

    def __init__(self, program: Program, cell_grid: CellGrid, limit: float, one_sided: bool) -> None:
        self.program, self.cell_grid, self.limit, self.one_sided = program, cell_grid, limit, one_sided
        self.fixed, self.numbers = tracing.split_features(cell_grid.features, program.used)
        self.places = places_of(cell_grid)
        self.count = cell_grid.cells
        self._points = self.places[0]
        if cell_grid.ordered:
            self.count = _padded_size(cell_grid.space, cell_grid.cells)
            left, right = self.places = tuple(_padded(side, self.count, cell_grid.right[-1]) for side in self.places)
            self._points = nodes_of(left, right)
        self._last = None
        self.size = len(self._values(cell_grid.start))

    def _at_points(self, p: Array, points: NDArray[Any]) -> Array:
        return self.program.values(self.fixed, self.numbers, _padded(p, self.count, NO_MASS), self.places, points)

    def _values(self, p: Array) -> Array:
        """Coordinates x cells x nodes; those of the last p are remembered."""
        key = p.tobytes()
        if self._last is None or self._last[0] != key:
            nodes = NODES.size if self.cell_grid.ordered else 1
            points = self._points.ravel() if self.cell_grid.ordered else self._points
            values = self._at_points(p, points)
            self._last = key, values.reshape(len(values), self.count, nodes)[:, : p.size]
        return self._last[1]

    def centres(self, p: Array) -> Array:
        """The payoff for an outcome in the middle of each cell."""
        return self._values(p)[:, :, NODES.size // 2] if self.cell_grid.ordered else self.table(p)

    def realised(self, p: Array, k: int, y: Any) -> Array:
        """At the outcome itself."""
        if self.cell_grid.ordered:
            # as many points as ever, so that the same program serves
            at = float(np.clip(y, self.cell_grid.low, self.cell_grid.high))
            value = self._at_points(p, np.full(self._points.size, at))[:, 0]
        else:
            value = self.table(p)[:, k]
        check_bound(float(value @ value), self.limit, "payoff")
        return value

    def _averaged(self) -> tuple[tuple[NDArray[Any], ...], NDArray[Any], Array]:
        """Ends of the cells, points in them and their weights in a mean over the cell."""
        if self.cell_grid.ordered:
            return self.places, self._points[:, 1:-1].ravel(), INNER_WEIGHTS
        return self.places, self._points, np.ones(1)

    def jacobian(self, s: Array, p: Array) -> Array | None:
        """By automatic differentiation."""
        found = self.program.jacobian(self.fixed, self.numbers, s, _padded(p, self.count, NO_MASS), *self._averaged())
        return None if found is None else found[: p.size, : p.size]

    def slopes(self, s: Array, p: Array, weights: Array) -> Array:
        """By automatic differentiation, backwards."""
        chosen = _padded(weights, self.count, 0.0)
        found = self.program.slopes(
            self.fixed, self.numbers, s, _padded(p, self.count, NO_MASS), chosen, *self._averaged()
        )
        return found[: p.size]


class Differentiable(FunctionPayoff):
    """Any payoff of your own, like `Custom`, written with `jax.numpy`: fast, with exact derivatives.

        E_{y ~ p} payoff(x, p, y) = 0,    ||payoff(x, p, y)||^2 <= bound

    A function of (x, p, y) with a vector as value, bounded (`bound` on its squared norm, checked in every round),
    continuous in p, and consistent: its mean under p itself is zero, or at most zero if `one_sided` (paper, section
    4).  It is traced and compiled once, not called in every round: `p` is a view of the forecast with `mass`
    and `expect(g)`, for quantities also `left`, `right`, `mean()`, `var()`, `std()`, `cdf(z)`,
    `quantile(a)`, else `values`; `y` is a number (of labels their place, of vectors a vector).  Numbers among the
    features `x` are traced; for other values of those that it uses, it is compiled anew.  Cells that hold next
    to nothing may follow the last one, so that there are always as many.

    The equilibrium gets Newton's method from the derivatives, and `Orca` runs its whole search compiled if all
    payoffs of a sum are of this kind and its family is `Softmax` or `JaxFamily`.

    >>> import jax.numpy as jnp
    >>> import orcast as oc
    >>> spread = oc.paper.Differentiable(lambda x, p, y: [jnp.tanh(p.std()) * (y - p.mean())], bound=1.0)
    >>> oc.check_payoff(spread, oc.Interval(0, 1))
    >>> p = oc.Forecaster(oc.Interval(0, 1), spread, oracle=oc.Orca()).predict()
    """

    name = "differentiable"

    def _check_installed(self) -> None:
        load_jax(type(self).__name__)

    @cached_property
    def program(self) -> Program:
        """The function, traced and compiled."""
        return Program(self.function)

    def __getstate__(self) -> dict[str, Any]:
        # what is compiled stays in its process
        return {name: value for name, value in self.__dict__.items() if name != "program"}

    def on_cells(self, cell_grid: CellGrid) -> CellPayoff:
        """The compiled function at the cells of a round."""
        return DifferentiableCellPayoff(self.program, cell_grid, self.limit, self.one_sided)

    def evaluate(self, space: Space, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
        """The function, as written: neither traced nor compiled."""
        mass = forecast.mass
        if isinstance(space, FiniteSpace):
            places: tuple[NDArray[Any], ...] = (tracing.values_of(space),)
            at = places[0][space.cell(space.outcome(y))]
        else:
            places = closed(forecast)
            at = np.clip(float(y), places[0][0], places[1][-1])
            # JAX compiles even single operations, for each size
            count = _padded_size(space, mass.size)
            places = tuple(_padded(side, count, places[1][-1]) for side in places)
            mass = _padded(mass, count, NO_MASS)
        with double() as jax:
            view = tracing.view_of(jax.numpy.asarray(mass), tuple(map(jax.numpy.asarray, places)))
            return vector(self.function, x, view, jax.numpy.asarray(at), what="payoff")


# --- families
class JaxFamily:
    """A family of forecasts of your own for `Orca`, written with `jax.numpy` (paper, section 5).

        p_k = f_k(parameters) / sum_j f_j(parameters)

    `function(parameters, left, right)` gives the masses of the cells from `left` to `right`, which are divided by
    their sum; on finite spaces both are the values.  `start` are the parameters to start at, or a function
    `start(left, right, masses)` whose forecast should be near given masses.  Derivatives are automatic.

    >>> import jax.numpy as jnp
    >>> import orcast as oc
    >>> logistic = lambda a, left, right: jnp.diff(1 / (1 + jnp.exp(-(jnp.append(left, 1.0) - a[0]) / jnp.exp(a[1]))))
    >>> oracle = oc.Orca(family=oc.paper.JaxFamily(logistic, [0.5, -2.0], name="logistic"))
    >>> p = oc.Forecaster(oc.Interval(0, 1), oc.MomentMatching(1), oracle=oracle).predict()
    """

    def __init__(
        self,
        function: Callable[[Any, Any, Any], Any],
        start: Callable[[Array, Array, Array], Any] | Iterable[float],
        *,
        name: str = "jax",
    ) -> None:
        load_jax(type(self).__name__)
        if not callable(function):
            raise TypeError(f"expected a function of (parameters, left, right), got {short(function)}")
        self.function = function
        self.name = str(name)
        self._start: Any = start if callable(start) else vector(lambda: start, what="start of a family")

    @cached_property
    def _compiled(self) -> tuple[Any, Any]:
        jax = load_jax()
        return jax.jit(self.traced), jax.jit(self._back)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled"}

    def traced(self, parameters: Any, left: Any, right: Any) -> Any:
        """The masses, in the trace."""
        jax = load_jax()
        raw = tracing.traced_numbers(self.function, parameters, left, right, what=f"family {self.name}")
        if raw.shape != left.shape[:1]:
            text = f"expected {left.shape[0]} masses from the family {self.name}, got shape {raw.shape}"
            raise RefusedTrace(ValueError(text))
        # what is not a mass makes nothing of all of them, so that it is noticed
        sound = (raw >= 0.0).all() & (raw.sum() > 0.0)
        return jax.numpy.where(sound, raw, np.nan) / raw.sum()

    def _back(self, parameters: Any, left: Any, right: Any, gradient: Any) -> Any:
        return load_jax().vjp(lambda a: self.traced(a, left, right), parameters)[1](gradient)[0]

    @staticmethod
    def _sides(cell_grid: CellGrid) -> tuple[NDArray[Any], NDArray[Any]]:
        places = places_of(cell_grid)
        return places[0], places[-1]

    def _sound(self, values: Any, trouble: int) -> Array:
        array = np.asarray(values)
        if not np.isfinite(array).all():
            raise ValueError(_MESSAGES[trouble].format(name=self.name))
        return array

    def start(self, cell_grid: CellGrid, masses: Array) -> Array:
        """Parameters to start at."""
        if not callable(self._start):
            return np.array(self._start)
        with double():
            return vector(self._start, *self._sides(cell_grid), masses, what=f"start of the family {self.name}")

    def masses(self, cell_grid: CellGrid, parameters: Array) -> Array:
        """The function, normalised."""
        with double():
            return self._sound(self._compiled[0](parameters, *self._sides(cell_grid)), MASSES)

    def pull(self, cell_grid: CellGrid, parameters: Array, gradient: Array) -> Array:
        """Backwards through it."""
        with double():
            return self._sound(self._compiled[1](parameters, *self._sides(cell_grid), gradient), SLOPES)

    def to_plain(self) -> dict[str, Any]:
        """Plain data; its functions must be passed again."""
        return {
            "kind": "JaxFamily",
            "name": self.name,
            "start": None if callable(self._start) else self._start.tolist(),
        }

    def __repr__(self) -> str:
        return f"JaxFamily({self.name!r})"


# --- the whole search of ORCA
def compiles(family: Any, cell_payoffs: Sequence[CellPayoff]) -> bool:
    """Whether a search can be compiled as a whole."""
    from orcast.paper.families import Softmax

    known = isinstance(family, JaxFamily) or type(family) is Softmax
    return (
        known
        and len(cell_payoffs) > 0
        and all(isinstance(cell_payoff, DifferentiableCellPayoff) for cell_payoff in cell_payoffs)
    )


def descend(
    options: Orca,
    cell_payoffs: Sequence[Any],
    owed: Sequence[Array],
    cell_grid: CellGrid,
    parameters: Array,
    nature: Array,
    soft: float,
) -> Array:
    """The twin of OrcaSolver._search in one compiled loop; returns the best masses, or raises one clear sentence."""
    places = places_of(cell_grid)
    if not cell_grid.ordered:
        points, weights = places[0], np.ones(1)
    else:
        shares, weights = (np.full(1, 0.5), np.ones(1)) if options.adversary == "dirac" else (INNER, INNER_WEIGHTS)
        points = (places[0][:, None] + shares * (places[1] - places[0])[:, None]).ravel()
    family = options.family if isinstance(options.family, JaxFamily) else None
    search = _search(tuple(each.program for each in cell_payoffs), family, nature.size > 0, options.soft > 0.0)
    given = SearchInputs(
        numbers=tuple(each.numbers for each in cell_payoffs),
        owed=tuple(owed),
        places=places,
        points=points,
        weights=weights,
        nature=nature,
        soft=max(soft, 1e-300),
        rates=np.array(options.optimizer.rates),
        steps=options.steps,
    )
    with double():
        best, trouble = search.run(tuple(each.fixed for each in cell_payoffs), given, parameters)
        p, code = np.asarray(best), int(trouble)
    if code != FINE:
        raise ValueError(_MESSAGES[code].format(name=getattr(family, "name", "Softmax")))
    return p


class SearchInputs(NamedTuple):
    """What a compiled search is given of a round: features and what is owed, for each payoff; cells; options."""

    numbers: Any
    owed: Any
    places: Any
    points: Any  # where the payoffs are looked at
    weights: Any  # of the points of a cell
    nature: Any
    soft: Any
    rates: Any  # those of Adam
    steps: Any


class SearchState(NamedTuple):
    """Where a search is: steps taken, parameters, Adam's two means, the best parameters and their value, trouble."""

    taken: Any
    at: Any
    first: Any
    second: Any
    best: Any
    found: Any
    trouble: Any


class CompiledSearch:
    """ORCA's search for some payoffs and a family (none: a softmax), traced and compiled.

    `mixed` says whether Nature has components of her own, `softened` whether her maximum is a softmax.
    """

    def __init__(self, programs: tuple[Program, ...], family: JaxFamily | None, mixed: bool, softened: bool) -> None:
        self.programs, self.family, self.mixed, self.softened = programs, family, mixed, softened
        self.run = load_jax().jit(self._run, static_argnums=0)

    def _masses(self, parameters: Any, places: Any) -> Any:
        if self.family is None:
            return load_jax().nn.softmax(parameters)
        return self.family.traced(parameters, places[0], places[-1])

    def _reached(self, fixed: Any, given: SearchInputs, at: Any) -> Any:
        """What Nature can reach at some parameters, and the masses there."""
        p = self._masses(at, given.places)
        each = zip(self.programs, fixed, given.numbers, given.owed, strict=True)
        v = sum(one.field(f, x, s, p, given.places, given.points, given.weights) for one, f, x, s in each)
        return (given.nature @ v if self.mixed else v), p

    def _chosen(self, reach: Any, soft: Any) -> Any:
        """Nature's weights, as orca_kernels.weigh."""
        jax = load_jax()
        if self.softened:
            return jax.nn.softmax(reach / soft)
        top = reach.max()
        first = jax.numpy.argmax(reach >= top - TIED * (top - reach.min()))
        return (jax.numpy.arange(reach.size) == first).astype(reach.dtype)

    def _step(self, fixed: Any, given: SearchInputs, state: SearchState) -> SearchState:
        jax = load_jax()
        jnp = jax.numpy
        rate, keep_first, keep_second, safe = given.rates
        taken, at, first, second, best, found, _ = state
        reach, back, p = jax.vjp(lambda a: self._reached(fixed, given, a), at, has_aux=True)
        top = reach.max()
        best, found = jnp.where(top < found, at, best), jnp.minimum(top, found)
        (gradient,) = back(self._chosen(reach, given.soft))
        first = keep_first * first + (1.0 - keep_first) * gradient
        second = keep_second * second + (1.0 - keep_second) * gradient**2
        after = taken + 1.0
        size = jnp.sqrt(second / (1.0 - keep_second**after)) + safe
        at = at - rate * (first / (1.0 - keep_first**after)) / size
        trouble = jnp.where(jnp.isfinite(gradient).all() | (found <= 0.0) | (taken == given.steps), FINE, SLOPES)
        trouble = jnp.where(jnp.isfinite(top), trouble, VALUES)
        trouble = jnp.where(jnp.isfinite(p).all(), trouble, MASSES)
        return SearchState(taken + 1, at, first, second, best, found, trouble.astype(np.int64))

    def _run(self, fixed: Any, given: SearchInputs, parameters: Any) -> Any:
        jax = load_jax()
        none = jax.numpy.zeros(parameters.size)
        start = SearchState(np.int64(0), parameters, none, none, parameters, np.float64(np.inf), np.int64(FINE))

        def goes_on(state: SearchState) -> Any:
            return (state.found > 0.0) & (state.taken <= given.steps) & (state.trouble == FINE)

        last = jax.lax.while_loop(goes_on, lambda state: self._step(fixed, given, state), start)
        return self._masses(last.best, given.places), last.trouble


_search = lru_cache(maxsize=SEARCHES)(CompiledSearch)
