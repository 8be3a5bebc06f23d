"""Many series in a data frame: columns that are found, streams that are played by all cores, a state that goes on.

frame --columns--> layout --streams--> rows in the order of play --play--> answers --> the same frame, and more
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orcast.panel.api import recalibrate
    from orcast.panel.state import PanelState

__all__ = ["PanelState", "recalibrate"]


def __getattr__(name: str) -> object:
    if name == "recalibrate":
        from orcast.panel.api import recalibrate

        return recalibrate
    if name == "PanelState":
        from orcast.panel.state import PanelState

        return PanelState
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
