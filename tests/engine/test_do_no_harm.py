"""A good forecaster is not made worse, and a bad one is made better soon: what the corrected expert may and must do."""

import numpy as np
import pytest
from scipy.stats import norm

import orcast as oc
from helpers import Vector, engine_of, in_batches
from orcast.committee import state as committee

LEVELS = np.arange(1, 100) / 100


def expert_crps(mean: Vector, spread: Vector | float, y: Vector) -> Vector:
    """The CRPS of normals."""
    z = (y - mean) / spread
    value: Vector = spread * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    return value


def result_crps(recal: oc.Recalibrator, mean: Vector, spread: Vector | float, y: Vector, late: int = 0) -> Vector:
    """The CRPS of what a game plays around normals; each outcome comes `late` rounds after the next forecast."""
    found = np.empty(y.size)
    for t, (m, s) in enumerate(zip(mean, np.broadcast_to(spread, y.shape), strict=True)):
        found[t] = recal.predict(oc.Normal(m, s), id=t, reuse=True).crps(y[t])
        if t >= late:
            recal.update(y[t - late], id=t - late)
    return found


# --- experts that are right


@pytest.mark.parametrize("space", [oc.Line(), oc.Interval(0, 100)], ids=str)
def test_a_perfect_expert_loses_less_than_a_hundredth(space: oc.Line | oc.Interval) -> None:
    time = np.arange(500)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mean = 50.0 + 5.0 * np.sin(time / 9) + rng.normal(size=time.size)
        spread = 2.0 * np.exp(0.3 * np.sin(time / 13))
        y = mean + spread * rng.normal(size=time.size)
        result = result_crps(oc.Recalibrator(space), mean, spread, y)
        assert result.mean() < 1.01 * expert_crps(mean, spread, y).mean()


def test_errors_that_overlap_are_not_taken_for_a_bias() -> None:
    """Four steps ahead, on a random walk: errors of neighbouring rounds are alike, though the expert is perfect."""
    horizon, rounds, worse = 4, 500, []
    for seed in range(6):
        walk = np.random.default_rng(seed).normal(size=rounds + horizon).cumsum()
        mean, y = walk[:rounds], walk[horizon:]
        result = result_crps(oc.Recalibrator(oc.Line()), mean, np.sqrt(horizon), y, late=horizon - 1)
        worse.append(result.mean() / expert_crps(mean, np.sqrt(horizon), y).mean())
    assert np.mean(worse) < 1.015


@pytest.mark.parametrize("bias", [0.0, 3.0])
def test_late_outcomes_do_not_overshoot(bias: float) -> None:
    """Batches of fifty, known when the batch after the next begins: an error is not corrected once for each batch."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        mean = 50.0 + 5.0 * np.sin(np.arange(800) / 9)
        y = mean + bias + 2.0 * rng.normal(size=mean.size)
        experts = [oc.Normal(m, 2.0) for m in mean]
        rows = in_batches(oc.Recalibrator(oc.Interval(0, 100)), experts, y, LEVELS, batch=50, late=1)
        shift = rows[:, LEVELS.size // 2] - mean
        assert shift[:100] == pytest.approx(0.0)
        assert (shift > -1.0).all()
        # a spread of 2 around the bias, learnt from fifty outcomes or fewer
        assert (shift < bias + (2.5 if bias else 1.0)).all()
        # about ten batches are few separate observations
        assert abs(shift[400:].mean() - bias) < 0.8


def test_an_expert_that_foresees_jumps_is_not_pulled_back() -> None:
    """Its errors are autocorrelated, so that it pays to follow them, but those before a jump say nothing after it."""
    rounds = 1300
    jumps = np.arange(25, rounds, 25)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        mean = 50.0 + 30.0 * (np.arange(rounds) // 25 % 2) + 0.3 * rng.normal(size=rounds).cumsum()
        error = np.zeros(rounds)
        for t in range(1, rounds):
            error[t] = 0.7 * error[t - 1] + rng.normal()
        y = mean + 1.5 * error
        result, own = result_crps(oc.Recalibrator(oc.Line()), mean, 2.0, y), expert_crps(mean, 2.0, y)
        later = jumps[jumps > 1000]
        assert result[later].mean() <= 1.2 * own[later].mean()
        assert result[1000:].mean() < 0.9 * own[1000:].mean()


# --- experts that are wrong


def test_an_interval_too_narrow_by_a_third_is_corrected_within_a_hundred_outcomes() -> None:
    widths, inside = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        mean = 50.0 + rng.normal(size=300)
        y = mean + 3.0 * rng.normal(size=mean.size)
        recal = oc.Recalibrator(oc.Line())
        for t in range(mean.size):
            low, high = recal.predict(oc.Normal(mean[t], 2.0)).quantile([0.05, 0.95])
            if t >= 100:
                inside.append(low <= y[t] <= high)
                widths.append((high - low) / (2.0 * norm.ppf(0.95) * 3.0))
            recal.update(y[t])
    assert 0.88 < np.mean(inside) < 0.92
    assert 0.9 < np.mean(widths) < 1.15


@pytest.mark.parametrize("season", [24, 7])
def test_a_season_is_found_and_used(season: int) -> None:
    rng = np.random.default_rng(0)
    seasonal = 4.0 * np.sin(2.0 * np.pi * np.arange(600) / season) ** 3
    y = 50.0 + seasonal + rng.normal(size=seasonal.size)
    recal = oc.Recalibrator(oc.Line())
    mean = np.full(y.size, 50.0)
    result_crps(recal, mean[:300], 3.0, y[:300])
    assert engine_of(recal).group.series_rows[0, committee.SERIES.index("short_season")] == season
    result = result_crps(recal, mean[300:], 3.0, y[300:])
    assert result.mean() < 0.7 * expert_crps(mean[300:], 3.0, y[300:]).mean()
