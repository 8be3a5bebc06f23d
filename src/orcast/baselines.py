"""What practitioners use today to recalibrate forecasts as they come, to compare with or to use instead.

Every class has `predict(forecast)` and `update(y)` of a `Recalibrator`; one round is pending at a time, and a new
`predict` replaces it.  None of them comes with a certificate.

An expert's forecast of a quantity, whatever it is, is read off at 0.01, 0.02, ..., 0.99 and is linear in the normal
score of the level in between and beyond, as `Quantiles` are; below level 0 and above level 1 are the bounds.
What is issued is made in the same way from quantiles at the method's levels.

Where the outcome meets an atom of the expert its PIT is not a number but a jump.  The k-th time this happens the place
(k x golden ratio) modulo 1 of the jump is taken, which is as even as a random PIT, and repeatable.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections import deque
from contextlib import suppress
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr, ndtri

from orcast.adapters import REACH, Quantiles, binary_probability, expert_row, quantiles_at
from orcast.forecasts import BinaryForecast, Forecast
from orcast.forecasts.ordered import PERCENTS
from orcast.spaces import Binary, Interval, normal_scores
from orcast.spaces.base import single, whole
from orcast.validation import number

Array = NDArray[np.float64]

# With so many cells the levels of an interval are the percents.
_CELLS = 116
_SCORES: Array = ndtri(PERCENTS)
_MEDIAN = 49
# Levels at which tails are issued, beside the method's own levels and the percents.
_TAILS = np.array([1e-6, 1e-5, 1e-4, 1e-3, 3e-3])
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Jumps of less are rounding.
_ROUNDING = 1e-9
# The rates of a mixture, from nearly still to nimble.
_RATES = tuple(0.001 * 2.0**k for k in range(8))
# Log odds have no end, so probabilities are kept off 0 and 1 first ...
_NO, _YES = 0.001, 0.999
# ... and the coefficients of log odds within this distance of 0.
_RADIUS = 100.0


# --- experts, and what is issued ---


class _QuantileBaseline:
    """What the methods for a quantity share: bounds, levels, how experts are read and forecasts issued."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        self.space = Interval(low, high, cells=_CELLS)
        self.low, self.high = self.space.low, self.space.high
        self.levels = Quantiles(levels, np.zeros(np.size(levels))).levels
        self.grid = np.unique(np.concatenate((_TAILS, PERCENTS, 1.0 - _TAILS, self.levels)))
        self.mass = np.diff(self.grid, prepend=0.0, append=1.0)
        self.ties = 0

    def read(self, forecast: object) -> Array:
        """The expert's percents, increasing; those beyond the bounds still tell of its shape."""
        row = self._own_quantiles(forecast, PERCENTS)
        if row is None:  # a cdf, or else it is refused
            with np.errstate(over="ignore"):
                row, _ = expert_row(forecast, self.space)
        return self._within_reach(row)

    def read_at_levels(self, forecast: object) -> Array:
        """The same at the method's own levels, which the percents may miss."""
        row = self._own_quantiles(forecast, self.levels)
        return _quantile(self.read(forecast), self.levels) if row is None else self._within_reach(row)

    def _own_quantiles(self, forecast: object, levels: Array) -> Array | None:
        """What the expert itself says at the levels; None if it has a cdf alone."""
        with np.errstate(over="ignore"), suppress(TypeError):
            return quantiles_at(forecast, levels)
        return None

    def _within_reach(self, row: Array) -> Array:
        reach = REACH * (self.high - self.low)
        return np.sort(np.clip(row, self.low - reach, self.high + reach))

    def outcome(self, y: object) -> float:
        """The outcome as a float within the bounds, or one clear sentence."""
        return number(single(y), "outcome", self.low, self.high)

    def quantile(self, row: Array, levels: Array) -> Array:
        """The expert's quantiles at any levels, within the bounds; beyond [0, 1] the bounds."""
        q = np.clip(_quantile(row, levels), self.low, self.high)
        q[levels <= 0.0] = self.low
        q[levels >= 1.0] = self.high
        return q

    def jump(self, row: Array, y: float) -> tuple[float, float]:
        """The two ends of the expert's PIT of y, equal where there is no atom."""
        start = 0.0 if y <= self.low else _level(row, y, "left")
        stop = 1.0 if y >= self.high else _level(row, y, "right")
        return start, stop

    def pit(self, row: Array, y: float) -> float:
        """The PIT of y, somewhere in its jump; counts the jump."""
        start, stop = self.jump(row, y)
        if stop - start <= _ROUNDING:
            return stop
        self.ties += 1
        return start + (self.ties * _GOLDEN) % 1.0 * (stop - start)

    def issue(self, values: Array) -> Forecast:
        """A forecast with these quantiles at the levels, sorted and kept within the bounds."""
        own = Quantiles(self.levels, np.clip(values, self.low, self.high))  # it sorts them
        return self.on_grid(own.at_scores(normal_scores(self.grid)))

    def on_grid(self, q: Array) -> Forecast:
        """A forecast with these quantiles at the levels of the grid."""
        q = np.maximum.accumulate(np.clip(q, self.low, self.high))
        edges = np.concatenate(([self.low], q, [self.high]))
        return Forecast.trusted(edges[:-1], edges[1:], self.mass, None)


