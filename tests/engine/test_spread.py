"""A fault of spread: from the ledger alone, after few outcomes, and for all series of a pool together."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from orcast.kernels.evidence import beyond_chance_arrays, learn_ledger_arrays
from orcast.kernels.pool_state import SPREAD_NUMBERS
from orcast.kernels.pooling import add_game
from scipy.stats import norm, poisson

import orcast as oc
from helpers import Vector
from orcast.kernels import spread

LEVELS = np.arange(1, 100) / 100
SCORES = norm.ppf(LEVELS)
# Constants of the kernels: the range of a spread, the largest standard errors, the largest ratio to sampling noise.
NARROWEST, WIDEST, MOST_ERRORS, MOST_BEYOND = 0.4, 3.0, 30.0, 1e3


def ledger_of(z: Vector) -> Vector:
    """The ledger of a standard normal forecast; every outcome is a block."""
    below = (z[:, None] < SCORES).astype(np.float64) - LEVELS
    found = np.zeros(2 * (LEVELS.size + 1))
    found[: LEVELS.size] = below.sum(axis=0)
    found[LEVELS.size] = np.square(below).sum()
    return found


def pooled(ledgers: list[Vector], count: float) -> tuple[Vector, float]:
    """What a pool of as many streams holds, and what it says."""
    found, usual = np.zeros(SPREAD_NUMBERS), 0.0
    for each in ledgers:
        usual = float(add_game(found, each, LEVELS, SCORES, count))
    return found, usual


# --- the ledger


@given(st.integers(0, 1000), st.floats(0.3, 3.0), st.floats(-2.0, 2.0))
def test_the_sum_of_squares_is_in_the_ledger(seed: int, width: float, shift: float) -> None:
    """Squares of scores that are cut to the levels on either side of the outcome."""
    z = shift + width * np.random.default_rng(seed).normal(size=40)
    total, variance, chance = spread.spread_excess_arrays(ledger_of(z), LEVELS, SCORES)
    left, right = np.append(SCORES[0], SCORES[:-1]), np.append(SCORES[1:], SCORES[-1])
    square = np.append(0.0, np.cumsum(SCORES * (right - left)))  # of an outcome between two levels, up to a constant
    mean = float(np.diff(np.concatenate(([0.0], LEVELS, [1.0]))) @ square)
    seen = square[np.searchsorted(SCORES, z, side="right")]
    assert total == pytest.approx(float((seen - mean).sum()), abs=1e-9)
    assert variance == pytest.approx(float(np.diff(np.concatenate(([0.0], LEVELS, [1.0]))) @ (square - mean) ** 2))
    # a square is nearly that of the score itself
    exact = np.square(np.clip(z, SCORES[0], SCORES[-1])) - spread_square(1.0)
    assert total == pytest.approx(float(exact.sum()), abs=0.02 * z.size + 2.0)
    assert chance > 0.0


def spread_square(b: float) -> float:
    """The mean of min(b |z|, most)^2, by quadrature."""
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    return float(np.square(np.minimum(b * np.abs(z), SCORES[-1])).mean())


@pytest.mark.parametrize("b", [0.45, 0.7, 1.0, 1.5, 2.5])
def test_the_spread_with_such_squares_is_found(b: float) -> None:
    found = spread.spread_with(spread_square(b) - spread_square(1.0), SCORES[-1])
    assert found == pytest.approx(b, rel=2e-3)
    assert spread.spread_with(0.0, SCORES[-1]) == 1.0
    assert spread.spread_with(1e9, SCORES[-1]) == WIDEST
    assert spread.spread_with(-1e9, SCORES[-1]) == NARROWEST


def test_an_expert_that_is_right_is_seldom_stretched() -> None:
    rng = np.random.default_rng(0)
    found = [spread.stretch_of_arrays(ledger_of(rng.normal(size=30)), LEVELS, SCORES, 30.0, 0.0) for _ in range(400)]
    assert np.abs(np.log(found)).mean() < 0.02
    assert np.mean(np.abs(np.log(found)) > 0.1) < 0.05


def test_an_expert_too_narrow_by_a_third_is_stretched_after_some_twenty_outcomes() -> None:
    rng = np.random.default_rng(0)
    found = [
        spread.stretch_of_arrays(ledger_of(1.5 * rng.normal(size=25)), LEVELS, SCORES, 25.0, 0.0) for _ in range(200)
    ]
    assert 1.25 < np.median(found) < 1.6


@pytest.mark.parametrize("mean", [0.5, 2.0])
def test_counts_of_a_calibrated_expert_are_not_read_as_too_wide(mean: float) -> None:
    """Ties of outcomes with atoms have a mean of zero in the ledger."""
    q, found = poisson.ppf(LEVELS, mean), []
    for seed in range(6):
        ledger = np.zeros(2 * (LEVELS.size + 1))
        for y in np.random.default_rng(seed).poisson(mean, 800).astype(np.float64):
            learn_ledger_arrays(ledger, q, LEVELS, 0.0, y)
        errors = spread.spread_errors_arrays(ledger, LEVELS, SCORES)
        found.append(
            (errors, beyond_chance_arrays(ledger), spread.stretch_of_arrays(ledger, LEVELS, SCORES, 400.0, 0.0))
        )
    errors, beyond, stretch = np.mean(found, axis=0).tolist()
    assert abs(errors) < 1.5
    assert beyond < 3.0
    assert stretch == pytest.approx(1.0, abs=0.01)


def test_a_long_block_does_not_run_away() -> None:
    """Outcomes one in each percent, in one block: its chance cancels, what is made of it does not explode."""
    ledger = np.zeros(2 * (LEVELS.size + 1))
    for y in norm.ppf((np.random.default_rng(0).permutation(100) + 0.5) / 100):
        learn_ledger_arrays(ledger, SCORES, LEVELS, 150.0, float(y))
    assert abs(spread.spread_errors_arrays(ledger, LEVELS, SCORES)) <= MOST_ERRORS
    assert beyond_chance_arrays(ledger) <= MOST_BEYOND


# --- pools


def test_streams_that_say_the_same_are_one() -> None:
    """Forty copies of one stream are no surer than it is; forty streams of their own are."""
    rng = np.random.default_rng(3)
    copies, others = [], []
    for _ in range(30):
        z = 1.3 * rng.normal(size=12)
        copies.append(pooled([ledger_of(z)] * 40, 12.0)[1] - pooled([ledger_of(z)], 12.0)[1])
        others.append(pooled([ledger_of(1.3 * rng.normal(size=12)) for _ in range(40)], 12.0)[1])
    np.testing.assert_allclose(copies, 0.0, atol=1e-9)
    assert np.min(others) > 0.3


def test_a_pool_of_experts_that_are_right_says_nothing() -> None:
    rng = np.random.default_rng(4)
    found = [pooled([ledger_of(rng.normal(size=12)) for _ in range(20)], 12.0)[1] for _ in range(100)]
    assert np.mean(np.abs(found)) < 0.03


def test_a_stream_that_leaves_takes_all_of_it_along() -> None:
    rng = np.random.default_rng(5)
    kept, more = ledger_of(rng.normal(size=9)), ledger_of(2.0 * rng.normal(size=9))
    before, _ = pooled([kept], 9.0)
    both, _ = pooled([kept, more], 9.0)
    spread.add_spread_arrays(both, more, LEVELS, SCORES, 9.0, -1.0)
    np.testing.assert_allclose(both, before, atol=1e-9)


def narrow_panel(seed: int, width: float, series: int = 30, weeks: int = 40) -> pd.DataFrame:
    """Normal outcomes, half of whose variance is common; forecasts are as much too narrow or wide for all series."""
    rng = np.random.default_rng(seed)
    y = np.sqrt(0.5) * (rng.normal(size=weeks) + rng.normal(size=(series, weeks)))
    rows = [
        {"unique_id": f"s{s:02d}", "ds": t, "y": 50.0 + y[s, t], "M_mean": 50.0, "M_std": width}
        for s in range(series)
        for t in range(0 if s else weeks // 2, weeks)  # the first begins late
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("width", "least", "most"), [(2 / 3, 0.84, 0.92), (1.5, 0.89, 0.955), (1.0, 0.88, 0.93)])
def test_a_pool_widens_what_is_too_narrow(width: float, least: float, most: float) -> None:
    kept, first = [], []
    for seed in range(3):
        frame = narrow_panel(seed, width)
        out = oc.recalibrate(frame, levels=[0.05, 0.95])
        low, high = (out[f"M_orcast_q{level}"] for level in (0.05, 0.95))
        inside = (low <= frame["y"]) & (frame["y"] <= high)
        kept.append(inside[frame["ds"] >= 10].mean())
        first.append((high - low)[(frame["unique_id"] == "s00")].iloc[0] / (2 * norm.ppf(0.95)))
    assert least < np.mean(kept) < most
    # one that begins late begins with what the others showed, as far as it is clear by then
    assert abs(np.log(np.mean(first))) < 0.65 * abs(np.log(width)) + 0.03


def test_a_service_shares_spreads_too() -> None:
    rng = np.random.default_rng(0)
    pool = oc.Pool()
    games = [oc.Recalibrator(oc.Line(), pool=pool) for _ in range(10)]
    for _ in range(30):
        rounds = [(game, game.predict(oc.Normal(0.0, 2 / 3))) for game in games]
        for game, _ in rounds:
            game.update(float(rng.normal()))
    late = oc.Recalibrator(oc.Line(), pool=pool).predict(oc.Normal(0.0, 2 / 3))
    assert late.quantile(0.95) - late.quantile(0.05) == pytest.approx(2 * norm.ppf(0.95), rel=0.15)
