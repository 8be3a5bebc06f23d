"""ACI, DtACI and calibrated regression against slow twins, by hand and under attack."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from rival_cases import PERCENTS, Vector, forecast_all
from scipy.stats import norm

import orcast as oc
from helpers import units
from research.rivals import ACI, CalibratedRegression, DtACI
from research.rivals.base import Quantity

UNIFORM = oc.Quantiles(PERCENTS, PERCENTS)


def slow_isotonic(pits: list[float], levels: Vector) -> Vector:
    """Frequencies with the two ends, which increase already, and the inverse by its definition."""
    n = len(pits)
    x = np.array([0.0, *sorted(pits), 1.0])
    frequency = np.array([0.0, *(np.arange(1, n + 1) / (n + 1)), 1.0])
    found = []
    for a in levels:
        k = int(np.flatnonzero(frequency >= a)[0])
        share = (a - frequency[k - 1]) / (frequency[k] - frequency[k - 1])
        found.append(x[k - 1] + share * (x[k] - x[k - 1]))
    return np.array(found)


@given(st.lists(units, min_size=1, max_size=40), st.none() | st.integers(1, 10))
def test_isotonic_against_its_slow_twin(pits: list[float], window: int | None) -> None:
    isotonic, reader = CalibratedRegression(0, 1, window=window), Quantity(0, 1)
    row, seen = reader.read(UNIFORM), []
    for y in pits:
        isotonic.predict(UNIFORM)
        isotonic.update(y)
        seen.append(reader.pit(row, y))
    inverse = slow_isotonic(seen if window is None else seen[-window:], PERCENTS)
    np.testing.assert_allclose(isotonic.inverse(PERCENTS), inverse, atol=1e-12)
    np.testing.assert_allclose(isotonic.predict(UNIFORM).quantile(PERCENTS), reader.quantile(row, inverse), atol=1e-9)


def test_aci_issues_the_bounds_beyond_levels_zero_and_one() -> None:
    aci, expert = ACI(0, 10, levels=[0.4, 0.6], rate=0.9), oc.Normal(5, 1)
    forecast_all(aci, [expert], [2])
    assert aci.alpha == pytest.approx([-0.14, 0.24])
    assert aci.predict(expert).quantile([0.4, 0.6]) == pytest.approx([0.0, norm(5, 1).ppf(0.24)])
    aci.update(9)
    forecast_all(aci, [expert], [9])
    assert aci.alpha == pytest.approx([0.58, 1.32])
    assert aci.predict(expert).quantile(0.6) == 10.0


def slow_dtaci(a: float, rates: list[float], horizon: int, pits: list[float], late: int) -> float:
    """DtACI of one level in plain arithmetic; the loss of a round is that of its own alphas."""
    k = len(rates)
    alphas, weights = [a] * k, [1.0] * k
    squared = (a**2 * (1 - a) ** 3 + a**3 * (1 - a) ** 2) / 3  # the mean squared pinball loss of a uniform PIT
    eta = math.sqrt((math.log(k * horizon) + 2) / (horizon * squared))
    sigma = 1 / (2 * horizon)
    past: list[list[float]] = []
    for t in range(len(pits)):
        past.append(alphas)
        if t < late:
            continue
        pit, then = pits[t - late], past[t - late]
        losses = [a * (pit - alpha) - min(0.0, pit - alpha) for alpha in then]
        bar = [w * math.exp(-eta * loss) for w, loss in zip(weights, losses, strict=True)]
        weights = [(1 - sigma) * b / sum(bar) + sigma / k for b in bar]
        alphas = [x + rate * (a - (pit <= old)) for x, rate, old in zip(alphas, rates, then, strict=True)]
    return sum(w * alpha for w, alpha in zip(weights, alphas, strict=True)) / sum(weights)


@pytest.mark.parametrize("late", [0, 4])
@pytest.mark.parametrize("rates", [[0.01, 0.05, 0.2], [0.03]], ids=["DtACI", "ACI"])
def test_dtaci_and_aci_against_their_slow_twin(rates: list[float], late: int) -> None:
    pits = np.random.default_rng(2).beta(2, 4, size=200)
    outcomes, experts = np.clip(norm(0.5, 0.1).ppf(pits), 0, 1), [oc.Normal(0.5, 0.1)] * 200
    slow = [slow_dtaci(a, rates, 50, pits.tolist(), late) for a in (0.05, 0.4, 0.9)]
    mix = DtACI(0, 1, levels=[0.05, 0.4, 0.9], rates=tuple(rates), horizon=50)
    forecast_all(mix, experts, outcomes, late=late)
    np.testing.assert_allclose(mix.alpha, slow, atol=1e-9)
    if len(rates) == 1:
        aci = ACI(0, 1, levels=[0.05, 0.4, 0.9], rate=rates[0])
        forecast_all(aci, experts, outcomes, late=late)
        np.testing.assert_allclose(aci.alpha, slow, atol=1e-9)
