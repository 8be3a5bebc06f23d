"""Metrics of probabilities of events and labels, over arrays and running."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import binary_probability
from orcast.forecasts import LabelForecast, forecast_on
from orcast.metrics.arrays import Vector, as_count, as_numbers
from orcast.scores import Brier, Score
from orcast.spaces import Binary, FiniteSpace, Labels

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


def internal_regret(p: ArrayLike, y: ArrayLike, score: Score | None = None, *, grid: int | None = None) -> float:
    """What could have been gained by another forecast in all rounds of one forecast, the largest such gain.

        max_{i,j} 1/T sum_t 1{p_t = p_i} ( score(p_i, y_t) - score(p_j, y_t) )

    i and j run over the forecasts that occur: a probability of 1 each, or a row of probabilities of labels each, where
    y holds the places of the labels. Forecasts are equal if they are the same numbers; with `grid` = N they are first
    taken to the nearest multiples of 1/N. The score is the Brier score unless another proper one is given.

    A calibrated forecaster has little of it: for a score from 0 to B it is at most B C_T, where C_T = sum_i (T_i / T)
    || frequencies of the outcomes given p_i - p_i ||_1 (paper, appendix D, lemma 1, whose sum lacks the 1/T and whose
    factor 2 is not needed). It is 0 if no change of this kind would have paid.

    Reference: Foster and Vohra (1999), "Regret in the on-line decision problem", Games and Economic Behavior 29.

    Examples:
        >>> internal_regret([0.25, 0.25, 0.75, 0.75], [1, 1, 1, 0])
        0.25
        >>> internal_regret([0.25, 0.25, 0.75, 0.75], [1, 0, 1, 0])
        0.0
    """
    prob = as_numbers(p, "probabilities")
    space: FiniteSpace
    rule = Brier() if score is None else score
    if not isinstance(rule, Score):
        raise TypeError(f"expected a score such as Brier() or LogScore(), got {score!r}")
    if prob.ndim == 2:
        outcomes = as_numbers(y, "outcomes")
        brier(prob, outcomes)  # says what is wrong with them
        mass, space = prob, Labels(range(max(prob.shape[1], 1)))
    else:
        prob, outcomes = _binary_rounds(prob, y)
        mass, space = np.column_stack((1.0 - prob, prob)), Binary()
    rule.check(space)
    if grid is not None:
        mass = _nearest_multiples(mass, as_count(grid, "a grid of at least 1"))
    if not len(mass):
        return float("nan")
    return _internal_regret(mass, outcomes.astype(np.intp), rule, space)


def _nearest_multiples(mass: Vector, grid: int) -> Vector:
    """Rows of multiples of 1/grid that sum to one, nearest to some: by largest remainders."""
    places = grid * mass
    whole = np.floor(places)
    rank = np.argsort(np.argsort(whole - places, axis=1, kind="stable"), axis=1)
    return np.asarray((whole + (rank < (grid - whole.sum(axis=1))[:, None])) / grid)


def _internal_regret(mass: Vector, places: NDArray[np.intp], score: Score, space: FiniteSpace) -> float:
    different, which = np.unique(mass, axis=0, return_inverse=True)
    count, cells = different.shape
    seen = np.bincount(which.ravel() * cells + places, minlength=count * cells).reshape(count, cells)
    issued = [forecast_on(space, row) for row in different]
    losses = np.array([[score(each, space.value(k)) for k in range(cells)] for each in issued])
    most = 0.0
    for rows in np.array_split(np.arange(count), -(-count // 1000)):
        # the loss of each of these forecasts in its own rounds, and of every other one there
        table = seen[rows] @ losses.T
        own = (seen[rows] * losses[rows]).sum(axis=1)
        most = max(most, float((own - table.min(axis=1)).max()))
    return most / len(mass)


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
