"""Spark: CPU time of a table and of a stream as ratios to the same frame calls without Spark."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from research.benchmarks.frames import panel
from research.benchmarks.lines import Line, Lines, Remark

TITLE = "Spark"
MOST_RATIO, PARTS = 2.0, 8
OPTIONS: dict[str, Any] = {"low": 0, "high": 100, "pool": False}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu() -> float:
    """CPU seconds of this process and of all that it started."""
    found, times = {os.getpid()}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        fields = place.read_text().rpartition(")")[2].split()
        times[int(place.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    while more := {pid for pid, (parent, _) in times.items() if parent in found} - found:
        found |= more
    return sum(times[pid][1] for pid in found) / TICKS


def alone(batches: list[pa.Table], series: int) -> float:
    """CPU seconds of the frame calls of each partition and micro-batch; one batch needs no state."""
    import orcast as oc

    used = 0.0
    for part in range(PARTS):
        names = pa.array([f"s{i}" for i in range(part, series, PARTS)])
        state = oc.frame.PanelState(remember=20).to_bytes()
        for batch in batches:
            rows = batch.filter(pa.compute.is_in(batch["unique_id"], names))
            begin = process_time()
            if len(batches) == 1:
                oc.recalibrate(rows, workers=1, **OPTIONS)
            else:
                _, state = oc.frame.recalibrate_partition(rows, state, workers=1, **OPTIONS)
            used += process_time() - begin
    return used


def spent(work: Callable[[], Any]) -> float:
    """CPU seconds of the second run; the first starts workers and compiles."""
    work()
    begin = cpu()
    work()
    return cpu() - begin


def measure(quick: bool = False) -> Lines:
    """Ratios of CPU time for a table and for a stream of micro-batches."""
    from pyspark.sql import SparkSession

    from orcast.integrations.spark import recalibrate, recalibrate_stream

    series, steps, count = (200, 40, 2) if quick else (4_000, 100, 5)
    table = pa.table(panel(series, steps))
    batches = [table.filter(pa.compute.equal(pa.compute.divide(table["ds"], steps // count), i)) for i in range(count)]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }
    settings["spark.ui.showConsoleProgress"] = "false"
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        for i, batch in enumerate(batches):
            pq.write_table(batch, f"{folder}/{i}.parquet")
        rows = spark.read.parquet(folder)
        reader = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(folder)
        stream = recalibrate_stream(reader, partitions=PARTS, **OPTIONS)
        works = {
            "a table": lambda: (
                recalibrate(rows, partitions=PARTS, **OPTIONS).write.format("noop").mode("overwrite").save()
            ),
            f"a stream in {count} micro-batches": lambda: (
                stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
            ),
        }
        yield Remark(f"{series:,} series x {steps} steps in {PARTS} partitions; CPU time of driver, JVM and workers")
        for (name, work), core in zip(works.items(), ([table], batches), strict=True):
            with_spark, without = spent(work), alone(core, series)
            yield Line(name, "microseconds a step without Spark", 1e6 * without / table.num_rows, form=".1f")
            yield Line(name, "ratio with Spark", with_spark / without, None if quick else MOST_RATIO, "<=", ".2f")
    spark.stop()
