"""Distribution calibration on a few labels: the triangulated payoff, its pieces, and the oracle, by brute force."""

from itertools import combinations
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast.paper.exact.simplex import MOST_PIECES, SimplexGrid
from orcast.paper.exact.triangles import simplex_faces, simplex_pieces, solve
from orcast.payoffs.triangulated import SimplexCalibration, simplex_mesh
from orcast.testing import check_guarantee

Vector = NDArray[np.float64]

LABELS = oc.Labels(["home", "draw", "away"])
ROUNDING = 1e-9


@st.composite
def chances(draw: st.DrawFn, labels: int) -> Vector:
    """Probabilities, often with ties, zeros, and multiples of the grid."""
    some = draw(arrays(float, labels, elements=st.integers(0, 8).map(float) | st.floats(0.0, 8.0)))
    if some.sum() < 1e-3:
        some = np.eye(labels)[0]
    value: Vector = some / some.sum()
    return value


# --- the mesh and the payoff ---


@given(st.data(), st.integers(2, 5), st.integers(1, 5))
def test_weights_are_barycentric_and_those_of_the_formula(data: st.DataObject, labels: int, grid: int) -> None:
    p = data.draw(chances(labels))
    mesh = simplex_mesh(labels, grid)
    local = mesh.locate(p)
    assert (local.weights >= 0.0).all()
    assert local.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(local.weights @ mesh.points[local.corners], p, atol=1e-12)
    dense = np.zeros(mesh.size)
    np.add.at(dense, local.corners, local.weights)
    away = grid * np.cumsum((p - mesh.points)[:, :0:-1], axis=1)
    formula = 1.0 - np.maximum(away.max(axis=1), 0.0) - np.maximum(-away.min(axis=1), 0.0)
    np.testing.assert_allclose(dense, np.maximum(formula, 0.0), atol=1e-12)


@pytest.mark.parametrize(("labels", "grid"), [(2, 7), (3, 4), (4, 3), (5, 2)])
def test_the_vertices_are_all_multiples_and_each_is_its_own_corner(labels: int, grid: int) -> None:
    points = simplex_mesh(labels, grid).points
    assert len({tuple(np.rint(grid * row).astype(int)) for row in points}) == len(points)
    np.testing.assert_allclose(points.sum(axis=1), 1.0)
    for i, row in enumerate(points):
        local = simplex_mesh(labels, grid).locate(row)
        assert local.corners[local.weights.argmax()] == i
        assert local.weights.max() == pytest.approx(1.0)


# --- the pieces ---


@pytest.mark.parametrize(("labels", "grid"), [(2, 5), (3, 4), (4, 3), (5, 2)])
def test_the_pieces_of_each_face_tile_it(labels: int, grid: int) -> None:
    faces = simplex_faces(labels, grid)
    assert faces.count == simplex_pieces(labels, grid)
    for n, pieces in enumerate(faces.pieces, start=1):
        corners = faces.points[pieces.corners]
        support = (corners > 0.0).any(axis=1)
        assert (support.sum(axis=1) == n).all()
        for names in combinations(range(labels), n):
            own = corners[support[:, names].all(axis=1)][:, :, names]
            assert len(own) == grid ** (n - 1)
            assert len({tuple(sorted(map(tuple, np.rint(grid * each)))) for each in own}) == len(own)
            # each has the volume of the whole face, over their number
            np.testing.assert_allclose(np.abs(np.linalg.det(own)), grid ** -(n - 1.0))
        for rows, along in zip(corners[:20], pieces.directions[:20], strict=True):
            assert len(along) == n - 1
            if n > 1:  # numpy 1.26 knows no rank of a matrix without rows
                assert np.linalg.matrix_rank(np.vstack((along, rows[1:] - rows[0]))) == n - 1


@given(arrays(float, (10, 3), elements=st.integers(-2, 2)), chances(3))
def test_the_solver_wins_where_many_systems_are_singular(cumulative: Vector, target: Vector) -> None:
    found = solve(simplex_faces(3, 3), cumulative, target)
    c = found.weights @ cumulative[found.corners]
    assert float(c @ found.point - c.min()) <= ROUNDING * np.abs(cumulative).max()


# --- the oracle ---


