"""How good a sequence of forecasts was: streaming metrics (update / get) and their vectorised twins.

Every class takes a forecast, that is anything with `quantile` or `ppf`, or quantiles by level, by
`update(forecast, y)`, or bare quantiles at its own `levels` by `update_quantiles(q, y)`. Before the
first outcome `get()` is nan. `ECE` and `BrierScore` take probabilities instead, and have no `update_quantiles`.
"""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from orcast.adapters import binary_probability, quantiles_at
from orcast.forecasts import LabelForecast
from orcast.spaces import Binary

__all__ = [
    "ECE",
    "LEVELS",
    "QCE",
    "SMAPE",
    "BrierScore",
    "Coverage",
    "MeanCRPS",
    "Metric",
    "Pinball",
    "RollingQCE",
    "Width",
    "brier",
    "crps_ensemble",
    "crps_normal",
    "crps_quantiles",
    "ece",
    "fair_indicators",
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
        """Book one forecast with its outcome."""

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Book the forecast's quantiles at the metric's own levels with the outcome."""

    def get(self) -> float:
        """The metric over all rounds so far; nan before the first."""


# --- what is let in -------------------------------------------------------------------------------


def _levels(levels: ArrayLike) -> Vector:
    a = _numbers(levels, "levels")
    if a.ndim != 1 or a.size == 0 or a[0] <= 0.0 or a[-1] >= 1.0 or np.any(np.diff(a) <= 0.0):
        raise ValueError(f"expected increasing levels strictly between 0 and 1, got {levels!r}")
    return a


def _level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"expected a level strictly between 0 and 1, got {level!r}")
    return float(level)


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


def _bounds(low: float, high: float) -> tuple[float, float]:
    if not low < high:
        raise ValueError(f"expected low < high, got {low!r} and {high!r}")
    return float(low), float(high)


# --- kernels: they trust their arrays -------------------------------------------------------------


def _midpoints(a: Vector) -> Vector:
    """Half-way points between neighbouring levels, with 0 and 1 as the outermost neighbours."""
    ends = np.concatenate(([0.0], a, [1.0]))
    return (ends[1:] + ends[:-1]) / 2


def _indicators(q: Vector, y: Vector, a: Vector, mid: Vector, low: float, high: float) -> Vector:
    y_ = y[..., None]
    out = (q >= y_).astype(np.float64)
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
) -> float:
    """Quantile calibration error: squared differences of frequency and level, summed over the levels.

        QCE = sum_a ( mean_t I_a(t) - a )^2,    I_a = 1{y <= q_a}, ties counted fairly

    `quantiles` has one row for each outcome and one column for each level.

    Reference: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression", ICML; paper, section 3.

    Examples:
        >>> qce([[0.0], [0.0], [0.0], [0.0]], [-1.0, 1.0, 2.0, 3.0], [0.5])
        0.0625
    """
    q, outcomes, a = _series(quantiles, y, levels)
    if outcomes.size == 0:
        return float("nan")
    hits = _indicators(q, outcomes, a, _midpoints(a), *_bounds(low, high))
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
    width = _window(window)
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


def _window(window: int) -> int:
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise ValueError(f"expected a window of at least 1 round, got {window!r}")
    return int(window)


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


# --- streaming metrics ----------------------------------------------------------------------------


class _OnQuantiles(ABC):
    """A metric that looks at a forecast through its quantiles at fixed levels."""

    def __init__(self, levels: ArrayLike) -> None:
        self.levels = _levels(levels)
        self.rounds = 0

    def update(self, forecast: object, y: float) -> None:
        """Book one forecast with its outcome."""
        self.update_quantiles(quantiles_at(forecast, self.levels), y)

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Book the forecast's quantiles at `self.levels` with the outcome."""
        row, outcome = _row(q, self.levels.size), _number(y, "the outcome")
        self._book(row, np.float64(outcome))
        self.rounds += 1

    @abstractmethod
    def _book(self, q: Vector, y: np.float64) -> None: ...


class QCE(_OnQuantiles):
    """Quantile calibration error over all rounds: squared gaps of frequency and level, summed over levels.

        QCE = sum_a ( mean_t I_a(t) - a )^2,    I_a = 1{y <= q_a}, ties counted fairly (`fair_indicators`)

    `low` and `high` are the ends of the outcome space, if it has any: an outcome there ties with all that
    was put on it.

    Reference: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression", ICML; paper, section 3.

    Examples:
        >>> metric = QCE([0.5])
        >>> for y in (-1.0, 1.0, 2.0, 3.0):
        ...     metric.update_quantiles([0.0], y)
        >>> metric.get()
        0.0625
    """

    def __init__(self, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf) -> None:
        super().__init__(levels)
        self.low, self.high = _bounds(low, high)
        self._mid = _midpoints(self.levels)
        self._hits = np.zeros(self.levels.size)

    def get(self) -> float:
        """The error over all rounds so far; nan before the first."""
        return float(((self.frequencies() - self.levels) ** 2).sum()) if self.rounds else float("nan")

    def frequencies(self) -> Vector:
        """How often the outcome was at or below the quantile, for each level (a reliability diagram)."""
        return self._hits / self.rounds if self.rounds else np.full(self.levels.size, np.nan)

    def _book(self, q: Vector, y: np.float64) -> None:
        self._hits += _indicators(q, np.asarray(y), self.levels, self._mid, self.low, self.high)


class RollingQCE(_OnQuantiles):
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
        self,
        window: int = 200,
        levels: ArrayLike = LEVELS,
        *,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> None:
        super().__init__(levels)
        self.window = _window(window)
        self.low, self.high = _bounds(low, high)
        self._mid = _midpoints(self.levels)
        self._gaps = np.zeros((self.window, self.levels.size))
        self._sum = np.zeros(self.levels.size)
        self._worst = float("nan")

    def get(self) -> float:
        """The worst window so far; nan before the first is full."""
        return self._worst

    def last(self) -> float:
        """The error over the last window; nan before the first is full."""
        return float(((self._sum / self.window) ** 2).sum()) if self.rounds >= self.window else float("nan")

    def _book(self, q: Vector, y: np.float64) -> None:
        gap = _indicators(q, np.asarray(y), self.levels, self._mid, self.low, self.high) - self.levels
        slot = self.rounds % self.window
        self._sum += gap - self._gaps[slot]
        self._gaps[slot] = gap
        if slot == self.window - 1:
            self._sum = self._gaps.sum(axis=0)  # rounding errors of the running sum do not pile up
        if self.rounds + 1 >= self.window:
            self._worst = float(np.fmax(self._worst, ((self._sum / self.window) ** 2).sum()))


class Pinball(_OnQuantiles):
    """Pinball (quantile) loss, averaged over levels and rounds.

        mean_t mean_a max( a (y - q_a), (a - 1) (y - q_a) )

    Reference: Koenker and Bassett (1978), "Regression quantiles", Econometrica 46.

    Examples:
        >>> metric = Pinball([0.25, 0.75])
        >>> metric.update_quantiles([1.0, 3.0], 2.0)
        >>> metric.get()
        0.25
    """

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        super().__init__(levels)
        self._total = 0.0

    def get(self) -> float:
        """The mean loss so far; nan before the first round."""
        return self._total / self.rounds if self.rounds else float("nan")

    def _book(self, q: Vector, y: np.float64) -> None:
        self._total += float(_pinball(q, np.asarray(y), self.levels))


class Coverage(_OnQuantiles):
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

    def __init__(self, level: float = 0.9) -> None:
        self.level = _level(level)
        super().__init__([(1 - self.level) / 2, (1 + self.level) / 2])
        self._inside = 0

    def get(self) -> float:
        """The share of rounds so far with the outcome inside; nan before the first."""
        return self._inside / self.rounds if self.rounds else float("nan")

    def _book(self, q: Vector, y: np.float64) -> None:
        self._inside += bool(q[0] <= y <= q[1])


class Width(_OnQuantiles):
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

    def __init__(self, level: float = 0.9) -> None:
        self.level = _level(level)
        super().__init__([(1 - self.level) / 2, (1 + self.level) / 2])
        self._total = 0.0

    def get(self) -> float:
        """The mean width so far; nan before the first round."""
        return self._total / self.rounds if self.rounds else float("nan")

    def _book(self, q: Vector, y: np.float64) -> None:
        self._total += float(q[1] - q[0])


class MeanCRPS:
    """Continuous ranked probability score, averaged over the rounds.

        CRPS(F, y) = int ( F(x) - 1{y <= x} )^2 dx

    Exact for a forecast that knows its own `crps(y)`; from quantiles it is `crps_quantiles`.
    (`orcast.CRPS` is the scoring rule that payoffs use.)

    Reference: Gneiting and Raftery (2007), "Strictly proper scoring rules, prediction, and estimation",
    Journal of the American Statistical Association 102.

    Examples:
        >>> metric = MeanCRPS([0.25, 0.75])
        >>> metric.update_quantiles([1.0, 3.0], 2.0)
        >>> metric.get()
        0.5
    """

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        self.levels = _levels(levels)
        self.rounds = 0
        self._total = 0.0

    def update(self, forecast: object, y: float) -> None:
        """Book one forecast with its outcome."""
        own = getattr(forecast, "crps", None)
        if own is None:
            self.update_quantiles(quantiles_at(forecast, self.levels), y)
        else:
            self._book(_number(own(_number(y, "the outcome")), "the forecast's CRPS"))

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Book the forecast's quantiles at `self.levels` with the outcome."""
        row, outcome = _row(q, self.levels.size), _number(y, "the outcome")
        self._book(2.0 * float(_pinball(row, np.asarray(outcome), self.levels)))

    def get(self) -> float:
        """The mean score so far; nan before the first round."""
        return self._total / self.rounds if self.rounds else float("nan")

    def _book(self, score: float) -> None:
        self._total += score
        self.rounds += 1


class SMAPE:
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

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        self.levels = _levels(levels)
        self.rounds = 0
        self._total = 0.0

    def update(self, forecast: object, y: float) -> None:
        """Book one forecast with its outcome."""
        mean = getattr(forecast, "mean", None)
        value = mean() if callable(mean) else quantiles_at(forecast, self.levels).mean() if mean is None else mean
        self._book(_number(value, "the forecast's mean"), _number(y, "the outcome"))

    def update_quantiles(self, q: ArrayLike, y: float) -> None:
        """Book the forecast's quantiles at `self.levels` with the outcome."""
        self._book(float(_row(q, self.levels.size).mean()), _number(y, "the outcome"))

    def get(self) -> float:
        """The mean error so far; nan before the first round."""
        return self._total / self.rounds if self.rounds else float("nan")

    def _book(self, mean: float, y: float) -> None:
        self._total += float(_smape(np.asarray(mean), np.asarray(y)))
        self.rounds += 1


# --- probabilities --------------------------------------------------------------------------------


_BINARY = Binary()


def _bins(bins: int) -> int:
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"expected at least 1 bin, got {bins!r}")
    return int(bins)


