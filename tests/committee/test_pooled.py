"""The regression over a pool: a fault that many short series have in common."""

import numpy as np
from runs import SCORES, loss, run_panel


def test_a_common_fault_of_many_short_series_is_corrected() -> None:
    """The base forecasts are biased, and follow the last outcome too far: 40 series of 30 outcomes."""
    rng = np.random.default_rng(0)
    count, times = 40, 30
    y = 50.0 + 5.0 * rng.normal(size=(times, count))
    before = np.vstack([y[:1], y[:-1]])
    base = (51.0 + 0.8 * (before - 50.0))[:, :, None] + 5.0 * SCORES
    streams = [(s, 1) for s in range(count)]
    together, _ = run_panel(streams, base, y)
    apart, _ = run_panel(streams, base, y, pooled=False)
    without, _ = run_panel(streams, base, y, names=("base", "correction", "house"))
    late = slice(10, None)
    losses = [loss(q[late], y[late]) / loss(base[late], y[late]) for q in (together, without, apart)]
    assert losses[0] < 0.90
    assert losses[1] > losses[0] + 0.02
    assert losses[2] > losses[1] + 0.02
