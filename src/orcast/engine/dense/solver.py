"""How the dense engine finds the forecast of a round: the solver protocol, and the logit equilibrium."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from orcast.constants import DELAY_TEMPERATURE, DENSE_STRICT_STEPS, EASY, EASY_STEPS
from orcast.engine.base import USUAL_EFFORT
from orcast.engine.dense import fixed_point, minimax
from orcast.engine.dense.answers import along_line, answered
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.dense.two_ends import two_ends
from orcast.payoffs import CellGrid

Array = NDArray[np.float64]

# Evaluations of the field, per unit of effort.
EVALUATIONS = 400.0
# Of these, what lower temperatures may take at first, and once more where nothing else held; and what is kept for
# branches around their folds.
EASY_SHARE, AGAIN_SHARE, BRANCH_SHARE = 0.05, 0.3, 0.2
# Labels may be alike, cells of a line are not.
UNLIKE = 0.02


class DenseRound(NamedTuple):
    """What a solver knows of a round besides the ledger."""

    cell_grid: CellGrid
    prior: Array  # masses expected on the cells
    warm: Array  # log masses to start at
    last: Array  # masses of the last settled round, or nothing
    pending: float  # outcomes outstanding
    rounds: int  # outcomes settled
    others: bool = False  # whether other cells are tried next, where nothing holds on these


class Solver(Protocol):
    """Finds forecasts for a round; the search judges them and keeps the best."""

    temperature: float  # the usual one, or 1 where there is none
    remembers: bool  # whether it needs the masses of the last settled round

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Let the search consider one forecast or more."""
        ...


class LogitSolver:
    """The equilibrium around the prior, as close to it as the slack rule allows; its compiled twin is in kernels."""

    remembers = False

    def __init__(self, temperature: float, effort: int = USUAL_EFFORT) -> None:
        self.temperature, self.effort = temperature, effort

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """At the usual temperature, then lower ones, then along the branch from several priors."""
        mix = setup.prior
        soft = (1.0 + setup.pending) ** DELAY_TEMPERATURE
        usual = self.temperature * soft
        log_mix = np.log(np.maximum(mix, 1e-300))
        search.rescale(mix)
        budget = EVALUATIONS * self.effort
        if along_line(search, mix, np.exp(fixed_point.normalised(setup.warm)), usual):
            return
        search.left = budget * EASY_SHARE
        lp, error = search.equilibrium(usual, log_mix, setup.warm, EASY, EASY_STEPS, soft)
        if error > 10.0 * EASY:
            cold, cold_error = search.equilibrium(usual, log_mix, log_mix, EASY, DENSE_STRICT_STEPS, soft)
            if cold_error < error:
                lp = cold
        search.consider(lp, usual)
        if search.missing > 0.0:
            search.lower_temperature(usual, log_mix, lp)
        cell_grid = setup.cell_grid
        even = np.full(mix.size, -math.log(mix.size))
        expert = np.log(np.maximum(cell_grid.expert, 1e-12)) if cell_grid.expert.size else even
        if search.missing > 0.0:
            # against an expert itself there is no regret
            search.consider(expert, 0.0)
        if search.missing > 0.0 and answered(search, mix):
            return
        if search.missing > 0.0:
            search.left = budget * (1.0 - EASY_SHARE - AGAIN_SHARE - BRANCH_SHARE)
            starts = [np.exp(each) for each in (search.best, log_mix, even, fixed_point.normalised(expert))]
            ends = two_ends(search.cell_payoffs, search.owed, mix.size)
            minimax.win(search, mix, starts if ends is None else [ends, *starts])
        if setup.others or search.resolved:
            return
        search.left = budget * AGAIN_SHARE
        search.lower_temperature(usual, log_mix, lp)
        search.left = budget * BRANCH_SHARE
        for log_prior in (log_mix, even, expert):
            if search.missing > 0.0 and mix.size <= fixed_point.MOST_CELLS:
                search.follow_branch(10.0 * usual, log_prior, 0.0 if cell_grid.ordered else UNLIKE)
            if search.missing > 0.0 and log_prior is not log_mix:
                search.lower_temperature(1e3 * min(usual, 10.0), log_prior, log_prior)
