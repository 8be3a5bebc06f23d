"""Monitors: false alarms, delays, River's, MAPIE's and online-cp's detectors beside, many series, and speed."""

from __future__ import annotations

import bisect
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr

import orcast as oc
from research.benchmarks.lines import Line, Lines, Remark
from research.output import optional

TITLE = "monitors: false alarms, delays, many series, speed"
Array = NDArray[np.float64]
NONE = np.iinfo(np.int64).max
# Model of the Friedman streams: rounds of training, before the drift and after it (arXiv 2603.13156).
TRAINING, STABLE, DRIFTED = 10_000, 5_000, 5_000
SCENARIOS = {"gra": ("abrupt", 0), "gsg": ("gradual", 100), "lea": ("local", 0)}


def first_alarm(pit: Array, question: str = "miscalibrated", **options: Any) -> int:
    """Round of the first alarm, or NONE."""
    monitor = oc.Monitor(**options)
    for at in range(0, len(pit), 1_000):
        monitor.update(pit=pit[at : at + 1_000])
        found = getattr(monitor, question)
        if found is not None:
            return int(found.round)
    return NONE


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
    count, rounds = (200, 2_000) if quick else (1_000, 10_000)
    for kind in ("independent", "12 steps ahead, overlapping errors", "20 correlated series"):
        found = [
            first_alarm(pit, horizon=horizon, seed=k)
            for k, (pit, horizon) in enumerate(calibrated(kind, count, rounds))
        ]
        share = float(np.mean(np.array(found) < NONE))
        yield Line(kind, f"ever alarmed, {count:,} x {rounds:,}", share, 0.05, form=".3f")
    yield Line("independent", "River ADWIN on squared scores", adwin_false(count // 10, rounds), form=".3f")


def adwin_false(count: int, rounds: int) -> float:
    """Share of calibrated streams on which ADWIN alarms."""
    rng = np.random.default_rng(1)
    return float(np.mean([adwin(rng.standard_normal(rounds) ** 2) < NONE for _ in range(count)]))


def adwin(values: Array) -> int:
    """First alarm of River's ADWIN."""
    detector = optional("river.drift").ADWIN()
    for t, value in enumerate(values.tolist()):
        detector.update(value)
        if detector.drift_detected:
            return t + 1
    return NONE


def mapie(errors: Array) -> int:
    """First alarm of MAPIE's RiskMonitoring on errors above their median; the reference are the rounds before."""
    above = (errors > np.median(errors[:STABLE])).astype(int)
    truth = np.zeros(len(above), dtype=int)
    half = STABLE // 2  # reference and stable rounds
    monitor = optional("mapie.exchangeability_testing").RiskMonitoring(
        "accuracy", reference_data=(truth[:half], above[:half]), tolerance=0.0, warn=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor.update(truth[half:], above[half:])
    beyond = np.flatnonzero(monitor.online_risk_lower_bound_sequence_history > monitor.threshold)
    return NONE if not beyond.size else int(beyond[0]) + 1 + half


def martingale(errors: Array) -> int:
    """First alarm of online-cp's SimpleJumper on conformal p-values of the errors, at 20."""
    rng = np.random.default_rng(0)
    jumper = optional("online_cp.martingale").SimpleJumper(store_p_values=False)
    past: list[float] = []
    for t, error in enumerate(errors.tolist()):
        above = len(past) - bisect.bisect_left(past, error)
        bisect.insort(past, error)
        jumper.update(float((above + rng.random()) / (t + 1)))
        if jumper.M >= 20.0:
            return t + 1
    return NONE


def friedman(kind: str, seed: int, rounds: int) -> tuple[Array, Array]:
    """Features and outcomes of River's FriedmanDrift, drifting after the training and the stable rounds."""
    start = rounds - DRIFTED
    position = (start, 10**6) if kind != "lea" else (start, 10**6, 10**6 + 1)
    stream = optional("river.datasets.synth").FriedmanDrift(kind, position, SCENARIOS[kind][1], seed=seed)
    rows = [(*x.values(), y) for x, y in stream.take(rounds)]
    table = np.array(rows)
    return table[:, :-1], table[:, -1]


def friedman_model() -> Callable[[Array, Array], Array]:
    """Scores of outcomes under a normal forecast: a network's mean and the spread of its training errors."""
    x, y = friedman("gra", 42, TRAINING + DRIFTED)
    x, y = x[:TRAINING], y[:TRAINING]
    network = optional("sklearn.neural_network").MLPRegressor(
        hidden_layer_sizes=(64, 64), random_state=0, early_stopping=True, max_iter=300
    )
    network.fit(x, y)  # features are between 0 and 1
    sd = float(np.std(y - network.predict(x)))
    return lambda x, y: np.asarray((y - network.predict(x)) / sd)


def drift(quick: bool) -> Lines:
    """PITMonitor's benchmark: found after the drift, and not before, and the median delay."""
    score, trials = friedman_model(), 20 if quick else 200
    others: dict[str, Callable[[Array], int]] = {"ADWIN": lambda z: adwin(z * z)}
    for name, module in (("MAPIE", "mapie"), ("online-cp", "online_cp")):
        if find_spec(module) is None:
            yield Remark(f"{name} is not installed: left out")
        else:
            others[name] = (lambda z: mapie(np.abs(z))) if name == "MAPIE" else (lambda z: martingale(np.abs(z)))
    for kind, (name, _) in SCENARIOS.items():
        firsts: dict[str, list[int]] = {"orcast": [], **{other: [] for other in others}}
        for trial in range(trials):
            z = score(*friedman(kind, 42 + 1_000 * trial + 1, STABLE + DRIFTED))
            firsts["orcast"].append(first_alarm(ndtr(z), "changed", seed=trial, run_length=STABLE / 0.038))
            if trial < 20:
                for other, alarm in others.items():
                    firsts[other].append(alarm(z))
        for other, at in firsts.items():
            rounds = np.array(at)
            found = (rounds > STABLE) & (rounds < NONE)
            delay = float(np.median(rounds[found] - STABLE)) if found.any() else float("nan")
            target = (0.962, 77.0) if other == "orcast" and kind == "gra" else (None, None)
            case, early = f"Friedman, {name}: {other}", float(np.mean(rounds <= STABLE))
            yield Line(case, "found", float(found.mean()), target[0], ">=", ".3f", f"{early:.1%} alarmed before")
            yield Line(case, "median delay", delay, target[1], "<=", ".0f")


def from_the_start(quick: bool) -> Lines:
    """Median round of the alarm where the forecast is wrong from the first round on."""
    rng = np.random.default_rng(2)
    faults: dict[str, tuple[Callable[[Array], Array], float | None]] = {
        "spread too small by 1.5": (lambda z: 1.5 * z, 60.0),
        "spread too large by 1.5": (lambda z: z / 1.5, 60.0),
        "bias of half a standard deviation": (lambda z: z + 0.5, 30.0),
    }
    for name, (fault, target) in faults.items():
        at = [first_alarm(ndtr(fault(rng.standard_normal(1_000)))) for _ in range(400 if quick else 2_000)]
        yield Line(name, "median round of the alarm", float(np.median(at)), target, form=".0f")


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
        code = main(["check", str(path), "--fail", "--quiet"])
    yield Line("200 series, 5 broken", "exit code of orcast check --fail", code, 1, ">=", ".0f")


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
    yield Line("update", "bytes of state", monitor.state_bytes, 1024, form=".0f")
    series, rounds = (1_000, 1_000) if quick else (10_000, 1_000)
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(series * rounds)
    columns = {"unique_id": np.repeat(np.arange(series), rounds), "ds": np.tile(np.arange(rounds), series)}
    frame = pl.DataFrame(columns | {"y": mean + rng.standard_normal(mean.size), "mean": mean, "sd": np.ones(mean.size)})
    start, begin = time.perf_counter(), time.process_time()
    oc.monitor(frame)
    taken = time.perf_counter() - start
    note = f"{time.process_time() - begin:.1f} s of CPU"
    yield Line(f"frame, {series:,} x {rounds:,}", "seconds", taken, 30.0, form=".1f", note=note)


def measure(quick: bool) -> Lines:
    """Yield the lines of the section."""
    for part in (from_the_start, speed, many_series, drift, false_alarms):
        yield from part(quick)
