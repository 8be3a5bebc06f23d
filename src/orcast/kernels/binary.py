"""Logistic learners that correct the expert on two cells.

Each learner is a logistic regression, offset at the expert (stage 1) or at the mix of stage 1 (stage 2), whose
coefficients theta follow a mean-reverting random walk around "no correction": between outcomes theta <- rho theta and
P <- rho^2 P + (1 - rho^2) P_0, at an outcome one implicit Newton step on the log score. Stage 1 learns maps of the
expert (Platt, beta, hat functions of the log odds), stage 2 drift and effects of the last errors and outcomes. The
probabilities are averaged with exponential weights on discounted log loss, the expert's included.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import numpy as np

from orcast.constants import BINARY_LOSS_DISCOUNT, LOSS_DISCOUNT
from orcast.kernels import finite_state

if not cython.compiled:
    from orcast.kernels.delays import delay_odds, delay_weight, delayed, horizon
    from orcast.kernels.finite_solver import sigmoid
    from orcast.kernels.finite_state import FEATURES, FIRST_STAGE, HATS, LEARNERS, LOSSES, MOST_USED
    from orcast.kernels.numerics import real_power
    from orcast.kernels.pure import exp, fabs, log, log1p, sqrt
    from orcast.kernels.rows import cut, mark, numbers_of, release, take, whole_of

# Largest log odds: of the expert as an offset and as a feature, and of the prior.
MOST_EXPERT, MOST_FEATURE, MOST_PRIOR = 8.0, 6.9, 13.8
FAST_STEP, SLOW_STEP, MEAN_STEP = 0.2, 0.05, 0.1
# Prior odds of the expert in the mix.
EXPERT_ODDS = 10.0
# Losses of the expert and of the mix of stage 1 come after those of the learners.
EXPERT, AGREED = LEARNERS, LEARNERS + 1
# Curvature below which an observation counts as this informative.
LEAST_CURVATURE = 0.01

# --- tables of the learners; the rows own the numbers

TABLE = finite_state.LEARNER_TABLE
KNOT_COUNT = len(finite_state.KNOTS)
PADDED = [used + (0,) * (MOST_USED - len(used)) for _, _, used in TABLE]
VARIANCES = [[finite_state.VARIANCES[j] for j in used] + [0.0] * (MOST_USED - len(used)) for _, _, used in TABLE]
KNOT_ROW = np.array(finite_state.KNOTS)
# Learning rates by horizon; stale losses also weigh less.
RATE_ROW = np.array([0.5, 1.0, 1.0])
DISCOUNT_ROW = np.array([1.0 - 1.0 / span if span else 1.0 for _, span, _ in TABLE])
START_ROW = np.array(VARIANCES).ravel()
USED_ROW = np.array(finite_state.USED, dtype=np.int64)
FEATURE_ROW = np.array(PADDED, dtype=np.int64).ravel()
# Positions of the coefficients and of the matrix of each learner.
THETA_ROW = np.concatenate([[0], np.cumsum(USED_ROW)]).astype(np.int64)
SPREAD_ROW = np.concatenate([[0], np.cumsum(USED_ROW**2)]).astype(np.int64)
KNOTS, RATES, DISCOUNT, START = (
    numbers_of(KNOT_ROW),
    numbers_of(RATE_ROW),
    numbers_of(DISCOUNT_ROW),
    numbers_of(START_ROW),
)
USED, USED_FEATURES, THETA_AT, SPREAD_AT = (
    whole_of(USED_ROW),
    whole_of(FEATURE_ROW),
    whole_of(THETA_ROW),
    whole_of(SPREAD_ROW),
)


def start(state):
    """Set the learners of a new state: no correction, prior variances."""
    theta, spread = state.view("theta"), state.view("spread")
    theta[:] = 0.0
    spread[:] = 0.0
    for i, count in enumerate(finite_state.USED):
        spread[SPREAD_ROW[i] : SPREAD_ROW[i + 1]] = np.diag(VARIANCES[i][:count]).ravel()


def log_odds(p, most):
    """logit p, at most `most` either way."""
    least = 1.0 / (1.0 + exp(most))
    p = min(max(p, least), 1.0 - least)
    return log(p / (1.0 - p))


def log_loss(z, y):
    """Log loss of the log odds z."""
    against = -z if y > 0.5 else z
    return max(against, 0.0) + log1p(exp(-fabs(against)))


def observe(statistics, x, round):
    """Write the expert's log odds and the features of the round."""
    features, named = round.learner_features, round.named
    z = log_odds(x, MOST_EXPERT)
    round.odds.probability = x
    round.odds.expert = z
    z = min(max(z, -MOST_FEATURE), MOST_FEATURE)
    named.one = 1.0
    named.log_odds = z
    # log 4 x (1 - x)
    named.skew = 2.0 * log(2.0) - fabs(z) - 2.0 * log1p(exp(-fabs(z)))
    named.error = statistics.last_error
    named.fast = statistics.fast_error
    named.slow = statistics.slow_error
    named.outcome = statistics.last_outcome
    named.mean = statistics.outcome_mean
    named.change = 0.0
    if statistics.outcomes > 0.0:
        named.change = statistics.last_log_odds - z
    named.before = statistics.before_last_outcome
    for j in range(HATS, FEATURES):
        features[j] = 0.0
    last = KNOT_COUNT - 1
    z = min(max(z, KNOTS[0]), KNOTS[last])
    j = 0
    while j < last - 1 and KNOTS[j + 1] <= z:
        j += 1
    share = (z - KNOTS[j]) / (KNOTS[j + 1] - KNOTS[j])
    features[HATS + j] = 1.0 - share
    features[HATS + j + 1] = share


