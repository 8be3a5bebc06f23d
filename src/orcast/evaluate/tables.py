"""Tables of series and of horizons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from orcast.evaluate.calibration import SURE, inside, main_share
from orcast.evaluate.dependence import Blocks, student_quantile
from orcast.evaluate.evaluation import Evaluation, Places, Vector, computed_once
from orcast.evaluate.losses import intervals, loss, loss_blocks, loss_sums

# A change of the loss by less than this part is a tie.
TIE = 1e-9
# Significance of a majority of series made worse.
MAJORITY = 0.01


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

    `coverage` is that of the interval `share`, `change` that of the loss.
    """

    name: str
    labels: tuple[str, ...]
    rows: Vector
    share: float | None
    coverage: dict[str, Vector]
    loss: dict[str, Vector]
    change: Change | None = None


@computed_once
def by_series(evaluation: Evaluation) -> Table:
    """Coverage and loss of each series with an outcome; first the coverage furthest from nominal, or the largest loss.

    Examples
    --------
    >>> found = by_series(Evaluation.of([[-1, 1]] * 4, [0, 1, 2, 0], levels=[0.25, 0.75], series=list("aabb")))
    >>> found.labels, found.coverage["before"]
    (('a', 'b'), array([1. , 0.5]))
    """
    there, codes = np.unique(evaluation.series, return_inverse=True)
    found = _table(evaluation, "series", codes, there.size)
    side = evaluation.sides[-1]
    worst = found.loss[side] if found.share is None else np.abs(found.coverage[side] - found.share)
    order = np.argsort(-worst, kind="stable")
    return replace(
        found,
        labels=tuple(evaluation.names[i] for i in there[order]),
        rows=found.rows[order],
        coverage={side: values[order] for side, values in found.coverage.items()},
        loss={side: values[order] for side, values in found.loss.items()},
    )


@computed_once
def by_horizon(evaluation: Evaluation) -> Table:
    """Coverage and loss at each horizon, with the number of series made worse; one group if there is one horizon.

    Examples
    --------
    >>> found = by_horizon(Evaluation.of([[0.0]] * 4, [1.0, 1.0, 1.0, 1.0], after=[[0.5]] * 2 + [[-1.0]] * 2,
    ...     levels=[0.5], series=list("abab"), horizon=[1.0, 1.0, 2.0, 2.0]))
    >>> found.labels, found.change.worse.tolist(), found.change.series.tolist()
    (('1', '2'), [0, 2], [2, 2])
    """
    horizon = np.ones(evaluation.rows) if evaluation.horizon is None else evaluation.horizon
    steps, codes = np.unique(horizon, return_inverse=True)
    change = None if evaluation.after is None else _changes(evaluation, codes, steps.size)
    labels = tuple(f"{step:.12g}" for step in steps)
    return replace(_table(evaluation, "horizon", codes, steps.size), labels=labels, change=change)


def _table(evaluation: Evaluation, name: str, codes: Places, count: int) -> Table:
    rows = np.bincount(codes, minlength=count).astype(np.float64)

    def means(values: Vector) -> Vector:
        return np.asarray(np.bincount(codes, values, minlength=count) / rows)

    share = main_share(evaluation.levels)
    covered = {} if share is None else {side: means(inside(evaluation, share, side)) for side in evaluation.sides}
    losses = {side: means(loss(evaluation, side)) for side in evaluation.sides}
    return Table(name, (), rows, share, covered, losses)


def _changes(evaluation: Evaluation, codes: Places, count: int) -> Change:
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
    return Change(relative, ends.low, ends.high, clear, worse, there)
