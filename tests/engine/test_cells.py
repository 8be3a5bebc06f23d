"""Cells around an expert and forecasts on them, against definitions in plain Python."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import Vector, bound_to, cells_around, page_with, quantile_rows, record_of, slow_locate, units
from orcast.kernels.cells import rebin_arrays
from orcast.kernels.rounds import cell_of
from orcast.spaces import TAIL_MASS

SPACE = oc.Interval(0, 1)
ODD = oc.Interval(-2, 7, cells=22, tail_cells=3)
# Quantiles that are closer than this share of the interval are one atom.
ATOM = 1e-12
spaces = st.sampled_from([SPACE, ODD, oc.Interval(1e6, 1e6 + 1e-3, cells=8, tail_cells=1)])


@st.composite
def experts(draw: st.DrawFn) -> tuple[oc.Interval, Vector]:
    space = draw(spaces)
    return space, draw(quantile_rows(space))


# --- building ---


@given(experts(), st.sampled_from([0.0, 1e-6, 0.1, 0.9]))
def test_cells_cover_the_interval_without_gaps(expert: tuple[oc.Interval, Vector], usual: float) -> None:
    space, q = expert
    left, right, mass = cells_around(space, q, usual * (space.high - space.low))
    slack = ATOM * (space.high - space.low)
    assert left[0] == space.low
    assert space.high - slack <= right[-1] <= space.high
    assert (left[1:] == right[:-1]).all()
    assert (right >= left).all()
    assert (mass > 0.0).all()
    assert mass.sum() == pytest.approx(1.0, abs=1e-12)
    # each bound is an atom, and no two atoms meet
    atom = left == right
    assert atom[0]
    assert atom[-1]
    assert not (atom[1:] & atom[:-1]).any()


@given(experts())
def test_cells_keep_the_experts_distribution(expert: tuple[oc.Interval, Vector]) -> None:
    space, q = expert
    p = oc.Forecast(*cells_around(space, q)[:3])
    hair = max(1e-9 * (space.high - space.low), 2 * np.spacing(space.high))
    for level, value in zip(space.levels, q, strict=True):
        assert p.cdf(value + hair) >= level - 1e-9
        assert p.cdf(value - hair) <= level + 1e-9


@pytest.mark.parametrize("at", [0.0, 0.3, 1.0])
def test_all_mass_on_one_value(at: float) -> None:
    left, right, mass = cells_around(SPACE, np.full(SPACE.levels.size, at))
    k = slow_locate(at, left, right)
    assert left[k] == at == right[k]
    assert mass[k] >= 1 - 2 * TAIL_MASS - 1e-12
    # the tails are still there, so any outcome has a cell with mass
    assert left.size > SPACE.tail_cells


def test_a_heavy_zero_merges_with_the_bound() -> None:
    q = np.where(SPACE.levels < 0.6, 0.0, SPACE.levels - 0.5)
    left, right, mass = cells_around(SPACE, q)
    assert left[0] == right[0] == 0.0
    below = (SPACE.levels < 0.6).sum() - 1
    assert mass[0] == pytest.approx(TAIL_MASS + below * (1 - 2 * TAIL_MASS) / (SPACE.levels.size - 1))
    assert left[1] == 0.0 < right[1]


def test_values_a_rounding_error_apart_are_one_atom() -> None:
    q = np.full(SPACE.levels.size, 0.3)
    q[q.size // 2 :] = np.nextafter(0.3, 1)
    left, right, mass = cells_around(SPACE, q)
    assert mass.max() >= 1 - 2 * TAIL_MASS - 1e-12
    k = int(mass.argmax())
    assert left[k] == right[k] == 0.3


@pytest.mark.parametrize("bound", [0.0, 1.0])
def test_quantiles_a_rounding_error_inside_a_bound_sit_on_it(bound: float) -> None:
    """Else an outcome on the bound is in no cell."""
    left, right, mass = cells_around(SPACE, np.full(SPACE.levels.size, np.nextafter(bound, 0.5)))
    assert (left[0], right[-1]) == (0.0, 1.0)
    k = int(mass.argmax())
    assert left[k] == right[k] == bound


def test_tails_a_rounding_error_inside_a_bound_end_on_it() -> None:
    """A tail that is hardly wider than an atom: no outcome lies beyond the last cell."""
    space = oc.Interval(0, 1)
    for distance in np.geomspace(1e-12, 1e-10, 60):
        row = 0.3 + 0.4 * np.sort(np.random.default_rng(0).random(space.levels.size))
        row[-1] = 1.0 - distance
        left, right, *_ = cells_around(space, row)
        assert (left[0], right[-1]) == (0.0, 1.0)


def test_even_cells_without_an_expert() -> None:
    recal = oc.Forecaster(ODD, oc.QuantileCalibration(), oracle=oc.Equilibrium())
    recal.predict()
    record = record_of(recal)
    n = record.count()
    left, right, mass = record.view("cells")[:3, :n]
    assert n == ODD.cells
    assert (left[0], right[-1]) == (ODD.low, ODD.high)
    assert (left[1:] == right[:-1]).all()
    assert (right - left)[1:-1] == pytest.approx((ODD.high - ODD.low) / (n - 2))
    assert (left[0], left[-1]) == (right[0], right[-1])
    assert mass.sum() == pytest.approx(1.0)
    assert mass[1:-1] == pytest.approx(mass[1])


# --- the rule for edges ---


@given(experts(), units)
def test_locate_is_the_rule(expert: tuple[oc.Interval, Vector], spot: float) -> None:
    space, q = expert
    left, right, mass = cells_around(space, q)
    round = page_with(bound_to(space, oc.QuantileCalibration()), oc.Forecast(left, right, mass), mass)
    ys = [space.low + spot * (space.high - space.low), *left, *right]
    ys += [np.nextafter(y, space.low) for y in left] + [np.nextafter(y, space.high) for y in left]
    for y in ys:
        if left[0] <= y <= right[-1]:
            assert cell_of(round, y) == slow_locate(y, left, right)


@given(experts())
def test_an_outcome_on_an_experts_atom_meets_the_atom(expert: tuple[oc.Interval, Vector]) -> None:
    space, q = expert
    left, right, _ = cells_around(space, q)
    for value in q[:-1][q[1:] == q[:-1]]:
        # unless the atom was merged with one a rounding error below
        k = slow_locate(value, left, right)
        nearest = int(np.abs(np.where(left == right, left, np.inf) - value).argmin())
        if left[nearest] == value:
            assert k == nearest
        else:
            assert abs(left[nearest] - value) <= ATOM * (space.high - space.low)


# --- carrying masses over ---


def slow_rebin(source: oc.Forecast, left: Vector, right: Vector) -> Vector:
    out = np.zeros(left.size)
    for a, b, m in zip(source.left, source.right, source.mass, strict=True):
        for k in range(left.size):
            if a == b:
                out[k] += m if slow_locate(a, left, right) == k else 0.0
            else:
                out[k] += m * max(min(b, right[k]) - max(a, left[k]), 0.0) / (b - a)
    return out


@given(quantile_rows(SPACE), quantile_rows(SPACE))
def test_rebin_is_its_slow_twin(old: Vector, new: Vector) -> None:
    source = oc.Forecast(*cells_around(SPACE, old)[:3])
    left, right, _ = cells_around(SPACE, new)
    out = np.empty(left.size)
    rebin_arrays(source.mass.size, source.left, source.right, source.mass, left.size, left, right, out)
    assert out == pytest.approx(slow_rebin(source, left, right), abs=1e-12)
    assert out.sum() == pytest.approx(1.0, abs=1e-9)
