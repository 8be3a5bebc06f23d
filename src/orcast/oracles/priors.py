"""Where a round's cells and its prior come from: around the expert, on a fixed grid, or the cells of a finite space."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.contexts import Known
from orcast.forecasts import forecast_on
from orcast.oracles import _axes, _cells, _finite, _rounds, _state
from orcast.oracles._finite import FiniteMemory, FiniteRound
from orcast.oracles._state import Round
from orcast.oracles.ordered import OrderedEngine, board_of, forecast_of, like
from orcast.oracles.terms import Terms
from orcast.payoffs import Board, Sum
from orcast.spaces import Binary, FiniteSpace

Array = NDArray[np.float64]


class Prior(Protocol):
    """The cells of a round, what is expected on them before the ledger has its say, and what is learnt from outcomes.

    `recell` gives a second set of cells, for rounds that fail on the first, where there is one.
    """

    cells: int  # how many there are at most

    def open(self, experts: Array | None, pending: float) -> tuple[Any, Array]:
        """A round with its cells, and the prior on them."""
        ...

    def recell(self, rnd: Any, mix: Array) -> tuple[Any, Array] | None:
        """The same on other cells, where there are some worth a try."""
        ...

    def cool(self, rnd: Any) -> None:
        """Forget how what is played differs from the prior, for other rounds have other cells."""
        ...

    def board(self, rnd: Any, features: Any) -> Board:
        """The cells as payoffs see them."""
        ...

    def warm(self, rnd: Any, log_mix: Array) -> Array:
        """Log masses to start a search at."""
        ...

    def played(self, rnd: Any) -> Array:
        """The masses played."""
        ...

    def keep(self, rnd: Any, p: Array, mix: Array) -> None:
        """Remember what is played, and how it differs from the prior."""
        ...

    def near(self, rnd: Any, y: Any) -> Any:
        """The outcome, clipped to the window of the round where there is one."""
        ...

    def place(self, rnd: Any, y: Any) -> int:
        """The cell of an outcome."""
        ...

    def teach(self, rnd: Any, y: Any, k: int) -> None:
        """Learn from an outcome."""
        ...

    def known(self, terms: Terms, experts: Array | None, features: Any, rounds: int) -> Known:
        """What contexts may look at."""
        ...

    def forecast(self, rnd: Any, certificate: Any, why: Any) -> Any:
        """What users see."""
        ...

    def memory(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        ...

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take it over."""
        ...

    def restored(self, arrays: dict[str, NDArray[Any]]) -> Any:
        """A waiting round."""
        ...


