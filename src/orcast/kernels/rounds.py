"""Rounds on an ordered space: predict, update, and whole histories.

    experts --committee--> corrected quantiles --cells--> prior --last layer--> forecast

Only the last layer touches the ledger and its guarantee (docs/theory.md).
"""

import cython
import numpy as np

from orcast.constants import LOSS_DISCOUNT
from orcast.kernels.state import Round

INF, NAN = float("inf"), float("nan")
# Mark of a round around past outcomes, without an expert; 1 is that of one with an expert.
OWN_ROWS = 0.5
# Prior mass of the atom at each bound, without an expert.
BOUND_MASS = 1e-4
# Uniform mass mixed in where even cells replace those around the expert.
EVEN_SHARE = 0.01
# Without bounds, cells reach this far beyond the expert's outer quantiles, in units of its 98% spread; or USUAL times
# its usual loss, if that is more; or, if its spread is zero, a share LEAST of its size.
WINDOW, USUAL, LEAST = 12.0, 4.0, 1e-3
# Discount of the expert's misses.
MISSES_KEPT = 0.9998
# A loss enters the usual loss, from which the window is taken, as at most this many times that.
REACH_STEP = 4.0
# Without an expert, an outcome enters as at most this many standard deviations from the past ones.
LEVEL_STEP = 6.0


def usual_loss(statistics):
    """Mean discounted CRPS of the expert; zero before any outcome."""
    return statistics.loss_sum / statistics.loss_count if statistics.loss_count > 0.0 else 0.0


def mean_expert(experts, number, levels, out):
    """Mean quantiles of the experts that are present."""
    for j in range(levels):
        out[j] = 0.0
    count = 0.0
    for e in range(number):
        if isnan(experts[e * levels]):
            continue
        count += 1.0
        for j in range(levels):
            out[j] += (experts[e * levels + j] - out[j]) / count


def miss_experts(rules, round):
    """Mark all experts as missing, where there are several."""
    for e in range(1, rules.rival_rows):
        round.experts[e * rules.grid_count] = NAN


def set_window(rules, q, shifted, statistics, info):
    """Set the window that outcomes are clipped to: the bounds, or far beyond the expert's quantiles and errors."""
    info.low = rules.low
    info.high = rules.high
    if rules.low > -INF and rules.high < INF:
        return
    last = rules.grid_count - 1
    size = max(fabs(q[0]), fabs(q[last]))
    reach = max(WINDOW * max(q[last] - q[0], shifted[last] - shifted[0]), USUAL * statistics.robust_loss)
    if reach <= 1e-9 * size:
        reach = LEAST * size
    if reach == 0.0:
        reach = 1.0
    if rules.low == -INF:
        info.low = min(q[0], shifted[0], rules.high) - reach
    if rules.high == INF:
        info.high = max(q[last], shifted[last], info.low) + reach


def even_cells(low, high, n, round):
    """Equal cells with equal masses and an atom of little mass at each bound: the prior without an expert."""
    inner = n - 2
    for k in range(n):
        round.left[k] = low + (high - low) * max(k - 1, 0) / inner if k < n - 1 else high
        round.right[k] = low + (high - low) * k / inner if k < n - 2 else high
        round.prior[k] = (1.0 - 2.0 * BOUND_MASS) / inner if 0 < k < n - 1 else BOUND_MASS
    return n


def cells_around(rules, q, usual, info, left, right, mass, w):
    """Cells around quantiles and the masses on them; returns their number."""
    # the grid starts at the mass of a tail
    tail, low, high = rules.grid[0], info.low, info.high
    return build_cells(q, rules.grid_count, low, high, rules.tail_cells, tail, usual, left, right, mass, w)


def cut_at_jumps(rules, n, round):
    """Cut the cells of a round where the payoff jumps; returns their number."""
    return cut_cells(rules.jumps, rules.jump_count, n, round.left, round.right, round.prior)


