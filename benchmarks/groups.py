"""Groups: calibrated for every hour of the day, around an expert whose errors depend on the hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from benchmarks.results import Line, Remark, geometric_mean
from orcast.metrics import LEVELS, pinball, qce

TITLE = "Groups: an expert whose bias and spread are off by the hour"
HOURS, DAYS, QUICK_DAYS, DRAWS = 24, 1000, 100, 50
LARGEST_LIMIT = 0.05
LOW, HIGH = 0.0, 100.0

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class World:
    """Outcomes N(mu, sd), and the expert's N(mu + bias sd, factor sd) with bias and factor by the hour."""

    hour: NDArray[np.int64]
    y: Vector
    expert: Vector
    truth: Vector


def world(days: int, seed: int = 0) -> World:
    rng = np.random.default_rng(seed)
    bias = rng.permutation(np.linspace(-1.0, 1.0, HOURS))
    factor = rng.permutation(np.geomspace(0.6, 1.6, HOURS))
    t = np.arange(HOURS * days)
    hour = t % HOURS
    sd = 4.0 + 1.5 * np.sin(2.0 * np.pi * hour / HOURS)
    mu = 50.0 + 10.0 * np.sin(2.0 * np.pi * hour / HOURS) + 8.0 * np.sin(t / 300.0)
    z = oc.Normal(0.0, 1.0).quantile(LEVELS)
    y = np.clip(mu + sd * rng.standard_normal(t.size), LOW, HIGH)
    expert = (mu + bias[hour] * sd)[:, None] + (factor[hour] * sd)[:, None] * z
    truth = mu[:, None] + sd[:, None] * z
    return World(hour, y, np.clip(expert, LOW, HIGH), np.clip(truth, LOW, HIGH))


def by_group(quantiles: Vector, y: Vector, hour: NDArray[np.int64]) -> Vector:
    """The quantile calibration error of each hour, hard indicators."""
    hits = y[:, None] <= quantiles
    return np.array([((hits[hour == h].mean(axis=0) - LEVELS) ** 2).sum() for h in range(HOURS)])


def chance(rounds: int, draws: int = DRAWS) -> tuple[float, float]:
    """What a perfect forecaster shows: the geometric mean over the groups and the largest, medians over draws."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(draws):
        pit = rng.random((HOURS, rounds, 1))
        found.append((((pit <= LEVELS).mean(axis=1) - LEVELS) ** 2).sum(axis=1))
    return (
        float(np.median([geometric_mean(each) for each in found])),
        float(np.median([each.max() for each in found])),
    )


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    days = QUICK_DAYS if quick else DAYS
    scene = world(days)
    x = [{"hour": int(h)} for h in scene.hour]
    hours = oc.by("hour", values=range(HOURS))
    everyone = oc.by(lambda features: [1.0], size=1)
    rest = oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    by_chance, largest_by_chance = chance(days)
    yield Remark(
        f"{HOURS} groups of {days:,} rounds, batch path; a perfect forecaster by chance (median of {DRAWS} draws):"
    )
    yield Line("chance", "geometric mean of group QCEs", by_chance, form=".5f", note=f"largest {largest_by_chance:.4f}")
    perfect = float(pinball(scene.truth, scene.y).mean())

    def lines(name: str, quantiles: Vector, note: str, *, target: bool = False) -> Iterator[Line]:
        groups = by_group(quantiles, scene.y, scene.hour)
        overall = qce(quantiles, scene.y, low=LOW, high=HIGH)
        relative = float(pinball(quantiles, scene.y).mean()) / perfect
        note = f"over all {overall:.5f}; pinball / perfect's {relative:.4f}{note}"
        limit = by_chance if target else None
        yield Line(name, "geometric mean of group QCEs", geometric_mean(groups), limit, form=".5f", note=note)
        limit = LARGEST_LIMIT if target and not quick else None  # fewer rounds show more by chance
        yield Line(name, "largest group QCE", float(groups.max()), limit)

    yield from lines("expert", scene.expert, "")
    yield from lines("perfect forecaster", scene.truth, "")
    for name, payoff, target in (
        ("by hour, moments, no regret", oc.QuantileCalibration(context=hours) + rest, True),
        ("without the context (default)", oc.QuantileCalibration() + rest, False),
        ("by hour alone", oc.QuantileCalibration(context=hours), False),
        ("everyone | by hour", oc.QuantileCalibration(context=everyone | hours), False),
        ("everyone | by hour, and the rest", oc.QuantileCalibration(context=everyone | hours) + rest, False),
    ):
        space = oc.Interval(LOW, HIGH)
        oc.Recalibrator(space, payoff).run(scene.expert[:2], scene.y[:2], x=x[:2], levels=LEVELS)  # compiles
        recal = oc.Recalibrator(space, payoff)
        begin = perf_counter()
        quantiles = recal.run(scene.expert, scene.y, x=x, levels=LEVELS)
        each = 1e6 * (perf_counter() - begin) / scene.y.size
        promise = recal.guarantee
        note = (
            f"; {promise.miscalibration:.4f} of {promise.promised:.4f}, held {promise.held:.1%}; {each:.0f} us a round"
        )
        yield from lines(name, quantiles, note, target=target)
