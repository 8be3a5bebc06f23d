"""Forecasts for `DecisionGame`: all mass is on the cheapest cells, given the response to the forecast.

`orcast.paper.exact.decision` defines the prices n. With a temperature T the masses p ~ prior exp(-n(p) / T) form a
path from the prior, where T is infinite, to such a forecast, where T is 0 (McKelvey and Palfrey 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.payoffs import CellPayoff
from orcast.payoffs.cell_payoffs import AnswerCellPayoff, softmax

Array = NDArray[np.float64]
Equations = Callable[[Array, Array, float], tuple[Array, Array]]

# Violations of the half-space up to this share of the largest price count as none.
TOLERANCE = 1e-8
# Masses below this share of the prior's largest are raised to it.
LEAST = 1e-9
# Along the path: largest change of a mass and of log(1 / T) in one step, tried in turn; least step; number of steps.
STRIDES = (0.1, 0.03, 0.01, 0.03, 0.01)
LONGEST, LEAST_STEP, STEPS = 0.5, 1e-9, 3000
# Prices matter from this log(1 / T) on, in units of their size; there the path starts, and there the end is tried.
START, END = -5.0, 2.0
# Newton's method: number of steps, and tolerance of masses.
NEWTON, EXACT = 12, 1e-11
# Cells with less mass than one of these may have none at the end.
SUPPORTS = (1e-2, 1e-3, 1e-4, 1e-6)


class Prices:
    """Prices n(p): a fixed part, and parts that depend on the responses, each softmax(scaled utilities @ p)."""

    def __init__(self, fixed: Array, deciders: list[tuple[Array, Array]]) -> None:
        self.fixed, self.deciders = fixed, deciders
        self.size = max([float(np.abs(fixed).max()), *(float(np.abs(ledgers).max()) for _, ledgers in deciders)])
        # size of the exponents, which limits the accuracy of prices
        reach = max([1.0, *(float(np.ptp(worth, axis=0).max()) for worth, _ in deciders)])
        self.tolerance = self.size * TOLERANCE * max(1.0, 0.01 * reach)

    def with_slopes(self, p: Array) -> tuple[Array, Array]:
        """Price of each cell, and its derivatives by the masses."""
        value, slopes = self.fixed.copy(), np.zeros((p.size, p.size))
        for worth, ledgers in self.deciders:
            mu = softmax(worth @ p)
            value += mu @ ledgers
            slopes += ledgers.T @ (mu[:, None] * (worth - mu @ worth))
        return value, slopes

    def worst(self, p: Array) -> float:
        """Largest <S, payoff> over the cells."""
        n = self.fixed + sum((softmax(worth @ p) @ ledgers for worth, ledgers in self.deciders), np.zeros(p.size))
        return float(n @ p - n.min())


def prices_of(cell_payoffs: Sequence[CellPayoff], cumulative: Sequence[Array], p: Array) -> Prices:
    """Prices of a sum in which only responses depend on the masses p."""
    fixed = np.zeros(p.size)
    deciders = []
    for cell_payoff, s in zip(cell_payoffs, cumulative, strict=True):
        if isinstance(cell_payoff, AnswerCellPayoff):
            ledgers = s.reshape(cell_payoff.groups, cell_payoff.plain.size) @ cell_payoff.plain.witness.mean
            deciders.append((cell_payoff.worth, ledgers))
        else:
            fixed -= cell_payoff.field(s, p)
    return Prices(fixed, deciders)


def cheapest(prices: Array, prior: Array) -> Array:
    """Prior, conditional on the cheapest cells."""
    there = prices <= prices.min() + 1e-12 * float(np.abs(prices).max())
    p = np.where(there, prior, 0.0)
    if p.sum() <= 0.0:
        p = there.astype(np.float64)
    value: Array = p / p.sum()
    return value


def traced(prices: Prices, prior: Array) -> Array:
    """A solution, or the best forecast found: by the path, from other priors after a failure."""
    best = prior
    for turn, stride in enumerate(STRIDES):
        # golden ratios are far from each other: no two events coincide on the path
        moved = np.maximum(prior, LEAST) * (1.0 + 0.3 * turn * np.modf(0.618033988749895 * np.arange(prior.size))[0])
        best = min(best, trace(prices, moved, stride), key=prices.worst)
        if prices.worst(best) <= prices.tolerance:
            break
    return best


def trace(prices: Prices, prior: Array, stride: float) -> Array:
    """Best forecast on the path, which is followed through all its turns; x has the logits and log(1 / T)."""
    log_prior = np.log(prior / prior.sum())
    x = np.append(log_prior, START)
    best, ahead, step = prior / prior.sum(), np.append(np.zeros(prior.size), 1.0), 1.0

    def equations(x: Array, row: Array, aim: float) -> tuple[Array, Array]:
        """Values and derivatives of the equations of the path and of one more, row @ x = aim."""
        p, scale = softmax(x[:-1]), np.exp(x[-1]) / prices.size
        n, slopes = prices.with_slopes(p)
        by_logits = np.eye(p.size) + scale * (slopes * p - np.outer(slopes @ p, p))
        matrix = np.vstack((np.column_stack((by_logits, scale * n)), row))
        return np.append(x[:-1] - log_prior + scale * n, row @ x - aim), matrix

    for _ in range(STEPS):
        p = softmax(x[:-1])
        row = np.append(p * ahead[:-1], ahead[-1])
        try:
            # normalised by the row, the direction does not turn back
            ahead = np.linalg.solve(equations(x, row, 0.0)[1], np.append(np.zeros(p.size), 1.0))
        except np.linalg.LinAlgError:
            break
        change = p * (ahead[:-1] - p @ ahead[:-1])
        ahead /= max(float(np.abs(change).max()) / stride, abs(float(ahead[-1])) / LONGEST, 1e-300)
        row = np.append(p * ahead[:-1], ahead[-1])
        while step > LEAST_STEP:
            found = _corrected(equations, x + step * ahead, row)
            if found is not None and np.abs(softmax(found[:-1]) - p).max() < 2.0 * stride * step + 1e-3:
                break
            step *= 0.5
        else:
            break
        assert found is not None
        x, step = found, min(1.5 * step, 1.0)
        if x[-1] < START:
            break  # back at the start: a step led to another part of the path
        p = softmax(x[:-1])
        best = min(best, p, key=prices.worst)
        if x[-1] > END:
            best = min(best, *(evened(prices, np.where(p > least, p, 0.0)) for least in SUPPORTS), key=prices.worst)
            if prices.worst(best) <= prices.tolerance:
                break
    return np.asarray(best)


def _corrected(equations: Equations, x: Array, row: Array) -> Array | None:
    """Point of the path beside x, by Newton's method; None if it fails."""
    aim = float(row @ x)
    for _ in range(NEWTON):
        values, matrix = equations(x, row, aim)
        try:
            change = np.linalg.solve(matrix, values)
        except np.linalg.LinAlgError:
            return None
        if not abs(change[-1]) <= 2.0 or not np.isfinite(change).all():
            return None
        moved = softmax(x[:-1] - change[:-1]) - softmax(x[:-1])
        x = x - change
        if max(float(np.abs(moved).max()), abs(float(change[-1]))) < EXACT:
            return x
    return None


def evened(prices: Prices, p: Array) -> Array:
    """Masses with equal prices on the same cells, or on fewer if one would be negative; p if there are none."""
    start: Array = p / p.sum()
    cells = np.flatnonzero(start > 0.0)
    while cells.size:
        q = np.where(np.isin(np.arange(p.size), cells), start, 0.0)
        for _ in range(NEWTON):
            n, slopes = prices.with_slopes(q)
            across = (slopes[np.ix_(cells[1:], cells)] - slopes[cells[0], cells]) / prices.size
            wrong = np.append((n[cells[1:]] - n[cells[0]]) / prices.size, q.sum() - 1.0)
            # the least change: cells with equal utilities share their mass
            q[cells] -= np.linalg.lstsq(np.vstack((across, np.ones(cells.size))), wrong)[0]
            if not np.abs(q).max() <= 10.0:
                return start
        if q.min() >= 0.0:
            value: Array = q / q.sum()
            return value
        cells = cells[q[cells] > 0.0]
    return start
