"""Structured Streaming: forecasts and outcomes as they come, a game for each series in the state of the query."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.integrations.spark.games import (
    ANSWERS_AT,
    Event,
    Games,
    RoundColumn,
    SeriesAnswer,
    SeriesOptions,
    mark_of,
)
from orcast.integrations.spark.plan import SparkPlan, column, empty, one_zero, plan_of
from orcast.panel.bounds import bound_number, space_between
from orcast.panel.columns import SERIES, ColumnLayout, label_texts
from orcast.panel.experts import ForecastShape
from orcast.panel.frame import read_date
from orcast.panel.frame_run import MAX_PENDING, FrameOptions, feature_names
from orcast.panel.statuses import STATUS_TEXTS, Status
from orcast.payoffs import Payoff
from orcast.spaces.base import LARGEST, whole
from orcast.validation import short

# Columns of every event, beside those of the models.
EVENT, REASON = "orcast_event", "orcast_reason"
STATE = T.StructType([T.StructField("games", T.BinaryType())])


def recalibrate_stream(
    df: DataFrame,
    *,
    y: Any = None,
    model: Any = None,
    series: Any = None,
    time: Any = None,
    id: Any = None,
    low: Any = None,
    high: Any = None,
    levels: ArrayLike | None = None,
    payoff: Payoff | None = None,
    outside: str = "report",
    outcomes: bool = False,
    max_pending: int = MAX_PENDING,
    remember: int = 20,
) -> DataFrame:
    """Recalibrate forecasts of a stream of events: each is answered at once, and learnt from when its outcome comes.

    A row of the stream is a forecast, with ``id``; or an outcome, ``y`` with the id of its forecast and nothing in the
    columns of forecasts; or both.  Series, time, outcome and forecasts are found as :func:`orcast.recalibrate` finds
    them, but a column named ``id`` is the id, and the series only if ``series`` names it; without one the time is the
    id.  Each series and model has a game of its own, kept in the state of the query, so a query that was stopped or
    killed goes on from its checkpoint, bit for bit.

    **Out** comes a row for each forecast, with its own columns and those of :func:`orcast.recalibrate`, and
    ``orcast_event`` ("forecast" or "outcome") and ``orcast_reason``.  With ``outcomes=True`` there is a row for each
    outcome too; without it, for those alone that were not used.  Statuses beside those of `orcast.recalibrate`:
    "seen", the forecast was answered before, and is answered as it was; or the outcome was used before;
    "corrected", it was used with another value, which stays; "unknown", an outcome whose forecast is not known;
    "late", a forecast no later than one that is forgotten; "refused", it makes no sense, as ``orcast_reason`` says.
    A bad event changes nothing and never ends the query.  All models of an id have their forecasts in one row.

    **Order.**  The events of a series in one micro-batch are played by time, forecasts before outcomes, then by id,
    wherever they stood; a row with both is a forecast and right after it its outcome.  Micro-batches are played as they
    come.  So events that come in the order of time are answered the same however they are cut into batches, and rows
    with both get what `orcast.recalibrate` gives for the whole table.

    **State.**  A series' game takes a few kilobytes, and each pending forecast some more.  At most ``max_pending``
    forecasts of a series and model are pending, then the oldest is given up ("lost"); the last ``remember`` that are
    over are remembered, to answer what is repeated.  Nothing is counted twice even after that: what may be a repeat is
    "late" or "unknown".  For horizons with games of their own name them too, ``series=["unique_id", "horizon"]``.

        events = spark.readStream.schema(schema).parquet("events")
        query = recalibrate_stream(events, low=0).writeStream.option("checkpointLocation", "games") ...
    """
    if outside not in ("report", "clip"):
        raise ValueError(f"expected outside='report' or 'clip' for a stream, got {outside!r}")
    most, kept = whole(max_pending, "max_pending", 1, 10**6), whole(remember, "rounds to remember", 1, 10**6)
    names = {"y": y, "series": series, "time": time}
    stream = QueryOptions(id, bool(outcomes), most, kept)
    task = task_of(df, names, model, FrameOptions(low, high, levels, payoff, outside), stream)
    layout, carried = task.plan.layout, task.carried
    keys = [_encoded(name, df.schema[name].dataType).alias(f"k{i}") for i, name in enumerate(layout.series)]
    if not keys:
        keys = [F.lit("").alias("k0")]
    rows = df.select(*keys, *(_encoded(each.name, each.kind).alias(each.code) for each in carried))
    after = task.schema()
    grouped = rows.groupBy(*(f"k{i}" for i in range(len(keys))))
    played = grouped.applyInPandasWithState(task, after, STATE, "append", "NoTimeout")
    back = [_decoded(each).alias(each.name) for each in carried]
    return played.select(*back, *(F.col(code).alias(name) for code, name, _ in task.new()))


class QueryOptions(NamedTuple):
    """Options of a stream alone: the column of ids, whether outcomes are answered, and what is kept."""

    id: Any = None
    outcomes: bool = False
    max_pending: int = MAX_PENDING
    remember: int = 20


def task_of(df: Any, names: Mapping[str, Any], model: Any, options: FrameOptions, stream: QueryOptions) -> StreamTask:
    """What tasks do with the events of a stream, after its columns were found and its options checked."""
    if hasattr(df, "isStreaming") and not df.isStreaming:
        raise ValueError("expected a stream, got a table, which recalibrate takes")
    own = _own_id(stream.id, names, getattr(df, "columns", []))
    # a name such as `id` is one for series too
    hidden = own if own is not None and own.lower() in SERIES and own not in _given(names) else None
    plan = plan_of(df, names, model, options, hidden)
    layout = plan.layout
    if layout.cutoff is not None and names["time"] is None:
        raise ValueError(
            f"expected time= with the column that says when each event happened, got none beside cutoffs in "
            f"{layout.cutoff!r}"
        )
    if layout.horizon is not None:
        raise ValueError(
            f"expected a game for each horizon by series={[*layout.series, layout.horizon]!r}, got horizons in "
            f"{layout.horizon!r} that no game would know (rename the column if it holds none)"
        )
    plan.play(empty(df.schema))  # refuses wrong options
    _check_bounds(plan, df.schema)
    key = str(layout.time) if own is None else own
    series = _series_options(plan, df.schema, key, stream)
    keys = tuple(f"k{i}" for i in range(len(layout.series)))
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    return StreamTask(plan, tuple(_carried(df, layout)), key, keys, stream.outcomes, series, str(zone))


def _own_id(id: Any, names: Mapping[str, Any], columns: list[str]) -> str | None:
    """The column of ids, which is settled before others are found; None if there is none but the time."""
    if id is None:
        return next((name for name in columns if str(name).lower() == "id" and name not in _given(names)), None)
    if id not in columns:
        raise ValueError(f"expected id= with the name of a column, got {id!r}")
    return str(id)


def _given(names: Mapping[str, Any]) -> list[Any]:
    """The columns that were named."""
    found: list[Any] = []
    for name in names.values():
        found += [name] if name is None or isinstance(name, str) or not isinstance(name, Iterable) else list(name)
    return found


def _check_bounds(plan: SparkPlan, schema: T.StructType) -> None:
    """Bounds by series or in columns, of which an empty table says nothing."""
    sides = [plan.options.low, plan.options.high]
    for side in sides:
        if isinstance(side, str) and not isinstance(schema[side].dataType, (T.NumericType, T.BooleanType)):
            raise TypeError(f"expected numbers in column {side!r}, got {schema[side].dataType.simpleString()}")
    if any(isinstance(side, str) for side in sides):
        return
    series = {key: None for side in sides if isinstance(side, Mapping) for key in side} or {None: None}
    ends: dict[tuple[float, float], Any] = {}
    for key in series:
        if all(not isinstance(side, Mapping) or key in side for side in sides):
            low, high = (side[key] if isinstance(side, Mapping) else side for side in sides)
            ends.setdefault((bound_number(low, "low", -math.inf), bound_number(high, "high", math.inf)), key)
    for (low, high), key in ends.items():
        whose = "" if key is None else f" for series {key!r}"
        if not low < high:
            raise ValueError(f"expected bounds with low < high, got {low:g} and {high:g}{whose}")
        space_between(low, high, False)


# --- columns on their way to Python and back


@dataclass(frozen=True)
class _Column:
    """A column on its way: pandas would make floats of whole numbers with nulls, so they travel as text."""

    name: str
    code: str
    kind: T.DataType

    @property
    def travels_as(self) -> T.DataType:
        return self.kind if isinstance(self.kind, _AS_THEY_ARE) else T.StringType()


_AS_THEY_ARE = (T.DoubleType, T.FloatType, T.StringType, T.BooleanType, T.BinaryType)
_AS_TEXT = (T.IntegralType, T.DecimalType, T.DateType, T.TimestampType, T.TimestampNTZType)


def _carried(df: DataFrame, layout: ColumnLayout) -> list[_Column]:
    """The columns that go through, less those that an earlier run wrote."""
    gone = {*layout.earlier(df.columns), EVENT, REASON}
    found = []
    for i, field in enumerate(df.schema.fields):
        if field.name in gone:
            continue
        if not isinstance(field.dataType, (*_AS_THEY_ARE, *_AS_TEXT)):
            raise TypeError(
                f"expected columns of text, numbers, dates or times in a stream, got {field.dataType.simpleString()} "
                f"in {field.name!r}: drop it first"
            )
        found.append(_Column(field.name, f"c{i}", field.dataType))
    return found


def _encoded(name: str, kind: T.DataType) -> Any:
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column(name)).cast("string")
    return column(name).cast("string") if isinstance(kind, _AS_TEXT) else one_zero(name, kind)


def _decoded(each: _Column) -> Any:
    if isinstance(each.kind, T.TimestampType):
        return F.timestamp_micros(F.col(each.code).cast("bigint"))
    return F.col(each.code).cast(each.kind) if isinstance(each.kind, _AS_TEXT) else F.col(each.code)


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


def _mark_side(side: Any, name: str, nothing: float) -> Any:
    """A bound as options are told apart: numbers by series may become more."""
    if isinstance(side, str):
        return side
    return "" if isinstance(side, Mapping) else bound_number(side, name, nothing) + 0.0


def _series_options(plan: SparkPlan, schema: T.StructType, id: str, stream: QueryOptions) -> SeriesOptions:
    layout, payoff, options = plan.layout, plan.game_payoff(), plan.options
    shapes = tuple(ForecastShape.of(form, plan.outputs(form)) for form in layout.forms)
    labels = {form.labels for form in layout.forms if form.kind == "labels"}
    if len(labels) > 1:
        raise ValueError(f"expected the same labels in the same order for all models of a stream, got {short(labels)}")
    plain = plan.payoff if payoff is None or plan.payoff is not None else repr(type(payoff))
    bounds = [_mark_side(options.low, "low", -math.inf), _mark_side(options.high, "high", math.inf)]
    forms = [(form.model, form.kind, list(map(str, form.columns))) for form in layout.forms]
    mark = mark_of(
        forms,
        [vars(shape) for shape in shapes],
        plain,
        bounds,
        options.outside,
        [(n, schema[n].dataType.simpleString()) for n in (*layout.series, layout.time, id)],
        layout.y,
    )
    by_row = isinstance(options.low, str) or isinstance(options.high, str)
    clip, functions = options.outside == "clip", options.payoff is not None
    kept = stream.max_pending, stream.remember
    return SeriesOptions(layout.forms, shapes, payoff, by_row, clip, *kept, mark, functions)


# --- what a task does


@dataclass(frozen=True)
class StreamTask:
    """Plays the events of a series in a micro-batch."""

    plan: SparkPlan
    carried: tuple[_Column, ...]
    id: str
    keys: tuple[str, ...]
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
            answers = games.play(reader.events(key if self.keys else ()))
        after = games.state()
        if after != before and games.rounds:
            state.update((after,))
        yield self._written(answers, reader.cells)

    def _written(self, answers: list[SeriesAnswer], cells: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
        rows = [answer for answer in answers if answer.event.given is not None or self._reported(answer)]
        places = [answer.event.place for answer in rows]
        codes = [*(each.code for each in self.carried), *(code for code, _, _ in self.new())]
        # all objects, as are the rows of nothing that Spark puts below
        out = np.empty((len(rows), len(codes)), dtype=object)
        for i, each in enumerate(self.carried):
            out[:, i] = cells[each.code][places]
        at = len(self.carried)
        for number, form in enumerate(self.options.forms):
            width = len(self.options.shapes[number].outputs)
            table = np.full((len(rows), ANSWERS_AT + width), np.nan)
            for i, answer in enumerate(rows):
                if answer.round is not None:
                    table[i] = answer.round.models[number, : ANSWERS_AT + width]
                    # the row of an outcome does not repeat the forecast
                    if answer.event.given is None:
                        table[i, ANSWERS_AT:] = np.nan
                    if not answer.settled:
                        table[i, RoundColumn.MISCALIBRATION] = np.nan
            out[:, at : at + width] = table[:, ANSWERS_AT:]
            certificate = {
                "holds": [None if math.isnan(each) else each > 0.0 for each in table[:, RoundColumn.HOLDS].tolist()],
                "promised": table[:, RoundColumn.PROMISED].tolist(),
                "miscalibration": table[:, RoundColumn.MISCALIBRATION].tolist(),
                "status": [STATUS_TEXTS[answer.status[number]] for answer in rows],
            }
            for i, what in enumerate(form.certificate):
                out[:, at + width + i] = certificate[what]
            at += width + len(form.certificate)
        out[:, at] = ["outcome" if answer.event.given is None else "forecast" for answer in rows]
        out[:, at + 1] = [answer.reason for answer in rows]
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
