"""Compiled kernels of a pool: what streams learn together, beside the games that they play by themselves.

A pool holds the quantile trackers of each of its streams that share in it.  A stream is one series at one horizon.
All outcomes that become known together are a batch: first the gradients of all of them are taken, at the offsets of
now, then every stream steps, with the mean over the batch.  A horizon hears of its own gradients and, to a share CROSS,
of those of the others.  As long as there is one series only, its horizons hear of each other as streams of equals.

Sums are added up in the order of the streams, which is that of their names, so that nothing depends on the order of
rows, and a stream that is not there yet changes no bit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.engine.kernels.evidence import add_evidence, expert_beyond_chance, learn_ledger, standard_errors
from orcast.engine.kernels.quantile_function import QuantileFunction, corrected, outer_slopes, quantile_at
from orcast.engine.kernels.quantile_trackers import PER_SCALE, QuantileTrackers, gradients, pinball, say, step
from orcast.engine.kernels.records import Array, PoolColumn, TrackerUnit
from orcast.engine.kernels.spread import add_spread, stretch_of, usual_excess
from orcast.jit import entry_kernel, kernel, kernel_part

Integers = NDArray[np.int64]

# The share of the other horizons in what a horizon hears.
CROSS = 0.3
# Slopes of an expert are at least this.
SMALLEST = 1e-140


class PoolTally(IntEnum):
    """Counts of a pool."""

    SERIES = 0  # with an outcome
    BATCHES = 1  # while there was one series
    TOGETHER = 2  # 1 if horizons of one series were heard


class PoolRules(NamedTuple):
    """What does not change."""

    trackers: Array  # a QuantileTrackerColumn each
    levels: Array
    scores: Array


class PoolMemory(NamedTuple):
    """What a pool has learnt, by horizon and by stream; signals are as `PoolColumn` has them, without mean offsets."""

    tally: Array  # a PoolTally each
    common: Array  # the signal that all horizons share: of the batches while there was one series
    common_evidence: Array
    own: Array  # the signal of each horizon, in all other batches
    evidence: Array
    batches: Array  # of each horizon
    members: Array  # streams with an outcome
    totals: Array  # of their offsets, in units of the usual loss, by tracker and level
    offsets: Array  # of each stream, by tracker and level
    seen: Array
    unit: Array  # a TrackerUnit each
    ledger: Array  # of each stream's expert, a LedgerRow each
    beyond: Array  # of each horizon: how far its experts are beyond chance, added up
    spreads: Array  # of each horizon: a PoolSpread each
    errors: Array  # of point forecasts: the sum of the absolute ones, and their number


class PoolStreams(NamedTuple):
    """Whose streams they are, in the order of their names."""

    horizon: Integers
    series: Integers
    begun: Array  # 1 for each series with an outcome
    bounds: Array  # of the outcome, a pair each
    reach: Array  # the lowest and the highest quantile of a point that is read


class PoolRows(NamedTuple):
    """Forecasts whose outcome is not known yet, a place each."""

    q: Array  # the expert's quantiles
    blends: Array  # the mean of what the trackers said
    batch: Array  # how many batches there had been


@kernel_part
def trackers_of(rules, memory, streams, s):
    """The trackers of a stream."""
    low, high = streams.bounds[s, 0], streams.bounds[s, 1]
    count = rules.trackers.shape[0]
    return QuantileTrackers(
        rules.trackers, count, rules.levels, low, high, memory.offsets[s], memory.seen[s], memory.unit[s]
    )


@kernel
def expected_loss(q, scores):
    """What an expert says of its own loss."""
    low, high = outer_slopes(q, scores, SMALLEST)
    expert = QuantileFunction(q, scores, low, high, -np.inf, np.inf)
    return PER_SCALE * 0.5 * (quantile_at(1.0, expert) - quantile_at(-1.0, expert))


@kernel_part
def is_alone(memory):
    """Whether outcomes of one series only are known."""
    return memory.tally[PoolTally.SERIES] <= 1.0


@kernel
def streams_with_outcome(memory):
    """How many streams have an outcome, of all horizons."""
    total = 0.0
    for h in range(memory.members.shape[0]):
        total += memory.members[h]
    return total


@kernel
def is_heard(memory, h):
    """Whether a horizon hears anything: a pool of one stream is none."""
    if is_alone(memory):
        return streams_with_outcome(memory) >= 2.0
    least = 1.0 if memory.tally[PoolTally.TOGETHER] > 0.0 else 2.0
    return memory.members[h] >= least


@kernel_part
def fill_sums(memory, h, out):
    """Count and sums of the gradients that a horizon hears."""
    for i in range(memory.common.shape[0]):
        out[i] = memory.common[i] + memory.own[h, i]


@kernel
def fill_signal(memory, h, out):
    """All that a horizon hears."""
    fill_sums(memory, h, out)
    fresh = is_alone(memory) or memory.batches[h] == 0.0
    out[PoolColumn.EVIDENCE] = standard_errors(memory.common_evidence if fresh else memory.evidence[h])
    at = memory.common.shape[0]
    size = memory.totals.shape[1]
    for i in range(size):
        out[at + i] = 0.0
    count = 0.0
    for k in range(memory.members.shape[0]):
        if k == h or is_alone(memory):
            count += memory.members[k]
            for i in range(size):
                out[at + i] += memory.totals[k, i]
    beyond = 0.0
    spreads = np.zeros(memory.spreads.shape[1])
    for k in range(memory.members.shape[0]):
        if k == h or is_alone(memory):
            beyond += memory.beyond[k]
            spreads += memory.spreads[k]
    out[PoolColumn.BEYOND_CHANCE] = beyond / max(count, 1.0)
    out[at + size] = usual_excess(spreads)
    if count > 0.0:
        for i in range(size):
            out[at + i] /= count


@entry_kernel
def hear(memory, horizons, out, heard):
    """What some horizons hear, and whether they do."""
    for j in range(horizons.shape[0]):
        fill_signal(memory, horizons[j], out[j])
        heard[j] = 1 if is_heard(memory, horizons[j]) else 0


@entry_kernel
def add_gain(evidence, gain, pending):
    """One more gain of a pool's trackers, with so many outcomes outstanding; returns what all of them amount to."""
    add_evidence(evidence, gain, pending)
    return standard_errors(evidence)


