"""One recalibrator for many streams: each is resumed, runs its events, and leaves its state.

On ordered spaces a compiled loop runs the events, elsewhere `orcast.rounds.Rounds` does; both do what `predict`,
`update` and `drop` of a `Recalibrator` do, with the corrected quantiles of a committee given.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.engine import Committee
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.ordered import OrderedEngine
from orcast.frame.ordering import Before
from orcast.inputs import ALONE
from orcast.kernels import events as kernels
from orcast.kernels.records import PREDICT, SETTLE
from orcast.packed import PackedRounds, pack_row, unpack_row
from orcast.payoffs import Payoff, default_payoff
from orcast.payoffs.base import UNKNOWN
from orcast.persistence import UNREADABLE, unusable
from orcast.rounds import Rounds, check_counters
from orcast.serialise import plain_features
from orcast.spaces import Binary, OrderedSpace, Space
from orcast.spaces.base import LARGEST, SMALLEST

Array = NDArray[np.float64]
Events = NDArray[np.int64]  # kind and entry of each

# As plain numbers: Python 3.11 is slow in looking up members of an enum, and streams may be short.
HOLDS, PROMISED, _, MEAN, SD, _ = map(int, _ledger.RoundLog)
# Events in one call of the compiled loop: between two calls Python can be interrupted.
AT_ONCE = 4000
# Runners that are kept, of frames with other bounds.
MOST_RUNNERS = 64


class Stop(threading.Event):
    """Request to stop; threads check it between streams, and often within long ones."""

    def check(self) -> None:
        """Raise an error, which is not shown, if the request was made."""
        if self.is_set():
            raise CancelledError


# Of runs that are not in threads: an interrupt is raised where they are.
NEVER: Stop = Stop()


class Inputs(NamedTuple):
    """Inputs of a run: entries that are pending from before, then one for each new forecast; see `kernels.Stream`."""

    values: Array
    experts: Array
    priors: Array
    levels: Array
    widths: NDArray[np.int64]
    level_set: NDArray[np.int64]


class RunState(NamedTuple):
    """A recalibrator between frames."""

    rounds: PackedRounds
    memory: Array
    sizes: tuple[int, ...] | None  # of the parts of its payoff, where only a first round tells

    def before(self) -> Before:
        """Rounds so far, as far as the order of play depends on them."""
        issued, lag, reserved = self.rounds.counters.tolist()
        usual, numbers = None if math.isnan(lag) else lag, self.rounds.issued.tolist()
        try:
            check_counters(issued, usual, reserved, numbers)
        except ValueError as reason:
            raise unusable(reason) from reason
        return Before(list(map(int, numbers)), int(issued), usual)


NEW = PackedRounds(np.array([0.0, np.nan, 0.0]), (), np.empty((0, 0)), np.empty(0), [])


class Runner:
    """A recalibrator of one space and payoff, on which streams run one after the other."""

    def __init__(self, space: Space, payoff: Payoff | None) -> None:
        self.space, self.payoff = space, default_payoff(space) if payoff is None else payoff
        self.rounds = self._begin(None)
        self.grows = UNKNOWN in [part.size for part in self.rounds.engine.bound_payoff.parts]
        self._blank = [array.copy() for array in self.rounds.engine.arrays().values()]

    def _begin(self, sizes: tuple[int, ...] | None) -> Rounds:
        engine = Committee().bind(BoundPayoff(self.space, self.payoff, (ALONE,), None), sizes)
        if isinstance(engine, OrderedEngine):
            engine.group = None  # the corrected quantiles are given
        return Rounds(engine, max_pending=2**31)

    @property
    def corrected(self) -> bool:
        """Return whether a committee corrects the base forecasts."""
        return isinstance(self.rounds.engine, OrderedEngine)

    def outcomes(self, y: Array, shift: Array, scale: Array, clip: bool) -> Array:
        """Outcomes in the units of the space, y = shift + scale * value; nan where they are missing or outside."""
        if not isinstance(self.space, OrderedSpace):
            return np.where((y >= 0.0) & (y < self.space.cells) & (y == np.floor(y)), y, np.nan)
        least, most = max(self.space.low, -LARGEST), min(self.space.high, LARGEST)
        with np.errstate(over="ignore", invalid="ignore"):
            value: Array = (y - shift) / scale
            if clip:
                value = np.where(np.isfinite(value), np.minimum(np.maximum(value, least), most), np.nan)
            if self.space.high - self.space.low == np.inf:
                value = np.where(np.abs(value) < SMALLEST, 0.0, value)
            return np.where((value >= least) & (value <= most), value, np.nan)

    def resume(
        self, state: RunState | None, inputs: Inputs, features: list[Any] | None, events: Events
    ) -> CompiledRun | PythonRun:
        """Let a stream go on from its state, or a new one begin."""
        try:
            if self.grows:
                self.rounds = self._begin(None if state is None else state.sizes)
            engine: Any = self.rounds.engine
            if state is None:
                for mine, blank in zip(engine.arrays().values(), self._blank, strict=True):
                    mine[...] = blank
            else:
                kinds = {name: (array.dtype, array.shape) for name, array in engine.arrays().items()}
                engine.restore(unpack_row(state.memory, kinds))
            compiled = isinstance(engine, OrderedEngine) and engine.runs
            run = CompiledRun if compiled else PythonRun
            return run(self, NEW if state is None else state.rounds, inputs, features, events)
        except UNREADABLE as reason:
            if state is None:
                raise
            raise unusable(reason) from reason

    def state(self, rounds: PackedRounds) -> RunState:
        """The recalibrator as it stands."""
        engine: Any = self.rounds.engine
        sizes = tuple(engine.sizes) if self.grows and engine.sizes else None
        return RunState(rounds, pack_row(engine.arrays().values()), sizes)


# Runners of the default payoff; building one takes longer than running a short stream.
_kept = threading.local()


def runner_for(space: Space, payoff: Payoff | None, own: threading.local) -> Runner:
    """Return this thread's runner for a space; `own` keeps that of another payoff."""
    runners: dict[str, Runner] = (_kept if payoff is None else own).__dict__.setdefault("runners", {})
    key = repr(space)
    if key not in runners:
        if len(runners) >= MOST_RUNNERS:
            runners.clear()
        runners[key] = Runner(space, payoff)
    return runners[key]


