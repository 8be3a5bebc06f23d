"""Nixtla: recalibrate frames of statsforecast, mlforecast and neuralforecast.

    cv = sf.cross_validation(df=df, h=24, n_windows=60, step_size=24, level=[80, 95])
    tomorrow = recalibrate(sf.forecast(df=df, h=24, level=[80, 95]), cv)

Only the frames are read (pandas or polars), so none of the three libraries has to be installed.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.integrations.common import KINDS_APART
from orcast.panel import api
from orcast.panel.column_names import listed, of_series
from orcast.panel.columns import find_in
from orcast.panel.frame import Frame
from orcast.panel.state import PanelState, open_state
from orcast.panel.workers import Progress
from orcast.payoffs import Payoff
from orcast.spaces.base import LARGEST
from orcast.validation import number, short, warn_user

AnyFrame = TypeVar("AnyFrame")
Vector = NDArray[Any]

CUTOFF = "cutoff"
CERTIFICATE = ("holds", "promised", "miscalibration", "status")


def recalibrate(
    forecasts: AnyFrame,
    history: Any = None,
    *,
    model: Any = None,
    low: Any = None,
    high: Any = None,
    lag: Any = None,
    level: Sequence[float] | None = None,
    payoff: Payoff | None = None,
    state: PanelState | str | os.PathLike[str] | None = None,
    replace: bool = True,
    outside: str = "report",
    pool: Any = True,
    workers: int | None = None,
    progress: bool | Progress = False,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> AnyFrame:
    """Recalibrate a frame of forecasts, given earlier forecasts and their outcomes; returns the same frame.

    This is :func:`orcast.recalibrate` of the history and the forecasts in one frame.  The cutoff of forecasts that
    have none is the last known time of their series.

    Parameters
    ----------
    forecasts
        What ``predict``, ``forecast`` or ``cross_validation`` returned, for any number of series and models.  Each
        window of a ``cross_validation`` frame uses the outcomes up to its cutoff.
    history
        What ``cross_validation`` returned, with the same models and levels; or, with a ``state`` that has the earlier
        forecasts, outcomes alone (``unique_id``, ``ds``, ``y``, such as the frame that the models were fitted to).
    level
        Intervals in percent, beside those that are there.  Models without intervals get those of 80 and 95.
    state
        A file, or a :class:`orcast.PanelState`, that continues from call to call:
        ``recalibrate(sf.forecast(df=df, h=24, level=[90]), cv, state="load.orcast")`` on the first day, and
        ``recalibrate(sf.forecast(df=newer, h=24, level=[90]), newer, state="load.orcast")`` on each day after it.
    replace
        Write the calibrated numbers into the model's columns (the column of the model itself holds the median then,
        or the mean if there is a column ``MODEL-median``).  False adds columns named ``MODEL_orcast`` and the
        certificate of each row.
    model, low, high, lag, payoff, outside, pool, workers, progress
        As in :func:`orcast.recalibrate`.  Columns named by ``pool`` are in both frames.
    id_col, time_col, target_col
        Names of columns, as in Nixtla.

    Notes
    -----
    Each model, series and step ahead has a recalibrator of its own.  Steps are counted by the times, so rows may be
    missing; a column ``h`` with the step ahead, in both frames, settles irregular times.  Messages count the rows of
    the history after those of the forecasts.

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
    given = _Input(forecasts, names, "forecasts")
    past = None if history is None else _Input(history, names, "history")
    options = {"model": model, "cutoff": CUTOFF, **names}
    with open_state(state) as panel:
        _check(given, past, panel)
        mine = _Rows(given.keys, given.time, given.time, given.y, given)
        layout = find_in(_frame(given, [mine]), pending=True, **options)
        if past is not None and past.cutoff is not None:
            _check_history(given, past, layout.forms)
        whole = _combined(given, past, panel, layout.horizon)
        after = api.recalibrate(
            whole,
            low=low,
            high=high,
            lag=lag,
            levels=_levels(level),
            payoff=payoff,
            state=panel,
            replace=replace,
            outside=outside,
            pool=pool,
            workers=workers,
            progress=progress,
            **options,
        )
    columns: AnyFrame = _columns(given, nw.from_native(after, eager_only=True), replace)
    return columns


