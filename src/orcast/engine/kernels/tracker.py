"""Compiled kernels of the tracker: an online location-scale correction of the expert, in normal scores.

Let Q(z) be the expert's quantile at the level Phi(z), linear between the levels and beyond.  Each learner
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

from typing import NamedTuple

import numpy as np

from orcast.constants import LOSS_DISCOUNT, WEIGHT_RATE
from orcast.engine.kernels.delays import delayed, horizon
from orcast.engine.kernels.evidence import add_evidence, share_of
from orcast.engine.kernels.quantile_trackers import (
    QuantileTrackers,
    beyond_chance,
    first_awake,
    learn_ledger,
    learn_levels,
    offset_quantiles,
    pinball,
    say,
    spread_of,
)
from orcast.engine.kernels.quantile_trackers import gradients as pool_gradients
from orcast.engine.kernels.quantile_trackers import learn as learn_offsets
from orcast.engine.kernels.seasons import add_surprise, find_seasons, season_ago
from orcast.engine.kernels.records import (
    LEARNER_SIZE,
    LOCATION_FEATURES,
    SPREAD_FEATURES,
    Array,
    LearnerColumn,
    LearnerRecord,
    PoolColumn,
    RoundInfo,
    SpreadColumn,
    Statistic,
    TrackerRecord,
    TrackerUnit,
)
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import erf, exp, log, pi, real_power, sqrt

# Learners keep this share of the past at each step, and start this sure of "the expert is right".
DISCOUNT = 0.998
LOCATION_START, SPREAD_START = 0.05, 0.02
LOCATION_CAP, SPREAD_CAP = 0.5, 0.1
FAST_DISCOUNT, SCORE_SIZE_DISCOUNT = 0.9, 0.99
# E|z| of a standard normal
MEAN_ABS = 0.7978845608028654
# The most that a score counts, in units of the usual one: with bounds or early on, and later without.
BOLD, CAREFUL, EARLY = 6.0, 3.0, 100.0
# No number grows beyond this, whatever an adversary does.
FARTHEST = 1e110
# No quantile lies further beyond the expert's and the recent outcomes than CAP spreads; what is kept of the largest
# recent error from outcome to outcome.
CAP, FARTHEST_KEPT = 2.0, 0.97
# Where the expert moves FAR times as far as it usually does, the last errors count less.
FAR = 6.0
# The expected CRPS of a normal in units of its standard deviation; the pool's evidence counts as so many outcomes.
PER_SCALE, HINT = 0.5641895835477563, 10.0


class QuantileFunction(NamedTuple):
    """Q, the quantile of an expert at a normal score: linear between the levels and beyond."""

    values: Array
    scores: Array
    slope_low: float  # beyond the outer levels
    slope_high: float
    low: float  # bounds of the outcome
    high: float


@kernel
def outer_slopes(q, z, smallest):
    """Slopes of Q beyond the outer levels: those of each half, kept comparable and positive."""
    last = q.shape[0] - 1
    middle = last // 2
    low = (q[middle] - q[0]) / (z[middle] - z[0])
    high = (q[last] - q[middle]) / (z[last] - z[middle])
    least = max(0.125 * (low + high), smallest)
    return max(low, least), max(high, least)


@kernel_part
def with_slopes(rules, q, slope_low, slope_high):
    """The quantile function of quantiles at the levels of the grid."""
    return QuantileFunction(
        q, rules.scores, slope_low, slope_high, max(rules.low, -FARTHEST), min(rules.high, FARTHEST)
    )


@kernel_part
def quantile_function(rules, q, smallest):
    """The same, with slopes of its own that are at least `smallest`."""
    slope_low, slope_high = outer_slopes(q, rules.scores, smallest)
    return with_slopes(rules, q, slope_low, slope_high)


@kernel
def quantile_at(score, expert):
    """Q at a normal score."""
    q, z = expert.values, expert.scores
    last = q.shape[0] - 1
    if score <= z[0]:
        return q[0] + (score - z[0]) * expert.slope_low
    if score >= z[last]:
        return q[last] + (score - z[last]) * expert.slope_high
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
def corrected(location, spread, expert, out):
    """The quantiles Q(location + spread z) at the grid, within the bounds; one walk along the grid."""
    q, z = expert.values, expert.scores
    last = q.shape[0] - 1
    j = 0
    for i in range(last + 1):
        score = location + spread * z[i]
        if score <= z[0]:
            value = q[0] + (score - z[0]) * expert.slope_low
        elif score >= z[last]:
            value = q[last] + (score - z[last]) * expert.slope_high
        else:
            while z[j + 1] < score:
                j += 1
            value = q[j] + (q[j + 1] - q[j]) * (score - z[j]) / (z[j + 1] - z[j])
        out[i] = min(max(value, expert.low), expert.high)


@kernel
def normal_score(y, expert):
    """Mean and variance of the normal score of a value; the variance is zero unless it is an atom of the expert."""
    q, z = expert.values, expert.scores
    last = q.shape[0] - 1
    if y < q[0]:
        return z[0] + (y - q[0]) / expert.slope_low, 0.0
    if y > q[last]:
        return z[last] + (y - q[last]) / expert.slope_high, 0.0
    i = np.searchsorted(q, y)
    if q[i] > y:
        return z[i - 1] + (z[i] - z[i - 1]) * (y - q[i - 1]) / (q[i] - q[i - 1]), 0.0
    j = np.searchsorted(q, y, side="right") - 1
    if i == j:
        return z[i], 0.0
    # On an atom: a standard normal cut to the atom's share of the levels.
    return cut_normal(z[i] if i > 0 else -8.0, z[j] if j < last else 8.0)


@kernel
def outcome_score(y, expert):
    """The same for an outcome: at a bound it stands for all that the expert puts beyond."""
    q, z = expert.values, expert.scores
    score, blur = normal_score(y, expert)
    if y <= expert.low and score > -6.0:
        return cut_normal(-8.0, score if blur == 0.0 else z[np.searchsorted(q, y, side="right") - 1])
    if y >= expert.high and score < 6.0:
        return cut_normal(score if blur == 0.0 else z[np.searchsorted(q, y)], 8.0)
    return score, blur


@kernel
def cut_normal(a, b):
    """Mean and variance of a standard normal cut to [a, b]."""
    share = 0.5 * (erf(b / sqrt(2.0)) - erf(a / sqrt(2.0)))
    density_a = exp(-0.5 * a * a) / sqrt(2.0 * pi)
    density_b = exp(-0.5 * b * b) / sqrt(2.0 * pi)
    mean = (density_a - density_b) / share
    return mean, max(1.0 + (a * density_a - b * density_b) / share - mean * mean, 0.0)


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
def location_features(memory, expert, pending, record):
    """Scores of the last errors, of the last outcome and of the errors of a season ago, over their usual size.

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
        for i in range(1, TrackerRecord.SEASON_1):
            value = median + statistics[Statistic.ERROR_1 + i - 1]
            if i == TrackerRecord.LAST_OUTCOME:
                value = statistics[Statistic.LAST_OUTCOME]
            score, _ = normal_score(value, expert)
            record[i] = min(max(score / size, -8.0), 8.0)
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
def trackers_of(rules, memory, expert):
    """The quantile trackers of a game."""
    return QuantileTrackers(
        rules.quantile_trackers,
        rules.pooled,
        rules.grid,
        expert.low,
        expert.high,
        memory.offsets,
        memory.pool_seen,
        memory.tracker_unit,
    )


