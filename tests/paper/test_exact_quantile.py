"""The exact oracle for quantiles: its construction, and where the paper's fails."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import SENTENCE, Vector, random_ledgers
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.minimax import downward_zero
from orcast.kernels.equilibrium import field_tables_arrays
from orcast.paper.exact import TwoCells
from orcast.payoffs import Payoff

SPACE = oc.Interval(-2, 10)


def bind(payoff: Payoff) -> DenseEngine:
    engine = TwoCells().bind(BoundPayoff(SPACE, payoff, ("expert",), None))
    assert isinstance(engine, DenseEngine)
    return engine


# --- the construction ---


def height(levels: Vector, s: Vector, u: float) -> float:
    """H(u), as written."""
    return float(sum(c * (min(u, a) - a * u) for a, c in zip(levels, s, strict=True)))


def slope(levels: Vector, s: Vector, u: float) -> float:
    """h right of u."""
    return float(sum(c * ((a > u) - a) for a, c in zip(levels, s, strict=True)))


def tables(levels: Vector, s: Vector) -> tuple[Vector, Vector]:
    knots, slopes = np.empty(levels.size + 1), np.empty(levels.size + 1)
    field_tables_arrays(s, levels, knots, slopes)
    return knots, slopes


@st.composite
def cumulative_on_levels(draw: st.DrawFn) -> tuple[Vector, Vector]:
    levels = np.array(sorted(draw(st.sets(st.integers(1, 63), min_size=1, max_size=20)))) / 64
    some = st.floats(-10, 10) | st.integers(-3, 3).map(float)
    return levels, np.array(draw(st.lists(some, min_size=levels.size, max_size=levels.size)))


@given(cumulative_on_levels())
def test_the_mass_is_a_downward_zero(drawn: tuple[Vector, Vector]) -> None:
    levels, s = drawn
    u = downward_zero(levels, *tables(levels, s))
    size = 1e-9 * (1.0 + float(np.abs(s).sum()))
    if u == 0.0:
        assert slope(levels, s, 0.0) <= size
    elif u == 1.0:
        assert slope(levels, s, 1.0) <= size
    else:
        assert height(levels, s, u) == pytest.approx(0.0, abs=size)
        assert slope(levels, s, u) <= size


def test_a_zero_on_a_level_is_not_passed() -> None:
    """H touches zero at 1/8 and rises: an outcome between the ends must still count as below that level.

    Masses come from logarithms, and those of 1/8 and 7/8 come back a digit too large.
    """

    def by_logarithms(u: float) -> float:
        p = np.exp(np.log([u, 1.0 - u]))
        return float(p[0] / p.sum())

    levels, s = np.array([1, 2, 4, 12]) / 16, np.array([8.0, -12.0, 12.0, -8.0])
    assert [height(levels, s, a) for a in levels] == [0.25, 0.0, 1.0, -1.0]
    u = downward_zero(levels, *tables(levels, s))
    assert u == pytest.approx(1 / 8, abs=1e-12)
    assert worst_at(levels, s, by_logarithms(u)) <= 1e-11
    assert by_logarithms(1 / 8) > 1 / 8
    assert worst_at(levels, s, by_logarithms(1 / 8)) == pytest.approx(8.0)


def test_between_the_ends_indicators_are_hard() -> None:
    """The payoff is the indicator that people plot: 1{y <= q_a} - a."""
    engine = bind(oc.QuantileCalibration([0.2, 0.5, 0.8]))
    rng = np.random.default_rng(3)
    seen = 0
    for s in random_ledgers(3, 400, 4, {6: lambda s, rng: np.cumsum(s)}):
        engine.ledger.total[:] = s
        record = engine.predict(None)
        p = engine.forecast(record)
        y = float(rng.uniform(-1.99, 9.99))
        hard = (y <= p.quantile([0.2, 0.5, 0.8])).astype(float) - [0.2, 0.5, 0.8]
        assert engine.payoff(record, y) == pytest.approx(hard)
        seen += 0.1 < p.mass[0] < 0.9
    assert seen > 5


# --- the paper's own branches ---


def worst_at(levels: Vector, s: Vector, u: float) -> float:
    """The largest inner product over all outcomes with mass u at the low end and 1 - u at the high one."""
    mass = np.array([u, 0.0, 1.0 - u])
    cell_payoff = oc.QuantileCalibration(levels).on(SPACE).cell_payoff(None, {})  # type: ignore[arg-type]
    return float((s @ cell_payoff.table(mass)).max())


def test_a_counterexample_in_numbers() -> None:
    """Levels 1/4 and 3/4 with the sums 1 and -1/2: the paper plays the zero of the ledger, 7/12; that of H is 2/3."""
    levels, s = np.array([0.25, 0.75]), np.array([1.0, -0.5])
    # an outcome at the low end: H(7/12) / (7/12) with H(u) = 1/4 - 3u/8
    assert worst_at(levels, s, 7 / 12) == pytest.approx(3 / 56)
    u = downward_zero(levels, *tables(levels, s))
    assert u == pytest.approx(2 / 3)
    assert worst_at(levels, s, u) <= 1e-12


# --- at the edge ---


@pytest.mark.parametrize(
    ("space", "payoff"),
    [
        (oc.Line(), oc.QuantileCalibration()),
        (oc.HalfLine(), oc.QuantileCalibration()),
        (oc.Box([(0, 1), (0, 1)]), oc.QuantileCalibration()),
        (SPACE, oc.QuantileCalibration() + oc.MomentMatching(1)),
        (SPACE, oc.payoffs.ThresholdCalibration([0.0], grid=1)),
    ],
    ids=str,
)
def test_it_is_for_quantiles_on_intervals(space: Any, payoff: Payoff) -> None:
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Forecaster(space, payoff, oracle=TwoCells())
