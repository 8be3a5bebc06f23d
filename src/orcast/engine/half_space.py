"""The paper's half-space value of a forecast, whatever oracle found it: computed when it is read.

    half_space = max over outcomes y of <mean payoff, payoff(p, y)>

with the positive part of the mean where a payoff is one-sided (paper, proposition 2).  It is at most zero where the
forecast wins the half-space.  The slack rule asks for less, so under it many forecasts have a positive one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.base import Engine
from orcast.engine.dense.engine import DenseEngine, DenseRecord
from orcast.engine.ordered import LEFT, RIGHT, OrderedEngine
from orcast.kernels.ledger import combine_arrays
from orcast.kernels.state import Round
from orcast.ledger import Account, Ledger
from orcast.payoffs.cell_payoffs import NODES
from orcast.spaces import FiniteSpace

Array = NDArray[np.float64]

# As a plain number: an enum costs as much as the reading.
WEIGHT = int(Account.WEIGHT)


def issued(engine: Engine, record: Any) -> Any:
    """The forecast of a round; its certificate can say the half-space value of this moment, now or later."""
    forecast = engine.forecast(record)
    if isinstance(engine, DenseEngine) and forecast.certificate.lacks_half_space:
        ledger = engine.ledger
        total, weight = ledger.total.copy(), max(ledger.account.item(WEIGHT), 1.0)
        forecast.certificate.find_half_space_by(lambda: largest(engine, ledger, record, total) / weight)
    return forecast


def largest(engine: Engine, ledger: Ledger, record: Any, total: Array) -> float:
    """The largest <S_+, payoff(p, y)> over the outcomes y, for the sums S."""
    if isinstance(engine, DenseEngine):
        return _of_parts(engine, ledger, record, total)
    if isinstance(engine, OrderedEngine):
        return _on_cells(engine, ledger, record, total)
    assert isinstance(engine.space, FiniteSpace)
    space = engine.space
    payoffs = [engine.payoff(record, space.outcome(space.value(k))) for k in range(space.cells)]
    owed = _owed(ledger, engine.context_of(record), total, payoffs[0].size)
    return max(float(owed @ payoff) for payoff in payoffs)


def _owed(ledger: Ledger, context: Array, total: Array, size: int) -> Array:
    owed, factors = np.empty(size), np.empty(size)
    combine_arrays(ledger.layout, total, context, ledger.discount, owed, factors)
    return owed


def _of_parts(engine: DenseEngine, ledger: Ledger, record: DenseRecord, total: Array) -> float:
    """Cell by cell, the largest of each part: exact where payoffs are constant within a cell, else a bound."""
    cell_payoffs = record.cell_payoffs or engine.cell_payoffs(record.round, record.features, record.states)
    owed = _owed(ledger, record.context, total, int(engine.cuts[-1]))
    p = engine.prior.played(record.round)
    twice = np.zeros(p.size)
    for cell_payoff, a, b in zip(cell_payoffs, engine.cuts[:-1], engine.cuts[1:], strict=True):
        twice += cell_payoff.assess(owed[a:b], 0.0, p)[0]
    return 0.5 * float(twice.max())


def _on_cells(engine: OrderedEngine, ledger: Ledger, record: Round, total: Array) -> float:
    """Largest value, a polynomial of the outcome within each cell; users' functions are evaluated at seven points."""
    rules, cells, n = engine.rules, record.view("cells"), record.count()
    left, right = cells[LEFT, :n], cells[RIGHT, :n]
    degree = max(rules.orders, 2 * rules.crps, rules.mse)
    # strictly within the cell: an edge belongs to the cell on its left
    places = NODES if engine.explicit else 0.5 - 0.5 * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    points = left[:, None] + (right - left)[:, None] * places
    payoffs = engine.payoffs(record, points.ravel())
    owed = _owed(ledger, engine.context_of(record), total, payoffs.shape[1])
    values = (payoffs @ owed).reshape(n, len(places))
    best = float(values.max())
    if engine.explicit:
        return best
    return max([best, *(_top(places, row) for row, wide in zip(values, right > left, strict=True) if wide)])


def _top(places: Array, values: Array) -> float:
    """The largest value on [0, 1] of the polynomial through some points."""
    polynomial = np.polynomial.Polynomial.fit(places, values, places.size - 1, domain=[0.0, 1.0])
    turns = np.asarray(polynomial.deriv().roots(), dtype=np.complex128)
    inside = [t.real for t in turns.tolist() if abs(t.imag) < 1e-9 and 0.0 < t.real < 1.0]
    return max(float(polynomial(t)) for t in (0.0, 1.0, *inside))
