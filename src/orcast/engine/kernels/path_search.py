"""Compiled kernels of the search that ends: paths of the cumulated masses, by dynamic programming.

Where no equilibrium that was found keeps the promise, all forecasts on a grid are searched.  A forecast is a path of
F from 0 to 1, a step a cell.  On the cells the largest <owed, payoff> in cell k is

    q(F_{k-1}, F_k)  +  c_k  +  A_k  -  V,      q = (H(F_k) - H(F_{k-1})) / p_k

where c_k is the largest value of the witnesses' tilt in the cell, A_k grows along the path with the pull back to the
experts in CRPS, and V is the same for all cells and a sum over the steps.  So for each bound b the path that has

    q + c + A <= b  in every cell,    and the largest V

is found step by step; a path that holds has V >= b - slack.  V falls with b, so from the largest possible bound on, b
becomes V + slack until it holds, or no path is left: then none on this grid holds.  The bound falls in every pass and
V takes finitely many values, so this ends.  (With regrets in CRPS the best path to a point need not be part of the
best path: then what is found holds, but something may be missed.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.certificate import add_moments, cell_maximum, new_function
from orcast.engine.kernels.records import Array, CellRow, RegretScore, RoundInfo, WitnessRow
from orcast.jit import kernel, kernel_part

# Points of F beside 0 and 1 that are aimed at.
POINTS = 100
# Weights of A against V, one after the other.
WEIGHTS = (1.0, 1.0, 0.25, 4.0)
# The bound falls by at least this in the first pass, relative to the field, and by twice as much in each one after.
LEAST_FALL = 3e-4


class Paths(NamedTuple):
    """What the paths on a grid are judged by."""

    points: Array  # of F
    fields: Array  # q of each pair of them
    tilts: (
        Array  # the witnesses' tilt in each cell: its mean, its largest value, and that with regrets in squared error
    )
    cumulated: Array  # F of the experts at the edges
    pull: float  # back to them, in CRPS
    weight: float  # of what it adds along a path against V
    same: float  # what of it is the same for all forecasts
    size: float  # of the field
    norm: float  # half the squared payoff that counts as the round's own
    steps: NDArray[np.int64]  # scratch: whence the paths to a point came


@kernel
def grid_size(count):
    """Points between 0 and 1 for so many levels."""
    gaps = count + 1
    if gaps >= POINTS:
        step = (gaps + POINTS - 1) // POINTS
        return (gaps + step - 1) // step
    return gaps * ((POINTS + gaps - 1) // gaps)


@kernel
def fill_grid(levels, knots, slopes, points):
    """Points of F from 0 to 1, none on a level; and where H falls through zero: on it two cells win for quantiles."""
    count = levels.shape[0]
    gaps = count + 1
    size = grid_size(count)
    points[0] = 0.0
    for i in range(size):
        if gaps >= POINTS:
            gap, share = (i * gaps) // size, 0.5
        else:
            each = size // gaps
            gap, share = i // each, (i % each + 0.5) / each
        a = levels[gap - 1] if gap > 0 else 0.0
        b = levels[gap] if gap < count else 1.0
        points[i + 1] = a + share * (b - a)
    points[size + 1] = 1.0
    total = size + 2
    for i in range(count + 1):
        a = levels[i - 1] if i > 0 else 0.0
        b = levels[i] if i < count else 1.0
        after = knots[i] + slopes[i] * (b - a)
        if knots[i] > 0.0 and after < 0.0:
            zero = a - knots[i] / slopes[i]
            j = total
            while points[j - 1] > zero:
                points[j] = points[j - 1]
                j -= 1
            points[j] = zero
            return total + 1
    return total


@kernel_part
def height_at(u, levels, knots, slopes, start):
    """H at a point, and the knot to its left; `start` is one before it."""
    j = start
    while j < levels.shape[0] and levels[j] <= u:
        j += 1
    return knots[j] + slopes[j] * (u - (levels[j - 1] if j > 0 else 0.0)), j


@kernel
def witness_tilts(rules, n, round, workspace, mean, most):
    """Mean and largest value of the witnesses' tilt in each cell."""
    at = rules.levels.shape[0] + rules.intervals.shape[0]
    low, span = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] - round.info[RoundInfo.LOW]
    function = new_function(rules, round.rivals.shape[0])
    nothing = np.zeros(rules.orders)
    function.regrets[0] = 0.0
    for k in range(n):
        for i in range(function.poly.shape[0]):
            function.poly[i] = 0.0
        a = (round.cells[CellRow.LEFT, k] - low) / span
        b = (round.cells[CellRow.RIGHT, k] - low) / span
        add_moments(rules, at, nothing, a, b, workspace, 1.0, 0.0, function)
        most[k] = cell_maximum(function, -np.inf) if rules.orders > 0 else 0.0
        mean[k] = 0.0
        for i in range(rules.witnesses):
            owed = workspace.owed[at + i]
            mean[k] -= owed * workspace.witness[WitnessRow.MEAN, i, k]
            if i >= rules.orders:
                most[k] -= owed * workspace.witness[WitnessRow.LEAST if owed > 0.0 else WitnessRow.LARGEST, i, k]


