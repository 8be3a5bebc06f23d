"""The dense engine: any payoff on any space, under the same ledger and slack rule as the compiled ones.

A prior supplies the cells and what is expected on them, a player the forecasts to choose from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.ledger import Guarantee, Ledger
from orcast.oracles import _rounds
from orcast.oracles.explain import Piece, explanation
from orcast.oracles.hand import Hand
from orcast.oracles.ordered import like
from orcast.oracles.player import Deal, Player
from orcast.oracles.priors import Prior
from orcast.oracles.terms import Terms
from orcast.payoffs import Core, NoRegret
from orcast.payoffs.base import UNKNOWN
from orcast.payoffs.recipe import CustomCore
from orcast.payoffs.regret import LOSS_KEEP, RegretCore, loss_at

Array = NDArray[np.float64]

# Places in what a search says of its forecast: whether it says anything, the largest <mean payoff, payoff> that it
# saw, and by how much that may fall short.
SAYS, VALUE, BEYOND = 0, 1, 2
SAID_SIZE = 3


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
    said: Array = field(default_factory=lambda: np.zeros(SAID_SIZE))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it but the features."""
        own = {f"round/{name}": array for name, array in self.round._asdict().items()}
        for i, state in enumerate(self.states or []):
            own.update({f"part/{i}/{name}": array for name, array in state.items()})
        own.update(context=self.context, note=self.note, temperature=np.array([self.temperature]), said=self.said)
        return own


class DenseEngine:
    """Plays rounds of any payoff on any space."""

    def __init__(self, terms: Terms, prior: Prior, player: Player, sizes: Sequence[int] | None = None) -> None:
        self.terms, self.space = terms, terms.space
        self.prior: Any = prior
        self.player = player
        # masses of the last settled round, and whether there was one
        self._last = np.zeros(prior.cells + 1 if player.remembers else 0)
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
        other = self.prior.recell(rnd, mix) if page.note[_ledger.HOLDS] == 0.0 else None
        if other is not None:
            even, even_mix = other
            own = self._cores(even, features)
            again = DensePage(even, page.context, page.note.copy(), features, own, 0.0, states)
            self._play(again, even_mix, pending, reserved)
            if again.note[_ledger.HOLDS] > 0.0:
                self.prior.cool(even)
                return again
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
        """Let the player find a forecast, and keep what is to be remembered of it."""
        assert page.cores is not None
        ledger = self.ledger
        hand = Hand(ledger, ledger.layout, page.cores, page.context, reserved, self.player.temperature)
        board = self.prior.board(page.round, page.features)
        warm = self.prior.warm(page.round, np.log(np.maximum(mix, 1e-300)))
        last = self._last[1:] if self._last.size and self._last[0] > 0.0 else np.empty(0)
        self.player.play(hand, Deal(board, mix, warm, last, pending, ledger.rounds))
        p = np.exp(hand.best)
        p /= p.sum()
        for core in page.cores:
            if isinstance(core, CustomCore):
                core.check(p)
        page.temperature = hand.temperature
        page.note[:] = hand.note
        page.said[:] = hand.said
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
        if self._last.size:
            self._last[0] = 1.0
            self._last[1 : p.size + 1] = p
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
            _ledger.certificate(page.note, *page.said[VALUE:]) if page.said[SAYS] else _ledger.certificate(page.note),
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
        if self._last.size:
            found["last"] = self._last
        return found

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        self.prior.restore({name[6:]: a for name, a in arrays.items() if name.startswith("prior/")})
        for i, state in enumerate(self.states):
            for name, mine in state.items():
                mine[...] = like(name, arrays[f"part/{i}/{name}"], mine)
        if self._ledger is not None:
            for name, mine in self._ledger.arrays().items():
                mine[...] = like(name, arrays[f"ledger/{name}"], mine)
            if not (self._ledger.account >= 0.0).all():
                raise ValueError("the account is negative")
        if self._last.size:
            self._last[...] = like("last", arrays["last"], self._last)

    def restored_page(self, arrays: dict[str, NDArray[Any]], features: Any) -> DensePage:
        """A waiting round from its arrays."""
        rnd = self.prior.restored({name[6:]: a for name, a in arrays.items() if name.startswith("round/")})
        context = np.ones(int(self.ledger.layout.parts[:, _ledger.GROUPS].sum()))
        note, temperature, said = np.zeros(_ledger.NOTE_SIZE), np.zeros(1), np.zeros(SAID_SIZE)
        for name, mine in (("context", context), ("note", note), ("temperature", temperature), ("said", said)):
            mine[...] = like(name, arrays[name], mine)
        states = [part.state() for part in self.terms.parts]
        for i, state in enumerate(states):
            for name, mine in state.items():
                mine[...] = like(name, arrays[f"part/{i}/{name}"], mine)
        return DensePage(rnd, context, note, features, None, float(temperature[0]), states, said)


def _learn_losses(core: RegretCore, state: dict[str, Array], p: Array, k: int, y: Any) -> None:
    """What the experts usually lose, and how what was played compares."""
    state["excess"] += core.excess(p, k, y)
    state["rounds"] += core.present
    for e in np.flatnonzero(core.present):
        for i, score in enumerate(core.scores):
            own = loss_at(score, core.board, core.board.experts[e], k, y)
            state["loss"][i, e] = LOSS_KEEP * state["loss"][i, e] + own
        state["count"][e] = LOSS_KEEP * state["count"][e] + 1.0
