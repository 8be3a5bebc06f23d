"""Forecasts of a quantity as quantiles: quantiles, normal, ensemble, objects with ppf or cdf."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import limits
from orcast.forecasts import Forecast, as_levels
from orcast.spaces import OrderedSpace, normal_scores
from orcast.spaces.base import LARGEST, SMALLEST
from orcast.validation import floats, number, short

Array = NDArray[np.float64]

ACCEPTED = (
    "quantiles by level such as {0.1: 5, 0.9: 9}, Normal(mean, sd), Ensemble(members), Quantiles(levels, values), "
    "a Forecast, or anything with ppf or cdf"
)


# An expert's quantiles are clipped at this distance from the bounds, in lengths of the interval.
REACH = 10.0
# Crossings below this share of the size are rounding.
ROUNDING = 1e-9
# Smallest spread of a forecast relative to its size: about 100 floating-point numbers.
FINEST = 100 * float(np.finfo(np.float64).eps)


def _numbers(values: object, what: str, *, rows: bool = False) -> Array:
    """Check a sequence of finite numbers, or of vectors as rows."""
    try:
        array = np.array(floats(values))
    except (TypeError, ValueError, OverflowError):
        kind = "vectors of one length" if rows else "numbers"
        raise TypeError(f"expected {kind} as {what}, got {short(values)}") from None
    if array.ndim != 1 + rows or array.size == 0:
        kind = "a row of numbers for each of the" if rows else "a sequence of at least one number as"
        raise ValueError(f"expected {kind} {what}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers as {what}, got {array[~np.isfinite(array)][0]!r}")
    return array


class _Plan(NamedTuple):
    """Interpolation of quantiles at some scores from those at known scores."""

    left: NDArray[np.intp]  # the known score left of each wanted one
    share: Array  # how far towards the next
    low: NDArray[np.intp]  # wanted scores below all known ones ...
    below: Array  # ... and by how much, in units of the distance from the middle to the outermost known score
    high: NDArray[np.intp]
    above: Array
    centre: int  # the middle, from which tails continue
    centre_share: float


@lru_cache(maxsize=64)
def _plan(known: bytes, wanted: bytes) -> _Plan:
    k, z = np.frombuffer(known), np.frombuffer(wanted)
    middle = 0.0 if k[0] < 0.0 < k[-1] else 0.5 * (k[0] + k[-1])

    def between(x: Array) -> tuple[NDArray[np.intp], Array]:
        left = np.clip(np.searchsorted(k, x, side="right") - 1, 0, k.size - 2)
        return left, np.clip((x - k[left]) / (k[left + 1] - k[left]), 0.0, 1.0)

    left, share = between(z)
    centre, centre_share = between(np.array([middle]))
    low, high = np.flatnonzero(z < k[0]), np.flatnonzero(z > k[-1])
    return _Plan(
        left,
        share,
        low,
        (z[low] - k[0]) / (k[0] - middle),
        high,
        (z[high] - k[-1]) / (k[-1] - middle),
        int(centre[0]),
        float(centre_share[0]),
    )


def _along_scores(z: Array, known: Array, values: Array) -> Array:
    """Quantiles at the scores z, of one row of values or many: linear in the score, also beyond the known ones.

    Beyond the outermost level the slope is that of its half of the distribution; beyond an atom it is flat.
    """
    if known.size < 2:
        return np.broadcast_to(values, (*values.shape[:-1], z.size)).copy()
    plan = _plan(known.tobytes(), np.ascontiguousarray(z).tobytes())
    here, there = values[..., plan.left], values[..., plan.left + 1]
    out: Array = here + (there - here) * plan.share
    if plan.low.size or plan.high.size:
        near, far = values[..., plan.centre], values[..., plan.centre + 1]
        middle = near + (far - near) * plan.centre_share
        for end, neighbour, at, distance in ((0, 1, plan.low, plan.below), (-1, -2, plan.high, plan.above)):
            tail = values[..., end] - middle
            tail = np.where(values[..., end] == values[..., neighbour], 0.0, tail)
            out[..., at] = values[..., end, None] + tail[..., None] * distance
    return out


@dataclass(frozen=True)
class Normal:
    """Gaussian forecast.

    Parameters
    ----------
    mean
        Mean.
    sd
        Standard deviation; with 0 all mass is at the mean.

    Examples
    --------
    >>> Normal(10, 2).quantile([0.5]).tolist()
    [10.0]
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number(self.mean, "mean"))
        object.__setattr__(self, "sd", number(self.sd, "standard deviation"))
        if self.sd < 0.0:
            raise ValueError(f"expected a standard deviation of at least 0, got {self.sd!r}")

    def quantile(self, levels: ArrayLike) -> Array:
        """Quantiles at levels."""
        return self.at_scores(normal_scores(as_levels(levels)))

    def at_scores(self, z: Array) -> Array:
        """Quantiles at normal scores."""
        return self.mean + self.sd * z if self.sd > 0.0 else np.full_like(z, self.mean)


