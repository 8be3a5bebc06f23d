"""ORCA on ordered cells: Adam on the worst case of a softmax histogram.

The field is v_k = quantiles + E_p[W] - W_k + crps (C_k(p) - C_k(x)) + squares; W is the sum of all payoffs whose tilt
is explicit. The adversary mixes components, rows of masses on the cells (none: the cells themselves). The gradient of
sum_k phi_k v_k, with the adversary's weights phi held fixed, is analytic and takes O(cells).
"""

import cython
import numpy as np

from orcast.constants import TINY_MASS

# Values within this share of their range are equal.
TIED = 1e-9
INF = float("inf")


def flat(array):
    """Array as one writable row."""
    return np.require(array, np.float64, ("C", "W")).reshape(-1)


class QuantileTables:
    """H, linear between its levels, and its slope h with each level spread out; no levels: no payoff of quantiles.

    knots: H at 0 and at the levels; slopes: of H between them; places, values: h with spread levels is linear between
    places; heights: integral of h up to each place.
    """

    def __init__(self, levels, knots, slopes, places, values, heights):
        self.given = [flat(array) for array in (levels, knots, slopes, places, values, heights)]
        self.count, self.nodes = len(levels), len(places)
        self.levels, self.knots = numbers_of(self.given[0]), numbers_of(self.given[1])
        self.slopes, self.places = numbers_of(self.given[2]), numbers_of(self.given[3])
        self.values, self.heights = numbers_of(self.given[4]), numbers_of(self.given[5])


class ExpertTables:
    """Masses and CRPS of each expert by cell; cumulative regret and usual loss: a row for the CRPS, one for the MSE."""

    def __init__(self, masses, crps, owed, usual):
        self.given = [flat(array) for array in (masses, crps, owed, usual)]
        self.count = len(masses)
        self.masses, self.crps = numbers_of(self.given[0]), numbers_of(self.given[1])
        self.owed, self.usual = numbers_of(self.given[2]), numbers_of(self.given[3])


class OrcaProblem:
    """Worst case of a round.

    ends: of the first and the last cell; pull: W on average over each cell; pull_at: W where the adversary's outcomes
    are, the same or in the middle; nature: masses of the adversary's components, a row each; at_centre: outcomes are in
    the middle of a cell; temperature: of a softmax of the adversary's values, 0 for the maximum; smooth: gradients
    spread the levels.
    """

    def __init__(
        self,
        width,
        middle,
        ends,
        pull,
        pull_at,
        quantiles: QuantileTables,
        experts: ExpertTables,
        nature,
        at_centre,
        temperature,
        smooth,
    ):
        self.given = [flat(array) for array in (width, middle, ends, pull, pull_at, nature)]
        self.cells, self.components = len(width), len(nature)
        self.width, self.middle = numbers_of(self.given[0]), numbers_of(self.given[1])
        self.ends, self.nature = numbers_of(self.given[2]), numbers_of(self.given[5])
        self.pull, self.pull_at = numbers_of(self.given[3]), numbers_of(self.given[4])
        self.quantiles, self.experts = quantiles, experts
        self.at_centre, self.temperature, self.smooth = at_centre, temperature, smooth


class AdamRates:
    """Step of Adam, its two discounts, and the number that keeps its division safe."""

    def __init__(self, rate, first, second, safe):
        self.rate, self.first, self.second, self.safe = rate, first, second, safe


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


def crps_centres(n, width, mass, out):
    """CRPS of masses for an outcome in the middle of each cell."""
    crps_means(n, width, mass, out)
    for k in range(n):
        # half of the cell at the slope of its lower half, minus the mean over all of it
        out[k] -= width[k] * mass[k] / 12.0


