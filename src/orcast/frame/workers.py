"""Threads that run the streams of a frame: the kernels release the GIL, so tasks run on several cores."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

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


def run_all(tasks: Iterable[Callable[[], int]], workers: int, stop: Stop) -> Generator[int, None, None]:
    """Run tasks in `workers` threads, and yield their results in order.

    If the generator is closed, or an exception is raised, `stop` is set and the threads are waited for.
    """
    if workers <= 1:
        for task in tasks:
            yield task()
        return
    ready: deque[Future[int]] = deque()
    with ThreadPoolExecutor(workers) as executor:
        try:
            for task in tasks:
                ready.append(executor.submit(task))
                if len(ready) > 2 * workers:
                    yield _result(ready.popleft())
            while ready:
                yield _result(ready.popleft())
        finally:
            stop.set()
            for future in ready:
                future.cancel()


def _result(future: Future[int]) -> int:
    while not wait([future], timeout=POLL).done:
        pass
    return future.result()


@contextmanager
def progress_bar(wanted: bool, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds to the count of finished forecasts; if wanted it draws a bar on stderr."""
    count, total = 0, max(total, 1)

    def add(more: int) -> None:
        nonlocal count
        count += more
        if wanted:
            filled = 30 * count // total
            bar = "#" * filled + "." * (30 - filled)
            print(f"\r[{bar}] {count:,} of {total:,} forecasts", end="", file=sys.stderr, flush=True)

    try:
        yield add
    finally:
        if wanted:
            print(file=sys.stderr, flush=True)
