"""Compiled kernels of the corrected expert: what was learnt, as far as evidence goes.

    learners, quantile trackers --losses--> their blend --evidence--> between it and the expert --level offsets--> prior

The blend has to beat the expert by more than chance, or the expert must be miscalibrated by more than chance, before it
counts; in a pool, what all its streams saw is evidence too, above all that there is nothing to be gained.  Until then
the expert is played, with the spread that its outcomes and those of the pool show as soon as that is clear
(`kernels.spread`).  The level offsets have to earn their share in the same way.
"""

from __future__ import annotations

import numpy as np

from orcast.constants import LOSS_DISCOUNT, WEIGHT_RATE
from orcast.engine.kernels.delays import delayed, horizon
from orcast.engine.kernels.evidence import (
    OVERLAP,
    add_evidence,
    beyond_chance,
    expert_beyond_chance,
    fault,
    learn_ledger,
    prior_odds,
    share_of,
)
from orcast.engine.kernels.level_offsets import learn_levels, rate_of, spread_of
from orcast.engine.kernels.quantile_function import between, corrected, quantile_function, with_slopes
from orcast.engine.kernels.quantile_trackers import (
    PER_SCALE,
    QuantileTrackers,
    first_awake,
    offset_quantiles,
    pinball,
    say,
)
from orcast.engine.kernels.quantile_trackers import gradients as pool_gradients
from orcast.engine.kernels.quantile_trackers import learn as learn_offsets
from orcast.engine.kernels.records import (
    LEARNER_SIZE,
    LearnerRecord,
    PoolColumn,
    RoundInfo,
    Statistic,
    TrackerRecord,
    TrackerUnit,
)
from orcast.engine.kernels.spread import stretch_of
from orcast.engine.kernels.tracker import learn as teach_learners
from orcast.engine.kernels.tracker import learners_say
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp

# No quantile lies further beyond the expert's and the recent outcomes than so many spreads.
CAP = 2.0
# Before any evidence, the odds of the level offsets on an expert that is left as it is; where all of a forecast is
# learnt, they are over 1 - LEVEL_SPARED.
LEVEL_ODDS, LEVEL_SPARED = 0.8, 0.9
# How far beyond chance a miscalibration is before it counts: of one stream, and in the mean over a pool.
CLEAR_FAULT, CLEAR_POOL_FAULT = 2.0, 1.0
# In a pool: the weight of a stream's own miscalibration, of evidence that nothing is gained, and for how many new
# outcomes evidence of a gain counts.
OWN_FAULT, NO_GAIN, START = 0.1, 1.5, 10.0


@kernel_part
def trackers_of(rules, memory, expert):
    """The quantile trackers of a game."""
    return QuantileTrackers(
        rules.quantile_trackers,
        rules.pooled,
        rules.grid,
        expert.low,
        expert.high,
        memory.offsets,
        memory.pool_seen,
        memory.tracker_unit,
    )


@kernel_part
def learner_odds(pending):
    """Prior odds of a learner against a quantile tracker: it follows errors that are old by then."""
    overlap = 1.0 + min(pending, OVERLAP)
    return 1.0 / (overlap * overlap)


@kernel_part
def level_odds(share, pending):
    """Prior odds of the level offsets, given the share s of what was learnt: it is the expert that need not be touched.

    LEVEL_ODDS / (1 - LEVEL_SPARED s / (1 + n)), with n outcomes outstanding: offsets answer for what was learnt then.
    """
    return LEVEL_ODDS / (1.0 - LEVEL_SPARED * share / (1.0 + min(pending, OVERLAP)))


@kernel_part
def own_odds(statistics, signal):
    """Prior odds in a pool of what learns from the stream alone: it knows nothing at first."""
    if signal.shape[0] == 0:
        return 1.0
    return (statistics[Statistic.OUTCOMES] + 1.0) / (statistics[Statistic.OUTCOMES] + START)


@kernel
def hint_of(rules, memory, signal, pending):
    """What speaks for the blend beside its own gain, in standard errors."""
    own = expert_beyond_chance(memory.expert_ledger, rules.grid, rules.scores)
    if signal.shape[0] == 0:
        return fault(own, CLEAR_FAULT)
    hint = fault(OWN_FAULT * own + (1.0 - OWN_FAULT) * signal[PoolColumn.BEYOND_CHANCE], CLEAR_POOL_FAULT)
    gain = signal[PoolColumn.EVIDENCE]
    if gain < 0.0:
        return hint + NO_GAIN * gain
    new = memory.statistics[Statistic.OUTCOMES] / (1.0 + min(pending, OVERLAP))
    return hint + gain / (1.0 + new / START)


