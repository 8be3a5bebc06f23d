"""Compiled kernels of a round on ordered cells: predict, update, and many rounds in one go.

    experts --pool, groups, tracker--> corrected expert --cells--> prior --members--> mix --last equilibrium--> forecast

Only the last equilibrium touches the ledger and its guarantee; see docs/theory.md.
"""

from __future__ import annotations

import numpy as np

from orcast.constants import LOSS_DISCOUNT, WEIGHT_RATE
from orcast.engine.kernels.cells import (
    build_cells,
    crps,
    cut_cells,
    expected_crps,
    locate,
    mean_of,
    read_quantiles,
    rebin,
)
from orcast.engine.kernels.correction import correct
from orcast.engine.kernels.correction import learn as teach_correction
from orcast.engine.kernels.counts import count
from orcast.engine.kernels.delays import delay_odds, delay_weight, delayed
from orcast.engine.kernels.equilibrium import crps_difference, payoff
from orcast.engine.kernels.groups import correct as correct_for_groups
from orcast.engine.kernels.groups import learn as teach_groups
from orcast.engine.kernels.judging import payoff_size
from orcast.engine.kernels.last_layer import play
from orcast.engine.kernels.pit_members import mix_members, teach_members
from orcast.engine.kernels.quantile_function import between
from orcast.engine.kernels.records import CellRow, ExpertLoss, Outcome, RivalColumn, RoundInfo, Statistic
from orcast.forecasts.kernels import nearest_normal, read_randomised
from orcast.forecasts.kernels import read_quantiles as read_forecast
from orcast.jit import entry_kernel, kernel, kernel_part
from orcast.jit.ieee import exp, sqrt
from orcast.ledger import Account, CertificateField, RoundLog, mean_size, settle, squared_norm, squared_payoff

# Prior mass of the atom at each bound, without an expert.
BOUND_MASS = 1e-4
# Even mass mixed in where even cells replace those around the expert.
EVEN_SHARE = 0.01
# Without bounds, cells reach this far beyond the expert's outer quantiles, in units of its 98% spread; or USUAL times
# its usual loss, if that is more; or, if it claims to know exactly, a share LEAST of its size.
WINDOW, USUAL, LEAST = 12.0, 4.0, 1e-3
# A loss counts in the usual one, from which the window is taken, as at most so many times that.
REACH_STEP = 4.0
# Without an expert, an outcome counts as at most so many standard deviations from the past ones.
LEVEL_STEP = 6.0
# No expert's log weight at a level falls further behind the best than this, the last outcome aside, so that it counts
# again as soon as it deserves it (as with a fixed share).
MOST_BEHIND = 4.0
# A loss counts in the variance of the evidence as at most so many times the pool's usual one: what is absurd is
# evidence, not noise.
MOST_NOISE = 0.3
# Log weights are smoothed over this part of the levels to either side.
NEIGHBOURS = 12
# Log weights are no larger than this: exp(-700) is still a number.
MOST_SCORE = 700.0


@kernel_part
def usual_loss(statistics):
    """Mean discounted CRPS of the expert; zero before any outcome."""
    count = statistics[Statistic.LOSS_COUNT]
    return statistics[Statistic.LOSS_SUM] / count if count > 0.0 else 0.0


@entry_kernel
def log_weight(behind, squares):
    """How far an expert's log weight at a level lies below the pool's.

    The sum of what it lost more than the pool, over the root of the sum of the squares: evidence counts by its
    variance, so that each level has a rate of its own (Wintenberger 2017, Bernstein online aggregation).
    """
    if squares == 0.0:
        return 0.0
    return min(max(WEIGHT_RATE * behind / sqrt(squares), -MOST_SCORE), MOST_SCORE)


