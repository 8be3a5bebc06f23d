"""Scoring rules against their definitions; that they are proper, clipped or not."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from orcast.forecasts import LabelForecast
from orcast.scores import Brier

LABELS = ("a", "b", "c")
masses = st.lists(st.sampled_from([0.0, 0.001, 0.01]) | st.floats(0.0, 1.0), min_size=3, max_size=3).filter(
    lambda m: sum(m) > 0.1
)


def forecast(m: list[float]) -> Any:
    return LabelForecast(LABELS, np.array(m) / sum(m))


@given(masses, masses, st.sampled_from([Brier(), oc.CRPS()]))
def test_the_truth_expects_to_do_best(truth: list[float], other: list[float], score: Any) -> None:
    p = np.array(truth) / sum(truth)
    mine, theirs = (
        sum(mass * score(forecast(m), label) for mass, label in zip(p, LABELS, strict=True)) for m in (truth, other)
    )
    assert mine <= theirs + 1e-12


@given(masses, st.sampled_from(range(3)))
def test_the_energy_score_is_its_definition(m: list[float], k: int) -> None:
    """E d(Y, y) - E d(Y, Y') / 2 over pairs of cells; on labels half the Brier score."""
    p = np.array(m) / sum(m)
    far = sum(p[i] for i in range(3) if i != k)
    apart = sum(p[i] * p[j] for i, j in itertools.product(range(3), repeat=2) if i != j)
    assert oc.CRPS()(forecast(m), LABELS[k]) == pytest.approx(far - 0.5 * apart, abs=1e-12)
    brier = sum((p[i] - (i == k)) ** 2 for i in range(3))
    assert Brier()(forecast(m), LABELS[k]) == pytest.approx(brier, abs=1e-12)
    assert oc.CRPS()(forecast(m), LABELS[k]) == pytest.approx(0.5 * brier, abs=1e-12)
