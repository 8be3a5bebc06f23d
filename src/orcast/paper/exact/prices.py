"""Forecasts for `DecisionGame`: all mass is on the cheapest cells, given the response to the forecast.

`orcast.paper.exact.decision` defines the prices and proves that such a forecast exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.payoffs import CellPayoff
from orcast.payoffs.cell_payoffs import AnswerCellPayoff, softmax

Array = NDArray[np.float64]
Row = Callable[[Array, Array, Array], tuple[float, Array]]

# Prices are changed by this share of the largest, so that no two cells tie by chance, nor one with a mix of others.
# With a sharpness above 100 the share is larger, because large exponents are inexact.
APART, GENERIC = 1e-8, 1e-3
# The path starts at answers that differ by so much, in the exponent, from those to the expert: it need not be generic.
ASIDE = 0.01
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
# Along the path: first, longest and least step; how far an answer may move in one, tried in turn; how many steps.
FIRST, LONGEST, LEAST, STEPS = 0.01, 0.25, 1e-14, 1500
STRIDES = (0.2, 0.05, 0.01)
# A step that turns further than this, or needs so large a correction, was too long.
LEAST_COSINE, LARGEST_CORRECTION = 0.8, 0.3
# Newton's method: number of steps, and tolerance in units of rounding.
NEWTON, ROUNDING, GOOD_ENOUGH = 10, 2e-16, 8.0


class Prices:
    """Prices n(q): a fixed part, and parts that depend on the responses, each softmax(scaled utilities @ q).

    Mass missing to one is that of the forecast at which each response starts.
    """

    def __init__(
        self, fixed: Array, deciders: list[tuple[Array, Array]], starts: Sequence[Array] | None = None
    ) -> None:
        self.fixed, self.deciders = fixed, deciders
        self.starts = [np.zeros(len(worth)) for worth, _ in deciders] if starts is None else starts
        self.size = max([float(np.abs(fixed).max()), *(float(np.abs(ledgers).max()) for _, ledgers in deciders)])
        # size of the exponents, which limits the accuracy of prices
        self.reach = max([1.0, *(float(np.ptp(worth, axis=0).max()) for worth, _ in deciders)])

    @property
    def tolerance(self) -> float:
        """Largest violation of the half-space that counts as none."""
        return self.size * APART * max(1.0, 0.01 * self.reach)

    def answers(self, q: Array) -> list[Array]:
        """Weights of the actions of each decision maker."""
        left = 1.0 - float(q.sum())
        return [softmax(worth @ q + left * start) for (worth, _), start in zip(self.deciders, self.starts, strict=True)]

    def at(self, q: Array) -> Array:
        """Price of each cell."""
        value = self.fixed.copy()
        for mu, (_, ledgers) in zip(self.answers(q), self.deciders, strict=True):
            value += mu @ ledgers
        return value

    def with_slopes(self, q: Array, cells: list[int]) -> tuple[Array, Array]:
        """Price of each cell, and its derivative by the masses of some cells."""
        value, slopes = self.fixed.copy(), np.zeros((self.fixed.size, len(cells)))
        for mu, (worth, ledgers), start in zip(self.answers(q), self.deciders, self.starts, strict=True):
            own = worth[:, cells] - start[:, None]
            value += mu @ ledgers
            slopes += ledgers.T @ (mu[:, None] * (own - mu @ own))
        return value, slopes

    def worst(self, p: Array) -> float:
        """Largest <S, payoff> over the cells."""
        n = self.at(p)
        return float(n @ p - n.min())

    def set_apart(self, prior: Array, turn: int) -> Prices:
        """Prices in units of the largest, slightly perturbed, with responses that start at the prior's.

        The perturbation grows with the square of a cell's utilities and ledger entries, so a cell that is a mix of
        others is more expensive than the mix; generic numbers separate the remaining ties.
        """
        traits = [worth / max(float(np.abs(worth).max()), 1e-300) for worth, _ in self.deciders]
        traits += [ledgers / self.size for _, ledgers in self.deciders]
        stacked = np.vstack(traits)
        stacked -= stacked.mean(axis=1, keepdims=True)
        squares = np.einsum("ik,ik->k", stacked, stacked)
        squares /= max(float(squares.max()), 1e-300)
        apart = self.tolerance * (GENERIC * generic(self.fixed.size, turn) - squares)
        return Prices(
            (self.fixed + apart) / self.size,
            [(worth, ledgers / self.size) for worth, ledgers in self.deciders],
            [worth @ prior + ASIDE * generic(len(worth), turn) for worth, _ in self.deciders],
        )


def prices_of(cell_payoffs: Sequence[CellPayoff], cumulative: Sequence[Array], p: Array) -> Prices | None:
    """Prices of a sum in which only responses depend on the masses p; None for other sums."""
    fixed = np.zeros(p.size)
    deciders = []
    for cell_payoff, s in zip(cell_payoffs, cumulative, strict=True):
        if isinstance(cell_payoff, AnswerCellPayoff):
            ledgers = s.reshape(cell_payoff.groups, cell_payoff.plain.size) @ cell_payoff.plain.witness.mean
            deciders.append((cell_payoff.worth, ledgers))
        elif cell_payoff.explicit:
            fixed -= cell_payoff.field(s, p)
        elif s.any():
            return None
    return Prices(fixed, deciders)


def generic(count: int, turn: int) -> Array:
    """Numbers from 0 to 1, far from each other, different in each turn."""
    value: Array = np.modf(GOLDEN * np.arange(1, count + 1) + math.sqrt(2.0) * turn)[0]
    return value


def cheapest(prices: Array, prior: Array) -> Array:
    """Prior, conditional on the cheapest cells."""
    there = prices <= prices.min() + 1e-12 * float(np.abs(prices).max())
    p = np.where(there, prior, 0.0)
    if p.sum() <= 0.0:
        p = there.astype(np.float64)
    value: Array = p / p.sum()
    return value


def traced(prices: Prices, prior: Array) -> Array:
    """A solution, or the best forecast found: by the path, in shorter steps after a failure."""
    best = prior
    for turn, stride in enumerate(STRIDES):
        found = trace(prices.set_apart(prior, turn), stride)
        if found is not None:
            best = min(best, found, evened(prices, found), key=prices.worst)
        if prices.worst(best) <= prices.tolerance:
            break
    return best


def trace(prices: Prices, stride: float) -> Array | None:
    """Follow the path from no mass to a mass of one, in steps in which no response moves further than the stride.

    None if it fails. Prices should be set apart first, so that no two events coincide on the path.
    """
    walk = _PathFollower(prices)
    for _ in range(STEPS):
        if walk.step < LEAST:
            return None
        if walk.go(stride):
            return walk.masses() if walk.arrived else None
    return None


class _PathFollower:
    """Point of the path: the cells with mass, their masses, and the direction."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.count = prices.fixed.size
        self.exact = ROUNDING * prices.reach
        self.cells = [int(prices.at(np.zeros(self.count)).argmin())]
        self.x, self.direction = np.zeros(1), np.ones(1)
        self.step, self.arrived = FIRST, False
        self.fresh = self.cells[0]  # active constraint that the path leaves next
        self._measure()

    def masses(self) -> Array:
        """Masses at the point."""
        q = np.maximum(self._wide(self.x), 0.0)
        value: Array = q / q.sum()
        return value

    def _wide(self, x: Array) -> Array:
        q = np.zeros(self.count)
        q[self.cells] = x
        return q

    def _measure(self) -> None:
        """Constraints of the path: masses, excess prices of the other cells, remaining mass."""
        self.gaps = self._gaps(self.x, self.prices.at(self._wide(self.x)))
        self.answers = self.prices.answers(self._wide(self.x))

    def _gaps(self, x: Array, n: Array) -> Array:
        gaps = n - n[self.cells[0]]
        gaps[self.cells] = x
        return np.append(gaps, 1.0 - x.sum())

    def _newton(self, x: Array, row: Row) -> tuple[Array, Array, Array] | None:
        """Masses with equal prices on all cells that solve one more equation; with all prices and slopes."""
        first, others = self.cells[0], self.cells[1:]
        for i in range(NEWTON + 1):
            n, slopes = self.prices.with_slopes(self._wide(x), self.cells)
            value, gradient = row(x, n, slopes)
            wrong = np.append(n[others] - n[first], value)
            size = float(np.abs(wrong).max())
            if size <= self.exact or (i == NEWTON and size <= GOOD_ENOUGH * self.exact):
                return x, n, slopes
            try:
                change = np.linalg.solve(np.vstack((slopes[others] - slopes[first], gradient)), wrong)
            except np.linalg.LinAlgError:
                return None
            if not np.abs(change).max() <= 2.0:
                return None
            x = x - change
        return None

    def _tangent(self, slopes: Array) -> Array:
        """Direction in which prices stay equal."""
        across = slopes[self.cells[1:]] - slopes[self.cells[0]]
        if not len(across):
            return np.ones(1)
        across = across / np.maximum(np.abs(across).max(axis=1, keepdims=True), 1e-300)
        value: Array = np.linalg.svd(across)[2][-1]
        return value

    def go(self, stride: float) -> bool:
        """Take one step, shorter after a failure; True at the end."""
        t, aim = self.direction, self.x + self.step * self.direction
        found = self._newton(aim, lambda x, n, slopes: (float(t @ (x - aim)), t))
        if found is None or np.linalg.norm(found[0] - aim) > LARGEST_CORRECTION * self.step:
            return self._shorter()
        x, n, slopes = found
        answers = self.prices.answers(self._wide(x))
        moved = max(float(np.abs(a - b).max()) for a, b in zip(answers, self.answers, strict=True))
        ahead = self._tangent(slopes)
        ahead = ahead if ahead @ t >= 0.0 else -ahead
        if moved > stride or ahead @ t < LEAST_COSINE:
            return self._shorter()
        gaps = self._gaps(x, n)
        if gaps.min() < -GOOD_ENOUGH * self.exact:
            return self._turn(x, gaps)
        self.x, self.direction, self.gaps, self.answers, self.fresh = x, ahead, gaps, answers, -1
        self.step = min(self.step * (2.0 if moved < 0.25 * stride else 1.2), LONGEST)
        return False

    def _shorter(self) -> bool:
        self.step *= 0.4
        return False

    def _turn(self, x: Array, gaps: Array) -> bool:
        """Go to the first active constraint on the way to x, and change the cells there."""
        over = np.flatnonzero(gaps < -GOOD_ENOUGH * self.exact)
        before = np.maximum(self.gaps[over], 0.0)
        shares = before / (before - gaps[over])
        first = int(shares.argmin())
        bound, share = int(over[first]), float(shares[first])
        if bound == self.fresh:
            # it only now leaves this constraint: another one comes first, or the step is too long
            return self._shorter()
        found = self._newton(self.x + share * (x - self.x), self._meets(bound))
        if found is None:
            return self._shorter()
        there, n, slopes = found
        left = self._gaps(there, n)
        left[bound] = 0.0
        if left.min() < -2.0 * GOOD_ENOUGH * self.exact:
            return self._shorter()
        # a bound that was overstepped by rounding lies a little behind
        way, length = there - self.x, float(np.linalg.norm(x - self.x))
        if self.gaps[bound] > 0.0 and (np.linalg.norm(way) > 1.5 * length + self.exact or way @ self.direction < 0.0):
            return self._shorter()
        self.x = there
        if bound == self.count:
            self.arrived = True
            return True
        if bound in self.cells:
            if len(self.cells) == 1:
                return True  # back at the start: the path failed
            place = self.cells.index(bound)
            self.cells = self.cells[:place] + self.cells[place + 1 :]
            self.x = np.delete(there, place)
            slopes = np.delete(slopes, place, axis=1)
            t = self._tangent(slopes)
            # from here on it is more expensive than the others
            self.direction = t if (slopes[bound] - slopes[self.cells[0]]) @ t >= 0.0 else -t
        else:
            self.cells = [*self.cells, bound]
            self.x = np.append(there, 0.0)
            t = self._tangent(self.prices.with_slopes(self._wide(self.x), self.cells)[1])
            self.direction = t if t[-1] >= 0.0 else -t
        self.step, self.fresh = min(self.step, FIRST), bound
        self._measure()
        return False

    def _meets(self, bound: int) -> Row:
        """Equation of a constraint: a total mass of one, a cell without mass, a cell as cheap as the others."""
        ones = np.ones(len(self.cells))
        if bound == self.count:
            return lambda x, n, slopes: (float(x.sum()) - 1.0, ones)
        if bound in self.cells:
            unit = np.eye(len(self.cells))[self.cells.index(bound)]
            return lambda x, n, slopes: (float(unit @ x), unit)
        first = self.cells[0]
        return lambda x, n, slopes: (float(n[bound] - n[first]), slopes[bound] - slopes[first])


def evened(prices: Prices, p: Array) -> Array:
    """Masses on the same cells with equal unperturbed prices; p if there are none."""
    cells = [int(k) for k in np.flatnonzero(p > 0.0)]
    x = p[cells]
    for _ in range(NEWTON):
        q = np.zeros(p.size)
        q[cells] = x
        n, slopes = prices.with_slopes(q, cells)
        wrong = np.append(n[cells[1:]] - n[cells[0]], 0.0) / prices.size
        try:
            across = (slopes[cells[1:]] - slopes[cells[0]]) / prices.size
            x = x - np.linalg.solve(np.vstack((across, np.ones(len(cells)))), wrong)
        except np.linalg.LinAlgError:
            return p
        if not (np.isfinite(x).all() and (x >= 0.0).all()):
            return p
    out = np.zeros(p.size)
    out[cells] = x / x.sum()
    return out
