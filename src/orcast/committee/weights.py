"""Weights of members by their regrets: Bernstein online aggregation with a prior, at the knots of the levels.

    log w_m = log p_m + eta R_m - eta^2 V_m,    eta_m = min(fastest, sqrt(log(1 / p_m) / V_m))

R and V are discounted sums of regrets r and of r^2 (Wintenberger 2017). The regret of a member at a level is
(1{y < q} - level) (q - q_m) with q the mix: the gradient of the pinball loss, so that the mix competes with every
convex combination of the members. It is in units of the base forecast's usual loss.
"""

LEAST_LOG = 0.7


def fill_weights(regret, square, log_prior, knots, members, active, fastest, out):
    """Weights of each member at each knot; their sum is 1. Those after the first `active` members have none."""
    for j in range(knots):
        best = -1e300
        for m in range(active):
            i = j * members + m
            eta = min(fastest, sqrt(max(-log_prior[m], LEAST_LOG) / (square[i] + 1e-9)))
            out[i] = log_prior[m] + eta * regret[i] - eta * eta * square[i]
            best = max(best, out[i])
        total = 0.0
        for m in range(active):
            i = j * members + m
            out[i] = exp(out[i] - best)
            total += out[i]
        for m in range(members):
            out[j * members + m] = out[j * members + m] / total if m < active else 0.0


def fill_regrets(plan, quantiles, members, mix, y, unit, out):
    """Regrets of members at the knots; `quantiles` has a row of levels for each."""
    k, knots = plan.level_count, plan.knot_count
    for i in range(knots * members):
        out[i] = 0.0
    for i in range(k):
        gradient = (1.0 if y < mix[i] else 0.0) - plan.levels[i]
        at, share = plan.knot_at[i], plan.knot_share[i]
        for m in range(members):
            r = gradient * (mix[i] - quantiles[m * k + i])
            out[at * members + m] += (1.0 - share) * r
            out[(at + 1) * members + m] += share * r
    for j in range(knots):
        scale = 1.0 / (plan.knot_full[j] * unit)
        for m in range(members):
            r = scale * out[j * members + m]
            out[j * members + m] = min(max(r, -plan.constants.clip), plan.constants.clip)


def add_regrets(regret, square, r, size, discount, weight, lag):
    """Add regrets; outcomes that overlap share one shock, so that a regret counts one over the lag."""
    kept = 1.0 + weight * (discount - 1.0)
    for i in range(size):
        each = r[i] / lag
        regret[i] = kept * regret[i] + weight * each
        square[i] = kept * square[i] + weight * each * each


def level_weight(plan, weights, members, i, m):
    """Weight of a member at a level, between the knots."""
    at = plan.knot_at[i] * members + m
    return weights[at] + plan.knot_share[i] * (weights[at + members] - weights[at])
