"""Reading base forecasts: quantiles at any level, and PITs with atoms."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from rival_cases import PERCENTS

import orcast as oc
from helpers import units
from research.rivals.base import Quantity


@given(st.lists(units, min_size=2, max_size=6), units, st.floats(0.001, 0.999) | st.sampled_from([0.001, 0.999]))
def test_pit_intervals_invert_quantiles(values: list[float], y: float, level: float) -> None:
    at = np.linspace(0.05, 0.95, len(values))
    quantity = Quantity(0, 1)
    row = quantity.read(oc.Quantiles(at, np.sort(values)))
    start, stop = quantity.pit_interval(row, y)
    assert 0.0 <= start <= stop + 1e-12
    assert stop <= 1.0
    twin = oc.Quantiles(PERCENTS, row).quantile([level])[0]
    hair = 1e-9
    if level > stop + hair:
        assert twin > y or y == 1.0
    if level < start - hair:
        assert twin < y
    if start + hair < level < stop - hair:
        assert np.clip(twin, 0.0, 1.0) == pytest.approx(y, abs=1e-7)
    np.testing.assert_allclose(quantity.quantile(row, np.array([level])), [np.clip(twin, 0, 1)], atol=1e-12)


def test_levels_zero_and_one_are_the_bounds() -> None:
    quantity = Quantity(-10, 10)
    levels = np.array([-0.1, 0.0, 0.001, 0.999, 1.0, 1.1])
    narrow = quantity.quantile(quantity.read(oc.Normal(5, 0.01)), levels)
    np.testing.assert_allclose(narrow, [-10, -10, 5 - 0.0309023, 5 + 0.0309023, 10, 10], atol=1e-6)
    atoms = quantity.quantile(quantity.read(oc.Quantiles([0.1, 0.2, 0.8, 0.9], [0, 0, 6, 6])), levels)
    assert atoms.tolist() == [-10, -10, 0, 6, 10, 10]


def test_pits_of_ties_are_even() -> None:
    quantity = Quantity(0, 10)
    row = quantity.read(oc.Normal(5, 0))
    pits = np.array([quantity.pit(row, 5.0) for _ in range(1000)])
    assert np.abs(np.sort(pits) - (np.arange(1000) + 0.5) / 1000).max() < 0.002  # random ones: about 0.03
    for period in (2, 7, 24):
        assert np.abs(np.sort(pits[::period]) - np.linspace(0, 1, pits[::period].size)).max() < 0.1
    before = quantity.ties
    assert quantity.pit(quantity.read(oc.Normal(5, 1)), 5.0) == pytest.approx(0.5)
    assert quantity.ties == before
