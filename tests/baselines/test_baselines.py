"""Baselines: by hand, against slow twins, attacked, with ties, and as a user meets them."""

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from inspect import signature
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

import orcast as oc
from helpers import SENTENCE, units
from orcast.baselines import (
    AsGiven,
    BernsteinAggregation,
    BetaCalibration,
    ConformalLevels,
    ConformalMixture,
    ConformalPID,
    ConformalQuantiles,
    DecayingTracking,
    EqualWeights,
    EventAsGiven,
    EventGradientEquilibrium,
    GradientEquilibrium,
    HistogramBinning,
    Isotonic,
    IsotonicDistributions,
    IsotonicProbabilities,
    LastOutcome,
    MultiLevelTracking,
    OnlinePlatt,
    OptimisticTracking,
    OutcomeFrequency,
    PlattCalibeating,
    RollingEMOS,
    ScaleFreeTracking,
    StronglyAdaptiveTracking,
    UniversalPortfolioTracking,
    VennAbers,
)
from orcast.baselines.events import EventBaseline
from orcast.baselines.quantity import Quantity

Vector = NDArray[np.float64]
Method = Any
PERCENTS = np.arange(1, 100) / 100
TAILS = np.array([1e-9, 1e-4, 0.005])
WIDE = np.concatenate((TAILS, PERCENTS, 1 - TAILS[::-1]))

QUANTITIES: dict[str, Callable[[float, float], Method]] = {
    "isotonic": Isotonic,
    "isotonic, window": lambda low, high: Isotonic(low, high, window=20),
    "levels": ConformalLevels,
    "levels, fast": lambda low, high: ConformalLevels(low, high, rate=0.3),
    "mixture": ConformalMixture,
    "tracking": lambda low, high: ConformalPID(low, high, integral=0),
    "pid": ConformalPID,
    "pid, stiff": lambda low, high: ConformalPID(low, high, saturation=0.1, window=5),
    "multi-level": MultiLevelTracking,
    "multi-level, window": lambda low, high: MultiLevelTracking(low, high, window=7),
    "as given": AsGiven,
    "last outcome": LastOutcome,
    "emos": lambda low, high: RollingEMOS(low, high, window=100),
    "emos, each round": lambda low, high: RollingEMOS(low, high, window=20, every=1),
    "idr": lambda low, high: IsotonicDistributions(low, high, window=100),
    "idr, each round": lambda low, high: IsotonicDistributions(low, high, window=20, every=1),
    "one of several": BernsteinAggregation,
    "mean of one": EqualWeights,
    "equilibrium": GradientEquilibrium,
    "equilibrium, mean": lambda low, high: GradientEquilibrium(low, high, rate=0.05, loss="squared"),
    "decaying": DecayingTracking,
    "scale-free": ScaleFreeTracking,
    "optimistic": OptimisticTracking,
    "optimistic, window": lambda low, high: OptimisticTracking(low, high, window=7),
    "strongly adaptive": StronglyAdaptiveTracking,
    "portfolio": UniversalPortfolioTracking,
    "portfolio, jeffreys": lambda low, high: UniversalPortfolioTracking(low, high, prior="jeffreys"),
    "cqr": ConformalQuantiles,
    "cqr, window": lambda low, high: ConformalQuantiles(low, high, window=20),
}
CALIBRATED: dict[str, Callable[[], Any]] = {
    "platt": OnlinePlatt,
    "binning": HistogramBinning,
    "platt, calibeaten": PlattCalibeating,
    "beta": BetaCalibration,
    "isotonic, events": IsotonicProbabilities,
    "venn-abers": VennAbers,
    "frequency": OutcomeFrequency,
}
EVENTS: dict[str, Callable[[], Any]] = {
    **CALIBRATED,
    "isotonic, events, window": lambda: IsotonicProbabilities(window=20),
    "venn-abers, window": lambda: VennAbers(window=20),
    "gradient": EventGradientEquilibrium,
    "frequency of late": lambda: OutcomeFrequency(memory=20),
    "event as given": EventAsGiven,
}
quantities = pytest.mark.parametrize("make", QUANTITIES.values(), ids=QUANTITIES.keys())
events = pytest.mark.parametrize("make", EVENTS.values(), ids=EVENTS.keys())


def play(method: Method, experts: Any, outcomes: Any, levels: Vector = PERCENTS, *, late: int = 0) -> Vector:
    """What is issued, each outcome being known so many rounds after its own."""
    rows = []
    for t, expert in enumerate(experts):
        rows.append(method.predict(expert, id=t).quantile(levels))
        if t >= late:
            method.update(outcomes[t - late], id=t - late)
    return np.array(rows)


def state(method: Any) -> bytes:
    return pickle.dumps(method)


# --- what experts say ---


def some_experts() -> Iterator[tuple[str, object, Callable[[Vector], Vector]]]:
    """Experts on [0, 10], and what their quantiles are."""
    three = {0.9: 7.0, 0.1: 4.0, 0.5: 5.0}
    plain = oc.Quantiles([0.1, 0.5, 0.9], [4.0, 5.0, 7.0])
    members = [3.0, 4.0, 4.0, 6.0, 9.0]
    gamma = scipy.stats.gamma(3)
    cells = oc.Forecast([0.0, 2.0, 2.0], [2.0, 2.0, 8.0], [0.25, 0.5, 0.25])
    yield "mapping", three, plain.quantile
    yield "quantiles", plain, plain.quantile
    yield "crossing", oc.Quantiles([0.1, 0.5, 0.9], [5.0, 4.0, 7.0]), plain.quantile
    yield "normal", oc.Normal(5, 2), norm(5, 2).ppf
    yield "pair", (5, 2), norm(5, 2).ppf
    yield "point", oc.Normal(5, 0), lambda a: np.full_like(a, 5.0)
    yield "ensemble", oc.Ensemble(members), oc.Ensemble(members).quantile
    yield "scipy", gamma, gamma.ppf
    yield "ppf only", SimpleNamespace(ppf=gamma.ppf), gamma.ppf
    yield "cdf only", SimpleNamespace(cdf=gamma.cdf), gamma.ppf
    yield "one number at a time", SimpleNamespace(quantile=lambda a: 5.0 + float(a)), lambda a: 5.0 + a
    yield "falling", SimpleNamespace(ppf=lambda a: 6.0 - np.asarray(a)), lambda a: 5.0 + a
    yield "forecast", cells, cells.quantile
    yield "beyond the bounds", oc.Normal(0, 20), norm(0, 20).ppf
    yield "outside", oc.Normal(50, 1), lambda a: np.full_like(a, 10.0)
    yield (
        "infinite",
        SimpleNamespace(ppf=lambda a: np.where(np.asarray(a) < 0.5, 3.0, np.inf)),
        lambda a: np.where(a < 0.5, 3.0, 10.0),
    )


