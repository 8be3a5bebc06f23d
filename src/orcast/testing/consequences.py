"""What outcomes of a pending round would lead to: the squares that would be owed after each, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.dense.engine import DenseEngine
from orcast.engine.ordered import OrderedEngine
from orcast.forecasts import Forecast
from orcast.game import Forecaster
from orcast.kernels.ledger import combine_arrays
from orcast.ledger import Ledger
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.spaces.base import LARGEST

Array = NDArray[np.float64]


def candidates(game: Forecaster, id: Hashable = None, points: int = 3) -> list[Any]:
    """Outcomes, in canonical form, for an adversary to try: several points of every cell.

    The end of an unbounded window stands for everything beyond it: there the outcome is a window's width away.
    """
    space = game.space
    if not isinstance(space, OrderedSpace):
        assert isinstance(space, FiniteSpace)
        return [space.outcome(space.value(k)) for k in range(space.cells)]
    p: Forecast = game.engine.forecast(game.rounds.pending[id].record)
    left, right = p.left.copy(), p.right.copy()
    if np.isinf(left[0]):
        left[0] = right[0] - (right[-2] - left[1])
    if np.isinf(right[-1]):
        right[-1] = left[-1] + (right[-2] - right[0])
    shares = np.arange(points) / max(points - 1, 1)
    found = np.unique(left[:, None] + (right - left)[:, None] * shares)
    found = np.unique(np.concatenate((found, left[:1], right[-1:])))
    low, high = max(space.low, -LARGEST), min(space.high, LARGEST)
    # a window may be driven beyond the largest outcome: what lies there stands for the nearest that may come
    chosen: list[Any] = np.unique(np.clip(found, low, high)).tolist()
    return chosen


def _payoffs(game: Forecaster, outcomes: Sequence[Any], id: Hashable) -> Array:
    """The payoff of each outcome before contexts and weights, a column each."""
    engine: Any = game.engine
    record = game.rounds.pending[id].record
    if isinstance(engine, OrderedEngine):
        return engine.payoffs(record, np.array(outcomes, dtype=np.float64)).T
    return np.array([engine.payoff(record, y) for y in outcomes]).T


def _squares(ledger: Ledger, context: Array, payoffs: Array) -> Array:
    """||g S + c (x) payoff||_+^2 for each column of payoffs."""
    layout = ledger.layout
    squares = np.zeros(payoffs.shape[1])
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


def squares_after(game: Forecaster, outcomes: Sequence[Any], id: Hashable = None) -> Array:
    """||S||_+^2 after each of some outcomes in canonical form."""
    context = game.engine.context_of(game.rounds.pending[id].record)
    return _squares(game.engine.ledger, context, _payoffs(game, outcomes, id))


def products(game: Forecaster, outcomes: Sequence[Any], id: Hashable = None) -> Array:
    """<S_+, payoff> of each of some outcomes in canonical form: what the half-space condition is about."""
    ledger = game.engine.ledger
    payoffs = _payoffs(game, outcomes, id)
    owed, factors = np.empty(len(payoffs)), np.empty(len(payoffs))
    context = game.engine.context_of(game.rounds.pending[id].record)
    combine_arrays(ledger.layout, ledger.total, context, ledger.discount, owed, factors)
    return owed @ payoffs


def worst_outcome(
    game: Forecaster, id: Hashable = None, *, points: int = 3, among: Sequence[Any] | None = None, thorough: bool = True
) -> tuple[Any, float]:
    """The outcome after which ||S||_+^2 is largest, as users would give it, and that square.

    Tries `points` points of every cell, or the outcomes in `among`.  If payoffs are slow and the search need not be
    `thorough`, it leaves out the cells that cannot be the worst by the certificate.

    >>> import orcast as oc
    >>> game = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(grid=5))
    >>> p = game.predict(0.9)
    >>> y, square = worst_outcome(game)
    >>> y, square <= p.certificate.worst_next
    (0, True)
    """
    found = candidates(game, id, points) if among is None else [game.space.outcome(y) for y in among]
    engine = game.engine
    if not thorough and isinstance(engine, DenseEngine) and isinstance(game.space, OrderedSpace):
        at, square = _pruned(game, engine, found, id)
    else:
        squares = squares_after(game, found, id)
        best = int(squares.argmax())
        at, square = found[best], float(squares[best])
    return as_given(game.space, at), square


def _pruned(game: Forecaster, engine: DenseEngine, outcomes: list[float], id: Hashable) -> tuple[float, float]:
    """Cell by cell, those first that may be worst by their certificate, until no other can be."""
    record, ledger = game.rounds.pending[id].record, engine.ledger
    p = engine.prior.played(record.round)
    size = int(engine.cuts[-1])
    owed, factors = np.empty(size), np.empty(size)
    combine_arrays(ledger.layout, ledger.total, record.context, ledger.discount, owed, factors)
    bounds = np.full(p.size, ledger.discount**2 * ledger.square)
    for cell_payoff, first, last in zip(record.cell_payoffs or [], engine.cuts[:-1], engine.cuts[1:], strict=True):
        bounds += cell_payoff.assess(owed[first:last], float(factors[first]), p)[0]
    cells = np.array([engine.prior.place(record.round, y) for y in outcomes])
    best, at = -math.inf, outcomes[0]
    for k in np.unique(cells)[np.argsort(-bounds[np.unique(cells)])].tolist():
        if bounds[k] <= best:
            break
        own = [outcomes[i] for i in np.flatnonzero(cells == k)]
        squares = squares_after(game, own, id)
        if squares.max() > best:
            best, at = float(squares.max()), own[int(squares.argmax())]
    return at, best


def as_given(space: Space, y: Any) -> Any:
    """A canonical outcome as users would give it."""
    if isinstance(space, OrderedSpace):
        return y
    assert isinstance(space, FiniteSpace)
    return space.value(space.cell(y))