def put_on_cells(rules, q, usual, n, round, out, w):
    """Masses of an expert's quantiles on the cells of the round."""
    used = mark(w)
    inner = take(w, rules.grid_count)
    for j in range(rules.grid_count):
        inner[j] = min(max(q[j], round.info.low), round.info.high)
    left, right, mass = take(w, rules.cells), take(w, rules.cells), take(w, rules.cells)
    own = cells_around(rules, inner, usual, round.info, left, right, mass, w)
    rebin(own, left, right, mass, n, round.left, round.right, out)
    release(w, used)


def keep_experts(rules, experts, number, round):
    """Keep the rows of the experts, their mean first; one row where there are several experts is none of them."""
    size = rules.grid_count
    miss_experts(rules, round)
    if number == 1:
        copy(experts, size, round.experts)
        return
    mean_expert(experts, number, size, round.experts)
    for e in range(number):
        if not isnan(experts[e * size]):
            copy(cut(experts, e * size, size), size, cut(round.experts, (e + 1) * size, size))


def expert_cells(rules, memory, experts, number, prior, round, w):
    """Cells around the corrected quantiles, with their masses and those of the expert; returns their number."""
    used = mark(w)
    usual = usual_loss(memory.statistics)
    corrected = take(w, rules.grid_count)
    keep_experts(rules, experts, number, round)
    copy(prior, rules.grid_count, corrected)
    if rules.learns and rules.group_count > 0:
        correct_groups(rules, memory, round, corrected)
    for j in range(rules.grid_count):
        corrected[j] = min(max(corrected[j], rules.low), rules.high)
    set_window(rules, round.experts, corrected, memory.statistics, round.info)
    n = cells_around(rules, corrected, usual, round.info, round.left, round.right, round.prior, w)
    n = cut_at_jumps(rules, n, round)
    if rules.learns:
        put_on_cells(rules, round.experts, usual, n, round, round.expert, w)
    else:
        copy(round.prior, n, round.expert)
    release(w, used)
    return n


def bare_cells(rules, round):
    """Even cells, where there is no expert; returns their number."""
    miss_experts(rules, round)
    round.info.low = rules.low
    round.info.high = rules.high
    n = even_cells(rules.low, rules.high, rules.cells, round)
    n = cut_at_jumps(rules, n, round)
    copy(round.prior, n, round.expert)
    return n


def open_round(rules, memory, experts, number, prior, pending, round, mix, w):
    """Fill the round up to the prior of the last layer, in `mix`; the memory is only read."""
    info = round.info
    info.has_expert = 1.0 if number > 0 else 0.0
    info.pending = pending
    if number > 0:
        n = expert_cells(rules, memory, experts, number, prior, round, w)
    else:
        n = bare_cells(rules, round)
    info.cells = n
    place_rivals(rules, memory, n, round, w)
    copy(round.prior, n, mix)


def place_rivals(rules, memory, n, round, w):
    """Masses of each expert on the cells of the round; a missing one has none."""
    if rules.experts == 1:
        copy(round.expert, n, round.rivals)
        return
    usual = usual_loss(memory.statistics)
    for e in range(rules.experts):
        q = cut(round.experts, (e + 1) * rules.grid_count, rules.grid_count)
        if not isnan(q[0]):
            put_on_cells(rules, q, usual, n, round, cut(round.rivals, e * rules.capacity, rules.capacity), w)


def recell(rules, memory, round, mix, w):
    """Replace the cells around the expert by even ones: no forecast bounds the moments in a cell of half the space."""
    used = mark(w)
    n, capacity = cell_count(round), rules.capacity
    old = take(w, CELL_ROWS * capacity)
    copy(round.cells, CELL_ROWS * capacity, old)
    left, right = cut(old, 0, capacity), cut(old, capacity, capacity)
    total = rules.cells - 2
    even_cells(round.info.low, round.info.high, total, round)
    total = cut_at_jumps(rules, total, round)
    rebin(n, left, right, cut(old, 2 * capacity, capacity), total, round.left, round.right, round.prior)
    rebin(n, left, right, cut(old, 3 * capacity, capacity), total, round.left, round.right, round.expert)
    even_mix = take(w, total)
    rebin(n, left, right, mix, total, round.left, round.right, even_mix)
    for k in range(total):
        mix[k] = even_mix[k] + EVEN_SHARE * (1.0 / total - even_mix[k])
        round.prior[k] += EVEN_SHARE * (1.0 / total - round.prior[k])
    round.info.cells = total
    place_rivals(rules, memory, total, round, w)
    release(w, used)


