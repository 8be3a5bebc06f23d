"""Pools: quantile trackers that the streams of a panel share.

A pool holds the pooled quantile trackers of each of its streams. A stream is one series at one horizon. All outcomes
that become known together are a batch: first the gradients of all of them are taken, at the current offsets, then every
stream steps, with the mean over the batch. A horizon uses its own gradients and, with weight CROSS, those of the
others. As long as there is one series only, its horizons are pooled as equal streams.

Sums are added up in the order of the streams, which is that of their names, so that results do not depend on the order
of rows, and a stream without outcomes changes no bit.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import numpy as np

from orcast.constants import PER_ABSOLUTE

if not cython.compiled:
    from orcast.kernels.evidence import add_evidence, expert_beyond_chance, learn_ledger, standard_errors
    from orcast.kernels.pool_pure import as_pool_spreads, pool_spread_at, quantile_trackers, tracker_unit_at
    from orcast.kernels.pure import as_evidence, evidence_at, fabs
    from orcast.kernels.quantile_function import corrected_on, outer_slopes_on, quantile_on
    from orcast.kernels.quantile_trackers import PER_SCALE, gradients, pinball, say, step
    from orcast.kernels.rows import cut, mark, numbers_of, readable_of, release, take, whole_of, workspace
    from orcast.kernels.spread import add_spread, stretch_of, usual_excess
    from orcast.kernels.state import POOL_COUNT, POOL_EVIDENCE, POOL_EXCESS, POOL_SUMS

# Weight of the other horizons in the signal of a horizon.
CROSS = 0.3
# Smallest slope of an expert.
SMALLEST = 1e-140


def trackers_of(rules, memory, streams, s):
    """Quantile trackers of a stream."""
    return quantile_trackers(
        rules.trackers,
        rules.tracker_count,
        rules.tracker_count,
        rules.levels,
        rules.level_count,
        streams.bounds[2 * s],
        streams.bounds[2 * s + 1],
        cut(memory.offsets, s * rules.size, rules.size),
        cut(memory.seen, s * (POOL_SUMS + rules.size), POOL_SUMS + rules.size),
        tracker_unit_at(memory.unit, s),
    )


def expected_loss(q, n, scores):
    """Loss that an expert expects of itself."""
    low, high = outer_slopes_on(q, scores, n, SMALLEST)
    wide = quantile_on(1.0, q, scores, n, low, high) - quantile_on(-1.0, q, scores, n, low, high)
    return PER_SCALE * 0.5 * wide


def is_alone(memory):
    """Whether only one series has outcomes."""
    return memory.tally.series <= 1.0


def streams_with_outcome(memory):
    """Number of streams with an outcome, of all horizons."""
    total = 0.0
    for h in range(memory.horizons):
        total += memory.members[h]
    return total


def is_heard(memory, h):
    """Whether a horizon receives a signal: a pool of one stream gives none."""
    if is_alone(memory):
        return streams_with_outcome(memory) >= 2.0
    least = 1.0 if memory.tally.together > 0.0 else 2.0
    return memory.members[h] >= least


def fill_sums(memory, h, out):
    """Count and sums of gradients in the signal of a horizon."""
    size = POOL_SUMS + memory.rules.size
    for i in range(size):
        out[i] = memory.common[i] + memory.own[h * size + i]


def fill_signal(memory, h, out, w):
    """Signal of a horizon."""
    used = mark(w)
    fill_sums(memory, h, out)
    fresh = is_alone(memory) or memory.batches[h] == 0.0
    if fresh:
        out[POOL_EVIDENCE] = standard_errors(memory.common_evidence)
    else:
        out[POOL_EVIDENCE] = standard_errors(evidence_at(memory.evidence, h))
    at = POOL_SUMS + memory.rules.size
    size = memory.rules.size
    for i in range(size):
        out[at + i] = 0.0
    count = 0.0
    for k in range(memory.horizons):
        if k == h or is_alone(memory):
            count += memory.members[k]
            for i in range(size):
                out[at + i] += memory.totals[k * size + i]
    beyond = 0.0
    sums = take(w, 6)
    for i in range(6):
        sums[i] = 0.0
    spreads = pool_spread_at(as_pool_spreads(sums), 0)
    for k in range(memory.horizons):
        if k == h or is_alone(memory):
            beyond += memory.beyond[k]
            spreads.streams += memory.spreads[k].streams
            spreads.outcomes += memory.spreads[k].outcomes
            spreads.chance += memory.spreads[k].chance
            spreads.excess += memory.spreads[k].excess
            spreads.errors += memory.spreads[k].errors
            spreads.squares += memory.spreads[k].squares
    out[POOL_EXCESS] = beyond / max(count, 1.0)
    out[at + size] = usual_excess(spreads)
    if count > 0.0:
        for i in range(size):
            out[at + i] /= count
    release(w, used)


def fill_signals(memory, out, w):
    """Signals of all horizons, a row each."""
    width = memory.rules.signal_size
    for h in range(memory.horizons):
        fill_signal(memory, h, cut(out, h * width, width), w)


def read_point(rules, memory, streams, s, point, spread, q):
    """Quantiles of a point forecast, with a spread from the errors so far."""
    if memory.errors[2 * s + 1] > 0.0:
        spread = PER_ABSOLUTE * memory.errors[2 * s] / memory.errors[2 * s + 1]
    for i in range(rules.level_count):
        q[i] = min(max(point + spread * rules.scores[i], streams.reach[2 * s]), streams.reach[2 * s + 1])


def issue_one(rules, memory, streams, s, place, signals, rows, w):
    """Mean quantiles of a stream's trackers, stored with the expert's quantiles in the place of a forecast."""
    used = mark(w)
    n, count, h = rules.level_count, rules.tracker_count, streams.horizon[s]
    said = take(w, rules.size)
    q, blend = cut(rows.q, place * n, n), cut(rows.blends, place * n, n)
    signal = cut(signals, h * rules.signal_size, rules.signal_size)
    expected = expected_loss(q, n, rules.scores)
    say(trackers_of(rules, memory, streams, s), q, signal, rules.signal_size, expected, said)
    for i in range(n):
        total = 0.0
        for m in range(count):
            total += said[m * n + i]
        blend[i] = total / count
    rows.batch[place] = memory.tally.batches + memory.batches[h]
    release(w, used)


def usual_loss(memory, s, otherwise):
    """Usual loss of the expert in a stream, or `otherwise` before the first outcome."""
    count = memory.unit[s].count
    return memory.unit[s].loss / count if count > 0.0 else otherwise


def gain_of(rules, memory, streams, s, q, signal, heard, expected, blend, y, w):
    """Loss of the expert with its spread corrected minus that of the trackers, in units of the expert's usual loss."""
    unit = 0.5 * usual_loss(memory, s, expected)
    if unit <= 0.0:
        return 0.0
    used = mark(w)
    n = rules.level_count
    low, high = outer_slopes_on(q, rules.scores, n, SMALLEST)
    ledger = cut(memory.ledger, s * 2 * (n + 1), 2 * (n + 1))
    stretch = stretch_of(ledger, n, rules.levels, rules.scores, memory.unit[s].count, signal[heard - 1])
    stretched = take(w, n)
    least, most = streams.bounds[2 * s], streams.bounds[2 * s + 1]
    corrected_on(0.0, stretch, q, rules.scores, n, low, high, least, most, stretched)
    gain = (pinball(stretched, n, y, rules.levels) - pinball(blend, n, y, rules.levels)) / unit
    release(w, used)
    return gain


