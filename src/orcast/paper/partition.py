"""One calibrated forecaster for each cell of the expert's forecasts (paper, appendix D).

For a proper score let g be minus the derivative of its expectation (2 p for the Brier score, log p for the log score);
then

    score(p, y) - score(x, y)  <=  sum_k (g(p_k) - g(x_k)) (p_k - 1{y = k})                                 (excess)

so regret is a calibration error weighted by g. docs/theory.md derives its bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import expert_row
from orcast.engine import Equilibrium
from orcast.forecaster import Forecaster
from orcast.kernels.hats import STEEPNESS
from orcast.ledger import Guarantee
from orcast.payoffs import BinaryCalibration, LabelCalibration
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.cell_payoffs import hat_weights
from orcast.scores import Brier, LogScore, Score
from orcast.spaces import Binary, Labels
from orcast.spaces.base import whole
from orcast.validation import short

Array = NDArray[np.float64]
Key = tuple[int, ...]

# The largest number of cells, that of a grid on the simplex whose resolution is not given, and the finest such grid.
MOST_CELLS, USUAL_CELLS, FINEST = 10_000, 100, 10
# Temperature of the forecasters, which only observe the outcomes of their cell.
TEMPERATURE = 2.0
# Relative tolerance for a bound below its value by rounding.
ROUNDING = 1e-12
# Scores with a bound on the regret: sums over the probabilities of the events.
SCORES: tuple[Score, ...] = (Brier(), LogScore())


def slope(score: Score, binary: bool, q: Array) -> Array:
    """Function g: minus the derivative of the expected score, at the probability of each event."""
    if isinstance(score, LogScore):
        value: Array = np.log(np.maximum(q, score.clip))
        return value - np.log(np.maximum(1.0 - q, score.clip)) if binary else value
    return 2.0 * q


@lru_cache(maxsize=64)
def hat_heights(score: Score, binary: bool, grid: int) -> Array:
    """Value g_v for each hat that minimises the largest (g(p) - g_v) (p - y) where the hat is positive."""
    heights = np.empty(grid)
    soft = 0.5 / STEEPNESS
    for v in range(grid):
        p = np.linspace(max(v - soft, 0.0), min(v + 1.0 + soft, grid), 65) / grid
        g = slope(score, binary, p)
        tried = np.linspace(g.min(), g.max(), 201)[:, None]
        worst = np.maximum((g - tried) * p, (tried - g) * (1.0 - p)).max(axis=1)
        heights[v] = tried[worst.argmin(), 0]
    heights.flags.writeable = False
    return heights


@dataclass(slots=True)
class _Cell:
    """Forecaster of a cell, the sums of its hats, and bounds known before its outcomes.

    `known` sums over its rounds the largest possible errors of the probabilities, and for each score the remainder of
    (excess) and the largest possible excess.
    """

    recal: Forecaster
    weights: Array
    known: Array


class _CellRound(NamedTuple):
    """Pending round: its cell, probabilities of the expert and of the forecast; `known` as in `_Cell`."""

    key: Key
    expert: Array
    result: Array
    known: Array


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
        On `Binary`, equal bins of the probability (10). Else cells are the vectors of K whole numbers with this sum,
        the finest with at most 100 cells; more than 10,000 are refused.
    grid
        Hats of a probability (15).

    Notes
    -----
    On any sequence

        C_T       = sum_v | mean of w_v(p) (p - y) |    <=  sum_j (T_j / T) R_j                     (lemma 3)
        regret_T  = mean of score(p, y) - score(x, y)   <=  sum_j (T_j / T) c_j P_j + remainder     (lemma 2)

    with w_v the hats, T_j the rounds of cell j, x the expert, P_j the bound of F_j on the Euclidean norm of its mean
    payoff, and R_j = sqrt(grid) P_j on its l1 norm. `calibration_error`, `calibration_bound`, `regret` and
    `regret_bound` are these four, for Brier and log score (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper.partition import PartitionedRecalibrator
    >>> rain = PartitionedRecalibrator(oc.Binary(), cells=10)
    >>> p = rain.predict(0.93); rain.update(0)
    >>> p.certificate.holds, rain.calibration_error <= rain.calibration_bound
    (True, True)
    >>> rain.regret(oc.Brier()) <= rain.regret_bound(oc.Brier())
    True
    """

    def __init__(self, space: Binary | Labels, *, cells: int | None = None, grid: int = GRID) -> None:
        if not isinstance(space, (Binary, Labels)):
            raise TypeError(f"expected Binary() or Labels([...]), got {space!r}")
        self.space, self.grid, self._binary = space, checked_grid(grid), isinstance(space, Binary)
        self._payoff = BinaryCalibration(self.grid) if self._binary else LabelCalibration(self.grid)
        self._root = math.sqrt(self._payoff.on(space).bound)
        # events with a separate probability
        self._count = 1 if self._binary else space.cells

        def total(n: int) -> int:
            return n if self._binary else math.comb(n + space.cells - 1, space.cells - 1)

        if cells is None:
            usual = [n for n in range(1, FINEST + 1) if total(n) <= USUAL_CELLS]
            cells = max(usual, default=1)
        self.cells = whole(cells, "cells", 1, MOST_CELLS)
        if total(self.cells) > MOST_CELLS:
            raise ValueError(
                f"expected a grid of at most {MOST_CELLS:,} cells, got {total(self.cells):,} for {space.cells} "
                f"probabilities at cells={cells}"
            )
        self._cells: dict[Key, _Cell] = {}
        self._pending: _CellRound | None = None
        self.rounds = 0
        self._excess = np.zeros(len(SCORES))
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
            cell = _Cell(recal, np.zeros((self.grid, self._count)), np.zeros(1 + 2 * len(SCORES)))
        inner = cell.recal.predict(self._start(key))
        result = np.array(inner.mass)
        known = self._known(key, expert, result)
        if self._pending is not None and self._pending.key != key:
            self._cells[self._pending.key].recal.drop()
        self._cells[key], self._pending = cell, _CellRound(key, expert, result, known)
        return inner

    def _errors(self, mass: Array) -> Array:
        """Probabilities minus indicators of the events, one row per outcome."""
        errors: Array = (mass - np.eye(mass.size))[:, -self._count :]
        return errors

    def _losses(self, score: Score, mass: Array) -> Array:
        """Score of probabilities for each event."""
        return score.on_cells(self.space, mass)

    def _known(self, key: Key, expert: Array, result: Array) -> Array:
        """Bounds of a round before its outcome; see `_Cell`."""
        errors = self._errors(result)
        p, x, q = (mass[-self._count :] for mass in (result, expert, self._middle(key)))
        left, share = hat_weights(self.grid, p)
        bounds = np.zeros((2, len(SCORES)))
        for i, score in enumerate(SCORES):
            heights = hat_heights(score, self._binary, self.grid)
            interpolated = (1.0 - share) * heights[left] + share * heights[left + 1]
            g_p, g_q, g_x = (slope(score, self._binary, each) for each in (p, q, x))
            excess = self._losses(score, result) - self._losses(score, expert)
            bounds[:, i] = (errors @ (g_p - interpolated + g_q - g_x)).max(), excess.max()
        return np.array([np.abs(errors).sum(axis=1).max(), *bounds.ravel()])

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
        cell.known += own.known
        self._excess += [float((self._losses(s, own.result) - self._losses(s, own.expert))[k]) for s in SCORES]
        self.rounds += 1

    # --- the guarantee
    @property
    def calibration_error(self) -> float:
        """Error C_T = sum over hats and events of | mean of w_v(p) (p - 1{event}) |."""
        return float(np.abs(self._sums).sum()) / max(self.rounds, 1)

    @property
    def calibration_bound(self) -> float:
        """Bound on C_T: sum_j (T_j / T) R_j (lemma 3), R_j from the hats that F_j used, or its largest errors."""
        total = 0.0
        for cell in self._cells.values():
            most = math.sqrt(np.count_nonzero(cell.weights)) * self._promised(cell)
            total += min(most, float(cell.known[0]))
        return _at_least(total / max(self.rounds, 1), self.calibration_error)

    def _promised(self, cell: _Cell) -> float:
        """Bound of the forecaster of a cell on the norm of its sum of hats times errors."""
        guarantee = cell.recal.guarantee
        return self._root * (guarantee.promised + guarantee.excess) * guarantee.rounds

    def regret(self, score: Score = SCORES[0]) -> float:
        """Mean of score(p, y) - score(expert, y)."""
        return float(self._excess[_place(score)]) / max(self.rounds, 1)

    def regret_bound(self, score: Score = SCORES[0]) -> float:
        """Bound on that regret (lemma 2), from the hats that each cell used, or from its largest possible excess."""
        place = _place(score)
        total = 0.0
        for key, cell in self._cells.items():
            q = self._middle(key)[-self._count :]
            heights = hat_heights(score, self._binary, self.grid)[:, None]
            apart = (heights - slope(score, self._binary, q))[cell.weights > 0.0]
            bound = float(np.linalg.norm(apart)) * self._promised(cell) + float(cell.known[1 + place])
            total += min(bound, float(cell.known[1 + len(SCORES) + place]))
        return _at_least(total / max(self.rounds, 1), self.regret(score))

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee in the form of other recalibrators: miscalibration is C_T, promised its bound."""
        parts = {
            "calibration": self.calibration_error,
            **{f"regret {score.name}": self.regret(score) for score in SCORES},
        }
        recals = [cell.recal.guarantee for cell in self._cells.values()]
        held = sum(own.held * own.rounds for own in recals) / self.rounds if self.rounds else 1.0
        return Guarantee(self.rounds, self.calibration_error, self.calibration_bound, held, parts)

    def __repr__(self) -> str:
        return f"PartitionedRecalibrator({self.space}, {self.guarantee})"


def _place(score: Score) -> int:
    if score not in SCORES:
        raise ValueError(f"expected one of the scores {SCORES}, got {short(score)}")
    return SCORES.index(score)


def _at_least(bound: float, value: float) -> float:
    """Raise a bound to the value if it is smaller by rounding only."""
    return value if bound < value <= bound + ROUNDING * (1.0 + abs(value)) else bound
