"""What the driver finds out once for all tasks: which columns are what, and that the options fit them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.features import has_functions
from orcast.frame.frame_run import FrameOptions, FrameRun
from orcast.frame.names import ColumnLayout, Form, Output, find
from orcast.frame.reader import Frame
from orcast.payoffs import Payoff, payoff_from_plain

# What a column of times may hold.
ZONE = r"(Z|[+-]\d{2}(:?\d{2}(:?\d{2}(\.\d+)?)?)?)$"  # where a time has one
TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType, T.NumericType, T.StringType)


@dataclass(frozen=True)
class SparkPlan:
    """What a task needs, in a form that travels: columns by name, and the options as they were given.

    ``payoff`` is the plain form of a payoff, which is among the options only if it has functions.  ``made``: forecasts
    were made as long before their time as the horizon says, in whatever part they are.
    """

    layout: ColumnLayout
    options: FrameOptions
    payoff: str | None
    made: bool = False

    def play(self, table: Any, *, replace: bool = False) -> Any:
        """What comes of a part of the frame that holds whole series."""
        if not self.made:
            return self._play(table, self.layout, replace)
        time, horizon = self.layout.time, self.layout.horizon
        frame, cutoff = Frame(table), f"{time} - {horizon}"
        made = pa.array(frame.numbers(time) - frame.numbers(horizon), from_pandas=True)
        layout = dataclasses.replace(self.layout, cutoff=cutoff)
        return self._play(table.append_column(cutoff, made), layout, replace).drop_columns([cutoff])

    def _play(self, table: Any, layout: ColumnLayout, replace: bool) -> Any:
        run = FrameRun(Frame(table), layout, self.options._replace(payoff=self.game_payoff()))
        run.play()
        return run.result(replace)

    def outputs(self, form: Form) -> tuple[Output, ...]:
        """The columns that come out for a model."""
        return form.outputs(self.options.levels if form.ordered else None)

    def game_payoff(self) -> Payoff | None:
        """The payoff itself."""
        return self.options.payoff if self.payoff is None else payoff_from_plain(json.loads(self.payoff))


def plan_of(
    df: Any, names: Mapping[str, Any], model: Any, options: FrameOptions, hidden: str | None = None
) -> SparkPlan:
    """Find the columns and check the options, before any task begins; one that is hidden is none of them."""
    if not (hasattr(df, "mapInArrow") and hasattr(df, "schema")):
        raise TypeError(f"expected a DataFrame of Spark, got {type(df).__name__} (orcast.recalibrate takes others)")
    options = options.checked()
    low, high = (side.to_dict() if hasattr(side, "to_dict") else side for side in (options.low, options.high))
    if all(isinstance(side, (int, float)) for side in (low, high)) and not low < high:
        raise ValueError(f"expected bounds with low < high, got {low:g} and {high:g}")
    layout = _layout(df, names, model, hidden)
    options = options._replace(low=low, high=high)
    payoff = None
    if options.payoff is not None and not has_functions(options.payoff):
        payoff, options = json.dumps(options.payoff.to_plain()), options._replace(payoff=None)
    made = False
    if not df.isStreaming:
        _check_zones(df, layout)
        made = _made(df, layout)
    return SparkPlan(layout, options, payoff, made)


def _layout(df: Any, names: Mapping[str, Any], model: Any, hidden: str | None = None) -> ColumnLayout:
    """Which columns are what, from the schema; outcomes are looked at only if it takes a look to tell."""
    schema: T.StructType = df.schema
    columns = [field.name for field in schema.fields if field.name != hidden]
    numeric = [field.name for field in schema.fields if isinstance(field.dataType, T.NumericType)]
    found: dict[Any, ColumnLayout] = {}
    refused: dict[Any, Exception] = {}

    def try_with(outcomes: str | None) -> None:
        try:
            found[outcomes] = find(columns, numeric=numeric, model=model, **names, outcomes=outcomes)
        except (TypeError, ValueError) as reason:
            refused[outcomes] = reason

    try_with(None)
    for outcomes in _possible(schema, found.get(None), names.get("y"), columns):
        try_with(outcomes)
    readings = {_reading(layout) for layout in found.values()}
    if df.isStreaming:
        if len(readings) > 1:
            raise ValueError(
                "expected columns that tell what they are whatever the outcomes will be, got forecasts of several "
                "kinds: model= with a name, or with several, settles it"
            )
    elif refused or len(readings) > 1:
        are = _outcomes(df, schema, next(iter(found.values())).y) if found else None
        if are in refused:
            raise refused[are]
        found = {are: found[are]}
    if not found:
        raise next(iter(refused.values()))
    layout = next(iter(found.values()))
    _check_times(schema, layout)
    return layout


def _possible(schema: T.StructType, layout: ColumnLayout | None, y: Any, columns: Sequence[str]) -> tuple[str, ...]:
    """What outcomes may turn out to be, by the type of their column."""
    name = layout.y if layout is not None else y if y in columns else None
    if name is None:
        return ("0/1", "numbers", "bool", "labels")
    kind = schema[name].dataType
    if isinstance(kind, T.BooleanType):
        return ("bool",)
    return ("0/1", "numbers") if isinstance(kind, T.NumericType) else ("labels",)


def _reading(layout: ColumnLayout) -> Any:
    """What two layouts have in common if they are the same."""
    forms = tuple(
        (f.model, f.kind, f.columns, None if f.levels is None else tuple(f.levels.tolist()), f.labels, f.mean)
        for f in layout.forms
    )
    return layout.series, layout.time, layout.cutoff, layout.horizon, layout.known, layout.y, forms


def _outcomes(df: Any, schema: T.StructType, name: str) -> str | None:
    """What the outcomes are: one pass over their column."""
    kind, y = schema[name].dataType, column(name)
    if not isinstance(kind, T.NumericType):
        some = df.where(y.isNotNull()).select(y).head(1)
        return None if not some else "bool" if isinstance(kind, T.BooleanType) else "labels"
    y = y.cast("double")
    other = F.max(F.when(y.isNotNull() & ~F.isnan(y), ~y.isin(0.0, 1.0)))
    found = df.agg(other.alias("other")).head()[0]
    return None if found is None else "numbers" if found else "0/1"


def _check_times(schema: T.StructType, layout: ColumnLayout) -> None:
    if layout.time is None:
        raise ValueError(
            "expected a column of times, since the rows of a Spark DataFrame have no order, got none: name it by time="
        )
    for name, what in ((layout.time, "time"), (layout.cutoff, "cutoff"), (layout.known, "time of knowledge")):
        if name is not None and not isinstance(schema[name].dataType, TIMES):
            raise TypeError(
                f"expected a {what} as dates, numbers, or text such as '2024-01-31' in {name!r}, "
                f"got {schema[name].dataType.simpleString()}"
            )
    if layout.cutoff is not None:
        time, cutoff = (schema[name].dataType for name in (layout.time, layout.cutoff))
        zoned = [isinstance(kind, T.TimestampType) for kind in (time, cutoff)]
        if zoned[0] != zoned[1] and not any(isinstance(kind, T.StringType) for kind in (time, cutoff)):
            raise TypeError(
                f"expected times and cutoffs of one kind, got {time.simpleString()} in {layout.time!r} and "
                f"{cutoff.simpleString()} in {layout.cutoff!r}"
            )


def _check_zones(df: Any, layout: ColumnLayout) -> None:
    """Times as text have a zone in all parts or in none."""
    if isinstance(df.schema[layout.time].dataType, T.StringType):
        text = F.trim(column(str(layout.time)))
        zoned = (F.length(text) > 10) & text.rlike(ZONE)
        found = df.agg(F.min(zoned), F.max(zoned)).head()
        if found[0] != found[1]:
            raise ValueError(f"expected dates with a zone or without in {layout.time!r}, got both")


def _made(df: Any, layout: ColumnLayout) -> bool:
    """Whether horizons tell when forecasts were made: they do if any is not 1, in whatever part that is."""
    kind = df.schema[layout.time].dataType
    if layout.horizon is None or layout.cutoff is not None:
        return False
    # whole numbers are the same either way: what is known one before is all that came before
    numbers = isinstance(kind, T.NumericType) and not isinstance(kind, T.IntegralType)
    if not numbers or not isinstance(df.schema[layout.horizon].dataType, T.NumericType):
        return False
    return bool(df.agg(F.max(column(layout.horizon).cast("double") != 1.0)).head()[0])


def column(name: str) -> Any:
    """A column by its name, dots and all."""
    return F.col(quoted(name))


def one_zero(name: str, kind: T.DataType) -> Any:
    """A column that tells series apart: to Spark the two zeros of floats have two places."""
    return column(name) + F.lit(0.0).cast(kind) if isinstance(kind, (T.DoubleType, T.FloatType)) else column(name)


def quoted(name: str) -> str:
    """A name as Spark's expressions have it."""
    return "`" + name.replace("`", "``") + "`"


