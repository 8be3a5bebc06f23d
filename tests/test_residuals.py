"""The spread of a point forecast: one definition, by hand, in a wrapper, in a panel, and in evidence."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.special import ndtri

import orcast as oc
from orcast.engine.kernels import events
from orcast.evidence import collect
from orcast.residuals import Residuals, first_spread

ERRORS = (3.0, -1.0, 2.0)


def test_it_is_the_mean_absolute_error_in_units_of_a_gaussian() -> None:
    every, last = Residuals(), Residuals(window=2)
    for error in ERRORS:
        every.add(error)
        last.add(error)
    assert every.scale(0.0, oc.Line()) == pytest.approx(math.sqrt(math.pi / 2.0) * 2.0)
    assert round(every.scale(0.0, oc.Line()), 2) == 2.51
    assert last.scale(0.0, oc.Line()) == pytest.approx(math.sqrt(math.pi / 2.0) * 1.5)
    assert (len(every), len(last)) == (3, 2)
    # of Gaussian errors it is the standard deviation
    gaussian = Residuals()
    for error in np.random.default_rng(0).normal(0.0, 4.0, 20_000):
        gaussian.add(float(error))
    assert gaussian.scale(0.0, oc.Line()) == pytest.approx(4.0, rel=0.02)


def test_before_any_error_it_is_a_tenth() -> None:
    points = np.array([50.0, -20.0, 0.0])
    assert first_spread(points, oc.Interval(0, 300)).tolist() == [30.0, 30.0, 30.0]
    assert first_spread(points, oc.Line()).tolist() == [5.0, 2.0, 1.0]
    assert Residuals().scale(-20.0, oc.HalfLine(-100)) == 2.0


@pytest.mark.parametrize("space", [oc.Line(), oc.Interval(0.0, 100.0), oc.HalfLine(0.0)])
def test_the_compiled_twin_has_the_same_quantiles(space: oc.spaces.OrderedSpace) -> None:
    """`fill_expert`, in Python and as the panel compiles it, against `Residuals`."""
    residuals = Residuals()
    counters = np.zeros(events.COUNTERS_SIZE)
    points = np.array([40.0, 60.0, 45.0, 90.0])
    outcomes = points + np.array([*ERRORS, 0.0])
    reach = np.array([-900.0, 1000.0])
    empty = np.empty((0, 0))
    inputs = events.EventInputs(
        outcomes,
        points,
        first_spread(points, space),
        empty,
        reach,
        empty,
        empty,
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        empty,
        np.empty(0),
    )
    row = np.empty((1, len(space.scores)))
    for t, (point, y) in enumerate(zip(points.tolist(), outcomes.tolist(), strict=True)):
        events.fill_expert(space.scores, inputs, counters, t, t, row)
        want = point + residuals.scale(point, space) * space.scores
        np.testing.assert_array_equal(row[0], np.clip(want, *reach))
        events.learn_outcome(counters, inputs, t, 0.0)
        residuals.add(y - point)
    assert counters[events.Counter.ERROR_SUM] == residuals.total == 6.0
    assert counters[events.Counter.ERROR_COUNT] == len(residuals) == 4


def test_frames_and_evidence_have_it_too() -> None:
    """Points of 10 with errors 3, -1, 2: the fourth forecast of a frame is that of a `Normal` with this spread."""
    frame = pd.DataFrame({"unique_id": "a", "ds": range(4), "y": [13.0, 9.0, 12.0, 10.0], "M": 10.0})
    out = oc.recalibrate(frame, levels=[0.1, 0.9])
    recal, residuals = oc.Recalibrator(), Residuals()
    for y in frame["y"]:
        p = recal.predict(residuals.around(10.0, oc.Line()))
        recal.update(y)
        residuals.add(y - 10.0)
    columns = ["M_orcast-lo-80", "M_orcast", "M_orcast-hi-80"]
    assert out[columns].iloc[-1].tolist() == p.quantile([0.1, 0.5, 0.9]).tolist()
    (evidence,) = collect(frame, recalibrated=False)
    sd = Residuals()
    for error in ERRORS:
        sd.add(error)
    want = 10.0 + sd.scale(10.0, oc.Line()) * ndtri(evidence.levels)
    np.testing.assert_allclose(evidence.before[-1], want)


errors = st.lists(st.floats(-100.0, 100.0), min_size=1, max_size=12)


@given(errors, st.none() | st.integers(1, 5), st.lists(st.floats(-9.0, 9.0), max_size=3))
def test_the_spread_is_that_of_a_gaussian_with_this_mean_absolute_error(
    known: list[float], window: int | None, more: list[float]
) -> None:
    """E |z| = sqrt(2 / pi) for a standard Gaussian z."""
    residuals = Residuals(window)
    for error in known:
        residuals.add(error)
    other = residuals.copy()
    for error in more:
        other.add(error)
    for each, all_ in ((residuals, known), (other, known + more)):
        counted = all_ if window is None else all_[-window:]
        assert len(each) == len(counted)
        sd = each.scale(5.0, oc.Line())
        assert sd * math.sqrt(2.0 / math.pi) == pytest.approx(np.mean(np.abs(counted)), abs=1e-12)
