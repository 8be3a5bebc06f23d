"""Outcome spaces, divided into cells that carry the masses of forecasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orcast.spaces.base import Array, FiniteSpace, OrderedSpace, Space, frozen
from orcast.spaces.finite import Binary, Box, Circle, Labels
from orcast.spaces.ordered import TAIL_MASS, HalfLine, Interval, Line, between, normal_scores
from orcast.validation import short

__all__ = [
    "TAIL_MASS",
    "Array",
    "Binary",
    "Box",
    "Circle",
    "FiniteSpace",
    "HalfLine",
    "Interval",
    "Labels",
    "Line",
    "OrderedSpace",
    "Space",
    "between",
    "frozen",
    "normal_scores",
    "space_from_plain",
]

_KINDS = (Interval, Line, HalfLine, Binary, Labels, Circle, Box)
_READERS: dict[str, Callable[..., Space]] = {kind.__name__: kind for kind in _KINDS}


def space_from_plain(data: Mapping[str, Any]) -> Space:
    """Rebuild a space from its plain form.

    >>> space_from_plain(Circle(24, cells=48).to_plain())
    Circle(period=24.0, cells=48)
    """
    options = dict(data)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"expected a known space in the state, or space= for a user-defined one, got {short(data)}")
    try:
        return _READERS[kind](**options)
    except TypeError as reason:
        if str(reason).startswith("expected "):
            raise
        raise ValueError(f"expected a known space in the state, got {short(data)}") from None