def run_evenly(rules, memory, mix, reserved, round, w):
    """Compute the round on even cells; kept if its certificate holds there, or comes closer."""
    used = mark(w)
    numbers = take(w, rules.round_size)
    copy(round.numbers, rules.round_size, numbers)
    missing = round.certificate.worst - round.certificate.allowed
    recell(rules, memory, round, mix, w)
    run_rounds(rules, memory, mix, reserved, True, round, w)
    n = cell_count(round)
    for k in range(n):
        round.tilt[k] = 0.0
    if round.certificate.holds == 0.0 and missing <= round.certificate.worst - round.certificate.allowed:
        copy(numbers, rules.round_size, round.numbers)
    release(w, used)


def predict_round(rules, memory, experts, number, prior, pending, reserved, round, w):
    """Fill the round around corrected quantiles: cells, prior, forecast and certificate; the memory is only read."""
    used = mark(w)
    mix = take(w, rules.capacity)
    open_round(rules, memory, experts, number, prior, pending, round, mix, w)
    run_rounds(rules, memory, mix, reserved, round.info.has_expert == 0.0, round, w)
    if round.info.has_expert > 0.0 and round.certificate.holds == 0.0:
        run_evenly(rules, memory, mix, reserved, round, w)
    release(w, used)


def settle_round(rules, memory, round, reserved, y, w):
    """Add the payoff of an outcome to the ledger."""
    used = mark(w)
    near = min(max(y, round.info.low), round.info.high)
    k = locate(near, round.left, round.right, cell_count(round))
    core = take(w, rules.payoff_size)
    payoff(rules, round, near, k, core)
    squares = rules.discount * rules.discount * memory.statistics.squares
    memory.statistics.squares = squares + squared_payoff(rules.layout, round.context, core)
    settle(memory, round.context, reserved, core, round.certificate)
    if rules.level_count > 0:
        count(round, y, rules.levels, rules.level_count, rules.discount, memory.empirical, memory.counts, w)
    release(w, used)


def learn_level(statistics, y, rounds):
    """Mean and variance of the outcomes, for forecasts without an expert or bounds; no outcome moves them far."""
    if rounds <= 1.0:
        statistics.level_mean = y
        # the first outcome sets the unit; zero has none
        statistics.level_variance = max(0.01 * y * y, 1e-280) if y != 0.0 else 1e-12
        return
    step = max(0.002, 1.0 / (rounds + 1.0))
    most = LEVEL_STEP * sqrt(statistics.level_variance)
    change = min(max(y - statistics.level_mean, -most), most)
    statistics.level_mean += step * change
    statistics.level_variance = (1.0 - step) * (statistics.level_variance + step * change * change)


def learn_loss(rules, statistics, round, loss, clipped):
    """Update the expert's usual loss, and a robust one for the window."""
    info = round.info
    statistics.loss_sum = LOSS_DISCOUNT * statistics.loss_sum + loss
    statistics.loss_count = LOSS_DISCOUNT * statistics.loss_count + 1.0
    expected = expected_crps(int(info.cells), round.left, round.right, round.expert)
    spread = round.experts[rules.grid_count - 1] - round.experts[0]
    usual = max(statistics.robust_loss, expected, 1e-3 * spread, 1e-6 * fabs(clipped))
    step = max(0.002, 1.0 / (statistics.outcomes + 2.0))
    statistics.robust_loss += step * (min(loss, REACH_STEP * usual) - statistics.robust_loss)
    statistics.outcomes += 1.0


