"""What users give with a frame, checked against what the state began with; and the words for it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.panel.columns import ColumnLayout, Form, find_in
from orcast.panel.experts import ForecastShape
from orcast.panel.frame import INDEX, Frame
from orcast.panel.state import BY_SERIES, PanelTerms
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.persistence.state import as_saved
from orcast.spaces.base import LARGEST
from orcast.validation import short

Array = NDArray[np.float64]

# Masses of labels sum to 1 up to this.
TOLERANCE = 0.01


def found_in(frame: Frame, names: Mapping[str, Any], model: Any, *, pending: bool) -> ColumnLayout:
    """Which columns are what; the time may be an index of dates."""
    layout = find_in(frame.searched, model=model, pending=pending, **names)
    if layout.time is None and frame.dated:
        return dataclasses.replace(layout, time=INDEX)
    return layout


def levels_of(levels: ArrayLike | None, before: PanelTerms | None) -> list[float] | None:
    """The levels that are asked for, or those that the state began with."""
    try:
        given = None if levels is None else np.unique(np.asarray(levels, dtype=np.float64)).tolist()
    except (TypeError, ValueError):
        raise TypeError(f"expected levels strictly between 0 and 1, got {short(levels)}") from None
    if before is None:
        return given
    if given is not None and given != before.levels:
        raise ValueError(f"expected the levels that the state began with, {before.levels}, got {given}")
    return before.levels


def payoff_of(payoff: Payoff | None, before: PanelTerms | None) -> Payoff | None:
    """The payoff that is given, or the one that the state began with."""
    if before is None:
        return payoff
    if before.payoff is None:
        if payoff is not None:
            raise ValueError(f"expected the payoff that the state began with, the default one, got {short(payoff)}")
        return None
    found: Payoff = as_saved(payoff, before.payoff, payoff_from_plain, "payoff")
    return found


def travels(payoff: Payoff | None) -> bool:
    """Whether it has a plain form, without functions."""
    if payoff is None:
        return True
    try:
        payoff_from_plain(json.loads(json.dumps(payoff.to_plain())))
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True


def as_given(side: Any) -> Any:
    """A bound as a state keeps it."""
    if side is None or isinstance(side, str):
        return side
    return BY_SERIES if isinstance(side, Mapping) or hasattr(side, "to_dict") else float(side)


def shape_of(form: Form, levels: list[float] | None) -> ForecastShape:
    """A form without its names, with the levels that are asked for."""
    return ForecastShape(
        form.kind,
        len(form.columns),
        () if form.levels is None else tuple(form.levels.tolist()),
        () if form.labels is None else tuple(map(str, form.labels)),
        tuple(
            (out.what, out.level, out.place)
            for out in form.outputs(None if form.kind in ("binary", "labels") else levels)
        ),
    )


def rows_with_forecast(form: Form, given: list[Array]) -> NDArray[np.bool_]:
    """Which rows have a forecast; what is there must be one."""
    finite = [np.abs(column) <= LARGEST for column in given]  # nan is not
    if form.kind == "members":
        given[:] = [np.where(fine, column, np.nan) for fine, column in zip(finite, given, strict=True)]
        count = np.sum(finite, axis=0)
        there: NDArray[np.bool_] = count >= min(2, len(given))
    else:
        there = np.logical_and.reduce(finite)
    if form.kind == "normal":
        _refuse(there & (given[1] < 0.0), given[1], form.columns[1], "a standard deviation of at least 0")
    elif form.kind in ("binary", "labels"):
        for column, name in zip(given, form.columns, strict=True):
            wrong = there & ~((column >= 0.0) & (column <= 1.0 + TOLERANCE * (form.kind == "labels")))
            _refuse(wrong, column, name, "a probability from 0 to 1")
        if form.kind == "labels":
            total = np.sum(given, axis=0)
            wrong = there & ~(np.abs(total - 1.0) <= TOLERANCE)
            _refuse(wrong, total, form.columns[0], "probabilities with a sum of 1 (up to 1%)")
    return there


def _refuse(wrong: NDArray[np.bool_], values: Array, column: Any, what: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"expected {what} in {column!r}, got {values[row]:g} in row {row}")


def crossing_rows(given: list[Array], there: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows with quantiles that cross."""
    wrong = np.zeros(len(there), dtype=bool)
    for a, b in pairwise(given):
        wrong |= there & (b < a)
    return np.flatnonzero(wrong)


# --- words


def of_series(key: Hashable) -> str:
    """Whose it is."""
    return "" if key is None else f" of series {key!r}"


def of_model(form: Form) -> str:
    """Whose it is."""
    return f" of model {form.model!r}" if form.model else ""


def between(ends: tuple[float, float]) -> str:
    """Two bounds."""
    return f"{ends[0]:g} to {ends[1]:g}"


def shape_text(shape: ForecastShape) -> str:
    """What forecasts are like."""
    more = f" at {', '.join(f'{a:g}' for a in shape.levels)}" if shape.levels else ""
    more += f" of {', '.join(shape.labels)}" if shape.labels else ""
    asked = [level for what, level, place in shape.outputs if what == "quantile" and place is None]
    extra = f", and levels {', '.join(f'{a:g}' for a in asked)}" if asked else ""
    return f"{shape.columns} {shape.kind}{more}{extra}"


def rows_text(rows: Sequence[Any] | NDArray[np.intp]) -> str:
    """Some rows: how many, and the first of them.

    >>> rows_text([4]), rows_text(range(7))
    ('row 4', '7 rows: 0, 1, 2, 3, 4, ...')
    """
    shown = ", ".join(str(int(row)) for row in rows[:5])
    if len(rows) == 1:
        return f"row {shown}"
    return f"{len(rows)} rows: {shown}{', ...' if len(rows) > 5 else ''}"
