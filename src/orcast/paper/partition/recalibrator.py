"""PartitionedRecalibrator: a calibrated forecaster for each cell of what an expert may forecast (paper, appendix D).

For a proper score let g be minus the slope of its expectation (2 p for the Brier score, log p for the log score); then

    score(p, y) - score(x, y)  <=  sum_k (g(p_k) - g(x_k)) (p_k - 1{y = k})                                 (excess)

so regret is an error of calibration, seen through g.  docs/theory.md derives the bound on it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import expert_row
from orcast.engine import Equilibrium, Oracle
from orcast.forecasts import Forecast, forecast_on
from orcast.game import Forecaster
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.paper.partition.cells import (
    MOST_CELLS,
    CellTable,
    Compositions,
    Key,
    additive,
    cells_around,
    checked_bins,
    hat_heights,
    slope,
)
from orcast.payoffs import BinaryCalibration, CellGrid, LabelCalibration
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.cell_payoffs import hat_weights
from orcast.payoffs.regret import finite_score
from orcast.rounds import PendingById
from orcast.scores import CRPS, Brier, LogScore, Score
from orcast.spaces import Binary, Labels, OrderedSpace, Space, frozen
from orcast.spaces.base import whole
from orcast.validation import number, short, warn_user

Array = NDArray[np.float64]

# The temperature of the forecasters: they know nothing but the outcomes of their cell.
TEMPERATURE = 2.0
# A bound that rounding alone puts below what it bounds is equal to it.
ROUNDING = 1e-12


@dataclass(slots=True)
class _Cell:
    """The forecaster of a cell, the sums of the hats in it, and bounds known before its outcomes.

    `known` is, summed over its rounds: the largest possible errors of the probabilities; for each score the remainder
    of (excess), and the largest possible excess.
    """

    game: Forecaster
    weights: Array
    known: Array


@dataclass(slots=True)
class _CellRound:
    """Attached to a pending round of a cell: probabilities of the events by the expert and as played; see `_Cell`.

    `cells` are those of a quantity: left and right ends, masses of the expert and as played.
    """

    expert: Array
    played: Array
    known: Array
    cells: Array


@dataclass(frozen=True)
class CellReport:
    """Rounds by the cells of the expert's forecasts.

    There are `total` cells, of which `visited` have had an outcome; `rounds` are theirs, by the middle of the
    cell.  An expert's probabilities are at most `radius` (in l1) from the middle of their cell.
    """

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
    `regret_bound` are these four; the bounds use all that was known before each outcome.  On `Binary`, the last two
    for the Brier score, P_j <= sqrt(T_j + 64) / T_j, c_j <= 2.1 sqrt(grid / 3), remainder <= 1 / grid + 1 / cells.
    With K labels P_j has another factor sqrt(2), R_j = sqrt(K grid) P_j, c_j another sqrt(K), and the remainder is at
    most 2 / grid + sqrt(2 K) / cells.

    `Recalibrator` is usually the better choice: it keeps one ledger and learns from every round.  The partition has no
    regret by every score of the kind at once, and is simple enough to check by hand; neighbouring cells share nothing.

    Parameters
    ----------
    space
        `Binary`, `Labels`, or a quantity (`Interval`, `Line`, `HalfLine`), which is cut into bins: their probabilities
        are recalibrated, and within a bin the forecast is the expert's, without a guarantee.
    cells
        On `Binary`, equal bins of the probability (10).  Else cells are the vectors of K whole numbers with this sum,
        the finest with at most 100 cells; more than 10,000 are refused.
    bins
        Inner edges, or a number of bins (4) at even levels of the first forecast, fixed from then on.
    grid
        Hats of a probability (15).
    scores
        Scores whose regret is measured: Brier and log score, and for a quantity the CRPS.  Brier and log scores, which
        for a quantity are those of its bins, and scores equal to them have a bound; any other is measured only.
    oracle
        Oracle of the forecasters, `Equilibrium` by default.
    outside, max_pending
        As for `Recalibrator`.

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
        space: Space,
        *,
        cells: int | None = None,
        bins: int | Iterable[float] | None = None,
        grid: int | None = None,
        scores: Score | Iterable[Score] | None = None,
        oracle: Oracle | None = None,
        outside: str = "raise",
        max_pending: int = 1000,
    ) -> None:
        if not isinstance(space, (Binary, Labels, OrderedSpace)):
            raise TypeError(
                f"expected Binary(), Labels([...]) or a quantity such as Interval(low, high), got {space!r}"
            )
        if cells is not None:
            cells = whole(cells, "cells", 1, MOST_CELLS)
        self.lock = GameLock()
        self.space: Space = space
        hats = checked_grid(GRID if grid is None else grid)
        self._payoff = BinaryCalibration(hats) if isinstance(space, Binary) else LabelCalibration(hats)
        self.grid = hats
        self.oracle: Oracle = Equilibrium(temperature=TEMPERATURE) if oracle is None else oracle
        self.outside, self.max_pending = outside, max_pending
        self._resolution = cells
        self._bins = checked_bins(bins, space)
        usual = (Brier(), LogScore(), CRPS()) if isinstance(space, OrderedSpace) else (Brier(), LogScore())
        asked = usual if scores is None else (scores,) if isinstance(scores, Score) else scores
        self._scores = [self._checked(score) for score in asked]
        self._table = self._first_table()
        some = Binary() if isinstance(space, Binary) else Labels([0, 1])
        self._root = math.sqrt(self._payoff.on(some).bound)
        # a game checks the other options
        Forecaster(some, self._payoff, oracle=oracle, outside=outside, max_pending=max_pending)
        self._cells: dict[Key, _Cell] = {}
        # the cell of each pending round; the round itself is pending in the game of its cell
        self._pending = PendingById[Key](max_pending)
        self._rounds = 0
        self._excess = np.zeros(len(self._scores))
        self._sums = self._no_sums(self._table)
        self._crossing_reported = False

    # --- cells, forecasters, scores
    def _checked(self, score: object) -> Score:
        if not isinstance(score, Score):
            raise TypeError(f"expected scores such as Brier() or LogScore(), got {short(score)}")
        if not (isinstance(self.space, OrderedSpace) and self._of_events(score)):
            score.check(self.space)
        return score

    def _of_events(self, score: Score) -> bool:
        """Tell whether a score is one of the probabilities of the events, not of the quantity itself."""
        return not isinstance(self.space, OrderedSpace) or isinstance(score, (Brier, LogScore))

    def _first_table(self) -> CellTable | None:
        """The cells, unless the first forecast is to cut the bins."""
        if isinstance(self._bins, int):
            Compositions.of(self._bins, self._resolution)
            return None
        if self._bins is not None:
            return CellTable.of_bins(self._bins, self._resolution)
        assert isinstance(self.space, (Binary, Labels))
        return CellTable.of(self.space, self._resolution)

    def _cut_around(self, row: Array) -> CellTable:
        """Bins at the quantiles of a first forecast."""
        assert isinstance(self.space, OrderedSpace)
        assert isinstance(self._bins, int)
        levels = np.arange(1, self._bins) / self._bins
        edges = np.unique(np.interp(levels, self.space.levels, row))
        edges = edges[(edges >= self.space.low) & (edges < self.space.high)]
        if not edges.size:
            raise ValueError(
                f"expected a first forecast with quantiles from {self.space.low:g} on and below {self.space.high:g} "
                "to cut bins at, got none (bins= may be edges)"
            )
        return CellTable.of_bins(frozen(edges), self._resolution)

    def _no_sums(self, table: CellTable | None) -> Array:
        return np.zeros((0, 0) if table is None else (self.grid, table.count))

    def _new_cell(self, table: CellTable) -> _Cell:
        # this class drops rounds itself, so a game can always have one more
        game = Forecaster(table.events, self._payoff, oracle=self.oracle, max_pending=self.max_pending + 1)
        return _Cell(game, self._no_sums(table), np.zeros(1 + 2 * len(self._scores)))

    # --- the loop
    @locked
    def predict(self, forecast: object, *, id: Hashable = None) -> Any:
        """Recalibrate one forecast; its round is then pending.

        `forecast` is anything that `Recalibrator` takes on the same space.  Without `id` it replaces an
        unnamed round that is still pending.

        >>> import orcast as oc
        >>> from orcast.paper.partition import PartitionedRecalibrator
        >>> recal = PartitionedRecalibrator(oc.Interval(0, 100), bins=[20, 40, 60])
        >>> p = recal.predict(oc.Normal(50, 10))
        >>> low, high = p.interval(0.9)
        >>> recal.update(55)
        """
        self._pending.check_new(id)
        if forecast is None:
            raise TypeError("expected a forecast, got None (a game without an expert is a Forecaster)")
        row, crossed = expert_row(forecast, self.space)
        leaving = self._pending.leaving(id)
        # before the first outcome the bins may still be cut elsewhere
        fresh = isinstance(self._bins, int) and not self._rounds and len(self._pending) == len(leaving)
        table = self._cut_around(row) if fresh else self._table
        assert table is not None
        cells, bins = self._spread(table, row)
        expert = row if table.edges is None else bins.T @ cells[2]
        key = table.cells.cell(expert)
        cell = None if fresh else self._cells.get(key)
        if cell is None:
            cell = self._new_cell(table)
        if leaving and leaving != [id]:
            self._pending.warn_dropped(leaving[0])
        if crossed and not self._crossing_reported:
            self._crossing_reported = True
            warn_user("crossing quantiles were sorted (reported once)", UserWarning)
        inner = cell.game.predict(table.cells.start(key), id=id)
        played = np.array(inner.mass)
        known = self._known(table, key, expert, played)
        if table.edges is not None:
            cells[3] *= bins @ (played / expert)
            cells[3] /= cells[3].sum()
        cell.game.rounds.pending[id].attached = asdict(_CellRound(expert, played, known, cells))
        for other in leaving:
            if other == id and self._pending.pending[other] == key and not fresh:
                del self._pending.pending[other]  # its game has replaced it
            else:
                self._forget(other)
        if fresh:
            self._table, self._sums = table, self._no_sums(table)
        self._cells[key] = cell
        self._pending.pending[id] = key
        if table.edges is None:
            return inner
        return Forecast.trusted(cells[0].copy(), cells[1].copy(), cells[3].copy(), inner.certificate, inner.explain)

    def _spread(self, table: CellTable, row: Array) -> tuple[Array, Array]:
        """The cells of a quantity (the last row is to be what is played) and in which bin each lies; none otherwise."""
        if not isinstance(self.space, OrderedSpace) or table.edges is None:
            return np.empty((4, 0)), np.empty((0, row.size))
        cells = cells_around(self.space, row, table.edges)
        bins: Array = np.eye(table.edges.size + 1)[np.searchsorted(table.edges, cells[1], side="left")]
        return np.vstack((cells, cells[2])), bins

    def _bounded(self, score: Score, table: CellTable) -> bool:
        """Tell whether the calibration bounds the regret by a score."""
        return self._of_events(score) and additive(score, table.events)

    def _known(self, table: CellTable, key: Key, expert: Array, played: Array) -> Array:
        """Bounds of a round before its outcome; see `_Cell`."""
        errors = table.errors(played)
        p, x, q = (table.chances(mass) for mass in (played, expert, table.cells.middle(key)))
        left, share = hat_weights(self.grid, p)
        bounds = np.zeros((2, len(self._scores)))
        for i, score in enumerate(self._scores):
            if self._bounded(score, table):
                heights = hat_heights(score, table.binary, self.grid)
                interpolated = (1.0 - share) * heights[left] + share * heights[left + 1]
                g_p, g_q, g_x = (slope(score, table.binary, each) for each in (p, q, x))
                excess = self._losses(score, table, played) - self._losses(score, table, expert)
                bounds[:, i] = (errors @ (g_p - interpolated + g_q - g_x)).max(), excess.max()
        return np.array([np.abs(errors).sum(axis=1).max(), *bounds.ravel()])

    @staticmethod
    def _losses(score: Score, table: CellTable, mass: Array) -> Array:
        """A score of probabilities for each event."""
        events = table.events
        if additive(score, events):
            return finite_score(score, CellGrid(events, events.cells), mass)
        p = forecast_on(events, mass)
        return np.array([number(score(p, events.value(k)), f"value of {score!r}") for k in range(events.cells)])

    @locked
    def update(self, y: Any, *, id: Hashable = None) -> None:
        """Settle the unnamed round, or a named one, with its outcome."""
        value = self.space.outcome(y, self.outside)
        cell = self._cells[self._pending.find(id)]
        own = _CellRound(**cell.game.rounds.find(id).attached)
        table = self._table
        assert table is not None
        k = table.outcome(value)
        excess = [self._excess_of(score, table, own, k, value) for score in self._scores]
        cell.game.rounds.settle(table.events.outcome(table.events.value(k)), id=id)
        del self._pending.pending[id]
        p, errors = table.chances(own.played), table.errors(own.played)[k]
        columns = np.arange(p.size)
        left, share = hat_weights(self.grid, p)
        for at, weight in ((left, 1.0 - share), (left + 1, share)):
            cell.weights[at, columns] += weight
            self._sums[at, columns] += weight * errors
        cell.known += own.known
        self._excess += excess
        self._rounds += 1

    def _excess_of(self, score: Score, table: CellTable, own: _CellRound, k: int, y: Any) -> float:
        """A score of what was played minus that of the expert."""
        if self._of_events(score):
            return float(self._losses(score, table, own.played)[k] - self._losses(score, table, own.expert)[k])
        left, right, expert, played = own.cells
        mine, theirs = (Forecast.trusted(left, right, mass, None) for mass in (played, expert))
        return score(mine, y) - score(theirs, y)

    @locked
    def drop(self, id: Hashable = None) -> None:
        """Forget a round whose outcome will never come."""
        self._pending.find(id)
        self._forget(id)

    def _forget(self, id: Hashable) -> None:
        key = self._pending.pending.pop(id)
        cell = self._cells[key]
        cell.game.rounds.drop(id)
        if not cell.game.pending and not cell.game.guarantee.rounds:
            del self._cells[key]
        if isinstance(self._bins, int) and not self._cells:
            self._table, self._sums = None, self._no_sums(None)

    @property
    @locked
    def pending(self) -> tuple[Hashable, ...]:
        """Ids of the pending rounds, the oldest first; None is the unnamed one."""
        return self._pending.ids

    # --- what was promised and what was kept
    @property
    def rounds(self) -> int:
        """Outcomes settled so far."""
        return self._rounds

    @property
    @locked
    def calibration_error(self) -> float:
        """C_T = sum over hats and events of | mean of w_v(p) (p - 1{event}) |."""
        return float(np.abs(self._sums).sum()) / max(self._rounds, 1)

    @property
    @locked
    def calibration_bound(self) -> float:
        """sum_j (T_j / T) R_j: what the promises of the forecasters say about C_T (lemma 3).

        R_j is what F_j promises for the Euclidean norm, times the root of the number of hats that it touched, or the
        largest mean of |p - y| that there could have been, if that is less.
        """
        total = 0.0
        for cell in self._cells.values():
            most = math.sqrt(np.count_nonzero(cell.weights)) * self._promised(cell)
            total += min(most, float(cell.known[0]))
        return _at_least(total / max(self._rounds, 1), self.calibration_error)

    def _promised(self, cell: _Cell) -> float:
        """What the forecaster of a cell promises about the norm of its sum of hats times errors."""
        guarantee = cell.game.guarantee
        return self._root * (guarantee.promised + guarantee.excess) * guarantee.rounds

    @locked
    def regret(self, score: Score | None = None) -> float:
        """Mean of score(p, y) - score(expert, y) so far, by one of the scores that are followed (the first)."""
        return float(self._excess[self._place(score)]) / max(self._rounds, 1)

    @locked
    def regret_bound(self, score: Score | None = None) -> float:
        """What is known about that regret, whatever the outcomes were (lemma 2); see the module's docstring.

        For each cell the norm of g_v - g(q_j) over the hats that were touched, times what F_j promises, plus the
        remainder; or the largest excess that there could have been, if that is less.
        """
        place = self._place(score)
        asked = self._scores[place]
        if not self._of_events(asked):
            raise TypeError(f"expected a score of the bins, such as Brier() or LogScore(), got {asked!r}")
        total = 0.0
        for key, cell in self._cells.items():
            table = self._table
            assert table is not None
            if not additive(asked, table.events):
                raise TypeError(
                    f"expected a score that is a sum over probabilities, such as Brier() or LogScore(), got {asked!r}"
                )
            q = table.chances(table.cells.middle(key))
            heights = hat_heights(asked, table.binary, self.grid)[:, None]
            apart = (heights - slope(asked, table.binary, q))[cell.weights > 0.0]
            bound = float(np.linalg.norm(apart)) * self._promised(cell) + float(cell.known[1 + place])
            total += min(bound, float(cell.known[1 + len(self._scores) + place]))
        return _at_least(total / max(self._rounds, 1), self.regret(score))

    def _place(self, score: Score | None) -> int:
        if score is None and self._scores:
            return 0
        if score not in self._scores:
            raise ValueError(f"expected one of the scores= of this object, {self._scores}, got {short(score)}")
        return self._scores.index(score)

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """The whole, in the form that other games have: miscalibration is C_T here, and promised the bound on it."""
        parts = {f"regret {score.name}": self.regret(score) for score in self._scores}
        games = [cell.game.guarantee for cell in self._cells.values()]
        rounds = max(self._rounds, 1)
        return Guarantee(
            self._rounds,
            self.calibration_error,
            self.calibration_bound,
            sum(own.held * own.rounds for own in games) / rounds if self._rounds else 1.0,
            {"calibration": self.calibration_error, **parts},
            sum(own.delay * own.rounds for own in games) / rounds,
        )

    @property
    @locked
    def cells(self) -> CellReport:
        """How the rounds are spread over the cells."""
        cells = Compositions.of(self._bins, self._resolution) if self._table is None else self._table.cells  # type: ignore[arg-type]
        rounds = {cells.name(key): cell.game.guarantee.rounds for key, cell in self._cells.items()}
        rounds = {name: count for name, count in rounds.items() if count}
        return CellReport(cells.total, len(rounds), cells.radius, rounds)

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Where a quantity is cut into bins; None for what is no quantity, and before a first forecast says where."""
        edges = None if self._table is None else self._table.edges
        return None if edges is None else tuple(edges.tolist())

    def __repr__(self) -> str:
        return f"PartitionedRecalibrator({self.space}, {self.guarantee})"


def _at_least(bound: float, value: float) -> float:
    """A bound, but for rounding."""
    return value if bound < value <= bound + ROUNDING * (1.0 + abs(value)) else bound
