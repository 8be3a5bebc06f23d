"""Ledger after each candidate outcome of a pending round, and the worst of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.ordered import OrderedEngine
from orcast.forecaster import Forecaster
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.spaces.base import LARGEST

Array = NDArray[np.float64]


def candidates(recal: Forecaster, id: Hashable = None, points: int = 3) -> list[Any]:
    """Outcomes in canonical form, several points of every cell, and points beyond an unbounded window."""
    space = recal.space
    if not isinstance(space, OrderedSpace):
        assert isinstance(space, FiniteSpace)
        return [space.outcome(space.value(k)) for k in range(space.cells)]
    p: Any = recal.engine.forecast(recal.rounds.pending[id].record)
    left, right = p.left.copy(), p.right.copy()
    if np.isinf(left[0]):
        left[0] = right[0] - (right[-2] - left[1])
    if np.isinf(right[-1]):
        right[-1] = left[-1] + (right[-2] - right[0])
    shares = np.arange(points) / max(points - 1, 1)
    inside = left[:, None] + (right - left)[:, None] * shares
    found = np.concatenate((inside.ravel(), left[:1], right[-1:]))
    chosen: list[Any] = np.unique(np.clip(found, max(space.low, -LARGEST), min(space.high, LARGEST))).tolist()
    return chosen


def payoffs_of(recal: Forecaster, outcomes: Sequence[Any], id: Hashable) -> Array:
    """Payoffs before contexts and weights, one column per outcome."""
    engine: Any = recal.engine
    record = recal.rounds.pending[id].record
    if isinstance(engine, OrderedEngine):
        return engine.payoffs(record, np.array(outcomes, dtype=np.float64)).T
    return np.array([engine.payoff(record, y) for y in outcomes]).T


def squares_after(recal: Forecaster, outcomes: Sequence[Any], id: Hashable = None) -> Array:
    """Value of ||S||_+^2 after each outcome, in canonical form."""
    ledger, payoffs = recal.engine.ledger, payoffs_of(recal, outcomes, id)
    context = recal.engine.context_of(recal.rounds.pending[id].record)
    layout, squares = ledger.layout, np.zeros(len(outcomes))
    for number, (start, size, groups, places, at, one_sided) in enumerate(layout.part_table.tolist()):
        own = layout.scales[number] * payoffs[layout.place_list[places : places + size]]
        s = ledger.discount * ledger.total[start : start + size * groups].reshape(groups, size)
        c = context[at : at + groups]
        if one_sided:
            sums = np.maximum(s[:, :, None] + c[:, None, None] * own, 0.0)
            squares += np.einsum("gik,gik->k", sums, sums)
        else:
            squares += float((s * s).sum()) + 2.0 * ((c @ s) @ own) + float(c @ c) * np.einsum("ik,ik->k", own, own)
    return squares


def worst_outcome(recal: Forecaster, id: Hashable = None, *, points: int = 3) -> tuple[Any, float]:
    """Find the outcome that maximises ||S||_+^2, and this maximum.

    Parameters
    ----------
    recal
        Recalibrator with a pending round.
    id
        Id of the round; by default the unnamed one.
    points
        Number of candidate points in every cell.

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(grid=5))
    >>> p = recal.predict(0.9)
    >>> y, square = worst_outcome(recal)
    >>> y, square <= p.certificate.worst_next
    (0, True)
    """
    found = candidates(recal, id, points)
    squares = squares_after(recal, found, id)
    best = int(squares.argmax())
    return as_given(recal.space, found[best]), float(squares[best])


def as_given(space: Space, y: Any) -> Any:
    """Canonical outcome in the form users pass."""
    if isinstance(space, OrderedSpace):
        return y
    assert isinstance(space, FiniteSpace)
    return space.value(space.cell(y))
