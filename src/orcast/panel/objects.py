"""What other libraries have instead of data frames, as frames: each is known by its module, and none is imported.

- polars ``LazyFrame``, relations of DuckDB: collected.
- darts ``TimeSeries``, or several, one for each time of issue: samples are members.
- xarray ``DataArray`` and ``Dataset`` with a dimension of members or of quantiles.
- ArviZ ``InferenceData``: predictions, or the posterior predictive, beside the observed data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from orcast.panel.column_names import CUTOFF, HORIZON, TIME, listed, plain

MEMBERS = ("member", "members", "number", "realization", "realisation", "ensemble", "ens", "ensemble_member", "sample")
QUANTILES = ("quantile", "quantile_level")
# More members than these are read as the percents of their distribution.
MOST = 200


@dataclass
class Opened:
    """A data frame, what a result is turned into, what its columns are, and what was assumed."""

    native: Any
    back: Callable[[Any], Any] | None = None
    roles: dict[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


def opened(native: Any) -> Opened:
    """A data frame from what was given; a data frame as it is."""
    if isinstance(native, list | tuple) and native and _library(native[0]) == "darts":
        return _darts(list(native), issued=True)
    library = _library(native)
    if library == "darts" and hasattr(native, "all_values"):
        return _darts([native], issued=False)
    if library in ("arviz", "arviz_base") or (library == "xarray" and hasattr(native, "children")):
        return _inference(native)
    if library == "xarray" and hasattr(native, "dims"):
        return _xarray(native)
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


# --- xarray


def _xarray(given: Any) -> Opened:
    data = given if hasattr(given, "data_vars") else given.to_dataset(name=given.name or "forecast")
    wide = [str(name) for name in data.data_vars if _wide_dimension(data[name]) is not None]
    if not wide:
        # a single value is no row: coordinates without a dimension are what all rows share
        return Opened(data.to_dataframe().reset_index())
    dims = [dim for dim in data[wide[0]].dims if dim != _wide_dimension(data[wide[0]])]
    template = data[wide[0]].isel({_wide_dimension(data[wide[0]]): 0}, drop=True).transpose(*dims)
    columns: dict[str, Any] = {}
    for name in [*dims, *(name for name in data.coords if name not in data.dims), *data.data_vars]:
        array = data[name]
        along = _wide_dimension(array)
        rest = [dim for dim in array.dims if dim != along]
        if not array.dims or not set(rest) <= set(dims) or (along is not None and name not in wide):
            continue
        if along is None:
            columns[str(name)] = array.broadcast_like(template).transpose(*dims).values.ravel()
            continue
        rows = array.transpose(*dims, along).values.reshape(-1, array.sizes[along])
        if str(along) in QUANTILES:
            levels = array[along].values.tolist()
            columns |= {f"{name}_q{plain(level)}": rows[:, i] for i, level in enumerate(levels)}
        else:
            columns |= _distribution(str(name), rows)
    import pandas as pd

    return Opened(pd.DataFrame(columns), roles=_dimensions(list(map(str, dims)), columns))


def _wide_dimension(array: Any) -> Any:
    return next((dim for dim in array.dims if str(dim).lower() in (*MEMBERS, *QUANTILES)), None)


def _dimensions(dims: list[str], columns: dict[str, Any]) -> dict[str, Any]:
    """What the dimensions are: a single one is the time, others than times and horizons are those of series."""
    if len(dims) == 1 and not {name.lower() for name in columns} & {*TIME}:
        return {"time": dims[0], "series": ()}
    known = {*TIME, *CUTOFF, *HORIZON}
    return {"series": tuple(dim for dim in dims if dim.lower() not in known and len(set(columns[dim])) > 1)}


# --- ArviZ


def _inference(given: Any) -> Opened:
    groups = list(given.groups()) if callable(getattr(given, "groups", None)) else list(given.children)
    groups = [group.strip("/") for group in groups]
    which = next((group for group in ("predictions", "posterior_predictive") if group in groups), None)
    if which is None:
        raise ValueError(f"expected the group 'predictions' or 'posterior_predictive', got {listed(groups)}")
    made = given[which]
    made = made.to_dataset() if hasattr(made, "children") else made
    names = [str(name) for name in made.data_vars]
    seen = given["observed_data"] if "observed_data" in groups and which == "posterior_predictive" else None
    if seen is not None:
        seen = seen.to_dataset() if hasattr(seen, "children") else seen
        names = [name for name in names if name in seen.data_vars]
    if len(names) != 1:
        raise ValueError(f"expected one variable in {which!r} with observed data, got {listed(names)}")
    draws = made[names].stack(sample=("chain", "draw"), create_index=False)
    told = _xarray(draws)
    if seen is None:
        return told
    rows = seen[names[0]].transpose(*(dim for dim in draws[names[0]].dims if dim != "sample"))
    told.native["y"] = rows.values.ravel()
    told.assumed = (
        "a posterior predictive is of outcomes that the model was fitted to, so it is no forecast, and what is "
        "reported of it is too good: 'predictions' of later outcomes are",
    )
    return told