class OrderedPrior:
    """Cells and prior on ordered spaces: the compiled committee, without a payoff of its own."""

    def __init__(self, terms: Terms, temperature: float, learners: Array, members: Array) -> None:
        bare = Terms(terms.space, Sum(()), terms.experts, None)
        jumps = [part.jumps for part in terms.parts if part.jumps.size]
        self.engine = OrderedEngine(bare, temperature=temperature, learners=learners, members=members)
        if jumps:
            self.engine.cut_at(np.unique(np.concatenate(jumps)))
        self.space = self.engine.space
        self.cells = self.engine.capacity

    def open(self, experts: Array | None, pending: float) -> tuple[Round, Array]:
        """A round with its cells, and the prior on them."""
        rnd = self.engine.new_page().round
        mix = np.empty(self.engine.capacity)
        _rounds.open_round(
            self.engine.rules, self.engine.memory, self.engine.experts_or_own(experts), pending, rnd, mix
        )
        return rnd, mix[: int(rnd.info[_state.CELLS])].copy()

    def recell(self, rnd: Round, mix: Array) -> tuple[Round, Array]:
        """The same on even cells."""
        even = Round(**{name: array.copy() for name, array in rnd._asdict().items()})
        room = np.empty(self.engine.capacity)
        room[: mix.size] = mix
        _rounds.recell(self.engine.rules, self.engine.memory, even, room)
        return even, room[: int(even.info[_state.CELLS])].copy()

    def cool(self, rnd: Round) -> None:
        """No tilt on cells that no other round has."""
        rnd.cells[_state.TILT] = 0.0

    def board(self, rnd: Round, features: Any) -> Board:
        """The cells as payoffs see them."""
        return board_of(self.space, rnd, features)

    def warm(self, rnd: Round, log_mix: Array) -> Array:
        """Where to start."""
        start = log_mix.copy()
        start[rnd.slots] = log_mix[rnd.slots] + self.engine.memory.warm
        return start

    def played(self, rnd: Round) -> Array:
        """The masses played, to be written or read."""
        return rnd.cells[_state.PLAYED, : int(rnd.info[_state.CELLS])]

    def keep(self, rnd: Round, p: Array, mix: Array) -> None:
        """Remember what is played, and how it differs from the prior."""
        n = p.size
        rnd.cells[_state.PLAYED, :n] = p
        tilt = np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(mix, 1e-300))
        rnd.cells[_state.TILT, :n] = np.clip(tilt, -6.0, 6.0)

    def near(self, rnd: Round, y: float) -> float:
        """The outcome clipped to the window of the round."""
        return min(max(y, float(rnd.info[_state.LOW])), float(rnd.info[_state.HIGH]))

    def place(self, rnd: Round, y: float) -> int:
        """The cell of an outcome."""
        near = self.near(rnd, y)
        n = int(rnd.info[_state.CELLS])
        return int(_cells.locate(near, rnd.cells[_state.LEFT], rnd.cells[_state.RIGHT], n))

    def teach(self, rnd: Round, y: float, k: int) -> None:
        """Learn from an outcome."""
        memory = self.engine.memory
        memory.account[_ledger.ROUNDS] += 1.0
        _rounds.teach(self.engine.rules, memory, rnd, y)

    def known(self, terms: Terms, experts: Array | None, features: Any, rounds: int) -> Known:
        """What contexts may look at."""
        return self.engine.known(experts, features, terms, rounds)

    def forecast(self, rnd: Round, certificate: Any, why: Any) -> Any:
        """What users see."""
        return forecast_of(self.space, rnd.cells, int(rnd.info[_state.CELLS]), certificate, why)

    def memory(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return self.engine.arrays()

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take it over."""
        self.engine.restore(arrays)

    def restored(self, arrays: dict[str, NDArray[Any]]) -> Round:
        """A waiting round."""
        rnd = self.engine.new_page().round
        for name, mine in rnd._asdict().items():
            mine[...] = like(name, arrays[name], mine, missing=name == "experts")
        n = rnd.info[_state.CELLS]
        if not (n == int(n) and 1 <= n <= self.engine.capacity and ((rnd.slots >= 0) & (rnd.slots < n)).all()):
            raise ValueError(f"a waiting round has {n} cells")
        return rnd


class GridPrior:
    """The same cells in every round, whatever the expert says: even ones, as the paper has them, or given ones.

    Without bounds there is no fixed grid; there the cells divide the round's window evenly.
    """

    def __init__(self, terms: Terms, count: int, edges: Array | None = None) -> None:
        nobody = np.empty((0, 2)), np.empty((0, 3))
        self.around = OrderedPrior(terms, 1.0, *nobody)
        engine = self.around.engine
        self.edges: Array | None = None
        bounded = math.isfinite(engine.space.high - engine.space.low)
        if edges is not None or bounded:
            even = np.linspace(engine.space.low, engine.space.high, count + 1) if edges is None else edges
            # an edge that comes twice is an atom; jumps are cut in where there is no edge yet
            self.edges = np.sort(np.concatenate((even, np.setdiff1d(engine.rules.jumps, even))))
            # cells around the expert are cut at the same places, so that nothing is smeared when they are joined
            engine.cut_at(np.unique(self.edges[1:-1]))
            count = self.edges.size - 1
            even_steps = edges is None and not (np.diff(even) > 0.0).all()
            if even_steps or count > engine.capacity:
                raise ValueError(f"expected an interval wide enough for {count} cells, got {engine.space!r}")
        self.count = min(count, engine.space.cells)
        self.cells = count if self.edges is not None else self.count

    def open(self, experts: Array | None, pending: float) -> tuple[Round, Array]:
        """A round with its cells, and the expert on them."""
        rnd, mix = self.around.open(experts, pending)
        old = rnd.cells.copy()
        n = int(rnd.info[_state.CELLS])
        edges = self.edges
        if edges is None:
            edges = np.linspace(rnd.info[_state.LOW], rnd.info[_state.HIGH], self.count + 1)
        count = edges.size - 1
        rows = rnd.cells
        rows[_state.LEFT, :count], rows[_state.RIGHT, :count] = edges[:-1], edges[1:]
        left, right = rows[_state.LEFT], rows[_state.RIGHT]
        carried = [rows[_state.PRIOR], rows[_state.EXPERT], *rnd.rivals]
        for row, source in zip(carried, [old[_state.PRIOR], old[_state.EXPERT], *rnd.rivals.copy()], strict=True):
            _cells.rebin(n, old[_state.LEFT], old[_state.RIGHT], source, count, left, right, row)
        on_grid = np.empty(count)
        _cells.rebin(n, old[_state.LEFT], old[_state.RIGHT], mix, count, left, right, on_grid)
        rnd.info[_state.CELLS], rnd.info[_state.REGULAR] = count, 0.0
        rnd.slots[:] = np.minimum(np.arange(rnd.slots.size), count - 1)
        return rnd, on_grid

    def recell(self, rnd: Round, mix: Array) -> None:
        """There is one grid."""

    def cool(self, rnd: Round) -> None:
        """Nothing to forget."""

    def board(self, rnd: Round, features: Any) -> Board:
        """The cells as payoffs see them."""
        return self.around.board(rnd, features)

    def warm(self, rnd: Round, log_mix: Array) -> Array:
        """Where to start: the prior."""
        return log_mix

    def played(self, rnd: Round) -> Array:
        """The masses played."""
        return self.around.played(rnd)

    def keep(self, rnd: Round, p: Array, mix: Array) -> None:
        """Remember what is played."""
        self.around.played(rnd)[:] = p

    def near(self, rnd: Round, y: float) -> float:
        """The outcome clipped to the window of the round."""
        return self.around.near(rnd, y)

    def place(self, rnd: Round, y: float) -> int:
        """The cell of an outcome."""
        return self.around.place(rnd, y)

    def teach(self, rnd: Round, y: float, k: int) -> None:
        """Learn the expert's usual loss."""
        self.around.teach(rnd, y, k)

    def known(self, terms: Terms, experts: Array | None, features: Any, rounds: int) -> Known:
        """What contexts may look at."""
        return self.around.known(terms, experts, features, rounds)

    def forecast(self, rnd: Round, certificate: Any, why: Any) -> Any:
        """What users see."""
        return self.around.forecast(rnd, certificate, why)

    def memory(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return self.around.memory()

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take it over."""
        self.around.restore(arrays)

    def restored(self, arrays: dict[str, NDArray[Any]]) -> Round:
        """A waiting round."""
        return self.around.restored(arrays)


class FinitePrior:
    """The prior on finite spaces: learners that temper and shift the expert's log masses, and the expert."""

    def __init__(self, terms: Terms, members: Array) -> None:
        assert isinstance(terms.space, FiniteSpace)
        self.space, self.members = terms.space, members
        self.experts, self.cells = len(terms.experts), self.space.cells
        count, cells = len(members), self.space.cells
        self._memory = FiniteMemory(
            np.zeros(count),
            np.zeros(count),
            np.zeros((count, cells)),
            np.zeros((count, cells)),
            np.zeros(count + 1),
            np.zeros(self.experts),
            np.zeros(cells),
        )
        self._axes = _axes.new_memory(_axes.axes_of(self.space) if count else 0)
        self._last_error = np.zeros(1)
        self._none = np.empty((0, cells))

    def _new_round(self) -> FiniteRound:
        cells = self.space.cells
        return FiniteRound(
            np.full((self.experts, cells), np.nan),
            np.zeros(cells),
            np.zeros((len(_axes.KEEPS) if self._axes.last.size else 0, cells)),
            np.zeros(cells),
            np.zeros((len(self.members), cells)),
            np.zeros(cells),
            np.zeros(cells),
            np.zeros(_finite.INFO_SIZE),
        )

    def open(self, experts: Array | None, pending: float) -> tuple[FiniteRound, Array]:
        """A round, and its prior."""
        rnd = self._new_round()
        _finite.pool_experts(self._memory, self._none if experts is None else experts, pending, rnd)
        if experts is not None and len(rnd.moved):
            rnd.moved[:] = _axes.corrected(self.space, self._axes, rnd.pool)
            rnd.base[:] = _axes.mixed(self._axes, rnd.moved, rnd.pool, pending)
        _finite.mix_members(self.members, self._memory, pending, rnd)
        return rnd, rnd.mix.copy()

    def recell(self, rnd: FiniteRound, mix: Array) -> None:
        """There are no other cells."""

    def cool(self, rnd: FiniteRound) -> None:
        """Nothing to forget."""

    def board(self, rnd: FiniteRound, features: Any) -> Board:
        """The cells as payoffs see them."""
        return Board(self.space, self.space.cells, expert=rnd.pool, experts=rnd.experts, features=features)

    def warm(self, rnd: FiniteRound, log_mix: Array) -> Array:
        """Where to start."""
        value: Array = log_mix + self._memory.warm
        return value

    def played(self, rnd: FiniteRound) -> Array:
        """The masses played."""
        return rnd.played

    def keep(self, rnd: FiniteRound, p: Array, mix: Array) -> None:
        """Remember what is played."""
        rnd.played[:] = p

    def near(self, rnd: FiniteRound, y: Any) -> Any:
        """The outcome as it is."""
        return y

    def place(self, rnd: FiniteRound, y: Any) -> int:
        """The cell of an outcome."""
        return self.space.cell(y)

    def teach(self, rnd: FiniteRound, y: Any, k: int) -> None:
        """Learn from an outcome."""
        if isinstance(self.space, Binary):
            self._last_error[0] = k - rnd.played[1]
        if rnd.info[_finite.HAS_EXPERT] and len(rnd.moved):
            pending = float(rnd.info[_finite.PENDING])
            _axes.learn(self.space, self._axes, rnd.moved, rnd.pool, np.asarray(y), k, pending)
        _finite.teach(self.members, self._memory, rnd, k)

    def known(self, terms: Terms, experts: Array | None, features: Any, rounds: int) -> Known:
        """What contexts may look at."""
        if terms.plain:
            return Known(features)
        level = math.nan
        if experts is not None and terms.needs_expert:
            mean = np.nanmean(experts, axis=0)
            level = float(mean[1] if isinstance(self.space, Binary) else mean.max())
        last = float(self._last_error[0]) if rounds and isinstance(self.space, Binary) else math.nan
        if terms.needs_last and not isinstance(self.space, Binary):
            raise TypeError(f"expected a space of numbers for by_last_error(), got {self.space!r}")
        return Known(features, level, math.nan, last)

    def forecast(self, rnd: FiniteRound, certificate: Any, why: Any) -> Any:
        """What users see."""
        return forecast_on(self.space, rnd.played.copy(), certificate, why)

    def memory(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        axes = {f"axes_{name}": array for name, array in self._axes._asdict().items()}
        return {**self._memory._asdict(), **axes, "last_error": self._last_error}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take it over."""
        for name, mine in self.memory().items():
            mine[...] = like(name, arrays[name], mine)

    def restored(self, arrays: dict[str, NDArray[Any]]) -> FiniteRound:
        """A waiting round."""
        rnd = self._new_round()
        for name, mine in rnd._asdict().items():
            mine[...] = like(name, arrays[name], mine, missing=name == "experts")
        return rnd
