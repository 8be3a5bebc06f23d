"""Recalibrator: wrap the forecasts you have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from orcast.engine import Committee, Oracle
from orcast.game import Forecaster


class Recalibrator(Forecaster):
    """Calibrated, and usually more accurate, forecasts from someone else's, on any sequence of outcomes.

        guarantee.miscalibration  <=  guarantee.promised    after every round (paper, section 4.2; docs/theory.md)

    By default: quantile and moment calibration and no regret in CRPS, played by `Committee`; nothing to tune.
    Without a space: any number, `Line`.  On `Binary` and `Labels` probabilities are calibrated.
    `forecast` may be quantiles by level, `Normal`, `Ensemble`, a (point, scale) pair, or anything with
    `ppf` or `cdf`; a probability, or one for each label.  `outside="clip"` clips outcomes beyond the bounds
    instead of refusing them.  It is a `Forecaster` that always has an expert: see there for `id`, `drop`, `memory` and
    `max_pending`.

    One round: `predict`, later `update`.  A whole history: `run` returns the forecasts, `play` also the certificate of
    each, and `replay` nothing, to warm up.

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

    def replay(self, history: Iterable[tuple[object, Any]]) -> None:
        """Warm up from past (forecast, outcome) pairs, as if they had come one by one; `run` also takes features.

        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1))
        >>> recal.replay([(oc.Normal(0.5, 0.1), 0.6), (oc.Normal(0.6, 0.1), 0.55)])
        >>> recal.guarantee.rounds
        2
        """
        pairs = list(history)
        for pair in pairs:
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
                raise TypeError(f"expected (forecast, outcome) pairs, got {pair!r}")
        self.run([forecast for forecast, _ in pairs], [y for _, y in pairs], at=[0.5])
