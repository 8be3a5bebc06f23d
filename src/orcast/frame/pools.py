"""Pools: streams that share information, and the committee that corrects their forecasts in one pass over time.

The output of a committee depends on base forecasts and known outcomes, not on the last layer.  So the pass goes over
time, all streams of a group abreast, and gives the corrected quantiles of every row; after it the streams are run by
themselves, in any order and thread.  With a pool a group is all series of the pool, else the horizons of one series.

Results do not depend on the order of rows, nor on how a frame is cut in time into calls with a state.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import reach_of
from orcast.committee.group import Group, GroupRun
from orcast.committee.state import KNOWN, SERIES, STREAM, Plan
from orcast.engine import admissible
from orcast.frame.ordering import OpenRows
from orcast.frame.runner import NEVER, Stop
from orcast.frame.stream import NOTHING, PendingColumn, Stream, StreamRun
from orcast.frame.times import NEW_CLOCK, Clock, Stamps, seasons_of
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.persistence import UNREADABLE, unusable
from orcast.residuals import first_spread
from orcast.serialise import plain_id
from orcast.spaces import Interval

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Forecasts that are converted and issued at a time.
CHUNK = 8192
# Order of the events of a moment: an outcome comes before the forecasts that know it; where outcomes are known at once,
# after those of its own time.
OUTCOME, DROPPED, FORECAST, OWN_OUTCOME, FORGOTTEN = range(5)
# Least outcome where 0 stands for another bound of an interval: the committee takes roots where outcomes begin at 0.
NOT_ZERO = 1e-300
# Bound that stands for infinity in the row of a stream, and the columns of its bounds.
FARTHEST, BOUNDS = 1e110, [STREAM.index("low"), STREAM.index("high")]
# Largest index of a time.
MOST_STEPS = 10**15
# Columns of the seasons of a series, in pairs of a short and a long one.
PRESUMED, SEASONS = (
    [SERIES.index(name) for name in names]
    for names in (("presumed_short", "presumed_long"), ("short_season", "long_season"))
)


@lru_cache(maxsize=100_000)
def name_of(key: Hashable) -> str:
    """Text by which series and horizons are ordered."""
    return json.dumps(plain_id(key))


# --- state


class SeriesState(NamedTuple):
    """A series between frames: its numbers in the committee, and its clock."""

    row: Array
    clock: Clock


@dataclass
class GroupState:
    """A group between frames; the numbers of its streams are with the streams."""

    series: dict[Hashable, SeriesState] = field(default_factory=dict)
    pools: dict[Hashable, Array] = field(default_factory=dict)  # by horizon


def steps_ahead_of(horizon: Hashable) -> int:
    """A horizon as a number of steps; 0 if it is none."""
    if isinstance(horizon, (int, float, np.number)) and not isinstance(horizon, bool):
        value = float(horizon)
        return int(value) if 1.0 <= value < 2**31 and value.is_integer() else 0
    return 0


# --- the pass


class GroupPass:
    """One pass over the streams of a group, all of one model; idle ones are there for their neighbours."""

    def __init__(self, plan: Plan, before: GroupState, runs: Sequence[StreamRun]) -> None:
        self.model, self.plan, self.before = runs[0].model, plan, before
        self.space: Any = self.model.space
        moving = {run.key[0] for run in runs if not run.idle}
        self.runs = sorted((run for run in runs if run.key[0] in moving), key=lambda run: tuple(map(name_of, run.key)))
        counts = [len(run.open_rows) for run in self.runs]
        self.starts = np.cumsum([0, *counts])
        self.stream = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self.rows = OpenRows.joined(run.open_rows for run in self.runs)
        for run, (first, last) in zip(self.runs, pairwise(self.starts.tolist()), strict=True):
            run.open_rows = self.rows.part(first, last)
        self.is_new = self.rows.row >= 0
        self._count_steps()
        try:
            self._resume()
        except UNREADABLE as reason:
            raise unusable(reason) from reason

    def _count_steps(self) -> None:
        """Count the times of the new rows in steps of their series."""
        rows, self.clocks = self.rows, dict[Hashable, Clock]()
        for key, own in groupby(range(len(self.runs)), key=lambda i: self.runs[i].key[0]):
            streams, known = list(own), self.before.series.get(key)
            clock = NEW_CLOCK if known is None else known.clock
            first, last = self.starts[streams[0]], self.starts[streams[-1] + 1]
            at = first + np.flatnonzero(self.is_new[first:last])
            if len(at):
                at = at[np.lexsort((rows.time[at], rows.cutoff[at]))] if len(streams) > 1 else at
                rows.step[at], clock = clock.advanced(rows.time[at], rows.cutoff[at], self.model.dated)
            self.clocks[key] = clock

    def _resume(self) -> None:
        """Set up the committee with the numbers of the state."""
        plan, before, runs, space = self.plan, self.before, self.runs, self.space
        self.series = {key: i for i, key in enumerate(self.clocks)}
        self.horizons = {key: i for i, key in enumerate(sorted({run.key[1] for run in runs}, key=name_of))}
        seasons = np.zeros((len(self.series), 2))
        for i, clock in enumerate(self.clocks.values()):
            lags = seasons_of(clock.step)
            seasons[i, : len(lags)] = lags
        self.reach = np.array([reach_of(space)] * len(runs))
        edges = np.array([(space.low, space.high)] * len(runs))
        for i, run in enumerate(runs):
            if isinstance(space, Interval) and run.count and space.low == 0.0 != run.low[0]:
                edges[i, 0] = NOT_ZERO
            if run.before is not None:
                sides = run.before.committee[BOUNDS]
                edges[i] = np.where(np.abs(sides) < FARTHEST, sides, np.copysign(np.inf, sides))
        self.series_of = np.array([self.series[run.key[0]] for run in runs])
        pools = [self.horizons[run.key[1]] for run in runs]
        ahead = [steps_ahead_of(run.key[1]) for run in runs]
        self.group = group = Group(plan, self.series_of, pools, ahead, edges, seasons)
        begun = [run for run in runs if run.before is not None]
        for key in {run.key[0] for run in begun} | (self.series.keys() & before.series):
            i, known = self.series[key], before.series[key]
            group.series_rows[i] = known.row
            if known.clock.step < 0 < self.clocks[key].step:
                # found with the second row, before which no season can matter
                group.series_rows[i, PRESUMED] = group.series_rows[i, SEASONS] = seasons[i]
        for key in ({run.key[1] for run in begun} | (self.horizons.keys() & before.pools)) if plan.pooled else ():
            group.pool_rows[self.horizons[key]] = before.pools[key]
        for i, run in enumerate(runs):
            if run.before is not None:
                group.stream_rows[i] = run.before.committee
                _check_pending(plan, run.before)
        if begun:
            admissible.check_group(group)

    # --- events
    def _events(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Kind, row and moment of each event, in their order."""
        at_once, cutoff, settled = self.model.at_once, self.rows.cutoff, self.rows.settled
        due = cutoff if at_once else self.rows.due
        new = np.flatnonzero(self.is_new).astype(np.int32)
        moments = np.unique(cutoff[new])
        issued = np.searchsorted(moments, cutoff[new]).astype(np.int32)
        dropped, when = self._dropped(moments)
        open_ = ~settled & ~np.isnan(self.rows.value)
        open_[dropped] = False
        known = np.flatnonzero(open_).astype(np.int32)
        if at_once:
            # rows stand in the order of streams and times
            used_at: Any = np.searchsorted(moments, due[known], side="right").astype(np.int32) - 1
        else:
            used_at = np.searchsorted(moments, due[known])
            fine = used_at < len(moments)
            if not self.plan.pooled:
                # series that share nothing do not depend on which others are run with them
                series = self.series_of[self.stream]
                last = np.full(len(self.series), -1, dtype=np.int64)
                np.maximum.at(last, series[new], issued)
                fine = used_at <= last[series[known]]
            known, used_at = known[fine], used_at[fine]
            order = np.lexsort((cutoff[known], self.rows.step[known], due[known], self.stream[known]))
            known, used_at = known[order], used_at[order]
        settled[known] = True
        parts: list[tuple[int, Any, Any, int]] = [
            (SETTLE, known, used_at, OWN_OUTCOME if at_once else OUTCOME),
            (DROP, dropped, when, DROPPED),
            (PREDICT, new, issued, FORECAST),
        ]
        if not self.model.remember:
            # no outcome comes any more
            left = np.ones(len(cutoff), dtype=bool)
            left[known] = left[dropped] = False
            left = left[new]
            parts.append((DROP, new[left], issued[left], FORGOTTEN))
        rank = np.concatenate([(8 * part[2] + part[3]).astype(np.int32) for part in parts])
        order = np.argsort(rank, kind="stable")
        kinds = np.concatenate([np.full(len(rows), kind, dtype=np.int8) for kind, rows, _, _ in parts])
        rows = np.concatenate([part[1].astype(np.int32) for part in parts])
        return kinds[order], rows[order], rank[order] >> 3

    def _dropped(self, moments: Stamps) -> tuple[Integers, Integers]:
        """Rows that the streams drop without an outcome, and the moment of the forecast before which they do."""
        found, when = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for start, run in zip(self.starts.tolist(), self.runs, strict=False):
            kinds, entries = run.events.T
            drops, predicts = np.flatnonzero(kinds == DROP), np.flatnonzero(kinds == PREDICT)
            if len(drops):
                issued = np.searchsorted(moments, run.open_rows.cutoff[entries[predicts]])
                at = np.append(issued, len(moments))[np.searchsorted(predicts, drops)]
                fine = ~run.open_rows.settled[entries[drops]]
                found.append(start + entries[drops][fine])
                when.append(at[fine])
        return np.concatenate(found), np.concatenate(when)

    def run_rounds(self, stop: Stop = NEVER) -> GroupState:
        """Go over time, fill in the results of the runs, and return the state after it."""
        open_ = np.flatnonzero(~self.is_new & ~self.rows.settled)
        begun = [run.before for run in self.runs if run.before is not None and not run.idle]
        memos = [stream.memos for stream in begun if len(stream.memos)]
        memos_ = np.concatenate([np.empty((0, self.plan.memo_size)), *memos])
        kinds, rows, moments = self._events()
        k, point = self.plan.level_count, self.model.shape.kind == "point"
        self.priors, self.spreads = np.empty((len(self.rows), k)), np.empty(len(self.rows) if point else 0)
        local = np.empty(len(self.rows), dtype=np.int32)
        for a, b in _chunks(kinds, moments):
            stop.check()
            part, kind = rows[a:b], kinds[a:b]
            fresh, old = part[kind == PREDICT], len(open_)
            every = np.concatenate((open_, fresh))
            local[every] = np.arange(len(every))
            change = np.where(kind == PREDICT, 1, -1)
            capacity = old + max(int(np.cumsum(change).max(initial=0)), 0)
            base, prior, spreads = np.empty((len(every), k)), np.empty((len(every), k)), np.zeros(len(every))
            self._fill_base(fresh, spreads[old:] if point else base[old:])
            more = {"points": self.rows.point[every], "spreads": spreads, "reach": self.reach} if point else {}
            run = GroupRun(
                *(self.group, self.stream[every], self.rows.step[every], self.rows.value[every]),
                *(base, prior, capacity),
                **more,
            )
            run.resume(memos_)
            run.run_rounds(np.column_stack((kind, local[part], moments[a:b])))
            self.priors[fresh] = prior[old:]
            if point:
                self.spreads[fresh] = spreads[old:]
            left = np.flatnonzero(run.place >= 0)
            open_, memos_ = every[left], run.memos(left)
        return self._after(open_, memos_)

    def _fill_base(self, rows: Integers, out: Array) -> None:
        """Fill in the base quantiles of new rows, or the first spreads of points."""
        if not len(rows):
            return
        shape, given = self.model.shape, self.model.forecasts(self.rows.row[rows])
        shift, scale = self.model.units(self.rows.low[rows], self.rows.high[rows])
        if shape.kind == "point":
            found = first_spread(given[:, 0], self.space)
            out[:] = found if isinstance(self.space, Interval) else found / np.abs(scale)
        else:
            out[:] = shape.expert_rows(self.space, given, shift, scale)

    def _after(self, open_: Integers, memos: Array) -> GroupState:
        """Hand the results to the runs, and collect the state."""
        group, keep = self.group, bool(self.model.remember)
        order = np.argsort(open_, kind="stable")
        cuts = np.searchsorted(open_[order], self.starts)
        for i, run in enumerate(self.runs):
            if not run.idle:
                new = slice(self.starts[i + 1] - run.new, self.starts[i + 1])
                run.priors, run.spreads = self.priors[new], self.spreads[new] if len(self.spreads) else NOTHING
                run.committee = group.stream_rows[i].copy() if keep else NOTHING
                run.memos = memos[order[cuts[i] : cuts[i + 1]]] if keep else memos[:0]
        series = {key: SeriesState(group.series_rows[i].copy(), self.clocks[key]) for key, i in self.series.items()}
        pools = {horizon: group.pool_rows[i].copy() for horizon, i in self.horizons.items()} if self.plan.pooled else {}
        return GroupState(series, pools)


