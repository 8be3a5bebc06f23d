"""Coverage, width, calibration error, with their sampling noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betainc

from orcast.evaluate.dependence import design_effect, frequencies
from orcast.evaluate.evaluation import Evaluation, Vector, computed_once, outcomes_of

# Bins of the reliability of probabilities, as in `metrics.ece`.
BINS = 15
# Confidence level of chance bands.
SURE = 0.95

# --- intervals


def shares(levels: Vector | None) -> tuple[float, ...]:
    """Nominal coverages of the central intervals between levels, increasing; empty without symmetric levels."""
    given = np.empty(0) if levels is None else levels
    lower = [a for a in given.tolist() if a < 0.5 and place_of(given, 1.0 - a) is not None]
    return tuple(sorted(round(1.0 - 2.0 * a, 12) for a in lower))


def main_shares(levels: Vector | None) -> tuple[float, ...]:
    """Nominal coverages nearest to 90% and, of the others, to 50%; empty without symmetric levels."""
    there = shares(levels)
    if len(there) < 2:
        return there
    main = min(there, key=lambda share: (round(abs(share - 0.9), 9), -share))
    return main, min((share for share in there if share != main), key=lambda share: abs(share - 0.5))


def main_share(levels: Vector | None) -> float | None:
    """Nominal coverage nearest to 90%, or None without symmetric levels."""
    return next(iter(main_shares(levels)), None)


def level_name(share: float) -> str:
    """Level as a percentage."""
    return f"{round(100.0 * share, 2):g}%"


def place_of(levels: Vector, level: float) -> int | None:
    """Index of a level, or None."""
    gaps = np.abs(levels - level)
    return int(gaps.argmin()) if gaps.size and gaps.min() < 1e-9 else None


def ends_of(evaluation: Evaluation, share: float) -> tuple[int, int]:
    """Indices of the ends of a central interval."""
    lower, upper = (place_of(evaluation.levels, (1.0 + sign * share) / 2) for sign in (-1.0, 1.0))
    if lower is None or upper is None:
        known = ", ".join(f"{s:g}" for s in shares(evaluation.levels)) or "none"
        raise ValueError(f"expected the share of an interval that the forecasts have ({known}), got {share!r}")
    return lower, upper


def coverage(evaluation: Evaluation, share: float, side: str = "before") -> float:
    """Share of outcomes in the central interval, its ends included.

    Parameters
    ----------
    share : float
        Nominal coverage, such as 0.9.

    Examples
    --------
    >>> coverage(Evaluation.of([[0.0, 1.0]] * 4, [0.5, 1.0, 1.5, 0.1], levels=[0.25, 0.75]), 0.5)
    0.75
    """
    within = inside(evaluation, share, side)
    return float(within.mean()) if evaluation.rows else float("nan")


@computed_once
def inside(evaluation: Evaluation, share: float, side: str = "before") -> Vector:
    """Indicators of the central interval, 0 or 1."""
    lower, upper = (evaluation.side(side)[:, k] for k in ends_of(evaluation, share))
    return ((lower <= evaluation.y) & (evaluation.y <= upper)).astype(np.float64)


def tie_excess(evaluation: Evaluation, share: float, side: str) -> float:
    """Excess of the coverage over the difference of the frequencies of its ends, for which ties count in part."""
    lower, upper = (frequencies(evaluation, side)[k] for k in ends_of(evaluation, share))
    return coverage(evaluation, share, side) - float(upper - lower)


def width(evaluation: Evaluation, share: float, side: str = "before") -> float:
    """Mean width of the central interval."""
    lower, upper = ends_of(evaluation, share)
    q = evaluation.side(side)
    return float((q[:, upper] - q[:, lower]).mean()) if evaluation.rows else float("nan")


# --- chance bands


def band(rows: ArrayLike, share: ArrayLike, sure: float = SURE) -> tuple[Vector, Vector]:
    """Chance band of a frequency: quantiles of Binomial(rows, share), divided by the rows.

    Parameters
    ----------
    rows, share : float or array
        Number of outcomes and probability.
    sure : float
        Confidence level.

    Examples
    --------
    >>> [float(end.round(3)) for end in band(1000, 0.9)]
    [0.881, 0.918]
    """
    count, p = np.broadcast_arrays(np.asarray(rows, dtype=np.float64), np.asarray(share, dtype=np.float64))
    there = np.maximum(count, 1.0)
    low, high = (_binomial_quantile(0.5 + sign * sure / 2, there, p) / there for sign in (-1.0, 1.0))
    return np.where(count > 0, low, 0.0), np.where(count > 0, np.minimum(high, 1.0), 1.0)


def _binomial_quantile(level: float, count: Vector, p: Vector) -> Vector:
    """Quantile of Binomial(count, p)."""
    inner = np.clip(p, 1e-12, 1.0 - 1e-12)
    guess = np.ceil(bdtrik(level, count, inner))
    below = np.maximum(guess - 1.0, 0.0)
    return np.asarray(np.where(betainc(count - below, below + 1.0, 1.0 - inner) >= level, below, guess))


def interval_band(evaluation: Evaluation, share: float) -> tuple[float, float]:
    """Chance band of the coverage of a calibrated interval, by the effective sample size; ties raise its upper end."""
    low, high = band(independent_rows(evaluation, share), share)
    ties = max(0.0, *(tie_excess(evaluation, share, side) for side in evaluation.sides))
    return float(low), min(float(high) + ties, 1.0)


def independent_rows(evaluation: Evaluation, share: float, sure: float = SURE) -> float:
    """Effective sample size for the coverage of an interval on the last side."""
    lower, upper = ends_of(evaluation, share)
    weights = np.zeros((evaluation.levels.size, 1))
    weights[[upper, lower], 0] = 1.0, -1.0
    return float((evaluation.rows / design_effect(evaluation, evaluation.sides[-1], weights=weights, sure=sure))[0])


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Observed frequencies beside their `nominal` values, with a chance band."""

    nominal: Vector
    observed: Vector
    low: Vector
    high: Vector

    @property
    def off(self) -> NDArray[np.bool_]:
        """Mask of the frequencies outside the chance band."""
        return (self.observed < self.low - 1e-9) | (self.observed > self.high + 1e-9)

    @property
    def outside(self) -> int:
        """Number of frequencies outside the chance band."""
        return int(np.count_nonzero(self.off))


