"""The regression on the base forecast's errors: bias, autocorrelated errors and a wrong spread."""

import numpy as np
from runs import LEVELS, SCORES, alone, loss, run

MEMBERS = ("base", "correction")


def test_bias_and_autocorrelated_errors_are_corrected() -> None:
    rng = np.random.default_rng(0)
    error = np.zeros(1500)
    for t in range(1, 1500):
        error[t] = 0.8 * error[t - 1] + rng.normal()
    base = np.cumsum(rng.normal(0, 2, 1500))[:, None] + 2.0 * SCORES
    y = base[:, 9] + 1.0 + error
    found = run(alone(names=MEMBERS), base, y)
    # who knows the bias and the autocorrelation
    best = base[:, 9:10] + 1.0 + 0.8 * np.roll(error, 1)[:, None] + SCORES
    assert loss(best[300:], y[300:]) < 0.65 * loss(base[300:], y[300:])
    assert loss(found[300:], y[300:]) < 1.03 * loss(best[300:], y[300:])


def test_spread_that_follows_recent_errors_is_corrected() -> None:
    rng = np.random.default_rng(1)
    size = np.exp(np.sin(np.arange(2000) / 40.0))
    base = np.tile(SCORES, (2000, 1))
    y = size * rng.normal(0, 1, 2000)
    found = run(alone(names=MEMBERS), base, y)
    best = size[:, None] * SCORES
    assert loss(found[500:], y[500:]) < 1.02 * loss(best[500:], y[500:])
    assert loss(best[500:], y[500:]) < 0.92 * loss(base[500:], y[500:])
    covered = (y[500:, None] <= found[500:]).mean(axis=0)
    assert np.abs(covered - LEVELS).max() < 0.04
