"""Solver protocol of the dense engine, and the logit equilibrium with its candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orcast.constants import (
    DELAY_TEMPERATURE,
    DENSE_CLOSEST_RATIO,
    DENSE_CONTINUATION,
    DENSE_STRICT,
    DENSE_STRICT_STEPS,
    EASY,
    EASY_STEPS,
    LOWEST,
    TRUSTED,
)
from orcast.engine.dense import minimax
from orcast.engine.dense.search import Candidate, CandidateSearch, DenseRound, log_masses

Array = NDArray[np.float64]

# Evaluations of the field in a search, in units of a cheap one; a second search has this multiple of them.
EVALUATIONS, RETRY = 4800.0, 8.0


class Solver(Protocol):
    """Finds forecasts for a round; the search judges them and keeps the best."""

    temperature: float  # the default one, or 1 without one

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose one or more forecasts to the search."""
        ...


def equilibria(search: CandidateSearch, setup: DenseRound) -> Iterator[tuple[Array, float]]:
    """Logit equilibria around the prior, at the usual temperature and then at lower ones."""
    log_prior = log_masses(setup.prior)
    soft = (1.0 + setup.pending) ** DELAY_TEMPERATURE
    temperature = search.usual * soft
    search.rescale(setup.prior)
    start, error = search.equilibrium(temperature, log_prior, setup.warm, EASY, EASY_STEPS, soft)
    if error > 10.0 * EASY:
        cold, cold_error = search.equilibrium(temperature, log_prior, log_prior, EASY, DENSE_STRICT_STEPS, soft)
        if cold_error < error:
            start = cold
    yield start, temperature
    ratio, lowest = 0.5, LOWEST * min(search.usual, 1.0)
    for _ in range(DENSE_CONTINUATION):
        lower = temperature * ratio
        lp, error = search.equilibrium(lower, log_prior, start, DENSE_STRICT, DENSE_STRICT_STEPS)
        yield lp, lower
        if error > TRUSTED:
            if ratio > DENSE_CLOSEST_RATIO:
                return  # the branch of equilibria ends here, or folds back
            ratio = math.sqrt(ratio)
            continue
        search.rescale(np.exp(lp))
        temperature, start = lower, lp
        if temperature < lowest:
            return


def expert(search: CandidateSearch, setup: DenseRound) -> Iterator[tuple[Array, float]]:
    """Expert's forecast, which has no regret; without an expert uniform masses."""
    yield np.log(np.maximum(setup.cell_grid.start, 1e-12)), 0.0


CANDIDATES = (
    Candidate(equilibria, share=0.05),
    Candidate(expert),
    Candidate(minimax.descents, share=0.6, mixes=True),
    Candidate(minimax.walks, share=0.35, mixes=True),
)


class LogitSolver:
    """Equilibrium around the prior, as close to it as the slack rule allows; the compiled version is in kernels."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Run the candidates until a certificate holds or the budget is spent."""
        for factor in (1.0, RETRY):
            search.run(CANDIDATES, setup, factor * EVALUATIONS)
            if search.missing <= 0.0 or search.resolved:
                return
