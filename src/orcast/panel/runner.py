"""One game for many streams: each is resumed, plays its events, and leaves its state.

On ordered spaces the events are played by a compiled loop, elsewhere by `orcast.rounds.Rounds`; both do what `predict`,
`update` and `drop` of a `Recalibrator` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.adapters import reach_of
from orcast.coins import coins
from orcast.engine import Committee, Oracle
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.ordered import OrderedEngine
from orcast.histories import ALONE
from orcast.kernels import events as kernels
from orcast.kernels.records import PREDICT, SETTLE, SKIP
from orcast.kernels.tracker import skip_steps
from orcast.packed import PackedRounds, pack_row, unpack_row
from orcast.panel.bounds import scale_between, space_between
from orcast.panel.experts import ForecastShape, normal_rows
from orcast.panel.ordering import Before
from orcast.panel.stopping import NEVER, Stop
from orcast.payoffs import Payoff, default_payoff
from orcast.payoffs.base import UNKNOWN
from orcast.persistence import UNREADABLE, unusable
from orcast.residuals import Residuals, first_spread
from orcast.rounds import Rounds, check_counters
from orcast.serialise import plain_features
from orcast.spaces import Interval, OrderedSpace, Space
from orcast.spaces.base import LARGEST, SMALLEST

Array = NDArray[np.float64]
Events = NDArray[np.int64]  # kind, entry, and row of the signals that is heard (-1: none) of each

# As plain numbers: Python 3.11 is slow in looking up members of an enum, and streams may be short.
HOLDS, PROMISED, MISCALIBRATION, MEAN, SD, _ = map(int, _ledger.RoundLog)
# What is heard where there is no pool.
NO_SIGNALS = np.empty((0, 0))
# Events in one call of the compiled loop: between two calls Python can be interrupted.
AT_ONCE = 4000
# Runners that are kept, of series with other bounds.
MOST_RUNNERS = 256


class Units(NamedTuple):
    """How what is played becomes an outcome in the user's units, row by row: y = shift + scale * what is played."""

    shift: Array
    scale: Array


@dataclass(frozen=True)
class NewForecasts:
    """The new forecasts of a stream in the user's units, with the bounds, the units and the features of each."""

    given: Array
    low: Array
    high: Array
    units: Units
    features: list[Any] | None = None


class Inputs(NamedTuple):
    """What is to be run: entries that are pending from before, then one for each new forecast; see `kernels.Stream`."""

    values: Array
    points: Array
    spreads: Array
    experts: Array
    reach: Array
    levels: Array
    widths: NDArray[np.int64]
    level_set: NDArray[np.int64]
    signals: Array
    coins: Array


class Outputs(NamedTuple):
    """Results: quantiles and log of each new forecast, and the miscalibration after each outcome."""

    quantiles: Array
    round_log: Array
    settled: Array


class RunState(NamedTuple):
    """A game between frames."""

    rounds: PackedRounds
    errors: Array  # of point forecasts: the sum of the absolute ones, and their number
    memory: Array
    sizes: tuple[int, ...] | None  # of the parts of its payoff, where only a first round tells

    def before(self) -> Before:
        """What the order of play has to know of the rounds so far."""
        count, lag, reserved = self.rounds.counters.tolist()
        usual, pending = None if lag != lag else lag, self.rounds.issued.tolist()
        try:
            check_counters(count, usual, reserved, pending)
        except ValueError as reason:
            raise unusable(reason) from reason
        return Before(list(map(int, pending)), int(count), usual)


class RunnerPool:
    """The runners of one model, one for each space."""

    def __init__(
        self, shape: ForecastShape, payoff: Payoff | None, oracle: Oracle | None, by_row: bool, pooled: bool = False
    ) -> None:
        self.shape, self.payoff, self.by_row = shape, payoff, by_row and shape.ordered
        self.pooled = pooled
        self.oracle: Oracle = Committee() if oracle is None else oracle
        self.runners: dict[tuple[float, float] | None, Runner] = {}

    def between(self, low: float, high: float) -> Runner:
        """The runner for outcomes between two bounds."""
        key = None
        if self.shape.ordered:
            # only a lower bound that is the same for all rows is one of the space
            own = math.isfinite(low) and not self.by_row
            key = (low, high) if own else (math.isfinite(low), math.isfinite(high))
        if key not in self.runners:
            if len(self.runners) >= MOST_RUNNERS:
                self.runners.clear()
            space = self.shape.space(space_between(low, high, self.by_row) if self.shape.ordered else None)
            self.runners[key] = Runner(self.shape, space, self.payoff, self.oracle, self.by_row, self.pooled)
        return self.runners[key]