@entry_kernel
def add_game(spreads, ledger, levels, scores, count):
    """Add what a game knows of its expert's spread; returns what all of them amount to."""
    add_spread(spreads, ledger, levels, scores, count, 1.0)
    return usual_excess(spreads)


@kernel_part
def signals_of(memory):
    """All that each horizon hears."""
    out = np.empty((memory.members.shape[0], memory.common.shape[0] + memory.totals.shape[1] + 1))
    for h in range(out.shape[0]):
        fill_signal(memory, h, out[h])
    return out


@kernel
def read_point(rules, memory, streams, s, point, spread, q):
    """The quantiles of a point forecast, with a spread from the errors known so far."""
    if memory.errors[s, 1] > 0.0:
        spread = PER_ABSOLUTE * memory.errors[s, 0] / memory.errors[s, 1]
    for i in range(q.shape[0]):
        q[i] = min(max(point + spread * rules.scores[i], streams.reach[s, 0]), streams.reach[s, 1])


@entry_kernel
def issue(rules, memory, streams, which, places, points, spreads, rows):
    """What the trackers of some streams say, put beside the expert's quantiles in the places of their forecasts."""
    signals = signals_of(memory)
    count = rules.trackers.shape[0]
    said = np.empty((count, rules.levels.shape[0]))
    for j in range(which.shape[0]):
        s, place = which[j], places[j]
        h = streams.horizon[s]
        q, blend = rows.q[place], rows.blends[place]
        if points.shape[0] > 0:
            read_point(rules, memory, streams, s, points[j], spreads[j], q)
        say(trackers_of(rules, memory, streams, s), q, signals[h], expected_loss(q, rules.scores), said)
        for i in range(blend.shape[0]):
            total = 0.0
            for m in range(count):
                total += said[m, i]
            blend[i] = total / count
        rows.batch[place] = memory.tally[PoolTally.BATCHES] + memory.batches[h]


@kernel_part
def usual_loss(memory, s, otherwise):
    """The expert's usual loss in a stream, or what it said of it before there was any."""
    count = memory.unit[s, TrackerUnit.COUNT]
    return memory.unit[s, TrackerUnit.LOSS] / count if count > 0.0 else otherwise


@kernel
def gain_of(rules, memory, streams, s, q, signal, expected, blend, y):
    """How much less the trackers lost than the stretched expert, in units of the expert's usual loss."""
    unit = 0.5 * usual_loss(memory, s, expected)
    if unit <= 0.0:
        return 0.0
    low, high = outer_slopes(q, rules.scores, SMALLEST)
    expert = QuantileFunction(q, rules.scores, low, high, streams.bounds[s, 0], streams.bounds[s, 1])
    count, usual = memory.unit[s, TrackerUnit.COUNT], signal[signal.shape[0] - 1]
    stretched = np.empty(q.shape[0])
    corrected(0.0, stretch_of(memory.ledger[s], rules.levels, rules.scores, count, usual), expert, stretched)
    return (pinball(stretched, y, rules.levels) - pinball(blend, y, rules.levels)) / unit


@kernel_part
def count_streams(memory, streams, which):
    """Streams whose first outcome comes; those of one stream stand together."""
    for j in range(which.shape[0]):
        s = which[j]
        if memory.unit[s, TrackerUnit.COUNT] > 0.0 or (j > 0 and which[j - 1] == s):
            continue
        memory.members[streams.horizon[s]] += 1.0
        if streams.begun[streams.series[s]] == 0.0:
            streams.begun[streams.series[s]] = 1.0
            memory.tally[PoolTally.SERIES] += 1.0


