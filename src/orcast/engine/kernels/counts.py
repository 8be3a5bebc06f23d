"""Compiled kernels that count: hard indicators of the outcome and the reported quantiles, at the levels of a payoff."""

from __future__ import annotations

from enum import IntEnum

from orcast.constants import TINY_MASS
from orcast.engine.kernels.cells import locate
from orcast.forecasts.kernels import cumulate, lies_below, quantile_in, tail_scale
from orcast.jit import entry_kernel


class CountColumn(IntEnum):
    """What is counted, after the sums of 1{y <= reported quantile} - a by level."""

    SPREAD = 0  # sum over the rounds of the largest square that counted minus booked could have had
    WEIGHT = 1  # rounds, discounted as the sums are
    WITHOUT = 2  # of these, those without a coin


COUNT_COLUMNS = len(CountColumn)


@entry_kernel
def count(levels, y, n, left, right, mass, open_low, open_high, coin, discount, counted):
    """Count an outcome; `levels` increase, and a coin of 0 is none.

    With the coin only the levels whose quantile shares the cell of y are random: with shares s of that cell below
    them, counted minus booked is 1{coin < s} - s.  The sum of its squares is convex in the number of levels that the
    coin leaves below it, so the largest is at one of the two ends.
    """
    below = cumulate(n, mass)
    scale = tail_scale(n, left, right, open_low, open_high)
    near = min(max(y, left[0]), right[n - 1])
    here = locate(near, left, right, n)
    width = levels.shape[0]
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
    kept = discount * discount * counted[width + CountColumn.SPREAD]
    counted[width + CountColumn.SPREAD] = kept + max(all_over, none_over)
    counted[width + CountColumn.WEIGHT] = discount * counted[width + CountColumn.WEIGHT] + 1.0
    without = 1.0 if coin == 0.0 else 0.0
    counted[width + CountColumn.WITHOUT] = discount * counted[width + CountColumn.WITHOUT] + without
