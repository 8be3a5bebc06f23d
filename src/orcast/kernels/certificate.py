"""Certificate of a forecast: the largest growth of ||S||_+^2 over every outcome in every cell.

Within a cell quantiles and intervals are constant, moments are polynomials in y, regrets in CRPS are quadratic and
regrets in squared error linear. So the growth is at most, and without regrets exactly, a polynomial cell by cell:

    2 <S_+, payoff> + ||payoff||^2

Branch and bound on the Bernstein form, which bounds a polynomial by its coefficients, finds the maximum. It runs only
in cells where the sum of the maxima of the coordinates, each at a point of its own, exceeds the best value so far.
"""

from orcast.constants import TINY_MASS

INF = float("inf")
# Largest number of parts of a cell that are bounded, and the accepted error, relative to the numbers involved.
MOST_PARTS, EXACT = 64, 1e-9


def bound_quantiles(rules, n, p, linear, norm, w):
    """Growth by quantiles and intervals in each cell, by sums over the levels below it and above it."""
    levels, factors = rules.levels, w.factors
    count = rules.level_count
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
        next_height = w.cumulative_knots[seg] + w.cumulative_slopes[seg] * (
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
            # the limit of an empty cell: levels at or above F count as 1 - a, as in level_share
            while i < count and levels[i] < before:
                suffix -= factors[i] * (1.0 - levels[i]) * (1.0 - levels[i])
                prefix += factors[i] * levels[i] * levels[i]
                i += 1
            square = prefix
            v = w.cumulative_slopes[i]
        first = i
        norm[k] = square + suffix
        bound_intervals(rules, k, before, p[k], norm, w)
        linear[k] = 2.0 * v + norm[k]
        before = after
        height = next_height


def bound_intervals(rules, k, before, mass, norm, w):
    """Add the squares of the intervals in cell k."""
    for i in range(rules.interval_count):
        a, b = rules.levels[rules.intervals[2 * i]], rules.levels[rules.intervals[2 * i + 1]]
        z = level_share(b, before, mass) - level_share(a, before, mass) - (b - a)
        norm[k] += w.factors[rules.level_count + i] * z * z


def add_extremes(s, f, a, b, k, linear, norm):
    """Add the largest s z + f z^2 and f z^2 of a coordinate z in [a, b] in cell k; s is twice its cumulative payoff."""
    linear[k] += max((s + f * a) * a, (s + f * b) * b)
    norm[k] += f * max(a * a, b * b)


def bound_moments(rules, offset, n, expected, linear, norm, w):
    """Add the extremes of the powers in each cell."""
    for i in range(rules.orders):
        s, f = 2.0 * w.cumulative[offset + i], w.factors[offset + i]
        for k in range(n):
            least = expected[i] - w.power_largest[i * rules.capacity + k]
            most = expected[i] - w.power_least[i * rules.capacity + k]
            add_extremes(s, f, least, most, k, linear, norm)


def bound_crps_regrets(rules, n, round, p, at, linear, norm, w):
    """Add the extremes of the regrets in CRPS in each cell, where the difference of two scores is quadratic."""
    left, right = round.left, round.right
    for e in range(rules.experts):
        expert, unit = cut(round.rivals, e * rules.capacity, rules.capacity), round.crps_units[e]
        if unit == 0.0:
            continue
        # at the lowest outcome every cell lies above it
        gap = crps_difference(left[0], 0, n, left, right, p, expert)
        before = 0.0
        before_x = 0.0
        s, f = 2.0 * w.cumulative[at + e], w.factors[at + e]
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
            w.gaps[e * rules.capacity + k] = gap
            add_extremes(s, f, unit * top, unit * bottom, k, linear, norm)
            gap = gap_b
            before = before + p[k] if k < n - 1 else 1.0
            before_x += expert[k]


def bound_mse_regrets(rules, n, round, p, at, linear, norm, w):
    """Add the extremes of the regrets in squared error in each cell, where the difference of two scores is linear."""
    left, right = round.left, round.right
    low, span = round.info.low, round.info.high - round.info.low
    for e in range(rules.experts):
        if round.mse_units[e] == 0.0:
            continue
        expert = cut(round.rivals, e * rules.capacity, rules.capacity)
        mean_p, mean_x = means_of(round, n, p, expert)
        c = round.mse_units[e] * (mean_p - mean_x)
        w.regret_means[2 * e] = c
        w.regret_means[2 * e + 1] = mean_p + mean_x
        s, f = 2.0 * w.cumulative[at + e], w.factors[at + e]
        for k in range(n):
            a = c * (mean_p + mean_x - 2.0 * ((left[k] - low) / span))
            b = c * (mean_p + mean_x - 2.0 * ((right[k] - low) / span))
            add_extremes(s, f, a, b, k, linear, norm)


# --- the maximum of the sum


def add_square(poly, z, size, s, f):
    """Add s z + f z^2 to a polynomial, for a polynomial z with `size` coefficients."""
    for i in range(size):
        poly[i] += s * z[i]
        for j in range(size):
            poly[i + j] += f * z[i] * z[j]


def add_moments(rules, at, expected, a, b, linear, square, w):
    """Add `linear` <S_+, z> + `square` ||z||^2 for the moments z between a and b, in units of the window."""
    orders, power, z = rules.orders, w.powers, w.z
    for i in range(orders + 1):
        power[i] = 0.0
    power[0] = 1.0
    for order in range(1, orders + 1):
        # (a + (b - a) t)^order from the order before
        for i in range(order, 0, -1):
            power[i] = a * power[i] + (b - a) * power[i - 1]
        power[0] *= a
        for i in range(order + 1):
            z[i] = -power[i]
        z[0] += expected[order - 1]
        s, f = linear * w.cumulative[at + order - 1], square * w.factors[at + order - 1]
        add_square(w.poly, z, order + 1, s, f)


def add_regret(i, z0, z1, z2, linear, square, w):
    """Add a regret that is z0 + z1 t + z2 t^2 in the cell; i is its coordinate."""
    w.z[0], w.z[1], w.z[2] = z0, z1, z2
    add_square(w.poly, w.z, 3, linear * w.cumulative[i], square * w.factors[i])


def cell_function(rules, k, round, p, linear, square, w):
    """Set `linear` <S_+, payoff> + `square` ||payoff||^2 by the place in cell k, 0 to 1, but for constant terms."""
    left, right = round.left, round.right
    low, span = round.info.low, round.info.high - round.info.low
    for i in range(w.poly_size):
        w.poly[i] = 0.0
    a = (left[k] - low) / span
    b = (right[k] - low) / span
    at = rules.level_count + rules.interval_count
    add_moments(rules, at, round.expected, a, b, linear, square, w)
    at += rules.orders
    if rules.crps:
        width = right[k] - left[k]
        for e in range(rules.experts):
            unit = round.crps_units[e]
            if unit > 0.0:
                expert = cut(round.rivals, e * rules.capacity, rules.capacity)
                slope_a = 0.0
                for j in range(k):
                    slope_a += 2.0 * (p[j] - expert[j])
                change = 2.0 * (p[k] - expert[k])
                z0 = unit * w.gaps[e * rules.capacity + k]
                add_regret(at + e, z0, unit * width * slope_a, unit * width * 0.5 * change, linear, square, w)
        at += rules.experts
    if rules.mse:
        for e in range(rules.experts):
            if round.mse_units[e] > 0.0:
                c, means = w.regret_means[2 * e], w.regret_means[2 * e + 1]
                add_regret(at + e, c * (means - 2.0 * a), -2.0 * c * (b - a), 0.0, linear, square, w)


def value_at(t, w):
    """Value of the function at a place in the cell."""
    value = 0.0
    for i in range(w.poly_size - 1, -1, -1):
        value = value * t + w.poly[i]
    return value


def most_on_part(a, b, w):
    """Upper bound of the function between a and b; exact in the limit of short parts."""
    size, width = w.poly_size, b - a
    part, bernstein = w.part, w.bernstein
    # around a, in units of the part: Horner's scheme for all derivatives
    copy(w.poly, size, part)
    for i in range(size):
        for j in range(size - 2, i - 1, -1):
            part[j] += a * part[j + 1]
    scale = 1.0
    for i in range(size):
        part[i] *= scale
        scale *= width
    # from coefficients of powers to Bernstein coefficients
    degree = size - 1
    most = -INF
    choose = 1.0
    for j in range(size):
        bernstein[j] = part[j] / choose
        choose *= (degree - j) / (j + 1.0)
    for i in range(size):
        for j in range(degree, i, -1):
            bernstein[j] += bernstein[j - 1]
    for i in range(size):
        most = max(most, bernstein[i])
    return most


def push(i, a, b, most, stack):
    """Set an entry of the stack: a part of the cell and the bound on it."""
    stack[3 * i] = a
    stack[3 * i + 1] = b
    stack[3 * i + 2] = most


def cell_maximum(floor, w):
    """Upper bound of the largest value in a cell, exact up to rounding; or any number below `floor`."""
    best = max(value_at(0.0, w), value_at(1.0, w))
    size = 0.0
    for i in range(w.poly_size):
        size += fabs(w.poly[i])
    tolerance = EXACT * (size + fabs(best))
    stack = w.stack
    push(0, 0.0, 1.0, most_on_part(0.0, 1.0, w), stack)
    depth = 1
    result = best
    for _ in range(MOST_PARTS):
        if depth == 0:
            break
        depth -= 1
        a, b, most = stack[3 * depth], stack[3 * depth + 1], stack[3 * depth + 2]
        if most <= max(best + tolerance, floor):
            result = max(result, min(most, max(best + tolerance, floor)))
            continue
        middle = 0.5 * (a + b)
        best = max(best, value_at(middle, w))
        first = most_on_part(a, middle, w)
        second = most_on_part(middle, b, w)
        # the half with the larger bound comes next
        if first > second:
            push(depth, middle, b, second, stack)
            push(depth + 1, a, middle, first, stack)
        else:
            push(depth, a, middle, first, stack)
            push(depth + 1, middle, b, second, stack)
        depth += 2
    for i in range(depth):
        result = max(result, stack[3 * i + 2])
    return max(result, best)


def largest(rules, n, round, p, flat, bounds, w):
    """Largest value of flat + function over all cells, given an upper bound of it for each cell."""
    first = 0
    for k in range(1, n):
        if bounds[k] > bounds[first]:
            first = k
    cell_function(rules, first, round, p, 2.0, 1.0, w)
    worst = min(flat[first] + cell_maximum(-INF, w), bounds[first])
    for k in range(n):
        if k != first and bounds[k] > worst:
            cell_function(rules, k, round, p, 2.0, 1.0, w)
            worst = max(worst, min(flat[k] + cell_maximum(worst - flat[k], w), bounds[k]))
    return worst


def bound_cells(rules, n, round, p, w):
    """Upper bound of the growth: the sum of the maxima of the coordinates in the worst cell; and max ||payoff||^2."""
    linear, norm, flat = w.linear, w.norm, w.flat
    bound_quantiles(rules, n, p, linear, norm, w)
    at = rules.level_count + rules.interval_count
    expected = round.expected
    for i in range(rules.orders):
        mean = 0.0
        for k in range(n):
            mean += p[k] * w.power_means[i * rules.capacity + k]
        expected[i] = mean
    copy(linear, n, flat)
    bound_moments(rules, at, n, expected, linear, norm, w)
    at += rules.orders
    if rules.crps:
        bound_crps_regrets(rules, n, round, p, at, linear, norm, w)
        at += rules.experts
    if rules.mse:
        bound_mse_regrets(rules, n, round, p, at, linear, norm, w)
    worst = linear[0]
    bound = norm[0]
    for k in range(1, n):
        worst = max(worst, linear[k])
        bound = max(bound, norm[k])
    return worst, bound


def certify(rules, n, round, p, w):
    """Largest growth of ||S||_+^2 over all outcomes, or a bound within the slack; and the largest ||payoff||^2."""
    worst, bound = bound_cells(rules, n, round, p, w)
    if worst - bound > w.free:
        worst = largest(rules, n, round, p, w.flat, w.linear, w)
    return worst, bound


def resolution(rules, n, round, p, w):
    """Largest <S_+, payoff> at an outcome minus its mean over the cell of the outcome; `certify` must run before."""
    most = 0.0
    for k in range(n):
        cell_function(rules, k, round, p, 1.0, 0.0, w)
        mean = 0.0
        for i in range(w.poly_size):
            mean += w.poly[i] / (i + 1.0)
        most = max(most, cell_maximum(-INF, w) - mean)
    return most


def new_function(orders, regrets, w):
    """Take scratch memory for the growth within a cell."""
    w.poly_size = 2 * orders + 1
    if regrets > 0:
        w.poly_size = max(w.poly_size, 5)
    w.poly, w.part, w.bernstein = take(w, w.poly_size), take(w, w.poly_size), take(w, w.poly_size)
    w.stack = take(w, 3 * (MOST_PARTS + 2))
    w.powers, w.z = take(w, max(orders, 2) + 1), take(w, max(orders, 2) + 1)
