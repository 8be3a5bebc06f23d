"""Options of a session, and the spaces of its series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orcast import limits
from orcast.adapters import Quantiles
from orcast.recalibrator import Recalibrator
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between
from orcast.validation import short


@dataclass(frozen=True)
class StreamSettings:
    """Options of a session.

    Parameters
    ----------
    low, high : bounds of quantities
    levels : quantiles to answer with
    outside, memory, max_pending : as in `orcast.Recalibrator`
    remember : settled rounds of each series that are remembered
    pool : whether quantities of all series share an `orcast.Pool`
    """

    low: float | None = None
    high: float | None = None
    levels: tuple[float, ...] = ()
    outside: str = "raise"
    memory: float | None = None
    max_pending: int = 1000
    remember: int = 10_000
    pool: bool = False

    def __post_init__(self) -> None:
        limits.check("levels", len(self.levels))
        if self.levels:
            Quantiles(self.levels, [0.0] * len(self.levels))  # or says what is wrong with them
        if not isinstance(self.pool, bool):
            raise TypeError(f"expected pool=True or False, got {short(self.pool)}")
        if self.remember < 1:
            raise ValueError(f"expected at least 1 settled round to be remembered, got {self.remember}")
        space = between(self.low, self.high)
        Recalibrator(space, **{name: value for name, value in self.series(space).items() if name != "pool"})

    def space(self, kind: str, labels: tuple[str, ...]) -> Space:
        """Space of a series whose first forecast is of a kind."""
        if kind == "quantity":
            return between(self.low, self.high)
        return Binary() if kind == "binary" else Labels(labels)

    def series(self, space: Space) -> dict[str, Any]:
        """Options of a series on a space; only quantities are in a pool."""
        options = {"memory": self.memory, "outside": self.outside, "max_pending": self.max_pending}
        return {**options, "pool": self.pool and isinstance(space, OrderedSpace)}


def stated_space(given: Mapping[str, Any]) -> Space:
    """Space with bounds, of labels, or binary, as options or a line give it."""
    binary, labels = given.get("binary", False), given.get("labels")
    if not isinstance(binary, bool):
        raise TypeError(f"expected true or false as binary, got {short(binary)}")
    if sum((binary, labels is not None, "low" in given or "high" in given)) > 1:
        raise ValueError(f"expected bounds, binary or labels, got {' and '.join(given)}")
    if binary:
        return Binary()
    if labels is not None:
        if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
            raise TypeError(f"expected a list of text as labels, got {short(labels)}")
        return Labels(labels)
    for key, bound in given.items():
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise TypeError(f"expected a number as {key}, got {short(bound)}")
    return between(given.get("low"), given.get("high"))
