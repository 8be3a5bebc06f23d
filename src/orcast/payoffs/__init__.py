"""Notions of calibration as vector payoffs of a game; ``+`` is the direct sum."""

from typing import Any

from orcast.payoffs.base import Payoff, Sum
from orcast.payoffs.calibration import MomentMatching, QuantileCalibration
from orcast.payoffs.regret import SCORES, NoRegret

__all__ = ["MomentMatching", "NoRegret", "Payoff", "QuantileCalibration", "Sum", "payoff_from_plain"]


def payoff_from_plain(data: dict[str, Any]) -> Payoff:
    """A payoff from its plain form."""
    kind = data.get("kind")
    if kind == "Sum":
        return Sum(tuple(payoff_from_plain(part) for part in data["parts"]))
    if kind == "QuantileCalibration":
        return QuantileCalibration(data["levels"], weight=data["weight"])
    if kind == "MomentMatching":
        return MomentMatching(data["order"], weight=data["weight"])
    if kind == "NoRegret":
        return NoRegret(*(SCORES[name]() for name in data["scores"]), weight=data["weight"])
    raise ValueError(f"expected a known payoff in the state, got {kind!r}")
