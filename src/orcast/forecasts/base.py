"""Certificate of forecasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from orcast.validation import number

if TYPE_CHECKING:
    from orcast.ledger import Certificate


class IssuedForecast:
    """Forecast that a recalibrator may have issued."""

    __slots__ = ("_certificate",)

    _certificate: Certificate | Callable[[], Certificate] | None

    @property
    def certificate(self) -> Certificate | None:
        """Certificate, if a recalibrator issued the forecast; built when it is first read."""
        if callable(self._certificate):
            self._certificate = self._certificate()
        return self._certificate


def generator(rng: object) -> np.random.Generator:
    """Check a random generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"expected rng=numpy.random.default_rng(...), got {rng!r}")
    return rng


def as_share(confidence: object) -> float:
    """Check a share between 0 and 1."""
    return number(confidence, "share of the mass", 0.0, 1.0)
