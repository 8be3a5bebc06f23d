"""Losses of the forecasts, and their differences with intervals from blocks of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orcast.evaluate.calibration import SURE
from orcast.evaluate.dependence import (
    TIMES,
    Blocks,
    blocks_of,
    reach_of,
    student_quantile,
    times_of,
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


def compare(evaluation: Evaluation, before: Vector, after: Vector, rows: Places | None = None) -> Difference:
    """Difference of two losses of the same rows."""
    rows = np.arange(evaluation.rows) if rows is None else rows
    if rows.size == 0:
        return Difference(*np.full(4, np.nan).tolist())
    codes = np.full(evaluation.rows, -1, dtype=np.intp)
    codes[rows] = 0
    units = [loss_blocks(evaluation)]
    there, places = np.unique(evaluation.series, return_inverse=True)
    if there.size >= PANEL:
        units.append(Blocks(places, int(there.size), False))
    found = [intervals(loss_sums(blocks, before, after, codes, 1), blocks.alike) for blocks in units]
    ends = max(found, key=lambda each: np.nan_to_num(each.high[0] - each.low[0], nan=np.inf))
    return Difference(float(before[rows].mean()), float(after[rows].mean()), float(ends.low[0]), float(ends.high[0]))


# --- blocks of time


@computed_once
def loss_blocks(evaluation: Evaluation) -> Blocks:
    """Blocks of time for losses and their differences."""
    signal = loss(evaluation, "before")
    if evaluation.after is not None:
        signal = loss(evaluation, "after") - signal
    times = times_of(evaluation)
    length = int(np.ceil(2.0 * times ** (1.0 / 3.0)))
    if len(evaluation.names) >= PANEL:
        length = min(length, times // TIMES)
    return blocks_of(evaluation, reach_of(evaluation, [signal]), length)


def loss_sums(blocks: Blocks, before: Vector, after: Vector, codes: Places, groups: int) -> Vector:
    """Sums of two losses and of the rows, blocks x 3 x groups; rows with code -1 are left out."""
    there = np.flatnonzero(codes >= 0)
    places = blocks.of_row[there] * groups + codes[there]
    columns = (before[there], after[there], np.ones(there.size))
    sums = [np.bincount(places, values, minlength=blocks.count * groups) for values in columns]
    return np.asarray(sums, dtype=np.float64).reshape(3, blocks.count, groups).transpose(1, 0, 2)


class Ends(NamedTuple):
    """Ends of the 95% interval of a relative change, its standard error and the number of blocks, for each group."""

    low: Vector
    high: Vector
    deviation: Vector
    blocks: Places


def intervals(sums: Vector, alike: bool) -> Ends:
    """Student intervals of ratios from block sums (blocks x 3 x groups), by linearisation; nan with too few blocks."""
    count, _, groups = sums.shape
    before, after, _ = sums.sum(axis=0)
    there = np.maximum((sums[:, 2] > 0.0).sum(axis=0), 2)
    if count < LEAST:
        nothing = np.full(groups, np.nan)
        return Ends(nothing, nothing, nothing, there)
    few = np.sqrt(there / (there - 1.0) * (count - 1.0) / count)
    wide = np.array([student_quantile(int(many), SURE) for many in there])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(before > 0.0, after / before, np.nan)
        deviation = few * np.sqrt(variance_of_sums(sums[:, 1] - sums[:, 0] * ratio, alike)) / before
    return Ends(ratio - 1.0 - wide * deviation, ratio - 1.0 + wide * deviation, deviation, there)
