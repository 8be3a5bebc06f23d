"""The engine on binary outcomes: a thin coat over the compiled rounds, in which the equilibrium is a scalar root."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.contexts import ContextInputs
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.explain import PartTilt, explanation
from orcast.engine.kernels import binary as binary_kernels
from orcast.engine.kernels import binary_rounds, packing
from orcast.engine.kernels.binary_rounds import CERTIFICATE_AT, RECORD_AT, RIVALS_AT, BinaryRules
from orcast.engine.kernels.packing import binary_shapes, length, views
from orcast.engine.ordered import like
from orcast.forecasts import BinaryForecast
from orcast.ledger import Guarantee, Ledger
from orcast.payoffs import BinaryCalibration, Calibeating, CellGrid, MomentMatching, NoRegret, Payoff
from orcast.scores import Brier
from orcast.spaces import Binary

Array = NDArray[np.float64]

_NOBODY: Array = np.empty(0)


def plays(bound_payoff: BoundPayoff) -> bool:
    """Whether the terms are such that their equilibrium is the compiled scalar root."""
    grids: dict[type[Payoff], set[int]] = {BinaryCalibration: set(), Calibeating: set()}
    for payoff in bound_payoff.payoffs:
        if isinstance(payoff, (BinaryCalibration, Calibeating)):
            grids[type(payoff)].add(payoff.grid)
        elif isinstance(payoff, NoRegret):
            if payoff.scores != (Brier(),):
                return False
        elif not isinstance(payoff, MomentMatching):
            return False
    return isinstance(bound_payoff.space, Binary) and all(len(found) <= 1 for found in grids.values())


@dataclass(slots=True)
class BinaryRecord:
    """A round that waits: one row of numbers."""

    row: Array

    @property
    def certificate(self) -> Array:
        """The note of its certificate."""
        return self.row[CERTIFICATE_AT:RECORD_AT]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it."""
        return {"row": self.row}


