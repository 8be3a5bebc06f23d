"""Nixtla: recalibrate frames of statsforecast, mlforecast and neuralforecast.

    cv = sf.cross_validation(df=df, h=24, n_windows=60, step_size=24, level=[80, 95])
    tomorrow = recalibrate(sf.forecast(df=df, h=24, level=[80, 95]), cv)

Only the frames are read (pandas or polars), so none of the three libraries has to be installed.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.frame import run
from orcast.frame.names import ColumnLayout, listed, of_series
from orcast.frame.reader import Frame, find_in
from orcast.frame.state import PanelContent, PanelState, open_state
from orcast.integrations.common import KINDS_APART
from orcast.spaces.base import LARGEST
from orcast.validation import number, short, warn_user

AnyFrame = TypeVar("AnyFrame")
Vector = NDArray[Any]
Table = dict[Any, Vector]  # columns by label: times as numbers that sort, numbers as floats, others as objects

CUTOFF = "cutoff"
CERTIFICATE = ("holds", "promised", "miscalibration", "status")
STAMPS = {"dates": "datetime64[ns]", "dates with a zone": "datetime64[ns]", "durations": "timedelta64[ns]"}


def recalibrate(
    forecasts: AnyFrame,
    history: Any = None,
    *,
    model: Any = None,
    level: Sequence[float] | None = None,
    state: PanelState | str | os.PathLike[str] | None = None,
    replace: bool = True,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    **options: Any,
) -> AnyFrame:
    """Recalibrate a frame of forecasts, given earlier forecasts and their outcomes; returns the same frame.

    This is :func:`orcast.recalibrate` of both frames in one.  Forecasts without a cutoff were issued at the last known
    time of their series.

    Parameters
    ----------
    forecasts
        Frame of ``predict``, ``forecast`` or ``cross_validation``, with any number of series and models.  Each window
        of a ``cross_validation`` frame uses the outcomes up to its cutoff.
    history
        Frame of ``cross_validation`` with the same models and levels; or, with a ``state`` that has the earlier
        forecasts, outcomes alone (``unique_id``, ``ds``, ``y``, such as the frame that the models were fitted to).
    level
        Intervals in percent, beside those that are there.  Models without intervals get those of 80 and 95.
    state
        Path or :class:`orcast.PanelState` that continues from call to call: the first call has a ``cross_validation``
        frame as its history, later ones the outcomes up to then.
    replace
        Write into the model's columns (``MODEL`` holds the median, or the mean if there is ``MODEL-median``).  False
        adds columns named ``MODEL_orcast`` and the certificate of each row.
    id_col, time_col, target_col
        Names of columns, as in Nixtla.
    model, **options
        ``low``, ``high``, ``lag``, ``payoff``, ``outside``, ``pool``, ``workers`` and ``progress``, as in
        :func:`orcast.recalibrate`.  Columns named by ``low``, ``high`` and ``pool`` are in both frames.

    Notes
    -----
    Each model, series and step ahead has a recalibrator of its own.  Steps are counted by the times, so rows may be
    missing; a column ``h`` with the step ahead, in both frames, settles irregular times.  Messages count the rows of
    the history after those of the forecasts.

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
    names = {"series": id_col, "time": time_col, "y": target_col}
    roles = {"model": model, "cutoff": CUTOFF, **names}
    frame, kind, given = _read(forecasts, names, "forecasts")
    past: Table = {}
    if history is not None:
        _, past_kind, past = _read(history, names, "history", given)
        if past_kind != kind:
            raise ValueError(f"expected times in history as in forecasts, {kind}, got {past_kind}")
    with open_state(state) as panel:
        content = PanelContent() if panel is None else panel.content
        _check(given, past, names, panel is not None)
        rows = given if CUTOFF in given else given | {CUTOFF: _cutoffs(given, past, names, content)}
        layout = find_in(_frame([rows], names, kind, frame), pending=True, **roles)
        parts = [rows]
        if past:
            _check_columns(given, past, layout, [options.get(each) for each in ("low", "high", "pool")])
            clip = options.get("outside") == "clip"
            parts = [rows, past] if CUTOFF in past else _with_outcomes(rows, past, names, content, layout, clip)
        whole = _frame(parts, names, kind, frame)
        after = run.recalibrate(whole, levels=_levels(level), state=panel, replace=replace, **roles, **options)
    result: AnyFrame = _written(frame, nw.from_native(after, eager_only=True), layout, replace)
    return result


