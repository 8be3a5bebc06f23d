"""How good a sequence of forecasts was: running metrics (`update`, `get`), and the same over arrays (functions).

Every class takes a forecast, that is anything with `quantile` or `ppf`, or quantiles by level, by
`update(forecast, y)`, or bare quantiles at its own `levels` by `update_quantiles(q, y)`. Before the
first outcome `get()` is nan. `ECE` and `MeanBrier` take probabilities instead, and have no `update_quantiles`.

A metric summarises many rounds. A scoring rule (`orcast.scores`: `CRPS`, `Brier`, `QuantileScore`, ...) is the score
of one forecast, and what a payoff such as `NoRegret` is made of; the running mean of one is called `Mean...` here.
"""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from orcast.adapters import binary_probability, quantiles_at
from orcast.forecasts import LabelForecast, forecast_on
from orcast.scores import Brier, Score
from orcast.spaces import Binary, FiniteSpace, Labels

__all__ = [
    "ECE",
    "LEVELS",
    "QCE",
    "SMAPE",
    "Coverage",
    "MeanBrier",
    "MeanCRPS",
    "MeanPinball",
    "Metric",
    "RollingQCE",
    "Width",
    "brier",
    "crps_ensemble",
    "crps_normal",
    "crps_quantiles",
    "ece",
    "fair_indicators",
    "internal_regret",
    "pinball",
    "qce",
    "smape",
    "worst_rolling_qce",
]

Vector = NDArray[np.float64]

LEVELS: Vector = np.arange(1, 100) / 100
"""The 99 levels 0.01, 0.02, ..., 0.99."""
LEVELS.flags.writeable = False


