"""Notions of calibration as vector payoffs; `+` is their direct sum."""

from collections.abc import Callable
from typing import Any

from orcast.contexts import context_from_plain
from orcast.payoffs.base import CellGrid, CellPayoff, Part, Payoff, Sum, part_names
from orcast.payoffs.calibration import (
    IntervalCalibration,
    MomentMatching,
    QuantileCalibration,
    ThresholdCalibration,
)
from orcast.payoffs.decisions import DecisionCalibration, SwapRegret
from orcast.payoffs.probabilities import BinaryCalibration, Calibeating, LabelCalibration
from orcast.payoffs.recipe import Recipe
from orcast.payoffs.regret import NoRegret
from orcast.payoffs.triangulated import MomentBasedCalibration, SimplexCalibration
from orcast.scores import CRPS, Brier, score_from_plain
from orcast.spaces import Binary, Labels, OrderedSpace, Space

__all__ = [
    "BinaryCalibration",
    "Calibeating",
    "CellGrid",
    "CellPayoff",
    "DecisionCalibration",
    "IntervalCalibration",
    "LabelCalibration",
    "MomentBasedCalibration",
    "MomentMatching",
    "NoRegret",
    "Part",
    "Payoff",
    "QuantileCalibration",
    "Recipe",
    "SimplexCalibration",
    "Sum",
    "SwapRegret",
    "ThresholdCalibration",
    "default_payoff",
    "part_names",
    "payoff_from_plain",
]

_READERS: dict[str, Callable[..., Payoff]] = {
    kind.__name__: kind
    for kind in (
        BinaryCalibration,
        Calibeating,
        IntervalCalibration,
        LabelCalibration,
        MomentBasedCalibration,
        MomentMatching,
        QuantileCalibration,
        SimplexCalibration,
        ThresholdCalibration,
    )
}
_WITH_FUNCTIONS = ("DecisionCalibration", "Recipe", "SwapRegret")


def payoff_from_plain(data: dict[str, Any]) -> Payoff:
    """Rebuild a payoff from its plain form; one with functions must be passed again."""
    options = dict(data)
    kind = options.pop("kind", None)
    if kind == "Sum":
        return Sum(tuple(payoff_from_plain(part) for part in options["parts"]))
    if kind in _WITH_FUNCTIONS:
        raise ValueError(f"expected payoff= for a {kind}, whose functions are not saved, got none")
    if kind not in _READERS and kind != "NoRegret":
        raise ValueError(f"expected a known payoff in the state, got {kind!r}")
    options["context"] = context_from_plain(options["context"])
    if kind == "NoRegret":
        return NoRegret(*(score_from_plain(score) for score in options.pop("scores")), **options)
    return _READERS[kind](**options)


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
