"""Processes that play batches: started for one frame and gone after it, whatever happens.

They are plain interpreters that read and write pipes.  Unlike those of `multiprocessing` they do not import the user's
script again, so that one line of Python is enough; and they are in a group of their own, so that Ctrl-C in a terminal
reaches the caller alone, who ends them.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any

from orcast.panel.runner import RunnerPool
from orcast.panel.stream import Batch, StreamResult, play_batch
from orcast.payoffs import payoff_from_plain
from orcast.spaces.base import whole

BOOT = "import sys; sys.path[:] = {path!r}; from orcast.panel.workers import serve; serve()"
# Seconds after which a caller that gets nothing can be interrupted.
POLL = 0.5


def usable_cores() -> int:
    """Cores that this process may use; one where it cannot start others."""
    if not sys.executable or getattr(sys, "frozen", False):
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(workers: object) -> int | None:
    """The number of processes that is asked for, or one clear sentence; None if it is left open."""
    return None if workers is None else whole(workers, "workers", 1, 1024)


def play_all(
    batches: Iterable[tuple[int, Batch]], workers: int, payoffs: dict[int, dict[str, Any] | None]
) -> Generator[tuple[int, StreamResult], None, None]:
    """Play batches here, or in so many processes; what comes of each, with its number, as it is done.

    ``payoffs`` are those of the models in plain form, which is how they travel.
    """
    if workers <= 1:
        pools: dict[int, RunnerPool] = {}
        for number, batch in batches:
            yield number, play_batch(batch, pools)
        return
    source = iter(batches)
    processes = _Processes(workers, payoffs)
    try:
        # while they start, one is played here: so kernels that were never compiled are compiled once, not in each
        for number, batch in islice(source, 1):
            yield number, play_batch(batch, {})
        yield from processes.play(source)
    finally:
        processes.end()


class _Processes:
    def __init__(self, workers: int, payoffs: dict[int, dict[str, Any] | None]) -> None:
        self.lock = threading.Lock()
        self.done: queue.Queue[tuple[int, Any]] = queue.Queue()
        self.ended = False
        self.processes: list[subprocess.Popen[bytes]] = []
        self.errors: list[IO[bytes]] = []
        self.threads: list[threading.Thread] = []
        own: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {"creationflags": 0x00000200}
        try:
            for _ in range(workers):
                errors = tempfile.TemporaryFile()  # noqa: SIM115
                self.errors.append(errors)
                process = subprocess.Popen(
                    [sys.executable, "-c", BOOT.format(path=[str(place) for place in sys.path])],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    **own,
                )
                self.processes.append(process)
                _send(process.stdin, payoffs)
        except BaseException:
            self.end()
            raise

    def play(self, batches: Iterable[tuple[int, Batch]]) -> Iterator[tuple[int, StreamResult]]:
        """Send batches to processes that are free; the results, as they come."""
        source = iter(batches)
        for process, errors in zip(self.processes, self.errors, strict=True):
            thread = threading.Thread(target=self._drive, args=(process, errors, source), daemon=True)
            self.threads.append(thread)
            thread.start()
        busy = len(self.threads)
        while busy:
            try:
                number, result = self.done.get(timeout=POLL)
            except queue.Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            if result is None:
                busy -= 1
                continue
            yield number, result

    def _drive(self, process: subprocess.Popen[bytes], errors: IO[bytes], source: Iterator[tuple[int, Batch]]) -> None:
        """Keep one process busy."""
        try:
            while not self.ended:
                with self.lock:
                    number, batch = next(source, (-1, None))
                if batch is None:
                    break
                _send(process.stdin, batch.with_payoff(None))
                self.done.put((number, _receive(process.stdout)))
            self.done.put((-1, None))
        except (OSError, EOFError):
            if self.ended:
                return
            code = process.wait()
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            reason = f": {last[0]}" if last else ""
            self.done.put((-1, RuntimeError(f"expected a worker process to go on, got its end (code {code}){reason}")))
        except BaseException as reason:  # raised in the thread of the caller
            self.done.put((-1, reason))

    def end(self) -> None:
        """No process is left."""
        self.ended = True
        for process in self.processes:
            process.kill()
        for thread in self.threads:
            thread.join(10.0)
        for process in self.processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                try:
                    if pipe is not None:
                        pipe.close()
                except OSError:
                    pass  # what was not sent no longer matters
        for errors in self.errors:
            errors.close()


def _send(pipe: Any, thing: object) -> None:
    data = pickle.dumps(thing, protocol=5)
    pipe.write(len(data).to_bytes(8, "little"))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: Any) -> Any:
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    data = pipe.read(int.from_bytes(size, "little"))
    return pickle.loads(data)


def serve() -> None:
    """What a worker process does until its pipe ends."""
    channel = os.fdopen(os.dup(1), "wb")
    # what is printed must not get into the pipe
    os.dup2(2, 1)
    source = sys.stdin.buffer
    try:
        payoffs = {number: data and payoff_from_plain(data) for number, data in _receive(source).items()}
        pools: dict[int, RunnerPool] = {}
        while True:
            batch: Batch = _receive(source)
            answer: Any
            try:
                answer = play_batch(batch.with_payoff(payoffs[batch.options.number]), pools)
            except Exception as reason:
                answer = _portable(reason)
            _send(channel, answer)
    except (EOFError, OSError):
        pass


def _portable(reason: Exception) -> Exception:
    """An exception that can be sent."""
    try:
        pickle.loads(pickle.dumps(reason))
    except Exception:
        return RuntimeError(f"{type(reason).__name__}: {reason}")
    return reason


# A function of what is being done and the share of it that is done, from 0 to 1.
Progress = Callable[[str, float], None]


@contextmanager
def progress_bar(wanted: bool | Progress, total: int) -> Iterator[Callable[[int], None]]:
    """What is called with how many more are done: with rich if that is there, else a line on stderr; if it is wanted.

    >>> shares = []
    >>> with progress_bar(lambda what, share: shares.append((what, share)), 4) as add:
    ...     add(1)
    ...     add(3)
    >>> shares
    [('recalibrating', 0.25), ('recalibrating', 1.0)]
    """
    count, total = 0, max(total, 1)
    rich = _rich_bar(total) if wanted is True else None

    def add(more: int) -> None:
        nonlocal count
        count += more
        if rich is not None:
            rich.update(rich.task_ids[0], completed=count)
        elif wanted is True:
            print(f"\r{count:,} of {total:,} forecasts", end="", file=sys.stderr, flush=True)
        elif callable(wanted):
            wanted("recalibrating", count / total)

    try:
        yield add
    finally:
        if rich is not None:
            rich.stop()
        elif wanted is True:
            print(file=sys.stderr, flush=True)


def _rich_bar(total: int) -> Any:
    """A bar of rich that has started; None if rich is not there."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    columns = (TextColumn("{task.completed:,.0f} of {task.total:,.0f} forecasts"), BarColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    bar.start()
    bar.add_task("", total=total)
    return bar
