"""Events of a stream on an ordered space: forecasts, and outcomes at the time when they become known."""

import cython
import numpy as np

from orcast.kernels.records import COUNTERS, LAG_RATE, PREDICT, SETTLE
from orcast.kernels.state import Memory, Round, Rules


class Stream:
    """Inputs, pending rounds and outputs of the events of one stream; pending entries come first, then new ones.

    `priors` are the quantiles that the committee corrected; `levels` has sets of levels, of which an entry reads one.
    """

    def __init__(self, rules: Rules, values, experts, priors, contexts, levels, widths, level_set, counters, capacity):
        entries, new = len(values), len(level_set)
        self.rules, self.capacity, self.entries, self.new = rules, capacity, entries, new
        self.set_width = levels.shape[1]
        self.quantiles = np.full((new, self.set_width), np.nan)
        self.round_log = np.full((new, ROUND_LOG_SIZE), np.nan)
        self.settled = np.full(entries, np.nan)
        self.counters = np.zeros(len(COUNTERS))
        self.counters[: len(counters)] = counters
        self.records = np.zeros((capacity, rules.round_size))
        self.place = np.full(entries, -1, dtype=np.int64)
        self.queue = np.zeros(capacity + 1, dtype=np.int64)
        self.free = np.arange(capacity, -1, -1, dtype=np.int64)
        self.issued = np.zeros(entries)
        self.round = Round(rules)
        self.kept = tuple(
            np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
            for array in (values, experts, priors, contexts, levels)
        )
        self.kept_whole = tuple(np.ascontiguousarray(array, dtype=np.int64) for array in (widths, level_set))
        self.values_, self.experts_ = numbers_of(self.kept[0]), numbers_of(self.kept[1])
        self.priors_, self.contexts_ = numbers_of(self.kept[2]), numbers_of(self.kept[3])
        self.levels_ = numbers_of(self.kept[4])
        self.widths_, self.level_set_ = whole_of(self.kept_whole[0]), whole_of(self.kept_whole[1])
        self.quantiles_ = numbers_of(self.quantiles.reshape(-1))
        self.round_log_ = numbers_of(self.round_log.reshape(-1))
        self.settled_, self.issued_ = numbers_of(self.settled), numbers_of(self.issued)
        self.counters_ = as_counters(numbers_of(self.counters))
        self.records_ = numbers_of(self.records.reshape(-1))
        self.place_, self.queue_, self.free_ = whole_of(self.place), whole_of(self.queue), whole_of(self.free)

    def resume(self, records, issued):
        """Let the first entries be pending, with their rounds."""
        old = len(records)
        self.records[:old], self.issued[:old] = records, issued
        self.place[:old] = np.arange(old)
        self.queue[0], self.queue[1 : old + 1] = old, np.arange(old)
        self.free[0] = self.capacity - old

    def run(self, memory: Memory, events):
        """Run events (kind, entry), flat, in their order."""
        w = workspace()
        kinds, number = whole_of(events), len(events) // 2
        with cython.nogil:
            for i in range(number):
                run_event(self.rules, memory, self, kinds[2 * i], kinds[2 * i + 1], w)

    @property
    def pending(self):
        """Pending entries, the oldest first."""
        return self.queue[1 : self.queue[0] + 1]


def certificate_of(rules, stream, place):
    """Certificate of a pending round."""
    at = place * rules.round_size + INFO_SIZE
    return as_certificate(cut(stream.records_, at, CERTIFICATE_SIZE))


def promised_bound(account, growth, count, root, bound, promised):
    """Bound on the miscalibration after a round, whichever of `count` pending rounds are settled before it.

    If k of them are, the budget has grown by their own bounds and by the cross terms of their delays (`growth`); those
    k count that make it grow most. The excess of certificates that did not hold is not part of it.
    """
    sort(growth, count)
    budget = max(account.budget - account.excess, 0.0) + bound
    most = promised
    for k in range(1, count + 1):
        # the k-th is also later by those before it, and the round itself by one more
        budget += growth[count - k] + 2.0 * root * root * (k - 1.0) + 2.0 * root * root
        most = max(most, sqrt(budget) / (account.weight + k + 1.0))
    return most


