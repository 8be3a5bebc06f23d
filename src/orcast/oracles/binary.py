"""The engine on binary outcomes: a thin coat over the compiled rounds, in which the equilibrium is a scalar root."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.contexts import Known
from orcast.forecasts import BinaryForecast
from orcast.ledger import Guarantee, Ledger
from orcast.oracles import _binary, _binary_rounds, _pack
from orcast.oracles._binary_rounds import NOTE_AT, RECORD_AT, RIVALS_AT, BinaryRules
from orcast.oracles._pack import binary_shapes, length, views
from orcast.oracles.explain import Piece, explanation
from orcast.oracles.ordered import like
from orcast.oracles.terms import Terms
from orcast.payoffs import BinaryCalibration, Board, Calibeating, MomentMatching, NoRegret, Payoff
from orcast.scores import Brier
from orcast.spaces import Binary

Array = NDArray[np.float64]

_NOBODY: Array = np.empty(0)


def plays(terms: Terms) -> bool:
    """Whether the terms are such that their equilibrium is the compiled scalar root."""
    grids: dict[type[Payoff], set[int]] = {BinaryCalibration: set(), Calibeating: set()}
    for payoff in terms.payoffs:
        if isinstance(payoff, (BinaryCalibration, Calibeating)):
            grids[type(payoff)].add(payoff.grid)
        elif isinstance(payoff, NoRegret):
            if payoff.scores != (Brier(),):
                return False
        elif not isinstance(payoff, MomentMatching):
            return False
    return isinstance(terms.space, Binary) and all(len(found) <= 1 for found in grids.values())


@dataclass(slots=True)
class BinaryPage:
    """A round that waits: one row of numbers."""

    row: Array

    @property
    def note(self) -> Array:
        """The note of its certificate."""
        return self.row[NOTE_AT:RECORD_AT]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it."""
        return {"row": self.row}


