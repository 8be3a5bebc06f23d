"""Forecasts that win where all that a field knows of a forecast is a few numbers: the answers, or contexts, of it.

    <S, payoff(p, k)> = n(c).p - n_k(c),        n_k(c) = what is fixed + <c, debts_k>,        c = the context of p

So p wins if it has mass only on cells where the price n_k(c) is least.  Where the context is a softmax of means, a path
leads to such a p (`prices`).  Where it is anything, but one number t tells it, let p(t) be the equilibrium given that
number, which is explicit.  At a zero of  context(p(t)) - t,  p(t) is the equilibrium of the round; the context is
bounded and continuous, so there is one, and bisection finds it at every temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import LOWEST
from orcast.engine.dense import fixed_point, minimax
from orcast.engine.dense.prices import prices_of, traced
from orcast.engine.dense.search import CandidateSearch
from orcast.payoffs.cell_payoffs import ContextCellPayoff
from orcast.payoffs.recipe import BoundedCellPayoff

Array = NDArray[np.float64]

# The ratio of two temperatures.
COOLER = 0.25
# Cells are too wide where what is missing is so many times the largest mean over a cell, or where the context jumps.
TOO_WIDE, JUMP = 8.0, 2e-3
# Mass on all cells together, where the context jumps without it.
FLOOR = 1e-6
# Steps towards a zero, and how well context and number agree there, at the usual temperature and at lower ones.
TRIES, EASY, STRICT = 120, 1e-3, 1e-9


def answered(search: CandidateSearch, mix: Array) -> bool:
    """Let the search consider where the path ends; whether it wins, on average over each cell."""
    prices = prices_of(search.cell_payoffs, search.owed, mix)
    if prices is None or not prices.deciders:
        return False
    p = traced(prices, mix)
    search.winner = np.log(np.maximum(p, 1e-300))
    minimax.lower_worst(search, p, minimax.Kinds(search.cell_payoffs, mix))
    if search.missing <= 0.0:
        minimax.mix_in(search, mix)
    return prices.worst(p) <= prices.tolerance


class Line(NamedTuple):
    """Contexts that one number tells, base + t step, and the prices given that."""

    context: Callable[[Array], Array]
    base: Array
    step: Array
    fixed: Array
    debts: Array  # a row for each number of the context

    def at(self, t: float) -> Array:
        """The price of each cell."""
        return self.fixed + (self.base + t * self.step) @ self.debts

    def number(self, p: Array) -> float:
        """The number that tells the context of masses; nan if it is off the line."""
        c = self.context(p)
        if c.size == 2 and abs(float(c.sum() - self.base.sum())) > 1e-9 * (1.0 + float(np.abs(c).max())):
            return np.nan
        return float(c[0])


def line_of(search: CandidateSearch, start: Array) -> tuple[Line, float] | None:
    """The line of a sum and the number of some masses, if there is one.

    That is where there is one context of one number, or of two whose sum is always the same.
    """
    found: list[tuple[ContextCellPayoff, Array]] = []
    fixed = np.zeros(start.size)
    for cell_payoff, s in zip(search.cell_payoffs, search.owed, strict=True):
        plain = cell_payoff.cell_payoff if isinstance(cell_payoff, BoundedCellPayoff) else cell_payoff
        if plain.explicit:
            fixed -= plain.field(s, start)
        elif s.any():
            if not isinstance(plain, ContextCellPayoff) or plain.groups > 2:
                return None
            found.append((plain, s))
    if len(found) != 1:
        return None
    plain, s = found[0]
    debts = s.reshape(plain.groups, plain.plain.size) @ plain.plain.witness.mean
    c = plain.context(start)
    base = np.zeros(1) if c.size == 1 else np.array([0.0, float(c.sum())])
    return Line(plain.context, base, np.array([1.0, -1.0])[: c.size], fixed, debts), float(c[0])


def along_line(search: CandidateSearch, mix: Array, start: Array, usual: float) -> bool:
    """Equilibria at lower and lower temperatures, until the certificate holds or the cells are too wide for that.

    False: the context is more than a number.
    """
    found = line_of(search, start)
    if found is None:
        return False
    line, t = found
    log_mix = np.log(np.maximum(mix, 1e-300))
    temperature, floor = usual, 0.0
    while temperature > LOWEST * min(usual, 1.0):

        def played(at: float, cold: float = temperature, floor: float = floor) -> Array:
            p = np.exp(fixed_point.normalised(log_mix - line.at(at) / cold))
            return (1.0 - floor) * p + floor / p.size

        agrees = EASY if temperature == usual else STRICT
        t = zero(lambda at: line.number(played(at)) - at, t, agrees)
        if not np.isfinite(t):
            return False
        p = played(t)
        number = line.number(p)
        if floor == 0.0 and abs(number - t) > JUMP:
            floor = FLOOR  # a quantile jumps where there is a gap
            continue
        search.winner = np.log(np.maximum(p, 1e-300))
        missing = search.consider(search.winner, temperature)
        n = line.at(number)
        if missing <= 0.0 or abs(number - t) > JUMP or missing > TOO_WIDE * float(n @ p - n.min()):
            break  # lower temperatures gain no more than twice that
        temperature *= COOLER
    return True


def zero(gap: Callable[[float], float], start: float, agrees: float = STRICT) -> float:
    """Where a function falls through zero, near the start; it must be positive far below and negative far above."""
    a = b = start
    at_a = at_b = gap(start)
    if abs(at_a) <= agrees:
        return start
    step = abs(at_a)
    for _ in range(TRIES):
        if at_b > 0.0:
            a, at_a = b, at_b
            b += step
            at_b = gap(b)
        elif at_a < 0.0:
            b, at_b = a, at_a
            a -= step
            at_a = gap(a)
        else:
            break
        step *= 2.0
    halve = False
    for _ in range(TRIES):
        middle = 0.5 * (a + b) if halve or not at_a > at_b else a + (b - a) * at_a / (at_a - at_b)
        if not a < middle < b:
            break
        value, width = gap(middle), b - a
        if not abs(value) > agrees:
            return middle
        if value > 0.0:
            a, at_a = middle, value
        else:
            b, at_b = middle, value
        halve = b - a > 0.5 * width
    return a if abs(at_a) < abs(at_b) else b
