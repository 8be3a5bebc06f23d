"""Metrics of quantiles over arrays: one number for a sequence of rounds, or one for each round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from orcast.metrics.arrays import (
    LEVELS,
    Vector,
    as_bounds,
    as_count,
    as_numbers,
    as_rounds,
    as_series,
    counts_ties,
    indicators,
    mean_pinball,
    midpoints,
    relative_errors,
)


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
    quantiles, outcomes, a = as_rounds(q, y, levels)
    return indicators(quantiles, outcomes, a, midpoints(a), *as_bounds(low, high))


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
    q, outcomes, a = as_series(quantiles, y, levels)
    fair = counts_ties(ties)
    if outcomes.size == 0:
        return float("nan")
    hits = indicators(q, outcomes, a, midpoints(a), *as_bounds(low, high), fair)
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
    q, outcomes, a = as_series(quantiles, y, levels)
    width = as_count(window, "a window of at least 1 round")
    if outcomes.size < width:
        return float("nan")
    gaps = indicators(q, outcomes, a, midpoints(a), *as_bounds(low, high)) - a
    total = np.concatenate((np.zeros((1, a.size)), np.cumsum(gaps, axis=0)))
    return float((((total[width:] - total[:-width]) / width) ** 2).sum(axis=1).max())


def pinball(q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS) -> Vector:
    """Pinball (quantile) loss, averaged over the levels: one number for each outcome.

        mean_a max( a (y - q_a), (a - 1) (y - q_a) )

    Reference: Koenker and Bassett (1978), "Regression quantiles", Econometrica 46.

    Examples:
        >>> pinball([1.0, 3.0], 2.0, [0.25, 0.75])
        array(0.25)
    """
    return mean_pinball(*as_rounds(q, y, levels))


def crps_quantiles(q: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS) -> Vector:
    """CRPS from quantiles at evenly spaced levels, approximately: twice the mean pinball loss.

        CRPS = 2 int_0^1 pinball_a(q_a, y) da

    Reference: Laio and Tamea (2007), "Verification tools for probabilistic forecasts of continuous
    hydrological variables", Hydrology and Earth System Sciences 11.

    Examples:
        >>> crps_quantiles([1.0, 3.0], 2.0, [0.25, 0.75])
        array(0.5)
    """
    return np.asarray(2.0 * mean_pinball(*as_rounds(q, y, levels)))


def crps_ensemble(members: ArrayLike, y: ArrayLike) -> Vector:
    """CRPS of the empirical distribution of ensemble members (last axis), exactly.

        CRPS = mean_i |x_i - y| - 1/2 mean_{i,j} |x_i - x_j|

    Reference: Gneiting and Raftery (2007), "Strictly proper scoring rules, prediction, and estimation",
    Journal of the American Statistical Association 102.

    Examples:
        >>> crps_ensemble([1.0, 3.0], 2.0)
        array(0.5)
    """
    x, outcomes = as_numbers(members, "members"), as_numbers(y, "outcomes")
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
    mu, sd, outcomes = as_numbers(mean, "mean"), as_numbers(std, "std"), as_numbers(y, "outcomes")
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
    m, outcomes = as_numbers(mean, "mean"), as_numbers(y, "outcomes")
    if m.shape != outcomes.shape:
        raise ValueError(f"expected one mean for each outcome, got shapes {m.shape} and {outcomes.shape}")
    return relative_errors(m, outcomes)