class BinaryEngine:
    """Plays rounds of calibrated probabilities, given the expert's word or not, with no regret in Brier score."""

    def __init__(self, terms: Terms, *, temperature: float, learns: bool) -> None:
        self.terms = terms
        self.space: Any = terms.space
        count = len(terms.experts)
        grids = {
            kind: next((p.grid for p in terms.payoffs if isinstance(p, kind)), 0)
            for kind in (BinaryCalibration, Calibeating)
        }
        hats, given = grids[BinaryCalibration], grids[Calibeating]
        bias = any(isinstance(p, MomentMatching) for p in terms.payoffs)
        regret = any(isinstance(p, NoRegret) for p in terms.payoffs)
        at_bias = hats + given
        at_regret = at_bias + bias
        places: list[range] = []
        for payoff in terms.payoffs:
            if isinstance(payoff, BinaryCalibration):
                places.append(range(hats))
            elif isinstance(payoff, Calibeating):
                places.append(range(hats, hats + given))
            elif isinstance(payoff, MomentMatching):
                places.append(range(at_bias, at_bias + 1))
            else:
                places.append(range(at_regret, at_regret + count))
        self.ledger = Ledger(terms.layout(places), keep=terms.keep)
        self.rules = BinaryRules(
            self.ledger.layout,
            hats,
            given,
            int(bias),
            int(regret),
            count,
            int(self.ledger.layout.parts[:, _ledger.GROUPS].sum()),
            self.ledger.bound,
            terms.keep,
            temperature,
            int(learns),
        )
        shapes = binary_shapes(self.rules)
        self._state = np.zeros(length(shapes))
        self._fields: dict[str, Array] = views(shapes, self._state)
        start = {**_binary.new_memory()._asdict(), **self.ledger.arrays()}
        for name, array in start.items():
            self._fields[name][...] = array
        self.ledger.total, self.ledger.account = self._fields["total"], self._fields["account"]
        self.ledger.groups = self._fields["groups"]
        self._first = RIVALS_AT + 2 * count
        self._blank = np.ones(self._first + self.rules.groups)
        self._core = at_regret + int(regret) * count

    # --- the round
    def _known(self, words: Array, features: Any, rounds: int) -> Known:
        level = math.nan
        if words.size and self.terms.needs_expert:
            level = float(_binary_rounds.pool_words(_pack.state_of(self.rules, self._state), words))
        return Known(features, level, math.nan, float(self._fields["last"][0]) if rounds else math.nan)

    def predict(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, reserved: float = 0.0
    ) -> BinaryPage:
        """Play one round around the experts' probabilities (or without any)."""
        row = self._blank.copy()
        words = _NOBODY if experts is None else experts[:, 1].copy()
        if not self.terms.plain:
            row[self._first :] = self.terms.context(self._known(words, features, self.ledger.rounds))
        _pack.predict_binary(self.rules, self._state, words, pending, reserved, row)
        return BinaryPage(row)

    def payoff(self, page: BinaryPage, y: Any) -> Array:
        """The core payoff that an outcome would book."""
        out = np.empty(self._core)
        _binary_rounds.payoff(self.rules, page.row, float(y), out)
        return out

    def update(self, page: BinaryPage, y: Any, *, reserved: float = 0.0) -> None:
        """Book the outcome of a round."""
        _pack.update_binary(self.rules, self._state, page.row, reserved, float(y))

    def context_of(self, page: BinaryPage) -> Array:
        """The context that a round has."""
        return page.row[self._first :]

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        return not self.terms.needs_last and not self.terms.needs_expert

    def run(self, experts: Array, features: list[Any] | None, outcomes: Array, levels: Array) -> tuple[Array, Array]:
        """Many rounds in one compiled loop: the probabilities played, and what is told of each (see the ledger)."""
        played, tales = np.empty(len(outcomes)), np.empty((len(outcomes), _ledger.TALE_SIZE))
        contexts = np.ones((len(outcomes), self._blank.size - self._first))
        words = np.ascontiguousarray(experts[:, :, 1])
        if not self.terms.plain:
            for t in range(len(outcomes)):
                contexts[t] = self.terms.context(Known(None if features is None else features[t]))
        _binary_rounds.run(
            self.rules,
            _pack.state_of(self.rules, self._state),
            words,
            contexts,
            outcomes.astype(np.float64),
            self._blank.copy(),
            played,
            tales,
        )
        return played, tales

    # --- what users see
    def forecast(self, page: BinaryPage) -> BinaryForecast:
        """The forecast that a round played, with its certificate."""
        row = page.row
        total = self.ledger.total.copy()
        return BinaryForecast._trusted(
            self.space,
            row[_binary_rounds.PLAYED],
            _ledger.certificate(row[NOTE_AT:RECORD_AT]),
            lambda: explanation(self.space, self._board(page), self._pieces(page, total)),
        )

    def _board(self, page: BinaryPage) -> tuple[Board, Array]:
        word, p = float(page.row[_binary_rounds.WORD]), float(page.row[_binary_rounds.PLAYED])
        experts = page.row[RIVALS_AT : RIVALS_AT + len(self.terms.experts)]
        both = np.column_stack((1.0 - experts, experts))
        return Board(self.space, 2, expert=np.array([1.0 - word, word]), experts=both), np.array([1.0 - p, p])

    def _pieces(self, page: BinaryPage, total: Array) -> Iterator[Piece]:
        """The tilt of each part and group."""
        temperature = float(page.row[_binary_rounds.TEMPERATURE])
        if temperature <= 0.0:
            return
        layout = self.ledger.layout
        change = self.payoff(page, 1.0) - self.payoff(page, 0.0)
        context = self.context_of(page)
        for number, name in enumerate(self.terms.names):
            start, size, groups, places, at, one_sided = (int(v) for v in layout.parts[number])
            own = change[layout.places[places : places + size]]
            for group in range(groups):
                if context[at + group] != 0.0:
                    s = total[start + group * size : start + (group + 1) * size]
                    s = layout.scale[number] * self.rules.keep * (np.maximum(s, 0.0) if one_sided else s)
                    tilt = float(context[at + group]) * float(s @ own) / temperature
                    labels = self.terms.parts[number].context.labels
                    yield Piece(name, labels[group] if groups > 1 else "", np.array([0.0, tilt]))

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        regrets: dict[int, dict[str, float]] = {}
        rivals = self._fields["rivals"]
        excess = rivals[:, _binary_rounds.EXCESS] / np.maximum(rivals[:, _binary_rounds.SEEN], 1.0)
        for number, payoff in enumerate(self.terms.payoffs):
            if isinstance(payoff, NoRegret):
                names = self.terms.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, excess), strict=True))
        return self.terms.guarantee(self.ledger, regrets)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return self._fields

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        for name, mine in self.arrays().items():
            mine[...] = like(name, arrays[name], mine)
        if not (self.ledger.account >= 0.0).all():
            raise ValueError("the account is negative")

    def restored_page(self, arrays: dict[str, NDArray[Any]], features: Any) -> BinaryPage:
        """A waiting round from its arrays."""
        row = self._blank.copy()
        row[...] = like("row", arrays["row"], row)
        if not 0.0 <= row[_binary_rounds.PLAYED] <= 1.0 or not 0.0 <= row[_binary_rounds.WORD] <= 1.0:
            raise ValueError("a waiting round has no probability")
        return BinaryPage(row)
