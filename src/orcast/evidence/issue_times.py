"""Were forecasts issued many at a time?  Their errors show it: what lasts from one to the next breaks off in turns."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from orcast.evidence.base import ASSUMPTION, Evidence, Places, Vector, computed_once

# Blocks that people issue: hours of a day, half hours, quarters of an hour, days of weeks and months, weeks of a year.
LENGTHS = (4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 18, 20, 21, 24, 26, 28, 30, 31, 36, 40, 42, 48, 52, 60, 72, 96, 144, 168)
# Fewer blocks say nothing; so many errors of so many series are looked at.
BLOCKS, ERRORS, SERIES = 20, 10_000, 10
# How many standard errors the break must lie below the rest, its least size (Fisher's z), what lasts, what others keep.
SIGMAS, DROP, LASTING, APART = 5.5, 0.3, 0.3, 0.3


def issue_blocks(errors: ArrayLike, times: ArrayLike | None = None) -> int | None:
    """How many forecasts seem to have been issued at a time, from their errors in the order of time; None if one.

    Errors of forecasts that were issued together last from one to the next, and begin anew with the next block: their
    rank correlation with the one before is lower at one place in the block than at all others, in each half of the
    data, and at that place of every block.  Errors one step ahead last as much at any place.  Nothing is found where
    errors do not last, or last so long that a new block does not break them off.

    >>> rng = np.random.default_rng(0)
    >>> day_ahead = np.cumsum(rng.normal(size=(100, 24)), axis=1).ravel()
    >>> issue_blocks(day_ahead), issue_blocks(np.cumsum(rng.normal(size=2400)))
    (24, None)
    """
    e = _on_a_grid(np.asarray(errors, dtype=np.float64), times)
    return next((length for length in LENGTHS if _is_block(e, length)), None)


def _on_a_grid(e: Vector, times: ArrayLike | None) -> Vector:
    """Errors at equal steps; what is missing between is as usual, and where much is, rows are counted."""
    if times is not None and e.size > 1:
        when = np.asarray(times)
        when = when.astype(np.int64) if when.dtype.kind in "mM" else when.astype(np.float64)
        order = np.argsort(when, kind="stable")
        e, when = e[order], when[order]
        step = float(np.median(np.diff(when)))
        if step > 0.0:
            places: Places = np.rint((when - when[0]) / step).astype(np.intp)
            if (np.diff(places) > 0).all() and e.size >= 0.9 * (places[-1] + 1):
                grid = np.full(int(places[-1]) + 1, np.nan)
                grid[places] = e
                e = grid
    e = e[-ERRORS:]
    there = np.isfinite(e)
    return np.where(there, e, np.median(e[there])) if there.any() else e[:0]


def _is_block(e: Vector, length: int) -> bool:
    """Whether errors break off at one place in blocks of this length, and only there."""
    count = (e.size - 1) // length
    if count < BLOCKS:
        return False
    x, y = (e[start : start + count * length].reshape(count, length) for start in (0, 1))
    lasts = _likeness(x, y)
    at = int(np.argmin(np.where(np.isnan(lasts), np.inf, lasts)))
    others = np.delete(lasts, at)
    if np.isnan(others).sum() > others.size // 2:
        return False
    usual, least = float(np.nanmedian(others)), float(np.nanmin(others))
    gap = usual - float(lasts[at])
    if not (
        gap * np.sqrt(count - 3) >= SIGMAS
        and gap >= DROP
        and np.tanh(usual) >= LASTING
        and least - lasts[at] >= APART * gap
    ):
        return False
    half = count // 2
    parts = (slice(half), slice(half, None), slice(0, None, 2), slice(1, None, 2))
    return all(_breaks(_likeness(x[part], y[part]), at, gap) for part in parts) and all(
        _in_every_block(x, y, at, gap, merged) for merged in (2, 3)
    )


def _breaks(lasts: Vector, at: int, gap: float) -> bool:
    """Whether a part of the data breaks off at the same place."""
    if np.isnan(lasts).sum() > lasts.size // 2 or np.isnan(lasts[at]):
        return False
    return bool(np.nanmedian(np.delete(lasts, at)) - lasts[at] > 0.5 * gap and lasts[at] <= np.nanmin(lasts))


def _in_every_block(x: Vector, y: Vector, at: int, gap: float, merged: int) -> bool:
    """Whether all of so many blocks in turn break off, not one of them: else the block is longer."""
    count, length = x.shape[0] // merged, x.shape[1]
    if count < 7:
        return True
    lasts = _likeness(*(part[: count * merged].reshape(count, -1) for part in (x, y)))
    breaks = np.arange(at, merged * length, length)
    rest = np.delete(lasts, breaks)
    if np.isnan(rest).all():
        return False
    return bool(np.nanmedian(rest) - lasts[breaks].max() > 0.5 * gap - 1.0 / np.sqrt(count - 3))


def _likeness(x: Vector, y: Vector) -> Vector:
    """Fisher's z of the rank correlation of each column; nan where many values are the same, as at night."""
    count = x.shape[0]
    a, b = (ranks - ranks.mean(axis=0) for ranks in (rankdata(x, axis=0), rankdata(y, axis=0)))
    power = np.stack([(a**2).sum(axis=0), (b**2).sum(axis=0)])
    fine = (power > 0.97 * count * (count**2 - 1) / 12.0).all(axis=0)
    r = (a * b).sum(axis=0) / np.where(fine, np.sqrt(power.prod(axis=0)), 1.0)
    return np.where(fine, np.arctanh(np.clip(r, -0.9999, 0.9999)), np.nan)


@computed_once
def blocks_seen(evidence: Evidence) -> int | None:
    """How many forecasts seem to have been issued at a time, if nothing says when they were issued.

    Of several series most of those that are long enough must show the same.

    >>> day_ahead = np.cumsum(np.random.default_rng(0).normal(size=(100, 24)), axis=1).ravel()
    >>> blocks_seen(Evidence.of(np.tile([-5.0, 0.0, 5.0], (2400, 1)), day_ahead, levels=[0.1, 0.5, 0.9]))
    24
    """
    if evidence.assumption != ASSUMPTION or evidence.kind != "quantiles" or not evidence.rows:
        return None
    middle = int(np.abs(evidence.levels - 0.5).argmin())
    rows = np.bincount(evidence.series, minlength=len(evidence.names))
    longest = [k for k in np.argsort(-rows, kind="stable")[:SERIES] if rows[k] > BLOCKS * LENGTHS[0]]
    found: Counter[int | None] = Counter()
    for k in longest:
        mine = np.flatnonzero(evidence.series == k)
        times = evidence.time[mine] if evidence.time is not None and evidence.time.dtype.kind in "iufmM" else None
        found[issue_blocks(evidence.y[mine] - evidence.before[mine, middle], times)] += 1
    if not found:
        return None
    length, votes = found.most_common(1)[0]
    return length if 2 * votes > len(longest) else None
