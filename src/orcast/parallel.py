"""Many jobs in several processes: results by the keys of the jobs, progress as they finish."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeVar

# Called with a sentence on what is being done and the share of it that is done, from 0 to 1.
Progress = Callable[[str, float], None]

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


def silent(what: str, share: float) -> None:
    """No progress is shown."""


class WorkerPool:
    """So many processes, which live as long as the context, for so many jobs in all; one is this very process.

    >>> with WorkerPool(1, 2) as pool:
    ...     pool.run(pow, {"eight": (2, 3), "nine": (3, 2)}, str)
    {'eight': 8, 'nine': 9}
    """

    def __init__(self, workers: int, jobs: int, progress: Progress = silent) -> None:
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
        """The function of the arguments of each job, in the order of the jobs; `label` says what a job is.

        `done` is called with each result as soon as it is there.
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
