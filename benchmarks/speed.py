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
from orcast.experiments import data, experts
from orcast.metrics import LEVELS
from orcast.oracles.terms import Terms

TITLE = "Speed"
DEFAULT_LIMIT, SINGLE_LIMIT, BATCH_LIMIT, IMPORT_LIMIT, FIRST_LIMIT = 4.0, 1.5, 80.0, 0.3, 1.0
BLOCK = 20
IMPORT = "from time import perf_counter as c; t = c(); import orcast; print(c() - t)"
FIRST = (
    "from time import perf_counter as c; t = c(); import orcast as oc; "
    "oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1)); print(c() - t)"
)


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    stream = experts.stream(data.load("humidity"), "rls")
    yield from ratios(stream, 30 if quick else 140)
    yield from batch(stream, 3 if quick else 7)
    count = 3 if quick else 7
    seconds = child(IMPORT, count)
    yield Line("import orcast, new process", "seconds", seconds, IMPORT_LIMIT, form=".3f", note=f"median of {count}")
    child(FIRST, 1)
    note = f"with the import, compiled before; median of {count}"
    yield Line("first forecast, new process", "seconds", child(FIRST, count), FIRST_LIMIT, form=".3f", note=note)


def ratios(stream: experts.Stream, repetitions: int) -> Iterator[Line | Remark]:
    from scipy.stats import norm

    space = oc.Interval(stream.low, stream.high)
    default, single = oc.Recalibrator(space), oc.Recalibrator(space, oracle=oc.Equilibrium())
    mu, sd, y = (values.tolist() for values in (stream.mu, stream.sd, stream.y))

    def ppf(t: int) -> None:
        norm.ppf(LEVELS, mu[t], sd[t])

    def round_of(recal: oc.Recalibrator) -> Callable[[int], None]:
        def play(t: int) -> None:
            recal.predict(oc.Normal(mu[t], sd[t]))
            recal.update(y[t])

        return play

    works = {"ppf": ppf, "default": round_of(default), "single": round_of(single)}
    times: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.disable()
    try:
        for block in range(repetitions + 10):  # the first ten warm up
            rounds = range(block * BLOCK, (block + 1) * BLOCK)
            for name, work in works.items():
                begin = perf_counter()
                for t in rounds:
                    work(t % len(stream))
                if block >= 10:
                    times[name].append((perf_counter() - begin) / BLOCK)
    finally:
        gc.enable()
    unit = 1e6 * median(times["ppf"])
    yield Remark(f"one scipy.stats.norm.ppf with 99 levels: {unit:.0f} us, median of {repetitions} interleaved blocks")
    for name, words, limit in (
        ("default", "default predict + update", DEFAULT_LIMIT),
        ("single", "Equilibrium predict + update", SINGLE_LIMIT),
    ):
        each = 1e6 * median(times[name])
        ratio = median(a / b for a, b in zip(times[name], times["ppf"], strict=True))
        yield Line(words, "times one norm.ppf", ratio, limit, form=".2f", note=f"{each:.0f} us")


def batch(stream: experts.Stream, repetitions: int) -> Iterator[Line | Remark]:
    space = oc.Interval(stream.low, stream.high)
    experts_on_grid = stream.quantile(space.levels)[:, None, :]
    at_percents = stream.quantile(LEVELS)
    compiled, whole = [], []
    for _ in range(repetitions + 1):
        engine: Any = oc.Committee().bind(Terms(space, oc.Recalibrator(space).payoff, ("expert",), None))
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
