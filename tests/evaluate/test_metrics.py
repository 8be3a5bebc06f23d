"""Metrics against slow obvious versions and scoringrules."""

from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.stats import norm

from orcast.evaluate import metrics

Vector = NDArray[np.float64]
TENTHS = np.arange(1, 10) / 10

# Small integers tie often, with the ends of [0, 8] too; the fractions do not.
values = st.integers(0, 8).map(float) | st.floats(0.0, 8.0, allow_subnormal=False)


# Tenths fall on the edges of ten bins; the fractions do not.
probabilities = st.integers(0, 10).map(lambda i: i / 10) | st.floats(0.0, 1.0)
events = st.lists(st.tuples(probabilities, st.integers(0, 1)), min_size=1, max_size=40)


@st.composite
def rounds(draw: st.DrawFn, most: int = 30) -> tuple[Vector, Vector]:
    """Quantiles at nine levels and outcomes on [0, 8]."""
    count = draw(st.integers(1, most))
    q = np.sort(draw(hnp.arrays(np.float64, (count, TENTHS.size), elements=values)), axis=1)
    return q, draw(hnp.arrays(np.float64, count, elements=values))


# --- against slow, obvious versions ---


@given(rounds(), st.integers(1, 10))
def test_qce_with_a_window_is_that_of_the_worst_window(data: tuple[Vector, Vector], window: int) -> None:
    q, y = data
    windows = [slice(k, k + window) for k in range(y.size - window + 1)]
    slow = max((metrics.qce(q[w], y[w], TENTHS, low=0, high=8) for w in windows), default=np.nan)
    shares = metrics.fair_indicators(q, y, TENTHS, low=0, high=8).mean(axis=0)
    assert metrics.qce(q, y, TENTHS, low=0, high=8) == pytest.approx(((shares - TENTHS) ** 2).sum(), abs=1e-12)
    found = metrics.qce(q, y, TENTHS, window=window, low=0, high=8)
    assert found == pytest.approx(slow, abs=1e-12, nan_ok=True)


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


# --- against scoringrules ---


def test_scores_agree_with_scoringrules() -> None:
    import scoringrules  # compiles for seconds, in one process only

    rng = np.random.default_rng(1)
    y, mu, sd = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.1, 3, size=50)
    q = norm.ppf(metrics.LEVELS, mu[:, None], sd[:, None])
    each = scoringrules.quantile_score(y[:, None], q, metrics.LEVELS)
    np.testing.assert_allclose(metrics.pinball(q, y), np.mean(each, axis=1))
    np.testing.assert_allclose(2.0 * metrics.pinball(q, y), scoringrules.crps_quantile(y, q, metrics.LEVELS), rtol=1e-6)


# --- probabilities


def slow_ece(said: list[tuple[float, int]], bins: int) -> float:
    total = 0.0
    for b in range(bins):
        inside = [(p, y) for p, y in said if b == min(int(p * bins), bins - 1)]
        if inside:
            gap = np.mean([y for _, y in inside]) - np.mean([p for p, _ in inside])
            total += len(inside) / len(said) * abs(gap)
    return total


@given(events, st.integers(1, 20))
def test_ece(said: list[tuple[float, int]], bins: int) -> None:
    p, y = np.array(said).T
    assert metrics.ece(p, y, bins) == pytest.approx(slow_ece(said, bins), abs=1e-12)


@given(events)
def test_brier(said: list[tuple[float, int]]) -> None:
    import scoringrules

    p, y = np.array(said).T
    assert metrics.brier(p, y) == pytest.approx(scoringrules.brier_score(y, p), abs=1e-12)


# --- bad arguments


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.qce(np.zeros((3, 98)), np.zeros(3)),
        lambda: metrics.qce(np.zeros((3, 99)), np.zeros(3), low=1, high=0),
        lambda: metrics.qce(np.zeros((3, 99)), np.zeros(3), window=0),
        *(
            lambda a=a: metrics.qce(np.zeros((1, len(a))), [0.0], a)
            for a in ([], [0.0, 0.5], [0.5, 0.4], [np.nan], ["a"])
        ),
        *(lambda p=p: metrics.ece([p], [1]) for p in (1.5, np.nan, "a")),
        lambda: metrics.brier([0.5, 0.5], [1]),
        lambda: metrics.ece(0.5, 1),
        lambda: metrics.ece([0.5], [2]),
        lambda: metrics.pinball(np.zeros((3, 99)), np.zeros(4)),
        lambda: metrics.pinball(np.zeros((1, 99)), [np.nan]),
        lambda: metrics.pinball(np.zeros((1, 99)), ["warm"]),
        *(lambda bins=bins: metrics.ece([0.5], [1], bins) for bins in (0, 2.5, True, "ten")),
        lambda: metrics.brier([[0.5, 0.5]], [1]),
    ],
)
def test_bad_arguments(call: Callable[[], object]) -> None:
    assert np.isnan([metrics.qce(np.empty((0, 9)), [], TENTHS), metrics.ece([], [])]).all()
    with pytest.raises((TypeError, ValueError), match=r"^expected .*, got "):
        call()
