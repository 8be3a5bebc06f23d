"""Compiled kernels of the tracker: an online location-scale correction of the expert, in normal scores.

Let Q(z) be the expert's quantile at the level Phi(z), linear between the levels given and beyond.  Each learner
predicts the mean a and the spread b of the normal score of the next outcome, and Q(a + b z) is its corrected expert:
for a Gaussian expert a shift and a stretch; atoms and bounds stay where they are.

    a : recursive least squares on the last errors and on how far the last outcome lies from today's median
    b : a slow mean of |score - a| times exp(linear in: its fast mean, the level of the median, the expert's own
        spread, the distance to the last outcome), fitted by recursive least squares on |score - a| / (c b) - 1

The learners' a and b are averaged with exponential weights on their discounted pinball loss; the expert itself (a = 0,
b = 1) is one of them.  Every observation counts 1 / sqrt(1 + outcomes outstanding when the forecast was made): errors
of one batch are seldom independent.
"""

from __future__ import annotations

import math

import numpy as np

from orcast.jit import kernel

# What a learner is made of, one row each: location features used, memory of the slow spread.
FEATURES, SLOW = 0, 1
N_LOCATION, N_SPREAD = 5, 5
# Learners keep this share of the past at each step, and start this sure of "the expert is right".
DISCOUNT = 0.998
LOCATION_START, SPREAD_START = 0.05, 0.02
LOCATION_CAP, SPREAD_CAP = 0.5, 0.1
FAST = 0.9
RHO_DISCOUNT = 0.99
WEIGHT_RATE = 2.0
# E|z| of a standard normal
MEAN_ABS = 0.7978845608028654

# Places in the tally.
(
    RHO,  # running size of the expert's scores
    ERROR_1,  # y - median of the last three booked rounds
    ERROR_2,
    ERROR_3,
    LAST_Y,
    SEEN,
    MEDIAN_MEAN,
    MEDIAN_VAR,
    LOG_SCALE_MEAN,
    DISTANCE_MEAN,
    LAST_PIT,  # of the corrected expert
    LOSS_SUM,  # discounted CRPS of the expert, or of the pool of experts
    LOSS_COUNT,
    LEARNT,  # observations, discounted for delay
    LAST_ERROR,  # outcome minus the median that was played
    LEVEL_MEAN,  # of the outcomes, where there is no expert
    LEVEL_VAR,
    REACH,  # the usual loss of the expert, in which no single outcome counts much: for the window
) = range(18)
STATISTICS_SIZE = 18

# Places in what the tracker records of a round: location features, then these, then a, b and spread features of each
# learner.
SCALE, SLOPE_LOW, SLOPE_HIGH, RHO_THEN, MEDIAN = 5, 6, 7, 8, 9
LEARNERS_AT = 10
PER_LEARNER = 2 + N_SPREAD


@kernel
def outer_slopes(q, z, smallest):
    """Slopes of Q beyond the outer levels: those of each half, kept comparable and positive."""
    last = q.shape[0] - 1
    middle = last // 2
    low = (q[middle] - q[0]) / (z[middle] - z[0])
    high = (q[last] - q[middle]) / (z[last] - z[middle])
    least = max(0.125 * (low + high), smallest)
    return max(low, least), max(high, least)


@kernel
def quantile_at(score, q, z, slope_low, slope_high):
    """Q at a normal score."""
    last = q.shape[0] - 1
    if score <= z[0]:
        return q[0] + (score - z[0]) * slope_low
    if score >= z[last]:
        return q[last] + (score - z[last]) * slope_high
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
def corrected(location, spread, q, z, slope_low, slope_high, low, high, out):
    """The quantiles Q(location + spread z) at the grid, within the bounds; one walk along the grid."""
    last = q.shape[0] - 1
    j = 0
    for i in range(last + 1):
        score = location + spread * z[i]
        if score <= z[0]:
            value = q[0] + (score - z[0]) * slope_low
        elif score >= z[last]:
            value = q[last] + (score - z[last]) * slope_high
        else:
            while z[j + 1] < score:
                j += 1
            value = q[j] + (q[j + 1] - q[j]) * (score - z[j]) / (z[j + 1] - z[j])
        out[i] = min(max(value, low), high)


@kernel
def normal_score(y, q, z, slope_low, slope_high):
    """Mean and variance of the normal score of a value; the variance is zero unless it is an atom of the expert."""
    last = q.shape[0] - 1
    if y < q[0]:
        return z[0] + (y - q[0]) / slope_low, 0.0
    if y > q[last]:
        return z[last] + (y - q[last]) / slope_high, 0.0
    i = np.searchsorted(q, y)
    if q[i] > y:
        return z[i - 1] + (z[i] - z[i - 1]) * (y - q[i - 1]) / (q[i] - q[i - 1]), 0.0
    j = np.searchsorted(q, y, side="right") - 1
    if i == j:
        return z[i], 0.0
    # On an atom: a standard normal cut to the atom's share of the levels.
    return cut_normal(z[i] if i > 0 else -8.0, z[j] if j < last else 8.0)


