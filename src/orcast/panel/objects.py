"""Objects of other libraries read as data frames; recognised by their module, so none of the libraries is imported.

- polars ``LazyFrame``, relations of DuckDB: collected.
- darts ``TimeSeries``, or several, one for each issue time: samples are members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from orcast.panel.column_names import plain

# More members than these are read as the percents of their distribution.
MOST = 200


@dataclass
class Opened:
    """A data frame, and the function that turns a result back into the type that was passed."""

    native: Any
    back: Callable[[Any], Any] | None = None


def opened(native: Any) -> Opened:
    """A data frame from what was given; a data frame as it is."""
    if isinstance(native, list | tuple) and native and _library(native[0]) == "darts":
        return _darts(list(native), issued=True)
    library = _library(native)
    if library == "darts" and hasattr(native, "all_values"):
        return _darts([native], issued=False)
    frame = native if isinstance(native, nw.LazyFrame) else nw.from_native(native, pass_through=True)
    if isinstance(frame, nw.LazyFrame) and (frame.implementation.is_polars() or frame.implementation.is_duckdb()):
        whole = frame.collect()
        if isinstance(native, nw.LazyFrame):
            return Opened(whole, lambda result: result.lazy())
        lazy = frame.implementation.is_polars()
        return Opened(whole.to_native(), (lambda result: result.lazy()) if lazy else None)
    return Opened(native)


def _library(thing: Any) -> str:
    return type(thing).__module__.partition(".")[0]


# --- darts


def _darts(several: list[Any], *, issued: bool) -> Opened:
    """Rows of some series; where they were issued one after another, before their first time each."""
    import pandas as pd  # type: ignore[import-untyped]

    frames = []
    for series in several:
        values = series.all_values()
        times, names = series.time_index, [str(name) for name in series.components]
        samples = values.shape[2] > 1
        for i, name in enumerate(names if samples else [""]):
            columns: dict[str, Any] = {"time": times}
            if issued:
                columns["cutoff"] = times[0] - series.freq
            if samples:
                if len(names) > 1:
                    columns["series"] = name
                columns |= _distribution("", values[:, i, :])
            else:
                columns |= {each: values[:, k, 0] for k, each in enumerate(names)}
            frames.append(pd.DataFrame(columns))
    return Opened(pd.concat(frames, ignore_index=True))


def _distribution(model: str, values: Any) -> dict[str, Any]:
    """Columns of members, or of percents where there are many; a row a forecast."""
    before = f"{model}_" if model else ""
    if values.shape[1] <= MOST:
        return {f"{before}member_{i + 1}": values[:, i] for i in range(values.shape[1])}
    levels = np.arange(1, 100) / 100.0
    rows = np.quantile(values, levels, axis=1, method="hazen")
    return {f"{before}q{plain(level)}": row for level, row in zip(levels, rows, strict=True)}
