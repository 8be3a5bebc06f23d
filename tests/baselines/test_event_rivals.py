"""Rivals for events: by hand, against plain definitions and scikit-learn, with outcomes that come late."""

import math
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.optimize import lsq_linear, minimize
from scipy.special import expit, logit

from helpers import units
from orcast.baselines import (
    BetaCalibration,
    EventAsGiven,
    EventGradientEquilibrium,
    HistogramBinning,
    IsotonicProbabilities,
    OnlinePlatt,
    OutcomeFrequency,
    PlattCalibeating,
    VennAbers,
)
from orcast.baselines.events import _not_negative

Vector = NDArray[np.float64]
Pairs = list[tuple[float, int]]

pairs = st.lists(st.tuples(units, st.integers(0, 1)), min_size=1, max_size=40)


def play(method: Any, rounds: Pairs, *, late: int = 0) -> list[float]:
    """What is issued, each outcome being known so many rounds after its own."""
    said = []
    for t, (p, _) in enumerate(rounds):
        said.append(float(method.predict(p, id=t)))
        if t >= late:
            method.update(rounds[t - late][1], id=t - late)
    return said


def drawn(count: int, seed: int, slope: float = 0.5, shift: float = -1.0) -> Pairs:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, size=count)
    y = rng.random(count) < expit(slope * logit(p) + shift)
    return list(zip(p.tolist(), y.astype(int).tolist(), strict=True))


# --- isotonic ---


def isotonic_at(past: Pairs, at: float) -> float:
    """The fit at a probability in the past: the largest over starts of the least over ends of means between them."""
    places = sorted({p for p, _ in past})
    k = places.index(at)

    def mean(i: int, j: int) -> float:
        return float(np.mean([y for p, y in past if places[i] <= p <= places[j]]))

    return max(min(mean(i, j) for j in range(k, len(places))) for i in range(k + 1))


def slow_isotonic(past: Pairs, p: float) -> float:
    places = sorted({q for q, _ in past})
    return float(np.interp(p, places, [isotonic_at(past, q) for q in places]))


def slow_venn_abers(past: Pairs, p: float) -> tuple[float, float]:
    return isotonic_at([*past, (p, 0)], p), isotonic_at([*past, (p, 1)], p)


@given(pairs, units, st.none() | st.integers(1, 10))
def test_isotonic_against_its_definition(past: Pairs, p: float, window: int | None) -> None:
    method = IsotonicProbabilities(window=window)
    play(method, past)
    kept = past if window is None else past[-window:]
    assert float(method.predict(p)) == pytest.approx(slow_isotonic(kept, p), abs=1e-9)


@given(pairs, units, st.none() | st.integers(1, 10))
def test_venn_abers_against_its_definition(past: Pairs, p: float, window: int | None) -> None:
    method = VennAbers(window=window)
    play(method, past)
    p0, p1 = slow_venn_abers(past if window is None else past[-window:], p)
    assert method.both(p) == (pytest.approx(p0, abs=1e-9), pytest.approx(p1, abs=1e-9))
    assert p0 < p1
    assert float(method.predict(p)) == pytest.approx(p1 / (1 - p0 + p1), abs=1e-9)


def test_isotonic_and_venn_abers_against_scikit_learn() -> None:
    IsotonicRegression = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    past = [(round(p, 2), y) for p, y in drawn(600, 1)]  # many ties
    isotonic, venn = IsotonicProbabilities(), VennAbers()
    play(isotonic, past)
    play(venn, past)
    x, y = map(list, zip(*past, strict=True))
    fit = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    for p in (0.0, 0.003, 0.11, 0.333, 0.5, 0.77, 0.995, 1.0):
        assert float(isotonic.predict(p)) == pytest.approx(fit.predict([p])[0], abs=1e-9)
        both = [IsotonicRegression().fit([*x, p], [*y, end]).predict([p])[0] for end in (0, 1)]
        np.testing.assert_allclose(venn.both(p), both, atol=1e-9)