@kernel_part
def trust(rules, record, c, i):
    """What a feature counts for a learner: less for one that trusts the expert, where that moved far."""
    if rules.learners[c, LearnerColumn.TRUSTING] == 0.0 or i == TrackerRecord.ONE or i >= TrackerRecord.SEASON_1:
        return 1.0
    return record[TrackerRecord.USUAL_MOVE]


@kernel_part
def learner_says(rules, memory, record, c):
    """Location and spread of a learner, which its part of the record keeps."""
    statistics = memory.statistics
    size = statistics[Statistic.SCORE_SIZE]
    at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
    a = 0.0
    for i in range(int(rules.learners[c, LearnerColumn.FEATURES])):
        a += memory.location[c, i] * record[i] * trust(rules, record, c, i)
    slow = memory.spread[c, SpreadColumn.SLOW]
    spread_features(statistics, record, at, slow, memory.spread[c, SpreadColumn.FAST])
    stretch = 0.0
    for i in range(SPREAD_FEATURES):
        stretch += memory.fit[c, i] * record[at + LearnerRecord.ONE + i]
    b = slow * exp(min(max(stretch, -1.5), 1.5))
    record[at + LearnerRecord.LOCATION] = a * size
    record[at + LearnerRecord.SPREAD] = b * size


@kernel
def blend(rules, loss, odds, round, signal, expert, out):
    """The mean quantiles of the learners and the quantile trackers that are awake, weighed by their losses."""
    record = round.tracker_record
    learners, trackers = rules.learners.shape[0], rules.quantile_trackers.shape[0]
    first = first_awake(rules.pooled, signal)
    best = np.inf
    for c in range(learners):
        best = min(best, loss[c])
    for m in range(first, trackers):
        best = min(best, loss[learners + m])
    location = 0.0
    spread = 0.0
    own = 0.0
    for c in range(learners):
        at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
        weight = odds * exp(-rules.tune[4] * (loss[c] - best))
        location += weight * record[at + LearnerRecord.LOCATION]
        spread += weight * record[at + LearnerRecord.SPREAD]
        own += weight
    if own > 0.0:
        corrected(location / own, spread / own, expert, out)
    total = own
    for i in range(out.shape[0]):
        out[i] = own * out[i] if own > 0.0 else 0.0
    for m in range(first, trackers):
        weight = exp(-rules.tune[4] * (loss[learners + m] - best))
        total += weight
        for i in range(out.shape[0]):
            out[i] += weight * round.tracked[m, i]
    for i in range(out.shape[0]):
        out[i] /= total


