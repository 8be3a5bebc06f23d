"""Structured Streaming: forecasts and outcomes as they come, a game for each series in the state of the query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from orcast.frame.bounds import bound_number, read_bounds, space_between
from orcast.frame.experts import ForecastShape
from orcast.frame.frame_run import MAX_PENDING, FrameOptions
from orcast.frame.names import SERIES
from orcast.frame.reader import Frame
from orcast.frame.times import DAY
from orcast.integrations.spark.games import SeriesOptions, mark_of
from orcast.integrations.spark.plan import SparkPlan, empty, plan_of
from orcast.integrations.spark.task import StreamTask, carried_columns, decoded, encoded
from orcast.payoffs import Payoff
from orcast.spaces.base import whole
from orcast.validation import short

# Of times that are no days, in nanoseconds.
MICROSECOND = 1000
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
    keys = [encoded(name, df.schema[name].dataType).alias(f"k{i}") for i, name in enumerate(layout.series)]
    if not keys:
        keys = [F.lit("").alias("k0")]
    rows = df.select(*keys, *(encoded(each.name, each.kind).alias(each.code) for each in carried))
    after = task.schema()
    grouped = rows.groupBy(*(f"k{i}" for i in range(len(keys))))
    played = grouped.applyInPandasWithState(task, after, STATE, "append", "NoTimeout")
    back = [decoded(each).alias(each.name) for each in carried]
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
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    return StreamTask(plan, tuple(carried_columns(df, layout)), key, stream.outcomes, series, str(zone))


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
    known = [set(side) for side in sides if isinstance(side, Mapping)]
    keys: list[Any] = sorted(set.intersection(*known), key=str) if known else [None]
    bounds = read_bounds(sides[0], sides[1], Frame(empty(schema)), np.arange(len(keys)), keys)
    for low, high in set(zip(bounds.low.tolist(), bounds.high.tolist(), strict=True)):
        space_between(low, high, False)


def _mark_side(side: Any, name: str, nothing: float) -> Any:
    """A bound in the mark of a stream; numbers by series may become more, and are not part of it."""
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
    kind = schema[str(layout.time)].dataType
    dated = isinstance(kind, (T.StringType, T.TimestampType, T.TimestampNTZType))
    tick = DAY if isinstance(kind, T.DateType) else MICROSECOND if dated else 0
    return SeriesOptions(layout.forms, shapes, payoff, by_row, clip, *kept, mark, functions, tick)
