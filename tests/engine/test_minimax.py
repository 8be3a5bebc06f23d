"""What the dense engine tries where no equilibrium holds: matrix games, walks over a grid, mass at the two ends."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.optimize import linprog

import orcast as oc
from adversaries import Greedy, run_rounds
from orcast.engine.dense import minimax
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.minimax import lowest_maximum, two_ends
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.dense.simplicial import rounded, walk
from orcast.ledger import Account, CertificateField
from orcast.payoffs import Payoff
from orcast.payoffs.base import CellPayoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff
from orcast.testing import some_expert

Vector = NDArray[np.float64]

seeds = st.integers(0, 2**32 - 1)


# --- matrix games and walks ---


@given(seeds, st.integers(1, 12), st.integers(1, 12), st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_lowest_maximum_is_that_of_a_linear_program(seed: int, rows: int, columns: int, scale: float) -> None:
    matrix = scale * np.random.default_rng(seed).normal(size=(rows, columns))
    x, value = lowest_maximum(matrix)
    assert x.min() >= 0.0
    assert x.sum() == pytest.approx(1.0)
    assert (matrix @ x).max() == pytest.approx(value, abs=1e-8 * scale)
    program = linprog(
        np.append(np.zeros(columns), 1.0),
        A_ub=np.hstack((matrix, -np.ones((rows, 1)))),
        b_ub=np.zeros(rows),
        A_eq=np.append(np.ones(columns), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, None)] * columns + [(None, None)],
    )
    assert value == pytest.approx(program.fun, abs=1e-7 * scale)


@given(seeds, st.integers(1, 9), st.integers(1, 200))
def test_rounded_masses_are_the_nearest_on_the_grid(seed: int, n: int, grid: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.full(n, 0.5))
    places = rounded(p, grid)
    assert places.sum() == grid
    assert places.min() >= 0
    assert np.abs(places - p * grid).max() < 1.0 + 1e-6


def curved(seed: int, n: int) -> Any:
    """A field with the mean zero, and folds."""
    matrix = np.random.default_rng(seed).normal(size=(n, n))

    def field(p: Vector) -> Vector:
        v: Vector = np.tanh(3.0 * matrix @ p) + np.sin(9.0 * matrix.T @ p)
        return v - p @ v

    return field


@given(seeds, st.integers(2, 5))
def test_a_walk_ends_around_a_solution(seed: int, n: int) -> None:
    """All labels are there: each cell has a corner at which it has mass and the least value, which is at most 0."""
    field, start = curved(seed, n), np.random.default_rng(seed + 1).dirichlet(np.ones(n))
    corners, found = walk(field, start, 40, 10_000)
    assert found
    assert corners.shape == (n, n)
    assert corners.min() >= 0.0
    assert corners.sum(axis=1) == pytest.approx(1.0)
    assert np.abs(corners - corners[0]).max() <= 2.0 / 40 + 1e-9
    least = [int(np.where(p > 0.0, field(p), np.inf).argmin()) for p in corners]
    assert sorted(least) == list(range(n))
    # so the field is at most 0 but for how much it changes within the simplex
    assert field(corners.mean(axis=0)).max() <= 40.0 * n / 40


def test_a_walk_may_be_cut_short() -> None:
    corners, found = walk(curved(3, 12), np.full(12, 1.0 / 12), 1000, 5)
    assert not found
    assert corners.sum(axis=1) == pytest.approx(1.0)


# --- what they are given ---

PAYOFFS: dict[str, tuple[oc.spaces.Space, Payoff]] = {
    "threshold": (oc.Interval(0, 1), oc.payoffs.ThresholdCalibration([0.2, 0.5, 0.8])),
    "swap regret": (oc.Interval(0, 1), oc.payoffs.SwapRegret([0.2, 0.8], lambda a, y: -((a - y) ** 2))),
    "simplex": (oc.Labels(list("abcd")), oc.payoffs.SimplexCalibration()),
    "regret": (oc.Labels(list("abcd")), oc.NoRegret(oc.CRPS())),
    "decision": (oc.Labels(list("abcd")), oc.payoffs.DecisionCalibration([0, 1], lambda a, y: float(a) * (y == "a"))),
}


def a_search(name: str, seed: int) -> tuple[CandidateSearch, Vector]:
    """A round with a random ledger, and masses of it."""
    space, payoff = PAYOFFS[name]
    recal = oc.Forecaster(space, payoff + oc.payoffs.SimplexCalibration() if name == "decision" else payoff)
    rng = np.random.default_rng(seed)
    recal.predict(oc.Normal(0.5, 0.2) if isinstance(space, oc.Interval) else [0.4, 0.3, 0.2, 0.1], id=0)
    engine = recal.engine
    assert isinstance(engine, DenseEngine)
    ledger = engine.ledger
    ledger.total[:] = 3.0 * rng.normal(size=ledger.total.size)
    record = recal.rounds.pending[0].record
    search = CandidateSearch(ledger, record.cell_payoffs, record.context, 0.0, 1.0)
    p = rng.dirichlet(np.ones(engine.prior.result(record.round).size))
    return search, 0.9 * p + 0.1 / p.size


def true_field(cell_payoff: CellPayoff, s: Vector, p: Vector) -> Vector:
    value: Vector = s @ cell_payoff.table(p)
    return value


@pytest.mark.parametrize("name", PAYOFFS)
@pytest.mark.parametrize("seed", range(3))
def test_the_derivative_with_its_constants(name: str, seed: int) -> None:
    """Against differences of <s, payoff>, towards each cell."""
    search, p = a_search(name, seed)
    search.rescale(p)
    kinds = minimax.Kinds([], p)
    found = minimax.changes(search, p, kinds)
    step = 1e-5
    for j in range(0, p.size, max(p.size // 7, 1)):
        to = np.eye(p.size)[j] - p
        total = np.zeros(p.size)
        for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
            field = cell_payoff.field if cell_payoff.one_sided else lambda s, p, own=cell_payoff: true_field(own, s, p)
            total += (field(s, p + step * to) - field(s, p - step * to)) / (2.0 * step)
        size = 1.0 + float(np.abs(total).max())
        assert found[:, j] == pytest.approx(total, abs=2e-3 * size)


def test_cells_between_two_thresholds_are_alike() -> None:
    search, p = a_search("threshold", 0)
    kinds = minimax.Kinds(search.cell_payoffs, p)
    assert kinds.count == 4
    assert kinds.spread @ kinds.masses(p) == pytest.approx(p)
    linear, norm = search.assess(p)
    for kind in range(4):
        own = kinds.of_cell == kind
        assert np.ptp(linear[own]) <= 1e-12 * (1.0 + np.abs(linear).max())
        assert np.ptp(norm[own]) <= 1e-12
    assert minimax.Kinds(a_search("simplex", 0)[0].cell_payoffs, np.full(4, 0.25)).count == 4


@given(seeds, st.booleans())
def test_mass_at_the_two_ends_wins_for_quantiles_and_intervals(seed: int, both: bool) -> None:
    rng = np.random.default_rng(seed)
    quantiles = QuantileCellPayoff(np.sort(rng.uniform(0.02, 0.98, 5)))
    ends = QuantileCellPayoff(np.array([0.05, 0.25, 0.75, 0.95]))
    parts: list[CellPayoff] = [IntervalCellPayoff(ends, np.array([[0, 3], [1, 2]]))]
    parts += [quantiles] * both
    cumulative = [rng.normal(size=part.size) for part in parts]
    p = two_ends(parts, cumulative, 6)
    assert p is not None
    assert sum(s @ part.table(p) for part, s in zip(parts, cumulative, strict=True)).max() <= 1e-9


# --- the resolution ---


def test_the_resolution_of_a_witness_that_changes_within_cells() -> None:
    search, p = a_search("swap regret", 1)
    search.consider(np.log(p), 0.0)
    (cell_payoff,), (s,) = search.cell_payoffs, search.cumulative
    grid = cell_payoff.plain.witness  # type: ignore[attr-defined]
    c = cell_payoff.context(p) @ s.reshape(2, 2)  # type: ignore[attr-defined]
    most = np.maximum(-c[:, None] * grid.low, -c[:, None] * grid.high).sum(axis=0) + c @ grid.mean
    claimed = float(search.resolutions().max())
    assert claimed >= most.max() - 1e-12
    assert claimed > 0.0
    flat, masses = a_search("threshold", 1)
    flat.consider(np.log(masses), 0.0)
    assert flat.resolutions().max() == 0.0


def test_a_promise_grows_by_what_cells_cannot_tell_apart_and_no_more() -> None:
    """On a line the cells are wide for this utility: no forecast on them keeps the rule."""
    swap = oc.payoffs.SwapRegret([1.0, 5.0, 9.0], lambda a, y: -max(2.0 * (a - y), y - a) / 10.0, utility_range=3.0)
    recal = oc.Forecaster(oc.Line(), swap)
    for t in range(3):
        recal.predict(oc.Normal(5.0, 1.0))
        recal.update(5.0 + t)
    ledger = recal.engine.ledger
    ledger.total[:] = 20.0 * np.random.default_rng(4).normal(size=ledger.total.size)
    ledger.account[Account.BUDGET] = ledger.square
    p = recal.predict(oc.Normal(5.0, 400.0), id="late")
    certificate = recal.rounds.pending["late"].record.certificate
    assert p.certificate.holds
    assert p.certificate.excess == 0.0
    linear = certificate[CertificateField.WORST] - ledger.square
    assert p.certificate.bound >= linear * (1.0 - 1e-9)
    before = ledger.account[Account.BUDGET]
    recal.update(5.0, id="late")
    assert ledger.account[Account.BUDGET] == pytest.approx(before + p.certificate.bound)
    assert ledger.square <= ledger.account[Account.BUDGET] * (1.0 + 1e-9)


# --- whole games ---


def test_a_users_payoff_holds_against_a_confined_adversary() -> None:
    space = oc.Interval(0, 1, cells=24, tail_cells=3)
    recal = oc.Forecaster(
        space, oc.Recipe(lambda y: [y <= 0.5], lambda x, p: [0.7, 0.7 * p.cdf(0.5)], bound=1.0, jumps=[0.5])
    )
    rng = np.random.default_rng(1)

    def expert(t: int) -> Any:
        return some_expert(space, rng) if t % 3 == 2 else oc.Normal(0.5 + 0.3 * np.sin(t / 20.0), 0.1)

    adversary = Greedy(within=(0.4, 0.6))
    for turn in run_rounds(recal, adversary, 160, experts=expert, rng=np.random.default_rng(0)):
        assert turn.forecast.certificate.holds
        record = recal.rounds.pending[turn.id].record
        recal.update(turn.y, id=turn.id)
    kinds = minimax.Kinds(record.cell_payoffs, recal.engine.prior.result(record.round))
    assert kinds.count == 2
    assert recal.guarantee.excess == 0.0
    assert recal.guarantee.miscalibration > 0.9 * recal.guarantee.promised
