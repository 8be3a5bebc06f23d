"""Recalibration of a data frame: read, check, run, report and write."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.committee.members import plan_for
from orcast.frame.bounds import read_bounds
from orcast.frame.names import ColumnLayout, of_model, rows_text, show_time
from orcast.frame.options import FrameFacts, FrameOptions
from orcast.frame.ordering import Streams, arrange
from orcast.frame.pools import GroupPass, GroupState
from orcast.frame.reader import Codes, Frame, find_in
from orcast.frame.runner import Stop
from orcast.frame.state import FrameState, ModelStreams, PanelContent, open_state
from orcast.frame.statuses import Status
from orcast.frame.stream import MAX_PENDING, Filling, ModelRun, Stamps, StreamRun, run_streams
from orcast.frame.times import by_series, last_cutoffs, read_row_times
from orcast.inputs import feature_names, has_functions
from orcast.payoffs import Payoff
from orcast.spaces import Line
from orcast.spaces.base import whole
from orcast.validation import short, warn_user

AnyFrame = TypeVar("AnyFrame")
Array = NDArray[np.float64]

# Threads are started for frames with at least this many forecasts.
SMALL = 2_000
# Rows of a batch, at most.
BATCH = 20_000


def recalibrate(
    df: AnyFrame,
    *,
    target: Any = None,
    y: Any = None,
    model: Any = None,
    series: Any = None,
    time: Any = None,
    cutoff: Any = None,
    horizon: Any = None,
    known: Any = None,
    lag: Any = None,
    issued_every: Any = None,
    low: Any = None,
    high: Any = None,
    levels: ArrayLike | None = None,
    payoff: Payoff | None = None,
    state: FrameState | str | os.PathLike[str] | None = None,
    replace: bool = False,
    workers: int | None = None,
    outside: str = "report",
    pool: bool = True,
) -> AnyFrame:
    """Recalibrate the forecasts in a data frame, of one series or of thousands.

    The frame (pandas, polars, or any other of narwhals) has a row for each forecast, with its outcome where that is
    known.  Columns are detected by their names
    (`orcast.frame.names`).  Each model and series has a recalibrator and a guarantee of its own.

    A forecast uses the outcomes that were known when it was issued.  Without issue times **each outcome counts as known
    before the next forecast**.  If forecasts of a whole day were issued together, that is too optimistic: pass
    ``cutoff`` or ``issued_every``.  Then there is a recalibrator for each horizon, counted in steps of the series.

    Parameters
    ----------
    df : data frame
        Forecasts and outcomes.
    target : data frame, optional
        Outcomes, if they are not beside the forecasts; matched by time and all columns of the same name.
    y : str, optional
        Column of outcomes.
    model : str, sequence of str or mapping, optional
        Model, several, or the columns of each, as ``{"tree": {0.05: "lower", 0.95: "upper"}}``.
    series : str or sequence of str, optional
        Column or columns that identify a series.
    time : str, optional
        Column of the time that a row is about.
    cutoff : str, optional
        Column of issue times.
    horizon : str, optional
        Column of steps ahead.
    known : str, optional
        Column of times at which outcomes were known (default: the row's time).
    lag : str, timedelta or int, optional
        Time from a row's time to the publication of its outcome, such as ``"4D"`` or ``"36h"``.
    issued_every : int or str, optional
        Rows issued together, just before the first of them: a number of rows, or ``"daily"``, ``"weekly"``, ``"12h"``
        by the local clock of the column's time zone.
    low, high : number or str, optional
        Bounds of the outcomes: a number or a column.
    levels : sequence of float, optional
        Levels of additional quantiles.
    payoff : Payoff, optional
        Notion of calibration; its features are columns.
    state : FrameState, path, or URL of a store, optional
        State to continue from, written at the end.  Rows without an outcome stay pending.
    replace : bool
        Write the forecasts into the detected columns.
    workers : int, optional
        Number of threads; the results do not depend on it.
    outside : {"report", "clip"}
        Ignore outcomes outside the bounds with a warning, or move them to the bound.
    pool : bool
        Let all series share information.

    Returns
    -------
    data frame
        Frame of the same type with the forecasts of each model M as ``M_orcast`` (``orcast_`` before columns without a
        model) and more columns: ``_holds`` (the certificate), ``_promised`` (the bound on the miscalibration after this
        row), ``_miscalibration`` (its value), ``_status``, ``_alarm`` and ``_base_alarm`` (see Notes).

    Raises
    ------
    TypeError, ValueError
        A column is missing or ambiguous, a value is invalid, or an option differs from that of the state.
    TimeoutError
        Another process uses the file of the state.

    Notes
    -----
    Statuses: "ok"; "pending" (no outcome yet); "no forecast"; "outside" (the outcome is outside the bounds); "expired"
    (the outcome came long after later ones); "already answered" (by an earlier call); "corrected" (the outcome
    changed); "late" (the row precedes answered rows); "evicted" (too many rows were pending).

    Alarms, of the recalibrated and of the base forecasts, are empty while there is none, else a kind of miscalibration
    such as "too narrow", or "changed: too low": by the outcomes of the series and horizon that were known when the row
    was issued.  A calibrated stream is ever called miscalibrated with a probability of at most 5% (`orcast.Monitor`);
    `orcast.monitor` compares many series.  A point forecast has no ``_base_alarm``.

    Examples
    --------
    >>> import orcast as oc, pandas as pd
    >>> frame = pd.DataFrame({
    ...     "unique_id": ["A"] * 3, "ds": ["2024-01-01", "2024-01-02", "2024-01-03"], "y": [5.0, 6.0, None],
    ...     "ETS": [4.0, 5.0, 5.5], "ETS-lo-80": [3.5, 4.5, 5.0], "ETS-hi-80": [4.5, 5.5, 6.0]})
    >>> after = oc.recalibrate(frame, low=0)
    >>> list(after.columns[6:])
    ['ETS_orcast-lo-80', 'ETS_orcast', 'ETS_orcast-hi-80', 'ETS_orcast_holds', 'ETS_orcast_promised',
     'ETS_orcast_miscalibration', 'ETS_orcast_status', 'ETS_orcast_alarm', 'ETS_orcast_base_alarm']
    >>> after["ETS_orcast_status"].tolist()
    ['ok', 'ok', 'pending']
    """
    options = FrameOptions(low, high, levels, payoff, outside, lag, issued_every, pool)
    names = {"y": y, "model": model, "series": series, "time": time}
    names |= {"cutoff": cutoff, "horizon": horizon, "known": known}
    with open_state(state) as panel:
        run = run_frame(Frame(df, target, y=y, time=time), names, options, panel, workers)
        result: AnyFrame = run.result(bool(replace))
        if panel is not None:
            run.commit(panel)
    return result


def usable_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class FrameRun:
    """Run of one frame: checked against the state if there is one, then run and written."""

    def __init__(
        self, frame: Frame, layout: ColumnLayout, options: FrameOptions, panel: FrameState | None = None
    ) -> None:
        self.frame, self.layout, self.panel, self.stop = frame, layout, panel, Stop()
        self.settling = 0  # pending rows whose outcome is in the table of outcomes
        self.content = PanelContent() if panel is None else panel.content
        if self.content.options is not None:
            options = options.continued(self.content.options)
        self.options, self.payoff = options, options.payoff
        self.codes, self.keys = frame.keys(layout.series)
        low, high = options.low, options.high
        if (low is not None or high is not None) and all(not form.ordered for form in layout.forms):
            raise ValueError(f"expected no bounds for probabilities, got {short(low if high is None else high)}")
        self.bounds = read_bounds(low, high, frame)
        self.streams = self._streams()
        if self.content.options is not None:
            self._add_streams()
        self.pooled = options.pool and bool(layout.series)
        self.after: dict[str, GroupState] = {}  # the committees of each model after the frame
        self.features = None if self.payoff is None else self._features(self.payoff)
        self.models = [ModelRun(self, form) for form in layout.forms]

    # --- reading
    def _streams(self) -> Streams:
        layout, content, before, place = self.layout, self.content, self.content.facts, (self.codes, self.keys)
        if layout.time is None and self.panel is not None:
            raise ValueError("expected a column of times beside a state, got none: name it by time=")
        events = None if before is None else False if before.events is None else before.events
        timing = self.options.lag, self.options.issued_every
        times = read_row_times(self.frame, layout, *place, timing, content.calendar)
        known = layout.known is not None
        self.facts = FrameFacts(times.kind, not times.at_once, times.ranked, known)
        if before is not None:
            before.check(self.facts)
        found = arrange(self.frame, times, layout, *place, content.calendar, content.step, events=events)
        if self.panel is not None and found.times.tied and not found.times.event_columns:
            raise ValueError("expected a column that tells events of one time apart beside a state, got none")
        return found

    def _add_streams(self) -> None:
        """Add other streams of the state: of the frame's series, and of others with an outcome to be used."""
        content, place = self.content, {key: code for code, key in enumerate(self.keys)}
        models = [content.models[form.model] for form in self.layout.forms if form.model in content.models]
        streams = [each for model in models for each in model.streams.items()]
        find, pooled = self._outcome_table(), self.options.pool
        for (key, _), stream in streams:
            if key in place:
                continue
            settles = find is not None and not np.isnan(find(key, stream.pending_times)).all()
            if settles or (pooled and stream.waiting):
                place[key] = len(place)
        self.keys = list(place)
        here = set(zip(self.streams.series.tolist(), self.streams.horizons, strict=True))
        found = {(place[key], horizon) for (key, horizon), _ in streams if key in place} - here
        self.streams = self.streams.and_empty(sorted(found, key=lambda each: (each[0], str(each[1]))))

    def _outcome_table(self) -> Callable[[Hashable, Stamps], Array] | None:
        """Outcomes of a series at some times in the table of outcomes, which may settle rows of earlier frames."""
        table, series, times = self.frame.outcomes, self.layout.series, self.streams.times
        if self.panel is None or table is None or times.events is not None or not set(table.keys) <= set(series):
            return None
        places = [series.index(name) for name in table.keys]

        def find(key: Any, at: Stamps) -> Array:
            values = (key,) if len(series) == 1 else key
            own = [values[place] for place in places]
            found = table.of(own, (show_time(times.kind, each) for each in at.tolist()))
            self.settling += int((~np.isnan(found)).sum())
            return found

        return find

    def filling(self, y: Array, due: Stamps, known: Codes) -> Filling | None:
        """Outcomes of pending rows from other rows of their series and time, and from the table of outcomes."""
        times, find = self.streams.times, self._outcome_table()
        shares = self.panel is not None and not times.at_once and times.events is None
        if find is None and not shares:
            return None
        starts = np.searchsorted(self.codes[known], np.arange(len(self.keys) + 1))
        place = {key: code for code, key in enumerate(self.keys)}

        def fill(key: Hashable, time: Stamps, own: Array, own_due: Stamps) -> tuple[Array, Stamps]:
            rows = known[starts[place[key]] : starts[place[key] + 1]]
            if shares and len(rows):
                rows = rows[np.minimum(np.searchsorted(times.time[rows], time), len(rows) - 1)]
                found = np.isnan(own) & (times.time[rows] == time)
                own, own_due = np.where(found, y[rows], own), np.where(found, due[rows], own_due)
            return own if find is None else np.where(np.isnan(own), find(key, time), own), own_due

        return fill

    def _features(self, payoff: Payoff) -> dict[Any, list[Any]] | None:
        """Columns that the contexts of the payoff read; all of them if it has functions."""
        columns = self.frame.reading.columns
        names = feature_names(payoff)
        for name in names:
            if name not in columns:
                raise ValueError(f"expected a column {name!r} for the context of the payoff, got {short(columns)}")
        if has_functions(payoff):
            names = sorted(name for name in columns if isinstance(name, str))
        return {name: self.frame.column(name).to_list() for name in names} or None

    # --- run
    def run_rounds(self, workers: int | None = 1) -> None:
        """Run all streams of all models, in threads: the kernels release the GIL."""
        if workers is None:
            workers = usable_cores() if self.frame.rows * len(self.models) >= SMALL else 1
        if workers == 1 or (self.payoff is not None and has_functions(self.payoff)):
            for task in self._tasks(1):
                task()
            return
        ready: deque[Future[None]] = deque()
        with ThreadPoolExecutor(workers) as executor:
            try:
                for task in self._tasks(workers):
                    ready.append(executor.submit(task))
                    if len(ready) > 2 * workers:
                        ready.popleft().result()
                for future in ready:
                    future.result()
            finally:
                self.stop.set()
                executor.shutdown(wait=False, cancel_futures=True)

    def _tasks(self, workers: int) -> Iterator[Callable[[], None]]:
        """Parts of the work, once the committees of their model have run."""
        # about a second of work each
        starts, rows = self.streams.starts, len(self.models) * int(self.streams.starts[-1])
        _, first = np.unique(starts[:-1] // max(min(BATCH, rows // (8 * workers)), 1), return_index=True)
        edges = [*first.tolist(), len(self.streams)]
        for model in self.models:
            runs = model.prepared(self.stop)
            self._run_committees(runs)
            parts = [runs[a:b] for a, b in pairwise(edges)]
            del runs
            while parts:
                yield partial(run_streams, parts.pop(0), self.stop)

    def _run_committees(self, runs: list[StreamRun]) -> None:
        """Run the committees of streams of one model, if it has any."""
        if all(each.idle for each in runs):
            return
        model, space = runs[0].model, Line()  # all ordered spaces have the same levels
        corrects, name = model.runner().corrected, model.form.model
        if corrects or model.shape.kind == "point":
            plan = plan_for(space.levels, space.scores, pooled=self.pooled, corrects=corrects)
            group = self.content.pools.get(name, GroupState())
            self.after[name] = GroupPass(plan, group, runs).run_rounds(self.stop)

    # --- reporting
    def warn(self) -> None:
        """Warn of rows that need a look, each kind once."""
        for sentence in (*self._about_outcomes(), *self._about_rows()):
            warn_user(sentence, UserWarning)

    def _about_outcomes(self) -> Iterator[str]:
        """Warnings about the table of outcomes."""
        table = self.frame.outcomes
        if table is not None and table.versions and self.options.lag is None:
            yield (
                "each outcome counts as known at its time, in its newest version; the publication dates (as_of) are "
                "not used: give the delay by lag="
            )
        if table is not None and len(table.values) and np.isnan(table.values).all() and not self.settling:
            events = self.streams.times.events is not None and self.panel is not None
            hint = ": give outcomes of events in a column beside their forecasts" if events else ""
            yield f"no row of target= matches a row of the frame or a pending row{hint}"

    def _about_rows(self) -> Iterator[str]:
        """Warnings about forecasts, then about statuses."""
        for model in self.models:
            whose, there = of_model(model.form.model), np.empty(self.frame.rows, dtype=bool)
            there[model.rows] = model.there
            found = {f"old answers{whose} were kept although their forecasts changed": model.changed}
            if model.shape.kind == "quantiles":
                crossing = np.any([b < a for a, b in pairwise(model.given)], axis=0)
                missing = np.any([np.isnan(column) for column in model.given], axis=0)
                found |= {
                    f"crossing quantiles{whose} were sorted": there & crossing,
                    f"missing quantiles{whose} were interpolated from the others": there & missing,
                }
            yield from (
                f"{sentence} in {rows_text(np.flatnonzero(hit))}" for sentence, hit in found.items() if hit.any()
            )
        low, high = ("none" if side is None else short(side) for side in (self.options.low, self.options.high))
        outside = f"ignored outcomes outside the bounds (low {low}, high {high})"
        again = "" if self.panel is None else ": run the whole frame without the state to use them"
        sentences = {
            Status.OUTSIDE: f"{outside} in {{}}",
            Status.CORRECTED: f"outcomes differ from those that were used in {{}}{again}",
            Status.LATE: "no answer for rows that precede answered rows of their series in {}",
            Status.EVICTED: f"dropped the oldest pending rows of series with more than {MAX_PENDING} in {{}}",
            Status.EXPIRED: f"ignored outcomes that came long after those of later rows in {{}}{again}",
        }
        for status, sentence in sentences.items():
            at = np.flatnonzero(np.any([model.status == status for model in self.models], axis=0))
            if len(at):
                yield sentence.replace("{}", rows_text(at))
        if unused := [y for model in self.models for y in model.unused]:
            many = f"{len(unused):,} pending row{'s' * (len(unused) > 1)} of earlier frames"
            yield f"{outside} for {many}, got {unused[0]:g}"

    def result(self, replace: bool) -> Any:
        """Frame with the results."""
        new: dict[Any, NDArray[Any]] = {}
        for model in self.models:
            unanswered = np.isin(model.status, (Status.NO_FORECAST, Status.LATE))
            for column in (*model.out, *model.certificate):
                column[unanswered] = np.nan
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
    def commit(self, panel: FrameState) -> None:
        """Put the streams into the state; raises nothing."""
        streams, times, content = self.streams, self.streams.times, panel.content
        if content.options is None:
            content.options = self.options.kept()
            content.facts = self.facts._replace(events=None if times.events is None else list(times.event_columns))
        for model in self.models:
            kept = content.models.setdefault(model.form.model, ModelStreams(str(model.shape), len(model.outputs)))
            pairs = zip(model.keys, model.streams, strict=True)
            kept.streams.update((key, stream) for key, stream in pairs if stream is not None)
        for name, group in self.after.items():
            kept_group = content.pools.setdefault(name, GroupState())
            kept_group.series.update(group.series)
            kept_group.pools.update(group.pools)
        if times.ranked or self.options.issued_every is not None:
            for key, rows in zip(self.keys, by_series(self.codes, len(self.keys)), strict=True):
                seen = np.column_stack((times.cutoff[rows], times.time[rows]))
                content.calendar[key] = last_cutoffs(content.calendar.get(key), seen, panel.remember)
            content.step = streams.step


def run_frame(
    frame: Frame,
    names: Mapping[str, Any],
    options: FrameOptions,
    panel: FrameState | None,
    workers: int | None = None,
) -> FrameRun:
    """Detect the columns of a frame, run its streams, and warn; names are those of `find_in`."""
    options, count = options.checked(), None if workers is None else whole(workers, "workers", 1, 1024)
    begun = panel is not None and panel.content.options is not None
    run = FrameRun(frame, find_in(frame, pending=begun, **names), options, panel)
    run.run_rounds(count)
    run.warn()
    return run
