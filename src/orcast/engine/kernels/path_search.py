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

Where none is left, and no other cells will be tried, the slack is larger by the resolution of the cells, the most by
which the tilt within a cell exceeds its mean: some forecast has q + mean tilt + A <= V in every cell (docs/theory.md),
and with the resolution its largest value is within reach.  The path that lacks least is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.certificate import add_moments, cell_maximum, new_function
from orcast.engine.kernels.judging import judge, keep, keep_if_better
from orcast.engine.kernels.records import Array, CellRow, RegretScore, RoundInfo, WitnessRow
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import log

# Points of F beside 0 and 1 that are aimed at.
POINTS = 100
# Weights of A against V, one after the other.
WEIGHTS = (1.0, 1.0, 0.25, 4.0)
# The bound falls by at least this in the first pass, relative to the field, and by twice as much in each one after.
LEAST_FALL = 3e-4
# Rounding errors, relative to the field; and how close to a level a point of the grid may be, relative to the gap.
BARELY = 1e-11
# The size of the field is at least this share of the range of the tilt.
LEAST_TILT = 0.01
# Steps towards the nearest forecast that holds.
NEAREST = 4


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
    for i in range(count):
        a = levels[i - 1] if i > 0 else 0.0
        b = levels[i]
        if knots[i] > 0.0 and knots[i + 1] <= 0.0:
            aside = BARELY * (b - a)
            zero = min(max(a - knots[i] / slopes[i], a + aside), b - aside)
            j = total
            while points[j - 1] > zero:
                j -= 1
            for other in (j - 1, j):
                if abs(points[other] - zero) <= aside:
                    points[other] = zero
                    return total
            for other in range(total, j, -1):
                points[other] = points[other - 1]
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


@kernel
def search_paths(rules, memory, mix, thorough, round, workspace, best):
    """Search all forecasts on a grid for one that holds.

    Between it and the mix, the nearest to the mix that holds is played.
    """
    n = mix.shape[0]
    levels, knots, slopes = rules.levels, workspace.owed_knots, workspace.owed_slopes
    points = np.empty(grid_size(levels.shape[0]) + 3)
    total = fill_grid(levels, knots, slopes, points)
    fields = np.empty((total, total))
    steps = np.empty((n, total), dtype=np.int64)
    tilts = np.empty((3, n))
    cumulated = np.empty(n + 1)
    witness_tilts(rules, n, round, workspace, tilts[0], tilts[1])
    pull, same = crps_pull(rules, n, round, workspace, cumulated)
    masses = best.p.copy()
    stages = 1
    least, most, apart = tilts[0, 0], tilts[1, 0], 0.0
    for k in range(n):
        least = min(least, tilts[0, k])
        most = max(most, tilts[1, k])
        apart = max(apart, tilts[1, k] - tilts[0, k])
    if thorough:
        stages = 4 if pull > 0.0 else 2
        if apart > 0.0:
            stages += 1
    for stage in range(stages):
        # squared payoffs below the largest are slack that a path may use; which is the largest is known too late
        share = 1.0 if stage == 1 else 0.0
        size, norm = field_of_pairs(points, total, levels, knots, slopes, workspace.factors, share, fields)
        size = max(size, LEAST_TILT * (most - least))
        last = thorough and apart > 0.0 and stage == stages - 1
        weight = 1.0 if last else WEIGHTS[stage]
        paths = Paths(points[:total], fields, tilts, cumulated, pull, weight, same, size, norm, steps)
        search_grid(rules, memory, paths, apart if last else 0.0, round, workspace, masses, best)
        if best.missing[0] <= 0.0:
            mix_in(rules, memory, mix, masses, round, workspace, best)
            return


@kernel
def search_grid(rules, memory, paths, apart, round, workspace, masses, best):
    """Lower the bound until a path holds, or none is left within the slack and what cells cannot tell `apart`."""
    p, n = round.cells[CellRow.PLAYED], masses.shape[0]
    mean, tilt, most = paths.tilts
    lp = np.empty(n)
    bound = np.inf
    fall = LEAST_FALL * paths.size
    for _ in range(rules.effort):
        for k in range(n):
            most[k] = tilt[k]
        slack = 0.5 * workspace.free + paths.norm - paths.same + apart + BARELY * paths.size
        slack -= add_mse_tilt(rules, n, round, workspace, masses, most)
        if bound == np.inf:
            bound = mean[0]
            for k in range(1, n):
                bound = max(bound, mean[k])
            bound += slack
        value = best_path(paths, workspace.width, bound, masses)
        if value == -np.inf:
            break
        for k in range(n):
            p[k] = masses[k]
            lp[k] = log(max(masses[k], 1e-300))
        keep_if_better(best, judge(rules, memory, round, p, workspace), lp, 0.0, round)
        if best.missing[0] <= 0.0:
            break
        bound = min(value + slack, bound - fall)
        fall *= 2.0


@kernel
def mix_in(rules, memory, mix, masses, round, workspace, best):
    """Mix into masses that hold as much of the mix as they bear."""
    p, n = round.cells[CellRow.PLAYED], mix.shape[0]
    lp = np.empty(n)
    share = 0.0
    step = 0.5
    for _ in range(NEAREST + 2):
        for k in range(n):
            p[k] = (share + step) * mix[k] + (1.0 - share - step) * masses[k]
            lp[k] = log(max(p[k], 1e-300))
        if judge(rules, memory, round, p, workspace) <= 0.0:
            share += step
            keep(best, lp, 0.0, round)
        step *= 0.5
    for k in range(n):
        p[k] = best.p[k]
    judge(rules, memory, round, p, workspace)
