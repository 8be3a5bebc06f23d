"""The oracle of decision calibration and swap regret: a game between the forecaster and those who decide.

Let u_k be the utilities of all actions in cell k, and S_a what is owed on them in the rounds where action a looks best.
All that the field knows of a forecast p is how those who decide answer it,

    <S, payoff(p, k)> = n(mu).p - n_k(mu),        n_k(mu) = sum_a mu_a <S_a, u_k>,        mu = best action under p

so p wins if it has mass only on cells where the *price* n_k(mu) is least, mu being the answer to that very p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.base import Engine
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
    """The half-space oracle of `DecisionCalibration` and `SwapRegret`, and of any sum of these.

    *Decision calibration alone.*  Prices do not depend on p, so the forecasts that win are those with mass on the
    cheapest cells only.  Of these the nearest to the expert's in relative entropy is played: the expert's own, given
    that the outcome falls there.  O(cells).

    *Swap regret with the paper's indicator* of the best action.  Let mu be supported on the best actions under p, and
    p on the cells where n_k(mu) is least.  Then

        <S, payoff(p, k)> = n(mu).p - n_k(mu) <= 0    for every k,

    where actions that are tied under p share the indicator as mu says.  Such a pair is a Nash equilibrium of the game
    in which one side gets the utilities and the other pays the prices, so there is one.  Without sharing there may be
    none: the indicator jumps, and fixed points need continuity.

    *Swap regret as it is played here* has mu = softmax(sharpness E_p[u] / range).  Take the expert's forecast x with
    the share 1 - s, and let the rest, masses q >= 0 that add up to s, lie only on cells that are cheapest given the
    answer to the whole, q + (1 - s) x.  For s near 0 that is one cell, the cheapest given the answer to the expert.
    From there the solutions form a path, along which s may rise and fall, cells come in when they have become
    cheapest, and leave when no mass is left.  The solutions with s <= 1 are compact, so the path ends, but neither
    inside nor at s = 0, where only one begins: it comes to s = 1, and there q is the forecast (`trace`; the
    tracing procedure of Harsanyi and Selten, with the expert as prior, for one side of the game).  Each step is a
    linear system in the cells with mass, not more than there are actions.

    *What is guaranteed.* That such a forecast exists, for every ledger.  That the path leads to it, for all ledgers
    but a null set; prices are moved by 1e-8 of their size (1e-10 times the largest exponent of the softmax, if that
    is more) to be outside of it.  That rounding does not lose the path, no theorem says; it was not lost in 20,000
    random ledgers, nor in 1,800 grown by an adversary.  If it is lost with shorter steps, too, the dense equilibrium is
    tried.  Whatever is played, `half_space` in its certificate is the largest value over all
    cells, as measured (if the oracle won, no more than prices are moved by), and `approximation` is what
    utilities that vary within a cell add to it, seen at seven places of each: zero on finite spaces.  On an
    interval there is an atom at each edge of a cell, so that outcomes there can be forecast exactly.

    The paper (appendix C.2) claims such an oracle and constructs none.  The forecasts have mass on few cells: they show
    that the promise can be kept, and `Equilibrium` keeps it with forecasts of use.

    >>> import orcast as oc
    >>> utility = lambda action, y: -0.3 if action == "umbrella" else -1.0 * (y == "rain")
    >>> actions = ["umbrella", "none"]
    >>> payoff = oc.payoffs.SwapRegret(actions, utility) + oc.payoffs.DecisionCalibration(actions, utility)
    >>> game = oc.Forecaster(oc.Labels(["sun", "clouds", "rain"]), payoff, oracle=DecisionGame())
    >>> for y in ("rain", "rain", "sun"):
    ...     p = game.predict([0.6, 0.3, 0.1])
    ...     game.update(y)
    >>> p.certificate.holds, p.certificate.half_space < 1e-6, p.certificate.approximation
    (True, True, 0.0)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
        """An engine with an empty ledger."""
        if not bound_payoff.payoffs or not all(
            isinstance(each, (DecisionCalibration, SwapRegret)) for each in bound_payoff.payoffs
        ):
            got = " + ".join(map(repr, bound_payoff.payoffs)) or "none"
            raise TypeError(f"expected DecisionCalibration and SwapRegret only for DecisionGame, got {got}")
        return DenseEngine(bound_payoff, _cells_for(bound_payoff), DecisionSolver(), sizes)


def _cells_for(bound_payoff: BoundPayoff) -> Prior[Any]:
    space = bound_payoff.space
    if isinstance(space, FiniteSpace):
        return expert_alone(bound_payoff)
    assert isinstance(space, OrderedSpace)
    if not isinstance(space, Interval):
        return GridPrior(bound_payoff, space.cells)
    return GridPrior(bound_payoff, 0, np.repeat(np.linspace(space.low, space.high, space.cells // 2 + 1), 2))


class DecisionSolver(ExactSolver):
    """Plays a forecast whose cells are the cheapest, given the answer to it."""

    def __init__(self) -> None:
        self.dense = LogitSolver(self.temperature)

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """The expert's forecast, the cheapest cells, or the end of the path; if all fails, the dense equilibrium."""
        prices = prices_of(search.cell_payoffs, search.owed, setup.prior)
        assert prices is not None
        p = setup.prior
        if prices.worst(p) > 0.0:
            p = cheapest(prices.fixed, p) if not prices.deciders else traced(prices, p)
        search.consider(log_masses(p), 0.0)
        if prices.worst(p) > prices.tolerance and search.missing > 0.0:
            self.dense.solve(search, setup)
        search.claim = self._claim(search, prices)

    def _claim(self, search: CandidateSearch, prices: Prices) -> HalfSpaceClaim:
        """The largest value over the cells, and what utilities that vary within a cell add to it."""
        p = masses_of(search.best)
        value, reach = prices.worst(p), np.zeros(p.size)
        for cell_payoff, owed in zip(search.cell_payoffs, search.owed, strict=True):
            if isinstance(cell_payoff, ExplicitCellPayoff):
                pull, witness = owed, cell_payoff.witness
            else:
                assert isinstance(cell_payoff, ContextCellPayoff)
                pull, witness = (
                    cell_payoff.context(p) @ owed.reshape(cell_payoff.groups, cell_payoff.plain.size),
                    cell_payoff.plain.witness,
                )
            away = np.maximum(pull[:, None] * -witness.low, pull[:, None] * -witness.high).sum(axis=0)
            reach += pull @ (witness.mean @ p) + away
        rounds = search.weight
        return HalfSpaceClaim(value / rounds, max(float(reach.max()) - value, 0.0) / rounds)
