"""Payoffs: consistent, bounded, and the same compiled as written."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import (
    SENTENCE,
    Vector,
    bound_to,
    fast_payoff,
    forecasts,
    full_payoff,
    on_cells,
    page_with,
    slow_payoff,
    units,
    within,
)
from orcast.engine.ordered import OrderedEngine
from orcast.kernels.equilibrium import level_share
from orcast.payoffs import Payoff, payoff_from_plain

SPACE = oc.Interval(0, 1)
SMALL = oc.Interval(-2, 7, cells=12, tail_cells=2)


def engine_for(space: oc.Interval, payoff: Payoff) -> OrderedEngine:
    return bound_to(space, payoff)


# --- consistency: the mean under the forecast itself ---


@given(forecasts(), st.sampled_from([oc.QuantileCalibration(), oc.QuantileCalibration([0.3]), oc.MomentMatching(4)]))
def test_calibration_payoffs_have_mean_zero_under_the_forecast(p: oc.Forecast, payoff: Payoff) -> None:
    mean = sum(weight * payoff.evaluate(SPACE, p, y) for y, weight in within(p))
    assert mean == pytest.approx(np.zeros(payoff.on(SPACE).size), abs=1e-9)


@given(on_cells(SMALL))
def test_regret_has_a_mean_of_at_most_zero_under_the_forecast(pair: tuple[oc.Forecast, Vector]) -> None:
    p, other = pair
    payoff, expert = oc.NoRegret(oc.CRPS(), oc.MSE()), oc.Forecast(p.left, p.right, other)
    mean = sum(weight * payoff.evaluate(SMALL, p, y, expert) for y, weight in within(p))
    assert (mean <= 1e-9).all()
    # both scores are proper: the mean is minus a distance
    assert mean[0] == pytest.approx(-distance(p, expert), abs=1e-9)
    assert mean[1] == pytest.approx(-((p.mean() - expert.mean()) ** 2), abs=1e-9)


def distance(p: oc.Forecast, q: oc.Forecast) -> float:
    """The integral of (F - G)^2, by Simpson's rule on each cell, where it is exact."""
    gap = p.below - q.below
    a, b = gap[:-1], gap[1:]
    return float(np.sum((p.right - p.left) * (a * a + (a + b) ** 2 + b * b) / 6.0))


# --- bounds ---


@pytest.mark.parametrize("levels", [[0.5], [0.1, 0.9], [0.2, 0.3, 0.4], [0.6, 0.7, 0.95], np.arange(1, 100) / 100])
def test_the_quantile_bound_is_the_least_one(levels: list[float]) -> None:
    """An outcome lies above some lowest levels' quantiles and below the others'."""
    a = np.array(levels)
    worst = max(float(np.sum(a[:j] ** 2) + np.sum((1 - a[j:]) ** 2)) for j in range(a.size + 1))
    assert oc.QuantileCalibration(levels).bound == pytest.approx(worst, rel=1e-12)


def test_the_quantile_bound_is_reached() -> None:
    payoff = oc.QuantileCalibration()
    point = oc.Forecast([0.0, 0.5, 0.5], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0])
    value = payoff.evaluate(SPACE, point, 0.75)
    assert value == pytest.approx(-payoff.levels)
    assert value @ value == pytest.approx(payoff.bound)


# --- compiled as written ---

SUMS = [
    oc.QuantileCalibration(),
    oc.MomentMatching(3),
    oc.QuantileCalibration([0.1, 0.5], weight=3.0) + oc.MomentMatching(1, weight=0.25),
    oc.NoRegret(oc.MSE(), weight=2.0) + oc.QuantileCalibration([0.5]),
    oc.NoRegret(oc.CRPS()) + oc.MomentMatching(2),
    full_payoff(),
    oc.IntervalCalibration([0.5, 0.9]) + oc.QuantileCalibration([0.05, 0.5]),
    oc.MomentMatching(1) + oc.MomentMatching(3) + oc.QuantileCalibration([0.5]) + oc.QuantileCalibration([0.2, 0.5]),
]


def settled(p: oc.Forecast, engine: OrderedEngine) -> np.ndarray:
    """Coordinates where rounding decides nothing: no level within a hair of an edge next to an empty cell."""
    ok = np.ones(engine.ledger.total.size, dtype=bool)
    for part, (start, size, *_) in zip(engine.bound_payoff.parts, engine.ledger.layout.part_table, strict=True):
        payoff = part.payoff
        if not isinstance(payoff, (oc.QuantileCalibration, oc.IntervalCalibration)):
            continue
        fine = np.ones(payoff.levels.size, dtype=bool)
        for k in np.flatnonzero(p.mass < 1e-6):
            fine &= np.abs(payoff.levels - p.below[k]) > 1e-9
        if isinstance(payoff, oc.IntervalCalibration):
            fine = fine[payoff.ends].all(axis=1)
        ok[start : start + size] = fine
    return ok