class _Input:
    """One of the two frames: its series, times, cutoffs and outcomes."""

    def __init__(self, native: Any, names: Mapping[str, str], what: str) -> None:
        self.frame, self.names = Frame(native), names
        self.labels = list(self.frame.searched.columns)
        for role in ("series", "time"):
            if names[role] not in self.labels:
                raise ValueError(
                    f"expected a column {names[role]!r} in {what}, got {listed(self.labels)}"
                    " (id_col=, time_col= and target_col= say other names)"
                )
        codes, keys = self.frame.keys([names["series"]])
        self.keys: list[Hashable] = [keys[code] for code in codes.tolist()]
        times = self.frame.times(names["time"])
        self.kind, self.time = times.kind, times.values
        self.cutoff: Vector | None = None
        if CUTOFF in self.labels:
            cutoffs = self.frame.times(CUTOFF, CUTOFF)
            if cutoffs.kind != self.kind:
                raise ValueError(
                    f"expected times and cutoffs of one kind in {what}, got {self.kind} and {cutoffs.kind}"
                )
            self.cutoff = cutoffs.values
        self.y = self.frame.numbers(names["y"]) if names["y"] in self.labels else np.full(len(self.keys), np.nan)
        self.others = [label for label in self.labels if label not in (*names.values(), CUTOFF)]

    def outcomes(self) -> dict[tuple[Hashable, Any], float]:
        """Outcomes by series and time; raises if two of them differ."""
        found: dict[tuple[Hashable, Any], float] = {}
        for key, time, y in zip(self.keys, self.time.tolist(), self.y.tolist(), strict=True):
            if y == y and found.setdefault((key, time), y) != y:
                raise ValueError(
                    f"expected one outcome{of_series(key)} at each time, got {found[key, time]:g} and {y:g}"
                )
        return found


def _check(given: _Input, past: _Input | None, panel: PanelState | None) -> None:
    if past is None:
        if given.cutoff is None and panel is None:
            raise ValueError("expected history= or state=, to learn from, got neither")
        return
    if np.isnan(past.y).all():
        raise ValueError(f"expected outcomes in a column {past.names['y']!r} of history, got {listed(past.labels)}")
    if past.cutoff is None and panel is None:
        raise ValueError(f"expected a column {CUTOFF!r} in history, as cross_validation gives it, or state=, got none")
    if past.kind != given.kind:
        raise ValueError(f"expected times in history as in forecasts, {given.kind}, got {past.kind}")
    if panel is None and given.keys and past.keys and not set(given.keys) & set(past.keys):
        raise ValueError(
            f"expected series of the forecasts in history, got {short(past.keys[0])} there and "
            f"{short(given.keys[0])} here, and none in both"
        )


def _check_history(given: _Input, past: _Input, forms: Sequence[Any]) -> None:
    """Refuse a history without the columns of the forecasts, warn if its intervals are of another width."""
    needed = [label for label in given.others if label == "h" or any(label in form.columns for form in forms)]
    missing = [label for label in needed if label not in past.others]
    if missing:
        raise ValueError(f"expected the columns of the forecasts in history, got none named {listed(missing, 'or')}")
    for form in forms:
        if len(form.columns) < 2:
            continue
        ends = form.columns[0], form.columns[-1]
        widths = [np.abs(each.frame.numbers(ends[1]) - each.frame.numbers(ends[0])) for each in (given, past)]
        if not all((width > 0.0).any() for width in widths):
            continue
        mine, theirs = (float(np.median(width[width > 0.0])) for width in widths)
        if max(mine / theirs, theirs / mine) > KINDS_APART:
            warn_user(
                f"the intervals of {form.model} are {mine / theirs:.2g} times as wide as in history: cross_validation "
                "with refit=True and the same h makes forecasts of the same kind",
                UserWarning,
            )


# --- one frame of both
class _Rows(NamedTuple):
    """Rows of the frame that is recalibrated; other columns are those of `source`, or `values` by label."""

    keys: list[Hashable]
    time: Vector
    cutoff: Vector
    y: Vector
    source: _Input | None
    values: Mapping[Any, list[Any]] = {}


