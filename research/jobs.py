"""Jobs in several processes: results by the keys of the jobs, progress as they finish."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeVar

# Called with the name of the last finished job and the share of the work that is done, from 0 to 1.
Progress = Callable[[str, float], None]

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


def silent(what: str, share: float) -> None:
    """Show no progress."""


class WorkerPool:
    """Processes for `jobs` jobs in all, alive as long as the context; with 1 worker, this process.

    >>> with WorkerPool(1, 2) as pool:
    ...     pool.run(pow, {"eight": (2, 3), "nine": (3, 2)}, str)
    {'eight': 8, 'nine': 9}
    """

    def __init__(self, workers: int, jobs: int, progress: Progress = silent) -> None:
        if workers < 1:
            raise ValueError(f"expected at least 1 worker, got {workers}")
        self._jobs, self._done, self._progress = jobs, 0, progress
        self._pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn")) if workers > 1 else None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=error is not None)

    def run(
        self, function: Callable[..., Found], jobs: Mapping[Key, tuple[Any, ...]], label: Callable[[Key], str]
    ) -> dict[Key, Found]:
        """Call the function with the arguments of each job; `label` names a job for the progress."""
        found: dict[Key, Found] = {}
        for key, one in self._results(function, jobs):
            found[key] = one
            self._done += 1
            self._progress(label(key), self._done / self._jobs)
        return {key: found[key] for key in jobs}

    def _results(
        self, function: Callable[..., Found], jobs: Mapping[Key, tuple[Any, ...]]
    ) -> Iterator[tuple[Key, Found]]:
        """Results as they are finished."""
        if self._pool is None:
            yield from ((key, function(*arguments)) for key, arguments in jobs.items())
            return
        keys = {self._pool.submit(function, *arguments): key for key, arguments in jobs.items()}
        for future in as_completed(keys):
            yield keys[future], future.result()
