"""Randomised quantiles: for any outcome the chance to lie at or below one is what a game books of it."""

import copy
import math
import pickle
from functools import cache

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import LEFT, RIGHT, Vector, engine_of, set_info
from helpers import PLAYED as FORECAST
from orcast.kernels import records
from orcast.kernels.equilibrium import level_share
from orcast.kernels.reading import count_arrays
from orcast.kernels.rounds import cell_of
from orcast.kernels.state import Round, Rules

LEVELS = np.arange(1, 20) / 20.0
INF = math.inf


def forecast(edges: list[float], masses: list[float]) -> oc.Forecast:
    """Cells between edges; the same edge twice is an atom."""
    return oc.Forecast(edges[:-1], edges[1:], np.array(masses) / np.sum(masses))


PLAYED = {
    "cells": forecast([0.0, 1.0, 2.5, 3.0], [1, 3, 2]),
    "one cell": forecast([0.0, 1.0], [1]),
    "atom inside": forecast([0.0, 1.0, 1.0, 3.0], [1, 2, 1]),
    "atom at the low end": forecast([0.0, 0.0, 2.0, 3.0], [7, 2, 1]),
    "atom at the high end": forecast([-2.0, 0.0, 3.0, 3.0], [2, 3, 5]),
    "atoms alone": oc.Forecast([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.2, 0.5, 0.3]),
    "gaps": oc.Forecast([0.0, 2.0, 5.0], [1.0, 2.0, 6.0], [0.2, 0.5, 0.3]),
    "neighbouring atoms": forecast(
        [0.0, 1.0, 1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 2.0), 2.0], [1, 2, 1, 3, 1]
    ),
    "empty cells": forecast([0.0, 1.0, 2.0, 3.0, 3.0, 4.0], [5, 0, 5, 0, 10]),
    "nearly empty cells": forecast([0.0, 1.0, 2.0, 3.0, 3.0, 4.0], [5, 1e-9, 5, 1e-9, 10]),
    "open ends": oc.Forecast([-INF, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, INF], [0.1, 0.4, 0.3, 0.2]),
}


def outcomes(p: oc.Forecast) -> list[float]:
    """Edges, atoms, the numbers beside them, and points inside."""
    ends = [float(e) for e in (*p.left, *p.right) if math.isfinite(e)]
    beside = [math.nextafter(e, side) for e in ends for side in (-INF, INF)]
    inside = [a + (b - a) * s for a, b in zip(p.left, p.right, strict=True) if b - a < INF for s in (0.1, 0.5, 0.97)]
    far = [ends[0] - 7.0] * math.isinf(p.left[0]) + [ends[-1] + 7.0] * math.isinf(p.right[-1])
    low, high = max(float(p.left[0]), -1e9), min(float(p.right[-1]), 1e9)
    return sorted({y for y in (*ends, *beside, *inside, *far) if low <= y <= high})


def draws_to_try(p: oc.Forecast) -> tuple[Vector, Vector]:
    """A draw between any two places where something changes, and the probability of each stretch."""
    mass = np.diff(p.below)
    steps = [(a - p.below[:-1][mass > 0]) / mass[mass > 0] for a in LEVELS]
    places = np.unique(np.clip(np.concatenate(([0.0, 1.0], *steps)), 0.0, 1.0))
    middles, chances = 0.5 * (places[1:] + places[:-1]), np.diff(places)
    wide = chances > 1e-12  # the rest is rounding
    return middles[wide], chances[wide]


@cache
def rules_between(low: float, high: float) -> Rules:
    """Rules of a recalibrator on an interval or on the whole line."""
    recal = oc.Recalibrator(oc.Interval(low, high)) if math.isfinite(low) else oc.Recalibrator()
    return engine_of(recal).rules


def round_of(p: oc.Forecast, draw: float = 0.0) -> Round:
    """Round with a forecast."""
    left, right = np.nan_to_num(p.left, neginf=-50.0), np.nan_to_num(p.right, posinf=50.0)
    round = Round(rules_between(float(p.left[0]), float(p.right[-1])))
    set_info(round, cells=p.mass.size, draw=float(draw))
    round.view("cells")[[LEFT, RIGHT, FORECAST], : p.mass.size] = left, right, p.mass
    return round


def empirical(p: oc.Forecast, y: float, draw: float) -> tuple[Vector, dict[str, float]]:
    """Indicators of an outcome at the levels, minus these, and the other numbers that are counted."""
    sums = np.zeros(LEVELS.size + len(records.COUNTS))
    count_arrays(round_of(p, draw), y, LEVELS, 1.0, sums)
    return sums[: LEVELS.size], dict(zip(records.COUNTS, sums[LEVELS.size :].tolist(), strict=True))


def with_draw(p: oc.Forecast, draw: float) -> oc.Forecast:
    return oc.Forecast.trusted(p.left, p.right, p.mass, None, float(draw))


@pytest.mark.parametrize("name", PLAYED)
def test_the_chance_is_what_is_smoothed(name: str) -> None:
    """By brute force over the draw: for every cell, and outcomes inside it, on its edges and beside them."""
    p = PLAYED[name]
    draws, chances = draws_to_try(p)
    reported = np.array([with_draw(p, draw).quantile(LEVELS) for draw in draws])
    for y in outcomes(p):
        k = cell_of(round_of(p), y)
        smoothed = [level_share(a, p.below[k], p.mass[k]) for a in LEVELS]
        np.testing.assert_allclose(chances @ (y <= reported), smoothed, atol=1e-8, err_msg=f"y = {y!r}")


