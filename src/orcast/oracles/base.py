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


LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1e-6, 1e12
