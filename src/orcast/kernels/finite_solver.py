"""Last layer on finite spaces: the logit equilibrium and its certificate.

With hat functions w_v on an even grid, an event j (the outcome 1, or each label) has the payoffs
w_v(p_j) (p_j - 1{y = j}) and w_v(x_j) (p_j - 1{y = j}), the outcome 1 also p - y, and each expert, one-sided,
c (Brier(p, y) - Brier(x, y)). For the cumulative payoff S, the equilibrium around the prior m is

    log p_c = log m_c + v_c(p) / kappa + const,      v_c(p) = <S_+, payoff(p, c)>

The mean of v under p is at most 0, so max v is at most kappa times a constant: lowering kappa ends at a forecast whose
certificate holds. But for a constant and the units of the regrets, v_c depends on p_c alone. So a Newton step costs
O(k); where Newton does not converge, a bisection on the common value of log p_c - log m_c - v_c / kappa finds an
equilibrium, unless two cells jump at once; the certificate is that of the forecast in any case.
"""

from orcast.constants import (
    BINARY_DELAY_TEMPERATURE,
    DELAY_TEMPERATURE,
    MAX_STEP,
    MIN_SLOPE,
    SHRINK,
    STRICT_STEPS,
    TRUSTED,
)

# The least mass of a cell.
LEAST_MASS = 1e-300
HALVINGS = 40
TOLERANCE, STEPS, NEWTON_STEPS, TRIES = 1e-10, 60, 12, 6
# Passes of a bisection that update the units of the regrets, and the change at which they have settled.
UNIT_PASSES, SETTLED = 4, 1e-6
# The ledger allows for rounding; a forecast must not count on all of it.
SURE = 0.1 * ROUNDING
INF = float("inf")
# Steepness of the transition from one hat function to the next: 1 is linear interpolation between their middles, larger
# values have flatter tops. (With hats that only touch their middle, the rest of a bin belongs to its neighbours, and
# the calibration error would not be that of a reliability diagram.)
STEEPNESS = STEEP = 2.0


def hat(at, grid):
    """Hat that a point of [0, 1] has (partly) left, and the share of the next one.

    Hat v has the middle (v + 1/2) / grid. Hats have flat tops and add up to one: from one middle to the next, the
    share goes from 0 to 1 over the inner part 1 / STEEPNESS of the way, as at the soft edge of a bin; as
    3 u^2 - 2 u^3, so that Newton's method meets no kinks.
    """
    place = min(max(at, 0.0), 1.0) * grid - 0.5
    k = whole_number(floor(place))
    k = min(max(k, 0), grid - 2)
    u = min(max(0.5 + STEEP * (place - k - 0.5), 0.0), 1.0)
    return k, u * u * (3.0 - 2.0 * u)


def hat_slope(at, grid):
    """Derivative of that share."""
    place = min(max(at, 0.0), 1.0) * grid - 0.5
    k = whole_number(floor(place))
    k = min(max(k, 0), grid - 2)
    u = min(max(0.5 + STEEP * (place - k - 0.5), 0.0), 1.0)
    return 6.0 * u * (1.0 - u) * STEEP * grid


def between(nodes, count, at):
    """Node on the left of a point, and the share of the next one, which is linear from node to node."""
    left, right = 0, count - 1
    while right - left > 1:
        middle = (left + right) // 2
        if nodes[middle] <= at:
            left = middle
        else:
            right = middle
    share = (at - nodes[left]) / (nodes[right] - nodes[left])
    return left, min(max(share, 0.0), 1.0)


def squares_ahead(p, cells, x):
    """|p|^2 - |x|^2."""
    total = 0.0
    for c in range(cells):
        total += (p[c] - x[c]) * (p[c] + x[c])
    return total


def regret_scale(p, cells, x, unit, brier, variance):
    """Unit of the regret of p against x, or less where the regret could exceed 1."""
    ahead = squares_ahead(p, cells, x) + variance
    most = 1.0 / unit
    for c in range(cells):
        most = max(most, brier * fabs(ahead - 2.0 * (p[c] - x[c])))
    return 1.0 / most


