"""The engine on binary outcomes: a thin coat over the compiled rounds, in which the equilibrium is a scalar root."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.contexts import ContextInputs
from orcast.engine import admissible
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.explain import PartTilt, explanation
from orcast.engine.kernels import binary as binary_kernels
from orcast.engine.kernels import binary_rounds, packing
from orcast.engine.kernels.binary import BinaryInfo
from orcast.engine.kernels.binary_rounds import BinaryRival, BinaryRound, BinaryRules, BinaryState
from orcast.engine.kernels.packing import binary_round_shapes, binary_shapes, fields, length, slices
from orcast.engine.ordered import like
from orcast.forecasts import BinaryForecast
from orcast.jit import expect_rounds
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
            if payoff.scores != (Brier(),) or payoff.unit is not None:
                return False
        elif not isinstance(payoff, MomentMatching):
            return False
    return isinstance(bound_payoff.space, Binary) and all(len(found) <= 1 for found in grids.values())


# Seconds that a round takes in Python, about.
SECONDS_A_ROUND = 0.001


@dataclass(slots=True)
class BinaryRecord:
    """A pending round: one row of numbers, and its certificate in it."""

    row: Array
    certificate: Array
    rivals: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it."""
        return {"row": self.row}


class BinaryEngine:
    """Plays rounds of calibrated probabilities, given the expert or not, with no regret in Brier score."""

    def __init__(self, bound_payoff: BoundPayoff, *, temperature: float, learns: bool) -> None:
        self.bound_payoff = bound_payoff
        self.space: Any = bound_payoff.space
        count = len(bound_payoff.experts)
        grids = {
            kind: next((p.grid for p in bound_payoff.payoffs if isinstance(p, kind)), 0)
            for kind in (BinaryCalibration, Calibeating)
        }
        hats, expert_hats = grids[BinaryCalibration], grids[Calibeating]
        bias = any(isinstance(p, MomentMatching) for p in bound_payoff.payoffs)
        regret = any(isinstance(p, NoRegret) for p in bound_payoff.payoffs)
        at_bias = hats + expert_hats
        at_regret = at_bias + bias
        places: list[range] = []
        for payoff in bound_payoff.payoffs:
            if isinstance(payoff, BinaryCalibration):
                places.append(range(hats))
            elif isinstance(payoff, Calibeating):
                places.append(range(hats, hats + expert_hats))
            elif isinstance(payoff, MomentMatching):
                places.append(range(at_bias, at_bias + 1))
            else:
                places.append(range(at_regret, at_regret + count))
        self.ledger = Ledger(bound_payoff.layout(places), discount=bound_payoff.discount)
        self.rules = BinaryRules(
            self.ledger.layout,
            hats,
            expert_hats,
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
        self._row = np.zeros(length(shapes))
        self._state = state = BinaryState(*fields(shapes, self._row))
        binary_kernels.start(state.theta, state.spread)
        for name, array in self.ledger.arrays().items():
            getattr(state, name)[...] = array
        self.ledger.total, self.ledger.account, self.ledger.groups = state.total, state.account, state.groups
        self._shapes = binary_round_shapes(self.rules)
        lies: Any = BinaryRound(*slices(self._shapes))  # type: ignore[arg-type]
        self._info, self._certificate, self._context = lies.info, lies.certificate, lies.context
        self._blank = np.ones(length(self._shapes))
        self._core = at_regret + int(regret) * count

    # --- the round
    def _known(self, probabilities: Array, features: Any, rounds: int) -> ContextInputs:
        level = math.nan
        if probabilities.size and self.bound_payoff.needs_expert:
            level = float(binary_rounds.pool_probabilities(self._state.rivals, probabilities))
        return ContextInputs(features, level, math.nan, float(self._state.last[0]) if rounds else math.nan)

    def _record(self, row: Array) -> BinaryRecord:
        return BinaryRecord(row, row[self._certificate], self.rules.rivals)

    def round_of(self, row: Array) -> BinaryRound:
        """The fields of a round, as views of its row."""
        return BinaryRound(*fields(self._shapes, row))

    def predict(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, reserved: float = 0.0
    ) -> BinaryRecord:
        """Play one round around the experts' probabilities (or without any)."""
        row = self._blank.copy()
        probabilities = _NOBODY if experts is None else experts[:, 1].copy()
        if not self.bound_payoff.plain:
            row[self._context] = self.bound_payoff.context(self._known(probabilities, features, self.ledger.rounds))
        packing.predict_binary(self.rules, self._row, probabilities, pending, reserved, row)
        return self._record(row)

    def learnt(self, experts: Array | None, features: Any = None, *, pending: float = 0.0) -> BinaryForecast:
        """What was learnt of the experts before the guarantee has its say: the prior of the equilibrium."""
        odds = float(self.predict(experts, features, pending=pending).row[self._info][BinaryInfo.PRIOR])
        return BinaryForecast.trusted(self.space, 1.0 / (1.0 + math.exp(-odds)), None, None)

    def payoff(self, record: BinaryRecord, y: Any) -> Array:
        """The core payoff that an outcome would settle."""
        out = np.empty(self._core)
        binary_rounds.payoff(self.rules, self.round_of(record.row), float(y), out)
        return out

    def update(self, record: BinaryRecord, y: Any, *, reserved: float = 0.0) -> None:
        """Settle the outcome of a round."""
        packing.update_binary(self.rules, self._row, record.row, reserved, float(y))

    def context_of(self, record: BinaryRecord) -> Array:
        """The context that a round has."""
        return record.row[self._context]

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        return not self.bound_payoff.needs_last and not self.bound_payoff.needs_expert

    def run(
        self, experts: Array, features: Sequence[Any] | None, outcomes: Array, levels: Array
    ) -> tuple[Array, Array]:
        """Many rounds in one compiled loop: the probabilities played, and what is told of each (see the ledger)."""
        played, round_log = np.empty(len(outcomes)), np.empty((len(outcomes), _ledger.ROUND_LOG_SIZE))
        contexts = np.ones((len(outcomes), self.rules.groups))
        probabilities = np.ascontiguousarray(experts[:, :, 1])
        if not self.bound_payoff.plain:
            for t in range(len(outcomes)):
                contexts[t] = self.bound_payoff.context(ContextInputs(None if features is None else features[t]))
        play = binary_rounds.run
        round = self.round_of(self._blank.copy())
        streams = probabilities, contexts, outcomes.astype(np.float64)
        expect_rounds(
            play, (self.rules, self._state, *streams, round, played, round_log), outcomes.size, SECONDS_A_ROUND
        )
        t = 0
        while t < outcomes.size:
            part = slice(t, t + play.at_once(outcomes.size - t))
            play(self.rules, self._state, *(stream[part] for stream in streams), round, played[part], round_log[part])
            t = part.stop
        return played, round_log

    # --- what users see
    def forecast(self, record: BinaryRecord) -> BinaryForecast:
        """The forecast that a round played, with its certificate."""
        row = record.row
        total = self.ledger.total.copy()
        return BinaryForecast.trusted(
            self.space,
            row[self._info][BinaryInfo.PLAYED],
            _ledger.certificate_of(record.certificate),
            lambda: explanation(self.space, self._cell_grid(record), self._tilts(record, total)),
        )

    def _cell_grid(self, record: BinaryRecord) -> tuple[CellGrid, Array]:
        round = self.round_of(record.row)
        x, p = float(round.info[BinaryInfo.POOL]), float(round.info[BinaryInfo.PLAYED])
        experts = np.column_stack((1.0 - round.experts, round.experts))
        return CellGrid(self.space, 2, expert=np.array([1.0 - x, x]), experts=experts), np.array([1.0 - p, p])

    def _tilts(self, record: BinaryRecord, total: Array) -> Iterator[PartTilt]:
        """The tilt of each part and group."""
        temperature = float(record.row[self._info][BinaryInfo.TEMPERATURE])
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
        rivals = self._state.rivals
        excess = rivals[:, BinaryRival.EXCESS] / np.maximum(rivals[:, BinaryRival.ROUNDS], 1.0)
        for number, payoff in enumerate(self.bound_payoff.payoffs):
            if isinstance(payoff, NoRegret):
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, excess), strict=True))
        return self.bound_payoff.guarantee(self.ledger, regrets)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return dict(self._state._asdict())

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        fields, accounts = self._admissible
        fields.copy_into(self.arrays(), arrays)
        accounts.check(self.ledger)
        admissible.check_binary_matrices(self._state.spread)

    @cached_property
    def _admissible(self) -> tuple[admissible.Fields, admissible.Accounts]:
        return admissible.Fields(self.arrays(), admissible.BINARY_STATE), admissible.Accounts(self.ledger)

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> BinaryRecord:
        """A pending round from its arrays."""
        row = self._blank.copy()
        row[...] = like("row", arrays["row"], row)
        round = self.round_of(row)._asdict()
        admissible.Fields(round, admissible.BINARY_ROUND).copy_into(round, round)
        record = self._record(row)
        admissible.check_certificate(record.certificate, self.ledger)
        return record
