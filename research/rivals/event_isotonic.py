"""Isotonic rivals for events.

The past is kept sorted by the base forecast, a yes before a no of the same probability.  An isotonic fit is the slope
of the lower convex hull of the points (k, number of yes among the first k); its value at one place is the slope of the
hull's edge there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque

import numpy as np

from research.rivals.base import Array, EventRival


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

    def _hull(self) -> Array:
        """Return the number of yes among the first k, for k from 0 on."""
        counts = np.zeros(len(self._yes) + 1)
        np.cumsum(np.frombuffer(self._yes, dtype=np.int8), out=counts[1:])
        return counts


class IsotonicCalibration(_SortedPast):
    """Isotonic regression of past outcomes on base forecasts, refitted after each outcome.

        p' = f(p),    f the increasing function with the least sum of (y_t - f(p_t))^2

    linear between past probabilities, and constant beyond them.  Before any outcome p itself is issued.  There is no
    prior: where all outcomes so far were alike the forecast is certain.

    Reference: Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", KDD.
    """

    def _probability(self, p: float) -> float:
        given = self._given
        if not given:
            return p
        hull = self._hull()
        k = bisect_left(given, p)
        after = given[min(k, len(given) - 1)]
        before = after if after <= p or k == 0 else given[k - 1]
        ends = [edge(hull, bisect_left(given, at), bisect_right(given, at)) for at in sorted({before, after})]
        share = 0.0 if after <= before else (p - before) / (after - before)
        return ends[0] + share * (ends[-1] - ends[0])


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
        hull = self._hull()
        i, j = bisect_left(self._given, p), bisect_right(self._given, p)
        return edge(hull, i, j, 0), edge(hull, i, j, 1)

    def _probability(self, p: float) -> float:
        if not self._given:
            return p
        no, yes = self.both(p)
        return yes / (1.0 - no + yes)


def edge(hull: Array, i: int, j: int, y: int | None = None) -> float:
    """Slope of the lower hull of the points (k, hull[k]), k <= i or k >= j, across the gap from i to j.

    With an outcome y in the gap the points from j on are one further to the right, and y higher.  For a line of some
    slope the lowest points on both sides are found, and their own slope is tried next; if it was excluded before, the
    interval is halved.
    """
    places = np.arange(hull.size, dtype=np.float64)
    right, up = (0, 0) if y is None else (1, y)
    low, high, slope = -1.0, 2.0, 0.5
    while True:
        below = hull - slope * places
        a, b = int(below[: i + 1].argmin()), j + int(below[j:].argmin())
        steepness = (hull.item(b) - hull.item(a) + up) / (b - a + right)
        if steepness == slope or high - low < 1e-13:
            return steepness
        low, high = (slope, high) if steepness > slope else (low, slope)
        slope = steepness if low < steepness < high else 0.5 * (low + high)
