"""Spread of a member around its centre, learnt from its own past errors: it starts as that of the base forecast.

    log s = log spread + theta . x,    x = (1, log(slow / spread), log(fast / slow), move, last error, level)
    quantiles = centre + s (k shape + (1 - k) base shape),    k = n / (n + prior)

`slow` and `fast` are running sizes of the member's errors, so that the uncertainty of its coefficients is part of the
spread; theta is a least-squares fit of the log sizes. In a pool the equations and the shape of all its series count.
"""

SLOW_RATE, FAST_RATE = 0.01, 0.08
# An error enters as at most this many times the spread.
MOST_SIZE = 20.0
# Mean of log |z| of a standard normal, relative to log of its mean size.
LOG_SIZE = 0.35
MOST_LOG, MOST_RATIO = 4.0, 3.0
# Size of the feature of the level, relative to the others.
LEVEL_SHARE = 0.2
# The step of the shape is one over the number of outcomes, between these.
SHAPE_START, SHAPE_MEMORY = 4.0, 500.0
# Features, and the numbers of their equations: the matrix and the vector.
WIDTH = 6
EQUATION_SIZE = WIDTH * WIDTH + WIDTH
# Sizes: of the own numbers (before the shape, as a difference from the normal one), those in a pool (before its shape
# and the sums of the step's shape), and of a memo: spread and features.
OWN_SIZE, SHARED_SIZE, MEMO_SIZE = 3 + EQUATION_SIZE, 2 + 2 * EQUATION_SIZE, 1 + WIDTH
SLOW, FAST, COUNT, EQUATIONS = 0, 1, 2, 3
# In a pool: steps, outcomes of the step, equations, and their sums of the step.
STEPS, NEW, POOLED, SUMS = 0, 1, 2, 2 + EQUATION_SIZE


def sort(values, size):
    """Sort in place; quick where the values are almost sorted."""
    for i in range(1, size):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


def log_factor(plan, known, state, shared, x, w):
    """log(s / spread) for features x."""
    if state[COUNT] == 0.0:
        return 0.0
    used = mark(w)
    constants, lag = plan.constants, known.lag
    own, pooled = (constants.own, constants.pooled) if known.active > 0.0 else (1.0, 0.0)
    equations, common = cut(state, EQUATIONS, EQUATION_SIZE), cut(shared, POOLED, EQUATION_SIZE)
    a, theta = take(w, EQUATION_SIZE), take(w, WIDTH)
    for i in range(EQUATION_SIZE):
        a[i] = own * equations[i]
        if pooled > 0.0:
            a[i] += pooled * common[i]
    for i in range(WIDTH):
        a[i * WIDTH + i] += lag * (
            constants.spread_0 if i == 0 else constants.spread_1 if i < 3 else constants.spread_2
        )
    solve_positive(a, cut(a, WIDTH * WIDTH, WIDTH), WIDTH, theta)
    found = dot(theta, x, WIDTH)
    release(w, used)
    return 0.0 if isnan(found) else min(max(found, -MOST_LOG), MOST_LOG)


def spread_around(plan, known, base, centre, state, shared, memo, out, w):
    """Fill `out` with quantiles around a centre."""
    k, x = plan.level_count, cut(memo, 1, WIDTH)
    slow = state[SLOW] if state[COUNT] > 0.0 else known.spread
    fast = state[FAST] if state[COUNT] > 0.0 else known.spread
    least = 1e-9 * known.spread
    x[0] = 1.0
    x[1] = min(max(log((slow + least) / known.spread), -MOST_LOG), MOST_LOG)
    x[2] = min(max(log((fast + least) / (slow + least)), -MOST_RATIO), MOST_RATIO)
    x[3] = log(1.0 + fabs(feature(known.last, centre, known.unit)))
    x[4] = log(1.0 + fabs(feature(known.error_0, 0.0, known.unit)))
    x[5] = LEVEL_SHARE * feature(centre, known.mean, known.unit)
    size = known.spread * exp(log_factor(plan, known, state, shared, x, w))
    memo[0] = size
    count = shared[STEPS] if known.active > 0.0 else state[COUNT]
    corrected = cut(shared, SHARED_SIZE, k) if known.active > 0.0 else cut(state, OWN_SIZE, k)
    share = count / (count + plan.constants.shape * known.lag)
    for i in range(k):
        given = (base[i] - known.median) / known.spread
        out[i] = centre + size * (given + share * (plan.shape[i] + corrected[i] - given))


def step_shape(plan, shape, missed, rate):
    """Move a shape by the misses of its levels, and sort it."""
    for i in range(plan.level_count):
        shape[i] += plan.shape[i] + rate * missed[i] / plan.density[i]
    sort(shape, plan.level_count)
    for i in range(plan.level_count):
        shape[i] -= plan.shape[i]


def add_equation(equations, kept, x, z):
    """Add an observation z of log size at features x."""
    for i in range(EQUATION_SIZE):
        equations[i] *= kept
    for i in range(WIDTH):
        for j in range(WIDTH):
            equations[i * WIDTH + j] += x[i] * x[j]
        equations[WIDTH * WIDTH + i] += x[i] * z


def learn_spread(plan, known, error, state, shared, memo):
    """Update the spread with the error of the centre."""
    k, size, count = plan.level_count, memo[0], state[COUNT]
    rate = 1.0 / min(count + SHAPE_START, SHAPE_MEMORY)
    u = min(max(error / size, -30.0), 30.0)
    shape = cut(state, OWN_SIZE, k)
    if plan.pooled:
        common, sums = cut(shared, SHARED_SIZE, k), cut(shared, SHARED_SIZE + k, k)
        for i in range(k):
            sums[i] += plan.levels[i] - (1.0 if u <= plan.shape[i] + common[i] else 0.0)
    for i in range(k):
        missed = plan.levels[i] - (1.0 if u <= plan.shape[i] + shape[i] else 0.0)
        shape[i] += plan.shape[i] + rate * missed / plan.density[i]
    sort(shape, k)
    for i in range(k):
        shape[i] -= plan.shape[i]
    a = min(fabs(error), MOST_SIZE * size)
    state[FAST] += max(1.0 / (count + 1.0), FAST_RATE) * (a - state[FAST])
    state[SLOW] += max(1.0 / (count + 1.0), SLOW_RATE) * (a - state[SLOW])
    z = log(max(a, 0.05 * size) / known.spread) + LOG_SIZE
    x = cut(memo, 1, WIDTH)
    add_equation(cut(state, EQUATIONS, EQUATION_SIZE), plan.constants.spread_forget, x, z)
    if plan.pooled:
        shared[NEW] += 1.0
        add_equation(cut(shared, SUMS, EQUATION_SIZE), 1.0, x, z)
    state[COUNT] += 1.0


def close_spread(plan, shared, weight):
    """End a time step of a pool: the mean over its series is one observation."""
    k, count = plan.level_count, shared[NEW]
    if count == 0.0:
        return
    kept = 1.0 + weight * (plan.constants.pool_forget - 1.0)
    for i in range(EQUATION_SIZE):
        shared[POOLED + i] = kept * shared[POOLED + i] + weight * shared[SUMS + i] / count
        shared[SUMS + i] = 0.0
    sums = cut(shared, SHARED_SIZE + k, k)
    for i in range(k):
        sums[i] /= count
    rate = weight / min(shared[STEPS] + SHAPE_START, SHAPE_MEMORY)
    step_shape(plan, cut(shared, SHARED_SIZE, k), sums, rate)
    for i in range(k):
        sums[i] = 0.0
    shared[NEW] = 0.0
    shared[STEPS] += weight
