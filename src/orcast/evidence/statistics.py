"""Coverage, width and calibration error, with their sampling noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtrik, betainc, gammaincinv

from orcast.evidence.base import Evidence, Matrix, Places, Vector, chunks, computed_once, outcomes_of
from orcast.evidence.blocks import design_effect, frequencies, indicator_sums

# Bins of the reliability of probabilities, as in `metrics.ece`.
BINS = 15
# Confidence level of chance bands.
SURE = 0.95

# --- intervals


def shares(evidence: Evidence) -> tuple[float, ...]:
    """Nominal coverages of the central intervals between the levels, increasing.

    >>> shares(Evidence.of([[1.0, 2.0, 3.0, 4.0]], [2.0], levels=[0.05, 0.1, 0.5, 0.95]))
    (0.9,)
    """
    if evidence.kind != "quantiles":
        return ()
    found = [1.0 - 2.0 * a for a in evidence.levels.tolist() if a < 0.5 and place_of(evidence, 1.0 - a) is not None]
    return tuple(sorted(round(share, 12) for share in found))


def level_name(share: float) -> str:
    """Level as a percentage.

    >>> level_name(0.9), level_name(0.975), level_name(10 / 11)
    ('90%', '97.5%', '90.9%')
    """
    percent = round(100.0 * share, 6)
    if percent == round(percent, 2):
        return f"{percent:g}%"
    texts = (f"{percent:.{decimals}f}%" for decimals in range(1, 7))
    return next(text for text in texts if 0.0 < float(text[:-1]) < 100.0)


def place_of(evidence: Evidence, level: float) -> int | None:
    """Index of a level, or None."""
    gaps = np.abs(evidence.levels - level)
    place = int(np.argmin(gaps)) if gaps.size else 0
    return place if gaps.size and gaps[place] < 1e-9 else None


def ends_of(evidence: Evidence, share: float) -> tuple[int, int]:
    """Indices of the ends of a central interval."""
    lower, upper = place_of(evidence, (1.0 - share) / 2), place_of(evidence, (1.0 + share) / 2)
    if lower is None or upper is None:
        known = ", ".join(f"{s:g}" for s in shares(evidence)) or "none"
        raise ValueError(f"expected the share of an interval that the forecasts have ({known}), got {share!r}")
    return lower, upper


def main_shares(evidence: Evidence) -> tuple[float, ...]:
    """Nominal coverages nearest to 90% and, of the others, to 50%."""
    there = shares(evidence)
    if len(there) < 2:
        return there
    main = min(there, key=lambda share: (round(abs(share - 0.9), 9), -share))
    return main, min((share for share in there if share != main), key=lambda share: abs(share - 0.5))


def main_share(evidence: Evidence) -> float | None:
    """Nominal coverage nearest to 90%, or None without symmetric levels.

    >>> main_share(Evidence.of([[1.0, 2.0, 3.0, 4.0]], [2.0], levels=[0.05, 0.25, 0.75, 0.95]))
    0.9
    """
    return next(iter(main_shares(evidence)), None)


def coverage(evidence: Evidence, share: float, side: str = "before") -> float:
    """Share of outcomes in the central interval, its ends included.

    >>> coverage(Evidence.of([[0.0, 1.0]] * 4, [0.5, 1.0, 1.5, 0.1], levels=[0.25, 0.75]), 0.5)
    0.75
    """
    lower, upper = ends_of(evidence, share)
    below, upto = indicator_sums(evidence, side)[0].sum(axis=0) / max(evidence.rows, 1)
    return float(upto[upper] - below[lower]) if evidence.rows else float("nan")


@computed_once
def inside(evidence: Evidence, share: float, side: str = "before", ends: bool = True) -> Vector:
    """Indicators of the central interval, 0 or 1; `ends=False` leaves out its ends.

    >>> inside(Evidence.of([[1.0, 3.0]] * 3, [0.5, 2.0, 3.0], levels=[0.25, 0.75]), 0.5)
    array([0., 1., 1.])
    """
    lower, upper = (evidence.side(side)[:, k] for k in ends_of(evidence, share))
    y = evidence.y
    return ((lower <= y) & (y <= upper) if ends else (lower < y) & (y < upper)).astype(np.float64)


def tie_excess(evidence: Evidence, share: float, side: str | None = None) -> float:
    """Excess of the coverage over `share` that outcomes on an end explain; the larger of both sides by default."""
    if side is None:
        return max(tie_excess(evidence, share, each) for each in evidence.sides)
    most, least = (inside(evidence, share, side, ends).sum() / max(evidence.rows, 1) for ends in (True, False))
    return float(most - max(min(share, most), least))


def width(evidence: Evidence, share: float, side: str = "before") -> float:
    """Mean width of the central interval.

    >>> width(Evidence.of([[0.0, 1.0], [0.0, 3.0]], [0.5, 0.7], levels=[0.25, 0.75]), 0.5)
    2.0
    """
    lower, upper = ends_of(evidence, share)
    q = evidence.side(side)
    return float((q[:, upper] - q[:, lower]).mean()) if evidence.rows else float("nan")


def band(rows: ArrayLike, share: ArrayLike, sure: float = SURE) -> tuple[Vector, Vector]:
    """Chance band of a frequency: quantiles of Binomial(rows, share), divided by the rows.

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


