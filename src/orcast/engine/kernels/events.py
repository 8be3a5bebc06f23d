"""Compiled kernel of a stream's events on ordered spaces: forecasts, and outcomes that come when they are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from orcast import ledger as _ledger
from orcast.engine.kernels import packing
from orcast.engine.kernels import rounds as round_kernels
from orcast.jit import kernel

# How fast the usual lag is learnt.
LAG_RATE = 0.05
# What happens to an entry: it is forecast, its outcome is booked, or it is given up.
PREDICT, SETTLE, DROP = 0, 1, 2
# Counters of a game: rounds issued, the usual lag (nan before any), what waiting rounds have reserved, and for point
# forecasts the sum of the squared errors and their number.
ISSUED, LAG, RESERVED, ERRORS, ERROR_COUNT, COUNTERS_SIZE = 0, 1, 2, 3, 4, 5

predict_round = round_kernels.predict
update_round = round_kernels.update
log_round = round_kernels.log_round
miscalibration = round_kernels.miscalibration
memory_of = packing.memory_of
round_of = packing.round_of


@kernel
def promised(account: Any, certificates: Any, certificate: Any) -> Any:
    """The bound on the miscalibration after a round, whichever of the rounds that wait are booked before it.

    If k of them are, the budget has grown by their own bounds and by the cross terms of their delays; those k count
    that make it grow most.
    """
    count = certificates.shape[0]
    root = certificate[_ledger.CertificateField.ROOT]
    for i in range(count):
        root = max(root, certificates[i, _ledger.CertificateField.ROOT])
    growth = np.empty(count)
    for i in range(count):
        late = account[_ledger.Account.ROOTS] - certificates[i, _ledger.CertificateField.ROOTS_THEN]
        growth[i] = certificates[i, _ledger.CertificateField.BOUND] + 2.0 * root * late
    growth.sort()
    budget = account[_ledger.Account.BUDGET] + certificate[_ledger.CertificateField.BOUND]
    most = certificate[_ledger.CertificateField.PROMISED]
    for k in range(1, count + 1):
        # the k-th is also later by those before it, and the round itself by one more
        budget += growth[count - k] + 2.0 * root * root * (k - 1.0) + 2.0 * root * root
        most = max(most, math.sqrt(budget) / (account[_ledger.Account.WEIGHT] + k + 1.0))
    return most


@kernel
def take(entry: Any, places: Any, waiting: Any, free: Any, counters: Any, overdraft: Any) -> Any:
    """An entry no longer waits."""
    count = waiting[0]
    at = 1
    while waiting[at] != entry:
        at += 1
    for i in range(at, count):
        waiting[i] = waiting[i + 1]
    waiting[0] = count - 1
    free[0] += 1
    free[free[0]] = places[entry]
    places[entry] = -1
    counters[RESERVED] = max(counters[RESERVED] - overdraft, 0.0)
    if waiting[0] == 0:
        counters[RESERVED] = 0.0


@kernel
def play(
    rules: Any,
    row: Any,
    counters: Any,
    experts: Any,
    points: Any,
    spreads: Any,
    reach: Any,
    contexts: Any,
    context_at: Any,
    note_at: Any,
    values: Any,
    events: Any,
    start: Any,
    resumed: Any,
    levels: Any,
    widths: Any,
    which: Any,
    records: Any,
    slots: Any,
    places: Any,
    waiting: Any,
    free: Any,
    issued: Any,
    quantiles: Any,
    round_log: Any,
    settled: Any,
) -> Any:
    """Play events in their order, from one on; returns which comes next: the end, or a round that does not hold.

    Such a round is filled but for what Python can still do for it; with ``resumed`` the play goes on after that.
    Entries that wait from before come first, then those of the rows of ``experts``; or, for ``points``, of Gaussians
    around them, as wide as their errors so far were, and like ``spreads`` before there is one.
    """
    memory = memory_of(rules, row)
    nothing = np.empty(0)
    fresh = places.shape[0] - contexts.shape[0]
    width = rules.grid.shape[0]
    expert = np.empty((1, width))
    for e in range(start, events.shape[0]):
        kind, entry = events[e, 0], events[e, 1]
        if kind == PREDICT:
            j = entry - fresh
            if not resumed:
                place = free[free[0]]
                free[0] -= 1
                places[entry] = place
                records[place] = 0.0
                slots[place] = 0
                records[place, context_at : context_at + contexts.shape[1]] = contexts[j]
                if points.shape[0] > 0:
                    point = points[entry]
                    spread = spreads[j]
                    if counters[ERROR_COUNT] > 0.0:
                        spread = math.sqrt(counters[ERRORS] / counters[ERROR_COUNT])
                    for i in range(width):
                        expert[0, i] = min(max(point + spread * rules.scores[i], reach[0]), reach[1])
                else:
                    expert[0] = experts[j]
                pending = float(waiting[0])
                if not np.isnan(counters[LAG]):
                    pending = min(pending, 2.0 * counters[LAG] + 2.0)
                round = round_of(rules, records[place], slots[place])
                predict_round(rules, memory, expert, pending, counters[RESERVED], round)
                if round.certificate[_ledger.CertificateField.HOLDS] == 0.0:
                    return e
            resumed = False
            place = places[entry]
            round = round_of(rules, records[place], slots[place])
            size = widths[which[j]]
            log_round(rules, round, levels[which[j], :size], quantiles[j, :size], round_log[j])
            if waiting[0] > 0:
                certificates = np.empty((waiting[0], _ledger.CERTIFICATE_SIZE))
                for i in range(waiting[0]):
                    certificates[i] = records[places[waiting[i + 1]], note_at : note_at + _ledger.CERTIFICATE_SIZE]
                round_log[j, _ledger.RoundLog.PROMISED] = promised(memory.account, certificates, round.certificate)
            counters[RESERVED] += round.certificate[_ledger.CertificateField.OVERDRAFT]
            counters[ISSUED] += 1.0
            issued[entry] = counters[ISSUED]
            waiting[0] += 1
            waiting[waiting[0]] = entry
            continue
        place = places[entry]
        overdraft = records[place, note_at + _ledger.CertificateField.OVERDRAFT]
        if kind == SETTLE:
            others = counters[RESERVED] - overdraft if waiting[0] > 1 else 0.0
            round = round_of(rules, records[place], slots[place])
            update_round(rules, memory, round, max(others, 0.0), values[entry], nothing)
            settled[entry] = miscalibration(rules, memory)
            if points.shape[0] > 0:
                error = values[entry] - points[entry]
                counters[ERRORS] += error * error
                counters[ERROR_COUNT] += 1.0
        take(entry, places, waiting, free, counters, overdraft)
        if kind == SETTLE:
            lag = counters[ISSUED] - issued[entry]
            counters[LAG] = lag if np.isnan(counters[LAG]) else counters[LAG] + LAG_RATE * (lag - counters[LAG])
    return events.shape[0]
