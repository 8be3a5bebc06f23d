"""Compiled kernels of the game on ordered cells: the logit equilibrium by Newton in O(K), and the certificate.

The core of the payoff has, in this order, a coordinate for each level, interval, witness, rival's CRPS and rival's
squared error.  `owed` is what the ledger owes on it, `factors` what multiplies its squares (see ledger.combine).
Symbols follow the theory page: F the cumulated masses, v the field <owed, payoff> over the temperature.

With H(u) = sum_a s_a (min(u, a) - a u) the quantile field is v_k = (H(F_k) - H(F_{k-1})) / p_k: the mean of
h = H' over the cell's share of [0, 1].
"""

from __future__ import annotations

from typing import NamedTuple

from orcast.constants import MAX_STEP, MIN_SLOPE, SHRINK, TINY_MASS
from orcast.engine.kernels.cells import power_mean
from orcast.engine.kernels.records import Array, CellRow, RegretScore, RoundInfo, WitnessRow
from orcast.jit import entry_kernel, kernel, kernel_part
from orcast.jit.ieee import exp, log, power

# How often a rejected Newton step is shortened.
TRIES = 6


class LogitField(NamedTuple):
    """The field of an equilibrium over its temperature, but for the tilts that do not depend on p."""

    levels: Array
    knots: Array  # H at the levels
    slopes: Array  # h right of each
    crps_pull: float
    width: Array
    mse_pull: float
    middle: Array


class NewtonRows(NamedTuple):
    """What the residual of an equilibrium fills."""

    F: Array
    p: Array
    v: Array  # the field
    h: Array  # its slopes at the edges
    r: Array  # the residual


# Rows of scratch that solving takes: those above, then four of the linear system and the start of a step.
SCRATCH_ROWS = 9


@kernel_part
def newton_rows(work):
    """The residual's rows of the scratch."""
    return NewtonRows(work[0], work[1], work[2], work[3], work[4])


@kernel
def field_tables(s, levels, knots, slopes):
    """H at the knots 0, a_1, ..., a_L and its slope h right of each, for the ledger s."""
    count = levels.shape[0]
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


@kernel
def residual(n, lp, base, field, rows):
    """Normalise lp; fill masses, F, field, slopes at the edges and the centred residual; return its largest size."""
    F, p, v, h, r = rows.F, rows.p, rows.v, rows.h, rows.r
    levels, knots, slopes = field.levels, field.knots, field.slopes
    crps_pull, width, mse_pull, middle = field.crps_pull, field.width, field.mse_pull, field.middle
    top = lp[0]
    for k in range(1, n):
        top = max(top, lp[k])
    total = 0.0
    for k in range(n):
        p[k] = exp(lp[k] - top)
        total += p[k]
    shift = log(total) + top
    scale = 1.0 / total
    mean = 0.0
    if mse_pull != 0.0:
        for k in range(n):
            mean += p[k] * scale * middle[k]
    count = levels.shape[0]
    j = 0
    before = 0.0
    height = 0.0
    crps_left = 0.0
    r_mean = 0.0
    h[0] = slopes[0]
    for k in range(n):
        lp[k] -= shift
        p[k] *= scale
        after = before + p[k] if k < n - 1 else 1.0
        F[k] = after
        while j < count and levels[j] <= after:
            j += 1
        next_height = knots[j] + slopes[j] * (after - (levels[j - 1] if j > 0 else 0.0))
        h[k + 1] = slopes[j]
        v[k] = (next_height - height) / p[k] if p[k] > TINY_MASS else 0.5 * (h[k] + h[k + 1])
        value = lp[k] - base[k] - v[k]
        if crps_pull != 0.0:
            value -= crps_pull * (crps_left + width[k] * (before + p[k] / 3.0 - 0.5))
            crps_left += width[k] * (2.0 * before + p[k] - 1.0)
        if mse_pull != 0.0:
            value += 2.0 * mse_pull * mean * middle[k]
        r[k] = value
        r_mean += p[k] * value
        before = after
        height = next_height
    worst = 0.0
    for k in range(n):
        r[k] -= r_mean
        worst = max(worst, abs(r[k]))
    return worst


