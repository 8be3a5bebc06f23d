"""Pools: streams that share information, and the committee that corrects their forecasts in one pass over time.

The output of a committee depends on base forecasts and known outcomes, not on the last layer.  So the pass goes over
time, all streams of a group abreast, and gives the corrected quantiles of every row; after it the streams are run by
themselves, in any order and thread.  With a pool a group is all series of the pool, else the horizons of one series.

Results do not depend on the order of rows, nor on how a frame is cut in time into calls with a state.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import reach_of
from orcast.committee.group import Group, GroupRun
from orcast.committee.members import plan_for
from orcast.committee.state import SERIES, Plan
from orcast.frame.bounds import scale_between, space_between
from orcast.frame.names import of_series
from orcast.frame.stream import PendingColumn, StreamKey, StreamRun
from orcast.frame.times import Clock, Stamps, new_clock, seasons_of
from orcast.frame.workers import NEVER, Stop
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.residuals import first_spread
from orcast.serialise import plain_id
from orcast.spaces import Interval, Line, OrderedSpace

if TYPE_CHECKING:
    from orcast.frame.run import FrameRun
    from orcast.frame.state import PanelContent

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NOTHING: Array = np.empty(0)
# Forecasts that are converted and issued at a time.
CHUNK = 8192
# Order of the events of a moment: an outcome comes before the forecasts that know it; where outcomes are known at once,
# after those of its own time.
OUTCOME, DROPPED, FORECAST, OWN_OUTCOME, FORGOTTEN = range(5)
# Least outcome where 0 stands for another bound of an interval: the committee takes roots where outcomes begin at 0.
NOT_ZERO = 1e-300
# Columns of the seasons of a series, in pairs of a short and a long one.
PRESUMED, SEASONS = (
    [SERIES.index(name) for name in names]
    for names in (("presumed_short", "presumed_long"), ("short_season", "long_season"))
)


@lru_cache(maxsize=100_000)
def name_of(key: Hashable) -> str:
    """Text by which series and horizons are ordered."""
    return json.dumps(plain_id(key))


def order_of(key: StreamKey) -> tuple[str, str]:
    """Texts by which streams are ordered."""
    return name_of(key[0]), name_of(key[1])


def plan_of(pooled: bool, corrects: bool) -> Plan:
    """Plan of the committee; all ordered spaces have the same levels."""
    space = Line()
    return plan_for(space.levels, space.scores, pooled=pooled, corrects=corrects)


def committee_bounds(space: OrderedSpace, low: float) -> tuple[float, float]:
    """Bounds of a committee on a space, for the lower bound of the outcomes in the user's units."""
    return NOT_ZERO if isinstance(space, Interval) and space.low == 0.0 != low else space.low, space.high


# --- state


@dataclass
class SeriesState:
    """A series between frames: its numbers in the committee, and its clock."""

    row: Array
    clock: Clock


@dataclass
class GroupState:
    """A group between frames; the numbers of its streams are with the streams."""

    series: dict[Hashable, SeriesState] = field(default_factory=dict)
    pools: dict[Hashable, Array] = field(default_factory=dict)  # by horizon

    def add(self, more: GroupState) -> None:
        """Let the series and pools of another state take the place of these."""
        self.series.update(more.series)
        self.pools.update(more.pools)


def steps_ahead_of(horizon: Hashable) -> int:
    """A horizon as a number of steps; 0 if it is none."""
    if isinstance(horizon, (int, float, np.number)) and not isinstance(horizon, bool):
        value = float(horizon)
        return int(value) if 1.0 <= value < 2**31 and value.is_integer() else 0
    return 0


# --- the pass


