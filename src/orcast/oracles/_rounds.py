"""Compiled kernels of a round on an interval: predict, update, and many rounds in one go.

    expert --tracker--> corrected expert --cells--> prior --members--> mix --last equilibrium--> forecast

The members learn the shape of the corrected expert's PIT: member m multiplies the prior by exp(sum_j theta_j phi_j(u))
with phi_j(u) = sqrt(2) cos(pi j u), and takes natural-gradient steps on its log score.  This is moment matching with
the witnesses phi_j, whose tilt is explicit: no solver.  Some have the context (1, 2u - 1) of the last PIT; those with
a larger smallest step forget.  The mix weighs them, the corrected expert and the expert by discounted CRPS.  One last
equilibrium on the ledger of what is really played carries the guarantee.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.oracles import _tracker
from orcast.oracles._cells import (
    build_cells,
    crps,
    expected_crps,
    locate,
    log_masses,
    mean_of,
    place,
    power_mean,
    read_quantiles,
    rebin,
)
from orcast.oracles._ordered import (
    CRPS,
    MOMENT,
    MSE,
    QUANTILE,
    certify,
    field_tables,
    payoff,
    solve,
    two_cells,
)
from orcast.spaces import TAIL_MASS

Array = NDArray[np.float64]

squared_norm = njit(cache=True)(_ledger.squared_norm)
note_certificate = njit(cache=True)(_ledger.note_certificate)
settle = njit(cache=True)(_ledger.settle)

# Members and weights.
STEP, CONTEXT, START = 0, 1, 2
BASIS = 8
LOSS_KEEP = 0.998
WEIGHT_RATE = 2.0
MAX_TILT = 6.0
# Delay, by the number n of outstanding outcomes.  Losses are kept apart for n = 0, n < STALE and more; what was learnt
# must prove itself against the expert, with prior odds (1 + n)^-DOUBT; the last layer's temperature rises by
# (1 + n)^SOFTEN, because its correction is applied once for each outstanding round before any effect is seen.
STALE, HORIZONS = 16.0, 3
DOUBT, SOFTEN = 0.5, 0.85
# This much of the prior is always in the mix, so that no cell is ever without mass.
PRIOR_SHARE = 1e-4
# Prior mass of the atom at each bound, without an expert.
BOUND_MASS = 1e-4
# The expert's own expectation counts as this many observations of its loss.
OWN_WORD = 5.0
# The equilibrium: when it is good enough at first, and when the certificate asks for more.
EASY, EASY_STEPS = 0.01, 8
STRICT, STRICT_STEPS, TRUSTED = 1e-7, 30, 1e-3
CONTINUATION, LOWEST = 60, 1e-5

# Rows of a round's cells.
LEFT, RIGHT, PRIOR, EXPERT, PLAYED, TILT, MEMBERS = 0, 1, 2, 3, 4, 5, 6
# Places in a round's info.
CELLS, LAST_CONTEXT, PENDING, CRPS_SCALE, MSE_SCALE, HAS_EXPERT, TEMPERATURE = 0, 1, 2, 3, 4, 5, 6
INFO_SIZE = 7


class Rules(NamedTuple):
    """What does not change from round to round."""

    low: float
    high: float
    grid: Array  # levels of the inner edges
    scores: Array  # their normal scores
    tail_cells: int
    levels: Array
    orders: int
    weights: Array
    one_sided: int
    bound: float  # on the squared norm of the whole payoff
    temperature: float
    learners: Array
    members: Array
    basis: Array  # mean of each phi_j over each unmerged cell's share of the levels


class Memory(NamedTuple):
    """What is carried from round to round; its size is constant."""

    total: Array
    account: Array
    tally: Array
    location: Array
    location_cov: Array
    spread: Array
    fit: Array
    fit_cov: Array
    track_loss: Array
    shape: Array
    member_loss: Array
    warm: Array


class Round(NamedTuple):
    """What a forecast must remember until its outcome comes."""

    cells: Array
    slots: NDArray[np.int64]
    info: Array
    note: Array
    record: Array
    means: Array
    expert: Array


@njit(cache=True, error_model="numpy")
def horizon(pending):
    """Which account of losses a round belongs to: what helps while outcomes are fresh may harm once they are stale."""
    if pending < 1.0:
        return 0
    return 1 if pending < STALE else 2


@njit(cache=True, error_model="numpy")
def even_cells(low, high, n, rows, slots):
    """Equal cells with equal masses and an atom of little mass at each bound: the prior when there is no expert."""
    count = n - 2
    for k in range(n):
        rows[LEFT, k] = low + (high - low) * max(k - 1, 0) / count if k < n - 1 else high
        rows[RIGHT, k] = low + (high - low) * k / count if k < n - 2 else high
        rows[PRIOR, k] = (1.0 - 2.0 * BOUND_MASS) / count if 0 < k < n - 1 else BOUND_MASS
        rows[EXPERT, k] = rows[PRIOR, k]
        slots[k] = k
    return n


@njit(cache=True, error_model="numpy")
def basis_of(rules, n, slots, prior, out):
    """Mean of each phi_j over each cell; merged cells average theirs."""
    total = slots.shape[0]
    if n == total:
        for k in range(n):
            for j in range(BASIS):
                out[k, j] = rules.basis[k, j]
        return
    # Exact means from the cumulated masses where atoms merged.
    below = 0.0
    for k in range(n):
        above = below + prior[k]
        for j in range(BASIS):
            w = math.pi * (j + 1)
            out[k, j] = math.sqrt(2.0) * (math.sin(w * above) - math.sin(w * below)) / (w * max(prior[k], 1e-12))
        below = above


@njit(cache=True, error_model="numpy")
def mix_members(rules, memory, n, doubt, rnd, mix):
    """Each member's masses, and their mix with the corrected expert and the expert."""
    rows = rnd.cells
    count = rules.members.shape[0]
    loss = memory.member_loss[horizon(rnd.info[PENDING])]
    best = loss[0]
    for m in range(1, count + 2):
        best = min(best, loss[m])
    context = rnd.info[LAST_CONTEXT]
    phi = np.empty((n, BASIS))
    basis_of(rules, n, rnd.slots, rows[PRIOR], phi)
    theta = np.empty(BASIS)
    total = 0.0
    for k in range(n):
        mix[k] = 0.0
    for m in range(count):
        for j in range(BASIS):
            theta[j] = memory.shape[m, 0, j]
            if rules.members[m, CONTEXT] > 0.0:
                theta[j] += context * memory.shape[m, 1, j]
            rnd.means[m, j] = 0.0
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
                rnd.means[m, j] += p[k] * phi[k, j]
    own = doubt * math.exp(-WEIGHT_RATE * (loss[count] - best))
    raw = math.exp(-WEIGHT_RATE * (loss[count + 1] - best))
    total += own + raw
    for k in range(n):
        blend = (mix[k] + own * rows[PRIOR, k] + raw * rows[EXPERT, k]) / total
        mix[k] = (1.0 - PRIOR_SHARE) * blend + PRIOR_SHARE * rows[PRIOR, k]


