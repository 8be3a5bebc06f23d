"""Compiled kernels for binary outcomes: a committee that corrects the expert, and the layer that carries the promise.

The committee.  Each learner is a logistic regression, offset at the expert (stage 1) or at what stage 1 agreed on
(stage 2), whose coefficients theta follow a mean-reverting random walk around "no correction": between outcomes
theta <- rho theta and P <- rho^2 P + (1 - rho^2) P_0, at an outcome one implicit Newton step on the log score.  Stage 1
learns maps of the expert (Platt, beta, hat functions of the log odds), stage 2 drift and what the last errors and
outcomes tell.  The probabilities are averaged with exponential weights on discounted log loss, the expert's included.

The last layer.  With hat functions w_v on an even grid, the payoffs are w_v(p) (p - y), w_v(x) (p - y), p - y and,
one-sided, c ((p - y)^2 - (x - y)^2).  For two outcomes the logit equilibrium around the prior m is a scalar root,

    logit p = logit m + (v_1(p) - v_0(p)) / kappa,      v_y(p) = <S_+, payoff(p, y)>

which exists for every ledger.  Since the mean of v under p is at most 0, max_y v_y is at most kappa times a constant:
lowering kappa always ends at a forecast whose certificate holds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.pit_members import horizon
from orcast.jit import kernel
from orcast.ledger import ROUNDING
from orcast.payoffs.hat_kernels import hat, hat_slope

Array = NDArray[np.float64]

# Defaults of the last layer: vertices of the grids, weights of the payoffs, the temperature and when it begins to grow.
VERTICES = 15
CALIBRATION, CALIBEATING, BIAS, REGRET = 1.0, 0.5, 0.25, 1.0
KAPPA, SETTLING = 6.0, 500.0
# Regret counts in units of this part of the expert's usual loss, or of the most that can come if that is larger.
REGRET_PART = 0.5
OWN_EXPECTATION_WEIGHT = 5.0
# With n outcomes outstanding the temperature rises by (1 + n)^SOFTEN.
SOFTEN = 0.5
# Largest log odds: of the expert as an offset and as a feature, of the prior, and of what is played at a temperature.
MOST_EXPERT, MOST_FEATURE, MOST_PRIOR, MOST_PLAYED = 8.0, 6.9, 13.8, 30.0
HALVINGS, REFINEMENTS = 40, 2
TOLERANCE, STEPS, NEWTON_STEPS = 1e-10, 60, 12
# The ledger forgives this much rounding; what is played must not count on all of it.
SURE = 0.1 * ROUNDING

# Features: a constant, the log odds, their asymmetric part as in beta scaling, the last error, fast and slow means of
# the errors, the last outcome, a mean of the outcomes, how the log odds changed, the outcome before the last, hats.
ONE, LOGIT, SKEW, ERROR, FAST, SLOW, OUTCOME, MEAN, CHANGE, BEFORE, HATS = range(11)
KNOTS = np.array([-4.0, -2.4, -1.1, 0.0, 1.1, 2.4, 4.0])
N_FEATURES = HATS + 7
VARIANCES = (0.3, 0.1, 0.05, 0.9, 1.8, 1.8, 0.9, 0.9, 0.3, 0.9, 2.0, *(5 * (0.3,)), 2.0)
FAST_STEP, SLOW_STEP, MEAN_STEP = 0.2, 0.05, 0.1

_STATE = (ONE, LOGIT, ERROR, FAST, SLOW, OUTCOME, MEAN)
# Learners: stage, the time constant of the drift in outcomes (0: none), features.
LEARNERS = (
    (1, 0, (ONE, LOGIT)),
    (1, 1000, (ONE, LOGIT)),
    (1, 0, (ONE, LOGIT, SKEW)),
    (1, 3000, tuple(range(HATS, N_FEATURES))),
    (2, 30, (ONE,)),
    (2, 200, (ONE, LOGIT)),
    (2, 2000, (ONE, ERROR, FAST, SLOW)),
    (2, 20000, _STATE),
    (2, 20000, (*_STATE, CHANGE, BEFORE)),
    (2, 500, (*_STATE, CHANGE, BEFORE)),
)
COUNT = len(LEARNERS)
FIRST_STAGE = 4
MOST_USED = 9
USED = np.array([len(used) for _, _, used in LEARNERS])
FEATURES = np.array([used + (0,) * (MOST_USED - len(used)) for _, _, used in LEARNERS])
DISCOUNT = np.array([1.0 - 1.0 / span if span else 1.0 for _, span, _ in LEARNERS])
START = np.array([[VARIANCES[j] for j in used] + [0.0] * (MOST_USED - len(used)) for _, _, used in LEARNERS])
# Where the coefficients and the matrix of each learner begin.
THETA_AT = np.concatenate([[0], np.cumsum(USED)])
SPREAD_AT = np.concatenate([[0], np.cumsum(USED**2)])

# The mix: prior odds of the expert, learning rates by horizon (what is stale also weighs less), memory of the losses.
# After the learners come the expert and the mix of stage 1.
EXPERT_ODDS, LOSS_DISCOUNT = 10.0, 0.999
RATES = np.array([0.5, 1.0, 1.0])
DOUBT = 0.5
EXPERT, AGREED = COUNT, COUNT + 1
# Curvature below which an observation counts as this informative.
LEAST_CURVATURE = 0.01

# Places in the tally.
LAST_ERROR, FAST_ERROR, SLOW_ERROR, LAST_Y, MEAN_Y, LAST_LOGIT, BEFORE_Y, SEEN, LOSS_SUM, LOSS_COUNT = range(10)
STATISTICS_SIZE = 10
USUAL_DISCOUNT = 0.998

# Places in what the learners record of a round: the expert's probability, its log odds, those of stage 1 and of the
# prior, features, learners.
SAID, FROM_EXPERT, FROM_FIRST, PRIOR, FEATURES_AT = range(5)
LEARNERS_AT = FEATURES_AT + N_FEATURES
RECORD_SIZE = LEARNERS_AT + COUNT


class BinaryMemory(NamedTuple):
    """All that the committee remembers: coefficients and their spreads, losses by horizon, a tally of recent rounds."""

    theta: Array
    spread: Array
    loss: Array
    statistics: Array


def new_memory() -> BinaryMemory:
    """A committee that has seen nothing and says what the expert says."""
    memory = BinaryMemory(
        np.zeros(int(THETA_AT[-1])), np.zeros(int(SPREAD_AT[-1])), np.zeros((3, COUNT + 2)), np.zeros(STATISTICS_SIZE)
    )
    for i in range(COUNT):
        count = int(USED[i])
        for j in range(count):
            memory.spread[SPREAD_AT[i] + j * count + j] = START[i, j]
    return memory


@kernel
def sigmoid(z):
    """The probability with log odds z."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@kernel
