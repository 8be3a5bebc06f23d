"""Compiled kernels of the certificate: the worst that an outcome can do, over every point of every cell.

Within a cell quantiles and intervals are constant, moments are polynomials in y, regrets in CRPS quadratic and regrets
in squared error linear; of any other witness the extremes are known.  So what an outcome adds to ||S||_+^2 is, cell
by cell, a constant, a polynomial, and the square of the positive part of a quadratic for each regret:

    2 <owed, payoff> + ||payoff||^2,    and for a regret z with the sum s  (s + r z)_+^2 - s_+^2

Its maximum is found by branch and bound on the Bernstein form, which bounds a polynomial by its coefficients.  Only
cells that may hold the maximum are looked at: the sum of the maxima of the coordinates, each at a point of its own,
says which.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orcast.constants import TINY_MASS
from orcast.engine.kernels.equilibrium import crps_difference, level_share
from orcast.engine.kernels.records import Array, CellRow, RegretScore, RoundInfo, WitnessRow
from orcast.jit import kernel, kernel_part

# Parts of a cell that are looked at, and the error that is small enough, relative to the numbers involved.
MOST_PARTS, EXACT = 64, 1e-9


class CellFunction(NamedTuple):
    """What an outcome adds in a cell, as a function of its place in it, from 0 to 1."""

    poly: Array  # coefficients of what is a polynomial, by powers
    gaps: Array  # for each regret: the coefficients of (s + r z), a quadratic
    standing: Array  # and s_+^2
    regrets: Array  # one number: how many there are
    part: Array  # scratch: the coefficients on a part of the cell
    bernstein: Array
    stack: Array
    powers: Array


@kernel
def regret_standing(layout, total, context, discount, standing, reach):
    """For each coordinate of the core that one group of one regret alone uses: its sum s and what multiplies it, r.

    Elsewhere s is nan: there the positive part of a sum is not used.
    """
    for i in range(standing.shape[0]):
        standing[i] = np.nan
        reach[i] = 0.0
    for part in range(layout.parts.shape[0]):
        start, size, groups, places, at, one_sided = layout.parts[part]
        if one_sided == 0:
            continue
        for group in range(groups):
            c = context[at + group]
            if c == 0.0:
                continue
            for i in range(size):
                place = layout.places[places + i]
                if reach[place] == 0.0:
                    standing[place] = discount * total[start + group * size + i]
                    reach[place] = layout.scale[part] * c
                else:
                    standing[place] = np.nan


@kernel_part
def gain(s, r, z):
    """(s + r z)_+^2 - s_+^2."""
    after = max(s + r * z, 0.0)
    before = max(s, 0.0)
    return after * after - before * before


@kernel_part
def bound_quantiles(rules, n, p, workspace, linear, norm):
    """What quantiles and intervals add in each cell: levels below it by prefix, above it by suffix, a walk between."""
    levels, factors = rules.levels, workspace.factors
    count = levels.shape[0]
    suffix = 0.0
    for i in range(count):
        suffix += factors[i] * (1.0 - levels[i]) * (1.0 - levels[i])
    prefix = 0.0
    first = 0
    seg = 0
    before = 0.0
    height = 0.0
    for k in range(n):
        after = before + p[k] if k < n - 1 else 1.0
        while seg < count and levels[seg] <= after:
            seg += 1
        next_height = workspace.owed_knots[seg] + workspace.owed_slopes[seg] * (
            after - (levels[seg - 1] if seg > 0 else 0.0)
        )
        square = prefix
        i = first
        if p[k] > TINY_MASS:
            v = (next_height - height) / p[k]
            while i < count and levels[i] < after:
                a = levels[i]
                z = (a - before) / p[k] - a if a > before else -a
                square += factors[i] * z * z
                suffix -= factors[i] * (1.0 - a) * (1.0 - a)
                prefix += factors[i] * a * a
                i += 1
        else:
            # The limit: levels at or above F count as 1 - a, as in level_share.
            while i < count and levels[i] < before:
                suffix -= factors[i] * (1.0 - levels[i]) * (1.0 - levels[i])
                prefix += factors[i] * levels[i] * levels[i]
                i += 1
            square = prefix
            v = workspace.owed_slopes[i]
        first = i
        norm[k] = square + suffix
        for i in range(rules.intervals.shape[0]):
            a, b = levels[rules.intervals[i, 0]], levels[rules.intervals[i, 1]]
            z = level_share(b, before, p[k]) - level_share(a, before, p[k]) - (b - a)
            norm[k] += factors[count + i] * z * z
        linear[k] = 2.0 * v + norm[k]
        before = after
        height = next_height


@kernel_part
def add_extremes(s, f, a, b, k, linear, norm):
    """The largest s z + f z^2 and f z^2 of a coordinate z that reaches from a to b in cell k; s: twice what is owed."""
    linear[k] += max((s + f * a) * a, (s + f * b) * b)
    norm[k] += f * max(a * a, b * b)


@kernel_part
def add_regret(owed, f, s, r, a, b, k, linear, norm):
    """The same for a regret."""
    if np.isnan(s):
        add_extremes(2.0 * owed, f, a, b, k, linear, norm)
    else:
        linear[k] += max(gain(s, r, a), gain(s, r, b))
        norm[k] += f * max(a * a, b * b)


@kernel_part
def bound_witnesses(first, last, offset, n, workspace, expected, linear, norm):
    """What some witnesses add in each cell at most."""
    witness = workspace.witness
    for i in range(first, last):
        s, f = 2.0 * workspace.owed[offset + i], workspace.factors[offset + i]
        for k in range(n):
            least = expected[i] - witness[WitnessRow.LARGEST, i, k]
            most = expected[i] - witness[WitnessRow.LEAST, i, k]
            add_extremes(s, f, least, most, k, linear, norm)


@kernel_part
def bound_crps_regrets(n, round, p, at, workspace, linear, norm):
    """What regrets in CRPS add in each cell, where the difference of two scores is quadratic."""
    left, right = round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT]
    for e in range(round.rivals.shape[0]):
        expert, unit = round.rivals[e], round.units[RegretScore.CRPS, e]
        if unit == 0.0:
            continue
        # at the lowest outcome every cell lies above it
        gap = crps_difference(left[0], 0, n, left, right, p, expert)
        before = 0.0
        before_x = 0.0
        gaps, owed, f = workspace.gaps, workspace.owed[at + e], workspace.factors[at + e]
        s, r = workspace.standing[at + e], workspace.reach[at + e]
        for k in range(n):
            width = right[k] - left[k]
            slope_a = 2.0 * (before - before_x)
            slope_b = slope_a + 2.0 * (p[k] - expert[k])
            gap_b = gap + 0.5 * width * (slope_a + slope_b)
            top = max(gap, gap_b)
            bottom = min(gap, gap_b)
            if slope_a * slope_b < 0.0:
                vertex = gap + 0.5 * width * slope_a * slope_a / (slope_a - slope_b)
                top = max(top, vertex)
                bottom = min(bottom, vertex)
            gaps[e, k] = gap
            add_regret(owed, f, s, r, unit * top, unit * bottom, k, linear, norm)
            gap = gap_b
            before = before + p[k] if k < n - 1 else 1.0
            before_x += expert[k]


@kernel_part
def bound_mse_regrets(n, round, p, at, workspace, linear, norm):
    """What regrets in squared error add in each cell, where the difference of two is linear."""
    left, right = round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT]
    low, span = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] - round.info[RoundInfo.LOW]
    for e in range(round.rivals.shape[0]):
        if round.units[RegretScore.MSE, e] == 0.0:
            continue
        mean_p = 0.0
        mean_x = 0.0
        expert = round.rivals[e]
        for k in range(n):
            middle = (0.5 * (left[k] + right[k]) - low) / span
            mean_p += p[k] * middle
            mean_x += expert[k] * middle
        c = round.units[RegretScore.MSE, e] * (mean_p - mean_x)
        workspace.means[e, 0] = c
        workspace.means[e, 1] = mean_p + mean_x
        owed, f = workspace.owed[at + e], workspace.factors[at + e]
        s, r = workspace.standing[at + e], workspace.reach[at + e]
        for k in range(n):
            a = c * (mean_p + mean_x - 2.0 * ((left[k] - low) / span))
            b = c * (mean_p + mean_x - 2.0 * ((right[k] - low) / span))
            add_regret(owed, f, s, r, a, b, k, linear, norm)


# --- the maximum of the sum


@kernel_part
def add_square(poly, z, size, s, f):
    """Add s z + f z^2 to a polynomial, for a polynomial z with so many coefficients."""
    for i in range(size):
        poly[i] += s * z[i]
        for j in range(size):
            poly[i + j] += f * z[i] * z[j]


@kernel
def add_moments(rules, at, expected, a, b, workspace, linear, square, function):
    """Add `linear` <owed, z> + `square` ||z||^2 for the moments z between a and b, in units of the window."""
    orders = rules.orders
    power, z = function.powers[0], function.powers[1]
    for i in range(orders + 1):
        power[i] = 0.0
    power[0] = 1.0
    for order in range(1, orders + 1):
        # (a + (b - a) t)^order from the one before
        for i in range(order, 0, -1):
            power[i] = a * power[i] + (b - a) * power[i - 1]
        power[0] *= a
        for i in range(order + 1):
            z[i] = -power[i]
        z[0] += expected[order - 1]
        s, f = linear * workspace.owed[at + order - 1], square * workspace.factors[at + order - 1]
        add_square(function.poly, z, order + 1, s, f)


@kernel
def put_regret(workspace, i, z0, z1, z2, linear, square, function):
    """What a regret adds that is z0 + z1 t + z2 t^2 in the cell."""
    z = function.powers[1]
    z[0], z[1], z[2] = z0, z1, z2
    s, r = workspace.standing[i], workspace.reach[i]
    if square == 0.0 or np.isnan(s):
        add_square(function.poly, z, 3, linear * workspace.owed[i], square * workspace.factors[i])
        return
    e = int(function.regrets[0])
    function.gaps[e, 0] = s + r * z0
    function.gaps[e, 1] = r * z1
    function.gaps[e, 2] = r * z2
    function.standing[e] = max(s, 0.0) * max(s, 0.0)
    function.regrets[0] += 1.0


@kernel
def cell_function(rules, k, round, p, workspace, linear, square, function):
    """`linear` <owed, payoff> + `square` ||payoff||^2 in cell k, but for what is constant there.

    With 2 and 1 that is what an outcome adds; regrets count through their positive parts, unless `square` is 0.
    """
    left, right = round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT]
    low, span = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] - round.info[RoundInfo.LOW]
    for i in range(function.poly.shape[0]):
        function.poly[i] = 0.0
    function.regrets[0] = 0.0
    a = (left[k] - low) / span
    b = (right[k] - low) / span
    at = rules.levels.shape[0] + rules.intervals.shape[0]
    add_moments(rules, at, round.expected, a, b, workspace, linear, square, function)
    at += rules.witnesses
    experts = round.rivals.shape[0]
    if rules.crps:
        width = right[k] - left[k]
        for e in range(experts):
            unit = round.units[RegretScore.CRPS, e]
            if unit > 0.0:
                slope_a = 0.0
                for j in range(k):
                    slope_a += 2.0 * (p[j] - round.rivals[e, j])
                change = 2.0 * (p[k] - round.rivals[e, k])
                put_regret(
                    workspace,
                    at + e,
                    unit * workspace.gaps[e, k],
                    unit * width * slope_a,
                    unit * width * 0.5 * change,
                    linear,
                    square,
                    function,
                )
        at += experts
    if rules.mse:
        for e in range(experts):
            if round.units[RegretScore.MSE, e] > 0.0:
                c, means = workspace.means[e, 0], workspace.means[e, 1]
                put_regret(workspace, at + e, c * (means - 2.0 * a), -2.0 * c * (b - a), 0.0, linear, square, function)


@kernel
def value_at(function, t):
    """The function at a place."""
    value = 0.0
    for i in range(function.poly.shape[0] - 1, -1, -1):
        value = value * t + function.poly[i]
    for e in range(int(function.regrets[0])):
        z = function.gaps[e, 0] + t * (function.gaps[e, 1] + t * function.gaps[e, 2])
        value += max(z, 0.0) * max(z, 0.0) - function.standing[e]
    return value


@kernel
def most_on_part(function, a, b):
    """An upper bound of the function between a and b; it is exact in the limit of short parts."""
    size, width = function.poly.shape[0], b - a
    part, bernstein = function.part, function.bernstein
    # around a, in units of the part: Horner's scheme for all derivatives
    for i in range(size):
        part[i] = function.poly[i]
    flat = 0.0
    for e in range(int(function.regrets[0])):
        z0 = function.gaps[e, 0] + a * (function.gaps[e, 1] + a * function.gaps[e, 2])
        z1 = width * (function.gaps[e, 1] + 2.0 * a * function.gaps[e, 2])
        z2 = width * width * function.gaps[e, 2]
        # the three Bernstein coefficients of the quadratic
        top = max(z0, z0 + 0.5 * z1, z0 + z1 + z2)
        bottom = min(z0, z0 + 0.5 * z1, z0 + z1 + z2)
        if bottom >= 0.0:
            g0, g1, g2 = function.gaps[e, 0], function.gaps[e, 1], function.gaps[e, 2]
            part[0] += g0 * g0
            part[1] += 2.0 * g0 * g1
            part[2] += g1 * g1 + 2.0 * g0 * g2
            part[3] += 2.0 * g1 * g2
            part[4] += g2 * g2
        elif top > 0.0:
            flat += top * top
        flat -= function.standing[e]
    for i in range(size):
        for j in range(size - 2, i - 1, -1):
            part[j] += a * part[j + 1]
    scale = 1.0
    for i in range(size):
        part[i] *= scale
        scale *= width
    # de Casteljau's other direction: coefficients by powers to Bernstein's
    degree = size - 1
    most = -np.inf
    choose = 1.0
    for j in range(size):
        bernstein[j] = part[j] / choose
        choose *= (degree - j) / (j + 1.0)
    for i in range(size):
        for j in range(degree, i, -1):
            bernstein[j] += bernstein[j - 1]
    for i in range(size):
        most = max(most, bernstein[i])
    return most + flat


@kernel
def cell_maximum(function, floor):
    """An upper bound of the largest value in a cell, exact but for rounding; or some number below `floor`."""
    best = max(value_at(function, 0.0), value_at(function, 1.0))
    size = 0.0
    for i in range(function.poly.shape[0]):
        size += abs(function.poly[i])
    tolerance = EXACT * (size + abs(best))
    stack = function.stack
    stack[0, 0], stack[0, 1], stack[0, 2] = 0.0, 1.0, most_on_part(function, 0.0, 1.0)
    depth = 1
    result = best
    for _ in range(MOST_PARTS):
        if depth == 0:
            break
        depth -= 1
        a, b, most = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if most <= max(best + tolerance, floor):
            result = max(result, min(most, max(best + tolerance, floor)))
            continue
        middle = 0.5 * (a + b)
        best = max(best, value_at(function, middle))
        first, second = most_on_part(function, a, middle), most_on_part(function, middle, b)
        # the better half is looked at first
        if first > second:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = middle, b, second
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = a, middle, first
        else:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = a, middle, first
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = middle, b, second
        depth += 2
    for i in range(depth):
        result = max(result, stack[i, 2])
    return max(result, best)


@kernel
def largest(rules, n, round, p, workspace, flat, bounds):
    """The largest of flat + function over all cells, given upper bounds of it, cell by cell."""
    if rules.orders == 0 and round.rivals.shape[0] * (rules.crps + rules.mse) == 0:
        worst = bounds[0]
        for k in range(1, n):
            worst = max(worst, bounds[k])
        return worst
    first = 0
    for k in range(1, n):
        if bounds[k] > bounds[first]:
            first = k
    function = new_function(rules, round.rivals.shape[0])
    cell_function(rules, first, round, p, workspace, 2.0, 1.0, function)
    worst = min(flat[first] + cell_maximum(function, -np.inf), bounds[first])
    for k in range(n):
        if k != first and bounds[k] > worst:
            cell_function(rules, k, round, p, workspace, 2.0, 1.0, function)
            worst = max(worst, min(flat[k] + cell_maximum(function, worst - flat[k]), bounds[k]))
    return worst


@kernel_part
def bound_cells(rules, n, round, p, workspace):
    """What the worst outcome could do at most: the sum of the maxima of the coordinates, in the worst cell."""
    linear, norm, flat = workspace.by_cell
    bound_quantiles(rules, n, p, workspace, linear, norm)
    at = rules.levels.shape[0] + rules.intervals.shape[0]
    expected, witness = round.expected, workspace.witness
    for i in range(rules.witnesses):
        mean = 0.0
        for k in range(n):
            mean += p[k] * witness[WitnessRow.MEAN, i, k]
        expected[i] = mean
    bound_witnesses(rules.orders, rules.witnesses, at, n, workspace, expected, linear, norm)
    for k in range(n):
        flat[k] = linear[k]
    bound_witnesses(0, rules.orders, at, n, workspace, expected, linear, norm)
    at += rules.witnesses
    if rules.crps:
        bound_crps_regrets(n, round, p, at, workspace, linear, norm)
        at += round.rivals.shape[0]
    if rules.mse:
        bound_mse_regrets(n, round, p, at, workspace, linear, norm)
    worst = linear[0]
    bound = norm[0]
    for k in range(1, n):
        worst = max(worst, linear[k])
        bound = max(bound, norm[k])
    return worst, bound


@kernel_part
def certify(rules, n, round, p, workspace):
    """What the worst outcome could do: how much ||S||_+^2 can grow, and max ||payoff||^2.

    Where the sum of the maxima is within the slack already, it is good enough; else it is the maximum of the sum.
    """
    worst, bound = bound_cells(rules, n, round, p, workspace)
    if worst - bound > workspace.free:
        linear, _, flat = workspace.by_cell
        worst = largest(rules, n, round, p, workspace, flat, linear)
    return worst, bound


@kernel
def resolution(rules, n, round, p, workspace):
    """By how much <owed, payoff> at an outcome may exceed its mean over the cell, in the worst cell.

    The certificate of p was computed before.
    """
    function = new_function(rules, round.rivals.shape[0])
    first = rules.levels.shape[0] + rules.intervals.shape[0]
    most = 0.0
    for k in range(n):
        cell_function(rules, k, round, p, workspace, 1.0, 0.0, function)
        mean = 0.0
        for i in range(function.poly.shape[0]):
            mean += function.poly[i] / (i + 1.0)
        other = 0.0
        for i in range(rules.orders, rules.witnesses):
            owed = workspace.owed[first + i]
            least = workspace.witness[WitnessRow.LEAST if owed > 0.0 else WitnessRow.LARGEST, i, k]
            other += owed * (workspace.witness[WitnessRow.MEAN, i, k] - least)
        most = max(most, cell_maximum(function, -np.inf) - mean + other)
    return most


@kernel
def new_function(rules, rivals):
    """Scratch for what an outcome adds in a cell."""
    regrets = rivals * (rules.crps + rules.mse)
    size = 2 * rules.orders + 1
    if regrets > 0:
        size = max(size, 5)
    return CellFunction(
        np.empty(size),
        np.empty((regrets, 3)),
        np.empty(regrets),
        np.empty(1),
        np.empty(size),
        np.empty(size),
        np.empty((MOST_PARTS + 2, 3)),
        np.empty((2, max(rules.orders, 2) + 1)),
    )
