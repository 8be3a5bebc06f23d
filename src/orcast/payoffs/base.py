"""What a payoff is, and the direct sum of payoffs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.checks import number
from orcast.forecasts import Forecast
from orcast.spaces import Interval

Array = NDArray[np.float64]


def checked_weight(weight: object) -> float:
    """A weight, or one clear sentence."""
    return number(weight, "weight", 1e-6, 1e6)


class Payoff:
    """A vector that measures how a forecast p fared with an outcome y (paper, section 3).

    Its mean under p itself is zero (consistency), or at most zero where it is ``one_sided``; its squared norm is at
    most ``bound``.  In a game it is divided by sqrt(bound) and multiplied by ``weight``.
    """

    name: str
    weight: float
    one_sided: bool = False

    @property
    def bound(self) -> float:
        """A bound on the squared norm of the payoff."""
        raise AttributeError(f"{type(self).__name__} has no bound")

    @property
    def size(self) -> int:
        """Number of coordinates."""
        raise AttributeError(f"{type(self).__name__} has no size")

    def evaluate(self, space: Interval, forecast: Forecast, y: float, expert: Forecast | None = None) -> Array:
        """The payoff in its own units, written for reading: the slow twin of the compiled one."""
        raise AttributeError(f"{type(self).__name__} has no evaluate")

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        raise AttributeError(f"{type(self).__name__} has no plain form")

    def __iter__(self) -> Iterator[Payoff]:
        yield self

    def __add__(self, other: Payoff) -> Sum:
        if not isinstance(other, Payoff):
            return NotImplemented
        return Sum((*self, *other))


@dataclass(frozen=True)
class Sum(Payoff):
    """The direct sum of payoffs: all are kept small together (paper, proposition 4.4).

    Normalised by the roots of their bounds B_i (the proposition divides by B_i; with B_i a bound on the squared norm it
    must be the root), each of n parts ends with ||mean payoff_i||^2 <= n B_i / T.

    >>> import orcast as oc
    >>> payoff = oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    >>> [part.name for part in payoff]
    ['quantile', 'moment', 'regret']
    """

    parts: tuple[Payoff, ...]

    name = "sum"

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"expected each kind of payoff once in a sum, got {name!r} {names.count(name)} times")

    def __iter__(self) -> Iterator[Payoff]:
        return iter(self.parts)

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "Sum", "parts": [part.to_plain() for part in self.parts]}
