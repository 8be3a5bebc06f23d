"""Compiled kernels of what is learnt of the expert group by group, where a payoff has a context.

For each group the mean a and the variance of the normal score of the outcome under the expert; Q(a + b z) is the
expert as corrected for the groups of the round.  How much of it is used depends on how it did, by discounted pinball
loss, against the expert as it is.
"""

from __future__ import annotations

import numpy as np

from orcast.constants import LOSS_DISCOUNT, WEIGHT_RATE
from orcast.engine.kernels.delays import delayed
from orcast.engine.kernels.quantile_function import corrected, normal_score, quantile_function
from orcast.engine.kernels.quantile_trackers import pinball
from orcast.engine.kernels.records import GroupColumn, GroupLoss, RoundInfo
from orcast.jit import kernel
from orcast.jit.ieee import exp, sqrt

# "The expert is right" counts as this many rounds; the past is forgotten at this rate at least.
START, RATE = 10.0, 0.002
MOST_SCORE, LEAST_SPREAD, MOST_SPREAD = 8.0, 0.1, 10.0


@kernel
def wanted_correction(rules, by_group, context):
    """Location and spread that the groups of a round ask for."""
    total = 0.0
    mean = 0.0
    variance = 0.0
    for g in range(rules.group_count):
        c = abs(context[rules.group_at + g])
        total += c
        mean += c * by_group[g, GroupColumn.MEAN]
        variance += c * by_group[g, GroupColumn.VARIANCE]
    if total > 0.0:
        return mean / total, min(max(sqrt(variance / total), LEAST_SPREAD), MOST_SPREAD)
    return 0.0, 1.0


@kernel
def correct(rules, memory, round, odds, out):
    """The quantiles of the expert as corrected for the groups of a round.

    `odds` are the prior odds of the correction against the expert; the round keeps what its groups asked for.
    """
    location, spread = wanted_correction(rules, memory.by_group, round.context)
    round.info[RoundInfo.GROUP_LOCATION] = location
    round.info[RoundInfo.GROUP_SPREAD] = spread
    behind = memory.group_loss[GroupLoss.CORRECTED] - memory.group_loss[GroupLoss.EXPERT]
    share = odds / (odds + exp(min(max(WEIGHT_RATE * behind, -700.0), 700.0)))
    expert = quantile_function(rules, round.raw, round.info[RoundInfo.SMALLEST_SLOPE])
    corrected(share * location, 1.0 + share * (spread - 1.0), expert, out)


@kernel
def learn(rules, memory, round, outcome):
    """Teach the groups of a round its outcome."""
    weight, loss = outcome.weight, memory.group_loss
    expert = quantile_function(rules, round.raw, round.info[RoundInfo.SMALLEST_SLOPE])
    quantiles = np.empty(round.raw.shape[0])
    corrected(round.info[RoundInfo.GROUP_LOCATION], round.info[RoundInfo.GROUP_SPREAD], expert, quantiles)
    kept = delayed(LOSS_DISCOUNT, weight)
    unit = 0.5 * outcome.unit
    lost = pinball(quantiles, outcome.clipped, rules.grid)
    loss[GroupLoss.CORRECTED] = kept * loss[GroupLoss.CORRECTED] + weight * lost / unit
    lost = pinball(round.raw, outcome.clipped, rules.grid)
    loss[GroupLoss.EXPERT] = kept * loss[GroupLoss.EXPERT] + weight * lost / unit
    score, blur = normal_score(outcome.value, expert)
    score = min(max(score, -MOST_SCORE), MOST_SCORE)
    for g in range(rules.group_count):
        c = abs(round.context[rules.group_at + g])
        if c == 0.0:
            continue
        group = memory.by_group[g]
        group[GroupColumn.ROUNDS] += c * weight
        rate = c * weight * max(RATE, 1.0 / (group[GroupColumn.ROUNDS] + START))
        error = score - group[GroupColumn.MEAN]
        group[GroupColumn.MEAN] += rate * error
        group[GroupColumn.VARIANCE] += rate * (error * error + blur - group[GroupColumn.VARIANCE])
