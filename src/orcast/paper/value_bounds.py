"""Bound on how often an outcome costs more than a multiple of its expected value (paper, appendix E)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from orcast.decisions import ROUNDING, check_quantity, expected_value
from orcast.forecasts import Forecast
from orcast.payoffs.decisions import one_number
from orcast.spaces.base import single
from orcast.validation import number, short

# Above this factor the level 1 - 1/r is too close to 1.
LARGEST_FACTOR = 1e9


class ValueCheck:
    """Measure how often an outcome's value exceeds r times its expectation (paper, appendix E: Markov's inequality).

    Parameters
    ----------
    value
        Function v >= 0 of (y), (y, action) or (y, action, x), monotone in y; a violation raises.
    r
        Factor, above 1.

    Notes
    -----
    `share` is the measured #{ t : v(y_t, a_t, x_t) > r E_{p_t} v(y, a_t, x_t) } / T; `bound` = 1/r bounds it if the
    forecasts are quantile calibrated. On any sequence and for any forecasts the share is at most

        allowed  =  1/r + calibration_error  =  #{ t : y_t > q_{1 - 1/r}(p_t) } / T

    or for a decreasing v, #{ t : y_t < q_{1/r}(p_t) } / T (docs/theory.md has the proof).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper import ValueCheck
    >>> check = ValueCheck(lambda y: y, r=1.5)
    >>> for y in (0.2, 0.7, 0.8, 0.9):
    ...     check.update(oc.Forecast([0], [1], [1]), y)
    >>> check.share, round(check.bound, 3), check.allowed, check.holds
    (0.5, 0.667, 0.75, True)
    >>> margin = ValueCheck(lambda y, action: y if action == "buy" else 1 - y, r=1.5)
    >>> margin.update(oc.Forecast([0], [1], [1]), 0.9, action="buy")
    >>> margin.update(oc.Forecast([0], [1], [1]), 0.9, action="sell")
    >>> margin.share, margin.allowed
    (0.5, 0.5)
    """

    def __init__(self, value: Callable[..., float], r: float) -> None:
        if not callable(value):
            raise TypeError(
                f"expected a function value(outcome), optionally with an action and features, got {short(value)}"
            )
        self.value = value
        self.r = number(r, "r")
        if not 1.0 < self.r <= LARGEST_FACTOR:
            raise ValueError(f"expected a number above 1, at most {LARGEST_FACTOR:g}, as r, got {short(r)}")
        self.rounds = 0
        self.exceeded = 0
        # direction of the value: 1, -1, or 0 while constant; outcomes beyond either quantile
        self._direction = 0
        self._above = 0
        self._below = 0
        # outcomes beyond the relevant quantile, in rounds with an action or features
        self._beyond = 0

    def update(self, forecast: Forecast, y: float, action: Any = None, x: Any = None) -> None:
        """Count a forecast and its outcome.

        Parameters
        ----------
        forecast
            Forecast of the outcome.
        y
            Outcome.
        action, x
            Action and features, if the value depends on them.
        """
        check_quantity(forecast)
        outcome = single(y)
        same = action is None and x is None
        _, threshold, direction = self.thresholds(forecast, self._direction if same else 0, action, x)
        worth = self._value(outcome, action, x)
        above = outcome > float(forecast.quantile(1.0 - 1.0 / self.r))
        below = outcome < float(forecast.quantile(1.0 / self.r))
        exceeded = worth > threshold * (1.0 + ROUNDING)
        if exceeded:
            # the value was constant until this outcome
            direction = direction or (1 if above else -1)
            if not (above if direction > 0 else below):
                raise ValueError(_not_monotone(f"{worth:g} at {outcome:g}"))
        if same:
            self._direction = direction
            self._above += above
            self._below += below
        else:
            self._beyond += below if direction < 0 else above
        self.exceeded += exceeded
        self.rounds += 1

    @property
    def share(self) -> float:
        """Share of rounds whose value exceeded r times its expectation; nan before the first."""
        return self.exceeded / self.rounds if self.rounds else math.nan

    @property
    def bound(self) -> float:
        """Bound on the share if the forecasts are quantile calibrated: 1/r."""
        return 1.0 / self.r

    @property
    def allowed(self) -> float:
        """Bound on the share on any sequence: 1/r plus the calibration error; nan before the first round."""
        beyond = self._beyond + (self._below if self._direction < 0 else self._above)
        return beyond / self.rounds if self.rounds else math.nan

    @property
    def calibration_error(self) -> float:
        """Share of outcomes beyond the relevant quantile, minus 1/r; nan before the first round."""
        return self.allowed - self.bound

    @property
    def holds(self) -> bool:
        """True if the share is at most 1/r so far, and before the first round."""
        return not self.share > self.bound

    def __repr__(self) -> str:
        kept = f"share {self.share:.3g} of {self.rounds} rounds" if self.rounds else "no rounds yet"
        return f"ValueCheck(r={self.r:g}, bound {self.bound:.3g}, {kept})"

    def _value(self, y: float, action: Any, x: Any) -> float:
        known = (y,) if action is None and x is None else (y, action) if x is None else (y, action, x)
        try:
            worth = self.value(*known)
        except OverflowError:
            raise ValueError(f"expected a finite number as value of {y:g}, got one too large") from None
        if isinstance(worth, float) and 0.0 <= worth < math.inf:
            return worth
        worth = one_number(worth, f"value of {y:g}")
        if worth < 0.0:
            raise ValueError(f"expected a nonnegative value, got {worth:g} at {y:g}")
        return worth

    def thresholds(
        self, forecast: Forecast, direction: int = 0, action: Any = None, x: Any = None
    ) -> tuple[float, float, int]:
        """Expected value, r times it, and the direction of the value: 1 increasing, -1 decreasing, else 0.

        Parameters
        ----------
        forecast
            Forecast of the outcome.
        direction
            Known direction of the value; 0 if unknown.
        action, x
            Action and features, if the value depends on them.
        """
        seen: dict[float, float] = {}

        def value_at(y: float) -> float:
            if y not in seen:
                seen[y] = self._value(y, action, x)
            return seen[y]

        expected = expected_value(forecast, value_at)
        for end in {*forecast.left.tolist(), *forecast.right.tolist()} - {math.inf, -math.inf}:
            value_at(end)
        levels = (1.0 / self.r, 1.0 - 1.0 / self.r)
        low, high = (value_at(float(forecast.quantile(level))) for level in levels)
        direction = _direction([seen[y] for y in sorted(seen)], direction)
        least = low if direction < 0 else high
        return max(expected, least / self.r), max(self.r * expected, least), direction


def _direction(values: Sequence[float], so_far: int) -> int:
    """Direction of values beyond rounding: 1 increasing, -1 decreasing, 0 constant; raises if both."""
    found = np.asarray(values)
    # against the least and the largest before, since steps of less than rounding may add up to more
    up = found - np.minimum.accumulate(found) > ROUNDING * found
    down = np.maximum.accumulate(found) - found > ROUNDING * np.maximum.accumulate(found)
    rises, falls = bool(up.any()), bool(down.any())
    if rises and falls:
        turn = int(np.argmax(up if found[-1] < found[0] else down)) - 1
        raise ValueError(_not_monotone(f"{values[turn]:g} then {values[turn + 1]:g}, and the opposite elsewhere"))
    if (falls and so_far > 0) or (rises and so_far < 0):
        raise ValueError(_not_monotone("the opposite direction in an earlier round"))
    return int(rises) - int(falls) or so_far


def _not_monotone(got: str) -> str:
    return f"expected a value that never falls or never rises with the outcome, got {got}"
