"""Compiled kernels of the committee for two outcomes: logistic learners that correct the expert.

Each learner is a logistic regression, offset at the expert (stage 1) or at what stage 1 agreed on
(stage 2), whose coefficients theta follow a mean-reverting random walk around "no correction": between outcomes
theta <- rho theta and P <- rho^2 P + (1 - rho^2) P_0, at an outcome one implicit Newton step on the log score.  Stage 1
learns maps of the expert (Platt, beta, hat functions of the log odds), stage 2 drift and what the last errors and
outcomes tell.  The probabilities are averaged with exponential weights on discounted log loss, the expert's included.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from orcast.constants import BINARY_LOSS_DISCOUNT, LOSS_DISCOUNT
from orcast.engine.kernels.delays import delay_odds, delay_weight, delayed, horizon
from orcast.engine.kernels.finite_game import sigmoid
from orcast.engine.kernels.records import Array
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp, log, log1p, real_power, sqrt

# Largest log odds: of the expert as an offset and as a feature, and of the prior.
MOST_EXPERT, MOST_FEATURE, MOST_PRIOR = 8.0, 6.9, 13.8


class Feature(IntEnum):
    """What the learners may look at."""

    ONE = 0
    LOG_ODDS = 1  # of the expert
    SKEW = 2  # their asymmetric part as in beta scaling
    ERROR = 3  # the last one
    FAST = 4  # fast and slow means of the errors
    SLOW = 5
    OUTCOME = 6  # the last one
    MEAN = 7  # of the outcomes
    CHANGE = 8  # of the log odds
    BEFORE = 9  # the outcome before the last
    HATS = 10  # the first of the hat functions of the log odds


class BinaryStatistic(IntEnum):
    """Running statistics of a game with binary outcomes."""

    LAST_ERROR = 0
    FAST_ERROR = 1
    SLOW_ERROR = 2
    LAST_OUTCOME = 3  # -1 or 1
    OUTCOME_MEAN = 4
    LAST_LOG_ODDS = 5  # of the expert
    BEFORE_LAST_OUTCOME = 6
    OUTCOMES = 7  # settled
    LOSS_SUM = 8  # discounted squared error of the expert
    LOSS_COUNT = 9


class RecordedOdds(IntEnum):
    """What the committee records of a round beside the features and what each learner said."""

    PROBABILITY = 0  # the expert's
    EXPERT = 1  # its log odds
    FIRST_STAGE = 2  # log odds that stage 1 agreed on
    PRIOR = 3  # log odds of the prior


KNOTS = np.array([-4.0, -2.4, -1.1, 0.0, 1.1, 2.4, 4.0])
FEATURES = int(Feature.HATS) + KNOTS.size
VARIANCES = (0.3, 0.1, 0.05, 0.9, 1.8, 1.8, 0.9, 0.9, 0.3, 0.9, 2.0, *(5 * (0.3,)), 2.0)
FAST_STEP, SLOW_STEP, MEAN_STEP = 0.2, 0.05, 0.1

_PLATT = (Feature.ONE, Feature.LOG_ODDS)
_ERRORS = (Feature.ERROR, Feature.FAST, Feature.SLOW)
_STATE = (*_PLATT, *_ERRORS, Feature.OUTCOME, Feature.MEAN)
# Learners: stage, the time constant of the drift in outcomes (0: none), features.
LEARNERS = (
    (1, 0, _PLATT),
    (1, 1000, _PLATT),
    (1, 0, (*_PLATT, Feature.SKEW)),
    (1, 3000, tuple(range(Feature.HATS, FEATURES))),
    (2, 30, (Feature.ONE,)),
    (2, 200, _PLATT),
    (2, 2000, (Feature.ONE, *_ERRORS)),
    (2, 20000, _STATE),
    (2, 20000, (*_STATE, Feature.CHANGE, Feature.BEFORE)),
    (2, 500, (*_STATE, Feature.CHANGE, Feature.BEFORE)),
)
COUNT = len(LEARNERS)
FIRST_STAGE = sum(stage == 1 for stage, _, _ in LEARNERS)
USED = np.array([len(used) for _, _, used in LEARNERS])
MOST_USED = int(USED.max())
USED_FEATURES = np.array([used + (0,) * (MOST_USED - len(used)) for _, _, used in LEARNERS], dtype=np.int64)
DISCOUNT = np.array([1.0 - 1.0 / span if span else 1.0 for _, span, _ in LEARNERS])
START = np.array([[VARIANCES[j] for j in used] + [0.0] * (MOST_USED - len(used)) for _, _, used in LEARNERS])
# Where the coefficients and the matrix of each learner begin.
THETA_AT = np.concatenate([[0], np.cumsum(USED)])
SPREAD_AT = np.concatenate([[0], np.cumsum(USED**2)])
COEFFICIENTS, COVARIANCES = int(THETA_AT[-1]), int(SPREAD_AT[-1])

# The mix: prior odds of the expert, learning rates by horizon (what is stale also weighs less).
EXPERT_ODDS = 10.0
RATES = np.array([0.5, 1.0, 1.0])
# Losses of the expert and of the mix of stage 1 come after those of the learners.
EXPERT, AGREED, LOSSES = COUNT, COUNT + 1, COUNT + 2
# Curvature below which an observation counts as this informative.
LEAST_CURVATURE = 0.01
BINARY_STATISTICS = len(BinaryStatistic)
RECORDED_ODDS = len(RecordedOdds)


def start(theta: Array, spread: Array) -> None:
    """Coefficients and matrices of a committee that has seen nothing and says what the expert says."""
    theta[:] = 0.0
    spread[:] = 0.0
    for i in range(COUNT):
        count = int(USED[i])
        spread[SPREAD_AT[i] : SPREAD_AT[i + 1]] = np.diag(START[i, :count]).ravel()


@kernel
def log_odds(p, most):
    """logit p, at most `most` either way."""
    least = 1.0 / (1.0 + exp(most))
    p = min(max(p, least), 1.0 - least)
    return log(p / (1.0 - p))


@kernel
def log_loss(z, y):
    """Log loss of the log odds z."""
    against = -z if y > 0.5 else z
    return max(against, 0.0) + log1p(exp(-abs(against)))


@kernel_part
def observe(statistics, x, odds, features):
    """Write the expert's log odds and the features of the round."""
    z = log_odds(x, MOST_EXPERT)
    odds[RecordedOdds.PROBABILITY] = x
    odds[RecordedOdds.EXPERT] = z
    z = min(max(z, -MOST_FEATURE), MOST_FEATURE)
    features[Feature.ONE] = 1.0
    features[Feature.LOG_ODDS] = z
    # log 4 x (1 - x)
    features[Feature.SKEW] = 2.0 * log(2.0) - abs(z) - 2.0 * log1p(exp(-abs(z)))
    features[Feature.ERROR] = statistics[BinaryStatistic.LAST_ERROR]
    features[Feature.FAST] = statistics[BinaryStatistic.FAST_ERROR]
    features[Feature.SLOW] = statistics[BinaryStatistic.SLOW_ERROR]
    features[Feature.OUTCOME] = statistics[BinaryStatistic.LAST_OUTCOME]
    features[Feature.MEAN] = statistics[BinaryStatistic.OUTCOME_MEAN]
    features[Feature.CHANGE] = 0.0
    if statistics[BinaryStatistic.OUTCOMES] > 0.0:
        features[Feature.CHANGE] = statistics[BinaryStatistic.LAST_LOG_ODDS] - z
    features[Feature.BEFORE] = statistics[BinaryStatistic.BEFORE_LAST_OUTCOME]
    for j in range(Feature.HATS, FEATURES):
        features[j] = 0.0
    last = KNOTS.shape[0] - 1
    z = min(max(z, KNOTS[0]), KNOTS[last])
    j = 0
    while j < last - 1 and KNOTS[j + 1] <= z:
        j += 1
    share = (z - KNOTS[j]) / (KNOTS[j + 1] - KNOTS[j])
    features[Feature.HATS + j] = 1.0 - share
    features[Feature.HATS + j + 1] = share