class _ByScores:
    """Quantiles that are linear in the normal score between known ones."""

    __slots__ = ("_known",)

    _known: Array | None

    def quantile(self, levels: ArrayLike) -> Array:
        """Quantiles at levels; a number for a single level."""
        scores = normal_scores(as_levels(levels))
        quantiles: Array = self.at_scores(np.ravel(scores)).reshape(np.shape(scores))[()]
        return quantiles

    def at_scores(self, z: Array) -> Array:
        """Quantiles at normal scores."""
        raise AttributeError(f"{type(self).__name__} has no quantiles")


class Quantiles(_ByScores):
    """Quantiles at given levels, linear in the normal score of the level between and beyond them.

    Parameters
    ----------
    levels
        At least two levels strictly between 0 and 1.
    values
        Quantiles at these levels; crossing ones are sorted and `crossed` is set.

    Examples
    --------
    >>> q = Quantiles([0.1, 0.5, 0.9], [8.0, 9.0, 11.0])
    >>> q.quantile([0.5]).tolist(), q.crossed
    ([9.0], False)
    """

    __slots__ = ("crossed", "levels", "values")

    def __init__(self, levels: ArrayLike, values: ArrayLike) -> None:
        a = _numbers(levels, "levels")
        v = _numbers(values, "quantiles")
        limits.check("levels", a.size)
        if a.size != v.size:
            raise ValueError(f"expected as many quantiles as levels, got {v.size} and {a.size}")
        if a.size < 2:
            raise ValueError(f"expected quantiles at 2 levels or more, got {a.size}")
        if not (a.min() > 0.0 and a.max() < 1.0):
            raise ValueError(f"expected levels strictly between 0 and 1, got {float(a[(a <= 0) | (a >= 1)][0])!r}")
        if (np.diff(a) <= 0.0).any():
            order = np.argsort(a, kind="stable")
            a, v = a[order], v[order]
        close = np.diff(a) < 1e-12
        if close.any():
            raise ValueError(f"expected different levels, got {float(a[:-1][close][0])!r} twice")
        self.crossed = bool((np.diff(v) < 0.0).any())
        if self.crossed:
            v = np.sort(v)
        self.levels, self.values = a, v
        self._known = None

    def at_scores(self, z: Array) -> Array:
        """Quantiles at normal scores."""
        if self._known is None:
            self._known = normal_scores(self.levels)
        return _along_scores(z, self._known, self.values)

    def __repr__(self) -> str:
        return f"Quantiles({self.levels.tolist()}, {self.values.tolist()})"


class Ensemble(_ByScores):
    """Members or samples of a forecast.

    Parameters
    ----------
    members
        Numbers, of which the k-th smallest of n is the quantile at (k - 1/2) / n; or vectors as rows, for `Box`.

    Examples
    --------
    >>> Ensemble([9.0, 8.0, 10.0]).quantile([0.5]).tolist()
    [9.0]
    >>> Ensemble([[0.1, 2.0], [0.3, 1.0]]).members.shape
    (2, 2)
    """

    __slots__ = ("members",)

    def __init__(self, members: ArrayLike) -> None:
        rows = members.ndim == 2 if isinstance(members, np.ndarray) else _has_rows(members)
        values = _numbers(members, "members", rows=rows)
        limits.check("members", len(values))
        self.members = values if rows else np.sort(values)
        self._known = None

    def at_scores(self, z: Array) -> Array:
        """Quantiles at normal scores."""
        if self.members.ndim != 1:
            raise TypeError(f"expected an ensemble of numbers, got one of vectors of length {self.members.shape[1]}")
        if self._known is None:
            n = self.members.size
            self._known = normal_scores((np.arange(n) + 0.5) / n)
        return _along_scores(z, self._known, self.members)

    def __repr__(self) -> str:
        return f"Ensemble({self.members.tolist()})"


