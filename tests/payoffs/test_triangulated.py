"""Moment-based and simplex calibration: the triangulations, the payoffs on them, and what is refused."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import orcast as oc
from definitions import vertices
from helpers import SENTENCE
from orcast.payoffs.triangulated import (
    MomentBasedCalibration,
    MomentCellPayoff,
    SimplexCalibration,
    moment_mesh,
    simplex_mesh,
)
from orcast.testing import cell_payoffs_of

Vector = NDArray[np.float64]

SMALL = oc.Interval(-2, 10, cells=24, tail_cells=3)


# --- moments ---


@pytest.mark.parametrize("grid", [2, 3, 8, 17, 64])
def test_the_triangles_tile_the_polygon(grid: int) -> None:
    mesh = moment_mesh(grid)
    corners = mesh.points[mesh.triangles]
    areas = 0.5 * np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))
    # the polygon misses a segment of area h^3 / 6 below each of its sides
    assert areas.sum() == pytest.approx((1.0 - grid**-2) / 6.0)
    assert areas.min() > 0.1 * areas.max()
    assert set(mesh.triangles.ravel()) == set(range(len(mesh.points)))
    heights = [np.diff(mesh.points[column, 1]) for column in mesh.columns]
    assert max(steps.max() for steps in heights if steps.size) <= 1.0 / grid + 1e-12


@given(grid=st.integers(2, 12), mean=st.floats(0.0, 1.0), share=st.floats(0.0, 1.0))
def test_weights_are_barycentric_and_their_slopes_derivatives(grid: int, mean: float, share: float) -> None:
    mesh = moment_mesh(grid)
    lowest, _ = mesh.chord(mean)
    f = np.array([mean, lowest + share * (mean - lowest)])
    local = mesh.locate(f)
    assert (local.weights >= 0.0).all()
    assert local.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(local.weights @ mesh.points[local.corners], f, atol=1e-12)
    np.testing.assert_allclose(local.slopes.T @ mesh.points[local.corners], np.eye(2), atol=1e-9)


@given(grid=st.integers(2, 12), mean=st.floats(0.0, 1.0))
def test_below_the_polygon_weights_are_those_of_the_chord(grid: int, mean: float) -> None:
    mesh = moment_mesh(grid)
    lowest, _ = mesh.chord(mean)
    below, on = mesh.locate(np.array([mean, mean**2])), mesh.locate(np.array([mean, lowest]))
    dense = np.zeros((2, len(mesh.points)))
    for row, local in zip(dense, (below, on), strict=True):
        np.add.at(row, local.corners, local.weights)
    np.testing.assert_allclose(dense[0], dense[1], atol=1e-12)


def test_the_certificate_is_exact_over_every_cell() -> None:
    """A quartic in the outcome: never more than certified, and no less than that at the worst point of each cell."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        (_, cell_payoff, grid), *_ = cell_payoffs_of(MomentBasedCalibration(5), SMALL, rng, None)
        cells = grid.cells
        assert isinstance(cell_payoff, MomentCellPayoff)
        p = rng.dirichlet(np.full(cells, 10.0 ** rng.uniform(-1, 1)))
        s = rng.normal(size=cell_payoff.size) * 10.0 ** rng.uniform(-3, 3) * (trial % 5 > 0)
        factor = 10.0 ** rng.uniform(-2, 1)
        linear, square = cell_payoff.assess(s, factor, p)
        t = cell_payoff.start + np.linspace(0.0, 1.0, 4001)[:, None] * (cell_payoff.end - cell_payoff.start)
        f = cell_payoff.mean(p)
        local = cell_payoff.locate(f)
        c = local.weights @ cell_payoff.rows(s)[local.corners]
        errors = f[0] - t, f[1] - t * t
        squares = factor * float(local.weights @ local.weights) * (errors[0] ** 2 + errors[1] ** 2)
        values = 2.0 * (c[0] * errors[0] + c[1] * errors[1]) + squares
        room = 1e-9 * (1.0 + np.abs(values).max())
        assert (values.max(axis=0) <= linear + room).all()
        assert (linear - values.max(axis=0) <= 1e-5 * (1.0 + np.abs(values).max())).all()
        assert (squares.max(axis=0) <= square + room).all()
        assert (square - squares.max(axis=0) <= 1e-5 * factor).all()


# --- the simplex ---


@st.composite
def chances(draw: st.DrawFn, labels: int) -> Vector:
    """Probabilities, often with ties, zeros, and multiples of the grid."""
    some = draw(arrays(float, labels, elements=st.integers(0, 8).map(float) | st.floats(0.0, 8.0)))
    if some.sum() < 1e-3:
        some = np.eye(labels)[0]
    value: Vector = some / some.sum()
    return value


@given(st.data(), st.integers(2, 5), st.integers(1, 5))
def test_weights_are_barycentric_and_those_of_the_formula(data: st.DataObject, labels: int, grid: int) -> None:
    p = data.draw(chances(labels))
    mesh = simplex_mesh(labels, grid)
    local = mesh.locate(p)
    assert (local.weights >= 0.0).all()
    assert local.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(local.weights @ vertices(labels, grid)[local.corners], p, atol=1e-12)
    dense = np.zeros(mesh.size)
    np.add.at(dense, local.corners, local.weights)
    away = grid * np.cumsum((p - vertices(labels, grid))[:, :0:-1], axis=1)
    formula = 1.0 - np.maximum(away.max(axis=1), 0.0) - np.maximum(-away.min(axis=1), 0.0)
    np.testing.assert_allclose(dense, np.maximum(formula, 0.0), atol=1e-12)


@pytest.mark.parametrize(("labels", "grid"), [(2, 7), (3, 4), (4, 3), (5, 2)])
def test_the_vertices_are_all_multiples_and_each_is_its_own_corner(labels: int, grid: int) -> None:
    points = vertices(labels, grid)
    assert len({tuple(np.rint(grid * row).astype(int)) for row in points}) == len(points)
    np.testing.assert_allclose(points.sum(axis=1), 1.0)
    for i, row in enumerate(points):
        local = simplex_mesh(labels, grid).locate(row)
        assert local.corners[local.weights.argmax()] == i
        assert local.weights.max() == pytest.approx(1.0)


# --- what is refused ---


@pytest.mark.parametrize(
    ("make", "space"),
    [
        *((MomentBasedCalibration, space) for space in (oc.Line(), oc.Binary(), oc.Labels(["a", "b"]))),
        *((SimplexCalibration, space) for space in (oc.Line(), oc.HalfLine(0), oc.Circle(24, cells=4))),
        *((lambda grid=grid: MomentBasedCalibration(grid), SMALL) for grid in (1, 65, 2.5)),
        (lambda: SimplexCalibration(0), oc.Binary()),
        (lambda: SimplexCalibration(8), oc.Labels(range(40))),
        *((lambda bins=bins: SimplexCalibration(bins=bins), SMALL) for bins in (1, [0.0, 1.0], "many")),
    ],
)
def test_unsuitable_spaces_grids_and_bins_are_refused(make: Any, space: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make().on(space)
