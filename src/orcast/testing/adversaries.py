"""Adversaries, which see each forecast before they choose its outcome.

An adversary keeps a few sums at most and is created for each run; all its randomness comes from `rng`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from numpy.random import Generator

from orcast.testing.consequences import as_given, candidates, products, worst_outcome

__all__ = ["Adversary", "Greedy", "run_rounds"]

Ids = tuple[Hashable, ...]


class RoundInputs(NamedTuple):
    """Id, base forecast and features of a round."""

    id: Hashable = None
    expert: Any = None
    x: Any = None


_UNNAMED = RoundInputs()


class Adversary(ABC):
    """Choose each outcome after the forecast, and the round in which it is revealed.

    >>> class Stubborn(Adversary):
    ...     def outcome(self, recal, forecast, rng, round=None):
    ...         return 0.9
    >>> Stubborn().due((7, 8), None)
    ((7, 8), ())
    """

    @abstractmethod
    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """Outcome of a pending round, in the form users pass.

        Parameters
        ----------
        recal
            Recalibrator that issued the forecast.
        forecast
            The forecast.
        rng
            Random generator.
        round
            Id, base forecast and features of the round.
        """

    def due(self, pending: Sequence[Hashable], rng: Generator) -> tuple[Ids, Ids]:
        """Ids of the pending rounds to settle now, in this order, and of those to drop.

        Parameters
        ----------
        pending
            Ids of the pending rounds.
        rng
            Random generator.
        """
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

    Parameters
    ----------
    recal
        Recalibrator or forecaster.
    adversary
        Adversary that chooses the outcomes.
    rounds
        Number of rounds; outcomes held back follow after the last one.
    rng
        Random generator.
    experts
        Function of the round number that returns the base forecast.
    x
        Features, or a function of a random generator that returns them.

    Examples
    --------
    >>> import numpy as np, orcast as oc
    >>> recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(grid=5))
    >>> for turn in run_rounds(recal, Greedy(), 20, experts=lambda t: 0.9, rng=np.random.default_rng(0)):
    ...     recal.update(turn.y, id=turn.id)
    >>> recal.guarantee.rounds, recal.guarantee.held
    (20, 1.0)
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
    """Choose the outcome that maximises ||S + payoff||_+.

    Parameters
    ----------
    points
        Number of candidate points in every cell.
    within
        Range (low, high) of the outcomes of a quantity; by default the space.
    among
        The only candidate outcomes; by default all.
    product
        True maximises <S_+, payoff> instead.

    Examples
    --------
    >>> import numpy as np, orcast as oc
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oracle=oc.Equilibrium())
    >>> p, rng = recal.predict(oc.Normal(0.2, 0.05)), np.random.default_rng(0)
    >>> Greedy().outcome(recal, p, rng), Greedy(within=(0.4, 0.6)).outcome(recal, p, rng)
    (1.0, 0.6)
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

    def outcome(self, recal: Any, forecast: Any, rng: Generator, round: RoundInputs = _UNNAMED) -> Any:
        """Worst of the candidate outcomes."""
        found = self.choices(recal, round.id)
        if self.product:
            return as_given(recal.space, found[int(products(recal, found, round.id).argmax())])
        return worst_outcome(recal, round.id, among=[as_given(recal.space, y) for y in found])[0]

    def choices(self, recal: Any, id: Hashable = None) -> list[Any]:
        """Candidate outcomes in canonical form.

        Parameters
        ----------
        recal
            Recalibrator with the pending round.
        id
            Id of the round.
        """
        if self.among is not None:
            return [recal.space.outcome(y) for y in self.among]
        found = candidates(recal, id, self.points)
        if self.within is None:
            return found
        low, high = self.within
        return [low, *(y for y in found if low < y < high), high]
