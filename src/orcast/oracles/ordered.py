"""The engine on ordered spaces: a thin coat over the compiled rounds.

It plays direct sums of quantile, interval, moment and regret payoffs and of everything whose tilt is explicit, given
contexts that do not depend on the forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.contexts import Known
from orcast.forecasts import Forecast
from orcast.ledger import Certificate, Guarantee, Layout, Ledger
from orcast.oracles import _cells, _groups, _ordered, _pack, _play, _rounds, _state, _tracker
from orcast.oracles._dense import MOST_CELLS
from orcast.oracles._pack import Shapes, length, memory_shapes, round_shapes, views
from orcast.oracles._state import Memory, Round, Rules
from orcast.oracles.explain import Piece, explanation
from orcast.oracles.hand import Hand
from orcast.oracles.terms import Terms
from orcast.payoffs import Board, NoRegret, Part
from orcast.payoffs.cores import ExplicitCore
from orcast.payoffs.recipe import BoundedCore
from orcast.spaces import TAIL_MASS, OrderedSpace

Array = NDArray[np.float64]

NOTHING: Array = np.empty(0)


def slot_masses(space: OrderedSpace) -> Array:
    """Masses of the cells around an expert before atoms merge; how a tail shares its own hardly matters to cosines."""
    side = space.tail_cells + 1
    fall = _cells.TAIL_FALL
    tail = TAIL_MASS * (1.0 - fall) / (1.0 - fall**side) * fall ** np.arange(side)
    inner = space.cells - 2 * side
    return np.concatenate((tail[::-1], np.full(inner, (1.0 - 2.0 * TAIL_MASS) / inner), tail))


def cosine_means(masses: Array) -> Array:
    """Mean of sqrt(2) cos(pi j u) over each cell's share of [0, 1]."""
    edges = np.concatenate(([0.0], np.cumsum(masses)))
    w = np.pi * np.arange(1, _state.BASIS + 1)
    rise = np.sin(np.outer(edges[1:], w)) - np.sin(np.outer(edges[:-1], w))
    means: Array = np.sqrt(2.0) * rise / (w * masses[:, None])
    return means


