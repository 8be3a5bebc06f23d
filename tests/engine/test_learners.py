"""What is learnt before the guarantee has its say, and how the branch of equilibria is followed when it folds."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import orcast as oc
from orcast.engine.dense import axes

LEVELS = np.arange(1, 100) / 100


def around(a: Any, b: Any) -> Any:
    return np.abs((np.asarray(a) - b + 180.0) % 360.0 - 180.0)


@pytest.mark.parametrize(("bias", "said"), [(25.0, 20.0), (0.0, 4.0), (0.0, 60.0)], ids=["bias", "sharp", "wide"])
def test_bias_and_spread_are_corrected_on_a_circle(bias: float, said: float) -> None:
    rng = np.random.default_rng(1)
    recal = oc.Recalibrator(oc.Circle(360, cells=36))
    before, after, spread = [], [], []
    for t in range(400):
        truth = 360.0 * rng.random()
        expert = (truth + bias + rng.normal(0.0, 20.0)) % 360.0
        p = recal.predict(oc.Normal(expert, said))
        if t >= 200:
            before.append(around(expert, truth))
            after.append(around(p.mean(), truth))
            spread.append(p.std())
        recal.update(truth)
    assert np.mean(after) < (0.8 if bias else 1.05) * np.mean(before)
    assert 15.0 < np.mean(spread) < 30.0


def test_bias_is_corrected_on_each_side_of_a_box() -> None:
    rng = np.random.default_rng(2)
    space = oc.Box([(0, 10), (0, 100)], cells=[10, 8])
    recal = oc.Recalibrator(space)
    errors = []
    for t in range(250):
        centre = np.array([5.0 + np.sin(t / 9.0), 50.0])
        y = np.clip(centre + rng.normal(size=2) * [0.8, 8.0], [0, 0], [10, 100])
        p = recal.predict([oc.Normal(centre[0] + 1.0, 0.8), oc.Normal(centre[1] - 10.0, 8.0)])
        if t >= 120:
            errors.append(p.mean() - centre)
        recal.update(y)
    assert abs(np.mean(errors, axis=0)[0]) < 0.4
    assert abs(np.mean(errors, axis=0)[1]) < 4.0


@pytest.mark.parametrize("space", [oc.Circle(24, cells=12), oc.Box([(0, 1), (0, 5)], cells=[4, 5])], ids=str)
def test_moving_keeps_all_the_mass(space: Any) -> None:
    rng = np.random.default_rng(3)
    for axis in range(axes.axes_of(space)):
        edges = axes.edges_of(space, axis)
        for _ in range(20):
            table = axes.transfer(space, axis, edges.mean(), rng.normal(), 10 ** rng.uniform(-0.5, 0.9))
            assert table.min() >= 0.0
            assert table.sum(axis=1) == pytest.approx(1.0)
        assert axes.transfer(space, axis, edges.mean(), 0.0, 1.0) == pytest.approx(np.eye(edges.size - 1))


# --- branches that fold


@pytest.mark.parametrize("several", [False, True])
def test_rounding_does_not_decide_what_an_outcome_on_an_atom_teaches(several: bool) -> None:
    """Some outcomes are on the upper bound, as some of the forecast mass is; and the same, rounded otherwise."""
    rng = np.random.default_rng(4)
    mean = 95.0 + 4.0 * np.sin(np.arange(300) / 7.0)
    y = np.minimum(np.round(mean + 3.0 * rng.standard_normal(300), 1), 100.0)
    q = mean[:, None] + 4.0 * norm.ppf(LEVELS)
    rounded = q * (1.0 + 1e-15 * rng.standard_normal((300, 1)))
    result = []
    for given in (q, rounded):
        given = np.minimum(given, 100.0)
        recal = oc.Recalibrator(oc.Interval(0, 100))
        experts = {"one": given, "other": np.minimum(given + 1.0, 100.0)}
        forecasts = {"experts": experts} if several else {"forecasts": given}
        result.append(recal.run(**forecasts, outcomes=y, levels=LEVELS))
    assert (y == 100.0).mean() > 0.1
    np.testing.assert_allclose(result[0], result[1], rtol=0.0, atol=1e-6)
