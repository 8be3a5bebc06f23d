"""What the items of a recalibrator learn together at one step ahead, and from which time on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.ordered import NOTHING, OrderedEngine
from orcast.kernels.state import Round
from orcast.pool import Pool

Array = NDArray[np.float64]


class StepPool:
    """A pool of the games of one step, for items that are asked in turn.

    A game that is behind what the pool has heard of, as when items are replayed one after the other, neither hears nor
    teaches: it would know outcomes of times that are still to come.
    """

    __slots__ = ("now", "pool", "until")

    def __init__(self, pool: Pool | None = None, until: int | None = None) -> None:
        self.pool = Pool() if pool is None else pool
        self.until = until  # the last time that a game knew of which taught it
        self.now: int | None = None  # the last time that the game knows of which asks; set by who asks

    @property
    def _open(self) -> bool:
        return self.until is None or (self.now is not None and self.now >= self.until)

    # --- as games know a pool
    def admit(self, engine: Any) -> None:
        """Take a game in, or say in one sentence why it cannot be."""
        self.pool.admit(engine)

    def has_told(self, engine: Any) -> bool:
        """Whether it can be the pool of which a game has heard."""
        return self.pool.has_told(engine)

    @property
    def signal(self) -> Array:
        """What is heard now."""
        return self.pool.signal if self._open else NOTHING

    def settle(self, engine: OrderedEngine, record: Round, y: float, reserved: float) -> None:
        """The outcome of a game."""
        if not self._open:
            engine.update(record, y, reserved=reserved)
            return
        self.pool.settle(engine, record, y, reserved)
        self.until = self.now

    def snapshot(self) -> tuple[Array, ...]:
        """Everything as it is."""
        return self.pool.snapshot()

    def restore(self, was: tuple[Array, ...]) -> None:
        """Everything as it was."""
        self.pool.restore(was)
