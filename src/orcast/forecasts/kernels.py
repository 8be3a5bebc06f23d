"""Compiled kernels that read a forecast on cells: quantiles, mean and variance, with the tails of open-ended cells."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from orcast.constants import TINY_MASS
from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import real_power

PERCENTS = np.arange(1, 100) / 100.0
SCORES = ndtri(PERCENTS)
SQUARES = float(SCORES @ SCORES)


@kernel
def tail_scale(n, left, right, open_low, open_high):
    """The scale of the tails of open-ended cells: half the width of the others."""
    if not (open_low or open_high):
        return 0.0
    half = 0.0
    for k in range(int(open_low), n - int(open_high)):
        half += 0.5 * (right[k] - left[k])
    if half > 0.0:
        # far below any width that is meant, far above where an excess divided by it would overflow
        return max(half, 1e-200)
    edge = max(abs(right[0] if open_low else left[0]), abs(left[n - 1] if open_high else right[n - 1]))
    # in units of the edge; zero has none
    return max(1e-9 * edge, 1e-200) if edge > 0.0 else 1e-12


@kernel
def cumulate(n, mass):
    """The mass below each cell, and 1."""
    below = np.empty(n + 1)
    below[0] = 0.0
    for k in range(n):
        below[k + 1] = below[k] + mass[k]
    whole = below[n]
    for k in range(n + 1):
        below[k] /= whole
    return below


@kernel
def quantile_in(k, level, n, left, right, below, open_low, open_high, scale):
    """The quantile at a level, which lies in cell k."""
    here = below[k + 1] - below[k]
    share = min(max((level - below[k]) / (here if here > 0.0 else 1.0), 0.0), 1.0)
    if open_high and k == n - 1:
        return left[k] + scale * (real_power(1.0 - share, -1.0 / 3.0) - 1.0)
    if open_low and k == 0:
        return right[k] - scale * (real_power(share, -1.0 / 3.0) - 1.0)
    return left[k] + share * (right[k] - left[k])


@entry_kernel
def read_quantiles(n, left, right, mass, open_low, open_high, levels, out):
    """Quantiles of a forecast on n cells, whose outer ones may be open-ended, at levels in any order."""
    below = cumulate(n, mass)
    scale = tail_scale(n, left, right, open_low, open_high)
    k = 0
    before = np.inf
    for i in range(levels.shape[0]):
        level = levels[i]
        if level >= before:
            while k < n - 1 and below[k + 1] < level:
                k += 1
        else:
            k = min(np.searchsorted(below[1:], level), n - 1)
        before = level
        out[i] = quantile_in(k, level, n, left, right, below, open_low, open_high, scale)


@kernel
def end_of(k, n, left, right, open_low, open_high):
    """The largest number that belongs to the cells up to k, all of them if k is the last, none if it is -1.

    An outcome on an edge belongs to the cell on its left, and at an atom to the atom.  So before an atom, and before
    the first cell, it is the next number below.
    """
    if k < 0:
        return -np.inf if open_low else np.nextafter(left[0], -np.inf)
    if k == n - 1:
        return np.inf if open_high else right[k]
    if left[k + 1] == right[k + 1] and right[k] >= left[k + 1]:
        return np.nextafter(right[k], -np.inf)
    return right[k]


@kernel
def lies_below(level, before, mass, coin):
    """Whether an outcome in a cell counts as at most the randomised quantile at a level."""
    if mass <= TINY_MASS:
        # the limit of an empty cell, as it is booked
        return level >= before
    return before + coin * mass < level


@entry_kernel
def read_randomised(n, left, right, mass, open_low, open_high, coin, levels, out):
    """The same quantiles, each moved to an end of its cell by a coin between 0 and 1, which is that of all levels.

    With mass F before the cell and p in it, the quantile at a level a is the upper end if F + coin p < a, else the
    lower.  Then for any outcome y, P(y <= quantile) is what is booked for the cell of y.
    """
    below = cumulate(n, mass)
    for i in range(levels.shape[0]):
        k = min(np.searchsorted(below[1:], levels[i]), n - 1)
        if not lies_below(levels[i], below[k], below[k + 1] - below[k], coin):
            k -= 1
        else:
            # empty cells at the level itself
            while k + 1 < n and below[k + 2] - below[k + 1] <= TINY_MASS and levels[i] >= below[k + 1]:
                k += 1
        out[i] = end_of(k, n, left, right, open_low, open_high)


@entry_kernel
def mean_and_variance(n, left, right, mass, open_low, open_high):
    """Mean and variance of a forecast on n cells, whose outer ones may be open-ended."""
    scale = tail_scale(n, left, right, open_low, open_high)
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
