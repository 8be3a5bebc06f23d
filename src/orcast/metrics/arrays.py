"""Arrays of quantiles and outcomes, checked, and what metrics compute from them.

The second half trusts its arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

LEVELS: Vector = np.arange(1, 100) / 100
"""The 99 levels 0.01, 0.02, ..., 0.99."""
LEVELS.flags.writeable = False


def as_levels(levels: ArrayLike) -> Vector:
    """Increasing levels, strictly between 0 and 1."""
    a = as_numbers(levels, "levels")
    if a.ndim != 1 or a.size == 0 or a[0] <= 0.0 or a[-1] >= 1.0 or np.any(np.diff(a) <= 0.0):
        raise ValueError(f"expected increasing levels strictly between 0 and 1, got {levels!r}")
    return a


def as_count(value: object, what: str) -> int:
    """A whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"expected {what}, got {value!r}")
    return int(value)


def as_numbers(x: ArrayLike, what: str) -> Vector:
    """Finite numbers."""
    try:
        a = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"expected numbers for {what}, got {x!r}") from None
    if not np.isfinite(a).all():
        raise ValueError(f"expected finite {what}, got {x!r}")
    return a


def as_number(x: float, what: str) -> float:
    """One finite number."""
    a = as_numbers(x, what)
    if a.ndim != 0:
        raise ValueError(f"expected a single number for {what}, got shape {a.shape}")
    return float(a)


def as_row(q: ArrayLike, count: int) -> Vector:
    """The quantiles of one forecast."""
    a = as_numbers(q, "quantiles")
    if a.shape != (count,):
        raise ValueError(f"expected {count} quantiles, one for each level, got shape {a.shape}")
    return a


def as_rounds(q: ArrayLike, y: ArrayLike, levels: ArrayLike) -> tuple[Vector, Vector, Vector]:
    """Quantiles (..., L), outcomes (...) and levels (L,), checked against one another."""
    a, quantiles, outcomes = as_levels(levels), as_numbers(q, "quantiles"), as_numbers(y, "outcomes")
    if quantiles.shape != (*outcomes.shape, a.size):
        raise ValueError(
            f"expected quantiles of shape {(*outcomes.shape, a.size)}, one for each outcome and level, "
            f"got shape {quantiles.shape}"
        )
    return quantiles, outcomes, a


def counts_ties(ties: str) -> bool:
    """Whether ties are counted fairly."""
    if ties not in ("fair", "plain"):
        raise ValueError(f"expected 'fair' or 'plain' as ties, got {ties!r}")
    return ties == "fair"


def as_bounds(low: float, high: float) -> tuple[float, float]:
    """Two bounds, in order."""
    if not low < high:
        raise ValueError(f"expected low < high, got {low!r} and {high!r}")
    return float(low), float(high)


def as_series(q: ArrayLike, y: ArrayLike, levels: ArrayLike) -> tuple[Vector, Vector, Vector]:
    """As `as_rounds`, of rounds in a row."""
    quantiles, outcomes, a = as_rounds(q, y, levels)
    if outcomes.ndim != 1:
        raise ValueError(f"expected a sequence of outcomes, got shape {outcomes.shape}")
    return quantiles, outcomes, a


def midpoints(a: Vector) -> Vector:
    """Half-way points between neighbouring levels, with 0 and 1 as the outermost neighbours."""
    ends = np.concatenate(([0.0], a, [1.0]))
    return (ends[1:] + ends[:-1]) / 2


def indicators(q: Vector, y: Vector, a: Vector, mid: Vector, low: float, high: float, fair: bool = True) -> Vector:
    """1{y <= q} at each level; if it is fair, ties count as the levels that share the value say."""
    y_ = y[..., None]
    out = (q >= y_).astype(np.float64)
    if not fair:
        return out
    left, right = np.count_nonzero(q < y_, axis=-1), np.count_nonzero(q <= y_, axis=-1)
    tied = right > left
    if np.any(tied):
        start = np.where(y > low, mid[np.minimum(left, a.size - 1)], 0.0)[tied]
        stop = np.where(y < high, mid[right], 1.0)[tied]
        out[tied] = np.clip((a - start[..., None]) / (stop - start)[..., None], 0.0, 1.0)
    return out


def mean_pinball(q: Vector, y: Vector, a: Vector) -> Vector:
    """The mean pinball loss over the levels."""
    e = y[..., None] - q
    return np.asarray(np.maximum(a * e, (a - 1.0) * e).mean(axis=-1))


def relative_errors(mean: Vector, y: Vector) -> Vector:
    """|y - mean| over the mean of their sizes; 0 where both are 0."""
    size = (np.abs(y) + np.abs(mean)) / 2
    return np.asarray(np.abs(y - mean) / np.where(size > 0.0, size, 1.0))
