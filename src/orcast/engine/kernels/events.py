"""Compiled kernel of a stream's events on ordered spaces: forecasts, and outcomes that come when they are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.engine.kernels.packing import memory_of, round_of
from orcast.engine.kernels.records import RoundInfo
from orcast.engine.kernels.rounds import log_round, miscalibration
from orcast.engine.kernels.rounds import predict as predict_round
from orcast.engine.kernels.rounds import update as update_round
from orcast.engine.kernels.tracker import skip_steps
from orcast.jit import entry_kernel, kernel
from orcast.jit.ieee import sqrt
from orcast.ledger import CERTIFICATE_SIZE, Account, CertificateField, RoundLog

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
# Name, dtype and shape of each array of a record.
# Numbers that an array of a record has at most.
MOST_NUMBERS = 2**40
RecordFields = tuple[tuple[str, str, tuple[int, ...]], ...]

# How fast the usual lag is learnt.
LAG_RATE = 0.05


class EventKind(IntEnum):
    """What happens to an entry."""

    PREDICT = 0
    SETTLE = 1
    DROP = 2
    SKIP = 3  # so many steps of the calendar without a round, in place of an entry


class Counter(IntEnum):
    """Numbers that a game carries from round to round beside its memory."""

    ISSUED = 0  # rounds so far
    LAG = 1  # the usual lag, nan before any
    RESERVED = 2  # slack of the pending rounds
    ERROR_SUM = 3  # of the absolute errors of point forecasts
    ERROR_COUNT = 4


COUNTERS_SIZE = len(Counter)


class EventInputs(NamedTuple):
    """What is to be played.  Entries that are pending from before come first, then a new one for each forecast."""

    values: Array  # outcomes of all entries, nan where unknown or outside
    points: Array  # point forecasts of all entries, else empty
    spreads: Array  # of the new points, as long as no error is known
    experts: Array  # quantiles of the new forecasts; empty for points
    reach: Array  # the lowest and the highest quantile of a point that is read
    contexts: Array  # of the new forecasts
    levels: Array  # sets of levels to be read, one a row
    widths: Integers  # how many levels each set has
    level_set: Integers  # the set of each new forecast
    signals: Array  # what is heard of a pool, a row each
    coins: Array  # of the forecasts to come, in the order in which they are issued; empty if there are none


class PendingStore(NamedTuple):
    """Pending rounds in arrays that a kernel can write to."""

    counters: Array  # see `Counter`
    records: Array  # a row each
    slots: Integers
    certificates: Array  # those of the records
    place: Integers  # which row of the records an entry has, or -1
    queue: Integers  # how many are pending, then their entries, the oldest first
    free: Integers  # how many rows of the records are free, then which
    issued: Array  # how many rounds had been issued when an entry was
    first: Array  # how many when the play began


class EventOutputs(NamedTuple):
    """What was played: the new forecasts, and the miscalibration after each outcome."""

    quantiles: Array
    round_log: Array  # see `orcast.ledger.RoundLog`
    settled: Array


class PackedRounds(NamedTuple):
    """The rounds of a game in few arrays: what `orcast.rounds.Rounds` keeps, or a compiled run leaves."""

    counters: Array  # issued, usual lag (nan before any), reserved
    fields: RecordFields
    records: Array  # a pending round a row, all its arrays one after the other
    issued: Array
    features: list[Any]

    def arrays(self) -> Iterator[dict[str, NDArray[Any]]]:
        """The arrays of each record."""
        shapes = {name: (np.dtype(kind), shape) for name, kind, shape in self.fields}
        return (unpack_row(row, shapes) for row in self.records)


def record_fields(plain: Any) -> RecordFields:
    """Names, kinds and shapes of a record's arrays from their plain form, or a reason why not.

    >>> record_fields([["row", "<f8", [4]]])
    (('row', '<f8', (4,)),)
    """
    for name, kind, sides in plain:
        whole = all(isinstance(side, int) and 0 <= side <= MOST_NUMBERS for side in sides)
        if not (isinstance(name, str) and kind in ("<f8", "<i8") and whole):
            raise ValueError(f"a record has no field {name!r} of the kind {kind!r} and shape {sides!r}")
    return tuple((name, kind, tuple(sides)) for name, kind, sides in plain)


def pack_row(arrays: Any) -> Array:
    """Arrays as one row of numbers."""
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


def unpack_row(row: Array, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """The arrays of dtypes and shapes that a row of numbers holds, or a reason why not."""
    sizes = [math.prod(shape) for _, shape in shapes.values()]
    if sum(sizes) != len(row):
        raise ValueError(f"{len(row)} numbers of a game, not {sum(sizes)}")
    parts = np.split(row, np.cumsum(sizes)[:-1]) if sizes else []
    return {
        name: part.reshape(shape).astype(kind)
        for part, (name, (kind, shape)) in zip(parts, shapes.items(), strict=True)
    }


@entry_kernel
def promised(account: Any, certificates: Any, certificate: Any) -> Any:
    """The bound on the miscalibration after a round, whichever of the pending rounds are settled before it.

    If k of them are, the budget has grown by their own bounds and by the cross terms of their delays; those k count
    that make it grow most.  What was added after a certificate that did not hold is not part of it.
    """
    count = certificates.shape[0]
    root = certificate[CertificateField.ROOT]
    for i in range(count):
        root = max(root, certificates[i, CertificateField.ROOT])
    growth = np.empty(count)
    for i in range(count):
        late = account[Account.ROOTS] - certificates[i, CertificateField.ROOTS_THEN]
        growth[i] = certificates[i, CertificateField.BOUND] + 2.0 * root * late
    growth.sort()
    budget = max(account[Account.BUDGET] - account[Account.EXCESS], 0.0) + certificate[CertificateField.BOUND]
    most = certificate[CertificateField.PROMISED]
    for k in range(1, count + 1):
        # the k-th is also later by those before it, and the round itself by one more
        budget += growth[count - k] + 2.0 * root * root * (k - 1.0) + 2.0 * root * root
        most = max(most, sqrt(budget) / (account[Account.WEIGHT] + k + 1.0))
    return most


@kernel
def promised_with(account: Any, store: Any, certificate: Any) -> Any:
    """The bound on the miscalibration after a round, with the rounds of a store pending."""
    count = store.queue[0]
    certificates = np.empty((count, CERTIFICATE_SIZE))
    for i in range(count):
        certificates[i] = store.certificates[store.place[store.queue[i + 1]]]
    return promised(account, certificates, certificate)


@kernel
def fill_expert(scores: Any, inputs: Any, counters: Any, entry: Any, new: Any, expert: Any) -> None:
    """The quantiles of a new forecast; of a point as `orcast.residuals.Residuals` has them."""
    if inputs.points.shape[0] == 0:
        expert[0] = inputs.experts[new]
        return
    spread = inputs.spreads[new]
    if counters[Counter.ERROR_COUNT] > 0.0:
        spread = PER_ABSOLUTE * counters[Counter.ERROR_SUM] / counters[Counter.ERROR_COUNT]
    for i in range(scores.shape[0]):
        value = inputs.points[entry] + spread * scores[i]
        expert[0, i] = min(max(value, inputs.reach[0]), inputs.reach[1])


@kernel
def reserve_place(store: Any, entry: Any) -> None:
    """An empty record for an entry."""
    at = store.free[store.free[0]]
    store.free[0] -= 1
    store.place[entry] = at
    store.records[at] = 0.0
    store.slots[at] = 0


@kernel
def keep_entry(store: Any, entry: Any, certificate: Any) -> None:
    """The round of an entry is issued, and pending from now on."""
    store.certificates[store.place[entry]] = certificate
    store.counters[Counter.RESERVED] += certificate[CertificateField.OVERDRAFT]
    store.counters[Counter.ISSUED] += 1.0
    store.issued[entry] = store.counters[Counter.ISSUED]
    store.queue[0] += 1
    store.queue[store.queue[0]] = entry


@kernel
def remove_entry(store: Any, entry: Any, overdraft: Any) -> None:
    """An entry is no longer pending."""
    count = store.queue[0]
    at = 1
    while store.queue[at] != entry:
        at += 1
    for i in range(at, count):
        store.queue[i] = store.queue[i + 1]
    store.queue[0] = count - 1
    store.free[0] += 1
    store.free[store.free[0]] = store.place[entry]
    store.place[entry] = -1
    store.counters[Counter.RESERVED] = max(store.counters[Counter.RESERVED] - overdraft, 0.0)
    if store.queue[0] == 0:
        store.counters[Counter.RESERVED] = 0.0


@kernel
def learn_outcome(counters: Any, inputs: Any, entry: Any, lag: Any) -> None:
    """What an outcome tells beside the ledger: how late it came, and how far a point forecast was off."""
    usual = counters[Counter.LAG]
    counters[Counter.LAG] = lag if np.isnan(usual) else usual + LAG_RATE * (lag - usual)
    if inputs.points.shape[0] > 0:
        counters[Counter.ERROR_SUM] += abs(inputs.values[entry] - inputs.points[entry])
        counters[Counter.ERROR_COUNT] += 1.0


@entry_kernel
def play(rules: Any, memory_row: Any, inputs: Any, store: Any, outputs: Any, events: Any, start: Any) -> None:
    """Play events (kind, entry, row of the signals or -1) in their order, from one on."""
    memory = memory_of(rules, memory_row)
    counters, queue = store.counters, store.queue
    expert, nothing = np.empty((1, rules.grid.shape[0])), np.empty(0)
    pending_before = store.place.shape[0] - inputs.contexts.shape[0]
    issued_before = store.first[0]
    for e in range(start, events.shape[0]):
        kind, entry, heard = events[e, 0], events[e, 1], events[e, 2]
        if kind == EventKind.SKIP:
            skip_steps(memory, entry)
            continue
        signal = inputs.signals[heard] if heard >= 0 else nothing
        if kind == EventKind.PREDICT:
            reserve_place(store, entry)
        at = store.place[entry]
        round = round_of(rules, store.records[at], store.slots[at])
        if kind == EventKind.PREDICT:
            new = entry - pending_before
            round.context[:] = inputs.contexts[new]
            fill_expert(rules.scores, inputs, counters, entry, new, expert)
            outstanding = float(queue[0])
            if not np.isnan(counters[Counter.LAG]):
                outstanding = min(outstanding, 2.0 * counters[Counter.LAG] + 2.0)
            predict_round(rules, memory, expert, signal, outstanding, counters[Counter.RESERVED], round)
            if inputs.coins.shape[0] > 0:
                round.info[RoundInfo.COIN] = inputs.coins[int(counters[Counter.ISSUED] - issued_before)]
            which = inputs.level_set[new]
            width = inputs.widths[which]
            log_row = outputs.round_log[new]
            log_round(rules, round, inputs.levels[which, :width], outputs.quantiles[new, :width], log_row)
            if queue[0] > 0:
                log_row[RoundLog.PROMISED] = promised_with(memory.account, store, round.certificate)
            keep_entry(store, entry, round.certificate)
            continue
        overdraft = store.certificates[at, CertificateField.OVERDRAFT]
        if kind == EventKind.SETTLE:
            others = counters[Counter.RESERVED] - overdraft if queue[0] > 1 else 0.0
            update_round(rules, memory, round, signal, max(others, 0.0), inputs.values[entry], nothing)
            outputs.settled[entry] = miscalibration(rules, memory)
            learn_outcome(counters, inputs, entry, counters[Counter.ISSUED] - store.issued[entry])
        remove_entry(store, entry, overdraft)
