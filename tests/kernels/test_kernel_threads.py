"""Kernels in several threads: the numbers of one thread to the last bit, and scratch memory that is given back."""

import threading
from collections.abc import Iterator

import kernel_runs
import pytest

from orcast.kernels.rows import workspace

GAMES = dict(kernel_runs.recals())


def results(first: int = 0) -> Iterator[tuple[str, bytes]]:
    """Results of all runs, from one of them on; after each of them no scratch memory is in use."""
    names = [*GAMES][first:] + [*GAMES][:first]
    for name in names:
        yield name, kernel_runs.bits(GAMES[name]())
        if (workspace().block, workspace().used) != (0, 0):
            raise AssertionError(f"scratch memory is left in use by {name}")


@pytest.fixture(scope="module")
def alone() -> dict[str, bytes]:
    return dict(results())


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_equal_one_thread_to_the_last_bit(threads: int, alone: dict[str, bytes]) -> None:
    found: list[object] = []

    def work(first: int) -> None:
        try:
            found.append(dict(results(first)))
        except BaseException as reason:
            found.append(reason)

    started = [threading.Thread(target=work, args=(7 * i,)) for i in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert len(found) == threads
    for each in found:
        assert each == alone
