"""Which engine plays which terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orcast.engine.base import NO_LEARNING, USUAL_EFFORT, Engine, Learning
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import FinitePrior, OrderedPrior, Prior
from orcast.engine.dense.solver import LogitSolver
from orcast.engine.finite import FiniteEngine, plays
from orcast.engine.ordered import OrderedEngine
from orcast.spaces import OrderedSpace

FAST = {"quantile", "interval", "moment", "explicit", "regret"}


def engine_for(
    bound_payoff: BoundPayoff,
    *,
    temperature: float,
    effort: int = USUAL_EFFORT,
    learning: Learning = NO_LEARNING,
    sizes: Sequence[int] | None = None,
) -> Engine:
    """The fastest engine that can play the terms."""
    if plays(bound_payoff):
        return FiniteEngine(bound_payoff, temperature=temperature, members=learning.finite)
    if isinstance(bound_payoff.space, OrderedSpace) and all(part.kind in FAST for part in bound_payoff.parts):
        return OrderedEngine(bound_payoff, temperature=temperature, effort=effort, learning=learning)
    prior = prior_for(bound_payoff, temperature, learning)
    return DenseEngine(bound_payoff, prior, LogitSolver(temperature, effort), sizes)


def prior_for(bound_payoff: BoundPayoff, temperature: float, learning: Learning) -> Prior[Any]:
    """The committee's prior on the terms' space."""
    if isinstance(bound_payoff.space, OrderedSpace):
        return OrderedPrior(bound_payoff, temperature, learning)
    return FinitePrior(bound_payoff, learning.finite)
