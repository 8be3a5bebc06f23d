"""Adaptive conformal inference as a payoff and its exact oracle: the contract, brute force, cost, promise."""

from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

import orcast as oc
from helpers import SENTENCE, Vector, positive, random_ledgers, whole
from orcast.adapters import expert_row
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.paper.conformal import bent, root_between
from orcast.payoffs import Payoff
from orcast.payoffs.levels import LevelCalibration, LevelCellPayoff
from orcast.spaces import Space

SPACES: dict[str, Any] = {
    "interval": oc.Interval(-2, 10, cells=24, tail_cells=3),
    "line": oc.Line(cells=24, tail_cells=3),
    "half line": oc.HalfLine(-1, cells=24, tail_cells=3),
}
HOURS = oc.by("hour", values=range(3))
EXPERTS: list[Any] = [
    oc.Normal(4, 1),
    oc.Normal(9.9, 0.01),
    {0.1: -1.0, 0.6: -1.0, 0.9: 5.0},
    {0.2: -2.0, 0.8: -2.0},
    {0.4: 3.0, 0.6: 10.0},
    oc.Ensemble([3.0, 3.0, 3.0]),
    None,
]
PAYOFFS: dict[str, Callable[[], Payoff]] = {
    "90%": lambda: LevelCalibration(0.9),
    "half": lambda: LevelCalibration(0.5, grid=4),
    "far out": lambda: LevelCalibration(0.001, grid=100),
    "by hour": lambda: LevelCalibration(0.8, grid=6, context=HOURS),
    "two grids": lambda: LevelCalibration(0.7, grid=6, context=HOURS) + LevelCalibration(0.7, grid=15, weight=2.0),
}


def oracle_of(payoff: Payoff) -> oc.paper.ConformalLevel:
    """The oracle for a payoff of one level."""
    return oc.paper.ConformalLevel(next(iter(payoff)).level)  # type: ignore[attr-defined]


# --- the payoff ---


