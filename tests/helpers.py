"""What several tests share: strategies for hypothesis, slow twins, and late outcomes."""

import re
from collections.abc import Callable, Iterable, Iterator

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.engine import Oracle
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.kernels import cells as cell_kernels
from orcast.engine.kernels import judging
from orcast.engine.kernels.cells import locate
from orcast.engine.kernels.certificate import certify
from orcast.engine.kernels.equilibrium import payoff as cell_payoff_of
from orcast.engine.kernels.judging import payoff_size
from orcast.engine.kernels.records import CellRow, RegretScore, Round, RoundInfo, WitnessRow
from orcast.engine.ordered import OrderedEngine
from orcast.ledger import LedgerLayout
from orcast.payoffs import Payoff
from orcast.spaces import TAIL_MASS, OrderedSpace, Space

Vector = NDArray[np.float64]

# Every message at the public edge: one sentence, what was wanted and what came.
SENTENCE = r"\Aexpected [^\n]*\bgot [^\n]*\Z"

# Nodes and weights on [0, 1] that integrate polynomials up to degree 11 exactly; none sits on an edge.
_nodes, _weights = np.polynomial.legendre.leggauss(6)
NODES, WEIGHTS = 0.5 * (_nodes + 1.0), 0.5 * _weights


def shown(value: object) -> str:
    """A name for a case that is the same in every process: no addresses, no order of sets."""
    text = "set" if isinstance(value, set) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return type(value).__name__ + " " + text[:30]


def default_payoff() -> Payoff:
    return oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())


def full_payoff() -> Payoff:
    return oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS(), oc.MSE())


# --- strategies ---

# Eighths tie often, with the ends too; the fractions do not.
units = st.integers(0, 8).map(lambda i: i / 8) | st.floats(0.0, 1.0, allow_subnormal=False)


@st.composite
def forecasts(draw: st.DrawFn, low: float = 0.0, high: float = 1.0, most: int = 12) -> oc.Forecast:
    """Masses on consecutive cells within [low, high], with atoms (one at a place), narrow cells and empty ones."""
    drawn = sorted(draw(st.lists(units, min_size=2, max_size=most)))
    drawn = [u for i, u in enumerate(drawn) if i < 2 or u != drawn[i - 2]]
    edges = low + (high - low) * np.array(drawn)
    masses = st.integers(0, 3).map(float) | st.floats(1e-6, 1.0)
    mass = np.array(draw(st.lists(masses, min_size=edges.size - 1, max_size=edges.size - 1)))
    if mass.sum() == 0.0:
        mass[0] = 1.0
    return oc.Forecast(edges[:-1], edges[1:], mass / mass.sum())


@st.composite
def quantile_rows(draw: st.DrawFn, space: OrderedSpace) -> Vector:
    """An expert's quantiles at the levels of a space: spread, tied, at a bound, or all on one value."""
    some = draw(st.lists(units, min_size=1, max_size=6))
    at = np.sort(draw(st.lists(units, min_size=len(some), max_size=len(some))))
    row = np.interp(space.levels, at, np.sort(some))
    if draw(st.booleans()):
        row = np.round(row * 4) / 4
    return np.ascontiguousarray(space.low + (space.high - space.low) * row)


@st.composite
def on_cells(
    draw: st.DrawFn, space: oc.Interval, empty: bool = True, jumps: Iterable[float] = ()
) -> tuple[oc.Forecast, Vector]:
    """Any masses on the cells around an expert, which have an edge at each jump, and other masses on the same cells."""
    left, right, _, _ = cells_around(space, draw(quantile_rows(space)), jumps=jumps)
    some = st.floats(1e-4, 1.0) | st.sampled_from([1e-3, 1.0] + [0.0] * empty)
    mass = np.array(draw(st.lists(some, min_size=left.size, max_size=left.size)))
    other = np.array(draw(st.lists(some, min_size=left.size, max_size=left.size)))
    mass[draw(st.integers(0, left.size - 1))] += 1.0
    other[draw(st.integers(0, left.size - 1))] += 1.0
    return oc.Forecast(left, right, mass / mass.sum()), other / other.sum()


def cells_around(
    space: OrderedSpace, q: Vector, usual: float = 0.0, jumps: Iterable[float] = ()
) -> tuple[Vector, Vector, Vector, NDArray[np.int64]]:
    """What build_cells makes of an expert's quantiles and its usual loss: left, right, masses, slots."""
    edges = np.array(list(jumps), dtype=np.float64)
    left, right, mass = np.empty((3, space.cells + edges.size))
    slots = np.empty(space.cells, dtype=np.int64)
    n = cell_kernels.build_cells(q, space.low, space.high, space.tail_cells, TAIL_MASS, usual, left, right, mass, slots)
    n = cell_kernels.cut_cells(edges, n, left, right, mass, slots)
    return left[:n].copy(), right[:n].copy(), mass[:n].copy(), slots


