"""The engine on events and labels: a thin coat over the compiled rounds on finite spaces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.constants import USUAL_TEMPERATURE
from orcast.contexts import ContextInputs
from orcast.engine import admissible
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.explain import PartTilt, explanation
from orcast.engine.kernels import binary as binary_kernels
from orcast.engine.kernels import finite as finite_kernels
from orcast.engine.kernels import finite_rounds, packing
from orcast.engine.kernels.finite_rounds import (
    BINARY_TEMPERATURE,
    FiniteInfo,
    FiniteRival,
    FiniteRound,
    FiniteRules,
    FiniteState,
)
from orcast.engine.kernels.packing import fields, finite_round_shapes, finite_shapes, length, slices
from orcast.forecasts import BinaryForecast, FiniteForecast, forecast_on
from orcast.jit import expect_rounds
from orcast.ledger import Guarantee, Ledger
from orcast.payoffs import BinaryCalibration, Calibeating, CellGrid, LabelCalibration, MomentMatching, NoRegret, Payoff
from orcast.scores import Brier
from orcast.spaces import Binary, Labels

Array = NDArray[np.float64]

# Hats of the forecast's own probabilities.
CALIBRATION = (BinaryCalibration, LabelCalibration)
# Seconds that a round takes in Python, about.
SECONDS_A_ROUND = 0.001


def plays(bound_payoff: BoundPayoff) -> bool:
    """Whether the compiled equilibrium on finite spaces covers the space and all payoffs."""
    grids: dict[bool, set[int]] = {False: set(), True: set()}
    for payoff in bound_payoff.payoffs:
        if isinstance(payoff, (*CALIBRATION, Calibeating)):
            grids[isinstance(payoff, Calibeating)].add(payoff.grid)
        elif isinstance(payoff, NoRegret):
            if payoff.scores != (Brier(),) or payoff.unit is not None:
                return False
        elif not isinstance(payoff, MomentMatching):
            return False
    return isinstance(bound_payoff.space, (Binary, Labels)) and all(len(found) <= 1 for found in grids.values())


@dataclass(slots=True)
class FiniteRecord:
    """A pending round: one row of numbers, and its certificate in it."""

    row: Array
    certificate: Array

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it."""
        return {"row": self.row}