def regret_pulls(w, p, eager, pulls):
    """Pull of the regret against each expert in the units of p; `eager` multiplies it, since it cannot overshoot."""
    variance = variance_of(w, p)
    for e in range(w.rivals):
        pulls[e] = 0.0
        if w.cumulative_regret[e] > 0.0 and w.units[e] > 0.0:
            x = cut(w.experts, e * w.cells, w.cells)
            scale = regret_scale(p, w.cells, x, w.units[e], w.brier, variance)
            pulls[e] = 2.0 * w.brier * eager * w.cumulative_regret[e] * scale


def hat_at(w, at):
    """Hat of the forecast that a point has (partly) left, and the share of the next one."""
    if w.drawn:
        return between(w.nodes, w.vertices, at)
    return hat(at, w.vertices)


def sum_at(w, j, at):
    """Cumulative payoff of an event, interpolated by the hats of the forecast."""
    k, share = hat_at(w, at)
    return (1.0 - share) * w.cumulative[k * w.events + j] + share * w.cumulative[(k + 1) * w.events + j]


def vertex(w, k):
    """Middle of a hat of the forecast."""
    return w.nodes[k] if w.drawn else (k + 0.5) / w.vertices


def next_vertex(w, at, up):
    """First vertex above a point, or below it; -1 or `vertices` if there is none."""
    if w.drawn:
        k, _ = between(w.nodes, w.vertices, at)
        if up:
            return k if at < w.nodes[k] else k + 1 if at < w.nodes[k + 1] else w.vertices
        return k + 1 if at > w.nodes[k + 1] else k if at > w.nodes[k] else k - 1
    k = whole_number(floor(at * w.vertices - 0.5)) if up else whole_number(ceil(at * w.vertices - 0.5))
    return k + 1 if up else k - 1


def variance_of(w, p):
    """Variance of the masses of a forecast that is drawn from the two nodes around each of p, summed over the cells."""
    if not w.drawn:
        return 0.0
    total = 0.0
    for j in range(w.events):
        k, share = between(w.nodes, w.vertices, p[w.first + j])
        gap = w.nodes[k + 1] - w.nodes[k]
        total += share * (1.0 - share) * gap * gap
    # a single event of two cells moves both
    return total * w.cells / w.events


def lift(w, p):
    """Raise masses below the first node to it, at the expense of the others."""
    above = 0.0
    added = 0.0
    for c in range(w.cells):
        added += max(w.nodes[0] - p[c], 0.0)
        above += max(p[c] - w.nodes[0], 0.0)
    if added > 0.0:
        for c in range(w.cells):
            p[c] = w.nodes[0] + max(p[c] - w.nodes[0], 0.0) * (1.0 - added / above)


def cell_field(w, pulls, c, at):
    """v_c for a mass of the cell, up to a constant."""
    total = 0.0
    if c >= w.first:
        j = c - w.first
        total = -(sum_at(w, j, at) + w.fixed[j])
    for e in range(w.rivals):
        if pulls[e] > 0.0:
            total += pulls[e] * (w.experts[e * w.cells + c] - at)
    return total


def cell_slope(w, pulls, c, at):
    """Derivative of v_c by the mass of the cell, that of the regrets' units left out."""
    total = 0.0
    if c >= w.first:
        k, _ = hat_at(w, at)
        j = c - w.first
        rise = w.cumulative[(k + 1) * w.events + j] - w.cumulative[k * w.events + j]
        if w.drawn:
            total = -rise / (w.nodes[k + 1] - w.nodes[k])
        else:
            total = -rise * hat_slope(at, w.vertices)
    for e in range(w.rivals):
        total -= pulls[e]
    return total


# --- the equilibrium: Newton, or a bisection on the level that all cells share


