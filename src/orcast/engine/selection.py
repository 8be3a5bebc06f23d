"""Which engine plays which terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.base import Engine
from orcast.engine.binary import BinaryEngine, plays
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import FinitePrior, OrderedPrior, Prior
from orcast.engine.dense.solver import LogitSolver
from orcast.engine.kernels.binary import KAPPA
from orcast.engine.ordered import OrderedEngine
from orcast.spaces import OrderedSpace

Array = NDArray[np.float64]

FAST = {"quantile", "interval", "moment", "explicit", "regret"}


def engine_for(
    bound_payoff: BoundPayoff,
    *,
    temperature: float,
    learners: Array,
    members: Array,
    finite: Array,
    sizes: Sequence[int] | None = None,
) -> Engine:
    """The fastest engine that can play the terms."""
    if plays(bound_payoff):
        # the binary root has a temperature of its own, six where the others have eight
        usual = temperature if not len(members) else temperature * KAPPA / 8.0
        return BinaryEngine(bound_payoff, temperature=usual, learns=len(members) > 0)
    if isinstance(bound_payoff.space, OrderedSpace) and all(part.kind in FAST for part in bound_payoff.parts):
        return OrderedEngine(bound_payoff, temperature=temperature, learners=learners, members=members)
    return DenseEngine(
        bound_payoff, prior_for(bound_payoff, temperature, learners, members, finite), LogitSolver(temperature), sizes
    )


def prior_for(
    bound_payoff: BoundPayoff, temperature: float, learners: Array, members: Array, finite: Array
) -> Prior[Any]:
    """The committee's prior on the terms' space."""
    if isinstance(bound_payoff.space, OrderedSpace):
        return OrderedPrior(bound_payoff, temperature, learners, members)
    return FinitePrior(bound_payoff, finite)
