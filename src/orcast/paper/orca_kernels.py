"""Compiled kernel of ORCA on ordered cells: Adam on the worst case of a softmax histogram.

The field is v_k = quantiles + E_p[W] - W_k + crps (C_k(p) - C_k(x)) + squares, with W the pull of everything whose tilt
is explicit.  Nature mixes components, rows of masses on the cells (none: the cells themselves).  The gradient of what
she can reach, sum_k phi_k v_k with her weights phi held fixed, is taken by hand in O(cells).
"""

from __future__ import annotations

import math

import numpy as np

from orcast.constants import TINY_MASS
from orcast.jit import kernel

# Values within this share of their range are equal.
TIED = 1e-9
# What an optimiser is: Adam's rate, its two memories, and what keeps its division safe.
RATE, FIRST, SECOND, SAFE = 0, 1, 2, 3


@kernel
def smear(levels, slopes, places, values, heights):
    """The slope h of H, each level smeared from half way to the one below to half way to the one above, or to the end.

    Linear between `places`, and its integral.  Where the worst cell's share of [0, 1] holds no level, h itself is
    constant and its gradient vanishes.
    """
    count = levels.shape[0]
    for i in range(count + 1):
        places[i] = 0.0 if i == 0 else (1.0 if i == count else 0.5 * (levels[i - 1] + levels[i]))
        values[i] = slopes[i]
    heights[0] = 0.0
    for i in range(count):
        heights[i + 1] = heights[i] + 0.5 * (values[i] + values[i + 1]) * (places[i + 1] - places[i])


@kernel
def crps_means(n, width, mass, out):
    """Mean CRPS of masses over each cell, for an outcome spread evenly over it."""
    before = 0.0
    lowest = 0.0
    for k in range(n):
        a = 1.0 - before
        b = a - mass[k]
        lowest += width[k] * (a * a + a * b + b * b) / 3.0
        before += mass[k]
    before = 0.0
    for k in range(n):
        out[k] = lowest + width[k] * (before + mass[k] / 3.0 - 0.5)
        lowest += width[k] * (2.0 * before + mass[k] - 1.0)
        before += mass[k]


@kernel
def crps_centres(n, width, mass, out):
    """CRPS of masses for an outcome in the middle of each cell."""
    crps_means(n, width, mass, out)
    for k in range(n):
        # half of the cell at the lower half's slope, against the mean over all of it
        out[k] -= width[k] * mass[k] / 12.0


@kernel
def largest_gap(n, width, mass, other):
    """The largest difference in size between the CRPS of masses and of others, over all outcomes."""
    gap = 0.0
    before = 0.0
    theirs = 0.0
    for k in range(n):
        a, b = 1.0 - before, 1.0 - before - mass[k]
        c, d = 1.0 - theirs, 1.0 - theirs - other[k]
        gap += width[k] * (a * a + a * b + b * b - c * c - c * d - d * d) / 3.0
        before += mass[k]
        theirs += other[k]
    most = abs(gap)
    ahead = 0.0
    for k in range(n):
        after = ahead + mass[k] - other[k]
        if ahead * after < 0.0:
            most = max(most, abs(gap + width[k] * ahead * ahead / (ahead - after)))
        gap += width[k] * (ahead + after)
        most = max(most, abs(gap))
        ahead = after
    return most


