"""One recalibrator for many streams: each is resumed, runs its events, and leaves its state.

On ordered spaces a compiled loop runs the events, elsewhere `orcast.rounds.Rounds` does; both do what `predict`,
`update` and `drop` of a `Recalibrator` do, with the corrected quantiles of a committee given.
"""

from __future__ import annotations

import math
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
from orcast.frame.bounds import scale_between, space_between
from orcast.frame.experts import ForecastShape
from orcast.frame.ordering import Before
from orcast.frame.workers import NEVER, Stop
from orcast.histories import ALONE
from orcast.kernels import events as kernels
from orcast.kernels.records import PREDICT, SETTLE
from orcast.packed import PackedRounds, pack_row, unpack_row
from orcast.payoffs import Payoff, default_payoff
from orcast.payoffs.base import UNKNOWN
from orcast.persistence import UNREADABLE, unusable
from orcast.residuals import first_spread
from orcast.rounds import Rounds, check_counters
from orcast.serialise import plain_features
from orcast.spaces import Interval, OrderedSpace, Space
from orcast.spaces.base import LARGEST, SMALLEST

Array = NDArray[np.float64]
Events = NDArray[np.int64]  # kind and entry of each

# As plain numbers: Python 3.11 is slow in looking up members of an enum, and streams may be short.
HOLDS, PROMISED, MISCALIBRATION, MEAN, SD, _ = map(int, _ledger.RoundLog)
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
    """Inputs of a run: entries that are pending from before, then one for each new forecast; see `kernels.Stream`."""

    values: Array
    experts: Array
    priors: Array
    levels: Array
    widths: NDArray[np.int64]
    level_set: NDArray[np.int64]
    coins: Array


class Outputs(NamedTuple):
    """Results: quantiles and log of each new forecast, and the miscalibration after each outcome."""

    quantiles: Array
    round_log: Array
    settled: Array


class RunState(NamedTuple):
    """A game between frames."""

    rounds: PackedRounds
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

    def __init__(self, shape: ForecastShape, payoff: Payoff | None, oracle: Oracle | None, by_row: bool) -> None:
        self.shape, self.payoff, self.by_row = shape, payoff, by_row and shape.ordered
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
            self.runners[key] = Runner(self.shape, space, self.payoff, self.oracle, self.by_row)
        return self.runners[key]


