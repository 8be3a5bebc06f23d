"""Member: the base forecast, corrected by one regression for all series of a pool; a time step is one observation."""

SQUARES = FEATURES * FEATURES
# In a pool, after the spread: coefficients; equations; sums of the step; scratch.
EQUATIONS_SIZE = SQUARES + FEATURES
REGRESSION_SIZE = FEATURES + 2 * EQUATIONS_SIZE + SQUARES + 1
X_AT = 1 + MEMO_SIZE


def regression_of(plan, shared):
    """Numbers of the regression of a pool."""
    return cut(shared, SHARED_SIZE + 2 * plan.level_count, REGRESSION_SIZE)


def predict(plan, options, known, base, state, shared, memo, out, w):
    """Quantiles around the corrected median."""
    x = cut(memo, X_AT, FEATURES)
    all_features(known, x)
    memo[0] = known.median
    if known.active > 0.0:
        memo[0] = centre_of(known, known.median, x, regression_of(plan, shared), FEATURES)
    spread_around(plan, known, base, memo[0], state, shared, cut(memo, 1, MEMO_SIZE), out, w)


def update(plan, options, known, base, state, shared, memo, y, lag):
    """Add the outcome to the time step."""
    x, regression = cut(memo, X_AT, FEATURES), regression_of(plan, shared)
    target = target_of(known, known.median, y)
    sums = cut(regression, FEATURES + EQUATIONS_SIZE, EQUATIONS_SIZE + 1)
    for i in range(FEATURES):
        for j in range(FEATURES):
            sums[i * FEATURES + j] += x[i] * x[j]
        sums[SQUARES + i] += target * x[i]
    sums[EQUATIONS_SIZE] += 1.0
    learn_spread(plan, known, y - memo[0], state, shared, cut(memo, 1, MEMO_SIZE))


def close(plan, options, shared, weight, lag):
    """End a time step of the pool: solve for the coefficients; options[0] is the forgetting."""
    regression = regression_of(plan, shared)
    equations = cut(regression, FEATURES, EQUATIONS_SIZE)
    sums = cut(regression, FEATURES + EQUATIONS_SIZE, EQUATIONS_SIZE + 1)
    scratch = cut(regression, FEATURES + 2 * EQUATIONS_SIZE + 1, SQUARES)
    count = sums[EQUATIONS_SIZE]
    if count == 0.0:
        return
    kept = 1.0 + weight * (options[0] - 1.0)
    for i in range(EQUATIONS_SIZE):
        equations[i] = kept * equations[i] + weight * sums[i] / count
    for i in range(EQUATIONS_SIZE + 1):
        sums[i] = 0.0
    close_spread(plan, shared, weight)
    copy(equations, SQUARES, scratch)
    ridge = plan.constants.pool_ridge * lag * max(real_power(options[0], shared[STEPS]), 0.02)
    for i in range(FEATURES):
        scratch[i * FEATURES + i] += ridge
    solve_positive(scratch, cut(equations, SQUARES, FEATURES), FEATURES, regression)


def member(forget):
    """Return the member with a forgetting factor."""
    found = Member("pooled", (OWN_SIZE, 1), (X_AT + FEATURES, 0), (SHARED_SIZE + REGRESSION_SIZE, 2), (forget,))
    found.predict, found.update, found.close = predict, update, close
    return found
