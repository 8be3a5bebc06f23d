"""The engine on ordered spaces: a thin coat over the compiled rounds.

It plays direct sums of quantile, interval, moment and regret payoffs and of everything whose tilt is explicit, given
contexts that do not depend on the forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.constants import DELAY_TEMPERATURE
from orcast.contexts import ContextInputs
from orcast.engine import admissible
from orcast.engine.base import Learning
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.explain import PartTilt, explanation
from orcast.engine.kernels import cells as cell_kernels
from orcast.engine.kernels import equilibrium as equilibrium_kernels
from orcast.engine.kernels import judging, last_layer, packing, tracker
from orcast.engine.kernels import outcomes as outcome_kernels
from orcast.engine.kernels import rounds as round_kernels
from orcast.engine.kernels.packing import Shape, fields, length, memory_shapes, round_shapes, slices
from orcast.engine.kernels.records import (
    BASIS,
    LOCATION_FEATURES,
    SPREAD_FEATURES,
    CellRow,
    GroupColumn,
    Memory,
    QuantileTrackerColumn,
    RegretScore,
    RivalColumn,
    Round,
    RoundInfo,
    Rules,
    Statistic,
)
from orcast.forecasts import Forecast
from orcast.jit import expect_rounds
from orcast.ledger import Certificate, Guarantee, Ledger, LedgerLayout
from orcast.payoffs import CellGrid, NoRegret
from orcast.payoffs.cell_payoffs import ExplicitCellPayoff
from orcast.payoffs.recipe import BoundedCellPayoff
from orcast.spaces import TAIL_MASS, OrderedSpace

Array = NDArray[np.float64]

NOTHING: Array = np.empty(0)
# As plain numbers for what Python reads in every round: an enum costs as much as the reading.
LEFT, RIGHT, PLAYED = int(CellRow.LEFT), int(CellRow.RIGHT), int(CellRow.PLAYED)


def slot_masses(space: OrderedSpace) -> Array:
    """Masses of the cells around an expert before atoms merge; how a tail shares its own hardly matters to cosines."""
    side = space.tail_cells + 1
    fall = cell_kernels.TAIL_FALL
    tail = TAIL_MASS * (1.0 - fall) / (1.0 - fall**side) * fall ** np.arange(side)
    inner = space.cells - 2 * side
    return np.concatenate((tail[::-1], np.full(inner, (1.0 - 2.0 * TAIL_MASS) / inner), tail))


def cosine_means(masses: Array) -> Array:
    """Mean of sqrt(2) cos(pi j u) over each cell's share of [0, 1]."""
    edges = np.concatenate(([0.0], np.cumsum(masses)))
    w = np.pi * np.arange(1, BASIS + 1)
    rise = np.sin(np.outer(edges[1:], w)) - np.sin(np.outer(edges[:-1], w))
    means: Array = np.sqrt(2.0) * rise / (w * masses[:, None])
    return means


