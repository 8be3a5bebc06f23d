"""Adversaries of the tests, the attack and the comparison, which see each forecast before they choose its outcome."""

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
from orcast.testing import as_given, candidates, payoffs_of, squares_after, worst_outcome

Array = NDArray[np.float64]
Ids = tuple[Hashable, ...]

EMPTY = 1e-12  # a cell of less mass is empty

NEXT = "the round after"  # id of a round that is only tried


def products(recal: Any, outcomes: Sequence[Any], id: Hashable = None) -> Array:
    """Value of <S_+, payoff> for each outcome, in canonical form."""
    payoffs = payoffs_of(recal, outcomes, id)
    context = recal.engine.context_of(recal.rounds.pending[id].record)
    return np.asarray(recal.engine.ledger.cumulative(context, len(payoffs)) @ payoffs)


class RoundInputs(NamedTuple):
    """Id, base forecast and features of a round."""

    id: Hashable = None
    expert: Any = None
    x: Any = None


UNNAMED = RoundInputs()


class Adversary(ABC):
    """Choose each outcome after the forecast, and the round in which it is revealed."""

    @abstractmethod
    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """Outcome of a pending round, in the form users pass."""

    def due(self, pending: Sequence[Hashable], rng: Generator) -> tuple[Ids, Ids]:
        """Ids of the pending rounds to settle now, in this order, and of those to drop."""
        return tuple(pending), ()


class Turn(NamedTuple):
    """Round to settle, with the CPU seconds of its forecast."""

    id: Hashable
    forecast: Any
    y: Any
    seconds: float


def run_rounds(
    recal: Any,
    adversary: Adversary,
    rounds: int,
    *,
    rng: Generator,
    experts: Callable[[int], Any] | None = None,
    x: Any = None,
) -> Iterator[Turn]:
    """Run a recalibrator against an adversary; yields each outcome for the caller to settle.

    `experts` returns the base forecast of a round; `x` has the features, or returns them. Outcomes held back follow
    after the last round.
    """
    told: dict[Hashable, tuple[Any, RoundInputs, float]] = {}

    def reveal(id: Hashable) -> Turn:
        forecast, round, seconds = told.pop(id)
        return Turn(id, forecast, adversary.outcome(recal, forecast, rng, round), seconds)

    for t in range(rounds):
        expert = None if experts is None else experts(t)
        features = x(rng) if callable(x) else x
        begin = time.process_time()
        forecast = recal.predict(expert, x=features, id=t)
        told[t] = forecast, RoundInputs(t, expert, features), time.process_time() - begin
        settled, dropped = adversary.due(tuple(told), rng)
        for id in dropped:
            recal.drop(id)
            del told[id]
        for id in settled:
            yield reveal(id)
    for id in tuple(told):
        yield reveal(id)


