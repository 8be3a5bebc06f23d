"""One frame: read and checked, run, reported, and written."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.coins import derived_seed, seed_of
from orcast.engine import Committee, Oracle
from orcast.features import feature_names, has_functions, plain_payoff
from orcast.frame.bounds import Bounds, read_bounds
from orcast.frame.experts import ForecastShape, crossing_rows, rows_beyond_doubles, rows_with_forecast
from orcast.frame.frame_groups import FrameGroups, checked_pool
from orcast.frame.names import ColumnLayout, Form, Output, of_model, of_series, rows_text
from orcast.frame.ordering import Streams, arrange, fill_outcomes, seen_dates
from orcast.frame.reader import Codes, Frame, doubts, find_in, label_places
from orcast.frame.runner import RunnerPool
from orcast.frame.state import (
    BY_SERIES,
    ModelStreams,
    PanelContent,
    PanelOptions,
    PanelState,
    bound_to_keep,
)
from orcast.frame.statuses import STATUS_TEXTS, Status
from orcast.frame.stopping import Stop
from orcast.frame.stream import Batch, Stream, StreamOptions, StreamResult, prepare_runs, runners_of
from orcast.frame.times import Timing, check_known, read_row_times
from orcast.frame.workers import Progress, play_all, progress_bar, usable_cores, worker_count
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.persistence import as_saved, oracle_from_plain
from orcast.spaces.base import LARGEST
from orcast.validation import short, warn_user

Array = NDArray[np.float64]

# Threads are started for frames with at least this many forecasts.
SMALL = 2_000
# Rows of a batch, at most: about a second of play.
BATCH = 20_000
# Rows of a stream that may be pending.
MAX_PENDING = 1000


class FrameOptions(NamedTuple):
    """What users give with a frame beside its columns, as they give it."""

    low: Any = None
    high: Any = None
    levels: ArrayLike | None = None
    payoff: Payoff | None = None
    outside: str = "report"
    oracle: Oracle | None = None
    timing: Timing = Timing()
    pool: Any = True
    randomised: Any = None

    def checked(self) -> FrameOptions:
        """These options with sorted levels, or one clear sentence on what is wrong with them."""
        if self.outside not in ("report", "clip", "raise"):
            raise ValueError(f"expected outside='report', 'clip' or 'raise', got {self.outside!r}")
        if self.payoff is not None and not isinstance(self.payoff, Payoff):
            raise TypeError(f"expected a payoff such as QuantileCalibration(), got {short(self.payoff)}")
        if self.oracle is not None and (not hasattr(self.oracle, "bind") or isinstance(self.oracle, type)):
            raise TypeError(f"expected an oracle such as Committee() or Equilibrium(), got {short(self.oracle)}")
        options = self._replace(
            timing=self.timing.checked(), pool=checked_pool(self.pool), randomised=seed_of(self.randomised)
        )
        if self.levels is None:
            return options
        try:
            return options._replace(levels=np.unique(np.asarray(self.levels, dtype=np.float64)).tolist())
        except (TypeError, ValueError):
            raise TypeError(f"expected levels strictly between 0 and 1, got {short(self.levels)}") from None

    def completed(self, content: PanelContent) -> FrameOptions:
        """With what a state began with where something is left out; levels and payoff must be the same."""
        before = content.options
        assert before is not None
        if self.levels is not None and self.levels != before.levels:
            raise ValueError(f"expected the levels that the state began with, {before.levels}, got {self.levels}")
        if before.payoff is None and self.payoff is not None:
            raise ValueError(
                f"expected the payoff that the state began with, the default one, got {short(self.payoff)}"
            )
        payoff = None if before.payoff is None else as_saved(self.payoff, before.payoff, payoff_from_plain, "payoff")
        oracle = self.oracle
        if before.oracle is not None or oracle is not None:
            oracle = as_saved(oracle, before.oracle or Committee().to_plain(), oracle_from_plain, "oracle")
        low, high = self.low, self.high
        if low is None and high is None:
            low, high = (
                {key: pair[side] for key, pair in content.bounds.items()} if given == BY_SERIES else given
                for side, given in enumerate((before.low, before.high))
            )
        timing = self.timing.completed(before.lag, before.issued_every, before.nowcast)
        pool = tuple(before.pool) if isinstance(before.pool, list) else before.pool
        if self.pool is not True and self.pool != pool:
            raise ValueError(f"expected pool= as the state began with it, {before.pool!r}, got {short(self.pool)}")
        seed = before.randomised
        if self.randomised is not None and self.randomised != seed:
            raise ValueError(f"expected randomised= as the state began with it, {seed!r}, got {self.randomised!r}")
        return FrameOptions(low, high, before.levels, payoff, self.outside, oracle, timing, pool, seed)


@dataclass
class ModelRun:
    """One model of a frame: what goes in, and arrays for what comes out."""

    form: Form
    outputs: tuple[Output, ...]
    shape: ForecastShape
    y: Array
    due: NDArray[Any]  # when each outcome is known
    known: Codes  # a row for each outcome of a series and time, in that order
    known_starts: Codes  # where those of each series begin, and the end
    given: list[Array]
    there: NDArray[np.bool_]
    out: list[Array]
    certificate: list[Array]
    status: NDArray[np.uint8]
    streams: list[Stream | None]

    def certificate_columns(self) -> dict[str, NDArray[Any]]:
        """The columns beside the forecasts, by name; a certificate is -1 where there is none."""
        holds, promised, miscalibration = self.certificate
        values = (np.where(np.isnan(holds), -1, holds).astype(np.int8), promised, miscalibration)
        return dict(zip(self.form.certificate.values(), (*values, STATUS_TEXTS[self.status]), strict=True))


class FrameRun:
    """One frame, its columns found: checked against the state if there is one, then played and written."""

    def __init__(
        self,
        frame: Frame,
        layout: ColumnLayout,
        options: FrameOptions,
        panel: PanelState | None = None,
    ) -> None:
        self.frame, self.layout, self.panel, self.stop = frame, layout, panel, Stop()
        self.content = PanelContent() if panel is None else panel.content
        before = self.content.options
        self.clip = options.outside == "clip"
        if before is not None:
            options = options.completed(self.content)
        self.options = options
        if options.randomised is not None and not any(form.ordered for form in layout.forms):
            raise ValueError("expected randomised= for forecasts of quantities, got probabilities")
        self.levels: Any = options.levels
        self.payoff, self.oracle, self.timing = options.payoff, options.oracle, options.timing
        self.codes, self.keys = frame.keys(layout.series)
        self.streams = self._streams()
        self.bounds = self._bounds(options)
        self.groups = FrameGroups(self, options.pool)
        self.low, self.high = self.bounds.of_rows(self.codes)
        self.models = [self._model(form) for form in layout.forms]
        self.features = None if self.payoff is None else self._features(self.payoff)
        if options.outside == "raise":
            self._refuse_outside()

    # --- reading
    def _streams(self) -> Streams:
        layout, content, before = self.layout, self.content, self.content.options
        counted = np.array([content.counted.get(key, 0) for key in self.keys], dtype=np.int64)
        if before is not None and (layout.known is not None) != before.known:
            then, now = ("a column known=" if each else "none" for each in (before.known, not before.known))
            raise ValueError(f"expected {then} to say when outcomes were known, as the state has it, got {now}")
        times = read_row_times(
            self.frame,
            layout,
            self.codes,
            self.keys,
            self.timing,
            counted,
            content.calendar,
            None if before is None else before.at_once,
        )
        if before is not None:
            if times.kind != before.kind:
                raise ValueError(f"expected times as the state has them, {before.kind}, got {times.kind}")
            if (times.at_once, times.ranked) != (before.at_once, before.ranked):
                then, now = ("no cutoffs" if each else "cutoffs" for each in (before.at_once, times.at_once))
                then, now = (then, now) if then != now else ("no horizons", "horizons")
                raise ValueError(f"expected columns of times as the state has them, {then}, got {now}")
        calendar, steps, pooled = content.calendar, content.steps, self.options.pool is True
        events = None if before is None else before.events
        streams = arrange(
            self.frame, times, layout, self.codes, self.keys, calendar, steps, pooled=pooled, events=events
        )
        return streams if times.at_once or before is None else streams.and_empty(self._pending_elsewhere(streams))

    def _pending_elsewhere(self, streams: Streams) -> list[tuple[int, Hashable]]:
        """Streams of the state with pending rows, of series that are in the frame, but none of whose rows are."""
        codes = {key: code for code, key in enumerate(self.keys)}
        here = set(zip(streams.series.tolist(), streams.horizons, strict=True))
        models = [self.content.models[form.model] for form in self.layout.forms if form.model in self.content.models]
        found = {
            (codes[key], horizon)
            for model in models
            for (key, horizon), stream in model.streams.items()
            if key in codes and len(stream.pending)
        }
        return sorted(found - here, key=lambda each: (each[0], str(each[1])))

    def _bounds(self, options: FrameOptions) -> Bounds:
        low, high, before = options.low, options.high, self.content.options
        if (low is not None or high is not None) and all(not form.ordered for form in self.layout.forms):
            raise ValueError(f"expected no bounds for probabilities, got {short(low if high is None else high)}")
        self.bounds_to_keep = low, high
        bounds = read_bounds(low, high, self.frame, self.codes, self.keys)
        lows, highs = bounds.low, bounds.high
        if bounds.by_row:
            # where they change from row to row, 0 and 1 stand for them
            first = np.zeros(len(self.keys), dtype=np.intp)
            first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
            lows = np.where(np.isfinite(lows[first]), 0.0, -math.inf) if len(lows) else np.empty(0)
            highs = np.where(np.isfinite(highs[first]), 1.0, math.inf) if len(highs) else np.empty(0)
        self.series_bounds = dict(zip(self.keys, zip(lows.tolist(), highs.tolist(), strict=True), strict=True))
        for key, now in self.series_bounds.items() if before is not None else ():
            then = self.content.bounds.get(key, now)
            if then != now or (before is not None and bounds.by_row != before.by_row):
                raise ValueError(
                    f"expected the bounds that the state began with{of_series(key)}, {then[0]:g} to {then[1]:g}, "
                    f"got {now[0]:g} to {now[1]:g}"
                )
        return bounds

    def _model(self, form: Form) -> ModelRun:
        outputs = form.outputs(self.levels if form.ordered else None)
        shape = ForecastShape.of(form, outputs)
        before = self.content.models.get(form.model)
        if before is not None and before.shape != shape:
            raise ValueError(
                f"expected the forecasts{of_model(form.model)} as the state knows them, {before.shape}, got {shape}"
            )
        n = self.frame.rows
        y, due, known = self._outcomes(form)
        check_known(self.streams.times, due, y)
        given = [self.frame.numbers(column) for column in form.columns]
        streams: list[Stream | None] = [None] * len(self.streams)
        if before is not None:
            keys = zip(self.streams.series.tolist(), self.streams.horizons, strict=True)
            streams = [before.streams.get((self.keys[code], horizon)) for code, horizon in keys]
        return ModelRun(
            form,
            outputs,
            shape,
            y,
            due,
            known,
            np.searchsorted(self.codes[known], np.arange(len(self.keys) + 1)),
            given,
            rows_with_forecast(form, given),
            # every row is written
            [np.empty(n) for _ in shape.outputs],
            [np.empty(n) for _ in range(3)],
            np.zeros(n, dtype=np.uint8),
            streams,
        )

    def _outcomes(self, form: Form) -> tuple[Array, NDArray[Any], Codes]:
        column = self.layout.y
        if column is None:
            y = np.full(self.frame.rows, np.nan)
        elif form.kind == "labels":
            places = label_places(self.frame.column(column), form.labels or ())
            y = np.where(places >= 0, places.astype(np.float64), np.nan)
        else:
            y = self.frame.numbers(column)
        return fill_outcomes(self.streams, self.codes, self.keys, y, form.labels or ())

    def _features(self, payoff: Payoff) -> dict[Any, list[Any]] | None:
        """The columns that the payoff's contexts look at; all of them, if it has functions."""
        columns = self.frame.reading.columns
        names = feature_names(payoff)
        for name in names:
            if name not in columns:
                raise ValueError(f"expected a column {name!r}, which the payoff looks at, got {short(columns)}")
        if has_functions(payoff):
            names = sorted(name for name in columns if isinstance(name, str))
        return {name: self.frame.column(name).to_list() for name in names} or None

    def _refuse_outside(self) -> None:
        for model in self.models:
            y = model.y
            inside = (y >= self.low) & (y <= self.high) & (np.abs(y) <= LARGEST)
            rows = np.flatnonzero(~np.isnan(y) & ~inside)
            if model.shape.ordered and len(rows):
                raise ValueError(f"expected {self._outside_text(model, int(rows[0]))} (outside='clip' clips it)")

    def _outside_text(self, model: ModelRun, row: int) -> str:
        whose = of_series(self.keys[int(self.codes[row])])
        low, high = float(self.low[row]), float(self.high[row])
        if abs(model.y[row]) > LARGEST:
            return f"outcomes{whose} of at most {LARGEST:g} in size, got {model.y[row]:g} in row {row}"
        if math.isinf(low) or math.isinf(high):
            end = f"most {high:g}" if math.isinf(low) else f"least {low:g}"
            return f"outcomes{whose} of at {end}, got {model.y[row]:g} in row {row}"
        return f"outcomes from {low:g} to {high:g}{whose}, got {model.y[row]:g} in row {row}"

    # --- playing
    def play(self, workers: int | None = 1, progress: bool | Progress = False) -> None:
        """Run all streams of all models."""
        total = self.frame.rows * len(self.models)
        if workers is None:
            workers = usable_cores() if total >= SMALL else 1
        if self.payoff is not None and has_functions(self.payoff):
            workers = 1
        batches = self._batches(workers)
        workers = min(workers, len(batches))
        remember = 0 if self.panel is None else self.panel.remember
        options = [
            StreamOptions(
                number,
                model.shape,
                self.payoff,
                self.oracle,
                self.bounds.by_row and model.shape.ordered,
                self.streams.times.at_once and not self.streams.times.tied,
                remember,
                self.clip,
                MAX_PENDING,
                self.streams.times.kind.startswith("dates"),
            )
            for number, model in enumerate(self.models)
        ]
        made = self._made(options, batches, self._committees_first(workers))
        with progress_bar(progress, total) as add, closing(play_all(made, workers, self.stop)) as results:
            for i, result in results:
                number, first, last = batches[i]
                self._write(self.models[number], first, last, result)
                if result.group is not None:
                    self.groups.add(options[number], result.group)
                add(int(self.streams.starts[last] - self.streams.starts[first]))

    def _committees_first(self, workers: int) -> bool:
        """Return whether the committees run before the streams: in a pool, or so that horizons use threads."""
        return self.groups.pooled or len(self.keys) < 4 * workers

    def _made(
        self, options: Sequence[StreamOptions], batches: Sequence[tuple[int, int, int]], first: bool
    ) -> Iterator[tuple[int, Batch]]:
        """Make the batches; ``first``: the committees of all streams of a model are run before its first batch."""
        ready: deque[Batch] = deque()
        for i, (number, start, end) in enumerate(batches):
            own = options[number]
            if not (first and self.groups.needed(own)):
                yield i, self._batch(own, start, end)
                continue
            if not ready:
                ready.extend(self._batch(own, a, b) for n, a, b in batches if n == number)
                pools: dict[int, RunnerPool] = {}
                for batch in ready:
                    batch.runs = prepare_runs(batch, runners_of(own, pools), self.stop)
                runs = [run for batch in ready for run in batch.runs or () if run is not None]
                found = self.groups.play(own, runs, self.stop)
                if found is not None:
                    self.groups.add(own, found)
                del runs
            yield i, ready.popleft()

    def _batches(self, workers: int) -> list[tuple[int, int, int]]:
        """Model, first stream and last of each batch; without a pool the streams of a series stay together."""
        starts = self.streams.starts
        most = max(min(BATCH, int(starts[-1]) * len(self.models) // (8 * workers)), 1)
        ends = np.arange(len(self.streams) + 1)
        if not self._committees_first(workers):
            ends = np.append(np.flatnonzero(np.diff(self.streams.series, prepend=-1)), len(self.streams))
        at, cuts = starts[ends], [0]
        while cuts[-1] < len(ends) - 1:
            here = cuts[-1]
            there = int(np.searchsorted(at, at[here] + most, side="right")) - 1
            cuts.append(max(there, here + 1))
        pairs = list(pairwise(ends[cuts].tolist()))
        return [(number, a, b) for number in range(len(self.models)) for a, b in pairs]

    def _batch(self, options: StreamOptions, first: int, last: int) -> Batch:
        model, streams = self.models[options.number], self.streams
        starts = streams.starts[first : last + 1]
        rows = streams.order[starts[0] : starts[-1]]
        if not model.shape.ordered:
            low = high = np.zeros(last - first)
        else:
            which = rows if options.by_row else streams.series[first:last]
            low, high = self.bounds.low[which], self.bounds.high[which]
        times, columns = streams.times, self.features
        time, cutoff, due = (times.time if times.events is None else times.events)[rows], times.cutoff, model.due
        pairs = zip(streams.series[first:last].tolist(), streams.horizons[first:last], strict=True)

        def features(at: Codes) -> list[Any]:
            assert columns is not None
            return [{name: values[i] for name, values in columns.items()} for i in at.tolist()]

        return Batch(
            options,
            [(self.keys[code], horizon) for code, horizon in pairs],
            (starts - starts[0]).tolist(),
            rows,
            low,
            high,
            time,
            # at once, all three are the same
            time if cutoff is times.time and times.events is None else cutoff[rows],
            time if due is times.time and times.events is None else due[rows],
            model.there[rows],
            model.y[rows],
            lambda at: np.column_stack([column[at] for column in model.given]),
            model.streams[first:last],
            None if columns is None else features,
            self._outcomes_of_series(model, first, last) if self._shares_outcomes() else None,
            self._seeds(model, first, last),
            group=partial(self.groups.play, options) if self.groups.needed(options) else None,
        )

    def _seeds(self, model: ModelRun, first: int, last: int) -> list[int] | None:
        """The seeds of the streams' coins: each follows from the model, the series and the horizon."""
        seed, streams = self.options.randomised, self.streams
        if seed is None or not model.shape.ordered:
            return None
        pairs = zip(streams.series[first:last].tolist(), streams.horizons[first:last], strict=True)
        return [derived_seed(seed, model.form.model, self.keys[code], horizon) for code, horizon in pairs]

    def _shares_outcomes(self) -> bool:
        """True if a pending row may get its outcome from another row of its time."""
        times = self.streams.times
        return self.panel is not None and not times.at_once and times.events is None

    def _outcomes_of_series(
        self, model: ModelRun, first: int, last: int
    ) -> list[tuple[NDArray[Any], Array, NDArray[Any]]]:
        """Times and outcomes of the streams' series: a pending row may get its outcome from one of another horizon."""
        found: dict[int, tuple[NDArray[Any], Array, NDArray[Any]]] = {}
        for code in np.unique(self.streams.series[first:last]).tolist():
            rows = model.known[model.known_starts[code] : model.known_starts[code + 1]]
            found[code] = self.streams.times.time[rows], model.y[rows], model.due[rows]
        return [found[code] for code in self.streams.series[first:last].tolist()]

    def _write(self, model: ModelRun, first: int, last: int, result: StreamResult) -> None:
        """Put what came of a batch where it belongs."""
        rows = self.streams.order[self.streams.starts[first] : self.streams.starts[last]]
        for i, column in enumerate(model.out):
            column[rows] = result.answers[:, i]
        for i, column in enumerate(model.certificate):
            column[rows] = result.certificate[:, i]
        model.status[rows] = result.status
        model.streams[first:last] = result.streams

    # --- reporting
    def warn(self) -> None:
        """Warn of rows that need a look, each kind once."""
        for sentence in doubts(self.frame, self.layout):
            warn_user(sentence, UserWarning)
        if self.frame.published and self.timing.lag is None:
            warn_user(
                "outcomes count as known at their time, and in their newest version: when they were published (as_of) "
                "is not looked at (lag= says how long it takes)",
                UserWarning,
            )
        if not self.streams.times.together:
            self._warn_of_places()
        for model in self.models:
            for sentence, rows in self._odd_rows(model):
                if len(rows):
                    warn_user(sentence.format(whose=of_model(model.form.model), rows=rows_text(rows)), UserWarning)
        sentences = {
            Status.OUTSIDE: "outcomes that cannot be were not used",
            Status.CORRECTED: "outcomes changed since they were used",
            Status.LATE: "rows come before others that were answered, and have no answer",
            Status.LOST: f"rows were given up: more than {MAX_PENDING} of a game wait for their outcome",
            Status.GIVEN_UP: "outcomes came after they had been given up, and were not used",
        }
        for status, sentence in sentences.items():
            hits = [model.status == status for model in self.models]
            rows = np.flatnonzero(np.logical_or.reduce(hits))
            if not len(rows):
                continue
            more = ""
            if status == Status.OUTSIDE:
                model = next(model for model, hit in zip(self.models, hits, strict=True) if hit[rows[0]])
                more = f": expected {self._outside_text(model, int(rows[0]))}"
            elif status == Status.CORRECTED or (status == Status.GIVEN_UP and self.panel is not None):
                more = " (run the whole frame without the state to use them)"
            warn_user(f"{sentence}, in {rows_text(rows)}{more}", UserWarning)

    def _odd_rows(self, model: ModelRun) -> Iterator[tuple[str, Codes]]:
        """Warnings about the forecasts of a model, and their rows."""
        kind, given = model.shape.kind, model.given
        if kind == "quantiles":
            yield "crossing quantiles{whose} were sorted in {rows}", crossing_rows(given, model.there)
        if kind in ("quantiles", "members"):
            beyond = (np.fmax.reduce(given) < self.low) | (np.fmin.reduce(given) > self.high)
            yield (
                "forecasts{whose} lie wholly outside the bounds in {rows}, and count as the nearest bound",
                np.flatnonzero(model.there & beyond),
            )
        if kind in ("quantiles", "members", "normal"):
            yield (
                "forecasts{whose} are so narrow beside their size that they are beyond doubles in {rows}: subtract an "
                "offset from forecasts and outcomes",
                rows_beyond_doubles(kind, given),
            )

    def _warn_of_places(self) -> None:
        """Series whose times are irregular, so that a missing row moves those after it into other games."""
        streams = self.streams
        placed = {code for code, step in enumerate(streams.steps) if step.kind == "places"}
        pairs = zip(streams.series.tolist(), streams.horizons, strict=True)
        found = sorted({code for code, horizon in pairs if code in placed and horizon != 1})
        if found:
            more = "" if len(found) == 1 else f" and {len(found) - 1:,} more"
            warn_user(
                "times do not go on in regular steps, so that horizons are the first, second, ... time of each cutoff"
                f"{of_series(self.keys[found[0]])}{more} (a column named by horizon= settles it)",
                UserWarning,
            )

    def result(self, replace: bool) -> Any:
        """The frame with what came out."""
        new: dict[Any, NDArray[Any]] = {}
        for model in self.models:
            for out in model.outputs:
                # taken out one by one: large columns are not to be there twice
                values = model.out.pop(0)
                if replace and out.column is not None:
                    new[out.column] = np.where(np.isnan(values), self.frame.numbers(out.column), values)
                else:
                    new[out.name] = values
            new |= model.certificate_columns()
            model.certificate = []
        del values
        return self.frame.with_columns(new, without=self.layout.earlier(self.frame.table.columns))

    # --- the state
    def commit(self, panel: PanelState) -> None:
        """Put the streams into the state; nothing here can be refused."""
        streams, times, content = self.streams, self.streams.times, panel.content
        if content.options is None:
            content.options = PanelOptions(
                times.kind,
                times.at_once,
                times.ranked,
                None if self.payoff is None else plain_payoff(self.payoff),
                self.levels,
                bound_to_keep(self.bounds_to_keep[0]),
                bound_to_keep(self.bounds_to_keep[1]),
                self.bounds.by_row,
                None if self.oracle is None else self.oracle.to_plain(),
                self.layout.known is not None,
                self.timing.lag,
                self.timing.issued_every,
                self.timing.nowcast,
                list(self.options.pool) if isinstance(self.options.pool, tuple) else self.options.pool,
                self.options.randomised,
                times.events is not None,
            )
        content.bounds.update(self.series_bounds)
        for model in self.models:
            kept = content.models.setdefault(model.form.model, ModelStreams(model.shape))
            for code, horizon, stream in zip(streams.series.tolist(), streams.horizons, model.streams, strict=True):
                if stream is not None:
                    kept.streams[self.keys[code], horizon] = stream
        self.groups.commit(content)
        if times.kind == "places":
            for key, count in zip(self.keys, np.bincount(self.codes, minlength=len(self.keys)).tolist(), strict=True):
                content.counted[key] = content.counted.get(key, 0) + count
        if times.ranked or self.timing.issued_every is not None:
            order = np.argsort(self.codes, kind="stable")
            ends = np.searchsorted(self.codes[order], np.arange(len(self.keys) + 1))
            for i, key in enumerate(self.keys):
                rows = order[ends[i] : ends[i + 1]]
                content.calendar[key] = seen_dates(
                    content.calendar.get(key), times.cutoff[rows], times.time[rows], panel.remember
                )
            content.steps.update(zip(self.keys, streams.steps, strict=False))


def play_frame(
    frame: Frame,
    names: Mapping[str, Any],
    options: FrameOptions,
    panel: PanelState | None,
    workers: int | None = None,
    progress: bool | Progress = False,
) -> FrameRun:
    """Detect the columns of a frame, run its streams, and warn; names are those of `find_in`."""
    options, count = options.checked(), worker_count(workers)
    begun = panel is not None and panel.content.options is not None
    run = FrameRun(frame, find_in(frame, pending=begun, **names), options, panel)
    run.play(count, progress)
    run.warn()
    return run
