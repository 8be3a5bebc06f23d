"""Compiled kernels of the last layer: the equilibrium on the ledger of what is played, and its certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orcast.constants import (
    CLOSEST_RATIO,
    CONTINUATION,
    DELAY_TEMPERATURE,
    EASY,
    EASY_STEPS,
    LOWEST,
    MAX_TILT,
    OWN_EXPECTATION_WEIGHT,
    STRICT,
    STRICT_STEPS,
    TRUSTED,
)
from orcast.engine.kernels.cells import expected_crps, log_masses, mean_of, power_mean
from orcast.engine.kernels.certificate import certify, regret_standing, resolution
from orcast.engine.kernels.equilibrium import (
    SCRATCH_ROWS,
    LogitField,
    crps_difference,
    field_tables,
    power_table,
    solve,
)
from orcast.engine.kernels.path_search import (
    LEAST_FALL,
    WEIGHTS,
    Paths,
    add_mse_tilt,
    best_path,
    crps_pull,
    field_of_pairs,
    fill_grid,
    grid_size,
    witness_tilts,
)
from orcast.engine.kernels.records import Array, CellRow, RegretScore, RivalColumn, RoundInfo, Statistic, WitnessRow
from orcast.jit import entry_kernel, kernel, kernel_part
from orcast.jit.ieee import exp, log, real_power, sqrt
from orcast.ledger import Account, CertificateField, available_slack, combine, squared_norm, write_certificate

# How many times the chance of a calibrated forecaster it takes until the ledger is answered at the usual temperature.
CHANCE = 6.0
# The temperature falls as soon as less than this share of the budget is left, to this share at least.
FIRM, LEAST_SOFT = 0.5, 0.02
# Steps towards the nearest forecast that holds.
NEAREST = 4


class Workspace(NamedTuple):
    """Scratch of one round: what the ledger owes and its tables, the slack, and what solving an equilibrium needs."""

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
    work: Array  # of Newton's method
    standing: Array  # sums of the regrets, for the certificate
    reach: Array
    by_cell: Array
    gaps: Array
    means: Array
    square: float  # ||S||_+^2
    free: float  # the slack that the round may use


class BestForecast(NamedTuple):
    """What comes closest to a certificate so far."""

    missing: Array  # one number: how far it is from holding
    p: Array
    log_mix: Array  # the prior of the last layer


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
def new_workspace(rules, memory, round, reserved, witness):
    """Scratch for the cells of a round; pending rounds have `reserved` so much of the slack."""
    rows = round.cells
    n = int(round.info[RoundInfo.CELLS])
    count = rules.levels.shape[0]
    size = payoff_size(rules, round.rivals.shape[0])
    square = squared_norm(rules.layout.sides, memory.total)
    free = available_slack(
        rules.layout, memory.account, memory.groups, memory.total, square, round.context, rules.discount, reserved
    )
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
        np.empty((SCRATCH_ROWS, n + 2)),
        np.empty(size),
        np.empty(size),
        np.empty((3, n)),
        np.empty((round.rivals.shape[0], n)),
        np.empty((round.rivals.shape[0], 2)),
        square,
        free,
    )
    low, high = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH]
    combine(rules.layout, memory.total, round.context, rules.discount, workspace.owed, workspace.factors)
    regret_standing(rules.layout, memory.total, round.context, rules.discount, workspace.standing, workspace.reach)
    level_ledger(rules, workspace.owed, 1.0, workspace.s)
    field_tables(workspace.s, rules.levels, workspace.owed_knots, workspace.owed_slopes)
    power_table(rules, low, high, n, rows[CellRow.LEFT], rows[CellRow.RIGHT], witness)
    for k in range(n):
        workspace.width[k] = rows[CellRow.RIGHT, k] - rows[CellRow.LEFT, k]
        workspace.middle[k] = (0.5 * (rows[CellRow.LEFT, k] + rows[CellRow.RIGHT, k]) - low) / (high - low)
    return workspace


@kernel
def regret_units(rules, memory, n, round, p):
    """Units of the regrets of p, known before the outcome: the expert's usual loss, or the most that can come.

    So no regret counts more than 1 in a round.  An expert that is missing has the unit zero.
    """
    if rules.crps == 0 and rules.mse == 0:
        return
    rows = round.cells
    left, right = rows[CellRow.LEFT], rows[CellRow.RIGHT]
    low, span = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] - round.info[RoundInfo.LOW]
    several = round.rivals.shape[0] > 1
    for e in range(round.rivals.shape[0]):
        round.units[RegretScore.CRPS, e] = 0.0
        round.units[RegretScore.MSE, e] = 0.0
        if several and np.isnan(round.experts[e + 1, 0]):
            continue
        expert = round.rivals[e]
        seen = memory.rivals[e, RivalColumn.COUNT]
        if rules.crps:
            usual = OWN_EXPECTATION_WEIGHT * expected_crps(n, left, right, expert) + memory.rivals[e, RivalColumn.CRPS]
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
            round.units[RegretScore.CRPS, e] = 1.0 / max(usual, most)
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
            usual = (
                OWN_EXPECTATION_WEIGHT * max(variance - mean_x * mean_x, 0.0)
                + memory.rivals[e, RivalColumn.SQUARED_ERROR]
            )
            usual = max(usual / (OWN_EXPECTATION_WEIGHT + seen), 1e-12)
            most = abs(mean_p - mean_x) * max(mean_p + mean_x, 2.0 - mean_p - mean_x)
            round.units[RegretScore.MSE, e] = 1.0 / max(usual, most)


@kernel
def prepare(rules, temperature, eager, round, log_prior, workspace):
    """Everything of the equilibrium equation that does not depend on p; returns the field of the rest.

    `eager` multiplies these: the pull back to the expert cannot overshoot, so delay need not soften it.
    """
    rows = round.cells
    n = log_prior.shape[0]
    base = workspace.base
    level_ledger(rules, workspace.owed, 1.0 / temperature, workspace.s)
    field_tables(workspace.s, rules.levels, workspace.knots, workspace.slopes)
    low, span = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] - round.info[RoundInfo.LOW]
    left, right = rows[CellRow.LEFT], rows[CellRow.RIGHT]
    for k in range(n):
        base[k] = log_prior[k]
    coordinate = rules.levels.shape[0] + rules.intervals.shape[0]
    for i in range(rules.witnesses):
        pull = workspace.owed[coordinate] / temperature
        coordinate += 1
        if pull != 0.0:
            for k in range(n):
                base[k] -= pull * workspace.witness[WitnessRow.MEAN, i, k]
    crps_pull = 0.0
    mse_pull = 0.0
    if rules.crps:
        for e in range(round.rivals.shape[0]):
            pull = eager * workspace.owed[coordinate] * round.units[RegretScore.CRPS, e] / temperature
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
            pull = eager * workspace.owed[coordinate] * round.units[RegretScore.MSE, e] / temperature
            coordinate += 1
            if pull > 0.0:
                mse_pull += pull
                mean = (mean_of(n, left, right, round.rivals[e]) - low) / span
                for k in range(n):
                    base[k] += 2.0 * pull * mean * workspace.middle[k]
    return LogitField(
        rules.levels, workspace.knots, workspace.slopes, crps_pull, workspace.width, mse_pull, workspace.middle
    )


@kernel
def judge(rules, memory, round, p, workspace):
    """The certificate of p; returns how far it is from holding (at most 0: it holds)."""
    certificate, square, free = round.certificate, workspace.square, workspace.free
    n = int(round.info[RoundInfo.CELLS])
    mass = 0.0
    for k in range(n):
        mass += p[k]
    if not abs(mass - 1.0) < 1e-6:
        # not a forecast (a solve ran away): nothing may be claimed for it
        write_certificate(memory.account, rules.discount, square, free, np.inf, 0.0, rules.bound, certificate)
        return np.inf
    regret_units(rules, memory, n, round, p)
    linear, bound = certify(rules, n, round, p, workspace)
    write_certificate(memory.account, rules.discount, square, free, linear, bound, rules.bound, certificate)
    if certificate[CertificateField.HOLDS] > 0.0:
        return 0.0
    return certificate[CertificateField.WORST] - certificate[CertificateField.ALLOWED]


@kernel
def allow_resolution(rules, memory, n, round, p, workspace):
    """Let the promise of the round grow by what the cells cannot tell apart, as far as the forecast needs it.

    On the means over cells some forecast always wins the half-space; within a cell an outcome may do worse than the
    mean by the resolution of the cell, and no forecast on these cells can prevent it (docs/theory.md).
    """
    certificate = round.certificate
    linear = certificate[CertificateField.WORST] - rules.discount * rules.discount * workspace.square
    needed = linear - certificate[CertificateField.BOUND] - workspace.free
    needed = min(needed, 2.0 * resolution(rules, n, round, p, workspace))
    bound = certificate[CertificateField.BOUND] + max(needed, 0.0)
    write_certificate(
        memory.account, rules.discount, workspace.square, workspace.free, linear, bound, rules.bound, certificate
    )


@kernel
def equilibrium(rules, temperature, eager, round, log_prior, workspace, lp, tolerance, steps):
    """The logit equilibrium around a prior at a temperature, from lp, in place; returns the residual."""
    field = prepare(rules, temperature, eager, round, log_prior, workspace)
    return solve(lp.shape[0], lp, workspace.base, field, tolerance, steps, workspace.work)


@kernel
def descend(rules, memory, temperature, round, log_prior, start, workspace, best):
    """Lower the temperature from a solution at `start` until the certificate holds, or the branch ends.

    Each solve starts from the last; where one fails, the ratio comes closer to 1.
    """
    p = round.cells[CellRow.PLAYED]
    n = start.shape[0]
    lp = np.empty(n)
    ratio = 0.5
    for _ in range(CONTINUATION):
        lower = temperature * ratio
        for k in range(n):
            lp[k] = start[k]
        error = equilibrium(rules, lower, 1.0, round, log_prior, workspace, lp, STRICT, STRICT_STEPS)
        for k in range(n):
            p[k] = exp(lp[k])
        keep_if_better(best, judge(rules, memory, round, p, workspace), lp, lower, round)
        if best.missing[0] <= 0.0:
            approach(rules, memory, lower, temperature, round, log_prior, start, workspace, best)
            break
        if error > TRUSTED and ratio < CLOSEST_RATIO:
            ratio = sqrt(ratio)
            continue
        temperature = lower
        for k in range(n):
            start[k] = lp[k]
        if temperature < LOWEST * min(rules.temperature, 1.0):
            break


@kernel
def approach(rules, memory, lower, higher, round, log_prior, start, workspace, best):
    """Play the forecast nearest to the prior that holds, between two temperatures of which the lower one does."""
    p = round.cells[CellRow.PLAYED]
    n = start.shape[0]
    lp = np.empty(n)
    for _ in range(NEAREST):
        middle = sqrt(lower * higher)
        for k in range(n):
            lp[k] = start[k]
        equilibrium(rules, middle, 1.0, round, log_prior, workspace, lp, STRICT, STRICT_STEPS)
        for k in range(n):
            p[k] = exp(lp[k])
        if judge(rules, memory, round, p, workspace) > 0.0:
            higher = middle
            continue
        lower = middle
        keep(best, lp, lower, round)
    for k in range(n):
        p[k] = best.p[k]
    judge(rules, memory, round, p, workspace)


@kernel_part
def keep(best, lp, temperature, round):
    """Keep what is played, at log masses lp."""
    for k in range(lp.shape[0]):
        best.p[k] = round.cells[CellRow.PLAYED, k]
        round.cells[CellRow.TILT, k] = min(max(lp[k] - best.log_mix[k], -MAX_TILT), MAX_TILT)
    round.info[RoundInfo.TEMPERATURE] = temperature


@kernel
def keep_if_better(best, missing, lp, temperature, round):
    """Keep what is played, at log masses lp, if less is missing than from the best so far."""
    if missing < best.missing[0]:
        best.missing[0] = missing
        keep(best, lp, temperature, round)


@kernel_part
def chance_softness(statistics, pending, square):
    """How much gentler a committee answers a ledger that chance may have made; overlapping errors are one."""
    chance = CHANCE * (1.0 + pending) * statistics[Statistic.SQUARES]
    return 1.0 + chance / max(square, 1e-3 * chance + 1e-300)


@kernel_part
def first_solution(rules, memory, round, log_mix, workspace):
    """Log masses of the equilibrium at the usual temperature, from the last tilt; from the mix where that fails."""
    soft = real_power(1.0 + round.info[RoundInfo.PENDING], DELAY_TEMPERATURE)
    if rules.members.shape[0] > 0:
        soft *= chance_softness(memory.statistics, round.info[RoundInfo.PENDING], workspace.square)
        # before the promise binds the answer becomes firm: what is played where it does may be far from the prior
        left = 1.0 - workspace.square / memory.account[Account.BUDGET]
        soft *= min(max(left / FIRM, LEAST_SOFT), 1.0)
    usual = rules.temperature * soft
    round.info[RoundInfo.TEMPERATURE] = usual
    lp = log_mix.copy()
    for i in range(round.slots.shape[0]):
        lp[round.slots[i]] = log_mix[round.slots[i]] + memory.warm[i]
    error = equilibrium(rules, usual, soft, round, log_mix, workspace, lp, EASY, EASY_STEPS)
    if not error <= 10.0 * EASY:
        cold = log_mix.copy()
        if equilibrium(rules, usual, soft, round, log_mix, workspace, cold, EASY, STRICT_STEPS) < error:
            lp = cold
    return lp


@kernel
def search_paths(rules, memory, mix, thorough, round, workspace, best):
    """Search all forecasts on a grid for one that holds.

    Between it and the mix, the nearest to the mix that holds is played.
    """
    n = mix.shape[0]
    levels, knots, slopes = rules.levels, workspace.owed_knots, workspace.owed_slopes
    points = np.empty(grid_size(levels.shape[0]) + 3)
    total = fill_grid(levels, knots, slopes, points)
    fields = np.empty((total, total))
    steps = np.empty((n, total), dtype=np.int64)
    tilts = np.empty((3, n))
    cumulated = np.empty(n + 1)
    witness_tilts(rules, n, round, workspace, tilts[0], tilts[1])
    pull, same = crps_pull(rules, n, round, workspace, cumulated)
    masses = best.p.copy()
    stages = 1
    if thorough:
        stages = 4 if pull > 0.0 else 2
    for stage in range(stages):
        # squared payoffs below the largest are slack that a path may use; which is the largest is known too late
        share = 1.0 if stage == 1 else 0.0
        size, norm = field_of_pairs(points, total, levels, knots, slopes, workspace.factors, share, fields)
        paths = Paths(points[:total], fields, tilts, cumulated, pull, WEIGHTS[stage], same, size, norm, steps)
        search_grid(rules, memory, paths, round, workspace, masses, best)
        if best.missing[0] <= 0.0:
            mix_in(rules, memory, mix, masses, round, workspace, best)
            return


@kernel
def search_grid(rules, memory, paths, round, workspace, masses, best):
    """Lower the bound until a path holds, or none is left."""
    p, n = round.cells[CellRow.PLAYED], masses.shape[0]
    mean, tilt, most = paths.tilts
    lp = np.empty(n)
    bound = np.inf
    fall = LEAST_FALL * paths.size
    for _ in range(rules.effort):
        for k in range(n):
            most[k] = tilt[k]
        slack = 0.5 * workspace.free + paths.norm - paths.same
        slack -= add_mse_tilt(rules, n, round, workspace, masses, most)
        if bound == np.inf:
            bound = mean[0]
            for k in range(1, n):
                bound = max(bound, mean[k])
            bound += max(slack, 0.0) + fall
        value = best_path(paths, workspace.width, bound, masses)
        if value == -np.inf:
            break
        for k in range(n):
            p[k] = masses[k]
            lp[k] = log(max(masses[k], 1e-300))
        keep_if_better(best, judge(rules, memory, round, p, workspace), lp, 0.0, round)
        if best.missing[0] <= 0.0:
            break
        bound = min(value + slack, bound) - fall
        fall *= 2.0


@kernel
def mix_in(rules, memory, mix, masses, round, workspace, best):
    """Mix into masses that hold as much of the mix as they bear."""
    p, n = round.cells[CellRow.PLAYED], mix.shape[0]
    lp = np.empty(n)
    share = 0.0
    step = 0.5
    for _ in range(NEAREST + 2):
        for k in range(n):
            p[k] = (share + step) * mix[k] + (1.0 - share - step) * masses[k]
            lp[k] = log(max(p[k], 1e-300))
        if judge(rules, memory, round, p, workspace) <= 0.0:
            share += step
            keep(best, lp, 0.0, round)
        step *= 0.5
    for k in range(n):
        p[k] = best.p[k]
    judge(rules, memory, round, p, workspace)


@entry_kernel
def play(rules, memory, mix, reserved, thorough, round, witness):
    """The equilibrium around the mix on the ledger of what is played, as gentle as the slack rule lets it be.

    If the certificate does not hold at the usual temperature, it is lowered by continuation.  A branch of equilibria
    may end; then all forecasts on a grid are searched, more thoroughly where no other cells will be tried.  What
    holds, or comes closest, is played.
    """
    rows = round.cells
    p, n = rows[CellRow.PLAYED], mix.shape[0]
    regret_units(rules, memory, n, round, mix)
    workspace = new_workspace(rules, memory, round, reserved, witness)
    log_mix = np.empty(n)
    log_masses(n, mix, log_mix)
    lp = first_solution(rules, memory, round, log_mix, workspace)
    for k in range(n):
        p[k] = exp(lp[k])
        rows[CellRow.TILT, k] = lp[k] - log_mix[k]
    missing = judge(rules, memory, round, p, workspace)
    if missing <= 0.0:
        return
    usual = round.info[RoundInfo.TEMPERATURE]
    best = BestForecast(np.array([missing]), p[:n].copy(), log_mix)
    descend(rules, memory, usual, round, log_mix, lp, workspace, best)
    if best.missing[0] <= 0.0:
        return
    search_paths(rules, memory, mix, thorough, round, workspace, best)
    if best.missing[0] <= 0.0:
        return
    for k in range(n):
        p[k] = best.p[k]
    judge(rules, memory, round, p, workspace)
    if thorough:
        allow_resolution(rules, memory, n, round, p, workspace)