def test_venn_abers_by_hand() -> None:
    venn = VennAbers()
    said = play(venn, [(0.3, 1), (0.3, 0), (0.6, 1)])
    # after a yes: 1/2 and 1; then a no at 0.6 is pooled with a yes and a no, and a yes stands alone
    assert said == pytest.approx([0.3, 1 / (1 - 1 / 2 + 1), 1 / (1 - 1 / 3 + 1)])
    assert venn.both(0.3) == pytest.approx((1 / 3, 2 / 3))
    assert venn.both(0.9) == pytest.approx((0.5, 1.0))
    assert venn.both(0.1) == pytest.approx((0.0, 2 / 3))


def test_all_alike() -> None:
    isotonic, venn = IsotonicProbabilities(), VennAbers()
    play(isotonic, [(0.5, 1)] * 9)
    play(venn, [(0.5, 1)] * 9)
    assert float(isotonic.predict(0.2)) == 1.0
    assert venn.both(0.5) == (pytest.approx(0.9), 1.0)
    assert float(venn.predict(0.5)) == pytest.approx(1 / 1.1)


def test_venn_abers_of_no_past() -> None:
    assert VennAbers().both(0.3) == (0.0, 1.0)


def test_long_pasts_stay_exact() -> None:
    """The search for the edge ends on the hull's own slope, also after thousands of rounds."""
    past = drawn(3000, 2)
    isotonic = IsotonicProbabilities(window=None)
    play(isotonic, past)
    ordered = sorted(past, key=lambda pair: (pair[0], -pair[1]))
    blocks: list[list[float]] = []  # pool adjacent violators: sum, count
    for _, y in ordered:
        blocks.append([y, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            up, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + up, blocks[-1][1] + count]
    fitted = np.concatenate([np.full(int(count), up / count) for up, count in blocks])
    for k in range(0, 3000, 111):
        assert float(isotonic.predict(ordered[k][0])) == pytest.approx(fitted[k], abs=1e-12)


# --- beta calibration ---


def test_beta_by_hand() -> None:
    beta = BetaCalibration(curvature=0.5)
    assert float(beta.predict(0.5)) == pytest.approx(0.5)
    beta.update(1)
    # x = (-log 2, log 2, 1), g = -x / 2, A = 4 I + x x^T / 4, so A^-1 g = -(x / 2) / (4 + |x|^2 / 4)
    x = np.array([-math.log(2), math.log(2), 1.0])
    np.testing.assert_allclose(beta.coefficients, np.array([1, 1, 0]) + x / (4 + x @ x / 4))


def slow_beta(rounds: Pairs, late: int) -> tuple[list[float], Vector, int]:
    """Newton steps with the matrix itself, and the nearest coefficients by a general solver."""
    w, a, said, then, moved = np.array([1.0, 1.0, 0.0]), 100.0 * np.eye(3), [], [], 0
    for t, (p, _) in enumerate(rounds):
        said.append(expit(features(p) @ w))
        then.append(w)
        if t >= late:
            q, y = rounds[t - late]
            g = (expit(features(q) @ then[t - late]) - y) * features(q)
            a = a + np.outer(g, g)
            free = w - np.linalg.inv(a) @ g / 0.1
            w = free
            if min(free[:2]) < 0:
                w, moved = nearest(free, a), moved + 1
    return said, w, moved


def features(p: float) -> Vector:
    p = min(max(p, 0.001), 0.999)
    return np.array([math.log(p), -math.log(1 - p), 1.0])


def nearest(free: Vector, a: Vector) -> Vector:
    factor = np.linalg.cholesky(a)  # the least squares of factor^T (w - free) with bounds
    bounds = ([0.0, 0.0, -np.inf], [np.inf] * 3)
    return np.asarray(lsq_linear(factor.T, factor.T @ free, bounds=bounds, method="bvls", tol=1e-14).x)


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("slope", [0.5, -0.3])
def test_beta_against_its_slow_twin(late: int, slope: float) -> None:
    rounds = [(0.0, 1), (1.0, 0), *drawn(300, 3, slope)]
    beta = BetaCalibration()
    said = play(beta, rounds, late=late)
    slow, w, moved = slow_beta(rounds, late)
    np.testing.assert_allclose(said, slow, atol=1e-6)
    np.testing.assert_allclose(beta.coefficients, w, atol=1e-5)
    assert moved > (50 if slope < 0 else 0)


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=3), st.integers(0, 1000))
def test_nearest_coefficients_that_are_not_negative(free: list[float], seed: int) -> None:
    root = np.random.default_rng(seed).normal(size=(3, 3))
    a = root @ root.T + 0.1 * np.eye(3)
    np.testing.assert_allclose(_not_negative(np.array(free), np.linalg.inv(a)), nearest(np.array(free), a), atol=1e-7)


