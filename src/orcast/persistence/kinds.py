"""Oracles from their plain form, by the name of their kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orcast.paper
from orcast.engine import Committee, Equilibrium, Oracle

_OURS: dict[str, Callable[..., Oracle]] = {"Committee": Committee, "Equilibrium": Equilibrium}
_PAPER = ("BinaryRoot", "ConformalLevel", "DecisionGame", "MomentHull", "SimplexGrid", "TwoCells")


def oracle_from_plain(data: dict[str, Any]) -> Oracle:
    """An oracle from its plain form."""
    options = dict(data)
    kind = str(options.pop("kind", None))
    if kind == "Orca":
        return orcast.paper.Orca.from_plain(options)
    if kind not in _OURS and kind not in _PAPER:
        raise ValueError(f"expected a known oracle in the state, got {kind!r}")
    make: Callable[..., Oracle] = _OURS[kind] if kind in _OURS else getattr(orcast.paper, kind)
    return make(**options)
