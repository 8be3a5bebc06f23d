"""Forecast against its definition: numerical integration, scipy and scoringrules."""

import copy
import json
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import scoringrules
from hypothesis import assume, given
from scipy.stats import rv_histogram

import orcast as oc
from helpers import NODES, SENTENCE, WEIGHTS, Vector, forecasts, units, within
from orcast.forecasts import PERCENTS

spots = units | st.floats(-0.5, 1.5)
levels = st.integers(0, 20).map(lambda i: i / 20) | st.floats(0.0, 1.0)


# --- distribution ---


@given(forecasts(), spots)
def test_cdf_counts_the_mass_up_to_a_point(p: oc.Forecast, y: float) -> None:
    expected = 0.0
    for left, right, mass in zip(p.left, p.right, p.mass, strict=True):
        if right <= y:
            expected += mass
        elif left < y:
            expected += mass * (y - left) / (right - left)
    assert p.cdf(y) == pytest.approx(expected, abs=1e-12)
    assert type(p.cdf(y)) is float


@given(forecasts(), st.lists(spots, min_size=2, max_size=20))
def test_cdf_rises_from_0_to_1(p: oc.Forecast, ys: list[float]) -> None:
    values = p.cdf(np.sort([*ys, -1.0, 2.0]))
    assert values[0] == 0.0
    assert values[-1] == 1.0
    assert (np.diff(values) >= 0.0).all()


@given(forecasts(), levels)
def test_quantile_is_the_smallest_point_that_reaches_the_level(p: oc.Forecast, level: float) -> None:
    q = p.quantile(level)
    assert type(q) is float
    assert p.left[0] <= q <= p.right[-1]
    # a hair of mass for rounding, and a hair of distance
    assert p.cdf(q + 1e-9) >= level - 1e-12
    if level > 0.0:
        assert p.cdf(q - 1e-9) <= level + 1e-12


@given(forecasts(), spots)
def test_cdf_then_quantile_comes_back(p: oc.Forecast, y: float) -> None:
    level = p.cdf(y)
    q = p.quantile(level)
    assert q <= max(y, p.left[0]) + 1e-9
    # nothing lies between the two
    assert p.cdf(q + 1e-9) >= level - 1e-12


@given(forecasts(), st.lists(levels, min_size=1, max_size=20))
def test_arrays_are_many_numbers(p: oc.Forecast, some: list[float]) -> None:
    assert p.quantile(some).tolist() == [p.quantile(a) for a in some]
    assert p.cdf(np.array([some])).tolist() == [[p.cdf(y) for y in some]]


def test_an_atom_is_a_jump() -> None:
    p = oc.Forecast([0, 1, 1, 3], [1, 1, 3, 3], [0.2, 0.5, 0.2, 0.1])
    assert p.cdf(np.nextafter(1, 0)) == pytest.approx(0.2)
    assert p.cdf(1.0) == pytest.approx(0.7)
    assert p.quantile([0.2, 0.2001, 0.5, 0.7]).tolist() == pytest.approx([1, 1, 1, 1])
    assert p.quantile([0.8, 0.9, 0.95, 1.0]).tolist() == pytest.approx([2, 3, 3, 3])
    assert p.pit(1.0) == pytest.approx((0.2, 0.7))
    assert p.pit(3.0) == pytest.approx((0.9, 1.0))
    assert p.pit(2.0) == pytest.approx((0.8, 0.8))
    assert p.pit(-1.0) == (0.0, 0.0)
    assert p.pit(9.0) == (1.0, 1.0)


@given(forecasts(), spots)
def test_pit_are_the_ends_of_the_jump(p: oc.Forecast, y: float) -> None:
    low, high = p.pit(y)
    atoms = p.mass[(p.left == y) & (p.right == y)].sum()
    assert high - low == pytest.approx(atoms, abs=1e-12)
    assert high == pytest.approx(p.cdf(y), abs=1e-12)


def test_a_nan_has_no_probability() -> None:
    p = oc.Forecast([0], [1], [1])
    assert np.isnan(p.cdf(float("nan")))


@given(forecasts(), st.floats(0.0, 1.0))
def test_interval_is_central(p: oc.Forecast, confidence: float) -> None:
    low, high = p.interval(confidence)
    assert (low, high) == tuple(p.quantile([0.5 - confidence / 2, 0.5 + confidence / 2]))
    assert low <= p.median() <= high
    assert p.cdf(high + 1e-9) - p.cdf(low - 1e-9) >= confidence - 1e-9


# --- moments, score ---


def integral(p: oc.Forecast, power: int, centre: float = 0.0) -> float:
    """E[(Y - centre)^power], by nodes in every cell."""
    return sum(weight * (y - centre) ** power for y, weight in within(p))


