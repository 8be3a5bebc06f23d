"""Forecast against its definition: numerical integration, scipy and scoringrules."""

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from scipy.integrate import quad
from scipy.stats import rv_histogram

import orcast as oc
from helpers import NODES, SENTENCE, WEIGHTS, Vector, forecasts, numbers_of, units

spots = units | st.floats(-0.5, 1.5)
levels = st.integers(0, 20).map(lambda i: i / 20) | st.floats(0.0, 1.0)


# --- distribution ---


@given(forecasts(), spots)
def test_pit_are_the_ends_of_the_jump(p: oc.Forecast, y: float) -> None:
    low, high = p.pit(y)
    atoms = p.mass[(p.left == y) & (p.right == y)].sum()
    assert high - low == pytest.approx(atoms, abs=1e-12)
    assert high == pytest.approx(p.cdf(y), abs=1e-12)


# --- moments, score ---


def slow_crps(p: oc.Forecast, y: float) -> float:
    """The integral of (F(z) - 1{z >= y})^2, by nodes between all points where the integrand may break."""
    breaks = np.unique([*p.left, *p.right, y])
    z = breaks[:-1, None] + np.diff(breaks)[:, None] * NODES
    return float((np.diff(breaks)[:, None] * WEIGHTS * (p.cdf(z) - (z >= y)) ** 2).sum())


@given(forecasts(), spots)
def test_crps_is_its_integral(p: oc.Forecast, y: float) -> None:
    assert p.crps(y) == pytest.approx(slow_crps(p, y), abs=1e-12)
    assert oc.CRPS()(p, y) == p.crps(y)


# --- draws ---


def test_draws_follow_the_forecast_and_the_generator() -> None:
    p = oc.Forecast([-np.inf, 1, 1], [1, 1, 3], [0.25, 0.5, 0.25])
    draws = p.sample(20_000, rng=np.random.default_rng(1))
    assert (draws == p.sample(20_000, rng=np.random.default_rng(1))).all()
    assert (draws != p.sample(20_000, rng=np.random.default_rng(2))).any()
    assert np.mean(draws == 1.0) == pytest.approx(0.5, abs=0.02)
    for y in (-3.0, 0.5, 1.0, 1.5, 2.5):
        assert np.mean(draws <= y) == pytest.approx(p.cdf(y), abs=0.02)
    assert p.sample((3, 4), rng=np.random.default_rng(0)).shape == (3, 4)


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
    assert p.interval(0.9) == pytest.approx(reference.interval(0.9))
    assert p.sf(y) == pytest.approx(reference.sf(y), abs=1e-12)
    inside = np.array([0.1, 0.6, 1.9, 3.3, -1.0, 9.0])
    assert p.pdf(inside) == pytest.approx(reference.pdf(inside), abs=1e-12)
    assert p.support() == reference.support()
    assert p.expect(lambda y: y**3) == pytest.approx(reference.moment(3))


# --- export ---


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_are_equal_and_keep_the_certificate(twin_of) -> None:  # type: ignore[no-untyped-def]
    p = oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1))
    twin = twin_of(p)
    assert numbers_of(twin) == numbers_of(p)
    assert twin.certificate == p.certificate


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


# --- open ends ---


@st.composite
def open_forecasts(draw: st.DrawFn) -> oc.Forecast:
    """Bounded cells with one open-ended cell or two."""
    p = draw(forecasts(low=-2.0, high=3.0))
    first, last = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    tails = st.sampled_from([0.0, 0.25, 1.0]) | st.floats(1e-3, 1.0)
    left, right, mass = p.left.tolist(), p.right.tolist(), p.mass.tolist()
    if first:
        gap = draw(st.sampled_from([0.0, 0.5]))
        left, right, mass = [-np.inf, *left], [left[0] - gap, *right], [draw(tails), *mass]
    if last:
        gap = draw(st.sampled_from([0.0, 0.5]))
        left, right, mass = [*left, right[-1] + gap], [*right, np.inf], [*mass, draw(tails)]
    return oc.Forecast(left, right, np.array(mass) / np.sum(mass))


def tail_scale(p: oc.Forecast) -> float:
    inner = np.isfinite(p.left) & np.isfinite(p.right)
    width = (p.right[inner] - p.left[inner]).sum() / 2
    return width if width > 0 else max(1e-9 * max(abs(p.left[inner][0]), abs(p.right[inner][-1])), 1e-12)


