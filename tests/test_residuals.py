"""The spread of a point forecast, as it is defined."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from orcast.persistence.migrations import absolute_errors
from orcast.residuals import Residuals

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


@pytest.mark.parametrize(
    ("space", "point", "sd"),
    [(oc.Interval(-10, 40), 7.0, 5.0), (oc.Line(), -30.0, 3.0), (oc.Line(), 0.0, 1.0), (oc.HalfLine(0), 20.0, 2.0)],
    ids=str,
)
def test_before_any_error_it_is_a_tenth(space: oc.Line, point: float, sd: float) -> None:
    assert Residuals().scale(point, space) == pytest.approx(sd)
    assert Residuals(3).around(point, space) == oc.Normal(point, sd)


def test_a_point_beyond_a_bound_is_moved_to_it() -> None:
    assert Residuals().around(-5.0, oc.Interval(0, 10)) == oc.Normal(0.0, 1.0)
    assert Residuals().around(12.0, oc.Interval(0, 10), spread=2.0) == oc.Normal(10.0, 2.0)


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=9))
def test_sums_of_squares_of_older_states_give_the_same_spread(known: list[float]) -> None:
    """Until format 2 the spread was the root mean square."""
    residuals = Residuals()
    squares, residuals.count = float(np.sum(np.square(known))), len(known)
    residuals.total = float(absolute_errors(np.array(squares), np.array(float(len(known)))))
    assert residuals.scale(0.0, oc.Line()) == pytest.approx(math.sqrt(squares / len(known)))
