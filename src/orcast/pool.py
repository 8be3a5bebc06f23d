"""Pool: recalibrators of many series that learn together, in a service."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.committee.members import plan_for
from orcast.committee.state import POOL
from orcast.engine import admissible
from orcast.engine.ordered import OrderedEngine
from orcast.locks import Locked, StateLock, locked
from orcast.spaces import normal_scores

Array = NDArray[np.float64]

OWNER = "Pool"


class Pool(Locked):
    """Evidence that recalibrators of similar series share: give it to each as ``pool``.

    The weights of the members, the spreads and the level offsets are learnt over all of them, and a regression has
    coefficients for all of them. The mean over the outcomes between two forecasts is one observation, so that a common
    shock counts once. Each recalibrator keeps its own guarantee.

    Settle the outcomes of one step for all of them before the next forecasts; they may be in several threads. A copy
    has a copy of the pool; pickled in one dict, recalibrators and their pool stay together. For forecasts at several
    horizons take a pool for each; `orcast.recalibrate` does all this for a frame.

    >>> import orcast as oc
    >>> pool = oc.Pool()
    >>> north, south = (oc.Recalibrator(oc.Interval(0, 1), pool=pool) for _ in range(2))
    >>> for _ in range(3):
    ...     for recal in (north, south):
    ...         p = recal.predict(oc.Normal(0.5, 0.1)); recal.update(0.6)
    >>> pool.outcomes
    6
    """

    def __init__(self) -> None:
        self.lock = StateLock()
        self.outcomes, self.total = 0, 0.0
        self._levels: Array = np.empty(0)
        self.rows: Array = np.empty((0, 0))

    def __repr__(self) -> str:
        return f"Pool({self.outcomes} outcomes)"

    # --- for recalibrators
    @locked
    def admit(self, engine: Any) -> None:
        """Let an engine learn in this pool, or say in one sentence why it cannot."""
        if not (isinstance(engine, OrderedEngine) and engine.group is not None):
            raise TypeError(
                "expected a pool for quantities that Committee() corrects with their usual payoffs, "
                f"got it for {engine.space!r}"
            )
        levels, experts = engine.space.levels, engine.rules.experts
        if self.outcomes == 0 and (not len(self._levels) or experts != len(self.rows)):
            self._levels = levels.copy()
            self.rows = np.zeros((experts, engine.group.plan.pool_size))
        if not np.array_equal(levels, self._levels):
            raise ValueError(
                f"expected a space with {len(self._levels)} levels, as others of the pool have, "
                f"got {len(levels)} in {engine.space!r}"
            )
        if experts != len(self.rows):
            raise ValueError(f"expected {len(self.rows)} experts, as others of the pool have, got {experts}")
        engine.join(self.rows)

    def add(self, y: float) -> None:
        """Count an outcome."""
        self.outcomes, self.total = self.outcomes + 1, self.total + y

    @locked
    def told(self) -> list[float]:
        """Number and sum of the outcomes so far, which are saved with a recalibrator."""
        return [self.outcomes, self.total]

    def follows(self, outcomes: float, total: float) -> bool:
        """Return whether this may be the pool that had these outcomes, or a later state of it."""
        return self.outcomes > outcomes or (self.outcomes == outcomes and self.total == total)

    @locked
    def snapshot(self) -> tuple[int, float, Array]:
        """State as it is."""
        return self.outcomes, self.total, self.rows.copy()

    @locked
    def restore(self, was: tuple[int, float, Array]) -> None:
        """Set the state as it was."""
        self.outcomes, self.total, self.rows[...] = was

    # --- files
    @locked
    def plain(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of its state."""
        return {"class": OWNER}, {"levels": self._levels, "rows": self.rows.copy(), "outcomes": np.array(self.told())}

    def encode(self) -> bytes:
        """Its state as bytes."""
        from orcast import persistence

        return persistence.encode(*self.plain())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, without pickle; recalibrators are saved by themselves and get it again when loaded."""
        from orcast import persistence

        persistence.write(path, *self.plain())

    @classmethod
    def load(cls, source: str | os.PathLike[str] | bytes) -> Pool:
        """Read it from a file, or from the bytes of `encode`; refuses what it cannot read, in one sentence."""
        from orcast.persistence import reading

        self = cls()
        with reading(source, OWNER) as (_, arrays):
            levels, rows, outcomes = (arrays[name] for name in ("levels", "rows", "outcomes"))
            if not ((levels > 0.0) & (levels < 1.0)).all() or not (np.diff(levels) > 0.0).all():
                raise ValueError("the levels of a pool are not in order")
            width = plan_for(levels, normal_scores(levels), pooled=True).pool_size if len(levels) else 0
            if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != width or len(rows) > 1000:
                raise ValueError("the numbers of a pool have another shape")
            count, total = outcomes.tolist()
            if not (0.0 <= count <= 1e15 and count == int(count) and abs(total) <= 1e150):
                raise ValueError("the number of outcomes of a pool is no number")
            admissible.check_columns("pool", rows[:, : len(POOL)], admissible.POOL)
            if not (np.abs(rows) <= 1e150).all():
                raise ValueError("a number of a pool is not finite")
            self._levels, self.rows, self.outcomes, self.total = levels, rows.copy(), int(count), float(total)
        return self
