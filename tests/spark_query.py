"""A streaming query from files to files, to be killed: ``python spark_query.py FOLDER MASTER``.

It reads ``FOLDER/in``, a file for each micro-batch, writes ``FOLDER/out`` with its checkpoint in ``FOLDER/checkpoint``,
ends when all is read, and leaves the rows that Spark reads from there in ``FOLDER/told.parquet``.
"""

import sys
from pathlib import Path

from orcast.integrations.spark import recalibrate_stream
from sparks import start

SCHEMA = "unique_id string, ds bigint, y double, mean double, sd double"


def main(folder: Path, master: str) -> None:
    more = {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2", "spark.task.maxFailures": "4"}
    spark = start(master, folder, **more)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    out = recalibrate_stream(reader.parquet(str(folder / "in")), low=0, high=100, partitions=2)
    writer = out.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.read.parquet(str(folder / "out")).toPandas().to_parquet(folder / "told.parquet")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
