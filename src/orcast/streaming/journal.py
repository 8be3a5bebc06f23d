"""The journal: lines that were taken since the last snapshot, each with its number, length and checksum."""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from orcast.persistence import naming

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


# Digits that the numbers of an entry have at most.
NUMBER = 20


class Journal:
    """A file that only grows, until a snapshot makes it superfluous; it is locked as long as it is open.

    An entry is a line of text: number, length and checksum of what follows, and a line of the stream.  A process that
    dies in the middle of writing leaves a part of an entry at the end, which was not answered: it is cut off.  With
    `sync` an entry is on the disk when `append` returns, and survives a loss of power; without, it is in the
    system's hands, and survives the death of the process.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        self.path, self.sync = Path(path), sync
        self._file = _locked(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.size = os.fstat(self._file).st_size

    def entries(self) -> Iterator[tuple[int, bytes]]:
        """Number and line of each entry, the oldest first; a part of an entry at the end is cut off."""
        content = self._content()
        start = 0
        while start < len(content):
            stop = content.find(b"\n", start) + 1
            entry = _entry(content[start:stop]) if stop else None
            if entry is None:
                if any(_entry(later + b"\n") for later in content[start:].split(b"\n")[1:]):
                    raise ValueError(
                        f"expected an intact journal, got one that is damaged at byte {start}, with entries after it "
                        f"(cut there, it would go on without them): {self.path}"
                    )
                _truncate(self._file, start)
                self.size = start
                return
            yield entry
            start = stop

    def _content(self) -> bytes:
        os.lseek(self._file, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._file, 2**20):
            parts.append(part)
        return b"".join(parts)

    def append(self, number: int, line: bytes) -> None:
        """Write an entry; if that fails, the journal is as it was."""
        body = b"%d %b" % (number, line)
        entry = b"%d %d %08x %b\n" % (number, len(line), zlib.crc32(body), line)
        data = memoryview(entry)
        try:
            with naming(self.path):
                while data:
                    data = data[_write(self._file, data) :]
                if self.sync:
                    _flush(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                _truncate(self._file, self.size)
            raise
        self.size += len(entry)

    def clear(self) -> None:
        """Cut all entries: a snapshot has them."""
        with naming(self.path):
            _truncate(self._file, 0)
        self.size = 0

    def close(self) -> None:
        """Close the file and so give up the lock; once more does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class HeldFile:
    """A lock on a file itself, by device and inode, so that another name of it (a hard link) is the same file.

    A snapshot that is renamed into place is another file: it is held anew.
    """

    def __init__(self) -> None:
        self._file = -1

    def hold(self, path: Path) -> None:
        """Lock the file that has this name now, instead of the one before."""
        if sys.platform == "win32":  # where a file that is open cannot be replaced
            return
        file = _locked(path, os.O_RDONLY)
        self.close()
        self._file = file

    def close(self) -> None:
        """Give up the lock; once more does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _locked(path: Path, flags: int) -> int:
    """An open file that no other process has open so, or one clear sentence."""
    file = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
    try:
        _lock(file)
    except OSError:
        os.close(file)
        raise ValueError(f"expected a state file that no other process uses, got one in use: {path}") from None
    return file


def _entry(text: bytes) -> tuple[int, bytes] | None:
    """Number and line of an entry, or None if it is not whole."""
    parts = text.split(b" ", 3)
    if len(parts) < 4 or not text.endswith(b"\n"):
        return None
    number, length, checksum, rest = parts
    line = rest[:-1]
    try:
        if len(number) > NUMBER or len(length) > NUMBER or len(checksum) > NUMBER:
            return None
        whole = int(length) == len(line) and int(checksum, 16) == zlib.crc32(b"%d %b" % (int(number), line))
    except ValueError:
        return None
    return (int(number), line) if whole else None


# What touches the disk, by itself so that a test can let it fail.


def _write(file: int, data: memoryview) -> int:
    return os.write(file, data)


def _truncate(file: int, size: int) -> None:
    os.ftruncate(file, size)


def _flush(file: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file)


def _lock(file: int) -> None:
    if sys.platform == "win32":
        os.lseek(file, 2**62, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