def _quantile(row: Array, levels: Array) -> Array:
    """The quantiles at any levels, of which those at the percents are given."""
    z = ndtri(np.clip(levels, 1e-300, 1.0 - 2.0**-53))
    q: Array = np.interp(z, _SCORES, row)
    for end, neighbour, beyond in ((0, 1, z < _SCORES[0]), (-1, -2, z > _SCORES[-1])):
        if row[end] != row[neighbour]:
            slope = (row[end] - row[_MEDIAN]) / _SCORES[end]
            q[beyond] = row[end] + (z[beyond] - _SCORES[end]) * slope
    return q


def _level(row: Array, y: float, side: str) -> float:
    """The lowest level whose quantile is at least y ("left"), or the highest whose quantile is at most y ("right")."""
    k = int(np.searchsorted(row, y, side=side))  # type: ignore[call-overload]
    if 0 < k < row.size:
        before, after = row.item(k - 1), row.item(k)
        share = (y - before) / (after - before)
        return float(ndtr(_SCORES[k - 1] + share * (_SCORES[k] - _SCORES[k - 1])))
    end, neighbour = (0, 1) if k == 0 else (-1, -2)
    if row[end] == row[neighbour]:  # an atom, with nothing beyond it
        return float(k > 0)
    away = (y - row.item(end)) / (row.item(end) - row.item(_MEDIAN))
    return float(ndtr(_SCORES.item(end) * (1.0 + away)))


class _QuantityMethod:
    """What the methods for a quantity share: one pending round, which holds the expert's row."""

    def __init__(self, low: float, high: float, levels: ArrayLike = PERCENTS) -> None:
        self._quantity = _QuantileBaseline(low, high, levels)
        self.rounds = 0
        self._row: Array | None = None

    @property
    def levels(self) -> Array:
        """The levels whose quantiles are kept calibrated."""
        return self._quantity.levels.copy()

    def predict(self, forecast: object) -> Forecast:
        """Recalibrate one forecast; the round is then pending."""
        row = self._read(forecast)
        p = self._issue(row)
        self._row = row
        return p

    def update(self, y: float) -> None:
        """Settle the pending round by its outcome."""
        row = _pending(self._row)
        self._learn(row, self._quantity.outcome(y))
        self._row = None
        self.rounds += 1

    def _read(self, forecast: object) -> Array:
        return self._quantity.read(forecast)

    def __repr__(self) -> str:
        q = self._quantity
        return f"{type(self).__name__}({q.low:g}, {q.high:g}, {self._described()}, rounds={self.rounds})"

    def _described(self) -> str:
        """The options, in short."""
        raise NotImplementedError

    def _issue(self, row: Array) -> Forecast:
        raise NotImplementedError

    def _learn(self, row: Array, y: float) -> None:
        raise NotImplementedError


