"""What an outcome can cost beyond its expected value: the bound of the paper's appendix E."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.decisions import ROUNDING, check_quantity, expected_value, one_number
from orcast.forecasts import Forecast
from orcast.spaces.base import single
from orcast.validation import number, short

Array = NDArray[np.float64]

# Beyond this the level 1 - 1/r is too close to 1 to tell.
LARGEST_FACTOR = 1e9


@dataclass(frozen=True, eq=False, slots=True)
class ValueBound:
    """What an outcome's value may exceed in at most a share `bound` of the rounds, a number a round.

        thresholds_t = r expected_t,    bound = 1 / r    (paper, appendix E)

    `value_bound` gives it.

    >>> import orcast as oc
    >>> found = oc.paper.value_bound([oc.Forecast([0], [2], [1])], lambda y: y, r=4)
    >>> found.expected.round(6).tolist(), found.thresholds.round(6).tolist(), found.bound
    ([1.0], [4.0], 0.25)
    """

    expected: Array
    thresholds: Array
    bound: float
    increasing: bool


def value_bound(forecasts: Iterable[Forecast], value: Callable[[float], float], r: float) -> ValueBound:
    """How often an outcome's value can exceed r times its expectation (paper, appendix E: Markov's inequality).

    For `value` = v >= 0, monotone in the outcome, and quantile calibrated forecasts p_t, on any sequence,

        #{ t : v(y_t) > r E_{p_t} v } / T  <=  1/r + o(1),    r > 1

    The inequality on the left is strict: with v = 0 the paper's `>=` would count every round.  And the error is o(1);
    an o(T), as the paper has it, says nothing.  That v is monotone and not negative is checked on the forecasts'
    cells.  `ValueCheck` has the proof, and measures the left side.

    >>> import orcast as oc
    >>> from orcast.paper import value_bound
    >>> cost = value_bound([oc.Forecast([0], [2], [1]), oc.Forecast([0], [6], [1])], lambda y: 10 * y, r=4)
    >>> cost.expected.round(6).tolist(), cost.thresholds.round(6).tolist(), cost.bound
    ([10.0, 30.0], [40.0, 120.0], 0.25)
    """
    check = ValueCheck(value, r)
    try:
        several = list(forecasts)
    except TypeError:
        raise TypeError(f"expected a sequence of forecasts, got {short(forecasts)}") from None
    direction = 0
    pairs = np.empty((2, len(several)))
    for t, forecast in enumerate(several):
        check_quantity(forecast)
        *pairs[:, t], direction = check.thresholds(forecast, direction)
    pairs.flags.writeable = False
    return ValueBound(pairs[0], pairs[1], check.bound, direction >= 0)


class ValueCheck:
    """Measures how often an outcome's value exceeded r times its expectation (paper, appendix E).

    `share` is the measured #{ t : v(y_t) > r E_{p_t} v } / T, for v >= 0 that is monotone; `bound` = 1/r is what it
    is at most if the forecasts are quantile calibrated.  On any sequence and for any forecasts it is at most

        allowed  =  1/r + calibration_error  =  #{ t : y_t > q_{1 - 1/r}(p_t) } / T

    (for a v that falls, #{ t : y_t < q_{1/r}(p_t) } / T): of all that calibration means, only this one level matters.
    Proof: under p the outcome is at least q = q_{1 - 1/r}(p) with probability 1/r or more, and v is then at least v(q).
    So E_p v >= v(q) / r, as v >= 0 elsewhere.  Hence v(y) > r E_p v implies v(y) > v(q), and y > q since v is monotone.

    The expectation is a quadrature (`Forecast.expect`).  Where it comes out below v(q) / r, that is taken: by the proof
    the true one is no less, and the argument then holds for the numbers as computed.  In an open-ended cell, whose tail
    has index 3, a v that grows like a cube or faster has an infinite expectation, of which the quadrature sees a part.
    v is checked on the cells of each forecast, and an outcome that shows it not to be monotone is refused.

    >>> import orcast as oc
    >>> from orcast.paper import ValueCheck
    >>> check = ValueCheck(lambda y: y, r=1.5)
    >>> for y in (0.2, 0.7, 0.8, 0.9):
    ...     check.update(oc.Forecast([0], [1], [1]), y)
    >>> check.share, round(check.bound, 3), check.allowed, check.holds
    (0.5, 0.667, 0.75, True)
    """

    def __init__(self, value: Callable[[float], float], r: float) -> None:
        if not callable(value):
            raise TypeError(f"expected a function value(outcome), got {short(value)}")
        self.value = value
        self.r = number(r, "r")
        if not 1.0 < self.r <= LARGEST_FACTOR:
            raise ValueError(f"expected a number above 1, at most {LARGEST_FACTOR:g}, as r, got {short(r)}")
        self.rounds = 0
        self.exceeded = 0
        # whether the value rises (1), falls (-1), or has been constant so far (0), and outcomes beyond either quantile
        self._direction = 0
        self._above = 0
        self._below = 0

    def update(self, forecast: Forecast, y: float) -> None:
        """Count a forecast and its outcome."""
        check_quantity(forecast)
        outcome = single(y)
        _, threshold, direction = self.thresholds(forecast, self._direction)
        worth = self._value(outcome)
        above = outcome > float(forecast.quantile(1.0 - 1.0 / self.r))
        below = outcome < float(forecast.quantile(1.0 / self.r))
        exceeded = worth > threshold * (1.0 + ROUNDING)
        if exceeded:
            # so far constant, the value is seen to change where the outcome is
            direction = direction or (1 if above else -1)
            if not (above if direction > 0 else below):
                raise ValueError(_not_monotone(f"{worth:g} at {outcome:g}"))
        self._direction = direction
        self._above += above
        self._below += below
        self.exceeded += exceeded
        self.rounds += 1

    @property
    def share(self) -> float:
        """The share of rounds whose value exceeded r times its expectation; nan before the first."""
        return self.exceeded / self.rounds if self.rounds else math.nan

    @property
    def bound(self) -> float:
        """What the share is at most if the forecasts are quantile calibrated: 1/r."""
        return 1.0 / self.r

    @property
    def allowed(self) -> float:
        """What the share is at most on any sequence: 1/r plus the calibration error; nan before the first round."""
        beyond = self._below if self._direction < 0 else self._above
        return beyond / self.rounds if self.rounds else math.nan

    @property
    def calibration_error(self) -> float:
        """How often outcomes were beyond the one quantile that matters, minus 1/r; nan before the first round."""
        return self.allowed - self.bound

    @property
    def holds(self) -> bool:
        """Whether the share is at most 1/r so far; True before the first round."""
        return not self.share > self.bound

    def __repr__(self) -> str:
        kept = f"share {self.share:.3g} of {self.rounds} rounds" if self.rounds else "no rounds yet"
        return f"ValueCheck(r={self.r:g}, bound {self.bound:.3g}, {kept})"

    def _value(self, y: float) -> float:
        try:
            worth = self.value(y)
        except OverflowError:
            raise ValueError(f"expected a finite number as value of {y:g}, got one too large") from None
        if isinstance(worth, float) and 0.0 <= worth < math.inf:
            return worth
        worth = one_number(worth, f"value of {y:g}")
        if worth < 0.0:
            raise ValueError(f"expected a value that is not negative, got {worth:g} at {y:g}")
        return worth

    def thresholds(self, forecast: Forecast, direction: int) -> tuple[float, float, int]:
        """Expected value, what r times it is, and the direction of the value, also on this forecast's cells."""
        seen: dict[float, float] = {}

        def value_at(y: float) -> float:
            if y not in seen:
                seen[y] = self._value(y)
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
    """Whether values rise (1), fall (-1), or neither (0), or one clear sentence."""
    steps = np.diff(values)
    # rounding may break what is monotone
    steps[np.abs(steps) <= ROUNDING * np.maximum(values[1:], values[:-1])] = 0.0
    rises, falls = bool((steps > 0.0).any()), bool((steps < 0.0).any())
    if rises and falls:
        turn = int(np.flatnonzero(steps * (1.0 if steps.sum() < 0.0 else -1.0) > 0.0)[0])
        raise ValueError(_not_monotone(f"{values[turn]:g} then {values[turn + 1]:g}, and the opposite elsewhere"))
    if (falls and so_far > 0) or (rises and so_far < 0):
        raise ValueError(_not_monotone("one that did otherwise before"))
    return int(rises) - int(falls) or so_far


def _not_monotone(got: str) -> str:
    return f"expected a value that never falls or never rises with the outcome, got {got}"