def log_odds(p, most):
    """logit p, at most `most` either way."""
    least = 1.0 / (1.0 + math.exp(most))
    p = min(max(p, least), 1.0 - least)
    return math.log(p / (1.0 - p))


@kernel
def log_loss(z, y):
    """Log loss of the log odds z."""
    against = -z if y > 0.5 else z
    return max(against, 0.0) + math.log1p(math.exp(-abs(against)))


@kernel
def observe(statistics, x, learner_record):
    """Write the expert's log odds and the features of the round."""
    z = log_odds(x, MOST_EXPERT)
    learner_record[SAID] = x
    learner_record[FROM_EXPERT] = z
    z = min(max(z, -MOST_FEATURE), MOST_FEATURE)
    f = learner_record[FEATURES_AT:LEARNERS_AT]
    f[ONE] = 1.0
    f[LOGIT] = z
    # log 4 x (1 - x)
    f[SKEW] = 2.0 * math.log(2.0) - abs(z) - 2.0 * math.log1p(math.exp(-abs(z)))
    f[ERROR] = statistics[LAST_ERROR]
    f[FAST] = statistics[FAST_ERROR]
    f[SLOW] = statistics[SLOW_ERROR]
    f[OUTCOME] = statistics[LAST_Y]
    f[MEAN] = statistics[MEAN_Y]
    f[CHANGE] = statistics[LAST_LOGIT] - z if statistics[SEEN] > 0.0 else 0.0
    f[BEFORE] = statistics[BEFORE_Y]
    for j in range(HATS, N_FEATURES):
        f[j] = 0.0
    last = KNOTS.shape[0] - 1
    z = min(max(z, KNOTS[0]), KNOTS[last])
    j = 0
    while j < last - 1 and KNOTS[j + 1] <= z:
        j += 1
    share = (z - KNOTS[j]) / (KNOTS[j + 1] - KNOTS[j])
    f[HATS + j] = 1.0 - share
    f[HATS + j + 1] = share


