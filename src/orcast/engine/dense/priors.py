"""Cells of a round, prior masses on them, and learning from outcomes.

Cells are around the expert, on a fixed grid, or those of a finite space.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import MAX_TILT
from orcast.engine import admissible
from orcast.engine.bound_payoff import NO_LEARNING, BoundPayoff, Learning
from orcast.engine.dense import axes
from orcast.engine.finite import FiniteEngine
from orcast.engine.ordered import EXPERT, LEFT, PLAYED, PRIOR, RIGHT, TILT, OrderedEngine, cell_grid_of
from orcast.forecasts import FiniteForecast, Forecast, forecast_on
from orcast.kernels import finite_members, records
from orcast.kernels import rounds as round_kernels
from orcast.kernels.cells import rebin_arrays
from orcast.kernels.finite_state import FiniteRound
from orcast.kernels.state import Round
from orcast.ledger import Certificate
from orcast.payoffs import CellGrid, Sum
from orcast.spaces import FiniteSpace

Array = NDArray[np.float64]

# Columns of the numbers of a round that are written here.
CELLS = records.INFO.index("cells")
PENDING, HAS_EXPERT = records.INFO.index("pending"), records.INFO.index("has_expert")
# Share of uniform masses in a prior on cells that are not around the expert; as in `kernels.rounds`.
EVEN_SHARE = 0.01


def on_edges(round: Round, mix: Array, edges: Array) -> tuple[Round, Array]:
    """Round and its prior on other cells between the same ends; a repeated edge is an atom."""
    found = round.copied()
    n, count = round.count(), edges.size - 1
    old, rows = round.view("cells"), found.view("cells")
    left, right = rows[LEFT, :count], rows[RIGHT, :count]
    left[:], right[:] = edges[:-1], edges[1:]

    def carried(masses: Array) -> Array:
        out = np.empty(count)
        rebin_arrays(n, old[LEFT], old[RIGHT], masses, count, left, right, out)
        return out

    for row in (PRIOR, EXPERT):
        rows[row, :count] = carried(old[row])
    rivals = found.view("rivals")
    for e, masses in enumerate(round.view("rivals")):
        rivals[e, :count] = carried(masses)
    found.view("info")[CELLS] = count
    return found, carried(mix)


class OrderedPrior:
    """Cells and prior on ordered spaces: the compiled committee with an empty payoff."""

    recells = True  # rounds that fail on the first cells are solved on others

    def __init__(self, bound_payoff: BoundPayoff, temperature: float, learning: Learning) -> None:
        bare = BoundPayoff(bound_payoff.space, Sum(()), bound_payoff.experts, None)
        jumps = [part.jumps for part in bound_payoff.parts if part.jumps.size]
        self.engine = OrderedEngine(bare, temperature=temperature, learning=learning)
        if jumps:
            self.engine.cut_at(np.unique(np.concatenate(jumps)))
        self.space = self.engine.space
        self.cells = self.engine.capacity
        self._ends = self.space.low == -math.inf, self.space.high == math.inf

    def open(self, experts: Array | None, pending: float, number: float = 0.0) -> tuple[Round, Array]:
        """Start a round with its cells and the prior on them."""
        engine, mix = self.engine, np.empty(self.engine.capacity)
        rows, context = engine.experts_or_own(experts), engine.context(experts, None)
        prior, memo = engine.committee_quantiles(experts, rows, number)
        round = round_kernels.predict(
            engine.rules, engine.memory, rows, prior, experts is None, pending, 0.0, context, 0.0, mix
        )
        round.memo = memo
        return round, mix[: round.count()].copy()

    def recell(self, round: Round, mix: Array, coarse: Array | None = None) -> tuple[Round, Array]:
        """Round and prior on cells of equal width, or on narrower cells where those of the round are too `coarse`.

        On unbounded spaces they are equal near the expert, and grow with the distance from it.
        """
        low, high = round.read("info", "low"), round.read("info", "high")
        middle, unit = 0.5 * (low + high), math.inf
        if not math.isfinite(self.space.high - self.space.low):
            raw = round.view("experts")[0]
            middle = float(raw[raw.size // 2])
            unit = max(float(raw[-1] - raw[0]), 1e-9 * abs(middle), 1e-100 * (high - low))

        def stretched(y: Array) -> Array:
            return np.arcsinh((y - middle) / unit) if unit < math.inf else y

        places = stretched(np.array([low, high]))
        shares = np.array([0.0, 1.0])
        if coarse is not None:
            left, right = round.cell_rows()[[LEFT, RIGHT]]
            wide = right > left
            own = coarse[wide] / coarse[wide].sum() + 1.0 / wide.sum()
            places = stretched(np.append(left[wide], high))
            shares = np.append(0.0, np.cumsum(own)) / own.sum()
        edges = np.interp(np.linspace(0.0, 1.0, self.space.cells - 3), shares, places)
        if unit < math.inf:
            edges = middle + unit * np.sinh(edges)
        edges = np.unique(np.concatenate((edges[1:-1], self.engine.rules.options["jumps"])))
        # an atom at each end
        inside = edges[(edges > low) & (edges < high)]
        even, even_mix = on_edges(round, mix, np.concatenate(((low, low), inside, (high, high))))
        n = even_mix.size
        for masses in (even_mix, even.view("cells")[PRIOR, :n]):
            masses += EVEN_SHARE * (1.0 / n - masses)
        return even, even_mix

    def cell_grid(self, round: Round, features: Any) -> CellGrid:
        """Cells as payoffs use them."""
        return cell_grid_of(self.space, round, features)

    def warm_start(self, round: Round, log_mix: Array) -> Array:
        """Initial log masses of a search."""
        value: Array = log_mix + self.engine.memory.view("warm")[: log_mix.size]
        return value

    def result(self, round: Round) -> Array:
        """Masses of the forecast, writeable."""
        return round.view("cells")[PLAYED, : round.count()]

    def store(self, round: Round, p: Array, mix: Array) -> None:
        """Store the forecast and its difference from the prior."""
        n, cells = p.size, round.view("cells")
        cells[PLAYED, :n] = p
        tilt = np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(mix, 1e-300))
        cells[TILT, :n] = np.clip(tilt, -MAX_TILT, MAX_TILT)

    def near(self, round: Round, y: float) -> float:
        """Outcome clipped to the window of the round."""
        return min(max(y, round.read("info", "low")), round.read("info", "high"))

    def place(self, round: Round, y: float) -> int:
        """Cell of an outcome."""
        return round_kernels.cell_of(round, self.near(round, y))

    def learn(self, round: Round, y: float, k: int, late: float = 0.0) -> None:
        """Learn from an outcome."""
        round_kernels.learn_only(self.engine.rules, self.engine.memory, round, y)
        self.engine.learn(round, y, late)

    def forecast(self, round: Round, certificate: Certificate) -> Forecast | FiniteForecast:
        """Public forecast of a round."""
        return Forecast.issued(round, self._ends, certificate)

    def memory(self) -> dict[str, Array]:
        """State of the prior."""
        return self.engine.arrays()

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the state."""
        self.engine.restore(arrays)


