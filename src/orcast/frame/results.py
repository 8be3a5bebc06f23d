"""Frames that `recalibrate` returned, with the columns, bounds and times that made them."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from orcast.frame.names import ColumnLayout
    from orcast.frame.times import Timing


class Made(NamedTuple):
    """Columns, bounds and times of a run."""

    layout: ColumnLayout
    low: Any
    high: Any
    timing: Timing


_made: dict[int, Made] = {}


def remember(frame: Any, made: Made) -> None:
    """Keep the options of a run for as long as its result lives; frames without weak references are not kept."""
    with suppress(TypeError):
        weakref.finalize(frame, _made.pop, id(frame), None)
        _made[id(frame)] = made


def made_by(frame: Any) -> Made | None:
    """Options of the run that returned this frame, if one did."""
    return _made.get(id(frame))
