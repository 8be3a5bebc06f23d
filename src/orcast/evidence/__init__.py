"""Evidence on forecasts before and after recalibration: numbers, tables and a verdict in sentences.

`collect` makes an `Evidence` of each model of a frame; the functions take one and return numbers.  `verdict` puts them
in sentences, the first of which says what to do.

Chance bands cover a calibrated forecaster in 95% of cases, by the effective sample size: overlapping forecasts,
autocorrelated errors and correlated series are accounted for by blocks of time (`blocks`).
"""

from orcast.evidence.accuracy import Difference, difference, loss
from orcast.evidence.base import Evidence, Grouping
from orcast.evidence.diagnostics import (
    Fan,
    GuaranteeCheck,
    Histogram,
    Reliability,
    Rolling,
    fan,
    guarantee_check,
    pit,
    reliability,
    rolling,
)
from orcast.evidence.frames import collect
from orcast.evidence.references import ReferenceScore, reference_scores
from orcast.evidence.statistics import band, coverage, error, inside, interval_band, level_band, main_share, width
from orcast.evidence.tables import Change, GroupTable, SeriesTable, by_group, by_horizon, by_series
from orcast.evidence.verdict import action, effective_size, faults, headline, verdict

__all__ = [
    "Change",
    "Difference",
    "Evidence",
    "Fan",
    "GroupTable",
    "Grouping",
    "GuaranteeCheck",
    "Histogram",
    "ReferenceScore",
    "Reliability",
    "Rolling",
    "SeriesTable",
    "action",
    "band",
    "by_group",
    "by_horizon",
    "by_series",
    "collect",
    "coverage",
    "difference",
    "effective_size",
    "error",
    "fan",
    "faults",
    "guarantee_check",
    "headline",
    "inside",
    "interval_band",
    "level_band",
    "loss",
    "main_share",
    "pit",
    "reference_scores",
    "reliability",
    "rolling",
    "verdict",
    "width",
]
