"""Shared parts of tests: strategies for hypothesis, definitions in plain Python, and late outcomes."""

import re
from collections.abc import Callable, Iterable, Iterator

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

import orcast as oc
from orcast.engine import Oracle
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.ordered import EXPERT, LEFT, PLAYED, RIGHT, OrderedEngine
from orcast.kernels import records, rounds
from orcast.kernels.judging import certify_arrays
from orcast.kernels.ledger import available_slack_arrays, write_certificate_arrays
from orcast.kernels.state import Layout, Round
from orcast.ledger import CERTIFICATE_SIZE, Ledger
from orcast.payoffs import Payoff, Sum
from orcast.spaces import OrderedSpace, Space

Vector = NDArray[np.float64]

# Rows of a table of powers.
MEAN, LEAST, LARGEST = range(3)

# Every message of the public interface: expected, found, and no more than a line.
SENTENCE = r"\Aexpected [^\n]*\bgot [^\n]*\Z"

# Nodes and weights on [0, 1] that integrate polynomials up to degree 11 exactly; none sits on an edge.
_nodes, _weights = np.polynomial.legendre.leggauss(6)
NODES, WEIGHTS = 0.5 * (_nodes + 1.0), 0.5 * _weights


def numbers_of(p: oc.Forecast) -> list[list[float]]:
    """Ends and masses of a forecast's cells."""
    return [p.left.tolist(), p.right.tolist(), p.mass.tolist()]


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
    left, right, _ = cells_around(space, draw(quantile_rows(space)), jumps=jumps)
    some = st.floats(1e-4, 1.0) | st.sampled_from([1e-3, 1.0] + [0.0] * empty)
    mass = np.array(draw(st.lists(some, min_size=left.size, max_size=left.size)))
    other = np.array(draw(st.lists(some, min_size=left.size, max_size=left.size)))
    mass[draw(st.integers(0, left.size - 1))] += 1.0
    other[draw(st.integers(0, left.size - 1))] += 1.0
    return oc.Forecast(left, right, mass / mass.sum()), other / other.sum()


def cells_around(
    space: OrderedSpace, q: Vector, usual: float = 0.0, jumps: Iterable[float] = ()
) -> tuple[Vector, Vector, Vector]:
    """Cells at an expert's quantiles, given its usual loss: left and right ends, masses."""
    engine = bound_to(space, Sum(()))
    engine.cut_at(np.array(list(jumps), dtype=np.float64))
    for name, value in (("loss_sum", usual), ("loss_count", 1.0)):
        engine.memory.view("statistics")[records.STATISTICS.index(name)] = value
    row, none = np.array(q, dtype=np.float64), np.empty(0)
    mix = np.empty(engine.capacity)
    round = rounds.predict(engine.rules, engine.memory, row[None, :], row, False, 0.0, 0.0, none, 0.0, mix)
    left, right = round.cell_rows()[:2].copy()
    return left, right, mix[: left.size].copy()


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


def cells_of(round: Round) -> tuple[Vector, Vector, Vector]:
    """Left ends, right ends and masses of the forecast of a round."""
    rows = round.view("cells")[:, : round.count()]
    return rows[LEFT], rows[RIGHT], rows[PLAYED]


def set_info(round: Round, **numbers: float) -> None:
    """Write numbers of the record `info` of a round."""
    for name, value in numbers.items():
        round.view("info")[records.INFO.index(name)] = value


def page_with(engine: OrderedEngine, p: oc.Forecast, expert: Vector) -> Round:
    """A round with the forecast p, whatever the oracle would choose; the expert's masses are on the same cells."""
    round = Round(engine.rules)
    n = p.mass.size
    set_info(round, cells=n, low=engine.space.low, high=engine.space.high)
    round.view("context")[:] = 1.0
    round.view("crps_units")[:], round.view("mse_units")[:] = 2.0, 3.0
    round.view("cells")[[LEFT, RIGHT, PLAYED, EXPERT], :n] = p.left, p.right, p.mass, expert
    round.view("rivals")[:, :n] = expert
    round.view("expected")[:] = powers(engine, round)[MEAN, :, :n] @ p.mass
    return round


def powers(engine: OrderedEngine, round: Round) -> NDArray[np.float64]:
    """Mean, least and largest value of each power in each cell."""
    rules, n = engine.rules, round.count()
    table = np.zeros((3, rules.orders, engine.capacity))
    low, high = round.read("info", "low"), round.read("info", "high")
    left, right, _ = cells_of(round)
    a, b = (left - low) / (high - low), (right - low) / (high - low)
    for order in range(1, rules.orders + 1):
        unit = sum(a**i * b ** (order - i) for i in range(order + 1)) / (order + 1)
        table[:, order - 1, :n] = unit, a**order, b**order
    return table