def test_its_derivative_is_that_of_finite_differences() -> None:
    """In every coordinate; at a kink of the hats or of the cells there is none."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        p, x = 0.5 * rng.dirichlet(np.ones(6)) + 0.5 / 6, rng.dirichlet(np.ones(6))
        cell_payoff = LevelCellPayoff(0.7, 5, x)
        s = rng.normal(size=cell_payoff.size)
        alpha = cell_payoff.expert_level(cell_payoff.below(p))
        if abs(5 * alpha - round(5 * alpha)) < 1e-3 or np.abs(np.cumsum(p) - 0.7).min() < 1e-3:
            continue
        jacobian = cell_payoff.jacobian(s, p)
        for j in range(6):
            step = 1e-7 * np.eye(6)[j]
            numeric = (cell_payoff.field(s, p + step) - cell_payoff.field(s, p - step)) / 2e-7
            assert jacobian[:, j] == pytest.approx(numeric, rel=1e-5, abs=1e-5)


def test_alpha_is_the_experts_word_for_our_quantile() -> None:
    """As forecasts say it, off the atoms."""
    left, right = np.arange(5.0), np.arange(1.0, 6.0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        p, x = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        level = float(rng.uniform(0.05, 0.95))
        cell_payoff = LevelCellPayoff(level, 20, x)
        quantile = oc.Forecast(left, right, p).quantile(level)
        assert cell_payoff.expert_level(cell_payoff.below(p)) == pytest.approx(
            float(oc.Forecast(left, right, x).cdf(quantile)), abs=1e-9
        )


def test_a_cell_without_mass_is_the_limit() -> None:
    x = np.array([0.25, 0.25, 0.25, 0.25])
    for tiny in (0.0, 1e-12, 1e-9):
        cell_payoff = LevelCellPayoff(0.5, 4, x)
        p = np.array([0.5 - tiny, tiny, tiny, 0.5 - tiny])
        assert cell_payoff.below(p) == pytest.approx([1.0, 1.0, 1.0, 0.0], abs=1e-8)
        assert cell_payoff.expert_level(cell_payoff.below(p)) == pytest.approx(0.75, abs=1e-8)


def test_what_is_shown_is_the_error_of_the_coverage() -> None:
    game = oc.Forecaster(oc.Interval(0, 10), LevelCalibration(0.9), oracle=oc.paper.ConformalLevel(0.9))
    covered = []
    for y in (9.5, 0.5, 0.4, 9.9, 0.3, 0.1, 0.2):
        p = game.predict(oc.Normal(4, 1))
        covered.append(y <= p.quantile(0.9))
        game.update(y)
    assert game.guarantee.parts["level"] == pytest.approx(abs(np.mean(covered) - 0.9), abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LevelCalibration(0.0),
        lambda: LevelCalibration(1.0),
        lambda: LevelCalibration("high"),  # type: ignore[arg-type]
        lambda: LevelCalibration(0.9, grid=1),
        lambda: LevelCalibration(0.9, weight=0.0),
        lambda: LevelCalibration(0.9).on(oc.Binary()),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


# --- brute force ---


def ledgers(size: int, count: int, seed: int) -> Iterator[Vector]:
    """Like real ones, and much larger and smaller; with zeros, with one coordinate, all alike, increasing."""
    return random_ledgers(size, count, seed, {6: lambda s, rng: np.sort(s), 7: lambda s, rng: np.sort(s)})


def bind(space: Space, payoff: Payoff) -> DenseEngine:
    engine = oracle_of(payoff).bind(BoundPayoff(space, payoff, ("expert",), None))
    assert isinstance(engine, DenseEngine)
    return engine


def outcomes(engine: DenseEngine, record: Any) -> list[float]:
    """Both ends and the middle of every cell."""
    left, right = record.round.cell_rows()[:2]
    return sorted({float(y) for y in np.concatenate((left, 0.5 * (left + right), right))})


def inner_products(engine: DenseEngine, record: Any) -> dict[float, float]:
    """<S, payoff> of each outcome, from what would be booked."""
    layout = engine.ledger.layout
    owed = positive(engine.ledger.total, layout.side_list)
    return {
        y: float(owed @ whole(layout, engine.payoff(record, y), engine.context_of(record)))
        for y in outcomes(engine, record)
    }


def row_of(expert: Any, space: Any) -> Vector | None:
    return None if expert is None else expert_row(expert, space)[0][None, :]


def check(engine: DenseEngine, record: Any, level: float) -> float:
    """No outcome hurts beyond rounding, and what the certificate says is the very value."""
    worst = max(inner_products(engine, record).values())
    total = float(np.abs(engine.ledger.total).sum())
    said = record.claim.half_space * max(engine.ledger.rounds, 1)
    assert record.claim.approximation == 0.0
    assert worst == pytest.approx(said, rel=1e-9, abs=1e-13 * (1.0 + total))
    assert worst <= 1e-11 * total / min(level, 1.0 - level) + 1e-12
    return worst


@pytest.mark.parametrize("where", SPACES)
@pytest.mark.parametrize("name", PAYOFFS)
def test_no_outcome_hurts_whatever_is_owed(name: str, where: str) -> None:
    payoff = PAYOFFS[name]()
    level = next(iter(payoff)).level  # type: ignore[attr-defined]
    space = SPACES[where]
    engine = bind(space, payoff)
    for i, s in enumerate(ledgers(engine.ledger.total.size, 300 if name == "90%" else 70, 1)):
        engine.ledger.total[:] = s
        check(engine, engine.predict(row_of(EXPERTS[i % len(EXPERTS)], space), {"hour": i % 3}), level)


@pytest.mark.parametrize("name", PAYOFFS)
def test_nor_where_an_adversary_has_grown_the_ledger(name: str) -> None:
    """Nature sees the forecast and takes the worst outcome, or one that was or was not covered, at random."""
    payoff = PAYOFFS[name]()
    level = next(iter(payoff)).level  # type: ignore[attr-defined]
    space = SPACES["interval"]
    engine = bind(space, payoff)
    rng = np.random.default_rng(2)
    for t in range(200 if name == "90%" else 60):
        record = engine.predict(row_of(EXPERTS[int(rng.integers(len(EXPERTS)))], space), {"hour": t % 3})
        check(engine, record, level)
        products = inner_products(engine, record)
        engine.update(record, max(products, key=products.__getitem__) if t % 3 else float(rng.choice(list(products))))
    assert engine.ledger.held == 1.0


# --- the forecast ---


def played(engine: DenseEngine, record: Any) -> tuple[LevelCellPayoff, Vector, float]:
    (cell_payoff,) = record.cell_payoffs
    p = engine.prior.played(record.round)
    return cell_payoff, p, cell_payoff.expert_level(cell_payoff.below(p))


def test_without_debts_it_is_the_expert_who_speaks() -> None:
    game = oc.Forecaster(SPACES["interval"], LevelCalibration(0.9), oracle=oc.paper.ConformalLevel(0.9))
    p = game.predict(oc.Normal(4, 1))
    record = game.rounds.pending[None].record
    assert p.mass == pytest.approx(record.cell_payoffs[0].expert, abs=1e-5)
    assert p.quantile(0.9) == pytest.approx(4 + 1.2816, abs=0.1)


def test_on_either_side_it_is_like_the_expert() -> None:
    engine = bind(oc.Interval(-2, 10), LevelCalibration(0.9))
    engine.ledger.total[16:19] = -1.0, 0.0, 2.0
    record = engine.predict(row_of(oc.Normal(4, 1), engine.space))
    cell_payoff, p, alpha = played(engine, record)
    assert alpha == pytest.approx(0.85)
    k = int(np.searchsorted(np.cumsum(cell_payoff.expert), alpha))
    below, above = slice(0, k), slice(k + 1, None)
    for side in (below, above):
        large = cell_payoff.expert[side] > 1e-3
        ratio = p[side][large] / cell_payoff.expert[side][large]
        assert ratio == pytest.approx(float(ratio.mean()), rel=1e-3)
    assert p[below].sum() / cell_payoff.expert[below].sum() == pytest.approx(0.9 / 0.85, rel=0.01)
    assert p[above].sum() / cell_payoff.expert[above].sum() == pytest.approx(0.1 / 0.15, rel=0.05)


@pytest.mark.parametrize(("sign", "end"), [(1.0, 0), (-1.0, -1)])
def test_where_no_root_is_within_reach_all_mass_is_at_one_end(sign: float, end: int) -> None:
    for expert in EXPERTS:
        engine = bind(SPACES["interval"], LevelCalibration(0.9))
        engine.ledger.total[:] = sign
        record = engine.predict(row_of(expert, SPACES["interval"]))
        assert played(engine, record)[1][end] == pytest.approx(1.0)
        assert check(engine, record, 0.9) == pytest.approx(0.0, abs=1e-12)


@given(
    st.lists(st.integers(0, 5).map(float) | st.floats(0.0, 1.0) | st.just(1e-12), min_size=3, max_size=12),
    st.floats(0.01, 0.99),
    st.floats(0.0, 1.0),
)
@example([1e-12, 1.0, 1e-12], 0.5, 0.9999999999999999)
def test_masses_can_be_bent_to_any_level_within_reach(masses: list[float], level: float, at: float) -> None:
    x = np.array(masses)
    x[0] += x.sum() == 0.0
    x /= x.sum()
    low, high = level * x[0], 1.0 - (1.0 - level) * x[-1]
    alpha = low + at * (high - low)
    p = bent(x, level, alpha, low, high)
    cell_payoff = LevelCellPayoff(level, 10, x)
    assert (p >= 0.0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert cell_payoff.expert_level(cell_payoff.below(p)) == pytest.approx(alpha, abs=2e-12)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_cells_that_the_expert_hardly_believes_in_are_no_trap(share: float) -> None:
    """The quantile may lie in such a cell, or at the edge of one: its mass must not count as none there."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        x = rng.dirichlet(np.ones(7))
        x[3 if share < 1.0 else 4] = 3e-9
        x /= x.sum()
        alpha = float(np.cumsum(x)[2] + share * x[3])
        p = bent(x, 0.9, alpha, 0.9 * x[0], 1.0 - 0.1 * x[-1])
        cell_payoff = LevelCellPayoff(0.9, 10, x)
        assert cell_payoff.expert_level(cell_payoff.below(p)) == pytest.approx(alpha, abs=1e-12)