class CompiledRun:
    """The events of one stream, run by a compiled loop."""

    def __init__(self, runner: Runner, packed: PackedRounds, inputs: Inputs, features: Any, events: Events) -> None:
        self.runner = runner
        engine: Any = runner.rounds.engine
        self.engine = engine
        old = len(packed.issued)
        pending = old + np.cumsum(1 - 2 * (events[:, 0] != PREDICT))
        contexts, most = self._contexts(inputs.experts, features), int(pending.max(initial=max(old, 1)))
        self.stream = stream = kernels.Stream(engine.rules, *inputs[:3], contexts, *inputs[3:], packed.counters, most)
        if old:
            pairs = zip(packed.arrays(), packed.features, strict=True)
            records = [engine.restored_record(*each) for each in pairs]
            stream.resume(np.array([each.row for each in records]), packed.issued)
        # a row for each new forecast, and the miscalibration after each outcome
        self.quantiles, self.round_log, self.settled = stream.quantiles, stream.round_log, stream.settled

    def _contexts(self, experts: Array, features: list[Any] | None) -> Array:
        """Contexts of the new forecasts."""
        engine = self.engine
        bound, contexts = engine.bound_payoff, np.ones((len(experts), engine.rules.groups))
        for t in range(0 if bound.plain else len(experts)):
            x = None if features is None else features[t]
            contexts[t] = bound.context(engine.known(experts[t : t + 1], x, bound, 0))
        return contexts

    def run_rounds(self, events: Events, stop: Stop = NEVER) -> None:
        """Run events."""
        for start in range(0, len(events), AT_ONCE):
            stop.check()
            self.stream.run(self.engine.memory, np.ascontiguousarray(events[start : start + AT_ONCE]).reshape(-1))

    @property
    def pending(self) -> NDArray[np.int64]:
        """The pending entries, the oldest first."""
        return np.array(self.stream.pending)

    def state(self) -> RunState:
        """The recalibrator after the events."""
        stream, entries = self.stream, self.pending
        places = stream.place[entries]
        fields = (("row", "<f8", (stream.records.shape[1],)),)
        kept, features = fields if len(entries) else (), [None] * len(entries)
        counters = stream.counters[:3].copy()
        return self.runner.state(PackedRounds(counters, kept, stream.records[places], stream.issued[entries], features))


class PythonRun:
    """The events of one stream, run round by round; see `CompiledRun`."""

    def __init__(self, runner: Runner, packed: PackedRounds, inputs: Inputs, features: Any, events: Events) -> None:
        self.runner, self.rounds, self.inputs, self.features = runner, runner.rounds, inputs, features
        self.rounds.from_packed(packed, range(len(packed.issued)))
        entries, m = len(inputs.values), len(inputs.level_set)
        self.old, self.ordered, width = entries - m, isinstance(runner.space, OrderedSpace), inputs.levels.shape[1]
        if not self.ordered:
            width = 1 if isinstance(runner.space, Binary) else runner.space.cells
        self.round_log, self.settled = np.full((m, _ledger.ROUND_LOG_SIZE), np.nan), np.full(entries, np.nan)
        self.quantiles = np.full((m, width), np.nan)

    def run_rounds(self, events: Events, stop: Stop = NEVER) -> None:
        """Run events."""
        for kind, entry in events.tolist():
            stop.check()
            if kind == PREDICT:
                self._predict(entry)
            elif kind == SETTLE:
                value = float(self.inputs.values[entry])
                self.rounds.settle(value if self.ordered else int(value), id=entry)
                self.settled[entry] = self.rounds.engine.ledger.miscalibration
            else:
                self.rounds.drop(entry)

    def _predict(self, entry: int) -> None:
        new, rounds, inputs = entry - self.old, self.rounds, self.inputs
        certificates = np.array([each.record.certificate_row for each in rounds.pending.values()])
        x = None if self.features is None else plain_features(self.features[new])
        base, log_row, which = inputs.experts[new : new + 1], self.round_log[new], inputs.level_set[new]
        if isinstance(rounds.engine, OrderedEngine):
            pending, prior = rounds.outstanding if rounds.pending else 0.0, inputs.priors[new]
            record: Any = rounds.engine.predict(base, x, pending=pending, reserved=rounds.reserved, prior=prior)
            rounds.keep(record, id=entry)
        else:
            record = rounds.issue(base, x, id=entry).record
        width = int(inputs.widths[which]) if self.ordered else self.quantiles.shape[1]
        self.quantiles[new, :width] = rounds.read(record, inputs.levels[which, :width], log_row)
        if len(certificates):
            log_row[PROMISED] = kernels.promised(rounds.engine.ledger.account, certificates, record.certificate_row)

    @property
    def pending(self) -> NDArray[np.int64]:
        """The pending entries, the oldest first."""
        return np.array(self.rounds.ids, dtype=np.int64)

    def state(self) -> RunState:
        """The recalibrator after the events."""
        return self.runner.state(self.rounds.to_packed())
