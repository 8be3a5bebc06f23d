"""Proper scores of the probabilities of events, and how they bend: what a bound on regret needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import forecast_on
from orcast.paper.partition.cells import CellTable
from orcast.payoffs.cell_payoffs import hat_weights
from orcast.payoffs.hat_kernels import STEEPNESS
from orcast.payoffs.triangulated import simplex_mesh
from orcast.scores import CRPS, MSE, SCORES, Brier, LogScore, Score
from orcast.spaces import Binary, FiniteSpace, Labels, Space
from orcast.validation import number

Array = NDArray[np.float64]
Places = NDArray[np.intp]

# A score that expects less of another forecast than of the true one, by more than rounding, is not proper.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Rule:
    """A score of probabilities that is a sum over them: its value for each outcome, and its g."""

    score: Score
    binary: bool

    @staticmethod
    def of(score: Score, events: Space) -> Rule | None:
        """For Brier and log scores, and what equals them; None for a score of another kind."""
        same = (Brier, LogScore, CRPS, MSE) if isinstance(events, Binary) else (Brier, LogScore, CRPS)
        known = isinstance(events, (Binary, Labels)) and type(score) in same
        return Rule(score, isinstance(events, Binary)) if known else None

    def losses(self, mass: Array) -> Array:
        """The score for each outcome."""
        if isinstance(self.score, LogScore):
            kept = np.maximum(mass, self.score.clip)
            value: Array = kept.sum() - 1.0 - np.log(kept)
        elif self.binary:
            value = mass[::-1] ** 2
        else:
            value = (0.5 if isinstance(self.score, CRPS) else 1.0) * (mass @ mass - 2.0 * mass + 1.0)
        return value

    def slope(self, q: Array) -> Array:
        """g: minus the slope of the expected score, at the probability of each event."""
        if isinstance(self.score, LogScore):
            value: Array = np.log(np.maximum(q, self.score.clip))
            if self.binary:
                value = value - np.log(np.maximum(1.0 - q, self.score.clip))
        else:
            value = (1.0 if isinstance(self.score, CRPS) and not self.binary else 2.0) * q
        return value

    def heights(self, grid: int) -> Array:
        """A g_v for each hat, such that (g(p) - g_v) (p - y) is small at worst where the hat is not zero."""
        return hat_heights(self, grid)


@dataclass(frozen=True)
class AnyRule:
    """Any other proper score: g is minus its values, which depend on all probabilities, up to a common number."""

    score: Score
    events: FiniteSpace

    def losses(self, mass: Array) -> Array:
        """The score for each outcome."""
        p = forecast_on(self.events, mass)
        values = [self.score(p, self.events.value(k)) for k in range(self.events.cells)]
        return np.array([number(value, f"value of {self.score!r}") for value in values])

    def slope(self, q: Array) -> Array:
        """g at the probabilities of the events; for yes or no at each of several probabilities of a yes."""
        if isinstance(self.events, Binary):
            pairs = [self.losses(np.array([1.0 - each, each])) for each in q.tolist()]
            return np.array([no - yes for no, yes in pairs])
        values = self.losses(q)
        return np.asarray(values.mean() - values)


def hat_heights(rule: Rule | AnyRule, grid: int) -> Array:
    """A g_v for each hat, such that (g(p) - g_v) (p - y) is small at worst where the hat is not zero."""
    heights = np.empty(grid)
    soft = 0.5 / STEEPNESS
    for v in range(grid):
        p = np.linspace(max(v - soft, 0.0), min(v + 1.0 + soft, grid), 65) / grid
        g = rule.slope(p)
        tried = np.linspace(g.min(), g.max(), 201)[:, None]
        worst = np.maximum((g - tried) * p, (tried - g) * (1.0 - p)).max(axis=1)
        heights[v] = tried[worst.argmin(), 0]
    return heights


class WeightFunctions:
    """The w_v of a calibration: hats of each probability, or the barycentric weights of all of them together."""

    def __init__(self, table: CellTable, grid: int, jointly: bool) -> None:
        self.grid, self.count = grid, table.count
        self.mesh = simplex_mesh(table.events.cells, grid) if jointly and table.count > 1 else None
        self.size = grid if self.mesh is None else self.mesh.size

    def at(self, chances: Array) -> tuple[Places, Array]:
        """Which are not zero for each event, a column an event, and what they are."""
        if self.mesh is None:
            left, share = hat_weights(self.grid, chances)
            return np.stack((left, left + 1)), np.stack((1.0 - share, share))
        local = self.mesh.locate(chances)
        return np.repeat(local.corners[:, None], self.count, axis=1), np.repeat(
            local.weights[:, None], self.count, axis=1
        )


class BoundScore(NamedTuple):
    """A score on a table of events: its values, and what bounds its regret, where calibration does."""

    values: Rule | AnyRule
    rule: Rule | AnyRule | None
    heights: Array  # a row a test function, a column an event

    def losses(self, mass: Array) -> Array:
        """The score for each outcome."""
        return self.values.losses(mass)

    def excess(self, played: Array, expert: Array) -> Array:
        """How much more it is than the expert's, for each outcome; one clear sentence if it is not proper."""
        mine, theirs = self.losses(played), self.losses(expert)
        gain = float(played @ (mine - theirs))
        if gain > ROUNDING * (1.0 + float(np.abs(mine).max() + np.abs(theirs).max())):
            raise ValueError(
                f"expected a proper score, got {self.values.score!r}: under {played.tolist()} it expects "
                f"{gain:g} less of {expert.tolist()}"
            )
        return mine - theirs


class Followed:
    """A score whose regret is followed; `of_events` if it is one of the probabilities of the events."""

    def __init__(self, score: Score, of_events: bool, grid: int, jointly: bool) -> None:
        self.score, self.of_events = score, of_events
        self.own = type(score) not in SCORES.values()
        self._grid, self._jointly = grid, jointly
        self._known: dict[int, BoundScore] = {}

    def on(self, table: CellTable) -> BoundScore | None:
        """The score on the events of a table; None for a score of the quantity itself."""
        if not self.of_events:
            return None
        cells = table.events.cells
        if cells not in self._known:
            self._known[cells] = self._bound(table)
        return self._known[cells]

    def _bound(self, table: CellTable) -> BoundScore:
        events = table.events
        sums = Rule.of(self.score, events)
        values = AnyRule(self.score, events) if sums is None else sums
        functions = WeightFunctions(table, self._grid, self._jointly)
        if functions.mesh is not None:
            return BoundScore(values, values, np.array([values.slope(point) for point in functions.mesh.points]))
        if sums is None and not isinstance(events, Binary):
            return BoundScore(values, None, np.zeros((functions.size, table.count)))
        heights = hat_heights(values, self._grid)
        return BoundScore(values, values, np.repeat(heights[:, None], table.count, axis=1))
