"""Metrics of a sequence of forecasts: functions of arrays, and running metrics with `update` and `get`.

A running metric takes a forecast and its outcome by `update(forecast, y)`: anything with `quantile` or `ppf`, or
quantiles by level.  `get()` is nan before the first outcome.  `ECE` and `MeanBrier` take probabilities.  A scoring
rule of one forecast is in `orcast.scores`.
"""

from orcast.metrics.arrays import (
    LEVELS,
    brier,
    crps_ensemble,
    crps_normal,
    ece,
    fair_indicators,
    pinball,
    qce,
    worst_rolling_qce,
)
from orcast.metrics.running import ECE, QCE, Coverage, MeanBrier, MeanCRPS, MeanPinball, RollingQCE, Width

__all__ = [
    "ECE",
    "LEVELS",
    "QCE",
    "Coverage",
    "MeanBrier",
    "MeanCRPS",
    "MeanPinball",
    "RollingQCE",
    "Width",
    "brier",
    "crps_ensemble",
    "crps_normal",
    "ece",
    "fair_indicators",
    "pinball",
    "qce",
    "worst_rolling_qce",
]
