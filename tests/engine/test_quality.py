"""Better calibrated and more accurate than the expert, on real series, with nothing tuned."""

import functools

import numpy as np
import pytest

import orcast as oc
from helpers import Vector, in_batches
from orcast.datasets import EXPERTS, ForecastStream, stream
from orcast.evaluate.metrics import LEVELS, pinball, qce
from research.experiments import data

# The streams of method.md's table, and the pinball loss relative to the expert that must be reached.
TABLE = {"wind/rls": 0.995, "wind/naive": 0.260, "sunspots/rls": 0.990, "sunspots/naive": 0.560}
MOST_QCE = 0.004

needs_data = pytest.mark.skipif(
    not {"wind", "sunspots"} <= set(data.available()), reason=f"wind and sunspots are not where {data.VARIABLE} points"
)


@functools.cache
def stream_of(name: str) -> ForecastStream:
    series, _, expert = name.partition("/")
    return stream(data.load(series), expert)


def experts(s: ForecastStream) -> list[oc.Normal]:
    return [oc.Normal(mu, sd) for mu, sd in zip(s.mu, s.sd, strict=True)]


def measured(s: ForecastStream, quantiles: Vector) -> tuple[float, float, float]:
    """QCE, the expert's QCE, and the pinball loss relative to the expert's."""
    own = s.quantile(LEVELS)
    relative = pinball(quantiles, s.y).mean() / pinball(own, s.y).mean()
    return (
        qce(quantiles, s.y, LEVELS, low=s.low, high=s.high),
        qce(own, s.y, LEVELS, low=s.low, high=s.high),
        float(relative),
    )


def at_once(s: ForecastStream) -> tuple[float, float, float]:
    recal = oc.Recalibrator(oc.Interval(s.low, s.high))
    result = measured(s, recal.run(experts(s), s.y, at=LEVELS))
    assert recal.guarantee.held == 1.0
    assert recal.guarantee.miscalibration <= recal.guarantee.promised
    return result


def late(s: ForecastStream, batches: int) -> tuple[float, float, float]:
    recal = oc.Recalibrator(oc.Interval(s.low, s.high))
    result = measured(s, in_batches(recal, experts(s), s.y, LEVELS, batch=50, late=batches))
    assert recal.guarantee.held == 1.0
    assert recal.guarantee.miscalibration <= recal.guarantee.promised
    return result


@needs_data
@pytest.mark.parametrize("name", TABLE)
def test_the_table(name: str) -> None:
    error, _, relative = at_once(stream_of(name))
    assert error <= MOST_QCE
    assert relative <= TABLE[name]


@needs_data
@pytest.mark.parametrize("batches", [1, 2])
def test_batches_of_50_that_come_late(batches: int) -> None:
    results = {name: late(stream_of(name), batches) for name in TABLE}
    losses = {name: relative for name, (_, _, relative) in results.items()}
    assert max(losses.values()) <= 1.010, losses
    ratios = [error / own for error, own, _ in results.values()]
    assert np.exp(np.mean(np.log(ratios))) <= 0.6


@pytest.mark.parametrize(("expert", "most"), [("rls", 1.0), ("naive", 0.35)])
def test_the_packaged_series(expert: str, most: float) -> None:
    error, own, relative = at_once(stream_of(f"humidity/{expert}"))
    assert error <= MOST_QCE
    assert error <= own / 10
    assert relative <= most


@pytest.mark.parametrize("expert", EXPERTS)
def test_the_packaged_series_late(expert: str) -> None:
    error, own, relative = late(stream_of(f"humidity/{expert}"), 2)
    assert relative <= 1.010
    assert error <= max(own, 0.12)
