"""Last layer of a round: the equilibrium on the ledger around the mix, and a forecast whose certificate holds."""

from orcast.constants import (
    CLOSEST_RATIO,
    CONTINUATION,
    DELAY_TEMPERATURE,
    EASY,
    EASY_STEPS,
    LOWEST,
    STRICT,
    STRICT_STEPS,
    TRUSTED,
)

# The temperature is the usual one where the ledger is this many times its expected size under calibration.
CHANCE = 6.0
# Test statistic of the expert from which on it counts as miscalibrated, so that the ledger is corrected for sampling
# noise too; and outcomes before which it does not.
FAULT, FEW = 2.0, 20.0
# The temperature falls with that statistic from here on, to at least this share of itself.
CLEAR_FAULT, LEAST_FIRM = 4.0, 0.5
# Smallest mass of a cell in a prior that is even by length.
LEAST_SHARE = 1e-12
# Steps around other priors, how the temperature falls in each, and the least log mass that a solution has as a prior.
PROXIMAL_STEPS, PROXIMAL_FALL, LEAST_PRIOR = 60, 0.7, -6.0
# Rounding errors, relative to the gap between two levels.
BARELY = 1e-11
# The temperature falls once less than this share of the budget is left, to at least this share of itself.
FIRM, LEAST_SOFT = 0.8, 0.02


def pull_crps(pull, n, round, expert, w):
    """Add the pull of a regret in CRPS to the equation of the equilibrium."""
    w.crps_pull += pull
    edge = 0.0
    below = 0.0
    for k in range(n):
        width = round.right[k] - round.left[k]
        mass = expert[k]
        w.base[k] -= pull * (edge + width * (below + mass / 3.0 - 0.5))
        edge += width * (2.0 * below + mass - 1.0)
        below += mass


def pull_mse(pull, n, round, expert, w):
    """Add the pull of a regret in squared error to the equation of the equilibrium."""
    w.mse_pull += pull
    mean = (mean_of(n, round.left, round.right, expert) - round.info.low) / (round.info.high - round.info.low)
    for k in range(n):
        w.base[k] += 2.0 * pull * mean * w.middle[k]


def prepare(rules, temperature, eager, round, w):
    """Fill what does not depend on the masses in the equation around `w.log_mix`; `eager` multiplies regrets."""
    n = cell_count(round)
    level_ledger(rules, w.cumulative, 1.0 / temperature, w.s)
    field_tables(w.s, rules.levels, rules.level_count, w.knots, w.slopes)
    copy(w.log_mix, n, w.base)
    coordinate = rules.level_count + rules.interval_count
    for i in range(rules.orders):
        pull = w.cumulative[coordinate] / temperature
        coordinate += 1
        if pull != 0.0:
            for k in range(n):
                w.base[k] -= pull * w.power_means[i * rules.capacity + k]
    w.crps_pull = 0.0
    w.mse_pull = 0.0
    if rules.crps:
        for e in range(rules.experts):
            pull = eager * w.cumulative[coordinate] * round.crps_units[e] / temperature
            coordinate += 1
            if pull > 0.0:
                pull_crps(pull, n, round, cut(round.rivals, e * rules.capacity, rules.capacity), w)
    if rules.mse:
        for e in range(rules.experts):
            pull = eager * w.cumulative[coordinate] * round.mse_units[e] / temperature
            coordinate += 1
            if pull > 0.0:
                pull_mse(pull, n, round, cut(round.rivals, e * rules.capacity, rules.capacity), w)


def equilibrium(rules, temperature, eager, round, lp, tolerance, steps, w):
    """Solve for the logit equilibrium around the mix at a temperature, from lp, in place; return the residual."""
    prepare(rules, temperature, eager, round, w)
    return solve(cell_count(round), lp, rules, tolerance, steps, w)


def solve_strictly(rules, temperature, round, start, lp, w):
    """Solve from `start` into lp, and make the solution the forecast of the round; return the residual."""
    n = cell_count(round)
    copy(start, n, lp)
    error = equilibrium(rules, temperature, 1.0, round, lp, STRICT, STRICT_STEPS, w)
    for k in range(n):
        round.result[k] = exp(lp[k])
    return error


