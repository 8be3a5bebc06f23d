"""Streams of a frame, the order of their rows, and the outcomes that were known to each.

A stream is one series at one horizon, or a series where nothing says when forecasts were issued.  Its rows are in the
order in which they were issued, and an outcome is used by forecasts that were issued when it was known or later
(`orcast.frame.times`).
"""

from __future__ import annotations

import dataclasses
import heapq
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.frame.names import ColumnLayout, listed, of_series, owner_of, show_time
from orcast.frame.reader import Codes, Frame
from orcast.frame.times import Calendar, RowTimes, Stamps, Step, count_horizons
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.rounds import running_lag
from orcast.validation import row_name

# Numbers that tell events of one time apart.
MARKS = 2**20
Array = NDArray[np.float64]
Events = NDArray[np.int64]  # kind and entry of each


@dataclass(frozen=True)
class Streams:
    """Rows in the order of play, stream after stream; each stream has a series and a horizon."""

    order: Codes  # rows of the frame
    starts: Codes  # where each stream begins in the order, and the end
    series: Codes
    horizons: list[Hashable]
    times: RowTimes  # of the rows of the frame
    step: Step | None = None  # what horizons are counted in; None where a column says them

    def __len__(self) -> int:
        return len(self.series)

    def and_empty(self, more: Sequence[tuple[int, Hashable]]) -> Streams:
        """Also streams that have no rows here, by series and horizon, each beside the others of its series."""
        series = np.append(self.series, np.array([code for code, _ in more], dtype=self.series.dtype))
        horizons = [*self.horizons, *(horizon for _, horizon in more)]
        counts = np.append(np.diff(self.starts), np.zeros(len(more), dtype=self.starts.dtype))
        places = np.argsort(series, kind="stable")
        return dataclasses.replace(
            self,
            starts=np.append(0, np.cumsum(counts[places])),
            series=series[places],
            horizons=[horizons[i] for i in places.tolist()],
        )


def arrange(
    frame: Frame,
    rows: RowTimes,
    layout: ColumnLayout,
    codes: Codes,
    keys: Sequence[Hashable],
    calendar: Calendar,
    before: Step | None = None,
    *,
    events: Sequence[str] | bool | None = None,  # columns that tell events of one time apart in a state, or False
) -> Streams:
    """Put the rows in the order of play; ``before`` is the step of a state."""
    rows = _with_events(frame, rows, layout, codes, keys, events)
    time, cutoff, stamps, step = rows.time, rows.cutoff, rows.time if rows.events is None else rows.events, None
    if layout.horizon is not None:
        which, names = frame.keys([layout.horizon])
    elif not rows.ranked:
        which, names = np.zeros(len(time), dtype=np.intp), [None]
    else:
        _refuse_twice((codes, cutoff, stamps), keys, rows)
        ahead, step = count_horizons(rows, codes, keys, calendar, before)
        found, which = np.unique(ahead, return_inverse=True)
        names = found.tolist()
    order = np.lexsort((stamps, cutoff, which, codes))
    _refuse_twice((codes, which, cutoff, stamps), keys, rows, order)
    starts = np.flatnonzero(changes(order, codes, which))
    horizons = [names[i] for i in which[order[starts]].tolist()]
    return Streams(order, np.append(starts, len(order)), codes[order[starts]], horizons, rows, step)


# --- several events at one time


def _with_events(
    frame: Frame,
    rows: RowTimes,
    layout: ColumnLayout,
    codes: Codes,
    keys: Sequence[Hashable],
    events: Sequence[str] | bool | None,
) -> RowTimes:
    """Times of events (0 or 1, or a label), of which a series may have several at one time and cutoff."""
    if layout.time is None or any(form.ordered for form in layout.forms):
        return rows
    order = np.lexsort((rows.time, rows.cutoff, codes))
    new = changes(order, codes, rows.cutoff, rows.time)
    tied = not new.all()
    if events is False or (events is None and not (tied or rows.at_once)):
        if tied:
            _refuse_twice((codes, rows.cutoff, rows.time), keys, rows)
        return rows
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new)
    columns = _event_columns(frame, layout, group, tied) if events is None or events is True else tuple(events)
    marks = _marks(frame, columns)
    # events with equal marks are numbered
    order = np.lexsort((marks, group))
    base, place = group[order] * MARKS * 2, np.arange(len(order))
    marks[order] = np.maximum.accumulate(base + marks[order] - place) + place - base
    # all events of a time are forecast before an outcome of that time is used
    known = rows.time + 1 if tied and rows.at_once else rows.known
    stamps = _marked(rows.kind, rows.time, marks)
    return dataclasses.replace(rows, events=stamps, event_columns=columns, tied=tied, known=known)


