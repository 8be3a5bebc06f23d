"""Compiled kernels of the committee on finite spaces of several cells: members that temper and shift the expert.

Where the space has axes, the expert x is first shifted and stretched along them (see dense/axes.py).  Member m plays
p_k ~ x_k^(1 + a) exp(b_k) and takes Newton-like steps on its log score: a has the curvature
Var_p(log x), b_k the curvature p_k (1 - p_k), both summed with forgetting, so that early steps are bold and late ones
small.  The mix weighs them and the expert by discounted log score; so does the pool of experts.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from orcast.constants import LOG_LOSS_RATE, LOSS_DISCOUNT, MOST_LOG_BEHIND, MOST_LOG_LOSS
from orcast.engine.kernels.delays import delay_odds, delayed
from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import exp, log

# Masses below this are raised to it before logarithms are taken.
FLOOR = 1e-6
# A scaling stays within these bounds, a shift within MAX_SHIFT.
LOW_SCALE, HIGH_SCALE, MAX_SHIFT = -0.9, 3.0, 4.0
# This much even mass is always in the mix, so that no cell is ever without.
EVEN = 1e-4


class FiniteMember(IntEnum):
    """What a member is made of."""

    DISCOUNT = 0  # its memory
    SHIFTS = 1  # whether it shifts
    START = 2  # prior observations of its curvatures


@entry_kernel
def pool_masses(losses, experts, pool):
    """Fill the mean of the experts' masses, weighted by their discounted log losses; nan where one is missing."""
    best = np.inf
    for e in range(experts.shape[0]):
        if not np.isnan(experts[e, 0]):
            best = min(best, losses[e])
    total = 0.0
    pool[:] = 0.0
    for e in range(experts.shape[0]):
        if not np.isnan(experts[e, 0]):
            weight = exp(-LOG_LOSS_RATE * (losses[e] - best))
            total += weight
            for k in range(pool.shape[0]):
                pool[k] += weight * experts[e, k]
    for k in range(pool.shape[0]):
        pool[k] /= total


@entry_kernel
def learn_pool(losses, experts, pool, weight, discount, k):
    """Add the log losses of an outcome in cell k; an expert that is missing has that of the pool."""
    kept = delayed(discount, weight)
    best = np.inf
    for e in range(experts.shape[0]):
        best = min(best, losses[e])
    for e in range(experts.shape[0]):
        own = loss_of(pool[k] if np.isnan(experts[e, 0]) else experts[e, k])
        losses[e] = kept * min(losses[e], best + MOST_LOG_BEHIND) + weight * own


@entry_kernel
def mix_members(options, memory, base, pending, masses, mix):
    """Fill the masses of the members around the base forecast, and their mix; the memory is only read."""
    count, n = options.shape[0], base.shape[0]
    best = memory.loss[count]
    for m in range(count):
        best = min(best, memory.loss[m])
    odds = delay_odds(pending)
    own = exp(-LOG_LOSS_RATE * (memory.loss[count] - best))
    for k in range(n):
        mix[k] = own * base[k]
    total = own
    for m in range(count):
        top = -np.inf
        for k in range(n):
            value = (1.0 + memory.scale[m]) * log(max(base[k], FLOOR)) + memory.shift[m, k]
            masses[m, k] = value
            top = max(top, value)
        mass = 0.0
        for k in range(n):
            masses[m, k] = exp(masses[m, k] - top)
            mass += masses[m, k]
        weight = odds * exp(-LOG_LOSS_RATE * (memory.loss[m] - best))
        total += weight
        for k in range(n):
            masses[m, k] /= mass
            mix[k] += weight * masses[m, k]
    for k in range(n):
        mix[k] = (1.0 - EVEN) * mix[k] / total + EVEN / n


@kernel
def loss_of(mass):
    """Clipped log score."""
    return min(-log(max(mass, 1e-300)), MOST_LOG_LOSS)


@entry_kernel
def teach_members(options, memory, base, masses, weight, k):
    """Update the members with an outcome in cell k."""
    count, n = options.shape[0], base.shape[0]
    kept = delayed(LOSS_DISCOUNT, weight)
    memory.loss[count] = kept * memory.loss[count] + weight * loss_of(base[k])
    for m in range(count):
        p = masses[m]
        memory.loss[m] = kept * memory.loss[m] + weight * loss_of(p[k])
        discount = delayed(options[m, FiniteMember.DISCOUNT], weight)
        mean = 0.0
        square = 0.0
        for j in range(n):
            log_x = log(max(base[j], FLOOR))
            mean += p[j] * log_x
            square += p[j] * log_x * log_x
        memory.scale_sum[m] = discount * memory.scale_sum[m] + weight * max(square - mean * mean, 0.0)
        error = log(max(base[k], FLOOR)) - mean
        step = weight * error / (memory.scale_sum[m] + options[m, FiniteMember.START])
        memory.scale[m] = min(max(memory.scale[m] + step, LOW_SCALE), HIGH_SCALE)
        if options[m, FiniteMember.SHIFTS] == 0.0:
            continue
        for j in range(n):
            memory.shift_sum[m, j] = discount * memory.shift_sum[m, j] + weight * p[j] * (1.0 - p[j])
            error = (1.0 if j == k else 0.0) - p[j]
            step = weight * error / (memory.shift_sum[m, j] + options[m, FiniteMember.START])
            memory.shift[m, j] = min(max(memory.shift[m, j] + step, -MAX_SHIFT), MAX_SHIFT)
