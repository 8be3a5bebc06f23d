"""Playing streams: arrays in, arrays out, one stream after the other.

Nothing here knows of frames.  A stream that has begun comes as a `Stream` and goes as a new one; the old one is left as
it was, so that whoever asked can still refuse the whole.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.panel.bounds import placed, scale_between, space_between
from orcast.panel.experts import ForecastShape, expert_rows, first_spreads, ranks_of
from orcast.panel.runner import (
    DROP,
    PREDICT,
    SETTLE,
    CompiledRun,
    Events,
    Fields,
    PythonRun,
    RunInput,
    Runner,
    RunState,
    events_of,
)
from orcast.payoffs import Payoff
from orcast.spaces import OrderedSpace, Space

Array = NDArray[np.float64]
Stamps = NDArray[Any]

# What is said of a row in the column "status", by its code.
STATUSES = ("ok", "pending", "no forecast", "outside", "corrected", "seen", "late", "lost")
OK, PENDING, NO_FORECAST, OUTSIDE, CORRECTED, SEEN, LATE, LOST = range(len(STATUSES))

# Columns of what a stream remembers of its rows; the answers follow.
SERIAL, Y, STATE, HOLDS, PROMISED, MISCALIBRATION, ANSWERS = range(7)
# What is kept of a row that waits, before the numbers of its page.
WAIT_SERIAL, WAIT_ISSUED, WAIT_POINT, WAIT_VALUE, WAIT_LOW, WAIT_HIGH, WAIT_SIZE = range(7)
# Tables that are kept, of series with other bounds.
MOST_TABLES = 256


@dataclass(frozen=True)
class StreamOptions:
    """What is asked of all streams of a model; ``remember`` is 0 if no state is wanted."""

    number: int  # of the model
    shape: ForecastShape
    payoff: Payoff | None
    by_row: bool  # whether bounds are those of rows
    at_once: bool  # whether each outcome is known before the next forecast
    remember: int
    replay: bool
    clip: bool
    max_pending: int


@dataclass
class Stream:
    """A stream between frames: its game, the rounds that wait, and its last rows."""

    game: Array  # counters and memory
    pages: Array  # a row for each round that waits
    when: Stamps  # cutoff and time of the last rows
    said: Array  # what was said of them
    rows: int  # that were ever played
    sizes: tuple[int, ...] | None = None
    fields: Fields = ()
    features: list[Any] = field(default_factory=list)

    def left(self) -> RunState:
        """What the table wants of it."""
        return RunState(
            self.game,
            self.sizes,
            self.fields,
            list(self.pages[:, WAIT_SIZE:]),
            self.pages[:, WAIT_ISSUED].tolist(),
            self.features,
        )


@dataclass
class Batch:
    """The rows of some streams of one model, one after the other; bounds are of rows, or of streams."""

    ask: StreamOptions
    starts: list[int]
    low: Array
    high: Array
    time: Stamps
    cutoff: Stamps
    there: NDArray[np.bool_]
    y: Array
    given: Array
    streams: list[Stream | None]
    features: list[Any] | None = None
    known: list[tuple[Stamps, Array]] | None = None  # times and outcomes of each stream's series, where rows may wait

    def with_payoff(self, payoff: Payoff | None) -> Batch:
        """The same with another payoff: it travels by itself."""
        return replace(self, ask=replace(self.ask, payoff=payoff))


@dataclass
class StreamResult:
    """What came of a batch: a row of answers and of the certificate for each of its rows, and the streams after it."""

    answers: Array
    certificate: Array  # holds, promised, miscalibration
    status: NDArray[np.uint8]
    streams: list[Stream | None]
    short: list[tuple[int, int, int]]  # streams that cannot be replayed: rows in the frame, rows that were played


def play_batch(batch: Batch, tables: dict[Any, Runner]) -> StreamResult:
    """Play the streams of a batch; the tables are kept from one to the next."""
    n, ask = len(batch.time), batch.ask
    told = StreamResult(
        np.full((n, len(ask.shape.outputs)), np.nan),
        np.full((n, 3), np.nan),
        np.full(n, NO_FORECAST, dtype=np.uint8),
        [],
        [],
    )
    for i, (start, stop) in enumerate(pairwise(batch.starts)):
        rows, before = slice(start, stop), batch.streams[i]
        if start == stop and (before is None or not len(before.pages)):
            told.streams.append(before)
            continue
        low, high = (side[rows] if ask.by_row else np.full(stop - start, side[i]) for side in (batch.low, batch.high))
        # a stream without rows is there for those of its own that wait
        ends = np.array([low[0], high[0]]) if before is None or start < stop else before.pages[0, [WAIT_LOW, WAIT_HIGH]]
        space = ask.shape.space(space_between(ends[0], ends[1], ask.by_row) if ask.shape.ordered else None)
        key = (ask.number, space)
        if key not in tables:
            if len(tables) >= MOST_TABLES:
                tables.clear()
            tables[key] = Runner(ask.shape, space, ask.payoff)
        play = _Play(tables[key], batch, i, rows, low, high, before)
        if before is not None and ask.replay and play.changed():
            have = play.first_new
            if have != before.rows:
                told.short.append((i, have, before.rows))
            corrected = play.corrected
            play = _Play(tables[key], batch, i, rows, low, high, None)
            play.corrected = corrected
        if play.idle():
            told.streams.append(before)
        else:
            play.play()
            told.streams.append(play.stream() if ask.remember else None)
        play.tell(told)
    return told


@dataclass
class _Entries:
    """Rows of a stream that are open: those that wait from before, then the new ones."""

    at: NDArray[np.intp]  # where they stand in what is said
    time: Stamps
    cutoff: Stamps
    value: Array  # the outcome as it is played, nan where it is unknown or outside
    known: NDArray[np.bool_]
    point: Array
    low: Array
    high: Array


class _Play:
    """One stream of a batch, at the table."""

    def __init__(
        self, table: Runner, batch: Batch, number: int, rows: slice, low: Array, high: Array, before: Stream | None
    ) -> None:
        self.table, self.ask, self.shape = table, batch.ask, batch.ask.shape
        there = np.flatnonzero(batch.there[rows])
        self.rows = rows.start + there
        self.before = before
        self.time, self.cutoff = batch.time[self.rows], batch.cutoff[self.rows]
        self.y, self.given = batch.y[self.rows], batch.given[self.rows]
        self.low, self.high = low[there], high[there]
        self.features = None if batch.features is None else [batch.features[i] for i in self.rows.tolist()]
        self.known = None if batch.known is None else batch.known[number]
        self.shift, self.scale = scale_between(self.low, self.high, self.ask.by_row)
        self.said = np.empty((0, ANSWERS + len(self.shape.outputs))) if before is None else before.said
        self._match()

    def _values(self, y: Array, shift: Array, scale: Array) -> Array:
        """Outcomes as they are played; nan where they are missing or outside."""
        return values_of(y, shift, scale, self.table.space, self.ask.clip)

    # --- what was seen before
    def _match(self) -> None:
        """Which rows the stream remembers, and from which on they are new."""
        n, before = len(self.rows), self.before
        self.old = np.full(n, -1, dtype=np.intp)
        self.corrected: NDArray[np.bool_] = np.zeros(n, dtype=bool)
        self.first_new = 0
        if before is None or not len(before.when):
            return
        cutoff, time = before.when[-1]
        new = (self.cutoff > cutoff) | ((self.cutoff == cutoff) & (self.time > time))
        self.first_new = int(new.argmax()) if new.any() else n
        if self.first_new:
            seen = slice(0, self.first_new)
            places = {key: i for i, key in enumerate(zip(*before.when.T.tolist(), strict=True))}
            keys = zip(self.cutoff[seen].tolist(), self.time[seen].tolist(), strict=True)
            self.old[seen] = [places.get(key, -1) for key in keys]
            was, now = before.said[self.old[seen], Y], self.y[seen]
            self.corrected[seen] = (self.old[seen] >= 0) & ~np.isnan(was) & ~np.isnan(now) & (was != now)

    def changed(self) -> bool:
        """Whether an outcome that was used is another now."""
        assert self.before is not None
        serials = self.before.said[self.old[self.corrected], SERIAL]
        return not np.isin(serials, self.before.pages[:, WAIT_SERIAL]).all()

    def idle(self) -> bool:
        """Whether there is nothing to play and nothing to settle."""
        if self.before is None or self.first_new < len(self.rows):
            return False
        brought = self.known is not None or bool((~np.isnan(self.y[self.old >= 0])).any())
        return not (brought and len(self.before.pages))

    # --- the play
    def play(self) -> None:
        """Play the new rows, each after the outcomes that it could know."""
        before, new = self.before, self.first_new
        m = len(self.rows) - new
        self.begin = len(self.said)
        played = 0 if before is None else before.rows
        fresh = np.full((m, self.said.shape[1]), np.nan)
        fresh[:, SERIAL] = played + np.arange(m)
        fresh[:, Y] = self.y[new:]
        fresh[:, STATE] = PENDING
        self.said = np.concatenate((self.said, fresh))
        self.played = played + m
        entries = self._entries()
        old = len(entries.at) - m
        events, lost = order_of_play(
            self.ask.at_once,
            entries.time,
            entries.cutoff,
            entries.known,
            ~np.isnan(entries.value),
            old,
            self.ask.max_pending,
        )
        open_ = old + np.cumsum(np.where(events[:, 0] == PREDICT, 1, -1))
        inputs = self._deal(entries)
        self.seat = self.table.resume(
            None if before is None else before.left(), inputs, int(open_.max(initial=max(old, 1)))
        )
        self.seat.play(events)
        self._write(inputs)
        settled, dropped = (events[events[:, 0] == kind, 1] for kind in (SETTLE, DROP))
        self.said[entries.at[settled], STATE] = OK
        self.said[entries.at[settled], MISCALIBRATION] = self.seat.settled[settled]
        self.said[entries.at[dropped], STATE] = OUTSIDE
        self.said[entries.at[lost], STATE] = LOST
        self.entries = entries
        still = np.ones(len(entries.at), dtype=bool)
        still[settled] = still[dropped] = False
        self.open = np.flatnonzero(still)
        self._look_ahead()

    def _entries(self) -> _Entries:
        """All rows that are open, with the outcomes that have come."""
        new = slice(self.first_new, None)
        m = len(self.rows) - self.first_new
        point = np.empty(0)
        if self.shape.kind == "point":
            point = (self.given[new, 0] - self.shift[new]) / self.scale[new]
        value = self._values(self.y[new], self.shift[new], self.scale[new])
        fresh = _Entries(
            self.begin + np.arange(m),
            self.time[new],
            self.cutoff[new],
            value,
            ~np.isnan(self.y[new]),
            point,
            self.low[new],
            self.high[new],
        )
        before = self.before
        if before is None or not len(before.pages):
            return fresh
        pages = before.pages
        order = np.argsort(before.said[:, SERIAL])
        at = order[np.searchsorted(before.said[order, SERIAL], pages[:, WAIT_SERIAL])]
        y = np.full(len(before.said), np.nan)
        there = self.old >= 0
        y[self.old[there]] = self.y[there]
        y = y[at]
        cutoff, time = before.when[at].T
        if self.known is not None and len(self.known[0]):
            times, outcomes = self.known
            place = np.minimum(np.searchsorted(times, time), len(times) - 1)
            y = np.where(np.isnan(y) & (times[place] == time), outcomes[place], y)
        low, high = pages[:, WAIT_LOW], pages[:, WAIT_HIGH]
        came = ~np.isnan(y) & (y != self.said[at, Y])
        # what was said of an outcome that is another now no longer counts
        self.said[at[came], Y], self.said[at[came], STATE] = y[came], PENDING
        shift, scale = scale_between(low, high, self.ask.by_row)
        value = np.where(came, self._values(y, shift, scale), pages[:, WAIT_VALUE])
        return _Entries(
            np.concatenate((at, fresh.at)),
            np.concatenate((time, fresh.time)),
            np.concatenate((cutoff, fresh.cutoff)),
            np.concatenate((value, fresh.value)),
            np.concatenate((~np.isnan(self.said[at, Y]), fresh.known)),
            np.concatenate((pages[:, WAIT_POINT], fresh.point)) if self.shape.kind == "point" else point,
            np.concatenate((low, fresh.low)),
            np.concatenate((high, fresh.high)),
        )

    def _deal(self, entries: _Entries) -> RunInput:
        new = slice(self.first_new, None)
        features = None if self.features is None else self.features[self.first_new :]
        return inputs_of(
            self.shape,
            self.table.space,
            self.given[new],
            self.shift[new],
            self.scale[new],
            entries.value,
            entries.point,
            features,
        )

    def _write(self, inputs: RunInput) -> None:
        """Write down what was played."""
        said, round_log, new = self.said[self.begin :], self.seat.round_log, slice(self.first_new, None)
        said[:, HOLDS] = round_log[:, _ledger.RoundLog.HOLDS]
        said[:, PROMISED] = round_log[:, _ledger.RoundLog.PROMISED]
        limits = (self.low[new], self.high[new]) if self.ask.by_row else None
        said[:, ANSWERS:] = answers_of(
            self.shape, self.seat, inputs, self.given[new], self.shift[new], self.scale[new], limits
        )

    def _look_ahead(self) -> None:
        """Say the miscalibration after outcomes that are known but that no forecast could know yet.

        They are booked as they will be, and then the game is put back to where it was.
        """
        entries = self.entries
        held = self.open[entries.known[self.open]]
        if not (self.said[entries.at[held], STATE] == PENDING).any():
            return
        held = held[np.lexsort((entries.cutoff[held], entries.time[held]))]
        good = ~np.isnan(entries.value[held])
        self.said[entries.at[held], STATE] = np.where(good, OK, OUTSIDE)
        held = held[good]
        self.seat.look(events_of([SETTLE] * len(held), held.tolist()))
        self.said[entries.at[held], MISCALIBRATION] = self.seat.settled[held]

    # --- what came of it
    def tell(self, told: StreamResult) -> None:
        """Write down what came of each row of the frame."""
        new = np.arange(len(self.rows)) >= self.first_new
        seen = self.old >= 0
        answered = new | seen
        places = np.where(seen, self.old, len(self.said) - len(self.rows) + np.arange(len(self.rows)))
        said = self.said[places[answered]]
        told.answers[self.rows[answered]] = said[:, ANSWERS:]
        told.certificate[self.rows[answered]] = said[:, [HOLDS, PROMISED, MISCALIBRATION]]
        status = np.full(len(self.rows), LATE, dtype=np.uint8)
        status[answered] = said[:, STATE].astype(np.uint8)
        if self.before is not None:
            was = np.full(len(self.rows), PENDING)
            was[seen] = self.before.said[self.old[seen], STATE]
            status[(was == OK) & (status == OK)] = SEEN
        status[self.corrected] = CORRECTED
        told.status[self.rows] = status

    def stream(self) -> Stream:
        """The stream after the batch."""
        when = np.column_stack((self.cutoff[self.first_new :], self.time[self.first_new :]))
        if self.before is not None:
            when = np.concatenate((self.before.when, when))
        left, entries = self.seat.left(), self.entries
        waiting = self.seat.waits()
        keep = np.zeros(len(self.said), dtype=bool)
        keep[-self.ask.remember :] = True
        keep[entries.at[waiting]] = True
        pages = np.empty((0, WAIT_SIZE))
        if len(waiting):
            pages = np.empty((len(waiting), WAIT_SIZE + len(left.records[0])))
            pages[:, WAIT_SERIAL] = self.said[entries.at[waiting], SERIAL]
            pages[:, WAIT_ISSUED] = left.issued
            pages[:, WAIT_POINT] = entries.point[waiting] if len(entries.point) else np.nan
            pages[:, WAIT_VALUE] = entries.value[waiting]
            pages[:, WAIT_LOW], pages[:, WAIT_HIGH] = entries.low[waiting], entries.high[waiting]
            pages[:, WAIT_SIZE:] = left.records
        return Stream(
            left.numbers, pages, when[keep], self.said[keep], self.played, left.sizes, left.fields, left.features
        )


def values_of(y: Array, shift: Array, scale: Array, space: Space, clip: bool) -> Array:
    """Outcomes as they are played; nan where they are missing or outside."""
    if isinstance(space, OrderedSpace):
        return placed(y, shift, scale, space, clip)
    return np.where((y >= 0.0) & (y < space.cells) & (y == np.floor(y)), y, np.nan)


def inputs_of(
    shape: ForecastShape,
    space: Any,
    given: Array,
    shift: Array,
    scale: Array,
    values: Array,
    points: Array,
    features: list[Any] | None,
) -> RunInput:
    """What is to be played, from forecasts as they were given; values and points are those of all entries."""
    m = len(given)
    rows, spreads = np.empty((0, 0)), np.empty(0)
    if shape.kind == "point":
        spreads = first_spreads(given[:, 0], scale, space)
    elif m:
        rows = expert_rows(shape, space, given, shift, scale)
    flip = bool(m and scale[0] < 0.0)
    counts, which = np.zeros(1, dtype=np.intp), np.zeros(m, dtype=np.int64)
    if shape.kind == "members" and m:
        counts, which = np.unique((~np.isnan(given)).sum(axis=1), return_inverse=True)
    levels = [shape.at(int(count), flip) for count in counts]
    return RunInput(values, points, spreads, rows, levels, which.astype(np.int64), features)


def answers_of(
    shape: ForecastShape,
    seat: CompiledRun | PythonRun,
    inputs: RunInput,
    given: Array,
    shift: Array,
    scale: Array,
    limits: tuple[Array, Array] | None,
) -> Array:
    """What was played, as the columns that come out; a row for each new entry."""
    if not shape.ordered:
        return seat.quantiles
    answers = np.empty((inputs.new, len(shape.outputs)))
    mean, std = seat.round_log[:, _ledger.RoundLog.MEAN], seat.round_log[:, _ledger.RoundLog.SD]
    for i, levels in enumerate(inputs.levels):
        at = np.flatnonzero(inputs.which == i)
        ranks = ranks_of(given[at]) if shape.kind == "members" else None
        out = shape.answers(seat.quantiles[at, : len(levels)], mean[at], std[at], shift[at], scale[at], ranks)
        if limits is not None:
            # rounding does not lead out
            for k, (what, _, _) in enumerate(shape.outputs):
                if what != "sd":
                    out[:, k] = np.minimum(np.maximum(out[:, k], limits[0][at]), limits[1][at])
        answers[at] = out
    return answers


def order_of_play(
    at_once: bool,
    time: Stamps,
    cutoff: Stamps,
    known: NDArray[np.bool_],
    good: NDArray[np.bool_],
    old: int,
    most: int,
) -> tuple[Events, list[int]]:
    """What happens to the entries of a stream, in order; and which of them are given up because too many wait.

    The first ``old`` entries wait from before.  An outcome that is ``known`` is booked before the next forecast if
    ``at_once``, else before the first one whose cutoff has come to its time; in the order of times.  One that is not
    ``good`` is dropped instead.

    >>> import numpy as np
    >>> time, cutoff, yes = np.array([2, 3, 4]), np.array([0, 1, 2]), np.ones(3, dtype=bool)
    >>> order_of_play(False, time, cutoff, yes, yes, 0, 10)[0].tolist()     # 0: forecast, 1: its outcome
    [[0, 0], [0, 1], [1, 0], [0, 2]]
    """
    n = len(time)
    if at_once and old + n - int(known[old:].sum()) <= most:
        return _order_at_once(time, known, good, old), []
    kinds: list[int] = []
    which: list[int] = []
    lost: list[int] = []
    open_: dict[int, None] = dict.fromkeys(range(old))
    times, cutoffs = time.tolist(), cutoff.tolist()
    ready = [(times[i], cutoffs[i], i) for i in range(old) if known[i]]
    heapq.heapify(ready)

    def settle(until: Any) -> None:
        while ready and (until is None or ready[0][0] <= until):
            i = heapq.heappop(ready)[2]
            if i in open_:
                kinds.append(SETTLE if good[i] else DROP)
                which.append(i)
                del open_[i]

    for i in range(old, n):
        settle(None if at_once else cutoffs[i])
        if len(open_) >= most:
            first = next(iter(open_))
            del open_[first]
            lost.append(first)
            kinds.append(DROP)
            which.append(first)
        kinds.append(PREDICT)
        which.append(i)
        open_[i] = None
        if known[i]:
            heapq.heappush(ready, (times[i], cutoffs[i], i))
    if at_once:
        settle(None)
    return events_of(kinds, which), lost


def _order_at_once(time: Stamps, known: NDArray[np.bool_], good: NDArray[np.bool_], old: int) -> Events:
    """The same where each outcome is known before the next forecast and none need be given up."""
    first = np.flatnonzero(known[:old])
    first = first[np.argsort(time[first], kind="stable")]
    new = np.arange(old, len(time))
    both = np.column_stack((np.column_stack((np.full(len(new), PREDICT), new)), np.where(good[new], SETTLE, DROP), new))
    happens = np.column_stack((np.ones(len(new), dtype=bool), known[new])).ravel()
    return np.concatenate(
        (np.column_stack((np.where(good[first], SETTLE, DROP), first)), both.reshape(-1, 2)[happens])
    ).astype(np.int64)
