"""Compiled kernels of the committee's members: learners of the shape of the corrected expert's PIT.

Member m multiplies the prior by exp(sum_j theta_j phi_j(u)) with phi_j(u) = sqrt(2) cos(pi j u), and takes
natural-gradient steps on its log score.  This is moment matching with the witnesses phi_j, whose tilt is explicit: no
solver.  Some have the context (1, 2u - 1) of the last PIT; those with a larger smallest step forget.  They are mixed by
discounted CRPS, and what comes of it has to beat the corrected expert by evidence.
"""

from __future__ import annotations

import numpy as np

from orcast.constants import LOSS_DISCOUNT, MAX_TILT, WEIGHT_RATE
from orcast.engine.kernels.cells import crps, place
from orcast.engine.kernels.delays import delayed, horizon
from orcast.engine.kernels.evidence import add_evidence, prior_odds, share_of
from orcast.engine.kernels.records import BASIS, CellRow, MemberColumn, RoundInfo, ShapeRow, Statistic
from orcast.jit import kernel
from orcast.jit.ieee import exp, pi, sin, sqrt

# This much of the prior is always in the mix, so that no cell is ever without mass.
PRIOR_SHARE = 1e-4


@kernel
def cosine_mean(j, below, above):
    """Mean of phi_j over a share of the levels."""
    w = pi * (j + 1)
    return sqrt(2.0) * (sin(w * above) - sin(w * below)) / (w * max(above - below, 1e-12))


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
def mix_members(rules, memory, n, round, mix):
    """Each member's masses, their mix, and what comes of it and the corrected expert."""
    rows, means = round.cells, round.means
    count = rules.members.shape[0]
    pending = round.info[RoundInfo.PENDING]
    loss = memory.member_loss[horizon(pending)]
    best = loss[0]
    for m in range(1, count):
        best = min(best, loss[m])
    context = round.info[RoundInfo.LAST_CONTEXT]
    phi = np.empty((n, BASIS))
    basis_of(rules, n, round.info[RoundInfo.REGULAR], rows[CellRow.PRIOR], phi)
    theta = np.empty(BASIS)
    total = 0.0
    learnt = rows[CellRow.LEARNT]
    for k in range(n):
        learnt[k] = 0.0
    for m in range(count):
        for j in range(BASIS):
            theta[j] = memory.shape[m, ShapeRow.CONSTANT, j]
            if rules.members[m, MemberColumn.CONTEXT] > 0.0:
                theta[j] += context * memory.shape[m, ShapeRow.LAST_PIT, j]
            means[m, j] = 0.0
        mass = 0.0
        p = rows[CellRow.MEMBERS + m]
        for k in range(n):
            tilt = 0.0
            for j in range(BASIS):
                tilt += theta[j] * phi[k, j]
            p[k] = rows[CellRow.PRIOR, k] * exp(min(max(tilt, -MAX_TILT), MAX_TILT))
            mass += p[k]
        weight = exp(-WEIGHT_RATE * (loss[m] - best))
        total += weight
        for k in range(n):
            p[k] /= mass
            learnt[k] += weight * p[k]
            for j in range(BASIS):
                means[m, j] += p[k] * phi[k, j]
    share = min(share_of(memory.member_evidence[horizon(pending)], 0.0, prior_odds(pending)), 1.0 - PRIOR_SHARE)
    for k in range(n):
        learnt[k] /= total
        mix[k] = share * learnt[k] + (1.0 - share) * rows[CellRow.PRIOR, k]


@kernel
def teach_members(rules, memory, round, k, outcome):
    """Note what each member, their mix and the corrected expert lost, and let the members take their steps.

    The outcome lies in cell k.
    """
    rows = round.cells
    n = int(round.info[RoundInfo.CELLS])
    y, weight, unit = outcome.clipped, outcome.weight, outcome.unit
    left, right = rows[CellRow.LEFT], rows[CellRow.RIGHT]
    statistics = memory.statistics
    count = rules.members.shape[0]
    below = 0.0
    for j in range(k):
        below += rows[CellRow.PRIOR, j]
    above = below + rows[CellRow.PRIOR, k]
    statistics[Statistic.LAST_PIT] = below + place(y, k, left, right) * rows[CellRow.PRIOR, k]
    statistics[Statistic.OBSERVATIONS] += weight
    for j in range(BASIS):
        phi = rules.basis[k, j] if round.info[RoundInfo.REGULAR] > 0.0 else cosine_mean(j, below, above)
        for m in range(count):
            observations = statistics[Statistic.OBSERVATIONS] + rules.members[m, MemberColumn.START]
            step = weight * max(rules.members[m, MemberColumn.STEP], 1.0 / observations)
            change = step * (phi - round.means[m, j])
            memory.shape[m, ShapeRow.CONSTANT, j] += change
            if rules.members[m, MemberColumn.CONTEXT] > 0.0:
                # the context has variance 1/3 under a uniform PIT
                memory.shape[m, ShapeRow.LAST_PIT, j] += 3.0 * round.info[RoundInfo.LAST_CONTEXT] * change
    pending = round.info[RoundInfo.PENDING]
    losses = memory.member_loss[horizon(pending)]
    kept = delayed(LOSS_DISCOUNT, weight)
    for m in range(count):
        losses[m] = kept * losses[m] + weight * crps(y, k, n, left, right, rows[CellRow.MEMBERS + m]) / unit
    gain = crps(y, k, n, left, right, rows[CellRow.PRIOR]) - crps(y, k, n, left, right, rows[CellRow.LEARNT])
    add_evidence(memory.member_evidence[horizon(pending)], gain / unit, pending)
