"""A durable session: its lines are in a store before they are answered."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from orcast import persistence
from orcast.locks import GameLock, locked
from orcast.pool import Pool
from orcast.store import Line, Name, Store
from orcast.stream.series import Settled, StreamSettings
from orcast.stream.session import Session, StreamAnswer
from orcast.validation import short

# Between two snapshots, at least: lines; bytes of states for each of them, so that large ones are rarer.  Bytes of
# lines at which a snapshot is due anyway.
EVERY, SHARE, MOST_BYTES = 10_000, 2_000, 2**26
# Options that may change from one start to the next: they change answers, not how series are recalibrated.
FREE = ("levels", "remember")


class DurableSession:
    """A session with a store: the states of its series, and each later line.

    A line is in the store before it is answered.  A process that is killed at any moment and started again on the same
    file continues after the last line; if that was not answered, it gets its answer when it is sent again.  A state
    that cannot be read concerns its series alone; one that could not be read back is never written.
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
            self.path = self.path.resolve()  # two names of one state are one state
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            raise ValueError(f"expected a file in an existing folder as state, got {short(str(path))}")
        self.store = Store(self.path, sync=sync)
        self.recovered = self.lines = self.saved = self._size = self._bytes = self._begun = 0
        self.unreadable: dict[Name, str] = {}
        self._changed: dict[Name, int] = {}  # number of the last line of each series that changed
        try:
            self._open(wanted or {})
        except BaseException:
            self.release()
            raise

    def _open(self, wanted: dict[str, Any]) -> None:
        about = self.store.about()
        if not about:
            self.session = Session(StreamSettings(**wanted))
            self.snapshot()
            return
        self._size = self.path.stat().st_size
        held, rounds = self.store.series(), self.store.rounds()
        try:
            had = _settings(json.loads(about["options"]))
            pool = Pool.load(about["pool"]) if had.pool else None
            self.session = Session(had, pool=pool)
            self.lines = self.saved = int(about["lines"])
            for _, data in rounds:
                name, id, *plain = json.loads(data)
                self.session.remember(name, id, Settled.from_plain(plain))
        except persistence.UNREADABLE as reason:
            raise persistence.unusable(reason, self.path) from reason
        for name in held:
            self.session.add(name, partial(self.store.state, name))
        self._replay(held)
        options = self._options(wanted)
        if options != had:
            self.session.options = options
            self.snapshot()

    def _replay(self, held: dict[Name, int]) -> None:
        """Answer the lines that are in no state once more; `held` are the numbers of the last ones that are."""
        entries = self.store.lines()
        later = [entry.number for entry in entries if entry.number > self.saved]
        if later != list(range(self.saved + 1, self.saved + 1 + len(later))):
            raise ValueError(f"expected all lines since line {self.saved}, got some of them: {self.path}")
        self.lines += len(later)
        for entry in entries:
            if entry.number <= held.get(entry.series, 0) or entry.series in self.unreadable:
                continue
            try:
                if not self.session.answer(entry.line).changed:
                    raise ValueError("a line that changes nothing")
            except (ArithmeticError, TypeError, ValueError) as reason:
                self._isolate(entry, reason)
            else:
                self._changed[entry.series] = entry.number
                self._bytes += len(entry.line)
                self.recovered += 1

    def _isolate(self, entry: Line, reason: Exception) -> None:
        """Leave a series as it is in the store: a line of it cannot be taken as before."""
        text = f"expected line {entry.number} to be taken as before, got {short(str(reason))}: {self.path}"
        if self.session.pool is not None:
            raise ValueError(text) from None  # the others have learnt from it
        self.unreadable[entry.series] = text
        self._changed.pop(entry.series, None)

        def refuse() -> bytes:
            raise ValueError(text)

        self.session.add(entry.series, refuse)

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

    # --- lines
    @locked
    def answer(self, line: bytes) -> StreamAnswer:
        """The answer to a line, which is kept first if it changes anything; bad input raises and changes nothing."""
        self._begun = self.lines
        return self.session.answer(line, self)

    def record(self, series: Name, line: bytes) -> None:
        """Write a line to the store."""
        self._changed[series] = self.lines + 1
        self.store.record(self.lines + 1, series, line)
        self.lines += 1
        self._bytes += len(line)

    def recorded(self) -> bool:
        """Return whether the current line was written, after an exception."""
        found = self.store.recorded(self._begun + 1)
        self.lines = self._begun + found
        return found

    # --- snapshots
    @property
    def due(self) -> bool:
        """Return whether a snapshot is due."""
        long = max(EVERY, self._size // SHARE) if self.every is None else self.every
        return self.lines - self.saved >= long or self._bytes > MOST_BYTES

    @locked
    def snapshot(self) -> None:
        """Write the states of the series that changed, and delete the lines that they hold."""
        states: dict[Name, tuple[int, bytes]] = {}
        session, failed = self.session, {}
        for name, number in self._changed.items():
            if name not in session.series:
                continue  # its first line was not written
            try:
                states[name] = number, session.encode(name)
            except ValueError as reason:
                if session.pool is not None:
                    raise  # the states of a pool's series belong together
                failed[name] = str(reason)
        about = {"lines": b"%d" % self.lines, "options": json.dumps(asdict(session.options)).encode()}
        if session.pool is not None:
            about["pool"] = session.pool.encode()
        bad = {*failed, *self.unreadable}
        new = {key: over for key, over in session.settled.items() if not over.saved and key[0] not in bad}
        self.store.snapshot(
            states,
            lines=self.lines,
            about=about,
            rounds=[(over.number, json.dumps([*key, *over.to_plain()]).encode()) for key, over in new.items()],
            oldest=min((over.number for over in session.settled.values()), default=session.closed + 1),
            without=bad,
        )
        for over in new.values():
            over.saved = True
        self._size = self.path.stat().st_size
        self.saved, self._bytes, self._changed = self.lines, 0, {name: self._changed[name] for name in failed}
        if failed:
            name, text = next(iter(failed.items()))
            raise ValueError(f"expected states that can be read back, got another of series {short(name)}: {text}")

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
        self.store.close()


def _settings(plain: dict[str, Any]) -> StreamSettings:
    """Settings from JSON."""
    lists = {key: tuple(plain[key]) for key in ("labels", "levels")}
    by = None if plain["by"] is None else (plain["by"][0], tuple(plain["by"][1]))
    return StreamSettings(**{**plain, **lists, "by": by})