class FiniteEngine:
    """Rounds of calibrated probabilities, given the expert or not, with no regret in Brier score."""

    def __init__(
        self,
        bound_payoff: BoundPayoff,
        *,
        temperature: float,
        members: Array,
        logistic: bool | None = None,
        moved: int = 0,
    ) -> None:
        self.bound_payoff = bound_payoff
        self.space: Any = bound_payoff.space
        self.binary = isinstance(self.space, Binary)
        count, cells, learns = len(bound_payoff.experts), self.space.cells, len(members) > 0
        events = 1 if self.binary else cells
        logistic = cells == 2 if logistic is None else logistic
        if learns and logistic:
            # the root on two cells has a usual temperature of its own
            temperature *= BINARY_TEMPERATURE / USUAL_TEMPERATURE
        hats, expert_hats = self._grid(CALIBRATION), self._grid((Calibeating,))
        bias = int(any(isinstance(p, MomentMatching) for p in bound_payoff.payoffs))
        regret = int(any(isinstance(p, NoRegret) for p in bound_payoff.payoffs))
        cuts = np.cumsum([0, hats * events, expert_hats * events, bias, regret * count]).tolist()
        self._core = cuts[-1]
        places = [range(*cuts[kind : kind + 2]) for kind in map(_kind, bound_payoff.payoffs)]
        self.ledger = Ledger(bound_payoff.layout(places), discount=bound_payoff.discount)
        layout = self.ledger.layout
        self.rules = FiniteRules(
            layout=layout,
            cells=cells,
            events=events,
            hats=hats,
            expert_hats=expert_hats,
            bias=bias,
            regret=regret,
            brier=0.5 if self.binary else 1.0,
            rivals=count,
            groups=int(layout.parts[:, _ledger.PartColumn.GROUPS].sum()),
            bound=self.ledger.bound,
            discount=bound_payoff.discount,
            temperature=temperature,
            learns=int(learns),
            logistic=int(logistic),
            members=np.array(members),
            moved=moved,
        )
        shapes = finite_shapes(self.rules)
        self._row = np.zeros(length(shapes))
        self.state = state = FiniteState(*fields(shapes, self._row))
        if logistic:
            binary_kernels.start(state.theta, state.spread)
        for name, array in self.ledger.arrays().items():
            getattr(state, name)[...] = array
        self.ledger.total, self.ledger.account, self.ledger.groups = state.total, state.account, state.groups
        self._shapes = finite_round_shapes(self.rules)
        lies: Any = FiniteRound(*slices(self._shapes))  # type: ignore[arg-type]
        self._certificate, self._context, self._played = lies.certificate, lies.context, lies.played
        self._blank = np.zeros(length(self._shapes))
        self._blank[self._context] = 1.0
        self._blank[lies.experts] = np.nan
        self._nobody = np.empty((0, cells))

    def _grid(self, kinds: tuple[type[Payoff], ...]) -> int:
        return next((p.grid for p in self.bound_payoff.payoffs if isinstance(p, kinds)), 0)  # type: ignore[attr-defined]

    # --- the round
    def known(
        self, bound_payoff: BoundPayoff, experts: Array | None, features: Any, rounds: int | None = None
    ) -> ContextInputs:
        """The inputs of the contexts of a payoff; `rounds` are those of its ledger, or else of the engine's own."""
        if bound_payoff.needs_last and not self.binary:
            raise TypeError(f"expected a space of numbers for by_last_error(), got {self.space!r}")
        level = math.nan
        if experts is not None and bound_payoff.needs_expert:
            pool = np.empty(self.space.cells)
            finite_kernels.pool_masses(self.state.pool, experts, pool)
            level = float(pool[1] if self.binary else pool.max())
        settled = self.ledger.rounds if rounds is None else rounds
        last = float(self.state.last[0]) if self.binary and settled else math.nan
        return ContextInputs(features, level, math.nan, last)

    def _record(self, row: Array) -> FiniteRecord:
        return FiniteRecord(row, row[self._certificate])

    def new_round(self) -> FiniteRound:
        """An empty round."""
        return self.round_of(self._blank.copy())

    def round_of(self, row: Array) -> FiniteRound:
        """The fields of a round, as views of its row."""
        return FiniteRound(*fields(self._shapes, row))

    def predict(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, reserved: float = 0.0
    ) -> FiniteRecord:
        """Issue one round around the experts' masses (or without any)."""
        row = self._blank.copy()
        if not self.bound_payoff.plain:
            row[self._context] = self.bound_payoff.context(self.known(self.bound_payoff, experts, features))
        given = self._nobody if experts is None else np.ascontiguousarray(experts)
        packing.predict_finite(self.rules, self._row, given, pending, reserved, row)
        return self._record(row)

    def learnt(self, experts: Array | None, features: Any = None, *, pending: float = 0.0) -> FiniteForecast:
        """The prior of the equilibrium: the committee's forecast before the guarantee."""
        prior = self.round_of(self.predict(experts, features, pending=pending).row).prior
        return forecast_on(self.space, prior.copy())

    def payoff(self, record: FiniteRecord, y: Any) -> Array:
        """The core payoff of an outcome."""
        out = np.empty(self._core)
        finite_rounds.payoff(self.rules, self.round_of(record.row), self.space.cell(y), out)
        return out

    def update(self, record: FiniteRecord, y: Any, *, reserved: float = 0.0) -> None:
        """Settle the outcome of a round."""
        packing.update_finite(self.rules, self._row, record.row, reserved, self.space.cell(y))

    def context_of(self, record: FiniteRecord) -> Array:
        """The context that a round has."""
        return record.row[self._context]

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        return not self.bound_payoff.needs_last and not self.bound_payoff.needs_expert

    def run(
        self, experts: Array, features: Sequence[Any] | None, outcomes: Array, levels: Array
    ) -> tuple[Array, Array]:
        """Many rounds in one compiled loop: the masses played (of `Binary` the probability of 1), and their log."""
        count = len(outcomes)
        played = np.empty((count, self.space.cells))
        round_log = np.full((count, _ledger.ROUND_LOG_SIZE), np.nan)
        contexts = np.ones((count, self.rules.groups))
        if not self.bound_payoff.plain:
            for t in range(count):
                contexts[t] = self.bound_payoff.context(ContextInputs(None if features is None else features[t]))
        play = finite_rounds.run
        round = self.new_round()
        streams = np.ascontiguousarray(experts), contexts, outcomes.astype(np.int64)
        expect_rounds(play, (self.rules, self.state, *streams, round, played, round_log), count, SECONDS_A_ROUND)
        t = 0
        while t < count:
            part = slice(t, t + play.at_once(count - t))
            play(self.rules, self.state, *(stream[part] for stream in streams), round, played[part], round_log[part])
            t = part.stop
        if not self.binary:
            return played, round_log
        p = played[:, 1]
        round_log[:, _ledger.RoundLog.MEAN], round_log[:, _ledger.RoundLog.SD] = p, np.sqrt(p * (1.0 - p))
        return p.copy(), round_log

    # --- what users see
    def forecast(self, record: FiniteRecord) -> FiniteForecast:
        """The forecast that a round issued, with its certificate."""
        played, total = record.row[self._played], self.ledger.total.copy()
        certificate = _ledger.certificate_of(record.certificate)

        def why() -> Any:
            return explanation(self.space, self._cell_grid(record), self._tilts(record, total))

        if self.binary:
            return BinaryForecast.trusted(self.space, played.item(1), certificate, why)
        return forecast_on(self.space, played.copy(), certificate, why)

    def _cell_grid(self, record: FiniteRecord) -> tuple[CellGrid, Array]:
        round = self.round_of(record.row)
        return CellGrid(self.space, self.space.cells, expert=round.pool, experts=round.experts), round.played

    def _tilts(self, record: FiniteRecord, total: Array) -> Iterator[PartTilt]:
        """The tilt of each part and group."""
        temperature = float(self.round_of(record.row).info[FiniteInfo.TEMPERATURE])
        if temperature <= 0.0:
            return
        layout = self.ledger.layout
        space = self.space
        payoffs = np.array([self.payoff(record, space.outcome(space.value(k))) for k in range(space.cells)])
        context = self.context_of(record)
        for number, name in enumerate(self.bound_payoff.names):
            start, size, groups, places, at, one_sided = (int(v) for v in layout.parts[number])
            own = payoffs[:, layout.places[places : places + size]]
            for group in range(groups):
                if context[at + group] != 0.0:
                    s = total[start + group * size : start + (group + 1) * size]
                    s = layout.scale[number] * self.rules.discount * (np.maximum(s, 0.0) if one_sided else s)
                    tilt = float(context[at + group]) * (own @ s) / temperature
                    labels = self.bound_payoff.parts[number].context.labels
                    yield PartTilt(name, labels[group] if groups > 1 else "", tilt - tilt[0])

    def guarantee(self) -> Guarantee:
        """The bounds and the miscalibration so far."""
        regrets: dict[int, dict[str, float]] = {}
        rivals = self.state.rivals
        excess = rivals[:, FiniteRival.EXCESS] / np.maximum(rivals[:, FiniteRival.ROUNDS], 1.0)
        for number, payoff in enumerate(self.bound_payoff.payoffs):
            if isinstance(payoff, NoRegret):
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, excess), strict=True))
        return self.bound_payoff.guarantee(self.ledger, regrets)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return dict(self.state._asdict())

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        fields, accounts = self._admissible
        fields.copy_into(self.arrays(), arrays)
        accounts.check(self.ledger)
        if self.rules.logistic:
            admissible.check_binary_matrices(self.state.spread)

    @cached_property
    def _admissible(self) -> tuple[admissible.Fields, admissible.Accounts]:
        return admissible.Fields(self.arrays(), admissible.FINITE_STATE), admissible.Accounts(self.ledger)

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> FiniteRecord:
        """A pending round from its arrays."""
        row = arrays["row"].copy()
        if row.shape != self._blank.shape or row.dtype != self._blank.dtype:
            raise ValueError(f"row is {row.dtype} of shape {row.shape}, not of shape {self._blank.shape}")
        round = self.round_of(row)
        self.restore_round(round, round._asdict())
        record = self._record(row)
        admissible.check_certificate(record.certificate, self.ledger)
        return record

    def restore_round(self, round: FiniteRound, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over the arrays of a pending round."""
        admissible.Fields(round._asdict(), admissible.FINITE_ROUND).copy_into(round._asdict(), arrays)
        for name in ("pool", "prior", "played"):
            admissible.check_masses(f"{name} of a pending round", getattr(round, name))


def _kind(payoff: Payoff) -> int:
    """The place of a payoff among the kinds of the core."""
    if isinstance(payoff, CALIBRATION):
        return 0
    return 1 if isinstance(payoff, Calibeating) else 2 if isinstance(payoff, MomentMatching) else 3
