"""ECE and Brier score: streaming against vectorised against slow obvious versions."""

import copy
import math
import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scoringrules
from hypothesis import given

import orcast as oc
from helpers import SENTENCE
from orcast import metrics
from orcast.forecasts import BinaryForecast, LabelForecast

# Tenths fall on the edges of ten bins; the fractions do not.
probabilities = st.integers(0, 10).map(lambda i: i / 10) | st.floats(0.0, 1.0)
rounds = st.lists(st.tuples(probabilities, st.integers(0, 1)), min_size=1, max_size=40)


def slow_ece(said: list[tuple[float, int]], bins: int) -> float:
    total = 0.0
    for b in range(bins):
        inside = [(p, y) for p, y in said if b == min(int(p * bins), bins - 1)]
        if inside:
            frequency = np.mean([y for _, y in inside])
            mean = np.mean([p for p, _ in inside])
            total += len(inside) / len(said) * abs(frequency - mean)
    return total


@given(rounds, st.integers(1, 20))
def test_ece_streams(said: list[tuple[float, int]], bins: int) -> None:
    metric = metrics.ECE(bins)
    for i, (p, y) in enumerate(said):
        metric.update(BinaryForecast(p) if i % 2 else p, bool(y))
    p, y = np.array(said).T
    assert metric.get() == pytest.approx(slow_ece(said, bins), abs=1e-12)
    assert metrics.ece(p, y, bins) == pytest.approx(slow_ece(said, bins), abs=1e-12)
    assert metric.rounds == len(said)


@given(rounds)
def test_brier_streams(said: list[tuple[float, int]]) -> None:
    metric = metrics.MeanBrier()
    for i, (p, y) in enumerate(said):
        metric.update(BinaryForecast(p) if i % 2 else [1 - p, p], y)
    p, y = np.array(said).T
    assert metric.get() == pytest.approx(float(np.mean((p - y) ** 2)), abs=1e-12)
    assert metrics.brier(p, y) == pytest.approx((p - y) ** 2, abs=1e-15)
    assert metrics.brier(p, y) == pytest.approx(scoringrules.brier_score(y, p), abs=1e-12)
    rows = np.stack([1 - p, p], axis=1)
    assert metrics.brier(rows, y) == pytest.approx(2 * metrics.brier(p, y), abs=1e-12)


@given(st.lists(st.tuples(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.integers(0, 2)), min_size=1))
def test_brier_of_labels_is_a_sum_over_labels(said: list[tuple[list[float], int]]) -> None:
    labels = ["home", "draw", "away"]
    metric, scores, rows = metrics.MeanBrier(), [], []
    for weights, k in said:
        mass = np.array(weights) / np.sum(weights)
        rows.append(mass)
        metric.update(LabelForecast(labels, mass), labels[k])
        scores.append(sum((mass[j] - (j == k)) ** 2 for j in range(3)))
    assert metric.get() == pytest.approx(np.mean(scores), abs=1e-12)
    assert metrics.brier(rows, [k for _, k in said]) == pytest.approx(scores, abs=1e-12)


@pytest.mark.parametrize("make", [metrics.ECE, metrics.MeanBrier])
def test_nothing_yet_is_nan_and_copies_go_on(make) -> None:  # type: ignore[no-untyped-def]
    metric = make()
    assert np.isnan(metric.get())
    metric.update(0.25, 1)
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert twin.get() == metric.get()
        twin.update(0.75, 1)
        assert twin.get() != metric.get()
    assert np.isnan(metrics.ece([], []))
    assert metrics.brier([], []).size == 0


@pytest.mark.parametrize("make", [metrics.ECE, metrics.MeanBrier])
@pytest.mark.parametrize(
    ("p", "y"), [(1.5, 1), (-0.1, 0), (float("nan"), 1), ("0.5", 1), (None, 0), (0.5, 2), (0.5, "yes"), (0.5, None)]
)
def test_bad_rounds_are_refused_and_change_nothing(make, p: object, y: object) -> None:  # type: ignore[no-untyped-def]
    metric = make()
    metric.update(0.25, 1)
    before = metric.get()
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        metric.update(p, y)
    assert (metric.get(), metric.rounds) == (before, 1)


@pytest.mark.parametrize("bins", [0, -1, 2.5, True, "ten", None])
def test_no_bins(bins: object) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        metrics.ECE(bins)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=SENTENCE):
        metrics.ece([0.5], [1], bins)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.5, 0.5], [1]),
        ([1.5], [1]),
        ([0.5], [2]),
        ([float("nan")], [1]),
        (0.5, 1),
    ],
    ids=str,
)
def test_no_series_of_probabilities(p: object, y: object) -> None:
    for function in (metrics.ece, metrics.brier):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            function(p, y)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([[0.5, 0.5]], [2]),
        ([[0.5, 0.5]], [0.5]),
        ([[0.5, 0.5]], [0, 1]),
        ([[0.5, 0.4]], [0]),
    ],
    ids=str,
)
def test_no_rows_of_probabilities(p: list[list[float]], y: list[float]) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        metrics.brier(p, y)


