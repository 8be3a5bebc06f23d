"""What an oracle is: options that can be bound to a space and a payoff, which gives an engine that plays rounds."""

from __future__ import annotations

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
    if not 1e-6 <= value <= 1e12:
        raise ValueError(f"expected a temperature from 1e-6 to 1e12, got {temperature!r}")
    return value
