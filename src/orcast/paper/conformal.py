"""Conformal prediction on any sequence: the level at which to evaluate a quantile function."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from orcast.spaces.base import whole
from orcast.validation import number, short

# Before the first round each vertex below beta counts as missed, and each above it as covered, this many times.
HEAD_START = 0.3


class ConformalLevel:
    """The level at which to ask a quantile function, so that outcomes fall below it with frequency `beta`.

    In each round ask a quantile function Q_t at the level a_t of `predict`, and pass to `update` whether the outcome
    was covered, e_t = 1{y_t <= Q_t(a_t)}, where Q_t(0) = -infinity and Q_t(1) = infinity.  The coverage, mean_t e_t,
    approaches beta whatever the outcomes are, even if an adversary sees a_t first.  There is no learning rate.

    Parameters
    ----------
    beta
        Frequency of covered outcomes, strictly between 0 and 1.
    grid
        Number of cells between the vertices 0, 1/grid, ..., 1.

    Notes
    -----
    The payoff has an entry for each vertex v, with piecewise linear hat functions w_v (paper, appendix C.1.1):

        payoff_v = w_v(a_t) (e_t - beta),    S_v their sum,    c(a) = sum_v w_v(a) S_v

    so that <S, payoff> = c(a_t) (e_t - beta), which is zero at a root of c; a_t = 0 if c > 0 down to 0, and a_t = 1 if
    c < 0 up to 1.  Of several roots the first that c points to from beta is taken (docs/theory.md).

    Examples
    --------
    >>> import numpy as np
    >>> from orcast.paper.conformal import ConformalLevel
    >>> rng, aci = np.random.default_rng(0), ConformalLevel(0.9)
    >>> for y in rng.exponential(size=2000):       # the forecaster believes in a uniform distribution on [0, 1]
    ...     level = aci.predict()
    ...     quantile = level if 0 < level < 1 else (2 * level - 1) * np.inf
    ...     aci.update(y <= quantile)
    >>> round(aci.coverage, 2), abs(aci.coverage - 0.9) <= aci.coverage_bound
    (0.9, True)
    """

    def __init__(self, beta: float, *, grid: int = 20) -> None:
        self.beta = number(beta, "beta")
        if not 0.0 < self.beta < 1.0:
            raise ValueError(f"expected a share strictly between 0 and 1 as beta, got {short(beta)}")
        self.rounds = 0
        self._covered = 0
        self.grid = whole(grid, "cells in the grid", 1, 1000)
        cell = min(int(self.beta * self.grid), self.grid - 1)
        self._start = (cell, min(self.beta * self.grid - cell, 1.0))
        self._sums = [0.0] * (self.grid + 1)
        # entries before the first round, whose only root is beta
        below, above = -HEAD_START * self.beta, HEAD_START * (1.0 - self.beta)
        larger, share = max(-below, above), self._start[1]
        between = [-larger * share, larger * (1.0 - share)]
        self._head = [below] * cell + between + [above] * (self.grid - cell - 1)

    # --- the loop
    def predict(self) -> float:
        """Level for the next round; changes nothing."""
        return self._asked(*self._place())

    def update(self, covered: bool) -> None:
        """Record whether the outcome was at most the quantile at the level of `predict`."""
        cell, share = self._place()
        level = self._asked(cell, share)
        error = _hit(covered, level) - self.beta
        self._sums[cell] += (1.0 - share) * error
        self._sums[cell + 1] += share * error
        self._covered += error > 0.0
        self.rounds += 1

    def _place(self) -> tuple[int, float]:
        """Cell of the root, and the position in it."""
        if not self.rounds:
            return self._start
        return root_near([a + b for a, b in zip(self._sums, self._head, strict=True)], *self._start)

    def _asked(self, cell: int, share: float) -> float:
        return (cell + share) / self.grid if self.rounds else self.beta

    # --- the guarantee
    @property
    def coverage(self) -> float:
        """Share of covered outcomes; nan before the first."""
        return self._covered / self.rounds if self.rounds else math.nan

    @property
    def coverage_bound(self) -> float:
        """Bound on abs(coverage - beta) on any sequence, about sqrt(n) standard errors; infinite before any outcome.

        With n entries in use, and h the norm of their head start (docs/theory.md),

            T |coverage - beta| <= b + sqrt(b^2 + n T beta (1 - beta)),    b = n |1 - 2 beta| / 2 + sqrt(n) h
        """
        if not self.rounds:
            return math.inf
        starts = [start for start, s in zip(self._head, self._sums, strict=True) if s != 0.0]
        used, head = len(starts), math.hypot(*starts)
        b = 0.5 * used * abs(1.0 - 2.0 * self.beta) + math.sqrt(used) * head
        bound = (b + math.sqrt(b * b + used * self.rounds * self.beta * (1.0 - self.beta))) / self.rounds
        return at_least(bound, abs(self.coverage - self.beta))


def root_near(s: Sequence[float], cell: int, share: float) -> tuple[int, float]:
    """Sign change from - to + of interpolated entries, the first in their direction from a point: cell and position.

    Beyond the ends the entries are -infinity and infinity.

    >>> root_near([-1.0, -3.0, 1.0, 2.0], 2, 0.5)
    (1, 0.75)
    """
    here = (1.0 - share) * s[cell] + share * s[cell + 1]
    if here == 0.0:
        return cell, share
    if here > 0.0:
        low = next((k for k in range(cell, -1, -1) if s[k] <= 0.0), -1)
    else:
        low = next((k for k in range(cell + 1, len(s)) if s[k] >= 0.0), len(s)) - 1
    if low < 0:
        return 0, 0.0
    if low == len(s) - 1:
        return low - 1, 1.0
    return low, s[low] / (s[low] - s[low + 1])


def at_least(bound: float, value: float) -> float:
    """Raise a bound to the value if it is smaller by rounding only."""
    return value if bound < value <= bound + 1e-12 * (1.0 + abs(value)) else bound


def _hit(covered: object, level: float) -> bool:
    if not isinstance(covered, (bool, np.bool_)):
        raise TypeError(f"expected covered=True or False, got {short(covered)}")
    if covered != (level >= 1.0) and not 0.0 < level < 1.0:
        end = "infinity" if level >= 1.0 else "-infinity"
        raise ValueError(f"expected covered={level >= 1.0} at the quantile {end}, got {bool(covered)}")
    return bool(covered)
