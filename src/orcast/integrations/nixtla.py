"""Nixtla: recalibrate frames of statsforecast, mlforecast and neuralforecast, none of which has to be installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import narwhals.stable.v2 as nw
import numpy as np

from orcast.frame import FrameState
from orcast.frame import recalibrate as recalibrate_frame
from orcast.frame.names import ALARMS, CERTIFICATE
from orcast.validation import number, short

AnyFrame = TypeVar("AnyFrame")

CUTOFF = "cutoff"


def recalibrate(
    forecasts: AnyFrame,
    history: Any = None,
    *,
    level: Sequence[float] | None = None,
    state: FrameState | str | os.PathLike[str] | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    **options: Any,
) -> AnyFrame:
    """Recalibrate a frame of forecasts, given earlier ones and their outcomes, by one call of `orcast.recalibrate`.

    In the result ``MODEL`` is the median, or the mean if there is ``MODEL-median``.

    Parameters
    ----------
    forecasts
        Frame of ``predict``, ``forecast`` or ``cross_validation``.  Without a column ``cutoff`` they were issued at the
        last known time of their series.
    history
        Frame of ``cross_validation`` with the same models and levels; or, with a ``state`` that has the earlier
        forecasts, outcomes alone (``unique_id``, ``ds``, ``y``, such as the frame that the models were fitted to).
    level
        Intervals in percent, beside those that are there.  Models without intervals get those of 80 and 95.
    state
        Path or :class:`orcast.FrameState` that continues from call to call.
    id_col, time_col, target_col
        Names of columns, as in Nixtla.
    **options
        Options of :func:`orcast.recalibrate`, such as ``low``, ``high`` and ``pool``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> days = pd.date_range("2026-01-01", periods=62)
    >>> y = 100 + np.random.default_rng(0).normal(0, 10, 60)
    >>> forecast = {"ETS": 100.0, "ETS-lo-90": 95.0, "ETS-hi-90": 105.0}  # far too narrow
    >>> cv = pd.DataFrame({"unique_id": "A", "ds": days[1:60], "cutoff": days[:59], "y": y[1:]}).assign(**forecast)
    >>> after = recalibrate(pd.DataFrame({"unique_id": "A", "ds": days[60:61]}).assign(**forecast), cv)
    >>> list(after.columns), bool(after["ETS-hi-90"][0] - after["ETS-lo-90"][0] > 25)
    (['unique_id', 'ds', 'ETS', 'ETS-lo-90', 'ETS-hi-90'], True)
    """
    frame = _frame(forecasts, "forecasts")
    roles: dict[str, Any] = {"series": id_col, "time": time_col, "y": target_col, "cutoff": CUTOFF}
    rows = _rows(frame, history, roles, state).to_native()
    done: Any = recalibrate_frame(rows, levels=_levels(level), state=state, replace=True, **roles, **options)
    certificate = tuple(f"_orcast_{name}" for name in (*CERTIFICATE, *ALARMS))
    new = [name for name in done.columns if name not in (*frame.columns, CUTOFF, target_col)]
    names = {name: name.replace("_orcast", "", 1) for name in new if not name.endswith(certificate)}
    after = _frame(done, "forecasts").head(len(frame)).select(*frame.columns, *names).rename(names)
    result = after.to_native()
    if frame.implementation.is_pandas_like():
        result = result.set_axis(frame.to_native().index)
    return cast(AnyFrame, result)


def _frame(native: Any, where: str) -> Any:
    try:
        return nw.from_native(native, eager_only=True)
    except TypeError:
        raise TypeError(f"expected a frame of pandas or polars as {where}, got {short(native)}") from None


def _rows(frame: Any, history: Any, roles: dict[str, str], state: Any) -> Any:
    """Rows of the forecasts, with their cutoffs, and of the history after them."""
    series, time, y, cutoff = roles.values()
    _check_columns(frame, [series, time], "forecasts")
    if history is None:
        if cutoff not in frame.columns:
            raise ValueError(f"expected history= or a column {cutoff!r} in forecasts, got neither")
        return frame
    past = _frame(history, "history")
    _check_columns(past, [series, time, y], "history")
    past = _as_in(past, frame)
    known = past.filter(~nw.col(y).is_null(), ~nw.col(y).cast(nw.Float64).is_nan())
    if cutoff in past.columns:
        _check_columns(past, [name for name in frame.columns if name != y], "history")
    elif state is not None:  # a row with an outcome and without a forecast settles the pending forecasts of its time
        past = known.sort(time).with_columns(nw.col(time).shift(1).over(series).alias(cutoff))
        past = past.filter(~nw.col(cutoff).is_null()).with_columns(nw.col(cutoff).cast(known.schema[time]))
    else:
        raise ValueError(f"expected state=, or a column {cutoff!r} in history (cross_validation), got neither")
    if cutoff not in frame.columns:
        frame = frame.join(known.group_by(series).agg(nw.col(time).max().alias(cutoff)), on=series, how="left")
        unknown = frame.filter(nw.col(cutoff).is_null())[series].to_list()
        if unknown:
            raise ValueError(f"expected outcomes of series {unknown[0]!r} in history, got none")
    columns = [name for name in past.columns if name == y or name in frame.columns]
    return nw.concat([frame, past.select(columns)], how="diagonal")


def _as_in(past: Any, frame: Any) -> Any:
    """Cast the numbers and times of a history to the types that the forecasts have; refuse other differences."""
    for name, kind in frame.schema.items():
        there = past.schema.get(name, kind)
        if there == kind:
            continue
        if not ((there.is_numeric() and kind.is_numeric()) or (there.is_temporal() and kind.is_temporal())):
            raise TypeError(f"expected {kind} in column {name!r} of history, as in forecasts, got {there}")
        past = past.with_columns(nw.col(name).cast(kind))
    return past


def _check_columns(frame: Any, needed: Sequence[str], where: str) -> None:
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ValueError(f"expected a column {missing[0]!r} in {where}, got {short(frame.columns)}")


def _levels(level: Any) -> list[float] | None:
    """Levels of quantiles from intervals in percent.

    >>> _levels([80, 95])
    [0.025, 0.1, 0.9, 0.975]
    """
    if level is None:
        return None
    shares = [number(each, "level in percent", 0.001, 99.999) for each in np.atleast_1d(level).tolist()]
    return sorted({round((100.0 + sign * share) / 200.0, 12) for share in shares for sign in (-1.0, 1.0)})
