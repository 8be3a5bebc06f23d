"""Base classes of the exact oracles: options as plain data, and one forecast per round with its claim."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.priors import FinitePrior
from orcast.engine.dense.search import CandidateSearch, HalfSpaceClaim, log_masses

Array = NDArray[np.float64]


class ExactOracle:
    """Options of an exact oracle, a data class."""

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


class ExactSolver:
    """Propose one forecast per round, without a temperature or a warm start."""

    temperature = 1.0


def run_rounds(search: CandidateSearch, masses: Array) -> None:
    """Propose masses whose largest <S, payoff> over the cells is that over all outcomes."""
    lp = log_masses(masses)
    search.consider(lp, 0.0)
    search.claim = HalfSpaceClaim(worst_value(search, lp) / search.weight)


def worst_value(search: CandidateSearch, lp: Array) -> float:
    """Largest <S_+, payoff(p, k)> over all cells k, for the masses as the search rounds them."""
    p = np.exp(lp)
    p /= p.sum()
    value = np.zeros(p.size)
    for cell_payoff, cumulative in zip(search.cell_payoffs, search.cumulative, strict=True):
        value += cumulative @ cell_payoff.table(p)
    return float(value.max())


def measured(search: CandidateSearch, p: Array) -> HalfSpaceClaim:
    """Largest <S, payoff> over the cells, and the amount by which that over all outcomes may exceed it."""
    value, top = worst_value(search, log_masses(p)), np.zeros(p.size)
    for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
        top += 0.5 * cell_payoff.assess(s, 0.0, p)[0]
    return HalfSpaceClaim(value / search.weight, max(float(top.max()) - value, 0.0) / search.weight)


def expert_alone(bound_payoff: BoundPayoff) -> FinitePrior:
    """Prior on a finite space without learning: the expert."""
    return FinitePrior(bound_payoff, np.empty((0, 3)))
