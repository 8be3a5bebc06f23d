"""Engine on events and labels: calls the kernels of rounds on finite spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.constants import USUAL_TEMPERATURE
from orcast.contexts import ContextInputs
from orcast.engine import admissible
from orcast.engine.bound_payoff import CONFIDENCE, BoundPayoff
from orcast.forecasts import BinaryForecast, FiniteForecast, LabelForecast, forecast_on
from orcast.kernels import finite_members, records
from orcast.kernels import finite_rounds as kernels
from orcast.kernels.finite_state import FiniteRound, FiniteRules, FiniteState
from orcast.kernels.state import restored_round
from orcast.ledger import Certificate, Empirical, Guarantee, Ledger
from orcast.payoffs import BinaryCalibration, Calibeating, LabelCalibration, MomentMatching, NoRegret, Payoff
from orcast.scores import Brier
from orcast.spaces import Binary, Labels

Array = NDArray[np.float64]

# The usual temperature on two cells.
BINARY_TEMPERATURE = 6.0
# Nodes from which probabilities are drawn, for each hat of the calibration payoff: of an event, and of labels.
NODES_PER_HAT, LABEL_NODES_PER_HAT = 3, 4
NO_NODES: Array = np.empty(0)
# Hats of the forecast's own probabilities.
CALIBRATION = (BinaryCalibration, LabelCalibration)
# Rounds in one call of the compiled loop: between two calls Python can be interrupted.
AT_ONCE = 2000
# Columns of the records that Python reads.
EXCESS, ROUNDS = records.FINITE_RIVAL.index("excess"), records.FINITE_RIVAL.index("rounds")
MEAN, SD = records.ROUND_LOG.index("mean"), records.ROUND_LOG.index("sd")


def plays(bound_payoff: BoundPayoff) -> bool:
    """Return True if the kernels on finite spaces cover the space and all payoffs."""
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


def nodes_on(space: Any, hats: int) -> Array:
    """Probabilities from which those of the events are drawn.

    On `Binary` sin^2 of even angles, v_i = sin^2(pi (i + 1/2) / (2 n)), i < n: so that the draw
    adds at most sin^2(pi / (2 n)) p (1 - p) to the expected Brier score. On labels even nodes, so
    that the masses add up to 1, from 1 / (4 n^2) on.
    """
    if isinstance(space, Binary):
        count = NODES_PER_HAT * hats
        return np.asarray(np.sin(0.5 * np.pi * (np.arange(count) + 0.5) / count) ** 2)
    count = LABEL_NODES_PER_HAT * hats
    least = min(0.25 / count**2, 0.01 / space.cells)
    return np.asarray(least + (1.0 - space.cells * least) * np.arange(count + 1) / count)


class FiniteEngine:
    """Rounds of calibrated probabilities, also given the expert, with no regret in Brier score."""

    def __init__(
        self,
        bound_payoff: BoundPayoff,
        *,
        temperature: float,
        members: Array,
        two_cells: bool | None = None,
        moved: int = 0,
    ) -> None:
        self.bound_payoff = bound_payoff
        self.space: Any = bound_payoff.space
        self.binary = isinstance(self.space, Binary)
        count, cells = len(bound_payoff.experts), self.space.cells
        events = 1 if self.binary else cells
        two_cells = cells == 2 if two_cells is None else two_cells
        if len(members) and two_cells:
            # the root on two cells has another default temperature
            temperature *= BINARY_TEMPERATURE / USUAL_TEMPERATURE
        hats, expert_hats = self._grid(CALIBRATION), self._grid((Calibeating,))
        nodes = nodes_on(self.space, hats) if bound_payoff.drawn and hats else NO_NODES
        hats = len(nodes) or hats
        bias = int(any(isinstance(p, MomentMatching) for p in bound_payoff.payoffs))
        regret = int(any(isinstance(p, NoRegret) for p in bound_payoff.payoffs))
        cuts = np.cumsum([0, hats * events, expert_hats * events, bias, regret * count]).tolist()
        places = [range(*cuts[kind : kind + 2]) for kind in map(_kind, bound_payoff.payoffs)]
        self.rules = FiniteRules(
            bound_payoff.layout(places),
            cells=cells,
            events=events,
            hats=hats,
            expert_hats=expert_hats,
            bias=bias,
            regret=regret,
            brier=0.5 if self.binary else 1.0,
            rivals=count,
            temperature=temperature,
            two_cells=int(two_cells),
            members=members,
            moved=moved,
            nodes=nodes,
        )
        self.state = FiniteState(self.rules)
        finite_members.start(self.state)
        self.ledger = Ledger(self.state)
        self._plain = bound_payoff.plain
        self._drawn_class = BinaryForecast if self.binary else LabelForecast

    def _grid(self, kinds: tuple[type[Payoff], ...]) -> int:
        return next((p.grid for p in self.bound_payoff.payoffs if isinstance(p, kinds)), 0)  # type: ignore[attr-defined]

    # --- the round
    def known(
        self, experts: Array | float | None, features: Any, bound_payoff: BoundPayoff, rounds: int | None = None
    ) -> ContextInputs:
        """Inputs of the contexts of a payoff; `rounds` are those of its ledger, or else of the engine's own."""
        if bound_payoff.needs_last and not self.binary:
            raise TypeError(f"expected a numeric space for by_last_error(), got {self.space!r}")
        level = math.nan
        if isinstance(experts, float):
            level = experts
        elif experts is not None and bound_payoff.needs_expert:
            pool = finite_members.pooled(self.state, experts)
            level = float(pool[1] if self.binary else pool.max())
        settled = self.ledger.rounds if rounds is None else rounds
        last = self.state.view("last").item(0) if self.binary and settled else math.nan
        return ContextInputs(features, level, math.nan, last)

    def predict(
        self,
        experts: Array | float | None,
        features: Any = None,
        *,
        pending: float = 0.0,
        reserved: float = 0.0,
        number: float = 0.0,
    ) -> FiniteRound:
        """Compute a round around the experts' masses, or the probability of 1 by a single expert, or without any."""
        context = None
        if not self._plain:
            context = self.bound_payoff.context(self.known(experts, features, self.bound_payoff))
        return kernels.predict_finite(self.state, experts, pending, reserved, context)

    def payoff(self, record: FiniteRound, y: Any) -> Array:
        """Core payoff of an outcome."""
        return kernels.payoff_finite(record, self.space.cell(y))

    def update(self, record: FiniteRound, y: Any, *, reserved: float = 0.0, late: float = 0.0) -> None:
        """Settle the outcome of a round."""
        kernels.update_finite(self.state, record, reserved, self.space.cell(y))

    def pits(self, record: FiniteRound, y: Any) -> Array:
        """PITs of an outcome, two numbers each: of the published forecast and of each expert, nan if it is missing."""
        return kernels.pits_of(record, self.space.cell(y))

    def context_of(self, record: FiniteRound) -> Array:
        """Context of a round."""
        return record.view("context")

    @property
    def runs(self) -> bool:
        """True if whole histories can be computed in one compiled loop."""
        return not self.bound_payoff.needs_last and not self.bound_payoff.needs_expert

    def run(
        self,
        experts: Array,
        features: Sequence[Any] | None,
        outcomes: Array,
        levels: Array,
        *,
        number: float = 0.0,
        draws: Array | None = None,
        pits: Array = NO_NODES,
    ) -> tuple[Array, Array]:
        """Run many rounds in compiled loops: masses of each forecast (on `Binary` that of 1), and its log.

        `pits` takes a row for each round, as `pits` returns it, unless it is empty.
        """
        count, cells = len(outcomes), self.space.cells
        result, log = np.empty((count, cells)), np.full((count, _ledger.ROUND_LOG_SIZE), np.nan)
        contexts = np.ones((count, self.rules.groups))
        if not self._plain:
            for t in range(count):
                contexts[t] = self.bound_payoff.context(ContextInputs(None if features is None else features[t]))
        experts, outcomes = np.ascontiguousarray(experts), outcomes.astype(np.int64)
        draws = np.zeros(count) if draws is None else draws
        for start in range(0, count, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            rows = [array[part].reshape(-1) for array in (experts, contexts, outcomes, draws, result, log, pits)]
            kernels.run(self.state, *rows)
        if not self.binary:
            return result, log
        p = result[:, 1].copy()
        log[:, MEAN], log[:, SD] = p, np.sqrt(p * (1.0 - p))
        return p, log

    # --- the public forecast
    def forecast(self, record: FiniteRound) -> FiniteForecast:
        """Forecast of a round; its certificate is built when it is read."""

        def certificate() -> Certificate:
            return _ledger.certificate_of(record.certificate_row)

        if self.rules.drawn:
            mass = kernels.published(record)
            published: Any = float(mass[1]) if self.binary else mass
            return self._drawn_class.trusted(self.space, published, certificate, record.view("result").copy())
        if self.binary:
            return BinaryForecast.trusted(self.space, record.probability(1), certificate)
        return forecast_on(self.space, record.view("result").copy(), certificate)

    def guarantee(self) -> Guarantee:
        """Bounds and miscalibration so far."""
        regrets: dict[int, dict[str, float]] = {}
        rivals = self.state.view("rivals")
        excess = rivals[:, EXCESS] / np.maximum(rivals[:, ROUNDS], 1.0)
        for number, payoff in enumerate(self.bound_payoff.payoffs):
            if isinstance(payoff, NoRegret):
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, excess), strict=True))
        return self.bound_payoff.guarantee(self.ledger, regrets, empirical=self._empirical())

    def _empirical(self) -> Empirical | None:
        """Errors of the published probabilities, and their bounds; None where these are not calibrated."""
        sums, counts = self.state.view("empirical"), self.state.view("counts")
        if not sums.size:
            return None
        mean = sums / max(float(counts[1]), 1.0)
        events, seen = mean.shape[1], np.count_nonzero(mean)
        errors = {"ece": float(np.abs(mean).sum()) / events, "ece l2": float(np.linalg.norm(mean))}
        counted = [isinstance(payoff, CALIBRATION) for payoff in self.bound_payoff.payoffs]
        root = self.bound_payoff.empirical_bound(self.ledger, counted, counts)
        bounds = {} if root is None else {"ece": root * math.sqrt(seen) / events, "ece l2": root}
        return Empirical(errors, bounds, CONFIDENCE)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """State of the engine."""
        return self.state.views()

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the `arrays` of an equal engine."""
        admissible.restore_fields(self.arrays(), arrays)
        admissible.check_accounts(self.ledger)
        admissible.check_matrices("curvature", self.state.view("curvature"))

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> FiniteRound:
        """Pending round from its arrays."""
        blank = FiniteRound(self.rules)
        record = restored_round(FiniteRound, self.rules, admissible.check_shape("row", arrays["row"], blank.row))
        mine = record.views()
        admissible.restore_fields(mine, mine)
        admissible.check_range("experts", mine["experts"], admissible.MASS._replace(missing=True))
        admissible.check_certificate(record.view("certificate"), self.ledger)
        for name in ("pool", "prior", "result"):
            admissible.check_masses(f"{name} of a pending round", mine[name])
        missing = np.isnan(mine["experts"])
        if (missing.any(axis=1) != missing.all(axis=1)).any():
            raise ValueError("an expert of a pending round has missing masses")
        return record


def _kind(payoff: Payoff) -> int:
    """Position of a payoff among the kinds of the core."""
    if isinstance(payoff, CALIBRATION):
        return 0
    return 1 if isinstance(payoff, Calibeating) else 2 if isinstance(payoff, MomentMatching) else 3
