"""The order of play: which rows of a frame make a stream, in which order, and what was known to each.

A stream is one series at one horizon.  Without a column of cutoffs its rows are in the order of their times, and the
outcome of each is known before the next.  With one they are in the order of their cutoffs, and the outcome of a time is
known to forecasts whose cutoff is that time or later.  Unless a column says it, the horizon is the place of a row among
those of its series and cutoff, from 1.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.events import EventKind
from orcast.panel.frame import Codes, Frame, Times, show_time

Array = NDArray[np.float64]
Events = NDArray[np.int64]  # kind and entry of each
Stamps = NDArray[Any]  # int64, or float64 where times are numbers

# As plain numbers: Python 3.11 is slow in looking up members of an enum, and streams may be short.
PREDICT, SETTLE, DROP = map(int, EventKind)
# A series' cutoffs and times that were seen before, a row each, in order.
Calendar = dict[Hashable, Stamps]


@dataclass(frozen=True)
class Streams:
    """Rows in the order of play, stream after stream.

    ``order`` are the rows of the frame, ``starts`` where each stream begins in it (and its end), ``series`` and
    ``horizons`` whose they are.  ``time`` and ``cutoff`` are those of the rows of the frame.
    """

    order: Codes
    starts: Codes
    series: Codes
    horizons: list[Hashable]
    time: Stamps
    cutoff: Stamps
    kind: str
    at_once: bool  # whether each outcome is known before the next forecast

    def __len__(self) -> int:
        return len(self.series)

    def and_empty(self, more: Sequence[tuple[int, Hashable]]) -> Streams:
        """Also streams that have no rows here, by series and horizon: an outcome may be one that they wait for."""
        return dataclasses.replace(
            self,
            starts=np.append(self.starts, np.full(len(more), self.starts[-1])),
            series=np.append(self.series, np.array([code for code, _ in more], dtype=self.series.dtype)),
            horizons=[*self.horizons, *(horizon for _, horizon in more)],
        )


def read_times(frame: Frame, time: Any, cutoff: Any, codes: Codes, counted: Stamps) -> tuple[Times, Times | None]:
    """The times and the cutoffs of all rows; where there is no column, rows are counted on from ``counted``."""
    if time is None:
        if cutoff is not None:
            raise ValueError(f"expected a column of times beside the cutoffs in {cutoff!r}, got none: name it by time=")
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(counted)))
        places = np.empty(len(codes), dtype=np.int64)
        places[order] = np.arange(len(codes)) - starts[codes[order]]
        return Times("places", places + counted[codes]), None
    times = frame.times(time)
    if cutoff is None:
        return times, None
    cutoffs = frame.times(cutoff, "cutoff")
    if cutoffs.kind != times.kind:
        if {cutoffs.kind, times.kind} == {"numbers", "whole numbers"}:
            return Times("numbers", times.values.astype(float)), Times("numbers", cutoffs.values.astype(float))
        raise ValueError(f"expected times and cutoffs of one kind, got {times.kind} and {cutoffs.kind}")
    return times, cutoffs


def arrange(
    frame: Frame,
    times: Times,
    cutoffs: Times | None,
    horizon: Any,
    codes: Codes,
    keys: Sequence[Hashable],
    calendar: Calendar,
) -> Streams:
    """Put the rows in the order of play."""
    time = times.values
    at_once = cutoffs is None
    cutoff = time if cutoffs is None else cutoffs.values
    if horizon is not None:
        which, names = frame.keys([horizon])
        if at_once:
            at_once, cutoff = _cutoff_from(frame, horizon, times, names)
    elif cutoffs is None:
        which, names = np.zeros(len(time), dtype=np.intp), [None]
    else:
        _refuse_twice(np.lexsort((time, cutoff, codes)), (codes, cutoff, time), keys, times)
        ranks = _ranks(codes, cutoff, time, keys, calendar, times)
        which = ranks - 1
        names = list(range(1, int(ranks.max(initial=1)) + 1))
    order = np.lexsort((time, cutoff, which, codes))
    _refuse_twice(order, (codes, which, cutoff, time), keys, times)
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(codes[order]) != 0) | (np.diff(which[order]) != 0)
    starts = np.flatnonzero(first)
    return Streams(
        order,
        np.append(starts, len(order)),
        codes[order[starts]],
        [names[i] for i in which[order[starts]].tolist()],
        time,
        cutoff,
        times.kind,
        at_once,
    )


def _cutoff_from(frame: Frame, horizon: Any, times: Times, names: Sequence[Hashable]) -> tuple[bool, Stamps]:
    """When forecasts were made, from horizons alone: they must be 1, or numbers as the times are."""
    if all(name == 1 for name in names):
        return True, times.values
    if times.kind in ("numbers", "whole numbers") and frame.column(horizon).dtype.is_numeric():
        return False, times.values - frame.numbers(horizon)
    raise ValueError(f"expected a column of cutoffs beside the horizons in {horizon!r}, got none: name it by cutoff=")


def _refuse_twice(order: Codes, columns: Sequence[NDArray[Any]], keys: Sequence[Hashable], times: Times) -> None:
    """No two rows of one series, time and cutoff."""
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        same &= np.diff(column[order]) == 0
    if not same.any():
        return
    at = int(same.argmax())
    a, b = sorted((int(order[at]), int(order[at + 1])))
    key = keys[int(columns[0][a])]
    whose = "" if key is None else f" of series {key!r}"
    more = f" (and {int(same.sum()) - 1} more such pairs)" if same.sum() > 1 else ""
    asked = "; a column of cutoffs is named by cutoff=" if columns[-1] is columns[-2] else ""
    raise ValueError(
        f"expected one row{whose} for each time and cutoff, got rows {a} and {b} for {times.show(times.values[a])}"
        f"{more}{asked}"
    )


def _ranks(
    codes: Codes, cutoff: Stamps, time: Stamps, keys: Sequence[Hashable], calendar: Calendar, times: Times
) -> Codes:
    """The place of each row among those of its series and cutoff, those of earlier frames included."""
    n = len(codes)
    earlier = [(i, calendar[key]) for i, key in enumerate(keys) if key in calendar and len(calendar[key])]
    if earlier:
        codes = np.concatenate([codes, *(np.full(len(seen), i) for i, seen in earlier)])
        cutoff = np.concatenate([cutoff, *(seen[:, 0] for _, seen in earlier)])
        time = np.concatenate([time, *(seen[:, 1] for _, seen in earlier)])
    # a row that was seen before comes first among its likes, so that it is counted once
    order = np.lexsort((np.arange(len(codes)) < n, time, cutoff, codes))
    new_group = np.ones(len(order), dtype=bool)
    new_group[1:] = (np.diff(codes[order]) != 0) | (np.diff(cutoff[order]) != 0)
    new_time = new_group.copy()
    new_time[1:] |= np.diff(time[order]) != 0
    counted = np.cumsum(new_time)
    begins = counted[new_group][np.cumsum(new_group) - 1]
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = counted - begins + 1
    if earlier:
        _refuse_between(order, n, new_group, new_time, ranks, cutoff, time, times)
    return ranks[:n]


def _refuse_between(
    order: Codes,
    n: int,
    new_group: NDArray[np.bool_],
    new_time: NDArray[np.bool_],
    ranks: Codes,
    cutoff: Stamps,
    time: Stamps,
    times: Times,
) -> None:
    """A new time of a cutoff may not come before one that has its place already."""
    was = order >= n
    unseen = new_time & ~was
    group = np.cumsum(new_group) - 1
    # places of rows seen before, counted among such rows only
    places = np.cumsum(was)
    places = places - (places - was)[new_group][group]
    moved = was & (places != ranks[order])
    if not moved.any():
        return
    at = int(moved.argmax())
    row = int(order[unseen & (group == group[at])][0])
    raise ValueError(
        f"expected the rows of a cutoff in the order of their times from frame to frame, got {times.show(time[row])} "
        f"in row {row} after later ones of the cutoff {times.show(cutoff[row])}: name a column by horizon= instead"
    )


def fill_outcomes(
    streams: Streams, codes: Codes, keys: Sequence[Hashable], y: Array, labels: Sequence[str] = ()
) -> tuple[Array, Codes]:
    """Each row's outcome, from another row of its series and time where it has none itself; and one row for each.

    The rows come in the order of series and time.
    """
    if streams.at_once:
        return y, np.flatnonzero(~np.isnan(y))
    # known outcomes first, then missing ones
    order = np.lexsort((np.isnan(y), streams.time, codes))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(codes[order]) != 0) | (np.diff(streams.time[order]) != 0)
    leader = order[first][np.cumsum(first) - 1]
    differs = ~np.isnan(y[order]) & (y[order] != y[leader])
    if differs.any():
        at = int(differs.argmax())
        a, b = sorted((int(order[at]), int(leader[at])))
        key = keys[int(codes[a])]
        one, other = (repr(labels[int(value)]) if labels else f"{value:g}" for value in (y[a], y[b]))
        raise ValueError(
            f"expected one outcome{'' if key is None else f' of series {key!r}'} at "
            f"{show_time(streams.kind, streams.time[a])}, got {one} in row {a} and {other} in row {b}"
        )
    filled = np.empty(len(y))
    filled[order] = y[leader]
    known = order[first]
    return filled, known[~np.isnan(y[known])]


def seen_dates(calendar: Stamps | None, cutoff: Stamps, time: Stamps, most: int) -> Stamps:
    """A series' cutoffs and times, with new ones, of at most so many cutoffs."""
    rows = np.column_stack((cutoff, time))
    if calendar is not None:
        rows = np.concatenate((calendar, rows))
    rows = np.unique(rows, axis=0)
    cutoffs = np.unique(rows[:, 0])
    return rows[rows[:, 0] >= cutoffs[-most]] if len(cutoffs) > most else rows


