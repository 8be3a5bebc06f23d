"""Engine on ordered spaces: quantiles, intervals, moments and regret, by a committee and kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.committee import group as committee_kernels
from orcast.committee.group import Group
from orcast.committee.members import plan_for
from orcast.contexts import ContextInputs
from orcast.engine import admissible
from orcast.engine.bound_payoff import BoundPayoff, Learning
from orcast.forecasts import Forecast
from orcast.kernels import records
from orcast.kernels import rounds as kernels
from orcast.kernels.reading import pits_of
from orcast.kernels.state import Layout, Memory, Round, Rules, restored_round
from orcast.ledger import Guarantee, Ledger
from orcast.payoffs import CellGrid, NoRegret
from orcast.spaces import OrderedSpace

Array = NDArray[np.float64]

NOTHING: Array = np.empty(0)
# Rounds in one call of the compiled loop: between two calls Python can be interrupted.
AT_ONCE = 2000
WEIGHT = int(_ledger.Account.WEIGHT)
# Rows of the cells of a round.
LEFT, RIGHT, PRIOR, EXPERT, PLAYED, TILT = range(6)


class OrderedEngine:
    """Rounds of quantiles, intervals, moments and regret on an ordered space."""

    def __init__(self, bound_payoff: BoundPayoff, *, temperature: float, learning: Learning) -> None:
        space = bound_payoff.space
        assert isinstance(space, OrderedSpace)
        self.space, self.bound_payoff = space, bound_payoff
        kinds = {kind: [p for p in bound_payoff.parts if p.kind == kind] for kind in ("quantile", "interval", "moment")}
        grids = [p.payoff.levels for p in kinds["quantile"] + kinds["interval"]]  # type: ignore[attr-defined]
        levels = np.unique(np.concatenate(grids)) if grids else NOTHING
        intervals: list[tuple[int, int]] = []
        for part in kinds["interval"]:
            at = np.searchsorted(levels, part.payoff.levels)  # type: ignore[attr-defined]
            intervals.extend((int(at[a]), int(at[b])) for a, b in part.payoff.ends)  # type: ignore[attr-defined]
        orders = max((p.size for p in kinds["moment"]), default=0)
        regrets = [p.payoff for p in bound_payoff.parts if p.kind == "regret"]
        scores = {score.name for payoff in regrets for score in payoff.scores}  # type: ignore[attr-defined]
        count = len(bound_payoff.experts)
        at_power = levels.size + len(intervals)
        at_regret = {"crps": at_power + orders, "mse": at_power + orders + ("crps" in scores) * count}
        places: list[list[int]] = []
        next_interval = levels.size
        for part in bound_payoff.parts:
            if part.kind == "quantile":
                places.append(np.searchsorted(levels, part.payoff.levels).tolist())  # type: ignore[attr-defined]
            elif part.kind == "interval":
                places.append(list(range(next_interval, next_interval + part.size)))
                next_interval += part.size
            elif part.kind == "moment":
                places.append(list(range(at_power, at_power + part.size)))
            else:
                own = part.payoff.scores  # type: ignore[attr-defined]
                places.append([at_regret[score.name] + e for score in own for e in range(count)])
        layout = bound_payoff.layout(places)
        self.levels = levels
        group_at, group_count = groups_of(layout)
        self.rules = Rules(
            layout,
            low=space.low,
            high=space.high,
            grid=space.levels,
            cells=space.cells,
            tail_cells=int(space.tail_cells),
            experts=count,
            jumps=NOTHING,
            levels=levels,
            intervals=np.array(intervals, dtype=np.int64),
            orders=orders,
            crps=int("crps" in scores),
            mse=int("mse" in scores),
            temperature=temperature,
            learns=int(learning.committee),
            group_at=group_at,
            group_count=group_count,
        )
        self.pooled, self.seasons = learning.pooled, (0, 0)
        self.group = self._group(None) if learning.committee else None
        self._none = np.empty((0, space.levels.size))
        self._plain_context = np.ones(self.rules.groups)
        self._ends = space.low == -math.inf, space.high == math.inf
        self._start()

    def _start(self) -> None:
        """Start with an empty memory."""
        self.memory = Memory(self.rules)
        self.ledger = Ledger(self.memory)

    def cut_at(self, places: Array) -> None:
        """Add edges of cells, before the first round."""
        self.rules = Rules(self.rules.layout, **{**self.rules.options, "jumps": places})
        self._start()

    def _group(self, pool_rows: Array | None) -> Group:
        """Committee before the first round: a stream for each expert."""
        count, space = self.rules.experts, self.space
        plan = plan_for(space.levels, space.scores, pooled=self.pooled)
        bounds, none = np.tile([space.low, space.high], (count, 1)), [0] * count
        horizons = list(range(count)) if self.pooled else none
        return Group(plan, none, horizons, none, bounds, np.array([self.seasons]), pool_rows)

    def join(self, pool_rows: Array) -> None:
        """Use the rows of a pool, one for each expert, before the first round."""
        self.group = self._group(pool_rows)

    def presume_seasons(self, lags: Sequence[int]) -> None:
        """Give the committee one or two seasons, before the first round."""
        if self.group is None:
            raise TypeError("expected seasons= only with Committee(), got another oracle")
        first, *rest = sorted(lags)
        self.seasons = first, rest[0] if rest else 0
        self.group = self._group(self.group.pooling)

    @property
    def capacity(self) -> int:
        """Largest number of cells of a round."""
        return self.rules.capacity

    # --- known before the outcome
    def known(self, experts: Array | None, features: Any, bound_payoff: BoundPayoff, rounds: int) -> ContextInputs:
        """Inputs of the contexts of a payoff."""
        if bound_payoff.plain:
            return ContextInputs(features)
        level = spread = math.nan
        if experts is not None and bound_payoff.needs_expert:
            pool = experts[0] if len(experts) == 1 else np.nanmean(experts, axis=0)
            level = float(pool[pool.size // 2])
            low, high = np.interp([0.1, 0.9], self.space.levels, pool)
            spread = float(high - low)
        last = self.memory.read("statistics", "last_error") if rounds else math.nan
        return ContextInputs(features, level, spread, last)

    def experts_or_own(self, experts: Array | None) -> Array:
        """Rows of the experts; without any on an unbounded space, a Gaussian around the past outcomes as one row."""
        if experts is not None:
            return experts
        if not any(self._ends):
            return self._none
        spread = math.sqrt(self.memory.read("statistics", "level_variance"))
        own: Array = self.memory.read("statistics", "level_mean") + 2.0 * spread * self.space.scores
        return own[None, :]

    def context(self, experts: Array | None, features: Any) -> Array:
        """Contexts of all parts for a new round."""
        if self.bound_payoff.plain:
            return self._plain_context
        known = self.known(experts, features, self.bound_payoff, self.ledger.rounds)
        return self.bound_payoff.context(known)

    # --- the round
    def predict(
        self,
        experts: Array | None,
        features: Any = None,
        *,
        pending: float = 0.0,
        reserved: float = 0.0,
        number: float = 0.0,
        prior: Array | None = None,
        draw: float = 0.0,
    ) -> Round:
        """Compute a round around the experts' quantiles, a row each (or without any); the memory does not change.

        pending, reserved : outcomes outstanding, and the slack that their rounds reserve
        prior : corrected quantiles; by default those of the engine's own committee
        draw : number in (0, 1) if quantiles are randomised
        """
        context = self.context(experts, features)
        rows = self.experts_or_own(experts)
        memo = None
        if prior is None:
            prior, memo = self.committee_quantiles(experts, rows, number)
        round = kernels.predict(
            self.rules, self.memory, rows, prior, experts is None, pending, reserved, context, draw, None
        )
        round.memo = memo
        return round

    def committee_quantiles(self, experts: Array | None, rows: Array, number: float) -> tuple[Array, Array | None]:
        """Quantiles around which a round is computed, and the committee's memo."""
        if self.group is not None and experts is not None:
            found: tuple[Array, Array] = committee_kernels.predict(self.group, rows, number)
            return found
        if len(rows) <= 1:
            return (rows[0] if len(rows) else NOTHING), None
        return np.nanmean(rows, axis=0), None

    def payoff(self, record: Round, y: float) -> Array:
        """Core payoff of an outcome."""
        return self.payoffs(record, np.array([y]))[0]

    def payoffs(self, record: Round, ys: Array) -> Array:
        """Core payoffs of outcomes, one row each."""
        near = np.clip(ys, record.read("info", "low"), record.read("info", "high"))
        return kernels.payoffs(self.rules, record, near)

    def update(self, record: Round, y: float, *, reserved: float = 0.0, late: float = 0.0) -> None:
        """Settle the outcome of a round; `late` others were issued before it was known."""
        kernels.update(self.rules, self.memory, record, reserved, y)
        self.learn(record, y, late)

    def pits(self, record: Round, y: float) -> Array:
        """PITs of an outcome, two numbers each: of the forecast and of each expert, nan if it is missing."""
        return pits_of(record, y)

    def learn(self, record: Round, y: float, late: float) -> None:
        """Update the committee with the outcome of a round."""
        memo: Array | None = record.memo
        if memo is not None:
            committee_kernels.update(self.group, memo, y, late)

    def context_of(self, record: Round) -> Array:
        """Context of a round."""
        return record.view("context")

    @property
    def runs(self) -> bool:
        """True if whole histories can be computed in one compiled loop."""
        return not self.bound_payoff.needs_last and not (self.bound_payoff.needs_expert and self.rules.experts > 1)

    def run(
        self,
        experts: Array,
        features: Sequence[Any] | None,
        outcomes: Array,
        levels: Array,
        draws: Array | None = None,
        *,
        number: float = 0.0,
        pits: Array = NOTHING,
    ) -> tuple[Array, Array]:
        """Run many rounds in compiled loops: the quantiles of each forecast, and its log (`records.ROUND_LOG`).

        `pits` takes a row for each round, as `pits` returns it, unless it is empty.
        """
        rounds = outcomes.size
        if draws is None:
            draws = np.zeros(rounds)
        quantiles, log = np.empty((rounds, levels.size)), np.empty((rounds, _ledger.ROUND_LOG_SIZE))
        contexts = np.ones((rounds, self.rules.groups))
        if not self.bound_payoff.plain:
            for t in range(rounds):
                x = None if features is None else features[t]
                contexts[t] = self.bound_payoff.context(self.known(experts[t], x, self.bound_payoff, 0))
        experts, outcomes = np.ascontiguousarray(experts), np.asarray(outcomes, dtype=np.float64)
        for start in range(0, rounds, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            given = (array[part].reshape(-1) for array in (experts, contexts, outcomes, draws))
            read = quantiles[part].reshape(-1), log[part].reshape(-1), pits[part].reshape(-1)
            plan = None if self.group is None else self.group.plan
            kernels.run(self.rules, self.memory, plan, self.group, number + start, *given, levels, *read)  # type: ignore[call-arg]
        return quantiles, log

    # --- the public forecast
    def forecast(self, record: Round) -> Forecast:
        """Forecast of a round; its certificate is built when it is read."""
        return Forecast.issued(record, self._ends, lambda: _ledger.certificate_of(record.certificate_row))

    def guarantee(self) -> Guarantee:
        """Bound and miscalibration so far."""
        regrets: dict[int, dict[str, float]] = {}
        rivals = self.memory.view("rivals")
        columns = {"crps": records.RIVAL.index("crps_excess"), "mse": records.RIVAL.index("mse_excess")}
        seen = np.maximum(rivals[:, records.RIVAL.index("rounds")], 1.0)
        for number, payoff in enumerate(self.bound_payoff.payoffs):
            if isinstance(payoff, NoRegret):
                values = [rivals[:, columns[score.name]] / seen for score in payoff.scores]
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, np.concatenate(values)), strict=True))
        sums = np.concatenate((self.memory.view("empirical"), self.memory.view("counts")))
        empirical = self.bound_payoff.empirical(self.ledger, self.levels, sums)
        return self.bound_payoff.guarantee(self.ledger, regrets, empirical=empirical)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """State of the engine."""
        committee = {} if self.group is None else self.group.arrays()
        return {**self.memory.views(), **{f"committee_{name}": array for name, array in committee.items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the `arrays` of an equal engine."""
        admissible.restore_fields(self.arrays(), arrays)
        admissible.check_accounts(self.ledger)
        if self.group is not None:
            admissible.check_group(self.group)

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> Round:
        """Pending round from its arrays, checked so that no kernel reads outside its arrays."""
        blank = Round(self.rules)
        row = admissible.check_shape("row", arrays["row"], blank.row)
        memo = None
        if self.group is not None and "memo" in arrays:
            memo = admissible.check_shape("memo", arrays["memo"], np.empty(self.group.memo_size))
            admissible.check_range("memo", memo, admissible.ANY._replace(missing=True))
            plan, count = self.group.plan, self.rules.experts
            admissible.check_memos(plan, memo[: count * plan.memo_size].reshape(count, -1))
        record = restored_round(Round, self.rules, row, memo)
        self.check_round(record)
        return record

    def check_round(self, record: Round) -> None:
        """Refuse a round whose numbers no kernel could have computed."""
        fields = record.views()
        admissible.restore_fields(fields, fields)
        admissible.check_round(record)
        admissible.check_certificate(record.view("certificate"), self.ledger)


def groups_of(layout: Layout) -> tuple[int, int]:
    """Groups that are corrected before the last layer: those of the part with most groups."""
    counts = layout.part_table[:, _ledger.PartColumn.GROUPS]
    if not (counts > 1).any():
        return 0, 0
    most = int(counts.argmax())
    return int(layout.part_table[most, _ledger.PartColumn.CONTEXT]), int(counts[most])


def cell_grid_of(space: OrderedSpace, round: Round, features: Any) -> CellGrid:
    """Cells of a round as payoffs use them."""
    n, cells = round.count(), round.view("cells")
    experts = round.view("rivals")[:, :n].copy()
    if len(experts) > 1:
        experts[np.isnan(round.view("experts")[1:, 0])] = np.nan
    return CellGrid(
        space,
        n,
        cells[LEFT, :n],
        cells[RIGHT, :n],
        round.read("info", "low"),
        round.read("info", "high"),
        cells[EXPERT, :n],
        experts,
        features,
    )