def descend(rules, memory, temperature, round, start, w):
    """Lower the temperature from a solution at `start` until the certificate holds, or the branch ends."""
    n = cell_count(round)
    used = mark(w)
    lp = take(w, n)
    ratio = 0.5
    for _ in range(CONTINUATION):
        lower = temperature * ratio
        error = solve_strictly(rules, lower, round, start, lp, w)
        keep_if_better(judge(rules, memory, round, round.result, w), lp, lower, round, w)
        if w.best_missing <= 0.0:
            break
        if error > TRUSTED and ratio < CLOSEST_RATIO:
            ratio = sqrt(ratio)
            continue
        temperature = lower
        copy(lp, n, start)
        if temperature < LOWEST * min(rules.temperature, 1.0):
            break
    release(w, used)


def expert_fault(rules, misses):
    """Test statistic for miscalibration of the expert: about 1 if it is calibrated."""
    total = 0.0
    expected = 0.0
    for j in range(rules.grid_count):
        total += misses[j] * misses[j]
        expected += rules.grid[j] * (1.0 - rules.grid[j])
    return total / (expected * misses[rules.grid_count] + 1e-9)


def gain_of(rules, memory):
    """Share of the loss of the best expert that the forecasts saved so far, from 0 to 1."""
    least = 1.0
    for e in range(rules.experts):
        rival = rival_at(memory.rivals, e)
        if rival.rounds > 0.0 and rival.crps > 0.0:
            least = min(least, -rival.crps_excess / rival.rounds * rival.count / rival.crps)
    return max(least, 0.0)


def chance_softness(statistics, pending, square, fault, gain):
    """Factor of the temperature while the ledger may be sampling noise; errors that overlap count as one.

    Where the expert is clearly miscalibrated, or the forecasts are clearly better than it, the temperature is low:
    correcting sampling noise too costs little there and keeps every stretch of rounds calibrated.
    """
    trust = min(FAULT / (fault + 1e-9), 1.0) * (1.0 - gain) * (1.0 - gain)
    trust = max(trust * trust, min(FEW * (1.0 + pending) / (statistics.outcomes + 1.0), 1.0))
    chance = CHANCE * trust * (1.0 + pending) * statistics.squares
    soft = 1.0 + chance / max(square, 1e-3 * chance + 1e-300)
    return soft * max(min(CLEAR_FAULT / (fault + 1e-9), 1.0), LEAST_FIRM)


def used_share(layout, memory, context, square):
    """Largest share of a budget that is used: of the whole ledger, or of a group of the round."""
    most = square / memory.account.budget
    row = 0
    for number in range(layout.count):
        part = part_at(layout.parts, number)
        for group in range(part.groups):
            if part.groups > 1 and context[part.context + group] != 0.0:
                own = 0.0
                for i in range(part.start + group * part.size, part.start + (group + 1) * part.size):
                    s = memory.total[i]
                    if layout.sides[i] == 0.0 or s > 0.0:
                        own += s * s
                most = max(most, own / max(memory.groups[row].budget, 1e-300))
            row += 1
    return most


def first_solution(rules, memory, round, lp, w):
    """Fill lp with the equilibrium at the usual temperature, from the last tilt; from the mix where that fails."""
    n = cell_count(round)
    soft = real_power(1.0 + round.info.pending, DELAY_TEMPERATURE)
    if rules.learns:
        fault = expert_fault(rules, memory.misses)
        gain = gain_of(rules, memory)
        soft *= chance_softness(memory.statistics, round.info.pending, w.square, fault, gain)
        # the temperature falls before the bound binds: a forecast that is found where it binds may be far from the mix
        left = 1.0 - used_share(rules.layout, memory, round.context, w.square)
        firm = min(max(left / FIRM, 0.0), 1.0)
        soft *= max(firm * firm, LEAST_SOFT)
    usual = rules.temperature * soft
    round.info.temperature = usual
    for k in range(n):
        lp[k] = w.log_mix[k] + memory.warm[k]
    error = equilibrium(rules, usual, soft, round, lp, EASY, EASY_STEPS, w)
    if not error <= 10.0 * EASY:
        used = mark(w)
        cold = take(w, n)
        copy(w.log_mix, n, cold)
        if equilibrium(rules, usual, soft, round, cold, EASY, STRICT_STEPS, w) < error:
            copy(cold, n, lp)
        release(w, used)