def _binary_rounds(p: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector]:
    """Probabilities and outcomes 0 or 1 of one length, checked against one another."""
    said, outcomes = _numbers(p, "probabilities"), _numbers(y, "outcomes")
    if said.ndim != 1 or said.shape != outcomes.shape:
        raise ValueError(f"expected one probability for each outcome, got shapes {said.shape} and {outcomes.shape}")
    if not ((said >= 0.0) & (said <= 1.0)).all():
        raise ValueError(f"expected probabilities between 0 and 1, got {float(said[(said < 0) | (said > 1)][0])!r}")
    if not ((outcomes == 0.0) | (outcomes == 1.0)).all():
        raise ValueError(f"expected outcomes 0 or 1, got {float(outcomes[(outcomes != 0) & (outcomes != 1)][0])!r}")
    return said, outcomes


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
    said, outcomes = _binary_rounds(p, y)
    count = _bins(bins)
    if outcomes.size == 0:
        return float("nan")
    places = np.minimum((said * count).astype(np.intp), count - 1)
    return float(np.abs(np.bincount(places, outcomes - said, minlength=count)).sum()) / outcomes.size


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
    said = _numbers(p, "probabilities")
    if said.ndim != 2:
        said, outcomes = _binary_rounds(said, y)
        return np.asarray((said - outcomes) ** 2)
    outcomes = _numbers(y, "outcomes")
    if outcomes.shape != said.shape[:1]:
        raise ValueError(f"expected one row for each outcome, got shapes {said.shape} and {outcomes.shape}")
    if not ((said >= 0.0).all() and (np.abs(said.sum(axis=1) - 1.0) <= 1e-6).all()):
        raise ValueError("expected rows of probabilities that are not negative and sum to 1, got others")
    places = outcomes.astype(np.intp)
    if not ((places == outcomes) & (places >= 0) & (places < said.shape[1])).all():
        raise ValueError(f"expected places from 0 to {said.shape[1] - 1} as outcomes, got others")
    return _brier(said, places)


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
        self.bins = _bins(bins)
        self.rounds = 0
        self._gaps = [0.0] * self.bins

    def update(self, forecast: object, y: object) -> None:
        """Book one forecast with its outcome, 0 or 1."""
        p, outcome = binary_probability(forecast), _BINARY.outcome(y)
        self._gaps[min(int(p * self.bins), self.bins - 1)] += outcome - p
        self.rounds += 1

    def get(self) -> float:
        """The error over all rounds so far; nan before the first."""
        return sum(abs(gap) for gap in self._gaps) / self.rounds if self.rounds else float("nan")


class BrierScore:
    """Brier score of probabilities, averaged over the rounds.

        mean_t (p - y)^2    for yes or no,    mean_t sum_k (p_k - 1{k = y})^2    for labels

    A forecast is a `LabelForecast`, or whatever a recalibrator on `Binary` takes.

    Reference: Brier (1950), "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78.

    Examples:
        >>> metric = BrierScore()
        >>> metric.update(0.75, 1)
        >>> metric.get()
        0.0625
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._total = 0.0

    def update(self, forecast: object, y: object) -> None:
        """Book one forecast with its outcome: 0 or 1, or a label."""
        if isinstance(forecast, LabelForecast):
            score = float(_brier(forecast.mass, np.asarray(forecast.space.outcome(y))))
        else:
            score = (binary_probability(forecast) - _BINARY.outcome(y)) ** 2
        self._total += score
        self.rounds += 1

    def get(self) -> float:
        """The mean score so far; nan before the first round."""
        return self._total / self.rounds if self.rounds else float("nan")
