"""Behaviour that all rivals share."""

import math
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from rival_cases import EVENTS, PERCENTS, QUANTITIES, forecast_all
from scipy.stats import norm

import orcast as oc
from helpers import SENTENCE, units
from research.rivals.base import EventRival

TAILS = np.array([1e-9, 1e-4, 0.005])
WIDE = np.concatenate((TAILS, PERCENTS, 1 - TAILS[::-1]))
quantities = pytest.mark.parametrize("make", QUANTITIES.values(), ids=QUANTITIES.keys())
NORMAL = (oc.Normal(4, 1), {0.2: 5, 0.8: 5}, oc.Normal(6, 2)), (3.0, 5.0, 0.0)
ALL: dict[str, Any] = {
    **{name: (lambda make=make: make(0, 10), *NORMAL) for name, make in QUANTITIES.items()},
    **{name: (make, (0.2, 0.7, 0.9), (1, 0, 1)) for name, make in EVENTS.items()},
}
everything = pytest.mark.parametrize(("make", "experts", "outcomes"), ALL.values(), ids=ALL.keys())


def issued(p: Any) -> Any:
    return float(p) if isinstance(p, oc.forecasts.BinaryForecast) else p.quantile(WIDE).tolist()


def base_forecasts() -> Iterator[Any]:
    """Base forecasts on [0, 10] with their quantile functions."""
    plain, members = oc.Quantiles([0.1, 0.5, 0.9], [4.0, 5.0, 7.0]), oc.Ensemble([3.0, 4.0, 4.0, 6.0, 9.0])
    gamma = scipy.stats.gamma(3)
    cells = oc.Forecast([0.0, 2.0, 2.0], [2.0, 2.0, 8.0], [0.25, 0.5, 0.25])
    yield pytest.param({0.9: 7.0, 0.1: 4.0, 0.5: 5.0}, plain.quantile, id="mapping")
    yield pytest.param(oc.Quantiles([0.1, 0.5, 0.9], [5.0, 4.0, 7.0]), plain.quantile, id="crossing")
    yield pytest.param(oc.Normal(5, 2), norm(5, 2).ppf, id="normal")
    yield pytest.param(oc.Normal(5, 0), lambda a: np.full_like(a, 5.0), id="point")
    yield pytest.param(members, members.quantile, id="ensemble")
    yield pytest.param(gamma, gamma.ppf, id="scipy")
    yield pytest.param(SimpleNamespace(cdf=gamma.cdf), gamma.ppf, id="cdf only")
    yield pytest.param(SimpleNamespace(ppf=lambda a: 6.0 - np.asarray(a)), lambda a: 5.0 + a, id="falling")
    yield pytest.param(cells, cells.quantile, id="forecast")
    yield pytest.param(oc.Normal(0, 20), norm(0, 20).ppf, id="beyond the bounds")
    yield pytest.param(oc.Normal(50, 1), lambda a: np.full_like(a, 10.0), id="outside")


@quantities
@pytest.mark.parametrize(("expert", "quantile"), [*base_forecasts()])
def test_base_forecast_is_issued_before_any_outcome(make: Any, expert: object, quantile: Any) -> None:
    p = make(0, 10).predict(expert)
    np.testing.assert_allclose(p.quantile(PERCENTS), np.clip(quantile(PERCENTS), 0.0, 10.0), rtol=0, atol=1e-9)
    assert p.certificate is None
    assert p.support() == (0.0, 10.0)


drawn = st.one_of(
    st.builds(oc.Normal, st.integers(-2, 12), st.sampled_from([0.0, 1e-9, 0.5, 1.0, 30.0])),
    st.lists(units, min_size=3, max_size=3).map(lambda v: dict(zip((0.1, 0.5, 0.9), (10 * u for u in v), strict=True))),
    st.lists(units.map(lambda u: 10 * u), min_size=1, max_size=4).map(oc.Ensemble),
)


