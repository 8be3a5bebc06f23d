"""Recalibrator: calibrated forecasts around base forecasts."""

from __future__ import annotations

from typing import ClassVar

from orcast.engine import Committee, Oracle
from orcast.forecaster import Forecaster


class Recalibrator(Forecaster):
    """Recalibrate the forecasts of any model on any sequence of outcomes.

    Parameters
    ----------
    space
        Outcome space; by default `Line()`, any number.
    payoff
        Payoffs to keep small; by default quantile and moment calibration and no regret in CRPS on quantities.
    oracle
        Method that chooses each forecast; by default `Committee()`, which usually makes forecasts more accurate too.
    memory
        Number of rounds of an exponentially discounted mean; by default all rounds count alike.
    outside
        "raise" refuses outcomes outside the space; "clip" clips them.
    max_pending
        Largest number of pending rounds; beyond it the oldest is dropped with a warning.
    pool
        `Pool` whose recalibrators share what they learn.
    seasons
        One or two seasons in rounds, such as (24, 168) for hourly forecasts; by default they are estimated.
    randomised
        Seed or generator of random draws, for which `guarantee.empirical` has bounds.
    mode
        "direct" publishes the recalibrated forecasts, "shadow" the base forecasts, "guarded" the base forecasts until
        an e-process says that the recalibrated ones are better (`guard`).

    Notes
    -----
    `predict` takes a base forecast, later `update` its outcome; `run` does both for a whole history. The guarantee is
    that of `Forecaster`:

        guarantee.miscalibration  <=  guarantee.promised    after every round (paper, section 4.2; docs/theory.md)

    Examples
    --------
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