@kernel
def said_by(memory, i, offset, pending, learner_record):
    """The log odds of a learner; what it learnt wears off with the outcomes that it has not seen."""
    total = 0.0
    at = THETA_AT[i]
    for j in range(USED[i]):
        total += memory.theta[at + j] * learner_record[FEATURES_AT + FEATURES[i, j]]
    if pending > 0.0 and DISCOUNT[i] < 1.0:
        total *= DISCOUNT[i] ** pending
    z = min(max(offset + total, -MOST_EXPERT), MOST_EXPERT)
    learner_record[LEARNERS_AT + i] = z
    return z


@kernel
def committee(memory, x, pending, learner_record):
    """The prior probability of 1 given the expert's x; fills the learner_record and leaves the memory as it is.

    `pending` outcomes are outstanding: the more there are, the more weight the expert has.
    """
    observe(memory.statistics, x, learner_record)
    rate = RATES[horizon(pending)]
    loss = memory.loss[horizon(pending)]
    best = loss[0]
    for i in range(1, COUNT + 2):
        best = min(best, loss[i])
    doubt = (1.0 + pending) ** -DOUBT
    expert = learner_record[FROM_EXPERT]
    weight = EXPERT_ODDS * math.exp(rate * (best - loss[EXPERT]))
    total = weight
    mix = weight * sigmoid(expert)
    odds = weight * expert
    for i in range(FIRST_STAGE):
        z = said_by(memory, i, expert, pending, learner_record)
        weight = doubt * math.exp(rate * (best - loss[i]))
        total += weight
        mix += weight * sigmoid(z)
        odds += weight * z
    agreed = odds / total if total > 0.0 else expert
    learner_record[FROM_FIRST] = agreed
    weight = doubt * math.exp(rate * (best - loss[AGREED]))
    total += weight
    mix += weight * sigmoid(agreed)
    for i in range(FIRST_STAGE, COUNT):
        z = said_by(memory, i, agreed, pending, learner_record)
        weight = doubt * math.exp(rate * (best - loss[i]))
        total += weight
        mix += weight * sigmoid(z)
    learner_record[PRIOR] = log_odds(mix / total, MOST_PRIOR)
    return sigmoid(learner_record[PRIOR])


@kernel
def step(memory, i, learner_record, y, weight, f, gain):
    """A learner learns from an outcome, then drifts for one round."""
    count = USED[i]
    theta = memory.theta[THETA_AT[i] : THETA_AT[i + 1]]
    spread = memory.spread[SPREAD_AT[i] : SPREAD_AT[i + 1]]
    # What it would say now, not what it said then: a batch of outcomes is no reason to take the same step many times.
    z = learner_record[FROM_EXPERT] if i < FIRST_STAGE else learner_record[FROM_FIRST]
    for j in range(count):
        f[j] = learner_record[FEATURES_AT + FEATURES[i, j]]
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
def teach(memory, learner_record, y, pending):
    """Learn from an outcome; `pending` outcomes were outstanding when the forecast was made.

    Errors of one batch are seldom independent: the more were outstanding, the less an observation counts.
    """
    weight = 1.0 / math.sqrt(1.0 + pending)
    careful = math.sqrt(weight)
    loss = memory.loss[horizon(pending)]
    fade = 1.0 - (1.0 - LOSS_DISCOUNT) * weight
    f = np.empty(MOST_USED)
    gain = np.empty(MOST_USED)
    for i in range(COUNT):
        loss[i] = fade * loss[i] + weight * log_loss(learner_record[LEARNERS_AT + i], y)
        step(memory, i, learner_record, y, 1.0 if i < FIRST_STAGE else careful, f, gain)
    loss[EXPERT] = fade * loss[EXPERT] + weight * log_loss(learner_record[FROM_EXPERT], y)
    loss[AGREED] = fade * loss[AGREED] + weight * log_loss(learner_record[FROM_FIRST], y)
    statistics = memory.statistics
    error = y - sigmoid(learner_record[FROM_FIRST])
    side = 2.0 * y - 1.0
    statistics[LAST_ERROR] = error
    statistics[FAST_ERROR] += FAST_STEP * weight * (error - statistics[FAST_ERROR])
    statistics[SLOW_ERROR] += SLOW_STEP * weight * (error - statistics[SLOW_ERROR])
    statistics[BEFORE_Y] = statistics[LAST_Y]
    statistics[LAST_Y] = side
    statistics[MEAN_Y] += MEAN_STEP * weight * (side - statistics[MEAN_Y])
    statistics[LAST_LOGIT] = learner_record[FEATURES_AT + LOGIT]
    statistics[SEEN] += 1.0
    gap = learner_record[SAID] - y
    statistics[LOSS_SUM] = USUAL_DISCOUNT * statistics[LOSS_SUM] + gap * gap
    statistics[LOSS_COUNT] = USUAL_DISCOUNT * statistics[LOSS_COUNT] + 1.0


