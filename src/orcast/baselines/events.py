"""Methods for events: yes or no."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from orcast.adapters import binary_probability
from orcast.baselines.base import Baseline
from orcast.forecasts import BinaryForecast
from orcast.spaces import Binary
from orcast.spaces.base import whole
from orcast.validation import number

Array = NDArray[np.float64]

# Log odds have no end, so probabilities are kept off 0 and 1 first ...
_NO, _YES = 0.001, 0.999
# ... and the coefficients of log odds within this distance of 0.
_RADIUS = 100.0


class EventBaseline(Baseline):
    """A method for an event; what it reads of an expert is a probability."""

    def _read(self, forecast: object) -> Any:
        return binary_probability(forecast)

    def _outcome(self, y: object) -> int:
        return int(Binary().outcome(y))

    def _issue(self, read: Any) -> BinaryForecast:
        return BinaryForecast(self._probability(read))

    @abstractmethod
    def _probability(self, read: Any) -> float:
        """The recalibrated probability."""


class OnlinePlatt(EventBaseline):
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
        super().__init__()
        self.curvature = number(curvature, "curvature", 1e-6, 1e6)
        self.slope, self.shift = 1.0, 0.0
        start = self.curvature**-2
        self._matrix = (start, 0.0, start)

    def _read(self, forecast: object) -> float:
        return _log_odds(super()._read(forecast))

    def _probability(self, odds: float) -> float:
        return _scaled(odds, self.slope, self.shift)

    def _now(self) -> tuple[float, float]:
        return self.slope, self.shift

    def _learn(self, odds: float, y: int, then: tuple[float, float]) -> None:
        shift = _scaled(odds, *then) - y
        slope = shift * odds
        a, b, c = self._matrix
        a, b, c = self._matrix = a + slope * slope, b + slope * shift, c + shift * shift
        step = 1.0 / (self.curvature * (a * c - b * b))
        self.slope -= step * (c * slope - b * shift)
        self.shift -= step * (a * shift - b * slope)
        size = math.hypot(self.slope, self.shift)
        if size > _RADIUS:
            self.slope, self.shift = self.slope * _RADIUS / size, self.shift * _RADIUS / size

    def _described(self) -> str:
        return f"slope={self.slope:.4g}, shift={self.shift:.4g}"


def _log_odds(p: float) -> float:
    p = min(max(p, _NO), _YES)
    return math.log(p / (1.0 - p))


def _scaled(odds: float, slope: float, shift: float) -> float:
    return float(expit(slope * odds + shift))


class HistogramBinning(EventBaseline):
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
        super().__init__()
        self.bins = whole(bins, "bins", 1, 1_000_000)
        self._frequencies = Frequencies(self.bins)

    def _probability(self, p: float) -> float:
        return self._frequencies.at(p)

    def _learn(self, p: float, y: int, then: None) -> None:
        self._frequencies.add(p, y)

    def _described(self) -> str:
        return f"bins={self.bins}"


class Frequencies:
    """How often it was a yes, in bins of equal width of some probability, which is a prior of one round."""

    def __init__(self, bins: int) -> None:
        self.counts = [0] * bins
        self.sums = [0] * bins

    def at(self, p: float) -> float:
        """The frequency in p's bin."""
        k = self._bin(p)
        return (self.sums[k] + p) / (self.counts[k] + 1)

    def add(self, p: float, y: int) -> None:
        """Count an outcome in p's bin."""
        k = self._bin(p)
        self.counts[k] += 1
        self.sums[k] += y

    def _bin(self, p: float) -> int:
        return min(int(p * len(self.counts)), len(self.counts) - 1)


class PlattCalibeating(OnlinePlatt):
    """Online Platt scaling, calibeaten (TOPS): the frequency so far of a yes in the bin of what Platt scaling says.

        q = what OnlinePlatt says,    p' = (sum of y in q's bin + q) / (rounds in q's bin + 1)

    over `bins` bins of equal width; the q is a prior of one round.  Bins are those of what
    Platt scaling said in the rounds, whatever it would say of them later.  The authors' other version (HOPS) issues
    random forecasts to be calibrated against anyone; this one is not random.  The state is seven numbers, and two a
    bin.

    References: Gupta and Ramdas (2023), "Online Platt scaling with calibeating", ICML; Foster and Hart (2023),
    "Calibeating: beating forecasters at their own game", Theoretical Economics 18.

    >>> from orcast.baselines import PlattCalibeating
    >>> tops = PlattCalibeating()
    >>> for y in [0, 1, 0, 0] * 200:                              # 1 in 4, but the expert forecasts 4 in 5
    ...     p = tops.predict(0.8); tops.update(y)
    >>> round(float(tops.predict(0.8)), 2)
    0.25
    """

    def __init__(self, *, bins: int = 10, curvature: float = 0.1) -> None:
        super().__init__(curvature=curvature)
        self.bins = whole(bins, "bins", 1, 1_000_000)
        self._frequencies = Frequencies(self.bins)

    def _probability(self, odds: float) -> float:
        return self._frequencies.at(super()._probability(odds))

    def _learn(self, odds: float, y: int, then: tuple[float, float]) -> None:
        self._frequencies.add(_scaled(odds, *then), y)
        super()._learn(odds, y, then)

    def _described(self) -> str:
        return f"{super()._described()}, bins={self.bins}"