def _combined(given: _Input, past: _Input | None, panel: PanelState | None, horizon: Any) -> Any:
    """One frame: the forecasts, then the history, or the outcomes of what is pending in the state."""
    mine = _Rows(given.keys, given.time, _cutoffs(given, past, panel), given.y, given)
    if past is None:
        return _frame(given, [mine])
    if past.cutoff is not None:
        return _frame(given, [mine, _Rows(past.keys, past.time, past.cutoff, past.y, past)])
    assert panel is not None
    known = past.outcomes()
    here = list(zip(given.keys, given.time.tolist(), strict=True))
    y = np.array([known.get(at, own) for at, own in zip(here, given.y.tolist(), strict=True)], dtype=np.float64)
    return _frame(given, [mine._replace(y=y), _settled(given, known, set(here), panel, horizon)])


def _settled(given: _Input, known: Mapping[Any, float], here: set[Any], panel: PanelState, horizon: Any) -> _Rows:
    """Rows without a forecast that bring the outcomes of pending ones, beside those of the forecasts themselves."""
    content = panel.content
    found = {
        (key, time): (cutoff, step, low, high)
        for key, step, cutoff, time, low, high in content.pending_rows(content.models)
        if (key, time) in known and (key, time) not in here
    }
    y = [known[at] for at in found]
    for (key, _), outcome, (*_, low, high) in zip(found, y, found.values(), strict=True):
        if not max(low, -LARGEST) <= outcome <= min(high, LARGEST):
            warn_user(f"an outcome outside the bounds was not used: {outcome:g}{of_series(key)}", UserWarning)
    keys = [key for key, _ in found]
    values: dict[Any, list[Any]] = {horizon: [each[1] for each in found.values()]}
    options = content.options
    pools = options.pool if options is not None and isinstance(options.pool, list) else []
    for place, column in enumerate(pools):
        groups: list[Any] = [content.groups.get(key) for key in keys]
        values[column] = groups if len(pools) == 1 else [group and group[place] for group in groups]
    for place, side in enumerate(("low", "high"), 2):
        bound = getattr(options, side, None)
        if isinstance(bound, str):
            values[bound] = [each[place] for each in found.values()]
    kind = given.time.dtype
    time, cutoff = np.array([t for _, t in found], dtype=kind), np.array([c for c, *_ in found.values()], dtype=kind)
    return _Rows(keys, time, cutoff, np.array(y, dtype=np.float64), None, values)


def _frame(given: _Input, parts: Sequence[_Rows]) -> Any:
    """A frame of the rows of some parts, with the columns of the forecasts."""
    names = given.names
    data: dict[Any, Any] = {
        names["series"]: [key for part in parts for key in part.keys],
        names["time"]: _times(given.kind, [part.time for part in parts]),
        CUTOFF: _times(given.kind, [part.cutoff for part in parts]),
        names["y"]: np.concatenate([part.y for part in parts]),
    }
    for label in given.others:
        numeric = given.frame.holds_numbers(label)
        column: list[Any] = []
        for part in parts:
            if part.source is not None and label in part.source.others:
                frame = part.source.frame
                column += frame.numbers(label).tolist() if numeric else frame.column(label).to_list()
            else:
                column += part.values.get(label, [np.nan if numeric else None] * len(part.keys))
        data[label] = np.array(column) if numeric else column
    table = nw.from_dict(data, backend=given.frame.table.implementation)
    if given.kind == "dates with a zone":
        table = table.with_columns(nw.col(names["time"], CUTOFF).dt.replace_time_zone("UTC"))
    return table.to_native()


def _times(kind: str, parts: Sequence[Vector]) -> Vector:
    whole = np.concatenate(parts)
    if kind.startswith("dates"):
        return whole.astype("datetime64[ns]")
    return whole.astype("timedelta64[ns]") if kind == "durations" else whole


