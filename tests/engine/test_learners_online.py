"""The paper's experts: they predict before they learn, never look ahead, and say the same for the same seed."""

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from orcast.datasets import Series as RealSeries
from orcast.metrics import LEVELS, qce
from orcast.paper.experiments import data, learners

Vector = NDArray[np.float64]

needs_river = pytest.mark.skipif(find_spec("river") is None, reason="river is not installed")
needs_sklearn = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
MARKS = {"gradient-tree": needs_river, "network": needs_sklearn, "hoeffding-tree": needs_river}
ONLINE = [pytest.param(name, marks=mark) for name, mark in MARKS.items()]
ALL = [*ONLINE, learners.MARGINAL]


def series(values: Any, low: float = -10.0, high: float = 10.0) -> RealSeries:
    return RealSeries("toy", np.asarray(values, dtype=np.float64), low, high, 24, "", "")


def humidity(size: int) -> RealSeries:
    return series(data.load("humidity").values[:size], 0.0, 100.0)


# --- the loop ---


class Spy:
    """Says the last value but one, or what it is given to say; keeps what it is asked and told."""

    def __init__(self, say: float | None = None) -> None:
        self.say = say
        self.calls: list[tuple[str, Vector, float]] = []

    def predict(self, x: Vector) -> float:
        said = float(x[-2]) if self.say is None else self.say
        self.calls.append(("predict", x.copy(), said))
        return said

    def learn(self, x: Vector, y: float) -> None:
        self.calls.append(("learn", x.copy(), y))


def spied(monkeypatch: pytest.MonkeyPatch, spy: Spy) -> Spy:
    monkeypatch.setitem(learners.LEARNERS, "spy", lambda seed: spy)
    return spy


