"""What several tests share: strategies for hypothesis, slow twins, an adversary, and late outcomes."""

from collections.abc import Iterable, Iterator

import hypothesis.strategies as st
import numpy as np
from numba import njit
from numpy.typing import NDArray

import orcast as oc
from orcast.oracles import _cells, _ordered, _state
from orcast.oracles.engine import Engine
from orcast.payoffs import Payoff
from orcast.spaces import TAIL_MASS

Vector = NDArray[np.float64]

# Every message at the public edge: one sentence, what was wanted and what came.
SENTENCE = r"\Aexpected [^\n]*\bgot [^\n]*\Z"

# Nodes and weights on [0, 1] that integrate polynomials up to degree 11 exactly; none sits on an edge.
_nodes, _weights = np.polynomial.legendre.leggauss(6)
NODES, WEIGHTS = 0.5 * (_nodes + 1.0), 0.5 * _weights


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
def quantile_rows(draw: st.DrawFn, space: oc.Interval) -> Vector:
    """An expert's quantiles at the levels of a space: spread, tied, at a bound, or all on one value."""
    some = draw(st.lists(units, min_size=1, max_size=6))
    at = np.sort(draw(st.lists(units, min_size=len(some), max_size=len(some))))
    row = np.interp(space.levels, at, np.sort(some))
    if draw(st.booleans()):
        row = np.round(row * 4) / 4
    return np.ascontiguousarray(space.low + (space.high - space.low) * row)


@st.composite
def on_cells(draw: st.DrawFn, space: oc.Interval, empty: bool = True) -> tuple[oc.Forecast, Vector]:
    """Any masses on the cells around an expert, and other masses on the same cells."""
    left, right, _, _ = cells_around(space, draw(quantile_rows(space)))
    some = st.floats(1e-4, 1.0) | st.sampled_from([1e-3, 1.0] + [0.0] * empty)
    mass = np.array(draw(st.lists(some, min_size=left.size, max_size=left.size)))
    other = np.array(draw(st.lists(some, min_size=left.size, max_size=left.size)))
    mass[draw(st.integers(0, left.size - 1))] += 1.0
    other[draw(st.integers(0, left.size - 1))] += 1.0
    return oc.Forecast(left, right, mass / mass.sum()), other / other.sum()


def cells_around(space: oc.Interval, q: Vector, usual: float = 0.0) -> tuple[Vector, Vector, Vector, NDArray[np.int64]]:
    """What build_cells makes of an expert's quantiles and its usual loss: left, right, masses, slots."""
    left, right, mass = np.empty((3, space.cells))
    slots = np.empty(space.cells, dtype=np.int64)
    n = _cells.build_cells(q, space.low, space.high, space.tail_cells, TAIL_MASS, usual, left, right, mass, slots)
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


def page_with(engine: Engine, p: oc.Forecast, expert: Vector, scales: tuple[float, float] = (2.0, 3.0)) -> _state.Round:
    """A round that played p, whatever the oracle would have done; the expert's masses are on the same cells."""
    page = engine.new_round()
    n = p.mass.size
    page.info[_state.CELLS] = n
    page.info[_state.CRPS_SCALE], page.info[_state.MSE_SCALE] = 2.0, 3.0
    for row, values in zip(
        (_state.LEFT, _state.RIGHT, _state.PLAYED, _state.EXPERT), (p.left, p.right, p.mass, expert), strict=True
    ):
        page.cells[row, :n] = values
    return page


def slow_payoff(engine: Engine, page: _state.Round, y: float) -> Vector:
    """The whole weighted payoff of a round from the parts' own `evaluate`."""
    n = int(page.info[_state.CELLS])
    left, right = page.cells[_state.LEFT, :n], page.cells[_state.RIGHT, :n]
    p = oc.Forecast(left, right, page.cells[_state.PLAYED, :n])
    expert = oc.Forecast(left, right, page.cells[_state.EXPERT, :n])
    span = engine.space.high - engine.space.low
    # squared errors are booked in units of the interval
    units_of = {"crps": page.info[_state.CRPS_SCALE], "mse": page.info[_state.MSE_SCALE] / span**2}
    coordinates = []
    for part, _, _ in engine.parts:
        value = part.evaluate(engine.space, p, y, expert)
        if isinstance(part, oc.NoRegret):
            value = value * [units_of[score.name] for score in part.scores]
        else:
            value = value / np.sqrt(part.bound)
        coordinates.append(part.weight * value)
    return np.concatenate(coordinates)


