"""What is written: for each name a state, what is played before it is saved, and what after."""

from collections.abc import Iterator

from . import frames, games, libraries, lines
from .base import Case

__all__ = ["Case", "cases"]


def cases() -> Iterator[Case]:
    """All of them."""
    for some in (games, frames, lines, libraries):
        yield from some.cases()