def learner_odds(state, i, offset, pending, round):
    """Log odds of a learner; its correction decays with the number of outstanding outcomes."""
    total = 0.0
    at = THETA_AT[i]
    for j in range(USED[i]):
        total += state.theta[at + j] * round.learner_features[USED_FEATURES[i * MOST_USED + j]]
    if pending > 0.0 and DISCOUNT[i] < 1.0:
        total *= real_power(DISCOUNT[i], pending)
    z = min(max(offset + total, -MOST_EXPERT), MOST_EXPERT)
    round.learners[i] = z
    return z


def committee(state, x, pending, round):
    """Log odds of the prior given the expert's x; fills the records of the learners and only reads the state.

    The more outcomes are outstanding, the more weight the expert has.
    """
    observe(state.statistics, x, round)
    rate = RATES[horizon(pending)]
    loss = cut(state.learner_loss, horizon(pending) * LOSSES, LOSSES)
    best = loss[0]
    for i in range(1, LOSSES):
        best = min(best, loss[i])
    learnt = delay_odds(pending)
    expert = round.odds.expert
    weight = EXPERT_ODDS * exp(rate * (best - loss[EXPERT]))
    total = weight
    mix = weight * sigmoid(expert)
    odds = weight * expert
    for i in range(FIRST_STAGE):
        z = learner_odds(state, i, expert, pending, round)
        weight = learnt * exp(rate * (best - loss[i]))
        total += weight
        mix += weight * sigmoid(z)
        odds += weight * z
    agreed = odds / total if total > 0.0 else expert
    round.odds.first_stage = agreed
    weight = learnt * exp(rate * (best - loss[AGREED]))
    total += weight
    mix += weight * sigmoid(agreed)
    for i in range(FIRST_STAGE, LEARNERS):
        z = learner_odds(state, i, agreed, pending, round)
        weight = learnt * exp(rate * (best - loss[i]))
        total += weight
        mix += weight * sigmoid(z)
    round.odds.prior = log_odds(mix / total, MOST_PRIOR)
    return round.odds.prior


def step(state, i, round, y, weight, f, gain):
    """Update a learner with an outcome, then let it drift for one round."""
    count = USED[i]
    theta = cut(state.theta, THETA_AT[i], count)
    spread = cut(state.spread, SPREAD_AT[i], count * count)
    # its log odds now, not those of the forecast: a batch of outcomes is no reason to take the same step many times
    z = round.odds.expert if i < FIRST_STAGE else round.odds.first_stage
    for j in range(count):
        f[j] = round.learner_features[USED_FEATURES[i * MOST_USED + j]]
        z += theta[j] * f[j]
    z = min(max(z, -MOST_EXPERT), MOST_EXPERT)
    variance = 0.0
    for j in range(count):
        total = 0.0
        for k in range(count):
            total += spread[j * count + k] * f[k]
        gain[j] = total
        variance += total * f[j]
    # the error after the step, so that no step overshoots: two Newton steps from the error before it
    reach = weight * variance
    p = sigmoid(z)
    error = (y - p) / (1.0 + reach * p * (1.0 - p))
    p = sigmoid(z + reach * error)
    error -= (error - (y - p)) / (1.0 + reach * p * (1.0 - p))
    curvature = weight * max(p * (1.0 - p), LEAST_CURVATURE)
    shrink = curvature / (1.0 + curvature * variance)
    discount = DISCOUNT[i]
    square = discount * discount
    for j in range(count):
        theta[j] = discount * (theta[j] + weight * error * gain[j])
        part = shrink * gain[j]
        for k in range(count):
            spread[j * count + k] = square * (spread[j * count + k] - part * gain[k])
        spread[j * count + j] += (1.0 - square) * START[i * MOST_USED + j]


def teach(state, round, pending, y, w):
    """Update all learners; an outcome counts less if more were outstanding at its forecast."""
    m = mark(w)
    f, gain = take(w, MOST_USED), take(w, MOST_USED)
    weight = delay_weight(pending)
    careful = sqrt(weight)
    loss = cut(state.learner_loss, horizon(pending) * LOSSES, LOSSES)
    kept = delayed(BINARY_LOSS_DISCOUNT, weight)
    for i in range(LEARNERS):
        loss[i] = kept * loss[i] + weight * log_loss(round.learners[i], y)
        step(state, i, round, y, 1.0 if i < FIRST_STAGE else careful, f, gain)
    expert, agreed = round.odds.expert, round.odds.first_stage
    loss[EXPERT] = kept * loss[EXPERT] + weight * log_loss(expert, y)
    loss[AGREED] = kept * loss[AGREED] + weight * log_loss(agreed, y)
    learn_statistics(state.statistics, round, y, weight)
    release(w, m)


def learn_statistics(statistics, round, y, weight):
    """Means of errors and outcomes, and the last ones."""
    error = y - sigmoid(round.odds.first_stage)
    side = 2.0 * y - 1.0
    statistics.last_error = error
    statistics.fast_error += FAST_STEP * weight * (error - statistics.fast_error)
    statistics.slow_error += SLOW_STEP * weight * (error - statistics.slow_error)
    statistics.before_last_outcome = statistics.last_outcome
    statistics.last_outcome = side
    change = side - statistics.outcome_mean
    statistics.outcome_mean += MEAN_STEP * weight * change
    statistics.last_log_odds = round.named.log_odds
    statistics.outcomes += 1.0
    gap = round.odds.probability - y
    statistics.loss_sum = LOSS_DISCOUNT * statistics.loss_sum + gap * gap
    statistics.loss_count = LOSS_DISCOUNT * statistics.loss_count + 1.0
