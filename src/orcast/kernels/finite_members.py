"""Members that correct the experts on finite spaces, and their aggregation.

A member corrects an expert x by a conditional logit model: it forecasts p_k ~ exp(theta . f_k + b_k), where f_k are the
features of cell k (records.CELL_FEATURES) and b_k a shift (of some members, on more than two cells). It starts at
theta = (1, 0, ...), b = 0, which repeats the expert. An outcome is one Newton step on the log loss with forgetting d:

    H <- d H + Cov_p(f),    theta <- theta + (H + R)^-1 (f_y - E_p f - (1 - d) R (theta - theta_0)),    R the ridge

The shifts have diagonal curvatures. All experts and their members are aggregated by one rule, Bernstein online
aggregation (Wintenberger 2017) of the log loss: r_i = p_i(y) / p(y) - 1 is the regret of the mix p against member i
(by the gradient), at most 3, V_i the sum of r_i^2, both discounted; prior w_i, and

    eta_i = min(1/2, sqrt(log(1 / w_i) / V_i)),    weight ~ w_i eta_i exp(eta_i R_i - eta_i^2 V_i).

If n outcomes were outstanding at the forecast, its outcome counts 1 / sqrt(1 + n) everywhere.
"""

import numpy as np

# Prior weight of the experts; their members share the rest.
PRIOR_EXPERTS = 0.7
# Discount of regrets; largest learning rate; largest regret of a round; least log(1 / prior) in a learning rate; most
# that the log of a weight falls, so that a row that was bad can soon be good.
DISCOUNT, FASTEST, MOST_REGRET, LEAST_LOG_PRIOR, MOST_BEHIND = 0.999, 0.5, 3.0, 0.7, 8.0
# Prior observations of the coefficients, in the order of the features, and of a shift.
RIDGE_ROW = np.array([5.0, 3.0, 20.0, 1.5, 1.5, 1.5, 5.0, 0.5])
RIDGE, SHIFT_RIDGE = numbers_of(RIDGE_ROW), 4.0
# Masses below this are raised to it before logarithms are taken; smallest log mass against the largest.
FLOOR, LEAST_SCORE = 1e-3, -30.0
# This much even mass is always in the mix on more than two cells; least mass in the mix on two cells.
EVEN, LEAST_PRIOR, TINY = 1e-4, 1e-6, 1e-12
# Smallest rate of the mean outcome, and rate of the mean error.
MEAN_RATE, ERROR_RATE = 0.01, 0.05
INF = float("inf")


def observe(rules, state, e, x, features):
    """Fill the features of expert e, a row for each cell."""
    n = rules.cells
    errors = cut(state.errors, 2 * e * n, 2 * n)
    for k in range(n):
        named = as_cell_features(cut(features, k * FEATURES, FEATURES))
        log_x = log(max(x[k], FLOOR))
        named.log_mass = log_x
        named.one = 0.0
        named.skew = 0.0
        if n == 2 and k == 1:
            named.one = 1.0
            # log 4 x (1 - x)
            named.skew = log_x + log(max(x[0], FLOOR)) + 2.0 * log(2.0)
        named.outcome = state.outcomes[n + k]
        named.before = state.outcomes[2 * n + k]
        named.error = errors[k]
        named.mean_error = errors[n + k]
        named.mean = log(max(state.outcomes[k], FLOOR)) - log_x


def member_masses(rules, state, at, features, p):
    """Fill the masses of a member; `at` is its number over all experts."""
    n, used = rules.cells, whole_number(finite_member_at(rules.members, at % rules.member_count).features)
    theta, shift = cut(state.theta, at * FEATURES, FEATURES), cut(state.shift, at * n, n)
    top = -INF
    for k in range(n):
        score = shift[k]
        for j in range(used):
            score += theta[j] * features[k * FEATURES + j]
        p[k] = score
        top = max(top, score)
    total = 0.0
    for k in range(n):
        p[k] = exp(max(p[k] - top, LEAST_SCORE))
        total += p[k]
    for k in range(n):
        p[k] /= total


