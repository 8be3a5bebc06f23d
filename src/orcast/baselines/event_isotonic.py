"""Isotonic methods for events: the probability rises with the expert's, and is otherwise what was seen.

The past is kept sorted by the expert's probability, a yes before a no of the same probability.  An isotonic fit is the
slope of the lower convex hull of the points (k, number of yes among the first k), and its value at one place is the
slope of the hull's edge there: the line below all points on both sides that touches both.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque

import numpy as np
from numpy.typing import NDArray

from orcast.baselines.events import EventBaseline
from orcast.spaces.base import whole


class _SortedPast(EventBaseline):
    """An event method that keeps the past sorted, all of it or the last so many rounds."""

    def __init__(self, *, window: int | None = 5000) -> None:
        super().__init__()
        self.window = None if window is None else whole(window, "rounds in the window", 1, 10**9)
        self._given = array("d")
        self._yes = array("b")
        self._latest: deque[tuple[float, int]] = deque()

    def _learn(self, p: float, y: int, then: None) -> None:
        k = (bisect_left if y else bisect_right)(self._given, p)
        self._given.insert(k, p)
        self._yes.insert(k, y)
        if self.window is not None:
            self._latest.append((p, y))
            if len(self._latest) > self.window:
                p, y = self._latest.popleft()
                k = bisect_left(self._given, p) if y else bisect_right(self._given, p) - 1
                del self._given[k]
                del self._yes[k]

    def _hull(self) -> NDArray[np.float64]:
        """How many yes are among the first k, for k from 0 on."""
        counts = np.zeros(len(self._yes) + 1)
        np.cumsum(np.frombuffer(self._yes, dtype=np.int8), out=counts[1:])
        return counts

    def _described(self) -> str:
        return f"window={self.window}"


class IsotonicProbabilities(_SortedPast):
    """Isotonic regression of the outcomes so far on the expert's probabilities, refitted after each outcome.

        p' = f(p),    f the increasing function with the least sum of (y_t - f(p_t))^2

    linear between the probabilities seen so far, and constant beyond them.  Before any outcome p itself is issued.  It
    has no prior: where all outcomes so far were alike it is sure of the next.

    Of the last `window` rounds, which bounds cost and state (22 bytes a round), or of all with None.  Only the value
    that is issued is worked out, in a few passes over the past.

    Reference: Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", KDD.

    >>> from orcast.baselines import IsotonicProbabilities
    >>> iso = IsotonicProbabilities()
    >>> for p, y in [(0.2, 0), (0.4, 1), (0.6, 0), (0.8, 1)]:     # 0.4 and 0.6 are pooled
    ...     q = iso.predict(p); iso.update(y)
    >>> [round(float(iso.predict(p)), 6) for p in (0.1, 0.3, 0.5, 0.9)]
    [0.0, 0.25, 0.5, 1.0]
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
    """Venn-Abers prediction (Vovk and Petej, 2014): isotonic regression with the next outcome in it, as a no and a yes.

        p0 = f0(p), f0 the isotonic fit of the past and (p, no);    p1 = f1(p), that of the past and (p, yes)
        p' = p1 / (1 - p0 + p1)

    One of p0 and p1 is calibrated if rounds are exchangeable; p' is the single probability whose log loss is closest
    to that of the right one at worst.  Before any outcome p0 = 0 and p1 = 1, but p itself is issued.  It is the
    inductive version: the expert is taken as it is, and all rounds are for calibration.

    Of the last `window` rounds, which bounds cost and state (22 bytes a round), or of all with None.  Both fits are
    exact in each round, in a few passes over the past.

    References: Vovk and Petej (2014), "Venn-Abers predictors", UAI; Vovk, Petej and Fedorova (2015), "Large-scale
    probabilistic predictors with and without guarantees of validity", NeurIPS.

    >>> from orcast.baselines import VennAbers
    >>> venn = VennAbers()
    >>> for p, y in [(0.2, 0), (0.4, 1), (0.6, 0), (0.8, 1)]:
    ...     q = venn.predict(p); venn.update(y)
    >>> venn.both(0.7), float(venn.predict(0.7))
    ((0.3333333333333333, 1.0), 0.6)
    """

    def both(self, forecast: object) -> tuple[float, float]:
        """The two fits p0 and p1 at an expert's probability."""
        return self._both(self._read(forecast))

    def _both(self, p: float) -> tuple[float, float]:
        hull = self._hull()
        i, j = bisect_left(self._given, p), bisect_right(self._given, p)
        return edge(hull, i, j, 0), edge(hull, i, j, 1)

    def _probability(self, p: float) -> float:
        if not self._given:
            return p
        no, yes = self._both(p)
        return yes / (1.0 - no + yes)


def edge(hull: NDArray[np.float64], i: int, j: int, y: int | None = None) -> float:
    """The slope of the lower hull of the points (k, hull[k]), k <= i or k >= j, across the gap from i to j.

    With an outcome y between, those from j on lie one further to the right, and y higher.  For a line of some slope
    the lowest points on both sides are found, and their own slope is the next to try; as long as it is on the wrong
    side of one tried before, halves are.
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
