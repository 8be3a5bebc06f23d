"""Threads that run the streams of a frame: the kernels release the GIL, so tasks run on several cores."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

# Seconds after which a caller that waits for results can be interrupted.
POLL = 0.2


class Stopped(Exception):
    """Raised in a thread that was asked to stop; its results are not used."""


class Stop(threading.Event):
    """Request to stop; threads check it between streams, and often within long ones."""

    def check(self) -> None:
        """Raise `Stopped` if the request was made."""
        if self.is_set():
            raise Stopped


# Of runs that are not in threads: an interrupt is raised where they are.
NEVER = Stop()


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(tasks: Iterable[Callable[[], None]], workers: int, stop: Stop) -> None:
    """Run tasks in `workers` threads; after an exception `stop` is set and the threads are waited for."""
    if workers <= 1:
        for task in tasks:
            task()
        return
    ready: deque[Future[None]] = deque()
    with ThreadPoolExecutor(workers) as executor:
        try:
            for task in tasks:
                ready.append(executor.submit(task))
                if len(ready) > 2 * workers:
                    _finish(ready.popleft())
            while ready:
                _finish(ready.popleft())
        finally:
            stop.set()
            for future in ready:
                future.cancel()


def _finish(future: Future[None]) -> None:
    while not wait([future], timeout=POLL).done:
        pass
    future.result()
