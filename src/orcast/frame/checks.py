"""Warnings about values of a frame that speak against how they are read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orcast.frame.column_names import listed, of_model
from orcast.frame.columns import ColumnLayout, Form
from orcast.frame.frame import Frame

Array = NDArray[np.float64]

# Outcomes so many spreads away from nearly all of their forecasts are in other units, or of something else.
FAR = 100.0
# Rows that are looked at, evenly chosen: what is wrong with nearly all is wrong with these.
LOOKED_AT = 10_000


def doubts(frame: Frame, layout: ColumnLayout) -> list[str]:
    """Sentences on assumptions, repeated rows, swapped quantiles, and other units.

    >>> import polars as pl
    >>> from orcast.frame.columns import find_in
    >>> frame = Frame(pl.DataFrame({"y": [5e6, 6e6], "q0.1": [4.0, 5.0], "q0.9": [6.0, 7.0]}))
    >>> doubts(frame, find_in(frame))
    ['nearly all outcomes are more than 100 spreads away from their forecasts: are they in other units?']
    """
    found = [*layout.assumed, *_repeated(frame, layout)]
    for form in layout.forms:
        if form.ordered and form.kind != "point":
            found += _of_form(frame, layout, form)
    return found


def _repeated(frame: Frame, layout: ColumnLayout) -> list[str]:
    """Several rows of a series at one time, where no column says what tells them apart."""
    if layout.time is None or layout.cutoff is not None or layout.horizon is not None:
        return []
    codes, times = frame.keys(layout.series)[0], frame.times(layout.time).values
    order = np.lexsort((times, codes))
    count = int(((np.diff(codes[order]) == 0) & (np.diff(times[order]) == 0)).sum())
    if count == 0:
        return []
    return [
        f"{count:,} of {len(times):,} rows have the series and time of another: a column of issue times is named by "
        "cutoff=, one of series by series=; without it what is said of chance is too sure"
    ]


def _of_form(frame: Frame, layout: ColumnLayout, form: Form) -> list[str]:
    rows = np.unique(np.linspace(0, frame.rows - 1, min(frame.rows, LOOKED_AT)).astype(np.intp))
    given = np.column_stack([frame.numbers(column)[rows] for column in form.columns])
    found: list[str] = []
    if form.kind == "quantiles":
        whole = np.isfinite(given).all(axis=1)
        swapped = whole & (given[:, 0] > given[:, -1])
        if whole.sum() > 1 and swapped.sum() > 0.9 * whole.sum():
            names = listed([form.columns[0], form.columns[-1]])
            found.append(f"the lowest quantile lies above the highest in nearly all rows: are {names} swapped?")
    if layout.y is None:
        return found
    y = frame.numbers(layout.y)[rows]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if form.kind == "normal":
            away, spread = np.abs(y - given[:, 0]), given[:, 1]
        else:
            low, high = given.min(axis=1), given.max(axis=1)
            away, spread = np.maximum(np.maximum(low - y, y - high), 0.0), high - low
        # where forecasts of no spread miss, that is another fault
        ratio = np.where(spread > 0.0, away / spread, 0.0)
    known = np.isfinite(y) & np.isfinite(spread)
    if known.any() and float(np.quantile(ratio[known], 0.05)) > FAR:
        found.append(
            f"nearly all outcomes are more than {FAR:g} spreads away from their forecasts{of_model(form.model)}: "
            "are they in other units?"
        )
    return found
