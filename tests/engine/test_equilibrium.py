"""The O(K) equilibrium kernel against a slow dense twin, and the exact two-cell oracle against brute force."""

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from scipy.optimize import root

import orcast as oc
from helpers import NODES, WEIGHTS, Vector, cells_around, engine_of, fast_payoff, full_payoff, positive, record_of
from orcast import ledger
from orcast.constants import EASY, STRICT, STRICT_STEPS, TINY_MASS
from orcast.engine.kernels import equilibrium as equilibrium_kernels
from orcast.engine.kernels import judging
from orcast.engine.kernels.equilibrium import LogitField, NewtonRows
from orcast.engine.kernels.records import CellRow, RoundInfo

SMALL = oc.Interval(0, 1, cells=14, tail_cells=2)
LARGE = oc.Interval(0, 1)
TENTHS = np.arange(1, 10) / 10
PERCENTS = np.arange(1, 100) / 100


@dataclass
class Case:
    """An equation log p = log x + <S, payoff(p, k)> / temperature + const; S part by part, weights included."""

    left: Vector
    right: Vector
    prior: Vector
    expert: Vector
    levels: Vector
    quantile: Vector
    moments: Vector
    crps: float
    mse: float
    temperature: float

    @property
    def n(self) -> int:
        return self.left.size

    @property
    def middle(self) -> Vector:
        return 0.5 * (self.left + self.right)


def grown(rng: np.random.Generator, levels: Vector, rounds: int) -> Vector:
    """The normalised quantile ledger of a forecaster who is off: outcomes at skewed shares of the forecasts."""
    shares = rng.beta(*rng.uniform(0.7, 1.5, size=2), size=rounds)
    bound = oc.QuantileCalibration(levels).bound
    return np.sum((shares[:, None] <= levels) - levels, axis=0) / np.sqrt(bound)


def case(seed: int, parts: str, *, large: bool = False, rounds: int = 30) -> Case:
    rng = np.random.default_rng(seed)
    space = LARGE if large else SMALL
    q = np.clip(rng.uniform(0.2, 0.8) + rng.uniform(0.01, 0.3) * space.scores, 0, 1)
    if seed % 3 == 0:
        q = np.round(q * 5) / 5  # atoms
    left, right, prior, _ = cells_around(space, q)
    prior = 0.99 * prior + 0.01 / prior.size  # the twin cannot tell masses near zero from zero
    levels = PERCENTS if large else TENTHS
    weight = 1.0 / np.sqrt(oc.QuantileCalibration(levels).bound)
    size = np.sqrt(rounds)
    return Case(
        left,
        right,
        prior,
        rng.dirichlet(np.full(left.size, 2.0)),
        levels,
        weight * grown(rng, levels, rounds) if "quantile" in parts else np.zeros(levels.size),
        size * rng.normal(size=2) if "moments" in parts else np.zeros(0),
        size * rng.random() if "crps" in parts else 0.0,
        size * rng.random() if "mse" in parts else 0.0,
        temperature=float(rng.uniform(1.0, 4.0)),
    )


# --- the slow twin, from the definitions alone ---


def quantile_field(case: Case, p: Vector) -> Vector:
    """<S, clip((a - F_{k-1}) / p_k, 0, 1) - a>, cell by cell."""
    above = np.cumsum(p)[:, None]
    below = above - p[:, None]
    return (np.clip((case.levels - below) / p[:, None], 0.0, 1.0) - case.levels) @ case.quantile


def dense_field(case: Case, p: Vector) -> Vector:
    """<S, payoff(p, y)> averaged over each cell, with scores taken from whole forecasts at nodes in the cell."""
    played, expert = oc.Forecast(case.left, case.right, p), oc.Forecast(case.left, case.right, case.expert)
    v = quantile_field(case, p)
    for k in range(case.n):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            y = case.left[k] + node * (case.right[k] - case.left[k])
            for order, s in enumerate(case.moments, start=1):
                v[k] += weight * s * (played.moment(order) - y**order)
            if case.crps:
                v[k] += weight * case.crps * (played.crps(y) - expert.crps(y))
            if case.mse:
                v[k] += weight * case.mse * ((played.mean() - y) ** 2 - (expert.mean() - y) ** 2)
    return v


def dense_residual(case: Case, lp: Vector) -> Vector:
    p = np.exp(lp - np.logaddexp.reduce(lp))
    r = np.log(p) - np.log(case.prior) - dense_field(case, p) / case.temperature
    return r - p @ r


def dense_solve(case: Case) -> Vector:
    """Newton with finite differences on log p, the first one pinned; started at the prior."""
    start = np.log(case.prior)

    def equations(free: Vector) -> Vector:
        r = dense_residual(case, np.concatenate(([start[0]], free)))
        return r[1:] - r[0]

    found = root(equations, start[1:], method="hybr", tol=1e-12)
    lp = np.concatenate(([start[0]], found.x))
    assert np.abs(dense_residual(case, lp)).max() < 1e-8
    return np.exp(lp - np.logaddexp.reduce(lp))


# --- the kernel ---


