"""Definitions of the payoffs, written for reading: slow twins of the payoffs on cells.

`Payoff.evaluate(space, forecast, y, expert, x)` is the payoff of one outcome in its own units.
"""

import itertools
import math
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.constants import TINY_MASS
from orcast.kernels.finite_solver import STEEPNESS
from orcast.payoffs import Payoff, calibration, decisions, probabilities, recipe, triangulated
from orcast.payoffs.cell_payoffs import MEAN_WEIGHTS, NODES
from orcast.spaces import FiniteSpace, OrderedSpace
from orcast.validation import vector

Array = NDArray[np.float64]


@singledispatch
def evaluate(payoff: Any, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    """Payoff of an outcome."""
    raise AttributeError(f"{type(payoff).__name__} has no definition")


def closed(forecast: Any) -> tuple[Array, Array]:
    """Left and right ends of the cells, with open-ended ones shrunk to their inner end."""
    left, right = forecast.left.copy(), forecast.right.copy()
    if np.isinf(left[0]):
        left[0] = right[0]
    if np.isinf(right[-1]):
        right[-1] = left[-1]
    return left, right


def hats(grid: int, q: Array) -> Array:
    """Hat functions, a row each: 1 around its middle, 0 beyond its soft edges; the outer two go on."""
    rows = []
    for v in range(grid):
        place = q * grid - 0.5 - v
        up = np.ones_like(q) if v == 0 else np.clip(0.5 + STEEPNESS * (place + 0.5), 0.0, 1.0)
        down = np.ones_like(q) if v == grid - 1 else np.clip(0.5 - STEEPNESS * (place - 0.5), 0.0, 1.0)
        u = np.minimum(up, down)
        rows.append(3.0 * u**2 - 2.0 * u**3)
    return np.array(rows)


def softmax(values: Array) -> Array:
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())


def happened(space: Any, y: Any) -> Array:
    """Indicator of the cell of an outcome."""
    return np.asarray(np.eye(space.cells)[space.cell(space.outcome(y))])


# --- quantities


