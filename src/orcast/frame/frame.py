"""Data frames at the edge: columns as arrays, whatever frame they come in, and new columns beside the old ones."""

from __future__ import annotations

import datetime
import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.frame.long_tables import Spread, find_long, spread
from orcast.frame.outcome_tables import joined
from orcast.serialise import plain_id
from orcast.validation import short

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# The name under which an index of dates without a name is read.
INDEX = "index"
EPOCH = datetime.datetime(1970, 1, 1)
# Microseconds from the epoch that nanoseconds in 64 bits can tell: the years 1678 to 2262.
FARTHEST = 2**63 // 1000 - 1


@dataclass(frozen=True)
class Times:
    """Times as numbers that sort: nanoseconds for dates, else the numbers themselves.

    ``kind`` is "dates", "dates with a zone", "whole numbers", "numbers", "durations" or "places" (where there is no
    column of times, the rows of a series are counted).
    """

    kind: str
    values: NDArray[Any]

    def show(self, value: Any) -> str:
        """One of them as text."""
        return show_time(self.kind, value)


def show_time(kind: str, value: Any) -> str:
    """A time as text, by the kind of its column.

    >>> show_time("dates", 1_577_836_800_000_000_000), show_time("whole numbers", 7)
    ('2020-01-01', '7')
    """
    if kind.startswith("dates"):
        text = str(np.datetime64(int(value), "ns"))
        head, _, tail = text.partition("T")
        return head if set(tail) <= set("0:.") else f"{head} {tail.rstrip('0').rstrip('.')}"
    if kind == "durations":
        return str(np.timedelta64(int(value), "ns"))
    return f"{float(value):g}" if kind == "numbers" else str(int(value))


