"""Compiled kernels of the committee on finite spaces: learners that temper and shift the expert's log masses.

Where the space has axes, the expert x is first shifted and stretched along them (see dense/axes.py).  Member m plays
p_k ~ x_k^(1 + a) exp(b_k) and takes Newton-like steps on its log score: a has the curvature
Var_p(log x), b_k the curvature p_k (1 - p_k), both summed with forgetting, so that early steps are bold and late ones
small.  The mix weighs them and the expert by discounted log score; so does the pool of experts.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from orcast.constants import LOG_LOSS_RATE, LOSS_DISCOUNT, MAX_TILT, MOST_LOG_BEHIND, MOST_LOG_LOSS
from orcast.engine.kernels.delays import delay_odds, delay_weight, delayed
from orcast.engine.kernels.records import Array
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


class FiniteInfo(IntEnum):
    """Numbers of a round."""

    PENDING = 0
    TEMPERATURE = 1
    HAS_EXPERT = 2


FINITE_INFO = len(FiniteInfo)


class FiniteMemory(NamedTuple):
    """What is carried from round to round."""

    scale: Array
    scale_sum: Array
    shift: Array
    shift_sum: Array
    loss: Array
    pool: Array
    warm: Array


class FiniteRound(NamedTuple):
    """What a round must remember."""

    experts: Array  # a row each, nan where missing
    pool: Array
    moved: Array  # the pool as the learners of each axis move it, a row each
    base: Array  # what the members start from
    members: Array
    mix: Array
    played: Array
    info: Array


@entry_kernel
def pool_experts(memory, experts, pending, round):
    """Fill the pool of the experts; the memory is only read."""
    n = round.pool.shape[0]
    round.info[FiniteInfo.PENDING] = pending
    round.info[FiniteInfo.HAS_EXPERT] = 1.0 if experts.shape[0] > 0 else 0.0
    if experts.shape[0] == 0:
        for k in range(n):
            round.pool[k] = 1.0 / n
            round.base[k] = 1.0 / n
            round.mix[k] = 1.0 / n
        return
    round.experts[:] = experts
    best = np.inf
    for e in range(experts.shape[0]):
        if not np.isnan(experts[e, 0]):
            best = min(best, memory.pool[e])
    total = 0.0
    for k in range(n):
        round.pool[k] = 0.0
    for e in range(experts.shape[0]):
        if not np.isnan(experts[e, 0]):
            weight = exp(-LOG_LOSS_RATE * (memory.pool[e] - best))
            total += weight
            for k in range(n):
                round.pool[k] += weight * experts[e, k]
    for k in range(n):
        round.pool[k] /= total
        round.base[k] = round.pool[k]


@entry_kernel
def mix_members(members, memory, pending, round):
    """Fill the members' masses and their mix; the memory is only read."""
    count, n = members.shape[0], round.pool.shape[0]
    if round.info[FiniteInfo.HAS_EXPERT] == 0.0:
        return
    best = memory.loss[count]
    for m in range(count):
        best = min(best, memory.loss[m])
    own = exp(-LOG_LOSS_RATE * (memory.loss[count] - best))
    odds = delay_odds(pending)
    for k in range(n):
        round.mix[k] = own * round.base[k]
    total = own
    for m in range(count):
        top = -np.inf
        for k in range(n):
            value = (1.0 + memory.scale[m]) * log(max(round.base[k], FLOOR)) + memory.shift[m, k]
            round.members[m, k] = value
            top = max(top, value)
        mass = 0.0
        for k in range(n):
            round.members[m, k] = exp(round.members[m, k] - top)
            mass += round.members[m, k]
        weight = odds * exp(-LOG_LOSS_RATE * (memory.loss[m] - best))
        total += weight
        for k in range(n):
            round.members[m, k] /= mass
            round.mix[k] += weight * round.members[m, k]
    for k in range(n):
        round.mix[k] = (1.0 - EVEN) * round.mix[k] / total + EVEN / n


@kernel
def loss_of(mass):
    """Clipped log score."""
    return min(-log(max(mass, 1e-300)), MOST_LOG_LOSS)


@entry_kernel
def teach(members, memory, round, k):
    """Teach the members that the outcome lies in cell k."""
    count, n = members.shape[0], round.pool.shape[0]
    for j in range(n):
        memory.warm[j] = log(max(round.played[j], 1e-300)) - log(max(round.mix[j], 1e-300))
        memory.warm[j] = min(max(memory.warm[j], -MAX_TILT), MAX_TILT)
    if round.info[FiniteInfo.HAS_EXPERT] == 0.0:
        return
    weight = delay_weight(round.info[FiniteInfo.PENDING])
    kept = delayed(LOSS_DISCOUNT, weight)
    pooled = loss_of(round.pool[k])
    best = np.inf
    for e in range(round.experts.shape[0]):
        best = min(best, memory.pool[e])
    for e in range(round.experts.shape[0]):
        own = pooled if np.isnan(round.experts[e, 0]) else loss_of(round.experts[e, k])
        memory.pool[e] = kept * min(memory.pool[e], best + MOST_LOG_BEHIND) + weight * own
    memory.loss[count] = kept * memory.loss[count] + weight * loss_of(round.base[k])
    for m in range(count):
        p = round.members[m]
        memory.loss[m] = kept * memory.loss[m] + weight * loss_of(p[k])
        discount = delayed(members[m, FiniteMember.DISCOUNT], weight)
        mean = 0.0
        square = 0.0
        for j in range(n):
            log_x = log(max(round.base[j], FLOOR))
            mean += p[j] * log_x
            square += p[j] * log_x * log_x
        memory.scale_sum[m] = discount * memory.scale_sum[m] + weight * max(square - mean * mean, 0.0)
        error = log(max(round.base[k], FLOOR)) - mean
        step = weight * error / (memory.scale_sum[m] + members[m, FiniteMember.START])
        memory.scale[m] = min(max(memory.scale[m] + step, LOW_SCALE), HIGH_SCALE)
        if members[m, FiniteMember.SHIFTS] == 0.0:
            continue
        for j in range(n):
            memory.shift_sum[m, j] = discount * memory.shift_sum[m, j] + weight * p[j] * (1.0 - p[j])
            error = (1.0 if j == k else 0.0) - p[j]
            step = weight * error / (memory.shift_sum[m, j] + members[m, FiniteMember.START])
            memory.shift[m, j] = min(max(memory.shift[m, j] + step, -MAX_SHIFT), MAX_SHIFT)
