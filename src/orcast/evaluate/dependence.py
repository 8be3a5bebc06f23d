"""Design effects of dependent rows, from blocks of consecutive times.

Künsch (1989), "The jackknife and the bootstrap for general stationary observations", Annals of Statistics
17; Politis and White (2004), "Automatic block-length selection for the dependent bootstrap", Econometric Reviews 23.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from orcast.evaluate.evaluation import Evaluation, Matrix, Places, Vector, computed_once, outcomes_of
from orcast.evaluate.information import Information

# Largest number of blocks, and the fewest that give a variance.
MOST, LEAST = 1000, 4
# Fewest distinct times of a verdict, since all series share the errors of one time.
TIMES = 8
# Lags tried before the signal is aggregated, and the factor of the aggregation.
LAGS, COARSER = 64, 8


@dataclass(frozen=True, eq=False)
class Blocks:
    """Block of each row, their number, and a flag for correlated neighbours."""

    of_row: Places
    count: int
    alike: bool


@computed_once
def steps_of(evaluation: Evaluation) -> tuple[Places, int]:
    """Rank of the time of each row, or its place in its series, and their number."""
    if evaluation.time is not None:
        times, ranks = np.unique(evaluation.time, return_inverse=True)
        return ranks, int(times.size)
    order = np.argsort(evaluation.series, kind="stable")
    counts = np.bincount(evaluation.series, minlength=len(evaluation.names))
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.empty(evaluation.rows, dtype=np.intp)
    steps[order] = np.arange(evaluation.rows) - starts
    return steps, int(counts.max(initial=0))


def information_of(evaluation: Evaluation) -> tuple[Information, Any]:
    """Information of the rows; if none is given, outcomes are known at their time, but for `overlap` of them."""
    if evaluation.known is not None:
        return evaluation.known
    steps = steps_of(evaluation)[0]
    known = Information.of(
        evaluation.series, steps, evaluation.y, steps - 0.5 - evaluation.overlap, stamps=evaluation.time
    )
    return known, slice(None)


@computed_once
def shared_times(evaluation: Evaluation) -> tuple[Places, int]:
    """Rank of the time of each row, or of its issue time if those are fewer, and their number."""
    steps, size = steps_of(evaluation)
    if evaluation.known is not None:
        known, rows = evaluation.known
        issued, ranks = np.unique(known.issued[rows], return_inverse=True)
        if issued.size < size:
            return ranks, int(issued.size)
    return steps, size


def reach(signal: Vector) -> int:
    """Last lag with a significant autocorrelation, 0 if none."""
    size = signal.size
    x = signal - signal.mean() if size else signal
    power = float(x @ x)
    if size < 20 or not power > 0.0:
        return 0
    beyond, last = 2.0 * np.sqrt(np.log10(size) / size), 0
    for lag in range(1, size // 4 + 1):
        if float(x[lag:] @ x[:-lag]) > beyond * power:
            last = lag
        elif lag - last >= 5:
            break
        if lag == LAGS:
            whole = size // COARSER * COARSER
            return max(last, COARSER * reach(x[:whole].reshape(-1, COARSER).sum(axis=1)))
    return last


def reach_of(evaluation: Evaluation, signals: Iterable[Vector], *, slow: bool = True) -> int:
    """Longest reach of signals averaged by time; `slow=False` removes slow changes first."""
    steps, size = steps_of(evaluation)
    count = np.bincount(steps, minlength=size)
    by_time = (np.bincount(steps, each, minlength=size) / count for each in signals)
    return max((reach(each if slow else _without_slow(each)) for each in by_time), default=0)


def _without_slow(signal: Vector) -> Vector:
    """Signal minus its moving mean over an eighth of the time."""
    half = signal.size // 16
    total = np.concatenate(([0.0], np.cumsum(signal)))
    at = np.arange(signal.size)
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, signal.size)
    return np.asarray(signal - (total[high] - total[low]) / (high - low))


def blocks_of(evaluation: Evaluation, far: int, least: int = 1) -> Blocks:
    """Blocks of consecutive times, twice as long as forecasts overlap or times are correlated."""
    size, (ranks, times) = steps_of(evaluation)[1], shared_times(evaluation)
    steps_ahead = evaluation.overlap + 1
    length = max(2 * steps_ahead if evaluation.overlap else 1, 2 * far)
    length = max(min(length, max(steps_ahead, size // 8)), least)
    # rows of one time, or issue time, are in one block; all rows if there are too few times for a verdict
    count = max(1, min(size // length, times, MOST)) if times >= TIMES else 1
    return Blocks(ranks * count // max(times, 1), count, bool(evaluation.overlap or far))


def variance_of_sums(parts: Matrix, alike: bool, *, by_steps: bool = False) -> Vector:
    """Variance of column sums of block sums with mean 0, corrected for correlated neighbours."""

    def squares(sums: Matrix) -> Vector:
        # in differences of neighbouring blocks slow changes do not count
        return np.asarray((np.diff(sums, axis=0) ** 2).sum(axis=0) / 2.0 if by_steps else (sums**2).sum(axis=0))

    count = parts.shape[0]
    once: Vector = squares(parts) * count / (count - 1)
    if not alike or count < 2 * LEAST:
        return once
    half = count // 2
    pairs = parts[: 2 * half].reshape(half, 2, -1).sum(axis=1)
    return np.asarray(np.maximum(once, 2.0 * squares(pairs) * count / (2.0 * half - 2.0) - once))


def student_quantile(count: int, sure: float) -> float:
    """Quantile of Student's distribution, for a variance from `count` blocks."""
    return float(stdtrit(count - 1, 0.5 + sure / 2.0))


