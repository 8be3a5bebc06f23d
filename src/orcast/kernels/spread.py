"""Spread of the outcomes relative to a forecast's, from the ledger of the forecast.

Let z be the normal score of an outcome, cut to the outer levels. The sum over the outcomes of

    z^2 - E z^2  =  - integral of 2 s (1{z < s} - Phi(s)) ds

is linear in the ledger, the sums of 1{y < q_l} - l. It is one number, so that few outcomes suffice: a spread of two
thirds is significant after about twenty, while the squares of all levels together mostly measure location.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import EVIDENCE_ODDS

if not cython.compiled:
    from orcast.kernels.pool_pure import as_pool_spreads, pool_spread_at
    from orcast.kernels.pure import erf, exp, fabs, sqrt
    from orcast.kernels.rows import numbers_of, readable_of

PI = 3.141592653589793
# The forecast's own spread counts as this many independent outcomes.
PRIOR_OUTCOMES = 3.0
# Largest number of standard errors.
MOST_ERRORS = 30.0
# Number of streams without variance that are added to those of a pool.
NO_VARIANCE = 4.0
# Range of the ratio of the two spreads, and steps of Newton's method for it.
NARROWEST, WIDEST, STEPS = 0.4, 3.0, 9


def spread_excess(ledger, n, levels, scores):
    """Sum of z^2 - E z^2, its variance for an outcome, and the outcomes whose noise has the size of the blocks."""
    total, block, usual = 0.0, 0.0, 0.0
    square, mean, second, below = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        left, right = scores[max(i - 1, 0)], scores[min(i + 1, n - 1)]
        weight = scores[i] * (right - left)
        total -= weight * ledger[i]
        block += ledger[n + 1 + i] * ledger[n + 1 + i]
        usual += levels[i] * (1.0 - levels[i])
        # z^2 between the last level and this one, up to a constant
        mean += (levels[i] - below) * square
        second += (levels[i] - below) * square * square
        below = levels[i]
        square += weight
    mean += (1.0 - below) * square
    second += (1.0 - below) * square * square
    return total, second - mean * mean, (ledger[n] + block) / usual


def in_errors(total, variance, chance):
    """Sum in standard errors, limited because the noise may cancel within a long block."""
    return min(max(total / sqrt(max(variance * chance, 1e-300)), -MOST_ERRORS), MOST_ERRORS)


def spread_errors(ledger, n, levels, scores):
    """Excess of the squared normal scores in standard errors."""
    total, variance, chance = spread_excess(ledger, n, levels, scores)
    return in_errors(total, variance, chance)


def spread_with(excess, most):
    """Spread b with E min(b |z|, most)^2 = E min(|z|, most)^2 + excess, for a standard normal z."""
    if excess == 0.0:
        return 1.0
    b, wanted = 1.0, 0.0
    for step in range(STEPS):
        x = most / b
        within = erf(x / sqrt(2.0))
        inner = within - 2.0 * x * exp(-0.5 * x * x) / sqrt(2.0 * PI)
        value = b * b * inner + most * most * (1.0 - within)
        if step == 0:
            wanted = value + excess
        last = b
        b = min(max(b + (wanted - value) / max(2.0 * b * inner, 0.1), NARROWEST), WIDEST)
        if fabs(b - last) < 1e-12:
            break
    return b


def odds_of_spread(square, outcomes):
    """Odds of another spread than the forecast's, by Schwarz's criterion; `square` is that of its standard errors."""
    return EVIDENCE_ODDS * exp(min(0.5 * square, 600.0)) / sqrt(1.0 + outcomes)


def stretch_of(ledger, n, levels, scores, count, usual):
    """Spread of the outcomes over the forecast's, weighted by the evidence; `count` outcomes are in the ledger.

    `usual` is the mean excess of z^2 in the pool, 0 without one. The stream's own mean is weighted by its evidence and
    shrunk, with k overlapping outcomes counted as one:

        usual + share (total - usual count) / (count + PRIOR_OUTCOMES k)
    """
    most = scores[n - 1]
    stretch = spread_with(usual, most)
    if count <= 0.0:
        return stretch
    total, variance, chance = spread_excess(ledger, n, levels, scores)
    overlap = max(chance / count, 1.0)
    own = total - usual * count
    square = stretch * stretch
    odds = odds_of_spread(own * own / (square * square * variance * count * overlap), count / overlap)
    own *= odds / ((1.0 + odds) * (count + PRIOR_OUTCOMES * overlap))
    return spread_with(usual + own, most)


def usual_excess(spreads):
    """Mean excess of z^2 in a pool, weighted by the evidence; `spreads` has the sums over its streams.

    Standard errors t of equal streams do not differ, those of independent ones have a variance of 1. So the mean of n
    streams has the variance

        V = max(1 - variance of t, 0) + variance of t / n

    in units of that of one stream. NO_VARIANCE streams without variance are added, since few streams do not determine
    it.
    """
    streams, outcomes = spreads.streams, spreads.outcomes
    if streams <= 0.0 or outcomes <= 0.0:
        return 0.0
    errors = spreads.errors / streams
    apart = max(spreads.squares - errors * spreads.errors, 0.0) / (streams - 1.0 + NO_VARIANCE)
    unsure = max(1.0 - apart, 0.0) + apart / streams
    overlap = max(spreads.chance / outcomes, 1.0)
    odds = odds_of_spread(errors * errors / unsure, outcomes / (streams * overlap * unsure))
    return odds / (1.0 + odds) * spreads.excess / (outcomes + PRIOR_OUTCOMES * overlap * unsure * streams)


def add_spread(spreads, ledger, n, levels, scores, count, sign):
    """Add a stream's spread to the sums of its pool, or subtract it."""
    if count <= 0.0:
        return
    total, variance, chance = spread_excess(ledger, n, levels, scores)
    spreads.streams += sign
    spreads.outcomes += sign * count
    spreads.chance += sign * chance
    spreads.excess += sign * total
    errors = in_errors(total, variance, chance)
    spreads.errors += sign * errors
    spreads.squares += sign * errors * errors


# --- entries for Python; arrays are 1-d, a ledger has 2 (n + 1) numbers


def spread_excess_arrays(ledger, levels, scores):
    """Results of `spread_excess` for arrays."""
    return spread_excess(numbers_of(ledger), len(levels), readable_of(levels), readable_of(scores))


def spread_errors_arrays(ledger, levels, scores):
    """Result of `spread_errors` for arrays."""
    return spread_errors(numbers_of(ledger), len(levels), readable_of(levels), readable_of(scores))


def stretch_of_arrays(ledger, levels, scores, count: float, usual: float):
    """Result of `stretch_of` for arrays."""
    return stretch_of(numbers_of(ledger), len(levels), readable_of(levels), readable_of(scores), count, usual)


def add_spread_arrays(spreads, ledger, levels, scores, count: float, sign: float):
    """Run `add_spread` on arrays."""
    sums = pool_spread_at(as_pool_spreads(numbers_of(spreads)), 0)
    add_spread(sums, numbers_of(ledger), len(levels), readable_of(levels), readable_of(scores), count, sign)
