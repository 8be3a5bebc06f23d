"""Streams of the paper's experiments: learners predict before they are updated and never look ahead."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orcast.datasets import Series, load
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
