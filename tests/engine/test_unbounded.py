"""Quantities without bounds: far outcomes, no expert, equivariance, and a promise that needs no bounds."""

import math
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import default_payoff, engine_of, record_of
from orcast import ledger
from orcast.testing import worst_outcome

SPACES = {"line": oc.Line(), "half line": oc.HalfLine(0.0)}
on_both = pytest.mark.parametrize("where", SPACES)


def expert(t: int, scale: float = 1.0, shift: float = 10.0) -> oc.Normal:
    return oc.Normal(shift + scale * np.sin(t / 5), 0.3 * scale)


def all_finite(recal: Any) -> bool:
    return all(np.isfinite(array).all() for array in engine_of(recal).arrays().values())


@on_both
def test_one_far_outcome_does_not_spoil_the_rest(where: str) -> None:
    """A broken sensor at a million spreads: some hundred rounds later the forecasts are about as good as without."""
    medians = []
    for far in (None, 1e6):
        recal = oc.Recalibrator(SPACES[where])
        rng, errors = np.random.default_rng(0), []
        for t in range(400):
            p = recal.predict(expert(t))
            y = 10 + np.sin(t / 5) + 0.3 * rng.normal()
            if t >= 300:
                errors.append(p.crps(y))
            recal.update(far if far is not None and t == 50 else y)
        medians.append(float(np.mean(errors)))
    assert medians[1] < 1.15 * medians[0]


@on_both
@pytest.mark.parametrize("given", [True, False], ids=["expert", "alone"])
def test_a_forecast_reaches_to_infinity(where: str, given: bool) -> None:
    recal = oc.Forecaster(SPACES[where])
    p = recal.predict(expert(0)) if given else recal.predict()
    assert p.right[-1] == np.inf
    assert p.left[0] == (-np.inf if where == "line" else 0.0)
    assert p.cdf(1e90) < 1.0 or p.cdf(1e90) == pytest.approx(1.0)
    assert np.isfinite(p.mean())


@on_both
@pytest.mark.parametrize("oracle", [oc.Committee(), oc.Equilibrium()], ids=str)
def test_without_an_expert(where: str, oracle: Any) -> None:
    """Forecasts around the past: after a while the quantiles are those of the outcomes."""
    recal = oc.Forecaster(SPACES[where], oc.QuantileCalibration(), oracle=oracle)
    rng, below = np.random.default_rng(0), []
    for t in range(400):
        p = recal.predict()
        assert p.certificate.holds
        y = float(rng.gamma(9.0, 2.0))
        if t >= 100:
            below.append(y <= p.quantile([0.1, 0.5, 0.9]))
        recal.update(y)
    assert np.mean(below, axis=0) == pytest.approx([0.1, 0.5, 0.9], abs=0.07)
    assert all_finite(recal)


# --- under attack ---


def adversary(recal: Any, t: int, kind: str) -> float:
    """What hurts most within the window, or beyond it: clipped it hurts the same, but it need not be remembered so."""
    y, _ = worst_outcome(recal)
    record = record_of(recal)
    if kind == "beyond":
        if y >= record.read("info", "high"):
            y = 1e90 if t % 3 == 0 else y + 1e6
        elif y <= record.read("info", "low") and recal.space.low == -np.inf:
            y = -1e90 if t % 3 == 0 else y - 1e6
    return float(np.clip(y, max(recal.space.low, -1e100), 1e100))


@on_both
@pytest.mark.parametrize("kind", ["greedy", "beyond"])
@pytest.mark.parametrize("payoff", [oc.QuantileCalibration(), default_payoff()], ids=["quantile", "default"])
def test_300_rounds_against_unbounded_outcomes(where: str, kind: str, payoff: Any) -> None:
    recal = oc.Recalibrator(SPACES[where], payoff)
    bound = engine_of(recal).ledger.bound
    for t in range(1, 301):
        p = recal.predict(expert(t))
        y = adversary(recal, t, kind)
        assert worst_outcome(recal)[1] <= p.certificate.worst_next * (1 + 1e-9)
        recal.update(y)
        g = recal.guarantee
        assert g.miscalibration <= g.promised * (1 + 1e-12)
        assert all_finite(recal)
    assert g.held == 1.0
    assert engine_of(recal).ledger.account[ledger.Account.EXCESS] == 0.0
    assert g.promised <= np.sqrt(bound * (300 + ledger.CREDIT)) / 300 * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_experts_who_claim_to_know_exactly(scale: float) -> None:
    recal = oc.Recalibrator(oc.Line())
    for t in range(100):
        p = recal.predict(oc.Normal(scale * np.sin(t), 0.0))
        assert p.certificate.holds
        recal.update(adversary(recal, t, "beyond"))
    assert all_finite(recal)
    assert recal.guarantee.miscalibration <= recal.guarantee.promised


