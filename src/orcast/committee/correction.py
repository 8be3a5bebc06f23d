"""Member: the base forecast, corrected by a regression on its known errors, outcomes and neighbouring forecasts."""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

if not cython.compiled:
    from orcast.committee.regression import (
        FEATURES,
        all_features,
        centre_of,
        learn_squares,
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
SPREAD_AT = 2 * FEATURES + FEATURES * FEATURES
X_AT = 1 + MEMO_SIZE


def predict(plan, options, known, base, state, shared, memo, out, w):
    """Quantiles around the corrected median."""
    x, spread = cut(memo, X_AT, FEATURES), cut(state, SPREAD_AT, OWN_SIZE + plan.level_count)
    all_features(known, x)
    centre = known.median
    if spread[COUNT] > 0.0:
        centre = centre_of(known, known.median, x, state, FEATURES)
    memo[0] = centre
    spread_around(plan, known, base, centre, spread, shared, cut(memo, 1, MEMO_SIZE), out, w)


def update(plan, options, known, base, state, shared, memo, y, lag):
    """Learn from the outcome; options[0] is the forgetting."""
    x, spread = cut(memo, X_AT, FEATURES), cut(state, SPREAD_AT, OWN_SIZE + plan.level_count)
    cov, gain = cut(state, FEATURES, FEATURES * FEATURES), cut(state, SPREAD_AT - FEATURES, FEATURES)
    if spread[COUNT] == 0.0:
        start_squares(cov, FEATURES, plan.constants.ridge * lag)
    forget = remembered(plan, options[0], lag)
    learn_squares(state, cov, x, FEATURES, target_of(known, known.median, y), forget, plan.constants.trace, gain)
    learn_spread(plan, known, y - memo[0], spread, shared, cut(memo, 1, MEMO_SIZE))


def close(plan, options, shared, weight, lag):
    """End a time step of the pool."""
    close_spread(plan, shared, weight)


def member(name, forget):
    """Return the member with a name and a forgetting factor."""
    found = Member(name, (SPREAD_AT + OWN_SIZE, 1), (X_AT + FEATURES, 0), (SHARED_SIZE, 2), (forget,))
    found.predict, found.update, found.close = predict, update, close
    return found
