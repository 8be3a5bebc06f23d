"""Learners along the axes of a circle or a box, against their definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.engine.dense import axes

SPACES = {"circle": oc.Circle(24, cells=12), "box": oc.Box([(0, 1), (0, 50)], cells=[4, 5])}


def standard(space: Any, expert: Any, y: Any, axis: int) -> float:
    """(y - mean) / spread of the expert's marginal, at most 6 either way."""
    if isinstance(space, oc.Circle):
        width = space.period / space.cells
        middle = (np.arange(space.cells) + 0.5) * width
        turn = 2.0 * np.pi / space.period
        mean = np.angle(np.sum(expert * np.exp(1j * turn * middle))) / turn
        away = (np.append(middle, y) - mean + space.period / 2) % space.period - space.period / 2
    else:
        low, high = space.bounds[axis]
        width = (high - low) / space.shape[axis]
        middle = low + (np.arange(space.shape[axis]) + 0.5) * width
        expert = expert.reshape(space.shape).sum(axis=1 - axis)
        away = np.append(middle, y[axis]) - expert @ middle
    spread = math.sqrt(expert @ away[:-1] ** 2 + width**2 / 12)
    return float(np.clip(away[-1] / spread, -6.0, 6.0))


@pytest.mark.parametrize("name", SPACES)
def test_shift_and_spread_of_each_axis_are_running_moments(name: str) -> None:
    space: Any = SPACES[name]
    rng = np.random.default_rng(1)
    count = axes.axes_of(space)
    memory = axes.new_memory(count, 2)
    shift, variance, seen = np.zeros(count), np.ones(count), 0.0
    for pending in (0.0, 0.0, 3.0, 0.0, 8.0, 1.0):
        expert = rng.dirichlet(np.full(space.cells, 0.5))
        y = 24.0 * rng.random() if name == "circle" else rng.random(2) * [1.0, 50.0]
        moved = axes.corrected(space, memory, 1, expert)
        assert moved.sum() == pytest.approx(1.0)
        axes.learn(space, memory, 1, expert, np.asarray(y), pending)
        weight = 1.0 / math.sqrt(1.0 + pending)
        seen += weight
        for axis in range(count):
            rate = weight * max(0.01, 1.0 / (seen + 20.0))
            error = standard(space, expert, y, axis) - shift[axis]
            shift[axis] += rate * error
            variance[axis] += rate * (error**2 - variance[axis])
        assert memory.shift[1] == pytest.approx(shift)
        assert memory.spread[1] == pytest.approx(variance)
    assert not memory.shift[0].any()


@pytest.mark.parametrize("name", SPACES)
def test_a_biased_expert_is_shifted(name: str) -> None:
    """By five cells of the circle, and by one of each axis of the box."""
    space: Any = SPACES[name]
    centre, y = (6.9, 16.9) if name == "circle" else ((0.3, 15.0), (0.55, 25.0))
    expert = np.full(space.cells, 0.1 / space.cells)
    expert[space.cell(space.outcome(centre))] += 0.9
    memory = axes.new_memory(axes.axes_of(space), 1)
    for _ in range(300):
        axes.learn(space, memory, 0, expert, np.asarray(y), 0.0)
    moved = axes.corrected(space, memory, 0, expert)
    assert int(moved.argmax()) == space.cell(space.outcome(y))


def test_a_rotation_and_a_stretch_move_the_mass() -> None:
    """Onto the cells that a moved cell falls on, in proportion."""
    circle = axes.transfer(oc.Circle(24, cells=12), 0, 5.0, 3.0, 1.0)
    assert circle[0] == pytest.approx(np.eye(12)[1] * 0.5 + np.eye(12)[2] * 0.5)
    assert circle[11] == pytest.approx(np.eye(12)[0] * 0.5 + np.eye(12)[1] * 0.5)
    box = axes.transfer(oc.Box([(0, 4), (0, 1)], cells=[4, 2]), 0, 2.0, 0.0, 2.0)
    # the cell from 2 to 3 becomes 2 to 4; the last one leaves, and so stays in the outer cell
    assert box[2] == pytest.approx([0.0, 0.0, 0.5, 0.5])
    assert box[3] == pytest.approx([0.0, 0.0, 0.0, 1.0])