def try_ends(rules, memory, round, w):
    """Judge masses at the two ends, which win for quantiles alone: F is where H falls through 0, just below a level."""
    n, levels, knots, slopes = cell_count(round), rules.levels, w.cumulative_knots, w.cumulative_slopes
    zero = 1.0 if slopes[0] > 0.0 else 0.0
    for i in range(rules.level_count):
        a = levels[i - 1] if i > 0 else 0.0
        aside = BARELY * (levels[i] - a)
        if knots[i] > 0.0 and knots[i + 1] <= 0.0:
            zero = min(max(a - knots[i] / slopes[i], a + aside), levels[i] - aside)
            break
    used = mark(w)
    lp = take(w, n)
    for k in range(n):
        round.result[k] = 0.0
    round.result[0] += zero
    round.result[n - 1] += 1.0 - zero
    log_masses(n, round.result, lp)
    keep_if_better(judge(rules, memory, round, round.result, w), lp, 0.0, round, w)
    release(w, used)


def other_prior(number, n, round, out):
    """Log masses that are even by cell (0) or even by length (1)."""
    span = round.right[n - 1] - round.left[0]
    for k in range(n):
        out[k] = log(max((round.right[k] - round.left[k]) / span, LEAST_SHARE)) if number > 0 else 0.0


def try_priors(rules, memory, round, lp, w):
    """Search from other priors, which have mass where the mix has none: lower temperatures first, then small steps."""
    n = cell_count(round)
    used = mark(w)
    log_mix = w.log_mix
    w.log_mix = take(w, n)
    for number in range(4):
        if w.best_missing <= 0.0:
            break
        other_prior(number % 2, n, round, w.log_mix)
        copy(w.log_mix, n, lp)
        if number < 2:
            descend(rules, memory, rules.temperature, round, lp, w)
        else:
            step_by_step(rules, memory, round, lp, w)
    w.log_mix = log_mix
    release(w, used)


def step_by_step(rules, memory, round, start, w):
    """Solve again and again, each solution being the next prior (proximal point method), at falling temperatures."""
    n, temperature = cell_count(round), rules.temperature
    used = mark(w)
    lp = take(w, n)
    for _ in range(PROXIMAL_STEPS):
        if solve_strictly(rules, temperature, round, start, lp, w) > TRUSTED:
            temperature *= 2.0
            continue
        temperature *= PROXIMAL_FALL
        keep_if_better(judge(rules, memory, round, round.result, w), lp, 0.0, round, w)
        if w.best_missing <= 0.0:
            break
        for k in range(n):
            start[k] = w.log_mix[k] = max(lp[k], LEAST_PRIOR)
    release(w, used)


def search(rules, memory, thorough, round, lp, w):
    """Search for a forecast that holds, from an equilibrium lp that does not; the best one becomes the forecast."""
    n = cell_count(round)
    descend(rules, memory, round.info.temperature, round, lp, w)
    if w.best_missing > 0.0:
        try_ends(rules, memory, round, w)
        try_priors(rules, memory, round, lp, w)
    copy(w.best_p, n, round.result)
    if judge(rules, memory, round, round.result, w) > 0.0 and thorough:
        allow_resolution(rules, memory, n, round, round.result, w)


def run_rounds(rules, memory, mix, reserved, thorough, round, w):
    """Fill the forecast of a round and its certificate: an equilibrium around the mix that holds, or comes closest."""
    n = cell_count(round)
    used = mark(w)
    regret_units(rules, memory, n, round, mix)
    new_workspace(rules, memory, round, reserved, w)
    w.log_mix, w.best_p = take(w, n), take(w, n)
    lp = take(w, n)
    log_masses(n, mix, w.log_mix)
    first_solution(rules, memory, round, lp, w)
    for k in range(n):
        round.result[k] = exp(lp[k])
        round.tilt[k] = lp[k] - w.log_mix[k]
    w.best_missing = judge(rules, memory, round, round.result, w)
    if not w.best_missing <= 0.0:
        copy(round.result, n, w.best_p)
        search(rules, memory, thorough, round, lp, w)
    release(w, used)