def _has_rows(members: object) -> bool:
    first = members[0] if isinstance(members, Sequence) and members else None
    return isinstance(first, (Sequence, np.ndarray)) and not isinstance(first, (str, bytes))


def _invert(cdf: Callable[[Array], Array], levels: Array, low: float, high: float) -> Array:
    """Quantiles of a cdf by bisection on [low, high] to the last float, so that jumps are exact."""
    a = np.full(levels.shape, low)
    share = np.linspace(0.0, 1.0, levels.size)
    # two products: the difference of the ends may overflow
    values = risen(cdf((1.0 - share) * low + share * high))
    b = np.where(values[0] >= levels, low, high)
    for _ in range(300):
        middle = 0.5 * (a + b)
        open_ = (a < middle) & (middle < b)
        if not open_.any():
            break
        reached = cdf(middle) >= levels
        b = np.where(open_ & reached, middle, b)
        a = np.where(open_ & ~reached, middle, a)
    risen(cdf(b))
    return b


def risen(values: Array) -> Array:
    """Values of a cdf at increasing outcomes; raise if they fall by more than rounding."""
    fall = np.diff(values)
    if fall.size and fall.min() < -ROUNDING:
        k = int(fall.argmin())
        raise ValueError(f"expected a cdf that never falls, got {values[k]:.6g} and then {values[k + 1]:.6g}")
    return values


def _bracket(cdf: Callable[[Array], Array], levels: Array) -> float:
    """Bound on the size of the quantiles at the levels, a power of 2."""
    size = 1.0
    while size <= LARGEST:
        low, high = cdf(np.array([-size, size]))
        if low < levels[0] and high >= levels[-1]:
            return size
        size *= 16.0
    raise ValueError("expected a cdf that rises from 0 to 1 within 1e100 of 0, got one that does not")


def expert_quantiles(forecast: object, space: OrderedSpace) -> tuple[Array, bool]:
    """Increasing quantiles of a user's forecast at the levels of the space, and True if they were sorted."""
    forecast = known_kind(forecast)
    if isinstance(forecast, Normal):
        return _normal_quantiles(forecast, space), False
    if isinstance(forecast, (Quantiles, Ensemble)):
        with np.errstate(over="ignore"):  # inf is clipped
            q = forecast.at_scores(space.scores)
        crossed = isinstance(forecast, Quantiles) and forecast.crossed
        return np.maximum.accumulate(within_reach(q, space)), crossed
    if isinstance(forecast, Forecast):
        q = forecast.quantile(space.levels)
    elif callable(getattr(forecast, "ppf", None)):
        q = called(forecast.ppf, space.levels, "ppf")  # type: ignore[attr-defined]
    elif callable(getattr(forecast, "cdf", None)):
        q = _from_cdf(forecast.cdf, space)  # type: ignore[attr-defined]
    else:
        raise TypeError(f"expected {ACCEPTED}, got {short(forecast)}")
    if np.isnan(q).any():
        raise ValueError("expected a forecast with quantiles that are numbers, got nan")
    q = within_reach(q, space)
    size = space.high - space.low
    if not math.isfinite(size):
        size = float(q.max() - q.min())
    crossed = bool((q[:-1] - q[1:]).max() > ROUNDING * size)
    return np.maximum.accumulate(np.sort(q) if crossed else q), crossed


def _normal_quantiles(forecast: Normal, space: OrderedSpace) -> Array:
    """Increasing quantiles of a Gaussian; if the outer ones are within reach, all are."""
    z = space.scores
    lowest, highest = forecast.mean + forecast.sd * z.item(0), forecast.mean + forecast.sd * z.item(-1)
    low, high = reach_of(space)
    away_from_zero = space.high - space.low < math.inf or lowest >= SMALLEST or highest <= -SMALLEST
    if low <= lowest and highest <= high and away_from_zero and highest >= space.low and lowest <= space.high:
        return forecast.at_scores(z)
    with np.errstate(over="ignore"):  # inf is clipped
        return within_reach(forecast.at_scores(z), space)


def _from_cdf(cdf: Callable[[Any], Any], space: OrderedSpace) -> Array:
    def at(y: Array) -> Array:
        return called(cdf, y, "cdf")

    if math.isfinite(space.low) and math.isfinite(space.high):
        return _invert(at, space.levels, space.low, space.high)
    # also on a half-line: quantiles beyond its bound shape the distribution
    size = _bracket(at, space.levels)
    return _invert(at, space.levels, -size, size)


