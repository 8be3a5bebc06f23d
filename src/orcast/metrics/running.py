"""Running metrics: `update` with a forecast and its outcome, `get` the value so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from orcast.adapters import binary_probability, quantiles_at
from orcast.forecasts import LabelForecast
from orcast.metrics.arrays import (
    LEVELS,
    Vector,
    as_bounds,
    as_count,
    as_levels,
    as_numbers,
    indicators,
    label_brier,
    mean_pinball,
    midpoints,
)
from orcast.spaces import Binary

_BINARY = Binary()


class _Mean:
    """Mean over the rounds."""

    def __init__(self) -> None:
        self.rounds = 0
        self._total = 0.0

    def get(self) -> float:
        """Return the mean over the rounds so far; nan before the first."""
        return self._total / self.rounds if self.rounds else float("nan")

    def _count(self, score: float) -> None:
        self._total += score
        self.rounds += 1


def _checked(q: ArrayLike, y: float, levels: Vector) -> tuple[Vector, float]:
    """Check the quantiles of one forecast and its outcome."""
    row, outcome = as_numbers(q, "quantiles"), as_numbers(y, "the outcome")
    if row.shape != levels.shape:
        raise ValueError(f"expected {levels.size} quantiles, one for each level, got shape {row.shape}")
    if outcome.ndim != 0:
        raise ValueError(f"expected a single number for the outcome, got shape {outcome.shape}")
    return row, float(outcome)


class QCE:
    """Quantile calibration error over all rounds: squared gaps of frequency and level, summed over the levels.

        QCE = sum_a ( mean_t I_a(t) - a )^2,    I_a = 1{y <= q_a}, ties split (`fair_indicators`)

    Running `metrics.qce`; Kuleshov, Fenner and Ermon (2018).

    Parameters
    ----------
    levels : array-like
        Levels of the quantiles.
    low, high : float
        Bounds of the outcomes.

    Examples
    --------
    >>> metric = QCE([0.5])
    >>> for y in (-1.0, 1.0, 2.0, 3.0):
    ...     metric.update_quantiles([0.0], y)
    >>> metric.get()
    0.0625
    """

    def __init__(self, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf) -> None:
        self.levels = as_levels(levels)
        self.low, self.high = as_bounds(low, high)
        self.rounds = 0
        self._mid = midpoints(self.levels)
        self._total = np.zeros(self.levels.size)

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""
        self.update_quantiles(quantiles_at(forecast, self.levels), y)

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Add the forecast's quantiles at `self.levels` with the outcome."""
        row, outcome = _checked(q, y, self.levels)
        self._add(indicators(row, np.asarray(outcome), self.levels, self._mid, self.low, self.high))
        self.rounds += 1

    def get(self) -> float:
        """Return the error over all rounds so far; nan before the first."""
        return float(((self.frequencies() - self.levels) ** 2).sum())

    def frequencies(self) -> Vector:
        """Return the share of outcomes at or below the quantile, for each level."""
        return self._total / self.rounds if self.rounds else np.full(self.levels.size, np.nan)

    def _add(self, hits: Vector) -> None:
        self._total += hits


class RollingQCE(QCE):
    """Largest quantile calibration error over any `window` consecutive rounds so far; nan until one is full.

        max_s sum_a ( mean_{s < t <= s + window} I_a(t) - a )^2

    Running `metrics.worst_rolling_qce`; Kuleshov, Fenner and Ermon (2018).

    Examples
    --------
    >>> metric = RollingQCE(2, [0.5])
    >>> for y in (-1.0, -1.0, 2.0, 3.0, -1.0):
    ...     metric.update_quantiles([0.0], y)
    >>> metric.get(), metric.last()
    (0.25, 0.0)
    """

    def __init__(
        self, window: int = 200, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf
    ) -> None:
        super().__init__(levels, low=low, high=high)
        self.window = as_count(window, "a window of at least 1 round")
        self._gaps = np.zeros((self.window, self.levels.size))
        self._worst = float("nan")

    def get(self) -> float:
        """Return the error of the worst window so far; nan before the first is full."""
        return self._worst

    def last(self) -> float:
        """Return the error over the last window; nan before the first is full."""
        return float((self._gaps.mean(axis=0) ** 2).sum()) if self.rounds >= self.window else float("nan")

    def _add(self, hits: Vector) -> None:
        self._total += hits
        self._gaps[self.rounds % self.window] = hits - self.levels
        if self.rounds + 1 >= self.window:
            self._worst = float(np.fmax(self._worst, (self._gaps.mean(axis=0) ** 2).sum()))


