"""Oracles from their plain form, by the name of their kind."""

from __future__ import annotations

from typing import Any

import orcast.paper
from orcast.engine import Committee, Equilibrium, Oracle

_OURS = {"Committee": Committee, "Equilibrium": Equilibrium}
_PAPER = ("BinaryRoot", "ConformalLevel", "DecisionGame", "MomentHull", "SimplexGrid", "TwoCells")


def oracle_from_plain(data: dict[str, Any]) -> Oracle:
    """An oracle from its plain form."""
    options = dict(data)
    kind = str(options.pop("kind", None))
    if kind == "Orca":
        return orcast.paper.Orca.from_plain(options)
    if kind in _OURS:
        ours: Oracle = _OURS[kind](**options)
        return ours
    if kind not in _PAPER:
        raise ValueError(f"expected a known oracle in the state, got {kind!r}")
    oracle: Oracle = getattr(orcast.paper, kind)(**options)
    return oracle
