"""From a frame of forecasts and outcomes to the same frame with recalibrated forecasts beside them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Hashable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.contexts import Bins, Values
from orcast.engine.bound_payoff import leaves
from orcast.panel.bounds import Bounds, read_bounds
from orcast.panel.columns import ColumnLayout, Form, label_places
from orcast.panel.experts import ForecastShape
from orcast.panel.frame import Codes, Frame
from orcast.panel.ordering import Streams, arrange, fill_outcomes, read_times, seen_dates
from orcast.panel.state import BY_SERIES, Book, PanelState, PanelTerms, check_unchanged, open_state
from orcast.panel.stream import CORRECTED, LATE, LOST, OUTSIDE, STATUSES, Batch, Stream, StreamOptions, StreamResult
from orcast.panel.validation import (
    as_given,
    between,
    crossing_rows,
    found_in,
    levels_of,
    of_model,
    of_series,
    payoff_of,
    rows_text,
    rows_with_forecast,
    shape_of,
    shape_text,
    travels,
)
from orcast.panel.workers import Bar, Progress, play_all, usable_cores
from orcast.payoffs import Payoff
from orcast.spaces.base import LARGEST, whole
from orcast.validation import short, warn_user

Array = NDArray[np.float64]
AnyFrame = TypeVar("AnyFrame")

# A frame with fewer forecasts is played before other processes would have started.
SMALL = 20_000
# Rows of a batch, at most: about a second of play.
BATCH = 20_000
# Rows of a stream that may wait for their outcome.
MAX_PENDING = 1000


def recalibrate(
    df: AnyFrame,
    *,
    y: Any = None,
    model: Any = None,
    series: Any = None,
    time: Any = None,
    cutoff: Any = None,
    horizon: Any = None,
    low: Any = None,
    high: Any = None,
    levels: ArrayLike | None = None,
    payoff: Payoff | None = None,
    state: PanelState | str | os.PathLike[str] | None = None,
    replay: bool = False,
    replace: bool = False,
    workers: int | None = None,
    progress: bool | Progress = False,
    outside: str = "report",
) -> AnyFrame:
    """Recalibrate the forecasts in a data frame, of one series or of thousands; a frame of the same type comes back.

    The frame (pandas, polars, or any that narwhals knows) has a row for each forecast, with its outcome where that is
    known.  Columns are found by the names people use, as Nixtla's ``unique_id``, ``ds``, ``y``, ``cutoff``,
    ``MODEL-lo-90``, or ``q0.1``, ``mean`` and ``sd``, ``member_1``, ``p``, ``p_home``, see `orcast.panel.columns`;
    where names are others, ``y``, ``model``, ``series``, ``time``, ``cutoff`` and ``horizon`` say them.  Each model and
    series has a game of its own, with a guarantee of its own, and no forecast knows an outcome that came after it.

    **Out** come the columns in the form that was found, under the name ``MODEL_orcast`` (``orcast_`` before those
    without a model), quantiles at ``levels`` if asked for, and for each model

    - ``..._holds``: the certificate, whether no outcome could break the promise;
    - ``..._promised``: the bound on the miscalibration after this row, known before its outcome;
    - ``..._miscalibration``: what it was after it;
    - ``..._status``: "ok"; "pending", no outcome yet; "no forecast", it is missing or not finite; "outside", the
      outcome lies beyond the bounds and was not used; with a state also "seen", answered before; "corrected", the
      outcome is not the one that was used; "late", before rows that were answered, so there is no answer; "lost", more
      rows waited than a game keeps.

    ``replace=True`` puts them into the found columns instead.  A member of an ensemble keeps its rank: the i-th of n
    becomes the quantile at (i - 0.5) / n.  A mean and a deviation are those of the nearest normal.  A point forecast is
    read as Gaussian with the root mean square of its errors known so far (a tenth of its size before the first); its
    median comes out, and intervals.

    **Order.**  The rows of a series are played in the order of their times, each outcome known before the next
    forecast.  With cutoffs (when each forecast was made) there is a game for each horizon, that is for the first,
    second, ... time of each cutoff, and an outcome is used by forecasts whose cutoff is its time or later.  Without a
    column of times the rows of a series stand in their order.

    **Bounds.**  ``low`` and ``high`` are numbers, names of columns, or numbers by series; or they are left out.
    Outcomes beyond them are reported with their rows and not used; ``outside="clip"`` clips them, ``"raise"`` refuses.

    **State.**  ``state`` is a path, read if it is there and written at the end, or a `PanelState`; the next frame goes
    on from it, bit for bit as if both had been one.  Rows without an outcome wait in it, for a later frame with the
    same row and its outcome.  Rows that were answered are answered again as they were.  If an outcome changed since,
    that is reported; ``replay=True`` then plays the series anew, from a frame that holds it from its start.  If
    anything is refused, the state is as it was.

    Many series are played by all cores (``workers``), with the same results for any number; ``progress=True`` shows a
    bar.  A ``payoff`` may have contexts such as ``by("hour", values=range(24))``, whose features are columns.

    >>> import orcast as oc, pandas as pd
    >>> frame = pd.DataFrame({
    ...     "unique_id": ["A"] * 3, "ds": ["2024-01-01", "2024-01-02", "2024-01-03"], "y": [5.0, 6.0, None],
    ...     "ETS": [4.0, 5.0, 5.5], "ETS-lo-80": [3.5, 4.5, 5.0], "ETS-hi-80": [4.5, 5.5, 6.0]})
    >>> after = oc.recalibrate(frame, low=0)
    >>> list(after.columns[6:])
    ['ETS_orcast-lo-80', 'ETS_orcast', 'ETS_orcast-hi-80', 'ETS_orcast_holds', 'ETS_orcast_promised',
     'ETS_orcast_miscalibration', 'ETS_orcast_status']
    >>> after["ETS_orcast_status"].tolist()
    ['ok', 'ok', 'pending']
    """
    if outside not in ("report", "clip", "raise"):
        raise ValueError(f"expected outside='report', 'clip' or 'raise', got {outside!r}")
    if payoff is not None and not isinstance(payoff, Payoff):
        raise TypeError(f"expected a payoff such as QuantileCalibration(), got {short(payoff)}")
    count = None if workers is None else whole(workers, "workers", 1, 1024)
    panel, path, was = open_state(state)
    names = {"y": y, "series": series, "time": time, "cutoff": cutoff, "horizon": horizon}
    frame = Frame(df)
    layout = found_in(frame, names, model, pending=panel is not None and panel._terms is not None)
    call = _Call(frame, panel, layout, levels, payoff, low, high, outside)
    call.play(count, progress, bool(replay))
    call.report(bool(replay))
    result: AnyFrame = call.result(bool(replace))
    if path is not None:
        check_unchanged(path, was)
    if panel is not None:
        call.commit(panel)
        if path is not None:
            panel.save(path)
    return result


def recalibrated(
    df: AnyFrame,
    layout: ColumnLayout,
    *,
    low: Any,
    high: Any,
    levels: ArrayLike | None,
    payoff: Payoff | None,
    replace: bool,
    outside: str,
) -> AnyFrame:
    """A part of a frame whose columns were found in the whole, played here; nothing is reported but in its columns."""
    call = _Call(Frame(df), None, layout, levels, payoff, low, high, outside)
    call.play(1, False, False)
    result: AnyFrame = call.result(replace)
    return result


@dataclass
class _Part:
    """One model's part of a call: what goes in, and arrays for what comes out."""

    form: Form
    shape: ForecastShape
    y: Array
    known: Codes  # a row for each outcome of a series and time, in that order
    known_starts: Codes  # where those of each series begin, and the end
    given: list[Array]
    there: NDArray[np.bool_]
    out: list[Array]
    certificate: list[Array]
    status: NDArray[np.uint8]
    streams: list[Stream | None]


