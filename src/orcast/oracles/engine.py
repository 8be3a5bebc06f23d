"""Which engine plays which terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.oracles._binary import KAPPA
from orcast.oracles.base import Engine
from orcast.oracles.binary import BinaryEngine, plays
from orcast.oracles.dense import DenseEngine
from orcast.oracles.ordered import OrderedEngine
from orcast.oracles.player import LogitPlayer
from orcast.oracles.priors import FinitePrior, OrderedPrior, Prior
from orcast.oracles.terms import Terms
from orcast.spaces import OrderedSpace

Array = NDArray[np.float64]

FAST = {"quantile", "interval", "moment", "explicit", "regret"}


def engine_for(
    terms: Terms,
    *,
    temperature: float,
    learners: Array,
    members: Array,
    finite: Array,
    sizes: Sequence[int] | None = None,
) -> Engine:
    """The fastest engine that can play the terms."""
    if plays(terms):
        # the binary root has a temperature of its own, six where the others have eight
        usual = temperature if not len(members) else temperature * KAPPA / 8.0
        return BinaryEngine(terms, temperature=usual, learns=len(members) > 0)
    if isinstance(terms.space, OrderedSpace) and all(part.kind in FAST for part in terms.parts):
        return OrderedEngine(terms, temperature=temperature, learners=learners, members=members)
    return DenseEngine(terms, prior_for(terms, temperature, learners, members, finite), LogitPlayer(temperature), sizes)


def prior_for(terms: Terms, temperature: float, learners: Array, members: Array, finite: Array) -> Prior:
    """The committee's prior on the terms' space."""
    if isinstance(terms.space, OrderedSpace):
        return OrderedPrior(terms, temperature, learners, members)
    return FinitePrior(terms, finite)
