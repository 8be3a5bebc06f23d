"""Conformal prediction on any sequence: at which level to ask a quantile function of one's own."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.locks import GameLock, Locked, locked
from orcast.persistence import files as storage
from orcast.spaces.base import whole
from orcast.validation import number, short

if TYPE_CHECKING:
    from orcast.engine.base import Engine
    from orcast.engine.bound_payoff import BoundPayoff

# More accounts than this would only be slow to save.
FINEST = 100_000


class _CoveredLevel(Locked):
    """What both levels count: rounds, and covered outcomes."""

    def __init__(self, beta: float) -> None:
        self.lock = GameLock()
        self.beta = _target(beta)
        self.rounds = 0
        self._covered = 0

    @property
    @locked
    def coverage(self) -> float:
        """The share of covered outcomes; nan before the first."""
        return self._covered / self.rounds if self.rounds else math.nan


class ConformalLevel(_CoveredLevel):
    """The level at which to ask a quantile function, so that outcomes fall below it with frequency `beta`.

    Each round you ask your own quantile function Q_t at the level a_t of `predict`, and say in `update` whether
    the outcome was covered, e_t = 1{y_t <= Q_t(a_t)}, where Q_t(0) = -infinity and Q_t(1) = infinity.  Then the
    coverage, mean_t e_t, approaches beta whatever the outcomes are, even if someone who sees a_t picks them (paper,
    appendix C.1.1, the deterministic algorithm, which is exact with the hat functions below; the randomised one had to
    be corrected).  There is no learning rate.

    The payoff has an account for each vertex v = 0, 1/grid, ..., 1, with piecewise linear hat functions w_v:

        payoff_v = w_v(a_t) (e_t - beta),    S_v their sum,    c(a) = sum_v w_v(a) S_v

    so that <S, payoff> = c(a_t) (e_t - beta).  At a root of c this is zero.  Where c > 0 down to 0, a_t = 0: nothing is
    covered, and it is -beta c(0) < 0.  Where c < 0 up to 1, a_t = 1, and it is (1 - beta) c(1) < 0.  So it is never
    positive (but for rounding: at most 1e-15 times the larger of the two accounts in use), and ||S||^2 grows by at most
    B_t, the largest squared payoff that round t could have.

    **Which root.**  Low levels are covered too seldom, high ones too often: c must go from - to +.  From beta the
    search goes down if c > 0 there, up if c < 0, in doubling steps, then by bisection: O(log grid) accounts are looked
    at, and the root within the last cell is exact.  The accounts, leaving out those at zero, so keep the signs -, ...,
    -, +, ..., +: there is one such root, or else a stretch of zeros, whose near end is taken.  Bisection of the whole
    range would jump to levels never tried.

    **The head start.**  With all accounts at zero one covered outcome moves the level to the next vertex.  So before
    the first round each vertex below beta counts as missed, and each above it as covered, `head_start` times (those
    around beta so that the first level is beta itself).  A vertex is passed when errors have made up for this, not
    before; the promise pays for it with a constant.  `head_start=0` is the plain game.

    **At random.**  With `randomised=True` only vertices are played, for quantiles that are known at these levels
    only: the two around the root, with their hat weights as probabilities.  The draw depends on `seed` and the number
    of rounds alone, so `predict` gives the same twice.  The promise is weaker, and one in mean square over the draws.
    Let a <= 0 < b be the two accounts and s = |a| / (|a| + b) the probability of the upper one.  The expected
    <S, payoff> is zero if none or both levels are covered, and, since (1 - s) |a| = s b,

        beta (1 - s) |a| + (1 - beta) s b = |a| b / (|a| + b) <= ||S|| / sqrt(8)

    if the outcome falls between the two quantiles.  If it does so with probability at most g, given the past, the mean
    of ||S_t||^2 is at most (x + g / sqrt(8))^2 + B_t, x^2 the mean of ||S_{t-1}||^2; by induction the root mean square
    of the miscalibration is at most `promised` + g / sqrt(8).  No randomised rule does without such a term: with the
    accounts (-1, 1) of two levels and beta = 0.9, each has an outcome whose expected <S, payoff> is at least 0.1.

    >>> import numpy as np
    >>> from orcast.paper.conformal import ConformalLevel
    >>> rng, aci = np.random.default_rng(0), ConformalLevel(0.9)
    >>> for y in rng.exponential(size=2000):       # the forecaster believes in a uniform distribution on [0, 1]
    ...     level = aci.predict()
    ...     quantile = level if 0 < level < 1 else (2 * level - 1) * np.inf
    ...     aci.update(y <= quantile)
    >>> round(aci.coverage, 2), aci.miscalibration <= aci.promised, abs(aci.coverage - 0.9) <= aci.coverage_bound
    (0.9, True, True)

    **In a game** it is the exact oracle of `LevelCalibration`: the forecast is the expert's, bent so that its
    beta-quantile is where the ledger wants it.

    >>> import orcast as oc
    >>> game = oc.Forecaster(oc.Interval(0, 10), oc.payoffs.LevelCalibration(0.9), oracle=oc.paper.ConformalLevel(0.9))
    >>> for y in (9, 2, 4):
    ...     p = game.predict(oc.Normal(4, 1))
    ...     game.update(y)
    >>> p.certificate.holds, bool(p.quantile(0.9) > oc.Normal(4, 1).mean + 1.2816)
    (True, True)
    """

    def __init__(
        self, beta: float, *, grid: int = 20, head_start: float = 0.3, randomised: bool = False, seed: int = 0
    ) -> None:
        super().__init__(beta)
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
        self._head = _head(self.beta, self.grid, self.head_start, *self._start)

    # --- as an oracle
    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
        """An engine that plays `LevelCalibration` of this level, with an empty ledger; this object stays as is.

        There the expert is the quantile function.  The payoff has its own grid, and there is no head start.
        """
        from orcast.paper.exact.level import level_engine

        if self.randomised:
            raise ValueError("expected randomised=False of a ConformalLevel as oracle, got True")
        return level_engine(bound_payoff, self.beta, sizes)

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
            # what can happen at this level
            errors = [e - self.beta for e in (0.0, 1.0) if (level > 0.0 or e == 0.0) and (level < 1.0 or e == 1.0)]
            size = (1.0 - share) ** 2 + share**2
            owed = (1.0 - share) * self._account(cell) + share * self._account(cell + 1)
            # the second term is zero but for rounding
            self._budget += size * max(e * e for e in errors) + max(0.0, 2.0 * max(owed * e for e in errors))
        self._sums[cell] += (1.0 - share) * error
        self._sums[cell + 1] += share * error
        self._covered += error > 0.0
        self.rounds += 1

    def _account(self, vertex: int) -> float:
        return self._sums[vertex] + self._head[vertex]

    def _place(self) -> tuple[int, float]:
        """The cell of the root, and how far into it."""
        return root_near(self._account, self.grid, *self._start) if self.rounds else self._start

    def _asked(self, cell: int, share: float) -> float:
        if self.randomised:
            upper = np.random.default_rng((self.seed, self.rounds)).random() < share
            return (cell + int(upper)) / self.grid
        return (cell + share) / self.grid if self.rounds else self.beta

    # --- what was promised and what was kept
    @property
    @locked
    def miscalibration(self) -> float:
        """The norm of the mean payoff; zero before any outcome."""
        return math.hypot(*self._sums) / max(self.rounds, 1)

    @property
    @locked
    def promised(self) -> float:
        """The bound on the miscalibration: (h + sqrt(h^2 + B_1 + ... + B_T)) / T, h the norm of the head start used.

        The half-space argument bounds the norm of payoffs and head start together, sqrt(h^2 + B_1 + ... + B_T); the
        first h takes the head start out again.  Accounts without payoffs have the same head start on both sides and
        drop out.  B_t is beta^2 or (1 - beta)^2, the larger that can come at level a_t, times sum_v w_v(a_t)^2.  With
        `randomised=True` it bounds the root mean square over the draws, if no outcome falls between the two levels.
        """
        _, head = self._used()
        bound = (head + math.sqrt(head * head + self._budget)) / max(self.rounds, 1)
        # sums of squares in another order differ in the last digit
        now = self.miscalibration
        return now if bound < now <= bound * (1.0 + 1e-12) else bound

    @property
    @locked
    def coverage_bound(self) -> float:
        """A bound on abs(coverage - beta) on any sequence; infinite before any outcome.

        With n accounts in use (at most grid + 1), and h the norm of their head start,

            T |coverage - beta| <= b + sqrt(b^2 + n T beta (1 - beta)),    b = n |1 - 2 beta| / 2 + sqrt(n) h

        about sqrt(n) standard errors of T independent trials.  Proof: the hat functions sum to one, so that
        u = T |coverage - beta| = |sum_v S_v| is at most sqrt(n) times their norm (Cauchy and Schwarz), which is at most
        h + sqrt(h^2 + sum_t (e_t - beta)^2); that sum is T beta (1 - beta) + T (coverage - beta)(1 - 2 beta).  So
        (u - sqrt(n) h)^2 <= n (h^2 + T beta (1 - beta) + u |1 - 2 beta|), a quadratic inequality in u.  With
        `randomised=True` it bounds the mean of abs(coverage - beta) over the draws, if no outcome falls between.
        """
        if not self.rounds:
            return math.inf
        used, head = self._used()
        b = 0.5 * used * abs(1.0 - 2.0 * self.beta) + math.sqrt(used) * head
        bound = (b + math.sqrt(b * b + used * self.rounds * self.beta * (1.0 - self.beta))) / self.rounds
        now = abs(self.coverage - self.beta)
        return now if bound < now <= bound * (1.0 + 1e-12) else bound

    def _used(self) -> tuple[int, float]:
        """How many accounts are in use, and the norm of their head start; all of them if it is left to chance."""
        head = [start for start, s in zip(self._head, self._sums, strict=True) if s != 0.0 or self.randomised]
        return len(head), math.hypot(*head)

    def __repr__(self) -> str:
        kept = f"coverage {self.coverage:.3g} of {self.rounds} rounds" if self.rounds else "no rounds yet"
        return f"ConformalLevel({self.beta:g}, grid={self.grid}, {'randomised, ' * self.randomised}{kept})"

    # --- state
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        with self.lock:
            header = {
                "class": "ConformalLevel",
                "beta": self.beta,
                "grid": self.grid,
                "head_start": self.head_start,
                "randomised": self.randomised,
                "seed": self.seed,
                "rounds": self.rounds,
                "covered": self._covered,
                "budget": self._budget,
            }
            sums = np.array(self._sums)
        storage.write(path, header, {"sums": sums})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConformalLevel:
        """Continue from a file, as `Recalibrator.load` does; refuses what it cannot read, in one sentence."""
        from orcast.persistence.state import reading

        with reading(path, cls.__name__) as (header, arrays):
            options = {name: header[name] for name in ("grid", "head_start", "randomised", "seed")}
            self = cls(header["beta"], **options)
            self.rounds = whole(header["rounds"], "rounds", 0, 2**63 - 1)
            self._covered = whole(header["covered"], "covered rounds", 0, self.rounds)
            self._budget = number(header["budget"], "budget", 0.0)
            sums = arrays["sums"]
            if sums.shape != (self.grid + 1,) or not np.isfinite(sums).all():
                raise ValueError(f"sums of shape {sums.shape}, not all finite or not {self.grid + 1}")
            self._sums = sums.astype(np.float64).tolist()
        return self


class GibbsCandesLevel(_CoveredLevel):
    """Adaptive conformal inference as first proposed (Gibbs and Candes, 2021), for comparison.

        a <- a + rate (beta - e),    e = 1{y <= Q(a)}

    so a miss raises the level of the quantile by rate beta, and a covered outcome lowers it by rate (1 - beta).  It is
    asked for clipped to [0, 1], but remembered as it is: never further out than one step.  The steps add up to
    rate T (beta - coverage), hence `coverage_bound`.  A good rate depends on how fast the world changes.

    >>> from orcast.paper.conformal import GibbsCandesLevel
    >>> aci = GibbsCandesLevel(0.9, rate=0.05)
    >>> aci.predict(); aci.update(False); round(aci.predict(), 3); aci.update(True); round(aci.predict(), 3)
    0.9
    0.945
    0.94
    """

    def __init__(self, beta: float, *, rate: float = 0.005) -> None:
        super().__init__(beta)
        self.rate = number(rate, "rate", 1e-12, 1e12)
        self._level = self.beta

    @locked
    def predict(self) -> float:
        """The level to ask at; changes nothing."""
        return min(max(self._level, 0.0), 1.0)

    @locked
    def update(self, covered: bool) -> None:
        """Record whether the outcome was at most the quantile at the level of `predict`."""
        hit = _hit(covered, self.predict())
        self._level += self.rate * (self.beta - hit)
        self._covered += hit
        self.rounds += 1

    @property
    @locked
    def coverage_bound(self) -> float:
        """A bound on abs(coverage - beta): the longest way the level can have gone, divided by rate T."""
        if not self.rounds:
            return math.inf
        up, down = 1.0 - self.beta + self.rate * self.beta, self.beta + self.rate * (1.0 - self.beta)
        return max(up, down) / (self.rate * self.rounds)

    def __repr__(self) -> str:
        return f"GibbsCandesLevel({self.beta:g}, rate={self.rate:g}, level={self._level:.4g})"


def root_near(account: Callable[[int], float], grid: int, cell: int, share: float) -> tuple[int, float]:
    """Where the interpolated accounts go from - to +, near a place: the cell, and how far into it.

    Beyond the ends they count as -infinity and infinity.  A place where they are zero stays.

    >>> root_near([-1.0, -3.0, 1.0, 2.0].__getitem__, 3, 2, 0.5)
    (1, 0.75)
    """
    here = (1.0 - share) * account(cell) + share * account(cell + 1)
    if here == 0.0:
        return cell, share
    step = 1
    if here > 0.0:
        high = low = cell if account(cell) > 0.0 else cell + 1
        while account(low) > 0.0:
            if low == 0:
                return 0, 0.0
            high, low, step = low, max(low - step, 0), 2 * step
    else:
        low = high = cell + 1 if account(cell + 1) < 0.0 else cell
        while account(high) < 0.0:
            if high == grid:
                return grid - 1, 1.0
            low, high, step = high, min(high + step, grid), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        value = account(middle)
        # of accounts at zero the nearest
        if value > 0.0 or (value == 0.0 and here < 0.0):
            high = middle
        else:
            low = middle
    below, above = account(low), account(high)
    return low, below / (below - above)


def _head(beta: float, grid: int, times: float, cell: int, share: float) -> list[float]:
    """Accounts before the first round, whose only root is beta."""
    head = [-times * beta] * cell + [0.0, 0.0] + [times * (1.0 - beta)] * (grid - cell - 1)
    larger = times * max(beta, 1.0 - beta)
    head[cell], head[cell + 1] = -larger * share, larger * (1.0 - share)
    return head


def _target(beta: object) -> float:
    value = number(beta, "beta")
    if not 0.0 < value < 1.0:
        raise ValueError(f"expected a share strictly between 0 and 1 as beta, got {short(beta)}")
    return value


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
