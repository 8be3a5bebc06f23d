"""Tables of series and of groups of rows, horizons above all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from orcast.evaluate.calibration import (
    SURE,
    band,
    bins_of,
    chance_limit,
    ends_of,
    half_normal_limit,
    inside,
    level_name,
    main_share,
    tie_excess,
)
from orcast.evaluate.dependence import (
    Blocks,
    calibration_blocks,
    indicator_sums,
    rows_per_time,
    series_effect,
    student_quantile,
    variance_of_sums,
    widening,
)
from orcast.evaluate.evaluation import Evaluation, Grouping, Places, Vector, computed_once, rows_of
from orcast.evaluate.losses import LEAST, intervals, loss, loss_blocks, loss_sums

# A change of the loss by less than this part is a tie.
TIE = 1e-9
# Significance of a majority of series made worse.
MAJORITY = 0.01
Show = Callable[[float], str]


@dataclass(frozen=True, eq=False)
class Change:
    """Change of the loss in each group: relative, with a 95% interval, and counted over the series of the group.

    `clear` is -1 where the loss fell significantly, 1 where it rose, else 0 (Bonferroni over the groups).  The loss
    rose in `worse` of `series` series.
    """

    relative: Vector
    low: Vector
    high: Vector
    clear: Vector
    worse: Places
    series: Places

    @property
    def harmed(self) -> NDArray[np.bool_]:
        """Groups in which the loss rose significantly, on average or in a significant majority of the series."""
        majority = (self.worse > 0) & (bdtr(np.maximum(self.worse - 1.0, 0.0), self.series, 0.5) > 1.0 - MAJORITY)
        # without an interval there are too few times: the series may share one error
        return np.asarray((self.clear > 0) | (majority & np.isfinite(self.low)))


@dataclass(frozen=True, eq=False)
class Table:
    """Groups of rows; arrays have an entry per group, by "before" and "after".

    `coverage` is that of the interval `share`, and `chance` its band; `change` is that of the loss.  Series also have
    an `error` of calibration and the `limit` that sampling noise explains.
    """

    name: str
    labels: tuple[str, ...]
    rows: Vector
    share: float | None
    coverage: dict[str, Vector]
    loss: dict[str, Vector]
    chance: tuple[Vector, Vector] | None = None
    change: Change | None = None
    error: dict[str, Vector] = field(default_factory=dict)
    limit: dict[str, Vector] = field(default_factory=dict)

    def outside(self, side: str) -> NDArray[np.bool_]:
        """Mask of the series that are significantly miscalibrated."""
        return np.asarray(self.error[side] > self.limit[side])

    def columns(self, percent: Show, number: Show) -> dict[str, list[str]]:
        """Columns of text by heading."""

        def shown(sides: dict[str, Vector], show: Show) -> list[str]:
            return [" → ".join(show(float(value)) for value in values) for values in zip(*sides.values(), strict=True)]

        found = {self.name.capitalize(): list(self.labels), "Outcomes": [f"{many:,.0f}" for many in self.rows]}
        if self.share is not None:
            found[f"{level_name(self.share)} interval covered"] = shown(self.coverage, percent)
        if self.error:
            found["Calibration error"] = shown(self.error, number)
            found["By chance up to"] = [number(float(v)) for v in list(self.limit.values())[-1]]
        found["Loss"] = shown(self.loss, number)
        if self.change is not None:
            found["Change"] = [percent(float(v)) for v in self.change.relative]
            pairs = zip(self.change.worse, self.change.series, strict=True)
            found["Series worse"] = [f"{worse:,} of {many:,}" for worse, many in pairs]
        return found


# --- series


@computed_once
def by_series(evaluation: Evaluation) -> Table:
    """Coverage, calibration error and loss of each series with an outcome, the most miscalibrated first.

    >>> table = by_series(Evaluation.of([[0.0]] * 8, [1, -1] * 2 + [1] * 4, levels=[0.5], series=list("aaaabbbb")))
    >>> table.labels, table.error["before"]
    (('b', 'a'), array([0.25, 0.  ]))
    """
    rows = rows_of(evaluation)
    there = np.flatnonzero(rows > 0)
    columns = {side: _series_columns(evaluation, side, there) for side in evaluation.sides}
    last = columns[evaluation.sides[-1]]
    order = np.argsort(-last["error"] / np.maximum(last["limit"], 1e-300), kind="stable")
    tables: dict[str, Any] = {
        name: {side: found[name][order] for side, found in columns.items() if name in found}
        for name in ("coverage", "error", "limit", "loss")
    }
    names = tuple(evaluation.names[i] for i in there[order])
    return Table("series", names, rows[there][order], main_share(evaluation), **tables)


def _series_columns(evaluation: Evaluation, side: str, there: Places) -> dict[str, Vector]:
    """Error, limit, loss and coverage of those series on one side."""
    rows = rows_of(evaluation)
    count = rows[there]
    effect = series_effect(evaluation, side)
    found = {"loss": np.bincount(evaluation.series, loss(evaluation, side), minlength=rows.size)[there] / count}
    if evaluation.kind == "quantiles":
        below, upto = (indicator_sums(evaluation, side)[0][there] / count[:, None, None]).transpose(1, 0, 2)
        found["error"] = ((np.clip(evaluation.levels, below, upto) - evaluation.levels) ** 2).sum(axis=1)
        found["limit"] = chance_limit(evaluation, count / effect)
        share = main_share(evaluation)
        if share is not None:
            lower, upper = ends_of(evaluation, share)
            found["coverage"] = upto[:, upper] - below[:, lower]
        return found
    bins, scale = bins_of(evaluation, side), count * len(evaluation.labels)
    found["error"] = np.abs(bins.gap[there]).sum(axis=(1, 2)) / scale
    found["limit"] = half_normal_limit(effect * bins.variance[there].reshape(there.size, -1)) / scale
    return found


# --- groups


@computed_once
def by_horizon(evaluation: Evaluation) -> Table:
    """Coverage and loss at each horizon, with the number of series made worse; one group if there is one horizon.

    >>> found = by_horizon(Evaluation.of([[0.0]] * 4, [1.0, 1.0, 1.0, 1.0], after=[[0.5]] * 2 + [[-1.0]] * 2,
    ...     levels=[0.5], series=list("abab"), horizon=[1.0, 1.0, 2.0, 2.0]))
    >>> found.labels, found.change.worse.tolist(), found.change.series.tolist()
    (('1', '2'), [0, 2], [2, 2])
    """
    horizon = np.ones(evaluation.rows) if evaluation.horizon is None else evaluation.horizon
    return by_group(evaluation, Grouping.of_horizon(horizon))


@computed_once
def by_group(evaluation: Evaluation, grouping: Grouping) -> Table:
    """Coverage and loss of each group of rows that has an outcome.

    >>> groups = Grouping("h", np.array([0, 0, 2, 2]), ("1", "2", "3"))
    >>> by_group(Evaluation.of([[0.0]] * 4, [1.0, -1.0, 2.0, 2.0], levels=[0.5]), groups).labels
    ('1', '3')
    """
    member = np.flatnonzero(grouping.codes >= 0)
    there, codes = np.unique(grouping.codes[member], return_inverse=True)
    whole = np.full(evaluation.rows, -1, dtype=np.intp)
    whole[member] = codes
    count = int(there.size)
    rows = np.bincount(codes, minlength=count).astype(np.float64)

    def means(values: Vector) -> Vector:
        return np.asarray(np.bincount(codes, values[member], minlength=count) / rows)

    share, chance = main_share(evaluation), None
    if share is not None:
        low, high = band(_group_sizes(evaluation, share, whole, rows), share)
        chance = low, np.minimum(high + tie_excess(evaluation, share), 1.0)
    return Table(
        name=grouping.name,
        labels=tuple(grouping.labels[k] for k in there),
        rows=rows,
        share=share,
        coverage={} if share is None else {side: means(inside(evaluation, share, side)) for side in evaluation.sides},
        chance=chance,
        loss={side: means(loss(evaluation, side)) for side in evaluation.sides},
        change=None if evaluation.after is None else _group_changes(evaluation, whole, count),
    )


def _group_sizes(evaluation: Evaluation, share: float, codes: Places, rows: Vector) -> Vector:
    """Effective sample size of each group."""
    side, count = evaluation.sides[-1], rows.size
    blocks = calibration_blocks(evaluation, side)
    if blocks is None or blocks.count < LEAST:
        return rows / (1.0 if blocks is None else rows_per_time(evaluation))
    hits = inside(evaluation, share, side)
    sums = loss_sums(blocks, hits, hits, codes, count)
    p = sums[:, 0].sum(axis=0) / rows
    alone = np.maximum(rows * p * (1.0 - p), 1e-300)
    found = variance_of_sums(sums[:, 0] - sums[:, 2] * p, blocks.alike, by_steps=True)
    found *= widening(blocks.count, SURE) ** 2
    return np.asarray(rows / np.where(p * (1.0 - p) > 0.0, np.maximum(found / alone, 1.0), 1.0))


def _group_changes(evaluation: Evaluation, codes: Places, count: int) -> Change:
    """Change of the loss in each group."""
    blocks = loss_blocks(evaluation)
    losses = loss(evaluation, "before"), loss(evaluation, "after")
    sums = loss_sums(blocks, *losses, codes, count)
    ends = intervals(sums, blocks.alike)
    before, after, _ = sums.sum(axis=0)
    # Bonferroni over the groups
    sure = 1.0 - (1.0 - SURE) / max(count, 1)
    limit = ends.deviation * [student_quantile(int(many), sure) for many in ends.blocks]
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(before > 0.0, after / before - 1.0, np.nan)
        clear = np.where(np.abs(relative) > limit, np.sign(relative), 0.0)
    parts = loss_sums(Blocks(evaluation.series, len(evaluation.names), False), *losses, codes, count)
    worse, there = (parts[:, 1] > parts[:, 0] * (1.0 + TIE)).sum(axis=0), (parts[:, 2] > 0.0).sum(axis=0)
    return Change(relative, ends.relative_low, ends.relative_high, clear, worse, there)
