"""One round of the dense solver: terms of the ledger, candidates under one budget, and the best forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.engine.dense import fixed_point
from orcast.kernels.ledger import available_slack_arrays, combine_arrays, write_certificate_arrays
from orcast.ledger import Ledger
from orcast.payoffs import CellGrid, CellPayoff
from orcast.payoffs.regret import RegretCellPayoff

Array = NDArray[np.float64]

# The cost of a linear system with n unknowns is n^2 / COST_OF_EQUATIONS evaluations of the field.
COST_OF_EQUATIONS = 400.0
# The least log mass.
LEAST_LOG = -690.0
# Differences within a cell below this share of the field are rounding errors.
ROUNDING = 1e-12
# Steps of the bisection for the largest share of the prior.
NEAREST = 5


def masses_of(lp: Array) -> Array:
    """Masses from their logarithms; the judged and the issued forecast must be exactly equal."""
    p = np.exp(lp)
    p /= p.sum()
    return p


def log_masses(p: Array) -> Array:
    """Logarithms of masses, finite where a mass is zero."""
    return np.log(np.maximum(p, 1e-300))


class HalfSpaceClaim(NamedTuple):
    """Largest <mean payoff, payoff> that a solver found, and the amount by which the true value may exceed it."""

    half_space: float
    approximation: float = 0.0


class DenseRound(NamedTuple):
    """Data of a round that a solver needs besides the ledger."""

    cell_grid: CellGrid
    prior: Array  # masses expected on the cells
    warm: Array  # log masses to start at
    pending: float  # outcomes outstanding
    rounds: int  # outcomes settled


class Candidate(NamedTuple):
    """Method that proposes forecasts: pairs of log masses and temperature, 0 without one.

    `share` is its share of the round's budget. With `mixes`, a forecast that holds is moved towards the prior as far as
    its certificate allows.
    """

    propose: Callable[[CandidateSearch, DenseRound], Iterator[tuple[Array, float]]]
    share: float = 1.0
    mixes: bool = False


class CandidateSearch:
    """Forecasts for one round, judged by the ledger's slack rule; the best one is kept."""

    def __init__(
        self,
        ledger: Ledger,
        cell_payoffs: Sequence[CellPayoff],
        context: Array,
        reserved: float,
        usual: float,
    ) -> None:
        self.ledger, self.cell_payoffs, self.usual = ledger, list(cell_payoffs), usual
        self.left = math.inf  # remaining evaluations of the field, in units of a cheap one
        self.cost = sum(cell_payoff.cost for cell_payoff in self.cell_payoffs)
        cuts = np.concatenate(([0], np.cumsum([cell_payoff.size for cell_payoff in cell_payoffs]))).astype(int)
        cumulative, factors = np.empty(cuts[-1]), np.empty(cuts[-1])
        combine_arrays(ledger.state, context, cumulative, factors)
        self.square = ledger.square
        self.free = available_slack_arrays(ledger.state, self.square, context, reserved)
        self.cumulative = [cumulative[a:b] for a, b in pairwise(cuts)]
        self.factors = [float(factors[a]) if b > a else 0.0 for a, b in pairwise(cuts)]
        self.certificate = np.zeros(_ledger.CERTIFICATE_SIZE)
        self.missing = math.inf
        self.best: Array = np.empty(0)
        self.temperature = 0.0
        self.claim: HalfSpaceClaim | None = None

    # --- the loop
    def run(self, candidates: Sequence[Candidate], setup: DenseRound, budget: float) -> None:
        """Judge the forecasts of one candidate after the other, until one holds or the budget is spent."""
        left = budget
        for candidate in candidates:
            given = self.left = min(left, candidate.share * budget)
            for lp, temperature in candidate.propose(self, setup):
                if self.consider(lp, temperature) <= 0.0:
                    if candidate.mixes:
                        self.mix_in(setup.prior)
                    return
                if self.left <= 0.0:
                    break
            left -= given - self.left

    def consider(self, lp: Array, temperature: float, anyway: bool = False) -> float:
        """Certify a forecast and return its excess; keep it if it is the best so far, or `anyway` if it holds."""
        lp = fixed_point.normalised(np.maximum(lp, LEAST_LOG))
        linear, norm = self.assess(masses_of(lp))
        certificate = np.zeros(_ledger.CERTIFICATE_SIZE)
        worst, bound = float(linear.max()), float(norm.max())
        write_certificate_arrays(self.ledger.state, self.square, self.free, worst, bound, certificate)
        missing = (
            0.0
            if certificate[_ledger.CertificateField.HOLDS]
            else float(certificate[_ledger.CertificateField.WORST] - certificate[_ledger.CertificateField.ALLOWED])
        )
        if missing < self.missing or (anyway and missing <= 0.0):
            self.missing, self.best, self.temperature = missing, lp, temperature
            self.certificate[:] = certificate
        return missing

    def mix_in(self, prior: Array) -> None:
        """Move the best forecast towards the prior as far as its certificate holds."""
        found = masses_of(self.best)
        share, step = 0.0, 0.5
        for _ in range(NEAREST):
            p = (share + step) * prior + (1.0 - share - step) * found
            if self.consider(log_masses(p), 0.0, anyway=True) <= 0.0:
                share += step
            step *= 0.5

    # --- for candidates
    @property
    def weight(self) -> float:
        """Discounted number of rounds of the sums; at least 1."""
        return max(float(self.ledger.account[_ledger.Account.WEIGHT]), 1.0)

    def rescale(self, p: Array) -> None:
        """Fix the units of the regrets while an equation is solved."""
        for cell_payoff in self.cell_payoffs:
            if isinstance(cell_payoff, RegretCellPayoff):
                cell_payoff.rescale(p)

    def assess(self, p: Array) -> tuple[Array, Array]:
        """Largest addition to the squared ledger for an outcome in each cell, and its largest squared payoff."""
        linear, norm = np.zeros(p.size), np.zeros(p.size)
        for cell_payoff, s, factor in zip(self.cell_payoffs, self.cumulative, self.factors, strict=True):
            a, b = cell_payoff.assess(s, factor, p)
            linear += a
            norm += b
        return linear, norm

    def equilibrium(
        self, temperature: float, log_prior: Array, start: Array, tolerance: float, steps: int, eager: float = 1.0
    ) -> tuple[Array, float]:
        """Logit equilibrium around a prior and its residual; regrets are multiplied by `eager`."""
        pairs = [
            (cell_payoff, s * ((eager if isinstance(cell_payoff, RegretCellPayoff) else 1.0) / temperature))
            for cell_payoff, s in zip(self.cell_payoffs, self.cumulative, strict=True)
            if s.any()
        ]

        def field(p: Array) -> Array:
            self.left -= self.cost + p.size**2 / COST_OF_EQUATIONS
            v = np.zeros(p.size)
            for cell_payoff, s in pairs:
                v += cell_payoff.field(s, p)
            return v

        def jacobian(p: Array) -> Array | None:
            total: Array | None = None
            for cell_payoff, s in pairs:
                part = cell_payoff.jacobian(s, p)
                if part is not None:
                    total = part if total is None else total + part
            return total

        return fixed_point.solve(log_prior, field, jacobian, start, tolerance, steps)

    # --- the resolution of the cells
    def resolutions(self) -> Array:
        """Largest excess of <S, payoff> at an outcome over its mean in each cell, for the best forecast."""
        p = masses_of(self.best)
        total, size = np.zeros(p.size), 0.0
        for cell_payoff, s in zip(self.cell_payoffs, self.cumulative, strict=True):
            mean = s @ cell_payoff.table(p)
            total += 0.5 * cell_payoff.assess(s, 0.0, p)[0] - mean
            size += float(np.abs(mean).max())
        return np.where(total > ROUNDING * size, total, 0.0)

    @property
    def resolved(self) -> bool:
        """True if the best forecast holds, up to the resolution of its cells."""
        return self.missing <= 0.0 or self.missing <= 2.0 * float(self.resolutions().max())

    def allow_resolution(self) -> None:
        """Raise the bound of the round by the resolution, as far as the best forecast needs it."""
        field, ledger = _ledger.CertificateField, self.ledger
        bound = float(self.certificate[field.BOUND])
        linear = float(self.certificate[field.WORST]) - ledger.discount**2 * self.square
        needed = min(linear - bound - self.free, 2.0 * float(self.resolutions().max()))
        bound += max(needed, 0.0)
        write_certificate_arrays(ledger.state, self.square, self.free, linear, bound, self.certificate)