def tables(levels: Vector, s: Vector) -> tuple[Vector, Vector]:
    knots, slopes = np.empty(levels.size + 1), np.empty(levels.size + 1)
    equilibrium_kernels.field_tables(s, levels, knots, slopes)
    return knots, slopes


def arguments(case: Case) -> tuple[Vector, LogitField]:
    """What the kernel takes: the part of the field that does not depend on p goes into the base."""
    base = np.log(case.prior)
    for order, s in enumerate(case.moments, start=1):
        unit = [oc.Forecast([a], [b], [1.0]).moment(order) for a, b in zip(case.left, case.right, strict=True)]
        base = base - s * np.array(unit) / case.temperature
    expert = oc.Forecast(case.left, case.right, case.expert)
    y = case.left[:, None] + NODES * (case.right - case.left)[:, None]
    crps = np.array([[expert.crps(spot) for spot in row] for row in y]) @ WEIGHTS
    crps_pull, mse_pull = case.crps / case.temperature, case.mse / case.temperature
    base = base - crps_pull * crps + 2.0 * mse_pull * expert.mean() * case.middle
    knots, slopes = tables(case.levels, case.quantile / case.temperature)
    width = case.right - case.left
    return base, LogitField(case.levels, knots, slopes, crps_pull, width, mse_pull, case.middle)


def solved(case: Case, tolerance: float = 1e-10, steps: int = 50) -> tuple[Vector, float]:
    lp = np.log(case.prior)
    work = np.empty((equilibrium_kernels.SCRATCH_ROWS, case.n + 2))
    error = equilibrium_kernels.solve(case.n, lp, *arguments(case), tolerance, steps, work)
    return lp, error


PARTS = ["quantile", "moments", "quantile moments", "quantile crps", "quantile mse", "quantile moments crps mse"]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_finds_what_the_dense_solver_finds(parts: str, seed: int) -> None:
    this = case(seed, parts)
    lp, error = solved(this)
    assert error <= 1e-10
    assert np.exp(lp).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.exp(lp) == pytest.approx(dense_solve(this), abs=1e-7)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("seed", range(6))
def test_the_error_it_returns_is_honest(parts: str, seed: int) -> None:
    """Also where the ledger is so large that it does not get there."""
    this = case(seed, parts, large=True, rounds=400)
    lp, error = solved(this, tolerance=1e-9, steps=100)
    # masses below TINY_MASS are treated as zero, so the twin cannot judge their cells
    real = np.exp(lp) > 100 * TINY_MASS
    r = dense_residual(this, lp)[real]
    assert r.max() - r.min() <= 2.0 * error + 1e-6


@pytest.mark.parametrize("parts", PARTS)
def test_newton_gets_there_in_few_steps(parts: str) -> None:
    for seed in range(40):
        _, error = solved(case(seed, parts, large=True, rounds=20), STRICT, STRICT_STEPS)
        assert error <= STRICT


@pytest.mark.parametrize("parts", PARTS)
def test_residual_is_the_definition(parts: str) -> None:
    this = case(5, parts)
    rng = np.random.default_rng(9)
    lp = np.log(rng.dirichlet(np.ones(this.n)))
    rows = NewtonRows(*np.empty((5, this.n + 2)))
    worst = equilibrium_kernels.residual(this.n, lp + 3.0, *arguments(this), rows)
    F, p, v, r = rows.F, rows.p, rows.v, rows.r
    expected = dense_residual(this, lp)
    assert r[: this.n] == pytest.approx(expected, abs=1e-9)
    assert worst == pytest.approx(np.abs(expected).max(), abs=1e-9)
    assert p[: this.n] == pytest.approx(np.exp(lp), abs=1e-12)
    assert F[: this.n] == pytest.approx(np.cumsum(np.exp(lp)), abs=1e-12)
    assert v[: this.n] == pytest.approx(quantile_field(this, np.exp(lp)) / this.temperature, abs=1e-9)


def test_a_rejected_step_leaves_what_was_there() -> None:
    """Zero steps: nothing but normalised."""
    this = case(1, "quantile")
    lp, error = solved(this, steps=0)
    assert np.exp(lp) == pytest.approx(this.prior)
    assert error == pytest.approx(np.abs(dense_residual(this, np.log(this.prior))).max())


# --- the field's tables ---

ledgers = arrays(np.float64, 9, elements=st.floats(-50, 50, allow_subnormal=False) | st.integers(-3, 3).map(float))


@given(ledgers)
def test_field_tables_are_the_definition(s: Vector) -> None:
    knots, slopes = tables(TENTHS, s)
    u = np.concatenate(([0.0], TENTHS))
    # H(u) = sum_a s_a (min(u, a) - a u)
    assert knots == pytest.approx((np.minimum(u[:, None], TENTHS) - u[:, None] * TENTHS) @ s, abs=1e-9)
    # its slope right of u: sum_a s_a (1{u < a} - a)
    assert slopes == pytest.approx(((u[:, None] < TENTHS) * 1.0 - TENTHS) @ s, abs=1e-9)
    # and H ends at zero
    assert knots[-1] + slopes[-1] * (1 - TENTHS[-1]) == pytest.approx(0.0, abs=1e-9)


