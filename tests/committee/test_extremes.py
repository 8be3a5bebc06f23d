"""Numbers of any size: quantiles stay finite, sorted and within the bounds."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from runs import LEVELS, SCORES, Array, alone, loss, run, run_panel

ROUNDS = 60
NOISE = np.random.default_rng(0).normal(size=ROUNDS)
SIZES = (0.0, 1.0, -1.0, 1e-300, 1e-150, 1e-9, 1e9, 1e100, -1e100, 1e150, 3.0, 5e-324)


def check(found: Array, low: float = -np.inf, high: float = np.inf) -> None:
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=-1) >= 0.0).all()
    assert found.min() >= low
    assert found.max() <= high


@pytest.mark.parametrize("low", [-np.inf, 0.0])
@pytest.mark.parametrize(
    ("middle", "spread", "outcome"),
    [
        (0.0, 1.0, 1e100),
        (0.0, 1.0, 1e-300),
        (1e100, 1e90, 1e100),
        (1e100, 1e-300, 1.0),
        (1e-300, 1e-300, 1e-300),
        (0.0, 0.0, 1e100),
        (5.0, 0.0, 6.0),
        (0.0, 1e100, 0.0),
        (0.0, 0.0, 1e-160),
    ],
)
def test_extreme_numbers(middle: float, spread: float, outcome: float, low: float) -> None:
    base = np.maximum(np.tile(middle + spread * SCORES, (ROUNDS, 1)), low)
    for y in (np.full(ROUNDS, outcome), outcome * np.abs(NOISE), np.where(NOISE > 1.0, outcome, middle)):
        check(run(alone(low=low), base, np.maximum(y, low), late=2), low)


@pytest.mark.parametrize("low", [-np.inf, 0.0])
@pytest.mark.parametrize("value", [0.0, 7.0, 1e100, 1e-200])
def test_outcomes_equal_to_a_degenerate_base_forecast(value: float, low: float) -> None:
    """It stays as it is; the smallest spread is 1e-140."""
    base = np.full((300, len(LEVELS)), value)
    found = run(alone(low=low), base, base[:, 0])
    check(found, low)
    np.testing.assert_allclose(found, base, rtol=1e-8, atol=1e-140)


@pytest.mark.parametrize("experts", [1, 2])
@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e100])
@pytest.mark.parametrize("when", [10, 100])
def test_one_far_outcome_is_soon_forgotten(when: int, outlier: float, experts: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    base = np.stack([np.tile(SCORES, (300, 1)), 3.0 * np.sin(np.arange(300))[:, None] + SCORES], axis=1)[:, :experts]
    broken = np.where(np.arange(300) == when, outlier, y)
    after = slice(when + 10, None)
    with_it, without = run(alone(experts), base, broken)[after], run(alone(experts), base, y)[after]
    assert loss(with_it, y[after]) < 1.01 * loss(without, y[after])


def test_a_base_forecast_without_spread_is_corrected_though_it_was_right_at_first() -> None:
    """20 dry days, then rain: the forecast is always 0."""
    y = np.where(np.arange(300) < 20, 0.0, np.random.default_rng(0).gamma(2.0, 3.0, 300))
    base = np.zeros((300, len(LEVELS)))
    found = run(alone(low=0.0), base, y)
    assert loss(found[50:], y[50:]) < 0.5 * loss(base[50:], y[50:])


def test_atoms_at_zero() -> None:
    """Rain on 4 of 10 days: the quantiles below the share of dry days stay at 0."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1500) < 0.6, 0.0, rng.gamma(2.0, 3.0, 1500))
    base = np.tile(np.quantile(y, LEVELS), (1500, 1))
    found = run(alone(low=0.0), base, y)
    check(found, 0.0)
    assert np.median(found[:, LEVELS < 0.5]) == 0.0
    share = (y[500:, None] <= found[500:]).mean(axis=0)
    assert np.abs(share - LEVELS)[LEVELS > 0.62].max() < 0.03


def test_values_at_both_bounds() -> None:
    y = np.where(NOISE > 0.0, 1.0, 0.0)
    for low in (0.0, -1.0):
        base = np.clip(np.tile(0.5 + SCORES, (ROUNDS, 1)), low, 1.0)
        check(run(alone(low=low, high=1.0), base, y), low, 1.0)


values = st.sampled_from(SIZES) | st.floats(-1e100, 1e100) | st.floats(-3, 3)


@given(st.lists(st.tuples(values, values, values), min_size=3, max_size=25), st.booleans(), st.integers(0, 3))
def test_any_numbers(rounds: list[tuple[float, float, float]], root: bool, late: int) -> None:
    low = 0.0 if root else -np.inf
    base = np.array([np.maximum(np.sort(m + abs(s) * SCORES), low) for m, s, _ in rounds])
    y = np.maximum([y for _, _, y in rounds], low)
    check(run(alone(low=low), base, y, late), low)
    both = np.stack([base, np.roll(base, 1, axis=0)], axis=1)
    check(run(alone(2, low=low), both, y, late), low)
    streams = [(0, 1), (1, 1), (1, 2)]
    found, _ = run_panel(streams, np.stack([base] * 3, axis=1), np.stack([y, y[::-1]], axis=1), low)
    check(found, low)


@pytest.mark.parametrize("count", [1, 0])
def test_a_committee_needs_two_levels(count: int) -> None:
    with pytest.raises(ValueError, match=f"expected at least 2 levels, got {count}"):
        alone(levels=LEVELS[:count])
    pair: Any = np.array([0.1, 0.9])
    check(run(alone(levels=pair), np.tile([-1.0, 1.0], (ROUNDS, 1)), 3.0 * NOISE))