@evaluate.register
def _(payoff: oc.QuantileCalibration, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    k = cell_of(forecast, y)
    below = forecast.below[k : k + 2].tolist()
    return np.array([share_below(level, *below) for level in payoff.levels.tolist()]) - payoff.levels


def cell_of(forecast: Any, y: float) -> int:
    """Cell of an outcome: on an edge the left one, at an atom the atom, beyond the window an outer one."""
    left, right = closed(forecast)
    k = min(int(np.searchsorted(right, y)), right.size - 1)
    return k + 1 if k + 1 < right.size and left[k + 1] == y == right[k + 1] else k


def share_below(level: float, low: float, high: float) -> float:
    """Share of a cell that lies below the level-quantile, with the masses up to its two ends."""
    mass = high - low
    if mass <= TINY_MASS:
        return float(level >= low)
    return min(max((level - low) / mass, 0.0), 1.0)


@evaluate.register
def _(payoff: oc.IntervalCalibration, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    rows = evaluate(oc.QuantileCalibration(payoff.levels), space, forecast, y)
    return np.array([rows[b] - rows[a] for a, b in payoff.ends])


@evaluate.register
def _(payoff: oc.MomentMatching, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    if not isinstance(space, OrderedSpace):
        values = payoff._values(space)
        return np.asarray(values @ (forecast.mass - happened(space, y)))
    left, right = closed(forecast)
    # without bounds the window is what the bounded cells cover
    low = space.low if math.isfinite(space.low) else left[0]
    high = space.high if math.isfinite(space.high) else right[-1]
    a, b, t = ((each - low) / (high - low) for each in (left, right, np.clip(y, low, high)))
    orders = range(1, payoff.order + 1)
    means = [forecast.mass @ sum(a**i * b ** (j - i) for i in range(j + 1)) / (j + 1) for j in orders]
    return np.array([mean - t**j for mean, j in zip(means, orders, strict=True)])


def at_thresholds(thresholds: Array, forecast: Any, y: float) -> tuple[Array, Array]:
    """P(outcome <= z), and the indicators."""
    left, right = closed(forecast)
    chances = np.array([float(forecast.mass[right <= z].sum()) for z in thresholds])
    return chances, (np.clip(y, left[0], right[-1]) <= thresholds).astype(np.float64)


@evaluate.register
def _(payoff: calibration.ThresholdCalibration, space: Any, forecast: Any, y: Any, *rest: Any) -> Array:
    chances, below = at_thresholds(payoff.thresholds, forecast, y)
    return (hats(payoff.grid, chances) * (chances - below)).ravel()


@evaluate.register
def _(payoff: triangulated.MomentBasedCalibration, space: Any, forecast: Any, y: Any, *rest: Any) -> Array:
    span = space.high - space.low
    a, b = (np.clip((end - space.low) / span, 0.0, 1.0) for end in closed(forecast))
    f = np.array([forecast.mass @ (a + b) / 2.0, forecast.mass @ (a * a + a * b + b * b) / 3.0])
    mesh = triangulated.moment_mesh(payoff.grid)
    ticks = np.arange(payoff.grid + 1) / payoff.grid
    inside = np.array([1.0, f[0], np.clip(f[1], np.interp(f[0], ticks, ticks**2), f[0])])
    weights = [np.linalg.solve(np.vstack((np.ones(3), mesh.points[corners].T)), inside) for corners in mesh.triangles]
    best = max(range(len(weights)), key=lambda i: weights[i].min())
    t = (np.clip(y, space.low, space.high) - space.low) / span
    out = np.zeros((len(mesh.points), 2))
    out[mesh.triangles[best]] = np.outer(weights[best], f - np.array([t, t * t]))
    return out.ravel()


# --- probabilities


def of_events(space: Any, values: Array) -> Array:
    """Of the outcome 1, or of each label."""
    return values[1:] if isinstance(space, oc.Binary) else values


@evaluate.register(oc.BinaryCalibration)
@evaluate.register(oc.LabelCalibration)
@evaluate.register(probabilities.Calibeating)
def _(payoff: Any, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    given = expert if isinstance(payoff, probabilities.Calibeating) else forecast
    errors = of_events(space, forecast.mass - happened(space, y))
    return (hats(payoff.grid, of_events(space, given.mass)) * errors).ravel()


@lru_cache
def vertices(labels: int, grid: int) -> Array:
    """All probabilities that are multiples of 1 / grid, in the order of the ledger."""
    places = np.array([row for row in itertools.product(range(grid + 1), repeat=labels) if sum(row) == grid])
    tails = np.cumsum(places[:, :0:-1], axis=1)[:, ::-1]
    out = np.empty((len(places), labels))
    out[triangulated.simplex_mesh(labels, grid).places(tails)] = places / grid
    return out


@evaluate.register
def _(payoff: triangulated.SimplexCalibration, space: Any, forecast: Any, y: Any, *rest: Any) -> Array:
    edges = payoff.inner_edges(space)
    if edges is None:
        mass, came = forecast.mass, happened(space, y)
    else:
        mass = np.diff([0.0, *(float(forecast.mass[forecast.right <= edge].sum()) for edge in edges), 1.0])
        came = np.eye(mass.size)[sum(y > edge for edge in edges)]
    out = []
    for vertex in vertices(mass.size, payoff.grid):
        beyond = payoff.grid * np.cumsum((mass - vertex)[::-1])[:-1]
        weight = max(0.0, 1.0 - max(beyond.max(), 0.0) - max(-beyond.min(), 0.0))
        out.append(weight * (mass - came))
    return np.concatenate(out)


# --- functions of users, and scores


def mean_and_value(function: Any, space: Any, forecast: Any, y: Any) -> tuple[Array, Array]:
    """Mean of a function of the outcome under the forecast, and its value at the outcome."""
    if isinstance(space, FiniteSpace):
        table = np.array([function(space.value(k)) for k in range(space.cells)])
        return forecast.mass @ table, happened(space, y) @ table
    left, right = closed(forecast)
    nodes = left[:, None] + NODES * (right - left)[:, None]
    means = [MEAN_WEIGHTS @ np.array([function(float(node)) for node in row]) for row in nodes]
    return forecast.mass @ np.array(means), function(float(np.clip(y, left[0], right[-1])))


@evaluate.register(decisions.DecisionCalibration)
def _(payoff: Any, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    unit = payoff.range_on(space)
    centre, half = payoff.limits(space, expert, x, unit)
    mean, real = mean_and_value(lambda z: np.clip(payoff._worth(z, x) - centre, -half, half), space, forecast, y)
    errors = (mean - real) / unit
    if not isinstance(payoff, decisions.SwapRegret):
        return np.asarray(errors)
    return np.outer(softmax(payoff.sharpness * (mean + centre) / unit), errors).ravel()


@evaluate.register
def _(payoff: recipe.Recipe, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    mean, real = mean_and_value(lambda z: payoff._at(z, x), space, forecast, y)
    c = np.ones(1) if payoff.moment is None else vector(payoff.moment, x, forecast, what="context")
    return np.outer(c, mean - real).ravel()


@evaluate.register
def _(payoff: oc.NoRegret, space: Any, forecast: Any, y: Any, expert: Any = None, x: Any = None) -> Array:
    return np.array([score(forecast, y) - score(expert, y) for score in payoff.scores])


def define() -> None:
    """Give the payoffs their definitions."""
    Payoff.evaluate = evaluate  # type: ignore[attr-defined]