@kernel
def smooth_over_levels(values, out):
    """Means over neighbouring levels, with weights that fall linearly to zero."""
    levels = values.shape[0]
    reach = levels // NEIGHBOURS
    for j in range(levels):
        mean = 0.0
        total = 0.0
        for i in range(max(j - reach, 0), min(j + reach, levels - 1) + 1):
            weight = reach + 1.0 - abs(i - j)
            mean += weight * values[i]
            total += weight
        out[j] = mean / total


@kernel
def sort(values):
    """Into increasing order, in place; quick where they almost are."""
    for i in range(1, values.shape[0]):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@entry_kernel
def pool_experts(memory, experts, out):
    """Quantiles averaged over the experts that are there, weighed at each level by how well they did there.

    As in CRPS learning (Berrisch and Ziel 2023): weights by level, smoothed over the levels; then sorted.
    """
    count, levels = experts.shape
    own = np.empty(levels)
    behind = np.empty((count, levels))
    best = np.empty(levels)
    total = np.empty(levels)
    for j in range(levels):
        best[j] = np.inf
        total[j] = 0.0
        out[j] = 0.0
    for e in range(count):
        if np.isnan(experts[e, 0]):
            continue
        for j in range(levels):
            loss = memory.expert_loss[e, j]
            own[j] = log_weight(loss[ExpertLoss.BEHIND], loss[ExpertLoss.SQUARES])
        smooth_over_levels(own, behind[e])
        for j in range(levels):
            best[j] = min(best[j], behind[e, j])
    for e in range(count):
        if np.isnan(experts[e, 0]):
            continue
        for j in range(levels):
            weight = exp(best[j] - behind[e, j])
            total[j] += weight
            if weight > 0.0:
                out[j] = between(out[j], experts[e, j], weight / total[j])
    sort(out)


@kernel
def miss_experts(round):
    """Where there are several experts: none of them is there, so far."""
    for e in range(1, round.experts.shape[0]):
        round.experts[e, 0] = np.nan


@kernel
def set_window(rules, q, shifted, statistics, info):
    """The window that outcomes are clipped to: the bounds, or what an expert says and has missed by, and far beyond."""
    info[RoundInfo.LOW] = rules.low
    info[RoundInfo.HIGH] = rules.high
    if rules.low > -np.inf and rules.high < np.inf:
        return
    last = q.shape[0] - 1
    size = max(abs(q[0]), abs(q[last]))
    reach = max(WINDOW * max(q[last] - q[0], shifted[last] - shifted[0]), USUAL * statistics[Statistic.ROBUST_LOSS])
    if reach <= 1e-9 * size:
        reach = LEAST * size
    if reach == 0.0:
        reach = 1.0
    if rules.low == -np.inf:
        info[RoundInfo.LOW] = min(q[0], shifted[0], rules.high) - reach
    if rules.high == np.inf:
        info[RoundInfo.HIGH] = max(q[last], shifted[last], info[RoundInfo.LOW]) + reach


@kernel
def even_cells(low, high, n, rows, slots):
    """Equal cells with equal masses and an atom of little mass at each bound: the prior when there is no expert."""
    count = n - 2
    for k in range(n):
        rows[CellRow.LEFT, k] = low + (high - low) * max(k - 1, 0) / count if k < n - 1 else high
        rows[CellRow.RIGHT, k] = low + (high - low) * k / count if k < n - 2 else high
        rows[CellRow.PRIOR, k] = (1.0 - 2.0 * BOUND_MASS) / count if 0 < k < n - 1 else BOUND_MASS
        slots[k] = k
    return n


@kernel
def cells_around(rules, q, usual, info, rows, mass, slots):
    """The cells around quantiles and the masses on them."""
    low, high = info[RoundInfo.LOW], info[RoundInfo.HIGH]
    left, right = rows[CellRow.LEFT], rows[CellRow.RIGHT]
    # the grid starts at the mass of a tail
    return build_cells(q, low, high, rules.tail_cells, rules.grid[0], usual, left, right, mass, slots)


