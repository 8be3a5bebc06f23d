"""Pending rounds: issued, then settled or dropped; until then a round reserves the slack of its certificate."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast import limits
from orcast.draws import uniform_draw, uniform_draws
from orcast.engine import Engine
from orcast.kernels import records
from orcast.kernels.records import LAG_RATE
from orcast.packed import PackedRounds, pack_row
from orcast.serialise import plain_id
from orcast.spaces import Binary, Labels, OrderedSpace, Space
from orcast.validation import short, warn_user

if TYPE_CHECKING:
    from orcast.monitors import Watch
    from orcast.pool import Pool

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

# Which forecasts are published: the recalibrated ones, the base forecasts, or those that a guard chooses.
MODES = ("direct", "shadow", "guarded")
# Larger whole numbers are not exact as floats.
LARGEST_COUNT = 2**53


def watchable(space: Space) -> bool:
    """True if forecasts on a space have PITs, by which they are monitored."""
    return isinstance(space, (OrderedSpace, Binary, Labels))


def checked_mode(mode: str) -> str:
    """Refuse an unknown mode."""
    if mode not in MODES:
        raise ValueError(f"expected mode='direct', 'shadow' or 'guarded', got {short(mode)}")
    return mode


def running_lag(usual: float | None, lag: float) -> float:
    """Update the usual lag with another one; None means none so far."""
    return lag if usual is None else usual + LAG_RATE * (lag - usual)


@dataclass(slots=True)
class PendingRound:
    """A pending round: its engine's record, its number, and a number of the store's."""

    record: Any
    issued: int
    attached: int = 0

    @property
    def overdraft(self) -> float:
        """Slack that the round reserves."""
        return self.record.overdraft()  # type: ignore[no-any-return]


def check_counters(issued: Any, lag: Any, reserved: Any, pending: Sequence[Any]) -> None:
    """Refuse impossible counters of a state; `pending` has the numbers of the pending rounds."""
    numbers = [issued, reserved, *pending, *(() if lag is None else (lag,))]
    fits = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in numbers)
    fits = fits and all(0 <= each <= LARGEST_COUNT for each in numbers)
    if not fits or any(each != int(each) or each > issued for each in (issued, *pending)):
        raise ValueError("expected counters from 0 and pending rounds issued before, got others in the state")


class Rounds:
    """Rounds of one recalibrator: the pending ones by id, oldest first, and the usual lag of outcomes.

    None is the id of the unnamed round, which a new unnamed one replaces. At most `max_pending` are pending: beyond
    that the oldest is evicted.
    """

    def __init__(
        self,
        engine: Engine,
        max_pending: int,
        pool: Pool | None = None,
        *,
        seed: int | None = None,
        watched: bool = False,
        mode: str = "direct",
    ) -> None:
        self.max_pending = max_pending
        self.pending: dict[Hashable, PendingRound] = {}
        self.engine, self.pool = engine, pool
        self.seed = seed  # of the random draws; None without randomisation
        self.watched = watched  # True if monitors follow the forecasts
        self.mode = mode  # "shadow" and "guarded" compare the scores with those of the base forecast
        self.watch: Watch | None = None  # monitors and guard, from the first outcome on
        self.issued = 0
        self.reserved = 0.0
        self.usual_lag: float | None = None

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """Ids, the oldest first."""
        return tuple(self.pending)

    def check_new(self, id: Hashable) -> None:
        """Refuse an id that cannot be saved, or is pending."""
        if id is not None:
            plain, moment = plain_id(id), isinstance(id, (datetime.date, np.datetime64))
            # a time may equal one of another type under another hash
            if id in self.pending or (moment and plain in map(plain_id, self.pending)):
                raise ValueError(f"expected a new id, got {short(id)}, which is pending already")

    def find(self, id: Hashable) -> PendingRound:
        """Round of an id."""
        try:
            return self.pending[id]
        except TypeError:
            raise TypeError(f"expected a hashable id, got {short(id)}") from None
        except KeyError:
            if id is not None:
                raise ValueError(f"expected the id of a pending round, got {short(id)}") from None
            named = f": {len(self.pending)} named ones are pending, pass id=" if self.pending else ""
            raise ValueError(f"expected an unnamed pending round, got none{named}") from None

    def evicted_by(self, id: Hashable) -> list[Hashable]:
        """Return the id that a new round evicts, if any."""
        if id is None and None in self.pending:
            return [None]
        return [next(iter(self.pending))] if len(self.pending) >= self.max_pending else []

    def _predict(self, rows: Any, features: Any, outstanding: float, reserved: float, number: int) -> Any:
        if self.pool is None:
            return self.engine.predict(rows, features, pending=outstanding, reserved=reserved, number=number)
        with self.pool.lock:
            return self.engine.predict(rows, features, pending=outstanding, reserved=reserved, number=number)

    def _update(self, record: Any, y: Any, reserved: float, late: float, issued: int, lag: float) -> None:
        """Settle round `issued`, whose outcome came when `lag` others had been issued."""
        pits = self.engine.pits(record, y) if self.watched else None
        scores = None if self.mode == "direct" else self._scores(record, y)
        if self.pool is None:
            self.engine.update(record, y, reserved=reserved, late=late)
        else:
            with self.pool.lock:
                self.engine.update(record, y, reserved=reserved, late=late)
                self.pool.add(y)
        if pits is not None:
            self._monitors().put(pits, issued - 1, issued + lag)
        if scores is not None:
            self._monitors().guard.put(scores, issued - 1, issued + lag)  # type: ignore[union-attr]

    def _scores(self, record: Any, y: Any) -> Any:
        """Scores of the base forecast and of ours."""
        from orcast.guard import scores_of

        return scores_of(self.engine.space, record, y)

    # --- monitors
    def _monitors(self) -> Watch:
        """Monitors, which begin with the first outcome."""
        if self.watch is None:
            from orcast.monitors import Watch

            self.watch = Watch(self.engine.space, len(self.engine.bound_payoff.experts), self.mode)
        return self.watch

    def change_mode(self, mode: str) -> None:
        """Publish by another mode from now on."""
        rows = [row.copy() for row in self.monitor_rows()]
        self.mode, self.watch = mode, None
        self.restore_monitors(self.adapted(rows), trusted=True)

    def adapted(self, rows: list[Array]) -> list[Array]:
        """State of the monitors, written in any mode, for this mode: the guard is dropped, or begins again."""
        sides = 1 + len(self.engine.bound_payoff.experts) if self.watched else 0
        if self.mode == "direct" or not rows:
            return rows[:sides]
        from orcast.guard import OURS, GuardState

        guard = rows[sides : sides + 1]
        if guard and (self.mode == "guarded" or guard[0][OURS] == 0.0):
            return rows
        return [*rows[:sides], GuardState(guarded=self.mode == "guarded").row()]

    def monitor_rows(self) -> list[Array]:
        """State of the monitors, which the caller must not change; empty before the first outcome."""
        return [] if self.watch is None else self.watch.rows()

    @property
    def raised(self) -> list[tuple[float, float]]:
        """Round of the first alarm, and number of changes, of each monitor; they differ after an alarm."""
        rows = [] if self.watch is None else [watcher.state for watcher in self.watch.watchers]
        return [(row.item(records.ALARM), row.item(records.CHANGES)) for row in rows]

    def restore_monitors(self, rows: Sequence[Array], *, trusted: bool = False) -> None:
        """Take over a state of the monitors, which is not copied; refuse an invalid one unless it is `trusted`."""
        if not rows:
            self.watch = None
            return
        if not self.watched and self.mode == "direct":
            raise ValueError("expected no monitors of such a recalibrator, got some in the state")
        watch = self._monitors()
        if not trusted:
            watch.check(rows)
        watch.take(rows)

    @property
    def outstanding(self) -> float:
        """Number of outcomes still expected; rounds far older than the usual lag count as expired."""
        most = float(len(self.pending))
        return most if self.usual_lag is None or most <= 2.0 else min(most, 2.0 * self.usual_lag + 2.0)

    # --- a round
    def peek(
        self,
        rows: Any,
        features: Any = None,
        *,
        outstanding: float | None = None,
        reserved: float | None = None,
        number: int | None = None,
    ) -> Any:
        """Record of a round if it were issued now; changes nothing.

        `outstanding` and `reserved` replace those of the pending rounds, `number` that of the round.
        """
        pending = self.outstanding if outstanding is None else outstanding
        free = self.reserved if reserved is None else reserved
        record = self._predict(rows, features, pending, free, self.issued + 1 if number is None else number)
        self._set_draw(record, self.issued + 1)
        return record

    def _set_draw(self, record: Any, number: int) -> None:
        """Set the random draw of a round, from its number."""
        if self.seed is not None:
            record.set_draw(uniform_draw(self.seed, number))

    def issue(self, rows: Any, features: Any = None, *, id: Hashable = None) -> PendingRound:
        """Issue a round around the experts' rows under a new id, or as the unnamed one."""
        if self.pending and self.evicted_by(id):
            return self._replace(rows, features, id)
        outstanding = self.outstanding if self.pending else 0.0
        return self.keep(self._predict(rows, features, outstanding, self.reserved, self.issued + 1), id=id)

    def _replace(self, rows: Any, features: Any, id: Hashable) -> PendingRound:
        """Issue a round in place of an evicted one."""
        (other,) = self.evicted_by(id)
        # computed as if it were evicted, which happens only after the new round was accepted
        rest = len(self.pending) - 1
        free = self._reserved_without(self.pending[other])
        # an unnamed round passes on its random draw, so that no one can select draws, and its number if it is the last
        again = other == id and self.pending[other].issued == self.issued
        outstanding, number = min(self.outstanding, float(rest)), self.issued + (not again)
        record = self._predict(rows, features, outstanding, free, number)
        if other != id:
            most = f"max_pending={self.max_pending} are pending"
            warn_user(f"dropped the oldest pending round, {short(other)}: {most}", RuntimeWarning)
        was = self.drop(other).record
        self.issued = number - 1
        entry = self.keep(record, id=id)
        if other == id and self.seed is not None:
            record.set_draw(was.draw())
        if other == id and hasattr(record, "decision"):
            record.decision[0] = was.decision[0]
        return entry

    def keep(self, record: Any, *, id: Hashable = None) -> PendingRound:
        """Issue a round that `peek` computed."""
        self.issued += 1
        if self.seed is not None:
            self._set_draw(record, self.issued)
        self.pending[id] = entry = PendingRound(record, self.issued)
        self.reserved += record.overdraft()
        return entry

    def settle(self, y: Any, *, id: Hashable = None, late: float | None = None) -> None:
        """Record the outcome, in its canonical form, of a pending round; `late` replaces the rounds issued since."""
        entry = self.find(id)
        reserved = self._reserved_without(entry) if len(self.pending) > 1 else 0.0
        lag = self.issued - entry.issued
        self._update(entry.record, y, reserved, lag if late is None else late, entry.issued, lag)
        del self.pending[id]
        self.reserved = reserved
        if lag or self.usual_lag:
            self.usual_lag = running_lag(self.usual_lag, float(lag))
        else:
            self.usual_lag = 0.0

    def settle_unkept(self, record: Any, y: Any, *, lag: float = 0.0, reserved: float = 0.0) -> None:
        """Record the outcome of a round that was computed by `peek`; `lag` others were issued before it came."""
        self._update(record, y, reserved, lag, self.issued + 1, lag)
        self.issued += 1
        self.usual_lag = running_lag(self.usual_lag, lag)

    def drop(self, id: Hashable = None) -> PendingRound:
        """Drop a pending round."""
        entry = self.find(id)
        self.reserved = self._reserved_without(entry)
        return self.pending.pop(id)

    def _reserved_without(self, entry: PendingRound) -> float:
        """Slack that the other rounds reserve: exactly 0 if there are none."""
        return max(self.reserved - entry.overdraft, 0.0) if len(self.pending) > 1 else 0.0

    def forecast(self, entry: PendingRound) -> Any:
        """Recalibrated forecast of a round."""
        return self.engine.forecast(entry.record)

    def base_published(self, record: Any) -> Array | None:
        """Base forecast of a round, if it is published when the round is issued now."""
        if self.mode == "direct" or (self.watch is not None and self.watch.guard.ours):  # type: ignore[union-attr]
            return None
        from orcast.guard import base_row

        return base_row(record)

    def published(self, record: Any) -> Any:
        """Forecast that a round publishes if it is issued now: the base forecast has no certificate."""
        row = self.base_published(record)
        if row is None:
            return self.engine.forecast(record)
        from orcast.guard import base_forecast

        return base_forecast(self.engine.space, row)

    # --- a whole history
    def run(
        self, rows: Array, features: Sequence[Any] | None, outcomes: Sequence[Any], levels: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Run many rounds, each settled before the next.

        Returns the forecasts, the log of each round, and whether it published the base forecast. If an input is
        refused, nothing has changed.
        """
        engine: Any = self.engine
        base = np.zeros(len(outcomes), dtype=np.bool_)
        if engine.runs and self.pool is None and self.mode == "direct":
            drawn = {} if self.seed is None else {"draws": uniform_draws(self.seed, self.issued + 1, len(outcomes))}
            pits = np.empty((len(outcomes), records.ENDS * (rows.shape[1] + 1)) if self.watched else (0, 0))
            number = self.issued + 1
            result, round_log = engine.run(
                rows, features, np.array(outcomes), levels, number=number, pits=pits, **drawn
            )
            if pits.size:
                self._monitors().put(pits.ravel(), self.issued, number)
        else:
            result, round_log, base = self._run_one_by_one(rows, features, outcomes, levels)
        self.count_settled(len(outcomes))
        return np.asarray(result, dtype=np.float64), round_log, base

    def _run_one_by_one(
        self, rows: Array, features: Sequence[Any] | None, outcomes: Sequence[Any], levels: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        engine, space = self.engine, self.engine.space
        result, base = [], np.zeros(len(outcomes), dtype=np.bool_)
        round_log = np.full((len(outcomes), _ledger.ROUND_LOG_SIZE), np.nan)
        with self.branch(keep=True):
            for t, y in enumerate(outcomes):
                own, number = None if features is None else features[t], self.issued + t + 1
                record = self._predict(rows[t], own, 0.0, 0.0, number)
                self._set_draw(record, number)
                base[t] = self.base_published(record) is not None
                result.append(self.read(record, levels, round_log[t]))
                self._update(record, y, 0.0, 0.0, number, 0.0)
                round_log[t, _ledger.RoundLog.MISCALIBRATION] = engine.ledger.miscalibration
        if isinstance(space, Binary):
            return np.array(result), round_log, base
        width = len(levels) if isinstance(space, OrderedSpace) else space.cells
        return np.array(result).reshape(len(outcomes), width), round_log, base

    def read(self, record: Any, levels: Array, log_row: Array) -> Any:
        """Quantiles, masses or probability of a round; fills a row of the log."""
        p: Any = self.published(record)
        space, certificate = self.engine.space, record.certificate_row
        log_row[_ledger.RoundLog.HOLDS] = certificate[_ledger.CertificateField.HOLDS]
        log_row[_ledger.RoundLog.PROMISED] = certificate[_ledger.CertificateField.PROMISED]
        log_row[_ledger.RoundLog.EXCESS] = certificate[_ledger.CertificateField.EXCESS]
        if isinstance(space, OrderedSpace):
            log_row[_ledger.RoundLog.MEAN], log_row[_ledger.RoundLog.SD] = p.to_normal()
            return p.quantile(levels)
        return p.probability() if isinstance(space, Binary) else p.mass

    # --- state
    def to_packed(self) -> PackedRounds:
        """Counters and pending rounds, without the ids."""
        entries = list(self.pending.values())
        arrays = [entry.record.arrays() for entry in entries]
        return PackedRounds(
            np.array([self.issued, np.nan if self.usual_lag is None else self.usual_lag, self.reserved]),
            tuple((name, array.dtype.str, array.shape) for name, array in arrays[-1].items()) if arrays else (),
            np.array([pack_row(each.values()) for each in arrays]) if arrays else np.empty((0, 0)),
            np.array([entry.issued for entry in entries], dtype=np.float64),
            [getattr(entry.record, "features", None) for entry in entries],
        )

    def from_packed(self, packed: PackedRounds, ids: Sequence[Hashable]) -> None:
        """Restore the result of `to_packed` under these ids."""
        issued, lag, reserved = packed.counters.tolist()
        check_counters(issued, None if lag != lag else lag, reserved, packed.issued.tolist())
        limits.check("pending", len(ids))
        records = [self.engine.restored_record(*each) for each in zip(packed.arrays(), packed.features, strict=True)]
        pending = [PendingRound(*each) for each in zip(records, packed.issued.astype(int).tolist(), strict=True)]
        if len(set(ids)) < len(ids):
            raise ValueError("expected pending rounds with different ids, got others in the state")
        self.pending = dict(zip(ids, pending, strict=True))
        self.issued, self.reserved, self.usual_lag = int(issued), reserved, None if lag != lag else lag

    def count_settled(self, count: int) -> None:
        """Count rounds that were issued and settled elsewhere, each before the next."""
        self.issued += count
        if self.usual_lag == 0.0:
            return
        for _ in range(count):
            self.usual_lag = running_lag(self.usual_lag, 0.0)

    @contextmanager
    def branch(self, *, keep: bool = False) -> Iterator[None]:
        """Restore the state at the end of the block; with `keep` only if it raises, then that of the pool too."""
        engine, pending, counters = self.engine, dict(self.pending), (self.issued, self.reserved, self.usual_lag)
        memory = {name: array.copy() for name, array in engine.arrays().items()}
        sizes, monitors = getattr(engine, "sizes", None), [row.copy() for row in self.monitor_rows()]
        shared, done = self.pool.snapshot() if keep and self.pool is not None else None, False
        try:
            yield
            done = keep
        finally:
            if not done:
                self.pending, (self.issued, self.reserved, self.usual_lag) = pending, counters
                if sizes is None and hasattr(engine, "forget_sizes"):
                    engine.forget_sizes()
                self.restore_monitors(monitors, trusted=True)
                # copied here, because the engine's `restore` may call user functions
                for name, array in engine.arrays().items():
                    if name in memory:
                        array[...] = memory[name]
                if self.pool is not None and shared is not None:
                    self.pool.restore(shared)