def largest_gap(n, width, mass, other):
    """Largest absolute difference between the CRPS of masses and of others, over all outcomes."""
    gap = 0.0
    before = 0.0
    theirs = 0.0
    for k in range(n):
        a = 1.0 - before
        b = 1.0 - before - mass[k]
        c = 1.0 - theirs
        d = 1.0 - theirs - other[k]
        gap += width[k] * (a * a + a * b + b * b - c * c - c * d - d * d) / 3.0
        before += mass[k]
        theirs += other[k]
    most = fabs(gap)
    ahead = 0.0
    for k in range(n):
        after = ahead + mass[k] - other[k]
        if ahead * after < 0.0:
            most = max(most, fabs(gap + width[k] * ahead * ahead / (ahead - after)))
        gap += width[k] * (ahead + after)
        most = max(most, fabs(gap))
        ahead = after
    return most


def weighted_sum(n, weights, values):
    """Sum of values by weights, in their order."""
    total = 0.0
    for k in range(n):
        total += weights[k] * values[k]
    return total


def softmax(n, log_masses, pull, middle, out):
    """Masses in proportion to exp(log_masses); returns the means of `pull` and `middle` under them."""
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


def regret_weights(n, experts, width, middle, ends, p, mean, expert_crps):
    """Weights of the CRPS and the squared error in the field, of the experts' means and of their squared means.

    Cumulative regrets count in the units of this forecast. The experts' CRPS, weighted, goes to `expert_crps`.
    """
    crps = 0.0
    mse = 0.0
    expert_mean = 0.0
    expert_square = 0.0
    count = experts.count
    for k in range(n):
        expert_crps[k] = 0.0
    for e in range(count):
        masses = cut(experts.masses, e * n, n)
        scores = cut(experts.crps, e * n, n)
        if experts.owed[e] != 0.0:
            gap = largest_gap(n, width, p, masses)
            one = experts.owed[e] / max(experts.usual[e], gap)
            crps += one
            for k in range(n):
                expert_crps[k] += one * scores[k]
        if experts.owed[count + e] != 0.0:
            theirs = weighted_sum(n, masses, middle)
            low = fabs((mean - theirs) * (mean + theirs - 2.0 * ends[0]))
            high = fabs((mean - theirs) * (mean + theirs - 2.0 * ends[1]))
            one = experts.owed[count + e] / max(experts.usual[count + e], low, high)
            mse += one
            expert_mean += one * theirs
            expert_square += one * theirs * theirs
    return crps, mse, expert_mean, expert_square


def add_crps_field(n, width, at_centre, p, factor, expert_crps, score, field):
    """Add the excess CRPS over the experts; `score` is scratch."""
    if at_centre:
        crps_centres(n, width, p, score)
    else:
        crps_means(n, width, p, score)
    for k in range(n):
        field[k] += factor * score[k] - expert_crps[k]


def add_mse_field(n, middle, mean, mse, expert_mean, expert_square, field):
    """Add the excess squared error over the experts."""
    for k in range(n):
        own = mse * (mean * mean - 2.0 * mean * middle[k])
        field[k] += own - expert_square + 2.0 * expert_mean * middle[k]


def quantile_field(n, quantiles, smooth, p, part, slope, field):
    """Add the quantiles' part of the field, (H(F_k) - H(F_{k-1})) / p_k.

    The gradient is that of `part` and of `slope`, h at the edges; with `smooth` both are those of spread levels.
    """
    before = 0.0
    height = 0.0
    smooth_height = 0.0
    j = 0
    i = 0
    slope[0] = quantiles.values[0] if smooth else quantiles.slopes[0]
    for k in range(n):
        after = before + p[k] if k < n - 1 else 1.0
        j_before = j
        while j < quantiles.count and quantiles.levels[j] <= after:
            j += 1
        new = quantiles.knots[j] + quantiles.slopes[j] * (after - (quantiles.levels[j - 1] if j > 0 else 0.0))
        # a cell without a level takes the slope itself: differences of H over a tiny mass are rounding errors
        part[k] = (new - height) / p[k] if j > j_before and p[k] > TINY_MASS else quantiles.slopes[j]
        field[k] += part[k]
        height = new
        before = after
        if not smooth:
            slope[k + 1] = quantiles.slopes[j]
            continue
        i_before = i
        while i < quantiles.nodes - 2 and quantiles.places[i + 1] < after:
            i += 1
        into = after - quantiles.places[i]
        wide = quantiles.places[i + 1] - quantiles.places[i]
        tilt = (quantiles.values[i + 1] - quantiles.values[i]) / wide if wide > 0.0 else 0.0
        slope[k + 1] = quantiles.values[i] + tilt * into
        new = quantiles.heights[i] + into * (quantiles.values[i] + 0.5 * tilt * into)
        if i > i_before and p[k] > TINY_MASS:
            part[k] = (new - smooth_height) / p[k]
        else:
            part[k] = 0.5 * (slope[k] + slope[k + 1])
        smooth_height = new