def count_streams(memory, streams, which, count):
    """Count streams with their first outcome; outcomes of one stream are adjacent."""
    for j in range(count):
        s = which[j]
        if memory.unit[s].count > 0.0 or (j > 0 and which[j - 1] == s):
            continue
        memory.members[streams.horizon[s]] += 1.0
        if streams.begun[streams.series[s]] == 0.0:
            streams.begun[streams.series[s]] = 1.0
            memory.tally.series += 1.0


def add_offsets(memory, s, h, sign):
    """Add a stream's offsets to the totals of its horizon, or subtract them."""
    usual = usual_loss(memory, s, 0.0)
    if usual <= 0.0:
        return
    size = memory.rules.size
    scale = sign / usual
    for i in range(size):
        memory.totals[h * size + i] += scale * memory.offsets[s * size + i]


def add_faults(rules, memory, s, h, sign):
    """Add the miscalibration and the spread of a stream's expert to the sums of its horizon, or subtract them."""
    n = rules.level_count
    ledger, count = cut(memory.ledger, s * 2 * (n + 1), 2 * (n + 1)), memory.unit[s].count
    memory.beyond[h] += sign * expert_beyond_chance(ledger, n, rules.levels, rules.scores)
    add_spread(pool_spread_at(memory.spreads, h), ledger, n, rules.levels, rules.scores, count, sign)