def reliability(evaluation: Evaluation, side: str = "before", sure: float = SURE) -> Frequencies:
    """Share of outcomes below each quantile, or frequency of the event by its probability."""
    effect = design_effect(evaluation, side, sure=sure)
    if evaluation.kind == "quantiles":
        low, high = band(evaluation.rows / effect, evaluation.levels, sure)
        return Frequencies(evaluation.levels, frequencies(evaluation, side), low, high)
    sums = bins_of(evaluation, side)
    gap, count, total = (part.sum(axis=0) for part in (sums.gap, sums.forecasts, sums.probability))
    there = count > 0
    nominal, count = total[there] / count[there], count[there]
    low, high = band(count / effect.max(), nominal, sure)
    return Frequencies(nominal, np.clip(nominal + gap[there] / count, 0.0, 1.0), low, high)


# --- errors of calibration


def error(evaluation: Evaluation, side: str = "before") -> float:
    """Calibration error: QCE of quantiles, ECE of probabilities (averaged over labels).

    Examples
    --------
    >>> error(Evaluation.of([[0.0]] * 4, [-1.0, 1.0, 2.0, 3.0], levels=[0.5]))
    0.0625
    """
    if evaluation.rows == 0:
        return float("nan")
    if evaluation.kind == "quantiles":
        return float(((frequencies(evaluation, side) - evaluation.levels) ** 2).sum())
    return float(np.abs(bins_of(evaluation, side).gap).sum() / (evaluation.rows * len(evaluation.labels)))


class ReliabilityBins(NamedTuple):
    """Sums over labels x bins: outcome minus probability, counts, probabilities."""

    gap: Vector
    forecasts: Vector
    probability: Vector


@computed_once
def bins_of(evaluation: Evaluation, side: str) -> ReliabilityBins:
    """Sums of probabilities in equal-width bins."""
    p, labels = evaluation.side(side), len(evaluation.labels)
    places = (np.arange(labels) * BINS + np.minimum((p * BINS).astype(np.intp), BINS - 1)).ravel()
    parts = (outcomes_of(evaluation) - p, np.ones_like(p), p)
    sums = [np.bincount(places, part.ravel(), minlength=labels * BINS).reshape(labels, BINS) for part in parts]
    return ReliabilityBins(*np.array(sums, dtype=np.float64))