_Kept = TypeVar("_Kept")


def _pending(kept: _Kept | None) -> _Kept:
    """What the pending round holds, or one clear sentence if there is none."""
    if kept is None:
        raise ValueError("expected a pending round, got none")
    return kept


# --- quantities ---


class Isotonic(_QuantityMethod):
    """Isotonic recalibration (Kuleshov, Fenner and Ermon, 2018), refitted after each outcome.

    The frequency of PITs at or below each PIT so far is regressed on that PIT, isotonically, and the expert is asked at
    the levels that so far had the frequencies wanted:

        R(PIT_t) ~ #{s: PIT_s <= PIT_t} / n,    quantile at a = expert's quantile at R^-1(a)

    The frequencies already increase with the PITs, so there is nothing to pool: R is the empirical distribution
    function itself, linear in between.  No regression has to be run; the k-th smallest PIT stands at k / (n + 1) rather
    than k / n, because the next outcome may lie beyond all so far, and (0, 0) and (1, 1) are the ends.  Equal PITs make
    a jump of R.  Before any outcome R is the identity.

    `window` keeps the last so many PITs only.  Without it all are kept: the state grows by 8 bytes a round.  A round
    takes O(log n) steps to find the place of the new PIT, and a move of up to n numbers in memory to insert it.

    Reference: "Accurate uncertainties for deep learning using calibrated regression", ICML 2018.

    >>> import orcast as oc
    >>> from orcast.baselines import Isotonic
    >>> iso = Isotonic(0, 10)
    >>> for y in (6.0, 6.5, 7.0):                       # the expert is too low
    ...     p = iso.predict(oc.Normal(5, 1)); iso.update(y)
    >>> iso.predict(oc.Normal(5, 1)).quantile([0.25, 0.5, 0.75]).round(6).tolist()
    [6.0, 6.5, 7.0]
    """

    def __init__(self, low: float, high: float, *, window: int | None = None) -> None:
        super().__init__(low, high)
        self.window = None if window is None else whole(window, "rounds in the window", 1, 10**9)
        self._sorted = array("d")
        self._latest: deque[float] = deque()

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.on_grid(self._quantity.quantile(row, self._asked(self._quantity.grid)))

    def _learn(self, row: Array, y: float) -> None:
        pit = self._quantity.pit(row, y)
        insort(self._sorted, pit)
        if self.window is not None:
            self._latest.append(pit)
            if len(self._latest) > self.window:
                del self._sorted[bisect_left(self._sorted, self._latest.popleft())]

    def _asked(self, levels: Array) -> Array:
        """R^-1."""
        n = len(self._sorted)
        if n == 0:
            return levels
        pits = np.frombuffer(self._sorted)
        place = levels * (n + 1)
        k = np.minimum(place.astype(np.intp), n)
        below = np.where(k > 0, pits[np.maximum(k - 1, 0)], 0.0)
        above = np.where(k < n, pits[np.minimum(k, n - 1)], 1.0)
        asked: Array = below + (place - k) * (above - below)
        return asked

    def _described(self) -> str:
        return f"window={self.window}"