def interval_band(evidence: Evidence, share: float, side: str | None = None, sure: float = SURE) -> tuple[float, float]:
    """Chance band of the coverage of a calibrated interval, by the effective sample size; ties raise its upper end.

    `side` defaults to the last one, and to both for ties.

    >>> interval_band(Evidence.of([[-1.0, 1.0]] * 1000, np.zeros(1000), levels=[0.05, 0.95]), 0.9)
    (0.881, 0.918)
    """
    low, high = band(independent_rows(evidence, share, side, sure), share, sure)
    return float(low), min(float(high) + tie_excess(evidence, share, side), 1.0)


def independent_rows(evidence: Evidence, share: float, side: str | None = None, sure: float = SURE) -> float:
    """Effective sample size for the coverage of an interval."""
    lower, upper = ends_of(evidence, share)
    weights = np.zeros((evidence.levels.size, 1))
    weights[[upper, lower], 0] = 1.0, -1.0
    return float((evidence.rows / design_effect(evidence, side or evidence.sides[-1], weights=weights, sure=sure))[0])


def level_band(
    evidence: Evidence, side: str | None = None, sure: float = SURE, *, places: ArrayLike | None = None
) -> tuple[Vector, Vector]:
    """Chance bands of the shares below each quantile, or of the bins between the levels at `places`.

    >>> low, high = level_band(Evidence.of([[-1.0, 1.0]] * 1000, np.zeros(1000), levels=[0.05, 0.95]))
    >>> low.tolist(), high.tolist()
    ([0.037, 0.936], [0.064, 0.963])
    """
    side = side or evidence.sides[-1]
    if places is None:
        return band(evidence.rows / design_effect(evidence, side, sure=sure), evidence.levels, sure)
    chosen: Places = np.asarray(places, dtype=np.intp)
    weights = _bins(evidence, chosen)
    nominal = np.diff(evidence.levels[chosen], prepend=0.0, append=1.0)
    return band(evidence.rows / design_effect(evidence, side, weights=weights, sure=sure), nominal, sure)


def _bins(evidence: Evidence, places: Places) -> Matrix:
    """Weights that turn indicators of levels into those of the bins between them."""
    weights = np.zeros((evidence.levels.size, places.size + 1))
    weights[places, np.arange(places.size)] = 1.0
    weights[places, np.arange(1, places.size + 1)] = -1.0
    return weights


# --- errors of calibration


