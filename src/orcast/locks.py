"""Locks of objects that several threads may share.

Every recalibrator has a `lock`, which each public call that reads or changes its state holds.  A thread that holds it
may take it again, so a user may hold it over several calls:

>>> import orcast as oc
>>> recal = oc.Recalibrator(oc.Interval(0, 1))
>>> with recal.lock:  # no other thread calls in between
...     p = recal.predict(oc.Normal(0.5, 0.1), id="monday")
...     rounds = recal.guarantee.rounds
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

_Reentrant: Any = type(threading.RLock())


class StateLock(_Reentrant):  # type: ignore[misc]
    """Reentrant lock; in a forked child it is free if another thread of the parent held it."""

    def __init__(self) -> None:
        _locks.add(self)


_locks: weakref.WeakSet[StateLock] = weakref.WeakSet()


def _free_in_child() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Hold the `lock` of an object while its method runs."""

    @wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, call)


# --- files

# Seconds to wait for another process, and between two attempts.
PATIENCE, PAUSE = 30.0, 0.02


@contextmanager
def file_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file against other threads and processes; it is freed when the process ends.

    The lock is that of the operating system on a hidden file beside it, which is removed at the end.
    """
    beside = Path(path).resolve()
    beside = beside.with_name(f".{beside.name}.lock")
    end = time.monotonic() + PATIENCE
    while (file := _try_lock(beside)) is None:
        if time.monotonic() > end:
            raise TimeoutError(
                f"expected a state that no other process uses, got one in use for {PATIENCE:g} s: {os.fspath(path)} "
                "(call again when that process is done)"
            )
        time.sleep(PAUSE)
    try:
        yield
    finally:
        if sys.platform != "win32":
            import fcntl

            beside.unlink(missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_UN)  # closing does not free it while a forked child has the file too
        os.close(file)


def _try_lock(path: Path) -> int | None:
    """Open and lock a file; None if another process holds it or removed it meanwhile."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            held = True
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = path.exists() and os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        held = False
    if not held:
        os.close(file)
        return None
    return file
