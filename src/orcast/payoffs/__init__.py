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
from orcast.payoffs.defaults import default_payoff
from orcast.payoffs.probabilities import BinaryCalibration, Calibeating, LabelCalibration
from orcast.payoffs.recipe import Recipe
from orcast.payoffs.regret import NoRegret
from orcast.payoffs.triangulated import MomentBasedCalibration, SimplexCalibration
from orcast.scores import score_from_plain

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
