"""How good forecasts were before and after recalibration, as numbers and in sentences.

`collect` makes an `Evidence` of each model of a frame: arrays of forecasts, outcomes and bounds.  Functions of it give
the numbers: `coverage`, `width`, `error`, `difference` (statistics), `by_series`, `scores` (tables), and `pit`,
`reliability`, `rolling`, `fan`, `widths`, `promise_check` (what the report and `orcast.plots` draw).  `verdict` puts
them in sentences.

Chance is what a calibrated forecaster with as many outcomes would show.  It is counted as if each outcome were news of
its own, which is so for forecasts one step ahead; where forecasts several steps ahead overlap, chance allows more.
"""

from orcast.evidence.accuracy import Difference, difference, loss
from orcast.evidence.base import Evidence
from orcast.evidence.diagnostics import (
    Fan,
    Histogram,
    PromiseCheck,
    Reliability,
    Rolling,
    Widths,
    fan,
    pit,
    probability_shares,
    promise_check,
    reliability,
    rolling,
    running_error,
    widths,
)
from orcast.evidence.frames import collect
from orcast.evidence.statistics import band, chance_limit, coverage, error, inside, main_share, shares, width
from orcast.evidence.tables import ScoreRow, SeriesTable, by_series, scores
from orcast.evidence.verdict import faults, verdict

__all__ = [
    "Difference",
    "Evidence",
    "Fan",
    "Histogram",
    "PromiseCheck",
    "Reliability",
    "Rolling",
    "ScoreRow",
    "SeriesTable",
    "Widths",
    "band",
    "by_series",
    "chance_limit",
    "collect",
    "coverage",
    "difference",
    "error",
    "fan",
    "faults",
    "inside",
    "loss",
    "main_share",
    "pit",
    "probability_shares",
    "promise_check",
    "reliability",
    "rolling",
    "running_error",
    "scores",
    "shares",
    "verdict",
    "width",
    "widths",
]
