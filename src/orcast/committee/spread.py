"""Spread of a member around its centre, learnt from its own past errors: it starts as that of the base forecast.

    log s = log spread + theta . (1, log(slow / spread), log(fast / slow))
    quantiles = centre + s (k shape + (1 - k) base shape),    k = n / (n + prior)

`slow` and `fast` are running sizes of the member's errors, so that the uncertainty of its coefficients is part of the
spread; theta is a least-squares fit of the log sizes. In a pool the equations and the shape of all its series count.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

if not cython.compiled:
    from orcast.kernels.pure import exp, fabs, isnan, log
    from orcast.kernels.rows import cut

SLOW_RATE, FAST_RATE = 0.01, 0.08
# Mean of log |z| of a standard normal, relative to log of its mean size.
LOG_SIZE = 0.35
MOST_LOG, MOST_RATIO = 4.0, 3.0
# The step of the shape is one over the number of outcomes, between these.
SHAPE_START, SHAPE_MEMORY = 4.0, 500.0
# Sizes: of the own numbers (before the shape, as a difference from the normal one), those in a pool (before its shape
# and the sums of the step's shape), and of a memo.
OWN_SIZE, SHARED_SIZE, MEMO_SIZE = 12, 20, 3
SLOW, FAST, COUNT, EQUATIONS = 0, 1, 2, 3
# In a pool: steps, equations (six numbers of a symmetric matrix, three of a vector), and the same sums of the step.
STEPS, POOLED, SUMS = 0, 1, 10


def sort(values, size):
    """Sort in place; quick where the values are almost sorted."""
    for i in range(1, size):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


def solved(a, b, c, d, e, f, x, y, z, u, v):
    """u x_1 + v x_2 + x_0 for the solution x of a symmetric system (a b c; b d e; c e f) x = (x, y, z)."""
    m = d - b * b / a
    n = e - b * c / a
    second = y - b * x / a
    third = z - c * x / a - n * second / m
    x_2 = third / (f - c * c / a - n * n / m)
    x_1 = (second - n * x_2) / m
    x_0 = (x - b * x_1 - c * x_2) / a
    return x_0 + u * x_1 + v * x_2


def log_factor(plan, known, state, shared, u, v):
    """log(s / spread) for the features u, v."""
    if state[COUNT] == 0.0:
        return 0.0
    constants, lag = plan.constants, known.lag
    own, pooled = (constants.own, constants.pooled) if known.active > 0.0 else (1.0, 0.0)
    # outside a pool the numbers of `shared` are others, and may be infinite
    common = shared if known.active > 0.0 else state
    at = EQUATIONS
    to = POOLED
    found = solved(
        own * state[at] + pooled * common[to] + constants.spread_0 * lag,
        own * state[at + 1] + pooled * common[to + 1],
        own * state[at + 2] + pooled * common[to + 2],
        own * state[at + 3] + pooled * common[to + 3] + constants.spread_1 * lag,
        own * state[at + 4] + pooled * common[to + 4],
        own * state[at + 5] + pooled * common[to + 5] + constants.spread_2 * lag,
        own * state[at + 6] + pooled * common[to + 6],
        own * state[at + 7] + pooled * common[to + 7],
        own * state[at + 8] + pooled * common[to + 8],
        u,
        v,
    )
    return 0.0 if isnan(found) else min(max(found, -MOST_LOG), MOST_LOG)


def spread_around(plan, known, base, centre, state, shared, memo, out):
    """Fill `out` with quantiles around a centre."""
    k = plan.level_count
    slow = state[SLOW] if state[COUNT] > 0.0 else known.spread
    fast = state[FAST] if state[COUNT] > 0.0 else known.spread
    least = 1e-9 * known.spread
    u = min(max(log((slow + least) / known.spread), -MOST_LOG), MOST_LOG)
    v = min(max(log((fast + least) / (slow + least)), -MOST_RATIO), MOST_RATIO)
    size = known.spread * exp(log_factor(plan, known, state, shared, u, v))
    memo[0], memo[1], memo[2] = size, u, v
    count = shared[STEPS] if known.active > 0.0 else state[COUNT]
    learnt = cut(shared, SHARED_SIZE, k) if known.active > 0.0 else cut(state, OWN_SIZE, k)
    share = count / (count + plan.constants.shape * known.lag)
    for i in range(k):
        given = (base[i] - known.median) / known.spread
        out[i] = centre + size * (given + share * (plan.shape[i] + learnt[i] - given))


def step_shape(plan, shape, missed, rate):
    """Move a shape by the misses of its levels, and sort it."""
    for i in range(plan.level_count):
        shape[i] += plan.shape[i] + rate * missed[i] / plan.density[i]
    sort(shape, plan.level_count)
    for i in range(plan.level_count):
        shape[i] -= plan.shape[i]


def add_equation(equations, kept, u, v, z):
    """Add an observation z of log size at the features 1, u, v."""
    for i in range(9):
        equations[i] *= kept
    equations[0] += 1.0
    equations[1] += u
    equations[2] += v
    equations[3] += u * u
    equations[4] += u * v
    equations[5] += v * v
    equations[6] += z
    equations[7] += u * z
    equations[8] += v * z


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
    a = fabs(error)
    state[FAST] += max(1.0 / (count + 1.0), FAST_RATE) * (a - state[FAST])
    state[SLOW] += max(1.0 / (count + 1.0), SLOW_RATE) * (a - state[SLOW])
    z = log(min(max(a, 0.05 * size), 20.0 * size) / known.spread) + LOG_SIZE
    add_equation(cut(state, EQUATIONS, 9), plan.constants.spread_forget, memo[1], memo[2], z)
    if plan.pooled:
        shared[SUMS + 9] += 1.0
        add_equation(cut(shared, SUMS, 9), 1.0, memo[1], memo[2], z)
    state[COUNT] += 1.0


def close_spread(plan, shared, weight):
    """End a time step of a pool: the mean over its series is one observation."""
    k, count = plan.level_count, shared[SUMS + 9]
    if count == 0.0:
        return
    kept = 1.0 + weight * (plan.constants.pool_forget - 1.0)
    for i in range(9):
        shared[POOLED + i] = kept * shared[POOLED + i] + weight * shared[SUMS + i] / count
        shared[SUMS + i] = 0.0
    sums = cut(shared, SHARED_SIZE + k, k)
    for i in range(k):
        sums[i] /= count
    rate = weight / min(shared[STEPS] + SHAPE_START, SHAPE_MEMORY)
    step_shape(plan, cut(shared, SHARED_SIZE, k), sums, rate)
    for i in range(k):
        sums[i] = 0.0
    shared[SUMS + 9] = 0.0
    shared[STEPS] += weight