class ConformalLevels(_QuantityMethod):
    """Adaptive conformal inference (Gibbs and Candes, 2021), for each level by itself.

    The expert is asked at alpha_a for the quantile at level a:

        alpha_a <- alpha_a + rate (a - 1{PIT <= alpha_a})

    from alpha_a = a on.  Where the expert has no atom at y the indicator is 1{y <= expert's quantile at alpha_a}.
    Beyond [0, 1], where no PIT lies, the bounds are issued, so alpha_a stays in [-rate, 1 + rate] and

        |frequency of PIT <= alpha_a  -  a|  <=  (max(a, 1 - a) + rate) / (rate T)

    on any sequence.  Where the expert is much too narrow, or far off, alpha_a passes 0 or 1 again and again, and
    generous bounds are then a dear answer.  Quantiles at different levels may cross by about one step; they are sorted
    before they are issued, and each level goes on by its own.  The state is of constant size.

    Reference: "Adaptive conformal inference under distribution shift", NeurIPS 2021.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalLevels
    >>> aci = ConformalLevels(0, 10, levels=[0.25, 0.75], rate=0.1)
    >>> p = aci.predict(oc.Normal(5, 1)); aci.update(5.5)        # below the upper quartile, above the lower
    >>> aci.asked.round(3).tolist()
    [0.275, 0.725]
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, rate: float = 0.005) -> None:
        super().__init__(low, high, levels)
        self.rate = number(rate, "rate", 1e-12, 1e12)
        self._asked = self._quantity.levels.copy()

    @property
    def asked(self) -> Array:
        """At which level the expert is asked for each of the levels, now."""
        return self._asked.copy()

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(self._quantity.quantile(row, self._asked))

    def _learn(self, row: Array, y: float) -> None:
        pit = self._quantity.pit(row, y)
        self._asked += self.rate * (self._quantity.levels - (pit <= self._asked))

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}"


class ConformalMixture(_QuantityMethod):
    """Adaptive conformal inference with several rates at once, the better of late counting more (DtACI).

    For each level a, and each rate r_i, alpha_i follows `ConformalLevels`; the expert is asked at their weighted
    mean.  The weights fall with the pinball loss of alpha_i as a forecast of the PIT, and are mixed a little, so that
    none is lost for good:

        w_i <- (1 - s) w_i exp(-eta pinball_a(alpha_i, PIT)) / W + s / K,    W the sum of the numerators,  s = 1 / (2 I)

    K rates, I = `horizon` rounds over which the best rate may stay the same, and eta as the authors take it, which
    for uniform PITs comes to sqrt(3 (log(K I) + 2) / I) / (a (1 - a)).  Quantiles are sorted before they are issued.
    The state is of constant size.

    Reference: Gibbs and Candes (2024), "Conformal inference for online prediction with arbitrary distribution shifts",
    JMLR 25.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalMixture
    >>> mix = ConformalMixture(0, 10, levels=[0.25, 0.75])
    >>> for _ in range(500):                                      # the expert is too low
    ...     p = mix.predict(oc.Normal(4, 1)); mix.update(5)
    >>> mix.predict(oc.Normal(4, 1)).quantile([0.25, 0.75]).round(1).tolist()
    [5.0, 5.0]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rates: ArrayLike = _RATES,
        horizon: int = 100,
    ) -> None:
        super().__init__(low, high, levels)
        several = np.ravel(np.asarray(rates, dtype=object)).tolist()
        self.rates = tuple(number(rate, "rate", 1e-12, 1e12) for rate in several)
        if not self.rates:
            raise ValueError("expected at least one rate, got none")
        self.horizon = whole(horizon, "rounds as horizon", 1, 10**9)
        a, k = self._quantity.levels, len(self.rates)
        self._eta = math.sqrt(3.0 * (math.log(k * self.horizon) + 2.0) / self.horizon) / (a * (1.0 - a))
        self._alphas = np.tile(a, (k, 1))
        self._weights = np.full((k, a.size), 1.0 / k)

    @property
    def asked(self) -> Array:
        """At which level the expert is asked for each of the levels, now."""
        return np.asarray((self._weights * self._alphas).sum(axis=0))

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(self._quantity.quantile(row, self.asked))

    def _learn(self, row: Array, y: float) -> None:
        pit = self._quantity.pit(row, y)
        a = self._quantity.levels
        e = pit - self._alphas
        loss = self._eta * np.maximum(a * e, (a - 1.0) * e)
        weights = self._weights * np.exp(loss.min(axis=0) - loss)
        mixed = 0.5 / self.horizon
        self._weights = (1.0 - mixed) * weights / weights.sum(axis=0) + mixed / len(self.rates)
        self._alphas += np.array(self.rates)[:, None] * (a - (pit <= self._alphas))

    def _described(self) -> str:
        return f"{self.levels.size} levels, {len(self.rates)} rates, horizon={self.horizon}"


