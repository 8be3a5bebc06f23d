"""Compiled kernels of the quantile trackers: offsets from the expert's quantiles, one at each level.

Each tracker takes gradient steps on the pinball loss and lets go of what it learnt at a small rate,

    theta_l  <-  (1 - leak) theta_l - step u g_l,      g_l = 1{y < q_l + theta_l} - l

with the expert's usual loss as the unit u (quantile tracking, Angelopoulos et al. 2023; at many levels at once, Ding,
Gibbs and Tibshirani 2025).  Two things are ours.  With late outcomes the gradient is taken at the offsets of today, not
at those of the forecast: an error that was corrected since is not corrected once more.  And in a pool a share of each
step is the mean gradient of all its streams since this one's last outcome: what is common to them is seen once by each,
with less noise.  Those that share in a pool sleep as long as nothing is heard of it: they neither learn nor count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orcast.constants import LOSS_DISCOUNT
from orcast.engine.kernels.records import Array, PoolColumn, QuantileTrackerColumn, TrackerUnit
from orcast.jit import kernel, kernel_part

# Steps are in units of so many usual losses; offsets reach no further than FARTHEST of them.
UNIT = 3.0
FARTHEST = 50.0
# The expected CRPS of a normal in units of its standard deviation.
PER_SCALE = 0.5641895835477563


class QuantileTrackers(NamedTuple):
    """The trackers of one stream: what they are made of, and what they have learnt."""

    options: Array  # a QuantileTrackerColumn each, those that share in a pool first
    pooled: int  # how many share in a pool
    levels: Array
    low: float  # bounds of the outcome
    high: float
    offsets: Array  # by tracker and level
    seen: Array  # count and sums of the pool at the last outcome
    unit: Array  # a TrackerUnit each


@kernel
def offset_quantiles(q, offsets, scale, low, high, out):
    """The expert's quantiles with their offsets (times a scale), sorted and within the bounds."""
    for i in range(q.shape[0]):
        value = min(max(q[i] + scale * offsets[i], low), high)
        j = i
        while j > 0 and out[j - 1] > value:
            out[j] = out[j - 1]
            j -= 1
        out[j] = value


@kernel
def pinball_gradient(quantiles, y, levels, out):
    """1{y < q} - level at each level; zero where they are equal, since any share of a tie is then right."""
    for i in range(levels.shape[0]):
        if y < quantiles[i]:
            out[i] = 1.0 - levels[i]
        elif y > quantiles[i]:
            out[i] = -levels[i]
        else:
            out[i] = 0.0


@kernel
def offset_gradient(q, offsets, scale, low, high, y, levels, out):
    """The gradient at quantiles with their offsets, as they are before they are sorted.

    So each level is answered for by its own offset: by its place among sorted ones, an offset that is far beyond the
    others would be pushed further still.
    """
    quantiles = np.empty(q.shape[0])
    for i in range(q.shape[0]):
        quantiles[i] = min(max(q[i] + scale * offsets[i], low), high)
    pinball_gradient(quantiles, y, levels, out)


@kernel
def pinball(q, y, levels):
    """Mean pinball loss of quantiles."""
    total = 0.0
    for i in range(q.shape[0]):
        error = y - q[i]
        total += levels[i] * error if error > 0.0 else (levels[i] - 1.0) * error
    return total / q.shape[0]


@kernel_part
def is_cold(trackers, signal):
    """Whether the offsets are those of the pool still: before the first outcome in a pool that has learnt."""
    return trackers.pooled > 0 and signal.shape[0] > 0 and trackers.unit[TrackerUnit.COUNT] == 0.0


@kernel_part
def first_awake(pooled, signal):
    """The first tracker that learns and counts: without a pool those that share in one sleep."""
    return 0 if signal.shape[0] > 0 else pooled


@kernel_part
def pool_offsets(trackers, signal, m):
    """The mean offsets of a pooled tracker in its pool, in units of the usual loss."""
    levels = trackers.levels.shape[0]
    at = PoolColumn.SUMS + (trackers.pooled + m) * levels
    return signal[at : at + levels]


@kernel
def say(trackers, q, signal, expected_loss, out):
    """The quantiles of each tracker; a stream without a past says what the others of its pool would."""
    cold = is_cold(trackers, signal)
    for m in range(trackers.options.shape[0]):
        if cold and m < trackers.pooled:
            offset_quantiles(q, pool_offsets(trackers, signal, m), expected_loss, trackers.low, trackers.high, out[m])
        else:
            offset_quantiles(q, trackers.offsets[m], 1.0, trackers.low, trackers.high, out[m])


@kernel
def gradients(trackers, q, signal, expected_loss, y, out):
    """The gradient of each tracker at an outcome, at the offsets of now; of as many as `out` has room for."""
    cold = is_cold(trackers, signal)
    for m in range(out.shape[0]):
        if cold and m < trackers.pooled:
            offsets, scale = pool_offsets(trackers, signal, m), expected_loss
        else:
            offsets, scale = trackers.offsets[m], 1.0
        offset_gradient(q, offsets, scale, trackers.low, trackers.high, y, trackers.levels, out[m])


@kernel
def learn(trackers, q, signal, expected_loss, y):
    """A step of each tracker; in a pool, with what all streams saw since the last one."""
    own = np.empty((trackers.options.shape[0], q.shape[0]))
    gradients(trackers, q, signal, expected_loss, y, own)
    step(trackers, q, signal, expected_loss, y, own)


@kernel
def step(trackers, q, signal, expected_loss, y, own):
    """The same, with the gradients of each tracker."""
    levels = q.shape[0]
    unit, seen = trackers.unit, trackers.seen
    if is_cold(trackers, signal):
        for m in range(trackers.pooled):
            offsets = pool_offsets(trackers, signal, m)
            for i in range(levels):
                trackers.offsets[m, i] = offsets[i] * expected_loss
    unit[TrackerUnit.LOSS] = LOSS_DISCOUNT * unit[TrackerUnit.LOSS] + 2.0 * pinball(q, y, trackers.levels)
    unit[TrackerUnit.COUNT] = LOSS_DISCOUNT * unit[TrackerUnit.COUNT] + 1.0
    usual = unit[TrackerUnit.LOSS] / unit[TrackerUnit.COUNT]
    most = FARTHEST * usual
    new = 0.0
    if signal.shape[0] > 0:
        new = signal[PoolColumn.COUNT] - seen[PoolColumn.COUNT]
    for m in range(first_awake(trackers.pooled, signal), trackers.options.shape[0]):
        size = trackers.options[m, QuantileTrackerColumn.STEP] * UNIT * usual
        kept = 1.0 - trackers.options[m, QuantileTrackerColumn.LEAK]
        share = trackers.options[m, QuantileTrackerColumn.SHARE] if new > 0.0 else 0.0
        for i in range(levels):
            gradient = own[m, i]
            if share > 0.0:
                at = PoolColumn.SUMS + m * levels + i
                gradient += share * ((signal[at] - seen[at]) / new - gradient)
            trackers.offsets[m, i] = min(max(kept * trackers.offsets[m, i] - size * gradient, -most), most)
    if signal.shape[0] > 0:
        for i in range(seen.shape[0]):
            seen[i] = signal[i]