def slow_cdf(p: oc.Forecast, y: float) -> float:
    """The definition, cell by cell."""
    total = 0.0
    for left, right, mass in zip(p.left, p.right, p.mass, strict=True):
        if left == -np.inf:
            total += mass * (1.0 + max(right - y, 0.0) / tail_scale(p)) ** -3
        elif right == np.inf:
            total += mass * (1.0 - (1.0 + max(y - left, 0.0) / tail_scale(p)) ** -3)
        elif y >= right:
            total += mass
        elif y > left:
            total += mass * (y - left) / (right - left)
    return float(total)


def slow_expect(p: oc.Forecast, function: Callable[[float], float]) -> float:
    """E[function(Y)]: quadrature of the density of each tail, nodes in the bounded cells."""
    d, total = tail_scale(p), 0.0
    for left, right, mass in zip(p.left, p.right, p.mass, strict=True):
        if np.isfinite(left) and np.isfinite(right):
            total += mass * sum(w * function(left + (right - left) * x) for x, w in zip(NODES, WEIGHTS, strict=True))
        elif mass > 0.0:
            edge, sign = (right, -1.0) if left == -np.inf else (left, 1.0)
            tail = quad(lambda x: 3 * (1 + x) ** -4 * function(edge + sign * d * x), 0, np.inf, limit=200)  # noqa: B023
            total += mass * tail[0]
    return float(total)


far = st.floats(-50.0, 50.0) | units | st.sampled_from([-1e9, 1e9])


@given(forecasts() | open_forecasts(), spots | far)
def test_cdf_of_open_ends_is_its_definition(p: oc.Forecast, y: float) -> None:
    assert p.cdf(y) == pytest.approx(slow_cdf(p, y), abs=1e-12)
    assert p.sf(y) == pytest.approx(1.0 - slow_cdf(p, y), abs=1e-12)
    assert p.cdf([y, y]).tolist() == pytest.approx([p.cdf(y)] * 2, abs=1e-15)


@given(forecasts() | open_forecasts(), spots | far | st.sampled_from([-np.inf, np.inf]))
def test_cdf_of_a_number_is_that_of_an_array(p: oc.Forecast, y: float) -> None:
    assert p.cdf(y) == p.cdf(np.array([y]))[0]
    assert np.isnan(p.cdf(np.nan))


@given(forecasts() | open_forecasts(), levels)
def test_quantiles_of_open_ends_invert_the_cdf(p: oc.Forecast, level: float) -> None:
    q = p.quantile(level)
    assert type(q) is float
    assert p.ppf(level) == q
    if np.isfinite(q):
        hair = 1e-9 * max(1.0, abs(q))
        assert slow_cdf(p, q + hair) >= level - 1e-9
        if level > 0.0:
            assert slow_cdf(p, q - hair) <= level + 1e-9


def test_the_ends_of_open_ends() -> None:
    p = oc.Forecast([-np.inf, 0, 2], [0, 2, np.inf], [0.25, 0.5, 0.25])
    assert p.support() == (-np.inf, np.inf)
    assert p.quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert p.interval(1.0) == (-np.inf, np.inf)
    assert (p.cdf(-np.inf), p.cdf(np.inf)) == (0.0, 1.0)
    assert p.cdf([-1.0, 3.0]) == pytest.approx([0.25 / 8, 1 - 0.25 / 8])  # d = 1
    assert p.quantile([0.25 / 8, 1 - 0.25 / 8]) == pytest.approx([-1.0, 3.0])
    assert p.median() == 1.0
    assert p.pit(3.0) == pytest.approx((1 - 0.25 / 8, 1 - 0.25 / 8))
    assert np.isnan(p.cdf(np.nan))
    assert repr(p) == "Forecast(median=1, 90%=[-0.709976, 2.70998])"


@given(forecasts(low=-3.0, high=5.0) | open_forecasts())
def test_moments_of_open_ends_are_integrals(p: oc.Forecast) -> None:
    mean = slow_expect(p, lambda y: y)
    assert p.mean() == pytest.approx(mean, abs=1e-7)
    assert p.var() == pytest.approx(slow_expect(p, lambda y: (y - mean) ** 2), rel=1e-6, abs=1e-7)
    assert p.std() == pytest.approx(np.sqrt(p.var()))


@given(open_forecasts())
def test_expectations_over_open_ends_are_integrals(p: oc.Forecast) -> None:
    assert p.expect(np.ones_like) == pytest.approx(1.0)
    assert p.expect(lambda y: y * y) == pytest.approx(p.var() + p.mean() ** 2, rel=1e-9, abs=1e-9)
    # smooth across a bounded cell, so that what is compared is the tails
    assert p.expect(lambda y: np.tanh(y / 5)) == pytest.approx(slow_expect(p, lambda y: np.tanh(y / 5)), abs=1e-5)


