"""PartitionedRecalibrator: one calibrated forecaster for each cell of the expert's forecasts (paper, appendix D).

For a proper score let g be minus the derivative of its expectation (2 p for the Brier score, log p for the log score);
then

    score(p, y) - score(x, y)  <=  sum_k (g(p_k) - g(x_k)) (p_k - 1{y = k})                                 (excess)

so regret is a calibration error weighted by g. docs/theory.md derives its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import expert_row
from orcast.engine import Equilibrium, Oracle
from orcast.forecaster import Forecaster
from orcast.forecasts import forecast_on
from orcast.kernels.hats import STEEPNESS
from orcast.ledger import Guarantee
from orcast.locks import Locked, StateLock, locked
from orcast.payoffs import BinaryCalibration, CellGrid, LabelCalibration
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.cell_payoffs import hat_weights
from orcast.payoffs.regret import finite_score
from orcast.scores import CRPS, MSE, Brier, LogScore, Score
from orcast.spaces import Binary, Labels
from orcast.spaces.base import whole
from orcast.validation import number, short

Array = NDArray[np.float64]
Key = tuple[int, ...]

# The largest number of cells, that of a grid on the simplex whose resolution is not given, and the finest such grid.
MOST_CELLS, USUAL_CELLS, FINEST = 10_000, 100, 10
# Temperature of the forecasters, which only observe the outcomes of their cell.
TEMPERATURE = 2.0
# Relative tolerance for a bound below its value by rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ProbabilityBins:
    """Equal bins of [0, 1], for the probability of the outcome 1."""

    total: int

    @property
    def radius(self) -> float:
        """Largest l1 distance of a forecast from the middle of its cell."""
        return 1.0 / self.total

    def cell(self, x: Array) -> Key:
        """Cell of probabilities."""
        return (min(int(x[1] * self.total), self.total - 1),)

    def middle(self, key: Key) -> Array:
        """Middle of a cell."""
        p = (key[0] + 0.5) / self.total
        return np.array([1.0 - p, p])

    def start(self, key: Key) -> Array:
        """Prior of the forecaster of a cell."""
        return self.middle(key)

    def name(self, key: Key) -> Any:
        """Name of a cell in reports."""
        return float(self.middle(key)[1])


@dataclass(frozen=True)
class Compositions:
    """Vectors of whole numbers with sum `resolution`; the nearest one, divided by it, is the middle of a cell."""

    labels: int
    resolution: int

    @staticmethod
    def of(labels: int, resolution: int | None) -> Compositions:
        """Grid of a resolution, or the finest with at most `USUAL_CELLS` cells."""
        if resolution is None:
            usual = [n for n in range(1, FINEST + 1) if Compositions(labels, n).total <= USUAL_CELLS]
            resolution = max(usual, default=1)
        cells = Compositions(labels, resolution)
        if cells.total > MOST_CELLS:
            raise ValueError(
                f"expected a grid of at most {MOST_CELLS:,} cells, got {cells.total:,} for {labels} probabilities at "
                f"cells={resolution}"
            )
        return cells

    @property
    def total(self) -> int:
        """Number of cells."""
        return math.comb(self.resolution + self.labels - 1, self.labels - 1)

    @property
    def radius(self) -> float:
        """Largest l1 distance of a forecast from the middle of its cell."""
        half = self.labels // 2
        return 2.0 * half * (self.labels - half) / self.labels / self.resolution

    def cell(self, x: Array) -> Key:
        """Cell of probabilities."""
        places = self.resolution * x
        whole = np.floor(places)
        up = self.resolution - int(whole.sum())
        whole[np.argsort(whole - places, kind="stable")[:up]] += 1.0
        return tuple(int(n) for n in whole)

    def middle(self, key: Key) -> Array:
        """Middle of a cell."""
        return np.array(key) / self.resolution

    def start(self, key: Key) -> Array:
        """Prior of the forecaster of a cell, with positive masses, because a mass of zero could never grow."""
        return (np.array(key) + 1.0 / self.labels) / (self.resolution + 1.0)

    def name(self, key: Key) -> Any:
        """Name of a cell in reports."""
        return tuple(self.middle(key).tolist())


# --- scores that are sums over the probabilities of events, and the functions g that bound their regret


def additive(score: Score, binary: bool) -> bool:
    """Return True if a score is a sum over the events, as Brier and log scores are."""
    return type(score) in ((Brier, LogScore, CRPS, MSE) if binary else (Brier, LogScore, CRPS))


def slope(score: Score, binary: bool, q: Array) -> Array:
    """Function g: minus the derivative of the expected score, at the probability of each event."""
    if isinstance(score, LogScore):
        value: Array = np.log(np.maximum(q, score.clip))
        return value - np.log(np.maximum(1.0 - q, score.clip)) if binary else value
    return (1.0 if isinstance(score, CRPS) and not binary else 2.0) * q


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


@dataclass(frozen=True)
class CellReport:
    """Number of cells, cells with an outcome, largest l1 distance from a middle, and rounds by the middle of a cell."""

    total: int
    visited: int
    radius: float
    rounds: dict[Any, int] = field(default_factory=dict)


class PartitionedRecalibrator(Locked):
    """Calibrated forecasts with no regret against an expert, by a forecaster for each cell of its forecasts.

    The expert's forecast selects the forecaster F_j that predicts and is updated (paper, appendix D).  Each F_j is a
    `Forecaster` that starts from the middle of its cell and observes the outcomes there only.  On any sequence

        C_T       = sum_v | mean of w_v(p) (p - y) |    <=  sum_j (T_j / T) R_j                     (lemma 3)
        regret_T  = mean of score(p, y) - score(x, y)   <=  sum_j (T_j / T) c_j P_j + remainder     (lemma 2)

    with w_v the hats, T_j the rounds of cell j, x the expert, P_j the bound of F_j on the Euclidean norm of its mean
    payoff, and R_j = sqrt(grid) P_j on its l1 norm.  `calibration_error`, `calibration_bound`, `regret` and
    `regret_bound` are these four; the bounds use all that was known before each outcome.  docs/theory.md has the
    constants.  Each outcome is settled before the next forecast.  `Recalibrator` is usually the better choice: it keeps
    one ledger, learns from every round, and takes late outcomes.

    Parameters
    ----------
    space
        `Binary` or `Labels`.
    cells
        On `Binary`, equal bins of the probability (10).  Else cells are the vectors of K whole numbers with this sum,
        the finest with at most 100 cells; more than 10,000 are refused.
    grid
        Hats of a probability (15).
    scores
        Scores whose regret is measured: Brier and log score.  These and scores equal to them have a bound; any other
        is measured only.
    oracle
        Oracle of the forecasters, `Equilibrium` by default.

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper.partition import PartitionedRecalibrator
    >>> rain = PartitionedRecalibrator(oc.Binary(), cells=10)
    >>> p = rain.predict(0.93); rain.update(0)
    >>> p.certificate.holds, rain.calibration_error <= rain.calibration_bound
    (True, True)
    >>> rain.regret(oc.Brier()) <= rain.regret_bound(oc.Brier()), rain.cells.rounds
    (True, {0.95: 1})
    """

    def __init__(
        self,
        space: Binary | Labels,
        *,
        cells: int | None = None,
        grid: int | None = None,
        scores: Score | Iterable[Score] | None = None,
        oracle: Oracle | None = None,
    ) -> None:
        if not isinstance(space, (Binary, Labels)):
            raise TypeError(f"expected Binary() or Labels([...]), got {space!r}")
        if cells is not None:
            cells = whole(cells, "cells", 1, MOST_CELLS)
        self.lock = StateLock()
        self.space = space
        self.grid = checked_grid(GRID if grid is None else grid)
        self._binary = isinstance(space, Binary)
        self._payoff = BinaryCalibration(self.grid) if self._binary else LabelCalibration(self.grid)
        self.oracle: Oracle = Equilibrium(temperature=TEMPERATURE) if oracle is None else oracle
        asked = (Brier(), LogScore()) if scores is None else (scores,) if isinstance(scores, Score) else scores
        self._scores = [self._checked(score) for score in asked]
        self._partition: ProbabilityBins | Compositions
        if self._binary:
            self._partition = ProbabilityBins(FINEST if cells is None else cells)
        else:
            self._partition = Compositions.of(space.cells, cells)
        # events with a separate probability
        self._count = 1 if self._binary else space.cells
        self._root = math.sqrt(self._payoff.on(Binary() if self._binary else Labels([0, 1])).bound)
        # Forecaster checks the other options
        Forecaster(space, self._payoff, oracle=oracle)
        self._cells: dict[Key, _Cell] = {}
        self._pending: _CellRound | None = None
        self._rounds = 0
        self._excess = np.zeros(len(self._scores))
        self._sums = np.zeros((self.grid, self._count))

    def _checked(self, score: object) -> Score:
        if not isinstance(score, Score):
            raise TypeError(f"expected scores such as Brier() or LogScore(), got {short(score)}")
        score.check(self.space)
        return score

    def _new_cell(self) -> _Cell:
        recal = Forecaster(self.space, self._payoff, oracle=self.oracle)
        return _Cell(recal, np.zeros((self.grid, self._count)), np.zeros(1 + 2 * len(self._scores)))

    def _errors(self, mass: Array) -> Array:
        """Probabilities minus indicators of the events, one row per outcome."""
        errors: Array = (mass - np.eye(mass.size))[:, -self._count :]
        return errors

    # --- the loop
    @locked
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
        key = self._partition.cell(expert)
        cell = self._cells.get(key) or self._new_cell()
        inner = cell.recal.predict(self._partition.start(key))
        result = np.array(inner.mass)
        known = self._known(key, expert, result)
        if self._pending is not None and self._pending.key != key:
            self._drop(self._pending.key)
        self._cells[key], self._pending = cell, _CellRound(key, expert, result, known)
        return inner

    def _drop(self, key: Key) -> None:
        """Drop the pending round of a cell, and the cell if it has no other."""
        recal = self._cells[key].recal
        recal.drop()
        if not recal.guarantee.rounds:
            del self._cells[key]

    def _known(self, key: Key, expert: Array, result: Array) -> Array:
        """Bounds of a round before its outcome; see `_Cell`."""
        errors = self._errors(result)
        p, x, q = (mass[-self._count :] for mass in (result, expert, self._partition.middle(key)))
        left, share = hat_weights(self.grid, p)
        bounds = np.zeros((2, len(self._scores)))
        for i, score in enumerate(self._scores):
            if additive(score, self._binary):
                heights = hat_heights(score, self._binary, self.grid)
                interpolated = (1.0 - share) * heights[left] + share * heights[left + 1]
                g_p, g_q, g_x = (slope(score, self._binary, each) for each in (p, q, x))
                excess = self._losses(score, result) - self._losses(score, expert)
                bounds[:, i] = (errors @ (g_p - interpolated + g_q - g_x)).max(), excess.max()
        return np.array([np.abs(errors).sum(axis=1).max(), *bounds.ravel()])

    def _losses(self, score: Score, mass: Array) -> Array:
        """Score of probabilities for each event."""
        space = self.space
        if additive(score, self._binary):
            return finite_score(score, CellGrid(space, space.cells), mass)
        p = forecast_on(space, mass)
        return np.array([number(score(p, space.value(k)), f"value of {score!r}") for k in range(space.cells)])

    @locked
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
        excess = [float((self._losses(s, own.result) - self._losses(s, own.expert))[k]) for s in self._scores]
        cell.recal.rounds.settle(value)
        self._pending = None
        p, errors = own.result[-self._count :], self._errors(own.result)[k]
        columns = np.arange(p.size)
        left, share = hat_weights(self.grid, p)
        for at, weight in ((left, 1.0 - share), (left + 1, share)):
            cell.weights[at, columns] += weight
            self._sums[at, columns] += weight * errors
        cell.known += own.known
        self._excess += excess
        self._rounds += 1

    # --- the guarantee
    @property
    def rounds(self) -> int:
        """Outcomes settled so far."""
        return self._rounds

    @property
    @locked
    def calibration_error(self) -> float:
        """Error C_T = sum over hats and events of | mean of w_v(p) (p - 1{event}) |."""
        return float(np.abs(self._sums).sum()) / max(self._rounds, 1)

    @property
    @locked
    def calibration_bound(self) -> float:
        """Bound on C_T: sum_j (T_j / T) R_j (lemma 3), R_j from the hats that F_j used, or its largest errors."""
        total = 0.0
        for cell in self._cells.values():
            most = math.sqrt(np.count_nonzero(cell.weights)) * self._promised(cell)
            total += min(most, float(cell.known[0]))
        return _at_least(total / max(self._rounds, 1), self.calibration_error)

    def _promised(self, cell: _Cell) -> float:
        """Bound of the forecaster of a cell on the norm of its sum of hats times errors."""
        guarantee = cell.recal.guarantee
        return self._root * (guarantee.promised + guarantee.excess) * guarantee.rounds

    @locked
    def regret(self, score: Score | None = None) -> float:
        """Mean of score(p, y) - score(expert, y), for one of `scores` (by default the first)."""
        return float(self._excess[self._place(score)]) / max(self._rounds, 1)

    @locked
    def regret_bound(self, score: Score | None = None) -> float:
        """Bound on that regret (lemma 2), from the hats that each cell used, or from its largest possible excess."""
        place = self._place(score)
        asked = self._scores[place]
        if not additive(asked, self._binary):
            raise TypeError(
                f"expected a score that is a sum over probabilities, such as Brier() or LogScore(), got {asked!r}"
            )
        total = 0.0
        for key, cell in self._cells.items():
            q = self._partition.middle(key)[-self._count :]
            heights = hat_heights(asked, self._binary, self.grid)[:, None]
            apart = (heights - slope(asked, self._binary, q))[cell.weights > 0.0]
            bound = float(np.linalg.norm(apart)) * self._promised(cell) + float(cell.known[1 + place])
            total += min(bound, float(cell.known[1 + len(self._scores) + place]))
        return _at_least(total / max(self._rounds, 1), self.regret(score))

    def _place(self, score: Score | None) -> int:
        if score is None and self._scores:
            return 0
        if score not in self._scores:
            raise ValueError(f"expected one of scores= {self._scores}, got {short(score)}")
        return self._scores.index(score)

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """Guarantee in the form of other recalibrators: miscalibration is C_T, promised its bound."""
        parts = {f"regret {score.name}": self.regret(score) for score in self._scores}
        recals = [cell.recal.guarantee for cell in self._cells.values()]
        rounds = max(self._rounds, 1)
        return Guarantee(
            self._rounds,
            self.calibration_error,
            self.calibration_bound,
            sum(own.held * own.rounds for own in recals) / rounds if self._rounds else 1.0,
            {"calibration": self.calibration_error, **parts},
        )

    @property
    @locked
    def cells(self) -> CellReport:
        """Rounds by cell."""
        cells = self._partition
        rounds = {cells.name(key): cell.recal.guarantee.rounds for key, cell in self._cells.items()}
        rounds = {name: count for name, count in rounds.items() if count}
        return CellReport(cells.total, len(rounds), cells.radius, rounds)

    def __repr__(self) -> str:
        return f"PartitionedRecalibrator({self.space}, {self.guarantee})"


def _at_least(bound: float, value: float) -> float:
    """Raise a bound to the value if it is smaller by rounding only."""
    return value if bound < value <= bound + ROUNDING * (1.0 + abs(value)) else bound