def learn_rivals(rules, memory, round, k, loss, clipped):
    """Update the scores of each expert; the pool's own CRPS is `loss`."""
    n, left, right, result = cell_count(round), round.left, round.right, round.result
    span = round.info.high - round.info.low
    mean = mean_of(n, left, right, result)
    for e in range(rules.experts):
        if rules.experts > 1 and isnan(round.experts[(e + 1) * rules.grid_count]):
            continue
        masses = cut(round.rivals, e * rules.capacity, rules.capacity)
        own = loss if rules.experts == 1 else crps(clipped, k, n, left, right, masses)
        rival = rival_at(memory.rivals, e)
        error = clipped - mean_of(n, left, right, masses)
        rival.crps = LOSS_DISCOUNT * rival.crps + own
        square = (error / span) * (error / span)
        rival.squared_error = LOSS_DISCOUNT * rival.squared_error + square
        rival.count = LOSS_DISCOUNT * rival.count + 1.0
        rival.crps_excess += crps_difference(clipped, k, n, left, right, result, masses)
        rival.mse_excess += (clipped - mean) * (clipped - mean) - error * error
        rival.rounds += 1.0


def median_of(n, round):
    """Median of the forecast, linear within its cell."""
    k = 0
    below = 0.0
    while k < n - 1 and below + round.result[k] < 0.5:
        below += round.result[k]
        k += 1
    share = (0.5 - below) / round.result[k] if round.result[k] > 0.0 else 1.0
    return round.left[k] + min(max(share, 0.0), 1.0) * (round.right[k] - round.left[k])


def count_misses(rules, memory, round, y):
    """Add the indicators of the outcome and the expert's quantiles; a tie counts as its level."""
    size, misses = rules.grid_count, memory.misses
    for j in range(size):
        q = round.experts[j]
        miss = (1.0 if y < q else 0.0) - rules.grid[j] if y != q else 0.0
        misses[j] = MISSES_KEPT * misses[j] + miss
    # outcomes that overlap are no independent ones
    misses[size] = MISSES_KEPT * MISSES_KEPT * misses[size] + 1.0 + round.info.pending


def learn(rules, memory, round, y, w):
    """Update the statistics with an outcome."""
    info, statistics, n = round.info, memory.statistics, cell_count(round)
    clipped = min(max(y, info.low), info.high)
    for k in range(rules.capacity):
        memory.warm[k] = round.tilt[k] if k < n else 0.0
    statistics.last_error = y - median_of(n, round)
    learn_level(statistics, y, memory.account.rounds)
    if info.has_expert == 0.0:
        return
    k = locate(clipped, round.left, round.right, n)
    loss = crps(clipped, k, n, round.left, round.right, round.expert)
    learn_loss(rules, statistics, round, loss, clipped)
    learn_rivals(rules, memory, round, k, loss, clipped)
    count_misses(rules, memory, round, y)
    if rules.learns and rules.group_count > 0:
        learn_groups(rules, memory, round, y, usual_loss(statistics), w)


def update_round(rules, memory, round, reserved, y, w):
    """Settle the outcome of a round and learn from it."""
    settle_round(rules, memory, round, reserved, y, w)
    learn(rules, memory, round, y, w)


def log_round(rules, round, levels, width, row, log_row, w):
    """Write the quantiles of a round, and what is known of it before the outcome."""
    read_forecast(round, round.info.draw, levels, width, row, w)
    n, left, right = cell_count(round), round.left, round.right
    mean, spread = nearest_normal(n, left, right, round.result, rules.open_low, rules.open_high, w)
    log = as_log(log_row)
    log.holds = round.certificate.holds
    log.promised = round.certificate.promised
    log.mean = mean
    log.sd = spread
    log.excess = round.certificate.excess


# --- entries for Python