class ConformalPID(_QuantityMethod):
    """Quantile tracking with an integral term (Angelopoulos, Candes and Tibshirani, 2023).

    To the expert's quantile Q_a at level a an offset is added, which follows the errors e = a - 1{s <= offset} of the
    scores s = y - Q_a:

        track <- track + rate range(s) e                               the proportional part, from 0 on
        offset = track + integral max|s| tan(log(t + 1) sum(e) / (saturation (t + 1)))

    range(s) and max|s| are those of the last `window` scores, the newest included, so that nothing depends on the
    unit of y.  The tangent counts as infinite from pi/2 on, where the bounds are issued: with an integral above 0 the
    frequency of s <= offset therefore differs from a by at most (saturation pi/2 (t + 1) / log(t + 1) + 1) / t from the
    third round on, whatever comes.  `integral=0` is plain quantile tracking.  The third part, a forecast of the
    scores by another model, is left out.

    The scores are in units of y and not of the expert's spread: they are one-sided scores of conformalised quantile
    regression, as the authors use them, and an expert may well have no spread at all.  Scores and errors are those of
    quantiles that may lie beyond the bounds, so outcomes on a bound do not drive the offset away.  Quantiles are sorted
    before they are issued.  The state is of constant size: `window` scores for each level.

    Reference: "Conformal PID control for time series prediction", NeurIPS 2023.

    >>> import orcast as oc
    >>> from orcast.baselines import ConformalPID
    >>> pid = ConformalPID(0, 10, levels=[0.25, 0.75], integral=0)
    >>> for y in (6.0, 8.0):                                       # two scores are 2 apart; both were above
    ...     p = pid.predict(oc.Normal(5, 0)); pid.update(y)
    >>> pid.predict(oc.Normal(5, 0)).quantile([0.25, 0.75]).round(6).tolist()
    [5.05, 5.15]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rate: float = 0.1,
        integral: float = 1.0,
        saturation: float = 5.0,
        window: int = 100,
    ) -> None:
        super().__init__(low, high, levels)
        self.rate = number(rate, "rate", 0.0, 1e12)
        self.integral = number(integral, "integral", 0.0, 1e12)
        self.saturation = number(saturation, "saturation", 1e-12, 1e12)
        self.window = whole(window, "rounds in the window", 1, 1_000_000)
        count = self._quantity.levels.size
        self._track = np.zeros(count)
        self._errors = np.zeros(count)
        self._offset = np.zeros(count)
        self._scores = np.empty((0, count))

    @property
    def offset(self) -> Array:
        """What is added to the expert's quantile at each of the levels, now."""
        return self._offset.copy()

    def _read(self, forecast: object) -> Array:
        return _quantile(super()._read(forecast), self._quantity.levels)

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(row + self._offset)

    def _learn(self, row: Array, y: float) -> None:
        scores = y - row
        error = self._quantity.levels - (scores <= self._offset)
        self._scores = np.concatenate((self._scores[max(len(self._scores) + 1 - self.window, 0) :], scores[None]))
        self._track += self.rate * (self._scores.max(axis=0) - self._scores.min(axis=0)) * error
        self._errors += error
        self._offset = self._track + self._integral_part(self.rounds + 1)

    def _integral_part(self, rounds: int) -> Array:
        if self.integral == 0.0:
            return np.zeros_like(self._errors)
        angle = self._errors * math.log(rounds + 1) / (self.saturation * (rounds + 1))
        gain = self.integral * np.abs(self._scores).max(axis=0)
        inside = np.abs(angle) < 0.5 * math.pi
        return np.where(inside, gain * np.tan(np.where(inside, angle, 0.0)), np.copysign(np.inf, angle))

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}, integral={self.integral:g}"


