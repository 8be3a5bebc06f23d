"""Forecasts of a form, many rows at once: as what a game starts from, and from what it plays to the columns that come
out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.adapters import beyond_doubles, quantile_rows, within_reach
from orcast.frame.names import KINDS, Form, Output
from orcast.limits import LIMITS
from orcast.spaces import Binary, Labels, OrderedSpace, Space, normal_scores
from orcast.spaces.base import LARGEST, single, whole
from orcast.validation import short

Array = NDArray[np.float64]

# What may come out.
OUTPUTS = ("quantile", "mean", "sd", "member", "probability")
# Masses of labels sum to 1 up to this.
TOLERANCE = 0.01


@dataclass(frozen=True)
class ForecastShape:
    """What comes in and goes out for one model: a form without its names.

    ``outputs`` are what, level and place of each column that comes out.
    """

    kind: str
    columns: int
    levels: tuple[float, ...]
    labels: tuple[str, ...]
    outputs: tuple[tuple[str, float | None, int | None], ...]

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> ForecastShape:
        """That of a state, or a reason why it is none."""
        levels = tuple(single(level, "level") for level in plain["levels"])
        outputs = []
        columns = whole(plain["columns"], "columns", 1, LIMITS.members)
        for what, level, place in limits.taken("members", plain["outputs"]):
            known = what in OUTPUTS and (level is None or 0.0 < single(level, "level") < 1.0)
            if not known or (place is not None and whole(place, "columns", 0, columns - 1) != place):
                raise ValueError(f"there is no output {short(what)} at {short(level)}")
            outputs.append((str(what), None if level is None else float(level), place))
        if plain["kind"] not in KINDS or not all(0.0 < level < 1.0 for level in levels):
            raise ValueError(f"there are no forecasts of the kind {short(plain['kind'])} at {short(levels)}")
        labels = tuple(limits.taken("labels", plain["labels"]))
        if not all(isinstance(label, str) for label in labels):
            raise TypeError(f"labels are text, not {short(labels)}")
        return cls(str(plain["kind"]), columns, levels, labels, tuple(outputs))

    @classmethod
    def of(cls, form: Form, outputs: Sequence[Output]) -> ForecastShape:
        """That of a form whose outputs are these."""
        return cls(
            form.kind,
            len(form.columns),
            () if form.levels is None else tuple(form.levels.tolist()),
            () if form.labels is None else tuple(map(str, form.labels)),
            tuple((out.what, out.level, out.place) for out in outputs),
        )

    def __str__(self) -> str:
        more = f" at {', '.join(f'{a:g}' for a in self.levels)}" if self.levels else ""
        more += f" of {', '.join(self.labels)}" if self.labels else ""
        asked = [level for what, level, place in self.outputs if what == "quantile" and place is None]
        extra = f", and levels {', '.join(f'{a:g}' for a in asked)}" if asked else ""
        return f"{self.columns} {self.kind}{more}{extra}"

    @property
    def ordered(self) -> bool:
        """Whether outcomes are numbers."""
        return self.kind not in ("binary", "labels")

    def space(self, otherwise: OrderedSpace | None) -> Space:
        """What is played on."""
        if self.kind == "binary":
            return Binary()
        if self.kind == "labels":
            return Labels(self.labels)
        assert otherwise is not None
        return otherwise

    def levels_to_read(self, members: int, flip: bool) -> Array:
        """Levels to be read of a game's forecast: those of the members, then those of the quantiles."""
        own = (np.arange(members) + 0.5) / max(members, 1)
        asked = [level for what, level, _ in self.outputs if what == "quantile"]
        levels = np.concatenate((own, np.array(asked, dtype=np.float64)))
        return 1.0 - levels if flip else levels

    def expert_rows(self, space: Any, given: Array, shift: Array, scale: Array) -> Array:
        """A row of quantiles at the levels of the space for each forecast, or of masses on its cells; not of points."""
        if self.kind == "binary":
            return np.column_stack((1.0 - given[:, 0], given[:, 0]))
        if self.kind == "labels":
            total = given.sum(axis=1, keepdims=True)
            # no division where there is only rounding, as a single forecast is read
            return np.where(np.abs(total - 1.0) > 1e-12, given / total, given)
        with np.errstate(over="ignore"):
            if self.kind == "normal":
                return normal_rows((given[:, 0] - shift) / scale, given[:, 1] / np.abs(scale), space)
            own = (given - shift[:, None]) / scale[:, None]
            if self.kind == "members":
                return _member_rows(own, space)
            levels = np.array(self.levels)
            if len(scale) and scale[0] < 0.0:
                own, levels = own[:, ::-1], 1.0 - levels[::-1]
            return quantile_rows(levels, np.sort(own, axis=1), space)

    def answers(self, quantiles: Array, moments: Array, shift: Array, scale: Array, given: Array) -> Array:
        """The columns that come out, in the user's units, from quantiles at `levels_to_read`, mean and spread."""
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


def _member_rows(members: Array, space: OrderedSpace) -> Array:
    """Quantiles of ensembles, of which some members may be missing."""
    rows = np.empty((len(members), len(space.levels)))
    ordered = np.sort(members, axis=1)  # nan comes last
    counts = (~np.isnan(members)).sum(axis=1)
    for count in np.unique(counts).tolist():
        at = counts == count
        if count == 1:
            rows[at] = within_reach(np.broadcast_to(ordered[at, :1], (int(at.sum()), len(space.levels))), space)
        else:
            rows[at] = quantile_rows((np.arange(count) + 0.5) / count, ordered[at, :count], space)
    return rows


def rows_with_forecast(form: Form, given: list[Array]) -> NDArray[np.bool_]:
    """Which rows have a forecast; what is there must be one."""
    finite = [np.abs(column) <= LARGEST for column in given]  # nan is not
    if form.kind == "members":
        given[:] = [np.where(fine, column, np.nan) for fine, column in zip(finite, given, strict=True)]
        there: NDArray[np.bool_] = np.sum(finite, axis=0) >= min(2, len(given))
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
        raise ValueError(f"expected {what} in {column!r}, got {values[row]:g} in row {row}")


def crossing_rows(given: list[Array], there: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows with quantiles that cross."""
    wrong = np.zeros(len(there), dtype=bool)
    for a, b in pairwise(given):
        wrong |= there & (b < a)
    return np.flatnonzero(wrong)


def rows_beyond_doubles(kind: str, given: list[Array]) -> NDArray[np.intp]:
    """Rows whose forecasts have too few numbers between their outermost quantiles, or members."""
    # what is refused as too large is nothing to be warned of
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "normal":
            half = normal_scores(np.array([0.99])) * given[1]
            return np.flatnonzero(beyond_doubles(given[0] - half, given[0] + half))
        return np.flatnonzero(beyond_doubles(np.fmin.reduce(given), np.fmax.reduce(given)))
