"""Pools of a panel: what its streams learn together, in one pass over time before their games are played.

What is pooled depends on the experts' forecasts and on the outcomes alone, not on the games.  So the pass goes over
time, all streams of a pool abreast, and leaves a table of signals: a row for each moment at which outcomes became known
to the pool.  The games then play by themselves, in any order and process, and hear the newest row of their moment.

Nothing depends on the order of rows, nor on how a frame is cut in time into calls with a state: a batch is what became
known until a forecast is issued, streams stand in the order of their names, and whether a batch is settled is decided
by what was known then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import reach_of
from orcast.engine import admissible
from orcast.engine.committee import POOLED
from orcast.kernels import pooling, records
from orcast.kernels.pool_state import SIGNAL, PoolMemory, PoolRows, PoolRules, PoolStreams, rows_with
from orcast.panel.bounds import scale_between, space_between
from orcast.panel.row_times import Stamps
from orcast.panel.stopping import NEVER, Stop
from orcast.residuals import first_spread
from orcast.serialise import id_from_plain, plain_id
from orcast.spaces import Interval, Line
from orcast.spaces.base import LARGEST

if TYPE_CHECKING:
    from orcast.panel.stream import StreamOptions

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
StreamKey = tuple[Hashable, Hashable]  # series and horizon

# An outcome that is known after so many later forecasts of its stream is not heard by the pool.
MOST_LATE = 100
# Outcomes wait until they are this share of the streams: where series keep no common time, each would be a batch.
BATCH_SHARE = 1.0 / 64.0
# Forecasts that are converted at a time.
CHUNK = 8192
# Columns: the count of a signal, the squares of evidence, the count of a tracker's unit.
COUNT, SQUARE = SIGNAL.index("count"), records.EVIDENCE.index("square")
UNIT_COUNT = records.TRACKER_UNIT.index("count")


class SignalTable(NamedTuple):
    """What the streams of a pool hear, and from when on."""

    stamps: Stamps  # when each batch was settled
    row_of: Integers  # the row of each batch and horizon, -1 where nothing is heard
    rows: Array
    begun: bool  # whether the first batch is of an earlier frame

    def heard(self, at: Integers, horizon: int) -> Integers:
        """The rows that are heard of batches, -1 where there is none."""
        found = np.full(len(at), -1, dtype=np.int64)
        if horizon >= 0:
            found[at >= 0] = self.row_of[at[at >= 0], horizon]
        return found


class PoolInput(NamedTuple):
    """Rows of a pool's streams, in any order; new ones and those that were seen before."""

    stream: Integers  # into `streams`
    there: NDArray[np.bool_]  # whether there is a forecast
    cutoff: Stamps
    time: Stamps
    due: Stamps
    y: Array
    low: Array
    high: Array
    given: Any  # a function of places among the rows: their forecasts
    streams: Sequence[StreamKey]


