"""Conformal prediction on any sequence: the level at which to ask a quantile function, alone or as an exact oracle."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import persistence
from orcast.constants import TINY_MASS
from orcast.engine.base import NO_LEARNING
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import OrderedPrior
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.locks import GameLock, Locked, locked
from orcast.paper.exact.base import ExactSolver, play
from orcast.payoffs.levels import LevelCalibration, LevelCellPayoff
from orcast.persistence import reading
from orcast.spaces import OrderedSpace
from orcast.spaces.base import whole
from orcast.validation import number, short

Array = NDArray[np.float64]

# The largest grid.
FINEST = 100_000
# Options of `ConformalLevel` besides beta.
OPTIONS = ("grid", "head_start", "randomised", "seed")


class ConformalLevel(Locked):
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
    head_start
        Before the first round each vertex below beta counts as missed, and each above it as covered, so many times.
    randomised
        Ask at vertices only: the two around the root, with their hat weights as probabilities.
    seed
        Of the random draws, which depend on it and on the number of rounds alone.

    Notes
    -----
    The payoff has an entry for each vertex v, with piecewise linear hat functions w_v (paper, appendix C.1.1):

        payoff_v = w_v(a_t) (e_t - beta),    S_v their sum,    c(a) = sum_v w_v(a) S_v

    so that <S, payoff> = c(a_t) (e_t - beta), which is zero at a root of c; a_t = 0 if c > 0 down to 0, and a_t = 1 if
    c < 0 up to 1.  Of several roots the first that c points to from beta is taken (docs/theory.md).  As an oracle of
    `LevelCalibration` the expert is the quantile function, and the forecast is the expert's, bent so that its
    beta-quantile is where the ledger wants it.

    Examples
    --------
    >>> import numpy as np
    >>> from orcast.paper.conformal import ConformalLevel
    >>> rng, aci = np.random.default_rng(0), ConformalLevel(0.9)
    >>> for y in rng.exponential(size=2000):       # the forecaster believes in a uniform distribution on [0, 1]
    ...     level = aci.predict()
    ...     quantile = level if 0 < level < 1 else (2 * level - 1) * np.inf
    ...     aci.update(y <= quantile)
    >>> round(aci.coverage, 2), aci.miscalibration <= aci.promised, abs(aci.coverage - 0.9) <= aci.coverage_bound
    (0.9, True, True)
    """

    def __init__(
        self, beta: float, *, grid: int = 20, head_start: float = 0.3, randomised: bool = False, seed: int = 0
    ) -> None:
        self.lock = GameLock()
        self.beta = number(beta, "beta")
        if not 0.0 < self.beta < 1.0:
            raise ValueError(f"expected a share strictly between 0 and 1 as beta, got {short(beta)}")
        self.rounds = 0
        self._covered = 0
        self.grid = whole(grid, "cells in the grid", 1, FINEST)
        self.head_start = number(head_start, "head_start", 0.0, 1e6)
        if not isinstance(randomised, (bool, np.bool_)):
            raise TypeError(f"expected randomised=True or False, got {short(randomised)}")
        self.randomised = bool(randomised)
        self.seed = whole(seed, "as seed", 0, 2**63 - 1)
        self._budget = 0.0
        cell = min(int(self.beta * self.grid), self.grid - 1)
        self._start = (cell, min(self.beta * self.grid - cell, 1.0))
        self._sums = [0.0] * (self.grid + 1)
        self._head = self._head_start(*self._start)

    def _head_start(self, cell: int, share: float) -> list[float]:
        """Entries before the first round, whose only root is beta."""
        below, above = -self.head_start * self.beta, self.head_start * (1.0 - self.beta)
        larger = max(-below, above)
        return [below] * cell + [-larger * share, larger * (1.0 - share)] + [above] * (self.grid - cell - 1)

    # --- as an oracle
    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """An engine for `LevelCalibration` of this level, with an empty ledger; this object stays as it is."""
        if self.randomised:
            raise ValueError("expected randomised=False of a ConformalLevel as oracle, got True")
        if not isinstance(bound_payoff.space, OrderedSpace):
            raise TypeError(
                f"expected an ordered space such as Interval(low, high) for ConformalLevel, got {bound_payoff.space!r}"
            )
        wanted = f"expected LevelCalibration({self.beta:g}) for ConformalLevel({self.beta:g}), got"
        grids = []
        for payoff in bound_payoff.payoffs:
            if not isinstance(payoff, LevelCalibration) or payoff.level != self.beta:
                raise ValueError(f"{wanted} {payoff!r}")
            grids.append(payoff.grid)
        if not grids:
            raise ValueError(f"{wanted} no payoff")
        return DenseEngine(bound_payoff, OrderedPrior(bound_payoff, 1.0, NO_LEARNING), LevelSolver(grids), sizes)

    def to_plain(self) -> dict[str, Any]:
        """The options, as plain data."""
        return {"kind": "ConformalLevel", "beta": self.beta, "grid": self.grid, "head_start": self.head_start}

    # --- the loop
    @locked
    def predict(self) -> float:
        """The level to ask at; changes nothing."""
        return self._asked(*self._place())

    @locked
    def update(self, covered: bool) -> None:
        """Record whether the outcome was at most the quantile at the level of `predict`."""
        cell, share = self._place()
        level = self._asked(cell, share)
        error = _hit(covered, level) - self.beta
        if self.randomised:
            cell = min(round(level * self.grid), self.grid - 1)
            share = round(level * self.grid) - cell
            self._budget += max(self.beta, 1.0 - self.beta) ** 2
        else:
            # the errors that are possible at this level
            errors = [e - self.beta for e in (0.0, 1.0) if (level > 0.0 or e == 0.0) and (level < 1.0 or e == 1.0)]
            owed = (1.0 - share) * self._entry(cell) + share * self._entry(cell + 1)
            # the second term is zero but for rounding
            size = (1.0 - share) ** 2 + share**2
            self._budget += size * max(e * e for e in errors) + max(0.0, 2.0 * max(owed * e for e in errors))
        self._sums[cell] += (1.0 - share) * error
        self._sums[cell + 1] += share * error
        self._covered += error > 0.0
        self.rounds += 1

    def _entry(self, vertex: int) -> float:
        return self._sums[vertex] + self._head[vertex]

    def _place(self) -> tuple[int, float]:
        """The cell of the root, and how far into it."""
        return root_near(self._entry, self.grid, *self._start) if self.rounds else self._start

    def _asked(self, cell: int, share: float) -> float:
        if self.randomised:
            upper = np.random.default_rng((self.seed, self.rounds)).random() < share
            return (cell + int(upper)) / self.grid
        return (cell + share) / self.grid if self.rounds else self.beta

    # --- the guarantee
    @property
    @locked
    def coverage(self) -> float:
        """The share of covered outcomes; nan before the first."""
        return self._covered / self.rounds if self.rounds else math.nan

    @property
    @locked
    def miscalibration(self) -> float:
        """The norm of the mean payoff; zero before any outcome."""
        return math.hypot(*self._sums) / max(self.rounds, 1)

    @property
    @locked
    def promised(self) -> float:
        """The bound on the miscalibration: (h + sqrt(h^2 + B_1 + ... + B_T)) / T, h the norm of the head start used.

        B_t is the largest squared payoff that can come at level a_t; with random draws it is a bound on the root mean
        square over them.
        """
        _, head = self._used()
        bound = (head + math.sqrt(head * head + self._budget)) / max(self.rounds, 1)
        return _at_least(bound, self.miscalibration)

    @property
    @locked
    def coverage_bound(self) -> float:
        """Bound on abs(coverage - beta) on any sequence, about sqrt(n) standard errors; infinite before any outcome.

        With n entries in use, and h the norm of their head start (docs/theory.md),

            T |coverage - beta| <= b + sqrt(b^2 + n T beta (1 - beta)),    b = n |1 - 2 beta| / 2 + sqrt(n) h
        """
        if not self.rounds:
            return math.inf
        used, head = self._used()
        b = 0.5 * used * abs(1.0 - 2.0 * self.beta) + math.sqrt(used) * head
        bound = (b + math.sqrt(b * b + used * self.rounds * self.beta * (1.0 - self.beta))) / self.rounds
        return _at_least(bound, abs(self.coverage - self.beta))

    def _used(self) -> tuple[int, float]:
        """The number of entries in use, and the norm of their head start; all of them if draws are random."""
        head = [start for start, s in zip(self._head, self._sums, strict=True) if s != 0.0 or self.randomised]
        return len(head), math.hypot(*head)

    def __repr__(self) -> str:
        kept = f"coverage {self.coverage:.3g} of {self.rounds} rounds" if self.rounds else "no rounds yet"
        return f"ConformalLevel({self.beta:g}, grid={self.grid}, {'randomised, ' * self.randomised}{kept})"

    # --- state
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        with self.lock:
            header = {"class": "ConformalLevel", "beta": self.beta, **{name: getattr(self, name) for name in OPTIONS}}
            header |= {"rounds": self.rounds, "covered": self._covered, "budget": self._budget}
            sums = np.array(self._sums)
        persistence.write(path, header, {"sums": sums})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConformalLevel:
        """Continue from a file, as `Recalibrator.load` does; raises ValueError for any other file."""
        with reading(path, cls.__name__) as (header, arrays):
            self = cls(header["beta"], **{name: header[name] for name in OPTIONS})
            self.rounds = whole(header["rounds"], "rounds", 0, 2**63 - 1)
            self._covered = whole(header["covered"], "covered rounds", 0, self.rounds)
            self._budget = number(header["budget"], "budget", 0.0)
            sums = arrays["sums"]
            if sums.shape != (self.grid + 1,) or not np.isfinite(sums).all():
                raise ValueError(f"sums of shape {sums.shape}, not all finite or not {self.grid + 1}")
            self._sums = sums.astype(np.float64).tolist()
        return self


