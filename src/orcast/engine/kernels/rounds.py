"""Compiled kernels of a round on ordered cells: predict, update, and many rounds in one go.

    experts --pool, groups, tracker--> corrected expert --cells--> prior --members--> mix --last equilibrium--> forecast

Only the last equilibrium touches the ledger and its guarantee; see docs/theory.md.
"""

from __future__ import annotations

import math

import numpy as np

from orcast import ledger as _ledger
from orcast.engine.kernels import groups as group_kernels
from orcast.engine.kernels import tracker
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
from orcast.engine.kernels.equilibrium import crps_difference, payoff
from orcast.engine.kernels.last_layer import payoff_size, play, squared_norm
from orcast.engine.kernels.pit_members import horizon, mix_members, teach_members
from orcast.engine.kernels.records import (
    CELLS,
    COUNT,
    CRPS_EXCESS,
    EXPERT,
    HAS_EXPERT,
    HIGH,
    LAST_CONTEXT,
    LEFT,
    LOSS,
    LOSS_DISCOUNT,
    LOW,
    MSE_EXCESS,
    PENDING,
    PLAYED,
    PRIOR,
    REGULAR,
    RIGHT,
    SEEN,
    SMALLEST,
    SQUARE,
    TILT,
    WORD,
)
from orcast.forecasts.kernels import nearest_normal
from orcast.forecasts.kernels import read_quantiles as read_forecast
from orcast.jit import kernel
from orcast.spaces import TAIL_MASS

settle = kernel(_ledger.settle)
mean_size = kernel(_ledger.mean_size)

# With n outcomes outstanding, what was learnt has prior odds (1 + n)^-DOUBT against the expert.
DOUBT = 0.5
# Prior mass of the atom at each bound, without an expert.
BOUND_MASS = 1e-4
# Even mass mixed in where even cells replace those around the expert.
EVEN_SHARE = 0.01
# Without bounds, cells reach this far beyond the expert's outer quantiles, in units of its 98% spread; or USUAL times
# its usual loss, if that is more; or, if it claims to know exactly, a share LEAST of its size.
WINDOW, USUAL, LEAST = 12.0, 4.0, 1e-3
# A loss counts in the usual one, from which the window is taken, as at most so many times that.
REACH_STEP = 4.0
# The most that a score counts, in units of the usual one: with bounds or early on, and later without.
BOLD, CAREFUL, EARLY = 6.0, 3.0, 100.0
# Without an expert, an outcome counts as at most so many standard deviations from the past ones.
LEVEL_STEP = 6.0
# No number grows beyond this, whatever an adversary does.
FARTHEST = 1e110
# Experts are weighed by their discounted loss at this rate; none falls further behind the best than this, so that it
# is heard again as soon as it deserves it (as with a fixed share).
POOL_RATE, MOST_BEHIND = 2.0, 4.0


@kernel
def pool_experts(memory, experts, out):
    """Quantiles averaged over the experts that are there, weighed by how well they did."""
    count = experts.shape[0]
    best = np.inf
    for e in range(count):
        if not np.isnan(experts[e, 0]):
            best = min(best, memory.pool[e])
    total = 0.0
    for j in range(out.shape[0]):
        out[j] = 0.0
    for e in range(count):
        if np.isnan(experts[e, 0]):
            continue
        weight = math.exp(-POOL_RATE * (memory.pool[e] - best))
        total += weight
        for j in range(out.shape[0]):
            out[j] += weight * experts[e, j]
    for j in range(out.shape[0]):
        out[j] /= total


@kernel
def set_window(rules, q, shifted, statistics, info):
    """The window that outcomes are clipped to: the bounds, or what an expert says and has missed by, and far beyond."""
    info[LOW] = rules.low
    info[HIGH] = rules.high
    if rules.low > -np.inf and rules.high < np.inf:
        return
    last = q.shape[0] - 1
    size = max(abs(q[0]), abs(q[last]))
    reach = max(WINDOW * max(q[last] - q[0], shifted[last] - shifted[0]), USUAL * statistics[tracker.REACH])
    if reach <= 1e-9 * size:
        reach = LEAST * size
    if reach == 0.0:
        reach = 1.0
    if rules.low == -np.inf:
        info[LOW] = min(q[0], shifted[0], rules.high) - reach
    if rules.high == np.inf:
        info[HIGH] = max(q[last], shifted[last], info[LOW]) + reach


