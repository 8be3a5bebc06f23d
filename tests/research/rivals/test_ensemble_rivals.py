"""EMOS and IDR against general solvers and fits threshold by threshold, with late outcomes."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from rival_cases import PERCENTS, Vector, forecast_all
from scipy.optimize import minimize
from scipy.stats import norm
from scoringrules import crps_normal

import orcast as oc
from helpers import units
from research.rivals import EMOS, IDR
from research.rivals.ensembles import isotonic_distributions


def weather(count: int, seed: int) -> tuple[list[oc.Ensemble], Vector]:
    """Ensembles that are too low, too narrow, and wider where the outcome is less certain."""
    rng = np.random.default_rng(seed)
    centre, spread = rng.uniform(30, 70, size=count), rng.uniform(0.5, 3, size=count)
    members = (centre - 3)[:, None] + 0.7 * spread[:, None] * rng.normal(size=(count, 30))
    return [oc.Ensemble(row) for row in members], np.clip(rng.normal(centre, 1.5 * spread), 0, 100)


# --- EMOS ---


def crps_of(parameters: Vector, mean: Vector, variance: Vector, y: Vector) -> float:
    """Mean CRPS by the formula of the library; c and d as squares, as in the paper."""
    a, b, c, d = parameters
    s = np.sqrt(c**2 + d**2 * variance)
    return float(np.mean(crps_normal(y, a + b * mean, s)))


@pytest.mark.parametrize("late", [0, 4])
def test_emos_against_a_general_solver(late: int) -> None:
    experts, y = weather(90, 1)
    emos = EMOS(0, 100, window=60, every=1)
    issued = forecast_all(emos, experts, y, late=late)
    stop = 90 - late
    past = slice(stop - 60, stop)
    mean = np.array([e.members.mean() for e in experts])[past]
    variance = np.array([e.members.var() for e in experts])[past]
    best = minimize(
        crps_of,
        [3.0, 1.0, 1.0, 1.0],
        args=(mean, variance, y[past]),
        method="Nelder-Mead",
        options={"maxiter": 4000, "xatol": 1e-7, "fatol": 1e-10},
    )
    a, b, c, d = emos.parameters
    found = crps_of(np.array([a, b, c**0.5, d**0.5]), mean, variance, y[past])
    assert found <= best.fun + 1e-6
    # what is issued next is N(a + b mean, c + d variance)
    p = emos.predict(experts[0])
    m, v = float(experts[0].members.mean()), float(experts[0].members.var())
    expected = norm(a + b * m, (c + d * v) ** 0.5).ppf(PERCENTS)
    np.testing.assert_allclose(p.quantile(PERCENTS), expected, atol=1e-9)
    np.testing.assert_allclose(issued[:20], [e.quantile(PERCENTS) for e in experts[:20]], atol=1e-9)


# --- IDR ---


def slow_idr(x: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
    """For each threshold the decreasing fit: the least over starts of the largest over ends of means between them."""
    places, thresholds = np.unique(x), np.unique(y)
    table = np.empty((places.size, thresholds.size))
    for j, z in enumerate(thresholds):
        for k in range(places.size):
            table[k, j] = min(
                max(float(np.mean(y[(x >= places[a]) & (x <= places[b])] <= z)) for b in range(k, places.size))
                for a in range(k + 1)
            )
    return places, thresholds, table


@given(st.lists(st.tuples(units, units), min_size=1, max_size=14))
def test_idr_against_its_definition(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    _, thresholds, expected = slow_idr(x, y)
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    found, table = isotonic_distributions(places, counts, y)
    np.testing.assert_array_equal(found, thresholds)
    np.testing.assert_allclose(table, expected, atol=1e-12)


@pytest.mark.parametrize("late", [0, 5])
def test_idr_issues_the_quantiles_of_its_fit(late: int) -> None:
    experts, y = weather(40, 7)
    idr = IDR(0, 100, window=25, every=1)
    forecast_all(idr, experts, y, late=late)
    mean = np.array([e.members.mean() for e in experts])
    stop = 40 - late
    places, thresholds, table = slow_idr(mean[stop - 25 : stop], y[stop - 25 : stop])
    levels = PERCENTS[PERCENTS * 25 % 1 > 1e-6]  # beside the jumps
    middle = 0.5 * (places[10] + places[11])
    for at, row in (
        (places[7], table[7]),
        (middle, 0.5 * (table[10] + table[11])),
        (places[0] - 1, table[0]),
        (places[-1] + 1, table[-1]),
    ):
        found = idr.predict(oc.Normal(at, 1)).quantile(levels)
        expected = [thresholds[np.flatnonzero(row >= a - 1e-9)[0]] for a in levels]
        np.testing.assert_allclose(found, expected, atol=1e-9)
