"""How good a sequence of forecasts was: running metrics (`update`, `get`), and the same over arrays (functions).

Every class takes a forecast, that is anything with `quantile` or `ppf`, or quantiles by level, by
`update(forecast, y)`, or bare quantiles at its own `levels` by `update_quantiles(q, y)`. Before the
first outcome `get()` is nan. `ECE` and `MeanBrier` take probabilities instead, and have no `update_quantiles`.

A metric summarises many rounds. A scoring rule (`orcast.scores`: `CRPS`, `Brier`, `QuantileScore`, ...) is the score
of one forecast, and what a payoff such as `NoRegret` is made of; the running mean of one is called `Mean...` here.
"""

from orcast.metrics.arrays import LEVELS
from orcast.metrics.probabilities import ECE, MeanBrier, brier, ece
from orcast.metrics.quantiles import (
    crps_ensemble,
    crps_normal,
    crps_quantiles,
    fair_indicators,
    pinball,
    qce,
    smape,
    worst_rolling_qce,
)
from orcast.metrics.running import QCE, Coverage, MeanCRPS, MeanPinball, RollingQCE, Width

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
    "crps_quantiles",
    "ece",
    "fair_indicators",
    "pinball",
    "qce",
    "smape",
    "worst_rolling_qce",
]
