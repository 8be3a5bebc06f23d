"""Base forecasts of many rows: from the columns of a frame to quantiles, and from results to columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import quantile_rows, reach_of, within_reach
from orcast.frame.names import Form, Output
from orcast.spaces import OrderedSpace
from orcast.spaces.base import LARGEST
from orcast.validation import row_name

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NOTHING: Array = np.empty(0)

# Masses of labels sum to 1 up to this.
TOLERANCE = 0.01


class ForecastShape:
    """Columns of one model without their names; a state keeps its text."""

    def __init__(self, form: Form, outputs: Sequence[Output]) -> None:
        self.kind, self.columns, self.ordered = form.kind, len(form.columns), form.ordered
        self.levels = () if form.levels is None else tuple(form.levels.tolist())
        self.labels = () if form.labels is None else tuple(map(str, form.labels))
        self.outputs = [(out.what, out.level, out.place) for out in outputs]

    def __str__(self) -> str:
        asked = [level for what, level, place in self.outputs if what == "quantile" and place is None]
        means = ", and their mean" if ("mean", None, None) in self.outputs else ""
        at, of = (", ".join(map(str, each)) for each in (self.levels, self.labels))
        extra = f", and levels {', '.join(map(str, asked))}" if asked else ""
        return f"{self.columns} {self.kind}{at and f' at {at}'}{of and f' of {of}'}{means}{extra}"

    def monitored(self, answers: Array, given: Array) -> list[tuple[str, Array, Array | None]]:
        """Kind, columns and levels of the recalibrated forecasts, and of base forecasts that are distributions."""
        levels = [level for what, level, _ in self.outputs if what == "quantile"]
        if self.kind in ("quantiles", "point"):
            own = [i for i, (what, _, _) in enumerate(self.outputs) if what == "quantile"]
            found: list[tuple[str, Array, Array | None]] = [("quantiles", answers[:, own], np.array(levels))]
        else:
            own = [i for i, (_, _, place) in enumerate(self.outputs) if place is not None]
            found = [(self.kind, answers[:, own], None)]
        return found if self.kind == "point" else [*found, (self.kind, given, np.array(self.levels))]

    def level_sets(self, given: Array, flip: bool) -> tuple[Array, Integers, Integers]:
        """Sets of levels to be read of forecasts, their sizes, and the set of each: members, then quantiles."""
        counts, which = np.zeros(1, dtype=np.int64), np.zeros(len(given), dtype=np.int64)
        if self.kind == "members" and len(given):
            counts, which = np.unique((~np.isnan(given)).sum(axis=1), return_inverse=True)
        asked = [level for what, level, _ in self.outputs if what == "quantile"]
        levels = np.zeros((len(counts), int(counts[-1]) + len(asked)))
        for row, count in zip(levels, counts.tolist(), strict=True):
            own = (*((np.arange(count) + 0.5) / max(count, 1)).tolist(), *asked)
            row[: len(own)] = 1.0 - np.array(own) if flip else own
        return levels, counts + len(asked), which.ravel().astype(np.int64)

    def expert_rows(self, space: Any, given: Array, shift: Array, scale: Array, spreads: Array = NOTHING) -> Array:
        """Base quantiles at the levels of the space, or masses on its cells, a row a forecast; points need spreads."""
        if self.kind == "binary":
            return np.column_stack((1.0 - given[:, 0], given[:, 0]))
        if self.kind == "labels":
            total = given.sum(axis=1, keepdims=True)
            # no division where there is only rounding, as a single forecast is read
            return np.where(np.abs(total - 1.0) > 1e-12, given / total, given)
        if not len(given):
            return np.empty((0, len(space.levels)))
        with np.errstate(over="ignore"):
            if self.kind == "point":
                points = (given[:, :1] - shift[:, None]) / scale[:, None]
                return np.asarray(np.clip(points + spreads[:, None] * space.scores, *reach_of(space)))
            if self.kind == "normal":
                return normal_rows((given[:, 0] - shift) / scale, given[:, 1] / np.abs(scale), space)
            own = (given - shift[:, None]) / scale[:, None]
            if self.kind == "members":
                return _quantile_rows(None, own, space)
            levels = np.array(self.levels)
            if scale[0] < 0.0:
                own, levels = own[:, ::-1], 1.0 - levels[::-1]
            return _quantile_rows(levels, own, space)

    def answers(self, quantiles: Array, moments: Array, shift: Array, scale: Array, given: Array) -> Array:
        """The columns that come out, in the user's units, from quantiles at one set of levels, mean and spread."""
        out = np.empty((len(quantiles), len(self.outputs)))
        values = shift[:, None] + scale[:, None] * quantiles
        members = column = values.shape[1] - sum(what == "quantile" for what, _, _ in self.outputs)
        ranks = ranks_of(given) if self.kind == "members" else None
        for i, (what, _, place) in enumerate(self.outputs):
            if what == "quantile":
                out[:, i] = values[:, column]
                column += 1
            elif what == "mean":
                out[:, i] = shift + scale * moments[:, 0]
            elif what == "sd":
                out[:, i] = np.abs(scale) * moments[:, 1]
            else:
                assert ranks is not None
                rank = ranks[:, place]
                there = rank < members
                out[there, i] = values[there, rank[there]]
                out[~there, i] = np.nan
        return out


