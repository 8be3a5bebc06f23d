"""The dense engine: any payoff on any space, by the dense solver, under the same ledger and slack rule.

On ordered spaces the compiled committee supplies cells and prior, on finite ones a smaller committee the prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.contexts import Known
from orcast.forecasts import forecast_on
from orcast.ledger import Guarantee, Ledger
from orcast.oracles import _axes, _cells, _dense, _finite, _play, _rounds, _state
from orcast.oracles._finite import FiniteMemory, FiniteRound
from orcast.oracles._state import Round
from orcast.oracles.explain import Piece, explanation
from orcast.oracles.hand import STRICT_STEPS, Hand
from orcast.oracles.ordered import OrderedEngine, board_of, forecast_of, like
from orcast.oracles.terms import Terms
from orcast.payoffs import Board, Core, NoRegret, Sum
from orcast.payoffs.base import UNKNOWN
from orcast.payoffs.recipe import CustomCore
from orcast.payoffs.regret import LOSS_KEEP, RegretCore, loss_at
from orcast.spaces import Binary, FiniteSpace, OrderedSpace

Array = NDArray[np.float64]

EASY, EASY_STEPS = 0.01, 8
# Labels may be alike, cells of a line are not.
UNLIKE = 0.02


@dataclass(slots=True)
class DensePage:
    """A round that waits: its prior's arrays, its own, its features, and its cores (remade after a load)."""

    round: Any
    context: Array
    note: Array
    features: Any = None
    cores: list[Core] | None = None
    temperature: float = 0.0
    states: list[dict[str, Array]] | None = None  # what the parts remembered then: their cores depend on it

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it but the features."""
        own = {f"round/{name}": array for name, array in self.round._asdict().items()}
        for i, state in enumerate(self.states or []):
            own.update({f"part/{i}/{name}": array for name, array in state.items()})
        return {**own, "context": self.context, "note": self.note, "temperature": np.array([self.temperature])}


class OrderedPrior:
    """Cells and prior on ordered spaces: the compiled committee, without a payoff of its own."""

    def __init__(self, terms: Terms, temperature: float, learners: Array, members: Array) -> None:
        bare = Terms(terms.space, Sum(()), terms.experts, None)
        jumps = [part.jumps for part in terms.parts if part.jumps.size]
        self.engine = OrderedEngine(bare, temperature=temperature, learners=learners, members=members)
        if jumps:
            self.engine.cut_at(np.unique(np.concatenate(jumps)))
        self.space = self.engine.space

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


class FinitePrior:
    """The prior on finite spaces: learners that temper and shift the expert's log masses, and the expert."""

    def __init__(self, terms: Terms, members: Array) -> None:
        assert isinstance(terms.space, FiniteSpace)
        self.space, self.members = terms.space, members
        self.experts = len(terms.experts)
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


