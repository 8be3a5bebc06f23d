"""Learners along the axes of a circle or a box, against their definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.engine.dense import axes

SPACES = {"circle": oc.Circle(24, cells=12), "box": oc.Box([(0, 1), (0, 50)], cells=[4, 5])}


class Learner:
    """One learner of one axis: least squares of z on (1, the last z), and a running variance of the errors."""

    def __init__(self, discount: float) -> None:
        self.discount = discount
        self.theta, self.cov, self.variance = np.zeros(2), 0.05 * np.eye(2), 1.0

    def learn(self, z: float, last: float, weight: float, seen: float) -> None:
        x = np.array([1.0, last])
        error = z - self.theta @ x
        # an observation of weight w has the variance 1 / w, and the past has been forgotten by the discount
        gain = self.cov @ x / (self.discount / weight + x @ self.cov @ x)
        self.theta = self.theta + gain * error
        self.cov = np.minimum((np.eye(2) - np.outer(gain, x)) @ self.cov / self.discount, 0.05)
        rate = weight * max(1.0 - self.discount, 1.0 / (seen + 20.0))
        self.variance = (1.0 - rate) * self.variance + rate * error**2


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
def test_axis_learners_are_their_definition(name: str) -> None:
    space: Any = SPACES[name]
    rng = np.random.default_rng(1)
    count = axes.axes_of(space)
    memory = axes.new_memory(count, 2)
    learners = [[Learner(discount) for _ in range(count)] for discount in (0.99, 0.998)]
    last, seen = np.zeros(count), 0.0
    for pending in (0.0, 0.0, 3.0, 0.0, 8.0, 1.0):
        expert = rng.dirichlet(np.full(space.cells, 0.5))
        y = 24.0 * rng.random() if name == "circle" else rng.random(2) * [1.0, 50.0]
        rows = axes.corrected(space, memory, 1, expert)
        assert rows.sum(axis=1) == pytest.approx(1.0)
        axes.learn(space, memory, 1, expert, np.asarray(y), pending)
        weight = 1.0 / math.sqrt(1.0 + pending)
        seen += weight
        for axis in range(count):
            z = standard(space, expert, y, axis)
            for own in learners:
                own[axis].learn(z, last[axis], weight, seen)
            last[axis] = z
        assert memory.last[1] == pytest.approx(last)
        for i, own in enumerate(learners):
            for axis, learner in enumerate(own):
                shift, stretch = axes.shift_and_stretch(memory, 1, i, axis)
                assert memory.location[1, i, axis] == pytest.approx(learner.theta)
                assert shift == pytest.approx(np.clip(learner.theta @ [1.0, last[axis]], -6.0, 6.0))
                assert stretch == pytest.approx(np.clip(math.sqrt(learner.variance), 0.3, 8.0))
                assert memory.location_cov[1, i, axis] == pytest.approx(learner.cov)
    fresh = axes.new_memory(count, 2)
    assert all((array[0] == other[0]).all() for array, other in zip(memory, fresh, strict=True))


def test_a_rotation_and_a_stretch_move_the_mass() -> None:
    """Onto the cells that a moved cell falls on, in proportion."""
    circle = axes.transfer(oc.Circle(24, cells=12), 0, 5.0, 3.0, 1.0)
    assert circle[0] == pytest.approx(np.eye(12)[1] * 0.5 + np.eye(12)[2] * 0.5)
    assert circle[11] == pytest.approx(np.eye(12)[0] * 0.5 + np.eye(12)[1] * 0.5)
    box = axes.transfer(oc.Box([(0, 4), (0, 1)], cells=[4, 2]), 0, 2.0, 0.0, 2.0)
    # the cell from 2 to 3 becomes 2 to 4; the last one leaves, and so stays in the outer cell
    assert box[2] == pytest.approx([0.0, 0.0, 0.5, 0.5])
    assert box[3] == pytest.approx([0.0, 0.0, 0.0, 1.0])
