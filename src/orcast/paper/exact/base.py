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


def run_rounds(search: CandidateSearch, masses: Array, value: float | None = None, approximation: float = 0.0) -> None:
    """Propose masses to the search; `value` is the largest <S, payoff>, by default over the cells."""
    lp = log_masses(masses)
    search.consider(lp, 0.0)
    worst = worst_value(search, lp) if value is None else value
    search.claim = HalfSpaceClaim(worst / search.weight, approximation / search.weight)


def worst_value(search: CandidateSearch, lp: Array) -> float:
    """Largest <S_+, payoff(p, k)> over all cells k, for the masses as the search rounds them."""
    p = np.exp(lp)
    p /= p.sum()
    value = np.zeros(p.size)
    for cell_payoff, cumulative in zip(search.cell_payoffs, search.cumulative, strict=True):
        value += cumulative @ cell_payoff.table(p)
    return float(value.max())


def expert_alone(bound_payoff: BoundPayoff) -> FinitePrior:
    """Prior on a finite space without learning: the expert."""
    return FinitePrior(bound_payoff, np.empty((0, 3)))
