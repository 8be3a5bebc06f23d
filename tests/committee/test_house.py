"""The forecaster from outcomes alone: a daily season 24 steps ahead under a bad base forecast."""

import numpy as np
from runs import SCORES, alone, loss, run

from orcast.committee.state import SERIES


def test_a_bad_base_forecast_is_replaced_24_steps_ahead() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(1500)
    noise = np.zeros(1500)
    for s in range(1, 1500):
        noise[s] = 0.9 * noise[s - 1] + rng.normal()
    y = 100.0 + 20.0 * np.sin(2 * np.pi * t / 24) + noise
    base = 100.0 + np.tile(15.0 * SCORES, (1500, 1))
    committee = alone(names=("base", "house"))
    found = run(committee, base, y, late=23)
    assert committee.series_rows[0, SERIES.index("short_season")] == 24.0
    yesterday = np.roll(y, 24)
    errors = np.quantile((y - yesterday)[24:], np.arange(1, 20) / 20.0)
    best = loss(yesterday[500:, None] + errors, y[500:])
    assert loss(base[500:], y[500:]) > 3.0 * best
    assert loss(found[500:], y[500:]) < 1.0 * best