@kernel
def put_on_cells(rules, q, usual, n, round, out):
    """Masses of an expert's quantiles on the cells of the round."""
    inner = np.empty(q.shape[0])
    for j in range(q.shape[0]):
        inner[j] = min(max(q[j], round.info[RoundInfo.LOW]), round.info[RoundInfo.HIGH])
    own = np.empty((2, round.slots.shape[0]))
    mass = np.empty(round.slots.shape[0])
    slots = np.empty(round.slots.shape[0], dtype=np.int64)
    count = cells_around(rules, inner, usual, round.info, own, mass, slots)
    left, right = round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT]
    rebin(count, own[CellRow.LEFT], own[CellRow.RIGHT], mass, n, left, right, out)


@kernel_part
def correct_expert(rules, memory, experts, signal, usual, round, out):
    """Quantiles of the pool of experts, corrected for the groups of the round and for their errors so far.

    One row where there are several experts is a forecast of the game's own: no expert is there.
    """
    pool = round.experts[0]
    miss_experts(round)
    if experts.shape[0] == 1:
        pool[:] = experts[0]
    else:
        pool_experts(memory, experts, pool)
        for e in range(experts.shape[0]):
            if not np.isnan(experts[e, 0]):
                round.experts[e + 1] = experts[e]
    round.raw[:] = pool
    size = pool.shape[0]
    if rules.learners.shape[0] == 0:
        for j in range(size):
            out[j] = min(max(pool[j], rules.low), rules.high)
        return
    smallest = 1e-7 * (rules.high - rules.low)
    if smallest == np.inf:
        smallest = 1e-9 * (pool[size - 1] - pool[0] + usual + LEAST * abs(pool[size // 2])) + 1e-140
    round.info[RoundInfo.SMALLEST_SLOPE] = smallest
    if rules.group_count > 0:
        correct_for_groups(rules, memory, round, delay_odds(round.info[RoundInfo.PENDING]), pool)
    correct(rules, memory, round, signal, out)


@kernel_part
def expert_cells(rules, memory, experts, signal, round):
    """Cells around the corrected expert, with its masses and those of the expert; returns how many there are."""
    rows, info = round.cells, round.info
    usual = usual_loss(memory.statistics)
    shifted = np.empty(round.raw.shape[0])
    correct_expert(rules, memory, experts, signal, usual, round, shifted)
    set_window(rules, round.raw, shifted, memory.statistics, info)
    n = cells_around(rules, shifted, usual, info, rows, rows[CellRow.PRIOR], round.slots)
    info[RoundInfo.REGULAR] = 1.0 if n == round.slots.shape[0] and rules.jumps.shape[0] == 0 else 0.0
    n = cut_cells(rules.jumps, n, rows[CellRow.LEFT], rows[CellRow.RIGHT], rows[CellRow.PRIOR], round.slots)
    if rules.learners.shape[0] > 0:
        put_on_cells(rules, round.raw, usual, n, round, rows[CellRow.EXPERT])
    else:
        rows[CellRow.EXPERT, :n] = rows[CellRow.PRIOR, :n]
    return n


@kernel_part
def bare_cells(rules, round):
    """Even cells, where there is no expert; returns how many there are."""
    rows, info = round.cells, round.info
    miss_experts(round)
    info[RoundInfo.LOW] = rules.low
    info[RoundInfo.HIGH] = rules.high
    n = even_cells(rules.low, rules.high, round.slots.shape[0], rows, round.slots)
    n = cut_cells(rules.jumps, n, rows[CellRow.LEFT], rows[CellRow.RIGHT], rows[CellRow.PRIOR], round.slots)
    rows[CellRow.EXPERT, :n] = rows[CellRow.PRIOR, :n]
    info[RoundInfo.REGULAR] = 0.0
    return n


@entry_kernel
def open_round(rules, memory, experts, signal, pending, round, mix):
    """Fill the round up to the prior of the last layer, in `mix`; the memory is only read."""
    info = round.info
    has_expert = experts.shape[0] > 0
    info[RoundInfo.HAS_EXPERT] = 1.0 if has_expert else 0.0
    info[RoundInfo.PENDING] = pending
    info[RoundInfo.LAST_CONTEXT] = 2.0 * memory.statistics[Statistic.LAST_PIT] - 1.0
    n = expert_cells(rules, memory, experts, signal, round) if has_expert else bare_cells(rules, round)
    info[RoundInfo.CELLS] = n
    place_rivals(rules, memory, n, round)
    if has_expert and rules.members.shape[0] > 0:
        mix_members(rules, memory, n, round, mix)
    else:
        for k in range(n):
            mix[k] = round.cells[CellRow.PRIOR, k]


@kernel
def place_rivals(rules, memory, n, round):
    """Masses of each expert on the cells of the round; one that is missing has none."""
    count = round.rivals.shape[0]
    if count == 1:
        for k in range(n):
            round.rivals[0, k] = round.cells[CellRow.EXPERT, k]
        return
    usual = usual_loss(memory.statistics)
    for e in range(count):
        if not np.isnan(round.experts[e + 1, 0]):
            put_on_cells(rules, round.experts[e + 1], usual, n, round, round.rivals[e])


@entry_kernel
def recell(rules, memory, round, mix):
    """Even cells instead of those around the expert, where these are too coarse for what is owed.

    An outcome that shares its cell with half of the interval has any mean, so no forecast can answer for its moments.
    """
    rows = round.cells
    n = int(round.info[RoundInfo.CELLS])
    old = rows.copy()
    total = round.slots.shape[0] - 2
    even_cells(round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH], total, rows, round.slots)
    total = cut_cells(rules.jumps, total, rows[CellRow.LEFT], rows[CellRow.RIGHT], rows[CellRow.PRIOR], round.slots)
    last = round.slots.shape[0] - 2
    round.slots[last:] = total - 1
    for row in range(CellRow.PRIOR, rows.shape[0]):
        if row != CellRow.TILT and row != CellRow.PLAYED:
            rebin(
                n,
                old[CellRow.LEFT],
                old[CellRow.RIGHT],
                old[row],
                total,
                rows[CellRow.LEFT],
                rows[CellRow.RIGHT],
                rows[row],
            )
    even_mix = np.empty(total)
    rebin(n, old[CellRow.LEFT], old[CellRow.RIGHT], mix, total, rows[CellRow.LEFT], rows[CellRow.RIGHT], even_mix)
    for k in range(total):
        mix[k] = even_mix[k] + EVEN_SHARE * (1.0 / total - even_mix[k])
        rows[CellRow.PRIOR, k] += EVEN_SHARE * (1.0 / total - rows[CellRow.PRIOR, k])
    round.info[RoundInfo.CELLS] = total
    round.info[RoundInfo.REGULAR] = 0.0
    place_rivals(rules, memory, total, round)


@kernel
def play_evenly(rules, memory, mix, reserved, round, witness):
    """The same on even cells; kept if it holds there, or comes closer."""
    cells, info, certificate, slots = (
        round.cells.copy(),
        round.info.copy(),
        round.certificate.copy(),
        round.slots.copy(),
    )
    rivals, units, expected = round.rivals.copy(), round.units.copy(), round.expected.copy()
    recell(rules, memory, round, mix)
    n = int(round.info[RoundInfo.CELLS])
    play(rules, memory, mix[:n], reserved, True, round, witness)
    for k in range(n):
        round.cells[CellRow.TILT, k] = 0.0
    if round.certificate[CertificateField.HOLDS] == 0.0 and (
        certificate[CertificateField.WORST] - certificate[CertificateField.ALLOWED]
        <= round.certificate[CertificateField.WORST] - round.certificate[CertificateField.ALLOWED]
    ):
        round.cells[:] = cells
        round.info[:] = info
        round.certificate[:] = certificate
        round.slots[:] = slots
        round.rivals[:] = rivals
        round.units[:] = units
        round.expected[:] = expected


@kernel
def predict(rules, memory, experts, signal, pending, reserved, round):
    """Fill the round: cells, prior, members, the forecast to play and its certificate.  The memory is only read."""
    capacity = round.cells.shape[1]
    mix = np.empty(capacity)
    witness = np.empty((3, rules.witnesses, capacity))
    open_round(rules, memory, experts, signal, pending, round, mix)
    n = int(round.info[RoundInfo.CELLS])
    play(rules, memory, mix[:n], reserved, round.info[RoundInfo.HAS_EXPERT] == 0.0, round, witness)
    if round.info[RoundInfo.HAS_EXPERT] > 0.0 and round.certificate[CertificateField.HOLDS] == 0.0:
        play_evenly(rules, memory, mix, reserved, round, witness)


@kernel
def settle_round(rules, memory, round, reserved, y, at):
    """Settle the payoff of an outcome; `at` holds the witnesses there, powers aside."""
    info = round.info
    near = min(max(y, info[RoundInfo.LOW]), info[RoundInfo.HIGH])
    k = locate(near, round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT], int(info[RoundInfo.CELLS]))
    owed = np.empty(payoff_size(rules, round.rivals.shape[0]))
    payoff(rules, round, near, k, at, owed)
    squares = rules.discount * rules.discount * memory.statistics[Statistic.SQUARES]
    memory.statistics[Statistic.SQUARES] = squares + squared_payoff(rules.layout, round.context, owed)
    settle(
        rules.layout,
        memory.account,
        memory.groups,
        memory.total,
        round.context,
        rules.discount,
        reserved,
        owed,
        round.certificate,
    )
    if rules.levels.shape[0] > 0:
        count_round(rules, memory, round, y)


@kernel
def count_round(rules, memory, round, y):
    """Count the hard indicators of an outcome."""
    cells, info = round.cells, round.info
    count(
        rules.levels,
        y,
        int(info[RoundInfo.CELLS]),
        cells[CellRow.LEFT],
        cells[CellRow.RIGHT],
        cells[CellRow.PLAYED],
        rules.low == -np.inf,
        rules.high == np.inf,
        info[RoundInfo.COIN],
        rules.discount,
        memory.counted,
    )


@kernel_part
def learn_level(statistics, y, rounds):
    """Mean and variance of the outcomes, for a game without an expert or bounds; no outcome moves them far."""
    if rounds <= 1.0:
        statistics[Statistic.LEVEL_MEAN] = y
        # the first outcome sets the unit; zero has none
        statistics[Statistic.LEVEL_VARIANCE] = max(0.01 * y * y, 1e-280) if y != 0.0 else 1e-12
        return
    step = max(0.002, 1.0 / (rounds + 1.0))
    most = LEVEL_STEP * sqrt(statistics[Statistic.LEVEL_VARIANCE])
    change = min(max(y - statistics[Statistic.LEVEL_MEAN], -most), most)
    statistics[Statistic.LEVEL_MEAN] += step * change
    statistics[Statistic.LEVEL_VARIANCE] = (1.0 - step) * (
        statistics[Statistic.LEVEL_VARIANCE] + step * change * change
    )


@kernel_part
def learn_loss(statistics, round, loss, clipped):
    """The expert's usual loss, and a robust one for the window; returns the unit in which losses are weighed."""
    cells, info = round.cells, round.info
    n = int(info[RoundInfo.CELLS])
    statistics[Statistic.LOSS_SUM] = LOSS_DISCOUNT * statistics[Statistic.LOSS_SUM] + loss
    statistics[Statistic.LOSS_COUNT] = LOSS_DISCOUNT * statistics[Statistic.LOSS_COUNT] + 1.0
    unit = statistics[Statistic.LOSS_SUM] / statistics[Statistic.LOSS_COUNT]
    expected = expected_crps(n, cells[CellRow.LEFT], cells[CellRow.RIGHT], cells[CellRow.EXPERT])
    spread = round.raw[round.raw.shape[0] - 1] - round.raw[0]
    usual = max(statistics[Statistic.ROBUST_LOSS], expected, 1e-3 * spread, 1e-6 * abs(clipped))
    step = max(0.002, 1.0 / (statistics[Statistic.OUTCOMES] + 2.0))
    counted = min(loss, REACH_STEP * usual)
    statistics[Statistic.ROBUST_LOSS] += step * (counted - statistics[Statistic.ROBUST_LOSS])
    return max(unit, 1e-12 * (info[RoundInfo.HIGH] - info[RoundInfo.LOW]))


@kernel
def pinball(quantile, level, y):
    """Pinball loss."""
    return level * (y - quantile) if y > quantile else (1.0 - level) * (quantile - y)


@kernel_part
def learn_weights(rules, memory, round, outcome):
    """What the weight of each expert in the pool is made of; one that is missing loses what the pool loses."""
    y, weight = outcome.clipped, outcome.weight
    count = memory.expert_loss.shape[0]
    kept = delayed(LOSS_DISCOUNT, weight)
    for j in range(rules.grid.shape[0]):
        best = np.inf
        for e in range(count):
            if not np.isnan(round.experts[e + 1, 0]):
                loss = memory.expert_loss[e, j]
                best = min(best, log_weight(loss[ExpertLoss.BEHIND], loss[ExpertLoss.SQUARES]))
        pooled = pinball(round.raw[j], rules.grid[j], y)
        for e in range(count):
            if np.isnan(round.experts[e + 1, 0]):
                continue
            loss = memory.expert_loss[e, j]
            most = (best + MOST_BEHIND) / WEIGHT_RATE * sqrt(loss[ExpertLoss.SQUARES])
            behind = min(loss[ExpertLoss.BEHIND], most)
            more = (pinball(round.experts[e + 1, j], rules.grid[j], y) - pooled) / outcome.unit
            noise = min(abs(more), MOST_NOISE)
            loss[ExpertLoss.BEHIND] = kept * behind + weight * more
            loss[ExpertLoss.SQUARES] = kept * loss[ExpertLoss.SQUARES] + weight * noise * noise


@kernel_part
def learn_rivals(memory, round, k, loss, outcome):
    """How each expert fares as a rival; the pool's own CRPS is `loss`."""
    cells, info, clipped = round.cells, round.info, outcome.clipped
    n = int(info[RoundInfo.CELLS])
    span = info[RoundInfo.HIGH] - info[RoundInfo.LOW]
    left, right, played = cells[CellRow.LEFT], cells[CellRow.RIGHT], cells[CellRow.PLAYED]
    count = round.rivals.shape[0]
    mean = mean_of(n, left, right, played)
    for e in range(count):
        if count > 1 and np.isnan(round.experts[e + 1, 0]):
            continue
        own = loss if count == 1 else crps(clipped, k, n, left, right, round.rivals[e])
        rival = memory.rivals[e]
        error = clipped - mean_of(n, left, right, round.rivals[e])
        rival[RivalColumn.CRPS] = LOSS_DISCOUNT * rival[RivalColumn.CRPS] + own
        square = (error / span) * (error / span)
        rival[RivalColumn.SQUARED_ERROR] = LOSS_DISCOUNT * rival[RivalColumn.SQUARED_ERROR] + square
        rival[RivalColumn.COUNT] = LOSS_DISCOUNT * rival[RivalColumn.COUNT] + 1.0
        rival[RivalColumn.CRPS_EXCESS] += crps_difference(clipped, k, n, left, right, played, round.rivals[e])
        rival[RivalColumn.MSE_EXCESS] += (clipped - mean) * (clipped - mean) - error * error
        rival[RivalColumn.ROUNDS] += 1.0


@entry_kernel
def teach(rules, memory, round, signal, y):
    """Teach the learners and members the outcome of a round."""
    rows, info, statistics = round.cells, round.info, memory.statistics
    n = int(info[RoundInfo.CELLS])
    left, right = rows[CellRow.LEFT], rows[CellRow.RIGHT]
    clipped = min(max(y, info[RoundInfo.LOW]), info[RoundInfo.HIGH])
    k = locate(clipped, left, right, n)
    for i in range(round.slots.shape[0]):
        memory.warm[i] = rows[CellRow.TILT, round.slots[i]]
    median = np.empty(1)
    read_quantiles(n, left, right, rows[CellRow.PLAYED], np.array([0.5]), median)
    statistics[Statistic.LAST_ERROR] = y - median[0]
    learn_level(statistics, y, memory.account[Account.ROUNDS])
    if info[RoundInfo.HAS_EXPERT] == 0.0:
        return
    loss = crps(clipped, k, n, left, right, rows[CellRow.EXPERT])
    unit = learn_loss(statistics, round, loss, clipped)
    weight = delay_weight(info[RoundInfo.PENDING])
    outcome = Outcome(y, clipped, weight, unit)
    if round.rivals.shape[0] > 1:
        learn_weights(rules, memory, round, outcome)
    learn_rivals(memory, round, k, loss, outcome)
    if rules.members.shape[0] > 0:
        teach_members(rules, memory, round, k, outcome)
    if rules.learners.shape[0] > 0:
        if rules.group_count > 0:
            teach_groups(rules, memory, round, outcome)
        teach_correction(rules, memory, round, signal, outcome)


@entry_kernel
def update(rules, memory, round, signal, reserved, y, at):
    """Settle the outcome of a round and teach the learners and members."""
    settle_round(rules, memory, round, reserved, y, at)
    teach(rules, memory, round, signal, y)


@entry_kernel
def log_round(rules, round, levels, row, log_row):
    """Write down what was played and what is known of it before the outcome."""
    n, coin = int(round.info[RoundInfo.CELLS]), round.info[RoundInfo.COIN]
    left, right, played = round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT], round.cells[CellRow.PLAYED]
    low, high = rules.low == -np.inf, rules.high == np.inf
    if coin > 0.0:
        read_randomised(n, left, right, played, low, high, coin, levels, row)
    else:
        read_forecast(n, left, right, played, low, high, levels, row)
    mean, spread = nearest_normal(n, left, right, played, low, high)
    log_row[RoundLog.HOLDS] = round.certificate[CertificateField.HOLDS]
    log_row[RoundLog.PROMISED] = round.certificate[CertificateField.PROMISED]
    log_row[RoundLog.EXCESS] = round.certificate[CertificateField.EXCESS]
    log_row[RoundLog.MEAN] = mean
    log_row[RoundLog.SD] = spread


@kernel
def miscalibration(rules, memory):
    """The size of the mean payoff so far."""
    return mean_size(squared_norm(rules.layout.sides, memory.total), memory.account)


@entry_kernel
def run(rules, memory, experts, contexts, outcomes, coins, levels, start, round, quantiles, round_log):
    """Many rounds in one go, each outcome known before the next forecast; writes down what came of each."""
    nothing = np.empty(0)
    for t in range(start, outcomes.shape[0]):
        round.context[:] = contexts[t]
        round.info[RoundInfo.COIN] = coins[t]
        predict(rules, memory, experts[t], nothing, 0.0, 0.0, round)
        log_round(rules, round, levels, quantiles[t], round_log[t])
        update(rules, memory, round, nothing, 0.0, outcomes[t], nothing)
        round_log[t, RoundLog.MISCALIBRATION] = miscalibration(rules, memory)