@kernel
def regret_unit(memory, x):
    """The scale c of the regret against an expert who says x, from its usual Brier loss; known before the outcome."""
    usual = OWN_EXPECTATION_WEIGHT * x * (1.0 - x) + memory.statistics[LOSS_SUM]
    return 1.0 / max(REGRET_PART * usual / (OWN_EXPECTATION_WEIGHT + memory.statistics[LOSS_COUNT]), 1e-6)


@kernel
def temperature(rounds):
    """The usual temperature after so many booked rounds: what is owed by chance alone grows with their root."""
    return KAPPA * math.sqrt(1.0 + rounds / SETTLING)


@kernel
def interpolate(table, at):
    """A function given at the vertices, taken between them."""
    k, share = hat(at, table.shape[0])
    return (1.0 - share) * table[k] + share * table[k + 1]


@kernel
def regret_scale(p, x, c):
    """The unit of the regret of p against x: c, or less where the regret could exceed 1."""
    return 1.0 / max(1.0 / c, abs(p - x) * max(p + x, 2.0 - p - x))


@kernel
def advantage(p, owed_p, fixed, owed_r, xs, cs, eager):
    """v_1(p) - v_0(p), the pull on the log odds; `fixed` is the part of what is owed that does not depend on p."""
    total = -(interpolate(owed_p, p) + fixed)
    for e in range(xs.shape[0]):
        if owed_r[e] > 0.0:
            total += 2.0 * eager * owed_r[e] * regret_scale(p, xs[e], cs[e]) * (xs[e] - p)
    return total


@kernel
def slope(p, owed_p, owed_r, xs, cs, eager):
    """Derivative of the advantage, that of the regret scales left out."""
    vertices = owed_p.shape[0]
    k, _ = hat(p, vertices)
    total = -(owed_p[k + 1] - owed_p[k]) * hat_slope(p, vertices)
    for e in range(xs.shape[0]):
        if owed_r[e] > 0.0:
            total -= 2.0 * eager * owed_r[e] * regret_scale(p, xs[e], cs[e])
    return total


@kernel
def bracket(m, towards, prior_logit, kappa, owed_p, fixed, owed_r, xs, cs, eager):
    """The first stretch between vertices, from the prior m on in the direction of the pull, that holds a root."""
    vertices = owed_p.shape[0]
    near = m
    if towards > 0.0:
        k = math.floor(m * vertices - 0.5) + 1
    else:
        k = math.ceil(m * vertices - 0.5) - 1
    while 0 <= k < vertices:
        far = (k + 0.5) / vertices
        if not 0.0 < far < 1.0:
            break
        value = advantage(far, owed_p, fixed, owed_r, xs, cs, eager)
        if kappa > 0.0:
            value -= kappa * (math.log(far / (1.0 - far)) - prior_logit)
        if value * towards <= 0.0:
            return near, far
        near = far
        k += 1 if towards > 0.0 else -1
    return near, 1.0 if towards > 0.0 else 0.0


@kernel
def root(owed_p, owed_x, owed_0, owed_r, xs, cs, prior_logit, x, kappa, eager):
    """The equilibrium nearest to the prior, for kappa > 0.

    `eager` multiplies the pull of the regrets: it points back to the expert and cannot overshoot, so delay need not
    soften it.
    """
    fixed = interpolate(owed_x, x) + owed_0
    m = sigmoid(prior_logit)
    start = advantage(m, owed_p, fixed, owed_r, xs, cs, eager)
    if start == 0.0:
        return m
    towards = 1.0 if start > 0.0 else -1.0
    near, far = bracket(m, towards, prior_logit, kappa, owed_p, fixed, owed_r, xs, cs, eager)
    a = prior_logit if near == m else math.log(near / (1.0 - near))
    b = math.log(far / (1.0 - far)) if 0.0 < far < 1.0 else towards * MOST_PLAYED
    if (b - a) * towards <= 0.0:
        return sigmoid(a)
    z = a
    for n in range(STEPS):
        p = sigmoid(z)
        value = z - prior_logit - advantage(p, owed_p, fixed, owed_r, xs, cs, eager) / kappa
        if value * towards < 0.0:
            a = z
        else:
            b = z
        rise = 1.0 - slope(p, owed_p, owed_r, xs, cs, eager) * p * (1.0 - p) / kappa
        then = z - value / rise if rise > 0.0 else math.inf
        if n >= NEWTON_STEPS or not min(a, b) < then < max(a, b):
            then = 0.5 * (a + b)
        moved = abs(then - z)
        z = then
        if moved < TOLERANCE:
            break
    return sigmoid(z)


