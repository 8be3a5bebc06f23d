"""Correction by group, where a payoff has groups: shift and scale of the corrected quantiles of a round.

For each group the mean error a and the mean distance b from it, in spreads of the quantiles, both shrunk to those of
calibrated quantiles: q -> median + a spread + b (q - median). The weight of the correction depends on its loss.
"""

from orcast.constants import LOSS_DISCOUNT

# The hypothesis that the quantiles are right counts as this many outcomes; smallest rate, largest error in spreads.
START, RATE, MOST = 10.0, 0.002, 8.0
# Prior odds against the correction, rate of its weight in units of the usual loss, and the largest exponent.
ODDS, WEIGHT_RATE, MOST_BEHIND = 4.0, 2.0, 20.0
# Numbers of a group (outcomes, mean error, mean distance from it minus 1); then losses without and with the correction.
SIZE = 3


def largest_group(rules, context):
    """Number of the group of a round: the one with the largest context; -1 if there is none."""
    found = -1
    most = 0.0
    for g in range(rules.group_count):
        c = fabs(context[rules.group_at + g])
        if c > most:
            most = c
            found = g
    return found


def mean_distance(q, count):
    """Mean distance of quantiles from their median."""
    total = 0.0
    for i in range(count):
        total += fabs(q[i] - q[count // 2])
    return total / count


def move(q, count, spread, group, share, out):
    """Quantiles shifted and scaled as a group asks for, by a share of it."""
    median = q[count // 2]
    for i in range(count):
        out[i] = median + share * group[1] * spread + (1.0 + share * group[2]) * (q[i] - median)


def correct_groups(rules, memory, round, q):
    """Correct quantiles for the group of a round, in place; the round keeps them as they were."""
    count = rules.grid_count
    for i in range(count):
        round.before[i] = q[i]
    g = largest_group(rules, round.context)
    if g < 0:
        return
    losses = cut(memory.by_group, SIZE * rules.group_count, 2)
    behind = min(max(WEIGHT_RATE * (losses[1] - losses[0]), -MOST_BEHIND), MOST_BEHIND)
    share = 1.0 / (1.0 + ODDS * exp(behind))
    move(round.before, count, mean_distance(q, count), cut(memory.by_group, SIZE * g, SIZE), share, q)


def pinball(rules, q, y):
    """Mean pinball loss at the levels of the grid."""
    total = 0.0
    for i in range(rules.grid_count):
        d = y - q[i]
        total += rules.grid[i] * d if d > 0.0 else (rules.grid[i] - 1.0) * d
    return total / rules.grid_count


def learn_groups(rules, memory, round, y, usual, w):
    """Update the group of a round with its outcome; `usual` is the expert's usual loss."""
    g = largest_group(rules, round.context)
    spread = mean_distance(round.before, rules.grid_count)
    if g < 0 or spread <= 0.0 or usual <= 0.0:
        return
    used = mark(w)
    group, losses = cut(memory.by_group, SIZE * g, SIZE), cut(memory.by_group, SIZE * rules.group_count, 2)
    moved = take(w, rules.grid_count)
    move(round.before, rules.grid_count, spread, group, 1.0, moved)
    late = 1.0 + round.info.pending
    losses[0] = LOSS_DISCOUNT * losses[0] + pinball(rules, round.before, y) / usual / late
    losses[1] = LOSS_DISCOUNT * losses[1] + pinball(rules, moved, y) / usual / late
    error = min(max((y - round.before[rules.grid_count // 2]) / spread, -MOST), MOST)
    group[0] += 1.0
    rate = max(RATE, 1.0 / (group[0] + START * late))
    away = fabs(error - group[1])
    group[1] += rate * (error - group[1])
    group[2] += rate * (away - 1.0 - group[2])
    release(w, used)