@pytest.mark.parametrize("name", PLAYED)
def test_what_is_empirical_is_what_is_reported(name: str) -> None:
    """With and without a draw the kernel that counts by the mass below agrees with the quantiles as they are read."""
    p = PLAYED[name]
    draws = [0.0, *draws_to_try(p)[0]]
    for draw in draws:
        reported = with_draw(p, draw).quantile(LEVELS) if draw else p.quantile(LEVELS)
        # the adversary's places: on each reported quantile, and beside it
        near = [math.nextafter(q, side) for q in reported if math.isfinite(q) for side in (-INF, INF)]
        for y in {*outcomes(p), *reported[np.isfinite(reported)], *near}:
            if not p.left[0] <= y <= p.right[-1]:
                continue
            sums, counts = empirical(p, y, draw)
            np.testing.assert_array_equal(sums + LEVELS > 0.5, y <= reported, f"y = {y!r}, draw {draw}")
            assert (counts["weight"], counts["without"]) == (1.0, float(draw == 0.0))


@pytest.mark.parametrize("name", PLAYED)
def test_the_spread_is_the_largest_square_over_the_draws(name: str) -> None:
    p = PLAYED[name]
    draws, _ = draws_to_try(p)
    for y in outcomes(p):
        k = cell_of(round_of(p), y)
        smoothed = np.array([level_share(a, p.below[k], p.mass[k]) for a in LEVELS])
        squares = [(((y <= with_draw(p, draw).quantile(LEVELS)) - smoothed) ** 2).sum() for draw in draws]
        spread = empirical(p, y, draws[0])[1]["spread"]
        assert spread >= max(squares) - 1e-9
        # a level that is an edge but for rounding may count or not
        if np.abs(LEVELS - p.below[k : k + 2, None]).min() > 1e-12:
            assert spread == pytest.approx(max(squares), abs=1e-9)


@st.composite
def forecasts(draw: st.DrawFn) -> oc.Forecast:
    n = draw(st.integers(1, 8))
    widths = draw(st.lists(st.sampled_from([0.0, 0.0, 1e-12, 0.3, 1.0, 50.0]), min_size=n, max_size=n))
    # two atoms at one place are one
    widths = [0.5 if i and w == 0.0 == widths[i - 1] else w for i, w in enumerate(widths)]
    edges = draw(st.floats(-10, 10)) + np.concatenate(([0.0], np.cumsum(widths)))
    masses = np.array(draw(st.lists(st.sampled_from([0.0, 1e-9, 0.1, 1.0, 7.0]), min_size=n, max_size=n)))
    masses[draw(st.integers(0, n - 1))] += 1.0
    left, right = edges[:-1].copy(), edges[1:].copy()
    if n > 2 and draw(st.booleans()):
        left[0], right[-1] = -INF, INF
    return oc.Forecast(left, right, masses / masses.sum())


levels = st.lists(st.floats(0.001, 0.999), min_size=2, max_size=9).map(sorted)
draws = st.floats(1e-9, 1.0, exclude_max=True)


@given(forecasts(), levels, draws)
def test_randomised_quantiles_are_monotone_and_stay_within_a_cell(
    p: oc.Forecast, levels: list[float], draw: float
) -> None:
    a = np.array(levels)
    q = with_draw(p, draw).quantile(a)
    assert (q[1:] >= q[:-1]).all()
    for level, now, before in zip(a, q, p.quantile(a), strict=True):
        k = int(np.searchsorted(p.below[1:], level))
        # by less than a cell: no further than its ends, or the next number below; empty cells have no width that counts
        later = k
        while later + 1 < p.mass.size and p.mass[later + 1] <= 1e-8:
            later += 1
        assert math.nextafter(p.left[k], -INF) <= now <= p.right[later]
        assert p.left[k] <= before <= p.right[k]


@given(forecasts(), levels, draws)
def test_one_draw_decides_all_levels(p: oc.Forecast, levels: list[float], draw: float) -> None:
    """The outcome lies below the quantile at a iff F + U p < a: a randomised PIT."""
    a = np.array(levels)
    q = with_draw(p, draw).quantile(a)
    for k in np.flatnonzero(p.mass > 1e-7):
        left, right = max(p.left[k], -1e6), min(p.right[k], 1e6)
        y = right if right == left else 0.5 * (left + right)
        np.testing.assert_array_equal(y <= q, p.below[k] + draw * (p.below[k + 1] - p.below[k]) < a)


def test_the_rest_is_the_same_distribution() -> None:
    p = PLAYED["atom inside"]
    q = with_draw(p, 0.3)
    assert (q.mean(), q.std(), q.cdf(1.0), q.crps(0.3)) == (p.mean(), p.std(), p.cdf(1.0), p.crps(0.3))
    sizes = {"size": 5, "rng": np.random.default_rng(1)}, {"size": 5, "rng": np.random.default_rng(1)}
    np.testing.assert_array_equal(q.sample(**sizes[0]), p.sample(**sizes[1]))  # type: ignore[arg-type]
    low, high = q.interval(0.5)
    assert [low, high] == q.quantile([0.25, 0.75]).tolist() != list(p.interval(0.5))
    assert q.median() == q.quantile(0.5)
    for twin in (copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
        assert twin.draw == q.draw
        np.testing.assert_array_equal(twin.quantile(LEVELS), q.quantile(LEVELS))
