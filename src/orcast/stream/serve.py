"""The filter: lines in, lines out, until the input ends, a signal comes, or the output closes."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, Self

from orcast.limits import LIMITS
from orcast.stream.session import Session, to_line

CHUNK = 2**16
# Seconds after which a wait looks for signals.
TURN = 0.5
# Bad lines: what a line can be refused with.
BAD = (ArithmeticError, MemoryError, RecursionError, TypeError, ValueError)


class Stopped(Exception):
    """A signal asked to end."""


class Signals:
    """Ctrl-C and SIGTERM: the current line is finished first, a wait for the other side ends."""

    def __init__(self) -> None:
        self.by: int | None = None
        self.waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as in the background
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.by = number
        if self.waiting:
            raise Stopped

    def wait(self, act: Callable[[], Any]) -> Any:
        """Do what may wait for the other side; a signal ends it."""
        self.waiting = True
        try:
            if self.by is not None:
                raise Stopped
            return act()
        finally:
            self.waiting = False


def serve(session: Session, *, source: int = 0, sink: int = 1) -> int:
    """Answer the lines of one file descriptor on another; returns the exit status of the process.

    0 at the end of the input, after SIGTERM, or when the output closes; 130 after Ctrl-C.
    """
    if sys.platform != "win32":
        for end in (source, sink):
            os.set_blocking(end, True)
    with Signals() as signals:
        code = 0
        try:
            _answer_all(session, source, sink, signals)
        except Stopped:
            code = 130 if signals.by == signal.SIGINT else 0
        except BrokenPipeError:
            pass
        return code


def _answer_all(session: Session, source: int, sink: int, signals: Signals) -> None:
    for number, line in enumerate(_lines(source, signals), start=1):
        if line == b"":
            continue
        try:
            if line is None:
                raise ValueError(f"expected a line of at most {LIMITS.line_bytes} bytes, got a longer one")
            answer = session.answer(line)
        except BAD as reason:
            answer = to_line({"error": _sentence(reason), "line": number}).encode()
        left = memoryview(answer)
        while left:
            left = left[signals.wait(partial(os.write, sink, left)) :]


def _sentence(reason: BaseException) -> str:
    """Message about a refused line."""
    if isinstance(reason, MemoryError):
        return f"expected a line that fits the memory, got one that does not ({str(reason) or 'out of memory'})"
    if isinstance(reason, RecursionError):
        return "expected a line of moderate depth, got one that is nested too deeply"
    return " ".join(str(reason).split())


def _lines(source: int, signals: Signals) -> Iterator[bytes | None]:
    """Lines without their ends and outer blanks; None for one that is too long."""
    parts: list[bytes] = []
    size = 0
    while chunk := _read(source, signals):
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            size += len(end)
            yield b"".join([*parts, end]).strip() if size <= LIMITS.line_bytes else None
            parts, size = [], 0
        size += len(rest)
        parts = [*parts, rest] if size <= LIMITS.line_bytes else []
    yield b"".join(parts).strip() if size <= LIMITS.line_bytes else None


def _read(source: int, signals: Signals) -> bytes:
    # in turns: a signal may come just before a wait
    while sys.platform != "win32" and not signals.wait(lambda: select.select([source], [], [], TURN)[0]):
        pass
    read: bytes = signals.wait(lambda: os.read(source, CHUNK))
    return read
