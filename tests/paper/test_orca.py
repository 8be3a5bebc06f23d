"""ORCA: its gradients, Nature's linear program, and what it says of a forecast."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_contract import ACTIONS, FITS, PAYOFFS, SPACES, bounded, utility

import orcast as oc
from helpers import SENTENCE, Vector, check_kept, positive, positive_square, whole
from orcast import ledger
from orcast.adapters import expert_row
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine, DenseRecord
from orcast.paper.orca import LEAST, slopes
from orcast.payoffs import CellGrid, CellPayoff, Payoff
from orcast.payoffs.calibration import IntervalCellPayoff, QuantileCellPayoff
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import Space
from orcast.testing import cell_payoffs_of, random_masses, some_expert, worst_outcome

UNIT = oc.Interval(0, 1)
INTERVAL, LINE = SPACES["interval"], SPACES["line"]
CELLS = 12


# --- rounds with any cumulative payoffs ---


def features_of(name: str, rng: np.random.Generator) -> Any:
    x = PAYOFFS[name].x
    return x(rng) if callable(x) else x


def opened(
    space: Space,
    payoff: Payoff,
    oracle: oc.Orca,
    seed: int = 0,
    *,
    size: float = 1.0,
    rounds: int = 100,
    experts: int = 1,
    x: Any = None,
    positive_only: bool = False,
    usual: float | None = None,
) -> tuple[DenseEngine, DenseRecord]:
    """A round of a game with a random ledger, as large as a real one times `size`."""
    rng = np.random.default_rng(seed)
    names = tuple(f"expert {i}" for i in range(experts))
    engine = oracle.bind(BoundPayoff(space, payoff, names, None))
    assert isinstance(engine, DenseEngine)
    rows = np.array([expert_row(some_expert(space, rng), space)[0] for _ in names])
    if engine._ledger is None:
        engine.predict(rows, x)  # the sizes of its parts are known after a round
    total = engine.ledger.total
    total[:] = size * math.sqrt(rounds / total.size) * rng.standard_normal(total.size)
    if usual is not None:
        # experts that always lost this much
        for state in engine.states:
            if "loss" in state:
                state["loss"][:], state["count"][:] = 1e9 * usual, 1e9
    if positive_only:
        total[:] = np.abs(total)
    engine.ledger.account[[ledger.Account.ROUNDS, ledger.Account.WEIGHT]] = rounds
    return engine, engine.predict(rows, x)


def result(engine: DenseEngine, record: DenseRecord) -> Vector:
    return np.array(engine.prior.result(record.round))


def mean_payoff(engine: DenseEngine) -> Vector:
    """The mean payoff, one-sided coordinates through their positive part."""
    book = engine.ledger
    return positive(book.total, book.layout.side_list) / max(float(book.account[ledger.Account.WEIGHT]), 1.0)


def reached(engine: DenseEngine, record: DenseRecord, ys: Sequence[Any]) -> Vector:
    """<mean payoff, payoff(p, y)> for each outcome, by the payoff that would be added."""
    mean, layout = mean_payoff(engine), engine.ledger.layout
    return np.array([mean @ whole(layout, engine.payoff(record, y), record.context) for y in ys])


def everywhere_in(cell_grid: CellGrid, points: int = 9) -> list[float]:
    """Outcomes in every cell, both ends of the window among them."""
    inside = np.linspace(0.0, 1.0, points)
    return np.unique(cell_grid.left[:, None] + inside * (cell_grid.right - cell_grid.left)[:, None]).tolist()


def said(record: DenseRecord) -> tuple[float, float]:
    """The half-space value that a search claims, and by how much the truth may exceed it."""
    assert record.claim is not None
    return record.claim


# --- gradients ---


def along(function: Callable[[Vector], float], p: Vector, step: float = 1e-6) -> Vector:
    """Derivatives from p towards each vertex of the simplex, by central differences."""
    out = np.empty(p.size)
    for j in range(p.size):
        there, away = (1.0 - step) * p, (1.0 + step) * p
        there[j] += step
        away[j] -= step
        out[j] = (function(there) - function(away)) / (2.0 * step)
    return out


def close(found: Vector, wanted: Vector, p: Vector, tolerance: float = 1e-4) -> bool:
    """Whether two gradients by the masses are the same on the simplex: up to a constant."""
    found, wanted = found - p @ found, wanted - p @ wanted
    return bool(np.abs(found - wanted).max() <= tolerance * max(float(np.abs(wanted).max()), 1e-3))


def fixed_field(cell_payoff: CellPayoff, s: Vector, p: Vector) -> Vector:
    """<s, payoff> for each cell, regrets in fixed units."""
    return (
        cell_payoff.field(s, p) if isinstance(cell_payoff, RegretCellPayoff) else np.asarray(s @ cell_payoff.table(p))
    )


@pytest.mark.parametrize(
    ("name", "where"), [pair for pair in FITS if not pair[0].startswith("pinball")], ids=lambda v: v
)
def test_slopes_are_those_of_differences(name: str, where: str) -> None:
    rng = np.random.default_rng(0)
    for _, cell_payoff, grid in cell_payoffs_of(PAYOFFS[name].make(), SPACES[where], rng, PAYOFFS[name].x):
        cells = grid.cells
        for _ in range(1 if name == "custom" else 2):
            p = 0.7 * random_masses(cells, rng) + 0.3 / cells
            s, weights = rng.standard_normal(cell_payoff.size), rng.dirichlet(np.full(cells, 0.3))
            if isinstance(cell_payoff, RegretCellPayoff):
                cell_payoff.rescale(p)
            differences = along(lambda q: float(fixed_field(cell_payoff, s, q) @ weights), p, 1e-7)  # noqa: B023
            smoothed = isinstance(cell_payoff, (QuantileCellPayoff, IntervalCellPayoff))
            assert smoothed or close(slopes(cell_payoff, s, p, weights), differences, p)
            # nothing blows up where masses vanish
            edge = np.zeros(cells)
            edge[: max(cells // 3, 1)] = random_masses(max(cells // 3, 1), rng)
            assert np.isfinite(slopes(cell_payoff, s, edge, weights)).all()


def ends_of(levels: Vector) -> Vector:
    """From where to where each level is smeared: half way to its neighbours, or to an end."""
    middle = 0.5 * (levels[:-1] + levels[1:])
    return np.array([np.append(0.0, middle), np.append(middle, 1.0)])


def smeared(levels: Vector, p: Vector, ends: Vector | None = None) -> Vector:
    """Quantile payoffs, each averaged over levels between its ends: a row a level."""
    low, high = ends_of(levels) if ends is None else ends
    before = np.append(0.0, np.cumsum(p)[:-1])

    def integral(u: Vector) -> Vector:
        # of clip(t, 0, 1) up to u
        return np.where(u < 0.0, 0.0, np.where(u > 1.0, u - 0.5, 0.5 * u**2))

    rise = integral((high[:, None] - before) / p) - integral((low[:, None] - before) / p)
    return np.asarray(p * rise / (high - low)[:, None] - levels[:, None])


LEVELS = [[0.5], [0.9], [0.2, 0.3, 0.9], (np.arange(1, 100) / 100).tolist()]


@pytest.mark.parametrize("levels", LEVELS, ids=len)
def test_smooth_slopes_are_those_of_smeared_levels(levels: list[float]) -> None:
    rng = np.random.default_rng(0)
    grid = np.array(levels)
    cell_payoff = QuantileCellPayoff(grid)
    for _ in range(10):
        p = 0.9 * rng.dirichlet(np.full(CELLS, 2.0)) + 0.1 / CELLS
        s, weights = rng.standard_normal(grid.size), rng.dirichlet(np.full(CELLS, 0.3))
        differences = along(lambda q: float(s @ smeared(grid, q) @ weights), p)  # noqa: B023
        assert close(slopes(cell_payoff, s, p, weights), differences, p)
        # a little smearing is close to none, where no level is near
        near = smeared(grid, p, np.array([grid - 1e-6, grid + 1e-6]))
        assert np.abs(near - cell_payoff.table(p)).max() < 1e-4


EXACT: dict[str, Payoff] = {
    "quantile": oc.QuantileCalibration(),
    "interval": oc.IntervalCalibration([0.5, 0.9]),
    "moment": oc.MomentMatching(3),
    "marginal": oc.payoffs.ThresholdCalibration([0.0, 3.0], grid=1),
    "threshold": oc.payoffs.ThresholdCalibration([0.0, 3.0], grid=6),
    "decision": oc.payoffs.DecisionCalibration(ACTIONS, utility, utility_range=1.0),
    "swap regret": oc.payoffs.SwapRegret(ACTIONS, utility, utility_range=1.0),
    "recipe": oc.Recipe(bounded, bound=1.0, jumps=[5.0]),
    "crps": oc.NoRegret(oc.CRPS()),
    "mse": oc.NoRegret(oc.MSE()),
    "default": oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS()),
}


# --- the best iterate, and its certificate ---

JUDGED = [n for n in EXACT if n not in ("crps", "mse", "default")]


@pytest.mark.parametrize("name", JUDGED)
def test_more_steps_are_never_worse(name: str) -> None:
    better = 0
    for seed in range(3):
        oracles = [oc.Orca(cells=CELLS, steps=1, rate=1e-12), *(oc.Orca(cells=CELLS, steps=n) for n in (1, 4, 16, 64))]
        values = [said(opened(INTERVAL, EXACT[name], oracle, seed)[1])[0] for oracle in oracles]
        assert (np.diff(values) <= 1e-12).all()
        better += values[-1] < values[0] - 1e-6
    assert better > 0


FEW = oc.QuantileCalibration([0.5]) + oc.NoRegret(oc.CRPS(), weight=3.0)


def test_it_stops_where_adversary_can_reach_nothing() -> None:
    """Short of all its steps it only stops at a half-space value of at most zero."""
    values = [said(opened(UNIT, FEW, oc.Orca(steps=50, cells=CELLS), seed)[1])[0] for seed in range(30)]
    longer = [said(opened(UNIT, FEW, oc.Orca(steps=60, cells=CELLS), seed)[1])[0] for seed in range(30)]
    assert min(values) <= 1e-9
    assert all(a == b for a, b in zip(values, longer, strict=True) if a <= 1e-9)


def test_one_sided_debts_that_are_negative_are_no_debts() -> None:
    oracle = oc.Orca(cells=CELLS)
    engine, record = opened(UNIT, oc.NoRegret(oc.CRPS()), oracle, 0)
    engine.ledger.total[:] = -5.0
    record = engine.predict(expert_row(oc.Normal(0.3, 0.1), UNIT)[0][None, :])
    cell_grid = engine.prior.cell_grid(record.round, None)
    assert result(engine, record) == pytest.approx(cell_grid.expert, abs=LEAST)
    assert said(record)[0] == 0.0


CLAIMS = [
    (name, where) for name, where in FITS if where in ("interval", "half line", "circle", "binary", "box", "4 labels")
]


@pytest.mark.parametrize(("name", "where"), CLAIMS, ids=lambda v: v)
def test_the_truth_is_within_what_is_said(name: str, where: str) -> None:
    """Over all outcomes."""
    rng = np.random.default_rng(0)
    for seed in range(1 if "recipe" in name else 2):  # a witness is searched for jumps whenever it is bound
        oracle = oc.Orca(steps=3, cells=8)
        engine, record = opened(SPACES[where], PAYOFFS[name].make(), oracle, seed, x=features_of(name, rng))
        cell_grid = engine.prior.cell_grid(record.round, record.features)
        space: Any = SPACES[where]
        ys = (
            everywhere_in(cell_grid)
            if cell_grid.ordered
            else [space.outcome(space.value(k)) for k in range(space.cells)]
        )
        worst = float(reached(engine, record, ys).max())
        value, beyond = said(record)
        assert beyond >= 0.0
        assert worst <= value + beyond + 1e-7
        if not cell_grid.ordered:
            assert value == pytest.approx(worst, abs=1e-12)
            assert beyond <= 1e-12
        certificate = engine.forecast(record).certificate
        assert (certificate.half_space, certificate.approximation) == (value, beyond)


# --- no guarantee of its own, but the promise stays true ---

OPTIONS = [
    oc.Orca(steps=4, cells=CELLS),
    oc.Orca(steps=4, cells=CELLS, jitter=0.1),
]


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("name", ["quantile", "default", "threshold"])
def test_what_was_promised_is_true_whatever_it_does(name: str, number: int) -> None:
    """An adversary that sees each forecast; the excess of rounds that did not hold is reported separately."""
    rng = np.random.default_rng(number)
    recal = oc.Forecaster(INTERVAL, PAYOFFS[name].make(), oracle=OPTIONS[number])
    held, grown = [], 0
    for _ in range(30):
        certificate = recal.predict(some_expert(INTERVAL, rng)).certificate
        y, square = worst_outcome(recal)
        assert square <= certificate.worst_next * (1.0 + 1e-9) + 1e-9
        account = recal.engine.ledger.account
        excess = float(account[ledger.Account.EXCESS])
        recal.update(y)
        held.append(certificate.holds)
        grown += float(account[ledger.Account.EXCESS]) > excess
        assert certificate.holds <= (float(account[ledger.Account.EXCESS]) == excess)
        guarantee = recal.guarantee
        check_kept(guarantee)
        assert guarantee.held == pytest.approx(np.mean(held))
        engine: Any = recal.engine
        book = engine.ledger
        assert book.square == pytest.approx(positive_square(book.total, book.layout.side_list))
    if name == "quantile":
        assert grown > 0  # so few steps do not win


# --- around it: experts, delay, contexts, forgetting ---


def test_a_missing_expert_does_not_pull() -> None:
    """With a cumulative payoff of an expert that is not there, the round is as without them."""
    oracle = oc.Orca(steps=20, cells=CELLS)
    bound_payoff = BoundPayoff(INTERVAL, oc.NoRegret(oc.CRPS()), ("a", "b"), None)
    rows = np.array([expert_row(oc.Normal(m, 1.0), INTERVAL)[0] for m in (2.0, 6.0)])
    rows[1] = np.nan
    found = []
    for cumulative in ([3.0, 0.0], [3.0, 50.0]):
        engine: Any = oracle.bind(bound_payoff)
        engine.ledger.total[:] = cumulative
        found.append(result(engine, engine.predict(rows)))
    assert np.array_equal(*found)


# --- where it starts ---


def test_it_moves_where_no_level_is_near() -> None:
    """The worst cell's share of [0, 1] holds no level: its payoff is constant there, the smoothed one is not."""
    engine: Any = oc.Orca(cells=11).bind(BoundPayoff(UNIT, oc.QuantileCalibration([0.5]), ("expert",), None))
    start = result(engine, engine.predict(None))
    engine.ledger.total[:] = 5.0
    engine.ledger.account[[ledger.Account.ROUNDS, ledger.Account.WEIGHT]] = 10
    assert float(np.abs(result(engine, engine.predict(None)) - start).max()) > 0.1


# --- options ---

REFUSED: dict[str, Callable[[], Any]] = {
    "no steps": lambda: oc.Orca(steps=0),
    "half a step": lambda: oc.Orca(steps=1.5),
    "too many steps": lambda: oc.Orca(steps=10**7),
    "no cells": lambda: oc.Orca(cells=0),
    "too many cells": lambda: oc.Orca(cells=10**4),
    "jitter": lambda: oc.Orca(jitter=math.nan),
    "rate": lambda: oc.Orca(rate=0.0),
    "negative seed": lambda: oc.Orca(seed=-1),
    "too narrow for the cells": lambda: oc.Forecaster(oc.Interval(1e9, 1e9 + 1e-6), oracle=oc.Orca(cells=200)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_options_are_refused_in_one_sentence(what: str) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        REFUSED[what]()
