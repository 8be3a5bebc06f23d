"""Bound on how often an outcome costs more than a multiple of its expected value (paper, appendix E)."""

from __future__ import annotations

import math
from collections.abc import Callable

from orcast.decisions import ROUNDING, check_quantity, expected_value
from orcast.forecasts import Forecast
from orcast.spaces.base import single
from orcast.validation import number, short

# Above this factor the level 1 - 1/r is too close to 1.
LARGEST_FACTOR = 1e9


class ValueCheck:
    """Measure how often an outcome's value exceeds r times its expectation (paper, appendix E: Markov's inequality).

    Parameters
    ----------
    r
        Factor, above 1.

    Notes
    -----
    `share` is the measured #{ t : v_t(y_t) > r E_{p_t} v_t(y) } / T for monotone values v_t >= 0; `bound` = 1/r bounds
    it if the forecasts are quantile calibrated. On any sequence and for any forecasts the share is at most

        allowed  =  #{ t : y_t > q_{1 - 1/r}(p_t) } / T  =  1/r + calibration error of that quantile

    with y_t < q_{1/r}(p_t) in rounds in which v_t falls (docs/theory.md has the proof).

    Examples
    --------
    >>> import orcast as oc
    >>> check = oc.paper.ValueCheck(r=1.5)
    >>> for y in (0.2, 0.7, 0.8, 0.9):
    ...     check.update(oc.Forecast([0], [1], [1]), y, lambda y: y)
    >>> check.share, round(check.bound, 3), check.allowed
    (0.5, 0.667, 0.75)
    """

    def __init__(self, r: float) -> None:
        self.r = number(r, "r")
        if not 1.0 < self.r <= LARGEST_FACTOR:
            raise ValueError(f"expected a number above 1, at most {LARGEST_FACTOR:g}, as r, got {short(r)}")
        self.rounds = 0
        self.exceeded = 0
        self._beyond = 0  # outcomes beyond the relevant quantile

    def update(self, forecast: Forecast, y: float, value: Callable[[float], float], *, falls: bool = False) -> None:
        """Count a forecast and its outcome.

        Parameters
        ----------
        forecast
            Forecast of the outcome.
        y
            Outcome.
        value
            Value of an outcome in this round, at least 0, which never falls as the outcome rises.
        falls
            True if it never rises instead.
        """
        check_quantity(forecast)
        outcome = single(y)

        def value_at(y: float) -> float:
            return number(value(y), f"value of {y:g}", 0.0)

        quantile = float(forecast.quantile(1.0 / self.r if falls else 1.0 - 1.0 / self.r))
        beyond = outcome < quantile if falls else outcome > quantile
        # a quadrature may miss a step, the quantile does not
        threshold = max(self.r * expected_value(forecast, value_at), value_at(quantile))
        exceeded = value_at(outcome) > threshold * (1.0 + ROUNDING)
        if exceeded and not beyond:
            way = "rises" if falls else "falls"
            raise ValueError(f"expected a value that never {way} with the outcome, got {value_at(outcome):g} at {y:g}")
        self._beyond += beyond
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
        return self._beyond / self.rounds if self.rounds else math.nan