class MultiLevelTracking(_QuantityMethod):
    """Quantile tracking at many levels at once, kept in order by isotonic regression (MultiQT).

    To the expert's quantiles Q offsets are added, which follow the errors of what was played:

        q = the increasing sequence nearest to Q + offset,    offset_a <- offset_a + step (a - 1{y <= q_a})
        step = max(rate x the 90% quantile of |y - Q_a| over all levels of the last `window` rounds, least)

    `late` rounds after its own a round teaches, as if its outcome became known only then: h - 1 for forecasts h steps
    ahead, each step with a game of its own.  As with `ConformalPID` errors are those of quantiles that may lie beyond
    the bounds.  `least`, in the unit of y, moves the offsets on where the expert was exact.  The state is of constant
    size: `window` scores for each level, and `late` rounds.

    Reference: Ding, Gibbs and Tibshirani (2025), "Calibrated multi-level quantile forecasting", arXiv:2512.23671.

    >>> import orcast as oc
    >>> from orcast.baselines import MultiLevelTracking
    >>> tracking = MultiLevelTracking(0, 10, levels=[0.25, 0.75])
    >>> p = tracking.predict(oc.Normal(5, 0)); tracking.update(7)   # above both, by 2
    >>> tracking.predict(oc.Normal(5, 0)).quantile([0.25, 0.75]).round(6).tolist()
    [5.05, 5.15]
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        levels: ArrayLike = PERCENTS,
        rate: float = 0.1,
        window: int = 50,
        least: float = 0.0,
        late: int = 0,
    ) -> None:
        super().__init__(low, high, levels)
        self.rate = number(rate, "rate", 0.0, 1e12)
        self.window = whole(window, "rounds in the window", 1, 1_000_000)
        self.least = number(least, "least step", 0.0, 1e300)
        self.late = whole(late, "rounds until an outcome is known", 0, 1_000_000)
        self._offset = np.zeros(self._quantity.levels.size)
        self._sizes: deque[Array] = deque(maxlen=self.window)
        self._waiting: deque[tuple[Array, Array]] = deque()

    @property
    def offset(self) -> Array:
        """What is added to the expert's quantile at each of the levels, now."""
        return self._offset.copy()

    def _read(self, forecast: object) -> Array:
        return self._quantity.read_at_levels(forecast)

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.issue(_increasing(row + self._offset))

    def _learn(self, row: Array, y: float) -> None:
        error = self._quantity.levels - (y <= _increasing(row + self._offset))
        self._waiting.append((error, np.abs(y - row)))
        if len(self._waiting) > self.late:
            error, size = self._waiting.popleft()
            self._sizes.append(size)
            step = max(self.rate * float(np.quantile(np.concatenate(self._sizes), 0.9)), self.least)
            self._offset = self._offset + step * error

    def _described(self) -> str:
        return f"{self.levels.size} levels, rate={self.rate:g}, late={self.late}"


def _increasing(values: Array) -> Array:
    """The increasing sequence nearest in squares: neighbours that fall are pooled into blocks of (mean, size)."""
    if (values[1:] >= values[:-1]).all():
        return values
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, size = value, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])


# --- yes or no ---


