"""A streaming query under SIGKILL of its driver and workers: no row is lost or counted twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from orcast.frame import FrameState
from sparks import same, write_batches

pytest.importorskip("pyspark")

LAG, STEPS, PATIENCE = 2, 7, 300.0
# From files to files; it ends when all is read.
QUERY = """
import sys
from pathlib import Path

from orcast.integrations.spark import recalibrate
from sparks import start

folder = Path(sys.argv[1])
more = {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2", "spark.task.maxFailures": "4"}
spark = start(sys.argv[2], folder, **more)
schema = "unique_id string, ds bigint, y double, mean double, sd double"
reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
out = recalibrate(reader, low=0, high=100, partitions=2)
writer = out.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
spark.read.parquet(str(folder / "out")).toPandas().to_parquet(folder / "told.parquet")
spark.stop()
"""


def batches() -> list[pd.DataFrame]:
    """A forecast of each series and an earlier one with its outcome, step by step."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame([(name, t) for t in range(STEPS) for name in "abcd"], columns=["unique_id", "ds"])
    count = len(rows)
    rows["y"], rows["mean"], rows["sd"] = rng.uniform(0, 100, count), rng.uniform(30, 70, count), 5.0
    new = [rows[rows["ds"] == t].assign(y=np.nan) for t in range(STEPS)]
    return [pd.concat((new[t], rows[rows["ds"] == t - LAG])) for t in range(STEPS)]


class Query:
    """The query in a process of its own, which leads a session."""

    def __init__(self, folder: Path, master: str) -> None:
        self.folder = folder
        path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
        with (folder / "errors.txt").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", QUERY, str(folder), master],
                stdout=errors, stderr=errors, cwd=folder, env=os.environ | {"PYTHONPATH": path}, start_new_session=True,
            )  # fmt: skip

    def wait(self, ready: Callable[[], bool]) -> None:
        begin = time.monotonic()
        while not ready():
            assert self.process.poll() is None, (self.folder / "errors.txt").read_text()[-3000:]
            assert time.monotonic() - begin < PATIENCE
            time.sleep(0.005)

    def begun(self, batch: int) -> bool:
        return (self.folder / "checkpoint" / "offsets" / str(batch)).exists()

    def members(self, words: str) -> Iterator[int]:
        """Processes of the session with some words in their command."""
        for place in Path("/proc").glob("[0-9]*"):
            try:
                stat, command = (place / "stat").read_text(), (place / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has ended
            if int(stat.rpartition(")")[2].split()[3]) == self.process.pid and words in command:
                yield int(place.name)

    def stop(self) -> None:
        """Kill the driver and all that it started."""
        for pid in list(self.members("")):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "worker"),
    [("local[2,4]", "pyspark.daemon"), ("local-cluster[2,1,1024]", "CoarseGrainedExecutorBackend")],
)
def test_query_continues_after_kills(tmp_path: Path, master: str, worker: str) -> None:
    steps = batches()
    write_batches(tmp_path / "in", steps)
    first = Query(tmp_path, master)
    try:
        first.wait(lambda: first.begun(2))
    finally:
        first.stop()
    assert not (tmp_path / "told.parquet").exists()
    second = Query(tmp_path, master)
    try:
        second.wait(lambda: second.begun(4))
        os.kill(next(second.members(worker)), signal.SIGKILL)
        assert second.process.wait(PATIENCE) == 0, (tmp_path / "errors.txt").read_text()[-3000:]
    finally:
        second.stop()
    state = FrameState(remember=20)
    want = pd.concat([oc.recalibrate(step, state=state, low=0, high=100, pool=False) for step in steps])
    assert set(want["orcast_status"]) == {"pending", "ok"}
    same(pd.read_parquet(tmp_path / "told.parquet").drop(columns="orcast_reason"), want, ["unique_id", "ds", "y"])
