"""Certificates of candidate forecasts of a round, and the best candidate so far."""

from orcast.constants import MAX_TILT, OWN_EXPECTATION_WEIGHT

INF = float("inf")


def level_ledger(rules, cumulative, scale, out):
    """Cumulative payoff of each level, from the quantiles and from the intervals that end there."""
    count = rules.level_count
    for i in range(count):
        out[i] = cumulative[i] * scale
    for i in range(rules.interval_count):
        out[rules.intervals[2 * i]] -= cumulative[count + i] * scale
        out[rules.intervals[2 * i + 1]] += cumulative[count + i] * scale


def take_rows(rules, n, w):
    """Take the rows of the payoff and of the certificate from scratch memory."""
    size, count, experts = rules.payoff_size, rules.level_count, rules.experts
    w.cumulative, w.factors = take(w, size), take(w, size)
    w.cumulative_knots, w.cumulative_slopes = take(w, count + 1), take(w, count + 1)
    w.power_means, w.power_least = take(w, rules.orders * rules.capacity), take(w, rules.orders * rules.capacity)
    w.power_largest = take(w, rules.orders * rules.capacity)
    w.width, w.middle = take(w, n), take(w, n)
    w.linear, w.norm, w.flat = take(w, n), take(w, n), take(w, n)
    w.gaps, w.regret_means = take(w, experts * rules.capacity), take(w, 2 * experts)
    new_function(rules.orders, experts * (rules.crps + rules.mse), w)


def take_newton_rows(count, n, w):
    """Take the rows of Newton's method from scratch memory."""
    w.s, w.knots, w.slopes, w.base = take(w, count), take(w, count + 1), take(w, count + 1), take(w, n)
    w.F, w.p, w.v, w.h, w.r = take(w, n + 2), take(w, n + 2), take(w, n + 2), take(w, n + 2), take(w, n + 2)
    w.upper, w.d, w.e, w.start = take(w, n + 2), take(w, n + 2), take(w, n + 2), take(w, n + 2)


def new_workspace(rules, memory, round, reserved, w):
    """Fill the scratch memory of a round, which the caller marks and releases; pending ones have `reserved` slack."""
    n = cell_count(round)
    low, high = round.info.low, round.info.high
    take_rows(rules, n, w)
    take_newton_rows(rules.level_count, n, w)
    w.square = squared_norm(memory)
    w.free = available_slack(memory, w.square, round.context, reserved)
    combine(memory, round.context, w.cumulative, w.factors, rules.payoff_size)
    level_ledger(rules, w.cumulative, 1.0, w.s)
    field_tables(w.s, rules.levels, rules.level_count, w.cumulative_knots, w.cumulative_slopes)
    power_table(rules, low, high, n, round.left, round.right, w)
    for k in range(n):
        w.width[k] = round.right[k] - round.left[k]
        w.middle[k] = (0.5 * (round.left[k] + round.right[k]) - low) / (high - low)


def crps_unit(rules, memory, n, round, p, e):
    """Unit of the regret in CRPS of p against an expert."""
    left, right = round.left, round.right
    expert = cut(round.rivals, e * rules.capacity, rules.capacity)
    span = round.info.high - round.info.low
    usual = OWN_EXPECTATION_WEIGHT * expected_crps(n, left, right, expert) + memory.rivals[e].crps
    usual = max(usual / (OWN_EXPECTATION_WEIGHT + memory.rivals[e].count), 1e-9 * span)
    gap = crps_difference(left[0], 0, n, left, right, p, expert)
    most = fabs(gap)
    F = 0.0
    for k in range(n):
        # the slope of the difference is 2 (F - G), linear within the cell
        F1 = F + p[k] - expert[k]
        width = right[k] - left[k]
        if F * F1 < 0.0:
            most = max(most, fabs(gap + width * F * F / (F - F1)))
        gap += width * (F + F1)
        most = max(most, fabs(gap))
        F = F1
    return 1.0 / max(usual, most)


