"""ECE and Brier score: streaming against vectorised against slow obvious versions."""

import copy
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import scoringrules
from hypothesis import given

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
