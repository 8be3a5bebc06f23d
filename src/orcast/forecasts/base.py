"""Certificate and explanation of forecasts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.validation import number

if TYPE_CHECKING:
    from orcast.ledger import Certificate

Why = Callable[[], Any]


class IssuedForecast:
    """A forecast that a recalibrator may have issued."""

    __slots__ = ("_certificate", "_why")

    _certificate: Certificate | Callable[[], Certificate] | None
    _why: Why | None

    @property
    def certificate(self) -> Certificate | None:
        """Certificate, if a recalibrator issued the forecast; built when it is first read."""
        if callable(self._certificate):
            self._certificate = self._certificate()
        return self._certificate

    def explain(self) -> Any:
        """Explain the differences from the base forecast."""
        if self._why is None:
            raise ValueError("expected a forecast issued by a game, got one made by hand")
        return self._why()

    def _given_explanation(self) -> Why | None:
        """Explanation that a copy carries, made now."""
        return None if self._why is None else partial(_told, self._why())


def _told(explanation: Any) -> Any:
    return explanation


def generator(rng: object) -> np.random.Generator:
    """The random generator, if it is one."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"expected rng=numpy.random.default_rng(...), got {rng!r}")
    return rng


def as_share(confidence: object) -> float:
    """A share between 0 and 1."""
    return number(confidence, "share of the mass", 0.0, 1.0)
