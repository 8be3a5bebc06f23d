"""Compiled kernels of the quantile trackers: offsets from the expert's quantiles, one at each level.

Each tracker takes gradient steps on the pinball loss and lets go of what it learnt at a small rate,

    theta_l  <-  (1 - leak) theta_l - step u g_l,      g_l = 1{y < q_l + theta_l} - l

with the expert's usual loss as the unit u (quantile tracking, Angelopoulos et al. 2023; at many levels at once, Ding,
Gibbs and Tibshirani 2025).  Two things are ours.  With late outcomes the gradient is taken at the offsets of today, not
at those of the forecast: an error that was corrected since is not corrected once more.  And in a pool a share of each
step is the mean gradient of all its streams since this one's last outcome: what is common to them is seen once by each,
with less noise.
"""

from __future__ import annotations

import numpy as np

from orcast.engine.kernels.records import PoolColumn, QuantileTrackerColumn, Statistic
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp

# Steps are in units of so many usual losses; offsets reach no further than FARTHEST of them.
UNIT = 3.0
FARTHEST = 50.0


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
def beyond_chance(ledger):
    """How far the expert's own miscalibration is beyond what chance makes of it: about 1 if it is calibrated."""
    last = ledger.shape[0] - 1
    square = 0.0
    for i in range(last):
        square += ledger[i] * ledger[i]
    return square / max(ledger[last], 1e-300)


@kernel_part
def spread_of(q, scores):
    """The mean slope of quantiles in normal scores."""
    last = q.shape[0] - 1
    side = last // 6
    return (q[last - side] - q[side]) / (scores[last - side] - scores[side])


@kernel
def learn_levels(offsets, base, scores, levels, rate, expert, y):
    """A step of each level's offset, over the density of a normal there, so that rare levels learn as fast."""
    spread = spread_of(base, scores)
    if spread <= 0.0:
        return
    quantiles = np.empty(base.shape[0])
    gradient = np.empty(base.shape[0])
    offset_quantiles(base, offsets, spread, expert.low, expert.high, quantiles)
    pinball_gradient(quantiles, y, levels, gradient)
    for i in range(base.shape[0]):
        step = rate * 2.5066282746310002 * exp(0.5 * scores[i] * scores[i])
        offsets[i] = min(max(offsets[i] - step * gradient[i], -1.0 - abs(scores[i])), 1.0 + abs(scores[i]))


@kernel
def learn_ledger(ledger, quantiles, levels, discount, y):
    """Settle the expert's own forecast."""
    last = ledger.shape[0] - 1
    gradient = np.empty(last)
    pinball_gradient(quantiles, y, levels, gradient)
    ledger[last] *= discount * discount
    for i in range(last):
        ledger[i] = discount * ledger[i] + gradient[i]
        ledger[last] += gradient[i] * gradient[i]


@kernel_part
def begins(rules, memory, signal):
    """Whether the offsets are those of the pool still: before the first outcome in a pool that has learnt."""
    return rules.pooled > 0 and signal.shape[0] > 0 and memory.statistics[Statistic.OUTCOMES] == 0.0


@kernel
def track_quantiles(rules, memory, expert, signal, usual, out):
    """What each tracker says; a stream without a past says what the others of its pool would."""
    cold = begins(rules, memory, signal)
    levels = expert.values.shape[0]
    for m in range(rules.quantile_trackers.shape[0]):
        if cold and m < rules.pooled:
            at = PoolColumn.SUMS + (rules.pooled + m) * levels
            offset_quantiles(expert.values, signal[at : at + levels], usual, expert.low, expert.high, out[m])
        else:
            offset_quantiles(expert.values, memory.offsets[m], 1.0, expert.low, expert.high, out[m])


@kernel
def gradients(rules, memory, expert, signal, usual, y, out):
    """The gradient of each tracker at an outcome, at the offsets of now."""
    quantiles = np.empty((rules.quantile_trackers.shape[0], expert.values.shape[0]))
    track_quantiles(rules, memory, expert, signal, usual, quantiles)
    for m in range(quantiles.shape[0]):
        pinball_gradient(quantiles[m], y, rules.grid, out[m])


@kernel
def learn_quantiles(rules, memory, expert, signal, outcome):
    """A step of each tracker; in a pool, with what all streams saw since the last one."""
    levels = expert.values.shape[0]
    own = np.empty((rules.quantile_trackers.shape[0], levels))
    gradients(rules, memory, expert, signal, outcome.unit, outcome.value, own)
    if begins(rules, memory, signal):
        for m in range(rules.pooled):
            for i in range(levels):
                at = PoolColumn.SUMS + (rules.pooled + m) * levels + i
                memory.offsets[m, i] = signal[at] * outcome.unit
    seen = 0.0
    if signal.shape[0] > 0:
        seen = signal[PoolColumn.COUNT] - memory.pool_seen[PoolColumn.COUNT]
    most = FARTHEST * outcome.unit
    for m in range(rules.quantile_trackers.shape[0]):
        step = rules.quantile_trackers[m, QuantileTrackerColumn.STEP] * rules.tune[3] * outcome.unit
        kept = 1.0 - rules.quantile_trackers[m, QuantileTrackerColumn.LEAK]
        share = rules.quantile_trackers[m, QuantileTrackerColumn.SHARE] if seen > 0.0 else 0.0
        for i in range(levels):
            gradient = own[m, i]
            if share > 0.0:
                at = PoolColumn.SUMS + m * levels + i
                gradient += share * ((signal[at] - memory.pool_seen[at]) / seen - gradient)
            memory.offsets[m, i] = min(max(kept * memory.offsets[m, i] - step * gradient, -most), most)
    for i in range(memory.pool_seen.shape[0]):
        memory.pool_seen[i] = signal[i] if signal.shape[0] > 0 else memory.pool_seen[i]
