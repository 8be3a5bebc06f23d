"""Pool: recalibrators of many series that learn together."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.committee.members import plan_for
from orcast.committee.state import POOL
from orcast.engine import admissible
from orcast.engine.ordered import OrderedEngine
from orcast.locks import StateLock, locked
from orcast.spaces import normal_scores

Array = NDArray[np.float64]

OWNER = "Pool"


class Pool:
    """Share what recalibrators of similar series learn: pass it to each as `pool`.

    The weights of the members, the scale factors and the level offsets are learnt over all series, and a regression has
    common coefficients. The mean over the outcomes between two forecasts is one observation, so a common shock counts
    once. Each recalibrator keeps its own guarantee.

    Settle the outcomes of one step for all of them before the next forecasts; they may be in several threads. A copy
    has a copy of the pool; pickled in one dict, recalibrators and their pool stay together. For forecasts at several
    horizons use one pool per horizon; `orcast.recalibrate` does all this for a frame.

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

    @locked
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "lock": None, "rows": self.rows.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=StateLock())

    # --- for recalibrators
    @locked
    def admit(self, engine: Any) -> None:
        """Connect an engine to the pool."""
        if not (isinstance(engine, OrderedEngine) and engine.group is not None):
            raise TypeError(
                f"expected pool= only for quantities with Committee() and default payoffs, got {engine.space!r}"
            )
        levels, experts = engine.space.levels, engine.rules.experts
        if self.outcomes == 0 and (not len(self._levels) or experts != len(self.rows)):
            self._levels = levels.copy()
            self.rows = np.zeros((experts, engine.group.plan.pool_size))
        if not np.array_equal(levels, self._levels):
            raise ValueError(
                f"expected a space with {len(self._levels)} levels, as in the rest of the pool, "
                f"got {len(levels)} in {engine.space!r}"
            )
        if experts != len(self.rows):
            raise ValueError(f"expected {len(self.rows)} experts, as in the rest of the pool, got {experts}")
        engine.join(self.rows)

    def add(self, y: float) -> None:
        """Count an outcome."""
        self.outcomes, self.total = self.outcomes + 1, self.total + y

    @locked
    def told(self) -> list[float]:
        """Number and sum of the outcomes so far, which are saved with a recalibrator."""
        return [self.outcomes, self.total]

    def follows(self, outcomes: float, total: float) -> bool:
        """Return True if this may be the pool that had these outcomes, or a later state of it."""
        return self.outcomes > outcomes or (self.outcomes == outcomes and self.total == total)

    @locked
    def snapshot(self) -> tuple[int, float, Array]:
        """Copy of the present state."""
        return self.outcomes, self.total, self.rows.copy()

    @locked
    def restore(self, was: tuple[int, float, Array]) -> None:
        """Restore a snapshot."""
        self.outcomes, self.total, self.rows[...] = was

    # --- files
    @locked
    def encode(self) -> bytes:
        """State as bytes."""
        from orcast import persistence

        arrays = {"levels": self._levels, "rows": self.rows, "outcomes": np.array(self.told())}
        return persistence.encode({"class": OWNER}, arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; load recalibrators with `pool=`."""
        from orcast import persistence

        persistence.write(path, self.encode())

    @classmethod
    def load(cls, source: str | os.PathLike[str] | bytes) -> Pool:
        """Read a pool from a file, or from the bytes of `encode`."""
        from orcast.persistence import reading

        self = cls()
        with reading(source, OWNER) as (_, arrays, _):
            levels, rows, outcomes = (arrays[name] for name in ("levels", "rows", "outcomes"))
            if not ((levels > 0.0) & (levels < 1.0)).all() or not (np.diff(levels) > 0.0).all():
                raise ValueError("expected increasing levels strictly between 0 and 1 in the pool, got others")
            width = plan_for(levels, normal_scores(levels), pooled=True).pool_size if len(levels) else 0
            if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != width or len(rows) > 1000:
                raise ValueError(f"expected at most 1000 rows of {width} numbers in the pool, got shape {rows.shape}")
            count, total = outcomes.tolist()
            if not (0.0 <= count <= 1e15 and count == int(count) and abs(total) <= 1e150):
                raise ValueError(f"expected a whole number of outcomes in the pool, got {count!r}")
            admissible.check_columns("pool", rows[:, : len(POOL)], admissible.POOL)
            if not (np.abs(rows) <= 1e150).all():
                raise ValueError("expected finite numbers in the pool, got others")
            self._levels, self.rows, self.outcomes, self.total = levels, rows.copy(), int(count), float(total)
        return self
