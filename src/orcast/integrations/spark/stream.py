"""Structured Streaming: each micro-batch of a partition is one frame call with a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.frame import FrameState
from orcast.frame.statuses import Status
from orcast.integrations.spark.plan import REFUSALS, Plan, column, numbered, plan_of, refused_rows
from orcast.spaces.base import whole

REASON = "orcast_reason"
# Rows of a partition travel to its state and back as one value, an Arrow stream, so that types stay as they are.
PACKED, ANSWERED = "part int, rows binary", "rows binary"
STATE = "state binary, partitions int"


def recalibrate_stream(
    df: DataFrame,
    *,
    series: Any = "unique_id",
    time: Any = "ds",
    pool: bool = False,
    partitions: int = 200,
    remember: int = 20,
    **options: Any,
) -> DataFrame:
    """Recalibrate a stream of forecasts: `orcast.recalibrate` with a state, micro-batch by micro-batch.

    The state of a partition is a `FrameState` as bytes in the checkpoint of the query.

    Parameters
    ----------
    df
        Stream with a row for each forecast, and the row again with the outcome once that is known: it updates the
        series and repeats the answer.
    series, time, pool
        As in `recalibrate`.
    partitions
        Number of partitions, fixed by the first start of the query.
    remember
        Answered rows of each series that are remembered, so that repeated rows get the same answers.
    **options
        Other options of `orcast.recalibrate`; name ``cutoff`` and ``horizon`` if there are several rows for a time.

    Returns
    -------
    DataFrame
        Row for each row, with the columns of `orcast.recalibrate` and ``orcast_reason``.  A row that is refused has the
        status "refused" and the reason; it changes nothing and may be sent again, repaired.
    """
    count = whole(partitions, "partitions", 1, 10**6)
    first = FrameState(remember=remember).to_bytes()
    if not getattr(df, "isStreaming", True):
        raise ValueError("expected a stream, got a table: use recalibrate")
    plan, after = plan_of(df, series, time, pool, options)
    keys = [column(name) for name in plan.together]
    part = F.pmod(F.xxhash64(*keys), F.lit(count)) if keys else F.lit(0)
    parts = numbered(df, part.cast("int").alias("part")).mapInArrow(_Pack(plan), PACKED).groupBy("part")
    step = StreamStep(plan, count if keys else 1, first)
    answered = parts.applyInPandasWithState(step, ANSWERED, STATE, "append", "NoTimeout")
    return answered.mapInArrow(_unpack, T.StructType([*after.fields, T.StructField(REASON, T.StringType())]))


@dataclass(frozen=True)
class _Pack:
    """Packs the rows of each partition of series into one value."""

    plan: Plan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch for batch in batches if batch.num_rows]
        # partition 0 is always there, to compare the number of partitions with the first start
        parts, values = [0], [b""]
        if rows:
            table = pa.Table.from_batches(rows)
            which = table["part"].to_numpy()
            table = table.drop_columns(["part"]).rename_columns(self.plan.schema.names)
            order = np.argsort(which, kind="stable")
            for each in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
                parts.append(int(which[each[0]]))
                values.append(packed(table.take(each)))
        yield pa.record_batch([pa.array(parts, pa.int32()), pa.array(values, pa.binary())], ["part", "rows"])


def packed(table: pa.Table) -> bytes:
    """Encode a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for value in batch["rows"]:
            yield from pa.ipc.open_stream(value.as_buffer())


@dataclass(frozen=True)
class StreamStep:
    """Answers the rows of a partition in a micro-batch; called by Spark with its state."""

    plan: Plan
    partitions: int
    first: bytes

    def __call__(self, key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        """Read the state, answer the rows and write the state."""
        before, count = state.get if state.exists else (self.first, self.partitions)
        if count != self.partitions:
            raise ValueError(
                f"expected partitions={count}, with which the query was started, got {self.partitions}: "
                "another number needs a new checkpoint"
            )
        values = [bytes(value) for frame in frames for value in frame["rows"]]
        tables = [pa.ipc.open_stream(value).read_all() for value in values if value]
        after = bytes(before)
        if tables:
            answers, after = self.answer(pa.concat_tables(tables), after, key[0])
            yield pd.DataFrame({"rows": [packed(answers)]})
        if tables or not state.exists:
            state.update((after, self.partitions))

    def answer(self, table: pa.Table, state: bytes, part: int = 0) -> tuple[pa.Table, bytes]:
        """Answer rows; those that are refused get a reason, and the others the answers that they get without them."""
        try:
            result, after = self.plan.step(table, state)
            return result.append_column(REASON, pa.nulls(len(result), pa.string())), after
        except REFUSALS as reason:
            refusal = str(reason)
        self._check_state(state, part)
        answers, calls = [], self._repeats(table)
        if len(calls) == 1:
            bad = refused_rows(lambda rows: self.plan.step(rows, state), table)
            bad = bad or dict.fromkeys(range(len(table)), refusal)
            rows = np.fromiter(bad, np.int64)
            answers = [self._refusals(table.take(rows), list(bad.values()))]
            calls = [table.take(np.setdiff1d(np.arange(len(table)), rows))]
        for call in calls:
            if len(call):
                result, state = self.answer(call, state, part)
                answers.append(result)
        return pa.concat_tables(answers), state

    def _check_state(self, state: bytes, part: int) -> None:
        """Raise if no row could be answered: the state is damaged, or began with other options."""
        try:
            self.plan.step(self.plan.schema.empty_table(), state)
        except REFUSALS as reason:
            raise ValueError(f"partition {part} of {self.partitions}: {reason}") from None

    def _repeats(self, table: pa.Table) -> list[pa.Table]:
        """Calls for rows of one forecast that came in one micro-batch, those with more missing values first."""
        options = self.plan.options
        more = [options.get(name, name) for name in ("cutoff", "horizon")]
        names = [*self.plan.named, *(name for name in more if name in table.column_names)]
        missing = sum(np.asarray(table[name].is_null(nan_is_null=True)) * 1 for name in table.column_names)
        table = table.take(np.argsort(-missing, kind="stable"))
        count = table.select(names).to_pandas().groupby(names, dropna=False).cumcount().to_numpy()
        return [table.filter(count == each) for each in range(count.max() + 1)]

    def _refusals(self, table: pa.Table, reasons: list[str]) -> pa.Table:
        """Rows as they are refused: no answers, a status and a reason."""
        schema = self.plan.run_rounds(table.slice(0, 0)).schema
        columns = []
        for field in schema:
            if field.name in table.column_names and "orcast" not in field.name:
                columns.append(table[field.name].cast(field.type))
            elif field.name.endswith("_status"):
                columns.append(pa.array([Status.REFUSED.text] * len(table), field.type))
            else:
                columns.append(pa.nulls(len(table), field.type))
        return pa.table(columns, schema).append_column(REASON, pa.array(reasons, pa.string()))