def widening(count: int, sure: float) -> float:
    """Student quantile over the normal one, for a variance from differences of blocks."""
    # it has two thirds of the degrees of freedom
    return student_quantile(1 + max(1, round(2 * (count - 1) / 3)), sure) / float(ndtri(0.5 + sure / 2.0))


# --- calibration


@computed_once
def calibration_blocks(evaluation: Evaluation, side: str) -> Blocks | None:
    """Blocks for the sampling noise of frequencies; None if the outcomes are independent."""
    if evaluation.rows == 0:
        return None
    far = reach_of(evaluation, _signals(evaluation, side), slow=False)
    if not evaluation.overlap and far == 0 and steps_of(evaluation)[1] == evaluation.rows:
        return None
    return blocks_of(evaluation, far)


def _signals(evaluation: Evaluation, side: str) -> list[Vector]:
    """Signals whose autocorrelation shows how far dependence reaches: ranks of the outcomes."""
    rows, y = evaluation.side(side), evaluation.y
    if evaluation.kind != "quantiles":
        came = outcomes_of(evaluation)
        k = int(came.var(axis=0).argmax()) if evaluation.rows else 0
        return [came[:, k] - rows[:, k]]
    below = sum((q < y for q in rows.T), np.zeros(y.size)) / rows.shape[1]
    return [below, np.abs(below - 0.5)]


@computed_once
def indicator_sums(evaluation: Evaluation, side: str) -> tuple[Matrix, Matrix | None]:
    """Frequencies of y < q and of y <= q, 2 x levels, and the sums of their means by block."""
    y, blocks = evaluation.y, calibration_blocks(evaluation, side)
    shares, parts = np.zeros((2, evaluation.levels.size)), []
    for k, q in enumerate(evaluation.side(side).T):
        hits = y < q, y <= q
        shares[:, k] = [hit.sum() / max(evaluation.rows, 1) for hit in hits]
        if blocks is not None:
            parts.append(_by_block(0.5 * hits[0] + 0.5 * hits[1], blocks))
    return shares, np.stack(parts, axis=1) if parts else None


def _by_block(values: Vector, blocks: Blocks) -> Vector:
    return np.asarray(np.bincount(blocks.of_row, values, minlength=blocks.count), dtype=np.float64)


def frequencies(evaluation: Evaluation, side: str) -> Vector:
    """Share of outcomes below the quantile, for each level; ties count so that it is nearest to the level.

    A quantile q of level a is right if P(y < q) <= a <= P(y <= q).
    """
    below, upto = indicator_sums(evaluation, side)[0]
    return np.clip(evaluation.levels, below, upto)


@computed_once
def _parts(evaluation: Evaluation, side: str) -> Matrix | None:
    """Centred block sums of the indicators, or of outcome minus probability."""
    blocks = calibration_blocks(evaluation, side)
    if blocks is None or blocks.count < LEAST:
        return None
    if evaluation.kind == "quantiles":
        sums = indicator_sums(evaluation, side)[1]
    else:
        gaps = outcomes_of(evaluation) - evaluation.side(side)
        sums = np.stack([_by_block(gap, blocks) for gap in gaps.T], axis=1)
    assert sums is not None
    count = np.bincount(blocks.of_row, minlength=blocks.count)[:, None]
    return np.asarray(sums - count * (sums.sum(axis=0) / evaluation.rows))


def design_effect(evaluation: Evaluation, side: str, *, weights: Matrix | None = None, sure: float = 0.95) -> Vector:
    """Rows per independent outcome, at least 1, for each level or label; levels share one pooled estimate."""
    # weights (levels x events) select sums of levels: an interval is its upper end minus its lower one
    kinds = len(evaluation.labels) if evaluation.kind != "quantiles" else evaluation.levels.size
    weights = np.eye(kinds) if weights is None else weights
    parts, blocks = _parts(evaluation, side), calibration_blocks(evaluation, side)
    if parts is None or blocks is None:
        # too few blocks: all rows of one time count as one
        at_once = max(1.0 + evaluation.overlap, evaluation.rows / max(shared_times(evaluation)[1], 1))
        return np.full(weights.shape[1], 1.0 if blocks is None else at_once)
    if evaluation.kind == "quantiles":
        p = frequencies(evaluation, side) @ weights
        alone = evaluation.rows * p * (1.0 - p)
    else:
        alone = (evaluation.side(side) * (1.0 - evaluation.side(side))).sum(axis=0) @ weights**2
    found = variance_of_sums(parts @ weights, blocks.alike, by_steps=True) * widening(blocks.count, sure) ** 2
    if evaluation.kind == "quantiles":
        found, alone = np.full(found.size, found.sum()), np.full(found.size, alone.sum())
    return np.asarray(np.maximum(1.0, np.where(alone > 0.0, found / np.where(alone > 0.0, alone, 1.0), 1.0)))
