"""Recalibration of a Spark table: one frame call for each partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from orcast.integrations.spark.plan import REFUSALS, Plan, column, numbered, plan_of, refused_rows
from orcast.spaces.base import whole

# Rows that go back to Spark at a time.
CHUNK = 10_000


def recalibrate(
    df: DataFrame,
    *,
    series: Any = "unique_id",
    time: Any = "ds",
    pool: bool = False,
    partitions: int | None = None,
    **options: Any,
) -> DataFrame:
    """Recalibrate a Spark table with the results of `orcast.recalibrate`, bit for bit.

    Rows are distributed over partitions by series; a task makes one frame call for its partition.  The result is lazy:
    data that is refused raises when an action runs, in a sentence that names series and time.

    Parameters
    ----------
    df
        Table with a row for each forecast; null and nan are missing values.
    series
        Column or columns of the series.  None: one partition, in which they are detected.
    time
        Column of times; rows of Spark have no order.
    pool
        True: all series share information, in one task with all rows.
    partitions
        Number of partitions (default: ``spark.sql.shuffle.partitions``).
    **options
        Other options of `orcast.recalibrate`.

    Returns
    -------
    DataFrame
        Columns of `orcast.recalibrate`.  Its warnings are not shown; the column ``..._status`` counts them.
    """
    count = None if partitions is None else whole(partitions, "partitions", 1, 10**6)
    if getattr(df, "isStreaming", False):
        raise ValueError("expected a table, got a stream: use recalibrate_stream")
    plan, after = plan_of(df, series, time, pool, options)
    keys = [column(name) for name in plan.together]
    parts = df.repartition(*(keys if count is None else [count, *keys])) if keys else df.repartition(1)
    return numbered(parts).mapInArrow(Task(plan), after)


@dataclass(frozen=True)
class Task:
    """Recalibrates a partition."""

    plan: Plan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of the rows."""
        rows = [batch for batch in batches if batch.num_rows]
        if rows:
            table = pa.Table.from_batches(rows).rename_columns(self.plan.schema.names)
            del rows
            try:
                result = self.plan.run_rounds(table)
            except REFUSALS as reason:
                for row, sentence in refused_rows(self.plan.run_rounds, table).items():
                    raise type(reason)(f"{sentence} ({self.plan.place(table, row)})") from None
                raise
            yield from result.combine_chunks().to_batches(max_chunksize=CHUNK)
