"""Calibration of quantiles and of moments."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import PERCENTS, Forecast
from orcast.payoffs.base import Payoff, checked_weight
from orcast.spaces import Interval, frozen

Array = NDArray[np.float64]


class QuantileCalibration(Payoff):
    """Outcomes fall below the a-quantile with frequency a, for every level a (paper, section 3 and appendix B).

    payoff_a = clip((a - F_{k-1}) / (F_k - F_{k-1}), 0, 1) - a for an outcome in cell k: the indicator {y <= q_a},
    averaged over the cell, minus a.  Squared bound: the largest sum of (1{j} - a_j)^2, with 99 levels sum a^2 = 32.8.

    >>> payoff = QuantileCalibration()
    >>> payoff.size, round(payoff.bound, 3)
    (99, 32.835)
    """

    name = "quantile"

    def __init__(self, levels: Iterable[float] = PERCENTS, *, weight: float = 1.0) -> None:
        try:
            a = np.array(list(levels), dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"expected levels strictly between 0 and 1, got {levels!r}") from None
        if a.ndim != 1 or a.size == 0 or not ((a > 0.0) & (a < 1.0)).all() or (np.diff(a) <= 0.0).any():
            raise ValueError(f"expected increasing levels strictly between 0 and 1, got {a.tolist()!r}")
        self.levels: Array = frozen(a)
        self.weight = checked_weight(weight)

    @property
    def size(self) -> int:
        """One coordinate a level."""
        return int(self.levels.size)

    @cached_property
    def bound(self) -> float:
        """The largest squared norm: some levels below the outcome, the others above."""
        below = np.concatenate(([0.0], np.cumsum(self.levels**2)))
        above = np.concatenate((np.cumsum((1.0 - self.levels[::-1]) ** 2)[::-1], [0.0]))
        return float((below + above).max())

    def evaluate(self, space: Interval, forecast: Forecast, y: float, expert: Forecast | None = None) -> Array:
        """The indicators averaged over the outcome's cell, minus the levels."""
        k = int(np.searchsorted(forecast.right, y, side="left"))
        if k + 1 < forecast.mass.size and forecast.left[k + 1] == y == forecast.right[k + 1]:
            k += 1
        low, high = forecast.below[k], forecast.below[k + 1]
        if high <= low:
            share = (self.levels >= low).astype(np.float64)
        else:
            share = np.clip((self.levels - low) / (high - low), 0.0, 1.0)
        payoff: Array = share - self.levels
        return payoff

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "QuantileCalibration", "levels": self.levels.tolist(), "weight": self.weight}

    def __repr__(self) -> str:
        return f"QuantileCalibration({self.size} levels, weight={self.weight:g})"


class MomentMatching(Payoff):
    """Forecasts and outcomes have the same mean powers, up to an order (paper, section 3).

    payoff_j = E_p[t^j] - t^j, j = 1, ..., order, with t = (y - low) / (high - low), so that each is at most 1 in size.
    Booked at the outcome itself.  Squared bound: the order.

    >>> MomentMatching(2).bound
    2.0
    """

    name = "moment"

    def __init__(self, order: int = 2, *, weight: float = 1.0) -> None:
        if not isinstance(order, (int, np.integer)) or isinstance(order, bool) or not 1 <= order <= 12:
            raise ValueError(f"expected a whole order from 1 to 12, got {order!r}")
        self.order = int(order)
        self.weight = checked_weight(weight)

    @property
    def size(self) -> int:
        """One coordinate an order."""
        return self.order

    @property
    def bound(self) -> float:
        """Each power is between 0 and 1."""
        return float(self.order)

    def evaluate(self, space: Interval, forecast: Forecast, y: float, expert: Forecast | None = None) -> Array:
        """Mean powers of the forecast minus those of the outcome, in units of the interval."""
        span = space.high - space.low
        unit = Forecast((forecast.left - space.low) / span, (forecast.right - space.low) / span, forecast.mass)
        t = (y - space.low) / span
        return np.array([unit.moment(j) - t**j for j in range(1, self.order + 1)])

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "MomentMatching", "order": self.order, "weight": self.weight}

    def __repr__(self) -> str:
        return f"MomentMatching({self.order}, weight={self.weight:g})"