class Runner:
    """A game that streams of one model and space are played on, one after the other."""

    def __init__(
        self,
        shape: ForecastShape,
        space: Space,
        payoff: Payoff | None,
        oracle: Oracle,
        by_row: bool = False,
        pooled: bool = False,
    ) -> None:
        self.shape, self.space, self.oracle, self.by_row = shape, space, oracle, by_row
        self._bound_with: dict[str, bool] = {"pooled": True} if pooled else {}
        self.payoff = default_payoff(space) if payoff is None else payoff
        self.rounds = self._begin(None)
        self.grows = UNKNOWN in [part.size for part in self.rounds.engine.bound_payoff.parts]
        self._blank = [array.copy() for array in self.rounds.engine.arrays().values()]

    def _begin(self, sizes: tuple[int, ...] | None) -> Rounds:
        bound_payoff = BoundPayoff(self.space, self.payoff, (ALONE,), None)
        return Rounds(self.oracle.bind(bound_payoff, sizes, **self._bound_with), max_pending=2**31)

    @property
    def listens(self) -> bool:
        """Whether its game hears of a pool."""
        engine = self.rounds.engine
        return isinstance(engine, OrderedEngine) and engine.rules.pooled > 0

    # --- units
    def units(self, low: Array, high: Array) -> Units:
        """The units of rows with bounds."""
        if self.shape.ordered:
            return Units(*scale_between(low, high, self.by_row))
        return Units(np.zeros(len(low)), np.ones(len(low)))

    def new(self, given: Array, low: Array, high: Array, features: list[Any] | None = None) -> NewForecasts:
        """New forecasts between bounds."""
        return NewForecasts(given, low, high, self.units(low, high), features)

    def outcomes(self, y: Array, units: Units, clip: bool) -> Array:
        """Outcomes as they are played; nan where they are missing or outside."""
        if not isinstance(self.space, OrderedSpace):
            return np.where((y >= 0.0) & (y < self.space.cells) & (y == np.floor(y)), y, np.nan)
        shift, scale = units
        least, most = max(self.space.low, -LARGEST), min(self.space.high, LARGEST)
        with np.errstate(over="ignore", invalid="ignore"):
            value: Array = (y - shift) / scale
            if clip:
                value = np.where(np.isfinite(value), np.minimum(np.maximum(value, least), most), np.nan)
            if self.space.high - self.space.low == np.inf:
                value = np.where(np.abs(value) < SMALLEST, 0.0, value)
            return np.where((value >= least) & (value <= most), value, np.nan)

    def points(self, new: NewForecasts) -> Array:
        """Point forecasts as they are played; empty for other forecasts."""
        if self.shape.kind != "point":
            return np.empty(0)
        shift, scale = new.units
        return np.asarray((new.given[:, 0] - shift) / scale)

    def _inputs(self, new: NewForecasts, values: Array, points: Array, signals: Array, tossed: Array) -> Inputs:
        shape, space, m = self.shape, self.space, len(new.given)
        shift, scale = new.units
        experts, spreads = np.empty((0, 0)), np.empty(0)
        reach = np.array(reach_of(space) if isinstance(space, OrderedSpace) else (-LARGEST, LARGEST))
        if shape.kind == "point":
            assert isinstance(space, OrderedSpace)
            spreads = first_spread(new.given[:, 0], space)
            if not isinstance(space, Interval):
                spreads = spreads / np.abs(scale)
        elif m:
            experts = np.ascontiguousarray(shape.expert_rows(space, new.given, shift, scale))
        counts, level_set = np.zeros(1, dtype=np.intp), np.zeros(m, dtype=np.int64)
        if shape.kind == "members" and m:
            counts, level_set = np.unique((~np.isnan(new.given)).sum(axis=1), return_inverse=True)
        sets = [shape.levels_to_read(int(count), bool(m and scale[0] < 0.0)) for count in counts]
        levels = np.zeros((len(sets), max(map(len, sets))))
        for row, each in zip(levels, sets, strict=True):
            row[: len(each)] = each
        widths = np.array([len(each) for each in sets])
        values, points = np.ascontiguousarray(values), np.ascontiguousarray(points)
        return Inputs(
            values, points, spreads, experts, reach, levels, widths, level_set.astype(np.int64), signals, tossed
        )

    def answers(self, run: CompiledRun | PythonRun, new: NewForecasts) -> Array:
        """What a run played, as the columns that come out; a row for each new forecast."""
        shape, outputs, inputs = self.shape, run.outputs, run.inputs
        if not shape.ordered:
            return outputs.quantiles
        answers = np.empty((len(new.given), len(shape.outputs)))
        shift, scale = new.units
        moments = outputs.round_log[:, MEAN : SD + 1]
        for number, width in enumerate(inputs.widths):
            at: Any = slice(None) if len(inputs.widths) == 1 else np.flatnonzero(inputs.level_set == number)
            out = shape.answers(outputs.quantiles[at, :width], moments[at], shift[at], scale[at], new.given[at])
            if self.by_row:
                # rounding does not lead out
                inside = [what != "sd" for what, _, _ in shape.outputs]
                out[:, inside] = np.clip(out[:, inside], new.low[at, None], new.high[at, None])
            answers[at] = out
        return answers

    # --- streams
    def resume(
        self,
        state: RunState | None,
        new: NewForecasts,
        values: Array,
        points: Array,
        events: Events,
        signals: Array = NO_SIGNALS,
        seed: int | None = None,
    ) -> CompiledRun | PythonRun:
        """Let a stream go on from its state, or a new one begin, with its new forecasts and events to be played.

        Values are the outcomes and points the point forecasts of all entries: those that are pending come first.
        Signals are what events may hear of a pool; a seed is that of the stream's coins.
        """
        begins = state is None
        try:
            if self.grows:
                self.rounds = self._begin(None if state is None else state.sizes)
            engine: Any = self.rounds.engine
            if state is None:
                for mine, blank in zip(engine.arrays().values(), self._blank, strict=True):
                    mine[...] = blank
                packed = PackedRounds(np.array([0.0, np.nan, 0.0]), (), np.empty((0, 0)), np.empty(0), [])
                state = RunState(packed, np.zeros(2), np.empty(0), None)
            else:
                if not ((state.errors >= 0.0) & (state.errors <= 1e150)).all():
                    raise ValueError("a counter is negative or not a number")
                kinds = {name: (array.dtype, array.shape) for name, array in engine.arrays().items()}
                engine.restore(unpack_row(state.memory, kinds))
            self.rounds.seed = seed
            issued = int(state.rounds.counters[0])
            tossed = np.empty(0) if seed is None else coins(seed, issued + 1, len(new.given))
            inputs = self._inputs(new, values, points, signals, tossed)
            if isinstance(engine, OrderedEngine) and engine.runs:
                return CompiledRun(self, state, inputs, new.features, events)
            return PythonRun(self, state, inputs, new.features, events)
        except UNREADABLE as reason:
            if begins:
                raise
            raise unusable(reason) from reason

    @property
    def has_seasons(self) -> bool:
        """Whether there are learners that look at seasons."""
        engine = self.rounds.engine
        return isinstance(engine, OrderedEngine) and engine.rules.learner_count > 0

    def presume_seasons(self, lags: Sequence[int]) -> None:
        """Let the learners of a stream that begins look at these lags, where there are learners."""
        if self.has_seasons:
            engine: Any = self.rounds.engine
            engine.presume_seasons(lags)

    def state(self, rounds: PackedRounds, errors: Array) -> RunState:
        """The game as it stands."""
        engine: Any = self.rounds.engine
        sizes = tuple(engine.sizes) if self.grows and engine.sizes else None
        return RunState(rounds, errors, pack_row(engine.arrays().values()), sizes)


