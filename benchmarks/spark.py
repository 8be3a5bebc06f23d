"""Spark: a panel as a table on all cores beside `oc.recalibrate`, a stream of events, and the state of a series."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.panel import panel
from benchmarks.results import Line, Remark

TITLE = "Spark"
SHARE = 0.6
MILLION = 1_000_000


def session(folder: Path, partitions: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.local.dir": str(folder / "local"),
    }
    builder = SparkSession.builder.master("local[*]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def timed(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def table(series: int, steps: int) -> dict[str, float]:
    """Seconds of both ways; the frame is on the disk for Spark, in memory for the other."""
    import pandas as pd

    import orcast as oc
    from orcast.integrations.spark import recalibrate

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder, 16)
        frame = pd.DataFrame(panel(series, steps))
        path = str(folder / "panel.parquet")
        frame.to_parquet(path, index=False)
        df = spark.read.parquet(path)

        def by_spark(rows: Any) -> None:
            recalibrate(rows, low=0, high=100).write.format("noop").mode("overwrite").save()

        # processes start and kernels are read, here and there
        by_spark(df.where(f"ds < {max(steps // 20, 2)}"))
        oc.recalibrate(frame[:500], low=0, high=100, workers=1)
        told = {
            "spark": timed(lambda: by_spark(df)),
            "frame": timed(lambda: oc.recalibrate(frame, low=0, high=100)),
        }
        spark.stop()
    return told


def stream(series: int, steps: int) -> float:
    """Seconds of micro-batches with a forecast and its outcome of each series."""
    import pandas as pd

    from orcast.integrations.spark import recalibrate_stream

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder, os.cpu_count() or 2)
        frame = pd.DataFrame(panel(series, steps))
        (folder / "in").mkdir()
        for t, rows in frame.groupby("ds"):
            path = folder / "in" / f"{t:05}.parquet"
            rows.to_parquet(path, index=False)
            os.utime(path, (t, t))
        schema = spark.read.parquet(str(folder / "in")).schema

        def play(files: str, games: str) -> None:
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            answers = recalibrate_stream(reader.parquet(str(folder / "in" / files)), low=0, high=100)
            writer = answers.writeStream.format("noop").option("checkpointLocation", str(folder / games))
            writer.trigger(availableNow=True).start().awaitTermination()

        play("0000[01].parquet", "first")  # processes start and kernels are read
        told = timed(lambda: play("*.parquet", "second"))
        spark.stop()
    return told


def state(steps: int) -> dict[str, float]:
    """Bytes of a series' state by what is in it: the game alone, a round remembered, a round that waits."""
    from orcast.integrations.spark.events import Event
    from orcast.integrations.spark.games import Games, SeriesOptions, mark_of
    from orcast.panel.columns import find
    from orcast.panel.experts import ForecastShape

    columns = panel(1, steps)
    names = [name for name in columns if name.startswith("q")]
    layout = find(list(columns), numeric=["ds", "y", *names])
    shapes = tuple(ForecastShape.of(form, form.outputs()) for form in layout.forms)

    def size(remember: int, late: int) -> int:
        games = Games(SeriesOptions(layout.forms, shapes, None, False, False, 1000, remember, mark_of()))
        for t in range(steps):
            given = [np.array([columns[name][t] for name in names])]
            y = float(columns["y"][t]) if t < steps - late else float("nan")
            games.play([Event(str(t), t, given, y, 0.0, 100.0, order=t)])
        return len(games.state())

    one = size(1, 0)
    kept = (size(21, 0) - one) / 20.0
    return {"game": one - kept, "remembered": kept, "waits": (size(1, 20) - size(1, 0)) / 20.0, "usual": size(20, 1)}


def apart(call: str) -> Any:
    """What a function of this module gives, in a process of its own: each has a Spark of its own."""
    code = f"import json; from benchmarks import spark; print('told', json.dumps(spark.{call}))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    told = [line[5:] for line in done.stdout.splitlines() if line.startswith("told ")]
    if not told:
        raise RuntimeError(f"expected numbers, got {done.stderr[-2000:]}")
    return json.loads(told[0])


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    cores = os.cpu_count() or 1
    series, steps = (1000, 40) if quick else (20_000, 100)
    yield Remark(f"{series:,} series x {steps} steps, 9 quantiles in and out, on {cores} cores; start-up not counted")
    told = apart(f"table({series}, {steps})")
    rows = series * steps
    for way, name in (("frame", "oc.recalibrate, pandas"), ("spark", "spark.recalibrate")):
        yield Line(name, "forecasts a second", rows / told[way], form=",.0f", note=f"{told[way]:.1f} s")
    target = None if quick else SHARE
    yield Line("spark.recalibrate", "times oc.recalibrate", told["frame"] / told["spark"], target, ">=", form=".2f")
    cost = cores * told["spark"] / rows
    yield Line("spark.recalibrate", "core-microseconds a series-step", 1e6 * cost, form=".0f")
    yield Line("spark.recalibrate", "core-hours, 1M series x 365 steps", MILLION * 365 * cost / 3600.0, form=".1f")
    some = (200, 4) if quick else (2000, 8)
    cost = cores * apart(f"stream({some[0]}, {some[1]})") / (some[0] * some[1])
    yield Line("spark.recalibrate_stream", "core-microseconds a series-step", 1e6 * cost, form=",.0f",
               note=f"{some[0]:,} series a micro-batch, each with a forecast and its outcome")  # fmt: skip
    yield Line("spark.recalibrate_stream", "core-minutes, 1M series x 1 step", MILLION * cost / 60.0, form=".1f")
    sizes = state(60)
    for what, name in (
        ("game", "a game"),
        ("remembered", "a round that is remembered"),
        ("waits", "a round that waits"),
    ):
        yield Line("state of a series", f"bytes, {name}", sizes[what], form=",.0f")
    yield Line("state of a series", "bytes, 20 remembered and 1 waits", sizes["usual"], form=",.0f")
    yield Line("state of a series", "GB, 1M of them", MILLION * sizes["usual"] / 1e9, form=".1f")
