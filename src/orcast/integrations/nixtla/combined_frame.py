"""Both frames and the state, put together into the frame that is played, and taken apart again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.features import feature_names
from orcast.integrations.common import KINDS_APART
from orcast.integrations.nixtla.cadence import NEAR, Cadence, Stamps, Windows, cadence_of, joined
from orcast.integrations.nixtla.input_frames import CUTOFF, ID, ROLES, TARGET, TIME, ByTime, InputFrame, known_outcomes
from orcast.panel.column_names import listed, of_series, owner_of, rows_text
from orcast.panel.columns import ColumnLayout, Form, find, outcomes_in
from orcast.panel.frame import Codes, show_time
from orcast.panel.frame_run import FrameRun
from orcast.panel.state import PanelState
from orcast.panel.statuses import Status
from orcast.payoffs import Payoff
from orcast.spaces.base import LARGEST
from orcast.validation import short, warn_user

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rows of the frame that is played: forecasts, the history, outcomes of pending forecasts, steps that are missing.

    Their other columns are those of the rows ``source`` of both frames, one after the other, where -1 is none (or, with
    ``repeats``, of the rows before these), less those in ``values``.
    """

    codes: Codes
    time: NDArray[Any]
    cutoff: NDArray[Any]
    y: Array
    source: Codes
    values: dict[Any, NDArray[Any]] = field(default_factory=dict)
    repeats: bool = False


