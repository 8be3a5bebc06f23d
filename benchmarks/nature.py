"""Nature at her worst: she sees the forecast and picks the outcome after which most is owed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

import orcast as oc
from orcast import ledger as _ledger
from orcast.ledger import Ledger
from orcast.oracles import _play
from orcast.oracles._cells import locate
from orcast.oracles._ordered import payoff
from orcast.oracles._state import CELLS, LEFT, RIGHT
from orcast.oracles.dense import DenseEngine
from orcast.oracles.ordered import OrderedEngine
from orcast.spaces import FiniteSpace, OrderedSpace
from orcast.testing import candidates

Array = NDArray[np.float64]

ROUNDING = 1e-9
# Outcomes beyond this are not let in.
LARGEST = 1e100


# Not cached on disk: the cache of a compiled function does not notice when a function that it calls has changed.
@njit(error_model="numpy")
def payoffs(rules, rnd, places, witnesses, out):
    """The core payoff at each place, a column each."""
    n = int(rnd.info[CELLS])
    one = np.empty(out.shape[0])
    for i in range(places.shape[0]):
        k = locate(places[i], rnd.cells[LEFT], rnd.cells[RIGHT], n)
        payoff(rules, rnd, places[i], k, witnesses[i], one)
        out[:, i] = one


def squares_after(ledger: Ledger, context: Array, cores: Array) -> Array:
    """||g S + c (x) payoff||_+^2 for each column of core payoffs."""
    layout = ledger.layout
    squares = np.zeros(cores.shape[1])
    for number, (start, size, groups, places, at, one_sided) in enumerate(layout.parts.tolist()):
        own = layout.scale[number] * cores[layout.places[places : places + size]]
        s = ledger.keep * ledger.total[start : start + size * groups].reshape(groups, size)
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
    engine: Any = game._engine
    page = game._waiting[id].page
    space = game.space
    context = engine.context_of(page)
    if isinstance(engine, OrderedEngine):
        rnd = page.round
        n = int(rnd.info[CELLS])
        places = points_of(rnd.cells[LEFT, :n], rnd.cells[RIGHT, :n]).ravel()
        witnesses = np.empty((places.size, 0))
        if engine.explicit:
            witnesses = np.array([engine._witnesses(page, float(y), engine._cell(rnd, float(y))) for y in places])
        cores = np.empty((int(_play.core_size(engine.rules, len(rnd.rivals))), places.size))
        payoffs(engine.rules, rnd, places, witnesses, cores)
        squares = squares_after(engine.ledger, context, cores)
        at = int(squares.argmax())
        return beyond(space, float(places[at]), float(places[0]), float(places[-1])), float(squares[at])
    if isinstance(engine, DenseEngine) and isinstance(space, OrderedSpace):
        return _worst_of_cells(engine, page, thorough)
    assert isinstance(space, FiniteSpace)
    if isinstance(engine, DenseEngine) and not thorough:
        cores = np.vstack([core.table(engine.prior.played(page.round)) for core in page.cores])
    else:
        cores = np.array([engine.payoff(page, y) for y in candidates(game, id)]).T
    squares = squares_after(engine.ledger, context, cores)
    at = int(squares.argmax())
    return space.value(at), float(squares[at])


def _worst_of_cells(engine: DenseEngine, page: Any, thorough: bool) -> tuple[float, float]:
    """Cell by cell, those first that may be worst by their certificate, until no other can be."""
    board, p, ledger = engine.prior.board(page.round, None), engine.prior.played(page.round), engine.ledger
    size = int(engine.cuts[-1])
    owed, factors = np.empty(size), np.empty(size)
    _play.combine(ledger.layout, ledger.total, page.context, ledger.keep, owed, factors)
    bounds = np.full(board.cells, ledger.keep**2 * ledger.square)
    for core, first, last in zip(page.cores, engine.cuts[:-1], engine.cuts[1:], strict=True):
        bounds += core.assess(owed[first:last], float(factors[first]), p)[0]
    rows = points_of(board.left, board.right)
    best, at = -np.inf, 0.0
    for k in np.argsort(-bounds).tolist():
        if not thorough and bounds[k] <= best:
            break
        cores = np.array([engine.payoff(page, float(y)) for y in np.unique(rows[k])]).T
        squares = squares_after(ledger, page.context, cores)
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
    allowed = float(account[_ledger.BUDGET] - account[_ledger.EXCESS])
    most = ledger.bound * float(account[_ledger.ROUNDS] + _ledger.CREDIT + 2.0 * account[_ledger.DELAY])
    return float(np.sqrt(ledger.square / max(min(allowed, most), 1e-300)))
