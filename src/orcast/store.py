"""SQLite store of many series: lines since the last snapshot, settled rounds, and the state of each series.

One file in write-ahead mode, which one process uses at a time.  Every row has a checksum, since SQLite has none.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from orcast.validation import short

Name = str | int | None
SCHEMA, APPLICATION = 1, int.from_bytes(b"orca", "big")
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE lines (number INTEGER PRIMARY KEY, series TEXT NOT NULL, line BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE rounds (number INTEGER PRIMARY KEY, round BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE states (series TEXT PRIMARY KEY, lines INTEGER NOT NULL, named INTEGER NOT NULL, \
state BLOB NOT NULL, checksum INTEGER NOT NULL);
"""
UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class Line(NamedTuple):
    """A line of a series, by its number."""

    number: int
    series: Name
    line: bytes


class Store:
    """Lines, settled rounds and states in a file, locked while it is open.

    A line survives the death of the process once `record` returns; with `sync` also a loss of power.

    >>> store = Store(":memory:")
    >>> store.record(1, "north", b'{"y": 3}')
    >>> store.snapshot({"north": (1, b"...")}, lines=1)
    >>> store.lines(), store.state("north"), store.series()
    ([], b'...', {'north': 1})
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        self.path = Path(path)
        with self._errors():
            self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
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
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute(f"PRAGMA synchronous = {sync}")
        with self._transaction():  # takes the lock
            if fresh:
                for statement in TABLES.strip().split("\n"):
                    self._file.execute(statement)
                self._file.execute(f"PRAGMA application_id = {APPLICATION}")
                self._file.execute(f"PRAGMA user_version = {SCHEMA}")
        if self._pragma("quick_check") != "ok":
            raise ValueError(f"expected an intact state, got a damaged one: {self.path}")

    def _pragma(self, name: str) -> Any:
        return self._file.execute(f"PRAGMA {name}").fetchone()[0]

    # --- options and counters
    def about(self) -> dict[str, bytes]:
        """Values that belong to the whole store, such as its options."""
        with self._errors():
            rows = self._file.execute("SELECT name, value, checksum FROM about").fetchall()
        return {name: self._checked(checksum, name, value) for name, value, checksum in rows}

    # --- lines
    def record(self, number: int, series: Name, line: bytes) -> None:
        """Write a line; if that fails, nothing has changed."""
        name = json.dumps(series)
        with self._errors():
            self._file.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", (number, name, line, _sum(number, name, line)))

    def recorded(self, number: int) -> bool:
        """Return whether a line was written."""
        with self._errors():
            return self._file.execute("SELECT 1 FROM lines WHERE number = ?", (number,)).fetchone() is not None

    def lines(self) -> list[Line]:
        """Lines that the state of their series does not hold, the oldest first."""
        with self._errors():
            rows = self._file.execute("SELECT number, series, line, checksum FROM lines ORDER BY number").fetchall()
        for number, name, line, checksum in rows:
            self._checked(checksum, number, name, line)
        return [Line(number, json.loads(name), line) for number, name, line, _ in rows]

    # --- states
    def series(self) -> dict[Name, int]:
        """Names of the series that have a state, and the number of the last line that it holds."""
        with self._errors():
            rows = self._file.execute("SELECT series, lines, named FROM states ORDER BY rowid").fetchall()
        for name, lines, named in rows:
            self._checked(named, name, lines)
        return {json.loads(name): lines for name, lines, _ in rows}

    def state(self, series: Name) -> bytes:
        """State of a series as it was written."""
        name = json.dumps(series)
        with self._errors():
            row = self._file.execute("SELECT state, checksum FROM states WHERE series = ?", (name,)).fetchone()
        if row is None or _sum(row[0]) != row[1]:
            raise ValueError(f"expected an intact state of series {short(series)}, got a damaged one: {self.path}")
        return bytes(row[0])

    def rounds(self) -> list[tuple[int, bytes]]:
        """Settled rounds by number, the oldest first."""
        with self._errors():
            rows = self._file.execute("SELECT number, round, checksum FROM rounds ORDER BY number").fetchall()
        return [(number, self._checked(checksum, number, round)) for number, round, checksum in rows]

    def snapshot(
        self,
        states: Mapping[Name, tuple[int, bytes]],
        *,
        lines: int,
        about: Mapping[str, bytes] | None = None,
        rounds: Iterable[tuple[int, bytes]] = (),
        oldest: int = 0,
        without: Collection[Name] = (),
    ) -> None:
        """Write the states of the series that changed and delete the lines that they hold, all or nothing.

        Parameters
        ----------
        states : number of the last line and state, by series; others stay as they are
        lines : number of the last line of all
        about : values that belong to the whole store
        rounds : settled rounds to add, by number
        oldest : number of the oldest settled round to keep
        without : series whose lines stay, because their states are older
        """
        named = ((json.dumps(name), *each) for name, each in states.items())
        kept = json.dumps([json.dumps(name) for name in without])
        with self._errors(), self._transaction():
            put = self._file.executemany
            put(
                "INSERT INTO states VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (series) "
                "DO UPDATE SET lines = ?2, named = ?3, state = ?4, checksum = ?5",
                ((name, last, _sum(name, last), state, _sum(state)) for name, last, state in named),
            )
            put("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", ((*row, _sum(*row)) for row in rounds))
            put("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", ((*row, _sum(*row)) for row in (about or {}).items()))
            self._file.execute("DELETE FROM rounds WHERE number < ?", (oldest,))
            delete = "DELETE FROM lines WHERE number <= ? AND series NOT IN (SELECT value FROM json_each(?))"
            self._file.execute(delete, (lines, kept))

    def close(self) -> None:
        """Close the file, which releases the lock; a second call does nothing."""
        self._file.close()

    # --- SQLite
    def _checked(self, checksum: int, *content: Any) -> Any:
        if _sum(*content) != checksum:
            raise ValueError(f"expected an intact state, got a row with a wrong checksum: {self.path}")
        return content[-1]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

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


def _sum(*content: Any) -> int:
    """Checksum of the columns of a row."""
    found = 0
    for each in content:
        found = zlib.crc32(each if isinstance(each, bytes) else str(each).encode(), found)
    return found