class GridPrior(OrderedPrior):
    """Prior on fixed cells that do not depend on the expert: equal ones, as in the paper, or given ones.

    On unbounded spaces the cells divide the round's window equally.
    """

    recells = False

    def __init__(self, bound_payoff: BoundPayoff, count: int, edges: Array | None = None) -> None:
        super().__init__(bound_payoff, 1.0, NO_LEARNING)
        engine = self.engine
        self.edges: Array | None = None
        bounded = math.isfinite(engine.space.high - engine.space.low)
        if edges is not None or bounded:
            even = np.linspace(engine.space.low, engine.space.high, count + 1) if edges is None else edges
            # a repeated edge is an atom; jumps become edges
            self.edges = np.sort(np.concatenate((even, np.setdiff1d(engine.rules.options["jumps"], even))))
            # cells around the expert have the same edges, so that joining them is exact
            engine.cut_at(np.unique(self.edges[1:-1]))
            count = self.edges.size - 1
            even_steps = edges is None and not (np.diff(even) > 0.0).all()
            if even_steps or count > engine.capacity:
                raise ValueError(f"expected an interval wide enough for {count} cells, got {engine.space!r}")
        self.count = min(count, engine.space.cells)
        self.cells = count if self.edges is not None else self.count

    def open(self, experts: Array | None, pending: float, number: float = 0.0) -> tuple[Round, Array]:
        """Start a round with its cells and the expert on them."""
        round, mix = super().open(experts, pending, number)
        edges = self.edges
        if edges is None:
            edges = np.linspace(round.read("info", "low"), round.read("info", "high"), self.count + 1)
        return on_edges(round, mix, edges)

    def warm_start(self, round: Round, log_mix: Array) -> Array:
        """Initial log masses of a search: the prior."""
        return log_mix

    def store(self, round: Round, p: Array, mix: Array) -> None:
        """Write the masses of the forecast."""
        self.result(round)[:] = p


