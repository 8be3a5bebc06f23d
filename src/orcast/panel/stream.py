"""Streams: arrays in, arrays out, one stream after the other.

Nothing here knows of frames.  A stream that has begun comes as a `Stream` and goes as a new one; the old one is left as
it was, so that the caller can still refuse the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import LONGEST_SEASON
from orcast.engine import Oracle
from orcast.panel.calendar import seasons_of, steps_between
from orcast.panel.experts import ForecastShape
from orcast.panel.ordering import DROP, PREDICT, SETTLE, Before, Entries, order_of_play, with_skips
from orcast.panel.pools import SignalTable
from orcast.panel.runner import HOLDS, NO_SIGNALS, PROMISED, RunnerPool, RunState, events_of, with_heard
from orcast.panel.statuses import Status
from orcast.panel.stopping import NEVER, Stop
from orcast.payoffs import Payoff

Array = NDArray[np.float64]
Stamps = NDArray[Any]


# As plain numbers, no members of an enum: with these numpy takes several times as long, and streams may be short.
OK, PENDING, OUTSIDE, LATE = int(Status.OK), int(Status.PENDING), int(Status.OUTSIDE), int(Status.LATE)


class LogColumn:
    """What a stream remembers of a row, the certificate as engines log it; the answers follow."""

    SERIAL, Y, STATUS, HOLDS, PROMISED, MISCALIBRATION, ANSWERS = range(7)


class PendingColumn:
    """What a stream keeps of a pending row, beside the record of its round."""

    SERIAL, POINT, VALUE, LOW, HIGH, SKIPS = range(6)


@dataclass(frozen=True)
class StreamOptions:
    """What is asked of all streams of a model; ``remember`` is 0 if no state is wanted."""

    number: int  # of the model
    shape: ForecastShape
    payoff: Payoff | None
    oracle: Oracle | None
    by_row: bool  # whether bounds are those of rows
    at_once: bool  # whether each outcome is known before the next forecast
    remember: int
    replay: bool
    clip: bool
    max_pending: int
    pooled: bool = False
    dated: bool = False  # whether times are those of a calendar


@dataclass
class Stream:
    """A stream between frames: its game, its pending rows, and its last rows."""

    game: RunState
    pending: Array  # see `PendingColumn`
    stamps: Stamps  # of the last rows: cutoff, time, and when the outcome is known
    log: Array  # see `LogColumn`
    rows: int  # that were ever played
    step: int = 0  # in nanoseconds from one row to the next, by the calendar; 0 if that has no seasons


@dataclass
class Batch:
    """The rows of some streams of one model, one after the other; bounds are of rows, or of streams."""

    options: StreamOptions
    starts: list[int]
    low: Array
    high: Array
    time: Stamps
    cutoff: Stamps
    due: Stamps  # when the outcome is known
    there: NDArray[np.bool_]
    y: Array
    given: Array
    streams: list[Stream | None]
    features: list[Any] | None = None
    # times and outcomes of each stream's series, and when they were known, if rows may be late
    outcomes: list[tuple[Stamps, Array, Stamps]] | None = None
    # what each stream hears of its pool: a table, and its horizon there
    heard: list[tuple[SignalTable, int]] | None = None
    seeds: list[int] | None = None  # of the coins of each stream


@dataclass
class StreamResult:
    """What came of a batch: a row of answers and of the certificate for each of its rows, and the streams after it."""

    answers: Array
    certificate: Array  # holds, promised, miscalibration
    status: NDArray[np.uint8]
    streams: list[Stream | None]
    incomplete: list[tuple[int, int, int]]  # streams that cannot be replayed: rows in the frame, rows that were played


def play_batch(batch: Batch, pools: dict[int, RunnerPool], stop: Stop = NEVER) -> StreamResult:
    """Run the streams of a batch; the runners are kept from one to the next."""
    n, options = len(batch.time), batch.options
    answers, certificate = np.full((n, len(options.shape.outputs)), np.nan), np.full((n, 3), np.nan)
    result = StreamResult(answers, certificate, np.full(n, Status.NO_FORECAST, dtype=np.uint8), [], [])
    if options.number not in pools:
        pools[options.number] = RunnerPool(
            options.shape, options.payoff, options.oracle, options.by_row, options.pooled
        )
    pool = pools[options.number]
    for number, before in enumerate(batch.streams):
        stop.check()
        if batch.starts[number] == batch.starts[number + 1] and (before is None or not len(before.pending)):
            result.streams.append(before)
            continue
        run = _StreamRun(pool, batch, number, before)
        if before is not None and options.replay and run.changed():
            if run.first_new != before.rows:
                result.incomplete.append((number, run.first_new, before.rows))
            corrected = run.corrected
            run = _StreamRun(pool, batch, number, None)
            run.corrected = corrected
        if run.idle():
            result.streams.append(before)
        else:
            run.play(stop)
            result.streams.append(run.stream() if options.remember else None)
        run.write(result)
    return result


@dataclass
class _OpenRows:
    """Rows of a stream that are not settled: those that are pending from before, then the new ones."""

    at: NDArray[np.intp]  # where they stand in the log
    time: Stamps
    cutoff: Stamps
    due: Stamps
    value: Array  # the outcome as it is played, nan where it is unknown or outside
    known: NDArray[np.bool_]
    point: Array
    low: Array
    high: Array
    skips: NDArray[np.int64]  # steps of the calendar that are missing before the row, and that were not told

    def after(self, before: _OpenRows) -> _OpenRows:
        """Others, then these."""
        pairs = zip(vars(before).values(), vars(self).values(), strict=True)
        return _OpenRows(*(np.concatenate(pair) for pair in pairs))


class _StreamRun:
    """One stream of a batch."""

    def __init__(self, pool: RunnerPool, batch: Batch, number: int, before: Stream | None) -> None:
        options = self.options = batch.options
        start, stop = batch.starts[number : number + 2]
        self.rows = start + np.flatnonzero(batch.there[start:stop])
        self.before = before
        self.time, self.cutoff, self.due = (each[self.rows] for each in (batch.time, batch.cutoff, batch.due))
        self.y = batch.y[self.rows]
        if options.by_row:
            low, high = batch.low[self.rows], batch.high[self.rows]
        else:
            low, high = (np.full(len(self.rows), side[number]) for side in (batch.low, batch.high))
        at = start if options.by_row else number
        if before is not None and start == stop:
            # a stream without rows is there for its pending ones
            self.runner = pool.between(*before.pending[0, [PendingColumn.LOW, PendingColumn.HIGH]])
        else:
            self.runner = pool.between(batch.low[at], batch.high[at])
        features = None if batch.features is None else [batch.features[i] for i in self.rows.tolist()]
        self.outcomes = None if batch.outcomes is None else batch.outcomes[number]
        self.heard = batch.heard[number] if batch.heard is not None and self.runner.listens else None
        self.seed = None if batch.seeds is None else batch.seeds[number]
        self.log = np.empty((0, LogColumn.ANSWERS + len(options.shape.outputs))) if before is None else before.log
        self._match()
        new = slice(self.first_new, None)
        given = batch.given[self.rows[new]]
        self.new = self.runner.new(given, low[new], high[new], None if features is None else features[new])

    # --- what was seen before
    def _match(self) -> None:
        """Which rows the stream remembers, and from which on they are new."""
        n, before = len(self.rows), self.before
        self.old = np.full(n, -1, dtype=np.intp)
        self.corrected: NDArray[np.bool_] = np.zeros(n, dtype=bool)
        self.first_new = 0
        self.came_late = False  # whether a row has an outcome that was given up
        if before is None or not len(before.stamps):
            return
        cutoff, time, _ = before.stamps[-1]
        new = (self.cutoff > cutoff) | ((self.cutoff == cutoff) & (self.time > time))
        self.first_new = int(new.argmax()) if new.any() else n
        if self.first_new:
            seen = slice(0, self.first_new)
            places = {key: i for i, key in enumerate(zip(*before.stamps[:, :2].T.tolist(), strict=True))}
            keys = zip(self.cutoff[seen].tolist(), self.time[seen].tolist(), strict=True)
            self.old[seen] = [places.get(key, -1) for key in keys]
            was, now = before.log[self.old[seen], LogColumn.Y], self.y[seen]
            self.corrected[seen] = (self.old[seen] >= 0) & ~np.isnan(was) & ~np.isnan(now) & (was != now)
            given_up = before.log[self.old[seen], LogColumn.STATUS] == Status.GIVEN_UP
            self.came_late = bool(((self.old[seen] >= 0) & given_up & ~np.isnan(now)).any())

    def changed(self) -> bool:
        """Whether an outcome that was used is another now, or one that was given up is there."""
        assert self.before is not None
        serials = self.before.log[self.old[self.corrected], LogColumn.SERIAL]
        return self.came_late or not np.isin(serials, self.before.pending[:, PendingColumn.SERIAL]).all()

    def idle(self) -> bool:
        """Whether there is nothing to play and nothing to settle."""
        if self.before is None or self.first_new < len(self.rows):
            return False
        brought = self.outcomes is not None or bool((~np.isnan(self.y[self.old >= 0])).any())
        return not (brought and len(self.before.pending))

    # --- the play
    def play(self, stop: Stop) -> None:
        """Play the new rows, each after the outcomes that it could know."""
        before, m = self.before, len(self.new.given)
        played = 0 if before is None else before.rows
        self.begin, self.played = len(self.log), played + m
        fresh = np.full((m, self.log.shape[1]), np.nan)
        fresh[:, LogColumn.SERIAL] = played + np.arange(m)
        fresh[:, LogColumn.Y] = self.y[self.first_new :]
        fresh[:, LogColumn.STATUS] = PENDING
        self.log = np.concatenate((self.log, fresh))
        self._find_step(played)
        rows = self.open_rows = self._open_rows()
        events, lost, given_up = order_of_play(
            Entries(rows.time, rows.cutoff, rows.due, rows.known, ~np.isnan(rows.value)),
            Before() if before is None else before.game.before(),
            at_once=self.options.at_once,
            most=self.options.max_pending,
        )
        settled, dropped = (events[events[:, 0] == kind, 1] for kind in (SETTLE, DROP))
        events = with_heard(events, self._heard(events))
        if self.step:
            events = with_skips(events, rows.skips)
        points = rows.point if self.options.shape.kind == "point" else np.empty(0)
        signals = NO_SIGNALS if self.heard is None else self.heard[0].rows
        game = None if before is None else before.game
        self.run = self.runner.resume(game, self.new, rows.value, points, events, signals, self.seed)
        if played < 2:
            self.runner.presume_seasons(seasons_of(self.step))
        self.run.play(events, stop)
        fresh = self.log[self.begin :]
        fresh[:, LogColumn.HOLDS : LogColumn.MISCALIBRATION] = self.run.outputs.round_log[:, HOLDS : PROMISED + 1]
        fresh[:, LogColumn.ANSWERS :] = self.runner.answers(self.run, self.new)
        self._settle(settled)
        self.log[rows.at[dropped], LogColumn.STATUS] = OUTSIDE
        self.log[rows.at[lost], LogColumn.STATUS] = Status.LOST
        self.log[rows.at[given_up], LogColumn.STATUS] = Status.GIVEN_UP
        self._look_ahead()

    def _find_step(self, played: int) -> None:
        """The step of the calendar, from the first two times of the stream: how a frame is cut does not change it."""
        self.step = 0 if self.before is None else self.before.step
        if not (self.options.dated and played < 2 <= self.played and self.runner.has_seasons):
            return
        times = self.time[self.first_new :]
        if self.before is not None:
            times = np.concatenate((self.before.stamps[:, 1], times))
        step = int(times[1] - times[0])
        self.step = step if seasons_of(step) else 0

    def _skips(self) -> NDArray[np.int64]:
        """How many steps of the calendar are missing before each new row; more than a season can be are as many."""
        times = self.time[self.first_new :]
        if not self.step or not len(times):
            return np.zeros(len(times), dtype=np.int64)
        last = times[:1] - self.step if self.before is None else self.before.stamps[-1:, 1]
        return np.clip(steps_between(np.concatenate((last, times)), self.step) - 1, 0, LONGEST_SEASON)

    def _heard(self, events: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of the signals that is heard at each event: a forecast hears what was known when it was issued.

        So does an outcome with the forecast that it comes before; or what was known with it, if that is at once.
        """
        if self.heard is None or not len(events):
            return np.full(len(events), -1, dtype=np.int64)
        table, horizon = self.heard
        rows, entries = self.open_rows, events[:, 1]
        predicts = events[:, 0] == PREDICT
        if self.options.at_once:
            due = rows.due[entries]
            if table.begun:
                due = np.maximum(due, table.stamps[0])
            before = np.searchsorted(table.stamps, rows.cutoff[entries], side="left")
            by = np.searchsorted(table.stamps, due, side="right")
            return table.heard(np.where(predicts, before, by) - 1, horizon)
        at = np.searchsorted(table.stamps, rows.cutoff[entries], side="right") - 1
        following = np.minimum.accumulate(np.where(predicts, np.arange(len(events)), len(events))[::-1])[::-1]
        at = np.append(at, len(table.stamps) - 1)[following]
        return table.heard(at, horizon)

    def _settle(self, entries: NDArray[np.int64]) -> None:
        at = self.open_rows.at[entries]
        self.log[at, LogColumn.STATUS] = OK
        self.log[at, LogColumn.MISCALIBRATION] = self.run.outputs.settled[entries]

    def _open_rows(self) -> _OpenRows:
        """All rows that are open, with the outcomes that have come."""
        new, before = slice(self.first_new, None), self.before
        low, high, y = self.new.low, self.new.high, self.y[new]
        value = self.runner.outcomes(y, self.new.units, self.options.clip)
        points = self.runner.points(self.new) if self.options.shape.kind == "point" else np.full(len(y), np.nan)
        at = self.begin + np.arange(len(y))
        stamps = self.time[new], self.cutoff[new], self.due[new]
        fresh = _OpenRows(at, *stamps, value, ~np.isnan(y), points, low, high, self._skips())
        if before is None or not len(before.pending):
            return fresh
        serial, point, value, low, high, skips = before.pending.T
        order = np.argsort(before.log[:, LogColumn.SERIAL])
        at = order[np.searchsorted(before.log[order, LogColumn.SERIAL], serial)]
        y, due = np.full(len(before.log), np.nan), before.stamps[:, 2].copy()
        there = self.old >= 0
        y[self.old[there]] = self.y[there]
        due[self.old[there & ~np.isnan(self.y)]] = self.due[there & ~np.isnan(self.y)]
        y, due = y[at], due[at]
        cutoff, time, _ = before.stamps[at].T
        if self.outcomes is not None and len(self.outcomes[0]):
            times, outcomes, known_at = self.outcomes
            place = np.minimum(np.searchsorted(times, time), len(times) - 1)
            found = np.isnan(y) & (times[place] == time)
            y, due = np.where(found, outcomes[place], y), np.where(found, known_at[place], due)
        came = ~np.isnan(y) & (y != self.log[at, LogColumn.Y])
        # the status that an outcome had before it changed no longer counts
        self.log[at[came], LogColumn.Y], self.log[at[came], LogColumn.STATUS] = y[came], PENDING
        value = np.where(came, self.runner.outcomes(y, self.runner.units(low, high), self.options.clip), value)
        known = ~np.isnan(self.log[at, LogColumn.Y])
        skips = skips.astype(np.int64)
        return fresh.after(_OpenRows(at, time, cutoff, due, value, known, point, low, high, skips))

    def _look_ahead(self) -> None:
        """The miscalibration after outcomes that are known, but that no forecast could know yet.

        They are settled as they will be, and then the game is put back to where it was.
        """
        rows = self.open_rows
        held = self.run.pending[rows.known[self.run.pending]]
        if not (self.log[rows.at[held], LogColumn.STATUS] == PENDING).any():
            return
        held = held[np.lexsort((held, rows.cutoff[held], rows.time[held], rows.due[held]))]
        good = ~np.isnan(rows.value[held])
        self.log[rows.at[held[~good]], LogColumn.STATUS] = OUTSIDE
        held = held[good]
        self.run.look_ahead(events_of([SETTLE] * len(held), held.tolist()))
        self._settle(held)

    # --- what came of it
    def write(self, result: StreamResult) -> None:
        """Write down what came of each row of the frame."""
        seen = self.old >= 0
        answered = (np.arange(len(self.rows)) >= self.first_new) | seen
        places = np.where(seen, self.old, len(self.log) - len(self.rows) + np.arange(len(self.rows)))
        log = self.log[places[answered]]
        rows = self.rows[answered]
        result.answers[rows] = log[:, LogColumn.ANSWERS :]
        result.certificate[rows] = log[:, LogColumn.HOLDS : LogColumn.ANSWERS]
        status = np.full(len(self.rows), LATE, dtype=np.uint8)
        status[answered] = log[:, LogColumn.STATUS]
        if self.before is not None:
            was = np.full(len(self.rows), PENDING)
            was[seen] = self.before.log[self.old[seen], LogColumn.STATUS]
            status[(was == OK) & (status == OK)] = Status.SEEN
        status[self.corrected] = Status.CORRECTED
        # no row says by its status whether later outcomes came
        status[(status == Status.GIVEN_UP) & np.isnan(self.y)] = PENDING
        result.status[self.rows] = status

    def stream(self) -> Stream:
        """The stream after the batch."""
        new = slice(self.first_new, None)
        stamps = np.column_stack((self.cutoff[new], self.time[new], self.due[new]))
        if self.before is not None:
            stamps = np.concatenate((self.before.stamps, stamps))
        rows, entries = self.open_rows, self.run.pending
        stamps[rows.at[entries], 2] = rows.due[entries]
        keep = np.zeros(len(self.log), dtype=bool)
        keep[-self.options.remember :] = True
        keep[rows.at[entries]] = True
        serial = self.log[rows.at[entries], LogColumn.SERIAL]
        columns = (rows.point, rows.value, rows.low, rows.high, rows.skips)
        pending = np.column_stack((serial, *(column[entries] for column in columns)))
        return Stream(self.run.state(), pending, stamps[keep], self.log[keep], self.played, self.step)
