"""Finite spaces: binary, labels, directions, vectors."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast import limits
from orcast.limits import LIMITS
from orcast.spaces.base import LARGEST, Array, FiniteSpace, frozen, numbers, single, span, whole
from orcast.validation import short

Label = str | int | bool | float


def _discrete(cells: int) -> Array:
    return frozen(1.0 - np.eye(cells))


@dataclass(frozen=True)
class Binary(FiniteSpace):
    """Binary outcomes 1 and 0, also as booleans (paper, section 3).

        d(a, b) = 1{a != b}

    >>> space = Binary()
    >>> space.outcome(True), space.outcome(0.0), space.cells
    (1, 0, 2)
    """

    cells: int = field(default=2, init=False, repr=False, compare=False)

    def outcome(self, y: object, outside: str = "raise") -> int:
        if type(y) is int and 0 <= y <= 1:
            return y
        if isinstance(y, (bool, np.bool_)):
            return int(y)
        try:
            value = single(y)
        except (TypeError, ValueError):
            raise TypeError(f"expected 0 or 1 as outcome, got {short(y)}") from None
        if value != 0.0 and value != 1.0:
            raise ValueError(f"expected 0 or 1 as outcome, got {short(y)}")
        return int(value)

    def value(self, k: int) -> int:
        return int(k)

    @cached_property
    def points(self) -> Array:
        return frozen(np.array([0.0, 1.0]))

    @cached_property
    def distances(self) -> Array:
        return _discrete(2)


@dataclass(frozen=True)
class Labels(FiniteSpace):
    """One of several unordered labels, text or numbers (paper, section 2).

    Parameters
    ----------
    labels
        The labels, at least two.

    Notes
    -----
    All labels have the same distance:

        d(a, b) = 1{a != b}

    Examples
    --------
    >>> space = Labels(["home", "draw", "away"])
    >>> space.outcome("draw"), space.value(1), space.cells
    (1, 'draw', 3)
    """

    labels: tuple[Label, ...]

    def __init__(self, labels: Iterable[Label]) -> None:
        if isinstance(labels, (str, bytes, Set)) or not isinstance(labels, Iterable):
            raise TypeError(f"expected a sequence of labels such as ['home', 'draw', 'away'], got {short(labels)}")
        own = tuple(_plain_label(label) for label in limits.taken("labels", labels))
        if len(own) < 2:
            raise ValueError(f"expected at least 2 labels, got {len(own)}")
        seen: set[Label] = set()
        for label in own:
            if label in seen:
                raise ValueError(f"expected different labels, got {label!r} twice")
            seen.add(label)
        object.__setattr__(self, "labels", own)

    @property
    def cells(self) -> int:  # type: ignore[override]
        return len(self.labels)

    @cached_property
    def _index(self) -> dict[Label, int]:
        return {label: k for k, label in enumerate(self.labels)}

    def outcome(self, y: object, outside: str = "raise") -> int:
        try:
            return self._index[y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y]  # type: ignore[index]
        except (KeyError, TypeError):
            known = ", ".join(repr(label) for label in self.labels[:5])
            more = f", ... ({self.cells} labels)" if self.cells > 5 else ""
            kind = TypeError if getattr(y, "__hash__", None) is None else ValueError
            raise kind(f"expected one of the labels {known}{more}, got {short(y)}") from None

    @property
    def points(self) -> tuple[Label, ...]:
        return self.labels

    @cached_property
    def distances(self) -> Array:
        return _discrete(self.cells)


def _plain_label(label: object) -> Label:
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, (str, int, float)):
        raise TypeError(f"expected text or numbers as labels, got {short(label)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected finite numbers as labels, got {value!r}")
    return value


@dataclass(frozen=True)
class Circle(FiniteSpace):
    """Direction, time of day, or any other periodic quantity.

    Parameters
    ----------
    period
        Length of a period; 360 by default. Outcomes are taken modulo the period.
    cells
        Number of cells of equal width; 72 by default.

    Notes
    -----
    A cell contains its start but not its end. The distance is the length of the shorter arc:

        d(a, b) = min(|a - b|, period - |a - b|)    (a compact metric space; paper, section 2)

    Examples
    --------
    >>> space = Circle(360, cells=72)
    >>> space.outcome(-10), space.cell(350.0), space.value(70)
    (350.0, 70, 352.5)
    """

    period: float = 360.0
    cells: int = 72

    def __post_init__(self) -> None:
        period = single(self.period, "period")
        if not 1e-100 < period < LARGEST:
            raise ValueError(f"expected a period between 1e-100 and 1e100, got {period!r}")
        object.__setattr__(self, "period", period)
        object.__setattr__(self, "cells", whole(self.cells, "cells", 2, LIMITS.cells))

    def outcome(self, y: object, outside: str = "raise") -> float:
        value = single(y) % self.period
        # a tiny negative number rounds to the period itself
        return value if value < self.period else 0.0

    def cell(self, canonical: float) -> int:
        return min(int(canonical * self.cells / self.period), self.cells - 1)

    def value(self, k: int) -> float:
        return float(self.points[k])

    @cached_property
    def points(self) -> Array:
        return frozen((np.arange(self.cells, dtype=np.float64) + 0.5) * (self.period / self.cells))

    @cached_property
    def distances(self) -> Array:
        steps = np.abs(np.subtract.outer(np.arange(self.cells), np.arange(self.cells)))
        arcs: Array = np.minimum(steps, self.cells - steps) * np.float64(self.period / self.cells)
        return frozen(arcs)


@dataclass(frozen=True, repr=False)
class Box(FiniteSpace):
    """Vector with bounds on each component.

    Parameters
    ----------
    bounds
        Pairs (low, high), one per component.
    cells
        Number of cells per side, or one number for each side; 12 by default.

    Notes
    -----
    The cells are a grid, numbered with the last side running fastest. An outcome on an edge belongs to the cell below
    it. Distances are Euclidean, in units of the sides:

        d(a, b)^2 = sum_i ((a_i - b_i) / (high_i - low_i))^2    (a compact metric space; paper, section 2)

    Examples
    --------
    >>> space = Box([(0, 1), (-5, 5)], cells=(4, 10))
    >>> space.cells, space.outcome([0.3, 2.2]).tolist(), space.cell([0.3, 2.2]), space.value(17).tolist()
    (40, [0.3, 2.2], 17, [0.375, 2.5])
    """

    bounds: tuple[tuple[float, float], ...]
    shape: tuple[int, ...]

    def __init__(self, bounds: Iterable[tuple[float, float]], cells: int | Sequence[int] = 12) -> None:
        try:
            pairs = [(low, high) for low, high in limits.taken("dims", bounds)]
        except (TypeError, ValueError) as reason:
            if limits.MORE in str(reason):
                raise
            raise TypeError(f"expected bounds such as [(0, 1), (-5, 5)], got {short(bounds)}") from None
        if not pairs:
            raise ValueError("expected bounds for at least one side, got none")
        sides = tuple(span(low, high) for low, high in pairs)
        some = [cells] * len(sides) if np.ndim(cells) == 0 else list(cells)  # type: ignore[arg-type]
        shape = tuple(whole(count, "cells a side", 2, LIMITS.cells) for count in some)
        if len(shape) != len(sides):
            raise ValueError(f"expected a number of cells for each of the {len(sides)} sides, got {len(shape)}")
        if math.prod(shape) > LIMITS.cells:
            raise ValueError(f"expected at most {LIMITS.cells} cells in all, got {math.prod(shape)}")
        object.__setattr__(self, "bounds", sides)
        object.__setattr__(self, "shape", shape)

    @property
    def cells(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    def outcome(self, y: ArrayLike, outside: str = "raise") -> Array:
        value = _vector(y, len(self.bounds))
        low, high = self._ends
        if ((value < low) | (value > high)).any():
            if outside == "clip":
                return np.minimum(np.maximum(value, low), high)
            i = int(np.flatnonzero((value < low) | (value > high))[0])
            raise ValueError(
                f"expected component {i} of the outcome in [{low[i]:g}, {high[i]:g}], got {float(value[i])!r}: "
                "outside='clip' clips it"
            )
        return value

    def cell(self, canonical: ArrayLike) -> int:
        k = 0
        for y, edges, count in zip(np.asarray(canonical).tolist(), self._steps, self.shape, strict=True):
            k = k * count + min(max(bisect_left(edges, y) - 1, 0), count - 1)
        return k

    @cached_property
    def edges(self) -> tuple[Array, ...]:
        """Edges of the cells along each side."""
        return tuple(
            frozen(np.linspace(low, high, count + 1))
            for (low, high), count in zip(self.bounds, self.shape, strict=True)
        )

    @cached_property
    def points(self) -> Array:
        grid = np.meshgrid(*(0.5 * (edges[1:] + edges[:-1]) for edges in self.edges), indexing="ij")
        return frozen(np.stack([side.ravel() for side in grid], axis=1))

    @cached_property
    def distances(self) -> Array:
        low, high = self._ends
        squares = np.zeros((self.cells, self.cells))
        for side in ((self.points - low) / (high - low)).T:
            squares += np.subtract.outer(side, side) ** 2
        return frozen(np.sqrt(squares))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        low, high = np.array(self.bounds).T
        return low, high

    @cached_property
    def _steps(self) -> tuple[list[float], ...]:
        return tuple(edges.tolist() for edges in self.edges)

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "Box", "bounds": [list(side) for side in self.bounds], "cells": list(self.shape)}

    def __repr__(self) -> str:
        return f"Box({list(self.bounds)}, cells={self.shape})"


def _vector(y: object, size: int) -> Array:
    value = numbers(y, f"{size} numbers as outcome")
    if size == 1 and value.ndim == 0:
        value = value[None]
    if value.shape != (size,):
        raise ValueError(f"expected {size} numbers as outcome, got shape {value.shape}")
    if not (np.abs(value) <= LARGEST).all():
        raise ValueError(f"expected {size} finite numbers as outcome, got {short(y)}")
    return value