# --- rows in
def _read(native: Any, names: Mapping[str, str], what: str, like: Table | None = None) -> tuple[Frame, str, Table]:
    """Read a frame, the kind of its times, and its columns; if ``like`` is given, only columns that it has."""
    frame = Frame(native)
    labels = list(frame.searched.columns)
    for role in ("series", "time"):
        if names[role] not in labels:
            raise ValueError(
                f"expected a column {names[role]!r} in {what}, got {listed(labels)}"
                " (id_col=, time_col= and target_col= say other names)"
            )
    times = {label: frame.times(label) for label in (names["time"], CUTOFF) if label in labels}
    kinds = [each.kind for each in times.values()]
    if kinds[-1] != kinds[0]:
        raise ValueError(f"expected times and cutoffs of one kind in {what}, got {kinds[0]} and {kinds[-1]}")
    codes, keys = frame.keys([names["series"]])
    table = {names["series"]: _objects(keys)[codes]} | {label: each.values for label, each in times.items()}
    table[names["y"]] = frame.numbers(names["y"]) if names["y"] in labels else np.full(len(codes), np.nan)
    for label in labels:
        if label not in table and (like is None or label in like):
            numeric = frame.holds_numbers(label) if like is None else like[label].dtype != object
            table[label] = frame.numbers(label) if numeric else _objects(frame.column(label).to_list())
    return frame, kinds[0], table


def _objects(values: Sequence[Any]) -> Vector:
    return np.fromiter(values, dtype=object, count=len(values))


def _frame(parts: Sequence[Table], names: Mapping[str, str], kind: str, like: Frame) -> Any:
    """One frame of some tables, with the columns of the first."""
    data: dict[Any, Any] = {}
    for label, first in parts[0].items():
        missing = None if first.dtype == object else np.nan
        column = np.concatenate([part.get(label, np.full(len(part[CUTOFF]), missing)) for part in parts])
        data[label] = column.tolist() if column.dtype == object else column
    for label in (names["time"], CUTOFF):
        data[label] = data[label].astype(STAMPS.get(kind, data[label].dtype))
    table = nw.from_dict(data, backend=like.table.implementation)
    if kind == "dates with a zone":
        table = table.with_columns(nw.col(names["time"], CUTOFF).dt.replace_time_zone("UTC"))
    return table.to_native()


def _with_outcomes(
    given: Table, past: Table, names: Mapping[str, str], content: PanelContent, layout: ColumnLayout, clip: bool
) -> list[Table]:
    """The forecasts with the outcomes that are known, and a row without a forecast for each pending one."""
    series, time, y = names.values()
    here, there = (list(zip(table[series].tolist(), table[time].tolist(), strict=True)) for table in (given, past))
    known: dict[tuple[Hashable, Any], int] = {}
    for row in np.flatnonzero(~np.isnan(past[y])).tolist():
        one, other = past[y][[known.setdefault(there[row], row), row]]
        if one != other:
            raise ValueError(f"expected one outcome{of_series(there[row][0])} at each time, got {one:g} and {other:g}")
    own = np.array([past[y][known[at]] if at in known else value for at, value in zip(here, given[y], strict=True)])
    waiting = known.keys() - here
    found: dict[tuple[Hashable, Any], tuple[Any, Any]] = {}
    for key, step, cutoff, at, low, high in content.pending_rows(content.models):
        if (key, at) in waiting and (key, at) not in found:
            found[key, at] = cutoff, step
            value = past[y][known[key, at]]
            if not clip and not max(low, -LARGEST) <= value <= min(high, LARGEST):
                warn_user(f"an outcome outside the bounds was not used: {value:g}{of_series(key)}", UserWarning)
    rows = [known[at] for at in found]
    settled = {label: past[label][rows] for label in past if not any(label in form.columns for form in layout.forms)}
    settled[CUTOFF] = np.array([cutoff for cutoff, _ in found.values()], dtype=given[time].dtype)
    if layout.horizon is not None:
        settled[layout.horizon] = np.array([step for _, step in found.values()])
    return [given | {y: own}, settled]


# --- cutoffs of forecasts that have none
def _cutoffs(given: Table, past: Table, names: Mapping[str, str], content: PanelContent) -> Vector:
    """Last known time of each row's series."""
    series, time, y = names.values()
    seen: dict[Hashable, list[list[Any]]] = {key: dates.tolist() for key, dates in content.calendar.items()}
    if past:
        known = np.flatnonzero(~np.isnan(past[y]))
        for column, rows in ((time, known), (CUTOFF, np.arange(len(past[y])))):
            if column in past:
                for key, *pair in zip(*(past[each][rows].tolist() for each in (series, column, time)), strict=True):
                    seen.setdefault(key, []).append(pair)
    places: dict[Hashable, list[int]] = {}
    for row, key in enumerate(given[series].tolist()):
        places.setdefault(key, []).append(row)
    found = np.zeros_like(given[time])
    for key, own in places.items():
        found[own] = _cutoff(key, np.unique(given[time][own]), seen.get(key, []))
    return found


