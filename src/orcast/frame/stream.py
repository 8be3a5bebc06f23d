"""Streams: arrays in, arrays out, one stream after the other.

Nothing here knows of frames.  A stream that has begun comes as a `Stream` and goes as a new one; the old one is left as
it was, so that the caller can still refuse the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine import Oracle
from orcast.frame.experts import ForecastShape
from orcast.frame.ordering import Before, Entries, order_of_play
from orcast.frame.runner import HOLDS, PROMISED, NewForecasts, Runner, RunnerPool, RunState, events_of
from orcast.frame.statuses import Status
from orcast.frame.stopping import NEVER, Stop
from orcast.kernels.records import DROP, SETTLE
from orcast.payoffs import Payoff

if TYPE_CHECKING:
    from orcast.frame.groups import GroupState

Array = NDArray[np.float64]
Stamps = NDArray[Any]
StreamKey = tuple[Hashable, Hashable]  # series and horizon


# As plain numbers, no members of an enum: with these numpy takes several times as long, and streams may be short.
OK, PENDING, OUTSIDE, LATE = int(Status.OK), int(Status.PENDING), int(Status.OUTSIDE), int(Status.LATE)


class LogColumn:
    """Columns of the remembered rows, the certificate as engines log it; the answers follow."""

    SERIAL, Y, STATUS, HOLDS, PROMISED, MISCALIBRATION, ANSWERS = range(7)


class PendingColumn:
    """Columns of the pending rows, beside the records of their rounds.

    STEP is the index of the row's time in steps of its series; SETTLED whether the committee has used the outcome.
    """

    SERIAL, POINT, VALUE, LOW, HIGH, STEP, SETTLED = range(7)


PENDING_WIDTH = PendingColumn.SETTLED + 1


@dataclass(frozen=True)
class StreamOptions:
    """Options of all streams of a model; ``remember`` is 0 if no state is wanted."""

    number: int  # of the model
    shape: ForecastShape
    payoff: Payoff | None
    oracle: Oracle | None
    by_row: bool  # whether bounds are those of rows
    at_once: bool  # whether each outcome is known before the next forecast
    remember: int
    clip: bool
    max_pending: int
    dated: bool = False  # whether times are those of a calendar


@dataclass
class Stream:
    """A stream between frames: its recalibrator, its committee, its pending rows, and its last rows."""

    game: RunState
    pending: Array  # see `PendingColumn`
    stamps: Stamps  # of the last rows: cutoff, time, and when the outcome is known
    log: Array  # see `LogColumn`
    rows: int  # that were ever played
    committee: Array  # the stream's numbers in its committee; empty if there is none
    memos: Array  # of the pending rows that are not settled by the committee

    @property
    def waiting(self) -> bool:
        """Return whether the committee has still to use an outcome that is known."""
        open_ = self.pending[:, PendingColumn.SETTLED] == 0.0
        return bool(len(self.memos)) and not bool(np.isnan(self.pending[open_, PendingColumn.VALUE]).all())


@dataclass
class Batch:
    """The rows of some streams of one model, one after the other; bounds are of rows, or of streams."""

    options: StreamOptions
    keys: list[StreamKey]
    starts: list[int]
    rows: NDArray[np.intp]  # of the frame
    low: Array
    high: Array
    time: Stamps
    cutoff: Stamps
    due: Stamps  # when the outcome is known
    there: NDArray[np.bool_]
    y: Array
    given: Callable[[NDArray[np.intp]], Array]  # forecasts of rows of the frame
    streams: list[Stream | None]
    features: Callable[[NDArray[np.intp]], list[Any]] | None = None
    # times and outcomes of each stream's series, and when they were known, if rows may be late
    outcomes: list[tuple[Stamps, Array, Stamps]] | None = None
    seeds: list[int] | None = None  # of the random draws of each stream
    runs: list[StreamRun | None] | None = None  # if the committee was run already
    group: Any = None  # runs the committee of the batch if that was not done: a function of runs and of a `Stop`


@dataclass
class StreamResult:
    """Results of a batch: a row of answers and of the certificate for each of its rows, and the streams after it."""

    answers: Array
    certificate: Array  # holds, promised, miscalibration
    status: NDArray[np.uint8]
    streams: list[Stream | None]
    group: GroupState | None = None  # series of the committee after the batch, if it was run with it


def runners_of(options: StreamOptions, pools: dict[int, RunnerPool]) -> RunnerPool:
    """Return the runners of a model, which a thread keeps from batch to batch."""
    if options.number not in pools:
        pools[options.number] = RunnerPool(options.shape, options.payoff, options.oracle, options.by_row)
    return pools[options.number]


def prepare_runs(batch: Batch, pool: RunnerPool, stop: Stop = NEVER) -> list[StreamRun | None]:
    """Match the rows of each stream with those seen before, and put its events in order; None if it has no rows."""
    runs: list[StreamRun | None] = []
    for number, before in enumerate(batch.streams):
        stop.check()
        empty = batch.starts[number] == batch.starts[number + 1]
        nothing = empty and (before is None or not len(before.pending))
        runs.append(None if nothing else StreamRun(pool, batch, number, before))
    return runs


def play_batch(batch: Batch, pools: dict[int, RunnerPool], stop: Stop = NEVER) -> StreamResult:
    """Run the streams of a batch; the runners are kept from one to the next."""
    n, options = len(batch.time), batch.options
    answers, certificate = np.full((n, len(options.shape.outputs)), np.nan), np.full((n, 3), np.nan)
    result = StreamResult(answers, certificate, np.full(n, Status.NO_FORECAST, dtype=np.uint8), [])
    pool, runs = runners_of(options, pools), batch.runs
    if runs is None:
        runs = prepare_runs(batch, pool, stop)
        if batch.group is not None:
            result.group = batch.group([run for run in runs if run is not None], stop)
    for number, run in enumerate(runs):
        stop.check()
        if run is None or run.idle:
            result.streams.append(batch.streams[number] if run is None else run.before)
        else:
            run.play(pool, stop)
            result.streams.append(run.stream() if options.remember else None)
        if run is not None:
            run.write(result)
            runs[number] = None
    return result


@dataclass
class OpenRows:
    """Rows of a stream that are not settled: those that are pending from before, then the new ones."""

    at: NDArray[Any]  # where they stand in the log
    time: Stamps
    cutoff: Stamps
    due: Stamps
    value: Array  # the outcome as it is played, nan where it is unknown or outside
    known: NDArray[np.bool_]
    point: Array
    low: Array
    high: Array

    def after(self, before: OpenRows) -> OpenRows:
        """Others, then these."""
        pairs = zip(vars(before).values(), vars(self).values(), strict=True)
        return OpenRows(*(np.concatenate(pair) for pair in pairs))


NO_ROWS: Array = np.empty((0, 0))


class StreamRun:
    """One stream of a batch.

    The committee fills `priors` and, for point forecasts, `spreads` (a row for each new forecast), `steps` and
    `settled` (of all entries), `committee` and `memos`; without one the prior is the base forecast.
    """

    def __init__(self, pool: RunnerPool, batch: Batch, number: int, before: Stream | None) -> None:
        options = self.options = batch.options
        start, stop = batch.starts[number : number + 2]
        there = batch.there[start:stop]
        self.rows: Any = slice(start, stop) if there.all() else start + np.flatnonzero(there)
        self.batch, self.before, self.key = batch, before, batch.keys[number]
        self.time, self.cutoff, self.due = (each[self.rows] for each in (batch.time, batch.cutoff, batch.due))
        self.y, self.count = batch.y[self.rows], int(there.sum())
        if options.by_row:
            self.low, self.high = batch.low[self.rows], batch.high[self.rows]
        else:
            self.low, self.high = (np.broadcast_to(side[number], self.count) for side in (batch.low, batch.high))
        at = start if options.by_row else number
        if before is not None and start == stop:
            # a stream without rows is there for its pending ones
            low, high = before.pending[0, [PendingColumn.LOW, PendingColumn.HIGH]]
        else:
            low, high = batch.low[at], batch.high[at]
        self.between = float(low), float(high)
        self.outcomes = None if batch.outcomes is None else batch.outcomes[number]
        self.seed = None if batch.seeds is None else batch.seeds[number]
        self._match()
        self.idle = self._is_idle()
        self.committee, self.memos, self.priors, self.spreads = np.empty(0), NO_ROWS, NO_ROWS, np.empty(0)
        if not self.idle:
            self._arrange(pool.between(*self.between))

    # --- rows that were seen before
    def _match(self) -> None:
        """Find the rows that the stream remembers, and the first new one."""
        n, before = self.count, self.before
        self.old, self.first_new = np.broadcast_to(np.intp(-1), n), 0
        self.corrected: NDArray[np.bool_] = np.broadcast_to(np.bool_(False), n)
        if before is None or not len(before.stamps):
            return
        self.old, self.corrected = np.full(n, -1, dtype=np.intp), np.zeros(n, dtype=bool)
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

    def _is_idle(self) -> bool:
        """Whether there is nothing to play and nothing to settle."""
        if self.before is None or self.first_new < self.count:
            return False
        brought = self.outcomes is not None or bool((~np.isnan(self.y[self.old >= 0])).any())
        return not (brought and len(self.before.pending))

    # --- the order of events
    def _arrange(self, runner: Runner) -> None:
        """Put the events in order: each new row after the outcomes that it could know."""
        before = self.before
        self.begin = 0 if before is None else len(before.log)
        self.played = self.count - self.first_new + (0 if before is None else before.rows)
        rows = self.open_rows = self._open_rows(runner)
        events, self.lost, self.given_up = order_of_play(
            Entries(rows.time, rows.cutoff, rows.due, rows.known, ~np.isnan(rows.value)),
            Before() if before is None else before.game.before(),
            at_once=self.options.at_once,
            most=self.options.max_pending,
        )
        # many streams are held at once
        self.events = events.astype(np.int32)
        self.steps: NDArray[np.int64] = np.broadcast_to(np.int64(0), len(rows.time))
        self.settled: NDArray[np.bool_] = np.broadcast_to(np.bool_(False), len(rows.time))

    @property
    def pending(self) -> int:
        """Number of entries that are pending from before."""
        return 0 if self.before is None else len(self.before.pending)

    def new_rows(self) -> NDArray[np.intp]:
        """Rows of the frame with new forecasts."""
        rows: NDArray[np.intp] = self.batch.rows[self.rows][self.first_new :]
        return rows

    def _open_rows(self, runner: Runner) -> OpenRows:
        """All rows that are open, with the outcomes that have come."""
        new, before = slice(self.first_new, None), self.before
        low, high, y = self.low[new], self.high[new], self.y[new]
        units = runner.units(low, high)
        value = runner.outcomes(y, units, self.options.clip)
        points = np.broadcast_to(np.nan, len(y))
        if self.options.shape.kind == "point":
            points = runner.points(self.batch.given(self.new_rows()), units)
        at = np.arange(self.begin, self.begin + len(y), dtype=np.int32)
        stamps = self.time[new], self.cutoff[new], self.due[new]
        fresh = OpenRows(at, *stamps, value, ~np.isnan(y), points, low, high)
        self.came: tuple[Any, Any] = (np.empty(0, dtype=np.intp), np.empty(0))
        if before is None or not len(before.pending):
            return fresh
        serial, point, value, low, high, _, _ = before.pending.T
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
        was = before.log[at, LogColumn.Y]
        came = ~np.isnan(y) & (y != was)
        self.came = at[came], y[came]
        value = np.where(came, runner.outcomes(y, runner.units(low, high), self.options.clip), value)
        return fresh.after(OpenRows(at, time, cutoff, due, value, came | ~np.isnan(was), point, low, high))

    # --- the run
    def play(self, pool: RunnerPool, stop: Stop) -> None:
        """Run the events."""
        before, rows, events = self.before, self.open_rows, self.events.astype(np.int64)
        runner, new = pool.between(*self.between), slice(self.first_new, None)
        given, features = self.batch.given(self.new_rows()), None
        if self.batch.features is not None:
            features = self.batch.features(self.new_rows())
        forecasts = runner.new(given, self.low[new], self.high[new], features)
        experts = runner.experts(forecasts, rows.point[self.pending :], self.spreads)
        priors = self.priors if len(self.priors) else experts
        game = None if before is None else before.game
        self.run = runner.resume(game, forecasts, rows.value, events, experts, priors, self.seed)
        self.run.play(events, stop)
        self.log = self._new_log(runner, forecasts)
        settled, dropped = (events[events[:, 0] == kind, 1] for kind in (SETTLE, DROP))
        self._settle(settled)
        self.log[rows.at[dropped], LogColumn.STATUS] = OUTSIDE
        self.log[rows.at[self.lost], LogColumn.STATUS] = Status.LOST
        self.log[rows.at[self.given_up], LogColumn.STATUS] = Status.GIVEN_UP
        self._look_ahead()

    def _new_log(self, runner: Runner, forecasts: NewForecasts) -> Array:
        """The remembered rows, with the outcomes that came, then the new ones with their answers."""
        before, m = self.before, len(forecasts.given)
        log = np.full((self.begin + m, LogColumn.ANSWERS + len(self.options.shape.outputs)), np.nan)
        if before is not None:
            log[: self.begin] = before.log
            # the status that an outcome had before it changed no longer counts
            log[self.came[0], LogColumn.Y], log[self.came[0], LogColumn.STATUS] = self.came[1], PENDING
        fresh = log[self.begin :]
        fresh[:, LogColumn.SERIAL] = self.played - m + np.arange(m)
        fresh[:, LogColumn.Y] = self.y[self.first_new :]
        fresh[:, LogColumn.STATUS] = PENDING
        fresh[:, LogColumn.HOLDS : LogColumn.MISCALIBRATION] = self.run.outputs.round_log[:, HOLDS : PROMISED + 1]
        fresh[:, LogColumn.ANSWERS :] = runner.answers(self.run, forecasts)
        return log

    def _settle(self, entries: NDArray[np.int64]) -> None:
        at = self.open_rows.at[entries]
        self.log[at, LogColumn.STATUS] = OK
        self.log[at, LogColumn.MISCALIBRATION] = self.run.outputs.settled[entries]

    def _look_ahead(self) -> None:
        """Find the miscalibration after outcomes that are known, but that no forecast could know yet.

        They are settled as they will be, and then the recalibrator is put back to where it was.
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

    # --- results
    def write(self, result: StreamResult) -> None:
        """Write the answers and the status of each row of the frame."""
        seen = self.old >= 0
        log = self.before.log if self.idle and self.before is not None else self.log
        answered = (np.arange(self.count) >= self.first_new) | seen
        places = np.where(seen, self.old, len(log) - self.count + np.arange(self.count))
        log = log[places[answered]]
        rows = np.arange(self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else self.rows
        result.answers[rows[answered]] = log[:, LogColumn.ANSWERS :]
        result.certificate[rows[answered]] = log[:, LogColumn.HOLDS : LogColumn.ANSWERS]
        status = np.full(self.count, LATE, dtype=np.uint8)
        status[answered] = log[:, LogColumn.STATUS]
        if self.before is not None:
            was = np.full(self.count, PENDING)
            was[seen] = self.before.log[self.old[seen], LogColumn.STATUS]
            status[(was == OK) & (status == OK)] = Status.SEEN
        status[self.corrected] = Status.CORRECTED
        # no row says by its status whether later outcomes came
        status[(status == Status.GIVEN_UP) & np.isnan(self.y)] = PENDING
        result.status[rows] = status

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
        columns = (rows.point, rows.value, rows.low, rows.high, self.steps, self.settled)
        pending = np.column_stack((serial, *(column[entries] for column in columns)))
        state = self.run.state()
        return Stream(state, pending, stamps[keep], self.log[keep], self.played, self.committee, self.memos)
