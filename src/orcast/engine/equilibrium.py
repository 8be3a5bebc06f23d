"""The equilibrium oracle: stay near the expert, at one temperature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orcast.engine.base import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, MOST_EFFORT, USUAL_EFFORT, Engine
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.selection import engine_for
from orcast.spaces.base import whole
from orcast.validation import number


@dataclass(frozen=True)
class Equilibrium:
    """The logit equilibrium with the expert as prior.

        p_k  ~  x_k exp(<S, payoff(p, k)> / temperature)

    Consistency makes the mean of <S, payoff> under p at most 0, so its maximum is at most temperature * log(1 / min x):
    the rate O(1/T) of the squared miscalibration holds at any temperature.  A low one corrects firmly, a high one
    leaves the expert alone; where the slack rule asks for it, it is lowered for that round.  Where that is not enough,
    other forecasts are searched with some `effort`: with the usual one a round takes at most 50 ms where it is
    compiled, and mostly below 100 ms for payoffs of the dense solver; more effort finds more.  Without an expert the
    prior is uniform.  O(cells) a Newton step; this oracle is ours, not the paper's: docs/theory.md.

    >>> import orcast as oc
    >>> game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(temperature=3))
    >>> game.predict().certificate.holds
    True
    """

    temperature: float = 10.0
    effort: int = USUAL_EFFORT

    def __post_init__(self) -> None:
        value = number(self.temperature, "temperature", LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)
        object.__setattr__(self, "temperature", value)
        object.__setattr__(self, "effort", whole(self.effort, "effort", 1, MOST_EFFORT))

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
        """An engine with an empty ledger."""
        return engine_for(bound_payoff, temperature=self.temperature, effort=self.effort, sizes=sizes)

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "Equilibrium", "temperature": self.temperature, "effort": self.effort}