class OnlinePlatt:
    """Platt scaling as the outcomes come: logistic regression on the expert's log odds, by online Newton steps.

        p' = 1 / (1 + exp(-(slope logit(p) + shift))),    g = (p' - y) (logit(p), 1)
        A <- A + g g^T,    (slope, shift) <- (slope, shift) - A^-1 g / curvature

    from slope 1, shift 0 and A = I / curvature^2 on, with p first kept within [0.001, 0.999].  Its log loss is within
    O(log T) of that of the best slope and shift in hindsight.  (The theorem projects onto a ball in the norm of A; here
    coefficients beyond 100 in size are shrunk, which takes data that are separated for long.)  The state is seven
    numbers.

    References: Platt (1999), "Probabilistic outputs for support vector machines"; Gupta and Ramdas (2023), "Online
    Platt scaling with calibeating", ICML.

    >>> from orcast.baselines import OnlinePlatt
    >>> platt = OnlinePlatt()
    >>> for y in [0, 1, 0, 0] * 50:                               # 1 in 4, but the expert forecasts 4 in 5
    ...     p = platt.predict(0.8); platt.update(y)
    >>> round(float(platt.predict(0.8)), 2)
    0.25
    """

    def __init__(self, *, curvature: float = 0.1) -> None:
        self.curvature = number(curvature, "curvature", 1e-6, 1e6)
        self.rounds = 0
        self.slope, self.shift = 1.0, 0.0
        start = self.curvature**-2
        self._matrix = (start, 0.0, start)
        self._odds: float | None = None

    def predict(self, forecast: object) -> BinaryForecast:
        """Recalibrate one probability, or whatever else has one; the round is then pending."""
        p = min(max(binary_probability(forecast), _NO), _YES)
        self._odds = math.log(p / (1.0 - p))
        return BinaryForecast(self._scaled(self._odds))

    def update(self, y: object) -> None:
        """Settle the pending round by its outcome, 0 or 1."""
        outcome = Binary().outcome(y)
        odds = _pending(self._odds)
        shift = self._scaled(odds) - outcome
        slope = shift * odds
        a, b, c = self._matrix
        a, b, c = self._matrix = a + slope * slope, b + slope * shift, c + shift * shift
        step = 1.0 / (self.curvature * (a * c - b * b))
        self.slope -= step * (c * slope - b * shift)
        self.shift -= step * (a * shift - b * slope)
        size = math.hypot(self.slope, self.shift)
        if size > _RADIUS:
            self.slope, self.shift = self.slope * _RADIUS / size, self.shift * _RADIUS / size
        self._odds = None
        self.rounds += 1

    def _scaled(self, odds: float) -> float:
        return float(expit(self.slope * odds + self.shift))

    def __repr__(self) -> str:
        return f"OnlinePlatt(slope={self.slope:.4g}, shift={self.shift:.4g}, rounds={self.rounds})"


class HistogramBinning:
    """The frequency so far of a yes in the bin of the expert's probability: histogram binning, or simple calibeating.

        p' = (sum of y in p's bin + p) / (rounds in p's bin + 1)

    over `bins` bins of equal width; the p is a prior of one round.  The state is two numbers a bin.

    References: Zadrozny and Elkan (2001), "Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers", ICML; Foster and Hart (2023), "Calibeating: beating forecasters at their own game",
    Theoretical Economics 18.

    >>> from orcast.baselines import HistogramBinning
    >>> binning = HistogramBinning(bins=10)
    >>> for y in (0, 0, 1):
    ...     p = binning.predict(0.75); binning.update(y)
    >>> float(binning.predict(0.75)), float(binning.predict(0.85))
    (0.4375, 0.85)
    """

    def __init__(self, *, bins: int = 15) -> None:
        self.bins = whole(bins, "bins", 1, 1_000_000)
        self.rounds = 0
        self._counts = [0] * self.bins
        self._sums = [0] * self.bins
        self._bin: int | None = None

    def predict(self, forecast: object) -> BinaryForecast:
        """Recalibrate one probability, or whatever else has one; the round is then pending."""
        p = binary_probability(forecast)
        self._bin = k = min(int(p * self.bins), self.bins - 1)
        return BinaryForecast((self._sums[k] + p) / (self._counts[k] + 1))

    def update(self, y: object) -> None:
        """Settle the pending round by its outcome, 0 or 1."""
        outcome = Binary().outcome(y)
        k = _pending(self._bin)
        self._counts[k] += 1
        self._sums[k] += outcome
        self._bin = None
        self.rounds += 1

    def __repr__(self) -> str:
        return f"HistogramBinning(bins={self.bins}, rounds={self.rounds})"