@given(open_forecasts())
def test_density_of_open_ends_integrates_to_the_cdf(p: oc.Forecast) -> None:
    assume(tail_scale(p) > 0.05)  # else it is too sharp for the quadrature
    for start, stop in ((-9.0, -2.5), (3.5, 11.0)):
        mass = quad(p.pdf, start, stop)[0]
        assert mass == pytest.approx(p.cdf(stop) - p.cdf(start), abs=1e-7)


@given(open_forecasts(), st.floats(-30, 30) | units)
def test_crps_of_open_ends_is_its_integral(p: oc.Forecast, y: float) -> None:
    assume(tail_scale(p) > 0.05)
    breaks = np.unique([*p.left[np.isfinite(p.left)], *p.right[np.isfinite(p.right)], y])
    total = 0.0
    for start, stop in pairwise(breaks):
        if stop - start > 1e-8:  # else nothing, and too narrow for the quadrature
            total += quad(lambda z: (slow_cdf(p, z) - (z >= y)) ** 2, start, stop, epsabs=1e-9)[0]
    d = tail_scale(p)
    total += d * quad(lambda x: slow_cdf(p, breaks[0] - d * x) ** 2, 0, np.inf)[0]
    total += d * quad(lambda x: (1.0 - slow_cdf(p, breaks[-1] + d * x)) ** 2, 0, np.inf)[0]
    assert p.crps(y) == pytest.approx(total, abs=1e-6)


@given(open_forecasts())
def test_copies_keep_open_ends(p: oc.Forecast) -> None:
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        for name in ("left", "right", "mass"):
            assert (getattr(twin, name) == getattr(p, name)).all()
        assert not twin.mass.flags.writeable
        assert twin.crps(0.3) == p.crps(0.3)


@pytest.mark.parametrize("at", [0.0, 7.0, -1e6])
def test_an_open_end_beside_a_single_atom(at: float) -> None:
    p = oc.Forecast([at, at], [at, np.inf], [0.5, 0.5])
    d = max(1e-9 * abs(at), 1e-12)
    assert p.cdf(at) == 0.5
    assert p.mean() == pytest.approx(at + d / 4, rel=1e-12, abs=1e-15)
    assert p.quantile(0.9) >= at
    assert p.crps(at + 1.0) == pytest.approx(1.0, abs=1e-2)


def test_extreme_open_ends_do_not_warn() -> None:
    p = oc.Forecast([-np.inf, 0, 1e-250], [0, 1e-250, np.inf], [0.3, 0.4, 0.3])
    assert p.cdf([1e300, -1e300]).tolist() == pytest.approx([1.0, 0.0])
    assert p.pdf(1e300) == 0.0
    assert np.isfinite(p.crps(5.0))
    assert p.mean() == pytest.approx(0.0, abs=1e-100)


# --- what is refused ---


@pytest.mark.parametrize(
    ("left", "right", "mass"),
    [
        ([], [], []),
        ([0], [1], [0.5, 0.5]),
        ([-float("inf")], [float("inf")], [1]),
        ([None, 0], [0, None], [0.5, 0.5]),
        ([0, float("inf")], [1, float("inf")], [0.5, 0.5]),
        ([float("nan"), 0], [0, 1], [0.5, 0.5]),
        ([0, 1], [float("inf"), 2], [0.5, 0.5]),
        ([0, 0.5], [1, 2], [0.5, 0.5]),
        ([1], [0], [1]),
        ([0], [1], [float("nan")]),
        ([0, 1], [1, 2], [1.5, -0.5]),
        ([0, 1], [1, 2], [0.5, 0.4]),
        (["a"], ["b"], ["c"]),
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


@pytest.mark.parametrize("space", [oc.Line(), oc.HalfLine(-100.0), oc.Interval(-1000.0, 1000.0)])
def test_a_normal_forecast_comes_back_as_the_normal_it_was(space: Any) -> None:
    """Tails that are made for surprises do not count in the reported mean and deviation."""
    p = oc.Recalibrator(space).predict(oc.Normal(4.0, 1.0))
    assert p.to_normal() == pytest.approx((4.0, 1.0), abs=0.02)
    assert p.std() > 1.02
    q = p.quantile(np.arange(1, 100) / 100)
    z = oc.Normal(0.0, 1.0).quantile(np.arange(1, 100) / 100)
    slope, middle = np.polyfit(z, q, 1)
    assert p.to_normal() == pytest.approx((middle, slope))
