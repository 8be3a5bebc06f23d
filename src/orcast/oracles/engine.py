"""The engine: a ledger and its learners, bound to a space and a payoff; a thin coat over the compiled rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.forecasts import Forecast
from orcast.ledger import Guarantee, Ledger
from orcast.oracles import _cells, _ordered, _rounds, _state, _tracker
from orcast.oracles._state import Memory, Round, Rules
from orcast.payoffs import MomentMatching, NoRegret, Payoff, QuantileCalibration
from orcast.spaces import TAIL_MASS, Interval

Array = NDArray[np.float64]

NO_EXPERT: Array = np.empty(0)


def slot_masses(space: Interval) -> Array:
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


class Engine:
    """Plays rounds for a direct sum of quantile, moment and regret payoffs on an interval."""

    def __init__(self, space: Interval, payoff: Payoff, *, temperature: float, learners: Array, members: Array) -> None:
        levels: Array = np.empty(0)
        orders = 0
        weights = np.zeros(4)
        self.parts: list[tuple[Payoff, slice, float]] = []
        order = (QuantileCalibration, MomentMatching, NoRegret)
        given = list(payoff)
        for part in given:
            if not isinstance(part, order):
                raise TypeError(f"expected a sum of QuantileCalibration, MomentMatching, NoRegret, got {part!r}")
        size = 0
        for part in sorted(given, key=lambda part: order.index(type(part))):
            weight = part.weight if part.one_sided else part.weight / np.sqrt(part.bound)
            if isinstance(part, QuantileCalibration):
                levels = part.levels.copy()
                weights[_ordered.QUANTILE] = weight
            elif isinstance(part, MomentMatching):
                orders = part.order
                weights[_ordered.MOMENT] = weight
            elif isinstance(part, NoRegret):
                names = [score.name for score in part.scores]
                weights[_ordered.CRPS] = weight if "crps" in names else 0.0
                weights[_ordered.MSE] = weight if "mse" in names else 0.0
            self.parts.append((part, slice(size, size + part.size), float(weight)))
            size += part.size
        two_sided = levels.size + orders
        self.space = space
        self.rules = Rules(
            space.low,
            space.high,
            space.levels.copy(),
            space.scores.copy(),
            space.tail_cells,
            levels,
            orders,
            weights,
            two_sided,
            sum(part.weight**2 * (part.bound if part.one_sided else 1.0) for part in given),
            temperature,
            learners.copy(),
            members.copy(),
            cosine_means(slot_masses(space)),
        )
        self.ledger = Ledger(size, two_sided, credit=_ledger.CREDIT * self.rules.bound)
        self.memory = self._new_memory()

    def _new_memory(self) -> Memory:
        learners, members = len(self.rules.learners), len(self.rules.members)
        tally = np.zeros(_tracker.TALLY_SIZE)
        tally[_tracker.RHO] = 1.0
        tally[_tracker.LAST_PIT] = 0.5
        location, spread = _tracker.N_LOCATION, _tracker.N_SPREAD
        return Memory(
            total=self.ledger.total,
            account=self.ledger.account,
            tally=tally,
            location=np.zeros((learners, location)),
            location_cov=np.tile(_tracker.LOCATION_START * np.eye(location), (learners, 1, 1)),
            spread=np.ones((learners, 2)),
            fit=np.zeros((learners, spread)),
            fit_cov=np.tile(_tracker.SPREAD_START * np.eye(spread), (learners, 1, 1)),
            track_loss=np.zeros((_state.HORIZONS, learners + 1)),
            shape=np.zeros((members, 2, _state.BASIS)),
            member_loss=np.zeros((_state.HORIZONS, members + 2)),
            warm=np.zeros(self.space.cells),
        )

    def new_round(self) -> Round:
        """Empty pages for one round."""
        learners, members, cells = len(self.rules.learners), len(self.rules.members), self.space.cells
        return Round(
            cells=np.zeros((_state.MEMBERS + members, cells)),
            slots=np.zeros(cells, dtype=np.int64),
            info=np.zeros(_state.INFO_SIZE),
            note=np.zeros(_ledger.NOTE_SIZE),
            record=np.zeros(_tracker.LEARNERS_AT + learners * _tracker.PER_LEARNER),
            means=np.zeros((members, _state.BASIS)),
            expert=np.zeros(len(self.rules.grid)),
        )

    def predict(self, expert: Array | None, *, pending: float = 0.0, reserved: float = 0.0) -> Round:
        """Play one round around the expert's quantiles (or without one); the memory does not change."""
        page = self.new_round()
        _rounds.predict(
            self.rules, self.memory, NO_EXPERT if expert is None else expert, float(pending), reserved, page
        )
        return page

    def update(self, page: Round, y: float, *, reserved: float = 0.0) -> None:
        """Book the outcome of a round."""
        _rounds.update(self.rules, self.memory, page, reserved, y)

    def run(self, experts: Array, outcomes: Array, levels: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Many rounds in one compiled loop: the quantiles played, and whether each certificate held."""
        quantiles = np.empty((outcomes.size, levels.size))
        held = np.empty(outcomes.size)
        _rounds.run(self.rules, self.memory, experts, outcomes, levels, self.new_round(), quantiles, held)
        return quantiles, held > 0.0

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        ledger = self.ledger
        rounds = max(ledger.rounds, 1)
        parts: dict[str, float] = {}
        for part, where, weight in self.parts:
            mean = ledger.total[where] / (weight * rounds)
            if isinstance(part, NoRegret):
                excess = {"crps": _tracker.CRPS_EXCESS, "mse": _tracker.MSE_EXCESS}
                for score in part.scores:
                    parts[f"regret {score.name}"] = float(self.memory.tally[excess[score.name]]) / rounds
            elif isinstance(part, MomentMatching):
                parts[part.name] = float(np.abs(mean).max())
            else:
                parts[part.name] = float(np.sqrt(mean @ mean))
        return Guarantee(ledger.rounds, ledger.miscalibration, ledger.promised, ledger.held, parts, ledger.delay)

    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        return dict(self.memory._asdict())

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what :meth:`arrays` of an equal engine gave."""
        for name, mine in self.memory._asdict().items():
            mine[...] = like(name, arrays[name], mine)
        if not (self.ledger.account >= 0.0).all():
            raise ValueError("the account is negative")

    def restored_round(self, arrays: dict[str, Array]) -> Round:
        """A waiting round from what its ``_asdict`` gave, checked so that no kernel can leave its arrays."""
        page = self.new_round()
        for name, mine in page._asdict().items():
            mine[...] = like(name, arrays[name], mine)
        n = page.info[_state.CELLS]
        if not (n == int(n) and 1 <= n <= self.space.cells and ((page.slots >= 0) & (page.slots < n)).all()):
            raise ValueError(f"a waiting round has {n} cells")
        return page


def forecast_of(page: Round) -> Forecast:
    """The forecast that a round played, with its certificate."""
    n = int(page.info[_state.CELLS])
    cells = page.cells
    return Forecast._trusted(
        cells[_state.LEFT, :n].copy(),
        cells[_state.RIGHT, :n].copy(),
        cells[_state.PLAYED, :n].copy(),
        _ledger.certificate(page.note),
    )


def like(name: str, theirs: NDArray[Any], mine: NDArray[Any]) -> NDArray[Any]:
    """An array of the shape and kind of ours, finite, or a reason why not."""
    if theirs.shape != mine.shape or theirs.dtype != mine.dtype:
        raise ValueError(f"{name} is {theirs.dtype} of shape {theirs.shape}, not {mine.dtype} of shape {mine.shape}")
    if not np.isfinite(theirs).all():
        raise ValueError(f"{name} is not finite")
    return theirs
