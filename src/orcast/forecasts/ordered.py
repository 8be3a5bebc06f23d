"""Forecast of a quantity: masses on cells, with the methods of a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.kernels.reading import (
    mean_and_variance_arrays,
    nearest_normal_arrays,
    read_cells_arrays,
    read_round,
)
from orcast.spaces import frozen
from orcast.validation import floats, number, short

if TYPE_CHECKING:
    from orcast.kernels.state import Round
    from orcast.ledger import Certificate

Array = NDArray[np.float64]

PERCENTS = frozen(np.arange(1, 100) / 100.0)

# Quadrature nodes in a bounded and in an open-ended cell.
NODES, OPEN_NODES = 5, 40


class IssuedForecast:
    """Forecast that a recalibrator may have issued."""

    __slots__ = ("_certificate",)

    _certificate: Certificate | Callable[[], Certificate] | None

    @property
    def certificate(self) -> Certificate | None:
        """Certificate, if a recalibrator issued the forecast; built when it is first read."""
        if callable(self._certificate):
            self._certificate = self._certificate()
        return self._certificate


def generator(rng: object) -> np.random.Generator:
    """Check a random generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"expected rng=numpy.random.default_rng(...), got {rng!r}")
    return rng


def as_share(confidence: object) -> float:
    """Check a share between 0 and 1."""
    return number(confidence, "share of the mass", 0.0, 1.0)


