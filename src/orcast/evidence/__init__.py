"""How good forecasts were before and after recalibration, as numbers and in words.

`collect` makes an `Evidence` of each model of a frame: arrays of forecasts, outcomes and bounds.  Functions of it give
the numbers (`coverage`, `error`, `difference`, `pit`, `reliability`, `rolling`, `by_series`, `scores`), and `verdict`
says them in sentences.

Chance is what a calibrated forecaster with as many outcomes would show.  It is counted as if each outcome were news of
its own, which is so for forecasts one step ahead; where forecasts several steps ahead overlap, chance allows more.
"""

from orcast.evidence.accuracy import Difference, difference, loss
from orcast.evidence.base import Evidence
from orcast.evidence.diagnostics import (
    Histogram,
    Reliability,
    Rolling,
    ScoreRow,
    SeriesTable,
    by_series,
    pit,
    reliability,
    rolling,
    scores,
)
from orcast.evidence.frames import collect
from orcast.evidence.statistics import band, chance_limit, coverage, error, inside, shares, width
from orcast.evidence.verdict import faults, verdict

__all__ = [
    "Difference",
    "Evidence",
    "Histogram",
    "Reliability",
    "Rolling",
    "ScoreRow",
    "SeriesTable",
    "band",
    "by_series",
    "chance_limit",
    "collect",
    "coverage",
    "difference",
    "error",
    "faults",
    "inside",
    "loss",
    "pit",
    "reliability",
    "rolling",
    "scores",
    "shares",
    "verdict",
    "width",
]
