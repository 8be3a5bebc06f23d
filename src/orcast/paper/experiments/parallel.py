"""Many jobs in several processes: results in the order of the jobs, progress as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Protocol

Job = tuple[Any, ...]


class RunAll(Protocol):
    """Applies a function to the arguments of each job; `done` is called with a job as soon as it is finished."""

    def __call__(self, function: Callable[..., Any], jobs: Sequence[Job], done: Callable[[Job], None]) -> list[Any]:
        """The results, in the order of the jobs."""
        ...


@contextmanager
def worker_pool(workers: int) -> Iterator[RunAll]:
    """So many processes, which live as long as the context; one is this very process.

    >>> with worker_pool(1) as run_all:
    ...     run_all(pow, [(2, 3), (3, 2)], lambda job: None)
    [8, 9]
    """
    if workers == 1:
        yield _one_by_one
        return
    with ProcessPoolExecutor(max_workers=workers, mp_context=get_context("spawn")) as pool:

        def run_all(function: Callable[..., Any], jobs: Sequence[Job], done: Callable[[Job], None]) -> list[Any]:
            futures = {pool.submit(function, *job): job for job in jobs}
            try:
                for future in as_completed(futures):
                    future.result()
                    done(futures[future])
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return [future.result() for future in futures]

        yield run_all


def _one_by_one(function: Callable[..., Any], jobs: Sequence[Job], done: Callable[[Job], None]) -> list[Any]:
    results = []
    for job in jobs:
        results.append(function(*job))
        done(job)
    return results
