"""Columns, options and result schema of a Spark query, checked on the driver."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

import orcast as oc
from orcast.frame import FrameState
from orcast.validation import short

# Options of `orcast.recalibrate` that have no meaning in a task.
ELSEWHERE = {
    "target": "join the outcomes first",
    "state": "a stream keeps it in its checkpoint",
    "workers": "Spark runs the tasks in parallel",
}
# Exceptions of `orcast.recalibrate` about its input.
REFUSALS = (TypeError, ValueError)


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
    keys = _names(series, "series", df.columns)
    times = _names(time, "time", df.columns)
    if len(times) != 1:
        raise ValueError("expected time= with a column, since rows of Spark have no order, got none")
    given = {**options, "series": list(keys) or None, "time": times[0], "pool": pool}
    schema = to_arrow_schema(df.schema, timezone="UTC")
    result = oc.recalibrate(schema.empty_table(), **given)
    together = () if pool else keys
    given = {name: value for name, value in given.items() if value is not None}
    return Plan(schema, tuple(result.column_names), together, (*keys, *times), given), _schema_after(df, result.schema)


def _check_options(low: Any = None, high: Any = None, **options: Any) -> None:
    """Check what a frame call without rows does not."""
    for name, instead in ELSEWHERE.items():
        if name in options:
            raise TypeError(f"expected options of a Spark query, got {name}=: {instead}")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and not low < high:
        raise ValueError(f"expected bounds with low < high, got {low:g} and {high:g}")


def _names(given: Any, what: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Names of columns that exist."""
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in columns:
            raise ValueError(f"expected {what}= with columns of the DataFrame, got {name!r}; it has {short(columns)}")
    return names


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
