"""A local Spark session, micro-batches as files, and comparison of frames without order."""

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
    """Start a session whose files are all in a folder."""
    from pyspark.sql import SparkSession

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    builder = SparkSession.builder.master(master).appName("orcast")
    own = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    for key, value in {**CONFIG, **own, **more}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def write_batches(folder: Path, batches: list[pd.DataFrame]) -> None:
    """Write a file for each micro-batch, its rows in another order; Spark reads files by their times."""
    folder.mkdir()
    for i, batch in enumerate(batches):
        path = folder / f"{i}.parquet"
        batch.sample(frac=1.0, random_state=i).to_parquet(path, index=False)
        os.utime(path, (i, i))


def same(got: pd.DataFrame, want: pd.DataFrame, by: list[str]) -> None:
    """Assert equality to the last bit up to the order of rows; null, None and nan are all missing."""
    assert list(got.columns) == list(want.columns)
    got, want = (each.sort_values(by, kind="stable").reset_index(drop=True) for each in (got, want))
    assert len(got) == len(want)
    for name in want.columns:
        a, b = got[name], want[name]
        assert a.isna().tolist() == b.isna().tolist(), name
        assert a[a.notna()].tolist() == b[b.notna()].tolist(), name
