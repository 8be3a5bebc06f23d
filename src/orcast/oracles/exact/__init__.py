"""Half-space oracles in closed form or by bisection, for one notion of calibration each (paper, appendix C)."""

from orcast.oracles.exact.binary import BinaryRoot
from orcast.oracles.exact.quantile import TwoCells

__all__ = ["BinaryRoot", "TwoCells"]
