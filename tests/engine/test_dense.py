"""The dense engine and its solver; the compiled engine against it, and which of them plays what."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import Vector, bound_to, cells_of, certified, fast_payoff, positive, whole
from orcast import ledger
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense import fixed_point
from orcast.engine.dense.engine import DenseEngine, DenseRecord
from orcast.engine.dense.search import CandidateSearch
from orcast.engine.ordered import PLAYED, OrderedEngine
from orcast.kernels.state import Round
from orcast.payoffs import Payoff
from orcast.payoffs.cell_payoffs import MEAN_WEIGHTS, NODES
from orcast.testing import cell_payoffs_of, dense_engine, random_masses

SPACE = oc.Interval(-2, 10, cells=24, tail_cells=3)
LINE = oc.Line(cells=24, tail_cells=3)
HOURS = oc.by("hour", values=range(3))


def worth(action: str, y: float) -> float:
    return float(np.arctan(y)) if action == "go" else 0.1


FAST: dict[str, Payoff] = {
    "quantile": oc.QuantileCalibration(),
    "interval": oc.IntervalCalibration([0.5, 0.9]),
    "moment": oc.MomentMatching(3),
    "crps": oc.NoRegret(oc.CRPS()),
    "crps and mse": oc.NoRegret(oc.CRPS(), oc.MSE()),
    "default": oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS()),
    "contexts": oc.QuantileCalibration([0.1, 0.5, 0.9], context=HOURS)
    + oc.QuantileCalibration([0.5])
    + oc.MomentMatching(1, context=oc.by("wind", edges=[0.5]) | HOURS)
    + oc.NoRegret(oc.MSE(), context=HOURS),
    "everything": oc.QuantileCalibration([0.1, 0.5, 0.9])
    + oc.IntervalCalibration(0.6)
    + oc.MomentMatching(2, weight=2.0)
    + oc.NoRegret(oc.CRPS(), oc.MSE()),
}
SLOW: dict[str, Payoff] = {
    "threshold": oc.payoffs.ThresholdCalibration([0.0, 3.0]),
    "marginal": oc.payoffs.ThresholdCalibration([0.0, 3.0], grid=1),
    "decision": oc.payoffs.DecisionCalibration(["go", "stay"], worth, utility_range=4.0),
    "swap regret": oc.payoffs.SwapRegret(["go", "stay"], worth, utility_range=4.0),
    "recipe of p": oc.Recipe(lambda y: [np.tanh(y)], lambda x, p: [p.mass[0]], bound=4.0),
    "plain units": oc.NoRegret(oc.CRPS(), unit="score"),
    "one of them": oc.QuantileCalibration() + oc.payoffs.ThresholdCalibration([0.0, 3.0]),
}


# --- who plays ---


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("space", [SPACE, LINE, oc.HalfLine(-1)], ids=str)
def test_the_compiled_engine_is_the_one_taken(name: str, space: Any) -> None:
    for recal in (oc.Recalibrator(space, FAST[name]), oc.Forecaster(space, FAST[name])):
        assert type(recal.engine) is OrderedEngine


@pytest.mark.parametrize("name", SLOW)
def test_the_dense_engine_plays_the_rest(name: str) -> None:
    assert type(oc.Recalibrator(SPACE, SLOW[name]).engine) is DenseEngine


@pytest.mark.parametrize("space", [oc.Circle(24), oc.Box([(0, 1), (0, 1)])], ids=str)
def test_dense_engine_is_used_on_circles_and_boxes(space: Any) -> None:
    assert type(oc.Recalibrator(space).engine) is DenseEngine


# --- the fast path against its slow twin ---


def a_round(space: Any, payoff: Payoff, seed: int) -> tuple[OrderedEngine, Round, DenseEngine, DenseRecord]:
    """The same masses on the same cells, with the same cumulative payoffs, in both engines."""
    rng = np.random.default_rng(seed)
    bound_payoff = BoundPayoff(space, payoff, ("expert",), None)
    fast = bound_to(space, payoff)
    slow = dense_engine(bound_payoff, oc.Equilibrium())
    features = {"hour": int(rng.integers(3)), "wind": float(rng.random())}
    scale = 3.0 * rng.random()
    fast.ledger.total[:] = scale * rng.normal(size=fast.ledger.total.size)
    fast.ledger.account[ledger.Account.BUDGET] = 1e6
    fast.ledger.groups[:, ledger.GroupAccount.BUDGET] = 1e6
    slow.ledger.total[:] = fast.ledger.total
    slow.ledger.account[:] = fast.ledger.account
    slow.ledger.groups[:] = fast.ledger.groups
    row, _ = oc.adapters.expert_row(oc.Normal(rng.uniform(-1, 6), 10.0 ** rng.uniform(-1, 0.5)), space)
    record = fast.predict(row[None, :], features)
    other, _ = slow.prior.open(row[None, :], 0.0)
    n = record.count()
    assert n == other.count()
    other.view("cells")[: PLAYED + 1, :n] = record.cell_rows()
    dense = DenseRecord(
        other,
        record.view("context").copy(),
        np.zeros(ledger.CERTIFICATE_SIZE),
        features,
        slow.cell_payoffs(other, features),
    )
    return fast, record, slow, dense


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("space", [SPACE, LINE], ids=["interval", "line"])
def test_both_engines_book_the_same_payoffs(name: str, space: Any) -> None:
    for seed in range(2 if name == "everything" else 4):
        fast, record, slow, dense = a_round(space, FAST[name], seed)
        for y in np.linspace(record.read("info", "low"), record.read("info", "high"), 31):
            mine = fast_payoff(fast, record, float(y))
            theirs = whole(slow.ledger.layout, slow.payoff(dense, float(y)), dense.context)
            assert mine == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("space", [SPACE, LINE], ids=["interval", "line"])
def test_the_compiled_certificate_is_the_dense_one_or_sharper(name: str, space: Any) -> None:
    for seed in range(2 if name == "everything" else 4):
        fast, record, slow, dense = a_round(space, FAST[name], seed)
        worst, _, bound = certified(fast, record)
        search = CandidateSearch(slow.ledger, dense.cell_payoffs, dense.context, 0.0, 8.0)
        search.consider(np.log(np.maximum(cells_of(record)[2], 1e-300)), 1.0)
        # the compiled one counts regrets through their positive parts, and may add coordinates at one point of a cell
        assert worst <= search.certificate[ledger.CertificateField.WORST] + 1e-6 * (1.0 + abs(worst))
        assert search.certificate[ledger.CertificateField.BOUND] == pytest.approx(bound, rel=1e-6, abs=1e-6)
        assert record.read("certificate", "worst") == pytest.approx(worst, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", FAST)
def test_both_engines_have_the_same_field(name: str) -> None:
    """The dense field, up to a constant, is <S_+, payoff> averaged over each cell."""
    for seed in range(1 if name == "everything" else 3):
        fast, round, slow, dense = a_round(SPACE, FAST[name], seed)
        left, right, p = cells_of(round)
        n = p.size
        pull = positive(fast.ledger.total, fast.ledger.layout.side_list)
        mean = np.zeros(n)
        for k in range(n):
            for node, weight in zip(NODES, MEAN_WEIGHTS, strict=True):
                y = float(left[k] + node * (right[k] - left[k]))
                mean[k] += weight * (pull @ fast_payoff(fast, round, y, k))
        search = CandidateSearch(slow.ledger, dense.cell_payoffs, dense.context, 0.0, 8.0)
        search.rescale(p)
        field = np.zeros(n)
        for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
            field += cell_payoff.field(s, p)
        gap = field - mean
        assert gap == pytest.approx(gap[0], abs=1e-4 * (1.0 + float(np.abs(mean).max())))


# --- the solver ---


def random_problem(seed: int, cells: int, size: float) -> tuple[Vector, Any, Any]:
    """The field of calibrated labels with a random cumulative payoff: it bends and has kinks."""
    rng = np.random.default_rng(seed)
    space = oc.Labels(range(cells))
    ((_, cell_payoff, _),) = cell_payoffs_of(oc.LabelCalibration(grid=11), space, rng, None)
    s = size * rng.normal(size=cell_payoff.size)
    log_prior = np.log(random_masses(cells, rng))
    return log_prior, lambda p: cell_payoff.field(s, p), lambda p: cell_payoff.jacobian(s, p)


@pytest.mark.parametrize("cells", [3, 4, 10])
def test_the_residual_is_small_on_random_debts(cells: int) -> None:
    """And what it says of it is true, also where it is stuck at a kink."""
    errors = []
    for seed in range(40):
        log_prior, field, jacobian = random_problem(seed, cells, 0.1)
        lp, error = fixed_point.solve(log_prior, field, jacobian, log_prior, 1e-6, 40)
        r, _ = fixed_point.residual(lp, log_prior, field)
        assert error == pytest.approx(float(np.abs(r).max()), abs=1e-12)
        assert np.exp(lp).sum() == pytest.approx(1.0)
        errors.append(error)
    assert np.mean(np.array(errors) <= 1e-4) >= 0.9
    assert max(errors) <= 0.1


def test_the_residual_is_small_at_the_usual_temperature() -> None:
    """A forecast is the equilibrium on the ledger, unless the certificate asked for another."""
    space = oc.Labels(["a", "b", "c", "d"])
    recal = oc.Forecaster(space, oc.payoffs.SimplexCalibration(2))
    engine, rng = recal.engine, np.random.default_rng(0)
    truth = random_masses(space.cells, rng)
    errors = []
    for _ in range(120):
        recal.predict(random_masses(space.cells, rng))
        record = recal.rounds.pending[None].record
        if record.temperature == engine.solver.temperature:
            (cell_payoff,) = record.cell_payoffs
            s = engine.ledger.layout.scales[0] * engine.ledger.total / record.temperature
            r, _ = fixed_point.residual(
                *np.log([record.round.view("result"), record.round.view("prior")]), partial(cell_payoff.field, s)
            )
            errors.append(float(np.abs(r).max()))
        recal.update(space.value(int(rng.choice(space.cells, p=truth))))
    assert len(errors) > 60
    assert np.mean(np.array(errors) <= 0.1) >= 0.95


@pytest.mark.parametrize("step", ["near", "learn"])
@pytest.mark.parametrize("space", [oc.Labels(["a", "b", "c"]), SPACE], ids=["finite", "ordered"])
def test_an_outcome_that_ends_the_memory_changes_nothing(
    space: Any, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = isinstance(space, oc.Interval)
    payoff = (
        oc.payoffs.ThresholdCalibration([0.0, 3.0]) + oc.NoRegret(oc.CRPS())
        if numbers
        else oc.payoffs.SimplexCalibration()
    )
    outcomes: list[Any] = [1.0, 4.0, 0.5] if numbers else ["a", "c", "a"]
    forecast: Any = oc.Normal(2.0, 1.0) if numbers else [0.5, 0.3, 0.2]
    recal, twin = oc.Recalibrator(space, payoff), oc.Recalibrator(space, payoff)
    assert isinstance(recal.engine, DenseEngine)
    for t, y in enumerate(outcomes):
        for each in (recal, twin):
            each.predict(forecast, id=t)
        with monkeypatch.context() as patched:
            prior, own = recal.engine.prior, getattr(recal.engine.prior, step)

            def fail(*args: Any, own: Any = own) -> Any:
                own(*args)  # what it changes is changed
                raise MemoryError

            patched.setattr(prior, step, fail)
            with pytest.raises(MemoryError):
                recal.update(y, id=t)
        assert recal.pending == (t,)
        for name, array in twin.engine.arrays().items():
            assert np.array_equal(recal.engine.arrays()[name], array), name
        for each in (recal, twin):
            each.update(y, id=t)
    assert recal.guarantee == twin.guarantee
