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

import copy
import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from types import TracebackType

    class _Reentrant:
        def __enter__(self) -> bool: ...
        def __exit__(
            self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
        ) -> None: ...
        def _is_owned(self) -> bool: ...
        def _at_fork_reinit(self) -> None: ...
else:
    _Reentrant = type(threading.RLock())


class GameLock(_Reentrant):
    """A reentrant lock; copies and pickles of it are new locks, and a forked child gets it free."""

    __slots__ = ()

    def __init__(self) -> None:
        _locks.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return GameLock, ()


_locks: weakref.WeakSet[GameLock] = weakref.WeakSet()


def _free_in_child() -> None:
    """Free the locks that threads of the parent held: those threads do not exist in the child."""
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


class Locked:
    """An object with a lock; copies and pickles are taken while it is held."""

    lock: GameLock

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return copy.deepcopy(self.__dict__)
