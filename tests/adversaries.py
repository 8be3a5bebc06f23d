"""Adversaries that only tests use: one that looks two rounds ahead, and a fair one."""

from typing import Any

import numpy as np
from numpy.random import Generator

from orcast.forecasts import Forecast
from orcast.testing.adversaries import Adversary, Greedy, RoundInputs
from orcast.testing.consequences import as_given, squares_after, worst_outcome

UNNAMED = RoundInputs()

NEXT = "the round after"  # id of a round that is only tried


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
