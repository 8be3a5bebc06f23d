"""The committee of one stream that shares nothing with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import reach_of
from orcast.committee.group import Group, GroupRun
from orcast.engine import admissible
from orcast.frame.groups import PRESUMED, SEASONS, bounds_of, plan_of
from orcast.kernels.records import PREDICT
from orcast.spaces import OrderedSpace

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class LoneState(NamedTuple):
    """The committee of a stream that shares nothing: its numbers, those of its series, and memos of pending rounds."""

    stream: Array
    series: Array
    memos: Array


def run_alone(
    state: LoneState | None,
    space: OrderedSpace,
    bounds: tuple[float, float],
    values: Array,
    experts: Array,
    events: Integers,
    *,
    issued: int = 0,
    seasons: Sequence[int] = (),
    points: Array | None = None,
    spreads: Array | None = None,
) -> tuple[Array, LoneState]:
    """Run the committee of one stream; return the corrected quantiles of its new forecasts, and its state after them.

    Parameters
    ----------
    state : before the events
    space, bounds : of the outcomes, and `committee_bounds` where the stream begins
    values : outcomes of all entries; those pending from before come first, then the new ones
    experts : base quantiles of the new forecasts; filled in for points
    events : kind and entry of each
    issued : forecasts before the new ones, which are counted as the time
    seasons : from the calendar, if they are known with these forecasts
    points, spreads : point forecasts of all entries, and the first spreads of the new ones
    """
    plan = plan_of(False, True)
    lags = np.zeros((1, 2))
    lags[0, : len(seasons)] = seasons
    edges = np.array([bounds]) if state is None else bounds_of(state.stream[None])
    group = Group(plan, [0], [0], [0], edges, lags)
    old = 0 if state is None else len(state.memos)
    if state is not None:
        group.stream_rows[0], group.series_rows[0] = state.stream, state.series
        if seasons:
            group.series_rows[0, PRESUMED] = group.series_rows[0, SEASONS] = lags[0]
        admissible.check_group(group)
        admissible.check_memos(plan, state.memos)
    rows = len(values)
    base, prior = np.empty((rows, plan.level_count)), np.empty((rows, plan.level_count))
    base[old:] = experts
    time = np.concatenate((np.zeros(old, dtype=np.int64), issued + np.arange(rows - old)))
    more: dict[str, Any] = {}
    if points is not None and spreads is not None:
        more = {"points": points, "spreads": np.append(np.zeros(old), spreads), "reach": np.array([reach_of(space)])}
    capacity = old + int(np.cumsum(np.where(events[:, 0] == PREDICT, 1, -1)).max(initial=0))
    run = GroupRun(group, np.zeros(rows, dtype=np.int64), time, values, base, prior, capacity, **more)
    run.resume(np.empty((0, plan.memo_size)) if state is None else state.memos)
    run.play(np.column_stack((events, np.arange(len(events)))))
    experts[...] = base[old:]
    left = np.flatnonzero(run.place >= 0)
    return prior[old:], LoneState(group.stream_rows[0], group.series_rows[0], run.memos(left))