class FinitePrior:
    """Prior on finite spaces: the members of the compiled engine with an empty payoff.

    On spaces with axes, each expert shifted along them is an additional member.
    """

    recells = False

    def __init__(self, bound_payoff: BoundPayoff, members: Array) -> None:
        assert isinstance(bound_payoff.space, FiniteSpace)
        self.space, self.cells = bound_payoff.space, bound_payoff.space.cells
        bare = BoundPayoff(bound_payoff.space, Sum(()), bound_payoff.experts, None)
        self._axes = axes.new_memory(axes.axes_of(self.space) if len(members) else 0, len(bare.experts))
        moved = int(self._axes.shift.size > 0)
        self.engine = FiniteEngine(bare, temperature=1.0, members=members, two_cells=False, moved=moved)

    def open(self, experts: Array | None, pending: float, number: float = 0.0) -> tuple[FiniteRound, Array]:
        """Start a round with its prior."""
        round = FiniteRound(self.engine.rules)
        info, given, pool, prior = map(round.view, ("info", "experts", "pool", "prior"))
        info[PENDING] = pending
        if experts is None:
            given[:] = np.nan
            for masses in (pool, prior):
                masses[:] = 1.0 / self.cells
            return round, prior.copy()
        info[HAS_EXPERT] = 1.0
        given[:] = experts
        for e in self._moved(given):
            round.view("members")[e, 1] = axes.corrected(self.space, self._axes, e, given[e])
        finite_members.committee_round(self.engine.state, round)
        return round, prior.copy()

    def _moved(self, experts: Array) -> list[int]:
        """Present experts that are shifted along axes."""
        return np.flatnonzero(~np.isnan(experts[:, 0])).tolist() if self._axes.shift.size else []

    def cell_grid(self, round: FiniteRound, features: Any) -> CellGrid:
        """Cells as payoffs use them."""
        pool, experts = round.view("pool"), round.view("experts")
        return CellGrid(self.space, self.space.cells, expert=pool, experts=experts, features=features)

    def warm_start(self, round: FiniteRound, log_mix: Array) -> Array:
        """Initial log masses of a search."""
        value: Array = log_mix + self.engine.state.view("warm")
        return value

    def result(self, round: FiniteRound) -> Array:
        """Masses of the forecast."""
        return round.view("result")

    def store(self, round: FiniteRound, p: Array, mix: Array) -> None:
        """Store the forecast."""
        round.view("result")[:] = p

    def near(self, round: FiniteRound, y: Any) -> Any:
        """Outcome, unchanged."""
        return y

    def place(self, round: FiniteRound, y: Any) -> int:
        """Cell of an outcome."""
        return self.space.cell(y)

    def learn(self, round: FiniteRound, y: Any, k: int, late: float = 0.0) -> None:
        """Learn from an outcome."""
        state, pending = self.engine.state, round.read("info", "pending")
        result, prior, experts = map(round.view, ("result", "prior", "experts"))
        state.view("last")[0] = k - result[1]
        tilt = np.log(np.maximum(result, 1e-300)) - np.log(np.maximum(prior, 1e-300))
        state.view("warm")[:] = np.clip(tilt, -MAX_TILT, MAX_TILT)
        if not round.read("info", "has_expert"):
            return
        for e in self._moved(experts):
            axes.learn(self.space, self._axes, e, experts[e], np.asarray(y), pending)
        finite_members.teach_round(state, round, k)

    def forecast(self, round: FiniteRound, certificate: Certificate) -> Forecast | FiniteForecast:
        """Public forecast of a round."""
        return forecast_on(self.space, round.view("result").copy(), certificate)

    def memory(self) -> dict[str, Array]:
        """State of the prior."""
        return {**self.engine.arrays(), **{f"axes_{name}": array for name, array in self._axes._asdict().items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the state."""
        self.engine.restore(arrays)
        memory = {f"axes_{name}": array for name, array in self._axes._asdict().items()}
        admissible.restore_fields(memory, arrays)


Prior = OrderedPrior | FinitePrior