def promised_with(rules, memory, stream, round, w):
    """Bound on the miscalibration after a round, with the rounds of a stream pending."""
    used = mark(w)
    count = stream.queue_[0]
    growth = take(w, count)
    root = round.certificate.root
    for i in range(count):
        root = max(root, certificate_of(rules, stream, stream.place_[stream.queue_[i + 1]]).root)
    for i in range(count):
        other = certificate_of(rules, stream, stream.place_[stream.queue_[i + 1]])
        growth[i] = other.bound + 2.0 * root * (memory.account.roots - other.roots_then)
    found = promised_bound(memory.account, growth, count, root, round.certificate.bound, round.certificate.promised)
    release(w, used)
    return found


def promised(account, certificates, certificate):
    """Bound on the miscalibration after a round; `certificates` are those of the pending rounds, a row each."""
    root = max(certificate[5], certificates[:, 5].max())
    growth = certificates[:, 2] + 2.0 * root * (account[4] - certificates[:, 6])
    own, grown = as_account(numbers_of(account)), numbers_of(growth)
    return promised_bound(own, grown, len(growth), root, certificate[2], certificate[8])


def reserve_place(rules, stream, entry):
    """Empty record for an entry."""
    at = stream.free_[stream.free_[0]]
    stream.free_[0] -= 1
    stream.place_[entry] = at
    for i in range(rules.round_size):
        stream.records_[at * rules.round_size + i] = 0.0


def remove_entry(stream, entry, overdraft):
    """Remove an entry from the pending ones."""
    count = stream.queue_[0]
    at = 1
    while stream.queue_[at] != entry:
        at += 1
    for i in range(at, count):
        stream.queue_[i] = stream.queue_[i + 1]
    stream.queue_[0] = count - 1
    stream.free_[0] += 1
    stream.free_[stream.free_[0]] = stream.place_[entry]
    stream.place_[entry] = -1
    stream.counters_.reserved = max(stream.counters_.reserved - overdraft, 0.0)
    if stream.queue_[0] == 0:
        stream.counters_.reserved = 0.0


def learn_lag(stream, entry):
    """Update the usual lag."""
    counters = stream.counters_
    lag = counters.issued - stream.issued_[entry]
    counters.lag = lag if isnan(counters.lag) else counters.lag + LAG_RATE * (lag - counters.lag)


def predict_entry(rules, memory, stream, entry, w):
    """Issue the forecast of an entry."""
    counters, queue, new = stream.counters_, stream.queue_, entry - (stream.entries - stream.new)
    size = rules.grid_count
    expert, prior = cut(stream.experts_, new * size, size), cut(stream.priors_, new * size, size)
    copy(cut(stream.contexts_, new * rules.groups, rules.groups), rules.groups, stream.round.context)
    outstanding = float(queue[0])
    if not isnan(counters.lag):
        outstanding = min(outstanding, 2.0 * counters.lag + 2.0)
    predict_round(rules, memory, expert, 1, prior, outstanding, counters.reserved, stream.round, w)
    which = stream.level_set_[new]
    width = stream.widths_[which]
    levels = cut(stream.levels_, which * stream.set_width, width)
    log_row = cut(stream.round_log_, new * ROUND_LOG_SIZE, ROUND_LOG_SIZE)
    log_round(rules, stream.round, levels, width, cut(stream.quantiles_, new * stream.set_width, width), log_row, w)
    if queue[0] > 0:
        as_log(log_row).promised = promised_with(rules, memory, stream, stream.round, w)
    counters.reserved += stream.round.certificate.overdraft
    counters.issued += 1.0
    stream.issued_[entry] = counters.issued
    queue[0] += 1
    queue[queue[0]] = entry


def run_event(rules, memory, stream, kind, entry, w):
    """Run one event."""
    if kind == PREDICT:
        reserve_place(rules, stream, entry)
    attach(rules, stream.round, cut(stream.records_, stream.place_[entry] * rules.round_size, rules.round_size))
    if kind == PREDICT:
        predict_entry(rules, memory, stream, entry, w)
        return
    overdraft = stream.round.certificate.overdraft
    if kind == SETTLE:
        others = stream.counters_.reserved - overdraft if stream.queue_[0] > 1 else 0.0
        update_round(rules, memory, stream.round, max(others, 0.0), stream.values_[entry], w)
        stream.settled_[entry] = miscalibration(memory)
        learn_lag(stream, entry)
    remove_entry(stream, entry, overdraft)