class Frame:
    """A frame to be read; the levels of a pandas index that have a name count as columns.

    Long tables are spread to a row for each forecast, and the outcomes of ``target``, a frame of their own, are put
    beside the forecasts; ``y`` and ``time`` may name its columns.  ``roles`` are the columns whose role is known from
    more than their names, ``assumed`` sentences on assumptions.
    """

    def __init__(self, native: Any, target: Any = None, *, y: Any = None, time: Any = None) -> None:
        try:
            given = nw.from_native(native, pass_through=True)
            self._lazy = isinstance(given, nw.LazyFrame)
            self.table: Any = nw.from_native(given.collect() if self._lazy else native, eager_only=True)
        except TypeError:
            raise TypeError(
                f"expected a data frame, such as one of pandas or polars, got {type(native).__name__}"
            ) from None
        except nw.exceptions.DuplicateError as reason:
            twice = str(reason).partition("- ")[2].partition("\n")[0].rpartition(" 2 times")[0] or "one"
            raise ValueError(f"expected columns of different names, got {twice} more than once") from None
        self.wrapped = isinstance(native, nw.DataFrame | nw.LazyFrame)
        self.rows = len(self.table)
        self.reading: Any = self.table
        self.dated = False  # whether there is an index of dates without a name
        self.roles: dict[str, Any] = {}
        self.assumed: tuple[str, ...] = ()
        if self.table.implementation.is_pandas_like():
            self._read_index()
        self.spread: Spread | None = None
        long = find_long(self)
        if long is not None:
            self._take(spread(self, long))
        self._outcomes: dict[Any, Array] = {}
        self.published = False  # whether outcomes come in versions that were published at several times
        if target is not None:
            brought = target if isinstance(target, Frame) else Frame(target)
            versions = [name for name in brought.reading.columns if str(name).lower() == "as_of"]
            self.published = any(brought.column(name).n_unique() > 1 for name in versions)
            name, values = joined(self, brought, y, time)
            self._outcomes = {name: values}
            self.reading = self.extended(self.reading, {name: values})
            self.roles["y"] = name

    def _take(self, found: Spread) -> None:
        """Read a long table as a wide one."""
        self.spread, self.reading, self.rows, self.dated = found, found.wide, len(found.wide), False
        self.roles |= found.roles
        self.assumed += found.assumed

    def _read_index(self) -> None:
        native = self.table.to_native()
        index, known = native.index, set(self.table.columns)
        levels: dict[str, Any] = {}
        for place, name in enumerate(index.names):
            if name is not None and name not in known:
                levels[name] = index.get_level_values(place)
        if index.nlevels == 1 and index.names[0] is None and INDEX not in known:
            self.dated = type(index).__name__ in ("DatetimeIndex", "PeriodIndex", "TimedeltaIndex")
            if self.dated:
                levels[INDEX] = index
        if levels:
            pandas = nw.get_native_namespace(self.table)
            added = [pandas.Series(values, index=index, name=name) for name, values in levels.items()]
            self.reading = self.table.with_columns(nw.from_native(each, series_only=True) for each in added)

    @property
    def searched(self) -> Any:
        """What to look for columns in; an index without a name is not one of them."""
        return self.reading.drop(INDEX) if self.dated else self.reading

    def column(self, name: Any) -> Any:
        """A column as a narwhals series."""
        return self.reading.get_column(name)

    # --- reading
    def numbers(self, name: Any) -> Array:
        """A column as floats, nan where one is missing; or one clear sentence."""
        column = self.column(name)
        # not every frame rounds a decimal to the nearest float when it is cast; Python does
        if (column.dtype.is_numeric() and column.dtype != nw.Decimal) or column.dtype == nw.Boolean:
            return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        values = column.to_list()
        missing = column.is_null().to_numpy()
        out = np.full(len(values), np.nan)
        for row in np.flatnonzero(~missing).tolist():
            value = values[row]
            try:
                if isinstance(value, (str, bytes)):
                    raise TypeError
                out[row] = float(value)
            except (TypeError, ValueError, OverflowError):
                raise TypeError(f"expected numbers in column {name!r}, got {short(value)} in row {row}") from None
        return out

    def holds_numbers(self, name: Any) -> bool:
        """Whether a column's values are numbers or booleans, also where its type does not say so."""
        column = self.column(name)
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            return True
        if column.dtype not in (nw.Object, nw.String, nw.Unknown):
            return False
        kinds = set(map(type, column.to_list()))
        return all(issubclass(kind, (bool, int, float, np.number, np.bool_, type(None))) for kind in kinds)

    def complete(self, name: Any, what: str) -> list[Any]:
        """A column as Python values, none of which is missing."""
        column = self.column(name)
        missing = np.asarray(column.is_null().to_numpy(), dtype=bool)
        if column.dtype.is_float():
            missing = missing | np.isnan(column.cast(nw.Float64).to_numpy())
        if missing.any():
            raise ValueError(f"expected a {what} in every row of {name!r}, got none in row {int(missing.argmax())}")
        values: list[Any] = column.to_list()
        return values

    def keys(self, names: Sequence[Any]) -> tuple[Codes, list[Hashable]]:
        """Which series each row belongs to, and their keys in an order that the rows do not change.

        The key is the value of the one column, a tuple of those of several, or None where there is no column.
        """
        if not names:
            return np.zeros(self.rows, dtype=np.intp), [None]
        columns = [self.complete(name, "series") for name in names]
        values: Iterable[Any] = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        rows = list(values)
        try:
            found = {key: plain_id(_plain(key)) for key in dict.fromkeys(rows)}
        except TypeError as reason:
            if str(reason).startswith("expected"):
                raise
            raise TypeError(f"expected names, numbers or dates as series, got {_unhashable(rows)}") from None
        order = sorted(found, key=lambda key: json.dumps(found[key]))
        place = {key: i for i, key in enumerate(order)}
        codes = np.fromiter(map(place.__getitem__, rows), dtype=np.intp, count=len(rows))
        return codes, [_plain(key) for key in order]

    def times(self, name: Any, what: str = "time") -> Times:
        """A column as times that sort."""
        column = self.column(name)
        kind = column.dtype
        missing = np.asarray(column.is_null().to_numpy(), dtype=bool)
        if missing.any():
            raise ValueError(f"expected a {what} in every row of {name!r}, got none in row {int(missing.argmax())}")
        if kind == nw.Date:
            return Times("dates", _nanoseconds(column.cast(nw.Datetime("us")).dt.timestamp("us").to_numpy(), name))
        if kind == nw.Datetime:
            zone = "dates with a zone" if kind.time_zone else "dates"
            if kind.time_unit == "ns":
                return Times(zone, np.asarray(column.dt.timestamp("ns").to_numpy(), dtype=np.int64))
            return Times(zone, _nanoseconds(column.dt.timestamp("us").to_numpy(), name))
        if kind == nw.Duration:
            return Times("durations", np.asarray(column.dt.total_nanoseconds().to_numpy(), dtype=np.int64))
        if kind.is_integer():
            return Times("whole numbers", np.asarray(column.cast(nw.Int64).to_numpy(), dtype=np.int64))
        if kind.is_numeric():
            values = self.numbers(name)
            bad = ~np.isfinite(values)
            if bad.any():
                row = int(bad.argmax())
                raise ValueError(f"expected a finite {what} in every row of {name!r}, got {values[row]} in row {row}")
            return Times("numbers", values + 0.0)  # there is one zero
        return _parsed(column.to_list(), name, what)

    def times_if_any(self, name: Any, what: str) -> tuple[Times, NDArray[np.bool_]]:
        """A column as times that sort, 0 where one is missing, and whether it is there."""
        column = self.column(name)
        there = ~np.asarray(column.is_null().to_numpy(), dtype=bool)
        if column.dtype.is_float():
            there &= ~np.isnan(column.cast(nw.Float64).to_numpy())
        if there.all():
            return self.times(name, what), there
        part = Frame.__new__(Frame)
        part.reading = self.reading.filter(there.tolist())
        found = part.times(name, what)
        values = np.zeros(len(there), dtype=found.values.dtype)
        values[there] = found.values
        return Times(found.kind, values), there

    # --- writing
    def with_columns(self, new: dict[Any, NDArray[Any]], *, without: Iterable[Any] = ()) -> Any:
        """The frame as it came, less some columns, and with others in their place or at its end.

        Floats are missing where they are nan, whole numbers are booleans (missing where negative), objects are text.
        The new columns are taken out of their dict, so that large ones are not there twice for long.
        """
        table = self.table
        gone = [name for name in without if name in set(table.columns) and name not in new]
        if gone:
            table = table.drop(gone)
        if self._outcomes:
            new = self._outcomes | new
        if self.spread is not None:
            new = self.spread.gathered(new)
        table = self.extended(table, new)
        table = table.lazy() if self._lazy and table.implementation.is_polars() else table
        return table if self.wrapped else table.to_native()

    def picked(self, rows: Codes, names: Sequence[Any]) -> Any:
        """Some rows and columns of what is read, in a frame of its own."""
        part = self.reading.select(list(names))[rows.tolist()]
        if part.implementation.is_pandas_like():
            return nw.from_native(part.to_native().reset_index(drop=True), eager_only=True)
        return part

    def extended(self, table: Any, new: dict[Any, NDArray[Any]]) -> Any:
        """Table with more columns, which are taken out of their dict."""
        return table.with_columns([self._series(table, name, new.pop(name)) for name in list(new)])

    def _series(self, table: Any, name: str, values: NDArray[Any]) -> Any:
        backend = table.implementation
        if values.dtype.kind == "M":
            return nw.new_series(name, values, nw.Datetime("ns"), backend=backend)
        if values.dtype.kind == "f":
            series = nw.new_series(name, values, nw.Float64, backend=backend)
            return series if backend.is_pandas_like() else series.fill_nan(None)
        if values.dtype.kind == "O":
            return nw.new_series(name, values.tolist(), nw.String, backend=backend)
        missing = values < 0
        if not backend.is_pandas_like():
            series = nw.new_series(name, values > 0, nw.Boolean, backend=backend)
            if not missing.any():
                return series
            return series.to_frame().select(
                nw.when(nw.new_series("there", ~missing, nw.Boolean, backend=backend)).then(nw.col(name)).alias(name)
            )[name]
        pandas = nw.get_native_namespace(table)
        # plain booleans of pandas cannot be missing
        native = pandas.Series(pandas.arrays.BooleanArray(values > 0, missing), name=name, copy=False)
        native.index = table.to_native().index
        return nw.from_native(native, series_only=True)


