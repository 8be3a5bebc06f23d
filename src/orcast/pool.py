"""Pool: games of many series that learn together, in a service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine import admissible
from orcast.engine.ordered import NOTHING, OrderedEngine
from orcast.kernels import pooling, records
from orcast.kernels.evidence import expert_beyond_chance_arrays
from orcast.kernels.pool_state import EVIDENCE_NUMBERS, SIGNAL, SPREAD_NUMBERS
from orcast.kernels.rounds import pool_gradients
from orcast.kernels.state import Round
from orcast.locks import GameLock, Locked, locked

Array = NDArray[np.float64]

OWNER = "Pool"
# What is kept of the mean offsets from outcome to outcome: they are those of the last hundred or so, of all games.
KEPT = 0.99

# Columns of a signal: outcomes, evidence in standard errors, miscalibration of the experts, and the first of the sums.
COUNT, EVIDENCE, EXCESS = (SIGNAL.index(name) for name in ("count", "evidence", "excess"))
SUMS = len(SIGNAL)

# What a pool knows, in the order of its snapshots.
ARRAYS: admissible.Table = {
    "signal": {COUNT: admissible.COUNTED},
    "evidence": {records.EVIDENCE.index("square"): admissible.COUNTED},
    "totals": admissible.VALUES,
    "weight": admissible.COUNTED,
    "spreads": admissible.ANY,
}


class Pool(Locked):
    """What games of similar series learn together: give it to each as ``pool``.

        step of a game  =  half its own gradient + half the mean gradient of all games since its last outcome

    A new recalibrator begins with the mean of the recent corrections of the others. Each keeps its own guarantee.
    Settle the outcomes of one step for all of them before the next forecasts; they may be in several threads.
    A copy has a copy of the pool; pickled in one dict, recalibrators and their pool stay together. For forecasts at
    several horizons take a pool for each; `orcast.recalibrate` does all this for a frame.

    >>> import orcast as oc
    >>> pool = oc.Pool()
    >>> north, south = (oc.Recalibrator(oc.Interval(0, 1), pool=pool) for _ in range(2))
    >>> for _ in range(3):
    ...     for game in (north, south):
    ...         p = game.predict(oc.Normal(0.5, 0.1)); game.update(0.6)
    >>> pool.outcomes
    6
    """

    def __init__(self) -> None:
        self.lock = GameLock()
        self._levels: Array = np.empty(0)
        self._trackers: Array = np.empty((0, 3))
        self._begin()

    def _begin(self) -> None:
        size = len(self._trackers) * len(self._levels)
        self._signal = np.zeros(SUMS + 2 * size + 1)
        self._evidence = np.zeros(EVIDENCE_NUMBERS)
        self._totals = np.zeros(size)
        self._weight = np.zeros(1)
        self._spreads = np.zeros(SPREAD_NUMBERS)

    @property
    def outcomes(self) -> int:
        """Outcomes so far, of all games."""
        return int(self._signal[COUNT])

    def __repr__(self) -> str:
        return f"Pool({self.outcomes} outcomes)"

    # --- for games
    @locked
    def admit(self, engine: Any) -> None:
        """Take a game in, or say in one sentence why it cannot be."""
        if not (isinstance(engine, OrderedEngine) and engine.rules.pooled > 0):
            raise TypeError(
                "expected a pool for quantities that Committee() plays with their usual payoffs, "
                f"got it for {engine.space!r}"
            )
        options = engine.rules.options
        levels, trackers = options["grid"], options["trackers"][: engine.rules.pooled]
        if not len(self._levels):
            self._levels, self._trackers = levels.copy(), trackers.copy()
            self._begin()
        elif not np.array_equal(levels, self._levels):
            raise ValueError(
                f"expected a space with {len(self._levels)} levels, as others of the pool have, "
                f"got {len(levels)} in {engine.space!r}"
            )
        elif not np.array_equal(trackers, self._trackers):
            raise ValueError("expected games of one version in a pool, got one whose trackers are others")

    @locked
    def has_told(self, engine: Any) -> bool:
        """Whether it can be the pool of which a game has heard: it knows as much, or more."""
        seen: Array = engine.memory.view("pool_seen")
        mine = self._signal[: len(seen)]
        if seen[COUNT] != mine[COUNT]:
            return bool(seen[COUNT] < mine[COUNT])
        return np.array_equal(seen[SUMS:], mine[SUMS:])

    @property
    def signal(self) -> Array:
        """What is heard of it now; nothing before the first outcome.  It is not written to again."""
        return self._signal if self._signal[COUNT] > 0.0 else NOTHING

    @locked
    def settle(self, engine: OrderedEngine, record: Round, y: float, reserved: float) -> None:
        """The outcome of a game: the pool learns from it, then the game with what the pool knows now."""
        rules, size = engine.rules, len(self._totals)
        gradients = np.empty(size)
        gain = pool_gradients(rules, engine.memory, record, self.signal, y, gradients)
        signal, evidence = self._signal.copy(), self._evidence.copy()
        signal[COUNT] += 1.0
        signal[SUMS : SUMS + size] += gradients
        pending = record.read("info", "pending")
        signal[EVIDENCE] = pooling.add_gain(evidence, gain, pending)
        engine.update(record, y, reserved=reserved, signal=signal)
        self._signal, self._evidence = signal, evidence
        self._learn_offsets(engine)

    def _learn_offsets(self, engine: OrderedEngine) -> None:
        """The mean offsets of the games, and how far their experts are beyond chance, the last ones counting most."""
        rules, memory = engine.rules, engine.memory
        loss, count = memory.read("tracker_unit", "loss"), memory.read("tracker_unit", "count")
        if not (count > 0.0 and loss > 0.0):
            return
        own = memory.view("offsets")[: rules.pooled].ravel() / (loss / count)
        self._totals = KEPT * self._totals + own
        self._weight = KEPT * self._weight + 1.0
        signal = self._signal.copy()
        ledger, grid, scores = memory.view("expert_ledger").reshape(-1), rules.options["grid"], rules.options["scores"]
        beyond = expert_beyond_chance_arrays(ledger, grid, scores)
        signal[EXCESS] += (beyond - signal[EXCESS]) / self._weight[0]
        signal[SUMS + len(own) : -1] = self._totals / self._weight[0]
        self._spreads = KEPT * self._spreads
        signal[-1] = pooling.add_game(self._spreads, ledger, grid, scores, count)
        self._signal = signal

    @locked
    def snapshot(self) -> tuple[Array, ...]:
        """Everything as it is."""
        return self._signal, self._evidence, self._totals, self._weight, self._spreads

    @locked
    def restore(self, was: tuple[Array, ...]) -> None:
        """Everything as it was."""
        self._signal, self._evidence, self._totals, self._weight, self._spreads = was

    # --- files
    @locked
    def arrays(self) -> dict[str, Array]:
        """Everything that it knows, by name."""
        own = {"levels": self._levels, "trackers": self._trackers.ravel()}
        return {**dict(zip(ARRAYS, self.snapshot(), strict=True)), **own}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Pool:
        """The pool that had these arrays, or a reason why there is none."""
        self = cls()
        levels, trackers = arrays["levels"], arrays["trackers"].reshape(-1, 3)
        within = (levels > 0.0) & (levels < 1.0)
        if levels.dtype != np.float64 or not (within.all() and (np.diff(levels) > 0.0).all()):
            raise ValueError("the levels of a pool are not in order")
        admissible.Fields({"trackers": trackers}, {"trackers": admissible.FLAG}).checked("trackers", trackers)
        self._levels, self._trackers = levels, trackers
        self._begin()
        mine = dict(zip(ARRAYS, self.snapshot(), strict=True))
        admissible.Fields(mine, ARRAYS).copy_into(mine, arrays)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, without pickle; games are saved by themselves, and are given it again when loaded."""
        from orcast import persistence

        persistence.write(path, {"class": OWNER}, self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Pool:
        """Read it from a file; refuses what it cannot read, in one sentence."""
        from orcast.persistence import reading

        with reading(path, OWNER) as (_, arrays):
            return cls.from_arrays(arrays)
