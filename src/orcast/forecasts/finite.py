"""Forecasts on finite spaces: binary, labels, directions, vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.forecasts.ordered import Forecast, IssuedForecast, generator
from orcast.spaces import Binary, Box, Circle, FiniteSpace, Labels, frozen
from orcast.spaces.base import numbers, whole
from orcast.validation import number, short

if TYPE_CHECKING:
    from orcast.ledger import Certificate

    Given = Certificate | Callable[[], Certificate] | None

Array = NDArray[np.float64]

# Masses may miss a sum of 1 by this much, and are then divided by their sum.
TOLERANCE = 0.01

_BINARY = Binary()


def as_masses(mass: object, cells: int) -> Array:
    """Check masses of the cells: nonnegative, with a sum of 1."""
    m = numbers(mass, f"{cells} probabilities")
    if m.shape != (cells,):
        raise ValueError(f"expected {cells} probabilities, one for each label or cell, got shape {m.shape}")
    total = float(m.sum())
    if not ((m >= 0.0).all() and abs(total - 1.0) <= TOLERANCE):
        what = f"one of {float(m[~(m >= 0.0)][0])!r}" if not (m >= 0.0).all() else f"a sum of {total!r}"
        raise ValueError(f"expected probabilities that are not negative and sum to 1 (up to 1%), got {what}")
    # rounding is not normalised, so that plain data is reproduced exactly
    return m / total if abs(total - 1.0) > 1e-12 else m


class FiniteForecast(IssuedForecast):
    """Masses on the cells of a finite space.

    Parameters
    ----------
    space
        Space of the forecast.
    mass
        Mass of each cell.

    Attributes
    ----------
    undrawn
        Masses before the random draw; None if the forecast was not drawn.
    """

    __slots__ = ("mass", "space", "undrawn")

    kind: ClassVar[Any] = FiniteSpace
    mass: Array
    space: Any
    undrawn: Array | None

    def __init__(self, space: Any, mass: ArrayLike) -> None:
        if not isinstance(space, self.kind):
            raise TypeError(f"expected a {self.kind.__name__} space, got {short(space)}")
        self.space, self.mass = space, frozen(as_masses(mass, space.cells))
        self._certificate = self.undrawn = None

    @classmethod
    def trusted(cls, space: FiniteSpace, mass: Array, certificate: Given, undrawn: Array | None = None) -> Self:
        """Forecast from masses of a kernel, without checks or copies."""
        self = cls.__new__(cls)
        mass.flags.writeable = False
        self.space, self.mass, self._certificate, self.undrawn = space, mass, certificate, undrawn
        return self

    def mode(self) -> Any:
        """Value with the largest mass, the first of several."""
        return self.space.value(int(self.mass.argmax()))

    def probability(self, value: Any) -> float:
        """Mass of the cell of a value."""
        return float(self.mass[self.space.cell(self.space.outcome(value))])

    def expect(self, function: Callable[[Any], float]) -> float:
        """Expectation of a function of one value, called for each cell with positive mass."""
        cells = np.flatnonzero(self.mass > 0.0).tolist()
        try:
            values = np.array([float(function(self.space.value(k))) for k in cells])
        except (TypeError, ValueError) as reason:
            raise TypeError(f"expected a function of one value that returns a number, got {reason}") from reason
        return float(self.mass[cells] @ values)

    def sample(self, size: int | tuple[int, ...] = 1, *, rng: np.random.Generator) -> Any:
        """Draw independent values, uniform within a cell.

        Parameters
        ----------
        size
            Number of draws, or shape of the result.
        rng
            Random generator.
        """
        below = np.cumsum(self.mass)
        cells = np.searchsorted(below, generator(rng).random(size) * below[-1], side="right")
        # not beyond the last cell with positive mass, in spite of rounding
        return self._drawn(np.asarray(np.minimum(cells, int(np.flatnonzero(self.mass)[-1]))), rng)

    def _drawn(self, cells: NDArray[np.intp], rng: np.random.Generator) -> Any:
        points = self.space.points
        if not isinstance(points, np.ndarray):
            points = np.fromiter(points, dtype=object, count=len(points))
        return points[cells]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mode={short(self.mode())}, probability={float(self.mass.max()):.4g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).trusted, (self.space, self.mass, self.certificate, self.undrawn))


class BinaryForecast(FiniteForecast):
    """Probability of the outcome 1.

    Parameters
    ----------
    probability
        Probability of the outcome 1.

    Examples
    --------
    >>> p = BinaryForecast(0.75)
    >>> p.probability(), p.probability(0), float(p), p.mode(), p.var()
    (0.75, 0.25, 0.75, 1, 0.1875)
    """

    __slots__ = ("_mass",)

    _mass: Array | float

    def __init__(self, probability: float) -> None:
        self._mass = number(probability, "probability", 0.0, 1.0)
        self._certificate = self.undrawn = None

    @classmethod
    def trusted(cls, space: FiniteSpace, mass: Array | float, certificate: Given, undrawn: Array | None = None) -> Self:
        """Forecast from two masses, or from the probability of 1, without checks or copies."""
        self = cls.__new__(cls)
        self._mass, self._certificate, self.undrawn = mass, certificate, undrawn
        return self

    @property
    def space(self) -> Binary:
        """The space `Binary()`."""
        return _BINARY

    @property
    def mass(self) -> Array:  # type: ignore[override]
        """Masses of 0 and 1."""
        if isinstance(self._mass, float):
            self._mass = np.array([1.0 - self._mass, self._mass])
        return frozen(self._mass)

    def probability(self, value: object = True) -> float:
        """Probability of the value, by default of 1."""
        p = self.__float__()
        return p if value is True or _BINARY.outcome(value) else 1.0 - p

    def mean(self) -> float:
        """Expected value: the probability of 1."""
        return self.__float__()

    def var(self) -> float:
        """Variance: p (1 - p)."""
        p = self.__float__()
        return p * (1.0 - p)

    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.var())

    def _drawn(self, cells: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
        return cells

    def __float__(self) -> float:
        # converts numpy floats, which are floats too
        return float(self._mass) if isinstance(self._mass, float) else self._mass.item(1)

    def __repr__(self) -> str:
        return f"BinaryForecast({self.__float__():.6g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (BinaryForecast.trusted, (_BINARY, self._mass, self.certificate, self.undrawn))


class LabelForecast(FiniteForecast):
    """Probability of each label.

    Parameters
    ----------
    labels
        Labels, or their space.
    mass
        Probability of each label.

    Examples
    --------
    >>> p = LabelForecast(["home", "draw", "away"], [0.5, 0.25, 0.25])
    >>> p.mode(), p.probability("draw"), p.top(2)
    ('home', 0.25, [('home', 0.5), ('draw', 0.25)])
    """

    __slots__ = ()

    space: Labels

    def __init__(self, labels: Labels | Iterable[Any], mass: ArrayLike) -> None:
        super().__init__(labels if isinstance(labels, Labels) else Labels(labels), mass)

    def to_dict(self) -> dict[Any, float]:
        """Probabilities by label."""
        return dict(zip(self.space.labels, self.mass.tolist(), strict=True))

    def top(self, n: int = 1) -> list[tuple[Any, float]]:
        """The n most probable labels with their probabilities, in decreasing order."""
        order = np.argsort(-self.mass, kind="stable")[: whole(n, "labels", 1, 10**9)].tolist()
        return [(self.space.labels[k], self.mass.item(k)) for k in order]

    def __repr__(self) -> str:
        more = ", ..." if self.space.cells > 3 else ""
        return f"LabelForecast({', '.join(f'{label!r}: {p:.4g}' for label, p in self.top(3))}{more})"


class CircleForecast(FiniteForecast):
    """Distribution on a circle: masses on its cells, uniform within each.

    Parameters
    ----------
    space, mass
        Space of the forecast, and the mass of each cell.

    Examples
    --------
    >>> p = CircleForecast(Circle(360, cells=4), [0.5, 0.0, 0.0, 0.5])
    >>> round(p.mean()) % 360, round(p.std())
    (0, 54)
    """

    __slots__ = ()

    kind = Circle
    space: Circle

    def _vector(self) -> complex:
        """Mean of exp(2 pi i y / period): that of the centres times the factor of a uniform cell."""
        angles = 2j * np.pi * (np.arange(self.space.cells) + 0.5) / self.space.cells
        return complex(self.mass @ np.exp(angles)) * float(np.sinc(1.0 / self.space.cells))

    def mean(self) -> float:
        """Circular mean: the direction of the mean vector; nan if its length is 0."""
        mean = self._vector()
        if abs(mean) < 1e-12:
            return math.nan
        return self.space.outcome(math.atan2(mean.imag, mean.real) / (2.0 * math.pi) * self.space.period)

    def std(self) -> float:
        """Circular standard deviation: sqrt(-2 log R) / (2 pi) periods, R the length of the mean vector."""
        length = min(abs(self._vector()), 1.0)
        if length < 1e-12:
            return math.inf
        return math.sqrt(-2.0 * math.log(length)) / (2.0 * math.pi) * self.space.period

    def _drawn(self, cells: NDArray[np.intp], rng: np.random.Generator) -> Array:
        draws = (cells + rng.random(cells.shape)) * (self.space.period / self.space.cells)
        return np.where(draws < self.space.period, draws, 0.0)

    def __repr__(self) -> str:
        return f"CircleForecast(mean={self.mean():.6g}, std={self.std():.6g}, period={self.space.period:g})"


class BoxForecast(FiniteForecast):
    """Distribution of a vector: masses on the cells of a grid, uniform within each.

    Parameters
    ----------
    space, mass
        Space of the forecast, and the mass of each cell.

    Examples
    --------
    >>> space = Box([(0, 1), (0, 10)], cells=2)
    >>> p = BoxForecast(space, [0.5, 0.0, 0.0, 0.5])
    >>> p.mean().tolist(), p.marginal(1).median()
    ([0.5, 5.0], 5.0)
    """

    __slots__ = ()

    kind = Box
    space: Box

    def mean(self) -> Array:
        """Mean vector."""
        return np.asarray(self.mass @ self.space.points)

    def var(self) -> Array:
        """Variance of each component."""
        low, high = np.array(self.space.bounds).T
        within = ((high - low) / self.space.shape) ** 2 / 12.0
        return np.asarray(self.mass @ (self.space.points - self.mean()) ** 2 + within)

    def std(self) -> Array:
        """Standard deviation of each component."""
        return np.sqrt(self.var())

    def marginal(self, i: int) -> Forecast:
        """Marginal forecast of component i."""
        d = len(self.space.shape)
        if isinstance(i, bool) or i not in range(-d, d):
            raise ValueError(f"expected a component from 0 to {d - 1}, got {i!r}")
        side = int(i) % d
        edges = self.space.edges[side]
        others = tuple(j for j in range(d) if j != side)
        return Forecast(edges[:-1], edges[1:], self.mass.reshape(self.space.shape).sum(axis=others))

    def _drawn(self, cells: NDArray[np.intp], rng: np.random.Generator) -> Array:
        low, high = np.array(self.space.bounds).T
        width = (high - low) / self.space.shape
        draws = self.space.points[cells] + (rng.random((*cells.shape, width.size)) - 0.5) * width
        return np.asarray(np.clip(draws, low, high))

    def __repr__(self) -> str:
        mean, std = (", ".join(f"{value:.6g}" for value in values) for values in (self.mean(), self.std()))
        return f"BoxForecast(mean=[{mean}], std=[{std}])"


_CLASSES: dict[type, type[FiniteForecast]] = {
    Binary: BinaryForecast,
    Labels: LabelForecast,
    Circle: CircleForecast,
    Box: BoxForecast,
}


def forecast_on(space: FiniteSpace, mass: Array, certificate: Given = None) -> FiniteForecast:
    """Forecast with these masses on a finite space; they are neither checked nor copied.

    >>> forecast_on(Labels(["no", "yes"]), np.array([0.25, 0.75]))
    LabelForecast('yes': 0.75, 'no': 0.25)
    """
    return _CLASSES.get(type(space), FiniteForecast).trusted(space, mass, certificate)
