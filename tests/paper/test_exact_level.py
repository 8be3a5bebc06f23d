"""Adaptive conformal inference as a payoff and its exact oracle."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

import orcast as oc
from helpers import SENTENCE, Vector
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
EXPERTS: list[Any] = [
    oc.Normal(4, 1),
    oc.Normal(9.9, 0.01),
    {0.1: -1.0, 0.6: -1.0, 0.9: 5.0},
    {0.2: -2.0, 0.8: -2.0},
    {0.4: 3.0, 0.6: 10.0},
    oc.Ensemble([3.0, 3.0, 3.0]),
    None,
]

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


def bind(space: Space, payoff: Payoff) -> DenseEngine:
    engine = oc.paper.ConformalLevel(0.9).bind(BoundPayoff(space, payoff, ("expert",), None))
    assert isinstance(engine, DenseEngine)
    return engine


def row_of(expert: Any, space: Any) -> Vector | None:
    return None if expert is None else expert_row(expert, space)[0][None, :]


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