@njit(cache=True, error_model="numpy")
def regret_scales(rules, memory, n, rows, p, info):
    """Units of the regrets of p, known before the outcome: the expert's usual loss, or the most that can come.

    So no regret counts more than 1 in a round.
    """
    info[CRPS_SCALE] = 0.0
    info[MSE_SCALE] = 0.0
    if rules.weights[CRPS] == 0.0 and rules.weights[MSE] == 0.0:
        return
    span = rules.high - rules.low
    seen = memory.tally[_tracker.LOSS_COUNT]
    left, right, expert = rows[LEFT], rows[RIGHT], rows[EXPERT]
    if rules.weights[CRPS] != 0.0:
        usual = OWN_WORD * expected_crps(n, left, right, expert) + memory.tally[_tracker.LOSS_SUM]
        usual = max(usual / (OWN_WORD + seen), 1e-9 * span)
        gap = 0.0
        F = 0.0
        G = 0.0
        for k in range(n):
            F1 = F + p[k]
            G1 = G + expert[k]
            width = right[k] - left[k]
            squares = (F * F + F * F1 + F1 * F1 - G * G - G * G1 - G1 * G1) / 3.0
            gap += width * (squares - (F + F1 - G - G1))
            F = F1
            G = G1
        most = abs(gap)
        F = 0.0
        for k in range(n):
            # the slope of the difference is 2 (F - G), linear within the cell
            F1 = F + p[k] - expert[k]
            width = right[k] - left[k]
            if F * F1 < 0.0:
                most = max(most, abs(gap + width * F * F / (F - F1)))
            gap += width * (F + F1)
            most = max(most, abs(gap))
            F = F1
        info[CRPS_SCALE] = 1.0 / max(usual, most)
    if rules.weights[MSE] != 0.0:
        mean_p = (mean_of(n, left, right, p) - rules.low) / span
        mean_x = (mean_of(n, left, right, expert) - rules.low) / span
        variance = 0.0
        for k in range(n):
            a = (left[k] - rules.low) / span
            b = (right[k] - rules.low) / span
            variance += expert[k] * power_mean(a, b, 2)
        usual = OWN_WORD * max(variance - mean_x * mean_x, 0.0) + memory.tally[_tracker.SQUARE_SUM]
        usual = max(usual / (OWN_WORD + seen), 1e-12)
        most = abs(mean_p - mean_x) * max(mean_p + mean_x, 2.0 - mean_p - mean_x)
        info[MSE_SCALE] = 1.0 / max(usual, most)


