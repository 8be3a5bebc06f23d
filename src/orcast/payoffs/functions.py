"""Functions of users between the points at which they are evaluated: declared slopes, scans, and refused peaks.

A function with a Lipschitz constant L that has the values a and b at two points h apart lies, between them, within
L h / 2 of (a + b) / 2. With `jumps` alone it is taken to be monotone between neighbouring jumps. Without a declaration
a function of a bounded outcome is scanned, and refused if probes between the points of the scan find a peak.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.payoffs.base import NOTHING
from orcast.spaces import OrderedSpace, Space
from orcast.validation import number

Array = NDArray[np.float64]

# Points of a scan, random probes between them, and the largest accepted excess of a probe, in roots of the bound.
SCAN, PROBES, PEAK = 2049, 4096, 0.02
# Distance on either side of a number at which a point indicator shows.
BESIDE = 1e-9


class Shape(NamedTuple):
    """Information on a function between its nodes: a Lipschitz constant (0 if none), or a scan with its margin."""

    lipschitz: float = 0.0
    points: Array = NOTHING
    values: Array = NOTHING
    margin: float = 0.0

    @property
    def plain(self) -> bool:
        """True if bounds between points are values at the points."""
        return self.lipschitz == 0.0 and self.margin == 0.0

    def between(self, values: Array, nodes: Array, what: str) -> tuple[Array, Array]:
        """Return bounds between neighbouring nodes; `nodes` has a row a cell, `values` a coordinate before that."""
        a, b = values[..., :-1], values[..., 1:]
        lower, upper = np.minimum(a, b), np.maximum(a, b)
        if self.lipschitz > 0.0:
            reach = 0.5 * self.lipschitz * np.diff(nodes, axis=-1)
            steep = upper - lower > 2.0 * reach * (1.0 + 1e-6) + 1e-9
            if steep.any():
                k = int(np.argmax(steep.any(axis=(0, 2))))
                raise ValueError(
                    f"expected a {what} with a slope of at most lipschitz={self.lipschitz:g} between its jumps, got "
                    f"more between {nodes[k, 0]:.6g} and {nodes[k, -1]:.6g}"
                )
            middle = 0.5 * (lower + upper)
            return np.minimum(lower, middle - reach), np.maximum(upper, middle + reach)
        if self.points.size and len(self.values) == len(values):
            count = nodes.shape[1]
            at = np.searchsorted(nodes.ravel(), self.points) - 1
            # between the last node of a cell and the first one of the next: a part of the next cell
            cell, piece = np.where(at % count == count - 1, at // count + 1, at // count), at % count % (count - 1)
            inside = (at >= 0) & (cell < len(nodes))
            flat = cell[inside] * (count - 1) + piece[inside]
            for low, high, seen in zip(lower, upper, self.values[:, inside], strict=True):
                np.minimum.at(low.reshape(-1), flat, seen)
                np.maximum.at(high.reshape(-1), flat, seen)
            lower -= 2.0 * self.margin
            upper += 2.0 * self.margin
        return lower, upper


def jumps_inside(jumps: Array | None, space: Space) -> Array:
    """Jumps that become edges of cells: those strictly inside an ordered space."""
    if jumps is None or not isinstance(space, OrderedSpace):
        return NOTHING
    return jumps[(jumps > space.low) & (jumps < space.high)]


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


def scan(
    function: Callable[[float], Array],
    many: Callable[[Array], Array],
    space: Space,
    unit: float,
    known: list[float],
    what: str,
) -> tuple[Array, Shape]:
    """Return jumps and shape of a function without a declaration; refuse one with a narrow peak."""
    if not isinstance(space, OrderedSpace):
        return NOTHING, Shape()
    low, high = space.low, space.high
    if not math.isfinite(high - low):
        refuse_points(function, unit, known, low, high, what)
        return NOTHING, Shape()
    jumps, points = find_jumps(function, low, high), np.linspace(low, high, SCAN)
    probes = np.append(np.random.default_rng(0).uniform(low, high, PROBES), known)
    probes = probes[(probes > low) & (probes <= high)]
    values, found, right = many(points), many(probes), np.searchsorted(points, probes)
    a, b = values[:, right - 1], values[:, right]
    beyond = np.maximum(found - np.maximum(a, b), np.minimum(a, b) - found).max(axis=0)
    beyond[np.isin(right, np.searchsorted(points, jumps))] = 0.0
    at = int(beyond.argmax())
    if beyond[at] > PEAK * unit:
        raise peak_at(float(probes[at]), float(beyond[at]), what)
    return jumps, Shape(points=points, values=values, margin=max(float(beyond[at]), 0.0))


def refuse_points(
    function: Callable[[float], Array], unit: float, known: list[float], low: float, high: float, what: str
) -> None:
    """Refuse a function that differs at one of its own numbers from the values on both sides of it."""
    for c in known:
        h = BESIDE * max(1.0, abs(c))
        if low < c - h and c + h < high:
            left, at, right = function(c - h), function(c), function(c + h)
            beyond = float(np.maximum(at - np.maximum(left, right), np.minimum(left, right) - at).max())
            if beyond > PEAK * unit:
                raise peak_at(c, beyond, what)


def peak_at(y: float, size: float, what: str) -> ValueError:
    """Error for a peak."""
    return ValueError(
        f"expected a {what} without peaks between the points that are evaluated, got one of {size:.3g} at {y:.6g} "
        "(declare places of jumps and turning points by jumps=, or a bound of the slope by lipschitz=)"
    )


def lipschitz_of(value: float | None) -> float:
    """Return a declared Lipschitz constant; 0 if there is none."""
    return 0.0 if value is None else number(value, "lipschitz", 1e-300, 1e300)


def numbers_in(function: Any) -> list[float]:
    """Finite numbers in the code, the defaults, the closure and the global names of a function."""
    if not isinstance(function, FunctionType):
        return []
    code, known = function.__code__, inspect.getclosurevars(function)
    given = (*code.co_consts, *(function.__defaults__ or ()), *known.nonlocals.values(), *known.globals.values())
    numbers = (each for each in given if isinstance(each, (int, float)) and not isinstance(each, bool))
    return sorted({float(each) for each in numbers if math.isfinite(each)})
