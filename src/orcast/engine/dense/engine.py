"""Dense engine: any payoff on any space; a prior supplies the cells and masses, a solver the forecasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.constants import LOSS_DISCOUNT
from orcast.engine import admissible
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.actions import ActionCounts
from orcast.engine.dense.priors import Prior
from orcast.engine.dense.search import CandidateSearch, DenseRound, HalfSpaceClaim, masses_of
from orcast.engine.dense.solver import Solver
from orcast.engine.ordered import TILT
from orcast.kernels import records
from orcast.kernels.finite_state import FiniteRound
from orcast.kernels.reading import count_arrays
from orcast.kernels.state import LedgerState, Round
from orcast.ledger import Guarantee, Ledger
from orcast.limits import LIMITS
from orcast.payoffs import CellPayoff, NoRegret
from orcast.payoffs.base import UNKNOWN
from orcast.payoffs.regret import RegretCellPayoff, loss_at
from orcast.spaces.base import whole
from orcast.validation import short

Array = NDArray[np.float64]

# If no certificate holds, a round is solved again on cells of equal width, then on finer ones: at most this often, and
# more often if only the resolution of the cells is insufficient.
REFINEMENTS, IF_RESOLVED = 2, 4
WEIGHT = int(_ledger.Account.WEIGHT)
OVERDRAFT, HOLDS = records.CERTIFICATE.index("overdraft"), records.CERTIFICATE.index("holds")


@dataclass(slots=True)
class DenseRecord:
    """Pending round: record of the prior, own arrays, features, and payoffs on cells (rebuilt after a load)."""

    round: Round | FiniteRound
    context: Array
    certificate: Array
    features: Any = None
    cell_payoffs: list[CellPayoff] | None = None
    temperature: float = 0.0
    states: list[dict[str, Array]] | None = None  # of the parts when the round was issued
    claim: HalfSpaceClaim | None = None
    # random number of the action, and 1 once it was drawn
    decision: Array = field(default_factory=lambda: np.zeros(2))

    @property
    def certificate_row(self) -> Array:
        """Fields of the certificate."""
        return self.certificate

    def overdraft(self) -> float:
        """Slack that the round reserves."""
        return self.certificate.item(OVERDRAFT)

    def draw(self) -> float:
        """Random number of the round; 0 for none."""
        round: Any = self.round
        return float(round.draw())

    def set_draw(self, draw: float) -> None:
        """Set the random draw of the round, in (0, 1)."""
        round: Any = self.round
        round.set_draw(draw)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the round, without its features."""
        round: Any = self.round
        own = {f"round/{name}": array for name, array in round.arrays().items()}
        for i, state in enumerate(self.states or []):
            own.update({f"part/{i}/{name}": array for name, array in state.items()})
        own.update(
            context=self.context,
            certificate=self.certificate,
            temperature=np.array([self.temperature]),
            decision=self.decision,
            claim=np.array((0.0, 0.0, 0.0) if self.claim is None else (1.0, *self.claim)),
        )
        return own


