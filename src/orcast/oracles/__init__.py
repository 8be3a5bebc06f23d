"""Oracles: what to forecast so that the outcomes cannot run up a debt.

The paper's own are imported when they are first used, so that a first forecast need not wait for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orcast.oracles.base import Engine, Oracle
from orcast.oracles.committee import Committee
from orcast.oracles.equilibrium import Equilibrium

if TYPE_CHECKING:
    from orcast.oracles.exact import BinaryRoot, DecisionGame, MomentHull, SimplexGrid, TwoCells
    from orcast.oracles.families import Family, GaussianMixture, Softmax
    from orcast.oracles.orca import Adam, MonteCarlo, Orca

_LATER = {
    "BinaryRoot": "exact",
    "DecisionGame": "exact",
    "MomentHull": "exact",
    "SimplexGrid": "exact",
    "TwoCells": "exact",
    "Family": "families",
    "GaussianMixture": "families",
    "Softmax": "families",
    "Adam": "orca",
    "MonteCarlo": "orca",
    "Orca": "orca",
}

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


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def oracle_from_plain(data: dict[str, Any]) -> Oracle:
    """An oracle from its plain form."""
    options = dict(data)
    kind = options.pop("kind", None)
    if kind == "Orca":
        from orcast.oracles.orca import Orca

        return Orca.from_plain(options)
    if kind == "ConformalLevel":
        from orcast.conformal import ConformalLevel

        return ConformalLevel(**options)
    known: dict[str, Any] = {"Committee": Committee, "Equilibrium": Equilibrium}
    make = known.get(str(kind)) or (__getattr__(str(kind)) if _LATER.get(str(kind)) == "exact" else None)
    if make is not None:
        made: Oracle = make(**options)
        return made
    raise ValueError(f"expected a known oracle in the state, got {kind!r}")
