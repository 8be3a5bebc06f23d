"""Quantiles, mean and variance of a forecast on cells; the outer cells may be open-ended and then have tails."""

import math
from statistics import NormalDist

import cython
import numpy as np

from orcast.constants import TINY_MASS
from orcast.kernels import records
from orcast.kernels.state import Round

INF, NAN = math.inf, math.nan
COUNT_COLUMNS, ENDS = len(records.COUNTS), records.ENDS
# Levels 1%, ..., 99%, their normal scores, and the sum of the squared scores.
PERCENT_ROW = np.arange(1, 100) / 100.0
# not by scipy.special, whose import is slow
SCORE_ROW = np.array([NormalDist().inv_cdf(level) for level in PERCENT_ROW.tolist()])
PERCENT_COUNT, SQUARES = len(PERCENT_ROW), float(SCORE_ROW @ SCORE_ROW)
PERCENTS = numbers_of(PERCENT_ROW)
SCORES = numbers_of(SCORE_ROW)


def tail_scale(n, left, right, open_low, open_high):
    """Scale of the tails of open-ended cells: half the width of the others."""
    if not (open_low or open_high):
        return 0.0
    first = 1 if open_low else 0
    end = n - 1 if open_high else n
    half = 0.0
    for k in range(first, end):
        half += 0.5 * (right[k] - left[k])
    if half > 0.0:
        # below any meant width, and large enough that an excess divided by it does not overflow
        return max(half, 1e-200)
    edge = max(fabs(right[0] if open_low else left[0]), fabs(left[n - 1] if open_high else right[n - 1]))
    # in units of the edge, unless that is zero
    return max(1e-9 * edge, 1e-200) if edge > 0.0 else 1e-12


def cumulate(n, mass, below):
    """Fill the n + 1 cumulated masses: the mass below each cell, and 1."""
    below[0] = 0.0
    for k in range(n):
        below[k + 1] = below[k] + mass[k]
    whole = below[n]
    for k in range(n + 1):
        below[k] /= whole


def quantile_in(k, level, n, left, right, below, open_low, open_high, scale):
    """Quantile at a level that lies in cell k."""
    here = below[k + 1] - below[k]
    share = min(max((level - below[k]) / (here if here > 0.0 else 1.0), 0.0), 1.0)
    if open_high and k == n - 1:
        return left[k] + scale * (real_power(1.0 - share, -1.0 / 3.0) - 1.0)
    if open_low and k == 0:
        return right[k] - scale * (real_power(share, -1.0 / 3.0) - 1.0)
    return left[k] + share * (right[k] - left[k])


def read_quantiles(n, left, right, mass, open_low, open_high, levels, count, out, w):
    """Quantiles of a forecast on n cells at levels in any order."""
    start = mark(w)
    below = take(w, n + 1)
    cumulate(n, mass, below)
    scale = tail_scale(n, left, right, open_low, open_high)
    k = 0
    before = INF
    for i in range(count):
        level = levels[i]
        if level >= before:
            while k < n - 1 and below[k + 1] < level:
                k += 1
        else:
            k = min(search_left(cut(below, 1, n), n, level), n - 1)
        before = level
        out[i] = quantile_in(k, level, n, left, right, below, open_low, open_high, scale)
    release(w, start)


def end_of(k, n, left, right, open_low, open_high):
    """Largest number of the cells up to k, -1 for none; before an atom, whose point is its own, the one below it."""
    if k < 0:
        return -INF if open_low else nextafter(left[0], -INF)
    if k == n - 1:
        return INF if open_high else right[k]
    if left[k + 1] == right[k + 1] and right[k] >= left[k + 1]:
        return nextafter(right[k], -INF)
    return right[k]


def lies_below(level, before, mass, draw):
    """Test if an outcome in a cell counts as at most the randomised quantile at a level."""
    if mass <= TINY_MASS:
        # the limit of an empty cell, as in the payoff
        return level >= before
    return before + draw * mass < level


def read_randomised(n, left, right, mass, open_low, open_high, draw, levels, count, out, w):
    """Quantiles, each moved to an end of its cell by a random number between 0 and 1 that all levels share.

    With mass F before the cell and p in it, the quantile at a level a is the upper end if F + draw p < a, else the
    lower end. Then for any outcome y, P(y <= quantile) is the smoothed indicator of the cell of y.
    """
    start = mark(w)
    below = take(w, n + 1)
    cumulate(n, mass, below)
    for i in range(count):
        k = min(search_left(cut(below, 1, n), n, levels[i]), n - 1)
        if not lies_below(levels[i], below[k], below[k + 1] - below[k], draw):
            k -= 1
        else:
            # empty cells at the level itself
            while k + 1 < n and below[k + 2] - below[k + 1] <= TINY_MASS and levels[i] >= below[k + 1]:
                k += 1
        out[i] = end_of(k, n, left, right, open_low, open_high)
    release(w, start)