@kernel_part
def newton_step(n, field, rows, upper, d, e):
    """The Newton step in log masses, limited, in `e`.

    In terms of F the system is tridiagonal (quantiles, CRPS) plus rank one (the mean, from squared error): one Thomas
    sweep and one Sherman-Morrison correction.
    """
    p, v, h, r = rows.p, rows.v, rows.h, rows.r
    crps_pull, width, mse_pull, middle = field.crps_pull, field.width, field.mse_pull, field.middle
    inv = 1.0 / max(p[0], TINY_MASS)
    a = max(1.0 - (h[1] - v[0]), MIN_SLOPE) * inv
    b = 0.0
    for k in range(n - 1):
        inv = 1.0 / max(p[k + 1], TINY_MASS)
        a_next = max(1.0 - (h[k + 2] - v[k + 1]), MIN_SLOPE) * inv
        b_next = max(1.0 + (v[k + 1] - h[k + 1]), MIN_SLOPE) * inv
        below = -b
        diagonal = a + b_next
        above = -a_next
        if crps_pull != 0.0:
            below += crps_pull * width[k] / 3.0
            diagonal += crps_pull * (width[k] + width[k + 1]) * (2.0 / 3.0)
            above += crps_pull * width[k + 1] / 3.0
        slope = middle[k + 1] - middle[k]
        if k == 0:
            pivot = 1.0 / diagonal
            d[k] = (r[k + 1] - r[k]) * pivot
            e[k] = slope * pivot
        else:
            pivot = 1.0 / (diagonal - below * upper[k - 1])
            d[k] = (r[k + 1] - r[k] - below * d[k - 1]) * pivot
            e[k] = (slope - below * e[k - 1]) * pivot
        upper[k] = above * pivot
        a = a_next
        b = b_next
    for k in range(n - 3, -1, -1):
        d[k] -= upper[k] * d[k + 1]
        e[k] -= upper[k] * e[k + 1]
    if mse_pull != 0.0:
        along_d = 0.0
        along_e = 0.0
        for k in range(n - 1):
            slope = middle[k + 1] - middle[k]
            along_d += slope * d[k]
            along_e += slope * e[k]
        factor = 2.0 * mse_pull * along_d / (1.0 + 2.0 * mse_pull * along_e)
        for k in range(n - 1):
            d[k] -= factor * e[k]
    # From a step in F to one in log p, limited; `e` now holds it.
    last = 0.0
    for k in range(n):
        change = d[k] if k < n - 1 else 0.0
        e[k] = min(max((change - last) / max(p[k], TINY_MASS), -MAX_STEP), MAX_STEP)
        last = change


@kernel
def solve(n, lp, base, field, tolerance, steps, work):
    """Logit equilibrium log p = base + field(p) + const by damped Newton from lp, in place; returns the residual."""
    rows = newton_rows(work)
    upper, d, e, start = work[5], work[6], work[7], work[8]
    size = residual(n, lp, base, field, rows)
    for _ in range(steps):
        if size <= tolerance or n < 2:
            break
        newton_step(n, field, rows, upper, d, e)
        for k in range(n):
            start[k] = lp[k]
        length = 1.0
        improved = False
        for _ in range(TRIES):
            for k in range(n):
                lp[k] = start[k] + length * e[k]
            new = residual(n, lp, base, field, rows)
            if new < size:
                improved = True
                break
            length *= SHRINK
        if not improved:
            for k in range(n):
                lp[k] = start[k]
            size = residual(n, lp, base, field, rows)
            break
        size = new
    return size


@kernel
def level_share(a, before, mass):
    """The indicator {y <= q_a}, averaged over a cell."""
    if mass <= TINY_MASS:
        # the limit of an empty cell
        return 1.0 if a >= before else 0.0
    return min(max((a - before) / mass, 0.0), 1.0)


@kernel
def power_table(rules, low, high, n, left, right, witness):
    """Powers of the outcome in units of the window: the first witnesses."""
    span = high - low
    for order in range(1, rules.orders + 1):
        for k in range(n):
            a = (left[k] - low) / span
            b = (right[k] - low) / span
            witness[WitnessRow.MEAN, order - 1, k] = power_mean(a, b, order)
            witness[WitnessRow.LEAST, order - 1, k] = power(a, order)
            witness[WitnessRow.LARGEST, order - 1, k] = power(b, order)


@entry_kernel
def payoff(rules, round, y, k, at, out):
    """The core payoff of what was played when y, in cell k, comes true; `at` holds the witnesses there."""
    rows = round.cells
    n = int(round.info[RoundInfo.CELLS])
    low, high = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH]
    left, right, p = rows[CellRow.LEFT], rows[CellRow.RIGHT], rows[CellRow.PLAYED]
    before = 0.0
    for j in range(k):
        before += p[j]
    count = rules.levels.shape[0]
    for i in range(count):
        out[i] = level_share(rules.levels[i], before, p[k]) - rules.levels[i]
    coordinate = count
    for i in range(rules.intervals.shape[0]):
        out[coordinate] = out[rules.intervals[i, 1]] - out[rules.intervals[i, 0]]
        coordinate += 1
    t = (y - low) / (high - low)
    for i in range(rules.witnesses):
        out[coordinate] = round.expected[i] - (power(t, i + 1) if i < rules.orders else at[i])
        coordinate += 1
    experts = round.rivals.shape[0]
    if rules.crps:
        for e in range(experts):
            unit = round.units[RegretScore.CRPS, e]
            out[coordinate] = unit * crps_difference(y, k, n, left, right, p, round.rivals[e]) if unit > 0.0 else 0.0
            coordinate += 1
    if rules.mse:
        for e in range(experts):
            out[coordinate] = 0.0
            if round.units[RegretScore.MSE, e] > 0.0:
                mean_p = 0.0
                mean_x = 0.0
                for j in range(n):
                    middle = (0.5 * (left[j] + right[j]) - low) / (high - low)
                    mean_p += p[j] * middle
                    mean_x += round.rivals[e, j] * middle
                out[coordinate] = round.units[RegretScore.MSE, e] * (mean_p - mean_x) * (mean_p + mean_x - 2.0 * t)
            coordinate += 1


@kernel
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