@kernel_part
def cap(statistics, expert, out):
    """No quantile beyond the expert's and the recent outcomes by more than a few spreads."""
    q = expert.values
    last = q.shape[0] - 1
    median = q[last // 2]
    lowest, highest = q[0], q[last]
    far = 0.0
    if statistics[Statistic.OUTCOMES] > 0.0:
        far = statistics[Statistic.FARTHEST_ERROR]
        lowest = min(lowest, statistics[Statistic.LAST_OUTCOME], median - far)
        highest = max(highest, statistics[Statistic.LAST_OUTCOME], median + far)
    least = lowest - CAP * max(median - q[0], far)
    most = highest + CAP * max(q[last] - median, far)
    for i in range(last + 1):
        out[i] = min(max(out[i], least), most)


@kernel
def track(rules, memory, round, signal, out):
    """Record what each learner and quantile tracker says, and fill `out` with the quantiles of the corrected expert."""
    statistics, record = memory.statistics, round.tracker_record
    pending = round.info[RoundInfo.PENDING]
    expert = quantile_function(rules, round.experts[0], round.info[RoundInfo.SMALLEST_SLOPE])
    scale = 0.5 * (quantile_at(1.0, expert) - quantile_at(-1.0, expert))
    location_features(memory, expert, pending, record)
    record[TrackerRecord.SCALE] = max(scale, 0.1 * (expert.slope_low + expert.slope_high))
    record[TrackerRecord.SLOPE_LOW] = expert.slope_low
    record[TrackerRecord.SLOPE_HIGH] = expert.slope_high
    record[TrackerRecord.SCORE_SIZE] = statistics[Statistic.SCORE_SIZE]
    record[TrackerRecord.MEDIAN] = expert.values[expert.values.shape[0] // 2]
    for c in range(rules.learners.shape[0]):
        learner_says(rules, memory, record, c)
    trackers = trackers_of(rules, memory, expert)
    say(trackers, expert.values, signal, PER_SCALE * record[TrackerRecord.SCALE], round.tracked)
    learnt = round.tracked[rules.quantile_trackers.shape[0]]
    blend(rules, memory.track_loss[horizon(pending)], real_power(1.0 + pending, -rules.tune[6]), round, signal, expert, learnt)
    cap(statistics, expert, learnt)
    hint = 0.0
    if signal.shape[0] > 0:
        hint = signal[PoolColumn.EVIDENCE] / (1.0 + statistics[Statistic.OUTCOMES] / HINT)
    far = beyond_chance(memory.expert_ledger)
    hint += rules.tune[7] * min(max(far - rules.tune[8], 0.0), 4.0)
    share = share_of(memory.track_evidence[horizon(pending)], hint, rules.tune[0], rules.tune)
    base = round.tracked[rules.quantile_trackers.shape[0] + 1]
    for i in range(out.shape[0]):
        base[i] = share * learnt[i] + (1.0 - share) * min(max(expert.values[i], expert.low), expert.high)
    settled = round.tracked[rules.quantile_trackers.shape[0] + 2]
    offset_quantiles(base, memory.level_offsets, spread_of(base, rules.scores), expert.low, expert.high, settled)
    far = beyond_chance(memory.level_ledger)
    hint = rules.tune[7] * min(max(far - rules.tune[8], 0.0), 4.0)
    share = share_of(memory.level_evidence[horizon(pending)], hint, rules.tune[11], rules.tune)
    for i in range(out.shape[0]):
        out[i] = share * settled[i] + (1.0 - share) * base[i]


@kernel
def learn(rules, memory, round, signal, outcome):
    """Teach every learner the outcome of a round, from what it saw when the forecast was made."""
    statistics, record, weight = memory.statistics, round.tracker_record, outcome.weight
    expert = with_slopes(rules, round.experts[0], record[TrackerRecord.SLOPE_LOW], record[TrackerRecord.SLOPE_HIGH])
    score, blur = outcome_score(outcome.value, expert)
    bounded = rules.high - rules.low < np.inf
    most = BOLD if bounded or statistics[Statistic.OUTCOMES] < EARLY else CAREFUL
    learn_weights(rules, memory, round, outcome, expert)
    expected = PER_SCALE * record[TrackerRecord.SCALE]
    learn_offsets(trackers_of(rules, memory, expert), expert.values, signal, expected, outcome.value)
    base = round.tracked[rules.quantile_trackers.shape[0] + 1]
    settled = round.tracked[rules.quantile_trackers.shape[0] + 2]
    gain = pinball(base, outcome.clipped, rules.grid) - pinball(settled, outcome.clipped, rules.grid)
    pending = round.info[RoundInfo.PENDING]
    add_evidence(memory.level_evidence[horizon(pending)], gain / (0.5 * outcome.unit), pending, rules.tune)
    learn_ledger(memory.level_ledger, base, rules.grid, rules.tune[12], pending, outcome.value)
    learn_levels(memory.level_offsets, base, rules.scores, rules.grid, max(rules.tune[9], rules.tune[15] / (statistics[Statistic.OUTCOMES] + 20.0)) * real_power(1.0 + pending, -rules.tune[13]), expert, outcome.value)
    learn_ledger(memory.expert_ledger, expert.values, rules.grid, rules.tune[2], pending, outcome.value)
    size = statistics[Statistic.SCORE_SIZE]
    gain = np.empty(max(LOCATION_FEATURES, SPREAD_FEATURES))
    features = np.empty(LOCATION_FEATURES)
    features[0] = 1.0
    target = min(max(score / size, -most), most)
    for c in range(rules.learners.shape[0]):
        at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
        count = int(rules.learners[c, LearnerColumn.FEATURES])
        for i in range(1, LOCATION_FEATURES):
            features[i] = record[i] * (record[TrackerRecord.SCORE_SIZE] / size) * trust(rules, record, c, i)
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
        young = 1.0 / (statistics[Statistic.OUTCOMES] * weight + rules.tune[14])
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
    changed = find_seasons(memory.autocorrelation, memory.seasons)
    for i in range(2):
        if changed % 2 == 1:
            for c in range(memory.location.shape[0]):
                forget(memory.location[c], memory.location_cov[c], TrackerRecord.SEASON_1 + i)
        changed //= 2


@kernel_part
def forget(theta, P, i):
    """Begin a coefficient anew."""
    theta[i] = 0.0
    for j in range(theta.shape[0]):
        P[i, j] = 0.0
        P[j, i] = 0.0
    P[i, i] = LOCATION_START


@kernel
def pool_part(rules, memory, round, signal, y, out):
    """What a game tells its pool of an outcome: the gradients of the trackers that share in it, and their gain."""
    record = round.tracker_record
    expert = with_slopes(rules, round.experts[0], record[TrackerRecord.SLOPE_LOW], record[TrackerRecord.SLOPE_HIGH])
    expected = PER_SCALE * record[TrackerRecord.SCALE]
    pool_gradients(trackers_of(rules, memory, expert), expert.values, signal, expected, y, out)
    unit = 0.5 * expected
    if memory.tracker_unit[TrackerUnit.COUNT] > 0.0:
        unit = 0.5 * memory.tracker_unit[TrackerUnit.LOSS] / memory.tracker_unit[TrackerUnit.COUNT]
    if unit <= 0.0:
        return 0.0
    size = expert.values.shape[0]
    within, mean = np.empty(size), np.empty(size)
    for i in range(size):
        within[i] = min(max(expert.values[i], expert.low), expert.high)
        total = 0.0
        for m in range(rules.pooled):
            total += round.tracked[m, i]
        mean[i] = total / rules.pooled
    return (pinball(within, y, rules.grid) - pinball(mean, y, rules.grid)) / unit


@kernel_part
def learn_weights(rules, memory, round, outcome, expert):
    """Discounted pinball losses of each learner and quantile tracker, and the evidence for all of them together."""
    pending = round.info[RoundInfo.PENDING]
    loss = memory.track_loss[horizon(pending)]
    learners, trackers = rules.learners.shape[0], rules.quantile_trackers.shape[0]
    quantiles = np.empty(expert.values.shape[0])
    kept = delayed(LOSS_DISCOUNT, outcome.weight)
    unit = 0.5 * outcome.unit
    for c in range(learners):
        at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
        location = round.tracker_record[at + LearnerRecord.LOCATION]
        corrected(location, round.tracker_record[at + LearnerRecord.SPREAD], expert, quantiles)
        lost = pinball(quantiles, outcome.clipped, rules.grid)
        loss[c] = kept * loss[c] + outcome.weight * lost / unit
    for m in range(trackers):
        lost = pinball(round.tracked[m], outcome.clipped, rules.grid)
        loss[learners + m] = kept * loss[learners + m] + outcome.weight * lost / unit
    for i in range(quantiles.shape[0]):
        quantiles[i] = min(max(expert.values[i], expert.low), expert.high)
    gain = pinball(quantiles, outcome.clipped, rules.grid) - pinball(round.tracked[trackers], outcome.clipped, rules.grid)
    add_evidence(memory.track_evidence[horizon(pending)], gain / unit, pending, rules.tune)


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
    most = 3.0 * statistics[Statistic.MOVE_MEAN] if statistics[Statistic.OUTCOMES] > 10.0 else moved
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
    statistics[Statistic.LAST_OUTCOME] = y
    far = FARTHEST_KEPT * statistics[Statistic.FARTHEST_ERROR]
    statistics[Statistic.FARTHEST_ERROR] = max(far, abs(statistics[Statistic.ERROR_1]))
    statistics[Statistic.OUTCOMES] += 1.0