def error(evidence: Evidence, side: str = "before") -> float:
    """Calibration error: QCE of quantiles, ECE of probabilities (averaged over labels).

    >>> error(Evidence.of([[0.0]] * 4, [-1.0, 1.0, 2.0, 3.0], levels=[0.5]))
    0.0625
    """
    if evidence.rows == 0:
        return float("nan")
    if evidence.kind == "quantiles":
        return float(((frequencies(evidence, side) - evidence.levels) ** 2).sum())
    gaps = bins_of(evidence, side).gap.sum(axis=0)
    return float(np.abs(gaps).sum() / (evidence.rows * len(evidence.labels)))


def chance_limit(evidence: Evidence, rows: ArrayLike | None = None, sure: float = SURE) -> Vector:
    """Limit of a calibrated forecaster's `error`, for quantiles and `rows` independent outcomes.

    For T independent outcomes T * QCE tends to a weighted sum of chi-squares with mean m = sum_a a (1 - a) and
    variance v = 2 sum_{a, b} (min(a, b) - a b)^2; the limit is the quantile of the gamma distribution with these.

    >>> limit = chance_limit(Evidence.of([[0.0]], [1.0], levels=[0.5]), 100)
    >>> float((1.96 * 0.5 / 10) ** 2 / limit) > 0.9
    True
    """
    a = evidence.levels
    count = np.asarray(evidence.rows if rows is None else rows, dtype=np.float64)
    spread = np.minimum.outer(a, a) - np.outer(a, a)
    mean, variance = np.trace(spread), 2.0 * (spread**2).sum()
    return np.asarray(_gamma_quantile(sure, mean, variance) / np.maximum(count, 1e-300))


class ReliabilityBins(NamedTuple):
    """Sums over series x labels x bins: outcome minus probability, p (1 - p), counts, probabilities."""

    gap: Vector
    variance: Vector
    forecasts: Vector
    probability: Vector


@computed_once
def bins_of(evidence: Evidence, side: str) -> ReliabilityBins:
    """Sums of probabilities in equal-width bins."""
    series, labels = len(evidence.names), len(evidence.labels)
    sums = np.zeros((4, series * labels * BINS))
    for chunk in chunks(evidence.rows):
        p = evidence.side(side)[chunk]
        at = np.minimum((p * BINS).astype(np.intp), BINS - 1)
        places = ((evidence.series[chunk, None] * labels + np.arange(labels)) * BINS + at).ravel()
        parts = (outcomes_of(evidence, chunk) - p, p * (1.0 - p), np.ones_like(p), p)
        for total, values in zip(sums, parts, strict=True):
            total += np.bincount(places, values.ravel(), minlength=total.size)
    return ReliabilityBins(*sums.reshape(4, series, labels, BINS))


def half_normal_limit(variances: Vector, sure: float = SURE) -> Vector:
    """Quantile of the sum of |N(0, v)| over the last axis, by a gamma distribution."""
    mean = np.sqrt(2.0 * variances / np.pi).sum(axis=-1)
    variance = ((1.0 - 2.0 / np.pi) * variances).sum(axis=-1)
    return np.where(variance > 0.0, _gamma_quantile(sure, mean, np.where(variance > 0.0, variance, 1.0)), 0.0)


def _gamma_quantile(sure: float, mean: ArrayLike, variance: ArrayLike) -> Vector:
    """Quantile of the gamma distribution with this mean and variance."""
    mean, variance = np.asarray(mean), np.asarray(variance)
    return np.asarray(gammaincinv(mean**2 / variance, sure) * variance / np.maximum(mean, 1e-300))


def limit_of(evidence: Evidence, side: str, sure: float = SURE) -> float:
    """Limit of the calibration error of a calibrated forecaster, dependence in time included."""
    effect = design_effect(evidence, side, sure=sure)
    if evidence.kind == "quantiles":
        return float(chance_limit(evidence, evidence.rows / effect.max(), sure))
    variances = (bins_of(evidence, side).variance.sum(axis=0) * effect[:, None]).reshape(-1)
    return float(half_normal_limit(variances, sure) / (max(evidence.rows, 1) * len(evidence.labels)))