def _event_columns(frame: Frame, layout: ColumnLayout, group: Codes, tied: bool) -> tuple[str, ...]:
    """Columns that tell events of one time apart: the first that does, or all of text; none if none do."""
    taken = {*layout.taken, *(column for form in layout.forms for column in form.columns)}
    free = {name: kind for name, kind in frame.reading.schema.items() if name not in taken and owner_of(name) is None}
    text = tuple(name for name, kind in free.items() if kind in (nw.String, nw.Categorical, nw.Enum))
    single = [(name,) for name, kind in free.items() if name in text or kind.is_integer()]
    for columns in [*single, *([text] if len(text) > 1 else [])]:
        if not any(frame.missing(name).any() for name in columns):
            which, names = frame.keys(list(columns))
            apart = len(np.unique(group * len(names) + which)) if tied else len(names)
            if apart == len(group):
                return columns
    return ()


def _marks(frame: Frame, columns: tuple[str, ...]) -> NDArray[np.int64]:
    """Number below `MARKS` for each row, equal where some columns are."""
    if missing := set(columns) - set(frame.reading.columns):
        raise ValueError(f"expected {listed(sorted(missing))}, which tell events apart in the state, got none")
    which, names = frame.keys(list(columns))
    return np.array([zlib.crc32(repr(name).encode()) % MARKS for name in names], dtype=np.int64)[which]


def _marked(kind: str, time: Stamps, marks: Codes) -> Stamps:
    """Stamps in the order of time, then of the marks."""
    return time * MARKS + marks if kind == "whole numbers" and (np.abs(time) < 2**40).all() else time + marks


def _refuse_twice(
    columns: Sequence[NDArray[Any]], keys: Sequence[Hashable], times: RowTimes, order: Codes | None = None
) -> None:
    """No two rows of one series, time and cutoff."""
    order = np.lexsort(columns[::-1]) if order is None else order
    same = np.flatnonzero(~changes(order, *columns))
    if not len(same):
        return
    a, b = sorted(order[same[0] - 1 : same[0] + 1].tolist())
    more = f" (and {len(same) - 1} more such pairs)" if len(same) > 1 else ""
    raise ValueError(
        f"expected one row{of_series(keys[int(columns[0][a])])} for each time and cutoff, "
        f"got {row_name(a, b, join=' and ')} for {show_time(times.kind, times.time[a])}{more}: drop one of them, "
        "use times with their zone, or name a column that tells them apart by series= or cutoff="
    )


def changes(order: Codes, *columns: NDArray[Any]) -> NDArray[np.bool_]:
    """True where rows in an order differ from the one before in some column, and for the first one."""
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    return new


def fill_outcomes(
    streams: Streams, codes: Codes, keys: Sequence[Hashable], y: Array, labels: Sequence[str] = ()
) -> tuple[Array, Stamps, Codes]:
    """Outcomes, also from other rows of a series and time, when they are known, and a row for each of them."""
    times = streams.times
    time, due = times.time, times.known
    if times.at_once or times.events is not None:
        return y, due, np.flatnonzero(~np.isnan(y))
    # known outcomes first, then missing ones
    order = np.lexsort((np.isnan(y), time, codes))
    first = changes(order, codes, time)
    leader = order[first][np.cumsum(first) - 1]
    differs = ~np.isnan(y[order]) & (y[order] != y[leader])
    if differs.any():
        at = int(differs.argmax())
        a, b = sorted((int(order[at]), int(leader[at])))
        one, other = (repr(labels[int(value)]) if labels else f"{value:g}" for value in (y[a], y[b]))
        raise ValueError(
            f"expected one outcome{of_series(keys[int(codes[a])])} at "
            f"{show_time(times.kind, time[a])}, got {one} in {row_name(a)} and {other} in {row_name(b)}"
        )
    filled, filled_due = np.empty(len(y)), np.empty_like(due)
    filled[order] = y[leader]
    # an outcome is known once: at the latest time of the rows that have it
    group = np.cumsum(first) - 1
    has = ~np.isnan(y[order])
    latest = due[order][first]
    np.maximum.at(latest, group[has], due[order][has])
    filled_due[order] = latest[group]
    known = order[first]
    return filled, filled_due, known[~np.isnan(y[known])]


@dataclass
class OpenRows:
    """Rows that are not settled, of a stream or of one after the other: those pending from before, then new ones."""

    at: NDArray[Any]  # where they stand in the log of their stream
    row: NDArray[Any]  # of the frame; -1 if pending from before
    time: Stamps
    cutoff: Stamps
    due: Stamps
    value: Array  # the outcome in the units of the space, nan where it is unknown or outside
    known: NDArray[np.bool_]
    point: Array
    low: Array
    high: Array
    step: NDArray[np.int64]  # index of the time in steps of the series
    settled: NDArray[np.bool_]  # whether the committee has used the outcome

    @classmethod
    def joined(cls, parts: Iterable[OpenRows]) -> OpenRows:
        """All rows of some tables."""
        return cls(*map(np.concatenate, zip(*(vars(each).values() for each in parts), strict=True)))

    def part(self, first: int, last: int) -> OpenRows:
        """Rows from one to another, which are not copied."""
        return OpenRows(*(each[first:last] for each in vars(self).values()))

    def __len__(self) -> int:
        return len(self.time)


