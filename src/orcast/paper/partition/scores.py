"""Scores as sums over the probabilities of the outcomes, and how they bend: what a bound on regret needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.payoffs.hat_kernels import STEEPNESS
from orcast.scores import CRPS, MSE, Brier, LogScore, Score
from orcast.spaces import Binary, Labels, Space

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """A score of probabilities that is a sum over them: its value for each outcome, and its g."""

    score: Score
    binary: bool

    @staticmethod
    def of(score: Score, events: Space) -> Rule | None:
        """For Brier and log scores, and what equals them; None for a score of another kind."""
        same = (Brier, LogScore, CRPS, MSE) if isinstance(events, Binary) else (Brier, LogScore, CRPS)
        known = isinstance(events, (Binary, Labels)) and isinstance(score, same)
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
        heights = np.empty(grid)
        soft = 0.5 / STEEPNESS
        for v in range(grid):
            p = np.linspace(max(v - soft, 0.0), min(v + 1.0 + soft, grid), 65) / grid
            g = self.slope(p)
            tried = np.linspace(g.min(), g.max(), 201)[:, None]
            worst = np.maximum((g - tried) * p, (tried - g) * (1.0 - p)).max(axis=1)
            heights[v] = tried[worst.argmin(), 0]
        return heights


class Followed:
    """A score whose regret is followed, with a bound where it is a sum over the probabilities."""

    def __init__(self, score: Score, events: Space, grid: int) -> None:
        self.score = score
        self.rule = Rule.of(score, events)
        self.heights = np.zeros(grid) if self.rule is None else self.rule.heights(grid)
