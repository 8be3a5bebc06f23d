"""One calibrated forecaster for each cell of the expert's forecasts (paper, appendix D).

For the Brier score, with p the probabilities of the forecast and x those of the expert,

    score(p, y) - score(x, y)  <=  sum_k 2 (p_k - x_k) (p_k - 1{y = k})                                     (excess)

so regret is a calibration error weighted by 2 p. docs/theory.md derives its bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import expert_row
from orcast.engine import Equilibrium
from orcast.forecaster import Forecaster
from orcast.paper.conformal import at_least
from orcast.payoffs import BinaryCalibration, LabelCalibration
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.cell_payoffs import hat_weights
from orcast.scores import Brier
from orcast.spaces import Binary, Labels
from orcast.spaces.base import whole

Array = NDArray[np.float64]
Key = tuple[int, ...]

MOST_CELLS = 10_000
# Temperature of the forecasters, which only observe the outcomes of their cell.
TEMPERATURE = 2.0
SCORE = Brier()


@dataclass(slots=True)
class _Cell:
    """Forecaster of a cell, the sums of its hats, and that of the remainders of (excess)."""

    recal: Forecaster
    weights: Array
    remainder: float = 0.0


class _CellRound(NamedTuple):
    """Pending round: its cell, probabilities of the expert and of the forecast, largest remainder of (excess)."""

    key: Key
    expert: Array
    result: Array
    remainder: float


class PartitionedRecalibrator:
    """Calibrated forecasts with no regret against an expert, by a forecaster for each cell of its forecasts.

    The expert's forecast selects the forecaster F_j that predicts and is updated (paper, appendix D). Each F_j is a
    `Forecaster` that starts from the middle of its cell and observes the outcomes there only. Each outcome is settled
    before the next forecast. `Recalibrator` is usually the better choice: it keeps one ledger and learns from every
    round.

    Parameters
    ----------
    space
        `Binary` or `Labels`.
    cells
        On `Binary`, equal bins of the probability. Else cells are the vectors of K whole numbers with this sum; more
        than 10,000 of them are refused. 10 by default.
    grid
        Hats of a probability (15).

    Notes
    -----
    On any sequence

        C_T       = sum_v | mean of w_v(p) (p - y) |    <=  sum_j (T_j / T) R_j                     (lemma 3)
        regret_T  = mean of score(p, y) - score(x, y)   <=  sum_j (T_j / T) c_j P_j + remainder     (lemma 2)

    with w_v the hats, T_j the rounds of cell j, x the expert, P_j the bound of F_j on the Euclidean norm of its mean
    payoff, and R_j = sqrt(grid) P_j on its l1 norm. `calibration_error`, `calibration_bound`, `regret` and
    `regret_bound` are these four, for the Brier score (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper.partition import PartitionedRecalibrator
    >>> rain = PartitionedRecalibrator(oc.Binary(), cells=10)
    >>> p = rain.predict(0.93); rain.update(0)
    >>> p.certificate.holds, rain.calibration_error <= rain.calibration_bound
    (True, True)
    >>> rain.regret <= rain.regret_bound
    True
    """

    def __init__(self, space: Binary | Labels, *, cells: int = 10, grid: int = GRID) -> None:
        if not isinstance(space, (Binary, Labels)):
            raise TypeError(f"expected Binary() or Labels([...]), got {space!r}")
        self.space, self.grid, self._binary = space, checked_grid(grid), isinstance(space, Binary)
        self._payoff = BinaryCalibration(self.grid) if self._binary else LabelCalibration(self.grid)
        self._root = math.sqrt(self._payoff.on(space).bound)
        # events with a separate probability
        self._count = 1 if self._binary else space.cells
        self.cells = whole(cells, "cells", 1, MOST_CELLS)
        total = math.comb(self.cells + self._count - 1, self._count - 1)
        if total > MOST_CELLS:
            raise ValueError(
                f"expected a grid of at most {MOST_CELLS:,} cells, got {total:,} for {space.cells} probabilities at "
                f"cells={cells}"
            )
        self._cells: dict[Key, _Cell] = {}
        self._pending: _CellRound | None = None
        self.rounds = 0
        self._excess = 0.0
        # twice the middle of each hat: 2 p is the mean of these over the hats of p, but for a remainder
        self._heights = (2.0 * np.arange(self.grid) + 1.0) / self.grid
        self._sums = np.zeros((self.grid, self._count))

    # --- cells
    def _cell(self, x: Array) -> Key:
        """Bin of a probability, or the nearest vector of whole numbers."""
        if self._binary:
            return (min(int(x[1] * self.cells), self.cells - 1),)
        places = self.cells * x
        below = np.floor(places)
        up = self.cells - int(below.sum())
        below[np.argsort(below - places, kind="stable")[:up]] += 1.0
        return tuple(int(n) for n in below)

    def _middle(self, key: Key) -> Array:
        """Middle of a cell."""
        p = (key[0] + 0.5) / self.cells
        return np.array([1.0 - p, p]) if self._binary else np.array(key) / self.cells

    def _start(self, key: Key) -> Array:
        """Prior of the forecaster of a cell, with positive masses, because a mass of zero could never grow."""
        return self._middle(key) if self._binary else (np.array(key) + 1.0 / self._count) / (self.cells + 1.0)

    # --- the loop
    def predict(self, forecast: object) -> Any:
        """Recalibrate one forecast; its round is then pending, in place of the one before.

        Parameters
        ----------
        forecast
            Base forecast, in any form that `Recalibrator` accepts.
        """
        if forecast is None:
            raise TypeError("expected a forecast, got None: use Forecaster to run without one")
        expert, _ = expert_row(forecast, self.space)
        key = self._cell(expert)
        cell = self._cells.get(key)
        if cell is None:
            recal = Forecaster(self.space, self._payoff, oracle=Equilibrium(temperature=TEMPERATURE))
            cell = _Cell(recal, np.zeros((self.grid, self._count)))
        inner = cell.recal.predict(self._start(key))
        result = np.array(inner.mass)
        remainder = self._remainder(key, expert, result)
        if self._pending is not None and self._pending.key != key:
            self._cells[self._pending.key].recal.drop()
        self._cells[key], self._pending = cell, _CellRound(key, expert, result, remainder)
        return inner

    def _errors(self, mass: Array) -> Array:
        """Probabilities minus indicators of the events, one row per outcome."""
        errors: Array = (mass - np.eye(mass.size))[:, -self._count :]
        return errors

    def _remainder(self, key: Key, expert: Array, result: Array) -> float:
        """Largest remainder of (excess) in a round, known before its outcome."""
        p, x, q = (mass[-self._count :] for mass in (result, expert, self._middle(key)))
        left, share = hat_weights(self.grid, p)
        interpolated = (1.0 - share) * self._heights[left] + share * self._heights[left + 1]
        return float((self._errors(result) @ (2.0 * (p + q - x) - interpolated)).max())

    def update(self, y: Any) -> None:
        """Settle the pending round with its outcome.

        Parameters
        ----------
        y
            Outcome.
        """
        value, own = self.space.outcome(y), self._pending
        if own is None:
            raise ValueError("expected a pending round, got none: call predict before update")
        cell, k = self._cells[own.key], self.space.cell(value)
        cell.recal.rounds.settle(value)
        self._pending = None
        p, errors = own.result[-self._count :], self._errors(own.result)[k]
        columns = np.arange(p.size)
        left, share = hat_weights(self.grid, p)
        for at, weight in ((left, 1.0 - share), (left + 1, share)):
            cell.weights[at, columns] += weight
            self._sums[at, columns] += weight * errors
        cell.remainder += own.remainder
        ours, theirs = (SCORE.on_cells(self.space, mass) for mass in (own.result, own.expert))
        self._excess += float(ours[k] - theirs[k])
        self.rounds += 1

    # --- the guarantee
    @property
    def calibration_error(self) -> float:
        """Error C_T = sum over hats and events of | mean of w_v(p) (p - 1{event}) |."""
        return float(np.abs(self._sums).sum()) / max(self.rounds, 1)

    @property
    def calibration_bound(self) -> float:
        """Bound on C_T: sum_j (T_j / T) R_j (lemma 3), R_j from the hats that F_j used."""
        total = sum(math.sqrt(np.count_nonzero(cell.weights)) * self._promised(cell) for cell in self._cells.values())
        return at_least(total / max(self.rounds, 1), self.calibration_error)

    def _promised(self, cell: _Cell) -> float:
        """Bound of the forecaster of a cell on the norm of its sum of hats times errors."""
        guarantee = cell.recal.guarantee
        return self._root * (guarantee.promised + guarantee.excess) * guarantee.rounds

    @property
    def regret(self) -> float:
        """Mean of score(p, y) - score(expert, y)."""
        return self._excess / max(self.rounds, 1)

    @property
    def regret_bound(self) -> float:
        """Bound on the regret (lemma 2), from the hats that each cell used."""
        total = 0.0
        for key, cell in self._cells.items():
            apart = self._heights[:, None] - 2.0 * self._middle(key)[-self._count :]
            total += float(np.linalg.norm(apart[cell.weights > 0.0])) * self._promised(cell) + cell.remainder
        return at_least(total / max(self.rounds, 1), self.regret)