def residual(w, kappa, eager, log_prior, lp, p, pulls, r):
    """Normalise lp; fill masses and the centred residual of the equilibrium; return its largest size."""
    top = lp[0]
    for c in range(1, w.cells):
        top = max(top, lp[c])
    total = 0.0
    for c in range(w.cells):
        p[c] = exp(lp[c] - top)
        total += p[c]
    shift = top + log(total)
    for c in range(w.cells):
        lp[c] -= shift
        p[c] /= total
    regret_pulls(w, p, eager, pulls)
    mean = 0.0
    for c in range(w.cells):
        r[c] = lp[c] - log_prior[c] - cell_field(w, pulls, c, p[c]) / kappa
        mean += p[c] * r[c]
    worst = 0.0
    for c in range(w.cells):
        r[c] -= mean
        worst = max(worst, fabs(r[c]))
    return worst


def newton(kappa, eager, log_prior, p, pulls, w):
    """Equilibrium by damped Newton steps from the masses p, in place; returns the residual."""
    cells = w.cells
    m = mark(w)
    lp, start, r, step = take(w, cells), take(w, cells), take(w, cells), take(w, cells)
    for c in range(cells):
        lp[c] = log(max(p[c], LEAST_MASS))
    size = residual(w, kappa, eager, log_prior, lp, p, pulls, r)
    for _ in range(STRICT_STEPS):
        if size <= TOLERANCE:
            break
        # the matrix is diagonal but for the constant, which keeps the masses at a sum of one
        above = 0.0
        below = 0.0
        for c in range(cells):
            step[c] = 1.0 / max(1.0 - cell_slope(w, pulls, c, p[c]) * p[c] / kappa, MIN_SLOPE)
            above += p[c] * r[c] * step[c]
            below += p[c] * step[c]
        for c in range(cells):
            start[c] = lp[c]
            step[c] = min(max((above / below - r[c]) * step[c], -MAX_STEP), MAX_STEP)
        length = 1.0
        new = INF
        for _ in range(TRIES):
            for c in range(cells):
                lp[c] = start[c] + length * step[c]
            new = residual(w, kappa, eager, log_prior, lp, p, pulls, r)
            if new < size:
                break
            length *= SHRINK
        if not new < size:
            break
        size = new
    release(w, m)
    return size


def level_of(w, kappa, pulls, c, at):
    """Value of kappa log(p_c / m_c) - v_c at a mass of the cell; an equilibrium has the same value in all cells."""
    return kappa * log(max(at, LEAST_MASS) / w.prior[c]) - cell_field(w, pulls, c, at)


def gap(w, kappa, pulls, c, at, level):
    """Value of `level_of` at a mass of a cell minus a level, which on two cells is that of the other one."""
    if w.cells == 2:
        w.trial[c] = at
        w.trial[1 - c] = 1.0 - at
        regret_pulls(w, w.trial, w.eager, pulls)
        level = level_of(w, kappa, pulls, 1 - c, 1.0 - at)
    return level_of(w, kappa, pulls, c, at) - level


def mass_at(w, kappa, pulls, c, level):
    """Mass of a cell at a level, the nearest to the prior; on more than two cells it never falls as the level rises."""
    vertices = w.vertices
    near = w.prior[c]
    up = gap(w, kappa, pulls, c, near, level) < 0.0
    far = 1.0 if up else LEAST_MASS
    k = next_vertex(w, near, up)
    while 0 <= k < vertices:
        middle = vertex(w, k)
        if (gap(w, kappa, pulls, c, middle, level) < 0.0) != up:
            far = middle
            break
        near = middle
        k += 1 if up else -1
    if (gap(w, kappa, pulls, c, far, level) < 0.0) == up:
        return 1.0 if up else 0.0
    a, b = log(near), log(far)
    z = a
    for n in range(STEPS):
        at = exp(z)
        value = gap(w, kappa, pulls, c, at, level)
        if (value < 0.0) == up:
            a = z
        else:
            b = z
        rise = kappa - cell_slope(w, pulls, c, at) * at
        if w.cells == 2:
            rise += (kappa / max(1.0 - at, LEAST_MASS) - cell_slope(w, pulls, 1 - c, 1.0 - at)) * at
        then = z - value / rise if rise > 0.0 else INF
        if n >= NEWTON_STEPS or not min(a, b) <= then <= max(a, b):
            then = 0.5 * (a + b)
        elif fabs(then - z) < TOLERANCE:
            return exp(then)
        z = then
    return exp(b)


