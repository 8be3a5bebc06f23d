"""Losses of the forecasts, and their differences with intervals from blocks of time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from orcast.evaluate.calibration import SURE
from orcast.evaluate.dependence import (
    TIMES,
    Blocks,
    blocks_of,
    reach_of,
    steps_of,
    student_quantile,
    variance_of_sums,
)
from orcast.evaluate.evaluation import Evaluation, Matrix, Places, Vector, chunks, computed_once, outcomes_of
from orcast.evaluate.metrics import pinball

# From this number of series on, whole series count as blocks too.
PANEL = 20
# Fewer blocks or series than this give no interval.
LEAST = 5


@computed_once
def loss(evaluation: Evaluation, side: str = "before") -> Vector:
    """Loss of each forecast: pinball loss averaged over the levels, or Brier score.

    Examples
    --------
    >>> loss(Evaluation.of([[1.0, 3.0]], [2.0], levels=[0.25, 0.75]))
    array([0.25])
    """
    out = np.empty(evaluation.rows)
    for chunk in chunks(evaluation.rows):
        out[chunk] = score(evaluation, evaluation.side(side)[chunk], chunk)
    return out


def score(evaluation: Evaluation, forecasts: Matrix, rows: slice | Places) -> Vector:
    """Losses of other forecasts of these rows."""
    if evaluation.kind == "quantiles":
        return pinball(forecasts, evaluation.y[rows], evaluation.levels)
    return np.asarray(((forecasts - outcomes_of(evaluation, rows)) ** 2).sum(axis=1))


def loss_name(evaluation: Evaluation) -> str:
    """Name of the loss."""
    return "pinball loss" if evaluation.kind == "quantiles" else "Brier score"


@dataclass(frozen=True)
class Difference:
    """Mean losses before and after, and their relative change with its 95% interval.

    The ends are nan where there are too few blocks of time.
    """

    before: float
    after: float
    relative_low: float
    relative_high: float

    @property
    def relative(self) -> float:
        """Change over the loss before."""
        return self.after / self.before - 1.0 if self.before > 0.0 else float("nan")

    @property
    def clear(self) -> bool:
        """True if the interval excludes 0."""
        return bool(self.relative_low > 0.0 or self.relative_high < 0.0)


@computed_once
def difference(evaluation: Evaluation) -> Difference | None:
    """Change of the loss by recalibration with a 95% interval from blocks of time; None without `after`.

    Blocks have about 2 T^(1/3) consecutive times, and more where forecasts overlap or losses are autocorrelated.  From
    20 series on whole series count as blocks too, and the wider interval is returned.  Künsch (1989), Annals of
    Statistics 17.

    Examples
    --------
    >>> found = difference(Evaluation.of([[0.0]] * 100, np.ones(100), after=[[0.5]] * 100, levels=[0.5]))
    >>> found.relative, found.relative_high
    (-0.5, -0.5)
    """
    if evaluation.after is None:
        return None
    return compare(evaluation, loss(evaluation, "before"), loss(evaluation, "after"))


def compare(
    evaluation: Evaluation, before: Vector, after: Vector, rows: Places | None = None, sure: float = SURE
) -> Difference:
    """Difference of two losses of the same rows."""
    rows = np.arange(evaluation.rows) if rows is None else rows
    if rows.size == 0:
        return Difference(*np.full(4, np.nan).tolist())
    before, after, blocks = before[rows], after[rows], loss_blocks(evaluation)
    found = [_interval(before, after, blocks.of_row[rows], blocks.count, sure, blocks.alike)]
    there, places = np.unique(evaluation.series[rows], return_inverse=True)
    if there.size >= PANEL:
        found.append(_interval(before, after, places, int(there.size), sure))
    ends = max(found, key=lambda each: np.nan_to_num(each[1] - each[0], nan=np.inf))
    return Difference(float(before.mean()), float(after.mean()), *ends)


# --- blocks of time


@computed_once
def loss_blocks(evaluation: Evaluation) -> Blocks:
    """Blocks of time for losses and their differences."""
    signal = loss(evaluation, "before")
    if evaluation.after is not None:
        signal = loss(evaluation, "after") - signal
    times = steps_of(evaluation)[1]
    length = int(np.ceil(2.0 * times ** (1.0 / 3.0)))
    if len(evaluation.names) >= PANEL:
        length = min(length, times // TIMES)
    return blocks_of(evaluation, reach_of(evaluation, [signal]), length)


def _interval(
    before: Vector, after: Vector, of_row: Places, count: int, sure: float, alike: bool = False
) -> tuple[float, float]:
    """Student interval of a relative change from sums of blocks, by linearisation; nan with too few blocks."""
    if count < LEAST:
        return math.nan, math.nan
    sums = np.stack([np.bincount(of_row, values, minlength=count) for values in (before, after)])
    there = max(int(np.unique(of_row).size), 2)
    few = math.sqrt(there / (there - 1.0) * (count - 1.0) / count)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = after.sum() / before.sum() if before.sum() > 0.0 else math.nan
        deviation = few * np.sqrt(variance_of_sums((sums[1] - sums[0] * ratio)[:, None], alike)[0]) / before.sum()
    wide = student_quantile(there, sure) * float(deviation)
    return float(ratio) - 1.0 - wide, float(ratio) - 1.0 + wide