@kernel
def strict_root(owed_p, owed_x, owed_0, owed_r, xs, cs, prior_logit, x):
    """The limit kappa = 0: the zero of v_1 - v_0 nearest to the prior, or the end of [0, 1] that it points to."""
    fixed = interpolate(owed_x, x) + owed_0
    m = sigmoid(prior_logit)
    start = advantage(m, owed_p, fixed, owed_r, xs, cs, 1.0)
    if start == 0.0:
        return m
    towards = 1.0 if start > 0.0 else -1.0
    a, b = bracket(m, towards, prior_logit, 0.0, owed_p, fixed, owed_r, xs, cs, 1.0)
    if advantage(b, owed_p, fixed, owed_r, xs, cs, 1.0) * towards >= 0.0:
        return b
    for _ in range(STEPS):
        p = 0.5 * (a + b)
        if advantage(p, owed_p, fixed, owed_r, xs, cs, 1.0) * towards > 0.0:
            a = p
        else:
            b = p
    return 0.5 * (a + b)


@kernel
def certify(p, owed_p, owed_x, owed_0, owed_r, xs, cs, factors, x):
    """The largest 2 <S_+, payoff> + ||payoff||^2 and the largest ||payoff||^2 over both outcomes, exact.

    `factors` are the squared weight times the squared norm of the context, of the four kinds of payoff.
    """
    along = interpolate(owed_p, p) + interpolate(owed_x, x) + owed_0
    _, u = hat(p, owed_p.shape[0])
    _, v = hat(x, owed_x.shape[0])
    size = factors[0] * (u * u + (1.0 - u) * (1.0 - u)) + factors[1] * (v * v + (1.0 - v) * (1.0 - v)) + factors[2]
    linear = -math.inf
    bound = 0.0
    for y in range(2):
        error = p - y
        inner = along * error
        square = size * error * error
        for e in range(xs.shape[0]):
            gap = xs[e] - y
            regret = regret_scale(p, xs[e], cs[e]) * (error * error - gap * gap)
            inner += max(owed_r[e], 0.0) * regret
            square += factors[3] * regret * regret
        linear = max(linear, 2.0 * inner + square)
        bound = max(bound, square)
    return linear, bound


@kernel
def play(owed_p, owed_x, owed_0, owed_r, xs, cs, factors, prior_logit, x, kappa, pending, free, budget):
    """The forecast, the temperature used (0: strict), and its certificate: `linear` and `bound`.

    The root at the usual temperature, or at a lower one where the slack that is `free` does not allow it.
    """
    soft = (1.0 + pending) ** SOFTEN
    warm = kappa * soft
    p = root(owed_p, owed_x, owed_0, owed_r, xs, cs, prior_logit, x, warm, soft)
    linear, bound = certify(p, owed_p, owed_x, owed_0, owed_r, xs, cs, factors, x)
    if linear - bound <= free + SURE * (budget + bound):
        return p, warm, linear, bound
    cool = warm
    held = False
    for _ in range(HALVINGS):
        cool *= 0.5
        p = root(owed_p, owed_x, owed_0, owed_r, xs, cs, prior_logit, x, cool, 1.0)
        linear, bound = certify(p, owed_p, owed_x, owed_0, owed_r, xs, cs, factors, x)
        if linear - bound <= free + SURE * (budget + bound):
            held = True
            break
        warm = cool
    if not held:
        p = strict_root(owed_p, owed_x, owed_0, owed_r, xs, cs, prior_logit, x)
        linear, bound = certify(p, owed_p, owed_x, owed_0, owed_r, xs, cs, factors, x)
        return p, 0.0, linear, bound
    for _ in range(REFINEMENTS):
        middle = math.sqrt(warm * cool)
        q = root(owed_p, owed_x, owed_0, owed_r, xs, cs, prior_logit, x, middle, 1.0)
        high, size = certify(q, owed_p, owed_x, owed_0, owed_r, xs, cs, factors, x)
        if high - size <= free + SURE * (budget + size):
            p, cool, linear, bound = q, middle, high, size
        else:
            warm = middle
    return p, cool, linear, bound