def masses_at(w, kappa, pulls, level, given, mass, p):
    """Masses of all cells at a level, but for one cell that has a given mass; their sum."""
    total = 0.0
    for c in range(w.cells):
        p[c] = mass if c == given else mass_at(w, kappa, pulls, c, level)
        total += p[c]
    return total


def balance(kappa, pulls, p, w):
    """Equilibrium for fixed units of the regrets: the level at which the masses add up to one.

    At a jump of the sum one cell has several masses at that level; between them its own mass is searched for.
    """
    cells = w.cells
    low = INF
    high = -INF
    for c in range(cells):
        level = level_of(w, kappa, pulls, c, w.prior[c])
        low = min(low, level)
        high = max(high, level)
    for _ in range(STEPS):
        level = 0.5 * (low + high)
        if masses_at(w, kappa, pulls, level, -1, 0.0, p) < 1.0:
            low = level
        else:
            high = level
    m = mark(w)
    below = take(w, cells)
    masses_at(w, kappa, pulls, low, -1, 0.0, below)
    total = masses_at(w, kappa, pulls, high, -1, 0.0, p)
    jump = 0
    for c in range(cells):
        if p[c] - below[c] > p[jump] - below[jump]:
            jump = c
    if p[jump] - below[jump] > TOLERANCE:
        a, b = below[jump], p[jump]
        for _ in range(STEPS):
            mass = 0.5 * (a + b)
            level = level_of(w, kappa, pulls, jump, mass)
            total = masses_at(w, kappa, pulls, level, jump, mass, p)
            if total < 1.0:
                a = mass
            else:
                b = mass
    for c in range(cells):
        p[c] /= total
    release(w, m)


def equilibrium(kappa, eager, p, pulls, w):
    """Fill p with the equilibrium at a temperature, around the prior: on two cells the nearest, also at 0."""
    m = mark(w)
    if w.cells == 2:
        w.trial, w.eager = take(w, 2), eager
        p[1] = mass_at(w, kappa, pulls, 1, 0.0)
        p[0] = 1.0 - p[1]
    else:
        equilibrium_of_several(kappa, eager, p, pulls, w)
    release(w, m)
    if w.drawn:
        lift(w, p)


def equilibrium_of_several(kappa, eager, p, pulls, w):
    """Fill p with an equilibrium of more than two cells."""
    m = mark(w)
    log_prior, before = take(w, w.cells), take(w, w.rivals)
    for c in range(w.cells):
        p[c] = w.prior[c]
        log_prior[c] = log(p[c])
    if not newton(kappa, eager, log_prior, p, pulls, w) <= TRUSTED:
        for _ in range(UNIT_PASSES):
            copy(pulls, w.rivals, before)
            balance(kappa, pulls, p, w)
            regret_pulls(w, p, eager, pulls)
            change = 0.0
            for e in range(w.rivals):
                change = max(change, fabs(pulls[e] - before[e]) - SETTLED * before[e])
            if change <= 0.0:
                break
    release(w, m)


# --- the certificate, and the temperature that it allows


