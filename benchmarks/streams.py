"""Streams of forecasts with outcomes, played with outcomes at once or late, and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.metrics import LEVELS, pinball, qce, worst_rolling_qce
from orcast.spaces import Space

Vector = NDArray[np.float64]

BATCH, LATE = 50, 2


@dataclass(frozen=True, eq=False)
class Case:
    """A stream: ``forecasts`` is what predict takes, ``quantiles`` the same at 99 levels.

    ``reveal[t]`` is the round before whose forecast the outcome of round t is known; None: at once.
    """

    name: str
    forecasts: Sequence[object]
    quantiles: Vector
    y: Vector
    low: float
    high: float
    reveal: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Score:
    """How good a sequence of forecasts was."""

    qce: float
    worst: float
    pinball: float
    relative: float
    coverage: float


def batches(rounds: int, batch: int = BATCH, late: int = LATE) -> NDArray[np.int64]:
    """Outcomes in batches: those of batch b are known when batch b + late is complete."""
    return (np.arange(rounds) // batch + 1 + late) * batch


def play(
    case: Case, reveal: NDArray[np.int64] | None, space: Space | None = None, *, randomised: int | None = None
) -> tuple[Vector, oc.Guarantee]:
    """The quantiles that the default recalibrator plays, on the case's interval by default, and its guarantee."""
    recal = oc.Recalibrator(oc.Interval(case.low, case.high) if space is None else space, randomised=randomised)
    if reveal is None:
        return recal.run(case.forecasts, case.y, at=LEVELS), recal.guarantee
    played = np.empty_like(case.quantiles)
    order = np.argsort(reveal, kind="stable")
    known = 0
    for t, forecast in enumerate(case.forecasts):
        while known < t and reveal[order[known]] <= t:
            recal.update(case.y[order[known]], id=int(order[known]))
            known += 1
        played[t] = recal.predict(forecast, id=t).quantile(LEVELS)
    for t in order[known:]:
        recal.update(case.y[t], id=int(t))
    return played, recal.guarantee


def score(case: Case, quantiles: Vector) -> Score:
    space = {"low": case.low, "high": case.high}
    loss = float(pinball(quantiles, case.y).mean())
    inside = (quantiles[:, 4] <= case.y) & (case.y <= quantiles[:, 94])
    return Score(
        qce(quantiles, case.y, **space),
        worst_rolling_qce(quantiles, case.y, **space),
        loss,
        loss / float(pinball(case.quantiles, case.y).mean()),
        float(inside.mean()),
    )
