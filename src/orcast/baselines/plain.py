"""What costs nothing, and has to be beaten first: the expert as it is, the last outcome, the frequency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from orcast.baselines.events import EventBaseline
from orcast.baselines.quantity import Array, QuantityBaseline
from orcast.forecasts import Forecast
from orcast.spaces import normal_scores
from orcast.validation import number

# Changes over which the spread of the last outcome is measured, and the fewest that make one.
_CHANGES, _FEWEST = 500, 5
# Rounds that are remembered for it; a longer delay has no changes to measure.
_MEMORY = 2000


class AsGiven(QuantityBaseline):
    """The expert as it is, between the bounds.

    >>> import orcast as oc
    >>> from orcast.baselines import AsGiven
    >>> AsGiven(0, 10).predict(oc.Normal(9, 1)).quantile([0.5, 0.99]).round(6).tolist()
    [9.0, 10.0]
    """

    def _issue(self, row: Array) -> Forecast:
        return self._quantity.on_grid(self._quantity.quantile(row, self._quantity.grid))

    def _learn(self, row: Array, y: float, then: Any) -> None:
        pass

    def _described(self) -> str:
        return "the expert"


class EventAsGiven(EventBaseline):
    """The expert's probability as it is.

    >>> from orcast.baselines import EventAsGiven
    >>> float(EventAsGiven().predict(0.3))
    0.3
    """

    def _probability(self, p: float) -> float:
        return p

    def _learn(self, p: float, y: int, then: None) -> None:
        pass

    def _described(self) -> str:
        return "the expert"


class LastOutcome(AsGiven):
    """The last known outcome with its spread, whatever the expert says: what a random walk would forecast.

        y_s + S z,    S^2 = the mean of (y_r - y_(r - t + s))^2 over the last 500 rounds r <= s where both are known

    in round t, s the last round whose outcome is known, z a standard normal; so where outcomes come late the spread is
    that of changes over as many rounds.  Rounds are counted in the order in which they were forecast.  Before five
    such changes are known the expert's forecast is issued.  The state is of constant size: 2,000 outcomes.

    >>> import orcast as oc
    >>> from orcast.baselines import LastOutcome
    >>> last = LastOutcome(0, 10)
    >>> for y in (4, 5, 4, 5, 4, 5):                              # changes of 1
    ...     p = last.predict(oc.Normal(9, 2)); last.update(y)
    >>> last.predict(oc.Normal(9, 2)).quantile([0.1587, 0.5, 0.8413]).round(2).tolist()
    [4.0, 5.0, 6.0]
    """

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        # outcomes of rounds in their order, nan where it is not known yet, and the number of the first that is kept
        self._outcomes = np.empty(0)
        self._first = 0

    def _issue(self, row: Array) -> Forecast:
        spread = self._spread()
        if spread is None:
            return super()._issue(row)
        return self._quantity.on_grid(self._outcomes[-1] + spread * normal_scores(self._quantity.grid))

    def _spread(self) -> float | None:
        known = self._outcomes
        late = max(self._now() - (self._first + known.size - 1), 1)
        if known.size <= late:
            return None
        changes = known[late:] - known[:-late]
        changes = changes[~np.isnan(changes)][-_CHANGES:]
        return math.sqrt(float(np.mean(changes**2))) if changes.size >= _FEWEST else None

    def _now(self) -> int:
        # the number of the round: of those before it each is settled or pending; the unnamed one is replaced
        return self.rounds + len(self._pending) - (None in self._pending)

    def _learn(self, row: Array, y: float, then: int) -> None:
        ahead = then - (self._first + self._outcomes.size - 1)
        if ahead > 0:
            self._outcomes = np.append(self._outcomes, np.full(ahead, np.nan))[-_MEMORY:]
            self._first = then + 1 - self._outcomes.size
        if then >= self._first:
            self._outcomes[then - self._first] = y

    def _described(self) -> str:
        return "the last outcome"


class OutcomeFrequency(EventBaseline):
    """The frequency of a yes so far, or of late, whatever the expert says.

        p' = (yes + 1/2) / (n + 1),    yes <- decay yes + y,  n <- decay n + 1,  decay = 1 - 1 / memory

    `memory` rounds count, those before them less and less; None counts all.  The half is the prior of Krichevsky and
    Trofimov, so that nothing is ever certain.  Before any outcome the expert's probability is issued.  The state is two
    numbers.

    Reference: Krichevsky and Trofimov (1981), "The performance of universal encoding", IEEE Transactions on
    Information Theory 27.

    >>> from orcast.baselines import OutcomeFrequency
    >>> frequency = OutcomeFrequency()
    >>> for y in (1, 0, 1):
    ...     p = frequency.predict(0.1); frequency.update(y)
    >>> float(frequency.predict(0.1))
    0.625
    """

    def __init__(self, *, memory: float | None = None) -> None:
        super().__init__()
        self.memory = None if memory is None else number(memory, "rounds of memory", 1.0, 1e12)
        self._count = self._yes = 0.0

    def _probability(self, p: float) -> float:
        return (self._yes + 0.5) / (self._count + 1.0) if self._count else p

    def _learn(self, p: float, y: int, then: None) -> None:
        decay = 1.0 if self.memory is None else 1.0 - 1.0 / self.memory
        self._yes = decay * self._yes + y
        self._count = decay * self._count + 1.0

    def _described(self) -> str:
        return f"memory={self.memory}"
