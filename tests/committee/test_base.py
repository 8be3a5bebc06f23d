"""The base forecast as a member: it keeps its weight where it is right, and alone it stays as it is."""

import numpy as np
from runs import SCORES, alone, loss, run


def test_a_correct_base_forecast_loses_little() -> None:
    rng = np.random.default_rng(0)
    base = np.cumsum(rng.normal(0, 1, 2000))[:, None] + SCORES
    y = base[:, 9] + rng.normal(0, 1, 2000)
    found = run(alone(), base, y)
    assert loss(found, y) < 1.0025 * loss(base, y)


def test_a_committee_of_the_base_forecast_changes_nothing() -> None:
    y = np.random.default_rng(0).normal(3, 1, 100)
    base = np.tile(SCORES, (100, 1))
    assert run(alone(corrects=False), base, y).tobytes() == base.tobytes()
