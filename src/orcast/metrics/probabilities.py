"""Metrics of probabilities of events and labels, over arrays and running."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import binary_probability
from orcast.forecasts import LabelForecast
from orcast.metrics.arrays import Vector, as_count, as_numbers
from orcast.spaces import Binary

_BINARY = Binary()


def _binary_rounds(p: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector]:
    """Probabilities and outcomes 0 or 1 of one length, checked against one another."""
    prob, outcomes = as_numbers(p, "probabilities"), as_numbers(y, "outcomes")
    if prob.ndim != 1 or prob.shape != outcomes.shape:
        raise ValueError(f"expected one probability for each outcome, got shapes {prob.shape} and {outcomes.shape}")
    if not ((prob >= 0.0) & (prob <= 1.0)).all():
        raise ValueError(f"expected probabilities between 0 and 1, got {float(prob[(prob < 0) | (prob > 1)][0])!r}")
    if not ((outcomes == 0.0) | (outcomes == 1.0)).all():
        raise ValueError(f"expected outcomes 0 or 1, got {float(outcomes[(outcomes != 0) & (outcomes != 1)][0])!r}")
    return prob, outcomes


def ece(p: ArrayLike, y: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error of probabilities, over equal-width bins.

        ECE = 1/T sum_b | sum_{t in b} (y_t - p_t) |

    Bin b of B holds the probabilities in [b/B, (b+1)/B), the last one also 1.

    Reference: Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning", AAAI.

    Examples:
        >>> ece([0.25, 0.25, 0.75, 0.75], [0, 1, 1, 1], bins=2)
        0.25
    """
    prob, outcomes = _binary_rounds(p, y)
    count = as_count(bins, "at least 1 bin")
    if outcomes.size == 0:
        return float("nan")
    places = np.minimum((prob * count).astype(np.intp), count - 1)
    return float(np.abs(np.bincount(places, outcomes - prob, minlength=count)).sum()) / outcomes.size


def brier(p: ArrayLike, y: ArrayLike) -> Vector:
    """Brier score, one number for each outcome: of a probability each, or of a row of probabilities of labels each.

        (p - y)^2    and    sum_k (p_k - 1{k = y})^2

    With rows, y holds the places of the labels. Two labels score twice as much as the probability of one of them.

    Reference: Brier (1950), "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78.

    Examples:
        >>> brier([0.5, 0.75], [0, 1])
        array([0.25  , 0.0625])
        >>> brier([[0.5, 0.25, 0.25]], [0])
        array([0.375])
    """
    prob = as_numbers(p, "probabilities")
    if prob.ndim != 2:
        prob, outcomes = _binary_rounds(prob, y)
        return np.asarray((prob - outcomes) ** 2)
    outcomes = as_numbers(y, "outcomes")
    if outcomes.shape != prob.shape[:1]:
        raise ValueError(f"expected one row for each outcome, got shapes {prob.shape} and {outcomes.shape}")
    if not ((prob >= 0.0).all() and (np.abs(prob.sum(axis=1) - 1.0) <= 1e-6).all()):
        raise ValueError("expected rows of probabilities that are not negative and sum to 1, got others")
    places = outcomes.astype(np.intp)
    if not ((places == outcomes) & (places >= 0) & (places < prob.shape[1])).all():
        raise ValueError(f"expected places from 0 to {prob.shape[1] - 1} as outcomes, got others")
    return _brier(prob, places)


def _brier(p: Vector, k: NDArray[np.intp]) -> Vector:
    return np.asarray((p**2).sum(axis=-1) - 2.0 * np.take_along_axis(p, k[..., None], -1)[..., 0] + 1.0)


class ECE:
    """Expected calibration error of probabilities, over equal-width bins.

        ECE = 1/T sum_b | sum_{t in b} (y_t - p_t) |

    A forecast is a probability, a `BinaryForecast`, or anything else that a recalibrator on `Binary` takes.

    Reference: Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning", AAAI.

    Examples:
        >>> metric = ECE(bins=2)
        >>> for p, y in ((0.25, 0), (0.25, 1), (0.75, 1), (0.75, 1)):
        ...     metric.update(p, y)
        >>> metric.get()
        0.25
    """

    def __init__(self, bins: int = 15) -> None:
        self.bins = as_count(bins, "at least 1 bin")
        self.rounds = 0
        self._gaps = [0.0] * self.bins

    def update(self, forecast: object, y: object) -> None:
        """Add one forecast with its outcome, 0 or 1."""
        p, outcome = binary_probability(forecast), _BINARY.outcome(y)
        self._gaps[min(int(p * self.bins), self.bins - 1)] += outcome - p
        self.rounds += 1

    def get(self) -> float:
        """The error over all rounds so far; nan before the first."""
        return sum(abs(gap) for gap in self._gaps) / self.rounds if self.rounds else float("nan")


class MeanBrier:
    """Brier score of probabilities, averaged over the rounds; `orcast.Brier` is the score of one forecast.

        mean_t (p - y)^2    for yes or no,    mean_t sum_k (p_k - 1{k = y})^2    for labels

    A forecast is a `LabelForecast`, or whatever a recalibrator on `Binary` takes.

    Reference: Brier (1950), "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78.

    Examples:
        >>> metric = MeanBrier()
        >>> metric.update(0.75, 1)
        >>> metric.get()
        0.0625
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._total = 0.0

    def update(self, forecast: object, y: object) -> None:
        """Add one forecast with its outcome: 0 or 1, or a label."""
        if isinstance(forecast, LabelForecast):
            score = float(_brier(forecast.mass, np.asarray(forecast.space.outcome(y))))
        else:
            score = (binary_probability(forecast) - _BINARY.outcome(y)) ** 2
        self._total += score
        self.rounds += 1

    def get(self) -> float:
        """The mean score so far; nan before the first round."""
        return self._total / self.rounds if self.rounds else float("nan")