def _unhashable(values: list[Any]) -> str:
    """What cannot be a key among some values."""
    for value in values:
        try:
            hash(value)
        except TypeError:
            return short(value)
    return short(values)


def _plain(key: Any) -> Any:
    """A key as a plain Python value, the same whatever frame it comes from."""
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    if isinstance(key, np.timedelta64 | datetime.timedelta):
        return f"{key / np.timedelta64(1, 'h') if isinstance(key, np.timedelta64) else key.total_seconds() / 3600:g} h"
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, datetime.datetime) and hasattr(key, "to_pydatetime"):
        return key.to_pydatetime(warn=False)
    return key


def _nanoseconds(microseconds: Any, name: Any) -> NDArray[np.int64]:
    values = np.asarray(microseconds, dtype=np.int64)
    far = np.abs(values) > FARTHEST
    if far.any():
        row = int(far.argmax())
        raise ValueError(
            f"expected dates from 1678 to 2262 in {name!r}, got {np.datetime64(int(values[row]), 'us')} in row {row}"
        )
    return values * 1000


def _parsed(values: list[Any], name: Any, what: str) -> Times:
    """Times from objects: dates, periods, or text as ISO 8601 has it."""
    known: dict[Any, tuple[str, int]] = {}
    out = np.empty(len(values), dtype=np.int64)
    kinds: dict[str, int] = {}
    for row, value in enumerate(values):
        try:
            if value not in known:
                known[value] = read_date(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"expected a {what} as dates, numbers, or text such as '2024-01-31' in {name!r}, "
                f"got {short(value)} in row {row}"
            ) from None
        kind, out[row] = known[value]
        kinds.setdefault(kind, row)
    if len(kinds) > 1:
        raise ValueError(f"expected dates with a zone or without in {name!r}, got both, in rows {[*kinds.values()]}")
    return Times(next(iter(kinds), "dates"), _nanoseconds(out, name))


def read_date(value: Any) -> tuple[str, int]:
    """What kind of date it is, and microseconds since 1970."""
    value = getattr(value, "start_time", value)  # of a period of pandas
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    elif isinstance(value, np.datetime64):
        return "dates", int(value.astype("datetime64[us]").astype(np.int64))
    elif isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise TypeError
    if value.tzinfo is None:
        since, kind = value - EPOCH, "dates"
    else:
        since, kind = value - EPOCH.replace(tzinfo=datetime.UTC), "dates with a zone"
    return kind, since // datetime.timedelta(microseconds=1)
