"""One round of the dense solver: what is owed, the forecasts tried, and the best of them.

Where lowering the temperature step by step loses the branch of equilibria (it may fold back to higher temperatures),
pseudo-arclength continuation follows it: the temperature is one more unknown, and the step is taken along the branch.
The branch that starts at the prior, at a high temperature, generically leads down to temperature zero.  What is tried
before that is in `minimax`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.constants import (
    DENSE_CLOSEST_RATIO,
    DENSE_CONTINUATION,
    DENSE_STRICT,
    DENSE_STRICT_STEPS,
    LOWEST,
    TRUSTED,
)
from orcast.engine.dense import fixed_point
from orcast.ledger import Ledger, LedgerLayout
from orcast.payoffs import CellPayoff
from orcast.payoffs.regret import RegretCellPayoff

Array = NDArray[np.float64]

# Along a branch: first and largest step, when it is given up, how many steps, and how exact they are.
FIRST_STEP, LARGEST_STEP, LEAST_STEP, ARC_STEPS, CORRECTIONS, ON_BRANCH = 0.1, 0.5, 1e-5, 1000, 6, 1e-7
# So many cells squared are as much work, in a system of linear equations, as an evaluation of the field.
COST_OF_EQUATIONS = 400.0
# A step that turns further than this has lost the branch.
LEAST_COSINE, CORNER = 0.8, 2e-3

# Log masses below this are none.
LEAST_LOG = -690.0


def masses_of(lp: Array) -> Array:
    """Masses from their logarithms; what is judged and what is played must be the same to the last digit."""
    p = np.exp(lp)
    p /= p.sum()
    return p


class HalfSpaceClaim(NamedTuple):
    """The largest <mean payoff, payoff> that a solver found, and how much larger the true one may be."""

    half_space: float
    approximation: float = 0.0


class CandidateSearch:
    """Forecasts for one round, judged by the ledger's slack rule."""

    def __init__(
        self,
        ledger: Ledger,
        layout: LedgerLayout,
        cell_payoffs: Sequence[CellPayoff],
        context: Array,
        reserved: float,
        usual: float,
    ) -> None:
        self.ledger, self.cell_payoffs, self.usual = ledger, list(cell_payoffs), usual
        self.left = math.inf  # evaluations of the field that may still be made, in units of a cheap one
        self.cost = sum(cell_payoff.cost for cell_payoff in self.cell_payoffs)
        cuts = np.concatenate(([0], np.cumsum([cell_payoff.size for cell_payoff in cell_payoffs]))).astype(int)
        owed, factors = np.empty(cuts[-1]), np.empty(cuts[-1])
        _ledger.combine(layout, ledger.total, context, ledger.discount, owed, factors)
        self.square = ledger.square
        self.free = float(
            _ledger.available_slack(
                ledger.layout,
                ledger.account,
                ledger.groups,
                ledger.total,
                self.square,
                context,
                ledger.discount,
                reserved,
            )
        )
        self.owed = [owed[a:b] for a, b in pairwise(cuts)]
        self.factors = [float(factors[a]) if b > a else 0.0 for a, b in pairwise(cuts)]
        self.regrets = any(isinstance(cell_payoff, RegretCellPayoff) for cell_payoff in self.cell_payoffs)
        self.certificate = np.zeros(_ledger.CERTIFICATE_SIZE)
        self.missing = math.inf
        self.best: Array = np.empty(0)
        self.winner: Array | None = None  # log masses that win on average over each cell, if they were found
        self.temperature = 0.0
        self.claim: HalfSpaceClaim | None = None
        self._side = 0.0

    @property
    def weight(self) -> float:
        """The rounds that the sums are over, discounted as they are; at least 1."""
        return max(float(self.ledger.account[_ledger.Account.WEIGHT]), 1.0)

    def rescale(self, p: Array) -> None:
        """Fix the units of the regrets while an equation is solved."""
        for cell_payoff in self.cell_payoffs:
            if isinstance(cell_payoff, RegretCellPayoff):
                cell_payoff.rescale(p)

    def _pairs(self, temperature: float, eager: float) -> list[tuple[CellPayoff, Array]]:
        return [
            (cell_payoff, s * ((eager if isinstance(cell_payoff, RegretCellPayoff) else 1.0) / temperature))
            for cell_payoff, s in zip(self.cell_payoffs, self.owed, strict=True)
            if s.any()
        ]

    def equilibrium(
        self, temperature: float, log_prior: Array, start: Array, tolerance: float, steps: int, eager: float = 1.0
    ) -> tuple[Array, float]:
        """The logit equilibrium around a prior; the pull back to the experts need not be softened by delay."""
        pairs = self._pairs(temperature, eager)
        return fixed_point.solve(log_prior, self._field(pairs), jacobian_of(pairs), start, tolerance, steps)

    def _field(self, pairs: Sequence[tuple[CellPayoff, Array]]) -> Callable[[Array], Array]:
        """The field, whose evaluations are counted."""
        field = field_of(pairs)

        def counted(p: Array) -> Array:
            # with the equations that a step solves
            self.left -= self.cost + min(p.size, fixed_point.MOST_CELLS) ** 2 / COST_OF_EQUATIONS
            return field(p)

        return counted

    def assess(self, p: Array) -> tuple[Array, Array]:
        """The most that an outcome in each cell adds to the square of what is owed, and its largest squared payoff."""
        linear, norm = np.zeros(p.size), np.zeros(p.size)
        for cell_payoff, s, factor in zip(self.cell_payoffs, self.owed, self.factors, strict=True):
            a, b = cell_payoff.assess(s, factor, p)
            linear += a
            norm += b
        return linear, norm

    def consider(self, lp: Array, temperature: float, anyway: bool = False) -> float:
        """The certificate of a forecast; it is kept if it is the best so far, or `anyway` if it holds.

        Returns what it misses.
        """
        lp = fixed_point.normalised(np.maximum(lp, LEAST_LOG))
        linear, norm = self.assess(masses_of(lp))
        certificate = np.zeros(_ledger.CERTIFICATE_SIZE)
        ledger = self.ledger
        worst, bound = float(linear.max()), float(norm.max())
        _ledger.write_certificate(
            ledger.account, ledger.discount, self.square, self.free, worst, bound, ledger.bound, certificate
        )
        missing = (
            0.0
            if certificate[_ledger.CertificateField.HOLDS]
            else float(certificate[_ledger.CertificateField.WORST] - certificate[_ledger.CertificateField.ALLOWED])
        )
        if missing < self.missing or (anyway and missing <= 0.0):
            self.missing, self.best, self.temperature = missing, lp, temperature
            self.certificate[:] = certificate
        return missing

    def resolutions(self, lp: Array) -> Array:
        """By how much <owed, payoff> at an outcome may exceed its mean over each cell, for a forecast."""
        p = masses_of(lp)
        parts = zip(self.cell_payoffs, self.owed, strict=True)
        total = sum((cell_payoff.resolution(s, p) for cell_payoff, s in parts), np.zeros(p.size))
        return np.maximum(total, 0.0)

    def resolution(self) -> float:
        """The same in the worst cell, for the best forecast so far."""
        return float(self.resolutions(self.best).max())

    @property
    def coarse(self) -> Array:
        """The same in each cell, for what wins on average; the cells should be narrower where it is large."""
        return self.resolutions(self.best if self.winner is None else self.winner)

    @property
    def resolved(self) -> bool:
        """Whether the best forecast so far holds, but for what its cells cannot tell apart."""
        return self.missing <= 0.0 or self.missing <= 2.0 * self.resolution()

    def allow_resolution(self) -> None:
        """Let the promise of the round grow by that, as far as the forecast needs it; see the compiled twin."""
        field, ledger = _ledger.CertificateField, self.ledger
        bound = float(self.certificate[field.BOUND])
        linear = float(self.certificate[field.WORST]) - ledger.discount**2 * self.square
        needed = min(linear - bound - self.free, 2.0 * self.resolution())
        bound += max(needed, 0.0)
        _ledger.write_certificate(
            ledger.account, ledger.discount, self.square, self.free, linear, bound, ledger.bound, self.certificate
        )

    def lower_temperature(self, temperature: float, log_prior: Array, start: Array) -> None:
        """Lower the temperature from a solution at `start` until the certificate holds."""
        ratio = 0.5
        lowest = LOWEST * min(self.usual, 1.0)
        for _ in range(DENSE_CONTINUATION):
            if self.left <= 0.0:
                return
            lower = temperature * ratio
            lp, error = self.equilibrium(lower, log_prior, start, DENSE_STRICT, DENSE_STRICT_STEPS)
            self.consider(lp, lower)
            if self.missing <= 0.0:
                return
            if error > TRUSTED:
                if ratio > DENSE_CLOSEST_RATIO:
                    return  # the branch ends here, or folds back
                ratio = math.sqrt(ratio)
                continue
            self.rescale(np.exp(lp))
            temperature, start = lower, lp
            if temperature < lowest:
                return

    def follow_branch(self, temperature: float, log_prior: Array, unlike: float = 0.0) -> None:
        """Follow the branch that starts at the prior, folds included, until a certificate holds.

        Where cells are alike, branches cross: `unlike` parts them by that difference in the prior.
        """
        if unlike > 0.0:
            log_prior = fixed_point.normalised(log_prior + unlike * np.cos(1.7 * np.arange(log_prior.size) ** 1.5))
        self.rescale(np.exp(log_prior))
        lp, error = self.equilibrium(temperature, log_prior, log_prior, DENSE_STRICT, DENSE_STRICT_STEPS)
        if error > TRUSTED:
            return
        n = lp.size
        scale = 1.0 / math.sqrt(n)
        here = np.append(lp, math.log(temperature))
        lowest = math.log(LOWEST * min(self.usual, 1.0))
        top = here[-1] + 1.0
        self._side = 0.0
        down = np.zeros(n + 1)
        down[-1] = -1.0
        tangent = self._tangent(self._on_branch(here, log_prior)[1], down, scale)
        step = FIRST_STEP
        for _ in range(ARC_STEPS):
            if tangent is None or self.left <= 0.0:
                return
            there = self._corrected(here + step * tangent, here, tangent, step, log_prior, scale)
            turned = None
            if there is not None:
                turned = self._tangent(self._on_branch(there, log_prior)[1], tangent, scale)
            if there is None or turned is None or (step > CORNER and _along(turned, tangent, scale) < LEAST_COSINE):
                # too far: on no branch, or on another one (fields have kinks, so a short step may turn sharply)
                step *= 0.4
                if step < LEAST_STEP:
                    return
                continue
            here, tangent = there, turned
            step = min(1.5 * step, LARGEST_STEP)
            self.consider(here[:-1], math.exp(here[-1]))
            if self.missing <= 0.0 or not lowest < here[-1] < top:
                return
            if self.regrets:
                self.rescale(np.exp(here[:-1]))

    def _on_branch(self, at: Array, log_prior: Array) -> tuple[Array, Array]:
        """How far log masses and log temperature are from an equilibrium, and the derivatives of that."""
        lp, n = at[:-1], at.size - 1
        pairs = self._pairs(math.exp(min(max(float(at[-1]), -60.0), 60.0)), 1.0)
        p = np.exp(lp)
        v = self._field(pairs)(p)
        aim = fixed_point.normalised(log_prior + v)
        q = np.exp(aim)
        matrix = np.zeros((n, n + 1))
        by_mass = jacobian_of(pairs, exact=True)(p)
        if by_mass is not None:
            # masses are those of normalised log masses
            by_log = (by_mass - (by_mass @ p)[:, None]) * p
            matrix[:, :n] = q @ by_log - by_log
        diagonal = np.arange(n)
        matrix[diagonal, diagonal] += 1.0
        matrix[:, n] = v - q @ v
        return lp - aim, matrix

    def _tangent(self, matrix: Array, last: Array, scale: float) -> Array | None:
        """The direction of the branch, the same way as the last."""
        n = matrix.shape[0]
        weights = np.append(np.full(n, scale * scale), 1.0)
        bordered = np.vstack((matrix, last * weights))
        right = np.zeros(n + 1)
        right[-1] = 1.0
        try:
            tangent = np.linalg.solve(bordered, right)
        except np.linalg.LinAlgError:
            return None
        size = math.sqrt(float((weights * tangent) @ tangent))
        if not math.isfinite(size) or size == 0.0:
            return None
        # a corner may turn the branch by more than a right angle; the sign of this determinant does not change on it
        side = float(np.linalg.slogdet(np.vstack((matrix, tangent * weights)))[0])
        if self._side == 0.0:
            self._side = side
        return tangent / size if side == self._side else -tangent / size

    def _corrected(
        self, guess: Array, here: Array, tangent: Array, step: float, log_prior: Array, scale: float
    ) -> Array | None:
        """Newton's method back to the branch, in the plane across the tangent."""
        weights = np.append(np.full(guess.size - 1, scale * scale), 1.0)
        at = guess
        for _ in range(CORRECTIONS):
            error, matrix = self._on_branch(at, log_prior)
            plane = float((weights * tangent) @ (at - here)) - step
            size = float(np.abs(error).max())
            if not math.isfinite(size) or size > 20.0:
                return None
            if size < ON_BRANCH and abs(plane) < 1e-6:
                return at
            try:
                change = np.linalg.solve(np.vstack((matrix, tangent * weights)), np.append(error, plane))
            except np.linalg.LinAlgError:
                return None
            if not np.isfinite(change).all() or np.abs(change).max() > 5.0:
                return None
            at = at - change
        error, _ = self._on_branch(at, log_prior)
        return at if float(np.abs(error).max()) < 1e2 * ON_BRANCH else None


def _along(a: Array, b: Array, scale: float) -> float:
    """The cosine between two directions."""
    return float(scale * scale * (a[:-1] @ b[:-1]) + a[-1] * b[-1])


def field_of(pairs: Sequence[tuple[CellPayoff, Array]]) -> Callable[[Array], Array]:
    """The field of several payoffs."""

    def field(p: Array) -> Array:
        v = np.zeros(p.size)
        for cell_payoff, s in pairs:
            v += cell_payoff.field(s, p)
        return v

    return field


def jacobian_of(pairs: Sequence[tuple[CellPayoff, Array]], exact: bool = False) -> Callable[[Array], Array | None]:
    """Its derivative by the masses, where it is known; `exact` even where that makes Newton's matrix singular."""

    def jacobian(p: Array) -> Array | None:
        total: Array | None = None
        for cell_payoff, s in pairs:
            part = cell_payoff.exact_jacobian(s, p) if exact else cell_payoff.jacobian(s, p)
            if part is not None:
                total = part if total is None else total + part
        return total

    return jacobian