@njit(cache=True, error_model="numpy")
def prepare(rules, total, temperature, eager, n, rows, log_prior, scales, s, knots, slopes, base):
    """Everything of the equilibrium equation that does not depend on p; returns the two pulls of the regrets.

    `eager` multiplies these: the pull back to the expert cannot overshoot, so delay need not soften it.
    """
    count = rules.levels.shape[0]
    for i in range(count):
        s[i] = total[i] * rules.weights[QUANTILE] / temperature
    field_tables(s, rules.levels, knots, slopes)
    span = rules.high - rules.low
    left, right, expert = rows[LEFT], rows[RIGHT], rows[EXPERT]
    for k in range(n):
        base[k] = log_prior[k]
    for order in range(1, rules.orders + 1):
        pull = total[count + order - 1] * rules.weights[MOMENT] / temperature
        for k in range(n):
            a = (left[k] - rules.low) / span
            b = (right[k] - rules.low) / span
            base[k] -= pull * power_mean(a, b, order)
    at = count + rules.orders
    crps_pull = 0.0
    mse_pull = 0.0
    if rules.weights[CRPS] != 0.0:
        crps_pull = eager * max(total[at], 0.0) * rules.weights[CRPS] * scales[0] / temperature
        at += 1
        if crps_pull > 0.0:
            edge = 0.0
            below = 0.0
            for k in range(n):
                width = right[k] - left[k]
                base[k] -= crps_pull * (edge + width * (below + expert[k] / 3.0 - 0.5))
                edge += width * (2.0 * below + expert[k] - 1.0)
                below += expert[k]
    if rules.weights[MSE] != 0.0:
        mse_pull = eager * max(total[at], 0.0) * rules.weights[MSE] * scales[1] / temperature
        if mse_pull > 0.0:
            mean = (mean_of(n, left, right, expert) - rules.low) / span
            for k in range(n):
                base[k] += 2.0 * mse_pull * mean * (0.5 * (left[k] + right[k]) - rules.low) / span
    return crps_pull, mse_pull


@njit(cache=True, error_model="numpy")
def judge(rules, memory, n, rnd, p, reserved, square, knots, slopes, out):
    """The certificate of p; returns how far it is from holding (at most 0: it holds)."""
    rows = rnd.cells
    note = rnd.note
    regret_scales(rules, memory, n, rows, p, rnd.info)
    certify(
        n,
        rows[LEFT],
        rows[RIGHT],
        p,
        rows[EXPERT],
        memory.total,
        rules.low,
        rules.high,
        rules.levels,
        knots,
        slopes,
        rules.orders,
        rules.weights,
        rnd.info[CRPS_SCALE : MSE_SCALE + 1],
        out,
    )
    note_certificate(memory.account, square, reserved, out[0], out[1], out[2], rules.bound, note)
    return 0.0 if note[_ledger.HOLDS] > 0.0 else square + out[1] - note[_ledger.ALLOWED]


