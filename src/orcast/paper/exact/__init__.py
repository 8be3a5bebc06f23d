"""Half-space oracles, exact up to a stated tolerance, for the notions of calibration of the paper's appendix C."""

from orcast.paper.exact.binary import BinaryRoot
from orcast.paper.exact.path import LogitPath
from orcast.paper.exact.quantile import TwoCells

__all__ = ["BinaryRoot", "LogitPath", "TwoCells"]
