"""Recalibrator: wrap the forecasts you have."""

from __future__ import annotations

from typing import ClassVar

from orcast.engine import Committee, Oracle
from orcast.forecaster import Forecaster


class Recalibrator(Forecaster):
    """Calibrated, and usually more accurate, forecasts from someone else's, on any sequence of outcomes.

        guarantee.miscalibration  <=  guarantee.promised    after every round (paper, section 4.2; docs/theory.md)

    By default: quantile and moment calibration and no regret in CRPS, by `Committee`.  Without a space: any number,
    `Line`.  `forecast` may be quantiles by level, `Normal`, `Ensemble`, a (point, scale) pair, or anything with `ppf`
    or `cdf`; on `Binary` and `Labels` a probability, or one for each label.  `outside="clip"` clips outcomes beyond the
    bounds instead of refusing them.  See `Forecaster` for `id`, `drop`, `memory` and `max_pending`.

    One round: `predict`, later `update`.  A whole history: `run` returns the forecasts,
    `run_detailed` also the certificates.

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 36_000))
    >>> p = recal.predict({0.1: 8_100, 0.5: 9_000, 0.9: 10_400})
    >>> low, high = p.interval(0.9)
    >>> p.certificate.holds
    True
    >>> recal.update(9_240)
    """

    kind: ClassVar[str] = "Recalibrator"
    default_oracle: ClassVar[type[Oracle]] = Committee
    expert_required: ClassVar[bool] = True