@runtime_checkable
class Metric(Protocol):
    """What all metrics have in common: `update` with a forecast and its outcome, `get` the value so far.

    Examples:
        >>> isinstance(QCE(), Metric)
        True
    """

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Add the forecast's quantiles at the metric's own levels with the outcome."""

    def get(self) -> float:
        """The metric over all rounds so far; nan before the first."""


# --- validation ----------------------------------------------------------------------------------


def _levels(levels: ArrayLike) -> Vector:
    a = _numbers(levels, "levels")
    if a.ndim != 1 or a.size == 0 or a[0] <= 0.0 or a[-1] >= 1.0 or np.any(np.diff(a) <= 0.0):
        raise ValueError(f"expected increasing levels strictly between 0 and 1, got {levels!r}")
    return a


def _count(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"expected {what}, got {value!r}")
    return int(value)


def _numbers(x: ArrayLike, what: str) -> Vector:
    try:
        a = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"expected numbers for {what}, got {x!r}") from None
    if not np.isfinite(a).all():
        raise ValueError(f"expected finite {what}, got {x!r}")
    return a


def _number(x: float, what: str) -> float:
    a = _numbers(x, what)
    if a.ndim != 0:
        raise ValueError(f"expected a single number for {what}, got shape {a.shape}")
    return float(a)


def _row(q: ArrayLike, count: int) -> Vector:
    a = _numbers(q, "quantiles")
    if a.shape != (count,):
        raise ValueError(f"expected {count} quantiles, one for each level, got shape {a.shape}")
    return a


def _rounds(q: ArrayLike, y: ArrayLike, levels: ArrayLike) -> tuple[Vector, Vector, Vector]:
    """Quantiles (..., L), outcomes (...) and levels (L,), checked against one another."""
    a, quantiles, outcomes = _levels(levels), _numbers(q, "quantiles"), _numbers(y, "outcomes")
    if quantiles.shape != (*outcomes.shape, a.size):
        raise ValueError(
            f"expected quantiles of shape {(*outcomes.shape, a.size)}, one for each outcome and level, "
            f"got shape {quantiles.shape}"
        )
    return quantiles, outcomes, a


def _counts_ties(ties: str) -> bool:
    """Whether ties are counted fairly."""
    if ties not in ("fair", "plain"):
        raise ValueError(f"expected 'fair' or 'plain' as ties, got {ties!r}")
    return ties == "fair"


def _bounds(low: float, high: float) -> tuple[float, float]:
    if not low < high:
        raise ValueError(f"expected low < high, got {low!r} and {high!r}")
    return float(low), float(high)


# --- kernels: they trust their arrays -------------------------------------------------------------


def _midpoints(a: Vector) -> Vector:
    """Half-way points between neighbouring levels, with 0 and 1 as the outermost neighbours."""
    ends = np.concatenate(([0.0], a, [1.0]))
    return (ends[1:] + ends[:-1]) / 2


def _indicators(q: Vector, y: Vector, a: Vector, mid: Vector, low: float, high: float, fair: bool = True) -> Vector:
    y_ = y[..., None]
    out = (q >= y_).astype(np.float64)
    if not fair:
        return out
    left, right = np.count_nonzero(q < y_, axis=-1), np.count_nonzero(q <= y_, axis=-1)
    tied = right > left
    if np.any(tied):
        start = np.where(y > low, mid[np.minimum(left, a.size - 1)], 0.0)[tied]
        stop = np.where(y < high, mid[right], 1.0)[tied]
        out[tied] = np.clip((a - start[..., None]) / (stop - start)[..., None], 0.0, 1.0)
    return out


def _pinball(q: Vector, y: Vector, a: Vector) -> Vector:
    e = y[..., None] - q
    return np.asarray(np.maximum(a * e, (a - 1.0) * e).mean(axis=-1))


def _smape(mean: Vector, y: Vector) -> Vector:
    size = (np.abs(y) + np.abs(mean)) / 2
    return np.asarray(np.abs(y - mean) / np.where(size > 0.0, size, 1.0))


# --- vectorised functions -------------------------------------------------------------------------


def fair_indicators(
    q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf
) -> Vector:
    """Indicators 1{y <= q_a} that treat a tie of y with several quantiles fairly.

    Where y equals the quantiles at levels a_i, ..., a_j the forecast has a point mass at y, and the hard
    indicator would be 1 for all of them. It is replaced by its expectation under a randomised PIT, uniform on
    [u, v]:

        I_a = clip((a - u) / (v - u), 0, 1)

    with u half-way between a_i and the level below it, v half-way between a_j and the level above it, and
    u = 0 at `low`, v = 1 at `high`, beyond which there is nothing.

    Reference: Czado, Gneiting and Held (2009), "Predictive model assessment for count data", Biometrics 65.

    Examples:
        >>> fair_indicators([1.0, 2.0, 3.0], 2.5, [0.25, 0.5, 0.75])
        array([0., 0., 1.])
        >>> fair_indicators([0.0, 0.0, 3.0], 0.0, [0.25, 0.5, 0.75], low=0.0)
        array([0.4, 0.8, 1. ])
    """
    quantiles, outcomes, a = _rounds(q, y, levels)
    return _indicators(quantiles, outcomes, a, _midpoints(a), *_bounds(low, high))


def qce(
    quantiles: ArrayLike,
    y: ArrayLike,
    levels: ArrayLike = LEVELS,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    ties: str = "fair",
) -> float:
    """Quantile calibration error: squared differences of frequency and level, summed over the levels.

        QCE = sum_a ( mean_t I_a(t) - a )^2,    I_a = 1{y <= q_a}, ties counted fairly

    `quantiles` has one row for each outcome and one column for each level.

    **Ties.** An outcome on a point mass of the forecast equals the quantiles at all levels from u = F(y-) to v = F(y).
    The paper's plain indicator, 1{y <= q_a} (appendix B), is 1 for each of them, and its 1{F(y) <= a} (section 3) for
    none below v; on an atom both call a forecaster miscalibrated who is right. Its remedy for forecasts with jumps
    (appendix B, linear from u to v) is what `fair_indicators` does, and the default here. ties="plain" takes
    1{y <= q_a} as it stands. Where no outcome equals a quantile, all of them are the same number.

    Reference: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression", ICML; paper, section 3.

    Examples:
        >>> qce([[0.0], [0.0], [0.0], [0.0]], [-1.0, 1.0, 2.0, 3.0], [0.5])
        0.0625
        >>> rain = [[0.0, 0.0, 3.0]] * 4  # dry with probability one half
        >>> qce(rain, [0.0, 0.0, 2.0, 4.0], [0.2, 0.4, 0.75], low=0.0, ties="plain") > 0.09
        True
        >>> qce(rain, [0.0, 0.0, 2.0, 4.0], [0.2, 0.4, 0.75], low=0.0) < 0.01
        True
    """
    q, outcomes, a = _series(quantiles, y, levels)
    fair = _counts_ties(ties)
    if outcomes.size == 0:
        return float("nan")
    hits = _indicators(q, outcomes, a, _midpoints(a), *_bounds(low, high), fair)
    return float(((hits.mean(axis=0) - a) ** 2).sum())


def worst_rolling_qce(
    quantiles: ArrayLike,
    y: ArrayLike,
    levels: ArrayLike = LEVELS,
    *,
    window: int = 200,
    low: float = -np.inf,
    high: float = np.inf,
) -> float:
    """The largest quantile calibration error over any `window` consecutive rounds; nan if there are fewer.

        max_s sum_a ( mean_{s < t <= s + window} I_a(t) - a )^2

    Reference: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression", ICML; paper, section 3.

    Examples:
        >>> worst_rolling_qce([[0.0], [0.0], [0.0], [0.0]], [-1.0, -1.0, 2.0, 3.0], [0.5], window=2)
        0.25
    """
    q, outcomes, a = _series(quantiles, y, levels)
    width = _count(window, "a window of at least 1 round")
    if outcomes.size < width:
        return float("nan")
    gaps = _indicators(q, outcomes, a, _midpoints(a), *_bounds(low, high)) - a
    total = np.concatenate((np.zeros((1, a.size)), np.cumsum(gaps, axis=0)))
    return float((((total[width:] - total[:-width]) / width) ** 2).sum(axis=1).max())


def _series(q: ArrayLike, y: ArrayLike, levels: ArrayLike) -> tuple[Vector, Vector, Vector]:
    quantiles, outcomes, a = _rounds(q, y, levels)
    if outcomes.ndim != 1:
        raise ValueError(f"expected a sequence of outcomes, got shape {outcomes.shape}")
    return quantiles, outcomes, a


def pinball(q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS) -> Vector:
    """Pinball (quantile) loss, averaged over the levels: one number for each outcome.

        mean_a max( a (y - q_a), (a - 1) (y - q_a) )

    Reference: Koenker and Bassett (1978), "Regression quantiles", Econometrica 46.

    Examples:
        >>> pinball([1.0, 3.0], 2.0, [0.25, 0.75])
        array(0.25)
    """
    return _pinball(*_rounds(q, y, levels))


def crps_quantiles(q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS) -> Vector:
    """CRPS from quantiles at evenly spaced levels, approximately: twice the mean pinball loss.

        CRPS = 2 int_0^1 pinball_a(q_a, y) da

    Reference: Laio and Tamea (2007), "Verification tools for probabilistic forecasts of continuous
    hydrological variables", Hydrology and Earth System Sciences 11.

    Examples:
        >>> crps_quantiles([1.0, 3.0], 2.0, [0.25, 0.75])
        array(0.5)
    """
    return np.asarray(2.0 * _pinball(*_rounds(q, y, levels)))


def crps_ensemble(members: ArrayLike, y: ArrayLike) -> Vector:
    """CRPS of the empirical distribution of ensemble members (last axis), exactly.

        CRPS = mean_i |x_i - y| - 1/2 mean_{i,j} |x_i - x_j|

    Reference: Gneiting and Raftery (2007), "Strictly proper scoring rules, prediction, and estimation",
    Journal of the American Statistical Association 102.

    Examples:
        >>> crps_ensemble([1.0, 3.0], 2.0)
        array(0.5)
    """
    x, outcomes = _numbers(members, "members"), _numbers(y, "outcomes")
    if x.ndim != outcomes.ndim + 1 or x.shape[:-1] != outcomes.shape or x.shape[-1] == 0:
        raise ValueError(f"expected members of shape {(*outcomes.shape, 'm')}, m >= 1, got shape {x.shape}")
    m = x.shape[-1]
    x = np.sort(x, axis=-1)
    # sum_{i,j} |x_i - x_j| = 2 sum_i (2 i - m - 1) x_(i) over the sorted members, i = 1..m
    rank = 2.0 * np.arange(1, m + 1) - m - 1
    return np.asarray(np.abs(x - outcomes[..., None]).mean(axis=-1) - (rank * x).sum(axis=-1) / m**2)


def crps_normal(mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Vector:
    """CRPS of a normal distribution, exactly; |y - mean| where `std` is 0.

        CRPS = std ( z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi) ),    z = (y - mean) / std

    Reference: Gneiting, Raftery, Westveld and Goldman (2005), Monthly Weather Review 133.

    Examples:
        >>> float(crps_normal(0.0, 1.0, 0.0).round(6))
        0.233695
        >>> crps_normal([5.0, 5.0], 0.0, [4.0, 7.0])
        array([1., 2.])
    """
    mu, sd, outcomes = _numbers(mean, "mean"), _numbers(std, "std"), _numbers(y, "outcomes")
    if np.any(sd < 0.0):
        raise ValueError(f"expected std >= 0, got {std!r}")
    try:
        mu, sd, outcomes = np.broadcast_arrays(mu, sd, outcomes)
    except ValueError:
        raise ValueError(
            f"expected mean, std and outcomes that fit together, got shapes {mu.shape}, {sd.shape} and {outcomes.shape}"
        ) from None
    e = outcomes - mu
    with np.errstate(over="ignore"):  # a tiny std makes z infinite, and the score |e|, as it should be
        z = e / np.where(sd > 0.0, sd, 1.0)
        phi = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    score = e * (2 * ndtr(z) - 1) + sd * (2 * phi - 1 / np.sqrt(np.pi))
    return np.asarray(np.where(sd > 0.0, score, np.abs(e)))


def smape(mean: ArrayLike, y: ArrayLike) -> Vector:
    """Symmetric absolute percentage error, between 0 and 2: one number for each outcome.

        |y - m| / ((|y| + |m|) / 2),    0 where both are 0

    Reference: Makridakis (1993), "Accuracy measures", International Journal of Forecasting 9.

    Examples:
        >>> smape([3.0, 0.0], [1.0, 0.0])
        array([1., 0.])
    """
    m, outcomes = _numbers(mean, "mean"), _numbers(y, "outcomes")
    if m.shape != outcomes.shape:
        raise ValueError(f"expected one mean for each outcome, got shapes {m.shape} and {outcomes.shape}")
    return _smape(m, outcomes)


# --- running metrics ------------------------------------------------------------------------------


class _QuantileMetric(ABC):
    """A metric that looks at a forecast through its quantiles at fixed levels."""

    def __init__(self, levels: ArrayLike) -> None:
        self.levels = _levels(levels)
        self.rounds = 0

    def update(self, forecast: object, y: float) -> None:
        """Add one forecast with its outcome."""
        self.update_quantiles(quantiles_at(forecast, self.levels), y)

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Add the forecast's quantiles at `self.levels` with the outcome."""
        row, outcome = _row(q, self.levels.size), _number(y, "the outcome")
        self._add(row, outcome)
        self.rounds += 1

    @abstractmethod
    def _add(self, q: Vector, y: float) -> None: ...


