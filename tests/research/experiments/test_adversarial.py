"""Experiment 2: the adversary, runs and tables."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from helpers import forecasts
from orcast.evaluate.metrics import LEVELS, qce
from research.experiments import adversarial as ad
from tests.adversaries import CellGreedy, own_cells

Vector = NDArray[np.float64]


def hard_mean(p: oc.Forecast, left: float, right: float, points: int = 4001) -> Vector:
    """Payoff averaged over many places of a cell, by hard indicators."""
    ys = left + (np.arange(points) + 0.5) / points * (right - left)
    return (ys[:, None] <= p.quantile(LEVELS)).mean(axis=0) - LEVELS


@given(forecasts())
def test_cell_payoffs_are_means_of_hard_indicators(p: oc.Forecast) -> None:
    for look in (own_cells(p), ad.even_cells(p)):
        for k in range(look.left.size):
            if look.right[k] - look.left[k] > 1e-6:
                assert np.abs(look.payoffs[k] - hard_mean(p, look.left[k], look.right[k])).max() < 2e-3


@given(st.lists(forecasts(), min_size=1, max_size=4), st.integers(0, 5), st.sampled_from(list(ad.ADVERSARIES)))
def test_adversary_picks_the_worst_cell(shown: list[oc.Forecast], seed: int, kind: str) -> None:
    adversary, rng = CellGreedy(ad.ADVERSARIES[kind]), np.random.default_rng(seed)
    for p in shown:
        before = adversary.total.copy()
        y = adversary.outcome(None, p, rng)
        look = ad.ADVERSARIES[kind](p)
        added = adversary.total - before
        assert float((adversary.total**2).sum()) >= max(((before + look.payoffs) ** 2).sum(axis=1)) - 1e-9
        # the outcome lies in a cell whose payoff is the one that was added
        inside = (look.left <= y) & (y <= look.right)
        assert np.abs(look.payoffs[inside] - added).max(axis=1).min() < 1e-12
    assert adversary.qce == pytest.approx(float((adversary.total**2).sum()) / len(shown) ** 2)


def test_ledger_of_the_adversary_is_that_of_the_forecaster() -> None:
    recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(temperature=1))
    adversary, rng = CellGreedy(), np.random.default_rng(3)
    for _ in range(60):
        recal.update(adversary.outcome(recal, recal.predict(), rng))
    assert recal.guarantee.parts["quantile"] ** 2 == pytest.approx(adversary.qce, rel=1e-6)


@pytest.mark.parametrize("adversary", list(ad.ADVERSARIES))
@pytest.mark.parametrize(("method", "parts"), [(ad.DEFAULT, 3), (ad.LOW, 1), ("TwoCells, exact", 1)])
def test_bound_holds_under_attack(method: str, parts: int, adversary: str) -> None:
    trace = ad.run_method(method, adversary, 120)
    assert trace.held == 1.0
    assert trace.largest <= 1.0 + 1e-9
    assert (trace.settled <= trace.promised * (1.0 + 1e-9)).all()
    bound = parts * (trace.times + 64) / trace.times**2 * float((LEVELS**2).sum())
    assert (trace.promised <= bound * (1.0 + 1e-12)).all()


def test_qce_is_that_of_the_metric() -> None:
    trace = ad.run_method("isotonic", "even", 50, run=3, seed=2)
    forecaster, adversary, rng = ad.METHODS["isotonic"](0), CellGreedy(ad.even_cells), np.random.default_rng([2, 3])
    rows, ys = [], []
    for _ in range(50):
        p = forecaster.predict()
        ys.append(adversary.outcome(forecaster.method, p, rng))
        rows.append(p.quantile(LEVELS))
        forecaster.method.update(ys[-1])
    for i, t in enumerate(trace.times):
        assert trace.qce[i] == pytest.approx(qce(rows[:t], ys[:t], low=0.0, high=1.0), abs=1e-12)
    assert math.isnan(trace.held)
    assert np.isnan(trace.settled).all()


def course(*qce: float) -> ad.Trace:
    """Run with the QCE at rounds 1, 100, 500 and 1000."""
    return ad.Trace(np.array([1, 100, 500, 1000]), np.array(qce), np.full(4, 0.1), np.full(4, 0.2), 0.5, 1.0)


def test_claim_is_tested_against_every_adversary() -> None:
    orca = {0.01: [course(30.0, 1.0, 0.1, 0.05)], 0.1: [course(30.0, 1.0, 0.2, 0.02)]}
    traces = {(adversary, method): [course(30.0, 2.0, 6.0, 6.0)] for adversary in ad.TITLES for method in ad.METHODS}
    traces["points", "isotonic"] = [course(30.0, 1.0, 0.01, 0.03)]
    traces["even", "conformal PID"] = [course(30.0, 2.0, 0.05, 7.0)]
    runs = ad.Runs(traces, orca, 0.01)
    found = ad.claims(runs, 1000)
    assert [claim.reproduces for claim in found] == ["yes", "no", "no"]
    assert found[0].here == "0.0500, the best of 4 others 6.0000 (isotonic)"
    assert found[1].here.endswith("; not always below conformal PID")
    assert found[0].bound.startswith("0.0200")
    assert [row[1:] for row in ad.rule_table(runs, 1000).rows] == [(0.1, 0.05, "yes"), (0.2, 0.02, "")]
