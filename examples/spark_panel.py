"""Spark: a panel of weather series as a table, and as a stream whose outcomes come with the next file.

    python examples/spark_panel.py [--quick]

Humidity at an airport and power of a wind farm, each hour of the day a series of its own: 48 series.  The forecast for
an hour is the mean of the last ten days at that hour, with their spread.
"""

import argparse
import os
import sys
import tempfile

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

    # a forecast comes without its outcome, and again with it in the next file
    blocks = [rows for _, rows in frame.groupby(3 * frame["ds"] // (frame["ds"].max() + 1))]
    with tempfile.TemporaryDirectory() as name:
        for i, rows in enumerate(blocks):
            known = blocks[i - 1] if i else rows.head(0)
            pd.concat([rows.assign(y=np.nan), known]).to_parquet(f"{name}/{i}.parquet", index=False)
            os.utime(f"{name}/{i}.parquet", (i, i))  # Spark reads files by their times
        schema = spark.read.parquet(name).schema
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(name)
        stream = recalibrate_stream(rows, low="floor", high="roof", levels=LEVELS, partitions=4)
        query = stream.writeStream.format("memory").queryName("told").trigger(availableNow=True).start()
        query.awaitTermination()
    told = spark.table("told").groupBy("orcast_status").count().orderBy("orcast_status").toPandas()
    print(f"\nRows of the stream by status, {len(blocks)} micro-batches\n")
    print(told.to_string(index=False))
    spark.stop()


if __name__ == "__main__":
    main()