class _CalibrationMetric(_QuantileMetric):
    """Calibration of quantiles on a space that may have ends."""

    def __init__(self, levels: ArrayLike, low: float, high: float, ties: str = "fair") -> None:
        super().__init__(levels)
        self.low, self.high = _bounds(low, high)
        self._fair = _counts_ties(ties)
        self._mid = _midpoints(self.levels)

    def _hits(self, q: Vector, y: float) -> Vector:
        return _indicators(q, np.asarray(y), self.levels, self._mid, self.low, self.high, self._fair)


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
        self.window = _count(window, "a window of at least 1 round")
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
        return float(_pinball(q, np.asarray(y), self.levels))


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
        return None if crps is None else _number(crps(_number(y, "the outcome")), "the forecast's CRPS")

    def _score(self, q: Vector, y: float) -> float:
        return 2.0 * float(_pinball(q, np.asarray(y), self.levels))


class SMAPE(_QuantileMean):
    """Symmetric absolute percentage error of the forecast's mean, averaged over the rounds; between 0 and 2.

        mean_t |y - m| / ((|y| + |m|) / 2),    0 where both are 0

    From quantiles, m is their plain average.

    Reference: Makridakis (1993), "Accuracy measures", International Journal of Forecasting 9.

    Examples:
        >>> metric = SMAPE([0.25, 0.75])
        >>> metric.update_quantiles([2.0, 4.0], 1.0)
        >>> metric.get()
        1.0
    """

    def _exact(self, forecast: object, y: float) -> float | None:
        mean = getattr(forecast, "mean", None)
        if mean is None:
            return None
        m = _number(mean() if callable(mean) else mean, "the forecast's mean")
        return float(_smape(np.asarray(m), np.asarray(_number(y, "the outcome"))))

    def _score(self, q: Vector, y: float) -> float:
        return float(_smape(q.mean(), np.asarray(y)))


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


