"""Speed, as ratios to a scipy call measured in the same run, and the time until the first forecast."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.results import Line, Remark
from orcast.engine.bound_payoff import BoundPayoff
from orcast.metrics import LEVELS

TITLE = "Speed"
DEFAULT_LIMIT, SINGLE_LIMIT, BATCH_LIMIT, IMPORT_LIMIT, FIRST_LIMIT = 4.0, 1.5, 80.0, 0.3, 1.0
BINARY_LIMIT, LABELS_LIMIT, LABELS = 0.5, 20.0, 10
LOCK_LIMIT = 1.02
BLOCK, SHORT_BLOCK, SLOW_BLOCK, WARM_UP = 20, 8, 2, 10
QUIET = 0.1
IMPORT = "from time import perf_counter as c; t = c(); import orcast; print(c() - t)"
FIRST = (
    "from time import perf_counter as c; t = c(); import orcast as oc; "
    "oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1)); print(c() - t)"
)


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    yield from ratios(stream, 30 if quick else 140)
    yield from lock_cost(stream, 100 if quick else 400)
    yield from batch(stream, 3 if quick else 7)
    count = 3 if quick else 7
    seconds = child(IMPORT, count)
    yield Line("import orcast, new process", "seconds", seconds, IMPORT_LIMIT, form=".3f", note=f"median of {count}")
    child(FIRST, 1)
    note = f"with the import, compiled before; median of {count}"
    yield Line("first forecast, new process", "seconds", child(FIRST, count), FIRST_LIMIT, form=".3f", note=note)


Work = Callable[[int], None]


def norm_ppf(stream: oc.datasets.ForecastStream) -> Work:
    from scipy.stats import norm

    mu, sd = stream.mu.tolist(), stream.sd.tolist()

    def ppf(t: int) -> None:
        norm.ppf(LEVELS, mu[t], sd[t])

    return ppf


def quantity(stream: oc.datasets.ForecastStream, recal: oc.Recalibrator) -> Work:
    """A round with a Gaussian expert."""
    mu, sd, y = (values.tolist() for values in (stream.mu, stream.sd, stream.y))

    def play(t: int) -> None:
        recal.predict(oc.Normal(mu[t], sd[t]))
        recal.update(y[t])

    return play


def by_hour(stream: oc.datasets.ForecastStream, recal: oc.Recalibrator) -> Work:
    mu, sd, y = (values.tolist() for values in (stream.mu, stream.sd, stream.y))

    def play(t: int) -> None:
        recal.predict(oc.Normal(mu[t], sd[t]), x={"hour": t % 24})
        recal.update(y[t])

    return play


def two_experts(stream: oc.datasets.ForecastStream, recal: oc.Recalibrator) -> Work:
    mu, sd, y = (values.tolist() for values in (stream.mu, stream.sd, stream.y))

    def play(t: int) -> None:
        recal.predict(experts={"one": oc.Normal(mu[t], sd[t]), "other": oc.Normal(mu[t] + 1.0, 2.0 * sd[t])})
        recal.update(y[t])

    return play


def finite(forecasts: list[Any], outcomes: list[Any], recal: oc.Recalibrator) -> Work:
    def play(t: int) -> None:
        recal.predict(forecasts[t])
        recal.update(outcomes[t])

    return play


def binary_round(stream: oc.datasets.ForecastStream) -> Work:
    rng = np.random.default_rng(0)
    p = rng.beta(1.5, 2.0, len(stream))
    y = (rng.random(p.size) < p**1.5).astype(int)
    return finite(p.tolist(), y.tolist(), oc.Recalibrator(oc.Binary()))


def labels_round(stream: oc.datasets.ForecastStream) -> Work:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(LABELS, 0.5), len(stream))
    y = [int(rng.choice(LABELS, p=0.8 * row + 0.2 / LABELS)) for row in rows]
    return finite(list(rows), y, oc.Recalibrator(oc.Labels(range(LABELS))))


def ratios(stream: oc.datasets.ForecastStream, repetitions: int) -> Iterator[Line | Remark]:
    space = oc.Interval(stream.low, stream.high)
    low, span = stream.low, stream.high - stream.low
    hours = oc.by("hour", values=range(24))
    rest = oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    actions = [low + span * share for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    swap = oc.payoffs.SwapRegret(actions, lambda a, y: -abs(a - y), utility_range=span)
    threshold = oc.payoffs.ThresholdCalibration([low + span * share for share in (0.25, 0.5, 0.75)])
    works: dict[str, tuple[Work, float | None]] = {
        "default predict + update": (quantity(stream, oc.Recalibrator(space)), DEFAULT_LIMIT),
        "Equilibrium predict + update": (
            quantity(stream, oc.Recalibrator(space, oracle=oc.Equilibrium())),
            SINGLE_LIMIT,
        ),
        "Binary default": (binary_round(stream), BINARY_LIMIT),
        f"Labels default, {LABELS} labels": (labels_round(stream), LABELS_LIMIT),
        "by hour, moments, no regret": (
            by_hour(stream, oc.Recalibrator(space, oc.QuantileCalibration(context=hours) + rest)),
            None,
        ),
        "two experts": (two_experts(stream, oc.Recalibrator(space)), None),
        "Line default": (quantity(stream, oc.Recalibrator(oc.Line())), None),
    }
    yield from interleaved(stream, works, repetitions, BLOCK)
    slow: dict[str, tuple[Work, float | None]] = {
        "SwapRegret, 5 actions": (quantity(stream, oc.Recalibrator(space, swap)), None),
        "ThresholdCalibration, 3 thresholds": (quantity(stream, oc.Recalibrator(space, threshold)), None),
    }
    yield from interleaved(stream, slow, repetitions, SLOW_BLOCK)


def interleaved(
    stream: oc.datasets.ForecastStream, works: dict[str, tuple[Work, float | None]], repetitions: int, size: int
) -> Iterator[Line | Remark]:
    """Blocks of rounds in turn, each beside a block of norm.ppf."""
    everyone: dict[str, Work] = {"": norm_ppf(stream)} | {name: work for name, (work, _) in works.items()}
    times: dict[str, list[float]] = {name: [] for name in everyone}
    gc.collect()
    gc.disable()
    try:
        for block in range(repetitions + WARM_UP):
            rounds = range(block * size, (block + 1) * size)
            for name, work in everyone.items():
                begin = perf_counter()
                for t in rounds:
                    work(t % len(stream))
                if block >= WARM_UP:
                    times[name].append((perf_counter() - begin) / size)
    finally:
        gc.enable()
    unit = 1e6 * median(times[""])
    yield Remark(f"one scipy.stats.norm.ppf with 99 levels: {unit:.0f} us, median of {repetitions} interleaved blocks")
    for name, (_, limit) in works.items():
        each = 1e6 * median(times[name])
        ratio = median(a / b for a, b in zip(times[name], times[""], strict=True))
        yield Line(name, "times one norm.ppf", ratio, limit, form=".2f", note=f"{each:.0f} us")


class Unlocked(oc.Recalibrator):
    """Calls that hold no lock."""

    def predict(self, forecast: object = None, *, experts: Any = None, x: Any = None, id: Any = None) -> Any:
        return self._predict(forecast, experts, x, id)

    def update(self, y: Any, *, id: Any = None) -> None:
        self._update(y, id)


def lock_cost(stream: oc.datasets.ForecastStream, repetitions: int) -> Iterator[Line]:
    """A round beside one whose calls hold no lock, in turn: two games of each, in short blocks; the quiet ones count.

    The lock takes a microsecond, less than where a game happens to lie in memory or what else the machine does.
    """
    space = oc.Interval(stream.low, stream.high)
    works = [quantity(stream, kind(space)) for kind in (oc.Recalibrator, Unlocked) * 2]
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for block in range(repetitions + WARM_UP):
            for turn in range(len(works)):
                which = (block + turn) % len(works)
                begin = perf_counter()
                for t in range(block * SHORT_BLOCK, (block + 1) * SHORT_BLOCK):
                    works[which](t % len(stream))
                if block >= WARM_UP:
                    times[which % 2].append((perf_counter() - begin) / SHORT_BLOCK)
    finally:
        gc.enable()
    held, free = (float(np.quantile(each, QUIET)) for each in times)
    note = f"{1e6 * (held - free):.2f} us"
    yield Line("the lock of a game", "times a round without it", held / free, LOCK_LIMIT, form=".3f", note=note)


def batch(stream: oc.datasets.ForecastStream, repetitions: int) -> Iterator[Line | Remark]:
    space = oc.Interval(stream.low, stream.high)
    experts_on_grid = stream.quantile(space.levels)[:, None, :]
    at_percents = stream.quantile(LEVELS)
    compiled, whole = [], []
    for _ in range(repetitions + 1):
        engine: Any = oc.Committee().bind(BoundPayoff(space, oc.Recalibrator(space).payoff, ("expert",), None))
        begin = perf_counter()
        engine.run(experts_on_grid, None, stream.y, np.ascontiguousarray(LEVELS))
        compiled.append(perf_counter() - begin)
        recal = oc.Recalibrator(space)
        begin = perf_counter()
        recal.run(at_percents, stream.y, levels=LEVELS)
        whole.append(perf_counter() - begin)
    each, outer = (1e6 * median(times[1:]) / len(stream) for times in (compiled, whole))
    yield Line(
        "compiled batch path", "microseconds a round", each, BATCH_LIMIT, form=".1f", note=f"{len(stream)} rounds"
    )
    yield Line("run(array, levels=...), all of it", "microseconds a round", outer, form=".1f")


def child(program: str, count: int) -> float:
    """What a program prints, the median over new processes."""
    return median(
        float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
        for _ in range(count)
    )
