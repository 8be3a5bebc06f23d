"""Methods of the experiments: rivals, the paper's ORCA, and the default recalibrator; and the form of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orcast as oc
from orcast.payoffs import Payoff
from research.output import Section, Table
from research.rivals import ACI, CalibratedRegression, ConformalPID

EXPERT, LAST, OURS = "expert", "last outcome", "ours"
RATES = (0.003, 0.01, 0.03, 0.1)
"""Learning rates of ORCA that are tried: the paper states none."""

METHODS: dict[str, Callable[[float, float], Any]] = {
    "isotonic": CalibratedRegression,
    "isotonic, last 200": lambda low, high: CalibratedRegression(low, high, window=200),
    "ACI per level": ACI,
    "conformal PID": ConformalPID,
    OURS: lambda low, high: oc.Recalibrator(oc.Interval(low, high)),
}
"""Methods that need only the bounds of the quantity, with default settings, in the order of tables."""


def paper_payoff() -> Payoff:
    """Payoff of the paper's first experiment (section 6.1): quantiles, two moments, regret in CRPS and MSE."""
    return oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS(), oc.MSE())


def paper_oracle(*, rate: float = 0.03, steps: int = 400, seed: int = 0) -> oc.Orca:
    """ORCA as in section 6.1: 50 even cells for forecaster and adversary, 400 steps of Adam from the base forecast.

    The start is jittered by 1e-6, differently for each seed, so that several runs show the spread of the results.
    """
    return oc.Orca(steps=steps, rate=rate, cells=50, jitter=1e-6, seed=seed)


def orca(low: float, high: float, *, rate: float, seed: int = 0) -> oc.Recalibrator:
    """ORCA with the paper's payoff as a recalibrator."""
    return oc.Recalibrator(oc.Interval(low, high), paper_payoff(), oracle=paper_oracle(rate=rate, seed=seed))


# --- results ---


class Claim(NamedTuple):
    """Claim of the paper, and the finding at ORCA's chosen rate; `bound` is that at the best rate in hindsight."""

    section: str
    claim: str
    here: str
    reproduces: str
    bound: str = ""


def claims_table(claims: Sequence[Claim]) -> Table:
    """Table of the paper's claims."""
    columns = ("section", "claim of the paper", "here", "reproduces", "at the best rate in hindsight (a bound)")
    return Table("claims", "The paper's claims", columns, [tuple(claim) for claim in claims], page=columns[:4])


@dataclass(frozen=True)
class Result(Section):
    """Section of the page, and the claims that the experiment tests."""

    claims: tuple[Claim, ...] = ()
