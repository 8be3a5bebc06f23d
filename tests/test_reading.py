"""Quantiles and moments of a forecast by the kernels that read it, against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orcast as oc


def slow_quantile(p: oc.Forecast, level: float) -> float:
    """The smallest y with P(outcome <= y) >= level: walk through the cells."""
    n = p.mass.size
    inner = [(a, b) for a, b in zip(p.left, p.right, strict=True) if math.isfinite(a) and math.isfinite(b)]
    scale = 0.5 * sum(b - a for a, b in inner)
    below = 0.0
    whole = float(np.cumsum(p.mass)[-1])
    for k in range(n):
        mass = p.mass[k] / whole
        if below + mass >= level or k == n - 1:
            share = min(max((level - below) / mass, 0.0), 1.0) if mass > 0.0 else 0.0
            if level == 1.0:
                share = 1.0  # not a rounding error less, which is a finite number where a tail has no end
            if p.left[k] == -math.inf:
                return float(p.right[k] - scale * (share ** (-1.0 / 3.0) - 1.0)) if share > 0.0 else -math.inf
            if p.right[k] == math.inf:
                return float(p.left[k] + scale * ((1.0 - share) ** (-1.0 / 3.0) - 1.0)) if share < 1.0 else math.inf
            return float(p.left[k] + share * (p.right[k] - p.left[k]))
        below += mass
    raise AssertionError


@given(
    st.lists(st.floats(0.1, 5.0), min_size=3, max_size=12),
    st.booleans(),
    st.booleans(),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8),
    st.integers(0, 2**32 - 1),
)
def test_quantiles_and_moments_are_their_definitions(
    widths: list[float], low: bool, high: bool, levels: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    edges = np.concatenate(([0.0], np.cumsum(widths)))
    left, right = edges[:-1].copy(), edges[1:].copy()
    mass = rng.dirichlet(np.ones(len(widths)))
    if low:
        left[0] = -math.inf
    if high:
        right[-1] = math.inf
    p = oc.Forecast(left, right, mass)
    want = [slow_quantile(p, level) for level in levels]
    assert p.quantile(levels) == pytest.approx(want, rel=1e-6, abs=1e-6)
    # quadrature is exact for squares, in open-ended cells too
    assert p.mean() == pytest.approx(p.expect(lambda y: y), rel=1e-9)
    assert p.var() == pytest.approx(p.expect(lambda y: (y - p.mean()) ** 2), rel=1e-9)


@pytest.mark.parametrize("space", [oc.Line(), oc.HalfLine(-100.0), oc.Interval(-1000.0, 1000.0)])
def test_a_normal_forecast_comes_back_as_the_normal_it_was(space: Any) -> None:
    """Tails that are made for surprises do not count in what is told as mean and deviation."""
    p = oc.Recalibrator(space).predict(oc.Normal(4.0, 1.0))
    assert p.to_normal() == pytest.approx((4.0, 1.0), abs=0.02)
    assert p.std() > 1.02
    q = p.quantile(np.arange(1, 100) / 100)
    z = oc.Normal(0.0, 1.0).quantile(np.arange(1, 100) / 100)
    slope, middle = np.polyfit(z, q, 1)
    assert p.to_normal() == pytest.approx((middle, slope))