class Page:
    """A round that waits: its row of numbers, the features it had, and its witnesses (remade after a load)."""

    __slots__ = ("_shapes", "cores", "features", "note", "row", "slots")

    def __init__(self, shapes: Shapes, row: Array, slots: NDArray[np.int64], note: Array) -> None:
        self._shapes, self.row, self.slots, self.note = shapes, row, slots, note
        self.features: Any = None
        self.cores: list[ExplicitCore] | None = None

    @property
    def round(self) -> Round:
        """The round's arrays, views of its row."""
        return Round(slots=self.slots, **views(self._shapes, self.row))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything of it but the features."""
        return {"row": self.row, "slots": self.slots}


class OrderedEngine:
    """Plays rounds of an explicit or quantile-like payoff on an ordered space."""

    def __init__(self, terms: Terms, *, temperature: float, learners: Array, members: Array) -> None:
        space = terms.space
        assert isinstance(space, OrderedSpace)
        self.space, self.terms = space, terms
        kinds = {kind: [p for p in terms.parts if p.kind == kind] for kind in ("quantile", "interval", "moment")}
        grids = [p.payoff.levels for p in kinds["quantile"] + kinds["interval"]]  # type: ignore[attr-defined]
        levels = np.unique(np.concatenate(grids)) if grids else NOTHING
        intervals: list[tuple[int, int]] = []
        for part in kinds["interval"]:
            at = np.searchsorted(levels, part.payoff.levels)  # type: ignore[attr-defined]
            intervals.extend((int(at[a]), int(at[b])) for a, b in part.payoff.ends)  # type: ignore[attr-defined]
        orders = max((p.size for p in kinds["moment"]), default=0)
        self.explicit = [p for p in terms.parts if p.kind == "explicit"]
        regrets = [p.payoff for p in terms.parts if p.kind == "regret"]
        scores = {score.name for payoff in regrets for score in payoff.scores}  # type: ignore[attr-defined]
        count = len(terms.experts)
        witnesses = orders + sum(p.size for p in self.explicit)
        at_witness = levels.size + len(intervals)
        at_regret = {"crps": at_witness + witnesses, "mse": at_witness + witnesses + ("crps" in scores) * count}
        places: list[list[int]] = []
        next_interval, next_witness = levels.size, at_witness + orders
        for part in terms.parts:
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
        layout = terms.layout(places)
        cuts = np.concatenate(([0], np.cumsum([part.size for part in terms.parts]))).astype(int)
        self._apart = terms.layout([range(a, b) for a, b in pairwise(cuts)])
        jumps = [part.jumps for part in terms.parts if part.jumps.size]
        self.ledger = Ledger(layout, keep=terms.keep)
        self.rules = Rules(
            space.low,
            space.high,
            space.levels.copy(),
            space.scores.copy(),
            space.cells,
            int(space.tail_cells),
            count,
            int(layout.parts[:, _ledger.GROUPS].sum()),
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
            terms.keep,
            temperature,
            learners.copy(),
            members.copy(),
            cosine_means(slot_masses(space)),
        )
        self._none = np.empty((0, space.levels.size))
        self._start()

    def _start(self) -> None:
        """An empty memory, and where a round's fields lie."""
        shapes = memory_shapes(self.rules)
        self._memory = np.zeros(length(shapes))
        self.memory = memory = Memory(**views(shapes, self._memory))
        for name, array in self.ledger.arrays().items():
            getattr(memory, name)[...] = array
        self.ledger.total, self.ledger.account, self.ledger.groups = memory.total, memory.account, memory.groups
        memory.tally[_tracker.RHO] = 1.0
        memory.tally[_tracker.LAST_PIT] = 0.5
        memory.tally[_tracker.LEVEL_VAR] = 1.0
        memory.location_cov[:] = _tracker.LOCATION_START * np.eye(_tracker.N_LOCATION)
        memory.spread[:] = 1.0
        memory.fit_cov[:] = _tracker.SPREAD_START * np.eye(_tracker.N_SPREAD)
        memory.by_group[:, _groups.VARIANCE] = 1.0
        self._shapes = round_shapes(self.rules)
        self._length = length(self._shapes)
        before = {}
        at = 0
        for name, shape in self._shapes.items():
            before[name] = at
            at += math.prod(shape)
        self._info = slice(before["info"], before["info"] + _state.INFO_SIZE)
        self._note = slice(before["note"], before["note"] + _ledger.NOTE_SIZE)
        self._context = slice(before["context"], before["context"] + self.rules.groups)

    def cut_at(self, places: Array) -> None:
        """Make given places edges of cells, before any round is played."""
        self.rules = self.rules._replace(jumps=places)
        self._start()

    @property
    def capacity(self) -> int:
        """Cells that a round has room for."""
        return self.space.cells + self.rules.jumps.size

    def new_page(self) -> Page:
        """An empty round."""
        row = np.zeros(self._length)
        return Page(self._shapes, row, np.zeros(self.space.cells, dtype=np.int64), row[self._note])

    # --- what is known before the outcome
    def known(self, experts: Array | None, features: Any, terms: Terms, rounds: int) -> Known:
        """What the contexts of some terms may look at."""
        if terms.plain:
            return Known(features)
        level = spread = math.nan
        if experts is not None and terms.needs_expert:
            pool = experts[0]
            if len(experts) > 1:
                pool = np.empty(experts.shape[1])
                _rounds.pool_experts(self.memory, experts, pool)
            level = float(pool[pool.size // 2])
            low, high = np.interp([0.1, 0.9], self.space.levels, pool)
            spread = float(high - low)
        last = float(self.memory.tally[_tracker.LAST_ERROR]) if rounds else math.nan
        return Known(features, level, spread, last)

    def experts_or_own(self, experts: Array | None) -> Array:
        """The experts; without any on an unbounded space, a Gaussian around the past outcomes."""
        if experts is not None:
            return experts
        if math.isfinite(self.space.high - self.space.low):
            return self._none
        tally = self.memory.tally
        spread = math.sqrt(tally[_tracker.LEVEL_VAR])
        own: Array = tally[_tracker.LEVEL_MEAN] + 2.0 * spread * self.space.scores
        return np.tile(own, (len(self.terms.experts), 1))

    # --- the round
    def predict(
        self, experts: Array | None, features: Any = None, *, pending: float = 0.0, reserved: float = 0.0
    ) -> Page:
        """Play one round around the experts' quantiles (or without any); the memory does not change."""
        page = self.new_page()
        page.row[self._context] = self.terms.context(self.known(experts, features, self.terms, self.ledger.rounds))
        rows = self.experts_or_own(experts)
        if not self.explicit:
            _pack.predict(self.rules, self._memory, rows, float(pending), reserved, page.row, page.slots)
            if page.note[_ledger.HOLDS] == 0.0:
                self._rescue(page, reserved)
            return page
        mix = np.empty(self.capacity)
        rnd = page.round
        _rounds.open_round(self.rules, self.memory, rows, float(pending), rnd, mix)
        page.features, page.cores = features, self._play(rnd, mix, pending, reserved, features)
        if page.note[_ledger.HOLDS] == 0.0 and len(rows):
            other = self.copied(page)
            even = other.round
            _rounds.recell(self.rules, self.memory, even, mix)
            other.cores = self._play(even, mix, pending, reserved, features)
            even.cells[_state.TILT] = 0.0
            if other.note[_ledger.HOLDS] > 0.0:
                return other
            self._rescue(page, reserved)
        return page

    def _rescue(self, page: Page, reserved: float) -> None:
        """Where the compiled search lost the branch of equilibria, follow it around its folds; kept if that holds."""
        rnd = page.round
        n = int(rnd.info[_state.CELLS])
        if not self.terms.parts or n > MOST_CELLS:
            return
        board = board_of(self.space, rnd, page.features)
        cores = [part.core(board, self._losses(part, board)) for part in self.terms.parts]
        hand = Hand(self.ledger, self._apart, cores, rnd.context, reserved, self.rules.temperature)
        for prior in (rnd.cells[_state.PRIOR, :n], np.full(n, 1.0 / n)):
            if hand.missing > 0.0:
                hand.follow(10.0 * self.rules.temperature, np.log(np.maximum(prior, 1e-12)))
        if hand.missing > 0.0:
            return
        before = page.row.copy()
        p = np.exp(hand.best)
        rnd.cells[_state.PLAYED, :n] = p / p.sum()
        rnd.cells[_state.TILT, :n] = 0.0
        rnd.info[_state.TEMPERATURE] = hand.temperature
        witness = self._witness_table(page.cores or [], n)
        if _play.rejudge(self.rules, self.memory, n, rnd, reserved, witness) > 0.0:
            page.row[:] = before

    def _losses(self, part: Part, board: Board) -> dict[str, Array]:
        """What the dense form of a regret wants to know of its rivals."""
        if not isinstance(part.payoff, NoRegret):
            return {}
        rivals = self.memory.rivals
        square = (board.high - board.low) ** 2
        sums = {"crps": rivals[:, _state.LOSS], "mse": rivals[:, _state.SQUARE] * square}
        return {
            "loss": np.array([sums[score.name] for score in part.payoff.scores]),
            "count": rivals[:, _state.COUNT],
        }

    def _witness_table(self, cores: list[ExplicitCore], n: int) -> Array:
        """Mean, least and largest value of each witness in each cell; powers are the kernels' business."""
        witness = np.zeros((3, self.rules.witnesses, self.capacity))
        at = self.rules.orders
        for core in cores:
            for row, values in enumerate((core.witness.mean, core.witness.low, core.witness.high)):
                witness[row, at : at + core.size, :n] = values
            at += core.size
        return witness

    def copied(self, page: Page) -> Page:
        """The same round in arrays of its own."""
        row = page.row.copy()
        other = Page(self._shapes, row, page.slots.copy(), row[self._note])
        other.features, other.cores = page.features, page.cores
        return other

    def _play(self, rnd: Round, mix: Array, pending: float, reserved: float, features: Any) -> list[ExplicitCore]:
        n = int(rnd.info[_state.CELLS])
        cores = self._cores(rnd, features)
        witness = self._witness_table(cores, n)
        _play.play(self.rules, self.memory, n, mix[:n], float(pending), reserved, rnd, witness)
        for core in cores:
            if isinstance(core, BoundedCore):
                core.assess(np.zeros(core.size), 1.0, rnd.cells[_state.PLAYED, :n])
        return cores

    def _cores(self, rnd: Round, features: Any) -> list[ExplicitCore]:
        board = board_of(self.space, rnd, features)
        cores: list[Any] = [part.core(board, {}) for part in self.explicit]
        for core, part in zip(cores, self.explicit, strict=True):
            if core.size != part.size:
                raise ValueError(f"expected {part.size} numbers from {part.payoff!r} every time, got {core.size}")
        return cores

    def payoff(self, page: Page, y: float) -> Array:
        """The core payoff that an outcome would book."""
        rnd = page.round
        out = np.empty(int(_play.core_size(self.rules, len(rnd.rivals))))
        near = min(max(y, float(rnd.info[_state.LOW])), float(rnd.info[_state.HIGH]))
        k = self._cell(rnd, near)
        _ordered.payoff(self.rules, rnd, near, k, self._witnesses(page, near, k), out)
        return out

    def update(self, page: Page, y: float, *, reserved: float = 0.0) -> None:
        """Book the outcome of a round."""
        if not self.explicit:
            _pack.update(self.rules, self._memory, page.row, page.slots, reserved, y)
            return
        rnd = page.round
        near = min(max(y, float(rnd.info[_state.LOW])), float(rnd.info[_state.HIGH]))
        k = self._cell(rnd, near)
        at = self._witnesses(page, near, k)
        for core in page.cores or []:
            if isinstance(core, BoundedCore):
                core.booked(rnd.cells[_state.PLAYED, : int(rnd.info[_state.CELLS])], k, near)
        _rounds.update(self.rules, self.memory, rnd, reserved, y, at)

    def _cell(self, rnd: Round, near: float) -> int:
        n = int(rnd.info[_state.CELLS])
        return int(_cells.locate(near, rnd.cells[_state.LEFT], rnd.cells[_state.RIGHT], n))

    def _witnesses(self, page: Page, near: float, k: int) -> Array:
        """The witnesses of an outcome; powers are the kernels' business."""
        if not self.explicit:
            return NOTHING
        if page.cores is None:
            page.cores = self._cores(page.round, page.features)
        return np.concatenate([np.zeros(self.rules.orders), *(core.witness.point(near, k) for core in page.cores)])

    def context_of(self, page: Page) -> Array:
        """The context that a round has."""
        return page.row[self._context]

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        return (
            not self.explicit and not self.terms.needs_last and not (self.terms.needs_expert and self.rules.experts > 1)
        )

    def run(self, experts: Array, features: list[Any] | None, outcomes: Array, levels: Array) -> tuple[Array, Array]:
        """Many rounds in one compiled loop: the quantiles played, and what is told of each (see the ledger)."""
        quantiles = np.empty((outcomes.size, levels.size))
        tales = np.empty((outcomes.size, _ledger.TALE_SIZE))
        contexts = np.ones((outcomes.size, self.rules.groups))
        if not self.terms.plain:
            for t in range(outcomes.size):
                x = None if features is None else features[t]
                contexts[t] = self.terms.context(self.known(experts[t], x, self.terms, 0))
        page = self.new_page()
        rnd = page.round
        t = 0
        while True:
            t = int(_rounds.run(self.rules, self.memory, experts, contexts, outcomes, levels, t, rnd, quantiles, tales))
            if t == outcomes.size:
                break
            # a round for Python, as in predict and update
            self._rescue(page, 0.0)
            _rounds.record(self.rules, rnd, levels, quantiles[t], tales[t])
            _pack.update(self.rules, self._memory, page.row, page.slots, 0.0, outcomes[t])
            tales[t, _ledger.TOLD_MISCALIBRATION] = self.ledger.miscalibration
            t += 1
        return quantiles, tales

    # --- what users see
    def forecast(self, page: Page) -> Forecast:
        """The forecast that a round played, with its certificate."""
        n = int(page.row[self._info][_state.CELLS])
        # the cells come first in the row
        cells = page.row[: (_state.PLAYED + 1) * self.capacity].reshape(-1, self.capacity)
        total = self.memory.total.copy()
        return forecast_of(
            self.space,
            cells,
            n,
            _ledger.certificate(page.note),
            lambda: explanation(self.space, self._board(page), self._pieces(page, total)),
        )

    def _board(self, page: Page) -> tuple[Board, Array]:
        rnd = page.round
        return board_of(self.space, rnd, page.features), rnd.cells[_state.PLAYED, : int(rnd.info[_state.CELLS])]

    def _pieces(self, page: Page, total: Array) -> Iterator[Piece]:
        """The tilt of each part and group, whose sum is log(played / prior of the last layer)."""
        rnd = page.round
        n = int(rnd.info[_state.CELLS])
        board, p = self._board(page)
        temperature = float(rnd.info[_state.TEMPERATURE])
        if temperature <= 0.0:
            return
        soft = (1.0 + float(rnd.info[_state.PENDING])) ** _play.SOFTEN
        usual = temperature == self.rules.temperature * soft
        layout = self.ledger.layout
        for number, (part, name) in enumerate(zip(self.terms.parts, self.terms.names, strict=True)):
            start, size, groups, _, at, one_sided = (int(v) for v in layout.parts[number])
            core: Any = None
            if part.kind != "regret":
                core = part.core(board, {})
            for group in range(groups):
                c = float(rnd.context[at + group])
                if c == 0.0:
                    continue
                s = total[start + group * size : start + (group + 1) * size]
                s = layout.scale[number] * c * self.rules.keep * (np.maximum(s, 0.0) if one_sided else s) / temperature
                if core is not None:
                    tilt = core.field(s, p)
                else:
                    tilt = self._regret_field(part.payoff, rnd, board, s * (soft if usual else 1.0), p)
                yield Piece(name, part.context.labels[group] if groups > 1 else "", tilt[:n])

    def _regret_field(self, payoff: Any, rnd: Round, board: Board, s: Array, p: Array) -> Array:
        from orcast.payoffs.regret import score_gap

        field = np.zeros(p.size)
        span = board.high - board.low
        rows = {"crps": (_state.CRPS, 1.0), "mse": (_state.MSE, span * span)}
        i = 0
        for score in payoff.scores:
            row, unit = rows[score.name]
            for e in range(len(rnd.rivals)):
                if s[i] > 0.0 and rnd.units[row, e] > 0.0:
                    gap = score_gap(score, board, p, rnd.rivals[e, : p.size])[0]
                    field += s[i] * rnd.units[row, e] * gap / unit
                i += 1
        return field

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        regrets: dict[int, dict[str, float]] = {}
        columns = {"crps": _state.CRPS_EXCESS, "mse": _state.MSE_EXCESS}
        seen = np.maximum(self.memory.rivals[:, _state.SEEN], 1.0)
        for number, payoff in enumerate(self.terms.payoffs):
            if isinstance(payoff, NoRegret):
                values = [self.memory.rivals[:, columns[score.name]] / seen for score in payoff.scores]
                names = self.terms.regret_names(payoff)
                regrets[number] = dict(zip(names, map(float, np.concatenate(values)), strict=True))
        return self.terms.guarantee(self.ledger, regrets)

    # --- state
    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return dict(self.memory._asdict())

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        for name, mine in self.memory._asdict().items():
            mine[...] = like(name, arrays[name], mine)
        if not (self.ledger.account >= 0.0).all():
            raise ValueError("the account is negative")

    def restored_page(self, arrays: dict[str, NDArray[Any]], features: Any) -> Page:
        """A waiting round from its arrays, checked so that no kernel can leave its arrays."""
        page = self.new_page()
        rnd = page.round
        lies = {name: mine for name, mine in rnd._asdict().items() if name != "slots"}
        theirs = views(self._shapes, like("row", arrays["row"], page.row, missing=True))
        for name, mine in lies.items():
            mine[...] = like(name, theirs[name], mine, missing=name == "experts")
        page.slots[...] = like("slots", arrays["slots"], page.slots)
        n = rnd.info[_state.CELLS]
        if not (n == int(n) and 1 <= n <= self.capacity and ((page.slots >= 0) & (page.slots < n)).all()):
            raise ValueError(f"a waiting round has {n} cells")
        page.features = features
        return page


def groups_of(layout: Layout) -> tuple[int, int]:
    """The groups that the learners look at: those of the part that has most, if any has several."""
    counts = layout.parts[:, _ledger.GROUPS]
    if not (counts > 1).any():
        return 0, 0
    most = int(counts.argmax())
    return int(layout.parts[most, _ledger.CONTEXT]), int(counts[most])


def forecast_of(space: OrderedSpace, cells: Array, n: int, certificate: Certificate, why: Any) -> Forecast:
    """What users see of a round's cells; where the space has no bound, the outer cell is open."""
    left, right = cells[_state.LEFT, :n].copy(), cells[_state.RIGHT, :n].copy()
    if space.low == -math.inf:
        left[0] = -math.inf
    if space.high == math.inf:
        right[-1] = math.inf
    return Forecast._trusted(left, right, cells[_state.PLAYED, :n].copy(), certificate, why)


def board_of(space: OrderedSpace, rnd: Round, features: Any) -> Board:
    """The cells of a round as payoffs see them."""
    n = int(rnd.info[_state.CELLS])
    several = len(rnd.rivals) > 1
    experts = rnd.rivals[:, :n].copy()
    if several:
        experts[np.isnan(rnd.experts[1:, 0])] = np.nan
    return Board(
        space,
        n,
        rnd.cells[_state.LEFT, :n],
        rnd.cells[_state.RIGHT, :n],
        float(rnd.info[_state.LOW]),
        float(rnd.info[_state.HIGH]),
        rnd.cells[_state.EXPERT, :n],
        experts,
        features,
    )


def like(name: str, theirs: NDArray[Any], mine: NDArray[Any], *, missing: bool = False) -> NDArray[Any]:
    """An array of the shape and kind of ours, finite (nan may stand for what is missing), or a reason why not."""
    if theirs.shape != mine.shape or theirs.dtype != mine.dtype:
        raise ValueError(f"{name} is {theirs.dtype} of shape {theirs.shape}, not {mine.dtype} of shape {mine.shape}")
    if not (np.isfinite(theirs) | (missing & np.isnan(theirs))).all():
        raise ValueError(f"{name} is not finite")
    return theirs