@kernel
def blend(rules, loss, odds, young, round, signal, expert, out):
    """The mean quantiles of the learners and the quantile trackers that are awake, weighed by their losses.

    `odds` are those of the learners, `young` those of all that does not share in the pool.
    """
    record = round.tracker_record
    learners, trackers = rules.learners.shape[0], rules.quantile_trackers.shape[0]
    first = first_awake(rules.pooled, signal)
    best = np.inf
    for c in range(learners):
        best = min(best, loss[c])
    for m in range(first, trackers):
        best = min(best, loss[learners + m])
    location = 0.0
    spread = 0.0
    own = 0.0
    for c in range(learners):
        at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
        weight = young * odds * exp(-WEIGHT_RATE * (loss[c] - best))
        location += weight * record[at + LearnerRecord.LOCATION]
        spread += weight * record[at + LearnerRecord.SPREAD]
        own += weight
    if own > 0.0:
        corrected(location / own, spread / own, expert, out)
    else:
        out[:] = 0.0
    total = own
    for m in range(first, trackers):
        weight = exp(-WEIGHT_RATE * (loss[learners + m] - best))
        if m >= rules.pooled:
            weight *= young
        if weight == 0.0:
            continue  # it fell so far behind that nothing is left of it, nor perhaps of those before it
        total += weight
        for i in range(out.shape[0]):
            out[i] = between(out[i], round.tracked[m, i], weight / total)


