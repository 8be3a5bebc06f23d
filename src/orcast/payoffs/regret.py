"""No regret against the expert: recalibration must not cost accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import Forecast
from orcast.payoffs.base import Payoff, checked_weight
from orcast.scores import CRPS, MSE
from orcast.spaces import Interval

Array = NDArray[np.float64]

SCORES: dict[str, type[CRPS] | type[MSE]] = {"crps": CRPS, "mse": MSE}


class NoRegret(Payoff):
    """Recalibration does not cost accuracy, by each proper score given (paper, section 4.2).

    payoff_i = c_i (score_i(p, y) - score_i(expert, y)), one-sided: only a positive sum counts.  In units of the
    interval scores are tiny and would never count, so c_i is one over the expert's usual score, or over the most that
    p could count in this round if that is more: known before the outcome, so the payoff stays consistent, and its
    size is at most 1.  What is kept small is this weighted regret; ``Guarantee.parts`` reports the plain mean excess
    score.  The expert is the one represented on the cells.

    >>> import orcast as oc
    >>> oc.NoRegret(oc.CRPS(), oc.MSE()).size
    2
    """

    name = "regret"
    one_sided = True

    def __init__(self, *scores: CRPS | MSE, weight: float = 1.0) -> None:
        for score in scores:
            if not isinstance(score, (CRPS, MSE)):
                raise TypeError(f"expected CRPS() or MSE() as score, got {score!r}")
        if not scores or len({score.name for score in scores}) < len(scores):
            raise ValueError(f"expected one or more different scores, got {list(scores)!r}")
        # one order, whatever the order of the arguments: the ledger has one layout
        self.scores: tuple[CRPS | MSE, ...] = tuple(sorted(scores, key=lambda score: score.name))
        self.weight = checked_weight(weight)

    @property
    def size(self) -> int:
        """One coordinate a score."""
        return len(self.scores)

    @property
    def bound(self) -> float:
        """One a score, by the choice of the scale."""
        return float(self.size)

    def evaluate(self, space: Interval, forecast: Forecast, y: float, expert: Forecast | None = None) -> Array:
        """Excess scores over the expert, in the units of the scores."""
        if expert is None:
            raise ValueError("expected the expert's forecast as expert=, got None")
        return np.array([score(forecast, y) - score(expert, y) for score in self.scores])

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "NoRegret", "scores": [score.name for score in self.scores], "weight": self.weight}

    def __repr__(self) -> str:
        return f"NoRegret({', '.join(score.name for score in self.scores)}, weight={self.weight:g})"
