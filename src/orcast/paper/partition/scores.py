"""Scores that are sums over the probabilities of events, and the functions g that bound their regret."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orcast.kernels.hats import STEEPNESS
from orcast.scores import CRPS, MSE, Brier, LogScore, Score
from orcast.spaces import Binary, Space

Array = NDArray[np.float64]


def additive(score: Score, events: Space) -> bool:
    """Tell whether a score is a sum over the events: Brier and log scores, and those equal to them."""
    return type(score) in ((Brier, LogScore, CRPS, MSE) if isinstance(events, Binary) else (Brier, LogScore, CRPS))


def slope(score: Score, binary: bool, q: Array) -> Array:
    """g: minus the slope of the expected score, at the probability of each event."""
    if isinstance(score, LogScore):
        value: Array = np.log(np.maximum(q, score.clip))
        return value - np.log(np.maximum(1.0 - q, score.clip)) if binary else value
    return (1.0 if isinstance(score, CRPS) and not binary else 2.0) * q


@lru_cache(maxsize=64)
def hat_heights(score: Score, binary: bool, grid: int) -> Array:
    """A g_v for each hat, such that (g(p) - g_v) (p - y) is small at worst where the hat is not zero."""
    heights = np.empty(grid)
    soft = 0.5 / STEEPNESS
    for v in range(grid):
        p = np.linspace(max(v - soft, 0.0), min(v + 1.0 + soft, grid), 65) / grid
        g = slope(score, binary, p)
        tried = np.linspace(g.min(), g.max(), 201)[:, None]
        worst = np.maximum((g - tried) * p, (tried - g) * (1.0 - p)).max(axis=1)
        heights[v] = tried[worst.argmin(), 0]
    heights.flags.writeable = False
    return heights
