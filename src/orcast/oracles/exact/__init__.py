"""Half-space oracles that win up to a stated tolerance, for one notion of calibration each (paper, appendix C)."""

from orcast.oracles.exact.binary import BinaryRoot
from orcast.oracles.exact.decision import DecisionGame
from orcast.oracles.exact.moments import MomentHull
from orcast.oracles.exact.quantile import TwoCells
from orcast.oracles.exact.simplex import SimplexGrid

__all__ = ["BinaryRoot", "DecisionGame", "MomentHull", "SimplexGrid", "TwoCells"]