def empty(schema: T.StructType) -> Any:
    """A table without rows that has the columns of a schema: what is asked of it is checked as for a full one."""
    return pa.table({field.name: pa.array([], type=_arrow(field.dataType)) for field in schema.fields})


def _arrow(kind: T.DataType) -> Any:
    if isinstance(kind, T.IntegralType):
        return pa.int64()
    if isinstance(kind, T.NumericType):
        return pa.float64()
    plain: dict[type[T.DataType], Any] = {
        T.BooleanType: pa.bool_(),
        T.DateType: pa.date32(),
        T.TimestampType: pa.timestamp("us", "UTC"),
        T.TimestampNTZType: pa.timestamp("us"),
        T.DayTimeIntervalType: pa.duration("us"),
    }
    return plain.get(type(kind), pa.string())


def schema_after(schema: T.StructType, table: Any, replaced: Collection[str] = ()) -> T.StructType:
    """The schema of what comes out, from that of what came in and the like of it that was played without rows."""
    was = {field.name: field for field in schema.fields}
    same = empty(schema).schema
    fields = []
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        if name in was and name not in replaced and kind == same.field(name).type:
            fields.append(T.StructField(name, was[name].dataType, True, was[name].metadata))
        else:
            new = T.DoubleType() if pa.types.is_floating(kind) else T.BooleanType() if kind == pa.bool_() else None
            fields.append(T.StructField(name, new or T.StringType(), True))
    return T.StructType(fields)
