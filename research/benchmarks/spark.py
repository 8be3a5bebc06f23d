"""Spark: CPU time of a table and of a stream, as ratios to the frame calls that they make."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import orcast as oc
from research.benchmarks.frames import panel
from research.benchmarks.lines import Line, Lines, Remark
from research.output import optional

TITLE = "Spark"
PARTS, OPTIONS = 8, dict[str, Any](low=0, high=100, pool=False)
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


def alone(batches: list[Any]) -> float:
    """CPU seconds of the frame calls for each partition and micro-batch; a table needs no state."""
    parts: list[bytes | None] = [oc.frame.FrameState(remember=20).to_bytes()] * PARTS
    used = 0.0
    for batch in batches:
        which = batch["unique_id"].str[1:].astype(int) % PARTS
        for part, rows in batch.groupby(which):
            begin = process_time()
            if len(batches) == 1:
                oc.recalibrate(rows, workers=1, **OPTIONS)
            else:
                _, parts[part] = oc.frame.recalibrate_partition(rows, parts[part], workers=1, **OPTIONS)
            used += process_time() - begin
    return used


def measure(quick: bool = False) -> Lines:
    """Ratios of CPU time, after a first run that starts the workers."""
    pd, sql = optional("pandas"), optional("pyspark.sql")
    from orcast.integrations.spark import recalibrate, recalibrate_stream

    series, steps, count = (200, 40, 2) if quick else (4_000, 100, 5)
    table = pd.DataFrame(panel(series, steps))
    batches = [rows for _, rows in table.groupby(table["ds"] * count // steps)]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 2).getOrCreate()
    yield Remark(f"{series:,} series x {steps} steps in {PARTS} partitions; CPU time of driver, JVM and workers")
    with tempfile.TemporaryDirectory() as folder:
        for i, batch in enumerate(batches):
            batch.to_parquet(f"{folder}/{i}.parquet", index=False)
        rows = spark.read.parquet(folder)
        reader = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(folder)
        out = recalibrate(rows, partitions=PARTS, **OPTIONS).write.format("noop").mode("overwrite")
        answers = recalibrate_stream(reader, partitions=PARTS, **OPTIONS).writeStream.format("noop")
        for name, run, same in (
            ("table", out.save, [table]),
            (f"stream, {count} micro-batches", answers.trigger(availableNow=True).start, batches),
        ):
            for _ in range(2):
                begin, query = cpu(), run()
                if query is not None:
                    query.awaitTermination()
                used = cpu() - begin
            without = alone(same)
            yield Line(name, "us a step without Spark", 1e6 * without / len(table), form=".1f")
            yield Line(name, "ratio with Spark", used / without, None if quick else 2.0, form=".2f")
    spark.stop()