def prior_weight(rules, i):
    """Prior weight of a row."""
    experts = PRIOR_EXPERTS if rules.rows > 1 else 1.0
    return (experts if i % rules.rows == 0 else (1.0 - experts) / (rules.rows - 1)) / rules.rivals


def learning_rate(prior, square):
    """Learning rate of a row: min(1/2, sqrt(log(1 / prior) / V))."""
    odds = max(-log(prior), LEAST_LOG_PRIOR)
    return sqrt(odds / square) if square * FASTEST * FASTEST > odds else FASTEST


def weigh(rules, state, experts, weights):
    """Fill the weights of all rows (each expert, then what corrects it); those of a missing expert are 0."""
    rows = rules.rows
    top = -INF
    for i in range(rules.rivals * rows):
        if isnan(experts[i // rows * rules.cells]):
            continue
        prior = prior_weight(rules, i)
        eta = learning_rate(prior, state.square[i])
        weights[i] = log(prior * eta) + DISCOUNT * eta * (state.regret[i] - eta * state.square[i])
        top = max(top, weights[i])
    total = 0.0
    for i in range(rules.rivals * rows):
        weights[i] = 0.0 if isnan(experts[i // rows * rules.cells]) else exp(weights[i] - top)
        total += weights[i]
    for i in range(rules.rivals * rows):
        weights[i] /= total


def pool_masses(rules, experts, weights, pool):
    """Fill the mean of the experts; each has the weight of its rows."""
    n = rules.cells
    for k in range(n):
        pool[k] = 0.0
    for i in range(rules.rivals * rules.rows):
        if weights[i] > 0.0:
            x = cut(experts, i // rules.rows * n, n)
            for k in range(n):
                pool[k] += weights[i] * x[k]


def committee(rules, state, round, w):
    """Fill the pool, features, members and prior of a round around its experts; the rows of moved experts are there."""
    n, rows = rules.cells, rules.rows
    m = mark(w)
    weights = take(w, rules.rivals * rows)
    weigh(rules, state, round.experts, weights)
    pool_masses(rules, round.experts, weights, round.pool)
    for k in range(n):
        round.prior[k] = 0.0
    for e in range(rules.rivals):
        x = cut(round.experts, e * n, n)
        if isnan(x[0]):
            continue
        features = cut(round.inputs, e * n * FEATURES, n * FEATURES)
        if rules.member_count > 0:
            observe(rules, state, e, x, features)
        for i in range(rows):
            p = cut(round.members, (e * rows + i) * n, n)
            if i == 0:
                copy(x, n, p)
            elif i > rules.moved:
                member_masses(rules, state, e * rules.member_count + i - 1 - rules.moved, features, p)
            for k in range(n):
                round.prior[k] += weights[e * rows + i] * p[k]
    release(w, m)
    if rules.two_cells:
        round.prior[1] = min(max(round.prior[1], LEAST_PRIOR), 1.0 - LEAST_PRIOR)
        round.prior[0] = 1.0 - round.prior[1]
        return
    for k in range(n):
        round.prior[k] = (1.0 - EVEN) * round.prior[k] + EVEN / n


def newton(used, curvature, gradient, w):
    """Replace the gradient g by (H + R)^-1 g."""
    m = mark(w)
    matrix = take(w, used * used)
    for i in range(used):
        copy(cut(curvature, i * FEATURES, used), used, cut(matrix, i * used, used))
        matrix[i * used + i] += RIDGE[i]
    solve_positive(matrix, gradient, used, gradient)
    release(w, m)


def step(rules, state, at, features, weight, y, w):
    """Update a member with an outcome in cell y; its masses are those of now, not of the forecast."""
    n, options = rules.cells, finite_member_at(rules.members, at % rules.member_count)
    used, kept = whole_number(options.features), options.discount
    theta = cut(state.theta, at * FEATURES, FEATURES)
    curvature = cut(state.curvature, at * FEATURES * FEATURES, FEATURES * FEATURES)
    m = mark(w)
    p, centred, gradient = take(w, n), take(w, used * n), take(w, used)
    member_masses(rules, state, at, features, p)
    for j in range(used):
        mean = 0.0
        for k in range(n):
            mean += p[k] * features[k * FEATURES + j]
        for k in range(n):
            centred[j * n + k] = features[k * FEATURES + j] - mean
        away = theta[j] - (1.0 if j == 0 else 0.0)
        gradient[j] = weight * centred[j * n + y] - (1.0 - kept) * RIDGE[j] * away
    for i in range(used):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += p[k] * centred[i * n + k] * centred[j * n + k]
            curvature[i * FEATURES + j] = kept * curvature[i * FEATURES + j] + weight * total
            curvature[j * FEATURES + i] = curvature[i * FEATURES + j]
    newton(used, curvature, gradient, w)
    for j in range(used):
        theta[j] += gradient[j]
    if n > 2 and options.shifts > 0.0:
        shift, shift_curvature = cut(state.shift, at * n, n), cut(state.shift_curvature, at * n, n)
        for k in range(n):
            # a step of all shifts changes the score of a cell by n / (n - 1) of its own, as their sum does not count
            shift_curvature[k] = kept * shift_curvature[k] + weight * p[k] * (1.0 - p[k]) * n / (n - 1.0)
            error = (1.0 if k == y else 0.0) - p[k]
            away = (1.0 - kept) * SHIFT_RIDGE * shift[k]
            shift[k] += (weight * error - away) / (shift_curvature[k] + SHIFT_RIDGE)
    release(w, m)


def update_members(rules, state, round, y, w):
    """Update the weights, the members and the statistics with an outcome in cell y."""
    n, rows, weight = rules.cells, rules.rows, 1.0 / sqrt(1.0 + round.info.pending)
    for e in range(rules.rivals):
        x = cut(round.experts, e * n, n)
        if isnan(x[0]):
            continue
        for i in range(e * rows, (e + 1) * rows):
            regret = weight * min(round.members[i * n + y] / max(round.prior[y], TINY) - 1.0, MOST_REGRET)
            state.square[i] = DISCOUNT * state.square[i] + regret * regret
            eta = learning_rate(prior_weight(rules, i), state.square[i])
            least = eta * state.square[i] - MOST_BEHIND / eta
            state.regret[i] = max(DISCOUNT * state.regret[i] + regret, least)
        for i in range(e * rules.member_count, (e + 1) * rules.member_count):
            step(rules, state, i, cut(round.inputs, e * n * FEATURES, n * FEATURES), weight, y, w)
        errors = cut(state.errors, 2 * e * n, 2 * n)
        for k in range(n):
            error = (1.0 if k == y else 0.0) - x[k]
            errors[k] = error
            errors[n + k] += ERROR_RATE * (error - errors[n + k])
    state.observed[0] += 1.0
    rate = max(1.0 / (state.observed[0] + 1.0), MEAN_RATE)
    for k in range(n):
        state.outcomes[2 * n + k] = state.outcomes[n + k]
        state.outcomes[n + k] = (1.0 if k == y else 0.0) - state.outcomes[k]
        state.outcomes[k] += rate * state.outcomes[n + k]


# --- entry points


def start(state):
    """Set the members of a new state: they repeat the expert."""
    state.view("theta")[:, :1] = 1.0
    state.view("outcomes")[0] = 1.0 / state.rules.cells


def pooled(state, experts):
    """Pool of the experts, whose masses are the rows of an array."""
    rules, flat, pool, w = state.rules, experts.reshape(-1), np.empty(state.rules.cells), workspace()
    m = mark(w)
    weights = take(w, rules.rivals * rules.rows)
    weigh(rules, state, readable_of(flat), weights)
    pool_masses(rules, readable_of(flat), weights, numbers_of(pool))
    release(w, m)
    return pool


def committee_round(state, round):
    """Fill the pool, the members and the prior of a round around its experts."""
    committee(state.rules, state, round, workspace())


def teach_round(state, round, y):
    """Update the members with an outcome in cell y."""
    update_members(state.rules, state, round, y, workspace())
