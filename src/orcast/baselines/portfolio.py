"""Tracked quantiles by betting: a universal portfolio of two assets for each level."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln

from orcast.baselines.offsets import ErrorTracking
from orcast.baselines.quantity import Array
from orcast.forecasts.ordered import PERCENTS
from orcast.validation import number

# The logarithm of what a double can hold, and some room for a factor.
_MOST = 600.0


class UniversalPortfolioTracking(ErrorTracking):
    """Quantile tracking by a universal portfolio, without any rate (UP-OCP; Liu, Dobriban and Orabona, 2026).

    The offset of the quantile Q_a is a bet on its errors e = a - 1{s <= offset}, s = y - Q_a, with all that was won:

        wealth <- wealth + offset e,    offset = wealth (b / (1 - a) - (1 - b) / a),    b in [0, 1]

    which is what the share b of the wealth earns in an asset that pays 1 / (1 - a) in rounds with s > offset, and the
    rest in one that pays 1 / a in the others.  Cover's portfolio, a mean over all constant shares by their wealth, has
    a closed form on such assets: after m misses (s > offset) and k hits, from a prior Beta(u, v) of the share on,

        b = (m + u) / (m + k + u + v),    wealth = first B(m + u, k + v) / (B(u, v) (1 - a)^m a^k)

    with the beta function B.  Wealth explodes as the frequency of hits leaves a, and an offset beyond all scores brings
    it back: with |s| <= B on any sequence |frequency - a| is of order sqrt(log(B t / first) / t).

    `prior="centred"` is (u, v) = (1 - a, a), which starts with no bet; "jeffreys" is (1/2, 1/2), Cover and
    Ordentlich's, which at first bets on a frequency of one half.  `first` is in the unit of y, or else for each level
    the first |s| above 0, so that nothing depends on the unit: until then offsets are 0, and rounds are not counted.
    The state is of constant size.

    Late outcomes overlap as bets: many misses may be counted before an offset answers the first of them, and wealth
    then overshoots by far.  The paper's summary has nothing about delays.

    Reference: "Online conformal prediction via universal portfolio algorithms", arXiv:2602.03168.  Of the paper only
    the summary was at hand: the two assets and the closed form are derived here from the pinball loss, and its prior
    and first wealth may be others.

    >>> import orcast as oc
    >>> from orcast.baselines import UniversalPortfolioTracking
    >>> up = UniversalPortfolioTracking(0, 10, levels=[0.25, 0.75])
    >>> p = up.predict(oc.Normal(5, 0)); up.update(7)               # above both, by 2
    >>> up.offset.round(3).tolist()                                 # b = 1.75 / 2 and 1.25 / 2, wealth 2 as at first
    [1.333, 4.0]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        prior: str = "centred",
        first: float | None = None,
    ) -> None:
        super().__init__(low, high, levels)
        if prior not in ("centred", "jeffreys"):
            raise ValueError(f'expected "centred" or "jeffreys" as prior, got {prior!r}')
        self.prior = prior
        self.first = None if first is None else number(first, "first wealth", 1e-300, 1e300)
        a = self._quantity.levels
        self._misses, self._hits = np.zeros((2, a.size))
        self._first = np.full(a.size, 0.0 if self.first is None else self.first)
        if self.first is not None:
            self._offset = self._bet()

    def _moved(self, scores: Array, error: Array) -> Array:
        self._first = np.where(self._first > 0.0, self._first, np.abs(scores))
        self._misses += (error > 0.0) & (self._first > 0.0)
        self._hits += (error < 0.0) & (self._first > 0.0)
        return self._bet()

    def _bet(self) -> Array:
        a = self._quantity.levels
        u, v = (1.0 - a, a) if self.prior == "centred" else (0.5, 0.5)
        m, k = self._misses + u, self._hits + v
        log_wealth = betaln(m, k) - betaln(u, v) - self._misses * np.log1p(-a) - self._hits * np.log(a)
        share = m / (m + k)
        bet: Array = self._first * np.exp(np.minimum(log_wealth, _MOST)) * (share / (1.0 - a) - (1.0 - share) / a)
        return bet

    def _described(self) -> str:
        first = "first as seen" if self.first is None else f"first={self.first:g}"
        return f"{self.levels.size} levels, {self.prior} prior, {first}"
