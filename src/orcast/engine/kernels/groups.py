"""Compiled kernels of what is learnt of the expert group by group, where a payoff has a context.

For each group the mean a and the variance of the normal score of the outcome under the expert; Q(a + b z) is the
expert as corrected for the groups of the round.  How much of it is used depends on how it did, by discounted pinball
loss, against the expert as it is.
"""

from __future__ import annotations

import math

import numpy as np

from orcast.engine.kernels.tracker import corrected, normal_score, outer_slopes, pinball
from orcast.jit import kernel

# Columns of what is remembered of a group: rounds, mean and variance of the scores.
ROUNDS, MEAN, VARIANCE = 0, 1, 2
GROUP_SIZE = 3
# "The expert is right" counts as this many rounds; the past is forgotten at this rate at least.
START, RATE = 10.0, 0.002
WEIGHT_RATE = 2.0
MOST_SCORE, LEAST_SPREAD, MOST_SPREAD = 8.0, 0.1, 10.0


@kernel
def wanted_correction(rules, by_group, context, out):
    """Location and spread that the groups of a round ask for."""
    total = 0.0
    mean = 0.0
    variance = 0.0
    for g in range(rules.group_count):
        c = abs(context[rules.group_at + g])
        total += c
        mean += c * by_group[g, MEAN]
        variance += c * by_group[g, VARIANCE]
    if total > 0.0:
        out[0] = mean / total
        out[1] = min(max(math.sqrt(variance / total), LEAST_SPREAD), MOST_SPREAD)
    else:
        out[0] = 0.0
        out[1] = 1.0


@kernel
def correct(rules, memory, raw, smallest, low, high, context, doubt, correction, out):
    """The expert as corrected for the groups of a round; `word` remembers what they asked for."""
    wanted_correction(rules, memory.by_group, context, correction)
    behind = min(max(WEIGHT_RATE * (memory.group_loss[1] - memory.group_loss[0]), -700.0), 700.0)
    share = doubt / (doubt + math.exp(behind))
    slope_low, slope_high = outer_slopes(raw, rules.scores, smallest)
    location, spread = share * correction[0], 1.0 + share * (correction[1] - 1.0)
    corrected(location, spread, raw, rules.scores, slope_low, slope_high, low, high, out)


@kernel
def learn(rules, memory, raw, smallest, y, near, low, high, context, correction, loss_discount, loss_unit, weight):
    """Teach the groups of a round its outcome."""
    slope_low, slope_high = outer_slopes(raw, rules.scores, smallest)
    fade = 1.0 - (1.0 - loss_discount) * weight
    quantiles = np.empty(raw.shape[0])
    corrected(correction[0], correction[1], raw, rules.scores, slope_low, slope_high, low, high, quantiles)
    memory.group_loss[1] = fade * memory.group_loss[1] + weight * pinball(quantiles, near, rules.grid) / loss_unit
    memory.group_loss[0] = fade * memory.group_loss[0] + weight * pinball(raw, near, rules.grid) / loss_unit
    score, blur = normal_score(y, raw, rules.scores, slope_low, slope_high)
    score = min(max(score, -MOST_SCORE), MOST_SCORE)
    for g in range(rules.group_count):
        c = abs(context[rules.group_at + g])
        if c == 0.0:
            continue
        group = memory.by_group[g]
        group[ROUNDS] += c * weight
        rate = c * weight * max(RATE, 1.0 / (group[ROUNDS] + START))
        error = score - group[MEAN]
        group[MEAN] += rate * error
        group[VARIANCE] += rate * (error * error + blur - group[VARIANCE])
