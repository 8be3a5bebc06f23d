"""Compiled kernels of the tracker: an online location-scale correction of the expert, in normal scores.

Let Q(z) be the expert's quantile at the level Phi(z), linear between the levels and beyond.  Each learner
predicts the mean a and the spread b of the normal score of the next outcome, and Q(a + b z) is its corrected expert:
for a Gaussian expert a shift and a stretch; atoms and bounds stay where they are.

    a : recursive least squares on the last errors and on how far the last outcomes lie from today's median
    b : a slow mean of |score - a| times exp(linear in: its fast mean, the level of the median, the expert's own
        spread, the distance to the last outcome), fitted by recursive least squares on |score - a| / (c b) - 1

An expert may be wrong in what it expects, or in not following the outcomes: some look at three of each.  These also
look at what surprised a season ago (`kernels.seasons`), and some trust an expert that moves much further
than it usually does: it may foresee a change.  Every observation counts 1 / sqrt(1 + outcomes outstanding when the
forecast was made): errors of one batch are seldom independent.  `kernels.correction` weighs the learners.
"""

from __future__ import annotations

import numpy as np

from orcast.engine.kernels.delays import delayed
from orcast.engine.kernels.quantile_function import normal_score, outcome_score, quantile_at
from orcast.engine.kernels.records import (
    LEARNER_SIZE,
    LOCATION_FEATURES,
    SPREAD_FEATURES,
    LearnerColumn,
    LearnerRecord,
    SeasonColumn,
    SpreadColumn,
    Statistic,
    TrackerRecord,
)
from orcast.engine.kernels.seasons import add_surprise, find_seasons, season_ago
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp, log, sqrt

# Learners keep this share of the past at each step, and start this sure of "the expert is right".
DISCOUNT = 0.998
LOCATION_START, SPREAD_START = 0.05, 0.02
LOCATION_CAP, SPREAD_CAP = 0.5, 0.1
FAST_DISCOUNT, SCORE_SIZE_DISCOUNT = 0.9, 0.99
# E|z| of a standard normal
MEAN_ABS = 0.7978845608028654
# The most that a score counts, in units of the usual one: with bounds or early on, and later without.
BOLD, CAREFUL, EARLY = 6.0, 3.0, 100.0
# What is kept of the largest recent error from outcome to outcome.
FARTHEST_KEPT = 0.97
# Where the expert moves FAR times as far as it usually does, the last errors count less.
FAR = 6.0
# Seasons are looked for after every so many outcomes.
SEARCH = 8
# The expert's own spread counts as so many outcomes.
YOUNG = 20.0


@kernel
def least_squares(theta, P, x, count, error, weight, cap, gain):
    """One step of recursive least squares with forgetting; P stops growing at `cap` where nothing excites it."""
    discount = delayed(DISCOUNT, weight)
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


@kernel_part
def feature_of(value, size, expert):
    """The normal score of a value over the usual size of scores."""
    score, _ = normal_score(value, expert)
    return min(max(score / size, -8.0), 8.0)


