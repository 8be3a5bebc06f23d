"""Compiled kernels of the level offsets: what keeps the corrected expert calibrated at each level in the long run.

Each level has an offset, in units of the corrected expert's spread, which moves with every outcome,

    o_l  <-  o_l - rate (1{y < q_l + s o_l} - l) / density of a normal at the level

so that rare levels learn as fast as others.  The offsets add up errors (an integrator), where the last layer answers in
proportion to them and needs a debt to do so.
"""

from __future__ import annotations

import numpy as np

from orcast.engine.kernels.delays import STALE
from orcast.engine.kernels.evidence import OVERLAP
from orcast.engine.kernels.quantile_trackers import offset_gradient
from orcast.engine.kernels.records import Statistic
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp, pi, sqrt

# The rate, and how it falls to that while there are few outcomes.
RATE, EARLY_RATE, START = 0.008, 0.4, 20.0


@kernel_part
def rate_of(statistics, pending):
    """The rate of a step; smaller with outcomes outstanding, as errors of as many rounds are partly one.

    Once outcomes are stale, a batch of errors is one: its steps are all taken before the first is seen.
    """
    overlap = 1.0 + min(pending, OVERLAP)
    late = overlap if pending >= STALE else sqrt(overlap * sqrt(overlap))
    return max(RATE, EARLY_RATE / (statistics[Statistic.OUTCOMES] + START)) / late


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
    gradient = np.empty(base.shape[0])
    offset_gradient(base, offsets, spread, expert.low, expert.high, y, levels, gradient)
    for i in range(base.shape[0]):
        step = rate * sqrt(2.0 * pi) * exp(0.5 * scores[i] * scores[i])
        offsets[i] = min(max(offsets[i] - step * gradient[i], -1.0 - abs(scores[i])), 1.0 + abs(scores[i]))