# --- equivariance ---


@pytest.mark.parametrize(
    ("scale", "shift"), [(1.0, 0.0), (1.0, 1000.0), (1e4, 0.0), (1e-4, 0.0), (250.0, -3e4)], ids=str
)
@pytest.mark.parametrize("payoff", [oc.QuantileCalibration(), default_payoff()], ids=["quantile", "default"])
def test_a_shifted_and_scaled_stream_gives_shifted_and_scaled_forecasts(
    payoff: Any, scale: float, shift: float
) -> None:
    plain, other = oc.Recalibrator(oc.Line(), payoff), oc.Recalibrator(oc.Line(), payoff)
    rng, levels = np.random.default_rng(0), [0.05, 0.25, 0.5, 0.75, 0.95]
    for t in range(120):
        mean, sd = 3 + np.sin(t / 5), 0.3
        p, q = plain.predict(oc.Normal(mean, sd)), other.predict(oc.Normal(shift + scale * mean, scale * sd))
        assert (q.quantile(levels) - shift) / scale == pytest.approx(p.quantile(levels), abs=1e-3)
        y = mean + 0.4 * rng.normal() + 0.1
        plain.update(y)
        other.update(shift + scale * y)
    assert other.guarantee.miscalibration == pytest.approx(plain.guarantee.miscalibration, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_a_half_line_is_equivariant_from_its_bound(scale: float) -> None:
    plain, other = oc.Recalibrator(oc.HalfLine(2.0)), oc.Recalibrator(oc.HalfLine(-7.0))
    rng, levels = np.random.default_rng(0), [0.05, 0.5, 0.95]
    for t in range(80):
        mean, sd = 3 + np.sin(t / 5), 0.3
        p, q = plain.predict(oc.Normal(2 + mean, sd)), other.predict(oc.Normal(-7 + scale * mean, scale * sd))
        assert (q.quantile(levels) + 7) / scale == pytest.approx(p.quantile(levels) - 2, abs=1e-2)
        y = max(mean + 0.4 * rng.normal(), 0.0)
        plain.update(2 + y)
        other.update(-7 + scale * y)


def test_an_upper_bound_mirrors_a_lower_one() -> None:
    """Also with an expert that lies beyond the bound, wholly or in part."""
    plain, mirrored = oc.Recalibrator(oc.HalfLine(0)), oc.Recalibrator(oc.HalfLine(high=0))
    rng, levels = np.random.default_rng(0), np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    for t in range(120):
        mean, sd = (-5.0, 0.1) if t % 20 == 19 else (1 + np.sin(t), 0.5)
        p, q = plain.predict(oc.Normal(mean, sd)), mirrored.predict(oc.Normal(-mean, sd))
        assert q.support() == (-math.inf, 0.0)
        assert -q.quantile(levels)[::-1] == pytest.approx(p.quantile(levels), abs=0.02)
        assert p.certificate is not None
        assert q.certificate is not None
        assert q.certificate.promised == pytest.approx(p.certificate.promised, rel=2e-2)
        y = max(1 + np.sin(t) + 0.6 * rng.normal(), 0.0)
        plain.update(y)
        mirrored.update(-y)
    assert mirrored.guarantee.held == 1.0


@pytest.mark.parametrize("space", [oc.Line(), oc.HalfLine(0)], ids=str)
@pytest.mark.parametrize("sd", [1e-299, 1e-305, 1e-310, 5e-324], ids=str)
def test_a_spread_without_a_reciprocal_is_none(space: oc.Line, sd: float) -> None:
    recal = oc.Recalibrator(space)
    for y in (50.0, 3.0, 60.0, 50.0, 0.0):
        p = recal.predict(oc.Normal(0.0, sd))
        assert np.isfinite(p.mean())
        assert p.certificate is not None
        assert p.certificate.holds
        recal.update(y)
    assert all_finite(recal)
