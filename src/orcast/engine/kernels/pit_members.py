"""Compiled kernels of the committee's members: learners of the shape of the corrected expert's PIT.

Member m multiplies the prior by exp(sum_j theta_j phi_j(u)) with phi_j(u) = sqrt(2) cos(pi j u), and takes
natural-gradient steps on its log score.  This is moment matching with the witnesses phi_j, whose tilt is explicit: no
solver.  Some have the context (1, 2u - 1) of the last PIT; those with a larger smallest step forget.  The mix weighs
them, the corrected expert and the expert by discounted CRPS.
"""

from __future__ import annotations

import math

import numpy as np

from orcast.engine.kernels import tracker
from orcast.engine.kernels.cells import crps, place
from orcast.engine.kernels.records import (
    BASIS,
    CELLS,
    CONTEXT,
    EXPERT,
    LAST_CONTEXT,
    LEFT,
    LOSS_DISCOUNT,
    MEMBERS,
    PENDING,
    PRIOR,
    REGULAR,
    RIGHT,
    START,
    STEP,
)
from orcast.jit import kernel

WEIGHT_RATE = 2.0
MAX_TILT = 6.0
# This much of the prior is always in the mix, so that no cell is ever without mass.
PRIOR_SHARE = 1e-4
# With fewer outcomes outstanding than this, there are fresh ones to learn from.
STALE = 16.0


@kernel
def horizon(pending):
    """Which account of losses a round belongs to: what helps while outcomes are fresh may harm once they are stale."""
    if pending < 1.0:
        return 0
    return 1 if pending < STALE else 2


@kernel
def cosine_mean(j, below, above):
    """Mean of phi_j over a share of the levels."""
    w = math.pi * (j + 1)
    return math.sqrt(2.0) * (math.sin(w * above) - math.sin(w * below)) / (w * max(above - below, 1e-12))


@kernel
def basis_of(rules, n, regular, prior, out):
    """Mean of each phi_j over each cell."""
    if regular > 0.0:
        for k in range(n):
            for j in range(BASIS):
                out[k, j] = rules.basis[k, j]
        return
    # From the cumulated masses where cells were merged or cut.
    below = 0.0
    for k in range(n):
        above = below + prior[k]
        for j in range(BASIS):
            out[k, j] = cosine_mean(j, below, above)
        below = above


@kernel
def mix_members(rules, memory, n, doubt, round, mix):
    """Each member's masses, and their mix with the corrected expert and the expert."""
    rows = round.cells
    count = rules.members.shape[0]
    loss = memory.member_loss[horizon(round.info[PENDING])]
    best = loss[0]
    for m in range(1, count + 2):
        best = min(best, loss[m])
    context = round.info[LAST_CONTEXT]
    phi = np.empty((n, BASIS))
    basis_of(rules, n, round.info[REGULAR], rows[PRIOR], phi)
    theta = np.empty(BASIS)
    total = 0.0
    for k in range(n):
        mix[k] = 0.0
    for m in range(count):
        for j in range(BASIS):
            theta[j] = memory.shape[m, 0, j]
            if rules.members[m, CONTEXT] > 0.0:
                theta[j] += context * memory.shape[m, 1, j]
            round.means[m, j] = 0.0
        mass = 0.0
        p = rows[MEMBERS + m]
        for k in range(n):
            tilt = 0.0
            for j in range(BASIS):
                tilt += theta[j] * phi[k, j]
            p[k] = rows[PRIOR, k] * math.exp(min(max(tilt, -MAX_TILT), MAX_TILT))
            mass += p[k]
        weight = doubt * math.exp(-WEIGHT_RATE * (loss[m] - best))
        total += weight
        for k in range(n):
            p[k] /= mass
            mix[k] += weight * p[k]
            for j in range(BASIS):
                round.means[m, j] += p[k] * phi[k, j]
    own = doubt * math.exp(-WEIGHT_RATE * (loss[count] - best))
    raw = math.exp(-WEIGHT_RATE * (loss[count + 1] - best))
    total += own + raw
    for k in range(n):
        blend = (mix[k] + own * rows[PRIOR, k] + raw * rows[EXPERT, k]) / total
        mix[k] = (1.0 - PRIOR_SHARE) * blend + PRIOR_SHARE * rows[PRIOR, k]


@kernel
def teach_members(rules, memory, round, y, k, expert_loss, unit, weight):
    """Book what each member, the corrected expert and the expert lost, and let the members take their steps."""
    rows = round.cells
    n = int(round.info[CELLS])
    left, right = rows[LEFT], rows[RIGHT]
    statistics = memory.statistics
    count = rules.members.shape[0]
    below = 0.0
    for j in range(k):
        below += rows[PRIOR, j]
    above = below + rows[PRIOR, k]
    statistics[tracker.LAST_PIT] = below + place(y, k, left, right) * rows[PRIOR, k]
    statistics[tracker.LEARNT] += weight
    for j in range(BASIS):
        phi = rules.basis[k, j] if round.info[REGULAR] > 0.0 else cosine_mean(j, below, above)
        for m in range(count):
            step = weight * max(rules.members[m, STEP], 1.0 / (statistics[tracker.LEARNT] + rules.members[m, START]))
            change = step * (phi - round.means[m, j])
            memory.shape[m, 0, j] += change
            if rules.members[m, CONTEXT] > 0.0:
                # the context has variance 1/3 under a uniform PIT
                memory.shape[m, 1, j] += 3.0 * round.info[LAST_CONTEXT] * change
    losses = memory.member_loss[horizon(round.info[PENDING])]
    fade = 1.0 - (1.0 - LOSS_DISCOUNT) * weight
    for m in range(count):
        losses[m] = fade * losses[m] + weight * crps(y, k, n, left, right, rows[MEMBERS + m]) / unit
    losses[count] = fade * losses[count] + weight * crps(y, k, n, left, right, rows[PRIOR]) / unit
    losses[count + 1] = fade * losses[count + 1] + weight * expert_loss / unit