@kernel_part
def cap(statistics, expert, out):
    """No quantile beyond the expert's and the recent outcomes by more than a few spreads, nor beyond the bounds."""
    q = expert.values
    last = q.shape[0] - 1
    median = q[last // 2]
    lowest, highest = q[0], q[last]
    far = 0.0
    if statistics[Statistic.OUTCOMES] > 0.0:
        far = statistics[Statistic.FARTHEST_ERROR]
        lowest = min(lowest, statistics[Statistic.LAST_OUTCOME], median - far)
        highest = max(highest, statistics[Statistic.LAST_OUTCOME], median + far)
    least = min(max(lowest - CAP * max(median - q[0], far), expert.low), expert.high)
    most = min(max(highest + CAP * max(q[last] - median, far), expert.low), expert.high)
    for i in range(last + 1):
        out[i] = min(max(out[i], least), most)


@kernel
def stretched(rules, memory, signal, expert, out):
    """The expert with the spread that its outcomes show, as far as evidence goes: what the blend has to beat.

    With late outcomes it is judged as it is now, which is no less than it was when the forecast was made.
    """
    outcomes = memory.tracker_unit[TrackerUnit.COUNT]
    usual = signal[signal.shape[0] - 1] if signal.shape[0] > 0 else 0.0
    corrected(0.0, stretch_of(memory.expert_ledger, rules.grid, rules.scores, outcomes, usual), expert, out)


@kernel
def correct(rules, memory, round, signal, out):
    """Record what each learner and quantile tracker says, and fill `out` with the quantiles of the corrected expert."""
    record = round.tracker_record
    pending = round.info[RoundInfo.PENDING]
    expert = quantile_function(rules, round.experts[0], round.info[RoundInfo.SMALLEST_SLOPE])
    learners_say(rules, memory, expert, pending, record)
    trackers = trackers_of(rules, memory, expert)
    say(trackers, expert.values, signal, PER_SCALE * record[TrackerRecord.SCALE], round.tracked)
    learnt = round.tracked[rules.quantile_trackers.shape[0]]
    young = own_odds(memory.statistics, signal)
    blend(rules, memory.track_loss[horizon(pending)], learner_odds(pending), young, round, signal, expert, learnt)
    cap(memory.statistics, expert, learnt)
    hint = hint_of(rules, memory, signal, pending)
    share = share_of(memory.track_evidence[horizon(pending)], hint, prior_odds(pending))
    base = round.tracked[rules.quantile_trackers.shape[0] + 1]
    stretched(rules, memory, signal, expert, base)
    for i in range(out.shape[0]):
        base[i] = between(base[i], learnt[i], share)
    settled = round.tracked[rules.quantile_trackers.shape[0] + 2]
    offset_quantiles(base, memory.level_offsets, spread_of(base, rules.scores), expert.low, expert.high, settled)
    cap(memory.statistics, expert, settled)
    hint = fault(beyond_chance(memory.level_ledger), CLEAR_FAULT)
    share = share_of(memory.level_evidence[horizon(pending)], hint, level_odds(share, pending))
    for i in range(out.shape[0]):
        out[i] = between(base[i], settled[i], share)


@kernel
def learn(rules, memory, round, signal, outcome):
    """Teach all of it the outcome of a round, from what it saw when the forecast was made."""
    record = round.tracker_record
    expert = with_slopes(rules, round.experts[0], record[TrackerRecord.SLOPE_LOW], record[TrackerRecord.SLOPE_HIGH])
    learn_weights(rules, memory, round, signal, outcome, expert)
    expected = PER_SCALE * record[TrackerRecord.SCALE]
    learn_offsets(trackers_of(rules, memory, expert), expert.values, signal, expected, outcome.value)
    learn_level_offsets(rules, memory, round, outcome, expert)
    learn_ledger(memory.expert_ledger, expert.values, rules.grid, round.info[RoundInfo.PENDING], outcome.value)
    teach_learners(rules, memory, round, expert, outcome)


@kernel_part
def learn_level_offsets(rules, memory, round, outcome, expert):
    """A step of the level offsets, and the evidence for them."""
    pending = round.info[RoundInfo.PENDING]
    base = round.tracked[rules.quantile_trackers.shape[0] + 1]
    settled = round.tracked[rules.quantile_trackers.shape[0] + 2]
    gain = pinball(base, outcome.clipped, rules.grid) - pinball(settled, outcome.clipped, rules.grid)
    add_evidence(memory.level_evidence[horizon(pending)], gain / (0.5 * outcome.unit), pending)
    learn_ledger(memory.level_ledger, base, rules.grid, pending, outcome.value)
    rate = rate_of(memory.statistics, pending)
    learn_levels(memory.level_offsets, base, rules.scores, rules.grid, rate, expert, outcome.value)


@kernel_part
def learn_weights(rules, memory, round, signal, outcome, expert):
    """Discounted pinball losses of each learner and quantile tracker, and the evidence for all of them together."""
    pending = round.info[RoundInfo.PENDING]
    loss = memory.track_loss[horizon(pending)]
    learners, trackers = rules.learners.shape[0], rules.quantile_trackers.shape[0]
    quantiles = np.empty(expert.values.shape[0])
    kept = delayed(LOSS_DISCOUNT, outcome.weight)
    unit = 0.5 * outcome.unit
    for c in range(learners):
        at = TrackerRecord.LEARNERS + c * LEARNER_SIZE
        location = round.tracker_record[at + LearnerRecord.LOCATION]
        corrected(location, round.tracker_record[at + LearnerRecord.SPREAD], expert, quantiles)
        lost = pinball(quantiles, outcome.clipped, rules.grid)
        loss[c] = kept * loss[c] + outcome.weight * lost / unit
    for m in range(trackers):
        lost = pinball(round.tracked[m], outcome.clipped, rules.grid)
        loss[learners + m] = kept * loss[learners + m] + outcome.weight * lost / unit
    stretched(rules, memory, signal, expert, quantiles)
    lost = pinball(round.tracked[trackers], outcome.clipped, rules.grid)
    gain = pinball(quantiles, outcome.clipped, rules.grid) - lost
    add_evidence(memory.track_evidence[horizon(pending)], gain / unit, pending)


@kernel
def pool_part(rules, memory, round, signal, y, out):
    """What a game tells its pool of an outcome: the gradients of the trackers that share in it, and what they gain."""
    record = round.tracker_record
    expert = with_slopes(rules, round.experts[0], record[TrackerRecord.SLOPE_LOW], record[TrackerRecord.SLOPE_HIGH])
    expected = PER_SCALE * record[TrackerRecord.SCALE]
    pool_gradients(trackers_of(rules, memory, expert), expert.values, signal, expected, y, out)
    unit = 0.5 * expected
    if memory.tracker_unit[TrackerUnit.COUNT] > 0.0:
        unit = 0.5 * memory.tracker_unit[TrackerUnit.LOSS] / memory.tracker_unit[TrackerUnit.COUNT]
    if unit <= 0.0:
        return 0.0
    size = expert.values.shape[0]
    alone, mean = np.empty(size), np.empty(size)
    stretched(rules, memory, signal, expert, alone)
    for i in range(size):
        total = 0.0
        for m in range(rules.pooled):
            total += round.tracked[m, i]
        mean[i] = total / rules.pooled
    return (pinball(alone, y, rules.grid) - pinball(mean, y, rules.grid)) / unit
