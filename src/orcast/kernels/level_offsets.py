"""Level offsets: an integrator that keeps the corrected expert calibrated at each level in the long run.

Each level has an offset, in units of the corrected expert's spread, which moves with every outcome,

    o_l  <-  o_l - rate (1{y < q_l + s o_l} - l) / density of a normal at the level

so that outer levels adapt as fast as others. The offsets add up errors, whereas the last layer responds in proportion
to the cumulative payoff.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

if not cython.compiled:
    from orcast.kernels.delays import STALE
    from orcast.kernels.evidence import OVERLAP
    from orcast.kernels.pure import exp, fabs, sqrt
    from orcast.kernels.quantile_trackers import offset_gradient
    from orcast.kernels.rows import mark, release, take

PI = 3.141592653589793
# Rate, and its larger value with few outcomes.
RATE, EARLY_RATE, START = 0.008, 0.4, 20.0


def rate_of(statistics, pending):
    """Rate of a step; smaller with outcomes outstanding, as the errors of these rounds overlap.

    Once outcomes are stale, a batch of errors is one: all its steps are taken before the first has an effect.
    """
    overlap = 1.0 + min(pending, OVERLAP)
    late = overlap if pending >= STALE else sqrt(overlap * sqrt(overlap))
    return max(RATE, EARLY_RATE / (statistics.outcomes + START)) / late


def spread_of(q, n, scores):
    """Mean slope of quantiles in normal scores."""
    last = n - 1
    side = last // 6
    return (q[last - side] - q[side]) / (scores[last - side] - scores[side])


def learn_levels(offsets, base, n, scores, levels, rate, low, high, y, w):
    """Step of each level's offset, divided by the density of a normal at the level."""
    spread = spread_of(base, n, scores)
    if spread <= 0.0:
        return
    used = mark(w)
    gradient = take(w, n)
    offset_gradient(base, n, offsets, spread, low, high, y, levels, gradient, w)
    for i in range(n):
        step = rate * sqrt(2.0 * PI) * exp(0.5 * scores[i] * scores[i])
        offsets[i] = min(max(offsets[i] - step * gradient[i], -1.0 - fabs(scores[i])), 1.0 + fabs(scores[i]))
    release(w, used)
