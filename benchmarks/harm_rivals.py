"""What stands beside orcast in "do no harm": the last known outcome with its spread, MultiQT, and chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import orcast as oc
from orcast.baselines import MultiLevelTracking
from orcast.metrics import pinball

Vector = NDArray[np.float64]
# Changes over which the spread of the last known outcome is measured, and the fewest that make one.
CHANGES, FEWEST = 500, 5


def last_known(y: Vector, known: NDArray[np.int64], levels: Vector, low: float = -np.inf) -> Vector:
    """Normal quantiles around outcome known[t] for row t, as wide as past changes over t - known[t] steps.

    Rows of nan where fewer than five such changes were known.
    """
    rows = np.arange(y.size)
    spread = np.full(y.size, np.nan)
    for lag in np.unique(rows - known):
        squares = np.cumsum(np.append(0.0, (y[lag:] - y[:-lag]) ** 2))
        at = rows[(rows - known == lag) & (known - lag + 1 >= FEWEST)]
        stop = known[at] - lag + 1
        start = np.maximum(stop - CHANGES, 0)
        spread[at] = np.sqrt((squares[stop] - squares[start]) / (stop - start))
    last = np.where(known >= 0, y[np.maximum(known, 0)], np.nan)
    return np.maximum(last[:, None] + spread[:, None] * ndtri(levels), low)


def relative(q: Vector, raw: Vector, y: Vector, levels: Vector) -> float:
    """The pinball loss of some quantiles as a part of the raw forecasts', on the rows that have both."""
    there = np.isfinite(q[:, 0])
    if not there.any():
        return float("nan")
    loss = pinball(q[there], y[there], levels).mean()
    return float(loss / pinball(raw[there], y[there], levels).mean())


def multiqt(y: Vector, raw: Vector, levels: Vector, late: int = 0, *, low: float = 0.0, least: float = 0.0) -> Vector:
    """What MultiQT plays around quantiles whose outcomes are so many rounds late."""
    far = 10.0 * (np.abs(raw).max() + np.abs(y).max() + 1.0)
    method = MultiLevelTracking(max(low, -far), far, levels=levels, least=least)
    played = np.empty_like(raw)
    for t, row in enumerate(raw):
        played[t] = method.predict(oc.Quantiles(levels, row), id=t).quantile(levels)
        if t >= late:
            method.update(y[t - late], id=t - late)
    return played


def gap(q: Vector, y: Vector, levels: Vector) -> float:
    """The mean distance of coverage from its level, ties in favour of the forecast."""
    at_most, below = (q >= y[:, None]).mean(axis=0), (q > y[:, None]).mean(axis=0)
    return float(np.abs(np.clip(levels, below, at_most) - levels).mean())


def chance_gap(lengths: Sequence[int], levels: Vector, overlap: int = 1, draws: int = 20) -> float:
    """The mean gap of calibrated series of these lengths, whose errors are sums over so many steps."""
    rng = np.random.default_rng(0)
    found = []
    for length in lengths:
        noise = rng.standard_normal((draws, length + overlap - 1))
        sums = np.lib.stride_tricks.sliding_window_view(noise, overlap, axis=1).sum(axis=2)
        pits = ndtr(sums / np.sqrt(overlap))
        found.append(np.abs((pits[:, :, None] <= levels).mean(axis=1) - levels).mean())
    return float(np.mean(found))