# --- internal regret ---


def slow_internal_regret(forecasts: list[tuple[float, ...]], places: list[int], loss: Any) -> float:
    """As the paper writes it, with its 1/T: every pair of forecasts that occur."""
    found = [0.0]
    for one in set(forecasts):
        for other in set(forecasts):
            terms = [loss(one, k) - loss(other, k) for p, k in zip(forecasts, places, strict=True) if p == one]
            found.append(sum(terms) / len(forecasts))
    return max(found)


def brier_loss(p: tuple[float, ...], k: int) -> float:
    return sum((q - (j == k)) ** 2 for j, q in enumerate(p))


def log_loss(p: tuple[float, ...], k: int) -> float:
    kept = [max(q, 0.01) for q in p]
    return -math.log(kept[k]) + sum(kept) - 1.0


@given(st.data(), st.integers(2, 4), st.integers(1, 25))
def test_internal_regret_by_its_definition_and_the_lemma(data: st.DataObject, labels: int, rounds: int) -> None:
    cuts = st.lists(st.integers(0, 4), min_size=labels - 1, max_size=labels - 1).map(sorted)
    rows = [np.diff([0, *data.draw(cuts), 4]) / 4 for _ in range(rounds)]
    places = data.draw(st.lists(st.integers(0, labels - 1), min_size=rounds, max_size=rounds))
    forecasts = [tuple(row.tolist()) for row in rows]
    score = oc.scores.LogScore(0.01)
    found = metrics.internal_regret(rows, places)
    assert found == pytest.approx(slow_internal_regret(forecasts, places, brier_loss), abs=1e-12)
    by_log = metrics.internal_regret(rows, places, score)
    assert by_log == pytest.approx(slow_internal_regret(forecasts, places, log_loss), abs=1e-12)
    # lemma 1: at most the score's bound times the calibration error
    error = 0.0
    for one in set(forecasts):
        own = [k for p, k in zip(forecasts, places, strict=True) if p == one]
        frequency = np.bincount(own, minlength=labels) / len(own)
        error += len(own) / rounds * float(np.abs(frequency - one).sum())
    space = oc.Labels(range(labels))
    assert 0.0 <= found <= oc.Brier().bound(space) * error + 1e-12
    assert 0.0 <= by_log <= score.bound(space) * error + 1e-12


def test_internal_regret_of_yes_or_no() -> None:
    p, y = [0.25, 0.25, 0.75, 0.75, 0.5], [1, 1, 0, 0, 1]
    # 0.25 was followed by a yes twice: 0.75 would have gained 0.5625 - 0.0625 in each
    assert metrics.internal_regret(p, y) == pytest.approx(2 * 0.5 / 5)
    assert metrics.internal_regret(p, y, oc.MSE()) == metrics.internal_regret(p, y)
    assert metrics.internal_regret([0.3], [1]) == 0.0
    assert math.isnan(metrics.internal_regret([], []))


def test_a_calibrated_forecaster_has_little_internal_regret() -> None:
    rng = np.random.default_rng(0)
    p = rng.integers(0, 11, 20_000) / 10
    y = (rng.random(p.size) < p).astype(int)
    assert metrics.internal_regret(p, y) < 0.002
    assert metrics.internal_regret(1 - p, y) > 0.03
    # forecasts that all differ are compared on a grid
    noisy = np.clip(p + rng.uniform(-0.04, 0.04, p.size), 0, 1)
    assert metrics.internal_regret(noisy, y, grid=10) == pytest.approx(metrics.internal_regret(p, y), abs=1e-12)


def test_many_different_forecasts_are_compared_in_blocks() -> None:
    rng = np.random.default_rng(1)
    p, y = rng.random(2500), rng.integers(0, 2, 2500)
    # each forecast alone: the best other one is the one nearest to what came
    best = np.where(y == 1, (1 - p) ** 2 - (1 - p.max()) ** 2, p**2 - p.min() ** 2)
    assert metrics.internal_regret(p, y) == pytest.approx(best.max() / 2500)


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.internal_regret([0.5], [2]),
        lambda: metrics.internal_regret([0.5, 0.5], [1]),
        lambda: metrics.internal_regret([[0.5, 0.6]], [1]),
        lambda: metrics.internal_regret([[0.5, 0.5]], [2]),
        lambda: metrics.internal_regret([0.5], [1], "brier"),  # type: ignore[arg-type]
        lambda: metrics.internal_regret([0.5], [1], oc.scores.QuantileScore()),
        lambda: metrics.internal_regret([0.5], [1], grid=0),
    ],
)
def test_bad_internal_regrets(call: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        call()