@dataclass
class OpenRows:
    """Forecasts of a pool whose outcomes it has not used."""

    stream: Integers
    serial: Integers  # forecasts of the stream before it
    cutoff: Stamps
    time: Stamps
    due: Stamps
    value: Array  # the outcome as it is played; nan if it is not known
    point: Array
    bounds: Array  # low and high of the outcome, in the user's units

    def __len__(self) -> int:
        return len(self.stream)

    def taken(self, keep: Any) -> OpenRows:
        """Some of the rows."""
        return OpenRows(*(each[keep] for each in vars(self).values()))

    def followed_by(self, more: OpenRows) -> OpenRows:
        """These rows, then others."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return OpenRows(*(np.concatenate(pair) for pair in pairs))


@dataclass
class PoolState:
    """A pool between frames."""

    streams: list[StreamKey]  # in the order of their names
    horizons: list[Hashable]
    memory: PoolMemory
    issued: Integers  # forecasts of each stream so far
    last: Stamps  # cutoff and time of the last
    clock: Any  # when the last batch was settled; None before any
    pending: OpenRows
    store: PoolRows  # quantiles of the pending rows


@lru_cache(maxsize=100_000)
def name_of(key: Hashable) -> str:
    """What series and horizons are ordered by."""
    return json.dumps(plain_id(key))


def order_of(key: StreamKey) -> tuple[str, str]:
    """What streams are ordered by."""
    return name_of(key[0]), name_of(key[1])


def rules() -> PoolRules:
    """What all pools have in common."""
    space = Line()
    return PoolRules(POOLED, space.levels, space.scores)


def new_pool(stamps: Any) -> PoolState:
    """A pool without streams, for times of a kind."""
    memory = PoolMemory(rules(), 0, 0)
    none, stamps = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=stamps)
    pending = OpenRows(none, none, stamps, stamps, stamps, np.zeros(0), np.zeros(0), np.zeros((0, 2)))
    last, store = np.zeros((0, 2), dtype=stamps.dtype), PoolRows(0, memory.rules.level_count)
    return PoolState([], [], memory, none, last, None, pending, store)


BY_HORIZON = ("own", "evidence", "batches", "members", "totals", "beyond", "spreads")
BY_STREAM = ("offsets", "seen", "unit", "ledger", "errors")


def with_streams(state: PoolState, more: Sequence[StreamKey]) -> PoolState:
    """A copy of a pool with more streams, in the order of their names."""
    streams = sorted({*state.streams, *more}, key=order_of)
    horizons = sorted({horizon for _, horizon in streams}, key=name_of)
    place = {key: i for i, key in enumerate(streams)}
    at = np.array([place[key] for key in state.streams], dtype=np.int64)
    column = {horizon: i for i, horizon in enumerate(horizons)}
    columns = np.array([column[horizon] for horizon in state.horizons], dtype=np.int64)

    def spread(array: NDArray[Any], places: Integers, count: int) -> NDArray[Any]:
        wide = np.zeros((count, *array.shape[1:]), dtype=array.dtype)
        wide[places] = array
        return wide

    memory = PoolMemory(state.memory.rules, len(horizons), len(streams))
    for name, array in state.memory.views().items():
        where: Any = columns if name in BY_HORIZON else at if name in BY_STREAM else slice(None)
        memory.view(name)[where] = array
    pending = state.pending.taken(np.arange(len(state.pending)))
    pending.stream = at[pending.stream]
    issued, last = spread(state.issued, at, len(streams)), spread(state.last, at, len(streams))
    return PoolState(streams, horizons, memory, issued, last, state.clock, pending, state.store)


def played_between(low: Array, high: Array, by_row: bool) -> tuple[Array, Array]:
    """The bounds of what is played, for bounds in the user's units."""
    below, above = np.isfinite(low), np.isfinite(high)
    least = np.where(below, 0.0 if by_row else low, np.where(above, 0.0, -math.inf))
    return least, np.where(below & above, 1.0 if by_row else high, math.inf)


def played_values(y: Array, low: Array, high: Array, options: StreamOptions) -> Array:
    """Outcomes as they are played; nan where they are missing or outside."""
    shift, scale = scale_between(low, high, options.by_row)
    least, most = (np.clip(side, -LARGEST, LARGEST) for side in played_between(low, high, options.by_row))
    with np.errstate(over="ignore", invalid="ignore"):
        value: Array = (y - shift) / scale
        if options.clip:
            value = np.where(np.isfinite(value), np.minimum(np.maximum(value, least), most), np.nan)
        return np.where((value >= least) & (value <= most), value, np.nan)