class Before(NamedTuple):
    """The rounds before: when the pending ones were issued, how many rounds there were, and their usual lag."""

    issued: Sequence[int] = ()
    rounds: int = 0
    usual_lag: float | None = None


def run_order(
    rows: OpenRows,
    before: Before = Before(),  # noqa: B008
    *,
    at_once: bool,
    most: int,
) -> tuple[Events, list[int], list[int]]:
    """Events of a stream in order, entries evicted beyond ``most`` pending ones, and expired entries.

    An outcome is used before the next forecast if ``at_once``, else before the first one that was issued when it was
    known or later; in the order in which they were known.  One that is not good is dropped.  A forecast whose outcome
    is not known expires when one that was issued after it has its outcome, and more rounds were issued since than
    twice the usual lag and two, as in `orcast.rounds`; whether its outcome comes later does not matter.
    """
    old, n, there = len(before.issued), len(rows.time), rows.known
    count = int(there[old:].sum())
    if at_once and there[: old + count].all() and old + n - count <= most:
        return _order_at_once(rows, old), [], []
    run_rounds = _Order(rows, before, most)
    for i, cutoff in enumerate(rows.cutoff[old:].tolist(), old):
        run_rounds.settle(None if at_once else cutoff)
        run_rounds.expire()
        run_rounds.predict(i)
    if at_once:
        run_rounds.settle(None)
    return np.array(run_rounds.events, dtype=np.int64).reshape(-1, 2), run_rounds.evicted, run_rounds.expired


class _Order:
    """Events as they are put in order, one after the other."""

    def __init__(self, rows: OpenRows, before: Before, most: int) -> None:
        self.most, self.count, self.usual_lag = most, before.rounds, before.usual_lag
        self.events: list[tuple[int, int]] = []
        self.evicted: list[int] = []
        self.expired: list[int] = []
        self.pending = OrderedDict(enumerate(before.issued))  # round of each entry
        # the newest round that is over: counted back over those that are not
        self.newest_over, pending = before.rounds, set(before.issued)
        while self.newest_over in pending:
            self.newest_over -= 1
        times = rows.due.tolist(), rows.time.tolist(), rows.cutoff.tolist()
        self.due = list(zip(*times, range(len(rows.time)), strict=True))
        self.there, self.good = rows.known.tolist(), (~np.isnan(rows.value)).tolist()
        self.ready = [self.due[i] for i in self.pending if self.there[i]]
        heapq.heapify(self.ready)

    def settle(self, until: Any) -> None:
        """Use the outcomes that are known by then; all of them, if it is None."""
        ready = self.ready
        while ready and (until is None or ready[0][0] <= until):
            i = heapq.heappop(ready)[3]
            if i in self.pending:
                issued = self._end(i, SETTLE if self.good[i] else DROP)
                self.newest_over = max(self.newest_over, issued)
                if self.good[i]:
                    self.usual_lag = running_lag(self.usual_lag, float(self.count - issued))

    def expire(self) -> None:
        """Drop those whose outcome is not known for much longer than it usually takes."""
        while self.pending and self.usual_lag is not None:
            i, issued = next(iter(self.pending.items()))
            if self.count - issued <= 2.0 * self.usual_lag + 2.0 or self.newest_over < issued:
                return
            self._end(i, DROP)
            self.expired.append(i)

    def predict(self, i: int) -> None:
        """Issue a forecast; the oldest one that is pending makes way if there are too many."""
        if len(self.pending) >= self.most:
            self.evicted.append(next(iter(self.pending)))
            self._end(self.evicted[-1], DROP)
        self.count += 1
        self.events.append((PREDICT, i))
        self.pending[i] = self.count
        if self.there[i]:
            heapq.heappush(self.ready, self.due[i])

    def _end(self, i: int, kind: int) -> int:
        self.events.append((kind, i))
        return self.pending.pop(i)


def _order_at_once(rows: OpenRows, old: int) -> Events:
    """Events where each outcome is known before the next forecast, and none is lost or missing between others."""
    first = np.argsort(rows.time[:old], kind="stable")
    new = np.arange(old, len(rows.time))
    ends = np.where(np.isnan(rows.value), DROP, SETTLE)
    both = np.empty((len(new), 2, 2), dtype=np.int64)  # the forecast of each entry, and its outcome
    both[:, 0, 0], both[:, 1, 0], both[:, :, 1] = PREDICT, ends[new], new[:, None]
    happens = np.ones((len(new), 2), dtype=bool)
    happens[:, 1] = rows.known[new]
    return np.concatenate((np.column_stack((ends[first], first)), both[happens]))
