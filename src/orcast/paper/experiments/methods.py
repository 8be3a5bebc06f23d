"""The methods that the experiments compare, by name: what people use today, the paper's ORCA, and ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import orcast as oc
from orcast.baselines import ConformalLevels, ConformalPID, Isotonic
from orcast.payoffs import Payoff

__all__ = ["METHODS", "OURS", "RATES", "WINDOW", "Method", "orca", "paper_oracle", "paper_payoff"]

OURS = "ours"
WINDOW = 200
RATES = (0.003, 0.01, 0.03, 0.1)
"""Learning rates of ORCA that are tried: the paper states none."""


class Method(Protocol):
    """What every method does in a round: a forecast of its own from the expert's, then the outcome."""

    def predict(self, forecast: object, /) -> Any:
        """What it makes of the expert's forecast."""

    def update(self, y: float, /) -> None:
        """What came of it."""


METHODS: dict[str, Callable[[float, float], Method]] = {
    "isotonic": Isotonic,
    f"isotonic, last {WINDOW}": lambda low, high: Isotonic(low, high, window=WINDOW),
    "ACI per level": ConformalLevels,
    "conformal PID": ConformalPID,
    OURS: lambda low, high: oc.Recalibrator(oc.Interval(low, high)),
}
"""Methods that need nothing but the bounds of the quantity, each with its default settings, in the order of tables.

>>> method = METHODS["ours"](0.0, 10.0)
>>> p = method.predict(oc.Normal(5, 1)); method.update(6.0)
"""


def paper_payoff() -> Payoff:
    """The combined payoff of the paper's first experiment: quantiles, two moments, regret in CRPS and squared error.

    Section 6.1 of the paper.

    >>> paper_payoff()
    QuantileCalibration() + MomentMatching(order=2) + NoRegret(...)
    """
    return oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS(), oc.MSE())


def paper_oracle(*, rate: float | None = None, steps: int = 400, seed: int = 0) -> oc.Orca:
    """ORCA as in the paper: 50 even cells for both players, 400 steps of Adam from the expert's forecast.

    The start is jittered by 1e-6, differently for each seed: without it one run would look like the truth.  Levels are
    smeared for the gradient, which is zero in most rounds otherwise; the payoff is the paper's.

    Section 6.1 of the paper.

    >>> paper_oracle(rate=0.1, seed=3).optimizer
    Adam(rate=0.1, first=0.9, second=0.999)
    """
    adam = oc.paper.Adam() if rate is None else oc.paper.Adam(rate=rate)
    return oc.Orca(steps=steps, cells=50, optimizer=adam, jitter=1e-6, seed=seed)


def orca(low: float, high: float, *, rate: float, seed: int = 0) -> oc.Recalibrator:
    """ORCA with the paper's combined payoff, as a recalibrator.

    >>> game = orca(0.0, 10.0, rate=0.01)
    >>> p = game.predict(oc.Normal(5, 1)); game.update(6.0)
    """
    return oc.Recalibrator(oc.Interval(low, high), paper_payoff(), oracle=paper_oracle(rate=rate, seed=seed))
