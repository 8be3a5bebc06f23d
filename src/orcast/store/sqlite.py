"""SQLite: one file in write-ahead mode, which many processes may read and write; without a path, a temporary one."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orcast.locks import PAUSE
from orcast.store.database import PATIENCE, SCHEMA, TABLES, Conflict, Database
from orcast.validation import short

APPLICATION = int.from_bytes(b"orca", "big")
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
# Pages of the write-ahead log after which a commit merges it into the file: seldom, since that takes long.
MERGED_PAGES = 4_000
# Bytes of the log that stay after a merge.
LOG_BYTES = 2**20
# A file up to this size is checked when it is opened.
CHECKED_BYTES = 32 * 2**20


class SQLite(Database):
    """A file.  A commit survives the death of the process; with `sync` also a loss of power."""

    def __init__(self, path: str | None, *, sync: bool = False) -> None:
        self.path = "" if path is None else os.path.realpath(path)  # two names of one file are one file
        self.name = self.path or "a temporary store"
        if path is not None and (Path(self.path).is_dir() or not Path(self.path).parent.is_dir()):
            raise ValueError(f"expected a file in an existing folder as store, got {short(path)}")
        self._opened: os.stat_result | None = None
        with self._errors():
            self._file = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._open("FULL" if sync else "NORMAL")
        except BaseException:
            self.close()
            raise

    def _open(self, sync: str) -> None:
        if self.path and 0 < os.path.getsize(self.path) < 100:  # which SQLite takes for an empty database
            raise ValueError(f"expected a store, got another file: {self.path}")
        if self._pragma("application_id") != APPLICATION and self._file.execute(
            "SELECT count(*) FROM sqlite_master"
        ).fetchone() != (0,):
            raise ValueError(f"expected a store, got another database: {self.path}")
        self._file.execute("PRAGMA page_size = 8192")  # of a new file
        self._write_ahead()
        self._file.execute(f"PRAGMA synchronous = {sync}")
        self._file.execute(f"PRAGMA wal_autocheckpoint = {MERGED_PAGES}")
        self._file.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        log = Path(f"{self.path}-wal")
        if self.path and log.exists() and log.stat().st_size > LOG_BYTES:  # that of a process that was killed
            self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self.transaction():
            if self._file.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for statement in TABLES:
                    self._file.execute(statement)
                self._file.execute(f"PRAGMA application_id = {APPLICATION}")
                self._file.execute(f"PRAGMA user_version = {SCHEMA}")
        self.check_schema(self._pragma("user_version"))
        if self.path and os.path.getsize(self.path) <= CHECKED_BYTES and self._pragma("quick_check") != "ok":
            raise ValueError(f"expected an intact store, got a damaged one: {self.path}")
        self._opened = os.stat(self.path) if self.path else None

    def _write_ahead(self) -> None:
        """Change to write-ahead mode; SQLite does not wait by itself for others that do."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._file.execute(f"PRAGMA journal_mode = {'WAL' if self.path else 'MEMORY'}")
                return
            except sqlite3.OperationalError as reason:
                if _code(reason) not in BUSY or time.monotonic() > end:
                    raise
                time.sleep(PAUSE)

    def _pragma(self, name: str) -> Any:
        return self._file.execute(f"PRAGMA {name}").fetchone()[0]

    @property
    def within(self) -> bool:
        """True within a transaction."""
        return self._file.in_transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes of the block, or none of them if it raises; other writers wait."""
        there = self._opened is None or os.path.exists(self.path)
        if not there or (self._opened is not None and not os.path.samestat(os.stat(self.path), self._opened)):
            text = "expected the file of the store as it was opened, got a deleted or replaced one (open it again)"
            raise OSError(f"{text}: {self.path}")
        with self._errors():
            try:
                if self._file.in_transaction:  # whose end was interrupted
                    self._file.execute("ROLLBACK")
                self._file.execute("BEGIN IMMEDIATE")
                yield
                self._file.execute("COMMIT")
            finally:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")

    def foreign(self) -> int:
        """Number that differs between two transactions if others wrote between them."""
        return self._pragma("data_version")  # type: ignore[no-any-return]

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Run a statement; returns a cursor."""
        return self._file.execute(query, parameters)

    def execute_many(self, query: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run a statement for each of several rows of parameters; returns how many rows it changed."""
        return self._file.executemany(query, parameters).rowcount

    def close(self) -> None:
        """Close the file; the last process to do so merges the write-ahead log into it."""
        self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of SQLite as one line with the path."""
        try:
            yield
        except sqlite3.DatabaseError as reason:
            if _code(reason) in BUSY:
                text = f"expected a store that can be written within {PATIENCE:g} s, got one in use: {self.path}"
                raise TimeoutError(text) from None
            if _code(reason) in UNWRITABLE:
                raise OSError(f"expected a store that can be written, got {reason}: {self.path}") from reason
            if isinstance(reason, sqlite3.IntegrityError):
                raise Conflict(str(reason)) from reason
            raise ValueError(f"expected an intact store, got {reason}: {self.path}") from reason


def _code(reason: sqlite3.Error) -> int:
    return getattr(reason, "sqlite_errorcode", 0) & 0xFF
