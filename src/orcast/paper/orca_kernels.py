"""Compiled kernels of ORCA on ordered cells: Adam on the worst case of a softmax histogram.

The field is v_k = quantiles + E_p[W] - W_k + crps (C_k(p) - C_k(x)) + squares, with W the pull of everything whose tilt
is explicit.  Nature mixes components, rows of masses on the cells (none: the cells themselves).  The gradient of what
she can reach, sum_k phi_k v_k with her weights phi held fixed, is analytic and takes O(cells).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import TINY_MASS
from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import exp, sqrt

# Values within this share of their range are equal.
TIED = 1e-9

Array = NDArray[np.float64]


class QuantileTables(NamedTuple):
    """H, linear between its levels, and its slope h with every level smeared; all empty where none is played."""

    levels: Array
    knots: Array  # H at 0 and at the levels
    slopes: Array  # of H between them
    places: Array  # between which the smeared h is linear
    values: Array  # of it there
    heights: Array  # its integral


class ExpertTables(NamedTuple):
    """Experts, a row each, and the ledger of regret: a row for the CRPS, a row for the squared error."""

    masses: Array
    crps: Array  # of each expert in each cell
    owed: Array
    usual: Array  # what each usually loses


class RegretWeights(NamedTuple):
    """Weights of the scores in the field, and of the experts' means and squared means."""

    crps: float
    mse: float
    expert_mean: float
    expert_square: float


class OrcaProblem(NamedTuple):
    """What the worst case of a round is made of."""

    width: Array
    middle: Array
    ends: Array  # of the first and the last cell
    pull: Array  # W on average over each cell
    pull_at: Array  # W where Nature is: the same, or in the middle
    quantiles: QuantileTables
    experts: ExpertTables
    nature: Array  # masses of her components on the cells, a row each
    at_centre: bool  # whether she plays the middle of a cell
    temperature: float  # of a softmax of her values; zero is the maximum
    smooth: bool  # whether gradients smear the levels


class AdamRates(NamedTuple):
    """Adam's step, its two discounts, and what keeps its division safe."""

    rate: float
    first: float
    second: float
    safe: float


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
def weighted_sum(weights, values):
    """The sum of values by weights, in their order."""
    total = 0.0
    for k in range(weights.shape[0]):
        total += weights[k] * values[k]
    return total


@kernel
def softmax(log_masses, pull, middle, out):
    """Masses in proportion to exp(log_masses); returns the means of `pull` and `middle` under them.

    The two sums share a loop: each by itself would wait for its own additions.
    """
    n = log_masses.shape[0]
    top = log_masses[0]
    for k in range(1, n):
        top = max(top, log_masses[k])
    total = 0.0
    for k in range(n):
        out[k] = exp(log_masses[k] - top)
        total += out[k]
    scale = 1.0 / total
    expected = 0.0
    mean = 0.0
    for k in range(n):
        out[k] *= scale
        expected += out[k] * pull[k]
        mean += out[k] * middle[k]
    return expected, mean


@kernel
def regret_weights(experts, width, middle, ends, p, mean, expert_crps):
    """What is owed to the experts in the units of this very forecast; leaves their CRPS, weighted, in `expert_crps`."""
    crps = 0.0
    mse = 0.0
    expert_mean = 0.0
    expert_square = 0.0
    expert_crps[:] = 0.0
    for e in range(experts.masses.shape[0]):
        if experts.owed[0, e] != 0.0:
            gap = largest_gap(p.shape[0], width, p, experts.masses[e])
            one = experts.owed[0, e] / max(experts.usual[0, e], gap)
            crps += one
            for k in range(p.shape[0]):
                expert_crps[k] += one * experts.crps[e, k]
        if experts.owed[1, e] != 0.0:
            theirs = weighted_sum(experts.masses[e], middle)
            low = abs((mean - theirs) * (mean + theirs - 2.0 * ends[0]))
            high = abs((mean - theirs) * (mean + theirs - 2.0 * ends[1]))
            one = experts.owed[1, e] / max(experts.usual[1, e], low, high)
            mse += one
            expert_mean += one * theirs
            expert_square += one * theirs * theirs
    return RegretWeights(crps, mse, expert_mean, expert_square)


