"""The table that streams of one model and space sit down at, one after the other: a game, from events to what it said.

On ordered spaces the events are played by a compiled loop, elsewhere by the game itself; both do what `predict`,
`update` and `drop` of a `Recalibrator` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.adapters import LARGEST, REACH
from orcast.engine.kernels import events as event_kernels
from orcast.engine.kernels.events import COUNTERS_SIZE, DROP, ERRORS, ISSUED, LAG, PREDICT, RESERVED, SETTLE
from orcast.engine.ordered import OrderedEngine, OrderedRecord
from orcast.game import ALONE, Forecaster
from orcast.panel.experts import ForecastShape, normal_rows
from orcast.payoffs import Payoff
from orcast.payoffs.base import UNKNOWN
from orcast.recalibrator import Recalibrator
from orcast.rounds import PendingRound
from orcast.spaces import OrderedSpace, Space

Array = NDArray[np.float64]
Events = NDArray[np.int64]  # kind and entry of each
Fields = tuple[tuple[str, str, tuple[int, ...]], ...]  # name, kind and shape of the arrays of a page


@dataclass
class RunInput:
    """What is to be played: entries that wait from before come first, then one for each new row."""

    values: Array  # outcomes, nan where unknown or outside
    points: Array  # point forecasts, else empty
    spreads: Array  # of new points, as long as no error is known
    rows: Array  # of the experts, of the new entries; empty for points
    levels: list[Array]  # sets of levels to be read
    which: NDArray[np.int64]  # the set of each new entry
    features: list[Any] | None

    @property
    def entries(self) -> int:
        """All entries."""
        return len(self.values)

    @property
    def new(self) -> int:
        """New entries."""
        return len(self.which)


@dataclass
class RunState:
    """What is left of a game between frames: its memory and counters in one row, and the pages of rounds that wait."""

    numbers: Array
    sizes: tuple[int, ...] | None  # of the parts of its payoff, where only a first round tells
    fields: Fields
    records: list[Array]
    issued: list[float]
    features: list[Any]


class Runner:
    """A game at which many streams are played."""

    def __init__(self, shape: ForecastShape, space: Space, payoff: Payoff | None) -> None:
        self.shape, self.space = shape, space
        self.game: Forecaster = Recalibrator(space, payoff, max_pending=2**31).game
        # quantiles that cross have been sorted, and spoken of, before they come here
        self.game.crossing_reported = True
        self.grows = UNKNOWN in [part.size for part in self.engine.bound_payoff.parts]
        self._blank = [array.copy() for array in self.engine.arrays().values()]

    @property
    def engine(self) -> Any:
        """The engine of the game."""
        return self.game.engine

    def resume(self, left: RunState | None, inputs: RunInput, most: int) -> CompiledRun | PythonRun:
        """Let a stream go on from what is left of it, or a new one begin; at most so many rounds will wait."""
        try:
            return self._resume(left, inputs, most)
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as reason:
            if left is None:
                raise
            raise ValueError(
                f"expected a state that this version can use, got one that it cannot ({reason})"
            ) from reason

    def _resume(self, left: RunState | None, inputs: RunInput, most: int) -> CompiledRun | PythonRun:
        counters = np.array([0.0, math.nan, 0.0, 0.0, 0.0])
        if left is None:
            if self.grows:
                self.game.begin((ALONE,))
            for mine, blank in zip(self.engine.arrays().values(), self._blank, strict=True):
                mine[...] = blank
        else:
            if self.grows:
                self.game.begin((ALONE,), left.sizes)
            arrays = self.engine.arrays()
            counters[:] = left.numbers[:COUNTERS_SIZE]
            if not (counters[[ISSUED, RESERVED, ERRORS]] >= 0.0).all():
                raise ValueError("a counter is negative or not a number")
            self.engine.restore(_cut(left.numbers[COUNTERS_SIZE:], {n: (a.dtype, a.shape) for n, a in arrays.items()}))
        if isinstance(self.engine, OrderedEngine) and self.engine.runs:
            return CompiledRun(self, left, inputs, most, counters)
        return PythonRun(self, left, inputs, counters)

    def restored(self, left: RunState | None) -> list[Any]:
        """The pages of the rounds that wait, checked."""
        if left is None:
            return []
        shapes = {name: (np.dtype(kind), shape) for name, kind, shape in left.fields}
        return [
            self.engine.restored_record(_cut(numbers, shapes), features)
            for numbers, features in zip(left.records, left.features, strict=True)
        ]

    def numbers(self, counters: Array) -> Array:
        """Counters and memory in one row."""
        return _joined([counters, *self.engine.arrays().values()])

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """What only a first round tells of the payoff."""
        return tuple(self.engine.sizes) if self.grows and self.engine.sizes else None


def _cut(row: Array, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """Arrays from one row of numbers."""
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for name, (kind, shape) in shapes.items():
        size = math.prod(shape)
        part = row[at : at + size]
        if part.size != size:
            break
        found[name] = part.reshape(shape).astype(kind)
        at += size
    if at != len(row) or len(found) != len(shapes):
        raise ValueError(f"{len(row)} numbers of a game, not {sum(math.prod(shape) for _, shape in shapes.values())}")
    return found


def _joined(arrays: Sequence[NDArray[Any]]) -> Array:
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


class CompiledRun:
    """A stream at the table, played by the compiled loop."""

    def __init__(self, runner: Runner, left: RunState | None, inputs: RunInput, most: int, counters: Array) -> None:
        self.runner, self.inputs, self.counters = runner, inputs, counters
        # kernels are compiled for arrays in the usual order
        arrays = inputs.values, inputs.points, inputs.spreads, inputs.rows
        self.values, self.points, self.spreads, self.rows = map(np.ascontiguousarray, arrays)
        engine: OrderedEngine = runner.engine
        self.engine = engine
        cells = engine.space.cells
        self.records, self.slots = np.zeros((most, engine._length)), np.zeros((most, cells), dtype=np.int64)
        self.places = np.full(inputs.entries, -1, dtype=np.int64)
        self.waiting = np.zeros(most + 1, dtype=np.int64)
        # how many are free, and which
        self.free = np.concatenate(([most], np.arange(most - 1, -1, -1))).astype(np.int64)
        self.issued = np.zeros(inputs.entries)
        for entry, record in enumerate(runner.restored(left)):
            place = int(self.free[self.free[0]])
            self.free[0] -= 1
            self.records[place], self.slots[place] = record.row, record.slots
            self.places[entry] = place
            self.waiting[0] += 1
            self.waiting[self.waiting[0]] = entry
        if left is not None:
            self.issued[: len(left.issued)] = left.issued
        self.contexts = np.ones((inputs.new, engine.rules.groups))
        if not engine.bound_payoff.plain:
            for t in range(inputs.new):
                x = None if inputs.features is None else inputs.features[t]
                self.contexts[t] = engine.bound_payoff.context(engine.known(self._expert(t), x, engine.bound_payoff, 0))
        space = engine.space
        size = space.high - space.low
        bounded = math.isfinite(size)
        self.reach = np.array([space.low - REACH * size, space.high + REACH * size] if bounded else [-LARGEST, LARGEST])
        widest = max(map(len, inputs.levels))
        self.levels = np.zeros((len(inputs.levels), widest))
        for i, levels in enumerate(inputs.levels):
            self.levels[i, : len(levels)] = levels
        self.widths = np.array([len(levels) for levels in inputs.levels])
        self.quantiles = np.full((inputs.new, widest), np.nan)
        self.round_log = np.full((inputs.new, _ledger.ROUND_LOG_SIZE), np.nan)
        self.settled = np.full(inputs.entries, np.nan)

    def _expert(self, t: int) -> Array:
        """What contexts see of an expert; of a point forecast they see the point."""
        if len(self.inputs.rows):
            return self.inputs.rows[t : t + 1]
        old = self.inputs.entries - self.inputs.new
        return np.full((1, len(self.engine.space.levels)), self.inputs.points[old + t])

    def play(self, events: Events) -> None:
        """Play events."""
        engine = self.engine
        at, resumed = 0, False
        while True:
            at = int(
                event_kernels.play(
                    engine.rules,
                    engine._memory,
                    self.counters,
                    self.rows,
                    self.points,
                    self.spreads,
                    self.reach,
                    self.contexts,
                    engine._context.start,
                    engine._certificate.start,
                    self.values,
                    events,
                    at,
                    resumed,
                    self.levels,
                    self.widths,
                    self.inputs.which,
                    self.records,
                    self.slots,
                    self.places,
                    self.waiting,
                    self.free,
                    self.issued,
                    self.quantiles,
                    self.round_log,
                    self.settled,
                )
            )
            if at == len(events):
                return
            # a round for Python, as in predict
            place = int(self.places[events[at, 1]])
            row = self.records[place]
            engine._rescue(
                OrderedRecord(engine._shapes, row, self.slots[place], row[engine._certificate]),
                float(self.counters[RESERVED]),
            )
            resumed = True

    def look(self, events: Events) -> None:
        """Book outcomes to see what comes of it, and put everything back."""
        changes: list[NDArray[Any]] = [self.engine._memory, self.counters, self.places, self.waiting, self.free]
        was = [each.copy() for each in changes]
        self.play(events)
        for each, then in zip(changes, was, strict=True):
            each[:] = then

    def waits(self) -> NDArray[np.int64]:
        """The entries that wait, in the order of their forecasts."""
        return self.waiting[1 : self.waiting[0] + 1]

    def left(self) -> RunState:
        """What is left of the game."""
        entries = self.waits()
        records = [_joined([self.records[place], self.slots[place]]) for place in self.places[entries]]
        fields = (
            ("row", "<f8", (self.records.shape[1],)),
            ("slots", "<i8", (self.slots.shape[1],)),
        )
        return RunState(
            self.runner.numbers(self.counters),
            self.runner.sizes,
            fields if records else (),
            records,
            self.issued[entries].tolist(),
            [None] * len(records),
        )


class PythonRun:
    """A stream at the table, played by the game itself."""

    def __init__(self, runner: Runner, left: RunState | None, inputs: RunInput, counters: Array) -> None:
        self.runner, self.inputs, self.counters = runner, inputs, counters
        self.game = runner.game
        self.old = inputs.entries - inputs.new
        lag = float(counters[LAG])
        self.game.rounds.issued, self.game.rounds.reserved = int(counters[ISSUED]), float(counters[RESERVED])
        self.game.rounds.usual_lag = None if math.isnan(lag) else lag
        issued = [] if left is None else left.issued
        self.game.rounds.pending = {
            entry: PendingRound(record, int(number))
            for entry, (record, number) in enumerate(zip(runner.restored(left), issued, strict=True))
        }
        widest = max(map(len, inputs.levels)) if runner.shape.ordered else len(runner.shape.outputs)
        self.quantiles = np.full((inputs.new, widest), np.nan)
        self.round_log = np.full((inputs.new, _ledger.ROUND_LOG_SIZE), np.nan)
        self.settled = np.full(inputs.entries, np.nan)

    def play(self, events: Events) -> None:
        """Play events; where each outcome comes at once, in one compiled loop if there is one."""
        at = 0
        kinds, entries = events[:, 0], events[:, 1]
        # where a stretch of forecasts, each followed by its outcome, ends
        pairs = (kinds[:-1] == PREDICT) & (kinds[1:] == SETTLE) & (entries[:-1] == entries[1:])
        while at < len(events):
            if self.runner.engine.runs and not self.game.rounds.pending and len(pairs) > at and pairs[at]:
                more = pairs[at::2]
                count = len(more) if more.all() else int(more.argmin())
                self._run(int(entries[at]) - self.old, count)
                at += 2 * count
                continue
            kind, entry = int(kinds[at]), int(entries[at])
            if kind == PREDICT:
                self._predict(entry)
            elif kind == SETTLE:
                self._settle(entry)
            else:
                self.game.drop(entry)
            at += 1

    def _run(self, start: int, count: int) -> None:
        game, inputs = self.game, self.inputs
        stop = start + count
        features = None if inputs.features is None else inputs.features[start:stop]
        outcomes = inputs.values[self.old + start : self.old + stop].astype(np.int64)
        played, round_log = self.runner.engine.run(inputs.rows[start:stop, None, :], features, outcomes, np.empty(0))
        self.quantiles[start:stop] = np.asarray(played).reshape(count, -1)
        self.round_log[start:stop] = round_log
        self.settled[self.old + start : self.old + stop] = round_log[:, _ledger.RoundLog.MISCALIBRATION]
        game.rounds.count_settled(count)

    def _predict(self, entry: int) -> None:
        t = entry - self.old
        shape, inputs = self.runner.shape, self.inputs
        space: Any = self.runner.space
        certificates = np.array([each.record.certificate for each in self.game.rounds.pending.values()])
        forecast: Any
        if shape.kind == "point":
            point, (errors, count) = float(inputs.points[entry]), self.counters[ERRORS:].tolist()
            spread = math.sqrt(errors / count) if count else float(inputs.spreads[t])
            forecast = _Quoted(normal_rows(np.array([point]), np.array([spread]), space)[0])
        elif shape.ordered:
            forecast = _Quoted(inputs.rows[t])
        else:
            forecast = float(inputs.rows[t, 1]) if shape.kind == "binary" else inputs.rows[t]
        p = self.game.predict(forecast, id=entry, x=None if inputs.features is None else inputs.features[t])
        log_row = self.round_log[t]
        log_row[_ledger.RoundLog.HOLDS] = p.certificate.holds
        log_row[_ledger.RoundLog.PROMISED] = p.certificate.promised
        if len(certificates):
            certificate = self.game.rounds.pending[entry].record.certificate
            log_row[_ledger.RoundLog.PROMISED] = event_kernels.promised(
                self.runner.engine.ledger.account, certificates, certificate
            )
        if isinstance(space, OrderedSpace):
            levels = inputs.levels[inputs.which[t]]
            self.quantiles[t, : len(levels)] = p.quantile(levels)
            log_row[_ledger.RoundLog.MEAN], log_row[_ledger.RoundLog.SD] = p.to_normal()
        else:
            self.quantiles[t] = p.probability() if shape.kind == "binary" else p.mass

    def _settle(self, entry: int) -> None:
        value = float(self.inputs.values[entry])
        shape = self.runner.shape
        self.game.update(shape.labels[int(value)] if shape.kind == "labels" else value, id=entry)
        self.settled[entry] = self.runner.engine.ledger.miscalibration
        if len(self.inputs.points):
            error = value - float(self.inputs.points[entry])
            self.counters[ERRORS:] += (error * error, 1.0)

    def look(self, events: Events) -> None:
        """Book outcomes to see what comes of it, and put everything back."""
        game, engine = self.game, self.runner.engine
        arrays = {name: array.copy() for name, array in engine.arrays().items()}
        was = dict(game.rounds.pending), game.rounds.issued, game.rounds.usual_lag, game.rounds.reserved
        counters = self.counters.copy()
        self.play(events)
        for name, array in engine.arrays().items():
            array[...] = arrays[name]
        game.rounds.pending, game.rounds.issued, game.rounds.usual_lag, game.rounds.reserved = was
        self.counters = counters

    def waits(self) -> NDArray[np.int64]:
        """The entries that wait, in the order of their forecasts."""
        return np.array(list(self.game.rounds.pending), dtype=np.int64)

    def left(self) -> RunState:
        """What is left of the game."""
        game = self.game
        self.counters[[ISSUED, LAG, RESERVED]] = (
            game.rounds.issued,
            math.nan if game.rounds.usual_lag is None else game.rounds.usual_lag,
            game.rounds.reserved,
        )
        records: list[Array] = []
        fields: Fields = ()
        for waiting in game.rounds.pending.values():
            arrays = waiting.record.arrays()
            fields = tuple((name, array.dtype.str, array.shape) for name, array in arrays.items())
            records.append(_joined(list(arrays.values())))
        return RunState(
            self.runner.numbers(self.counters),
            self.runner.sizes,
            fields,
            records,
            [float(waiting.issued) for waiting in game.rounds.pending.values()],
            [getattr(waiting.record, "features", None) for waiting in game.rounds.pending.values()],
        )


class _Quoted:
    """Quantiles at the levels of a space, which need no reading."""

    __slots__ = ("row",)

    def __init__(self, row: Array) -> None:
        self.row = row

    def ppf(self, levels: Array) -> Array:
        """The quantiles."""
        return self.row


def events_of(kinds: Sequence[int], entries: Sequence[int]) -> Events:
    """Events from their kinds and entries."""
    return np.column_stack((np.array(kinds, dtype=np.int64), np.array(entries, dtype=np.int64)))


__all__ = [
    "DROP",
    "PREDICT",
    "SETTLE",
    "CompiledRun",
    "Events",
    "PythonRun",
    "RunInput",
    "RunState",
    "Runner",
    "events_of",
]
