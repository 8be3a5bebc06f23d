"""Data frames at the edge: the columns of a frame, found and read as arrays, and new columns beside the old ones."""

from __future__ import annotations

import datetime
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.frame.names import TIME, ColumnLayout, Form, find, listed, rows_text
from orcast.frame.outcomes import OutcomeTable, outcomes_beside
from orcast.serialise import plain_id
from orcast.validation import row_name, short

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

EPOCH = datetime.datetime(1970, 1, 1)
# Microseconds from the epoch that nanoseconds in 64 bits can tell: the years 1678 to 2262.
FARTHEST = 2**63 // 1000 - 1
NUMBERS = (bool, int, float, np.number, np.bool_)


@dataclass(frozen=True)
class Times:
    """Times as whole numbers: nanoseconds for dates, else the numbers themselves."""

    kind: str  # "dates", "dates with a zone", "whole numbers", or "places" of rows in their series without a column
    values: NDArray[np.int64]
    offset: NDArray[np.int64] | None = None  # local time minus UTC, where a zone is given


class Frame:
    """A frame to be read; the levels of a pandas index that have a name, or dates, count as columns.

    The outcomes of ``target``, a frame of their own, are put beside the forecasts; ``y`` and ``time`` may name its
    columns.
    """

    def __init__(self, native: Any, target: Any = None, *, y: Any = None, time: Any = None) -> None:
        try:
            given = nw.from_native(native, pass_through=True)
            self._lazy = isinstance(given, nw.LazyFrame)
            self.table: Any = nw.from_native(given.collect() if self._lazy else native, eager_only=True)
        except TypeError:
            found = type(native).__name__
            raise TypeError(f"expected a data frame, such as one of pandas or polars, got {found}") from None
        except nw.exceptions.DuplicateError:
            raise ValueError("expected columns of different names, got one more than once") from None
        self.wrapped = isinstance(native, nw.DataFrame | nw.LazyFrame)
        self.rows = len(self.table)
        self.reading: Any = self.table
        if self.table.implementation.is_pandas_like():
            self._read_index()
        self.outcomes: OutcomeTable | None = None
        if target is not None:
            brought = target if isinstance(target, Frame) else Frame(target)
            table = self.outcomes = outcomes_beside(self, brought, y, time)
            self.reading = extended(self.reading, {table.name: table.values})

    def _read_index(self) -> None:
        native, known = self.table.to_native(), set(self.table.columns)
        dates = type(native.index).__name__ in ("DatetimeIndex", "PeriodIndex") and native.index.name is None
        if dates and not known & {*TIME}:
            native = native.rename_axis("time")
        named = [name for name in native.index.names if name is not None and name not in known]
        if named:
            self.reading = nw.from_native(native.reset_index(level=named), eager_only=True)

    def column(self, name: Any) -> Any:
        """A column as a narwhals series."""
        return self.reading.get_column(name)

    # --- reading
    def numbers(self, name: Any) -> Array:
        """A column as floats, nan where one is missing."""
        column = self.column(name)
        if not self.holds_numbers(name):
            raise TypeError(f"expected numbers in column {name!r}, got {_wrong_value(column)}")
        # not every frame rounds a decimal to the nearest float when it is cast; Python does
        if column.dtype == nw.Boolean or (column.dtype.is_numeric() and column.dtype != nw.Decimal):
            return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        try:
            return np.array([np.nan if value is None else float(value) for value in column.to_list()])
        except OverflowError:
            raise TypeError(f"expected numbers in column {name!r}, got one too large for double precision") from None

    def holds_numbers(self, name: Any) -> bool:
        """True if a column's values are numbers or booleans, whatever its type."""
        column = self.column(name)
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            return True
        if column.dtype not in (nw.Object, nw.String, nw.Unknown):
            return False
        return all(issubclass(kind, (*NUMBERS, type(None))) for kind in set(map(type, column.to_list())))

    def holds_events(self, name: Any) -> bool:
        """True if a column's values are 0 and 1, or false and true."""
        values = self.numbers(name) if self.holds_numbers(name) else np.empty(0)
        there = values[~np.isnan(values)]
        return len(there) > 0 and bool(np.isin(there, (0.0, 1.0)).all())

    def missing(self, name: Any) -> NDArray[np.bool_]:
        """Mask of the rows without a value."""
        column = self.column(name)
        found = np.asarray(column.is_null().to_numpy(), dtype=bool)
        return found | np.isnan(self.numbers(name)) if column.dtype.is_float() else found

    def _complete(self, name: Any, what: str) -> Any:
        """A column without missing values."""
        rows = np.flatnonzero(self.missing(name))
        if len(rows):
            found = f"none in {rows_text(rows)}: drop these rows, or fill it in"
            raise ValueError(f"expected a {what} in every row of {name!r}, got {found}")
        return self.column(name)

    def keys(self, names: Sequence[Any]) -> tuple[Codes, list[Hashable]]:
        """Number of each row's series, and keys of the series (None without a column), in an order of their own."""
        if not names:
            return np.zeros(self.rows, dtype=np.intp), [None]
        columns = [self._complete(name, "series").to_list() for name in names]
        rows: list[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        try:
            found = {key: json.dumps(plain_id(_plain(key))) for key in dict.fromkeys(rows)}
        except TypeError as reason:
            if str(reason).startswith("expected"):
                raise
            wrong = next((key for key in rows if not isinstance(key, Hashable)), rows[0])
            raise TypeError(f"expected names, numbers or dates as series, got {short(wrong)}") from None
        order = sorted(found, key=found.__getitem__)
        place = {key: i for i, key in enumerate(order)}
        codes = np.fromiter(map(place.__getitem__, rows), dtype=np.intp, count=len(rows))
        return codes, [_plain(key) for key in order]

    def times(self, name: Any, what: str = "time", rows: NDArray[np.bool_] | None = None) -> Times:
        """A column as times that sort; of some rows alone, where others may have none."""
        column = self._complete(name, what) if rows is None else self.column(name).filter(rows.tolist())
        return _times(column, name, what)

    # --- writing
    def with_columns(self, new: dict[Any, NDArray[Any]], *, without: Iterable[Any] = ()) -> Any:
        """The frame as it came, less some columns, and with others in their place or at its end.

        Floats are missing where they are nan, whole numbers are booleans (missing where negative), objects are text.
        The new columns are taken out of their dict, so that large ones are not there twice for long.
        """
        table = self.table
        if without := set(without) - set(new):
            table = table.drop(without, strict=False)
        if self.outcomes is not None:
            new = {self.outcomes.name: self.outcomes.values, **new}
        table = extended(table, new)
        table = table.lazy() if self._lazy and table.implementation.is_polars() else table
        return table if self.wrapped else table.to_native()

    def made(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Make a new frame of the same type."""
        table = nw.from_dict(columns, backend=self.table.implementation)
        return table if self.wrapped else table.to_native()


def extended(table: Any, new: dict[Any, NDArray[Any]]) -> Any:
    """Table with more columns, which are taken out of their dict."""
    return table.with_columns([_series(table, name, new.pop(name)) for name in list(new)])


def _series(table: Any, name: str, values: NDArray[Any]) -> Any:
    backend = table.implementation
    if values.dtype.kind == "M":
        return nw.new_series(name, values, nw.Datetime("ns"), backend=backend)
    if values.dtype.kind == "f":
        series = nw.new_series(name, values, nw.Float64, backend=backend)
        return series if backend.is_pandas_like() else series.fill_nan(None)
    if values.dtype.kind == "O":
        return nw.new_series(name, values.tolist(), nw.String, backend=backend)
    missing = values < 0
    if backend.is_pandas_like():
        pandas = nw.get_native_namespace(table)
        # plain booleans of pandas cannot be missing
        native = pandas.Series(pandas.arrays.BooleanArray(values > 0, missing), name=name, copy=False)
        native.index = table.to_native().index
        return nw.from_native(native, series_only=True)
    found = (values > 0).astype(object)
    found[missing] = None
    return nw.new_series(name, found.tolist(), nw.Boolean, backend=backend)


def _plain(key: Any) -> Any:
    """A key as a plain Python value, the same from any frame."""
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    if isinstance(key, np.timedelta64 | datetime.timedelta):
        return f"{key / np.timedelta64(1, 'h') if isinstance(key, np.timedelta64) else key.total_seconds() / 3600:g} h"
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, datetime.datetime) and hasattr(key, "to_pydatetime"):
        return key.to_pydatetime(warn=False)
    return key


# --- times


def _times(column: Any, name: Any, what: str) -> Times:
    if column.dtype == nw.Date:
        column = column.cast(nw.Datetime("us"))
    kind = column.dtype
    if kind == nw.Datetime:
        zone = "dates with a zone" if kind.time_zone else "dates"
        if kind.time_unit == "ns":
            found = np.asarray(column.dt.timestamp("ns").to_numpy(), dtype=np.int64)
        else:
            found = _nanoseconds(column.dt.timestamp("us").to_numpy(), name)
        if kind.time_zone in (None, "UTC"):
            return Times(zone, found)
        local = column.dt.replace_time_zone(None).dt.timestamp("us").to_numpy()
        return Times(zone, found, np.asarray(local, dtype=np.int64) * 1000 - found // 1000 * 1000)
    if kind.is_integer():
        return Times("whole numbers", np.asarray(column.cast(nw.Int64).to_numpy(), dtype=np.int64))
    if kind.is_numeric():
        values = np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        bad = ~((values == np.floor(values)) & (np.abs(values) < 2.0**62))
        if bad.any():
            where = f"{values[bad][0]} in {row_name(int(bad.argmax()))}"
            raise ValueError(f"expected a {what} as a date or a whole number in {name!r}, got {where}")
        return Times("whole numbers", values.astype(np.int64))
    return _parsed(column.to_list(), name, what)


def _nanoseconds(microseconds: Any, name: Any) -> NDArray[np.int64]:
    values = np.asarray(microseconds, dtype=np.int64)
    far = np.abs(values) > FARTHEST
    if far.any():
        found = np.datetime64(int(values[far][0]), "us")
        raise ValueError(f"expected dates from 1678 to 2262 in {name!r}, got {found} in {row_name(int(far.argmax()))}")
    return values * 1000


def _parsed(values: list[Any], name: Any, what: str) -> Times:
    """Times from objects: dates, periods, or text as ISO 8601 has it."""
    known: dict[Any, tuple[str, int, int]] = {}
    out, offset = np.empty((2, len(values)), dtype=np.int64)
    kinds: dict[str, int] = {}
    for row, value in enumerate(values):
        try:
            if value not in known:
                known[value] = _read_date(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"expected a {what} as dates, numbers, or text such as '2024-01-31' in {name!r}, "
                f"got {short(value)} in {row_name(row)}"
            ) from None
        kind, out[row], offset[row] = known[value]
        kinds.setdefault(kind, row)
    if len(kinds) > 1:
        raise ValueError(f"expected dates with a zone or without in {name!r}, got both, in {row_name(*kinds.values())}")
    return Times(next(iter(kinds), "dates"), _nanoseconds(out, name), 1000 * offset if offset.any() else None)


def _read_date(value: Any) -> tuple[str, int, int]:
    """Kind of a date, its microseconds since 1970, and those of the local time minus UTC."""
    value = getattr(value, "start_time", value)  # of a period of pandas
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    elif isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise TypeError
    unit, offset = datetime.timedelta(microseconds=1), value.utcoffset()
    if offset is None:
        return "dates", (value - EPOCH) // unit, 0
    return "dates with a zone", (value - EPOCH.replace(tzinfo=datetime.UTC)) // unit, offset // unit


# --- the columns of a frame


def find_in(frame: Any, *, model: Any = None, pending: bool = False, **names: Any) -> ColumnLayout:
    """Find the columns of a data frame by their names and contents (`orcast.frame.names.find`)."""
    table = frame if isinstance(frame, Frame) else Frame(frame)
    schema = table.reading.schema
    if table.outcomes is not None and names.get("y") is None:
        names["y"] = table.outcomes.name
    loose = (nw.Object, nw.Unknown)
    numeric = [c for c, kind in schema.items() if kind.is_numeric() or (kind in loose and table.holds_numbers(c))]
    # a hub's column of that name tells what is forecast
    about = "target" in schema and not schema["target"].is_numeric() and "target_end_date" in schema
    named_so = {*(names.get("series") or ()), names.get("y")}
    aside = "target" if about and "target" not in named_so else None
    return find(
        [name for name in schema if name != aside],
        numeric=numeric,
        model=model,
        pending=pending,
        is_event=table.holds_events,
        **names,
    )


def _wrong_value(column: Any) -> str:
    """The first value of a column that is no number, and its row."""
    for row, value in enumerate(column.to_list()):
        if value is not None and value == value and not isinstance(value, NUMBERS):
            return f"{'text ' if isinstance(value, str) else ''}{short(value)} in {row_name(row)}"
    return f"a column of type {column.dtype}"


def outcomes_of(frame: Frame, column: Any, form: Form) -> Array:
    """Outcomes as forecasts of a form have them; nan where there is none yet, or no column."""
    if column is None:
        return np.full(frame.rows, np.nan)
    if form.labels is not None:
        places = label_places(frame.column(column), form.labels)
        return np.where(places >= 0, places.astype(np.float64), np.nan)
    values = frame.numbers(column)
    if form.kind == "binary":
        wrong = np.flatnonzero(~np.isnan(values) & (values != 0.0) & (values != 1.0))
        if len(wrong):
            found = f"{values[wrong[0]]:g} in {row_name(int(wrong[0]))}"
            raise ValueError(f"expected outcomes 0 or 1 in column {column!r}, got {found}")
    return values


def label_places(column: Any, labels: Sequence[str]) -> NDArray[np.intp]:
    """Place of each outcome (text, whole number, true or false) among the labels, -1 where there is none yet."""
    values = nw.from_native(column, series_only=True).to_list()
    known: dict[Any, int] = {None: -1}
    for row, value in enumerate(values):
        if value not in known:
            texts = [str(value), str(value).lower()]
            if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
                texts.append(str(int(value)))
            place = next((labels.index(text) for text in texts if text in labels), -1)
            if place < 0 and value == value:
                where = f"{value!r} in {row_name(row)}"
                raise ValueError(f"expected a label {listed(labels, 'or')} as outcome, got {where}")
            known[value] = place
    return np.array([known[value] for value in values], dtype=np.intp)
