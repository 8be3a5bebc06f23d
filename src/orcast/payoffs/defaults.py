"""Default payoffs."""

from __future__ import annotations

from orcast.payoffs.base import Payoff
from orcast.payoffs.calibration import MomentMatching, QuantileCalibration
from orcast.payoffs.probabilities import BinaryCalibration, Calibeating, LabelCalibration
from orcast.payoffs.regret import NoRegret
from orcast.scores import CRPS, Brier
from orcast.spaces import Binary, Labels, OrderedSpace, Space


def default_payoff(space: Space) -> Payoff:
    """Default payoff of a space.

    Parameters
    ----------
    space
        Space of the outcomes.

    Notes
    -----
    Quantities: quantiles, two moments, no regret in CRPS. Binary outcomes and labels: calibrated probabilities (on
    `Binary` also given the expert's forecast), no regret in Brier score. Other spaces: two moments and no
    regret in energy score.

    Examples
    --------
    >>> from orcast.spaces import Interval
    >>> default_payoff(Interval(0, 1))
    QuantileCalibration() + MomentMatching(order=2) + NoRegret(scores=[{'kind': 'CRPS'}])
    """
    if isinstance(space, OrderedSpace):
        return QuantileCalibration() + MomentMatching(2) + NoRegret(CRPS())
    if isinstance(space, Binary):
        probabilities = BinaryCalibration() + Calibeating(weight=0.5)
        return probabilities + MomentMatching(1, weight=0.25) + NoRegret(Brier())
    if isinstance(space, Labels):
        return LabelCalibration() + NoRegret(Brier())
    return MomentMatching(2) + NoRegret(CRPS())
