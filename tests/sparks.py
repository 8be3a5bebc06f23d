"""What the tests of Spark share: a session of their own on the loopback, frames without order, a stream from files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd

CONFIG = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def start(master: str, folder: Path, **more: str) -> Any:
    """A session whose files are all in a folder."""
    from pyspark.sql import SparkSession

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    builder = SparkSession.builder.master(master).appName("orcast")
    own = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    for key, value in {**CONFIG, **own, **more}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def same(got: pd.DataFrame, want: pd.DataFrame, by: list[str]) -> None:
    """Equal to the last bit, up to the order of rows; null, None and nan are all missing."""
    assert list(got.columns) == list(want.columns)
    got, want = (each.sort_values(by, kind="stable").reset_index(drop=True) for each in (got, want))
    assert len(got) == len(want)
    for name in want.columns:
        a, b = got[name], want[name]
        assert a.isna().tolist() == b.isna().tolist(), name
        assert a[a.notna()].tolist() == b[b.notna()].tolist(), name


class Unstarted:
    """What is asked of a frame of Spark before anything runs, without Spark: its schema."""

    class sparkSession:
        conf = {"spark.sql.session.timeZone": "Europe/Berlin"}  # noqa: RUF012

    def __init__(self, columns: str, streaming: bool = True) -> None:
        from pyspark.sql import types as T

        kinds = {
            "string": T.StringType(),
            "bigint": T.LongType(),
            "double": T.DoubleType(),
            "float": T.FloatType(),
            "date": T.DateType(),
            "timestamp": T.TimestampType(),
            "timestamp_ntz": T.TimestampNTZType(),
            "decimal": T.DecimalType(20, 0),
        }
        pairs = [each.split() for each in columns.split(", ")]
        self.schema = T.StructType([T.StructField(name, kinds[kind]) for name, kind in pairs])
        self.columns, self.isStreaming = [name for name, _ in pairs], streaming

    def mapInArrow(self) -> None:
        raise AssertionError


class Acted:
    """A stream whose tasks are called here, without Spark; values are given as they travel."""

    def __init__(self, columns: str, **options: Any) -> None:
        from orcast.frame.frame_run import FrameOptions
        from orcast.integrations.spark.stream import QueryOptions, task_of

        self.df, self.states = Unstarted(columns), dict[Any, Any]()
        names = {name: options.pop(name, None) for name in ("y", "series", "time")}
        model = options.pop("model", None)
        own = {name: options.pop(name) for name in ("id", "outcomes", "max_pending", "remember") if name in options}
        own = {"outcomes": True, **own}
        self.task = task_of(self.df, names, model, FrameOptions(**options), QueryOptions(**own))

    def batch(self, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
        """What comes of the rows of a micro-batch."""
        task, groups = self.task, dict[Any, list[Any]]()
        for row in rows:
            each = dict(zip(self.df.columns, row, strict=True))
            groups.setdefault(tuple(each[name] for name in task.plan.layout.series) or ("",), []).append(each)
        names = [each.name for each in task.carried] + [name for _, name, _ in task.new()]
        out: list[dict[str, Any]] = []
        for key, some in groups.items():
            cells = {each.code: pd.Series([row[each.name] for row in some], dtype=object) for each in task.carried}
            for frame in task(key, iter([pd.DataFrame(cells)]), self.states.setdefault(key, Kept())):
                out += [dict(zip(names, values, strict=True)) for values in frame.itertuples(index=False)]
        return out


class Kept:
    """A state as Spark keeps it."""

    def __init__(self) -> None:
        self.get: Any = None

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self.get is not None

    def update(self, value: Any) -> None:
        """Keep another."""
        self.get = value