def read_cells(n, left, right, mass, open_low, open_high, draw, levels, count, out, w):
    """Quantiles of a forecast on n cells, randomised if there is a draw."""
    if draw > 0.0:
        read_randomised(n, left, right, mass, open_low, open_high, draw, levels, count, out, w)
    else:
        read_quantiles(n, left, right, mass, open_low, open_high, levels, count, out, w)


def read_forecast(round, draw, levels, count, out, w):
    """Quantiles of the forecast of a round, randomised if there is a draw."""
    n, low, high = cell_count(round), round.rules.open_low, round.rules.open_high
    read_cells(n, round.left, round.right, round.result, low, high, draw, levels, count, out, w)


def mean_and_variance(n, left, right, mass, open_low, open_high):
    """Mean and variance of a forecast on n cells."""
    scale = tail_scale(n, left, right, open_low, open_high)
    whole = 0.0
    mean = 0.0
    for k in range(n):
        whole += mass[k]
        if open_low and k == 0:
            mean += mass[k] * (right[k] - 0.5 * scale)
        elif open_high and k == n - 1:
            mean += mass[k] * (left[k] + 0.5 * scale)
        else:
            mean += mass[k] * 0.5 * (left[k] + right[k])
    mean /= whole
    square = 0.0
    for k in range(n):
        if open_low and k == 0:
            a = right[k] - mean
            square += mass[k] * (a * a - scale * a + scale * scale)
        elif open_high and k == n - 1:
            a = left[k] - mean
            square += mass[k] * (a * a + scale * a + scale * scale)
        else:
            a = left[k] - mean
            b = right[k] - mean
            square += mass[k] * (a * a + a * b + b * b) / 3.0
    return mean, square / whole


def nearest_normal(n, left, right, mass, open_low, open_high, w):
    """Mean and standard deviation of the normal whose percentiles are nearest to the forecast's, by least squares."""
    start = mark(w)
    q = take(w, PERCENT_COUNT)
    read_quantiles(n, left, right, mass, open_low, open_high, PERCENTS, PERCENT_COUNT, q, w)
    mean = 0.0
    for i in range(PERCENT_COUNT):
        mean += q[i]
    mean /= PERCENT_COUNT
    spread = 0.0
    for i in range(PERCENT_COUNT):
        spread += SCORES[i] * (q[i] - mean)
    release(w, start)
    return mean, spread / SQUARES


# --- probability integral transforms


def pit_on_cells(n, left, right, mass, open_low, open_high, y, out):
    """PIT of an outcome, as four ends (`kernels.monitor`): those of the jump there, which are equal but at an atom."""
    whole = 0.0
    for k in range(n):
        whole += mass[k]
    k = 0
    below = jump = 0.0
    while k < n and not (open_high and k == n - 1) and right[k] <= y:
        below += mass[k]
        if left[k] == y:
            jump += mass[k]
        k += 1
    share = 0.0
    if open_high and k == n - 1:
        share = 1.0 - beyond_edge(y - left[k], tail_scale(n, left, right, open_low, open_high))
    elif open_low and k == 0:
        share = beyond_edge(right[k] - y, tail_scale(n, left, right, open_low, open_high))
    elif k < n and y > left[k]:
        share = (y - left[k]) / (right[k] - left[k])
    high = (below + share * mass[k] if k < n else below) / whole
    out[0] = out[1] = min(max((below - jump) / whole if jump > 0.0 else high, 0.0), 1.0)
    out[2] = out[3] = min(max(high, 0.0), 1.0)


def beyond_edge(excess, scale):
    """Share of an open-ended cell's mass farther out than a point."""
    share = 1.0 / (1.0 + max(excess, 0.0) / scale)
    return share * share * share


def pit_of_quantiles(rules, q, y, out):
    """Levels between which the ends of an outcome's PIT lie, given an expert's quantiles; nan if it is missing."""
    if isnan(q[0]):
        out[0] = out[1] = out[2] = out[3] = q[0]
        return
    below = search_left(q, rules.grid_count, y)
    upto = below
    while upto < rules.grid_count and q[upto] == y:
        upto += 1
    out[0] = out[1] = rules.grid[below - 1] if below > 0 else 0.0
    out[2] = out[3] = rules.grid[upto] if upto < rules.grid_count else 1.0
    if upto > below:
        out[1] = rules.grid[below]
        out[2] = rules.grid[upto - 1]