@kernel
def add_crps_field(width, at_centre, p, factor, expert_crps, score, field):
    """Add the excess CRPS over the experts; `score` is scratch."""
    n = p.shape[0]
    if at_centre:
        crps_centres(n, width, p, score)
    else:
        crps_means(n, width, p, score)
    for k in range(n):
        field[k] += factor * score[k] - expert_crps[k]


@kernel
def add_mse_field(middle, mean, regret, field):
    """Add the excess squared error over the experts."""
    for k in range(field.shape[0]):
        own = regret.mse * (mean * mean - 2.0 * mean * middle[k])
        field[k] += own - regret.expert_square + 2.0 * regret.expert_mean * middle[k]


@kernel
def quantile_field(quantiles, smooth, p, part, slope, field):
    """Add the quantiles' part of the field, (H(F_k) - H(F_{k-1})) / p_k.

    `part` and `slope`, h at the edges, are what the gradient is taken of: with `smooth` those of smeared levels.
    """
    levels, knots, slopes = quantiles.levels, quantiles.knots, quantiles.slopes
    places, values, heights = quantiles.places, quantiles.values, quantiles.heights
    n, count, nodes = p.shape[0], levels.shape[0], places.shape[0]
    before = 0.0
    height = 0.0
    smooth_height = 0.0
    j = 0
    i = 0
    slope[0] = values[0] if smooth else slopes[0]
    for k in range(n):
        after = before + p[k] if k < n - 1 else 1.0
        j_before = j
        while j < count and levels[j] <= after:
            j += 1
        new = knots[j] + slopes[j] * (after - (levels[j - 1] if j > 0 else 0.0))
        # a cell without a level takes the slope itself: differences of H over a tiny mass are rounding errors
        part[k] = (new - height) / p[k] if j > j_before and p[k] > TINY_MASS else slopes[j]
        field[k] += part[k]
        height = new
        before = after
        if not smooth:
            slope[k + 1] = slopes[j]
            continue
        i_before = i
        while i < nodes - 2 and places[i + 1] < after:
            i += 1
        into = after - places[i]
        wide = places[i + 1] - places[i]
        tilt = (values[i + 1] - values[i]) / wide if wide > 0.0 else 0.0
        slope[k + 1] = values[i] + tilt * into
        new = heights[i] + into * (values[i] + 0.5 * tilt * into)
        if i > i_before and p[k] > TINY_MASS:
            part[k] = (new - smooth_height) / p[k]
        else:
            part[k] = 0.5 * (slope[k] + slope[k + 1])
        smooth_height = new


@kernel
def worst_case(nature, field, reach):
    """The largest value of Nature's components, those in `reach`; without components that of the cells."""
    worst = -np.inf
    if nature.shape[0] == 0:
        for k in range(field.shape[0]):
            worst = max(worst, field[k])
    for c in range(nature.shape[0]):
        reach[c] = weighted_sum(nature[c], field)
        worst = max(worst, reach[c])
    return worst


@kernel
def cell_weights(nature, field, reach, temperature, out):
    """Nature's weights on the cells."""
    n, components = field.shape[0], nature.shape[0]
    if components == 0:
        weigh(n, field, temperature, out)
        return
    weigh(components, reach, temperature, reach)
    for k in range(n):
        out[k] = 0.0
        for c in range(components):
            out[k] += reach[c] * nature[c, k]


@kernel
def add_quantile_gradient(p, weights, part, slope, by_edge):
    """Derivatives of the quantiles' part by the edges F_1, ..., F_{n-1}."""
    for k in range(p.shape[0]):
        if weights[k] != 0.0:
            inverse = weights[k] / max(p[k], TINY_MASS)
            by_edge[k + 1] += inverse * (slope[k + 1] - part[k])
            by_edge[k] += inverse * (part[k] - slope[k])


@kernel
def add_crps_gradient(width, at_centre, p, weights, factor, by_edge):
    """Derivatives of the CRPS by the edges."""
    n = p.shape[0]
    # C = lowest + w (F_0 + p / 4 - 1/2) in the middle of a cell, p / 3 on average over it
    lower, upper = (0.75, 0.25) if at_centre else (2.0 / 3.0, 1.0 / 3.0)
    above = 0.0
    for k in range(n - 1, -1, -1):
        # cells above k have passed all of it: above is their weight
        edge = factor * width[k]
        by_edge[k] += edge * above
        by_edge[k + 1] += edge * above
        by_edge[k] += edge * weights[k] * lower
        by_edge[k + 1] += edge * weights[k] * upper
        above += weights[k]
    before = 0.0
    for k in range(n):
        a = 1.0 - before
        b = a - p[k]
        edge = factor * width[k] / 3.0
        by_edge[k] -= edge * (2.0 * a + b)
        by_edge[k + 1] -= edge * (a + 2.0 * b)
        before += p[k]


