"""Metrics of a sequence of forecasts, over arrays; a scoring rule of one forecast is in `orcast.scores`.

They raise a ValueError if shapes do not fit or a number is out of its range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.spaces.base import whole

__all__ = ["LEVELS", "brier", "ece", "fair_indicators", "pinball", "qce"]

Vector = NDArray[np.float64]

LEVELS: Vector = np.arange(1, 100) / 100
"""The 99 levels 0.01, 0.02, ..., 0.99."""
LEVELS.flags.writeable = False


# --- checked arrays


def _numbers(x: ArrayLike, what: str) -> Vector:
    try:
        a = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"expected numbers for {what}, got {x!r}") from None
    if not np.isfinite(a).all():
        raise ValueError(f"expected finite {what}, got {x!r}")
    return a


def _rounds(q: ArrayLike, y: ArrayLike, levels: ArrayLike) -> tuple[Vector, Vector, Vector]:
    """Check quantiles (..., L), outcomes (...) and levels (L,)."""
    a, quantiles, outcomes = _numbers(levels, "levels"), _numbers(q, "quantiles"), _numbers(y, "outcomes")
    if a.ndim != 1 or a.size == 0 or a[0] <= 0.0 or a[-1] >= 1.0 or np.any(np.diff(a) <= 0.0):
        raise ValueError(f"expected increasing levels strictly between 0 and 1, got {levels!r}")
    if quantiles.shape != (*outcomes.shape, a.size):
        raise ValueError(f"expected quantiles of shape {(*outcomes.shape, a.size)}, got {quantiles.shape}")
    return quantiles, outcomes, a


def _binary_rounds(p: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector]:
    """Check probabilities and outcomes 0 or 1 of one length."""
    prob, outcomes = _numbers(p, "probabilities"), _numbers(y, "outcomes")
    if prob.ndim != 1 or prob.shape != outcomes.shape:
        raise ValueError(
            f"expected one probability for each outcome, got shapes {prob.shape} and {outcomes.shape}: "
            "of labels, pass the column of one and y == label"
        )
    if not ((prob >= 0.0) & (prob <= 1.0)).all():
        raise ValueError(f"expected probabilities between 0 and 1, got {float(prob[(prob < 0) | (prob > 1)][0])!r}")
    if not ((outcomes == 0.0) | (outcomes == 1.0)).all():
        raise ValueError(f"expected outcomes 0 or 1, got {float(outcomes[(outcomes != 0) & (outcomes != 1)][0])!r}")
    return prob, outcomes


# --- quantiles


def fair_indicators(
    q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS, *, low: float = -np.inf, high: float = np.inf
) -> Vector:
    """Indicators 1{y <= q_a} with ties split over the levels that share the value.

    Where y equals the quantiles at levels a_i, ..., a_j, the indicator is its expectation under a randomised PIT,
    uniform on [u, v]:

        I_a = clip((a - u) / (v - u), 0, 1)

    with u halfway between a_i and the level below, v halfway between a_j and the level above, u = 0 at `low` and
    v = 1 at `high`.  Czado, Gneiting and Held (2009), "Predictive model assessment for count data", Biometrics 65.

    Parameters
    ----------
    q, y : array of shape (..., levels), array of shape (...)
        Quantiles and outcomes.
    levels : array
        Increasing levels.
    low, high : float
        Bounds of the outcomes.

    Examples
    --------
    >>> fair_indicators([1.0, 2.0, 3.0], 2.5, [0.25, 0.5, 0.75])
    array([0., 0., 1.])
    >>> fair_indicators([0.0, 0.0, 3.0], 0.0, [0.25, 0.5, 0.75], low=0.0)
    array([0.4, 0.8, 1. ])
    """
    quantiles, outcomes, a = _rounds(q, y, levels)
    if not low < high:
        raise ValueError(f"expected low < high, got {low!r} and {high!r}")
    y_ = outcomes[..., None]
    out = (quantiles >= y_).astype(np.float64)
    left, right = np.count_nonzero(quantiles < y_, axis=-1), np.count_nonzero(quantiles <= y_, axis=-1)
    tied = right > left
    if np.any(tied):
        around = np.concatenate(([0.0], a, [1.0]))
        middle = (around[1:] + around[:-1]) / 2
        start = np.where(outcomes > low, middle[np.minimum(left, a.size - 1)], 0.0)[tied]
        stop = np.where(outcomes < high, middle[right], 1.0)[tied]
        out[tied] = np.clip((a - start[..., None]) / (stop - start)[..., None], 0.0, 1.0)
    return out


def qce(
    quantiles: ArrayLike,
    y: ArrayLike,
    levels: ArrayLike = LEVELS,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    window: int | None = None,
) -> float:
    """Quantile calibration error: squared differences of frequency and level, summed over the levels.

        QCE = sum_a ( mean_t I_a(t) - a )^2,    I_a = 1{y <= q_a}, ties split (`fair_indicators`)

    Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated regression", ICML;
    paper, section 3 and appendix B (ties).

    Parameters
    ----------
    quantiles, y : array of shape (rounds, levels), array of shape (rounds,)
        Quantiles and outcomes.
    levels : array
        Increasing levels.
    low, high : float
        Bounds of the outcomes.
    window : int, optional
        Return the largest error over this number of consecutive rounds; nan with fewer rounds.

    Examples
    --------
    >>> qce([[0.0], [0.0], [0.0], [0.0]], [-1.0, 1.0, 2.0, 3.0], [0.5])
    0.0625
    >>> qce([[0.0], [0.0], [0.0], [0.0]], [-1.0, -1.0, 2.0, 3.0], [0.5], window=2)
    0.25
    """
    gaps = fair_indicators(quantiles, y, levels, low=low, high=high) - np.asarray(levels)
    if gaps.ndim != 2:
        raise ValueError(f"expected a sequence of outcomes, got shape {gaps.shape[:-1]}")
    width = max(len(gaps), 1) if window is None else whole(window, "rounds as window", 1, 10**12)
    if len(gaps) < width:
        return float("nan")
    if window is None:
        return float((gaps.mean(axis=0) ** 2).sum())
    total = np.concatenate((np.zeros((1, gaps.shape[1])), np.cumsum(gaps, axis=0)))
    return float((((total[width:] - total[:-width]) / width) ** 2).sum(axis=1).max())


def pinball(q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS) -> Vector:
    """Pinball loss of each outcome, averaged over the levels; twice that at even levels approximates the CRPS.

        mean_a max( a (y - q_a), (a - 1) (y - q_a) )

    Koenker and Bassett (1978), "Regression quantiles", Econometrica 46.

    Parameters
    ----------
    q, y, levels : array of shape (..., levels), array of shape (...), array
        Quantiles, outcomes and increasing levels.

    Examples
    --------
    >>> pinball([1.0, 3.0], 2.0, [0.25, 0.75])
    array(0.25)
    """
    quantiles, outcomes, a = _rounds(q, y, levels)
    e = outcomes[..., None] - quantiles
    return np.asarray(np.maximum(a * e, (a - 1.0) * e).mean(axis=-1))


# --- probabilities


def ece(p: ArrayLike, y: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error of probabilities, over equal-width bins.

        ECE = 1/T sum_b | sum_{t in b} (y_t - p_t) |

    Bin b of B holds the probabilities in [b/B, (b+1)/B), the last one also 1.
    Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian binning", AAAI.

    Parameters
    ----------
    p, y : array
        Probabilities, and outcomes 0 or 1.
    bins : int
        Number of bins.

    Examples
    --------
    >>> ece([0.25, 0.25, 0.75, 0.75], [0, 1, 1, 1], bins=2)
    0.25
    """
    prob, outcomes = _binary_rounds(p, y)
    count = whole(bins, "bins", 1, 10**9)
    if outcomes.size == 0:
        return float("nan")
    places = np.minimum((prob * count).astype(np.intp), count - 1)
    return float(np.abs(np.bincount(places, outcomes - prob, minlength=count)).sum()) / outcomes.size


def brier(p: ArrayLike, y: ArrayLike) -> Vector:
    """Brier score of each outcome.

        (p - y)^2

    Brier (1950), "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78.

    Parameters
    ----------
    p, y : array
        Probabilities of 1, and outcomes 0 or 1.

    Examples
    --------
    >>> brier([0.5, 0.75], [0, 1])
    array([0.25  , 0.0625])
    """
    prob, outcomes = _binary_rounds(p, y)
    return np.asarray((prob - outcomes) ** 2)