@kernel
def descend(
    n, theta, levels, knots, slopes, places, values, heights, pull, taken, rivals, scores, owed, usual, width,
    at_centre, middle, ends, nature, soft, smooth, optimizer, steps, best,
):  # fmt: skip
    """Adam from theta (log masses) on the worst case; leaves the best masses in `best`, returns their value.

    `pull` is W on average over each cell and `taken` W where Nature is (the same, or in its middle).
    `rivals` are the masses of the experts, `scores` their own CRPS in each cell; `owed` what is owed to each in CRPS
    and in squared error, and `usual` what each usually loses in them.  `places`, `values` and `heights` are the smeared
    slope of H and its integral.  `soft` > 0 takes a softmax of Nature's choices at that temperature instead of the
    maximum, `smooth` says whether levels are smeared.  Stops as soon as the worst case is at most zero.
    """
    count = levels.shape[0]
    nodes = places.shape[0]
    p, v, phi = np.empty(n), np.empty(n), np.empty(n)
    h, by_edge, score, part = np.empty(n + 1), np.empty(n + 1), np.empty(n), np.empty(n)
    m1, m2 = np.zeros(n), np.zeros(n)
    components = nature.shape[0]
    reach = np.empty(max(components, 1))
    rival, other = np.zeros(n), np.zeros(2)
    crps_pull = 0.0
    mse_pull = 0.0
    found = np.inf
    memory1 = 1.0
    memory2 = 1.0
    for step in range(steps + 1):
        top = theta[0]
        for k in range(1, n):
            top = max(top, theta[k])
        total = 0.0
        for k in range(n):
            p[k] = math.exp(theta[k] - top)
            total += p[k]
        scale = 1.0 / total
        expected = 0.0
        mean = 0.0
        for k in range(n):
            p[k] *= scale
            expected += p[k] * pull[k]
            mean += p[k] * middle[k]
        # regrets count in the units of this very forecast
        crps_pull = 0.0
        mse_pull = 0.0
        rival[:] = 0.0
        other[:] = 0.0
        for e in range(rivals.shape[0]):
            if owed[0, e] != 0.0:
                one = owed[0, e] / max(usual[0, e], largest_gap(n, width, p, rivals[e]))
                crps_pull += one
                for k in range(n):
                    rival[k] += one * scores[e, k]
            if owed[1, e] != 0.0:
                theirs = 0.0
                for k in range(n):
                    theirs += rivals[e, k] * middle[k]
                low = abs((mean - theirs) * (mean + theirs - 2.0 * ends[0]))
                high = abs((mean - theirs) * (mean + theirs - 2.0 * ends[1]))
                one = owed[1, e] / max(usual[1, e], low, high)
                mse_pull += one
                other[0] += one * theirs
                other[1] += one * theirs * theirs
        if crps_pull != 0.0:
            if at_centre:
                crps_centres(n, width, p, score)
            else:
                crps_means(n, width, p, score)
        # v: the true field, by which iterates are judged; part: its quantile part, smeared where h is
        before = 0.0
        height = 0.0
        smooth_height = 0.0
        j = 0
        i = 0
        h[0] = values[0] if smooth else slopes[0]
        for k in range(n):
            after = before + p[k] if k < n - 1 else 1.0
            rest = expected - taken[k]
            if crps_pull != 0.0:
                rest += crps_pull * score[k] - rival[k]
            if mse_pull != 0.0:
                rest += mse_pull * (mean * mean - 2.0 * mean * middle[k]) - other[1] + 2.0 * other[0] * middle[k]
            v[k] = rest
            if count:
                j_before = j
                while j < count and levels[j] <= after:
                    j += 1
                new = knots[j] + slopes[j] * (after - (levels[j - 1] if j > 0 else 0.0))
                # a cell without a level takes the slope itself: differences of H over a tiny mass are rounding errors
                part[k] = (new - height) / p[k] if j > j_before and p[k] > TINY_MASS else slopes[j]
                v[k] += part[k]
                height = new
                if smooth:
                    i_before = i
                    while i < nodes - 2 and places[i + 1] < after:
                        i += 1
                    into = after - places[i]
                    wide = places[i + 1] - places[i]
                    tilt = (values[i + 1] - values[i]) / wide if wide > 0.0 else 0.0
                    h[k + 1] = values[i] + tilt * into
                    new = heights[i] + into * (values[i] + 0.5 * tilt * into)
                    if i > i_before and p[k] > TINY_MASS:
                        part[k] = (new - smooth_height) / p[k]
                    else:
                        part[k] = 0.5 * (h[k] + h[k + 1])
                    smooth_height = new
                else:
                    h[k + 1] = slopes[j]
            before = after
        worst = -np.inf
        if components == 0:
            for k in range(n):
                worst = max(worst, v[k])
        else:
            for c in range(components):
                value = 0.0
                for k in range(n):
                    value += nature[c, k] * v[k]
                worst = max(worst, value)
        if worst < found:
            found = worst
            for k in range(n):
                best[k] = p[k]
        if found <= 0.0 or step == steps:
            break
        # Nature's weights on the cells
        if components == 0:
            weigh(n, v, soft, phi)
        else:
            for c in range(components):
                reach[c] = 0.0
                for k in range(n):
                    reach[c] += nature[c, k] * v[k]
            weigh(components, reach, soft, reach)
            for k in range(n):
                phi[k] = 0.0
                for c in range(components):
                    phi[k] += reach[c] * nature[c, k]
        # the gradient by the masses, first by the edges F_1, ..., F_{n-1}
        for k in range(n + 1):
            by_edge[k] = 0.0
        if count:
            for k in range(n):
                if phi[k] != 0.0:
                    inverse = phi[k] / max(p[k], TINY_MASS)
                    by_edge[k + 1] += inverse * (h[k + 1] - part[k])
                    by_edge[k] += inverse * (part[k] - h[k])
        if crps_pull != 0.0:
            above = 0.0
            for k in range(n - 1, -1, -1):
                # cells above k have passed all of it: above is their weight
                edge = crps_pull * width[k]
                by_edge[k] += edge * above
                by_edge[k + 1] += edge * above
                if at_centre:
                    # C = lowest + w (F_0 + p / 4 - 1/2) in the middle
                    by_edge[k] += edge * phi[k] * 0.75
                    by_edge[k + 1] += edge * phi[k] * 0.25
                else:
                    by_edge[k] += edge * phi[k] * (2.0 / 3.0)
                    by_edge[k + 1] += edge * phi[k] * (1.0 / 3.0)
                above += phi[k]
            before = 0.0
            for k in range(n):
                a = 1.0 - before
                b = a - p[k]
                edge = crps_pull * width[k] / 3.0
                by_edge[k] -= edge * (2.0 * a + b)
                by_edge[k + 1] -= edge * (a + 2.0 * b)
                before += p[k]
        target = 0.0
        if mse_pull != 0.0:
            for k in range(n):
                target += phi[k] * middle[k]
        carried = 0.0
        average = 0.0
        for k in range(n - 1, -1, -1):
            # F_n = 1 does not move
            if k < n - 1:
                carried += by_edge[k + 1]
            g = carried + pull[k] + 2.0 * mse_pull * (mean - target) * middle[k]
            score[k] = g
            average += p[k] * g
        memory1 *= optimizer[FIRST]
        memory2 *= optimizer[SECOND]
        for k in range(n):
            g = p[k] * (score[k] - average)
            m1[k] += (1.0 - optimizer[FIRST]) * (g - m1[k])
            m2[k] += (1.0 - optimizer[SECOND]) * (g * g - m2[k])
            size = math.sqrt(m2[k] / (1.0 - memory2)) + optimizer[SAFE]
            theta[k] -= optimizer[RATE] * (m1[k] / (1.0 - memory1)) / size
    return found


@kernel
def weigh(n, values, soft, out):
    """Nature's weights: all on the largest value, or a softmax at a temperature; `out` may be `values`."""
    top = values[0]
    least = values[0]
    for k in range(1, n):
        top = max(top, values[k])
        least = min(least, values[k])
    if soft <= 0.0:
        # the first of those that differ by rounding only
        enough = top - TIED * (top - least)
        at = -1
        for k in range(n):
            if at < 0 and values[k] >= enough:
                at = k
            out[k] = 0.0
        out[at] = 1.0
        return
    total = 0.0
    for k in range(n):
        out[k] = math.exp((values[k] - top) / soft)
        total += out[k]
    for k in range(n):
        out[k] /= total
