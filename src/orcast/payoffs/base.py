"""Payoffs, their direct sum, and their view from the cells of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import EVERYONE, Context, as_context
from orcast.spaces import FiniteSpace, Space, frozen
from orcast.validation import number

Array = NDArray[np.float64]

NOTHING: Array = frozen(np.empty(0))
# The size of a part that only its first round can tell.
UNKNOWN = -1


def checked_weight(weight: object) -> float:
    """A positive weight."""
    return number(weight, "weight", 1e-6, 1e6)


class CellGrid(NamedTuple):
    """The cells of a round, as a payoff sees them.

    On ordered spaces cell k reaches from `left[k]` to `right[k]`, and outcomes are clipped to [`low`, `high`],
    the space itself where it is bounded.  On finite spaces there is a value for each cell.
    """

    space: Space
    cells: int
    left: Array = NOTHING
    right: Array = NOTHING
    low: float = 0.0
    high: float = 1.0
    expert: Array = NOTHING  # the masses of the expert, or of the pool of experts
    experts: Array = frozen(np.empty((0, 0)))  # a row for each
    features: Any = None
    quantiles: Array = NOTHING  # of the expert, or of the pool of experts, at increasing levels

    @property
    def ordered(self) -> bool:
        """True if the cells are consecutive pieces of a line."""
        return self.left.size > 0

    @property
    def start(self) -> Array:
        """Masses to begin with: the expert's, or even ones without an expert."""
        return self.expert if self.expert.size else np.full(self.cells, 1.0 / self.cells)

    @property
    def values(self) -> list[Any]:
        """Values of the cells of a finite space, for users' functions."""
        assert isinstance(self.space, FiniteSpace)
        return [self.space.value(k) for k in range(self.cells)]

    def locate(self, y: Array) -> NDArray[np.intp]:
        """The cells of outcomes that are at no atom."""
        return np.searchsorted(self.right, y)

    def forecast(self, mass: Array) -> Any:
        """Masses as the forecast that users' functions see."""
        from orcast.forecasts import Forecast, forecast_on

        if isinstance(self.space, FiniteSpace):
            return forecast_on(self.space, mass, None)
        return Forecast.trusted(self.left, self.right, mass, None)


class CellPayoff:
    """A payoff on the cells of a round, before its context and weight; s are ledger entries, p masses.

    A subclass sets `size` and overrides `table`; the other methods have defaults that it may replace.
    """

    size: int
    explicit = False  # whether the field depends on p only by a constant
    one_sided = False  # whether its mean under p may be below zero
    cost = 1.0  # of evaluating the field once, in units of a compiled one

    @property
    def features(self) -> Array | None:
        """A column a cell: cells with equal columns have equal payoffs, whatever p; None: no two cells have."""
        return None

    def table(self, p: Array) -> Array:
        """The mean payoff over each cell: a column a cell."""
        raise AttributeError(f"{type(self).__name__} has no table")

    def spans(self, p: Array) -> tuple[Array, Array]:
        """The least and the largest value of each coordinate in each cell, or in pieces of it along a third axis."""
        table = self.table(p)
        return table, table

    def realised(self, p: Array, k: int, y: Any) -> Array:
        """The payoff of an outcome y in cell k."""
        return self.table(p)[:, k]

    def field(self, s: Array, p: Array) -> Array:
        """<s, payoff> for an outcome in each cell, up to a constant."""
        return s @ self.table(p)

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array | None:
        """Derivative of the field by the masses, up to a constant in each column; None: not known, or none.

        Without `exact` it may be bent to keep Newton's matrix regular.
        """
        return None

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """The largest 2 <s, payoff> + factor ||payoff||^2 within each cell, and the largest factor ||payoff||^2."""
        low, high = self.spans(p)
        if low is high:
            square = factor * np.einsum("ik,ik->k", low, low)
            return 2.0 * (s @ low) + square, square
        a, b = factor * low * low, factor * high * high
        twice = 2.0 * s.reshape(-1, *(1,) * (low.ndim - 1))
        return in_cells(np.maximum(twice * low + a, twice * high + b)), in_cells(np.maximum(a, b))


def in_cells(values: Array) -> Array:
    """Sums over the coordinates, the first axis; of the pieces of a cell, if there are any, the largest."""
    total: Array = values.sum(axis=0)
    return total if total.ndim == 1 else total.max(axis=1)