def test_beta_comes_near_the_maximum_of_the_likelihood() -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, size=8000)
    y = (rng.random(8000) < expit(0.4 * np.log(p) - 1.5 * np.log(1 - p) - 0.5)).astype(int)
    beta = BetaCalibration()
    play(beta, list(zip(p.tolist(), y.tolist(), strict=True)))
    x = np.column_stack((np.log(p), -np.log(1 - p), np.ones(p.size)))
    best = minimize(lambda w: float(np.logaddexp(0, np.where(y == 1, -x @ w, x @ w)).mean()), [1.0, 1.0, 0.0]).x
    np.testing.assert_allclose(beta.coefficients, best, atol=0.1)
    at = np.array([0.05, 0.3, 0.6, 0.95])
    wanted = expit(np.column_stack((np.log(at), -np.log(1 - at), np.ones(4))) @ best)
    np.testing.assert_allclose([float(beta.predict(q)) for q in at], wanted, atol=0.02)


def test_beta_does_not_run_away() -> None:
    beta = BetaCalibration(curvature=0.02)
    for t in range(2000):
        assert 0.0 <= float(beta.predict(float(t % 2))) <= 1.0
        beta.update(t % 2 if t < 1000 else 1 - t % 2)
        assert np.linalg.norm(beta.coefficients) <= 100.0 + 1e-9


# --- calibeating ---


def slow_tops(rounds: Pairs, late: int) -> list[float]:
    """Platt scaling beside it, and the mean over earlier rounds in the same tenth."""
    platt, inner, said = OnlinePlatt(), [], []
    for t, (p, _) in enumerate(rounds):
        inner.append(float(platt.predict(p, id=t)))
        known = [
            y
            for q, (_, y) in zip(inner[: max(t - late, 0)], rounds, strict=False)
            if min(int(q * 10), 9) == min(int(inner[t] * 10), 9)
        ]
        said.append((sum(known) + inner[t]) / (len(known) + 1))
        if t >= late:
            platt.update(rounds[t - late][1], id=t - late)
    return said


@pytest.mark.parametrize("late", [0, 4])
def test_calibeating_against_its_slow_twin(late: int) -> None:
    rounds = drawn(400, 5)
    np.testing.assert_allclose(play(PlattCalibeating(), rounds, late=late), slow_tops(rounds, late), atol=1e-12)


def test_calibeating_mends_what_platt_scaling_cannot() -> None:
    """Yes in the middle and no at both ends: no increasing map, and no decreasing one, is calibrated."""
    rng = np.random.default_rng(6)
    p = rng.uniform(0, 1, size=4000)
    y = (rng.random(4000) < np.where(np.abs(p - 0.5) < 0.25, 0.9, 0.1)).astype(int)
    rounds = list(zip(p.tolist(), y.tolist(), strict=True))
    loss = {m: np.mean((play(m(), rounds)[1000:] - y[1000:]) ** 2) for m in (OnlinePlatt, HistogramBinning)}
    assert loss[HistogramBinning] < 0.11
    assert loss[OnlinePlatt] > 0.24
    tops = np.array(play(PlattCalibeating(), rounds)[1000:])
    # Platt scaling says nearly the same of all, so there is nothing to tell bins apart: it is calibrated, not sharp
    assert abs(np.mean(tops - y[1000:])) < 0.02


