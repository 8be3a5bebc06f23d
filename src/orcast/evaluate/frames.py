"""Evaluations of the models in a data frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from orcast.evaluate.evaluation import Evaluation, Matrix, Places, Vector, sample_quantiles
from orcast.evaluate.information import Information
from orcast.evaluate.metrics import LEVELS

if TYPE_CHECKING:
    from orcast.frame.names import ColumnLayout, Form
    from orcast.frame.reader import Frame
    from orcast.frame.times import RowTimes

# With more rows than this a distribution is read at 19 levels instead of 99.
MANY = 200_000


def check(
    frame: Any,
    *,
    target: Any = None,
    low: Any = None,
    high: Any = None,
    lag: Any = None,
    issued_every: Any = None,
    **names: Any,
) -> list[Evaluation]:
    """Evaluate each model in a frame, before and after recalibration if the frame holds both.

    Quantiles are compared at the levels of both sides.  A mean and a spread are read as a normal distribution, members
    as an ensemble, a point as normal with the spread of its errors known by then.

    Parameters
    ----------
    frame : data frame
        Forecasts and outcomes, as for `orcast.recalibrate` or as it returns them.
    target : data frame, optional
        Outcomes, if they are not beside the forecasts.
    low, high, lag, issued_every, **names
        Bounds, publication and issue times, and names of columns, as in `orcast.recalibrate`.

    Examples
    --------
    >>> import polars as pl
    >>> from orcast.evaluate import coverage
    >>> frame = pl.DataFrame({"y": [1.0, 4.0, None], "q0.1": [0.0, 1.0, 1.0], "q0.9": [2.0, 3.0, 3.0]})
    >>> evaluation, = check(frame)
    >>> evaluation.rows, evaluation.pending, coverage(evaluation, 0.8)
    (2, 1, 0.5)
    """
    if target is not None:
        from orcast.frame.reader import Frame

        frame = Frame(frame, target, y=names.get("y"), time=names.get("time"))
    return read_rows(frame, low=low, high=high, lag=lag, issued_every=issued_every, **names).evaluations()


def read_rows(
    frame: Any,
    layout: ColumnLayout | None = None,
    *,
    low: Any = None,
    high: Any = None,
    lag: Any = None,
    issued_every: Any = None,
    **names: Any,
) -> FrameRows:
    """Read the columns, found already if there is a layout, and the times of a frame; arguments as of `check`."""
    from orcast.frame.bounds import read_bounds
    from orcast.frame.ordering import arrange
    from orcast.frame.reader import Frame, find_in
    from orcast.frame.times import checked_timing, read_row_times

    lag, issued_every = timing = checked_timing(lag, issued_every)
    layout = find_in(frame, **names) if layout is None else layout
    table = frame if isinstance(frame, Frame) else Frame(frame)
    codes, keys = table.keys(layout.series)
    times = read_row_times(table, layout, codes, keys, timing, {})
    streams = arrange(table, times, layout, codes, keys, {})  # refuses rows that nothing tells apart
    order = np.lexsort((times.cutoff, times.time, codes))
    bounds = read_bounds(low, high, table)
    ahead = None if layout.horizon is None else _steps_ahead(table, layout.horizon)
    if times.ranked:
        ahead = np.empty(order.size)
        ahead[streams.order] = np.repeat(np.array(streams.horizons, dtype=np.float64), np.diff(streams.starts))
    stamps = None if times.kind == "places" else _stamps(times)[order]
    issued, known = (None, None) if times.at_once else (times.cutoff[order], times.known[order])
    ahead = None if ahead is None else ahead[order]
    information = Information.of(
        codes[order], times.time[order], np.full(order.size, np.nan), issued, known, ahead, stamps
    )
    parts = (key if isinstance(key, tuple) else () if key is None else (key,) for key in keys)
    labels = tuple(" / ".join(map(str, each)) for each in parts)
    limits = bounds.low[order], bounds.high[order]
    # when outcomes are known says nothing of when forecasts were issued
    timed = issued_every is not None or layout.cutoff is not None or layout.horizon is not None
    return FrameRows(table, layout, order, labels, stamps, information, *limits, timed and not times.at_once)


@dataclass(frozen=True, eq=False)
class FrameRows:
    """Rows of a frame by series and time."""

    table: Frame
    layout: ColumnLayout
    order: Places
    names: tuple[str, ...]
    time: NDArray[Any] | None
    information: Information
    low: Vector
    high: Vector
    timed: bool  # issue times are known

    def evaluations(self) -> list[Evaluation]:
        """Evaluation of each model."""
        return [self.evaluation(form) for form in self.layout.forms]

    def evaluation(self, form: Form) -> Evaluation:
        """Evaluation of one model."""
        information = self.outcomes(form)
        y = information.y
        kind = form.kind if form.kind in ("binary", "labels") else "quantiles"
        levels, before, after = self.sides(form, information)
        whole = np.ones(y.size, dtype=np.bool_)
        for rows in (before, after):
            if rows is not None:
                fine = np.isfinite(rows) if kind == "quantiles" else (rows >= 0.0) & (rows <= 1.0)
                whole &= fine.all(axis=1)
        forecast = np.isfinite(self.matrix(form.columns)).all(axis=1) if form.kind == "point" else whole
        known = np.isfinite(y)
        beyond = known & self.beyond(form, y)
        keep: Any = whole & known & ~beyond
        if keep.all():
            keep = slice(None)
        horizon = self.information.horizon
        certificate = {
            what: self.numbers(name)[keep]
            for what, name in form.certificate.items()
            if what != "status" and name in self.table.reading.columns
        }
        return Evaluation(
            model=form.model,
            kind=kind,
            levels=levels,
            labels=("1",) if kind == "binary" else form.labels or (),
            before=before[keep],
            after=None if after is None else after[keep],
            y=y[keep],
            series=self.information.series[keep],
            names=self.names,
            time=None if self.time is None else self.time[keep],
            low=self.low[keep],
            high=self.high[keep],
            horizon=horizon[keep] if np.unique(horizon).size > 1 else None,
            pending=int(np.count_nonzero(forecast & ~known)),
            missing=int(np.count_nonzero(~forecast)),
            outside=int(np.count_nonzero(whole & beyond)),
            overlap=information.overlap(),
            timed=self.timed,
            known=(information, keep),
            **certificate,
        )

    # --- columns as numbers
    def numbers(self, column: Any) -> Vector:
        """Column in the order of the rows."""
        return self.table.numbers(column)[self.order]

    def matrix(self, columns: Sequence[Any]) -> Matrix:
        """Columns side by side."""
        return np.stack([self.numbers(column) for column in columns], axis=1)

    def outcomes(self, form: Form) -> Information:
        """Outcomes of a model's forecasts, nan where there is none yet."""
        from orcast.frame.reader import outcomes_of

        y = outcomes_of(self.table, self.layout.y, form)[self.order]
        return dataclasses.replace(self.information, y=y)

    def beyond(self, form: Form, y: Vector) -> NDArray[np.bool_]:
        """Mask of outcomes outside the bounds."""
        if form.kind in ("binary", "labels"):
            return np.zeros(y.size, dtype=np.bool_)
        found = (y < self.low) | (y > self.high)
        status = form.certificate["status"]
        if status in self.table.reading.columns:
            found |= (self.table.column(status) == "outside").fill_null(False).to_numpy()[self.order].astype(np.bool_)
        return np.asarray(found)

    # --- forecasts before and after
    def sides(self, form: Form, known: Information) -> tuple[Vector, Matrix, Matrix | None]:
        """Levels, and the forecasts at them before and after."""
        from orcast.frame.names import written_levels

        there = self.table.reading.columns
        names = [out.name for out in form.outputs()]
        whole = all(name in there for name in names)
        if form.kind in ("binary", "labels"):
            return np.empty(0), self.matrix(form.columns), self.matrix(names) if whole else None
        written = written_levels(form, there)
        if form.kind == "quantiles":
            assert form.levels is not None
            pairs = [(k, b) for k, a in enumerate(form.levels) for b in written if abs(a - b) < 1e-9]
            if len(pairs) < 2:
                return form.levels, self.matrix(form.columns), None
            before, after = [form.columns[k] for k, _ in pairs], [written[b] for _, b in pairs]
            return form.levels[[k for k, _ in pairs]], self.matrix(before), self.matrix(after)
        if len(written) > 1:
            levels = np.array(list(written))
            return levels, self.read(form, form.columns, levels, known), self.matrix(list(written.values()))
        levels = self.levels(form)
        before_rows = self.read(form, form.columns, levels, known)
        return levels, before_rows, self.read(form, names, levels, known) if whole and form.kind != "point" else None

    def levels(self, form: Form) -> Vector:
        """Levels at which a distribution is read."""
        many = self.order.size > MANY
        if form.kind != "members":
            return LEVELS[4::5].copy() if many else LEVELS.copy()
        count, most = len(form.columns), 19 if many else 99
        places = np.arange(count) if count <= most else np.unique(np.linspace(0, count - 1, most).round())
        return np.asarray((places + 0.5) / count)

    def read(self, form: Form, columns: Sequence[Any], levels: Vector, known: Information) -> Matrix:
        """Quantiles at levels of a normal distribution, of members, or of a point and its past errors."""
        rows = self.matrix(columns)
        if form.kind == "members":
            return sample_quantiles(rows, levels)
        spread = rows[:, 1] if form.kind == "normal" else known.past_spread(known.y - rows[:, 0])
        return np.asarray(rows[:, :1] + np.where(spread >= 0.0, spread, np.nan)[:, None] * ndtri(levels))


def _steps_ahead(table: Frame, horizon: Any) -> Vector:
    """Steps ahead of each row; named horizons are counted in their order."""
    if table.holds_numbers(horizon):
        return table.numbers(horizon)
    return np.asarray(table.keys([horizon])[0] + 1.0, dtype=np.float64)


def _stamps(times: RowTimes) -> NDArray[Any]:
    """Times of the rows; dates are dates again."""
    if times.kind.startswith("dates"):
        return np.asarray(times.time).view("datetime64[ns]")
    return times.time
