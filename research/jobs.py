"""Jobs in several processes: results by the keys of the jobs, progress as they finish."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

# Called with the name of the last finished job and the share of the work that is done, from 0 to 1.
Progress = Callable[[str, float], None]

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


def silent(what: str, share: float) -> None:
    """Show no progress."""


class WorkerPool:
    """Processes for `jobs` jobs in all, alive as long as the context; with 1 worker, this process.

    Results are kept in the folder `keep`, if given, and not computed again by a later pool with the same folder.

    >>> with WorkerPool(1, 2) as pool:
    ...     pool.run(pow, {"eight": (2, 3), "nine": (3, 2)}, str)
    {'eight': 8, 'nine': 9}
    """

    def __init__(self, workers: int, jobs: int, progress: Progress = silent, keep: Path | None = None) -> None:
        if workers < 1:
            raise ValueError(f"expected at least 1 worker, got {workers}")
        self._jobs, self._done, self._progress, self._keep = jobs, 0, progress, keep
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
        paths = {key: self._path(function, key) for key in jobs}
        found = {key: pickle.loads(path.read_bytes()) for key, path in paths.items() if path and path.is_file()}
        for key, one in found.items():
            self._report(label(key), one, done)
        open_jobs = {key: arguments for key, arguments in jobs.items() if key not in found}
        for key, one in self._results(function, open_jobs):
            found[key] = one
            self._store(paths[key], one)
            self._report(label(key), one, done)
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

    def _path(self, function: Callable[..., Found], key: Key) -> Path | None:
        if self._keep is None:
            return None
        name = f"{function.__module__}.{function.__qualname__} {key!r}"
        return self._keep / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.pickle"

    def _store(self, path: Path | None, found: object) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".part")
            beside.write_bytes(pickle.dumps(found))
            os.replace(beside, path)

    def _report(self, what: str, found: Found, done: Callable[[Found], None] | None) -> None:
        if done is not None:
            done(found)
        self._done += 1
        self._progress(what, self._done / self._jobs)