class GroupPass:
    """One pass over the rows of a group, from its state to the next one.

    Parameters
    ----------
    plan : of the committee
    before : state of the group
    runs : streams of the group, all of one model; idle ones are there for their neighbours
    """

    def __init__(self, plan: Plan, before: GroupState, runs: Sequence[StreamRun]) -> None:
        self.model, self.plan, self.before = runs[0].model, plan, before
        moving = {run.key[0] for run in runs if not run.idle}
        self.runs = sorted((run for run in runs if run.key[0] in moving), key=lambda run: order_of(run.key))
        self._rows()
        self._steps()
        self._group()

    def _rows(self) -> None:
        """Collect the open rows, stream by stream: those pending from before, then the new ones."""
        rows = [run.open_rows for run in self.runs]
        self.counts = np.array([len(each.time) for each in rows], dtype=np.int64)
        self.old = np.array([run.pending for run in self.runs], dtype=np.int64)
        self.starts = np.cumsum(self.counts) - self.counts
        self.stream = np.repeat(np.arange(len(rows), dtype=np.int32), self.counts)
        self.cutoff = np.concatenate([each.cutoff for each in rows])
        self.value = np.concatenate([each.value for each in rows])
        self.due = self.cutoff if self.model.at_once else np.concatenate([each.due for each in rows])
        self.settled, self.steps = np.zeros(len(self.due), dtype=bool), np.zeros(len(self.due), dtype=np.int64)
        self.new_starts = np.cumsum(self.counts - self.old) - (self.counts - self.old)
        self.is_new = np.ones(len(self.stream), dtype=bool)
        for i, run in enumerate(self.runs):
            run.open_rows.value = self.value[self.starts[i] : self.starts[i] + self.counts[i]]  # kept once
            if run.before is not None and run.pending:
                pending, old = run.before.pending, slice(self.starts[i], self.starts[i] + self.old[i])
                self.settled[old] = pending[:, PendingColumn.SETTLED] > 0.0
                self.steps[old], self.is_new[old] = pending[:, PendingColumn.STEP], False
        self.open_before = np.flatnonzero(~self.is_new & ~self.settled)
        self.frame_rows = np.concatenate([run.new_rows().astype(np.int32) for run in self.runs])
        self.point = self.edges = None
        if self.model.shape.kind == "point":
            self.point = np.concatenate([each.point for each in rows])
        if self.model.by_row:
            pairs = [np.column_stack((run.open_rows.low, run.open_rows.high))[run.pending :] for run in self.runs]
            self.edges = np.concatenate(pairs)

    def _place(self, rows: Integers) -> Integers:
        """Place of new rows among all new ones of the group."""
        stream = self.stream[rows]
        return np.asarray(rows - self.starts[stream] - self.old[stream] + self.new_starts[stream])

    def _steps(self) -> None:
        """Count the times of the new rows in steps of their series."""
        self.clocks: dict[Hashable, Clock] = {}
        first, ends = self.starts + self.old, self.starts + self.counts
        by_series: dict[Hashable, list[int]] = {}
        for i, run in enumerate(self.runs):
            by_series.setdefault(run.key[0], []).append(i)
        for key, streams in by_series.items():
            known = self.before.series.get(key)
            clock = new_clock(self.due.dtype) if known is None else known.clock
            at = np.concatenate([np.arange(first[i], ends[i]) for i in streams])
            if len(at):
                rows = [(self.runs[i].open_rows, self.runs[i].pending) for i in streams]
                time = np.concatenate([each.time[old:] for each, old in rows])
                order: Any = np.lexsort((time, self.cutoff[at])) if len(rows) > 1 else slice(None)
                self.steps[at[order]], clock = clock.advanced(time[order], self.cutoff[at[order]], self.model.dated)
            self.clocks[key] = clock

    def _group(self) -> None:
        """Set up the committee with the numbers of the state."""
        plan, by_row = self.plan, self.model.by_row
        self.series = {key: i for i, key in enumerate(self.clocks)}
        horizons = sorted({run.key[1] for run in self.runs}, key=name_of)
        self.horizons = {horizon: i for i, horizon in enumerate(horizons)}
        edges, reach, self.sides = [], [], np.empty((len(self.runs), 2))
        kinds: dict[tuple[float, float], tuple[Any, Any]] = {}
        for i, run in enumerate(self.runs):
            pair = run.between
            if pair not in kinds:
                space = space_between(pair[0], pair[1], by_row)
                kinds[pair] = committee_bounds(space, pair[0]), reach_of(space)
            self.sides[i] = pair
            edges.append(kinds[pair][0])
            reach.append(kinds[pair][1])
        self.reach = np.array(reach)
        seasons = np.zeros((len(self.series), 2))
        for i, clock in enumerate(self.clocks.values()):
            lags = seasons_of(clock.step)
            seasons[i, : len(lags)] = lags
        self.series_of = series = np.array([self.series[run.key[0]] for run in self.runs])
        pools = [self.horizons[run.key[1]] for run in self.runs]
        ahead = [steps_ahead_of(run.key[1]) for run in self.runs]
        self.group = group = Group(plan, series, pools, ahead, np.array(edges), seasons)
        for i, run in enumerate(self.runs):
            if run.before is not None and len(run.before.committee):
                group.stream_rows[i] = run.before.committee
        for name, i in self.series.items():
            known = self.before.series.get(name)
            if known is not None:
                group.series_rows[i] = known.row
                if known.clock.step < 0 < self.clocks[name].step:
                    # found with the second row, before which no season can matter
                    group.series_rows[i, PRESUMED] = group.series_rows[i, SEASONS] = seasons[i]
        for horizon, i in self.horizons.items() if plan.pooled else ():
            if horizon in self.before.pools:
                group.pool_rows[i] = self.before.pools[horizon]

    # --- events
    def _events(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Kind, row and moment of each event, in their order."""
        at_once, cutoff, due = self.model.at_once, self.cutoff, self.due
        new = np.flatnonzero(self.is_new).astype(np.int32)
        moments = np.unique(cutoff[new])
        issued = np.searchsorted(moments, cutoff[new]).astype(np.int32)
        dropped, when = self._dropped(moments)
        open_ = ~self.settled & ~np.isnan(self.value)
        open_[dropped] = False
        known = np.flatnonzero(open_).astype(np.int32)
        if at_once:
            # rows stand in the order of streams and times
            heard: Any = np.searchsorted(moments, due[known], side="right").astype(np.int32) - 1
        else:
            heard = np.searchsorted(moments, due[known])
            fine = heard < len(moments)
            if not self.plan.pooled:
                # series that share nothing do not depend on which others are run with them
                series = self.series_of[self.stream]
                last = np.full(len(self.series), -1, dtype=np.int64)
                np.maximum.at(last, series[new], issued)
                fine = heard <= last[series[known]]
            known, heard = known[fine], heard[fine]
            order = np.lexsort((cutoff[known], self.steps[known], due[known], self.stream[known]))
            known, heard = known[order], heard[order]
        self.settled[known] = True
        parts: list[tuple[int, Any, Any, int]] = [
            (SETTLE, known, heard, OWN_OUTCOME if at_once else OUTCOME),
            (DROP, dropped, when, DROPPED),
            (PREDICT, new, issued, FORECAST),
        ]
        if not self.model.remember:
            # no outcome comes any more
            left = np.ones(len(cutoff), dtype=bool)
            left[known] = left[dropped] = False
            left = left[new]
            parts.append((DROP, new[left], issued[left], FORGOTTEN))
        self.cutoff = self.due = cutoff = due = np.empty(0)  # as large as the frame, and not needed any more
        rank = np.concatenate([(8 * part[2] + part[3]).astype(np.int32) for part in parts])
        order = np.argsort(rank, kind="stable")
        kinds = np.concatenate([np.full(len(rows), kind, dtype=np.int8) for kind, rows, _, _ in parts])
        rows = np.concatenate([part[1].astype(np.int32) for part in parts])
        return kinds[order], rows[order], rank[order] >> 3

    def _dropped(self, moments: Stamps) -> tuple[Integers, Integers]:
        """Rows that the streams drop without an outcome, and the moment of the forecast before which they do."""
        found, when = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for i, run in enumerate(self.runs):
            drops = np.flatnonzero(run.events[:, 0] == DROP)
            if not len(drops):
                continue
            predicts = np.flatnonzero(run.events[:, 0] == PREDICT)
            following = np.searchsorted(predicts, drops)
            entries = run.events[predicts[np.minimum(following, len(predicts) - 1)], 1] if len(predicts) else drops
            at = np.searchsorted(moments, run.open_rows.cutoff[entries]) if len(predicts) else np.zeros_like(drops)
            at[following == len(predicts)] = len(moments)
            rows = self.starts[i] + run.events[drops, 1]
            fine = ~self.settled[rows]
            found.append(rows[fine])
            when.append(at[fine])
        return np.concatenate(found), np.concatenate(when)

    def play(self, stop: Stop = NEVER) -> GroupState:
        """Go over time, fill in the results of the runs, and return the state after it."""
        kinds, rows, moments = self._events()
        k, point = self.plan.level_count, self.point is not None
        count = int(self.is_new.sum())
        self.priors = np.empty((count, k))
        self.spreads = np.empty(count if point else 0)
        open_, memos = self.open_before, self._memos_before()
        local = np.empty(len(self.stream), dtype=np.int32)
        for a, b in self._chunks(kinds, moments):
            stop.check()
            part, kind = rows[a:b], kinds[a:b]
            fresh = part[kind == PREDICT]
            every = np.concatenate((open_, fresh))
            local[every] = np.arange(len(every))
            change = np.where(kind == PREDICT, 1, -1)
            capacity = len(open_) + max(int(np.cumsum(change).max(initial=0)), 0)
            base, prior = np.empty((len(every), k)), np.empty((len(every), k))
            more: dict[str, Any] = {}
            if self.point is not None:
                more = {"points": self.point[every], "spreads": np.zeros(len(every)), "reach": self.reach}
            self._fill_base(fresh, more["spreads"][len(open_) :] if more else base[len(open_) :])
            run = GroupRun(
                self.group, self.stream[every], self.steps[every], self.value[every], base, prior, capacity, **more
            )
            run.resume(memos)
            run.play(np.column_stack((kind, local[part], moments[a:b])))
            place = self._place(fresh)
            self.priors[place] = prior[len(open_) :]
            if point:
                self.spreads[place] = more["spreads"][len(open_) :]
            left = np.flatnonzero(run.place >= 0)
            open_, memos = every[left], run.memos(left)
        return self._after(open_, memos)

    def _chunks(self, kinds: NDArray[Any], moments: NDArray[Any]) -> list[tuple[int, int]]:
        """Parts of the events, each of whole moments, with about so many forecasts."""
        ends = np.append(np.flatnonzero(np.diff(moments) != 0) + 1, len(moments))
        issued = np.append(0, np.cumsum(kinds == PREDICT))[ends]
        cuts, done = [0], 0
        for end, so_far in zip(ends.tolist(), issued.tolist(), strict=True):
            if so_far - done >= CHUNK or end == len(moments):
                cuts.append(end)
                done = so_far
        return [(a, b) for a, b in pairwise(cuts) if a < b]

    def _memos_before(self) -> Array:
        """Memos of the rows that are pending from before and not settled."""
        found = [run.before.memos for run in self.runs if run.before is not None and run.pending]
        return np.concatenate([np.empty((0, self.plan.memo_size)), *(each for each in found if len(each))])

    # --- base forecasts
    def _fill_base(self, rows: Integers, out: Array) -> None:
        """Fill in the base quantiles of new rows, or the first spreads of points."""
        if not len(rows):
            return
        shape, by_row, place = self.model.shape, self.model.by_row, self._place(rows)
        low, high = (self.sides[self.stream[rows]] if self.edges is None else self.edges[place]).T
        given = self.model.forecasts(self.frame_rows[place])
        shift, scale = scale_between(low, high, by_row)
        pairs = np.column_stack((np.isfinite(low), np.isfinite(high)) if by_row else (low, high))
        kinds, which = np.unique(pairs, axis=0, return_inverse=True)
        which = which.ravel()
        for number in range(len(kinds)):
            own: Any = slice(None) if len(kinds) == 1 else np.flatnonzero(which == number)
            first = 0 if len(kinds) == 1 else int(own[0])
            space = space_between(float(low[first]), float(high[first]), by_row)
            if shape.kind == "point":
                found = first_spread(given[own, 0], space)
                out[own] = found if isinstance(space, Interval) else found / np.abs(scale[own])
            else:
                out[own] = shape.expert_rows(space, given[own], shift[own], scale[own])

    # --- results
    def _after(self, open_: Integers, memos: Array) -> GroupState:
        """Hand the results to the runs, and collect the state."""
        group, keep = self.group, bool(self.model.remember)
        order = np.argsort(open_, kind="stable")
        begins, ends = (np.searchsorted(open_[order], each) for each in (self.starts, self.starts + self.counts))
        for i, run in enumerate(self.runs):
            if run.idle:
                continue
            rows = slice(self.starts[i], self.starts[i] + self.counts[i])
            new = slice(self.new_starts[i], self.new_starts[i] + self.counts[i] - self.old[i])
            run.priors, run.settled, run.steps = self.priors[new], self.settled[rows], self.steps[rows]
            run.spreads = self.spreads[new] if len(self.spreads) else self.spreads
            run.committee = group.stream_rows[i].copy() if keep else NOTHING
            run.memos = memos[order[begins[i] : ends[i]]] if keep else memos[:0]
        series = {key: SeriesState(group.series_rows[i].copy(), self.clocks[key]) for key, i in self.series.items()}
        pools = {horizon: group.pool_rows[i].copy() for horizon, i in self.horizons.items()} if self.plan.pooled else {}
        return GroupState(series, pools)


# --- pools of a frame

# The group of a pool, and whether what is played is how far below a bound the outcome lies.
PoolKey = tuple[Hashable, bool]


class Pools:
    """Pools of a frame's series, and their state after it; without a pool each series is a group of its own."""

    def __init__(self, run: FrameRun, pool: bool | tuple[Any, ...]) -> None:
        self.run = run
        self.pooled = pool is not False and bool(run.layout.series)
        self.groups: dict[Hashable, Hashable] = self._groups(pool) if isinstance(pool, tuple) else {}
        self.keys: dict[Hashable, PoolKey] = {}
        if self.pooled:
            # where only an upper bound is known, distances below it are played
            self.keys = {
                key: (self.groups.get(key), not math.isfinite(low) and math.isfinite(high))
                for key, (low, high) in run.series_bounds.items()
            }
        self.after: dict[tuple[str, PoolKey], GroupState] = {}

    def _groups(self, columns: tuple[Any, ...]) -> dict[Hashable, Hashable]:
        run, names = self.run, ", ".join(columns)
        for name in columns:
            if name not in run.frame.reading.columns:
                raise ValueError(f"expected pool= as columns of the frame, got {name!r}")
        codes, values = run.frame.keys(columns)
        whose = np.zeros(len(run.keys), dtype=np.intp)
        whose[run.codes] = codes
        differs = np.flatnonzero(whose[run.codes] != codes)
        if len(differs):
            row = int(differs[0])
            code = int(run.codes[row])
            raise ValueError(
                f"expected one value of {names}{of_series(run.keys[code])}, got {values[int(codes[row])]!r} "
                f"in row {row} and {values[int(whose[code])]!r}"
            )
        groups, here = dict(run.content.groups), set(run.codes.tolist())
        for code, key in enumerate(run.keys):
            group = values[int(whose[code])] if code in here else groups[key]
            then = groups.setdefault(key, group)
            if then != group:
                raise ValueError(f"expected {names}{of_series(key)} as the state has it, {then!r}, got {group!r}")
        return groups

    def play(self, runs: Sequence[StreamRun], stop: Stop) -> None:
        """Run the committees of streams of one model, if it has any."""
        if not runs:
            return
        model, content = runs[0].model, self.run.content
        corrects = model.runner(*runs[0].between).corrected
        if not (corrects or model.shape.kind == "point"):
            return
        name, plan = model.form.model, plan_of(self.pooled, corrects)
        parts: dict[PoolKey, list[StreamRun]] = {}
        for each in runs:
            parts.setdefault(self.keys.get(each.key[0], (None, False)), []).append(each)
        for key, own in parts.items():
            if not all(each.idle for each in own):
                found = GroupPass(plan, content.pools.get((name, key), GroupState()), own).play(stop)
                self.after.setdefault((name, key), GroupState()).add(found)

    def commit(self, content: PanelContent) -> None:
        """Put the groups into a state."""
        for place, found in self.after.items():
            content.pools.setdefault(place, GroupState()).add(found)
        content.groups.update(self.groups)
