"""Quantiles of an expert as a function Q of the normal score, linear between the levels of the grid and beyond.

The functions take Q as `rules, q, slope_low, slope_high`: the quantiles at the grid of the rules, and the slopes beyond
the outer levels. Those that end in `_on` take quantiles at other scores.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import math

if not cython.compiled:
    from orcast.kernels.numerics import search_left, search_right
    from orcast.kernels.pure import erf, exp, fabs, sqrt

# No number is larger than this.
FARTHEST = 1e110
# Values that differ by no more than this share of their size are one value; the difference is rounding.
ROUNDING = 1e-13
PI = math.pi


def bound_low(rules):
    """Lower bound of the outcome, a finite number."""
    return max(rules.low, -FARTHEST)


def bound_high(rules):
    """Upper bound of the outcome, a finite number."""
    return min(rules.high, FARTHEST)


def between(start, end, share):
    """Number at a share of the way from one number to another; exactly the same number where they are equal.

    An outcome on an atom is a tie, which the rounding of a sum of shares would break.
    """
    return start + share * (end - start)


def outer_slopes(rules, q, smallest):
    """Slopes of Q beyond the outer levels of the grid, at least `smallest`."""
    return outer_slopes_on(q, rules.scores, rules.grid_count, smallest)


def outer_slopes_on(q, z, count, smallest):
    """Slopes of Q beyond the outer levels: those of each half, kept comparable and positive."""
    last = count - 1
    middle = last // 2
    low = (q[middle] - q[0]) / (z[middle] - z[0])
    high = (q[last] - q[middle]) / (z[last] - z[middle])
    least = max(0.125 * (low + high), smallest)
    return max(low, least), max(high, least)


def quantile_at(score, rules, q, slope_low, slope_high):
    """Q at a normal score."""
    return quantile_on(score, q, rules.scores, rules.grid_count, slope_low, slope_high)


def quantile_on(score, q, z, count, slope_low, slope_high):
    """Q at a normal score, for quantiles at the scores z."""
    last = count - 1
    if score <= z[0]:
        return q[0] + (score - z[0]) * slope_low
    if score >= z[last]:
        return q[last] + (score - z[last]) * slope_high
    a = 0
    b = last
    while b - a > 1:
        middle = (a + b) // 2
        if z[middle] <= score:
            a = middle
        else:
            b = middle
    return q[a] + (q[b] - q[a]) * (score - z[a]) / (z[b] - z[a])


def corrected(location, spread, rules, q, slope_low, slope_high, out):
    """Quantiles Q(location + spread z) at the grid, within the bounds."""
    low, high = bound_low(rules), bound_high(rules)
    corrected_on(location, spread, q, rules.scores, rules.grid_count, slope_low, slope_high, low, high, out)


def corrected_on(location, spread, q, z, count, slope_low, slope_high, low, high, out):
    """Quantiles Q(location + spread z) at the scores z, within bounds; one walk along the scores."""
    last = count - 1
    j = 0
    for i in range(last + 1):
        score = location + spread * z[i]
        if score <= z[0]:
            value = q[0] + (score - z[0]) * slope_low
        elif score >= z[last]:
            value = q[last] + (score - z[last]) * slope_high
        else:
            while z[j + 1] < score:
                j += 1
            if score == z[j + 1]:
                value = q[j + 1]
            else:
                value = q[j] + (q[j + 1] - q[j]) * (score - z[j]) / (z[j + 1] - z[j])
        out[i] = min(max(value, low), high)


def on_quantile(y, q, count):
    """Value, or the quantile that it differs from by rounding: so an atom is met also by a value that is a sum."""
    i = search_left(q, count, y)
    near = ROUNDING * fabs(y)
    if i < count and q[i] - y <= near:
        return q[i]
    if i > 0 and y - q[i - 1] <= near:
        return q[i - 1]
    return y


def normal_score(value, rules, q, slope_low, slope_high):
    """Mean and variance of the normal score of a value; the variance is zero unless the value is an atom of Q."""
    last = rules.grid_count - 1
    y = on_quantile(value, q, rules.grid_count)
    if y < q[0]:
        return rules.scores[0] + (y - q[0]) / slope_low, 0.0
    if y > q[last]:
        return rules.scores[last] + (y - q[last]) / slope_high, 0.0
    i = search_left(q, rules.grid_count, y)
    if q[i] > y:
        step = rules.scores[i] - rules.scores[i - 1]
        return rules.scores[i - 1] + step * (y - q[i - 1]) / (q[i] - q[i - 1]), 0.0
    j = search_right(q, rules.grid_count, y) - 1
    if i == j:
        return rules.scores[i], 0.0
    # On an atom: a standard normal cut to the atom's share of the levels.
    return cut_normal(rules.scores[i] if i > 0 else -8.0, rules.scores[j] if j < last else 8.0)


def outcome_score(y, rules, q, slope_low, slope_high):
    """Mean and variance of the normal score of an outcome; a bound stands for the whole mass that Q has beyond it."""
    score, blur = normal_score(y, rules, q, slope_low, slope_high)
    # the quantile that y lies on, up to rounding: only that one is surely found among the quantiles
    atom = y if blur == 0.0 else on_quantile(y, q, rules.grid_count)
    if y <= bound_low(rules) and score > -6.0:
        end = score if blur == 0.0 else rules.scores[search_right(q, rules.grid_count, atom) - 1]
        return cut_normal(-8.0, end)
    if y >= bound_high(rules) and score < 6.0:
        start = score if blur == 0.0 else rules.scores[search_left(q, rules.grid_count, atom)]
        return cut_normal(start, 8.0)
    return score, blur


def cut_normal(a, b):
    """Mean and variance of a standard normal cut to [a, b]."""
    share = 0.5 * (erf(b / sqrt(2.0)) - erf(a / sqrt(2.0)))
    density_a = exp(-0.5 * a * a) / sqrt(2.0 * PI)
    density_b = exp(-0.5 * b * b) / sqrt(2.0 * PI)
    mean = (density_a - density_b) / share
    return mean, max(1.0 + (a * density_a - b * density_b) / share - mean * mean, 0.0)
