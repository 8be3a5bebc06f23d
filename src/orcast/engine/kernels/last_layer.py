"""Compiled kernels of the last layer: the equilibrium on the ledger of what is played, and its certificate."""

from __future__ import annotations

import numpy as np

from orcast.constants import (
    CLOSEST_RATIO,
    CONTINUATION,
    DELAY_TEMPERATURE,
    EASY,
    EASY_STEPS,
    LOWEST,
    STRICT,
    STRICT_STEPS,
    TRUSTED,
)
from orcast.engine.kernels.cells import log_masses, mean_of
from orcast.engine.kernels.equilibrium import LogitField, field_tables, solve
from orcast.engine.kernels.judging import (
    BestForecast,
    allow_resolution,
    judge,
    keep,
    keep_if_better,
    level_ledger,
    new_workspace,
    regret_units,
)
from orcast.engine.kernels.path_search import NEAREST, search_paths
from orcast.engine.kernels.records import CellRow, RegretScore, RoundInfo, Statistic, WitnessRow
from orcast.jit import entry_kernel, kernel, kernel_part
from orcast.jit.ieee import exp, real_power, sqrt
from orcast.ledger import Account

# How many times the chance of a calibrated forecaster it takes until the ledger is answered at the usual temperature.
CHANCE = 6.0
# The temperature falls as soon as less than this share of the budget is left, to this share at least.
FIRM, LEAST_SOFT = 0.5, 0.02


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
def try_experts(rules, memory, round, workspace, best):
    """Judge each expert's own forecast: it has no regret, where an equilibrium has a tiny one at any temperature."""
    p, n = round.cells[CellRow.PLAYED], best.p.shape[0]
    lp = np.empty(n)
    for e in range(round.rivals.shape[0]):
        if rules.crps + rules.mse == 0 or best.missing[0] <= 0.0:
            return
        for k in range(n):
            p[k] = round.rivals[e, k]
        log_masses(n, p, lp)
        keep_if_better(best, judge(rules, memory, round, p, workspace), lp, 0.0, round)


@entry_kernel
def play(rules, memory, mix, reserved, thorough, round, witness):
    """The equilibrium around the mix on the ledger of what is played, as gentle as the slack rule lets it be.

    If the certificate does not hold at the usual temperature, it is lowered by continuation.  A branch of equilibria
    may end; then all forecasts on a grid are searched, more thoroughly where no other cells will be tried, and last the
    experts' own forecasts.  What holds, or comes closest, is played.
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
    try_experts(rules, memory, round, workspace, best)
    if best.missing[0] <= 0.0:
        return
    for k in range(n):
        p[k] = best.p[k]
    judge(rules, memory, round, p, workspace)
    if thorough:
        allow_resolution(rules, memory, n, round, p, workspace)
