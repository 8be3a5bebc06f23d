"""What a case is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..players import Begin, Json, Step


@dataclass
class Case:
    """A state: its name, who plays it, how it is loaded, how it begins, and what is played before and after."""

    name: str
    kind: str
    begin: Begin
    before: list[Step]
    after: list[Step]
    options: dict[str, Json] = field(default_factory=dict)
