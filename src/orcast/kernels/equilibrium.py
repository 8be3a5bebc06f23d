"""Logit equilibrium on ordered cells by Newton's method in O(cells), and the core payoff of an outcome.

The ledger gives the cumulative payoff `w.cumulative` of each coordinate of the core payoff (`state.Rules`), and the
factors `w.factors` of their squares (`ledger.combine`). Symbols follow the theory page: F are the cumulated masses, v
is the field <cumulative payoff, payoff> over the temperature.

With H(u) = sum_a s_a (min(u, a) - a u) the quantile field is v_k = (H(F_k) - H(F_{k-1})) / p_k: the mean of h = H' over
the cell's share of [0, 1].
"""

import math

from orcast.constants import MAX_STEP, MIN_SLOPE, SHRINK, TINY_MASS

INF = math.inf
# Lengths that are tried for a Newton step.
TRIES = 6


def field_tables(s, levels, count, knots, slopes):
    """Fill H at 0 and at the levels, and its slope h right of each, for cumulative payoffs s of the levels."""
    above = 0.0
    centre = 0.0
    for i in range(count):
        above += s[i]
        centre += s[i] * levels[i]
    height = 0.0
    at = 0.0
    for i in range(count):
        knots[i] = height
        slopes[i] = above - centre
        height += slopes[i] * (levels[i] - at)
        at = levels[i]
        above -= s[i]
    knots[count] = height
    slopes[count] = above - centre


def normalise(n, lp, w):
    """Fill `w.p` with exp(lp) up to a factor; return the log of their sum, and the factor that makes them masses."""
    top = lp[0]
    for k in range(1, n):
        top = max(top, lp[k])
    total = 0.0
    for k in range(n):
        w.p[k] = exp(lp[k] - top)
        total += w.p[k]
    return log(total) + top, 1.0 / total


def residual(n, lp, rules, w):
    """Normalise lp; fill masses, F, field, slopes at the edges and the centred residual; return its largest size."""
    shift, scale = normalise(n, lp, w)
    mean = 0.0
    if w.mse_pull != 0.0:
        for k in range(n):
            mean += w.p[k] * scale * w.middle[k]
    j = 0
    before = 0.0
    height = 0.0
    crps_left = 0.0
    r_mean = 0.0
    w.h[0] = w.slopes[0]
    for k in range(n):
        lp[k] -= shift
        w.p[k] *= scale
        after = before + w.p[k] if k < n - 1 else 1.0
        w.F[k] = after
        while j < rules.level_count and rules.levels[j] <= after:
            j += 1
        next_height = w.knots[j] + w.slopes[j] * (after - (rules.levels[j - 1] if j > 0 else 0.0))
        w.h[k + 1] = w.slopes[j]
        w.v[k] = (next_height - height) / w.p[k] if w.p[k] > TINY_MASS else 0.5 * (w.h[k] + w.h[k + 1])
        value = lp[k] - w.base[k] - w.v[k]
        if w.crps_pull != 0.0:
            value -= w.crps_pull * (crps_left + w.width[k] * (before + w.p[k] / 3.0 - 0.5))
            crps_left += w.width[k] * (2.0 * before + w.p[k] - 1.0)
        if w.mse_pull != 0.0:
            value += 2.0 * w.mse_pull * mean * w.middle[k]
        w.r[k] = value
        r_mean += w.p[k] * value
        before = after
        height = next_height
    worst = 0.0
    for k in range(n):
        w.r[k] -= r_mean
        worst = max(worst, fabs(w.r[k]))
    return worst


def reciprocal(x):
    """1 / x; inf at 0, where a division raises an error in uncompiled code."""
    return 1.0 / x if x != 0.0 else INF


def sweep(n, w):
    """Solve the tridiagonal system for the residual (`w.d`) and for the mean (`w.e`) by Thomas's algorithm."""
    inv = 1.0 / max(w.p[0], TINY_MASS)
    a = max(1.0 - (w.h[1] - w.v[0]), MIN_SLOPE) * inv
    b = 0.0
    for k in range(n - 1):
        inv = 1.0 / max(w.p[k + 1], TINY_MASS)
        a_next = max(1.0 - (w.h[k + 2] - w.v[k + 1]), MIN_SLOPE) * inv
        b_next = max(1.0 + (w.v[k + 1] - w.h[k + 1]), MIN_SLOPE) * inv
        below = -b
        diagonal = a + b_next
        above = -a_next
        if w.crps_pull != 0.0:
            below += w.crps_pull * w.width[k] / 3.0
            diagonal += w.crps_pull * (w.width[k] + w.width[k + 1]) * (2.0 / 3.0)
            above += w.crps_pull * w.width[k + 1] / 3.0
        slope = w.middle[k + 1] - w.middle[k]
        if k == 0:
            pivot = 1.0 / diagonal
            w.d[k] = (w.r[k + 1] - w.r[k]) * pivot
            w.e[k] = slope * pivot
        else:
            pivot = reciprocal(diagonal - below * w.upper[k - 1])
            w.d[k] = (w.r[k + 1] - w.r[k] - below * w.d[k - 1]) * pivot
            w.e[k] = (slope - below * w.e[k - 1]) * pivot
        w.upper[k] = above * pivot
        a = a_next
        b = b_next
    for k in range(n - 3, -1, -1):
        w.d[k] -= w.upper[k] * w.d[k + 1]
        w.e[k] -= w.upper[k] * w.e[k + 1]