@kernel_part
def learner_odds(state, i, offset, pending, round):
    """The log odds of a learner; what it learnt wears off with the outcomes that it has not seen."""
    total = 0.0
    at = THETA_AT[i]
    for j in range(USED[i]):
        total += state.theta[at + j] * round.features[USED_FEATURES[i, j]]
    if pending > 0.0 and DISCOUNT[i] < 1.0:
        total *= real_power(DISCOUNT[i], pending)
    z = min(max(offset + total, -MOST_EXPERT), MOST_EXPERT)
    round.learners[i] = z
    return z


@kernel
def committee(state, x, pending, round):
    """The log odds of the prior given the expert's x; fills what the committee records and only reads the state.

    The more outcomes are outstanding, the more weight the expert has.
    """
    observe(state.statistics, x, round.odds, round.features)
    rate = RATES[horizon(pending)]
    loss = state.learner_loss[horizon(pending)]
    best = loss[0]
    for i in range(1, LOSSES):
        best = min(best, loss[i])
    learnt = delay_odds(pending)
    expert = round.odds[RecordedOdds.EXPERT]
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
    round.odds[RecordedOdds.FIRST_STAGE] = agreed
    weight = learnt * exp(rate * (best - loss[AGREED]))
    total += weight
    mix += weight * sigmoid(agreed)
    for i in range(FIRST_STAGE, COUNT):
        z = learner_odds(state, i, agreed, pending, round)
        weight = learnt * exp(rate * (best - loss[i]))
        total += weight
        mix += weight * sigmoid(z)
    round.odds[RecordedOdds.PRIOR] = log_odds(mix / total, MOST_PRIOR)
    return round.odds[RecordedOdds.PRIOR]