def fast_payoff(engine: Engine, page: _state.Round, y: float, k: int | None = None) -> Vector:
    """The same from the compiled kernel; y is taken to be in cell k if that is given."""
    rules, rows = engine.rules, page.cells
    n = int(page.info[_state.CELLS])
    out = np.empty(engine.memory.total.size)
    _ordered.payoff(
        y,
        _cells.locate(y, rows[_state.LEFT], rows[_state.RIGHT], n) if k is None else k,
        n,
        rows[_state.LEFT],
        rows[_state.RIGHT],
        rows[_state.PLAYED],
        rows[_state.EXPERT],
        rules.low,
        rules.high,
        rules.levels,
        rules.orders,
        rules.weights,
        page.info[_state.CRPS_SCALE : _state.MSE_SCALE + 1],
        out,
    )
    return out


def certified(engine: Engine, page: _state.Round) -> tuple[float, float, float]:
    """worst ||S + payoff||_+^2, worst 2 <S_+, payoff> + ||payoff||^2, worst ||payoff||^2, from the kernel."""
    rules, rows, total = engine.rules, page.cells, engine.memory.total
    count = rules.levels.size
    knots, slopes, out = np.empty(count + 1), np.empty(count + 1), np.empty(4)
    _ordered.field_tables(total, rules.levels, knots, slopes)
    _ordered.certify(
        int(page.info[_state.CELLS]),
        rows[_state.LEFT],
        rows[_state.RIGHT],
        rows[_state.PLAYED],
        rows[_state.EXPERT],
        total,
        rules.low,
        rules.high,
        rules.levels,
        knots,
        slopes,
        rules.orders,
        rules.weights,
        page.info[_state.CRPS_SCALE : _state.MSE_SCALE + 1],
        out,
    )
    return float(out[0]), float(out[1]), float(out[2])


def positive_square(total: Vector, one_sided: int) -> float:
    """||S||_+^2, as written."""
    return float(np.sum(total[:one_sided] ** 2) + np.sum(np.maximum(total[one_sided:], 0.0) ** 2))


# --- players ---


def engine_of(game: oc.Forecaster | oc.Recalibrator) -> Engine:
    return inner(game)._engine


def inner(game: oc.Forecaster | oc.Recalibrator) -> oc.Forecaster:
    return game._game if isinstance(game, oc.Recalibrator) else game


def page_of(game: oc.Forecaster | oc.Recalibrator, id: object = None) -> _state.Round:
    return inner(game)._waiting[id].page


@njit
def worst_point(rules, total, rnd, points):  # type: ignore[no-untyped-def]
    """The outcome that makes ||S + payoff||_+^2 largest, over `points` places in every cell, and that square."""
    rows = rnd.cells
    n = int(rnd.info[_state.CELLS])
    left, right = rows[_state.LEFT], rows[_state.RIGHT]
    owed = np.empty(total.shape[0])
    best = -1.0
    at = left[0]
    for k in range(n):
        for i in range(1, points + 1):
            y = left[k] + (right[k] - left[k]) * i / points
            if _cells.locate(y, left, right, n) != k:
                continue
            _ordered.payoff(
                y,
                k,
                n,
                left,
                right,
                rows[_state.PLAYED],
                rows[_state.EXPERT],
                rules.low,
                rules.high,
                rules.levels,
                rules.orders,
                rules.weights,
                rnd.info[_state.CRPS_SCALE : _state.MSE_SCALE + 1],
                owed,
            )
            square = 0.0
            for j in range(owed.shape[0]):
                s = total[j] + owed[j]
                if j < rules.one_sided or s > 0.0:
                    square += s * s
            if square > best:
                best = square
                at = y
    return at, best


def greedy(game: oc.Forecaster | oc.Recalibrator, id: object = None, points: int = 4) -> tuple[float, float]:
    """Nature that sees the forecast: the outcome that hurts most, and the square it leads to."""
    engine = engine_of(game)
    return worst_point(engine.rules, engine.memory.total, page_of(game, id), points)


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
