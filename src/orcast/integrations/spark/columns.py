"""Columns of a stream on their way to Python and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.integrations.spark.plan import column, one_zero
from orcast.panel.columns import ColumnLayout

# Columns of every event, beside those of the models.
EVENT, REASON = "orcast_event", "orcast_reason"


@dataclass(frozen=True)
class CarriedColumn:
    """A column on its way: pandas would make floats of whole numbers with nulls, so they travel as text."""

    name: str
    code: str
    kind: T.DataType

    @property
    def travels_as(self) -> T.DataType:
        """The type on the way."""
        return self.kind if isinstance(self.kind, AS_THEY_ARE) else T.StringType()


AS_THEY_ARE = (T.DoubleType, T.FloatType, T.StringType, T.BooleanType, T.BinaryType)
AS_TEXT = (T.IntegralType, T.DecimalType, T.DateType, T.TimestampType, T.TimestampNTZType)


def carried_columns(df: DataFrame, layout: ColumnLayout) -> list[CarriedColumn]:
    """The columns that go through, less those that an earlier run wrote."""
    gone = {*layout.earlier(df.columns), EVENT, REASON}
    found = []
    for i, field in enumerate(df.schema.fields):
        if field.name in gone:
            continue
        if not isinstance(field.dataType, (*AS_THEY_ARE, *AS_TEXT)):
            raise TypeError(
                f"expected columns of text, numbers, dates or times in a stream, got {field.dataType.simpleString()} "
                f"in {field.name!r}: drop it first"
            )
        found.append(CarriedColumn(field.name, f"c{i}", field.dataType))
    return found


def encoded(name: str, kind: T.DataType) -> Any:
    """A column as it travels."""
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column(name)).cast("string")
    return column(name).cast("string") if isinstance(kind, AS_TEXT) else one_zero(name, kind)


def decoded(each: CarriedColumn) -> Any:
    """A column as it was."""
    if isinstance(each.kind, T.TimestampType):
        return F.timestamp_micros(F.col(each.code).cast("bigint"))
    return F.col(each.code).cast(each.kind) if isinstance(each.kind, AS_TEXT) else F.col(each.code)
