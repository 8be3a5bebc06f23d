"""Compiled kernels of an expert's quantiles as a function of the normal score, linear between the levels and beyond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orcast.engine.kernels.records import Array
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import erf, exp, pi, sqrt

# No number grows beyond this, whatever an adversary does.
FARTHEST = 1e110
# Values that are no further apart than this share of their size are one value, and their difference is rounding.
ROUNDING = 1e-13


class QuantileFunction(NamedTuple):
    """Q, the quantile of an expert at a normal score: linear between the levels and beyond."""

    values: Array
    scores: Array
    slope_low: float  # beyond the outer levels
    slope_high: float
    low: float  # bounds of the outcome
    high: float


@kernel_part
def between(start, end, share):
    """A share of the way from one number to another; where they are equal, as at an atom, that very number.

    An outcome on an atom is a tie, which a sum of shares would break by rounding.
    """
    return start + share * (end - start)


@kernel
def outer_slopes(q, z, smallest):
    """Slopes of Q beyond the outer levels: those of each half, kept comparable and positive."""
    last = q.shape[0] - 1
    middle = last // 2
    low = (q[middle] - q[0]) / (z[middle] - z[0])
    high = (q[last] - q[middle]) / (z[last] - z[middle])
    least = max(0.125 * (low + high), smallest)
    return max(low, least), max(high, least)


@kernel_part
def with_slopes(rules, q, slope_low, slope_high):
    """The quantile function of quantiles at the levels of the grid."""
    return QuantileFunction(
        q, rules.scores, slope_low, slope_high, max(rules.low, -FARTHEST), min(rules.high, FARTHEST)
    )


@kernel_part
def quantile_function(rules, q, smallest):
    """The same, with slopes of its own that are at least `smallest`."""
    slope_low, slope_high = outer_slopes(q, rules.scores, smallest)
    return with_slopes(rules, q, slope_low, slope_high)


@kernel
def quantile_at(score, expert):
    """Q at a normal score."""
    q, z = expert.values, expert.scores
    last = q.shape[0] - 1
    if score <= z[0]:
        return q[0] + (score - z[0]) * expert.slope_low
    if score >= z[last]:
        return q[last] + (score - z[last]) * expert.slope_high
    a = 0
    b = last
    while b - a > 1:
        middle = (a + b) // 2
        if z[middle] <= score:
            a = middle
        else:
            b = middle
    return q[a] + (q[b] - q[a]) * (score - z[a]) / (z[b] - z[a])


@kernel
def corrected(location, spread, expert, out):
    """The quantiles Q(location + spread z) at the grid, within the bounds; one walk along the grid."""
    q, z = expert.values, expert.scores
    last = q.shape[0] - 1
    j = 0
    for i in range(last + 1):
        score = location + spread * z[i]
        if score <= z[0]:
            value = q[0] + (score - z[0]) * expert.slope_low
        elif score >= z[last]:
            value = q[last] + (score - z[last]) * expert.slope_high
        else:
            while z[j + 1] < score:
                j += 1
            if score == z[j + 1]:
                out[i] = min(max(q[j + 1], expert.low), expert.high)
                continue
            value = q[j] + (q[j + 1] - q[j]) * (score - z[j]) / (z[j + 1] - z[j])
        out[i] = min(max(value, expert.low), expert.high)


@kernel
def on_quantile(y, q):
    """A value, or the quantile that it differs from by rounding: an atom is met even where a sum led to it."""
    i = np.searchsorted(q, y)
    near = ROUNDING * abs(y)
    if i < q.shape[0] and q[i] - y <= near:
        return q[i]
    if i > 0 and y - q[i - 1] <= near:
        return q[i - 1]
    return y


@kernel
def normal_score(value, expert):
    """Mean and variance of the normal score of a value; the variance is zero unless it is an atom of the expert."""
    q, z = expert.values, expert.scores
    last = q.shape[0] - 1
    y = on_quantile(value, q)
    if y < q[0]:
        return z[0] + (y - q[0]) / expert.slope_low, 0.0
    if y > q[last]:
        return z[last] + (y - q[last]) / expert.slope_high, 0.0
    i = np.searchsorted(q, y)
    if q[i] > y:
        return z[i - 1] + (z[i] - z[i - 1]) * (y - q[i - 1]) / (q[i] - q[i - 1]), 0.0
    j = np.searchsorted(q, y, side="right") - 1
    if i == j:
        return z[i], 0.0
    # On an atom: a standard normal cut to the atom's share of the levels.
    return cut_normal(z[i] if i > 0 else -8.0, z[j] if j < last else 8.0)


@kernel
def outcome_score(y, expert):
    """The same for an outcome: at a bound it stands for all that the expert puts beyond."""
    q, z = expert.values, expert.scores
    score, blur = normal_score(y, expert)
    if y <= expert.low and score > -6.0:
        return cut_normal(-8.0, score if blur == 0.0 else z[np.searchsorted(q, y, side="right") - 1])
    if y >= expert.high and score < 6.0:
        return cut_normal(score if blur == 0.0 else z[np.searchsorted(q, y)], 8.0)
    return score, blur


@kernel
def cut_normal(a, b):
    """Mean and variance of a standard normal cut to [a, b]."""
    share = 0.5 * (erf(b / sqrt(2.0)) - erf(a / sqrt(2.0)))
    density_a = exp(-0.5 * a * a) / sqrt(2.0 * pi)
    density_b = exp(-0.5 * b * b) / sqrt(2.0 * pi)
    mean = (density_a - density_b) / share
    return mean, max(1.0 + (a * density_a - b * density_b) / share - mean * mean, 0.0)
