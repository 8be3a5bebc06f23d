"""Adversaries: each sees the forecast before it picks the outcome.

    for turn in play(game, Greedy(), rounds=1_000, experts=expert, rng=rng):
        game.update(turn.y, id=turn.id)

`adversaries_on` lists those for a space.  An adversary keeps a few sums at most and is made anew for each game; all its
randomness comes from `rng`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from orcast.evaluate.metrics import LEVELS
from orcast.forecasts import Forecast
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.spaces.base import LARGEST
from orcast.testing.consequences import as_given, candidates, products, worst_outcome

Array = NDArray[np.float64]

# A cell of less mass is empty.
EMPTY = 1e-12


class Due(NamedTuple):
    """Ids of the pending rounds whose outcomes come now, in this order, and of those whose outcomes never come.

    >>> Due((3, 1))
    Due(settle=(3, 1), drop=())
    """

    settle: tuple[Hashable, ...]
    drop: tuple[Hashable, ...] = ()


class RoundInputs(NamedTuple):
    """What else an adversary knows of a round: its id, the base forecast, and the features.

    >>> RoundInputs(id=7, expert=0.9).x is None
    True
    """

    id: Hashable = None
    expert: Any = None
    x: Any = None


_UNNAMED = RoundInputs()


class Adversary(ABC):
    """Picks each outcome after the forecast, and the round in which it becomes known.

    >>> class Stubborn(Adversary):
    ...     def outcome(self, game, forecast, rng, round=None):
    ...         return 0.9
    >>> Stubborn().outcome(None, None, np.random.default_rng(0)), Stubborn().due((7, 8), np.random.default_rng(0))
    (0.9, Due(settle=(7, 8), drop=()))
    """

    @abstractmethod
    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """The outcome of a pending round, as users would give it."""

    def due(self, pending: Sequence[Hashable], rng: Generator) -> Due:
        """Which of the pending rounds, the oldest first, get their outcomes now: all of them."""
        return Due(tuple(pending))


class Turn(NamedTuple):
    """A round that is to be settled, with the CPU seconds that its forecast took.

    >>> Turn(7, None, y=0.3, seconds=1e-4).y
    0.3
    """

    id: Hashable
    forecast: Any
    y: Any
    seconds: float


def play(
    game: Any,
    adversary: Adversary,
    rounds: int,
    *,
    rng: Generator,
    experts: Callable[[int], Any] | None = None,
    x: Any = None,
) -> Iterator[Turn]:
    """Let a game forecast round after round; yields the outcomes that the adversary picks, for the caller to settle.

    `experts` gives the base forecast of round t, `x` features, or a function of a random generator that makes them.
    Outcomes that are held back come after the last round.

    >>> import orcast as oc
    >>> game = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(grid=5))
    >>> for turn in play(game, Greedy(), 20, experts=lambda t: 0.9, rng=np.random.default_rng(0)):
    ...     game.update(turn.y, id=turn.id)
    >>> game.guarantee.rounds, game.guarantee.held
    (20, 1.0)
    """
    told: dict[Hashable, tuple[Any, RoundInputs, float]] = {}

    def reveal(id: Hashable) -> Turn:
        forecast, round, seconds = told.pop(id)
        return Turn(id, forecast, adversary.outcome(game, forecast, rng, round), seconds)

    for t in range(rounds):
        expert = None if experts is None else experts(t)
        features = x(rng) if callable(x) else x
        begin = time.process_time()
        forecast = game.predict(expert, x=features, id=t)
        told[t] = forecast, RoundInputs(t, expert, features), time.process_time() - begin
        due = adversary.due(tuple(told), rng)
        for id in due.drop:
            game.drop(id)
            del told[id]
        for id in due.settle:
            yield reveal(id)
    for id in tuple(told):
        yield reveal(id)


class Greedy(Adversary):
    """Picks the outcome after which ||S + payoff||_+ is largest, or <S_+, payoff> if `product`.

    It tries `points` points of every cell.  On a quantity `within=(low, high)` confines it to a part of the space;
    `among` are the only outcomes that it may pick.

    >>> import orcast as oc
    >>> game = oc.Forecaster(oc.Interval(0, 1), oracle=oc.Equilibrium())
    >>> p, rng = game.predict(oc.Normal(0.2, 0.05)), np.random.default_rng(0)
    >>> Greedy().outcome(game, p, rng), Greedy(within=(0.4, 0.6)).outcome(game, p, rng)
    (1.0, 0.6)
    >>> Greedy(among=[0.2, 0.3], product=True).outcome(game, p, rng) in (0.2, 0.3)
    True
    """

    def __init__(
        self,
        *,
        points: int = 3,
        within: tuple[float, float] | None = None,
        among: Iterable[Any] | None = None,
        product: bool = False,
    ) -> None:
        self.points, self.within, self.product = points, within, product
        self.among = None if among is None else list(among)

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """The worst of the outcomes that it may pick."""
        found = self.choices(game, round.id)
        if self.product:
            return as_given(game.space, found[int(products(game, found, round.id).argmax())])
        return worst_outcome(game, round.id, among=[as_given(game.space, y) for y in found], thorough=False)[0]

    def choices(self, game: Any, id: Hashable = None) -> list[Any]:
        """The outcomes that it may pick, in canonical form."""
        if self.among is not None:
            return [game.space.outcome(y) for y in self.among]
        found = candidates(game, id, self.points)
        if self.within is None:
            return found
        low, high = self.within
        return [low, *(y for y in found if low < y < high), high]


class HardGreedy(Adversary):
    """Picks the outcome after which the QCE of the raw indicators 1{y <= q_a} is largest.

    It tries points just below and above each quantile: only randomisation after its choice helps against it.

    >>> adversary, rng = HardGreedy(), np.random.default_rng(0)
    >>> p = Forecast([0.0, 0.5], [0.5, 1.0], [0.5, 0.5])
    >>> for _ in range(10):
    ...     y = adversary.outcome(None, p, rng)
    >>> y <= 0.01, round(adversary.qce, 1)
    (True, 32.8)
    """

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        self.levels = np.array(levels, dtype=np.float64)
        self.total = np.zeros(self.levels.size)
        self.rounds = 0

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> float:
        """The outcome; its indicators are added to the sums."""
        q = np.asarray(forecast.quantile(self.levels), dtype=np.float64)
        low, high = _bounds(game, forecast)
        found = np.unique(np.clip(np.concatenate((q, np.nextafter(q, np.inf))), low, high))
        after = self.total + (found[:, None] <= q) - self.levels
        at = int(np.einsum("ka,ka->k", after, after).argmax())
        self.total = after[at]
        self.rounds += 1
        return float(found[at])

    @property
    def qce(self) -> float:
        """The quantile calibration error of the indicators so far."""
        return float(self.total @ self.total) / max(self.rounds, 1) ** 2


class AdversaryCells(NamedTuple):
    """Cells that `CellGreedy` may draw from, and the payoffs expected in each, a row a cell.

    >>> halves = AdversaryCells(np.array([0.0, 0.5]), np.array([0.5, 1.0]), np.stack((1.0 - LEVELS, -LEVELS)))
    >>> CellGreedy(lambda forecast: halves).outcome(None, Forecast([0.0], [1.0], [1.0]), np.random.default_rng(0)) < 0.5
    True
    """

    left: Array
    right: Array
    payoffs: Array


def own_cells(forecast: Forecast, *, points: bool = False) -> AdversaryCells:
    """The forecast's cells that have a width, and with `points` its point masses; one place has one point mass.

    Where nothing has a width the point masses are all there is.

    In a cell that takes the cumulated mass from F to G,  payoff_a = clip((a - F) / (G - F), 0, 1) - a.

    >>> p = Forecast([0.0, 0.0, 0.5], [0.0, 0.5, 1.0], [0.2, 0.0, 0.8])
    >>> own_cells(p).left, own_cells(p, points=True).left
    (array([0. , 0.5]), array([0. , 0. , 0.5]))
    """
    left, right = forecast.left, forecast.right
    point = right <= left
    first = np.ones(left.size, dtype=bool)
    first[1:] = ~(point[1:] & point[:-1] & (left[1:] == left[:-1]))
    start = np.flatnonzero(first)
    below = forecast.below[start]
    mass = np.diff(below, append=1.0)
    wide = ~point[start]
    if not points and wide.any():
        start, below, mass = start[wide], below[wide], mass[wide]
    share = np.clip((LEVELS - below[:, None]) / np.maximum(mass, EMPTY)[:, None], 0.0, 1.0)
    return AdversaryCells(left[start], right[start], share - LEVELS)


class CellGreedy(Adversary):
    """Picks the *cell* after which its own ledger of quantile payoffs is largest, and draws the outcome inside.

    It needs no ledger of the game, so it plays against any method.

    >>> adversary = CellGreedy()
    >>> y = adversary.outcome(None, Forecast([0.0, 0.5], [0.5, 1.0], [0.5, 0.5]), np.random.default_rng(0))
    >>> 0.0 <= y <= 0.5, round(adversary.qce, 4)
    (True, 8.335)
    """

    def __init__(self, cells_of: Callable[[Forecast], AdversaryCells] = own_cells) -> None:
        self.cells_of = cells_of
        self.total = np.zeros(LEVELS.size)
        self.rounds = 0

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> float:
        """The outcome; its expected payoff is added to the ledger."""
        cells = self.cells_of(forecast)
        after = self.total + cells.payoffs
        k = int(np.einsum("ka,ka->k", after, after).argmax())
        self.total = after[k]
        self.rounds += 1
        left, right = float(cells.left[k]), float(cells.right[k])
        # an open-ended cell is as good as the window that it ends
        width = float(forecast.cells.right[-1] - forecast.cells.left[0])
        left = right - width if left == -math.inf else left
        right = left + width if right == math.inf else right
        return float(min(max(left + rng.random() * (right - left), -LARGEST), LARGEST))

    @property
    def qce(self) -> float:
        """The QCE by its ledger."""
        return float(self.total @ self.total) / max(self.rounds, 1) ** 2


class BesideQuantile(Adversary):
    """Picks an outcome at a distance `epsilon` from a quantile, on the side that was covered too often.

    >>> adversary, rng = BesideQuantile(0.5, epsilon=0.01), np.random.default_rng(0)
    >>> [adversary.outcome(None, Forecast([0.0], [1.0], [1.0]), rng) for _ in range(2)]
    [0.49, 0.49]
    """

    def __init__(self, level: float = 0.5, *, epsilon: float = 1e-9) -> None:
        self.level, self.epsilon = level, epsilon
        self.total = 0.0  # of 1{y <= q} - level

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> float:
        """The outcome; its indicator is added to the sum."""
        q = float(forecast.quantile(self.level))
        low, high = _bounds(game, forecast)
        below = min(max(min(q - self.epsilon, math.nextafter(q, -math.inf)), low), high)
        above = min(max(max(q + self.epsilon, math.nextafter(q, math.inf)), low), high)
        y = max((below, above), key=lambda y: abs(self.total + (y <= q) - self.level))
        self.total += (y <= q) - self.level
        return y


class AtBound(Adversary):
    """Picks the bound that is further from the median; with `side`, "low" or "high", always that one.

    Without a bound it goes `reach` times the width of the forecast's bounded cells beyond the last of them.  On finite
    spaces it picks the least likely value.

    >>> import orcast as oc
    >>> game, rng = oc.Forecaster(oc.Interval(0, 1)), np.random.default_rng(0)
    >>> AtBound().outcome(game, game.predict(oc.Normal(0.3, 0.1)), rng)
    1.0
    """

    def __init__(self, side: str | None = None, *, reach: float = 1.0) -> None:
        if side not in (None, "low", "high"):
            raise ValueError(f"expected 'low', 'high' or None as side, got {side!r}")
        self.side, self.reach = side, reach

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """The bound."""
        if not isinstance(forecast, Forecast):
            return forecast.space.value(int(forecast.mass.argmin()))
        low, high = _bounds(game, forecast)
        left, right = float(forecast.cells.left[0]), float(forecast.cells.right[-1])
        away = self.reach * (right - left)
        low, high = max(low, left - away, -LARGEST), min(high, right + away, LARGEST)
        if self.side is None:
            return low if float(forecast.quantile(0.5)) - low > high - float(forecast.quantile(0.5)) else high
        return low if self.side == "low" else high


def _bounds(game: Any, forecast: Any) -> tuple[float, float]:
    """Where outcomes of a quantity may lie; without a game, where the forecast has mass."""
    low, high = forecast.support() if game is None else (game.space.low, game.space.high)
    return max(float(low), -LARGEST), min(float(high), LARGEST)


class Periodic(Adversary):
    """Goes through some outcomes in turn, again and again, whatever the forecasts are; one alone is a constant.

    >>> adversary, rng = Periodic(["sun", "sun", "rain"]), np.random.default_rng(0)
    >>> [adversary.outcome(None, None, rng) for _ in range(4)]
    ['sun', 'sun', 'rain', 'sun']
    """

    def __init__(self, outcomes: Iterable[Any]) -> None:
        self.outcomes = list(outcomes)
        self._next = cycle(self.outcomes)

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """The next one."""
        return next(self._next)


class Delaying(Adversary):
    """Holds outcomes back until `most` are pending, then reveals them all, the last first.

    Each outcome is picked when it is revealed, and dropped with probability `lost` before that.

    >>> adversary, rng = Delaying(Periodic([1.0]), most=3), np.random.default_rng(0)
    >>> adversary.due((7, 8), rng).settle, adversary.due((7, 8, 9), rng).settle
    ((), (9, 8, 7))
    """

    def __init__(self, adversary: Adversary, *, most: int = 20, lost: float = 0.0) -> None:
        self.adversary, self.most, self.lost = adversary, most, lost

    def outcome(self, game: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """The outcome that the inner adversary picks."""
        return self.adversary.outcome(game, forecast, rng, round)

    def due(self, pending: Sequence[Hashable], rng: Generator) -> Due:
        """Nothing, or everything."""
        if len(pending) < self.most:
            return Due(())
        gone = rng.random(len(pending)) < self.lost
        last_first = range(len(pending) - 1, -1, -1)
        return Due(
            tuple(pending[i] for i in last_first if not gone[i]), tuple(pending[i] for i in last_first if gone[i])
        )


def adversaries_on(
    space: Space, *, low: float | None = None, high: float | None = None
) -> dict[str, Callable[[], Adversary]]:
    """Factories of the adversaries for a space, by name.

    On a quantity without bounds, outcomes from `low` to `high` are usual (0 to 1 if not given).

    >>> import orcast as oc
    >>> sorted(adversaries_on(oc.Labels(["home", "away"])))
    ['at a bound', 'confined', 'delaying', 'greedy', 'inner product', 'periodic']
    >>> adversaries_on(oc.Interval(0, 100))["confined"]().within
    (40.0, 60.0)
    """
    found: dict[str, Callable[[], Adversary]] = {
        "greedy": Greedy,
        "inner product": lambda: Greedy(product=True),
        "at a bound": AtBound,
        "delaying": lambda: Delaying(Greedy(), lost=0.1),
    }
    if isinstance(space, OrderedSpace):
        first, last = _usual(space, low, high)

        def at(share: float) -> float:
            return first + share * (last - first)

        found |= {
            "hard greedy": HardGreedy,
            "cells": CellGreedy,
            "confined": lambda: Greedy(within=(at(0.4), at(0.6)), points=5),
            "half confined": lambda: Greedy(within=(at(0.3), at(0.7))),
            "periodic": lambda: Periodic(at(0.5 + 0.4 * math.sin(2.0 * math.pi * t / 12.0)) for t in range(12)),
            "beside a quantile": lambda: BesideQuantile(0.9, epsilon=1e-9 * (last - first)),
            "on atoms": lambda: Greedy(among=[at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]),
        }
    else:
        assert isinstance(space, FiniteSpace)
        values = [space.value(k) for k in range(space.cells)]
        found |= {
            "confined": lambda: Greedy(among=values[: max(len(values) // 2, 1)]),
            "periodic": lambda: Periodic(values),
        }
    return found


def _usual(space: OrderedSpace, low: float | None, high: float | None) -> tuple[float, float]:
    if math.isfinite(space.low) and low is None:
        low = space.low
    if math.isfinite(space.high) and high is None:
        high = space.high
    if low is None:
        low = 0.0 if high is None else high - 1.0
    return low, low + 1.0 if high is None else high