@njit(cache=True, error_model="numpy")
def play(rules, memory, n, mix, pending, reserved, rnd):
    """The equilibrium around the mix on the ledger of what is played, as gentle as the slack rule lets it be.

    If the certificate does not hold at the usual temperature, lower it by continuation, each solve started from
    the last and the ratio brought closer to 1 where a solve fails.  A branch of equilibria may end; then other priors,
    whose branches are others, are tried.  Last comes the two-cell oracle, exact for quantiles alone (and while no
    regret is owed); what holds, or comes closest, is played.
    """
    rows = rnd.cells
    count = rules.levels.shape[0]
    p = rows[PLAYED]
    log_mix = np.empty(n)
    log_masses(n, mix, log_mix)
    log_prior = log_mix.copy()
    base = np.empty(n)
    lp = np.empty(n)
    good = np.empty(n)
    width = np.empty(n)
    middle = np.empty(n)
    work = np.empty((9, n + 2))
    s = np.empty(count)
    knots = np.empty(count + 1)
    slopes = np.empty(count + 1)
    owed_knots = np.empty(count + 1)
    owed_slopes = np.empty(count + 1)
    field_tables(memory.total, rules.levels, owed_knots, owed_slopes)
    scales = rnd.info[CRPS_SCALE : MSE_SCALE + 1]
    out = np.empty(4)
    span = rules.high - rules.low
    for k in range(n):
        width[k] = rows[RIGHT, k] - rows[LEFT, k]
        middle[k] = (0.5 * (rows[LEFT, k] + rows[RIGHT, k]) - rules.low) / span
    square = squared_norm(memory.total, rules.one_sided)
    usual = rules.temperature * (1.0 + pending) ** SOFTEN
    crps_pull, mse_pull = prepare(
        rules, memory.total, usual, (1.0 + pending) ** SOFTEN, n, rows, log_prior, scales, s, knots, slopes, base
    )
    for i in range(rnd.slots.shape[0]):
        lp[rnd.slots[i]] = log_prior[rnd.slots[i]] + memory.warm[i]
    error = solve(n, lp, base, rules.levels, knots, slopes, crps_pull, width, mse_pull, middle, EASY, EASY_STEPS, work)
    if error > 10.0 * EASY:
        for k in range(n):
            good[k] = lp[k]
            lp[k] = log_prior[k]
        other = solve(
            n,
            lp,
            base,
            rules.levels,
            knots,
            slopes,
            crps_pull,
            width,
            mse_pull,
            middle,
            EASY,
            STRICT_STEPS,
            work,
        )
        if other > error:
            for k in range(n):
                lp[k] = good[k]
    for k in range(n):
        p[k] = math.exp(lp[k])
        rows[TILT, k] = lp[k] - log_mix[k]
        good[k] = lp[k]
    rnd.info[TEMPERATURE] = usual
    missing = judge(rules, memory, n, rnd, p, reserved, square, owed_knots, owed_slopes, out)
    if missing <= 0.0:
        return
    best = p[:n].copy()
    for attempt in range(4):
        temperature = usual
        if attempt > 0:
            # start from a temperature so high that the prior itself is almost the solution
            temperature = 1e3 * usual
            for k in range(n):
                if attempt == 1:
                    log_prior[k] = math.log(rows[PRIOR, k])
                elif attempt == 2:
                    log_prior[k] = math.log(max(rows[EXPERT, k], 1e-12))
                else:
                    log_prior[k] = -math.log(n)
                good[k] = log_prior[k]
        ratio = 0.5
        for _ in range(CONTINUATION):
            lower = temperature * ratio
            crps_pull, mse_pull = prepare(
                rules, memory.total, lower, 1.0, n, rows, log_prior, scales, s, knots, slopes, base
            )
            for k in range(n):
                lp[k] = good[k]
            error = solve(
                n,
                lp,
                base,
                rules.levels,
                knots,
                slopes,
                crps_pull,
                width,
                mse_pull,
                middle,
                STRICT,
                STRICT_STEPS,
                work,
            )
            for k in range(n):
                p[k] = math.exp(lp[k])
            now = judge(rules, memory, n, rnd, p, reserved, square, owed_knots, owed_slopes, out)
            if now < missing:
                missing = now
                for k in range(n):
                    best[k] = p[k]
                    rows[TILT, k] = min(max(lp[k] - log_mix[k], -MAX_TILT), MAX_TILT)
                rnd.info[TEMPERATURE] = lower
            if missing <= 0.0:
                return
            if error > TRUSTED and ratio < 0.98:
                ratio = math.sqrt(ratio)
                continue
            temperature = lower
            for k in range(n):
                good[k] = lp[k]
            if temperature < LOWEST * rules.temperature:
                break
    two_cells(n, rules.levels, owed_knots, owed_slopes, p)
    now = judge(rules, memory, n, rnd, p, reserved, square, owed_knots, owed_slopes, out)
    if now < missing:
        rnd.info[TEMPERATURE] = 0.0
        return
    for k in range(n):
        p[k] = best[k]
    judge(rules, memory, n, rnd, p, reserved, square, owed_knots, owed_slopes, out)