def test_binning_is_simple_calibeating() -> None:
    """Forecasts from a grid: the mean outcome where the same was forecast before, up to the prior of one round."""
    rng = np.random.default_rng(7)
    rounds = [((k + 0.5) / 15, int(rng.random() < 0.3)) for k in rng.integers(0, 15, size=300).tolist()]
    said = play(HistogramBinning(), rounds)
    for t, (p, _) in enumerate(rounds):
        before = [y for q, y in rounds[:t] if q == p]
        assert said[t] == pytest.approx((sum(before) + p) / (len(before) + 1))


# --- gradient equilibrium ---


def test_gradient_by_hand() -> None:
    method = EventGradientEquilibrium(rate=0.4)
    assert play(method, [(0.5, 1), (0.5, 0)]) == pytest.approx([0.5, expit(0.2)])
    assert method.shift == pytest.approx(0.2 - 0.4 * expit(0.2))


@pytest.mark.parametrize("late", [0, 5])
def test_gradients_are_those_of_what_was_issued(late: int) -> None:
    rounds = drawn(300, 8)
    method = EventGradientEquilibrium(rate=0.1)
    said = play(method, rounds, late=late)
    settled = len(rounds) - late
    errors = [q - y for q, (_, y) in zip(said[:settled], rounds, strict=False)]
    assert method.shift == pytest.approx(-0.1 * sum(errors))


@pytest.mark.parametrize("attack", [lambda q: q < 0.5, lambda q: True, lambda q: q < 0.05])
def test_no_bias_on_any_sequence(attack: Callable[[float], bool]) -> None:
    rng, method, errors = np.random.default_rng(9), EventGradientEquilibrium(rate=0.2), 0.0
    for p in rng.uniform(size=2000).tolist():
        q = float(method.predict(p))
        method.update(attack(q))
        errors += q - attack(q)
    assert abs(errors) / 2000 == pytest.approx(abs(method.shift) / (0.2 * 2000), abs=1e-9)
    assert abs(errors) / 2000 < 0.04


# --- frequencies ---


def test_frequencies_by_hand() -> None:
    rounds = [(0.9, 1), (0.9, 0), (0.1, 0), (0.2, 1)]
    assert play(OutcomeFrequency(), rounds) == pytest.approx([0.9, 1.5 / 2, 1.5 / 3, 1.5 / 4])
    late = play(OutcomeFrequency(), rounds, late=1)
    assert late == pytest.approx([0.9, 0.9, 1.5 / 2, 1.5 / 3])
    # yes 1, 1/2, 1/4; count 1, 3/2, 7/4
    assert play(OutcomeFrequency(memory=2), rounds) == pytest.approx([0.9, 1.5 / 2, 1 / 2.5, 0.75 / 2.75])
    assert play(OutcomeFrequency(memory=1), rounds) == pytest.approx([0.9, 0.75, 0.25, 0.25])


def test_as_given() -> None:
    rounds = drawn(20, 10)
    assert play(EventAsGiven(), rounds, late=2) == [p for p, _ in rounds]


def test_late_outcomes_teach_in_the_order_in_which_they_come() -> None:
    """Isotonic fits have no past but the known: late is the same as a past that is shorter."""
    rounds = drawn(60, 11)
    for make in (IsotonicProbabilities, VennAbers):
        said = play(make(), rounds, late=10)
        for t in (0, 5, 20, 59):
            fresh = make()
            play(fresh, rounds[: max(t - 10, 0)])
            assert said[t] == float(fresh.predict(rounds[t][0]))
