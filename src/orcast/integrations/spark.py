"""Spark: tables and streams of many series (extra ``orcast[spark]``).

Every executor needs orcast in the Python of its tasks.  A table is one frame call for each partition; each micro-batch
of a partition of a stream is one frame call with a state.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import orcast as oc
from orcast.frame import FrameState
from orcast.frame.statuses import Status
from orcast.integrations.common import needs
from orcast.spaces.base import whole
from orcast.validation import short

with needs("spark", "pandas", "pyarrow", "pyspark"):
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

__all__ = ["recalibrate"]

# Options of `orcast.recalibrate` that have no meaning in a task.
ELSEWHERE = {
    "target": "join the outcomes first",
    "state": "a stream keeps it in its checkpoint",
    "workers": "Spark runs the tasks in parallel",
}
# Exceptions of `orcast.recalibrate` about its input.
REFUSALS = (TypeError, ValueError)
# Rows that go back to Spark at a time.
CHUNK = 10_000
# Partitions of a stream by default.
PARTITIONS = 200
REASON = "orcast_reason"
# Rows of a partition travel to its state and back as one value, an Arrow stream, so that types stay as they are.
PACKED, ANSWERED = "part int, rows binary", "rows binary"
STATE = "state binary, partitions int"


def recalibrate(
    df: DataFrame,
    *,
    series: Any = "unique_id",
    time: Any = "ds",
    pool: bool = False,
    partitions: int | None = None,
    remember: int = 20,
    **options: Any,
) -> DataFrame:
    """Recalibrate a table or a stream of Spark with the results of `orcast.recalibrate`, bit for bit.

    Rows are distributed over partitions by series; a task makes one frame call for its partition.  The result is lazy:
    data of a table that is refused raises when an action runs, in a sentence that names series and time.  In a stream a
    micro-batch is a frame call with a state, whose bytes are in the checkpoint of the query.

    Parameters
    ----------
    df
        Row for each forecast; null and nan are missing values.  In a stream the row comes again with the outcome once
        that is known: it updates the series and repeats the answer.
    series
        Column or columns of the series.  None: one partition, in which they are detected.
    time
        Column of times; rows of Spark have no order.
    pool
        True: all series share information, in one task with all rows.
    partitions
        Number of partitions (default: ``spark.sql.shuffle.partitions``; of a stream 200, fixed by its first start).
    remember
        Answered rows of each series of a stream that are remembered, so that repeated rows get the same answers.
    **options
        Other options of `orcast.recalibrate`; name ``cutoff`` and ``horizon`` in a stream with several rows for a time.

    Returns
    -------
    DataFrame
        Columns of `orcast.recalibrate`.  Its warnings are not shown; the column ``..._status`` counts them.  A stream
        also has ``orcast_reason``: a row that is refused has the status "refused" and the reason; it changes nothing
        and may be sent again, repaired.
    """
    count = None if partitions is None else whole(partitions, "partitions", 1, 10**6)
    first = FrameState(remember=remember).to_bytes()
    plan, after = plan_of(df, series, time, pool, options)
    keys = [column(name) for name in plan.together]
    if not df.isStreaming:
        parts = df.repartition(*(keys if count is None else [count, *keys])) if keys else df.repartition(1)
        return numbered(parts).mapInArrow(Task(plan), after)
    step = StreamStep(plan, (count or PARTITIONS) if keys else 1, first)
    part = F.pmod(F.xxhash64(*keys), F.lit(step.partitions)) if keys else F.lit(0)
    groups = numbered(df, part.cast("int").alias("part")).mapInArrow(_Pack(plan), PACKED).groupBy("part")
    answered = groups.applyInPandasWithState(step, ANSWERED, STATE, "append", "NoTimeout")
    return answered.mapInArrow(_unpack, T.StructType([*after.fields, T.StructField(REASON, T.StringType())]))


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


# --- the frame calls of a query


@dataclass(frozen=True)
class Plan:
    """Everything that a task needs for a frame call: names of columns and options.

    ``together`` are the columns whose equal rows go into one call: those of a series, none with a pool.
    """

    schema: pa.Schema
    results: tuple[str, ...]
    together: tuple[str, ...]
    named: tuple[str, ...]
    options: Mapping[str, Any]

    def run_rounds(self, table: pa.Table, state: FrameState | None = None) -> pa.Table:
        """Recalibrate a table of whole series."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the column of statuses tells
            return self._checked(oc.recalibrate(table, workers=1, state=state, **self.options))

    def step(self, table: pa.Table, state: bytes) -> tuple[pa.Table, bytes]:
        """Recalibrate the next rows of some series from a state to the next."""
        after = FrameState.from_bytes(state)
        return self.run_rounds(table, after), after.to_bytes()

    def _checked(self, result: pa.Table) -> pa.Table:
        if tuple(result.column_names) != self.results:
            raise ValueError(
                f"expected forecasts that the schema tells, got {short(result.column_names)} from the values of this "
                f"partition instead of {short(list(self.results))}: name the forecasts by model="
            )
        return result

    def place(self, table: pa.Table, row: int) -> str:
        """Series and time of a row, for messages."""
        return ", ".join(f"{name} {short(table[name][row].as_py())}" for name in self.named)


