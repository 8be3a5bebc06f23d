"""Members with a regression of their own: the corrected base forecast, and a forecaster from outcomes alone.

The first moves the base median by all features; the second moves the newest outcome by differences, seasons and mean.
"""

# The memo: centre, spread, features. Options: forgetting, number of features.
X_AT = 1 + MEMO_SIZE


def spread_at(size):
    """Start of the spread in the state, after coefficients, their covariance and scratch."""
    return 2 * size + size * size


def predict(plan, options, known, base, state, shared, memo, out, w):
    """Quantiles around the centre of the regression."""
    size = whole_number(options[1])
    x, spread = cut(memo, X_AT, size), cut(state, spread_at(size), OWN_SIZE + plan.level_count)
    if size == OUTCOME_FEATURES:
        outcome_features(known, known.last, x)
        memo[0] = centre_of(known, known.last, x, state, size)
    else:
        all_features(known, x)
        memo[0] = centre_of(known, known.median, x, state, size) if spread[COUNT] > 0.0 else known.median
    spread_around(plan, known, base, memo[0], spread, shared, cut(memo, 1, MEMO_SIZE), out, w)


def update(plan, options, known, base, state, shared, memo, y, lag):
    """Learn from the outcome."""
    size = whole_number(options[1])
    x, spread = cut(memo, X_AT, size), cut(state, spread_at(size), OWN_SIZE + plan.level_count)
    cov, gain = cut(state, size, size * size), cut(state, spread_at(size) - size, size)
    if spread[COUNT] == 0.0:
        start_squares(cov, size, plan.constants.ridge * lag)
    forget = remembered(plan, options[0], lag)
    target = target_of(known, known.last if size == OUTCOME_FEATURES else known.median, y)
    learn_squares(state, cov, x, size, target, forget, plan.constants.trace, gain)
    learn_spread(plan, known, y - memo[0], spread, shared, cut(memo, 1, MEMO_SIZE))


def close(plan, options, shared, weight, lag):
    """End a time step of the pool."""
    close_spread(plan, shared, weight)


def member(name, forget, outcomes_only, share):
    """Return the member with a name, a forgetting factor and a share of the prior weight."""
    size = OUTCOME_FEATURES if outcomes_only else FEATURES
    sizes = (spread_at(size) + OWN_SIZE, 1), (X_AT + size, 0), (SHARED_SIZE, 2)
    found = Member(name, *sizes, (forget, float(size)), share)
    found.predict, found.update, found.close = predict, update, close
    return found
