"""Correction of the expert by group, where a payoff has a context.

For each group the mean a and the variance b^2 of the normal score of the outcome under the expert; Q(a + b z) is the
expert corrected for the groups of the round. Its weight depends on its discounted pinball loss against the expert's.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import LOSS_DISCOUNT, WEIGHT_RATE

if not cython.compiled:
    from orcast.kernels.delays import delayed
    from orcast.kernels.pure import exp, fabs, group_statistics_at, sqrt
    from orcast.kernels.quantile_function import corrected, normal_score, outer_slopes
    from orcast.kernels.quantile_trackers import pinball
    from orcast.kernels.rows import mark, release, take

# The hypothesis that the expert is right counts as this many rounds; smallest rate of the means.
START, RATE = 10.0, 0.002
MOST_SCORE, LEAST_SPREAD, MOST_SPREAD = 8.0, 0.1, 10.0


def wanted_correction(rules, by_group, context):
    """Mean location and spread of the groups of a round."""
    total = 0.0
    mean = 0.0
    variance = 0.0
    for g in range(rules.group_count):
        c = fabs(context[rules.group_at + g])
        total += c
        mean += c * by_group[g].mean
        variance += c * by_group[g].variance
    if total > 0.0:
        return mean / total, min(max(sqrt(variance / total), LEAST_SPREAD), MOST_SPREAD)
    return 0.0, 1.0


def correct(rules, memory, round, odds, out, w):
    """Fill `out` with the quantiles of the expert corrected for the groups of a round.

    `odds` are the prior odds of the correction against the expert; the round keeps the location and spread.
    """
    location, spread = wanted_correction(rules, memory.by_group, round.context)
    round.info.group_location = location
    round.info.group_spread = spread
    behind = memory.group_loss.corrected - memory.group_loss.expert
    share = odds / (odds + exp(min(max(WEIGHT_RATE * behind, -700.0), 700.0)))
    slope_low, slope_high = outer_slopes(rules, round.raw, round.info.smallest_slope)
    corrected(share * location, 1.0 + share * (spread - 1.0), rules, round.raw, slope_low, slope_high, out)


def learn(rules, memory, round, y, clipped, weight, unit, w):
    """Update the groups of a round with its outcome."""
    used = mark(w)
    loss = memory.group_loss
    slope_low, slope_high = outer_slopes(rules, round.raw, round.info.smallest_slope)
    quantiles = take(w, rules.grid_count)
    location, spread = round.info.group_location, round.info.group_spread
    corrected(location, spread, rules, round.raw, slope_low, slope_high, quantiles)
    kept = delayed(LOSS_DISCOUNT, weight)
    half = 0.5 * unit
    lost = pinball(quantiles, rules.grid_count, clipped, rules.grid)
    loss.corrected = kept * loss.corrected + weight * lost / half
    lost = pinball(round.raw, rules.grid_count, clipped, rules.grid)
    loss.expert = kept * loss.expert + weight * lost / half
    score, blur = normal_score(y, rules, round.raw, slope_low, slope_high)
    score = min(max(score, -MOST_SCORE), MOST_SCORE)
    for g in range(rules.group_count):
        c = fabs(round.context[rules.group_at + g])
        if c == 0.0:
            continue
        group = group_statistics_at(memory.by_group, g)
        group.rounds += c * weight
        rate = c * weight * max(RATE, 1.0 / (group.rounds + START))
        error = score - group.mean
        group.mean += rate * error
        group.variance += rate * (error * error + blur - group.variance)
    release(w, used)