def plan_of(df: DataFrame, series: Any, time: Any, pool: bool, options: Mapping[str, Any]) -> tuple[Plan, T.StructType]:
    """Check the columns and options by a frame call without rows."""
    if not (hasattr(df, "mapInArrow") and hasattr(df, "schema")):
        raise TypeError(f"expected a DataFrame of Spark, got {type(df).__name__} (orcast.recalibrate takes others)")
    _check_options(**options)
    if not isinstance(time, str):
        raise TypeError(f"expected time= with a column, since rows of Spark have no order, got {short(time)}")
    keys = () if series is None else (series,) if isinstance(series, str) else tuple(series)
    given = {**options, "series": list(keys) or None, "time": time, "pool": pool}
    schema = to_arrow_schema(df.schema, timezone="UTC")
    result = oc.recalibrate(schema.empty_table(), **given)
    together = () if pool else keys
    given = {name: value for name, value in given.items() if value is not None}
    return Plan(schema, tuple(result.column_names), together, (*keys, time), given), _schema_after(df, result.schema)


def _check_options(low: Any = None, high: Any = None, **options: Any) -> None:
    """Check what a frame call without rows does not."""
    for name, instead in ELSEWHERE.items():
        if name in options:
            raise TypeError(f"expected options of a Spark query, got {name}=: {instead}")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and not low < high:
        raise ValueError(f"expected bounds with low < high, got {low:g} and {high:g}")


def _schema_after(df: DataFrame, results: pa.Schema) -> T.StructType:
    """Spark's schema of the result; columns that pass through keep their types."""
    before = to_arrow_schema(df.schema, timezone="UTC")
    fields = []
    for name, kind in zip(results.names, results.types, strict=True):
        if name in before.names and before.field(name).type == kind:
            fields.append(T.StructField(name, df.schema[name].dataType, True, df.schema[name].metadata))
        else:
            fields.append(T.StructField(name, from_arrow_type(kind), True))
    return T.StructType(fields)


def refused_rows(call: Callable[[pa.Table], Any], table: pa.Table, start: int = 0) -> dict[int, str]:
    """Rows that a call refuses by themselves, with the reasons; found by halving."""
    try:
        call(table)
    except REFUSALS as reason:
        if len(table) == 1:
            return {start: re.sub(r" in row \d+", "", str(reason))}
    else:
        return {}
    half = len(table) // 2
    first = refused_rows(call, table.slice(0, half), start)
    return first | refused_rows(call, table.slice(half), start + half)


def numbered(df: DataFrame, *more: Any) -> DataFrame:
    """Rename the columns to numbers: Spark reads a dot in a name, as in q0.1, as a field of a struct."""
    return df.select(*(column(name).alias(f"c{i}") for i, name in enumerate(df.columns)), *more)


def column(name: str) -> Any:
    """A column by its name, dots included."""
    return F.col("`" + name.replace("`", "``") + "`")