# --- probabilities --------------------------------------------------------------------------------


_BINARY = Binary()


def _binary_rounds(p: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector]:
    """Probabilities and outcomes 0 or 1 of one length, checked against one another."""
    prob, outcomes = _numbers(p, "probabilities"), _numbers(y, "outcomes")
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
    count = _count(bins, "at least 1 bin")
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
    prob = _numbers(p, "probabilities")
    if prob.ndim != 2:
        prob, outcomes = _binary_rounds(prob, y)
        return np.asarray((prob - outcomes) ** 2)
    outcomes = _numbers(y, "outcomes")
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
    prob = _numbers(p, "probabilities")
    space: FiniteSpace
    rule = Brier() if score is None else score
    if not isinstance(rule, Score):
        raise TypeError(f"expected a score such as Brier() or LogScore(), got {score!r}")
    if prob.ndim == 2:
        outcomes = _numbers(y, "outcomes")
        brier(prob, outcomes)  # says what is wrong with them
        mass, space = prob, Labels(range(max(prob.shape[1], 1)))
    else:
        prob, outcomes = _binary_rounds(prob, y)
        mass, space = np.column_stack((1.0 - prob, prob)), Binary()
    rule.check(space)
    if grid is not None:
        mass = _nearest_multiples(mass, _count(grid, "a grid of at least 1"))
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
        self.bins = _count(bins, "at least 1 bin")
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