def predict(rules, memory, experts, prior, own, pending, reserved, context, draw, mix):
    """New round around corrected quantiles; `own` if the rows are not an expert's, but those of past outcomes.

    With an array `mix` the round is only prepared: the prior of the last layer is written there.
    """
    round = Round(rules)
    w = workspace()
    flat = experts.reshape(-1)
    rows, number, corrected = readable_of(flat), len(experts), readable_of(prior)
    given, prepares = readable_of(context), mix is not None
    masses = numbers_of(mix) if prepares else round.prior
    with cython.nogil:
        copy(given, rules.groups, round.context)
        if prepares:
            open_round(rules, memory, rows, number, corrected, pending, round, masses, w)
        else:
            predict_round(rules, memory, rows, number, corrected, pending, reserved, round, w)
        round.info.draw = draw
        if own:
            # rows of past outcomes are no expert's; without any past only the level is learnt, since there is no unit
            round.info.has_expert = OWN_ROWS if memory.account.rounds > 0.0 else 0.0
    return round


def update(rules, memory, round, reserved, y):
    """Settle the outcome of a round."""
    w = workspace()
    with cython.nogil:
        update_round(rules, memory, round, reserved, y, w)


def learn_only(rules, memory, round, y):
    """Learn from an outcome whose payoff another engine settles."""
    w = workspace()
    with cython.nogil:
        memory.account.rounds += 1.0
        learn(rules, memory, round, y, w)


def payoffs(rules, round, places):
    """Core payoffs of outcomes at `places`, a row each."""
    number = len(places)
    found = np.empty(number * rules.payoff_size)
    at, out = readable_of(places), numbers_of(found)
    with cython.nogil:
        for i in range(number):
            k = locate(at[i], round.left, round.right, cell_count(round))
            payoff(rules, round, at[i], k, cut(out, i * rules.payoff_size, rules.payoff_size))
    return found.reshape(number, rules.payoff_size)


def cell_of(round, y):
    """Number of the cell of an outcome."""
    return locate(y, round.left, round.right, cell_count(round))


def run(rules, memory, plan, group, number, experts, contexts, outcomes, draws, levels, quantiles, round_log, pits):
    """Run many rounds, each outcome known before the next forecast; all arrays are flat, a row each round.

    `group` is the committee, or None; `number` that of the first round. `pits` takes those of the forecasts and of the
    experts, unless it is empty.
    """
    round = Round(rules)
    w = workspace()
    rounds, width, row = len(outcomes), len(levels), rules.experts * rules.grid_count
    all_experts, all_contexts, all_y = readable_of(experts), readable_of(contexts), readable_of(outcomes)
    all_draws, at = readable_of(draws), readable_of(levels)
    all_quantiles, all_log = numbers_of(quantiles), numbers_of(round_log)
    memos, found = np.empty(1 if group is None else group.memo_size), np.empty(rules.grid_count)
    memo, prior, learns = numbers_of(memos), numbers_of(found), group is not None
    pit_width, all_pits = len(pits) // rounds, numbers_of(pits)
    with cython.nogil:
        for t in range(rounds):
            copy(cut(all_contexts, t * rules.groups, rules.groups), rules.groups, round.context)
            round.info.draw = all_draws[t]
            q = cut(all_experts, t * row, row)
            if learns:
                predict_experts(plan, group, q, number + t, memo, prior, w)
            else:
                mean_expert(q, rules.experts, rules.grid_count, prior)
            predict_round(rules, memory, q, rules.experts, prior, 0.0, 0.0, round, w)
            log_row = cut(all_log, t * ROUND_LOG_SIZE, ROUND_LOG_SIZE)
            log_round(rules, round, at, width, cut(all_quantiles, t * width, width), log_row, w)
            if pit_width > 0:
                write_pits(rules, round, all_y[t], cut(all_pits, t * pit_width, pit_width))
            update_round(rules, memory, round, 0.0, all_y[t], w)
            if learns:
                update_experts(plan, group, memo, all_y[t], 0.0, w)
            as_log(log_row).miscalibration = miscalibration(memory)