@pytest.mark.parametrize("payoff", SUMS, ids=str)
@given(data=st.data(), spot=units)
def test_the_kernel_is_the_sum_of_its_parts(payoff: Payoff, data: st.DataObject, spot: float) -> None:
    engine = engine_for(SMALL, payoff)
    p, expert = data.draw(on_cells(SMALL, jumps=engine.rules.options["jumps"]))
    record = page_with(engine, p, expert)
    for y in [SMALL.low + spot * (SMALL.high - SMALL.low), *p.left[[0, p.mass.size // 2, -1]]]:
        ok = settled(p, engine)
        assert fast_payoff(engine, record, y)[ok] == pytest.approx(slow_payoff(engine, record, y)[ok], abs=1e-9)


def test_a_level_on_the_edge_of_an_empty_cell_counts_as_reached() -> None:
    """The payoff is averaged over (F_{k-1}, F_k]; when that is empty, levels at or above F count as 1."""
    out = np.empty(3)
    p = np.array([0.5, 0.0, 0.5])
    levels = np.array([0.25, 0.5, 0.75])
    out[:] = [level_share(a, 0.5, 0.0) - a for a in levels]
    assert out == pytest.approx([-0.25, 0.5, 0.25])
    cells = oc.Forecast([0, 1, 2], [1, 2, 3], p)
    assert oc.QuantileCalibration(levels).evaluate(oc.Interval(0, 3), cells, 1.5) == pytest.approx(out)


# --- direct sums ---


def test_a_sum_has_the_parts_in_order_and_flat() -> None:
    q, m, r = oc.QuantileCalibration(), oc.MomentMatching(), oc.NoRegret(oc.CRPS())
    for total in ((q + m) + r, q + (m + r)):
        assert list(total) == [q, m, r]
    assert list(q) == [q]


def test_the_order_of_a_sum_does_not_change_the_forecaster() -> None:
    parts = [oc.QuantileCalibration([0.2, 0.8]), oc.MomentMatching(1, weight=2.0), oc.NoRegret(oc.MSE(), oc.CRPS())]
    results = []
    for a, b, c in itertools.permutations(parts):
        recal = oc.Recalibrator(SPACE, a + b + c)
        rng = np.random.default_rng(3)
        for _ in range(20):
            recal.predict(oc.Normal(0.4, 0.1))
            recal.update(rng.random())
        g = recal.guarantee
        results.append([g.miscalibration, g.promised, *(value for _, value in sorted(g.parts.items()))])
    # but for the order in which squares are summed
    assert np.array(results) == pytest.approx(np.tile(results[0], (6, 1)), rel=1e-9)


def test_the_order_of_scores_does_not_matter() -> None:
    one, other = oc.NoRegret(oc.CRPS(), oc.MSE()), oc.NoRegret(oc.MSE(), oc.CRPS())
    assert [s.name for s in one.scores] == [s.name for s in other.scores] == ["crps", "mse"]


# --- what is refused ---


@pytest.mark.parametrize(
    "make",
    [
        lambda: oc.QuantileCalibration([]),
        lambda: oc.QuantileCalibration([0.5, 0.4]),
        lambda: oc.QuantileCalibration([0.0, 0.5]),
        lambda: oc.QuantileCalibration(["half"]),
        lambda: oc.QuantileCalibration([[0.5]]),
        lambda: oc.QuantileCalibration(weight=0.0),
        lambda: oc.MomentMatching(0),
        lambda: oc.MomentMatching(2.0),
        lambda: oc.MomentMatching(weight=float("nan")),
        lambda: oc.NoRegret(),
        lambda: oc.NoRegret(oc.CRPS(), oc.CRPS()),
        lambda: oc.NoRegret(oc.CRPS),
        lambda: oc.NoRegret("crps"),
        lambda: payoff_from_plain({"kind": "Luck"}),
        lambda: oc.Recalibrator(SPACE, Payoff()),
        lambda: oc.Recalibrator(SPACE, oc.CRPS()),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


@pytest.mark.parametrize("other", [3, None, "quantiles"])
def test_only_payoffs_can_be_added(other: object) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        oc.QuantileCalibration() + other  # type: ignore[operator]