@kernel
def crps_pull(rules, n, round, workspace, cumulated):
    """The pull back to the experts in CRPS, all together, and what of it is the same for all forecasts.

    `cumulated` becomes the experts' mean F, weighed by their pull.
    """
    at = rules.levels.shape[0] + rules.intervals.shape[0] + rules.witnesses
    pull = 0.0
    same = 0.0
    for k in range(n + 1):
        cumulated[k] = 0.0
    if rules.crps == 0:
        return pull, same
    for e in range(round.rivals.shape[0]):
        own = workspace.owed[at + e] * round.units[RegretScore.CRPS, e]
        if own > 0.0:
            pull += own
            F = 0.0
            for k in range(n):
                a = 1.0 - F
                F += round.rivals[e, k]
                b = 1.0 - F
                same -= own * workspace.width[k] * (a * a + a * b + b * b) / 3.0
                cumulated[k + 1] += own * F
    if pull > 0.0:
        for k in range(n + 1):
            cumulated[k] /= pull
    return pull, same


@kernel
def best_path(paths, width, bound, masses):
    """The path with the largest V under a bound, as masses; returns V, or -inf if there is no path.

    To each point one path is kept, the one with the largest V - weight A: where nothing pulls back to the experts, A is
    zero, and no path is missed.
    """
    n, total = masses.shape[0], paths.points.shape[0]
    points, fields, cumulated, pull, steps = paths.points, paths.fields, paths.cumulated, paths.pull, paths.steps
    mean, most, weight = paths.tilts[0], paths.tilts[2], paths.weight
    A, best, next_A, next_best = np.empty(total), np.empty(total), np.empty(total), np.empty(total)
    for i in range(total):
        best[i] = -np.inf
    A[0] = 0.0
    best[0] = 0.0
    for k in range(n):
        for j in range(total):
            next_best[j] = -np.inf
        g0, g1, w = cumulated[k], cumulated[k + 1], width[k]
        room = bound - most[k]
        for i in range(total):
            if best[i] == -np.inf:
                continue
            F0, own, so_far = points[i], A[i], best[i]
            first = total - 1 if k == n - 1 else i
            for j in range(first, total):
                left = room - fields[i, j] - own
                if left < 0.0:
                    continue
                F1 = points[j]
                value = (F1 - F0) * mean[k]
                rise = 0.0
                if pull > 0.0:
                    slope_a = 2.0 * (F0 - g0)
                    slope_b = 2.0 * (F1 - g1)
                    rise = 0.5 * w * (slope_a + slope_b) * pull
                    top = rise
                    if slope_a > 0.0 > slope_b:
                        top = 0.5 * w * slope_a * slope_a / (slope_a - slope_b) * pull
                    if top > left:
                        continue
                    a, b = 1.0 - F0, 1.0 - F1
                    value -= pull * w * (a * a + a * b + b * b) / 3.0
                score = so_far + value - weight * rise
                if score > next_best[j]:
                    next_best[j] = score
                    next_A[j] = own + rise
                    steps[k, j] = i
        A, next_A = next_A, A
        best, next_best = next_best, best
    j = total - 1
    if best[j] == -np.inf:
        return -np.inf
    found = best[j] + weight * A[j]
    for k in range(n - 1, -1, -1):
        i = steps[k, j]
        masses[k] = points[j] - points[i]
        j = i
    return found


@kernel
def add_mse_tilt(rules, n, round, workspace, p, most):
    """Add the tilt of the regrets in squared error, at the mean of p; returns what is the same for all cells."""
    same = 0.0
    if rules.mse == 0:
        return same
    at = rules.levels.shape[0] + rules.intervals.shape[0] + rules.witnesses + rules.crps * round.rivals.shape[0]
    low, span = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] - round.info[RoundInfo.LOW]
    left, right = round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT]
    mean_p = 0.0
    for k in range(n):
        mean_p += p[k] * workspace.middle[k]
    for e in range(round.rivals.shape[0]):
        own = workspace.owed[at + e] * round.units[RegretScore.MSE, e]
        if own > 0.0:
            mean_x = 0.0
            for k in range(n):
                mean_x += round.rivals[e, k] * workspace.middle[k]
            c = own * (mean_p - mean_x)
            same += c * (mean_p + mean_x)
            for k in range(n):
                a = -2.0 * c * (left[k] - low) / span
                b = -2.0 * c * (right[k] - low) / span
                most[k] += max(a, b)
    return same


@kernel
def field_of_pairs(points, total, levels, knots, slopes, factors, square_share, out):
    """q + ||payoff||^2 / 2 of each pair of points, the limit on the diagonal; of the square a share only.

    Returns the largest size of the field, and half the squared norm that may count as the round's own.
    """
    count = levels.shape[0]
    heights = np.empty(total)
    size = 0.0
    at = 0
    for i in range(total):
        heights[i], at = height_at(points[i], levels, knots, slopes, at)
        # the levels at or above F count as reached: h left of a level
        out[i, i] = slopes[at]
        size = max(size, abs(slopes[at]))
    heights[total - 1] = 0.0
    below, above = np.zeros(count + 1), np.zeros(count + 1)
    for a in range(count):
        below[a + 1] = below[a] + factors[a] * levels[a] * levels[a]
    for a in range(count - 1, -1, -1):
        above[a] = above[a + 1] + factors[a] * (1.0 - levels[a]) * (1.0 - levels[a])
    first = 0
    for i in range(total):
        while first < count and levels[first] < points[i]:
            first += 1
        square = below[first]
        last = first
        for j in range(i, total):
            if j > i:
                out[i, j] = (heights[j] - heights[i]) / (points[j] - points[i])
                while last < count and levels[last] < points[j]:
                    last += 1
                square = below[first]
                for a in range(first, last):
                    z = (levels[a] - points[i]) / (points[j] - points[i]) - levels[a]
                    square += factors[a] * z * z
            out[i, j] += 0.5 * square_share * (square + above[last])
    return size, 0.5 * square_share * max(below[count], above[0])
