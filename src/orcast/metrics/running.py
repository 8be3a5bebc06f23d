"""Running metrics of quantiles: `update` with a forecast and its outcome, `get` the value so far."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from orcast.adapters import quantiles_at
from orcast.metrics.arrays import (
    LEVELS,
    Vector,
    as_bounds,
    as_count,
    as_levels,
    as_number,
    as_row,
    counts_ties,
    indicators,
    mean_pinball,
    midpoints,
)


class _QuantileMetric(ABC):
    """A metric that looks at a forecast through its quantiles at fixed levels."""

    def __init__(self, levels: ArrayLike) -> None:
        self.levels = as_levels(levels)
        self.rounds = 0

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""
        self.update_quantiles(quantiles_at(forecast, self.levels), y)

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Add the forecast's quantiles at `self.levels` with the outcome."""
        row, outcome = as_row(q, self.levels.size), as_number(y, "the outcome")
        self._add(row, outcome)
        self.rounds += 1

    @abstractmethod
    def _add(self, q: Vector, y: float) -> None: ...


class _CalibrationMetric(_QuantileMetric):
    """Calibration of quantiles on a space that may have ends."""

    def __init__(self, levels: ArrayLike, low: float, high: float, ties: str = "fair") -> None:
        super().__init__(levels)
        self.low, self.high = as_bounds(low, high)
        self._fair = counts_ties(ties)
        self._mid = midpoints(self.levels)

    def _hits(self, q: Vector, y: float) -> Vector:
        return indicators(q, np.asarray(y), self.levels, self._mid, self.low, self.high, self._fair)


class QCE(_CalibrationMetric):
    """Quantile calibration error over all rounds: squared gaps of frequency and level, summed over levels.

        QCE = sum_a ( mean_t I_a(t) - a )^2,    I_a = 1{y <= q_a}, ties counted fairly (`fair_indicators`)

    `low` and `high` are the ends of the outcome space, if it has any: an outcome there ties with all that
    was put on it. ties="plain" takes the paper's indicator as it stands (see `qce`).

    Reference: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression", ICML; paper, section 3.

    Examples:
        >>> metric = QCE([0.5])
        >>> for y in (-1.0, 1.0, 2.0, 3.0):
        ...     metric.update_quantiles([0.0], y)
        >>> metric.get()
        0.0625
    """

    def __init__(
        self, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf, ties: str = "fair"
    ) -> None:
        super().__init__(levels, low, high, ties)
        self._total = np.zeros(self.levels.size)

    def get(self) -> float:
        """The error over all rounds so far; nan before the first."""
        return float(((self.frequencies() - self.levels) ** 2).sum())

    def frequencies(self) -> Vector:
        """How often the outcome was at or below the quantile, for each level (a reliability diagram)."""
        return self._total / self.rounds if self.rounds else np.full(self.levels.size, np.nan)

    def _add(self, q: Vector, y: float) -> None:
        self._total += self._hits(q, y)


class RollingQCE(_CalibrationMetric):
    """The largest quantile calibration error over any `window` consecutive rounds so far.

        max_s sum_a ( mean_{s < t <= s + window} I_a(t) - a )^2

    Its memory is one window, whatever the number of rounds. It is nan until the first window is full.

    Reference: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression", ICML; paper, section 3.

    Examples:
        >>> metric = RollingQCE(2, [0.5])
        >>> for y in (-1.0, -1.0, 2.0, 3.0, -1.0):
        ...     metric.update_quantiles([0.0], y)
        >>> metric.get(), metric.last()
        (0.25, 0.0)
    """

    def __init__(
        self, window: int = 200, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf
    ) -> None:
        super().__init__(levels, low, high)
        self.window = as_count(window, "a window of at least 1 round")
        self._gaps = np.zeros((self.window, self.levels.size))
        self._sum = np.zeros(self.levels.size)
        self._worst = float("nan")

    def get(self) -> float:
        """The worst window so far; nan before the first is full."""
        return self._worst

    def last(self) -> float:
        """The error over the last window; nan before the first is full."""
        return float(((self._sum / self.window) ** 2).sum()) if self.rounds >= self.window else float("nan")

    def _add(self, q: Vector, y: float) -> None:
        gap = self._hits(q, y) - self.levels
        slot = self.rounds % self.window
        self._sum += gap - self._gaps[slot]
        self._gaps[slot] = gap
        if slot == self.window - 1:
            self._sum = self._gaps.sum(axis=0)  # rounding errors of the running sum do not pile up
        if self.rounds + 1 >= self.window:
            self._worst = float(np.fmax(self._worst, ((self._sum / self.window) ** 2).sum()))