@given(forecasts(low=-3.0, high=5.0))
def test_moments_are_integrals(p: oc.Forecast) -> None:
    mean = integral(p, 1)
    assert p.mean() == pytest.approx(mean, abs=1e-9)
    assert p.var() == pytest.approx(integral(p, 2, mean), abs=1e-9)
    assert p.std() == pytest.approx(np.sqrt(integral(p, 2, mean)), abs=1e-6)
    for order in range(6):
        assert p.moment(order) == pytest.approx(integral(p, order), rel=1e-9, abs=1e-9)


def slow_crps(p: oc.Forecast, y: float) -> float:
    """The integral of (F(z) - 1{z >= y})^2, by nodes between all points where the integrand may break."""
    breaks = np.unique([*p.left, *p.right, y])
    z = breaks[:-1, None] + np.diff(breaks)[:, None] * NODES
    return float((np.diff(breaks)[:, None] * WEIGHTS * (p.cdf(z) - (z >= y)) ** 2).sum())


@given(forecasts(), spots)
def test_crps_is_its_integral(p: oc.Forecast, y: float) -> None:
    assert p.crps(y) == pytest.approx(slow_crps(p, y), abs=1e-12)
    assert oc.CRPS()(p, y) == p.crps(y)


@given(st.lists(units, min_size=1, max_size=9), spots)
def test_crps_of_atoms_is_that_of_an_ensemble(members: list[float], y: float) -> None:
    at = np.sort(members)
    p = oc.Forecast(at, at, np.full(at.size, 1 / at.size))
    assert p.crps(y) == pytest.approx(scoringrules.crps_ensemble(y, at, estimator="nrg"), abs=1e-12)


@pytest.mark.parametrize("y", [-1.0, 2.0, 2.5, 4.0, 7.5])
def test_crps_of_one_cell_is_that_of_a_uniform(y: float) -> None:
    expected = scoringrules.crps_uniform(y, 2.0, 4.0)
    assert oc.Forecast([2.0], [4.0], [1.0]).crps(y) == pytest.approx(expected, abs=1e-12)


@given(forecasts(), spots)
def test_squared_error_is_that_of_the_mean(p: oc.Forecast, y: float) -> None:
    assert oc.MSE()(p, y) == pytest.approx((integral(p, 1) - y) ** 2, abs=1e-9)


# --- draws ---


def test_draws_follow_the_forecast_and_the_generator() -> None:
    p = oc.Forecast([0, 1, 1], [1, 1, 3], [0.25, 0.5, 0.25])
    draws = p.sample(20_000, rng=np.random.default_rng(1))
    assert (draws == p.sample(20_000, rng=np.random.default_rng(1))).all()
    assert (draws != p.sample(20_000, rng=np.random.default_rng(2))).any()
    assert np.mean(draws == 1.0) == pytest.approx(0.5, abs=0.02)
    for y in (0.5, 1.0, 1.5, 2.5):
        assert np.mean(draws <= y) == pytest.approx(p.cdf(y), abs=0.02)
    assert p.sample((3, 4), rng=np.random.default_rng(0)).shape == (3, 4)