def certify(p, w):
    """Largest 2 <S_+, payoff> + ||payoff||^2 and largest ||payoff||^2 over all outcomes, exact.

    If the forecast is drawn, the payoff of a node v has v - 1{event} in place of p - 1{event}, and the third result is
    by how much the mean of <S_+, payoff> under p can exceed 0 for that: the resolution.
    """
    events, rivals, cells = w.events, w.rivals, w.cells
    # an outcome changes its own error: p_c - 1 instead of p_c
    inner = 0.0
    square = 0.0
    resolution = 0.0
    variance = variance_of(w, p)
    m = mark(w)
    pulls, sizes, scales, ahead = take(w, events), take(w, events), take(w, rivals), take(w, rivals)
    tilts, values = take(w, events), take(w, cells)
    for j in range(events):
        at = p[w.first + j]
        k, share = hat_at(w, at)
        pulls[j] = sum_at(w, j, at) + w.fixed[j]
        sizes[j] = w.hat_factor * (share * share + (1.0 - share) * (1.0 - share)) + w.fixed_size[j]
        inner += pulls[j] * at
        square += sizes[j] * at * at
        tilts[j] = 0.0
        if w.drawn:
            # each node is share (1 - share) gap away, in units of its weight
            away = share * (1.0 - share) * (w.nodes[k + 1] - w.nodes[k])
            resolution += away * (w.cumulative[(k + 1) * events + j] - w.cumulative[k * events + j])
            tilts[j] = 2.0 * w.hat_factor * away * (2.0 * share - 1.0)
            square += tilts[j] * at + 2.0 * w.hat_factor * away * away
    inner += resolution
    for e in range(rivals):
        scales[e] = 0.0
        ahead[e] = 0.0
        if w.units[e] > 0.0:
            x = cut(w.experts, e * cells, cells)
            scales[e] = w.brier * regret_scale(p, cells, x, w.units[e], w.brier, variance)
            ahead[e] = squares_ahead(p, cells, x) + variance
            resolution += max(w.cumulative_regret[e], 0.0) * scales[e] * variance
    linear = -INF
    bound = 0.0
    for c in range(cells):
        along = inner
        size = square
        if c >= w.first:
            j = c - w.first
            along -= pulls[j]
            size += sizes[j] * (1.0 - 2.0 * p[c]) - tilts[j]
        for e in range(rivals):
            if scales[e] > 0.0:
                regret = scales[e] * (ahead[e] - 2.0 * (p[c] - w.experts[e * cells + c]))
                along += max(w.cumulative_regret[e], 0.0) * regret
                size += w.regret_factor * regret * regret
        values[c] = along
        linear = max(linear, 2.0 * along + size)
        bound = max(bound, size)
    if w.drawn:
        resolution += floor_term(w, p, values)
    release(w, m)
    return linear, bound, resolution


def floor_term(w, p, values):
    """Part of the mean of <S_+, payoff> that cells at the first node take from the others."""
    top = values[0]
    for c in range(1, w.cells):
        top = max(top, values[c])
    total = 0.0
    for c in range(w.cells):
        if p[c] <= w.nodes[0] * (1.0 + SETTLED):
            total += p[c] * (top - values[c])
    return total


def allows(linear, bound, free, budget):
    """True if a certificate holds with the slack that is free."""
    return linear - bound <= free + SURE * (budget + bound)


def solve(kappa, pending, free, budget, p, w):
    """Fill the forecast; return the temperature used and its certificate: `linear` and `bound`.

    The equilibrium at the usual temperature, or at half of it and so on until the slack that is `free` allows it. If
    none is allowed, the bound of a drawn forecast grows by what is missing, at most by twice the resolution.
    """
    eager = real_power(1.0 + pending, BINARY_DELAY_TEMPERATURE if w.cells == 2 else DELAY_TEMPERATURE)
    m = mark(w)
    pulls = take(w, w.rivals)
    temperature = kappa * eager
    equilibrium(temperature, eager, p, pulls, w)
    linear, bound, resolution = certify(p, w)
    for _ in range(HALVINGS):
        if allows(linear, bound, free, budget):
            break
        temperature *= 0.5
        equilibrium(temperature, 1.0, p, pulls, w)
        linear, bound, resolution = certify(p, w)
    if w.cells == 2 and not allows(linear, bound, free, budget):
        temperature = 0.0
        equilibrium(temperature, 1.0, p, pulls, w)
        linear, bound, resolution = certify(p, w)
    if w.drawn and not allows(linear, bound, free, budget):
        bound += min(linear - bound - free, 2.0 * max(resolution, 0.0))
    release(w, m)
    return temperature, linear, bound