# --- the oracle that uses it ---


def random_game(seed: int, payoff: object, temperature: float) -> oc.Recalibrator:
    """A game with a ledger from nowhere and as much budget as one could want."""
    game = oc.Recalibrator(LARGE, payoff, oracle=oc.Equilibrium(temperature=temperature))  # type: ignore[arg-type]
    rng, engine = np.random.default_rng(seed), engine_of(game)
    count = engine.rules.levels.size
    engine.memory.total[:] = rng.normal(size=engine.memory.total.size)
    if count:
        engine.memory.total[:count] = grown(rng, engine.rules.levels, 20)
    engine.memory.account[ledger.Account.BUDGET] = 1e9
    return game


def cell_means(game: oc.Recalibrator) -> tuple[Vector, Vector, Vector]:
    """Of the round that waits: log prior, log of what was played, and <S_+, payoff> averaged over each cell."""
    engine, record = engine_of(game), record_of(game)
    total = positive(engine.memory.total, engine.ledger.layout.sides)
    n = int(record.info[RoundInfo.CELLS])
    left, right = record.cells[CellRow.LEFT, :n], record.cells[CellRow.RIGHT, :n]
    # the equation is solved in the units of regret that belong to its prior
    judging.regret_units(engine.rules, engine.memory, n, record, record.cells[CellRow.PRIOR])
    field = np.zeros(n)
    for k in range(n):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            y = left[k] + node * (right[k] - left[k])
            field[k] += weight * (total @ fast_payoff(engine, record, y, k))
    return np.log(record.cells[CellRow.PRIOR, :n]), np.log(record.cells[CellRow.PLAYED, :n]), field


@pytest.mark.parametrize("payoff", [oc.QuantileCalibration(), full_payoff(), oc.MomentMatching(3)], ids=str)
@pytest.mark.parametrize("temperature", [1.0, 3.0, 30.0])
def test_the_oracle_plays_the_equilibrium_of_the_whole_payoff(payoff: object, temperature: float) -> None:
    for seed in range(5):
        game = random_game(seed, payoff, temperature)
        game.predict(oc.Normal(0.45, 0.15))
        log_prior, log_played, field = cell_means(game)
        r = log_played - log_prior - field / temperature
        assert r.max() - r.min() <= 20.0 * EASY
        # so no outcome can gain more than the temperature allows (method, section 2)
        tilt = log_played - log_prior
        played = np.exp(log_played)
        most = temperature * (tilt.max() - played @ tilt + (r.max() - r.min()))
        assert field.max() <= most + 1e-9


def test_the_tilt_of_moments_is_explicit() -> None:
    game = random_game(3, oc.MomentMatching(2), 0.5)
    game.predict(oc.Normal(0.45, 0.15))
    log_prior, log_played, _ = cell_means(game)
    p = game.predict(oc.Normal(0.45, 0.15))
    engine = engine_of(game)
    weight = 1.0 / np.sqrt(2.0)
    pull = engine.memory.total * weight / 0.5
    unit = [oc.Forecast([a], [b], [1.0]) for a, b in zip(p.left, p.right, strict=True)]
    tilt = -np.array([pull[0] * cell.moment(1) + pull[1] * cell.moment(2) for cell in unit])
    rest = log_played - log_prior - tilt
    assert rest == pytest.approx(rest[0], abs=2 * EASY)


@pytest.mark.parametrize("payoff", [oc.QuantileCalibration(), full_payoff()], ids=str)
def test_a_high_temperature_leaves_the_expert_alone(payoff: object) -> None:
    distances = []
    for temperature in (1.0, 20.0, 1e9):
        game = random_game(1, payoff, temperature)
        game.predict(oc.Normal(0.45, 0.15))
        log_prior, log_played, _ = cell_means(game)
        distances.append(np.abs(log_played - log_prior).max())
    assert (np.diff(distances) < 0.0).all()
    assert distances[-1] < 1e-6


def test_an_empty_ledger_leaves_the_expert_alone() -> None:
    game = oc.Recalibrator(LARGE, oracle=oc.Equilibrium())
    game.predict(oc.Normal(0.45, 0.15))
    log_prior, log_played, _ = cell_means(game)
    assert log_played == pytest.approx(log_prior, abs=1e-12)


def test_a_late_outcome_raises_the_temperature() -> None:
    record = engine_of(random_game(1, oc.QuantileCalibration(), 2.0)).predict(None, pending=3.0)
    assert record.round.info[RoundInfo.TEMPERATURE] > 2.0


# --- two cells ---


def quantile_payoff(k: int, p: Vector, levels: Vector, out: Vector) -> None:
    """Of an outcome in cell k."""
    before = float(p[:k].sum())
    out[:] = [equilibrium_kernels.level_share(a, before, p[k]) - a for a in levels]


def half_space(s: Vector, levels: Vector, p: Vector) -> float:
    """The largest <S, payoff> over all cells, each evaluated for itself."""
    out = np.empty(levels.size)
    worst = -np.inf
    for k in range(p.size):
        quantile_payoff(k, p, levels, out)
        worst = max(worst, float(s @ out))
    return worst
