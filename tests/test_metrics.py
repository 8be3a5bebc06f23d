"""The streaming metrics against their vectorised twins, slow obvious versions, and scoringrules."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.stats import norm

from orcast import metrics

Vector = NDArray[np.float64]
TENTHS = np.arange(1, 10) / 10

# Small integers tie often, with the ends of [0, 8] too; the fractions do not.
values = st.integers(0, 8).map(float) | st.floats(0.0, 8.0, allow_subnormal=False)


@st.composite
def rounds(draw: st.DrawFn, most: int = 30) -> tuple[Vector, Vector]:
    """Quantiles at nine levels and outcomes on [0, 8]."""
    count = draw(st.integers(1, most))
    q = np.sort(draw(hnp.arrays(np.float64, (count, TENTHS.size), elements=values)), axis=1)
    return q, draw(hnp.arrays(np.float64, count, elements=values))


class Fixed:
    """A forecast with given quantiles at the nine levels."""

    def __init__(self, q: Vector) -> None:
        self.q = q

    def quantile(self, levels: Vector) -> Vector:
        return np.interp(levels, TENTHS, self.q)

    def mean(self) -> float:
        return float(self.q.mean())


def fed(metric: Any, q: Vector, y: Vector) -> float:
    for row, outcome in zip(q, y, strict=True):
        metric.update_quantiles(row, outcome)
    return metric.get()


# --- streaming == vectorised ---


@given(rounds())
def test_qce_streams(data: tuple[Vector, Vector]) -> None:
    q, y = data
    metric = metrics.QCE(TENTHS, low=0, high=8)
    assert fed(metric, q, y) == pytest.approx(metrics.qce(q, y, TENTHS, low=0, high=8), abs=1e-12)


@given(rounds(), st.integers(1, 10))
def test_rolling_qce_streams(data: tuple[Vector, Vector], window: int) -> None:
    q, y = data
    expected = metrics.worst_rolling_qce(q, y, TENTHS, window=window, low=0, high=8)
    metric = metrics.RollingQCE(window, TENTHS, low=0, high=8)
    assert fed(metric, q, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    last = metrics.qce(q[-window:], y[-window:], TENTHS, low=0, high=8) if y.size >= window else np.nan
    assert metric.last() == pytest.approx(last, abs=1e-12, nan_ok=True)


@given(rounds())
def test_pinball_and_crps_stream(data: tuple[Vector, Vector]) -> None:
    q, y = data
    assert fed(metrics.MeanPinball(TENTHS), q, y) == pytest.approx(metrics.pinball(q, y, TENTHS).mean())
    assert fed(metrics.MeanCRPS(TENTHS), q, y) == pytest.approx(2.0 * metrics.pinball(q, y, TENTHS).mean())


@given(rounds())
def test_coverage_and_width_stream(data: tuple[Vector, Vector]) -> None:
    q, y = data
    low, high = q[:, 0], q[:, -1]
    ends = np.column_stack((low, high))
    assert fed(metrics.Coverage(0.8), ends, y) == np.mean((low <= y) & (y <= high))
    assert fed(metrics.Width(0.8), ends, y) == pytest.approx(np.mean(high - low))


# --- against slow, obvious versions ---


@given(rounds(most=5), st.sampled_from([(0.0, 8.0), (-np.inf, np.inf)]))
def test_fair_indicators_are_the_mean_over_a_randomised_pit(
    data: tuple[Vector, Vector], ends: tuple[float, float]
) -> None:
    q, y = data
    low, high = ends
    fair = metrics.fair_indicators(q, y, TENTHS, low=low, high=high)
    neighbours = [0.0, *TENTHS, 1.0]
    for row, outcome, got in zip(q, y, fair, strict=True):
        ties = [i for i, v in enumerate(row, start=1) if v == outcome]
        if not ties:
            expected = [float(outcome <= v) for v in row]
        else:
            u = 0.0 if outcome <= low else (neighbours[ties[0] - 1] + neighbours[ties[0]]) / 2
            v = 1.0 if outcome >= high else (neighbours[ties[-1]] + neighbours[ties[-1] + 1]) / 2
            pit = u + (v - u) * (np.arange(4000) + 0.5) / 4000
            expected = [float(np.mean(pit <= a)) for a in TENTHS]
        np.testing.assert_allclose(got, expected, atol=1e-3)


@given(st.lists(values, min_size=1, max_size=12), values)
def test_ensemble_crps_is_the_double_sum(members: list[float], y: float) -> None:
    x = np.array(members)
    slow = np.abs(x - y).mean() - np.abs(x[:, None] - x).mean() / 2
    assert float(metrics.crps_ensemble(x, y)) == pytest.approx(slow, abs=1e-12)


# --- against scoringrules ---


def test_scores_agree_with_scoringrules() -> None:
    import scoringrules  # compiles for seconds, in one process only

    rng = np.random.default_rng(1)
    y, mu, sd = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.1, 3, size=50)
    np.testing.assert_allclose(metrics.crps_normal(mu, sd, y), scoringrules.crps_normal(y, mu, sd))
    members = rng.normal(size=(50, 21))
    np.testing.assert_allclose(metrics.crps_ensemble(members, y), scoringrules.crps_ensemble(y, members))
    q = norm.ppf(metrics.LEVELS, mu[:, None], sd[:, None])
    each = scoringrules.quantile_score(y[:, None], q, metrics.LEVELS)
    np.testing.assert_allclose(metrics.pinball(q, y), np.mean(each, axis=1))
    np.testing.assert_allclose(2.0 * metrics.pinball(q, y), scoringrules.crps_quantile(y, q, metrics.LEVELS), rtol=1e-6)


def test_normal_crps_without_spread() -> None:
    np.testing.assert_allclose(metrics.crps_normal(1.0, [0.0, 1e-310, 1e-200], 4.0), 3.0)


# --- the contract of every metric ---

MAKERS: list[Callable[[], Any]] = [
    lambda: metrics.QCE(TENTHS),
    lambda: metrics.RollingQCE(2, TENTHS),
    lambda: metrics.MeanPinball(TENTHS),
    lambda: metrics.MeanCRPS(TENTHS),
    lambda: metrics.Coverage(0.8),
    lambda: metrics.Width(0.8),
]
every = pytest.mark.parametrize("make", MAKERS, ids=lambda make: type(make()).__name__)


@every
def test_metric_before_any_outcome(make: Callable[[], Any]) -> None:
    metric = make()
    assert np.isnan(metric.get())


@every
def test_forecast_and_its_quantiles_are_the_same(make: Callable[[], Any]) -> None:
    rng = np.random.default_rng(2)
    one, two = make(), make()
    for _ in range(5):
        forecast, y = Fixed(np.sort(rng.normal(size=9))), float(rng.normal())
        one.update(forecast, y)
        two.update_quantiles(forecast.quantile(one.levels), y)
    assert one.get() == two.get()


@every
@pytest.mark.parametrize("y", [np.nan, np.inf, None, "warm", [1.0, 2.0]])
def test_a_bad_outcome_changes_nothing(make: Callable[[], Any], y: object) -> None:
    metric = make()
    good = Fixed(TENTHS)
    metric.update(good, 0.33)
    metric.update(good, 0.77)
    before = pickle.dumps(metric)
    with pytest.raises(ValueError, match=r"^expected .*, got "):
        metric.update(good, y)  # type: ignore[arg-type]
    assert pickle.dumps(metric) == before


@every
@pytest.mark.parametrize("bad", [np.full(9, np.nan), np.zeros(3), np.zeros((9, 9)), 1.0, ["a"] * 9])
def test_bad_quantiles_change_nothing(make: Callable[[], Any], bad: object) -> None:
    metric = make()
    metric.update(Fixed(TENTHS), 0.33)
    before = pickle.dumps(metric)
    with pytest.raises(ValueError, match=r"^expected .*, got "):
        metric.update_quantiles(bad, 0.5)  # type: ignore[arg-type]
    assert pickle.dumps(metric) == before


@every
def test_memory_is_constant_and_copies_are_independent(make: Callable[[], Any]) -> None:
    metric = make()
    forecast = Fixed(TENTHS)
    for _ in range(10):
        metric.update(forecast, 0.33)
    size, twin, value = len(pickle.dumps(metric)), copy.deepcopy(metric), metric.get()
    for _ in range(500):
        metric.update(forecast, 0.99)
    assert len(pickle.dumps(metric)) <= size + 16
    assert twin.get() == value


def test_a_forecast_may_know_its_own_crps() -> None:
    class Exact(Fixed):
        def crps(self, y: float) -> float:
            return 7.0 * y

    metric = metrics.MeanCRPS()
    metric.update(Exact(TENTHS), 3.0)
    assert metric.get() == 21.0


@pytest.mark.parametrize("levels", [[], [0.0, 0.5], [0.5, 1.0], [0.5, 0.4], [[0.5]], [np.nan], ["low"]])
def test_bad_levels(levels: object) -> None:
    with pytest.raises(ValueError, match=r"^expected .*, got "):
        metrics.QCE(levels)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.Coverage(1.0),
        lambda: metrics.RollingQCE(0),
        lambda: metrics.QCE(low=1, high=0),
        lambda: metrics.qce(np.zeros((3, 98)), np.zeros(3)),
        lambda: metrics.pinball(np.zeros((3, 99)), np.zeros(4)),
        lambda: metrics.crps_ensemble([], 0.0),
        lambda: metrics.crps_normal(0.0, -1.0, 0.0),
        lambda: metrics.crps_normal([0.0, 1.0], [1.0, 1.0, 1.0], 0.0),
    ],
)
def test_bad_arguments(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"^expected .*, got "):
        call()