@quantities
@pytest.mark.parametrize(("expert", "says"), [e[1:] for e in some_experts()], ids=[e[0] for e in some_experts()])
def test_says_what_the_expert_says_before_any_outcome(make: Any, expert: object, says: Any) -> None:
    p = make(0, 10).predict(expert)
    np.testing.assert_allclose(p.quantile(PERCENTS), np.clip(says(PERCENTS), 0.0, 10.0), rtol=0, atol=1e-9)
    assert isinstance(p, oc.Forecast)
    assert p.certificate is None
    assert p.support() == (0.0, 10.0)


@quantities
def test_what_is_issued_is_a_distribution(make: Any) -> None:
    p = make(0, 1000).predict(oc.Normal(500, 10))
    # not even a generous bound draws the mean or the spread
    assert p.mean() == pytest.approx(500, abs=1e-3)
    assert p.std() == pytest.approx(10, rel=0.01)
    np.testing.assert_allclose(p.interval(0.9), norm(500, 10).interval(0.9), atol=0.01)
    np.testing.assert_allclose(p.quantile([1e-4, 0.9999]), norm(500, 10).ppf([1e-4, 0.9999]), atol=0.01)
    np.testing.assert_allclose(p.cdf(norm(500, 10).ppf(PERCENTS)), PERCENTS, atol=1e-9)
    assert p.crps(503) == pytest.approx(oc.metrics.crps_normal(500, 10, 503), rel=0.01)


@given(st.lists(units, min_size=2, max_size=6), units, st.floats(0.001, 0.999) | st.sampled_from([0.001, 0.999]))
def test_jumps_invert_quantiles(values: list[float], y: float, level: float) -> None:
    """The level of y is from the lowest whose quantile is at least y to the highest whose quantile is at most y."""
    at = np.linspace(0.05, 0.95, len(values))
    quantity = Quantity(0, 1)
    row = quantity.read(oc.Quantiles(at, np.sort(values)))
    start, stop = quantity.jump(row, y)
    assert 0.0 <= start <= stop + 1e-12
    assert stop <= 1.0
    twin = oc.Quantiles(PERCENTS, row)
    hair = 1e-9
    # quantiles beyond the bounds have their mass on the bounds
    if level > stop + hair:
        assert twin.quantile([level])[0] > y or y == 1.0
    if level < start - hair:
        assert twin.quantile([level])[0] < y
    if start + hair < level < stop - hair:
        q = np.clip(twin.quantile([level])[0], 0.0, 1.0)
        assert q == pytest.approx(y, abs=1e-7)
    np.testing.assert_allclose(
        quantity.quantile(row, np.array([level])), np.clip(twin.quantile([level]), 0, 1), atol=1e-12
    )


