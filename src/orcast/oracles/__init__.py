"""Oracles: what to forecast so that the outcomes cannot run up a debt."""

from typing import Any

from orcast.conformal import ConformalLevel
from orcast.oracles.base import Engine, Oracle
from orcast.oracles.committee import Committee
from orcast.oracles.equilibrium import Equilibrium
from orcast.oracles.exact import BinaryRoot, DecisionGame, MomentHull, SimplexGrid, TwoCells
from orcast.oracles.families import Family, GaussianMixture, Softmax
from orcast.oracles.orca import Adam, MonteCarlo, Orca

__all__ = [
    "Adam",
    "BinaryRoot",
    "Committee",
    "DecisionGame",
    "Engine",
    "Equilibrium",
    "Family",
    "GaussianMixture",
    "MomentHull",
    "MonteCarlo",
    "Oracle",
    "Orca",
    "SimplexGrid",
    "Softmax",
    "TwoCells",
    "oracle_from_plain",
]


def oracle_from_plain(data: dict[str, Any]) -> Oracle:
    """An oracle from its plain form."""
    options = dict(data)
    kind = options.pop("kind", None)
    if kind == "Orca":
        return Orca.from_plain(options)
    if kind == "ConformalLevel":
        return ConformalLevel(**options)
    for known in (BinaryRoot, Committee, DecisionGame, Equilibrium, MomentHull, SimplexGrid, TwoCells):
        if kind == known.__name__:
            return known(**options)
    raise ValueError(f"expected a known oracle in the state, got {kind!r}")
