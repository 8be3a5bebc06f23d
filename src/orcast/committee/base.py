"""Member: the base forecast as it is."""


def predict(plan, options, known, base, state, shared, memo, out, w):
    """Quantiles of the base forecast."""
    copy(base, plan.level_count, out)


def update(plan, options, known, base, state, shared, memo, y, lag):
    """Learn nothing."""


def close(plan, options, shared, weight, lag):
    """Learn nothing."""


def member():
    """Return the member."""
    found = Member("base")
    found.predict, found.update, found.close = predict, update, close
    return found
