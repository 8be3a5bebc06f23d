"""JAX, and what a function that it traces sees: forecasts, and features.

JAX is imported when it is first needed.  All is computed in float64 on the processor, within a context of its own: how
JAX is configured elsewhere is neither asked nor changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.payoffs.base import CellGrid
from orcast.payoffs.cell_payoffs import MEAN_WEIGHTS, NODES
from orcast.spaces import Binary, FiniteSpace, Labels
from orcast.validation import short

# Where means over a cell are taken, and the weights; the ends of a cell have none.
INNER, INNER_WEIGHTS = NODES[1:-1], MEAN_WEIGHTS[1:-1]


def load_jax(what: str = "it") -> Any:
    """JAX, or one clear sentence on what needs it."""
    try:
        return import_module("jax")
    except ImportError:
        raise ImportError(
            f"expected the extra orcast[jax] for {what} (pip install 'orcast[jax]'), got no jax"
        ) from None


@lru_cache(maxsize=1)
def _processor() -> Any:
    """Loops over few cells are slower on anything else, and float64 is not known everywhere."""
    try:
        return load_jax().local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


class RefusedTrace(Exception):
    """Carries an error out of a trace, where JAX would add remarks to it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def double() -> Iterator[Any]:
    """JAX with 64 bits, here and in this thread only."""
    jax = load_jax()
    wide = jax.enable_x64(True) if hasattr(jax, "enable_x64") else import_module("jax.experimental").enable_x64()
    try:
        with wide, jax.default_device(_processor()):
            yield jax
    except RefusedTrace as refused:
        raise refused.error from refused.__cause__


def traced_numbers(function: Callable[..., Any], *arguments: Any, what: str) -> Any:
    """What a user's function returns in a trace, as an array of numbers, or one clear sentence."""
    jax = load_jax()
    try:
        value = function(*arguments)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as reason:
        first = str(reason).split("\n")[0]
        text = f"expected a {what} written with jax.numpy (where instead of if), got one that is not: {first}"
        raise RefusedTrace(TypeError(text)) from reason
    try:
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError
        return jax.numpy.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise RefusedTrace(TypeError(f"expected numbers from the {what}, got {short(value)}")) from None


# --- forecasts
class OrderedView:
    """A forecast of a quantity as a traced function sees it: masses on cells, even within each.

    `mass`, `left` and `right` are rows of numbers, a cell each; some cells at the right end may be there for the
    size only, without width and with a mass of 1e-300.  What it computes is what `Forecast` computes.
    """

    def __init__(self, jax: Any, mass: Any, left: Any, right: Any) -> None:
        self._jax, self.mass, self.left, self.right = jax, mass, left, right

    def mean(self) -> Any:
        """Expected value."""
        return 0.5 * (self.mass @ (self.left + self.right)) / self.mass.sum()

    def var(self) -> Any:
        """Variance."""
        mean = self.mean()
        a, b = self.left - mean, self.right - mean
        return self.mass @ (a * a + a * b + b * b) / 3.0

    def std(self) -> Any:
        """Standard deviation; where it is zero, its derivative is taken to be zero."""
        jnp, var = self._jax.numpy, self.var()
        return jnp.where(var > 0.0, jnp.sqrt(jnp.where(var > 0.0, var, 1.0)), 0.0)

    def cdf(self, y: Any) -> Any:
        """P(outcome <= y), for a number or an array."""
        jnp = self._jax.numpy
        at = jnp.asarray(y)[..., None]
        width = self.right - self.left
        within = jnp.clip((at - self.left) / jnp.where(width > 0.0, width, 1.0), 0.0, 1.0)
        return jnp.where(width > 0.0, within, at >= self.left) @ self.mass / self.mass.sum()

    def sf(self, y: Any) -> Any:
        """P(outcome > y)."""
        return 1.0 - self.cdf(y)

    def quantile(self, levels: Any) -> Any:
        """The smallest y with P(outcome <= y) >= level, for a number or an array."""
        jnp = self._jax.numpy
        a = jnp.asarray(levels)
        above = jnp.cumsum(self.mass)
        above = above / above[-1]
        k = jnp.minimum((above < a[..., None]).sum(axis=-1), self.mass.size - 1)
        mass = self.mass[k] / self.mass.sum()
        share = jnp.clip(1.0 - (above[k] - a) / jnp.where(mass > 0.0, mass, 1.0), 0.0, 1.0)
        return self.left[k] + share * (self.right[k] - self.left[k])

    ppf = quantile

    def median(self) -> Any:
        """The 50% quantile."""
        return self.quantile(0.5)

    def expect(self, function: Callable[[Any], Any]) -> Any:
        """E[function(y)] for a function of one value, by five-point Gauss quadrature in each cell."""
        jnp = self._jax.numpy
        points = self.left[:, None] + INNER * (self.right - self.left)[:, None]
        shares = self.mass[:, None] * INNER_WEIGHTS
        return jnp.tensordot(shares.ravel(), self._jax.vmap(function)(points.ravel()), axes=1)


