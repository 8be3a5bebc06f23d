"""Experts that join and leave: what a game has learnt and owes, carried over to other experts.

**Joining.**  The regret against a new expert is a coordinate of the ledger that begins at zero, so ||S||_+ is what it
was, and the budget is what it was: the slack rule goes on as if the coordinate had always been there, with a payoff of
zero in every round so far.  From then on B_t, the largest squared payoff of a round, counts the experts that are in it;
so after T rounds the promise is sqrt(C B + B_1 + ... + B_T) / T, B the bound of the first experts.  A round that was
issued before has no payoff against the new one, and its certificate says what it said.

**Leaving.**  What is owed to an expert that leaves, the square of the positive part of its coordinate, is taken off the
budget together with the coordinate.  The slack, budget - ||S||_+^2, does not change, and afterwards

    ||S||_+^2 + (what was owed to those who left)  <=  C B + B_1 + ... + B_T

so that the promise holds for those who stay and for those who left together, however often experts come and go, and
what remains is promised to those who stay.  While a round is pending in which an expert takes part, it cannot leave:
the certificate of that round counts on its coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.jit.ieee import exp, log
from orcast.ledger import Account, GroupAccount, Ledger, PartColumn
from orcast.payoffs import NoRegret

Array = NDArray[np.float64]

# Where an expert was before: its old place, or this.
NEW = -1


def places_before(experts: Sequence[str], before: Sequence[str]) -> tuple[int, ...]:
    """Where each expert was before, or NEW.

    >>> places_before(("b", "c"), ("a", "b"))
    (1, -1)
    """
    return tuple(before.index(name) if name in before else NEW for name in experts)


def carried(array: Array, whence: Sequence[int], *, axis: int = 0, fill: float = 0.0) -> Array:
    """An array with an entry for each expert along an axis, for other experts; new ones have `fill`."""
    shape = list(array.shape)
    shape[axis] = len(whence)
    found = np.full(shape, fill, dtype=array.dtype)
    stay = [at for at, old in enumerate(whence) if old != NEW]
    mine, theirs = np.moveaxis(found, axis, 0), np.moveaxis(array, axis, 0)
    mine[stay] = theirs[[whence[at] for at in stay]]
    return found


def mean_weight(losses: Sequence[float], rate: float) -> float:
    """The loss whose weight, exp(-rate loss), is the mean of the others': who joins has a fair share of the pool.

    >>> round(mean_weight([1.0, 1.0], rate=2.0), 6)
    1.0
    """
    best = min(losses)
    return best - log(sum(exp(rate * (best - loss)) for loss in losses) / len(losses)) / rate


def carry_ledger(theirs: Ledger, mine: Ledger, bound_payoff: BoundPayoff, whence: Sequence[int]) -> None:
    """The sums and accounts of a ledger, in one whose parts have other experts."""
    mine.account[:] = theirs.account
    mine.groups[:] = theirs.groups
    row = 0
    for number, part in enumerate(bound_payoff.parts):
        start, size, groups = (int(v) for v in theirs.layout.parts[number, :3])
        first, own = (int(v) for v in mine.layout.parts[number, : PartColumn.GROUPS])
        sums = theirs.total[start : start + size * groups]
        if isinstance(part.payoff, NoRegret):
            table = sums.reshape(groups, len(part.payoff.scores), -1)
            mine.total[first : first + own * groups] = carried(table, whence, axis=2).ravel()
            left = np.setdiff1d(np.arange(table.shape[2]), whence)
            owed = (np.maximum(table[:, :, left], 0.0) ** 2).sum(axis=(1, 2))
            mine.account[Account.BUDGET] -= owed.sum()
            mine.groups[row : row + groups, GroupAccount.BUDGET] -= owed
        elif size == own:
            mine.total[first : first + own * groups] = sums
        else:
            raise ValueError(
                f"expected the experts of the first round, on whose number the size of the payoff "
                f"{bound_payoff.names[number]!r} depends, got others"
            )
        row += groups
    # what is left is owed to those who stay, but for rounding
    mine.account[Account.BUDGET] = max(float(mine.account[Account.BUDGET]), mine.square)
    np.maximum(mine.groups[:, GroupAccount.BUDGET], 0.0, out=mine.groups[:, GroupAccount.BUDGET])
    # what is owed to one that left is owed out of what was added after first of all
    mine.account[Account.EXCESS] = min(mine.account[Account.EXCESS], mine.account[Account.BUDGET])
    budgets, excesses = mine.groups[:, GroupAccount.BUDGET], mine.groups[:, GroupAccount.EXCESS]
    np.minimum(excesses, budgets, out=excesses)