def test_the_protocol_is_predict_then_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = spied(monkeypatch, Spy())
    y = np.random.default_rng(1).normal(size=700).cumsum() / 10
    s = learners.stream(series(y), "spy", steps=30, warmup=600)
    first = 24 + 600
    z = (y - y[:first].mean()) / y[:first].std()
    rounds = range(24, first + 30)
    assert [call[0] for call in spy.calls] == ["predict", "learn"] * len(rounds)
    for t, asked, told in zip(rounds, spy.calls[::2], spy.calls[1::2], strict=True):
        np.testing.assert_allclose(asked[1], z[t - 24 : t], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(asked[1], told[1])
        assert told[2] == pytest.approx(z[t], rel=1e-12)
    assert s.name == "toy/spy"
    np.testing.assert_array_equal(s.y, y[first : first + 30])
    np.testing.assert_allclose(s.mu, y[first - 2 : first + 28], rtol=1e-9, atol=1e-12)
    residuals = y[24:] - y[22:-2]
    for k in range(30):
        last = residuals[600 + k - 500 : 600 + k]
        assert s.sd[k] == pytest.approx(np.sqrt(np.mean(last**2)), rel=1e-9)


@pytest.mark.parametrize(("say", "bound"), [(1e6, 10.0), (-1e6, -10.0)])
def test_what_is_said_stays_on_the_interval(say: float, bound: float, monkeypatch: pytest.MonkeyPatch) -> None:
    spied(monkeypatch, Spy(say))
    y = np.random.default_rng(2).normal(size=100)
    s = learners.stream(series(y), "spy", steps=10, warmup=60)
    assert (s.mu == bound).all()
    assert (s.sd < 25.0).all(), "the residuals are those of what is forecast"


def test_a_constant_series_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    spied(monkeypatch, Spy())
    s = learners.stream(series(np.full(100, 7.0)), "spy", steps=10, warmup=60)
    assert (s.mu == 7.0).all()
    assert (s.sd == 0.0).all()
    assert (s.quantile(LEVELS) == 7.0).all()


# --- the learners ---


@pytest.mark.parametrize("learner", ALL)
def test_nobody_looks_ahead(learner: str) -> None:
    """Another future leaves the forecasts up to its first round as they are, and changes later ones."""
    warmup, steps, change = 230, 250, 100
    whole = humidity(24 + warmup + steps)
    values = whole.values.copy()
    values[24 + warmup + change :] = 100.0 - values[24 + warmup + change :]
    one = learners.stream(whole, learner, steps=steps, warmup=warmup)
    two = learners.stream(series(values, 0.0, 100.0), learner, steps=steps, warmup=warmup)
    for a, b in ((one.mu, two.mu), (one.sd, two.sd), (one.quantile([0.1, 0.8]), two.quantile([0.1, 0.8]))):
        np.testing.assert_array_equal(a[: change + 1], b[: change + 1])
        assert not np.array_equal(a[change + 1 :], b[change + 1 :])
    assert not np.array_equal(one.mu[change + 1 :], two.mu[change + 1 :])


@pytest.mark.parametrize("learner", ALL)
def test_a_seed_says_it_all(learner: str) -> None:
    whole = humidity(24 + 200 + 40)
    runs = [learners.stream(whole, learner, steps=40, warmup=200, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].mu, runs[1].mu)
    np.testing.assert_array_equal(runs[0].sd, runs[1].sd)
    random = learner in ("network", "hoeffding-tree")
    assert np.array_equal(runs[0].mu, runs[2].mu) is not random


@pytest.mark.parametrize("learner", ONLINE)
def test_they_learn(learner: str) -> None:
    """A wave with noise: all err less than one who says the mean, and not less than the noise."""
    rng = np.random.default_rng(3)
    t = np.arange(24 + 900 + 200)
    y = 5.0 * np.sin(2 * np.pi * t / 24) + rng.normal(size=t.size)
    s = learners.stream(series(y, -20.0, 20.0), learner, steps=200, warmup=900)
    error = np.sqrt(np.mean((s.y - s.mu) ** 2))
    assert 0.9 < error < 0.75 * s.y.std()
    assert s.sd.mean() == pytest.approx(error, rel=0.5)


@pytest.mark.parametrize("learner", ALL)
def test_a_stream_is_what_the_rest_takes(learner: str) -> None:
    s = learners.stream(humidity(24 + 210 + 30), learner, steps=30, warmup=210)
    assert len(s) == s.mu.size == s.sd.size == s.y.size == 30
    q = s.quantile(LEVELS)
    assert q.shape == (30, 99)
    assert (np.diff(q, axis=1) >= 0.0).all()
    assert s.low <= q.min() <= q.max() <= s.high
    recal = oc.Recalibrator(oc.Interval(s.low, s.high))
    for k, forecast in enumerate(s.forecasts()):
        np.testing.assert_allclose(np.clip(forecast.quantile(LEVELS), s.low, s.high), q[k], atol=1e-9)
        recal.predict(forecast)
        recal.update(float(s.y[k]))


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = humidity(300)
    with pytest.raises(ValueError, match=r"^expected one of gradient-tree, network, hoeffding-tree, marginal, got 'or"):
        learners.stream(whole, "oracle")
    with pytest.raises(ValueError, match=r"^expected a series of at least 301 values, got 300$"):
        learners.stream(whole, "marginal", steps=77, warmup=200)
    assert len(learners.stream(whole, "marginal", steps=76, warmup=200)) == 76
    for wrong in ({"steps": 0}, {"steps": 2.0}, {"warmup": 1}, {"warmup": True}):
        with pytest.raises(ValueError, match=r"^expected at least \d (step|rounds of warm-up), got "):
            learners.stream(whole, "marginal", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("learner", "module", "package"),
    [
        ("gradient-tree", "river.tree", "river"),
        ("hoeffding-tree", "river.tree", "river"),
        ("network", "sklearn.neural_network", "sklearn"),
    ],
)
def test_one_sentence_says_what_is_missing(
    learner: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"^expected the extra orcast\[research\] for .*, got no {package}$"):
        learners.stream(humidity(200), learner, steps=10, warmup=20)


def test_nothing_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, orcast.paper.experiments.learners, orcast.paper.experiments.data as d; d.best('humidity'); "
        "print([name for name in ('river', 'sklearn', 'openpyxl') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


# --- the marginal distribution ---


def test_the_marginal_is_the_past_itself() -> None:
    """Against the sorted past in each round: levels (k - 1/2) / n meet the k-th of n values exactly, atoms included."""
    rng = np.random.default_rng(4)
    y = np.maximum(rng.normal(1.0, 2.0, size=24 + 20 + 30), 0.0).round(1)
    s = learners.stream(series(y), "marginal", steps=30, warmup=20)
    for k, forecast in enumerate(s.forecasts()):
        past = np.sort(y[: 44 + k])
        n = past.size
        np.testing.assert_allclose(forecast.quantile((np.arange(n) + 0.5) / n), past, atol=1e-9)
        assert s.mu[k] == pytest.approx(past.mean())
        assert s.sd[k] == pytest.approx(past.std())
    zero = (y[:44] == 0.0).mean()
    assert 0.1 < zero < 0.6
    assert (s.quantile([0.9 * zero])[0] == 0.0).all(), "an atom, where a normal distribution has none"


def test_the_marginal_is_calibrated_where_nothing_changes() -> None:
    y = np.random.default_rng(5).exponential(size=24 + 1000 + 1000)
    s = learners.stream(series(y, 0.0, 50.0), "marginal")
    assert qce(s.quantile(LEVELS), s.y) < 0.15
    normal = learners.Gaussian(s.name, s.mu, s.sd, s.y, s.low, s.high)
    assert qce(normal.quantile(LEVELS), s.y) > 0.3


# --- the day ahead ---


def wind(days: int) -> RealSeries:
    return series(data.stand_in("wind").values[: 24 * days], -50.0, 8200.0)


@needs_sklearn
def test_the_day_ahead_knows_no_more_than_the_days_before() -> None:
    """Another day leaves the forecasts of all days up to itself as they are, and changes that of the next."""
    whole, change = wind(32), 24
    values = whole.values.copy()
    values[24 * change + 7] += 3000.0
    one = learners.day_ahead(whole, warmup=20, trees=5)
    two = learners.day_ahead(series(values, -50.0, 12_000.0), warmup=20, trees=5)
    assert one.mu.shape == one.sd.shape == one.y.shape == (12, 24)
    assert len(one) == 12
    np.testing.assert_array_equal(one.y, whole.values.reshape(-1, 24)[20:])
    np.testing.assert_array_equal(one.mu[: change - 20 + 1], two.mu[: change - 20 + 1])
    np.testing.assert_array_equal(one.sd[: change - 20 + 1], two.sd[: change - 20 + 1])
    assert (one.sd[change - 20 + 1] != two.sd[change - 20 + 1]).tolist() == [hour == 7 for hour in range(24)]
    assert not np.array_equal(one.mu[change - 20 + 1 :], two.mu[change - 20 + 1 :])


@needs_sklearn
def test_the_spread_of_an_hour_is_that_of_its_own_residuals() -> None:
    early = learners.day_ahead(wind(14), warmup=4, trees=3)
    late = learners.day_ahead(wind(14), warmup=10, trees=3)
    assert not np.array_equal(early.sd[6:], late.sd), "the first residual comes half-way through the warm-up"
    np.testing.assert_array_equal(early.mu[6:], late.mu)
    residuals = early.y - early.mu  # days 4 to 13
    for k in range(4):
        expected = np.sqrt(np.mean(residuals[1 : 6 + k] ** 2, axis=0))  # from day 5 on
        np.testing.assert_allclose(late.sd[k], expected, rtol=1e-9)
    hour = late.hour(3)
    assert hour.name == "toy/bagged-trees/3"
    np.testing.assert_array_equal(hour.y, late.y[:, 3])
    np.testing.assert_array_equal(hour.sd, late.sd[:, 3])


@needs_sklearn
def test_days_that_follow_a_rule_are_foreseen() -> None:
    """Calm and windy days in turn: yesterday tells today, and no mean of all days does."""
    shape = 3.0 + np.sin(np.arange(24) / 4.0)
    values = np.concatenate([shape if day % 2 else -shape for day in range(50)])
    days = learners.day_ahead(series(values), warmup=40)
    np.testing.assert_allclose(days.mu, days.y, atol=1e-9)


@needs_sklearn
def test_a_seed_says_all_of_the_day_ahead() -> None:
    runs = [learners.day_ahead(wind(16), warmup=10, days=3, trees=3, seed=seed) for seed in (1, 1, 2)]
    assert len(runs[0]) == 3
    np.testing.assert_array_equal(runs[0].mu, runs[1].mu)
    assert not np.array_equal(runs[0].mu, runs[2].mu)


def test_refusals_of_the_day_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"^expected a series of at least 61 days, got 60$"):
        learners.day_ahead(wind(60))
    with pytest.raises(ValueError, match=r"^expected a series of at least 17 days, got 16$"):
        learners.day_ahead(wind(16), warmup=10, days=7)
    for wrong in ({"days": 0}, {"warmup": 3}, {"trees": 0}, {"days": 1.5}):
        with pytest.raises(ValueError, match=r"^expected at least \d (day|days of warm-up|tree), got "):
            learners.day_ahead(wind(80), **wrong)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError, match=r"^expected the extra orcast\[research\] .*got no sklearn$"):
        learners.day_ahead(wind(16), warmup=10)


# --- as the experiments use them ---


@pytest.mark.slow
@pytest.mark.parametrize("name", data.STAND_INS)
@pytest.mark.parametrize("learner", ALL)
def test_a_thousand_steps_of_the_stand_ins(name: str, learner: str) -> None:
    s = learners.stream(data.stand_in(name), learner)
    assert len(s) == 1000
    assert np.isfinite(s.mu).all()
    assert (s.sd > 0.0).all()
    always_mean = np.sqrt(np.mean((s.y - s.mu.mean()) ** 2))
    assert np.sqrt(np.mean((s.y - s.mu) ** 2)) < (1.2 if learner == learners.MARGINAL else 0.95) * always_mean


@pytest.mark.slow
@needs_sklearn
def test_the_wind_farm_of_the_stand_in() -> None:
    days = learners.day_ahead(data.stand_in("wind"))
    assert days.mu.shape == (290, 24)
    error = np.sqrt(np.mean((days.y - days.mu) ** 2))
    yesterday = np.sqrt(np.mean((days.y[1:] - days.y[:-1]) ** 2))
    assert error < 0.9 * yesterday
    assert 0.85 < np.mean(np.abs(days.y - days.mu) < 1.645 * days.sd) < 0.97
