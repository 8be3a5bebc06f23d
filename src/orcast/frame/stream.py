"""Streams of a model: one series at one horizon each, from its state to the next.

A stream that has begun comes as a `Stream` and goes as a new one; the old one is left as it was, so that the caller can
still refuse the whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.draws import derived_seed
from orcast.frame.bounds import scale_between
from orcast.frame.experts import ForecastShape, marks_of, rows_with_forecast
from orcast.frame.names import ALARMS, Form, of_model
from orcast.frame.ordering import Before, OpenRows, fill_outcomes, run_order
from orcast.frame.reader import outcomes_of
from orcast.frame.runner import HOLDS, MEAN, NEVER, PROMISED, SD, Inputs, Runner, RunState, Stop, runner_for
from orcast.frame.statuses import STATUS_TEXTS, Status
from orcast.frame.times import check_known
from orcast.kernels.records import DROP, SETTLE
from orcast.monitors import ALARM_TEXTS, kind_on, pit_rows, watcher_for
from orcast.spaces import Binary, Labels, Space

if TYPE_CHECKING:
    from orcast.frame.run import FrameRun

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
    """Columns of the remembered rows; MARK tells a forecast from others, certificate, alarms and answers follow."""

    Y, STATUS, MARK, HOLDS, PROMISED, MISCALIBRATION, ALARM, BASE_ALARM, ANSWERS = range(9)


class PendingColumn:
    """Columns of the pending rows, beside the records of their rounds."""

    # PLACE is that in the log, STEP the index of the time in steps, SETTLED whether the committee used the outcome
    PLACE, POINT, VALUE, LOW, HIGH, STEP, SETTLED = range(7)


PENDING_WIDTH = PendingColumn.SETTLED + 1
NOTHING: Array = np.empty(0)


@dataclass
class Stream:
    """A stream between frames: its recalibrator, its committee, its pending rows, and its last rows."""

    recal: RunState
    pending: Array  # see `PendingColumn`
    stamps: Stamps  # of the last rows: cutoff, time, and when the outcome is known
    log: Array  # see `LogColumn`
    committee: Array  # the stream's numbers in its committee; empty if there is none
    memos: Array  # of the pending rows that are not settled by the committee
    base: Array  # base forecasts of the pending rows
    monitors: list[Array]  # of the recalibrated and of the base forecasts

    @property
    def pending_at(self) -> NDArray[np.intp]:
        """Places of the pending rows in the log."""
        return self.pending[:, PendingColumn.PLACE].astype(np.intp)

    @property
    def pending_times(self) -> Stamps:
        """Times of the pending rows."""
        return np.asarray(self.stamps[self.pending_at, 1])

    @property
    def waiting(self) -> bool:
        """Return whether the committee has still to use an outcome that is known."""
        open_ = self.pending[:, PendingColumn.SETTLED] == 0.0
        return bool(len(self.memos)) and not bool(np.isnan(self.pending[open_, PendingColumn.VALUE]).all())


class ModelRun:
    """One model of a frame: rows in the order of play, one stream after the other, and results by row of the frame."""

    def __init__(self, run: FrameRun, form: Form) -> None:
        self.form, self.outputs = form, form.outputs(run.options.levels if form.ordered else None)
        self.shape = shape = ForecastShape(form, self.outputs)
        before = run.content.models.get(form.model)
        if before is not None and before.shape != str(shape):
            raise ValueError(f"expected the forecasts{of_model(form.model)} of the state, {before.shape}, got {shape}")
        n, streams, times = run.frame.rows, run.streams, run.streams.times
        self.payoff, self.features = run.options.payoff, run.features
        self.clip, self.remember = run.options.outside == "clip", 0 if run.panel is None else run.panel.remember
        self.at_once, self.dated = times.at_once and not times.tied, times.kind.startswith("dates")
        y, due, known = fill_outcomes(
            streams, run.codes, run.keys, outcomes_of(run.frame, run.layout.y, form), form.labels or ()
        )
        check_known(times, due, y)
        self.given = [run.frame.numbers(column) for column in form.columns]
        there = rows_with_forecast(form, self.given)
        self.fill = run.filling(y, due, known)  # for pending rows
        self.marks = None if run.panel is None else marks_of(self.given)
        # in the order of play
        self.rows: NDArray[np.intp] = streams.order
        self.starts: list[int] = streams.starts.tolist()
        in_order = bool((np.diff(self.rows) > 0).all())  # large arrays are not copied if the frame is in order
        shown = times.time if times.events is None else times.events
        stamps = {id(each): each if in_order else each[self.rows] for each in (shown, times.cutoff, due)}
        self.time, self.cutoff, self.due = (stamps[id(each)] for each in (shown, times.cutoff, due))
        self.there, self.y = (each if in_order else each[self.rows] for each in (there, y))
        # of streams
        series = streams.series
        self.keys = [(run.keys[i], horizon) for i, horizon in zip(series.tolist(), streams.horizons, strict=True)]
        self.streams: list[Stream | None] = [None if before is None else before.streams.get(key) for key in self.keys]
        self.by_row = run.bounds.by_row and form.ordered
        self.low = self.high = np.broadcast_to(0.0, n)
        self.space: Space = Labels(shape.labels) if shape.labels else Binary()
        if form.ordered:
            self.space, sides = run.bounds.space, (run.bounds.low, run.bounds.high)
            self.low, self.high = (side[self.rows] if self.by_row else side for side in sides)
        # results; every row with an answer is written
        self.out, self.certificate = [np.empty(n) for _ in shape.outputs], [np.empty(n) for _ in range(3)]
        self.alarms = [np.zeros(n, dtype=np.uint8) for _ in ALARMS]
        self.monitored = kind_on(self.space)
        self.status, self.changed = np.full(n, Status.NO_FORECAST, dtype=np.uint8), np.zeros(n, dtype=bool)
        self.unused: list[float] = []  # outcomes outside the bounds of rows of earlier frames
        self.local = threading.local()

    def runner(self) -> Runner:
        """Return this thread's runner."""
        return runner_for(self.space, self.payoff, self.local)

    def units(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Shift and scale of rows with bounds: y = shift + scale * played."""
        if self.shape.ordered:
            return scale_between(low, high, self.by_row)
        return np.zeros(len(low)), np.ones(len(low))

    def forecasts(self, rows: NDArray[np.intp]) -> Array:
        """Forecasts of rows of the frame."""
        return np.column_stack([column[rows] for column in self.given])

    def prepared(self, stop: Stop = NEVER) -> list[StreamRun]:
        """Match the rows of all streams with those seen before, and put their events in order."""
        runs = []
        for number in range(len(self.keys)):
            stop.check()
            runs.append(StreamRun(self, number))
        return runs

    def certificate_columns(self) -> dict[str, NDArray[Any]]:
        """The columns beside the forecasts, by name; a certificate is -1 where there is none."""
        holds, promised, miscalibration = self.certificate
        values = (np.where(np.isnan(holds), -1, holds).astype(np.int8), promised, miscalibration)
        found: dict[str, NDArray[Any]]
        found = dict(zip(self.form.certificate.values(), (*values, STATUS_TEXTS[self.status]), strict=True))
        texts = ALARM_TEXTS[self.monitored]
        return found | {name: texts[codes] for name, codes in zip(self.form.alarms, self.alarms, strict=False)}


def run_streams(runs: list[StreamRun], stop: Stop = NEVER) -> None:
    """Run streams whose committees were run; each is taken out of the list, so that its arrays are freed."""
    while runs:
        stop.check()
        run = runs.pop()
        if not run.idle:
            run.run_rounds(stop)
            run.model.streams[run.number] = run.stream() if run.model.remember else None
        run.write()


class StreamRun:
    """One stream of a model."""

    def __init__(self, model: ModelRun, number: int) -> None:
        self.model, self.number, self.key, self.before = model, number, model.keys[number], model.streams[number]
        start, stop = model.starts[number : number + 2]
        there = model.there[start:stop]
        own: Any = slice(start, stop) if there.all() else start + np.flatnonzero(there)
        self.rows: NDArray[np.intp] = model.rows[own]
        self.count = int(there.sum())
        self.time, self.cutoff, self.due, self.y = (
            each[own] for each in (model.time, model.cutoff, model.due, model.y)
        )
        self.low, self.high = model.low[own], model.high[own]
        self._match()
        self.new = self.count - self.first_new
        # the committee fills these, spreads for points, and the steps of open rows; else the prior is the base forecast
        self.committee = self.priors = self.spreads = NOTHING
        self.memos: Array = np.empty((0, 0))
        self.idle = self._is_idle()
        self.log = np.empty((0, 0)) if self.before is None else self.before.log
        self.begin = len(self.log)
        self.open_rows, self.events = self._open_rows(model.runner()), np.empty((0, 2), dtype=np.int32)
        if not self.idle:
            self._arrange()

    # --- rows that were seen before
    def _match(self) -> None:
        """Find the rows that the stream remembers, and the first new one."""
        n, before = self.count, self.before
        self.old, self.first_new, self.corrected = np.full(n, -1, dtype=np.intp), 0, np.zeros(n, dtype=bool)
        if before is None or not len(before.stamps):
            return
        cutoff, time, _ = before.stamps[-1]
        new = (self.cutoff > cutoff) | ((self.cutoff == cutoff) & (self.time > time))
        self.first_new = int(new.argmax()) if new.any() else n
        if self.first_new:
            seen = slice(0, self.first_new)
            places = {key: i for i, key in enumerate(zip(*before.stamps[:, :2].T.tolist(), strict=True))}
            keys = zip(self.cutoff[seen].tolist(), self.time[seen].tolist(), strict=True)
            self.old[seen] = old = [places.get(key, -1) for key in keys]
            found, log, now, rows = self.old[seen] >= 0, before.log[old], self.y[seen], self.rows[seen]
            was = log[:, LogColumn.Y]
            self.corrected[seen] = found & ~np.isnan(was) & ~np.isnan(now) & (was != now)
            if self.model.marks is not None:
                self.model.changed[rows] = found & (self.model.marks[rows] != log[:, LogColumn.MARK])

    def _is_idle(self) -> bool:
        """True if no forecast is to be issued and no outcome to be settled."""
        if self.before is None or self.new or self.before.waiting:
            return False
        brought = self.model.fill is not None or bool((~np.isnan(self.y[self.old >= 0])).any())
        return not (brought and len(self.before.pending))

    # --- the order of events
    def _arrange(self) -> None:
        """Put the events in order: each new row after the outcomes that it could know."""
        rows, before = self.open_rows, self.before
        events, self.evicted, self.expired = run_order(
            rows,
            Before() if before is None else before.recal.before(),
            at_once=self.model.at_once,
            most=MAX_PENDING,
        )
        # many streams are held at once
        self.events = events.astype(np.int32)

    @property
    def new_rows(self) -> NDArray[np.intp]:
        """Rows of the frame with new forecasts."""
        return np.asarray(self.rows[self.first_new :])

    def _open_rows(self, runner: Runner) -> OpenRows:
        """All rows that are open, with the outcomes that have come."""
        new, m = slice(self.first_new, None), self.new
        low, high, y, rows = self.low[new], self.high[new], self.y[new], self.new_rows
        shift, scale = self.model.units(low, high)
        points = np.broadcast_to(np.nan, m)
        if self.model.shape.kind == "point":
            points = (self.model.given[0][rows] - shift) / scale
        fresh = OpenRows(
            *(np.arange(self.begin, self.begin + m, dtype=np.int32), rows.astype(np.int32)),
            *(self.time[new], self.cutoff[new], self.due[new]),
            *(runner.outcomes(y, shift, scale, self.model.clip), ~np.isnan(y), points, low, high),
            *(np.zeros(m, dtype=np.int64), np.zeros(m, dtype=bool)),
        )
        self.came: tuple[Any, Any] = (np.empty(0, dtype=np.intp), np.empty(0))
        if self.idle or self.before is None or not len(self.before.pending):
            return fresh
        return OpenRows.joined((self._pending_rows(self.before, runner), fresh))

    def _pending_rows(self, before: Stream, runner: Runner) -> OpenRows:
        """Rows that are pending from before, with the outcomes that have come."""
        _, point, value, low, high, step, settled = before.pending.T
        at, there = before.pending_at, self.old >= 0
        y, due = np.full(len(before.log), np.nan), before.stamps[:, 2].copy()
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
        self.model.unused += y[came & np.isnan(value) & ~np.isin(at, self.old)].tolist()
        stamps, known, none = (time, cutoff, due), came | ~np.isnan(was), np.full(len(at), -1, dtype=np.int32)
        return OpenRows(at, none, *stamps, value, known, point, low, high, step.astype(np.int64), settled > 0.0)

    # --- the run
    def run_rounds(self, stop: Stop = NEVER) -> None:
        """Run the events."""
        rows, events, model = self.open_rows, self.events.astype(np.int64), self.model
        runner, new = model.runner(), self.new_rows
        given, features = model.forecasts(new), None
        if model.features is not None:
            features = [{name: values[i] for name, values in model.features.items()} for i in new.tolist()]
        shift, scale = model.units(self.low[self.first_new :], self.high[self.first_new :])
        experts = np.ascontiguousarray(model.shape.expert_rows(runner.space, given, shift, scale, self.spreads))
        priors = self.priors if len(self.priors) else experts
        sets = model.shape.level_sets(given, bool(len(scale) and scale[0] < 0.0))
        inputs = Inputs(np.ascontiguousarray(rows.value), experts, priors, *sets)
        self.run = runner.resume(None if self.before is None else self.before.recal, inputs, features, events)
        self.run.run_rounds(events, stop)
        self._extend_log(self._answers(inputs, given, shift, scale))
        self._watch(events, given)
        settled, dropped = (events[events[:, 0] == kind, 1] for kind in (SETTLE, DROP))
        self._settle(settled)
        for entries, status in ((dropped, OUTSIDE), (self.evicted, Status.EVICTED), (self.expired, Status.EXPIRED)):
            self.log[rows.at[entries], LogColumn.STATUS] = status
        self._look_ahead()

    def _answers(self, inputs: Inputs, given: Array, shift: Array, scale: Array) -> Array:
        """The columns that come out, a row for each new forecast."""
        shape, quantiles = self.model.shape, self.run.quantiles
        if not shape.ordered:
            return quantiles
        answers, moments = np.empty((len(given), len(shape.outputs))), self.run.round_log[:, MEAN : SD + 1]
        for number, width in enumerate(inputs.widths.tolist()):
            at: Any = slice(None) if len(inputs.widths) == 1 else np.flatnonzero(inputs.level_set == number)
            answers[at] = shape.answers(quantiles[at, :width], moments[at], shift[at], scale[at], given[at])
        if self.model.by_row:
            # rounding does not lead out
            inside = [what != "sd" for what, _, _ in shape.outputs]
            low, high = (side[self.first_new :, None] for side in (self.low, self.high))
            answers[:, inside] = np.clip(answers[:, inside], low, high)
        return answers

    def _extend_log(self, answers: Array) -> None:
        """Put the outcomes that came, and the new rows with their answers, into the remembered rows."""
        fresh = np.full((self.new, LogColumn.ANSWERS + answers.shape[1]), np.nan)
        fresh[:, LogColumn.Y] = self.y[self.first_new :]
        fresh[:, LogColumn.STATUS] = PENDING
        if self.model.marks is not None:
            fresh[:, LogColumn.MARK] = self.model.marks[self.new_rows]
        fresh[:, LogColumn.HOLDS : LogColumn.MISCALIBRATION] = self.run.round_log[:, HOLDS : PROMISED + 1]
        fresh[:, [LogColumn.ALARM, LogColumn.BASE_ALARM]] = 0.0
        fresh[:, LogColumn.ANSWERS :] = answers
        self.log = fresh if self.before is None else np.concatenate((self.before.log, fresh))
        # the status that an outcome had before it changed no longer counts
        self.log[self.came[0], LogColumn.Y], self.log[self.came[0], LogColumn.STATUS] = self.came[1], PENDING

    def _watch(self, events: NDArray[np.int64], given: Array) -> None:
        """Find the alarms that stood when each new forecast was issued."""
        model, before, at = self.model, self.before, self.open_rows.at
        count, since, states = 0.0, np.zeros(len(at)), [NOTHING, NOTHING]
        self.base, self.monitors = given, []
        if before is not None:
            self.base, states = np.concatenate((before.base, given)), before.monitors
            count, since[: len(before.base)] = before.recal.rounds.counters[0], before.recal.rounds.issued - 1.0
        log = self.log[at]
        y, sides = log[:, LogColumn.Y], model.shape.monitored(log[:, LogColumn.ANSWERS :], self.base)
        seed = derived_seed(0, model.form.model, *self.key)
        new = at[len(at) - self.new :]
        for column, forecasts, state in zip((LogColumn.ALARM, LogColumn.BASE_ALARM), sides, states, strict=False):
            codes, pits = np.zeros(len(at)), pit_rows(*forecasts, y)
            watcher = watcher_for(model.monitored, seed)
            if state.size:
                watcher.take(state.copy())
            watcher.follow_events(events.reshape(-1), pits.reshape(-1), since, count, codes)
            self.monitors.append(watcher.state)
            self.log[new, column] = codes[len(at) - self.new :]

    def _settle(self, entries: NDArray[np.int64]) -> None:
        at = self.open_rows.at[entries]
        self.log[at, LogColumn.STATUS] = OK
        self.log[at, LogColumn.MISCALIBRATION] = self.run.settled[entries]

    def _look_ahead(self) -> None:
        """Find the miscalibration after outcomes that are known, but that no forecast could know yet."""
        rows, self.pending = self.open_rows, self.run.pending
        # they are settled as they will be, but the state is the one before
        self.recal = self.run.state() if self.model.remember else None
        held = self.run.pending[rows.known[self.run.pending]]
        if not (self.log[rows.at[held], LogColumn.STATUS] == PENDING).any():
            return
        held = held[np.lexsort((held, rows.cutoff[held], rows.time[held], rows.due[held]))]
        good = ~np.isnan(rows.value[held])
        self.log[rows.at[held[~good]], LogColumn.STATUS] = OUTSIDE
        held = held[good]
        self.run.run_rounds(np.column_stack((np.full(len(held), SETTLE), held)))
        self._settle(held)

    # --- results
    def write(self) -> None:
        """Write the answers and the status of each row of the frame."""
        model, seen = self.model, self.old >= 0
        answered = (np.arange(self.count) >= self.first_new) | seen
        places = np.where(seen, self.old, len(self.log) - self.count + np.arange(self.count))
        log = self.log[places[answered]]
        columns: list[NDArray[Any]] = [*model.certificate, *model.alarms, *model.out]
        for i, column in enumerate(columns):
            column[self.rows[answered]] = log[:, LogColumn.HOLDS + i]
        status = np.full(self.count, LATE, dtype=np.uint8)
        status[answered] = log[:, LogColumn.STATUS]
        if self.before is not None:
            was = np.full(self.count, PENDING)
            was[seen] = self.before.log[self.old[seen], LogColumn.STATUS]
            status[(was == OK) & (status == OK)] = Status.ALREADY_ANSWERED
        status[self.corrected] = Status.CORRECTED
        # a status must not reveal that later outcomes came
        status[(status == Status.EXPIRED) & np.isnan(self.y)] = PENDING
        model.status[self.rows] = status

    def stream(self) -> Stream:
        """The stream after the frame."""
        new = slice(self.first_new, None)
        stamps = np.column_stack((self.cutoff[new], self.time[new], self.due[new]))
        if self.before is not None:
            stamps = np.concatenate((self.before.stamps, stamps))
        rows, entries = self.open_rows, self.pending
        stamps[rows.at[entries], 2] = rows.due[entries]
        keep = np.zeros(len(self.log), dtype=bool)
        keep[-self.model.remember :] = True
        keep[rows.at[entries]] = True
        place = np.cumsum(keep)[rows.at[entries]] - 1
        columns = (rows.point, rows.value, rows.low, rows.high, rows.step, rows.settled)
        pending = np.column_stack((place, *(column[entries] for column in columns)))
        kept = stamps[keep], self.log[keep]
        assert self.recal is not None
        return Stream(self.recal, pending, *kept, self.committee, self.memos, self.base[entries], self.monitors)