@kernel
def outcome_score(y, q, z, slope_low, slope_high, low, high):
    """The same for an outcome: at a bound it stands for all that the expert puts beyond."""
    score, blur = normal_score(y, q, z, slope_low, slope_high)
    if y <= low and score > -6.0:
        return cut_normal(-8.0, score if blur == 0.0 else z[np.searchsorted(q, y, side="right") - 1])
    if y >= high and score < 6.0:
        return cut_normal(score if blur == 0.0 else z[np.searchsorted(q, y)], 8.0)
    return score, blur


@kernel
def cut_normal(a, b):
    """Mean and variance of a standard normal cut to [a, b]."""
    share = 0.5 * (math.erf(b / math.sqrt(2.0)) - math.erf(a / math.sqrt(2.0)))
    density_a = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    density_b = math.exp(-0.5 * b * b) / math.sqrt(2.0 * math.pi)
    mean = (density_a - density_b) / share
    return mean, max(1.0 + (a * density_a - b * density_b) / share - mean * mean, 0.0)


@kernel
def pinball(q, y, levels):
    """Mean pinball loss of quantiles."""
    total = 0.0
    for i in range(q.shape[0]):
        error = y - q[i]
        total += levels[i] * error if error > 0.0 else (levels[i] - 1.0) * error
    return total / q.shape[0]


@kernel
def least_squares(theta, P, x, count, error, discount, weight, cap, gain):
    """One step of recursive least squares with forgetting; P stops growing at `cap` where nothing excites it."""
    scale = discount / weight
    for i in range(count):
        total = 0.0
        for j in range(count):
            total += P[i, j] * x[j]
        gain[i] = total
        scale += total * x[i]
    for i in range(count):
        theta[i] += gain[i] / scale * error
    largest = 0.0
    for i in range(count):
        for j in range(count):
            P[i, j] = (P[i, j] - gain[i] * gain[j] / scale) / discount
        largest = max(largest, P[i, i])
    if largest > cap:
        for i in range(count):
            for j in range(count):
                P[i, j] *= discount


@kernel
def track(q, z, low, high, smallest, learners, loss, doubt, memory, tracker_record, out):
    """Fill `tracker_record` with what each learner says and `out` with the quantiles of the corrected expert."""
    statistics = memory.statistics
    middle = q.shape[0] // 2
    slope_low, slope_high = outer_slopes(q, z, smallest)
    scale = 0.5 * (quantile_at(1.0, q, z, slope_low, slope_high) - quantile_at(-1.0, q, z, slope_low, slope_high))
    scale = max(scale, 0.1 * (slope_low + slope_high))
    rho = statistics[RHO]
    tracker_record[0] = 1.0
    for i in range(1, N_LOCATION):
        tracker_record[i] = 0.0
    if statistics[SEEN] > 0.0:
        # scores under today's expert, so that a learnt shift means the same on both sides of a skewed one
        for i in range(1, N_LOCATION):
            value = statistics[LAST_Y] if i == N_LOCATION - 1 else q[middle] + statistics[ERROR_1 + i - 1]
            then, _ = normal_score(value, q, z, slope_low, slope_high)
            tracker_record[i] = min(max(then / rho, -8.0), 8.0)
    tracker_record[SCALE] = scale
    tracker_record[SLOPE_LOW] = slope_low
    tracker_record[SLOPE_HIGH] = slope_high
    tracker_record[RHO_THEN] = rho
    tracker_record[MEDIAN] = q[middle]
    best = loss[0]
    for c in range(1, loss.shape[0]):
        best = min(best, loss[c])
    # The expert as it is: weight by the first loss.
    weight = math.exp(-WEIGHT_RATE * (loss[0] - best))
    location = 0.0
    spread = weight
    total = weight
    for c in range(learners.shape[0]):
        at = LEARNERS_AT + c * PER_LEARNER
        a = 0.0
        for i in range(int(learners[c, FEATURES])):
            a += memory.location[c, i] * tracker_record[i]
        slow = memory.spread[c, 0]
        tracker_record[at + 2] = 1.0
        tracker_record[at + 3] = math.log((memory.spread[c, 1] + 0.1 * slow) / (1.1 * slow))
        for i in range(4, 7):
            tracker_record[at + i] = 0.0
        if statistics[SEEN] > 5.0:
            level = (q[middle] - statistics[MEDIAN_MEAN]) / math.sqrt(statistics[MEDIAN_VAR] + 1e-300)
            tracker_record[at + 4] = min(max(level, -3.0), 3.0)
            tracker_record[at + 5] = min(max(math.log(scale) - statistics[LOG_SCALE_MEAN], -2.0), 2.0)
            tracker_record[at + 6] = math.log(1.0 + abs(tracker_record[4])) - statistics[DISTANCE_MEAN]
        stretch = 0.0
        for i in range(N_SPREAD):
            stretch += memory.fit[c, i] * tracker_record[at + 2 + i]
        b = slow * math.exp(min(max(stretch, -1.5), 1.5))
        tracker_record[at] = a * rho
        tracker_record[at + 1] = b * rho
        weight = doubt * math.exp(-WEIGHT_RATE * (loss[c + 1] - best))
        location += weight * tracker_record[at]
        spread += weight * tracker_record[at + 1]
        total += weight
    corrected(location / total, spread / total, q, z, slope_low, slope_high, low, high, out)


