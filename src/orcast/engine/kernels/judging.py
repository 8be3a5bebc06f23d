"""Compiled kernels that judge forecasts of a round: its scratch, the certificate of a forecast, and the best so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orcast.constants import MAX_TILT, OWN_EXPECTATION_WEIGHT
from orcast.engine.kernels.cells import expected_crps, power_mean
from orcast.engine.kernels.certificate import certify, regret_standing, resolution
from orcast.engine.kernels.equilibrium import SCRATCH_ROWS, crps_difference, field_tables, power_table
from orcast.engine.kernels.records import Array, CellRow, RegretScore, RivalColumn, RoundInfo
from orcast.jit import kernel, kernel_part
from orcast.ledger import CertificateField, available_slack, combine, squared_norm, write_certificate


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
