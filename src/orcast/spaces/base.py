"""Base classes of outcome spaces, and checks of numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from orcast.validation import floats, number, short

Array = NDArray[np.float64]

# Domain of input numbers. Larger ones are refused, because their squares must be finite; on unbounded spaces smaller
# ones count as 0, because differences are divisors.
LARGEST, SMALLEST = 1e100, 1e-100


def frozen(values: Array) -> Array:
    """Make an array read-only, because it is shared."""
    values.flags.writeable = False
    return values


class Space(ABC):
    """Set of possible outcomes, divided into at most `cells` cells; immutable and hashable."""

    ordered: ClassVar[bool]
    cells: int

    @abstractmethod
    def outcome(self, y: Any, outside: str = "raise") -> Any:
        """Outcome in its canonical form.

        Parameters
        ----------
        y
            Outcome as the user gives it.
        outside
            "raise" refuses outcomes outside the space; "clip" moves them to the nearest point of it.
        """

    def to_plain(self) -> dict[str, Any]:
        """Plain data; `space_from_plain` rebuilds the space."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.init}  # type: ignore[arg-type]
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        return {"kind": type(self).__name__, **plain}

    def __getstate__(self) -> dict[str, Any]:
        # without cached values: a table of distances may be large, and would be restored writeable
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class OrderedSpace(Space):
    """Numbers from `low` to `high`, with cells around an expert's quantiles at `levels`."""

    ordered = True
    low: float
    high: float
    tail_cells: int

    @cached_property
    @abstractmethod
    def levels(self) -> Array:
        """Levels of the expert's quantiles that become edges of inner cells."""

    @cached_property
    @abstractmethod
    def scores(self) -> Array:
        """Normal scores of the levels, exactly antisymmetric."""


class FiniteSpace(Space):
    """Finitely many cells, each with its value.

    `points` are the values users see, an array with one row per cell or a tuple; `distances` are those of all pairs of
    cells.
    """

    ordered = False
    points: Any
    distances: Any

    def cell(self, canonical: Any) -> int:
        """Cell of a canonical outcome; by default that is the cell itself."""
        return int(canonical)

    def value(self, k: int) -> Any:
        """Value of cell k, as users' functions receive it."""
        return self.points[k]


def single(y: object, what: str = "outcome") -> float:
    """Check a finite number that is not a boolean; a float passes at once."""
    if type(y) is float and math.isfinite(y):
        return y
    if isinstance(y, (bool, np.bool_)):
        raise TypeError(f"expected a finite number as {what}, got {short(y)}")
    return number(y, what)


def numbers(values: object, what: str) -> Array:
    """Copy of numbers that are not text as an array of float64."""
    try:
        return np.array(floats(values))
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected {what}, got {short(values)}") from None


def whole(value: object, what: str, low: int, high: int) -> int:
    """Check a whole number from low to high."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"expected a whole number of {what}, got {short(value)}")
    if not low <= value <= high:
        raise ValueError(f"expected {low} to {high} {what}, got {value}")
    return int(value)


def span(low: object, high: object) -> tuple[float, float]:
    """Check two finite bounds in order, neither too close nor too far apart."""
    try:
        if any(isinstance(each, (str, bytes, bool)) for each in (low, high)):
            raise TypeError
        a, b = float(low), float(high)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected two numbers as bounds, got {low!r} and {high!r}") from None
    if not (math.isfinite(a) and math.isfinite(b) and a < b):
        raise ValueError(f"expected finite bounds with low < high, got {a!r} and {b!r}")
    if not 1e-100 < b - a < LARGEST:
        raise ValueError(f"expected bounds with a distance between 1e-100 and 1e100, got {b - a!r}")
    return a, b
