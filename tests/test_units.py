"""Units: forecasts and outcomes in others, from 1e-90 to 1e100, give the same quantiles in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
ROUNDS = 80
SPACES = {
    "interval": lambda unit: oc.Interval(-10 * unit, 10 * unit),
    "half line": lambda unit: oc.HalfLine(-20 * unit),
    "upper half line": lambda unit: oc.HalfLine(high=20 * unit),
    "line": lambda unit: oc.Line(),
}


def run_rounds(
    name: str, unit: float, *, late: int = 0, groups: bool = False, expert: bool = True
) -> NDArray[np.float64]:
    """Quantiles of a stream in a unit, as multiples of it."""
    rng = np.random.default_rng(0)
    mean = 0.1 * np.cumsum(rng.normal(size=ROUNDS))
    y = np.clip(mean + 1.3 * rng.standard_t(4, size=ROUNDS), -9.0, 9.0)
    space = SPACES[name](unit)
    context = oc.by("side", values=[0, 1]) if groups else None
    forecaster: Any
    if expert:
        calibration = oc.QuantileCalibration(context=context) + oc.MomentMatching(2)
        forecaster = oc.Recalibrator(space, calibration + oc.NoRegret(oc.CRPS()))
    else:
        forecaster = oc.Forecaster(space, oc.QuantileCalibration(context=context))
    result = []
    for t in range(ROUNDS + late):
        if t < ROUNDS:
            x = {"side": t % 2} if groups else None
            p = forecaster.predict(oc.Normal(mean[t] * unit, unit) if expert else None, x=x, id=t)
            result.append(p.quantile(LEVELS) / unit)
        if t >= late:
            forecaster.update(y[t - late] * unit, id=t - late)
    return np.array(result)


@pytest.mark.parametrize("power", [-280, -100, -30, 30, 100, 324])
@pytest.mark.parametrize("name", SPACES)
def test_the_unit_changes_no_bit_of_the_quantiles(name: str, power: int) -> None:
    """An even power of two changes exponents alone, those of roots too: all else would be constants with a unit."""
    assert np.array_equal(run_rounds(name, 2.0**power), run_rounds(name, 1.0))


@pytest.mark.parametrize("power", [-280, -30, 30, 325])
@pytest.mark.parametrize("name", SPACES)
def test_unit_changes_groups_and_late_outcomes_by_rounding_alone(name: str, power: int) -> None:
    ours = run_rounds(name, 2.0**power, late=4, groups=True)
    np.testing.assert_allclose(ours, run_rounds(name, 1.0, late=4, groups=True), rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("late", [0, 4])
@pytest.mark.parametrize("name", ["half line", "upper half line", "line"])
def test_without_an_expert_the_outcomes_give_the_unit(name: str, late: int) -> None:
    """Before the first outcome nothing has a unit; the forecast is then around zero, with a width of about one.

    So an outcome far from one lies far outside, or in the middle, which the ledger remembers; nothing else does.
    """
    result = {
        p: run_rounds(name, 2.0**p, expert=False, late=late)[late + 1 :] for p in (-325, -200, -80, 0, 80, 200, 325)
    }
    for some in ((-325, -200, -80), (80, 200, 325)):
        for power in some:
            np.testing.assert_allclose(result[power], result[some[0]], rtol=0.0, atol=1e-9)
        # in a few rounds, in every unit, the promise needs quantiles far outside
        assert np.median(np.abs(result[some[0]] - result[0])) < 0.2
        assert np.abs(result[some[0]]).max() < 1000.0
