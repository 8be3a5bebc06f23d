"""Residuals: scale of a point forecast, from the errors known so far."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import Normal
from orcast.constants import PER_ABSOLUTE
from orcast.spaces import Interval, OrderedSpace
from orcast.validation import number

# Scale before any error is known: a share of the interval, or of the forecast itself.
FIRST_SPREAD = 0.1
# Errors that the spread of a point comes from.
WINDOW = 100


def first_spread(points: NDArray[np.float64], space: OrderedSpace) -> NDArray[np.float64]:
    """Scales before any error is known: a tenth of the interval, or of the point itself (1 for 0)."""
    if isinstance(space, Interval):
        return np.full(len(points), FIRST_SPREAD * (space.high - space.low))
    sizes = FIRST_SPREAD * np.abs(points)
    return np.where(sizes > 0.0, sizes, 1.0)


class Residuals:
    """Gaussian forecasts around points, with the scale of the last `window` residuals.

        mean = the point, within the bounds,    sd = sqrt(pi / 2) * mean of |outcome - mean|

    >>> residuals = Residuals(window=2)
    >>> residuals.around(120.0, Interval(0, 100))
    Normal(mean=100.0, sd=10.0)
    >>> residuals.add(3.0); residuals.add(-1.0); residuals.add(2.0)
    >>> round(residuals.scale(5.0, Interval(0, 100)), 3)
    1.88
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.last: deque[float] = deque(maxlen=window)

    def around(self, point: Any, space: OrderedSpace, spread: float | None = None) -> Normal:
        """Forecast around a point; a given scale is kept."""
        mean = number(point, "prediction")
        # clipped, because a model may diverge
        mean = min(max(mean, space.low), space.high)
        return Normal(mean, spread or self.scale(mean, space))

    def scale(self, point: float, space: OrderedSpace) -> float:
        """Scale of the next forecast."""
        if not self.last:
            return float(first_spread(np.array([point]), space)[0])
        return PER_ABSOLUTE * sum(self.last) / len(self.last)

    def add(self, residual: float) -> None:
        """Add an error."""
        self.last.append(abs(residual))
