"""Forecasts of a form, many rows at once, as what a game starts from; and what it says as the columns that come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import expert_table, within_reach
from orcast.spaces import Binary, Interval, Labels, OrderedSpace, Space

Array = NDArray[np.float64]

# The spread of a point forecast before any error is known: a share of the interval, or of the forecast itself.
FIRST_SPREAD = 0.1


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

    def at(self, members: int, flip: bool) -> Array:
        """Levels to be read of a game's forecast: those of the members, then those of the quantiles."""
        own = (np.arange(members) + 0.5) / max(members, 1)
        asked = [level for what, level, _ in self.outputs if what == "quantile"]
        levels = np.concatenate((own, np.array(asked, dtype=np.float64)))
        return 1.0 - levels if flip else levels

    def answers(self, quantiles: Array, mean: Array, std: Array, shift: Array, scale: Array, ranks: Any) -> Array:
        """The columns that come out, from quantiles at the levels ``at`` and moments, as the user's units have them."""
        out = np.empty((len(quantiles), len(self.outputs)))
        values = shift[:, None] + scale[:, None] * quantiles
        members = values.shape[1] - sum(what == "quantile" for what, _, _ in self.outputs)
        column = members
        for i, (what, _, place) in enumerate(self.outputs):
            if what == "quantile":
                out[:, i] = values[:, column]
                column += 1
            elif what == "mean":
                out[:, i] = shift + scale * mean
            elif what == "sd":
                out[:, i] = np.abs(scale) * std
            else:
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


def expert_rows(shape: ForecastShape, space: Any, given: Array, shift: Array, scale: Array) -> Array:
    """A row of quantiles at the levels of the space for each forecast, or of masses on its cells; not of points."""
    if shape.kind == "binary":
        return np.column_stack((1.0 - given[:, 0], given[:, 0]))
    if shape.kind == "labels":
        total = given.sum(axis=1, keepdims=True)
        # no division where there is only rounding, as a single forecast is read
        return np.where(np.abs(total - 1.0) > 1e-12, given / total, given)
    flip = bool(len(scale) and scale[0] < 0.0)
    with np.errstate(over="ignore"):
        if shape.kind == "normal":
            return normal_rows((given[:, 0] - shift) / scale, given[:, 1] / np.abs(scale), space)
        own = (given - shift[:, None]) / scale[:, None]
        if shape.kind == "members":
            return _member_rows(own, space)
        levels = np.array(shape.levels)
        if flip:
            own, levels = own[:, ::-1], 1.0 - levels[::-1]
        return expert_table(levels, own, space)[0]


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
            rows[at] = expert_table((np.arange(count) + 0.5) / count, ordered[at, :count], space)[0]
    return rows


def first_spreads(points: Array, scale: Array, space: OrderedSpace) -> Array:
    """The spreads of point forecasts none of whose errors is known yet: of the size of the interval, or of theirs."""
    if isinstance(space, Interval):
        return np.full(len(points), FIRST_SPREAD * (space.high - space.low))
    sizes = FIRST_SPREAD * np.abs(points)
    return np.where(sizes > 0.0, sizes, 1.0) / np.abs(scale)