def _cutoff(key: Hashable, times: Vector, seen: Sequence[Sequence[Any]]) -> Any:
    """Cutoff of a series' forecasts, given cutoffs and times of earlier ones; for a known outcome both are its time."""
    first = times[0]
    windows: dict[Any, set[Any]] = {}
    for cutoff, time in seen:
        windows.setdefault(cutoff, set()).update({time} - {cutoff})
    again = [cutoff for cutoff, ahead in windows.items() if ahead and min(ahead) == first]
    if again:  # the same window, recalibrated again
        return max(again)
    before = np.array(sorted({each for pair in seen for each in pair if each < first}), dtype=times.dtype)
    steps = np.concatenate((np.diff(before), np.diff(times)))
    step = np.median(steps) if len(steps) else 1
    adjacent = len(before) and (not len(steps) or first - before[-1] <= max(1.5 * step, steps.max()))
    most = max(map(len, windows.values()), default=0)
    if len(times) < most and not (adjacent and before[-1] in windows):
        raise ValueError(
            f"expected forecasts{of_series(key)} that begin right after the outcomes that are known, or all {most} "
            f"steps, got {len(times)}: a column {CUTOFF!r} with the time that they were issued at settles it"
        )
    # a whole window long after the last known time was issued one step before its first time
    return before[-1] if adjacent else first - times.dtype.type(step)


# --- checks
def _check(given: Table, past: Table, names: Mapping[str, str], continues: bool) -> None:
    if not past:
        if CUTOFF not in given and not continues:
            raise ValueError("expected history= or state=, to learn from, got neither")
        return
    if np.isnan(past[names["y"]]).all():
        raise ValueError(f"expected outcomes in a column {names['y']!r} of history, got none")
    if CUTOFF not in past and not continues:
        raise ValueError(f"expected a column {CUTOFF!r} in history, as cross_validation gives it, or state=, got none")
    here, there = (table[names["series"]].tolist() for table in (given, past))
    if not continues and here and not set(here) & set(there):
        raise ValueError(
            f"expected series of the forecasts in history, got {short(there[0])} there and {short(here[0])} here, "
            "and none in both"
        )


def _check_columns(given: Table, past: Table, layout: ColumnLayout, named: Sequence[Any]) -> None:
    """Refuse a history without the columns that it needs; warn if its intervals are of another width."""
    forms = layout.forms if CUTOFF in past else ()
    needed = {label for form in forms for label in form.columns} | ({layout.horizon} if forms else set())
    for each in named:
        needed |= {each} if isinstance(each, str) else set(each if isinstance(each, (list, tuple)) else ())
    missing = [label for label in given if label in needed and label not in past]
    if missing:
        raise ValueError(f"expected the columns of the forecasts in history, got none named {listed(missing, 'or')}")
    for form in forms:
        low, high = form.columns[0], form.columns[-1]
        widths = [np.abs(table[high] - table[low]) for table in (given, past)]
        if all((width > 0.0).any() for width in widths):
            ratio = np.divide(*(np.median(width[width > 0.0]) for width in widths))
            if not 1.0 / KINDS_APART <= ratio <= KINDS_APART:
                warn_user(
                    f"the intervals of {form.model} are {ratio:.2g} times as wide as in history: cross_validation "
                    "with refit=True and the same h makes forecasts of the same kind",
                    UserWarning,
                )


def _levels(level: Any) -> list[float] | None:
    """Levels of quantiles from intervals in percent.

    >>> _levels([80, 95])
    [0.025, 0.1, 0.9, 0.975]
    """
    if level is None:
        return None
    shares = [number(each, "level in percent", 0.001, 99.999) for each in np.atleast_1d(level).tolist()]
    return sorted({round((100.0 + sign * share) / 200.0, 12) for share in shares for sign in (-1.0, 1.0)})


# --- rows out
def _written(frame: Frame, after: Any, layout: ColumnLayout, replace: bool) -> Any:
    """The forecasts as they came, with the columns that are new or replaced."""
    table, after = frame.table, after.head(frame.rows)
    if table.implementation.is_pandas_like():
        after = nw.from_native(after.to_native().set_axis(table.to_native().index), eager_only=True)
    replaced = {output.column for form in layout.forms for output in form.outputs(None)} if replace else set()
    kept = {*frame.searched.columns, *layout.taken} - set(layout.earlier(after.columns)) - replaced
    columns = []
    for label in after.columns:
        if label not in kept and not (replace and str(label).rpartition("_orcast_")[2] in CERTIFICATE):
            name = str(label).replace("_orcast", "", 1) if replace and label not in replaced else label
            columns.append(after.get_column(label).alias(name))
    result = table.with_columns(columns)
    return result if frame.wrapped else result.to_native()