@given(
    st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, -1.0]), min_size=3, max_size=40),
    st.floats(0.0, 1.0),
    st.floats(0.0, 0.3),
    st.floats(0.7, 1.0),
)
def test_the_root_is_one_or_an_end_that_wins(c: list[float], start: float, low: float, high: float) -> None:
    vertices, values = np.linspace(0.0, 1.0, len(c)), np.array(c)
    start = min(max(start, low), high)

    def value(alpha: float) -> float:
        return float(np.interp(alpha, vertices, values))

    alpha = root_between(vertices, values, start, low, high)
    assert low <= alpha <= high
    small = 1e-9 * (1.0 + float(np.abs(values).max()))
    assert (
        abs(value(alpha)) <= small
        or (alpha == low and value(alpha) >= -small)
        or (alpha == high and value(alpha) <= small)
    )
    # too little covered: up, else down
    assert (alpha - start) * value(start) <= small


# --- the paper's randomised oracle ---


# --- the promise ---


# --- at the edge ---


@pytest.mark.parametrize(
    ("space", "payoff"),
    [
        (oc.Interval(0, 1), oc.QuantileCalibration([0.9])),
        (oc.Interval(0, 1), LevelCalibration(0.9) + LevelCalibration(0.5)),
        (oc.Interval(0, 1), LevelCalibration(0.9) + oc.MomentMatching(1)),
        (oc.Binary(), oc.BinaryCalibration()),
    ],
    ids=str,
)
def test_it_is_for_one_level_on_ordered_spaces(space: Any, payoff: Payoff) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Forecaster(space, payoff, oracle=oc.paper.ConformalLevel(0.9))


def test_at_random_it_is_no_oracle() -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster(SPACES["interval"], LevelCalibration(0.9), oracle=oc.paper.ConformalLevel(0.9, randomised=True))
