"""Members that temper and shift the expert on finite spaces of several cells, and the pool of experts.

Where the space has axes, the expert x is first shifted and stretched along them (see dense/axes.py). Member m forecasts
p_k ~ x_k^(1 + a) exp(b_k) and takes Newton-like steps on its log score: a has the curvature Var_p(log x), b_k the
curvature p_k (1 - p_k), both summed with forgetting, so that early steps are large and late ones small. The mix weighs
them and the expert by discounted log score; so does the pool of experts.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import numpy as np

from orcast.constants import LOG_LOSS_RATE, LOSS_DISCOUNT, MOST_LOG_BEHIND, MOST_LOG_LOSS

if not cython.compiled:
    from orcast.kernels.delays import delay_odds, delayed
    from orcast.kernels.pure import exp, finite_member_at, isnan, log
    from orcast.kernels.rows import cut, numbers_of, readable_of

# Masses below this are raised to it before logarithms are taken.
FLOOR = 1e-6
# A scaling stays within these bounds, a shift within MAX_SHIFT.
LOW_SCALE, HIGH_SCALE, MAX_SHIFT = -0.9, 3.0, 4.0
# This much even mass is always in the mix, so that no cell is ever without.
EVEN = 1e-4
INF = float("inf")


def pool_masses(rules, losses, experts, pool):
    """Fill the mean of the experts' masses, weighted by their discounted log losses; nan where one is missing."""
    n = rules.cells
    best = INF
    for e in range(rules.rivals):
        if not isnan(experts[e * n]):
            best = min(best, losses[e])
    total = 0.0
    for k in range(n):
        pool[k] = 0.0
    for e in range(rules.rivals):
        if not isnan(experts[e * n]):
            weight = exp(-LOG_LOSS_RATE * (losses[e] - best))
            total += weight
            for k in range(n):
                pool[k] += weight * experts[e * n + k]
    for k in range(n):
        pool[k] /= total


def learn_pool(rules, losses, experts, pool, weight, discount, k):
    """Add the log losses of an outcome in cell k; an expert that is missing has that of the pool."""
    kept = delayed(discount, weight)
    best = INF
    for e in range(rules.rivals):
        best = min(best, losses[e])
    for e in range(rules.rivals):
        at = e * rules.cells
        own = loss_of(pool[k] if isnan(experts[at]) else experts[at + k])
        losses[e] = kept * min(losses[e], best + MOST_LOG_BEHIND) + weight * own


def mix_members(rules, state, base, pending, masses, mix):
    """Fill the masses of the members around the base forecast, and their mix; the state is only read."""
    count, n = rules.member_count, rules.cells
    best = state.loss[count]
    for m in range(count):
        best = min(best, state.loss[m])
    odds = delay_odds(pending)
    own = exp(-LOG_LOSS_RATE * (state.loss[count] - best))
    for k in range(n):
        mix[k] = own * base[k]
    total = own
    for m in range(count):
        p = cut(masses, m * n, n)
        top = -INF
        for k in range(n):
            value = (1.0 + state.scale[m]) * log(max(base[k], FLOOR)) + state.shift[m * n + k]
            p[k] = value
            top = max(top, value)
        mass = 0.0
        for k in range(n):
            p[k] = exp(p[k] - top)
            mass += p[k]
        weight = odds * exp(-LOG_LOSS_RATE * (state.loss[m] - best))
        total += weight
        for k in range(n):
            p[k] /= mass
            mix[k] += weight * p[k]
    for k in range(n):
        mix[k] = (1.0 - EVEN) * mix[k] / total + EVEN / n


def loss_of(mass):
    """Clipped log score."""
    return min(-log(max(mass, 1e-300)), MOST_LOG_LOSS)


def teach_members(rules, state, base, masses, weight, k):
    """Update the members with an outcome in cell k."""
    count, n = rules.member_count, rules.cells
    kept = delayed(LOSS_DISCOUNT, weight)
    state.loss[count] = kept * state.loss[count] + weight * loss_of(base[k])
    for m in range(count):
        p = cut(masses, m * n, n)
        options = finite_member_at(rules.members, m)
        state.loss[m] = kept * state.loss[m] + weight * loss_of(p[k])
        discount = delayed(options.discount, weight)
        mean = 0.0
        square = 0.0
        for j in range(n):
            log_x = log(max(base[j], FLOOR))
            mean += p[j] * log_x
            square += p[j] * log_x * log_x
        state.scale_sum[m] = discount * state.scale_sum[m] + weight * max(square - mean * mean, 0.0)
        error = log(max(base[k], FLOOR)) - mean
        step = weight * error / (state.scale_sum[m] + options.start)
        state.scale[m] = min(max(state.scale[m] + step, LOW_SCALE), HIGH_SCALE)
        if options.shifts == 0.0:
            continue
        shift, shift_sum = cut(state.shift, m * n, n), cut(state.shift_sum, m * n, n)
        for j in range(n):
            shift_sum[j] = discount * shift_sum[j] + weight * p[j] * (1.0 - p[j])
            error = (1.0 if j == k else 0.0) - p[j]
            step = weight * error / (shift_sum[j] + options.start)
            shift[j] = min(max(shift[j] + step, -MAX_SHIFT), MAX_SHIFT)


# --- entry points


def pooled(state, experts):
    """Pool of the experts, whose masses are the rows of an array."""
    rules, flat, pool = state.rules, experts.reshape(-1), np.empty(state.rules.cells)
    if len(flat) != rules.rivals * rules.cells:
        raise ValueError(f"expected {rules.rivals} x {rules.cells} masses, got {len(flat)}")
    pool_masses(rules, state.pool, readable_of(flat), numbers_of(pool))
    return pool


def pool_round(state, round):
    """Fill the pool of the experts of a round."""
    pool_masses(state.rules, state.pool, round.experts, round.pool)


def mix_round(state, pending, round):
    """Fill the members and the prior of a round around its base forecast."""
    mix_members(state.rules, state, round.base, pending, round.members, round.prior)


def teach_round(state, round, weight, discount, k):
    """Update the pool and the members with an outcome in cell k; `discount` is that of the pool's losses."""
    learn_pool(state.rules, state.pool, round.experts, round.pool, weight, discount, k)
    teach_members(state.rules, state, round.base, round.members, weight, k)