class Greedy(Adversary):
    """Choose the outcome that maximises ||S + payoff||_+, or with `product` <S_+, payoff>.

    It tries some `points` of every cell, those `within` a range (low, high), or only the outcomes `among`.
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

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """Worst of the candidate outcomes."""
        found = self.choices(recal, round.id)
        values = products(recal, found, round.id) if self.product else squares_after(recal, found, round.id)
        return as_given(recal.space, found[int(values.argmax())])

    def choices(self, recal: Any, id: Hashable = None) -> list[Any]:
        """Candidate outcomes in canonical form."""
        if self.among is not None:
            return [recal.space.outcome(y) for y in self.among]
        found = candidates(recal, id, self.points)
        if self.within is None:
            return found
        low, high = self.within
        return [low, *(y for y in found if low < y < high), high]


class LookAhead(Adversary):
    """Picks the outcome after which the worst outcome of the *next* round is worst.

    It tries the `width` worst outcomes of `first`, and assumes that the base forecast stays the same.
    """

    def __init__(self, first: Greedy | None = None, *, width: int = 4) -> None:
        self.first, self.width = Greedy() if first is None else first, width

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """The best of a few for two rounds."""
        found = self.first.choices(recal, round.id)
        order = np.argsort(-squares_after(recal, found, round.id), kind="stable")
        tried = [as_given(recal.space, found[i]) for i in order[: self.width]]
        expert = forecast if round.expert is None and recal.experts else round.expert
        after = []
        for y in tried:
            with recal.rounds.branch():
                recal.update(y, id=round.id)
                recal.predict(expert, x=round.x, id=NEXT)
                after.append(worst_outcome(recal, NEXT)[1])
        return tried[int(np.argmax(after))]


class Drawn(Adversary):
    """Draws each outcome from the forecast."""

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """A draw."""
        if isinstance(forecast, Forecast):
            return float(forecast.sample(1, rng=rng)[0])
        return forecast.space.value(int(rng.choice(forecast.mass.size, p=forecast.mass / forecast.mass.sum())))


class HardGreedy(Adversary):
    """Choose the outcome that maximises the QCE of the empirical indicators 1{y <= q_a}.

    It tries points just below and above each quantile: only randomisation after its choice helps against it.
    """

    def __init__(self, levels: ArrayLike = LEVELS) -> None:
        self.levels = np.array(levels, dtype=np.float64)
        self.total = np.zeros(self.levels.size)
        self.rounds = 0

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> float:
        """Outcome; its indicators are added to the sums."""
        q = np.asarray(forecast.quantile(self.levels), dtype=np.float64)
        low, high = _bounds(recal, forecast)
        found = np.unique(np.clip(np.concatenate((q, np.nextafter(q, np.inf))), low, high))
        after = self.total + (found[:, None] <= q) - self.levels
        at = int(np.einsum("ka,ka->k", after, after).argmax())
        self.total = after[at]
        self.rounds += 1
        return float(found[at])

    @property
    def qce(self) -> float:
        """Quantile calibration error of the indicators so far."""
        return float(self.total @ self.total) / max(self.rounds, 1) ** 2


class AdversaryCells(NamedTuple):
    """Cells from which `CellGreedy` draws, and the expected payoffs in each, one row per cell."""

    left: Array
    right: Array
    payoffs: Array


def own_cells(forecast: Forecast, *, points: bool = False) -> AdversaryCells:
    """Cells of the forecast with positive width (all, if none has), and with `points` its point masses.

    In a cell whose cumulative mass runs from F to G,  payoff_a = clip((a - F) / (G - F), 0, 1) - a.
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


class CellGreedy(HardGreedy):
    """Choose the cell that maximises its own ledger of quantile payoffs, and draw the outcome inside.

    It does not use the ledger of the recalibrator, so it can attack any method.
    """

    def __init__(self, cells_of: Callable[[Forecast], AdversaryCells] = own_cells) -> None:
        super().__init__()
        self.cells_of = cells_of

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> float:
        """Outcome; its expected payoff is added to the ledger."""
        cells = self.cells_of(forecast)
        after = self.total + cells.payoffs
        k = int(np.einsum("ka,ka->k", after, after).argmax())
        self.total = after[k]
        self.rounds += 1
        left, right = float(cells.left[k]), float(cells.right[k])
        # an open-ended cell is replaced by the window before it
        width = float(forecast.cells.right[-1] - forecast.cells.left[0])
        left = right - width if left == -math.inf else left
        right = left + width if right == math.inf else right
        return float(min(max(left + rng.random() * (right - left), -LARGEST), LARGEST))


class BesideQuantile(Adversary):
    """Choose an outcome at a distance `epsilon` from a quantile, on the side that was covered too often."""

    def __init__(self, level: float = 0.5, *, epsilon: float = 1e-9) -> None:
        self.level, self.epsilon = level, epsilon
        self.total = 0.0  # of 1{y <= q} - level

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> float:
        """Outcome; its indicator is added to the sum."""
        q = float(forecast.quantile(self.level))
        low, high = _bounds(recal, forecast)
        below = min(max(min(q - self.epsilon, math.nextafter(q, -math.inf)), low), high)
        above = min(max(max(q + self.epsilon, math.nextafter(q, math.inf)), low), high)
        y = max((below, above), key=lambda y: abs(self.total + (y <= q) - self.level))
        self.total += (y <= q) - self.level
        return y


