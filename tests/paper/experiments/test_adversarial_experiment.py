"""Experiment 2: Nature, the duel, the tables."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from helpers import forecasts
from orcast.metrics import LEVELS, fair_indicators, qce
from orcast.paper.experiments import adversarial as ad
from orcast.testing.natures import CellGreedy, even_cells, own_cells

Vector = NDArray[np.float64]


def hard_mean(p: oc.Forecast, left: float, right: float, points: int = 4001) -> Vector:
    """The payoff averaged over many places of a cell, by hard indicators."""
    ys = left + (np.arange(points) + 0.5) / points * (right - left)
    return (ys[:, None] <= p.quantile(LEVELS)).mean(axis=0) - LEVELS


# --- Nature ---


@given(forecasts())
def test_payoffs_are_the_mean_of_hard_indicators(p: oc.Forecast) -> None:
    for look in (own_cells(p), even_cells(p)):
        for k in range(look.left.size):
            if look.right[k] - look.left[k] > 1e-6:
                assert np.abs(look.payoffs[k] - hard_mean(p, look.left[k], look.right[k])).max() < 2e-3


@given(forecasts())
def test_own_cells_are_all_of_the_support_that_has_a_width(p: oc.Forecast) -> None:
    look = own_cells(p)
    wide = p.right > p.left
    if not wide.any():
        wide[:] = True
    np.testing.assert_array_equal(look.left, p.left[wide])
    np.testing.assert_array_equal(look.right, p.right[wide])


def test_point_masses_at_one_place_are_one() -> None:
    p = oc.Forecast([0.0, 0.0, 0.0, 0.6], [0.0, 0.0, 0.6, 1.0], [0.2, 0.3, 0.1, 0.4])
    assert own_cells(p).left.tolist() == [0.0, 0.6]
    look = own_cells(p, points=True)
    assert look.left.tolist() == [0.0, 0.0, 0.6]
    assert look.right.tolist() == [0.0, 0.6, 1.0]
    np.testing.assert_allclose(look.payoffs[0], np.minimum(LEVELS / 0.5, 1.0) - LEVELS, atol=1e-12)
    # as the metric counts an outcome there, but for the width of a level
    fair = fair_indicators(p.quantile(LEVELS), 0.0, low=0.0, high=1.0) - LEVELS
    assert np.abs(look.payoffs[0] - fair).max() < 0.02


def test_a_cell_without_mass_is_hard() -> None:
    p = oc.Forecast([0.0, 0.4, 0.6], [0.4, 0.6, 1.0], [0.505, 0.0, 0.495])
    payoff = own_cells(p).payoffs[1]
    np.testing.assert_allclose(payoff, (LEVELS > 0.505) - LEVELS, atol=1e-12)


@given(st.lists(forecasts(), min_size=1, max_size=4), st.integers(0, 5), st.sampled_from(["cells", "even", "points"]))
def test_nature_plays_the_cell_that_hurts_most(shown: list[oc.Forecast], seed: int, kind: str) -> None:
    nature, rng = CellGreedy(ad.NATURES[kind]), np.random.default_rng(seed)
    for p in shown:
        before = nature.total.copy()
        y = nature.outcome(None, p, rng)
        look = ad.NATURES[kind](p)
        sizes = [float(((before + payoff) ** 2).sum()) for payoff in look.payoffs]
        added = nature.total - before
        assert float((nature.total**2).sum()) >= max(sizes) - 1e-9
        # the outcome lies in a cell whose payoff is the one that was added
        inside = (look.left <= y) & (y <= look.right)
        assert np.abs(look.payoffs[inside] - added).max(axis=1).min() < 1e-12
    assert nature.rounds == len(shown)
    assert nature.qce == pytest.approx(float((nature.total**2).sum()) / len(shown) ** 2)


def test_nature_books_what_the_game_books() -> None:
    game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(temperature=1))
    nature, rng = CellGreedy(), np.random.default_rng(3)
    for _ in range(60):
        game.update(nature.outcome(game, game.predict(), rng))
    assert game.guarantee.parts["quantile"] ** 2 == pytest.approx(nature.qce, rel=1e-6)


def test_one_wide_cell_fools_her_unless_her_cells_are_her_own() -> None:
    lazy = oc.Forecast([0.0], [1.0], [1.0])
    found = {}
    for kind in ("cells", "even"):
        nature, rng = CellGreedy(ad.NATURES[kind]), np.random.default_rng(0)
        ys = [nature.outcome(None, lazy, rng) for _ in range(200)]
        found[kind] = qce(np.tile(LEVELS, (200, 1)), ys)
    assert found["cells"] < 0.5
    assert found["even"] > 25.0


# --- duels ---


@pytest.mark.parametrize("nature", list(ad.NATURES))
@pytest.mark.parametrize("method", [ad.DEFAULT, ad.LOW, "TwoCells, exact"])
def test_the_promise_is_kept_under_attack(method: str, nature: str) -> None:
    trace = ad.play(method, nature, 150)
    assert trace.held == 1.0
    assert trace.largest <= 1.0 + 1e-9
    assert (trace.settled <= trace.promised * (1.0 + 1e-9)).all()


def test_the_promise_that_is_drawn() -> None:
    trace = ad.play(ad.LOW, "cells", 40)
    bound = float((LEVELS**2).sum())
    assert (trace.promised <= (trace.times + 64) / trace.times**2 * bound * (1.0 + 1e-12)).all()
    three = ad.play(ad.DEFAULT, "cells", 40)
    assert (three.promised <= 3.0 * (three.times + 64) / three.times**2 * bound * (1.0 + 1e-12)).all()
    assert three.promised[-1] > trace.promised[-1]


def test_qce_is_that_of_the_metric() -> None:
    trace = ad.play("isotonic", "even", 50, run=3, seed=2)
    method, nature, rng = ad.METHODS["isotonic"](0), CellGreedy(even_cells), np.random.default_rng([2, 3])
    rows, ys = [], []
    for _ in range(50):
        p = method.predict()
        ys.append(nature.outcome(method.game, p, rng))
        rows.append(p.quantile(LEVELS))
        method.game.update(ys[-1])
    for i, t in enumerate(trace.times):
        assert trace.qce[i] == pytest.approx(qce(rows[:t], ys[:t], low=0.0, high=1.0), abs=1e-12)
    assert math.isnan(trace.held)
    assert np.isnan(trace.settled).all()


def test_what_has_no_promise_is_broken() -> None:
    assert ad.play("isotonic", "cells", 100).qce[-1] > 10.0
    assert ad.play("conformal PID", "cells", 100).qce[-1] > 10.0
    assert ad.play("TwoCells, exact", "cells", 100).qce[-1] < 0.1


def test_a_run_is_decided_by_its_seeds() -> None:
    first, again, other = (ad.play(ad.ORCA, "cells", 12, run=run) for run in (1, 1, 2))
    np.testing.assert_array_equal(first.qce, again.qce)
    assert not np.array_equal(first.qce, other.qce)


def test_orca_has_even_cells_and_no_point_masses() -> None:
    contestant = ad.METHODS[ad.ORCA](0)
    nature, rng = CellGreedy(), np.random.default_rng(0)
    for _ in range(4):
        p = contestant.predict()
        own, even = own_cells(p, points=True), even_cells(p)
        np.testing.assert_allclose(own.left, even.left, atol=1e-12)
        np.testing.assert_allclose(own.payoffs, even.payoffs, atol=1e-6)
        contestant.game.update(nature.outcome(contestant.game, p, rng))


def test_moments_are_rounds() -> None:
    for rounds in (1, 2, 99, 1000):
        times = ad.moments(rounds)
        assert times[0] == 1
        assert times[-1] == rounds
        assert (np.diff(times) > 0).all()
        assert min(100, rounds) in times


def test_chance_is_the_qce_of_perfect_forecasts() -> None:
    rng = np.random.default_rng(0)
    found = [qce(np.tile(LEVELS, (50, 1)), rng.random(50)) for _ in range(400)]
    assert np.mean(found) == pytest.approx(ad.CHANCE / 50, rel=0.1)


# --- tables ---


def made(qce_at_end: float, largest: float = 0.5, held: float = 1.0) -> ad.Trace:
    times = np.array([1, 100, 1000])
    return ad.Trace(times, np.array([30.0, 1.0, qce_at_end]), np.full(3, 0.1), np.full(3, 0.2), largest, held)


@pytest.mark.parametrize(
    ("ours", "low", "met"),
    [
        (made(0.1), made(0.038), ["yes"] * 6),
        (made(0.1), made(0.042), ["yes"] * 3 + ["no"] * 3),
        (made(0.1, largest=1.001), made(0.01), ["no"] * 3 + ["yes"] * 3),
        (made(0.1, held=0.999), made(0.01), ["no"] * 3 + ["yes"] * 3),
    ],
)
def test_targets(ours: ad.Trace, low: ad.Trace, met: list[str]) -> None:
    traces = {(nature, method): [made(0.02)] for nature in ad.NATURES for method in ad.METHODS}
    for nature in ad.NATURES:
        traces[nature, ad.DEFAULT] = [made(0.05), ours]
        traces[nature, ad.LOW] = [low]
    assert [row[-1] for row in ad.target_table(traces, 1000).rows] == met


def test_means_and_deviations() -> None:
    traces = {(nature, method): [made(0.02), made(0.04)] for nature in ad.NATURES for method in ad.METHODS}
    table = ad.main_table(traces, 1000)
    assert len(table.rows) == len(ad.METHODS)
    for row in table.rows:
        assert row[1:4] == (1.0, pytest.approx(0.03), pytest.approx(math.sqrt(0.0002)))
        assert row[4:] == (pytest.approx(0.1), pytest.approx(0.2), 0.5, 100.0)


def halfway(qce_at_half: float, qce_at_end: float) -> ad.Trace:
    times = np.array([1, 100, 500, 1000])
    courses = np.array([30.0, 1.0, qce_at_half, qce_at_end])
    return ad.Trace(times, courses, np.full(4, 0.1), np.full(4, 0.2), 0.5, 1.0)


def test_the_claim_is_judged_against_every_nature() -> None:
    orca = {0.01: [halfway(0.1, 0.05)], 0.1: [halfway(0.2, 0.02)]}
    traces = {(nature, method): [halfway(5.0, 5.0)] for nature in ad.NATURES for method in ad.METHODS}
    for nature, method in traces:
        if method in ad.BASELINES:
            traces[nature, method] = [halfway(6.0, 6.0)._replace(qce=np.array([30.0, 2.0, 6.0, 6.0]))]
    traces["points", "isotonic"] = [halfway(0.01, 0.03)]
    traces["even", "conformal PID"] = [halfway(0.05, 7.0)._replace(qce=np.array([30.0, 2.0, 0.05, 7.0]))]
    games = ad.Games(traces, orca, 0.01)
    found = ad.claims(games, 1000)
    assert [claim.reproduces for claim in found] == ["yes", "no", "no"]
    assert found[0].here == "0.0500, the best of 4 others 6.0000 (isotonic)"
    assert found[1].here.endswith("; not always below conformal PID")
    assert found[0].bound.startswith("0.0200")
    rule = ad.rule_table(games, 1000)
    assert [row[1:] for row in rule.rows] == [(0.1, 0.05, "yes"), (0.2, 0.02, "")]


@pytest.fixture(scope="module")
def quick() -> ad.Result:
    pytest.importorskip("matplotlib")
    return ad.run(quick=True)


def test_quick_run(quick: ad.Result) -> None:
    assert [table.name for table in quick.tables] == [
        "adversarial_targets",
        "adversarial_rule",
        "adversarial",
        "adversarial_natures",
    ]
    assert [row[0] for row in quick.tables[2].rows] == list(ad.METHODS)
    for row in quick.tables[2].rows:
        assert 0.0 <= float(str(row[2])) <= 33.0
    assert [row[-1] for row in quick.tables[0].rows[:3]] == ["yes"] * 3
    axes = quick.figures["adversarial"].axes
    assert len(axes) == 2
    assert {axis.get_xscale() + axis.get_yscale() for axis in axes} == {"loglog"}


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter() -> None:
    said: list[float] = []
    alone = ad.play_all(6, 1, seed=1, workers=1, progress=lambda what, share: said.append(share))
    assert said == sorted(said)
    assert said[-1] == 1.0
    spread = ad.play_all(6, 1, seed=1, workers=2)
    assert alone.rate == spread.rate
    assert list(alone.traces) == list(spread.traces)
    for key, traces in alone.traces.items():
        for one, other in zip(traces, spread.traces[key], strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
