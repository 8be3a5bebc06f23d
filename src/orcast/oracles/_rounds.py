"""Compiled kernels of a round on an interval: predict, update, and many rounds in one go.

    expert --tracker--> corrected expert --cells--> prior --members--> mix --last equilibrium--> forecast

Only the last equilibrium touches the ledger and its guarantee; see docs/theory.md.
"""

from __future__ import annotations

import math

import numpy as np

from orcast import ledger as _ledger
from orcast.oracles import _tracker
from orcast.oracles._cells import build_cells, crps, locate, mean_of, read_quantiles, rebin
from orcast.oracles._compile import kernel
from orcast.oracles._members import horizon, mix_members, teach_members
from orcast.oracles._ordered import crps_difference, payoff
from orcast.oracles._play import play, regret_scales
from orcast.oracles._state import (
    CELLS,
    CRPS_SCALE,
    EXPERT,
    HAS_EXPERT,
    LAST_CONTEXT,
    LEFT,
    LOSS_KEEP,
    MSE_SCALE,
    PENDING,
    PLAYED,
    PRIOR,
    RIGHT,
    TILT,
)
from orcast.spaces import TAIL_MASS

settle = kernel(_ledger.settle)

# With n outcomes outstanding, what was learnt has prior odds (1 + n)^-DOUBT against the expert.
DOUBT = 0.5
# Prior mass of the atom at each bound, without an expert.
BOUND_MASS = 1e-4
# Even mass mixed in where even cells replace those around the expert.
EVEN_SHARE = 0.01


@kernel
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


@kernel
def cells_around(rules, q, usual, rows, mass, slots):
    """The cells around an expert's quantiles and its masses on them."""
    return build_cells(
        q, rules.low, rules.high, rules.tail_cells, TAIL_MASS, usual, rows[LEFT], rows[RIGHT], mass, slots
    )


@kernel
def play_evenly(rules, memory, n, mix, pending, reserved, rnd):
    """The same on even cells, where those around the expert are too coarse for what is owed; kept if it holds.

    An outcome that shares its cell with half of the interval has any mean, so no forecast can answer for its moments.
    """
    rows = rnd.cells
    old, old_info, old_note, old_slots = rows.copy(), rnd.info.copy(), rnd.note.copy(), rnd.slots.copy()
    # not as many as there are slots: members then take their basis from the masses
    total = rnd.slots.shape[0] - 2
    even_cells(rules.low, rules.high, total, rows, rnd.slots)
    rnd.slots[total:] = total - 1
    for row in range(PRIOR, rows.shape[0]):
        if row != TILT and row != PLAYED:
            rebin(n, old[LEFT], old[RIGHT], old[row], total, rows[LEFT], rows[RIGHT], rows[row])
    even_mix = np.empty(total)
    rebin(n, old[LEFT], old[RIGHT], mix, total, rows[LEFT], rows[RIGHT], even_mix)
    for k in range(total):
        even_mix[k] += EVEN_SHARE * (1.0 / total - even_mix[k])
        rows[PRIOR, k] += EVEN_SHARE * (1.0 / total - rows[PRIOR, k])
    rnd.info[CELLS] = total
    regret_scales(rules, memory, total, rows, even_mix, rnd.info)
    play(rules, memory, total, even_mix, pending, reserved, rnd)
    for k in range(total):
        rows[TILT, k] = 0.0
    if rnd.note[_ledger.HOLDS] == 0.0:
        rows[:] = old
        rnd.info[:] = old_info
        rnd.note[:] = old_note
        rnd.slots[:] = old_slots


@kernel
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
        seen = memory.tally[_tracker.LOSS_COUNT]
        usual = memory.tally[_tracker.LOSS_SUM] / seen if seen > 0.0 else 0.0
        clipped = np.empty(expert.shape[0])
        for j in range(expert.shape[0]):
            rnd.expert[j] = expert[j]
            clipped[j] = min(max(expert[j], low), high)
        n = cells_around(rules, clipped, usual, rows, rows[EXPERT], rnd.slots)
        if rules.learners.shape[0] > 0:
            raw = rows[: EXPERT + 1].copy()
            shifted = np.empty(expert.shape[0])
            losses = memory.track_loss[horizon(pending)]
            _tracker.track(
                rnd.expert, rules.scores, low, high, rules.learners, losses, doubt, memory, rnd.record, shifted
            )
            n_raw = n
            n = cells_around(rules, shifted, usual, rows, rows[PRIOR], rnd.slots)
            rebin(n_raw, raw[LEFT], raw[RIGHT], raw[EXPERT], n, rows[LEFT], rows[RIGHT], rows[EXPERT])
        else:
            rows[PRIOR, :n] = rows[EXPERT, :n]
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
    if has_expert and rnd.note[_ledger.HOLDS] == 0.0:
        play_evenly(rules, memory, n, mix, pending, reserved, rnd)


@kernel
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
    played = (y - mean_of(n, left, right, rows[PLAYED])) / span
    tally[_tracker.CRPS_EXCESS] += crps_difference(y, k, n, left, right, rows[PLAYED], rows[EXPERT])
    tally[_tracker.MSE_EXCESS] += (played * played - error * error) * span * span
    tally[_tracker.LOSS_SUM] = LOSS_KEEP * tally[_tracker.LOSS_SUM] + loss
    tally[_tracker.SQUARE_SUM] = LOSS_KEEP * tally[_tracker.SQUARE_SUM] + error * error
    tally[_tracker.LOSS_COUNT] = LOSS_KEEP * tally[_tracker.LOSS_COUNT] + 1.0
    unit = max(tally[_tracker.LOSS_SUM] / tally[_tracker.LOSS_COUNT], 1e-12 * span)
    weight = 1.0 / math.sqrt(1.0 + info[PENDING])
    if rules.members.shape[0] > 0:
        teach_members(rules, memory, rnd, y, k, loss, unit, weight)
    if rules.learners.shape[0] > 0:
        _tracker.learn(
            y,
            rnd.expert,
            rules.scores,
            rules.grid,
            rules.low,
            rules.high,
            rules.learners,
            memory.track_loss[horizon(info[PENDING])],
            LOSS_KEEP,
            0.5 * unit,
            weight,
            memory,
            rnd.record,
        )


@kernel
def run(rules, memory, experts, outcomes, levels, rnd, quantiles, held):
    """Many rounds in one go, each outcome known before the next forecast; reads the quantiles at `levels` of each."""
    for t in range(outcomes.shape[0]):
        predict(rules, memory, experts[t], 0, 0.0, rnd)
        n = int(rnd.info[CELLS])
        read_quantiles(n, rnd.cells[LEFT], rnd.cells[RIGHT], rnd.cells[PLAYED], levels, quantiles[t])
        held[t] = rnd.note[_ledger.HOLDS]
        update(rules, memory, rnd, 0.0, outcomes[t])
