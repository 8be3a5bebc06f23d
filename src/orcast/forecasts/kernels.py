"""Compiled kernels that read a forecast on cells: quantiles, mean and variance, with the tails of open-ended cells."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import real_power

PERCENTS = np.arange(1, 100) / 100.0
SCORES = ndtri(PERCENTS)
SQUARES = float(SCORES @ SCORES)


@kernel
def tail_scale(n, left, right, open_low, open_high):
    """The scale of the tails of open-ended cells: half the width of the others."""
    half = 0.0
    for k in range(int(open_low), n - int(open_high)):
        half += 0.5 * (right[k] - left[k])
    if half > 0.0:
        # far below any width that is meant, far above where an excess divided by it would overflow
        return max(half, 1e-200)
    edge = max(abs(right[0] if open_low else left[0]), abs(left[n - 1] if open_high else right[n - 1]))
    # in units of the edge; zero has none
    return max(1e-9 * edge, 1e-200) if edge > 0.0 else 1e-12


@entry_kernel
def read_quantiles(n, left, right, mass, open_low, open_high, levels, out):
    """Quantiles of a forecast on n cells, whose outer ones may be open-ended, at levels in any order."""
    below = np.empty(n + 1)
    below[0] = 0.0
    for k in range(n):
        below[k + 1] = below[k] + mass[k]
    whole = below[n]
    for k in range(n + 1):
        below[k] /= whole
    scale = tail_scale(n, left, right, open_low, open_high)
    for i in range(levels.shape[0]):
        level = levels[i]
        k = min(np.searchsorted(below[1:], level), n - 1)
        here = below[k + 1] - below[k]
        share = min(max((level - below[k]) / (here if here > 0.0 else 1.0), 0.0), 1.0)
        if open_high and k == n - 1:
            out[i] = left[k] + scale * (real_power(1.0 - share, -1.0 / 3.0) - 1.0)
        elif open_low and k == 0:
            out[i] = right[k] - scale * (real_power(share, -1.0 / 3.0) - 1.0)
        else:
            out[i] = left[k] + share * (right[k] - left[k])


@entry_kernel
def mean_and_variance(n, left, right, mass, open_low, open_high):
    """Mean and variance of a forecast on n cells, whose outer ones may be open-ended."""
    scale = tail_scale(n, left, right, open_low, open_high) if open_low or open_high else 0.0
    whole = 0.0
    mean = 0.0
    for k in range(n):
        whole += mass[k]
        if open_low and k == 0:
            mean += mass[k] * (right[k] - 0.5 * scale)
        elif open_high and k == n - 1:
            mean += mass[k] * (left[k] + 0.5 * scale)
        else:
            mean += mass[k] * 0.5 * (left[k] + right[k])
    mean /= whole
    square = 0.0
    for k in range(n):
        if open_low and k == 0:
            a = right[k] - mean
            square += mass[k] * (a * a - scale * a + scale * scale)
        elif open_high and k == n - 1:
            a = left[k] - mean
            square += mass[k] * (a * a + scale * a + scale * scale)
        else:
            a = left[k] - mean
            b = right[k] - mean
            square += mass[k] * (a * a + a * b + b * b) / 3.0
    return mean, square / whole


@entry_kernel
def nearest_normal(n, left, right, mass, open_low, open_high):
    """Mean and standard deviation of the normal whose percentiles are nearest to the forecast's, by least squares."""
    q = np.empty(PERCENTS.shape[0])
    read_quantiles(n, left, right, mass, open_low, open_high, PERCENTS, q)
    mean = 0.0
    for i in range(q.shape[0]):
        mean += q[i]
    mean /= q.shape[0]
    spread = 0.0
    for i in range(q.shape[0]):
        spread += SCORES[i] * (q[i] - mean)
    return mean, spread / SQUARES