@kernel
def even_cells(low, high, n, rows, slots):
    """Equal cells with equal masses and an atom of little mass at each bound: the prior when there is no expert."""
    count = n - 2
    for k in range(n):
        rows[LEFT, k] = low + (high - low) * max(k - 1, 0) / count if k < n - 1 else high
        rows[RIGHT, k] = low + (high - low) * k / count if k < n - 2 else high
        rows[PRIOR, k] = (1.0 - 2.0 * BOUND_MASS) / count if 0 < k < n - 1 else BOUND_MASS
        slots[k] = k
    return n


@kernel
def cells_around(rules, q, usual, info, rows, mass, slots):
    """The cells around quantiles and the masses on them."""
    return build_cells(
        q, info[LOW], info[HIGH], rules.tail_cells, TAIL_MASS, usual, rows[LEFT], rows[RIGHT], mass, slots
    )


@kernel
def put_on_cells(rules, q, usual, n, round, out):
    """Masses of an expert's quantiles on the cells of the round."""
    inner = np.empty(q.shape[0])
    for j in range(q.shape[0]):
        inner[j] = min(max(q[j], round.info[LOW]), round.info[HIGH])
    own = np.empty((EXPERT, round.slots.shape[0]))
    mass = np.empty(round.slots.shape[0])
    slots = np.empty(round.slots.shape[0], dtype=np.int64)
    count = cells_around(rules, inner, usual, round.info, own, mass, slots)
    rebin(count, own[LEFT], own[RIGHT], mass, n, round.cells[LEFT], round.cells[RIGHT], out)