@quantities
@settings(max_examples=10)
@given(st.lists(st.tuples(drawn, units), min_size=1, max_size=20))
def test_quantiles_increase_within_the_bounds(make: Any, rounds: list[tuple[object, float]]) -> None:
    method = make(0, 10)
    for expert, u in rounds:
        p = method.predict(expert)
        q = p.quantile(WIDE)
        assert np.isfinite(q).all()
        assert (np.diff(q) >= 0).all()
        assert 0.0 <= q[0] <= q[-1] <= 10.0
        assert p.mass.min() >= 0.0
        assert (p.right >= p.left).all()
        method.update(10 * u)
    assert method.rounds == len(rounds)


@quantities
def test_the_unit_of_the_outcome_does_not_matter(make: Any) -> None:
    rng = np.random.default_rng(12)
    centres, outcomes = rng.uniform(2, 8, size=80), rng.uniform(0, 10, size=80)
    here = forecast_all(make(0, 10), [oc.Normal(c, 1) for c in centres], outcomes)
    there = forecast_all(make(-64, 96), [oc.Normal(16 * c - 64, 16) for c in centres], 16 * outcomes - 64)
    np.testing.assert_allclose(there, 16 * here - 64, atol=1e-6)


def dry_experts(rounds: int) -> list[oc.Quantiles]:
    """80% of the mass on zero."""
    values = np.where(PERCENTS <= 0.8, 0.0, -20 * np.log((1 - PERCENTS) / 0.2).clip(None, 1))
    return [oc.Quantiles(PERCENTS, np.maximum(values, 0))] * rounds


@quantities
def test_outcomes_on_a_bound_do_not_drive_the_state_away(make: Any) -> None:
    method = make(0, 100)
    forecast_all(method, dry_experts(300), np.zeros(300))
    if hasattr(method, "alpha"):
        assert (np.abs(method.alpha - 0.5) <= 0.81).all()
    wet = forecast_all(method, [oc.Normal(30, 5)] * 150, np.full(150, 32.0))
    if getattr(method, "window", 0) is not None:  # a regression on all of the past never forgets
        assert wet[-1][49] == pytest.approx(32, abs=4)


@everything
def test_predict_only_replaces_the_anonymous_round(make: Any, experts: Any, outcomes: Any) -> None:
    calm, busy = make(), make()
    for expert, y in zip(experts, outcomes, strict=True):
        for other in experts:
            busy.predict(other)
        assert issued(busy.predict(expert)) == issued(calm.predict(expert)) == issued(calm.predict(expert))
        calm.update(y)
        busy.update(y)
    assert pickle.dumps(calm) == pickle.dumps(busy)


BAD_QUANTITIES = [None, "high", 3.0, {}, {"a": 1}, {0.5: 1}, (1, -1), (1, math.nan), {0.1: 1, 0.9: math.inf}, object()]
BAD_QUANTITIES += [SimpleNamespace(ppf=lambda a: np.nan * np.asarray(a)), SimpleNamespace(cdf=lambda y: "high")]
BAD_EVENTS = [None, "high", -0.1, 1.1, math.nan, [0.3, 0.3], {}, {2: 0.5}, object()]


@everything
def test_bad_input_changes_no_state(make: Any, experts: Any, outcomes: Any) -> None:
    method = make()
    method.predict(experts[0])
    method.update(outcomes[0])
    with pytest.raises(ValueError, match="expected a pending round, got none"):
        method.update(outcomes[0])
    method.predict(experts[1], id="a")
    before = pickle.dumps(method)
    event = isinstance(method, EventRival)
    for forecast in BAD_EVENTS if event else BAD_QUANTITIES:
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            method.predict(forecast)
    for y in [None, "3", math.nan, math.inf, -0.1, 10.1, [1, 2], *([0.5, 2] if event else [])]:
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            method.update(y, id="a")
    with pytest.raises(ValueError, match="expected a new id, got 'a'"):
        method.predict(experts[2], id="a")
    assert pickle.dumps(method) == before
    method.update(outcomes[1], id="a")
    assert method.rounds == 2
