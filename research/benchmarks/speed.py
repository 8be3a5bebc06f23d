"""Speed as ratios to a scipy call in the same run, in CPU time of the thread."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import numpy as np
from scipy.stats import norm

import orcast as oc
from orcast.evaluate.metrics import LEVELS
from research.benchmarks.frames import through_the_command
from research.benchmarks.lines import Line, Lines, Remark

TITLE = "Speed"
LABELS, HOURS = 10, 8760
WARM_UP = 10
# CPU seconds beyond numpy and scipy.special, which every user of them has paid for already.
FIRST = (
    "import numpy, scipy.special; from time import process_time as c; t = c(); import orcast as oc; "
    "oc.Recalibrator(oc.Interval(0, 1)).predict(oc.Normal(0.5, 0.1)); print(c() - t)"
)

Work = Callable[[int], object]


def measure(quick: bool = False) -> Lines:
    """Rounds of the default and of other payoffs, batches, import and first forecast."""
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    repetitions = 30 if quick else 140
    yield from ratios(stream, works(stream), repetitions, 20)
    yield from ratios(stream, slow_works(stream), repetitions, 2)
    yield batch(stream, 3 if quick else 7)
    first = child(FIRST, 3 if quick else 7)
    yield Line("import and first forecast, new process", "CPU seconds", first, 0.15, form=".3f")
    yield Line("year of hourly rows, orcast recalibrate", "seconds", through_the_command(1, HOURS), 4.0, form=".1f")
    yield Line("installed package", "MB", installed_size(), 6.0, form=".1f", note="without build files")


def installed_size() -> float:
    """Size of the package in MB, without bytecode."""
    files = (path for path in Path(oc.__file__).parent.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sum(path.stat().st_size for path in files) / 1e6


def rounds(recal: Any, forecasts: list[Any], outcomes: list[Any], **features: list[Any]) -> Work:
    """Round t of a recalibrator; `features` are keyword arguments of `predict` by round."""

    def one(t: int) -> None:
        given = {name: values[t] for name, values in features.items()}
        recal.predict(*([] if "experts" in given else [forecasts[t]]), **given)
        recal.update(outcomes[t])

    return one


def reading_rounds(recal: Any, forecasts: list[Any], outcomes: list[Any]) -> Work:
    """Round t of a recalibrator whose forecast is read at 99 levels."""

    def one(t: int) -> None:
        recal.predict(forecasts[t]).quantile(LEVELS)
        recal.update(outcomes[t])

    return one


def works(stream: oc.datasets.ForecastStream) -> dict[str, tuple[Work, float | None]]:
    """Rounds by name, with the most that they may cost in calls of norm.ppf."""
    space, rng = oc.Interval(stream.low, stream.high), np.random.default_rng(0)
    normals = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu.tolist(), stream.sd.tolist(), strict=True)]
    y = stream.y.tolist()
    p = rng.beta(1.5, 2.0, len(stream))
    events = (rng.random(p.size) < p**1.5).astype(int).tolist()
    masses = rng.dirichlet(np.full(LABELS, 0.5), len(stream))
    labels = [int(rng.choice(LABELS, p=0.8 * row + 0.2 / LABELS)) for row in masses]
    hours = oc.by("hour", values=range(24))
    by_hour = oc.QuantileCalibration(context=hours) + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    x = [{"hour": t % 24} for t in range(len(stream))]
    two = [{"one": one, "other": oc.Normal(one.mean + 1.0, 2.0 * one.sd)} for one in normals]
    return {
        "default predict + update": (rounds(oc.Recalibrator(space), normals, y), 0.8),
        "the same and 99 quantiles read": (reading_rounds(oc.Recalibrator(space), normals, y), 0.9),
        "Equilibrium predict + update": (
            rounds(oc.Recalibrator(space, oracle=oc.Equilibrium()), normals, y),
            None,
        ),
        "Binary default": (rounds(oc.Recalibrator(oc.Binary()), p.tolist(), events), 0.15),
        f"Labels default, {LABELS} labels": (
            rounds(oc.Recalibrator(oc.Labels(range(LABELS))), list(masses), labels),
            4.0,
        ),
        "by hour, moments, no regret": (rounds(oc.Recalibrator(space, by_hour), normals, y, x=x), None),
        "two experts": (rounds(oc.Recalibrator(space), [], y, experts=two), None),
        "Line default": (rounds(oc.Recalibrator(oc.Line()), normals, y), None),
    }


def slow_works(stream: oc.datasets.ForecastStream) -> dict[str, tuple[Work, float | None]]:
    """Payoffs of the dense engine."""
    space, low, span = oc.Interval(stream.low, stream.high), stream.low, stream.high - stream.low
    normals = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu.tolist(), stream.sd.tolist(), strict=True)]
    actions = [low + span * share for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    swap = oc.payoffs.SwapRegret(actions, lambda a, y: -abs(a - y), utility_range=span)
    threshold = oc.payoffs.ThresholdCalibration([low + span * share for share in (0.25, 0.5, 0.75)])
    return {
        "SwapRegret, 5 actions": (rounds(oc.Recalibrator(space, swap), normals, stream.y.tolist()), None),
        "ThresholdCalibration, 3 thresholds": (
            rounds(oc.Recalibrator(space, threshold), normals, stream.y.tolist()),
            None,
        ),
    }


def ratios(
    stream: oc.datasets.ForecastStream, works: dict[str, tuple[Work, float | None]], repetitions: int, size: int
) -> Lines:
    """Blocks of `size` rounds in turn, each beside a block of norm.ppf."""
    mu, sd = stream.mu.tolist(), stream.sd.tolist()
    everyone: dict[str, Work] = {"": lambda t: norm.ppf(LEVELS, mu[t], sd[t])}
    everyone |= {name: work for name, (work, _) in works.items()}
    times: dict[str, list[float]] = {name: [] for name in everyone}
    gc.collect()
    gc.disable()
    try:
        for block in range(repetitions + WARM_UP):
            for name, work in everyone.items():
                begin = thread_time()
                for t in range(block * size, (block + 1) * size):
                    work(t % len(stream))
                times[name].append((thread_time() - begin) / size)
    finally:
        gc.enable()
    unit = 1e6 * median(times[""][WARM_UP:])
    yield Remark(f"one scipy.stats.norm.ppf with 99 levels: {unit:.0f} us, median of {repetitions} interleaved blocks")
    for name, (_, limit) in works.items():
        ratio = median(a / b for a, b in zip(times[name][WARM_UP:], times[""][WARM_UP:], strict=True))
        note = f"{1e6 * median(times[name][WARM_UP:]):.0f} us"
        yield Line(name, "times one norm.ppf", ratio, limit, form=".2f", note=note)


def batch(stream: oc.datasets.ForecastStream, repetitions: int) -> Line:
    """Many rounds at once from an array of quantiles, a round beside one norm.ppf."""
    q, times, units = stream.quantile(LEVELS), [], []
    for _ in range(repetitions + 1):
        recal = oc.Recalibrator(oc.Interval(stream.low, stream.high))
        begin = thread_time()
        recal.run(q, stream.y, levels=LEVELS)
        times.append((thread_time() - begin) / len(stream))
        begin = thread_time()
        for _ in range(200):
            norm.ppf(LEVELS)
        units.append((thread_time() - begin) / 200)
    ratio = median(a / b for a, b in zip(times[1:], units[1:], strict=True))
    note = f"{1e6 * median(times[1:]):.1f} us, {len(stream)} rounds"
    return Line("run(array, levels=...), a round", "times one norm.ppf", ratio, 0.6, form=".2f", note=note)


def child(program: str, count: int) -> float:
    """Median of the number that a program prints, over new processes."""
    return median(
        float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
        for _ in range(count)
    )
