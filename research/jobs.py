"""Jobs in several processes: results by the keys of the jobs, progress as they finish."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
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
        self,
        function: Callable[..., Found],
        jobs: Mapping[Key, tuple[Any, ...]],
        label: Callable[[Key], str],
        done: Callable[[Found], None] | None = None,
    ) -> dict[Key, Found]:
        """Call the function with the arguments of each job; return results in the order of the jobs.

        `label` names a job for the progress; `done` is called with each result as soon as it is there.
        """
        if self._pool is None:
            found = {}
            for key, arguments in jobs.items():
                found[key] = function(*arguments)
                self._report(label(key), found[key], done)
            return found
        keys = {self._pool.submit(function, *arguments): key for key, arguments in jobs.items()}
        for future in as_completed(keys):
            self._report(label(keys[future]), future.result(), done)
        return {key: future.result() for future, key in keys.items()}

    def _report(self, what: str, found: Found, done: Callable[[Found], None] | None) -> None:
        if done is not None:
            done(found)
        self._done += 1
        self._progress(what, self._done / self._jobs)
