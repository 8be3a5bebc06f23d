"""The pools of a frame: which of its streams learn together, and what each of them hears."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.engine import Committee
from orcast.panel.column_names import of_series
from orcast.panel.experts import ForecastShape
from orcast.panel.pools import PoolInput, PoolPass, PoolState, SignalTable
from orcast.panel.state import PanelContent
from orcast.panel.stream import StreamOptions
from orcast.validation import short

if TYPE_CHECKING:
    from orcast.panel.frame_run import FrameRun


def checked_pool(pool: Any) -> bool | tuple[Any, ...]:
    """Which streams learn together: all (True), none (False), or those that agree in columns; or one clear sentence."""
    if isinstance(pool, (bool, np.bool_)):
        return bool(pool)
    columns = (pool,) if isinstance(pool, str) else tuple(pool) if isinstance(pool, (list, tuple)) else ()
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"expected pool=True, False, or the names of columns, got {short(pool)}")
    return columns


class Pools:
    """The pools of a frame: which streams learn together, and what they hear; each is played when it is first asked."""

    def __init__(self, run: FrameRun, pool: bool | tuple[Any, ...]) -> None:
        self.run, self.pool = run, pool
        streams, bounds = run.streams, run.bounds
        oracle = Committee() if run.oracle is None else run.oracle
        several = bool(run.layout.series) or not streams.times.at_once
        self.on = pool is not False and several and isinstance(oracle, Committee) and oracle.trackers
        self.groups: list[Hashable] = [None] * len(run.keys)
        if not self.on:
            return
        if isinstance(pool, tuple):
            self.groups = self._groups(pool)
        # where only an upper bound is known, what is played is how far below it the outcome lies
        low, high = run.bounds.of_rows(run.codes) if bounds.by_row else (bounds.low, bounds.high)
        mirrored = ~np.isfinite(low) & np.isfinite(high)
        if bounds.by_row:
            by_series = np.zeros(len(run.keys), dtype=bool)
            by_series[run.codes] = mirrored
            mirrored = by_series
        keys = list(zip(self.groups, mirrored.tolist(), strict=True))
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        self.keys = list(number)
        self.of_series = np.array([number[key] for key in keys], dtype=np.int64)
        self.of_stream = self.of_series[streams.series]
        self.of_row = np.empty(len(streams.order), dtype=np.int64)  # the stream of each row
        self.of_row[streams.order] = np.repeat(np.arange(len(streams)), np.diff(streams.starts))
        self.tables: dict[tuple[int, int], tuple[SignalTable, dict[Hashable, int]]] = {}
        self.after: dict[tuple[int, int], PoolState] = {}

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

    def listens(self, shape: ForecastShape) -> bool:
        """Whether the games of a model hear of a pool."""
        return self.on and shape.ordered

    def heard(self, options: StreamOptions, first: int, last: int) -> list[tuple[SignalTable, int]]:
        """What some streams hear: a table, and their horizon in it."""
        streams = self.run.streams
        found = []
        for i in range(first, last):
            table, column = self._table(options, int(self.of_stream[i]))
            found.append((table, column.get(streams.horizons[i], -1)))
        # tables of pools that are through are not asked for again
        for key in [
            key for key in self.tables if key[0] == options.number and key[1] not in self.of_stream[last - 1 :]
        ]:
            del self.tables[key]
        return found

    def _table(self, options: StreamOptions, pool: int) -> tuple[SignalTable, dict[Hashable, int]]:
        key = (options.number, pool)
        if key not in self.tables:
            played = PoolPass(
                options,
                self.run.content.pools.get((self.run.models[options.number].form.model, self.keys[pool])),
                self._input(options, pool),
            )
            table = played.play(self.run.stop)
            self.tables[key] = table, {horizon: i for i, horizon in enumerate(played.state.horizons)}
            self.after[key] = played.state
        return self.tables[key]

    def commit(self, content: PanelContent) -> None:
        """Put the pools into a state."""
        if not self.on:
            return
        for (number, pool), state in self.after.items():
            content.pools[self.run.models[number].form.model, self.keys[pool]] = state
        if self.pool is not True:
            content.groups.update(zip(self.run.keys, self.groups, strict=True))

    def _input(self, options: StreamOptions, pool: int) -> PoolInput:
        run, model = self.run, self.run.models[options.number]
        streams, times = run.streams, run.streams.times
        own = np.flatnonzero(self.of_stream == pool)
        rows: Any = slice(None)
        if len(self.keys) > 1:
            rows = np.flatnonzero(self.of_series[run.codes] == pool)
        place = np.full(len(streams), -1, dtype=np.int64)
        place[own] = np.arange(len(own))
        return PoolInput(
            place[self.of_row[rows]],
            model.there[rows],
            times.cutoff[rows],
            times.time[rows],
            model.due[rows],
            model.y[rows],
            run.low[rows],
            run.high[rows],
            lambda at: np.column_stack([column[at if len(self.keys) == 1 else rows[at]] for column in model.given]),
            [(run.keys[int(streams.series[i])], streams.horizons[i]) for i in own.tolist()],
        )