@kernel_part
def location_features(memory, expert, pending, record):
    """Scores of the last errors, of the last outcomes and of the errors of a season ago, over their usual size.

    So a learnt shift means the same on both sides of a skewed expert.  Where the expert moves much further than it
    usually does, it may know of a change that the last errors say nothing about: some learners then trust it.
    """
    statistics = memory.statistics
    record[TrackerRecord.ONE] = 1.0
    record[TrackerRecord.USUAL_MOVE] = 1.0
    for i in range(1, LOCATION_FEATURES):
        record[i] = 0.0
    if statistics[Statistic.OUTCOMES] > 0.0:
        median = expert.values[expert.values.shape[0] // 2]
        moved = abs(median - statistics[Statistic.LAST_MEDIAN])
        usual = FAR * statistics[Statistic.MOVE_MEAN]
        if moved > usual and statistics[Statistic.OUTCOMES] > 5.0:
            record[TrackerRecord.USUAL_MOVE] = (usual / moved) * (usual / moved)
        size = statistics[Statistic.SCORE_SIZE]
        for i in range(3):
            record[TrackerRecord.ERROR_1 + i] = feature_of(median + statistics[Statistic.ERROR_1 + i], size, expert)
        record[TrackerRecord.LAST_OUTCOME] = feature_of(statistics[Statistic.LAST_OUTCOME], size, expert)
        for i in range(2):
            record[TrackerRecord.OUTCOME_2 + i] = feature_of(statistics[Statistic.OUTCOME_2 + i], size, expert)
        for i in range(2):
            record[TrackerRecord.SEASON_1 + i] = season_ago(memory.surprises, memory.seasons, i, pending) / size


@kernel_part
def spread_features(statistics, record, at, slow, fast):
    """What the spread of the learner depends on whose part of the record begins there."""
    record[at + LearnerRecord.ONE] = 1.0
    record[at + LearnerRecord.FAST] = log((fast + 0.1 * slow) / (1.1 * slow))
    record[at + LearnerRecord.LEVEL] = 0.0
    record[at + LearnerRecord.SCALE] = 0.0
    record[at + LearnerRecord.DISTANCE] = 0.0
    if statistics[Statistic.OUTCOMES] > 5.0:
        level = record[TrackerRecord.MEDIAN] - statistics[Statistic.MEDIAN_MEAN]
        level /= sqrt(statistics[Statistic.MEDIAN_VARIANCE] + 1e-300)
        scale = log(record[TrackerRecord.SCALE]) - statistics[Statistic.LOG_SCALE_MEAN]
        record[at + LearnerRecord.LEVEL] = min(max(level, -3.0), 3.0)
        record[at + LearnerRecord.SCALE] = min(max(scale, -2.0), 2.0)
        record[at + LearnerRecord.DISTANCE] = distance_of(record) - statistics[Statistic.DISTANCE_MEAN]


@kernel_part
def distance_of(record):
    """How far the last outcome lies from the median, in logarithms."""
    return log(1.0 + abs(record[TrackerRecord.LAST_OUTCOME]))


@kernel_part
def trust(rules, record, c, i):
    """What a feature counts for a learner: less for one that trusts the expert, where that moved far."""
    if rules.learners[c, LearnerColumn.TRUSTING] == 0.0 or i == TrackerRecord.ONE or i >= TrackerRecord.SEASON_1:
        return 1.0
    return record[TrackerRecord.USUAL_MOVE]


@kernel_part
def learner_features(rules, record, c, out):
    """The location features of a learner, as far as it trusts them; returns how many."""
    count = int(rules.learners[c, LearnerColumn.FEATURES])
    for i in range(count):
        out[i] = record[i] * trust(rules, record, c, i)
    return count


@kernel
def uncertainty(rules, memory, features, count, c):
    """How much wider the outcome is spread because a learner's coefficients and spread are only known so well."""
    square = 0.0
    for i in range(count):
        total = 0.0
        for j in range(count):
            total += memory.location_cov[c, i, j] * features[j]
        square += total * features[i]
    rate = max(1.0 - rules.learners[c, LearnerColumn.DISCOUNT], 1.0 / (memory.statistics[Statistic.OUTCOMES] + YOUNG))
    return sqrt(1.0 + square) * (1.0 + rate)


@kernel_part
def learner_says(rules, memory, record, c, features):
    """Location and spread of a learner, which its part of the record keeps."""
    statistics = memory.statistics
    size = statistics[Statistic.SCORE_SIZE]
    at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
    count = learner_features(rules, record, c, features)
    a = 0.0
    for i in range(count):
        a += memory.location[c, i] * features[i]
    slow = memory.spread[c, SpreadColumn.SLOW]
    spread_features(statistics, record, at, slow, memory.spread[c, SpreadColumn.FAST])
    stretch = 0.0
    for i in range(SPREAD_FEATURES):
        stretch += memory.fit[c, i] * record[at + LearnerRecord.ONE + i]
    b = slow * exp(min(max(stretch, -1.5), 1.5)) * uncertainty(rules, memory, features, count, c)
    record[at + LearnerRecord.LOCATION] = a * size
    record[at + LearnerRecord.SPREAD] = b * size


@kernel_part
def learners_say(rules, memory, expert, pending, record):
    """Fill the record with what the learners look at and what they say."""
    scale = 0.5 * (quantile_at(1.0, expert) - quantile_at(-1.0, expert))
    location_features(memory, expert, pending, record)
    record[TrackerRecord.SCALE] = max(scale, 0.1 * (expert.slope_low + expert.slope_high))
    record[TrackerRecord.SLOPE_LOW] = expert.slope_low
    record[TrackerRecord.SLOPE_HIGH] = expert.slope_high
    record[TrackerRecord.SCORE_SIZE] = memory.statistics[Statistic.SCORE_SIZE]
    record[TrackerRecord.MEDIAN] = expert.values[expert.values.shape[0] // 2]
    features = np.empty(LOCATION_FEATURES)
    for c in range(rules.learners.shape[0]):
        learner_says(rules, memory, record, c, features)


@kernel
def learn(rules, memory, round, expert, outcome):
    """Teach every learner the outcome of a round, from what it saw when the forecast was made."""
    statistics, record, weight = memory.statistics, round.tracker_record, outcome.weight
    score, blur = outcome_score(outcome.value, expert)
    bounded = rules.high - rules.low < np.inf
    most = BOLD if bounded or statistics[Statistic.OUTCOMES] < EARLY else CAREFUL
    size = statistics[Statistic.SCORE_SIZE]
    gain = np.empty(max(LOCATION_FEATURES, SPREAD_FEATURES))
    features = np.empty(LOCATION_FEATURES)
    target = min(max(score / size, -most), most)
    for c in range(rules.learners.shape[0]):
        at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
        count = learner_features(rules, record, c, features)
        for i in range(1, count):
            features[i] *= record[TrackerRecord.SCORE_SIZE] / size
        error = target
        for i in range(count):
            error -= memory.location[c, i] * features[i]
        if c == 0:
            learn_seasons(memory, error * size)
        least_squares(memory.location[c], memory.location_cov[c], features, count, error, weight, LOCATION_CAP, gain)
        deviation = sqrt(error * error + blur / (size * size)) / MEAN_ABS
        surprise = min(deviation * size / record[at + LearnerRecord.SPREAD] - 1.0, 4.0)
        x = record[at + LearnerRecord.ONE : at + LEARNER_SIZE]
        least_squares(memory.fit[c], memory.fit_cov[c], x, SPREAD_FEATURES, surprise, weight, SPREAD_CAP, gain)
        slow, fast = memory.spread[c, SpreadColumn.SLOW], memory.spread[c, SpreadColumn.FAST]
        rate = (1.0 - FAST_DISCOUNT) * weight
        memory.spread[c, SpreadColumn.FAST] = (1.0 - rate) * fast + rate * min(deviation, 6.0 * slow)
        young = 1.0 / (statistics[Statistic.OUTCOMES] * weight + YOUNG)
        rate = max(1.0 - rules.learners[c, LearnerColumn.DISCOUNT], young) * weight
        # with bounds the targets are bound enough; without, an adversary would run away with the spread
        counted = deviation if most >= BOLD else min(deviation, most * slow)
        memory.spread[c, SpreadColumn.SLOW] = max((1.0 - rate) * slow + rate * counted, 1e-3)
    rescale(memory, score * score + blur, most, weight)
    learn_features(statistics, record, outcome.value)


@kernel
def learn_seasons(memory, surprise):
    """Note a surprise; where another season is found, nothing is known of its coefficients."""
    add_surprise(memory.surprises, memory.autocorrelation, memory.seasons, surprise)
    if int(memory.seasons[SeasonColumn.COUNT]) % SEARCH != 0:
        return
    changed = find_seasons(memory.autocorrelation, memory.seasons)
    for i in range(2):
        if changed % 2 == 1:
            for c in range(memory.location.shape[0]):
                forget(memory.location[c], memory.location_cov[c], TrackerRecord.SEASON_1 + i)
        changed //= 2


@kernel
def skip_steps(memory, count):
    """Steps of the calendar that had no outcome: nothing surprised, and seasons stay where they are."""
    for _ in range(count):
        learn_seasons(memory, 0.0)


@kernel_part
def forget(theta, P, i):
    """Begin a coefficient anew."""
    theta[i] = 0.0
    for j in range(theta.shape[0]):
        P[i, j] = 0.0
        P[j, i] = 0.0
    P[i, i] = LOCATION_START


@kernel_part
def rescale(memory, square, most, weight):
    """Learn the usual size of the scores, and keep what the learners say as it is in the new unit."""
    statistics = memory.statistics
    size = statistics[Statistic.SCORE_SIZE]
    rate = (1.0 - SCORE_SIZE_DISCOUNT) * weight
    square = min(square, most * most * size * size)
    new = max(sqrt((1.0 - rate) * size * size + rate * square), 1e-3)
    for c in range(memory.location.shape[0]):
        memory.location[c, 0] *= size / new
        memory.spread[c, SpreadColumn.SLOW] *= size / new
        memory.spread[c, SpreadColumn.FAST] *= size / new
    statistics[Statistic.SCORE_SIZE] = new


@kernel_part
def learn_features(statistics, record, y):
    """Means that the features are centred at, and the last errors and outcome."""
    rate = max(0.002, 1.0 / (statistics[Statistic.OUTCOMES] + 1.0))
    moved = abs(record[TrackerRecord.MEDIAN] - statistics[Statistic.LAST_MEDIAN])
    if statistics[Statistic.OUTCOMES] == 0.0:
        moved = 0.0
    # a jump that was foreseen is not what is usual
    usual = statistics[Statistic.MOVE_MEAN]
    most = 3.0 * usual if statistics[Statistic.OUTCOMES] > 10.0 and usual > 0.0 else moved
    statistics[Statistic.MOVE_MEAN] += rate * (min(moved, most) - statistics[Statistic.MOVE_MEAN])
    statistics[Statistic.LAST_MEDIAN] = record[TrackerRecord.MEDIAN]
    step = record[TrackerRecord.MEDIAN] - statistics[Statistic.MEDIAN_MEAN]
    statistics[Statistic.MEDIAN_MEAN] += rate * step
    variance = statistics[Statistic.MEDIAN_VARIANCE] + rate * step * step
    statistics[Statistic.MEDIAN_VARIANCE] = (1.0 - rate) * variance
    log_scale = log(record[TrackerRecord.SCALE])
    statistics[Statistic.LOG_SCALE_MEAN] += rate * (log_scale - statistics[Statistic.LOG_SCALE_MEAN])
    statistics[Statistic.DISTANCE_MEAN] += rate * (distance_of(record) - statistics[Statistic.DISTANCE_MEAN])
    statistics[Statistic.ERROR_3] = statistics[Statistic.ERROR_2]
    statistics[Statistic.ERROR_2] = statistics[Statistic.ERROR_1]
    statistics[Statistic.ERROR_1] = y - record[TrackerRecord.MEDIAN]
    # as long as there is one outcome, it is also those before
    first = statistics[Statistic.OUTCOMES] == 0.0
    statistics[Statistic.OUTCOME_3] = y if first else statistics[Statistic.OUTCOME_2]
    statistics[Statistic.OUTCOME_2] = y if first else statistics[Statistic.LAST_OUTCOME]
    statistics[Statistic.LAST_OUTCOME] = y
    far = FARTHEST_KEPT * statistics[Statistic.FARTHEST_ERROR]
    statistics[Statistic.FARTHEST_ERROR] = max(far, abs(statistics[Statistic.ERROR_1]))
    statistics[Statistic.OUTCOMES] += 1.0
