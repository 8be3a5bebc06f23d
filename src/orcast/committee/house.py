"""Member: a forecaster of its own from outcomes alone, around the newest one: differences, seasons and the mean."""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

if not cython.compiled:
    from orcast.committee.regression import (
        OUTCOME_FEATURES,
        centre_of,
        learn_squares,
        outcome_features,
        remembered,
        start_squares,
        target_of,
    )
    from orcast.committee.spread import (
        COUNT,
        MEMO_SIZE,
        OWN_SIZE,
        SHARED_SIZE,
        close_spread,
        learn_spread,
        spread_around,
    )
    from orcast.committee.state import Member
    from orcast.kernels.rows import cut

# The state: coefficients, their covariance, scratch, and the spread. The memo: centre, spread, features.
SPREAD_AT = 2 * OUTCOME_FEATURES + OUTCOME_FEATURES * OUTCOME_FEATURES
X_AT = 1 + MEMO_SIZE


def predict(plan, options, known, base, state, shared, memo, out, w):
    """Quantiles around the forecast of the regression."""
    x, spread = cut(memo, X_AT, OUTCOME_FEATURES), cut(state, SPREAD_AT, OWN_SIZE + plan.level_count)
    outcome_features(known, known.last, x)
    memo[0] = centre_of(known, known.last, x, state, OUTCOME_FEATURES)
    spread_around(plan, known, base, memo[0], spread, shared, cut(memo, 1, MEMO_SIZE), out, w)


def update(plan, options, known, base, state, shared, memo, y, lag):
    """Learn from the outcome; options[0] is the forgetting."""
    size = OUTCOME_FEATURES
    x, spread = cut(memo, X_AT, size), cut(state, SPREAD_AT, OWN_SIZE + plan.level_count)
    cov, gain = cut(state, size, size * size), cut(state, SPREAD_AT - size, size)
    if spread[COUNT] == 0.0:
        start_squares(cov, size, plan.constants.ridge * lag)
    forget = remembered(plan, options[0], lag)
    learn_squares(state, cov, x, size, target_of(known, known.last, y), forget, plan.constants.trace, gain)
    learn_spread(plan, known, y - memo[0], spread, shared, cut(memo, 1, MEMO_SIZE))


def close(plan, options, shared, weight, lag):
    """End a time step of the pool."""
    close_spread(plan, shared, weight)


def member(forget, share):
    """Return the member with a forgetting factor and a share of the prior weight."""
    sizes = (SPREAD_AT + OWN_SIZE, 1), (X_AT + OUTCOME_FEATURES, 0), (SHARED_SIZE, 2)
    found = Member("house", *sizes, (forget,), share)
    found.predict, found.update, found.close = predict, update, close
    return found