class _QuantileMean(_QuantileMetric):
    """The mean over the rounds of a score of the quantiles, or of one that the forecast itself gives."""

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        super().__init__(levels)
        self._total = 0.0

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""
        score = self._exact(forecast, y)
        if score is None:
            super().update(forecast, y)
        else:
            self._total += score
            self.rounds += 1

    def get(self) -> float:
        """The mean over the rounds so far; nan before the first."""
        return self._total / self.rounds if self.rounds else float("nan")

    def _add(self, q: Vector, y: float) -> None:
        self._total += self._score(q, y)

    def _exact(self, forecast: object, y: float) -> float | None:
        """The score without quantiles, if the forecast has what it takes."""
        return None

    @abstractmethod
    def _score(self, q: Vector, y: float) -> float: ...


class MeanPinball(_QuantileMean):
    """Pinball (quantile) loss, averaged over levels and rounds; `scores.QuantileScore` is the loss of one forecast.

        mean_t mean_a max( a (y - q_a), (a - 1) (y - q_a) )

    Reference: Koenker and Bassett (1978), "Regression quantiles", Econometrica 46.

    Examples:
        >>> metric = MeanPinball([0.25, 0.75])
        >>> metric.update_quantiles([1.0, 3.0], 2.0)
        >>> metric.get()
        0.25
    """

    def _score(self, q: Vector, y: float) -> float:
        return float(mean_pinball(q, np.asarray(y), self.levels))


class MeanCRPS(_QuantileMean):
    """Continuous ranked probability score, averaged over the rounds; `orcast.CRPS` is the score of one forecast.

        mean_t int ( F(x) - 1{y <= x} )^2 dx

    Exact for a forecast that has a method `crps(y)`; from quantiles it is `crps_quantiles`.

    Reference: Gneiting and Raftery (2007), "Strictly proper scoring rules, prediction, and estimation",
    Journal of the American Statistical Association 102.

    Examples:
        >>> metric = MeanCRPS([0.25, 0.75])
        >>> metric.update_quantiles([1.0, 3.0], 2.0)
        >>> metric.get()
        0.5
    """

    def _exact(self, forecast: object, y: float) -> float | None:
        crps = getattr(forecast, "crps", None)
        return None if crps is None else as_number(crps(as_number(y, "the outcome")), "the forecast's CRPS")

    def _score(self, q: Vector, y: float) -> float:
        return 2.0 * float(mean_pinball(q, np.asarray(y), self.levels))


class _IntervalMean(_QuantileMean):
    """The mean over the rounds of a score of one central interval."""

    def __init__(self, level: float = 0.9) -> None:
        if not 0.0 < level < 1.0:
            raise ValueError(f"expected a level strictly between 0 and 1, got {level!r}")
        self.level = float(level)
        super().__init__([(1 - self.level) / 2, (1 + self.level) / 2])


class Coverage(_IntervalMean):
    """How often the outcome was inside the central interval with this level, ends included.

        mean_t 1{ q_{(1 - level)/2} <= y <= q_{(1 + level)/2} }

    An interval that ends on a point mass covers all of it, so coverage may exceed its level there; `QCE`
    splits such ties.

    Reference: Gneiting, Balabdaoui and Raftery (2007), "Probabilistic forecasts, calibration and sharpness", Journal
    of the Royal Statistical Society B 69.

    Examples:
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

    Reference: Gneiting, Balabdaoui and Raftery (2007), "Probabilistic forecasts, calibration and sharpness", Journal
    of the Royal Statistical Society B 69.

    Examples:
        >>> metric = Width(0.9)
        >>> metric.update_quantiles([1.0, 3.0], 0.0)
        >>> metric.get()
        2.0
    """

    def _score(self, q: Vector, y: float) -> float:
        return float(q[1] - q[0])