@kernel_part
def step(state, i, round, y, weight, scratch):
    """A learner learns from an outcome, then drifts for one round."""
    count = USED[i]
    theta = state.theta[THETA_AT[i] : THETA_AT[i + 1]]
    spread = state.spread[SPREAD_AT[i] : SPREAD_AT[i + 1]]
    f, gain = scratch[0], scratch[1]
    # What it would say now, not what it said then: a batch of outcomes is no reason to take the same step many times.
    z = round.odds[RecordedOdds.EXPERT] if i < FIRST_STAGE else round.odds[RecordedOdds.FIRST_STAGE]
    for j in range(count):
        f[j] = round.features[USED_FEATURES[i, j]]
        z += theta[j] * f[j]
    z = min(max(z, -MOST_EXPERT), MOST_EXPERT)
    variance = 0.0
    for j in range(count):
        total = 0.0
        for k in range(count):
            total += spread[j * count + k] * f[k]
        gain[j] = total
        variance += total * f[j]
    # The error after the step, so that no step overshoots: two Newton steps from the error before it.
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
        spread[j * count + j] += (1.0 - square) * START[i, j]


@kernel
def teach(state, round, pending, y):
    """Learn from an outcome; the more were outstanding when the forecast was made, the less it counts."""
    weight = delay_weight(pending)
    careful = sqrt(weight)
    loss = state.learner_loss[horizon(pending)]
    kept = delayed(BINARY_LOSS_DISCOUNT, weight)
    scratch = np.empty((2, MOST_USED))
    for i in range(COUNT):
        loss[i] = kept * loss[i] + weight * log_loss(round.learners[i], y)
        step(state, i, round, y, 1.0 if i < FIRST_STAGE else careful, scratch)
    expert, agreed = round.odds[RecordedOdds.EXPERT], round.odds[RecordedOdds.FIRST_STAGE]
    loss[EXPERT] = kept * loss[EXPERT] + weight * log_loss(expert, y)
    loss[AGREED] = kept * loss[AGREED] + weight * log_loss(agreed, y)
    learn_statistics(state.statistics, round, y, weight)


@kernel_part
def learn_statistics(statistics, round, y, weight):
    """Means of errors and outcomes, and the last ones."""
    error = y - sigmoid(round.odds[RecordedOdds.FIRST_STAGE])
    side = 2.0 * y - 1.0
    statistics[BinaryStatistic.LAST_ERROR] = error
    statistics[BinaryStatistic.FAST_ERROR] += FAST_STEP * weight * (error - statistics[BinaryStatistic.FAST_ERROR])
    statistics[BinaryStatistic.SLOW_ERROR] += SLOW_STEP * weight * (error - statistics[BinaryStatistic.SLOW_ERROR])
    statistics[BinaryStatistic.BEFORE_LAST_OUTCOME] = statistics[BinaryStatistic.LAST_OUTCOME]
    statistics[BinaryStatistic.LAST_OUTCOME] = side
    change = side - statistics[BinaryStatistic.OUTCOME_MEAN]
    statistics[BinaryStatistic.OUTCOME_MEAN] += MEAN_STEP * weight * change
    statistics[BinaryStatistic.LAST_LOG_ODDS] = round.features[Feature.LOG_ODDS]
    statistics[BinaryStatistic.OUTCOMES] += 1.0
    gap = round.odds[RecordedOdds.PROBABILITY] - y
    statistics[BinaryStatistic.LOSS_SUM] = LOSS_DISCOUNT * statistics[BinaryStatistic.LOSS_SUM] + gap * gap
    statistics[BinaryStatistic.LOSS_COUNT] = LOSS_DISCOUNT * statistics[BinaryStatistic.LOSS_COUNT] + 1.0