class PoolPass:
    """One pass over the rows of a pool, from its state to the next one."""

    def __init__(self, options: StreamOptions, before: PoolState | None, rows: PoolInput) -> None:
        self.options = options
        before = new_pool(rows.cutoff.dtype) if before is None else before
        new = self._new_rows(before, rows)
        state = self.state = with_streams(before, [rows.streams[s] for s in np.unique(rows.stream[new]).tolist()])
        self.rules = state.memory.rules
        self.begun = state.clock is not None
        self._outcomes_of_pending(rows)
        place = {key: i for i, key in enumerate(state.streams)}
        stream = np.array([place.get(key, -1) for key in rows.streams], dtype=np.int64)[rows.stream[new]]
        order = np.lexsort((rows.time[new], rows.cutoff[new], stream))
        self.old, self.new, self.given = len(state.pending), new[order], rows.given
        self._open(rows, self.new, stream[order])
        self._streams()

    def _new_rows(self, before: PoolState, rows: PoolInput) -> Integers:
        """Those after the last of their stream."""
        place = {key: i for i, key in enumerate(before.streams)}
        at = np.array([place.get(key, -1) for key in rows.streams], dtype=np.int64)[rows.stream]
        new = at < 0
        if len(before.streams):
            cutoff, time = before.last[at].T
            new |= (rows.cutoff > cutoff) | ((rows.cutoff == cutoff) & (rows.time > time))
        return np.flatnonzero(new & rows.there)

    def _outcomes_of_pending(self, rows: PoolInput) -> None:
        """Outcomes that rows of the frame bring to pending ones."""
        pending, state = self.state.pending, self.state
        if not len(pending):
            return
        found = {}
        for s, time, y, due in zip(
            rows.stream.tolist(), rows.time.tolist(), rows.y.tolist(), rows.due.tolist(), strict=True
        ):
            if y == y:
                key, horizon = rows.streams[s]
                # where there is one stream a series, a row is its own only
                found[key, horizon if self.options.at_once else None, time] = y, due
        for i, (s, time) in enumerate(zip(pending.stream.tolist(), pending.time.tolist(), strict=True)):
            key, horizon = state.streams[s]
            came = found.get((key, horizon if self.options.at_once else None, time))
            if came is not None and math.isnan(pending.value[i]):
                low, high = pending.bounds[i : i + 1].T
                pending.value[i] = played_values(np.array([came[0]]), low, high, self.options)[0]
                pending.due[i] = came[1]

    def _open(self, rows: PoolInput, new: Integers, stream: Integers) -> None:
        """Collect the open rows: those pending from before, then the new ones, stream by stream."""
        state, options = self.state, self.options
        low, high = rows.low[new], rows.high[new]
        counts = np.bincount(stream, minlength=len(state.streams))
        begins = np.cumsum(counts) - counts
        serial = np.arange(len(new)) - begins[stream] + state.issued[stream]
        point = np.full(len(new), np.nan)
        if options.shape.kind == "point":
            shift, scale = scale_between(low, high, options.by_row)
            point = (rows.given(new)[:, 0] - shift) / scale
        value = played_values(rows.y[new], low, high, options)
        stamps = rows.cutoff[new], rows.time[new], rows.due[new]
        self.rows = state.pending.followed_by(
            OpenRows(stream, serial, *stamps, value, point, np.column_stack((low, high)))
        )
        self.place = np.full(len(self.rows), -1, dtype=np.int64)
        self.settled = np.zeros(len(self.rows), dtype=bool)
        self.due = self.rows.due
        if state.clock is not None and self.old:
            # an outcome that comes late is known from now on
            self.due = self.due.copy()
            self.due[: self.old] = np.maximum(self.due[: self.old], state.clock)
        self.heard = ~np.isnan(self.rows.value) & ~self._too_late(counts, begins)
        state.issued = state.issued + counts
        ends = (begins + counts - 1)[counts > 0]
        state.last[counts > 0] = np.column_stack((rows.cutoff[new[ends]], rows.time[new[ends]]))

    def _too_late(self, counts: Integers, begins: Integers) -> NDArray[np.bool_]:
        """Whether too many forecasts of its stream were issued after each one, before its outcome was known."""
        stream = self.rows.stream
        ahead = self.rows.serial + MOST_LATE + 1 - self.state.issued[stream]  # a place among the new ones of the stream
        late: NDArray[np.bool_] = ahead < 0
        there = np.flatnonzero(~late & (ahead < counts[stream]))
        late[there] = self.rows.cutoff[self.old + begins[stream[there]] + ahead[there]] < self.due[there]
        return late

    def _streams(self) -> None:
        """Horizon, series and bounds of each stream."""
        state = self.state
        column = {horizon: i for i, horizon in enumerate(state.horizons)}
        series = {key: i for i, key in enumerate(dict.fromkeys(key for key, _ in state.streams))}
        of = np.array([series[key] for key, _ in state.streams], dtype=np.int64)
        begun = np.zeros(len(series))
        begun[of[state.memory.view("unit")[:, UNIT_COUNT] > 0.0]] = 1.0
        low, high = np.full(len(of), -math.inf), np.full(len(of), math.inf)
        at = self.rows.stream
        low[at], high[at] = played_between(self.rows.bounds[:, 0], self.rows.bounds[:, 1], self.options.by_row)
        reach = np.empty((len(of), 2))
        for least, most in np.unique(np.column_stack((low, high)), axis=0).tolist():
            reach[(low == least) & (high == most)] = reach_of(space_between(least, most, False))
        bounds = np.column_stack((low, high))
        np.clip(bounds, -1e110, 1e110, out=bounds)
        horizon = np.array([column[horizon] for _, horizon in state.streams], dtype=np.int64)
        self.streams = PoolStreams(horizon, of, begun, bounds, reach)

    # --- the pass
    def play(self, stop: Stop = NEVER) -> SignalTable:
        """Go over time; the state is the one after it."""
        self.store = self.state.store.grown(0)
        self.place[: self.old] = np.arange(self.old)
        self.free: Integers = np.empty(0, dtype=np.int64)
        self.stamps: list[Any] = []
        self.index: list[Integers] = []
        self.rows_out: list[Array] = []
        self.written = 0
        self.newest = np.full(len(self.state.horizons), -1, dtype=np.int64)
        if self.state.clock is not None:
            self._write(np.arange(len(self.state.horizons)), self.state.clock)
        cutoff = self.rows.cutoff
        at_once = self.options.at_once
        issued = np.argsort(cutoff[self.old :], kind="stable") + self.old
        known = np.flatnonzero(self.heard)
        known = known[np.argsort(self.due[known], kind="stable")]
        moments = np.unique(cutoff[issued])
        if at_once:
            moments = np.unique(np.concatenate((moments, self.due[: self.old][self.heard[: self.old]])))
        last = moments[-1] if len(moments) else None
        if not self.options.remember and last is not None:
            # what is never heard need not be said
            issued_all, issued = issued, issued[self.heard[issued] & (self.due[issued] <= last)]
        else:
            issued_all = issued
        chunks = self._chunks(issued)
        issue_ends = np.searchsorted(cutoff[issued], moments, side="right")
        known_ends = np.searchsorted(self.due[known], moments, side="right")
        begun = self._streams_begun(issued_all, moments)
        a = b = 0
        for moment, issue_end, known_end, streams in zip(
            moments, issue_ends.tolist(), known_ends.tolist(), begun.tolist(), strict=True
        ):
            stop.check()
            if at_once:
                self._issue(issued[a:issue_end], chunks)
            if known_end - b >= max(1.0, BATCH_SHARE * streams):
                self._settle(known[b:known_end], moment)
                b = known_end
            if not at_once:
                self._issue(issued[a:issue_end], chunks)
            a = issue_end
        self._keep()
        rows = np.concatenate(self.rows_out) if self.rows_out else np.empty((0, self.rules.signal_size))
        index = np.array(self.index, dtype=np.int64).reshape(len(self.stamps), len(self.state.horizons))
        return SignalTable(np.array(self.stamps, dtype=cutoff.dtype), index, rows, self.begun)

    def _streams_begun(self, issued: Integers, moments: Stamps) -> Integers:
        """How many streams had issued a forecast at each moment."""
        stream, cutoff = self.rows.stream[issued], self.rows.cutoff
        was = np.zeros(len(self.state.streams), dtype=bool)
        counts = np.bincount(stream, minlength=len(was))
        was[self.state.issued > counts] = True
        firsts = np.unique(stream, return_index=True)[1]
        firsts = firsts[~was[stream[firsts]]]
        begun = np.sort(cutoff[issued[firsts]])
        return int(was.sum()) + np.searchsorted(begun, moments, side="right")

    def _take_places(self, count: int) -> Integers:
        """Places for so many forecasts."""
        if len(self.free) < count:
            room = self.store.count
            more = max(count - len(self.free), room // 2, 256)
            self.store = self.store.grown(more)
            self.free = np.concatenate((np.arange(room + more - 1, room - 1, -1), self.free))
        taken, self.free = self.free[len(self.free) - count :], self.free[: len(self.free) - count]
        return taken

    def _chunks(self, issued: Integers) -> Iterator[tuple[Array, Array]]:
        """Quantiles, and spreads of points, of forecasts in the order in which they are issued: so many at a time."""
        for start in range(0, len(issued), CHUNK):
            yield self._experts(issued[start : start + CHUNK])

    def _experts(self, at: Integers) -> tuple[Array, Array]:
        shape, by_row = self.options.shape, self.options.by_row
        given = self.given(self.new[at - self.old])
        low, high = self.rows.bounds[at].T
        shift, scale = scale_between(low, high, by_row)
        rows, spreads = np.empty((len(at), self.rules.level_count)), np.empty(len(at))
        pairs = np.column_stack((np.isfinite(low), np.isfinite(high)) if by_row else (low, high))
        kinds, which = np.unique(pairs, axis=0, return_inverse=True)
        which = which.ravel()
        for number in range(len(kinds)):
            own: Any = slice(None) if len(kinds) == 1 else np.flatnonzero(which == number)
            first = 0 if len(kinds) == 1 else int(own[0])
            space = space_between(float(low[first]), float(high[first]), by_row)
            if shape.kind == "point":
                found = first_spread(given[own, 0], space)
                spreads[own] = found if isinstance(space, Interval) else found / np.abs(scale[own])
            else:
                rows[own] = shape.expert_rows(space, given[own], shift[own], scale[own])
        return rows, spreads

    _buffer: tuple[Array, Array] = (np.empty((0, 0)), np.empty(0))
    _used = 0

    def _issue(self, at: Integers, chunks: Iterator[tuple[Array, Array]]) -> None:
        """Some forecasts are issued."""
        while len(at):
            if self._used == len(self._buffer[0]):
                self._buffer, self._used = next(chunks), 0
            count = min(len(at), len(self._buffer[0]) - self._used)
            part = slice(self._used, self._used + count)
            places = self._take_places(count)
            point = self.options.shape.kind == "point"
            if not point:
                self.store.view("q")[places] = self._buffer[0][part]
            points = self.rows.point[at[:count]] if point else np.empty(0)
            pooling.issue(
                self.rules,
                self.state.memory,
                self.streams,
                self.rows.stream[at[:count]],
                places,
                points,
                np.ascontiguousarray(self._buffer[1][part]),
                self.store,
            )
            self.place[at[:count]] = places
            self._used += count
            at = at[count:]

    def _settle(self, at: Integers, moment: Any) -> None:
        """A batch of outcomes is known."""
        state = self.state
        rows = self.rows
        at = at[np.lexsort((rows.time[at], self.due[at], rows.stream[at]))]
        places, which = self.place[at], rows.stream[at]
        alone = state.memory.alone()
        points = rows.point[at] if self.options.shape.kind == "point" else np.empty(0)
        pooling.settle(self.rules, state.memory, self.streams, which, places, rows.value[at], points, self.store)
        self.place[at] = -1
        self.free = np.concatenate((self.free, places))
        self.settled[at] = True
        state.clock = moment
        changed = np.arange(len(state.horizons)) if alone else np.unique(self.streams.horizons[which])
        self._write(changed, moment)

    def _write(self, horizons: Integers, moment: Any) -> None:
        """What some horizons hear from now on."""
        memory = self.state.memory
        rows = np.empty((len(horizons), self.rules.signal_size))
        heard = np.zeros(len(horizons), dtype=np.int64)
        pooling.hear(memory, horizons, rows.reshape(-1), heard)
        alone = memory.alone()
        self.newest = self.newest.copy()
        count = self.written
        if alone:
            # all hear the same
            rows = rows[:1]
            self.newest[horizons] = np.where(heard > 0, count, -1)
        else:
            self.newest[horizons] = np.where(heard > 0, count + np.arange(len(horizons)), -1)
        self.rows_out.append(rows)
        self.written += len(rows)
        self.stamps.append(moment)
        self.index.append(self.newest)

    def _keep(self) -> None:
        """Keep the rows that stay pending."""
        state = self.state
        age = state.issued[self.rows.stream] - 1 - self.rows.serial
        keep = np.flatnonzero((self.place >= 0) & ~self.settled & (age <= MOST_LATE) & (self.options.remember > 0))
        state.pending, state.store = self.rows.taken(keep), self.store.taken(self.place[keep])


# --- files

POOL_MEMORY: admissible.Table = {
    **dict.fromkeys(("tally", "batches", "members", "unit", "errors"), admissible.COUNTED),
    **{name: {COUNT: admissible.COUNTED} for name in ("common", "own", "seen")},
    **{name: {SQUARE: admissible.COUNTED} for name in ("common_evidence", "evidence")},
    "offsets": admissible.VALUES,
    "totals": admissible.VALUES,
    "ledger": admissible.ANY,
    "beyond": admissible.ANY,
    "spreads": admissible.ANY,
}
PENDING: admissible.Table = {
    "value": admissible.Range(*admissible.VALUES[:2], missing=True),
    "point": admissible.Range(*admissible.VALUES[:2], missing=True),
    "bounds": admissible.Range(-math.inf, math.inf),
    "q": admissible.VALUES,
    "blends": admissible.VALUES,
    "batch": admissible.COUNTED,
}


def pool_to_plain(state: PoolState) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A pool as what JSON can hold, and named arrays, each in one row."""
    arrays: dict[str, NDArray[Any]] = {name: array.ravel() for name, array in state.memory.views().items()}
    pending = {**vars(state.pending), **state.store.views()}
    arrays |= {f"pending/{name}": array.ravel() for name, array in pending.items()}
    arrays |= {"issued": state.issued, "last": state.last.ravel()}
    arrays["clock"] = np.array([] if state.clock is None else [state.clock], dtype=state.last.dtype)
    return {"streams": [[plain_id(key), plain_id(horizon)] for key, horizon in state.streams]}, arrays


def pool_from_plain(plain: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> PoolState:
    """A pool from what `pool_to_plain` gave, or a reason why it is none."""
    keys = [(id_from_plain(key), id_from_plain(horizon)) for key, horizon in plain["streams"]]
    kind = arrays["last"].dtype
    if kind not in (np.dtype(np.int64), np.dtype(np.float64)):
        raise TypeError(f"times of a pool are {kind}")
    state = with_streams(new_pool(kind), keys)
    if state.streams != keys:
        raise ValueError("the streams of a pool are not in order")
    memory = state.memory.views()
    shaped = {name: arrays[name].reshape(array.shape) for name, array in memory.items()}
    admissible.Fields(memory, POOL_MEMORY).copy_into(memory, shaped)
    count = len(arrays["pending/stream"])
    levels = len(Line().levels)
    template = {
        **dict.fromkeys(("stream", "serial"), np.zeros(count, dtype=np.int64)),
        **dict.fromkeys(("cutoff", "time", "due"), np.zeros(count, dtype=kind)),
        **dict.fromkeys(("value", "point", "batch"), np.zeros(count)),
        "bounds": np.zeros((count, 2)),
        **dict.fromkeys(("q", "blends"), np.zeros((count, levels))),
    }
    table = {**dict.fromkeys(("stream", "serial", "cutoff", "time", "due"), admissible.Range(-math.inf, math.inf))}
    fields = admissible.Fields(template, {**table, **PENDING})
    found = {name: fields.checked(name, arrays[f"pending/{name}"].reshape(t.shape)) for name, t in template.items()}
    counts = {"issued": np.zeros(len(keys), dtype=np.int64), "last": np.zeros((len(keys), 2), dtype=kind)}
    fields = admissible.Fields(counts, {"issued": admissible.COUNTED, "last": table["due"]})
    state.issued, state.last = (fields.checked(name, arrays[name].reshape(t.shape)) for name, t in counts.items())
    if not ((found["stream"] >= 0) & (found["stream"] < len(keys))).all():
        raise ValueError("a pending row of a pool is of no stream")
    if not ((found["serial"] >= 0) & (found["serial"] < state.issued[found["stream"]])).all():
        raise ValueError("a pending row of a pool is not yet issued")
    if not (np.diff(found["q"], axis=1) >= 0.0).all():
        raise ValueError("a pending row of a pool has quantiles that are not in order")
    state.store = rows_with(*(found.pop(name) for name in ("q", "blends", "batch")))
    state.pending = OpenRows(**found)
    clock = arrays["clock"]
    if len(clock) != int(memory["members"].sum() > 0.0) or clock.dtype != kind:
        raise ValueError("the clock of a pool is no time")
    state.clock = clock[0] if len(clock) else None
    return state
