"""What the integrations share: spaces from bounds, spreads for points, features for payoffs, rounds in batches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orcast.adapters import Normal, expert_row
from orcast.contexts import Bins, Everyone, LastError, Values
from orcast.engine.bound_payoff import leaves
from orcast.game import Forecaster
from orcast.payoffs import Custom, DecisionCalibration, Payoff, Recipe, SwapRegret
from orcast.serialise import plain_features
from orcast.spaces import HalfLine, Interval, Line, OrderedSpace
from orcast.validation import number, short

# The standard deviation of a Gaussian whose mean absolute value is 1.
PER_ABSOLUTE = math.sqrt(math.pi / 2.0)
# The spread before any error is known: a share of the interval, or of the forecast itself.
FIRST_SPREAD = 0.1


def space_of(low: float | None, high: float | None) -> OrderedSpace:
    """The space of a quantity with these bounds; None is no bound.

    >>> space_of(None, None), space_of(0, None).low, space_of(0, 100).high
    (Line(cells=64, tail_cells=8), 0.0, 100.0)
    """
    if low is None and high is None:
        return Line()
    if high is None:
        assert low is not None
        return HalfLine(low)
    if low is None:
        raise ValueError(
            f"expected low with high (forecast -y if there is an upper bound only), got high={high!r} alone"
        )
    return Interval(low, high)


class Residuals:
    """Points as forecasts: Gaussians as wide as the last known residuals.

        mean = the point, within the bounds
        sd = sqrt(pi / 2) * mean of |outcome - mean| over the last ``window`` outcomes

    which is the standard deviation if residuals are Gaussian, and minds the wild errors of a model's first rounds less
    than a root mean square does.  Before the first outcome: a tenth of the interval, or of the point itself.

    >>> residuals = Residuals(window=2)
    >>> residuals.around(120.0, Interval(0, 100))
    Normal(mean=100.0, sd=10.0)
    >>> residuals.add(3.0); residuals.add(-1.0); residuals.add(2.0)
    >>> round(residuals.scale(5.0, Interval(0, 100)), 3)
    1.88
    """

    __slots__ = ("_last",)

    def __init__(self, window: int) -> None:
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise ValueError(f"expected a window of at least 1 residual, got {short(window)}")
        self._last: deque[float] = deque(maxlen=window)

    def around(self, point: Any, space: OrderedSpace, spread: float | None = None) -> Normal:
        """The forecast of a point, with a spread of its own if it has one."""
        mean = number(point, "prediction")
        # a model that runs away says nothing of how far
        mean = min(max(mean, space.low), space.high)
        return Normal(mean, spread or self.scale(mean, space))

    def scale(self, point: float, space: OrderedSpace) -> float:
        """The spread of the next forecast."""
        if self._last:
            # anew each time: 100 numbers are added up in no time, and nothing is left of those that are gone
            return PER_ABSOLUTE * sum(self._last) / len(self._last)
        if isinstance(space, Interval):
            return FIRST_SPREAD * (space.high - space.low)
        return FIRST_SPREAD * abs(point) or 1.0

    def add(self, residual: float) -> None:
        """One more is known."""
        self._last.append(abs(residual))

    def copy(self) -> Residuals:
        """The same, to be changed by itself."""
        other = Residuals(self._last.maxlen or 1)
        other._last.extend(self._last)
        return other

    def __len__(self) -> int:
        return len(self._last)


def issue_together(game: Forecaster, forecasts: Sequence[object], features: Sequence[Any] | None) -> Iterator[Any]:
    """Rounds whose outcomes come together, each played with all the others outstanding; the game does not change.

    It is played with at least as many outstanding as were in the rounds that the game has learnt from: what is owed for
    outcomes that came late is not to be paid at once.  The rounds are not kept by the game, so none reserves any of
    the slack, and many do not make one another absurd; what late outcomes cost is added to the promise when they are
    booked.
    """
    engine, pending = game.engine, max(float(len(forecasts) - 1), game.rounds.usual_lag or 0.0)
    rows = [expert_row(forecast, game.space)[0][None, :] for forecast in forecasts]
    xs = [None] * len(rows) if features is None else [plain_features(x) for x in features]
    return (engine.predict(row, x, pending=pending) for row, x in zip(rows, xs, strict=True))


def book_together(game: Forecaster, rounds: Sequence[Any], outcomes: Sequence[Any]) -> None:
    """Their outcomes, in the same order, each of them canonical."""
    for page, outcome in zip(rounds, outcomes, strict=True):
        game.rounds.settle_unkept(page, outcome, lag=float(len(rounds) - 1))


class FeatureReader:
    """Which features a payoff looks at: none, some by name, or all, since it has functions.

    >>> import orcast as oc
    >>> hours = oc.QuantileCalibration(context=oc.by("hour", values=range(24)))
    >>> FeatureReader(hours).of({"hour": 3, "site": object()}), FeatureReader(None).of({"hour": 3})
    ({'hour': 3}, None)
    """

    __slots__ = ("all", "names")

    def __init__(self, payoff: Payoff | None) -> None:
        parts = [] if payoff is None else list(payoff)
        simple = [leaf for part in parts for leaf in leaves(part.context)]
        named = [leaf for leaf in simple if isinstance(leaf, Values) or (isinstance(leaf, Bins) and _of_x(leaf))]
        self.names = tuple(dict.fromkeys(leaf.key for leaf in named))
        self.all = any(map(_has_function, parts)) or not all(isinstance(leaf, _NO_FUNCTION) for leaf in simple)

    def __bool__(self) -> bool:
        return self.all or bool(self.names)

    def of(self, x: Any) -> Any:
        """What the game is told of a round's features."""
        if not self.names:
            return x if self.all else None
        if self.all:
            return x
        return {name: x[name] for name in self.names if name in x} if isinstance(x, Mapping) else x


_NO_FUNCTION = (Everyone, Values, Bins, LastError)


def _of_x(bins: Bins) -> bool:
    return bins.source == "feature"


def _has_function(payoff: Payoff) -> bool:
    return isinstance(payoff, (Recipe, Custom, DecisionCalibration, SwapRegret)) or not type(
        payoff
    ).__module__.startswith("orcast.payoffs")
