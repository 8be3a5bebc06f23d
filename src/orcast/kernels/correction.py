"""Corrected expert: the average of the expert and of the learners, weighted by evidence.

    learners, quantile trackers --losses--> their blend --evidence--> between it and the expert --level offsets--> prior

The blend gets weight if it beats the expert, or if the expert is miscalibrated, significantly; in a pool the evidence
of all streams counts too, above all evidence that nothing is gained. Until then the expert is used, with the spread
that its outcomes and those of the pool show as soon as that is significant (`orcast.kernels.spread`). The weight of the
level offsets is determined in the same way.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import LOSS_DISCOUNT, WEIGHT_RATE

if not cython.compiled:
    from orcast.kernels.delays import delayed, horizon
    from orcast.kernels.evidence import (
        OVERLAP,
        add_evidence,
        beyond_chance,
        expert_beyond_chance,
        fault,
        learn_ledger,
        prior_odds,
        share_of,
    )
    from orcast.kernels.level_offsets import learn_levels, rate_of, spread_of
    from orcast.kernels.pool_pure import quantile_trackers
    from orcast.kernels.pure import evidence_at, exp
    from orcast.kernels.quantile_function import between, bound_high, bound_low, corrected, outer_slopes
    from orcast.kernels.quantile_trackers import PER_SCALE, first_awake, offset_quantiles, pinball, say
    from orcast.kernels.quantile_trackers import gradients as pool_gradients
    from orcast.kernels.quantile_trackers import learn as learn_offsets
    from orcast.kernels.rows import cut, mark, release, take
    from orcast.kernels.spread import stretch_of
    from orcast.kernels.state import POOL_EVIDENCE, POOL_EXCESS
    from orcast.kernels.tracker import learn as teach_learners
    from orcast.kernels.tracker import learners_say

INF = float("inf")
# No quantile lies further beyond the expert's and the recent outcomes than this many spreads.
CAP = 2.0
# Prior odds of the level offsets on an uncorrected expert; they are divided by 1 - LEVEL_SPARED where the whole
# forecast is learnt.
LEVEL_ODDS, LEVEL_SPARED = 0.8, 0.9
# Test statistic for miscalibration above which it is evidence: of one stream, and of the mean over a pool.
CLEAR_FAULT, CLEAR_POOL_FAULT = 2.0, 1.0
# In a pool: the weight of a stream's own miscalibration, of evidence that nothing is gained, and the number of new
# outcomes for which evidence of a gain counts.
OWN_FAULT, NO_GAIN, START = 0.1, 1.5, 10.0


def trackers_of(rules, memory):
    """Quantile trackers of a recalibrator."""
    return quantile_trackers(
        rules.trackers,
        rules.tracker_count,
        rules.pooled,
        rules.grid,
        rules.grid_count,
        bound_low(rules),
        bound_high(rules),
        memory.offsets,
        memory.pool_seen,
        memory.tracker_unit,
    )


def learner_odds(pending):
    """Prior odds of a learner against a quantile tracker: it follows errors that are old with outcomes outstanding."""
    overlap = 1.0 + min(pending, OVERLAP)
    return 1.0 / (overlap * overlap)


def level_odds(share, pending):
    """Prior odds of the level offsets, given the weight s of the blend.

    LEVEL_ODDS / (1 - LEVEL_SPARED s / (1 + n)), with n outcomes outstanding.
    """
    return LEVEL_ODDS / (1.0 - LEVEL_SPARED * share / (1.0 + min(pending, OVERLAP)))


def own_odds(statistics, heard):
    """Prior odds in a pool of the learners that use only the stream, which have few outcomes at first."""
    if heard == 0:
        return 1.0
    return (statistics.outcomes + 1.0) / (statistics.outcomes + START)


def hint_of(rules, memory, signal, heard, pending):
    """Evidence for the blend beside its own gain, in standard errors."""
    own = expert_beyond_chance(memory.expert_ledger, rules.grid_count, rules.grid, rules.scores)
    if heard == 0:
        return fault(own, CLEAR_FAULT)
    hint = fault(OWN_FAULT * own + (1.0 - OWN_FAULT) * signal[POOL_EXCESS], CLEAR_POOL_FAULT)
    gain = signal[POOL_EVIDENCE]
    if gain < 0.0:
        return hint + NO_GAIN * gain
    new = memory.statistics.outcomes / (1.0 + min(pending, OVERLAP))
    return hint + gain / (1.0 + new / START)


def blend(rules, loss, odds, young, round, heard, q, slope_low, slope_high, out):
    """Mean quantiles of the learners and of the quantile trackers in use, weighted by their losses.

    `odds` are those of the learners, `young` those of all that do not share in the pool.
    """
    learners, trackers, n = rules.learner_count, rules.tracker_count, rules.grid_count
    first = first_awake(rules.pooled, heard)
    best = INF
    for c in range(learners):
        best = min(best, loss[c])
    for m in range(first, trackers):
        best = min(best, loss[learners + m])
    location = 0.0
    spread = 0.0
    own = 0.0
    for c in range(learners):
        weight = young * odds * exp(-WEIGHT_RATE * (loss[c] - best))
        location += weight * round.learners[c].location
        spread += weight * round.learners[c].spread
        own += weight
    if own > 0.0:
        corrected(location / own, spread / own, rules, q, slope_low, slope_high, out)
    else:
        for i in range(n):
            out[i] = 0.0
    total = own
    for m in range(first, trackers):
        weight = exp(-WEIGHT_RATE * (loss[learners + m] - best))
        if m >= rules.pooled:
            weight *= young
        if weight == 0.0:
            continue  # the weights before it may be zero too
        total += weight
        for i in range(n):
            out[i] = between(out[i], round.tracked[m * n + i], weight / total)


def cap(rules, statistics, q, out):
    """Limit quantiles to a few spreads beyond the expert's and the recent outcomes, and to the bounds."""
    low, high = bound_low(rules), bound_high(rules)
    last = rules.grid_count - 1
    median = q[last // 2]
    lowest, highest = q[0], q[last]
    far = 0.0
    if statistics.outcomes > 0.0:
        far = statistics.farthest_error
        lowest = min(lowest, statistics.last_outcome, median - far)
        highest = max(highest, statistics.last_outcome, median + far)
    least = min(max(lowest - CAP * max(median - q[0], far), low), high)
    most = min(max(highest + CAP * max(q[last] - median, far), low), high)
    for i in range(last + 1):
        out[i] = min(max(out[i], least), most)


def stretched(rules, memory, signal, heard, q, slope_low, slope_high, out):
    """Expert with the spread that its outcomes show, weighted by evidence: the baseline of the blend.

    With late outcomes its current version is used, which is no worse than the one at the time of the forecast.
    """
    outcomes = memory.tracker_unit.count
    usual = signal[heard - 1] if heard > 0 else 0.0
    stretch = stretch_of(memory.expert_ledger, rules.grid_count, rules.grid, rules.scores, outcomes, usual)
    corrected(0.0, stretch, rules, q, slope_low, slope_high, out)


def correct(rules, memory, round, signal, heard, out, w):
    """Record the forecasts of each learner and quantile tracker, and fill `out` with those of the corrected expert."""
    n, trackers = rules.grid_count, rules.tracker_count
    pending = round.info.pending
    q = cut(round.experts, 0, n)
    slope_low, slope_high = outer_slopes(rules, q, round.info.smallest_slope)
    learners_say(rules, memory, q, slope_low, slope_high, pending, round, w)
    say(trackers_of(rules, memory), q, signal, heard, PER_SCALE * round.record.scale, round.tracked)
    learnt = cut(round.tracked, trackers * n, n)
    young = own_odds(memory.statistics, heard)
    width = rules.learner_count + trackers
    loss = cut(memory.track_loss, horizon(pending) * width, width)
    blend(rules, loss, learner_odds(pending), young, round, heard, q, slope_low, slope_high, learnt)
    cap(rules, memory.statistics, q, learnt)
    hint = hint_of(rules, memory, signal, heard, pending)
    share = share_of(evidence_at(memory.track_evidence, horizon(pending)), hint, prior_odds(pending))
    base = cut(round.tracked, (trackers + 1) * n, n)
    stretched(rules, memory, signal, heard, q, slope_low, slope_high, base)
    for i in range(n):
        base[i] = between(base[i], learnt[i], share)
    settled = cut(round.tracked, (trackers + 2) * n, n)
    spread = spread_of(base, n, rules.scores)
    offset_quantiles(base, n, memory.level_offsets, spread, bound_low(rules), bound_high(rules), settled)
    cap(rules, memory.statistics, q, settled)
    hint = fault(beyond_chance(memory.level_ledger, n), CLEAR_FAULT)
    share = share_of(evidence_at(memory.level_evidence, horizon(pending)), hint, level_odds(share, pending))
    for i in range(n):
        out[i] = between(base[i], settled[i], share)


def learn(rules, memory, round, signal, heard, y, clipped, weight, unit, w):
    """Update everything with the outcome of a round, from its record of the forecast."""
    n = rules.grid_count
    q = cut(round.experts, 0, n)
    slope_low, slope_high = round.record.slope_low, round.record.slope_high
    learn_weights(rules, memory, round, signal, heard, clipped, weight, unit, q, slope_low, slope_high, w)
    learn_offsets(trackers_of(rules, memory), q, signal, heard, PER_SCALE * round.record.scale, y, w)
    learn_level_offsets(rules, memory, round, y, clipped, unit, w)
    learn_ledger(memory.expert_ledger, n, q, rules.grid, round.info.pending, y, w)
    teach_learners(rules, memory, round, q, slope_low, slope_high, y, clipped, weight, unit, w)


def learn_level_offsets(rules, memory, round, y, clipped, unit, w):
    """Step of the level offsets, and the evidence for them."""
    n = rules.grid_count
    pending = round.info.pending
    base = cut(round.tracked, (rules.tracker_count + 1) * n, n)
    settled = cut(round.tracked, (rules.tracker_count + 2) * n, n)
    gain = pinball(base, n, clipped, rules.grid) - pinball(settled, n, clipped, rules.grid)
    add_evidence(evidence_at(memory.level_evidence, horizon(pending)), gain / (0.5 * unit), pending)
    learn_ledger(memory.level_ledger, n, base, rules.grid, pending, y, w)
    rate = rate_of(memory.statistics, pending)
    low, high = bound_low(rules), bound_high(rules)
    learn_levels(memory.level_offsets, base, n, rules.scores, rules.grid, rate, low, high, y, w)


def learn_weights(rules, memory, round, signal, heard, clipped, weight, unit, q, slope_low, slope_high, w):
    """Discounted pinball losses of each learner and quantile tracker, and the evidence for their blend."""
    used = mark(w)
    n, learners, trackers = rules.grid_count, rules.learner_count, rules.tracker_count
    pending = round.info.pending
    loss = cut(memory.track_loss, horizon(pending) * (learners + trackers), learners + trackers)
    quantiles = take(w, n)
    kept = delayed(LOSS_DISCOUNT, weight)
    half = 0.5 * unit
    for c in range(learners):
        location, spread = round.learners[c].location, round.learners[c].spread
        corrected(location, spread, rules, q, slope_low, slope_high, quantiles)
        lost = pinball(quantiles, n, clipped, rules.grid)
        loss[c] = kept * loss[c] + weight * lost / half
    for m in range(trackers):
        lost = pinball(cut(round.tracked, m * n, n), n, clipped, rules.grid)
        loss[learners + m] = kept * loss[learners + m] + weight * lost / half
    stretched(rules, memory, signal, heard, q, slope_low, slope_high, quantiles)
    lost = pinball(cut(round.tracked, trackers * n, n), n, clipped, rules.grid)
    gain = pinball(quantiles, n, clipped, rules.grid) - lost
    add_evidence(evidence_at(memory.track_evidence, horizon(pending)), gain / half, pending)
    release(w, used)


def pool_part(rules, memory, round, signal, heard, y, out, w):
    """Gradients of the pooled trackers at an outcome, in `out`; returns their gain over the expert."""
    n = rules.grid_count
    q = cut(round.experts, 0, n)
    slope_low, slope_high = round.record.slope_low, round.record.slope_high
    expected = PER_SCALE * round.record.scale
    pool_gradients(trackers_of(rules, memory), q, signal, heard, expected, y, out, rules.pooled, w)
    unit = 0.5 * expected
    if memory.tracker_unit.count > 0.0:
        unit = 0.5 * memory.tracker_unit.loss / memory.tracker_unit.count
    if unit <= 0.0:
        return 0.0
    used = mark(w)
    alone, mean = take(w, n), take(w, n)
    stretched(rules, memory, signal, heard, q, slope_low, slope_high, alone)
    for i in range(n):
        total = 0.0
        for m in range(rules.pooled):
            total += round.tracked[m * n + i]
        mean[i] = total / rules.pooled
    gain = (pinball(alone, n, y, rules.grid) - pinball(mean, n, y, rules.grid)) / unit
    release(w, used)
    return gain
