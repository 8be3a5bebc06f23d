"""Several threads, one game: calls are whole, what is saved is a state that was."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.stream.session import Session

THREADS, ROUNDS = 8, 200


@pytest.fixture(autouse=True)
def short_switches() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], None]) -> None:
    """Do all of it at once; what one raises is raised."""
    raised: list[BaseException] = []
    begin = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        begin.wait()
        try:
            work()
        except BaseException as reason:
            raised.append(reason)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # else a thread may be through before another has its turn
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    if raised:
        raise raised[0]


class Watched(oc.Recalibrator):
    """Notes the order in which its calls were taken."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls: list[tuple[str, Any, Any]] = []

    def predict(self, forecast: object = None, **options: Any) -> Any:
        with self.lock:
            p = super().predict(forecast, **options)
            self.calls.append(("predict", options["id"], forecast))
        return p

    def update(self, y: Any, *, id: Any = None) -> None:
        with self.lock:
            super().update(y, id=id)
            self.calls.append(("update", id, y))


def fingerprint(recal: oc.Forecaster) -> bytes:
    """All of a state."""
    ids, memory = repr(recal.pending).encode(), [array.tobytes() for array in recal.engine.arrays().values()]
    return ids + repr((recal.rounds.issued, recal.rounds.reserved, recal.rounds.usual_lag)).encode() + b"".join(memory)


@pytest.mark.parametrize("space", [oc.Binary(), oc.Interval(0, 1)], ids=["binary", "interval"])
def test_state_saved_during_concurrent_calls_is_consistent(space: oc.Space, tmp_path: Path) -> None:
    """One thread repeats the rounds in the order of the calls: each file is one of the states on its way."""
    rounds = ROUNDS
    recal, saved, over = Watched(space, max_pending=10 * THREADS), [], threading.Event()
    playing = threading.Semaphore(0)

    def run_rounds(thread: int) -> Callable[[], None]:
        def work() -> None:
            rng = np.random.default_rng(thread)
            for t in range(rounds):
                if t in (rounds // 4, rounds // 2, 3 * rounds // 4):
                    # a file that is begun now is of this moment, however slow the disk is
                    enough = len(saved) + 2
                    while len(saved) < enough:
                        time.sleep(0.001)
                p = float(rng.uniform(0.1, 0.9))
                recal.predict(p if isinstance(space, oc.Binary) else oc.Normal(p, 0.1), id=f"{thread}/{t}")
                recal.update(int(rng.random() < p) if isinstance(space, oc.Binary) else p, id=f"{thread}/{t}")
            playing.release()

        return work

    def save() -> None:
        while not over.is_set():
            path = tmp_path / f"{len(saved)}.orcast"
            recal.save(path)
            saved.append(path)
            over.wait(0.002)

    def watch() -> None:
        for _ in range(THREADS):
            playing.acquire()
        over.set()

    together(*map(run_rounds, range(THREADS)), save, watch)
    assert recal.guarantee.rounds == THREADS * rounds == recal.rounds.issued
    assert recal.pending == ()
    assert len(recal.calls) == 2 * THREADS * rounds
    files = {fingerprint(oc.Recalibrator.load(path)) for path in saved}
    assert len(files) >= 3
    again = oc.Recalibrator(space, max_pending=10 * THREADS)
    files.discard(fingerprint(again))
    for call, id, value in recal.calls:
        again.predict(value, id=id) if call == "predict" else again.update(value, id=id)
        files.discard(fingerprint(again))
    assert fingerprint(again) == fingerprint(recal)
    assert not files


WAITING: dict[str, Callable[[oc.Recalibrator, Path], Any]] = {
    "predict": lambda recal, folder: recal.predict(0.3, id="new"),
    "update": lambda recal, folder: recal.update(1, id="old"),
    "drop": lambda recal, folder: recal.drop("old"),
    "pending": lambda recal, folder: recal.pending,
    "guarantee": lambda recal, folder: recal.guarantee,
    "run_rounds": lambda recal, folder: recal.run([0.3], [1]),
    "save": lambda recal, folder: recal.save(folder / "state"),
    "pickle": lambda recal, folder: pickle.dumps(recal),
}


@pytest.mark.parametrize("call", WAITING)
def test_a_call_waits_until_the_lock_is_free(call: str, tmp_path: Path) -> None:
    recal = oc.Recalibrator(oc.Binary())
    if call != "run_rounds":
        recal.predict(0.4, id="old")
    other = threading.Thread(target=WAITING[call], args=(recal, tmp_path))
    with recal.lock:
        before = fingerprint(recal)
        other.start()
        other.join(0.1)
        assert other.is_alive()
        assert fingerprint(recal) == before
    other.join(30.0)
    assert not other.is_alive()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda recal: pickle.loads(pickle.dumps(recal))])
def test_a_copy_has_a_lock_of_its_own(copied: Callable[[Any], Any]) -> None:
    recal = oc.Recalibrator(oc.Binary())
    with recal.lock:
        other = copied(recal)
    assert other.lock is not recal.lock
    free: list[bool] = []
    with recal.lock:
        together(lambda: free.append(other.lock.acquire(timeout=5.0)))
    assert free == [True]


def test_a_session_answers_lines_of_several_threads() -> None:
    session = Session()

    def send(thread: int) -> Callable[[], None]:
        def work() -> None:
            for t in range(100):
                for line in ({"forecast": {"p": 0.4}}, {"y": t % 2}):
                    session.answer(json.dumps({"series": "all", "id": f"{thread}/{t}", **line}).encode())

        return work

    together(*map(send, range(4)))
    assert json.loads(session.answer(b'{"series": "all", "id": "0/0", "y": 0}'))["y"] == 0
    assert session.store.series("all").guarantee.rounds == 400


def test_a_line_without_an_id_is_of_its_series_whichever_thread_brings_it() -> None:
    session, ready, done = Session(), threading.Event(), threading.Event()

    def begin() -> None:
        session.answer(b'{"forecast": {"p": 0.4}}')
        ready.set()
        done.wait(10.0)  # still there when the outcome comes

    def end() -> None:
        ready.wait(10.0)
        session.answer(b'{"y": 1}')
        done.set()

    together(begin, end)
    assert session.store.series(None).guarantee.rounds == 1


def test_lock_held_by_a_thread_is_free_in_a_forked_child() -> None:
    code = """
import os, threading
import orcast as oc
recal = oc.Recalibrator(oc.Binary())
held, done = threading.Event(), threading.Event()
def hold():
    with recal.lock:
        held.set()
        done.wait(30)
threading.Thread(target=hold).start()
held.wait(30)
child = os.fork()
if not child:
    os._exit(0 if recal.lock.acquire(timeout=5) else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done.set()
raise SystemExit(code)
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=120).returncode == 0
