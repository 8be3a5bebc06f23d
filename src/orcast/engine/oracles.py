"""Oracles `Equilibrium` and `Committee`, and the choice of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from orcast.constants import USUAL_TEMPERATURE
from orcast.engine.bound_payoff import NO_LEARNING, BoundPayoff, Learning
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import FinitePrior, OrderedPrior, Prior
from orcast.engine.dense.solver import LogitSolver
from orcast.engine.finite import FiniteEngine, plays
from orcast.engine.ordered import OrderedEngine
from orcast.payoffs import SwapRegret
from orcast.spaces import OrderedSpace, frozen
from orcast.validation import number

Engine = OrderedEngine | FiniteEngine | DenseEngine


def draws_anything(engine: Engine) -> bool:
    """Return True if random draws change what an engine publishes, or the actions of `decide`."""
    payoffs = engine.bound_payoff.payoffs
    drawn = isinstance(engine, FiniteEngine) and engine.rules.drawn > 0
    return isinstance(engine.space, OrderedSpace) or drawn or any(isinstance(each, SwapRegret) for each in payoffs)


# Kinds of payoffs that the compiled engine on ordered spaces covers.
FAST = {"quantile", "interval", "moment", "regret"}
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1e-6, 1e12
# On finite spaces: memory, features used (3: maps of the expert; 8: also the last outcomes and errors), shifts or not.
FINITE = frozen(np.array([[0.9995, 3.0, 0.0], [0.998, 8.0, 1.0]]))
LEARNING = Learning(committee=True, finite=FINITE)


class Oracle(Protocol):
    """Options of a method to choose forecasts; immutable, and saved as plain data."""

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
        """Engine with an empty ledger; `sizes` are those of the parts, if a saved state has them."""
        ...

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        ...


@dataclass(frozen=True)
class Equilibrium:
    """Logit equilibrium with the expert as prior.

    Parameters
    ----------
    temperature
        Low values correct strongly, high ones stay close to the expert; 10 by default.

    Notes
    -----
    With x the expert and S the ledger:

        p_k  ~  x_k exp(<S, payoff(p, k)> / temperature)

    The temperature is lowered in a round if the slack rule needs it. Without an expert the prior is uniform. This
    oracle is not in the paper: docs/theory.md.

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(temperature=3))
    >>> recal.predict().certificate.holds
    True
    """

    temperature: float = 10.0

    def __post_init__(self) -> None:
        value = number(self.temperature, "temperature", LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)
        object.__setattr__(self, "temperature", value)

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
        """Engine with an empty ledger."""
        return engine_for(bound_payoff, self.temperature, NO_LEARNING, sizes)

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": type(self).__name__, "temperature": self.temperature}


@dataclass(frozen=True)
class Committee(Equilibrium):
    """Committee that corrects the base forecast, under an equilibrium, which alone provides the guarantee.

    Parameters
    ----------
    temperature
        Temperature of the equilibrium, as in `Equilibrium`.

    Notes
    -----
    Members predict quantiles: the base forecast, regressions on its errors and on past outcomes, and a forecaster from
    outcomes alone. A second-order rule weighs them by level, with a prior on the base forecast, and level offsets
    correct the coverage of the mix (docs/theory.md). The result x is the prior of an equilibrium on the ledger S:

        p_k  ~  x_k exp(<S, payoff(p, k)> / temperature)

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1), oracle=oc.Committee())
    >>> recal.predict(oc.Normal(0.5, 0.1)).certificate.holds
    True
    """

    temperature: float = USUAL_TEMPERATURE

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None, *, pooled: bool = False) -> Engine:
        """Engine with an empty ledger; `pooled` for one whose committee is in a pool."""
        return engine_for(bound_payoff, self.temperature, LEARNING._replace(pooled=pooled), sizes)


def engine_for(
    bound_payoff: BoundPayoff, temperature: float, learning: Learning, sizes: Sequence[int] | None = None
) -> Engine:
    """Fastest engine that covers a payoff on its space."""
    if plays(bound_payoff):
        return FiniteEngine(bound_payoff, temperature=temperature, members=learning.finite)
    if isinstance(bound_payoff.space, OrderedSpace) and all(part.kind in FAST for part in bound_payoff.parts):
        return OrderedEngine(bound_payoff, temperature=temperature, learning=learning)
    prior = prior_for(bound_payoff, temperature, learning)
    return DenseEngine(bound_payoff, prior, LogitSolver(temperature), sizes)


def prior_for(bound_payoff: BoundPayoff, temperature: float, learning: Learning) -> Prior:
    """Prior of the committee for the dense engine."""
    if isinstance(bound_payoff.space, OrderedSpace):
        return OrderedPrior(bound_payoff, temperature, learning)
    return FinitePrior(bound_payoff, learning.finite)