def order_of_play(
    at_once: bool,
    time: Stamps,
    cutoff: Stamps,
    known: NDArray[np.bool_],
    good: NDArray[np.bool_],
    old: int,
    most: int,
) -> tuple[Events, list[int]]:
    """What happens to the entries of a stream, in order; and which of them are lost because too many are pending.

    The first ``old`` entries are pending from before.  An outcome that is ``known`` is used before the next forecast if
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
    return np.column_stack((np.array(kinds, dtype=np.int64), np.array(which, dtype=np.int64))), lost


def _order_at_once(time: Stamps, known: NDArray[np.bool_], good: NDArray[np.bool_], old: int) -> Events:
    """The same where each outcome is known before the next forecast and none is lost."""
    first = np.flatnonzero(known[:old])
    first = first[np.argsort(time[first], kind="stable")]
    new = np.arange(old, len(time))
    ends = np.where(good, SETTLE, DROP)
    both = np.empty((len(new), 2, 2), dtype=np.int64)  # the forecast of each entry, and its outcome
    both[:, 0, 0], both[:, 1, 0], both[:, :, 1] = PREDICT, ends[new], new[:, None]
    happens = np.ones((len(new), 2), dtype=bool)
    happens[:, 1] = known[new]
    return np.concatenate((np.column_stack((ends[first], first)), both[happens]))
