"""Nature at her worst: she sees the forecast and picks the outcome after which most is owed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast import ledger as _ledger
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.kernels import last_layer
from orcast.engine.kernels.cells import locate
from orcast.engine.kernels.equilibrium import payoff
from orcast.engine.kernels.records import CellRow, RoundInfo
from orcast.engine.ordered import OrderedEngine
from orcast.jit import entry_kernel
from orcast.ledger import Ledger, combine
from orcast.spaces import FiniteSpace, OrderedSpace
from orcast.testing import candidates

Array = NDArray[np.float64]

ROUNDING = 1e-9
# Outcomes beyond this are not let in.
LARGEST = 1e100


@entry_kernel
def payoffs(rules, round, places, witnesses, out):
    """The core payoff at each place, a column each."""
    n = int(round.info[RoundInfo.CELLS])
    one = np.empty(out.shape[0])
    for i in range(places.shape[0]):
        k = locate(places[i], round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT], n)
        payoff(rules, round, places[i], k, witnesses[i], one)
        for j in range(one.shape[0]):
            out[j, i] = one[j]


def squares_after(ledger: Ledger, context: Array, cell_payoffs: Array) -> Array:
    """||g S + c (x) payoff||_+^2 for each column of core payoffs."""
    layout = ledger.layout
    squares = np.zeros(cell_payoffs.shape[1])
    for number, (start, size, groups, places, at, one_sided) in enumerate(layout.parts.tolist()):
        own = layout.scale[number] * cell_payoffs[layout.places[places : places + size]]
        s = ledger.discount * ledger.total[start : start + size * groups].reshape(groups, size)
        c = context[at : at + groups]
        if one_sided:
            sums = np.maximum(s[:, :, None] + c[:, None, None] * own, 0.0)
            squares += np.einsum("gik,gik->k", sums, sums)
        else:
            squares += float((s * s).sum()) + 2.0 * ((c @ s) @ own) + float(c @ c) * np.einsum("ik,ik->k", own, own)
    return squares


def points_of(left: Array, right: Array) -> Array:
    """Both ends and the middle of every cell, a row a cell."""
    return np.stack((left, 0.5 * (left + right), right), axis=1)


def worst_outcome(game: oc.Forecaster, id: Any = None, *, thorough: bool = False) -> tuple[Any, float]:
    """The outcome after which ||S||_+^2 is largest, as users would give it, and that square.

    On a line she looks at both ends and the middle of every cell; if the end of an unbounded window hurts most, she
    takes an outcome far beyond it.  ``thorough``: without leaving out the cells that cannot be the worst.
    """
    engine: Any = game.engine
    record = game.rounds.pending[id].record
    space = game.space
    context = engine.context_of(record)
    if isinstance(engine, OrderedEngine):
        round = record.round
        n = int(round.info[RoundInfo.CELLS])
        places = points_of(round.cells[CellRow.LEFT, :n], round.cells[CellRow.RIGHT, :n]).ravel()
        witnesses = np.empty((places.size, 0))
        if engine.explicit:
            witnesses = np.array([engine._witnesses(record, float(y), engine._cell(round, float(y))) for y in places])
        cell_payoffs = np.empty((int(last_layer.payoff_size(engine.rules, len(round.rivals))), places.size))
        payoffs(engine.rules, round, places, witnesses, cell_payoffs)
        squares = squares_after(engine.ledger, context, cell_payoffs)
        at = int(squares.argmax())
        return beyond(space, float(places[at]), float(places[0]), float(places[-1])), float(squares[at])
    if isinstance(engine, DenseEngine) and isinstance(space, OrderedSpace):
        return _worst_of_cells(engine, record, thorough)
    assert isinstance(space, FiniteSpace)
    if isinstance(engine, DenseEngine) and not thorough:
        cell_payoffs = np.vstack(
            [cell_payoff.table(engine.prior.played(record.round)) for cell_payoff in record.cell_payoffs]
        )
    else:
        cell_payoffs = np.array([engine.payoff(record, y) for y in candidates(game, id)]).T
    squares = squares_after(engine.ledger, context, cell_payoffs)
    at = int(squares.argmax())
    return space.value(at), float(squares[at])


def _worst_of_cells(engine: DenseEngine, record: Any, thorough: bool) -> tuple[float, float]:
    """Cell by cell, those first that may be worst by their certificate, until no other can be."""
    cell_grid, p, ledger = engine.prior.cell_grid(record.round, None), engine.prior.played(record.round), engine.ledger
    size = int(engine.cuts[-1])
    owed, factors = np.empty(size), np.empty(size)
    combine(ledger.layout, ledger.total, record.context, ledger.discount, owed, factors)
    bounds = np.full(cell_grid.cells, ledger.discount**2 * ledger.square)
    for cell_payoff, first, last in zip(record.cell_payoffs, engine.cuts[:-1], engine.cuts[1:], strict=True):
        bounds += cell_payoff.assess(owed[first:last], float(factors[first]), p)[0]
    rows = points_of(cell_grid.left, cell_grid.right)
    best, at = -np.inf, 0.0
    for k in np.argsort(-bounds).tolist():
        if not thorough and bounds[k] <= best:
            break
        cell_payoffs = np.array([engine.payoff(record, float(y)) for y in np.unique(rows[k])]).T
        squares = squares_after(ledger, record.context, cell_payoffs)
        if squares.max() > best:
            best, at = float(squares.max()), float(np.unique(rows[k])[int(squares.argmax())])
    return beyond(engine.space, at, float(rows[0, 0]), float(rows[-1, -1])), best


def beyond(space: Any, y: float, low: float, high: float) -> float:
    """The end of an unbounded window stands for everything beyond it: the outcome is a window's width away."""
    if y == low > space.low:
        y = max(low - (high - low), space.low)
    elif y == high < space.high:
        y = high + (high - low)
    return min(max(y, -LARGEST), LARGEST)


def unforgiven(ledger: Ledger) -> float:
    """Miscalibration / promised, where the promise is at most sqrt(B (T + C + 2 sum of delays)) / T.

    The ledger adds what a broken certificate cost to its promise, and so it would a payoff beyond its own bound: here
    neither is forgiven.
    """
    account = ledger.account
    allowed = float(account[_ledger.Account.BUDGET] - account[_ledger.Account.EXCESS])
    most = ledger.bound * float(account[_ledger.Account.ROUNDS] + _ledger.CREDIT + 2.0 * account[_ledger.Account.DELAY])
    return float(np.sqrt(ledger.square / max(min(allowed, most), 1e-300)))
