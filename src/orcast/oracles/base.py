"""What an oracle is: options that can be bound to a space and a payoff, which gives an engine that plays rounds."""

from __future__ import annotations

import math
from typing import Any, Protocol

from orcast.oracles.engine import Engine
from orcast.payoffs import Payoff
from orcast.spaces import Interval


class Oracle(Protocol):
    """Options of a way to play; immutable, and saved as plain data."""

    def bind(self, space: Interval, payoff: Payoff) -> Engine:
        """An engine with an empty ledger."""
        ...

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        ...


def checked_temperature(temperature: object) -> float:
    """A temperature as a positive float, or one clear sentence."""
    try:
        value = float(temperature)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"expected a positive number as temperature, got {temperature!r}") from None
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"expected a positive number as temperature, got {temperature!r}")
    return value
