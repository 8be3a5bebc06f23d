"""Entry kernels: what Python calls, at either speed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from enum import Enum
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from orcast.jit.registry import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds that an entry plays in Python before compiled code is worth the time it takes to load or to make.
PATIENCE = 0.2
# Rounds that are handed to Python at once.
SLICE = 32
# Seconds that a round takes in Python, about.
SECONDS_A_ROUND = 0.006


class Mode(Enum):
    """Which kernels are played."""

    AUTO = "auto"  # Python, until a process beside this one has compiled them
    COMPILED = "compiled"  # compiled, and waited for
    PYTHON = "python"


def chosen_mode() -> Mode:
    """What `ORCAST_KERNELS` says, or one clear sentence; numba's own switch counts too."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return Mode.PYTHON
    name = os.environ.get("ORCAST_KERNELS", "auto").strip().lower() or "auto"
    try:
        return Mode(name)
    except ValueError:
        expected = ", ".join(choice.value for choice in Mode)
        raise ValueError(f"expected one of {expected} as ORCAST_KERNELS, got {name!r}") from None


class _State(threading.local):
    """Of a thread: whether a kernel plays in Python, the rounds to come, who wants to know which entries are called."""

    playing = False
    rounds = 0
    recorder: Callable[[EntryKernel, tuple[Any, ...]], None] | None = None


_state = _State()
_mode: Mode | None = None


def mode() -> Mode:
    """The mode of this process."""
    global _mode
    if _mode is None:
        _mode = chosen_mode()
    return _mode


def use(new: Mode | str | None) -> None:
    """Choose the mode of this process from now on; None asks `ORCAST_KERNELS` again."""
    global _mode
    _mode = None if new is None else Mode(new)


class EntryKernel:
    """A kernel that Python calls: its source, until it has compiled code for the types it is called with."""

    def __init__(self, source: Callable[..., Any]) -> None:
        self.source = kernel(source)
        self.code: Any = None  # a dispatcher that has compiled code and compiles no more
        self.seconds = 0.0  # played in Python
        update_wrapper(self, source)

    def __repr__(self) -> str:
        return f"<entry kernel {self.path}>"

    def __reduce__(self) -> str:
        return str(self.source.__qualname__)

    @property
    def path(self) -> str:
        """Module and name."""
        return f"{self.source.__module__}.{self.source.__name__}"

    def at_once(self, rounds: int) -> int:
        """How many of so many rounds to hand over in a call: few while it plays in Python, which may end any time."""
        return min(rounds, SLICE) if self.code is None and mode() is Mode.AUTO else rounds

    def __call__(self, *args: Any) -> Any:
        """Play it, as fast as can be now."""
        code = self.code
        if code is not None and _mode is not Mode.PYTHON:
            try:
                return code(*args)
            except TypeError:
                pass  # no code for these types
        if _state.playing:
            return self.source(*args)
        if _state.recorder is not None:
            _state.recorder(self, args)
        if mode() is Mode.COMPILED and compile_now(self, args):
            return self.code(*args)
        return self._interpret(args)

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        """The source, with the arithmetic of compiled code: no warning, inf and nan."""
        began = time.perf_counter()
        _state.playing = True
        try:
            with np.errstate(all="ignore"):
                return self.source(*args)
        finally:
            _state.playing = False
            self.seconds += time.perf_counter() - began
            if self.seconds > PATIENCE and mode() is Mode.AUTO:
                from orcast.jit.background import compile_beside

                compile_beside(self, args)


def entry_kernel(function: Callable[..., Any]) -> EntryKernel:
    """A kernel that Python calls; kernels may call it too."""
    return EntryKernel(function)


def compile_now(entry: EntryKernel, args: tuple[Any, ...]) -> bool:
    """Load or compile an entry for the types of a call, and wait for it; False where there is no compiler."""
    from orcast.jit.background import compile_here, wanted_for

    return compile_here(wanted_for(entry, args))


def expect_rounds(
    entry: EntryKernel, args: tuple[Any, ...], rounds: int, seconds_a_round: float = SECONDS_A_ROUND
) -> None:
    """Say that an entry is about to play so many rounds; waits for compiled code where that is faster than playing."""
    rounds = max(rounds, _state.rounds)
    seconds = rounds * seconds_a_round
    if entry.code is None and mode() is Mode.AUTO and seconds > PATIENCE:
        from orcast.jit.background import wait_if_faster

        wait_if_faster(entry, args, rounds, seconds)


@contextmanager
def many_rounds(rounds: int) -> Iterator[None]:
    """Say that so many rounds come, in however many calls."""
    before, _state.rounds = _state.rounds, rounds
    try:
        yield
    finally:
        _state.rounds = before


@contextmanager
def recorded() -> Iterator[list[tuple[EntryKernel, tuple[Any, ...]]]]:
    """Entries that are called meanwhile, and their arguments; they are played in Python."""
    calls: list[tuple[EntryKernel, tuple[Any, ...]]] = []
    before = mode()
    use(Mode.PYTHON)
    _state.recorder = lambda entry, args: calls.append((entry, args))
    try:
        yield calls
    finally:
        _state.recorder = None
        use(before)
