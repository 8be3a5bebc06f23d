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

# On finite spaces: memory, features used (3: maps of the expert; 8: also the last outcomes and errors), shifts or not.
FINITE = frozen(np.array([[0.9995, 3.0, 0.0], [0.998, 8.0, 1.0]]))
LEARNING = Learning(committee=True, finite=FINITE)


@dataclass(frozen=True)
class Committee:
    """Committee that corrects the base forecast, under an equilibrium, which alone carries the guarantee.

        p_k  ~  x_k exp(<S, payoff(p, k)> / temperature),    x the corrected forecast

    Members predict quantiles: the base forecast, regressions on its errors and on past outcomes, and a forecaster from
    outcomes alone. A second-order rule weighs them by level, with a prior on the base forecast, and level offsets
    correct the coverage of the mix (docs/theory.md). The result is the prior of an `Equilibrium` on the ledger.

    Parameters
    ----------
    temperature : of the last equilibrium
    effort : how long a forecast is searched for if the usual one does not hold

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1), oracle=oc.Committee())
    >>> recal.predict(oc.Normal(0.5, 0.1)).certificate.holds
    True
    """

    temperature: float = USUAL_TEMPERATURE
    effort: int = USUAL_EFFORT

    def __post_init__(self) -> None:
        value = number(self.temperature, "temperature", LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)
        object.__setattr__(self, "temperature", value)
        object.__setattr__(self, "effort", whole(self.effort, "effort", 1, MOST_EFFORT))

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None, *, pooled: bool = False) -> Engine:
        """Engine with an empty ledger; `pooled` for one whose committee is in a pool."""
        learning = LEARNING._replace(pooled=pooled)
        return engine_for(
            bound_payoff, temperature=self.temperature, effort=self.effort, learning=learning, sizes=sizes
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": "Committee",
            "temperature": self.temperature,
            "effort": self.effort,
        }
