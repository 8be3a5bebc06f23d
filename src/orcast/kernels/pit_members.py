"""PIT members: learners of the distribution of the corrected expert's PIT.

Member m multiplies the prior by exp(sum_j theta_j phi_j(u)) with phi_j(u) = sqrt(2) cos(pi j u), and takes
natural-gradient steps on its log score: moment matching with the witnesses phi_j, whose tilt is explicit. Some have the
context (1, 2u - 1) of the last PIT; those with a larger smallest step forget. They are mixed by discounted CRPS, and
the mix is weighted by its evidence against the corrected expert.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import LOSS_DISCOUNT, MAX_TILT, WEIGHT_RATE

if not cython.compiled:
    from orcast.kernels.cells import crps, place
    from orcast.kernels.delays import delayed, horizon
    from orcast.kernels.evidence import add_evidence, prior_odds, share_of
    from orcast.kernels.pure import evidence_at, exp, sin, sqrt
    from orcast.kernels.rows import cut, mark, release, take
    from orcast.kernels.state import BASIS

PI = 3.141592653589793
# Smallest weight of the prior in the mix, so that no cell is without mass.
PRIOR_SHARE = 1e-4


def cosine_mean(j, below, above):
    """Mean of phi_j over an interval of levels."""
    w = PI * (j + 1)
    return sqrt(2.0) * (sin(w * above) - sin(w * below)) / (w * max(above - below, 1e-12))


def basis_of(rules, n, regular, prior, out):
    """Mean of each phi_j over each cell; from the cumulated masses where cells were merged or cut."""
    if regular > 0.0:
        for i in range(n * BASIS):
            out[i] = rules.basis[i]
        return
    below = 0.0
    for k in range(n):
        above = below + prior[k]
        for j in range(BASIS):
            out[k * BASIS + j] = cosine_mean(j, below, above)
        below = above


def mix_members(rules, memory, n, round, mix, w):
    """Masses of each member, their mix, and its average with the corrected expert."""
    used = mark(w)
    count = rules.member_count
    pending = round.info.pending
    loss = cut(memory.member_loss, horizon(pending) * count, count)
    best = loss[0]
    for m in range(1, count):
        best = min(best, loss[m])
    context = round.info.last_context
    phi = take(w, n * BASIS)
    basis_of(rules, n, round.info.regular, round.prior, phi)
    theta = take(w, BASIS)
    total = 0.0
    for k in range(n):
        round.learnt[k] = 0.0
    for m in range(count):
        shape, means = cut(memory.shape, 2 * m * BASIS, 2 * BASIS), cut(round.means, m * BASIS, BASIS)
        for j in range(BASIS):
            theta[j] = shape[j]
            if rules.members[m].context > 0.0:
                theta[j] += context * shape[BASIS + j]
            means[j] = 0.0
        mass = 0.0
        p = cut(round.members, m * rules.capacity, rules.capacity)
        for k in range(n):
            tilt = 0.0
            for j in range(BASIS):
                tilt += theta[j] * phi[k * BASIS + j]
            p[k] = round.prior[k] * exp(min(max(tilt, -MAX_TILT), MAX_TILT))
            mass += p[k]
        weight = exp(-WEIGHT_RATE * (loss[m] - best))
        total += weight
        for k in range(n):
            p[k] /= mass
            round.learnt[k] += weight * p[k]
            for j in range(BASIS):
                means[j] += p[k] * phi[k * BASIS + j]
    evidence = evidence_at(memory.member_evidence, horizon(pending))
    share = min(share_of(evidence, 0.0, prior_odds(pending)), 1.0 - PRIOR_SHARE)
    for k in range(n):
        round.learnt[k] /= total
        mix[k] = share * round.learnt[k] + (1.0 - share) * round.prior[k]
    release(w, used)


def teach_members(rules, memory, round, k, y, clipped, weight, unit, w):
    """Update the losses of the members, of their mix and of the corrected expert, and take the members' steps.

    The outcome lies in cell k.
    """
    n = int(round.info.cells)
    statistics = memory.statistics
    count = rules.member_count
    below = 0.0
    for j in range(k):
        below += round.prior[j]
    above = below + round.prior[k]
    statistics.last_pit = below + place(clipped, k, round.left, round.right) * round.prior[k]
    statistics.observations += weight
    for j in range(BASIS):
        phi = rules.basis[k * BASIS + j] if round.info.regular > 0.0 else cosine_mean(j, below, above)
        for m in range(count):
            observations = statistics.observations + rules.members[m].start
            step = weight * max(rules.members[m].step, 1.0 / observations)
            change = step * (phi - round.means[m * BASIS + j])
            memory.shape[2 * m * BASIS + j] += change
            if rules.members[m].context > 0.0:
                # the context has variance 1/3 under a uniform PIT
                memory.shape[(2 * m + 1) * BASIS + j] += 3.0 * round.info.last_context * change
    pending = round.info.pending
    losses = cut(memory.member_loss, horizon(pending) * count, count)
    kept = delayed(LOSS_DISCOUNT, weight)
    for m in range(count):
        p = cut(round.members, m * rules.capacity, rules.capacity)
        losses[m] = kept * losses[m] + weight * crps(clipped, k, n, round.left, round.right, p) / unit
    gain = crps(clipped, k, n, round.left, round.right, round.prior)
    gain -= crps(clipped, k, n, round.left, round.right, round.learnt)
    add_evidence(evidence_at(memory.member_evidence, horizon(pending)), gain / unit, pending)
