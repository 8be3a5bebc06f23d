"""Monitors: false alarms, delays, River's, MAPIE's and online-cp's detectors beside, many series, and speed."""

from __future__ import annotations

import bisect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import orcast as oc
from orcast.monitors import exact_ends
from research.benchmarks.lines import Line, Lines
from research.output import optional

TITLE = "monitors: false alarms, delays, many series, speed"
Array = NDArray[np.float64]
Alarms = NDArray[np.int64]
NONE = np.iinfo(np.int64).max
# Rounds of training, before the drift and after it, and the share alarmed before it (arXiv 2603.13156).
TRAINING, STABLE, DRIFTED, EARLY = 10_000, 2_500, 2_500, 0.038
# By kind of River's stream: name, rounds of the transition, drifts, median delays of PITMonitor and ADWIN in the paper.
SCENARIOS = {
    "gra": ("abrupt", 0, (0, 10**6), 77, 27),
    "gsg": ("gradual", 500, (0, 10**6), 189, 27),
    "lea": ("local", 0, (0, DRIFTED // 3, 2 * (DRIFTED // 3)), 1919, 115),
}
BESIDE = 50  # streams that the other detectors see: the first ones
# Biases and scales of the errors of forecasts that are wrong from the start.
FAULTS = [(0.0, 1.5), (0.5, 1.0), (-0.5, 1.0), (0.0, 1 / 1.5)]
NEAR = [(0.25, 1.0), (0.35, 1.0), (0.7, 1.0), (1.0, 1.0), (0.0, 1.25), (0.0, 2.0), (0.0, 0.8), (0.0, 0.5), (0.35, 1.25)]
START_TARGETS = {(0.0, 1.5): 60.0, (0.5, 1.0): 30.0}


def first(above: NDArray[np.bool_]) -> int:
    """Round of the first alarm, or NONE."""
    return int(np.argmax(above)) + 1 if above.any() else NONE


def alarm(pit: Array, **options: Any) -> int:
    """Round of the first alarm of miscalibration, or NONE."""
    monitor = oc.Monitor(**options)
    monitor.update(pit=pit)
    return NONE if monitor.miscalibrated is None else monitor.miscalibrated.round


def change(pit: Array, seed: int) -> int:
    """Round of the first alarm of a change, or NONE; before STABLE with a probability of at most EARLY."""
    monitor = oc.Monitor(run_length=STABLE / EARLY, seed=seed)
    return first(monitor.add("pit", exact_ends(pit, pit))[:, 1] >= monitor.run_length)


# --- other detectors: on normal scores z of the outcomes


def adwin(z: Array) -> int:
    """River's ADWIN on squared scores."""
    detector = optional("river.drift").ADWIN()
    for t, value in enumerate((z * z).tolist()):
        detector.update(value)
        if detector.drift_detected:
            return t + 1
    return NONE


def risk_monitoring(z: Array, reference: Array) -> int:
    """MAPIE's RiskMonitoring on scores beyond the median of a reference, without tolerance."""
    middle = np.median(np.abs(reference))
    wrong, truth = ((np.abs(each) > middle).astype(int) for each in (z, reference))
    right = np.zeros(max(len(z), len(reference)), dtype=int)
    monitor = optional("mapie.exchangeability_testing").RiskMonitoring(
        "accuracy", reference_data=(right[: len(truth)], truth), tolerance=0.0, warn=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor.update(right[: len(wrong)], wrong)
    return first(monitor.online_risk_lower_bound_sequence_history > monitor.threshold)


def martingales(z: Array) -> tuple[int, int]:
    """online-cp's SimpleJumper on conformal p-values: Ville's test at 5%, and Shiryaev and Roberts' of a change."""
    rng, size = np.random.default_rng([5, 2026]), np.abs(z).tolist()
    jumper = optional("online_cp.martingale").SimpleJumper(store_p_values=False)
    detector = optional("online_cp.martingale").ShiryaevRobertsWrapper(jumper)
    past: list[float] = []
    ville = roberts = NONE
    for t, error in enumerate(size):
        above = t - bisect.bisect_right(past, error)
        bisect.insort(past, error)
        detector.update(float((above + rng.random()) / (t + 1)))
        ville = min(ville, t + 1) if jumper.M >= 20.0 else ville
        if detector.R >= STABLE / EARLY:
            roberts = t + 1
            break
    return ville, roberts


def others(streams: Iterable[Array], reference: Array) -> dict[str, Alarms]:
    """First alarms of the other detectors, by their names."""
    rows = [(adwin(z), risk_monitoring(z, reference), *martingales(z)) for z in streams]
    names = ("River ADWIN", "MAPIE RiskMonitoring", "online-cp Ville", "online-cp Shiryaev-Roberts")
    return dict(zip(names, np.array(rows).T, strict=True))


def beside(found: dict[str, Alarms], number: Callable[[Alarms], float], form: str) -> str:
    """Numbers of the other detectors as text."""
    return ", ".join(f"{name} {number(at):{form}}" for name, at in found.items())


# --- false alarms


def calibrated(kind: str, count: int, rounds: int) -> Iterator[tuple[Array, int]]:
    """PITs of calibrated streams and their horizon."""
    rng = np.random.default_rng(0)
    if kind == "independent":
        yield from ((rng.random(rounds), 1) for _ in range(count))
    elif kind == "12 steps ahead, overlapping errors":
        for _ in range(count):
            shocks = rng.standard_normal(rounds + 11)
            yield ndtr(np.convolve(shocks, np.ones(12), "valid") / np.sqrt(12.0)), 12
    else:  # 20 series, correlation 0.8 at each time
        for _ in range(count // 20):
            common = rng.standard_normal(rounds)
            for _ in range(20):
                yield ndtr(np.sqrt(0.8) * common + np.sqrt(0.2) * rng.standard_normal(rounds)), 1


def false_alarms(quick: bool) -> Lines:
    """Share of calibrated streams that are ever alarmed."""
    count, rounds, few = (200, 2_000, 10) if quick else (1_000, 10_000, BESIDE)
    reference = np.random.default_rng(1).standard_normal(TRAINING)

    def share(at: Alarms) -> float:
        return float(np.mean(at < NONE))

    for kind in ("independent", "12 steps ahead, overlapping errors", "20 correlated series"):
        pits = calibrated(kind, count, rounds)
        found = np.array([alarm(pit, horizon=horizon, seed=k) for k, (pit, horizon) in enumerate(pits)])
        theirs = others((ndtri(pit) for pit, _ in islice(calibrated(kind, count, rounds), few)), reference)
        note = f"{beside(theirs, share, '.2f')} ({few} streams)"
        yield Line(kind, f"ever alarmed, {count:,} x {rounds:,}", share(found), 0.05, form=".3f", note=note)


# --- delays


def friedman(kind: str, seed: int, stable: int, drifted: int) -> tuple[Array, Array]:
    """Features and outcomes of River's FriedmanDrift; the first drift comes after the stable rounds."""
    _, transition, drifts, _, _ = SCENARIOS[kind]
    position = tuple(stable + each for each in drifts)
    stream = optional("river.datasets.synth").FriedmanDrift(kind, position, transition, seed=seed)
    table = np.array([(*x.values(), y) for x, y in stream.take(stable + drifted)])
    return table[:, :-1], table[:, -1]


def network() -> Callable[[Array, Array], Array]:
    """Normal scores of outcomes: of a network's mean and the spread of its errors in the training."""
    x, y = friedman("gra", 42, TRAINING, 0)
    model = optional("sklearn.neural_network").MLPRegressor(
        hidden_layer_sizes=(128, 128, 128), random_state=0, early_stopping=True, max_iter=300
    )
    sd = float(np.std(y - model.fit(x, y).predict(x)))
    return lambda x, y: np.asarray((y - model.predict(x)) / sd)


def drift(quick: bool) -> Lines:
    """PITMonitor's benchmark: alarms before the drift, found after it and not before, and the median delay."""
    score, trials, few = network(), *((50, 5) if quick else (1_000, BESIDE))
    reference = score(*friedman("gra", 43, STABLE, 0))

    def found(at: Alarms) -> float:
        return float(np.mean((at > STABLE) & (at < NONE)))

    def delay(at: Alarms) -> float:
        late = at[(at > STABLE) & (at < NONE)] - STABLE
        return float(np.median(late)) if late.size else math.nan

    for kind, (name, _, _, pit_monitor, paper_adwin) in SCENARIOS.items():
        streams = [score(*friedman(kind, 42 + 1_000 * trial, STABLE, DRIFTED)) for trial in range(trials)]
        ours, theirs = (
            np.array([change(ndtr(z), seed) for seed, z in enumerate(streams)]),
            others(streams[:few], reference),
        )
        case, early, share = f"Friedman, {name}", float(np.mean(ours <= STABLE)), beside(theirs, found, ".2f")
        late, paper = beside(theirs, delay, ".0f"), f"paper: PITMonitor {pit_monitor}, ADWIN {paper_adwin}"
        yield Line(case, f"alarmed before, {trials:,} trials", early, EARLY, form=".3f")
        yield Line(case, "found", found(ours), 0.962, ">=", ".3f", f"{share} ({few} trials); paper: PITMonitor 0.962")
        yield Line(case, "median delay", delay(ours), float(pit_monitor), form=".0f", note=f"{late}; {paper}")


def from_the_start(quick: bool) -> Lines:
    """Median round of the alarm where the forecast is wrong from the first round on."""
    count, few = (100, 5) if quick else (1_000, BESIDE)
    reference = np.random.default_rng(3).standard_normal(TRAINING)

    def wrong(seed: int, bias: float, scale: float) -> Array:
        return bias + scale * np.random.default_rng(seed).standard_normal((count, 1_000))

    def rounds(z: Array) -> Alarms:
        return np.array([alarm(ndtr(row), seed=k) for k, row in enumerate(z)])

    def known(z: Array, bias: float, scale: float) -> float:
        """Median round at which the likelihood ratio to the true errors reaches 20."""
        ratio = np.cumsum(0.5 * z**2 - 0.5 * ((z - bias) / scale) ** 2 - math.log(scale), axis=1)
        return float(np.median([first(row >= math.log(20.0)) for row in ratio]))

    def share(at: Alarms) -> float:
        return float(np.mean(at < NONE))

    for bias, scale in FAULTS:
        draws = [wrong(seed, bias, scale) for seed in range(10, 15)]
        at, best = np.array([rounds(z) for z in draws]), known(draws[0], bias, scale)
        seeds, theirs = np.median(at, axis=1), beside(others(draws[0][:few], reference), share, ".2f")
        note = f"{seeds.min():.0f} to {seeds.max():.0f} by seed; fault known {best:.0f}"
        note += f"; found in 1,000 rounds: {theirs} ({few} streams)"
        target = START_TARGETS.get((abs(bias), scale))
        yield Line(fault(bias, scale), "median round of the alarm", float(np.median(at)), target, form=".0f", note=note)
    for bias, scale in NEAR:
        z = wrong(15, bias, scale)
        note = f"fault known {known(z, bias, scale):.0f}"
        yield Line(fault(bias, scale), "median round of the alarm", float(np.median(rounds(z))), form=".0f", note=note)


def fault(bias: float, scale: float) -> str:
    """Name of a fault."""
    return f"bias {bias:g}, errors x {scale:.3g}"


# --- many series, and speed


def broken(seed: int, count: int = 200, days: int = 120) -> tuple[pl.DataFrame, set[str]]:
    """Series of which five are shifted by eight half-widths on the last 19 days, and their names."""
    rng = np.random.default_rng(seed)
    center = rng.normal(50.0, 5.0, (count, days))
    y = center + rng.standard_normal((count, days))
    bad = rng.choice(count, 5, replace=False)
    y[bad, -19:] += 8.0 * 1.645
    dates = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 1) + pl.duration(days=days - 1), eager=True)
    names = np.repeat([f"s{k}" for k in range(count)], days)
    columns = {"unique_id": names, "ds": np.tile(dates.to_numpy(), count), "y": y.ravel()}
    bands = {"m-lo-90": center - 1.645, "m-median": center, "m-hi-90": center + 1.645}
    return pl.DataFrame(columns | {name: band.ravel() for name, band in bands.items()}), {f"s{k}" for k in bad}


def many_series(quick: bool) -> Lines:
    """Names of the broken series, of 200."""
    from orcast.cli import main

    draws = 10 if quick else 100
    exact, false = 0, []
    for seed in range(draws):
        frame, bad = broken(seed)
        found = oc.monitor(frame)
        named = set(found.filter(pl.col("alarm"))["series"])
        exact += named == bad
        false.append(len(named - bad) / max(len(named), 1))
    yield Line("200 series, 5 broken", "exactly those named", exact / draws, 0.95, ">=", ".2f", f"{draws} draws")
    yield Line("200 series, 5 broken", "false among the named", float(np.mean(false)), 0.05, "<=", ".3f")
    with TemporaryDirectory() as folder:
        path = Path(folder, "broken.csv")
        broken(0)[0].write_csv(path)
        with redirect_stdout(StringIO()):
            code = main(["check", str(path), "--fail", "--quiet"])
    yield Line("200 series, 5 broken", "orcast check --fail exits with 1", float(code == 1), 1.0, ">=", ".0f")


def speed(quick: bool) -> Lines:
    """CPU time of an update, the state, and a frame of 10,000 series."""
    monitor, pit = oc.Monitor(), np.random.default_rng(0).random(20_000)
    monitor.update(pit=pit)

    def cpu(run: Callable[[], object]) -> float:
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            run()
            best = min(best, time.process_time() - start)
        return best

    values = pit.tolist()
    yield Line("update", "us in an array", cpu(lambda: monitor.update(pit=pit)) / pit.size * 1e6, 3.0, form=".2f")

    def one_by_one() -> None:
        for u in values:
            monitor.update(pit=u)

    single = cpu(one_by_one)
    yield Line("update", "us in a call of its own", single / pit.size * 1e6, 3.0, form=".2f")
    yield Line("update", "bytes of state", monitor._plain()[1].nbytes, 1024, form=".0f")
    series, rounds = (1_000, 1_000) if quick else (10_000, 1_000)
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(series * rounds)
    columns = {"unique_id": np.repeat(np.arange(series), rounds), "ds": np.tile(np.arange(rounds), series)}
    frame = pl.DataFrame(columns | {"y": mean + rng.standard_normal(mean.size), "mean": mean, "sd": np.ones(mean.size)})
    start, begin = time.perf_counter(), time.process_time()
    oc.monitor(frame)
    taken, note = time.process_time() - begin, f"{time.perf_counter() - start:.1f} s by the clock"
    yield Line(f"frame, {series:,} x {rounds:,}", "seconds of CPU", taken, 30.0, form=".1f", note=note)


def measure(quick: bool) -> Lines:
    """Yield the lines of the section."""
    for part in (from_the_start, speed, many_series, drift, false_alarms):
        yield from part(quick)
