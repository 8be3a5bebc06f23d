"""Least squares for the distance of the outcome from an anchor, with forgetting; all coefficients start at 0.

Features and distances are in units of the base forecast's usual error, so that they are alike in all series; a feature
that is unknown is 0. A member that uses this has a centre and a `spread`.
"""

# Features around the base median, and those around the newest outcome, which know outcomes alone.
FEATURES, OUTCOME_FEATURES = 19, 8
MOST_FEATURE, MOST_TARGET, MOST_RESIDUAL, MOST_MOVE = 8.0, 8.0, 4.0, 10.0


def feature(value, anchor, unit):
    """Distance of a value from an anchor in units."""
    found = (value - anchor) / unit
    return 0.0 if isnan(found) else min(max(found, -MOST_FEATURE), MOST_FEATURE)


def outcome_features(known, anchor, x):
    """Fill the features that come from outcomes."""
    unit = known.unit
    x[0] = 1.0
    x[1] = feature(known.y_1, known.y_0, unit)
    x[2] = feature(known.y_2, known.y_0, unit)
    x[3] = feature(known.season, anchor, unit)
    x[4] = feature(known.season_now, known.last, unit)
    x[5] = feature(known.long_season, anchor, unit)
    x[6] = feature(known.long_now, known.last, unit)
    x[7] = feature(known.mean, anchor, unit)


def all_features(known, x):
    """Fill all features, around the base median."""
    unit = known.unit
    outcome_features(known, known.median, x)
    x[8] = feature(known.last, known.median, unit)
    # a base forecast that moves far may foresee a change, of which the past tells nothing
    for i in range(3, 9):
        if i != 4 and i != 6:
            x[i] *= known.trust
    x[9] = feature(known.error_0, 0.0, unit)
    x[10] = feature(known.error_1, 0.0, unit)
    x[11] = feature(known.error_short, 0.0, unit)
    x[12] = feature(known.error_season, 0.0, unit)
    x[13] = feature(known.error_long, 0.0, unit)
    x[14] = feature(known.below, known.median, unit)
    x[15] = feature(known.above, known.median, unit)
    x[16] = feature(known.before, known.median, unit)
    x[17] = known.common
    x[18] = known.common_short


def dot(a, b, size):
    """Scalar product."""
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


def centre_of(known, anchor, x, theta, size):
    """Centre of a member: its anchor moved by the regression, within reach of the base median."""
    move = min(max(dot(x, theta, size), -MOST_MOVE), MOST_MOVE) * known.unit
    far = known.reach * known.unit
    return known.median + min(max(anchor + move - known.median, -far), far)


def target_of(known, anchor, y):
    """Distance of the outcome from the anchor, in units."""
    return min(max((y - anchor) / known.unit, -MOST_TARGET), MOST_TARGET)


def remembered(plan, forget, lag):
    """Forgetting factor of outcomes that are known after a lag: errors that overlap are remembered for longer."""
    return 1.0 - (1.0 - forget) * real_power(lag, -plan.constants.memory_lag)


def start_squares(cov, size, ridge):
    """Set the covariance of coefficients before any outcome."""
    for i in range(size * size):
        cov[i] = 0.0
    for i in range(size):
        cov[i * size + i] = 1.0 / ridge


def learn_squares(theta, cov, x, size, target, forget, most_trace, gain):
    """Recursive least squares; the residual is clipped and the trace of the covariance limited. `gain` is scratch."""
    for i in range(size):
        gain[i] = dot(cut(cov, i * size, size), x, size)
    below = forget + dot(x, gain, size)
    if not below >= 0.5 * forget:
        # rounding, or a damaged state: start again
        start_squares(cov, size, 1.0 / most_trace)
        return
    scale = 1.0 / below
    residual = min(max(target - dot(x, theta, size), -MOST_RESIDUAL), MOST_RESIDUAL)
    trace = 0.0
    for i in range(size):
        theta[i] += scale * gain[i] * residual
        trace += cov[i * size + i] - scale * gain[i] * gain[i]
    trace /= forget
    kept = (1.0 if trace <= most_trace else most_trace / trace) / forget
    for i in range(size):
        moved = scale * gain[i]
        for j in range(size):
            cov[i * size + j] = kept * (cov[i * size + j] - moved * gain[j])


def solve_positive(a, b, size, x):
    """Solve a x = b for a symmetric positive matrix, by Cholesky's method; `a` is overwritten."""
    for j in range(size):
        pivot = a[j * size + j]
        for k in range(j):
            pivot -= a[j * size + k] * a[j * size + k]
        pivot = sqrt(pivot) if pivot > 1e-12 else 1e-6
        a[j * size + j] = pivot
        for i in range(j + 1, size):
            value = a[i * size + j]
            for k in range(j):
                value -= a[i * size + k] * a[j * size + k]
            a[i * size + j] = value / pivot
    for i in range(size):
        value = b[i]
        for k in range(i):
            value -= a[i * size + k] * x[k]
        x[i] = value / a[i * size + i]
    for i in range(size - 1, -1, -1):
        value = x[i]
        for k in range(i + 1, size):
            value -= a[k * size + i] * x[k]
        x[i] = value / a[i * size + i]