class DenseEngine:
    """Rounds of any payoff on any space."""

    def __init__(
        self, bound_payoff: BoundPayoff, prior: Prior, solver: Solver, sizes: Sequence[int] | None = None
    ) -> None:
        self.bound_payoff, self.space = bound_payoff, bound_payoff.space
        self.prior: Any = prior
        self.solver = solver
        self.states = [part.state() for part in bound_payoff.parts]
        levels = bound_payoff.empirical_levels
        self._empirical = np.zeros(levels.size + len(records.COUNTS) if levels.size else 0)
        self.actions = ActionCounts(bound_payoff)
        self._ledger: Ledger | None = None
        self.sizes: list[int] | None = None
        known = [part.size for part in bound_payoff.parts] if sizes is None else self._checked(sizes)
        if UNKNOWN not in known:
            self._make_ledger(known)

    def _checked(self, sizes: Sequence[int]) -> list[int]:
        """Sizes of the parts in a state, which must agree with the known ones."""
        mine = [part.size for part in self.bound_payoff.parts]
        theirs = [whole(size, "coordinates", 1, LIMITS.coordinates) for size in sizes]
        if len(theirs) != len(mine) or any(m not in (UNKNOWN, t) for m, t in zip(mine, theirs, strict=True)):
            raise ValueError(f"expected parts of {short(mine)} coordinates, got {short(theirs)}")
        return theirs

    def _make_ledger(self, sizes: Sequence[int]) -> None:
        self.sizes = [int(size) for size in sizes]
        self.cuts = np.concatenate(([0], np.cumsum(sizes)))
        places = [range(a, b) for a, b in pairwise(self.cuts)]
        self._ledger = Ledger(LedgerState(self.bound_payoff.layout(places)))

    @property
    def ledger(self) -> Ledger:
        """Ledger, once the sizes of all parts are known."""
        if self._ledger is None:
            raise ValueError("expected a first round, which determines the sizes of the parts, got none")
        return self._ledger

    # --- the round
    def predict(
        self,
        experts: Array | None,
        features: Any = None,
        *,
        pending: float = 0.0,
        reserved: float = 0.0,
        number: float = 0.0,
    ) -> DenseRecord:
        """Solve one round around the experts, or without any; only the sizes of the parts are kept."""
        first = self._ledger is None
        try:
            return self._predict(experts, features, pending, reserved, number)
        except BaseException:
            if first:
                self.forget_sizes()  # those of a refused round are not kept
            raise

    def forget_sizes(self) -> None:
        """Reset the sizes that a first round determined."""
        if UNKNOWN in [part.size for part in self.bound_payoff.parts]:
            self._ledger, self.sizes = None, None

    def _predict(
        self, experts: Array | None, features: Any, pending: float, reserved: float, number: float
    ) -> DenseRecord:
        rounds = 0 if self._ledger is None else self._ledger.rounds
        context = self.bound_payoff.context(self.prior.engine.known(experts, features, self.bound_payoff, rounds))
        round, mix = self.prior.open(experts, float(pending), number)
        cell_payoffs = self.cell_payoffs(round, features)
        states = [{name: array.copy() for name, array in state.items()} for state in self.states]
        record = DenseRecord(
            round, np.array(context), np.zeros(_ledger.CERTIFICATE_SIZE), features, cell_payoffs, 0.0, states
        )
        tried = [(self._solve(record, mix, pending, reserved), record)]
        coarse: Array | None = None
        while self.prior.recells and tried[-1][0].missing > 0.0:
            if len(tried) > (IF_RESOLVED if tried[-1][0].resolved else REFINEMENTS):
                break
            round, mix = self.prior.recell(round, mix, coarse)
            own = self.cell_payoffs(round, features)
            again = replace(record, round=round, certificate=record.certificate.copy(), cell_payoffs=own)
            tried.append((self._solve(again, mix, pending, reserved), again))
            round.view("cells")[TILT] = 0.0  # no other round has these cells
            coarse = tried[-1][0].resolutions()
            if coarse.max() <= 0.0:
                break
        # the best forecast that holds, perhaps up to the resolution of its cells; else the first one
        for search, found in sorted(tried, key=lambda each: each[0].missing):
            if search.missing > 0.0:
                search.allow_resolution()
                found.certificate[:] = search.certificate
            if found.certificate[HOLDS] > 0.0:
                return found
        return record

    def cell_payoffs(
        self, round: Round | FiniteRound, features: Any, states: list[dict[str, Array]] | None = None
    ) -> list[CellPayoff]:
        """Parts of the payoff on the cells of a round, in their present or a past state."""
        cell_grid = self.prior.cell_grid(round, features)
        known = self.states if states is None else states
        cell_payoffs = [
            part.cell_payoff(cell_grid, state) for part, state in zip(self.bound_payoff.parts, known, strict=True)
        ]
        if self.sizes is None:
            self._make_ledger([cell_payoff.size for cell_payoff in cell_payoffs])
        assert self.sizes is not None
        for cell_payoff, size, name in zip(cell_payoffs, self.sizes, self.bound_payoff.names, strict=True):
            if cell_payoff.size != size:
                raise ValueError(
                    f"expected {size} coordinates of the payoff {name!r} in every round, got {cell_payoff.size}"
                )
        return cell_payoffs

    def _solve(self, record: DenseRecord, mix: Array, pending: float, reserved: float) -> CandidateSearch:
        """Find a forecast and write it into the record."""
        assert record.cell_payoffs is not None
        ledger = self.ledger
        search = CandidateSearch(ledger, record.cell_payoffs, record.context, reserved, self.solver.temperature)
        cell_grid = self.prior.cell_grid(record.round, record.features)
        warm = self.prior.warm_start(record.round, np.log(np.maximum(mix, 1e-300)))
        self.solver.solve(search, DenseRound(cell_grid, mix, warm, pending, ledger.rounds))
        p = masses_of(search.best)
        record.temperature = search.temperature
        record.certificate[:] = search.certificate
        record.claim = search.claim
        self.prior.store(record.round, p, mix)
        return search

    def payoff(self, record: DenseRecord, y: Any) -> Array:
        """Payoff of an outcome, before contexts and weights."""
        if record.cell_payoffs is None:
            record.cell_payoffs = self.cell_payoffs(record.round, record.features, record.states)
        p = self.prior.result(record.round)
        k, near = self.prior.place(record.round, y), self.prior.near(record.round, y)
        return np.concatenate([cell_payoff.realised(p, k, near) for cell_payoff in record.cell_payoffs])

    def update(self, record: DenseRecord, y: Any, *, reserved: float = 0.0, late: float = 0.0) -> None:
        """Settle a round by its outcome; an error, also of a user's function, changes nothing."""
        payoff = self.payoff(record, y)
        arrays = self.arrays()
        before = [array.copy() for array in arrays.values()]
        try:
            self._settle(record, y, payoff, reserved, late)
        except BaseException:
            for array, was in zip(arrays.values(), before, strict=True):
                array[...] = was
            raise

    def _settle(self, record: DenseRecord, y: Any, payoff: Array, reserved: float, late: float) -> None:
        p = self.prior.result(record.round)
        k = self.prior.place(record.round, y)
        assert record.cell_payoffs is not None
        cell_payoffs = record.cell_payoffs
        self.ledger.book(payoff, record.context, record.certificate, reserved=reserved)
        for cell_payoff, state in zip(cell_payoffs, self.states, strict=True):
            if isinstance(cell_payoff, RegretCellPayoff):
                _learn_losses(cell_payoff, state, p, k, y)
        if self._empirical.size:
            # the prior of quantile payoffs has rounds on an ordered space
            levels, round = self.bound_payoff.empirical_levels, record.round
            count_arrays(round, float(y), levels, self.ledger.discount, self._empirical)
        if self.actions.payoff:
            swap: Any = cell_payoffs[self.actions.number]
            realised = swap.plain.realised(p, k, self.prior.near(record.round, y))
            self.actions.count(record.decision, swap, p, realised, self.ledger.discount)
        self.prior.learn(record.round, y, k, late)

    def decide(self, record: DenseRecord, rng: Any) -> Any:
        """Action of a round, drawn with the weights of the only `SwapRegret`."""
        if record.cell_payoffs is None:
            record.cell_payoffs = self.cell_payoffs(record.round, record.features, record.states)
        swap, p = record.cell_payoffs[self.actions.number], self.prior.result(record.round)
        return self.actions.payoff.actions[self.actions.draw(record.decision, swap, p, record.draw(), rng)]

    def pits(self, record: DenseRecord, y: Any) -> Array:
        """PITs of an outcome, two numbers each: of the forecast and of each expert, nan if it is missing."""
        return self.prior.engine.pits(record.round, y)

    def context_of(self, record: DenseRecord) -> Array:
        """Context of a round."""
        return record.context

    @property
    def runs(self) -> bool:
        """False: there is no compiled loop."""
        return False

    # --- the public forecast
    def forecast(self, record: DenseRecord) -> Any:
        """Forecast of a round, with its certificate."""
        certificate = _ledger.certificate_of(record.certificate, *(record.claim or ()))
        return self.prior.forecast(record.round, certificate)

    def guarantee(self) -> Guarantee:
        """Bounds and miscalibration so far."""
        if self._ledger is None:
            return Guarantee(0, 0.0, math.inf, 1.0)
        regrets: dict[int, dict[str, float]] = {}
        seen: dict[int, Array] = {}
        for number, (payoff, state) in enumerate(zip(self.bound_payoff.payoffs, self.states, strict=True)):
            if isinstance(payoff, NoRegret):
                values = state["excess"] / np.maximum(state["rounds"], 1.0)
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, values.ravel()), strict=True))
                seen[number] = state["rounds"]
        empirical = self.bound_payoff.empirical(self._ledger, self.bound_payoff.empirical_levels, self._empirical)
        decided = self.actions.empirical(self._ledger)
        if decided is not None and empirical is not None:
            errors, bounds = empirical.errors | decided.errors, empirical.bounds | decided.bounds
            decided = replace(decided, errors=errors, bounds=bounds)
        return self.bound_payoff.guarantee(self._ledger, regrets, seen, decided or empirical)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """State of the engine."""
        found = {f"prior/{name}": array for name, array in self.prior.memory().items()}
        for i, state in enumerate(self.states):
            found.update({f"part/{i}/{name}": array for name, array in state.items()})
        if self._ledger is not None:
            found.update({f"ledger/{name}": array for name, array in self._ledger.arrays().items()})
        if self._empirical.size:
            found["empirical"] = self._empirical
        return found | self.actions.arrays()

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the `arrays` of an equal engine."""
        self.prior.restore({name[6:]: a for name, a in arrays.items() if name.startswith("prior/")})
        for i, state in enumerate(self.states):
            _restore_part(state, arrays, i)
        if self._ledger is not None:
            mine = self._ledger.arrays()
            theirs = {name: arrays[f"ledger/{name}"] for name in mine}
            admissible.restore_fields(mine, theirs)
            admissible.check_accounts(self._ledger)
        counted = {"empirical": self._empirical} if self._empirical.size else {}
        admissible.restore_fields(counted | self.actions.arrays(), arrays)

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> DenseRecord:
        """Pending round from its arrays."""
        round = self.prior.engine.restored_record(
            {name[6:]: a for name, a in arrays.items() if name.startswith("round/")}, None
        )
        context, certificate = np.ones(self.ledger.layout.groups), np.zeros(_ledger.CERTIFICATE_SIZE)
        temperature, claim, decision = np.zeros(1), np.zeros(3), np.zeros(2)
        own = {"context": context, "certificate": certificate, "temperature": temperature, "claim": claim}
        admissible.restore_fields({**own, "decision": decision}, arrays)
        admissible.check_certificate(certificate, self.ledger)
        states = [part.state() for part in self.bound_payoff.parts]
        for i, state in enumerate(states):
            _restore_part(state, arrays, i)
        found = HalfSpaceClaim(float(claim[1]), float(claim[2])) if claim[0] else None
        warm = float(temperature[0])
        return DenseRecord(round, context, certificate, features, None, warm, states, found, decision)


def _restore_part(state: dict[str, Array], arrays: dict[str, NDArray[Any]], number: int) -> None:
    """Restore the state of a part of the payoff."""
    theirs = {name: arrays[f"part/{number}/{name}"] for name in state}
    admissible.restore_fields(state, theirs)


def _learn_losses(cell_payoff: RegretCellPayoff, state: dict[str, Array], p: Array, k: int, y: Any) -> None:
    """Update the usual losses of the experts, and the excess of the forecast."""
    state["excess"] += cell_payoff.excess(p, k, y)
    state["rounds"] += cell_payoff.present
    for e in np.flatnonzero(cell_payoff.present):
        for i, score in enumerate(cell_payoff.scores):
            own = loss_at(score, cell_payoff.cell_grid, cell_payoff.cell_grid.experts[e], k, y)
            state["loss"][i, e] = LOSS_DISCOUNT * state["loss"][i, e] + own
        state["count"][e] = LOSS_DISCOUNT * state["count"][e] + 1.0
