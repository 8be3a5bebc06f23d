"""Actions that are drawn with the weights in the ledger of a `SwapRegret`, and their empirical utilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import CONFIDENCE, BoundPayoff
from orcast.ledger import Action, Empirical, Ledger
from orcast.payoffs import SwapRegret
from orcast.payoffs.cell_payoffs import AnswerCellPayoff
from orcast.validation import short

Array = NDArray[np.float64]

# The draw of an action is made of the lower bits of the draw of its round.
LOWER_BITS = 2.0**26
# Place in `counts` after the three of COUNTS: expected utility that the drawn actions lacked of the best one.
GAP = 3


class ActionCounts:
    """Sums over the rounds in which an action was drawn, in units of the utility's range.

    `sums` has a row for each action: the utilities that all actions had in its rounds, the utility that the forecasts
    expected of it, and the rounds.
    """

    def __init__(self, bound_payoff: BoundPayoff) -> None:
        found = [(i, each) for i, each in enumerate(bound_payoff.payoffs) if isinstance(each, SwapRegret)]
        self.number, payoff = found[0] if len(found) == 1 else (-1, None)
        self.bound_payoff = bound_payoff
        self.payoff: Any = payoff
        size = len(payoff.actions) if payoff else 0
        self.sums, self.counts = np.zeros((size, size + 2)), np.zeros(GAP + 1)

    def arrays(self) -> dict[str, Array]:
        """Everything that changes."""
        return {"actions/sums": self.sums, "actions/counts": self.counts} if self.payoff else {}

    def draw(self, decision: Array, cell_payoff: Any, p: Array, draw: float, rng: Any) -> int:
        """Index of the action of a round; `decision` keeps the random number, and that it was asked for."""
        if decision[0] == 0.0 and draw > 0.0:
            decision[0] = (draw * LOWER_BITS) % 1.0
        if decision[0] == 0.0:
            if not isinstance(rng, np.random.Generator):
                raise TypeError(f"expected rng=numpy.random.default_rng(...), or randomised= before, got {short(rng)}")
            decision[0] = rng.random()
        decision[1] = 1.0
        return drawn_action(decision, cell_payoff, p)

    def count(self, decision: Array, cell_payoff: AnswerCellPayoff, p: Array, realised: Array, discount: float) -> None:
        """Add the outcome of a round; `realised` are the expected minus the real utilities of all actions."""
        self.sums *= discount
        self.counts *= (discount * discount, discount, discount, discount)
        self.counts[1:3] += 1.0, 1.0 - decision[1]
        if not decision[1]:
            return
        weights, expected = cell_payoff.answer(p), cell_payoff.worth @ p / self.payoff.sharpness
        action = drawn_action(decision, cell_payoff, p)
        # of the vectors 1{drawn} - weights, that of the least likely action is the longest
        longest = 1.0 + float(weights @ weights) - 2.0 * float(weights.min())
        self.counts[0] += longest * float(realised @ realised)
        self.counts[GAP] += float(expected.max()) - expected[action]
        self.sums[action, :-2] += expected - realised
        self.sums[action, -2:] += expected[action], 1.0

    def empirical(self, ledger: Ledger) -> Empirical | None:
        """Empirical swap regret and utilities; None before an action was drawn."""
        if self.payoff is None or not self.sums[:, -1].any():
            return None
        weight, size = float(self.counts[1]), len(self.sums)
        utilities, unit = self.sums[:, :-2], self.payoff.range_on(self.bound_payoff.space)
        regret = float((utilities.max(axis=1) - np.diag(utilities)).sum()) / weight
        root = self.bound_payoff.empirical_bound(
            ledger, [i == self.number for i in range(len(self.bound_payoff.payoffs))], self.counts[:GAP]
        )
        bounds = (
            {} if root is None else {"swap regret": float(self.counts[GAP]) / weight + math.sqrt(2.0 * size) * root}
        )
        actions = {}
        for i, (action, row) in enumerate(zip(self.payoff.actions, self.sums.tolist(), strict=True)):
            if row[-1]:
                actions[action] = Action(row[-1], row[-2] / row[-1] * unit, row[i] / row[-1] * unit)
        return Empirical({"swap regret": regret}, bounds, CONFIDENCE, actions)


def drawn_action(decision: Array, cell_payoff: AnswerCellPayoff, p: Array) -> int:
    """Index of the action that the random number of a round draws from the weights."""
    below = np.cumsum(cell_payoff.answer(p))
    return int(min(np.searchsorted(below, decision[0] * below[-1], side="right"), len(below) - 1))