def test_jumps_by_hand() -> None:
    quantity = Quantity(0, 10)
    row = quantity.read(oc.Quantiles([0.2, 0.4, 0.6, 0.8], [0, 0, 5, 5]))
    np.testing.assert_allclose(quantity.jump(row, 0.0), [0.0, 0.4])
    np.testing.assert_allclose(quantity.jump(row, 5.0), [0.6, 1.0])
    np.testing.assert_allclose(quantity.jump(row, 7.0), [1.0, 1.0])
    np.testing.assert_allclose(quantity.jump(row, 2.5), [0.5, 0.5])  # half-way between antisymmetric scores
    row = quantity.read(oc.Normal(0, 1))  # half its mass lies below the bound
    np.testing.assert_allclose(quantity.jump(row, 0.0), [0.0, 0.5])
    for y in (0.5, 1.0, 3.5, 6.0):
        np.testing.assert_allclose(quantity.jump(row, y), norm.cdf(y), rtol=1e-12)
    row = quantity.read(oc.Normal(12, 2))
    np.testing.assert_allclose(quantity.jump(row, 10.0), [norm.cdf(-1), 1.0])
    row = quantity.read(oc.Normal(5, 0))
    assert [quantity.jump(row, y) for y in (4.0, 5.0, 6.0)] == [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


def test_the_ends_of_the_levels_are_the_bounds() -> None:
    """However narrow the expert is, and even if it ends in atoms, whose levels go on down to 0 and up to 1."""
    quantity = Quantity(-10, 10)
    levels = np.array([-0.1, 0.0, 1e-300, 0.001, 0.999, 1.0, 1.1])
    narrow = quantity.quantile(quantity.read(oc.Normal(5, 0.01)), levels)
    np.testing.assert_allclose(narrow[[0, 1, 3, 4, 5, 6]], [-10, -10, 5 - 0.0309023, 5 + 0.0309023, 10, 10], atol=1e-6)
    assert -10 < narrow[2] < 5
    atoms = quantity.quantile(quantity.read(oc.Quantiles([0.1, 0.2, 0.8, 0.9], [0, 0, 6, 6])), levels)
    assert atoms.tolist() == [-10, -10, 0, 0, 6, 10, 10]


def test_rounding_does_not_turn_a_cell_round() -> None:
    quantity = Quantity(0, 1)
    q = np.linspace(0.2, 0.8, quantity.grid.size)
    q[5] = np.nextafter(q[4], 0)
    p = quantity.on_grid(q)
    assert (p.right >= p.left).all()


def test_places_in_a_jump_are_even() -> None:
    quantity = Quantity(0, 10)
    row = quantity.read(oc.Normal(5, 0))
    places = np.array([quantity.pit(row, 5.0) for _ in range(1000)])
    assert np.abs(np.sort(places) - (np.arange(1000) + 0.5) / 1000).max() < 0.002  # random ones: about 0.03
    for period in (2, 7, 24):
        assert np.abs(np.sort(places[::period]) - np.linspace(0, 1, places[::period].size)).max() < 0.1
    before = quantity.ties
    assert quantity.pit(quantity.read(oc.Normal(5, 1)), 5.0) == pytest.approx(0.5)
    assert quantity.ties == before  # no jump, no place taken


# --- isotonic ---


def test_isotonic_by_hand() -> None:
    iso = Isotonic(0, 1)
    uniform = scipy.stats.uniform()
    levels = np.array([0.25, 0.5, 0.75])
    # one PIT at 0.2: R goes through (0, 0), (0.2, 1/2), (1, 1)
    play(iso, [uniform], [0.2])
    np.testing.assert_allclose(iso.predict(uniform).quantile(levels), [0.1, 0.2, 0.6], atol=1e-3)
    # and one at 0.8: (0, 0), (0.2, 1/3), (0.8, 2/3), (1, 1)
    iso.update(0.8)
    p = iso.predict(uniform)
    np.testing.assert_allclose(p.quantile([1 / 6, 0.5, 5 / 6]), [0.1, 0.5, 0.9], atol=2e-3)


def test_isotonic_window_by_hand() -> None:
    iso, uniform = Isotonic(0, 1, window=2), scipy.stats.uniform()
    play(iso, [uniform] * 4, [0.9, 0.3, 0.3, 0.6])
    assert sorted(iso._sorted) == pytest.approx([0.3, 0.6])  # of two equal PITs one is left
    assert iso.predict(uniform).median() == pytest.approx(0.45, abs=1e-3)


def pooled(values: Vector) -> Vector:
    """Isotonic regression: adjacent violators pooled into blocks of (mean, size); scipy has it from 1.12 on only."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, size = value, 1
        while blocks and blocks[-1][0] >= mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])


def slow_isotonic(pits: list[float], levels: Vector) -> Vector:
    """Pool adjacent violators on frequencies, with the two ends, and the inverse by its definition."""
    n = len(pits)
    x = np.array([0.0, *sorted(pits), 1.0])
    frequency = np.array([0.0, *(np.arange(1, n + 1) / (n + 1)), 1.0])
    fitted = pooled(frequency)
    np.testing.assert_array_equal(fitted, frequency)  # nothing to pool, as the docstring says
    out = []
    for a in levels:
        k = int(np.flatnonzero(fitted >= a)[0])
        share = (a - fitted[k - 1]) / (fitted[k] - fitted[k - 1])
        out.append(x[k - 1] + share * (x[k] - x[k - 1]))
    return np.array(out)


@given(st.lists(units, min_size=1, max_size=40), st.none() | st.integers(1, 10))
def test_isotonic_against_its_slow_twin(pits: list[float], window: int | None) -> None:
    """With a uniform expert PITs are outcomes, and quantiles are levels; eighths tie."""
    expert = oc.Quantiles(PERCENTS, PERCENTS)
    iso = Isotonic(0, 1, window=window)
    reader = Quantity(0, 1)
    row = reader.read(expert)
    seen = []
    for y in pits:
        iso.predict(expert)
        iso.update(y)
        seen.append(reader.pit(row, y))
    asked = slow_isotonic(seen if window is None else seen[-window:], PERCENTS)
    np.testing.assert_allclose(iso._asked(PERCENTS), asked, atol=1e-12)
    np.testing.assert_allclose(iso.predict(expert).quantile(PERCENTS), reader.quantile(row, asked), atol=1e-9)


def test_frequencies_of_pits_increase_also_as_kuleshov_writes_them() -> None:
    """#{PIT_s <= PIT_t} / n on PIT_t with ties: the fit is the data."""
    pits = np.sort(np.random.default_rng(0).integers(0, 30, size=200) / 30)
    frequency = np.searchsorted(pits, pits, side="right") / pits.size
    np.testing.assert_allclose(pooled(frequency), frequency, rtol=1e-12)


# --- adaptive conformal inference ---


def test_levels_by_hand() -> None:
    aci = ConformalLevels(0, 1, levels=[0.2, 0.5, 0.8], rate=0.1)
    uniform = oc.Quantiles(PERCENTS, PERCENTS)
    assert aci.predict(uniform).quantile([0.2, 0.5, 0.8]) == pytest.approx([0.2, 0.5, 0.8])
    aci.update(0.6)  # covered by the highest only
    assert aci.asked == pytest.approx([0.22, 0.55, 0.78])
    assert aci.predict(uniform).quantile([0.2, 0.5, 0.8]) == pytest.approx([0.22, 0.55, 0.78], abs=1e-4)
    aci.update(0.1)  # covered by all
    assert aci.asked == pytest.approx([0.14, 0.50, 0.76])


def test_levels_beyond_the_ends_are_the_bounds() -> None:
    aci = ConformalLevels(0, 10, levels=[0.4, 0.6], rate=0.9)
    expert = oc.Normal(5, 1)
    play(aci, [expert], [2])
    assert aci.asked == pytest.approx([-0.14, 0.24])
    p = aci.predict(expert)
    assert p.quantile(0.4) == 0.0
    assert p.quantile([0.6])[0] == pytest.approx(norm(5, 1).ppf(0.24))
    aci.update(9)
    assert aci.asked == pytest.approx([0.22, 0.78])
    play(aci, [expert], [9])
    assert aci.asked == pytest.approx([0.58, 1.32])
    assert aci.predict(expert).quantile(0.6) == 10.0


def test_crossing_levels_are_sorted_when_issued_and_go_on_by_themselves() -> None:
    aci = ConformalLevels(0, 1, levels=[0.5, 0.6], rate=0.5)
    uniform = oc.Quantiles(PERCENTS, PERCENTS)
    play(aci, [uniform], [0.55])
    assert aci.asked == pytest.approx([0.75, 0.4])
    assert aci.predict(uniform).quantile([0.5, 0.6]) == pytest.approx([0.4, 0.75])
    aci.update(0.5)  # covered by the level 0.5, whose quantile is the higher
    assert aci.asked == pytest.approx([0.5, 0.7])


def slow_levels(levels: Vector, rates: Vector, pits: Vector) -> Vector:
    """One level after the other, in plain arithmetic."""
    out = []
    for a, rate in zip(levels.tolist(), rates.tolist(), strict=True):
        alpha = a
        for pit in pits.tolist():
            alpha += rate * (a - (1.0 if pit <= alpha else 0.0))
        out.append(alpha)
    return np.array(out)


def test_levels_against_their_slow_twin() -> None:
    rng = np.random.default_rng(1)
    centres = rng.normal(5, 1, size=300)
    outcomes = np.clip(centres + rng.normal(0.5, 2, size=300), 0.01, 9.99)
    aci = ConformalLevels(0, 10, rate=0.03)
    play(aci, [oc.Normal(c, 1.5) for c in centres], outcomes)
    pits = norm.cdf((outcomes - centres) / 1.5)
    np.testing.assert_allclose(aci.asked, slow_levels(PERCENTS, np.full(99, 0.03), pits), atol=1e-9)


def slow_mixture(a: float, rates: list[float], horizon: int, pits: list[float]) -> float:
    k = len(rates)
    alphas, weights = [a] * k, [1.0] * k
    squared = (a**2 * (1 - a) ** 3 + a**3 * (1 - a) ** 2) / 3  # the mean squared pinball loss of a uniform PIT
    eta = math.sqrt((math.log(k * horizon) + 2) / (horizon * squared))
    sigma = 1 / (2 * horizon)
    for pit in pits:
        losses = [a * (pit - alpha) - min(0.0, pit - alpha) for alpha in alphas]
        bar = [w * math.exp(-eta * loss) for w, loss in zip(weights, losses, strict=True)]
        weights = [(1 - sigma) * b / sum(bar) + sigma / k for b in bar]
        alphas = [alpha + rate * (a - (pit <= alpha)) for alpha, rate in zip(alphas, rates, strict=True)]
    return sum(w * alpha for w, alpha in zip(weights, alphas, strict=True)) / sum(weights)


def test_mixture_against_its_slow_twin() -> None:
    rng = np.random.default_rng(2)
    pits = rng.beta(2, 4, size=200)
    mix = ConformalMixture(0, 1, levels=[0.05, 0.4, 0.9], rates=[0.01, 0.05, 0.2], horizon=50)
    play(mix, [oc.Normal(0.5, 0.1)] * 200, np.clip(norm(0.5, 0.1).ppf(pits), 0, 1))
    slow = [slow_mixture(a, [0.01, 0.05, 0.2], 50, pits.tolist()) for a in (0.05, 0.4, 0.9)]
    np.testing.assert_allclose(mix.asked, slow, atol=1e-9)


def test_mixture_of_one_rate_is_that_rate() -> None:
    rng = np.random.default_rng(3)
    outcomes = rng.uniform(0, 10, size=100)
    experts = [oc.Normal(c, 1) for c in rng.uniform(3, 7, size=100)]
    mix, aci = ConformalMixture(0, 10, rates=[0.02]), ConformalLevels(0, 10, rate=0.02)
    np.testing.assert_allclose(play(mix, experts, outcomes), play(aci, experts, outcomes), atol=1e-9)


def test_mixture_with_losses_beyond_what_an_exponential_can_hold() -> None:
    mix = ConformalMixture(0, 1, levels=[1e-5, 0.5], rates=[1e5, 1.1e5], horizon=1)
    q = play(mix, [oc.Normal(0.5, 0.1)] * 6, [1.0, 0.0] * 3)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(mix._weights.sum(axis=0), 1.0)


def test_mixture_prefers_the_rate_that_fits() -> None:
    rng, expert = np.random.default_rng(4), oc.Normal(50, 1)
    still, moving = ConformalMixture(0, 100), ConformalMixture(0, 100)
    play(still, [expert] * 600, rng.normal(50, 1, size=600))
    play(moving, [expert] * 600, rng.normal(50, 0.1, size=600) + np.where(np.arange(600) // 50 % 2, 2, -2))
    usual = [math.exp(w @ np.log(m.rates)) for m in (still, moving) for w in [m._weights[:, 49]]]
    assert usual[0] < usual[1] / 2


# --- conformal PID ---


def test_pid_by_hand() -> None:
    pid = ConformalPID(0, 10, levels=[0.25, 0.75], rate=0.1, integral=2.0, saturation=1.0)
    expert = oc.Normal(5, 0)
    play(pid, [expert], [6])  # missed by both, e = a; a single score has no range
    first = [2.0 * 1.0 * math.tan(math.log(2) * a / 2) for a in (0.25, 0.75)]
    assert pid.offset == pytest.approx(first)
    assert pid.predict(expert).quantile([0.25, 0.75]) == pytest.approx([5 + x for x in first])
    pid.update(5.5)  # the score 0.5 is above the lower offset and below the higher one
    assert first[0] < 0.5 < first[1]
    track = [0.1 * 0.5 * 0.25, 0.1 * 0.5 * -0.25]
    sums = [0.5, 0.5]
    second = [t + 2.0 * 1.0 * math.tan(math.log(3) * s / 3) for t, s in zip(track, sums, strict=True)]
    assert pid.offset == pytest.approx(second)


def slow_pid(a: float, scores: list[float], rate: float, gain: float, saturation: float, window: int) -> list[float]:
    offsets, track, errors = [0.0], 0.0, 0.0
    for t, s in enumerate(scores, start=1):
        e = a - (s <= offsets[-1])
        latest = scores[max(t - window, 0) : t]
        track += rate * (max(latest) - min(latest)) * e
        errors += e
        angle = errors * math.log(t + 1) / (saturation * (t + 1))
        part = math.copysign(math.inf, angle) if abs(angle) >= math.pi / 2 else max(map(abs, latest)) * math.tan(angle)
        offsets.append(track + gain * part if gain > 0 else track)
    return offsets


@pytest.mark.parametrize(("integral", "saturation"), [(0.0, 0.2), (1.0, 5.0), (0.5, 0.2)])
def test_pid_against_its_slow_twin(integral: float, saturation: float) -> None:
    rng = np.random.default_rng(5)
    levels = np.array([0.005, 0.1, 0.5, 0.97])  # the lowest lies beyond the percents
    centres = rng.normal(50, 5, size=150)
    outcomes = np.clip(centres + 10 * rng.standard_t(3, size=150), 0, 100)
    pid = ConformalPID(0, 100, levels=levels, rate=0.2, integral=integral, saturation=saturation, window=20)
    offsets = [pid.offset]
    for c, y in zip(centres, outcomes, strict=True):
        pid.predict(oc.Normal(c, 4))
        pid.update(y)
        offsets.append(pid.offset)
    infinite = 0
    for k, a in enumerate(levels):
        scores = outcomes - norm(centres, 4).ppf(a)
        slow = slow_pid(a, scores.tolist(), 0.2, integral, saturation, 20)
        infinite += sum(map(math.isinf, slow))
        np.testing.assert_allclose(np.array(offsets)[:, k], slow, rtol=1e-9, atol=1e-9)
    assert (infinite > 0) == (saturation < 1 and integral > 0)


def test_pid_keeps_its_offset_when_nothing_can_be_learnt() -> None:
    pid = ConformalPID(0, 10, rate=0, integral=0)
    q = play(pid, [oc.Normal(5, 1)] * 20, np.linspace(0, 10, 20))
    assert (q == q[0]).all()


def test_saturation_without_any_scale() -> None:
    """All scores are zero, so there is no gain; still, errors that saturate are answered by the bounds."""
    pid = ConformalPID(0, 10, levels=[0.1, 0.9], saturation=0.02)
    expert = oc.Normal(5, 0)
    play(pid, [expert], [5])
    assert pid.offset.tolist() == [-math.inf, -math.inf]
    assert pid.predict(expert).quantile([0.1, 0.9]).tolist() == [0.0, 0.0]
    pid.update(5)
    assert pid.offset[1] == math.inf


# --- tracking at many levels ---


def test_multi_level_tracking_by_hand() -> None:
    tracking = MultiLevelTracking(0, 10, levels=[0.25, 0.5, 0.75])
    expert = oc.Quantiles([0.25, 0.5, 0.75], [4.0, 5.0, 6.0])
    play(tracking, [expert, expert], [5.5, 9.0], late=1)
    step = 0.1 * (0.5 + 0.8 * 1.0)  # scores 0.5, 0.5, 1.5
    assert tracking.offset == pytest.approx([step * 0.25, step * 0.5, -step * 0.25])


def slow_multi_level(levels: Vector, rows: Vector, y: Vector, window: int, late: int) -> Vector:
    """What was played, round by round, from the formula."""
    played, offset = np.empty_like(rows), np.zeros(levels.size)
    for t in range(len(y)):
        played[t] = pooled(rows[t] + offset)
        s = t - late
        if s >= 0:
            scores = np.abs(y[max(s + 1 - window, 0) : s + 1, None] - rows[max(s + 1 - window, 0) : s + 1])
            offset = offset + 0.1 * np.quantile(scores, 0.9) * (levels - (y[s] <= played[s]))
    return played


@pytest.mark.parametrize("late", [0, 3])
def test_multi_level_tracking_against_its_slow_twin(late: int) -> None:
    rng = np.random.default_rng(4)
    levels = np.array([0.01, 0.025, 0.1, 0.4, 0.5, 0.6, 0.975])
    rows = 50 + rng.normal(0, 3, size=(120, 1)) + norm.ppf(levels)
    y = rows[:, 4] + rng.normal(1, 3, size=120)
    tracking = MultiLevelTracking(0, 100, levels=levels, window=20)
    played = play(tracking, [oc.Quantiles(levels, row) for row in rows], y, levels, late=late)
    twin = slow_multi_level(levels, rows, y, 20, late)
    assert (np.diff(twin, axis=1) == 0).any()  # there was something to put in order
    np.testing.assert_allclose(played, twin, atol=1e-9)


# --- what is promised on any sequence ---


class Attack:
    """Outcomes that hurt: each is chosen with the forecast in sight, to drive one level's frequency one way."""

    def __init__(self, level: int, up: bool) -> None:
        self.level, self.up = level, up

    def __call__(self, q: Vector, low: float, high: float) -> float:
        # just inside or outside the quantile, if the bounds leave room
        step = 1e-6 * (high - low)
        return float(np.clip(q[self.level] + (-step if self.up else step), low, high))


@pytest.mark.parametrize("rate", [0.005, 0.1, 2.0])
@pytest.mark.parametrize("attack", [Attack(0, True), Attack(0, False), Attack(2, True), Attack(2, False)])
def test_levels_keep_their_promise_under_attack(rate: float, attack: Attack) -> None:
    levels, rounds = np.array([0.05, 0.5, 0.95]), 250
    aci = ConformalLevels(0, 10, levels=levels, rate=rate)
    hits = np.zeros(3)
    rng = np.random.default_rng(6)
    for t in range(1, rounds + 1):
        expert = oc.Normal(rng.uniform(2, 8), 1)
        asked = aci.asked
        q = aci.predict(expert).quantile(levels)
        assert (np.diff(q) >= 0).all()
        aci.update(attack(q, 0, 10))
        hits += (levels - (aci.asked - asked) / rate).round(9)
        assert (-rate <= aci.asked).all()
        assert (aci.asked <= 1 + rate).all()
        assert (np.abs(hits / t - levels) <= (np.maximum(levels, 1 - levels) + rate) / (rate * t) + 1e-9).all()
    assert set(hits) <= set(range(rounds + 1))


@pytest.mark.parametrize(
    "options", [{"saturation": 0.3}, {"saturation": 1.0, "rate": 0}, {"saturation": 0.3, "rate": 3}]
)
@pytest.mark.parametrize("attack", [Attack(0, True), Attack(0, False), Attack(2, True), Attack(2, False)])
def test_pid_keeps_its_promise_under_attack(options: dict[str, float], attack: Attack) -> None:
    levels, rounds = np.array([0.05, 0.5, 0.95]), 250
    pid = ConformalPID(0, 10, levels=levels, **options)  # type: ignore[arg-type]
    rng = np.random.default_rng(7)
    largest = 0.0
    for t in range(1, rounds + 1):
        expert = oc.Normal(rng.uniform(2, 8), 1)
        y = attack(pid.predict(expert).quantile(levels), 0, 10)
        pid.update(y)
        promised = pid.saturation * math.pi / 2 * (t + 1) / math.log(t + 1) + 1
        if t > 2:
            assert (np.abs(pid._errors) <= promised).all()
            largest = max(largest, np.abs(pid._errors).max() / promised)
    assert largest > 0.2  # it was an attack


# --- coverage ---


MODERATE: dict[str, Callable[[float, float], Method]] = {
    "isotonic": Isotonic,
    "isotonic, window": lambda low, high: Isotonic(low, high, window=200),
    "levels": lambda low, high: ConformalLevels(low, high, rate=0.02),
    "mixture": ConformalMixture,
    "pid": ConformalPID,
    "tracking": lambda low, high: ConformalPID(low, high, rate=0.05, integral=0),
    "equilibrium": lambda low, high: GradientEquilibrium(low, high, rate=0.005),
    "decaying": DecayingTracking,
    "scale-free": ScaleFreeTracking,
    "optimistic": lambda low, high: OptimisticTracking(low, high, rate=0.05),
    "strongly adaptive": StronglyAdaptiveTracking,
    "portfolio": UniversalPortfolioTracking,
    "cqr": ConformalQuantiles,
    "cqr, window": lambda low, high: ConformalQuantiles(low, high, window=200),
}


@pytest.mark.parametrize("shift", [False, True], ids=["iid", "shift"])
@pytest.mark.parametrize("name", MODERATE)
def test_coverage(name: str, shift: bool) -> None:
    """The expert is too low and too narrow, throughout or from the middle on; its last quarter is looked at."""
    rng, rounds = np.random.default_rng(8), 1000
    centres = 50 + 5 * np.sin(np.arange(rounds) / 50)
    outcomes = rng.normal(centres, 4)
    wrong = np.arange(rounds) >= (rounds // 2 if shift else 0)
    experts = [oc.Normal(c - 2 * w, 4 - w) for c, w in zip(centres, wrong, strict=True)]
    raw = np.array([e.quantile(PERCENTS) for e in experts])
    q = play(MODERATE[name](0, 100), experts, outcomes)
    y = outcomes[-250:]
    gaps = [np.abs((rows[-250:] >= y[:, None]).mean(axis=0) - PERCENTS).max() for rows in (raw, q)]
    assert gaps[0] > 0.2
    if name in ("isotonic", "cqr") and shift:
        assert 0.1 < gaps[1] < gaps[0]  # they never forget: most of what they fit is from before
    else:
        # 250 independent PITs differ by 0.086 from even ones in 5% of cases; most methods track their own errors
        assert gaps[1] < (0.086 if name in ("isotonic", "cqr", "portfolio") else 0.06)
    assert oc.metrics.pinball(q[-250:], y).mean() < 0.99 * oc.metrics.pinball(raw[-250:], y).mean()


@pytest.mark.parametrize("name", MODERATE)
def test_what_an_expert_that_needs_nothing_loses(name: str) -> None:
    rng = np.random.default_rng(9)
    centres = rng.uniform(40, 60, size=600)
    outcomes = rng.normal(centres, 3)
    experts = [oc.Normal(c, 3) for c in centres]
    q = play(MODERATE[name](0, 100), experts, outcomes)
    raw = np.array([e.quantile(PERCENTS) for e in experts])
    loss = oc.metrics.pinball(q, outcomes).mean() / oc.metrics.pinball(raw, outcomes).mean()
    most = {"pid": 1.1, "tracking": 1.05, "optimistic": 1.05, "scale-free": 1.1, "strongly adaptive": 1.15}
    assert 1.0 < loss < most.get(name, 1.03)


# --- ties ---


def rain(rounds: int, seed: int, dry: float = 0.6) -> tuple[list[oc.Quantiles], Vector]:
    """It often does not rain, and the expert thinks so too often: 80% of its mass is on zero."""
    rng = np.random.default_rng(seed)
    outcomes = np.where(rng.random(rounds) < dry, 0.0, rng.exponential(10, size=rounds)).clip(0, 100)
    values = np.where(PERCENTS <= 0.8, 0.0, -20 * np.log((1 - PERCENTS) / 0.2).clip(None, 1))
    return [oc.Quantiles(PERCENTS, np.maximum(values, 0))] * rounds, outcomes


@pytest.mark.parametrize("name", ["isotonic", "levels", "mixture"])
def test_outcomes_on_an_atom_are_counted_fairly(name: str) -> None:
    experts, outcomes = rain(1000, 10)
    q = play(MODERATE[name](0, 100), experts, outcomes)
    raw = np.array([expert.quantile(PERCENTS) for expert in experts])
    assert oc.metrics.qce(raw, outcomes, low=0, high=100) > 0.5
    assert oc.metrics.qce(q[200:], outcomes[200:], low=0, high=100) < 0.06
    # the atom is issued with the mass that it has
    assert (raw == 0).mean() > 0.8
    assert (q[200:] == 0).mean() == pytest.approx((outcomes[200:] == 0).mean(), abs=0.06)


@quantities
def test_outcomes_on_a_bound_do_not_drive_it_away(make: Any) -> None:
    """Dry for long, then rain: what was learnt in between must not have gone without end."""
    method = make(0, 100)
    experts, _ = rain(500, 11)
    play(method, experts, np.zeros(500))
    for name in ("asked", "_alphas"):
        levels = getattr(method, name, None)
        if levels is not None:
            assert (levels >= -0.31).all()
            assert (levels <= 1.31).all()
    wet = play(method, [oc.Normal(30, 5)] * 150, np.full(150, 32.0))
    if not (isinstance(method, Isotonic) and method.window is None):
        assert wet[-1][49] == pytest.approx(32, abs=4)


@quantities
@pytest.mark.parametrize("y", [0.0, 10.0])
@pytest.mark.parametrize("expert", [oc.Normal(5, 0), oc.Normal(0, 0), {0.1: 0, 0.9: 0}, oc.Normal(5, 1), (10, 0)])
def test_degenerate_experts_and_outcomes(make: Any, y: float, expert: object) -> None:
    q = play(make(0, 10), [expert] * 30, [y] * 30, levels=WIDE)
    assert np.isfinite(q).all()
    assert (np.diff(q, axis=1) >= 0).all()
    assert (q >= 0).all()
    assert (q <= 10).all()


experts_drawn = st.one_of(
    st.tuples(st.integers(-2, 12), st.sampled_from([0.0, 1e-9, 0.5, 1.0, 30.0])),
    st.lists(units, min_size=3, max_size=3).map(lambda v: dict(zip((0.1, 0.5, 0.9), (10 * u for u in v), strict=True))),
    st.lists(units.map(lambda u: 10 * u), min_size=1, max_size=4).map(oc.Ensemble),
)


@quantities
@settings(max_examples=15)
@given(st.lists(st.tuples(experts_drawn, units), min_size=1, max_size=20))
def test_nothing_crosses_or_leaves_the_bounds(make: Any, rounds: list[tuple[object, float]]) -> None:
    method = make(0, 10)
    for expert, u in rounds:
        p = method.predict(expert)
        q = p.quantile(WIDE)
        assert np.isfinite(q).all()
        assert (np.diff(q) >= 0).all()
        assert 0.0 <= q[0] <= q[-1] <= 10.0
        assert p.mass.min() >= 0.0
        assert (p.right >= p.left).all()
        assert p.cdf(10.0) == 1.0
        assert 0.0 <= p.mean() <= 10.0
        method.update(10 * u)
    assert method.rounds == len(rounds)


@quantities
def test_the_unit_of_the_outcome_does_not_matter(make: Any) -> None:
    rng = np.random.default_rng(12)
    centres, outcomes = rng.uniform(2, 8, size=80), rng.uniform(0, 10, size=80)
    here = play(make(0, 10), [oc.Normal(c, 1) for c in centres], outcomes)
    there = play(make(-64, 96), [oc.Normal(16 * c - 64, 16) for c in centres], 16 * outcomes - 64)
    np.testing.assert_allclose(there, 16 * here - 64, atol=1e-6)


def test_any_levels() -> None:
    """Levels in any order, few or many, beyond the percents or between them; read off in between."""
    few = [0.95, 0.05, 0.333]
    for make in set(QUANTITIES.values()):
        if not isinstance(make, type) or "levels" not in signature(make).parameters:
            continue
        method = make(0, 100, levels=few)
        assert method.levels.tolist() == [0.05, 0.333, 0.95]
        p = method.predict(oc.Normal(50, 5))
        np.testing.assert_allclose(p.quantile(PERCENTS), norm(50, 5).ppf(PERCENTS), atol=1e-2)
        method.levels[0] = 7.0  # a copy
        assert method.levels[0] == 0.05
        extreme = make(0, 100, levels=[0.0001, 0.5, 0.9999])
        p = extreme.predict(oc.Normal(50, 5))
        np.testing.assert_allclose(p.quantile([0.0001, 0.9999]), norm(50, 5).ppf([0.0001, 0.9999]), atol=1e-6)


# --- yes or no ---


def test_platt_by_hand() -> None:
    platt = OnlinePlatt(curvature=0.5)
    assert float(platt.predict(0.5)) == 0.5
    platt.update(1)
    # log odds 0, g = (0, -1/2), A = diag(4, 4 + 1/4): the shift moves by 2 * (1/2) / 4.25
    assert (platt.slope, platt.shift) == (1.0, pytest.approx(1 / 4.25))
    assert float(platt.predict(0.5)) == pytest.approx(expit(1 / 4.25))


def test_platt_against_its_slow_twin() -> None:
    rng = np.random.default_rng(13)
    platt, w, a = OnlinePlatt(), np.array([1.0, 0.0]), 100.0 * np.eye(2)
    for p in np.concatenate(([0.0, 1.0, 1e-9], rng.beta(0.5, 0.5, size=500))).tolist():
        x = np.array([logit(min(max(p, 0.001), 0.999)), 1.0])
        assert float(platt.predict(p)) == pytest.approx(expit(x @ w), abs=1e-9)
        y = int(rng.random() < 0.2 + 0.3 * p)
        platt.update(y)
        g = (expit(x @ w) - y) * x
        a += np.outer(g, g)
        w = w - np.linalg.inv(a) @ g / 0.1
    assert (platt.slope, platt.shift) == (pytest.approx(w[0]), pytest.approx(w[1]))


def test_platt_finds_the_slope_and_the_shift() -> None:
    rng = np.random.default_rng(14)
    odds = rng.normal(0, 2, size=4000)
    outcomes = rng.random(4000) < expit(0.5 * odds - 1)
    platt = OnlinePlatt()
    for p, y in zip(expit(odds).tolist(), outcomes.tolist(), strict=True):
        platt.predict(p)
        platt.update(y)
    assert (platt.slope, platt.shift) == (pytest.approx(0.5, abs=0.1), pytest.approx(-1, abs=0.15))


def test_platt_does_not_run_away() -> None:
    """Separated for long, then the other way round."""
    platt = OnlinePlatt(curvature=0.02)
    sizes = []
    for t in range(4000):
        said = float(platt.predict(1.0 if t % 2 else 0.0))
        assert 0.0 <= said <= 1.0
        platt.update(t % 2 if t < 2000 else 1 - t % 2)
        sizes.append(math.hypot(platt.slope, platt.shift))
    assert max(sizes) <= 100.0 + 1e-9
    assert platt.slope < 0.0


def test_large_coefficients_are_shrunk() -> None:
    platt = OnlinePlatt(curvature=1000.0)  # the first step is 1000 g
    platt.predict(0.9)
    platt.update(0)
    assert math.hypot(platt.slope, platt.shift) <= 100.0 + 1e-9
    free = np.array([1.0, 0.0]) - 1e-3 * np.linalg.inv(
        1e-6 * np.eye(2) + 0.81 * np.outer([logit(0.9), 1], [logit(0.9), 1])
    ) @ (0.9 * np.array([logit(0.9), 1]))
    assert np.hypot(*free) < 100.0
    assert (platt.slope, platt.shift) == (pytest.approx(free[0], rel=1e-6), pytest.approx(free[1], rel=1e-6))
    platt.slope, platt.shift = 300.0, 400.0
    platt.predict(0.999)
    platt.update(1)
    assert (platt.slope, platt.shift) == (pytest.approx(60.0), pytest.approx(80.0))


def test_binning_by_hand() -> None:
    binning = HistogramBinning(bins=4)
    said = []
    for p, y in [(0.3, 1), (0.4, 0), (1.0, 1), (0.25, 1), (0.9, 0), (0.0, 0)]:
        said.append(float(binning.predict(p)))
        binning.update(y)
    assert said == pytest.approx([0.3, (1 + 0.4) / 2, 1.0, (1 + 0.25) / 3, (1 + 0.9) / 2, 0.0])


@pytest.mark.parametrize("make", CALIBRATED.values(), ids=CALIBRATED.keys())
def test_events_become_calibrated(make: Any) -> None:
    rng = np.random.default_rng(15)
    method, before, after = make(), oc.metrics.ECE(), oc.metrics.ECE()
    for p in rng.beta(1, 1, size=3000).tolist():
        y = bool(rng.random() < expit(0.5 * logit(p) - 1))
        before.update(p, y)
        after.update(method.predict(p), y)
        method.update(y)
    assert before.get() > 0.1
    assert after.get() < 0.05


@events
@pytest.mark.parametrize(
    "forecast", [0.75, [0.25, 0.75], {1: 0.75}, {0: 0.25}, oc.forecasts.BinaryForecast(0.75), np.float64(0.75)]
)
def test_events_take_what_a_recalibrator_takes(make: Any, forecast: object) -> None:
    p = make().predict(forecast)
    assert isinstance(p, oc.forecasts.BinaryForecast)
    assert p.probability() == pytest.approx(0.75)
    assert p.mean() == p.probability()


# --- the common contract ---


ALL: dict[str, tuple[Callable[[], Any], tuple[object, ...], tuple[float, ...]]] = {
    **{
        name: (lambda make=make: make(0, 10), (oc.Normal(4, 1), {0.2: 5, 0.8: 5}, (6, 2)), (3.0, 5.0, 0.0))
        for name, make in QUANTITIES.items()
    },
    **{name: (make, (0.2, 0.7, 0.9), (1, 0, 1)) for name, make in EVENTS.items()},
}
everything = pytest.mark.parametrize(("make", "experts", "outcomes"), ALL.values(), ids=ALL.keys())


def said(p: Any) -> Any:
    return float(p) if isinstance(p, oc.forecasts.BinaryForecast) else p.quantile(WIDE).tolist()


@everything
def test_predict_changes_nothing_but_the_waiting_round(make: Any, experts: Any, outcomes: Any) -> None:
    calm, busy = make(), make()
    for expert, y in zip(experts, outcomes, strict=True):
        for other in experts:
            busy.predict(other)
        assert said(busy.predict(expert)) == said(calm.predict(expert)) == said(calm.predict(expert))
        calm.update(y)
        busy.update(y)
    assert state(calm) == state(busy)


BAD_QUANTITIES = [None, "high", 3.0, [1, 2, 3], {}, {"a": 1}, {0.5: 1}, (1, -1), (1, math.nan), {0.1: 1, 0.9: math.inf}]
BAD_QUANTITIES += [SimpleNamespace(ppf=lambda a: np.nan * np.asarray(a)), SimpleNamespace(cdf=lambda y: "high")]
BAD_QUANTITIES += [SimpleNamespace(quantile=lambda a: None), object(), oc.Ensemble([[1.0, 2.0]])]
BAD_EVENTS = [None, "high", -0.1, 1.1, math.nan, [0.3, 0.3], {}, {2: 0.5}, object()]


@everything
def test_bad_input_changes_nothing(make: Any, experts: Any, outcomes: Any) -> None:
    method = make()
    method.predict(experts[0])
    method.update(outcomes[0])
    for waits in (False, True):
        if waits:
            method.predict(experts[1])
        before = state(method)
        event = isinstance(method, EventBaseline)
        for forecast in BAD_EVENTS if event else BAD_QUANTITIES:
            with pytest.raises((TypeError, ValueError), match=SENTENCE):
                method.predict(forecast)
            assert state(method) == before
        for y in [None, "3", math.nan, math.inf, -0.1, 10.1, [1, 2], *([0.5, 2] if event else [])]:
            with pytest.raises((TypeError, ValueError), match=SENTENCE):
                method.update(y)
            assert state(method) == before
    method.update(outcomes[1])
    assert method.rounds == 2


@everything
def test_an_outcome_needs_a_pending_round(make: Any, experts: Any, outcomes: Any) -> None:
    method = make()
    with pytest.raises(ValueError, match="expected a pending round, got none"):
        method.update(outcomes[0])
    method.predict(experts[0])
    method.update(outcomes[0])
    with pytest.raises(ValueError, match=SENTENCE):
        method.update(outcomes[0])
    assert method.rounds == 1


@everything
def test_a_round_may_be_dropped(make: Any, experts: Any, outcomes: Any) -> None:
    plain, dropped = make(), make()
    for method in (plain, dropped):
        method.predict(experts[0], id="a")
    dropped.predict(experts[1], id="b")
    dropped.drop("b")
    for method in (plain, dropped):
        method.update(outcomes[0], id="a")
    assert dropped.pending == ()
    assert said(plain.predict(experts[2])) == said(dropped.predict(experts[2]))
    with pytest.raises(ValueError, match="expected a pending round, got 'b'"):
        dropped.drop("b")


@everything
def test_copies_go_on_by_themselves(make: Any, experts: Any, outcomes: Any) -> None:
    method = make()
    for expert, y in zip(experts, outcomes, strict=True):
        method.predict(expert)
        copies = [pickle.loads(pickle.dumps(method)), copy.deepcopy(method)]
        before = state(method)
        for other in copies:
            other.update(y)
        assert state(method) == before
        method.update(y)
        wanted = said(method.predict(expert))
        assert [said(other.predict(expert)) for other in copies] == [wanted, wanted]


@everything
def test_size_of_the_state(make: Any, experts: Any, outcomes: Any) -> None:
    method = make()
    sizes = []
    for t in range(241):
        method.predict(experts[t % 3])
        method.update(outcomes[t % 3])
        if t in (120, 240):
            sizes.append(len(state(method)))
    growth = (sizes[1] - sizes[0]) / 120
    kept = {
        Isotonic: 8.0,
        LastOutcome: 8.0,
        ConformalQuantiles: 8.0 * 99,
        IsotonicProbabilities: 22.0,
        VennAbers: 22.0,
        StronglyAdaptiveTracking: 4 * 5 * 8 * 99 / 120,  # four trackers more from 120 to 240 rounds
    }.get(type(method), 0.0)
    full = (getattr(method, "window", None) or 2000) < 120
    assert growth == pytest.approx(0.0 if full else kept, abs=0.2, rel=0.1)


@everything
def test_says_what_it_is(make: Any, experts: Any, outcomes: Any) -> None:
    method = make()
    method.predict(experts[0])
    method.update(outcomes[0])
    assert repr(method).startswith(type(method).__name__ + "(")
    assert repr(method).endswith("rounds=1)")


@pytest.mark.parametrize(
    "wrong",
    [
        *[lambda make=make: make(1, 0) for make in (Isotonic, ConformalLevels, ConformalMixture, ConformalPID)],
        lambda: Isotonic(0, math.inf),
        lambda: Isotonic("a", 1),
        lambda: Isotonic(0, 1, window=0),
        lambda: Isotonic(0, 1, window=2.5),  # type: ignore[arg-type]
        lambda: ConformalLevels(0, 1, levels=[0.5]),
        lambda: ConformalLevels(0, 1, levels=[0.0, 0.5]),
        lambda: ConformalLevels(0, 1, levels=[0.5, 0.5]),
        lambda: ConformalLevels(0, 1, levels="some"),  # type: ignore[arg-type]
        lambda: ConformalLevels(0, 1, rate=0),
        lambda: ConformalLevels(0, 1, rate=math.nan),
        lambda: ConformalMixture(0, 1, rates=[]),
        lambda: ConformalMixture(0, 1, rates=[0.1, -0.1]),
        lambda: ConformalMixture(0, 1, rates="fast"),  # type: ignore[arg-type]
        lambda: ConformalMixture(0, 1, horizon=0),
        lambda: ConformalPID(0, 1, rate=-1),
        lambda: ConformalPID(0, 1, integral=-1),
        lambda: ConformalPID(0, 1, saturation=0),
        lambda: ConformalPID(0, 1, window=0),
        lambda: MultiLevelTracking(0, 1, least=-1),
        lambda: GradientEquilibrium(0, 1, rate=0),
        lambda: GradientEquilibrium(0, 1, loss="cubic"),
        lambda: DecayingTracking(0, 1, decay=1),
        lambda: DecayingTracking(0, 1, scale=0),
        lambda: ScaleFreeTracking(0, 1, scale=-1),
        lambda: OptimisticTracking(0, 1, optimism=-1),
        lambda: StronglyAdaptiveTracking(0, 1, lifetime=0),
        lambda: UniversalPortfolioTracking(0, 1, prior="flat"),
        lambda: UniversalPortfolioTracking(0, 1, first=0),
        lambda: ConformalQuantiles(0, 1, window=0),
        lambda: OnlinePlatt(curvature=0),
        lambda: BetaCalibration(curvature=0),
        lambda: PlattCalibeating(bins=0),
        lambda: EventGradientEquilibrium(rate=0),
        lambda: VennAbers(window=0),
        lambda: IsotonicProbabilities(window=1.5),  # type: ignore[arg-type]
        lambda: OutcomeFrequency(memory=0.5),
        lambda: RollingEMOS(0, 1, window=10),
        lambda: RollingEMOS(0, 1, every=0),
        lambda: IsotonicDistributions(0, 1, window=2.5),  # type: ignore[arg-type]
        lambda: BernsteinAggregation(0, 1, forget=2),
        lambda: AsGiven(1, 0),
        lambda: LastOutcome("a", 1),
        lambda: HistogramBinning(bins=0),
        lambda: HistogramBinning(bins=1.5),  # type: ignore[arg-type]
    ],
)
def test_wrong_options(wrong: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        wrong()
