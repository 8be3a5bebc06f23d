"""A durable session: its lines are kept on the disk before they are answered."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from orcast.locks import GameLock, locked
from orcast.stream import snapshot
from orcast.stream.journal import Journal
from orcast.stream.session import Session, StreamAnswer, StreamSettings
from orcast.validation import short

# Lines between two snapshots, at least; and bytes of a snapshot for each of them, so that large ones are rarer.
EVERY, SHARE = 10_000, 2_000
# What may change from one start to the next: it changes answers, not how series are played.
FREE = ("levels", "remember")


class DurableSession:
    """A session with a state on the disk: a snapshot in FILE, and each later line in FILE.journal.

    A line is in the journal before it is answered.  A process that is killed at any moment and started again on the
    same file continues after the last line of the journal.  If that line was not answered, it gets its answer when it
    is sent again.  A snapshot holds the number of its lines and is renamed into place before the journal is cleared,
    so entries that it has seen are skipped.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        wanted: dict[str, Any] | None = None,
        *,
        sync: bool = False,
        every: int | None = None,
    ) -> None:
        if every is not None and every < 1:
            raise ValueError(f"expected at least 1 line between snapshots, got {every}")
        self.lock = GameLock()
        self.path, self.every = Path(path), every
        if self.path.is_symlink():
            # two names of one state are one state
            self.path = self.path.resolve()
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            raise ValueError(f"expected a file in an existing folder as state, got {short(str(path))}")
        self.journal = Journal(f"{self.path}.journal", sync=sync)
        try:
            self._open(wanted or {})
        except BaseException:
            self.release()
            raise

    def _open(self, wanted: dict[str, Any]) -> None:
        snapshot.tidy(self.path)
        self.recovered = 0
        if self.path.exists():
            self.session, self.lines = snapshot.read(self.path)
            self.saved, self._size = self.lines, self.path.stat().st_size
            self._replay()
            options = self._options(wanted)
            if options != self.session.options:
                self.session.options = options
                self.snapshot()
        elif self.journal.entries():
            raise ValueError(f"expected a state file beside its journal, got the journal alone: {self.journal.path}")
        else:
            self.session, self.lines = Session(StreamSettings(**wanted)), 0
            self.snapshot()

    def _replay(self) -> None:
        for number, line in self.journal.entries():
            if number <= self.lines:
                continue  # the snapshot has it: the process died before the journal was cut
            if number != self.lines + 1:
                raise ValueError(
                    f"expected entry {self.lines + 1} in the journal, got {number} (it is not of this state file): "
                    f"{self.journal.path}"
                )
            try:
                changed = self.session.answer(line).changed
            except (ArithmeticError, TypeError, ValueError) as reason:
                raise ValueError(
                    f"expected entry {number} of the journal to be taken as before, got {short(str(reason))} "
                    f"(another version wrote it?): {self.journal.path}"
                ) from None
            if not changed:
                raise ValueError(f"expected entry {number} of the journal once, got it twice: {self.journal.path}")
            self.lines = number
            self.recovered += 1

    def _options(self, wanted: dict[str, Any]) -> StreamSettings:
        """The options of the state, but for those that may change."""
        for each in fields(StreamSettings):
            if each.name in wanted and each.name not in FREE:
                had = getattr(self.session.options, each.name)
                if wanted[each.name] != had:
                    raise ValueError(
                        f"expected {each.name} as in the state file, {had!r}, got {wanted[each.name]!r}: {self.path}"
                    )
        return replace(self.session.options, **{key: wanted[key] for key in FREE if key in wanted})

    @locked
    def answer(self, line: bytes) -> StreamAnswer:
        """The answer to a line, which is then kept if it changed anything; bad input raises and changes nothing."""
        answer = self.session.answer(line)
        if answer.changed:
            self.journal.append(self.lines + 1, line)
            self.lines += 1
        return answer

    @property
    def due(self) -> bool:
        """Whether the journal has become long."""
        long = max(EVERY, self._size // SHARE) if self.every is None else self.every
        return self.lines - self.saved >= long

    @locked
    def snapshot(self) -> None:
        """Write the whole state, then cut the journal."""
        snapshot.write(self.path, self.session, self.lines)
        self.saved, self._size = self.lines, self.path.stat().st_size
        self.journal.clear()

    @locked
    def close(self, *, save: bool = True) -> None:
        """Write a snapshot if there are new lines, and release the file."""
        try:
            if save and self.lines > self.saved:
                self.snapshot()
        finally:
            self.release()

    def release(self) -> None:
        """Release the file, as the system does when a process dies."""
        self.journal.close()
