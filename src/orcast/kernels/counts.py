"""Empirical indicators of the outcome and the reported quantiles, at the levels of a payoff."""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import math

from orcast.constants import TINY_MASS
from orcast.kernels import records

if not cython.compiled:
    from orcast.kernels.cells import locate
    from orcast.kernels.pure import as_counts
    from orcast.kernels.reading import cumulate, lies_below, quantile_in, tail_scale
    from orcast.kernels.rows import cut, mark, numbers_of, readable_of, release, take, workspace

INF = math.inf
COUNT_COLUMNS = len(records.COUNTS)


def count(rules, memory, round, y, w):
    """Add the indicators of the outcome of a round."""
    low, high = rules.low == -INF, rules.high == INF
    count_on(
        rules.levels,
        rules.level_count,
        y,
        int(round.info.cells),
        round.left,
        round.right,
        round.played,
        low,
        high,
        round.info.coin,
        rules.discount,
        memory.counted,
        memory.counts,
        w,
    )


def count_on(levels, width, y, n, left, right, mass, open_low, open_high, coin, discount, counted, counts, w):
    """Add 1{y <= reported quantile} - a to the sum of each level a; `levels` increase, a `coin` of 0 is none.

    With a coin only the levels whose quantile shares the cell of y are random. With shares s of that cell below them,
    the empirical minus the smoothed indicator is 1{coin < s} - s. The sum of its squares is convex in the number of
    levels that the coin leaves below it, so the largest is at one of the two ends.
    """
    start = mark(w)
    below = take(w, n + 1)
    cumulate(n, mass, below)
    scale = tail_scale(n, left, right, open_low, open_high)
    here = locate(min(max(y, left[0]), right[n - 1]), left, right, n)
    inside = below[here + 1] - below[here]
    all_over = 0.0
    none_over = 0.0
    k = 0
    for i in range(width):
        level = levels[i]
        if coin > 0.0:
            hit = lies_below(level, below[here], inside, coin)
            if inside > TINY_MASS and below[here] < level < below[here + 1]:
                share = (level - below[here]) / inside
                all_over += (1.0 - share) * (1.0 - share)
                none_over += share * share
        else:
            while k < n - 1 and below[k + 1] < level:
                k += 1
            hit = k > here
            if k == here or right[k] == y:
                hit = y <= quantile_in(k, level, n, left, right, below, open_low, open_high, scale)
        counted[i] = discount * counted[i] + (1.0 if hit else 0.0) - level
    counts.spread = discount * discount * counts.spread + max(all_over, none_over)
    counts.weight = discount * counts.weight + 1.0
    counts.without = discount * counts.without + (1.0 if coin == 0.0 else 0.0)
    release(w, start)


def count_arrays(levels, y, n, left, right, mass, open_low, open_high, coin, discount, counted):
    """Add the indicators of an outcome to an array that has the sums by level and then the other counts."""
    w, width = workspace(), len(levels)
    sums = numbers_of(counted)
    counts = as_counts(cut(sums, width, COUNT_COLUMNS))
    a, lefts, rights, masses = readable_of(levels), readable_of(left), readable_of(right), readable_of(mass)
    count_on(a, width, y, n, lefts, rights, masses, open_low, open_high, coin, discount, sums, counts, w)