# --- slow twins ---


def within(p: oc.Forecast) -> Iterator[tuple[float, float]]:
    """Outcomes and weights that integrate over a forecast: six a cell, one for an atom."""
    for left, right, mass in zip(p.left, p.right, p.mass, strict=True):
        if mass == 0.0:
            continue
        if left == right:
            yield float(left), float(mass)
        else:
            yield from zip(left + (right - left) * NODES, mass * WEIGHTS, strict=True)


def slow_locate(y: float, left: Vector, right: Vector) -> int:
    """An atom at y, else the cell whose half-open interval (left, right] holds it, else the first or the last."""
    for k in range(left.size):
        if left[k] == y == right[k]:
            return k
    for k in range(left.size):
        if left[k] < y <= right[k]:
            return k
    return 0 if y <= left[0] else left.size - 1


def bound_to(space: Space, payoff: Payoff, oracle: Oracle | None = None, experts: tuple[str, ...] = ("expert",)):  # type: ignore[no-untyped-def]
    """The engine of a payoff on a space."""
    return (oc.Equilibrium() if oracle is None else oracle).bind(BoundPayoff(space, payoff, experts, None))


def page_with(engine: OrderedEngine, p: oc.Forecast, expert: Vector) -> Round:
    """A round that played p, whatever the oracle would have done; the expert's masses are on the same cells."""
    round = engine.new_record().round
    n = p.mass.size
    round.context[:] = 1.0
    round.info[RoundInfo.CELLS] = n
    round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH] = engine.space.low, engine.space.high
    round.units[RegretScore.CRPS], round.units[RegretScore.MSE] = 2.0, 3.0
    for row, values in zip(
        (CellRow.LEFT, CellRow.RIGHT, CellRow.PLAYED, CellRow.EXPERT), (p.left, p.right, p.mass, expert), strict=True
    ):
        round.cells[row, :n] = values
    round.rivals[:, :n] = expert
    round.expected[:] = witnesses(engine, round)[WitnessRow.MEAN, :, :n] @ p.mass
    return round


def witnesses(engine: OrderedEngine, round: Round, features: object = None) -> NDArray[np.float64]:
    """What the kernels see of the witnesses: powers first, then whatever else is explicit."""
    rules = engine.rules
    n = int(round.info[RoundInfo.CELLS])
    table = np.zeros((3, rules.witnesses, engine.capacity))
    low, high = round.info[RoundInfo.LOW], round.info[RoundInfo.HIGH]
    a = (round.cells[CellRow.LEFT, :n] - low) / (high - low)
    b = (round.cells[CellRow.RIGHT, :n] - low) / (high - low)
    for order in range(1, rules.orders + 1):
        unit = [oc.Forecast([u], [v], [1.0]).moment(order) for u, v in zip(a, b, strict=True)]
        table[:, order - 1, :n] = unit, a**order, b**order
    at = rules.orders
    for cell_payoff in engine._cell_payoffs(round, features):
        table[:, at : at + cell_payoff.size, :n] = (
            cell_payoff.witness.mean,
            cell_payoff.witness.low,
            cell_payoff.witness.high,
        )
        at += cell_payoff.size
    return table


def whole(layout: LedgerLayout, cell_payoff: Vector, context: Vector) -> Vector:
    """The payoff as the ledger holds it: scale times context (x) the part's share of the core, part after part."""
    parts = []
    for number, (_, size, groups, places, at, _) in enumerate(layout.parts):
        own = cell_payoff[layout.places[places : places + size]]
        parts.append(layout.scale[number] * np.outer(context[at : at + groups], own).ravel())
    return np.concatenate(parts) if parts else np.empty(0)


def slow_payoff(engine: OrderedEngine, round: Round, y: float, features: object = None) -> Vector:
    """The whole weighted payoff of a round with one expert, from the parts' own `evaluate`."""
    n = int(round.info[RoundInfo.CELLS])
    left, right = round.cells[CellRow.LEFT, :n], round.cells[CellRow.RIGHT, :n]
    p = oc.Forecast(left, right, round.cells[CellRow.PLAYED, :n])
    expert = oc.Forecast(left, right, round.rivals[0, :n])
    span = engine.space.high - engine.space.low
    # squared errors are booked in units of the interval
    units_of = {"crps": round.units[RegretScore.CRPS, 0], "mse": round.units[RegretScore.MSE, 0] / span**2}
    coordinates, at = [], 0
    for part in engine.bound_payoff.parts:
        payoff = part.payoff
        value = payoff.evaluate(engine.space, p, y, expert, features)
        if isinstance(payoff, oc.NoRegret):
            value = value * [units_of[score.name] for score in payoff.scores]
        else:
            value = value / np.sqrt(part.bound * payoff.context.bound)
        groups = payoff.context.size
        coordinates.append(payoff.weight * np.outer(round.context[at : at + groups], value).ravel())
        at += groups
    return np.concatenate(coordinates)