class Runner:
    """A game that streams of one model and space are played on, one after the other."""

    def __init__(
        self, shape: ForecastShape, space: Space, payoff: Payoff | None, oracle: Oracle, by_row: bool = False
    ) -> None:
        self.shape, self.space, self.oracle, self.by_row = shape, space, oracle, by_row
        self.payoff = default_payoff(space) if payoff is None else payoff
        self.rounds = self._begin(None)
        self.grows = UNKNOWN in [part.size for part in self.rounds.engine.bound_payoff.parts]
        self._blank = [array.copy() for array in self.rounds.engine.arrays().values()]

    def _begin(self, sizes: tuple[int, ...] | None) -> Rounds:
        bound_payoff = BoundPayoff(self.space, self.payoff, (ALONE,), None)
        engine = self.oracle.bind(bound_payoff, sizes)
        if isinstance(engine, OrderedEngine):
            engine.group = None  # the corrected quantiles are given
        return Rounds(engine, max_pending=2**31)

    @property
    def corrected(self) -> bool:
        """Return whether a committee corrects the base forecasts."""
        return isinstance(self.oracle, Committee) and isinstance(self.rounds.engine, OrderedEngine)

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

    def points(self, given: Array, units: Units) -> Array:
        """Point forecasts in the units of the outcomes that are played."""
        return np.asarray((given[:, 0] - units.shift) / units.scale)

    def first_spreads(self, new: NewForecasts) -> Array:
        """Spreads of point forecasts before any error is known."""
        assert isinstance(self.space, OrderedSpace)
        found = first_spread(new.given[:, 0], self.space)
        return found if isinstance(self.space, Interval) else found / np.abs(new.units.scale)

    def experts(self, new: NewForecasts, points: Array, spreads: Array) -> Array:
        """Base quantiles of new forecasts, or masses on cells; those of points have the spreads of the committee."""
        space = self.space
        if not len(new.given):
            return np.empty((0, len(space.levels) if isinstance(space, OrderedSpace) else space.cells))
        if self.shape.kind == "point":
            assert isinstance(space, OrderedSpace)
            return np.clip(points[:, None] + spreads[:, None] * space.scores, *reach_of(space))
        return np.ascontiguousarray(self.shape.expert_rows(self.space, new.given, *new.units))

    def _inputs(self, new: NewForecasts, values: Array, experts: Array, priors: Array, tossed: Array) -> Inputs:
        shape, m = self.shape, len(new.given)
        scale = new.units.scale
        counts, level_set = np.zeros(1, dtype=np.intp), np.zeros(m, dtype=np.int64)
        if shape.kind == "members" and m:
            counts, level_set = np.unique((~np.isnan(new.given)).sum(axis=1), return_inverse=True)
        sets = [shape.levels_to_read(int(count), bool(m and scale[0] < 0.0)) for count in counts]
        levels = np.zeros((len(sets), max(map(len, sets))))
        for row, each in zip(levels, sets, strict=True):
            row[: len(each)] = each
        widths = np.array([len(each) for each in sets])
        return Inputs(np.ascontiguousarray(values), experts, priors, levels, widths, level_set.astype(np.int64), tossed)

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
        events: Events,
        experts: Array,
        priors: Array,
        seed: int | None = None,
    ) -> CompiledRun | PythonRun:
        """Let a stream go on from its state, or a new one begin, with its new forecasts and events to be run.

        Values are the outcomes of all entries: those that are pending come first. Experts and priors are the base
        quantiles and the corrected ones of the new forecasts; a seed is that of the stream's random draws.
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
                state = RunState(packed, np.empty(0), None)
            else:
                kinds = {name: (array.dtype, array.shape) for name, array in engine.arrays().items()}
                engine.restore(unpack_row(state.memory, kinds))
            self.rounds.seed = seed
            issued = int(state.rounds.counters[0])
            tossed = np.empty(0) if seed is None else coins(seed, issued + 1, len(new.given))
            inputs = self._inputs(new, values, experts, priors, tossed)
            if isinstance(engine, OrderedEngine) and engine.runs:
                return CompiledRun(self, state, inputs, new.features, events)
            return PythonRun(self, state, inputs, new.features, events)
        except UNREADABLE as reason:
            if begins:
                raise
            raise unusable(reason) from reason

    def state(self, rounds: PackedRounds) -> RunState:
        """The recalibrator as it stands."""
        engine: Any = self.rounds.engine
        sizes = tuple(engine.sizes) if self.grows and engine.sizes else None
        return RunState(rounds, pack_row(engine.arrays().values()), sizes)


class CompiledRun:
    """The events of one stream, run by a compiled loop."""

    def __init__(
        self, runner: Runner, state: RunState, inputs: Inputs, features: list[Any] | None, events: Events
    ) -> None:
        engine: Any = runner.rounds.engine
        self.runner, self.engine, self.inputs = runner, engine, inputs
        packed = state.rounds
        old = len(packed.issued)
        pending = old + np.cumsum(1 - 2 * (events[:, 0] != PREDICT))
        issued, lag, reserved = packed.counters.tolist()
        check_counters(issued, None if lag != lag else lag, reserved, packed.issued.tolist())
        self.stream = kernels.Stream(
            engine.rules,
            *inputs[:3],
            self._contexts(inputs, features),
            *inputs[3:],
            packed.counters,
            int(pending.max(initial=max(old, 1))),
        )
        if old:
            pairs = zip(packed.arrays(), packed.features, strict=True)
            records = [engine.restored_record(arrays, own) for arrays, own in pairs]
            rows, slots = np.array([each.row for each in records]), np.array([each.whole for each in records])
            self.stream.resume(rows, slots, packed.issued)
        self.outputs = Outputs(self.stream.quantiles, self.stream.round_log, self.stream.settled)

    def _contexts(self, inputs: Inputs, features: list[Any] | None) -> Array:
        """Contexts of the new forecasts."""
        engine, m = self.engine, len(inputs.level_set)
        contexts = np.ones((m, engine.rules.groups))
        if not engine.bound_payoff.plain:
            for t in range(m):
                x = None if features is None else features[t]
                known = engine.known(inputs.experts[t : t + 1], x, engine.bound_payoff, 0)
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
        return self.runner.state(packed)


class PythonRun:
    """The events of one stream, played round by round."""

    def __init__(
        self, runner: Runner, state: RunState, inputs: Inputs, features: list[Any] | None, events: Events
    ) -> None:
        self.runner, self.rounds, self.inputs = runner, runner.rounds, inputs
        self.features = features
        self.old = len(inputs.values) - len(inputs.level_set)
        self.rounds.from_packed(state.rounds, range(len(state.rounds.issued)))
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
        x = None if self.features is None else plain_features(self.features[new])
        rounds, rows = self.rounds, inputs.experts[new : new + 1]
        if isinstance(rounds.engine, OrderedEngine):
            pending = rounds.outstanding if rounds.pending else 0.0
            record: Any = rounds.engine.predict(
                rows, x, pending=pending, reserved=rounds.reserved, prior=inputs.priors[new]
            )
            rounds.keep(record, id=entry)
        else:
            record = rounds.issue(rows, x, id=entry).record
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

    def look_ahead(self, events: Events) -> None:
        """Play events for the miscalibration that comes of them, and undo everything else."""
        with self.rounds.branch():
            self.play(events)

    @property
    def pending(self) -> NDArray[np.int64]:
        """The pending entries, the oldest first."""
        return np.array(self.rounds.ids, dtype=np.int64)

    def state(self) -> RunState:
        """The game after the events."""
        return self.runner.state(self.rounds.to_packed())


def events_of(kinds: list[int], entries: list[int]) -> Events:
    """Events from their kinds and entries."""
    return np.column_stack((np.array(kinds, dtype=np.int64), np.array(entries, dtype=np.int64)))
