"""Spark: panels that are too large for one machine, as a batch or as a stream (extra ``orcast[spark]``).

    out = recalibrate(df, low=0)              # a table: the columns that `orcast.recalibrate` gives, bit for bit
    out = recalibrate_stream(events, low=0)   # Structured Streaming: forecasts and outcomes as they come

Every executor needs orcast in the Python that its tasks run in.
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
