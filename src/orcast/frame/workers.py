"""Threads that run batches of streams: the kernels release the GIL, so batches run on several cores."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from orcast.frame.runner import RunnerPool
from orcast.frame.stopping import Stop
from orcast.frame.stream import Batch, StreamResult, play_batch
from orcast.spaces.base import whole

# Seconds after which a caller that waits for results can be interrupted.
POLL = 0.2


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(workers: object) -> int | None:
    """Check a number of threads; None leaves it open."""
    return None if workers is None else whole(workers, "workers", 1, 1024)


def play_all(
    batches: Iterable[tuple[int, Batch]], workers: int, stop: Stop
) -> Generator[tuple[int, StreamResult], None, None]:
    """Run batches in `workers` threads; yield each result with its number as soon as it is there.

    If the generator is closed, or an exception is raised, `stop` is set and the threads are waited for.
    """
    if workers <= 1:
        pools: dict[int, RunnerPool] = {}
        for number, batch in batches:
            yield number, play_batch(batch, pools)
        return
    source, lock = iter(batches), threading.Lock()
    done: queue.Queue[tuple[int, Any]] = queue.Queue()

    def work() -> None:
        own: dict[int, RunnerPool] = {}
        try:
            while not stop.is_set():
                with lock:
                    number, batch = next(source, (-1, None))
                if batch is None:
                    break
                done.put((number, play_batch(batch, own, stop)))
            done.put((-1, None))
        except BaseException as reason:  # raised in the thread of the caller
            done.put((-1, reason))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    try:
        busy = len(threads)
        while busy:
            try:
                number, result = done.get(timeout=POLL)
            except queue.Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            if result is None:
                busy -= 1
            else:
                yield number, result
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# Callback of the activity and the share of it that is done, from 0 to 1.
Progress = Callable[[str, float], None]


@contextmanager
def progress_bar(wanted: bool | Progress, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a progress callback; True draws a bar on stderr.

    >>> shares = []
    >>> with progress_bar(lambda what, share: shares.append((what, share)), 4) as add:
    ...     add(1)
    ...     add(3)
    >>> shares
    [('recalibrating', 0.25), ('recalibrating', 1.0)]
    """
    count, total = 0, max(total, 1)

    def add(more: int) -> None:
        nonlocal count
        count += more
        if wanted is True:
            filled = 30 * count // total
            bar = "#" * filled + "." * (30 - filled)
            print(f"\r[{bar}] {count:,} of {total:,} forecasts", end="", file=sys.stderr, flush=True)
        elif callable(wanted):
            wanted("recalibrating", count / total)

    try:
        yield add
    finally:
        if wanted is True:
            print(file=sys.stderr, flush=True)
