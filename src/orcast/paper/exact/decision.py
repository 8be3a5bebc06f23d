"""Exact oracle of decision calibration and swap regret: a game between the forecaster and the decision makers.

Let u_k be the utilities of all actions in cell k, and S_a the ledger of the rounds in which action a is best by
forecast. The field depends on a forecast p only through the best response to it,

    <S, payoff(p, k)> = n(mu).p - n_k(mu),        n_k(mu) = sum_a mu_a <S_a, u_k>,        mu = best action under p

so p is a solution if it has mass only on cells with the smallest *price* n_k(mu), mu being the response to p itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import GridPrior, Prior
from orcast.engine.dense.search import CandidateSearch, DenseRound, HalfSpaceClaim, log_masses, masses_of
from orcast.engine.dense.solver import LogitSolver
from orcast.paper.exact.base import ExactOracle, ExactSolver, expert_alone
from orcast.paper.exact.prices import Prices, cheapest, prices_of, traced
from orcast.payoffs import DecisionCalibration, SwapRegret
from orcast.payoffs.cell_payoffs import ContextCellPayoff, ExplicitCellPayoff
from orcast.spaces import FiniteSpace, Interval, OrderedSpace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DecisionGame(ExactOracle):
    """Half-space oracle of `DecisionCalibration` and `SwapRegret`, and of any sum of these.

    Notes
    -----
    With the prices n_k of the module's docstring a forecast p is a solution,

        <S, payoff(p, k)> = n(mu).p - n_k(mu) <= 0    for every k,

    if it has mass only on the cheapest cells, given the response mu to p itself. Prices of decision calibration alone
    do not depend on p; with swap regret a path leads from the expert to such a forecast, and if it is lost, the dense
    equilibrium is tried. `half_space` is the largest measured value over all cells, and `approximation` the
    addition by utilities that vary within a cell. The paper (appendix C.2) claims such an oracle; docs/theory.md has
    the proof that it exists.

    Examples
    --------
    >>> import orcast as oc
    >>> utility = lambda action, y: -0.3 if action == "umbrella" else -1.0 * (y == "rain")
    >>> actions = ["umbrella", "none"]
    >>> payoff = oc.payoffs.SwapRegret(actions, utility) + oc.payoffs.DecisionCalibration(actions, utility)
    >>> recal = oc.Forecaster(oc.Labels(["sun", "clouds", "rain"]), payoff, oracle=DecisionGame())
    >>> for y in ("rain", "rain", "sun"):
    ...     p = recal.predict([0.6, 0.3, 0.1])
    ...     recal.update(y)
    >>> p.certificate.holds, p.certificate.half_space < 1e-6, p.certificate.approximation
    (True, True, 0.0)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not bound_payoff.payoffs or not all(
            isinstance(each, (DecisionCalibration, SwapRegret)) for each in bound_payoff.payoffs
        ):
            got = " + ".join(map(repr, bound_payoff.payoffs)) or "none"
            raise TypeError(f"expected DecisionCalibration and SwapRegret only for DecisionGame, got {got}")
        return DenseEngine(bound_payoff, _cells_for(bound_payoff), DecisionSolver(), sizes)


def _cells_for(bound_payoff: BoundPayoff) -> Prior:
    space = bound_payoff.space
    if isinstance(space, FiniteSpace):
        return expert_alone(bound_payoff)
    assert isinstance(space, OrderedSpace)
    if not isinstance(space, Interval):
        return GridPrior(bound_payoff, space.cells)
    return GridPrior(bound_payoff, 0, np.repeat(np.linspace(space.low, space.high, space.cells // 2 + 1), 2))


class DecisionSolver(ExactSolver):
    """Forecast on the cheapest cells, given the response to it."""

    def __init__(self) -> None:
        self.dense = LogitSolver(self.temperature)

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose the expert's forecast, the cheapest cells, the end of the path, or the dense equilibrium."""
        prices = prices_of(search.cell_payoffs, search.cumulative, setup.prior)
        p = setup.prior
        if prices.worst(p) > 0.0:
            p = cheapest(prices.fixed, p) if not prices.deciders else traced(prices, p)
        search.consider(log_masses(p), 0.0)
        if prices.worst(p) > prices.tolerance and search.missing > 0.0:
            self.dense.solve(search, setup)
        search.claim = self._claim(search, prices)

    def _claim(self, search: CandidateSearch, prices: Prices) -> HalfSpaceClaim:
        """Largest value over the cells, and the addition by utilities that vary within a cell."""
        p = masses_of(search.best)
        value, reach = prices.worst(p), np.zeros(p.size)
        for cell_payoff, cumulative in zip(search.cell_payoffs, search.cumulative, strict=True):
            if isinstance(cell_payoff, ExplicitCellPayoff):
                pull, witness = cumulative, cell_payoff.witness
            else:
                assert isinstance(cell_payoff, ContextCellPayoff)
                pull, witness = (
                    cell_payoff.context(p) @ cumulative.reshape(cell_payoff.groups, cell_payoff.plain.size),
                    cell_payoff.plain.witness,
                )
            away = np.maximum(pull[:, None] * -witness.low, pull[:, None] * -witness.high).sum(axis=0)
            reach += pull @ (witness.mean @ p) + away
        rounds = search.weight
        return HalfSpaceClaim(value / rounds, max(float(reach.max()) - value, 0.0) / rounds)
