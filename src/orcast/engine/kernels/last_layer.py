"""Compiled kernels of the last layer: the equilibrium on the ledger of what is played, and its certificate."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from orcast import ledger as _ledger
from orcast.engine.kernels.cells import expected_crps, log_masses, mean_of, power_mean
from orcast.engine.kernels.equilibrium import certify, crps_difference, field_tables, power_table, solve, two_cells
from orcast.engine.kernels.pit_members import MAX_TILT
from orcast.engine.kernels.records import (
    COUNT,
    CRPS,
    EXPERT,
    HIGH,
    LEFT,
    LOSS,
    LOW,
    MEAN,
    MSE,
    PLAYED,
    PRIOR,
    RIGHT,
    SQUARE,
    TEMPERATURE,
    TILT,
    Array,
)
from orcast.jit import kernel

squared_norm = kernel(_ledger.squared_norm)
combine = kernel(_ledger.combine)
available_slack = kernel(_ledger.available_slack)
write_certificate = kernel(_ledger.write_certificate)

# With n outcomes outstanding the temperature rises by (1 + n)^SOFTEN: the same correction is applied once for each
# outstanding round before any effect is seen.
SOFTEN = 0.85
# The expert's own expectation counts as this many observations of its loss.
OWN_EXPECTATION_WEIGHT = 5.0
# The equilibrium: when it is good enough at first, and when the certificate asks for more.
EASY, EASY_STEPS = 0.01, 8
STRICT, STRICT_STEPS, TRUSTED = 1e-7, 30, 1e-3
CONTINUATION, LOWEST = 60, 1e-5


class Workspace(NamedTuple):
    """Scratch of one round: what the ledger owes and its tables, and what solving an equilibrium needs."""

    owed: Array
    factors: Array
    owed_knots: Array
    owed_slopes: Array
    witness: Array
    s: Array
    knots: Array
    slopes: Array
    base: Array
    width: Array
    middle: Array
    work: Array
    verdict: Array


@kernel
def level_ledger(rules, owed, scale, out):
    """What is owed on each level, by the quantiles and by the intervals that end there."""
    count = rules.levels.shape[0]
    for i in range(count):
        out[i] = owed[i] * scale
    for i in range(rules.intervals.shape[0]):
        out[rules.intervals[i, 0]] -= owed[count + i] * scale
        out[rules.intervals[i, 1]] += owed[count + i] * scale


@kernel
def payoff_size(rules, rivals):
    """Coordinates of the payoff before contexts."""
    return rules.levels.shape[0] + rules.intervals.shape[0] + rules.witnesses + rivals * (rules.crps + rules.mse)


@kernel
def new_workspace(rules, memory, n, round, witness):
    """A desk for n cells."""
    rows = round.cells
    count = rules.levels.shape[0]
    size = payoff_size(rules, round.rivals.shape[0])
    workspace = Workspace(
        np.empty(size),
        np.empty(size),
        np.empty(count + 1),
        np.empty(count + 1),
        witness,
        np.empty(count),
        np.empty(count + 1),
        np.empty(count + 1),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty((9, n + 2)),
        np.empty(2),
    )
    low, high = round.info[LOW], round.info[HIGH]
    combine(rules.layout, memory.total, round.context, rules.discount, workspace.owed, workspace.factors)
    level_ledger(rules, workspace.owed, 1.0, workspace.s)
    field_tables(workspace.s, rules.levels, workspace.owed_knots, workspace.owed_slopes)
    power_table(rules, low, high, n, rows[LEFT], rows[RIGHT], witness)
    for k in range(n):
        workspace.width[k] = rows[RIGHT, k] - rows[LEFT, k]
        workspace.middle[k] = (0.5 * (rows[LEFT, k] + rows[RIGHT, k]) - low) / (high - low)
    return workspace


@kernel
def regret_units(rules, memory, n, round, p):
    """Units of the regrets of p, known before the outcome: the expert's usual loss, or the most that can come.

    So no regret counts more than 1 in a round.  An expert that is missing has the unit zero.
    """
    if rules.crps == 0 and rules.mse == 0:
        return
    rows = round.cells
    left, right = rows[LEFT], rows[RIGHT]
    low, span = round.info[LOW], round.info[HIGH] - round.info[LOW]
    several = round.rivals.shape[0] > 1
    for e in range(round.rivals.shape[0]):
        round.units[CRPS, e] = 0.0
        round.units[MSE, e] = 0.0
        if several and np.isnan(round.experts[e + 1, 0]):
            continue
        expert = round.rivals[e]
        seen = memory.rivals[e, COUNT]
        if rules.crps:
            usual = OWN_EXPECTATION_WEIGHT * expected_crps(n, left, right, expert) + memory.rivals[e, LOSS]
            usual = max(usual / (OWN_EXPECTATION_WEIGHT + seen), 1e-9 * span)
            gap = crps_difference(left[0], 0, n, left, right, p, expert)
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
            round.units[CRPS, e] = 1.0 / max(usual, most)
        if rules.mse:
            mean_p = 0.0
            mean_x = 0.0
            variance = 0.0
            for k in range(n):
                a = (left[k] - low) / span
                b = (right[k] - low) / span
                mean_p += p[k] * 0.5 * (a + b)
                mean_x += expert[k] * 0.5 * (a + b)
                variance += expert[k] * power_mean(a, b, 2)
            usual = OWN_EXPECTATION_WEIGHT * max(variance - mean_x * mean_x, 0.0) + memory.rivals[e, SQUARE]
            usual = max(usual / (OWN_EXPECTATION_WEIGHT + seen), 1e-12)
            most = abs(mean_p - mean_x) * max(mean_p + mean_x, 2.0 - mean_p - mean_x)
            round.units[MSE, e] = 1.0 / max(usual, most)


@kernel
def prepare(rules, temperature, eager, n, round, log_prior, workspace):
    """Everything of the equilibrium equation that does not depend on p; returns the two pulls of the regrets.

    `eager` multiplies these: the pull back to the expert cannot overshoot, so delay need not soften it.
    """
    rows = round.cells
    base = workspace.base
    level_ledger(rules, workspace.owed, 1.0 / temperature, workspace.s)
    field_tables(workspace.s, rules.levels, workspace.knots, workspace.slopes)
    low, span = round.info[LOW], round.info[HIGH] - round.info[LOW]
    left, right = rows[LEFT], rows[RIGHT]
    for k in range(n):
        base[k] = log_prior[k]
    coordinate = rules.levels.shape[0] + rules.intervals.shape[0]
    for i in range(rules.witnesses):
        pull = workspace.owed[coordinate] / temperature
        coordinate += 1
        if pull != 0.0:
            for k in range(n):
                base[k] -= pull * workspace.witness[MEAN, i, k]
    crps_pull = 0.0
    mse_pull = 0.0
    if rules.crps:
        for e in range(round.rivals.shape[0]):
            pull = eager * workspace.owed[coordinate] * round.units[CRPS, e] / temperature
            coordinate += 1
            if pull > 0.0:
                crps_pull += pull
                edge = 0.0
                below = 0.0
                for k in range(n):
                    width = right[k] - left[k]
                    mass = round.rivals[e, k]
                    base[k] -= pull * (edge + width * (below + mass / 3.0 - 0.5))
                    edge += width * (2.0 * below + mass - 1.0)
                    below += mass
    if rules.mse:
        for e in range(round.rivals.shape[0]):
            pull = eager * workspace.owed[coordinate] * round.units[MSE, e] / temperature
            coordinate += 1
            if pull > 0.0:
                mse_pull += pull
                mean = (mean_of(n, left, right, round.rivals[e]) - low) / span
                for k in range(n):
                    base[k] += 2.0 * pull * mean * workspace.middle[k]
    return crps_pull, mse_pull


@kernel
def judge(rules, memory, n, round, p, free, square, workspace):
    """The certificate of p; returns how far it is from holding (at most 0: it holds)."""
    certificate = round.certificate
    out = workspace.verdict
    mass = 0.0
    for k in range(n):
        mass += p[k]
    if not abs(mass - 1.0) < 1e-6:
        # not a forecast (a solve ran away): nothing may be claimed for it
        write_certificate(memory.account, rules.discount, square, free, np.inf, 0.0, rules.bound, certificate)
        return np.inf
    regret_units(rules, memory, n, round, p)
    certify(rules, n, round, p, workspace, out)
    write_certificate(memory.account, rules.discount, square, free, out[0], out[1], rules.bound, certificate)
    return (
        0.0
        if certificate[_ledger.CertificateField.HOLDS] > 0.0
        else certificate[_ledger.CertificateField.WORST] - certificate[_ledger.CertificateField.ALLOWED]
    )


@kernel
def equilibrium(rules, temperature, eager, n, round, log_prior, workspace, lp, tolerance, steps):
    """The logit equilibrium around a prior at a temperature, from lp, in place; returns the residual."""
    crps_pull, mse_pull = prepare(rules, temperature, eager, n, round, log_prior, workspace)
    return solve(
        n,
        lp,
        workspace.base,
        rules.levels,
        workspace.knots,
        workspace.slopes,
        crps_pull,
        workspace.width,
        mse_pull,
        workspace.middle,
        tolerance,
        steps,
        workspace.work,
    )


@kernel
def descend(rules, memory, temperature, n, round, log_prior, log_mix, free, square, workspace, start, missing, best):
    """Lower the temperature from a solution at `start` until the certificate holds; returns what is still missing.

    Each solve starts from the last; where one fails, the ratio comes closer to 1.  The best forecast is kept in `best`.
    """
    p = round.cells[PLAYED]
    lp = np.empty(n)
    ratio = 0.5
    for _ in range(CONTINUATION):
        lower = temperature * ratio
        for k in range(n):
            lp[k] = start[k]
        error = equilibrium(rules, lower, 1.0, n, round, log_prior, workspace, lp, STRICT, STRICT_STEPS)
        for k in range(n):
            p[k] = math.exp(lp[k])
        now = judge(rules, memory, n, round, p, free, square, workspace)
        if now < missing:
            missing = now
            for k in range(n):
                best[k] = p[k]
                round.cells[TILT, k] = min(max(lp[k] - log_mix[k], -MAX_TILT), MAX_TILT)
            round.info[TEMPERATURE] = lower
        if missing <= 0.0:
            break
        if error > TRUSTED and ratio < 0.98:
            ratio = math.sqrt(ratio)
            continue
        temperature = lower
        for k in range(n):
            start[k] = lp[k]
        if temperature < LOWEST * min(rules.temperature, 1.0):
            break
    return missing


@kernel
def play(rules, memory, n, mix, pending, reserved, round, witness):
    """The equilibrium around the mix on the ledger of what is played, as gentle as the slack rule lets it be.

    If the certificate does not hold at the usual temperature, it is lowered by continuation.  A branch of equilibria
    may end; then other priors, whose branches are others, are tried.  Last comes the two-cell oracle, exact for
    quantiles alone (and while no regret is owed).  What holds, or comes closest, is played.
    """
    rows = round.cells
    p = rows[PLAYED]
    regret_units(rules, memory, n, round, mix)
    workspace = new_workspace(rules, memory, n, round, witness)
    square = squared_norm(rules.layout.sides, memory.total)
    free = available_slack(
        rules.layout, memory.account, memory.groups, memory.total, square, round.context, rules.discount, reserved
    )
    soft = (1.0 + pending) ** SOFTEN
    usual = rules.temperature * soft
    log_mix = np.empty(n)
    log_masses(n, mix, log_mix)
    lp = log_mix.copy()
    for i in range(round.slots.shape[0]):
        lp[round.slots[i]] = log_mix[round.slots[i]] + memory.warm[i]
    error = equilibrium(rules, usual, soft, n, round, log_mix, workspace, lp, EASY, EASY_STEPS)
    if not error <= 10.0 * EASY:
        cold = log_mix.copy()
        if equilibrium(rules, usual, soft, n, round, log_mix, workspace, cold, EASY, STRICT_STEPS) < error:
            lp = cold
    for k in range(n):
        p[k] = math.exp(lp[k])
        rows[TILT, k] = lp[k] - log_mix[k]
    round.info[TEMPERATURE] = usual
    missing = judge(rules, memory, n, round, p, free, square, workspace)
    if missing <= 0.0:
        return
    best = p[:n].copy()
    missing = descend(rules, memory, usual, n, round, log_mix, log_mix, free, square, workspace, lp, missing, best)
    log_prior = np.empty(n)
    for attempt in range(3):
        if missing <= 0.0:
            return
        for k in range(n):
            if attempt == 0:
                log_prior[k] = math.log(rows[PRIOR, k])
            elif attempt == 1:
                log_prior[k] = math.log(max(rows[EXPERT, k], 1e-12))
            else:
                log_prior[k] = -math.log(n)
            lp[k] = log_prior[k]
        # from a temperature so high that the prior itself is almost the solution
        hot = 1e3 * min(usual, 10.0)
        missing = descend(rules, memory, hot, n, round, log_prior, log_mix, free, square, workspace, lp, missing, best)
    if missing <= 0.0:
        return
    two_cells(n, rules.levels, workspace.owed_knots, workspace.owed_slopes, p)
    if judge(rules, memory, n, round, p, free, square, workspace) < missing:
        round.info[TEMPERATURE] = 0.0
        return
    for k in range(n):
        p[k] = best[k]
    judge(rules, memory, n, round, p, free, square, workspace)


@kernel
def rejudge(rules, memory, n, round, reserved, witness):
    """The certificate of what a round plays, however it was found; returns how far it is from holding."""
    workspace = new_workspace(rules, memory, n, round, witness)
    square = squared_norm(rules.layout.sides, memory.total)
    free = available_slack(
        rules.layout, memory.account, memory.groups, memory.total, square, round.context, rules.discount, reserved
    )
    return judge(rules, memory, n, round, round.cells[PLAYED], free, square, workspace)