def test_groups_share_the_triangulation() -> None:
    payoff = SimplexCalibration(3) + SimplexCalibration(3, context=oc.by("hour", values=range(2)))
    hour = lambda rng: {"hour": int(rng.integers(2))}  # noqa: E731
    check_guarantee(payoff, LABELS, oracle=SimplexGrid(), x=hour, rounds=40, held=1.0)
    recal = oc.Forecaster(LABELS, payoff, oracle=SimplexGrid())
    recal.engine.ledger.total[:] = np.random.default_rng(0).normal(size=recal.engine.ledger.total.size)
    assert recal.predict([0.2, 0.3, 0.5], x={"hour": 1}).certificate.half_space <= ROUNDING


def test_without_debts_the_expert_is_result_as_it_is() -> None:
    recal = oc.Forecaster(LABELS, SimplexCalibration(), oracle=SimplexGrid())
    np.testing.assert_allclose(recal.predict([0.2, 0.3, 0.5]).mass, [0.2, 0.3, 0.5], atol=1e-3)


# --- the paper's construction ---


def test_the_fixed_point_of_the_paper_need_not_exist() -> None:
    """Owed (1, 0, 0) everywhere, c vanishes nowhere; the solutions are the forecasts without the first label."""
    cumulative = np.tile([1.0, 0.0, 0.0], (15, 1))
    recal = oc.Forecaster(LABELS, SimplexCalibration(4), oracle=SimplexGrid())
    recal.engine.ledger.total[:] = cumulative.ravel()
    p = np.asarray(recal.predict([0.2, 0.3, 0.5]).mass)
    assert p[0] == pytest.approx(0.0)
    # of these, the one to which the expert draws
    np.testing.assert_allclose(p[1:], [0.4, 0.6], atol=1e-3)


# --- at the edge ---


def test_what_it_cannot_run_rounds_is_refused() -> None:
    for payoff in (
        oc.LabelCalibration(),
        SimplexCalibration(2) + oc.LabelCalibration(),
        SimplexCalibration(2) + SimplexCalibration(3),
    ):
        with pytest.raises(TypeError, match=SENTENCE):
            oc.Forecaster(LABELS, payoff, oracle=SimplexGrid())
    with pytest.raises(ValueError, match=rf"{MOST_PIECES:,} pieces.*got 10 labels with a grid of 4: 2\.4e\+06 pieces"):
        oc.Forecaster(oc.Labels(range(10)), SimplexCalibration(4), oracle=SimplexGrid())
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster(oc.Labels(range(40)), SimplexCalibration(8))
    for space in (oc.Line(), oc.HalfLine(0), oc.Circle(24, cells=4)):
        with pytest.raises(TypeError, match=SENTENCE):
            SimplexCalibration().on(space)
    with pytest.raises(ValueError, match=SENTENCE):
        SimplexCalibration(0)


# --- the bins of a quantity ---

QUANTITY = oc.Interval(-1, 3, cells=24, tail_cells=3)


def test_within_a_bin_the_mass_lies_as_the_experts_does() -> None:
    recal = oc.Forecaster(QUANTITY, SimplexCalibration(2, bins=[1.0]), oracle=SimplexGrid())
    expert = oc.Normal(0.8, 0.3)
    before = recal.peek(expert)
    recal.engine.ledger.total[:] = np.random.default_rng(3).normal(size=recal.engine.ledger.total.size)
    p = recal.predict(expert)
    assert abs(p.cdf(1.0) - before.cdf(1.0)) > 0.05
    low = p.right <= 1.0
    np.testing.assert_array_equal(p.left, before.left)
    for inside in (low, ~low):
        if p.mass[inside].sum() > 0.0:
            shape, was = (each.mass[inside] / each.mass[inside].sum() for each in (p, before))
            np.testing.assert_allclose(shape, was, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "space"),
    [
        (lambda: SimplexCalibration(bins=1), QUANTITY),
        (lambda: SimplexCalibration(bins=[0.0, 0.0]), QUANTITY),
        (lambda: SimplexCalibration(bins=[-1.0, 0.0]), QUANTITY),
        (lambda: SimplexCalibration(bins=[0.0, 3.0]), QUANTITY),
        (lambda: SimplexCalibration(bins="many"), QUANTITY),
        (lambda: SimplexCalibration(bins=3), LABELS),
    ],
)
def test_bad_bins_are_refused(make: Any, space: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make().on(space)


def test_one_oracle_has_one_cut() -> None:
    payoff = SimplexCalibration(2, bins=3) + SimplexCalibration(2, bins=[0.0, 1.0])
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Forecaster(QUANTITY, payoff, oracle=SimplexGrid())
    oc.Forecaster(QUANTITY, payoff)