def known_kind(forecast: object) -> object:
    """Convert mappings to `Quantiles`; return other forecasts unchanged."""
    if isinstance(forecast, (Normal, Quantiles, Ensemble, Forecast)):
        return forecast
    if hasattr(forecast, "to_dict"):
        forecast = forecast.to_dict()  # a pandas Series of quantiles with their levels as index
    if isinstance(forecast, Mapping):
        return _from_mapping(forecast)
    return forecast


def quantiles_at(forecast: object, levels: Array) -> Array:
    """Quantiles of a forecast at any levels, from its own `quantile` or `ppf`."""
    forecast = known_kind(forecast)
    for name in ("quantile", "ppf"):
        read = getattr(forecast, name, None)
        if callable(read):
            return called(read, levels, name)
    raise TypeError(f"expected a forecast with quantile or ppf, got {short(forecast)}")


def expert_table(levels: ArrayLike, table: ArrayLike, space: OrderedSpace) -> tuple[Array, bool]:
    """Quantiles at the levels of the space from a table with one row of quantiles per round; rows of nan stay nan."""
    first = Quantiles(levels, np.zeros(np.size(levels)))
    try:
        rows = floats(table)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected a table of numbers as forecasts, got {type(table).__name__}") from None
    if rows.ndim != 2 or rows.shape[1] != first.levels.size:
        raise ValueError(f"expected {first.levels.size} quantiles per round, got shape {rows.shape}")
    there = ~np.isnan(rows).all(axis=1)
    bad = there & ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(f"expected finite quantiles, got others in row {int(np.flatnonzero(bad)[0])}")
    known = rows[there][:, np.argsort(np.asarray(levels, dtype=np.float64), kind="stable")]
    crossed = bool((np.diff(known, axis=1) < 0.0).any())
    out = np.full((len(rows), len(space.levels)), np.nan)
    out[there] = quantile_rows(first.levels, np.sort(known, axis=1) if crossed else known, space)
    return out, crossed


def quantile_rows(levels: Array, rows: Array, space: OrderedSpace) -> Array:
    """Quantiles at the levels of the space from increasing ones at increasing levels; one row per forecast."""
    q = _along_scores(space.scores, normal_scores(levels), rows)
    return np.maximum.accumulate(within_reach(q, space), axis=1)


def reach_of(space: OrderedSpace) -> tuple[float, float]:
    """Range in which an expert's quantiles are distinguished."""
    size = space.high - space.low
    return (space.low - REACH * size, space.high + REACH * size) if size < math.inf else (-LARGEST, LARGEST)


def within_reach(q: Array, space: OrderedSpace) -> Array:
    """Quantiles clipped to the reach of a space; on unbounded spaces tiny ones become 0."""
    low, high = reach_of(space)
    q = np.minimum(np.maximum(q, low), high)
    if space.high - space.low < math.inf:
        return q
    tiny = np.abs(q) < SMALLEST
    q = np.where(tiny, 0.0, q) if tiny.any() else q
    lowest, highest = q.min(axis=-1, keepdims=True), q.max(axis=-1, keepdims=True)
    beyond = (highest < space.low) | (lowest > space.high)
    if not beyond.any():
        return q
    # a forecast beyond the bound of a half-line, with a spread too small for its size, becomes the bound
    bound = space.low if space.high == math.inf else space.high
    return np.where(beyond & (highest - lowest < FINEST * abs(bound)), bound, q)


def _from_mapping(forecast: Mapping[Any, Any]) -> Quantiles:
    if not forecast:
        raise ValueError("expected quantiles by level, got an empty mapping")
    for level in forecast:
        if isinstance(level, str) or not isinstance(level, (int, float, np.number)):
            raise TypeError(f"expected levels between 0 and 1 as keys, got {level!r}")
    return Quantiles(list(forecast.keys()), list(forecast.values()))


def called(function: Callable[[Any], Any], argument: Array, name: str) -> Array:
    """Values of a user's function at many points, in one call or one by one."""
    try:
        values = np.asarray(function(argument), dtype=np.float64)
    except (TypeError, ValueError):
        try:
            values = np.array([function(float(point)) for point in argument], dtype=np.float64)
        except (TypeError, ValueError) as reason:
            raise TypeError(f"expected {name} to take numbers and return numbers, got {reason}") from reason
    if values.shape != argument.shape:
        raise ValueError(f"expected {name} to return one number for each argument, got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"expected {name} to return numbers, got nan")
    return values
