"""Simple references: the last outcome for quantities, the frequency for events."""

from __future__ import annotations

import math

import numpy as np

from orcast.forecasts import Forecast
from orcast.spaces import normal_scores
from research.rivals.base import Array, EventRival, QuantityRival

_CHANGES, _FEWEST = 500, 5  # changes from which the spread is estimated, and the fewest that give one
_MEMORY = 2000  # outcomes that are kept


class LastOutcome(QuantityRival):
    """Random walk: the last known outcome with the spread of past changes; the base forecast is ignored.

        y_s + S z,    S^2 = the mean of (y_r - y_(r - t + s))^2 over the last 500 rounds r <= s where both are known

    in round t, s the last round whose outcome is known, z a standard normal; where outcomes come late the spread is
    that of changes over as many rounds.  Rounds are counted in the order of their forecasts.  Before five changes are
    known the base forecast is issued.
    """

    def __init__(self, low: float, high: float) -> None:
        super().__init__(low, high)
        # outcomes in the order of their rounds, nan where not known yet, and the round of the first one
        self._outcomes = np.empty(0)
        self._first = 0

    def _issue(self, row: Array) -> Forecast:
        spread, quantity = self._spread(), self.quantity
        if spread is None:
            return quantity.on_grid(quantity.quantile(row, quantity.grid))
        return quantity.on_grid(self._outcomes[-1] + spread * normal_scores(quantity.grid))

    def _spread(self) -> float | None:
        known = self._outcomes
        late = max(self._snapshot() - (self._first + known.size - 1), 1)
        if known.size <= late:
            return None
        changes = known[late:] - known[:-late]
        changes = changes[~np.isnan(changes)][-_CHANGES:]
        return math.sqrt(float(np.mean(changes**2))) if changes.size >= _FEWEST else None

    def _snapshot(self) -> int:
        # number of the round: each earlier one is settled or pending; the anonymous one is replaced
        return self.rounds + len(self._pending) - (None in self._pending)

    def _observe(self, row: Array, then: int, y: float) -> None:
        ahead = then - (self._first + self._outcomes.size - 1)
        if ahead > 0:
            self._outcomes = np.append(self._outcomes, np.full(ahead, np.nan))[-_MEMORY:]
            self._first = then + 1 - self._outcomes.size
        if then >= self._first:
            self._outcomes[then - self._first] = y


class OutcomeFrequency(EventRival):
    """Frequency of an event over about the last `memory` rounds; the base forecast is ignored.

        p' = (yes + 1/2) / (n + 1),    yes <- decay yes + y,  n <- decay n + 1,  decay = 1 - 1 / memory

    The half is the prior of Krichevsky and Trofimov (1981), "The performance of universal encoding", IEEE Transactions
    on Information Theory 27.  Before any outcome the base forecast is issued.
    """

    def __init__(self, *, memory: float = 50.0) -> None:
        super().__init__()
        self._decay = 1.0 - 1.0 / memory
        self._count = self._yes = 0.0

    def _probability(self, p: float) -> float:
        return (self._yes + 0.5) / (self._count + 1.0) if self._count else p

    def _observe(self, p: float, then: None, y: int) -> None:
        self._yes = self._decay * self._yes + y
        self._count = self._decay * self._count + 1.0
