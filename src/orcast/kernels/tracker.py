"""Learners of location and spread: an online correction of the expert in normal scores.

Let Q(z) be the expert's quantile at the level Phi(z), linear between the levels and beyond. Each learner predicts the
mean a and the spread b of the normal score of the next outcome, and Q(a + b z) is its corrected expert: for a Gaussian
expert a shift and a scale factor; atoms and bounds stay where they are.

    a : recursive least squares on the last errors and on the distances of the last outcomes from the current median
    b : a slow mean of |score - a| times exp(linear in: its fast mean, the level of the median, the expert's own
        spread, the distance to the last outcome), fitted by recursive least squares on |score - a| / (c b) - 1

Some learners use three errors and three outcomes, and the errors of a season ago (`orcast.kernels.seasons`). Some
discount these features where the expert moves much further than usual: it may anticipate a change. Every observation
has the weight 1 / sqrt(1 + outcomes outstanding at the forecast), since errors of one batch are seldom independent.
`orcast.kernels.correction` weighs the learners.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import LOCATION_START

if not cython.compiled:
    from orcast.kernels.delays import delayed
    from orcast.kernels.pure import exp, fabs, learner_record_at, log, spread_at, sqrt
    from orcast.kernels.quantile_function import normal_score, outcome_score, quantile_at
    from orcast.kernels.rows import cut, mark, release, take
    from orcast.kernels.seasons import add_surprise, find_seasons, season_ago
    from orcast.kernels.state import LEARNER_SIZE, LOCATION_FEATURES, LONGEST_SEASON, SPREAD_FEATURES

INF = float("inf")
# Discount of the learners.
DISCOUNT = 0.998
LOCATION_CAP, SPREAD_CAP = 0.5, 0.1
FAST_DISCOUNT, SCORE_SIZE_DISCOUNT = 0.9, 0.99
# E|z| of a standard normal
MEAN_ABS = 0.7978845608028654
# Largest score that is used, in units of the usual one: with bounds or early on, and later without.
BOLD, CAREFUL, EARLY = 6.0, 3.0, 100.0
# Discount of the largest recent error from outcome to outcome.
FARTHEST_KEPT = 0.97
# Where the expert moves more than FAR times as far as usual, the last errors have less weight.
FAR = 6.0
# Outcomes between searches for seasons.
SEARCH = 8
# The expert's own spread counts as this many outcomes.
YOUNG = 20.0
# Position of the first season among the location features, and of the spread features in a learner's record.
SEASON_AT, SPREAD_AT = 7, 2


def least_squares(theta, P, width, x, count, error, weight, cap, gain):
    """One step of recursive least squares with forgetting; P stops growing at `cap` where nothing excites it.

    P has rows of `width` numbers.
    """
    discount = delayed(DISCOUNT, weight)
    scale = discount / weight
    for i in range(count):
        total = 0.0
        for j in range(count):
            total += P[i * width + j] * x[j]
        gain[i] = total
        scale += total * x[i]
    for i in range(count):
        theta[i] += gain[i] / scale * error
    largest = 0.0
    for i in range(count):
        for j in range(count):
            P[i * width + j] = (P[i * width + j] - gain[i] * gain[j] / scale) / discount
        largest = max(largest, P[i * width + i])
    if largest > cap:
        for i in range(count):
            for j in range(count):
                P[i * width + j] *= discount


def feature_of(value, size, rules, q, slope_low, slope_high):
    """Normal score of a value over the usual size of scores."""
    score, _ = normal_score(value, rules, q, slope_low, slope_high)
    return min(max(score / size, -8.0), 8.0)


def location_features(rules, memory, q, slope_low, slope_high, pending, round):
    """Scores of the last errors, of the last outcomes and of the errors of a season ago, over their usual size.

    So a learnt shift means the same on both sides of a skewed expert. Where the expert moves much further than usual,
    it may anticipate a change that the last errors do not show.
    """
    statistics, record = memory.statistics, round.record
    record.one = 1.0
    record.usual_move = 1.0
    for i in range(1, LOCATION_FEATURES):
        round.location_features[i] = 0.0
    if statistics.outcomes > 0.0:
        median = q[rules.grid_count // 2]
        moved = fabs(median - statistics.last_median)
        usual = FAR * statistics.move_mean
        if moved > usual and statistics.outcomes > 5.0:
            record.usual_move = (usual / moved) * (usual / moved)
        size = statistics.score_size
        record.error_1 = feature_of(median + statistics.error_1, size, rules, q, slope_low, slope_high)
        record.error_2 = feature_of(median + statistics.error_2, size, rules, q, slope_low, slope_high)
        record.error_3 = feature_of(median + statistics.error_3, size, rules, q, slope_low, slope_high)
        record.last_outcome = feature_of(statistics.last_outcome, size, rules, q, slope_low, slope_high)
        record.outcome_2 = feature_of(statistics.outcome_2, size, rules, q, slope_low, slope_high)
        record.outcome_3 = feature_of(statistics.outcome_3, size, rules, q, slope_low, slope_high)
        record.season_1 = season_ago(memory.surprises, LONGEST_SEASON, memory.seasons, 0, pending) / size
        record.season_2 = season_ago(memory.surprises, LONGEST_SEASON, memory.seasons, 1, pending) / size


def spread_features(statistics, record, own, slow, fast):
    """Features of the spread of a learner, whose record is `own`."""
    own.one = 1.0
    own.fast = log((fast + 0.1 * slow) / (1.1 * slow))
    own.level = 0.0
    own.scale = 0.0
    own.distance = 0.0
    if statistics.outcomes > 5.0:
        level = record.median - statistics.median_mean
        level /= sqrt(statistics.median_variance + 1e-300)
        scale = log(record.scale) - statistics.log_scale_mean
        own.level = min(max(level, -3.0), 3.0)
        own.scale = min(max(scale, -2.0), 2.0)
        own.distance = distance_of(record) - statistics.distance_mean


def distance_of(record):
    """Distance of the last outcome from the median, in logarithms."""
    return log(1.0 + fabs(record.last_outcome))


def trust(rules, round, c, i):
    """Weight of a feature for a learner: smaller where the expert moved far, if the learner trusts it then."""
    if rules.learners[c].trusting == 0.0 or i == 0 or i >= SEASON_AT:
        return 1.0
    return round.record.usual_move


def learner_features(rules, round, c, out):
    """Location features of a learner, times their weights; returns their number."""
    count = int(rules.learners[c].features)
    for i in range(count):
        out[i] = round.location_features[i] * trust(rules, round, c, i)
    return count


def uncertainty(rules, memory, features, count, c):
    """Factor by which the uncertainty of a learner's coefficients and spread widens its forecast."""
    square = 0.0
    at = c * LOCATION_FEATURES * LOCATION_FEATURES
    for i in range(count):
        total = 0.0
        for j in range(count):
            total += memory.location_cov[at + i * LOCATION_FEATURES + j] * features[j]
        square += total * features[i]
    rate = max(1.0 - rules.learners[c].discount, 1.0 / (memory.statistics.outcomes + YOUNG))
    return sqrt(1.0 + square) * (1.0 + rate)