class LevelSolver(ExactSolver):
    """Forecasts the expert, bent so that its quantile is where the ledger wants it.

    With c(alpha) = sum_v hat_v(alpha) S_v the inner product is c(alpha) (w_k - level), where w_k in [0, 1] is the share
    of the outcome's cell below the quantile of the forecast, so a root of c wins.  All mass in the bottom cell wins if
    there is none down to alpha = level x_0, and all in the top cell if there is none up to 1 - (1 - level) x_K.
    """

    def __init__(self, grids: Sequence[int]) -> None:
        self.grids = [np.linspace(0.0, 1.0, grid + 1) for grid in grids]
        self.vertices = self.grids[0] if len(set(grids)) == 1 else np.unique(np.concatenate(self.grids))

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """One forecast."""
        cell_payoff = search.cell_payoffs[0]
        assert isinstance(cell_payoff, LevelCellPayoff)
        level, x = cell_payoff.level, cell_payoff.expert
        c = np.zeros(self.vertices.size)
        for own, owed in zip(self.grids, search.owed, strict=True):
            c += owed if own.size == c.size else np.interp(self.vertices, own, owed)
        low, high = level * float(x[0]), 1.0 - (1.0 - level) * float(x[-1])
        alpha = root_between(self.vertices, c, min(max(level, low), high), low, high)
        play(search, bent(x, level, alpha, low, high))