@njit(cache=True, error_model="numpy")
def predict(rules, memory, expert, pending, reserved, rnd):
    """Fill the round: cells, prior, members, the forecast to play and its certificate.  The memory is only read."""
    rows = rnd.cells
    info = rnd.info
    has_expert = expert.shape[0] > 0
    info[HAS_EXPERT] = 1.0 if has_expert else 0.0
    info[PENDING] = pending
    info[LAST_CONTEXT] = 2.0 * memory.tally[_tracker.LAST_PIT] - 1.0
    low, high = rules.low, rules.high
    doubt = (1.0 + pending) ** -DOUBT
    if has_expert:
        clipped = np.empty(expert.shape[0])
        for j in range(expert.shape[0]):
            rnd.expert[j] = expert[j]
            clipped[j] = min(max(expert[j], low), high)
        if rules.learners.shape[0] > 0:
            total = rnd.slots.shape[0]
            scratch = np.empty((3, total))
            n_raw = build_cells(
                clipped,
                low,
                high,
                rules.tail_cells,
                TAIL_MASS,
                scratch[0],
                scratch[1],
                scratch[2],
                rnd.slots,
            )
            shifted = np.empty(expert.shape[0])
            _tracker.track(
                rnd.expert,
                rules.scores,
                low,
                high,
                rules.learners,
                memory.track_loss[horizon(pending)],
                doubt,
                memory,
                rnd.record,
                shifted,
            )
            n = build_cells(
                shifted,
                low,
                high,
                rules.tail_cells,
                TAIL_MASS,
                rows[LEFT],
                rows[RIGHT],
                rows[PRIOR],
                rnd.slots,
            )
            rebin(n_raw, scratch[0], scratch[1], scratch[2], n, rows[LEFT], rows[RIGHT], rows[EXPERT])
        else:
            n = build_cells(
                clipped,
                low,
                high,
                rules.tail_cells,
                TAIL_MASS,
                rows[LEFT],
                rows[RIGHT],
                rows[PRIOR],
                rnd.slots,
            )
            for k in range(n):
                rows[EXPERT, k] = rows[PRIOR, k]
    else:
        n = even_cells(low, high, rnd.slots.shape[0], rows, rnd.slots)
    info[CELLS] = n
    mix = np.empty(n)
    if has_expert and rules.members.shape[0] > 0:
        mix_members(rules, memory, n, doubt, rnd, mix)
    else:
        for k in range(n):
            mix[k] = rows[PRIOR, k]
    regret_scales(rules, memory, n, rows, mix, info)
    play(rules, memory, n, mix, pending, reserved, rnd)


