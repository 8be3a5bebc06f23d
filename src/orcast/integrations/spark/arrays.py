"""Columns of arrays: members of an ensemble, which are columns of their own on their way through the tasks."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.panel.column_names import OWN, member_lists, owner_of

# Columns of arrays, by name, and how many members each has at most.
Arrays = dict[str, int]


def spread_arrays(df: DataFrame) -> tuple[DataFrame, Arrays]:
    """A column for each member in the place of a column of arrays of numbers; quantiles would need their levels."""
    kinds = {field.name: field.dataType for field in df.schema.fields}
    arrays = [
        name
        for name, kind in kinds.items()
        if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType)
    ]
    found: Arrays = {}
    for name in member_lists(arrays, [name for name in kinds if name not in arrays]):
        longest = df.select(F.max(F.size(_column(name)))).first()
        if longest is not None and (longest[0] or 0) > 1:
            found[name] = int(longest[0])
    if not found:
        return df, {}
    return df.select(*(part for name in df.columns for part in _members(name, found.get(name)))), found


def fold_arrays(df: DataFrame, arrays: Arrays) -> DataFrame:
    """Members as arrays again, those that came out too: these come first behind what was given."""
    if not arrays:
        return df
    whole: dict[str, Column] = {}
    of_member: dict[str, str] = {}
    for name, count in arrays.items():
        for each in (name, f"{name}_{OWN}"):
            members = [f"{each}_member_{i + 1}" for i in range(count)]
            if members[0] in df.columns:
                there = F.filter(F.array(*map(_column, members)), lambda value: value.isNotNull())
                whole[each] = F.when(F.size(there) > 0, there).alias(each)
                of_member |= dict.fromkeys(members, each)
    order = dict.fromkeys(of_member.get(name, name) for name in df.columns)
    ours = [name for name in order if name in whole and name not in arrays]
    given = [name for name in order if name not in ours]
    first = next((i for i, name in enumerate(given) if owner_of(name) is not None), len(given))
    return df.select(*(whole.get(name, _column(name)) for name in (*given[:first], *ours, *given[first:])))


def _members(name: str, count: int | None) -> list[Column]:
    whole = _column(name)
    if count is None:
        return [whole]
    return [F.get(whole, F.lit(i)).cast("double").alias(f"{name}_member_{i + 1}") for i in range(count)]


def _column(name: str) -> Column:
    """A column by its name, in which a dot is a dot."""
    return F.col("`" + name.replace("`", "``") + "`")