def learner_says(rules, memory, round, c, features):
    """Location and spread of a learner, in its part of the record."""
    statistics = memory.statistics
    size = statistics.score_size
    own = learner_record_at(round.learners, c)
    count = learner_features(rules, round, c, features)
    a = 0.0
    for i in range(count):
        a += memory.location[c * LOCATION_FEATURES + i] * features[i]
    slow = memory.spread[c].slow
    spread_features(statistics, round.record, own, slow, memory.spread[c].fast)
    stretch = 0.0
    for i in range(SPREAD_FEATURES):
        stretch += memory.fit[c * SPREAD_FEATURES + i] * round.learner_rows[c * LEARNER_SIZE + SPREAD_AT + i]
    b = slow * exp(min(max(stretch, -1.5), 1.5)) * uncertainty(rules, memory, features, count, c)
    own.location = a * size
    own.spread = b * size


def learners_say(rules, memory, q, slope_low, slope_high, pending, round, w):
    """Fill the record with the features, locations and spreads of the learners."""
    used = mark(w)
    record = round.record
    scale = quantile_at(1.0, rules, q, slope_low, slope_high) - quantile_at(-1.0, rules, q, slope_low, slope_high)
    scale = 0.5 * scale
    location_features(rules, memory, q, slope_low, slope_high, pending, round)
    record.scale = max(scale, 0.1 * (slope_low + slope_high))
    record.slope_low = slope_low
    record.slope_high = slope_high
    record.score_size = memory.statistics.score_size
    record.median = q[rules.grid_count // 2]
    features = take(w, LOCATION_FEATURES)
    for c in range(rules.learner_count):
        learner_says(rules, memory, round, c, features)
    release(w, used)


def learn(rules, memory, round, q, slope_low, slope_high, y, clipped, weight, unit, w):
    """Update every learner with the outcome of a round, from the features at the time of the forecast."""
    used = mark(w)
    statistics, record = memory.statistics, round.record
    score, blur = outcome_score(y, rules, q, slope_low, slope_high)
    most = CAREFUL
    if rules.high - rules.low < INF or statistics.outcomes < EARLY:
        most = BOLD
    size = statistics.score_size
    gain = take(w, max(LOCATION_FEATURES, SPREAD_FEATURES))
    features = take(w, LOCATION_FEATURES)
    target = min(max(score / size, -most), most)
    for c in range(rules.learner_count):
        count = learner_features(rules, round, c, features)
        for i in range(1, count):
            features[i] *= record.score_size / size
        theta = cut(memory.location, c * LOCATION_FEATURES, LOCATION_FEATURES)
        error = target
        for i in range(count):
            error -= theta[i] * features[i]
        if c == 0:
            learn_seasons(memory, error * size)
        square = LOCATION_FEATURES * LOCATION_FEATURES
        covariance = cut(memory.location_cov, c * square, square)
        least_squares(theta, covariance, LOCATION_FEATURES, features, count, error, weight, LOCATION_CAP, gain)
        deviation = sqrt(error * error + blur / (size * size)) / MEAN_ABS
        surprise = min(deviation * size / round.learners[c].spread - 1.0, 4.0)
        x = cut(round.learner_rows, c * LEARNER_SIZE + SPREAD_AT, SPREAD_FEATURES)
        theta = cut(memory.fit, c * SPREAD_FEATURES, SPREAD_FEATURES)
        square = SPREAD_FEATURES * SPREAD_FEATURES
        covariance = cut(memory.fit_cov, c * square, square)
        least_squares(theta, covariance, SPREAD_FEATURES, x, SPREAD_FEATURES, surprise, weight, SPREAD_CAP, gain)
        means = spread_at(memory.spread, c)
        slow, fast = means.slow, means.fast
        rate = (1.0 - FAST_DISCOUNT) * weight
        means.fast = (1.0 - rate) * fast + rate * min(deviation, 6.0 * slow)
        young = 1.0 / (statistics.outcomes * weight + YOUNG)
        rate = max(1.0 - rules.learners[c].discount, young) * weight
        # with bounds the targets are limited; without, an adversary could increase the spread at will
        counted = deviation if most >= BOLD else min(deviation, most * slow)
        means.slow = max((1.0 - rate) * slow + rate * counted, 1e-3)
    rescale(memory, score * score + blur, most, weight)
    learn_features(statistics, record, y)
    release(w, used)


def learn_seasons(memory, surprise):
    """Add an error; where another season is found, its coefficients start anew."""
    add_surprise(memory.surprises, memory.autocorrelation, LONGEST_SEASON, memory.seasons, surprise)
    seen = int(memory.seasons.count)
    if seen % SEARCH != 0:
        return
    changed = find_seasons(memory.autocorrelation, LONGEST_SEASON, memory.seasons)
    square = LOCATION_FEATURES * LOCATION_FEATURES
    for i in range(2):
        if changed % 2 == 1:
            for c in range(memory.rules.learner_count):
                theta = cut(memory.location, c * LOCATION_FEATURES, LOCATION_FEATURES)
                forget(theta, cut(memory.location_cov, c * square, square), SEASON_AT + i)
        changed //= 2


def skip_steps(memory, count):
    """Steps of the calendar without an outcome: the errors are zero, and seasons stay in phase."""
    for _ in range(count):
        learn_seasons(memory, 0.0)


def forget(theta, P, i):
    """Start a coefficient anew."""
    theta[i] = 0.0
    for j in range(LOCATION_FEATURES):
        P[i * LOCATION_FEATURES + j] = 0.0
        P[j * LOCATION_FEATURES + i] = 0.0
    P[i * LOCATION_FEATURES + i] = LOCATION_START


def rescale(memory, square, most, weight):
    """Update the usual size of the scores, and convert the learners' state to the new unit."""
    statistics = memory.statistics
    size = statistics.score_size
    rate = (1.0 - SCORE_SIZE_DISCOUNT) * weight
    square = min(square, most * most * size * size)
    new = max(sqrt((1.0 - rate) * size * size + rate * square), 1e-3)
    for c in range(memory.rules.learner_count):
        memory.location[c * LOCATION_FEATURES] *= size / new
        memory.spread[c].slow *= size / new
        memory.spread[c].fast *= size / new
    statistics.score_size = new


def learn_features(statistics, record, y):
    """Update the means at which the features are centred, the last errors and the last outcomes."""
    rate = max(0.002, 1.0 / (statistics.outcomes + 1.0))
    moved = fabs(record.median - statistics.last_median)
    if statistics.outcomes == 0.0:
        moved = 0.0
    # an anticipated jump is not usual
    usual = statistics.move_mean
    most = 3.0 * usual if statistics.outcomes > 10.0 and usual > 0.0 else moved
    statistics.move_mean += rate * (min(moved, most) - statistics.move_mean)
    statistics.last_median = record.median
    step = record.median - statistics.median_mean
    statistics.median_mean += rate * step
    variance = statistics.median_variance + rate * step * step
    statistics.median_variance = (1.0 - rate) * variance
    log_scale = log(record.scale)
    statistics.log_scale_mean += rate * (log_scale - statistics.log_scale_mean)
    statistics.distance_mean += rate * (distance_of(record) - statistics.distance_mean)
    statistics.error_3 = statistics.error_2
    statistics.error_2 = statistics.error_1
    statistics.error_1 = y - record.median
    # the first outcome stands for those before it
    first = statistics.outcomes == 0.0
    statistics.outcome_3 = y if first else statistics.outcome_2
    statistics.outcome_2 = y if first else statistics.last_outcome
    statistics.last_outcome = y
    far = FARTHEST_KEPT * statistics.farthest_error
    statistics.farthest_error = max(far, fabs(statistics.error_1))
    statistics.outcomes += 1.0