def copy_evidence(memory, h):
    """Start the evidence of a horizon with that of the time when there was one series."""
    evidence = evidence_at(memory.evidence, h)
    evidence.gain = memory.common_evidence.gain
    evidence.square = memory.common_evidence.square
    evidence.block = memory.common_evidence.block
    evidence.count = memory.common_evidence.count


def add_batch(memory, counts, sums, gains, lags, w):
    """Add the gradients of a batch, by horizon, and the gain of the trackers in it."""
    used = mark(w)
    horizons, size = memory.horizons, memory.rules.size
    count = 0.0
    total = take(w, size)
    for i in range(size):
        total[i] = 0.0
    for h in range(horizons):
        count += counts[h]
        for i in range(size):
            total[i] += sums[h * size + i]
    if is_alone(memory):
        memory.common[POOL_COUNT] += count
        gain, lag = 0.0, 0.0
        for h in range(horizons):
            gain += gains[h]
            lag += lags[h]
        for i in range(size):
            memory.common[POOL_SUMS + i] += total[i]
        add_evidence(memory.common_evidence, gain / count, lag / count)
        memory.tally.batches += 1.0
    else:
        for h in range(horizons):
            if counts[h] == 0.0:
                continue
            if memory.batches[h] == 0.0:
                copy_evidence(memory, h)
            add_evidence(evidence_at(memory.evidence, h), gains[h] / counts[h], lags[h] / counts[h])
            memory.batches[h] += 1.0
            at = h * (POOL_SUMS + size)
            memory.own[at + POOL_COUNT] += counts[h]
            others = count - counts[h]
            for i in range(size):
                value = sums[h * size + i]
                if others > 0.0:
                    value += CROSS * (counts[h] * (total[i] - value) / others - value)
                memory.own[at + POOL_SUMS + i] += value
    release(w, used)


def settle_batch(
    rules, memory, streams, which, places, values, count, points, point_count, rows, signals, expected, gradient, w
):
    """Settle a batch of outcomes, in the order of their streams; `signals`, `expected` and `gradient` are scratch."""
    used = mark(w)
    n, size, width, horizons = rules.level_count, rules.size, rules.signal_size, memory.horizons
    fill_signals(memory, signals, w)
    counts, gains, lags = take(w, horizons), take(w, horizons), take(w, horizons)
    sums = take(w, horizons * size)
    for h in range(horizons):
        counts[h] = gains[h] = lags[h] = 0.0
    for i in range(horizons * size):
        sums[i] = 0.0
    for j in range(count):
        s, y, q = which[j], values[j], cut(rows.q, places[j] * n, n)
        h = streams.horizon[s]
        own, signal = cut(gradient, j * size, size), cut(signals, h * width, width)
        expected[j] = expected_loss(q, n, rules.scores)
        trackers = trackers_of(rules, memory, streams, s)
        gradients(trackers, q, signal, width, expected[j], y, own, rules.tracker_count, w)
        counts[h] += 1.0
        for i in range(size):
            sums[h * size + i] += own[i]
        blend = cut(rows.blends, places[j] * n, n)
        gains[h] += gain_of(rules, memory, streams, s, q, signal, width, expected[j], blend, y, w)
        lags[h] += memory.tally.batches + memory.batches[h] - rows.batch[places[j]]
    count_streams(memory, streams, which, count)
    add_batch(memory, counts, sums, gains, lags, w)
    for h in range(horizons):
        fill_sums(memory, h, cut(signals, h * width, width))
    for j in range(count):
        s, own = which[j], cut(gradient, j * size, size)
        signal = cut(signals, streams.horizon[s] * width, width)
        settle_one(rules, memory, streams, s, places[j], values[j], rows, signal, expected[j], own, w)
        if point_count > 0:
            memory.errors[2 * s] += fabs(values[j] - points[j])
            memory.errors[2 * s + 1] += 1.0
    if is_alone(memory) and streams_with_outcome(memory) >= 2.0:
        memory.tally.together = 1.0
    release(w, used)