@kernel_part
def add_offsets(memory, s, h, sign):
    """Put a stream's offsets among those of its horizon, or take them away."""
    usual = usual_loss(memory, s, 0.0)
    if usual <= 0.0:
        return
    levels = memory.offsets.shape[2]
    scale = sign / usual
    for m in range(memory.offsets.shape[1]):
        for i in range(levels):
            memory.totals[h, m * levels + i] += scale * memory.offsets[s, m, i]


@kernel_part
def add_faults(rules, memory, s, h, sign):
    """Put what a stream's expert lacks among that of its horizon, or take it away."""
    ledger, count = memory.ledger[s], memory.unit[s, TrackerUnit.COUNT]
    memory.beyond[h] += sign * expert_beyond_chance(ledger, rules.levels, rules.scores)
    add_spread(memory.spreads[h], ledger, rules.levels, rules.scores, count, sign)


@kernel
def add_batch(memory, counts, sums, gains, lags):
    """The gradients of a batch, by horizon, and the gain of the trackers in it."""
    horizons, size = sums.shape
    count = 0.0
    total = np.zeros(size)
    for h in range(horizons):
        count += counts[h]
        for i in range(size):
            total[i] += sums[h, i]
    if is_alone(memory):
        memory.common[PoolColumn.COUNT] += count
        gain, lag = 0.0, 0.0
        for h in range(horizons):
            gain += gains[h]
            lag += lags[h]
        for i in range(size):
            memory.common[PoolColumn.SUMS + i] += total[i]
        add_evidence(memory.common_evidence, gain / count, lag / count)
        memory.tally[PoolTally.BATCHES] += 1.0
        return
    for h in range(horizons):
        if counts[h] == 0.0:
            continue
        if memory.batches[h] == 0.0:
            memory.evidence[h] = memory.common_evidence
        add_evidence(memory.evidence[h], gains[h] / counts[h], lags[h] / counts[h])
        memory.batches[h] += 1.0
        memory.own[h, PoolColumn.COUNT] += counts[h]
        others = count - counts[h]
        for i in range(size):
            value = sums[h, i]
            if others > 0.0:
                value += CROSS * (counts[h] * (total[i] - value) / others - value)
            memory.own[h, PoolColumn.SUMS + i] += value


@entry_kernel
def settle(rules, memory, streams, which, places, values, points, rows):
    """A batch of outcomes, in the order of their streams."""
    count, levels = rules.trackers.shape[0], rules.levels.shape[0]
    horizons = memory.members.shape[0]
    signals = signals_of(memory)
    counts, gains, lags = np.zeros(horizons), np.zeros(horizons), np.zeros(horizons)
    sums = np.zeros((horizons, count * levels))
    gradient = np.empty((which.shape[0], count, levels))
    expected = np.empty(which.shape[0])
    for j in range(which.shape[0]):
        s, q, y = which[j], rows.q[places[j]], values[j]
        h = streams.horizon[s]
        expected[j] = expected_loss(q, rules.scores)
        gradients(trackers_of(rules, memory, streams, s), q, signals[h], expected[j], y, gradient[j])
        counts[h] += 1.0
        for m in range(count):
            for i in range(levels):
                sums[h, m * levels + i] += gradient[j, m, i]
        gains[h] += gain_of(rules, memory, streams, s, q, signals[h], expected[j], rows.blends[places[j]], y)
        lags[h] += memory.tally[PoolTally.BATCHES] + memory.batches[h] - rows.batch[places[j]]
    count_streams(memory, streams, which)
    add_batch(memory, counts, sums, gains, lags)
    for h in range(horizons):
        fill_sums(memory, h, signals[h])
    for j in range(which.shape[0]):
        s, q, y = which[j], rows.q[places[j]], values[j]
        h = streams.horizon[s]
        add_offsets(memory, s, h, -1.0)
        late = memory.tally[PoolTally.BATCHES] + memory.batches[h] - rows.batch[places[j]] - 1.0
        add_faults(rules, memory, s, h, -1.0)
        learn_ledger(memory.ledger[s], q, rules.levels, max(late, 0.0), y)
        step(trackers_of(rules, memory, streams, s), q, signals[h], expected[j], y, gradient[j])
        add_faults(rules, memory, s, h, 1.0)
        add_offsets(memory, s, h, 1.0)
        if points.shape[0] > 0:
            memory.errors[s, 0] += abs(y - points[j])
            memory.errors[s, 1] += 1.0
    if is_alone(memory) and streams_with_outcome(memory) >= 2.0:
        memory.tally[PoolTally.TOGETHER] = 1.0