def worst_case(n, nature, components, field, reach):
    """Largest value of the adversary's components, those in `reach`; without components that of the cells."""
    worst = -INF
    if components == 0:
        for k in range(n):
            worst = max(worst, field[k])
    for c in range(components):
        reach[c] = weighted_sum(n, cut(nature, c * n, n), field)
        worst = max(worst, reach[c])
    return worst


def cell_weights(n, nature, components, field, reach, temperature, out):
    """Weights of the adversary on the cells."""
    if components == 0:
        weigh(n, field, temperature, out)
        return
    weigh(components, reach, temperature, reach)
    for k in range(n):
        out[k] = 0.0
        for c in range(components):
            out[k] += reach[c] * nature[c * n + k]


def add_quantile_gradient(n, p, weights, part, slope, by_edge):
    """Add the derivatives of the quantiles' part by the edges F_1, ..., F_{n-1}."""
    for k in range(n):
        if weights[k] != 0.0:
            inverse = weights[k] / max(p[k], TINY_MASS)
            by_edge[k + 1] += inverse * (slope[k + 1] - part[k])
            by_edge[k] += inverse * (part[k] - slope[k])


def add_crps_gradient(n, width, at_centre, p, weights, factor, by_edge):
    """Add the derivatives of the CRPS by the edges."""
    # C = lowest + w (F_0 + p / 4 - 1/2) in the middle of a cell, p / 3 on average over it
    lower = 0.75 if at_centre else 2.0 / 3.0
    upper = 0.25 if at_centre else 1.0 / 3.0
    above = 0.0
    for k in range(n - 1, -1, -1):
        # `above` is the weight of the cells above k
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


def log_mass_gradient(n, pull, middle, p, mean, mse, weights, by_edge, out):
    """Gradient by the log masses, from that by the edges and the linear and quadratic parts of the field."""
    target = weighted_sum(n, weights, middle) if mse != 0.0 else 0.0
    carried = 0.0
    average = 0.0
    for k in range(n - 1, -1, -1):
        # F_n = 1 is fixed
        if k < n - 1:
            carried += by_edge[k + 1]
        out[k] = carried + pull[k] + 2.0 * mse * (mean - target) * middle[k]
        average += p[k] * out[k]
    for k in range(n):
        out[k] = p[k] * (out[k] - average)


def adam_step(n, adam, first_left, second_left, gradient, first, second, parameters):
    """One step of Adam; `first_left` and `second_left` are the powers of its discounts so far."""
    for k in range(n):
        g = gradient[k]
        first[k] += (1.0 - adam.first) * (g - first[k])
        second[k] += (1.0 - adam.second) * (g * g - second[k])
        size = sqrt(second[k] / (1.0 - second_left)) + adam.safe
        parameters[k] -= adam.rate * (first[k] / (1.0 - first_left)) / size


