"""Member that corrects an expert's bias and spread on a circle or in a box, axis by axis.

With m and s the mean and spread of the expert's marginal, the member has the running mean a and variance b^2 of
z = (y - m) / s, and moves the mass of every cell to m + a s + b (cell - m).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.spaces import Box, Circle, Space

Array = NDArray[np.float64]

# Discount of mean and variance, and number of prior observations for the expert.
DISCOUNT, START = 0.99, 20.0
LEAST_STRETCH, MOST_STRETCH, MOST_SCORE = 0.3, 8.0, 6.0
FLOOR = 1e-4


class AxisMemory(NamedTuple):
    """State of the members of all experts."""

    shift: Array  # running mean of z, expert x axis
    spread: Array  # running variance of z
    seen: Array  # sum of the weights of the outcomes, of each expert


def axes_of(space: Space) -> int:
    """Number of axes; 0 on spaces without shifts."""
    if isinstance(space, Circle):
        return 1
    return len(space.shape) if isinstance(space, Box) else 0


def new_memory(axes: int, experts: int) -> AxisMemory:
    """Members without data, which repeat the expert."""
    return AxisMemory(np.zeros((experts, axes)), np.ones((experts, axes)), np.zeros(experts))


def edges_of(space: Space, axis: int) -> Array:
    """Edges of the cells along an axis."""
    if isinstance(space, Circle):
        return np.linspace(0.0, space.period, space.cells + 1)
    assert isinstance(space, Box)
    low, high = space.bounds[axis]
    return np.linspace(low, high, space.shape[axis] + 1)


def marginal(space: Space, mass: Array, axis: int) -> Array:
    """Masses along an axis."""
    if isinstance(space, Circle):
        return mass
    assert isinstance(space, Box)
    others = tuple(i for i in range(len(space.shape)) if i != axis)
    value: Array = mass.reshape(space.shape).sum(axis=others)
    return value


def frame(space: Space, mass: Array, axis: int) -> tuple[float, float]:
    """Mean and spread of an expert along an axis; the width of a cell is part of the spread."""
    edges = edges_of(space, axis)
    width = edges[1] - edges[0]
    centres = 0.5 * (edges[:-1] + edges[1:])
    own = marginal(space, mass, axis)
    if isinstance(space, Circle):
        turn = 2.0 * math.pi / space.period
        mean = math.atan2(float(own @ np.sin(turn * centres)), float(own @ np.cos(turn * centres))) / turn
        away = deviation(space, centres, mean)
    else:
        mean = float(own @ centres)
        away = centres - mean
    return mean, math.sqrt(float(own @ (away * away)) + width * width / 12.0)


def deviation(space: Space, y: Array, mean: float) -> Array:
    """Difference y - mean; on a circle the shorter way round."""
    if not isinstance(space, Circle):
        return y - mean
    half = 0.5 * space.period
    value: Array = (y - mean + half) % space.period - half
    return value


def transfer(space: Space, axis: int, mean: float, shift: float, stretch: float) -> Array:
    """Shares of the mass of each cell by destination, one row per cell."""
    edges = edges_of(space, axis)
    width = edges[1] - edges[0]
    away = deviation(space, 0.5 * (edges[:-1] + edges[1:]), mean)
    low = mean + shift + stretch * (away - 0.5 * width)
    high = low + stretch * width
    turns: Array = np.zeros(1)
    if isinstance(space, Circle):
        # on a circle mass wraps around
        reach = math.ceil(stretch) + 1
        turns = space.period * np.arange(-reach, reach + 1.0)
    else:
        # mass beyond the bounds stays in the outer cells
        edges[0], edges[-1] = min(edges[0], float(low.min())), max(edges[-1], float(high.max()))
    found = np.zeros((away.size, away.size))
    for turn in turns:
        overlap = np.minimum(high[:, None] + turn, edges[1:]) - np.maximum(low[:, None] + turn, edges[:-1])
        found += np.maximum(overlap, 0.0)
    value: Array = found / found.sum(axis=1, keepdims=True)
    return value


def corrected(space: Space, memory: AxisMemory, e: int, expert: Array) -> Array:
    """Masses of expert e corrected by its member."""
    moved: Array = expert if isinstance(space, Circle) else expert.reshape(space.shape)  # type: ignore[attr-defined]
    for axis, (shift, square) in enumerate(zip(memory.shift[e], memory.spread[e], strict=True)):
        mean, spread = frame(space, expert, axis)
        stretch = min(max(math.sqrt(square), LEAST_STRETCH), MOST_STRETCH)
        table = transfer(space, axis, mean, shift * spread, stretch)
        moved = np.moveaxis(np.tensordot(moved, table, axes=(axis, 0)), -1, axis)
    value: Array = (1.0 - FLOOR) * moved.ravel() + FLOOR / expert.size
    return value


def learn(space: Space, memory: AxisMemory, e: int, expert: Array, y: Array, pending: float) -> None:
    """Update the member of expert e with an outcome."""
    weight = 1.0 / math.sqrt(1.0 + pending)
    memory.seen[e] += weight
    rate = weight * max(1.0 - DISCOUNT, 1.0 / (memory.seen[e] + START))
    for axis in range(memory.shift.shape[1]):
        mean, spread = frame(space, expert, axis)
        z = deviation(space, np.atleast_1d(y)[axis : axis + 1], mean).item() / spread
        error = min(max(z, -MOST_SCORE), MOST_SCORE) - memory.shift[e, axis]
        memory.shift[e, axis] += rate * error
        memory.spread[e, axis] += rate * (error * error - memory.spread[e, axis])
