"""Streams of a model: one series at one horizon each, from its state to the next.

A stream that has begun comes as a `Stream` and goes as a new one; the old one is left as it was, so that the caller can
still refuse the whole.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.coins import derived_seed
from orcast.frame.bounds import scale_between
from orcast.frame.experts import ForecastShape
from orcast.frame.names import Form, Output
from orcast.frame.ordering import Before, Entries, order_of_play
from orcast.frame.runner import HOLDS, MEAN, PROMISED, SD, Inputs, Runner, RunState, events_of, runner_for
from orcast.frame.statuses import STATUS_TEXTS, Status
from orcast.frame.workers import NEVER, Stop
from orcast.kernels.records import DROP, SETTLE
from orcast.payoffs import Payoff

Array = NDArray[np.float64]
Stamps = NDArray[Any]
StreamKey = tuple[Hashable, Hashable]  # series and horizon
# Fills in outcomes of a series at some times, and when they were known.
Filling = Callable[[Hashable, Stamps, Array, Stamps], tuple[Array, Stamps]]

# Rows of a stream that may be pending.
MAX_PENDING = 1000
# As plain numbers, no members of an enum: with these numpy takes several times as long, and streams may be short.
OK, PENDING, OUTSIDE, LATE = int(Status.OK), int(Status.PENDING), int(Status.OUTSIDE), int(Status.LATE)


class LogColumn:
    """Columns of the remembered rows; MARK tells a forecast from others, the certificate and the answers follow."""

    SERIAL, Y, STATUS, MARK, HOLDS, PROMISED, MISCALIBRATION, ANSWERS = range(8)


class PendingColumn:
    """Columns of the pending rows, beside the records of their rounds.

    STEP is the index of the row's time in steps of its series; SETTLED whether the committee has used the outcome.
    """

    SERIAL, POINT, VALUE, LOW, HIGH, STEP, SETTLED = range(7)


PENDING_WIDTH = PendingColumn.SETTLED + 1


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
    def pending_at(self) -> NDArray[np.intp]:
        """Places of the pending rows in the log."""
        order = np.argsort(self.log[:, LogColumn.SERIAL])
        serials = self.log[order, LogColumn.SERIAL]
        return order[np.searchsorted(serials, self.pending[:, PendingColumn.SERIAL])]

    @property
    def pending_times(self) -> Stamps:
        """Times of the pending rows."""
        return np.asarray(self.stamps[self.pending_at, 1])

    @property
    def waiting(self) -> bool:
        """Return whether the committee has still to use an outcome that is known."""
        open_ = self.pending[:, PendingColumn.SETTLED] == 0.0
        return bool(len(self.memos)) and not bool(np.isnan(self.pending[open_, PendingColumn.VALUE]).all())


@dataclass
class ModelRun:
    """One model of a frame: options, rows in the order of play, and results.

    Arrays in the order of play hold one stream after the other; the others are by row of the frame.
    """

    form: Form
    outputs: tuple[Output, ...]
    shape: ForecastShape
    payoff: Payoff | None
    by_row: bool  # whether bounds are those of rows
    at_once: bool  # whether each outcome is known before the next forecast
    dated: bool  # whether times are those of a calendar
    clip: bool
    remember: int  # rows of each stream; 0 if no state is wanted
    seed: int | None
    keys: list[StreamKey]
    starts: list[int]  # of the streams in the order of play, and the end
    rows: NDArray[np.intp]  # of the frame, in the order of play
    low: Array  # in the order of play if by row, else of streams
    high: Array
    time: Stamps  # in the order of play, as the next four
    cutoff: Stamps
    due: Stamps  # when the outcome is known
    there: NDArray[np.bool_]
    y: Array
    given: list[Array]  # forecasts by row of the frame, as all that follow
    features: dict[Any, list[Any]] | None
    fill: Filling | None  # for pending rows
    marks: Array | None  # of the forecasts, if there is a state
    streams: list[Stream | None]
    out: list[Array]
    certificate: list[Array]
    status: NDArray[np.uint8]
    changed: NDArray[np.bool_]  # True where the forecast is not the one that was answered
    local: threading.local = field(default_factory=threading.local)

    def runner(self, low: float, high: float) -> Runner:
        """Return this thread's runner for outcomes between two bounds."""
        return runner_for(self.shape, self.payoff, low, high, self.by_row, self.local)

    def units(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Shift and scale of rows with bounds: y = shift + scale * played."""
        if self.shape.ordered:
            return scale_between(low, high, self.by_row)
        return np.zeros(len(low)), np.ones(len(low))

    def forecasts(self, rows: NDArray[np.intp]) -> Array:
        """Forecasts of rows of the frame."""
        return np.column_stack([column[rows] for column in self.given])

    def prepared(self, first: int, last: int, stop: Stop = NEVER) -> list[StreamRun]:
        """Match the rows of streams with those seen before, and put their events in order."""
        runs = []
        for number in range(first, last):
            stop.check()
            runs.append(StreamRun(self, number))
        return runs

    def certificate_columns(self) -> dict[str, NDArray[Any]]:
        """The columns beside the forecasts, by name; a certificate is -1 where there is none."""
        holds, promised, miscalibration = self.certificate
        values = (np.where(np.isnan(holds), -1, holds).astype(np.int8), promised, miscalibration)
        return dict(zip(self.form.certificate.values(), (*values, STATUS_TEXTS[self.status]), strict=True))


def play_streams(runs: list[StreamRun], stop: Stop = NEVER) -> None:
    """Run streams whose committees were run; each is taken out of the list, so that its arrays are freed."""
    while runs:
        stop.check()
        run = runs.pop()
        if run.idle:
            run.model.streams[run.number] = run.before
        else:
            run.play(stop)
            run.model.streams[run.number] = run.stream() if run.model.remember else None
        run.write()


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
    """One stream of a model.

    The committee fills `priors` and, for point forecasts, `spreads` (a row for each new forecast), `steps` and
    `settled` (of all entries), `committee` and `memos`; without one the prior is the base forecast.
    """

    def __init__(self, model: ModelRun, number: int) -> None:
        self.model, self.number, self.key, self.before = model, number, model.keys[number], model.streams[number]
        start, stop = model.starts[number : number + 2]
        there = model.there[start:stop]
        self.rows: Any = slice(start, stop) if there.all() else start + np.flatnonzero(there)
        self.time, self.cutoff, self.due = (each[self.rows] for each in (model.time, model.cutoff, model.due))
        self.y, self.count = model.y[self.rows], int(there.sum())
        if model.by_row:
            self.low, self.high = model.low[self.rows], model.high[self.rows]
        else:
            self.low, self.high = (np.broadcast_to(side[number], self.count) for side in (model.low, model.high))
        low, high = -math.inf, math.inf
        if start < stop:
            low, high = (float(side[start if model.by_row else number]) for side in (model.low, model.high))
        elif self.before is not None and len(self.before.pending):
            low, high = self.before.pending[0, [PendingColumn.LOW, PendingColumn.HIGH]].tolist()
        self.between = low, high
        self._match()
        self.idle = self._is_idle()
        self.committee, self.memos, self.priors, self.spreads = np.empty(0), NO_ROWS, NO_ROWS, np.empty(0)
        self.events = np.empty((0, 2), dtype=np.int32)
        stamps, numbers = [each[:0] for each in (self.time, self.cutoff, self.due)], [np.empty(0)] * 5
        self.open_rows = OpenRows(np.empty(0, dtype=np.int32), *stamps, *numbers)
        if not self.idle:
            self._arrange(model.runner(*self.between))

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
            if self.model.marks is not None:
                rows, marks = self.model.rows[self.rows][seen], before.log[self.old[seen], LogColumn.MARK]
                self.model.changed[rows] = (self.old[seen] >= 0) & (self.model.marks[rows] != marks)

    def _is_idle(self) -> bool:
        """Whether there is nothing to play and nothing to settle."""
        if self.before is None or self.first_new < self.count or self.before.waiting:
            return False
        brought = self.model.fill is not None or bool((~np.isnan(self.y[self.old >= 0])).any())
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
            at_once=self.model.at_once,
            most=MAX_PENDING,
        )
        # many streams are held at once
        self.events = events.astype(np.int32)
        self.steps: NDArray[np.int64] = np.broadcast_to(np.int64(0), len(rows.time))
        self.settled: NDArray[np.bool_] = np.broadcast_to(np.bool_(False), len(rows.time))

    @property
    def pending(self) -> int:
        """Number of entries that are pending from before."""
        return 0 if self.before is None or self.idle else len(self.before.pending)

    def new_rows(self) -> NDArray[np.intp]:
        """Rows of the frame with new forecasts."""
        rows: NDArray[np.intp] = self.model.rows[self.rows][self.first_new :]
        return rows

    def _open_rows(self, runner: Runner) -> OpenRows:
        """All rows that are open, with the outcomes that have come."""
        new, before = slice(self.first_new, None), self.before
        low, high, y = self.low[new], self.high[new], self.y[new]
        shift, scale = self.model.units(low, high)
        value = runner.outcomes(y, shift, scale, self.model.clip)
        points = np.broadcast_to(np.nan, len(y))
        if self.model.shape.kind == "point":
            points = (self.model.given[0][self.new_rows()] - shift) / scale
        at: NDArray[Any] = np.arange(self.begin, self.begin + len(y), dtype=np.int32)
        stamps = self.time[new], self.cutoff[new], self.due[new]
        fresh = OpenRows(at, *stamps, value, ~np.isnan(y), points, low, high)
        self.came: tuple[Any, Any] = (np.empty(0, dtype=np.intp), np.empty(0))
        if before is None or not len(before.pending):
            return fresh
        _, point, value, low, high, _, _ = before.pending.T
        at = before.pending_at
        y, due = np.full(len(before.log), np.nan), before.stamps[:, 2].copy()
        there = self.old >= 0
        y[self.old[there]] = self.y[there]
        due[self.old[there & ~np.isnan(self.y)]] = self.due[there & ~np.isnan(self.y)]
        y, due = y[at], due[at]
        cutoff, time, _ = before.stamps[at].T
        if self.model.fill is not None:
            y, due = self.model.fill(self.key[0], time, y, due)
        was = before.log[at, LogColumn.Y]
        came = ~np.isnan(y) & (y != was)
        self.came = at[came], y[came]
        value = np.where(came, runner.outcomes(y, *self.model.units(low, high), self.model.clip), value)
        return fresh.after(OpenRows(at, time, cutoff, due, value, came | ~np.isnan(was), point, low, high))

    # --- the run
    def play(self, stop: Stop = NEVER) -> None:
        """Run the events."""
        rows, events, model = self.open_rows, self.events.astype(np.int64), self.model
        runner, new = model.runner(*self.between), self.new_rows()
        given, features, seed = model.forecasts(new), None, None
        if model.features is not None:
            features = [{name: values[i] for name, values in model.features.items()} for i in new.tolist()]
        if model.seed is not None and model.shape.ordered:
            seed = derived_seed(model.seed, model.form.model, *self.key)
        shift, scale = model.units(self.low[self.first_new :], self.high[self.first_new :])
        experts = np.ascontiguousarray(model.shape.expert_rows(runner.space, given, shift, scale, self.spreads))
        priors = self.priors if len(self.priors) else experts
        sets = model.shape.level_sets(given, bool(len(scale) and scale[0] < 0.0))
        inputs = Inputs(np.ascontiguousarray(rows.value), experts, priors, *sets)
        self.run = runner.resume(None if self.before is None else self.before.game, inputs, features, events, seed)
        self.run.play(events, stop)
        self.log = self._new_log(self._answers(inputs, given, shift, scale))
        settled, dropped = (events[events[:, 0] == kind, 1] for kind in (SETTLE, DROP))
        self._settle(settled)
        self.log[rows.at[dropped], LogColumn.STATUS] = OUTSIDE
        self.log[rows.at[self.lost], LogColumn.STATUS] = Status.LOST
        self.log[rows.at[self.given_up], LogColumn.STATUS] = Status.GIVEN_UP
        self._look_ahead()

    def _answers(self, inputs: Inputs, given: Array, shift: Array, scale: Array) -> Array:
        """The columns that come out, a row for each new forecast."""
        shape, outputs = self.model.shape, self.run.outputs
        if not shape.ordered:
            return outputs.quantiles
        answers, moments = np.empty((len(given), len(shape.outputs))), outputs.round_log[:, MEAN : SD + 1]
        for number, width in enumerate(inputs.widths.tolist()):
            at: Any = slice(None) if len(inputs.widths) == 1 else np.flatnonzero(inputs.level_set == number)
            answers[at] = shape.answers(outputs.quantiles[at, :width], moments[at], shift[at], scale[at], given[at])
        if self.model.by_row:
            # rounding does not lead out
            inside = [what != "sd" for what, _, _ in shape.outputs]
            low, high = (side[self.first_new :, None] for side in (self.low, self.high))
            answers[:, inside] = np.clip(answers[:, inside], low, high)
        return answers

    def _new_log(self, answers: Array) -> Array:
        """The remembered rows, with the outcomes that came, then the new ones with their answers."""
        before, m = self.before, len(answers)
        log = np.full((self.begin + m, LogColumn.ANSWERS + answers.shape[1]), np.nan)
        if before is not None:
            log[: self.begin] = before.log
            # the status that an outcome had before it changed no longer counts
            log[self.came[0], LogColumn.Y], log[self.came[0], LogColumn.STATUS] = self.came[1], PENDING
        fresh = log[self.begin :]
        fresh[:, LogColumn.SERIAL] = self.played - m + np.arange(m)
        fresh[:, LogColumn.Y] = self.y[self.first_new :]
        fresh[:, LogColumn.STATUS] = PENDING
        if self.model.marks is not None:
            fresh[:, LogColumn.MARK] = self.model.marks[self.new_rows()]
        fresh[:, LogColumn.HOLDS : LogColumn.MISCALIBRATION] = self.run.outputs.round_log[:, HOLDS : PROMISED + 1]
        fresh[:, LogColumn.ANSWERS :] = answers
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
    def write(self) -> None:
        """Write the answers and the status of each row of the frame."""
        model, seen = self.model, self.old >= 0
        log = self.before.log if self.idle and self.before is not None else self.log
        answered = (np.arange(self.count) >= self.first_new) | seen
        places = np.where(seen, self.old, len(log) - self.count + np.arange(self.count))
        log = log[places[answered]]
        rows = model.rows[self.rows]
        for i, column in enumerate((*model.certificate, *model.out)):
            column[rows[answered]] = log[:, LogColumn.HOLDS + i]
        status = np.full(self.count, LATE, dtype=np.uint8)
        status[answered] = log[:, LogColumn.STATUS]
        if self.before is not None:
            was = np.full(self.count, PENDING)
            was[seen] = self.before.log[self.old[seen], LogColumn.STATUS]
            status[(was == OK) & (status == OK)] = Status.SEEN
        status[self.corrected] = Status.CORRECTED
        # no row says by its status whether later outcomes came
        status[(status == Status.GIVEN_UP) & np.isnan(self.y)] = PENDING
        model.status[rows] = status

    def stream(self) -> Stream:
        """The stream after the frame."""
        new = slice(self.first_new, None)
        stamps = np.column_stack((self.cutoff[new], self.time[new], self.due[new]))
        if self.before is not None:
            stamps = np.concatenate((self.before.stamps, stamps))
        rows, entries = self.open_rows, self.run.pending
        stamps[rows.at[entries], 2] = rows.due[entries]
        keep = np.zeros(len(self.log), dtype=bool)
        keep[-self.model.remember :] = True
        keep[rows.at[entries]] = True
        serial = self.log[rows.at[entries], LogColumn.SERIAL]
        columns = (rows.point, rows.value, rows.low, rows.high, self.steps, self.settled)
        pending = np.column_stack((serial, *(column[entries] for column in columns)))
        state = self.run.state()
        return Stream(state, pending, stamps[keep], self.log[keep], self.played, self.committee, self.memos)