class FiniteView:
    """A forecast on a finite space as a traced function sees it: a mass for each of the `values`.

    Values are 0 and 1, the places of labels, directions, or vectors, a row each.
    """

    def __init__(self, jax: Any, mass: Any, values: Any) -> None:
        self._jax, self.mass, self.values = jax, mass, values

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"expected mass, values or expect(g) of a forecast on a finite space, got {name}")

    def expect(self, function: Callable[[Any], Any]) -> Any:
        """E[function(y)] for a function of one value."""
        return self._jax.numpy.tensordot(self.mass, self._jax.vmap(function)(self.values), axes=1)


def values_of(space: FiniteSpace) -> NDArray[Any]:
    """The values of a finite space as numbers: places where they are labels or any objects."""
    points = space.points
    if isinstance(space, (Binary, Labels)) or not isinstance(points, np.ndarray):
        return np.arange(space.cells)
    return points


def view_of(mass: Any, places: tuple[Any, ...]) -> Any:
    """Masses on cells between two ends, or on the values of a finite space."""
    return OrderedView(load_jax(), mass, *places) if len(places) == 2 else FiniteView(load_jax(), mass, *places)


def places_of(cell_grid: CellGrid) -> tuple[NDArray[Any], ...]:
    """The ends of the cells, or the values of a finite space."""
    if cell_grid.ordered:
        return cell_grid.left.copy(), cell_grid.right.copy()
    assert isinstance(cell_grid.space, FiniteSpace)
    return (values_of(cell_grid.space),)


# --- features
class FeatureArrays(Mapping[str, Any]):
    """Features by name: numbers are traced, anything else is fixed, and whether it was used is remembered."""

    def __init__(self, numbers: dict[str, Any], others: dict[str, Any], used: set[str]) -> None:
        self._numbers, self._others, self._used = numbers, others, used

    def __getitem__(self, name: str) -> Any:
        if name in self._others:
            self._used.add(name)
            return self._others[name]
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._numbers, *self._others))

    def __len__(self) -> int:
        return len(self._numbers) + len(self._others)


class Fixed:
    """What is not a number among the features: a program is made for the values of those that it uses."""

    __slots__ = ("_key", "by_name", "values")

    def __init__(self, by_name: bool, values: dict[str, Any], used: set[str]) -> None:
        self.by_name, self.values = by_name, values
        seen = tuple((name, _key(values[name])) for name in sorted(values) if not by_name or name in used)
        self._key = by_name, tuple(sorted(values)), seen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _key(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(_key, value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value).__name__, repr(value)


def _numeric(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_numeric, value))
    return isinstance(value, (bool, int, float, np.number, np.bool_, np.ndarray))


def _leaves(value: Any) -> Any:
    """Numbers for tracing: float64, int64 or booleans, so that a program fits every round."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_leaves, value))
    array = np.asarray(value)
    if array.dtype.kind == "b":
        return array
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def split_features(features: Any, used: set[str]) -> tuple[Fixed, dict[str, Any]]:
    """What of the features is part of a program, which uses those names, and what is traced."""
    given = features if isinstance(features, dict) else {"": features}
    others = {name: value for name, value in given.items() if not _numeric(value)}
    numbers = {name: _leaves(value) for name, value in given.items() if name not in others}
    return Fixed(isinstance(features, dict), others, used), numbers