def settle_one(rules, memory, streams, s, place, y, rows, signal, expected, gradient, w):
    """Update a stream with an outcome, and the sums of its horizon."""
    n, h = rules.level_count, streams.horizon[s]
    q = cut(rows.q, place * n, n)
    add_offsets(memory, s, h, -1.0)
    late = memory.tally.batches + memory.batches[h] - rows.batch[place] - 1.0
    add_faults(rules, memory, s, h, -1.0)
    learn_ledger(cut(memory.ledger, s * 2 * (n + 1), 2 * (n + 1)), n, q, rules.levels, max(late, 0.0), y, w)
    step(trackers_of(rules, memory, streams, s), q, signal, rules.signal_size, expected, y, gradient)
    add_faults(rules, memory, s, h, 1.0)
    add_offsets(memory, s, h, 1.0)


# --- entries for Python; arrays are 1-d


def hear(memory, horizons, out, heard):
    """Signals of some horizons, a row each in `out`, and whether they receive them."""
    w = workspace()
    count, width = len(horizons), memory.rules.signal_size
    which, found, flags = whole_of(horizons), numbers_of(out), whole_of(heard)
    with cython.nogil:
        for j in range(count):
            fill_signal(memory, which[j], cut(found, j * width, width), w)
            flags[j] = 1 if is_heard(memory, which[j]) else 0


def add_gain(evidence, gain, pending):
    """Add a gain of the pooled trackers, with `pending` outcomes outstanding; returns the standard errors."""
    found = evidence_at(as_evidence(numbers_of(evidence)), 0)
    add_evidence(found, gain, pending)
    return standard_errors(found)


def add_game(spreads, ledger, levels, scores, count):
    """Add the spread of a recalibrator's expert to the sums of a pool; returns the mean excess."""
    sums = pool_spread_at(as_pool_spreads(numbers_of(spreads)), 0)
    add_spread(sums, numbers_of(ledger), len(levels), readable_of(levels), readable_of(scores), count, 1.0)
    return usual_excess(sums)


def issue(rules, memory, streams, which, places, points, spreads, rows):
    """Store the mean quantiles of the trackers of some streams in the places of their forecasts.

    With `points`, the experts' quantiles are made from them; else they are in their places.
    """
    w = workspace()
    count, point_count, n = len(which), len(points), rules.level_count
    signals = np.empty(memory.horizons * rules.signal_size)
    of, at, signal = whole_of(which), whole_of(places), numbers_of(signals)
    point, spread = numbers_of(points), numbers_of(spreads)
    with cython.nogil:
        fill_signals(memory, signal, w)
        for j in range(count):
            if point_count > 0:
                read_point(rules, memory, streams, of[j], point[j], spread[j], cut(rows.q, at[j] * n, n))
            issue_one(rules, memory, streams, of[j], at[j], signal, rows, w)


def settle(rules, memory, streams, which, places, values, points, rows):
    """Settle a batch of outcomes, in the order of their streams."""
    w = workspace()
    count, point_count = len(which), len(points)
    signals = np.empty(memory.horizons * rules.signal_size)
    losses, of_each = np.empty(count), np.empty(count * rules.size)
    of, at, y, point = whole_of(which), whole_of(places), numbers_of(values), numbers_of(points)
    signal, expected, gradient = numbers_of(signals), numbers_of(losses), numbers_of(of_each)
    with cython.nogil:
        settle_batch(rules, memory, streams, of, at, y, count, point, point_count, rows, signal, expected, gradient, w)
