"""How good forecasts were before and after recalibration, as numbers and in sentences.

`collect` makes an `Evidence` of each model of a frame: arrays of forecasts, outcomes and bounds.  Functions of it give
the numbers: `coverage`, `width`, `error`, `difference` (statistics), `by_series`, `scores` (tables), and `pit`,
`reliability`, `rolling`, `fan`, `widths`, `promise_check` (what the report and `orcast.plots` draw).  `verdict` puts
them in sentences.

Chance is what a calibrated forecaster with as many outcomes would show.  Where forecasts overlap, errors last or series
move together, outcomes are not news of their own, and chance allows more: as much as blocks of time show (`blocks`).
"""

from orcast.evidence.accuracy import Difference, difference, loss
from orcast.evidence.base import Evidence, Grouping, Reference
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
from orcast.evidence.statistics import (
    band,
    chance_limit,
    coverage,
    error,
    inside,
    interval_band,
    level_band,
    main_share,
    shares,
    width,
)
from orcast.evidence.tables import (
    GroupTable,
    ReferenceScores,
    ScoreRow,
    SeriesTable,
    by_group,
    by_series,
    reference_scores,
    scores,
)
from orcast.evidence.verdict import assumptions, faults, headline, verdict

__all__ = [
    "Difference",
    "Evidence",
    "Fan",
    "GroupTable",
    "Grouping",
    "Histogram",
    "PromiseCheck",
    "Reference",
    "ReferenceScores",
    "Reliability",
    "Rolling",
    "ScoreRow",
    "SeriesTable",
    "Widths",
    "assumptions",
    "band",
    "by_group",
    "by_series",
    "chance_limit",
    "collect",
    "coverage",
    "difference",
    "error",
    "fan",
    "faults",
    "headline",
    "inside",
    "interval_band",
    "level_band",
    "loss",
    "main_share",
    "pit",
    "probability_shares",
    "promise_check",
    "reference_scores",
    "reliability",
    "rolling",
    "running_error",
    "scores",
    "shares",
    "verdict",
    "width",
    "widths",
]
