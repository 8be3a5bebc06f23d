"""A streaming query under SIGKILL, of its driver and of its workers: nothing is lost and nothing counts twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import orcast as oc

pytest.importorskip("pyspark")

SCRIPT = Path(__file__).parents[1] / "spark_query.py"
LAG, STEPS, PATIENCE = 2, 7, 300.0
SERIES = ("a", "b", "c", "d")


def events() -> list[pd.DataFrame]:
    """A forecast of each series and the outcome of an earlier one, step by step."""
    rng = np.random.default_rng(0)
    steps = []
    for t in range(STEPS):
        rows: list[tuple[object, ...]] = []
        for name in SERIES:
            rows.append((name, t, t, rng.uniform(30, 70), rng.uniform(2, 9), np.nan))
            if t >= LAG:
                rows.append((name, t, t - LAG, np.nan, np.nan, rng.uniform(0, 100)))
        frame = pd.DataFrame(rows, columns=["unique_id", "ds", "id", "mean", "sd", "y"])
        steps.append(frame.sample(frac=1.0, random_state=t))
    return steps


def expected(steps: list[pd.DataFrame]) -> dict[tuple[str, int, str], tuple[float, ...]]:
    """What a `Recalibrator` of each series says, played by hand."""
    told = {}
    games = {name: oc.Recalibrator(oc.Interval(0, 100)) for name in SERIES}
    for frame in steps:
        for row in frame.sort_values("y", na_position="first").itertuples():
            game = games[row.unique_id]
            if np.isnan(row.y):
                p = game.predict(oc.Normal(row.mean, row.sd), id=row.id)
                told[row.unique_id, row.id, "forecast"] = p.to_normal()
            else:
                game.update(row.y, id=row.id)
                told[row.unique_id, row.id, "outcome"] = (game.guarantee.miscalibration,)
    return told


def descendants(pid: int) -> dict[int, str]:
    """Processes that a process started, and those that they did, with their commands."""
    parents, commands = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text()
            commands[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it has ended
        parents[int(place.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {}
    for each in parents:
        above = each
        while above not in (0, pid):
            above = parents.get(above, 0)
        if above == pid and each != pid:
            found[each] = commands[each]
    return found


class Query:
    """The script, in a process of its own."""

    def __init__(self, folder: Path, master: str) -> None:
        self.folder = folder
        self.errors = (folder / "errors.txt").open("ab")
        command = [sys.executable, str(SCRIPT), str(folder), master]
        self.process = subprocess.Popen(command, stdout=self.errors, stderr=self.errors, cwd=folder)

    def wait(self, ready: Callable[[], bool]) -> None:
        begin = time.monotonic()
        while not ready():
            assert self.process.poll() is None, (self.folder / "errors.txt").read_text()[-3000:]
            assert time.monotonic() - begin < PATIENCE
            time.sleep(0.005)

    def begun(self, batch: int) -> bool:
        return (self.folder / "games" / "offsets" / str(batch)).exists()

    def done(self, batch: int) -> bool:
        return (self.folder / "games" / "commits" / str(batch)).exists()

    def kill(self) -> None:
        """The driver and all that it started, in the middle of what they do."""
        started = list(descendants(self.process.pid))
        for pid in (self.process.pid, *started):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        self.errors.close()

    def kill_a_worker(self, words: str) -> bool:
        for pid, command in descendants(self.process.pid).items():
            if words in command:
                os.kill(pid, signal.SIGKILL)
                return True
        return False


def play(folder: Path, master: str, worker: str) -> None:
    steps = events()
    (folder / "in").mkdir()
    for t, frame in enumerate(steps):
        path = folder / "in" / f"{t}.parquet"
        frame.to_parquet(path, index=False)
        os.utime(path, (t, t))  # files are read in the order of their times
    first = Query(folder, master)
    try:
        first.wait(lambda: first.begun(2))
        assert not first.done(3)
    finally:
        first.kill()
    assert not (folder / "told.parquet").exists()
    second = Query(folder, master)
    killed = False
    try:
        second.wait(lambda: second.begun(4))
        killed = second.kill_a_worker(worker)
        assert second.process.wait(PATIENCE) == 0, (folder / "errors.txt").read_text()[-3000:]
    finally:
        second.kill()
    assert killed
    told = pd.read_parquet(folder / "told.parquet")
    want = expected(steps)
    keys = list(zip(told["unique_id"], told["id"], told["orcast_event"], strict=True))
    assert sorted(keys) == sorted(want)
    assert set(told["orcast_status"]) == {"pending", "ok"}
    for key, row in zip(keys, told.itertuples(), strict=True):
        got = (row.orcast_mean, row.orcast_sd) if key[2] == "forecast" else (row.orcast_miscalibration,)
        assert got == want[key], key


@pytest.mark.slow
def test_driver_and_worker_are_killed(tmp_path: Path) -> None:
    play(tmp_path, "local[2,4]", "pyspark.daemon")


@pytest.mark.slow
def test_a_cluster_of_two_processes_is_killed(tmp_path: Path) -> None:
    """The same with executors of their own, one of which dies too."""
    play(tmp_path, "local-cluster[2,1,1024]", "CoarseGrainedExecutorBackend")