@dataclass(frozen=True)
class Part:
    """A payoff bound to a space: how many coordinates it has, its squared bound, and how it is played.

    `kind` is "quantile", "interval", "moment", "explicit" (its field does not depend on p, so the tilt is explicit),
    "regret" or "general".  `jumps` are the places where its witness jumps, which become edges of cells.
    `state` makes what the part itself remembers, `learn` changes that once the round is settled.
    """

    payoff: Payoff
    size: int
    bound: float
    kind: str
    cell_payoff: Callable[[CellGrid, dict[str, Array]], CellPayoff]
    jumps: Array = field(default_factory=lambda: NOTHING)
    state: Callable[[], dict[str, Array]] = dict
    learn: Callable[[CellGrid, dict[str, Array]], None] | None = None

    @property
    def context(self) -> Context:
        """The payoff's context."""
        return self.payoff.context


class Payoff:
    """A vector that measures how a forecast p fared with an outcome y (paper, section 3).

    Its mean under p itself is zero (consistency), or at most zero where it is `one_sided`; its squared norm is
    bounded.  In a game it is divided by the root of its bound and multiplied by `weight`; with a `context` it is
    kept small on each group by itself.

    >>> import orcast as oc
    >>> payoff = oc.QuantileCalibration() + oc.NoRegret(oc.CRPS())
    >>> [part.name for part in payoff]
    ['quantile', 'regret']
    """

    name: str
    weight: float
    context: Context
    one_sided: bool = False

    def _settings(self, context: Context | None, weight: object) -> None:
        self.context = as_context(context)
        self.weight = checked_weight(weight)
        if self.one_sided and self.context.signed:
            raise ValueError(
                f"expected a context of groups for a one-sided {type(self).__name__}, got a function, whose values may "
                "be negative"
            )

    def on(self, space: Space, experts: int = 1) -> Part:
        """The payoff on a space; refuses spaces where it makes no sense."""
        raise AttributeError(f"{type(self).__name__} cannot be put on a space")

    def summary(self, mean: Array) -> float:
        """The size of a mean payoff, in its own units."""
        return float(np.linalg.norm(mean))

    def summary_bound(self, norm: float) -> float:
        """The largest `summary` of a mean payoff whose norm is at most so much."""
        return norm

    def to_plain(self) -> dict[str, Any]:
        """Plain data; functions are left out, and must be given again."""
        return {"kind": type(self).__name__, "context": self.context.to_plain(), "weight": self.weight, **self._plain()}

    def _plain(self) -> dict[str, Any]:
        return {}

    def __iter__(self) -> Iterator[Payoff]:
        yield self

    def __add__(self, other: Payoff) -> Sum:
        if not isinstance(other, Payoff):
            return NotImplemented
        return Sum((*self, *other))

    def __repr__(self) -> str:
        settings = [f"{key}={value}" for key, value in self._plain().items() if np.size(value) <= 4]
        if getattr(self, "context", EVERYONE) is not EVERYONE:
            settings.append(f"context={self.context!r}")
        if getattr(self, "weight", 1.0) != 1.0:
            settings.append(f"weight={self.weight:g}")
        return f"{type(self).__name__}({', '.join(settings)})"


@dataclass(frozen=True, repr=False)
class Sum(Payoff):
    """The direct sum of payoffs: all are kept small together (paper, proposition 3).

    Normalised by the roots of their bounds B_i (the proposition divides by B_i; with B_i a bound on the squared norm it
    must be the root), each of n parts ends with ||mean payoff_i||^2 <= n B_i / T.

    >>> import orcast as oc
    >>> payoff = oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    >>> [part.name for part in payoff]
    ['quantile', 'moment', 'regret']
    """

    parts: tuple[Payoff, ...]

    name = "sum"

    def __iter__(self) -> Iterator[Payoff]:
        return iter(self.parts)

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "Sum", "parts": [part.to_plain() for part in self.parts]}

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


def part_names(payoffs: Sequence[Payoff]) -> list[str]:
    """A name for each part, none twice: its kind, what it is conditional on, and a number if need be."""
    names: list[str] = []
    for payoff in payoffs:
        name = payoff.name if payoff.context is EVERYONE else f"{payoff.name} by {payoff.context.name}"
        count = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(name if count == 0 else f"{name} ({count + 1})")
    return names


def wrong_space(payoff: Payoff, expected: str, space: Space) -> TypeError:
    """The sentence for a payoff that makes no sense on a space."""
    return TypeError(f"expected {expected} for {type(payoff).__name__}, got {space!r}")
