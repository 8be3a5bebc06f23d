"""Journal of a stream: the lines since the last snapshot, in a SQLite database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Journal:
    """Numbered lines; the file is locked as long as it is open.

    A line survives the death of the process once `append` returns; with ``sync`` also a loss of power.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        self.path = Path(path)
        with self._errors():
            self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._file.execute("PRAGMA journal_mode = WAL")
                self._file.execute(f"PRAGMA synchronous = {'FULL' if sync else 'OFF'}")
                self._file.execute("CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, line BLOB)")
                self._file.execute("DELETE FROM entries WHERE number < 0")  # takes the lock
        except BaseException:
            self.close()
            raise

    def entries(self) -> list[tuple[int, bytes]]:
        """Number and line of each entry, the oldest first."""
        with self._errors():
            return self._file.execute("SELECT number, line FROM entries ORDER BY number").fetchall()

    def append(self, number: int, line: bytes) -> None:
        """Write an entry; if that fails, the journal is unchanged."""
        with self._errors():
            self._file.execute("INSERT INTO entries VALUES (?, ?)", (number, line))

    def clear(self) -> None:
        """Delete all entries: a snapshot has them."""
        with self._errors():
            self._file.execute("DELETE FROM entries")

    def close(self) -> None:
        """Close the file, which releases the lock; a second call does nothing."""
        self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as reason:
            code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                text = f"expected a state file that no other process uses, got one in use: {self.path}"
                raise ValueError(text) from None
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise OSError(f"expected a journal that can be written, got {reason}: {self.path}") from reason
            raise ValueError(f"expected an intact journal, got {reason}: {self.path}") from reason
