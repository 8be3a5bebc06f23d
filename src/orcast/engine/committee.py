"""The committee: the default, with nothing to tune."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orcast.constants import USUAL_TEMPERATURE
from orcast.engine.base import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    MOST_EFFORT,
    USUAL_EFFORT,
    Engine,
    Learning,
)
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.selection import engine_for
from orcast.spaces import frozen
from orcast.spaces.base import whole
from orcast.validation import number

# Location features used (9: three errors, three outcomes and two seasons; 5: three errors and an outcome; 1: a bias),
# memory of the slow spread, and whether it trusts an expert that moves further than usual.
LEARNERS = frozen(
    np.array(
        [[5.0, 0.99, 0.0], [1.0, 0.99, 0.0], [1.0, 0.998, 0.0], [9.0, 0.998, 0.0], [9.0, 0.99, 1.0], [9.0, 0.998, 1.0]]
    )
)
# Smallest step (its inverse is the memory), context of the last PIT or not, prior observations.
MEMBERS = frozen(np.array([[0.002, 0.0, 50.0], [0.01, 0.0, 50.0], [0.002, 1.0, 50.0], [0.01, 1.0, 50.0]]))
# Step, leak, and share of the pool.
POOLED = frozen(np.array([[0.2, 0.02, 0.5], [0.4, 0.1, 0.5], [0.8, 0.2, 0.5]]))
OWN = frozen(np.array([[0.05, 0.005, 0.0], [0.2, 0.05, 0.0], [0.4, 0.1, 0.0]]))
# On finite spaces: memory, features used (3: maps of the expert; 8: also the last outcomes and errors), shifts or not.
FINITE = frozen(np.array([[0.9995, 3.0, 0.0], [0.998, 8.0, 1.0]]))
LEARNING = Learning(LEARNERS, OWN, MEMBERS, FINITE)
IN_POOL = LEARNING._replace(quantile_trackers=frozen(np.concatenate((POOLED, OWN))))
# What is left where nothing may follow the last errors.
NO_TRACKERS = Learning(members=frozen(MEMBERS[MEMBERS[:, 1] == 0.0]), finite=frozen(np.minimum(FINITE, 3.0)))


@dataclass(frozen=True)
class Committee:
    """Learners of the base forecast's errors under one equilibrium, which alone carries the guarantee (docs/theory.md).

        p_k  ~  x_k exp(<S, payoff(p, k)> / temperature),    x the mix of the members

    Six learners correct location and scale, three quantile trackers the levels; their blend counts as far as evidence
    goes. Four members learn the shape of the PIT that remains. The mix is the prior of an `Equilibrium` on the ledger.

    Parameters
    ----------
    temperature : of the last equilibrium
    trackers : False leaves out all that follows the last errors
    effort : how long a forecast is searched for if the usual one does not hold

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1), oracle=oc.Committee())
    >>> recal.predict(oc.Normal(0.5, 0.1)).certificate.holds
    True
    """

    temperature: float = USUAL_TEMPERATURE
    trackers: bool = True
    effort: int = USUAL_EFFORT

    def __post_init__(self) -> None:
        value = number(self.temperature, "temperature", LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)
        object.__setattr__(self, "temperature", value)
        if not isinstance(self.trackers, bool):
            raise TypeError(f"expected trackers=True or False, got {self.trackers!r}")
        object.__setattr__(self, "effort", whole(self.effort, "effort", 1, MOST_EFFORT))

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None, *, pooled: bool = False) -> Engine:
        """An engine with an empty ledger; one that is pooled listens to a pool, where it can."""
        learning = (IN_POOL if pooled else LEARNING) if self.trackers else NO_TRACKERS
        return engine_for(
            bound_payoff, temperature=self.temperature, effort=self.effort, learning=learning, sizes=sizes
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": "Committee",
            "temperature": self.temperature,
            "effort": self.effort,
            "trackers": self.trackers,
        }