def mse_unit(rules, memory, n, round, p, e):
    """Unit of the regret in squared error of p against an expert."""
    expert = cut(round.rivals, e * rules.capacity, rules.capacity)
    low, span = round.info.low, round.info.high - round.info.low
    mean_p, mean_x = means_of(round, n, p, expert)
    square = 0.0
    for k in range(n):
        square += expert[k] * power_mean((round.left[k] - low) / span, (round.right[k] - low) / span, 2)
    usual = OWN_EXPECTATION_WEIGHT * max(square - mean_x * mean_x, 0.0) + memory.rivals[e].squared_error
    usual = max(usual / (OWN_EXPECTATION_WEIGHT + memory.rivals[e].count), 1e-12)
    most = fabs(mean_p - mean_x) * max(mean_p + mean_x, 2.0 - mean_p - mean_x)
    return 1.0 / max(usual, most)


def regret_units(rules, memory, n, round, p):
    """Units of the regrets of p: one over the larger of the usual loss of the expert and the largest difference."""
    if rules.crps == 0 and rules.mse == 0:
        return
    for e in range(rules.experts):
        round.crps_units[e] = 0.0
        round.mse_units[e] = 0.0
        if rules.experts > 1 and isnan(round.experts[(e + 1) * rules.grid_count]):
            continue
        if rules.crps:
            round.crps_units[e] = crps_unit(rules, memory, n, round, p, e)
        if rules.mse:
            round.mse_units[e] = mse_unit(rules, memory, n, round, p, e)


def judge(rules, memory, round, p, w):
    """Write the certificate of p; return by how much it fails (at most 0: it holds)."""
    certificate = round.certificate
    n = cell_count(round)
    mass = 0.0
    for k in range(n):
        mass += p[k]
    if not fabs(mass - 1.0) < 1e-6:
        # not a forecast, since a solve diverged
        write_certificate(memory, w.square, w.free, INF, 0.0, certificate)
        return INF
    regret_units(rules, memory, n, round, p)
    linear, bound = certify(rules, n, round, p, w)
    write_certificate(memory, w.square, w.free, linear, bound, certificate)
    if certificate.holds > 0.0:
        return 0.0
    return certificate.worst - certificate.allowed


def allow_resolution(rules, memory, n, round, p, w):
    """Let the bound grow by the resolution of the cells, as far as the forecast needs it (see docs/theory.md)."""
    certificate = round.certificate
    linear = certificate.worst - rules.discount * rules.discount * w.square
    needed = linear - certificate.bound - w.free
    needed = min(needed, 2.0 * resolution(rules, n, round, p, w))
    bound = certificate.bound + max(needed, 0.0)
    write_certificate(memory, w.square, w.free, linear, bound, certificate)


def keep_if_better(missing, lp, temperature, round, w):
    """Keep the forecast of the round, with log masses lp, if less is missing than from the best so far."""
    if not missing < w.best_missing:
        return
    w.best_missing = missing
    for k in range(cell_count(round)):
        w.best_p[k] = round.result[k]
        round.tilt[k] = min(max(lp[k] - w.log_mix[k], -MAX_TILT), MAX_TILT)
    round.info.temperature = temperature


# --- entries for Python: the forecast is `round.played`


def regret_units_arrays(rules, memory, round, p):
    """Set the units of the regrets of p."""
    regret_units(rules, memory, cell_count(round), round, readable_of(p))


def certify_arrays(rules, memory, round, free):
    """Largest growth, largest ||payoff||^2, resolution and slack of a forecast; `free` replaces that of the ledger."""
    w = workspace()
    start = mark(w)
    new_workspace(rules, memory, round, 0.0, w)
    if free is not None:
        w.free = free
    n = cell_count(round)
    linear, bound = certify(rules, n, round, round.result, w)
    apart, slack = resolution(rules, n, round, round.result, w), w.free
    release(w, start)
    return linear, bound, apart, slack
