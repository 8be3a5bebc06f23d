"""EMOS and IDR against general solvers and fits threshold by threshold, with late outcomes."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from rival_cases import PERCENTS, Vector, forecast_all
from scipy.optimize import check_grad, minimize
from scipy.stats import norm

import orcast as oc
from helpers import units
from research.rivals import EMOS, IDR
from research.rivals.ensembles import isotonic_distributions, least_crps, mean_crps


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
    return float(np.mean([oc.metrics.crps_normal(a + b * m, r, v) for m, r, v in zip(mean, s, y, strict=True)]))


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


@given(st.integers(0, 10_000))
def test_gradient_of_the_crps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=25), rng.exponential(size=25), rng.normal(size=25)
    at = np.array([rng.normal(), rng.normal(), rng.exponential() + 0.1, rng.exponential()])
    assert check_grad(lambda w: mean_crps(w, *data)[0], lambda w: mean_crps(w, *data)[1], at) < 1e-5
    assert mean_crps(at, *data)[0] == pytest.approx(crps_of(np.array([*at[:2], *np.sqrt(at[2:])]), *data))


def test_curvature_is_the_expected_one() -> None:
    rng = np.random.default_rng(2)
    mean, variance = rng.normal(size=200_000), rng.exponential(size=200_000)
    at = np.array([0.3, 0.8, 0.5, 1.2])
    y = rng.normal(0.3 + 0.8 * mean, np.sqrt(0.5 + 1.2 * variance))
    step = 0.05 * np.eye(4)
    rows = [(mean_crps(at + e, mean, variance, y)[1] - mean_crps(at - e, mean, variance, y)[1]) / 0.1 for e in step]
    p, q, r, u, v, w = mean_crps(at, mean, variance, y)[2]
    expected = np.array([[p, q, 0, 0], [q, r, 0, 0], [0, 0, u, v], [0, 0, v, w]])
    np.testing.assert_allclose(rows, expected, atol=0.01)


@given(st.integers(0, 10_000))
def test_no_other_start_is_better(seed: int) -> None:
    """Also where c or d is at its least value, and where b or d is not identified."""
    rng = np.random.default_rng(seed)
    flat = rng.random(2) < 0.3
    mean = np.zeros(30) if flat[0] else rng.normal(size=30)
    variance = np.zeros(30) if flat[1] else rng.exponential(size=30) * rng.choice([1, 3])
    y = 0.7 * mean + rng.normal(size=30) * np.sqrt(rng.choice([0.0, 1.0]) + variance) + 0.01 * rng.normal(size=30)
    losses = [
        mean_crps(np.array(least_crps(start, mean, variance, y)), mean, variance, y)[0]
        for start in ((0.0, 1.0, 0.5, 0.5), (1.0, 0.0, 1e-8, 2.0), (0.0, 0.5, 2.0, 0.0))
    ]
    assert max(losses) - min(losses) < 1e-4 * max(losses)


def test_emos_is_refitted_every_seven_outcomes() -> None:
    experts, y = weather(60, 4)
    emos, seen = EMOS(0, 100, every=7), []
    for expert, outcome in zip(experts, y, strict=True):
        emos.predict(expert)
        emos.update(outcome)
        seen.append(emos.parameters)
    changes = [t + 1 for t in range(60) if t == 0 or seen[t] != seen[t - 1]]
    assert changes[1:] == [20, 27, 34, 41, 48, 55]


def test_mean_and_variance_are_those_of_all_members() -> None:
    """One member in 300, which no percent shows; far beyond the bounds it is clipped."""
    past = EMOS(0, 10), EMOS(0, 10)
    for emos, far in zip(past, (9.0, 1e300), strict=True):
        emos.predict(oc.Ensemble([1.0] * 299 + [far]))
        emos.update(1)
    (mean, variance, _), (shifted, wide, _) = (emos.past[0] for emos in past)
    assert mean == pytest.approx((299 + 9) / 300)
    assert variance == pytest.approx(np.var([1.0] * 299 + [9.0]))
    assert mean < shifted < 1e12
    assert variance < wide < 1e24


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


def test_idr_against_scikit_learn() -> None:
    IsotonicRegression = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    rng = np.random.default_rng(6)
    x = rng.normal(size=300).round(1)
    y = (x + rng.normal(size=300)).round(1)
    means, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    thresholds, table = isotonic_distributions(places, counts, y)
    for z, column in zip(thresholds, table.T, strict=True):
        fit = IsotonicRegression(increasing=False).fit(x, (y <= z).astype(float))
        np.testing.assert_allclose(column, fit.predict(means), atol=1e-12)


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


def test_idr_needs_the_order_alone() -> None:
    experts, y = weather(700, 8)
    means = [float(e.members.mean()) for e in experts]
    strange = [oc.Normal(0.001 * m**2, 0.1) for m in means]
    plain = forecast_all(IDR(0, 100, window=300), [oc.Normal(m, 1) for m in means], y)
    bent = forecast_all(IDR(0, 100, window=300), strange, y)
    assert np.abs(bent[100:] - plain[100:]).mean() < 0.02  # between two means the share differs a little
    raw = np.array([e.quantile(PERCENTS) for e in experts])
    assert oc.metrics.pinball(bent[300:], y[300:]).mean() < 0.9 * oc.metrics.pinball(raw[300:], y[300:]).mean()