@kernel
def log_mass_gradient(pull, middle, p, mean, mse, weights, by_edge, out):
    """The gradient by the log masses, from that by the edges and what is linear or quadratic in the masses."""
    n = p.shape[0]
    target = weighted_sum(weights, middle) if mse != 0.0 else 0.0
    carried = 0.0
    average = 0.0
    for k in range(n - 1, -1, -1):
        # F_n = 1 does not move
        if k < n - 1:
            carried += by_edge[k + 1]
        out[k] = carried + pull[k] + 2.0 * mse * (mean - target) * middle[k]
        average += p[k] * out[k]
    for k in range(n):
        out[k] = p[k] * (out[k] - average)


@kernel
def adam_step(adam, first_left, second_left, gradient, first, second, parameters):
    """One step of Adam; `first_left` and `second_left` are the powers of its discounts so far."""
    for k in range(parameters.shape[0]):
        g = gradient[k]
        first[k] += (1.0 - adam.first) * (g - first[k])
        second[k] += (1.0 - adam.second) * (g * g - second[k])
        size = sqrt(second[k] / (1.0 - second_left)) + adam.safe
        parameters[k] -= adam.rate * (first[k] / (1.0 - first_left)) / size


@entry_kernel
def descend(problem, log_masses, adam, steps, best):
    """Adam from log masses, in place, on the worst case; leaves the best masses in `best`, returns their value.

    Stops as soon as the worst case is at most zero.
    """
    n = log_masses.shape[0]
    width, middle, ends, at_centre = problem.width, problem.middle, problem.ends, problem.at_centre
    pull, pull_at, nature = problem.pull, problem.pull_at, problem.nature
    quantiles, experts = problem.quantiles, problem.experts
    has_quantiles, has_experts = quantiles.levels.shape[0] > 0, experts.masses.shape[0] > 0
    p, field, part, weights, gradient = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    slope, by_edge, expert_crps = np.empty(n + 1), np.empty(n + 1), np.empty(n)
    first, second = np.zeros(n), np.zeros(n)
    reach = np.empty(nature.shape[0])
    regret = RegretWeights(0.0, 0.0, 0.0, 0.0)
    found = np.inf
    first_left = 1.0
    second_left = 1.0
    for step in range(steps + 1):
        expected, mean = softmax(log_masses, pull, middle, p)
        for k in range(n):
            field[k] = expected - pull_at[k]
        if has_experts:
            regret = regret_weights(experts, width, middle, ends, p, mean, expert_crps)
        if regret.crps != 0.0:
            add_crps_field(width, at_centre, p, regret.crps, expert_crps, gradient, field)
        if regret.mse != 0.0:
            add_mse_field(middle, mean, regret, field)
        if has_quantiles:
            quantile_field(quantiles, problem.smooth, p, part, slope, field)
        worst = worst_case(nature, field, reach)
        if worst < found:
            found = worst
            for k in range(n):
                best[k] = p[k]
        if found <= 0.0 or step == steps:
            break
        cell_weights(nature, field, reach, problem.temperature, weights)
        for k in range(n + 1):
            by_edge[k] = 0.0
        if has_quantiles:
            add_quantile_gradient(p, weights, part, slope, by_edge)
        if regret.crps != 0.0:
            add_crps_gradient(width, at_centre, p, weights, regret.crps, by_edge)
        log_mass_gradient(pull, middle, p, mean, regret.mse, weights, by_edge, gradient)
        first_left *= adam.first
        second_left *= adam.second
        adam_step(adam, first_left, second_left, gradient, first, second, log_masses)
    return found


@entry_kernel
def weigh(n, values, temperature, out):
    """Weights that are all on the largest value, or a softmax at a temperature; `out` may be `values`."""
    top = values[0]
    least = values[0]
    for k in range(1, n):
        top = max(top, values[k])
        least = min(least, values[k])
    if temperature <= 0.0:
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
        out[k] = exp((values[k] - top) / temperature)
        total += out[k]
    for k in range(n):
        out[k] /= total
