"""Half-space oracles, exact up to a stated tolerance, each for one notion of calibration (paper, appendix C)."""

from orcast.paper.exact.binary import BinaryRoot
from orcast.paper.exact.decision import DecisionGame
from orcast.paper.exact.moments import MomentHull
from orcast.paper.exact.quantile import TwoCells
from orcast.paper.exact.simplex import SimplexGrid

__all__ = ["BinaryRoot", "DecisionGame", "MomentHull", "SimplexGrid", "TwoCells"]
