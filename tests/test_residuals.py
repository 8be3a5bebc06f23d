"""The spread of a point forecast: one definition, by hand, in a wrapper, in a panel, and in evaluation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import orcast as oc
from orcast.evaluate import check
from orcast.residuals import Residuals, first_spread

ERRORS = (3.0, -1.0, 2.0)


def test_spread_is_the_scaled_mean_absolute_error() -> None:
    every, last = Residuals(), Residuals(window=2)
    for error in ERRORS:
        every.add(error)
        last.add(error)
    assert every.scale(0.0, oc.Line()) == pytest.approx(math.sqrt(math.pi / 2.0) * 2.0)
    assert round(every.scale(0.0, oc.Line()), 2) == 2.51
    assert last.scale(0.0, oc.Line()) == pytest.approx(math.sqrt(math.pi / 2.0) * 1.5)
    # of Gaussian errors it is the standard deviation
    gaussian = Residuals(20_000)
    for error in np.random.default_rng(0).normal(0.0, 4.0, 20_000):
        gaussian.add(float(error))
    assert gaussian.scale(0.0, oc.Line()) == pytest.approx(4.0, rel=0.02)


def test_before_any_error_it_is_a_tenth() -> None:
    points = np.array([50.0, -20.0, 0.0])
    assert first_spread(points, oc.Interval(0, 300)).tolist() == [30.0, 30.0, 30.0]
    assert first_spread(points, oc.Line()).tolist() == [5.0, 2.0, 1.0]
    assert Residuals().scale(-20.0, oc.HalfLine(-100)) == 2.0


@pytest.mark.parametrize(
    ("bounds", "space"),
    [({}, oc.Line()), ({"low": 0.0, "high": 100.0}, oc.Interval(0.0, 100.0)), ({"low": 0.0}, oc.HalfLine(0.0))],
    ids=["line", "interval", "half line"],
)
def test_frames_and_evidence_have_the_same_spread(bounds: dict[str, float], space: oc.spaces.OrderedSpace) -> None:
    """Points of 10 with errors 3, -1, 2: each forecast of a frame is that of a `Normal` with the spread so far."""
    frame = pd.DataFrame({"unique_id": "a", "ds": range(4), "y": [13.0, 9.0, 12.0, 10.0], "M": 10.0})
    out = oc.recalibrate(frame, levels=[0.1, 0.9], **bounds)
    recal, residuals, rows = oc.Recalibrator(space), Residuals(), []
    for y in frame["y"]:
        rows.append(recal.predict(residuals.around(10.0, space)).quantile([0.1, 0.5, 0.9]))
        recal.update(y)
        residuals.add(y - 10.0)
    assert out[["M_orcast-lo-80", "M_orcast", "M_orcast-hi-80"]].to_numpy().tolist() == np.array(rows).tolist()
    (evaluation,) = check(frame[[name for name in frame if "orcast" not in name]], **bounds)
    sd = Residuals()
    for error in ERRORS:
        sd.add(error)
    np.testing.assert_allclose(evaluation.before[-1], 10.0 + sd.scale(10.0, space) * ndtri(evaluation.levels))