def whole(layout: Layout, cell_payoff: Vector, context: Vector) -> Vector:
    """The payoff as the ledger holds it: scale times context (x) the part's share of the core, part after part."""
    parts = []
    for number, (_, size, groups, places, at, _) in enumerate(layout.part_table):
        own = cell_payoff[layout.place_list[places : places + size]]
        parts.append(layout.scales[number] * np.outer(context[at : at + groups], own).ravel())
    return np.concatenate(parts) if parts else np.empty(0)


def slow_payoff(engine: OrderedEngine, round: Round, y: float, features: object = None) -> Vector:
    """The whole weighted payoff of a round with one expert, from the parts' own `evaluate`."""
    left, right, mass = cells_of(round)
    p, expert = oc.Forecast(left, right, mass), oc.Forecast(left, right, round.view("rivals")[0, : mass.size])
    span = engine.space.high - engine.space.low
    # squared errors are in units of the interval
    units_of = {"crps": round.view("crps_units")[0], "mse": round.view("mse_units")[0] / span**2}
    context = round.view("context")
    coordinates, at = [], 0
    for part in engine.bound_payoff.parts:
        payoff = part.payoff
        value = payoff.evaluate(engine.space, p, y, expert, features)
        if isinstance(payoff, oc.NoRegret):
            value = value * [units_of[score.name] for score in payoff.scores]
        else:
            value = value / np.sqrt(part.bound * payoff.context.bound)
        groups = payoff.context.size
        coordinates.append(payoff.weight * np.outer(context[at : at + groups], value).ravel())
        at += groups
    return np.concatenate(coordinates)


def fast_payoff(engine: OrderedEngine, round: Round, y: float, k: int | None = None) -> Vector:
    """Payoff of a round by the kernel; y is taken to be in cell k if that is given."""
    left, right, _ = cells_of(round)
    if k is not None and left[k] < right[k]:
        y = min(max(y, np.nextafter(left[k], np.inf)), np.nextafter(right[k], -np.inf))
    cell_payoff = rounds.payoffs(engine.rules, round, np.array([y]))[0]
    return whole(engine.ledger.layout, cell_payoff, round.view("context"))


def certified(engine: OrderedEngine, round: Round, free: float | None = None) -> tuple[float, float, float]:
    """Bounds on ||S + payoff||_+^2, on its growth over ||S||_+^2, and on ||payoff||^2, from the kernel.

    Within the slack `free` the kernel may return a bound; without slack the result is exact.
    """
    linear, bound, _, _ = certify_arrays(engine.rules, engine.memory, round.copied(), free)
    carried = engine.rules.discount**2 * positive_square(engine.ledger.total, engine.ledger.layout.side_list)
    return carried + linear, linear, bound


def certify(
    book: Ledger, context: Vector, *, linear: float, bound: float, reserved: float = 0.0
) -> NDArray[np.float64]:
    """Certificate of a round by the growth of its worst outcome."""
    row, square = np.zeros(CERTIFICATE_SIZE), book.square
    free = available_slack_arrays(book.state, square, context, reserved)
    write_certificate_arrays(book.state, square, free, linear, bound, row)
    return row


def positive(total: Vector, sides: Vector) -> Vector:
    """One-sided coordinates through their positive part."""
    return np.where((sides > 0.0) & (total < 0.0), 0.0, total)


def positive_square(total: Vector, sides: Vector) -> float:
    """||S||_+^2, as written."""
    return float(np.sum(positive(total, sides) ** 2))


# --- runs ---


def engine_of(recal: oc.Forecaster | oc.Recalibrator) -> OrderedEngine:
    return recal.engine  # type: ignore[return-value]


def record_of(recal: oc.Forecaster | oc.Recalibrator, id: object = None) -> Round:
    return recal.rounds.find(id).record


def in_batches(
    recal: oc.Recalibrator, experts: Iterable[object], outcomes: Vector, levels: Vector, *, batch: int, late: int
) -> Vector:
    """Outcomes of batch b come all at once when batch b + late is complete; the quantiles played."""
    rows = []
    for t, expert in enumerate(experts):
        if t % batch == 0:
            first = t - (late + 1) * batch
            for s in range(max(first, 0), max(first + batch, 0)):
                recal.update(outcomes[s], id=s)
        rows.append(recal.predict(expert, id=t).quantile(levels))
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