class CompiledRun:
    """The events of one stream, run by a compiled loop."""

    def __init__(
        self, runner: Runner, state: RunState, inputs: Inputs, features: list[Any] | None, events: Events
    ) -> None:
        engine: Any = runner.rounds.engine
        self.runner, self.engine, self.inputs = runner, engine, inputs
        packed = state.rounds
        old = len(packed.issued)
        kinds = events[events[:, 0] != SKIP, 0]
        pending = old + np.cumsum(1 - 2 * (kinds != PREDICT))
        issued, lag, reserved = packed.counters.tolist()
        check_counters(issued, None if lag != lag else lag, reserved, packed.issued.tolist())
        self.stream = kernels.Stream(
            engine.rules,
            *inputs[:5],
            self._contexts(inputs, features),
            *inputs[5:],
            np.concatenate((packed.counters, state.errors)),
            int(pending.max(initial=max(old, 1))),
        )
        if old:
            pairs = zip(packed.arrays(), packed.features, strict=True)
            records = [engine.restored_record(arrays, own) for arrays, own in pairs]
            rows, slots = np.array([each.row for each in records]), np.array([each.whole for each in records])
            self.stream.resume(rows, slots, packed.issued)
        self.outputs = Outputs(self.stream.quantiles, self.stream.round_log, self.stream.settled)

    def _contexts(self, inputs: Inputs, features: list[Any] | None) -> Array:
        """Contexts of the new forecasts; those of a point forecast see the point."""
        engine, m = self.engine, len(inputs.level_set)
        contexts = np.ones((m, engine.rules.groups))
        if not engine.bound_payoff.plain:
            experts = inputs.experts
            if len(inputs.points):
                experts = np.repeat(inputs.points[len(inputs.points) - m :, None], len(engine.space.levels), axis=1)
            for t in range(m):
                x = None if features is None else features[t]
                known = engine.known(experts[t : t + 1], x, engine.bound_payoff, 0)
                contexts[t] = engine.bound_payoff.context(known)
        return contexts

    def play(self, events: Events, stop: Stop = NEVER) -> None:
        """Run events."""
        for start in range(0, len(events), AT_ONCE):
            stop.check()
            self.stream.run(self.engine.memory, np.ascontiguousarray(events[start : start + AT_ONCE]).reshape(-1))

    def look_ahead(self, events: Events) -> None:
        """Run events for the miscalibration that comes of them, and undo everything else."""
        stream = self.stream
        changing = (self.engine.memory.row, stream.counters, stream.place, stream.queue, stream.free)
        was = [array.copy() for array in changing]
        self.play(events)
        for array, before in zip(changing, was, strict=True):
            array[:] = before

    @property
    def pending(self) -> NDArray[np.int64]:
        """The pending entries, the oldest first."""
        return self.stream.pending  # type: ignore[no-any-return]

    def state(self) -> RunState:
        """The game after the events."""
        stream, entries = self.stream, self.pending
        places = stream.place[entries]
        fields = (("row", "<f8", (stream.records.shape[1],)), ("slots", "<i8", (stream.slots.shape[1],)))
        records = np.concatenate((stream.records[places], stream.slots[places].astype(np.float64)), axis=1)
        packed = PackedRounds(
            stream.counters[:3].copy(),
            fields if len(entries) else (),
            records,
            stream.issued[entries],
            [None] * len(entries),
        )
        return self.runner.state(packed, stream.counters[3:].copy())


