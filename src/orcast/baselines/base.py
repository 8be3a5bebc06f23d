"""What every baseline shares: the two calls of a `Recalibrator`, and rounds that wait for their outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any


class Baseline(ABC):
    """A method with `predict(forecast)` and `update(y)`.

    As in a `Recalibrator` there is one unnamed round, which a new unnamed `predict` replaces; rounds with an `id` may
    be settled late and in any order.  A round teaches by what was issued in it, not by what would be issued when its
    outcome comes.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._pending: dict[Hashable, tuple[Any, Any]] = {}

    @property
    def pending(self) -> tuple[Hashable, ...]:
        """Ids of the rounds without an outcome yet, the oldest first; None is the unnamed one."""
        return tuple(self._pending)

    def predict(self, forecast: object, *, id: Hashable = None) -> Any:
        """Recalibrate one forecast; the round is then pending."""
        if id is not None and id in self._pending:
            raise ValueError(f"expected a new id, got {id!r}, which is pending")
        read = self._read(forecast)
        issued = self._issue(read)
        self._pending[id] = read, self._now()
        return issued

    def update(self, y: object, *, id: Hashable = None) -> None:
        """Settle the unnamed round, or a named one, by its outcome."""
        outcome = self._outcome(y)
        read, then = self._taken(id)
        self._learn(read, outcome, then)
        self.rounds += 1

    def drop(self, id: Hashable = None) -> None:
        """Forget a round whose outcome will never come."""
        self._taken(id)

    def _taken(self, id: Hashable) -> tuple[Any, Any]:
        if id not in self._pending:
            known = "none" if id is None else f"{id!r}"
            raise ValueError(f"expected a pending round, got {known}")
        return self._pending.pop(id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._described()}, rounds={self.rounds})"

    # --- what a method has of its own
    @abstractmethod
    def _read(self, forecast: object) -> Any:
        """What the method needs of an expert's forecast."""

    @abstractmethod
    def _issue(self, read: Any) -> Any:
        """The recalibrated forecast."""

    def _now(self) -> Any:
        """What the method will have to know of the present when the outcome comes."""
        return None

    @abstractmethod
    def _outcome(self, y: object) -> Any:
        """The outcome in its type, or one clear sentence."""

    @abstractmethod
    def _learn(self, read: Any, y: Any, then: Any) -> None:
        """Learn from an outcome; `then` is what `_now` was in its round."""

    @abstractmethod
    def _described(self) -> str:
        """The options, in short."""
