"""Spark: a panel of weather series as a table, and the same as a stream of forecasts and outcomes.

    python examples/spark_panel.py [--quick]

Humidity at an airport and power of a wind farm, each hour of the day a series of its own: 48 series.  The forecast for
an hour is the mean of the last ten days at that hour, with their spread.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from orcast import datasets
from orcast.integrations.spark import recalibrate, recalibrate_stream

WINDOW = 10  # days that a forecast looks back
LEVELS = [0.05, 0.95]


def panel(days: int) -> pd.DataFrame:
    frames = []
    for quantity in (datasets.load("humidity"), datasets.load("wind")):
        values = quantity.values[: 24 * (days + WINDOW)].reshape(-1, 24)
        past = np.lib.stride_tricks.sliding_window_view(values, WINDOW, axis=0)[:-1]
        today = values[WINDOW:]
        day, hour = np.indices(today.shape)
        columns = {"ds": day, "y": today, "mean": past.mean(axis=2), "sd": past.std(axis=2) + 1e-3}
        frame = pd.DataFrame({key: each.ravel() for key, each in columns.items()})
        names = [f"{quantity.name} {h:02}h" for h in hour.ravel()]
        frames.append(frame.assign(quantity=quantity.name, unique_id=names, floor=quantity.low, roof=quantity.high))
    return pd.concat(frames, ignore_index=True)


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the Python of the tasks has to have orcast
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 4)
    return builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="60 days instead of 300")
    quick = parser.parse_args(arguments).quick

    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    frame = panel(60 if quick else 300)
    table = recalibrate(spark.createDataFrame(frame), low="floor", high="roof", levels=LEVELS).cache()

    half = (F.col("sd") * 1.6449).alias("half")
    before = F.abs(F.col("y") - F.col("mean")) <= half
    after = F.col("y").between(F.col("`orcast_q0.05`"), F.col("`orcast_q0.95`"))
    told = table.groupBy("quantity").agg(
        F.count("y").alias("forecasts"),
        F.avg(before.cast("int")).alias("covered"),
        F.avg(after.cast("int")).alias("by orcast"),
        F.avg(2 * half).alias("width"),
        F.avg(F.col("`orcast_q0.95`") - F.col("`orcast_q0.05`")).alias("its width"),
    )
    print("Share of hours within the 90% interval, and its mean width\n")
    print(told.orderBy("quantity").toPandas().round(3).to_string(index=False))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, rows in frame.groupby(frame["ds"] // (max(frame["ds"]) // 2 + 1)):
            rows.to_parquet(folder / f"{part}.parquet", index=False)
        schema = spark.read.parquet(name).schema
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(name)
        stream = recalibrate_stream(events, low="floor", high="roof", levels=LEVELS)
        query = stream.writeStream.format("memory").queryName("told").trigger(availableNow=True).start()
        query.awaitTermination()
    both = spark.table("told").alias("s").join(table.alias("t"), ["unique_id", "ds"])
    same = both.where("s.orcast_mean = t.orcast_mean and s.orcast_sd = t.orcast_sd").count()
    print(
        f"\nas a stream, in {len(query.recentProgress)} micro-batches: {same:,} of {len(frame):,} answers are the same"
    )
    spark.stop()


if __name__ == "__main__":
    main()