def ranks_of(members: Array) -> NDArray[np.intp]:
    """The place of each member among its row, equal ones in their order; those that are missing come last."""
    order = np.argsort(members, axis=1, kind="stable")
    ranks = np.empty(order.shape, dtype=np.intp)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    return ranks


def normal_rows(mean: Array, sd: Array, space: OrderedSpace) -> Array:
    """Quantiles of many Gaussians."""
    q = mean[:, None] + sd[:, None] * space.scores
    return np.maximum.accumulate(within_reach(q, space), axis=1)


def _quantile_rows(levels: Array | None, values: Array, space: OrderedSpace) -> Array:
    """Quantiles of the space from those at some levels, or from members; the missing ones are left out."""
    rows = np.empty((len(values), len(space.levels)))
    # sorted members without the missing ones, which come last, differ in their number alone
    missing = np.isnan(np.sort(values, axis=1) if levels is None else values)
    patterns, which = np.unique(missing, axis=0, return_inverse=True) if missing.any() else (missing[:1], None)
    for number, pattern in enumerate(patterns):
        at: Any = slice(None) if which is None else which.ravel() == number
        own = np.sort(values[at] if levels is None else values[at][:, ~pattern], axis=1)[:, : int((~pattern).sum())]
        count = own.shape[1]
        if levels is None and count == 1:
            rows[at] = within_reach(np.broadcast_to(own, (len(own), len(space.levels))), space)
        else:
            rows[at] = quantile_rows(
                (np.arange(count) + 0.5) / count if levels is None else levels[~pattern], own, space
            )
    return rows


def rows_with_forecast(form: Form, given: list[Array]) -> NDArray[np.bool_]:
    """Find the rows with a forecast, which must be one; single quantiles and members that are not finite become nan."""
    finite = [np.abs(column) <= LARGEST for column in given]  # nan is not
    if form.kind in ("members", "quantiles"):
        given[:] = [np.where(fine, column, np.nan) for fine, column in zip(finite, given, strict=True)]
        least = min(2, len(given)) if form.kind == "members" else 1
        there: NDArray[np.bool_] = np.sum(finite, axis=0) >= least
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


def _refuse(wrong: NDArray[np.bool_], values: Array, column: object, what: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"expected {what} in {column!r}, got {values[row]:g} in {row_name(row)}")


def marks_of(given: list[Array]) -> Array:
    """A number for each row, which tells its forecast from others."""
    marks = np.zeros(len(given[0]))
    for column in given:
        marks = 0.6180339887498949 * marks + np.nan_to_num(column, posinf=0.0, neginf=0.0)
    return marks
