"""Experiment 2: the adversary, runs and tables."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from helpers import forecasts
from orcast.metrics import LEVELS, fair_indicators, qce
from orcast.testing.adversaries import CellGreedy, own_cells
from research.experiments import adversarial as ad
from research.jobs import WorkerPool

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


def test_point_masses_at_one_place_are_one() -> None:
    p = oc.Forecast([0.0, 0.0, 0.0, 0.6], [0.0, 0.0, 0.6, 1.0], [0.2, 0.3, 0.1, 0.4])
    assert own_cells(p).left.tolist() == [0.0, 0.6]
    look = own_cells(p, points=True)
    assert look.left.tolist() == [0.0, 0.0, 0.6]
    assert look.right.tolist() == [0.0, 0.6, 1.0]
    np.testing.assert_allclose(look.payoffs[0], np.minimum(LEVELS / 0.5, 1.0) - LEVELS, atol=1e-12)
    # the metric counts an outcome there alike, but for the width of a level
    fair = fair_indicators(p.quantile(LEVELS), 0.0, low=0.0, high=1.0) - LEVELS
    assert np.abs(look.payoffs[0] - fair).max() < 0.02


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
    game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(temperature=1))
    adversary, rng = CellGreedy(), np.random.default_rng(3)
    for _ in range(60):
        game.update(adversary.outcome(game, game.predict(), rng))
    assert game.guarantee.parts["quantile"] ** 2 == pytest.approx(adversary.qce, rel=1e-6)


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
    player, adversary, rng = ad.METHODS["isotonic"](0), CellGreedy(ad.even_cells), np.random.default_rng([2, 3])
    rows, ys = [], []
    for _ in range(50):
        p = player.predict()
        ys.append(adversary.outcome(player.method, p, rng))
        rows.append(p.quantile(LEVELS))
        player.method.update(ys[-1])
    for i, t in enumerate(trace.times):
        assert trace.qce[i] == pytest.approx(qce(rows[:t], ys[:t], low=0.0, high=1.0), abs=1e-12)
    assert math.isnan(trace.held)
    assert np.isnan(trace.settled).all()


def test_orca_is_decided_by_its_seeds_and_has_even_cells() -> None:
    first, again, other = (ad.run_method(ad.ORCA, "cells", 12, run=run) for run in (1, 1, 2))
    np.testing.assert_array_equal(first.qce, again.qce)
    assert not np.array_equal(first.qce, other.qce)
    p = ad.METHODS[ad.ORCA](0).predict()
    own, even = own_cells(p, points=True), ad.even_cells(p)
    np.testing.assert_allclose(own.left, even.left, atol=1e-12)
    np.testing.assert_allclose(own.payoffs, even.payoffs, atol=1e-6)


def course(*qce: float) -> ad.Trace:
    """Run with the QCE at rounds 1, 100, 500 and 1000."""
    return ad.Trace(np.array([1, 100, 500, 1000]), np.array(qce), np.full(4, 0.1), np.full(4, 0.2), 0.5, 1.0)


def test_tables_have_means_and_deviations() -> None:
    both = [course(30.0, 1.0, 1.0, 0.02), course(30.0, 1.0, 1.0, 0.04)]
    traces = {(adversary, method): both for adversary in ad.ADVERSARIES for method in ad.METHODS}
    for row in ad.main_table(traces, 1000).rows:
        assert row[1:4] == (1.0, pytest.approx(0.03), pytest.approx(math.sqrt(0.0002)))
        assert row[4:] == (pytest.approx(0.1), pytest.approx(0.2), 0.5, 100.0)
    for row in ad.adversary_table(traces, 1000).rows:
        assert row[1:] == (pytest.approx(0.03), pytest.approx(math.sqrt(0.0002))) * 3


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


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers() -> None:
    alone, two = (ad.run_all(6, 1, seed=1, pool=lambda jobs, n=n: WorkerPool(n, jobs)) for n in (1, 2))
    assert alone.rate == two.rate
    for key, traces in alone.traces.items():
        for one, other in zip(traces, two.traces[key], strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