def fast_payoff(engine: OrderedEngine, round: Round, y: float, k: int | None = None, features: object = None) -> Vector:
    """The same from the compiled kernel; y is taken to be in cell k if that is given."""
    n = int(round.info[RoundInfo.CELLS])
    if k is None:
        k = int(locate(y, round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT], n))
    at = np.zeros(engine.rules.witnesses)
    if engine.explicit:
        at[engine.rules.orders :] = np.concatenate(
            [c.witness.point(y, k) for c in engine._cell_payoffs(round, features)]
        )
    cell_payoff = np.empty(int(payoff_size(engine.rules, len(round.rivals))))
    cell_payoff_of(engine.rules, round, y, k, at, cell_payoff)
    return whole(engine.ledger.layout, cell_payoff, round.context)


def certified(
    engine: OrderedEngine, round: Round, features: object = None, free: float | None = None
) -> tuple[float, float, float]:
    """Bounds on ||S + payoff||_+^2, on how much that is more than ||S||_+^2, and on ||payoff||^2, from the kernel.

    Within the slack that is `free` the kernel is content with a bound; without any it has to be exact.
    """
    n = int(round.info[RoundInfo.CELLS])
    round = round._replace(**{name: array.copy() for name, array in round._asdict().items()})
    workspace = judging.new_workspace(engine.rules, engine.memory, round, 0.0, witnesses(engine, round, features))
    if free is not None:
        workspace = workspace._replace(free=free)
    linear, bound = certify(engine.rules, n, round, round.cells[CellRow.PLAYED], workspace)
    carried = engine.rules.discount**2 * positive_square(engine.memory.total, engine.ledger.layout.sides)
    return carried + float(linear), float(linear), float(bound)


def positive(total: Vector, sides: Vector) -> Vector:
    """One-sided coordinates through their positive part."""
    return np.where((sides > 0.0) & (total < 0.0), 0.0, total)


def positive_square(total: Vector, sides: Vector) -> float:
    """||S||_+^2, as written."""
    return float(np.sum(positive(total, sides) ** 2))


# --- players ---


def engine_of(game: oc.Forecaster | oc.Recalibrator) -> OrderedEngine:
    return game.engine  # type: ignore[return-value]


def record_of(game: oc.Forecaster | oc.Recalibrator, id: object = None) -> Round:
    return game.rounds.find(id).record.round


def one_by_one(game: oc.Recalibrator, experts: Iterable[object], outcomes: Iterable[float]) -> list[oc.Forecast]:
    played = []
    for expert, y in zip(experts, outcomes, strict=True):
        played.append(game.predict(expert))
        game.update(y)
    return played


def in_batches(
    game: oc.Recalibrator, experts: Iterable[object], outcomes: Vector, levels: Vector, *, batch: int, late: int
) -> Vector:
    """Outcomes of batch b come all at once when batch b + late is complete; the quantiles played."""
    rows = []
    for t, expert in enumerate(experts):
        if t % batch == 0:
            first = t - (late + 1) * batch
            for s in range(max(first, 0), max(first + batch, 0)):
                game.update(outcomes[s], id=s)
        rows.append(game.predict(expert, id=t).quantile(levels))
    return np.array(rows)


def random_ledgers(
    size: int, count: int, seed: int, more: dict[int, Callable[[Vector, np.random.Generator], Vector]]
) -> Iterator[Vector]:
    """Like real ones, and much larger and smaller; with zeros, with one coordinate, all alike; and ``more`` kinds."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        s = rng.normal(size=size) * 10.0 ** rng.uniform(-2, 2)
        kind = i % 10
        if kind == 0:
            s *= 0.0 if i == 0 else 10.0 ** rng.uniform(2, 8)
        elif kind == 1:
            s *= 10.0 ** rng.uniform(-12, -4)
        elif kind == 2:
            s[rng.random(size) < 0.7] = 0.0
        elif kind == 3:
            s = np.where(np.arange(size) == rng.integers(size), s, 0.0)
        elif kind == 4:
            s[:] = s[0]
        elif kind == 5:
            s = np.round(s)
        elif kind in more:
            s = more[kind](s, rng)
        yield s


def check_kept(guarantee: oc.Guarantee) -> None:
    """The promise is kept without what was added after, if every certificate held; with it, in any case."""
    assert guarantee.miscalibration <= (guarantee.promised + guarantee.excess) * (1 + 1e-12)
    assert guarantee.excess == 0.0 or guarantee.held < 1.0