def root_near(entry: Callable[[int], float], grid: int, cell: int, share: float) -> tuple[int, float]:
    """The place near another where interpolated entries go from - to +: the cell, and how far into it.

    Beyond the ends they count as -infinity and infinity.  A place where they are zero stays.  The search goes down
    where they are positive, up where they are negative, in doubling steps, then by bisection: O(log grid) entries.

    >>> root_near([-1.0, -3.0, 1.0, 2.0].__getitem__, 3, 2, 0.5)
    (1, 0.75)
    """
    here = (1.0 - share) * entry(cell) + share * entry(cell + 1)
    if here == 0.0:
        return cell, share
    step = 1
    if here > 0.0:
        high = low = cell if entry(cell) > 0.0 else cell + 1
        while entry(low) > 0.0:
            if low == 0:
                return 0, 0.0
            high, low, step = low, max(low - step, 0), 2 * step
    else:
        low = high = cell + 1 if entry(cell + 1) < 0.0 else cell
        while entry(high) < 0.0:
            if high == grid:
                return grid - 1, 1.0
            low, high, step = high, min(high + step, grid), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        value = entry(middle)
        # of entries at zero the nearest
        if value > 0.0 or (value == 0.0 and here < 0.0):
            high = middle
        else:
            low = middle
    below, above = entry(low), entry(high)
    return low, below / (below - above)


