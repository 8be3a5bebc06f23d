"""A store: a database, the states of series in memory, and transactions of both."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from orcast import limits, persistence
from orcast.engine import Oracle
from orcast.forecaster import Recalibrator
from orcast.locks import PAUSE, locked
from orcast.payoffs import Payoff
from orcast.pool import Pool
from orcast.spaces import Space
from orcast.spaces.base import whole
from orcast.store import log, times
from orcast.store.database import PATIENCE, Conflict, connect
from orcast.store.series import Options, StoredSeries
from orcast.store.states import (
    RECALIBRATORS_BYTES,
    Cache,
    SeriesState,
    Shared,
    State,
    decode_record,
    forecast_bytes,
    rows_from,
)
from orcast.store.tables import Tables, from_key, key
from orcast.validation import short, warn_user

Result = TypeVar("Result")
MEMORY = 64 * 2**20
# Options of a recalibrator that plain data describes.
PLAIN = (str, int, float, tuple, type(None))


class Store:
    """Store of many series, which other processes may use at the same time, and a log of their rounds.

    Threads may share a store; after a fork, open it again.

    Parameters
    ----------
    url : ``sqlite:///FILE``, the path of a file, or ``postgresql://USER@HOST/DATABASE``; None: a temporary store
    memory : bytes for the states of the series that were used last
    sync : whether a commit of SQLite survives a loss of power, not only the end of the process
    remember : settled rounds of a series to keep; by default all

    Examples
    --------
    >>> import orcast as oc
    >>> with oc.open() as store:
    ...     wind = store.series("wind", space=oc.Interval(0, 36_000))
    ...     p = wind.predict({0.1: 8_100, 0.5: 9_000, 0.9: 10_400}, id="14:00")
    ...     again = wind.predict({0.1: 8_100, 0.5: 9_000, 0.9: 10_400}, id="14:00")
    ...     _ = wind.update(9_240, id="14:00")
    ...     rain = store.series("rain", space=oc.Binary())
    ...     p.median() == again.median(), wind.guarantee.rounds, store.names()
    (True, 1, ['wind', 'rain'])
    """

    def __init__(
        self,
        url: str | os.PathLike[str] | None = None,
        *,
        memory: int = MEMORY,
        sync: bool = False,
        remember: int | None = None,
    ) -> None:
        self.remember = None if remember is None else whole(remember, "rounds to remember", 1, 2**53)
        self.lock = threading.RLock()
        self.database = connect(url, sync=sync)
        self.tables = Tables(self.database)
        self.shared = Cache[Shared](RECALIBRATORS_BYTES)
        self._cache = Cache[SeriesState](whole(memory, "bytes of memory", 1, 2**50))
        self._changed: dict[int, SeriesState] = {}
        self._options: dict[Hashable, Options] = {}
        # rolled-back transactions that had added series or options, and whether this one did
        self.undone, self._added = 0, False
        self._pool: Pool | None = None
        self._pool_version: int | None = None
        self._pool_changed = False
        self._within, self._foreign, self._closed = False, -1, False
        # time of the transaction
        self.now = 0

    def __repr__(self) -> str:
        return f"Store({self.database.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @locked
    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self._closed = True
        self.database.close()

    # --- series
    def series(
        self,
        name: str | int | None,
        *,
        space: Space | None = None,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        pool: bool | None = None,
        **options: Any,
    ) -> StoredSeries:
        """Open a series; the first time, with the options of `Recalibrator`.

        Parameters
        ----------
        name : text or a whole number
        space, payoff, oracle : as of a `Recalibrator`; those of a series that exists may be left out, unless they have
            functions, which are not saved
        pool : whether it learns together with the other pooled series of the store
        options : other options of a `Recalibrator`, which do not change later
        """
        if not (name is None or isinstance(name, (str, int))) or isinstance(name, bool):
            raise TypeError(f"expected text or a whole number as series, got {short(name)}")
        return self.transact(lambda: self._series(name, space, payoff, oracle, pool, options))

    def _series(self, name: Any, space: Any, payoff: Any, oracle: Any, pool: bool | None, options: Any) -> StoredSeries:
        found, given = self.tables.find_series(key(name)), {"space": space, "payoff": payoff, "oracle": oracle}
        if found is not None:
            known = self.options(found[1], **given)
            known.check(options if pool is None else {**options, "pool": pool}, name)
            return StoredSeries(self, name, found[0], known)
        limits.check("series", self.tables.count() + 1)
        self._added = True
        plain = payoff is oracle is None and all(isinstance(each, PLAIN) for each in options.values())
        same = (space, pool, *sorted(options.items())) if plain else object()
        if same not in self._options:
            made = Recalibrator(space, payoff, oracle=oracle, pool=self.pool() if pool else None, **options)
            header = persistence.configuration(made) | {"sizes": None, "pool": bool(pool)}
            number = self.add_options(header)
            if not plain:
                same = number, made
            self._options[same] = self.options(number, **given)
        known = self._options[same]
        if len(self._options) > limits.LIMITS.labels:
            self._options.clear()
        return StoredSeries(self, name, self.tables.add_series(key(name), known.number), known)

    def add_options(self, header: Mapping[str, Any]) -> int:
        """Number of options, which are added if they are new; after a rollback it may be that of others."""
        self._added = True
        return self.tables.add_options(json.dumps(header, sort_keys=True))

    def options(self, number: int, **given: Any) -> Options:
        """Options of series.

        Parameters
        ----------
        number : their number
        given : space, payoff and oracle, if their functions are not saved
        """
        if number not in self._options:
            self._options[number] = Options(number, json.loads(self.tables.options(number)), self.undone)
        return self._options[number].given(**given)

    def names(self) -> list[Any]:
        """Names of the series, in the order of their creation."""
        return self.transact(lambda: [from_key(name) for _, name, *_ in self.tables.names()])

    def recent(self, limit: int) -> list[Any]:
        """Names of the series whose rounds are about the latest times."""
        return self.transact(lambda: [from_key(name) for name in self.tables.recent(limit)])

    def versions(self) -> dict[Any, int]:
        """Version of each series by its name: one that has changed has another."""
        return self.transact(lambda: {from_key(name): version for _, name, _, version in self.tables.names()})

    def find(self, name: str | int | None) -> StoredSeries | None:
        """Series that exists; None if there is none of that name."""

        def work() -> StoredSeries | None:
            found = self.tables.find_series(key(name))
            return None if found is None else StoredSeries(self, name, found[0], self.options(found[1]))

        return self.transact(work)

    def __len__(self) -> int:
        return self.transact(self.tables.count)

    # --- transactions
    def transact(self, work: Callable[[], Result]) -> Result:
        """Make the calls of a function as one transaction.

        It happens as a whole or, if the function raises, not at all.  The function is called again if another process
        changed the same series first, or if the connection broke; calls that had happened are then not repeated.
        """
        with self.lock:
            if self._closed:
                raise ValueError(f"expected an open store, got one that was closed: {self.database.name}")
            if self._within and self.database.within:
                try:
                    return work()
                except BaseException:
                    self.forget()
                    raise
            end, pause = time.monotonic() + PATIENCE, PAUSE
            while True:
                try:
                    return self._once(work)
                except Conflict as reason:
                    if time.monotonic() > end:
                        text = f"expected a store that answers within {PATIENCE:g} s, got {reason}"
                        raise TimeoutError(f"{text}: {self.database.name}") from reason
                    # of random length, so that two that wait for each other do not meet again
                    time.sleep(pause * random.random())
                    pause = min(2.0 * pause, 1.0)
                    self.database.repair()

    def _once(self, work: Callable[[], Result]) -> Result:
        if self._within or self._changed:
            self._reset()  # the end of the last one was interrupted
        self._within, self._added = True, False
        try:
            with self.database.transaction():
                self._foreign, self.now = self.database.foreign(), times.now()
                result = work()
                self._write()
            for state in self._changed.values():
                state.written, state.rewritten = state.version, False
                self._cache.put(state.number, state, state.size)
            self._changed.clear()
            self._pool_changed = False
            return result
        except BaseException:
            self._reset()
            raise
        finally:
            self._within = False

    def _reset(self) -> None:
        """Read again what a transaction that failed may have changed."""
        self.forget()
        for number in self._changed:
            self._cache.drop(number)
        self._pool_version, self._pool_changed = None, False
        self._changed.clear()
        if self._added:
            for held in (self._options, self.shared, self._cache):
                held.clear()
            self.undone, self._added = self.undone + 1, False

    def forget(self) -> None:
        """Load each series again when it is next used."""
        for each in self.shared:
            each.loaded = None

    def _write(self) -> None:
        """Write the states that this transaction changed."""
        for state in self._changed.values():
            if self.remember is not None:
                until = self.tables.kept_from(state.number, self.remember)
                if until > state.trimmed:
                    self.tables.trim(state.number, until)
                    state.trimmed = until
        if not self.tables.put_states(self._changed.values()):
            raise Conflict("another version of a series")
        if self._pool_changed and self._pool is not None and self._pool_version is not None:
            self._pool_version += 1
            self.tables.put_about("pool", self._pool_version, self._pool.encode())

    def changed(self, state: SeriesState) -> None:
        """Write a state at the end of the transaction."""
        self._changed[state.number] = state

    # --- states
    def state(self, series: StoredSeries) -> SeriesState:
        """State of a series, as the last transaction left it; an error names the series."""
        changed = self._changed.get(series.number)
        found = changed or self._cache.get(series.number)
        if found is not None and found.name == series.name and (changed or found.seen == self._foreign):
            return found
        head = self.tables.head(series.number, key(series.name))
        if head is None:
            raise ValueError(f"expected a series of the store, got {short(series.name)}, whose opening was rolled back")
        if found is None or found.version != head[0]:
            try:
                found = self._read(series, *head)
            except persistence.UNREADABLE as reason:
                text = f"expected a state of series {short(series.name)} that can be read, got one that cannot"
                raise ValueError(f"{text}: {str(reason)[: persistence.MOST_REASON]}") from None
            self._cache.put(found.number, found, found.size)
        found.seen = self._foreign
        return found

    def _read(self, series: StoredSeries, version: int, options: int, trimmed: int) -> SeriesState:
        shared = series.options_of(options).shared(self)
        recal, fresh, shared.loaded = shared.recal, shared.fresh, None
        if not version:
            return SeriesState(series.number, series.name, options, version, trimmed, fresh, fresh)
        data = self.tables.state(series.number)
        fresh.load_into(recal)
        kept = State.decode(recal, data, series.number) if data else fresh
        state = SeriesState(series.number, series.name, options, version, trimmed, kept, kept, written=version)
        pending = recal.rounds.pending
        for row, record in self.tables.pending(series.number):
            id, features = row.id, row.features
            if row.opened <= kept.event:
                pending[id] = decode_record(recal, record, features, row.opened, series.number)
            else:
                entry = recal.rounds.issue(rows_from(row.base_bytes), features, id=id)
                entry.attached = row.opened
                if forecast_bytes(recal.rounds.forecast(entry)) != row.forecast_bytes:
                    text = "was forecast by another version: its outcome counts for the forecast of this one"
                    warn_user(f"round {short(id)} {text}", RuntimeWarning)
        if len(pending) != kept.pending + version - kept.event:
            raise ValueError(f"{len(pending)} rounds are pending, not {kept.pending + version - kept.event}")
        state.pending, state.held = dict(pending), State.of(recal, version, kept)
        return state

    @locked
    def pool(self) -> Pool:
        """Pool of the store, as the last transaction left it."""
        version, value = self.tables.about("pool") or (-1, b"")
        if self._pool is None:
            self._pool = Pool.load(value) if value else Pool()
        elif version != self._pool_version:
            empty: Any = (0, 0.0, 0.0)
            self._pool.restore(Pool.load(value).snapshot() if value else empty)
        self._pool_version = version
        return self._pool

    def pool_changed(self) -> None:
        """Write the pool at the end of the transaction."""
        self._pool_changed = True

    # --- the log
    def rounds(
        self,
        *names: str | int | None,
        as_of: Any = None,
        start: Any = None,
        end: Any = None,
        levels: Any = log.LEVELS,
        backend: str | None = None,
    ) -> Any:
        """Data frame of what was forecast, and known, at a time.

        Parameters
        ----------
        names : series; by default all
        as_of : time; forecasts that were issued later are left out, and outcomes and revisions that were known later
        start, end : first and last time that the forecasts are about
        levels : quantiles
        backend : "pandas" or "polars"; by default the first that is installed
        """
        return log.frame(self, names, as_of, start, end, levels, backend)

    # --- states of frames
    @contextmanager
    def value(self, name: str) -> Iterator[list[bytes | None]]:
        """Yield a value of the whole store in a list, and write what is in the list at the end."""
        found = self.transact(lambda: self.tables.about(name))
        version, value = (0, None) if found is None else found
        held = [value]
        yield held
        self.transact(lambda: self._put_value(name, version, held[0] or b""))

    def _put_value(self, name: str, version: int, value: bytes) -> None:
        found = self.tables.about(name) or (0, b"")
        if found[0] != version and found != (version + 1, value):  # another call's; ours if it is made again
            raise ValueError(f"expected the {name} of the store as it was read, got a later one: {self.database.name}")
        self.tables.put_about(name, version + 1, value)


open = Store
"""`Store` under the name of a verb."""
