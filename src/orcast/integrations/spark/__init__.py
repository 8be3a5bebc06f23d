"""Spark: tables and streams of many series (extra ``orcast[spark]``).

Every executor needs orcast in the Python of its tasks.
"""

from __future__ import annotations

from orcast.integrations.optional import needs

with needs("spark", "pandas", "pyarrow", "pyspark"):
    import pandas  # type: ignore[import-untyped]  # noqa: F401
    import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    import pyspark  # noqa: F401

from orcast.integrations.spark.batch import recalibrate
from orcast.integrations.spark.stream import recalibrate_stream

__all__ = ["recalibrate", "recalibrate_stream"]