def root_between(vertices: Array, c: Array, start: float, low: float, high: float) -> float:
    """A root of the interpolated c from `low` to `high`, near `start`; an end if there is none.

    >>> root_between(np.linspace(0.0, 1.0, 5), np.array([-1.0, -1.0, 0.0, -1.0, 1.0]), 0.7, 0.0, 1.0)
    0.875
    """
    points = np.unique(np.concatenate(([low, start, high], vertices[(vertices > low) & (vertices < high)])))
    if points.size == 1:
        return start
    cell = min(int(np.searchsorted(points, start)), points.size - 2)
    cell, share = root_near(
        np.interp(points, vertices, c).tolist().__getitem__, points.size - 1, cell, float(start == high)
    )
    return float(points[cell] + share * (points[cell + 1] - points[cell]))


def bent(x: Array, level: float, alpha: float, low: float, high: float) -> Array:
    """Masses whose level-quantile is the alpha-quantile of x, and which are like x on either side of it.

    Below the quantile x is scaled to the mass `level`, above it to 1 - level; its own cell has the mass that both give
    it, and the others make up for the two halves of it being equally dense.
    """
    p = np.zeros(x.size)
    if alpha <= low or alpha >= high:
        p[0 if alpha <= low else -1] = 1.0
        return p
    below = np.cumsum(x)
    k = min(int(np.searchsorted(below, alpha, side="left")), x.size - 1)
    start = float(below[k - 1]) if k else 0.0
    s = min(max((alpha - start) / float(x[k]), 0.0), 1.0)
    if k == 0:
        # nothing beyond an outer cell to make up for; rounding must not carry the quantile out of it
        own = level / s if s > level else 1.0
    elif k == x.size - 1:
        own = (1.0 - level) / (1.0 - s) if s < level else 1.0
    else:
        own = float(x[k]) * (s * level / alpha + (1.0 - s) * (1.0 - level) / (1.0 - alpha))
        most = min(level / s if s > 0.0 else 1.0, (1.0 - level) / (1.0 - s) if s < 1.0 else 1.0)
        own = min(max(own, 4.0 * TINY_MASS), most)
    p[k] = own
    # a mass that counts as none would hide where the quantile is
    like = x + 4.0 * TINY_MASS / min(level, 1.0 - level)
    if k:
        p[:k] = max(level - s * own, 0.0) * like[:k] / like[:k].sum()
    if k < x.size - 1:
        p[k + 1 :] = max(1.0 - level - (1.0 - s) * own, 0.0) * like[k + 1 :] / like[k + 1 :].sum()
    return p


def _at_least(bound: float, value: float) -> float:
    """A bound that is below the value by rounding only is the value: sums in another order differ in the last digit."""
    return value if bound < value <= bound * (1.0 + 1e-12) else bound


def _hit(covered: object, level: float) -> bool:
    if not isinstance(covered, (bool, np.bool_)) and not (
        isinstance(covered, (int, np.integer)) and int(covered) in (0, 1)
    ):
        raise TypeError(f"expected covered=True or False, got {short(covered)}")
    if (covered and level <= 0.0) or (not covered and level >= 1.0):
        raise ValueError(
            f"expected covered={level >= 1.0} at level {level:g}, whose quantile is "
            f"{'' if level >= 1.0 else '-'}infinity, got {bool(covered)}"
        )
    return bool(covered)