def write_pits(rules, round, y, out):
    """PITs of an outcome: of the forecast, then of each expert, nan if it is missing."""
    n, left, right = cell_count(round), round.left, round.right
    pit_on_cells(n, left, right, round.result, rules.open_low, rules.open_high, y, out)
    for e in range(rules.experts):
        pit = cut(out, ENDS * (e + 1), ENDS)
        if round.info.has_expert < 1.0:
            pit[0] = pit[1] = pit[2] = pit[3] = NAN
        else:
            row = e if rules.experts == 1 else e + 1
            pit_of_quantiles(rules, cut(round.experts, row * rules.grid_count, rules.grid_count), y, pit)


# --- empirical indicators


def count(round, y, levels, width, discount, empirical, counts, w):
    """Add 1{y <= reported quantile} - a to the sum of each level a; `levels` increase.

    With a draw only the levels whose quantile shares the cell of y are random. With shares s of that cell below them,
    the empirical minus the smoothed indicator is 1{draw < s} - s. The sum of its squares is convex in the number of
    levels that the draw leaves below it, so the largest is at one of the two ends.
    """
    n, left, right, draw = cell_count(round), round.left, round.right, round.info.draw
    low, high = round.rules.open_low, round.rules.open_high
    start = mark(w)
    below = take(w, n + 1)
    cumulate(n, round.result, below)
    scale = tail_scale(n, left, right, low, high)
    here = locate(min(max(y, left[0]), right[n - 1]), left, right, n)
    inside = below[here + 1] - below[here]
    all_over = 0.0
    none_over = 0.0
    k = 0
    for i in range(width):
        level = levels[i]
        if draw > 0.0:
            hit = lies_below(level, below[here], inside, draw)
            if inside > TINY_MASS and below[here] < level < below[here + 1]:
                share = (level - below[here]) / inside
                all_over += (1.0 - share) * (1.0 - share)
                none_over += share * share
        else:
            while k < n - 1 and below[k + 1] < level:
                k += 1
            hit = k > here
            if k == here or right[k] == y:
                hit = y <= quantile_in(k, level, n, left, right, below, low, high, scale)
        empirical[i] = discount * empirical[i] + (1.0 if hit else 0.0) - level
    counts.spread = discount * discount * counts.spread + max(all_over, none_over)
    counts.weight = discount * counts.weight + 1.0
    counts.without = discount * counts.without + (1.0 if draw == 0.0 else 0.0)
    release(w, start)


# --- entries from Python: the same on numpy arrays


def read_cells_arrays(n, left, right, mass, open_low, open_high, draw, levels):
    """Quantiles of a forecast on n cells at levels in any order, randomised if there is a draw."""
    out = np.empty(len(levels))
    w, a, count, found = workspace(), readable_of(levels), len(levels), numbers_of(out)
    lefts, rights, masses = readable_of(left), readable_of(right), readable_of(mass)
    with cython.nogil:
        read_cells(n, lefts, rights, masses, open_low, open_high, draw, a, count, found, w)
    return out


def mean_and_variance_arrays(n, left, right, mass, open_low, open_high):
    """Mean and variance of a forecast on n cells."""
    lefts, rights, masses = readable_of(left), readable_of(right), readable_of(mass)
    return mean_and_variance(n, lefts, rights, masses, open_low, open_high)


def nearest_normal_arrays(n, left, right, mass, open_low, open_high):
    """Mean and standard deviation of the nearest normal."""
    lefts, rights, masses = readable_of(left), readable_of(right), readable_of(mass)
    return nearest_normal(n, lefts, rights, masses, open_low, open_high, workspace())


def read_round(round: Round, draw, levels):
    """Quantiles of the forecast of a round at levels in any order; None if a level is not in [0, 1]."""
    w, count = workspace(), len(levels)
    if levels.strides[0] != 8:
        levels = np.ascontiguousarray(levels)
    found = np.empty(count)
    at, out = readable_of(levels), numbers_of(found)
    for i in range(count):
        if not 0.0 <= at[i] <= 1.0:
            return None
    with cython.nogil:
        read_forecast(round, draw, at, count, out, w)
    return found


def pits_of(round, y):
    """PITs of an outcome, four ends each: of the forecast of a round, and of each expert."""
    out = np.empty(ENDS * (round.rules.experts + 1))
    write_pits(round.rules, round, y, numbers_of(out))
    return out


def count_arrays(round, y, levels, discount, empirical):
    """Add the indicators of an outcome to an array that has the sums by level and then the other counts."""
    width, sums = len(levels), numbers_of(empirical)
    counts = as_counts(cut(sums, width, COUNT_COLUMNS))
    count(round, y, readable_of(levels), width, discount, sums, counts, workspace())