def test_sample_wants_a_generator() -> None:
    with pytest.raises(TypeError, match="rng"):
        oc.Forecast([0], [1], [1]).sample(3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Forecast([0], [1], [1]).sample(3, rng=7)  # type: ignore[arg-type]


# --- as scipy does ---


def histogram() -> tuple[oc.Forecast, rv_histogram]:
    edges, mass = np.array([0.0, 0.5, 0.75, 2.0, 4.0]), np.array([0.1, 0.4, 0.3, 0.2])
    return oc.Forecast(edges[:-1], edges[1:], mass), rv_histogram((mass, edges), density=False)


def test_it_answers_like_a_scipy_distribution() -> None:
    p, reference = histogram()
    y, a = np.linspace(-1, 5, 31), np.linspace(0, 1, 21)
    assert p.cdf(y) == pytest.approx(reference.cdf(y), abs=1e-12)
    assert p.ppf(a) == pytest.approx(reference.ppf(a), abs=1e-12)
    for name in ("mean", "std", "var", "median"):
        assert getattr(p, name)() == pytest.approx(getattr(reference, name)(), abs=1e-9)
    assert p.moment(3) == pytest.approx(reference.moment(3))
    assert p.interval(0.9) == pytest.approx(reference.interval(0.9))
    assert p.sf(y) == pytest.approx(reference.sf(y), abs=1e-12)
    assert p.isf(a) == pytest.approx(reference.isf(a), abs=1e-12)
    inside = np.array([0.1, 0.6, 1.9, 3.3, -1.0, 9.0])
    assert p.pdf(inside) == pytest.approx(reference.pdf(inside), abs=1e-12)
    assert p.support() == reference.support()
    assert p.expect(lambda y: y**3) == pytest.approx(reference.moment(3))


@given(forecasts())
def test_the_rest_follows_from_the_cdf(p: oc.Forecast) -> None:
    width = p.right - p.left
    assume(((width == 0.0) | (width > 1e-9)).all())  # else quadrature nodes fall together
    atoms = p.mass[p.left == p.right].sum()
    breaks = np.unique([*p.left, *p.right])
    z = breaks[:-1, None] + np.diff(breaks)[:, None] * NODES
    assert (np.diff(breaks)[:, None] * WEIGHTS * p.pdf(z)).sum() == pytest.approx(1.0 - atoms, abs=1e-9)
    assert p.expect(np.ones_like) == pytest.approx(1.0)
    assert p.expect(lambda y: y) == pytest.approx(p.mean(), abs=1e-9)
    assert p.sf(0.5) == pytest.approx(1.0 - p.cdf(0.5))
    assert p.isf(0.25) == p.quantile(0.75)


def test_rvs_is_called_as_scipy_does() -> None:
    p, reference = histogram()
    draws = p.rvs(size=5000, random_state=7)
    assert (draws == p.rvs(size=5000, random_state=7)).all()
    assert (draws == p.sample(5000, rng=np.random.default_rng(7))).all()
    assert draws.mean() == pytest.approx(reference.mean(), abs=0.08)
    assert p.rvs(size=(2, 3), random_state=np.random.default_rng(0)).shape == (2, 3)
    assert type(p.rvs(random_state=7)) is float
    assert np.ndim(reference.rvs(random_state=7)) == 0


# --- export ---


@given(forecasts())
def test_plain_data_and_back(p: oc.Forecast) -> None:
    twin = oc.Forecast(**json.loads(json.dumps(p.to_plain())))
    for name in ("left", "right", "mass"):
        assert (getattr(twin, name) == getattr(p, name)).all()


@given(forecasts())
def test_quantile_grid(p: oc.Forecast) -> None:
    grid = p.to_quantiles()
    assert list(grid) == PERCENTS.tolist()
    assert list(grid.values()) == p.quantile(PERCENTS).tolist()
    assert p.to_quantiles(iter([0.25, 0.5])) == {0.25: p.quantile(0.25), 0.5: p.quantile(0.5)}
    json.dumps(grid)


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_are_equal_and_keep_the_certificate(twin_of) -> None:  # type: ignore[no-untyped-def]
    p = oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1))
    twin = twin_of(p)
    assert twin.to_plain() == p.to_plain()
    assert twin.certificate == p.certificate


def test_repr_says_median_and_range() -> None:
    assert repr(oc.Forecast([0], [1], [1])) == "Forecast(median=0.5, 90%=[0.05, 0.95])"


def test_a_forecast_cannot_be_changed() -> None:
    mass = np.array([0.5, 0.5])
    p = oc.Forecast([0, 1], [1, 2], mass)
    mass[0] = 9.0
    assert p.mass.tolist() == [0.5, 0.5]
    for values in (p.left, p.right, p.mass):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.0
    issued = oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1))
    with pytest.raises(ValueError, match="read-only"):
        issued.mass[0] = 0.0


@pytest.mark.parametrize("off", [5e-7, -5e-7])
def test_masses_that_do_not_quite_sum_to_one_are_a_distribution_all_the_same(off: float) -> None:
    p = oc.Forecast([0, 1], [1, 2], [0.5, 0.5 + off])
    near: Vector = p.cdf([np.nextafter(1, 0), 1.0, np.nextafter(2, 0), 2.0])
    assert (np.diff(near) >= 0.0).all()
    assert near == pytest.approx([p.below[1], p.below[1], 1, 1], abs=1e-12)
    assert p.moment(0) == pytest.approx(1, abs=1e-12)
    assert p.var() == pytest.approx(p.moment(2) - p.mean() ** 2, abs=1e-12)


# --- what is refused ---


@pytest.mark.parametrize(
    ("left", "right", "mass"),
    [
        ([], [], []),
        ([0], [1], [0.5, 0.5]),
        ([[0]], [[1]], [[1]]),
        ([0, 1], [1, float("inf")], [0.5, 0.5]),
        ([0, 0.5], [1, 2], [0.5, 0.5]),
        ([1], [0], [1]),
        ([0], [1], [float("nan")]),
        ([0], [1], [float("inf")]),
        ([0, 1], [1, 2], [1.5, -0.5]),
        ([0, 1], [1, 2], [0.5, 0.4]),
        (["a"], ["b"], ["c"]),
        ([0, [1]], [1, 2], [0.5, 0.5]),
    ],
)
def test_no_distribution(left: list[object], right: list[object], mass: list[object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Forecast(left, right, mass)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), "half", None, [0.5, 2.0]])
def test_no_level(bad: object) -> None:
    p = oc.Forecast([0], [1], [1])
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        p.quantile(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), "most", None])
def test_no_share(bad: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Forecast([0], [1], [1]).interval(bad)  # type: ignore[arg-type]
