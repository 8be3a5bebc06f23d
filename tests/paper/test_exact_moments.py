"""Moment calibration: the triangulated payoff, the solver of its half-space problem, and the oracle, by brute force."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast.paper.exact.moments import BETWEEN, HullSolver, MomentHull
from orcast.paper.exact.triangles import moment_faces, solve
from orcast.payoffs.triangulated import MomentBasedCalibration, MomentCellPayoff, moment_mesh
from orcast.testing import check_guarantee
from orcast.testing.checks import cell_payoffs_of

Vector = NDArray[np.float64]

SPACE = oc.Interval(-2, 10)
SMALL = oc.Interval(-2, 10, cells=24, tail_cells=3)
# Tolerance for rounding, as a share of the largest cumulative payoff.
ROUNDING = 1e-9


# --- the mesh and the payoff ---


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


# --- the solver ---


def ledgers(vertices: int, dimension: int, rng: np.random.Generator, count: int) -> list[Vector]:
    """Random ones of all sizes, and the ones in which systems are singular."""
    found = []
    for i in range(count):
        s = rng.normal(size=(vertices, dimension)) * 10.0 ** rng.uniform(-6, 6)
        match i % 10:
            case 1:
                s[rng.random(vertices) < 0.7] = 0.0
            case 2:
                one = s[0, 0]
                s[:] = 0.0
                s[rng.integers(vertices), rng.integers(dimension)] = one
            case 3:
                s[:] = rng.normal(size=dimension)
            case 4:
                s *= 10.0 ** rng.uniform(-8, 8, size=(vertices, 1))
            case 5:
                s[:, rng.integers(dimension)] = 0.0
            case 6:
                s = rng.integers(-1, 2, size=s.shape).astype(float)
            case 7:
                s[:] = 0.0
            case 8:
                s[:] = float(rng.normal())
            case _:
                pass
        found.append(s)
    return found


@pytest.mark.parametrize("grid", [2, 8, 16])
def test_the_solver_finds_a_point_that_no_corner_can_push(grid: int) -> None:
    rng = np.random.default_rng(grid)
    faces, mesh = moment_faces(grid), moment_mesh(grid)
    for cumulative in ledgers(len(mesh.points), 2, rng, 300):
        mean = rng.random()
        found = solve(faces, cumulative, np.array([mean, mean**2 + rng.random() * (mean - mean**2)]))
        local = mesh.locate(found.point)
        c = local.weights @ cumulative[local.corners]
        np.testing.assert_allclose(found.weights @ mesh.points[found.corners], found.point, atol=1e-12)
        worst = float((c @ found.point - faces.extremes @ c).max())
        assert worst <= ROUNDING * np.abs(cumulative).max()
        assert found.worst == pytest.approx(worst, abs=1e-12 + 1e-9 * np.abs(cumulative).max())


# --- the oracle ---


def recal_of(grid: int = 8, **options: Any) -> oc.Forecaster:
    return oc.Forecaster(SPACE, MomentBasedCalibration(grid), oracle=MomentHull(**options))


def test_groups_share_the_triangulation() -> None:
    payoff = MomentBasedCalibration(4) + MomentBasedCalibration(4, context=oc.by("hour", values=range(2)))
    recal = oc.Forecaster(SPACE, payoff, oracle=MomentHull())
    rng = np.random.default_rng(0)
    recal.engine.ledger.total[:] = rng.normal(size=recal.engine.ledger.total.size)
    for hour in (0, 1):
        p = recal.predict(oc.Normal(3, 2), x={"hour": hour})
        assert p.certificate.half_space <= ROUNDING
        assert p.certificate.approximation <= 10.0 / (4.0 * 4**2)
    check_guarantee(payoff, SPACE, oracle=MomentHull(), x=lambda rng: {"hour": int(rng.integers(2))}, rounds=40)


# --- the forecast ---


@given(grid=st.sampled_from([2, 8, 16]), mean=st.floats(0.0, 1.0), share=st.floats(0.0, 1.0), middle=st.floats(-2, 10))
def test_forecasts_have_the_moments_asked_for(grid: int, mean: float, share: float, middle: float) -> None:
    """Corners and edges of the polygon included: there the masses are atoms."""
    recal = recal_of(grid)
    recal.predict(oc.Normal(middle, 1.0))
    engine: Any = recal.engine
    record = recal.rounds.pending[None].record
    solver: HullSolver = engine.solver
    lowest, _ = moment_mesh(grid).chord(mean)
    f = np.array([mean, lowest + share * (mean - lowest)])
    witness = record.cell_payoffs[0].witness.mean
    masses = solver.with_moments(engine.prior.result(record.round), witness, f)
    assert masses.min() >= 0.0
    assert masses.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(witness @ masses, f, atol=1e-9)


def test_without_debts_the_expert_is_result_as_it_is() -> None:
    p = recal_of().predict(oc.Normal(4.0, 0.5))
    assert p.mean() == pytest.approx(4.0, abs=0.01)
    assert 0.5 < p.std() < 0.6  # its tails are those of the cells
    assert p.mass.size == BETWEEN + 9
    assert p.certificate.half_space == p.certificate.approximation == 0.0


# --- the paper's constructions ---


def test_the_fixed_point_of_the_paper_need_not_exist() -> None:
    """Owed (1, 0) everywhere, c vanishes nowhere: the solution is a corner, and the forecast the lower bound."""
    mesh = moment_mesh(8)
    cumulative = np.tile([1.0, 0.0], (len(mesh.points), 1))
    rng = np.random.default_rng(0)
    for mean in rng.random(200):
        local = mesh.locate(np.array([mean, mean**2 + rng.random() * (mean - mean**2)]))
        assert np.linalg.norm(local.weights @ cumulative[local.corners]) == pytest.approx(1.0)
    recal = recal_of()
    recal.engine.ledger.total[:] = cumulative.ravel()
    p = recal.predict(oc.Normal(4.0, 1.0))
    assert p.mean() == pytest.approx(SPACE.low)
    assert p.certificate.half_space <= ROUNDING


# --- at the edge ---


def test_what_it_cannot_run_rounds_is_refused() -> None:
    for payoff in (
        oc.MomentMatching(2),
        MomentBasedCalibration(4) + oc.MomentMatching(2),
        MomentBasedCalibration(4) + MomentBasedCalibration(8),
    ):
        with pytest.raises(TypeError, match=SENTENCE):
            oc.Forecaster(SPACE, payoff, oracle=MomentHull())
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster(SMALL, MomentBasedCalibration(25), oracle=MomentHull())
    for space in (oc.Line(), oc.Binary(), oc.Labels(["a", "b"])):
        with pytest.raises(TypeError, match=SENTENCE):
            MomentBasedCalibration().on(space)
    for grid in (1, 65):
        with pytest.raises(ValueError, match=SENTENCE):
            MomentBasedCalibration(grid)
    with pytest.raises(TypeError, match=SENTENCE):
        MomentBasedCalibration(2.5)  # type: ignore[arg-type]