class MeanPinball(_Mean):
    """Pinball loss averaged over levels and rounds.

        mean_t mean_a max( a (y - q_a), (a - 1) (y - q_a) )

    Running `metrics.pinball`; Koenker and Bassett (1978).

    Examples
    --------
    >>> metric = MeanPinball([0.25, 0.75])
    >>> metric.update_quantiles([1.0, 3.0], 2.0)
    >>> metric.get()
    0.25
    """

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        super().__init__()
        self.levels = as_levels(levels)

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""
        self.update_quantiles(quantiles_at(forecast, self.levels), y)

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Add the forecast's quantiles at `self.levels` with the outcome."""
        self._count(self._score(*_checked(q, y, self.levels)))

    def _score(self, q: Vector, y: float) -> float:
        return float(mean_pinball(q, np.asarray(y), self.levels))


class MeanCRPS(MeanPinball):
    """Continuous ranked probability score, averaged over the rounds; `orcast.CRPS` is the score of one forecast.

        mean_t int ( F(x) - 1{y <= x} )^2 dx

    Exact for a forecast with a method `crps(y)`, else twice the mean pinball loss of its quantiles.

    See `metrics.crps_ensemble`; Gneiting and Raftery (2007).

    Examples
    --------
    >>> metric = MeanCRPS([0.25, 0.75])
    >>> metric.update_quantiles([1.0, 3.0], 2.0)
    >>> metric.get()
    0.5
    """

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""
        crps = getattr(forecast, "crps", None)
        if crps is None:
            super().update(forecast, y)
        else:
            self._count(float(as_numbers(crps(float(as_numbers(y, "the outcome"))), "the forecast's CRPS")))

    def _score(self, q: Vector, y: float) -> float:
        return 2.0 * super()._score(q, y)


class _IntervalMean(MeanPinball):
    """Mean over the rounds of a score of one central interval."""

    def __init__(self, level: float = 0.9) -> None:
        if not 0.0 < level < 1.0:
            raise ValueError(f"expected a level strictly between 0 and 1, got {level!r}")
        self.level = float(level)
        super().__init__([(1 - self.level) / 2, (1 + self.level) / 2])


class Coverage(_IntervalMean):
    """Share of outcomes in the central interval with this level, ends included.

        mean_t 1{ q_{(1 - level)/2} <= y <= q_{(1 + level)/2} }

    An interval that ends on a point mass covers all of it; `QCE` splits such ties.

    References
    ----------
    Gneiting, Balabdaoui and Raftery (2007), "Probabilistic forecasts, calibration and sharpness", Journal of the Royal
    Statistical Society B 69.

    Examples
    --------
    >>> metric = Coverage(0.9)
    >>> for y in (0.5, 1.0, 2.0, 3.0):
    ...     metric.update_quantiles([0.0, 2.0], y)
    >>> metric.get()
    0.75
    """

    def _score(self, q: Vector, y: float) -> float:
        return float(q[0] <= y <= q[1])


class Width(_IntervalMean):
    """Mean width of the central interval with this level.

        mean_t ( q_{(1 + level)/2} - q_{(1 - level)/2} )

    See `Coverage`; Gneiting, Balabdaoui and Raftery (2007).

    Examples
    --------
    >>> metric = Width(0.9)
    >>> metric.update_quantiles([1.0, 3.0], 0.0)
    >>> metric.get()
    2.0
    """

    def _score(self, q: Vector, y: float) -> float:
        return float(q[1] - q[0])


class ECE:
    """Expected calibration error of probabilities, over equal-width bins.

        ECE = 1/T sum_b | sum_{t in b} (y_t - p_t) |

    A forecast is a probability, a `BinaryForecast`, or anything else that a recalibrator on `Binary` takes.

    Running `metrics.ece`; Naeini, Cooper and Hauskrecht (2015).

    Examples
    --------
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
        """Return the error over all rounds so far; nan before the first."""
        return sum(abs(gap) for gap in self._gaps) / self.rounds if self.rounds else float("nan")


class MeanBrier(_Mean):
    """Brier score of probabilities, averaged over the rounds; `orcast.Brier` is the score of one forecast.

        mean_t (p - y)^2    for yes or no,    mean_t sum_k (p_k - 1{k = y})^2    for labels

    A forecast is a `LabelForecast`, or whatever a recalibrator on `Binary` takes.

    Running `metrics.brier`; Brier (1950).

    Examples
    --------
    >>> metric = MeanBrier()
    >>> metric.update(0.75, 1)
    >>> metric.get()
    0.0625
    """

    def update(self, forecast: object, y: object) -> None:
        """Add one forecast with its outcome: 0 or 1, or a label."""
        if isinstance(forecast, LabelForecast):
            self._count(float(label_brier(forecast.mass, np.asarray(forecast.space.outcome(y)))))
        else:
            self._count((binary_probability(forecast) - _BINARY.outcome(y)) ** 2)
