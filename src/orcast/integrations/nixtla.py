"""Nixtla: the frames of statsforecast, mlforecast and neuralforecast, with intervals that stay calibrated.

    cv = sf.cross_validation(df=df, h=24, n_windows=60, step_size=24, level=[80, 95])
    tomorrow = recalibrate(sf.forecast(df=df, h=24, level=[80, 95]), cv)

The forecasts come back in the columns that they came in.  Frames are all that is looked at, of pandas or polars, so
none of the three libraries has to be installed.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.checks import number, short
from orcast.panel.call import recalibrate as recalibrate_frame
from orcast.panel.columns import Form, Layout, find, outcomes_in
from orcast.panel.frame import Codes, Frame
from orcast.panel.names import listed
from orcast.panel.play import SERIAL as SAID_SERIAL
from orcast.panel.play import WAIT_HIGH, WAIT_LOW, WAIT_SERIAL
from orcast.panel.state import PanelState, check_unchanged, open_state
from orcast.panel.workers import Progress
from orcast.payoffs import Payoff

__all__ = ["recalibrate"]

Array = NDArray[np.float64]
AnyFrame = TypeVar("AnyFrame")

# How Nixtla names columns, and how they are named in the frame that is played.
ID, TIME, TARGET, CUTOFF = "unique_id", "ds", "y", "cutoff"
ROLES = (ID, TIME, TARGET, CUTOFF)


def recalibrate(
    forecasts: AnyFrame,
    history: Any = None,
    *,
    model: Any = None,
    low: Any = None,
    high: Any = None,
    level: Sequence[float] | None = None,
    payoff: Payoff | None = None,
    state: PanelState | str | os.PathLike[str] | None = None,
    replace: bool = True,
    outside: str = "report",
    workers: int | None = None,
    progress: bool | Progress = False,
    id_col: str = ID,
    time_col: str = TIME,
    target_col: str = TARGET,
) -> AnyFrame:
    """Recalibrate a frame of forecasts by what came of earlier ones; the same frame comes back, with better numbers.

    ``forecasts`` is what ``predict`` or ``forecast`` returned, for any number of series and models.  ``history`` is

    - what ``cross_validation`` returned, with the same models and levels, overlapping windows or not; or
    - outcomes alone (``unique_id``, ``ds``, ``y``, such as the frame that the models were fitted to), if a ``state``
      remembers the forecasts that wait for them.

    Each model, series and step ahead has a game of its own, which the same step of earlier windows has taught: a step
    beyond those of the history, and a series that is not in it, begin with nothing known.  No forecast knows an outcome
    of its first time or later.  A frame of ``cross_validation`` may also be given alone, and each of its windows then
    knows the outcomes up to its cutoff: how good the forecasts would have been.

    ``level`` are intervals in percent, as everywhere in Nixtla, beside those that are there; models without intervals
    get those of 80 and 95, from their past errors.  The calibrated numbers take the place of the model's (the column
    of the model itself holds the median then, or the mean if there is a column ``MODEL-median``).  ``replace=False``
    leaves these alone, and puts columns named ``MODEL_orcast`` beside them, with the certificate of each row.

    ``state`` is a file, or a :class:`orcast.PanelState`, that goes on from call to call:

        recalibrate(sf.forecast(df=df, h=24, level=[90]), cv, state="load.orcast")              # the first day
        recalibrate(sf.forecast(df=newer, h=24, level=[90]), newer, state="load.orcast")        # each day after it

    It is the same as for :func:`orcast.recalibrate`, as are ``model``, ``low``, ``high``, ``payoff``, ``outside``,
    ``workers`` and ``progress``.  In what is said of rows, those of the history are counted after those of the
    forecasts.

    >>> import numpy as np, pandas as pd
    >>> days = pd.date_range("2026-01-01", periods=62)
    >>> y = 100 + np.random.default_rng(0).normal(0, 10, 60)
    >>> said = {"ETS": 100.0, "ETS-lo-90": 95.0, "ETS-hi-90": 105.0}  # far too narrow
    >>> cv = pd.DataFrame({"unique_id": "A", "ds": days[1:60], "cutoff": days[:59], "y": y[1:]}).assign(**said)
    >>> after = recalibrate(pd.DataFrame({"unique_id": "A", "ds": days[60:61]}).assign(**said), cv)
    >>> list(after.columns), bool(after["ETS-hi-90"][0] - after["ETS-lo-90"][0] > 25)
    (['unique_id', 'ds', 'ETS', 'ETS-lo-90', 'ETS-hi-90'], True)
    """
    names = {ID: id_col, TIME: time_col, TARGET: target_col, CUTOFF: CUTOFF}
    given = _Table(forecasts, names, "forecasts")
    past = None if history is None else _Table(history, names, "history")
    levels = _levels(level)
    panel, path, was = open_state(state)
    work = _Work(given, past, panel, model, payoff)
    after = recalibrate_frame(
        work.frame(),
        model=model,
        low=low,
        high=high,
        levels=levels,
        payoff=payoff,
        state=panel,
        workers=workers,
        progress=progress,
        outside=outside,
    )
    result: AnyFrame = given.frame.with_columns(
        work.columns(Frame(after), levels, replace=bool(replace)),
        without=() if replace else work.layout.earlier(given.frame.table.columns),
    )
    if panel is not None and path is not None:
        check_unchanged(path, was)
        panel.save(path)
    return result


def _levels(level: Any) -> list[float] | None:
    """Levels of quantiles from intervals in percent.

    >>> _levels([80, 95])
    [0.025, 0.1, 0.9, 0.975]
    """
    if level is None:
        return None
    if isinstance(level, (str, bytes, Mapping)) or not isinstance(level, (Iterable, int, float)):
        raise TypeError(f"expected level= as intervals in percent, such as [80, 95], got {short(level)}")
    every = list(level) if isinstance(level, Iterable) else [level]
    found = []
    for each in every:
        share = number(each, "level in percent")
        if not 0.0 < share < 100.0:
            raise ValueError(f"expected levels in percent, between 0 and 100, got {short(each)}")
        found += [round((100.0 - share) / 200.0, 12), round((100.0 + share) / 200.0, 12)]
    return sorted(set(found))


# --- reading


class _Table:
    """One of the two frames: its series and times, and its other columns when they are asked for."""

    def __init__(self, native: Any, names: Mapping[str, str], what: str) -> None:
        self.frame = Frame(native)
        self.names, self.what = names, what
        self.labels = list(self.frame.searched.columns)
        missing = [names[role] for role in (ID, TIME) if names[role] not in self.labels]
        if missing:
            raise ValueError(
                f"expected a column {missing[0]!r} in {what}, got {listed(self.labels)}"
                " (id_col=, time_col= and target_col= say other names)"
            )
        self.codes, self.keys = self.frame.keys([names[ID]])
        self.times = self.frame.times(names[TIME])
        self.cutoffs = self.frame.times(CUTOFF, "cutoff") if CUTOFF in self.labels else None
        if self.cutoffs is not None and self.cutoffs.kind != self.times.kind:
            raise ValueError(
                f"expected times and cutoffs of one kind in {what}, got {self.times.kind} and {self.cutoffs.kind}"
            )
        self.y = self.frame.numbers(names[TARGET]) if names[TARGET] in self.labels else None
        taken = {names[role] for role in ROLES}
        self.others = [label for label in self.labels if label not in taken and str(label) not in ROLES]

    def __len__(self) -> int:
        return self.frame.rows

    def numeric(self, label: Any) -> bool:
        return self.frame.holds_numbers(label)


@dataclass(frozen=True)
class _Rows:
    """Rows of the frame that is played: forecasts, the history, outcomes of forecasts that wait."""

    keys: list[Hashable]
    time: NDArray[Any]
    cutoff: NDArray[Any]
    y: Array
    others: dict[Any, Any]


class _Work:
    """One call: both frames and the state put together into one frame, and taken apart again."""

    def __init__(
        self, given: _Table, past: _Table | None, panel: PanelState | None, model: Any, payoff: Payoff | None
    ) -> None:
        self.given, self.past, self.panel = given, past, panel
        self.kind = given.times.kind
        self.numbers = [label for label in given.others if given.numeric(label)]
        self.features = [] if payoff is None else [label for label in given.others if label not in self.numbers]
        self._check()
        self.outcomes = np.full(len(given), np.nan) if given.y is None else given.y.copy()
        self.layout = self._layout(model)
        self.cutoff = self._cutoff()
        self.rows = [_Rows(self._keys(given), given.times.values, self.cutoff, self.outcomes, self._others(given))]
        if past is not None and self._taught():
            self.rows.append(self._windows(past))
        elif past is not None:
            self.rows.append(self._settled(past))

    def _check(self) -> None:
        given, past = self.given, self.past
        if past is None:
            if given.y is None or np.isnan(given.y).all():
                if self.panel is None:
                    raise ValueError("expected history= or state=, to learn from, got neither")
            elif given.cutoffs is None:
                raise ValueError(
                    f"expected a column {CUTOFF!r} beside the outcomes in {given.names[TARGET]!r}, as cross_validation "
                    "gives it, got none (orcast.recalibrate takes rows that are one step ahead each)"
                )
            return
        if past.y is None:
            raise ValueError(f"expected a column {past.names[TARGET]!r} in history, got {listed(past.labels)}")
        if past.times.kind != self.kind:
            raise ValueError(f"expected times in history as in forecasts, {self.kind}, got {past.times.kind}")
        if len(past) and len(given) and not set(past.keys) & set(given.keys):
            raise ValueError(
                f"expected series of the forecasts in history, got {short(past.keys[0])} there and "
                f"{short(given.keys[0])} here, and none in both"
            )

    def _layout(self, model: Any) -> Layout:
        """The models of the forecasts."""
        outcome = nw.new_series(TARGET, self.outcomes, nw.Float64, backend=self.given.frame.table.implementation)
        return find(
            [*ROLES, *self.numbers, *self.features],
            numeric=[TARGET, *self.numbers],
            model=model,
            pending=True,
            outcomes=outcomes_in(outcome),
        )

    def _taught(self) -> bool:
        """Whether the history has forecasts, or outcomes alone; it must have all columns of each model, or none."""
        past = self.past
        assert past is not None
        wanted = {
            form.model: [*form.columns, *([] if form.mean is None else [form.mean])] for form in self.layout.forms
        }
        there = set(past.others)
        if not any(column in there for columns in wanted.values() for column in columns):
            if past.cutoffs is not None or self.panel is None:
                raise ValueError(
                    f"expected the forecasts of {listed(wanted)} in history, got {listed(past.labels)}"
                    + ("" if past.cutoffs is not None else " (outcomes alone are for what waits in a state=)")
                )
            return False
        if past.cutoffs is None:
            raise ValueError(f"expected a column {CUTOFF!r} in history, as cross_validation gives it, got none")
        for columns in wanted.values():
            missing = [column for column in columns if column not in there]
            if missing:
                raise ValueError(
                    f"expected the columns of the forecasts in history, got none named {listed(missing, 'or')}"
                )
        return True

    # --- when forecasts were made
    def _cutoff(self) -> NDArray[Any]:
        """When each forecast was made: as its column says, or at the last time known before the first of its series."""
        given, past, panel = self.given, self.past, self.panel
        if given.cutoffs is not None:
            return given.cutoffs.values
        time = given.times.values
        first = _first(given.codes, time, len(given.keys))
        # next to the first, where nothing before it is known
        last = np.nextafter(first, -np.inf) if time.dtype.kind == "f" else first - 1
        known = np.zeros(len(first), dtype=bool)
        places = {key: code for code, key in enumerate(given.keys)}
        if past is not None:
            codes = np.array([places.get(key, -1) for key in past.keys], dtype=np.intp)[past.codes]
            for times in (past.times, past.cutoffs):
                if times is not None:
                    _raise_to(last, known, codes, times.values, first)
        if panel is not None and panel._terms is not None and panel._terms.kind == self.kind:
            for key, seen in panel._calendar.items():
                if key in places:
                    codes = np.full(2 * len(seen), places[key])
                    _raise_to(last, known, codes, seen.ravel(), first)
        return np.asarray(last[given.codes])

    # --- rows
    def _keys(self, table: _Table, rows: Any = slice(None)) -> list[Hashable]:
        return [table.keys[code] for code in table.codes[rows].tolist()]

    def _others(self, table: _Table, rows: Any = slice(None)) -> dict[Any, Any]:
        there = set(table.others)
        count = len(table.codes[rows])
        found: dict[Any, Any] = {}
        for label in self.numbers:
            found[label] = table.frame.numbers(label)[rows] if label in there else np.full(count, np.nan)
        for label in self.features:
            values = np.empty(len(table), dtype=object)
            values[:] = table.frame.column(label).to_list() if label in there else None
            found[label] = values[rows].tolist()
        return found

    def _windows(self, past: _Table) -> _Rows:
        """The rows of the history, of other series only where a state is to learn of them."""
        rows: Any = slice(None)
        if self.panel is None:
            mine = set(self.given.keys)
            rows = np.array([key in mine for key in past.keys], dtype=bool)[past.codes]
        assert past.cutoffs is not None
        assert past.y is not None
        return _Rows(
            self._keys(past, rows),
            past.times.values[rows],
            past.cutoffs.values[rows],
            past.y[rows],
            self._others(past, rows),
        )

    def _settled(self, past: _Table) -> _Rows:
        """Rows of forecasts that wait and whose outcome has come; those of the forecasts themselves get theirs."""
        assert self.panel is not None
        known = _Known(past)
        missing = np.flatnonzero(np.isnan(self.outcomes))
        time = self.given.times.values
        here: dict[Hashable, list[Any]] = {}
        for row, key in enumerate(self._keys(self.given)):
            here.setdefault(key, []).append(time[row])
        for key, rows in _by_key(self.given, missing).items():
            self.outcomes[rows] = known.at(key, time[rows])
        keys: list[Hashable] = []
        parts: list[NDArray[Any]] = []
        for key, waiting in _waiting(self.panel, [form.model for form in self.layout.forms]).items():
            y = known.at(key, waiting[:, 0])
            fresh = ~np.isnan(y) & ~np.isin(waiting[:, 0], here.get(key, []))
            if fresh.any():
                keys += [key] * int(fresh.sum())
                parts.append(np.column_stack((waiting[fresh], y[fresh])))
        waited = np.concatenate(parts) if parts else np.empty((0, 5), dtype=object)
        kind = np.float64 if self.kind == "numbers" else np.int64
        bounds = {"low": waited[:, 2].astype(np.float64), "high": waited[:, 3].astype(np.float64)}
        others: dict[Any, Any] = {label: np.full(len(keys), np.nan) for label in self.numbers}
        for side in ("low", "high"):
            column = getattr(self.panel._terms, side, None)
            if isinstance(column, str) and column in others:
                others[column] = bounds[side]
        others |= {label: [None] * len(keys) for label in self.features}
        return _Rows(
            keys, waited[:, 0].astype(kind), waited[:, 1].astype(kind), waited[:, 4].astype(np.float64), others
        )

    def frame(self) -> Any:
        """The frame that is played."""
        data: dict[Any, Any] = {
            ID: [key for rows in self.rows for key in rows.keys],
            TIME: self._times([rows.time for rows in self.rows]),
            CUTOFF: self._times([rows.cutoff for rows in self.rows]),
            TARGET: np.concatenate([rows.y for rows in self.rows]),
        }
        for label in self.numbers:
            data[label] = np.concatenate([rows.others[label] for rows in self.rows])
        for label in self.features:
            data[label] = [value for rows in self.rows for value in rows.others[label]]
        table = nw.from_dict(data, backend=self.given.frame.table.implementation)
        if self.kind == "dates with a zone":
            table = table.with_columns(nw.col(TIME, CUTOFF).dt.replace_time_zone("UTC"))
        return table.to_native()

    def _times(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        whole = np.concatenate(parts)
        if self.kind.startswith("dates"):
            return whole.astype("datetime64[ns]")
        return whole.astype("timedelta64[ns]") if self.kind == "durations" else whole

    # --- what comes out
    def columns(self, after: Frame, levels: list[float] | None, *, replace: bool) -> dict[Any, NDArray[Any]]:
        """The new columns of the forecasts, by name."""
        new: dict[Any, NDArray[Any]] = {}
        count = len(self.given)
        for form in self.layout.forms:
            for out in form.outputs(levels):
                values = after.numbers(out.name)[:count]
                if not replace:
                    new[out.name] = values
                elif out.column is None:
                    new[_bare(form, out.name)] = values
                else:
                    new[out.column] = np.where(np.isnan(values), self.given.frame.numbers(out.column), values)
            if not replace:
                new |= _certificate(form, after, count)
        return new


def _bare(form: Form, name: str) -> str:
    """The name of a column that came out as if it were the model's own.

    >>> layout = find(["unique_id", "ds", "y", "A"], numeric=["y", "A"])
    >>> [_bare(layout.forms[0], out.name) for out in layout.forms[0].outputs()]
    ['A-lo-95', 'A-lo-80', 'A', 'A-hi-80', 'A-hi-95']
    """
    ending = name[len(form.base) :]
    return f"{form.model}{ending}" if form.model else ending.lstrip("_")


def _certificate(form: Form, after: Frame, count: int) -> dict[Any, NDArray[Any]]:
    names = form.certificate
    holds = after.column(names["holds"]).to_list()[:count]
    return {
        names["holds"]: np.array([-1 if each is None or each != each else int(each) for each in holds], dtype=np.int8),
        names["promised"]: after.numbers(names["promised"])[:count],
        names["miscalibration"]: after.numbers(names["miscalibration"])[:count],
        names["status"]: np.array(after.column(names["status"]).to_list()[:count], dtype=object),
    }


# --- times


def _first(codes: Codes, time: NDArray[Any], count: int) -> NDArray[Any]:
    """The first time of each series."""
    order = np.lexsort((time, codes))
    at = np.searchsorted(codes[order], np.arange(count))
    return np.asarray(time[order[at]])


def _raise_to(
    last: NDArray[Any], known: NDArray[np.bool_], codes: Codes, times: NDArray[Any], first: NDArray[Any]
) -> None:
    """The last of the known times that come before the first of each series."""
    early = codes >= 0
    early[early] = times[early] < first[codes[early]]
    best = np.full(len(last), times.min(initial=0) - 1, dtype=times.dtype)
    np.maximum.at(best, codes[early], times[early])
    found = np.zeros(len(last), dtype=bool)
    found[codes[early]] = True
    last[found] = np.where(known[found], np.maximum(last[found], best[found]), best[found])
    known |= found


def _by_key(table: _Table, rows: NDArray[np.intp]) -> dict[Hashable, NDArray[np.intp]]:
    """Rows of a frame by series."""
    order = rows[np.argsort(table.codes[rows], kind="stable")]
    ends = np.searchsorted(table.codes[order], np.arange(len(table.keys) + 1))
    return {key: order[ends[i] : ends[i + 1]] for i, key in enumerate(table.keys) if ends[i] < ends[i + 1]}


class _Known:
    """Outcomes by series and time."""

    def __init__(self, table: _Table) -> None:
        assert table.y is not None
        there = np.flatnonzero(~np.isnan(table.y))
        self.times, self.y = table.times.values, table.y
        self.rows = {
            key: rows[np.argsort(self.times[rows], kind="stable")] for key, rows in _by_key(table, there).items()
        }

    def at(self, key: Hashable, times: Any) -> Array:
        """The outcomes at some times; nan where there is none."""
        rows = self.rows.get(key)
        if rows is None:
            return np.full(len(times), np.nan)
        known = self.times[rows]
        wanted = np.asarray(times).astype(known.dtype)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.y[rows[place]], np.nan)


def _waiting(panel: PanelState, models: Iterable[str]) -> dict[Hashable, NDArray[Any]]:
    """Of each series the times that forecasts wait for: time, a cutoff, and the bounds, a row each."""
    found: dict[Hashable, dict[Any, list[Any]]] = {}
    for model in models:
        book = panel._models.get(model)
        for (key, _), stream in () if book is None else book.streams.items():
            if not len(stream.pages):
                continue
            places = {serial: place for place, serial in enumerate(stream.said[:, SAID_SERIAL].tolist())}
            for page in stream.pages:
                cutoff, time = stream.when[places[float(page[WAIT_SERIAL])]].tolist()
                found.setdefault(key, {})[time] = [time, cutoff, float(page[WAIT_LOW]), float(page[WAIT_HIGH])]
    # objects: whole numbers of nanoseconds stay whole
    return {key: np.array(list(times.values()), dtype=object) for key, times in found.items()}
