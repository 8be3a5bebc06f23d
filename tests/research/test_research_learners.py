"""Streams of the paper's experiments: learners predict before they are updated and never look ahead."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from orcast.datasets import Series, load
from orcast.metrics import LEVELS
from research import learners

pytest.importorskip("river")
pytest.importorskip("sklearn")
Vector = NDArray[np.float64]
ALL = list(learners.LEARNERS)


def series(values: Any, low: float = -10.0, high: float = 10.0) -> Series:
    return Series("toy", np.asarray(values, dtype=np.float64), low, high, 24, "", "")


def humidity(size: int) -> Series:
    return series(load("humidity").values[:size], 0.0, 100.0)


def wind(days: int) -> Series:
    return series(load("wind").values[: 24 * days], -50.0, 8200.0)


class Spy:
    """Learner that forecasts the last value but one, or a constant, and records its calls."""

    def __init__(self, constant: float | None = None) -> None:
        self.constant = constant
        self.calls: list[tuple[str, Vector, float]] = []

    def predict(self, x: Vector) -> float:
        forecast = float(x[-2]) if self.constant is None else self.constant
        self.calls.append(("predict", x.copy(), forecast))
        return forecast

    def update(self, x: Vector, y: float) -> None:
        self.calls.append(("update", x.copy(), y))


def test_stream_predicts_then_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy()
    monkeypatch.setitem(learners.LEARNERS, "spy", lambda seed: spy)
    y = np.random.default_rng(1).normal(size=700).cumsum() / 10
    s = learners.stream(series(y), "spy", steps=30, warmup=600)
    first = 24 + 600
    z = (y - y[:first].mean()) / y[:first].std()
    rounds = range(24, first + 30)
    assert [call[0] for call in spy.calls] == ["predict", "update"] * len(rounds)
    for t, predict, update in zip(rounds, spy.calls[::2], spy.calls[1::2], strict=True):
        np.testing.assert_allclose(predict[1], z[t - 24 : t], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(predict[1], update[1])
        assert update[2] == pytest.approx(z[t], rel=1e-12)
    assert s.name == "toy/spy"
    np.testing.assert_array_equal(s.y, y[first : first + 30])
    np.testing.assert_allclose(s.mu, y[first - 2 : first + 28], rtol=1e-9, atol=1e-12)
    residuals = y[24:] - y[22:-2]
    for k in range(30):
        last = residuals[600 + k - 500 : 600 + k]
        assert s.sd[k] == pytest.approx(np.sqrt(np.mean(last**2)), rel=1e-9)


@pytest.mark.parametrize(("constant", "bound"), [(1e6, 10.0), (-1e6, -10.0)])
def test_forecasts_stay_on_the_interval(constant: float, bound: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(learners.LEARNERS, "spy", lambda seed: Spy(constant))
    s = learners.stream(series(np.random.default_rng(2).normal(size=100)), "spy", steps=10, warmup=60)
    assert (s.mu == bound).all()
    assert (s.sd < 25.0).all(), "residuals are those of the clipped forecasts"


@pytest.mark.parametrize("learner", ALL)
def test_learners_do_not_look_ahead(learner: str) -> None:
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


@pytest.mark.parametrize("learner", ALL)
def test_same_seed_gives_the_same_stream(learner: str) -> None:
    whole = humidity(24 + 200 + 30)
    runs = [learners.stream(whole, learner, steps=30, warmup=200, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].mu, runs[1].mu)
    np.testing.assert_array_equal(runs[0].sd, runs[1].sd)
    assert np.array_equal(runs[0].mu, runs[2].mu) is not (learner in ("network", "hoeffding-tree"))


@pytest.mark.parametrize("learner", [name for name in ALL if name != "marginal"])
def test_learners_beat_the_mean(learner: str) -> None:
    """On a wave with noise the error is below that of the mean, and not below the noise."""
    rng = np.random.default_rng(3)
    t = np.arange(24 + 900 + 200)
    y = 5.0 * np.sin(2 * np.pi * t / 24) + rng.normal(size=t.size)
    s = learners.stream(series(y, -20.0, 20.0), learner, steps=200, warmup=900)
    error = np.sqrt(np.mean((s.y - s.mu) ** 2))
    assert 0.9 < error < 0.75 * s.y.std()
    assert s.sd.mean() == pytest.approx(error, rel=0.5)


@pytest.mark.parametrize("learner", ["hoeffding-tree", "marginal"])
def test_forecasts_are_accepted_by_a_recalibrator(learner: str) -> None:
    s = learners.stream(humidity(24 + 210 + 10), learner, steps=10, warmup=210)
    q = s.quantile(LEVELS)
    assert q.shape == (len(s), 99)
    assert s.low <= q.min() <= q.max() <= s.high
    recal = oc.Recalibrator(oc.Interval(s.low, s.high))
    for k, forecast in enumerate(s.forecasts()):
        np.testing.assert_allclose(np.clip(forecast.quantile(LEVELS), s.low, s.high), q[k], atol=1e-9)
        recal.predict(forecast)
        recal.update(float(s.y[k]))


def test_wrong_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = humidity(300)
    with pytest.raises(ValueError, match=r"^expected one of gradient-tree, network, hoeffding-tree, marginal, got 'or"):
        learners.stream(whole, "oracle")
    with pytest.raises(ValueError, match=r"^expected a series of at least 301 values, got 300$"):
        learners.stream(whole, "marginal", steps=77, warmup=200)
    with pytest.raises(ValueError, match=r"^expected at least 1 step and 2 rounds of warm-up, got 0 and 200$"):
        learners.stream(whole, "marginal", steps=0, warmup=200)
    for days, arguments, least in ((60, {}, 61), (16, {"warmup": 10, "days": 7}, 17)):
        with pytest.raises(ValueError, match=rf"^expected a series of at least {least} days, got {days}$"):
            learners.day_ahead(wind(days), **arguments)


def test_optional_packages_are_imported_when_used() -> None:
    code = "import sys, research.learners; print([n for n in ('river', 'sklearn') if n in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_marginal_is_the_sorted_past() -> None:
    """Levels (k - 1/2) / n meet the k-th of n past values exactly, atoms included."""
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
    assert (s.quantile([0.9 * zero])[0] == 0.0).all()


def test_day_ahead_uses_the_days_before_only() -> None:
    """Another day leaves the forecasts of all days up to itself as they are, and changes that of the next."""
    whole, change = wind(32), 24
    values = whole.values.copy()
    values[24 * change + 7] += 3000.0
    one = learners.day_ahead(whole, warmup=20, trees=5)
    two = learners.day_ahead(series(values, -50.0, 12_000.0), warmup=20, trees=5)
    assert one.mu.shape == one.sd.shape == one.y.shape == (12, 24)
    np.testing.assert_array_equal(one.y, whole.values.reshape(-1, 24)[20:])
    np.testing.assert_array_equal(one.mu[: change - 20 + 1], two.mu[: change - 20 + 1])
    np.testing.assert_array_equal(one.sd[: change - 20 + 1], two.sd[: change - 20 + 1])
    assert (one.sd[change - 20 + 1] != two.sd[change - 20 + 1]).tolist() == [hour == 7 for hour in range(24)]
    assert not np.array_equal(one.mu[change - 20 + 1 :], two.mu[change - 20 + 1 :])


def test_day_ahead_deviation_of_an_hour_is_that_of_its_residuals() -> None:
    early = learners.day_ahead(wind(14), warmup=4, trees=3)
    late = learners.day_ahead(wind(14), warmup=10, trees=3)
    np.testing.assert_array_equal(early.mu[6:], late.mu)
    residuals = early.y - early.mu  # days 4 to 13; fitting of `late` begins on day 5
    for k in range(4):
        np.testing.assert_allclose(late.sd[k], np.sqrt(np.mean(residuals[1 : 6 + k] ** 2, axis=0)), rtol=1e-9)
    hour = late.hour(3)
    assert hour.name == "toy/bagged-trees/3"
    np.testing.assert_array_equal(hour.y, late.y[:, 3])
    np.testing.assert_array_equal(hour.sd, late.sd[:, 3])
    last = learners.last_outcome_days(wind(14), warmup=10)
    assert (last.mu[1] == last.y[0, -1]).all()


@pytest.mark.slow
def test_day_ahead_of_the_shipped_wind_farm() -> None:
    days = learners.day_ahead(load("wind"))
    assert days.mu.shape == (290, 24)
    error = np.sqrt(np.mean((days.y - days.mu) ** 2))
    assert error < 0.9 * np.sqrt(np.mean((days.y[1:] - days.y[:-1]) ** 2))
    assert 0.85 < np.mean(np.abs(days.y - days.mu) < 1.645 * days.sd) < 0.97