def descend(problem, log_masses, adam, steps, best, w):
    """Adam from log masses, in place, on the worst case; leaves the best masses in `best`, returns their value.

    Stops as soon as the worst case is at most zero.
    """
    n = problem.cells
    components = problem.components
    levels = problem.quantiles.count
    experts = problem.experts.count
    m = mark(w)
    p = take(w, n)
    field = take(w, n)
    part = take(w, n)
    weights = take(w, n)
    gradient = take(w, n)
    slope = take(w, n + 1)
    by_edge = take(w, n + 1)
    expert_crps = take(w, n)
    first = take(w, n)
    second = take(w, n)
    reach = take(w, components)
    for k in range(n):
        first[k] = 0.0
        second[k] = 0.0
    crps = 0.0
    mse = 0.0
    expert_mean = 0.0
    expert_square = 0.0
    found = INF
    first_left = 1.0
    second_left = 1.0
    for step in range(steps + 1):
        expected, mean = softmax(n, log_masses, problem.pull, problem.middle, p)
        for k in range(n):
            field[k] = expected - problem.pull_at[k]
        if experts > 0:
            crps, mse, expert_mean, expert_square = regret_weights(
                n, problem.experts, problem.width, problem.middle, problem.ends, p, mean, expert_crps
            )
        if crps != 0.0:
            add_crps_field(n, problem.width, problem.at_centre, p, crps, expert_crps, gradient, field)
        if mse != 0.0:
            add_mse_field(n, problem.middle, mean, mse, expert_mean, expert_square, field)
        if levels > 0:
            quantile_field(n, problem.quantiles, problem.smooth, p, part, slope, field)
        worst = worst_case(n, problem.nature, components, field, reach)
        if worst < found:
            found = worst
            for k in range(n):
                best[k] = p[k]
        if found <= 0.0 or step == steps:
            break
        cell_weights(n, problem.nature, components, field, reach, problem.temperature, weights)
        for k in range(n + 1):
            by_edge[k] = 0.0
        if levels > 0:
            add_quantile_gradient(n, p, weights, part, slope, by_edge)
        if crps != 0.0:
            add_crps_gradient(n, problem.width, problem.at_centre, p, weights, crps, by_edge)
        log_mass_gradient(n, problem.pull, problem.middle, p, mean, mse, weights, by_edge, gradient)
        first_left *= adam.first
        second_left *= adam.second
        adam_step(n, adam, first_left, second_left, gradient, first, second, log_masses)
    release(w, m)
    return found


def weigh(n, values, temperature, out):
    """Weights that are all on the largest value, or a softmax at a temperature; `out` may be `values`."""
    top = values[0]
    least = values[0]
    for k in range(1, n):
        top = max(top, values[k])
        least = min(least, values[k])
    if temperature <= 0.0:
        # the first of those that differ by rounding only; the last one if the values are not finite
        enough = top - TIED * (top - least)
        at = n - 1
        for k in range(n - 1, -1, -1):
            if values[k] >= enough:
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


# --- entries for Python code
def search(problem: OrcaProblem, log_masses, adam: AdamRates, steps):
    """Best masses that Adam finds from log masses, and their worst case."""
    start, best = np.array(log_masses, dtype=np.float64), np.empty(problem.cells)
    w = workspace()
    parameters, masses = numbers_of(start), numbers_of(best)
    with cython.nogil:
        found = descend(problem, parameters, adam, steps, masses, w)
    return best, found


def choose(values, temperature):
    """Weights on the largest of some values, or a softmax at a temperature."""
    weights = np.array(values, dtype=np.float64)
    row = numbers_of(weights)
    weigh(len(weights), row, temperature, row)
    return weights


def cell_crps(width, mass, at_centre):
    """CRPS of masses in each cell: in its middle or the mean over it."""
    width, mass, out = flat(width), flat(mass), np.empty(len(width))
    widths, masses, scores = numbers_of(width), numbers_of(mass), numbers_of(out)
    if at_centre:
        crps_centres(len(out), widths, masses, scores)
    else:
        crps_means(len(out), widths, masses, scores)
    return out
