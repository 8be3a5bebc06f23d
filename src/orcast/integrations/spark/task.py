"""What a task does: rows of a series in a micro-batch as events, and the answers to them as rows."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.features import feature_names
from orcast.frame.bounds import bound_number
from orcast.frame.names import ColumnLayout
from orcast.frame.reader import label_texts, read_date
from orcast.frame.statuses import STATUS_TEXTS, Status
from orcast.integrations.spark.games import ANSWERS_AT, Event, Games, RoundColumn, SeriesAnswer, SeriesOptions
from orcast.integrations.spark.plan import SparkPlan, column, one_zero
from orcast.spaces.base import LARGEST
from orcast.validation import short

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


# --- tasks


@dataclass(frozen=True)
class StreamTask:
    """Plays the events of a series in a micro-batch."""

    plan: SparkPlan
    carried: tuple[CarriedColumn, ...]
    id: str
    outcomes: bool
    options: SeriesOptions
    zone: str

    def new(self) -> list[tuple[str, str, T.DataType]]:
        """The columns that are added: on their way, their names, and their types."""
        found: list[tuple[str, T.DataType]] = []
        for form in self.options.forms:
            found += [(out.name, T.DoubleType()) for out in self.plan.outputs(form)]
            types = {"holds": T.BooleanType(), "status": T.StringType()}
            found += [(name, types.get(what, T.DoubleType())) for what, name in form.certificate.items()]
        found += [(EVENT, T.StringType()), (REASON, T.StringType())]
        return [(f"n{i}", name, kind) for i, (name, kind) in enumerate(found)]

    def schema(self) -> T.StructType:
        """What comes out of Python."""
        there = [T.StructField(each.code, each.travels_as) for each in self.carried]
        return T.StructType([*there, *(T.StructField(code, kind) for code, _, kind in self.new())])

    def __call__(self, key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        """The answers to the events of a series; its state is read and written."""
        parts = [frame for frame in frames if len(frame)]
        names = list(parts[0].columns)
        # one array of objects: a frame of few rows and many columns is slow to take apart and to put together
        cells = np.concatenate([frame.to_numpy(dtype=object) for frame in parts])
        reader = _EventReader(self, {name: cells[:, i] for i, name in enumerate(names)}, len(cells))
        before = bytes(state.get[0]) if state.exists else None
        games = Games(self.options, before)
        with warnings.catch_warnings():
            # nobody would see them; the columns have it
            warnings.simplefilter("ignore")
            answers = games.play(reader.events(key if self.plan.layout.series else ()))
        after = games.state()
        if after != before and games.rounds:
            state.update((after,))
        yield self._written(answers, reader.cells)

    def _written(self, answers: list[SeriesAnswer], cells: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
        rows = [answer for answer in answers if answer.event.given is not None or self._reported(answer)]
        places = [answer.event.place for answer in rows]
        columns: list[Any] = [cells[each.code][places] for each in self.carried]
        for number, form in enumerate(self.options.forms):
            width = ANSWERS_AT + len(self.options.shapes[number].outputs)
            table = np.array([answer.numbers(number, width) for answer in rows]).reshape(len(rows), width)
            certificate = {
                "holds": [None if math.isnan(each) else each > 0.0 for each in table[:, RoundColumn.HOLDS].tolist()],
                "promised": table[:, RoundColumn.PROMISED],
                "miscalibration": table[:, RoundColumn.MISCALIBRATION],
                "status": [STATUS_TEXTS[answer.status[number]] for answer in rows],
            }
            columns += [*table[:, ANSWERS_AT:].T, *(certificate[what] for what in form.certificate)]
        columns.append(["outcome" if answer.event.given is None else "forecast" for answer in rows])
        columns.append([answer.reason for answer in rows])
        # all objects, as are the rows of nothing that Spark puts below
        out = np.empty((len(rows), len(columns)), dtype=object)
        for i, values in enumerate(columns):
            out[:, i] = values
        codes = [*(each.code for each in self.carried), *(code for code, _, _ in self.new())]
        return pd.DataFrame(out, columns=codes)

    def _reported(self, answer: SeriesAnswer) -> bool:
        """Whether an outcome gets a row."""
        return self.outcomes or any(status not in (Status.OK, Status.SEEN) for status in answer.status)


class _EventReader:
    """Rows as events."""

    def __init__(self, task: StreamTask, cells: Mapping[str, NDArray[Any]], rows: int) -> None:
        self.task, self.cells, self.rows = task, cells, rows
        self.columns = {each.name: each for each in task.carried}

    def events(self, key: tuple[Any, ...]) -> list[Event]:
        """The events of a series; those that cannot be read have the reason."""
        task, layout = self.task, self.task.plan.layout
        given = [np.column_stack([self.numbers(name) for name in form.columns]) for form in task.options.forms]
        there = np.any([(~np.isnan(each)).any(axis=1) for each in given], axis=0)
        features = self._features()
        times, ids = self.values(str(layout.time), _moment), self.values(task.id, _moment_or_text)
        outcomes = self._outcomes()
        bounds = self._bounds(key)
        events = []
        for row in range(self.rows):
            # nothing but an outcome is an outcome; a row without anything is a forecast that is missing
            y, why = outcomes[row]
            forecast = bool(there[row]) or math.isnan(y)
            event = Event(
                "" if ids[row] is None else str(ids[row]),
                math.nan if times[row] is None else times[row],
                [each[row] for each in given] if forecast else None,
                y,
                features=None if features is None else {name: each[row] for name, each in features.items()},
                order=ids[row],
                place=row,
            )
            event.refused = why or self._refusal(key, event, times[row], ids[row])
            if event.refused is None and forecast:
                event.low, event.high, event.refused = bounds[row]
            events.append(event)
        return events

    def _refusal(self, key: tuple[Any, ...], event: Event, time: Any, id: Any) -> str | None:
        layout = self.task.plan.layout
        for name, value in zip(layout.series, key, strict=True):
            if value is None or value != value:
                return f"expected a series in every event, got none in {name!r}"
        if time is None or (isinstance(time, float) and not math.isfinite(time)):
            return f"expected a time in every event, got {self._raw(str(layout.time), event.place)} in {layout.time!r}"
        if id is None or id != id:
            return f"expected an id in every event, got none in {self.task.id!r}"
        return None

    def _raw(self, name: str, row: int) -> str:
        value = self.cells[self.columns[name].code][row]
        return "none" if value is None or value != value else short(value)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as floats, nan where one is missing."""
        each = self.columns[name]
        values = self.cells[each.code]
        if isinstance(each.kind, (T.DoubleType, T.FloatType)):
            return values.astype(np.float64)
        read = _value(each.kind)
        return np.array([math.nan if _missing(v) else float(read(v)) for v in values.tolist()], dtype=np.float64)

    def values(self, name: str, reader: Callable[[T.DataType], Callable[[Any], Any]]) -> list[Any]:
        """A column as values, None where one is missing or cannot be read."""
        each = self.columns[name]
        read = reader(each.kind)
        found: list[Any] = []
        for value in self.cells[each.code].tolist():
            try:
                found.append(None if _missing(value) else read(value))
            except (OverflowError, TypeError, ValueError):
                found.append(None)
        return found

    def _outcomes(self) -> list[tuple[float, str | None]]:
        name, forms = self.task.plan.layout.y, self.task.options.forms
        labels = next((form.labels for form in forms if form.kind == "labels"), None)
        if labels is None:
            each = self.columns[name]
            if isinstance(each.kind, (T.NumericType, T.BooleanType)):
                return [(value, None) for value in self.numbers(name).tolist()]
            labels = ()
        known = {label: float(i) for i, label in enumerate(labels)}
        found: list[tuple[float, str | None]] = []
        for value in self.values(name, _value):
            place = None if value is None else next((known[text] for text in label_texts(value) if text in known), None)
            why = None
            if value is not None and place is None:
                why = f"expected a label {', '.join(map(repr, labels))} as outcome, got {short(value)}"
            found.append((math.nan if place is None else place, why))
        return found

    def _bounds(self, key: tuple[Any, ...]) -> list[tuple[float, float, str | None]]:
        """The bounds of each row, and what is wrong with them."""
        options = self.task.plan.options
        sides: list[list[float]] = []
        missing: list[str] = []
        for given, name, nothing in ((options.low, "low", -math.inf), (options.high, "high", math.inf)):
            if isinstance(given, str):
                sides.append(self.numbers(given).tolist())
                continue
            side = given
            if isinstance(given, Mapping):
                series = self._series(key)
                side = given.get(series)
                if series not in given:
                    missing.append(f"expected {name} for every series, got none for {series!r}")
            sides.append([bound_number(side, name, nothing)] * self.rows)
        found: list[tuple[float, float, str | None]] = []
        for low, high in zip(*sides, strict=True):
            why = [*missing]
            for given, side in ((options.low, low), (options.high, high)):
                if isinstance(given, str) and not abs(side) <= LARGEST:
                    why.append(f"expected a finite bound in every forecast in {given!r}, got {side}")
            if not low < high:
                why.append(f"expected bounds with low < high, got {low:g} and {high:g}")
            found.append((low, high, why[0] if why else None))
        return found

    def _series(self, key: tuple[Any, ...]) -> Any:
        """The series as bounds name it; as it travelled where Python has no value, as for dates after 9999."""
        found: list[Any] = []
        for name, value in zip(self.task.plan.layout.series, key, strict=True):
            try:
                found.append(None if _missing(value) else self._shown(self.columns[name].kind)(value))
            except (OverflowError, ValueError):
                found.append(value)
        return found[0] if len(found) == 1 else tuple(found) or None

    def _shown(self, kind: T.DataType) -> Callable[[Any], Any]:
        """From what travels to a value as a table has it: dates and times are such."""
        if not isinstance(kind, T.TimestampType):
            return _value(kind)
        stamp = pa.timestamp("us", self.task.zone)
        return lambda text: pa.scalar(int(text), stamp).as_py()

    def _features(self) -> dict[str, list[Any]] | None:
        """The columns that the payoff's contexts look at; all of them, if it has functions."""
        options = self.task.options
        if options.payoff is None:
            return None
        names = sorted(self.columns) if options.functions else feature_names(options.payoff)
        return {name: self.values(name, self._shown) for name in names} or None


def _value(kind: T.DataType) -> Callable[[Any], Any]:
    """From what travels to a value; times with a zone are numbers."""
    if isinstance(kind, T.IntegralType | T.TimestampType):
        return int
    if isinstance(kind, T.NumericType):
        return float
    if isinstance(kind, T.TimestampNTZType):
        return datetime.datetime.fromisoformat
    if isinstance(kind, T.DateType):
        return datetime.date.fromisoformat
    return bool if isinstance(kind, T.BooleanType) else lambda value: value


def _moment(kind: T.DataType) -> Callable[[Any], Any]:
    """From what travels to a time that sorts."""
    if isinstance(kind, T.DateType):
        return lambda text: datetime.date.fromisoformat(text).toordinal()
    if isinstance(kind, (T.StringType, T.TimestampNTZType)):
        return lambda text: read_date(text)[1]
    return _value(kind)


def _moment_or_text(kind: T.DataType) -> Callable[[Any], Any]:
    """From what travels to an id that sorts."""
    if isinstance(kind, T.DecimalType):
        return decimal.Decimal  # a float would take two for one
    return str if isinstance(kind, T.StringType) else _moment(kind)


def _missing(value: Any) -> bool:
    return value is None or value != value or value is pd.NA
