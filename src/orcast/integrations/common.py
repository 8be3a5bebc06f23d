"""What the integrations share: spaces from bounds, features for payoffs, rounds in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orcast.adapters import expert_row
from orcast.contexts import Bins, Everyone, LastError, Values
from orcast.engine.bound_payoff import leaves
from orcast.game import Forecaster
from orcast.payoffs import Custom, DecisionCalibration, Payoff, Recipe, SwapRegret
from orcast.serialise import plain_features
from orcast.spaces import HalfLine, Interval, Line, OrderedSpace


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
