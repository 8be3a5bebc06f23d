"""Isotonic rivals for events.

The past is kept sorted by the base forecast, a yes before a no of the same probability, so that ties are pooled.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque

import numpy as np
from scipy.optimize import isotonic_regression

from research.rivals.base import EventRival


class _SortedPast(EventRival):
    """Event method that keeps the last `window` rounds sorted by the base forecast."""

    def __init__(self, *, window: int = 5000) -> None:
        super().__init__()
        self.window = window
        self._given = array("d")
        self._yes = array("b")
        self._latest: deque[tuple[float, int]] = deque()

    def _observe(self, p: float, then: None, y: int) -> None:
        k = (bisect_left if y else bisect_right)(self._given, p)
        self._given.insert(k, p)
        self._yes.insert(k, y)
        self._latest.append((p, y))
        if len(self._latest) > self.window:
            p, y = self._latest.popleft()
            k = bisect_left(self._given, p) if y else bisect_right(self._given, p) - 1
            del self._given[k]
            del self._yes[k]


class IsotonicCalibration(_SortedPast):
    """Isotonic regression of past outcomes on base forecasts, refitted after each outcome.

        p' = f(p),    f the increasing function with the least sum of (y_t - f(p_t))^2

    linear between past probabilities, and constant beyond them.  Before any outcome p itself is issued.  There is no
    prior: where all outcomes so far were alike the forecast is certain.

    Reference: Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", KDD.
    """

    def _probability(self, p: float) -> float:
        if not self._given:
            return p
        return float(np.interp(p, self._given, isotonic_regression(self._yes).x))


class VennAbers(_SortedPast):
    """Venn-Abers prediction (Vovk and Petej, 2014): isotonic regression with the next outcome, as a no and as a yes.

        p0 = f0(p), f0 the isotonic fit of the past and (p, no);    p1 = f1(p), that of the past and (p, yes)
        p' = p1 / (1 - p0 + p1)

    One of p0 and p1 is calibrated if rounds are exchangeable; p' minimises the worst regret in log loss.  Before any
    outcome p itself is issued.  This is the inductive version: all rounds are for calibration.

    References: Vovk and Petej (2014), "Venn-Abers predictors", UAI; Vovk, Petej and Fedorova (2015), "Large-scale
    probabilistic predictors with and without guarantees of validity", NeurIPS.
    """

    def both(self, p: float) -> tuple[float, float]:
        """Return the two fits p0 and p1 at a probability."""
        past, places = np.array(self._yes), (bisect_right(self._given, p), bisect_left(self._given, p))
        no, yes = (isotonic_regression(np.insert(past, k, y)).x[k] for y, k in enumerate(places))
        return float(no), float(yes)

    def _probability(self, p: float) -> float:
        if not self._given:
            return p
        no, yes = self.both(p)
        return yes / (1.0 - no + yes)
