"""Quality on the four streams of the table: wind and sunspots, each with two ordinary experts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import orcast as oc
from benchmarks.results import Line, Remark, geometric_mean
from benchmarks.streams import BATCH, LATE, Case, batches, play, score
from orcast import datasets as experts
from orcast.metrics import LEVELS, pinball
from orcast.paper.experiments import data

TITLE = "Quality: default settings, real streams"
QCE_LIMIT = 0.004
PINBALL_LIMITS = {"wind/rls": 0.995, "wind/naive": 0.260, "sunspots/rls": 0.990, "sunspots/naive": 0.560}
DELAYED_PINBALL_LIMIT, DELAYED_QCE_LIMIT = 1.010, 0.5


def as_case(stream: experts.ForecastStream) -> Case:
    forecasts = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu, stream.sd, strict=True)]
    return Case(stream.name, forecasts, stream.quantile(LEVELS), stream.y, stream.low, stream.high)


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    names = [name for name in ("wind", "sunspots") if name in data.available()]
    if len(names) < 2:
        yield Remark(f"{data.VARIABLE} names no folder with wind and sunspots: the packaged series, without targets")
        names = ["humidity"]
    cases = [as_case(experts.stream(data.load(name), expert)) for name in names for expert in experts.EXPERTS]
    yield from immediate(cases)
    yield from delayed(cases)
    yield from perfect(5 if quick else 20)


def immediate(cases: list[Case]) -> Iterator[Line | Remark]:
    for case in cases:
        before = score(case, case.quantiles)
        quantiles, promise = play(case, None)
        after = score(case, quantiles)
        known = case.name in PINBALL_LIMITS
        yield Line(case.name, "QCE", after.qce, QCE_LIMIT if known else None, note=f"expert {before.qce:.4f}")
        yield Line(case.name, "pinball / expert's", after.relative, PINBALL_LIMITS.get(case.name), form=".3f")
        note = f"expert {before.worst:.2f}; 90% band holds {after.coverage:.1%}, held {promise.held:.1%}"
        yield Line(case.name, "worst rolling-200 QCE", after.worst, form=".2f", note=note)


def delayed(cases: list[Case]) -> Iterator[Line | Remark]:
    yield Remark(f"outcomes in batches of {BATCH}, {LATE} batches late:")
    ratios = []
    for case in cases:
        before = score(case, case.quantiles)
        quantiles, _ = play(case, batches(case.y.size))
        after = score(case, quantiles)
        ratios.append(after.qce / before.qce)
        note = (
            f"QCE {after.qce:.4f}, expert {before.qce:.4f}; worst rolling {after.worst:.2f}, expert {before.worst:.2f}"
        )
        yield Line(case.name, "pinball / expert's, late", after.relative, DELAYED_PINBALL_LIMIT, form=".3f", note=note)
    yield Line("geometric mean", "QCE / expert's, late", geometric_mean(ratios), DELAYED_QCE_LIMIT, form=".3f")


def perfect(seeds: int, horizons: tuple[int, ...] = (200, 1000, 5000)) -> Iterator[Line | Remark]:
    """What the promise costs where there is nothing to correct: outcomes drawn from the expert's own forecasts."""
    yield Remark(f"a perfect expert, outcomes drawn from its own normal forecasts, {seeds} seeds:")
    ours, theirs = np.zeros(max(horizons)), np.zeros(max(horizons))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        mu = rng.normal(0.0, 5.0, ours.size)
        y = mu + rng.standard_normal(ours.size)
        expert = oc.Normal(0.0, 1.0).quantile(LEVELS) + mu[:, None]
        ours += pinball(oc.Recalibrator(oc.Interval(-50, 50)).run(expert, y, levels=LEVELS), y)
        theirs += pinball(expert, y)
    for rounds in horizons:
        ratio = float(ours[:rounds].sum() / theirs[:rounds].sum())
        yield Line(f"first {rounds:,} rounds", "pinball / expert's", ratio, form=".4f")