@cache
def _gauss(count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def as_levels(levels: ArrayLike) -> Array:
    """Check levels from 0 to 1."""
    try:
        a = floats(levels)
    except (TypeError, ValueError):
        raise TypeError(f"expected levels between 0 and 1, got {short(levels)}") from None
    if not (np.all(a >= 0.0) and np.all(a <= 1.0)):
        raise ValueError(f"expected levels between 0 and 1, got {short(levels)}")
    return a


def _values(y: object) -> Array:
    try:
        return floats(y)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected numbers as values of the quantity, got {short(y)}") from None


class _Cells(NamedTuple):
    """Ends of the cells, with open-ended cells reduced to their edge."""

    left: Array
    right: Array
    sides: tuple[tuple[int, float, float], ...]  # of each open-ended cell: index, edge, and side (1 or -1)
    scale: float  # d of the tails


def _open_cells(p: Forecast) -> _Cells:
    left, right = p.left.copy(), p.right.copy()
    sides = []
    if left[0] == -math.inf:
        left[0] = right[0]
        sides.append((0, left.item(0), -1.0))
    if right[-1] == math.inf:
        right[-1] = left[-1]
        sides.append((right.size - 1, right.item(-1), 1.0))
    half = 0.5 * float((right - left).sum())
    edge = max(abs(left.item(0)), abs(right.item(-1)))
    # below any meaningful width, but large enough that an excess divided by it does not overflow
    scale = max(half if half > 0.0 else 1e-9 * edge, 1e-200) if half > 0.0 or edge > 0.0 else 1e-12
    return _Cells(left, right, tuple(sides), scale)


def _beyond(at: Array, edge: float, sign: float, scale: float) -> Array:
    """Share of an open-ended cell's mass farther out than a point."""
    with np.errstate(over="ignore"):
        return np.asarray((1.0 + np.maximum(sign * (at - edge), 0.0) / scale) ** -3.0)


class Forecast(IssuedForecast):
    """Distribution of a quantity: masses on consecutive cells, uniform within each; a cell of zero width is an atom.

    Parameters
    ----------
    left, right
        Ends of the cells; the first may be -inf, the last inf.
    mass
        Masses of the cells, with a sum of 1.

    Notes
    -----
    It has the methods of a frozen scipy distribution that make sense with atoms (`pdf` is the density off the atoms),
    and a `certificate` if a recalibrator issued it. One with `randomised=` adds a `draw` U, which moves each quantile
    to an end of its cell: for a cell of mass p with mass F before it,

        quantile(a) = the upper end if F + U p < a, else the lower end

    so that P(y <= quantile(a)) = (a - F) / p, clipped to [0, 1], for every outcome y in the cell: the smoothed payoff.
    Just before an atom, and before the first cell, an end is the next smaller floating-point number.

    An open-ended cell needs at least one bounded cell beside it. Its tail is a Pareto of index 3 from its edge,

        P(excess > e | the cell) = (1 + e / d)^-3,    d half the total width of the bounded cells

    with mean excess d / 2 and a finite variance; higher moments are infinite.

    Examples
    --------
    >>> p = Forecast([0.0, 1.0, 1.0], [1.0, 1.0, 3.0], [0.25, 0.5, 0.25])     # half the mass on 1
    >>> p.mean(), p.cdf(0.5), p.cdf(1.0), p.quantile([0.5, 0.875]).tolist(), p.interval(0.5)
    (1.125, 0.125, 0.75, [1.0, 2.0], (1.0, 1.0))
    >>> p = Forecast([0.0, 2.0], [2.0, np.inf], [0.5, 0.5])     # half the mass beyond 2
    >>> p.support(), p.cdf(3.0), p.mean()
    ((0.0, inf), 0.9375, 1.75)
    """

    __slots__ = ("_below", "_bounded", "_ends", "_round", "draw", "left", "mass", "right")

    def __init__(self, left: ArrayLike, right: ArrayLike, mass: ArrayLike) -> None:
        try:
            a, b, m = (np.array(v, dtype=np.float64) for v in (left, right, mass))
        except (TypeError, ValueError):
            raise TypeError(f"expected numbers as left, right and mass, got {left!r}, {right!r}, {mass!r}") from None
        if not (a.ndim == 1 and a.size and a.shape == b.shape == m.shape):
            raise ValueError(
                f"expected three sequences of one length as left, right and mass, got {a.shape}, {b.shape}, {m.shape}"
            )
        first, last = int(a[0] == -math.inf), a.size - int(b[-1] == math.inf)
        if first >= last:
            raise ValueError("expected at least one bounded cell, got open-ended ones only")
        finite = np.isfinite(a[first:]).all() and np.isfinite(b[:last]).all()
        if not (finite and (b >= a).all() and (a[1:] >= b[:-1]).all()):
            raise ValueError(
                "expected increasing cells with finite inner ends, got cells that overlap, decrease or have infinite "
                "inner ends"
            )
        if not ((m >= 0.0).all() and abs(m.sum() - 1.0) < 1e-6):
            raise ValueError(f"expected masses that are not negative and sum to 1, got a sum of {m.sum()!r}")
        if abs(m.sum() - 1.0) > 1e-12:
            m /= m.sum()
        self._set(a, b, m, None, None)

    def _set(self, left: Array, right: Array, mass: Array, certificate: Any, draw: float | None) -> None:
        self.left, self.right, self.mass = frozen(left), frozen(right), frozen(mass)
        self._certificate, self.draw = certificate, draw
        self._round: Round | None = None
        self._ends = left.item(0) == -math.inf, right.item(-1) == math.inf
        self._below: Array | None = None
        self._bounded: _Cells | None = None

    @classmethod
    def trusted(cls, left: Array, right: Array, mass: Array, certificate: Any, draw: float | None = None) -> Forecast:
        """Forecast from arrays of a kernel, without checks or copies."""
        self = cls.__new__(cls)
        self._set(left, right, mass, certificate, draw)
        return self

    @classmethod
    def issued(cls, round: Round, ends: tuple[bool, bool], certificate: Any = None) -> Forecast:
        """Forecast of a round; `ends` marks open outer cells."""
        self = cls.__new__(cls)
        self._round, self._ends, self._certificate = round, ends, certificate
        self.draw = round.draw() or None
        self._below = self._bounded = None
        return self

    def __getattr__(self, name: str) -> Any:
        """Read the cells of an issued forecast from its round when they are first used."""
        if name not in ("left", "right", "mass") or self._round is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        cells = self._round.cell_rows()
        left, right, mass = cells[0].copy(), cells[1].copy(), cells[4].copy()
        if self._ends[0]:
            left[0] = -math.inf
        if self._ends[1]:
            right[-1] = math.inf
        self.left, self.right, self.mass = frozen(left), frozen(right), frozen(mass)
        return {"left": left, "right": right, "mass": mass}[name]

    @property
    def below(self) -> Array:
        """Cumulative mass at the left end of each cell, and 1."""
        if self._below is None:
            below = np.concatenate(([0.0], np.cumsum(self.mass)))
            below /= below[-1]
            self._below = frozen(below)
        return self._below

    @property
    def cells(self) -> _Cells:
        """Cells with finite ends, and the open sides."""
        if self._bounded is None:
            self._bounded = _open_cells(self) if any(self._ends) else _Cells(self.left, self.right, (), 0.0)
        return self._bounded

    # --- moments
    @property
    def _plain(self) -> tuple[int, Array, Array, Array, bool, bool]:
        """Arguments of the kernels that read forecasts."""
        return self.mass.size, self.left, self.right, self.mass, *self._ends

    def mean(self) -> float:
        """Expected value."""
        return mean_and_variance_arrays(*self._plain)[0]

    def var(self) -> float:
        """Variance."""
        return mean_and_variance_arrays(*self._plain)[1]

    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.var())

    # --- distribution
    def cdf(self, y: ArrayLike | float) -> Any:
        """Probability P(outcome <= y), as a float or an array."""
        if isinstance(y, float):
            return self._cdf_at(y)
        at = _values(y)
        k = np.searchsorted(self.right, at, side="right")
        inside = np.minimum(k, self.mass.size - 1)
        left, right, sides, scale = self.cells
        width = right[inside] - left[inside]
        share = np.clip((at - left[inside]) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
        share = np.where(width > 0.0, share, at >= left[inside])
        for cell, edge, sign in sides:
            beyond = _beyond(at, edge, sign, scale)
            share = np.where(inside == cell, 1.0 - beyond if sign > 0.0 else beyond, share)
        value = np.where(k >= self.mass.size, 1.0, self.below[k] + share * self.mass[inside])
        value = np.where(np.isnan(at), np.nan, np.minimum(value, 1.0))
        return float(value) if value.ndim == 0 else value

    def _cdf_at(self, y: float) -> float:
        """Value of `cdf` at one number, 10x faster: custom payoffs call it in every cell."""
        k = int(self.right.searchsorted(y, side="right"))
        if k >= self.mass.size or y != y:
            return 1.0 if y == y else math.nan
        left, right, sides, scale = self.cells
        a, b = left.item(k), right.item(k)
        share = min(max((y - a) / (b - a), 0.0), 1.0) if b > a else float(y >= a)
        for cell, edge, sign in sides:
            if cell == k:
                beyond = float(_beyond(np.asarray(y), edge, sign, scale))
                share = 1.0 - beyond if sign > 0.0 else beyond
        return min(self.below.item(k) + share * self.mass.item(k), 1.0)

    def quantile(self, levels: ArrayLike) -> Any:
        """Smallest y with P(outcome <= y) >= level, as a float or an array.

        With a `draw` it is an end of the cell that contains it.
        """
        if self._round is not None and type(levels) is np.ndarray and levels.dtype == np.float64 and levels.ndim == 1:
            # levels are checked by the kernel, which returns None if one is not between 0 and 1
            found = read_round(self._round, self.draw or 0.0, levels)
            if found is not None:
                return found
        a = as_levels(levels)
        flat = np.ascontiguousarray(a).reshape(-1)
        if self._round is not None:
            out = read_round(self._round, self.draw or 0.0, flat)
        else:
            out = read_cells_arrays(*self._plain, self.draw or 0.0, flat)
        return float(out[0]) if a.ndim == 0 else out.reshape(a.shape)

    ppf = quantile

    def sf(self, y: ArrayLike) -> Any:
        """Probability P(outcome > y)."""
        return 1.0 - self.cdf(y)

    def pdf(self, y: ArrayLike) -> Any:
        """Density at y, without the mass of atoms."""
        at = _values(y)
        left, right, sides, scale = self.cells
        width = right - left
        density = np.divide(self.mass, width, out=np.zeros_like(width), where=width > 0.0)
        wide = np.flatnonzero(width > 0.0)
        if wide.size == 0:
            value = np.zeros(at.shape)
        else:
            k = wide[np.minimum(np.searchsorted(right[wide], at, side="left"), wide.size - 1)]
            value = np.where((at >= left[k]) & (at <= right[k]), density[k], 0.0)
        for cell, edge, sign in sides:
            tail = 3.0 / scale * self.mass[cell] * _beyond(at, edge, sign, scale) ** (4.0 / 3.0)
            value = np.where(sign * (at - edge) > 0.0, tail, value)
        return float(value) if value.ndim == 0 else value

    def support(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        return float(self.left[0]), float(self.right[-1])

    def expect(self, function: Callable[[Array], ArrayLike]) -> float:
        """Expectation of a function of an array, by Gauss quadrature in each cell, exact for squares."""
        nodes, weights = _gauss(NODES)
        left, right, sides, scale = self.cells
        middle, half = 0.5 * (left + right), 0.5 * (right - left)
        points = (middle[:, None] + half[:, None] * nodes).ravel()
        shares = (0.5 * self.mass[:, None] * weights).ravel()
        for k, edge, sign in sides:
            nodes, weights = _gauss(OPEN_NODES)
            root = 0.5 * (1.0 + nodes)
            shares[k * NODES : (k + 1) * NODES] = 0.0
            points = np.concatenate((points, edge + sign * scale * (1.0 / root - 1.0)))
            shares = np.concatenate((shares, 1.5 * self.mass[k] * weights * root**2))
        values = np.asarray(function(points), dtype=np.float64)
        return float(shares @ values.reshape(points.shape))

    def median(self) -> float:
        """Median."""
        return float(self.quantile(0.5))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Central interval that contains the given share of the mass."""
        share = as_share(confidence)
        low, high = self.quantile([0.5 - share / 2.0, 0.5 + share / 2.0])
        return float(low), float(high)

    def pit(self, y: float) -> tuple[float, float]:
        """Probability integral transform of y: both ends of the jump at an atom, equal elsewhere."""
        high = float(self.cdf(y))
        atoms = np.flatnonzero((self.left == y) & (self.right == y))
        return (float(self.below[atoms[0]]) if atoms.size else high), high

    def sample(self, size: int | tuple[int, ...] = 1, *, rng: np.random.Generator) -> Array:
        """Draw independent values.

        Parameters
        ----------
        size
            Number of draws, or shape of the result.
        rng
            Random generator.
        """
        plain = self if self.draw is None else Forecast.trusted(self.left, self.right, self.mass, None)
        return plain.quantile(generator(rng).random(size))

    def crps(self, y: float) -> float:
        """Exact continuous ranked probability score: the integral of (F(z) - 1{z >= y})^2.

        An open-ended cell of mass m adds e - m d (1 - (1 + e/d)^-2) + m^2 d / 5 if y exceeds its edge by e.
        """
        y = number(y, "outcome")
        f0, f1 = self.below[:-1], self.below[1:]
        left, right, sides, scale = self.cells
        cut = np.clip(y, left, right)
        width = right - left
        share = np.divide(cut - left, width, out=np.zeros_like(width), where=width > 0.0)
        here = f0 + share * (f1 - f0)
        lower = (cut - left) * (f0 * f0 + f0 * here + here * here)
        g0, g1 = 1.0 - here, 1.0 - f1
        upper = (right - cut) * (g0 * g0 + g0 * g1 + g1 * g1)
        opens = {sign for _, _, sign in sides}
        beyond = 0.0 if -1.0 in opens else max(left[0] - y, 0.0)
        beyond += 0.0 if 1.0 in opens else max(y - right[-1], 0.0)
        for k, edge, sign in sides:
            excess, mass = max(sign * (y - edge), 0.0), f1[k] - f0[k]
            beyond += excess - mass * scale * (1.0 - (1.0 + excess / scale) ** -2.0) + mass * mass * scale / 5.0
        # F is constant between cells
        start, stop, flat = right[:-1], left[1:], f1[:-1]
        cut = np.clip(y, start, stop)
        gaps = (cut - start) * flat * flat + (stop - cut) * (1.0 - flat) ** 2
        return float((lower + upper).sum()) / 3.0 + float(gaps.sum()) + float(beyond)

    # --- export
    def to_normal(self) -> tuple[float, float]:
        """Mean and standard deviation of the nearest normal distribution, by least squares on the percentiles.

        Notes
        -----
        A normal forecast is returned unchanged; `mean` and `std` include the heavy tails instead:

            mean = average of q_a,    sd = sum of z_a (q_a - mean) / sum of z_a^2,    a = 0.01, ..., 0.99
        """
        return nearest_normal_arrays(*self._plain)

    def __repr__(self) -> str:
        low, high = self.interval(0.9)
        return f"Forecast(median={self.median():.6g}, 90%=[{low:.6g}, {high:.6g}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Forecast.trusted, (self.left, self.right, self.mass, self.certificate, self.draw))
