"""Locks: what several threads may share takes one call after the other.

Every object that plays rounds has a `lock`, and each public call that reads or changes what it has learnt holds it.
A thread that holds it may take it again, so a user may hold it over several calls:

>>> import orcast as oc
>>> recal = oc.Recalibrator(oc.Interval(0, 1))
>>> with recal.lock:  # nobody else plays in between
...     p = recal.predict(oc.Normal(0.5, 0.1), id="monday")
...     rounds = recal.guarantee.rounds
"""

from __future__ import annotations

import copy
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
else:
    _Reentrant = type(threading.RLock())


class GameLock(_Reentrant):
    """A lock that its thread may take again; a copy of whatever kind, also a pickled one, is a new lock."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return GameLock, ()


Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """A method that holds the `lock` of its object."""

    @wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, call)


class Locked:
    """An object with a lock, whose copies and pickles are of one moment."""

    lock: GameLock

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return copy.deepcopy(self.__dict__)


class _Mark:
    """Stands for a thread, and goes with it; numbers of threads are given again."""


class _Marks(threading.local):
    def __init__(self) -> None:
        self._own = _Mark()
        self.reference = weakref.ref(self._own)


_marks = _Marks()
ThreadReference = weakref.ref[_Mark]


def this_thread() -> ThreadReference:
    """What stands for the thread that asks, and for no other one, ever; it leads to None once the thread has ended."""
    return _marks.reference
