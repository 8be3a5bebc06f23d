"""Decisions from forecasts: the best action, and the amount to commit to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import FiniteForecast, Forecast
from orcast.payoffs.decisions import checked_actions, one_number, takes_features
from orcast.validation import number, short

Array = NDArray[np.float64]

# Values that differ by less than this share are equal but for rounding.
ROUNDING = 1e-12


class Decision(NamedTuple):
    """Best action under a forecast, and its expected utility.

    Attributes
    ----------
    action
        Best action.
    expected
        Its expected utility, max_a E_{y ~ p} u(a, y, x) up to rounding (paper, section 3).

    Examples
    --------
    >>> import orcast as oc
    >>> gain = lambda action, y: y if action == "bet" else 0
    >>> found = oc.decisions.best_action(oc.forecasts.BinaryForecast(0.5), ["bet", "wait"], gain)
    >>> found.action, found.expected
    ('bet', 0.5)
    """

    action: Any
    expected: float


def best_action(
    forecast: Forecast | FiniteForecast, actions: Iterable[Any], utility: Callable[..., float], x: Any = None
) -> Decision:
    """Choose the action with the largest expected utility, the first of several equal ones.

    Parameters
    ----------
    forecast
        Forecast of the outcome, as `predict` returns it.
    actions
        Actions to choose from.
    utility
        Function (action, y) or (action, y, x) of one outcome at a time.
    x
        Features, passed to the utility.

    Returns
    -------
    Decision
        The best action and its expected utility.

    Raises
    ------
    ValueError
        If there is no action, or a utility is not a finite number.

    Notes
    -----
    The Bayes optimal action (paper, section 3) is

        argmax_a E_{y ~ p} u(a, y, x)

    On quantities the expectation is a quadrature over the cells (`Forecast.expect`), elsewhere a sum over them.

    Examples
    --------
    >>> import orcast as oc
    >>> umbrella = lambda action, y: -0.25 if action == "take" else -1.0 * y
    >>> oc.decisions.best_action(oc.forecasts.BinaryForecast(0.5), ["take", "leave"], umbrella)
    Decision(action='take', expected=-0.25)
    """
    if not isinstance(forecast, (Forecast, FiniteForecast)):
        raise TypeError(f"expected a forecast such as predict returns, got {short(forecast)}")
    several = checked_actions(actions, utility)
    with_features = takes_features(utility)

    def worth_of(action: Any) -> float:
        def worth(y: Any) -> float:
            value = utility(action, y, x) if with_features else utility(action, y)
            if isinstance(value, float) and math.isfinite(value):
                return value
            return one_number(value, f"utility of {action!r}")

        return expected_value(forecast, worth)

    expectations = [worth_of(action) for action in several]
    most = max(expectations)
    best = next(i for i, each in enumerate(expectations) if most - each <= ROUNDING * max(abs(most), abs(each)))
    return Decision(several[best], expectations[best])


def commitment(forecast: Forecast, under: float, over: float) -> float:
    """Choose the amount to commit to, given linear costs of shortage and surplus.

    Parameters
    ----------
    forecast
        Forecast of a quantity.
    under
        Cost of each unit committed too little.
    over
        Cost of each unit committed too much.

    Returns
    -------
    float
        The optimal amount, the smallest of several.

    Notes
    -----
    The amount minimises the expected cost of the newsvendor problem:

        argmin_a E_{y ~ p} [ under (y - a)^+ + over (a - y)^+ ],  the quantile at under / (under + over)

    With under = 1 + lambda and over = 1 - lambda it is that of the paper's wind farm.

    Examples
    --------
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
    """Expectation of a function of one outcome."""
    if isinstance(forecast, Forecast):
        return forecast.expect(lambda points: [function(y) for y in points.tolist()])
    return forecast.expect(function)


def check_quantity(forecast: object) -> None:
    """Refuse anything but a forecast of a quantity."""
    if not isinstance(forecast, Forecast):
        raise TypeError(f"expected a forecast of a quantity such as predict returns, got {short(forecast)}")