class AtBound(Adversary):
    """Choose the bound that is further from the median; with `side`, "low" or "high", always that one.

    Without a bound it is `reach` times the width of the forecast's bounded cells beyond the last of them. On finite
    spaces it is the least probable value.
    """

    def __init__(self, side: str | None = None, *, reach: float = 1.0) -> None:
        self.side, self.reach = side, reach

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """Bound of the space."""
        if not isinstance(forecast, Forecast):
            return forecast.space.value(int(forecast.mass.argmin()))
        low, high = _bounds(recal, forecast)
        left, right = float(forecast.cells.left[0]), float(forecast.cells.right[-1])
        away = self.reach * (right - left)
        low, high = max(low, left - away, -LARGEST), min(high, right + away, LARGEST)
        if self.side is None:
            return low if float(forecast.quantile(0.5)) - low > high - float(forecast.quantile(0.5)) else high
        return low if self.side == "low" else high


def _bounds(recal: Any, forecast: Any) -> tuple[float, float]:
    """Bounds of the outcomes of a quantity; without a recalibrator, the support of the forecast."""
    low, high = forecast.support() if recal is None else (recal.space.low, recal.space.high)
    return max(float(low), -LARGEST), min(float(high), LARGEST)


class Periodic(Adversary):
    """Repeat a sequence of outcomes, independent of the forecasts."""

    def __init__(self, outcomes: Iterable[Any]) -> None:
        self._next = cycle(list(outcomes))

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """Next outcome of the sequence."""
        return next(self._next)


class Delaying(Adversary):
    """Hold outcomes back until `most` are pending, then reveal them all, the last first.

    Each outcome is chosen when it is revealed, and dropped with probability `lost` before that.
    """

    def __init__(self, adversary: Adversary, *, most: int = 20, lost: float = 0.0) -> None:
        self.adversary, self.most, self.lost = adversary, most, lost

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = UNNAMED) -> Any:
        """Outcome of the inner adversary."""
        return self.adversary.outcome(recal, forecast, rng, round)

    def due(self, pending: Sequence[Hashable], rng: Generator) -> tuple[Ids, Ids]:
        """All pending rounds once there are `most`, else none."""
        if len(pending) < self.most:
            return (), ()
        gone = rng.random(len(pending)) < self.lost
        last_first = list(zip(pending, gone, strict=True))[::-1]
        return tuple(id for id, lost in last_first if not lost), tuple(id for id, lost in last_first if lost)


def adversaries_on(
    space: Space, *, low: float | None = None, high: float | None = None
) -> dict[str, Callable[[], Adversary]]:
    """Factories of the adversaries for a space, by name; `low` and `high` are usual outcomes on unbounded spaces."""
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

        return found | {
            "hard greedy": HardGreedy,
            "cells": CellGreedy,
            "confined": lambda: Greedy(within=(at(0.4), at(0.6)), points=5),
            "half confined": lambda: Greedy(within=(at(0.3), at(0.7))),
            "periodic": lambda: Periodic(at(0.5 + 0.4 * math.sin(2.0 * math.pi * t / 12.0)) for t in range(12)),
            "beside a quantile": lambda: BesideQuantile(0.9, epsilon=1e-9 * (last - first)),
            "on atoms": lambda: Greedy(among=[at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]),
        }
    assert isinstance(space, FiniteSpace)
    values = [space.value(k) for k in range(space.cells)]
    return found | {
        "confined": lambda: Greedy(among=values[: max(len(values) // 2, 1)]),
        "periodic": lambda: Periodic(values),
    }


def _usual(space: OrderedSpace, low: float | None, high: float | None) -> tuple[float, float]:
    if math.isfinite(space.low) and low is None:
        low = space.low
    if math.isfinite(space.high) and high is None:
        high = space.high
    if low is None:
        low = 0.0 if high is None else high - 1.0
    return low, low + 1.0 if high is None else high
