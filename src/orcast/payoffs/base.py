"""Payoffs, their direct sum, and their view from the cells of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import EVERYONE, Context, as_context
from orcast.scores import Score
from orcast.spaces import FiniteSpace, Space, frozen
from orcast.validation import number

Array = NDArray[np.float64]

NOTHING: Array = frozen(np.empty(0))
# Size of a part that is known only in its first round.
UNKNOWN = -1


def checked_weight(weight: object) -> float:
    """Check a positive weight."""
    return number(weight, "weight", 1e-6, 1e6)


class CellGrid(NamedTuple):
    """Cells of a round, as payoffs use them.

    On ordered spaces cell k reaches from `left[k]` to `right[k]`, and outcomes are clipped to [`low`, `high`], the
    bounds of the space if it has any. On finite spaces each cell has a value.
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

    @property
    def ordered(self) -> bool:
        """True if the cells are consecutive pieces of a line."""
        return self.left.size > 0

    @property
    def start(self) -> Array:
        """Initial masses: the expert's, or uniform ones without an expert."""
        return self.expert if self.expert.size else np.full(self.cells, 1.0 / self.cells)

    @property
    def values(self) -> list[Any]:
        """Values of the cells of a finite space, for users' functions."""
        assert isinstance(self.space, FiniteSpace)
        return [self.space.value(k) for k in range(self.cells)]

    def forecast(self, mass: Array) -> Any:
        """Masses as the forecast object that users' functions receive."""
        from orcast.forecasts import Forecast, forecast_on

        if isinstance(self.space, FiniteSpace):
            return forecast_on(self.space, mass, None)
        return Forecast.trusted(self.left, self.right, mass, None)


class CellPayoff:
    """Payoff on the cells of a round, before its context and weight; s are ledger entries, p masses.

    A subclass sets `size` and overrides `table`; the other methods have defaults.
    """

    size: int
    explicit = False  # True if the field depends on p only by a constant
    one_sided = False  # True if its mean under p may be negative
    cost = 1.0  # of one evaluation of the field, in units of a compiled one

    @property
    def features(self) -> Array | None:
        """One column per cell: cells with equal columns have equal payoffs for every p; None if all cells differ."""
        return None

    def table(self, p: Array) -> Array:
        """Mean payoff over each cell, one column per cell."""
        raise AttributeError(f"{type(self).__name__} has no table")

    def spans(self, p: Array) -> tuple[Array, Array]:
        """Smallest and largest value of each coordinate in each cell, or in pieces of it along a third axis."""
        table = self.table(p)
        return table, table

    def realised(self, p: Array, k: int, y: Any) -> Array:
        """Payoff of an outcome y in cell k."""
        return self.table(p)[:, k]

    def field(self, s: Array, p: Array) -> Array:
        """Value of <s, payoff> for an outcome in each cell, up to a constant."""
        return s @ self.table(p)

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array | None:
        """Derivative of the field by the masses, up to a constant in each column; None if unknown.

        Unless `exact`, it may be changed to keep Newton's matrix regular.
        """
        return None

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Largest 2 <s, payoff> + factor ||payoff||^2 within each cell, and the largest factor ||payoff||^2."""
        low, high = self.spans(p)
        if low is high:
            square = factor * np.einsum("ik,ik->k", low, low)
            return 2.0 * (s @ low) + square, square
        a, b = factor * low * low, factor * high * high
        twice = 2.0 * s.reshape(-1, *(1,) * (low.ndim - 1))
        return in_cells(np.maximum(twice * low + a, twice * high + b)), in_cells(np.maximum(a, b))


def in_cells(values: Array) -> Array:
    """Sums over the coordinates, the first axis, and the maximum over the pieces of each cell."""
    total: Array = values.sum(axis=0)
    return total if total.ndim == 1 else total.max(axis=1)


@dataclass(frozen=True)
class Part:
    """Payoff bound to a space: number of coordinates, squared bound, and the way it is solved.

    The compiled engine covers the kinds "quantile", "interval", "moment" and "regret". The witness jumps at `jumps`,
    which become edges of cells. `state` creates the part's own state.
    """

    payoff: Payoff
    size: int
    bound: float
    cell_payoff: Callable[[CellGrid, dict[str, Array]], CellPayoff]
    jumps: Array = field(default_factory=lambda: NOTHING)
    kind: str = "general"
    state: Callable[[], dict[str, Array]] = dict

    @property
    def context(self) -> Context:
        """Context of the payoff."""
        return self.payoff.context


class Payoff:
    """Vector that measures a forecast p against an outcome y (paper, section 3).

    Its mean under p itself is zero (consistency), or at most zero if it is `one_sided`; its squared norm is bounded. A
    recalibrator divides it by the root of its bound and multiplies it by `weight` (1 by default). A `context`, such as
    `by`, `by_expert` or `by_last_error`, names groups on which it is kept small separately; by default all rounds are
    one group.

    >>> import orcast as oc
    >>> payoff = oc.QuantileCalibration() + oc.NoRegret(oc.CRPS())
    >>> [part.name for part in payoff]
    ['quantile', 'regret']
    """

    name: str
    weight: float
    context: Context
    one_sided: bool = False
    largest: bool = False  # True if `summary` is the largest entry
    options: tuple[str, ...] = ()  # names of the attributes in the plain form, where they are set

    def _settings(self, context: Context | None, weight: object) -> None:
        self.context = as_context(context)
        self.weight = checked_weight(weight)
        if self.one_sided and self.context.signed:
            raise ValueError(
                f"expected a context of groups for a one-sided {type(self).__name__}, got a function: its values may "
                "be negative"
            )

    def on(self, space: Space, experts: int = 1) -> Part:
        """Bind the payoff to a space.

        Parameters
        ----------
        space
            Space of the outcomes; unsuitable ones raise TypeError.
        experts
            Number of experts.
        """
        raise AttributeError(f"{type(self).__name__} cannot be put on a space")

    def summary(self, mean: Array) -> float:
        """Size of a mean payoff in its own units: its norm, or its largest entry."""
        return float(np.abs(mean).max() if self.largest else np.linalg.norm(mean))

    def to_plain(self) -> dict[str, Any]:
        """Plain data; functions are omitted and must be passed again."""
        return {"kind": type(self).__name__, "context": self.context.to_plain(), "weight": self.weight, **self._plain()}

    def _plain(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.options}
        return {name: plain_option(value) for name, value in given.items() if isinstance(value, np.ndarray) or value}

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
    """Direct sum of payoffs: all are kept small together (paper, proposition 3).

    Parameters
    ----------
    parts
        The payoffs; `a + b` is `Sum((a, b))`.

    Notes
    -----
    Each of n parts, normalised by the root of its bound B_i, ends with ||mean payoff_i||^2 <= n B_i / T. The
    proposition divides by B_i; for B_i a bound on the squared norm it must be the root.

    Examples
    --------
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
    """Unique names of the parts: kind, context, and a number for repeated names."""
    names: list[str] = []
    for payoff in payoffs:
        name = payoff.name if payoff.context is EVERYONE else f"{payoff.name} by {payoff.context.name}"
        count = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(name if count == 0 else f"{name} ({count + 1})")
    return names


def plain_option(value: Any) -> Any:
    """Option of a payoff as plain data."""
    if isinstance(value, tuple):
        return [each.to_plain() if isinstance(each, Score) else str(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def wrong_space(payoff: Payoff, expected: str, space: Space) -> TypeError:
    """Error for a payoff on an unsuitable space."""
    return TypeError(f"expected {expected} for {type(payoff).__name__}, got {space!r}")