@kernel
def open_round(rules, memory, experts, pending, round, mix):
    """Fill the round up to the prior of the last layer, in `mix`; the memory is only read."""
    rows = round.cells
    info = round.info
    has_expert = experts.shape[0] > 0
    info[HAS_EXPERT] = 1.0 if has_expert else 0.0
    info[PENDING] = pending
    info[LAST_CONTEXT] = 2.0 * memory.statistics[tracker.LAST_PIT] - 1.0
    doubt = (1.0 + pending) ** -DOUBT
    slots = round.slots.shape[0]
    if has_expert:
        seen = memory.statistics[tracker.LOSS_COUNT]
        usual = memory.statistics[tracker.LOSS_SUM] / seen if seen > 0.0 else 0.0
        pool = round.experts[0]
        if experts.shape[0] == 1:
            pool[:] = experts[0]
        else:
            pool_experts(memory, experts, pool)
            round.experts[1:] = experts
        size = pool.shape[0]
        round.raw[:] = pool
        shifted = np.empty(size)
        learners = rules.learners.shape[0] > 0
        if learners:
            smallest = 1e-7 * (rules.high - rules.low)
            if smallest == np.inf:
                smallest = 1e-9 * (pool[size - 1] - pool[0] + usual + LEAST * abs(pool[size // 2])) + 1e-100
            info[SMALLEST] = smallest
            if rules.group_count > 0:
                group_kernels.correct(
                    rules,
                    memory,
                    round.raw,
                    smallest,
                    max(rules.low, -FARTHEST),
                    min(rules.high, FARTHEST),
                    round.context,
                    doubt,
                    info[WORD : WORD + 2],
                    pool,
                )
            losses = memory.track_loss[horizon(pending)]
            tracker.track(
                pool,
                rules.scores,
                max(rules.low, -FARTHEST),
                min(rules.high, FARTHEST),
                smallest,
                rules.learners,
                losses,
                doubt,
                memory,
                round.tracker_record,
                shifted,
            )
        else:
            for j in range(size):
                shifted[j] = min(max(pool[j], rules.low), rules.high)
        set_window(rules, round.raw, shifted, memory.statistics, info)
        n = cells_around(rules, shifted, usual, info, rows, rows[PRIOR], round.slots)
        info[REGULAR] = 1.0 if n == slots and rules.jumps.shape[0] == 0 else 0.0
        n = cut_cells(rules.jumps, n, rows[LEFT], rows[RIGHT], rows[PRIOR], round.slots)
        if learners:
            put_on_cells(rules, round.raw, usual, n, round, rows[EXPERT])
        else:
            rows[EXPERT, :n] = rows[PRIOR, :n]
    else:
        info[LOW] = rules.low
        info[HIGH] = rules.high
        n = even_cells(rules.low, rules.high, slots, rows, round.slots)
        n = cut_cells(rules.jumps, n, rows[LEFT], rows[RIGHT], rows[PRIOR], round.slots)
        rows[EXPERT, :n] = rows[PRIOR, :n]
        info[REGULAR] = 0.0
    info[CELLS] = n
    place_rivals(rules, memory, n, round)
    if has_expert and rules.members.shape[0] > 0:
        mix_members(rules, memory, n, doubt, round, mix)
    else:
        for k in range(n):
            mix[k] = rows[PRIOR, k]


@kernel
def place_rivals(rules, memory, n, round):
    """Masses of each expert on the cells of the round; of one that is missing, those of the pool."""
    count = round.rivals.shape[0]
    seen = memory.statistics[tracker.LOSS_COUNT]
    usual = memory.statistics[tracker.LOSS_SUM] / seen if seen > 0.0 else 0.0
    for e in range(count):
        if count > 1 and not np.isnan(round.experts[e + 1, 0]):
            put_on_cells(rules, round.experts[e + 1], usual, n, round, round.rivals[e])
        else:
            for k in range(n):
                round.rivals[e, k] = round.cells[EXPERT, k]


@kernel
def recell(rules, memory, round, mix):
    """Even cells instead of those around the expert, where these are too coarse for what is owed.

    An outcome that shares its cell with half of the interval has any mean, so no forecast can answer for its moments.
    """
    rows = round.cells
    n = int(round.info[CELLS])
    old = rows.copy()
    total = round.slots.shape[0] - 2
    even_cells(round.info[LOW], round.info[HIGH], total, rows, round.slots)
    total = cut_cells(rules.jumps, total, rows[LEFT], rows[RIGHT], rows[PRIOR], round.slots)
    last = round.slots.shape[0] - 2
    round.slots[last:] = total - 1
    for row in range(PRIOR, rows.shape[0]):
        if row != TILT and row != PLAYED:
            rebin(n, old[LEFT], old[RIGHT], old[row], total, rows[LEFT], rows[RIGHT], rows[row])
    even_mix = np.empty(total)
    rebin(n, old[LEFT], old[RIGHT], mix, total, rows[LEFT], rows[RIGHT], even_mix)
    for k in range(total):
        mix[k] = even_mix[k] + EVEN_SHARE * (1.0 / total - even_mix[k])
        rows[PRIOR, k] += EVEN_SHARE * (1.0 / total - rows[PRIOR, k])
    round.info[CELLS] = total
    round.info[REGULAR] = 0.0
    place_rivals(rules, memory, total, round)


@kernel
def play_evenly(rules, memory, mix, pending, reserved, round, witness):
    """The same on even cells; kept if it holds there."""
    old, old_info, old_note, old_slots = (
        round.cells.copy(),
        round.info.copy(),
        round.certificate.copy(),
        round.slots.copy(),
    )
    old_rivals, old_units, old_expected = round.rivals.copy(), round.units.copy(), round.expected.copy()
    recell(rules, memory, round, mix)
    n = int(round.info[CELLS])
    play(rules, memory, n, mix[:n], pending, reserved, round, witness)
    for k in range(n):
        round.cells[TILT, k] = 0.0
    if round.certificate[_ledger.CertificateField.HOLDS] == 0.0:
        round.cells[:] = old
        round.info[:] = old_info
        round.certificate[:] = old_note
        round.slots[:] = old_slots
        round.rivals[:] = old_rivals
        round.units[:] = old_units
        round.expected[:] = old_expected


@kernel
def predict(rules, memory, experts, pending, reserved, round):
    """Fill the round: cells, prior, members, the forecast to play and its certificate.  The memory is only read."""
    capacity = round.cells.shape[1]
    mix = np.empty(capacity)
    witness = np.empty((3, rules.witnesses, capacity))
    open_round(rules, memory, experts, pending, round, mix)
    n = int(round.info[CELLS])
    play(rules, memory, n, mix[:n], pending, reserved, round, witness)
    if round.info[HAS_EXPERT] > 0.0 and round.certificate[_ledger.CertificateField.HOLDS] == 0.0:
        play_evenly(rules, memory, mix, pending, reserved, round, witness)


@kernel
def settle_round(rules, memory, round, reserved, y, at):
    """Book the payoff of an outcome; `at` holds the witnesses there, powers aside."""
    info = round.info
    near = min(max(y, info[LOW]), info[HIGH])
    k = locate(near, round.cells[LEFT], round.cells[RIGHT], int(info[CELLS]))
    owed = np.empty(payoff_size(rules, round.rivals.shape[0]))
    payoff(rules, round, near, k, at, owed)
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


@kernel
def learn_level(statistics, y, rounds):
    """Mean and variance of the outcomes, for a game without an expert or bounds; no outcome moves them far."""
    if rounds <= 1.0:
        statistics[tracker.LEVEL_MEAN] = y
        statistics[tracker.LEVEL_VAR] = max((0.1 * y) ** 2, 1e-12)
        return
    step = max(0.002, 1.0 / (rounds + 1.0))
    most = LEVEL_STEP * math.sqrt(statistics[tracker.LEVEL_VAR])
    change = min(max(y - statistics[tracker.LEVEL_MEAN], -most), most)
    statistics[tracker.LEVEL_MEAN] += step * change
    statistics[tracker.LEVEL_VAR] = (1.0 - step) * (statistics[tracker.LEVEL_VAR] + step * change * change)


@kernel
def teach(rules, memory, round, y):
    """Teach the learners and members the outcome of a round."""
    rows = round.cells
    info = round.info
    n = int(info[CELLS])
    left, right = rows[LEFT], rows[RIGHT]
    span = info[HIGH] - info[LOW]
    near = min(max(y, info[LOW]), info[HIGH])
    k = locate(near, left, right, n)
    statistics = memory.statistics
    for i in range(round.slots.shape[0]):
        memory.warm[i] = rows[TILT, round.slots[i]]
    median = np.empty(1)
    read_quantiles(n, left, right, rows[PLAYED], np.array([0.5]), median)
    statistics[tracker.LAST_ERROR] = y - median[0]
    learn_level(statistics, y, memory.account[_ledger.Account.ROUNDS])
    if info[HAS_EXPERT] == 0.0:
        return
    loss = crps(near, k, n, left, right, rows[EXPERT])
    statistics[tracker.LOSS_SUM] = LOSS_DISCOUNT * statistics[tracker.LOSS_SUM] + loss
    statistics[tracker.LOSS_COUNT] = LOSS_DISCOUNT * statistics[tracker.LOSS_COUNT] + 1.0
    unit = max(statistics[tracker.LOSS_SUM] / statistics[tracker.LOSS_COUNT], 1e-12 * span)
    own = expected_crps(n, left, right, rows[EXPERT])
    usual = max(
        statistics[tracker.REACH], own, 1e-3 * (round.raw[round.raw.shape[0] - 1] - round.raw[0]), 1e-6 * abs(near)
    )
    step = max(0.002, 1.0 / (statistics[tracker.SEEN] + 2.0))
    statistics[tracker.REACH] += step * (min(loss, REACH_STEP * usual) - statistics[tracker.REACH])
    weight = 1.0 / math.sqrt(1.0 + info[PENDING])
    count = round.rivals.shape[0]
    mean = mean_of(n, left, right, rows[PLAYED])
    best = np.inf
    for e in range(count):
        best = min(best, memory.pool[e])
    for e in range(count):
        missing = count > 1 and np.isnan(round.experts[e + 1, 0])
        own = loss if count == 1 or missing else crps(near, k, n, left, right, round.rivals[e])
        behind = min(memory.pool[e], best + MOST_BEHIND)
        memory.pool[e] = (1.0 - (1.0 - LOSS_DISCOUNT) * weight) * behind + weight * own / unit
        if missing:
            continue
        rival = memory.rivals[e]
        error = near - mean_of(n, left, right, round.rivals[e])
        rival[LOSS] = LOSS_DISCOUNT * rival[LOSS] + own
        rival[SQUARE] = LOSS_DISCOUNT * rival[SQUARE] + (error / span) ** 2
        rival[COUNT] = LOSS_DISCOUNT * rival[COUNT] + 1.0
        rival[CRPS_EXCESS] += crps_difference(near, k, n, left, right, rows[PLAYED], round.rivals[e])
        rival[MSE_EXCESS] += (near - mean) ** 2 - error * error
        rival[SEEN] += 1.0
    if rules.members.shape[0] > 0:
        teach_members(rules, memory, round, near, k, loss, unit, weight)
    bounded = rules.high - rules.low < np.inf
    if rules.group_count > 0 and rules.learners.shape[0] > 0:
        group_kernels.learn(
            rules,
            memory,
            round.raw,
            info[SMALLEST],
            y,
            near,
            max(rules.low, -FARTHEST),
            min(rules.high, FARTHEST),
            round.context,
            info[WORD : WORD + 2],
            LOSS_DISCOUNT,
            0.5 * unit,
            weight,
        )
    if rules.learners.shape[0] > 0:
        tracker.learn(
            y,
            near,
            BOLD if bounded or statistics[tracker.SEEN] < EARLY else CAREFUL,
            round.experts[0],
            rules.scores,
            rules.grid,
            max(rules.low, -FARTHEST),
            min(rules.high, FARTHEST),
            rules.learners,
            memory.track_loss[horizon(info[PENDING])],
            LOSS_DISCOUNT,
            0.5 * unit,
            weight,
            memory,
            round.tracker_record,
        )


@kernel
def update(rules, memory, round, reserved, y, at):
    """Book the outcome of a round and teach the learners and members."""
    settle_round(rules, memory, round, reserved, y, at)
    teach(rules, memory, round, y)


@kernel
def log_round(rules, round, levels, row, log_row):
    """Write down what was played and what is known of it before the outcome."""
    cells = round.cells
    n = int(round.info[CELLS])
    low, high = rules.low == -np.inf, rules.high == np.inf
    read_forecast(n, cells[LEFT], cells[RIGHT], cells[PLAYED], low, high, levels, row)
    mean, spread = nearest_normal(n, cells[LEFT], cells[RIGHT], cells[PLAYED], low, high)
    log_row[_ledger.RoundLog.HOLDS] = round.certificate[_ledger.CertificateField.HOLDS]
    log_row[_ledger.RoundLog.PROMISED] = round.certificate[_ledger.CertificateField.PROMISED]
    log_row[_ledger.RoundLog.MEAN] = mean
    log_row[_ledger.RoundLog.SD] = spread


@kernel
def miscalibration(rules, memory):
    """The size of the mean payoff so far."""
    return mean_size(squared_norm(rules.layout.sides, memory.total), memory.account)


@kernel
def run(rules, memory, experts, contexts, outcomes, levels, start, round, quantiles, round_log):
    """Many rounds in one go, each outcome known before the next forecast; writes down what came of each.

    Stops before the outcome of a round whose certificate does not hold, and returns which that is.
    """
    nothing = np.empty(0)
    for t in range(start, outcomes.shape[0]):
        round.context[:] = contexts[t]
        predict(rules, memory, experts[t], 0.0, 0.0, round)
        if round.certificate[_ledger.CertificateField.HOLDS] == 0.0:
            return t
        log_round(rules, round, levels, quantiles[t], round_log[t])
        update(rules, memory, round, 0.0, outcomes[t], nothing)
        round_log[t, _ledger.RoundLog.MISCALIBRATION] = miscalibration(rules, memory)
    return outcomes.shape[0]