class BinaryEngine:
    """Plays rounds of calibrated probabilities, given the expert's word or not, with no regret in Brier score."""

    def __init__(self, bound_payoff: BoundPayoff, *, temperature: float, learns: bool) -> None:
        self.bound_payoff = bound_payoff
        self.space: Any = bound_payoff.space
        count = len(bound_payoff.experts)
        grids = {
            kind: next((p.grid for p in bound_payoff.payoffs if isinstance(p, kind)), 0)
            for kind in (BinaryCalibration, Calibeating)
        }
        hats, given = grids[BinaryCalibration], grids[Calibeating]
        bias = any(isinstance(p, MomentMatching) for p in bound_payoff.payoffs)
        regret = any(isinstance(p, NoRegret) for p in bound_payoff.payoffs)
        at_bias = hats + given
        at_regret = at_bias + bias
        places: list[range] = []
        for payoff in bound_payoff.payoffs:
            if isinstance(payoff, BinaryCalibration):
                places.append(range(hats))
            elif isinstance(payoff, Calibeating):
                places.append(range(hats, hats + given))
            elif isinstance(payoff, MomentMatching):
                places.append(range(at_bias, at_bias + 1))
            else:
                places.append(range(at_regret, at_regret + count))
        self.ledger = Ledger(bound_payoff.layout(places), discount=bound_payoff.discount)
        self.rules = BinaryRules(
            self.ledger.layout,
            hats,
            given,
            int(bias),
            int(regret),
            count,
            int(self.ledger.layout.parts[:, _ledger.PartColumn.GROUPS].sum()),
            self.ledger.bound,
            bound_payoff.discount,
            temperature,
            int(learns),
        )
        shapes = binary_shapes(self.rules)
        self._state = np.zeros(length(shapes))
        self._fields: dict[str, Array] = views(shapes, self._state)
        start = {**binary_kernels.new_memory()._asdict(), **self.ledger.arrays()}
        for name, array in start.items():
            self._fields[name][...] = array
        self.ledger.total, self.ledger.account = self._fields["total"], self._fields["account"]
        self.ledger.groups = self._fields["groups"]
        self._first = RIVALS_AT + 2 * count
        self._blank = np.ones(self._first + self.rules.groups)
        self._core = at_regret + int(regret) * count

    # --- the round
    def _known(self, probabilities: Array, features: Any, rounds: int) -> ContextInputs:
        level = math.nan
        if probabilities.size and self.bound_payoff.needs_expert:
            level = float(binary_rounds.pool_probabilities(packing.state_of(self.rules, self._state), probabilities))
        return ContextInputs(features, level, math.nan, float(self._fields["last"][0]) if rounds else math.nan)

    def predict(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, reserved: float = 0.0
    ) -> BinaryRecord:
        """Play one round around the experts' probabilities (or without any)."""
        row = self._blank.copy()
        probabilities = _NOBODY if experts is None else experts[:, 1].copy()
        if not self.bound_payoff.plain:
            row[self._first :] = self.bound_payoff.context(self._known(probabilities, features, self.ledger.rounds))
        packing.predict_binary(self.rules, self._state, probabilities, pending, reserved, row)
        return BinaryRecord(row)

    def payoff(self, record: BinaryRecord, y: Any) -> Array:
        """The core payoff that an outcome would book."""
        out = np.empty(self._core)
        binary_rounds.payoff(self.rules, record.row, float(y), out)
        return out

    def update(self, record: BinaryRecord, y: Any, *, reserved: float = 0.0) -> None:
        """Book the outcome of a round."""
        packing.update_binary(self.rules, self._state, record.row, reserved, float(y))

    def context_of(self, record: BinaryRecord) -> Array:
        """The context that a round has."""
        return record.row[self._first :]

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        return not self.bound_payoff.needs_last and not self.bound_payoff.needs_expert

    def run(
        self, experts: Array, features: Sequence[Any] | None, outcomes: Array, levels: Array
    ) -> tuple[Array, Array]:
        """Many rounds in one compiled loop: the probabilities played, and what is told of each (see the ledger)."""
        played, round_log = np.empty(len(outcomes)), np.empty((len(outcomes), _ledger.ROUND_LOG_SIZE))
        contexts = np.ones((len(outcomes), self._blank.size - self._first))
        probabilities = np.ascontiguousarray(experts[:, :, 1])
        if not self.bound_payoff.plain:
            for t in range(len(outcomes)):
                contexts[t] = self.bound_payoff.context(ContextInputs(None if features is None else features[t]))
        binary_rounds.run(
            self.rules,
            packing.state_of(self.rules, self._state),
            probabilities,
            contexts,
            outcomes.astype(np.float64),
            self._blank.copy(),
            played,
            round_log,
        )
        return played, round_log

    # --- what users see
    def forecast(self, record: BinaryRecord) -> BinaryForecast:
        """The forecast that a round played, with its certificate."""
        row = record.row
        total = self.ledger.total.copy()
        return BinaryForecast.trusted(
            self.space,
            row[binary_rounds.PLAYED],
            _ledger.certificate_of(row[CERTIFICATE_AT:RECORD_AT]),
            lambda: explanation(self.space, self._cell_grid(record), self._pieces(record, total)),
        )

    def _cell_grid(self, record: BinaryRecord) -> tuple[CellGrid, Array]:
        correction, p = float(record.row[binary_rounds.WORD]), float(record.row[binary_rounds.PLAYED])
        experts = record.row[RIVALS_AT : RIVALS_AT + len(self.bound_payoff.experts)]
        both = np.column_stack((1.0 - experts, experts))
        return CellGrid(self.space, 2, expert=np.array([1.0 - correction, correction]), experts=both), np.array(
            [1.0 - p, p]
        )

    def _pieces(self, record: BinaryRecord, total: Array) -> Iterator[PartTilt]:
        """The tilt of each part and group."""
        temperature = float(record.row[binary_rounds.TEMPERATURE])
        if temperature <= 0.0:
            return
        layout = self.ledger.layout
        change = self.payoff(record, 1.0) - self.payoff(record, 0.0)
        context = self.context_of(record)
        for number, name in enumerate(self.bound_payoff.names):
            start, size, groups, places, at, one_sided = (int(v) for v in layout.parts[number])
            own = change[layout.places[places : places + size]]
            for group in range(groups):
                if context[at + group] != 0.0:
                    s = total[start + group * size : start + (group + 1) * size]
                    s = layout.scale[number] * self.rules.discount * (np.maximum(s, 0.0) if one_sided else s)
                    tilt = float(context[at + group]) * float(s @ own) / temperature
                    labels = self.bound_payoff.parts[number].context.labels
                    yield PartTilt(name, labels[group] if groups > 1 else "", np.array([0.0, tilt]))

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        regrets: dict[int, dict[str, float]] = {}
        rivals = self._fields["rivals"]
        excess = rivals[:, binary_rounds.EXCESS] / np.maximum(rivals[:, binary_rounds.SEEN], 1.0)
        for number, payoff in enumerate(self.bound_payoff.payoffs):
            if isinstance(payoff, NoRegret):
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, excess), strict=True))
        return self.bound_payoff.guarantee(self.ledger, regrets)

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

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> BinaryRecord:
        """A waiting round from its arrays."""
        row = self._blank.copy()
        row[...] = like("row", arrays["row"], row)
        if not 0.0 <= row[binary_rounds.PLAYED] <= 1.0 or not 0.0 <= row[binary_rounds.WORD] <= 1.0:
            raise ValueError("a waiting round has no probability")
        return BinaryRecord(row)
