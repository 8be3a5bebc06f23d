"""A table of Spark on its way: series by series into tasks, each of which plays its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import ArrayLike
from pyspark.sql import DataFrame

from orcast.engine import Oracle
from orcast.frame.frame_run import FrameOptions
from orcast.frame.times import Timing
from orcast.integrations.spark.plan import SparkPlan, empty, one_zero, plan_of, schema_after
from orcast.payoffs import Payoff
from orcast.spaces.base import whole
from orcast.validation import short

# Parts where Spark does not say how many.
PARTITIONS = 200
# Rows that go back to Spark at a time.
CHUNK = 10_000


def recalibrate(
    df: DataFrame,
    *,
    y: Any = None,
    model: Any = None,
    series: Any = None,
    time: Any = None,
    cutoff: Any = None,
    horizon: Any = None,
    known: Any = None,
    lag: Any = None,
    issued_every: Any = None,
    nowcast: bool = False,
    low: Any = None,
    high: Any = None,
    levels: ArrayLike | None = None,
    payoff: Payoff | None = None,
    oracle: Oracle | None = None,
    replace: bool = False,
    outside: str = "report",
    pool: Any = False,
    partitions: int | None = None,
) -> DataFrame:
    """Recalibrate the forecasts in a DataFrame of Spark: what `orcast.recalibrate` gives, to the last bit.

    The options are those of :func:`orcast.recalibrate`, and so are the columns that come out.  Columns are found once,
    from the schema.  Where only all rows can tell, a column is read once: outcomes whose values settle a reading, times
    as text, and horizons without cutoffs beside times with fractions.  Then the rows go into ``partitions`` parts,
    whole series into one, and a task plays each; by default there are as many as ``spark.sql.shuffle.partitions`` says.
    The rows of a part are in the memory of one Python process at a time.

    - The rows of Spark have no order, so there must be a column of times.
    - A column of arrays of numbers is an ensemble of them, and comes out as one; its longest array is looked for.
    - Null and nan both mean missing; what is missing comes out as null.
    - Nothing is played before an action asks for it, and a frame that is refused is refused then, in one sentence that
      names series and time, within the error of Spark.
    - Tasks cannot warn.  What `orcast.recalibrate` warns of is in the column ``..._status``, which can be counted;
      crossing quantiles are sorted without a warning.
    - Series learn together only if ``pool`` says so, since a pool is played by one task: the names of columns, constant
      within a series, tell pools apart (``pool="region"``), and with True all rows are in one part.  A frame of
      :func:`orcast.recalibrate` is one pool by default; with the same ``pool`` the answers are the same.
    - For many series give bounds as columns: numbers by series go to every task.

        out = recalibrate(spark.read.parquet("forecasts"), low=0)
        out.groupBy("ETS_orcast_status").count().show()
    """
    options = FrameOptions(low, high, levels, payoff, outside, oracle, Timing(lag, issued_every, nowcast), pool)
    count = None if partitions is None else whole(partitions, "partitions", 1, 10**6)
    names = {"y": y, "series": series, "time": time, "cutoff": cutoff, "horizon": horizon, "known": known}
    if getattr(df, "isStreaming", False):
        raise ValueError("expected a table, got a stream, which recalibrate_stream takes")
    plan = plan_of(df, names, model, options)
    replaced = [str(out.column) for form in plan.layout.forms for out in form.outputs() if out.column is not None]
    after = schema_after(df.schema, plan.play(empty(df.schema), replace=bool(replace)), replaced if replace else ())
    keys = [one_zero(name, df.schema[name].dataType) for name in _together(df, plan)]
    parts = df.repartition(count or _usual(df), *keys) if keys else df.repartition(1)
    # Spark takes a dot in a name, as in q0.1, for a part of a column: on the way the columns are numbered
    numbered = parts.toDF(*(f"c{i}" for i in range(len(df.columns))))
    return numbered.mapInArrow(_Task(plan, tuple(df.columns), bool(replace)), after)


def _together(df: DataFrame, plan: SparkPlan) -> tuple[str, ...]:
    """The columns whose rows go into one part where they agree: those of a pool, or of a series."""
    pool = plan.options.pool
    if isinstance(pool, bool):
        return () if pool else tuple(plan.layout.series)
    for name in pool:
        if name not in df.columns:
            raise ValueError(f"expected pool= as columns of the frame, got {name!r}")
    return tuple(pool)


def _usual(df: DataFrame) -> int:
    try:
        return max(int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or PARTITIONS), 1)
    except ValueError:
        return PARTITIONS


@dataclass(frozen=True)
class _Task:
    """Plays a part."""

    plan: SparkPlan
    columns: tuple[str, ...]
    replace: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch for batch in batches if batch.num_rows]
        if not rows:
            return
        table = pa.Table.from_batches(rows).rename_columns(list(self.columns))
        del rows
        with warnings.catch_warnings():
            # nobody would see them; the column of statuses has it
            warnings.simplefilter("ignore")
            try:
                played = self.plan.play(table, replace=self.replace)
            except (TypeError, ValueError) as reason:
                raise type(reason)(_with_series(str(reason), table, self.plan)) from None
        del table
        yield from played.combine_chunks().to_batches(max_chunksize=CHUNK)


def _with_series(sentence: str, table: pa.Table, plan: SparkPlan) -> str:
    """A sentence whose rows are named by series and time: numbers of rows mean nothing outside of their task."""
    layout = plan.layout

    def where(row: str) -> str:
        at = int(row)
        if at >= table.num_rows:
            return f"row {row}"
        names = [*layout.series, layout.time, *([] if layout.cutoff is None else [layout.cutoff])]
        return "the row with " + ", ".join(f"{name} {_shown(table[name][at].as_py())}" for name in names)

    sentence = re.sub(r"\brows \d+ and \d+\b", "two rows", sentence)
    return re.sub(r"\bin row (\d+)", lambda found: f"in {where(found[1])}", sentence)


def _shown(value: Any) -> str:
    return str(value) if hasattr(value, "isoformat") else short(value)