class BetaCalibration(EventBaseline):
    """Beta calibration as the outcomes come: logistic regression on log p and log(1 - p), by online Newton steps.

        p' = 1 / (1 + exp(-(a log(p) - b log(1 - p) + c))),    a, b >= 0
        g = (p' - y) (log(p), -log(1 - p), 1),    A <- A + g g^T,    (a, b, c) <- (a, b, c) - A^-1 g / curvature

    from a = b = 1, c = 0 and A = I / curvature^2 on, with p first kept within [0.001, 0.999].  Unlike Platt scaling it
    can be the identity near 0 and something else near 1.  Where a or b would fall below 0 the nearest coefficients in
    the norm of A are taken that do not, so the map increases; coefficients beyond 100 in size are shrunk.  The paper
    fits once, by maximum likelihood; the steps are those of `OnlinePlatt`, which Gupta and Ramdas use for it too.
    The state is twelve numbers.

    References: Kull, Silva Filho and Flach (2017), "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers", AISTATS; Gupta and Ramdas (2023), "Online Platt
    scaling with calibeating", ICML.

    >>> from orcast.baselines import BetaCalibration
    >>> beta = BetaCalibration()
    >>> for y in [0, 1, 0, 0] * 50:                               # 1 in 4, but the expert forecasts 4 in 5
    ...     p = beta.predict(0.8); beta.update(y)
    >>> round(float(beta.predict(0.8)), 2)
    0.25
    """

    def __init__(self, *, curvature: float = 0.1) -> None:
        super().__init__()
        self.curvature = number(curvature, "curvature", 1e-6, 1e6)
        self._weights = np.array([1.0, 1.0, 0.0])
        self._inverse = np.eye(3) * self.curvature**2

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """a, b and c, now."""
        a, b, c = self._weights.tolist()
        return a, b, c

    def _read(self, forecast: object) -> Array:
        p = min(max(super()._read(forecast), _NO), _YES)
        return np.array([math.log(p), -math.log1p(-p), 1.0])

    def _probability(self, x: Array) -> float:
        return float(expit(x @ self._weights))

    def _now(self) -> Array:
        return self._weights  # made anew in each round

    def _learn(self, x: Array, y: int, then: Array) -> None:
        g = (float(expit(x @ then)) - y) * x
        h = self._inverse @ g
        self._inverse = self._inverse - np.outer(h, h) / (1.0 + g @ h)
        weights = _not_negative(self._weights - self._inverse @ g / self.curvature, self._inverse)
        self._weights = weights * min(1.0, _RADIUS / max(float(np.linalg.norm(weights)), 1e-300))

    def _described(self) -> str:
        return "a={:.4g}, b={:.4g}, c={:.4g}".format(*self.coefficients)


def _not_negative(weights: Array, inverse: Array) -> Array:
    """The nearest to some weights whose first two are not negative, in the norm of a matrix whose inverse is given."""
    if (weights[:2] >= 0.0).all():
        return weights
    for zero in ([0], [1], [0, 1]):
        force = np.linalg.solve(inverse[np.ix_(zero, zero)], -weights[zero])
        moved = weights + inverse[:, zero] @ force
        moved[zero] = 0.0
        if (force >= 0.0).all() and (moved[:2] >= 0.0).all():
            break
    return np.asarray(moved)


class EventGradientEquilibrium(EventBaseline):
    """A shift of the log odds by online gradient steps of constant size, which takes the bias away.

        p' = 1 / (1 + exp(-(logit(p) + shift))),    shift <- shift - rate (p' - y)

    from 0 on, with p first kept within [0.001, 0.999]; p' - y is the slope of the log loss.  The steps add up, so on
    any sequence, with no delay,

        |mean of p' - y over T rounds| = |shift| / (rate T)

    and the shift itself grows no faster than a logarithm, because a forecast that is nearly sure moves little when it
    is right.  That is no bias on the whole; what is wrong at some probabilities and not at others stays wrong.  (A
    shift of p itself, by the slope of the squared loss, would leave [0, 1].)  The state is one number.

    Reference: Angelopoulos, Jordan and Tibshirani (2025), "Gradient equilibrium in online learning: theory and
    applications", arXiv:2501.08330.

    >>> from orcast.baselines import EventGradientEquilibrium
    >>> shifted = EventGradientEquilibrium(rate=0.5)
    >>> p = shifted.predict(0.75); shifted.update(0)
    >>> shifted.shift
    -0.375
    """

    def __init__(self, *, rate: float = 0.05) -> None:
        super().__init__()
        self.rate = number(rate, "rate", 1e-12, 1e6)
        self.shift = 0.0

    def _read(self, forecast: object) -> float:
        return _log_odds(super()._read(forecast))

    def _probability(self, odds: float) -> float:
        return _scaled(odds, 1.0, self.shift)

    def _now(self) -> float:
        return self.shift

    def _learn(self, odds: float, y: int, then: float) -> None:
        self.shift -= self.rate * (_scaled(odds, 1.0, then) - y)

    def _described(self) -> str:
        return f"rate={self.rate:g}, shift={self.shift:.4g}"