def newton_step(n, w):
    """Fill `w.e` with the Newton step in log masses, limited: tridiagonal in F, and rank one for squared error."""
    sweep(n, w)
    if w.mse_pull != 0.0:
        along_d = 0.0
        along_e = 0.0
        for k in range(n - 1):
            slope = w.middle[k + 1] - w.middle[k]
            along_d += slope * w.d[k]
            along_e += slope * w.e[k]
        factor = 2.0 * w.mse_pull * along_d / (1.0 + 2.0 * w.mse_pull * along_e)
        for k in range(n - 1):
            w.d[k] -= factor * w.e[k]
    # From a step in F to one in log p, limited.
    last = 0.0
    for k in range(n):
        change = w.d[k] if k < n - 1 else 0.0
        w.e[k] = min(max((change - last) / max(w.p[k], TINY_MASS), -MAX_STEP), MAX_STEP)
        last = change


def solve(n, lp, rules, tolerance, steps, w):
    """Solve log p = base + field(p) + const by damped Newton from lp, in place; return the residual."""
    new = 0.0
    size = residual(n, lp, rules, w)
    for _ in range(steps):
        if size <= tolerance or n < 2:
            break
        newton_step(n, w)
        for k in range(n):
            w.start[k] = lp[k]
        length = 1.0
        improved = False
        for _ in range(TRIES):
            for k in range(n):
                lp[k] = w.start[k] + length * w.e[k]
            new = residual(n, lp, rules, w)
            if new < size:
                improved = True
                break
            length *= SHRINK
        if not improved:
            for k in range(n):
                lp[k] = w.start[k]
            size = residual(n, lp, rules, w)
            break
        size = new
    return size


def level_share(a, before, mass):
    """Mean of the indicator {y <= q_a} over a cell."""
    if mass <= TINY_MASS:
        # the limit of an empty cell
        return 1.0 if a >= before else 0.0
    return min(max((a - before) / mass, 0.0), 1.0)


def power_table(rules, low, high, n, left, right, w):
    """Mean, least and largest value of each power of the outcome, in units of the window, in each cell."""
    span = high - low
    for order in range(1, rules.orders + 1):
        row = (order - 1) * rules.capacity
        for k in range(n):
            a = (left[k] - low) / span
            b = (right[k] - low) / span
            w.power_means[row + k] = power_mean(a, b, order)
            w.power_least[row + k] = power(a, order)
            w.power_largest[row + k] = power(b, order)


def payoff(rules, round, y, k, out):
    """Fill the core payoff of the forecast for the outcome y in cell k."""
    before = 0.0
    for j in range(k):
        before += round.result[j]
    for i in range(rules.level_count):
        out[i] = level_share(rules.levels[i], before, round.result[k]) - rules.levels[i]
    coordinate = rules.level_count
    for i in range(rules.interval_count):
        out[coordinate] = out[rules.intervals[2 * i + 1]] - out[rules.intervals[2 * i]]
        coordinate += 1
    t = (y - round.info.low) / (round.info.high - round.info.low)
    for i in range(rules.orders):
        out[coordinate] = round.expected[i] - power(t, i + 1)
        coordinate += 1
    regret_payoff(rules, round, y, k, cut(out, coordinate, (rules.crps + rules.mse) * rules.experts))


def regret_payoff(rules, round, y, k, out):
    """Fill the regrets for the outcome y in cell k: the CRPS of each expert, then its squared error."""
    n = cell_count(round)
    coordinate = 0
    if rules.crps:
        for e in range(rules.experts):
            out[coordinate] = 0.0
            if round.crps_units[e] > 0.0:
                expert = cut(round.rivals, e * rules.capacity, rules.capacity)
                gap = crps_difference(y, k, n, round.left, round.right, round.result, expert)
                out[coordinate] = round.crps_units[e] * gap
            coordinate += 1
    if rules.mse:
        t = (y - round.info.low) / (round.info.high - round.info.low)
        for e in range(rules.experts):
            out[coordinate] = 0.0
            if round.mse_units[e] > 0.0:
                expert = cut(round.rivals, e * rules.capacity, rules.capacity)
                mean_p, mean_x = means_of(round, n, round.result, expert)
                out[coordinate] = round.mse_units[e] * (mean_p - mean_x) * (mean_p + mean_x - 2.0 * t)
            coordinate += 1


def means_of(round, n, p, expert):
    """Means of a forecast p and of an expert, in units of the window."""
    low, span = round.info.low, round.info.high - round.info.low
    mean_p = 0.0
    mean_x = 0.0
    for j in range(n):
        middle = (0.5 * (round.left[j] + round.right[j]) - low) / span
        mean_p += p[j] * middle
        mean_x += expert[j] * middle
    return mean_p, mean_x


def crps_difference(y, k, n, left, right, p, expert):
    """CRPS(p, y) - CRPS(expert, y) for an outcome in cell k, both on the same cells."""
    F = 0.0
    G = 0.0
    total = 0.0
    for j in range(n):
        F1 = F + p[j]
        G1 = G + expert[j]
        width = right[j] - left[j]
        squares = (F * F + F * F1 + F1 * F1 - G * G - G * G1 - G1 * G1) / 3.0
        # int (1-F)^2 - (1-G)^2 = int F^2 - G^2 - 2 (F - G)
        tilt = F + F1 - G - G1
        if j < k:
            total += width * squares
        elif j > k:
            total += width * (squares - tilt)
        elif width > 0.0:
            s = (y - left[j]) / width
            Fy = F + s * p[j]
            Gy = G + s * expert[j]
            total += width * (squares - (1.0 - s) * (Fy + F1 - Gy - G1))
        F = F1
        G = G1
    return total


# --- entries from Python: the same on numpy arrays


def field_tables_arrays(s, levels, knots, slopes):
    """Fill H at 0 and at the levels, and its slope right of each."""
    field_tables(readable_of(s), readable_of(levels), len(levels), numbers_of(knots), numbers_of(slopes))
