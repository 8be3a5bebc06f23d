"""The last layer on finite spaces against its definition: the equation of the equilibrium, and all outcomes in turn."""

from typing import Any

import numpy as np
import pytest
from kernel_runs import Array

import orcast as oc
from adversaries import adversaries_on, run_rounds
from orcast.kernels import records

PAYOFFS = {
    "binary": (oc.Binary(), None),
    "two labels": (oc.Labels(["a", "b"]), None),
    "labels": (
        oc.Labels(["a", "b", "c"]),
        oc.LabelCalibration(7) + oc.payoffs.Calibeating(5) + oc.NoRegret(oc.Brier()),
    ),
    "by hour": (oc.Labels(range(5)), oc.LabelCalibration(context=oc.by("hour", values=range(2)))),
}


def experts_on(space: Any, rng: np.random.Generator) -> dict[str, Any]:
    rows = rng.dirichlet(np.ones(space.cells), size=2)
    rows = rows[:, 1] if isinstance(space, oc.Binary) else rows
    return {"one": rows[0].tolist(), "other": rows[1].tolist() if rng.random() < 0.7 else None}


def payoff_of(engine: Any, record: Any, k: int) -> Array:
    """Payoff of an outcome as the ledger holds it: scale times context (x) the part's share of the core."""
    layout, core, context = engine.ledger.layout, engine.payoff(record, k), engine.context_of(record)
    return np.concatenate(
        [
            scale * np.outer(context[at : at + groups], core[layout.place_list[places : places + size]]).ravel()
            for scale, (_, size, groups, places, at, _) in zip(layout.scales, layout.part_table, strict=True)
        ]
    )


@pytest.mark.parametrize("name", PAYOFFS)
def test_certificate_is_the_worst_of_all_outcomes(name: str) -> None:
    space, payoff = PAYOFFS[name]
    recal = oc.Recalibrator(space, payoff)
    rng = np.random.default_rng(1)
    for t in range(30):
        recal.predict(experts=experts_on(space, rng), x={"hour": t % 2} if name == "by hour" else None)
        engine: Any = recal.engine
        record, ledger = recal.rounds.pending[None].record, engine.ledger
        sizes, squares = [], []
        for k in range(space.cells):
            after = oc.Recalibrator.__new__(oc.Recalibrator)
            after.__setstate__(recal.__getstate__())
            after.update(space.value(k))
            total = after.engine.ledger.total
            sizes.append(float(np.sum(np.where((ledger.layout.side_list == 0) | (total > 0), total, 0.0) ** 2)))
            squares.append(float(np.sum(payoff_of(engine, record, k) ** 2)))
        assert record.read("certificate", "bound") == pytest.approx(max(squares))
        # one-sided sums below zero count as zero, so the certificate may be above what comes
        assert max(sizes) <= record.read("certificate", "worst") + 1e-9
        if engine.ledger.layout.side_list.max() == 0.0:
            assert max(sizes) == pytest.approx(record.read("certificate", "worst"))
        recal.update(space.value(int(rng.integers(space.cells))))


def with_ledger(forecaster: Any, total: Array, forecast: Any) -> Any:
    """Round of a game whose cumulative payoff is given, with a budget that allows every forecast."""
    ledger = forecaster.engine.ledger
    ledger.total[:], ledger.account[records.ACCOUNT.index("budget")] = total, 1e9
    forecaster.predict(forecast)
    return forecaster.rounds.pending[None].record


def levels(forecaster: Any, record: Any) -> Array:
    """kappa log(p / m) - <S_+, payoff>, which is the same for all outcomes at an equilibrium."""
    ledger, p = forecaster.engine.ledger, record.view("result")
    positive = np.where((ledger.layout.side_list > 0.0) & (ledger.total < 0.0), 0.0, ledger.total)
    found = []
    for k in np.flatnonzero(p > 1e-200):
        tilt = record.read("info", "temperature") * np.log(p[k] / record.view("prior")[k])
        found.append(tilt - positive @ payoff_of(forecaster.engine, record, k))
    return np.array(found)


@pytest.mark.parametrize("regret", [False, True], ids=["calibration", "with regret"])
@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("cells", [3, 10])
def test_equilibrium_solves_its_equation(cells: int, scale: float, regret: bool) -> None:
    """By Newton's method or, at large cumulative payoffs, by bisection."""
    payoff, solved = oc.LabelCalibration(15), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        forecaster = oc.Forecaster(
            oc.Labels(range(cells)),
            payoff + oc.NoRegret(oc.Brier()) if regret else payoff,
            oracle=oc.Equilibrium(temperature=1.0),
        )
        x = 0.98 * rng.dirichlet(np.ones(cells)) + 0.02 / cells
        forecaster.predict(x.tolist())
        forecaster.update(0)
        record = with_ledger(forecaster, scale * rng.normal(size=forecaster.engine.ledger.total.size), x.tolist())
        assert record.view("result").sum() == pytest.approx(1.0)
        assert record.read("info", "temperature") == 1.0
        solved.append(float(np.ptp(levels(forecaster, record))) < 1e-6)
    # two cells may jump at once, and the units of a regret may change with the forecast
    assert np.mean(solved) >= 0.8


def test_root_is_the_nearest_where_one_newton_step_lands_on_it() -> None:
    """Where the field is flat around the prior, rounding must not lead on to a root further away."""
    forecaster = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(15), oracle=oc.Equilibrium(temperature=7.0))
    total = np.zeros(15)
    total[11], total[10] = 0.3, 1.8
    for odds in np.log(0.76 / 0.24) + 1e-3 * np.arange(20):
        record = with_ledger(
            forecaster, total / forecaster.engine.ledger.layout.scales[0], float(1 / (1 + np.exp(-odds)))
        )
        q = record.view("result")[1]
        assert np.log(q / (1 - q)) == pytest.approx(odds - 0.3 / 7.0, abs=1e-9)


@pytest.mark.parametrize("adversary", ["greedy", "at a bound", "delaying"])
@pytest.mark.parametrize("name", ["two labels", "labels"])
def test_certificates_hold_against_adversaries(name: str, adversary: str) -> None:
    space, payoff = PAYOFFS[name]
    forecaster, rng = oc.Recalibrator(space, payoff), np.random.default_rng(5)
    rows = 0.98 * rng.dirichlet(np.full(space.cells, 0.7), size=120) + 0.02 / space.cells
    for turn in run_rounds(
        forecaster, adversaries_on(space)[adversary](), 120, experts=lambda t: rows[t].tolist(), rng=rng
    ):
        forecaster.update(turn.y, id=turn.id)
    assert forecaster.guarantee.held == 1.0
    assert forecaster.guarantee.miscalibration <= forecaster.guarantee.promised
