"""SQLite store of many series: options, the state of each series, and its rounds.

One file in write-ahead mode, which one process uses at a time.  States and rounds are bytes with a checksum
(`orcast.persistence.encode`), since SQLite has none.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orcast.validation import short

Name = str | int | None
Id = str | int | float | None
SCHEMA, APPLICATION = 2, int.from_bytes(b"orca", "big")
# A round is pending (closed = 0), or over: numbered, or -1 without an id.
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE series (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, state BLOB NOT NULL);
CREATE TABLE rounds (series INTEGER, id TEXT, closed INTEGER NOT NULL, round BLOB NOT NULL, PRIMARY KEY (series, id));
CREATE INDEX oldest ON rounds (closed) WHERE closed > 0;
"""
UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class Store:
    """States and rounds of series in a file, locked while it is open; without a path, in a temporary one.

    All calls are made within a `transaction`, which happens as a whole or not at all.  It survives the death of the
    process; with `sync` also a loss of power.

    >>> store = Store()
    >>> with store.transaction():
    ...     north = store.put_series(0, "north", b"...")
    ...     store.put_round(north, "14:00", b"forecast")
    >>> with store.transaction():
    ...     print(store.series("north"), store.pending(north))
    (1, b'...') [b'forecast']
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, sync: bool = False) -> None:
        self.path = "" if path is None else os.path.realpath(path)  # two names of one state are one state
        if path is not None and (Path(self.path).is_dir() or not Path(self.path).parent.is_dir()):
            raise ValueError(f"expected a file in an existing folder as state, got {short(str(path))}")
        with self._errors():
            self._file = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._open("FULL" if sync else "NORMAL")
        except BaseException:
            self.close()
            raise

    def _open(self, sync: str) -> None:
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        fresh = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        if not fresh and self._pragma("application_id") != APPLICATION:
            raise ValueError(f"expected the state of a stream, got another database: {self.path}")
        if not fresh and self._pragma("user_version") != SCHEMA:
            raise ValueError(
                f"expected a state of format {SCHEMA}, got format {self._pragma('user_version')}: {self.path}"
            )
        self._file.execute(f"PRAGMA journal_mode = {'WAL' if self.path else 'MEMORY'}")
        self._file.execute(f"PRAGMA synchronous = {sync}")
        with self.transaction():  # takes the lock
            if fresh:
                for statement in TABLES.strip().split("\n"):
                    self._file.execute(statement)
                self._file.execute(f"PRAGMA application_id = {APPLICATION}")
                self._file.execute(f"PRAGMA user_version = {SCHEMA}")
        if self._pragma("quick_check") != "ok":
            raise ValueError(f"expected an intact state, got a damaged one: {self.path}")

    def _pragma(self, name: str) -> Any:
        return self._file.execute(f"PRAGMA {name}").fetchone()[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes of the block, or none of them if it raises."""
        with self._errors():
            try:
                self._file.execute("BEGIN IMMEDIATE")
                yield
                self._file.execute("COMMIT")
            finally:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")

    # --- values of the whole store
    def about(self, name: str) -> bytes | None:
        """Value that belongs to the whole store, such as its options."""
        row = self._file.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def put_about(self, name: str, value: bytes) -> None:
        """Write a value that belongs to the whole store."""
        self._file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    # --- series
    def count(self) -> int:
        """Number of series, none of which is ever deleted."""
        return self._file.execute("SELECT max(number) FROM series").fetchone()[0] or 0

    def series(self, name: Name) -> tuple[int, bytes] | None:
        """Number and state of a series."""
        query = "SELECT number, state FROM series WHERE name = ?"
        return self._file.execute(query, (json.dumps(name),)).fetchone()  # type: ignore[no-any-return]

    def put_series(self, number: int, name: Name, state: bytes) -> int:
        """Write the state of a series; 0 is the number of a new one.  Returns its number."""
        if not number:
            query = "INSERT INTO series (name, state) VALUES (?, ?) RETURNING number"
            return self._file.execute(query, (json.dumps(name), state)).fetchone()[0]  # type: ignore[no-any-return]
        self._file.execute("UPDATE series SET state = ? WHERE number = ?", (state, number))
        return number

    # --- rounds
    def round(self, series: int, id: Id) -> bytes | None:
        """Round of a series."""
        query = "SELECT round FROM rounds WHERE series = ? AND id = ?"
        row = self._file.execute(query, (series, _key(id))).fetchone()
        return None if row is None else row[0]

    def pending(self, series: int) -> list[bytes]:
        """Pending rounds of a series, in no order."""
        rows = self._file.execute("SELECT round FROM rounds WHERE series = ? AND closed = 0", (series,)).fetchall()
        return [data for (data,) in rows]

    def put_round(self, series: int, id: Id, data: bytes, *, closed: bool = False) -> None:
        """Write a round; those that are closed and have an id are numbered."""
        number = -1 if closed else 0
        if closed and id is not None:
            number = (self._file.execute("SELECT max(closed) FROM rounds WHERE closed > 0").fetchone()[0] or 0) + 1
        self._file.execute("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?, ?)", (series, _key(id), number, data))

    def forget(self, remember: int) -> None:
        """Delete the oldest closed rounds with an id, so that at most so many remain."""
        last = "(SELECT max(closed) FROM rounds WHERE closed > 0)"
        self._file.execute(f"DELETE FROM rounds WHERE closed > 0 AND closed <= {last} - ?", (remember,))

    def close(self) -> None:
        """Close the file, which releases the lock; a second call does nothing."""
        self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of SQLite as one sentence with the path."""
        try:
            yield
        except sqlite3.DatabaseError as reason:
            code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                text = f"expected a state that no other process uses, got one in use: {self.path}"
                raise ValueError(text) from None
            if code in UNWRITABLE:
                raise OSError(f"expected a state that can be written, got {reason}: {self.path}") from reason
            raise ValueError(f"expected an intact state of a stream, got {reason}: {self.path}") from reason


def _key(id: Id) -> str:
    """Text of an id, alike for ids that are equal."""
    return json.dumps(int(id) if isinstance(id, float) and id.is_integer() else id)
