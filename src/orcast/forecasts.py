"""Forecast: masses on cells, with everything one asks of a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from orcast.ledger import Certificate

Array = NDArray[np.float64]

PERCENTS = np.arange(1, 100) / 100.0
PERCENTS.flags.writeable = False


def as_levels(levels: ArrayLike) -> Array:
    """Levels as an array strictly between 0 and 1 or on the ends, or one clear sentence."""
    try:
        a = np.asarray(levels, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"expected levels between 0 and 1, got {levels!r}") from None
    if not (np.all(a >= 0.0) and np.all(a <= 1.0)):
        raise ValueError(f"expected levels between 0 and 1, got {levels!r}")
    return a


class Forecast:
    """A distribution as masses on consecutive cells, even within each; a cell of zero width is an atom.

    It has the methods of a frozen scipy distribution that make sense for one with atoms: ``cdf``, ``sf``, ``ppf``,
    ``isf``, ``pdf`` (the density off the atoms), ``rvs``, ``mean``, ``var``, ``std``, ``median``, ``interval``,
    ``support``, ``expect``; and a ``certificate`` if a game issued it.

    >>> p = Forecast([0.0, 1.0, 1.0], [1.0, 1.0, 3.0], [0.25, 0.5, 0.25])     # half the mass on 1
    >>> p.mean(), p.cdf(0.5), p.cdf(1.0), p.quantile([0.5, 0.875]).tolist(), p.interval(0.5)
    (1.125, 0.125, 0.75, [1.0, 2.0], (1.0, 1.0))
    """

    __slots__ = ("_below", "certificate", "left", "mass", "right")

    def __init__(
        self, left: ArrayLike, right: ArrayLike, mass: ArrayLike, certificate: Certificate | None = None
    ) -> None:
        try:
            a, b, m = (np.array(v, dtype=np.float64) for v in (left, right, mass))
        except (TypeError, ValueError):
            raise TypeError(f"expected numbers as left, right and mass, got {left!r}, {right!r}, {mass!r}") from None
        if not (a.ndim == 1 and a.size and a.shape == b.shape == m.shape):
            raise ValueError(
                f"expected three sequences of one length as left, right and mass, got {a.shape}, {b.shape}, {m.shape}"
            )
        if not (np.isfinite(a).all() and np.isfinite(b).all() and (b >= a).all() and (a[1:] >= b[:-1]).all()):
            raise ValueError("expected finite cells in increasing order, got cells that overlap or turn back")
        if not ((m >= 0.0).all() and abs(m.sum() - 1.0) < 1e-6):
            raise ValueError(f"expected masses that are not negative and sum to 1, got a sum of {m.sum()!r}")
        if abs(m.sum() - 1.0) > 1e-12:
            m /= m.sum()
        self._set(a, b, m, certificate)

    def _set(self, left: Array, right: Array, mass: Array, certificate: Certificate | None) -> None:
        for values in (left, right, mass):
            values.flags.writeable = False
        self.left, self.right, self.mass, self.certificate = left, right, mass, certificate
        self._below: Array | None = None

    @classmethod
    def _trusted(cls, left: Array, right: Array, mass: Array, certificate: Certificate) -> Forecast:
        """From arrays that a kernel made: no checks, no copies."""
        self = cls.__new__(cls)
        self._set(left, right, mass, certificate)
        return self

    @property
    def below(self) -> Array:
        """Cumulated mass at the left end of each cell, and 1."""
        if self._below is None:
            below = np.concatenate(([0.0], np.cumsum(self.mass)))
            below /= below[-1]
            below.flags.writeable = False
            self._below = below
        return self._below

    # --- moments
    def mean(self) -> float:
        """Expected value."""
        return float(self.mass @ (self.left + self.right)) * 0.5 / float(self.mass.sum())

    def var(self) -> float:
        """Variance."""
        mean = self.mean()
        a, b = self.left - mean, self.right - mean
        return float(self.mass @ (a * a + a * b + b * b)) / 3.0

    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.var())

    def moment(self, order: int) -> float:
        """E[y^order], exactly."""
        powers = sum(self.left**i * self.right ** (order - i) for i in range(order + 1))
        return float(self.mass @ np.asarray(powers)) / (order + 1)

    # --- distribution
    def cdf(self, y: ArrayLike) -> Any:
        """P(outcome <= y), a float for a number and an array for an array."""
        at = np.asarray(y, dtype=np.float64)
        k = np.searchsorted(self.right, at, side="right")
        inside = np.minimum(k, self.mass.size - 1)
        width = self.right[inside] - self.left[inside]
        share = np.clip((at - self.left[inside]) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
        share = np.where(width > 0.0, share, at >= self.left[inside])
        value = np.where(k >= self.mass.size, 1.0, self.below[k] + share * self.mass[inside])
        value = np.where(np.isnan(at), np.nan, np.minimum(value, 1.0))
        return float(value) if value.ndim == 0 else value

    def quantile(self, levels: ArrayLike) -> Any:
        """The smallest y with P(outcome <= y) >= level, a float for a number and an array for an array."""
        a = as_levels(levels)
        k = np.clip(np.searchsorted(self.below[1:], a, side="left"), 0, self.mass.size - 1)
        mass = self.below[k + 1] - self.below[k]
        share = np.clip((a - self.below[k]) / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)
        value = self.left[k] + share * (self.right[k] - self.left[k])
        return float(value) if value.ndim == 0 else value

    ppf = quantile

    def sf(self, y: ArrayLike) -> Any:
        """P(outcome > y), the probability of exceeding y."""
        return 1.0 - self.cdf(y)

    def isf(self, levels: ArrayLike) -> Any:
        """The value exceeded with the given probability."""
        return self.quantile(1.0 - as_levels(levels))

    def pdf(self, y: ArrayLike) -> Any:
        """The density at y; the mass of atoms is not in it."""
        at = np.asarray(y, dtype=np.float64)
        width = self.right - self.left
        density = np.divide(self.mass, width, out=np.zeros_like(width), where=width > 0.0)
        wide = np.flatnonzero(width > 0.0)
        if wide.size == 0:
            value = np.zeros(at.shape)
        else:
            k = wide[np.minimum(np.searchsorted(self.right[wide], at, side="left"), wide.size - 1)]
            value = np.where((at >= self.left[k]) & (at <= self.right[k]), density[k], 0.0)
        return float(value) if value.ndim == 0 else value

    def support(self) -> tuple[float, float]:
        """The lowest and the highest value that can come."""
        return float(self.left[0]), float(self.right[-1])

    def expect(self, function: Callable[[Array], ArrayLike]) -> float:
        """E[function(y)] for a function of an array, by five-point Gauss quadrature in each cell."""
        nodes, weights = np.polynomial.legendre.leggauss(5)
        middle, half = 0.5 * (self.left + self.right), 0.5 * (self.right - self.left)
        values = np.asarray(function((middle[:, None] + half[:, None] * nodes).ravel()), dtype=np.float64)
        return float(self.mass @ (values.reshape(self.mass.size, nodes.size) @ weights)) * 0.5

    def median(self) -> float:
        """The 50% quantile."""
        return float(self.quantile(0.5))

    def interval(self, confidence: float) -> tuple[float, float]:
        """The central interval that holds the given share of the mass."""
        try:
            share = float(confidence)
        except (TypeError, ValueError):
            raise TypeError(f"expected a share between 0 and 1, got {confidence!r}") from None
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"expected a share between 0 and 1, got {confidence!r}")
        low, high = self.quantile([0.5 - share / 2.0, 0.5 + share / 2.0])
        return float(low), float(high)

    def pit(self, y: float) -> tuple[float, float]:
        """The probability integral transform of y: the two ends of the jump there, equal where there is no atom."""
        high = float(self.cdf(y))
        atoms = np.flatnonzero((self.left == y) & (self.right == y))
        return (float(self.below[atoms[0]]) if atoms.size else high), high

    def sample(self, size: int | tuple[int, ...] = 1, *, rng: np.random.Generator) -> Array:
        """Independent draws; the random generator is yours to give."""
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"expected rng=numpy.random.default_rng(...), got {rng!r}")
        values: Array = self.quantile(rng.random(size))
        return values

    def rvs(
        self, size: int | tuple[int, ...] | None = None, random_state: int | np.random.Generator | None = None
    ) -> Any:
        """Independent draws, called as scipy does: a float without a size, else an array."""
        values = self.sample(1 if size is None else size, rng=np.random.default_rng(random_state))
        return float(values[0]) if size is None else values

    def crps(self, y: float) -> float:
        """Exact continuous ranked probability score: the integral of (F(z) - 1{z >= y})^2."""
        f0, f1 = self.below[:-1], self.below[1:]
        cut = np.clip(y, self.left, self.right)
        width = self.right - self.left
        share = np.divide(cut - self.left, width, out=np.zeros_like(width), where=width > 0.0)
        here = f0 + share * (f1 - f0)
        lower = (cut - self.left) * (f0 * f0 + f0 * here + here * here)
        g0, g1 = 1.0 - here, 1.0 - f1
        upper = (self.right - cut) * (g0 * g0 + g0 * g1 + g1 * g1)
        beyond = max(self.left[0] - y, 0.0) + max(y - self.right[-1], 0.0)
        # where there is no cell F is flat
        start, stop, flat = self.right[:-1], self.left[1:], f1[:-1]
        cut = np.clip(y, start, stop)
        gaps = (cut - start) * flat * flat + (stop - cut) * (1.0 - flat) ** 2
        return float((lower + upper).sum()) / 3.0 + float(gaps.sum()) + float(beyond)

    # --- export
    def to_quantiles(self, levels: Iterable[float] | None = None) -> dict[float, float]:
        """A quantile grid, by level; at 0.01, 0.02, ..., 0.99 unless told otherwise."""
        grid = [float(a) for a in (PERCENTS if levels is None else levels)]
        return dict(zip(grid, (float(q) for q in self.quantile(grid)), strict=True))

    def to_plain(self) -> dict[str, list[float]]:
        """Plain data, exact; ``Forecast(**data)`` brings it back."""
        return {"left": self.left.tolist(), "right": self.right.tolist(), "mass": self.mass.tolist()}

    def __repr__(self) -> str:
        low, high = self.interval(0.9)
        return f"Forecast(median={self.median():.6g}, 90%=[{low:.6g}, {high:.6g}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Forecast, (self.left, self.right, self.mass, self.certificate))