# --- when forecasts without a cutoff were issued
def _cutoffs(given: _Input, past: _Input | None, panel: PanelState | None) -> Vector:
    """Cutoffs of the forecasts; those without one were issued at the last known time of their series."""
    if given.cutoff is not None:
        return given.cutoff
    seen = {} if panel is None else panel.content.calendar
    windows = {key: [(cutoff, time) for cutoff, time in each.tolist()] for key, each in seen.items()}
    known: dict[Hashable, list[Any]] = {}
    if past is not None:
        for key, time, y in zip(past.keys, past.time.tolist(), past.y.tolist(), strict=True):
            if y == y:
                known.setdefault(key, []).append(time)
        if past.cutoff is not None:
            for key, cutoff, time in zip(past.keys, past.cutoff.tolist(), past.time.tolist(), strict=True):
                windows.setdefault(key, []).append((cutoff, time))
    rows: dict[Hashable, list[int]] = {}
    for row, key in enumerate(given.keys):
        rows.setdefault(key, []).append(row)
    found = np.zeros_like(given.time)
    for key, mine in rows.items():
        found[mine] = _cutoff(key, np.unique(given.time[mine]), known.get(key, []), windows.get(key, []))
    return found


def _cutoff(key: Hashable, times: Vector, known: list[Any], windows: list[tuple[Any, Any]]) -> Any:
    """The cutoff of a series' forecasts, given times of known outcomes, and cutoffs and times of earlier windows."""
    first = times[0]
    by_cutoff: dict[Any, list[Any]] = {}
    for cutoff, time in windows:
        by_cutoff.setdefault(cutoff, []).append(time)
    again = [cutoff for cutoff, each in by_cutoff.items() if min(each) == first]
    if again:  # the same window, recalibrated again
        return max(again)
    before = np.array(sorted({t for t in (*known, *by_cutoff, *(t for _, t in windows)) if t < first}), times.dtype)
    usual = np.concatenate((np.diff(before), np.diff(times)))
    next_to = len(before) and not (len(usual) and first - before[-1] > max(1.5 * np.median(usual), usual.max()))
    most = max((len(set(each)) for each in by_cutoff.values()), default=0)
    if len(times) < most and not (next_to and before[-1] in {*known, *by_cutoff}):
        raise ValueError(
            f"expected forecasts{of_series(key)} that begin right after the outcomes that are known, or all {most} "
            f"steps, got {len(times)}: a column {CUTOFF!r} with the time that they were issued at settles it"
        )
    # a whole window long after what is known was issued one step before its first time
    return before[-1] if next_to else first - (np.median(usual).astype(times.dtype) if len(usual) else 1)


# --- columns
def _columns(given: _Input, after: Any, replace: bool) -> Any:
    """The forecasts as they came, with the columns that are new or replaced."""
    new: dict[Any, Any] = {}
    for label in after.columns:
        if label in given.others and given.frame.holds_numbers(label):
            column = after.get_column(label).head(len(given.keys))
            if not np.array_equal(given.frame.numbers(label), column.to_numpy(), equal_nan=True):
                new[label] = column
        elif label not in (*given.labels, *given.names.values(), CUTOFF):
            ending = str(label).rpartition("_orcast_")[2]
            if not replace or ending not in CERTIFICATE:
                new[str(label).replace("_orcast", "", 1) if replace else label] = after.get_column(label).head(
                    len(given.keys)
                )
    table = given.frame.table
    columns = [column.alias(name) for name, column in new.items()]
    if table.implementation.is_pandas_like():
        index = table.to_native().index
        columns = [nw.from_native(each.to_native().set_axis(index), series_only=True) for each in columns]
    result = table.with_columns(columns)
    return result if given.frame.wrapped else result.to_native()


def _levels(level: Any) -> list[float] | None:
    """Levels of quantiles from intervals in percent.

    >>> _levels([80, 95])
    [0.025, 0.1, 0.9, 0.975]
    """
    if level is None:
        return None
    if isinstance(level, (str, bytes, Mapping)) or not isinstance(level, (Iterable, Real)):
        raise TypeError(f"expected level= as intervals in percent, such as [80, 95], got {short(level)}")
    found = []
    for each in list(level) if isinstance(level, Iterable) else [level]:
        share = number(each, "level in percent")
        if not 0.0 < share < 100.0:
            raise ValueError(f"expected levels in percent, between 0 and 100, got {short(each)}")
        found += [round((100.0 - share) / 200.0, 12), round((100.0 + share) / 200.0, 12)]
    return sorted(set(found))
