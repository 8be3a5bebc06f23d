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
