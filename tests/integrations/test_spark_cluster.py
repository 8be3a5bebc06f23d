"""A streaming query under SIGKILL of its driver and workers: no row is lost or counted twice."""

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
from orcast.frame import PanelState
from sparks import same, write_batches

pytest.importorskip("pyspark")

SCRIPT = Path(__file__).parents[1] / "spark_query.py"
LAG, STEPS, PATIENCE = 2, 7, 300.0
SERIES = ("a", "b", "c", "d")


def batches() -> list[pd.DataFrame]:
    """A forecast of each series and an earlier one with its outcome, step by step."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame([(name, t) for t in range(STEPS) for name in SERIES], columns=["unique_id", "ds"])
    count = len(rows)
    rows["y"], rows["mean"], rows["sd"] = rng.uniform(0, 100, count), rng.uniform(30, 70, count), 5.0
    new = [rows[rows["ds"] == t].assign(y=np.nan) for t in range(STEPS)]
    return [pd.concat((new[t], rows[rows["ds"] == t - LAG])) for t in range(STEPS)]


def descendants(pid: int) -> dict[int, str]:
    """Find the processes that a process started, and those that they started, with their commands."""
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
    """Script in a process of its own."""

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
        return (self.folder / "checkpoint" / "offsets" / str(batch)).exists()

    def done(self, batch: int) -> bool:
        return (self.folder / "checkpoint" / "commits" / str(batch)).exists()

    def kill(self) -> None:
        """Kill the driver and all that it started."""
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


def run(folder: Path, master: str, worker: str) -> None:
    steps = batches()
    write_batches(folder / "in", steps)
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
    told = pd.read_parquet(folder / "told.parquet").drop(columns="orcast_reason")
    state = PanelState(remember=20)
    want = pd.concat([oc.recalibrate(step, state=state, low=0, high=100, pool=False) for step in steps])
    assert set(want["orcast_status"]) == {"pending", "ok"}
    same(told, want, ["unique_id", "ds", "y"])


@pytest.mark.slow
def test_driver_and_worker_are_killed(tmp_path: Path) -> None:
    run(tmp_path, "local[2,4]", "pyspark.daemon")


@pytest.mark.slow
def test_a_cluster_of_two_processes_is_killed(tmp_path: Path) -> None:
    """Executors run in processes of their own, one of which is killed too."""
    run(tmp_path, "local-cluster[2,1,1024]", "CoarseGrainedExecutorBackend")