class CombinedFrame:
    """One call: both frames and the state put together into one frame, and taken apart again."""

    def __init__(
        self,
        given: InputFrame,
        past: InputFrame | None,
        panel: PanelState | None,
        model: Any,
        payoff: Payoff | None,
        pool: bool | tuple[Any, ...],
    ) -> None:
        self.given, self.past, self.panel, self.payoff = given, past, panel, payoff
        self.kind = given.times.kind
        self.pooled = pool is not False
        self.pool_columns = self._pool_columns(pool)
        self.numbers = [label for label in given.others if given.numeric(label) and label not in self.pool_columns]
        self.features = list(self.pool_columns)
        if payoff is not None:
            self.features = [label for label in given.others if label not in self.numbers]
        self._check()
        self.outcomes = np.full(len(given), np.nan) if given.y is None else given.y.copy()
        self.layout = self._layout(model)
        self.with_forecasts = past is not None and self._has_forecasts()
        self.places = {key: code for code, key in enumerate(self._every_key())}
        self.seen = self._seen()
        self.cadence = self._cadence(past if self.with_forecasts else None)
        self.cutoff = self._cutoff()
        self.outside: list[str] = []  # outcomes that cannot be, of pending forecasts
        self.rows = [
            Rows(given.codes, given.times.values, self.cutoff, self.outcomes, np.arange(len(given), dtype=np.intp))
        ]
        if past is not None:
            self.rows.append(self._windows(past) if self.with_forecasts else self._settled(past))
        if self.layout.horizon is None:
            self.rows.append(self._skipped())

    def _pool_columns(self, pool: bool | tuple[Any, ...]) -> tuple[Any, ...]:
        """The columns that tell pools apart: those of the call, or those that the state began with."""
        options = None if self.panel is None else self.panel.content.options
        if pool is True and options is not None and isinstance(options.pool, list):
            pool = tuple(options.pool)
        columns = pool if isinstance(pool, tuple) else ()
        for name in columns:
            if name not in self.given.others:
                raise ValueError(f"expected pool= as columns of the forecasts, got {name!r}")
        return columns

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
        if self.panel is None and len(past) and len(given) and not set(past.keys) & set(given.keys):
            raise ValueError(
                f"expected series of the forecasts in history, got {short(past.keys[0])} there and "
                f"{short(given.keys[0])} here, and none in both"
            )

    def _layout(self, model: Any) -> ColumnLayout:
        """The models of the forecasts."""
        every = [self.outcomes, *([] if self.past is None or self.past.y is None else [self.past.y])]
        backend = self.given.frame.table.implementation
        outcome = nw.new_series(TARGET, np.concatenate(every), nw.Float64, backend=backend)
        return find(
            [*ROLES, *self.numbers, *self.features],
            numeric=[TARGET, *self.numbers],
            model=model,
            pending=True,
            outcomes=outcomes_in(outcome),
        )

    def _has_forecasts(self) -> bool:
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
                    + ("" if past.cutoffs is not None else " (outcomes alone are for what is pending in a state=)")
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
        if self.layout.horizon is not None and self.layout.horizon not in there:
            raise ValueError(f"expected the column {self.layout.horizon!r} of the steps in history too, got none")
        missing = [column for column in self.pool_columns if column not in there]
        if missing:
            raise ValueError(f"expected the column {missing[0]!r} of pool= in history too, got none")
        return True

    # --- when forecasts were made, and for which step
    def _every_key(self) -> dict[Hashable, None]:
        """The series of the forecasts, under the codes that they have there, and then all others."""
        past, panel = self.past, self.panel
        more = [] if past is None else past.keys
        return dict.fromkeys([*self.given.keys, *more, *([] if panel is None else panel.content.calendar)])

    def _codes(self, table: InputFrame) -> Codes:
        return np.array([self.places[key] for key in table.keys], dtype=np.intp)[table.codes]

    def _seen(self) -> Stamps:
        """The windows that the state knows."""
        options = None if self.panel is None else self.panel.content.options
        if self.panel is None or options is None or options.kind != self.kind or not self.panel.content.calendar:
            empty = self.given.times.values[:0]
            return np.empty(0, dtype=np.intp), empty, empty
        calendar = self.panel.content.calendar
        stamps = np.concatenate(list(calendar.values()))
        codes = np.repeat([self.places[key] for key in calendar], [len(each) for each in calendar.values()])
        return codes.astype(np.intp), stamps[:, 0], stamps[:, 1]

    def _cadence(self, past: InputFrame | None) -> Cadence:
        given = self.given
        parts = [
            (self._codes(table), table.cutoffs.values, table.times.values)
            for table in (given, past)
            if table is not None and table.cutoffs is not None
        ]
        some = slice(None if given.cutoffs is None else 0)
        time = given.times.values[some]
        return cadence_of(Windows(*joined([self.seen, *parts])), Windows(given.codes[some], np.zeros_like(time), time))

    def _cutoff(self) -> NDArray[Any]:
        """When each forecast was made: as its column says; as when it came before; or at the last time known before it.

        A window that does not begin right after what is known was made later, if it has all its steps.
        """
        given, past, cadence = self.given, self.past, self.cadence
        if given.cutoffs is not None:
            return given.cutoffs.values
        time, count = given.times.values, len(given.keys)
        first = np.full(count, time.max(initial=0), dtype=time.dtype)
        np.minimum.at(first, given.codes, time)
        nothing = -np.inf if time.dtype.kind == "f" else np.iinfo(time.dtype).min
        last = np.full(count, nothing, dtype=time.dtype)
        if past is not None and past.y is not None:
            codes, came = self._codes(past), ~np.isnan(past.y)
            _raise_to(last, codes[came], past.times.values[came], first)
            if past.cutoffs is not None:
                _raise_to(last, codes, past.cutoffs.values, first)
        steps = np.where(last > nothing, cadence.steps(last, first), np.inf)
        next_to = np.abs(steps - 1.0) <= NEAR
        later = steps > 1.0
        for stamps in self.seen[1:]:
            _raise_to(last, self.seen[0], stamps, np.where(next_to, last, first))
        # next to the first, where nothing before it is known
        just_before = np.nextafter(first, -np.inf) if time.dtype.kind == "f" else first - 1
        last = np.where(last > nothing, last, just_before)
        windows = Windows(*self.seen)
        begins = windows.rank == 1
        codes, cutoff, times = windows.codes[begins], windows.cutoff[begins], windows.time[begins]
        again = codes < count
        again[again] = times[again] == first[codes[again]]
        sizes = np.bincount(given.codes, minlength=count)
        if cadence.even:
            made = first - cadence.lead if time.dtype.kind == "f" else first - round(cadence.lead)
            last = np.where(later & ~next_to, made, last)
        last[codes[again]] = cutoff[again]
        same = np.zeros(count, dtype=bool)
        same[codes[again]] = True
        lost = ~(next_to | same) & (sizes < cadence.most)
        if self.layout.horizon is None and lost.any():
            at = int(lost.argmax())
            raise ValueError(
                f"expected forecasts{of_series(given.keys[at])} that begin right after the outcomes that are known, or "
                f"all {cadence.most} steps, got {sizes[at]} from {show_time(self.kind, first[at])} on: a column "
                f"{CUTOFF!r} with the time that they were made at settles it"
            )
        return np.asarray(last[given.codes])

    def _skipped(self) -> Rows:
        """Rows without forecasts for the steps that a window lacks, so that all others have their place."""
        cadence = self.cadence
        mine = joined([(rows.codes, rows.cutoff, rows.time) for rows in self.rows])
        windows = Windows(*joined([mine, self.seen]))
        own = windows.order < len(mine[0])
        touched = np.bincount(windows.which, own, minlength=len(windows.sizes))[windows.which] > 0
        lacks, bad = cadence.lacks(windows, weekly=self.kind.startswith("dates"))
        bad = touched & (bad | (~own & (lacks > 0)))
        if bad.any():
            at = int(bad.argmax())
            key = list(self.places)[windows.codes[at]]
            size, made = windows.sizes[windows.which[at]], show_time(self.kind, windows.cutoff[at])
            raise ValueError(
                f"expected windows of {cadence.most} steps, or times that tell the step, got {size}{of_series(key)} "
                f"from the cutoff {made}: a column 'h' with the step ahead, in both frames, settles it"
            )
        rows, time = cadence.skipped(windows, np.where(touched, lacks, 0))
        nothing = np.full(len(rows), np.nan)
        values = {label: nothing for label in self._forecast_columns() if label in self.numbers}
        source = windows.order[rows]
        return Rows(mine[0][source], time, windows.cutoff[rows], nothing, source, values, repeats=True)

    def _forecast_columns(self) -> set[Any]:
        return {column for form in self.layout.forms for column in (*form.columns, form.mean) if column is not None}

    # --- rows
    def _windows(self, past: InputFrame) -> Rows:
        """The rows of the history, of other series only where a state or a pool is to learn of them."""
        mine = set(past.keys if self.panel is not None or self.pooled else self.given.keys)
        rows = np.flatnonzero(np.array([key in mine for key in past.keys], dtype=bool)[past.codes])
        assert past.cutoffs is not None
        assert past.y is not None
        time, cutoff = past.times.values[rows], past.cutoffs.values[rows]
        return Rows(self._codes(past)[rows], time, cutoff, past.y[rows], len(self.given) + rows)

    def _settled(self, past: InputFrame) -> Rows:
        """Rows of pending forecasts whose outcome has come; those of the forecasts themselves get theirs."""
        assert self.panel is not None
        known, mine, time = known_outcomes(past, self._codes(past)), self.given.codes, self.given.times.values
        missing = np.isnan(self.outcomes)
        self.outcomes[missing] = known.at(mine[missing], time[missing])
        models = [form.model for form in self.layout.forms]
        found = {
            (key, time): (self.places[key], time, cutoff, low, high, horizon)
            for key, horizon, cutoff, time, low, high in self.panel.content.pending_rows(models)
        }
        # objects: whole numbers of nanoseconds stay whole
        pending = np.array(list(found.values()), dtype=object).reshape(-1, 6)
        kind = np.float64 if self.kind == "numbers" else np.int64
        codes, time = pending[:, 0].astype(np.intp), pending[:, 1].astype(kind)
        y = known.at(codes, time)
        here = ByTime(mine, self.given.times.values, np.zeros(len(mine)))
        fresh = ~np.isnan(y) & np.isnan(here.at(codes, time))
        codes, time, y, pending = codes[fresh], time[fresh], y[fresh], pending[fresh]
        low, high, step = pending[:, 3:].astype(np.float64).T
        keys = list(self.places)
        for at in np.flatnonzero((y < np.maximum(low, -LARGEST)) | (y > np.minimum(high, LARGEST))).tolist():
            self.outside.append(f"{y[at]:g}{of_series(keys[codes[at]])} at {show_time(self.kind, time[at])}")
        values: dict[Any, NDArray[Any]] = {self.layout.horizon: step}
        groups: list[Any] = [self.panel.content.groups.get(keys[code]) for code in codes.tolist()]
        for i, column in enumerate(self.pool_columns):
            own = groups if len(self.pool_columns) == 1 else [None if group is None else group[i] for group in groups]
            values[column] = np.fromiter(own, dtype=object, count=len(own))
        for side, bounds in (("low", low), ("high", high)):
            column = getattr(self.panel.content.options, side, None)
            if isinstance(column, str):
                values[column] = bounds
        return Rows(codes, time, pending[:, 2].astype(kind), y, np.full(len(codes), -1), values)

    def frame(self) -> Any:
        """The frame that is played."""
        keys = list(self.places)
        data: dict[Any, Any] = {
            ID: [keys[code] for rows in self.rows for code in rows.codes.tolist()],
            TIME: self._times([rows.time for rows in self.rows]),
            CUTOFF: self._times([rows.cutoff for rows in self.rows]),
            TARGET: np.concatenate([rows.y for rows in self.rows]),
        }
        data |= {label: self._column(label, np.float64, np.nan) for label in self.numbers}
        data |= {label: self._column(label, object, None).tolist() for label in self.features}
        table = nw.from_dict(data, backend=self.given.frame.table.implementation)
        if self.kind == "dates with a zone":
            table = table.with_columns(nw.col(TIME, CUTOFF).dt.replace_time_zone("UTC"))
        return table.to_native()

    def _column(self, label: Any, kind: Any, nothing: Any) -> NDArray[Any]:
        """One of the other columns of the frame that is played."""
        found = [np.array([nothing], dtype=kind)]
        for table in (self.past if self.with_forecasts else None, self.given):
            if table is None:
                continue
            if label not in table.others:
                found.append(np.full(len(table), nothing, dtype=kind))
            elif kind is object:
                found.append(np.fromiter(table.frame.column(label).to_list(), dtype=object))
            else:
                found.append(table.frame.numbers(label))
        both = np.concatenate(found[::-1])
        column = both[:0]
        for rows in self.rows:
            here = rows.values.get(label)
            column = np.concatenate((column, (column if rows.repeats else both)[rows.source] if here is None else here))
        return column

    def _times(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        whole = np.concatenate(parts)
        if self.kind.startswith("dates"):
            return whole.astype("datetime64[ns]")
        return whole.astype("timedelta64[ns]") if self.kind == "durations" else whole

    # --- what comes out
    def report(self, run: FrameRun, model: Any, bounds: tuple[Any, Any], outside: str, *, replace: bool) -> None:
        """Warn of what was left alone."""
        if self.outside and outside == "report":
            more = f" (and {len(self.outside) - 1} more)" if len(self.outside) > 1 else ""
            warn_user(f"outcomes that cannot be were not used: {self.outside[0]}{more}", UserWarning)
        if self.with_forecasts:
            self._report_widths()
        if model is None:
            self._report_columns(bounds)
        raw = np.zeros(len(self.given), dtype=bool)
        for each in run.models if replace else ():
            given = [self.given.frame.numbers(column) for column in each.form.columns]
            raw |= (each.status[: len(raw)] == Status.NO_FORECAST) & ~np.isnan(given).all(axis=0)
        if raw.any():
            warn_user(
                f"forecasts that are not all there, or beyond {LARGEST:g}, were left as they are, in "
                f"{rows_text(np.flatnonzero(raw))}",
                UserWarning,
            )

    def _report_widths(self) -> None:
        """Warn if forecasts are not as wide as those of the history: they were made in another way."""
        given, past = self.given, self.past
        assert past is not None
        for form in self.layout.forms:
            if len(form.columns) < 2:
                continue
            mine, theirs = (_widths(table, form.columns[0], form.columns[-1]) for table in (given, past))
            ratios = [mine[key] / theirs[key] for key in mine.keys() & theirs.keys()]
            ratio = float(np.median(ratios)) if ratios else 1.0
            if max(ratio, 1.0 / ratio) > KINDS_APART:
                warn_user(
                    f"the intervals of {form.model} are {ratio:.2g} times as wide as in history: what is applied was "
                    "learnt from forecasts of another kind (cross_validation with refit=True, and the same h, makes "
                    "them as forecast does)",
                    UserWarning,
                )

    def _report_columns(self, bounds: tuple[Any, Any]) -> None:
        """Warn of columns of numbers that nobody named, and that are no forecasts by their names."""
        forms, past = self.layout.forms, self.past
        used = self._forecast_columns()
        used |= {self.layout.horizon, *(side for side in bounds if isinstance(side, str))}
        used |= set(() if self.payoff is None else feature_names(self.payoff))
        # beside outcomes alone there may be features of the model, which are no forecasts
        there = set(self.numbers) if past is None else set(past.others)
        alone = [label for label in self.numbers if label not in used and owner_of(str(label)) is None]
        alone = [label for label in alone if (label in there) == (past is None or self.with_forecasts)]
        if alone:
            named = [*(form.model for form in forms), *alone]
            asked = f"model={named} takes them as forecasts"
            warn_user(f"columns without intervals were left alone: {listed(alone)} ({asked})", UserWarning)

    def columns(self, run: FrameRun, *, replace: bool) -> dict[Any, NDArray[Any]]:
        """The new columns of the forecasts, by name."""
        new: dict[Any, NDArray[Any]] = {}
        count = len(self.given)
        for model in run.models:
            for out, every in zip(model.outputs, model.out, strict=True):
                values = every[:count]
                if not replace:
                    new[out.name] = values
                elif out.column is None:
                    new[_bare(model.form, out.name)] = values
                else:
                    new[out.column] = np.where(np.isnan(values), self.given.frame.numbers(out.column), values)
            if not replace:
                new |= {name: values[:count] for name, values in model.certificate_columns().items()}
        return new


def _widths(table: InputFrame, low: Any, high: Any) -> dict[Hashable, float]:
    """The median distance of two columns, the upper of two, by series; of those where it is not 0."""
    width = np.abs(table.frame.numbers(high) - table.frame.numbers(low))
    known = np.flatnonzero(width > 0.0)
    order = known[np.lexsort((width[known], table.codes[known]))]
    codes, starts, counts = np.unique(table.codes[order], return_index=True, return_counts=True)
    medians = width[order[starts + counts // 2]].tolist()
    return {table.keys[code]: median for code, median in zip(codes.tolist(), medians, strict=True)}


def _bare(form: Form, name: str) -> str:
    """The name of a column that came out as if it were the model's own.

    >>> layout = find(["unique_id", "ds", "y", "A"], numeric=["y", "A"])
    >>> [_bare(layout.forms[0], out.name) for out in layout.forms[0].outputs()]
    ['A-lo-95', 'A-lo-80', 'A', 'A-hi-80', 'A-hi-95']
    """
    ending = name[len(form.base) :]
    return f"{form.model}{ending}" if form.model else ending.lstrip("_")


def _raise_to(last: NDArray[Any], codes: Codes, times: NDArray[Any], before: NDArray[Any]) -> None:
    """Raise the last known time of each of the first series to the last of these times that comes before another."""
    early = codes < len(last)
    early[early] = times[early] < before[codes[early]]
    np.maximum.at(last, codes[early], times[early])