class _Call:
    """One frame on its way: read and checked, played, reported, written."""

    def __init__(
        self,
        frame: Frame,
        panel: PanelState | None,
        layout: ColumnLayout,
        levels: ArrayLike | None,
        payoff: Payoff | None,
        low: Any,
        high: Any,
        outside: str,
    ) -> None:
        self.frame, self.panel = frame, panel
        self.clip = outside == "clip"
        before = None if panel is None else panel._terms
        self.before = before
        self.layout = layout
        self.levels = levels_of(levels, before)
        self.payoff = payoff_of(payoff, before)
        self.codes, self.keys = frame.keys(self.layout.series)
        self.streams = self._streams()
        self.bounds = self._bounds(low, high)
        self.low, self.high = self.bounds.of_rows(self.codes)
        self.parts = [self._part(form) for form in self.layout.forms]
        self.features = self._features()
        if outside == "raise":
            self._refuse_outside()

    # --- reading
    def _streams(self) -> Streams:
        panel, layout, before = self.panel, self.layout, self.before
        counted = np.array([0 if panel is None else panel._counted.get(key, 0) for key in self.keys], dtype=np.int64)
        times, cutoffs = read_times(self.frame, layout.time, layout.cutoff, self.codes, counted)
        calendar = {} if panel is None else panel._calendar
        streams = arrange(self.frame, times, cutoffs, layout.horizon, self.codes, self.keys, calendar)
        self.ranked = cutoffs is not None and layout.horizon is None
        if before is not None:
            if streams.kind != before.kind:
                raise ValueError(f"expected times as the state has them, {before.kind}, got {streams.kind}")
            if (streams.at_once, self.ranked) != (before.at_once, before.ranked):
                then, now = ("no cutoffs" if each else "cutoffs" for each in (before.at_once, streams.at_once))
                then, now = (then, now) if then != now else ("no horizons", "horizons")
                raise ValueError(f"expected columns of times as the state has them, {then}, got {now}")
        return streams if streams.at_once or panel is None else streams.and_empty(self._waiting_elsewhere(streams))

    def _waiting_elsewhere(self, streams: Streams) -> list[tuple[int, Hashable]]:
        """Streams of the state with rows that wait, of series that are in the frame, but none of whose rows are."""
        assert self.panel is not None
        codes = {key: code for code, key in enumerate(self.keys)}
        here = set(zip(streams.series.tolist(), streams.horizons, strict=True))
        found: dict[tuple[int, Hashable], None] = {}
        for form in self.layout.forms:
            if form.model not in self.panel._models:
                continue
            for (key, horizon), stream in self.panel._models[form.model].streams.items():
                if key in codes and len(stream.pages) and (codes[key], horizon) not in here:
                    found[codes[key], horizon] = None
        return sorted(found, key=lambda each: (each[0], str(each[1])))

    def _bounds(self, low: Any, high: Any) -> Bounds:
        panel, before = self.panel, self.before
        if (low is not None or high is not None) and all(
            form.kind in ("binary", "labels") for form in self.layout.forms
        ):
            raise ValueError(f"expected no bounds for probabilities, got {short(low if high is None else high)}")
        if panel is not None and before is not None and low is None and high is None:
            low, high = (
                {key: pair[side] for key, pair in panel._ends.items()} if given == BY_SERIES else given
                for side, given in enumerate((before.low, before.high))
            )
        self.low_given, self.high_given = (as_given(side) for side in (low, high))
        bounds = read_bounds(low, high, self.frame, self.codes, self.keys)
        self.ends = self._ends_of(bounds)
        if panel is not None and before is not None:
            for key, now in self.ends.items():
                then = panel._ends.get(key, now)
                if then != now or bounds.by_row != before.by_row:
                    raise ValueError(
                        f"expected the bounds that the state began with{of_series(key)}, {between(then)}, "
                        f"got {between(now)}"
                    )
        return bounds

    def _ends_of(self, bounds: Bounds) -> dict[Hashable, tuple[float, float]]:
        """The bounds of each series; where they change from row to row, 0 and 1 stand for them."""
        low, high = bounds.low, bounds.high
        if bounds.by_row:
            first = np.zeros(len(self.keys), dtype=np.intp)
            first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
            low = np.where(np.isfinite(low[first]), 0.0, -math.inf) if len(low) else np.empty(0)
            high = np.where(np.isfinite(high[first]), 1.0, math.inf) if len(high) else np.empty(0)
        return dict(zip(self.keys, zip(low.tolist(), high.tolist(), strict=True), strict=True))

    def _part(self, form: Form) -> _Part:
        shape = shape_of(form, self.levels)
        if self.panel is not None and form.model in self.panel._models:
            then = self.panel._models[form.model].shape
            if then != shape:
                raise ValueError(
                    f"expected the forecasts{of_model(form)} as the state knows them, {shape_text(then)}, "
                    f"got {shape_text(shape)}"
                )
        n = self.frame.rows
        y, known = self._outcomes(form)
        given = [self.frame.numbers(column) for column in form.columns]
        there = rows_with_forecast(form, given)
        streams: list[Stream | None] = [None] * len(self.streams)
        if self.panel is not None and form.model in self.panel._models:
            found = self.panel._models[form.model].streams
            keys = zip(self.streams.series.tolist(), self.streams.horizons, strict=True)
            streams = [found.get((self.keys[code], horizon)) for code, horizon in keys]
        return _Part(
            form,
            shape,
            y,
            known,
            np.searchsorted(self.codes[known], np.arange(len(self.keys) + 1)),
            given,
            there,
            [np.full(n, np.nan) for _ in shape.outputs],
            [np.full(n, np.nan) for _ in range(3)],
            np.zeros(n, dtype=np.uint8),
            streams,
        )

    def _outcomes(self, form: Form) -> tuple[Array, Codes]:
        column = self.layout.y
        if column is None:
            y = np.full(self.frame.rows, np.nan)
        elif form.kind == "labels":
            places = label_places(self.frame.column(column), form.labels or ())
            y = np.where(places >= 0, places.astype(np.float64), np.nan)
        else:
            y = self.frame.numbers(column)
        return fill_outcomes(self.streams, self.codes, self.keys, y, form.labels or ())

    def _features(self) -> dict[Any, list[Any]] | None:
        """The columns that the payoff's contexts look at; all of them, if it has functions."""
        if self.payoff is None:
            return None
        simple = [leaf for part in self.payoff for leaf in leaves(part.context)]
        names = {
            leaf.key
            for leaf in simple
            if isinstance(leaf, Values) or (isinstance(leaf, Bins) and leaf.source == "feature")
        }
        columns = self.frame.reading.columns
        for name in sorted(names):
            if name not in columns:
                raise ValueError(f"expected a column {name!r}, which the payoff looks at, got {short(columns)}")
        if not travels(self.payoff):
            names = {name for name in columns if isinstance(name, str)}
        return {name: self.frame.column(name).to_list() for name in sorted(names)} or None

    def _refuse_outside(self) -> None:
        for part in self.parts:
            rows = np.flatnonzero(self._outside(part))
            if len(rows):
                raise ValueError(f"expected {self._outside_text(part, int(rows[0]))} (outside='clip' clips it)")

    def _outside(self, part: _Part) -> NDArray[np.bool_]:
        """Rows whose outcome is not one that can be."""
        y = part.y
        wrong: NDArray[np.bool_] = ~np.isnan(y) & ~((y >= self.low) & (y <= self.high) & (np.abs(y) <= LARGEST))
        return wrong & part.shape.ordered

    def _outside_text(self, part: _Part, row: int) -> str:
        whose = of_series(self.keys[int(self.codes[row])])
        low, high = max(self.low[row], -LARGEST), min(self.high[row], LARGEST)
        return f"outcomes from {low:g} to {high:g}{whose}, got {part.y[row]:g} in row {row}"

    # --- playing
    def play(self, workers: int | None, progress: bool | Progress, replay: bool) -> None:
        """Play all streams of all models."""
        total = self.frame.rows * len(self.parts)
        if workers is None:
            workers = usable_cores() if total >= SMALL else 1
        if not travels(self.payoff):
            workers = 1
        pieces = self._pieces(workers)
        workers = min(workers, len(pieces))
        plain = None if self.payoff is None else json.loads(json.dumps(self.payoff.to_plain()))
        payoffs = dict.fromkeys(range(len(self.parts)), plain)
        asks = [
            StreamOptions(
                number,
                part.shape,
                self.payoff,
                self.bounds.by_row,
                self.streams.at_once,
                0 if self.panel is None else self.panel.remember,
                replay,
                self.clip,
                MAX_PENDING,
            )
            for number, part in enumerate(self.parts)
        ]
        batches = ((i, self._batch(asks[number], *piece)) for i, (number, *piece) in enumerate(pieces))
        played = play_all(batches, workers, payoffs)
        with Bar(progress, total) as bar, closing(played):
            for i, told in played:
                number, first, last = pieces[i]
                self._take(self.parts[number], first, last, told)
                bar.add(int(self.streams.starts[last] - self.streams.starts[first]))

    def _pieces(self, workers: int) -> list[tuple[int, int, int]]:
        """Model, first stream and last of each batch."""
        starts = self.streams.starts
        most = max(min(BATCH, int(starts[-1]) * len(self.parts) // (8 * workers)), 1)
        cuts = [0]
        while cuts[-1] < len(self.streams):
            here = cuts[-1]
            there = int(np.searchsorted(starts, starts[here] + most, side="right")) - 1
            cuts.append(max(there, here + 1))
        return [(number, a, b) for number in range(len(self.parts)) for a, b in pairwise(cuts)]

    def _batch(self, ask: StreamOptions, first: int, last: int) -> Batch:
        part, streams = self.parts[ask.number], self.streams
        starts = streams.starts[first : last + 1]
        rows = streams.order[starts[0] : starts[-1]]
        if not part.shape.ordered:
            low = high = np.zeros(last - first)
        elif ask.by_row:
            low, high = self.bounds.low[rows], self.bounds.high[rows]
        else:
            which = streams.series[first:last]
            low, high = self.bounds.low[which], self.bounds.high[which]
        columns = self.features
        return Batch(
            dataclasses.replace(ask, by_row=ask.by_row and part.shape.ordered),
            (starts - starts[0]).tolist(),
            low,
            high,
            streams.time[rows],
            streams.cutoff[rows],
            part.there[rows],
            part.y[rows],
            np.column_stack([column[rows] for column in part.given]),
            part.streams[first:last],
            None if columns is None else [{name: values[i] for name, values in columns.items()} for i in rows.tolist()],
            self._known(part, first, last),
        )

    def _known(self, part: _Part, first: int, last: int) -> list[tuple[NDArray[Any], Array]] | None:
        """Times and outcomes of the streams' series, where rows of theirs may wait for one of another horizon."""
        if self.panel is None or self.streams.at_once:
            return None
        found: dict[int, tuple[NDArray[Any], Array]] = {}
        for code in np.unique(self.streams.series[first:last]).tolist():
            rows = part.known[part.known_starts[code] : part.known_starts[code + 1]]
            found[code] = self.streams.time[rows], part.y[rows]
        return [found[code] for code in self.streams.series[first:last].tolist()]

    def _take(self, part: _Part, first: int, last: int, told: StreamResult) -> None:
        """Put what came of a batch where it belongs."""
        for at, have, need in told.short[:1]:
            key = self.keys[int(self.streams.series[first + at])]
            raise ValueError(
                f"expected all {need} rows{of_series(key)} since its start, to replay it, got {have}: "
                "replay=True needs the whole history"
            )
        rows = self.streams.order[self.streams.starts[first] : self.streams.starts[last]]
        for i, column in enumerate(part.out):
            column[rows] = told.answers[:, i]
        for i, column in enumerate(part.certificate):
            column[rows] = told.certificate[:, i]
        part.status[rows] = told.status
        part.streams[first:last] = told.streams

    # --- what is said
    def report(self, replay: bool) -> None:
        """Warn of rows that need a look, each kind once."""
        for part in self.parts:
            if part.shape.kind == "quantiles":
                crossed = crossing_rows(part.given, part.there)
                if len(crossed):
                    warn_user(
                        f"crossing quantiles{of_model(part.form)} were sorted in {rows_text(crossed)}", UserWarning
                    )
        kinds: tuple[tuple[int, str], ...] = (
            (OUTSIDE, "outcomes that cannot be were not used"),
            (CORRECTED, "outcomes changed since they were used"),
            (LATE, "rows come before others that were answered, and have no answer"),
            (LOST, f"rows were given up: more than {MAX_PENDING} of a game wait for their outcome"),
        )
        for code, sentence in kinds:
            hit = np.zeros(self.frame.rows, dtype=bool)
            for part in self.parts:
                hit |= part.status == code
            rows = np.flatnonzero(hit)
            if not len(rows):
                continue
            more = ""
            if code == OUTSIDE:
                part = next(part for part in self.parts if part.status[rows[0]] == code)
                more = f": expected {self._outside_text(part, int(rows[0]))}"
            elif code == CORRECTED:
                more = ", so their series were played anew" if replay else " (replay=True plays their series anew)"
            warn_user(f"{sentence}, in {rows_text(rows)}{more}", UserWarning)

    def result(self, replace: bool) -> Any:
        """The frame with what came out."""
        new: dict[Any, NDArray[Any]] = {}
        for part in self.parts:
            outputs = part.form.outputs(self.levels if part.shape.ordered else None)
            for out, values in zip(outputs, part.out, strict=True):
                if replace and out.column is not None:
                    was = self.frame.numbers(out.column)
                    new[out.column] = np.where(np.isnan(values), was, values)
                else:
                    new[out.name] = values
            names = part.form.certificate
            holds, promised, miscalibration = part.certificate
            new[names["holds"]] = np.where(np.isnan(holds), -1, holds).astype(np.int8)
            new[names["promised"]], new[names["miscalibration"]] = promised, miscalibration
            new[names["status"]] = np.array(STATUSES, dtype=object)[part.status]
            part.out, part.certificate = [], []
        del holds, promised, miscalibration, values
        return self.frame.with_columns(new, without=self.layout.earlier(self.frame.table.columns))

    # --- the state
    def commit(self, panel: PanelState) -> None:
        """Put the streams into the state; nothing here can be refused."""
        streams = self.streams
        if panel._terms is None:
            plain = None if self.payoff is None else json.loads(json.dumps(self.payoff.to_plain()))
            panel._terms = PanelTerms(
                streams.kind,
                streams.at_once,
                self.ranked,
                plain,
                self.levels,
                self.low_given,
                self.high_given,
                self.bounds.by_row,
            )
        panel._ends.update(self.ends)
        for part in self.parts:
            book = panel._models.setdefault(part.form.model, Book(part.shape))
            for code, horizon, stream in zip(streams.series.tolist(), streams.horizons, part.streams, strict=True):
                if stream is not None:
                    book.streams[self.keys[code], horizon] = stream
        if streams.kind == "places":
            for key, count in zip(self.keys, np.bincount(self.codes, minlength=len(self.keys)).tolist(), strict=True):
                panel._counted[key] = panel._counted.get(key, 0) + count
        if self.ranked:
            order = np.argsort(self.codes, kind="stable")
            ends = np.searchsorted(self.codes[order], np.arange(len(self.keys) + 1))
            for i, key in enumerate(self.keys):
                rows = order[ends[i] : ends[i + 1]]
                panel._calendar[key] = seen_dates(
                    panel._calendar.get(key), streams.cutoff[rows], streams.time[rows], panel.remember
                )
