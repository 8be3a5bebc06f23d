"""Rivals for events against plain definitions and scikit-learn, with late outcomes."""

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.special import expit, logit

from helpers import units
from research.rivals import (
    OPS,
    TOPS,
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    VennAbers,
)

Vector = NDArray[np.float64]
Pairs = list[tuple[float, int]]

pairs = st.lists(st.tuples(units, st.integers(0, 1)), min_size=1, max_size=40)


def probabilities(method: Any, rounds: Pairs, *, late: int = 0) -> list[float]:
    """Issued probabilities; each outcome is known `late` rounds after its own."""
    issued = []
    for t, (p, _) in enumerate(rounds):
        issued.append(float(method.predict(p, id=t)))
        if t >= late:
            method.update(rounds[t - late][1], id=t - late)
    return issued


def drawn(count: int, seed: int, slope: float = 0.5, shift: float = -1.0) -> Pairs:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, size=count)
    y = rng.random(count) < expit(slope * logit(p) + shift)
    return list(zip(p.tolist(), y.astype(int).tolist(), strict=True))


# --- isotonic ---


def isotonic_at(past: Pairs, at: float) -> float:
    """Fit at a past probability: the largest over starts of the least over ends of means between them."""
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


@given(pairs, units, st.sampled_from([1, 2, 7, 5000]))
def test_isotonic_against_its_definition(past: Pairs, p: float, window: int) -> None:
    method = IsotonicCalibration(window=window)
    probabilities(method, past)
    kept = past[-window:]
    assert float(method.predict(p)) == pytest.approx(slow_isotonic(kept, p), abs=1e-9)


@given(pairs, units, st.sampled_from([1, 2, 7, 5000]))
def test_venn_abers_against_its_definition(past: Pairs, p: float, window: int) -> None:
    method = VennAbers(window=window)
    probabilities(method, past)
    p0, p1 = slow_venn_abers(past[-window:], p)
    assert method.both(p) == (pytest.approx(p0, abs=1e-9), pytest.approx(p1, abs=1e-9))
    assert p0 < p1
    assert float(method.predict(p)) == pytest.approx(p1 / (1 - p0 + p1), abs=1e-9)


# --- Platt scaling and binning ---


def test_platt_against_its_slow_twin() -> None:
    rng = np.random.default_rng(13)
    platt, w, a = OPS(), np.array([1.0, 0.0]), 100.0 * np.eye(2)
    for p in np.concatenate(([0.0, 1.0, 1e-9], rng.beta(0.5, 0.5, size=500))).tolist():
        x = np.array([logit(min(max(p, 0.001), 0.999)), 1.0])
        assert float(platt.predict(p)) == pytest.approx(expit(x @ w), abs=1e-9)
        y = int(rng.random() < 0.2 + 0.3 * p)
        platt.update(y)
        g = (expit(x @ w) - y) * x
        a += np.outer(g, g)
        w = w - np.linalg.inv(a) @ g / 0.1
    assert (platt.slope, platt.shift) == (pytest.approx(w[0]), pytest.approx(w[1]))


def test_binning_by_hand() -> None:
    binning = HistogramBinning(bins=4)
    issued = []
    for p, y in [(0.3, 1), (0.4, 0), (1.0, 1), (0.25, 1), (0.9, 0), (0.0, 0)]:
        issued.append(float(binning.predict(p)))
        binning.update(y)
    assert issued == pytest.approx([0.3, (1 + 0.4) / 2, 1.0, (1 + 0.25) / 3, (1 + 0.9) / 2, 0.0])


# --- beta calibration ---


def slow_beta(rounds: Pairs, late: int) -> tuple[list[float], Vector, int]:
    """Newton steps with the matrix, and the nearest coefficients by a general solver."""
    w, a, issued, then, moved = np.array([1.0, 1.0, 0.0]), 100.0 * np.eye(3), [], [], 0
    for t, (p, _) in enumerate(rounds):
        issued.append(expit(features(p) @ w))
        then.append(w)
        if t >= late:
            q, y = rounds[t - late]
            g = (expit(features(q) @ then[t - late]) - y) * features(q)
            a = a + np.outer(g, g)
            free = w - np.linalg.inv(a) @ g / 0.1
            w = free
            if min(free[:2]) < 0:
                w, moved = nearest(free, a), moved + 1
    return issued, w, moved


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
    issued = probabilities(beta, rounds, late=late)
    slow, w, moved = slow_beta(rounds, late)
    np.testing.assert_allclose(issued, slow, atol=1e-6)
    np.testing.assert_allclose(beta.coefficients, w, atol=1e-5)
    assert moved > (50 if slope < 0 else 0)


# --- calibeating ---


def slow_tops(rounds: Pairs, late: int) -> list[float]:
    """OPS, and the mean over earlier rounds in the same tenth."""
    platt, inner, issued = OPS(), [], []
    for t, (p, _) in enumerate(rounds):
        inner.append(float(platt.predict(p, id=t)))
        known = [
            y
            for q, (_, y) in zip(inner[: max(t - late, 0)], rounds, strict=False)
            if min(int(q * 10), 9) == min(int(inner[t] * 10), 9)
        ]
        issued.append((sum(known) + inner[t]) / (len(known) + 1))
        if t >= late:
            platt.update(rounds[t - late][1], id=t - late)
    return issued


@pytest.mark.parametrize("late", [0, 4])
def test_calibeating_against_its_slow_twin(late: int) -> None:
    rounds = drawn(400, 5)
    np.testing.assert_allclose(probabilities(TOPS(), rounds, late=late), slow_tops(rounds, late), atol=1e-12)