class OrderedRecord:
    """A pending round: its row of numbers, the features it had, and its witnesses (remade after a load)."""

    __slots__ = ("_shapes", "cell_payoffs", "certificate", "features", "row", "slots")

    def __init__(self, shapes: tuple[Shape, ...], row: Array, slots: NDArray[np.int64], certificate: Array) -> None:
        self._shapes, self.row, self.slots, self.certificate = shapes, row, slots, certificate
        self.features: Any = None
        self.cell_payoffs: list[ExplicitCellPayoff] | None = None

    @property
    def round(self) -> Round:
        """The round's arrays, views of its row."""
        return Round(self.slots, *fields(self._shapes, self.row))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it but the features."""
        return {"row": self.row, "slots": self.slots}


class OrderedEngine:
    """Plays rounds of an explicit or quantile-like payoff on an ordered space."""

    def __init__(self, bound_payoff: BoundPayoff, *, temperature: float, effort: int, learning: Learning) -> None:
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
        self.explicit = [p for p in bound_payoff.parts if p.kind == "explicit"]
        regrets = [p.payoff for p in bound_payoff.parts if p.kind == "regret"]
        scores = {score.name for payoff in regrets for score in payoff.scores}  # type: ignore[attr-defined]
        count = len(bound_payoff.experts)
        witnesses = orders + sum(p.size for p in self.explicit)
        at_witness = levels.size + len(intervals)
        at_regret = {"crps": at_witness + witnesses, "mse": at_witness + witnesses + ("crps" in scores) * count}
        places: list[list[int]] = []
        next_interval, next_witness = levels.size, at_witness + orders
        for part in bound_payoff.parts:
            if part.kind == "quantile":
                places.append(np.searchsorted(levels, part.payoff.levels).tolist())  # type: ignore[attr-defined]
            elif part.kind == "interval":
                places.append(list(range(next_interval, next_interval + part.size)))
                next_interval += part.size
            elif part.kind == "moment":
                places.append(list(range(at_witness, at_witness + part.size)))
            elif part.kind == "explicit":
                places.append(list(range(next_witness, next_witness + part.size)))
                next_witness += part.size
            else:
                own = part.payoff.scores  # type: ignore[attr-defined]
                places.append([at_regret[score.name] + e for score in own for e in range(count)])
        layout = bound_payoff.layout(places)
        cuts = np.concatenate(([0], np.cumsum([part.size for part in bound_payoff.parts]))).astype(int)
        self._apart = bound_payoff.layout([range(a, b) for a, b in pairwise(cuts)])
        jumps = [part.jumps for part in bound_payoff.parts if part.jumps.size]
        self.ledger = Ledger(layout, discount=bound_payoff.discount)
        self.rules = Rules(
            space.low,
            space.high,
            space.levels.copy(),
            space.scores.copy(),
            space.cells,
            int(space.tail_cells),
            count,
            int(layout.parts[:, _ledger.PartColumn.GROUPS].sum()),
            *groups_of(layout),
            np.unique(np.concatenate(jumps)) if jumps else NOTHING,
            levels.copy(),
            np.array(intervals, dtype=np.int64).reshape(-1, 2),
            orders,
            witnesses,
            int("crps" in scores),
            int("mse" in scores),
            layout,
            self.ledger.bound,
            bound_payoff.discount,
            temperature,
            effort,
            learning.learners.copy(),
            learning.quantile_trackers.copy(),
            int((learning.quantile_trackers[:, QuantileTrackerColumn.SHARE] > 0.0).sum()),
            learning.members.copy(),
            cosine_means(slot_masses(space)),
        )
        self._none = np.empty((0, space.levels.size))
        self._start()

    def _start(self) -> None:
        """An empty memory, and where a round's fields lie."""
        self._memory, self.memory = new_memory(self.rules)
        memory = self.memory
        for name, array in self.ledger.arrays().items():
            getattr(memory, name)[...] = array
        self.ledger.total, self.ledger.account, self.ledger.groups = memory.total, memory.account, memory.groups
        slots, *shapes = round_shapes(self.rules)
        self._slots, self._shapes = slots, tuple(shapes)
        self._length = length(self._shapes)
        lies: Any = Round(None, *slices(self._shapes))  # type: ignore[arg-type]
        self._cells_at = lies.info.start + int(RoundInfo.CELLS)
        self._coin_at = lies.info.start + int(RoundInfo.COIN)
        self._certificate, self._context = lies.certificate, lies.context

    def cut_at(self, places: Array) -> None:
        """Make given places edges of cells, before any round is played."""
        self.rules = self.rules._replace(jumps=places)
        self._start()

    def presume_seasons(self, lags: Sequence[int]) -> None:
        """Let the learners look at what surprised so many outcomes ago, before any round is played."""
        if not len(self.rules.learners):
            raise TypeError("expected seasons for Committee() with its trackers, got them for another oracle")
        self.memory.seasons[: len(lags)] = [-lag for lag in lags]

    @property
    def capacity(self) -> int:
        """Cells that a round has room for."""
        return self.space.cells + self.rules.jumps.size

    def new_record(self) -> OrderedRecord:
        """An empty round."""
        row = np.zeros(self._length)
        return OrderedRecord(self._shapes, row, np.zeros(self._slots, dtype=np.int64), row[self._certificate])

    # --- for loops that keep the records of many rounds themselves
    @property
    def memory_row(self) -> Array:
        """The whole memory, as kernels take it."""
        return self._memory

    @property
    def record_size(self) -> int:
        """Numbers in the row of a record."""
        return self._length

    # --- what is known before the outcome
    def known(self, experts: Array | None, features: Any, bound_payoff: BoundPayoff, rounds: int) -> ContextInputs:
        """What the contexts of some terms may look at."""
        if bound_payoff.plain:
            return ContextInputs(features)
        level = spread = math.nan
        if experts is not None and bound_payoff.needs_expert:
            pool = experts[0]
            if len(experts) > 1:
                pool = np.empty(experts.shape[1])
                round_kernels.pool_experts(self.memory, experts, pool)
            level = float(pool[pool.size // 2])
            low, high = np.interp([0.1, 0.9], self.space.levels, pool)
            spread = float(high - low)
        last = float(self.memory.statistics[Statistic.LAST_ERROR]) if rounds else math.nan
        return ContextInputs(features, level, spread, last)

    def experts_or_own(self, experts: Array | None) -> Array:
        """The experts; without any on an unbounded space, a Gaussian around the past outcomes, as one row."""
        if experts is not None:
            return experts if experts.flags.writeable else experts.copy()  # of either kind is code of its own
        if math.isfinite(self.space.high - self.space.low):
            return self._none
        statistics = self.memory.statistics
        spread = math.sqrt(statistics[Statistic.LEVEL_VARIANCE])
        own: Array = statistics[Statistic.LEVEL_MEAN] + 2.0 * spread * self.space.scores
        return own[None, :]

    def forget_unit(self, info: Array) -> None:
        """Nothing but the level is learnt from a forecast without an expert that has no past: it has no unit."""
        if not self.memory.account[_ledger.Account.ROUNDS]:
            info[RoundInfo.HAS_EXPERT] = 0.0

    # --- the round
    def predict(
        self,
        experts: Array | None,
        features: Any = None,
        *,
        pending: float = 0.0,
        reserved: float = 0.0,
        signal: Array = NOTHING,
    ) -> OrderedRecord:
        """Play one round around the experts' quantiles (or without any); the memory does not change.

        `signal` is what is heard of a pool, if the game is in one.
        """
        record = self.new_record()
        if self.bound_payoff.plain:
            record.row[self._context] = 1.0
        else:
            known = self.known(experts, features, self.bound_payoff, self.ledger.rounds)
            record.row[self._context] = self.bound_payoff.context(known)
        rows = self.experts_or_own(experts)
        if not self.explicit:
            packing.predict(self.rules, self._memory, rows, signal, float(pending), reserved, record.row, record.slots)
            if experts is None:
                self.forget_unit(record.round.info)
            return record
        mix = np.empty(self.capacity)
        round = record.round
        round_kernels.open_round(self.rules, self.memory, rows, signal, float(pending), round, mix)
        if experts is None:
            self.forget_unit(round.info)
        record.features, record.cell_payoffs = features, self._play(round, mix, reserved, not len(rows), features)
        if record.certificate[_ledger.CertificateField.HOLDS] == 0.0 and len(rows):
            other = self.copied(record)
            even = other.round
            round_kernels.recell(self.rules, self.memory, even, mix)
            other.cell_payoffs = self._play(even, mix, reserved, True, features)
            even.cells[CellRow.TILT] = 0.0
            if other.certificate[_ledger.CertificateField.HOLDS] > 0.0:
                return other
        return record

    def learnt(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, signal: Array = NOTHING
    ) -> Forecast:
        """What was learnt of the experts before the guarantee has its say: the prior of the last layer."""
        record = self.new_record()
        record.row[self._context] = 1.0
        if not self.bound_payoff.plain:
            known = self.known(experts, features, self.bound_payoff, self.ledger.rounds)
            record.row[self._context] = self.bound_payoff.context(known)
        round = record.round
        mix = round.cells[CellRow.PLAYED]
        round_kernels.open_round(
            self.rules, self.memory, self.experts_or_own(experts), signal, float(pending), round, mix
        )
        return forecast_of(self.space, round.cells, int(round.info[RoundInfo.CELLS]), None, None)

    def _witness_table(self, cell_payoffs: list[ExplicitCellPayoff], n: int) -> Array:
        """Mean, least and largest value of each witness in each cell; powers are the kernels' business."""
        witness = np.zeros((3, self.rules.witnesses, self.capacity))
        at = self.rules.orders
        for cell_payoff in cell_payoffs:
            for row, values in enumerate((cell_payoff.witness.mean, cell_payoff.witness.low, cell_payoff.witness.high)):
                witness[row, at : at + cell_payoff.size, :n] = values
            at += cell_payoff.size
        return witness

    def copied(self, record: OrderedRecord) -> OrderedRecord:
        """The same round in arrays of its own."""
        row = record.row.copy()
        other = OrderedRecord(self._shapes, row, record.slots.copy(), row[self._certificate])
        other.features, other.cell_payoffs = record.features, record.cell_payoffs
        return other

    def _play(
        self, round: Round, mix: Array, reserved: float, thorough: bool, features: Any
    ) -> list[ExplicitCellPayoff]:
        n = int(round.info[RoundInfo.CELLS])
        cell_payoffs = self._cell_payoffs(round, features)
        witness = self._witness_table(cell_payoffs, n)
        last_layer.play(self.rules, self.memory, mix[:n], reserved, thorough, round, witness)
        for cell_payoff in cell_payoffs:
            if isinstance(cell_payoff, BoundedCellPayoff):
                cell_payoff.assess(np.zeros(cell_payoff.size), 1.0, round.cells[CellRow.PLAYED, :n])
        return cell_payoffs

    def _cell_payoffs(self, round: Round, features: Any) -> list[ExplicitCellPayoff]:
        cell_grid = cell_grid_of(self.space, round, features)
        cell_payoffs: list[Any] = [part.cell_payoff(cell_grid, {}) for part in self.explicit]
        for cell_payoff, part in zip(cell_payoffs, self.explicit, strict=True):
            if cell_payoff.size != part.size:
                raise ValueError(
                    f"expected {part.size} numbers from {part.payoff!r} every time, got {cell_payoff.size}"
                )
        return cell_payoffs

    def payoff(self, record: OrderedRecord, y: float) -> Array:
        """The core payoff that an outcome would settle."""
        round = record.round
        out = np.empty(int(judging.payoff_size(self.rules, len(round.rivals))))
        near = min(max(y, float(round.info[RoundInfo.LOW])), float(round.info[RoundInfo.HIGH]))
        k = self._cell(round, near)
        equilibrium_kernels.payoff(self.rules, round, near, k, self._witnesses(record, near, k), out)
        return out

    def payoffs(self, record: OrderedRecord, ys: Array) -> Array:
        """The core payoffs that outcomes would settle, a row each."""
        round = record.round
        near = np.clip(ys, float(round.info[RoundInfo.LOW]), float(round.info[RoundInfo.HIGH]))
        found = np.empty((near.size, int(judging.payoff_size(self.rules, len(round.rivals)))))
        witnesses = np.empty((near.size, 0))
        if self.explicit:
            witnesses = np.array([self._witnesses(record, y, self._cell(round, y)) for y in near.tolist()])
        outcome_kernels.payoffs(self.rules, round, near, witnesses, found)
        return found

    def update(self, record: OrderedRecord, y: float, *, reserved: float = 0.0, signal: Array = NOTHING) -> None:
        """Settle the outcome of a round."""
        if not self.explicit:
            packing.update(self.rules, self._memory, record.row, record.slots, signal, reserved, y)
            return
        round = record.round
        near = min(max(y, float(round.info[RoundInfo.LOW])), float(round.info[RoundInfo.HIGH]))
        k = self._cell(round, near)
        at = self._witnesses(record, near, k)
        for cell_payoff in record.cell_payoffs or []:
            if isinstance(cell_payoff, BoundedCellPayoff):
                cell_payoff.realised(round.cells[CellRow.PLAYED, : int(round.info[RoundInfo.CELLS])], k, near)
        round_kernels.update(self.rules, self.memory, round, signal, reserved, y, at)

    def _cell(self, round: Round, near: float) -> int:
        n = int(round.info[RoundInfo.CELLS])
        return int(cell_kernels.locate(near, round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT], n))

    def _witnesses(self, record: OrderedRecord, near: float, k: int) -> Array:
        """The witnesses of an outcome; powers are the kernels' business."""
        if not self.explicit:
            return NOTHING
        if record.cell_payoffs is None:
            record.cell_payoffs = self._cell_payoffs(record.round, record.features)
        return np.concatenate(
            [np.zeros(self.rules.orders), *(cell_payoff.witness.point(near, k) for cell_payoff in record.cell_payoffs)]
        )

    def context_of(self, record: OrderedRecord) -> Array:
        """The context that a round has."""
        return record.row[self._context]

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        return (
            not self.explicit
            and not self.bound_payoff.needs_last
            and not (self.bound_payoff.needs_expert and self.rules.experts > 1)
        )

    def run(
        self,
        experts: Array,
        features: Sequence[Any] | None,
        outcomes: Array,
        levels: Array,
        coins: Array | None = None,
    ) -> tuple[Array, Array]:
        """Many rounds in one compiled loop: the quantiles played, and what is told of each (see the ledger)."""
        if coins is None:
            coins = np.zeros(outcomes.size)
        quantiles = np.empty((outcomes.size, levels.size))
        round_log = np.empty((outcomes.size, _ledger.ROUND_LOG_SIZE))
        contexts = np.ones((outcomes.size, self.rules.groups))
        if not self.bound_payoff.plain:
            for t in range(outcomes.size):
                x = None if features is None else features[t]
                contexts[t] = self.bound_payoff.context(self.known(experts[t], x, self.bound_payoff, 0))
        record = self.new_record()
        round = record.round
        play = round_kernels.run
        given = self.rules, self.memory, experts, contexts
        read = levels, 0, round, quantiles, round_log
        expect_rounds(play, (*given, outcomes, coins, *read), outcomes.size)
        t = 0
        while t < outcomes.size:
            stop = t + play.at_once(outcomes.size - t)
            play(*given, outcomes[:stop], coins, levels, t, round, quantiles, round_log)
            t = stop
        return quantiles, round_log

    # --- what users see
    def forecast(self, record: OrderedRecord) -> Forecast:
        """The forecast that a round played, with its certificate."""
        n = int(record.row[self._cells_at])
        # the cells come first in the row
        cells = record.row[: (PLAYED + 1) * self.capacity].reshape(-1, self.capacity)
        total = self.memory.total.copy()
        return forecast_of(
            self.space,
            cells,
            n,
            _ledger.certificate_of(record.certificate),
            lambda: explanation(self.space, self._cell_grid(record), self._tilts(record, total)),
            record.row.item(self._coin_at),
        )

    def _cell_grid(self, record: OrderedRecord) -> tuple[CellGrid, Array]:
        round = record.round
        return cell_grid_of(self.space, round, record.features), round.cells[
            CellRow.PLAYED, : int(round.info[RoundInfo.CELLS])
        ]

    def _tilts(self, record: OrderedRecord, total: Array) -> Iterator[PartTilt]:
        """The tilt of each part and group, whose sum is log(played / prior of the last layer)."""
        round = record.round
        n = int(round.info[RoundInfo.CELLS])
        cell_grid, p = self._cell_grid(record)
        temperature = float(round.info[RoundInfo.TEMPERATURE])
        if temperature <= 0.0:
            return
        soft = (1.0 + float(round.info[RoundInfo.PENDING])) ** DELAY_TEMPERATURE
        usual = temperature == self.rules.temperature * soft
        layout = self.ledger.layout
        for number, (part, name) in enumerate(zip(self.bound_payoff.parts, self.bound_payoff.names, strict=True)):
            start, size, groups, _, at, one_sided = (int(v) for v in layout.parts[number])
            cell_payoff: Any = None
            if part.kind != "regret":
                cell_payoff = part.cell_payoff(cell_grid, {})
            for group in range(groups):
                c = float(round.context[at + group])
                if c == 0.0:
                    continue
                s = total[start + group * size : start + (group + 1) * size]
                s = (
                    layout.scale[number]
                    * c
                    * self.rules.discount
                    * (np.maximum(s, 0.0) if one_sided else s)
                    / temperature
                )
                if cell_payoff is not None:
                    tilt = cell_payoff.field(s, p)
                else:
                    tilt = self._regret_field(part.payoff, round, cell_grid, s * (soft if usual else 1.0), p)
                yield PartTilt(name, part.context.labels[group] if groups > 1 else "", tilt[:n])

    def _regret_field(self, payoff: Any, round: Round, cell_grid: CellGrid, s: Array, p: Array) -> Array:
        from orcast.payoffs.regret import score_gap

        field = np.zeros(p.size)
        span = cell_grid.high - cell_grid.low
        rows = {"crps": (RegretScore.CRPS, 1.0), "mse": (RegretScore.MSE, span * span)}
        i = 0
        for score in payoff.scores:
            row, unit = rows[score.name]
            for e in range(len(round.rivals)):
                if s[i] > 0.0 and round.units[row, e] > 0.0:
                    gap = score_gap(score, cell_grid, p, round.rivals[e, : p.size])[0]
                    field += s[i] * round.units[row, e] * gap / unit
                i += 1
        return field

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        regrets: dict[int, dict[str, float]] = {}
        columns = {"crps": RivalColumn.CRPS_EXCESS, "mse": RivalColumn.MSE_EXCESS}
        seen = np.maximum(self.memory.rivals[:, RivalColumn.ROUNDS], 1.0)
        for number, payoff in enumerate(self.bound_payoff.payoffs):
            if isinstance(payoff, NoRegret):
                values = [self.memory.rivals[:, columns[score.name]] / seen for score in payoff.scores]
                names = self.bound_payoff.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, np.concatenate(values)), strict=True))
        counted = self.bound_payoff.counted(self.ledger, self.rules.levels, self.memory.counted)
        return self.bound_payoff.guarantee(self.ledger, regrets, counted=counted)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return dict(self.memory._asdict())

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        memory = self.memory
        fields, accounts = self._admissible
        fields.copy_into(memory._asdict(), arrays)
        accounts.check(self.ledger)
        for matrices in (memory.location_cov, memory.fit_cov):
            admissible.check_matrices("a covariance", matrices)

    @cached_property
    def _admissible(self) -> tuple[admissible.Fields, admissible.Accounts]:
        memory = admissible.Fields(self.memory._asdict(), admissible.ORDERED_MEMORY)
        return memory, admissible.Accounts(self.ledger)

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> OrderedRecord:
        """A pending round from its arrays, checked so that no kernel can leave its arrays."""
        record = self.new_record()
        self.restore_round(record.round, {"slots": arrays["slots"], **self._fields_of(arrays["row"])})
        admissible.check_certificate(record.certificate, self.ledger)
        record.features = features
        return record

    def _fields_of(self, row: Array) -> dict[str, Array]:
        """Cut the row of a pending round into its arrays."""
        names = tuple(round_shapes(self.rules)._asdict())[1:]
        theirs = like("row", row, np.empty(length(self._shapes)), missing=True)
        return dict(zip(names, fields(self._shapes, theirs), strict=True))

    def restore_round(self, round: Round, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over the arrays of a pending round."""
        admissible.Fields(round._asdict(), admissible.ORDERED_ROUND).copy_into(round._asdict(), arrays)
        admissible.check_round(round, self.capacity, len(self.rules.learners))


def new_memory(rules: Rules) -> tuple[Array, Memory]:
    """A memory before any round but for its ledger, in a row of numbers."""
    shapes = memory_shapes(rules)
    row = np.zeros(length(shapes))
    memory = Memory(*fields(shapes, row))
    memory.statistics[Statistic.SCORE_SIZE] = 1.0
    memory.statistics[Statistic.LAST_PIT] = 0.5
    memory.statistics[Statistic.LEVEL_VARIANCE] = 1.0
    memory.location_cov[:] = tracker.LOCATION_START * np.eye(LOCATION_FEATURES)
    memory.spread[:] = 1.0
    memory.fit_cov[:] = tracker.SPREAD_START * np.eye(SPREAD_FEATURES)
    memory.by_group[:, GroupColumn.VARIANCE] = 1.0
    return row, memory


def groups_of(layout: LedgerLayout) -> tuple[int, int]:
    """The groups that the learners look at: those of the part that has most, if any has several."""
    counts = layout.parts[:, _ledger.PartColumn.GROUPS]
    if not (counts > 1).any():
        return 0, 0
    most = int(counts.argmax())
    return int(layout.parts[most, _ledger.PartColumn.CONTEXT]), int(counts[most])


def forecast_of(
    space: OrderedSpace, cells: Array, n: int, certificate: Certificate | None, why: Any, coin: float = 0.0
) -> Forecast:
    """What users see of a round's cells; where the space has no bound, the outer cell is open."""
    left, right = cells[LEFT, :n].copy(), cells[RIGHT, :n].copy()
    if space.low == -math.inf:
        left[0] = -math.inf
    if space.high == math.inf:
        right[-1] = math.inf
    return Forecast.trusted(left, right, cells[PLAYED, :n].copy(), certificate, why, coin or None)


def cell_grid_of(space: OrderedSpace, round: Round, features: Any) -> CellGrid:
    """The cells of a round as payoffs see them."""
    n = int(round.info[RoundInfo.CELLS])
    several = len(round.rivals) > 1
    experts = round.rivals[:, :n].copy()
    if several:
        experts[np.isnan(round.experts[1:, 0])] = np.nan
    return CellGrid(
        space,
        n,
        round.cells[CellRow.LEFT, :n],
        round.cells[CellRow.RIGHT, :n],
        float(round.info[RoundInfo.LOW]),
        float(round.info[RoundInfo.HIGH]),
        round.cells[CellRow.EXPERT, :n],
        experts,
        features,
        round.raw if round.info[RoundInfo.HAS_EXPERT] > 0.0 else NOTHING,
    )


def like(name: str, theirs: NDArray[Any], mine: NDArray[Any], *, missing: bool = False) -> NDArray[Any]:
    """An array of the shape and kind of ours, finite (nan may stand for what is missing), or a reason why not."""
    if theirs.shape != mine.shape or theirs.dtype != mine.dtype:
        raise ValueError(f"{name} is {theirs.dtype} of shape {theirs.shape}, not {mine.dtype} of shape {mine.shape}")
    if not (np.isfinite(theirs) | (missing & np.isnan(theirs))).all():
        raise ValueError(f"{name} is not finite")
    return theirs
