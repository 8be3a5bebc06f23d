"""Decisions from forecasts: the best action, and what to commit to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import FiniteForecast, Forecast
from orcast.payoffs.decisions import one_number, takes_features
from orcast.validation import number, short

Array = NDArray[np.float64]

# Values that differ by less than this share are equal but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Decision:
    """An action, its expected utility, and the expected utilities of all actions, in the order given.

        expected = max_a E_{y ~ p} u(a, y, x)    (paper, section 3), up to rounding

    >>> import orcast as oc
    >>> cost = lambda action, y: -0.25 if action == "take" else -1.0 * y
    >>> found = oc.decisions.best_action(oc.forecasts.BinaryForecast(0.5), ["take", "leave"], cost)
    >>> found.action, found.expected, found.expectations
    ('take', -0.25, (-0.25, -0.5))
    """

    action: Any
    expected: float
    actions: tuple[Any, ...]
    expectations: tuple[float, ...]


def best_action(
    forecast: Forecast | FiniteForecast, actions: Iterable[Any], utility: Callable[..., float], x: Any = None
) -> Decision:
    """The action with the largest expected utility (paper, section 3: the Bayes optimal action).

        argmax_a E_{y ~ p} u(a, y, x)

    `utility(action, y)` or `utility(action, y, x)` is called with one outcome at a time.  On quantities the
    expectation is a quadrature over the cells (`Forecast.expect`), elsewhere a sum over them.  Of actions that are
    equally good, but for rounding, the first is taken.

    >>> import orcast as oc
    >>> from orcast.decisions import best_action
    >>> umbrella = lambda action, y: -0.2 if action == "take" else -1.0 * y
    >>> best_action(oc.forecasts.BinaryForecast(0.25), ["take", "leave"], umbrella).action
    'take'
    """
    if not isinstance(forecast, (Forecast, FiniteForecast)):
        raise TypeError(f"expected a forecast such as predict returns, got {short(forecast)}")
    if not callable(utility):
        raise TypeError(f"expected utility(action, outcome) or utility(action, outcome, x), got {short(utility)}")
    if isinstance(actions, str):
        raise TypeError(f"expected a sequence of actions, got {short(actions)}")
    try:
        several = tuple(actions)
    except TypeError:
        raise TypeError(f"expected a sequence of actions, got {short(actions)}") from None
    if not several:
        raise ValueError("expected at least one action, got none")
    with_features = takes_features(utility)

    def worth_of(action: Any) -> float:
        def worth(y: Any) -> float:
            value = utility(action, y, x) if with_features else utility(action, y)
            if isinstance(value, float) and math.isfinite(value):
                return value
            return one_number(value, f"utility of {action!r}")

        return expected_value(forecast, worth)

    expectations = tuple(map(worth_of, several))
    most = max(expectations)
    best = next(i for i, each in enumerate(expectations) if most - each <= ROUNDING * max(abs(most), abs(each)))
    return Decision(several[best], expectations[best], several, expectations)


def commitment(forecast: Forecast, under: float, over: float) -> float:
    """Amount to commit to, when each unit too little costs `under` and each too much `over`.

        argmin_a E_{y ~ p} [ under (y - a)^+ + over (a - y)^+ ],  the quantile at under / (under + over)

    the smallest of several.  This is the newsvendor's problem, and with under = 1 + lambda, over = 1 - lambda that of
    the paper's wind farm.

    >>> import orcast as oc
    >>> from orcast.decisions import commitment
    >>> commitment(oc.Forecast([0, 1], [1, 4], [0.25, 0.75]), under=1, over=1)
    2.0
    """
    check_quantity(forecast)
    short_of, beyond = number(under, "under", 0.0, 1e100), number(over, "over", 0.0, 1e100)
    if short_of + beyond == 0.0:
        raise ValueError("expected a cost of at least one side, got none")
    level = short_of / (short_of + beyond)
    amount = float(forecast.quantile(level))
    if not math.isfinite(amount):
        raise ValueError(f"expected costs on both sides where outcomes have no bound, got {under!r} and {over!r}")
    return amount


def expected_value(forecast: Forecast | FiniteForecast, function: Callable[[Any], float]) -> float:
    """E[function(y)] for a function of one outcome."""
    if isinstance(forecast, Forecast):
        return forecast.expect(lambda points: [function(y) for y in points.tolist()])
    return forecast.expect(function)


def check_quantity(forecast: object) -> None:
    """Refuse anything but a forecast of a quantity."""
    if not isinstance(forecast, Forecast):
        raise TypeError(f"expected a forecast of a quantity such as predict returns, got {short(forecast)}")
