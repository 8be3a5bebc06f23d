"""PartitionedRecalibrator: a calibrated forecaster for each cell of what an expert may forecast (paper, appendix D).

For a proper score let g be minus the slope of what it expects of itself (2 p for the Brier score, log p for the log
score).  Concavity says that for all forecasts p and x and every outcome

    score(p, y) - score(x, y)  <=  sum_k (g(p_k) - g(x_k)) (p_k - 1{y = k})                                 (excess)

so regret is an error of calibration, seen through g.  Hats w_v add up to one, so g(p) is sum_v w_v(p) g_v but for a
remainder; x is the middle q_j of its cell but for another.  With S_j = the sum over the rounds of cell j of
w_v(p_k) (p_k - 1{y = k}), which its forecaster keeps below T_j R_j in norm, Cauchy and Schwarz give

    T regret  <=  sum_j ||g_v - g(q_jk)|| T_j R_j  +  sum_t max_y sum_k r_tk (p_tk - 1{y = k}),
                  r = g(p) - sum_v w_v(p) g_v + g(q_j) - g(x)

and all of the right side is known before the outcomes.  Since the hats are not indicators, and the sum over all of them
is bounded at once, neither the paper's factor 1 / epsilon of lemma 2 nor the epsilon of lemma 3 is needed.

*Any proper score.*  (excess) holds for every one, with g_k(p) = -score(p, k): the score of y is <score(p, .), e_y>, and
<score(p, .) - score(x, .), p> <= 0 because it is proper.  This g_k depends on all of p, so hats of p_k alone do not do.
With the barycentric weights lambda_v(p) in a triangulation of the simplex instead of the hats of each probability, the
same steps bound the regret of every bounded proper score: S_j is then the sum of lambda_v(p) (p - e_y), which
`SimplexCalibration` keeps small, and g_v = g(v).
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters import expert_row
from orcast.engine import Equilibrium, Oracle
from orcast.engine.admissible import ANY, COUNTED, MASS, Fields, Range, check_masses
from orcast.forecasts import Forecast
from orcast.game import Forecaster
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.paper.partition.cells import (
    MOST_CELLS,
    CellTable,
    Compositions,
    Key,
    ProbabilityBins,
    cells_around,
    checked_bins,
    compositions,
)
from orcast.paper.partition.scores import Followed, WeightFunctions
from orcast.payoffs import BinaryCalibration, LabelCalibration, Payoff
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.triangulated import SimplexCalibration
from orcast.persistence import files as storage
from orcast.persistence.kinds import oracle_from_plain
from orcast.persistence.state import inside, reading
from orcast.rounds import MOST_COUNTED, PendingById
from orcast.scores import CRPS, Brier, LogScore, Score, score_from_plain
from orcast.serialise import id_from_plain, plain_id
from orcast.spaces import Binary, Labels, OrderedSpace, Space, frozen, space_from_plain
from orcast.spaces.base import whole
from orcast.validation import short, warn_user

Array = NDArray[np.float64]

# The forecasters know nothing but the outcomes of their cell, so they are to listen to these.
TEMPERATURE = 2.0
# Ticks of the triangulation, unless others are given.
TICKS = 4
# Label by label, or given the whole distribution.
CALIBRATIONS = ("label", "distribution")
# A bound that rounding alone puts below what it bounds is equal to it.
ROUNDING = 1e-12


# --- what is remembered ---


@dataclass(slots=True)
class _Cell:
    """The forecaster of a cell, how often each hat was touched in it, and what was known before its outcomes.

    `known` is, summed over its rounds: the most that the errors of the probabilities could be; for each score the
    remainder of (excess), and the most that the excess could be.
    """

    game: Forecaster
    weights: Array
    known: Array


@dataclass(slots=True)
class _CellRound:
    """What is attached to a pending round of a cell: probabilities of the events, the expert's and as played.

    Also what is known of them (see `_Cell`), and for a quantity its cells: left and right ends, masses of the expert
    and as played.
    """

    expert: Array
    played: Array
    known: Array
    cells: Array


@dataclass(frozen=True)
class CellReport:
    """How the rounds are spread over the cells of the expert's forecasts.

    There are `total` cells, of which `visited` have had an outcome; `rounds` are theirs, by the middle of the
    cell.  An expert's probabilities are at most `radius` (in l1) from the middle of their cell.
    """

    total: int
    visited: int
    radius: float
    rounds: dict[Any, int] = field(default_factory=dict)


class PartitionedRecalibrator(Locked):
    """Calibrated forecasts with no regret against an expert, by a forecaster for each cell of its forecasts.

    The expert's forecast decides which forecaster F_j plays and learns (paper, appendix D).  Each F_j is a game of its
    own (`Forecaster` with `BinaryCalibration` or `LabelCalibration` of `grid` hats, played by `oracle`), which starts
    from the middle of its cell and sees nothing but the outcomes there.  On any sequence

        C_T       = sum_v | mean of w_v(p) (p - y) |    <=  sum_j (T_j / T) R_j                     (lemma 3)
        regret_T  = mean of score(p, y) - score(x, y)   <=  sum_j (T_j / T) c_j P_j + remainder     (lemma 2)

    with w_v the hats, T_j the rounds of cell j, x the expert, P_j what F_j promises about the Euclidean norm of its
    mean payoff, and R_j = sqrt(grid) P_j about its l1 norm.  `calibration_error`, `calibration_bound`, `regret`
    and `regret_bound` are these four; the bounds use all that was known before each outcome, such as which hats were
    touched.  On `Binary`, the last two for the Brier score,

        P_j <= sqrt(T_j + 64) / T_j,    c_j <= 2.1 sqrt(grid / 3),    remainder <= 1 / grid + 1 / cells.

    With K labels P_j has another factor sqrt(2), R_j = sqrt(K grid) P_j, c_j another sqrt(K), and the remainder is at
    most 2 / grid + sqrt(2 K) / cells.  For a log score clipped at c the g of this module's docstring runs from log c to
    0 with slopes up to 1 / c; its remainder is computed, and small only where hats and cells are narrow beside c.  By
    Jensen sum_j sqrt(T_j) <= sqrt(J T) if J cells are visited: the factor 1 / sqrt(epsilon) that the paper finds for
    equal T_j is the worst case, and no further factor 1 / epsilon is needed.

    **Cells.**  On `Binary` they are equal bins of the probability, which is within 1 / (2 cells) of their middle.  On
    `Labels` they are the vectors of K whole numbers that sum to `cells`; that of x is the nearest to cells x, found
    by largest remainders, and within K / (2 cells) of x in l1, sqrt(K) / (2 cells) in l2, once divided by cells.  There
    are (cells + K - 1 choose K - 1); more than 10,000 are refused.  Forecasters are made on the first visit.

    **Which scores.**  By default calibration is label by label, which is what scores that are sums over labels (Brier,
    log) need, and all proper scores on `Binary`.  With calibration="distribution" the forecasters are calibrated given
    all probabilities together (`SimplexCalibration` with `grid` ticks, 4 unless given), and `regret_bound` is there for
    every bounded proper score: a `Score` of your own, such as the spherical or the ranked one, is called with a
    forecast and an outcome.  Whether it is proper is looked at in every round.  The triangulation has (grid + K - 1
    choose K - 1) vertices, so this is for a few labels.

    **Quantities** (`Interval`, `Line`, `HalfLine`) are cut into `bins`: given by their inner edges, or by how
    many, and then at the quantiles at even levels of the first forecast, fixed from then on (equal ones count once).
    The probabilities of the bins are recalibrated as those of labels, and within a bin the forecast is the expert's
    own, as represented on cells: so the log density gains on the expert's just what the log probability of the bin
    gains, and nothing is promised about intervals that end inside a bin.  `Brier` and `LogScore` are those of the
    bins; regret by others, such as `CRPS`, is measured but not bounded.

    **Or a** `Recalibrator` **instead?**  That one keeps one ledger for all rounds, in which no-regret payoffs
    pull towards the expert, and spends the slack of its promise on accuracy: it corrects smoothly, learns from every
    round, and is usually the better choice.  The partition has no regret by every score of the kind at once, not
    only by those it follows, and is simple enough to check by hand.  For that it pays a factor 1 / sqrt(epsilon) in
    the rate, tells no two forecasts of a cell apart, and forgets what neighbouring cells have in common: each must
    learn for itself that the expert is too sure.

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
        calibration: str = "label",
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
        if calibration not in CALIBRATIONS:
            raise ValueError(f"expected 'label' or 'distribution' as calibration, got {short(calibration)}")
        self.calibration = calibration
        self._jointly = calibration == "distribution" and not isinstance(space, Binary)
        self._payoff = self._payoff_of(grid)
        self.grid: int = self._payoff.grid  # type: ignore[attr-defined]
        self.oracle: Oracle = Equilibrium(temperature=TEMPERATURE) if oracle is None else oracle
        self.outside = outside
        self.max_pending = max_pending
        self._resolution = cells
        self._bins = checked_bins(bins, space)
        self._table: CellTable | None = None
        kinds: tuple[Score, ...] = (Brier(), LogScore())
        if not isinstance(space, OrderedSpace):
            self._table = CellTable.of(space, cells)
        else:
            kinds = (*kinds, CRPS())
            if isinstance(self._bins, np.ndarray):
                self._table = CellTable.of_bins(self._bins, cells)
            elif self._bins is not None:
                compositions(self._bins, cells)
                self._payoff.on(Labels(range(self._bins)))
        if self._table is not None:
            self._payoff.on(self._table.events)
        asked = kinds if scores is None else (scores,) if isinstance(scores, Score) else scores
        self._followed = [self._follow(score) for score in asked]
        some = Binary() if isinstance(space, Binary) else Labels([0, 1])
        self._root = math.sqrt(self._payoff.on(some).bound)
        # a game says what is wrong with the other options
        Forecaster(some, self._payoff, oracle=oracle, outside=outside, max_pending=max_pending)
        self._cells: dict[Key, _Cell] = {}
        # the cell of each pending round; the round itself is pending in the game of its cell
        self._pending = PendingById[Key](max_pending)
        self._rounds = 0
        self._excess = np.zeros(len(self._followed))
        self._sums = self._no_sums(self._table)
        self._crossing_reported = False

    # --- what is played at
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

    def _payoff_of(self, grid: int | None) -> Payoff:
        """What the forecasters of the cells keep small."""
        if self._jointly:
            return SimplexCalibration(TICKS if grid is None else grid)
        hats = checked_grid(GRID if grid is None else grid)
        return BinaryCalibration(hats) if isinstance(self.space, Binary) else LabelCalibration(hats)

    def _functions(self, table: CellTable) -> WeightFunctions:
        return WeightFunctions(table, self.grid, self._jointly)

    def _no_sums(self, table: CellTable | None) -> Array:
        return np.zeros((0, 0) if table is None else (self._functions(table).size, table.count))

    def _new_cell(self, table: CellTable) -> _Cell:
        # this class drops rounds itself, so a game can always have one more
        game = Forecaster(table.events, self._payoff, oracle=self.oracle, max_pending=self.max_pending + 1)
        return _Cell(game, self._no_sums(table), np.zeros(1 + 2 * len(self._followed)))

    def _follow(self, score: object) -> Followed:
        if not isinstance(score, Score):
            raise TypeError(f"expected scores such as Brier() or LogScore(), got {short(score)}")
        of_bins = isinstance(self.space, OrderedSpace) and isinstance(score, (Brier, LogScore))
        if not of_bins:
            score.check(self.space)
        # other scores are of a quantity itself, not of its bins
        return Followed(score, of_bins or not isinstance(self.space, OrderedSpace), self.grid, self._jointly)

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
        if id is None:
            self._pending.check_unnamed()
        else:
            self._pending.check_new(id)
        if forecast is None:
            raise TypeError("expected a forecast, got None (a game without an expert is a Forecaster)")
        row, crossed = expert_row(forecast, self.space)
        leaving = self._pending.leaving(id)
        # a game that has not begun may still be cut elsewhere
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
        # a score of the user's own may fail
        was = cell.game.rounds.snapshot() if any(each.own for each in self._followed) else None
        inner = cell.game.predict(table.cells.start(key), id=id)
        played = np.array(inner.mass)
        try:
            known = self._known(table, key, expert, played)
        except BaseException:
            if was is not None:
                cell.game.rounds.restore(was)
            raise
        if table.edges is not None:
            cells[3] *= bins @ (played / expert)
            cells[3] /= cells[3].sum()
        own = _CellRound(expert, played, known, cells)
        cell.game.rounds.pending[id].attached = asdict(own)
        for other in leaving:
            if other == id and self._pending.pending[other] == key and not fresh:
                del self._pending.pending[other]  # its game has replaced it
            else:
                self._forget(other)
        if fresh:
            self._table, self._sums = table, self._no_sums(table)
        self._cells[key] = cell
        if id is None:
            self._pending.claim_unnamed()
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

    def _known(self, table: CellTable, key: Key, expert: Array, played: Array) -> Array:
        """What is known of a round before its outcome; see `_Cell`."""
        errors = table.errors(played)
        p, x, q = table.chances(played), table.chances(expert), table.chances(table.cells.middle(key))
        at, weights = self._functions(table).at(p)
        columns = np.arange(p.size)
        bounds = np.zeros((2, len(self._followed)))
        for i, each in enumerate(self._followed):
            score = each.on(table)
            if score is not None and score.rule is not None:
                interpolated = (weights * score.heights[at, columns]).sum(axis=0)
                rest = score.rule.slope(p) - interpolated + score.rule.slope(q) - score.rule.slope(x)
                bounds[:, i] = (errors @ rest).max(), score.excess(played, expert).max()
        return np.array([np.abs(errors).sum(axis=1).max(), *bounds.ravel()])

    @locked
    def update(self, y: Any, *, id: Hashable = None) -> None:
        """Settle the unnamed round, or a named one, with its outcome."""
        value = self.space.outcome(y, self.outside)
        if id is None:
            self._pending.check_unnamed()
        cell = self._cells[self._pending.find(id)]
        own = _CellRound(**cell.game.rounds.find(id).attached)
        table = self._table
        assert table is not None
        k = table.outcome(value)
        excess = self._excesses(own, k, value)
        cell.game.rounds.settle(table.events.outcome(table.events.value(k)), id=id)
        del self._pending.pending[id]
        if id is None:
            self._pending.release_unnamed()
        p, errors = table.chances(own.played), table.errors(own.played)[k]
        columns = np.arange(p.size)
        for at, weight in zip(*self._functions(table).at(p), strict=True):
            cell.weights[at, columns] += weight
            self._sums[at, columns] += weight * errors
        cell.known += own.known
        self._excess += excess
        self._rounds += 1

    def _excesses(self, own: _CellRound, k: int, y: Any) -> Array:
        """Each score of what was played minus that of the expert."""
        found = np.zeros(len(self._followed))
        assert self._table is not None
        for i, each in enumerate(self._followed):
            score = each.on(self._table)
            if score is not None:
                found[i] = score.losses(own.played)[k] - score.losses(own.expert)[k]
            else:
                left, right, expert, played = own.cells
                mine, theirs = (Forecast.trusted(left, right, mass, None) for mass in (played, expert))
                found[i] = each.score(mine, y) - each.score(theirs, y)
        return found

    @locked
    def drop(self, id: Hashable = None) -> None:
        """Forget a round whose outcome will never come."""
        if id is None:
            self._pending.check_unnamed()
        self._pending.find(id)
        if id is None:
            self._pending.release_unnamed()
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
        each = self._followed[place]
        if not each.of_events:
            raise TypeError(f"expected a score of the bins, such as Brier() or LogScore(), got {each.score!r}")
        total = 0.0
        for key, cell in self._cells.items():
            assert self._table is not None
            own = each.on(self._table)
            if own is None or own.rule is None:
                raise TypeError(
                    "expected a score that is a sum over probabilities, such as Brier() or LogScore(), or "
                    f"calibration='distribution', got {each.score!r}"
                )
            q = self._table.chances(self._table.cells.middle(key))
            apart = (own.heights - own.rule.slope(q))[cell.weights > 0.0]
            remainder = float(cell.known[1 + place])
            bound = float(np.linalg.norm(apart)) * self._promised(cell) + remainder
            total += min(bound, float(cell.known[1 + len(self._followed) + place]))
        return _at_least(total / max(self._rounds, 1), self.regret(score))

    def _place(self, score: Score | None) -> int:
        known = [each.score for each in self._followed]
        if score is None and known:
            return 0
        if score not in known:
            raise ValueError(f"expected one of the scores that are followed (scores=), {known}, got {short(score)}")
        return known.index(score)

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """The whole, in the form that other games have: miscalibration is C_T here, and promised the bound on it."""
        parts = {f"regret {each.score.name}": self.regret(each.score) for each in self._followed}
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
        if self._table is None:
            assert isinstance(self._bins, int)
            cells: ProbabilityBins | Compositions = compositions(self._bins, self._resolution)
        else:
            cells = self._table.cells
        rounds = {cells.name(key): cell.game.guarantee.rounds for key, cell in self._cells.items()}
        rounds = {name: count for name, count in rounds.items() if count}
        return CellReport(cells.total, len(rounds), cells.radius, rounds)

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Where a quantity is cut into bins; None for what is no quantity, and before a first forecast says where."""
        return None if self._table is None or self._table.edges is None else tuple(self._table.edges.tolist())

    def __repr__(self) -> str:
        return f"PartitionedRecalibrator({self.space}, {self.guarantee})"

    # --- state
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        storage.write(path, *self._state())

    @locked
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """A header of plain data, and named arrays: a copy."""
        games, arrays = [], {"sums": self._sums, "excess": self._excess}
        for place, (key, cell) in enumerate(self._cells.items()):
            rounds, pending = cell.game.rounds.to_plain()
            games.append([list(key), getattr(cell.game.engine, "sizes", None), rounds])
            own = {"weights": cell.weights, "known": cell.known}
            own |= {f"memory/{name}": array for name, array in cell.game.engine.arrays().items()}
            own |= {f"pending/{name}": array for name, array in pending.items()}
            arrays |= {f"cell/{place}/{name}": array for name, array in own.items()}
        places = {key: place for place, key in enumerate(self._cells)}
        edges = self.edges
        header = {
            "class": "PartitionedRecalibrator",
            "space": self.space.to_plain(),
            "cells": self._resolution,
            "bins": self._bins if self._bins is None or isinstance(self._bins, int) else self._bins.tolist(),
            "edges": None if edges is None else list(edges),
            "calibration": self.calibration,
            "grid": self.grid,
            "scores": [each.score.to_plain() for each in self._followed],
            "oracle": self.oracle.to_plain(),
            "outside": self.outside,
            "max_pending": self.max_pending,
            "rounds": self._rounds,
            "crossing_reported": self._crossing_reported,
            "games": games,
            "pending": [[plain_id(id), places[key]] for id, key in self._pending.pending.items()],
        }
        return header, {name: array.copy() for name, array in arrays.items()}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, scores: Iterable[Score] | None = None) -> PartitionedRecalibrator:
        """Continue from a file, as `Recalibrator.load` does; refuses what it cannot read, in one sentence.

        Scores of your own are not saved: give all scores again, in the same order.
        """
        given = None if scores is None else list(scores)
        with reading(path, cls.__name__) as (header, arrays):
            if given is not None and [score.to_plain() for score in given] != header["scores"]:
                raise ValueError(f"expected the scores {short(header['scores'])}, got {short(given)}")
            self = cls(
                space_from_plain(header["space"]),
                scores=[score_from_plain(score) for score in header["scores"]] if given is None else given,
                oracle=oracle_from_plain(header["oracle"]),
                calibration=header.get("calibration", "label"),
                **{name: header[name] for name in ("cells", "bins", "grid", "outside", "max_pending")},
            )
            self._restore(header, arrays)
        return self

    def _restore(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if isinstance(self._bins, int) and header["edges"] is not None:
            edges = checked_bins(header["edges"], self.space)
            assert isinstance(edges, np.ndarray)
            self._table = CellTable.of_bins(edges, self._resolution)
            self._sums = self._no_sums(self._table)
        self._rounds = whole(header["rounds"], "rounds", 0, MOST_COUNTED)
        self._crossing_reported = bool(header["crossing_reported"])
        own = {"sums": self._sums, "excess": self._excess}
        # no round adds more than 1 to a sum
        sums = Range(-(self._rounds + 1.0), self._rounds + 1.0)
        Fields(own, {"sums": sums, "excess": ANY}).copy_into(own, arrays)
        for place, (plain, sizes, rounds) in enumerate(header["games"]):
            key = tuple(int(n) for n in plain)
            if self._table is None or not self._table.cells.has(key):
                raise ValueError(f"there is no cell {key}")
            cell, own = self._new_cell(self._table), inside(arrays, f"cell/{place}/")
            mine = {"weights": cell.weights, "known": cell.known}
            Fields(mine, {"weights": COUNTED, "known": COUNTED}).copy_into(mine, own)
            cell.game.begin(cell.game.experts, sizes)
            cell.game.engine.restore(inside(own, "memory/"))
            cell.game.rounds.from_plain(rounds, inside(own, "pending/"))
            for entry in cell.game.rounds.pending.values():
                self._check_round(_CellRound(**entry.attached))
            self._cells[key] = cell
        keys = list(self._cells)
        self._pending.pending = {id_from_plain(id): keys[place] for id, place in header["pending"]}
        there = {id: key for key, cell in self._cells.items() for id in cell.game.pending}
        if there != self._pending.pending:
            raise ValueError("the pending rounds of the cells are not those of the whole")
        if self._rounds != sum(cell.game.guarantee.rounds for cell in self._cells.values()):
            raise ValueError("the rounds of the cells do not sum to those of the whole")
        if self.calibration_error > self.calibration_bound:
            raise ValueError("the error is larger than its bound")

    def _check_round(self, own: _CellRound) -> None:
        assert self._table is not None
        mass, known = np.empty(self._table.events.cells), np.empty(1 + 2 * len(self._followed))
        fields = Fields({"expert": mass, "played": mass, "known": known}, {"expert": MASS, "played": MASS})
        for name, array in (("expert", own.expert), ("played", own.played), ("known", own.known)):
            fields.checked(name, array)
        for name, array in (("expert", own.expert), ("played", own.played)):
            check_masses(f"{name} of a pending round", array)
        if own.cells.ndim != 2 or np.isnan(own.cells).any() or len(own.cells) != 4:
            raise ValueError("a pending round has no cells")
        left, right, *masses = own.cells
        if not ((left <= right).all() and (right[:-1] <= left[1:]).all() and (np.array(masses) >= 0.0).all()):
            raise ValueError("the cells of a pending round are not in order")


def _at_least(bound: float, value: float) -> float:
    """A bound, but for rounding."""
    return value if bound < value <= bound + ROUNDING * (1.0 + abs(value)) else bound