@kernel
def learn(
    y, near, most, q, z, levels, low, high, learners, loss, loss_discount, loss_unit, weight, memory, tracker_record
):
    """Teach every learner the outcome of a round, from what it saw when the forecast was made.

    `near` is the outcome clipped to the round's window: no single one may decide the weights for good.  A score
    counts as at most `most` times the usual one.
    """
    statistics = memory.statistics
    slope_low = tracker_record[SLOPE_LOW]
    slope_high = tracker_record[SLOPE_HIGH]
    score, blur = outcome_score(y, q, z, slope_low, slope_high, low, high)
    rho = statistics[RHO]
    aged = tracker_record[RHO_THEN] / rho
    features = np.empty(N_LOCATION)
    features[0] = 1.0
    for i in range(1, N_LOCATION):
        features[i] = tracker_record[i] * aged
    target = min(max(score / rho, -most), most)
    gain = np.empty(max(N_LOCATION, N_SPREAD))
    quantiles = np.empty(q.shape[0])
    discount = 1.0 - (1.0 - DISCOUNT) * weight
    fade = 1.0 - (1.0 - loss_discount) * weight
    for c in range(-1, learners.shape[0]):
        at = LEARNERS_AT + c * PER_LEARNER
        location = tracker_record[at] if c >= 0 else 0.0
        spread = tracker_record[at + 1] if c >= 0 else 1.0
        corrected(location, spread, q, z, slope_low, slope_high, low, high, quantiles)
        own = pinball(quantiles, near, levels)
        loss[c + 1] = fade * loss[c + 1] + weight * own / loss_unit
        if c < 0:
            continue
        count = int(learners[c, FEATURES])
        error = target
        for i in range(count):
            error -= memory.location[c, i] * features[i]
        least_squares(
            memory.location[c],
            memory.location_cov[c],
            features,
            count,
            error,
            discount,
            weight,
            LOCATION_CAP,
            gain,
        )
        size = math.sqrt(error * error + blur / (rho * rho)) / MEAN_ABS
        surprise = min(size * rho / tracker_record[at + 1] - 1.0, 4.0)
        spread_features = tracker_record[at + 2 : at + 2 + N_SPREAD]
        least_squares(
            memory.fit[c],
            memory.fit_cov[c],
            spread_features,
            N_SPREAD,
            surprise,
            discount,
            weight,
            SPREAD_CAP,
            gain,
        )
        slow = memory.spread[c, 0]
        rate = (1.0 - FAST) * weight
        memory.spread[c, 1] = (1.0 - rate) * memory.spread[c, 1] + rate * min(size, 6.0 * slow)
        rate = (1.0 - learners[c, SLOW]) * weight
        # with bounds (6) the targets are bound enough; without, an adversary would run away with the spread
        counted = size if most >= 6.0 else min(size, most * slow)
        memory.spread[c, 0] = max((1.0 - rate) * slow + rate * counted, 1e-3)
    rate = (1.0 - RHO_DISCOUNT) * weight
    square = min(score * score + blur, most * most * rho * rho)
    new_rho = max(math.sqrt((1.0 - rate) * rho * rho + rate * square), 1e-3)
    for c in range(learners.shape[0]):
        memory.location[c, 0] *= rho / new_rho
        memory.spread[c, 0] *= rho / new_rho
        memory.spread[c, 1] *= rho / new_rho
    statistics[RHO] = new_rho
    rate = max(0.002, 1.0 / (statistics[SEEN] + 1.0))
    step = tracker_record[MEDIAN] - statistics[MEDIAN_MEAN]
    statistics[MEDIAN_MEAN] += rate * step
    statistics[MEDIAN_VAR] = (1.0 - rate) * (statistics[MEDIAN_VAR] + rate * step * step)
    statistics[LOG_SCALE_MEAN] += rate * (math.log(tracker_record[SCALE]) - statistics[LOG_SCALE_MEAN])
    statistics[DISTANCE_MEAN] += rate * (math.log(1.0 + abs(tracker_record[4])) - statistics[DISTANCE_MEAN])
    statistics[ERROR_3] = statistics[ERROR_2]
    statistics[ERROR_2] = statistics[ERROR_1]
    statistics[ERROR_1] = y - tracker_record[MEDIAN]
    statistics[LAST_Y] = y
    statistics[SEEN] += 1.0