@njit(cache=True, error_model="numpy")
def update(rules, memory, rnd, reserved, y):
    """Book the outcome of a round and teach the learners and members."""
    rows = rnd.cells
    info = rnd.info
    n = int(info[CELLS])
    left, right = rows[LEFT], rows[RIGHT]
    k = locate(y, left, right, n)
    owed = np.empty(memory.total.shape[0])
    payoff(
        y,
        k,
        n,
        left,
        right,
        rows[PLAYED],
        rows[EXPERT],
        rules.low,
        rules.high,
        rules.levels,
        rules.orders,
        rules.weights,
        info[CRPS_SCALE : MSE_SCALE + 1],
        owed,
    )
    settle(memory.account, memory.total, rules.one_sided, reserved, owed, rnd.note)
    for i in range(rnd.slots.shape[0]):
        memory.warm[i] = rows[TILT, rnd.slots[i]]
    if info[HAS_EXPERT] == 0.0:
        return
    tally = memory.tally
    span = rules.high - rules.low
    loss = crps(y, k, n, left, right, rows[EXPERT])
    error = (y - mean_of(n, left, right, rows[EXPERT])) / span
    tally[_tracker.LOSS_SUM] = LOSS_KEEP * tally[_tracker.LOSS_SUM] + loss
    tally[_tracker.SQUARE_SUM] = LOSS_KEEP * tally[_tracker.SQUARE_SUM] + error * error
    tally[_tracker.LOSS_COUNT] = LOSS_KEEP * tally[_tracker.LOSS_COUNT] + 1.0
    weight = 1.0 / math.sqrt(1.0 + info[PENDING])
    unit = max(tally[_tracker.LOSS_SUM] / tally[_tracker.LOSS_COUNT], 1e-12 * span)
    count = rules.members.shape[0]
    account = horizon(info[PENDING])
    if count > 0:
        losses = memory.member_loss[account]
        fade = 1.0 - (1.0 - LOSS_KEEP) * weight
        below = 0.0
        for j in range(k):
            below += rows[PRIOR, j]
        tally[_tracker.LAST_PIT] = below + place(y, k, left, right) * rows[PRIOR, k]
        tally[_tracker.LEARNT] += weight
        above = below + rows[PRIOR, k]
        for j in range(BASIS):
            w = math.pi * (j + 1)
            phi = math.sqrt(2.0) * (math.sin(w * above) - math.sin(w * below)) / (w * max(rows[PRIOR, k], 1e-12))
            for m in range(count):
                step = weight * max(rules.members[m, STEP], 1.0 / (tally[_tracker.LEARNT] + rules.members[m, START]))
                change = step * (phi - rnd.means[m, j])
                memory.shape[m, 0, j] += change
                if rules.members[m, CONTEXT] > 0.0:
                    # the context has variance 1/3 under a uniform PIT
                    memory.shape[m, 1, j] += 3.0 * info[LAST_CONTEXT] * change
        for m in range(count):
            own = crps(y, k, n, left, right, rows[MEMBERS + m])
            losses[m] = fade * losses[m] + weight * own / unit
        own = crps(y, k, n, left, right, rows[PRIOR])
        losses[count] = fade * losses[count] + weight * own / unit
        losses[count + 1] = fade * losses[count + 1] + weight * loss / unit
    if rules.learners.shape[0] > 0:
        _tracker.learn(
            y,
            rnd.expert,
            rules.scores,
            rules.grid,
            rules.low,
            rules.high,
            rules.learners,
            memory.track_loss[account],
            LOSS_KEEP,
            0.5 * unit,
            weight,
            memory,
            rnd.record,
        )


@njit(cache=True, error_model="numpy")
def run(rules, memory, experts, outcomes, levels, rnd, quantiles, held):
    """Many rounds in one go, each outcome known before the next forecast; reads the quantiles at `levels` of each."""
    for t in range(outcomes.shape[0]):
        predict(rules, memory, experts[t], 0, 0.0, rnd)
        n = int(rnd.info[CELLS])
        read_quantiles(n, rnd.cells[LEFT], rnd.cells[RIGHT], rnd.cells[PLAYED], levels, quantiles[t])
        held[t] = rnd.note[_ledger.HOLDS]
        update(rules, memory, rnd, 0.0, outcomes[t])