class PythonRun:
    """The events of one stream, played round by round."""

    def __init__(
        self, runner: Runner, state: RunState, inputs: Inputs, features: list[Any] | None, events: Events
    ) -> None:
        self.runner, self.rounds, self.inputs = runner, runner.rounds, inputs
        self.features = features
        self.old = len(inputs.values) - len(inputs.level_set)
        self.rounds.from_packed(state.rounds, range(len(state.rounds.issued)))
        self.residuals = Residuals()
        self.residuals.total, self.residuals.count = float(state.errors[0]), int(state.errors[1])
        width = inputs.levels.shape[1] if runner.shape.ordered else len(runner.shape.outputs)
        m, entries = len(inputs.level_set), len(inputs.values)
        log = np.full((m, _ledger.ROUND_LOG_SIZE), np.nan)
        self.outputs = Outputs(np.full((m, width), np.nan), log, np.full(entries, np.nan))

    def play(self, events: Events, stop: Stop = NEVER) -> None:
        """Play events; where each outcome comes before the next forecast, in one compiled loop if there is one."""
        at = 0
        kinds, entries = events[:, 0], events[:, 1]
        pairs = (kinds[:-1] == PREDICT) & (kinds[1:] == SETTLE) & (entries[:-1] == entries[1:])
        while at < len(events):
            stop.check()
            if self.rounds.engine.runs and not self.rounds.pending and len(pairs) > at and pairs[at]:
                more = pairs[at::2]
                count = len(more) if more.all() else int(more.argmin())
                self._run(int(entries[at]) - self.old, count)
                at += 2 * count
                continue
            kind, entry = int(kinds[at]), int(entries[at])
            if kind == SKIP:
                engine: Any = self.rounds.engine
                skip_steps(engine.memory, entry)
                at += 1
                continue
            heard = int(events[at, 2])
            self.rounds.listen(self.inputs.signals[heard] if heard >= 0 else None)
            if kind == PREDICT:
                self._predict(entry)
            elif kind == SETTLE:
                self._settle(entry)
            else:
                self.rounds.drop(entry)
            at += 1

    def _run(self, start: int, count: int) -> None:
        new, all_ = slice(start, start + count), slice(self.old + start, self.old + start + count)
        features = None if self.features is None else self.features[new]
        outcomes = self.inputs.values[all_].astype(np.int64).tolist()
        played, round_log = self.rounds.run(self.inputs.experts[new, None, :], features, outcomes, np.empty(0))
        self.outputs.quantiles[new] = played.reshape(count, -1)
        self.outputs.round_log[new] = round_log
        self.outputs.settled[all_] = round_log[:, MISCALIBRATION]

    def _predict(self, entry: int) -> None:
        new, inputs = entry - self.old, self.inputs
        certificates = np.array([each.record.certificate_row for each in self.rounds.pending.values()])
        if len(inputs.points):
            space: Any = self.runner.space
            point = inputs.points[entry : entry + 1]
            # what is read in the user's units before any error is known is in the inputs
            spread = self.residuals.scale(float(point[0]), space) if len(self.residuals) else inputs.spreads[new]
            rows = normal_rows(point, np.array([spread]), space)
        else:
            rows = inputs.experts[new : new + 1]
        x = None if self.features is None else plain_features(self.features[new])
        record = self.rounds.issue(rows, x, id=entry).record
        log_row, which = self.outputs.round_log[new], inputs.level_set[new]
        width = inputs.widths[which] if self.runner.shape.ordered else self.outputs.quantiles.shape[1]
        self.outputs.quantiles[new, :width] = self.rounds.read(record, inputs.levels[which, :width], log_row)
        if len(certificates):
            account = self.rounds.engine.ledger.account
            log_row[PROMISED] = kernels.promised(account, certificates, record.certificate_row)

    def _settle(self, entry: int) -> None:
        value = float(self.inputs.values[entry])
        self.rounds.settle(value if self.runner.shape.ordered else int(value), id=entry)
        self.outputs.settled[entry] = self.rounds.engine.ledger.miscalibration
        if len(self.inputs.points):
            self.residuals.add(value - float(self.inputs.points[entry]))

    def look_ahead(self, events: Events) -> None:
        """Play events for the miscalibration that comes of them, and undo everything else."""
        residuals = self.residuals.copy()
        with self.rounds.branch():
            self.play(events)
        self.residuals = residuals

    @property
    def pending(self) -> NDArray[np.int64]:
        """The pending entries, the oldest first."""
        return np.array(self.rounds.ids, dtype=np.int64)

    def state(self) -> RunState:
        """The game after the events."""
        errors = np.array([self.residuals.total, self.residuals.count], dtype=np.float64)
        return self.runner.state(self.rounds.to_packed(), errors)


def events_of(kinds: list[int], entries: list[int]) -> Events:
    """Events from their kinds and entries, at which nothing is heard of a pool."""
    return with_heard(np.column_stack((np.array(kinds, dtype=np.int64), np.array(entries, dtype=np.int64))), -1)


def with_heard(events: Events, heard: Any) -> Events:
    """Events of kinds and entries, with the row of the signals that is heard at each."""
    return np.column_stack((events, np.broadcast_to(np.asarray(heard, dtype=np.int64), len(events))))
