"""Groups of a frame: the streams of a frame that share information, and their committees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.engine import Committee
from orcast.frame.groups import GroupPass, GroupState, plan_of
from orcast.frame.names import of_series
from orcast.frame.state import PanelContent, PoolKey
from orcast.frame.stopping import Stop
from orcast.frame.stream import Stream, StreamKey, StreamOptions, StreamRun, runners_of
from orcast.validation import short

if TYPE_CHECKING:
    from orcast.frame.frame_run import FrameRun


def checked_pool(pool: Any) -> bool | tuple[Any, ...]:
    """Check which series are pooled: all (True), none (False), or those that agree in columns."""
    if isinstance(pool, (bool, np.bool_)):
        return bool(pool)
    columns = (pool,) if isinstance(pool, str) else tuple(pool) if isinstance(pool, (list, tuple)) else ()
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"expected pool=True, False, or the names of columns, got {short(pool)}")
    return columns


class FrameGroups:
    """The groups of a frame's streams, and their state after it."""

    def __init__(self, run: FrameRun, pool: bool | tuple[Any, ...]) -> None:
        self.run, self.pool = run, pool
        self.pooled = pool is not False and bool(run.layout.series) and isinstance(run.oracle, (Committee, type(None)))
        self.groups: list[Hashable] = [None] * len(run.keys)
        if isinstance(pool, tuple):
            self.groups = self._groups(pool)
        self.keys = self._keys() if self.pooled else [(None, False)] * len(run.keys)
        self.corrected: dict[int, bool] = {}
        self.after: dict[tuple[int, PoolKey], GroupState] = {}
        self.changed: dict[int, dict[StreamKey, Stream]] = {}  # streams that are not in the frame, by model

    def _keys(self) -> list[PoolKey]:
        """The pool of each series; where only an upper bound is known, distances below it are played."""
        run = self.run
        low, high = run.bounds.low, run.bounds.high
        mirrored = ~np.isfinite(low) & np.isfinite(high)
        if run.bounds.by_row:
            by_series = np.zeros(len(run.keys), dtype=bool)
            by_series[run.codes] = mirrored
            mirrored = by_series
        return list(zip(self.groups, mirrored.tolist(), strict=True))

    def _groups(self, columns: tuple[Any, ...]) -> list[Hashable]:
        run = self.run
        for name in columns:
            if name not in run.frame.reading.columns:
                raise ValueError(f"expected pool= as columns of the frame, got {name!r}")
        codes, keys = run.frame.keys(columns)
        whose = np.zeros(len(run.keys), dtype=np.intp)
        whose[run.codes] = codes
        differs = np.flatnonzero(whose[run.codes] != codes)
        if len(differs):
            row = int(differs[0])
            key = run.keys[int(run.codes[row])]
            other = keys[int(whose[run.codes[row]])]
            raise ValueError(
                f"expected one value of {', '.join(columns)}{of_series(key)}, got {keys[int(codes[row])]!r} "
                f"in row {row} and {other!r}"
            )
        groups: list[Hashable] = [keys[code] for code in whose.tolist()]
        for key, group in zip(run.keys, groups, strict=True):
            then = run.content.groups.get(key, group)
            if then != group:
                raise ValueError(
                    f"expected {', '.join(columns)}{of_series(key)} as the state has it, {then!r}, got {group!r}"
                )
        return groups

    def needed(self, options: StreamOptions) -> bool:
        """Return whether a model has a committee: it corrects quantities, and gives points their spread."""
        return self.corrects(options) or options.shape.kind == "point"

    def corrects(self, options: StreamOptions) -> bool:
        """Return whether the committee of a model corrects its forecasts."""
        if options.number not in self.corrected:
            one = np.zeros(1)
            low, high = (run_side[:1] if len(run_side) else one for run_side in (self.run.low, self.run.high))
            runner = runners_of(options, {}).between(float(low[0]), float(high[0]))
            self.corrected[options.number] = runner.corrected
        return self.corrected[options.number]

    def play(self, options: StreamOptions, runs: Sequence[StreamRun], stop: Stop) -> GroupState | None:
        """Run the committees of streams; without a pool, return the state after it for the caller to `add`."""
        run = self.run
        model = run.models[options.number].form.model
        known = run.content.models.get(model)
        streams = {} if known is None else known.streams
        code = {key: i for i, key in enumerate(run.keys)}
        parts: dict[PoolKey, list[StreamRun]] = {}
        for each in runs:
            parts.setdefault(self.keys[code[each.key[0]]], []).append(each)
        found = None
        for key, own in parts.items():
            if all(each.idle for each in own):
                continue
            before = run.content.pools.get((model, key), GroupState())
            names = before.series if self.pooled else {each.key[0] for each in own}
            others = {name: stream for name, stream in streams.items() if name[0] in names}
            played = GroupPass(options, plan_of(self.pooled, self.corrects(options)), before, own, others)
            found = played.play(stop)
            self.changed.setdefault(options.number, {}).update(played.changed)
            if self.pooled:
                self.after[options.number, key] = found
        return None if self.pooled else found

    def add(self, options: StreamOptions, found: GroupState) -> None:
        """Add the series of a batch without a pool to the state after the frame."""
        key = options.number, (None, False)
        self.after[key] = self.after.get(key, GroupState()).with_more(found)

    def commit(self, content: PanelContent) -> None:
        """Put the groups into a state."""
        for (number, key), found in self.after.items():
            place = self.run.models[number].form.model, key
            content.pools[place] = content.pools.get(place, GroupState()).with_more(found)
        for number, streams in self.changed.items():
            content.models[self.run.models[number].form.model].streams.update(streams)
        if isinstance(self.pool, tuple):
            content.groups.update(zip(self.run.keys, self.groups, strict=True))
