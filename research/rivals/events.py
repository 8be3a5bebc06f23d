"""Rivals for events: Platt scaling, beta calibration, histogram binning, gradient equilibrium."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from research.rivals.base import Array, EventRival

_LEAST, _MOST = 0.001, 0.999  # probabilities are clipped to these before log odds are taken
_RADIUS = 100.0  # coefficients of log odds beyond are shrunk


def _log_odds(p: float) -> float:
    p = min(max(p, _LEAST), _MOST)
    return math.log(p / (1.0 - p))


def _scaled(odds: float, slope: float, shift: float) -> float:
    return float(expit(slope * odds + shift))


class OPS(EventRival):
    """Online Platt scaling: logistic regression on the base forecast's log odds, by online Newton steps.

        p' = 1 / (1 + exp(-(slope logit(p) + shift))),    g = (p' - y) (logit(p), 1)
        A <- A + g g^T,    (slope, shift) <- (slope, shift) - A^-1 g / curvature

    from slope 1, shift 0 and A = I / curvature^2 on, with p clipped to [0.001, 0.999].  Its log loss is within O(log T)
    of that of the best slope and shift in hindsight.  (The theorem projects onto a ball in the norm of A; here
    coefficients beyond 100 in size are shrunk.)

    References: Platt (1999), "Probabilistic outputs for support vector machines"; Gupta and Ramdas (2023), "Online
    Platt scaling with calibeating", ICML.
    """

    def __init__(self, *, curvature: float = 0.1) -> None:
        super().__init__()
        self.curvature = curvature
        self.slope, self.shift = 1.0, 0.0
        self._matrix = (curvature**-2, 0.0, curvature**-2)

    def _read(self, forecast: object) -> float:
        return _log_odds(super()._read(forecast))

    def _probability(self, odds: float) -> float:
        return _scaled(odds, self.slope, self.shift)

    def _snapshot(self) -> tuple[float, float]:
        return self.slope, self.shift

    def _observe(self, odds: float, then: tuple[float, float], y: int) -> None:
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


class Frequencies:
    """Frequency of an event in bins of equal width of a probability, which is a prior of one round."""

    def __init__(self, bins: int) -> None:
        self.counts, self.sums = [0] * bins, [0] * bins

    def at(self, p: float) -> float:
        """Frequency in the bin of p."""
        k = self._bin(p)
        return (self.sums[k] + p) / (self.counts[k] + 1)

    def add(self, p: float, y: int) -> None:
        """Count an outcome in the bin of p."""
        k = self._bin(p)
        self.counts[k] += 1
        self.sums[k] += y

    def _bin(self, p: float) -> int:
        return min(int(p * len(self.counts)), len(self.counts) - 1)


class HistogramBinning(EventRival):
    """Frequency of the event so far in the bin of the base forecast: histogram binning, or simple calibeating.

        p' = (sum of y in p's bin + p) / (rounds in p's bin + 1)

    over `bins` bins of equal width; the p is a prior of one round.

    References: Zadrozny and Elkan (2001), "Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers", ICML; Foster and Hart (2023), "Calibeating: beating forecasters at their own game",
    Theoretical Economics 18.

    >>> binning = HistogramBinning(bins=10)
    >>> for y in (0, 0, 1):
    ...     p = binning.predict(0.75); binning.update(y)
    >>> float(binning.predict(0.75)), float(binning.predict(0.85))
    (0.4375, 0.85)
    """

    def __init__(self, *, bins: int = 15) -> None:
        super().__init__()
        self._frequencies = Frequencies(bins)

    def _probability(self, p: float) -> float:
        return self._frequencies.at(p)

    def _observe(self, p: float, then: None, y: int) -> None:
        self._frequencies.add(p, y)


class TOPS(OPS):
    """Tracking online Platt scaling: the frequency of the event so far in the bin of OPS's probability.

        q = the probability of OPS,    p' = (sum of y in q's bin + q) / (rounds in q's bin + 1)

    over `bins` bins of equal width; the q is a prior of one round.  The authors' other version (HOPS) issues random
    forecasts; this one is deterministic.

    References: Gupta and Ramdas (2023), "Online Platt scaling with calibeating", ICML; Foster and Hart (2023),
    "Calibeating: beating forecasters at their own game", Theoretical Economics 18.
    """

    def __init__(self, *, bins: int = 10) -> None:
        super().__init__()
        self._frequencies = Frequencies(bins)

    def _probability(self, odds: float) -> float:
        return self._frequencies.at(super()._probability(odds))

    def _observe(self, odds: float, then: tuple[float, float], y: int) -> None:
        self._frequencies.add(_scaled(odds, *then), y)
        super()._observe(odds, then, y)


class BetaCalibration(EventRival):
    """Online beta calibration: logistic regression on log p and log(1 - p), by online Newton steps.

        p' = 1 / (1 + exp(-(a log(p) - b log(1 - p) + c))),    a, b >= 0
        g = (p' - y) (log(p), -log(1 - p), 1),    A <- A + g g^T,    (a, b, c) <- (a, b, c) - A^-1 g / curvature

    from a = b = 1, c = 0 and A = I / curvature^2 on, with p clipped to [0.001, 0.999].  Where a or b would fall below 0
    the nearest coefficients in the norm of A are taken that do not, so the map increases; coefficients beyond 100 in
    size are shrunk.  The paper fits once, by maximum likelihood; the steps are those of `OPS`, which Gupta and Ramdas
    use for it too.

    References: Kull, Silva Filho and Flach (2017), "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers", AISTATS; Gupta and Ramdas (2023), "Online Platt
    scaling with calibeating", ICML.
    """

    def __init__(self, *, curvature: float = 0.1) -> None:
        super().__init__()
        self.curvature = curvature
        self.coefficients = np.array([1.0, 1.0, 0.0])
        self._inverse = np.eye(3) * curvature**2

    def _read(self, forecast: object) -> Array:
        p = min(max(super()._read(forecast), _LEAST), _MOST)
        return np.array([math.log(p), -math.log1p(-p), 1.0])

    def _probability(self, x: Array) -> float:
        return float(expit(x @ self.coefficients))

    def _snapshot(self) -> Array:
        return self.coefficients  # a new array in each round

    def _observe(self, x: Array, then: Array, y: int) -> None:
        g = (float(expit(x @ then)) - y) * x
        h = self._inverse @ g
        self._inverse = self._inverse - np.outer(h, h) / (1.0 + g @ h)
        found = not_negative(self.coefficients - self._inverse @ g / self.curvature, self._inverse)
        self.coefficients = found * min(1.0, _RADIUS / max(float(np.linalg.norm(found)), 1e-300))


def not_negative(weights: Array, inverse: Array) -> Array:
    """Nearest weights whose first two are not negative, in the norm of the matrix with the given inverse."""
    if (weights[:2] >= 0.0).all():
        return weights
    for zero in ([0], [1], [0, 1]):
        force = np.linalg.solve(inverse[np.ix_(zero, zero)], -weights[zero])
        moved = weights + inverse[:, zero] @ force
        moved[zero] = 0.0
        if (force >= 0.0).all() and (moved[:2] >= 0.0).all():
            break
    return np.asarray(moved)
