"""Calibration for decisions: the expected utility of each action."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import CellGrid, CellPayoff, Part, Payoff
from orcast.payoffs.calibration import increasing
from orcast.payoffs.cell_payoffs import (
    AnswerCellPayoff,
    ExplicitCellPayoff,
    Witness,
    witness_on,
)
from orcast.payoffs.functions import Shape, jumps_inside, lipschitz_of, numbers_in, scan
from orcast.spaces import FiniteSpace, Interval, OrderedSpace, Space
from orcast.validation import number, short

Array = NDArray[np.float64]

# The weights of the best action are softmax(SHARPNESS * expected utility / range).
SHARPNESS = 50.0


class DecisionCalibration(Payoff):
    """The mean utility of each action is the one that forecasts expect (paper, section 3).

    Parameters
    ----------
    actions
        Actions.
    utility
        Function (action, y) or (action, y, x) of one outcome at a time.
    utility_range
        Largest minus smallest utility of an action; measured if the space is bounded and there are no features.
    jumps, lipschitz
        Outcomes at which a utility jumps or turns, and a bound on its change per unit of y between them; see `Recipe`.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    In units of `utility_range`:

        payoff_a = E_p[u(a, y', x)] - u(a, y, x)

    On a space without bounds utilities are clipped at half that range from their value at the expert's median. The tilt
    is explicit. Squared bound: the number of actions.

    Examples
    --------
    >>> import orcast as oc
    >>> umbrella = oc.payoffs.DecisionCalibration(["take", "leave"], lambda a, y: -0.2 if a == "take" else -1.0 * y)
    >>> umbrella.on(oc.Binary()).bound
    2.0
    """

    name = "decision"
    options: tuple[str, ...] = ("actions", "utility_range", "jumps", "lipschitz")
    largest = True

    def __init__(
        self,
        actions: Iterable[Hashable],
        utility: Callable[..., float],
        *,
        utility_range: float | None = None,
        jumps: Iterable[float] | None = None,
        lipschitz: float | None = None,
        context: Context | None = None,
        weight: float = 1.0,
    ) -> None:
        self.actions, self.utility = checked_actions(actions, utility), utility
        if len(self.actions) > 100:
            raise ValueError(f"expected 1 to 100 actions, got {len(self.actions)}")
        if len(set(self.actions)) < len(self.actions):
            raise ValueError(f"expected different actions, got {short(self.actions)}")
        self.utility_range = None if utility_range is None else number(utility_range, "utility_range", 1e-300, 1e300)
        self._takes_features = takes_features(utility)
        self.jumps = None if jumps is None else increasing(jumps, "finite jumps", -np.inf, np.inf)
        self.lipschitz = lipschitz_of(lipschitz)
        self._settings(context, weight)

    def _shape_on(self, space: Space, unit: float) -> tuple[Array, Shape]:
        """Return jumps of the utilities in units of their range, and their shape between them."""
        if self.jumps is not None or self.lipschitz > 0.0 or self._takes_features:
            return jumps_inside(self.jumps, space), Shape(self.lipschitz / unit)

        def many(ys: Array) -> Array:
            return np.array([self._called_at(action, ys, None) for action in self.actions], np.float64) / unit

        return scan(lambda y: self._worth(y, None) / unit, many, space, 1.0, numbers_in(self.utility), "utility")

    def _called(self, action: Hashable, y: Any, x: Any) -> Any:
        return self.utility(action, y, x) if self._takes_features else self.utility(action, y)

    def _worth(self, y: Any, x: Any) -> Array:
        worth = np.empty(len(self.actions))
        for i, action in enumerate(self.actions):
            worth[i] = one_number(self._called(action, y, x), f"utility of {action!r}")
        return worth

    def _called_at(self, action: Any, ys: Array, x: Any) -> Any:
        """Unchecked utilities of an action at many outcomes, in one call if the function allows it."""
        try:
            # the utility may not depend on the outcome
            return np.broadcast_to(self._called(action, ys, x), ys.shape)
        except (TypeError, ValueError, AttributeError, IndexError, KeyError):
            return [self._called(action, y, x) for y in ys.tolist()]

    def range_on(self, space: Space) -> float:
        """Largest range of an action's utility, measured on bounded spaces."""
        if self.utility_range is not None:
            return self.utility_range
        if self._takes_features or not isinstance(space, (Interval, FiniteSpace)):
            why = "with features" if self._takes_features else f"on {space!r}"
            raise ValueError(f"expected utility_range= (largest minus smallest utility) {why}, got none")
        if isinstance(space, FiniteSpace):
            values = [space.value(k) for k in range(space.cells)]
        else:
            numbers = [value for value in numbers_in(self.utility) if space.low <= value <= space.high]
            values = [*np.linspace(space.low, space.high, 513).tolist(), *numbers]
        table = np.array([self._worth(y, None) for y in values])
        # 5% more, because a kink between the sampled points may exceed them
        return 1.05 * max(float((table.max(axis=0) - table.min(axis=0)).max()), 1e-300)

    def _witness(self, cell_grid: CellGrid, unit: float, shape: Shape) -> Witness:
        centre, half = self.limits(cell_grid.space, cell_grid.forecast(cell_grid.expert), cell_grid.features, unit)

        def worth(y: Any) -> Array:
            return np.clip(self._worth(y, cell_grid.features) - centre, -half, half) / unit

        def worths(ys: Array) -> Array:
            rows = np.array([self._called_at(action, ys, cell_grid.features) for action in self.actions], np.float64)
            return np.clip(rows.T - centre, -half, half).T / unit

        witness = witness_on(cell_grid, worth, len(self.actions), "utility", worths, shape)
        high, low = (witness.high, witness.low) if shape.plain else (witness.mean, witness.mean)
        spread = float((high.max(axis=1) - low.min(axis=1)).max())
        if spread > 1.0 + 1e-6 and np.isinf(half):
            raise ValueError(
                f"expected utilities of an action within a range of {unit:g}, got {spread * unit:g}: "
                "raise utility_range="
            )
        return witness

    def limits(self, space: Space, expert: Any, x: Any, unit: float) -> tuple[Array, float]:
        """Centre of each action's utilities, and the distance at which they are clipped.

        Parameters
        ----------
        space
            Space of the outcomes; on bounded ones nothing is clipped.
        expert
            Base forecast; the centre is the utility at its median.
        x
            Features of the round.
        unit
            Range of the utilities; they are clipped at half of it.
        """
        if not isinstance(space, OrderedSpace) or np.isfinite(space.high - space.low):
            return np.zeros(len(self.actions)), np.inf
        return self._worth(expert.median(), x), 0.5 * unit

    def on(self, space: Space, experts: int = 1) -> Part:
        unit = self.range_on(space)
        size = len(self.actions)
        jumps, shape = self._shape_on(space, unit)

        def cell_payoff(cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
            return ExplicitCellPayoff(self._witness(cell_grid, unit, shape))

        return Part(self, size, float(size), cell_payoff, jumps)


class SwapRegret(DecisionCalibration):
    """In the rounds in which an action was best by forecast, no other was better (paper, section 3, swap regret).

    Parameters
    ----------
    actions, utility
        Actions, and the function (action, y) or (action, y, x).
    sharpness
        Inverse temperature of the softmax that replaces the indicator of the best action.
    options
        Other options of `DecisionCalibration`.

    Notes
    -----
    In units of `utility_range`:

        payoff_{a',a} = best_{a'}(p, x) (E_p[u(a, y', x)] - u(a, y, x)),    best = softmax(sharpness E_p[u] / range)

    If all of these vanish, swapping a' for a gains at most the loss of actions within about range / sharpness of the
    best one. Squared bound: the number of actions.

    Examples
    --------
    >>> import orcast as oc
    >>> oc.payoffs.SwapRegret(["take", "leave"], lambda a, y: -0.2 if a == "take" else -1.0 * y).on(oc.Binary()).size
    4
    """

    name = "swap regret"
    options = (*DecisionCalibration.options, "sharpness")
    largest = False

    def __init__(
        self,
        actions: Iterable[Hashable],
        utility: Callable[..., float],
        *,
        sharpness: float = SHARPNESS,
        **options: Any,
    ) -> None:
        super().__init__(actions, utility, **options)
        self.sharpness = number(sharpness, "sharpness", 1.0, 1e4)

    def on(self, space: Space, experts: int = 1) -> Part:
        unit = self.range_on(space)
        size = len(self.actions)
        jumps, shape = self._shape_on(space, unit)

        def cell_payoff(cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
            witness = self._witness(cell_grid, unit, shape)
            centre, _ = self.limits(space, cell_grid.forecast(cell_grid.expert), cell_grid.features, unit)
            return AnswerCellPayoff(witness, self.sharpness * (witness.mean + centre[:, None] / unit))

        return Part(self, size * size, float(size), cell_payoff, jumps)


def checked_actions(actions: Iterable[Any], utility: object) -> tuple[Any, ...]:
    """Check one action or more, and a function of them."""
    if not callable(utility):
        raise TypeError(f"expected utility(action, outcome) or utility(action, outcome, x), got {short(utility)}")
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise TypeError(f"expected a sequence of actions, got {short(actions)}")
    several = tuple(actions)
    if not several:
        raise ValueError("expected at least one action, got none")
    return several


def one_number(value: Any, what: str) -> float:
    """Check one finite number; true and false count as 1 and 0."""
    return number(float(value) if isinstance(value, (bool, np.bool_)) else value, what)


def takes(function: Callable[..., Any], count: int) -> bool:
    """Return True if a function can be called with `count` arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def takes_features(utility: Callable[..., Any]) -> bool:
    """Return True for a utility of (action, outcome, features)."""
    return not takes(utility, 2)
