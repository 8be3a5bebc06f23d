"""Scores of a method on a stream, and ranks over streams.

Losses are ratios to those of the base forecast on the same outcomes.  Over groups (one series at one horizon) ratios
have a geometric mean and everything else a mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata

from orcast.evaluate.metrics import brier, ece, pinball, qce
from research.comparison.runner import Run
from research.comparison.stream import Array, Stream, Whole
from research.output import geometric_mean

WINDOW = 200
BANDS = (0.5, 0.9, 0.98)
MOST = 1e6  # largest ratio; the smallest is 1 / MOST
DRAWS, RESAMPLES, CONFIDENCE = 20, 2000, 0.9


class Score(NamedTuple):
    """Columns of the tables; nan where a stream has none.

    For events `loss` is the Brier score, `gap` the expected calibration error and `rolling` its worst over 200 rounds.
    """

    loss: float  # / base
    gap: float = float("nan")  # mean distance of coverage from its level
    qce: float = float("nan")
    rolling: float = float("nan")  # the worst QCE over 200 rounds
    cover50: float = float("nan")
    cover90: float = float("nan")
    cover98: float = float("nan")
    width90: float = float("nan")  # / base
    worst: float = float("nan")  # largest loss / base of a group
    better: float = float("nan")  # share of groups with a loss below the base forecast's
    microseconds: float = float("nan")
    chance: float = float("nan")  # mean gap of a calibrated forecaster


def score(stream: Stream, run: Run, chance: float) -> Score:
    """All columns for the forecasts issued on a stream."""
    groups = stream.groups()
    y, issued, base = run.y, run.issued, stream.base
    loss = np.array([_ratio(_loss(stream, issued[g], y[g]), _loss(stream, base[g], y[g])) for g in groups])
    found = Score(geometric_mean(loss, 1.0 / MOST), worst=float(loss.max()), better=float((loss < 1.0).mean()),
                  microseconds=1e6 * run.seconds, chance=chance)  # fmt: skip
    if stream.binary:
        gaps = [ece(issued[g], y[g]) for g in groups]
        rolling = [worst_rolling_ece(issued[g], y[g]) for g in groups]
        return found._replace(gap=float(np.mean(gaps)), rolling=_largest(rolling))
    a, low, high = stream.levels, stream.low, stream.high
    gaps = [gap(issued[g], y[g], a) for g in groups]
    errors = [qce(issued[g], y[g], a, low=low, high=high) for g in groups]
    rolling = [qce(issued[g], y[g], a, window=WINDOW, low=low, high=high) for g in groups]
    widths = [_ratio(width(issued[g], a), width(base[g], a)) for g in groups]
    cover50, cover90, cover98 = (cover(issued, y, a, band) for band in BANDS)
    return found._replace(
        gap=float(np.mean(gaps)), qce=float(np.mean(errors)), rolling=_largest(rolling), cover50=cover50,
        cover90=cover90, cover98=cover98, width90=geometric_mean(widths, 1.0 / MOST),
    )  # fmt: skip


def _largest(values: Sequence[float]) -> float:
    """Largest value that is not nan."""
    there = [value for value in values if not np.isnan(value)]
    return max(there) if there else float("nan")


def _loss(stream: Stream, issued: Array, y: Array) -> float:
    return float((brier(issued, y) if stream.binary else pinball(issued, y, stream.levels)).mean())


def _ratio(value: float, beside: float) -> float:
    """Ratio of a loss to another one, which may be 0."""
    if np.isnan(value) or np.isnan(beside):
        return float("nan")
    if beside > 0.0:
        return min(value / beside, MOST)
    return 1.0 if value == beside else MOST


def below(q: Array, y: Array, levels: Array) -> Array:
    """Share of outcomes below the quantile at each level, ties in favour of the forecast."""
    at_most, less = (q >= y[:, None]).mean(axis=0), (q > y[:, None]).mean(axis=0)
    return np.clip(levels, less, at_most)


def gap(q: Array, y: Array, levels: Array) -> float:
    """Mean distance of coverage from its level, ties in favour of the forecast."""
    return float(np.abs(below(q, y, levels) - levels).mean())


def _band(levels: Array, band: float) -> tuple[int, int] | None:
    """Places of the two levels of a band, if there are such levels."""
    ends = [int(np.abs(levels - end).argmin()) for end in ((1.0 - band) / 2.0, (1.0 + band) / 2.0)]
    there = np.allclose(levels[ends], [(1.0 - band) / 2.0, (1.0 + band) / 2.0], atol=1e-6)
    return (ends[0], ends[1]) if there else None


def cover(q: Array, y: Array, levels: Array, band: float) -> float:
    """Share of outcomes in a band; nan if it is not among the levels."""
    at = _band(levels, band)
    if at is None:
        return float("nan")
    shares = below(q[:, list(at)], y, levels[list(at)])
    return float(shares[1] - shares[0])


def width(q: Array, levels: Array, band: float = 0.9) -> float:
    """Mean width of a band; nan if it is not among the levels."""
    at = _band(levels, band)
    return float("nan") if at is None else float((q[:, at[1]] - q[:, at[0]]).mean())


def worst_rolling_ece(p: Array, y: Array, window: int = WINDOW) -> float:
    """Largest calibration error of probabilities over `window` rounds in a row; nan if there are fewer."""
    if y.size < window:
        return float("nan")
    bins = np.minimum((p * 15).astype(int), 14)
    sums = np.zeros((y.size + 1, 15))
    sums[np.arange(1, y.size + 1), bins] = y - p
    total = np.cumsum(sums, axis=0)
    return float((np.abs(total[window:] - total[:-window]).sum(axis=1) / window).max())


# --- sampling noise ---


def chance_gap(stream: Stream) -> float:
    """Mean gap of a calibrated forecaster on groups of these lengths, with errors that overlap as theirs do."""
    rng = np.random.default_rng(0)
    if stream.binary:
        p = stream.base
        return float(np.mean([ece(p[g], (rng.random(g.size) < p[g]) * 1.0) for g in stream.groups() for _ in range(5)]))
    kinds: dict[tuple[int, int], int] = {}
    for rows in stream.groups():
        key = rows.size, overlap(stream, rows)
        kinds[key] = kinds.get(key, 0) + 1
    found = [_chance_gap(length, steps, stream.levels, rng) for length, steps in kinds]
    return float(np.average(found, weights=list(kinds.values())))


def _chance_gap(length: int, steps: int, levels: Array, rng: np.random.Generator) -> float:
    noise = rng.standard_normal((DRAWS, length + steps - 1))
    sums = np.cumsum(np.pad(noise, ((0, 0), (1, 0))), axis=1)
    pits = ndtr((sums[:, steps:] - sums[:, :-steps]) / np.sqrt(steps))
    return float(np.mean([np.abs((row[:, None] <= levels).mean(axis=0) - levels).mean() for row in pits]))


def overlap(stream: Stream, rows: Whole) -> int:
    """Usual number of rows of a group that are issued until an outcome is known."""
    waiting = np.searchsorted(stream.issued[rows], stream.known[rows], side="left") - np.arange(rows.size)
    return max(int(np.median(waiting)), 1)


# --- ranks ---


class Rank(NamedTuple):
    """Mean rank of a method over streams with an interval, and the number of streams."""

    mean: float
    low: float
    high: float
    streams: int


def joint_ranks(scores: Mapping[str, Mapping[str, tuple[float, float]]]) -> dict[str, Rank]:
    """Mean over streams of the mean of a method's ranks in gap and in loss, given as {stream: {method: both}}.

    Ties share their ranks.  The interval is a 90% bootstrap interval over streams.

    >>> two = {"a": {"x": (0.1, 0.9), "y": (0.2, 0.8)}, "b": {"x": (0.1, 0.9), "y": (0.2, 1.0)}}
    >>> joint_ranks(two)["x"].mean, joint_ranks(two)["y"].mean
    (1.25, 1.75)
    """
    streams = list(scores)
    methods = sorted({method for each in scores.values() for method in each})
    table = np.full((len(streams), len(methods)), np.nan)
    for i, stream in enumerate(streams):
        own = [m for m, method in enumerate(methods) if method in scores[stream]]
        both = np.array([scores[stream][methods[m]] for m in own])
        table[i, own] = (rankdata(np.nan_to_num(both[:, 0], nan=np.inf)) + rankdata(both[:, 1])) / 2.0
    drawn = np.random.default_rng(0).integers(0, len(streams), (RESAMPLES, len(streams)))
    found = {}
    for m, method in enumerate(methods):
        there = ~np.isnan(table[:, m])
        counts = there[drawn].sum(axis=1)
        means = np.where(there, table[:, m], 0.0)[drawn].sum(axis=1)[counts > 0] / counts[counts > 0]
        low, high = np.quantile(means, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
        found[method] = Rank(float(table[there, m].mean()), float(low), float(high), int(there.sum()))
    return found