class DenseEngine:
    """Plays rounds of any payoff on any space."""

    def __init__(
        self,
        terms: Terms,
        *,
        temperature: float,
        learners: Array,
        members: Array,
        finite: Array,
        sizes: Sequence[int] | None = None,
    ) -> None:
        self.terms, self.space, self.temperature = terms, terms.space, temperature
        self.prior: Any
        if isinstance(terms.space, OrderedSpace):
            self.prior = OrderedPrior(terms, temperature, learners, members)
        else:
            self.prior = FinitePrior(terms, finite)
        self.states = [part.state() for part in terms.parts]
        self._ledger: Ledger | None = None
        self.sizes: list[int] | None = None
        known = [part.size for part in terms.parts] if sizes is None else list(sizes)
        if UNKNOWN not in known:
            self._make_ledger(known)

    def _make_ledger(self, sizes: Sequence[int]) -> None:
        self.sizes = [int(size) for size in sizes]
        self.cuts = np.concatenate(([0], np.cumsum(sizes)))
        places = [range(a, b) for a, b in pairwise(self.cuts)]
        self._ledger = Ledger(self.terms.layout(places), keep=self.terms.keep)

    @property
    def ledger(self) -> Ledger:
        """The ledger, once the sizes of all parts are known."""
        if self._ledger is None:
            raise ValueError("expected a first round, got none")
        return self._ledger

    # --- the round
    def predict(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, reserved: float = 0.0
    ) -> DensePage:
        """Play one round around the experts (or without any); nothing is remembered but the sizes of the parts."""
        if self._ledger is not None:
            return self._predict(experts, features, pending, reserved)
        try:
            return self._predict(experts, features, pending, reserved)
        except BaseException:
            # what a refused round said of the sizes does not count
            self.forget_sizes()
            raise

    def forget_sizes(self) -> None:
        """As before the first round, where its sizes were not known."""
        if UNKNOWN in [part.size for part in self.terms.parts]:
            self._ledger, self.sizes = None, None

    def _predict(self, experts: Array | None, features: Any, pending: float, reserved: float) -> DensePage:
        rounds = 0 if self._ledger is None else self._ledger.rounds
        context = self.terms.context(self.prior.known(self.terms, experts, features, rounds))
        rnd, mix = self.prior.open(experts, float(pending))
        cores = self._cores(rnd, features)
        states = [{name: array.copy() for name, array in state.items()} for state in self.states]
        page = DensePage(rnd, np.array(context), np.zeros(_ledger.NOTE_SIZE), features, cores, 0.0, states)
        self._play(page, mix, pending, reserved)
        if page.note[_ledger.HOLDS] == 0.0 and isinstance(self.prior, OrderedPrior):
            even, even_mix = self.prior.recell(rnd, mix)
            own = self._cores(even, features)
            other = DensePage(even, page.context, page.note.copy(), features, own, 0.0, states)
            self._play(other, even_mix, pending, reserved)
            if other.note[_ledger.HOLDS] > 0.0:
                even.cells[_state.TILT] = 0.0
                return other
        return page

    def _cores(self, rnd: Any, features: Any, states: list[dict[str, Array]] | None = None) -> list[Core]:
        board = self.prior.board(rnd, features)
        known = self.states if states is None else states
        cores = [part.core(board, state) for part, state in zip(self.terms.parts, known, strict=True)]
        if self.sizes is None:
            self._make_ledger([core.size for core in cores])
        assert self.sizes is not None
        for core, size, name in zip(cores, self.sizes, self.terms.names, strict=True):
            if core.size != size:
                raise ValueError(f"expected {size} coordinates of the payoff {name!r} in every round, got {core.size}")
        return cores

    def _play(self, page: DensePage, mix: Array, pending: float, reserved: float) -> None:
        """The equilibrium around the mix, as gentle as the slack rule lets it be; _play.play is the compiled one."""
        assert page.cores is not None
        hand = Hand(self.ledger, self.ledger.layout, page.cores, page.context, reserved, self.temperature)
        soft = (1.0 + pending) ** _play.SOFTEN
        usual = self.temperature * soft
        log_mix = np.log(np.maximum(mix, 1e-300))
        hand.rescale(mix)
        lp, error = hand.equilibrium(usual, log_mix, self.prior.warm(page.round, log_mix), EASY, EASY_STEPS, soft)
        if error > 10.0 * EASY:
            cold, cold_error = hand.equilibrium(usual, log_mix, log_mix, EASY, STRICT_STEPS, soft)
            if cold_error < error:
                lp = cold
        hand.consider(lp, usual)
        if hand.missing > 0.0:
            hand.descend(usual, log_mix, lp)
        board = self.prior.board(page.round, None)
        even = np.full(mix.size, -math.log(mix.size))
        expert = np.log(np.maximum(board.expert, 1e-12)) if board.expert.size else even
        for log_prior in (log_mix, even, expert):
            if hand.missing > 0.0 and mix.size <= _dense.MOST_CELLS:
                hand.follow(10.0 * usual, log_prior, 0.0 if board.ordered else UNLIKE)
            if hand.missing > 0.0 and log_prior is not log_mix:
                hand.descend(1e3 * min(usual, 10.0), log_prior, log_prior)
        p = np.exp(hand.best)
        p /= p.sum()
        for core in page.cores:
            if isinstance(core, CustomCore):
                core.check(p)
        page.temperature = hand.temperature
        page.note[:] = hand.note
        self.prior.keep(page.round, p, mix)

    def payoff(self, page: DensePage, y: Any) -> Array:
        """The core payoff that an outcome would book."""
        if page.cores is None:
            page.cores = self._cores(page.round, page.features, page.states)
        p = self.prior.played(page.round)
        k, near = self.prior.place(page.round, y), self.prior.near(page.round, y)
        return np.concatenate([core.booked(p, k, near) for core in page.cores])

    def update(self, page: DensePage, y: Any, *, reserved: float = 0.0) -> None:
        """Book the outcome of a round."""
        payoff = self.payoff(page, y)
        p = self.prior.played(page.round)
        k = self.prior.place(page.round, y)
        assert page.cores is not None
        cores = page.cores
        ledger = self.ledger
        _rounds.settle(
            ledger.layout,
            ledger.account,
            ledger.groups,
            ledger.total,
            page.context,
            ledger.keep,
            reserved,
            payoff,
            page.note,
        )
        board = self.prior.board(page.round, page.features)
        for part, core, state in zip(self.terms.parts, cores, self.states, strict=True):
            if isinstance(core, RegretCore):
                _learn_losses(core, state, p, k, y)
            if part.learn is not None:
                part.learn(board, state)
        self.prior.teach(page.round, y, k)

    def context_of(self, page: DensePage) -> Array:
        """The context that a round has."""
        return page.context

    @property
    def runs(self) -> bool:
        """There is no compiled loop."""
        return False

    # --- what users see
    def forecast(self, page: DensePage) -> Any:
        """The forecast that a round played, with its certificate."""
        total = self.ledger.total.copy()
        return self.prior.forecast(
            page.round,
            _ledger.certificate(page.note),
            lambda: explanation(
                self.space,
                (self.prior.board(page.round, page.features), self.prior.played(page.round)),
                self._pieces(page, total),
            ),
        )

    def _pieces(self, page: DensePage, total: Array) -> Iterator[Piece]:
        if page.temperature <= 0.0:
            return
        layout = self.ledger.layout
        p = self.prior.played(page.round)
        cores = page.cores or self._cores(page.round, page.features, page.states)
        for number, (core, name) in enumerate(zip(cores, self.terms.names, strict=True)):
            start, size, groups, _, at, one_sided = (int(v) for v in layout.parts[number])
            for group in range(groups):
                c = float(page.context[at + group])
                if c != 0.0:
                    s = total[start + group * size : start + (group + 1) * size]
                    s = np.maximum(s, 0.0) if one_sided else s
                    s = layout.scale[number] * c * self.ledger.keep * s / page.temperature
                    labels = self.terms.parts[number].context.labels
                    yield Piece(name, labels[group] if groups > 1 else "", core.field(s, p))

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        if self._ledger is None:
            return Guarantee(0, 0.0, math.inf, 1.0)
        regrets: dict[int, dict[str, float]] = {}
        for number, (payoff, state) in enumerate(zip(self.terms.payoffs, self.states, strict=True)):
            if isinstance(payoff, NoRegret):
                values = state["excess"] / np.maximum(state["rounds"], 1.0)
                names = self.terms.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, values.ravel()), strict=True))
        return self.terms.guarantee(self._ledger, regrets)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        found = {f"prior/{name}": array for name, array in self.prior.memory().items()}
        for i, state in enumerate(self.states):
            found.update({f"part/{i}/{name}": array for name, array in state.items()})
        if self._ledger is not None:
            found.update({f"ledger/{name}": array for name, array in self._ledger.arrays().items()})
        return found

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what :meth:`arrays` of an equal engine gave."""
        self.prior.restore({name[6:]: a for name, a in arrays.items() if name.startswith("prior/")})
        for i, state in enumerate(self.states):
            for name, mine in state.items():
                mine[...] = like(name, arrays[f"part/{i}/{name}"], mine)
        if self._ledger is not None:
            for name, mine in self._ledger.arrays().items():
                mine[...] = like(name, arrays[f"ledger/{name}"], mine)
            if not (self._ledger.account >= 0.0).all():
                raise ValueError("the account is negative")

    def restored_page(self, arrays: dict[str, NDArray[Any]], features: Any) -> DensePage:
        """A waiting round from its arrays."""
        rnd = self.prior.restored({name[6:]: a for name, a in arrays.items() if name.startswith("round/")})
        context = np.ones(int(self.ledger.layout.parts[:, _ledger.GROUPS].sum()))
        note, temperature = np.zeros(_ledger.NOTE_SIZE), np.zeros(1)
        for name, mine in (("context", context), ("note", note), ("temperature", temperature)):
            mine[...] = like(name, arrays[name], mine)
        states = [part.state() for part in self.terms.parts]
        for i, state in enumerate(states):
            for name, mine in state.items():
                mine[...] = like(name, arrays[f"part/{i}/{name}"], mine)
        return DensePage(rnd, context, note, features, None, float(temperature[0]), states)


def _learn_losses(core: RegretCore, state: dict[str, Array], p: Array, k: int, y: Any) -> None:
    """What the experts usually lose, and how what was played compares."""
    state["excess"] += core.excess(p, k, y)
    state["rounds"] += core.present
    for e in np.flatnonzero(core.present):
        for i, score in enumerate(core.scores):
            own = loss_at(score, core.board, core.board.experts[e], k, y)
            state["loss"][i, e] = LOSS_KEEP * state["loss"][i, e] + own
        state["count"][e] = LOSS_KEEP * state["count"][e] + 1.0