def _chunks(kinds: NDArray[Any], moments: NDArray[Any]) -> list[tuple[int, int]]:
    """Parts of the events, each of whole moments, with about `CHUNK` forecasts."""
    ends = np.append(np.flatnonzero(np.diff(moments) != 0) + 1, len(moments))
    issued = np.append(0, np.cumsum(kinds == PREDICT))[ends]
    cuts, done = [0], 0
    for end, so_far in zip(ends.tolist(), issued.tolist(), strict=True):
        if so_far - done >= CHUNK or end == len(moments):
            cuts.append(end)
            done = so_far
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def _check_pending(plan: Plan, stream: Stream) -> None:
    """Refuse pending rows of a state that no run leads to."""
    memos, (step, settled) = stream.memos, stream.pending[:, [PendingColumn.STEP, PendingColumn.SETTLED]].T
    if not ((np.abs(step) <= MOST_STEPS) & (step == np.rint(step)) & np.isin(settled, (0.0, 1.0))).all():
        raise ValueError("a stream has pending rows at no time")
    if memos.shape != (int((settled == 0.0).sum()), plan.memo_size if len(memos) else memos.shape[1]):
        raise ValueError("a stream has other memos than pending rows")
    if len(memos):
        admissible.check_memos(plan, memos)
        serial = memos[:, KNOWN.index("serial")]
        if not ((serial >= 1.0) & (serial <= stream.committee[STREAM.index("issued")])).all():
            raise ValueError("a stream has a pending row that is not yet issued")
